//! Peers that break the protocol: nothing hangs, nothing panics, nobody else is harmed.
//!
//! Clients send mutated conversations, and a proxy in front of the server mutates what that says
//! and closes. What is sent follows from a seed alone, so a failure is repeated by its number.

use crate::world::*;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use testkit::fuzz::mutate::Mutator;
use testkit::onramp::loopback;

const CLIENTS: u64 = 120;
const ROUNDS: u64 = 60;
/// Far above every limit of these pools.
const PATIENCE: Duration = Duration::from_secs(60);
/// The server's connection went during a statement.
const LOST: u16 = 1158;

/// A packet of a command, with its number.
fn packet(seq: u8, payload: &[u8]) -> Vec<u8> {
    let len = u32::try_from(payload.len()).unwrap().to_le_bytes();
    [&len[..3], &[seq], payload].concat()
}

/// Conversations behind a login, as they should be, and a few that nobody means.
fn conversations() -> Vec<Vec<u8>> {
    let query = |sql: &str| packet(0, &[b"\x03", sql.as_bytes()].concat());
    let execute = [b"\x17\x01\0\0\0\0\x01\0\0\0\0\x01\xfd\0", &b"\x01a"[..]].concat();
    vec![
        [query("SELECT 1"), query("SET @a = 1"), query("SELECT @a")].concat(),
        [query("BEGIN"), query("SELECT 2"), query("COMMIT")].concat(),
        [packet(0, b"\x16SELECT ?"), packet(0, &execute)].concat(),
        [packet(0, b"\x18\x01\0\0\0\0\0abc"), packet(0, b"\x0e")].concat(),
        [packet(0, b"\x02shop"), packet(0, b"\x1f")].concat(),
        [packet(0, b"\x01"), query("SELECT 'behind COM_QUIT'")].concat(),
        [query("SELECT 3"), packet(3, b"\x0e")].concat(),
        // A packet that goes on in another, neither of which comes whole.
        [&b"\xff\xff\xff\0\x03"[..], b"SELECT 4"].concat(),
        packet(0, b"\x11other\0\0shop\0\x2d\0mysql_native_password\0"),
        packet(0, b""),
        query("SELECT SLEEP(0), 'slow'; SELECT 5"),
        query("SELECT GET_LOCK('hostile', 0)"),
    ]
}

/// One client that does not keep to the rules; it may leave its connection open.
fn break_rules(way: &Address, seed: u64, mutator: &mut Mutator<'_>) -> Option<Client> {
    let account = Account::new("other", "other's");
    let bytes = mutator.input();
    let mut client = match seed % 4 {
        // Nothing of a login before it.
        0 => Client::open(way, &account).unwrap(),
        _ => login(way, &account),
    };
    client.wait_at_most(PATIENCE).unwrap();
    // It may have been sent away already.
    let _ = client.send_raw(&bytes);
    match seed % 3 {
        0 => None,
        1 => Some(client),
        _ => {
            // Whatever is still answered: the connection comes to its end.
            let _ = client.end_sending();
            let mut replies = 0;
            while client.wait().is_ok() {
                replies += 1;
                assert!(replies < 1000, "client {seed} is answered without end");
            }
            None
        }
    }
}

fn is_whole(pool: &mut Pool) {
    assert!(pool.is_running(), "{}", pool.said());
    assert!(!pool.said().contains("panicked"), "{}", pool.said());
}

#[test]
fn clients_that_break_the_protocol_harm_nobody() {
    let Some(real) = pooled(server) else { return };
    let mut pool = fresh_pool(real, "backends_max = 3\ngroups = 1");
    let way = pool.address.clone();
    let mut honest = login(&way, &app());
    honest.wait_at_most(PATIENCE).unwrap();
    honest.must("SET time_zone = '+05:00'");
    let corpus = conversations();
    let mut mutator = Mutator::new(&corpus, 1);
    let mut open = Vec::new();
    for seed in 0..CLIENTS {
        open.extend(break_rules(&way, seed, &mut mutator));
        // Who is pinned and silent keeps its backend: two such leave one for the others.
        if open.len() == 2 {
            open.clear();
        }
        let said = honest.rows(&format!("SELECT {seed}, @@time_zone"));
        let expected = [seed.to_string().into_bytes(), b"+05:00".to_vec()].map(Some);
        assert_eq!(said.rows, [expected], "behind client {seed}");
    }
    drop(open);
    drop(honest);
    pool.wait_for_census("clients: 0,").unwrap();
    is_whole(&mut pool);
}

/// Copies what a server says; what comes while `armed` is not 0 is mutated, and is the last.
fn copy_mutated(mut from: TcpStream, mut to: TcpStream, armed: &AtomicU64) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(len @ 1..) = from.read(&mut buffer) {
        let said = vec![buffer[..len].to_vec()];
        let seed = armed.swap(0, Ordering::SeqCst);
        if seed != 0 {
            let _ = to.write_all(&Mutator::new(&said, seed).input());
            break;
        }
        if to.write_all(&said[0]).is_err() {
            break;
        }
    }
    for stream in [&from, &to] {
        let _ = stream.shutdown(std::net::Shutdown::Both);
    }
}

/// A proxy in front of a server, for any number of connections.
fn proxy(server: &Address, armed: &Arc<AtomicU64>) -> Address {
    let Address::Tcp(server) = server.clone() else {
        panic!("{server} is no TCP address");
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = loopback(listener.local_addr().unwrap().port());
    let armed = armed.clone();
    std::thread::spawn(move || {
        for pool in listener.incoming().map_while(Result::ok) {
            let Ok(server) = TcpStream::connect(server) else {
                return;
            };
            let (mut up, mut down) = (pool.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut up, &mut down));
            let armed = armed.clone();
            std::thread::spawn(move || copy_mutated(server, pool, &armed));
        }
    });
    address
}

/// Reads as the next client. A mutated reply may be a good one: then its connection goes back, and
/// a statement that meets the close on its way is lost, as on a connection of its own.
fn unharmed(way: &Address, account: &Account) -> String {
    let backends = 2;
    for _ in 0..=backends {
        let outcomes = login(way, account).query("SELECT 'unharmed'").unwrap();
        match outcomes.last().unwrap() {
            Outcome::Failed(failure) => assert_eq!(failure.code, LOST, "{failure}"),
            answer => return answer.rows().only(),
        }
    }
    panic!("more statements are lost than there are backends");
}

/// Panics where a client got no answer at all.
fn is_answered(outcomes: &Result<Vec<Outcome>, ClientError>, what: &str) {
    if let Err(error) = outcomes {
        let hangs = error.to_string().contains("temporarily unavailable");
        assert!(!hangs, "{what} is not answered");
    }
}

/// Executes a statement, or fetches from its cursor; the reply is mutated.
fn ask_in_binary(client: &mut Client, armed: &AtomicU64, seed: u64) {
    const ROWS: &str =
        "SELECT 1, 'two', NULL, NOW(), 3.5 UNION SELECT 2, REPEAT('x', 3000), 4, 5, 6";
    let id = client.prepare(ROWS).id;
    let fetches = seed.is_multiple_of(2);
    let opened = fetches.then(|| client.execute(id, &[], true).unwrap());
    armed.store(seed, Ordering::SeqCst);
    let outcomes = match opened {
        Some(opened) => client.fetch(id, 2, &opened[0].rows().columns),
        None => client.execute(id, &[], false),
    };
    is_answered(&outcomes, &format!("seed {seed}: a statement in binary"));
}

#[test]
fn a_server_that_breaks_the_protocol_is_survived() {
    let Some(real) = pooled(server) else { return };
    let armed = Arc::new(AtomicU64::new(0));
    let place = proxy(&real.address(), &armed);
    let text = config(&place, "backends_max = 2\ngroups = 1\nwait_ms_max = 4000");
    let mut pool = pool_from(real, &text);
    let statements = [
        "SELECT 1, 'two', NULL",
        "SELECT * FROM seq_1_to_50",
        "SET time_zone = '+01:00'",
        "SELECT * FROM missing",
        "SELECT 1; SELECT 2",
        "BEGIN",
        "DO 1/0",
    ];
    for seed in 1..=ROUNDS {
        let account = app()
            .schema("shop")
            .with(wire::capabilities::MULTI_STATEMENTS);
        let mut client = login(&pool.address, &account);
        client.wait_at_most(PATIENCE).unwrap();
        // A reply, an error or the end: which of them, the mutation decides.
        if seed.is_multiple_of(3) {
            ask_in_binary(&mut client, &armed, seed);
        }
        armed.store(seed, Ordering::SeqCst);
        for sql in statements {
            let outcomes = client.query(sql);
            is_answered(&outcomes, &format!("seed {seed}: {sql}"));
            if outcomes.is_err() {
                break;
            }
        }
        armed.store(0, Ordering::SeqCst);
        let said = unharmed(&pool.address, &account);
        assert_eq!(said, "unharmed", "seed {seed}");
        is_whole(&mut pool);
    }
}
