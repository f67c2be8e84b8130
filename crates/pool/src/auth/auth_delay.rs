//! Failed authentications that are answered later.
//!
//! The problem: whoever guesses passwords must wait for each guess, and no thread may wait for it.
//! The mechanism: the client stands in state *Delayed*, nothing of it is read, and the turn that
//! comes when its time is up sends the error. A failed login is delayed by what its address has
//! earned ([`crate::auth::auth_failures`]) and then closed. A failed change of user is delayed by a
//! second on MariaDB, as the server itself does, and the client goes on.
//!
//! Invariant: at most [`DELAYED_MAX`] failed logins of a group wait; what comes on top of them is
//! told at once. Changes of user that wait are bounded by the group's clients.

use crate::group::tokens::ClientId;
use reactor::Time;
use std::collections::BTreeMap;
use wire::errors::ErrorCode;

/// Clients of one group whose error is held back at the same time.
const DELAYED_MAX: usize = 4096;

/// Fate of a client after its error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// End of its connection.
    End,
    /// Permission to send its next command.
    NextCommand,
}

/// A client that waits for the word that its authentication failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Delayed {
    pub(crate) key: ClientId,
    pub(crate) after: After,
    pub(crate) error: ErrorCode,
    pub(crate) text: Box<str>,
}

/// All of them, by the moment at which they hear it.
#[derive(Debug, Default)]
pub(crate) struct AuthDelays {
    /// By the moment at which each is due; the number keeps apart those of one moment.
    waiting: BTreeMap<(Time, u64), Delayed>,
    count: u64,
}

impl AuthDelays {
    /// Moment at which the next delayed error is due; `NEVER` without one.
    pub(crate) fn next(&self) -> Time {
        let first = self.waiting.first_key_value();
        first.map_or(Time::NEVER, |((at, _), _)| *at)
    }

    /// True if as many wait as may.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() >= DELAYED_MAX
    }

    /// Adds an error to be sent at this moment.
    pub(crate) fn push(&mut self, at: Time, delayed: Delayed) {
        self.count += 1;
        self.waiting.insert((at, self.count), delayed);
    }

    /// One whose time has come, the longest due first.
    pub(crate) fn pop(&mut self, now: Time) -> Option<Delayed> {
        if self.next() > now {
            return None;
        }
        self.waiting.pop_first().map(|(_, delayed)| delayed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delayed(number: u32) -> Delayed {
        Delayed {
            key: ClientId::from_parts(number, 0),
            after: After::End,
            error: wire::errors::ACCESS_DENIED,
            text: "no".into(),
        }
    }

    #[test]
    fn they_hear_when_their_time_has_come_and_in_its_order() {
        let mut delays = AuthDelays::default();
        assert_eq!((delays.next(), delays.pop(Time(99))), (Time::NEVER, None));
        for (at, number) in [(30, 1), (10, 2), (30, 3)] {
            delays.push(Time(at), delayed(number));
        }
        assert_eq!(delays.next(), Time(10));
        assert_eq!(delays.pop(Time(9)), None);
        assert_eq!(delays.pop(Time(10)), Some(delayed(2)));
        assert_eq!(delays.pop(Time(29)), None);
        let rest = [(); 3].map(|()| delays.pop(Time(40)));
        assert_eq!(rest, [Some(delayed(1)), Some(delayed(3)), None]);
    }

    #[test]
    fn as_many_wait_as_may() {
        let mut delays = AuthDelays::default();
        for number in 0..u32::try_from(DELAYED_MAX).unwrap() {
            assert!(!delays.is_full());
            delays.push(Time(5), delayed(number));
        }
        assert!(delays.is_full());
        assert!(delays.pop(Time(5)).is_some() && !delays.is_full());
    }
}
