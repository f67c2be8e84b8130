//! Ahead: preparing on a backend what a client's execution needs there.
//!
//! The execution stays in its client's input, and is looked at again when the backend has answered:
//! in one write the backend is brought into the session in which the client prepared the statement,
//! if it is in another, and prepares the text; then the execution takes its usual way. Only the
//! answer to the preparation is waited for, since it has the id. What was prepared in a wrong
//! session is closed with its backend.
//!
//! A text that can no longer be prepared fails as its execution would: a server that finds its
//! tables changed prepares again, and says what that said.

use crate::client::{ClientState, Handled};
use crate::errors::reasons::{Refusal, Unprepared};
use crate::group::parts::Parts;
use crate::group::tokens::{BackendId, ClientId};
use crate::statements::endings;
use reactor::Net;
use session::last_statement::COUNTS;
use session::read_back::Properties;
use session::send_mode::SendMode;
use std::rc::Rc;

/// Prepares what a client's execution needs and its backend lacks; `None` when that is nothing.
pub(crate) fn prepare_ahead<N: Net>(
    parts: &mut Parts<N>,
    key: ClientId,
    backend_id: BackendId,
    message: &[u8],
) -> Option<Handled> {
    let share = parts.shared.prepared_of_backend(&parts.settings);
    let (client, backend) = (parts.clients.get_mut(key)?, parts.backends.get(backend_id)?);
    if client.session.prepares_unread() {
        client.session.prepared.mark_read_back(true);
        return Some(wait_for_property(
            parts,
            key,
            backend_id,
            Properties::COLLATION,
        ));
    }
    if (client.session).is_prepared_on(backend, message, &parts.shared.server) {
        return None;
    }
    if backend.session.prepared.is_full(share) {
        return Some(parts.answers().refuse_to_prepare(key));
    }
    let definition = client.session.prepared.under_way()?.definition.clone();
    let session = client
        .session
        .session_to_prepare_in(&definition.session, &mut parts.known.sessions);
    let Some(session) = session else {
        let refusal = Refusal::Prepared(Unprepared::NoSession);
        return Some(parts.answers().refuse_counted(key, &refusal));
    };
    let same = Rc::ptr_eq(&backend.session.state, &session);
    let changed = client.session.last.pending.changed;
    if !same && changed.intersects(Properties::COLLATION) {
        // What the session is now must be known, or there would be no way back to it.
        client.session.prepared.mark_read_back(true);
        return Some(wait_for_property(
            parts,
            key,
            backend_id,
            Properties::COLLATION,
        ));
    }
    // How a text is read is no matter of user variables, and theirs may not be read back yet.
    // What it may do is judged when it is executed.
    let session = session.with_unread_of(&client.session.state);
    let session = parts.known.sessions.intern(session);
    let mut out = Vec::new();
    let mut pair = parts.pair(key, backend_id)?;
    pair.put_restore(&session, SendMode::Anywhere, &mut out);
    if !out.is_empty() {
        // A SET has a ROW_COUNT() of its own.
        pair.client.last.invalidate(COUNTS);
    }
    pair.prepare_ahead(share, &mut out)?;
    Some(send_restore(parts, key, backend_id, &out))
}

/// Keeps a client's command until this property of its session has been read back, which is
/// asked for now if it is not under way.
pub(crate) fn wait_for_property<N: Net>(
    parts: &mut Parts<N>,
    key: ClientId,
    backend_id: BackendId,
    property: Properties,
) -> Handled {
    let handled = send_restore(parts, key, backend_id, b"");
    if let Some(mut pair) = parts.pair(key, backend_id)
        && !(pair.flight.iter()).any(|command| command.reads(property))
    {
        let next = pair.read_back(property);
        endings::follow(parts, key, backend_id, next);
    }
    handled
}

/// Sends what its command is to stand behind, and keeps that until it is answered.
pub(crate) fn send_restore<N: Net>(
    parts: &mut Parts<N>,
    key: ClientId,
    backend: BackendId,
    out: &[u8],
) -> Handled {
    let now = parts.net.now();
    if !parts.clients.enter(key, ClientState::Restoring, now) {
        return Handled::Used;
    }
    parts.backend_writer().ask(backend, out);
    Handled::Kept
}
