//! A client's place in line: since when its command waits, in which lane, and with what claim; and
//! when and as what the client has come ([`Arrival`]), for which a place has room.
//!
//! The place is named by the moment at which the command came, which no other command has. A
//! command keeps it when it leaves the lane and comes back (its backend was lost, something is
//! read back first), and until it is sent.
//!
//! Invariant: what stands in a lane has a place.

use crate::observe::programs::Program;
use crate::scheduler::lane::LaneName;
use crate::scheduler::priority::Priority;
use reactor::Time;
use std::time::Duration;

/// State of a command's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    /// It has none yet.
    No,
    /// It has, and does not stand in a lane.
    Outside,
    /// It stands in its lane.
    InLane,
}

/// Arrival of a client: since when it is connected, and the program that it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// Seconds of [`Time`], as bytes: those that a [`Place`] has left.
    seconds: [u8; 4],
    pub(crate) program: Program,
}

impl Arrival {
    /// Of a client that connects now.
    pub(crate) fn at(now: Time) -> Arrival {
        let seconds = u32::try_from(now.since(Time(0)).as_secs()).unwrap_or(u32::MAX);
        Arrival {
            seconds: seconds.to_ne_bytes(),
            program: Program::default(),
        }
    }

    /// When it has connected, to the second.
    pub(crate) fn time(self) -> Time {
        Time(0) + Duration::from_secs(u32::from_ne_bytes(self.seconds).into())
    }
}

/// A client's place in line.
#[derive(Debug)]
pub(crate) struct Place {
    since: Time,
    /// Times in a row that it may still use the high lane.
    tickets: u32,
    bytes: u32,
    held: Held,
    lane: LaneName,
    pub(crate) arrival: Arrival,
    /// Queue of its statements, if its session has named one.
    pub(crate) priority: Option<Priority>,
}

impl Place {
    /// Of a client that has said nothing yet.
    pub(crate) fn none(now: Time) -> Place {
        Place {
            since: now,
            arrival: Arrival::at(now),
            tickets: 0,
            bytes: 0,
            held: Held::No,
            lane: LaneName::Low,
            priority: None,
        }
    }

    /// Its command gets this place, unless it has one; whether it did.
    pub(crate) fn take(&mut self, next: Time) -> bool {
        let free = self.held == Held::No;
        if free {
            self.held = Held::Outside;
            self.since = next;
        }
        free
    }

    /// Its command has been sent, or is not to be sent: the next one gets a place of its own.
    pub(crate) fn give_up(&mut self) {
        // A login stands in its lane when its packet is used up.
        if !self.is_in_lane() {
            self.held = Held::No;
        }
    }

    /// Its command keeps the place of the packet before, which was used up.
    pub(crate) fn keep(&mut self) {
        if self.held == Held::No {
            self.held = Held::Outside;
        }
    }

    /// Its command, of so many bytes, stands in a lane now.
    pub(crate) fn enter(&mut self, lane: LaneName, since: Time, bytes: usize) {
        self.held = Held::InLane;
        self.lane = lane;
        self.since = since;
        self.bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
    }

    /// It stands in the high lane from now on, at the same place.
    pub(crate) fn raise(&mut self) {
        self.lane = LaneName::High;
    }

    /// It stands in the lane no more, and keeps its place.
    pub(crate) fn leave(&mut self) {
        if self.is_in_lane() {
            self.held = Held::Outside;
        }
    }

    /// True if it stands in a lane.
    pub(crate) fn is_in_lane(&self) -> bool {
        self.held == Held::InLane
    }

    /// True if its command has a place, in a lane or not.
    pub(crate) fn is_held(&self) -> bool {
        self.held != Held::No
    }

    /// True if the lane's entry of this moment is its own.
    pub(crate) fn stands_since(&self, since: Time) -> bool {
        self.is_in_lane() && self.since == since
    }

    /// Since when its command waits; names its place in the lane.
    pub(crate) fn since(&self) -> Time {
        self.since
    }

    /// The lane it waits in, or waited in last.
    pub(crate) fn lane(&self) -> LaneName {
        self.lane
    }

    /// Bytes of the command with which it waits.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes as usize
    }

    /// It may use the high lane so many times in a row.
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
        place.enter(LaneName::High, Time(5), 70);
        assert!(place.stands_since(Time(5)) && !place.stands_since(Time(9)));
        place.enter(LaneName::Low, Time(5), 70);
        place.raise();
        assert!(place.stands_since(Time(5)), "it is the same place");
        place.leave();
        assert!(place.is_held() && !place.is_in_lane());
        assert_eq!((place.since(), place.lane()), (Time(5), LaneName::High));
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
