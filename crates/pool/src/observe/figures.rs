//! Figures: what a group measures beside what it counts, and how others come to read both.
//!
//! The problem: whoever asks for the pool's figures must not hold up a group, however many groups
//! there are and however often it is asked. The mechanism: a group alone writes its figures, as
//! plain numbers; twice a second it copies them into a [`GroupView`] and puts that into its
//! [`Published`] place. A reader takes the last view, and never meets the group: the lock is held
//! for the exchange of a pointer, and a group that finds it held tries again in its next turn.
//!
//! Bounds: a histogram has [`BOUNDS`] buckets; users after the first [`USERS_MAX`], and accounts of
//! the server after the first [`ACCOUNTS_MAX`], are measured together ([`places`]), and so are
//! statements beyond those of the settings ([`digests`]).

pub(crate) mod counts;
pub(crate) mod digests;
pub(crate) mod places;
pub(crate) mod recent;

use crate::client::ClientState;
use crate::observe::figures::counts::Census;
use crate::observe::figures::digests::Digests;
use crate::observe::figures::places::USERS_MAX;
use crate::scheduler::queue::QueueName;
use reactor::Time;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::Duration;

/// The upper bounds of a histogram's buckets, and how they are written in seconds.
pub(crate) const BOUNDS: [(Duration, &str); 24] = [
    (Duration::from_micros(50), "0.00005"),
    (Duration::from_micros(100), "0.0001"),
    (Duration::from_micros(250), "0.00025"),
    (Duration::from_micros(500), "0.0005"),
    (Duration::from_millis(1), "0.001"),
    (Duration::from_micros(2500), "0.0025"),
    (Duration::from_millis(5), "0.005"),
    (Duration::from_millis(10), "0.01"),
    (Duration::from_millis(25), "0.025"),
    (Duration::from_millis(50), "0.05"),
    (Duration::from_millis(100), "0.1"),
    (Duration::from_millis(250), "0.25"),
    (Duration::from_millis(500), "0.5"),
    (Duration::from_secs(1), "1.0"),
    (Duration::from_millis(2500), "2.5"),
    (Duration::from_secs(5), "5.0"),
    (Duration::from_secs(10), "10.0"),
    (Duration::from_secs(30), "30.0"),
    (Duration::from_secs(60), "60.0"),
    (Duration::from_secs(120), "120.0"),
    (Duration::from_secs(300), "300.0"),
    (Duration::from_secs(600), "600.0"),
    (Duration::from_secs(1800), "1800.0"),
    (Duration::from_secs(3600), "3600.0"),
];

/// Counts of times by their length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Histogram {
    /// Those up to each bound and above the one before, then those above all.
    counts: [u64; BOUNDS.len() + 1],
    sum_ns: u64,
}

impl Histogram {
    pub(crate) fn record(&mut self, time: Duration) {
        let bucket = BOUNDS.iter().position(|(bound, _)| time <= *bound);
        self.counts[bucket.unwrap_or(BOUNDS.len())] += 1;
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.sum_ns = self.sum_ns.saturating_add(ns);
    }

    pub(crate) fn add(&mut self, other: &Histogram) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
    }

    /// Values added since this earlier state of the same histogram.
    pub(crate) fn since(&self, earlier: &Histogram) -> Histogram {
        let mut since = self.clone();
        for (count, before) in since.counts.iter_mut().zip(earlier.counts) {
            *count = count.saturating_sub(before);
        }
        since.sum_ns = since.sum_ns.saturating_sub(earlier.sum_ns);
        since
    }

    pub(crate) fn counts(&self) -> &[u64] {
        &self.counts
    }

    pub(crate) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    pub(crate) fn sum(&self) -> Duration {
        Duration::from_nanos(self.sum_ns)
    }

    /// The mean; 0 of nothing.
    pub(crate) fn mean(&self) -> Duration {
        let count = self.count().max(1);
        Duration::from_nanos(self.sum_ns / count)
    }

    /// The time that `percent` of all do not exceed, by linear interpolation within its bucket as
    /// Prometheus' `histogram_quantile` does; the last bound for what is above all.
    pub(crate) fn percentile(&self, percent: f64) -> Duration {
        let rank = self.count() as f64 * percent / 100.0;
        let (mut below, mut from) = (0.0, Duration::ZERO);
        for ((bound, _), &count) in BOUNDS.iter().zip(&self.counts) {
            let count = count as f64;
            if count > 0.0 && below + count >= rank {
                let share = ((rank - below) / count).clamp(0.0, 1.0);
                return from + (*bound - from).mul_f64(share);
            }
            below += count;
            from = *bound;
        }
        match self.count() {
            0 => Duration::ZERO,
            _ => from,
        }
    }
}

/// Figures of one user's statements.
#[derive(Clone, Debug, Default)]
pub(crate) struct UserFigures {
    /// Times from a statement's arrival until it was sent to the server.
    pub(crate) wait: Histogram,
    /// Times from then on until the last byte of its reply.
    pub(crate) service: Histogram,
    /// Those that ended with an error of the server.
    pub(crate) errors: u64,
}

/// Measurements of one group.
#[derive(Clone, Debug)]
pub(crate) struct Figures {
    users: Vec<UserFigures>,
    queues: [Histogram; QueueName::ALL.len()],
    /// Figures of statements, by digest.
    pub(crate) digests: Digests,
}

impl Figures {
    pub(crate) fn new(users: usize, digests: Digests) -> Figures {
        let mut figures = Figures {
            users: Vec::new(),
            queues: Default::default(),
            digests,
        };
        figures.fit(users);
        figures
    }

    /// Makes places for so many users; there are not fewer than before.
    pub(crate) fn fit(&mut self, users: usize) {
        let places = users.clamp(1, USERS_MAX + 1).max(self.users.len());
        self.users.resize(places, UserFigures::default());
    }

    /// Figures of the user in a place.
    pub(crate) fn of(&mut self, place: u16) -> &mut UserFigures {
        let place = usize::from(place);
        if place >= self.users.len() {
            self.users.resize(place + 1, UserFigures::default());
        }
        &mut self.users[place]
    }

    /// Records the wait of a sent statement of the user in this place.
    pub(crate) fn sent(&mut self, place: u16, waited: Duration) {
        self.of(place).wait.record(waited);
    }

    /// Records the service time of a complete reply.
    pub(crate) fn answered(&mut self, place: u16, service: Duration, failed: bool) {
        let figures = self.of(place);
        figures.service.record(service);
        figures.errors += u64::from(failed);
    }

    /// Records the wait of one whose turn in a queue has come.
    pub(crate) fn waited_in(&mut self, queue: QueueName, waited: Duration) {
        self.queues[place_of(queue)].record(waited);
    }

    pub(crate) fn users(&self) -> &[UserFigures] {
        &self.users
    }

    pub(crate) fn queue(&self, queue: QueueName) -> &Histogram {
        &self.queues[place_of(queue)]
    }

    /// Figures of the time after an earlier state of them.
    pub(crate) fn since(&self, earlier: &Figures) -> Figures {
        let mut since = self.clone();
        for (user, before) in since.users.iter_mut().zip(&earlier.users) {
            user.wait = user.wait.since(&before.wait);
            user.service = user.service.since(&before.service);
            user.errors = user.errors.saturating_sub(before.errors);
        }
        for (queue, before) in since.queues.iter_mut().zip(&earlier.queues) {
            *queue = queue.since(before);
        }
        since.digests = self.digests.since(&earlier.digests);
        since
    }

    pub(crate) fn add(&mut self, other: &Figures) {
        let places = self.users.len().max(other.users.len());
        self.users.resize(places, UserFigures::default());
        for (user, more) in self.users.iter_mut().zip(&other.users) {
            user.wait.add(&more.wait);
            user.service.add(&more.service);
            user.errors += more.errors;
        }
        for (queue, more) in self.queues.iter_mut().zip(&other.queues) {
            queue.add(more);
        }
        self.digests.add(&other.digests);
    }
}

fn place_of(queue: QueueName) -> usize {
    match queue {
        QueueName::Login => 0,
        QueueName::High => 1,
        QueueName::Low | QueueName::Long => 2,
        QueueName::Held => 3,
    }
}

/// Activity of a client, as the figures tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    LoggingIn,
    Idle,
    Holding,
    Waiting,
    Running,
    Killing,
    Delayed,
    Leaving,
}

impl Stage {
    pub(crate) const ALL: [Stage; 8] = [
        Stage::LoggingIn,
        Stage::Idle,
        Stage::Holding,
        Stage::Waiting,
        Stage::Running,
        Stage::Killing,
        Stage::Delayed,
        Stage::Leaving,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Stage::LoggingIn => "logging_in",
            Stage::Idle => "idle",
            Stage::Holding => "holding",
            Stage::Waiting => "waiting",
            Stage::Running => "running",
            Stage::Killing => "killing",
            Stage::Delayed => "delayed",
            Stage::Leaving => "leaving",
        }
    }

    pub(crate) fn of(state: ClientState, has_backend: bool) -> Stage {
        match state {
            ClientState::Accepted
            | ClientState::Greeted
            | ClientState::Proving
            | ClientState::Verifying
            | ClientState::Opening => Stage::LoggingIn,
            ClientState::Idle if has_backend => Stage::Holding,
            ClientState::Idle | ClientState::Moving => Stage::Idle,
            ClientState::Waiting => Stage::Waiting,
            ClientState::Restoring | ClientState::Running | ClientState::Feeding => Stage::Running,
            ClientState::Asking => Stage::Killing,
            ClientState::Delayed => Stage::Delayed,
            ClientState::Leaving => Stage::Leaving,
        }
    }
}

/// Time that a thread spends, by purpose.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turns {
    /// The lengths of its turns, without the wait between two.
    pub(crate) lengths: Histogram,
    /// Time that it took to make views.
    pub(crate) publishing: Duration,
}

/// State of a group at a moment.
#[derive(Clone, Debug)]
pub(crate) struct GroupView {
    /// The moment.
    pub(crate) at: Time,
    pub(crate) census: Census,
    /// Clients in each [`Stage`].
    pub(crate) stages: [usize; Stage::ALL.len()],
    /// Times for which the statements have run that run now, and have waited that wait.
    pub(crate) running: Histogram,
    pub(crate) waiting: Histogram,
    /// Clients that are pinned now, by reason; one may have several.
    pub(crate) pinned: BTreeMap<&'static str, usize>,
    pub(crate) figures: Figures,
    pub(crate) turns: Turns,
    /// Reason why the last connection to the server could not be opened, of an account for which
    /// none was since.
    pub(crate) dial_failure: Option<String>,
}

impl GroupView {
    /// View of a group that has done nothing yet.
    pub(crate) fn empty(users: usize) -> GroupView {
        GroupView {
            at: Time::now(),
            census: Census::default(),
            stages: Default::default(),
            running: Histogram::default(),
            waiting: Histogram::default(),
            pinned: BTreeMap::new(),
            figures: Figures::new(users, Digests::default()),
            turns: Turns::default(),
            dial_failure: None,
        }
    }

    /// The sum of all groups.
    pub(crate) fn sum<'a>(users: usize, views: impl Iterator<Item = &'a GroupView>) -> GroupView {
        let mut total = GroupView::empty(users);
        for view in views {
            total.at = total.at.min(view.at);
            total.census += &view.census;
            for (stage, more) in total.stages.iter_mut().zip(view.stages) {
                *stage += more;
            }
            total.running.add(&view.running);
            total.waiting.add(&view.waiting);
            for (reason, count) in &view.pinned {
                *total.pinned.entry(reason).or_default() += count;
            }
            total.figures.add(&view.figures);
            total.turns.lengths.add(&view.turns.lengths);
            total.turns.publishing += view.turns.publishing;
            if total.dial_failure.is_none() {
                total.dial_failure.clone_from(&view.dial_failure);
            }
        }
        total
    }
}

/// Last view of a group: it puts them there, others read them.
#[derive(Debug)]
pub(crate) struct Published(Mutex<Arc<GroupView>>);

impl Published {
    pub(crate) fn new(users: usize) -> Published {
        Published(Mutex::new(Arc::new(GroupView::empty(users))))
    }

    /// Puts a view there. `false` where somebody reads the last one at this very moment.
    pub(crate) fn put(&self, view: GroupView) -> bool {
        let view = Arc::new(view);
        let old = match self.0.try_lock() {
            Ok(mut place) => std::mem::replace(&mut *place, view),
            Err(TryLockError::Poisoned(place)) => std::mem::replace(&mut *place.into_inner(), view),
            Err(TryLockError::WouldBlock) => return false,
        };
        // Freed outside of the lock.
        drop(old);
        true
    }

    /// The last view.
    pub(crate) fn get(&self) -> Arc<GroupView> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_counted_in_the_first_bucket_that_holds_it() {
        let mut times = Histogram::default();
        for (at, (bound, _)) in BOUNDS.iter().enumerate() {
            times.record(*bound);
            times.record(*bound + Duration::from_nanos(1));
            assert_eq!(times.counts[at + 1], 1, "{bound:?}");
        }
        assert_eq!(times.counts[0], 1);
        assert_eq!(times.counts[1], 2);
        assert_eq!(times.count(), 2 * BOUNDS.len() as u64);
        let mut twice = times.clone();
        twice.add(&times);
        assert_eq!(twice.sum(), 2 * times.sum());
        assert_eq!(twice.since(&times), times);
        assert_eq!(times.since(&times), Histogram::default());
    }

    #[test]
    fn bounds_are_written_as_they_are() {
        for (bound, words) in BOUNDS {
            assert_eq!(words.parse::<f64>().unwrap(), bound.as_secs_f64());
        }
        assert!(BOUNDS.is_sorted());
    }

    #[test]
    fn a_percentile_lies_within_its_bucket() {
        let mut times = Histogram::default();
        assert_eq!(times.percentile(99.0), Duration::ZERO);
        for _ in 0..90 {
            times.record(Duration::from_micros(10));
        }
        for _ in 0..10 {
            times.record(Duration::from_millis(7));
        }
        assert_eq!(times.percentile(90.0), Duration::from_micros(50));
        assert_eq!(times.percentile(95.0), Duration::from_micros(7500));
        times = Histogram::default();
        times.record(Duration::from_secs(4000));
        assert_eq!(times.percentile(50.0), Duration::from_secs(3600));
    }

    #[test]
    fn users_beyond_the_bound_share_a_place() {
        let mut figures = Figures::new(USERS_MAX + 100, Digests::default());
        assert_eq!(figures.users().len(), USERS_MAX + 1);
        for user in [0, 49, 50, 51, 149] {
            let place = places::place_of_user(user);
            figures.sent(place, Duration::ZERO);
            figures.answered(place, Duration::ZERO, user > 50);
        }
        let counts: Vec<u64> = figures.users().iter().map(|u| u.service.count()).collect();
        assert_eq!((counts[0], counts[49], counts[50]), (1, 1, 3));
        assert_eq!(figures.users()[50].errors, 2);
        assert_eq!(
            Figures::new(USERS_MAX, Digests::default()).users().len(),
            USERS_MAX
        );
    }

    #[test]
    fn readers_share_the_view_that_a_group_has_made() {
        let places: Vec<Published> = (0..64).map(|_| Published::new(1)).collect();
        for place in &places {
            assert!(place.put(GroupView::empty(1)));
        }
        let first: Vec<_> = places.iter().map(Published::get).collect();
        for _ in 0..1000 {
            for (place, view) in places.iter().zip(&first) {
                assert!(Arc::ptr_eq(&place.get(), view));
            }
        }
    }

    #[test]
    fn a_group_does_not_wait_for_a_reader() {
        let place = Published::new(1);
        let mut view = GroupView::empty(1);
        view.census.clients = 7;
        {
            let _reader = place.0.lock().unwrap();
            assert!(!place.put(view.clone()));
        }
        assert!(place.put(view));
        assert_eq!(place.get().census.clients, 7);
    }
}
