//! SET of variables to the values that they have: the pool answers, and clients see what a server
//! says.

use crate::compare::same_on_both;
use crate::world::{app, both_servers, direct, login, server, start_pool};
use testkit::talk::Account;
use wire::capabilities as cap;
use wire::command::Command;

/// Clients of each kind that hears of variables in its own way.
fn accounts(schema: &str) -> [Account; 4] {
    let account = || app().schema(schema);
    [
        account(),
        account().without(cap::SESSION_TRACK),
        account().without(cap::SESSION_TRACK | cap::DEPRECATE_EOF),
        account().with(cap::MULTI_STATEMENTS),
    ]
}

/// A variable, two literals that it may have, and what shows it.
const SETS: [(&str, [&str; 2]); 14] = [
    ("autocommit", ["0", "ON"]),
    ("SESSION foreign_key_checks", ["OFF", "1"]),
    ("@@unique_checks", ["0", "TRUE"]),
    ("@@session.sql_mode", ["''", "'ANSI_QUOTES'"]),
    ("sql_mode", ["'IGNORE_SPACE'", "'NO_ENGINE_SUBSTITUTION'"]),
    // MySQL warns of the second.
    ("sql_mode", ["'ONLY_FULL_GROUP_BY'", "'NO_ZERO_DATE'"]),
    ("time_zone", ["'+01:00'", "'SYSTEM'"]),
    ("LOCAL wait_timeout", ["100", "28800"]),
    ("net_read_timeout", ["31", "30"]),
    ("net_write_timeout", ["61", "60"]),
    ("lock_wait_timeout", ["51", "50"]),
    ("innodb_lock_wait_timeout", ["49", "50"]),
    ("group_concat_max_len", ["1025", "1024"]),
    ("sql_auto_is_null", ["1", "0"]),
];

#[test]
fn a_set_of_the_value_that_is_there_is_told_as_the_server_tells_it() {
    same_on_both("sets_of_the_same", 1, |story| {
        let other = story.join();
        let all = accounts(&story.schema).map(|account| story.join_as(&account));
        for who in all {
            for (number, (name, values)) in SETS.into_iter().enumerate() {
                for value in values {
                    let set = format!("SET {name} = {value}");
                    let shown = name.rsplit([' ', '.', '@']).next().unwrap();
                    let show = format!("SELECT @@{shown}");
                    story.all(who, &[&set, &set, &show, "SELECT CAST('x' AS SIGNED)"]);
                    // Its backend is still there, or has served another.
                    if number % 2 == 0 {
                        story.sql(other, "SELECT 1");
                    }
                    story.all(who, &[&set, "SELECT ROW_COUNT(), FOUND_ROWS()"]);
                    story.all(who, &["INSERT INTO no_such_table VALUES (1)", &set]);
                    story.command(who, Command::Ping, b"");
                    story.all(who, &["SHOW WARNINGS", &set, &show]);
                    story.all(who, &["SELECT 1 UNION SELECT 2", &set]);
                    story.all(who, &["SELECT FOUND_ROWS(), LAST_INSERT_ID()"]);
                }
            }
        }
    });
}

#[test]
fn isolation_and_names_that_are_there_are_told_as_the_server_tells_them() {
    same_on_both("levels_of_the_same", 1, |story| {
        let all = accounts(&story.schema).map(|account| story.join_as(&account));
        let mysql = story.mysql();
        let (level_of, other_name) = match mysql {
            true => ("transaction_isolation", "tx_isolation"),
            false => ("tx_isolation", "transaction_isolation"),
        };
        // The other name may be none of this server's.
        for name in ["transaction_isolation", "tx_isolation"] {
            for scope in ["SESSION ", "@@session.", "@@local."] {
                let set = format!("SET {scope}{name} = 'REPEATABLE-READ'");
                story.all(all[0], &[&set, "SHOW WARNINGS"]);
            }
        }
        let shown = format!(
            "SELECT @@{level_of}, @@character_set_client, @@character_set_results, \
             @@collation_connection, 'x' AS described"
        );
        for who in all {
            for level in ["READ COMMITTED", "REPEATABLE READ"] {
                let set = format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}");
                let value = level.replace(' ', "-");
                let named = format!("SET @@session.{level_of} = '{value}'");
                story.all(who, &[&set, &set, &named, &shown]);
                // No server here has the other name.
                let other = format!("SET @@session.{other_name} = '{value}'");
                story.all(who, &[&other, "SHOW WARNINGS", &shown]);
                // That of the next transaction alone is no matter of the session's value.
                let next = format!("SET TRANSACTION ISOLATION LEVEL {level}");
                story.all(who, &["SET TRANSACTION ISOLATION LEVEL SERIALIZABLE"]);
                story.all(who, &[&set, &shown, "SELECT 1", &next, &named, "SELECT 1"]);
                story.all(who, &["BEGIN", &set, &named, "SELECT 1", "COMMIT", &shown]);
            }
            for (charset, collation) in [
                ("utf8mb4", "utf8mb4_bin"),
                ("utf8mb4", "utf8mb4_general_ci"),
                ("latin1", "latin1_swedish_ci"),
            ] {
                let set = format!("SET NAMES {charset} COLLATE {collation}");
                story.all(who, &[&set, &set, &shown, &set, "SELECT 'x'"]);
                // One of the four differs, or what describes results.
                story.all(who, &["SET character_set_results = NULL", &set, &shown]);
                let results = format!("SET character_set_results = {charset}");
                story.all(who, &[&results, &set, &shown]);
                let plain = format!("SET NAMES {charset}");
                story.all(who, &[&plain, &set, &shown, &plain, &shown]);
                story.all(who, &["SET NAMES utf8mb4 COLLATE latin1_bin", &shown]);
            }
        }
    });
}

#[test]
fn a_set_goes_to_the_server_where_it_may_do_more() {
    same_on_both("sets_of_more", 1, |story| {
        let all = accounts(&story.schema).map(|account| story.join_as(&account));
        story.sql(all[0], "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT)");
        let set = "SET autocommit = 1";
        let count = "SELECT COUNT(*) FROM t";
        for who in all {
            // It ends a transaction, or is one of its statements.
            story.all(who, &["SET autocommit = 0", "INSERT INTO t VALUES ()", set]);
            story.all(who, &["ROLLBACK", count, "BEGIN", set, "ROLLBACK", count]);
            story.all(who, &["BEGIN", "INSERT INTO t VALUES ()", set, "ROLLBACK"]);
            story.all(who, &[count, "SET TRANSACTION READ ONLY", set]);
            story.all(who, &["INSERT INTO t VALUES ()", "COMMIT", count]);
            story.all(who, &["LOCK TABLES t WRITE", set, "UNLOCK TABLES"]);
            story.all(who, &["CREATE TEMPORARY TABLE own (id INT)", set]);
            story.all(who, &["SELECT * FROM own", "DROP TEMPORARY TABLE own", set]);
            // Its client is told of it.
            for names in ["autocommit,time_zone", "time_zone", ""] {
                let track = format!("SET session_track_system_variables = '{names}'");
                story.all(who, &[&track, set, "SET time_zone = 'SYSTEM'", set]);
            }
            for on in [1, 0] {
                let track = format!("SET session_track_state_change = {on}");
                story.all(who, &[&track, set, set]);
            }
            for track in ["STATE", "OFF"] {
                let track = format!("SET session_track_transaction_info = '{track}'");
                story.all(who, &[&track, set, count, set]);
            }
            // It is not one that is understood.
            story.all(
                who,
                &["SET autocommit = 1, no_such_variable = 1", "SHOW WARNINGS"],
            );
            story.all(who, &["SET autocommit = 2", "SET autocommit = 'ON'"]);
            story.all(who, &["SET GLOBAL autocommit = 1", "SHOW WARNINGS"]);
        }
    });
}

#[test]
fn a_set_of_the_value_that_is_there_takes_no_backend() {
    for real in both_servers("sets_spared") {
        if direct() {
            return;
        }
        let settings = "backends_max = 1\ngroups = 1\nwait_ms_max = 2000";
        let pool = start_pool(real, "sets_spared.toml", settings);
        let account = app().without(cap::SESSION_TRACK);
        let (mut a, mut b) = (
            login(&pool.address, &account),
            login(&pool.address, &account),
        );
        b.must("SET NAMES utf8mb4 COLLATE utf8mb4_bin, sql_mode = ''");
        // The one backend is taken.
        a.must("BEGIN");
        assert_eq!(a.value("SELECT 1"), "1");
        for set in [
            "SET autocommit = 1",
            "SET NAMES utf8mb4 COLLATE utf8mb4_bin",
            "SET sql_mode = '', foreign_key_checks = 1",
            "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        ] {
            b.must(set);
        }
        let refused = b.query("SET autocommit = 0");
        assert!(format!("{refused:?}").contains("9501"), "{refused:?}");
        a.must("COMMIT");
        pool.wait_for_census("sets_spared: 4,").unwrap();
    }
}

#[test]
fn it_can_be_switched_off() {
    let test = "sets_not_spared";
    let Some(real) = server(test).filter(|_| !direct()) else {
        return;
    };
    let settings = "backends_max = 1\ngroups = 1\nwait_ms_max = 2000\ndefer_begin = false";
    let pool = start_pool(real, "sets_not_spared.toml", settings);
    let account = app().without(cap::SESSION_TRACK);
    let (mut a, mut b) = (
        login(&pool.address, &account),
        login(&pool.address, &account),
    );
    a.must("BEGIN");
    let refused = b.query("SET autocommit = 1");
    assert!(format!("{refused:?}").contains("9501"), "{refused:?}");
    a.must("COMMIT");
    b.must("SET autocommit = 1");
}
