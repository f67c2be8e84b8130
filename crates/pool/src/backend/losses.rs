//! Losses: a backend that cannot be kept or used any more.
//!
//! [`crate::client::lost_backend`] decides what becomes of a client whose backend is lost.

use crate::auth::denial;
use crate::auth::failed_logins::Denial;
use crate::backend::overdue::{Overdue, TimeLimits};
use crate::backend::pools::DialEnd;
use crate::backend::{
    BackendState, ForSession, InFlight, Purpose, Reports, abandoned, abort, dialling,
};
use crate::client::lost_backend::Loss;
use crate::client::lost_backend::LossCause;
use crate::client::unrestored::RestoreError;
use crate::client::{ClientState, leaving, lost_backend};
use crate::cluster::leaving_readers;
use crate::errors::reasons::Refusal;
use crate::group::parts::Parts;
use crate::group::tasks::Task;
use crate::group::tokens::{BackendId, ClientId};
use crate::observe::log::{Event, note};
use reactor::Net;
use session::own_commands::OWN_COMMANDS_MAX;
use session::own_writes::OwnWrites;
use session::send_mode::Behind;
use sql::sqlstate::state_of;
use std::time::Duration;
use wire::errors::ErrorCode;

/// Ends backends whose time is over.
pub(crate) fn sweep_backends<N: Net>(parts: &mut Parts<N>) {
    let kept = parts.shared.backends_kept(&parts.settings, parts.index);
    for key in parts.backends.keys() {
        let Some(backend) = parts.backends.get(key) else {
            continue;
        };
        let limits = TimeLimits {
            settings: &parts.settings,
            timeouts: &parts.shared.server.timeouts,
            capabilities: parts.backend_pools.pools[backend.pool].key.capabilities,
            has_spare: parts.backend_pools.count > kept,
            now: parts.net.now(),
        };
        let unanswered = || parts.net.unanswered(backend.transport.sock());
        match backend.overdue(key, unanswered, &limits) {
            None => {}
            Some(Overdue::Dial(why)) => dialling::dial_failed(parts, key, &why, DialEnd::Unreached),
            Some(Overdue::Lost(why)) => lose(parts, key, &why),
            Some(Overdue::Unread) => abandoned::abandon(parts, key, None),
            Some(Overdue::Idle) => {
                parts.observed.counts.trimmed += 1;
                parts.closer().retire(key);
            }
        }
    }
}

/// Tells a client that the server would not take its state, in the server's words.
pub(crate) fn restore_failed<N: Net>(
    parts: &mut Parts<N>,
    owner: ClientId,
    backend_id: BackendId,
    behind: Behind,
    (code, text): (u16, &str),
) {
    let backend = parts.backends.get(backend_id);
    let (keeps, served) = backend.map_or((false, false), |b| {
        (b.session.in_transaction(), b.has_served())
    });
    if backend.is_some_and(|backend| backend.is_reader()) && !keeps {
        // The writer may have what it lacks still: a schema, a privilege.
        return leaving_readers::leave_behind(parts, owner, backend_id);
    }
    abort::abort_followers(parts, backend_id, Some(owner));
    parts.closer().retire(backend_id);
    let now = parts.net.now();
    let Some((client, _)) = parts.clients.unbind(owner, &mut parts.backends) else {
        return;
    };
    if client.is_logging_in() {
        if let Some(schema) = &client.session.state.schema {
            parts.known.schemas.forget(client.pool as usize, schema);
        }
        let state = match &state_of(code, parts.shared.server.flavour) {
            b"HY000" => "HY000",
            b"3D000" => "3D000",
            _ => "42000",
        };
        let denial = Denial {
            error: ErrorCode { code, state },
            text: text.into(),
            delay: Duration::ZERO,
            reason: "schema",
        };
        denial::not_let_in(parts, owner, &denial);
        return parts.work.tasks.add(Task::Read(owner));
    }
    let error = RestoreError {
        code,
        text,
        behind,
        keeps,
        served,
    };
    let end = client.unrestored(
        &error,
        now,
        &mut parts.known.sessions,
        &mut parts.known.schemas,
    );
    parts.server_side.epoch += u64::from(end.may_have_run);
    parts.answers().refuse_counted(owner, &end.refusal);
    if end.may_have_run
        && let Some(client) = parts.clients.get_mut(owner)
    {
        client.session.last.lose_conditions();
    }
    match end.leaves {
        true => {
            parts.clients.note_end(owner, end.refusal.name());
            leaving::leave(parts, owner);
        }
        false => parts.work.tasks.add(Task::Read(owner)),
    }
}

/// Closes a backend that is gone, or of no use any more.
pub(crate) fn lose<N: Net>(parts: &mut Parts<N>, backend: BackendId, why: &str) {
    lose_as(parts, backend, why, LossCause::Ended);
}

/// Closes a backend for this cause, and ends or repeats what was in flight on it.
pub(crate) fn lose_as<N: Net>(
    parts: &mut Parts<N>,
    backend_id: BackendId,
    why: &str,
    cause: LossCause,
) {
    let Some(backend) = parts.backends.get(backend_id) else {
        return;
    };
    if matches!(
        backend.state(),
        BackendState::Dialling | BackendState::Preparing
    ) {
        let why = format!("{why} before our login was complete");
        return dialling::dial_failed(parts, backend_id, &why, DialEnd::Unreached);
    }
    parts.observed.counts.backends_lost += 1;
    parts.server_side.epoch += 1;
    let (thread, now, is_reader) = (backend.thread, parts.net.now(), backend.is_reader());
    let in_transaction = backend.session.in_transaction();
    let doubt = backend.session.transaction.doubt();
    let pool = backend.pool;
    let is_statement =
        |command: &InFlight| command.purpose == Purpose::Statement && command.owner.is_some();
    let is_running = backend.flight.iter().any(is_statement);
    if !is_reader || is_running {
        parts.shared.doubt_writer();
    }
    let loss = Loss {
        why,
        in_transaction,
        doubt,
        served: backend.has_served(),
        hides_changes: backend.session.reports.hides_changes(in_transaction),
        amid_packet: !backend.flight.is_at_packet_start(),
        cause,
    };
    let tried =
        |command: &&InFlight| matches!(command.purpose, Purpose::Session(ForSession::Joined(_)));
    let may_run = backend.flight.iter().find(tried).and_then(|c| c.owner);
    let asked = |command: &&InFlight| command.purpose == ForSession::Warnings.into();
    let unread = backend.flight.iter().find(asked).and_then(|c| c.owner);
    let mut owners: Vec<ClientId> = backend.flight.iter().filter_map(|c| c.owner).collect();
    owners.dedup();
    // It is checked out only until something of an earlier client is read back.
    let lent = owners.is_empty() && backend.session.reports == Reports::Complete;
    owners.extend((backend.client()).filter(|backend_id| !owners.contains(backend_id)));
    let mut identity = (owners.first()).and_then(|owner| parts.survey().identity(*owner));
    if let Some(identity) = &mut identity {
        identity.in_transaction = in_transaction;
    }
    (parts.observed.log).backend_lost(now, identity.as_ref(), thread, why);
    if is_reader {
        // Started again it may have less.
        parts.backend_pools.pools[pool].has = OwnWrites::default();
        if is_running {
            (parts.shared).count_read(&parts.backend_pools.pools[pool].key, true);
        }
    }
    if is_reader && !in_transaction {
        return leaving_readers::leave_reader(parts, backend_id, loss);
    }
    if let Some(mut pair) = may_run.and_then(|owner| parts.pair(owner, backend_id)) {
        pair.note_runs();
    }
    parts.closer().retire(backend_id);
    let lent_to = owners.first().filter(|_| lent);
    if let Some(owner) = lent_to.copied()
        && let Some(client) = parts.clients.get(owner)
    {
        let left = client.session.loses_with_backend(loss.in_transaction);
        if client.state() == ClientState::Idle && !left {
            parts.clients.unbind(owner, &mut parts.backends);
            return;
        }
    }
    if let Some(client) = unread.and_then(|owner| parts.clients.get_mut(owner)) {
        client.session.last.lose_conditions();
    }
    for (i, owner) in owners.into_iter().enumerate() {
        // Only the first in flight can have got a part of its reply.
        let amid_packet = loss.amid_packet && i == 0;
        let loss = Loss {
            amid_packet,
            ..loss
        };
        lost_backend::backend_lost(parts, owner, loss);
    }
}

/// Counts an answered command of the pool's own. `false` when it was one too many, and backend
/// and client are closed.
#[must_use]
pub(crate) fn may_go_on<N: Net>(
    parts: &mut Parts<N>,
    backend_id: BackendId,
    bound_to: Option<ClientId>,
    command: &InFlight,
) -> bool {
    let Some(owner) = command.owner.or(bound_to) else {
        return true;
    };
    let Some(client) = parts.clients.get_mut(owner) else {
        return true;
    };
    if client.command.note_own() {
        return true;
    }
    note(
        Event::Bug,
        format_args!(
            "client {} ('{}') and its backend are closed: {OWN_COMMANDS_MAX} commands of the \
         pool's own did not suffice for one statement, the last was '{}'; this is a bug in \
         onramp, please report it with this line",
            client.identity.id(),
            parts.settings.users[client.identity.user()].name,
            reactor::tls_errors::plain(&command.purpose),
        ),
    );
    let waits = matches!(
        client.state(),
        ClientState::Restoring | ClientState::Waiting
    );
    parts.clients.unbind(owner, &mut parts.backends);
    parts.closer().retire(backend_id);
    match waits {
        true => leaving::refuse_and_leave(parts, owner, &Refusal::OwnCommands),
        // Its statement was answered, or a part of the answer has been sent.
        false => parts.clients.close_later(owner),
    }
    false
}
