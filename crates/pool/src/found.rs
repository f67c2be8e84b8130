//! FOUND_ROWS(): what a statement makes of it, and how it is known when another backend is asked.
//!
//! The problem: FOUND_ROWS() is what the session's last query found, and the backend that ran it
//! may have served others since. Most texts tell: the rows of the reply count, or the number stays
//! ([`Found`]). Where a query counts otherwise than it sends (UNION, OFFSET, INTO,
//! SQL_CALC_FOUND_ROWS), its backend is asked before it serves anybody else; no client pins for
//! that. Where the text does not even tell whether it counts at all (CALL), the client's number is
//! put onto the backend in front of it ([`primer`]), so that the backend's is the client's
//! whatever becomes of it.
//!
//! What is said here of a text was compared with MariaDB 10.11 and MySQL 9.7.
//!
//! Invariant: a client's number is known, or its backend has it, or it is neither and a question is
//! refused; it is never another client's.

use crate::backend::{InFlight, Purpose};
use crate::client::Client;
use crate::config::StoredCode;
use crate::group::Group;
use crate::heard::Heard;
use crate::statements::hides_reads;
use reactor::{Key, Net};
use wire::attributes::put_query;
use wire::classify::{self, Marks, PinCause, PinCauses, Reads, Verb};
use wire::command::ReplyShape;
use wire::lex::Server;

/// What becomes of FOUND_ROWS().
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// It is the number of rows of the reply.
    Rows,
    /// It stays.
    Keeps,
    /// It is new; which it is, the backend knows.
    Counts,
    /// Nobody can tell from the text.
    Unsure,
}

/// What a text does to FOUND_ROWS().
pub(crate) fn found_of(class: &classify::Statement, server: Server) -> Found {
    let replaces = class.replaces.contains(Reads::FOUND_ROWS);
    // Functions are done when the query that calls them has counted its rows.
    let calls_functions = class.causes == PinCauses::of(PinCause::StoredCode);
    let hides = class.pin.is_some_and(hides_reads);
    if class.multi || hides {
        let counts = replaces && (!hides || calls_functions);
        return if counts { Found::Counts } else { Found::Unsure };
    }
    let marks = class.marks;
    let mysql = matches!(server, Server::MySql(_));
    let selects = Marks::FROM
        .union(Marks::FROM_INSIDE)
        .union(Marks::SELECT_INSIDE);
    match class.verb {
        Verb::Select | Verb::Show if marks.contains(Marks::COUNTED) => {
            let cut = marks.intersects(Marks::INTO.union(Marks::CUTS));
            if cut { Found::Counts } else { Found::Rows }
        }
        // MariaDB's VALUES leaves it as it is.
        Verb::Select if mysql || marks.contains(Marks::FROM) => Found::Counts,
        Verb::Show if class.reads.intersects(Reads::DIAGNOSTICS) => Found::Keeps,
        Verb::Show if marks.contains(Marks::NO_QUERY) => Found::Keeps,
        Verb::Diagnostics | Verb::Use | Verb::Empty | Verb::Lock => Found::Keeps,
        Verb::Begin | Verb::Commit | Verb::Rollback | Verb::Savepoint => Found::Keeps,
        Verb::Do if mysql => Found::Counts,
        Verb::Set | Verb::Do | Verb::Insert | Verb::Replace | Verb::Ddl
            if !marks.intersects(selects) =>
        {
            Found::Keeps
        }
        _ => Found::Unsure,
    }
}

/// Rows that [`primer`] counts at most; more would cost more than the question is worth.
const PRIMED_MAX: u64 = 256;

/// A query that leaves this number for FOUND_ROWS(), and no warnings where it counts none away.
fn primer(rows: u64) -> Option<String> {
    if rows > PRIMED_MAX {
        return None;
    }
    // Whatever `sql_select_limit` is: it does not hold where a text has a limit of its own.
    let Some(more) = rows.checked_sub(1) else {
        return Some("SELECT 1 LIMIT 0".into());
    };
    let union = " UNION ALL SELECT 1".repeat(usize::try_from(more).ok()?);
    Some(format!("SELECT 1 FROM (SELECT 1{union}) AS x LIMIT {rows}"))
}

impl<S> Client<S> {
    /// Notes what a finished statement did to FOUND_ROWS().
    pub(crate) fn note_found(&mut self, heard: &Heard, rows: u64, alone: bool) {
        // Found before anything was executed: no such table, no such column, no statement at all.
        const BEFORE: [u16; 4] = [1064, 1146, 1054, 1065];
        let found = match &heard.error {
            Some((code, _)) if BEFORE.contains(code) && !self.statement.several => Found::Keeps,
            Some(_) if self.statement.found != Found::Keeps => Found::Unsure,
            _ => self.statement.found,
        };
        match found {
            Found::Rows => self.found_rows = heard.affected.is_none().then_some(rows),
            Found::Keeps => {}
            Found::Counts | Found::Unsure => self.found_rows = None,
        }
        let replaced = matches!(found, Found::Rows | Found::Counts);
        self.found_native = alone && (self.found_native || replaced);
        // Behind writes it is not worth a question each time.
        let primed = self.statement.primes() && found == Found::Unsure;
        if found != Found::Keeps {
            self.owed.found = found == Found::Counts || primed;
        }
    }

    /// Whether its backend, and nobody else, knows its FOUND_ROWS(), and is to be asked.
    pub(crate) fn counts_unread(&self) -> bool {
        self.owed.found && self.found_rows.is_none() && self.found_native
    }
}

impl<N: Net> Group<N> {
    /// Whether a text asks for the FOUND_ROWS() that is being read back at this moment.
    pub(crate) fn is_counted_now(&self, key: Key, reads: Reads) -> bool {
        let Some(client) = self.clients.get(key) else {
            return false;
        };
        let lease = client.lease.and_then(|lease| self.backends.get(lease));
        let asked = |command: &crate::backend::InFlight| {
            command.purpose == Purpose::ReadBack(true) && command.owner == Some(key)
        };
        reads.intersects(Reads::FOUND_ROWS)
            && client.found_rows.is_none()
            && lease.is_some_and(|backend| backend.flight.iter().any(asked))
    }

    /// Whether the FOUND_ROWS() of a client is about to be read back: it outlives the session.
    pub(crate) fn is_counting(&self, key: Key) -> bool {
        let owes = |client: &&Client<N::Sock>| client.owed.found && client.found_rows.is_none();
        let client = self.clients.get(key).filter(owes);
        let lease = client.and_then(|client| self.backends.get(client.lease?));
        lease.is_some_and(|backend| !backend.flight.is_empty())
    }

    /// Writes what gives the backend its client's FOUND_ROWS(), in front of what may keep that.
    pub(crate) fn put_primer(&mut self, key: Key, lease: Key, out: &mut Vec<u8>) {
        let Some(sql) = self.primer_for(key) else {
            return;
        };
        if let (Some(client), Some(backend)) =
            (self.clients.get_mut(key), self.backends.get_mut(lease))
        {
            let command = InFlight::own(Some(key), Purpose::Primer, ReplyShape::Results);
            backend.flight.push_back(command);
            put_query(out, backend.form, sql.as_bytes());
            client.found_native = true;
        }
    }

    /// What is to go out in front of a statement that may count or not, so that afterwards its
    /// backend has the client's FOUND_ROWS() in both cases. Only for clients that it pins: others'
    /// statements of the kind are too many.
    fn primer_for(&self, key: Key) -> Option<String> {
        let client = self.clients.get(key)?;
        let backend = self.backends.get(client.lease?)?;
        // A query between SET TRANSACTION and its transaction would use that up.
        if self.shared.settings.stored_code != StoredCode::Pin || backend.in_transaction() {
            return None;
        }
        // What counts for certain does not where it fails.
        if !client.statement.primes() || client.found_native {
            return None;
        }
        primer(client.found_rows?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::lex::LexMode;

    fn of(sql: &str, server: Server) -> Found {
        let mode = LexMode {
            server,
            ..LexMode::default()
        };
        found_of(&classify::classify(sql.as_bytes(), mode), server)
    }

    #[test]
    fn a_text_tells_what_it_counts() {
        use Found::{Counts, Keeps, Rows, Unsure};
        let (mariadb, mysql) = (Server::MariaDb(101_100), Server::MySql(90_700));
        for (sql, on_mariadb, on_mysql) in [
            ("SELECT v FROM t LIMIT 2", Rows, Rows),
            ("(SELECT v FROM t)", Rows, Rows),
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
            ("CREATE TABLE t SELECT 1", Unsure, Unsure),
            ("UPDATE t SET a = 1", Unsure, Unsure),
            ("SELECT 1; DO 0", Counts, Counts),
            ("DO 0; SELECT SQL_CALC_FOUND_ROWS 1", Counts, Counts),
            ("SET @a = 1; COMMIT", Unsure, Unsure),
            ("CALL p()", Unsure, Unsure),
        ] {
            assert_eq!(of(sql, mariadb), on_mariadb, "{sql} on MariaDB");
            assert_eq!(of(sql, mysql), on_mysql, "{sql} on MySQL");
        }
    }

    #[test]
    fn a_number_is_put_there_by_a_query_that_finds_so_many() {
        assert_eq!(primer(0).as_deref(), Some("SELECT 1 LIMIT 0"));
        let two = "SELECT 1 FROM (SELECT 1 UNION ALL SELECT 1) AS x LIMIT 2";
        assert_eq!(primer(2).as_deref(), Some(two));
        assert_eq!(primer(PRIMED_MAX + 1), None);
    }
}
