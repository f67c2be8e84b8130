//! Transactions that have begun for their clients, and on no backend yet: what clients see is what
//! a server says, and who only begins holds nothing.

use crate::compare::same_on_both;
use crate::world::{app, both_servers, direct, fresh_schema, login, server, start_pool};
use testkit::talk::Account;
use wire::capabilities as cap;
use wire::command::Command;

/// Clients of each kind that hears of transactions in its own way.
fn accounts(schema: &str) -> [Account; 4] {
    let account = || app().schema(schema);
    [
        account(),
        account().without(cap::SESSION_TRACK),
        account().without(cap::DEPRECATE_EOF),
        account().with(cap::MULTI_STATEMENTS),
    ]
}

#[test]
fn a_transaction_is_told_as_the_server_tells_it() {
    // One backend for all: who only begins must not keep it.
    same_on_both("deferred_told", 1, |story| {
        let all = accounts(&story.schema).map(|account| story.join_as(&account));
        story.sql(all[0], "CREATE TABLE t (id INT PRIMARY KEY, v INT)");
        for who in all {
            story.all(who, &["SELECT CAST('x' AS SIGNED)", "BEGIN"]);
        }
        for who in all {
            story.command(who, Command::Ping, b"");
            story.sql(who, "SHOW WARNINGS");
            story.sql(who, "ROLLBACK");
        }
        for who in all {
            story.all(
                who,
                &["SELECT 1 UNION SELECT 2", "START TRANSACTION", "begin"],
            );
            story.all(who, &["SELECT ROW_COUNT(), FOUND_ROWS()", "COMMIT"]);
            story.all(who, &["BEGIN", "COMMIT", "COMMIT", "SELECT ROW_COUNT()"]);
            story.all(who, &["BEGIN", "SET @a = 1", "ROLLBACK", "SELECT @a"]);
        }
        for (number, who) in all.into_iter().enumerate() {
            let insert = format!("INSERT INTO t VALUES ({number}, 1)");
            story.all(who, &["BEGIN", &insert, "SELECT v FROM t", "ROLLBACK"]);
            story.all(who, &["SELECT v FROM t", "BEGIN", &insert, "COMMIT"]);
            story.all(
                who,
                &["BEGIN", "SELECT * FROM no_such_table", "SHOW WARNINGS"],
            );
            story.all(
                who,
                &["COMMIT", "BEGIN", "SAVEPOINT a", "ROLLBACK TO a", "COMMIT"],
            );
            story.all(who, &["SET autocommit = 0", "BEGIN", "ROLLBACK"]);
            story.all(who, &["BEGIN", "SET autocommit = 1", "SELECT 1"]);
            story.all(
                who,
                &["SET completion_type = 1", "BEGIN", "COMMIT", "COMMIT"],
            );
            story.all(who, &["SET completion_type = 0", "ROLLBACK"]);
            story.all(
                who,
                &["SET SESSION TRANSACTION READ ONLY", "BEGIN", "COMMIT"],
            );
            story.all(
                who,
                &["SET SESSION TRANSACTION READ WRITE", "BEGIN", "ROLLBACK"],
            );
            story.sql(who, "SELECT id, v FROM t ORDER BY id");
        }
    });
}

/// The server can tell of the end of a transaction with an OK only, and an error may end one.
#[test]
fn a_transaction_that_an_error_has_ended_is_told_as_the_server_tells_it() {
    same_on_both("ended_by_an_error", 1, |story| {
        // Servers set the flag here, and say of what in no block.
        story.changes_alone = true;
        let all = accounts(&story.schema).map(|account| story.join_as(&account));
        story.sql(all[0], "CREATE TABLE t (id INT PRIMARY KEY, v INT)");
        let fails = "CREATE TABLE t (id INT)";
        for who in all {
            for next in [
                &["BEGIN", "COMMIT"][..],
                &["BEGIN", "SELECT 1", "COMMIT"],
                &["BEGIN -- waits for nothing", "ROLLBACK"],
                &["START TRANSACTION", "DO 1", "COMMIT"],
                &["COMMIT AND CHAIN", "COMMIT"],
                &["SELECT 1", "BEGIN", "COMMIT"],
                &["DO 1", "BEGIN", "COMMIT"],
                &["COMMIT", "BEGIN", "COMMIT"],
                &[fails, "BEGIN", fails, "BEGIN", "COMMIT"],
                &["USE mysql", "BEGIN", "COMMIT"],
            ] {
                story.all(who, &["BEGIN", fails]);
                story.all(who, next);
                let own = format!("USE {}", story.schema);
                story.sql(who, &own);
            }
        }
        // A statement with rows ends one too, and has no OK for clients without DEPRECATE_EOF.
        for who in all {
            story.all(who, &["BEGIN", "ANALYZE TABLE t", "BEGIN", "COMMIT"]);
            story.all(who, &["BEGIN", "ANALYZE TABLE t", "SELECT 1", "BEGIN"]);
            story.all(who, &["COMMIT", "BEGIN", "ANALYZE TABLE t", "COMMIT"]);
        }
        // Others' statements come between.
        for who in all {
            story.all(who, &["BEGIN", fails]);
        }
        for who in all {
            story.all(who, &["BEGIN", "SELECT COUNT(*) FROM t", "COMMIT"]);
        }
    });
}

/// Ends of transactions that are none.
const ENDS: [&str; 3] = ["COMMIT", "rollback", " Commit Work"];

#[test]
fn the_end_of_no_transaction_is_told_as_the_server_tells_it() {
    let left = [
        "SELECT CAST('x' AS SIGNED)",
        "SELECT 1 UNION SELECT 2",
        "INSERT INTO t VALUES (1), (2), (3)",
        "INSERT INTO no_such_table VALUES (1)",
        "INSERT INTO t VALUES (4), (NULL), (4)",
        "SELECT SQL_CALC_FOUND_ROWS id FROM t LIMIT 1",
        "DO 1",
        "SET @a = 5",
        "SET time_zone = '+02:00'",
        "SHOW WARNINGS",
    ];
    let asked = [
        "SELECT ROW_COUNT(), FOUND_ROWS(), LAST_INSERT_ID(), @a",
        "SHOW WARNINGS",
        "SELECT @@warning_count, @@error_count",
        "GET DIAGNOSTICS @n = NUMBER",
    ];
    same_on_both("ends_of_none", 1, |story| {
        let other = story.join();
        let all = accounts(&story.schema).map(|account| story.join_as(&account));
        let create = "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY)";
        for who in all {
            story.all(who, &ENDS);
            for (number, left) in left.into_iter().enumerate() {
                for (end, asked) in ENDS.into_iter().cycle().skip(number).zip(asked) {
                    story.all(who, &["DROP TABLE IF EXISTS t", create, left]);
                    // Its backend is still there, or has served another.
                    if number % 2 == 0 {
                        story.sql(other, "SELECT 1");
                    }
                    story.all(who, &[end, asked]);
                    story.command(who, Command::Ping, b"");
                    story.all(who, &[left, end, end]);
                    story.command(who, Command::SetOption, b"\0\0");
                }
            }
        }
    });
}

#[test]
fn an_end_goes_to_the_server_where_it_may_do_more() {
    same_on_both("ends_of_some", 1, |story| {
        let all = accounts(&story.schema).map(|account| story.join_as(&account));
        story.all(
            all[0],
            &[
                "CREATE TABLE t (id INT PRIMARY KEY) ENGINE = InnoDB",
                "CREATE TABLE kept (id INT) ENGINE = MyISAM",
                "INSERT INTO t VALUES (1)",
            ],
        );
        for who in all {
            for end in ENDS {
                let count = "SELECT COUNT(*) FROM t";
                let add = "INSERT INTO t SELECT MAX(id) + 1 FROM t";
                story.all(who, &["SET autocommit = 0", end, "SELECT 1", end]);
                story.all(who, &[count, end, add, end, count, "SAVEPOINT a", end]);
                story.all(who, &["ROLLBACK TO a", add, "SET autocommit = 1", end]);
                story.all(
                    who,
                    &["SET completion_type = 'CHAIN'", end, count, add, end],
                );
                story.all(who, &["SET completion_type = 'NO_CHAIN'", "ROLLBACK"]);
                story.all(who, &["SET TRANSACTION READ ONLY", end, add, end, count]);
                story.all(who, &["SET SESSION TRANSACTION READ ONLY", end]);
                story.all(who, &["SET SESSION TRANSACTION READ WRITE", end]);
                story.all(who, &["BEGIN", "INSERT INTO kept VALUES (1)", end]);
                story.all(who, &["SHOW WARNINGS", end, "SHOW WARNINGS"]);
                story.all(who, &["CREATE TEMPORARY TABLE own (id INT)", end]);
                story.all(who, &["INSERT INTO own VALUES (1)", end]);
                story.all(who, &["SELECT * FROM own", "DROP TEMPORARY TABLE own", end]);
                story.all(
                    who,
                    &["LOCK TABLES t WRITE", end, add, end, "UNLOCK TABLES"],
                );
                story.all(who, &["BEGIN", add, "CREATE TABLE ends (id INT)", end]);
                story.all(who, &["DROP TABLE ends", end, "SELECT ROW_COUNT()"]);
                story.all(who, &["XA START 'ends'", end, "XA END 'ends'"]);
                story.all(who, &["XA ROLLBACK 'ends'", end, count]);
                for track in ["STATE", "CHARACTERISTICS", "OFF"] {
                    let track = format!("SET session_track_transaction_info = '{track}'");
                    story.all(who, &[&track, end, count, end]);
                }
                for on in [1, 0] {
                    let track = format!("SET session_track_state_change = {on}");
                    story.all(who, &[&track, end, count, end]);
                }
            }
        }
    });
}

#[test]
fn what_a_transaction_leaves_is_told_as_the_server_tells_it() {
    let work: [&[&str]; 7] = [
        &["INSERT INTO t VALUES (NULL)"],
        &[
            "INSERT INTO t VALUES (NULL), (NULL)",
            "SELECT id FROM t LIMIT 1",
        ],
        &["INSERT INTO t VALUES (4242)"],
        &[
            "INSERT INTO t VALUES (NULL)",
            "SELECT SQL_CALC_FOUND_ROWS id FROM t LIMIT 1",
        ],
        &["INSERT INTO t VALUES (NULL)", "SELECT CAST('x' AS SIGNED)"],
        &[
            "INSERT INTO t VALUES (NULL)",
            "INSERT INTO no_such_table VALUES (1)",
        ],
        &["SELECT LAST_INSERT_ID(7)", "SELECT 1 UNION SELECT 2"],
    ];
    let asked = [
        "SELECT LAST_INSERT_ID(), ROW_COUNT(), FOUND_ROWS()",
        "SELECT FOUND_ROWS()",
        "SHOW WARNINGS",
        "SELECT @@warning_count, @@error_count",
        "SELECT @@last_insert_id, @@identity",
    ];
    same_on_both("deferred_left", 1, |story| {
        let other = story.join();
        let create = "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY) ENGINE = InnoDB";
        for who in accounts(&story.schema).map(|account| story.join_as(&account)) {
            for (number, (work, end)) in work
                .iter()
                .flat_map(|work| ENDS.map(|end| (work, end)))
                .enumerate()
            {
                for asked in asked {
                    story.all(
                        who,
                        &["DROP TABLE IF EXISTS t", create, "SELECT 1", "BEGIN"],
                    );
                    story.all(who, work);
                    story.sql(who, end);
                    if number % 2 == 0 {
                        story.sql(other, "SELECT 1");
                    }
                    story.all(who, &[asked, "INSERT INTO t VALUES (NULL)"]);
                    story.command(who, Command::Ping, b"");
                }
            }
        }
    });
}

#[test]
fn the_end_of_no_transaction_takes_no_backend() {
    for real in both_servers("ends_spared") {
        if direct() {
            return;
        }
        let settings = "backends_max = 1\ngroups = 1";
        let pool = start_pool(real, "ends_spared.toml", settings);
        let (mut a, mut b) = (login(&pool.address, &app()), login(&pool.address, &app()));
        // The one backend is taken.
        a.must("BEGIN");
        assert_eq!(a.value("SELECT 1"), "1");
        for end in ENDS {
            b.must(end);
        }
        a.must("COMMIT");
        let counted = "transactions_deferred: 1, transactions_unsent: 0, ends_spared: 3,";
        pool.wait_for_census(counted).unwrap();
    }
}

#[test]
fn who_begins_and_thinks_holds_no_backend() {
    for real in both_servers("deferred_idle") {
        if direct() {
            return;
        }
        let settings = "backends_max = 2\ngroups = 1\nwait_ms_max = 5000";
        let pool = start_pool(real, "deferred_idle.toml", settings);
        let mut thinking: Vec<_> = (0..50).map(|_| login(&pool.address, &app())).collect();
        for client in &mut thinking {
            client.must("BEGIN");
        }
        let mut other = login(&pool.address, &app());
        assert_eq!(other.value("SELECT 1"), "1");
        // Each goes on, and ends.
        for client in &mut thinking {
            assert_eq!(client.value("SELECT 2"), "2");
            client.must("COMMIT");
            client.must("BEGIN");
            client.must("COMMIT");
        }
        let counted = "transactions_deferred: 100, transactions_unsent: 50,";
        pool.wait_for_census(counted).unwrap();
    }
}

/// Clients that think in transactions at once, unless `ONRAMP_THINKERS` says how many.
const THINKERS: usize = 1_000;
const BACKENDS: usize = 16;
/// Those of them that go on at once: each keeps its backend until it commits.
const AT_ONCE: usize = BACKENDS / 2;

#[test]
fn thousands_think_in_transactions_on_sixteen_backends() {
    for real in both_servers("deferred_thousands") {
        if direct() {
            return;
        }
        let told = std::env::var("ONRAMP_THINKERS");
        let count = told.map_or(THINKERS, |number| number.parse().unwrap());
        fresh_schema(real, "deferred_thousands");
        let settings = format!("backends_max = {BACKENDS}\ngroups = 1");
        let pool = start_pool(real, "deferred_thousands.toml", &settings);
        let account = app().schema("deferred_thousands");
        let mut others: Vec<_> = (0..2 * BACKENDS)
            .map(|_| login(&pool.address, &account))
            .collect();
        others[0].must("CREATE TABLE t (id INT PRIMARY KEY, v INT)");
        let mut thinkers: Vec<_> = (0..count).map(|_| login(&pool.address, &account)).collect();
        for thinker in &mut thinkers {
            thinker.must("BEGIN");
        }
        // All of them are in a transaction, and all backends are free.
        let begun = format!("transactions_deferred: {count}, transactions_unsent: 0,");
        let census = pool.wait_for_census(&begun).unwrap();
        assert!(census.contains("backends_checked_out: 0,"), "{census}");
        // Others are served meanwhile, with transactions of their own.
        for (number, other) in others.iter_mut().enumerate() {
            assert_eq!(other.value("SELECT COUNT(*) FROM t"), number.to_string());
            other.must("BEGIN");
            other.must(&format!("INSERT INTO t VALUES ({number}, -1)"));
            other.must("COMMIT");
        }
        // Then every thinker goes on, and one of each few changes its mind.
        for few in thinkers.chunks_mut(AT_ONCE) {
            for (id, thinker) in few.iter_mut().enumerate() {
                thinker.must(&format!("UPDATE t SET v = v + 1 WHERE id = {id}"));
            }
            let (changed, sure) = few.split_first_mut().unwrap();
            changed.must("ROLLBACK");
            for thinker in sure {
                thinker.must("COMMIT");
            }
        }
        let committed = count - count.div_ceil(AT_ONCE);
        let sum = "SELECT SUM(v) + COUNT(*) FROM t";
        assert_eq!(others[0].value(sum), committed.to_string());
        pool.wait_for_census("backends_checked_out: 0,").unwrap();
    }
}

#[test]
fn it_can_be_switched_off() {
    let test = "it_can_be_switched_off";
    let Some(real) = server(test).filter(|_| !direct()) else {
        return;
    };
    // The one who begins may have to wait for the backend to be dialled.
    let settings = "backends_max = 1\ngroups = 1\nwait_ms_max = 2000\ndefer_begin = false";
    let pool = start_pool(real, "not_deferred.toml", settings);
    let (mut a, mut b) = (login(&pool.address, &app()), login(&pool.address, &app()));
    a.must("BEGIN");
    let refused = b.query("SELECT 1");
    assert!(format!("{refused:?}").contains("9501"), "{refused:?}");
    let refused = b.query("ROLLBACK");
    assert!(format!("{refused:?}").contains("9501"), "{refused:?}");
    a.must("COMMIT");
    assert_eq!(b.value("SELECT 1"), "1");
}
