//! Session reset: a backend forgets user variables that a client must not find there.
//!
//! The problem: a user variable that was never set is not the same as one that is NULL. MySQL types
//! it by its place, and MariaDB takes it for a constant: `SELECT @n := IFNULL(@n, 0) + 1 FROM t`
//! gives 1 in each row. No statement takes a variable away; what one client has set stays on its
//! backend, NULL at best. The mechanism: a backend notes that a variable was taken out of its
//! session as a value ([`crate::backend::Backend::leftovers`]). A statement that names any which
//! its client has never set ([`crate::pair::unset`]) goes to a backend that has no other variables
//! than its client, if one is idle. Else the backend is reset before it:
//! COM_RESET_CONNECTION, that takes all of them away, the trackers, and what the session is like,
//! in one write. That is waited for, since a session begins with the global values of that moment;
//! then the client's own session is restored as on any other backend. Where `init_connect` says
//! what a session begins with, a reset does not run it: such a backend is replaced. So it is where
//! a reset session lacks what a fresh one has (`ServerFacts::reset_loses_foreign_keys`): the client
//! waits for a backend that suits, or a new connection. A backend that has been reset there serves
//! only clients that have reset their own session.
//!
//! Backends are reset on MySQL, too, for a client that has reset its connection. A reset leaves the
//! server's character set in place of the schema's, and MySQL (seen on 9.7) lets none but
//! administrators set that (error 1227). A reset of the backend in the client's schema sets it for
//! everybody.
//!
//! A client that holds its backend (a transaction, a pin) cannot leave it, nor can that be reset:
//! there an unset variable is the NULL that is most like one (`session/state/written.rs`).
//!
//! Invariants: a backend without leftovers has no user variables but those of its session and of
//! the statements that are not read back; what was prepared on it is forgotten with the rest.

use crate::backend::dial::{ROLE, put_preparation};
use crate::backend::openings::{FreshSession, NO_WITNESS, lacks_witness};
use crate::backend::{ForBackend, ForSession, InFlight, losses};
use crate::client::{ClientState, Handled};
use crate::group::parts::Parts;
use crate::group::tasks::Task;
use crate::group::tokens::{BackendId, ClientId};
use crate::pair::unset::Unfit;
use crate::scheduler::checkout;
use crate::server::fleet::witness_questions;
use reactor::Net;
use session::last_statement::LEFT_BY_STATEMENT;
use session::reply_summary::ReplySummary;
use session::roles::has_roles;
use session::send_mode::SendMode;
use session::state::Session;
use session::user_variables::results_collation;
use wire::command::{Command, ReplyShape, put_command};

/// Resets the session of a client's backend, because its command, of `len` bytes, needs that
/// ([`crate::client::ClientSession::unfit_session`]), or gives the backend up where no reset would
/// help; `None` where the client holds its backend.
pub(crate) fn reset_session<N: Net>(
    parts: &mut Parts<N>,
    (key, backend_id): (ClientId, BackendId),
    unfit: Unfit,
    len: usize,
) -> Option<Handled> {
    let (client, backend) = (
        parts.clients.get_mut(key)?,
        parts.backends.get_mut(backend_id)?,
    );
    if client.session.is_held() || backend.session.in_transaction() {
        return None;
    }
    let has_schema = unfit == Unfit::HasSchema;
    if !has_schema && !parts.known.defaults.init_connect().is_empty() {
        return None;
    }
    if backend.has_served() && !backend.flight.is_empty() {
        // What is being read back is the session's that is there.
        return Some(parts.waiters().wait_outside(key));
    }
    let may_be_reset =
        (client.session).may_be_reset_for(&parts.known.defaults, &parts.shared.server);
    if has_schema || !may_be_reset {
        parts.clients.unbind(key, &mut parts.backends);
        parts.closer().retire(backend_id);
        return Some(checkout::wait_in_queue(parts, key, len));
    }
    let now = parts.net.now();
    let flavour = parts.shared.server.flavour;
    let unknown = (parts.known.sessions).intern(Session::not_known(&parts.known.defaults));
    if !client.change_state(ClientState::Restoring, now) {
        parts.clients.close_later(key);
        return Some(Handled::Used);
    }
    let before = std::mem::replace(&mut backend.session.state, unknown);
    let mut kept = (*backend.session.state).clone();
    // Schema and role outlive a reset. The client's are set in front of it: a schema that is
    // set behind it brings its own character set. A command that sets another one needs none.
    let mut moved = (*before).clone();
    moved.role.clone_from(&client.session.state.role);
    let needs_schema = client.session.statement.send_mode != SendMode::NewSchema;
    if needs_schema && client.session.state.schema.is_some() {
        moved.use_schema(client.session.state.schema.clone());
    }
    let mut out = Vec::new();
    for _ in
        0..(backend.session).put_session(&mut out, backend.on(flavour), (&before, &moved), None)
    {
        let purpose = ForSession::Restore(false);
        (backend.flight).expect(InFlight::own(Some(key), purpose, ReplyShape::Status));
    }
    kept.schema = moved.schema;
    kept.role = moved.role;
    kept.multi_statements = before.multi_statements;
    backend.session.state = parts.known.sessions.intern(kept);
    backend.session.note_role(&mut backend.reuse);
    client.session.last.invalidate(LEFT_BY_STATEMENT);
    backend.flight.close_pipeline();
    backend.session.note_reset();
    let shapes = [ReplyShape::Status, ReplyShape::Results, ReplyShape::Results];
    for (i, shape) in shapes.into_iter().enumerate() {
        let purpose = ForBackend::ResetSession(i + 1 == shapes.len());
        let command = InFlight::own(Some(key), purpose, shape);
        backend.flight.expect(command);
    }
    put_command(&mut out, Command::ResetConnection, b"");
    let mut more = witness_questions(backend.units());
    more.push_str(if has_roles(flavour) { ROLE } else { "" });
    put_preparation(&mut out, backend.form(), &more);
    parts.observed.counts.resets += 1;
    parts.backend_writer().ask(backend_id, &out);
    Some(Handled::Kept)
}

/// Handles the answer of a backend whose session is reset; `last`: with what that is like.
pub(crate) fn session_was_reset<N: Net>(
    parts: &mut Parts<N>,
    backend_id: BackendId,
    (owner, last): (Option<ClientId>, bool),
    summary: &ReplySummary,
    collected: &[u8],
) {
    let now = parts.net.now();
    if let Some((code, text)) = &summary.error {
        let why = format!("the server did not let a session start over: {code} {text}");
        return losses::lose(parts, backend_id, &why);
    }
    if !last {
        return;
    }
    let fresh = FreshSession::read(collected);
    let (Some((fresh, more)), Some(backend)) = (fresh, parts.backends.get_mut(backend_id)) else {
        return losses::lose(
            parts,
            backend_id,
            "the server did not say what its session is like",
        );
    };
    if lacks_witness(&more, backend.units().len()) {
        // The reset has released them, and another pool was faster.
        return losses::lose(parts, backend_id, NO_WITNESS);
    }
    let account = &parts.backend_pools.pools[backend.pool].key;
    let stands = backend.session.state.defaults == parts.known.defaults;
    let kept = backend.session.state.clone();
    let mut session = kept.after_reset(&fresh.charsets, &parts.known.defaults);
    fresh.note_autocommit(&mut session);
    // A reset keeps a session interactive on MySQL (seen on 9.7), not on MariaDB (10.11).
    if parts.shared.server.flavour.is_mysql() {
        session.begin_interactive(account.capabilities);
    }
    let results = results_collation(collected, account.extended, &session);
    session.results_collation = parts.shared.server.results_in(results);
    backend.session.state = parts.known.sessions.intern(session);
    backend.session.note_accepted(None);
    let Some(owner) = owner.filter(|owner| parts.clients.get(*owner).is_some()) else {
        return parts.closer().retire(backend_id);
    };
    if !parts.clients.enter(owner, ClientState::Idle, now) {
        return;
    }
    if !stands {
        // It may have begun under either.
        parts.clients.unbind(owner, &mut parts.backends);
        parts.closer().retire(backend_id);
    }
    parts.work.tasks.add(Task::Read(owner));
    parts.work.tasks.add(Task::Settle(backend_id));
}
