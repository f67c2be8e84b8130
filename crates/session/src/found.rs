//! FOUND_ROWS() as a value, and what a text makes of it.
//!
//! What is said here of a text was compared with MariaDB 10.11 and MySQL 9.7.

use sql::classify::{self, Marks, PinCause, PinCauses, Reads, Verb};
use sql::lex::Server;

/// Causes that stand for code whose text is not at hand.
const HIDES: [PinCause; 3] = [
    PinCause::StoredCode,
    PinCause::TextPrepare,
    PinCause::Unknown,
];

/// Whether a text runs such code, which may read what no text shows; it may pin for other causes
/// too.
pub fn hides_reads(class: &classify::Statement) -> bool {
    HIDES.iter().any(|cause| class.causes.contains(*cause))
}

/// What becomes of FOUND_ROWS().
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It is the number of rows of the reply.
    Rows,
    /// The same, and queries stand inside of it.
    Nested,
    /// It stays.
    Keeps,
    /// It is new; which it is, the backend knows.
    Counts,
    /// It is the number of rows that matched; if that is 0, it may have stayed.
    Matched,
    /// Nobody can tell from the text.
    Unsure,
}

/// FOUND_ROWS(), if it is known; 8 bytes of an idle client instead of 16.
#[derive(Clone, Copy, Debug)]
pub struct FoundRows(u64);

impl FoundRows {
    /// More than any query finds.
    const UNKNOWN: u64 = u64::MAX;
    /// It is that of its backend, or the one before.
    const UNSETTLED: u64 = u64::MAX - 1;
    /// That of a session that has asked nothing yet.
    pub const NONE_YET: FoundRows = FoundRows(0);

    /// The number, if it is known.
    pub fn get(self) -> Option<u64> {
        (self.0 < Self::UNSETTLED).then_some(self.0)
    }

    /// Nobody can tell whether its last statement has counted before its backend is asked.
    pub fn unsettle(&mut self) {
        self.0 = Self::UNSETTLED;
    }

    /// Whether its backend is to be asked, and what that had before decides.
    pub fn is_unsettled(self) -> bool {
        self.0 == Self::UNSETTLED
    }

    /// It is this number; `None`: not known.
    pub fn set(&mut self, rows: Option<u64>) {
        self.0 = rows.unwrap_or(Self::UNKNOWN);
    }
}

/// What a text does to FOUND_ROWS().
pub fn found_of(class: &classify::Statement, server: Server) -> Found {
    let replaces = class.replaces.contains(Reads::FOUND_ROWS);
    // Functions are done when the query that calls them has counted its rows.
    let calls_functions = class.causes == PinCauses::of(PinCause::StoredCode);
    let hides = hides_reads(class);
    if class.multi || hides {
        let counts = replaces && (!hides || calls_functions);
        return if counts { Found::Counts } else { Found::Unsure };
    }
    let marks = class.marks;
    let mysql = server.is_mysql();
    let selects = Marks::FROM
        .union(Marks::FROM_INSIDE)
        .union(Marks::SELECT_INSIDE);
    let inside = Marks::FROM_INSIDE.union(Marks::SELECT_INSIDE);
    match class.verb {
        Verb::Select | Verb::Show if marks.contains(Marks::COUNTED) => {
            let cut = marks.intersects(Marks::INTO.union(Marks::CUTS));
            match marks.intersects(inside) {
                _ if cut => Found::Counts,
                true => Found::Nested,
                false => Found::Rows,
            }
        }
        // MariaDB's VALUES leaves it as it is.
        Verb::Select if mysql || marks.contains(Marks::FROM) => Found::Counts,
        Verb::Show if class.reads.intersects(Reads::DIAGNOSTICS) => Found::Keeps,
        Verb::Show if marks.contains(Marks::NO_QUERY) => Found::Keeps,
        Verb::Diagnostics | Verb::Use | Verb::Empty | Verb::Lock | Verb::Kill => Found::Keeps,
        Verb::Begin | Verb::Commit | Verb::Rollback | Verb::Savepoint => Found::Keeps,
        Verb::Do if mysql => Found::Counts,
        Verb::Update if mysql && !marks.intersects(inside.union(Marks::TABLES)) => Found::Matched,
        Verb::Update | Verb::Delete if !marks.intersects(inside.union(Marks::TABLES)) => {
            Found::Keeps
        }
        Verb::Load | Verb::Admin if !marks.intersects(inside) => Found::Keeps,
        Verb::Set | Verb::Ddl if mysql => Found::Keeps,
        Verb::Set | Verb::Do | Verb::Insert | Verb::Replace | Verb::Ddl
            if !marks.intersects(selects) =>
        {
            Found::Keeps
        }
        _ => Found::Unsure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sql::lex::LexMode;

    fn of(sql: &str, server: Server) -> Found {
        let mode = LexMode {
            server,
            ..LexMode::default()
        };
        found_of(&classify::classify(sql.as_bytes(), mode), server)
    }

    #[test]
    fn a_text_tells_what_it_counts() {
        use Found::{Counts, Keeps, Matched, Nested, Rows, Unsure};
        let (mariadb, mysql) = (Server::MariaDb(101_100), Server::MySql(90_700));
        for (sql, on_mariadb, on_mysql) in [
            ("SELECT v FROM t LIMIT 2", Rows, Rows),
            ("(SELECT v FROM t)", Nested, Nested),
            ("SELECT v FROM t LIMIT 2 OFFSET 1", Counts, Counts),
            (
                "SELECT SQL_CALC_FOUND_ROWS v FROM t LIMIT 1",
                Counts,
                Counts,
            ),
            ("SELECT 1 UNION SELECT 2", Counts, Counts),
            ("SELECT 1 INTO @a", Counts, Counts),
            ("SELECT f()", Counts, Counts),
            ("SELECT f(), GET_LOCK('a', 1)", Unsure, Unsure),
            ("WITH x AS (SELECT 1) SELECT * FROM x", Counts, Counts),
            ("VALUES (1)", Unsure, Counts),
            (
                "UPDATE t SET a = 1, b = 2 WHERE c IN (1, 2)",
                Keeps,
                Matched,
            ),
            ("UPDATE t, u SET t.a = 1", Unsure, Unsure),
            ("UPDATE t JOIN u ON t.a = u.a SET t.a = 1", Unsure, Unsure),
            ("UPDATE t SET a = (SELECT 1)", Unsure, Unsure),
            ("UPDATE t SET a = 1 WHERE b IN (TABLE u)", Unsure, Unsure),
            ("DELETE FROM t WHERE a IN (1, 2)", Keeps, Keeps),
            ("DELETE QUICK FROM t", Keeps, Keeps),
            ("DELETE t FROM t", Unsure, Unsure),
            ("DELETE FROM t USING t, u", Unsure, Unsure),
            ("DELETE FROM t WHERE a IN (SELECT 1)", Unsure, Unsure),
            ("INSERT INTO t TABLE u", Unsure, Unsure),
            ("SET @a = (SELECT 1)", Unsure, Keeps),
            ("CREATE TABLE t SELECT 1 FROM u", Unsure, Keeps),
            ("EXPLAIN SELECT 1", Unsure, Unsure),
            ("CHECK TABLE t", Keeps, Keeps),
            ("SHOW TABLES", Rows, Rows),
            ("SHOW FULL COLUMNS FROM t", Rows, Rows),
            ("SHOW CREATE TABLE t", Keeps, Keeps),
            ("SHOW FULL PROCESSLIST", Keeps, Keeps),
            ("SHOW WARNINGS", Keeps, Keeps),
            ("SHOW BINARY LOGS", Unsure, Unsure),
            ("DO 1", Keeps, Counts),
            ("INSERT INTO t VALUES (1)", Keeps, Keeps),
            ("INSERT INTO t SELECT 1", Unsure, Unsure),
            ("CREATE TABLE t (a INT)", Keeps, Keeps),
            ("CREATE TABLE t SELECT 1", Unsure, Keeps),
            ("SELECT 1; DO 0", Counts, Counts),
            ("DO 0; SELECT SQL_CALC_FOUND_ROWS 1", Counts, Counts),
            ("SET @a = 1; COMMIT", Unsure, Unsure),
            ("CALL p()", Unsure, Unsure),
        ] {
            assert_eq!(of(sql, mariadb), on_mariadb, "{sql} on MariaDB");
            assert_eq!(of(sql, mysql), on_mysql, "{sql} on MySQL");
        }
    }
}
