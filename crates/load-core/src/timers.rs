//! Timers: a heap with one small entry for each connection that waits.
//!
//! Entries are not taken back. Whoever is woken looks whether there is still a reason, and goes to
//! sleep again where the reason has moved on; so a connection that is answered a thousand times
//! within its patience costs one entry and one look, not a thousand.

use reactor::Time;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// Things by the time at which they are due.
#[derive(Debug)]
pub struct Timers<T> {
    heap: BinaryHeap<Reverse<Entry<T>>>,
}

#[derive(Debug)]
struct Entry<T> {
    due: Time,
    what: T,
}

impl<T> Default for Timers<T> {
    fn default() -> Self {
        Timers {
            heap: BinaryHeap::new(),
        }
    }
}

impl<T> Timers<T> {
    /// Adds an item that is due at `due`.
    pub fn add(&mut self, due: Time, what: T) {
        self.heap.push(Reverse(Entry { due, what }));
    }

    /// The one that has been due for longest.
    pub fn take(&mut self, now: Time) -> Option<(Time, T)> {
        if self.next_due() > now {
            return None;
        }
        let Reverse(Entry { due, what }) = self.heap.pop()?;
        Some((due, what))
    }

    /// Moment of the next timer.
    pub fn next_due(&self) -> Time {
        self.heap
            .peek()
            .map_or(Time::NEVER, |Reverse(entry)| entry.due)
    }

    /// All that wait, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.heap.iter().map(|Reverse(entry)| &entry.what)
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.due.cmp(&other.due)
    }
}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.due == other.due
    }
}

impl<T> Eq for Entry<T> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_comes_first_and_not_before_its_time() {
        let mut timers = Timers::default();
        assert_eq!(timers.next_due(), Time::NEVER);
        for (due, what) in [(30, 'c'), (10, 'a'), (20, 'b')] {
            timers.add(Time(due), what);
        }
        assert_eq!(timers.next_due(), Time(10));
        assert_eq!(timers.take(Time(9)), None);
        assert_eq!(timers.take(Time(25)), Some((Time(10), 'a')));
        assert_eq!(timers.take(Time(25)), Some((Time(20), 'b')));
        assert_eq!(timers.take(Time(25)), None);
        assert_eq!(timers.iter().collect::<String>(), "c");
        assert_eq!(timers.take(Time(30)), Some((Time(30), 'c')));
        assert_eq!(timers.next_due(), Time::NEVER);
    }
}
