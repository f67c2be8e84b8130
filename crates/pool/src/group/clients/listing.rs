//! What the console asks a group ([`crate::listing`]): its clients and backends as lines.
//!
//! A line is a copy of what is known at that moment; nothing is asked of the server, and nothing
//! waits. The answers lie in `answers` until the thread of the group hands them over.

use crate::backend::kill_jobs::{KillAsk, KillEnd};
use crate::backend::{Backend, BackendState};
use crate::client::Client;
use crate::figures::Stage;
use crate::group::Group;
use crate::listing::{Answer, BackendLine, ClientLine, PAGE, Question, Said, Wanted};
use crate::log::Peer;
use reactor::{Net, Time};

impl<N: Net> Group<N> {
    /// Answers a question.
    pub(crate) fn on_question(&mut self, question: Question) {
        let said = match question.what {
            Wanted::Clients { from } => {
                let lines: Vec<ClientLine> = (self.clients.iter().skip(from).take(PAGE))
                    .map(|(_, client)| self.client_line(client))
                    .collect();
                let is_last = lines.len() < PAGE;
                Said::Clients(lines, is_last)
            }
            Wanted::Backends => {
                let backends = self.backends.iter();
                Said::Backends(backends.map(|(_, b)| self.backend_line(b)).collect())
            }
            Wanted::Kill { id, query } => {
                let ask = KillAsk {
                    asker: None,
                    id,
                    query,
                    user: None,
                };
                // What the server is asked for ends by itself, or is said in the log.
                Said::Killed(self.kill(&ask).unwrap_or(KillEnd::Done))
            }
        };
        let ticket = question.ticket;
        self.answers.push(Answer { ticket, said });
    }

    /// Takes the answers to questions.
    pub fn take_said(&mut self) -> Vec<Answer> {
        std::mem::take(&mut self.answers)
    }

    fn client_line(&self, client: &Client<N::Sock>) -> ClientLine {
        let now = self.net.now();
        let backend = client.lease().and_then(|lease| self.backends.get(lease));
        let pins = || client.pins.list().iter();
        let first = pins().next();
        ClientLine {
            id: client.id,
            user: (self.user_name(client))
                .filter(|_| client.is_known())
                .map(str::to_owned),
            address: Peer::from(client.transport.peer(&self.net)).to_string(),
            group: self.index,
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

    fn backend_line(&self, backend: &Backend<N::Sock>) -> BackendLine {
        let now = self.net.now();
        let pool = self.backend_pools.pools.get(backend.pool);
        let client = backend.lease().and_then(|client| self.clients.get(client));
        BackendLine {
            thread: backend.thread,
            group: self.index,
            account: pool.map_or_else(String::new, |pool| pool.key.user.clone()),
            address: backend.at.to_string(),
            state: match backend.state() {
                BackendState::Dialling => "dialling",
                BackendState::Preparing => "preparing",
                BackendState::Idle => "idle",
                BackendState::Leased if backend.flight().is_empty() => "held",
                BackendState::Leased => "running",
            },
            state_seconds: now.since(backend.since).as_secs_f64(),
            age_seconds: now.since(backend.born).as_secs_f64(),
            client: client.map(|client| client.id),
            in_transaction: backend.in_transaction(),
            in_flight: backend.flight().len(),
            prepared: backend.prepared.count(),
        }
    }
}
