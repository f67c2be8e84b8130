//! Lists for the console ([`crate::observe::listing`]): a group's clients and backends as lines.
//!
//! A line is a copy of what is known at that moment; nothing is asked of the server, and nothing
//! waits. The answers lie in the group's turn_output until its thread hands them over.

use crate::backend::{Backend, BackendState};
use crate::client::{Client, ClientState};
use crate::group::tokens::ClientId;
use crate::observe::figures::Stage;
use crate::observe::listing::{BackendLine, ClientLine, PAGE, Said};
use crate::observe::log::Peer;
use crate::observe::log::statement::StatementLog;
use crate::observe::survey::Survey;
use crate::pair::view::ClientView;
use reactor::{Net, Time};
use std::sync::Arc;

/// Facts of a client that its group knows.
struct Beside<'a> {
    user: Option<&'a str>,
    peer: Peer,
    group: usize,
    program: Option<Arc<str>>,
    statement: Option<Arc<str>>,
    bytes: Option<(u64, u64)>,
    now: Time,
}

impl<S> ClientView<'_, S> {
    /// For how long the client's transaction is open, and how many statements were answered in it.
    fn transaction(&self, now: Time) -> Option<(f64, u32)> {
        let backend = self.backend.filter(|backend| backend.in_transaction())?;
        let number = backend.transaction.number();
        let seen = (backend.transaction_seen.as_ref()).filter(|seen| seen.number == number);
        let (since, statements) = match seen {
            Some(seen) => (seen.since, seen.statements),
            // The statement that begins it has not been answered.
            None => (self.client.since, 0),
        };
        Some((now.since(since).as_secs_f64(), statements))
    }

    /// Its line in the console.
    fn listed(&self, beside: Beside<'_>) -> ClientLine {
        let Beside { user, now, .. } = beside;
        let (client, backend) = (self.client, self.backend);
        let pins = || client.pins.list().iter();
        let first = pins().next();
        ClientLine {
            id: client.id,
            user: user.filter(|_| client.is_known()).map(str::to_owned),
            address: beside.peer,
            group: beside.group,
            state: Stage::of(client.state(), backend.is_some()).name(),
            state_seconds: now.since(client.since).as_secs_f64(),
            lane: client
                .place
                .is_in_lane()
                .then(|| client.place.lane().name()),
            schema: (client.session.schema.as_ref())
                .map(|schema| String::from_utf8_lossy(schema).into_owned()),
            thread: backend.map(|backend| backend.thread),
            in_transaction: backend.is_some_and(Backend::in_transaction),
            transaction: self.transaction(now),
            pins: pins().map(|pin| pin.reason.name()).collect(),
            pinned_seconds: first.map(|pin| now.since(Time(pin.since)).as_secs_f64()),
            pinned_by: first.map(|pin| String::from_utf8_lossy(&pin.text).into_owned()),
            memory_bytes: client.kept_bytes(),
            unsent_bytes: (client.output.as_ref())
                .map_or(0, |output| output.bytes.len().saturating_sub(output.sent)),
            tls: client.transport.tls_names(),
            program: beside.program,
            connected_seconds: now.since(client.place.arrival.time()).as_secs_f64(),
            digest: client.statement.digest,
            statement: beside.statement,
            statements: client.last.number,
            bytes: beside.bytes,
        }
    }
}

impl<S> Backend<S> {
    /// Its line in the console, with the id of its client.
    fn listed(&self, account: String, client: Option<u32>, group: usize, now: Time) -> BackendLine {
        BackendLine {
            thread: self.thread,
            group,
            account,
            address: self.at.to_string(),
            state: match self.state() {
                BackendState::Dialling => "dialling",
                BackendState::Preparing => "preparing",
                BackendState::Idle => "idle",
                BackendState::CheckedOut if self.flight().is_empty() => "held",
                BackendState::CheckedOut => "running",
            },
            state_seconds: now.since(self.since).as_secs_f64(),
            age_seconds: now.since(self.born).as_secs_f64(),
            client,
            in_transaction: self.in_transaction(),
            in_flight: self.flight().len(),
            prepared: self.prepared.count(),
        }
    }
}

/// True if a client has a backend, or waits for one.
fn is_busy<S>(client: &Client<S>) -> bool {
    client.backend().is_some() || client.state() == ClientState::Waiting
}

impl<N: Net> Survey<'_, N> {
    /// A page of clients from this one on, and whether it is the last one.
    pub(crate) fn client_lines(&self, from: usize, busy: bool) -> Said {
        let wanted = |client: &Client<N::Sock>| !busy || is_busy(client);
        let clients = self.clients.iter().filter(|(_, client)| wanted(client));
        let lines = self.lines_of(clients.skip(from).take(PAGE).map(|(key, _)| key));
        let is_last = lines.len() < PAGE;
        Said::Clients(lines, is_last)
    }

    /// The client that holds most memory, if there is a client.
    pub(crate) fn holder_line(&self) -> Said {
        let clients = self.clients.iter();
        let most = clients.max_by_key(|(_, client)| client.kept_bytes());
        Said::Clients(self.lines_of(most.into_iter().map(|(key, _)| key)), true)
    }

    fn lines_of(&self, keys: impl Iterator<Item = ClientId>) -> Vec<ClientLine> {
        let programs = self.shared.programs.names();
        let line = |key| {
            let client = self.clients.get(key)?;
            let beside = Beside {
                user: client.user_name(self.settings, self.pools),
                peer: Peer::from(client.transport.peer(self.net)),
                group: self.index,
                program: client.place.arrival.program.name(&programs).cloned(),
                statement: self.statement_of(key, client),
                bytes: self.net.bytes(client.transport.sock()),
                now: self.net.now(),
            };
            Some((self.client_view(key)?).listed(beside))
        };
        keys.filter_map(line).collect()
    }

    /// Text of the statement that a client runs, waits with, or has run last where it keeps its
    /// backend; as the settings show it.
    fn statement_of(&self, key: ClientId, client: &Client<N::Sock>) -> Option<Arc<str>> {
        let values = match self.settings.statement_text {
            _ if !is_busy(client) => return None,
            StatementLog::Off => return None,
            StatementLog::Masked => None,
            StatementLog::Literal => self.statement_logs.text_of_running(key),
        };
        values.or_else(|| self.figures.digests.text(client.statement.digest))
    }

    /// All backends.
    pub(crate) fn backend_lines(&self) -> Said {
        let now = self.net.now();
        let lines = self.backends.iter().map(|(_, backend)| {
            let pool = self.pools.pools.get(backend.pool);
            let account = pool.map_or_else(String::new, |pool| pool.key.user.clone());
            let client = backend.client().and_then(|client| self.clients.get(client));
            backend.listed(account, client.map(|client| client.id), self.index, now)
        });
        Said::Backends(lines.collect())
    }
}
