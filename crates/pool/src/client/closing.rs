//! The end of a client.
//!
//! Room and counts that it has elsewhere are given back, and its backend is freed, or closed when
//! it may hold something of its. Invariant: clients are closed between two steps of a turn, by the
//! turn alone.

use crate::client::{ClientState, leaving};
use crate::group::parts::Parts;
use crate::group::tokens::ClientId;
use crate::observe::audit::end;
use crate::scheduler::checkout;
use reactor::Net;
use std::sync::atomic::Ordering;

/// Writes into the audit trail that the clients that are still here are cut off.
pub(crate) fn note_cut_off<N: Net>(parts: &mut Parts<N>) {
    for key in parts.clients.keys() {
        parts.logs().closed(key, end::DRAIN);
    }
}

/// Removes a client; its backend is freed, or closed when it may hold something of its.
pub(crate) fn close<N: Net>(parts: &mut Parts<N>, key: ClientId) {
    parts.failed_logins().note_gone(key);
    parts.client_side.gtids.remove(&key);
    parts.readers().doubt_running(key);
    parts.server_side.reads.forget(key);
    parts.address_counts().leave(key);
    let end = parts.clients.take_end(key);
    parts.logs().closed(key, end);
    parts.waiters().forget(key);
    parts.room().uncount(key);
    // Where the other process has its backend, this one forgets that, and says nothing on it.
    if let Some((backend_id, backend)) = parts.server_side.migrating.forget(key) {
        parts.shared.forget_thread(backend.thread);
        parts.backend_pools.leaves(backend.pool, backend_id);
        (parts.work.turn_output).give_slot_back(&parts.shared.budget, parts.index);
    }
    leaving::leave_amid_file(parts, key);
    let Some(mut client) = parts.clients.remove(key) else {
        return;
    };
    // What another process may go on with is dropped without a word: a record that is sealed
    // here would have the nonce of one that is sealed there.
    if client.state() != ClientState::Moving {
        client.transport.end(&mut parts.net);
    }
    if let Some(output) = client.output.take() {
        (parts.client_side.slow_readers).drop_rest(output.rest, &parts.shared);
    }
    parts.shared.remove_client();
    if client.identity.is_known() {
        let user = &parts.settings.users[client.identity.user()].usage;
        user.clients.fetch_sub(1, Ordering::Relaxed);
        if let Some(counted) = parts.backend_pools.counted_in(client.pool as usize) {
            counted.clients.fetch_sub(1, Ordering::Relaxed);
        }
    }
    if let Some(backend_id) = client.backend() {
        let keeps = client.session.is_held()
            || client.session.modified.is_some()
            || client.session.is_unread();
        checkout::orphan(parts, key, backend_id, keeps);
    }
}
