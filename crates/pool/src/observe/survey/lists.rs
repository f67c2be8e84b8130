//! Lists for the console ([`crate::observe::listing`]): a group's clients and backends as lines.
//!
//! A line is a copy of what is known at that moment; nothing is asked of the server, and nothing
//! waits. The answers lie in the group's turn_output until its thread hands them over.

use crate::backend::{Backend, BackendState};
use crate::observe::figures::Stage;
use crate::observe::listing::{BackendLine, ClientLine, PAGE, Said};
use crate::observe::log::Peer;
use crate::observe::survey::Survey;
use crate::pair::view::ClientView;
use reactor::{Net, Time};

impl<S> ClientView<'_, S> {
    /// Its line in the console.
    fn listed(&self, user: Option<&str>, peer: Peer, group: usize, now: Time) -> ClientLine {
        let (client, backend) = (self.client, self.backend);
        let pins = || client.pins.list().iter();
        let first = pins().next();
        ClientLine {
            id: client.id,
            user: user.filter(|_| client.is_known()).map(str::to_owned),
            address: peer,
            group,
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
            pins: pins().map(|pin| pin.reason.name()).collect(),
            pinned_seconds: first.map(|pin| now.since(Time(pin.since)).as_secs_f64()),
            pinned_by: first.map(|pin| String::from_utf8_lossy(&pin.text).into_owned()),
            unsent_bytes: (client.output.as_ref())
                .map_or(0, |output| output.bytes.len().saturating_sub(output.sent)),
            is_tls: client.transport.is_tls(),
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

impl<N: Net> Survey<'_, N> {
    /// A page of clients from this one on, and whether it is the last one.
    pub(crate) fn client_lines(&self, from: usize) -> Said {
        let now = self.net.now();
        let lines: Vec<ClientLine> = (self.clients.iter().skip(from).take(PAGE))
            .filter_map(|(key, client)| {
                let user = client.user_name(self.settings, self.pools);
                let peer = Peer::from(client.transport.peer(self.net));
                Some((self.client_view(key)?).listed(user, peer, self.index, now))
            })
            .collect();
        let is_last = lines.len() < PAGE;
        Said::Clients(lines, is_last)
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
