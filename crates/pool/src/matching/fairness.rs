//! Fairness between groups: all lanes together are one line, and nobody's share of work lies idle.
//!
//! The problem: within a group, first come is first served, but groups are threads, and what each
//! gets done is what the kernel lets it and its backends do. With more threads than cores the
//! shares differ by half and more, so in a closed loop the clients of one group wait for twice as
//! long as those of another; and where most clients are in one group, the others' shares lie idle.
//! The mechanism: each group publishes since when the front of its lanes waits ([`Fronts`]).
//! - A group whose front waits for clearly less than another's *yields*: it starts nothing from its
//!   lanes until the other has caught up, but for [`SLACK_SHARE`]. So do its arrivals: where nobody
//!   waits, they wait because others do. A group with few clients would serve each at once while
//!   those of a group with many wait.
//! - The backends that may run statements at once are shared by the groups that start any
//!   ([`crate::running`]): those that yield, or where nobody waits, leave theirs to the others.
//!
//! Invariants:
//! - a group yields only to one that gets on: it has started something within [`LIVE_MAX`]. One
//!   that is stuck (all its backends pinned, the server's locks) holds up nobody;
//! - what is published is a hint, read without waiting; one that comes late delays a statement by
//!   a turn, and does nothing else.
//!
//! It leaves alone: statements of clients that hold a lease, and arrivals of high priority.

use crate::matching::Matching;
use crate::queue::fronts::{LOOK_EVERY, Look};
use reactor::Time;
use std::sync::atomic::Ordering::Relaxed;

impl<S> Matching<'_, S> {
    /// Whether this group starts nothing from its lanes now, so that others catch up.
    pub(crate) fn yields(&mut self) -> bool {
        !self.line.is_empty() && self.is_ahead()
    }

    /// Whether a statement that has just come goes behind those that wait in other groups.
    pub(crate) fn is_ahead(&mut self) -> bool {
        if self.shared.groups < 2 {
            return false;
        }
        let (now, look) = (self.now, &self.running.look);
        if now.since(look.get().at) >= LOOK_EVERY {
            let mine = self.publish_front();
            let yields = self.shared.fronts.yields(self.index, mine.min(now), now);
            let front = &self.shared.fronts.0[self.index];
            front.runs.store(!yields && mine != Time::NEVER, Relaxed);
            let running = self.shared.fronts.running();
            look.set(Look {
                at: now,
                yields,
                running,
            });
        }
        look.get().yields
    }

    /// Tells the others since when this group's front waits.
    pub(crate) fn publish_front(&mut self) -> Time {
        let since = self.oldest_wait_to_serve().unwrap_or(Time::NEVER);
        let front = &self.shared.fronts.0[self.index];
        front.since.store(since.0, Relaxed);
        if since == Time::NEVER {
            front.runs.store(false, Relaxed);
        }
        since
    }
}
