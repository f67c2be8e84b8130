//! The concurrency limit: how many backends of a group run statements at once.
//!
//! The problem: a server that runs many statements at once runs each of them slowly, and one that
//! runs few stands still when those few wait for a lock or a disk. The mechanism is that of the
//! servers' thread pools: new leases are granted while fewer than [`Group::busy_max`] backends run
//! something; a backend that has answered nothing for `stall_ms_max` no longer counts, so another
//! statement may start. Statements of clients that hold a lease are counted and not held back.
//!
//! Invariant: a backend is counted from the moment something is in flight on it until its queue is
//! empty, it stalls, or it is closed.

use crate::backend::Load;
use crate::group::Group;
use crate::queue::running_limit::{Oversubscribe, Turn};
use reactor::{Key, Net, Time};

impl<N: Net> Group<N> {
    /// Counts a backend that has something in flight, as one that runs statements.
    pub(crate) fn count_busy(&mut self, lease: Key) {
        let now = self.net.now();
        if let Some(backend) = self.backends.get_mut(lease)
            && backend.load == Load::None
            && !backend.flight().is_empty()
        {
            backend.load = Load::Counted;
            backend.busy_since = now;
            self.busy += 1;
        }
    }

    /// A backend that has answered nothing for `stall_max` no longer counts: others may run.
    pub(crate) fn discount_stalled(&mut self) {
        let (now, stall_max) = (self.net.now(), self.settings.stall_max);
        for key in self.backends.keys() {
            if let Some(backend) = self.backends.get_mut(key)
                && backend.load == Load::Counted
                && now.since(backend.busy_since) >= stall_max
            {
                backend.load = Load::Stalled;
                self.busy -= 1;
                self.counts.stalled += 1;
            }
        }
    }

    /// Tells what this turn says of the limit, where the pool looks for it itself.
    pub(crate) fn publish_turn(&self) {
        if self.settings.oversubscribe != Oversubscribe::Auto {
            return;
        }
        let turn = Turn {
            statements: self.counts.statements,
            is_limited: self.waiting > 0 && self.busy >= self.busy_max(),
            backends_max: self.settings.backends_max,
            now: self.net.now(),
        };
        self.shared.running_limit.turn_ended(self.index, turn);
    }

    /// When the next backend stalls, while somebody waits for it.
    pub(crate) fn next_stall(&self) -> Time {
        if self.waiting == 0 || self.busy < self.busy_max() {
            return Time::NEVER;
        }
        let backends = self.backends.iter();
        let counted = backends.filter(|(_, backend)| backend.load == Load::Counted);
        let oldest = counted.map(|(_, backend)| backend.busy_since).min();
        oldest.map_or(Time::NEVER, |oldest| oldest + self.settings.stall_max)
    }
}
