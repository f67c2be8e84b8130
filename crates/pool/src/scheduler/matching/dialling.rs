//! Backends that are to be opened, lent to another group, or closed for another pool.
//!
//! `budget.rs` has the rules between groups. Within a group a backend is opened for the first of a
//! queue that no backend there can serve, as far as the budget, the limits of dials and what may
//! run at once allow.

use crate::backend::pools::BackendPool;
use crate::backend::{Backend, BackendState};
use crate::group::tokens::BackendId;
use crate::scheduler::budget::Owed;
use crate::scheduler::matching::Matching;
use crate::scheduler::matching::choice::Affinity;
use reactor::Time;
use std::time::Duration;

/// A backend that has been idle for so long is lent: a dial costs about a millisecond, and who
/// pauses for less than this is not to pay for one each time.
const LEND_AFTER: Duration = Duration::from_millis(50);

impl<S> Matching<'_, S> {
    /// True if the first of a pool's queue waits because no backend of the pool can serve it.
    pub(crate) fn wants_dial(&mut self, pool: usize) -> bool {
        let Some(front) = self.front_to_serve(pool) else {
            return false;
        };
        let Some(client) = self.clients.get(front.client) else {
            return false;
        };
        client.backend().is_none() && self.pick_idle(pool, front.client).is_none()
    }

    /// True if the limits of dials, and what may run at once, allow another of this pool.
    pub(crate) fn may_dial(&self, pool: usize) -> bool {
        let is_reader = self.pools.is_reader(pool);
        let pool = &self.pools.pools[pool];
        self.pools.dialling < self.settings.dials_max
            && self.now >= pool.dial_at
            // The watch looks whether the server is back.
            && (is_reader || !self.shared.upstream.is_silent())
            && pool.dialling < pool.queues.len()
            // More than may run at once would only lie idle.
            && (is_reader || self.running.has_room(pool.dialling, self.shared, self.settings))
    }

    /// True when the server is known to take another connection of the account of a pool, and no
    /// other pool waits for it longer, or when it is time to look whether it does.
    pub(crate) fn account_has_room(&mut self, pool: usize) -> bool {
        self.waits_for_account(pool).is_none()
    }

    /// Moment at which to ask again for such room; `None`: there is some.
    fn waits_for_account(&mut self, pool: usize) -> Option<Time> {
        let since = self.front_of(pool).map_or(self.now, |front| front.since);
        let limits = self.pools.pools[pool].limits();
        let waits = limits.filter_map(|it| it.waits_until((self.index, pool), since, self.now));
        waits.max()
    }

    /// Notes which pools could use another connection of their account, or a place to run. `true`
    /// when one of them has not wanted one before: other groups are to look what they have.
    pub(crate) fn note_account_wants(&mut self) -> bool {
        let (mut is_new, mut any) = (false, false);
        for pool in 0..self.pools.pools.len() {
            let is_silent = self.shared.upstream.is_silent() && !self.pools.is_reader(pool);
            let may_run = self.may_run(pool) && !is_silent;
            let entry = &self.pools.pools[pool];
            let is_opening = entry.dialling > 0;
            let is_limited = entry.limits().any(|slots| slots.is_limited());
            let wants = may_run && !is_opening && is_limited && self.wants_dial(pool);
            let since = wants.then(|| self.front_of(pool).map(|front| front.since));
            let since = since.flatten();
            any |= since.is_some();
            for slots in self.pools.pools[pool].limits() {
                is_new |= slots.want((self.index, pool), since);
            }
            let (wants_anew, wants) = self.note_wants_to_run(pool);
            (is_new, any) = (is_new | wants_anew, any | wants);
        }
        self.pools.wants_account = any;
        is_new
    }

    /// Notes whether a pool's front waits for a place among what runs on its server, which comes
    /// second; first `true` when it has not waited before, or others can have what is free.
    fn note_wants_to_run(&mut self, pool: usize) -> (bool, bool) {
        let Some(running) = self.pools.pools[pool].running().cloned() else {
            return (false, false);
        };
        let front = self.front_of(pool).map(|front| front.since);
        let since = front.filter(|_| self.waits_to_run(pool));
        let is_new = running.want((self.index, pool), since);
        let is_free = !running.is_at_max() && running.is_wanted();
        (is_new || is_free, since.is_some())
    }

    /// The idle backend that is closed next for another pool of its account, and when.
    fn next_for_account(&self) -> Option<(Time, BackendId)> {
        let pools = self.pools.pools.iter().enumerate();
        let owed = pools.filter_map(|(pool, entry)| {
            let idle = *entry.idle.first()?;
            let place = (self.index, pool);
            let owed = (entry.limits()).filter_map(|slots| slots.owed_at(place, None));
            Some((owed.min()?, idle))
        });
        owed.min()
    }

    /// True if there is room for another backend, or somebody's idle one could make it.
    pub(crate) fn may_have_room(&self) -> bool {
        self.shared.budget.has_room(self.index)
            || (self.pools.pools.iter()).any(|pool| !pool.idle.is_empty())
    }

    /// Another pool whose clients wait, longer than `since`, without any backend.
    pub(crate) fn starved_pool(&mut self, pool: usize, since: Option<Time>) -> Option<usize> {
        if self.pools.pools.len() < 2 || self.shared.budget.has_room(self.index) {
            return None;
        }
        let now = self.now;
        // What is left of an older version of the privileges goes to whoever waits longest.
        let outdated = (self.pools).is_outdated(pool, self.shared.watched.privileges.version());
        let mut found: Option<(Time, usize)> = None;
        for other in (0..self.pools.pools.len()).filter(|&other| other != pool) {
            let pool = &self.pools.pools[other];
            let is_served = pool.count > 0 && !(outdated && pool.dialling < pool.queues.len());
            if is_served || pool.dial_at > now || !self.account_has_room(other) {
                continue;
            }
            if let Some(front) = self.front_of(other)
                && since.is_none_or(|since| front.since < since)
                && found.is_none_or(|(oldest, _)| front.since < oldest)
            {
                found = Some((front.since, other));
            }
        }
        found.map(|(_, other)| other)
    }

    /// True if those of a pool who wait may be served without another dial: by a backend that is
    /// idle, on its way, or runs a statement of a client that does not hold it.
    pub(crate) fn gets_one_free(&mut self, pool: usize) -> bool {
        if self.pools.pools[pool].count == 0 {
            return false;
        }
        let gets_free = |backend: &Backend<S>| match backend.state() {
            BackendState::Dialling | BackendState::Preparing => true,
            // Whether that can serve the first in line is asked below.
            BackendState::Idle => false,
            BackendState::CheckedOut => {
                let client = backend.client_in(self.clients);
                !backend.session.in_transaction()
                    && client.is_none_or(|client| !client.session.is_held())
            }
        };
        let all = self.backends.iter().map(|(_, backend)| backend);
        let of_pool = |backend: &&Backend<S>| backend.pool == pool;
        all.filter(of_pool).any(gets_free) || !self.wants_dial(pool)
    }

    /// Idle backend that is to be lent next, and the time.
    pub(crate) fn next_lent(&self) -> Option<(Time, BackendId)> {
        let for_account = self.next_for_account().into_iter();
        for_account.chain(self.next_for_groups()).min()
    }

    /// The idle backend that is closed next for a slot of the budget, and when.
    fn next_for_groups(&self) -> Option<(Time, BackendId)> {
        let budget = &self.shared.budget;
        if self.pools.unused() <= budget.reserved(self.index) {
            return None;
        }
        match budget.owed(self.index) {
            Owed::Nothing => None,
            Owed::AtOnce => self.longest_idle().map(|(_, key)| (Time(0), key)),
            Owed::Idle => (self.longest_idle()).map(|(since, key)| (since + LEND_AFTER, key)),
        }
    }

    fn longest_idle(&self) -> Option<(Time, BackendId)> {
        let idle = self.pools.pools.iter().flat_map(|pool| &pool.idle);
        let since = idle.filter_map(|key| Some((self.backends.get(*key)?.since(), *key)));
        since.min()
    }

    /// The idle backend that is closed when the budget is used up: it is of another pool that
    /// nobody waits for, or cannot be brought into the waiting client's state.
    pub(crate) fn least_needed(&self) -> Option<BackendId> {
        // The last one of an older version of the privileges cannot be dialled again.
        let now = self.shared.watched.privileges.version();
        let is_last = |pool: &BackendPool| pool.key.privileges != now && pool.count == 1;
        let all = self.pools.pools.iter();
        all.filter_map(|pool| Some((is_last(pool), *pool.idle.first()?)))
            .min_by_key(|(is_last, _)| *is_last)
            .map(|(_, victim)| victim)
    }

    /// True if a connection is to be opened that nobody waits for yet: whoever comes next would
    /// otherwise get a backend about which its last client alone may ask, and could be answered
    /// nowhere else.
    pub(crate) fn wants_spare(&self, pool: usize) -> bool {
        let kept = &self.pools.pools[pool];
        self.waiting_count.is_empty()
            && !self.drains
            && kept.dialling == 0
            && self.pools.dialling < self.settings.dials_max
            && self.now >= kept.dial_at
            && (self.running).has_room(kept.idle.len(), self.shared, self.settings)
            && self.shared.budget.by_right(self.index) > 0
            && self.shared.budget.has_room(self.index)
            // Looking at each backend comes last: it is done each time that one becomes free.
            && self.keeps_all_idle(pool)
    }

    /// True if each idle backend of a pool is kept for the client that it served last.
    fn keeps_all_idle(&self, pool: usize) -> bool {
        let is_kept = |backend_id: &BackendId| {
            let backend = self.backends.get(*backend_id);
            backend.is_some_and(|b| self.affinity(b) == Affinity::Only)
        };
        let idle = &self.pools.pools[pool].idle;
        !idle.is_empty() && idle.iter().all(is_kept)
    }

    /// Moment at which the next dial that somebody waits for may be tried.
    pub(crate) fn next_dial(&mut self) -> Time {
        if self.waiting_count.is_empty() || self.pools.dialling >= self.settings.dials_max {
            return Time::NEVER;
        }
        let late = (0..self.pools.pools.len()).filter_map(|pool| {
            let dial_at = self.pools.pools[pool].dial_at;
            let dial_at = dial_at.max(self.waits_for_account(pool).unwrap_or(dial_at));
            let wanted = dial_at > self.now && (self.wants_dial(pool) || self.wants_more(pool));
            wanted.then_some(dial_at)
        });
        late.min().unwrap_or(Time::NEVER).min(self.address_at)
    }

    /// True if somebody waits for what could be given at once: backends that were lost at the end
    /// of a turn have made room after everybody was served.
    pub(crate) fn is_behind(&mut self) -> bool {
        if self.waiting_count.is_empty() || !self.may_run_any() {
            return false;
        }
        let idle = (self.pools.pools.iter()).any(|pool| !pool.idle.is_empty());
        let slot = self.shared.budget.has_room(self.index);
        (0..self.pools.pools.len()).any(|pool| {
            if !self.may_run(pool) {
                return false;
            }
            let may_dial = self.may_dial(pool) && self.account_has_room(pool);
            if self.front_to_serve(pool).is_some() {
                may_dial && (slot || idle) || !self.wants_dial(pool)
            } else {
                may_dial && slot && self.wants_more(pool)
            }
        })
    }
}
