//! Forgotten: whom a group would never look at again, or all the time, for tests.
//!
//! The problem: events are edge-triggered and turns end in the middle of things, so whoever is left
//! with something to do must stand in some line, or wait for an event that is sure to come. One
//! that does not is served by chance, seconds later or never. Its latency is the only sign of it,
//! and a busy machine looks the same. The mechanism: after each turn of the simulation, each client
//! and each backend is asked for the line in which it stands.
//!
//! Invariant: nothing here changes anything.

use crate::backend::Backend;
use crate::client::{Client, ClientState};
use crate::group::tokens::ClientId;
use crate::observe::survey::Survey;
use reactor::Net;
use wire::packet::{Frame, frame};

impl<N: Net> Survey<'_, N> {
    /// Client that has been forgotten, in words; asked after a turn.
    pub fn forgotten(&self) -> Option<String> {
        let clients = self.clients.iter().filter_map(|(key, client)| {
            let why = self.why_forgotten(key, client)?;
            Some(format!(
                "client {}, {:?}: {why}",
                client.identity.id(),
                client.state()
            ))
        });
        let backends = self.backends.iter().filter_map(|(key, backend)| {
            let ready = backend.transport.is_readable() && self.may_read(backend);
            let stands = self.bulk.reads_at_once(key) || self.bulk.has_reply_of(key);
            let state = backend.state();
            if self.bulk.reads_at_once(key) && self.bulk.has_reply_of(key) {
                return Some(format!(
                    "a backend, {state:?}: the group turns at once for what waits for bulk work"
                ));
            }
            (ready && !stands).then(|| {
                format!("a backend, {state:?}: its bytes can be read, and it stands in no line")
            })
        });
        clients.chain(backends).next()
    }

    /// True if the client that a backend's bytes are for has taken the last ones.
    fn may_read(&self, backend: &Backend<N::Sock>) -> bool {
        let now = self.net.now();
        (self.slow_readers).may_read(backend, self.clients, self.shared, now)
    }

    fn why_forgotten(&self, key: ClientId, client: &Client<N::Sock>) -> Option<&'static str> {
        if client.ended.is_closing() {
            return None;
        }
        let queue_has = || {
            let pool = self.pools.pools.get(client.pool as usize);
            pool.is_some_and(|pool| pool.queues.has(key, client.place.since()))
        };
        let in_flight = || {
            let owned = |command: &crate::backend::InFlight| command.owner == Some(key);
            let mut backends = self.backends.iter();
            backends.any(|(_, backend)| backend.flight.iter().any(owned))
        };
        match client.state() {
            _ if client.place.is_in_queue() => {
                (!queue_has()).then_some("it waits in a queue that does not have it")
            }
            ClientState::Waiting => {
                let waits = client.backend().is_some();
                (!waits).then_some("it waits for nothing")
            }
            ClientState::Running | ClientState::Restoring => {
                (!in_flight()).then_some("nothing of it is in flight")
            }
            _ if client.takes_input() => self.why_unread(key, client),
            _ => None,
        }
    }

    /// State of a client whose bytes are wanted though it stands in no line.
    fn why_unread(&self, key: ClientId, client: &Client<N::Sock>) -> Option<&'static str> {
        if self.inputs.holds_up(key) || client.has_fed_enough(client.backend_in(self.backends)) {
            return None;
        }
        if client.transport.is_readable() {
            return Some("its bytes can be read");
        }
        let input = (client.input.bytes()).filter(|_| !client.transport.withholds_input())?;
        let whole = matches!(frame(input), Frame::Whole { .. });
        whole.then_some("a whole command of it has been read")
    }
}
