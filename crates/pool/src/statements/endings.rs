//! Endings: a statement's reply is complete; what has it left, and whose is the backend now?
//!
//! Changes that the trackers reported become part of the session that client and backend share.
//! Others are read back before the backend may serve somebody else; then it is kept (transaction,
//! pin) or released to the next in the queue. [`crate::pair::next`] decides it, and
//! [`crate::statements::endings::settle`] does it.
//!
//! Invariant: a backend is released only where [`Checkin::Free`] says so, or its client has gone
//! and left nothing there.

use crate::backend::pools::BackendPools;
use crate::backend::{Backend, InFlight, Reports, abandoned, abort, losses};
use crate::client::{Client, ClientState};
use crate::group::parts::Parts;
use crate::group::tasks::Task;
use crate::group::tokens::{BackendId, ClientId};
use crate::pair::next::Checkin;
use crate::pair::prepared::put_closes;
use crate::scheduler::checkout;
use crate::server::redefinition;
use reactor::Net;
use session::last_gtid::may_have_written;
use session::own_writes::OwnWrites;
use session::reply_summary::ReplySummary;
use session::statement::Statement;
use wire::errors::refuses_writes;

/// Resumes a client that has waited for its own backend, and keeps it.
pub(crate) fn resume<N: Net>(parts: &mut Parts<N>, backend_id: BackendId) {
    let backend = parts.backends.get(backend_id);
    if let Some(backend) = backend.filter(|backend| backend.flight.is_empty())
        && let Some(owner) = backend.client()
        && let Some(client) = backend.client_in(&parts.clients)
        && client.state() == ClientState::Waiting
        && !client.place.is_in_queue()
    {
        parts.return_to_idle(owner);
    }
}

/// State of a backend at the end of a client's statement.
pub(crate) struct Done {
    /// The client, if it is still there, and what it has run.
    served: Option<Served>,
    /// True if the statement has changed the session.
    dirty: bool,
    /// True if nothing is in flight behind it.
    alone: bool,
    /// True if it may have prepared or closed something.
    prepares: bool,
}

/// A client whose statement has been answered.
#[derive(Clone, Copy)]
struct Served {
    owner: ClientId,
    pool: usize,
    /// Place of its figures.
    place: u16,
    statement: Statement,
}

/// Notes the end of a statement of this client with its backend, which goes to the next in flight.
pub(crate) fn note_done<S>(
    backend: &mut Backend<S>,
    client: Option<&Client<S>>,
    pools: &BackendPools,
    command: &InFlight,
    summary: &ReplySummary,
) -> Done {
    backend.note_served();
    let statement = client.map(|client| &client.session.statement);
    (backend.session).note_savepoint(statement, summary.error.is_none());
    let has_prepared = client.is_some_and(|client| client.session.prepared.is_some());
    // What a client that keeps the backend has left there is no change by a reply of nobody.
    let dirty = match backend.client() {
        Some(_) if command.owner.is_none() => !summary.changes.is_empty(),
        _ => backend.session.has_changed(summary),
    };
    backend.pass_on();
    Done {
        served: command.owner.zip(client).map(|(owner, client)| Served {
            owner,
            pool: client.pool as usize,
            place: client.figures_place(pools),
            statement: client.session.statement,
        }),
        dirty,
        alone: backend.flight.is_empty(),
        prepares: has_prepared || backend.session.prepared.preparing.is_some(),
    }
}

/// Handles the end of a client's statement, answered to its last byte.
pub(crate) fn statement_done<N: Net>(
    parts: &mut Parts<N>,
    backend_id: BackendId,
    command: &InFlight,
    summary: &ReplySummary,
    done: Done,
) {
    parts.observed.counts.statements += 1;
    let (dirty, alone) = (done.dirty, done.alone);
    let ending = command.ending(summary, dirty, parts.net.now());
    parts.known.digests.learn(command.session_digest, ending);
    if done.prepares {
        note_prepared(parts, backend_id, command, summary);
    }
    let Some(served) = done.served else {
        return statement_of_nobody(parts, backend_id, summary, dirty);
    };
    note_service(parts, served, backend_id, command, summary);
    let owner = served.owner;
    if !alone && dirty {
        abort::abort_followers(parts, backend_id, Some(owner));
    }
    let Some(mut pair) = parts.pair(owner, backend_id) else {
        return;
    };
    let explanation = pair.client.explanation().with_due(summary.due);
    let noted = pair.note_statement(summary, explanation);
    if let Some(open) = pair.backend.see_transaction(command.sent) {
        open.statements = open.statements.saturating_add(1);
    }
    if let Err(why) = noted {
        // The client has had its answer, and its session is on the backend alone: it is closed
        // without another word.
        let now = pair.context.now;
        let _ = parts.clients.enter(owner, ClientState::Idle, now);
        parts.clients.close_later(owner);
        return losses::lose(parts, backend_id, why);
    }
    pair.note_left(command, summary, alone);
    if !alone && !dirty {
        // Others rode behind: the backend is theirs, and the words of a warning are gone.
        pair.client.last.leave_to_followers();
        parts.clients.unbind(owner, &mut parts.backends);
    }
    let now = parts.net.now();
    if !parts.clients.enter(owner, ClientState::Idle, now) {
        return;
    }
    // What it sends next may be here already.
    if parts.shared.watched.schemas_defined.count() != parts.known.schemas_seen {
        redefinition::take_schemas(parts);
    }
    settle(parts, backend_id);
    if !parts.client_side.waiting_count.is_empty() {
        parts.work.tasks.add(Task::Pipeline(backend_id));
    }
    parts.work.tasks.add(Task::Read(owner));
}

/// Notes what a statement has done to the backend's prepared statements.
fn note_prepared<N: Net>(
    parts: &mut Parts<N>,
    backend_id: BackendId,
    command: &InFlight,
    summary: &ReplySummary,
) {
    let Some(backend) = parts.backends.get_mut(backend_id) else {
        return;
    };
    let (preparing, mut closed) = backend
        .session
        .take_prepared(summary, &mut parts.known.definitions)
        .unzip();
    let pair = (command.owner).and_then(|owner| parts.pair(owner, backend_id));
    let left = pair.and_then(|mut pair| pair.note_prepared(preparing, summary));
    closed.get_or_insert_default().extend(left);
    if let Some(ids) = closed.filter(|ids| !ids.is_empty()) {
        let mut out = Vec::new();
        put_closes(&mut out, &ids);
        parts.backend_writer().send(backend_id, &out);
    }
}

/// Measures how long a statement of a client took, and counts how it ended.
fn note_service<N: Net>(
    parts: &mut Parts<N>,
    served: Served,
    backend: BackendId,
    command: &InFlight,
    summary: &ReplySummary,
) {
    let (owner, pool, statement) = (served.owner, served.pool, &served.statement);
    let service = parts.net.now().since(command.sent);
    let failed = summary.error.is_some();
    parts
        .observed
        .figures
        .answered(served.place, service, failed);
    let rows = command.reply.reply().rows();
    let digest = statement.digest;
    (parts.observed.figures.digests).answered(digest, service, failed, rows);
    (parts.client_side.slow_readers).statement_ended(backend, digest, owner);
    if let Some((number, words)) = &summary.error {
        parts.shared.records.errors.count(*number);
        if let Some(cluster) = &parts.shared.cluster
            && !parts.backend_pools.is_reader(pool)
        {
            cluster.failed_on_writer(*number, words);
        }
        if refuses_writes(*number) {
            if !parts.backend_pools.is_reader(pool) {
                parts.shared.doubt_writer();
            }
        } else if may_have_written(statement, *number) {
            parts.readers().doubt_writes(owner, OwnWrites::doubt);
        }
    }
    (parts.shared).count_read(&parts.backend_pools.pools[pool].key, false);
    if parts.observed.statement_logs.has_notes() {
        parts.logs().ended(owner, command, service, summary);
    }
}

/// Checks in, or closes, the backend of a statement whose client left while it ran.
fn statement_of_nobody<N: Net>(
    parts: &mut Parts<N>,
    backend_id: BackendId,
    summary: &ReplySummary,
    dirty: bool,
) {
    let Some(backend) = parts.backends.get_mut(backend_id) else {
        return;
    };
    if dirty {
        abort::abort_followers(parts, backend_id, None);
        return parts.closer().retire(backend_id);
    }
    if !backend.flight.is_empty() {
        return parts.work.tasks.add(Task::Pipeline(backend_id));
    }
    if backend.client_in(&parts.clients).is_some() {
        return parts.work.tasks.add(Task::Settle(backend_id));
    }
    let unknown = summary.error.is_some() || summary.warned || !summary.changes.is_empty();
    let due = backend.session.reports != Reports::Complete;
    if unknown || due || backend.session.in_transaction() {
        return parts.closer().retire(backend_id);
    }
    backend.session.forget_insert_id();
    checkout::release(parts, backend_id);
}

/// Decides what becomes of the backend, if nothing is in flight.
pub(crate) fn settle<N: Net>(parts: &mut Parts<N>, backend: BackendId) {
    let owner = parts.backends.get(backend).and_then(Backend::client);
    if let Some(owner) = owner
        && let Some(mut pair) = parts.pair(owner, backend)
    {
        let next = pair.checkin();
        follow(parts, owner, backend, next);
    }
}

/// Takes the next step with a client's backend.
pub(crate) fn follow<N: Net>(
    parts: &mut Parts<N>,
    owner: ClientId,
    backend: BackendId,
    next: Checkin,
) {
    match next {
        Checkin::Wait => {}
        Checkin::Keep => {
            let kept = parts.backends.get_mut(backend);
            match kept.and_then(|kept| kept.keep(&parts.backend_pools, true)) {
                None => resume(parts, backend),
                // Its text did not tell that it would keep the backend.
                Some(refusal) => abandoned::part_with_backend(parts, backend, owner, &refusal),
            }
        }
        Checkin::Ask(out) => parts.backend_writer().ask(backend, &out),
        Checkin::GoOn => {
            // What was read back for the sake of its execution is there.
            let client = parts.clients.get_mut(owner);
            if client.is_some_and(|client| client.session.prepared.mark_read_back(false)) {
                parts.return_to_idle(owner);
            }
            parts.work.tasks.add(Task::Settle(backend));
        }
        Checkin::Free => checkout::release(parts, backend),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{BackendState, Purpose};
    use crate::errors::reasons::PinReason;
    use crate::group::Group;
    use crate::group::scripted::Scripted;
    use crate::group::tests::{NOW, bound, group};
    use wire::command::ReplyShape;

    /// A pinned client between two statements. In front of what it sends next, two replies are to
    /// come that nobody waits for: who rode behind its last statement runs again elsewhere.
    fn pinned_behind_replies_of_nobody() -> (Group<Scripted>, ClientId, BackendId) {
        let mut group = group();
        let (key, backend_id) = bound(&mut group);
        let client = group.parts.clients.get_mut(key).unwrap();
        (client.session.pins).add(PinReason::PreparedSchema, None, NOW.0);
        let backend = group.parts.backends.get_mut(backend_id).unwrap();
        for _ in 0..2 {
            let command = InFlight::own(None, Purpose::Statement, ReplyShape::Results);
            backend.flight.expect(command);
        }
        backend.flight.note_left(NOW);
        (group, key, backend_id)
    }

    /// Takes the oldest reply of a backend as complete.
    fn answered(group: &mut Group<Scripted>, backend_id: BackendId, summary: &ReplySummary) {
        let parts = &mut group.parts;
        let backend = parts.backends.get_mut(backend_id).unwrap();
        let command = backend.flight.take_answered().unwrap();
        let client = command.owner.and_then(|owner| parts.clients.get(owner));
        let done = note_done(backend, client, &parts.backend_pools, &command, summary);
        statement_done(parts, backend_id, &command, summary, done);
    }

    #[test]
    fn a_backend_stays_its_clients_behind_replies_of_nobody() {
        let (mut group, key, backend_id) = pinned_behind_replies_of_nobody();
        for _ in 0..2 {
            answered(&mut group, backend_id, &ReplySummary::default());
            let backend = group.parts.backends.get(backend_id).unwrap();
            assert_eq!(backend.client(), Some(key));
            assert_eq!(backend.state(), BackendState::CheckedOut);
            assert_eq!(
                group.parts.clients.get(key).unwrap().backend(),
                Some(backend_id)
            );
        }
    }

    #[test]
    fn who_keeps_a_session_that_a_reply_of_nobody_has_changed_is_closed() {
        // The first of the replies, and the last.
        for before in [0, 1] {
            let (mut group, key, backend) = pinned_behind_replies_of_nobody();
            for _ in 0..before {
                answered(&mut group, backend, &ReplySummary::default());
            }
            let changed = ReplySummary {
                changes: vec![0, 1, 0],
                ..ReplySummary::default()
            };
            answered(&mut group, backend, &changed);
            assert!(group.parts.backends.get(backend).is_none());
            assert!(
                group
                    .parts
                    .clients
                    .get(key)
                    .is_none_or(|client| client.ended.is_closing())
            );
        }
    }

    #[test]
    fn who_keeps_nothing_goes_on_without_a_backend_that_a_reply_of_nobody_has_changed() {
        let (mut group, key, backend) = pinned_behind_replies_of_nobody();
        group.parts.clients.get_mut(key).unwrap().session.pins = Default::default();
        abort::abort_followers(&mut group.parts, backend, None);
        group.parts.closer().retire(backend);
        let client = group.parts.clients.get(key).unwrap();
        assert_eq!((client.ended.is_closing(), client.backend()), (false, None));
    }

    #[test]
    fn a_backend_where_followers_were_aborted_serves_its_client_and_nobody_else() {
        let (mut group, key, backend) = pinned_behind_replies_of_nobody();
        abort::abort_followers(&mut group.parts, backend, Some(key));
        let reuse = group.parts.backends.get(backend).unwrap().reuse;
        assert!(!reuse.is_for_others() && !reuse.is_frozen());
    }

    #[test]
    fn conditions_of_a_reply_of_nobody_are_no_clients() {
        let (mut group, key, backend_id) = pinned_behind_replies_of_nobody();
        let backend = group.parts.backends.get_mut(backend_id).unwrap();
        let command = backend.flight.take_answered().unwrap();
        let warned = ReplySummary {
            warned: true,
            ..ReplySummary::default()
        };
        (backend.session).note_conditions_left(&command, &warned, None);
        assert!(backend.session.conditions_of.is_some_and(|of| of != key));
    }

    #[test]
    fn the_session_of_who_owns_it_is_lost_with_its_transaction() {
        let (mut group, key, backend_id) = pinned_behind_replies_of_nobody();
        group.parts.clients.get_mut(key).unwrap().session.pins = Default::default();
        let backend = group.parts.backends.get_mut(backend_id).unwrap();
        backend.session.transaction.note_begin_sent();
        let client = group.parts.clients.get_mut(key).unwrap();
        assert!(client.change_state(ClientState::Running, NOW));
        let statement = InFlight::own(Some(key), Purpose::Statement, ReplyShape::Results);
        group
            .parts
            .backends
            .get_mut(backend_id)
            .unwrap()
            .flight
            .expect(statement);
        abort::abort_followers(&mut group.parts, backend_id, None);
        let client = group.parts.clients.get(key);
        assert!(client.is_none_or(|client| client.state() == ClientState::Leaving));
    }

    #[test]
    fn whose_session_nobody_knows_behind_its_answer_is_closed_without_another_word() {
        let mut group = group();
        let (key, backend) = bound(&mut group);
        let client = group.parts.clients.get_mut(key).unwrap();
        assert!(client.change_state(ClientState::Running, NOW));
        let command = InFlight::own(Some(key), Purpose::Statement, ReplyShape::Status);
        let cut_short = ReplySummary {
            changes: vec![0, 9],
            ..ReplySummary::default()
        };
        let parts = &mut group.parts;
        let on = parts.backends.get_mut(backend).unwrap();
        let client = parts.clients.get(key);
        let done = note_done(on, client, &parts.backend_pools, &command, &cut_short);
        statement_done(parts, backend, &command, &cut_short, done);
        assert!(group.parts.backends.get(backend).is_none());
        assert!(group.parts.clients.get(key).unwrap().ended.is_closing());
        assert_eq!(
            group.parts.net.written, b"\x01\0\0\0\x01",
            "the backend's COM_QUIT"
        );
    }
}
