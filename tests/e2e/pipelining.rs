//! Riding: statements of several clients in flight on one backend, one behind the other.

use crate::world::{app, both_servers, direct, login, mysql, server, start_pool};
use testkit::real::{Real, skipped};
use testkit::reply::Outcome;
use wire::command::Command;

const CLIENTS: usize = 8;
const ROUNDS: usize = 20;
const TEXT: &str = "SELECT 1 + 2 AS three";

/// Eight clients and one backend: all send, then all receive.
fn rides(real: &Real, name: &str) {
    let pool = start_pool(real, name, "backends_max = 1\ngroups = 1");
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| login(&pool.address, &app())).collect();
    // Alone once, so that the text has shown that it leaves nothing.
    assert_eq!(clients[0].value(TEXT), "3");
    for _ in 0..ROUNDS {
        for client in &mut clients {
            client.send(&[(Command::Query, TEXT.as_bytes())]).unwrap();
        }
        for client in &mut clients {
            let reply = client.receive().unwrap();
            assert!(matches!(reply[..], [Outcome::Rows(_)]), "{reply:?}");
        }
    }
    let all = format!(" statements: {},", CLIENTS * ROUNDS + 1);
    let census = pool.wait_for_census(&all).unwrap();
    assert!(!census.contains(" ridden: 0,"), "{census}");
    assert!(census.contains(" ridden: "), "{census}");
}

#[test]
fn statements_ride_on_mariadb() {
    let test = "statements_ride_on_mariadb";
    if direct() {
        return skipped(test, "it is about the pool");
    }
    let Some(real) = server(test) else { return };
    rides(real, "riding.toml");
}

/// Clients of two sessions wait in one line: each rides behind those of its own session, and none
/// behind the others.
#[test]
fn clients_of_two_sessions_ride_apart() {
    let test = "clients_of_two_sessions_ride_apart";
    if direct() {
        return skipped(test, "it is about the pool");
    }
    let Some(real) = server(test) else { return };
    const ASKS: &str = "SELECT @@time_zone AS zone";
    let zone = |number: usize| ["+01:00", "+02:00"][number % 2];
    let settings = "backends_max = 2\ngroups = 1\noversubscribe = 1";
    let pool = start_pool(real, "riding_apart.toml", settings);
    let mut clients: Vec<_> = (0..2 * CLIENTS)
        .map(|_| login(&pool.address, &app()))
        .collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.must(&format!("SET time_zone='{}'", zone(number)));
        assert_eq!(client.value(ASKS), zone(number));
    }
    for _ in 0..ROUNDS {
        for client in &mut clients {
            client.send(&[(Command::Query, ASKS.as_bytes())]).unwrap();
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
    assert!(!census.contains(" ridden: 0,"), "{census}");
}

/// A reply that has always been short may be long once. Who has sent a statement behind it waits
/// for its end, and its client need not read.
#[test]
fn who_rides_behind_a_reader_that_has_stopped_is_answered() {
    let test = "who_rides_behind_a_reader_that_has_stopped_is_answered";
    if direct() {
        return skipped(test, "it is about the pool");
    }
    for real in both_servers(test) {
        const LONG: &str = "SELECT text FROM shop.riding_long";
        let settings = "backends_max = 1\ngroups = 1";
        let name = format!("riding_long_{:?}.toml", real.flavour());
        let pool = start_pool(real, &name, settings);
        real.execute(&[
            "DROP TABLE IF EXISTS shop.riding_long",
            "CREATE TABLE shop.riding_long (text LONGTEXT)",
            "INSERT INTO shop.riding_long VALUES ('short')",
        ]);
        let [mut reader, mut rider] = [(); 2].map(|()| login(&pool.address, &app()));
        // Once each, so that the texts have shown that they leave nothing.
        assert_eq!(reader.value(LONG), "short");
        assert_eq!(rider.value(TEXT), "3");
        let row = "INSERT INTO shop.riding_long SELECT REPEAT('x', 1000000)";
        real.execute(&[row; 24]);
        for round in 0..2 {
            reader.send(&[(Command::Query, LONG.as_bytes())]).unwrap();
            rider.send(&[(Command::Query, TEXT.as_bytes())]).unwrap();
            let reply = rider.receive().unwrap();
            assert!(matches!(reply[..], [Outcome::Rows(_)]), "{reply:?}");
            match &reader.receive().unwrap()[..] {
                [Outcome::Rows(rows)] => assert_eq!(rows.rows.len(), 25, "round {round}"),
                other => panic!("{other:?}"),
            }
        }
        let census = pool.wait_for_census(" statements: 6,").unwrap();
        assert!(!census.contains(" ridden: 0,"), "{census}");
    }
}

/// Rows of a reply that is long enough to fill what the pool reads ahead, and its socket.
const ROWS: usize = 40;

/// Statements that ride behind one whose backend has to be closed are plain reads of which their
/// clients have heard nothing: they run again.
#[test]
fn who_rides_behind_a_reader_that_leaves_is_answered() {
    let test = "who_rides_behind_a_reader_that_leaves_is_answered";
    if direct() {
        return skipped(test, "it is about the pool");
    }
    for real in both_servers(test) {
        const LONG: &str = "SELECT text FROM shop.riding_left";
        // Where replies may be spooled, the backend goes on without the reader.
        let settings = "backends_max = 1\ngroups = 1\nspool_bytes_max = 0";
        let name = format!("riding_left_{:?}.toml", real.flavour());
        let pool = start_pool(real, &name, settings);
        real.execute(&[
            "DROP TABLE IF EXISTS shop.riding_left",
            "CREATE TABLE shop.riding_left (text LONGTEXT)",
            "INSERT INTO shop.riding_left VALUES ('short')",
        ]);
        let [mut reader, mut first, mut second] = [(); 3].map(|()| login(&pool.address, &app()));
        assert_eq!(reader.value(LONG), "short");
        assert_eq!(first.value(TEXT), "3");
        let row = "INSERT INTO shop.riding_left SELECT REPEAT('x', 1000000)";
        real.execute(&[row; ROWS]);
        reader.send(&[(Command::Query, LONG.as_bytes())]).unwrap();
        reader.await_answer().unwrap();
        for rider in [&mut first, &mut second] {
            rider.send(&[(Command::Query, TEXT.as_bytes())]).unwrap();
        }
        pool.wait_for_census(" ridden: 2,").unwrap();
        drop(reader);
        for rider in [&mut first, &mut second] {
            let reply = rider.receive().unwrap();
            assert!(matches!(reply[..], [Outcome::Rows(_)]), "{reply:?}");
            assert_eq!(rider.value(TEXT), "3");
        }
        pool.wait_for_census(" ridden_again: 2,").unwrap();
    }
}

#[test]
fn who_rides_behind_a_statement_that_takes_too_long_is_answered() {
    let test = "who_rides_behind_a_statement_that_takes_too_long_is_answered";
    if direct() {
        return skipped(test, "it is about the pool");
    }
    for real in both_servers(test) {
        const LOCKED: &str = "SELECT text FROM shop.riding_late";
        let settings = "backends_max = 1\ngroups = 1\nstatement_ms_max = 2000";
        let name = format!("riding_late_{:?}.toml", real.flavour());
        let pool = start_pool(real, &name, settings);
        real.execute(&[
            "DROP TABLE IF EXISTS shop.riding_late",
            "CREATE TABLE shop.riding_late (text LONGTEXT)",
            "INSERT INTO shop.riding_late VALUES ('short')",
        ]);
        let [mut late, mut rider] = [(); 2].map(|()| login(&pool.address, &app()));
        assert_eq!(late.value(LOCKED), "short");
        assert_eq!(rider.value(TEXT), "3");
        let mut locks = login(&real.address(), &app());
        locks.must("LOCK TABLES shop.riding_late WRITE");
        late.send(&[(Command::Query, LOCKED.as_bytes())]).unwrap();
        pool.wait_for_census(" statements: 2,").unwrap();
        rider.send(&[(Command::Query, TEXT.as_bytes())]).unwrap();
        let reply = rider.receive().unwrap();
        assert!(matches!(reply[..], [Outcome::Rows(_)]), "{reply:?}");
        let reply = late.receive().unwrap();
        assert!(
            format!("{reply:?}").contains("3024") || format!("{reply:?}").contains("1969"),
            "{reply:?}"
        );
        locks.must("UNLOCK TABLES");
        pool.wait_for_census(" ridden: 1, ridden_again: 1,")
            .unwrap();
    }
}

/// The client of the statement in front has gone. It takes too long all the same, and those who
/// ride behind it do not wait for ever.
#[test]
fn who_rides_behind_a_statement_of_nobody_is_answered() {
    let test = "who_rides_behind_a_statement_of_nobody_is_answered";
    if direct() {
        return skipped(test, "it is about the pool");
    }
    for real in both_servers(test) {
        const LOCKED: &str = "SELECT text FROM shop.riding_left_late";
        let settings = "backends_max = 1\ngroups = 1\nstatement_ms_max = 2000";
        let name = format!("riding_left_late_{:?}.toml", real.flavour());
        let pool = start_pool(real, &name, settings);
        real.execute(&[
            "DROP TABLE IF EXISTS shop.riding_left_late",
            "CREATE TABLE shop.riding_left_late (text LONGTEXT)",
            "INSERT INTO shop.riding_left_late VALUES ('short')",
        ]);
        let [mut late, mut rider] = [(); 2].map(|()| login(&pool.address, &app()));
        // A shape is trusted though one run of it in 32 was late, on a machine that is busy.
        for _ in 0..64 {
            assert_eq!(late.value(LOCKED), "short");
            assert_eq!(rider.value(TEXT), "3");
        }
        let mut locks = login(&real.address(), &app());
        locks.must("LOCK TABLES shop.riding_left_late WRITE");
        late.send(&[(Command::Query, LOCKED.as_bytes())]).unwrap();
        let running =
            format!("SELECT COUNT(*) FROM information_schema.processlist WHERE info = '{LOCKED}'");
        let mut admin = real.admin();
        while admin.value(&running) != "1" {}
        rider.send(&[(Command::Query, TEXT.as_bytes())]).unwrap();
        pool.wait_for_census(" ridden: 1,").unwrap();
        drop(late);
        let reply = rider.receive().unwrap();
        assert!(matches!(reply[..], [Outcome::Rows(_)]), "{reply:?}");
        locks.must("UNLOCK TABLES");
        pool.wait_for_census(" ridden: 1, ridden_again: 1,")
            .unwrap();
    }
}

/// With all variables tracked, MySQL 9 reports the number of each statement: no change of anything.
#[test]
fn statements_ride_on_mysql() {
    let test = "statements_ride_on_mysql";
    if direct() {
        return skipped(test, "it is about the pool");
    }
    let Some(real) = mysql(test) else { return };
    rides(real, "riding_mysql.toml");
}
