//! Pipelining: statements of several clients in flight on one backend, one behind the other.

use crate::world::*;

const CLIENTS: usize = 8;
const ROUNDS: usize = 20;
const TEXT: &str = "SELECT 1 + 2 AS three";

/// Eight clients and one backend: all send, then all receive.
fn may_pipeline(real: &Real) {
    let pool = fresh_pool(real, "backends_max = 1\ngroups = 1");
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| login(&pool.address, &app())).collect();
    // Alone once, so that the text has shown that it leaves nothing.
    assert_eq!(clients[0].value(TEXT), "3");
    for _ in 0..ROUNDS {
        for client in &mut clients {
            send(client, TEXT);
        }
        for client in &mut clients {
            let reply = client.receive().unwrap();
            assert!(matches!(reply[..], [Outcome::Rows(_)]), "{reply:?}");
        }
    }
    let all = format!(" statements: {},", CLIENTS * ROUNDS + 1);
    let census = pool.wait_for_census(&all).unwrap();
    assert!(!census.contains(" pipelined: 0,"), "{census}");
    assert!(census.contains(" pipelined: "), "{census}");
}

/// MySQL 9 reports the number of each statement where all variables are tracked: no change.
#[test]
fn statements_are_pipelined() {
    pooled_servers().for_each(may_pipeline);
}

/// Clients of two sessions wait in one line: each is pipelined behind those of its own session, and
/// none behind the others.
#[test]
fn clients_of_two_sessions_are_pipelined_apart() {
    let Some(real) = pooled(server) else { return };
    const ASKS: &str = "SELECT @@time_zone AS zone";
    let zone = |number: usize| ["+01:00", "+02:00"][number % 2];
    let settings = "backends_max = 2\ngroups = 1\noversubscribe = 1";
    let pool = fresh_pool(real, settings);
    let mut clients: Vec<_> = (0..2 * CLIENTS)
        .map(|_| login(&pool.address, &app()))
        .collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.must(&format!("SET time_zone='{}'", zone(number)));
        assert_eq!(client.value(ASKS), zone(number));
    }
    for _ in 0..ROUNDS {
        for client in &mut clients {
            send(client, ASKS);
        }
        for (number, client) in clients.iter_mut().enumerate() {
            match &client.receive().unwrap()[..] {
                [Outcome::Rows(rows)] => assert_eq!(rows.only(), zone(number)),
                other => panic!("{other:?}"),
            }
        }
    }
    let all = format!(" statements: {},", 2 * CLIENTS * (ROUNDS + 2));
    let census = pool.wait_for_census(&all).unwrap();
    assert!(!census.contains(" pipelined: 0,"), "{census}");
}

/// Makes the first client's text wait for a lock of the client that is returned, and the second's
/// trusted to be pipelined: each has run so often that one run in 32 may have been late, on a busy
/// machine.
fn stuck(real: &Real, table: &str, [late, follower]: [&mut Client; 2]) -> Client {
    let text = text_of(table);
    for _ in 0..64 {
        assert_eq!(late.value(&text), "short");
        assert_eq!(follower.value(TEXT), "3");
    }
    let mut locks = login(&real.address(), &app());
    locks.must(&format!("LOCK TABLES shop.{table} WRITE"));
    send(late, &text);
    let running = "SELECT COUNT(*) FROM information_schema.processlist WHERE info = ";
    let running = format!("{running}'{text}'");
    let mut admin = real.admin();
    wait_while(|| admin.value(&running) != "1");
    locks
}

/// A pool with one backend and so many clients, who have asked once, so that the texts have shown
/// that they leave nothing: the first for the long text of a table, the second for a sum.
fn pipelining<const N: usize>(real: &Real, table: &str, settings: &str) -> (Pool, [Client; N]) {
    let settings = format!("backends_max = 1\ngroups = 1\n{settings}");
    let pool = fresh_pool(real, &settings);
    real.execute(&[
        &format!("DROP TABLE IF EXISTS shop.{table}"),
        &format!("CREATE TABLE shop.{table} (text LONGTEXT)"),
        &format!("INSERT INTO shop.{table} VALUES ('short')"),
    ]);
    let mut clients = [(); N].map(|()| login(&pool.address, &app()));
    assert_eq!(clients[0].value(&text_of(table)), "short");
    assert_eq!(clients[1].value(TEXT), "3");
    (pool, clients)
}

fn text_of(table: &str) -> String {
    format!("SELECT text FROM shop.{table}")
}

/// Makes the text of a table this many million letters longer.
fn lengthen(real: &Real, table: &str, millions: usize) {
    let row = format!("INSERT INTO shop.{table} SELECT REPEAT('x', 1000000)");
    real.execute(&vec![&row[..]; millions]);
}

/// Receives rows; how many.
fn rows(client: &mut Client) -> usize {
    match &client.receive().unwrap()[..] {
        [Outcome::Rows(rows)] => rows.rows.len(),
        other => panic!("{other:?}"),
    }
}

/// A reply that has always been short may be long once. Who has sent a statement behind it waits
/// for its end, and its client need not read.
#[test]
fn who_is_pipelined_behind_a_reader_that_has_stopped_is_answered() {
    for real in pooled_servers() {
        let (pool, [mut reader, mut follower]) = pipelining(real, "pipelining_long", "");
        lengthen(real, "pipelining_long", 24);
        for round in 0..2 {
            send(&mut reader, &text_of("pipelining_long"));
            send(&mut follower, TEXT);
            assert_eq!(rows(&mut follower), 1);
            assert_eq!(rows(&mut reader), 25, "round {round}");
        }
        let census = pool.wait_for_census(" statements: 6,").unwrap();
        assert!(!census.contains(" pipelined: 0,"), "{census}");
    }
}

/// Statements that are pipelined behind one whose backend has to be closed are plain reads of which
/// their clients have heard nothing: they run again. Where replies may be spooled, the backend goes
/// on without the reader; the reply is long enough to fill what the pool reads ahead, and its
/// socket.
#[test]
fn who_is_pipelined_behind_a_reader_that_leaves_is_answered() {
    for real in pooled_servers() {
        let (pool, clients) = pipelining(real, "pipelining_left", "spool_bytes_max = 0");
        let [mut reader, mut first, mut second] = clients;
        lengthen(real, "pipelining_left", 40);
        send(&mut reader, &text_of("pipelining_left"));
        reader.await_answer().unwrap();
        for follower in [&mut first, &mut second] {
            send(follower, TEXT);
        }
        pool.wait_for_census(" pipelined: 2,").unwrap();
        drop(reader);
        for follower in [&mut first, &mut second] {
            assert_eq!(rows(follower), 1);
            assert_eq!(follower.value(TEXT), "3");
        }
        pool.wait_for_census(" pipelined_again: 2,").unwrap();
    }
}

#[test]
fn who_is_pipelined_behind_a_statement_that_takes_too_long_is_answered() {
    for real in pooled_servers() {
        let (pool, clients) = pipelining(real, "pipelining_late", "statement_ms_max = 2000");
        let [mut late, mut follower] = clients;
        let mut locks = stuck(real, "pipelining_late", [&mut late, &mut follower]);
        send(&mut follower, TEXT);
        assert_eq!(rows(&mut follower), 1);
        let reply = format!("{:?}", late.receive().unwrap());
        assert!(reply.contains("3024") || reply.contains("1969"), "{reply}");
        locks.must("UNLOCK TABLES");
        pool.wait_for_census(" pipelined: 1, pipelined_again: 1,")
            .unwrap();
    }
}

/// The client of the statement in front has gone. It takes too long all the same, and those who
/// be pipelined behind it do not wait for ever.
#[test]
fn who_is_pipelined_behind_a_statement_of_nobody_is_answered() {
    for real in pooled_servers() {
        let table = "pipelining_left_late";
        let (pool, [mut late, mut follower]) = pipelining(real, table, "statement_ms_max = 2000");
        let mut locks = stuck(real, table, [&mut late, &mut follower]);
        send(&mut follower, TEXT);
        pool.wait_for_census(" pipelined: 1,").unwrap();
        drop(late);
        assert_eq!(rows(&mut follower), 1);
        locks.must("UNLOCK TABLES");
        pool.wait_for_census(" pipelined: 1, pipelined_again: 1,")
            .unwrap();
    }
}
