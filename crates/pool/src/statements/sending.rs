//! Sending: a client's command goes out to a backend that stands in its session.
//!
//! Invariant: a statement goes out only to a backend that stands in its client's session state, or
//! behind what puts it there ([`crate::pair::restoring`]).

use crate::backend::{InFlight, Purpose};
use crate::client::{ClientState, Handled};
use crate::group::parts::Parts;
use crate::group::tokens::{BackendId, ClientId};
use crate::limits::long_commands::LONG_COMMAND;
use reactor::Net;
use session::send_mode::Prefix;
use session::statement::Code;
use std::time::Duration;

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

/// Sends a statement to a backend, behind whatever is in flight there and, in `prefix`, what
/// brings the backend into the client's session.
pub(crate) fn send_statement<N: Net>(
    parts: &mut Parts<N>,
    key: ClientId,
    backend_id: BackendId,
    message: &[u8],
    prefix: &Prefix,
) {
    let Some((waited, executes)) = note_sent(parts, (key, backend_id), message, prefix) else {
        return;
    };
    if parts.settings.logs_statements() {
        parts.logs().note(key, message, waited);
    }
    match prefix {
        Prefix::Joined(_) => parts.backend_writer().send(backend_id, b""),
        _ if !executes => parts.backend_writer().send_message(backend_id, message),
        // In the words that the backend knows.
        _ => {
            let share = parts.shared.prepared_of_backend(&parts.settings);
            if let Some(mut pair) = parts.pair(key, backend_id)
                && let Some(prepared) = pair.client.session.prepared.as_mut()
                && let Some(under_way) = prepared.under_way.take()
            {
                let out = pair.put_prepared(under_way, message, share);
                parts.backend_writer().send(backend_id, &out);
            }
        }
    }
}

/// Notes that a client's statement runs, with what it is pinned for where that is certain,
/// and whether others may be pipelined behind it. Returns its wait, and whether it is an execution;
/// `None` where it does not go out.
fn note_sent<N: Net>(
    parts: &mut Parts<N>,
    (key, backend_id): (ClientId, BackendId),
    message: &[u8],
    prefix: &Prefix,
) -> Option<(Duration, bool)> {
    let (now, runs) = (parts.net.now(), *prefix == Prefix::CannotFail);
    let (client, backend) = (
        parts.clients.get_mut(key)?,
        parts.backends.get_mut(backend_id)?,
    );
    if runs && !client.session.pins.is_empty() {
        client.session.note_pins(now, &mut parts.observed.counts);
    }
    if !client.change_state(ClientState::Running, now) {
        parts.clients.close_later(key);
        return None;
    }
    let waited = match client.place.is_held() {
        true => now.since(client.place.since()),
        false => Duration::ZERO,
    };
    let place = client.figures_place(&parts.backend_pools);
    parts.observed.figures.sent(place, waited);
    (parts.observed.figures.digests).sent(client.session.statement.digest, waited);
    client.join(backend_id);
    client.session.last.sent();
    let first = backend.flight.is_empty();
    let behind = backend.flight.back().and_then(|command| command.owner);
    parts.observed.counts.pipelined += u64::from(behind.is_some_and(|owner| owner != key));
    // Beside a transaction, or what a client is pinned for, nobody else has a place.
    let apart = client.session.is_held() || backend.session.in_transaction();
    let session_digest = if apart { 0 } else { client.session_digest() };
    if first {
        (backend.flight).begin_pipeline(parts.known.digests.trusts(session_digest));
    }
    let kept = match backend.is_reader() && !apart || !first && session_digest != 0 {
        true => backend.flight.keep_for_followers(message),
        false => 0,
    };
    let mut command = InFlight {
        owner: Some(key),
        purpose: Purpose::Statement,
        reply: client.reply_to(message, backend),
        session_digest,
        sent: now,
        first,
        is_long: message.len() >= LONG_COMMAND,
        left: None,
        kept,
    };
    if let Prefix::Joined(joined) = prefix {
        backend.flight.expect_joined(key, joined);
        command.reply = command.reply.behind();
        backend.put_joined(message, joined);
    }
    backend.flight.expect(command);
    parts.server_side.running.begins(backend, now);
    if parts.shared.server.flavour.is_mysql() {
        backend.session.note_typing(key, &client.session.state);
    }
    match client.session.statement.code {
        Code::None => {}
        Code::Unread => parts.observed.counts.code_unread += 1,
        Code::Known => parts.observed.counts.code_known += 1,
    }
    if runs && client.session.effects.modifying().is_some() {
        (client.session).note_modified(&mut backend.flight, (now, &mut parts.observed.counts));
    }
    Some((waited, client.session.prepared.under_way().is_some()))
}
