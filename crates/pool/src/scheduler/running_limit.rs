//! Limit of statements that run at once in all groups, where the pool finds the number itself.
//!
//! [`HillClimb`] finds it from throughput; here is what it sees. Each group publishes at the end of
//! its turns how many statements it has had and whether some wait for the limit. The first group
//! whose turn ends after the end of a window adds these up, and has the next window's limit. A
//! window lasts for [`WINDOW`] and [`STATEMENTS_MIN`] statements, and not longer than
//! [`WINDOW_MAX`]: few long statements say little.
//!
//! Invariants: a group waits for no other; where the limit is a fixed number, nothing is done here.

use crate::scheduler::hill_climb::HillClimb;
use reactor::Time;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// The setting of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Oversubscribe {
    /// Excess: statements besides one for each core.
    By(usize),
    /// The pool looks for the number.
    Auto,
}

/// A window lasts at least so long, with so many statements, or so long.
const WINDOW: Duration = Duration::from_millis(100);
const STATEMENTS_MIN: u64 = 200;
const WINDOW_MAX: Duration = Duration::from_secs(1);

/// Statements for each core that the search begins with: what the servers' own pools run by
/// default.
const BEGINS_WITH: usize = 4;

/// The most for each core.
const PER_CORE_MAX: usize = 64;

/// Report of a group at the end of a turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    /// Statements that it has had since its start.
    pub(crate) statements: u64,
    /// Others wait, and as many run as may.
    pub(crate) is_limited: bool,
    /// The setting.
    pub(crate) backends_max: usize,
    pub(crate) now: Time,
}

/// Figures published by one group; alone on its cache lines, because its group writes it in each
/// turn.
#[derive(Debug, Default)]
#[repr(align(128))]
struct OfGroup {
    statements: AtomicU64,
    /// Turns in which it had some, and those of them at whose end others waited for the limit.
    turns: AtomicU64,
    limited: AtomicU64,
}

/// Sums over the groups.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    statements: u64,
    turns: u64,
    limited: u64,
}

/// The search, and where its window began.
#[derive(Debug)]
struct Search {
    climb: HillClimb,
    began: Time,
    before: Sums,
}

/// The limit, and how it is found.
#[derive(Debug)]
pub(crate) struct RunningLimit {
    groups: Box<[OfGroup]>,
    /// The most, whatever `backends_max` is.
    most: usize,
    now: AtomicUsize,
    /// Moment at which the window may end at the earliest.
    ends: AtomicU64,
    search: Mutex<Search>,
}

impl RunningLimit {
    /// Limit for this many groups, of which as many as there are cores run at once.
    pub(crate) fn new(groups: usize, cores: usize) -> RunningLimit {
        let most = cores * PER_CORE_MAX;
        let climb = HillClimb::new(cores, most, cores * BEGINS_WITH);
        RunningLimit {
            groups: (0..groups).map(|_| OfGroup::default()).collect(),
            most,
            now: AtomicUsize::new(climb.running_max()),
            ends: AtomicU64::new(0),
            search: Mutex::new(Search {
                climb,
                began: Time::default(),
                before: Sums::default(),
            }),
        }
    }

    /// Statements that may run at once.
    pub(crate) fn now(&self) -> usize {
        self.now.load(Relaxed)
    }

    /// Takes the figures of a group's ended turn, and ends the window when its time is up.
    pub(crate) fn turn_ended(&self, group: usize, turn: Turn) {
        let mine = &self.groups[group];
        if mine.statements.load(Relaxed) == turn.statements {
            return;
        }
        let add = |number: &AtomicU64| number.store(number.load(Relaxed) + 1, Relaxed);
        mine.statements.store(turn.statements, Relaxed);
        add(&mine.turns);
        if turn.is_limited {
            add(&mine.limited);
        }
        if turn.now.0 >= self.ends.load(Relaxed) {
            self.end_window(turn.now, turn.backends_max);
        }
    }

    fn end_window(&self, now: Time, backends_max: usize) {
        // Another group is at it.
        let Ok(mut search) = self.search.try_lock() else {
            return;
        };
        let sums = self.sums();
        let lasted = now.since(search.began);
        let statements = sums.statements.saturating_sub(search.before.statements);
        if lasted < WINDOW || statements < STATEMENTS_MIN && lasted < WINDOW_MAX {
            return;
        }
        let turns = sums.turns.saturating_sub(search.before.turns);
        let limited = sums.limited.saturating_sub(search.before.limited);
        let is_limited = limited * 2 >= turns;
        // After a silence it says nothing of the limit.
        let is_whole = lasted < WINDOW_MAX * 2;
        let throughput = statements as f64 / lasted.as_secs_f64();
        let highest = backends_max.min(self.most);
        search.climb.bound(highest);
        (search.climb).window_ended(throughput, is_limited && is_whole);
        (search.began, search.before) = (now, sums);
        self.now.store(search.climb.running_max(), Relaxed);
        self.ends.store((now + WINDOW).0, Relaxed);
    }

    fn sums(&self) -> Sums {
        let mut sums = Sums::default();
        for group in &self.groups {
            sums.statements += group.statements.load(Relaxed);
            sums.turns += group.turns.load(Relaxed);
            sums.limited += group.limited.load(Relaxed);
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two groups on two cores.
    fn limit() -> RunningLimit {
        RunningLimit::new(2, 2)
    }

    fn at(ms: u64) -> Time {
        Time(0) + Duration::from_millis(ms)
    }

    fn turn(statements: u64, is_limited: bool, ms: u64) -> Turn {
        Turn {
            statements,
            is_limited,
            backends_max: 20,
            now: at(ms),
        }
    }

    #[test]
    fn it_begins_with_the_default_and_stays_while_nobody_waits() {
        let limit = limit();
        assert_eq!(limit.now(), 8);
        for ms in 1..5000 {
            limit.turn_ended(0, turn(ms * 10, false, ms));
            assert_eq!(limit.now(), 8);
        }
    }

    #[test]
    fn where_statements_wait_a_gain_raises_it_up_to_the_backends() {
        let limit = limit();
        let (mut done, mut most) = ([0_u64; 2], 0);
        for ms in 0..20_000_u64 {
            let group = usize::from(ms % 2 == 1);
            done[group] += limit.now() as u64;
            limit.turn_ended(group, turn(done[group], true, ms));
            most = most.max(limit.now());
            assert!((2..=20).contains(&limit.now()));
        }
        assert_eq!(most, 20);
        assert!(limit.now() >= 14, "{}", limit.now());
    }

    #[test]
    fn a_window_has_enough_statements_or_is_long() {
        let limit = limit();
        let began = |limit: &RunningLimit| limit.search.lock().unwrap().began;
        limit.turn_ended(0, turn(1, true, 100));
        assert_eq!(began(&limit), at(0));
        limit.turn_ended(0, turn(199, true, 200));
        assert_eq!(began(&limit), at(0));
        limit.turn_ended(1, turn(1, true, 201));
        assert_eq!(began(&limit), at(201));
        // Few statements: after a second.
        limit.turn_ended(1, turn(2, true, 1200));
        assert_eq!(began(&limit), at(201));
        limit.turn_ended(1, turn(3, true, 1201));
        assert_eq!(began(&limit), at(1201));
        // A turn without a statement is none.
        limit.turn_ended(1, turn(3, true, 9000));
        assert_eq!(began(&limit), at(1201));
    }
}
