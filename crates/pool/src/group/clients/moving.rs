//! Clients that go to another process of the pool, or come from one.
//!
//! A client goes in three steps: it is packed and sent away (from then on nothing of it is read or
//! written), the other process has taken it (it is gone here), or has not (it comes back, and
//! nothing has happened). One that comes is taken in without being served, and let in once the
//! other process is bound to know; or turned out, which only closes this process's copy of its
//! socket.
//!
//! A backend that goes along is *migrating* meanwhile ([`crate::upgrade::migrating`]).
//!
//! Invariants: a client is served by one process at a time; one that is on its way
//! ([`ClientState::Moving`]) is neither read nor closed; what is refused here is refused before
//! anything of the client has changed.

use crate::backend::{Backend, Endpoint};
use crate::client::ClientState;
use crate::group::Group;
use crate::group::tokens::ClientId;
use crate::scheduler::priority::ReadFrom;
use crate::upgrade::arrival::Place;
use crate::upgrade::migrating::Migrating;
use crate::upgrade::record::{self, BoundBackend, NotHere};
use reactor::{Address, Net};
use session::own_writes::OwnWrites;
use session::prepared::OnBackend;
use session::record::{Here, PeerDefaults};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use wire::capabilities::BACKEND_KEY;

impl<N: Net> Group<N> {
    /// Stops reading and closing a client that moves to another process. `false` where it stays
    /// after all.
    pub(crate) fn send_away(&mut self, key: ClientId) -> bool {
        let now = self.net.now();
        let Some(client) = self.clients.get_mut(key) else {
            return false;
        };
        let bound = client.backend();
        if self.net.unwatch(client.transport.sock()).is_err()
            || !client.change_state(ClientState::Moving, now)
        {
            return false;
        }
        if let Some(bound) = bound {
            if let Some(backend) = self.backends.get(bound)
                && self.net.unwatch(backend.transport.sock()).is_err()
            {
                self.let_in(key);
                return false;
            }
            (self.migrating).put(key, &mut self.clients, &mut self.backends);
        }
        true
    }

    /// A client that another process sends, which is not served yet.
    ///
    /// # Errors
    /// Why it cannot be here; nothing has changed then, and the socket is closed in this process.
    pub(crate) fn take_in(
        &mut self,
        (sock, bytes): (N::Sock, &[u8]),
        backend: Option<(N::Sock, &[u8])>,
        peer_defaults: &[PeerDefaults],
    ) -> Result<ClientId, NotHere> {
        let now = self.net.now();
        let here = Here {
            peer_defaults,
            defaults: &self.defaults,
            variables: &self.retained.variables,
            conditions: &self.retained.warnings,
        };
        let mut arrived = record::read(bytes, here)?;
        let read = |(sock, bytes): (N::Sock, &[u8])| {
            Ok::<_, NotHere>((sock, record::read_bound_backend(bytes, &mut arrived, here)?))
        };
        let backend = backend.map(read).transpose()?;
        let place = Place {
            shared: &self.shared,
            settings: &self.settings,
            group: self.index,
            clients: self.clients.len(),
        };
        arrived.fits(&place)?;
        let (user, onward) = arrived.onward(&place)?;
        let backend = match backend {
            Some((sock, backend)) => {
                let address = self.server_status.address(&self.shared.upstream, now);
                Some((
                    sock,
                    place.take_slot(address, &backend.backend.at)?,
                    backend,
                ))
            }
            None => None,
        };
        let session = self.sessions.intern(arrived.session.clone());
        let mut client = arrived.client(sock, now, session);
        let program = arrived.program.as_bytes();
        client.place.arrival.program = self.shared.programs.number(program);
        client.transport.count_tls(&self.retained.tls_bytes);
        let key = self.clients.insert(client);
        self.shared.clients.fetch_add(1, Relaxed);
        if let Some(fleet) = &self.shared.fleet {
            fleet.inherit(arrived.carried.id);
        }
        if self.settings.address_rules().is_any() {
            self.address_counts().count(key);
        }
        let capabilities = (
            arrived.capabilities & BACKEND_KEY,
            arrived.carried.extended.into(),
        );
        let from = self.members().reported_address(key);
        let pool = self.members().pool_of(capabilities, onward, from);
        self.members().put_in_pool(key, pool);
        let user = self.members().user_of(pool).unwrap_or(user);
        self.members().joins(key, user);
        self.room().count(key);
        // The other process alone knew what it had asked for, and written.
        self.readers().ask_from(key, Some(ReadFrom::Writer));
        self.readers().doubt_writes(key, OwnWrites::doubt);
        if let Some(gtid) = arrived.gtid {
            self.gtids.insert(key, gtid);
        }
        for (held, session) in arrived.statements {
            let mode = (self.shared.server).lex_mode(&session, arrived.capabilities);
            let definition = (self.definitions).read(&mut self.sessions, &held.sql, &session, mode);
            if let Some(client) = self.clients.get_mut(key) {
                let prepared = client.prepared.get_or_insert_default();
                prepared.take_record(held, definition, &self.retained.long_data);
            }
        }
        if let Some(client) = self.clients.get_mut(key)
            && let Some(prepared) = &mut client.prepared
        {
            prepared.last = arrived.last_prepared;
            prepared.count(&self.retained.statements);
        }
        if let Some((sock, at, backend)) = backend {
            self.take_in_backend(key, (sock, at), backend, arrived.capabilities);
        }
        Ok(key)
    }

    /// Takes in the backend of a client that another process sends.
    fn take_in_backend(
        &mut self,
        key: ClientId,
        from: (N::Sock, Arc<Address>),
        bound: BoundBackend,
        capabilities: u32,
    ) {
        let now = self.net.now();
        let session = self.sessions.intern(bound.session);
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        client.pins = bound.pins;
        client.modified = bound.modified.map(Box::new);
        client.place.give_tickets(bound.tickets);
        let pool = client.pool as usize;
        let mut backend = Backend::arrived(
            Endpoint::new(from.0, from.1, pool),
            &bound.backend,
            key,
            now,
            session,
        );
        backend.take_kind(&self.backend_pools.pools[pool].key);
        backend.prepared = OnBackend::of_records(bound.prepared, |sql, session| {
            let mode = self.shared.server.lex_mode(session, capabilities);
            self.definitions
                .read(&mut self.sessions, sql, session, mode)
        });
        self.shared.note_thread(backend.thread);
        let slots = &self.backend_pools.pools[pool].slots;
        backend.stand_for(self.shared.take_units(slots).unwrap_or_default());
        let server = self.shared.connections_at(None, backend.at());
        backend.count_at(server.map(|server| server.connected()));
        self.backend_pools.arrives(pool);
        Migrating::bind(key, backend, &mut self.clients, &mut self.backends);
    }

    /// Serves a client in this process again, on its backend if that was migrating.
    pub(crate) fn let_in(&mut self, key: ClientId) {
        let now = self.net.now();
        (self.migrating).take_back(key, &mut self.clients, &mut self.backends);
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        if !client.change_state(ClientState::Idle, now) {
            return self.clients.close_later(key);
        }
        // What has come meanwhile is told of at once.
        let sock = client.transport.sock();
        if self.net.watch(sock, key.token()).is_err() {
            return self.clients.close_later(key);
        }
        let bound = client.backend();
        if let Some((bound, backend)) = bound.and_then(|l| Some((l, self.backends.get(l)?)))
            && let Err(error) = (self.net).watch(backend.transport.sock(), bound.token())
        {
            return self.lose(bound, &format!("cannot watch a connection: {error}"));
        }
        self.serve_client(key);
    }
}
