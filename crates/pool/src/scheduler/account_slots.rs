//! Connections of one account, where the server takes fewer of it than `backends_max`.
//!
//! The problem: an account with MAX_USER_CONNECTIONS gets a few connections, whichever groups and
//! pools of backends open them first; the others' clients would wait until their time is up.
//! The mechanism: the first refusal (error 1226 or 1203) limits the account to the connections that
//! it has, for all groups. From then on a pool that could use another connection *wants* one, with
//! the moment since which its front waits; a backend that becomes free or lies idle in another pool
//! of the account is closed for it ([`AccountSlots::owed_at`]) once that front has waited for
//! [`LEND_AFTER`] longer than the pool's own. A slot that is free goes to the oldest want.
//! `account_backends_max` of the settings limits an account in the same way, without a refusal, and
//! exactly: no connection is opened that would be one too many. `account_kept_backends_max` limits
//! those that its clients keep ([`Kept`]); nobody waits for one of them. `backends_max` of one of
//! several servers limits all accounts there together, in slots of the server's own ([`OnServer`]),
//! and `running_max` those of its backends that run something, in slots beside them.
//!
//! The limit rises with each login that succeeds; while somebody waits, one dial at a time looks
//! whether the server takes more by now, after pauses that double up to [`LOOK_MAX`]. A server may
//! count a connection for a moment after it was closed: a refusal below the limit lowers it only
//! when another follows.
//!
//! Invariants: no lock is held for longer than a look at a few numbers; an account that was never
//! refused costs a statement nothing, one that is limited a load.

use crate::config::{ServerLimits, Settings};
use crate::server::fleet::hash_of;
use ::cluster::ServerId;
use ::cluster::fleet::Resource;
use reactor::Time;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A front that has waited for this much longer than another pool's gets its backend: a login costs
/// about a millisecond, and is not to be paid for each statement.
const LEND_AFTER: Duration = Duration::from_millis(50);
/// Pause after a refusal; where the account has no connection, so that others have them all, the
/// pauses double up to [`LOOK_MAX`].
const AGAIN_AFTER: Duration = Duration::from_millis(10);
/// First and longest pause between two looks whether the server takes more.
const LOOK_MIN: Duration = Duration::from_millis(50);
const LOOK_MAX: Duration = Duration::from_secs(2);

/// Limits that pools of a fleet share besides that of all backends.
const SHARED_MAX: usize = 64;

/// A pool of backends of one group, by the numbers of both.
pub(crate) type Place = (usize, usize);

/// The place of another pool of the fleet, which wants what is above this pool's part.
const FLEET: Place = (usize::MAX, usize::MAX);

/// A pool that could use another connection.
#[derive(Clone, Copy, Debug)]
struct Want {
    place: Place,
    since: Time,
}

#[derive(Debug, Default)]
struct Slots {
    /// Connections of all groups, those included that are being opened.
    held: usize,
    dialling: usize,
    /// Connections that the server takes; `None`: it has refused none.
    limit: Option<usize>,
    /// Connections that the settings allow.
    max: Option<usize>,
    /// Connections that the fleet leaves to this pool.
    part: Option<usize>,
    /// True if the server has refused a connection below the limit.
    is_doubted: bool,
    /// Refusals since the limit has risen.
    refusals: u32,
    /// Refusals since a connection was opened.
    in_a_row: u32,
    /// No dial before this moment.
    again_at: Time,
    /// Moment from which on a dial may look whether the server takes more.
    look_at: Time,
    /// Wants, at most one for each pool of each group.
    wants: Vec<Want>,
    /// Words of the last refusal.
    words: String,
}

impl Slots {
    fn open(&self) -> usize {
        self.held.saturating_sub(self.dialling)
    }

    fn free(&self) -> usize {
        let limits = [self.limit, self.max, self.part].into_iter().flatten();
        limits.min().unwrap_or(usize::MAX).saturating_sub(self.held)
    }

    fn is_at_max(&self) -> bool {
        let limits = [self.max, self.part].into_iter().flatten();
        limits.min().is_some_and(|max| self.held >= max)
    }

    /// Groups that want a connection.
    fn groups(&self) -> impl Iterator<Item = usize> {
        let groups = self.wants.iter().filter(|want| want.place != FLEET);
        groups.map(|want| want.place.0)
    }

    /// Wants of others than this place that are older than `since`.
    fn older(&self, place: Place, since: Time) -> usize {
        let older = |want: &&Want| want.place != place && want.since < since;
        self.wants.iter().filter(older).count()
    }
}

/// A pause that doubles with each time, up to the longest.
fn doubled(first: Duration, times: u32) -> Duration {
    (first * 2_u32.pow(times.min(16))).min(LOOK_MAX)
}

/// A backend that a client keeps, until it is dropped; it is counted where that is limited.
#[derive(Debug, Default)]
pub(crate) struct Kept(Option<Arc<AccountSlots>>);

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some(slots) = &self.0 {
            slots.kept.fetch_sub(1, SeqCst);
        }
    }
}

/// Place of a connection among those that run something on its server; `None` where that does not
/// limit them.
pub(crate) type RunPlace = Option<OnServer>;

/// A connection that counts at its server, or one that runs something there, until it is dropped.
#[derive(Debug)]
pub(crate) struct OnServer(Arc<AccountSlots>);

impl OnServer {
    /// Groups that want a connection to that server.
    pub(crate) fn wanting(&self) -> Vec<usize> {
        self.0.wanting()
    }

    /// Counts what its connection runs, however much that is, where the server limits it.
    pub(crate) fn run(&self) -> Option<OnServer> {
        self.0.running.as_ref().map(AccountSlots::connected)
    }

    /// Gives its place back; groups that want one.
    pub(crate) fn give_back(self) -> Vec<usize> {
        let slots = self.0.clone();
        drop(self);
        slots.wanting()
    }
}

impl Drop for OnServer {
    fn drop(&mut self) {
        self.0.count(-1, 0);
    }
}

/// Connections of one account, or of all accounts to one of several servers.
#[derive(Debug, Default)]
pub(crate) struct AccountSlots {
    /// Backends that clients keep and that are counted, and how many may be; 0: any number.
    kept: AtomicUsize,
    kept_max: AtomicUsize,
    is_limited: AtomicBool,
    wanting: AtomicUsize,
    slots: Mutex<Slots>,
    /// Connections of a server that run something, where it limits them.
    running: Option<Arc<AccountSlots>>,
    /// Its limit among those of the fleet.
    resource: Resource,
}

impl AccountSlots {
    /// Connections to a server with these limits.
    pub(crate) fn of_server(limits: ServerLimits) -> Arc<AccountSlots> {
        let of_running = |max| {
            AccountSlots::of_server(ServerLimits {
                backends_max: Some(max),
                running_max: None,
            })
        };
        let slots = AccountSlots {
            running: limits.running_max.map(of_running),
            ..AccountSlots::default()
        };
        slots.set_max(limits.backends_max);
        Arc::new(slots)
    }

    /// Connections of a server that run something, where it limits them.
    pub(crate) fn running(&self) -> Option<&Arc<AccountSlots>> {
        self.running.as_ref()
    }

    /// A connection to the server from now on; `None` where there are as many as may be.
    pub(crate) fn connect(self: &Arc<Self>) -> Option<OnServer> {
        let mut slots = self.lock();
        if slots.is_at_max() {
            return None;
        }
        slots.held += 1;
        drop(slots);
        Some(OnServer(self.clone()))
    }

    /// A connection that stands already: it counts, however many may be.
    pub(crate) fn connected(self: &Arc<Self>) -> OnServer {
        self.count(1, 0);
        OnServer(self.clone())
    }

    /// Connections, and how many the settings allow.
    pub(crate) fn used(&self) -> (usize, Option<usize>) {
        let slots = self.lock();
        (slots.held, slots.max)
    }

    fn lock(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts connections that there are more, or fewer, and how many of them are being opened.
    pub(crate) fn count(&self, held: isize, dialling: isize) {
        let mut slots = self.lock();
        slots.held = slots.held.saturating_add_signed(held);
        slots.dialling = slots.dialling.saturating_add_signed(dialling);
    }

    /// Takes a slot for a connection that is about to be opened; `false` where the settings allow
    /// no more.
    #[must_use]
    pub(crate) fn take(&self) -> bool {
        let mut slots = self.lock();
        let may = !slots.is_at_max();
        slots.held += usize::from(may);
        slots.dialling += usize::from(may);
        may
    }

    /// A backend that a client keeps from now on; `None` where as many are kept as may be. What is
    /// kept since before there was a limit is not counted.
    pub(crate) fn keep(self: &Arc<Self>) -> Option<Kept> {
        let max = self.kept_max();
        if max == 0 {
            return Some(Kept::default());
        }
        let more = |kept| (kept < max).then_some(kept + 1);
        self.kept.fetch_update(SeqCst, SeqCst, more).ok()?;
        Some(Kept(Some(self.clone())))
    }

    /// Backends that clients may keep; 0: any number.
    pub(crate) fn kept_max(&self) -> usize {
        self.kept_max.load(SeqCst)
    }

    /// Limits an account as the settings do; `may_share`: the fleet has room for its limit.
    fn follow(&self, user: &str, settings: &Settings, may_share: bool) {
        let max = settings.account_max(user, |limits| limits.account_backends_max);
        self.set_max(max);
        let is_shared = may_share && settings.fleet.is_some() && max.is_some();
        let part = &mut self.lock().part;
        *part = is_shared.then_some(part.unwrap_or(0));
        let kept = settings.account_max(user, |limits| limits.account_kept_backends_max);
        self.kept_max.store(kept.unwrap_or(0), SeqCst);
    }

    /// Sets how many connections the settings allow.
    fn set_max(&self, max: Option<usize>) {
        let mut slots = self.lock();
        slots.max = max;
        let is_limited = max.is_some() || slots.limit.is_some();
        self.is_limited.store(is_limited, SeqCst);
    }

    fn is_shared(&self) -> bool {
        self.is_limited() && self.lock().part.is_some()
    }

    /// Its limit among those of the fleet, where it has one.
    pub(crate) fn shared_limit(&self) -> Option<Resource> {
        self.is_shared().then_some(self.resource)
    }

    /// Units that it could use, of so many. While it wants more it asks for twice what it has.
    fn demand(&self) -> Option<(usize, usize)> {
        let slots = self.lock();
        let more = match slots.groups().count() {
            0 => 0,
            wanting => slots.held.max(wanting),
        };
        (slots.part.and(slots.max)).map(|max| (max, slots.held + more))
    }

    /// Takes the part that the fleet leaves to this pool. What is above it is closed when it is
    /// free, as for a pool of backends that wants it: `true` when groups are to look for that.
    fn fit(&self, part: usize) -> bool {
        let mut slots = self.lock();
        slots.part = slots.part.map(|_| part);
        let owes = slots.part.is_some_and(|part| slots.held > part);
        drop(slots);
        self.want(FLEET, owes.then_some(Time(0)))
    }

    /// True if the server has refused connections of the account, or the settings bound them.
    pub(crate) fn is_limited(&self) -> bool {
        self.is_limited.load(SeqCst)
    }

    /// True if the account has all connections that the settings allow.
    pub(crate) fn is_at_max(&self) -> bool {
        self.is_limited() && self.lock().is_at_max()
    }

    /// Notes a connection that the server has let in; raises the limit if it was below.
    pub(crate) fn opened(&self, now: Time) {
        let mut slots = self.lock();
        (slots.is_doubted, slots.in_a_row) = (false, 0);
        let open = slots.open();
        if slots.limit.is_some_and(|limit| limit < open) {
            slots.limit = Some(open);
            (slots.refusals, slots.look_at) = (0, now);
        }
    }

    /// Notes a connection, still counted as being opened, that the server has refused for the
    /// number of those that it has.
    pub(crate) fn refused(&self, words: &str, now: Time) {
        let mut slots = self.lock();
        let open = slots.open();
        slots.again_at = match open {
            0 => now + doubled(AGAIN_AFTER, slots.in_a_row),
            _ => now + AGAIN_AFTER,
        };
        slots.in_a_row += 1;
        slots.words = words.into();
        let is_below = slots.limit.is_some_and(|limit| open < limit);
        if is_below && !slots.is_doubted {
            slots.is_doubted = true;
            return;
        }
        slots.is_doubted = false;
        slots.limit = Some(open.max(1));
        slots.look_at = now + doubled(LOOK_MIN, slots.refusals);
        slots.refusals += 1;
        self.is_limited.store(true, SeqCst);
    }

    /// `None` when a pool whose front waits since `since` may open a connection, or the moment at
    /// which to ask again.
    pub(crate) fn waits_until(&self, place: Place, since: Time, now: Time) -> Option<Time> {
        if !self.is_limited() {
            return None;
        }
        let slots = self.lock();
        if slots.is_at_max() {
            // Whoever closes one wakes those who want it.
            return Some(now + LOOK_MAX);
        }
        let is_free = slots.free() > slots.older(place, since);
        // A free slot is the oldest want's: no look takes it.
        let looks = slots.free() == 0 && slots.dialling == 0 && now >= slots.look_at;
        if now >= slots.again_at && (is_free || looks) {
            return None;
        }
        let at = match is_free {
            true => slots.again_at,
            false => slots.again_at.max(slots.look_at),
        };
        Some(at.max(now + AGAIN_AFTER))
    }

    /// Words of the server's last refusal, where the account is limited.
    pub(crate) fn words(&self) -> Option<String> {
        let words = self.is_limited().then(|| self.lock().words.clone());
        words.filter(|words| !words.is_empty())
    }

    /// Notes since when the front of a pool waits for another connection, or that none does. `true`
    /// when the pool has not wanted one before: the other groups are to look what they have.
    pub(crate) fn want(&self, place: Place, since: Option<Time>) -> bool {
        if !self.is_limited() || since.is_none() && self.wanting.load(SeqCst) == 0 {
            return false;
        }
        let mut slots = self.lock();
        let before = slots.wants.iter().position(|want| want.place == place);
        let before = before.map(|at| slots.wants.swap_remove(at));
        slots.wants.extend(since.map(|since| Want { place, since }));
        self.wanting.store(slots.wants.len(), SeqCst);
        before.is_none() && since.is_some()
    }

    /// True if some pool wants one.
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanting.load(SeqCst) > 0
    }

    /// Groups that want a connection.
    pub(crate) fn wanting(&self) -> Vec<usize> {
        match self.wanting.load(SeqCst) {
            0 => Vec::new(),
            _ => self.lock().groups().collect(),
        }
    }

    /// The moment from which a free backend of this pool, whose own front waits since `front`, is
    /// to be closed for another pool.
    pub(crate) fn owed_at(&self, place: Place, front: Option<Time>) -> Option<Time> {
        match self.wanting.load(SeqCst) {
            0 => None,
            _ => self.owed_to_others(place, front),
        }
    }

    fn owed_to_others(&self, place: Place, front: Option<Time>) -> Option<Time> {
        let slots = self.lock();
        let mut owed: Vec<Time> = slots
            .wants
            .iter()
            .filter(|want| want.place != place)
            .map(|want| want.since + LEND_AFTER)
            .filter(|at| front.is_none_or(|front| *at <= front))
            .collect();
        owed.sort_unstable();
        // The oldest of them have what is free.
        owed.get(slots.free()).copied()
    }
}

/// The accounts that backends log in as, by their names and the server that is read, if it is not
/// the writer.
#[derive(Debug, Default)]
pub(crate) struct AllAccountSlots(Mutex<BTreeMap<AccountOn, Arc<AccountSlots>>>);

type AccountOn = (String, Option<ServerId>);

impl AllAccountSlots {
    /// Slots of one account. Accounts without a pool of backends are forgotten meanwhile.
    pub(crate) fn of(
        &self,
        user: &str,
        reader: Option<ServerId>,
        settings: &Settings,
    ) -> Arc<AccountSlots> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let account = (user.to_owned(), reader);
        if let Some(slots) = all.get(&account) {
            return slots.clone();
        }
        all.retain(|_, slots| Arc::strong_count(slots) > 1);
        let slots = Arc::new(AccountSlots {
            resource: Resource(hash_of(user).max(1)),
            ..AccountSlots::default()
        });
        let shared = all.values().filter(|slots| slots.is_shared()).count();
        slots.follow(user, settings, shared < SHARED_MAX);
        all.insert(account, slots.clone());
        slots
    }

    /// Limits that the pools of the fleet share, each with its whole, what this pool could use, and
    /// what it should have at least. Accounts of one number are one limit. The first
    /// [`SHARED_MAX`] accounts share theirs; those of the others are this pool's.
    pub(crate) fn shared_limits(&self) -> Vec<(Resource, usize, usize, usize)> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut limits = BTreeMap::new();
        for slots in all.values() {
            if let Some((max, demand)) = slots.demand() {
                let limit: &mut (usize, usize) = limits.entry(slots.resource).or_insert((max, 0));
                *limit = (limit.0.min(max), limit.1 + demand);
            }
        }
        let limit = |(resource, (max, demand))| (resource, max, demand, 1);
        limits.into_iter().map(limit).collect()
    }

    /// Takes the parts that the fleet leaves to this pool; `true` when groups are to look what they
    /// have.
    pub(crate) fn fit(&self, totals: &BTreeMap<Resource, usize>) -> bool {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fit = |slots: &Arc<AccountSlots>| {
            slots.fit(totals.get(&slots.resource).copied().unwrap_or(0))
        };
        all.values().filter(|slots| fit(slots)).count() > 0
    }

    /// Limits the accounts as these settings do.
    pub(crate) fn follow(&self, settings: &Settings) {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut shared = all.values().filter(|slots| slots.is_shared()).count();
        for ((user, _), slots) in &*all {
            let was = slots.is_shared();
            slots.follow(user, settings, was || shared < SHARED_MAX);
            shared += usize::from(!was && slots.is_shared());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Raw;

    const MS: u64 = 1_000_000;
    const LATE: Time = Time(1_000_000 * MS);

    impl AccountSlots {
        fn has_room(&self, place: Place, since: u64, now: Time) -> bool {
            self.waits_until(place, Time(since), now).is_none()
        }
    }

    /// An account that the server limits to `limit` connections, all of which are open.
    fn full(limit: isize) -> AccountSlots {
        let slots = AccountSlots::default();
        slots.count(limit + 1, 1);
        slots.refused("error 1226: no", Time(0));
        slots.count(-1, -1);
        slots
    }

    #[test]
    fn a_refusal_limits_all_groups_until_the_server_takes_more() {
        let slots = AccountSlots::default();
        slots.count(2, 0);
        assert!(slots.has_room((0, 0), 0, Time(0)));
        assert_eq!(slots.words(), None);
        let slots = full(2);
        assert_eq!(slots.words().as_deref(), Some("error 1226: no"));
        let look = Time(0) + LOOK_MIN;
        assert_eq!(slots.waits_until((1, 0), Time(0), Time(0)), Some(look));
        assert!(slots.has_room((1, 0), 0, look));
        slots.count(1, 1);
        assert!(!slots.has_room((0, 0), 0, look), "one at a time");
        slots.count(0, -1);
        slots.opened(look);
        slots.lock().look_at = Time::NEVER;
        assert!(!slots.has_room((0, 0), 0, LATE));
        slots.count(-1, 0);
        assert!(slots.has_room((0, 0), 0, LATE), "it takes three");
    }

    #[test]
    fn the_settings_limit_an_account_before_the_server_does() {
        let slots = AccountSlots::default();
        slots.set_max(Some(2));
        assert!(slots.take() && slots.take());
        assert!(!slots.take() && slots.is_at_max());
        assert!(!slots.has_room((1, 0), 0, LATE), "nor does one look");
        slots.want((1, 0), Some(Time(10 * MS)));
        assert_eq!(slots.owed_at((0, 0), None), Some(Time(60 * MS)));
        slots.count(-1, -1);
        assert!(slots.has_room((1, 0), 0, LATE) && slots.take());
        slots.set_max(None);
        assert!(slots.take() && !slots.is_at_max());
    }

    #[test]
    fn a_server_takes_so_many_and_what_stands_already_counts() {
        let limits = |backends_max, running_max| ServerLimits {
            backends_max,
            running_max,
        };
        let server = AccountSlots::of_server(limits(Some(2), None));
        let first = server.connected();
        let second = server.connect().unwrap();
        assert!(server.connect().is_none() && server.is_at_max());
        let arrived = server.connected();
        assert_eq!(server.used(), (3, Some(2)));
        server.want((1, 0), Some(Time(10 * MS)));
        assert_eq!(second.wanting(), [1]);
        drop((first, arrived));
        assert!(server.has_room((1, 0), 0, LATE) && server.connect().is_some());
        let unlimited = AccountSlots::of_server(limits(None, None));
        let all: Vec<_> = (0..100).map(|_| unlimited.connect().unwrap()).collect();
        assert_eq!((unlimited.used(), all.len()), ((100, None), 100));
        assert!(!unlimited.is_limited() && unlimited.running().is_none() && all[0].run().is_none());
    }

    #[test]
    fn so_many_connections_of_a_server_run_something_and_the_oldest_want_is_next() {
        let server = AccountSlots::of_server(ServerLimits {
            backends_max: None,
            running_max: Some(2),
        });
        let running = server.running().unwrap();
        let connection = server.connect().unwrap();
        let first = running.connect().unwrap();
        let second = running.connect().unwrap();
        assert!(running.connect().is_none() && server.connect().is_some());
        // Who keeps a backend is not held up.
        let kept = connection.run().unwrap();
        assert_eq!(running.used(), (3, Some(2)));
        running.want((1, 0), Some(Time(10 * MS)));
        assert_eq!(kept.give_back(), [1]);
        assert!(!running.has_room((1, 0), 10 * MS, LATE));
        assert_eq!(second.give_back(), [1]);
        assert!(running.has_room((1, 0), 10 * MS, LATE));
        assert!(!running.has_room((0, 0), 11 * MS, LATE));
        running.want((1, 0), None);
        assert!(running.has_room((0, 0), 11 * MS, LATE) && !running.is_wanted());
        assert!(first.give_back().is_empty());
    }

    #[test]
    fn no_more_backends_are_kept_than_may_be() {
        let slots = Arc::new(AccountSlots::default());
        let before = slots.keep();
        slots.kept_max.store(2, SeqCst);
        let two = (slots.keep().unwrap(), slots.keep().unwrap());
        assert!(slots.keep().is_none() && before.is_some());
        drop(before);
        assert!(slots.keep().is_none(), "it was not counted");
        drop(two.0);
        assert!(slots.keep().is_some_and(|_| slots.keep().is_none()));
        assert!(slots.keep().is_some());
    }

    #[test]
    fn looks_become_rare_and_an_account_without_connections_may_have_one() {
        let slots = AccountSlots::default();
        slots.count(1, 1);
        let mut pauses = Vec::new();
        for _ in 0..8 {
            slots.refused("", Time(0));
            slots.refused("", Time(0));
            pauses.push(slots.lock().look_at.since(Time(0)).as_millis());
        }
        assert_eq!(pauses, [50, 100, 200, 400, 800, 1600, 2000, 2000]);
        slots.count(-1, -1);
        assert!(
            !slots.has_room((0, 0), 0, Time(1_999 * MS)),
            "others have all"
        );
        assert!(slots.has_room((0, 0), 0, Time(2_000 * MS)));
        slots.opened(Time(0));
        slots.refused("", Time(0));
        assert!(slots.has_room((0, 0), 0, Time(0) + AGAIN_AFTER));
    }

    #[test]
    fn a_server_that_still_counts_a_closed_connection_does_not_lower_the_limit() {
        let slots = full(3);
        slots.count(-1, 0);
        let refuse = |now| {
            slots.count(1, 1);
            slots.refused("", now);
            slots.count(-1, -1);
        };
        refuse(LATE);
        assert!(!slots.has_room((0, 0), 0, LATE), "it needs a moment");
        assert!(slots.has_room((0, 0), 0, LATE + AGAIN_AFTER));
        assert_eq!(slots.lock().limit, Some(3));
        refuse(LATE);
        assert_eq!(slots.lock().limit, Some(2), "others have it");
    }

    #[test]
    fn what_is_free_goes_to_who_waits_longest() {
        let slots = full(2);
        assert!(slots.want((1, 0), Some(Time(5))));
        assert!(!slots.want((1, 0), Some(Time(6))), "it is known");
        slots.count(-1, 0);
        assert!(!slots.has_room((0, 0), 7, LATE), "no look takes it");
        assert!(slots.has_room((0, 1), 5, LATE), "it waits longer");
        assert!(slots.has_room((1, 0), 6, LATE));
        assert_eq!(slots.wanting(), [1]);
        assert!(!slots.want((1, 0), None));
        assert_eq!(slots.wanting(), Vec::<usize>::new());
        assert!(slots.has_room((0, 0), 7, LATE));
    }

    #[test]
    fn a_backend_is_closed_for_a_front_that_has_waited_clearly_longer() {
        let slots = full(1);
        assert_eq!(slots.owed_at((0, 0), None), None);
        slots.want((1, 0), Some(Time(10 * MS)));
        let at = Time(60 * MS);
        assert_eq!(slots.owed_at((0, 0), None), Some(at));
        assert_eq!(slots.owed_at((0, 0), Some(Time(59 * MS))), None);
        assert_eq!(slots.owed_at((0, 0), Some(at)), Some(at));
        assert_eq!(slots.owed_at((1, 0), None), None, "its own");
        slots.count(-1, 0);
        assert_eq!(slots.owed_at((0, 0), None), None, "it has that one");
    }

    /// Settings of a fleet with so many users, whose accounts have four connections each.
    fn fleet_of(users: usize) -> Settings {
        let user = |n| format!("[[user]]\nname = \"u{n}\"\npassword = \"p\"\n");
        let users: String = (0..users).map(user).collect();
        let text = format!(
            "listen = [\"127.0.0.1:1\"]\naccount_backends_max = 4\n\
             [backend]\naddress = \"127.0.0.1:2\"\n[fleet]\nname = \"shop\"\n{users}"
        );
        Raw::parse(&text).and_then(Raw::check).unwrap()
    }

    #[test]
    fn accounts_of_one_number_are_one_limit_of_the_fleet() {
        let (all, settings) = (AllAccountSlots::default(), fleet_of(1));
        let both = [None, Some(ServerId(0))].map(|on| all.of("u0", on, &settings));
        let part = BTreeMap::from([(both[0].resource, 4)]);
        all.fit(&part);
        assert!(both.iter().all(|one| one.take()));
        assert_eq!(all.shared_limits(), [(both[0].resource, 4, 2, 1)]);
    }

    #[test]
    fn the_first_accounts_share_their_limits_and_the_others_are_this_pools_own() {
        let (all, settings) = (AllAccountSlots::default(), fleet_of(SHARED_MAX + 1));
        let account = |n: usize| all.of(&format!("u{n}"), None, &settings);
        let each: Vec<_> = (0..=SHARED_MAX).rev().map(account).collect();
        for _ in 0..2 {
            all.fit(&BTreeMap::new());
            assert_eq!(all.shared_limits().len(), SHARED_MAX);
            assert!(!each[0].take() && !each[SHARED_MAX - 1].take());
            assert!(each[SHARED_MAX].take());
            all.follow(&settings);
        }
    }

    #[test]
    fn backends_that_the_fleet_takes_back_are_no_demand() {
        let (all, settings) = (AllAccountSlots::default(), fleet_of(1));
        let slots = all.of("u0", None, &settings);
        let part = |units| BTreeMap::from([(slots.resource, units)]);
        assert!(!all.fit(&part(4)));
        assert!((0..4).all(|_| slots.take()));
        assert!(all.fit(&part(2)), "groups are to look what they have");
        assert!(!all.fit(&part(2)), "it is known");
        assert_eq!(all.shared_limits(), [(slots.resource, 4, 4, 1)]);
        slots.want((0, 0), Some(Time(0)));
        assert_eq!(all.shared_limits(), [(slots.resource, 4, 8, 1)]);
    }
}
