//! COM_RESET_CONNECTION and COM_CHANGE_USER.
//!
//! The problem: both end a session on a connection that stands. A server has given everything of it
//! back (locks, temporary tables, an open transaction) before it says its next word, which other
//! clients can notice; closing the backend would give it back some time later. The mechanism: where
//! a backend may hold something, the server itself is sent COM_RESET_CONNECTION first (purpose
//! *GiveBack*), and the client's command waits in its input; then it is handled as on a connection
//! that holds nothing. The backend is closed, since it stands in the state of its login, which
//! nobody has read back.
//!
//! A change of user that fails ends the connection on MySQL (seen on 9.7). MariaDB (seen on 10.11)
//! goes back to the user and the schema before, in a session that is as new, three times; from then
//! on it knows no such command. It says so after a second, which slows down guessing; so does the
//! pool (`auth_delay.rs`), with no thread that waits.
//!
//! Invariant: when a client hears the first word after one of these commands, the server holds
//! nothing of its old session any more.

use crate::auth::auth_delay::After;
use crate::auth::denial::CHANGE_DELAY;
use crate::auth::failed_logins::Denial;
use crate::auth::login::{Before, Login, Nonces};
use crate::auth::logins::nonce;
use crate::auth::{denial, logins};
use crate::backend::relay::PendingChanges;
use crate::backend::{ForBackend, ForSession, InFlight};
use crate::client::{ClientState, Handled, leaving};
use crate::errors::reasons::{PinReason, Refusal};
use crate::group::parts::Parts;
use crate::group::tokens::ClientId;
use crate::scheduler::checkout;
use crate::server::facts::ServerFacts;
use crate::statements::own_ok::OwnOk;
use reactor::Net;
use session::pins::Pins;
use session::read_back::{Properties, Question, question};
use session::roles::has_roles;
use session::state::Session;
use wire::attributes::put_query;
use wire::capabilities::IGNORE_SPACE;
use wire::command::{Command, ReplyShape, put_command};
use wire::errors::UNKNOWN_COM;
use wire::handshake::{ChangeUser, nonce_of_connection};

/// Changes of user that MariaDB lets fail on one connection.
const CHANGES_FAILED_MAX: u8 = 3;

/// Sets the mode of the login's capability, as a reset does on MySQL (seen on 9.7), not on MariaDB
/// (10.11).
fn begin_spaced(session: &mut Session, capabilities: u32, server: &ServerFacts) {
    if server.flavour.is_mysql() && capabilities & IGNORE_SPACE != 0 {
        session.ignore_space(&server.sql_mode);
    }
}

/// COM_RESET_CONNECTION: only the default schema and the role stay.
pub(crate) fn on_reset<N: Net>(parts: &mut Parts<N>, key: ClientId) -> Handled {
    if let Some(handled) = give_all_back(parts, key) {
        return handled;
    }
    discard_session(parts, key);
    if let Some(client) = parts.clients.get_mut(key) {
        let (charsets, results) = parts
            .shared
            .server
            .charsets_after_reset(client.identity.collation);
        let mut session = (client.session.state).after_reset(charsets, &parts.known.defaults);
        session.results_collation = results;
        // A reset keeps a session interactive on MySQL (seen on 9.7), not on MariaDB (10.11).
        if parts.shared.server.flavour.is_mysql() {
            session.begin_interactive(client.capabilities);
        }
        begin_spaced(&mut session, client.capabilities, &parts.shared.server);
        client.session.state = parts.known.sessions.intern(session);
    }
    parts.answers().ok(key, &OwnOk::PLAIN);
    Handled::Used
}

/// COM_CHANGE_USER: leaves what the session had and proves another name.
pub(crate) fn on_change_user<N: Net>(
    parts: &mut Parts<N>,
    key: ClientId,
    arguments: &[u8],
) -> Handled {
    let change = match ChangeUser::read(arguments) {
        Ok(change) => change,
        Err(error) => {
            leaving::refuse_and_leave(parts, key, &Refusal::Malformed(error.to_string()));
            return Handled::Used;
        }
    };
    if let Some(handled) = give_all_back(parts, key) {
        return handled;
    }
    discard_session(parts, key);
    let (fresh, nonce_key) = (nonce(&mut parts.net), parts.client_side.nonce_key);
    let denial = parts.shared.server.refuses_charset(change.collation);
    let Some(client) = parts.clients.get_mut(key) else {
        return Handled::Used;
    };
    let server = &parts.shared.server;
    let multi = client.session.state.multi_statements;
    let (charsets, results) = server.usual_charsets();
    let mut session = (client.session.state).after_reset(charsets, &parts.known.defaults);
    session.results_collation = results;
    let before = parts.known.sessions.intern(session);
    if client.identity.changes_failed >= CHANGES_FAILED_MAX {
        client.session.state = before;
        let denial = Denial {
            error: UNKNOWN_COM,
            text: "Unknown command".into(),
            delay: CHANGE_DELAY,
            reason: "too-many-changes",
        };
        denial::hold_back(parts, key, After::NextCommand, &denial);
        return Handled::Used;
    }
    // One that the server refuses, or does not know, leaves the one of before, to which a reset
    // goes back (seen on MariaDB 10.11).
    let known = |id: &u16| server.charsets.contains_key(id);
    if let Some(collation) = change.collation.filter(known) {
        client.identity.collation = collation;
    }
    let (charsets, results) = match change.collation {
        Some(collation) => server.charsets_at_login(collation),
        None => server.usual_charsets(),
    };
    let mut session = Session::at_login(change.schema, multi, charsets, &parts.known.defaults);
    session.results_collation = results;
    session.begin_interactive(client.capabilities);
    begin_spaced(&mut session, client.capabilities, server);
    client.session.state = parts.known.sessions.intern(session);
    let greeted = nonce_of_connection(&nonce_key, client.identity.id());
    let mut login = Login::new(fresh, client.transport.is_secure());
    login.is_tls = client.transport.is_tls();
    login.call(change.user);
    login.before = Some(Before {
        session: before,
        pool: client.pool,
        user: client.identity.user(),
    });
    client.login = Some(Box::new(login));
    client.identity.begin_change_of_user();
    let seq = client.identity.seq;
    let host = logins::host_of(&client.transport, &parts.net, server);
    if let Some(denial) = denial {
        denial::not_let_in(parts, key, &denial);
        return Handled::Used;
    }
    logins::exchange(parts, key, |login, login_context| {
        login.change(
            login_context,
            (change.user, &host),
            change.plugin,
            Nonces { greeted, fresh },
            seq,
        )
    });
    Handled::Used
}

/// Releases at the server what a client's backend may hold of its; the command that needs it is
/// looked at again then. `None` when there is nothing.
fn give_all_back<N: Net>(parts: &mut Parts<N>, key: ClientId) -> Option<Handled> {
    let now = parts.net.now();
    let client = parts.clients.get_mut(key)?;
    let backend_id = client.backend()?;
    let backend = parts.backends.get_mut(backend_id)?;
    let keeps = client.session.is_held()
        || backend.session.in_transaction()
        || client.session.last.pending.failed;
    let keeps = keeps || (client.session.last.pending.changed).intersects(Properties::ROLE);
    if !keeps {
        return None;
    }
    if backend.reuse.is_frozen() {
        return Some(parts.waiters().wait_outside(key));
    }
    if !client.change_state(ClientState::Restoring, now) {
        parts.clients.close_later(key);
        return Some(Handled::Used);
    }
    let command = Command::ResetConnection;
    let mut out = Vec::new();
    let unread = client.session.pins.is_pinned()
        && !client.session.pins.is_pinned_for(PinReason::WideCharset);
    let pending = (client.session.last.pending.changed).intersects(Properties::ROLE);
    if (pending || unread) && has_roles(parts.shared.server.flavour) {
        let role = Question {
            properties: Properties::ROLE,
            ..Question::default()
        };
        let purpose = ForSession::ReadBack(role.asked());
        (backend.flight).expect(InFlight::own(Some(key), purpose, ReplyShape::Results));
        put_query(&mut out, backend.form(), &question(&role));
    }
    let command_in_flight = InFlight::own(Some(key), ForBackend::GiveBack, command.reply());
    backend.flight.expect(command_in_flight);
    put_command(&mut out, command, b"");
    parts.backend_writer().ask(backend_id, &out);
    Some(Handled::Kept)
}

/// Gives up everything the session had, but FOUND_ROWS(), which servers keep too: a backend
/// that may hold something of it is closed.
fn discard_session<N: Net>(parts: &mut Parts<N>, key: ClientId) {
    if parts.shared.server.flavour.is_mysql() {
        let all = parts.backends.values_mut();
        for backend in all.filter(|backend| backend.session.has_types_of(key)) {
            backend.session.invalidate_types();
        }
    }
    let Some((client, backend_id)) = parts.clients.unbind(key, &mut parts.backends) else {
        return;
    };
    let modified = client.session.modified.take().is_some() || client.session.is_unread();
    let pinned = client.session.is_held() || modified;
    client.session.pins = Pins::default();
    client.ended.take_interruption();
    client.ended.take_lost_transaction();
    client.command.allow_pipelining();
    *client.session.prepared = None;
    client.session.last.start_over();
    client.session.pending_changes = PendingChanges::default();
    client.place.priority = None;
    parts.client_side.gtids.remove(&key);
    parts.server_side.reads.start_over(key);
    if let Some(backend_id) = backend_id {
        checkout::orphan(parts, key, backend_id, pinned);
    }
}
