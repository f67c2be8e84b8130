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

use crate::backend::{Backend, Endpoint, losses};
use crate::client::ClientState;
use crate::group::parts::Parts;
use crate::group::tasks::Task;
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
use wire::capabilities::BACKEND_KEY;

/// Stops reading and closing a client that moves to another process. `false` where it stays
/// after all.
pub(crate) fn send_away<N: Net>(parts: &mut Parts<N>, key: ClientId) -> bool {
    let now = parts.net.now();
    let Some(client) = parts.clients.get_mut(key) else {
        return false;
    };
    if parts.net.unwatch(client.transport.sock()).is_err()
        || !client.change_state(ClientState::Moving, now)
    {
        return false;
    }
    if client.backend().is_some() {
        if let Some(backend) = client.backend_in(&parts.backends)
            && parts.net.unwatch(backend.transport.sock()).is_err()
        {
            let_in(parts, key);
            return false;
        }
        (parts.server_side.migrating).put(key, &mut parts.clients, &mut parts.backends);
    }
    true
}

/// A client that another process sends, which is not served yet.
///
/// # Errors
/// Why it cannot be here; nothing has changed then, and the socket is closed in this process.
pub(crate) fn take_in<N: Net>(
    parts: &mut Parts<N>,
    (sock, bytes): (N::Sock, &[u8]),
    backend: Option<(N::Sock, &[u8])>,
    peer_defaults: &[PeerDefaults],
) -> Result<ClientId, NotHere> {
    let now = parts.net.now();
    let here = Here {
        peer_defaults,
        defaults: &parts.known.defaults,
        variables: &parts.client_side.retained.variables,
        conditions: &parts.client_side.retained.warnings,
    };
    let mut arrived = record::read(bytes, here)?;
    let read = |(sock, bytes): (N::Sock, &[u8])| {
        Ok::<_, NotHere>((sock, record::read_bound_backend(bytes, &mut arrived, here)?))
    };
    let backend = backend.map(read).transpose()?;
    let place = Place {
        shared: &parts.shared,
        settings: &parts.settings,
        group: parts.index,
        clients: parts.clients.len(),
    };
    arrived.fits(&place)?;
    let (user, onward) = arrived.onward(&place)?;
    let backend = match backend {
        Some((sock, backend)) => {
            let address = (parts.server_side.status).address(&parts.shared.upstream, now);
            Some((
                sock,
                place.take_slot(address, &backend.backend.at)?,
                backend,
            ))
        }
        None => None,
    };
    let session = parts.known.sessions.intern(arrived.session.clone());
    let mut client = arrived.client(sock, now, session);
    let program = arrived.program.as_bytes();
    client.place.arrival.program = parts.shared.records.programs.number(program);
    (client.transport).count_tls(&parts.client_side.retained.tls_bytes);
    let key = parts.clients.insert(client);
    parts.shared.add_client();
    if let Some(fleet) = &parts.shared.connections.fleet {
        fleet.inherit(arrived.carried.id);
    }
    if parts.settings.address_rules().is_any() {
        parts.address_counts().count(key);
    }
    let capabilities = (
        arrived.capabilities & BACKEND_KEY,
        arrived.carried.extended.into(),
    );
    let from = parts.members().reported_address(key);
    let pool = parts.members().pool_of(capabilities, onward, from);
    parts.members().put_in_pool(key, pool);
    let user = parts.members().user_of(pool).unwrap_or(user);
    parts.members().joins(key, user);
    parts.room().count(key);
    // The other process alone knew what it had asked for, and written.
    parts.readers().ask_from(key, Some(ReadFrom::Writer));
    parts.readers().doubt_writes(key, OwnWrites::doubt);
    if let Some(gtid) = arrived.gtid {
        parts.client_side.gtids.insert(key, gtid);
    }
    if !arrived.statements.is_empty()
        && let Some(client) = parts.clients.get_mut(key)
    {
        let prepared = client.session.prepared.get_or_insert_default();
        for (held, session) in arrived.statements {
            let mode = (parts.shared.server).lex_mode(&session, arrived.capabilities);
            let definition = (parts.known.definitions).read(
                &mut parts.known.sessions,
                &held.sql,
                &session,
                mode,
            );
            prepared.take_record(held, definition, &parts.client_side.retained.long_data);
        }
        prepared.last = arrived.last_prepared;
        prepared.count(&parts.client_side.retained.statements);
    }
    if let Some((sock, at, backend)) = backend {
        take_in_backend(parts, key, (sock, at), backend, arrived.capabilities);
    }
    Ok(key)
}

/// Takes in the backend of a client that another process sends.
fn take_in_backend<N: Net>(
    parts: &mut Parts<N>,
    key: ClientId,
    from: (N::Sock, Arc<Address>),
    bound: BoundBackend,
    capabilities: u32,
) {
    let now = parts.net.now();
    let session = parts.known.sessions.intern(bound.session);
    let Some(client) = parts.clients.get_mut(key) else {
        return;
    };
    client.session.pins = bound.pins;
    client.session.modified = bound.modified.map(Box::new);
    client.place.give_tickets(bound.tickets);
    let pool = client.pool as usize;
    let mut backend = Backend::arrived(
        Endpoint::new(from.0, from.1, pool),
        &bound.backend,
        key,
        now,
        session,
    );
    backend.take_kind(&parts.backend_pools.pools[pool].key);
    backend.session.prepared = OnBackend::of_records(bound.prepared, |sql, session| {
        let mode = parts.shared.server.lex_mode(session, capabilities);
        (parts.known.definitions).read(&mut parts.known.sessions, sql, session, mode)
    });
    parts.shared.note_thread(backend.thread);
    let slots = &parts.backend_pools.pools[pool].slots;
    backend.stand_for(parts.shared.take_units(slots).unwrap_or_default());
    let server = parts.shared.connections_at(None, backend.at());
    backend.count_at(server.map(|server| server.connected()));
    parts.backend_pools.arrives(pool);
    Migrating::bind(key, backend, &mut parts.clients, &mut parts.backends);
}

/// Serves a client in this process again, on its backend if that was migrating.
pub(crate) fn let_in<N: Net>(parts: &mut Parts<N>, key: ClientId) {
    let now = parts.net.now();
    (parts.server_side.migrating).take_back(key, &mut parts.clients, &mut parts.backends);
    let Some(client) = parts.clients.get_mut(key) else {
        return;
    };
    if !client.change_state(ClientState::Idle, now) {
        return parts.clients.close_later(key);
    }
    // What has come meanwhile is told of at once.
    let sock = client.transport.sock();
    if parts.net.watch(sock, key.token()).is_err() {
        return parts.clients.close_later(key);
    }
    if let Some(bound) = client.backend()
        && let Some(backend) = client.backend_in(&parts.backends)
        && let Err(error) = (parts.net).watch(backend.transport.sock(), bound.token())
    {
        return losses::lose(parts, bound, &format!("cannot watch a connection: {error}"));
    }
    parts.work.tasks.add(Task::Read(key));
}
