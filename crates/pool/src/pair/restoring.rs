//! Restoring: bringing a backend into its client's session state, without a round trip.
//!
//! The problem: a backend that stands in another session's state needs commands in front of the
//! statement, and what stands behind a command on the wire runs even when that command fails: in
//! somebody else's schema, or under other variables. What cannot fail goes in front, in the same
//! write (`known_good.rs`). For what can fail (a schema may have been dropped, a privilege
//! revoked), the statement decides ([`SendMode`]); what is said here of servers was tried on
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
//! 5. What is left is waited for ([`Prefix::Waited`]): see docs/decisions/0009.
//!
//! A client that may not send several statements must not be able to through this: its text is
//! joined only if each semicolon in it stands between quotes for certain ([`is_one_statement`]).
//! The backend then stands in the client's session with several statements allowed, and is told
//! otherwise in front of the next command.
//!
//! Invariant: a statement behind a restoring command that failed has not run, or it has run as if
//! that had succeeded, or its client is told that it may have.

use crate::backend::{BackendSession, ForBackend, ForSession, InFlight, Purpose};
use crate::client::buffers::message::payload_of;
use crate::client::{ClientSession, ClientState};
use crate::pair::{Broken, Context, Ends, Pair};
use crate::server::facts::ServerFacts;
use session::known_good::is_known_good;
use session::reply_summary::ReplySummary;
use session::roles::{switch, switch_cannot_fail};
use session::send_mode::{Joined, Prefix, SendMode, is_one_statement};
use session::state::{Session, can_restore, put_multi, restore_as_text};
use session::text::{Text, mentions};
use sql::lex::Server;
use std::rc::Rc;
use wire::attributes::{NO_ATTRIBUTES, header_len, put_query};
use wire::command::{Command, ReplyShape};
use wire::packet::HEADER_LEN;
use wire::track::{Change, changes};

/// Version from which on MySQL is known to give the attributes of a text to all its statements.
const ATTRIBUTES_FOR_ALL: u32 = 90_700;

/// Text that begins a transaction whose client has had the answer already.
pub(crate) const BEGIN: &[u8] = b"BEGIN";

impl Pair<'_> {
    /// Writes everything that is to stand in front of the client's statement, `message`, but what
    /// is joined with it; what comes first clears the conditions of others. A text that is longer
    /// than `text_here_max` is not joined.
    pub(crate) fn checkout(
        &mut self,
        message: &[u8],
        text_here_max: usize,
        out: &mut Vec<u8>,
    ) -> Prefix {
        // The schema is set now, by the pool or by the command itself.
        self.backend.note_schema_of_client();
        let session = match self.client.statement.send_mode {
            SendMode::NewSchema => self.session_but_schema(),
            _ => self.client.state.clone(),
        };
        debug_assert!(
            can_restore(&self.backend.state, &session),
            "no command takes a schema away"
        );
        if self.has_conditions_of_others() {
            self.put_clearing(out);
        }
        let begins = self.command.is_begin_deferred();
        let prefix = if self.stands_in(&session) {
            Prefix::CannotFail
        } else if begins {
            // A transaction begins where its statement runs: what can fail is waited for in front.
            self.put_restore(&session, SendMode::Apart, out)
        } else {
            let joined = self.join((message, text_here_max), &session, out);
            joined.map_or_else(
                || self.put_restore(&session, self.client.statement.send_mode, out),
                Prefix::Joined,
            )
        };
        if begins && prefix != Prefix::Waited {
            self.command.allow_pipelining();
            put_query(out, self.ends.on.form, BEGIN);
            let command = InFlight::own(Some(self.owner), ForSession::Begin, ReplyShape::Status);
            self.flight.expect(command);
            // From here on the backend is its client's, whatever it answers.
            self.backend.transaction.note_begin_sent();
        }
        prefix
    }

    /// True if the backend stands in this session, and with its client's LAST_INSERT_ID().
    fn stands_in(&self, session: &Rc<Session>) -> bool {
        let there = &*self.backend;
        Rc::ptr_eq(&there.state, session) && there.has_insert_id(self.client.last.insert_id)
    }

    /// The session in which the backend is to stand for a command that sets another schema: that
    /// of the client, in whichever schema the backend is.
    fn session_but_schema(&mut self) -> Rc<Session> {
        let (session, there) = (&self.client.state, &self.backend.state);
        if session.stands_in_schema_of(there) {
            return session.clone();
        }
        let mut elsewhere = (**session).clone();
        elsewhere.move_to_schema_of(there);
        let elsewhere = self.context.sessions.intern(elsewhere);
        if session.accepted.is_of(self.context.epoch) {
            elsewhere.accepted.note(self.context.epoch);
        }
        elsewhere
    }

    /// Writes what brings the backend into a session of the client's. It is never joined.
    pub(crate) fn put_restore(
        &mut self,
        session: &Rc<Session>,
        send_mode: SendMode,
        out: &mut Vec<u8>,
    ) -> Prefix {
        if self.stands_in(session) {
            return Prefix::CannotFail;
        }
        let (client, backend) = (&*self.client, &mut *self.backend);
        let epoch = self.context.epoch;
        let insert_id = client.last.insert_id;
        let insert_id = (!backend.has_insert_id(insert_id)).then_some(insert_id);
        let same = Rc::ptr_eq(&backend.state, session);
        let cannot_fail = same || cannot_fail_on(backend, session, epoch, self.ends.is_reader);
        let moves = backend.state.schema_to_set(session).is_some();
        let prefix = match send_mode {
            SendMode::Anywhere => Prefix::Tried,
            // If that warns, it is cleared before the statement.
            _ if !client.statement.looks_back.is_empty() && !same => Prefix::Waited,
            SendMode::OwnSchema if cannot_fail => Prefix::CannotFail,
            _ if cannot_fail && !moves => Prefix::CannotFail,
            _ => Prefix::Waited,
        };
        let between = (&*backend.state, &**session);
        let commands = backend.put_session(out, self.ends.on, between, insert_id);
        for i in 1..=commands {
            let last = i == commands;
            let purpose = match prefix {
                Prefix::Tried => ForSession::Joined(last).into(),
                Prefix::Waited => ForSession::Restore(last).into(),
                // The schema comes last.
                _ if last && moves => ForBackend::Schema.into(),
                _ => Purpose::from(ForSession::Restore(false)),
            };
            let command = InFlight::own(Some(self.owner), purpose, ReplyShape::Status);
            self.flight.expect(command);
        }
        if commands > 0 {
            self.context.counts.restored += 1;
            self.context.counts.restored_in_front += u64::from(prefix != Prefix::Waited);
        }
        // Setting LAST_INSERT_ID() cannot fail; from here on the backend is as the client's.
        backend.enter(session.clone());
        backend.note_insert_id(client.last.insert_id);
        backend.note_role(self.reuse);
        match commands {
            0 => Prefix::CannotFail,
            _ => prefix,
        }
    }

    /// Finds the restoring statements that go in one text with the client's own; what must be sent
    /// before that text goes to `out`. `None` when they are not to be joined.
    fn join(
        &mut self,
        (message, text_here_max): (&[u8], usize),
        session: &Rc<Session>,
        out: &mut Vec<u8>,
    ) -> Option<Joined> {
        let (client, backend) = (&*self.client, &*self.backend);
        let Context { server, epoch, .. } = self.context;
        let text = matches!(
            client.statement.send_mode,
            SendMode::Joined | SendMode::NewSchema
        ) && message.get(HEADER_LEN) == Some(&Command::Query.byte());
        let long = message.len() > text_here_max;
        let looks_back = !client.statement.looks_back.is_empty();
        if !text || long || looks_back || Rc::ptr_eq(&backend.state, session) {
            return None;
        }
        // In one text with another statement MySQL tells no GTID of it.
        if session.tracks_gtids() && !self.ends.is_reader {
            return None;
        }
        let cannot_fail = cannot_fail_on(backend, session, epoch, self.ends.is_reader);
        if cannot_fail && backend.state.schema_to_set(session).is_none() {
            return None;
        }
        let insert_id = client.last.insert_id;
        let insert_id = (!backend.has_insert_id(insert_id)).then_some(insert_id);
        let on = self.ends.on;
        let between = (&*backend.state, &**session);
        let (mut text, mut statements) = restore_as_text(between, insert_id, on)?;
        if let Some(sql) = switch(between.0, between.1, backend.login_role()) {
            text = [&sql, &b";"[..], &text].concat();
            statements += 1;
        }
        // As where a global variable has changed and changed back between two logins.
        if statements == 0 {
            return None;
        }
        let room = (server.max_allowed_packet).saturating_sub(text.len());
        if !may_join(client, self.ends, (&payload_of(message), room), server) {
            return None;
        }
        let backend = &mut *self.backend;
        if !backend.state.multi_statements {
            put_multi(out, true);
            let command = InFlight::own(
                Some(self.owner),
                ForSession::Restore(false),
                ReplyShape::Status,
            );
            self.flight.expect(command);
        }
        self.context.counts.restored += 1;
        self.context.counts.restored_in_front += 1;
        backend.enter(self.context.sessions.with_multi(session, true));
        backend.note_insert_id(client.last.insert_id);
        backend.note_role(self.reuse);
        Some(Joined { text, statements })
    }

    /// Takes the UTF-8 name of the schema with which the client has logged in in its own character
    /// set.
    pub(crate) fn note_schema_sent(&mut self, summary: &ReplySummary) -> Result<(), Broken> {
        if !self.ends.is_logging_in || self.client.state.schema_as_sent().is_none() {
            return Ok(());
        }
        let mut told = None;
        let read = changes(&summary.changes, |change| {
            if let Change::Schema(schema) = change {
                told = Some(Text::from(schema));
            }
        });
        if read.is_err() || told.is_none() {
            return Err("the server did not say which schema it has opened");
        }
        self.change_both(|session| session.schema.clone_from(&told));
        Ok(())
    }

    /// Counts what the client's statement takes and sets, as it runs for certain, or may have.
    pub(crate) fn note_runs(&mut self) {
        if self.ends.client != ClientState::Running {
            return;
        }
        let Context { now, counts, .. } = &mut self.context;
        self.client.note_pins(*now, counts);
        self.client.note_modified(self.flight, (*now, counts));
    }
}

/// True if a client's text may stand behind others in one command of at most `room` bytes more.
fn may_join(
    client: &ClientSession,
    ends: Ends,
    (payload, room): (&[u8], usize),
    server: &ServerFacts,
) -> bool {
    let arguments = payload.get(1..).unwrap_or_default();
    let Ok(header) = header_len(ends.on.form, arguments) else {
        return false;
    };
    let newest = matches!(server.flavour, Server::MySql(ATTRIBUTES_FOR_ALL..));
    let (attributes, sql) = arguments.split_at(header);
    let bare = attributes.is_empty() || attributes == NO_ATTRIBUTES;
    let one = || is_one_statement(sql, server.lex_mode(&client.state, ends.capabilities));
    payload.len() < room
        && (bare || newest)
        // A local file's packets go on counting from those of the whole command.
        && !mentions(sql, b"infile")
        && (client.state.multi_statements || one())
}

/// True if what brings a backend into this session cannot fail on it. Inside of a transaction a SET
/// may fail that does not outside.
fn cannot_fail_on(backend: &BackendSession, to: &Session, epoch: u64, is_reader: bool) -> bool {
    let from = &backend.state;
    let role = || switch_cannot_fail(from, to, backend.login_role());
    // What the writer has taken a reader may not have yet.
    if is_reader {
        return from.equals_but_for_multi(to);
    }
    is_known_good(from, to, epoch)
        && role()
        && !(backend.in_transaction() && from.variables_differ(to))
}
