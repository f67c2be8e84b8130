//! The pace at which connections are opened.
//!
//! A group opens one connection each `gap`. When its turns come late it may catch up, but by a
//! tenth of a second at most: a pause must not become a storm.

use reactor::Time;
use std::time::Duration;

/// Delay that a pace may catch up.
const CATCH_UP: Duration = Duration::from_millis(100);
/// Turns for the sake of the pace come no closer than this.
const TURN_MIN: Duration = Duration::from_millis(1);

/// Says when the next may begin.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    gap: Duration,
    next: Time,
}

impl Pace {
    /// `per_second` from `start` on; 0 is as fast as possible.
    pub fn new(per_second: f64, start: Time) -> Pace {
        let gap = if per_second > 0.0 {
            Duration::from_secs_f64(1.0 / per_second)
        } else {
            Duration::ZERO
        };
        Pace { gap, next: start }
    }

    /// Takes one if its time has come.
    pub fn take(&mut self, now: Time) -> bool {
        if self.next > now {
            return false;
        }
        self.next = self.next.max(now - CATCH_UP) + self.gap;
        true
    }

    /// Moment to ask again.
    pub fn due(&self, now: Time) -> Time {
        self.next.max(now + TURN_MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(pace: &mut Pace, now: Time) -> u32 {
        (0..10_000)
            .take_while(|_| pace.take(now))
            .fold(0, |n, _| n + 1)
    }

    #[test]
    fn a_rate_is_kept() {
        let start = Time(1_000_000_000);
        let mut pace = Pace::new(1_000.0, start);
        let total: u32 = (0..1_000)
            .map(|ms| taken(&mut pace, start + Duration::from_millis(ms)))
            .sum();
        assert_eq!(total, 1_000);
        assert!(pace.due(start + Duration::from_millis(999)) > start + Duration::from_millis(999));
    }

    #[test]
    fn a_pause_is_caught_up_by_a_tenth_of_a_second_only() {
        let start = Time(1_000_000_000);
        let mut pace = Pace::new(1_000.0, start);
        let caught_up = taken(&mut pace, start + Duration::from_secs(10));
        assert!((100..=101).contains(&caught_up), "{caught_up}");
    }

    #[test]
    fn no_rate_is_no_bound() {
        let mut pace = Pace::new(0.0, Time(5));
        assert_eq!(taken(&mut pace, Time(5)), 10_000);
    }
}
