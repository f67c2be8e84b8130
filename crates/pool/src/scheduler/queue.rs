//! Queues: where statements and logins wait for a backend, and who of them goes next.
//!
//! The problem: with one queue, what must not wait long stands behind everything else; with a queue
//! that always goes first, the others may wait for ever. The mechanism: each pool has several,
//! first come, first served within each ([`Queue`]). Between them ([`Queues::next`]):
//! - a statement of the high queue goes before one of the low queue, until that one has waited for
//!   `prio_kickup`: from that moment it is ordered among the high ones, in the order of these
//!   moments. It is compared when somebody is chosen, so it is exact and needs no timer;
//! - a statement that is known to be long goes before nobody while slow readers keep their share of
//!   the backends: it is set aside when it comes to the front of its queue ([`Queues::set_aside`]),
//!   and is in the low queue again, at its own place, once they keep less;
//! - a login goes after every [`STATEMENTS_PER_LOGIN`] statements, if any waits; when no statement
//!   waits, logins go one after the other. So neither can starve the other.
//!
//! FIFO gives the tail: with N clients in a closed loop everybody waits N statements, nobody more.
//! Who could not wait here at first (something is being read back for it, or asked of a backend
//! that is another's) comes later, and gets the place of the moment at which its command came: no
//! two have the same moment ([`Queues::push`]).
//!
//! Clients that leave while they wait are not searched for; their entries are passed over when they
//! come to the front ([`Queue::front`] asks the owner whether an entry still stands), and are taken
//! out together once they are more than half of all, and more than [`STALE_MAX`].
//!
//! Invariant: entries of a queue are in the order of their arrival, so the front is its oldest.

use crate::group::tokens::ClientId;
use reactor::Time;
use std::collections::VecDeque;
use std::time::Duration;

/// Statements that go before a login, while both wait.
const STATEMENTS_PER_LOGIN: u32 = 3;

/// Entries that may stay in the queues of a pool when their clients have left, however few wait.
const STALE_MAX: usize = 64;

/// Queue by its priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueueName {
    /// Logins whose schema no backend has accepted yet.
    Login,
    /// Statements that go first.
    High,
    /// All others.
    Low,
    /// Statements of clients that have a backend, where that gives no priority: in one line with
    /// the low queue, but they need no backend to go on.
    Held,
    /// Statements that are known to be long, set aside while slow readers keep their share.
    Long,
}

impl QueueName {
    /// Queues whose times are counted; [`QueueName::Long`] counts as the low one.
    pub(crate) const ALL: [QueueName; 4] = [
        QueueName::Login,
        QueueName::High,
        QueueName::Low,
        QueueName::Held,
    ];

    /// Name in errors and counters.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            QueueName::Login => "login",
            QueueName::High => "high",
            QueueName::Low | QueueName::Held => "low",
            QueueName::Long => "long",
        }
    }
}

/// Client that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    /// The client.
    pub client: ClientId,
    /// Moment since which it waits; no other has the same.
    pub since: Time,
    /// Pool of the place.
    pub pool: u32,
    /// Queue of the place.
    pub queue: QueueName,
}

/// A waiting line.
#[derive(Debug, Default)]
struct Queue {
    entries: VecDeque<Waiting>,
}

impl Queue {
    /// The first that `stands`; those in front of it that do not are dropped.
    fn front(&mut self, stands: &mut impl FnMut(&Waiting) -> bool) -> Option<Waiting> {
        while let Some(first) = self.entries.front() {
            if stands(first) {
                return Some(*first);
            }
            self.entries.pop_front();
        }
        None
    }
}

/// The queues of one pool.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    queues: [Queue; 5],
    statements_since_login: u32,
}

impl Queues {
    /// Puts one in its place in its queue: mostly at the end.
    pub(crate) fn push(&mut self, waiting: Waiting) {
        let entries = &mut self.queues[waiting.queue as usize].entries;
        if entries.back().is_none_or(|last| last.since < waiting.since) {
            return entries.push_back(waiting);
        }
        let place = entries.partition_point(|other| other.since < waiting.since);
        entries.insert(place, waiting);
    }

    /// The front of one queue.
    pub(crate) fn front(
        &mut self,
        queue: QueueName,
        mut stands: impl FnMut(&Waiting) -> bool,
    ) -> Option<Waiting> {
        self.queues[queue as usize].front(&mut stands)
    }

    /// Takes statements that are known to be long (`is_long`) from the fronts of the queues, so
    /// that nobody waits behind them.
    pub(crate) fn set_aside(
        &mut self,
        mut stands: impl FnMut(&Waiting) -> bool,
        is_long: impl Fn(&Waiting) -> bool,
    ) {
        for queue in [QueueName::High, QueueName::Low] {
            while let Some(front) = self.front(queue, &mut stands).filter(&is_long) {
                self.queues[queue as usize].entries.pop_front();
                self.push(Waiting {
                    queue: QueueName::Long,
                    ..front
                });
            }
        }
    }

    /// The one that goes next at `now`; those set aside only where `takes_long`.
    pub(crate) fn next(
        &mut self,
        now: Time,
        kickup: Duration,
        takes_long: bool,
        mut stands: impl FnMut(&Waiting) -> bool,
    ) -> Option<Waiting> {
        let others = [
            QueueName::Login,
            QueueName::High,
            QueueName::Held,
            QueueName::Long,
        ];
        if others.iter().all(|queue| self.len_of(*queue) == 0) {
            return self.queues[QueueName::Low as usize].front(&mut stands);
        }
        let [login, high, low, held] =
            QueueName::ALL.map(|queue| self.queues[queue as usize].front(&mut stands));
        let long = match takes_long {
            true => self.front(QueueName::Long, &mut stands),
            false => None,
        };
        let low = [low, held, long].into_iter().flatten();
        let low = low.min_by_key(|w| w.since);
        let statement = match (high, low) {
            (Some(high), Some(low)) => {
                let kicked_up_at = low.since + kickup;
                let goes = kicked_up_at <= now && kicked_up_at < high.since;
                Some(if goes { low } else { high })
            }
            (high, low) => high.or(low),
        };
        match (login, statement) {
            (Some(_), Some(_)) if self.statements_since_login >= STATEMENTS_PER_LOGIN => login,
            (login, statement) => statement.or(login),
        }
    }

    /// The client of a queue before whom so many others stand, whether or not its entry still does.
    #[must_use]
    pub(crate) fn behind(&self, queue: QueueName, others: usize) -> Option<ClientId> {
        let entry = self.queues[queue as usize].entries.get(others)?;
        Some(entry.client)
    }

    /// Entries of a queue, the first come in front, whether or not they still stand.
    pub(crate) fn entries(&self, queue: QueueName) -> impl DoubleEndedIterator<Item = &Waiting> {
        self.queues[queue as usize].entries.iter()
    }

    /// Moves those of the low queue for whom this holds to the high one, each to the place of its
    /// moment; returns who that was.
    pub(crate) fn raise(&mut self, is_raised: impl FnMut(&Waiting) -> bool) -> Vec<Waiting> {
        let low = &mut self.queues[QueueName::Low as usize].entries;
        let all = std::mem::take(low).into_iter();
        let (raised, stay): (Vec<Waiting>, Vec<Waiting>) = all.partition(is_raised);
        *low = stay.into();
        for waiting in &raised {
            self.push(Waiting {
                queue: QueueName::High,
                ..*waiting
            });
        }
        raised
    }

    /// Takes the front of a queue out, whose turn has come.
    pub(crate) fn pop(&mut self, queue: QueueName) {
        self.queues[queue as usize].entries.pop_front();
        self.statements_since_login = match queue {
            QueueName::Login => 0,
            _ => self.statements_since_login.saturating_add(1),
        };
    }

    /// Takes out the entries that no longer stand, once there are many of them among the entries
    /// of `waiting` clients.
    pub(crate) fn drop_stale(&mut self, waiting: usize, stands: impl Fn(&Waiting) -> bool) {
        if self.len() > 2 * waiting + STALE_MAX {
            for queue in &mut self.queues {
                queue.entries.retain(&stands);
            }
        }
    }

    /// True if a client that waits since this moment has an entry.
    pub(crate) fn has(&self, client: ClientId, since: Time) -> bool {
        let mut all = self.queues.iter().flat_map(|queue| &queue.entries);
        all.any(|entry| entry.client == client && entry.since == since)
    }

    /// Entries of one queue, those that no longer stand included.
    #[must_use]
    pub(crate) fn len_of(&self, queue: QueueName) -> usize {
        self.queues[queue as usize].entries.len()
    }

    /// Entries of one queue that stand.
    pub(crate) fn count(&self, queue: QueueName, stands: impl Fn(&Waiting) -> bool) -> usize {
        let entries = self.queues[queue as usize].entries.iter();
        entries.filter(|waiting| stands(waiting)).count()
    }

    /// Entries that go before a queue's first.
    pub(crate) fn ahead_of(&self, queue: QueueName) -> usize {
        match queue {
            QueueName::Low | QueueName::Held => self.len_of(QueueName::High),
            QueueName::Long => self.len_of(QueueName::High) + self.len_of(QueueName::Low),
            QueueName::High | QueueName::Login => 0,
        }
    }

    /// Entries of all queues, those that no longer stand included.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.queues.iter().map(|queue| queue.entries.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use QueueName::{High, Login, Long, Low};

    const KICKUP: Duration = Duration::from_nanos(100);

    fn waiting(queue: QueueName, n: u32) -> Waiting {
        Waiting {
            client: ClientId::from_parts(n, 0),
            since: Time(u64::from(n)),
            pool: 0,
            queue,
        }
    }

    fn all_in_order(queues: &mut Queues, now: u64) -> Vec<(QueueName, u64)> {
        let mut order = Vec::new();
        while let Some(next) = queues.next(Time(now), KICKUP, true, |_| true) {
            queues.pop(next.queue);
            order.push((next.queue, next.since.0));
        }
        order
    }

    #[test]
    fn first_come_first_served_and_leavers_are_passed_over() {
        let mut queues = Queues::default();
        (0..4).for_each(|n| queues.push(waiting(Low, n)));
        let stays = |w: &Waiting| w.since.0 != 0 && w.since.0 != 2;
        assert_eq!(queues.front(Low, stays), Some(waiting(Low, 1)));
        assert_eq!(queues.behind(Low, 1), Some(waiting(Low, 2).client));
        queues.pop(Low);
        assert_eq!(queues.front(Low, stays), Some(waiting(Low, 3)));
        assert_eq!(queues.behind(Low, 1), None);
    }

    #[test]
    fn entries_of_leavers_are_bounded_and_those_who_stay_keep_their_order() {
        let mut queues = Queues::default();
        let max = u32::try_from(STALE_MAX).unwrap();
        let stays = |w: &Waiting| w.since.0 % 50 == 49;
        let mut most = 0;
        for n in 0..50 * max {
            queues.push(waiting(Low, n));
            let waiting = usize::try_from((n + 1) / 50).unwrap();
            queues.drop_stale(waiting, stays);
            most = most.max(queues.len() - waiting);
            assert!(queues.len() <= 2 * waiting + STALE_MAX);
        }
        assert!(most >= STALE_MAX, "they are not looked through for each");
        let stay = (0..u64::from(50 * max)).filter(|n| n % 50 == 49);
        for since in stay {
            let front = queues.front(Low, stays).unwrap();
            assert_eq!(front.since.0, since);
            queues.pop(Low);
        }
    }

    #[test]
    fn who_comes_later_gets_the_place_of_its_moment() {
        let mut queues = Queues::default();
        for n in [3, 5, 9, 4, 1, 10] {
            queues.push(waiting(Low, n));
        }
        let order = all_in_order(&mut queues, 20).into_iter();
        let order: Vec<u64> = order.map(|(_, since)| since).collect();
        assert_eq!(order, [1, 3, 4, 5, 9, 10]);
    }

    #[test]
    fn who_is_raised_goes_by_the_moment_of_its_place() {
        let mut queues = Queues::default();
        for n in [1, 2, 4, 6] {
            queues.push(waiting(Low, n));
        }
        queues.push(waiting(High, 3));
        let raised = queues.raise(|w| w.since.0 % 2 == 0 && w.since.0 < 6);
        assert_eq!(raised, [waiting(Low, 2), waiting(Low, 4)]);
        let order = all_in_order(&mut queues, 20);
        let high = [(High, 2), (High, 3), (High, 4)];
        assert_eq!(order, [high.as_slice(), &[(Low, 1), (Low, 6)]].concat());
    }

    #[test]
    fn long_ones_are_passed_while_set_aside_and_keep_their_places() {
        let mut queues = Queues::default();
        (1..=4).for_each(|n| queues.push(waiting(Low, n)));
        queues.push(waiting(High, 5));
        let is_long = |w: &Waiting| matches!(w.since.0, 1 | 2 | 4 | 5);
        queues.set_aside(|_| true, is_long);
        let next = queues.next(Time(9), KICKUP, false, |_| true);
        assert_eq!(next, Some(waiting(Low, 3)));
        assert_eq!(
            (queues.len_of(Long), queues.len()),
            (3, 5),
            "only fronts are"
        );
        queues.pop(Low);
        queues.set_aside(|_| true, is_long);
        assert_eq!(queues.next(Time(9), KICKUP, false, |_| true), None);
        let order = all_in_order(&mut queues, 9);
        assert_eq!(order, [(Long, 1), (Long, 2), (Long, 4), (Long, 5)]);
    }

    #[test]
    fn high_goes_before_low_until_low_has_waited_for_long_enough() {
        let mut queues = Queues::default();
        queues.push(waiting(Low, 1));
        queues.push(waiting(High, 50));
        queues.push(waiting(High, 102));
        // At 100 the low one has waited for 99: one less than it takes.
        assert_eq!(
            queues.next(Time(100), KICKUP, true, |_| true),
            Some(waiting(High, 50))
        );
        // From 101 on it is in line: behind the one of 50, before the one of 102.
        let order = all_in_order(&mut queues, 110);
        assert_eq!(order, [(High, 50), (Low, 1), (High, 102)]);
    }

    #[test]
    fn logins_and_statements_cannot_starve_each_other() {
        let mut queues = Queues::default();
        (0..3).for_each(|n| queues.push(waiting(Login, n)));
        (10..18).for_each(|n| queues.push(waiting(if n % 2 == 0 { High } else { Low }, n)));
        let order = all_in_order(&mut queues, 20);
        let places: Vec<usize> = (0..order.len()).filter(|i| order[*i].0 == Login).collect();
        assert_eq!(places, [3, 7, 10], "{order:?}");
    }
}
