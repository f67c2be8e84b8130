//! Facts of a statement before it runs, from its text or its command alone.
//!
//! The classification of a text (`sql`) says what it does; here follows what that means for the
//! session that it runs in: for FOUND_ROWS(), for the conditions of the statement before, for the
//! reports that come. What is said of a text was compared with MariaDB 10.11 and MySQL 9.7,
//! statement by statement.

use crate::diagnostics::Area;
use crate::elsewhere::Why;
use crate::found::Found;
use crate::known_digests::Pipelinable;
use crate::send_mode::SendMode;
use crate::statement::{Code, Conditions, Explanation, Extent, NOT_JUDGED, Statement, Untracked};
use sql::classify::{self, Marks, PinCause, Reads, Verb};
use sql::lex::{Kind, LexMode, Lexer, Server, Token};
use wire::command::{Command, ReplyShape};

/// Causes that stand for code whose text is not at hand.
const HIDES: [PinCause; 3] = [
    PinCause::StoredCode,
    PinCause::TextExecute,
    PinCause::Unknown,
];

/// True if a text runs such code, which may read what no text shows; it may pin for other causes
/// too.
#[must_use]
pub fn hides_reads(class: &classify::Statement) -> bool {
    HIDES.iter().any(|cause| class.causes.contains(*cause))
}

/// Questions about the statement before in what a text gives to EXECUTE IMMEDIATE or PREPARE: all
/// of them where that is not one literal, calls code, or would read otherwise without its escapes.
#[must_use]
pub fn asked_by_literals(sql: &[u8], mode: LexMode) -> Reads {
    let tokens: Vec<Token> = Lexer::new(sql, mode).collect();
    let text = |token: Token| sql.get(token.start..token.end).unwrap_or_default();
    let is = |at: Option<usize>, word: &[u8]| {
        let token = at.and_then(|at| tokens.get(at));
        token.is_some_and(|t| t.kind == Kind::Word && text(*t).eq_ignore_ascii_case(word))
    };
    let read = |at: usize| {
        let [quote, inner @ .., _] = tokens.get(at).map_or(&b""[..], |token| text(*token)) else {
            return None;
        };
        let ends = match tokens.get(at + 1).map(|token| token.kind) {
            None | Some(Kind::Semicolon) => true,
            _ => is(Some(at + 1), b"USING"),
        };
        if !matches!(quote, b'\'' | b'"') || !ends || inner.contains(&b'\\') {
            return None;
        }
        let found = classify::classify(inner, mode);
        (!hides_reads(&found)).then_some(found.reads)
    };
    let runs = |at: usize| {
        let before = at.checked_sub(2);
        let immediate = is(Some(at), b"IMMEDIATE") && !mode.server.is_mysql();
        immediate || is(Some(at), b"FROM") && is(before, b"PREPARE")
    };
    let all = (0..tokens.len()).filter(|at| runs(*at));
    let asked = all.map(|at| read(at + 1).unwrap_or(Reads::ALL));
    asked.fold(Reads::NONE, Reads::union)
}

/// A text's class; `known`: all the stored code that it runs is known to be clean.
#[must_use]
pub fn class_with(found: &classify::Statement, known: bool) -> classify::Statement {
    match known {
        true => found.with_known_code(),
        false => *found,
    }
}

/// Version from which on the reply to a CALL of MySQL is known to end in an OK, whatever is in
/// front of that; earlier ones were not tried.
const CALL_ENDS_IN_OK: u32 = 90_700;

/// Facts of a text's statement; `mode` is how it is read.
#[must_use]
pub fn statement_of(found: &classify::Statement, mode: LexMode) -> Statement {
    let server = mode.server;
    let hides = hides_reads(found);
    let conditions = match found.verb {
        _ if found.multi && found.marks.contains(Marks::DIAGNOSTICS_BEHIND) => {
            Conditions::RaisesOrAsks
        }
        _ if found.multi || hides => Conditions::Raises,
        Verb::Empty => Conditions::Empty,
        Verb::Diagnostics if found.reads.intersects(Reads::DIAGNOSTICS) => Conditions::Asks,
        Verb::Diagnostics => Conditions::Raises,
        Verb::Show if found.marks.contains(Marks::NO_QUERY) => Conditions::Leaves,
        // With CLIENT_NO_SCHEMA, MariaDB's parser finds that there is no such table: for this it
        // puts a table of information_schema in the text, which then has no schema.
        Verb::Show | Verb::Explain if server.is_mysql() || mode.no_schema => Conditions::Leaves,
        // A query inside of it may be what fails.
        Verb::Show | Verb::Explain
            if found.marks.contains(Marks::COUNTED)
                && !found
                    .marks
                    .intersects(Marks::FROM_INSIDE.union(Marks::SELECT_INSIDE)) =>
        {
            Conditions::LooksUp
        }
        Verb::Show | Verb::Explain => Conditions::MayCount,
        _ => Conditions::Leaves,
    };
    let calls = found.verb == Verb::Call && !found.multi;
    let asks_for_file = found.marks.contains(Marks::LOCAL_FILE);
    Statement {
        shape: match server {
            _ if asks_for_file => ReplyShape::LocalFile,
            Server::MySql(CALL_ENDS_IN_OK..) if calls => ReplyShape::Call,
            _ => ReplyShape::Results,
        },
        found: found_of(found, server),
        area: area_of(found, server),
        extent: extent_of(found, hides),
        untracked: Untracked::by(found),
        insert_id: found.insert_id,
        counts_before: false,
        looks_back: match found.verb {
            Verb::Show | Verb::Diagnostics | Verb::Select => found.reads.of(Reads::DIAGNOSTICS),
            _ => Reads::NONE,
        },
        explanation: match found.verb {
            _ if found.passing => Explanation::Passing,
            Verb::Set | Verb::Use | Verb::Diagnostics | Verb::Prepare => Explanation::Lasting,
            _ if found.multi => Explanation::Lasting,
            _ => Explanation::None,
        },
        code: if hides { Code::Unread } else { Code::None },
        judged: NOT_JUDGED,
        send_mode: SendMode::Apart,
        conditions,
        pipelinable: Pipelinable::Never,
        digest: 0,
        place: Why::NoSelect,
    }
}

/// Effect of a text on FOUND_ROWS().
#[must_use]
pub fn found_of(class: &classify::Statement, server: Server) -> Found {
    if class.multi || hides_reads(class) {
        return Found::Unsure;
    }
    let marks = class.marks;
    let mysql = server.is_mysql();
    let inside = Marks::FROM_INSIDE
        .union(Marks::SELECT_INSIDE)
        .union(Marks::TABLES);
    match class.verb {
        Verb::Select if marks.contains(Marks::CALCULATED) => Found::Calculated,
        Verb::Select | Verb::Show if marks.contains(Marks::COUNTED) => {
            match marks.intersects(Marks::INTO.union(Marks::CUTS)) {
                true => Found::Counts,
                false => Found::Rows,
            }
        }
        // MariaDB's VALUES leaves it as it is.
        Verb::Select if mysql || marks.contains(Marks::FROM) => Found::Counts,
        Verb::Show if class.reads.intersects(Reads::DIAGNOSTICS) => Found::Keeps,
        Verb::Show if marks.contains(Marks::NO_QUERY) => Found::Keeps,
        Verb::Diagnostics | Verb::Use | Verb::Empty | Verb::Lock | Verb::Kill => Found::Keeps,
        Verb::Begin | Verb::Commit | Verb::Rollback | Verb::Savepoint => Found::Keeps,
        // UPDATE counts the rows that matched on MySQL, and of a view that joins on both.
        Verb::Do if mysql => Found::Counts,
        Verb::Set | Verb::Do | Verb::Ddl if !marks.intersects(inside) => Found::Keeps,
        Verb::Insert | Verb::Replace | Verb::Delete if !marks.intersects(inside) => Found::Keeps,
        _ => Found::Unsure,
    }
}

/// Effect of a text on the warnings before it.
#[must_use]
pub fn area_of(class: &classify::Statement, server: Server) -> Area {
    if hides_reads(class) {
        return Area::Unsure;
    }
    if class.replaces.contains(Reads::DIAGNOSTICS) {
        return Area::Clears;
    }
    if class.keeps_warnings {
        return Area::Keeps;
    }
    match class.multi {
        // Of a definition its body decides.
        false if server.is_mysql() && class.verb != Verb::Ddl => Area::Clears,
        _ => Area::Unsure,
    }
}

/// Extent of a text; `hides`: it may run code that nobody has read. Servers enter a schema for USE,
/// for code and for views (seen on MariaDB 10.11); of a dropped one the report has no name.
fn extent_of(found: &classify::Statement, hides: bool) -> Extent {
    use Verb::{Begin, Commit, Ddl, Delete, Insert, Replace, Rollback, Savepoint, Set, Update};
    let stays = match found.verb {
        Verb::Use | Verb::Call | Verb::Prepare | Verb::Other => false,
        Set | Begin | Commit | Rollback | Savepoint | Ddl => true,
        _ => !found.marks.contains(Marks::QUALIFIED),
    };
    let changes = matches!(found.verb, Insert | Update | Delete | Replace)
        && !found.marks.contains(Marks::RETURNING);
    let short = changes || matches!(found.verb, Set | Begin | Commit | Rollback | Savepoint);
    let inside = hides || found.passing || found.marks.contains(Marks::SELECT_INSIDE);
    match () {
        () if found.multi => Extent::Several,
        () if stays && !inside && short => Extent::ShortInSchema,
        () if stays && !inside => Extent::OneInSchema,
        () if short && !inside => Extent::Short,
        () => Extent::One,
    }
}

/// Facts of a text's statement where COM_STMT_BULK_EXECUTE executes it. MariaDB inserts all rows in
/// one execution; everything else it executes once for each.
#[must_use]
pub fn in_bulk(statement: Statement, verb: Verb) -> Statement {
    let inserts = matches!(verb, Verb::Insert | Verb::Replace) && statement.found == Found::Keeps;
    match statement.conditions {
        Conditions::Leaves if !inserts => Statement {
            conditions: Conditions::CountsLast,
            ..statement
        },
        _ => statement,
    }
}

/// Facts of a command that has no text.
#[must_use]
pub fn statement_without_text(command: Command, server: Server) -> Statement {
    let mut statement = Statement::plain(command.reply());
    if command == Command::InitDb {
        statement.explain();
    }
    statement.send_mode = match command {
        Command::InitDb => SendMode::NewSchema,
        Command::FieldList | Command::Statistics => SendMode::Anywhere,
        _ => SendMode::Apart,
    };
    statement.found = Found::Keeps;
    let statistics = command == Command::Statistics;
    if statistics || matches!(command, Command::InitDb | Command::Debug) {
        statement.area = Area::Keeps;
        statement.counts_before = server.is_mysql();
    }
    if command == Command::FieldList && server.is_mysql() {
        // That it is deprecated (1287); its EOF packet counts no warnings.
        statement.area = Area::Warns;
    }
    match command {
        Command::Statistics => statement.conditions = Conditions::Counts,
        Command::Debug => statement.conditions = Conditions::Uncounted,
        _ => {}
    }
    statement
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(sql: &str, server: Server) -> Found {
        let mode = LexMode {
            server,
            ..LexMode::default()
        };
        found_of(&classify::classify(sql.as_bytes(), mode), server)
    }

    #[test]
    fn a_text_that_enters_no_schema_is_known_and_only_a_change_is_short() {
        for (sql, extent) in [
            ("SET @a = 1", Extent::ShortInSchema),
            ("INSERT INTO t VALUES (1)", Extent::ShortInSchema),
            ("INSERT INTO d.t VALUES (1)", Extent::Short),
            ("INSERT INTO t VALUES (1) RETURNING i", Extent::OneInSchema),
            ("REPLACE d.t VALUES (1) RETURNING i", Extent::One),
            ("DELETE FROM t RETURNING *", Extent::OneInSchema),
            ("INSERT INTO t SELECT 1", Extent::One),
            ("CREATE TABLE d.t (i INT)", Extent::OneInSchema),
            ("CREATE TABLE t SELECT * FROM d.v", Extent::One),
            ("SELECT i FROM t", Extent::OneInSchema),
            ("SELECT i FROM d.v", Extent::One),
            ("LOCK TABLES t READ", Extent::OneInSchema),
            ("LOCK TABLES d.v READ", Extent::One),
            ("USE d", Extent::One),
            ("DO 1; DO 2", Extent::Several),
        ] {
            let mode = LexMode::default();
            let found = classify::classify(sql.as_bytes(), mode);
            assert_eq!(statement_of(&found, mode).extent, extent, "{sql}");
        }
    }

    #[test]
    fn what_a_literal_asks_is_found_and_all_else_may_ask() {
        for (sql, asked) in [
            ("EXECUTE IMMEDIATE 'SELECT 1'", Reads::NONE),
            ("EXECUTE IMMEDIATE 'SELECT ?' USING 'CALL p()'", Reads::NONE),
            (
                "EXECUTE IMMEDIATE 'SELECT ''x'', ROW_COUNT()'",
                Reads::ROW_COUNT,
            ),
            (
                "execute immediate \"SHOW WARNINGS\"; DO 1",
                Reads::DIAGNOSTICS,
            ),
            (
                "PREPARE s FROM 'SELECT FOUND_ROWS()'; EXECUTE s",
                Reads::FOUND_ROWS,
            ),
            ("SELECT 'SHOW WARNINGS'; EXECUTE s", Reads::NONE),
            ("EXECUTE IMMEDIATE 'CALL p()'", Reads::ALL),
            ("EXECUTE IMMEDIATE 'SELECT \\'x\\''", Reads::ALL),
            ("EXECUTE IMMEDIATE CONCAT('SELECT ', 1)", Reads::ALL),
            ("EXECUTE IMMEDIATE 'SELECT ' '1'", Reads::ALL),
            ("EXECUTE IMMEDIATE @text", Reads::ALL),
            ("PREPARE s FROM @text; EXECUTE s", Reads::ALL),
            ("EXECUTE IMMEDIATE", Reads::ALL),
        ] {
            let found = asked_by_literals(sql.as_bytes(), LexMode::default());
            assert_eq!(found, asked, "{sql}");
        }
    }

    #[test]
    fn bulk_executions_count_as_one_where_rows_are_inserted_at_once() {
        let server = Server::MariaDb(101_100);
        let mode = LexMode {
            server,
            ..LexMode::default()
        };
        for (sql, conditions) in [
            ("INSERT INTO t VALUES (?)", Conditions::Leaves),
            ("REPLACE INTO t VALUES (?)", Conditions::Leaves),
            (
                "INSERT INTO t SELECT a FROM u WHERE b = ?",
                Conditions::CountsLast,
            ),
            ("UPDATE t SET a = ?", Conditions::CountsLast),
            ("DELETE FROM t WHERE a = ?", Conditions::CountsLast),
        ] {
            let class = classify::classify(sql.as_bytes(), mode);
            let statement = in_bulk(statement_of(&class, mode), class.verb);
            assert_eq!(statement.conditions, conditions, "{sql}");
        }
    }

    #[test]
    fn what_mariadb_looks_up_is_not_looked_up_without_schemas() {
        let server = Server::MariaDb(101_100);
        let with = LexMode {
            server,
            ..LexMode::default()
        };
        let without = LexMode {
            no_schema: true,
            ..with
        };
        for sql in ["SHOW COLUMNS FROM t", "DESCRIBE t", "SHOW TABLES"] {
            let of = |mode| statement_of(&classify::classify(sql.as_bytes(), mode), mode);
            assert_eq!(of(with).conditions, Conditions::LooksUp, "{sql}");
            assert_eq!(of(without).conditions, Conditions::Leaves, "{sql}");
        }
    }

    #[test]
    fn a_text_tells_what_it_counts() {
        use Found::{Calculated, Counts, Keeps, Rows, Unsure};
        let (mariadb, mysql) = (Server::MariaDb(101_100), Server::MySql(90_700));
        for (sql, on_mariadb, on_mysql) in [
            ("SELECT v FROM t LIMIT 2", Rows, Rows),
            ("(SELECT v FROM t)", Rows, Rows),
            ("SELECT v FROM t LIMIT 2 OFFSET 1", Counts, Counts),
            (
                "SELECT SQL_CALC_FOUND_ROWS v FROM t LIMIT 1",
                Calculated,
                Calculated,
            ),
            ("SELECT 1 UNION SELECT 2", Counts, Counts),
            ("SELECT 1 INTO @a", Counts, Counts),
            ("SELECT f()", Unsure, Unsure),
            ("WITH x AS (SELECT 1) SELECT * FROM x", Counts, Counts),
            ("VALUES (1)", Unsure, Counts),
            ("UPDATE t SET a = 1 WHERE c IN (1, 2)", Unsure, Unsure),
            ("UPDATE t, u SET t.a = 1", Unsure, Unsure),
            ("UPDATE t SET a = (SELECT 1)", Unsure, Unsure),
            ("DELETE FROM t WHERE a IN (1, 2)", Keeps, Keeps),
            ("DELETE t FROM t", Unsure, Unsure),
            ("DELETE FROM t WHERE a IN (SELECT 1)", Unsure, Unsure),
            ("INSERT INTO t VALUES (1)", Keeps, Keeps),
            ("INSERT INTO t SELECT 1", Unsure, Unsure),
            ("INSERT INTO t TABLE u", Unsure, Unsure),
            ("SET @a = 1", Keeps, Keeps),
            ("SET @a = (SELECT 1)", Unsure, Unsure),
            ("EXPLAIN SELECT 1", Unsure, Unsure),
            ("SHOW TABLES", Rows, Rows),
            ("SHOW FULL COLUMNS FROM t", Rows, Rows),
            ("SHOW CREATE TABLE t", Keeps, Keeps),
            ("SHOW WARNINGS", Keeps, Keeps),
            ("COMMIT", Keeps, Keeps),
            ("CREATE TABLE t (a INT)", Keeps, Keeps),
            ("CREATE TABLE t SELECT 1", Unsure, Unsure),
            ("DO 1", Keeps, Counts),
            ("SELECT 1; DO 0", Unsure, Unsure),
            ("CALL p()", Unsure, Unsure),
        ] {
            assert_eq!(of(sql, mariadb), on_mariadb, "{sql} on MariaDB");
            assert_eq!(of(sql, mysql), on_mysql, "{sql} on MySQL");
        }
    }
}
