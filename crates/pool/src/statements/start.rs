//! Start: a command runs on its client's backend, on another one, or later.
//!
//! A backend is brought into its client's session first ([`begin`]): by what goes in front of the
//! statement, by a reset, or by what is waited for. Then it goes out ([`send_statement`]).
//!
//! Invariant: a statement goes out only to a backend that stands in its client's session state, or
//! behind what puts it there ([`crate::pair::restoring`]).

use crate::backend::{InFlight, Purpose, session_reset};
use crate::client::{ClientState, Handled, leaving};
use crate::cluster::routing;
use crate::errors::reasons::Refusal;
use crate::group::parts::Parts;
use crate::group::tasks::Task;
use crate::group::tokens::{BackendId, ClientId};
use crate::limits::long_commands::LONG_COMMAND;
use crate::limits::rules::admit;
use crate::scheduler::checkout;
use crate::scheduler::queueing::silence;
use crate::statements::ahead;
use reactor::Net;
use session::send_mode::Prefix;
use session::statement::{Code, Statement};
use std::time::Duration;
use wire::command::Command;

/// Refuses a statement that a rule is against, and counts one that a rule limits. `None`: it
/// goes on.
pub(crate) fn keep_rules<N: Net>(
    parts: &mut Parts<N>,
    key: ClientId,
    digest: u64,
) -> Option<Handled> {
    let client = parts.clients.get_mut(key)?;
    match admit(&parts.known.rules, digest, parts.net.now()) {
        Ok(slot) => {
            client.session.effects.set_slot(slot);
            None
        }
        Err(refusal) => {
            client.session.statement.digest = digest;
            Some(parts.answers().refuse_counted(key, &refusal))
        }
    }
}

/// Runs a command on the client's backend, on another one, or later.
pub(crate) fn start<N: Net>(
    parts: &mut Parts<N>,
    key: ClientId,
    message: &[u8],
    statement: Statement,
) -> Handled {
    let now = parts.net.now();
    let silent_for = (parts.shared.upstream).silent_for(now, parts.settings.server_down_fail);
    let Some(client) = parts.clients.get_mut(key) else {
        return Handled::Used;
    };
    if client.ended.take_interruption() {
        client.session.last.lose_conditions();
        parts.answers().refuse(key, &Refusal::Interrupted);
        return Handled::Used;
    }
    client.session.statement = statement;
    if parts.shared.cluster.is_some()
        && !statement.place.is_elsewhere()
        && let Some(handled) = routing::leave_for_writer(parts, key)
    {
        return handled;
    }
    let Some(client) = parts.clients.get_mut(key) else {
        return Handled::Used;
    };
    let pool = &parts.backend_pools.pools[client.pool as usize];
    let on_reader = pool.home.is_some();
    if let Some(backend) = client.backend() {
        if let Some(lasted) = silent_for.filter(|_| !on_reader) {
            client.session.pins.forget_plan();
            parts.answers().refuse_counted(key, &silence(lasted));
            return Handled::Used;
        }
        if parts.matching().waits_for_read_back(key) {
            return parts.waiters().wait_outside(key);
        }
        if parts.matching().waits_with_backend(key) {
            return checkout::wait_in_queue(parts, key, message.len());
        }
        return begin(parts, key, backend, message);
    }
    if parts.work.drain.is_ending() {
        leaving::refuse_and_leave(parts, key, &Refusal::Draining);
        return Handled::Used;
    }
    if let Some(backend) = checkout::acquire(parts, key) {
        return begin(parts, key, backend, message);
    }
    if (on_reader || !parts.shared.upstream.is_silent())
        && let Some(backend) = parts.matching().place_to_pipeline(key, message)
        && !parts.matching().is_ahead()
    {
        send_statement(parts, key, backend, message, &Prefix::CannotFail);
        return Handled::Used;
    }
    checkout::wait_in_queue(parts, key, message.len())
}

/// Sends a command to the client's backend, once that stands in the client's session state.
pub(crate) fn begin<N: Net>(
    parts: &mut Parts<N>,
    key: ClientId,
    backend_id: BackendId,
    message: &[u8],
) -> Handled {
    let (Some(client), Some(backend)) = (
        parts.clients.get_mut(key),
        parts.backends.get_mut(backend_id),
    ) else {
        return Handled::Used;
    };
    if client.will_keep()
        && let Some(refusal) = backend.keep(&parts.backend_pools, false)
    {
        client.session.pins.forget_plan();
        parts.work.tasks.add(Task::Settle(backend_id));
        return parts.answers().refuse_counted(key, &refusal);
    }
    let has_prepared = client.session.prepared.is_some();
    let facts = (&parts.known.defaults, &parts.shared.server);
    if !client.session.fits_at_once(&backend.session)
        && let Some(unfit) = (client.session).unfit_session(&backend.session, key, facts)
        && let Some(handled) =
            session_reset::reset_session(parts, (key, backend_id), unfit, message.len())
    {
        return handled;
    }
    if has_prepared && let Some(handled) = ahead::prepare_ahead(parts, key, backend_id, message) {
        return handled;
    }
    let mut out = std::mem::take(&mut parts.work.lent.out);
    out.clear();
    if parts.shared.cluster.is_some() {
        parts.readers().put_catch_up(key, backend_id, &mut out);
    }
    let text_here_max = parts.shared.lengths.text_here;
    let pair = parts.pair(key, backend_id);
    let prefix = pair.map(|mut pair| pair.checkout(message, text_here_max, &mut out));
    let result = match prefix {
        None => Handled::Used,
        Some(Prefix::Waited) => ahead::send_restore(parts, key, backend_id, &out),
        Some(prefix) => {
            parts.backend_writer().send(backend_id, &out);
            send_statement(parts, key, backend_id, message, &prefix);
            Handled::Used
        }
    };
    parts.work.lent.out = out;
    result
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
                && let Some(prepared) = pair.client.prepared.as_mut()
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
    let under_way = client.session.prepared.under_way();
    if let Some(made) = under_way.filter(|it| it.command == Command::StmtPrepare) {
        client.identity.statements_made = made.id;
    }
    Some((waited, under_way.is_some()))
}
