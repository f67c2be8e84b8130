//! Statements that another server than the writer may answer, by their texts.
//!
//! Invariant: one-sided. A read that is sent to the writer needlessly costs the writer's time; one
//! that is sent elsewhere wrongly is a wrong answer.

use crate::found::Found;
use sql::classify::{InsertId, Marks, Reads, Statement, Verb};
use sql::elsewhere::{Tie, begins_read_only, is_schema_of_server, tie};
use sql::lex::LexMode;

/// Longest text, or execution, that is sent elsewhere: it is kept until it is answered.
pub const LEN_MAX: usize = 8 * 1024;

/// Reason for which a statement goes to the writer, or elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// A read that others answer alike.
    Read,
    /// A transaction that only reads.
    ReadOnly,
    /// No SELECT, or several statements.
    NoSelect,
    /// Locks on rows.
    Locks,
    /// Code, or a function that is not known.
    Code,
    /// Reads or effects of what only its session or its last statement has.
    Session,
    /// Question for what each server has of its own.
    Server,
    /// Text longer than [`LEN_MAX`].
    Long,
    /// Open transaction, or a session that does not commit by itself, or is serializable.
    Transaction,
    /// Its client keeps a backend.
    Pinned,
    /// Writes of its client of which no number is known.
    Unsure,
    /// Reader that was just waited for in vain for the client's own writes, or that was lost.
    Behind,
    /// Lack of a server to be read that has a connection free, or takes another.
    Full,
    /// Lack of a server that may be read.
    NoReader,
}

impl Why {
    /// All of them.
    pub const ALL: [Why; 14] = [
        Why::Read,
        Why::ReadOnly,
        Why::NoSelect,
        Why::Locks,
        Why::Code,
        Why::Session,
        Why::Server,
        Why::Long,
        Why::Transaction,
        Why::Pinned,
        Why::Unsure,
        Why::Behind,
        Why::Full,
        Why::NoReader,
    ];

    /// Word for figures.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Why::Read => "read",
            Why::ReadOnly => "read_only",
            Why::NoSelect => "no_select",
            Why::Locks => "locks",
            Why::Code => "code",
            Why::Session => "session",
            Why::Server => "server",
            Why::Long => "long",
            Why::Transaction => "transaction",
            Why::Pinned => "pinned",
            Why::Unsure => "unsure",
            Why::Behind => "behind",
            Why::Full => "full",
            Why::NoReader => "no_reader",
        }
    }

    /// Clause for people.
    #[must_use]
    pub fn clause(self) -> &'static str {
        match self {
            Why::Read => "it is a read that leaves nothing",
            Why::ReadOnly => "the transaction only reads",
            Why::NoSelect => "it is no single SELECT",
            Why::Locks => "it locks rows",
            Why::Code => "it runs code, or a function that is not known",
            Why::Session => "it reads or leaves what its session or its last statement has",
            Why::Server => "it asks for what each server has of its own",
            Why::Long => "it is longer than 8 KiB",
            Why::Transaction => "a transaction is open, or could be",
            Why::Pinned => "its client keeps a backend",
            Why::Unsure => "its client may have written what no GTID is known of",
            Why::Behind => "a reader was behind, or was lost, just now",
            Why::Full => "the servers that may be read take no more connections",
            Why::NoReader => "no server may be read",
        }
    }

    /// True if others than the writer may run it.
    #[must_use]
    pub fn is_elsewhere(self) -> bool {
        matches!(self, Why::Read | Why::ReadOnly)
    }
}

/// Place of a statement, by its text, its tie to one server, and the schema in which it runs.
#[must_use]
pub fn place_of(
    (sql, mode): (&[u8], LexMode),
    tie: impl FnOnce() -> Option<Tie>,
    schema: Option<&[u8]>,
    (class, found): (&Statement, Found),
) -> Why {
    match class.verb {
        Verb::Begin if begins_read_only(sql, mode) => return Why::ReadOnly,
        Verb::Select if !class.multi => {}
        _ => return Why::NoSelect,
    }
    let is_counted = matches!(found, Found::Rows | Found::Counts);
    let is_plain = class.reads == Reads::NONE
        && class.insert_id == InsertId::Keeps
        && !class.sets_charset
        && !class.user_variables
        && !class.marks.intersects(Marks::INTO.union(Marks::CALCULATED));
    // What ties it to the writer comes first: within a transaction on a reader the rest may run.
    match tie() {
        Some(Tie::Locks) => Why::Locks,
        Some(Tie::Server) => Why::Server,
        None if schema.is_some_and(is_schema_of_server) => Why::Server,
        None if sql.len() > LEN_MAX => Why::Long,
        None if class.pin.is_some() || class.writes => Why::Code,
        None if !is_counted || !is_plain => Why::Session,
        None => Why::Read,
    }
}

/// True if a statement may run within a transaction that only reads, on another server than the
/// writer: it reads, or ends the transaction. (One that writes is refused there for another reason
/// than by the writer.)
#[must_use]
pub fn runs_within(why: Why, class: &Statement) -> bool {
    match class.verb {
        _ if class.multi || class.pin.is_some() || why == Why::Code => false,
        Verb::Select => {
            class.insert_id == InsertId::Keeps
                && !matches!(why, Why::Locks | Why::Server)
                && !class.marks.intersects(Marks::INTO)
        }
        Verb::Commit | Verb::Rollback | Verb::Savepoint | Verb::Use => true,
        Verb::Set => !class.changes_watched,
        Verb::Show | Verb::Explain | Verb::Empty | Verb::Diagnostics => true,
        _ => false,
    }
}

/// True if a text does nothing but ask what the statement before left: on a reader it may be asked
/// where that ran. `class`: what it says by itself.
#[must_use]
pub fn asks_only((sql, mode): (&[u8], LexMode), class: &Statement) -> bool {
    let tables = Marks::FROM.union(Marks::FROM_INSIDE).union(Marks::INTO);
    matches!(class.verb, Verb::Select | Verb::Show)
        && class.reads != Reads::NONE
        && !class.multi
        && !class.writes
        && class.pin.is_none()
        && !class.marks.intersects(tables)
        && tie(sql, mode).is_none()
}

/// True if a statement, outside of a transaction, writes nothing.
#[must_use]
pub fn writes_nothing(class: &Statement) -> bool {
    let reads = matches!(
        class.verb,
        Verb::Select
            | Verb::Set
            | Verb::Show
            | Verb::Use
            | Verb::Begin
            | Verb::Commit
            | Verb::Rollback
            | Verb::Savepoint
            | Verb::Explain
            | Verb::Empty
            | Verb::Diagnostics
            | Verb::Kill
    );
    reads && !class.multi && !class.writes && class.pin.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::found_of;
    use sql::classify::classify;
    use sql::lex::Server;

    fn of(sql: &str) -> (Why, bool) {
        let mode = LexMode {
            server: Server::MariaDb(101_114),
            ..LexMode::default()
        };
        let class = classify(sql.as_bytes(), mode);
        let found = found_of(&class, mode.server);
        let place = |schema: &[u8]| {
            let tie = || tie(sql.as_bytes(), mode);
            place_of((sql.as_bytes(), mode), tie, Some(schema), (&class, found))
        };
        let why = place(b"test");
        if why == Why::Read {
            let of_server = place(b"SYS");
            assert_eq!(of_server, Why::Server, "{sql}");
        }
        (why, runs_within(why, &class))
    }

    #[test]
    fn a_reader_is_asked_for_nothing_but_what_its_last_statement_left() {
        for (sql, expected) in [
            ("SHOW WARNINGS LIMIT 1", true),
            ("SHOW COUNT(*) ERRORS", true),
            ("SELECT ROW_COUNT(), @@warning_count", true),
            ("SELECT FOUND_ROWS(), @@hostname", false),
            ("SELECT FOUND_ROWS(), f()", false),
            ("SELECT FOUND_ROWS(), GET_LOCK('a', 1)", false),
            ("SELECT FOUND_ROWS() FROM t", false),
            ("SELECT FOUND_ROWS() INTO @x", false),
            ("SELECT FOUND_ROWS(); DELETE FROM t", false),
            ("SHOW TABLES", false),
            ("CALL p()", false),
            ("INSERT INTO t VALUES (ROW_COUNT())", false),
            ("DO SLEEP(ROW_COUNT())", false),
        ] {
            let mode = LexMode {
                server: Server::MySql(90_700),
                ..LexMode::default()
            };
            let class = classify(sql.as_bytes(), mode);
            assert_eq!(asks_only((sql.as_bytes(), mode), &class), expected, "{sql}");
        }
    }

    #[test]
    fn what_others_may_answer_is_read_narrowly() {
        for (sql, why, within) in [
            ("SELECT a FROM t WHERE b = 1", Why::Read, true),
            ("SELECT a FROM t UNION SELECT b FROM u", Why::Read, true),
            ("SELECT a FROM t LIMIT 5, 10", Why::Read, true),
            ("WITH x AS (SELECT 1) SELECT * FROM x", Why::Read, true),
            ("START TRANSACTION READ ONLY", Why::ReadOnly, false),
            ("START TRANSACTION", Why::NoSelect, false),
            ("SELECT 1; SELECT 2", Why::NoSelect, false),
            ("UPDATE t SET a = 1", Why::NoSelect, false),
            ("CREATE TABLE t (a INT)", Why::NoSelect, false),
            ("CALL p()", Why::NoSelect, false),
            ("SET @x = 1", Why::NoSelect, true),
            ("SET GLOBAL max_connections = 1", Why::NoSelect, false),
            ("SELECT a FROM t FOR UPDATE", Why::Locks, false),
            ("SELECT f(1)", Why::Code, false),
            ("SELECT GET_LOCK('a', 1)", Why::Code, false),
            ("SELECT NEXTVAL(s)", Why::Code, false),
            ("SELECT NEXT VALUE FOR s", Why::Code, false),
            ("SELECT PREVIOUS VALUE FOR s", Why::Server, false),
            ("SELECT LASTVAL(s)", Why::Server, false),
            ("SELECT @x", Why::Session, true),
            ("SELECT a INTO @x FROM t", Why::Session, false),
            ("SELECT a INTO OUTFILE '/f' FROM t", Why::Session, false),
            ("SELECT LAST_INSERT_ID()", Why::Session, true),
            ("SELECT FOUND_ROWS()", Why::Session, true),
            ("SELECT ROW_COUNT()", Why::Session, true),
            ("SELECT SQL_CALC_FOUND_ROWS a FROM t", Why::Session, true),
            ("SELECT CONNECTION_ID()", Why::Session, true),
            ("SELECT @@hostname", Why::Server, false),
            ("SELECT @x, @@hostname", Why::Server, false),
            ("SELECT @x FROM t FOR UPDATE", Why::Locks, false),
            ("SELECT f(1) FROM t FOR SHARE", Why::Locks, false),
            (
                "SELECT * FROM information_schema.tables",
                Why::Server,
                false,
            ),
        ] {
            assert_eq!(of(sql), (why, within), "{sql}");
        }
        let long = |len: usize| of(&format!("SELECT '{}'", "x".repeat(len - 9))).0;
        assert_eq!((long(LEN_MAX), long(LEN_MAX + 1)), (Why::Read, Why::Long));
        let locks = format!("SELECT '{}' FROM t FOR UPDATE", "x".repeat(LEN_MAX));
        assert_eq!(of(&locks), (Why::Locks, false));
    }
}
