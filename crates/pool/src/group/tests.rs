//! Group for tests of its parts, whose sockets do what the test says, with one pool.

use crate::backend::pools::PoolKey;
use crate::backend::{Backend, BackendState};
use crate::client::{Client, ClientState};
use crate::group::Group;
use crate::group::scripted::{Scripted, shared};
use crate::group::tokens::{BackendId, ClientId};
use crate::scheduler::checkout;
use reactor::Time;
use session::state::Session;
use std::sync::Arc;

pub(crate) const NOW: Time = Time(1_000_000_000);

/// A group with nobody in it.
pub(crate) fn group() -> Group<Scripted> {
    group_with("")
}

/// A group with settings of its own.
pub(crate) fn group_with(settings: &str) -> Group<Scripted> {
    let mut group = Group::new(Scripted::default(), Arc::new(shared(settings)), 0);
    group
        .parts
        .backend_pools
        .add(PoolKey::of_user("app"), |_| true);
    group
}

/// A client between two statements.
pub(crate) fn client(group: &mut Group<Scripted>) -> ClientId {
    let session = group.parts.known.sessions.intern(Session::default());
    let mut client = Client::of_tests(NOW, session);
    client.login = None;
    client.identity.let_in_as(0);
    assert!(client.change_state(ClientState::Idle, NOW));
    group.parts.clients.insert(client)
}

/// An idle backend in a new session.
pub(crate) fn backend(group: &mut Group<Scripted>) -> BackendId {
    let session = group.parts.known.sessions.intern(Session::default());
    let mut backend = Backend::of_tests(NOW, session);
    for state in [BackendState::Preparing, BackendState::Idle] {
        assert!(backend.change_state(state, NOW));
    }
    assert!(group.parts.shared.budget.take(0));
    group.parts.backend_pools.dial_begins(0);
    group.parts.backend_pools.dial_ends(0);
    let backend_id = group.parts.backends.insert(backend);
    group.parts.backend_pools.pools[0].idle.push(backend_id);
    backend_id
}

/// A client that has a backend, between two statements.
pub(crate) fn bound(group: &mut Group<Scripted>) -> (ClientId, BackendId) {
    let (key, backend_id) = (client(group), backend(group));
    assert!(checkout::bind(&mut group.parts, key, backend_id, None));
    (key, backend_id)
}
