//! FOUND_ROWS(): what a statement makes of it, and how it is known when another backend is asked.
//!
//! The problem: FOUND_ROWS() is what the session's last query found, and the backend that ran it
//! may have served others since. Most texts tell: the rows of the reply count, or the number stays
//! ([`Found`]). Where a query counts otherwise than it sends (UNION, OFFSET, INTO,
//! SQL_CALC_FOUND_ROWS), its backend is asked before it serves anybody else; no client pins for
//! that (`lazy_readback.rs`). Where the text does not even tell whether it counts at all (CALL,
//! EXPLAIN, an UPDATE of several tables), the backend knows it if it had the client's number
//! before. Else it is asked as late as for the others, and what it had before tells whether the
//! statement has counted; where that is the same number, a question is refused.
//!
//! A plain UPDATE leaves the number on MariaDB; on MySQL it is that of the rows that matched, as
//! the OK tells, but where the condition can never be true it stays: behind one that matched
//! nothing the backend is asked, and what it had before tells which it was.
//!
//! What is said here of a text was compared with MariaDB 10.11 and MySQL 9.7.
//!
//! Invariant: a client's number is known, or its backend has it, or it is neither and a question is
//! refused; it is never another client's.

use crate::pair::Pair;
use session::read_back::{Answer, Properties};

impl<S> Pair<'_, S> {
    /// FOUND_ROWS() has come back.
    pub(super) fn found_rows_told(&mut self, answer: &Answer) {
        let Some(found) = answer.number(Properties::FOUND_ROWS) else {
            return;
        };
        let last = &mut self.client.last;
        let matched = last.owed.changed.intersects(Properties::FOUND_ROWS);
        last.found_rows.set(match self.backend.unsettled.take() {
            // What matched nothing and had another number before has left it.
            Some((before, kept)) if matched && before == found && before > 0 => Some(kept),
            unsettled => counted(found, unsettled),
        });
    }
}

/// FOUND_ROWS() of a client behind its statement, whose backend has this; `unsettled` is what that
/// had before, where the statement may have left it.
pub(crate) fn counted(found: u64, unsettled: Option<(u64, u64)>) -> Option<u64> {
    unsettled
        .is_none_or(|(before, _)| before != found)
        .then_some(found)
}
