//! The one connection that watches the server: a server that refuses it, or is away, is said to be
//! so once; the pool serves on, and notices changes again as soon as it can.

use crate::world::{app, config, config_file, direct, found, login};
use testkit::client::Client;
use testkit::onramp::Pool;
use testkit::real::Real;

const BLIND: &str = "the server cannot be watched";
const AGAIN: &str = "the server is watched again";
const CHANGED: &str = "the server's global values have changed (lock_wait_timeout)";
const WATCHERS: &str = "FROM information_schema.PROCESSLIST WHERE USER = 'watcher'";

/// A pool whose watch has an account of its own.
fn start_pool(real: &Real) -> Pool {
    let text = config(&real.address(), "groups = 1\nbackends_max = 1");
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
    let both = match direct() {
        true => Vec::new(),
        false => vec![start(Real::start(&[])), start(Real::start_mysql(&[]))],
    };
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
        while said(&pool, BLIND) == 0 {
            for row in &admin.rows(&format!("SELECT ID {WATCHERS}")).rows {
                let id = String::from_utf8_lossy(row[0].as_deref().unwrap()).into_owned();
                // It may have gone by itself.
                let _ = admin.query(&format!("KILL {id}"));
            }
            fill(&real, &mut others);
        }
        assert_eq!(client.value("SELECT 2"), "2");
        drop(others);
        pool.wait_for(AGAIN).unwrap();
        assert_eq!(said(&pool, BLIND), 1);
        assert_eq!(client.value("SELECT 3"), "3");
        admin.must("SET GLOBAL lock_wait_timeout = 109");
        pool.wait_for(CHANGED).unwrap();
        let mut later = login(&pool.address, &app());
        assert_eq!(later.value("SELECT @@lock_wait_timeout"), "109");
        let one = admin.value(&format!("SELECT COUNT(*) {WATCHERS}"));
        assert_eq!(one, "1", "connections beside the backends");
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
