//! Clients that leave a reader: it is lost, behind or left out, and they read from the writer.
//!
//! A read of which nothing has been answered runs once more on the writer.

use crate::backend::{Aborted, abort};
use crate::client::lost_backend;
use crate::client::lost_backend::{Loss, REFUSED};
use crate::group::parts::Parts;
use crate::group::tokens::{BackendId, ClientId};
use reactor::Net;
use session::reply_summary::ReplySummary;
use std::sync::atomic::Ordering::Relaxed;

/// Sends the clients that wait for a backend of a reader to the writer.
pub(crate) fn send_home<N: Net>(parts: &mut Parts<N>, pool: usize) {
    if !parts.backend_pools.is_reader(pool) {
        return;
    }
    while let Some(key) = parts.matching().take_refusable(pool) {
        send_one_home(parts, key);
    }
}

fn send_one_home<N: Net>(parts: &mut Parts<N>, key: ClientId) {
    parts.waiters().forget(key);
    parts.readers().go_home(key);
    if let Some(client) = parts.clients.get_mut(key) {
        client.command.run_apart();
    }
    parts.return_to_idle(key);
}

/// Takes a reader's answer to whether it has what its client has written; a client of one that
/// lacks it goes elsewhere.
pub(crate) fn caught_up<N: Net>(
    parts: &mut Parts<N>,
    backend_id: BackendId,
    owner: Option<ClientId>,
    (summary, collected): (&ReplySummary, &[u8]),
) {
    match owner {
        None => parts.closer().retire(backend_id),
        Some(owner) => {
            let mut readers = parts.readers();
            if !readers.caught_up(backend_id, summary, collected) {
                leave_behind(parts, owner, backend_id);
            }
        }
    }
}

/// Takes a client off the backend of a reader that lacks what it needs: it reads from the
/// writer.
pub(crate) fn leave_behind<N: Net>(parts: &mut Parts<N>, owner: ClientId, backend_id: BackendId) {
    let now = parts.net.now();
    parts.server_side.reads.leave_readers(owner, now);
    leave_reader(parts, backend_id, REFUSED);
}

/// Closes a lost backend of a reader: what it has not begun to answer runs on the writer.
pub(crate) fn leave_reader<N: Net>(parts: &mut Parts<N>, backend_id: BackendId, loss: Loss<'_>) {
    let Some(backend) = parts.backends.get_mut(backend_id) else {
        return;
    };
    let bound = backend.client();
    let mut aborted = backend.flight.abort_followers(None);
    if let Some(bound) = bound.filter(|bound| aborted.iter().all(|(key, _)| key != bound)) {
        aborted.push((bound, Aborted::OwnsSession));
    }
    parts.closer().retire(backend_id);
    for (key, aborted) in aborted {
        match aborted {
            Aborted::RunsAgain(command) => {
                abort::run_again(parts, key, &command);
                parts.readers().go_home(key);
                if let Some(reads) = parts.shared.reads() {
                    reads.again.fetch_add(1, Relaxed);
                }
            }
            Aborted::HasBegun => lost_backend::backend_lost(parts, key, loss),
            Aborted::OwnsSession => {
                let loss = Loss {
                    amid_packet: false,
                    ..loss
                };
                lost_backend::backend_lost(parts, key, loss);
                let client = parts.clients.get(key);
                if client.is_some_and(|client| client.place.is_in_queue()) {
                    send_one_home(parts, key);
                }
            }
        }
    }
}
