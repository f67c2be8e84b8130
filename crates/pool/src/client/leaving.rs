//! Clients that leave: with an error, or once their last bytes are sent.
//!
//! Invariant: nobody leaves in the middle of a local file without the backend that waits for it.

use crate::backend::abort;
use crate::client::{Client, ClientState};
use crate::errors::reasons::Refusal;
use crate::group::parts::Parts;
use crate::group::tokens::ClientId;
use reactor::Net;

/// Sends an error and closes once it is sent.
pub(crate) fn refuse_and_leave<N: Net>(parts: &mut Parts<N>, key: ClientId, refusal: &Refusal) {
    parts.observed.counts.refused += 1;
    parts.failed_logins().note_refused(key, refusal);
    parts.answers().refuse(key, refusal);
    parts.clients.note_end(key, refusal.name());
    leave(parts, key);
}

/// Closes a client once its last bytes are sent.
pub(crate) fn leave<N: Net>(parts: &mut Parts<N>, key: ClientId) {
    leave_amid_file(parts, key);
    parts.clients.leave(key, parts.net.now());
}

/// Closes the backend of a client that goes in the middle of its local file. The server would
/// wait for the rest of the file, with the transaction and the locks of what it has.
pub(crate) fn leave_amid_file<N: Net>(parts: &mut Parts<N>, key: ClientId) {
    let client = parts.clients.get(key);
    let feeds = client.filter(|client| client.state() == ClientState::Feeding);
    if let Some(backend_id) = feeds.and_then(Client::backend) {
        abort::abort_followers(parts, backend_id, Some(key));
        parts.closer().retire(backend_id);
        parts.clients.unbind(key, &mut parts.backends);
    }
}

/// Closes a client for what it has sent of a command, with the error as its answer.
pub(crate) fn refuse_input<N: Net>(parts: &mut Parts<N>, key: ClientId, refusal: &Refusal) {
    parts.room().drop_command(key);
    refuse_and_leave(parts, key, refusal);
    parts.room().count(key);
}
