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
//! Replies to the pool's own questions are kept, up to [`crate::backend::COLLECTED_MAX`].
//!
//! Invariant: no length that a server alone decides is kept in memory.

use crate::group::Group;
use crate::group::tokens::{BackendId, ClientId};
use crate::statements::kill::jobs::Job;
use reactor::Net;

impl<N: Net> Group<N> {
    /// Closes a backend whose statement is of no more use, and has a KILL end that on the server:
    /// enough of a reply that nobody waits for has been thrown away, or that of `owner` has taken
    /// too long. The statements of others that are pipelined behind it run again.
    pub(crate) fn abandon(&mut self, backend_id: BackendId, owner: Option<ClientId>) {
        self.counts.abandoned += u64::from(owner.is_none());
        let Some(backend) = self.backends.get(backend_id) else {
            return;
        };
        let (pool, thread, at) = (backend.pool, backend.thread, backend.at().clone());
        self.abort_followers(backend_id, owner);
        self.closer().retire(backend_id);
        let job = Job {
            asker: None,
            at,
            pool,
            thread,
            aim: None,
        };
        self.kill_connection.push_own(job);
    }
}
