//! All memory for clients in use: who pays, and that nobody else does.

use crate::world::{app, direct, login, mysql, server, start_pool};
use testkit::client::{Client, ClientError};
use testkit::real::skipped;
use testkit::reply::Outcome;
use wire::command::Command;

const MIB: usize = 1 << 20;
/// What clients may hold of the 256 MiB of the setting.
const HELD_MAX: usize = 224 * MIB;

fn memory_bytes(census: &str) -> usize {
    let rest = census.split_once("memory_bytes: ").unwrap().1;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next().unwrap();
    digits.parse().unwrap()
}

/// Sends so many MiB of long data for a statement; gives the error that ends it.
fn hoard(client: &mut Client, mib: usize) -> Option<ClientError> {
    let id = client.prepare("SELECT LENGTH(?)").id;
    let data = [&id.to_le_bytes()[..], &[0, 0], &vec![b'x'; MIB]].concat();
    for _ in 0..mib {
        client.send(&[(Command::StmtSendLongData, &data)]).ok()?;
        if let Err(error) = client.run(Command::Ping, b"") {
            return Some(error);
        }
    }
    None
}

#[test]
fn who_holds_most_is_closed_when_all_memory_is_in_use_and_nobody_else() {
    let test = "who_holds_most_is_closed_when_all_memory_is_in_use_and_nobody_else";
    for (real, name) in [
        (server(test), "memory.toml"),
        (mysql(test), "memory_my.toml"),
    ] {
        let Some(real) = real else { continue };
        if direct() {
            return skipped(test, "it is about the pool");
        }
        let lines = "groups = 2\nbackends_max = 4\nprepared_max = 8\nmemory_bytes_max = 268435456";
        let pool = start_pool(real, name, lines);
        let mut good: Vec<Client> = (0..8).map(|_| login(&pool.address, &app())).collect();
        for client in &mut good {
            client.must("SET @mine = 7");
            client.prepare("SELECT @mine");
        }
        let mut bad: Vec<Client> = (0..9).map(|_| login(&pool.address, &app())).collect();
        let hoards = bad.iter_mut().enumerate();
        let refused = hoards.filter_map(|(who, client)| hoard(client, 22 + who));
        let refused: Vec<ClientError> = refused.collect();
        assert!(
            refused.is_empty(),
            "who sends last holds least: {refused:?}"
        );
        let census = pool.wait_for_census("memory_closed: 1,").unwrap();
        assert!(memory_bytes(&census) <= HELD_MAX, "{census}");
        assert!(
            pool.said().contains("event=memory-share"),
            "{}",
            pool.said()
        );
        for client in &mut good {
            assert_eq!(client.value("SELECT @mine"), "7");
            let id = client.prepare("SELECT 'still'").id;
            assert!(client.execute(id, &[], false).is_ok());
        }
        let said = bad.iter_mut().map(|client| client.query("SELECT 1"));
        let failed: Vec<_> = said
            .map(Result::unwrap)
            .filter(|outcomes| matches!(outcomes[..], [Outcome::Failed(_)]))
            .collect();
        assert_eq!(failed.len(), 1, "one was above its share, and is enough");
        let failure = failed[0][0].failure();
        assert_eq!(failure.code, 1153, "{failure}");
        assert!(failure.message.contains("memory_bytes_max"), "{failure}");
    }
}
