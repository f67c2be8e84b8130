//! Turns of the clients in the queues of a group.
//!
//! The rules are those of `queue.rs`, within one pool. Here comes in what does not stand in a
//! queue: the backends that are reserved for logins and statements of high priority, and slow
//! readers, which keep backends from others.

use crate::backend::{Backend, ForSession, InFlight, Purpose};
use crate::client::ClientState;
use crate::group::tokens::{BackendId, ClientId};
use crate::limits::slow_readers::first_runs::TRIAL_MAX;
use crate::scheduler::matching::Matching;
use crate::scheduler::priority::{Mode, Priority};
use crate::scheduler::queue::{QueueName, Waiting};
use reactor::{Slots, Time};
use session::state::can_restore;

/// Entries at the end of a queue that are looked at for one whose text may be tried.
pub(crate) const TRIAL_LOOKS_MAX: usize = 256;
/// Queues of those who wait for a backend, and may be refused one.
pub(crate) const REFUSABLE: [QueueName; 4] = [
    QueueName::Login,
    QueueName::High,
    QueueName::Low,
    QueueName::Long,
];

/// All queues.
const ALL: [QueueName; 5] = [
    QueueName::Login,
    QueueName::High,
    QueueName::Low,
    QueueName::Held,
    QueueName::Long,
];

/// True if a queue's entry still stands: its client is there, and has neither been served since nor
/// gone to another pool.
pub(crate) fn stands<S>(
    clients: &Slots<crate::client::Client<S>, ClientId>,
    waiting: &Waiting,
) -> bool {
    clients.get(waiting.client).is_some_and(|client| {
        client.place.stands_since(waiting.since) && client.pool == waiting.pool
    })
}

impl<S> Matching<'_, S> {
    /// The one of a pool whose turn is next.
    pub(crate) fn front_of(&mut self, pool: usize) -> Option<Waiting> {
        if self.waiting_count.is_empty() {
            return None;
        }
        let (now, kickup, clients) = (self.now, self.settings.prio_kickup, self.clients);
        let takes_long = !self.is_squeezed();
        let mut queues = std::mem::take(&mut self.pools.pools[pool].queues);
        if !takes_long {
            let is_long = |waiting: &Waiting| self.is_long(waiting.client);
            queues.set_aside(|waiting| stands(clients, waiting), is_long);
        }
        let next = queues.next(now, kickup, takes_long, |waiting| stands(clients, waiting));
        self.pools.pools[pool].queues = queues;
        next
    }

    /// The one of a pool that waits for longest in one of its queues.
    pub(crate) fn front_in(&mut self, pool: usize, queue: QueueName) -> Option<Waiting> {
        let clients = self.clients;
        (self.pools).front_in(pool, queue, |waiting| stands(clients, waiting))
    }

    /// The one of a pool who may be given a backend now: the one whose turn is next, unless what is
    /// left of the backends is reserved for others.
    pub(crate) fn front_to_serve(&mut self, pool: usize) -> Option<Waiting> {
        let front = self.front_of(pool)?;
        let is_low = matches!(front.queue, QueueName::Low | QueueName::Long);
        let waits = is_low && (self.is_reserve_reached(pool) || self.waits_for_alike(front.client));
        if !waits {
            return Some(front);
        }
        let others = [QueueName::Held, QueueName::Login, QueueName::High];
        (others.into_iter()).find_map(|queue| self.front_in(pool, queue))
    }

    /// True if the low queue of a pool has as many backends as it may have: all, while its account
    /// has less than its fair part.
    pub(crate) fn is_reserve_reached(&mut self, pool: usize) -> bool {
        let unused = self.pools.unused();
        let besides = usize::from(self.tries_texts());
        let reached = (self.shared.budget).is_reserve_reached(self.index, unused, besides);
        reached && !self.is_below_fair_part(pool)
    }

    /// True if the low queue waits for a backend besides the reserve, and the group may have more.
    pub(crate) fn wants_more(&mut self, pool: usize) -> bool {
        let budget = &self.shared.budget;
        self.pools.count < budget.most()
            && self.pools.unused() <= budget.reserved(self.index)
            && self.is_reserve_reached(pool)
            && self.front_in(pool, QueueName::Low).is_some()
    }

    /// Takes out of its queue a client of a pool that waits for a backend and may be refused one.
    pub(crate) fn take_refusable(&mut self, pool: usize) -> Option<ClientId> {
        let clients = self.clients;
        (self.pools).take_waiting(pool, &REFUSABLE, |waiting| stands(clients, waiting))
    }

    /// Moment since which the oldest of those who may be served waits: nobody can help by waiting
    /// those that slow readers keep from being started.
    pub(crate) fn oldest_wait_to_serve(&mut self) -> Option<Time> {
        let queues: &[QueueName] = match self.is_squeezed() {
            true => &QueueName::ALL,
            false => &ALL,
        };
        let clients = self.clients;
        (self.pools).oldest_wait(queues, |waiting| stands(clients, waiting))
    }

    /// Client of a pool that gets on now, with its idle backend; `None` for one that has had a
    /// backend all the while.
    pub(crate) fn next_to_serve(&mut self, pool: usize) -> Option<(Waiting, Option<BackendId>)> {
        let waiting = self.front_to_serve(pool)?;
        let client = self.clients.get(waiting.client)?;
        let idle = match client.backend() {
            Some(_) => None,
            None => self.pick_idle(pool, waiting.client),
        };
        match idle {
            Some(backend) => Some((waiting, Some(backend))),
            None => Some((self.front_in(pool, QueueName::Held)?, None)),
        }
    }

    /// Moment at which the first waiting client's time is up.
    pub(crate) fn next_expiry(&mut self) -> Time {
        let clients = self.clients;
        let oldest = (self.pools).oldest_wait(&REFUSABLE, |waiting| stands(clients, waiting));
        oldest.map_or(Time::NEVER, |since| since + self.settings.wait_max)
    }

    /// True if one more backend of a pool may run a statement: of one on a server that is read, as
    /// long as the pool is not paused; and as far as its server has a limit of its own.
    pub(crate) fn may_run(&mut self, pool: usize) -> bool {
        let may = match self.pools.is_reader(pool) {
            true => !self.shared.scheduling.is_paused(),
            false => self.running.has_room(0, self.shared, self.settings),
        };
        may && !self.waits_to_run(pool)
    }

    /// True if as many run something on a pool's server as may, or others who wait for longer get
    /// what is free.
    pub(crate) fn waits_to_run(&mut self, pool: usize) -> bool {
        let Some(running) = self.pools.pools[pool].running().cloned() else {
            return false;
        };
        let since = self.front_of(pool).map_or(self.now, |front| front.since);
        running
            .waits_until((self.index, pool), since, self.now)
            .is_some()
    }

    /// True if as many statements run as may, on some server.
    pub(crate) fn lacks_running(&self) -> bool {
        !self.running.has_room(0, self.shared, self.settings) || self.shared.is_running_full()
    }

    /// True if somebody may be served, on some server.
    pub(crate) fn may_run_any(&self) -> bool {
        self.running.has_room(0, self.shared, self.settings)
            || self.shared.cluster.is_some() && !self.shared.scheduling.is_paused()
    }

    /// Moment at which something is due for those who wait in queues.
    pub(crate) fn next_for_waiting(&mut self) -> Time {
        let next = self.next_expiry().min(self.next_dial());
        let next = next.min(self.slow_readers.next_started(self.now));
        let next = match self.lacks_running() {
            true => next.min(self.running.next_stall(self.backends, self.settings)),
            false => next,
        };
        // At the limit it could start nothing even if it did not yield, and looks when something
        // ends.
        match self.may_run_any() {
            true => next.min(self.running.look.get().next()),
            false => next,
        }
    }

    /// True while slow readers have used up their share of the backends.
    pub(crate) fn is_squeezed(&self) -> bool {
        (self.slow_readers).is_squeezed(self.settings, self.shared, self.index)
    }

    /// True if the reply to a client's statement is known to hold up its backend.
    pub(crate) fn is_long(&self, key: ClientId) -> bool {
        let client = self.clients.get(key);
        client.is_some_and(|client| {
            (self.slow_readers).is_long(client.session.statement.digest)
                && !self.known_digests.are_short(client.session_digest())
        })
    }

    /// True if a client's statement is known to be long, and the share for those is used up.
    pub(crate) fn is_held_back(&self, key: ClientId) -> bool {
        self.is_squeezed() && self.is_long(key)
    }

    /// True if, beside a reserve, half of the backends may be those of slow readers by texts of the
    /// shape of a client's.
    pub(crate) fn waits_for_alike(&self, key: ClientId) -> bool {
        let (budget, squeezed) = (&self.shared.budget, self.is_squeezed());
        let half = budget.share(self.index) / 2;
        budget.reserved(self.index) > 0
            && self.clients.get(key).is_some_and(|client| {
                let digest = client.session.statement.digest;
                !client.session.statement.has_short_reply()
                    && (self.slow_readers).has_alike(digest, half, squeezed, self.now)
            })
    }

    /// True if a statement waits that is known to be long.
    pub(crate) fn long_waits(&mut self) -> bool {
        let pools = self.pools.pools.len();
        (0..pools).any(|pool| self.front_in(pool, QueueName::Long).is_some())
    }

    /// Statements that wait because the share of those known to be long is used up.
    pub(crate) fn set_aside(&self) -> usize {
        if !self.is_squeezed() {
            return 0;
        }
        let stands = |waiting: &Waiting| stands(self.clients, waiting);
        let pools = self.pools.pools.iter();
        (pools.map(|pool| pool.queues.count(QueueName::Long, stands))).sum()
    }

    /// True if a client's statement goes to the high queue because its reply is taken for short,
    /// and slow readers have used up their share: by its digest, as that of a write, or, where
    /// nobody knows its text, because its client has had a reply meanwhile. On a single backend all
    /// wait in order.
    pub(crate) fn goes_before_slow(&self, key: ClientId) -> bool {
        self.is_squeezed()
            && self.shared.budget.share(self.index) > 1
            && self.clients.get(key).is_some_and(|client| {
                let limits = &self.settings.users[client.identity.user()].limits;
                client.place.priority.unwrap_or(limits.priority) != Priority::Low
                    && (client.session.statement.has_short_reply()
                        || self.known_digests.are_short(client.session_digest())
                        || self.slow_readers.is_proven(key) && !self.is_long(key))
            })
    }

    /// True if one of the texts that nobody knows may be tried, beside a reserve and readers that
    /// have used up their share.
    fn tries_texts(&self) -> bool {
        self.is_squeezed()
            && self.shared.budget.reserved(self.index) > 0
            && !self.slow_readers.has_trial(self.clients, self.now)
    }

    /// True if nobody knows a client's text, none is tried, and a backend besides the reserve
    /// serves short statements, while slow readers have used up their share: it goes to the high
    /// queue, as one that is taken for short.
    pub(crate) fn may_try(&self, key: ClientId) -> bool {
        self.tries_texts() && self.rank_of_trial(key).is_some() && self.has_one_besides_reserve()
    }

    /// Rank of a client whose text may be tried: whether that is unlike long ones, and how many
    /// statements the client has run.
    fn rank_of_trial(&self, key: ClientId) -> Option<(bool, u32)> {
        let client = self.clients.get(key)?;
        let limits = &self.settings.users[client.identity.user()].limits;
        let is_tried = client.place.priority.unwrap_or(limits.priority) != Priority::Low
            && !self.is_long(key)
            && !self.waits_for_alike(key);
        let is_unlike = !(self.slow_readers).is_like_long(client.session.statement.digest);
        is_tried.then_some((is_unlike, client.session.last.number))
    }

    /// True if, when one backend more is a slow reader's, as many as are reserved (and one more
    /// after a trial in vain) are free or run short statements. Where these are many, the one
    /// besides is hardly ever free.
    fn has_one_besides_reserve(&self) -> bool {
        let (budget, unused) = (&self.shared.budget, self.pools.unused());
        let serves_short = |(backend_id, backend): (BackendId, &Backend<S>)| {
            let client = backend.client_in(self.clients);
            let first = backend.flight.front();
            first.is_some_and(|command| self.now.since(command.sent) < TRIAL_MAX)
                && client.is_some_and(|client| !client.session.is_held())
                && !backend.session.in_transaction()
                && !self.slow_readers.counts(backend_id)
        };
        let short = || (self.backends.iter().filter(|found| serves_short(*found))).count();
        let besides = self.slow_readers.besides_trials();
        !budget.is_reserve_reached(self.index, unused, besides)
            || !budget.is_reserve_reached(self.index, unused + short(), besides)
    }

    /// Puts one of the low queues whose text may be tried into the high one; it is returned: of
    /// those unlike long ones, if any is, and of the last come the one that has run most
    /// statements, or the one that waits for longest.
    pub(crate) fn put_trial_first(&mut self) -> Option<ClientId> {
        if !self.tries_texts() || !self.has_one_besides_reserve() {
            return None;
        }
        let may_try = |waiting: &Waiting| match stands(self.clients, waiting) {
            true => Some((self.rank_of_trial(waiting.client)?, *waiting)),
            false => None,
        };
        let pools = self.pools.pools.iter();
        let low = pools.map(|pool| pool.queues.entries(QueueName::Low));
        let (_, tried) = match self.slow_readers.tries_oldest() {
            true => low
                .flat_map(|low| low.take(TRIAL_LOOKS_MAX).filter_map(may_try))
                .min_by_key(|((is_unlike, _), waiting)| (!is_unlike, waiting.since)),
            false => low
                .flat_map(|low| low.rev().take(TRIAL_LOOKS_MAX).filter_map(may_try))
                .max_by_key(|(rank, waiting)| (*rank, waiting.since)),
        }?;
        let queues = &mut self.pools.pools[tried.pool as usize].queues;
        queues.raise(|waiting| *waiting == tried);
        Some(tried.client)
    }

    /// Puts those into the high queue that are taken for short and came when slow readers did not
    /// keep so much from others: what is in front of them in the low queue may wait for long. Who
    /// has been moved is returned.
    pub(crate) fn put_short_first(&mut self) -> Vec<ClientId> {
        let mut moved = Vec::new();
        for pool in 0..self.pools.pools.len() {
            let mut queues = std::mem::take(&mut self.pools.pools[pool].queues);
            let goes_first = |waiting: &Waiting| {
                stands(self.clients, waiting) && self.goes_before_slow(waiting.client)
            };
            let raised = queues.raise(goes_first).into_iter();
            moved.extend(raised.map(|waiting| waiting.client));
            self.pools.pools[pool].queues = queues;
        }
        moved
    }

    /// True if a client's command waits though it has a backend: a KILL for the statement before
    /// may still hit it; or it has the backend only until something is read back, and others wait
    /// for its end, so that this one must not go before theirs. Nor must one go out while what is
    /// read back comes from a backend that stands in a schema that is not its client's, or while
    /// the server reports its session: what is sent behind that may already stand in another one.
    pub(crate) fn waits_for_read_back(&mut self, key: ClientId) -> bool {
        let Some(client) = self.clients.get(key) else {
            return false;
        };
        let Some(backend) = client.backend_in(self.backends) else {
            return false;
        };
        if backend.reuse.is_frozen() {
            return true;
        }
        let reports = |command: &InFlight| {
            matches!(command.purpose, Purpose::Session(ForSession::Reports(_)))
        };
        let asks = !backend.flight.is_empty();
        let elsewhere = backend.session.is_in_another_schema()
            || !can_restore(&backend.session.state, &client.session.state);
        let unsure = elsewhere || backend.flight.iter().any(reports);
        let ends = asks && !client.session.is_held() && !backend.session.in_transaction();
        let pool = client.pool as usize;
        asks && unsure || ends && self.front_of(pool).is_some()
    }

    /// True if a statement of a client that has a backend waits for its turn as well, because as
    /// many statements run as may: under `high_prio_mode = "none"`.
    pub(crate) fn waits_with_backend(&self, key: ClientId) -> bool {
        let Some(client) = self.clients.get(key) else {
            return false;
        };
        let Some(backend) = client.backend_in(self.backends) else {
            return false;
        };
        let limits = &self.settings.users[client.identity.user()].limits;
        limits.high_prio_mode == Mode::None
            && client.state() == ClientState::Idle
            && backend.flight.is_empty()
            && !backend.is_reader()
            && (self.running.is_full_of_held(self.shared, self.settings)
                || self.pools.pools[backend.pool].is_running_full())
    }
}
