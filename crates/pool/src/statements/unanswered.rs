//! Questions of the pool's own that are not answered yet.
//!
//! Answers of the pool's own tell a session's status and conditions. Behind an error it may not
//! know them: then the answer waits until the server has told.

use crate::backend::ForSession;
use crate::client::Client;
use crate::group::parts::Parts;
use crate::group::tokens::ClientId;
use reactor::Net;

/// True if a client keeps a backend that alone knows how many conditions its last error has left:
/// the server's answer to its next command tells that.
fn is_uncounted<S>(client: &Client<S>) -> bool {
    client.session.last.pending.failed && client.session.is_held()
}

/// True if what the pool's own answer would tell of a client is not known before its questions
/// are answered: they are under way, or the conditions behind an error, which its backend alone
/// has, are asked for now.
pub(crate) fn awaits_answers<N: Net>(parts: &mut Parts<N>, key: ClientId) -> bool {
    let Some(view) = parts.client_view(key) else {
        return false;
    };
    if view.is_being_asked(ForSession::Warnings) || view.is_being_asked(ForSession::Reports(true)) {
        return true;
    }
    let client = view.client;
    let asks = client.session.last.pending.warnings && is_uncounted(client);
    let backend = client.backend().filter(|_| asks);
    let Some((backend, mut pair)) = backend.and_then(|l| Some((l, parts.pair(key, l)?))) else {
        return false;
    };
    let out = pair.ask_for_conditions();
    parts.backend_writer().ask(backend, &out);
    true
}
