//! FOUND_ROWS(): what a statement makes of it, and how it is known when another backend is asked.
//!
//! The problem: FOUND_ROWS() is what the session's last query found, and the backend that ran it
//! may have served others since. Most texts tell: the rows of the reply count, or the number stays
//! ([`Found`]). Where a query counts otherwise than it sends (UNION, OFFSET, INTO,
//! SQL_CALC_FOUND_ROWS), its backend is asked before it serves anybody else; no client pins for
//! that (`deferred.rs`). Where the text does not even tell whether it counts at all (CALL, EXPLAIN,
//! an UPDATE of several tables), the client's number is put onto the backend in front of it
//! ([`primer`]), unless it is there already, so that the backend's is the client's whatever becomes
//! of it.
//!
//! A plain UPDATE leaves the number on MariaDB; on MySQL it is that of the rows that matched, as
//! the OK tells, but where the condition can never be true it stays: behind one that matched
//! nothing the backend is asked, and what it had before tells which it was.
//!
//! What is said here of a text was compared with MariaDB 10.11 and MySQL 9.7.
//!
//! Invariant: a client's number is known, or its backend has it, or it is neither and a question is
//! refused; it is never another client's.

use crate::backend::{InFlight, Purpose};
use crate::client::Client;
use crate::config::StoredCode;
use crate::group::Group;
use reactor::{Key, Net};
use session::found::Found;
use session::heard::Heard;
use session::statement::Statement;
use sql::classify::Reads;
use wire::attributes::put_query;
use wire::command::ReplyShape;

/// Rows that [`primer`] counts at most; more would cost more than the question is worth.
const PRIMED_MAX: u64 = 65_536;
/// Rows of the table that a [`primer`] is made of.
const PRIMER_ROWS: u64 = 256;

/// A table of so many rows, as a query; `None` of none, and of more than [`PRIMED_MAX`].
pub(crate) fn table_of(rows: u64) -> Option<String> {
    let of = |rows: u64| -> Option<String> {
        let others = usize::try_from(rows.checked_sub(1)?).ok()?;
        Some(format!(
            "(SELECT 1{})",
            " UNION ALL SELECT 1".repeat(others)
        ))
    };
    if rows <= PRIMER_ROWS {
        return Some(format!("{} AS x", of(rows)?));
    }
    let table = of(PRIMER_ROWS).filter(|_| rows <= PRIMED_MAX)?;
    // The first so many of the product's.
    let product = format!("SELECT 1 FROM {table} AS y,{table} AS z LIMIT {rows}");
    Some(format!("({product}) AS x"))
}

/// A query that leaves this number for FOUND_ROWS(), and no warnings where it counts none away.
fn primer(rows: u64) -> Option<String> {
    // Whatever `sql_select_limit` is: it does not hold where a text has a limit of its own.
    let table = table_of(rows.max(1))?;
    Some(format!("SELECT 1 FROM {table} LIMIT {rows}"))
}

impl<S> Client<S> {
    /// Notes what a finished statement did to FOUND_ROWS(); returns whether it stays for certain.
    pub(crate) fn note_found(
        &mut self,
        heard: &Heard,
        rows: u64,
        alone: bool,
        mysql: bool,
    ) -> bool {
        let found = match heard.error {
            Some((code, _)) => self.found_after_error(code, heard, mysql),
            None => self.statement.found,
        };
        let mut replaced = matches!(found, Found::Rows | Found::Nested | Found::Counts);
        match found {
            Found::Keeps => {}
            Found::Rows | Found::Nested => {
                let rows = heard.affected.is_none().then_some(rows);
                self.found_rows.set(rows);
            }
            Found::Matched => match heard.counted {
                Some(matched) if matched > 0 => {
                    self.found_rows.set(Some(matched));
                    replaced = true;
                }
                // Whichever of the two it is.
                _ if self.found_rows.get() == Some(0) => {}
                _ => {
                    self.owed.found =
                        alone && !self.found_native && self.found_rows.get().is_some();
                    self.found_rows.set(None);
                }
            },
            Found::Counts | Found::Unsure => self.found_rows.set(None),
        }
        self.found_native = alone && (self.found_native || replaced);
        found == Found::Keeps
    }

    /// What an error makes of it. On MySQL a statement counts when it has succeeded; on MariaDB
    /// also the rows that it had sent before, and the rows of queries inside of it.
    fn found_after_error(&self, code: u16, heard: &Heard, mysql: bool) -> Found {
        // Found before anything was executed: no such table, no such column, no statement at all.
        const BEFORE: [u16; 4] = [1064, 1146, 1054, 1065];
        let Statement { found, several, .. } = self.statement;
        if found == Found::Keeps {
            return Found::Keeps;
        }
        if several || self.statement.primes() {
            return Found::Unsure;
        }
        if mysql || BEFORE.contains(&code) {
            return Found::Keeps;
        }
        match found {
            Found::Rows if heard.columns.is_some() => Found::Rows,
            Found::Rows => Found::Keeps,
            _ => Found::Unsure,
        }
    }

    /// Whether its backend, and nobody else, knows its FOUND_ROWS().
    pub(crate) fn counts_unread(&self) -> bool {
        self.found_rows.get().is_none() && self.found_native
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
            && client.found_rows.get().is_none()
            && lease.is_some_and(|backend| backend.flight.iter().any(asked))
    }

    /// Whether the FOUND_ROWS() of a client is being read back: it outlives the session.
    pub(crate) fn is_counting(&self, key: Key) -> bool {
        self.is_counted_now(key, Reads::FOUND_ROWS)
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
            backend.expect(command);
            put_query(out, backend.form, sql.as_bytes());
            backend.found = client.found_rows.get();
            client.found_native = true;
            client.counts_native = false;
            client.warnings_native = false;
        }
    }

    /// Whether the backend has to have the client's FOUND_ROWS() before the statement, and has not.
    pub(crate) fn is_primed(&self, key: Key) -> bool {
        let Some(client) = self.clients.get(key).filter(|client| !client.found_native) else {
            return false;
        };
        let backend = client.lease.and_then(|lease| self.backends.get(lease));
        match client.statement.found {
            Found::Unsure => true,
            // What counts for certain does not where it fails.
            Found::Rows | Found::Nested | Found::Counts => client.statement.primes(),
            // Any other number would tell which of the two counts.
            Found::Matched => {
                let same = backend.is_none_or(|backend| matches!(backend.found, None | Some(0)));
                same && client.found_rows.get() != Some(0)
            }
            Found::Keeps => false,
        }
    }

    /// What is to go out in front of a statement that may count or not, so that afterwards its
    /// backend has the client's FOUND_ROWS() in both cases.
    fn primer_for(&self, key: Key) -> Option<String> {
        let client = self.clients.get(key).filter(|_| self.is_primed(key))?;
        // A query between SET TRANSACTION and its transaction would use that up.
        if self.backends.get(client.lease?)?.transaction_announced {
            return None;
        }
        // Calls that nobody is pinned for are too many.
        let trusted = self.shared.settings.stored_code != StoredCode::Pin;
        if client.statement.primes() && trusted {
            return None;
        }
        primer(client.found_rows.get()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_put_there_by_a_query_that_finds_so_many() {
        let none = "SELECT 1 FROM (SELECT 1) AS x LIMIT 0";
        assert_eq!(primer(0).as_deref(), Some(none));
        let two = "SELECT 1 FROM (SELECT 1 UNION ALL SELECT 1) AS x LIMIT 2";
        assert_eq!(primer(2).as_deref(), Some(two));
        let many = primer(300).unwrap();
        assert!(many.ends_with(" LIMIT 300) AS x LIMIT 300"), "{many}");
        assert_eq!(primer(PRIMED_MAX + 1), None);
    }
}
