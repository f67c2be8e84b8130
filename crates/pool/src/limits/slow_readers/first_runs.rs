//! First runs of texts of a shape that none has ended of.
//!
//! The problem: where many clients that do not read come at once, each with a text of its own, all
//! backends run one of these before the first reader is known to be slow, and a client that comes
//! with its first statement waits until one of them is free. The mechanism: while no text of a
//! shape ([`shape`]) has ended, half of a group's backends run texts of it, each counted for
//! [`TRIAL_MAX`]: by then its reader has shown itself slow, or it takes long for another reason.
//!
//! Invariant: at most [`BEGUN_MAX`] runs are noted, none older than [`TRIAL_MAX`] when one more is.

use reactor::Time;
use sql::digest::{SHAPES, shape};
use std::collections::VecDeque;
use std::time::Duration;

/// A text that has not ended within so long is none of the short ones.
pub(crate) const TRIAL_MAX: Duration = Duration::from_millis(50);

/// First runs that are noted; beyond them the oldest counts no more.
const BEGUN_MAX: usize = 1024;

/// First runs of a group.
#[derive(Debug)]
pub(crate) struct FirstRuns {
    /// True for each shape of which a text has ended.
    ended: Vec<bool>,
    /// Shapes of texts that have begun to run, and when; the oldest first.
    begun: VecDeque<(usize, Time)>,
}

impl FirstRuns {
    /// None yet.
    pub(crate) fn new() -> FirstRuns {
        FirstRuns {
            ended: vec![false; SHAPES],
            begun: VecDeque::new(),
        }
    }

    /// Notes that a text of this digest begins to run, which counts if none of its shape has ended,
    /// or if it is like long ones; 0 is the digest of an unknown one.
    pub(crate) fn begin(&mut self, digest: u64, is_like_long: bool, now: Time) {
        let shape = shape(digest);
        if digest != 0 && (is_like_long || !self.ended[shape]) {
            while let Some((_, since)) = self.begun.front()
                && (now >= *since + TRIAL_MAX || self.begun.len() >= BEGUN_MAX)
            {
                self.begun.pop_front();
            }
            self.begun.push_back((shape, now));
        }
    }

    /// Notes that a text of this digest has ended.
    pub(crate) fn end(&mut self, digest: u64) {
        self.ended[shape(digest)] |= digest != 0;
    }

    /// True if a text of the shape of this one has ended, or nobody knows its shape.
    pub(crate) fn has_ended(&self, digest: u64) -> bool {
        digest == 0 || self.ended[shape(digest)]
    }

    /// Number of texts of the shape of this one that have begun and still count.
    pub(crate) fn begun(&self, digest: u64, now: Time) -> usize {
        let shape = shape(digest);
        let counts = |begun: &&(usize, Time)| begun.0 == shape && now < begun.1 + TRIAL_MAX;
        self.begun.iter().filter(counts).count()
    }

    /// Next moment at which one of them counts no more.
    pub(crate) fn next(&self, now: Time) -> Time {
        let next = self.begun.iter().map(|(_, since)| *since + TRIAL_MAX);
        next.filter(|at| *at > now).min().unwrap_or(Time::NEVER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time(1_000_000_000);
    /// Digests of one shape, and of another.
    const ONE: u64 = 1 << 24;
    const SAME: u64 = ONE | 1;
    const OTHER: u64 = 2 << 24;

    #[test]
    fn they_count_for_a_while_and_those_of_a_shape_that_has_ended_where_they_are_like_long_ones() {
        let mut runs = FirstRuns::new();
        for digest in [ONE, SAME, OTHER, 0] {
            runs.begin(digest, false, NOW);
        }
        let begun =
            |runs: &FirstRuns, now| [ONE, SAME, OTHER].map(|digest| runs.begun(digest, now));
        assert_eq!(begun(&runs, NOW), [2, 2, 1]);
        assert_eq!(runs.next(NOW), NOW + TRIAL_MAX);
        assert_eq!(begun(&runs, NOW + TRIAL_MAX), [0; 3]);
        assert_eq!(runs.next(NOW + TRIAL_MAX), Time::NEVER);
        runs.end(0);
        assert!(!runs.has_ended(ONE) && runs.has_ended(0));
        runs.end(SAME);
        assert!(runs.has_ended(ONE) && !runs.has_ended(OTHER));
        runs.begin(ONE, false, NOW);
        assert_eq!(begun(&runs, NOW), [2, 2, 1]);
        runs.begin(ONE, true, NOW);
        assert_eq!(begun(&runs, NOW), [3, 3, 1]);
    }

    #[test]
    fn those_that_count_no_more_are_forgotten() {
        let mut runs = FirstRuns::new();
        (0..100).for_each(|_| runs.begin(ONE, false, NOW));
        runs.begin(ONE, false, NOW + TRIAL_MAX);
        assert_eq!(runs.begun.len(), 1);
        (0..BEGUN_MAX).for_each(|_| runs.begin(OTHER, false, NOW + TRIAL_MAX));
        assert_eq!(runs.begun.len(), BEGUN_MAX);
        assert_eq!(
            runs.begun(ONE, NOW + TRIAL_MAX),
            0,
            "the oldest is forgotten"
        );
    }
}
