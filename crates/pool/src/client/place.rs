//! A client's place in line: since when its command waits, in which queue, and with what claim; and
//! when and as what the client has come ([`Arrival`]), for which a place has room.
//!
//! The place is named by the moment at which the command came, which no other command has. A
//! command keeps it when it leaves the queue and comes back (its backend was lost, something is
//! read back first), and until it is sent.
//!
//! Invariant: what stands in a queue has a place.

use crate::observe::programs::Program;
use crate::scheduler::priority::Priority;
use crate::scheduler::queue::QueueName;
use reactor::Time;
use std::time::Duration;

/// State of a command's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    /// No place yet.
    No,
    /// Place outside of a queue.
    Outside,
    /// Place in its queue.
    InQueue,
}

/// Arrival of a client: since when it is connected, and the program that it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// Seconds of [`Time`], as bytes: those that a [`Place`] has left.
    seconds: [u8; 4],
    pub(crate) program: Program,
}

impl Arrival {
    /// Arrival of a client that connects now.
    pub(crate) fn at(now: Time) -> Arrival {
        let seconds = u32::try_from(now.since(Time(0)).as_secs()).unwrap_or(u32::MAX);
        Arrival {
            seconds: seconds.to_ne_bytes(),
            program: Program::default(),
        }
    }

    /// Moment at which it connected, to the second.
    pub(crate) fn time(self) -> Time {
        Time(0) + Duration::from_secs(u32::from_ne_bytes(self.seconds).into())
    }
}

/// A client's place in line.
#[derive(Debug)]
pub(crate) struct Place {
    since: Time,
    /// Times in a row that it may still use the high queue.
    tickets: u32,
    bytes: u32,
    held: Held,
    queue: QueueName,
    pub(crate) arrival: Arrival,
    /// Queue of its statements, if its session has named one.
    pub(crate) priority: Option<Priority>,
}

impl Place {
    /// Place of a client that has said nothing yet.
    pub(crate) fn none(now: Time) -> Place {
        Place {
            since: now,
            arrival: Arrival::at(now),
            tickets: 0,
            bytes: 0,
            held: Held::No,
            queue: QueueName::Low,
            priority: None,
        }
    }

    /// Gives its command the place `next`, unless it has one; `true` if it did.
    pub(crate) fn take(&mut self, next: Time) -> bool {
        let free = self.held == Held::No;
        if free {
            self.held = Held::Outside;
            self.since = next;
        }
        free
    }

    /// Frees the place of a command that has been sent, or is not to be sent: the next one gets its
    /// own.
    pub(crate) fn give_up(&mut self) {
        // A login stands in its queue when its packet is used up.
        if !self.is_in_queue() {
            self.held = Held::No;
        }
    }

    /// Keeps the place of the packet before, which was used up, for its command.
    pub(crate) fn keep(&mut self) {
        if self.held == Held::No {
            self.held = Held::Outside;
        }
    }

    /// Enters its command, of so many bytes, into a queue.
    pub(crate) fn enter(&mut self, queue: QueueName, since: Time, bytes: usize) {
        self.held = Held::InQueue;
        self.queue = queue;
        self.since = since;
        self.bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
    }

    /// Moves it to the high queue, at the same place.
    pub(crate) fn raise(&mut self) {
        self.queue = QueueName::High;
    }

    /// Takes it out of its queue; it keeps its place.
    pub(crate) fn leave(&mut self) {
        if self.is_in_queue() {
            self.held = Held::Outside;
        }
    }

    /// True if it stands in a queue.
    pub(crate) fn is_in_queue(&self) -> bool {
        self.held == Held::InQueue
    }

    /// True if its command has a place, in a queue or not.
    pub(crate) fn is_held(&self) -> bool {
        self.held != Held::No
    }

    /// True if the queue's entry of this moment is its own.
    pub(crate) fn stands_since(&self, since: Time) -> bool {
        self.is_in_queue() && self.since == since
    }

    /// Moment since which its command waits; names its place in the queue.
    pub(crate) fn since(&self) -> Time {
        self.since
    }

    /// Queue in which it waits, or waited last.
    pub(crate) fn queue(&self) -> QueueName {
        self.queue
    }

    /// Bytes of the command with which it waits.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes as usize
    }

    /// Grants this many uses of the high queue in a row.
    pub(crate) fn give_tickets(&mut self, tickets: u32) {
        self.tickets = tickets;
    }

    /// Number of tickets.
    pub(crate) fn tickets(&self) -> u32 {
        self.tickets
    }

    /// Uses one of them, if it has any.
    pub(crate) fn use_ticket(&mut self) -> bool {
        let has = self.tickets > 0;
        self.tickets -= u32::from(has);
        has
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_kept_until_the_command_is_sent() {
        let mut place = Place::none(Time(1));
        assert!(!place.is_held() && place.take(Time(5)));
        assert!(!place.take(Time(9)), "it has one");
        place.enter(QueueName::High, Time(5), 70);
        assert!(place.stands_since(Time(5)) && !place.stands_since(Time(9)));
        place.enter(QueueName::Low, Time(5), 70);
        place.raise();
        assert!(place.stands_since(Time(5)), "it is the same place");
        place.leave();
        assert!(place.is_held() && !place.is_in_queue());
        assert_eq!((place.since(), place.queue()), (Time(5), QueueName::High));
        assert_eq!(place.bytes(), 70);
        place.give_up();
        assert!(place.take(Time(9)));
        assert_eq!(place.since(), Time(9));
    }

    #[test]
    fn tickets_are_used_up() {
        let mut place = Place::none(Time(1));
        place.give_tickets(1);
        assert!(place.use_ticket());
        assert!(!place.use_ticket());
    }
}
