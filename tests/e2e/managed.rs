//! Aurora, RDS blue/green, and a server that is half dead: real pairs of MySQL that play them, with
//! the providers' tables made by hand.

use crate::bank::{self, bank};
use crate::cluster::{Pair, console};
use crate::world::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use testkit::actor::{self, Act};

fn pair(is_mysql: bool) -> Option<Pair> {
    pooled(|test| Pair::start(test, is_mysql))
}

/// Address of a proxy in front of a server, which acts.
fn acted(real: &Real, act: Arc<Act>) -> String {
    let Address::Tcp(at) = real.address() else {
        panic!("a port is expected");
    };
    actor::start(at, act).to_string()
}

/// The variable and the table of an instance of Aurora, by those that [`HOSTS`] makes.
fn aurora(name: &'static str) -> Arc<Act> {
    Arc::new(move |text| {
        let table = "information_schema.replica_host_status";
        let text = text
            .replace("@@aurora_server_id", &format!("'{name}'"))
            .replace(table, "aurora.replica_host_status");
        (text, Duration::ZERO)
    })
}

const HOSTS: [&str; 4] = [
    "CREATE DATABASE aurora",
    "CREATE TABLE aurora.hosts (SERVER_ID VARCHAR(9) PRIMARY KEY, SESSION_ID VARCHAR(40), \
     REPLICA_LAG_IN_MILLISECONDS DOUBLE)",
    "INSERT INTO aurora.hosts VALUES ('one', 'MASTER_SESSION_ID', NULL), \
     ('two', '5b9c-2f', 12.5), ('gone', '77aa-01', 15)",
    // An instance that is gone has told nothing for long.
    "CREATE VIEW aurora.replica_host_status AS SELECT hosts.*, \
     IF(SERVER_ID = 'gone', NOW(6) - INTERVAL 1 DAY, NOW(6)) AS LAST_UPDATE_TIMESTAMP \
     FROM aurora.hosts",
];

#[test]
fn aurora_is_followed_to_the_instance_that_its_table_names() {
    let mut pair = or_return!(pair(true));
    pair.one.execute(&HOSTS);
    let addresses = [
        acted(&pair.one, aurora("one")),
        acted(&pair.two, aurora("two")),
    ];
    let user = ("", "read_from = \"comments\"");
    let pool = pair.pool_at(&addresses, user, "kind = \"aurora\"");
    pool.wait_for("event=server-state message='two' is reader")
        .unwrap();
    let mut client = login(&pool.address, &bank());
    let here = "SELECT @@global.read_only";
    // What asks for a variable of the server is the writer's to answer.
    assert_eq!(client.value(here), "0");
    let (took, ledgers) = bank::under_load(&pool.address, |course| {
        pair.one.kill9();
        pair.promote();
        let since = Instant::now();
        pair.two.execute(&[
            "UPDATE aurora.hosts SET SESSION_ID = 'a1-b2' WHERE SERVER_ID = 'one'",
            "UPDATE aurora.hosts SET SESSION_ID = 'MASTER_SESSION_ID' WHERE SERVER_ID = 'two'",
        ]);
        course.mark();
        course.first_after().duration_since(since)
    });
    eprintln!("aurora: {} ms, {}", took.as_millis(), bank::told(&ledgers));
    bank::check(&mut pair.two.admin(), &ledgers);
    assert!(ledgers.iter().all(|ledger| ledger.cut == 0));
    pool.wait_for("event=writer-moved message=the writer is two, was ")
        .unwrap();
}

/// Sets the state of the deployment, as these servers tell it.
fn topology<const N: usize>(reals: [&Real; N], status: &str) {
    for real in reals {
        let set = format!("UPDATE mysql.rds_topology SET status = '{status}'");
        let mut admin = real.admin();
        admin.must("SET sql_log_bin = 0");
        admin.must(&set);
    }
}

#[test]
fn a_blue_green_switchover_of_rds_is_followed() {
    let pair = or_return!(pair(true));
    let row = |id: &str, real: &Real, role: &str| {
        format!(
            "INSERT INTO mysql.rds_topology VALUES ('{id}', '127.0.0.1', {}, \
             'BLUE_GREEN_DEPLOYMENT_{role}', 'AVAILABLE', '1.0')",
            real.port()
        )
    };
    pair.one.execute(&[
        "CREATE TABLE mysql.rds_topology (id VARCHAR(50), endpoint VARCHAR(60), port INT, \
         role VARCHAR(50), status VARCHAR(50), version VARCHAR(9))",
        &row("db-blue", &pair.one, "SOURCE"),
        &row("db-green", &pair.two, "TARGET"),
    ]);
    let pool = pair.pool_with("wait_ms_max = 60000", "kind = \"rds\"");
    let mut idle = login(&pool.address, &bank());
    idle.must("SET @mine = 7");
    let (took, ledgers) = bank::under_load(&pool.address, |course| {
        // The green side must not be taken before it is through, whatever it lets write.
        topology([&pair.one], "SWITCHOVER_INITIATED");
        course.wait_for(50);
        topology([&pair.one], "SWITCHOVER_IN_PROGRESS");
        pair.one.execute(&["SET GLOBAL super_read_only = 1"]);
        pair.promote();
        topology([&pair.two], "SWITCHOVER_IN_PROGRESS");
        pool.wait_for("event=writer-moved message=the writer is none, was one")
            .unwrap();
        // The old one takes writes again, for those that asked it by its new name.
        pair.one
            .execute(&["SET GLOBAL super_read_only = 0, GLOBAL read_only = 0"]);
        let since = Instant::now();
        topology([&pair.one, &pair.two], "SWITCHOVER_COMPLETED");
        course.mark();
        course.first_after().duration_since(since)
    });
    eprintln!(
        "blue/green: {} ms, {}",
        took.as_millis(),
        bank::told(&ledgers)
    );
    bank::check(&mut pair.two.admin(), &ledgers);
    assert!(ledgers.iter().all(|ledger| ledger.cut == 0));
    assert_eq!(idle.value("SELECT @mine"), "7");
    let mut console = console(&pool);
    let rows = console.rows("SHOW FULL SERVERS").texts();
    assert_eq!((&*rows[1][0], &*rows[1][3]), ("two", "writer"), "{rows:?}");
}

/// Questions to the writer while it is half dead.
const QUESTIONS: usize = 60;

#[test]
fn a_writer_of_which_every_second_answer_is_late_stays() {
    let pair = or_return!(pair(false));
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let every_second = acted(
        &pair.one,
        Arc::new(move |text| {
            let late = match text.contains("AS read_only") {
                true => count.fetch_add(1, Ordering::SeqCst) % 2 == 1,
                // A new login is no way out.
                false => text.contains("sql_big_selects") && count.load(Ordering::SeqCst) > 0,
            };
            (
                text.to_owned(),
                Duration::from_millis(700) * u32::from(late),
            )
        }),
    );
    let addresses = [every_second, pair.two.address().to_string()];
    let limits = "ask_ms = 20\nanswer_ms_max = 500\nwriter_lost = \"replace\"";
    let pool = pair.pool_at(&addresses, ("", ""), limits);
    let (_, ledgers) = bank::under_load(&pool.address, |course| {
        while asked.load(Ordering::SeqCst) < QUESTIONS {
            course.wait_for(1);
        }
    });
    let said = pool.said();
    let moves = said.matches("event=writer-moved").count();
    eprintln!("half dead: {moves} moves, {}", bank::told(&ledgers));
    assert!(moves <= 1, "{said}");
    assert!(ledgers.iter().all(|ledger| ledger.cut == 0));
}
