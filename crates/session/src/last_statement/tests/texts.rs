//! State after each kind of text and each kind of reply to it.
//!
//! Each text is judged as it is by the pool; the statement before it was an INSERT of two rows on
//! the same backend, behind a query that found five.

use super::*;
use crate::plan::{statement_of, statement_without_text};
use sql::classify::classify;
use sql::lex::{LexMode, Server};
use wire::command::Command;

const ON_MARIADB: Server = Server::MariaDb(101_119);
const ON_MYSQL: Server = Server::MySql(90_704);

fn judged(sql: &str, server: Server) -> Statement {
    let mode = LexMode {
        server,
        ..LexMode::default()
    };
    statement_of(&classify(sql.as_bytes(), mode), mode)
}

/// State in front of each text.
fn before() -> LastStatement {
    let mut last = LastStatement::default();
    last.ended(&finished(&select(), &rows(), 5, (true, MARIADB)));
    last.ended(&finished(&insert(), &changed(2), 0, (true, MARIADB)));
    last
}

/// Facts of a session that are known behind a statement.
#[derive(Debug, PartialEq, Eq)]
struct Knows {
    /// ROW_COUNT()
    rows: Option<i64>,
    /// FOUND_ROWS()
    found: Option<u64>,
    /// Conditions, as COM_PING counts them.
    conditions: u16,
    /// SHOW WARNINGS is to be asked.
    asks: bool,
}

fn knows(last: &LastStatement) -> Knows {
    Knows {
        rows: last.row_count.get(),
        found: last.found_rows.get(),
        conditions: last.conditions,
        asks: last.pending.warnings,
    }
}

fn behind(statement: &Statement, server: Server, reply: &ReplySummary, rows: u64) -> Knows {
    let mut last = before();
    last.sent();
    last.ended(&finished(statement, reply, rows, (true, server.is_mysql())));
    knows(&last)
}

macro_rules! knows {
    ($($name:ident: $sql:expr, on $server:expr, answered $reply:expr, $sent:expr =>
        ($rows:expr, $found:expr, $conditions:expr, $asks:expr);)*) => {$(
        #[test]
        fn $name() {
            let expected = Knows {
                rows: $rows,
                found: $found,
                conditions: $conditions,
                asks: $asks,
            };
            assert_eq!(behind(&judged($sql, $server), $server, &$reply, $sent), expected);
        }
    )*};
}

knows! {
    a_query_counts_what_it_sent: "SELECT a FROM t", on ON_MARIADB, answered rows(), 3 =>
        (Some(-1), Some(3), 0, false);
    a_query_of_no_rows_counts_none: "SELECT a FROM t", on ON_MYSQL, answered rows(), 0 =>
        (Some(-1), Some(0), 0, false);
    a_query_that_is_cut_counts_what_its_backend_knows:
        "SELECT a FROM t LIMIT 2 OFFSET 1", on ON_MYSQL, answered rows(), 2 =>
        (Some(-1), None, 0, false);
    a_query_into_a_variable_counts_rows_and_what_its_backend_knows:
        "SELECT 1 INTO @a", on ON_MARIADB, answered changed(1), 0 =>
        (Some(1), None, 0, false);
    an_insert_counts_its_rows_and_leaves_those_found:
        "INSERT INTO t VALUES (1), (2)", on ON_MARIADB, answered changed(2), 0 =>
        (Some(2), Some(5), 0, false);
    an_insert_of_a_query_may_have_found_others:
        "INSERT INTO t SELECT a FROM u", on ON_MARIADB, answered changed(4), 0 =>
        (Some(4), None, 0, false);
    an_update_may_find_what_it_matched:
        "UPDATE t SET a = 1", on ON_MARIADB, answered changed(3), 0 =>
        (Some(3), None, 0, false);
    a_delete_leaves_what_was_found: "DELETE FROM t", on ON_MYSQL, answered changed(9), 0 =>
        (Some(9), Some(5), 0, false);
    a_set_counts_nothing: "SET @a = 1", on ON_MARIADB, answered changed(0), 0 =>
        (Some(0), Some(5), 0, false);
    a_do_finds_one_row_on_mysql: "DO 1", on ON_MYSQL, answered changed(0), 0 =>
        (Some(0), None, 0, false);
    a_begin_counts_nothing: "BEGIN", on ON_MYSQL, answered changed(0), 0 =>
        (Some(0), Some(5), 0, false);
    a_list_of_tables_is_a_query: "SHOW TABLES", on ON_MARIADB, answered rows(), 7 =>
        (Some(-1), Some(7), 0, false);
    a_list_of_warnings_is_none: "SHOW WARNINGS", on ON_MARIADB, answered rows(), 7 =>
        (Some(-1), Some(5), 0, false);
    a_call_may_have_found_anything: "CALL p()", on ON_MARIADB, answered changed(0), 0 =>
        (Some(0), None, 0, false);
    a_text_of_several_may_have_found_anything:
        "SET @a = 1; COMMIT", on ON_MARIADB, answered changed(0), 0 =>
        (Some(0), None, 0, false);
    a_warning_is_read_back: "INSERT INTO t VALUES (1)", on ON_MYSQL, answered warned(3), 0 =>
        (Some(1), Some(5), 3, true);
    a_warning_before_the_last_of_several_is_read_back:
        "INSERT INTO t VALUES (1); DO 1", on ON_MARIADB,
        answered ReplySummary { warned: true, ..changed(0) }, 0 =>
        (Some(0), None, 0, true);
    a_query_that_fails_may_have_counted:
        "SELECT a FROM t", on ON_MARIADB, answered failed(1146), 0 =>
        (Some(-1), None, 1, true);
    a_call_that_fails_may_have_found_anything:
        "CALL p()", on ON_MYSQL, answered failed(1305), 0 =>
        (Some(-1), None, 1, true);
    several_of_which_one_fails_may_have_found_anything:
        "SELECT 1; SELECT 2", on ON_MYSQL, answered failed(1064), 0 =>
        (Some(-1), None, 1, true);
    get_diagnostics_leaves_the_count:
        "GET DIAGNOSTICS @n = NUMBER", on ON_MARIADB, answered changed(0), 0 =>
        (Some(2), Some(5), 0, false);
    get_diagnostics_of_what_there_is_not_counts_minus_one:
        "GET DIAGNOSTICS CONDITION 9 @n = MYSQL_ERRNO", on ON_MARIADB, answered warned(1), 0 =>
        (Some(-1), Some(5), 1, true);
    a_signal_is_an_error: "SIGNAL SQLSTATE '45000'", on ON_MARIADB, answered failed(1644), 0 =>
        (Some(-1), Some(5), 1, true);
    a_signal_of_a_warning_counts_nothing:
        "SIGNAL SQLSTATE '01000'", on ON_MARIADB,
        answered ReplySummary { affected: Some(0), ..warned(1) }, 0 =>
        (Some(0), Some(5), 1, true);
    a_text_of_several_behind_get_diagnostics_is_unknown:
        "SET @a = 1; GET DIAGNOSTICS @n = NUMBER", on ON_MARIADB, answered changed(0), 0 =>
        (None, None, 0, false);
}

#[test]
fn a_command_without_a_text_is_counted_as_the_servers_count_it() {
    let after = |command, server: Server, reply: &ReplySummary| {
        behind(&statement_without_text(command, server), server, reply, 0)
    };
    let counts = |rows, conditions| Knows {
        rows: Some(rows),
        found: Some(5),
        conditions,
        asks: false,
    };
    for server in [ON_MARIADB, ON_MYSQL] {
        assert_eq!(after(Command::InitDb, server, &changed(0)), counts(0, 0));
        let statistics = after(Command::Statistics, server, &ReplySummary::default());
        assert_eq!(statistics, counts(2, 0), "that of the statement before");
    }
}

#[test]
fn a_change_of_schema_counts_the_warnings_before_it_on_mysql() {
    for (server, counted, pending) in [(ON_MYSQL, 2, true), (ON_MARIADB, 1, true)] {
        let mut last = LastStatement::default();
        last.ended(&finished(
            &insert(),
            &warned(2),
            0,
            (true, server.is_mysql()),
        ));
        last.pending.warnings = false;
        let statement = statement_without_text(Command::InitDb, server);
        last.ended(&finished(
            &statement,
            &warned(1),
            0,
            (true, server.is_mysql()),
        ));
        assert_eq!((last.conditions, last.pending.warnings), (counted, pending));
    }
}

#[test]
fn conditions_last_as_long_as_each_server_keeps_them() {
    let kept_behind = |sql: &str, server: Server| {
        let meter = Meter::default();
        let mut last = after(insert(), &warned(1));
        last.pending.warnings = false;
        keep(&mut last, Ok(shown(b"1265", 1)), &meter);
        last.ended(&finished(
            &judged(sql, server),
            &changed(0),
            0,
            (true, server.is_mysql()),
        ));
        last.has_conditions()
    };
    for (sql, on_mariadb, on_mysql) in [
        ("SELECT a FROM t", false, false),
        ("SELECT 1", true, false),
        ("INSERT INTO t VALUES (1)", false, false),
        ("SET @a = 1", true, false),
        ("BEGIN", true, false),
        ("COMMIT", true, false),
        ("USE d", true, false),
        ("SHOW WARNINGS", true, true),
        ("SHOW COUNT(*) ERRORS", true, true),
        ("GET DIAGNOSTICS @n = NUMBER", true, true),
        ("DO 1", true, false),
        ("CREATE TABLE t (a INT)", false, false),
    ] {
        assert_eq!(kept_behind(sql, ON_MARIADB), on_mariadb, "{sql} on MariaDB");
        assert_eq!(kept_behind(sql, ON_MYSQL), on_mysql, "{sql} on MySQL");
    }
}

#[test]
fn what_the_backend_has_is_lost_with_whoever_is_pipelined_behind() {
    for sql in [
        "SELECT a FROM t",
        "INSERT INTO t VALUES (1)",
        "SET @a = 1",
        "CALL p()",
    ] {
        let mut last = before();
        last.ended(&finished(
            &judged(sql, ON_MARIADB),
            &changed(0),
            0,
            (false, MARIADB),
        ));
        assert!(last.lost().contains(COUNTS), "{sql}");
        assert!(!last.counts_unread(), "{sql}: nobody could answer");
    }
}

#[test]
fn a_client_with_questions_is_told_by_what_is_kept_and_nothing_else() {
    let mut last = LastStatement::default();
    assert!(!last.alone_knows() && last.may_be_asked_for());
    last.ended(&finished(&select(), &rows(), 3, (true, MARIADB)));
    assert!(!last.may_be_asked_for(), "-1, and a count that is known");
    last.ended(&finished(&insert(), &changed(1), 0, (true, MARIADB)));
    assert!(last.may_be_asked_for());
    last.ended(&finished(
        &judged("SELECT 1 INTO @a", ON_MYSQL),
        &changed(1),
        0,
        (true, MYSQL),
    ));
    assert!(last.alone_knows(), "FOUND_ROWS()");
}

#[test]
fn a_number_of_statements_begins_again_at_its_end() {
    let mut last = LastStatement {
        number: u32::MAX,
        ..LastStatement::default()
    };
    last.sent();
    assert_eq!(last.number, 0);
}

#[test]
fn a_statement_prepared_ahead_takes_the_words_and_not_the_counts() {
    let mut last = before();
    last.prepared_ahead();
    assert!(last.is_valid_on_backend(COUNTS) && !last.is_valid_on_backend(Reads::DIAGNOSTICS));
}

#[test]
fn more_conditions_than_a_number_holds_are_unknown_in_all() {
    let meter = Meter::default();
    let mut last = after(insert(), &warned(u16::MAX));
    keep(&mut last, Ok(shown(b"1265", 2)), &meter);
    assert_eq!(last.kept().map(|kept| kept.total), Some(None));
}
