//! Executions go out behind what restores their session, in the same write: no round trip more.
//!
//! A relay stands between the pool and the server and keeps every piece that the pool writes. A
//! pool that waited for the answer to its SET would write twice.

use crate::world::*;
use std::sync::{Arc, Mutex, PoisonError};
use testkit::relay::{self, Way};
use wire::packet::{Frame, HEADER_LEN, frame};

type Pieces = Arc<Mutex<Vec<Vec<u8>>>>;

/// Writes towards the server, piece by piece.
struct Watched {
    address: Address,
    pieces: Pieces,
}

impl Watched {
    /// A relay in front of a server; its threads end with the connections.
    fn new(real: &Real) -> Watched {
        let pieces = Pieces::default();
        let seen = pieces.clone();
        let address = relay::start(tcp(&real.address()), Vec::new(), move |way, _, piece| {
            if way == Way::ToServer && !piece.is_empty() {
                seen.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(piece.clone());
            }
        });
        Watched { address, pieces }
    }

    /// The commands of each piece since the last question.
    fn take(&self) -> Vec<Vec<Command>> {
        let mut pieces = self.pieces.lock().unwrap_or_else(PoisonError::into_inner);
        pieces.drain(..).map(|piece| commands(&piece)).collect()
    }
}

fn commands(mut piece: &[u8]) -> Vec<Command> {
    let mut found = Vec::new();
    while let Frame::Whole { total, .. } = frame(piece) {
        found.extend(Command::from_byte(piece[HEADER_LEN]));
        piece = &piece[total..];
    }
    assert!(piece.is_empty(), "a command in two writes");
    found
}

#[test]
fn an_execution_and_what_restores_its_session_are_one_write() {
    let Some(real) = pooled(server) else { return };
    let watched = Watched::new(real);
    let text = config(&watched.address, "backends_max = 1\ngroups = 1");
    let pool = pool_from(real, &text);
    let mut clients = ["+01:00", "+02:00"].map(|zone| {
        let mut client = login(&pool.address, &app());
        client.must(&format!("SET time_zone = '{zone}'"));
        let id = client.prepare("SELECT ?, @@time_zone").id;
        // The first time the backend is to learn the statement and the session.
        client.execute(id, &[Some(b"first")], false).unwrap();
        (client, id, zone)
    });
    for (client, id, _) in &mut clients {
        client.execute(*id, &[Some(b"again")], false).unwrap();
    }
    watched.take();
    for round in 0..10 {
        for (client, id, zone) in &mut clients {
            let value = format!("round {round}");
            let reply = client.execute(*id, &[Some(value.as_bytes())], false);
            assert_eq!(reply.unwrap()[0].rows().texts()[0], [&value[..], zone]);
            let both = [[Command::Query, Command::StmtExecute]];
            assert_eq!(watched.take(), both, "round {round}");
        }
    }
    // Where nothing has to be restored, the execution is alone.
    let (client, id, _) = &mut clients[1];
    client.execute(*id, &[Some(b"last")], false).unwrap();
    assert_eq!(watched.take(), [[Command::StmtExecute]]);
}

#[test]
fn executions_of_many_clients_share_writes() {
    let Some(real) = pooled(server) else { return };
    let watched = Watched::new(real);
    let text = config(&watched.address, "backends_max = 1\ngroups = 1");
    let file = config_file(real, "share_writes.toml", &text);
    let pool = Pool::start(binary(), &["--config", file.to_str().unwrap()]).unwrap();
    let mut clients = [(); 8].map(|()| {
        let mut client = login(&pool.address, &app());
        let id = client.prepare("SELECT ? + 1").id;
        client.execute(id, &[Some(b"1")], false).unwrap();
        (client, id)
    });
    watched.take();
    const ROUNDS: usize = 20;
    for round in 0..ROUNDS {
        for (at, (client, id)) in clients.iter_mut().enumerate() {
            let value = (100 * round + at).to_string();
            let arguments = testkit::client::execution(*id, &[Some(value.as_bytes())], false);
            client.send(&[(Command::StmtExecute, &arguments)]).unwrap();
        }
        for (at, (client, _)) in clients.iter_mut().enumerate() {
            let reply = client.receive().unwrap();
            let value = (100 * round + at + 1).to_string();
            assert_eq!(reply[0].rows().texts().len(), 1, "{value}");
        }
    }
    let written = watched.take();
    let all: Vec<Command> = written.concat();
    let expected = vec![Command::StmtExecute; 8 * ROUNDS];
    assert_eq!(all, expected, "and nothing else");
    let is_less = written.len() < all.len();
    assert!(is_less, "each execution had a write of its own");
}

/// Values that only a transaction's backend knows of its client are asked in the write that ends
/// it.
#[test]
fn a_transactions_end_and_what_is_asked_of_it_are_one_write() {
    let Some(real) = pooled(server) else { return };
    let sql = "DROP TABLE IF EXISTS shop.ends; \
               CREATE TABLE shop.ends (id INT AUTO_INCREMENT PRIMARY KEY)";
    real.script(sql);
    let watched = Watched::new(real);
    let text = config(&watched.address, "backends_max = 1\ngroups = 1");
    let pool = pool_from(real, &text);
    let mut client = login(&pool.address, &app());
    let mut other = login(&pool.address, &app());
    for end in ["COMMIT", "ROLLBACK"] {
        client.script("BEGIN; INSERT INTO shop.ends VALUES (NULL)");
        let id = client.value("SELECT MAX(id) FROM shop.ends");
        watched.take();
        client.must(end);
        assert_eq!(watched.take(), [[Command::Query; 2]], "{end}");
        // The backend is free.
        assert_eq!(other.value("SELECT 1"), "1");
        assert_eq!(client.value("SELECT LAST_INSERT_ID()"), id);
    }
}
