//! Texts, and what they take and give back.

use super::*;
use crate::classify::classify;

/// Takings as `cause name`, `cause ?` where nothing ends it; endings as `-cause name`.
fn seen(sql: &str) -> Vec<String> {
    let mode = LexMode::default();
    let found = classify(sql.as_bytes(), mode);
    let held = acquired(sql.as_bytes(), mode, &found, Some(b"db"));
    let text = |name: &Name| String::from_utf8_lossy(name).replace('\0', ".");
    let mut out: Vec<String> = Vec::new();
    for (cause, name) in &held.taken {
        out.push(format!("{} {}", cause.name(), text(name)));
    }
    out.extend(held.for_good.iter().map(|c| format!("{} ?", c.name())));
    for ended in &held.ended {
        out.push(match ended {
            Ended::One(cause, name) => format!("-{} {}", cause.name(), text(name)),
            Ended::All(cause) => format!("-{} *", cause.name()),
        });
    }
    if held.asks_for_locks {
        out.push("asks".into());
    }
    let renamed = held.renamed.iter();
    out.extend(renamed.map(|(from, to)| format!("{} > {}", text(from), text(to))));
    out.extend(held.blurred.iter().map(|c| format!("~{}", c.name())));
    out
}

#[test]
fn variables_in_use_are_held_by_their_names() {
    let held = |sql: &str| seen(sql).join(", ");
    assert_eq!(held("SET insert_id = 5"), "variable_in_use insert_id");
    assert_eq!(
        held("SET @@SESSION.`Insert_ID` = 5, sql_auto_is_null = 1"),
        "variable_in_use insert_id, variable_in_use sql_auto_is_null"
    );
    for sql in [
        "SET insert_id = 0",
        "SET insert_id = DEFAULT",
        "SET insert_id = 00, time_zone = '+01:00'",
        "SET insert_id = -5",
        "SET insert_id = 5 - 5",
        "SET insert_id = '5'",
        "SET insert_id = @x",
        "SET insert_id = 5; SET SESSION insert_id := 0",
    ] {
        assert!(held(sql).ends_with("variable_in_use ?"), "{sql}");
    }
    assert_eq!(
        held("SET insert_id := 5; SELECT 1"),
        "variable_in_use insert_id"
    );
    assert_eq!(held("SET rand_seed1 = @x"), "special_variable ?");
    assert_eq!(held("SET rand_seed1 = 5; SELECT 1"), "special_variable ?");
    assert_eq!(
        held("SET rand_seed1 = 5, rand_seed2 = 7"),
        "special_variable ?"
    );
}

#[test]
fn what_is_taken_and_given_back_is_read_whole() {
    let cases: [(&str, &[&str]); 42] = [
        ("SELECT 1", &[]),
        ("LOCK TABLES t READ, u WRITE", &["lock_tables "]),
        ("UNLOCK TABLES;", &["-lock_tables *", "-global_read_lock *"]),
        ("UNLOCK TABLES x", &[]),
        ("START TRANSACTION READ ONLY", &["-lock_tables *"]),
        ("BEGIN", &["-lock_tables *"]),
        ("FLUSH TABLES WITH READ LOCK", &["global_read_lock "]),
        ("FLUSH TABLES t FOR EXPORT", &["global_read_lock "]),
        ("LOCK INSTANCE FOR BACKUP", &["backup_lock instance"]),
        ("UNLOCK INSTANCE", &["-backup_lock instance"]),
        ("BACKUP STAGE START", &["backup_lock stage"]),
        ("BACKUP STAGE END", &["-backup_lock stage"]),
        ("BACKUP LOCK a.b", &["backup_lock lock"]),
        ("BACKUP UNLOCK", &["-backup_lock lock"]),
        ("SELECT GET_LOCK('a b', 1)", &["user_lock a b", "asks"]),
        ("SELECT GET_LOCK('a''b', 1)", &["user_lock ?", "asks"]),
        ("SELECT GET_LOCK('a' 'b', 1)", &["user_lock ?", "asks"]),
        ("SELECT GET_LOCK(@a, 1)", &["user_lock ?", "asks"]),
        ("SELECT GET_LOCK(CONCAT('a'), 1)", &["user_lock ?", "asks"]),
        (
            "DO GET_LOCK('a', 1), GET_LOCK(\"b\", 1)",
            &["user_lock a", "user_lock b", "asks"],
        ),
        ("SELECT `get_lock`('a', 1)", &["user_lock a", "asks"]),
        ("SELECT RELEASE_LOCK('a')", &["asks"]),
        ("SELECT `release_all_locks`()", &["asks"]),
        ("SELECT RELEASE_ALL_LOCKS()", &["-user_lock *", "asks"]),
        ("SELECT RELEASE_ALL_LOCKS(), 1", &["asks"]),
        (
            "CREATE TEMPORARY TABLE t (a INT)",
            &["temporary_table db.t"],
        ),
        (
            "CREATE OR REPLACE TEMPORARY TABLE `x`.t LIKE u",
            &["temporary_table x.t"],
        ),
        (
            "CREATE TEMPORARY TABLE IF NOT EXISTS `t` SELECT 1",
            &["temporary_table db.t"],
        ),
        (
            "CREATE TEMPORARY TABLE `a``b` (a INT)",
            &["temporary_table ?"],
        ),
        ("CREATE TEMPORARY SEQUENCE s", &["temporary_table ?"]),
        (
            "DROP TABLE IF EXISTS t, x.u CASCADE",
            &["-temporary_table db.t", "-temporary_table x.u"],
        ),
        ("DROP TEMPORARY TABLE t NOWAIT", &[]),
        ("SELECT GET_LOCK(NULL, 1), GET_LOCK('', 1)", &["asks"]),
        ("HANDLER x.t OPEN", &["handler t"]),
        ("HANDLER t OPEN AS h", &["handler h"]),
        ("HANDLER h READ FIRST WHERE a = 1", &[]),
        ("HANDLER h CLOSE", &["-handler h"]),
        ("XA START 'a', 'b', 1", &["xa 'a','b',1"]),
        ("XA START x'0a', X'0b', 0x1", &["xa x'0a',x'0b',0x1"]),
        ("XA START x '0a'", &["xa ?"]),
        ("XA COMMIT 'a' , 'b',1 ONE PHASE", &["-xa 'a','b',1"]),
        ("XA RECOVER", &[]),
    ];
    for (sql, expected) in cases {
        assert_eq!(seen(sql), expected, "{sql}");
    }
}

#[test]
fn what_is_not_understood_is_kept_for_good() {
    let cases: [(&str, &[&str]); 10] = [
        ("LOCK TABLES t READ; SELECT 1", &["lock_tables ?"]),
        ("SELECT 1; UNLOCK TABLES", &[]),
        ("/*! LOCK TABLES t READ */", &["lock_tables "]),
        (
            "/*!80000 LOCK TABLES t READ */",
            &["lock_tables ?", "~temporary_table"],
        ),
        (
            "SELECT GET_LOCK('a', 1); LOCK TABLES t READ, 'open",
            &["user_lock a", "asks"],
        ),
        (
            "SELECT GET_LOCK('a', 1); SELECT 2",
            &["user_lock a", "asks"],
        ),
        (
            "CREATE TEMPORARY TABLE t SELECT GET_LOCK('a', 1) x, f(1) y",
            &[
                "user_lock a",
                "temporary_table db.t",
                "stored_code ?",
                "asks",
            ],
        ),
        ("XA START CONCAT('a')", &["xa ?"]),
        ("BACKUP SOMETHING", &["backup_lock ?"]),
        (
            "SELECT service_get_write_locks('a', 'b', 1)",
            &["user_lock ?", "asks"],
        ),
    ];
    for (sql, expected) in cases {
        assert_eq!(seen(sql), expected, "{sql}");
    }
    let mode = LexMode::default();
    let sql = b"CREATE TEMPORARY TABLE t (a INT)";
    let held = acquired(sql, mode, &classify(sql, mode), None);
    assert!(
        held.for_good.contains(PinCause::TemporaryTable),
        "no schema"
    );
}

#[test]
fn tables_that_are_renamed_are_named() {
    let cases: [(&str, &[&str]); 9] = [
        ("ALTER TABLE t RENAME TO u", &["db.t > db.u"]),
        (
            "ALTER TABLE t ADD c INT, RENAME COLUMN a TO b, RENAME = `u`, DROP KEY k;",
            &["db.t > db.u"],
        ),
        ("ALTER TABLE t RENAME INDEX a TO b", &[]),
        ("ALTER TABLE t RENAME u, RENAME w", &["~temporary_table"]),
        ("ALTER TABLE t RENAME other.t", &["~temporary_table"]),
        ("ALTER TABLE `a b` RENAME u", &["~temporary_table"]),
        (
            "RENAME TABLE t TO u, o.u TO w",
            &["db.t > db.u", "o.u > db.w"],
        ),
        ("RENAME TABLE t WAIT 5 TO u", &["~temporary_table"]),
        ("RENAME USER a TO b", &[]),
    ];
    for (sql, expected) in cases {
        assert_eq!(seen(sql), expected, "{sql}");
    }
}

/// The longest name that a lock may have differs, and what RENAME TABLE takes for its table.
#[test]
fn the_server_decides_what_is_a_lock_and_what_is_renamed() {
    let judged = |sql: &str, server: Server| {
        let mode = LexMode {
            server,
            ..LexMode::default()
        };
        let found = classify(sql.as_bytes(), mode);
        acquired(sql.as_bytes(), mode, &found, Some(b"db"))
    };
    let (mariadb, mysql) = (Server::MariaDb(101_119), Server::MySql(90_704));
    for (length, expected) in [(64, [1, 1]), (65, [1, 0]), (192, [1, 0]), (193, [0, 0])] {
        let sql = format!("DO GET_LOCK('{}', 0)", "x".repeat(length));
        let taken = [mariadb, mysql].map(|server| judged(&sql, server).taken.len());
        assert_eq!(taken, expected, "{length}");
    }
    for (server, expected) in [(mariadb, 1), (mysql, 0)] {
        let held = judged("RENAME TABLE t TO u", server);
        assert_eq!(held.renamed.len(), expected);
        assert!(held.blurred.is_empty());
    }
}

#[test]
fn a_schema_that_is_passed_over_is_not_a_tables() {
    let mode = LexMode {
        no_schema: true,
        ..LexMode::default()
    };
    let ended = |sql: &str, schema: Option<&[u8]>| {
        let found = classify(sql.as_bytes(), mode);
        acquired(sql.as_bytes(), mode, &found, schema).ended
    };
    let there = Ended::One(PinCause::TemporaryTable, (*b"db\0t").into());
    assert_eq!(ended("DROP TABLE other.t", Some(b"db")), [there]);
    assert_eq!(ended("DROP TABLE other.t", None), []);
}
