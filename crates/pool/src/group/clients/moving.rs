//! Clients that go to another process of the pool, or come from one.
//!
//! A client goes in three steps: it is packed and sent away (from then on nothing of it is read or
//! written), the other process has taken it (it is gone here), or has not (it comes back, and
//! nothing has happened). One that comes is taken in without being served, and let in once the
//! other process is bound to know; or turned out, which only closes this process's copy of its
//! socket.
//!
//! A backend that goes along is *aside* meanwhile: out of this group's books of backends, so that
//! nothing is read from it or said on it, whatever happens here. What is dropped there is closed
//! without a word, because the other process has the connection too.
//!
//! Invariants: a client is served by one process at a time; one that is on its way
//! ([`ClientState::Moving`]) is neither read nor closed; what is refused here is refused before
//! anything of the client has changed.

use crate::arrival::{NotHere, Place};
use crate::backend::recorded::BackendRecord;
use crate::backend::{Backend, Endpoint};
use crate::client::ClientState;
use crate::group::Group;
use crate::tokens::{BACKEND, CLIENT};
use crate::upgrade::frames::ClientRecords;
use crate::upgrade::record::{self, AccountThere, Beside, Here, Lease, RECORD_BYTES_MAX, Stays};
use reactor::{Address, Key, Net, Token};
use session::record::BegunThere;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use wire::capabilities::BACKEND_KEY;

impl<N: Net> Group<N> {
    /// A client that may go, as a record.
    ///
    /// # Errors
    /// It would be too long.
    pub(crate) fn packed(&self, key: Key) -> Result<ClientRecords, Stays> {
        let client = self.clients.get(key).ok_or(Stays::Busy)?;
        let pool = &self.backend_pools.pools[client.pool as usize].key;
        let account = pool.account.as_ref().map(|counted| AccountThere {
            user: counted.user.clone(),
            host: counted.host.clone(),
            credential: pool.credential.clone(),
        });
        let user = self.settings.users.get(client.user as usize);
        let beside = Beside {
            user: user.map_or("", |user| &user.name),
            account,
            gtid: self.gtids.get(&key),
        };
        let mut records = ClientRecords::default();
        record::put(&mut records.client, client, &beside);
        if let Some(lease) = client.lease() {
            let backend = self.backends.get(lease).ok_or(Stays::Busy)?;
            let mut out = Vec::new();
            record::put_lease(&mut out, client, backend, self.net.now());
            records.lease = Some(out);
        }
        match records.len() > RECORD_BYTES_MAX {
            true => Err(Stays::Refused),
            false => Ok(records),
        }
    }

    /// It is on its way: it is neither read nor closed. `false` where it stays after all.
    pub(crate) fn send_away(&mut self, key: Key) -> bool {
        let now = self.net.now();
        let Some(client) = self.clients.get_mut(key) else {
            return false;
        };
        let lease = client.lease();
        if self.net.unwatch(client.transport.sock()).is_err()
            || !client.change_state(ClientState::Moving, now)
        {
            return false;
        }
        if let Some(lease) = lease {
            if let Some(backend) = self.backends.get(lease)
                && self.net.unwatch(backend.transport.sock()).is_err()
            {
                self.let_in(key);
                return false;
            }
            self.put_aside(key);
        }
        true
    }

    /// Takes a client's backend out of the books.
    fn put_aside(&mut self, key: Key) {
        if let Some(lease) = self.unbind(key)
            && let Some(backend) = self.backends.remove(lease)
        {
            self.aside.insert(key, (lease, backend));
        }
    }

    /// A client has its backend again, if it had one.
    fn take_back(&mut self, key: Key) {
        let Some((_, backend)) = self.aside.remove(&key) else {
            return;
        };
        let lease = self.backends.insert(backend);
        if let (Some(client), Some(backend)) =
            (self.clients.get_mut(key), self.backends.get_mut(lease))
        {
            client.binding.bind(&mut backend.binding, (key, lease));
        }
    }

    /// The other process has a client's backend: this one forgets it, and says nothing on it.
    pub(crate) fn drop_aside(&mut self, key: Key) {
        if let Some((lease, backend)) = self.aside.remove(&key) {
            self.shared.forget_thread(backend.thread);
            self.backend_pools.leaves(backend.pool, lease);
            self.give_back();
        }
    }

    /// The sockets of a client that is on its way: its own, and that of its backend.
    pub(crate) fn sockets_of(&self, key: Key) -> impl Iterator<Item = &N::Sock> {
        let client = self.clients.get(key).map(|client| &client.transport);
        let backend = self.aside.get(&key).map(|(_, backend)| &backend.transport);
        client.into_iter().chain(backend).map(|over| over.sock())
    }

    /// The other process does not have it: it goes on here.
    pub(crate) fn comes_back(&mut self, key: Key) {
        self.take_back(key);
        self.let_in(key);
    }

    /// A client that another process sends, which is not served yet.
    ///
    /// # Errors
    /// Why it cannot be here; nothing has changed then, and the socket is closed in this process.
    pub(crate) fn take_in(
        &mut self,
        (sock, bytes): (N::Sock, &[u8]),
        lease: Option<(N::Sock, &[u8])>,
        begun_there: &[BegunThere],
    ) -> Result<Key, NotHere> {
        let now = self.net.now();
        let here = Here {
            begun_there,
            begun: &self.begun,
            meters: (&self.variables, &self.warnings),
        };
        let mut arrived = record::read(bytes, here).map_err(|error| error.to_string())?;
        let read = |(sock, bytes): (N::Sock, &[u8])| {
            let lease = record::read_lease(bytes, &mut arrived, here, now);
            Ok::<_, NotHere>((sock, lease.map_err(|error| error.to_string())?))
        };
        let lease = lease.map(read).transpose()?;
        let place = Place {
            shared: &self.shared,
            settings: &self.settings,
            group: self.index,
            clients: self.clients.len(),
        };
        arrived.fits(&place)?;
        let (user, onward) = arrived.onward(&place)?;
        let lease = match lease {
            Some((sock, lease)) => Some((sock, self.address_of(&lease.backend)?, lease)),
            None => None,
        };
        let session = self.sessions.intern(arrived.session.clone());
        let client = arrived.client(sock, now, session);
        let tls_bytes = client.transport.tls_bytes();
        let key = self.clients.insert(client);
        self.tls_bytes += tls_bytes;
        self.shared.clients.fetch_add(1, Relaxed);
        if self.settings.address_rules().is_any() {
            self.seating().seat(key);
        }
        let capabilities = (arrived.capabilities & BACKEND_KEY, arrived.extended.into());
        let from = self.members().told_address(key);
        let pool = self.members().pool_of(capabilities, onward, from);
        self.members().put_in_pool(key, pool);
        self.count_arrived(key, user);
        if let Some(gtid) = arrived.gtid {
            self.gtids.insert(key, gtid);
        }
        for held in arrived.statements {
            let mode = (self.shared.server).lex_mode(&held.session, arrived.capabilities);
            let definition =
                (self.definitions).read(&mut self.sessions, &held.sql, &held.session, mode);
            if let Some(client) = self.clients.get_mut(key) {
                let prepared = client.prepared.get_or_insert_default();
                prepared.take_record(held, definition);
            }
        }
        for (name, sql, session) in arrived.named {
            let mode = (self.shared.server).lex_mode(&session, arrived.capabilities);
            let definition = self
                .definitions
                .read(&mut self.sessions, &sql, &session, mode);
            if let Some(client) = self.clients.get_mut(key) {
                let prepared = client.prepared.get_or_insert_default();
                prepared.named.push((name, definition));
            }
        }
        if let Some(client) = self.clients.get_mut(key)
            && let Some(prepared) = &mut client.prepared
        {
            prepared.last = arrived.last_prepared;
            prepared.count(&self.statements);
            self.long_data += prepared.long_len();
        }
        if let Some((sock, at, lease)) = lease {
            self.take_in_lease(key, (sock, at), lease, arrived.capabilities);
        }
        Ok(key)
    }

    /// Where a backend was dialled that another process sends, which has a slot from now on.
    fn address_of(&mut self, backend: &BackendRecord) -> Result<Arc<Address>, NotHere> {
        let now = self.net.now();
        let address = self.outlook.address(&self.shared.upstream, now);
        let address = address.filter(|address| address.to_string() == backend.at);
        let address = address.ok_or("its backend is a connection to another server")?;
        match self.shared.budget.take(self.index) {
            true => Ok(address),
            false => Err("there are as many backends as there may be (backends_max)".into()),
        }
    }

    /// The backend of a client that another process sends.
    fn take_in_lease(
        &mut self,
        key: Key,
        from: (N::Sock, Arc<Address>),
        lease: Lease,
        capabilities: u32,
    ) {
        let now = self.net.now();
        let session = self.sessions.intern(lease.backend.session().clone());
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        client.pins = lease.pins;
        client.touched = lease.touched.map(Box::new);
        client.place.give_tickets(lease.tickets);
        let pool = client.pool as usize;
        let mut backend = Backend::arrived(
            Endpoint::new(from.0, from.1, pool),
            &lease.backend,
            key,
            now,
            session,
        );
        let kind = &self.backend_pools.pools[pool].key;
        (backend.form, backend.eofs) = (kind.form(), kind.sends_eofs());
        let prepared = lease.backend.prepared;
        backend.prepared = prepared.into_value(|sql, session| {
            let mode = self.shared.server.lex_mode(session, capabilities);
            self.definitions
                .read(&mut self.sessions, sql, session, mode)
        });
        self.shared.note_thread(backend.thread);
        self.backend_pools.arrives(pool);
        let backend = (Key::from_parts(u32::MAX, 0), backend);
        self.aside.insert(key, backend);
        self.take_back(key);
    }

    /// It is this process that serves it from now on.
    pub(crate) fn let_in(&mut self, key: Key) {
        let now = self.net.now();
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        if !client.change_state(ClientState::Idle, now) {
            return self.close_later(key);
        }
        // What has come meanwhile is told of at once.
        let sock = client.transport.sock();
        if self.net.watch(sock, Token::new(CLIENT, key)).is_err() {
            return self.close_later(key);
        }
        let lease = client.lease();
        if let Some((lease, backend)) = lease.and_then(|l| Some((l, self.backends.get(l)?)))
            && let Err(error) =
                (self.net).watch(backend.transport.sock(), Token::new(BACKEND, lease))
        {
            return self.lose(lease, &format!("cannot watch a connection: {error}"));
        }
        self.pump(key);
    }

    /// The other process goes on with it.
    pub(crate) fn turn_out(&mut self, key: Key) {
        self.put_aside(key);
        self.close(key);
    }
}
