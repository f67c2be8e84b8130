//! Connections that wait at the listeners, and when the next may come in.
//!
//! The pace alone; `arrivals.rs` accepts. A login under TLS takes the place of several others
//! ([`HANDSHAKE_LOGINS`]), because its handshake costs that much. Whether a connection wants TLS is
//! known only after it has come in, so the ones behind it wait for longer.
//!
//! Invariants: what was not let in for longer than [`BURST`] is not made up for, and nobody waits
//! for handshakes for longer than [`DEBT_MAX`].

use reactor::Time;
use std::time::Duration;

/// Arrears of admission older than this are not made up for.
const BURST: Duration = Duration::from_millis(2);
/// Logins without TLS that cost the machine as much as one with a full handshake: about 0.1 ms of
/// CPU against 0.8 ms with a P-256 key, at both ends together (decision 0029).
pub(crate) const HANDSHAKE_LOGINS: u32 = 8;
/// The longest time that handshakes which have begun keep the next login out.
const DEBT_MAX: Duration = Duration::from_millis(100);

/// Listeners with pending accepts, and when the next client may come in.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    pub(crate) pending: Vec<usize>,
    /// While statements wait: nobody is let in before.
    pub(crate) next_at: Time,
    /// Moment before which nobody is let in, after a failure.
    pub(crate) again_at: Time,
}

impl Arrivals {
    /// Notes that a connection waits at a listener.
    pub(crate) fn note_pending(&mut self, listener: usize) {
        if !self.pending.contains(&listener) {
            self.pending.push(listener);
        }
    }

    /// Time at which the pending accepts are to be looked at again.
    pub(crate) fn next(&self, gap: Duration) -> Time {
        if self.pending.is_empty() {
            Time::NEVER
        } else if gap == Duration::ZERO {
            self.again_at
        } else {
            self.again_at.max(self.next_at)
        }
    }

    /// True if one more may come in now, `gap` after the one before.
    pub(crate) fn may_enter(&mut self, now: Time, gap: Duration) -> bool {
        if gap == Duration::ZERO {
            return true;
        }
        if self.next_at > now {
            return false;
        }
        self.next_at = self.next_at.max(now - BURST) + gap;
        true
    }

    /// Charges the handshake of a login that was let in as one of those without.
    pub(crate) fn handshake_began(&mut self, now: Time, gap: Duration) {
        let owed = self.next_at.max(now - BURST) + gap * (HANDSHAKE_LOGINS - 1);
        self.next_at = owed.min(now + DEBT_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GAP: Duration = Duration::from_micros(500);

    /// Clients that may come in when the group has a turn every so often, for a second.
    fn entered(arrivals: &mut Arrivals, begin: Time, turn_every: Duration) -> u32 {
        let (mut now, mut entered) = (begin, 0);
        while now < begin + Duration::from_secs(1) {
            while arrivals.may_enter(now, GAP) {
                entered += 1;
            }
            now = now + turn_every;
        }
        entered
    }

    #[test]
    fn the_pace_is_kept_whatever_the_turns_are() {
        let begin = Time(5_000_000_000);
        for micros in [10, 300, 1000, 1999] {
            let every = Duration::from_micros(micros);
            let entered = entered(&mut Arrivals::default(), begin, every);
            // What the last two milliseconds would have allowed comes on top at the start.
            assert!((1990..=2004).contains(&entered), "{micros} us: {entered}");
        }
    }

    #[test]
    fn a_handshake_takes_the_place_of_several_logins() {
        let (mut arrivals, mut now) = (Arrivals::default(), Time(5_000_000_000));
        let (end, mut entered) = (now + Duration::from_secs(1), 0);
        while now < end {
            while arrivals.may_enter(now, GAP) {
                entered += 1;
                arrivals.handshake_began(now, GAP);
            }
            now = now + Duration::from_micros(300);
        }
        let paced = 2000 / HANDSHAKE_LOGINS;
        assert!((paced - 2..=paced + 2).contains(&entered), "{entered}");
    }

    #[test]
    fn handshakes_keep_nobody_out_for_long() {
        let (mut arrivals, now) = (Arrivals::default(), Time(5_000_000_000));
        for _ in 0..1000 {
            arrivals.handshake_began(now, GAP);
        }
        assert!(!arrivals.may_enter(now + (DEBT_MAX - GAP), GAP));
        assert!(arrivals.may_enter(now + DEBT_MAX, GAP));
        arrivals.handshake_began(now, Duration::ZERO);
        assert!(arrivals.may_enter(now, Duration::ZERO), "no pace");
    }

    #[test]
    fn what_a_long_turn_missed_is_not_made_up_for() {
        let mut arrivals = Arrivals::default();
        let entered = entered(
            &mut arrivals,
            Time(5_000_000_000),
            Duration::from_millis(100),
        );
        assert_eq!(entered, 10 * 5);
        assert!(
            arrivals.may_enter(Time(9_000_000_000), Duration::ZERO),
            "no pace"
        );
    }

    #[test]
    fn a_listener_is_noted_once_and_looked_at_when_one_may_enter() {
        let mut arrivals = Arrivals::default();
        assert_eq!(arrivals.next(GAP), Time::NEVER);
        arrivals.note_pending(3);
        arrivals.note_pending(3);
        assert_eq!(arrivals.pending, [3]);
        (arrivals.again_at, arrivals.next_at) = (Time(5), Time(9));
        assert_eq!(arrivals.next(Duration::ZERO), Time(5), "no statement waits");
        assert_eq!(arrivals.next(GAP), Time(9));
    }
}
