//! Prepared statements: which ones a connection has, and which ones a server refuses to prepare.
//!
//! The problem: a million connections that prepare everything at the start would run into the
//! server's `max_prepared_stmt_count` (16,382 by default) before the first statement. The
//! mechanism: a connection prepares a statement when it first needs it; where the server says no,
//! the statement goes as text, and a group asks again a second later at the earliest.
//!
//! Invariants: a connection without prepared statements costs nothing here; a refusal is counted
//! among the errors by its number, and never fails the statement.

use load_core::errors::Fault;
use reactor::Time;
use std::time::Duration;

/// Error of a server with as many prepared statements as it allows, over all connections.
const TOO_MANY: u32 = 1461;
/// Error of a server that does not prepare this kind of statement: BEGIN, for MySQL.
const UNSUPPORTED: u32 = 1295;
/// Time for which a group does not ask again.
const PAUSE: Duration = Duration::from_secs(1);

/// True for an error after which the statement goes as text.
pub(crate) fn is_refusal(fault: &Fault) -> bool {
    [TOO_MANY, UNSUPPORTED].contains(&fault.code)
}

/// The statements that a connection has prepared: their numbers in the script, in order, each with
/// the server's id.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    ids: Vec<(u32, u32)>,
}

impl Prepared {
    /// The server's id of the statement with this number.
    pub(crate) fn id(&self, key: u32) -> Option<u32> {
        let found = self.ids.binary_search_by_key(&key, |(key, _)| *key);
        found.ok().map(|at| self.ids[at].1)
    }

    /// Keeps an id; there is room for no more than there are, for a million of these stand around.
    pub(crate) fn insert(&mut self, key: u32, id: u32) {
        match self.ids.binary_search_by_key(&key, |(key, _)| *key) {
            Ok(at) => self.ids[at].1 = id,
            Err(at) => {
                self.ids.reserve_exact(1);
                self.ids.insert(at, (key, id));
            }
        }
    }
}

/// Refusals of the server that a group knows of.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    /// Statements of the script that this server does not prepare.
    unsupported: Vec<u16>,
    /// Moment before which the server, having been full, is not asked.
    full_until: Time,
}

impl Refusals {
    /// False where asking to prepare the statement would be in vain.
    pub(crate) fn allow(&self, statement: u16, now: Time) -> bool {
        now >= self.full_until && !self.unsupported.contains(&statement)
    }

    /// Notes a refusal, see [`is_refusal`].
    pub(crate) fn note(&mut self, code: u32, statement: u16, now: Time) {
        if code == UNSUPPORTED {
            self.unsupported.push(statement);
        } else {
            self.full_until = now + PAUSE;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_found_by_their_number_whatever_the_order() {
        let mut prepared = Prepared::default();
        for (key, id) in [(5, 50), (1, 10), (9, 90), (5, 51)] {
            prepared.insert(key, id);
        }
        assert_eq!(
            [1, 5, 9].map(|key| prepared.id(key)),
            [10, 51, 90].map(Some)
        );
        assert_eq!(prepared.id(2), None);
    }

    #[test]
    fn a_refusal_holds_for_a_statement_or_for_a_while() {
        let (mut refusals, start) = (Refusals::default(), Time(1_000_000));
        assert!(refusals.allow(3, start));
        refusals.note(UNSUPPORTED, 3, start);
        assert!(!refusals.allow(3, start + PAUSE * 9));
        assert!(refusals.allow(4, start));
        refusals.note(TOO_MANY, 4, start);
        assert!(!refusals.allow(4, start));
        assert!(refusals.allow(4, start + PAUSE));
    }
}
