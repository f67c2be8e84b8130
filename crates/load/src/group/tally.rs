//! Sums over connections, for the report's lines on fairness.
//!
//! A slot counts on whatever is asked, for a script may end a connection after every N events of
//! it. So a checkpoint only notes where each slot stands ([`Marks`]), and the next sum is over what
//! was added since. A run without checkpoints has no marks, and pays nothing for them.
//!
//! Invariant: each slot that was ever open is in each sum once, whether it is connected, being
//! opened, or waits to be.

use super::{Connection, Group};
use load_core::connection_slot::ConnectionSlot;
use load_core::control::Message;
use load_core::opener::Opener;
use load_core::stats::Stats;
use reactor::{Key, Slots};
use std::time::Duration;

/// Events and executing time of each slot of a group at the last checkpoint.
#[derive(Debug)]
pub(super) struct Marks {
    /// Index of the group's first slot, and how many it has.
    first: u32,
    slots: u32,
    /// By slot; empty until the first checkpoint.
    at: Vec<(u32, Duration)>,
}

impl Marks {
    pub(super) fn new(first: u32, slots: u32) -> Marks {
        Marks {
            first,
            slots,
            at: Vec::new(),
        }
    }

    fn place(&self, slot: &ConnectionSlot) -> usize {
        (slot.index - self.first) as usize
    }

    /// Events and executing time of a slot since its last mark.
    fn since(&self, slot: &ConnectionSlot) -> (u64, Duration) {
        let mark = self.at.get(self.place(slot)).copied();
        let (events, busy) = mark.unwrap_or_default();
        (
            (slot.events - events).into(),
            slot.busy.saturating_sub(busy),
        )
    }

    /// Marks where a slot stands.
    fn set(&mut self, slot: &ConnectionSlot) {
        self.at.resize(self.slots as usize, (0, Duration::ZERO));
        let place = self.place(slot);
        self.at[place] = (slot.events, slot.busy);
    }
}

impl Group {
    /// Forgets what was counted.
    pub(super) fn reset(&mut self) {
        self.context.stats = Stats::default();
        for key in self.connections.keys() {
            if let Some(connection) = self.connections.get_mut(key) {
                connection.slot.events = 0;
                connection.slot.busy = Duration::ZERO;
            }
        }
    }

    /// Hands over what was counted, with sums over connections since the last checkpoint.
    pub(super) fn checkpoint(&mut self) {
        let mut counted = self.counted();
        for slot in slots(&self.connections, &self.opener) {
            let (events, busy) = self.marks.since(slot);
            counted.tally.add(events, busy);
            self.marks.set(slot);
        }
        self.tell(Message::Counted(counted));
    }

    /// Ends a connection that has done its part.
    pub(super) fn retire_idle(&mut self, key: Key) {
        let is_idle = self.connections.get(key).is_some_and(Connection::is_idle);
        if is_idle && let Some(mut connection) = self.connections.remove(key) {
            connection.quit(&mut self.context.net);
            self.connected -= 1;
            let (events, busy) = self.marks.since(&connection.slot);
            self.tally.add(events, busy);
        }
    }

    /// Closes everything and hands over the last numbers.
    pub(super) fn close_all(mut self) {
        let mut counted = self.counted();
        counted.unfinished = self.context.executing.into();
        let mut tally = self.tally;
        for slot in slots(&self.connections, &self.opener) {
            let (events, busy) = self.marks.since(slot);
            tally.add(events, busy);
        }
        counted.tally = tally;
        for key in self.connections.keys() {
            let connection = self.connections.remove(key);
            if let Some(mut connection) = connection.filter(|connection| !connection.is_opening()) {
                connection.quit(&mut self.context.net);
            }
        }
        self.tell(Message::Ended(counted));
    }
}

/// All slots that are open or ever were.
fn slots<'a>(
    connections: &'a Slots<Connection>,
    opener: &'a Opener,
) -> impl Iterator<Item = &'a ConnectionSlot> {
    let waiting = opener.waiting().filter(|slot| slot.was_open());
    connections
        .iter()
        .map(|(_, connection)| connection)
        .filter(|connection| !connection.is_opening() || connection.slot.was_open())
        .map(|connection| &connection.slot)
        .chain(waiting)
}

#[cfg(test)]
mod tests {
    use super::*;
    use load_core::random::Random;

    #[test]
    fn a_mark_parts_what_was_before_from_what_comes_after() {
        let mut marks = Marks::new(10, 2);
        let mut slots =
            [10u32, 11].map(|index| ConnectionSlot::new(Random::new(1, index.into()), index));
        let done = |slot: &mut ConnectionSlot, events, ms| {
            slot.events += events;
            slot.busy += Duration::from_millis(ms);
        };
        done(&mut slots[1], 3, 30);
        assert_eq!(marks.since(&slots[1]), (3, Duration::from_millis(30)));
        marks.set(&slots[1]);
        assert_eq!(marks.since(&slots[1]), (0, Duration::ZERO));
        done(&mut slots[0], 1, 10);
        done(&mut slots[1], 4, 40);
        assert_eq!(marks.since(&slots[0]), (1, Duration::from_millis(10)));
        assert_eq!(marks.since(&slots[1]), (4, Duration::from_millis(40)));
    }
}
