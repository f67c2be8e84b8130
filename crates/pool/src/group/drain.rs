//! Stages of a drain: clients are closed one after another, and then all at once.
//!
//! The problem: clients that are closed in one moment connect again in one moment, elsewhere. The
//! mechanism: over `drain_s` each client has a turn, by a hash of its place in the table, and is
//! closed from then on as soon as it holds nothing; until then it is served as ever. Behind that,
//! or at once without `drain_s`, nothing new is begun, and `drain_ms_max` ends what is left.

use crate::client::clients::Clients;
use crate::group::tokens::ClientId;
use crate::upgrade::departures::Departures;
use reactor::Time;
use std::time::Duration;

/// Between two looks for clients whose turn has come.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Odd factor that spreads consecutive numbers over 32 bits: 2^32 divided by the golden ratio.
const SPREAD: u32 = 0x9E37_79B9;

/// Stage of a group's drain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Drain {
    /// None has begun.
    #[default]
    Off,
    /// Clients leave one after another.
    Leaving {
        since: Time,
        over: Duration,
        /// The next look for those whose turn has come.
        look_at: Time,
    },
    /// End: nothing new is begun.
    Ending { since: Time },
}

impl Drain {
    /// Begins the first stage, unless the drain goes on already.
    pub(crate) fn begin_leaving(&mut self, over: Duration, now: Time) {
        if self.is_off() {
            *self = Drain::Leaving {
                since: now,
                over,
                look_at: now,
            };
        }
    }

    /// Begins the last stage, once.
    pub(crate) fn begin_ending(&mut self, now: Time) {
        if !self.is_ending() {
            *self = Drain::Ending { since: now };
        }
    }

    /// True while there is no drain: new clients are taken.
    pub(crate) fn is_off(self) -> bool {
        self == Drain::Off
    }

    /// True if nothing new is begun.
    pub(crate) fn is_ending(self) -> bool {
        matches!(self, Drain::Ending { .. })
    }

    /// True if a client is to be closed once it holds nothing.
    pub(crate) fn has_turn(self, client: ClientId, now: Time) -> bool {
        match self {
            Drain::Off => false,
            Drain::Leaving { since, over, .. } => {
                let part = client.parts().0.wrapping_mul(SPREAD);
                now.since(since) >= over.mul_f64(f64::from(part) / f64::from(u32::MAX))
            }
            Drain::Ending { .. } => true,
        }
    }

    /// Closes a client if its turn has come and it holds nothing, or gives the moment at which to
    /// ask again.
    pub(crate) fn close<S>(
        self,
        key: ClientId,
        clients: &mut Clients<S>,
        departures: &Departures,
        now: Time,
    ) -> Option<Time> {
        let has_turn = self.has_turn(key, now);
        let leave = || clients.leave_if_idle(key, departures.has(key), self.is_ending(), now);
        has_turn.then(leave).flatten()
    }

    /// Next moment at which the drain has something to do; the last stage may take `longest`.
    pub(crate) fn next(self, longest: Duration) -> Option<Time> {
        match self {
            Drain::Off => None,
            Drain::Leaving { look_at, .. } => Some(look_at),
            Drain::Ending { since } => Some(since + longest),
        }
    }

    /// True if clients whose turn has come are to be looked for; the next look is noted.
    pub(crate) fn is_look_due(&mut self, now: Time) -> bool {
        match self {
            Drain::Leaving { look_at, .. } if now >= *look_at => {
                *look_at = now + LOOK_EVERY;
                true
            }
            _ => false,
        }
    }

    /// True when it has ended: nobody `is_left`, or its time is up.
    pub(crate) fn is_over(self, is_left: bool, longest: Duration, now: Time) -> bool {
        match self {
            Drain::Off => false,
            Drain::Leaving { .. } => !is_left,
            Drain::Ending { since } => !is_left || now >= since + longest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::shared::Order;
    use crate::group::tests::{NOW, client as idle_client, group};

    const S: Duration = Duration::from_secs(1);
    const MS: Duration = Duration::from_millis(1);

    fn client(index: u32) -> ClientId {
        ClientId::from_parts(index, 0)
    }

    #[test]
    fn clients_have_their_turns_spread_over_the_time() {
        let mut drain = Drain::Off;
        let begun = Time(5);
        assert!(!drain.has_turn(client(0), begun));
        drain.begin_leaving(10 * S, begun);
        let left = |at: Time| (0..1000).filter(|n| drain.has_turn(client(*n), at)).count();
        for second in 0..=10_u32 {
            let expected = 100 * second as usize;
            let found = left(begun + second * S);
            assert!(found.abs_diff(expected) <= 3, "{second} s: {found}");
        }
        assert!(!drain.is_over(true, S, begun + 99 * S));
        assert!(drain.is_over(false, S, begun));
    }

    #[test]
    fn what_a_client_has_sent_is_answered_before_it_is_closed() {
        let (query, ping) = (&b"\x09\0\0\0\x03SELECT 1"[..], &b"\x01\0\0\0\x0e"[..]);
        let two = [ping, ping].concat();
        let error_1053 = &b"\x01\xff\x1d\x04"[..];
        let answered = &b"\x07\0\0\x01\0"[..];
        for (order, sent, answer, times) in [
            (Order::Drain, query, error_1053, 1),
            (Order::CloseInTurns(Duration::ZERO), &two, answered, 2),
        ] {
            let mut group = group();
            let key = idle_client(&mut group);
            // No event has told of it yet.
            group.parts.net.incoming = sent.to_vec();
            group.order(order);
            group.turn(&[]);
            // Its next command may be on its way.
            let is_here = group.parts.clients.get(key).is_some();
            assert_eq!(is_here, sent != query);
            assert!(!is_here || group.deadline() <= NOW + 2 * MS);
            group.parts.net.now = NOW + 2 * MS;
            group.turn(&[]);
            let written = &group.parts.net.written;
            let found = written.windows(answer.len()).filter(|some| *some == answer);
            assert_eq!(found.count(), times, "{written:?}");
            assert!(group.parts.clients.get(key).is_none());
        }
    }

    #[test]
    fn all_have_their_turn_at_once_where_there_is_no_time() {
        let mut drain = Drain::Off;
        drain.begin_leaving(Duration::ZERO, Time(5));
        assert!((0..1000).all(|n| drain.has_turn(client(n), Time(5))));
    }

    #[test]
    fn the_last_stage_has_a_bound_and_begins_once() {
        let mut drain = Drain::Off;
        drain.begin_leaving(S, Time(0));
        assert!(drain.is_look_due(Time(0)) && !drain.is_look_due(Time(1)));
        assert_eq!(drain.next(S), Some(Time(0) + LOOK_EVERY));
        drain.begin_ending(Time(7));
        drain.begin_ending(Time(9));
        drain.begin_leaving(S, Time(9));
        assert_eq!(drain, Drain::Ending { since: Time(7) });
        assert!(drain.has_turn(client(3), Time(7)) && !drain.is_look_due(Time(7)));
        assert!(!drain.is_over(true, S, Time(7)));
        assert!(drain.is_over(true, S, Time(7) + S));
    }
}
