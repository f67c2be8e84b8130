//! Time as a group sees it: nanoseconds on the monotonic clock, read once per turn.
//!
//! A plain number, so that a simulation can make its own, and so that a deadline costs eight bytes.

use std::ops::{Add, Sub};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

/// A moment: nanoseconds since an arbitrary origin, the same for all threads of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// A moment that never comes.
    pub const NEVER: Time = Time(u64::MAX);

    /// The moment now.
    #[must_use]
    pub fn now() -> Time {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
        Time(seconds * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0))
    }

    /// Time since `earlier`; zero when that is later.
    #[must_use]
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The moment so long before this one; the first of all where there is none.
    #[must_use]
    pub fn ago(self, age: Duration) -> Time {
        let nanos = u64::try_from(age.as_nanos()).unwrap_or(u64::MAX);
        Time(self.0.saturating_sub(nanos))
    }
}

/// The time of day: how long ago 1970 began in UTC.
#[must_use]
pub fn utc_now() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    let nanos = u32::try_from(now.tv_nsec).unwrap_or(0);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), nanos)
}

/// Waits so long, in a thread that serves nobody: for what has no event to wait for.
pub fn pause(time: Duration) {
    let (_sender, never): (SyncSender<()>, Receiver<()>) = sync_channel(0);
    let _ = never.recv_timeout(time);
}

impl Add<Duration> for Time {
    type Output = Time;
    fn add(self, duration: Duration) -> Time {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Time(self.0.saturating_add(nanos))
    }
}

impl Sub<Duration> for Time {
    type Output = Time;
    fn sub(self, duration: Duration) -> Time {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Time(self.0.saturating_sub(nanos))
    }
}

/// Seconds since 1970 by the clock on the wall, for what other machines compare with theirs.
#[must_use]
pub fn wall_clock() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_add_and_subtract_without_wrapping() {
        let second = Duration::from_secs(1);
        assert_eq!(Time(5) + second, Time(1_000_000_005));
        assert_eq!(Time(5) - second, Time(0));
        assert_eq!(Time::NEVER + second, Time::NEVER);
        assert_eq!(Time(7).since(Time(9)), Duration::ZERO);
        assert!(Time::now() <= Time::now());
    }
}
