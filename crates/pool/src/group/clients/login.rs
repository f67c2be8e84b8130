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
use crate::auth::failed_logins::{Denial, Heard};
use crate::auth::login::{Login, Outcome};
use crate::auth::password_checks::Checked;
use crate::backend::pool_members::{Bar, unusable};
use crate::client::buffers::packing::Compression;
use crate::client::{Client, ClientState, Handled};
use crate::errors::reasons::Refusal;
use crate::group::Group;
use crate::group::tasks::Task;
use crate::group::tokens::ClientId;
use crate::pair::roles::role_after_change;
use reactor::Net;
use session::state::Session;
use wire::auth::{NONCE_LEN, Nonce};
use wire::capabilities::{self as cap, BACKEND_KEY};
use wire::handshake::{self, nonce_from_random};
use wire::packet::HEADER_LEN;
use wire::wrong_protocol::WrongProtocol;

/// Nonce of a greeting, or of a change of user, which a client mixes with its password.
pub(crate) fn nonce(net: &mut impl Net) -> Nonce {
    let mut random = [0; NONCE_LEN];
    net.random(&mut random);
    nonce_from_random(random)
}

impl<N: Net> Group<N> {
    /// A packet of a login, or of a change of user, whose number must be `seq`.
    pub(super) fn on_login_packet(&mut self, key: ClientId, message: &[u8], seq: u8) -> Handled {
        let Some(client) = self.clients.get(key) else {
            return Handled::Used;
        };
        let (state, framed) = (client.state(), client.compresses());
        let got = message[3];
        if got != seq {
            self.refuse_and_leave(key, &Refusal::OutOfOrder { expected: seq, got });
        } else if self.settings.tls.is_some()
            && (self.clients.get(key)).is_some_and(|c| c.asks_for_tls(&message[HEADER_LEN..]))
        {
            return Handled::Secured;
        } else if state == ClientState::Greeted {
            self.on_login(key, &message[HEADER_LEN..]);
        } else {
            let Some(client) = self.clients.get_mut(key) else {
                return Handled::Used;
            };
            client.note_secure(&self.net);
            let (seq, proof) = (client.seq(), &message[HEADER_LEN..]);
            self.exchange(key, |login, login_context| {
                login.answer(login_context, proof, seq)
            });
        }
        match self.clients.get(key) {
            Some(client) if client.compresses() && !framed => Handled::Framed,
            _ => Handled::Used,
        }
    }

    fn on_login(&mut self, key: ClientId, payload: &[u8]) {
        let is_tls = self.clients.get(key).is_some_and(|c| c.transport.is_tls());
        if let Some(wrong) = WrongProtocol::of_login(payload).filter(|_| !is_tls) {
            return self.refuse_and_leave(key, &Refusal::WrongProtocol { wrong });
        }
        let parsed = match handshake::Login::read(payload) {
            Ok(parsed) => parsed,
            Err(error) => {
                return self.refuse_and_leave(key, &Refusal::Malformed(error.to_string()));
            }
        };
        if parsed.capabilities & self.shared.offered & cap::SSL != 0 && !is_tls {
            let what = "login in clear that says it is under TLS (CLIENT_SSL)";
            return self.refuse_and_leave(key, &Refusal::Malformed(what.into()));
        }
        // A Unix socket is as good as TLS, as with servers.
        let required = (self.settings.tls.as_ref()).is_some_and(|tls| tls.required);
        let lacks = |client: &Client<N::Sock>| !client.transport.is_secure();
        if required && self.clients.get(key).is_some_and(lacks) {
            return self.refuse_and_leave(key, &Refusal::InsecureTransport);
        }
        let fresh = nonce(&mut self.net);
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        client.capabilities = parsed.capabilities & self.shared.offered;
        let program = handshake::program_name(payload).unwrap_or_default();
        client.place.arrival.program = self.shared.programs.number(program);
        client.set_extended(parsed.extended & self.shared.extended);
        match Compression::agreed(client.capabilities, &parsed) {
            Ok(agreed) => client.transport.set_compression(agreed),
            Err(why) => return self.refuse_and_leave(key, &Refusal::Malformed(why)),
        }
        let collation = u16::from(parsed.collation);
        client.set_collation(collation);
        if let Some(login) = &mut client.login {
            login.call(parsed.user);
        }
        if let Some(denial) = self.failed_logins().of_charset(Some(collation)) {
            return self.not_let_in(key, &denial);
        }
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        let multi = client.capabilities & cap::MULTI_STATEMENTS != 0;
        let (charsets, results) = self.shared.server.charsets_at_login(collation);
        let mut session = Session::at_login(parsed.schema, multi, charsets, &self.defaults);
        session.results_collation = results;
        session.begin_interactive(client.capabilities);
        if client.capabilities & cap::IGNORE_SPACE != 0 {
            session.ignore_space(&self.shared.server.sql_mode);
        }
        client.session = self.sessions.intern(session);
        let seq = client.seq();
        let host = self.members().host_of(key);
        self.exchange(key, |login, login_context| {
            login.begin(login_context, &parsed, (&host, fresh), seq)
        });
    }

    /// One step of a login.
    pub(crate) fn exchange(
        &mut self,
        key: ClientId,
        step: impl FnOnce(&mut Login, &LoginContext<'_>) -> Outcome,
    ) {
        let now = self.net.now();
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        let Some(mut login) = client.login.take() else {
            return self.clients.close_later(key);
        };
        let login_context = self.shared.login_context();
        let mut outcome = step(&mut login, &login_context);
        let mut bar = None;
        if let (Outcome::Welcome(_, front, seq), Some(account)) = (&outcome, login.account()) {
            // As servers do: first the password, then what the account requires besides.
            bar = self.members().bar_of(key, account);
            if bar.is_some() {
                let (front, seq) = (front.clone(), *seq);
                outcome = Outcome::Denied(seq, true);
                self.client_writer().send(key, &front);
            }
        } else if let Outcome::Denied(..) = &outcome {
            bar = match login.obstacle() {
                Some(obstacle) => Some(Bar::Denied(obstacle)),
                None => login.account().and_then(|account| unusable(account)),
            };
        }
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        match outcome {
            Outcome::Send(out) => {
                // The last packet's number: answers go on from there.
                client.set_seq(client.seq().wrapping_add(1));
                client.login = Some(login);
                if self.clients.enter(key, ClientState::Proving, now) {
                    self.client_writer().send(key, &out);
                }
            }
            Outcome::Welcome(user, front, seq) => {
                client.set_seq(seq);
                self.on_proven(key, login, user, &front);
            }
            Outcome::Denied(seq, with_password) => {
                client.set_seq(seq);
                let name = login.name.clone();
                client.login = Some(login);
                let denial = (self.failed_logins()).deny(key, &name, with_password, bar);
                if let Some(denial) = denial {
                    self.not_let_in(key, &denial);
                }
            }
            Outcome::Check(answer) => {
                client.login = Some(login);
                if let Some(denial) = self.failed_logins().check(key, &answer) {
                    self.not_let_in(key, &denial);
                }
            }
        }
    }

    /// Counts a client with a proven name among the clients of a pool, and lets it in.
    fn on_proven(&mut self, key: ClientId, mut login: Box<Login>, user: usize, front: &[u8]) {
        let Some(client) = self.clients.get(key) else {
            return;
        };
        login.waits = None;
        let capabilities = (client.capabilities & BACKEND_KEY, client.extended().into());
        let onward = login
            .account()
            .and_then(|account| self.shared.onward(account));
        let Some(onward) = onward else {
            return self.clients.close_later(key);
        };
        let place = match self.members().place_for_address(key) {
            Ok(place) => place,
            Err(refusal) => {
                self.client_writer().send(key, front);
                return self.refuse_and_leave(key, &refusal);
            }
        };
        for backend in place.idle {
            self.closer().retire(backend);
        }
        let pool = self.members().pool_of(capabilities, onward, place.reported);
        self.members().put_in_pool(key, pool);
        // An account may be newer than this turn.
        self.take_settings();
        self.room().uncount(key);
        let user = self.members().user_of(pool).unwrap_or(user);
        let counted = self.members().count(key, user);
        self.room().count(key);
        if let Err(refusal) = counted {
            // What says that the name is proven counts in the number of the packet behind it.
            self.client_writer().send(key, front);
            return self.refuse_and_leave(key, &refusal);
        }
        let before = login.before.as_ref();
        let role = before.and_then(|b| {
            let pools = &self.backend_pools.pools;
            let pools = (&pools[b.pool as usize], &pools[pool]);
            role_after_change(&b.session, pools, self.shared.server.flavour)
        });
        if let Some(client) = self.clients.get_mut(key) {
            if role.is_some() {
                let mut session = (*client.session).clone();
                session.role = role;
                client.session = self.sessions.intern(session);
            }
            // It lasts until its schema is accepted.
            client.login = Some(login);
        }
        self.welcome(key, front);
    }

    /// Resumes a login with a worker's verdict. Its client may have left, or been turned away for
    /// its time.
    pub(crate) fn on_password_checked(&mut self, key: ClientId, checked: Checked) {
        let now = self.net.now();
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        if client.state() != ClientState::Verifying {
            return;
        }
        let address = client.transport.peer(&self.net).map(|peer| peer.ip());
        self.shared.failures.forgive(address, now);
        let seq = client.seq();
        self.exchange(key, |login, _| login.checked(checked, seq));
        self.tasks.add(Task::Read(key));
    }

    /// Lets in a client with a proven name, once a backend has accepted its schema.
    fn welcome(&mut self, key: ClientId, front: &[u8]) {
        let now = self.net.now();
        let begins = self.members().begins(key);
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        if let Some(login) = &mut client.login {
            login.begins_late = !begins;
        }
        let known = begins
            && client.session.schema_as_sent().is_none()
            && match &client.session.schema {
                None => true,
                Some(schema) => self.schemas.knows(client.pool as usize, schema),
            };
        let to = if known {
            ClientState::Idle
        } else {
            ClientState::Opening
        };
        if !client.change_state(to, now) {
            return self.clients.close_later(key);
        }
        if known {
            self.answers().end_login(key, front);
        } else {
            self.client_writer().send(key, front);
            self.open(key);
        }
    }

    /// Sends this error after its time.
    pub(crate) fn hold_back(&mut self, key: ClientId, after: After, denial: &Denial) {
        if self.failed_logins().hold_back(key, after, denial) == Heard::AtOnce {
            self.answers().error(key, denial.error, &denial.text);
            self.leave(key);
        }
    }

    /// Answers those whose time has come.
    pub(crate) fn answer_delayed(&mut self) {
        while let Some(delayed) = self.failed_logins().next_due() {
            let key = delayed.key;
            self.answers().error(key, delayed.error, &delayed.text);
            match delayed.after {
                After::End => self.leave(key),
                After::NextCommand => self.tasks.add(Task::Read(key)),
            }
        }
    }
}
