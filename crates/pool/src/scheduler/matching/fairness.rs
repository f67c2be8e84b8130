//! Fairness between groups: all queues together are one line, and nobody's share of work lies idle.
//!
//! The problem: within a group, first come is first served, but groups are threads, and what each
//! gets done is what the kernel lets it and its backends do. With more threads than cores the
//! shares differ by half and more, so in a closed loop the clients of one group wait for twice as
//! long as those of another; and where most clients are in one group, the others' shares lie idle.
//! The mechanism: each group publishes since when the front of its queues waits ([`Fronts`]).
//! - A group whose front waits for clearly less than another's *yields*: it starts nothing from its
//!   queues until the other has caught up, but for [`SLACK_SHARE`]. So do its arrivals: where
//!   nobody waits, they wait because others do. A group with few clients would serve each at once
//!   while those of a group with many wait.
//! - The backends that may run statements at once are shared by the groups that start any
//!   ([`crate::scheduler::running`]): those that yield, or where nobody waits, leave theirs to the
//!   others.
//!
//! Invariants:
//! - a group yields only to one that gets on: it has started something within [`LIVE_MAX`]. One
//!   that is stuck (all its backends pinned, the server's locks) holds up nobody;
//! - what is published is a hint, read without waiting; one that comes late delays a statement by
//!   a turn, and does nothing else.
//!
//! It leaves alone: statements of clients that have a backend, and arrivals of high priority.

use crate::scheduler::fronts::{LOOK_EVERY, Look};
use crate::scheduler::matching::Matching;
use crate::scheduler::running_limit::{Oversubscribe, Turn};
use reactor::Time;
use std::sync::atomic::Ordering::Relaxed;

impl<S> Matching<'_, S> {
    /// True if this group starts nothing from its queues now, so that others catch up.
    pub(crate) fn yields(&mut self) -> bool {
        !self.waiting_count.is_empty() && self.is_ahead()
    }

    /// True if a statement that has just come goes behind those that wait in other groups.
    pub(crate) fn is_ahead(&mut self) -> bool {
        if self.shared.groups() < 2 {
            return false;
        }
        if self.now.since(self.running.look.get().at) >= LOOK_EVERY {
            self.look_at_others();
        }
        self.running.look.get().yields
    }

    /// Looks how this group stands to the others, and tells them.
    fn look_at_others(&mut self) {
        let (now, mine) = (self.now, self.publish_front());
        let yields = (self.shared.scheduling.fronts).yields(self.index, mine.min(now), now);
        let front = &self.shared.scheduling.fronts.0[self.index];
        front.runs.store(!yields && mine != Time::NEVER, Relaxed);
        let running = self.shared.scheduling.fronts.running();
        self.running.look.set(Look {
            at: now,
            yields,
            running,
        });
    }

    /// Tells the other groups how this one stands at the end of its turn; `statements`: how many
    /// it has had.
    pub(crate) fn publish(&mut self, statements: u64) {
        self.publish_front();
        if self.settings.oversubscribe == Oversubscribe::Auto {
            let turn = Turn {
                statements,
                is_limited: self.is_limited(),
                backends_max: self.settings.backends_max,
                now: self.now,
            };
            (self.shared.scheduling.running_limit).turn_ended(self.index, turn);
        }
        (self.shared.budget).note_idle(self.index, self.pools.unused());
    }

    /// True if somebody waits while as many statements run as may.
    fn is_limited(&self) -> bool {
        !self.waiting_count.is_empty() && !self.running.has_room(0, self.shared, self.settings)
    }

    /// Tells the others since when this group's front waits.
    fn publish_front(&mut self) -> Time {
        let since = match self.waiting_count.is_empty() {
            true => None,
            false => self.oldest_wait_to_serve(),
        };
        let since = since.unwrap_or(Time::NEVER);
        let front = &self.shared.scheduling.fronts.0[self.index];
        front.since.store(since.0, Relaxed);
        if since == Time::NEVER {
            front.runs.store(false, Relaxed);
        }
        since
    }
}

#[cfg(test)]
mod tests {
    use crate::scheduler::fronts::{Front, LOOK_EVERY};
    use crate::scheduler::matching::tests::{Bench, FOUR, NOW};
    use crate::scheduler::queue::QueueName;
    use reactor::Time;
    use std::sync::atomic::Ordering::Relaxed;

    const MS: u64 = 1_000_000;

    fn front(bench: &Bench, group: usize) -> &Front {
        &bench.shared.scheduling.fronts.0[group]
    }

    /// Sets the other group's front: waiting for, and having started something, so many
    /// milliseconds ago.
    fn other(bench: &Bench, waits: u64, started: u64) {
        let front = front(bench, 1);
        front.since.store(NOW.0 - waits * MS, Relaxed);
        front.started.store(NOW.0 - started * MS, Relaxed);
    }

    /// Queues a client of this group that has waited for so many milliseconds.
    fn waits(bench: &mut Bench, since: u64) {
        let client = bench.client(0, None);
        bench.waits(client, QueueName::Low, since * MS);
    }

    #[test]
    fn a_group_whose_front_waits_for_less_lets_the_other_catch_up() {
        let mut bench = Bench::among(FOUR, 2);
        waits(&mut bench, 10);
        other(&bench, 800, 1);
        assert!(bench.matching().yields());
        assert_eq!(front(&bench, 0).since.load(Relaxed), NOW.0 - 10 * MS);
        assert!(
            !front(&bench, 0).runs.load(Relaxed),
            "its share is the other's"
        );
    }

    #[test]
    fn a_group_that_waits_for_longest_runs_and_says_so() {
        let mut bench = Bench::among(FOUR, 2);
        waits(&mut bench, 800);
        other(&bench, 10, 1);
        assert!(!bench.matching().yields());
        assert!(front(&bench, 0).runs.load(Relaxed));
    }

    #[test]
    fn nobody_yields_to_a_group_that_is_stuck() {
        let mut bench = Bench::among(FOUR, 2);
        waits(&mut bench, 10);
        other(&bench, 800, 21);
        assert!(!bench.matching().yields());
        assert!(front(&bench, 0).runs.load(Relaxed));
    }

    #[test]
    fn arrivals_go_behind_those_who_wait_elsewhere_where_nobody_waits_here() {
        let mut bench = Bench::among(FOUR, 2);
        other(&bench, 40, 1);
        assert!(bench.matching().is_ahead());
        assert!(!bench.matching().yields(), "there is nothing to hold back");
        assert!(!front(&bench, 0).runs.load(Relaxed));
    }

    #[test]
    fn a_group_alone_is_never_ahead() {
        let mut bench = Bench::among(FOUR, 1);
        waits(&mut bench, 10);
        let mut matching = bench.matching();
        assert!(!matching.is_ahead() && !matching.yields());
        assert_eq!(
            matching.running.look.get().at,
            Time(0),
            "nobody is looked at"
        );
    }

    #[test]
    fn the_others_are_looked_at_now_and_then() {
        let mut bench = Bench::among(FOUR, 2);
        waits(&mut bench, 10);
        other(&bench, 800, 1);
        assert!(bench.matching().is_ahead());
        // The other has nobody waiting any more; that is seen at the next look.
        front(&bench, 1).since.store(Time::NEVER.0, Relaxed);
        let mut matching = bench.matching();
        matching.now = NOW + (LOOK_EVERY - std::time::Duration::from_nanos(1));
        assert!(matching.is_ahead());
        matching.now = NOW + LOOK_EVERY;
        assert!(!matching.is_ahead());
        assert_eq!(matching.running.look.get().running, 1, "this group alone");
    }

    #[test]
    fn a_front_is_published_until_nobody_waits() {
        let mut bench = Bench::among(FOUR, 2);
        front(&bench, 0).runs.store(true, Relaxed);
        let client = bench.client(0, None);
        bench.waits(client, QueueName::Low, 5 * MS);
        assert_eq!(bench.matching().publish_front(), Time(NOW.0 - 5 * MS));
        assert!(front(&bench, 0).runs.load(Relaxed));
        bench.forgets(client);
        assert_eq!(bench.matching().publish_front(), Time::NEVER);
        assert_eq!(front(&bench, 0).since.load(Relaxed), Time::NEVER.0);
        assert!(!front(&bench, 0).runs.load(Relaxed));
    }
}
