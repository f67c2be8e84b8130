//! Order in which groups start statements: the one whose front has waited for longest goes first.
//!
//! These are the values that groups publish, and what follows from them; `fairness.rs` asks.
//!
//! Invariant: a group writes its own front alone, and reads the others' without waiting.

use reactor::Time;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// A group that has started nothing from its queues for this long is not waited for.
const LIVE_MAX: Duration = Duration::from_millis(20);

/// Fronts may differ by this share of the longest wait (one in so many).
const SLACK_SHARE: u32 = 6;

/// Fronts may differ by this much in any case; less than this nobody notices.
const SLACK_MIN: Duration = Duration::from_millis(2);

/// One group's front; alone on its cache lines, because its group writes it in each turn.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Front {
    /// Arrival of the one that waits for longest; [`Time::NEVER`] when nobody waits.
    pub(crate) since: AtomicU64,
    /// Moment at which something was started from the queues last.
    pub(crate) started: AtomicU64,
    /// Somebody waits and the group does not yield.
    pub(crate) runs: AtomicBool,
}

/// Moments since which the front of each group's queues waits.
#[derive(Debug)]
pub(crate) struct Fronts(pub(crate) Box<[Front]>);

impl Fronts {
    /// Fronts of this many groups, in none of which anybody waits.
    #[must_use]
    pub(crate) fn new(groups: usize) -> Fronts {
        let nobody = || Front {
            since: AtomicU64::new(Time::NEVER.0),
            started: AtomicU64::new(0),
            runs: AtomicBool::new(false),
        };
        Fronts((0..groups).map(|_| nobody()).collect())
    }

    /// Groups that start statements from their queues at present.
    pub(crate) fn running(&self) -> usize {
        let runs = |front: &&Front| front.runs.load(Relaxed);
        self.0.iter().filter(runs).count()
    }

    /// Notes that group `index` has started something from its queues.
    pub(crate) fn gets_on(&self, index: usize, now: Time) {
        self.0[index].started.store(now.0, Relaxed);
    }

    /// True if statements have to wait at present: one that did was started only just now, in any
    /// group. That nobody waits at this moment is no sign of leisure: with short statements the
    /// queues are empty every other turn.
    pub(crate) fn anybody_waits(&self, now: Time) -> bool {
        let just_now = |front: &Front| now.since(Time(front.started.load(Relaxed))) < LIVE_MAX;
        self.0.iter().any(just_now)
    }

    /// True if group `index`, whose front waits since `mine`, lets others go first.
    pub(crate) fn yields(&self, index: usize, mine: Time, now: Time) -> bool {
        let others = self.0.iter().enumerate().filter(|(i, _)| *i != index);
        let live =
            others.filter(|(_, front)| now.since(Time(front.started.load(Relaxed))) < LIVE_MAX);
        let oldest = live.map(|(_, front)| front.since.load(Relaxed)).min();
        let oldest = Time(oldest.unwrap_or(Time::NEVER.0));
        let slack = (now.since(oldest) / SLACK_SHARE).max(SLACK_MIN);
        oldest != Time::NEVER && mine > oldest + slack
    }
}

/// Interval at which a group looks at the others.
pub(crate) const LOOK_EVERY: Duration = Duration::from_micros(250);

/// Last look of a group at the others.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Look {
    pub(crate) at: Time,
    pub(crate) yields: bool,
    /// Groups that started statements then, this one included.
    pub(crate) running: usize,
}

impl Look {
    /// Moment at which a group that yields looks again.
    pub(crate) fn next(&self) -> Time {
        match self.yields {
            true => self.at + LOOK_EVERY * 2,
            false => Time::NEVER,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time(10_000_000_000);

    fn ago(ms: u64) -> Time {
        NOW - Duration::from_millis(ms)
    }

    /// Fronts that wait for so many milliseconds and have started something so many ago.
    fn fronts(all: &[(u64, u64)]) -> Fronts {
        let fronts = Fronts::new(all.len());
        for (front, (waits, started)) in fronts.0.iter().zip(all) {
            front.since.store(ago(*waits).0, Relaxed);
            front.started.store(ago(*started).0, Relaxed);
        }
        fronts
    }

    #[test]
    fn who_is_far_ahead_yields_to_one_that_gets_on() {
        let fronts = fronts(&[(800, 1), (400, 1), (770, 1)]);
        assert!(!fronts.yields(0, ago(800), NOW), "it waits for longest");
        assert!(fronts.yields(1, ago(400), NOW));
        assert!(!fronts.yields(2, ago(770), NOW), "within the slack");
    }

    #[test]
    fn nobody_yields_to_one_that_is_stuck_or_has_nobody_waiting() {
        let stuck = fronts(&[(800, 21), (400, 1)]);
        assert!(!stuck.yields(1, ago(400), NOW));
        let alone = Fronts::new(2);
        assert!(!alone.yields(0, ago(400), NOW));
        alone.0[1].started.store(NOW.0, Relaxed);
        assert!(!alone.yields(0, ago(400), NOW), "its queues are empty");
    }

    #[test]
    fn a_queue_that_is_empty_for_a_moment_is_no_leisure() {
        let busy = fronts(&[(0, 19), (0, 500)]);
        busy.0
            .iter()
            .for_each(|f| f.since.store(Time::NEVER.0, Relaxed));
        assert!(busy.anybody_waits(NOW));
        assert!(!fronts(&[(0, 20), (0, 500)]).anybody_waits(NOW), "stuck");
        assert!(!Fronts::new(2).anybody_waits(NOW), "idle");
    }

    #[test]
    fn an_arrival_comes_after_those_who_wait_elsewhere() {
        let busy = fronts(&[(40, 1), (0, 1)]);
        busy.0[1].since.store(Time::NEVER.0, Relaxed);
        assert!(busy.yields(1, NOW, NOW));
        assert!(!busy.yields(0, ago(40), NOW));
        let calm = fronts(&[(1, 1), (0, 1)]);
        assert!(!calm.yields(1, NOW, NOW), "a wait that nobody notices");
    }

    #[test]
    fn short_waits_are_not_compared() {
        let fronts = fronts(&[(3, 1), (2, 1)]);
        assert!(!fronts.yields(1, ago(2), NOW));
    }
}
