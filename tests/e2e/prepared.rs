//! Prepared statements in the binary protocol, where a story cannot tell: bounds of what clients
//! and servers hold, and what servers do not answer.

use crate::world::*;
use wire::status;

/// MariaDB 10.11 answers ANALYZE of a query with two results in one where a cursor is asked for,
/// and MySQL 9.7 ends itself at EXPLAIN of one: through the pool these are results without one.
#[test]
fn an_explanation_is_a_result_though_a_cursor_is_asked_for() {
    for real in pooled_servers() {
        let way = through(real, 1);
        let mut client = login(&way, &app());
        let mysql = real.flavour() == Flavour::MySql;
        let explains = if mysql { "EXPLAIN" } else { "ANALYZE" };
        let id = client.prepare(&format!("{explains} SELECT 1 AS a")).id;
        for _ in 0..2 {
            let told = client.execute(id, &[], true).unwrap();
            let [Outcome::Rows(rows)] = &told[..] else {
                panic!("{told:?}");
            };
            assert!(!rows.rows.is_empty());
            let flags = status::METADATA_CHANGED | status::CURSOR_EXISTS;
            assert_eq!(rows.end.status & flags, 0, "{rows:?}");
        }
    }
}

/// Number of statements that the server holds, over all connections.
fn prepared_count(client: &mut Client) -> usize {
    let rows = client.rows("SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'");
    rows.texts()[0][1].parse().unwrap()
}

#[test]
fn the_server_never_holds_more_statements_than_the_budget() {
    let real = or_return!(pooled(own_server));
    let number = |name: &str, default: usize| {
        std::env::var(name).map_or(default, |text| text.parse().unwrap())
    };
    let (clients, budget) = (number("ONRAMP_PREPARED_CLIENTS", 60), 40);
    let settings =
        format!("groups = 1\nbackends_max = 4\nprepared_max = {budget}\nclients_max = 20000");
    let pool = fresh_pool(&real, &settings);
    let mut watcher = login(&real.address(), &app());
    let mut all: Vec<(Client, Vec<u32>)> = Vec::new();
    for who in 0..clients {
        let mut client = login(&pool.address, &app());
        let ids = (0..91).map(|i| {
            let sql = format!("SELECT {i} + ?, {}", who % 3);
            client.prepare(&sql).id
        });
        let ids = ids.collect();
        all.push((client, ids));
        let count = prepared_count(&mut watcher);
        assert!(
            count <= budget,
            "{count} statements, the budget is {budget}"
        );
    }
    for (who, (client, ids)) in all.iter_mut().enumerate() {
        for i in [0, 45, 90] {
            let outcomes = client.execute(ids[i], &[Some(b"1000")], false).unwrap();
            let row = outcomes[0].rows().texts()[0].clone();
            let expected = [(1000 + i).to_string(), (who % 3).to_string()];
            assert_eq!(row, expected, "client {who}");
        }
    }
    let count = prepared_count(&mut watcher);
    assert!(count <= budget && count > 0, "{count} statements");
    drop(all);
}

/// On MySQL 9.7 itself the client would wait for ever, and whoever reads the reply.
#[test]
fn ones_own_cursor_does_not_spoil_an_execution_without_one() {
    let real = or_return!(pooled(crate::world::mysql));
    let pool = through(real, 1);
    for account in [app(), app().without(cap::DEPRECATE_EOF)] {
        let (mut client, mut other) = (login(&pool, &account), login(&pool, &app()));
        let id = client.prepare("SELECT 7 UNION SELECT 8").id;
        for _ in 0..2 {
            let opened = client.execute(id, &[], true).unwrap();
            let Some(Outcome::Rows(rows)) = opened.first() else {
                panic!("{opened:?}");
            };
            let columns = rows.columns.clone();
            for _ in 0..2 {
                let outcomes = client.execute(id, &[], false).unwrap();
                assert_eq!(outcomes[0].rows().texts(), [["7"], ["8"]]);
            }
            let fetched = client.fetch(id, 1, &columns);
            assert!(format!("{fetched:?}").contains("1421"), "{fetched:?}");
        }
        assert_eq!(client.value("SELECT 9"), "9");
        assert_eq!(other.value("SELECT 9"), "9");
    }
}

/// A client that closes nothing is stopped at its bound with the server's own error, and others
/// prepare on.
#[test]
fn a_client_that_closes_no_statement_is_stopped_at_its_bound() {
    const HELD_MAX: u32 = 16_382;
    for real in pooled_servers() {
        let pool = fresh_pool(real, "groups = 1\nbackends_max = 2");
        let mut client = login(&pool.address, &app());
        let prepare = (Command::StmtPrepare, &b"SELECT 1"[..]);
        let mut left = HELD_MAX;
        while left > 0 {
            let some = left.min(100);
            client.send(&vec![prepare; some as usize]).unwrap();
            for _ in 0..some {
                let reply = client.receive().unwrap();
                assert!(matches!(reply[..], [Outcome::Prepared(_)]), "{reply:?}");
            }
            left -= some;
        }
        for sql in ["SELECT 1", "SELECT 2"] {
            let refused = client.run(Command::StmtPrepare, sql.as_bytes()).unwrap();
            let failure = refused[0].failure();
            assert_eq!((failure.code, &failure.state[..]), (1461, "42000"));
            assert!(failure.message.contains("close those"), "{failure}");
        }
        let mut other = login(&pool.address, &app());
        let id = other.prepare("SELECT 'it'").id;
        assert!(other.execute(id, &[], false).is_ok());
        // Those that it has are there, and another takes the place of one that is closed.
        assert!(client.execute(HELD_MAX, &[], false).is_ok());
        client
            .send(&[(Command::StmtClose, &HELD_MAX.to_le_bytes())])
            .unwrap();
        let id = client.prepare("SELECT 3").id;
        assert!(client.execute(id, &[], false).is_ok());
    }
}
