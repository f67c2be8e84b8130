//! Transactions: their own backend, their isolation, their end.

use crate::compare::{same, same_on, same_on_both};
use crate::world::{HOLD, app, both_servers, direct, fresh_schema, login, start_pool, through};
use testkit::oracle::Kill;
use testkit::real::{Flavour, Real};
use testkit::reply::Outcome;
use wire::capabilities as cap;
use wire::command::Command;

#[test]
fn what_is_committed_stays_and_what_is_rolled_back_does_not() {
    same("commits", 2, |story| {
        let (a, b) = (story.join(), story.join());
        story.sql(a, "CREATE TABLE t (v INT) ENGINE=InnoDB");
        for end in ["COMMIT", "ROLLBACK", "COMMIT AND CHAIN", "ROLLBACK RELEASE"] {
            story.all(a, &["START TRANSACTION", "INSERT INTO t VALUES (1)"]);
            story.sql(b, "SELECT COUNT(*) FROM t");
            story.sql(a, "SELECT COUNT(*) FROM t");
            story.sql(a, end);
            story.sql(b, "SELECT COUNT(*) FROM t");
        }
    });
}

#[test]
fn two_transactions_do_not_see_each_other() {
    same("isolation", 2, |story| {
        let (a, b) = (story.join(), story.join());
        story.all(
            a,
            &[
                "CREATE TABLE t (v INT) ENGINE=InnoDB",
                "INSERT INTO t VALUES (1)",
            ],
        );
        story.all(b, &["BEGIN", "SELECT * FROM t"]);
        story.all(
            a,
            &[
                "BEGIN",
                "INSERT INTO t VALUES (2)",
                "SELECT * FROM t",
                "COMMIT",
            ],
        );
        story.all(
            b,
            &[
                "SELECT * FROM t",
                "INSERT INTO t VALUES (3)",
                "SELECT * FROM t",
            ],
        );
        story.sql(a, "SELECT * FROM t");
        story.sql(b, "COMMIT");
        story.sql(a, "SELECT * FROM t");
        story.sql(b, "SELECT * FROM t");
    });
}

#[test]
fn without_autocommit_every_statement_opens_a_transaction() {
    same("no_autocommit", 2, |story| {
        let (a, b) = (story.join(), story.join());
        story.all(
            a,
            &[
                "CREATE TABLE t (v INT) ENGINE=InnoDB",
                "SET autocommit = 0",
                "INSERT INTO t VALUES (1)",
            ],
        );
        story.sql(b, "SELECT @@autocommit, COUNT(*) FROM t");
        story.all(a, &["SELECT @@autocommit, COUNT(*) FROM t", "ROLLBACK"]);
        story.all(a, &["INSERT INTO t VALUES (2)", "COMMIT"]);
        story.sql(b, "SELECT @@autocommit, COUNT(*) FROM t");
        story.all(a, &["INSERT INTO t VALUES (3)", "SET autocommit = 1"]);
        story.sql(b, "SELECT @@autocommit, COUNT(*) FROM t");
    });
}

#[test]
fn savepoints_are_kept_inside_a_transaction() {
    same("savepoints", 2, |story| {
        let (a, b) = (story.join(), story.join());
        story.all(
            a,
            &[
                "CREATE TABLE t (v INT) ENGINE=InnoDB",
                "BEGIN",
                "INSERT INTO t VALUES (1)",
                "SAVEPOINT s",
                "INSERT INTO t VALUES (2)",
            ],
        );
        story.all(b, &["ROLLBACK TO s", "SELECT COUNT(*) FROM t"]);
        story.all(a, &["ROLLBACK TO SAVEPOINT s", "COMMIT", "ROLLBACK TO s"]);
        story.sql(b, "SELECT * FROM t");
        story.all(
            a,
            &[
                "SET autocommit = 0",
                "SAVEPOINT outside",
                "ROLLBACK TO outside",
            ],
        );
    });
}

#[test]
fn an_error_inside_a_transaction_does_not_end_it() {
    same("errors_inside", 2, |story| {
        let (a, b) = (story.join(), story.join());
        story.all(
            a,
            &[
                "CREATE TABLE t (v INT PRIMARY KEY) ENGINE=InnoDB",
                "BEGIN",
                "INSERT INTO t VALUES (1)",
                "INSERT INTO t VALUES (1)",
                "SELECT * FROM missing",
                "THIS IS NO SQL",
            ],
        );
        story.sql(b, "SELECT COUNT(*) FROM t");
        story.all(
            a,
            &[
                "INSERT INTO t VALUES (2)",
                "SELECT COUNT(*) FROM t",
                "COMMIT",
            ],
        );
        story.sql(b, "SELECT COUNT(*) FROM t");
    });
}

#[test]
fn a_deadlock_is_reported_and_its_victim_rolled_back() {
    same("lock_waits", 2, |story| {
        let (a, b) = (story.join(), story.join());
        story.all(
            a,
            &[
                "CREATE TABLE t (id INT PRIMARY KEY, v INT) ENGINE=InnoDB",
                "INSERT INTO t VALUES (1, 0), (2, 0)",
                "SET innodb_lock_wait_timeout = 1",
            ],
        );
        story.sql(
            b,
            "SET innodb_lock_wait_timeout = 1, innodb_rollback_on_timeout = 0",
        );
        story.sql(b, "SET innodb_lock_wait_timeout = 1");
        story.all(a, &["BEGIN", "UPDATE t SET v = 1 WHERE id = 1"]);
        story.all(b, &["BEGIN", "UPDATE t SET v = 2 WHERE id = 2"]);
        story.sql(b, "UPDATE t SET v = 2 WHERE id = 1");
        story.all(b, &["SELECT v FROM t WHERE id = 2", "COMMIT"]);
        story.all(a, &["UPDATE t SET v = 1 WHERE id = 2", "COMMIT"]);
        story.sql(b, "SELECT * FROM t");
    });
}

/// What the server has rolled back keeps its backend no longer, though an error does not say so.
#[test]
fn the_victim_of_a_deadlock_keeps_no_backend() {
    let test = "the_victim_of_a_deadlock_keeps_no_backend";
    let ways = [
        ("BEGIN", 0),
        ("START TRANSACTION READ WRITE", 0),
        ("BEGIN", cap::DEPRECATE_EOF),
        ("START TRANSACTION READ WRITE", cap::DEPRECATE_EOF),
    ];
    for (real, (begin, less)) in both_servers(test).flat_map(|real| ways.map(|way| (real, way))) {
        // MySQL announces another one like it, in its first OK behind the error.
        if real.flavour() == Flavour::MySql && less > 0 && begin != "BEGIN" {
            continue;
        }
        fresh_schema(real, "victims");
        let way = through(real, 2);
        let account = app().schema("victims").without(less);
        let [mut a, mut b, mut c] = [(); 3].map(|()| login(&way, &account));
        a.must("CREATE TABLE t (id INT PRIMARY KEY, v INT) ENGINE=InnoDB");
        a.must("INSERT INTO t VALUES (1, 0), (2, 0), (3, 0), (4, 0)");
        a.must(begin);
        // The one that has changed less is the victim.
        for id in [1, 3, 4] {
            a.must(&format!("UPDATE t SET v = 1 WHERE id = {id}"));
        }
        b.must(begin);
        b.must("UPDATE t SET v = 2 WHERE id = 2");
        let crossed = [
            (&mut a, "UPDATE t SET v = 1 WHERE id = 2"),
            (&mut b, "UPDATE t SET v = 2 WHERE id = 1"),
        ];
        for (client, sql) in crossed {
            client.send(&[(Command::Query, sql.as_bytes())]).unwrap();
        }
        let failed = b.receive().unwrap();
        assert!(
            matches!(&failed[..], [Outcome::Failed(why)] if why.code == 1213),
            "{failed:?}"
        );
        a.receive().unwrap();
        assert_eq!(c.value("SELECT 7"), "7");
        a.must("COMMIT");
    }
}

#[test]
fn ddl_commits_and_read_only_refuses() {
    same("ddl", 2, |story| {
        let (a, b) = (story.join(), story.join());
        story.all(
            a,
            &[
                "CREATE TABLE t (v INT) ENGINE=InnoDB",
                "BEGIN",
                "INSERT INTO t VALUES (1)",
                "CREATE TABLE u (v INT)",
            ],
        );
        story.sql(b, "SELECT COUNT(*) FROM t");
        story.all(
            a,
            &[
                "ROLLBACK",
                "START TRANSACTION READ ONLY",
                "INSERT INTO t VALUES (2)",
            ],
        );
        story.sql(b, "INSERT INTO t VALUES (3)");
        story.all(a, &["COMMIT", "SELECT * FROM t ORDER BY v"]);
    });
}

/// MySQL refuses whatever else is asked until CREATE TABLE ... START TRANSACTION ends, also by the
/// pool (error 3977).
#[test]
fn a_table_may_begin_a_transaction() {
    same_on_both("atomic_ddl", 2, |story| {
        let account = app().schema(&story.schema).without(cap::SESSION_TRACK);
        let b = story.join_as(&account);
        for ends in ["COMMIT", "ROLLBACK", "BEGIN", "SELECT 1", "SET @a = 1"] {
            let a = story.join_as(&account);
            story.sql(a, "CREATE TABLE made (x INT) START TRANSACTION");
            story.sql(b, "SELECT 7");
            story.all(a, &[ends, "SHOW WARNINGS", "COMMIT"]);
            story.all(a, &["SELECT 1", "SELECT COUNT(*) FROM made"]);
            story.all(
                b,
                &["SELECT COUNT(*) FROM made", "DROP TABLE IF EXISTS made"],
            );
            story.command(a, Command::Quit, b"");
        }
        let a = story.join_as(&account);
        story.sql(a, "CREATE TABLE made START TRANSACTION SELECT 1 AS x");
        story.all(a, &["COMMIT", "SELECT * FROM made"]);
    });
}

#[test]
fn a_transaction_without_a_change_shares_nothing_either() {
    same("snapshots", 3, |story| {
        let clients: Vec<usize> = (0..3).map(|_| story.join_as(&app())).collect();
        story.sql(clients[0], "CREATE TABLE snapshots.t (v INT) ENGINE=InnoDB");
        for &who in &clients[1..] {
            story.sql(who, "START TRANSACTION WITH CONSISTENT SNAPSHOT");
        }
        story.sql(clients[0], "INSERT INTO snapshots.t VALUES (1)");
        for &who in &clients {
            story.sql(who, "SELECT COUNT(*) FROM snapshots.t");
        }
    });
}

#[test]
fn deadlocks_waits_and_kills_end_as_on_a_server() {
    same("deadlocks", 3, |story| {
        let clients = [story.join(), story.join(), story.join()];
        let [a, b, other] = clients;
        story.sql(
            a,
            "CREATE TABLE t (id INT PRIMARY KEY, v CHAR(1)) ENGINE=InnoDB",
        );
        story.sql(a, "INSERT INTO t VALUES (1, '-'), (2, '-'), (3, '-')");
        // Who has changed less gives way.
        story.all(a, &["BEGIN", "INSERT INTO t VALUES (4, 'a'), (5, 'a')"]);
        story.sql(a, "UPDATE t SET v = 'a' WHERE id = 1");
        story.all(b, &["BEGIN", "UPDATE t SET v = 'b' WHERE id = 2"]);
        story.begin(b, "UPDATE t SET v = 'b' WHERE id = 1");
        story.sql(a, "UPDATE t SET v = 'a' WHERE id = 2");
        story.end(b);
        story.sql(other, "SELECT * FROM t ORDER BY id");
        story.sql(b, "SELECT * FROM t ORDER BY id");
        // A wait in vain ends the statement and not the transaction.
        story.all(b, &["SET innodb_lock_wait_timeout = 1", "BEGIN"]);
        story.sql(b, "INSERT INTO t VALUES (6, 'b')");
        story.sql(b, "UPDATE t SET v = 'b' WHERE id = 1");
        story.sql(a, "COMMIT");
        story.all(b, &["SHOW WARNINGS", "COMMIT"]);
        // One that is interrupted, and one whose lock is another's from that moment on.
        story.sql(b, "BEGIN");
        story.sql(b, "UPDATE t SET v = 'b'");
        story.begin(b, "SELECT SLEEP(30) AS interrupted");
        story.kill(a, b, Kill::Query);
        story.end(b);
        story.begin(other, "UPDATE t SET v = 'c' WHERE id = 1");
        story.kill(a, b, Kill::Connection);
        story.end(other);
        story.sql(a, "SELECT * FROM t ORDER BY id");
    });
}

/// Who has the state of transactions told amid one is told of the next one, as by a server.
#[test]
fn trackers_tell_from_where_they_are_switched_on() {
    same_on_both("trackers_amid", 2, |story| {
        // MySQL sets the flag where it has found out that nothing is to be told.
        story.changes_alone = story.mysql();
        let account = app().schema(&story.schema);
        let old = account.clone().without(cap::DEPRECATE_EOF);
        let (a, b, other) = (story.join_as(&account), story.join_as(&old), story.join());
        story.sql(
            other,
            "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)",
        );
        for (who, told) in [a, b].into_iter().flat_map(|who| {
            ["STATE", "CHARACTERISTICS", "1", "2", "DEFAULT"].map(|told| (who, told))
        }) {
            let tell = format!("SET session_track_transaction_info = {told}");
            let off = "SET session_track_transaction_info = OFF";
            story.all(who, &[&tell, &tell, off, off, &tell, "DO 1", "BEGIN"]);
            story.all(who, &["INSERT INTO t (v) VALUES (1)", "COMMIT", off]);
            let characteristics = matches!(told, "CHARACTERISTICS" | "2");
            for begin in [
                "BEGIN",
                "START TRANSACTION",
                "START TRANSACTION READ ONLY",
                "START TRANSACTION READ WRITE",
                "START TRANSACTION WITH CONSISTENT SNAPSHOT",
            ] {
                // Those that it began with are told by the pool, and not by a server.
                if characteristics && begin.contains(' ') && begin != "START TRANSACTION" {
                    continue;
                }
                for end in ["COMMIT", "ROLLBACK", "COMMIT AND CHAIN", "BEGIN"] {
                    story.all(who, &[begin, &tell]);
                    story.sql(other, "SELECT 1");
                    story.all(who, &["SELECT v FROM t WHERE id = 1", "DO 1", end]);
                    story.all(who, &["DO 1", "COMMIT", "BEGIN"]);
                    story.all(who, &["SELECT v FROM t", "INSERT INTO t (v) VALUES (2)"]);
                    story.all(who, &["ROLLBACK", off, "BEGIN", "DO 1", "COMMIT"]);
                }
            }
            story.all(who, &["SET autocommit = 0", "SELECT v FROM t WHERE id = 1"]);
            story.all(who, &[&tell, "SELECT v FROM t WHERE id = 1", "COMMIT"]);
            story.all(who, &["SELECT v FROM t WHERE id = 1", "COMMIT"]);
            story.command(who, Command::ResetConnection, b"");
        }
    });
}

/// ANALYZE TABLE ends a transaction with rows; the next one is told as by the server.
#[test]
fn a_transaction_behind_one_that_rows_have_ended_is_told() {
    same_on_both("ended_by_rows", 2, |story| {
        story.changes_alone = story.mysql();
        let (a, other) = (story.join(), story.join());
        story.sql(other, "CREATE TABLE t (id INT PRIMARY KEY, v INT)");
        for told in ["STATE", "CHARACTERISTICS", "OFF"] {
            story.sql(a, &format!("SET session_track_transaction_info = {told}"));
            for begin in ["BEGIN", "START TRANSACTION", "START TRANSACTION READ WRITE"] {
                for inside in ["DO 1", "SELECT v FROM t", "UPDATE t SET v = 1 WHERE id = 9"] {
                    story.all(a, &[begin, inside, "ANALYZE TABLE t", begin]);
                    story.sql(other, "SELECT 1");
                    story.all(a, &[inside, "ROLLBACK", "SHOW WARNINGS"]);
                }
            }
        }
    });
}

/// A transaction whose state is told from amid it on gives its backend back at its end, whatever is
/// told of that.
#[test]
fn who_switches_trackers_on_amid_a_transaction_keeps_no_backend() {
    same_on_both("trackers_given_back", 1, |story| {
        story.changes_alone = story.mysql();
        let account = app().schema(&story.schema);
        let old = account.clone().without(cap::DEPRECATE_EOF);
        let other = story.join();
        story.sql(
            other,
            "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)",
        );
        for account in [&account, &old] {
            let who = story.join_as(account);
            for told in ["STATE", "CHARACTERISTICS"] {
                let tell = format!("SET session_track_transaction_info = {told}");
                for (begin, then, end) in [
                    ("BEGIN", "DO 1", "COMMIT"),
                    ("BEGIN", "INSERT INTO t (v) VALUES (1)", "COMMIT"),
                    ("START TRANSACTION", "SELECT v FROM t", "ROLLBACK"),
                    (
                        "SET autocommit = 0",
                        "SELECT v FROM t",
                        "SET autocommit = 1",
                    ),
                ] {
                    story.all(who, &[begin, &tell, then, end]);
                    story.sql(other, "SELECT 1");
                    story.sql(who, "SET session_track_transaction_info = OFF");
                    story.sql(other, "SELECT 2");
                }
            }
        }
    });
}

/// A text that ends its connection: what stands behind it does not run, and nothing more is said.
#[test]
fn who_releases_its_connection_amid_a_text_is_closed() {
    same_on_both("releases", 3, |story| {
        let account = app().schema(&story.schema).with(cap::MULTI_STATEMENTS);
        let other = story.join();
        story.sql(other, "CREATE TABLE t (id INT)");
        for text in [
            "COMMIT RELEASE",
            "ROLLBACK RELEASE; INSERT INTO t VALUES (1)",
            "SELECT 1; COMMIT RELEASE; INSERT INTO t VALUES (2)",
            "INSERT INTO t VALUES (3); COMMIT AND NO CHAIN RELEASE; SELECT 2",
            "BEGIN; INSERT INTO t VALUES (5); ROLLBACK RELEASE; SELECT 3",
            "SET completion_type = 2; COMMIT",
            "SET completion_type = 2; COMMIT; INSERT INTO t VALUES (6)",
            "SET @@completion_type = 'RELEASE'; BEGIN; INSERT INTO t VALUES (7); COMMIT; SELECT 4",
            "SET `completion_type` = 2; SELECT 5; ROLLBACK",
            "SET completion_type = 1; COMMIT; INSERT INTO t VALUES (8); \
             SET completion_type = 0; COMMIT",
        ] {
            let who = story.join_as(&account);
            story.sql(who, text);
            story.unheard(who, Command::Statistics);
            story.sql(other, "SELECT id FROM t ORDER BY id");
        }
    });
}

/// With autocommit off a savepoint may stand before the first table, and so before what servers
/// call a transaction. MariaDB tells nothing of it.
fn savepoints(real: &Real, test: &str) {
    same_on(real, test, 2, |story| {
        let account = app().schema(&story.schema).with(cap::MULTI_STATEMENTS);
        let [a, b, c] = [0; 3].map(|_| story.join_as(&account));
        story.sql(c, "CREATE TABLE t (id INT)");
        story.sql(c, "CREATE PROCEDURE stands() SAVEPOINT s");
        for who in [a, b] {
            story.sql(who, "SET autocommit = 0");
        }
        let mut sets = vec!["SAVEPOINT s", "DO 1; SAVEPOINT s", "CALL stands()"];
        if real.flavour() == Flavour::MariaDb {
            sets.push("EXECUTE IMMEDIATE 'SAVEPOINT s'");
            sets.push("PREPARE stands FROM 'SAVEPOINT s'; EXECUTE stands");
        }
        let ends = [
            "COMMIT",
            "ROLLBACK",
            "SET autocommit = 1; SET autocommit = 0",
            "CREATE TABLE IF NOT EXISTS u (id INT)",
            "INSERT INTO t VALUES (1); ROLLBACK",
        ];
        for (set, end) in sets.iter().flat_map(|set| ends.map(|end| (set, end))) {
            story.sql(a, set);
            for who in [b, c, b, c, a, c] {
                story.sql(who, "SELECT 1");
            }
            for who in [b, a, c, a] {
                story.sql(who, "ROLLBACK TO s");
            }
            story.sql(a, "RELEASE SAVEPOINT no_such");
            story.sql(a, end);
            for who in [b, c, a] {
                story.sql(who, "ROLLBACK TO s");
            }
            story.sql(a, "COMMIT");
            // Nobody is bound any more: three clients that are would not fit on two backends.
            for who in [a, b, c] {
                story.sql(who, "SELECT 2");
            }
        }
    });
}

#[test]
fn a_savepoint_before_the_first_table_stays_its_clients() {
    let test = "savepoint_first";
    for real in both_servers(test) {
        savepoints(real, test);
    }
}

/// A transaction that ends while its client is told of its state is not told of to the next client.
#[test]
fn a_transaction_that_ends_under_another_setting_is_over_for_the_next_client() {
    same_on_both("bound_of_others", 1, |story| {
        let account = app().schema(&story.schema.clone());
        let (a, b) = (story.join_as(&account), story.join_as(&account));
        story.sql(a, "BEGIN");
        story.sql(
            a,
            "SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE 1 = 0",
        );
        story.sql(a, "SET session_track_transaction_info = STATE");
        story.sql(a, "COMMIT");
        story.sql(b, "CREATE TABLE own (x INT)");
        story.sql(b, "LOCK TABLES own WRITE");
        story.sql(b, "UNLOCK TABLES");
        story.sql(a, "SET session_track_transaction_info = OFF");
        story.sql(a, "DO 1");
    });
}

/// Clients that leave in a transaction, one behind the other, in front of one backend: what they
/// have not committed is gone, and the backend serves the next client.
#[test]
fn a_client_that_leaves_in_a_transaction_leaves_its_backend_to_others() {
    let test = "leaves_in_transaction";
    for real in both_servers(test) {
        if direct() {
            return;
        }
        fresh_schema(real, test);
        let pool = start_pool(
            real,
            &format!("{test}.toml"),
            "backends_max = 1\ngroups = 1",
        );
        let new = || login(&pool.address, &app().schema(test));
        let mut stays = new();
        stays.must("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)");
        stays.must("INSERT INTO t VALUES (1, 1)");
        stays.must("SET @mine = 7");
        let write = "UPDATE t SET v = v + 100 WHERE id = 1";
        let left: [&[&str]; 7] = [
            &["SET autocommit = 0", "SELECT v FROM t"],
            &["SET autocommit = 0", write],
            &["BEGIN", write, "SAVEPOINT a", write, "ROLLBACK TO a"],
            &["BEGIN", "SELECT v FROM t FOR UPDATE"],
            &["SET completion_type = 1", HOLD, write],
            &["SET completion_type = 2", HOLD, write],
            &["START TRANSACTION READ ONLY", "SELECT v FROM t"],
        ];
        for (number, texts) in left.iter().enumerate() {
            let mut leaves = new();
            for text in *texts {
                let _ = leaves.query(text).unwrap();
            }
            drop(leaves);
            pool.wait_for_census(&format!("rolled_back: {},", number + 1))
                .unwrap();
            stays.must("UPDATE t SET v = v + 1 WHERE id = 1");
            let sees = "SELECT v, @mine, @@autocommit, LAST_INSERT_ID(), @@completion_type FROM t";
            let seen = stays.rows(sees).texts();
            let v = (number + 2).to_string();
            assert_eq!(seen, [[&v[..], "7", "1", "0", "NO_CHAIN"]], "{texts:?}");
        }
        pool.wait_for_census("dialled: 1,").unwrap();
        // What more is held ends with the connection.
        for texts in [
            &[
                "CREATE TEMPORARY TABLE t (w INT)",
                HOLD,
                "INSERT INTO t VALUES (1)",
            ],
            &["SELECT GET_LOCK('left', 0)", HOLD, write],
            &["XA START 'left'", write, "DO 1"],
        ] {
            let mut leaves = new();
            for text in texts {
                let _ = leaves.query(text).unwrap();
            }
            drop(leaves);
            stays.must("UPDATE t SET v = v + 1 WHERE id = 1");
        }
        let count = left.len();
        pool.wait_for_census(&format!("rolled_back: {count},"))
            .unwrap();
        assert_eq!(stays.value("SELECT v FROM t"), (count + 4).to_string());
        assert_eq!(stays.value("SELECT IS_FREE_LOCK('left')"), "1");
    }
}
