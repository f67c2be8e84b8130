//! Pins of one client, statement by statement, without a server.

use super::failed_acquisition::failed_acquisition_of;
use super::*;
use sql::acquired::acquired;
use sql::classify::{PinCauses, classify};
use sql::lex::LexMode;

/// A client's statement, sent and answered.
fn runs(client: &mut Pins, sql: &str, error: Option<u16>) {
    fails(client, sql, error.map(|code| (code, String::new())));
}

fn fails(client: &mut Pins, sql: &str, error: Option<(u16, String)>) {
    fails_in(client, b"Db", (sql, error));
}

/// Fails a statement of a client with this default schema.
fn fails_in(client: &mut Pins, schema: &[u8], (sql, error): (&str, Option<(u16, String)>)) {
    let mode = LexMode::default();
    let found = classify(sql.as_bytes(), mode);
    let acquired = acquired(sql.as_bytes(), mode, &found, Some(b"db"));
    client.forget_plan();
    let plan = client.plan(sql.as_bytes());
    plan.acquired = acquired;
    plan.failed_acquisition = failed_acquisition_of((sql.as_bytes(), mode), &found, Some(schema));
    client.sent(2);
    let summary = ReplySummary {
        error,
        ..ReplySummary::default()
    };
    client.answered(&summary);
}

fn names(client: &Pins) -> Vec<&'static str> {
    let list = client.list().iter();
    list.map(|pin| pin.reason.name()).collect()
}

#[test]
fn the_last_reason_that_ends_unpins() {
    let mut client = Pins::default();
    runs(&mut client, "LOCK TABLES t WRITE", None);
    runs(&mut client, "CREATE TEMPORARY TABLE a (x INT)", None);
    runs(&mut client, "CREATE TEMPORARY TABLE b (x INT)", None);
    assert_eq!(names(&client), ["lock_tables", "temporary_table"]);
    runs(&mut client, "UNLOCK TABLES", Some(1205));
    assert_eq!(
        names(&client),
        ["lock_tables", "temporary_table"],
        "it failed"
    );
    runs(&mut client, "UNLOCK TABLES", None);
    runs(&mut client, "DROP TABLE b", None);
    assert_eq!(names(&client), ["temporary_table"]);
    runs(&mut client, "DROP TABLE a, c", Some(1051));
    assert_eq!(
        names(&client),
        ["temporary_table"],
        "it may have dropped nothing"
    );
    runs(&mut client, "DROP TEMPORARY TABLE IF EXISTS db.a", None);
    assert!(client.is_empty());
}

#[test]
fn what_was_renamed_is_held_by_its_new_name() {
    let mut client = Pins::default();
    runs(&mut client, "CREATE TEMPORARY TABLE a (x INT)", None);
    runs(&mut client, "ALTER TABLE c RENAME TO d", None);
    runs(&mut client, "ALTER TABLE a RENAME TO b", Some(1050));
    runs(&mut client, "ALTER TABLE a RENAME TO b", None);
    runs(&mut client, "DROP TABLE a", None);
    assert_eq!(names(&client), ["temporary_table"]);
    runs(&mut client, "RENAME TABLE b TO c, c TO d", None);
    runs(&mut client, "DROP TABLE d", None);
    assert!(client.is_empty());
    // Half-way, or in another case: which name it has is open.
    for (sql, error) in [
        ("RENAME TABLE a TO b, b TO c", Some(1146)),
        ("ALTER TABLE A RENAME TO b", None),
        ("ALTER TABLE a RENAME TO b, RENAME TO c", None),
    ] {
        let mut client = Pins::default();
        runs(&mut client, "CREATE TEMPORARY TABLE a (x INT)", None);
        runs(&mut client, sql, error);
        runs(&mut client, "DROP TABLE a, b, c", None);
        assert_eq!(names(&client), ["temporary_table"], "{sql}");
    }
}

#[test]
fn a_text_that_no_server_reads_takes_nothing() {
    let mut client = Pins::default();
    runs(&mut client, "HANDLER t OPEN", None);
    runs(&mut client, "HANDLER u OPEN READ", Some(1064));
    runs(&mut client, "THIS IS NO SQL", Some(1064));
    runs(&mut client, "SELECT 'without an end", Some(1064));
    assert_eq!(names(&client), ["handler"]);
    runs(&mut client, "HANDLER t CLOSE", None);
    assert!(client.is_empty());
}

#[test]
fn without_a_default_schema_a_routine_that_names_none_has_not_run() {
    for (schema, sql, code, pins) in [
        ("", "SELECT COUNT (*) FROM db.t", 1064, &[][..]),
        ("", "SELECT f(), g(1)", 1046, &[]),
        ("", "CALL p()", 1046, &[]),
        ("", "SELECT f(), db.g(1)", 1046, &["stored_code"]),
        ("", "SELECT db.f()", 1064, &[]),
        ("", "CALL db.p()", 1064, &["stored_code"]),
        ("", "SELECT f(), g(1)", 1305, &["stored_code"]),
        ("", "SELECT f(), g(1); SELECT 2", 1046, &["stored_code"]),
        ("db", "SELECT f(), g(1)", 1046, &["stored_code"]),
    ] {
        let mut client = Pins::default();
        let error = Some((code, String::new()));
        fails_in(&mut client, schema.as_bytes(), (sql, error));
        assert_eq!(names(&client), pins, "{sql} in '{schema}': {code}");
    }
}

#[test]
fn what_ran_before_the_part_that_cannot_be_read_counts() {
    let mut client = Pins::default();
    runs(&mut client, "EXPLAINS 'CALL makes_a_text()'", Some(1064));
    assert_eq!(names(&client), ["unknown"]);
    // The first statement of a text was answered.
    client.plan(b"x").acquired.for_good = PinCauses::of(PinCause::Role);
    client.plan(b"x").failed_acquisition = FailedAcquisition::Unparsed;
    client.sent(2);
    client.answered(&ReplySummary {
        status: Some(2),
        error: Some((1064, String::new())),
        ..ReplySummary::default()
    });
    assert_eq!(names(&client), ["unknown", "role"]);
}

#[test]
fn a_plan_counts_from_its_sending() {
    let mut client = Pins::default();
    client.plan(b"x").acquired.for_good = PinCauses::of(PinCause::Role);
    assert!(!client.is_pinned());
    assert!(client.is_pinned_for(PinReason::Text(PinCause::Role)));
    client.forget_plan();
    assert!(client.is_empty());
}

#[test]
fn named_locks_are_asked_for_when_nothing_else_pins() {
    let mut client = Pins::default();
    runs(&mut client, "SELECT GET_LOCK('a', 1)", None);
    assert!(client.may_have_ended(false), "it may not have got it");
    runs(&mut client, "LOCK TABLES t READ", None);
    runs(&mut client, "SELECT RELEASE_LOCK('a')", None);
    assert!(!client.may_have_ended(false));
    runs(&mut client, "UNLOCK TABLES", None);
    assert!(client.may_have_ended(false));
    runs(&mut client, "SELECT GET_LOCK(CONCAT('a'), 1)", None);
    assert!(!client.may_have_ended(false), "which one is not known");
    runs(&mut client, "SELECT RELEASE_ALL_LOCKS()", None);
    assert!(client.is_empty());
}

#[test]
fn a_routine_that_does_not_exist_has_done_nothing() {
    for (sql, error, words, pinned) in [
        ("SELECT f (1)", 1305, "FUNCTION db.f does not exist", false),
        ("SELECT F(1)", 1305, "FUNCTION Db.F does not exist", false),
        (
            "SELECT COUNT (1)",
            1630,
            "FUNCTION db.COUNT does not exist. Check",
            false,
        ),
        ("CALL x.p(1)", 1305, "PROCEDURE x.p does not exist", false),
        (
            "CALL p(ABS(1))",
            1305,
            "PROCEDURE db.p does not exist",
            false,
        ),
        (
            "SELECT f()",
            1064,
            "You have an error in your SQL syntax",
            false,
        ),
        // A procedure may prepare what cannot be read.
        (
            "CALL p()",
            1064,
            "You have an error in your SQL syntax",
            true,
        ),
        // It, or one that was called with it, may have done something before.
        ("CALL p()", 1305, "PROCEDURE db.q does not exist", true),
        ("CALL x.p()", 1305, "PROCEDURE db.p does not exist", true),
        ("CALL p()", 1644, "db.p does not exist", true),
        ("CALL p(f())", 1305, "PROCEDURE db.p does not exist", true),
        (
            "CALL p(); CALL p()",
            1305,
            "PROCEDURE db.p does not exist",
            true,
        ),
    ] {
        let mut client = Pins::default();
        fails(&mut client, sql, Some((error, words.into())));
        assert_eq!(client.is_pinned(), pinned, "{sql}: {words}");
    }
}

#[test]
fn a_pin_that_holds_more_names_than_it_counts_has_no_end() {
    for (tables, ends) in [(NAMES_MAX, true), (NAMES_MAX + 1, false)] {
        let mut client = Pins::default();
        for n in 0..tables {
            let sql = format!("CREATE TEMPORARY TABLE t{n} (x INT)");
            runs(&mut client, &sql, None);
        }
        for n in 0..tables {
            runs(&mut client, &format!("DROP TEMPORARY TABLE t{n}"), None);
        }
        assert_eq!(names(&client).is_empty(), ends, "{tables} tables");
    }
}

#[test]
fn the_report_shows_no_password() {
    for (sql, expected) in [
        (
            "CREATE USER a IDENTIFIED BY 'geheim'",
            "CREATE USER a IDENTIFIED BY ...",
        ),
        (
            "set password = PASSWORD(\"geheim\")",
            "set password = PASSWORD(...",
        ),
        (
            "CHANGE MASTER TO MASTER_PASSWORD=x'67'",
            "CHANGE MASTER TO MASTER_PASSWORD=x...",
        ),
        ("SET @key1 = 0x67656865696d", "SET @key1 = ..."),
        (
            "SELECT GET_LOCK(_utf8'geheim', 1)",
            "SELECT GET_LOCK(_utf8...",
        ),
        ("DO -1.5", "DO -..."),
        ("DO .5", "DO ...."),
        (
            "CREATE FUNCTION f() RETURNS INT LANGUAGE JAVASCRIPT AS $js$ `geheim` $js$",
            "CREATE FUNCTION f() RETURNS INT LANGUAGE JAVASCRIPT AS ...",
        ),
        ("'geheim'", "..."),
        (
            "LOCK TABLES t1 WRITE, a$2 READ, \u{e9}3 READ",
            "LOCK TABLES t1 WRITE, a$2 READ, \u{e9}3 READ",
        ),
        (
            "/* password=geheim */ do get_lock(/*geheim*/'x', 0)",
            "do get_lock(...",
        ),
        ("# geheim\nSELECT -- geheim\n  @a", "SELECT @a"),
        ("/*!40101 SET @a = geheim */", "/*!..."),
        ("/* geheim", ""),
        ("", ""),
    ] {
        assert_eq!(String::from_utf8_lossy(&shown(sql.as_bytes())), expected);
    }
    // It is shown up to a length, so what is behind that is none of it.
    let long = format!("SELECT {}, PASSWORD('geheim')", "a".repeat(TEXT_MAX));
    assert_eq!(shown(long.as_bytes()).len(), TEXT_MAX);
}

mod causes;

#[test]
fn the_reasons_are_listed_each_once() {
    let listed: Vec<PinReason> = PinReason::all().collect();
    for reason in &listed {
        // A reason that is added does not compile here until somebody has looked at the list.
        match reason {
            PinReason::Text(_)
            | PinReason::UnexplainedChange
            | PinReason::TriggersAndViews
            | PinReason::PreparedSchema
            | PinReason::WideCharset => {}
        }
        let same = listed.iter().filter(|other| other.name() == reason.name());
        assert_eq!(same.count(), 1, "{reason:?}");
    }
    assert_eq!(listed.len(), PinCause::ALL.len() + 4);
}
