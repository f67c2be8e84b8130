//! A lane: where statements wait for a backend, first come, first served.
//!
//! FIFO gives the tail: with N clients in a closed loop everybody waits N statements, nobody more.
//! Clients that leave while they wait are not searched for; their entries are passed over when they
//! come to the front ([`Lane::front`] asks the owner whether an entry still stands).
//!
//! Invariant: entries are in the order of their arrival, so the front is always the oldest.

use reactor::{Key, Time};
use std::collections::VecDeque;

/// One that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    /// The client.
    pub client: Key,
    /// Since when.
    pub since: Time,
}

/// A waiting line.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    line: VecDeque<Waiting>,
}

impl Lane {
    /// Puts one at the end.
    pub(crate) fn push(&mut self, waiting: Waiting) {
        self.line.push_back(waiting);
    }

    /// Puts one back at the front, whose turn came but could not be used.
    pub(crate) fn push_front(&mut self, waiting: Waiting) {
        self.line.push_front(waiting);
    }

    /// The first that `stands`; those in front of it that do not are dropped.
    pub(crate) fn front(&mut self, mut stands: impl FnMut(&Waiting) -> bool) -> Option<Waiting> {
        while let Some(first) = self.line.front() {
            if stands(first) {
                return Some(*first);
            }
            self.line.pop_front();
        }
        None
    }

    /// Takes the front out.
    pub(crate) fn pop(&mut self) -> Option<Waiting> {
        self.line.pop_front()
    }

    /// Entries, those that no longer stand included.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.line.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(n: u32) -> Waiting {
        Waiting {
            client: Key::from_parts(n, 0),
            since: Time(u64::from(n)),
        }
    }

    #[test]
    fn first_come_first_served_and_leavers_are_passed_over() {
        let mut lane = Lane::default();
        (0..4).for_each(|n| lane.push(waiting(n)));
        let stays = |w: &Waiting| w.since.0 != 0 && w.since.0 != 2;
        assert_eq!(lane.front(stays), Some(waiting(1)));
        assert_eq!(lane.pop(), Some(waiting(1)));
        assert_eq!(lane.front(stays), Some(waiting(3)));
        lane.push_front(waiting(9));
        assert_eq!(lane.front(stays), Some(waiting(9)));
        assert_eq!(lane.len(), 2);
    }
}
