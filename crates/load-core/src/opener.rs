//! Order and pace in which a group opens its connections.
//!
//! The ramp opens every slot once, at the group's share of the connect rate and with a bound on how
//! many are being opened at once; a slot that fails stays empty. A connection that is lost later is
//! opened again, a second after each failure. Those that we closed ourselves are opened again when
//! their time comes, at no rate but their own. The ramp gives up early where going on makes no
//! sense: at a limit of this machine, or after many failures in a row.
//!
//! How many may be out at all can change while it runs ([`Opener::allow`]); slots that are not
//! wanted for a while are parked.
//!
//! Invariants: slots are handed out by [`Opener::next`] only, which keeps rate and bound; whoever
//! got one reports back exactly once by [`Opener::opened`], [`Opener::failed`] or
//! [`Opener::abandoned`], and once more when what was opened ends.

use crate::connection_slot::ConnectionSlot;
use crate::errors::Fault;
use crate::pace::Pace;
use crate::random::Random;
use crate::timers::Timers;
use reactor::Time;
use std::time::Duration;

/// Failures in a row after which the ramp gives up.
const FAILURES_MAX: u32 = 64;
/// Pause before a lost connection is tried again.
const REOPEN_PAUSE: Duration = Duration::from_secs(1);
/// Pause when a Unix listener's queue is full.
pub const BUSY_PAUSE: Duration = Duration::from_millis(10);

/// The slots of a group that are not connected.
#[derive(Debug)]
pub struct Opener {
    /// Seats never tried: so many, from this index on.
    fresh: u32,
    next_index: u32,
    seed: u64,
    /// Seats to be tried again at the connect rate, each not before its time.
    again: Timers<ConnectionSlot>,
    /// Seats that we closed ourselves, to be opened at their time whatever the rate.
    returning: Timers<ConnectionSlot>,
    /// Seats that were open and are not wanted for now.
    parked: Vec<ConnectionSlot>,
    /// Seats that are being opened or open, and how many may be.
    out: u32,
    out_max: u32,
    in_flight: u32,
    in_flight_max: u32,
    failures_in_row: u32,
    pace: Pace,
}

impl Opener {
    /// An opener for slots from `first` on, of which at most `in_flight_max` connect at once.
    pub fn new(first: u32, slots: u32, seed: u64, in_flight_max: u32, pace: Pace) -> Opener {
        Opener {
            fresh: slots,
            next_index: first,
            seed,
            again: Timers::default(),
            returning: Timers::default(),
            parked: Vec::new(),
            out: 0,
            out_max: u32::MAX,
            in_flight: 0,
            in_flight_max,
            failures_in_row: 0,
            pace,
        }
    }

    /// Lets so many slots be open or being opened from now on. Who is open stays open.
    pub fn allow(&mut self, out_max: u32) {
        self.out_max = out_max;
    }

    /// Seats that are being opened or open.
    pub fn out(&self) -> u32 {
        self.out
    }

    /// Seats that are being opened.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Room for one more, at once and altogether.
    fn has_room(&self) -> bool {
        self.in_flight < self.in_flight_max && self.out < self.out_max
    }

    /// A slot to be opened now, if there is one and its time has come.
    pub fn next(&mut self, now: Time) -> Option<ConnectionSlot> {
        if !self.has_room() {
            return None;
        }
        let slot = match self.returning.take(now) {
            Some((_, slot)) => slot,
            None => self.next_paced(now)?,
        };
        self.in_flight += 1;
        self.out += 1;
        Some(slot)
    }

    /// Next slot that keeps to the connect rate: lost, parked, or never opened.
    fn next_paced(&mut self, now: Time) -> Option<ConnectionSlot> {
        let is_again = self.again.next_due() <= now;
        let is_any = is_again || self.fresh > 0 || !self.parked.is_empty();
        if !is_any || !self.pace.take(now) {
            return None;
        }
        if is_again {
            return self.again.take(now).map(|(_, slot)| slot);
        }
        if let Some(slot) = self.parked.pop() {
            return Some(slot);
        }
        let index = self.next_index;
        self.next_index += 1;
        self.fresh -= 1;
        Some(ConnectionSlot::new(
            Random::new(self.seed, index.into()),
            index,
        ))
    }

    /// Moment at which [`Opener::next`] may have a slot.
    pub fn due(&self, now: Time) -> Time {
        if !self.has_room() {
            return Time::NEVER;
        }
        let paced = if self.fresh > 0 || !self.parked.is_empty() {
            self.pace.due(now)
        } else if self.again.next_due() < Time::NEVER {
            self.again.next_due().max(self.pace.due(now))
        } else {
            Time::NEVER
        };
        paced.min(self.returning.next_due())
    }

    /// Counts a slot that is connected and logged in.
    pub fn opened(&mut self) {
        self.in_flight -= 1;
        self.failures_in_row = 0;
    }

    /// Takes a slot that could not be opened, and queues one that was open before again. True when
    /// that is to be counted as a failure.
    pub fn failed(&mut self, slot: ConnectionSlot, fault: &Fault, now: Time) -> bool {
        self.in_flight -= 1;
        self.out -= 1;
        if fault.is_busy_listener() {
            // It has been waiting since before: `asked_at` stays.
            self.heap_of(&slot).add(now + BUSY_PAUSE, slot);
            return false;
        }
        self.failures_in_row += 1;
        if slot.reopening {
            self.put_again(now + REOPEN_PAUSE, slot);
        }
        if fault.is_own_limit() || self.failures_in_row >= FAILURES_MAX {
            self.fresh = 0;
        }
        true
    }

    /// Gives up a slot that was being opened; [`Opener::reopen_at`] takes it if it is wanted again.
    pub fn abandoned(&mut self) {
        self.in_flight -= 1;
        self.out -= 1;
    }

    /// Queues a lost connection to be opened again, at the connect rate.
    pub fn lost(&mut self, slot: ConnectionSlot, now: Time) {
        self.closed();
        let slot = ConnectionSlot {
            repeats: 0,
            unpaced: false,
            ..slot
        };
        self.put_again(now, slot);
    }

    /// Counts an open connection that was closed by us.
    pub fn closed(&mut self) {
        self.out -= 1;
    }

    /// Queues a slot that we closed, to be opened again at its own time.
    pub fn reopen_at(&mut self, due: Time, slot: ConnectionSlot) {
        let unpaced = true;
        self.put_again(due, ConnectionSlot { unpaced, ..slot });
    }

    /// Parks a slot that we closed and that is not wanted for now.
    pub fn park(&mut self, slot: ConnectionSlot) {
        self.parked.push(ConnectionSlot {
            reopening: false,
            repeats: 0,
            ..slot
        });
    }

    fn put_again(&mut self, due: Time, slot: ConnectionSlot) {
        let slot = ConnectionSlot {
            reopening: true,
            asked_at: due,
            ..slot
        };
        self.heap_of(&slot).add(due, slot);
    }

    fn heap_of(&mut self, slot: &ConnectionSlot) -> &mut Timers<ConnectionSlot> {
        match slot.unpaced {
            true => &mut self.returning,
            false => &mut self.again,
        }
    }

    /// True when every slot has been tried that may be open.
    pub fn is_settled(&self) -> bool {
        (self.fresh == 0 || self.out >= self.out_max)
            && self.in_flight == 0
            && self.again.iter().all(|slot| slot.reopening)
    }

    /// The slots that have been tried and are neither open nor being opened, in no order.
    pub fn waiting(&self) -> impl Iterator<Item = &ConnectionSlot> {
        self.again
            .iter()
            .chain(self.returning.iter())
            .chain(&self.parked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    const START: Time = Time(1_000_000_000);

    fn opener(slots: u32, in_flight_max: u32) -> Opener {
        Opener::new(10, slots, 1, in_flight_max, Pace::new(0.0, START))
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
        let slot = opener.next(START).unwrap();
        assert!(opener.failed(slot, &fault(crate::errors::EMFILE), START));
        assert!(opener.is_settled());
    }

    #[test]
    fn many_failures_in_a_row_end_the_ramp() {
        let mut opener = opener(1_000, 10);
        for _ in 0..FAILURES_MAX - 1 {
            let slot = opener.next(START).unwrap();
            opener.failed(slot, &fault(111), START);
        }
        assert!(!opener.is_settled());
        opener.next(START).unwrap();
        opener.opened();
        let slot = opener.next(START).unwrap();
        opener.failed(slot, &fault(111), START);
        assert!(
            !opener.is_settled(),
            "a success in between begins the count again"
        );
    }

    #[test]
    fn a_busy_listener_is_no_failure() {
        let mut opener = opener(1, 10);
        let slot = opener.next(START).unwrap();
        assert!(!opener.failed(slot, &fault(11), START));
        assert!(opener.next(START).is_none());
        assert!(!opener.is_settled());
        let later = START + BUSY_PAUSE;
        assert_eq!(opener.next(later).unwrap().index, slot.index);
    }

    #[test]
    fn how_many_are_out_follows_what_is_allowed() {
        let mut opener = opener(5, 10);
        opener.allow(2);
        let first = opener.next(START).unwrap();
        opener.next(START).unwrap();
        assert!(opener.next(START).is_none());
        opener.opened();
        opener.opened();
        assert!(opener.is_settled(), "as many as are allowed");
        opener.closed();
        opener.park(first);
        opener.allow(3);
        let back = opener.next(START).unwrap();
        assert_eq!((back.index, back.reopening), (first.index, false));
        assert_eq!(opener.next(START).unwrap().index, 12);
        assert!(opener.next(START).is_none());
    }

    #[test]
    fn who_gave_up_comes_back_at_his_own_time_and_not_at_the_connect_rate() {
        let pace = Pace::new(1.0, START);
        let mut opener = Opener::new(0, 100, 1, 100, pace);
        let slot = opener.next(START).unwrap();
        assert!(opener.next(START).is_none(), "one each second");
        opener.abandoned();
        let due = START + Duration::from_millis(5);
        let repeats = 3;
        opener.reopen_at(due, ConnectionSlot { repeats, ..slot });
        assert_eq!(opener.due(START), START + Duration::from_millis(5));
        assert!(opener.next(START).is_none());
        let back = opener.next(due).unwrap();
        assert_eq!((back.index, back.repeats, back.asked_at), (0, 3, due));
        opener.opened();
        opener.lost(back, due);
        assert_eq!(opener.waiting().map(|slot| slot.repeats).sum::<u16>(), 0);
    }

    #[test]
    fn a_lost_connection_is_opened_until_it_stands() {
        let mut opener = opener(1, 10);
        let slot = opener.next(START).unwrap();
        opener.opened();
        opener.lost(slot, START);
        assert!(opener.is_settled(), "the ramp is over all the same");
        let again = opener.next(START).unwrap();
        assert!(again.reopening);
        opener.failed(again, &fault(111), START);
        assert!(opener.next(START).is_none());
        assert_eq!(opener.due(START), START + REOPEN_PAUSE);
        assert!(opener.next(START + REOPEN_PAUSE).is_some());
        opener.failed(again, &fault(111), START);
        assert_eq!(opener.waiting().count(), 1);
    }
}
