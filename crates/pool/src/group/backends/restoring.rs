//! Restoring: bringing a backend into its client's session state, without a round trip.
//!
//! The problem: a backend that stands in another session's state needs commands in front of the
//! statement, and what stands behind a command on the wire runs even when that command fails: in
//! somebody else's schema, or under other variables. What cannot fail goes in front, in the same
//! write (`known_good.rs`). For what can fail (a schema may have been dropped, a privilege
//! revoked), the statement decides ([`Standing`]); what is said here of servers was tried on
//! MariaDB 10.11, MySQL 8.0.15 and 9.7:
//!
//! 1. A text is *joined*: `USE x; SELECT ...` is one command of several statements, and servers run
//!    nothing of it behind a statement that failed. Their answers come as several results of one
//!    reply; the first ones are taken off, the rest is the client's. What the text takes for its
//!    session, pins for or sets counts once the last one in front of it has succeeded.
//! 2. A preparation leaves nothing but itself: it goes behind its commands, and if one of these
//!    fails, its backend is closed and its reply dropped.
//! 3. An execution runs in the schema of its preparation, whatever the default one is: a schema
//!    that cannot be set is noted, and the execution answered as it was. Where its text asks for
//!    the default schema, this is waited for: servers without the schema would say NULL.
//! 4. USE and COM_INIT_DB need no schema restored.
//! 5. What is left is waited for ([`Front::Waited`]): see docs/decisions/0009.
//!
//! A client that may not send several statements must not be able to through this: its text is
//! joined only if each semicolon in it stands between quotes for certain ([`is_one_statement`]).
//! The backend then stands in the client's session with several statements allowed, and is told
//! otherwise in front of the next command.
//!
//! Invariant: a statement behind a restoring command that failed has not run, or it has run as if
//! that had succeeded, or its client is told that it may have.

use crate::backend::{Backend, InFlight, Purpose};
use crate::buffers::message::payload_of;
use crate::client::{Client, ClientState, Handled};
use crate::errors::reasons::Refusal;
use crate::group::Group;
use reactor::{Key, Net};
use session::known_good::is_sure_between;
use session::reply_summary::ReplySummary;
use session::roles::{is_sure, switch};
use session::standing::{Behind, Front, Joined, Standing, is_one_statement};
use session::state::{Session, can_restore, put_multi, restore, restore_as_text};
use session::statement::Owed;
use session::text::{Text, mentions};
use sql::lex::Server;
use std::rc::Rc;
use wire::attributes::{Form, NO_ATTRIBUTES, header_len, put_joined, put_query};
use wire::command::{Command, ReplyShape};
use wire::packet::HEADER_LEN;
use wire::status;
use wire::track::{Change, changes};

/// From this version on MySQL is known to give the attributes of a text to all its statements.
const ATTRIBUTES_FOR_ALL: u32 = 90_700;

impl<S> Backend<S> {
    /// Appends the commands that bring it from one session into another, role and all, and returns
    /// how many there are; each is answered by OK or ERR. `insert_id` is a LAST_INSERT_ID() to be
    /// set besides.
    pub(crate) fn put_session(
        &self,
        out: &mut Vec<u8>,
        server: Server,
        (from, to): (&Session, &Session),
        insert_id: Option<u64>,
    ) -> usize {
        let role = switch(from, to, self.login_role.as_deref());
        if let Some(sql) = &role {
            put_query(out, self.form, sql);
        }
        usize::from(role.is_some()) + restore(out, self.on(server), (from, to), insert_id)
    }
}

impl<N: Net> Group<N> {
    /// Sends a command to the client's backend, once that stands in the client's session state.
    pub(crate) fn begin(&mut self, key: Key, lease: Key, message: &[u8]) -> Handled {
        if let Some(handled) = self.renew(key, lease) {
            return handled;
        }
        if let Some(handled) = self.prepare_ahead(key, lease, message) {
            return handled;
        }
        let Some(session) = self.session_to_restore(key, lease) else {
            return Handled::Used;
        };
        let mut out = std::mem::take(&mut self.lent);
        out.clear();
        self.put_clearing(key, lease, &mut out);
        // A transaction begins where its statement runs: what can fail is waited for in front.
        let begins = self.clients.get(key).is_some_and(Client::is_begin_deferred);
        let joined = match begins {
            true => None,
            false => self.join(key, lease, message, &session, &mut out),
        };
        let front = match joined {
            Some(joined) => Some(Front::Joined(joined)),
            None => {
                let client = self.clients.get(key).filter(|_| !begins);
                let standing = client.map_or(Standing::Apart, |c| c.statement.standing);
                self.put_restore((key, lease), &session, standing, &mut out)
            }
        };
        let result = match front {
            None => Handled::Used,
            Some(Front::Waited) => self.send_restore(key, lease, &out),
            Some(front) => {
                self.put_deferred_begin(key, lease, &mut out);
                self.send_backend(lease, &out);
                self.ride_behind(key, lease, message, &front);
                Handled::Used
            }
        };
        self.lent = out;
        result
    }

    /// The session in which the backend is to stand for the client's command.
    fn session_to_restore(&mut self, key: Key, lease: Key) -> Option<Rc<Session>> {
        let client = self.clients.get(key)?;
        let backend = self.backends.get_mut(lease)?;
        // The schema is set now, by the pool or by the command itself.
        backend.astray = false;
        let (session, there) = (&client.session, &backend.session);
        if client.statement.standing != Standing::NewSchema || session.schema == there.schema {
            debug_assert!(
                can_restore(there, session),
                "no command takes a schema away"
            );
            return Some(session.clone());
        }
        let mut elsewhere = (**session).clone();
        elsewhere.schema.clone_from(&there.schema);
        let elsewhere = self.sessions.intern(elsewhere);
        if session.accepted.is_of(self.epoch) {
            elsewhere.accepted.note(self.epoch);
        }
        Some(elsewhere)
    }

    /// Writes what brings the backend into a session of the client's; `None` when one of the two is
    /// gone. It is never joined.
    pub(crate) fn put_restore(
        &mut self,
        (key, lease): (Key, Key),
        session: &Rc<Session>,
        standing: Standing,
        out: &mut Vec<u8>,
    ) -> Option<Front> {
        let client = self.clients.get(key)?;
        let backend = self.backends.get_mut(lease)?;
        let insert_id =
            (backend.insert_id != Some(client.last.insert_id)).then_some(client.last.insert_id);
        let same = Rc::ptr_eq(&backend.session, session);
        if same && insert_id.is_none() {
            return Some(Front::Sure);
        }
        let sure = same || is_sure_here(&backend.session, session, self.epoch, backend);
        let moves = backend.session.schema_to_set(session).is_some();
        let front = match standing {
            Standing::Anywhere => Front::Tried,
            // If that warns, it is cleared before the statement.
            _ if client.statement.looks_back && !same => Front::Waited,
            Standing::OwnSchema if sure => Front::Sure,
            _ if sure && !moves => Front::Sure,
            _ => Front::Waited,
        };
        let server = self.shared.server.flavour;
        let commands = backend.put_session(out, server, (&backend.session, session), insert_id);
        for i in 1..=commands {
            let last = i == commands;
            let purpose = match front {
                Front::Tried => Purpose::Joined(last),
                Front::Waited => Purpose::Restore(last),
                // The schema comes last.
                _ if last && moves => Purpose::Schema,
                _ => Purpose::Restore(false),
            };
            backend.expect(InFlight::own(Some(key), purpose, ReplyShape::Status));
        }
        if commands > 0 {
            self.counts.restored += 1;
            self.counts.restored_in_front += u64::from(front != Front::Waited);
        }
        // Setting LAST_INSERT_ID() cannot fail; from here on the backend is as the client's.
        backend.insert_id = Some(client.last.insert_id);
        backend.had.add_all(session.user_variables());
        backend.session = session.clone();
        backend.note_role();
        Some(match commands {
            0 => Front::Sure,
            _ => front,
        })
    }

    /// Finds the restoring statements that go in one text with the client's own; what must be sent
    /// before that text goes to `out`. `None` when they are not to be joined.
    fn join(
        &mut self,
        key: Key,
        lease: Key,
        message: &[u8],
        session: &Rc<Session>,
        out: &mut Vec<u8>,
    ) -> Option<Joined> {
        let client = self.clients.get(key)?;
        let backend = self.backends.get(lease)?;
        let text = matches!(
            client.statement.standing,
            Standing::Joined | Standing::NewSchema
        ) && message.get(HEADER_LEN) == Some(&Command::Query.byte());
        let long = message.len() > self.shared.text_here_max;
        let looks_back = client.statement.looks_back;
        if !text || long || looks_back || Rc::ptr_eq(&backend.session, session) {
            return None;
        }
        let sure = is_sure_here(&backend.session, session, self.epoch, backend);
        if sure && backend.session.schema_to_set(session).is_none() {
            return None;
        }
        let insert_id =
            (backend.insert_id != Some(client.last.insert_id)).then_some(client.last.insert_id);
        let on = backend.on(self.shared.server.flavour);
        let between = (&*backend.session, &**session);
        let (mut text, mut statements) = restore_as_text(between, insert_id, on)?;
        if let Some(sql) = switch(between.0, between.1, backend.login_role.as_deref()) {
            text = [&sql, &b";"[..], &text].concat();
            statements += 1;
        }
        let room = (self.shared.server.max_allowed_packet).saturating_sub(text.len());
        if !self.may_join(key, backend.form, &payload_of(message), room) {
            return None;
        }
        let backend = self.backends.get_mut(lease)?;
        if !backend.session.multi_statements {
            put_multi(out, true);
            let command = InFlight::own(Some(key), Purpose::Restore(false), ReplyShape::Status);
            backend.expect(command);
        }
        self.counts.restored += 1;
        self.counts.restored_in_front += 1;
        backend.insert_id = Some(client.last.insert_id);
        backend.had.add_all(session.user_variables());
        backend.session = self.sessions.with_multi(session, true);
        backend.note_role();
        Some(Joined { text, statements })
    }

    /// Whether a client's text may stand behind others in one command of at most `room` bytes more.
    fn may_join(&self, key: Key, form: Form, payload: &[u8], room: usize) -> bool {
        let Some(client) = self.clients.get(key) else {
            return false;
        };
        let arguments = payload.get(1..).unwrap_or_default();
        let Ok(header) = header_len(form, arguments) else {
            return false;
        };
        let newest = matches!(
            self.shared.server.flavour,
            Server::MySql(ATTRIBUTES_FOR_ALL..)
        );
        let (attributes, sql) = arguments.split_at(header);
        let bare = attributes.is_empty() || attributes == NO_ATTRIBUTES;
        let one = || is_one_statement(sql, self.lex_mode(&client.session, client.capabilities));
        payload.len() < room
            && (bare || newest)
            // A local file's packets go on counting from those of the whole command.
            && !mentions(sql, b"infile")
            && (client.session.multi_statements || one())
    }

    /// Puts a client's text in line for its backend, behind statements of the pool's own.
    pub(crate) fn send_joined(&mut self, lease: Key, message: &[u8], joined: &Joined) {
        let Some(backend) = self.backends.get_mut(lease) else {
            return;
        };
        let payload = payload_of(message);
        let arguments = payload.get(1..).unwrap_or_default();
        let header = header_len(backend.form, arguments).unwrap_or(0);
        let (attributes, sql) = arguments.split_at(header);
        put_joined(backend.output.last(), attributes, &joined.text, sql);
        self.send_backend(lease, b"");
    }

    /// Notes the answers that come for statements of the pool's own, in front of a client's.
    pub(crate) fn expect_joined(&mut self, key: Key, lease: Key, joined: &Joined) {
        let Some(backend) = self.backends.get_mut(lease) else {
            return;
        };
        for i in 1..=joined.statements {
            let purpose = Purpose::Joined(i == joined.statements);
            let command = InFlight::own(Some(key), purpose, ReplyShape::Status);
            backend.expect(command);
        }
    }

    /// A client has logged in with a schema in its own character set: the report of it is in UTF-8.
    pub(crate) fn note_schema_sent(&mut self, key: Key, owner: Key, summary: &ReplySummary) {
        let (Some(client), Some(backend)) =
            (self.clients.get_mut(owner), self.backends.get_mut(key))
        else {
            return;
        };
        if !client.is_logging_in() || client.session.schema_as_sent().is_none() {
            return;
        }
        let mut told = None;
        let read = changes(&summary.changes, |change| {
            if let Change::Schema(schema) = change {
                told = Some(Text::from(schema));
            }
        });
        if read.is_err() || told.is_none() {
            return self.lose(key, "the server did not say which schema it has opened");
        }
        for session in [&mut client.session, &mut backend.session] {
            let mut changed = (**session).clone();
            changed.schema.clone_from(&told);
            *session = self.sessions.intern(changed);
        }
    }

    pub(crate) fn send_restore(&mut self, key: Key, lease: Key, out: &[u8]) -> Handled {
        let now = self.net.now();
        let Some(client) = self.clients.get_mut(key) else {
            return Handled::Used;
        };
        if !client.change_state(ClientState::Restoring, now) {
            self.close_later(key);
            return Handled::Used;
        }
        self.send_backend(lease, out);
        self.count_busy(lease);
        Handled::Kept
    }

    /// A restoring command was answered, without whose success its client's statement has no
    /// effect.
    pub(crate) fn joined(
        &mut self,
        key: Key,
        owner: Option<Key>,
        last: bool,
        summary: &ReplySummary,
    ) {
        let Some(owner) = owner.filter(|owner| self.clients.get(*owner).is_some()) else {
            return self.retire(key);
        };
        if let Some((code, text)) = &summary.error {
            return self.restore_failed(key, owner, Behind::NotRun, (*code, text));
        }
        if !last {
            return;
        }
        self.note_accepted(key);
        self.note_runs(owner);
        let joined = self.clients.get(owner).is_some_and(|client| {
            let standing = client.statement.standing;
            client.state() == ClientState::Running && standing != Standing::Anywhere
        });
        let more = summary.status.unwrap_or_default() & status::MORE_RESULTS != 0;
        if joined && !more {
            // Nobody would ever answer.
            self.lose(key, "the server found no statement in the client's text");
        }
    }

    /// A client's statement runs for certain, or may have: what it takes and sets counts.
    pub(crate) fn note_runs(&mut self, owner: Key) {
        let client = self.clients.get(owner);
        if client.is_some_and(|client| client.state() == ClientState::Running) {
            self.note_pins(owner);
            self.note_touched(owner);
        }
    }

    /// The default schema was set in front of an execution, or could not be. The execution runs in
    /// its own schema; the backend stands in none that its client could use by name.
    pub(crate) fn schema_set(&mut self, key: Key, summary: &ReplySummary) {
        let Some(backend) = self.backends.get_mut(key) else {
            return;
        };
        if summary.error.is_none() {
            return;
        }
        let mut elsewhere = (*backend.session).clone();
        elsewhere.schema = None;
        backend.session = self.sessions.intern(elsewhere);
        backend.astray = true;
        backend.spoiled = true;
    }

    /// A backend stands in a session: its values can be set again.
    pub(crate) fn note_accepted(&self, lease: Key) {
        let Some(backend) = self.backends.get(lease) else {
            return;
        };
        backend.session.accepted.note(backend.epoch);
        let owner = backend.lease().and_then(|owner| self.clients.get(owner));
        if let Some(client) = owner
            && client.session.multi_statements != backend.session.multi_statements
            && client.session.equals_but_for_multi(&backend.session)
        {
            client.session.accepted.note(backend.epoch);
        }
    }

    /// A SET that stood in front of a client's statement has failed, and its backend is gone: the
    /// statement ran in a state that is not the client's.
    pub(crate) fn front_failed(&mut self, owner: Key, keeps: bool, why: String) {
        let now = self.net.now();
        self.epoch += 1;
        let Some(client) = self.clients.get_mut(owner) else {
            return;
        };
        client.session.accepted.withdraw();
        let gone = keeps || client.is_held() || client.is_left_there();
        client.last.owed = Owed::default();
        self.counts.refused += 1;
        self.refuse(owner, &Refusal::Unrestored(why));
        let Some(client) = self.clients.get_mut(owner) else {
            return;
        };
        client.last.lose_conditions();
        if gone || !client.change_state(crate::client::ClientState::Idle, now) {
            return self.leave(owner);
        }
        self.pump(owner);
    }
}

/// Whether what brings a backend from one session to the other cannot fail on it. Inside of a
/// transaction a SET may fail that does not outside.
fn is_sure_here<S>(from: &Session, to: &Session, epoch: u64, backend: &Backend<S>) -> bool {
    let role = || is_sure(from, to, backend.login_role.as_deref());
    is_sure_between(from, to, epoch)
        && role()
        && !(backend.in_transaction() && from.variables_differ(to))
}
