//! Checkout and checkin: which client gets which backend, and when it gives it back.
//!
//! A statement gets an idle backend of its client's pool, or waits in the pool's queue, first come,
//! first served; a backend that becomes free goes to the front of the queue in the same turn.
//! Backends are dialled while somebody waits, the budget allows and dialling does not fail.
//!
//! A pool that has waiting clients and no backend at all takes one from another pool, oldest
//! waiter first, so that no account can shut out another.
//!
//! Invariants: an idle backend and a waiting client of the same pool do not exist side by side
//! (unless no command can bring that backend into the client's state; then it is replaced). The two
//! name each other by [`crate::backend::binding`].

pub(crate) mod bulk_turn;
pub(crate) mod queueing;
pub(crate) mod sharing;
pub(crate) mod waiting;

use crate::backend::LastClient;
use crate::backend::pools::DialEnd;
use crate::backend::{Backend, BackendState, Endpoint, Purpose, Reports};
use crate::client::{ClientState, Handled};
use crate::group::Group;
use crate::group::tasks::Task;
use crate::group::tokens::{BackendId, ClientId};
use crate::scheduler::account_slots::AccountSlots;
use crate::scheduler::priority::Priority;
use reactor::{Address, Net, Time};
use session::send_mode::Prefix;
use session::state::Session;
use std::sync::Arc;

impl<N: Net> Group<N> {
    /// Binds an idle backend to a client that wants to run something now.
    pub(crate) fn acquire(&mut self, key: ClientId) -> Option<BackendId> {
        let client = self.clients.get(key)?;
        let mut pool = client.pool as usize;
        let priority = client.place.priority;
        // A pool of older privileges that has no backend is left for that of now. Who waits in its
        // queue is served in order first.
        if self.backend_pools.pools[pool].count == 0
            && self.members().outdated(key).is_some()
            && self.matching().front_of(pool).is_none()
        {
            self.members().move_on(key, pool);
            pool = self.clients.get(key)?.pool as usize;
        }
        let mut matching = self.matching();
        let goes_first = matching.goes_before_slow(key);
        let is_tried = !goes_first && matching.may_try(key);
        let is_held_back = priority != Some(Priority::High)
            && (matching.is_reserve_reached(pool) || matching.is_ahead())
            && !(goes_first || is_tried);
        if is_held_back
            || matching.is_held_back(key)
            || !(goes_first || is_tried) && matching.waits_for_alike(key)
            || !matching.may_run(pool)
            || matching.front_of(pool).is_some()
        {
            return None;
        }
        let found = matching.pick_idle(pool, key)?;
        if is_tried {
            self.slow_readers.start_trial(key, self.net.now());
        }
        let now = self.net.now();
        self.waiting_count.place_of(self.clients.get_mut(key)?, now);
        self.bind(key, found).then_some(found)
    }

    /// Binds a client and an idle backend. `false` where one of them is not there, or not idle.
    pub(crate) fn bind(&mut self, key: ClientId, backend_id: BackendId) -> bool {
        let now = self.net.now();
        let is_long = self.matching().is_long(key);
        let Some(backend) = self.backends.get_mut(backend_id) else {
            return false;
        };
        let Some(client) = self.clients.get_mut(key) else {
            return false;
        };
        if !backend.change_state(BackendState::CheckedOut, now) {
            return false;
        }
        self.backend_pools.pools[backend.pool]
            .idle
            .retain(|&idle| idle != backend_id);
        // A free slot that stands in for the reserve is to be seen as such.
        self.backend_pools
            .note_unused(&self.shared.budget, self.index);
        let last = backend.begin_checkout();
        if is_long {
            self.slow_readers.start_long(backend_id, key);
        } else if !client.statement.has_short_reply() && self.shared.budget.reserved(self.index) > 0
        {
            (self.slow_readers).start_unknown(client.statement.digest, now);
        }
        client.bind(backend, (key, backend_id));
        let own = LastClient {
            client: key,
            sent: client.last.number,
        };
        if last != Some(own) {
            client.last.moved();
        }
        true
    }

    /// Opens, on a backend, the schema of a client's login that none has accepted yet.
    pub(crate) fn open(&mut self, key: ClientId) {
        match self.acquire(key) {
            // What follows the login is handled by whoever handles that: read on from here, later
            // bytes would go before it.
            Some(backend) => {
                if self.open_on(key, backend) {
                    self.settle(backend);
                }
            }
            None => {
                if self.wait_in_queue(key, 0) == Handled::Used {
                    self.leave(key);
                }
            }
        }
    }

    /// Checks in the backend of a client that holds nothing there, and serves the next.
    pub(crate) fn release(&mut self, backend_id: BackendId) {
        let now = self.net.now();
        self.slow_readers.checked_in(backend_id);
        let Some(backend) = self.backends.get_mut(backend_id) else {
            return;
        };
        let owner = backend.client();
        let client = owner.and_then(|owner| self.clients.get_mut(owner));
        if !backend.is_reader() {
            backend.note_accepted(client.as_deref());
        }
        match (owner, client) {
            (Some(owner), Some(client)) => {
                client.unbind(owner, Some(backend));
            }
            (Some(owner), None) => backend.binding.forget(owner),
            (None, _) => {}
        }
        if !backend.reuse.is_for_others() || !backend.change_state(BackendState::Idle, now) {
            self.closer().retire(backend_id);
        }
        if let Some(owner) = owner {
            self.readers().go_home(owner);
        }
        if let Some(owner) = owner
            && let Some(client) = self.clients.get_mut(owner)
        {
            if let Some(backend) = self.backends.get_mut(backend_id) {
                backend.note_last_client(LastClient {
                    client: owner,
                    sent: client.last.number,
                });
            }
            if client.state() == ClientState::Waiting && !client.place.is_in_queue() {
                self.line_up(owner);
            }
        }
        self.offer(backend_id);
    }

    /// Puts an idle backend at the disposal of those who wait.
    pub(crate) fn offer(&mut self, backend_id: BackendId) {
        let Some(backend) = self.backends.get(backend_id) else {
            return;
        };
        let pool = backend.pool;
        let mut matching = self.matching();
        let front = matching.front_of(pool);
        let since = front.map(|waiting| waiting.since);
        if !matching.waiting_count.is_empty()
            && let Some(needy) =
                (matching.starved_pool(pool, since)).or_else(|| matching.poorer_pool(pool))
        {
            return self.replace(backend_id, needy);
        }
        if self
            .backend_pools
            .owes_next(&self.shared.budget, self.index)
        {
            self.counts.lent += 1;
            return self.closer().retire(backend_id);
        }
        let place = (self.index, pool);
        let limits = self.backend_pools.pools[pool].limits();
        let owed_at = limits.filter_map(|slots| slots.owed_at(place, since)).min();
        if owed_at.is_some_and(|at| at <= self.net.now()) {
            self.counts.lent += 1;
            return self.closer().retire(backend_id);
        }
        if front.is_none() && self.drain.is_ending() {
            return self.closer().retire(backend_id);
        }
        self.backend_pools.pools[pool].idle.push(backend_id);
        if front.is_some() {
            self.tasks.add(Task::Serve);
        }
        self.tasks.add(Task::Spare(pool));
    }

    /// Gives an idle backend to the client whose turn it is, and leaves it to the next step to go
    /// on. Each pool goes in its order, the pool of the account first that uses the fewest. Who has
    /// a backend can go on even when there is none for those in front.
    pub(crate) fn serve(&mut self) {
        let mut matching = self.matching();
        if !matching.may_run_any() || matching.yields() {
            return;
        }
        let Some(pool) = matching.fairest_pool() else {
            return;
        };
        let Some((waiting, backend)) = matching.next_to_serve(pool) else {
            return;
        };
        self.waiters().pop(pool, waiting);
        self.shared.fronts.gets_on(self.index, self.net.now());
        match backend {
            Some(backend) => {
                self.grant(waiting.client, backend);
                self.tasks.add(Task::Pipeline(backend));
            }
            None => {
                self.waiters().forget(waiting.client);
                self.return_to_idle(waiting.client);
            }
        }
        self.tasks.add(Task::Serve);
    }

    /// Serves every pool; statements that have run for long no longer count.
    pub(crate) fn serve_all(&mut self) {
        if !self.running.has_room(0, &self.shared, &self.settings) {
            let now = self.net.now();
            let stalled = (self.running).discount_stalled(&mut self.backends, &self.settings, now);
            self.counts.stalled += stalled;
        }
        self.serve();
    }

    /// Lets those at the front of the queue be pipelined, as long as they may: on a backend that
    /// has begun or ended a statement, or behind those of their own session.
    pub(crate) fn take_followers(&mut self, backend_id: BackendId) {
        while !self.waiting_count.is_empty()
            && let Some(backend) = self.backends.get(backend_id)
            && backend.takes_followers()
            && backend.flight().len() < self.settings.pipeline_max
            && let pool = backend.pool
            && !self.matching().yields()
            && !(self.backend_pools).owes_next(&self.shared.budget, self.index)
            && let mut matching = self.matching()
            && let Some(waiting) = matching.front_to_serve(pool)
            && let Some(place) = matching.place_for_waiting(waiting.client, backend_id)
        {
            self.waiters().pop(pool, waiting);
            self.shared.fronts.gets_on(self.index, self.net.now());
            self.waiters().forget(waiting.client);
            let Some(client) = self.clients.get_mut(waiting.client) else {
                return;
            };
            let Some(input) = client.take_input() else {
                return self.clients.close_later(waiting.client);
            };
            let len = input.command_len();
            self.send_statement(waiting.client, place, &input[..len], &Prefix::CannotFail);
            let Some(client) = self.clients.get_mut(waiting.client) else {
                return;
            };
            if len < input.len() {
                client.put_input(input);
                client.drop_input(len);
            } else {
                client.place.give_up();
                self.lent.inputs.put(input);
            }
        }
    }

    /// Checks a backend out to a waiting client whose turn has come, and goes on with its command.
    fn grant(&mut self, key: ClientId, backend: BackendId) {
        self.waiters().forget(key);
        if !self.bind(key, backend) {
            return self.closer().retire(backend);
        }
        let now = self.net.now();
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        if client.state() == ClientState::Opening {
            client.place.give_up();
            if self.open_on(key, backend) {
                self.tasks.add(Task::Read(key));
                self.tasks.add(Task::Settle(backend));
            }
            return;
        }
        if !client.change_state(ClientState::Idle, now) {
            return self.clients.close_later(key);
        }
        self.tasks.add(Task::Read(key));
        self.tasks.add(Task::Settle(backend));
    }

    /// Opens connections for those who wait, as far as every limit allows.
    pub(crate) fn dial_where_wanted(&mut self) {
        let mut lacks = false;
        if !self.waiting_count.is_empty() && self.matching().may_run_any() {
            let mut order = std::mem::take(&mut self.backend_pools.order);
            self.matching().put_fair_order(&mut order);
            for &pool in &order {
                lacks |= self.matching().may_run(pool) && self.dial_for(pool);
            }
            self.backend_pools.order = order;
        }
        if self.matching().note_account_wants() {
            let (groups, index) = (self.shared.groups, self.index);
            self.turn_output
                .wake((0..groups).filter(|group| *group != index));
        }
        // What is given back before the want is seen, `is_behind` sees.
        let lenders = self.shared.budget.note_lack(self.index, lacks);
        self.turn_output.wake(lenders);
        // Who was refused because the server is away gets a dial all the same, for those who come
        // later, one at a time.
        if let Some(pool) = self.refused_pool.take()
            && self.backend_pools.dialling == 0
            && self.shared.budget.has_room(self.index)
        {
            self.dial(pool);
        }
    }

    /// Opens connections of one pool; `true` when there is no slot for one that is wanted.
    fn dial_for(&mut self, pool: usize) -> bool {
        loop {
            let mut matching = self.matching();
            let serves = matching.wants_dial(pool);
            if !serves && !matching.wants_more(pool) {
                return false;
            }
            let may_dial = matching.may_dial(pool);
            if matching.may_have_room()
                && let key = &self.backend_pools.pools[pool].key
                && let Some(why) = key.outdated_password(&self.shared.accounts)
            {
                self.end_waiting(pool, &why);
                return false;
            }
            let now = self.net.now();
            if may_dial && !self.matching().account_has_room(pool) {
                // One that no command can bring into the state of who waits makes room.
                if serves && let Some(&unfit) = self.backend_pools.pools[pool].idle.first() {
                    self.closer().retire(unfit);
                } else if self.backend_pools.pools[pool].is_server_full() {
                    self.send_home(pool);
                }
                return false;
            }
            let address = may_dial.then(|| self.address_of(pool, now)).flatten();
            let Some(address) = address else {
                return false;
            };
            let fleet = self.shared.fleet.as_ref();
            let waits_for_unit = fleet.is_some_and(|fleet| !fleet.may_dial(&address, now));
            if !(self.backend_pools).has_room(&self.shared.budget, self.index) {
                if serves && let Some(victim) = self.matching().least_needed() {
                    self.replace(victim, pool);
                    if self.shared.fleet.is_some() {
                        // Its unit is free once the server has ended it.
                        return false;
                    }
                    continue;
                }
                return self.backend_pools.count < self.shared.budget.most();
            }
            let before = self.counts.dialled;
            if !waits_for_unit {
                self.dial(pool);
            }
            // The fleet tells when there is a unit, also of the account.
            if self.shared.fleet.is_some() && self.counts.dialled == before {
                return false;
            }
        }
    }

    /// Closes a free backend to open one of another pool. Another group may have a better right to
    /// its slot, but not to that of the reserve.
    fn replace(&mut self, backend_id: BackendId, pool: usize) {
        self.closer().close(backend_id);
        let unused = self.backend_pools.unused();
        self.has_slot = self.shared.budget.keeps_slot(self.index, unused);
        if !self.has_slot {
            self.closer().give_slot_back();
        }
        self.dial(pool);
        if std::mem::take(&mut self.has_slot) {
            self.closer().give_slot_back();
        }
    }

    /// Address to dial for a pool, if there is one now.
    fn address_of(&mut self, pool: usize, now: Time) -> Option<Arc<Address>> {
        match self.backend_pools.pools[pool].key.reader {
            None => self.server_status.address(&self.shared.upstream, now),
            Some(id) => self.reads.address(id),
        }
    }

    /// Begins to open a connection of this pool.
    pub(crate) fn dial(&mut self, pool: usize) {
        let now = self.net.now();
        if now < self.backend_pools.pools[pool].dial_at || !self.matching().account_has_room(pool) {
            return;
        }
        let key = &self.backend_pools.pools[pool].key;
        if let Some(why) = key.outdated_password(&self.shared.accounts) {
            let end = DialEnd::PasswordUnknown;
            self.backend_pools.pools[pool].dial_failed(now, why.clone(), end);
            if self.backend_pools.pools[pool].count == 0 {
                self.end_waiting(pool, &why);
            }
            return;
        }
        let Some(address) = self.address_of(pool, now) else {
            return;
        };
        let fleet = self.shared.fleet.as_ref();
        if fleet.is_some_and(|fleet| !fleet.may_dial(&address, now)) {
            return;
        }
        let reader = self.backend_pools.pools[pool].key.reader;
        let Some(tls) = self.shared.tls_at(reader, &address, &self.settings) else {
            return;
        };
        let server = self.shared.connections_at(reader, &address);
        let on_server = server.as_ref().map(AccountSlots::connect);
        if matches!(on_server, Some(None)) {
            return;
        }
        let slots = self.backend_pools.pools[pool].slots.clone();
        if !slots.take() {
            return;
        }
        let budget = &self.shared.budget;
        let takes_slot =
            || self.backend_pools.has_room(budget, self.index) && budget.take(self.index);
        if !std::mem::take(&mut self.has_slot) && !takes_slot() {
            return slots.count(-1, -1);
        }
        let Some(units) = self.shared.take_units(&slots) else {
            slots.count(-1, -1);
            return self.closer().give_slot_back();
        };
        self.counts.dialled += 1;
        let sock = match self.net.connect(&address) {
            Ok(sock) => sock,
            Err(error) => {
                self.counts.dial_failures += 1;
                slots.count(-1, -1);
                let words = self.shared.upstream.words(&address);
                let why = format!("cannot connect to {words}: {error}");
                if !self.backend_pools.is_reader(pool) {
                    self.shared.upstream.failed(&address, now, &why);
                }
                self.backend_pools.pools[pool].dial_failed(now, why, DialEnd::Unreached);
                self.send_home(pool);
                return self.closer().give_slot_back();
            }
        };
        let session = self.sessions.intern(Session::not_known(&self.defaults));
        let client = self.backend_pools.pools[pool].key.client_address;
        let header = self.settings.backend_proxy.header(client);
        let mut backend =
            Backend::dialling(Endpoint::new(sock, address, pool), now, session, Some(tls));
        backend.count_at(on_server.flatten());
        backend.begin_dial(header, self.epoch);
        backend.stand_for(units);
        backend.take_kind(&self.backend_pools.pools[pool].key);
        self.backend_pools.dial_begins(pool);
        let key = self.backends.insert(backend);
        let watched = match self.backends.get(key) {
            Some(backend) => {
                let sock = backend.transport.sock();
                self.net.watch(sock, key.token())
            }
            None => return,
        };
        if let Err(error) = watched {
            let why = format!("cannot watch a connection: {error}");
            self.dial_failed(key, &why, DialEnd::Answered);
        }
    }

    /// Rolls back, checks in or closes the backend of a client that has gone, or has reset its
    /// session; its last statement runs on to its end.
    pub(crate) fn orphan(&mut self, key: ClientId, backend_id: BackendId, pinned: bool) {
        let now = self.net.now();
        let Some(backend) = self.backends.get_mut(backend_id) else {
            return;
        };
        if !pinned && let Some(out) = backend.roll_back(key, now) {
            self.counts.rolled_back += 1;
            return self.backend_writer().ask(backend_id, &out);
        }
        let clean = !pinned && !backend.in_transaction() && backend.reports == Reports::Complete;
        let mut flight = backend.flight().iter();
        let only_statements = flight.all(|command| command.purpose == Purpose::Statement);
        if !clean || !only_statements {
            self.abort_followers(backend_id, Some(key));
            return self.closer().retire(backend_id);
        }
        backend.binding.forget(key);
        if backend.flight().is_empty() {
            backend.forget_insert_id();
            return self.release(backend_id);
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
        self.bulk.read_at_once(backend_id);
    }
}
