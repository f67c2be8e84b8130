//! The commands of those that are pipelined: kept until they are answered.
//!
//! The problem: statements of several clients are in flight on a backend, and the one in front
//! changes the session in which the others run, or its backend has to be closed. What the others
//! would be answered is of no use. They are plain SELECTs, and their clients have heard nothing of
//! an answer: the pool can run them again. The mechanism: a backend keeps the bytes of each command
//! that is sent behind another one, in one queue in the order of the commands in flight; each of
//! these says how many are its own ([`crate::backend::InFlight::kept`]).
//!
//! Invariants: the queue is as long as the commands in flight say; a command is kept whole or not
//! at all; one that is longer than [`RIDER_MAX`] is pipelined with nobody. So a backend keeps no
//! more than `pipeline_max` times that.

use std::collections::VecDeque;

/// The longest command that may be pipelined.
pub(crate) const FOLLOWER_MAX: usize = 8 * 1024;
/// Memory of an empty queue that is kept for the next commands.
const SPARE_MAX: usize = 16 * 1024;

/// Bytes of the commands in flight that are pipelined behind another one.
#[derive(Debug, Default)]
pub(crate) struct Followers(VecDeque<u8>);

impl Followers {
    /// True if a command of this length may be pipelined.
    pub(crate) fn takes(len: usize) -> bool {
        len <= FOLLOWER_MAX
    }

    /// Keeps a command that is sent behind all others; gives how many bytes are kept of it.
    pub(crate) fn keep(&mut self, command: &[u8]) -> usize {
        if !Followers::takes(command.len()) {
            return 0;
        }
        self.0.extend(command);
        command.len()
    }

    /// Drops what was kept of the oldest command.
    pub(crate) fn drop_oldest(&mut self, kept: usize) {
        self.0.drain(..kept);
        if self.0.is_empty() && self.0.capacity() > SPARE_MAX {
            self.0 = VecDeque::new();
        }
    }

    /// Takes what was kept of the oldest command.
    pub(crate) fn take_oldest(&mut self, kept: usize) -> Vec<u8> {
        self.0.drain(..kept).collect()
    }

    /// Bytes of memory that it takes.
    pub(crate) fn capacity(&self) -> usize {
        self.0.capacity()
    }
}

#[cfg(test)]
impl Followers {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Aborted, Backend, ForBackend, InFlight, Purpose};
    use crate::group::tokens::ClientId;
    use reactor::{Slots, Time};
    use std::rc::Rc;
    use wire::command::ReplyShape;

    fn backend() -> Backend<()> {
        Backend::of_tests(Time(1), Rc::default())
    }

    fn keys() -> Vec<ClientId> {
        let mut slots = Slots::default();
        (0..4).map(|number| slots.insert(number)).collect()
    }

    fn sends(backend: &mut Backend<()>, owner: ClientId, command: &[u8]) {
        let kept = backend.flight.keep_for_followers(command);
        let statement = InFlight::own(Some(owner), Purpose::Statement, ReplyShape::Results);
        backend.flight.expect(InFlight { kept, ..statement });
    }

    #[test]
    fn who_is_pipelined_is_given_back_in_order_with_its_command() {
        let (mut backend, keys) = (backend(), keys());
        sends(&mut backend, keys[0], b"");
        for (owner, command) in [(1, b"first"), (2, b"secnd"), (3, b"third")] {
            sends(&mut backend, keys[owner], command);
        }
        backend.flight.take_answered().unwrap();
        backend.flight.take_answered().unwrap();
        let followers = backend.flight.abort_followers(Some(keys[0]));
        let expected = [(keys[2], b"secnd"), (keys[3], b"third")];
        assert_eq!(
            followers,
            expected.map(|(key, text)| (key, Aborted::RunsAgain(text.to_vec())))
        );
        assert!(
            backend.flight.keeps_no_command() && backend.flight.abort_followers(None).is_empty()
        );
        assert_eq!(backend.flight.len(), 2, "the replies are still to come");
        assert!(backend.flight.iter().all(|c| c.owner.is_none()));
        backend.flight.take_answered().unwrap();
    }

    #[test]
    fn what_has_been_answered_in_part_is_not_run_again() {
        let (mut backend, keys) = (backend(), keys());
        sends(&mut backend, keys[0], b"begun");
        sends(&mut backend, keys[1], b"behind");
        backend.flight.summary_mut().len = 1;
        let followers = backend.flight.abort_followers(None);
        let behind = Aborted::RunsAgain(b"behind".to_vec());
        assert_eq!(followers, [(keys[0], Aborted::HasBegun), (keys[1], behind)]);
    }

    #[test]
    fn who_has_several_commands_in_flight_is_parted_once_by_its_statement() {
        let (mut backend, keys) = (backend(), keys());
        sends(&mut backend, keys[0], b"");
        let own = InFlight::own(Some(keys[1]), ForBackend::Clearing, ReplyShape::Results);
        backend.flight.expect(own);
        sends(&mut backend, keys[1], b"statement");
        backend.flight.take_answered().unwrap();
        let again = Aborted::RunsAgain(b"statement".to_vec());
        assert_eq!(backend.flight.abort_followers(None), [(keys[1], again)]);
    }

    #[test]
    fn what_needs_the_session_of_this_backend_is_not_run_again() {
        let (mut backend, keys) = (backend(), keys());
        sends(&mut backend, keys[0], b"rides");
        sends(&mut backend, keys[1], b"");
        backend.flight.take_answered().unwrap();
        let followers = backend.flight.abort_followers(None);
        assert_eq!(followers, [(keys[1], Aborted::OwnsSession)]);
    }

    #[test]
    fn a_command_is_kept_up_to_its_bound() {
        let mut followers = Followers::default();
        assert_eq!(followers.keep(&[7; FOLLOWER_MAX]), FOLLOWER_MAX);
        assert_eq!(followers.keep(&[7; FOLLOWER_MAX + 1]), 0);
        assert!(Followers::takes(FOLLOWER_MAX) && !Followers::takes(FOLLOWER_MAX + 1));
        for _ in 1..64 {
            followers.keep(&[7; FOLLOWER_MAX]);
        }
        assert!(followers.capacity() <= 2 * 64 * FOLLOWER_MAX);
        for _ in 0..64 {
            followers.drop_oldest(FOLLOWER_MAX);
        }
        assert!(followers.0.is_empty() && followers.capacity() <= SPARE_MAX);
    }
}
