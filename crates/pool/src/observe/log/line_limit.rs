//! A limit on lines of one kind: who floods the pool must not flood its log.
//!
//! So many lines are let through in each second; the others are counted, and the count goes with
//! the next line that is let through, or is said by itself when there is none
//! ([`LineLimit::rest`]).
//! Nothing here knows a log; the group asks, with the time of its turn.

use reactor::Time;
use std::time::Duration;

/// Lines of one kind that a group logs in a second.
pub(crate) const LINES_PER_S_MAX: u32 = 10;
const SECOND: Duration = Duration::from_secs(1);

/// Lines of one kind.
#[derive(Debug, Default)]
pub(crate) struct LineLimit {
    /// The second that is counted.
    since: Time,
    lines: u32,
    omitted: u64,
}

impl LineLimit {
    /// True if a line may be logged, and then how many were left out before it.
    pub(crate) fn admit(&mut self, now: Time) -> Option<u64> {
        self.admit_of(now, LINES_PER_S_MAX)
    }

    /// Admits a line of a kind of which there may be so many in a second.
    pub(crate) fn admit_of(&mut self, now: Time, max: u32) -> Option<u64> {
        if now.since(self.since) >= SECOND {
            (self.since, self.lines) = (now, 0);
        }
        if self.lines >= max {
            self.omitted += 1;
            return None;
        }
        self.lines += 1;
        Some(std::mem::take(&mut self.omitted))
    }

    /// Lines that were left out and not told of, once their second is over.
    pub(crate) fn rest(&mut self, now: Time) -> Option<u64> {
        if self.omitted == 0 || now.since(self.since) < SECOND {
            return None;
        }
        Some(std::mem::take(&mut self.omitted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_lines_a_second_and_the_count_of_the_others() {
        let mut limit = LineLimit::default();
        let begin = Time(5_000_000_000);
        for _ in 0..LINES_PER_S_MAX {
            assert_eq!(limit.admit(begin), Some(0));
        }
        for _ in 0..7 {
            assert_eq!(limit.admit(begin + SECOND / 2), None);
        }
        assert_eq!(limit.rest(begin + SECOND / 2), None);
        assert_eq!(limit.admit(begin + SECOND), Some(7));
        assert_eq!(limit.rest(begin + 3 * SECOND), None);
    }

    #[test]
    fn a_limit_may_be_another_one() {
        let mut limit = LineLimit::default();
        let begin = Time(5_000_000_000);
        let admitted = (0..30).filter_map(|_| limit.admit_of(begin, 20));
        assert_eq!(admitted.count(), 20);
        assert_eq!(limit.admit_of(begin + SECOND, 1), Some(10));
        assert_eq!(limit.admit_of(begin + SECOND, 1), None);
    }

    #[test]
    fn what_was_left_out_is_told_though_nothing_follows() {
        let mut limit = LineLimit::default();
        let begin = Time(5_000_000_000);
        let admitted = (0..LINES_PER_S_MAX + 3).filter_map(|_| limit.admit(begin));
        assert_eq!(admitted.count(), LINES_PER_S_MAX as usize);
        assert_eq!(limit.rest(begin + SECOND), Some(3));
        assert_eq!(limit.rest(begin + 2 * SECOND), None);
    }
}
