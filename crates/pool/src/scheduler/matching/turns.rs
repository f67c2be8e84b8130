//! Turns of the clients in the queues of a group.
//!
//! The rules are those of `lane.rs`, within one pool. Here comes in what does not stand in a lane:
//! the backends that are reserved for logins and statements of high priority, and slow readers,
//! which keep backends from others.

use crate::backend::{InFlight, Purpose, SchemaThere};
use crate::client::ClientState;
use crate::group::tokens::{BackendId, ClientId};
use crate::scheduler::lane::{LaneName, Waiting};
use crate::scheduler::matching::Matching;
use crate::scheduler::priority::{Mode, Priority};
use reactor::{Slots, Time};
use session::state::can_restore;

/// Lanes of those who wait for a backend, and may be refused one.
pub(crate) const REFUSABLE: [LaneName; 4] = [
    LaneName::Login,
    LaneName::High,
    LaneName::Low,
    LaneName::Long,
];

/// All lanes.
const ALL: [LaneName; 5] = [
    LaneName::Login,
    LaneName::High,
    LaneName::Low,
    LaneName::Held,
    LaneName::Long,
];

/// True if a lane's entry still stands: its client is there and has not been served since.
pub(crate) fn stands<S>(
    clients: &Slots<crate::client::Client<S>, ClientId>,
    waiting: &Waiting,
) -> bool {
    clients
        .get(waiting.client)
        .is_some_and(|client| client.place.stands_since(waiting.since))
}

impl<S> Matching<'_, S> {
    /// The one of a pool whose turn is next.
    pub(crate) fn front_of(&mut self, pool: usize) -> Option<Waiting> {
        if self.line.is_empty() {
            return None;
        }
        let (now, kickup, clients) = (self.now, self.settings.prio_kickup, self.clients);
        let takes_long = !self.is_squeezed();
        let mut lanes = std::mem::take(&mut self.pools.pools[pool].lanes);
        if !takes_long {
            let is_long = |waiting: &Waiting| self.is_long(waiting.client);
            lanes.set_aside(|waiting| stands(clients, waiting), is_long);
        }
        let next = lanes.next(now, kickup, takes_long, |waiting| stands(clients, waiting));
        self.pools.pools[pool].lanes = lanes;
        next
    }

    /// The one of a pool that waits for longest in one of its lanes.
    pub(crate) fn front_in(&mut self, pool: usize, lane: LaneName) -> Option<Waiting> {
        let clients = self.clients;
        (self.pools).front_in(pool, lane, |waiting| stands(clients, waiting))
    }

    /// The one of a pool who may be given a backend now: the one whose turn is next, unless what is
    /// left of the backends is reserved for others.
    pub(crate) fn front_to_serve(&mut self, pool: usize) -> Option<Waiting> {
        let front = self.front_of(pool)?;
        let is_low = matches!(front.lane, LaneName::Low | LaneName::Long);
        if !is_low || !self.is_reserve_reached(pool) {
            return Some(front);
        }
        let others = [LaneName::Held, LaneName::Login, LaneName::High];
        others
            .into_iter()
            .find_map(|lane| self.front_in(pool, lane))
    }

    /// True if the low lane of a pool has as many backends as it may have: all, while slow readers
    /// keep their share from others, or while its account has less than its fair part.
    pub(crate) fn is_reserve_reached(&mut self, pool: usize) -> bool {
        let unused = self.pools.unused();
        let reached = self.shared.budget.is_reserve_reached(self.index, unused);
        reached && !self.is_squeezed() && !self.is_below_fair_part(pool)
    }

    /// True if the low lane waits for a backend besides the reserve, and the group may have more.
    pub(crate) fn wants_more(&mut self, pool: usize) -> bool {
        let budget = &self.shared.budget;
        self.pools.count < budget.most()
            && self.pools.unused() <= budget.reserved(self.index)
            && self.is_reserve_reached(pool)
            && self.front_in(pool, LaneName::Low).is_some()
    }

    /// Takes out of its lane a client of a pool that waits for a backend and may be refused one.
    pub(crate) fn take_refusable(&mut self, pool: usize) -> Option<ClientId> {
        let clients = self.clients;
        (self.pools).take_waiting(pool, &REFUSABLE, |waiting| stands(clients, waiting))
    }

    /// Since when the one waits that has waited for longest, of those who may be served: nobody can
    /// help by waiting those that slow readers keep from being started.
    pub(crate) fn oldest_wait_to_serve(&mut self) -> Option<Time> {
        let lanes: &[LaneName] = match self.is_squeezed() {
            true => &LaneName::ALL,
            false => &ALL,
        };
        let clients = self.clients;
        (self.pools).oldest_wait(lanes, |waiting| stands(clients, waiting))
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
            None => Some((self.front_in(pool, LaneName::Held)?, None)),
        }
    }

    /// When the first waiting client's time is up.
    pub(crate) fn next_expiry(&mut self) -> Time {
        let clients = self.clients;
        let oldest = (self.pools).oldest_wait(&REFUSABLE, |waiting| stands(clients, waiting));
        oldest.map_or(Time::NEVER, |since| since + self.settings.wait_max)
    }

    /// When something is due for those who wait in lanes.
    pub(crate) fn next_for_waiting(&mut self) -> Time {
        let next = self.next_expiry().min(self.next_dial());
        let (shared, settings, running) = (self.shared, self.settings, self.running);
        let next = next.min(running.next_stall(self.backends, shared, settings));
        // At the limit it could start nothing even if it did not yield, and looks when something
        // ends.
        match running.has_room(0, shared, settings) {
            true => next.min(running.look.get().next()),
            false => next,
        }
    }

    /// True while slow readers have used up their share of the backends.
    pub(crate) fn is_squeezed(&self) -> bool {
        (self.slow_readers).is_squeezed(self.settings, self.shared, self.index)
    }

    /// True while slow readers keep more than their share of the backends.
    pub(crate) fn is_over_share(&self) -> bool {
        (self.slow_readers).is_over(self.settings, self.shared, self.index)
    }

    /// True if the reply to a client's statement is known to hold up its backend.
    pub(crate) fn is_long(&self, key: ClientId) -> bool {
        let client = self.clients.get(key);
        client.is_some_and(|client| {
            (self.slow_readers).is_long(client.statement.digest)
                && !self.shapes.are_short(client.shape())
        })
    }

    /// True if a client's statement is known to be long, and the share for those is used up.
    pub(crate) fn is_held_back(&self, key: ClientId) -> bool {
        self.is_squeezed() && self.is_long(key)
    }

    /// True if a statement waits that is known to be long.
    pub(crate) fn long_waits(&mut self) -> bool {
        let pools = self.pools.pools.len();
        (0..pools).any(|pool| self.front_in(pool, LaneName::Long).is_some())
    }

    /// Statements that wait because the share of those known to be long is used up.
    pub(crate) fn set_aside(&self) -> usize {
        if !self.is_squeezed() {
            return 0;
        }
        let stands = |waiting: &Waiting| stands(self.clients, waiting);
        let pools = self.pools.pools.iter();
        pools
            .map(|pool| pool.lanes.count(LaneName::Long, stands))
            .sum()
    }

    /// True if a client's statement goes to the high lane because its reply is known to be short,
    /// by its shape or as that of a write, and slow readers keep more than they may.
    pub(crate) fn goes_before_slow(&self, key: ClientId) -> bool {
        self.is_over_share()
            && self.clients.get(key).is_some_and(|client| {
                let limits = &self.settings.users[client.user as usize].limits;
                client.place.priority.unwrap_or(limits.priority) != Priority::Low
                    && (client.statement.has_short_reply() || self.shapes.are_short(client.shape()))
            })
    }

    /// Puts those into the high lane that are known to be short and came when slow readers did not
    /// keep so much from others: what is in front of them in the low lane may wait for long. Who
    /// has been moved is returned.
    pub(crate) fn put_short_first(&mut self) -> Vec<ClientId> {
        let mut moved = Vec::new();
        for pool in 0..self.pools.pools.len() {
            let mut lanes = std::mem::take(&mut self.pools.pools[pool].lanes);
            let goes_first = |waiting: &Waiting| {
                stands(self.clients, waiting) && self.goes_before_slow(waiting.client)
            };
            let raised = lanes.raise(goes_first).into_iter();
            moved.extend(raised.map(|waiting| waiting.client));
            self.pools.pools[pool].lanes = lanes;
        }
        moved
    }

    /// True if a client's command waits though it has this backend: a KILL for the statement before
    /// may still hit it; or it has the backend only until something is read back, and others wait
    /// for its end, so that this one must not go before theirs. Nor must one go out while what is
    /// read back comes from a backend that stands in a schema that is not its client's, or while
    /// the server reports its session: what is sent behind that may already stand in another one.
    pub(crate) fn waits_for_read_back(&mut self, key: ClientId, backend_id: BackendId) -> bool {
        let Some(backend) = self.backends.get(backend_id) else {
            return false;
        };
        if backend.reuse.is_frozen() {
            return true;
        }
        let Some(client) = self.clients.get(key) else {
            return false;
        };
        let reports = |command: &InFlight| matches!(command.purpose, Purpose::Reports(_));
        let asks = !backend.flight().is_empty();
        let elsewhere = backend.schema == SchemaThere::Another
            || !can_restore(&backend.session, &client.session);
        let unsure = elsewhere || backend.flight().iter().any(reports);
        let ends = asks && !client.is_held() && !backend.in_transaction();
        let pool = client.pool as usize;
        asks && unsure || ends && self.front_of(pool).is_some()
    }

    /// True if a statement of a client that has this backend waits for its turn as well, because as
    /// many statements run as may: under `high_prio_mode = "none"`.
    pub(crate) fn waits_with_backend(&self, key: ClientId, backend_id: BackendId) -> bool {
        let (Some(client), Some(backend)) = (self.clients.get(key), self.backends.get(backend_id))
        else {
            return false;
        };
        let limits = &self.settings.users[client.user as usize].limits;
        limits.high_prio_mode == Mode::None
            && client.state() == ClientState::Idle
            && backend.flight().is_empty()
            && self.running.is_full_of_held(self.shared, self.settings)
    }
}
