//! Leases: which client gets which backend, and when it gives it back.
//!
//! A statement gets an idle backend of its client's pool, or waits in the pool's lane, first come,
//! first served; a backend that becomes free goes to the front of the lane in the same turn.
//! Backends are dialled while somebody waits, the budget allows and dialling does not fail.
//!
//! A pool that has waiting clients and no backend at all takes one from another pool, oldest
//! waiter first, so that no account can shut out another.
//!
//! Invariants: an idle backend and a waiting client of the same pool do not exist side by side
//! (unless no command can bring that backend into the client's state; then it is replaced). The two
//! name each other by [`crate::backend::binding`].

pub(crate) mod bulk_turn;
pub(crate) mod fairness;
pub(crate) mod forgotten;
pub(crate) mod queueing;
pub(crate) mod sharing;
pub(crate) mod waiting;

use crate::backend::backend_pools::{BackendPool, DialEnd};
use crate::backend::riders::Riders;
use crate::backend::{Backend, BackendState, Endpoint, Purpose, Reports};
use crate::client::{Client, ClientState, Handled};
use crate::group::Group;
use crate::group::leases::queueing::stands;
use crate::queue::lane::LaneName;
use crate::queue::priority::Priority;
use crate::tokens::BACKEND;
use reactor::{Key, Net, Time, Token};
use session::found::Found;
use session::state::Session;
use sql::lex::Server;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Idle backends, those used last, among which a client's own last one is looked for. One that is
/// not among them has not been left just now.
const HOMES_LOOKED_AT: usize = 8;
/// Who asks about its last statement does so soon. A backend that has lain idle for so long goes to
/// others as if nobody could ask.
const ASKS_WITHIN: Duration = Duration::from_secs(10);

/// What a client would lose if another used the backend of its last statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Affinity {
    /// Nothing: what its statement has left is known, or of no interest.
    None,
    /// Counts that are known, but not to stored code that asks for them.
    Counts,
    /// What that backend alone can tell in every form: conditions, or a FOUND_ROWS() that is not
    /// known.
    Only,
}

impl<S> Client<S> {
    /// What it would lose if another used the backend of its last statement.
    fn affinity(&self) -> Affinity {
        match self.last.alone_knows() {
            true => Affinity::Only,
            false if self.last.may_be_asked_for() => Affinity::Counts,
            false => Affinity::None,
        }
    }
}

impl<S> Backend<S> {
    /// FOUND_ROWS() as its next client's statement finds it, if that is known: what
    /// clears the conditions of others goes out in front, and counts on MySQL.
    fn found_ahead(&self, server: Server) -> Option<u64> {
        let counted = server.is_mysql() && self.conditions_of.is_some();
        self.found.filter(|_| !counted)
    }
}

impl<N: Net> Group<N> {
    /// Binds an idle backend to a client that wants to run something now.
    pub(crate) fn acquire(&mut self, key: Key) -> Option<Key> {
        self.leave_outdated(key);
        let client = self.clients.get(key)?;
        let pool = client.pool as usize;
        let high = client.place.priority == Some(Priority::High);
        let low = !high && !self.goes_before_slow(key);
        let later = low
            && (self
                .shared
                .budget
                .is_reserve_reached(self.index, self.backend_pools.unused())
                || self.is_ahead());
        if later
            || !self.running.has_room(0, &self.shared, &self.settings)
            || self.front_of(pool).is_some()
        {
            return None;
        }
        let found = self.pick_idle(pool, key)?;
        let now = self.net.now();
        self.line.place_of(self.clients.get_mut(key)?, now);
        self.bind(key, found).then_some(found)
    }

    /// The best idle backend for a client: its own last one, one that stands in its state already,
    /// else the one used last that can be brought there. Those about whose last statement a client
    /// may ask next go to others when there is no other, the one left longest ago first.
    fn pick_idle(&self, pool: usize, key: Key) -> Option<Key> {
        let client = self.clients.get(key)?;
        let session = &client.session;
        let idle = &self.backend_pools.pools[pool].idle;
        let looked_at = match client.affinity() {
            Affinity::Only => idle.len(),
            Affinity::Counts | Affinity::None => HOMES_LOOKED_AT,
        };
        let home = Some((key, client.last.number));
        let alive = |lease: Key| {
            let backend = self.backends.get(lease).filter(|b| self.lives_on(b))?;
            Some((lease, backend))
        };
        let last_used = || idle.iter().rev().filter_map(|lease| alive(*lease));
        let homes = idle.iter().rev().take(looked_at);
        let mut homes = homes.filter_map(|lease| alive(*lease));
        // Nothing takes a default schema away again: the backends without one are for the clients
        // without one, as long as there are others, and whoever chooses its first schema does so
        // on another.
        let has_schema = |b: &Backend<N::Sock>| b.session.schema.is_some();
        let chooses = session.schema.is_none() && client.may_choose_schema();
        if chooses
            && let Some((lease, _)) = last_used().find(|(_, b)| {
                has_schema(b) && client.is_clean_on(b) && self.affinity(b) != Affinity::Only
            })
        {
            return Some(lease);
        }
        if let Some(home) =
            homes.find(|(_, b)| b.last_client == home && client.can_run_on(b, &self.begun))
        {
            return Some(home.0);
        }
        // What may count or not leaves a number that is known only where it was so before.
        let number = client.last.found_rows.get();
        let may_count = matches!(client.statement.found, Found::Unsure | Found::Matched);
        let alike = |b: &Backend<N::Sock>| b.found_ahead(self.shared.server.flavour) == number;
        let same = |b: &Backend<N::Sock>| Rc::ptr_eq(&b.session, session);
        let clean = |b: &Backend<N::Sock>| client.is_clean_on(b);
        let free = |b: &Backend<N::Sock>| self.affinity(b) == Affinity::None;
        let asked_least = || {
            let fits = last_used().filter(|(_, b)| clean(b) && client.can_run_on(b, &self.begun));
            fits.min_by_key(|(_, b)| (self.affinity(b), b.since))
        };
        let fits = |b: &Backend<N::Sock>| clean(b) && free(b) && client.can_run_on(b, &self.begun);
        let counted_alike = (may_count && number.is_some())
            .then(|| last_used().find(|(_, b)| alike(b) && fits(b)))
            .flatten();
        counted_alike
            .or_else(|| last_used().find(|(_, b)| same(b) && clean(b) && free(b)))
            .or_else(|| last_used().find(|(_, b)| has_schema(b) && fits(b)))
            .or_else(|| last_used().find(|(_, b)| fits(b)))
            .or_else(asked_least)
            .or_else(|| last_used().find(|(_, b)| client.can_run_on(b, &self.begun)))
            .map(|(lease, _)| lease)
    }

    /// How much the last client of an idle backend would lose if another used that.
    fn affinity(&self, backend: &Backend<N::Sock>) -> Affinity {
        let Some((last, sent)) = backend.last_client else {
            return Affinity::None;
        };
        let asks_soon = self.net.now().since(backend.since) < ASKS_WITHIN;
        let last = self.clients.get(last);
        match last.filter(|client| client.last.number == sent && asks_soon) {
            Some(client) => client.affinity(),
            None => Affinity::None,
        }
    }

    /// Opens a connection that nobody waits for yet: whoever comes next would otherwise get a
    /// backend about which its last client alone may ask, and could be answered nowhere else.
    fn dial_spare(&mut self, pool: usize) {
        let (kept, pools) = (&self.backend_pools.pools[pool], &self.backend_pools);
        let may = self.line.is_empty()
            && self.draining.is_none()
            && kept.dialling == 0
            && pools.dialling < self.settings.dials_max
            && self.net.now() >= kept.dial_at
            && self
                .running
                .has_room(kept.idle.len(), &self.shared, &self.settings);
        // Where triggers or views ask, every count may be asked for in a form that only the backend
        // of its statement can answer.
        let kept_for = match self.code_seen.names.any_asks(false) {
            true => Affinity::Counts,
            false => Affinity::Only,
        };
        let is_kept = |lease: &Key| {
            let backend = self.backends.get(*lease);
            backend.is_some_and(|b| self.affinity(b) >= kept_for)
        };
        // Looking at each backend comes last: it is done each time that one becomes free.
        let lacks = || !kept.idle.is_empty() && kept.idle.iter().all(is_kept);
        if may
            && self.shared.budget.by_right(self.index) > 0
            && self.shared.budget.has_room(self.index)
            && lacks()
        {
            self.dial(pool);
        }
    }

    /// Binds a client and an idle backend. `false` where one of them is not there, or not idle.
    pub(crate) fn bind(&mut self, key: Key, lease: Key) -> bool {
        let now = self.net.now();
        let Some(backend) = self.backends.get_mut(lease) else {
            return false;
        };
        let Some(client) = self.clients.get_mut(key) else {
            return false;
        };
        if !backend.change_state(BackendState::Leased, now) {
            return false;
        }
        self.backend_pools.pools[backend.pool]
            .idle
            .retain(|&idle| idle != lease);
        backend.served = false;
        client.binding.bind(&mut backend.binding, (key, lease));
        let home = backend.last_client.take();
        if home == Some((key, client.last.number)) {
            return true;
        }
        if let Some(last) = home {
            self.ask_for_last(lease, last);
        }
        let found = self
            .backends
            .get(lease)
            .and_then(|b| b.found_ahead(self.shared.server.flavour));
        if let Some(client) = self.clients.get_mut(key) {
            client.last.moved(found);
        }
        true
    }

    /// Takes a client's backend from it; returns which that was. The backend is nobody's then, or
    /// that of those behind the client.
    pub(crate) fn unbind(&mut self, key: Key) -> Option<Key> {
        let client = self.clients.get_mut(key)?;
        let lease = client.lease()?;
        let backend = self.backends.get_mut(lease);
        client.binding.unbind(key, backend.map(|b| &mut b.binding));
        Some(lease)
    }

    /// Takes a backend from the client that it names; returns which that was.
    fn free(&mut self, lease: Key) -> Option<Key> {
        let backend = self.backends.get_mut(lease)?;
        let owner = backend.lease()?;
        match self.clients.get_mut(owner) {
            Some(client) => client.binding.unbind(owner, Some(&mut backend.binding)),
            None => backend.binding.forget(owner),
        }
        Some(owner)
    }

    /// The next reply of a backend is for this client, whose statement is in flight there.
    pub(crate) fn hand_over(&mut self, lease: Key, owner: Option<Key>) {
        if let Some(backend) = self.backends.get_mut(lease) {
            backend.binding.hand_over(owner);
        }
    }

    /// A client logs in with a schema that no backend has accepted yet.
    pub(crate) fn open(&mut self, key: Key) {
        match self.acquire(key) {
            // What follows the login is handled by whoever handles that: read on from here, later
            // bytes would go before it.
            Some(lease) => {
                if self.open_on(key, lease) {
                    self.settle(lease);
                }
            }
            None => {
                if self.wait_in_lane(key, 0) == Handled::Used {
                    self.leave(key);
                }
            }
        }
    }

    /// Ends the lease of a client that holds nothing on its backend, and serves the next.
    pub(crate) fn release(&mut self, lease: Key) {
        let now = self.net.now();
        if let Some(backend) = self.backends.get(lease) {
            let owner = backend.lease().and_then(|owner| self.clients.get(owner));
            backend.note_accepted(owner);
        }
        let owner = self.free(lease);
        let Some(backend) = self.backends.get_mut(lease) else {
            return;
        };
        let may_be_hit = backend.frozen || backend.spoiled;
        if may_be_hit || !backend.change_state(BackendState::Idle, now) {
            self.retire(lease);
        }
        if let Some(owner) = owner
            && let Some(client) = self.clients.get_mut(owner)
        {
            if let Some(backend) = self.backends.get_mut(lease) {
                backend.last_client = Some((owner, client.last.number));
            }
            // Who is being asked for goes on when that is answered.
            if client.state() == ClientState::Waiting
                && !client.place.is_in_lane()
                && !client.last.is_asked_elsewhere()
            {
                self.line_up(owner);
            }
        }
        self.offer(lease);
    }

    /// Puts an idle backend at the disposal of those who wait.
    pub(crate) fn offer(&mut self, lease: Key) {
        let Some(backend) = self.backends.get(lease) else {
            return;
        };
        let pool = backend.pool;
        let front = self.front_of(pool);
        if let Some(starved) = self.starved_pool(pool, front.map(|waiting| waiting.since)) {
            self.let_go(lease);
            return self.dial(starved);
        }
        if self
            .shared
            .budget
            .owes_next(self.index, self.backend_pools.count)
        {
            self.counts.lent += 1;
            return self.let_go(lease);
        }
        if front.is_none() && self.draining.is_some() {
            return self.retire(lease);
        }
        self.backend_pools.pools[pool].idle.push(lease);
        self.serve(pool);
        self.dial_spare(pool);
    }

    /// Gives idle backends of a pool to those who wait for it, in order.
    fn serve(&mut self, pool: usize) {
        while self.running.has_room(0, &self.shared, &self.settings) && !self.yields() {
            let Some(waiting) = self.front_to_serve(pool) else {
                return;
            };
            let Some(client) = self.clients.get(waiting.client) else {
                return;
            };
            let lease = match client.lease() {
                Some(_) => None,
                None => self.pick_idle(pool, waiting.client),
            };
            match lease {
                Some(lease) => {
                    self.pop(pool, waiting);
                    self.shared.fronts.gets_on(self.index, self.net.now());
                    self.grant(waiting.client, lease);
                    self.take_riders(lease);
                }
                // Who has a backend can go on even when there is none for those in front.
                None => match self
                    .backend_pools
                    .front_in(pool, LaneName::Held, |waiting| {
                        stands(&self.clients, waiting)
                    }) {
                    Some(held) => self.go_on_held(pool, held),
                    None => return,
                },
            }
        }
    }

    /// Serves every pool; statements that have run for long no longer count.
    pub(crate) fn serve_all(&mut self) {
        if self.line.is_empty() {
            return;
        }
        if !self.running.has_room(0, &self.shared, &self.settings) {
            let now = self.net.now();
            let stalled = (self.running).discount_stalled(&mut self.backends, &self.settings, now);
            self.counts.stalled += stalled;
        }
        for pool in 0..self.backend_pools.pools.len() {
            self.serve(pool);
        }
    }

    /// A backend on which a client's statement may ride now, behind others'.
    pub(crate) fn ride_for(&mut self, key: Key, message: &[u8]) -> Option<Key> {
        let client = self.clients.get(key)?;
        let pool = client.pool as usize;
        let trusted = self.shapes.trusts(client.shape());
        if !trusted
            || self.front_of(pool).is_some()
            || self
                .shared
                .budget
                .owes_next(self.index, self.backend_pools.count)
            || self.is_ahead()
        {
            return None;
        }
        if self.shared.paused.load(Relaxed) {
            return None;
        }
        self.place_for(key, message)
    }

    /// The backend with the fewest in flight that takes a client's statement behind them; a group
    /// has few backends.
    fn place_for(&self, key: Key, message: &[u8]) -> Option<Key> {
        let takes = |(candidate, backend): &(Key, &Backend<N::Sock>)| {
            (self.takes_rider(*candidate, key, message))
                .then_some((backend.flight().len(), *candidate))
        };
        self.backends
            .iter()
            .filter_map(|pair| takes(&pair))
            .min()
            .map(|(_, lease)| lease)
    }

    /// Whether a client's statement may go out on a backend behind what is in flight there.
    fn takes_rider(&self, lease: Key, key: Key, message: &[u8]) -> bool {
        let (Some(backend), Some(client)) = (self.backends.get(lease), self.clients.get(key))
        else {
            return false;
        };
        backend.rideable
            && Riders::takes(message.len())
            && backend.flight().len() < self.settings.ride_max
            && backend.pool == client.pool as usize
            && backend.insert_id == Some(client.last.insert_id)
            && Rc::ptr_eq(&backend.session, &client.session)
            && !client.is_held()
            && client.lease().is_none()
            && self.shapes.trusts(client.shape())
            && self.shared.code_catalogue.holds(client.statement.judged)
            && client.is_prepared_on(backend, message, &self.shared.server)
    }

    /// Where a client whose command waits in its input may ride: on this backend, or, if that has
    /// room and stands in another session's state, on any other. Or the clients of one session
    /// would hold up those of another, with places free for both.
    fn place_for_waiting(&self, lease: Key, key: Key) -> Option<Key> {
        let client = self.clients.get(key)?;
        // What stands behind a login that waits is no statement yet.
        let waits = client.state() == ClientState::Waiting;
        let input = client.input.as_ref().filter(|_| waits)?;
        let message = &input[..input.command_len()];
        if self.takes_rider(lease, key, message) {
            return Some(lease);
        }
        let backend = self.backends.get(lease)?;
        let has_room = backend.flight().len() < self.settings.ride_max;
        let differs = !Rc::ptr_eq(&backend.session, &self.clients.get(key)?.session);
        (has_room && differs).then(|| self.place_for(key, message))?
    }

    /// Lets those at the front of the lane ride, as long as they may: on a backend that has begun
    /// or ended a statement, or behind those of their own session.
    pub(crate) fn take_riders(&mut self, lease: Key) {
        while !self.yields()
            && !self
                .shared
                .budget
                .owes_next(self.index, self.backend_pools.count)
            && let Some(backend) = self.backends.get(lease)
            && backend.rideable
            && let pool = backend.pool
            && let Some(waiting) = self.front_to_serve(pool)
            && let Some(place) = self.place_for_waiting(lease, waiting.client)
        {
            self.pop(pool, waiting);
            self.shared.fronts.gets_on(self.index, self.net.now());
            self.forget_waiting(waiting.client);
            let Some(client) = self.clients.get_mut(waiting.client) else {
                return;
            };
            let Some(input) = client.input.take() else {
                return self.close_later(waiting.client);
            };
            let len = input.command_len();
            self.ride(waiting.client, place, &input[..len]);
            let Some(client) = self.clients.get_mut(waiting.client) else {
                return;
            };
            if len < input.len() {
                client.input = Some(input);
                client.drop_input(len);
            } else {
                client.place.give_up();
                self.spare_inputs.put(input);
            }
        }
    }

    /// A waiting client's turn has come.
    fn grant(&mut self, key: Key, lease: Key) {
        self.forget_waiting(key);
        if !self.bind(key, lease) {
            return self.retire(lease);
        }
        let now = self.net.now();
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        if client.state() == ClientState::Opening {
            client.place.give_up();
            if self.open_on(key, lease) {
                self.pump(key);
                self.settle(lease);
            }
            return;
        }
        if !client.change_state(ClientState::Idle, now) {
            return self.close_later(key);
        }
        self.pump(key);
        self.settle(lease);
    }

    /// Another pool whose clients wait, longer than `since`, without any backend.
    fn starved_pool(&mut self, pool: usize, since: Option<Time>) -> Option<usize> {
        if self.backend_pools.pools.len() < 2 || self.shared.budget.has_room(self.index) {
            return None;
        }
        let now = self.net.now();
        // What is left of an older version of the privileges goes to whoever waits longest.
        let outdated = self
            .backend_pools
            .is_outdated(pool, self.shared.privileges.version());
        let mut found: Option<(Time, usize)> = None;
        for other in (0..self.backend_pools.pools.len()).filter(|&other| other != pool) {
            let pool = &self.backend_pools.pools[other];
            let is_served = pool.count > 0 && !(outdated && pool.dialling < pool.lanes.len());
            if is_served || pool.dial_at > now {
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

    /// Opens connections for those who wait, as far as every limit allows.
    pub(crate) fn dial_where_wanted(&mut self) {
        let mut lacks = false;
        if !self.line.is_empty() && self.running.has_room(0, &self.shared, &self.settings) {
            for pool in 0..self.backend_pools.pools.len() {
                lacks |= self.dial_for(pool);
            }
        }
        // What is given back before the want is seen, `is_behind` sees.
        self.note_lack(lacks);
        self.dial_for_refused();
    }

    /// Opens connections of one pool; `true` when there is no slot for one that is wanted.
    fn dial_for(&mut self, pool: usize) -> bool {
        let now = self.net.now();
        loop {
            let serves = self.wants_dial(pool);
            if (serves || self.wants_more(pool))
                && self.may_have_room()
                && let Some(why) = self.outdated_password(pool)
            {
                self.close_all_waiting(pool, &why);
                return false;
            }
            if !(serves || self.wants_more(pool)) || !self.may_dial(pool, now) {
                return false;
            }
            if self.address_to_dial().is_none() {
                return false;
            }
            if !(self.shared.budget.has_room(self.index) || serves && self.make_room()) {
                return self.backend_pools.count < self.shared.budget.most();
            }
            self.dial(pool);
        }
    }

    /// Whether the first of a pool's lane waits because no backend of the pool can serve it.
    pub(crate) fn wants_dial(&mut self, pool: usize) -> bool {
        let Some(front) = self.front_to_serve(pool) else {
            return false;
        };
        let Some(client) = self.clients.get(front.client) else {
            return false;
        };
        client.lease().is_none() && self.pick_idle(pool, front.client).is_none()
    }

    pub(crate) fn may_dial(&self, pool: usize, now: Time) -> bool {
        let pool = &self.backend_pools.pools[pool];
        self.backend_pools.dialling < self.settings.dials_max
            && now >= pool.dial_at
            && pool.dialling < pool.lanes.len()
            // More than may run at once would only lie idle.
            && self.running.has_room(pool.dialling, &self.shared, &self.settings)
    }

    /// Whether there is room for another backend, or somebody's idle one could make it.
    fn may_have_room(&self) -> bool {
        self.shared.budget.has_room(self.index)
            || (self.backend_pools.pools.iter()).any(|pool| !pool.idle.is_empty())
    }

    /// Closes an idle backend when the budget is used up: it is of another pool that nobody waits
    /// for, or cannot be brought into the waiting client's state.
    fn make_room(&mut self) -> bool {
        // The last one of an older version of the privileges cannot be dialled again.
        let now = self.shared.privileges.version();
        let is_last = |pool: &BackendPool| pool.key.privileges != now && pool.count == 1;
        let all = self.backend_pools.pools.iter();
        let victim = all
            .filter_map(|pool| Some((is_last(pool), *pool.idle.first()?)))
            .min_by_key(|(is_last, _)| *is_last)
            .map(|(_, victim)| victim);
        if let Some(victim) = victim {
            self.let_go(victim);
        }
        // Another group may have a better right to the slot.
        self.shared.budget.has_room(self.index)
    }

    /// Begins to open a connection of this pool.
    pub(crate) fn dial(&mut self, pool: usize) {
        let now = self.net.now();
        if now < self.backend_pools.pools[pool].dial_at {
            return;
        }
        if let Some(why) = self.outdated_password(pool) {
            self.backend_pools.pools[pool].dial_failed(now, why.clone());
            if self.backend_pools.pools[pool].count == 0 {
                self.close_all_waiting(pool, &why);
            }
            return;
        }
        let Some(address) = self.address_to_dial() else {
            return;
        };
        if !self.shared.budget.take(self.index) {
            return;
        }
        self.counts.dialled += 1;
        let sock = match self.net.connect(&address) {
            Ok(sock) => sock,
            Err(error) => {
                self.counts.dial_failures += 1;
                let words = self.shared.upstream.words(&address);
                let why = format!("cannot connect to {words}: {error}");
                self.shared.upstream.failed(&address, now, &why);
                self.backend_pools.pools[pool].dial_failed(now, why);
                return self.give_back();
            }
        };
        let session = self.sessions.intern(Session::not_known(&self.begun));
        let tls = self.settings.backend_tls.as_deref();
        let client = self.backend_pools.pools[pool].key.client_address;
        let header = self.settings.backend_proxy.header(client);
        let mut backend = Backend::dialling(Endpoint::new(sock, address, pool), now, session, tls);
        backend.dial = backend.dial.map(|dial| Box::new(dial.behind(header)));
        backend.epoch = self.epoch;
        backend.form = self.backend_pools.pools[pool].key.form();
        backend.eofs = self.backend_pools.pools[pool].key.sends_eofs();
        self.backend_pools.dial_begins(pool);
        let key = self.backends.insert(backend);
        let watched = match self.backends.get(key) {
            Some(backend) => {
                let sock = backend.transport.sock();
                self.net.watch(sock, Token::new(BACKEND, key))
            }
            None => return,
        };
        if let Err(error) = watched {
            let why = format!("cannot watch a connection: {error}");
            self.dial_failed(key, &why, DialEnd::Answered);
        }
    }

    /// Closes a backend that is of no more use.
    pub(crate) fn retire(&mut self, lease: Key) {
        let Some(mut backend) = self.backends.remove(lease) else {
            return;
        };
        if matches!(
            backend.state(),
            BackendState::Dialling | BackendState::Preparing
        ) {
            self.backend_pools.dial_ends(backend.pool);
        }
        self.running.ends(&mut backend);
        self.shared.forget_thread(backend.thread);
        self.backend_pools.leaves(backend.pool, lease);
        if backend.output.is_empty() && backend.flight().is_empty() {
            let mut quit = Vec::new();
            crate::backend::dial::put_quit(&mut quit);
            // Politeness only: without it the server counts an aborted client.
            let _ = backend.transport.write(&mut self.net, &quit);
        }
        backend.transport.end(&mut self.net);
        let asked = backend.asked;
        drop(backend);
        self.give_back();
        self.lazy_readback_lost(asked);
    }

    /// A client has gone (or reset its session) and left its backend behind.
    pub(crate) fn orphan(&mut self, lease: Key, key: Key, pinned: bool) {
        let now = self.net.now();
        let Some(backend) = self.backends.get_mut(lease) else {
            return;
        };
        let clean = !pinned && !backend.in_transaction() && backend.reports == Reports::Complete;
        let only_statements = backend.flight().iter().all(|command| {
            matches!(
                command.purpose,
                Purpose::Statement | Purpose::LazyReadback(_)
            )
        });
        if !clean || !only_statements {
            self.part_riders(lease, Some(key));
            return self.retire(lease);
        }
        backend.binding.forget(key);
        if backend.flight().is_empty() {
            backend.insert_id = None;
            return self.release(lease);
        }
        // Its last statement runs on: it ends as it would on a connection of the client's own, and
        // then the backend is looked at again.
        for command in backend.flight_mut() {
            if command.owner == Some(key) {
                command.owner = None;
            }
        }
        backend.note_left(now);
        // Its reading may have stopped for the client's sake, and no event will start it again.
        self.read_in_next_turn(lease);
    }

    /// When the next dial that somebody waits for may be tried.
    pub(crate) fn next_dial(&mut self) -> Time {
        if self.line.is_empty() || self.backend_pools.dialling >= self.settings.dials_max {
            return Time::NEVER;
        }
        let now = self.net.now();
        let pools = 0..self.backend_pools.pools.len();
        let late = pools.filter_map(|pool| {
            let dial_at = self.backend_pools.pools[pool].dial_at;
            let wanted = dial_at > now && (self.wants_dial(pool) || self.wants_more(pool));
            wanted.then_some(dial_at)
        });
        late.min().unwrap_or(Time::NEVER).min(self.address_at)
    }
}
