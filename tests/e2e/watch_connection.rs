//! The one connection that watches the server: a server that refuses it, or is away, is said to be
//! so once; the pool serves on, and notices changes again as soon as it can.

use crate::world::*;

const BLIND: &str = "the server cannot be watched";
const AGAIN: &str = "the server is watched again";
const CHANGED: &str = "the server's global values have changed (lock_wait_timeout)";
const WATCHERS: &str = "FROM information_schema.PROCESSLIST WHERE USER = 'watcher'";

/// A pool whose watch has an account of its own.
fn start_pool(real: &Real) -> Pool {
    start_pool_with(real, 1)
}

fn start_pool_with(real: &Real, backends: usize) -> Pool {
    let extra = format!("groups = 1\nbackends_reserved = 0\nbackends_max = {backends}");
    let text = config(&real.address(), &extra);
    let monitor = "monitor_user = \"watcher\"\nmonitor_password = \"w\"\n[[user]]";
    let file = config_file(real, "watch.toml", &text.replacen("[[user]]", monitor, 1));
    Pool::start(
        crate::world::binary(),
        &["--config", file.to_str().unwrap()],
    )
    .unwrap()
}

fn servers(test: &str) -> impl Iterator<Item = Real> {
    let start = |started: Result<Real, String>| {
        let real = started?;
        real.create_user("app", "app");
        real.create_user("watcher", "w");
        Ok::<Real, String>(real)
    };
    let both = [start(Real::start(&[])), start(Real::start_mysql(&[]))];
    let test = test.to_string();
    both.into_iter().filter_map(move |one| found(one, &test))
}

/// Logs in until the server has no room for more.
fn fill(real: &Real, all: &mut Vec<Client>) {
    while let Ok(client) = Client::connect(&real.address(), &app()) {
        all.push(client);
    }
}

fn said(pool: &Pool, part: &str) -> usize {
    pool.said().matches(part).count()
}

#[test]
fn a_server_that_is_full_is_watched_again_when_it_has_room() {
    for real in servers("a_server_that_is_full_is_watched_again_when_it_has_room") {
        let mut admin = real.admin();
        let pool = start_pool(&real);
        let mut client = login(&pool.address, &app());
        assert_eq!(client.value("SELECT 1"), "1");
        admin.must("SET GLOBAL max_connections = 10");
        let mut others = Vec::new();
        fill(&real, &mut others);
        // Its place goes to others; it may be faster once.
        wait_while(|| {
            for row in &admin.rows(&format!("SELECT ID {WATCHERS}")).rows {
                let id = String::from_utf8_lossy(row[0].as_deref().unwrap()).into_owned();
                // It may have gone by itself.
                let _ = admin.query(&format!("KILL {id}"));
            }
            fill(&real, &mut others);
            said(&pool, BLIND) == 0
        });
        assert_eq!(client.value("SELECT 2"), "2");
        drop(others);
        pool.wait_for(AGAIN).unwrap();
        assert_eq!(said(&pool, BLIND), 1);
        assert_eq!(client.value("SELECT 3"), "3");
        admin.must("SET GLOBAL lock_wait_timeout = 109");
        pool.wait_for(CHANGED).unwrap();
        let mut later = login(&pool.address, &app());
        assert_eq!(later.value("SELECT @@lock_wait_timeout"), "109");
        // The server counts one that was killed until its thread has ended.
        let count = format!("SELECT COUNT(*) {WATCHERS}");
        wait_while(|| admin.value(&count) != "1");
    }
}

#[test]
fn a_server_that_was_away_is_watched_again() {
    for mut real in servers("a_server_that_was_away_is_watched_again") {
        let pool = start_pool(&real);
        real.kill9();
        pool.wait_for(BLIND).unwrap();
        real.restart().unwrap();
        pool.wait_for(AGAIN).unwrap();
        assert_eq!(said(&pool, BLIND), 1);
        let mut client = login(&pool.address, &app());
        assert_eq!(client.value("SELECT 1"), "1");
        real.admin().must("SET GLOBAL lock_wait_timeout = 109");
        pool.wait_for(CHANGED).unwrap();
    }
}

#[test]
fn a_server_with_few_connections_gets_no_more_backends_than_it_takes() {
    for real in servers("a_server_with_few_connections_gets_no_more_backends_than_it_takes") {
        let mut admin = real.admin();
        admin.must("SET GLOBAL max_connections = 15");
        let pool = start_pool_with(&real, 20);
        // Two beside the backends, one for a KILL, two for administrators.
        let low = "backends_max is 20, but the server takes 15 connections (max_connections): \
                   the pool opens at most 10 backends";
        pool.wait_for(low).unwrap();
        let mut inside = transactions(&pool, 10);
        let mut eleventh = login(&pool.address, &app());
        send(&mut eleventh, "SELECT 11");
        pool.wait_for_census("waiting: 1,").unwrap();
        let asked = "SELECT 'an administrator'";
        assert_eq!(real.admin().value(asked), "an administrator");
        // As soon as the server takes more, the pool opens more.
        admin.must("SET GLOBAL max_connections = 500");
        pool.wait_for("backends_max, 20, holds again").unwrap();
        assert!(matches!(
            eleventh.receive().unwrap()[..],
            [Outcome::Rows(_)]
        ));
        inside.extend(transactions(&pool, 10));
        // Lowered while all are in use: they are closed as they are checked in.
        admin.must("SET GLOBAL max_connections = 15");
        for client in &mut inside {
            client.must("COMMIT");
        }
        pool.wait_for_census("backends_idle: 10,").unwrap();
        assert_eq!(said(&pool, "os error"), 0);
        let refused = pool.wait_for_census("refusals: {}");
        assert!(refused.is_ok(), "{refused:?}");
    }
}

/// Clients, `count` of them, each in a transaction.
fn transactions(pool: &Pool, count: usize) -> Vec<Client> {
    let open = || {
        let mut client = login(&pool.address, &app());
        client.must(HOLD);
        client
    };
    (0..count).map(|_| open()).collect()
}
