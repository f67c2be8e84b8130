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
use session::read_back::{Answer, Properties};
use sql::classify::Reads;

impl<N: Net> Group<N> {
    /// Whether a text asks for what is being read back at this moment: FOUND_ROWS(), or the
    /// conditions of the statement before.
    pub(crate) fn is_read_back_now(&self, key: Key, reads: Reads) -> bool {
        let conditions = reads.intersects(Reads::DIAGNOSTICS);
        // Conditions are shown in the collation of results.
        let shown_by = || self.is_reading(key, Properties::COLLATION);
        conditions && (self.is_being_asked(key, Purpose::Warnings) || shown_by())
            || reads.intersects(Reads::FOUND_ROWS) && self.is_counting(key)
    }

    /// FOUND_ROWS() has come back.
    pub(crate) fn found_rows_told(&mut self, key: Key, owner: Key, answer: &Answer) {
        let found = answer.number(Properties::FOUND_ROWS);
        let (Some(client), Some(backend)) =
            (self.clients.get_mut(owner), self.backends.get_mut(key))
        else {
            return;
        };
        let Some(found) = found else {
            return;
        };
        // One of two, or the only one.
        let two = client.last.owed.changed.intersects(Properties::FOUND_ROWS);
        client.last.found_rows.set(match backend.unsettled {
            _ if !two => Some(found),
            Some((before, _)) if before != found => Some(found),
            Some((before, kept)) if before > 0 => Some(kept),
            _ => None,
        });
    }

    /// Whether the FOUND_ROWS() of a client is being read back: it outlives the session.
    pub(crate) fn is_counting(&self, key: Key) -> bool {
        let unknown = |client: &Client<N::Sock>| client.last.found_rows.get().is_none();
        self.clients.get(key).is_some_and(unknown) && self.is_reading(key, Properties::FOUND_ROWS)
    }
}
