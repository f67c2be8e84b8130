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

use crate::auth::account::{Account, Counted};
use crate::auth::credential::Credential;
use crate::backend::Backend;
use crate::backend::recorded::BackendRecord;
use crate::buffers::transport::Transport;
use crate::client::{Client, ClientState, Company};
use crate::config::{Origin, User};
use crate::group::Group;
use crate::pool_members::Onward;
use crate::tokens::{BACKEND, CLIENT};
use crate::upgrade::frames::ClientRecords;
use crate::upgrade::record::{
    self, AccountThere, Arrived, Beside, Here, Lease, RECORD_BYTES_MAX, Stays,
};
use reactor::{Address, Key, Net, Token};
use session::begun::Begun;
use session::prepared::Definition;
use session::record::BegunThere;
use session::state::Session;
use sql::classify::classify;
use sql::lex::LexMode;
use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use wire::auth::native;
use wire::capabilities::{self as cap, BACKEND_KEY};

/// A client that this process cannot have: words for the log of the other one.
type NotHere = String;

impl<N: Net> Group<N> {
    /// The global values under which sessions of a client began.
    pub(crate) fn begun_of(&self, key: Key) -> Vec<Begun> {
        let Some(client) = self.clients.get(key) else {
            return Vec::new();
        };
        let mut all = vec![client.session.begun.clone()];
        if let Some(backend) = client.lease().and_then(|lease| self.backends.get(lease)) {
            let sessions = backend.prepared.sessions();
            for session in sessions.chain([&backend.session]) {
                if !all.contains(&session.begun) {
                    all.push(session.begun.clone());
                }
            }
        }
        if let Some(prepared) = &client.prepared {
            let held = prepared.held().iter().map(|held| &held.definition);
            let named = prepared.named.iter().map(|(_, definition)| definition);
            for definition in held.chain(named) {
                if !all.contains(&definition.session.begun) {
                    all.push(definition.session.begun.clone());
                }
            }
        }
        all
    }

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

    /// The other process has it.
    pub(crate) fn has_gone(&mut self, key: Key) {
        self.close(key);
    }

    /// The other process does not have it: it goes on here.
    pub(crate) fn comes_back(&mut self, key: Key) {
        self.take_back(key);
        self.let_in(key);
    }

    /// A client that was to go stays: what it has said meanwhile is handled.
    pub(crate) fn goes_on_here(&mut self, key: Key) {
        self.pump(key);
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
        self.check_room(&arrived)?;
        let (user, onward) = self.onward_of(&arrived)?;
        let lease = match lease {
            Some((sock, lease)) => Some((sock, self.address_of(&lease.backend)?, lease)),
            None => None,
        };
        let session = self.sessions.intern(arrived.session);
        let mut transport = Transport::plain(sock, arrived.is_local);
        if let Some(address) = arrived.address {
            transport.set_client_address(address);
        }
        if let Some(tls) = arrived.tls {
            transport.set_tls(tls);
        }
        transport.set_compression(arrived.compression);
        let tls_bytes = transport.tls_bytes();
        let mut client = Client::moving(transport, now, session);
        client.id = arrived.id;
        client.capabilities = arrived.capabilities;
        client.extended = arrived.extended;
        client.collation = arrived.collation;
        client.seq = arrived.seq;
        client.changes_failed = arrived.changes_failed;
        client.place.priority = arrived.priority;
        client.last = arrived.last;
        client.pending_changes = arrived.pending_changes;
        client.keep_input(&arrived.input);
        if arrived.begin_deferred {
            client.company = Company::BeginDeferred;
        }
        client.statements_made = arrived.statements_made;
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
            let definition = self.defined(arrived.capabilities, &held.sql, &held.session);
            if let Some(client) = self.clients.get_mut(key) {
                let prepared = client.prepared.get_or_insert_default();
                prepared.take_record(held, definition);
            }
        }
        for (name, sql, session) in arrived.named {
            let definition = self.defined(arrived.capabilities, &sql, &session);
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
        let address = self.address_to_dial();
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
        client.place.give_tickets(lease.tickets);
        let pool = client.pool as usize;
        let mut backend = Backend::arrived(from, &lease.backend, (key, pool), now, session);
        let kind = &self.backend_pools.pools[pool].key;
        (backend.form, backend.eofs) = (kind.form(), kind.sends_eofs());
        let prepared = lease.backend.prepared;
        backend.prepared =
            prepared.into_value(|sql, session| self.defined(capabilities, sql, session));
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
        self.has_gone(key);
    }

    fn check_room(&self, arrived: &Arrived) -> Result<(), NotHere> {
        let shared = &self.shared;
        let offered = shared.offered | cap::COMPRESS | cap::ZSTD;
        if self.clients.len() >= shared.clients_per_group {
            return Err("the group has as many clients as it may have".into());
        }
        if shared.clients.load(Relaxed) >= self.settings.clients_max {
            return Err("there are as many clients as there may be (clients_max)".into());
        }
        if shared.is_memory_full.load(Relaxed) {
            return Err("no memory is left for more clients".into());
        }
        if arrived.capabilities & !offered != 0
            || u32::from(arrived.extended) & !shared.extended != 0
        {
            return Err("it has agreed on capabilities that are not offered here".into());
        }
        if shared.group_of_client(arrived.id) != self.index {
            return Err("its number is one of another group".into());
        }
        Ok(())
    }

    /// Its user, and what its backends log in with.
    fn onward_of(&self, arrived: &Arrived) -> Result<(usize, Onward), NotHere> {
        let shared = &self.shared;
        let users = &self.settings.users;
        let (user, onward) = match &arrived.account {
            None => {
                let is_that =
                    |user: &User| user.origin == Origin::Settings && user.name == arrived.user;
                let listed = users.iter().position(is_that);
                let user = listed.ok_or("its user is not in the settings any more")?;
                let onward = Onward {
                    user: users[user].backend_user.clone(),
                    credential: Credential::Password(users[user].backend_password.clone()),
                    account: None,
                };
                (user, onward)
            }
            Some(there) => {
                let counted = Counted {
                    user: there.user.clone(),
                    host: there.host.clone(),
                    ..Counted::default()
                };
                let all = shared.accounts.of_server();
                let account = all.of(&counted);
                let account = account.ok_or("its account is not known here")?;
                learn_again(account, &there.credential);
                let onward = shared.onward(account);
                let onward = onward.filter(|onward| onward.credential == there.credential);
                let onward = onward.ok_or("no login here has proven its account yet")?;
                (account.user, onward)
            }
        };
        let max = users.get(user).and_then(|user| user.limits.clients_max);
        if max.is_some_and(|max| users[user].usage.clients.load(Relaxed) >= max) {
            return Err("its user has as many clients as it may have".into());
        }
        Ok((user, onward))
    }

    fn defined(&mut self, capabilities: u32, sql: &[u8], session: &Session) -> Rc<Definition> {
        // Clients of one application have the same statements: each text is classified once.
        let like = Definition {
            sql: sql.into(),
            session: self.sessions.intern(session.clone()),
            class: classify(b"", LexMode::default()),
            digest: OnceCell::new(),
        };
        if let Some(known) = self.definitions.find(&like) {
            return known;
        }
        let mode = self.shared.server.lex_mode(session, capabilities);
        let class = classify(sql, mode);
        self.define(sql, session, class)
    }
}

/// What its clients have proven teaches the password of an account again, where that can be
/// checked.
fn learn_again(account: &Account, credential: &Credential) {
    if let Credential::Native(once) = credential
        && account.credential().is_none()
        && native::stored_from_once(once) == account.verifier.native
    {
        let _ = account.learnt.native.set(*once);
    }
}
