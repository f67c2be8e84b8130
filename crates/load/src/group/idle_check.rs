//! Check that a group has nothing left to do, and has forgotten no connection before.
//!
//! The problem: a run that ends after so many events ends when each group says that it has none
//! left. A group that waits for something that never comes would keep the run from ending.
//!
//! The mechanism: whatever a group waits for is an answer of the server, a connection that is being
//! opened (which has a time limit), or something that [`Group::due`] knows the time of: a
//! timer, an arrival, a slot to be opened. With none of them nothing can ever happen in it, so it
//! is finished, whatever is left over. And in builds with assertions each turn of a small group
//! checks that all its connections are in one of these places, and that what is counted in passing
//! is what there is.

use super::{Connection, Group};
use load_core::model::Loop;
use reactor::{Key, Time};
use std::collections::HashSet;

/// The most connections of a group that are looked after one by one.
const LOOKED_AFTER_MAX: usize = 64;

impl Group {
    /// True when all events have run, or this group can run none of those that are left.
    pub(super) fn is_finished(&self) -> bool {
        let context = &self.context;
        if !context.events.is_bounded() || context.executing > 0 || !self.starting.is_empty() {
            return false;
        }
        (context.events.is_used_up() && context.work.is_done()) || self.waits_for_nothing()
    }

    /// True when nothing can happen here any more but by an order.
    fn waits_for_nothing(&self) -> bool {
        self.context.running
            && self.context.executing == 0
            && self.opener.in_flight() == 0
            && self.due() == Time::NEVER
    }

    /// Checks that nobody is forgotten.
    ///
    /// # Panics
    /// When somebody is, which is a fault of this program.
    pub(super) fn look_after_all(&self) {
        if self.connections.len() <= LOOKED_AFTER_MAX && self.end.is_none() {
            self.check_counts();
            self.check_patience();
            self.check_rest();
        }
    }

    fn count(&self, is_meant: impl Fn(&Connection) -> bool) -> usize {
        let all = self.connections.iter();
        all.filter(|(_, connection)| is_meant(connection)).count()
    }

    /// Checks that counts kept in passing agree with the slots.
    fn check_counts(&self) {
        let opening = self.count(Connection::is_opening);
        assert_eq!(self.opener.out() as usize, self.connections.len());
        assert_eq!(self.opener.in_flight() as usize, opening);
        assert_eq!(self.connected as usize, self.connections.len() - opening);
        let executing = self.count(Connection::is_executing);
        assert_eq!(self.context.executing as usize, executing);
        let coming = self.count(|c| c.is_opening() && c.slot.repeats > 0);
        let hung_up = self.opener.waiting().filter(|slot| slot.repeats > 0);
        assert_eq!(
            self.context.work.repeating as usize,
            coming + hung_up.count()
        );
        let timed: HashSet<Key> = self.opening.iter().map(|(_, key)| *key).collect();
        for (key, connection) in self.connections.iter() {
            assert!(
                !connection.is_opening() || timed.contains(&key),
                "no time limit for {connection:?}"
            );
        }
    }

    /// Checks that each connection that waits for an answer has a timer for its patience.
    fn check_patience(&self) {
        if self.context.plan.model.give_up.is_none() {
            return;
        }
        let watched: HashSet<Key> = self.context.work.watched().collect();
        for (key, connection) in self.connections.iter() {
            let is_repeating = connection.is_opening() && connection.slot.repeats > 0;
            assert!(
                !(connection.is_executing() || is_repeating) || watched.contains(&key),
                "nobody looks after the patience of {connection:?}"
            );
        }
    }

    /// Checks that each idle connection will be found while there is something to do.
    fn check_rest(&self) {
        let context = &self.context;
        if !context.running || context.events.is_used_up() {
            return;
        }
        let found: HashSet<Key> = match context.plan.model.drive {
            Loop::Closed => self.starting.iter().copied().collect(),
            Loop::Open { .. } | Loop::Active(_) => context.work.idle.iter().copied().collect(),
            Loop::Thinking(_) => context.work.pausing().collect(),
        };
        for (key, connection) in self.connections.iter() {
            assert!(
                !connection.is_idle() || found.contains(&key),
                "nobody finds {connection:?}"
            );
        }
    }
}
