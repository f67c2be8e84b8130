//! How much each connection did: sums over connections, for the report's lines on fairness.
//!
//! A seat counts on whatever is asked, for a script may end a connection after every N events of
//! it. So a checkpoint only notes where each seat stands ([`Marks`]), and the next sum is over what
//! was added since. A run without checkpoints has no marks, and pays nothing for them.
//!
//! Invariant: each seat that was ever open is in each sum once, whether it is connected, being
//! opened, or waits to be.

use super::{Connection, Group};
use crate::control::Letter;
use crate::opener::Opener;
use crate::seat::Seat;
use crate::stats::Stats;
use reactor::{Key, Slots};
use std::time::Duration;

/// Where each seat of a group stood at the last checkpoint: its events and its executing time.
#[derive(Debug)]
pub(super) struct Marks {
    /// Index of the group's first seat, and how many it has.
    first: u32,
    seats: u32,
    /// By seat; empty until the first checkpoint.
    at: Vec<(u32, Duration)>,
}

impl Marks {
    pub(super) fn new(first: u32, seats: u32) -> Marks {
        Marks {
            first,
            seats,
            at: Vec::new(),
        }
    }

    fn place(&self, seat: &Seat) -> usize {
        (seat.index - self.first) as usize
    }

    /// What a seat has done since its last mark.
    fn since(&self, seat: &Seat) -> (u64, Duration) {
        let mark = self.at.get(self.place(seat)).copied();
        let (events, busy) = mark.unwrap_or_default();
        (
            (seat.events - events).into(),
            seat.busy.saturating_sub(busy),
        )
    }

    /// Marks where a seat stands.
    fn set(&mut self, seat: &Seat) {
        self.at.resize(self.seats as usize, (0, Duration::ZERO));
        let place = self.place(seat);
        self.at[place] = (seat.events, seat.busy);
    }
}

impl Group {
    /// Forgets what was counted.
    pub(super) fn reset(&mut self) {
        self.bench.stats = Stats::default();
        for key in self.connections.keys() {
            if let Some(connection) = self.connections.get_mut(key) {
                connection.seat.events = 0;
                connection.seat.busy = Duration::ZERO;
            }
        }
    }

    /// Hands over what was counted, with sums over connections since the last checkpoint.
    pub(super) fn checkpoint(&mut self) {
        let mut counted = self.counted();
        for seat in seats(&self.connections, &self.opener) {
            let (events, busy) = self.marks.since(seat);
            counted.tally.add(events, busy);
            self.marks.set(seat);
        }
        self.tell(Letter::Counted(counted));
    }

    pub(super) fn retire_idle(&mut self, key: Key) {
        if self.connections.get(key).is_some_and(Connection::is_idle) {
            self.retire(key);
        }
    }

    /// Ends a connection that has done its part.
    fn retire(&mut self, key: Key) {
        if let Some(mut connection) = self.connections.remove(key) {
            connection.quit(&mut self.bench.net);
            self.connected -= 1;
            let (events, busy) = self.marks.since(&connection.seat);
            self.tally.add(events, busy);
        }
    }

    /// Closes everything and hands over the last numbers.
    pub(super) fn close_all(mut self) {
        let mut counted = self.counted();
        counted.unfinished = self.bench.executing.into();
        let mut tally = self.tally;
        for seat in seats(&self.connections, &self.opener) {
            let (events, busy) = self.marks.since(seat);
            tally.add(events, busy);
        }
        counted.tally = tally;
        for key in self.connections.keys() {
            let connection = self.connections.remove(key);
            if let Some(mut connection) = connection.filter(|connection| !connection.is_opening()) {
                connection.quit(&mut self.bench.net);
            }
        }
        self.tell(Letter::Ended(counted));
    }
}

/// All seats that are open or ever were.
fn seats<'a>(
    connections: &'a Slots<Connection>,
    opener: &'a Opener,
) -> impl Iterator<Item = &'a Seat> {
    let waiting = opener.waiting().filter(|seat| seat.was_open());
    connections
        .iter()
        .map(|(_, connection)| connection)
        .filter(|connection| !connection.is_opening() || connection.seat.was_open())
        .map(|connection| &connection.seat)
        .chain(waiting)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn a_mark_parts_what_was_before_from_what_comes_after() {
        let mut marks = Marks::new(10, 2);
        let mut seats = [10u32, 11].map(|index| Seat::new(Random::new(1, index.into()), index));
        let done = |seat: &mut Seat, events, ms| {
            seat.events += events;
            seat.busy += Duration::from_millis(ms);
        };
        done(&mut seats[1], 3, 30);
        assert_eq!(marks.since(&seats[1]), (3, Duration::from_millis(30)));
        marks.set(&seats[1]);
        assert_eq!(marks.since(&seats[1]), (0, Duration::ZERO));
        done(&mut seats[0], 1, 10);
        done(&mut seats[1], 4, 40);
        assert_eq!(marks.since(&seats[0]), (1, Duration::from_millis(10)));
        assert_eq!(marks.since(&seats[1]), (4, Duration::from_millis(40)));
    }
}
