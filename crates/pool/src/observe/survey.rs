//! A group looked at from outside: who is here, what they do, what is kept for them.
//!
//! Metrics, the console, the report, errors that say why a wait was long, and the simulation all
//! want to know how a group stands. They look at it through this, which borrows what they look at
//! and can change none of it, so that a question about a group has no effect on a statement.
//!
//! Invariant: nothing here changes anything.

mod forgotten;
mod lists;
mod packed;
mod report;

use crate::backend::pools::BackendPools;
use crate::backend::{Backend, BackendState};
use crate::client::Client;
use crate::client::buffers::room::Inputs;
use crate::client::clients::Clients;
use crate::cluster::elsewhere::GroupReads;
use crate::config::Settings;
use crate::group::shared::Shared;
use crate::group::tokens::{BackendId, ClientId};
use crate::limits::retained::Retained;
use crate::limits::slow_readers::SlowReaders;
use crate::observe::figures::counts::{Census, Counts};
use crate::observe::figures::{Figures, GroupView, Histogram, Stage, Turns};
use crate::observe::identity::ClientIdentity;
use crate::observe::statement_logs::StatementLogs;
use crate::pair::view::ClientView;
use crate::scheduler::bulk::Bulk;
use crate::scheduler::waiting_count::WaitingCount;
use reactor::{Address, Net, Slots, Time};
use session::last_gtid::LastGtid;
use session::prepared::Definitions;
use session::state::Interner;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of what is noted of a client's last write in the binary log.
const GTID_BYTES: usize = 64;

/// View of a group for others.
pub struct Survey<'a, N: Net> {
    pub(crate) net: &'a N,
    pub(crate) shared: &'a Shared,
    pub(crate) settings: &'a Settings,
    pub(crate) index: usize,
    pub(crate) clients: &'a Clients<N::Sock>,
    pub(crate) backends: &'a Slots<Backend<N::Sock>, BackendId>,
    pub(crate) pools: &'a BackendPools,
    pub(crate) waiting_count: &'a WaitingCount,
    pub(crate) inputs: &'a Inputs,
    pub(crate) slow_readers: &'a SlowReaders,
    pub(crate) retained: &'a Retained,
    pub(crate) definitions: &'a Definitions,
    pub(crate) sessions: &'a Interner,
    pub(crate) gtids: &'a BTreeMap<ClientId, LastGtid>,
    pub(crate) reads: &'a GroupReads,
    pub(crate) counts: &'a Counts,
    pub(crate) figures: &'a Figures,
    pub(crate) statement_logs: &'a StatementLogs,
    /// Work of later turns.
    pub(crate) bulk: &'a Bulk,
}

impl<'a, N: Net> Survey<'a, N> {
    /// Clients and backends that are here, and counts of what has happened.
    pub fn census(&self) -> Census {
        let pins =
            |client: &Client<N::Sock>| client.session.is_held() && client.backend().is_some();
        let pinned = self.clients.iter().filter(|(_, client)| pins(client));
        self.census_beside(pinned.count())
    }

    /// Census where it is known how many clients hold a backend without a transaction.
    fn census_beside(&self, pinned: usize) -> Census {
        let mut census = Census {
            counts: self.counts.clone(),
            pinned,
            ..Census::default()
        };
        census.clients = self.clients.len();
        census.waiting = self.waiting_count.len();
        census.variables_bytes = self.retained.variables.bytes();
        census.input_bytes = self.inputs.bytes();
        census.memory_bytes = self.held_for_clients();
        (
            census.slow_readers,
            census.spooled_clients,
            census.spooled_bytes,
        ) = self.slow_readers.count(self.clients, self.backends);
        for (_, backend) in self.backends.iter() {
            census.count_backend(backend.state(), backend.client().is_some());
        }
        census
    }

    /// View of this group at this moment. It looks at each client once.
    pub(crate) fn view(&self, turns: Turns) -> GroupView {
        let mut stages = [0; Stage::ALL.len()];
        let (mut running, mut waiting) = (Histogram::default(), Histogram::default());
        let (mut pinned, mut reasons) = (0, BTreeMap::new());
        let now = self.net.now();
        for (_, client) in self.clients.iter() {
            let bound = client.backend().is_some();
            pinned += usize::from(client.session.is_held() && bound);
            let stage = Stage::of(client.state(), bound);
            stages[stage as usize] += 1;
            match stage {
                Stage::Running => running.record(now.since(client.since())),
                Stage::Waiting => waiting.record(now.since(client.since())),
                _ => {}
            }
            for pin in client.session.pins.list().iter() {
                *reasons.entry(pin.reason.name()).or_default() += 1;
            }
        }
        GroupView {
            at: now,
            census: self.census_beside(pinned),
            stages,
            running,
            waiting,
            pinned: reasons,
            figures: self.figures.clone(),
            turns,
            dial_failure: (self.pools.pools.iter()).find_map(|pool| pool.last_failure.clone()),
        }
    }

    /// A client and the backend that it has, if it has one.
    fn client_view(&self, key: ClientId) -> Option<ClientView<'a, N::Sock>> {
        ClientView::of(key, self.clients, self.backends)
    }

    /// A client as lines of the log name it.
    pub(crate) fn identity(&self, key: ClientId) -> Option<ClientIdentity> {
        let view = self.client_view(key)?;
        let names = (self.settings, self.pools);
        Some(ClientIdentity::of(
            view.client,
            view.backend,
            self.net,
            names,
        ))
    }

    /// Bytes that this group keeps for its clients.
    pub fn held_for_clients(&self) -> usize {
        self.retained.bytes()
            + self.clients.len() * size_of::<Client<N::Sock>>()
            + self.inputs.bytes()
            + self.definitions.bytes()
            + self.sessions.bytes()
            + self.gtids.len() * GTID_BYTES
            + self.reads.bytes()
            + self.slow_readers.spool.memory()
    }

    /// Sum that is counted wrongly, for tests: one that is not that of its parts, or something that
    /// is kept for nobody.
    pub fn miscounted(&self) -> Option<String> {
        let retained = self.retained;
        let outputs = self.clients.iter().filter_map(|(_, c)| c.output.as_ref());
        let outputs: usize = outputs
            .map(|output| match output.is_counted() {
                true => output.counted(),
                false => usize::MAX / 2,
            })
            .fold(0, usize::saturating_add);
        let long = (self.clients.iter()).filter_map(|(_, c)| c.session.prepared.as_ref());
        let long: usize = long.map(|prepared| prepared.long_len()).sum();
        let tls = self.clients.iter().map(|(_, c)| c.transport.tls_bytes());
        let tls: usize = tls.sum();
        let nobody = self.clients.is_empty();
        let gone = |key: &&ClientId| self.clients.get(**key).is_none();
        let counts = [
            (
                "last_gtid of who has left",
                GTID_BYTES * self.gtids.keys().filter(gone).count(),
                0,
            ),
            ("TLS of clients", retained.tls_bytes.bytes(), tls),
            ("outputs", retained.outputs.bytes(), outputs),
            (
                "long data, at least",
                retained.long_data.bytes().max(long),
                retained.long_data.bytes(),
            ),
            ("statements of nobody", retained.statements.bytes(), 0),
            ("conditions of nobody", retained.warnings.bytes(), 0),
            ("input of nobody", self.inputs.bytes(), 0),
        ];
        let wrong = |(what, counted, found): &(&str, usize, usize)| {
            counted != found && (nobody || !what.ends_with("nobody"))
        };
        let (what, counted, found) = counts.into_iter().find(wrong)?;
        Some(format!("{what}: {counted} bytes are counted, not {found}"))
    }

    /// Wrong belief of a client and a backend about each other, for tests. Who names a backend has
    /// it, or has a statement in flight there; whom a backend names has it, or is gone.
    pub fn misbound(&self) -> Option<String> {
        for (key, client) in self.clients.iter() {
            let Some(backend_id) = client.backend().filter(|_| !client.ended.is_closing()) else {
                continue;
            };
            let backend = client.backend_in(self.backends);
            let is_named = backend.is_some_and(|backend| {
                let mut flight = backend.flight.iter();
                backend.client() == Some(key) || flight.any(|command| command.owner == Some(key))
            });
            if !is_named {
                return Some(format!(
                    "{key:?} names {backend_id:?}, which is not its own"
                ));
            }
        }
        let mut backends = self.backends.iter();
        let (backend_id, owner) = backends.find_map(|(backend_id, backend)| {
            let owner = backend.client()?;
            let client = self.clients.get(owner)?;
            (client.backend() != Some(backend_id)).then_some((backend_id, owner))
        })?;
        Some(format!(
            "{backend_id:?} names {owner:?}, which does not have it"
        ))
    }

    /// Longest part of a reply that is buffered for a client while the rest is on its backend, and
    /// `true` if others' statements are in flight behind it; for tests.
    pub fn longest_untaken(&self) -> (usize, bool) {
        let untaken = |(_, client): (ClientId, &Client<N::Sock>)| {
            let output = client.output.as_ref()?;
            let backend = client.backend_in(self.backends)?;
            let len = output.bytes.len();
            let may_pipeline = backend.flight.len() > 1;
            (output.rest.is_on_backend()).then_some((len, may_pipeline))
        };
        (self.clients.iter().filter_map(untaken).max()).unwrap_or_default()
    }

    /// Bytes that may be kept for clients of all groups, and that each may hold when more is.
    pub fn memory_bound(&self) -> (usize, usize) {
        let clients = self.shared.clients();
        (
            self.shared.retained.memory.max(),
            self.shared.retained.memory.share(clients),
        )
    }

    /// Reason why who waits for a backend of this pool has not got one, in words.
    pub(crate) fn what_backends_do(&self, pool: usize) -> String {
        let census = self.census();
        let entry = &self.pools.pools[pool];
        // In the server's words, which tell more than the numbers.
        let failure = entry.last_failure.clone().or_else(|| entry.slots.words());
        let failure = failure.map_or(String::new(), |why| format!("last failure: {why}; "));
        let mut text = format!(
            "{failure}{} of this group's {} backends in use, {} of them by pinned clients, {} \
             waiting; all groups may have {}",
            census.backends_checked_out,
            self.pools.count,
            census.pinned,
            census.waiting,
            self.shared.budget.total()
        );
        let backends = || self.backends.iter().map(|(_, backend)| backend);
        let now = self.net.now();
        if let Some(lasts) = longest_unanswered(backends(), now) {
            text.push_str(&format!(
                "; the server has not answered a statement for {} ms",
                lasts.as_millis()
            ));
        }
        if let Some((at, lasts)) = longest_login(backends(), pool, now) {
            text.push_str(&format!(
                "; the server at {} has not answered a login for {} ms",
                self.shared.upstream.words(&at),
                lasts.as_millis()
            ));
        }
        text
    }
}

/// Time of the statement that the server has not begun to answer for the longest time.
fn longest_unanswered<'a, S: 'a>(
    backends: impl Iterator<Item = &'a Backend<S>>,
    now: Time,
) -> Option<Duration> {
    let unanswered = backends.filter(|backend| backend.flight.reply_so_far().len == 0);
    let since = unanswered.filter_map(|backend| {
        let first = backend.flight.front()?;
        let is_statement = first.purpose.may_wait_for_locks();
        is_statement.then(|| first.sent.max(backend.flight.busy_since()))
    });
    Some(now.since(since.min()?))
}

/// Stage of the login that is under way for the longest time for a pool, and its duration.
fn longest_login<'a, S: 'a>(
    backends: impl Iterator<Item = &'a Backend<S>>,
    pool: usize,
    now: Time,
) -> Option<(Arc<Address>, Duration)> {
    let logs_in = |backend: &&Backend<S>| {
        let state = backend.state();
        backend.pool == pool && matches!(state, BackendState::Dialling | BackendState::Preparing)
    };
    let longest = (backends.filter(logs_in)).min_by_key(|backend| backend.since())?;
    Some((longest.at().clone(), now.since(longest.since())))
}

#[cfg(test)]
mod tests;
