//! Replies that nobody waits for: their client has left, or was answered already.
//!
//! A statement whose client has left runs on, as it does on a connection of the client's own: a
//! server notices the end of a connection when it writes to it. What it answers is counted and
//! thrown away. A direct server would fail at the next write of such a reply, so the pool does not
//! read all of a long one either: past a number of bytes or a time ([`crate::backend::overdue`]),
//! whichever comes first, the backend is closed and a KILL ends the statement on the server.
//!
//! A statement that has not begun to send rows is left alone: an UPDATE is carried out whether or
//! not its client is there to hear of it.
//!
//! Replies to the pool's own questions are kept, up to [`crate::backend::flight::COLLECTED_MAX`].
//!
//! Invariant: no length that a server alone decides is kept in memory.

use crate::backend::abort;
use crate::client::leaving;
use crate::errors::reasons::Refusal;
use crate::group::parts::Parts;
use crate::group::tokens::{BackendId, ClientId};
use crate::statements::kill::jobs::Job;
use reactor::Net;

/// Ends whatever is left on a client's backend, and closes the client once it has taken what it
/// was answered, and why.
pub(crate) fn part_with_backend<N: Net>(
    parts: &mut Parts<N>,
    backend: BackendId,
    owner: ClientId,
    refusal: &Refusal,
) {
    if let Some(client) = parts.clients.get_mut(owner) {
        client.begin_unasked();
    }
    leaving::refuse_and_leave(parts, owner, refusal);
    abandon(parts, backend, Some(owner));
    parts.clients.unbind(owner, &mut parts.backends);
}

/// Closes a backend whose statement is of no more use, and has a KILL end that on the server:
/// enough of a reply that nobody waits for has been thrown away, or that of `owner` has taken
/// too long. The statements of others that are pipelined behind it run again.
pub(crate) fn abandon<N: Net>(
    parts: &mut Parts<N>,
    backend_id: BackendId,
    owner: Option<ClientId>,
) {
    parts.observed.counts.abandoned += u64::from(owner.is_none());
    let Some(backend) = parts.backends.get(backend_id) else {
        return;
    };
    let (pool, thread, at) = (backend.pool, backend.thread, backend.at().clone());
    abort::abort_followers(parts, backend_id, owner);
    parts.closer().retire(backend_id);
    let job = Job {
        asker: None,
        at,
        pool,
        thread,
        aim: None,
    };
    parts.server_side.kill_connection.push_own(job);
}
