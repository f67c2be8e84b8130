//! Lists for the console ([`crate::observe::listing`]): a group's clients and backends as lines.
//!
//! A line is a copy of what is known at that moment; nothing is asked of the server, and nothing
//! waits. The answers lie in the group's turn_output until its thread hands them over.

use crate::backend::{Backend, BackendState};
use crate::client::{Client, ClientState};
use crate::group::tokens::ClientId;
use crate::observe::figures::Stage;
use crate::observe::listing::{BackendLine, ClientLine, PAGE, Said, Sums};
use crate::observe::log::Peer;
use crate::observe::log::statement::StatementLog;
use crate::observe::statement_logs::text_of;
use crate::observe::survey::Survey;
use crate::pair::view::ClientView;
use reactor::{Net, Time};
use session::pins::Pin;
use sql::classify::PinCause;
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
    /// Age in seconds of the client's open transaction, and the statements answered in it.
    fn transaction(&self, now: Time) -> Option<(f64, u32)> {
        let there =
            (self.backend.map(|backend| &backend.session)).filter(|b| b.in_transaction())?;
        let number = there.transaction.number();
        let seen = there
            .transaction_seen()
            .filter(|seen| seen.number == number);
        let (since, statements) = match seen {
            Some(seen) => (seen.since, seen.statements),
            // The statement that begins it has not been answered.
            None => (self.client.since(), 0),
        };
        Some((now.since(since).as_secs_f64(), statements))
    }

    /// Its line in the console.
    fn listed(&self, beside: Beside<'_>) -> ClientLine {
        let Beside { user, now, .. } = beside;
        let (client, backend) = (self.client, self.backend);
        let pins = client.session.pins.list();
        let age = |pin: &Pin| now.since(Time(pin.since)).as_secs_f64();
        let locks = (client.session.pins.names(PinCause::UserLock)).unwrap_or_default();
        ClientLine {
            id: client.identity.id(),
            user: (user.filter(|_| client.identity.is_known())).map(str::to_owned),
            address: beside.peer,
            group: beside.group,
            state: Stage::of(client.state(), backend.is_some()).name(),
            state_seconds: now.since(client.since()).as_secs_f64(),
            queue: (client.place.is_in_queue()).then(|| client.place.queue().name()),
            schema: (client.session.state.schema.as_ref())
                .map(|schema| String::from_utf8_lossy(schema).into_owned()),
            thread: backend.map(|backend| backend.thread),
            in_transaction: backend.is_some_and(|backend| backend.session.in_transaction()),
            transaction: self.transaction(now),
            pins: (pins.iter().map(|pin| (pin.reason.name(), age(pin)))).collect(),
            lock_names: (locks.iter())
                .map(|name| String::from_utf8_lossy(name).into_owned())
                .collect(),
            pinned_by: (pins.first()).map(|pin| String::from_utf8_lossy(&pin.text).into_owned()),
            prepared: (client.session.prepared.as_ref())
                .map_or(0, |prepared| prepared.held().len()),
            memory_bytes: client.kept_bytes(),
            unsent_bytes: (client.output.as_ref())
                .map_or(0, |output| output.bytes.len().saturating_sub(output.sent)),
            tls: client.transport.tls_names(),
            program: beside.program,
            connected_seconds: now.since(client.place.arrival.time()).as_secs_f64(),
            digest: client.session.statement.digest,
            statement: beside.statement,
            statements: client.session.last.number,
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
            address: self.at().to_string(),
            state: match self.state() {
                BackendState::Dialling => "dialling",
                BackendState::Preparing => "preparing",
                BackendState::Idle => "idle",
                BackendState::CheckedOut if self.flight.is_empty() => "held",
                BackendState::CheckedOut => "running",
            },
            state_seconds: now.since(self.since()).as_secs_f64(),
            age_seconds: now.since(self.born()).as_secs_f64(),
            client,
            in_transaction: self.session.in_transaction(),
            in_flight: self.flight.len(),
            prepared: self.session.prepared.count(),
        }
    }
}

/// True if a client has a backend, or waits for one.
fn is_busy<S>(client: &Client<S>) -> bool {
    client.backend().is_some() || client.state() == ClientState::Waiting
}

impl<N: Net> Survey<'_, N> {
    /// True if a client has run nothing for so long in its open transaction, or that is not asked.
    pub(crate) fn is_idle_for(&self, id: u32, idle_for: Option<std::time::Duration>) -> bool {
        let Some(idle_for) = idle_for else {
            return true;
        };
        let client = self.clients.with_id(id).map(|(_, client)| client);
        client.is_some_and(|client| {
            let backend = client.backend_in(self.backends);
            client.state() == ClientState::Idle
                && backend.is_some_and(|backend| backend.session.in_transaction())
                && self.net.now().since(client.since()) >= idle_for
        })
    }

    /// A page of clients from this one on.
    pub(crate) fn client_lines(&self, from: usize, busy: bool) -> Said {
        Said::Clients(self.page(from, busy).collect())
    }

    /// The sums of a page of clients.
    pub(crate) fn sums(&self, from: usize) -> Said {
        let (mut sums, mut count) = (Sums::default(), 0);
        for line in self.page(from, false) {
            sums.add(&line);
            count += 1;
        }
        Said::Sums(sums, count)
    }

    fn page(&self, from: usize, busy: bool) -> impl Iterator<Item = ClientLine> {
        let wanted = move |client: &Client<N::Sock>| !busy || is_busy(client);
        let clients = self.clients.iter();
        let clients = clients.filter(move |(_, client)| wanted(client));
        self.lines_of(clients.skip(from).take(PAGE).map(|(key, _)| key))
    }

    /// The client that holds most memory, if there is a client.
    pub(crate) fn holder_line(&self) -> Said {
        let clients = self.clients.iter();
        let most = clients.max_by_key(|(_, client)| client.kept_bytes());
        Said::Clients(
            self.lines_of(most.into_iter().map(|(key, _)| key))
                .collect(),
        )
    }

    fn lines_of(&self, keys: impl Iterator<Item = ClientId>) -> impl Iterator<Item = ClientLine> {
        let programs = self.shared.records.programs.names();
        let line = move |key| {
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
        keys.filter_map(line)
    }

    /// Text of the statement that a client runs, waits with, or has run last where it keeps its
    /// backend; as the settings show it.
    fn statement_of(&self, key: ClientId, client: &Client<N::Sock>) -> Option<Arc<str>> {
        let values = match self.settings.statement_text {
            _ if !is_busy(client) => return None,
            StatementLog::Off => return None,
            StatementLog::Masked => None,
            StatementLog::Literal => (self.statement_logs.running(key))
                .and_then(|command| text_of(self.shared, client, command, true))
                .map(Arc::from),
        };
        values.or_else(|| self.figures.digests.text(client.session.statement.digest))
    }

    /// All backends.
    pub(crate) fn backend_lines(&self) -> Said {
        let now = self.net.now();
        let lines = self.backends.iter().map(|(_, backend)| {
            let pool = self.pools.pools.get(backend.pool);
            let account = pool.map_or_else(String::new, |pool| pool.key.user.clone());
            let client = backend.client_in(self.clients);
            backend.listed(
                account,
                client.map(|client| client.identity.id()),
                self.index,
                now,
            )
        });
        Said::Backends(lines.collect())
    }
}
