//! Transactions: their own backend, their isolation, their end.

use crate::compare::same_on_both;
use crate::world::{HOLD, app, both_servers, direct, fresh_schema, login, start_pool, through};
use testkit::real::Flavour;
use testkit::reply::Outcome;
use wire::capabilities as cap;
use wire::command::Command;

/// A transaction that the server has rolled back keeps its backend no longer, though an error does
/// not say so.
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

/// A client that has the state of transactions told amid one is told of the next one, as by a
/// server.
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
