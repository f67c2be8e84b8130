//! Choice of the idle backend that suits a client best.
//!
//! Its own last one comes first: what its last statement has left is there alone. Then one that
//! stands in its session already, then the one used last that can be brought there. Those about
//! whose last statement a client may ask next go to others when there is no other. Under load that
//! is most of them, for the next statements of their clients wait: also of these, one that stands
//! in the client's session comes first.

use crate::backend::Backend;
use crate::backend::pools::BackendPool;
use crate::client::Client;
use crate::group::tokens::{BackendId, ClientId};
use crate::scheduler::matching::Matching;
use crate::server::facts::ServerFacts;
use reactor::{Slots, Time};
use session::global_defaults::GlobalDefaults;
use session::state::can_restore;
use std::rc::Rc;
use std::time::Duration;

/// Idle backends, those used last, among which a client's own last one is looked for. One that is
/// not among them has not been left just now.
const LAST_USED_MAX: usize = 8;
/// Clients that ask about their last statement do so soon. A backend that has lain idle for so long
/// goes to others as if nobody could ask.
const ASKS_WITHIN: Duration = Duration::from_secs(10);

/// Loss of a client if another used the backend of its last statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Affinity {
    /// Nothing: what its statement has left is known, or of no interest.
    None,
    /// Counts that are known, but not to stored code that asks for them.
    Counts,
    /// Results that that backend alone can tell in every form: conditions, or a FOUND_ROWS() that
    /// is not known.
    Only,
}

impl<S> Matching<'_, S> {
    /// The best idle backend for a client: its own last one, one that stands in its state already,
    /// else the one used last that can be brought there. Those about whose last statement a client
    /// may ask next go to others when there is no other: those that stand in its state first, and
    /// of these the one left longest ago. None suits while the server is silent.
    pub(crate) fn pick_idle(&self, pool: usize, key: ClientId) -> Option<BackendId> {
        if self.shared.upstream.is_silent() && !self.pools.is_reader(pool) {
            return None;
        }
        let client = self.clients.get(key)?;
        let session = &client.session.state;
        // To look up for how long the server keeps a backend takes longest: it comes last.
        let can_run = |b: &Backend<S>| self.can_run(key, client, b) && self.lives_on(b);
        let idle = &self.pools.pools[pool].idle;
        let get = |id: &BackendId| self.backends.get(*id).map(|backend| (*id, backend));
        let last_used = || idle.iter().rev().filter_map(get);
        let looked_at = match client.session.affinity() {
            Affinity::Only => idle.len(),
            Affinity::Counts | Affinity::None => LAST_USED_MAX,
        };
        let own = Some(client.session.as_last(key));
        let same = |b: &Backend<S>| Rc::ptr_eq(&b.session.state, session);
        let clean = |b: &Backend<S>| client.session.is_clean_on(&b.session);
        // Nothing takes a default schema away again: the backends without one are for the clients
        // without one, as long as there are others, and whoever chooses its first schema does so
        // on another.
        let has_schema = |b: &Backend<S>| b.session.state.schema.is_some();
        let chooses = session.schema.is_none() && client.may_choose_schema();
        let suits_choice = |b: &Backend<S>| {
            has_schema(b) && clean(b) && self.affinity(b) != Affinity::Only && can_run(b)
        };
        if chooses && let Some((id, _)) = last_used().find(|(_, b)| suits_choice(b)) {
            return Some(id);
        }
        let is_own = |b: &Backend<S>| b.session.last_client() == own && can_run(b);
        let mut looked_at = last_used().take(looked_at);
        if let Some((id, _)) = looked_at.find(|(_, b)| is_own(b)) {
            return Some(id);
        }
        let fits = |b: &Backend<S>| clean(b) && self.affinity(b) == Affinity::None && can_run(b);
        if let Some((id, _)) = (last_used().find(|(_, b)| same(b) && fits(b)))
            .or_else(|| last_used().find(|(_, b)| has_schema(b) && fits(b)))
            .or_else(|| last_used().find(|(_, b)| fits(b)))
        {
            return Some(id);
        }
        // The one left longest ago is the first: hardly another is looked at whole.
        let mut asked_least: Option<((Affinity, bool, Time), BackendId)> = None;
        for (id, b) in idle.iter().filter_map(get) {
            let rank = (self.affinity(b), !same(b), b.since());
            let is_better = asked_least.is_none_or(|(other, _)| rank < other);
            if is_better && clean(b) && can_run(b) {
                asked_least = Some((rank, id));
            }
        }
        let id = asked_least.map(|(_, id)| id);
        id.or_else(|| last_used().find(|(_, b)| can_run(b)).map(|(id, _)| id))
    }

    /// True if a client's command can be run on a backend once that is in the client's state.
    fn can_run(&self, key: ClientId, client: &Client<S>, backend: &Backend<S>) -> bool {
        client.session.fits_at_once(&backend.session)
            || client.can_run_on(backend, key, (self.defaults, &self.shared.server))
    }

    /// Loss of the last client of an idle backend if another used that.
    pub(crate) fn affinity(&self, backend: &Backend<S>) -> Affinity {
        let Some(last) = backend.session.last_client() else {
            return Affinity::None;
        };
        let asks_soon = self.now.since(backend.since()) < ASKS_WITHIN;
        let client = self.clients.get(last.client);
        match client.filter(|client| client.session.last.number == last.sent && asks_soon) {
            Some(client) => client.session.affinity(),
            None => Affinity::None,
        }
    }

    /// True if the server will keep an idle backend for long enough to run something on it.
    pub(crate) fn lives_on(&self, backend: &Backend<S>) -> bool {
        let capabilities = self.pools.pools[backend.pool].key.capabilities;
        backend.lives_on(capabilities, &self.shared.server.timeouts, self.now)
    }
}

/// Search for the backend of a client's last statement.
pub(crate) struct LastBackend<'a, S> {
    pub(crate) key: ClientId,
    pub(crate) client: &'a Client<S>,
    pub(crate) backends: &'a Slots<Backend<S>, BackendId>,
    /// The client's, and those of readers that serve the clients of the first.
    pub(crate) pools: (usize, &'a [BackendPool]),
    pub(crate) defaults: &'a GlobalDefaults,
    pub(crate) server: &'a ServerFacts,
    pub(crate) now: Time,
}

impl<S> LastBackend<'_, S> {
    /// The backend, if it is idle and can be used for another statement of a client without one.
    pub(crate) fn find(&self) -> Option<BackendId> {
        let client = self.client;
        let own = Some(client.session.as_last(self.key));
        let (home, pools) = self.pools;
        let (capabilities, timeouts) = (pools[home].key.capabilities, &self.server.timeouts);
        let suits = |backend: &Backend<S>| {
            backend.session.last_client() == own
                && backend.lives_on(capabilities, timeouts, self.now)
                && can_restore(&backend.session.state, &client.session.state)
                && client.can_run_on(backend, self.key, (self.defaults, self.server))
        };
        let of_client =
            |(index, pool): &(usize, &BackendPool)| *index == home || pool.home == Some(home);
        let pools = pools.iter().enumerate().filter(of_client);
        let mut idle = pools.flat_map(|(_, pool)| pool.idle.iter().rev().copied());
        let found = idle.find(|backend_id| self.backends.get(*backend_id).is_some_and(suits));
        found.filter(|_| client.backend().is_none())
    }
}
