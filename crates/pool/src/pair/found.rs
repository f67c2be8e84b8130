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
//! A backend can be told the number: a query of no table that finds as many rows goes in front
//! ([`Pair::put_found_rows`]), up to [`TOLD_MAX`]. That is done where code asks for FOUND_ROWS(),
//! and in front of what may count or not, once a client of that account has asked for the number:
//! whoever never asks pays nothing. It is not done where anything else would show it: in a
//! transaction, or where its client has conditions there, or a ROW_COUNT() that cannot be told.
//!
//! What is said here of a text was compared with MariaDB 10.11 and MySQL 9.7.
//!
//! Invariant: a client's number is known, or its backend has it, or it is neither and a question is
//! refused; it is never another client's.

use crate::backend::{Backend, InFlight, Purpose};
use crate::client::Client;
use crate::pair::Pair;
#[cfg(doc)]
use session::found::TOLD_MAX;
use session::found::query_that_finds;
use session::last_statement::COUNTS;
use session::read_back::{Answer, Properties};
use sql::classify::Reads;
use wire::attributes::put_query;
use wire::command::ReplyShape;

impl<S> Client<S> {
    /// Whether the backend of its next statement can be told its FOUND_ROWS(): the one that it has
    /// got, or whichever it gets.
    pub(crate) fn may_be_told_found(&self, lease: Option<&Backend<S>>) -> bool {
        let free = !self.is_held() && !self.is_begin_deferred();
        let plain = lease.is_none_or(Backend::is_outside_transactions);
        free && plain && self.last.found_rows.to_tell().is_some()
    }
}

impl<S> Backend<S> {
    /// Whether a query on it is in no transaction, and begins none that was said to be of a kind.
    fn is_outside_transactions(&self) -> bool {
        !self.in_transaction() && !self.transaction.is_announced()
    }
}

impl<S> Pair<'_, S> {
    /// Whether the backend can be told the client's FOUND_ROWS() in front of a statement that may
    /// leave it.
    pub(super) fn may_tell_found(&self) -> bool {
        let (client, backend) = (&*self.client, &*self.backend);
        let last = &client.last;
        let plain = backend.is_outside_transactions() && !client.is_begin_deferred();
        let alone = backend
            .flight()
            .iter()
            .all(|c| c.purpose != Purpose::Statement);
        let own = last.is_native(Reads::DIAGNOSTICS) && last.has_conditions();
        let counts = last.is_native(Reads::ROW_COUNT) && !last.row_count.is_to_be_told();
        let known = last.found_rows.to_tell().is_some();
        plain && alone && known && !own && !counts
    }

    /// Writes a query that finds as many rows as the client's FOUND_ROWS() says.
    pub(super) fn put_found_rows(&mut self, out: &mut Vec<u8>) {
        let (client, backend) = (&mut *self.client, &mut *self.backend);
        let Some(rows) = client.last.found_rows.to_tell() else {
            return;
        };
        client.last.disown(COUNTS.union(Reads::DIAGNOSTICS));
        client.last.own(Reads::FOUND_ROWS);
        backend.found = Some(rows);
        let purpose = Purpose::Restore(false);
        backend.expect(InFlight::own(
            Some(self.owner),
            purpose,
            ReplyShape::Results,
        ));
        put_query(out, backend.form, query_that_finds(rows).as_bytes());
    }

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
