//! Room: how much clients hold of unfinished commands, who waits for more, and who is in the queue.
//!
//! The counts and queues behind `limits/unfinished.rs`, which says what they are for.
//! [`InputBudget`] is shared by all groups, [`Inputs`] is a group's own. Invariant: nobody here
//! knows a client, only its key and its id.

use crate::errors::reasons::{InputLimit, Refusal};
use crate::group::tokens::ClientId;
use reactor::Time;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::time::Duration;

/// Bytes of an unfinished command that any client may hold, and takes by an event of its socket.
pub(crate) const INPUT_FREE: usize = 16 * 1024;
/// Interval of looks for room while somebody waits for it: other groups give no notice.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// Bytes that the longest command takes besides itself: growth of its buffer and a packed piece.
const SLACK_DIVISOR: usize = 4;
const SLACK_MIN: usize = 1024 * 1024;

/// The bytes of unfinished commands of all groups, and their bound.
#[derive(Debug)]
pub(crate) struct InputBudget {
    /// Most bytes that all clients may hold.
    pub(crate) max: usize,
    /// The part of it that is the first client's.
    pub(crate) reserve: usize,
    /// Bytes that they hold: each group's sum as of its last publication.
    pub(crate) held: AtomicUsize,
    /// Clients that wait for room.
    pub(crate) waiting: AtomicUsize,
    /// The client that may use the reserve: its id, and 0 for nobody.
    first: AtomicU64,
}

impl InputBudget {
    /// A budget of `max` bytes, for commands of up to `command_max`.
    pub(crate) fn new(max: usize, command_max: usize) -> InputBudget {
        let slack = (command_max / SLACK_DIVISOR).max(SLACK_MIN);
        InputBudget {
            max,
            reserve: (command_max.saturating_add(slack)).min(max / 2),
            held: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            first: AtomicU64::new(0),
        }
    }

    /// The longest command that can be held, whatever the server takes.
    pub(crate) fn command_max(&self) -> usize {
        self.reserve
    }

    /// Refusal of a command of so many bytes, which can never be held.
    pub(crate) fn refusal(&self, len: usize) -> Refusal {
        let limit = InputLimit::Command(self.reserve);
        Refusal::Input { len, limit }
    }

    /// True if client number `id` may hold `more` bytes now.
    pub(crate) fn admits(&self, id: u32, more: usize) -> bool {
        let id = u64::from(id);
        let open = self.max - self.reserve;
        let held = self.held.load(Relaxed);
        held + more <= open
            || self.first.load(Relaxed) == id
            || self.first.compare_exchange(0, id, Relaxed, Relaxed).is_ok()
    }

    /// Frees the reserve if this client has it, which holds nothing any more.
    pub(crate) fn give_back(&self, id: u32) {
        let _ = (self.first).compare_exchange(u64::from(id), 0, Relaxed, Relaxed);
    }
}

/// Bytes of each client that are not counted: as many as a statement that waits in a queue may
/// have.
pub(crate) const HOLDER_MIN: usize = 4 * 1024;

/// State of a client that holds more than `HOLDER_MIN`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Client whose next bytes are read when they come.
    Reading,
    /// Client in the queue of those that are served once in a turn.
    InLine,
    /// Client that is being served, and may take this many bytes more.
    Served(usize),
    /// Client without room for more, since then.
    NoRoom(Time),
    /// Client whose long command waits until fewer are at the server, since then.
    BehindLong(Time),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Holder {
    pub(crate) standing: Standing,
    /// Bytes that are counted of it.
    pub(crate) counted: usize,
    /// Bytes that it held at the last sweep, if that found it.
    pub(crate) at_sweep: Option<usize>,
}

impl Default for Holder {
    fn default() -> Holder {
        Holder {
            standing: Standing::Reading,
            counted: 0,
            at_sweep: None,
        }
    }
}

/// The unfinished commands of a group.
#[derive(Debug, Default)]
pub(crate) struct Inputs {
    /// Bytes that its clients hold.
    pub(crate) held: usize,
    /// Bytes of that which the other groups know of.
    pub(crate) published: usize,
    /// Those who hold more than `HOLDER_MIN`.
    pub(crate) holders: BTreeMap<ClientId, Holder>,
    /// Clients that are served once in a turn.
    pub(crate) queue: VecDeque<ClientId>,
    /// Clients that wait for room, the first to come in front.
    pub(crate) no_room: VecDeque<ClientId>,
    /// Clients whose long command waits for others' to end, the first to come in front.
    pub(crate) behind_long: VecDeque<ClientId>,
}

impl Inputs {
    /// Bytes that the clients of the group hold.
    pub(crate) fn bytes(&self) -> usize {
        self.held
    }

    /// True if it says something that a client holds so much: it is more than all may hold, or
    /// somebody has held more.
    pub(crate) fn counts(&self, held: usize) -> bool {
        held > HOLDER_MIN || !self.holders.is_empty()
    }

    /// True if a client's bytes are not read though they are wanted.
    pub(crate) fn holds_up(&self, key: ClientId) -> bool {
        let standing = self.holders.get(&key).map(|holder| holder.standing);
        matches!(
            standing,
            Some(Standing::InLine | Standing::NoRoom(_) | Standing::BehindLong(_))
        )
    }

    /// True if a client waits until fewer long commands are at the server.
    pub(crate) fn is_behind_long(&self, key: ClientId) -> bool {
        let standing = self.holders.get(&key).map(|holder| holder.standing);
        matches!(standing, Some(Standing::BehindLong(_)))
    }

    /// True if somebody is to be served in the next turn.
    pub(crate) fn has_line(&self) -> bool {
        !self.queue.is_empty()
    }

    /// True if somebody waits for room, or behind long commands.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.no_room.is_empty() || !self.behind_long.is_empty()
    }

    /// Moment at which room must be looked for again.
    pub(crate) fn next_look(&self, now: Time) -> Time {
        match self.has_waiting() {
            true => now + LOOK_AGAIN,
            false => Time::NEVER,
        }
    }

    pub(crate) fn stand(&mut self, key: ClientId, standing: Standing) {
        self.holders.entry(key).or_default().standing = standing;
    }

    /// Queues a client to be served once in each turn, until it has what it wants.
    pub(crate) fn stand_in_line(&mut self, key: ClientId) {
        if !self.holds_up(key) {
            self.stand(key, Standing::InLine);
            self.queue.push_back(key);
        }
    }
}

/// Makes room for `more` bytes, without reserving much more than what has come.
pub(crate) fn make_room(bytes: &mut Vec<u8>, more: usize) {
    if bytes.len() < INPUT_FREE {
        bytes.reserve(more);
    } else if bytes.capacity() - bytes.len() < more {
        // Doubling would double what a long command costs.
        bytes.reserve_exact(room_for(bytes, more));
    }
}

/// Bytes by which room for `more` lengthens a buffer.
pub(crate) fn room_for(bytes: &Vec<u8>, more: usize) -> usize {
    match bytes.capacity() - bytes.len() < more {
        true => more.max(bytes.len() / SLACK_DIVISOR),
        false => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn one_client_at_a_time_may_use_the_reserve() {
        let budget = InputBudget::new(128 * MIB, 16 * MIB);
        assert_eq!(budget.reserve, 20 * MIB);
        assert!(budget.admits(1, 108 * MIB));
        assert_eq!(budget.first.load(Relaxed), 0, "nobody needed it");
        budget.held.store(108 * MIB, Relaxed);
        assert!(budget.admits(1, MIB), "it is the first");
        assert!(!budget.admits(2, MIB));
        budget.held.store(120 * MIB, Relaxed);
        assert!(budget.admits(1, MIB), "it stays that");
        budget.give_back(2);
        assert!(budget.admits(1, MIB), "another cannot give it back");
        budget.give_back(1);
        assert!(budget.admits(2, MIB), "whatever others hold");
        assert!(!budget.admits(1, MIB));
    }

    #[test]
    fn a_command_is_at_most_half_of_a_small_budget() {
        let budget = InputBudget::new(8 * MIB, 64 * MIB);
        assert_eq!(budget.command_max(), 4 * MIB);
        assert_eq!(InputBudget::new(MIB, usize::MAX).command_max(), MIB / 2);
    }

    #[test]
    fn room_is_made_for_what_comes_and_little_more() {
        let mut bytes = vec![0; 16 * MIB];
        bytes.shrink_to_fit();
        make_room(&mut bytes, 1);
        assert!(bytes.capacity() <= 20 * MIB, "{}", bytes.capacity());
        let mut bytes = Vec::new();
        make_room(&mut bytes, 100);
        assert!(bytes.capacity() <= 200, "{}", bytes.capacity());
    }
}
