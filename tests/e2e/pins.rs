//! Pins that end: a client keeps its backend as long as it has something there, and no longer.
//!
//! Every story runs on one backend fewer than it would need if a pin lasted for good: with one
//! backend, another client's statement comes through only when the first one's pin has ended, and
//! what it then sees shows that nothing was left there.

use crate::world::{
    app, both_servers, direct, fresh_schema, login, mysql, server, start_pool, through,
};
use testkit::client::Client;
use testkit::onramp::Pool;
use testkit::real::{Flavour, Real};
use testkit::reply::Outcome;
use wire::command::Command;

/// A pool with one backend; statements that wait longer than a second fail.
const ONE: &str = "groups = 1\nbackends_max = 1\nwait_ms_max = 1000";

/// Two clients of a pool with one backend.
fn two(pool: &Pool, schema: &str) -> [Client; 2] {
    let account = app().schema(schema);
    [
        login(&pool.address, &account),
        login(&pool.address, &account),
    ]
}

/// After `takes`, nobody else has a place; after `ends`, they have.
fn ends(pool: &Pool, schema: &str, takes: &[&str], ends: &[&str]) {
    let [mut holds, mut other] = two(pool, schema);
    for sql in takes {
        holds.query(sql).unwrap();
        let refused = other.query("SELECT 1").unwrap();
        let said = format!("{refused:?}");
        assert!(said.contains("9501"), "after {sql}: {said}");
    }
    for (i, sql) in ends.iter().enumerate() {
        holds.must(sql);
        if i + 1 == ends.len() {
            assert_eq!(other.value("SELECT 1"), "1", "after {sql}");
        }
    }
    pool.ask_for_report();
    pool.wait_for("2 clients, pinned now: {}").unwrap();
}

/// Statements that take something, and those that give it back.
type Case = (&'static [&'static str], &'static [&'static str]);

fn each_ends(test: &str, cases: &[Case]) {
    if let Some(real) = server(test) {
        each_ends_on(real, test, cases);
    }
}

fn each_ends_on(real: &Real, test: &str, cases: &[Case]) {
    if direct() {
        return;
    }
    let schema = format!("pins_{test}");
    fresh_schema(real, &schema);
    let mut admin = real.admin();
    admin.must(&format!("CREATE TABLE {schema}.t (v INT)"));
    for (i, (takes, gives_back)) in cases.iter().enumerate() {
        let pool = start_pool(real, &format!("{schema}{i}.toml"), ONE);
        ends(&pool, &schema, takes, gives_back);
    }
}

#[test]
fn locks_of_tables_end() {
    each_ends(
        "locks_of_tables",
        &[
            (&["LOCK TABLES t WRITE"], &["UNLOCK TABLES"]),
            (&["LOCK TABLES t READ"], &["START TRANSACTION", "COMMIT"]),
            (&["FLUSH TABLES t WITH READ LOCK"], &["UNLOCK TABLES"]),
            (&["FLUSH TABLES WITH READ LOCK"], &["UNLOCK TABLES"]),
            (
                &["LOCK TABLES t READ", "SELECT GET_LOCK('end_tables', 0)"],
                &["UNLOCK TABLES", "SELECT RELEASE_LOCK('end_tables')"],
            ),
        ],
    );
}

#[test]
fn named_locks_end() {
    each_ends(
        "named_locks",
        &[
            (
                &["SELECT GET_LOCK('end_a', 0)"],
                &["SELECT RELEASE_LOCK('end_a')"],
            ),
            (
                &["SELECT GET_LOCK('end_b', 0)", "SELECT GET_LOCK('end_b', 0)"],
                &["DO RELEASE_LOCK('end_b')", "DO RELEASE_LOCK('end_b')"],
            ),
            (
                &["DO GET_LOCK('end_c', 0), GET_LOCK('end_d', 0)"],
                &["DO RELEASE_LOCK('end_d')", "DO RELEASE_LOCK('end_c')"],
            ),
            (
                &["SELECT GET_LOCK(CONCAT('end', '_e'), 0)"],
                &["SELECT RELEASE_ALL_LOCKS()"],
            ),
        ],
    );
}

/// On MySQL RENAME TABLE means the others' table of that name.
#[test]
fn a_renamed_temporary_table_ends_on_mysql() {
    let test = "renamed_on_mysql";
    let cases: &[Case] = &[(
        &[
            "CREATE TEMPORARY TABLE a (v INT)",
            "RENAME TABLE t TO t2, t2 TO t",
            "ALTER TABLE a RENAME t2",
            "DROP TABLE IF EXISTS a",
        ],
        &["DROP TABLE t2"],
    )];
    if let Some(real) = mysql(test) {
        each_ends_on(real, test, cases);
    }
}

#[test]
fn temporary_tables_end() {
    each_ends(
        "temporary_tables",
        &[
            (
                &[
                    "CREATE TEMPORARY TABLE altered (x INT)",
                    "ALTER TABLE altered ADD COLUMN y INT",
                    "CREATE INDEX by_x ON altered (x)",
                ],
                &["DROP TABLE altered"],
            ),
            (
                &["CREATE TEMPORARY TABLE a (v INT)"],
                &["DROP TEMPORARY TABLE a"],
            ),
            (
                &["CREATE TEMPORARY TABLE t (v INT)"],
                &["INSERT INTO t VALUES (1)", "DROP TABLE IF EXISTS t"],
            ),
            (
                &[
                    "CREATE TEMPORARY TABLE a AS SELECT 1 AS v",
                    "CREATE TEMPORARY TABLE IF NOT EXISTS `b` LIKE a",
                ],
                &["DROP TABLE a, pins_temporary_tables.b"],
            ),
            (
                &[
                    "CREATE TEMPORARY TABLE a (v INT)",
                    "ALTER TABLE a RENAME TO b, ADD w INT",
                    "ALTER TABLE missing RENAME x",
                    "RENAME TABLE b TO c",
                    "DROP TABLE IF EXISTS a, b",
                ],
                &["DROP TABLE c"],
            ),
            (
                &[
                    "CREATE TEMPORARY TABLE a (v INT)",
                    "CREATE TEMPORARY TABLE b (v INT)",
                    "RENAME TABLE a TO c, b TO a, c TO b",
                    "DROP TABLE a",
                ],
                &["DROP TABLE b"],
            ),
        ],
    );
}

#[test]
fn handlers_and_backups_end() {
    each_ends(
        "handlers_and_backups",
        &[
            (
                &["HANDLER t OPEN AS h", "HANDLER h READ FIRST"],
                &["HANDLER h CLOSE"],
            ),
            (
                &["BACKUP STAGE START", "BACKUP STAGE FLUSH"],
                &["BACKUP STAGE END"],
            ),
            (&["BACKUP LOCK t"], &["BACKUP UNLOCK"]),
            (
                &["XA START 'end'", "INSERT INTO t VALUES (1)", "XA END 'end'"],
                &["XA COMMIT 'end' ONE PHASE"],
            ),
            (
                &["XA START 'e2'", "XA END 'e2'", "XA PREPARE 'e2'"],
                &["XA ROLLBACK 'e2'"],
            ),
        ],
    );
}

/// Locks of both servers, and those of MySQL alone.
#[test]
fn locks_end_on_mysql() {
    let test = "locks_on_mysql";
    let Some(real) = mysql(test) else { return };
    each_ends_on(
        real,
        test,
        &[
            (&["FLUSH TABLES WITH READ LOCK"], &["UNLOCK TABLES"]),
            (&["FLUSH TABLES t WITH READ LOCK"], &["UNLOCK TABLES"]),
            (&["FLUSH TABLES t FOR EXPORT"], &["UNLOCK TABLES"]),
            (&["LOCK INSTANCE FOR BACKUP"], &["UNLOCK INSTANCE"]),
            (
                &["LOCK INSTANCE FOR BACKUP", "FLUSH TABLES WITH READ LOCK"],
                &["UNLOCK TABLES", "UNLOCK INSTANCE"],
            ),
            (&["LOCK TABLES t WRITE"], &["UNLOCK TABLES"]),
            (
                &["SELECT GET_LOCK('mysql_a', 0)"],
                &["SELECT RELEASE_LOCK('mysql_a')"],
            ),
            (
                &["CREATE TEMPORARY TABLE a (v INT)"],
                &["DROP TEMPORARY TABLE a"],
            ),
            (&["HANDLER t OPEN AS h"], &["HANDLER h CLOSE"]),
            (
                &["XA START 'end'", "INSERT INTO t VALUES (1)", "XA END 'end'"],
                &["XA COMMIT 'end' ONE PHASE"],
            ),
        ],
    );
}

#[test]
fn what_gives_back_nothing_pins_nobody() {
    let test = "what_gives_back_nothing_pins_nobody";
    let Some(real) = server(test) else { return };
    if direct() {
        return;
    }
    fresh_schema(real, "pins_nothing");
    let pool = start_pool(real, "pins_nothing.toml", ONE);
    let [mut one, mut other] = two(&pool, "pins_nothing");
    for sql in [
        "SELECT RELEASE_LOCK('never_taken')",
        "SELECT RELEASE_ALL_LOCKS()",
        "DROP TEMPORARY TABLE IF EXISTS never_made",
        "UNLOCK TABLES",
        "XA RECOVER",
        "BACKUP UNLOCK",
    ] {
        one.query(sql).unwrap();
        assert_eq!(other.value("SELECT 1"), "1", "after {sql}");
    }
    // Somebody else's lock is not got, and nothing is held then.
    let mut owner = real.admin();
    owner.must("SELECT GET_LOCK('anothers', 0)");
    assert_eq!(one.value("SELECT GET_LOCK('anothers', 0)"), "0");
    assert_eq!(other.value("SELECT IS_FREE_LOCK('anothers')"), "0");
}

type Death = (
    &'static [&'static str],
    &'static [(&'static str, &'static str)],
);

/// Statements of a client before it dies, and the state that others must see then.
const DEATHS: [Death; 11] = [
    (
        &["BEGIN", "UPDATE t SET v = 9"],
        &[("SELECT v FROM t FOR UPDATE", "0")],
    ),
    (
        &["SET autocommit = 0", "UPDATE t SET v = 8"],
        &[("SELECT v FROM t FOR UPDATE", "0")],
    ),
    (
        &["BEGIN", "SAVEPOINT s", "DELETE FROM t"],
        &[("SELECT COUNT(*) FROM t FOR UPDATE", "1")],
    ),
    (&["LOCK TABLES t WRITE"], &[("SELECT COUNT(*) FROM t", "1")]),
    (
        &["FLUSH TABLES WITH READ LOCK"],
        &[("SELECT v + 0 FROM t FOR UPDATE", "0")],
    ),
    (
        &["SELECT GET_LOCK('dies', 0)"],
        &[
            ("SELECT GET_LOCK('dies', 5)", "1"),
            ("SELECT RELEASE_ALL_LOCKS()", "1"),
        ],
    ),
    (
        &[
            "CREATE TEMPORARY TABLE other (x INT)",
            "INSERT INTO other VALUES (1)",
        ],
        &[("SELECT COUNT(*) FROM other", "0")],
    ),
    (
        &["HANDLER t OPEN", "HANDLER t READ FIRST"],
        &[("SELECT COUNT(*) FROM t", "1")],
    ),
    (
        &["XA START 'dies'", "UPDATE t SET v = 7"],
        &[("SELECT v FROM t FOR UPDATE", "0")],
    ),
    (
        &["CALL takes()"],
        &[
            ("SELECT GET_LOCK('dies_inside', 5)", "1"),
            ("SELECT RELEASE_ALL_LOCKS()", "1"),
        ],
    ),
    (
        &["SET @@SESSION.timestamp = 5"],
        &[("SELECT @@timestamp > 1000", "1")],
    ),
];

/// Only where there is such a lock.
const DEATHS_ON_MARIADB: [Death; 1] =
    [(&["BACKUP STAGE START"], &[("SELECT COUNT(*) FROM t", "1")])];
const DEATHS_ON_MYSQL: [Death; 1] = [(
    &["LOCK INSTANCE FOR BACKUP"],
    &[("SELECT COUNT(*) FROM t", "1")],
)];

/// Deadlocks with other tests of the server after which a statement is not tried again.
const DEADLOCKS_MAX: usize = 100;

/// A client whose socket is closed in the middle of something leaves nothing of it to others.
#[test]
fn a_client_that_dies_frees_everything() {
    let test = "a_client_that_dies_frees_everything";
    for real in both_servers(test) {
        if !direct() {
            frees_everything(real);
        }
    }
}

fn frees_everything(real: &Real) {
    fresh_schema(real, "pins_dies");
    let mut admin = real.admin();
    admin.must("CREATE TABLE pins_dies.t (id INT PRIMARY KEY, v INT) ENGINE=InnoDB");
    admin.must("INSERT INTO pins_dies.t VALUES (1, 0)");
    admin.must("CREATE TABLE pins_dies.other (v INT)");
    admin.must("CREATE PROCEDURE pins_dies.takes() DO GET_LOCK('dies_inside', 0)");
    let own = match real.flavour() {
        Flavour::MariaDb => DEATHS_ON_MARIADB,
        Flavour::MySql => DEATHS_ON_MYSQL,
    };
    for (i, (does, then)) in DEATHS.iter().chain(&own).enumerate() {
        let pool = start_pool(real, &format!("pins_dies{i}.toml"), ONE);
        let [mut dies, mut other] = two(&pool, "pins_dies");
        for sql in *does {
            dies.must(sql);
        }
        drop(dies);
        for (sql, expected) in *then {
            assert_eq!(other.value(sql), *expected, "after {does:?}: {sql}");
        }
        // DDL waits for whoever locks tables or the instance.
        admin.must("SET lock_wait_timeout = 20");
        let mut alters = || {
            let reply = admin
                .query("ALTER TABLE pins_dies.t COMMENT 'free'")
                .unwrap();
            match &reply[..] {
                // Locks of other tests on the whole server, which it waits for, may wait for it.
                [Outcome::Failed(why)] if why.code == 1213 => false,
                [Outcome::Done(_)] => true,
                other => panic!("after {does:?}: {other:?}"),
            }
        };
        assert!((0..DEADLOCKS_MAX).any(|_| alters()), "after {does:?}");
    }
}

/// A client calls code that takes a lock and a temporary table, under each policy.
#[test]
fn stored_code_is_believed_as_far_as_the_settings_say() {
    let test = "stored_code_is_believed_as_far_as_the_settings_say";
    let Some(real) = server(test) else { return };
    if direct() {
        return;
    }
    fresh_schema(real, "pins_policy");
    let mut admin = real.admin();
    admin.must("USE pins_policy");
    admin.must("CREATE PROCEDURE takes() DO GET_LOCK('policy', 0)");
    admin.must("CREATE FUNCTION plain() RETURNS INT DETERMINISTIC RETURN 5");
    let one = |policy: &str| {
        let extra = format!("{ONE}\nstored_code = \"{policy}\"");
        let pool = start_pool(real, &format!("pins_{policy}.toml"), &extra);
        let clients = two(&pool, "pins_policy");
        (pool, clients)
    };

    let (_pool, [mut calls, mut other]) = one("pin");
    calls.must("CALL takes()");
    assert_eq!(other.failure("SELECT 1").code, 9501);
    drop(calls);
    let (pool, [mut calls, mut other]) = one("trust");
    assert_eq!(calls.value("SELECT plain()"), "5");
    assert_eq!(other.value("SELECT 1"), "1");
    // Blocks are no calls.
    calls.must("BEGIN NOT ATOMIC DO 1; END");
    assert_eq!(other.failure("SELECT 1").code, 9501);
    pool.ask_for_report();
    pool.wait_for("pinned now: {\"stored_code\": 1").unwrap();
}

/// A client that waits for a lock and dies has its place no longer; the lock is not its either.
fn a_wait_ends_with_its_client(real: &Real, test: &str) {
    let way = through(real, 2);
    let [mut holds, mut waits] = [login(&way, &app()), login(&way, &app())];
    let lock = format!("waited_{test}");
    holds.must(&format!("DO GET_LOCK('{lock}', 0)"));
    let sql = format!("SELECT GET_LOCK('{lock}', 1000)");
    waits.send(&[(Command::Query, sql.as_bytes())]).unwrap();
    let mut admin = real.admin();
    let waiting = "SELECT COUNT(*) FROM information_schema.processlist WHERE state = 'User lock'";
    while admin.value(waiting) == "0" {}
    drop(waits);
    let mut other = login(&way, &app());
    assert_eq!(other.value("SELECT 'a place'"), "a place");
    holds.must(&format!("DO RELEASE_LOCK('{lock}')"));
    let free = format!("SELECT GET_LOCK('{lock}', 10)");
    assert_eq!(other.value(&free), "1");
}

#[test]
fn a_wait_for_a_lock_ends_with_its_client() {
    let test = "a_wait_for_a_lock_ends_with_its_client";
    if let Some(real) = server(test) {
        a_wait_ends_with_its_client(real, "mariadb");
    }
    if let Some(real) = mysql(test) {
        a_wait_ends_with_its_client(real, "mysql");
    }
}

#[test]
fn xa_ends_however_its_name_is_written() {
    let cases: &[Case] = &[
        (
            &["XA START x'0a',X'0b',3", "XA END x'0a',X'0b',3"],
            &["XA ROLLBACK x'0a',X'0b',3"],
        ),
        (
            &["XA START 0x0c,0x0d,0x1", "XA END 0x0c,0x0d,0x1"],
            &["XA COMMIT 0x0c,0x0d,0x1 ONE PHASE"],
        ),
    ];
    each_ends("xa_names", cases);
}
