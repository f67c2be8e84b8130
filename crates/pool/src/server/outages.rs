//! Outages: what a group does while the server cannot be reached, when it is back, and when it is
//! elsewhere.
//!
//! [`crate::server::upstream`] knows of an outage, from all groups and the watch. Until it has
//! lasted for `server_down_fail_ms`, clients wait for the server as they wait for a backend; from
//! then on they are refused at once, if their pool has no backend that could become free. At the
//! end of an outage the group dials again, without regard to what earlier dials have come to.
//!
//! A server that stands still has backends that could become free, and never do. While it is silent
//! nothing is sent but what clients send on backends that they hold. From `server_down_fail_ms` on
//! a statement that was not sent gets error 9507, also one of a client that holds a backend, which
//! it keeps; one that was sent gets error 1158. A backend that owes an answer is closed, whether
//! that is a client's or the pool's own.
//!
//! Invariant: who is refused has a dial made on its behalf, unless one is under way, so that a
//! group finds the server's return even where nothing else looks for it. The watch looks for the
//! return of one that is silent.

use crate::backend::{Backend, BackendState, losses};
use crate::group::parts::Parts;
use crate::server::status::Changed;
use reactor::Net;
use std::time::Duration;

/// Takes notice of the end of an outage, and of another meaning of the server's name.
pub(crate) fn notice_upstream<N: Net>(parts: &mut Parts<N>, changed: Changed) {
    if changed.is_back {
        // What was dialled before may never be answered, and nobody waits for the end of a
        // back-off.
        let now = parts.net.now();
        let pools = &mut parts.backend_pools.pools;
        pools.iter_mut().for_each(|pool| pool.dial_succeeded(now));
        let stale = parts.backends.keys_of(|backend| backend.is_stale_dial(now));
        stale.into_iter().for_each(|key| parts.closer().retire(key));
    }
    if changed.has_moved {
        // Backends elsewhere serve their clients until they are checked in, and nobody else.
        parts.server_side.epoch += 1;
        let upstream = parts.shared.upstream.clone();
        let has_moved = |b: &Backend<N::Sock>| !b.is_reader() && !upstream.means(b.at());
        if upstream.is_writer() {
            // The server before may have lost what its backends would commit, or may not have
            // been told of its end. New ones are opened without a back-off.
            let now = parts.net.now();
            let pools = &mut parts.backend_pools.pools;
            let server = parts.shared.connections_to(upstream.writer_id());
            for (place, pool) in (0..).map(|pool| (parts.index, pool)).zip(pools) {
                pool.dial_succeeded(now);
                if pool.key.reader.is_none() {
                    pool.follow_server(place, server.clone());
                }
            }
            let is_used =
                |b: &Backend<N::Sock>| b.state() == BackendState::CheckedOut && has_moved(b);
            for key in parts.backends.keys_of(is_used) {
                losses::lose(parts, key, "another server is written to now");
            }
        }
        parts.closer().leave_backends(has_moved);
    }
}

/// Closes the backends on which a silent server owes an answer. One whose client does not take
/// what has come is left: the answer may be there.
pub(crate) fn lose_unanswered<N: Net>(parts: &mut Parts<N>, lasted: Duration) {
    let why = format!(
        "the server has answered nobody for {} ms (server_down_fail_ms)",
        lasted.as_millis()
    );
    let now = parts.net.now();
    let owes = |backend: &Backend<N::Sock>| {
        let is_open = matches!(
            backend.state(),
            BackendState::CheckedOut | BackendState::Idle
        );
        let (readers, clients) = (&parts.client_side.slow_readers, &parts.clients);
        let is_held_up = backend.transport.is_readable()
            && !readers.may_read(backend, clients, &parts.shared, now);
        is_open && !backend.is_reader() && !backend.flight.is_empty() && !is_held_up
    };
    for key in parts.backends.keys_of(owes) {
        losses::lose(parts, key, &why);
    }
}
