//! Which connection a group opens next, and when.
//!
//! The ramp opens every seat once, at the group's share of the connect rate and with a bound on how
//! many are being opened at once; a seat that fails stays empty. A connection that is lost later is
//! opened again, a second after each failure. The ramp gives up early where going on makes no
//! sense: at a limit of this machine, or after many failures in a row.
//!
//! Invariants: seats are handed out by [`Opener::next`] only, which keeps rate and bound; whoever
//! got one reports back exactly once by [`Opener::opened`] or [`Opener::failed`].

use crate::connection::Seat;
use crate::errors::Fault;
use crate::pace::Pace;
use crate::random::Random;
use reactor::Time;
use std::collections::VecDeque;
use std::time::Duration;

/// Failures in a row after which the ramp gives up.
const FAILURES_MAX: u32 = 64;
/// How long to wait before a lost connection is tried again.
const REOPEN_PAUSE: Duration = Duration::from_secs(1);
/// How long to wait when a Unix listener's line is full.
const BUSY_PAUSE: Duration = Duration::from_millis(10);

/// The seats of a group that are not connected.
#[derive(Debug)]
pub(crate) struct Opener {
    /// Seats never tried: so many, from this index on.
    fresh: u32,
    next_index: u32,
    seed: u64,
    /// Seats to be tried again, each not before its time.
    again: VecDeque<(Time, Seat)>,
    in_flight: u32,
    in_flight_max: u32,
    failures_in_row: u32,
    pace: Pace,
}

impl Opener {
    pub(crate) fn new(first: u32, seats: u32, seed: u64, in_flight_max: u32, pace: Pace) -> Opener {
        Opener {
            fresh: seats,
            next_index: first,
            seed,
            again: VecDeque::new(),
            in_flight: 0,
            in_flight_max,
            failures_in_row: 0,
            pace,
        }
    }

    /// A seat to be opened now, if there is one and its time has come.
    pub(crate) fn next(&mut self, now: Time) -> Option<Seat> {
        let is_again = self.again.front().is_some_and(|(due, _)| *due <= now);
        if self.in_flight >= self.in_flight_max || !(is_again || self.fresh > 0) {
            return None;
        }
        if !self.pace.take(now) {
            return None;
        }
        self.in_flight += 1;
        if is_again {
            return self.again.pop_front().map(|(_, seat)| seat);
        }
        let index = self.next_index;
        self.next_index += 1;
        self.fresh -= 1;
        Some(Seat {
            random: Random::new(self.seed, u64::from(index)),
            index,
            reopening: false,
            made: 0,
            events: 0,
            busy: Duration::ZERO,
        })
    }

    /// When [`Opener::next`] may have something.
    pub(crate) fn due(&self, now: Time) -> Time {
        if self.in_flight >= self.in_flight_max {
            return Time::NEVER;
        }
        if self.fresh > 0 {
            return self.pace.due(now);
        }
        match self.again.front() {
            Some((due, _)) => (*due).max(self.pace.due(now)),
            None => Time::NEVER,
        }
    }

    /// A seat is connected and logged in.
    pub(crate) fn opened(&mut self) {
        self.in_flight -= 1;
        self.failures_in_row = 0;
    }

    /// A seat could not be opened. True when that is to be counted as a failure.
    pub(crate) fn failed(&mut self, seat: Seat, fault: &Fault, now: Time) -> bool {
        self.in_flight -= 1;
        if fault.is_busy_listener() {
            self.again.push_front((now + BUSY_PAUSE, seat));
            return false;
        }
        self.failures_in_row += 1;
        if seat.reopening {
            self.again.push_back((now + REOPEN_PAUSE, seat));
        }
        if fault.is_own_limit() || self.failures_in_row >= FAILURES_MAX {
            self.fresh = 0;
        }
        true
    }

    /// An open connection was lost: it is to be opened again.
    pub(crate) fn lost(&mut self, seat: Seat, now: Time) {
        let seat = Seat {
            reopening: true,
            ..seat
        };
        self.again.push_back((now, seat));
    }

    /// True when every seat has been tried.
    pub(crate) fn is_settled(&self) -> bool {
        self.fresh == 0 && self.in_flight == 0 && self.again.iter().all(|(_, s)| s.reopening)
    }

    /// Opens nothing any more; the seats that wait are returned.
    pub(crate) fn close(&mut self) -> impl Iterator<Item = Seat> {
        self.fresh = 0;
        self.in_flight_max = 0;
        std::mem::take(&mut self.again)
            .into_iter()
            .map(|(_, seat)| seat)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    const START: Time = Time(1_000_000_000);

    fn opener(seats: u32, in_flight_max: u32) -> Opener {
        Opener::new(10, seats, 1, in_flight_max, Pace::new(0.0, START))
    }

    fn fault(errno: i32) -> Fault {
        Fault::system(&io::Error::from_raw_os_error(errno))
    }

    #[test]
    fn every_seat_is_tried_once_within_the_bound() {
        let mut opener = opener(3, 2);
        let first = opener.next(START).unwrap();
        let second = opener.next(START).unwrap();
        assert_eq!((first.index, second.index), (10, 11));
        assert!(opener.next(START).is_none());
        assert_eq!(opener.due(START), Time::NEVER);
        opener.opened();
        assert!(opener.failed(second, &fault(111), START));
        assert_eq!(opener.next(START).unwrap().index, 12);
        assert!(!opener.is_settled());
        opener.opened();
        assert!(opener.is_settled());
    }

    #[test]
    fn a_limit_of_this_machine_ends_the_ramp() {
        let mut opener = opener(1_000, 10);
        let seat = opener.next(START).unwrap();
        assert!(opener.failed(seat, &fault(crate::errors::EMFILE), START));
        assert!(opener.is_settled());
    }

    #[test]
    fn many_failures_in_a_row_end_the_ramp() {
        let mut opener = opener(1_000, 10);
        for _ in 0..FAILURES_MAX - 1 {
            let seat = opener.next(START).unwrap();
            opener.failed(seat, &fault(111), START);
        }
        assert!(!opener.is_settled());
        opener.next(START).unwrap();
        opener.opened();
        let seat = opener.next(START).unwrap();
        opener.failed(seat, &fault(111), START);
        assert!(
            !opener.is_settled(),
            "a success in between begins the count again"
        );
    }

    #[test]
    fn a_busy_listener_is_no_failure() {
        let mut opener = opener(1, 10);
        let seat = opener.next(START).unwrap();
        assert!(!opener.failed(seat, &fault(11), START));
        assert!(opener.next(START).is_none());
        assert!(!opener.is_settled());
        let later = START + BUSY_PAUSE;
        assert_eq!(opener.next(later).unwrap().index, seat.index);
    }

    #[test]
    fn a_lost_connection_is_opened_until_it_stands() {
        let mut opener = opener(1, 10);
        let seat = opener.next(START).unwrap();
        opener.opened();
        opener.lost(seat, START);
        assert!(opener.is_settled(), "the ramp is over all the same");
        let again = opener.next(START).unwrap();
        assert!(again.reopening);
        opener.failed(again, &fault(111), START);
        assert!(opener.next(START).is_none());
        assert_eq!(opener.due(START), START + REOPEN_PAUSE);
        assert!(opener.next(START + REOPEN_PAUSE).is_some());
        opener.failed(again, &fault(111), START);
        assert_eq!(opener.close().count(), 1);
        assert_eq!(opener.due(START), Time::NEVER);
    }
}
