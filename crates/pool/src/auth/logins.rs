//! Logins, and changes of user: what a client says of itself, and what lets it in.
//!
//! The steps are [`crate::auth::login`]'s, a state machine without a socket. The password is
//! checked here or by a worker, and no login reaches the server. Who has proven its name gets its
//! place in a pool ([`crate::backend::pool_members`]) and is let in once a backend has accepted its
//! default schema. Who has not hears so when its time has come ([`crate::auth::failed_logins`]).
//!
//! Invariant: nothing that a client says before it is let in is taken for a command.

use crate::auth::accounts::LoginContext;
use crate::auth::auth_delay::After;
use crate::auth::denial;
use crate::auth::host_pattern::ClientHost;
use crate::auth::login::{Login, Outcome};
use crate::auth::password_checks::Checked;
use crate::backend::pool_members::{Bar, bar_of, unusable};
use crate::backend::{ForSession, InFlight};
use crate::client::buffers::packing::Compression;
use crate::client::buffers::transport::Transport;
use crate::client::{ClientState, Handled, leaving};
use crate::errors::reasons::Refusal;
use crate::group::parts::Parts;
use crate::group::settings;
use crate::group::tasks::Task;
use crate::group::tokens::{BackendId, ClientId};
use crate::pair::roles::role_after_change;
use crate::scheduler::checkout;
use crate::server::facts::ServerFacts;
use crate::statements::endings;
use reactor::Net;
use session::roles::switch;
use session::state::Session;
use wire::attributes::put_query;
use wire::auth::{NONCE_LEN, Nonce};
use wire::capabilities::{self as cap, BACKEND_KEY};
use wire::command::{Command, ReplyShape, put_command};
use wire::handshake::{self, nonce_from_random};
use wire::packet::HEADER_LEN;
use wire::wrong_protocol::WrongProtocol;

/// Nonce of a greeting, or of a change of user, which a client mixes with its password.
pub(crate) fn nonce(net: &mut impl Net) -> Nonce {
    let mut random = [0; NONCE_LEN];
    net.random(&mut random);
    nonce_from_random(random)
}

/// Opens, on a backend, the schema of a client's login that none has accepted yet.
pub(crate) fn open<N: Net>(parts: &mut Parts<N>, key: ClientId) {
    match checkout::acquire(parts, key) {
        // What follows the login is handled by whoever handles that: read on from here, later
        // bytes would go before it.
        Some(backend) => {
            if open_on(parts, key, backend) {
                endings::settle(parts, backend);
            }
        }
        None => {
            if checkout::wait_in_queue(parts, key, 0) == Handled::Used {
                leaving::leave(parts, key);
            }
        }
    }
}

/// Brings a backend into the state of a client that logs in; that is the check of its schema.
/// `true` when it stands there already: the client is let in, and what it has said behind its
/// login is the caller's to see to.
#[must_use]
pub(crate) fn open_on<N: Net>(parts: &mut Parts<N>, key: ClientId, backend_id: BackendId) -> bool {
    let now = parts.net.now();
    let login = (parts.clients.get(key)).and_then(|client| client.login.as_ref());
    if login.is_some_and(|login| login.begins_late) {
        // By now a backend of its pool has been dialled.
        let _ = parts.members().begins(key);
    }
    let (Some(client), Some(backend)) = (
        parts.clients.get_mut(key),
        parts.backends.get_mut(backend_id),
    ) else {
        return false;
    };
    let mut out = std::mem::take(&mut parts.work.lent.out);
    out.clear();
    let mut from = (*backend.session.state).clone();
    if from.role != client.session.state.role {
        // A schema that is open to the one need not be to the other.
        from.schema = None;
    }
    let (to, sent) = client.session.state.without_schema_as_sent(&from);
    let on = backend.on(parts.shared.server.flavour);
    let mut commands = 0;
    if let Some(sql) = switch(&from, &to, backend.session.login_role()) {
        put_query(&mut out, backend.form(), &sql);
        commands += 1;
    }
    commands += session::state::restore(&mut out, on, (&from, &to), None);
    // Behind what makes the server read it in the client's character set.
    if let Some(schema) = sent {
        put_command(&mut out, Command::InitDb, schema);
        commands += 1;
    }
    backend.session.enter(client.session.state.clone());
    backend.session.note_role(&mut backend.reuse);
    for i in 1..=commands {
        let purpose = ForSession::Restore(i == commands);
        let command = InFlight::own(Some(key), purpose, ReplyShape::Status);
        backend.flight.expect(command);
    }
    let moved = parts.clients.enter(key, ClientState::Restoring, now);
    if moved && commands > 0 {
        parts.backend_writer().ask(backend_id, &out);
    }
    parts.work.lent.out = out;
    moved && commands == 0 && stands_restored(parts, key)
}

/// Handles the restored session of a client's backend: lets the client in if it waits for that.
/// `false` when the client is gone.
pub(crate) fn stands_restored<N: Net>(parts: &mut Parts<N>, owner: ClientId) -> bool {
    let now = parts.net.now();
    let Some(client) = parts.clients.get_mut(owner) else {
        return false;
    };
    if let Some(schema) = client.session.schema_of_login() {
        parts.known.schemas.learn(client.pool as usize, schema);
    }
    let logs_in = client.is_logging_in();
    if !client.change_state(ClientState::Idle, now) {
        parts.clients.close_later(owner);
        return false;
    }
    if logs_in {
        parts.answers().end_login(owner, b"");
    }
    true
}

/// A packet of a login, or of a change of user, whose number must be `seq`.
pub(crate) fn on_login_packet<N: Net>(
    parts: &mut Parts<N>,
    key: ClientId,
    message: &[u8],
    seq: u8,
) -> Handled {
    let Some(client) = parts.clients.get_mut(key) else {
        return Handled::Used;
    };
    let framed = client.transport.compresses();
    let got = message[3];
    if got != seq {
        leaving::refuse_and_leave(parts, key, &Refusal::OutOfOrder { expected: seq, got });
    } else if parts.settings.tls.is_some() && client.asks_for_tls(&message[HEADER_LEN..]) {
        return Handled::Secured;
    } else if client.state() == ClientState::Greeted {
        on_login(parts, key, &message[HEADER_LEN..]);
    } else {
        client.note_secure(&parts.net);
        let (seq, proof) = (client.identity.seq, &message[HEADER_LEN..]);
        exchange(parts, key, |login, login_context| {
            login.answer(login_context, proof, seq)
        });
    }
    match parts.clients.get(key) {
        Some(client) if client.transport.compresses() && !framed => Handled::Framed,
        _ => Handled::Used,
    }
}

fn on_login<N: Net>(parts: &mut Parts<N>, key: ClientId, payload: &[u8]) {
    let Some(client) = parts.clients.get_mut(key) else {
        return;
    };
    let is_tls = client.transport.is_tls();
    if let Some(wrong) = WrongProtocol::of_login(payload).filter(|_| !is_tls) {
        return leaving::refuse_and_leave(parts, key, &Refusal::WrongProtocol { wrong });
    }
    let parsed = match handshake::Login::read(payload) {
        Ok(parsed) => parsed,
        Err(error) => {
            return leaving::refuse_and_leave(parts, key, &Refusal::Malformed(error.to_string()));
        }
    };
    if parsed.capabilities & parts.shared.logins.offered & cap::SSL != 0 && !is_tls {
        let what = "login in clear that says it is under TLS (CLIENT_SSL)";
        return leaving::refuse_and_leave(parts, key, &Refusal::Malformed(what.into()));
    }
    // A Unix socket is as good as TLS, as with servers.
    let required = (parts.settings.tls.as_ref()).is_some_and(|tls| tls.required);
    if required && !client.transport.is_secure() {
        return leaving::refuse_and_leave(parts, key, &Refusal::InsecureTransport);
    }
    let fresh = nonce(&mut parts.net);
    client.capabilities = parsed.capabilities & parts.shared.logins.offered;
    let program = handshake::program_name(payload).unwrap_or_default();
    client.place.arrival.program = parts.shared.records.programs.number(program);
    (client.identity).set_extended(parsed.extended & parts.shared.logins.extended);
    match Compression::agreed(client.capabilities, &parsed) {
        Ok(agreed) => client.transport.set_compression(agreed),
        Err(why) => return leaving::refuse_and_leave(parts, key, &Refusal::Malformed(why)),
    }
    let collation = u16::from(parsed.collation);
    client.identity.collation = collation;
    if let Some(login) = &mut client.login {
        login.call(parsed.user);
    }
    if let Some(denial) = parts.shared.server.refuses_charset(Some(collation)) {
        return denial::not_let_in(parts, key, &denial);
    }
    let multi = client.capabilities & cap::MULTI_STATEMENTS != 0;
    let (charsets, results) = parts.shared.server.charsets_at_login(collation);
    let mut session = Session::at_login(parsed.schema, multi, charsets, &parts.known.defaults);
    session.results_collation = results;
    session.begin_interactive(client.capabilities);
    if client.capabilities & cap::IGNORE_SPACE != 0 {
        session.ignore_space(&parts.shared.server.sql_mode);
    }
    client.session.state = parts.known.sessions.intern(session);
    let seq = client.identity.seq;
    let host = host_of(&client.transport, &parts.net, &parts.shared.server);
    exchange(parts, key, |login, login_context| {
        login.begin(login_context, &parsed, (&host, fresh), seq)
    });
}

/// Host of a client, as accounts are matched with it.
pub(crate) fn host_of<N: Net>(
    transport: &Transport<N::Sock>,
    net: &N,
    server: &ServerFacts,
) -> ClientHost {
    let peer = transport.peer(net).map(|peer| peer.ip());
    ClientHost::of(peer, server.names_hosts)
}

/// One step of a login.
pub(crate) fn exchange<N: Net>(
    parts: &mut Parts<N>,
    key: ClientId,
    step: impl FnOnce(&mut Login, &LoginContext<'_>) -> Outcome,
) {
    let now = parts.net.now();
    let Some(client) = parts.clients.get_mut(key) else {
        return;
    };
    let Some(mut login) = client.login.take() else {
        return parts.clients.close_later(key);
    };
    let login_context = parts.shared.logins.context();
    let mut outcome = step(&mut login, &login_context);
    let (mut bar, mut barred) = (None, None);
    if let (Outcome::Welcome(_, front, seq), Some(account)) = (&mut outcome, login.account()) {
        // As servers do: first the password, then what the account requires besides.
        let pools = &parts.backend_pools;
        bar = bar_of(client, account, &parts.shared, &parts.settings, pools);
        if bar.is_some() {
            barred = Some(std::mem::take(front));
            outcome = Outcome::Denied(*seq, true);
        }
    } else if let Outcome::Denied(..) = &outcome {
        bar = match login.obstacle() {
            Some(obstacle) => Some(Bar::Denied(obstacle)),
            None => login.account().and_then(|account| unusable(account)),
        };
    }
    match outcome {
        Outcome::Send(out) => {
            // The last packet's number: answers go on from there.
            client.identity.seq = client.identity.seq.wrapping_add(1);
            client.login = Some(login);
            if parts.clients.enter(key, ClientState::Proving, now) {
                parts.client_writer().send(key, &out);
            }
        }
        Outcome::Welcome(user, front, seq) => {
            client.identity.seq = seq;
            let capabilities = client.capabilities & BACKEND_KEY;
            let extended = client.identity.extended.into();
            on_proven(parts, key, login, capabilities, extended, user, &front);
        }
        Outcome::Denied(seq, with_password) => {
            client.identity.seq = seq;
            let name = login.name.clone();
            client.login = Some(login);
            if let Some(front) = barred {
                parts.client_writer().send(key, &front);
            }
            let denial = (parts.failed_logins()).deny(key, &name, with_password, bar);
            if let Some(denial) = denial {
                denial::not_let_in(parts, key, &denial);
            }
        }
        Outcome::Check(answer) => {
            client.login = Some(login);
            if let Some(denial) = parts.failed_logins().check(key, &answer) {
                denial::not_let_in(parts, key, &denial);
            }
        }
    }
}

/// Counts a client with a proven name among the clients of a pool, and lets it in.
fn on_proven<N: Net>(
    parts: &mut Parts<N>,
    key: ClientId,
    mut login: Box<Login>,
    capabilities: u32,
    extended: u32,
    user: usize,
    front: &[u8],
) {
    login.waits = None;
    let onward = (login.account()).and_then(|account| parts.shared.onward(account));
    let Some(onward) = onward else {
        return parts.clients.close_later(key);
    };
    let place = match parts.members().place_for_address(key) {
        Ok(place) => place,
        Err(refusal) => {
            parts.client_writer().send(key, front);
            return leaving::refuse_and_leave(parts, key, &refusal);
        }
    };
    for backend in place.idle {
        parts.closer().retire(backend);
    }
    let pool = (parts.members()).pool_of((capabilities, extended), onward, place.reported);
    parts.members().put_in_pool(key, pool);
    // An account may be newer than this turn.
    settings::take_settings(parts);
    parts.room().uncount(key);
    let user = parts.members().user_of(pool).unwrap_or(user);
    let counted = parts.members().count(key, user);
    parts.room().count(key);
    if let Err(refusal) = counted {
        // What says that the name is proven counts in the number of the packet behind it.
        parts.client_writer().send(key, front);
        return leaving::refuse_and_leave(parts, key, &refusal);
    }
    let before = login.before.as_ref();
    let role = before.and_then(|b| {
        let pools = &parts.backend_pools.pools;
        let pools = (&pools[b.pool as usize], &pools[pool]);
        role_after_change(&b.session, pools, parts.shared.server.flavour)
    });
    welcome(parts, key, login, role, front);
}

/// Resumes a login with a worker's verdict. Its client may have left, or been turned away for
/// its time.
pub(crate) fn on_password_checked<N: Net>(parts: &mut Parts<N>, key: ClientId, checked: Checked) {
    let now = parts.net.now();
    let Some(client) = parts.clients.get_mut(key) else {
        return;
    };
    if client.state() != ClientState::Verifying {
        return;
    }
    let address = client.transport.peer(&parts.net).map(|peer| peer.ip());
    parts.shared.logins.failures.forgive(address, now);
    let seq = client.identity.seq;
    exchange(parts, key, |login, _| login.checked(checked, seq));
    parts.work.tasks.add(Task::Read(key));
}

/// Lets in a client with a proven name, once a backend has accepted its schema; `role`: that of its
/// session, if a change of user keeps it.
fn welcome<N: Net>(
    parts: &mut Parts<N>,
    key: ClientId,
    mut login: Box<Login>,
    role: Option<Box<[u8]>>,
    front: &[u8],
) {
    let now = parts.net.now();
    let begins = parts.members().begins(key);
    let Some(client) = parts.clients.get_mut(key) else {
        return;
    };
    if role.is_some() {
        let mut session = (*client.session.state).clone();
        session.role = role;
        client.session.state = parts.known.sessions.intern(session);
    }
    login.begins_late = !begins;
    // It lasts until its schema is accepted.
    client.login = Some(login);
    let known = begins
        && client.session.state.schema_as_sent().is_none()
        && match &client.session.state.schema {
            None => true,
            Some(schema) => parts.known.schemas.knows(client.pool as usize, schema),
        };
    let to = if known {
        ClientState::Idle
    } else {
        ClientState::Opening
    };
    if !client.change_state(to, now) {
        return parts.clients.close_later(key);
    }
    if known {
        parts.answers().end_login(key, front);
    } else {
        parts.client_writer().send(key, front);
        open(parts, key);
    }
}

/// Answers those whose time has come.
pub(crate) fn answer_delayed<N: Net>(parts: &mut Parts<N>) {
    while let Some(delayed) = parts.failed_logins().next_due() {
        let key = delayed.key;
        parts.answers().error(key, delayed.error, &delayed.text);
        match delayed.after {
            After::End => leaving::leave(parts, key),
            After::NextCommand => parts.work.tasks.add(Task::Read(key)),
        }
    }
}
