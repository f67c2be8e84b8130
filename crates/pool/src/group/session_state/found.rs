//! FOUND_ROWS(): what a statement makes of it, and how it is known when another backend is asked.
//!
//! The problem: FOUND_ROWS() is what the session's last query found, and the backend that ran it
//! may have served others since. Most texts tell: the rows of the reply count, or the number stays
//! ([`Found`]). Where a query counts otherwise than it sends (UNION, OFFSET, INTO,
//! SQL_CALC_FOUND_ROWS), its backend is asked before it serves anybody else; no client pins for
//! that (`lazy_readback.rs`). Where the text does not even tell whether it counts at all (CALL,
//! EXPLAIN, an UPDATE of several tables), the backend knows it if it had the client's number
//! before; else a question about it is refused.
//!
//! A plain UPDATE leaves the number on MariaDB; on MySQL it is that of the rows that matched, as
//! the OK tells, but where the condition can never be true it stays: behind one that matched
//! nothing the backend is asked, and what it had before tells which it was.
//!
//! What is said here of a text was compared with MariaDB 10.11 and MySQL 9.7.
//!
//! Invariant: a client's number is known, or its backend has it, or it is neither and a question is
//! refused; it is never another client's.

use crate::backend::Purpose;
use crate::client::Client;
use crate::group::Group;
use reactor::{Key, Net};
use session::found::Found;
use session::reply_summary::ReplySummary;
use session::statement::Statement;
use sql::classify::Reads;

impl<S> Client<S> {
    /// Notes what a finished statement did to FOUND_ROWS(); returns whether it stays for certain.
    pub(crate) fn note_found(
        &mut self,
        summary: &ReplySummary,
        rows: u64,
        alone: bool,
        mysql: bool,
    ) -> bool {
        let found = match summary.error {
            Some((code, _)) => self.found_after_error(code, summary, mysql),
            None => self.statement.found,
        };
        let mut replaced = matches!(found, Found::Rows | Found::Nested | Found::Counts);
        match found {
            Found::Keeps => {}
            Found::Rows | Found::Nested => {
                let rows = summary.affected.is_none().then_some(rows);
                self.found_rows.set(rows);
            }
            Found::Matched => match summary.counted {
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
    fn found_after_error(&self, code: u16, summary: &ReplySummary, mysql: bool) -> Found {
        // Found before anything was executed: no such table, no such column, no statement at all.
        const BEFORE: [u16; 4] = [1064, 1146, 1054, 1065];
        let Statement { found, several, .. } = self.statement;
        if found == Found::Keeps {
            return Found::Keeps;
        }
        if several || self.statement.may_count() {
            return Found::Unsure;
        }
        if mysql || BEFORE.contains(&code) {
            return Found::Keeps;
        }
        match found {
            Found::Rows if summary.columns.is_some() => Found::Rows,
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
    /// Whether a text asks for what is being read back at this moment: FOUND_ROWS(), or the
    /// conditions of the statement before.
    pub(crate) fn is_read_back_now(&self, key: Key, reads: Reads) -> bool {
        let conditions = reads.intersects(Reads::DIAGNOSTICS);
        conditions && self.is_being_asked(key, Purpose::Warnings)
            || reads.intersects(Reads::FOUND_ROWS) && self.is_counting(key)
    }

    /// Whether the FOUND_ROWS() of a client is being read back: it outlives the session.
    pub(crate) fn is_counting(&self, key: Key) -> bool {
        let unknown = |client: &Client<N::Sock>| client.found_rows.get().is_none();
        self.clients.get(key).is_some_and(unknown)
            && self.is_being_asked(key, Purpose::ReadBack(true))
    }
}
