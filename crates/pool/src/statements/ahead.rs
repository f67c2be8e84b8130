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

use crate::client::Handled;
use crate::errors::reasons::{Refusal, Unprepared};
use crate::group::parts::Parts;
use crate::group::tokens::{BackendId, ClientId};
use crate::statements::{endings, sending};
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
    let (client, backend) = (parts.clients.get(key)?, parts.backends.get(backend_id)?);
    if client.prepares_unread() {
        return Some(read_back_ahead(parts, key, backend_id));
    }
    if client.is_prepared_on(backend, message, &parts.shared.server) {
        return None;
    }
    if backend.prepared.is_full(share) {
        return Some(parts.answers().refuse_to_prepare(key));
    }
    let definition = client.under_way()?.definition.clone();
    let session = client.session_to_prepare_in(&definition.session, &mut parts.known.sessions);
    let Some(session) = session else {
        let refusal = Refusal::Prepared(Unprepared::NoSession);
        return Some(parts.answers().refuse_counted(key, &refusal));
    };
    let client = parts.clients.get(key)?;
    let same = Rc::ptr_eq(&parts.backends.get(backend_id)?.session, &session);
    let changed = client.last.pending.changed;
    if !same && changed.intersects(Properties::COLLATION) {
        // What the session is now must be known, or there would be no way back to it.
        return Some(read_back_ahead(parts, key, backend_id));
    }
    // How a text is read is no matter of user variables, and theirs may not be read back yet.
    // What it may do is judged when it is executed.
    let session = session.with_unread_of(&client.session);
    let session = parts.known.sessions.intern(session);
    let mut out = Vec::new();
    let mut pair = parts.pair(key, backend_id)?;
    pair.put_restore(&session, SendMode::Anywhere, &mut out);
    if !out.is_empty() {
        // A SET has a ROW_COUNT() of its own.
        pair.client.last.invalidate(COUNTS);
    }
    pair.prepare_ahead(share, &mut out)?;
    Some(sending::send_restore(parts, key, backend_id, &out))
}

/// Keeps a command until the session that it needs to be known has been read back.
fn read_back_ahead<N: Net>(parts: &mut Parts<N>, key: ClientId, backend: BackendId) -> Handled {
    if let Some(client) = parts.clients.get_mut(key) {
        client.mark_read_back(true);
    }
    wait_for_property(parts, key, backend, Properties::COLLATION)
}

/// Keeps a client's command until this property of its session has been read back, which is
/// asked for now if it is not under way.
pub(crate) fn wait_for_property<N: Net>(
    parts: &mut Parts<N>,
    key: ClientId,
    backend_id: BackendId,
    property: Properties,
) -> Handled {
    let handled = sending::send_restore(parts, key, backend_id, b"");
    let under_way = parts.backends.get(backend_id).is_some_and(|backend| {
        let mut flight = backend.flight().iter();
        flight.any(|command| command.reads(property))
    });
    if !under_way && let Some(mut pair) = parts.pair(key, backend_id) {
        let next = pair.read_back(property);
        endings::follow(parts, key, backend_id, next);
    }
    handled
}
