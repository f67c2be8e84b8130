//! Bulk work: long replies and long statements, and what they may take of a group's time.
//!
//! The problem: a group is one thread. A client that takes replies of 40 MiB one after the other
//! keeps it at work all the time, and every short statement waits behind its pieces. Worse, the
//! kernel sees a thread that never sleeps, and lets it wait for a processor as long as any other
//! of that kind.
//!
//! The mechanism: what is long does not run where it is noticed. It stands in a line, and the line
//! is served once in each turn, behind everything short, a piece at a time and each in turn:
//! - backends whose reply has more than [`LONG`] bytes so far;
//! - clients that are sent more of the spool than one piece, or whose file the server takes again;
//! - clients with long commands (`limits/unfinished.rs` has their line and says what they may take
//!   of memory);
//! - backends that have not taken a long command yet.
//!
//! One turn spends at most [`TURN_MAX`] on it, but for the last piece. While short statements are
//! answered as well, the group then leaves bulk work alone for [`REST`] times what it has spent,
//! and once more for each of them since the bulk work before, up to [`REST_BUSY`] times: a third of
//! its time goes to bulk work beside a few statements, a twentieth beside many. What the server and
//! the clients do for the same bytes is held back with it: where they share the processors with
//! the pool, that is most of what the short statements wait for, and with a twentieth the large
//! ones get about as much done as without a pool (docs/performance.md). With nobody else to serve
//! there is no rest.
//!
//! The bytes that are not read meanwhile stay in the kernel, which holds back who sends them.
//!
//! Invariant: who stands in the line is served in a later turn, however many stand there; a group
//! with a line has a deadline.

use crate::group::tokens::{BackendId, ClientId};
use reactor::Time;
use std::collections::VecDeque;
use std::time::Duration;

/// Bytes from which on a reply is long.
pub(crate) const LONG: usize = 128 * 1024;
/// Time that a turn spends on bulk work.
pub(crate) const TURN_MAX: Duration = Duration::from_micros(300);
/// Moments of rest for each moment of bulk work beside few short statements.
const REST: u32 = 2;
/// Moments of rest for each moment of bulk work, beside many other clients.
const REST_BUSY: u32 = 19;
/// Longest rest, however long a piece took.
const REST_MAX: Duration = Duration::from_millis(10);
/// A short statement that was answered so long ago says that others are there to be served.
const OTHERS_WITHIN: Duration = Duration::from_millis(20);

/// Something long that goes on in a later turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// A backend that sends a long reply.
    Reply(BackendId),
    /// A client that takes its reply from the spool, or sends a file.
    Client(ClientId),
    /// A backend that is sent a long command.
    Command(BackendId),
}

/// The bulk work of a group.
#[derive(Debug, Default)]
pub(crate) struct Bulk {
    queue: VecDeque<Piece>,
    /// Backends that are read in the next turn, which comes at once.
    at_once: Vec<BackendId>,
    /// Moment before which nothing is done.
    rests_until: Time,
    /// Moment at which a short statement was answered last.
    others_at: Time,
    /// Others served since the last bulk work.
    others: u32,
}

impl Bulk {
    /// Queues a piece for a later turn.
    pub(crate) fn push(&mut self, piece: Piece) {
        if !self.queue.contains(&piece) {
            self.queue.push_back(piece);
        }
    }

    /// Queues a backend to be read in the next turn, which comes at once. One that stands in the
    /// line is read when that is served: until then the group may sleep.
    pub(crate) fn read_at_once(&mut self, backend: BackendId) {
        if !self.has_reply_of(backend) && !self.at_once.contains(&backend) {
            self.at_once.push(backend);
        }
    }

    /// Takes the backends that are to be read in this turn.
    pub(crate) fn take_at_once(&mut self) -> Vec<BackendId> {
        std::mem::take(&mut self.at_once)
    }

    /// True if the next turn has to come at once.
    pub(crate) fn turns_at_once(&self) -> bool {
        !self.at_once.is_empty()
    }

    /// True if a backend is read in the next turn.
    pub(crate) fn reads_at_once(&self, backend: BackendId) -> bool {
        self.at_once.contains(&backend)
    }

    /// True if a backend's long reply goes on in a later turn.
    pub(crate) fn has_reply_of(&self, backend: BackendId) -> bool {
        self.queue.contains(&Piece::Reply(backend))
    }

    /// Counts an answered short statement.
    pub(crate) fn note_others(&mut self, now: Time) {
        self.others_at = now;
        self.others = self.others.saturating_add(1);
    }

    /// Moment at which the line must be served.
    pub(crate) fn next(&self, also: bool) -> Time {
        match self.queue.is_empty() && !also {
            true => Time::NEVER,
            false => self.rests_until,
        }
    }

    /// Takes the next piece.
    pub(crate) fn pop(&mut self) -> Option<Piece> {
        self.queue.pop_front()
    }

    /// True if nothing may be done at this moment, or there is nothing.
    pub(crate) fn is_at_rest(&self, now: Time, also: bool) -> bool {
        self.queue.is_empty() && !also || self.rests_until > now
    }

    /// Sets the rest after work from `began` to `end`, in a turn of the moment `now`.
    pub(crate) fn rest(&mut self, now: Time, began: Time, end: Time) {
        let others = std::mem::take(&mut self.others);
        if now.since(self.others_at) < OTHERS_WITHIN {
            let spent = end.since(began);
            let rest = REST.saturating_add(others).min(REST_BUSY);
            self.rests_until = now + spent + (spent * rest).min(REST_MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGAN: Time = Time(5_000_000_000);

    /// Moment at which a group does bulk work again that has spent so much beside so many others.
    fn after_work(spent: Duration, others_at: Time, others: u32) -> Time {
        let mut bulk = Bulk::default();
        bulk.push(Piece::Reply(BackendId::from_parts(1, 0)));
        bulk.note_others(others_at);
        bulk.rest(others_at, others_at, others_at);
        (0..others).for_each(|_| bulk.note_others(others_at));
        bulk.rest(BEGAN, BEGAN, BEGAN + spent);
        bulk.next(false)
    }

    #[test]
    fn a_backend_is_read_at_once_or_when_the_line_is_served() {
        let backend = BackendId::from_parts(1, 0);
        let mut bulk = Bulk::default();
        bulk.read_at_once(backend);
        bulk.read_at_once(backend);
        assert!(bulk.turns_at_once() && bulk.reads_at_once(backend));
        assert_eq!(bulk.take_at_once(), [backend]);
        assert!(!bulk.turns_at_once());
        bulk.push(Piece::Reply(backend));
        bulk.read_at_once(backend);
        assert!(!bulk.turns_at_once(), "the group may sleep until then");
    }

    #[test]
    fn beside_others_it_takes_a_third_of_the_time_or_a_twentieth() {
        let spent = Duration::from_micros(300);
        assert_eq!(after_work(spent, BEGAN, 0), BEGAN + spent * 3);
        assert_eq!(after_work(spent, BEGAN, 1), BEGAN + spent * 4);
        for many in [17, 18, 1000] {
            assert_eq!(after_work(spent, BEGAN, many), BEGAN + spent * 20);
        }
        let long = Duration::from_millis(80);
        assert_eq!(after_work(long, BEGAN, 0), BEGAN + long + REST_MAX);
    }

    #[test]
    fn alone_it_does_not_rest() {
        let spent = Duration::from_micros(300);
        let now = after_work(spent, Time(BEGAN.0 - 20_000_000), 1000);
        assert!(now <= BEGAN, "{now:?}");
    }

    #[test]
    fn each_stands_in_the_line_once() {
        let mut bulk = Bulk::default();
        assert_eq!(bulk.next(false), Time::NEVER);
        for _ in 0..3 {
            bulk.push(Piece::Reply(BackendId::from_parts(1, 0)));
            bulk.push(Piece::Command(BackendId::from_parts(1, 0)));
        }
        assert_eq!(bulk.queue.len(), 2);
        assert_eq!(bulk.next(false), Time(0));
    }
}
