//! Statements prepared by name: PREPARE, EXECUTE and DEALLOCATE as text.
//!
//! The problem: a name belongs to one server session, and a client's next EXECUTE may run on
//! another backend, where the name is unknown or means another client's text. The mechanism: a
//! client has a list of names with their definitions; a backend remembers which definition it has
//! under which name. A client's own PREPARE always runs on a backend, because its reply is what the
//! server says now. An EXECUTE is classified by the text that it executes; where the backend lacks
//! that, `ahead.rs` prepares it first. DEALLOCATE is a matter of the client's list. A name that the
//! client does not have is taken away from the backend in front of the command that uses it, so
//! that the server says itself that it does not know it.
//!
//! A text that is not at hand (`PREPARE ... FROM @x` whose value cannot be had) pins its client
//! until it is deallocated, and for good when it is executed; so does what is more than a client
//! may carry ([`NAMED_MAX`], [`NAMED_BYTES_MAX`]).
//!
//! Invariants: a name on a backend means what [`OnBackend`] says, or belongs to the pinned client
//! that has the backend; names count in the backend's share of `prepared_max`.

use crate::backend::{Backend, BackendState, Purpose};
use crate::client::Handled;
use crate::errors::reasons::{PinReason, Refusal};
use crate::group::Group;
use crate::own_ok::OwnOk;
use crate::pair::prepared::{hides, put_closes};
use reactor::{Key, Net};
use session::holds::void::Void;
use session::last_statement::LEFT_BY_STATEMENT;
use session::prepared::UnderWay;
use session::prepared::names::Named;
use session::read_back::Properties;
use session::standing::Standing;
use session::state::Session;
use session::statement::Statement;
use session::user_variables::name_of;
use sql::classify::{self, PinCause, PinCauses, Reads, classify};
use sql::holdings::{Ended, Holdings};
use sql::lex::LexMode;
use sql::nested_kill::hides_kill;
use sql::text::Text;
use sql::text_prepared::{Name, TextPrepared, put_prepare, read};
use std::rc::Rc;
use wire::command::{Command, ReplyShape};

/// A text that is run by another.
#[derive(Debug)]
pub(crate) struct PreparedText {
    pub(crate) sql: Vec<u8>,
    /// What it does.
    pub(crate) class: classify::Statement,
    /// The session in which it was prepared.
    pub(crate) session: Rc<Session>,
    /// EXECUTE IMMEDIATE: the server prepares it now.
    pub(crate) immediate: bool,
}

/// What is to become of a text about a statement by name.
#[derive(Debug)]
pub(crate) enum Spoken {
    /// It is a text like any other.
    Plain,
    /// It has been dealt with.
    Handled(Handled),
    /// It runs this text.
    Runs(PreparedText),
}

impl<N: Net> Group<N> {
    /// A text of a client's that may be about a statement by name.
    pub(crate) fn speak_of_named(&mut self, key: Key, message: &[u8], text: &Text<'_>) -> Spoken {
        let Text { sql, mode, seen } = text;
        let (sql, mode, found) = (*sql, *mode, &seen.class);
        if found.causes != PinCauses::of(PinCause::TextPrepare) || found.multi {
            return Spoken::Plain;
        }
        match read(sql, mode) {
            Some(TextPrepared::Prepare(name, text)) => {
                Spoken::Handled(self.prepare_named(key, message, sql, (name, text)))
            }
            Some(TextPrepared::PrepareFrom(name, variable)) => {
                self.prepare_from(key, message, sql, name, &variable)
            }
            Some(TextPrepared::PrepareUnread(name)) => {
                Spoken::Handled(self.prepare_unread(key, message, sql, name))
            }
            Some(TextPrepared::Execute(name)) => self.execute_named(key, message, name),
            Some(TextPrepared::ExecuteUnread(name)) => {
                let mut spoken = self.execute_named(key, message, name);
                if let Spoken::Runs(text) = &mut spoken {
                    // What stands behind USING may be a call of anything.
                    text.class.causes.insert(PinCause::TextPrepare);
                    text.class.pin = Some(PinCause::TextPrepare);
                }
                spoken
            }
            Some(TextPrepared::Immediate(text)) => {
                // MySQL has no such statement, and runs nothing.
                let text = if mode.server.is_mysql() {
                    Vec::new()
                } else {
                    text
                };
                let Some(client) = self.clients.get(key) else {
                    return Spoken::Handled(Handled::Used);
                };
                Spoken::Runs(PreparedText {
                    class: classify(&text, mode),
                    sql: text,
                    session: client.session.clone(),
                    immediate: true,
                })
            }
            Some(TextPrepared::Deallocate(name)) => self.deallocate(key, message, sql, name),
            None => Spoken::Plain,
        }
    }

    /// PREPARE of a text that is at hand: always asks the server.
    fn prepare_named(
        &mut self,
        key: Key,
        message: &[u8],
        sql: &[u8],
        (name, text): (Name, Vec<u8>),
    ) -> Handled {
        let Some(client) = self.clients.get(key) else {
            return Handled::Used;
        };
        let mode = self
            .shared
            .server
            .lex_mode(&client.session, client.capabilities);
        if hides_kill(&text, mode, &classify(&text, mode)) {
            return self.answers().refuse_counted(key, &Refusal::Kill);
        }
        let prepared = client.prepared.as_ref();
        if prepared.is_some_and(|prepared| !prepared.has_room_for(&name, &text)) {
            return self.prepare_unread(key, message, sql, name);
        }
        let share = self.shared.prepared_of_backend(&self.settings);
        if (self.client_view(key)).is_some_and(|view| view.is_full(share)) {
            return self.answers().refuse_to_prepare(key);
        }
        let Some(client) = self.clients.get(key) else {
            return Handled::Used;
        };
        let mode = self
            .shared
            .server
            .lex_mode(&client.session, client.capabilities);
        let class = classify(&text, mode);
        let session = client.session.clone();
        if let Some(client) = self.clients.get_mut(key) {
            client.pin_without_schema(&session, (&text, &class));
            client.touch_to_prepare(&text, mode, &class);
        }
        let ended = self.clients.get(key).is_some_and(|client| {
            // What the pool did not know under this name is replaced.
            client.pins.has(PinCause::TextPrepare, &name)
        });
        if ended {
            let mut holdings = Holdings::default();
            let end = Ended::One(PinCause::TextPrepare, name.clone());
            holdings.ended.push(end);
            if let Some(client) = self.clients.get_mut(key) {
                client.plan_more(sql, holdings, Void::Never);
            }
        }
        let definition = self
            .definitions
            .define(&mut self.sessions, &text, &session, class);
        let under_way = UnderWay::named(Command::StmtPrepare, definition, Named::Prepare(name));
        self.start_named(key, message, under_way)
    }

    /// PREPARE of a user variable's value.
    fn prepare_from(
        &mut self,
        key: Key,
        message: &[u8],
        sql: &[u8],
        name: Name,
        variable: &[u8],
    ) -> Spoken {
        let Some(client) = self.clients.get(key) else {
            return Spoken::Handled(Handled::Used);
        };
        let mode = self
            .shared
            .server
            .lex_mode(&client.session, client.capabilities);
        let Some(variable) = name_of(variable, mode) else {
            return Spoken::Handled(self.prepare_unread(key, message, sql, name));
        };
        if client.is_pinned_for(PinReason::Text(PinCause::UserVariable)) {
            return Spoken::Handled(self.prepare_unread(key, message, sql, name));
        }
        let touched = client.touched.as_ref();
        if touched.is_some_and(|touched| touched.names.contains(&variable))
            && let Some(lease) = client.lease()
        {
            return Spoken::Handled(self.read_variables_ahead(key, lease));
        }
        let Some(text) = client.session.user_text(&variable) else {
            return Spoken::Handled(self.prepare_unread(key, message, sql, name));
        };
        let mut literal = Vec::new();
        put_prepare(&mut literal, &name, &text, mode);
        let Some(client) = self.clients.get(key) else {
            return Spoken::Handled(Handled::Used);
        };
        let rewritten = client.reworded(message, &literal);
        Spoken::Handled(self.prepare_named(key, &rewritten, sql, (name, text)))
    }

    /// Keeps a command until the user variables that it needs have been read back.
    fn read_variables_ahead(&mut self, key: Key, lease: Key) -> Handled {
        let session = Rc::<Session>::default();
        let nothing = self.definitions.define(
            &mut self.sessions,
            b"",
            &session,
            classify(b"", LexMode::default()),
        );
        let mut under_way = UnderWay::named(
            Command::StmtPrepare,
            nothing,
            Named::PrepareUnread(Name::default()),
        );
        under_way.reads_back = true;
        if let Some(client) = self.clients.get_mut(key) {
            client.prepared.get_or_insert_default().under_way = Some(under_way);
        }
        self.wait_for_property(key, lease, Properties::USER_VARIABLES)
    }

    /// PREPARE of a text that nobody has read: its client stays where it is.
    fn prepare_unread(&mut self, key: Key, message: &[u8], sql: &[u8], name: Name) -> Handled {
        let share = self.shared.prepared_of_backend(&self.settings);
        if (self.client_view(key)).is_some_and(|view| view.is_full(share)) {
            return self.answers().refuse_to_prepare(key);
        }
        let mut holdings = Holdings::default();
        holdings.taken.push((PinCause::TextPrepare, name.clone()));
        if let Some(client) = self.clients.get_mut(key) {
            client.plan_more(sql, holdings, Void::Failed);
        }
        let session = Rc::<Session>::default();
        let nothing = self.definitions.define(
            &mut self.sessions,
            b"",
            &session,
            classify(b"", LexMode::default()),
        );
        let named = Named::PrepareUnread(name);
        let under_way = UnderWay::named(Command::Query, nothing, named);
        self.start_named(key, message, under_way)
    }

    /// EXECUTE: runs what the client has under the name.
    fn execute_named(&mut self, key: Key, message: &[u8], name: Name) -> Spoken {
        let Some(client) = self.clients.get_mut(key) else {
            return Spoken::Handled(Handled::Used);
        };
        let prepared = client.prepared.as_ref();
        let Some(definition) = prepared.and_then(|p| p.named(&name)).cloned() else {
            if client.pins.has(PinCause::TextPrepare, &name) || client.pins.is_unread() {
                return Spoken::Plain;
            }
            return Spoken::Handled(self.use_absent(key, message, name));
        };
        let text = PreparedText {
            sql: definition.sql.to_vec(),
            class: definition.class,
            session: definition.session.clone(),
            immediate: false,
        };
        let named = Named::Execute(name);
        let under_way = UnderWay::named(Command::StmtExecute, definition, named);
        client.prepared.get_or_insert_default().under_way = Some(under_way);
        Spoken::Runs(text)
    }

    /// The EXECUTE under way runs another text in place of its client's: what that asks about the
    /// statement before stands in it as values. Its backend prepares it under the client's name,
    /// and the client's own text again when that is executed next.
    pub(crate) fn execute_instead(&mut self, key: Key, sql: &[u8], text: &PreparedText) {
        let mut class = text.class;
        class.reads = Reads::NONE;
        let definition = self
            .definitions
            .define(&mut self.sessions, sql, &text.session, class);
        let client = self.clients.get_mut(key);
        let prepared = client.and_then(|client| client.prepared.as_mut());
        if let Some(under_way) = prepared.and_then(|prepared| prepared.under_way.as_mut()) {
            under_way.definition = definition;
        }
    }

    /// DEALLOCATE PREPARE: what a backend has stays there for others.
    fn deallocate(&mut self, key: Key, message: &[u8], sql: &[u8], name: Name) -> Spoken {
        if self
            .client_view(key)
            .is_some_and(|view| view.is_being_asked(Purpose::Warnings))
        {
            // What comes back is of the statement before.
            return Spoken::Handled(self.waiters().wait_outside(key));
        }
        let mysql = self.shared.server.flavour.is_mysql();
        let Some(client) = self.clients.get_mut(key) else {
            return Spoken::Handled(Handled::Used);
        };
        let known = client.prepared.as_ref().and_then(|p| p.named(&name));
        if known.is_some() {
            if let Some(prepared) = &mut client.prepared {
                prepared.forget_name(&name);
            }
            client.forget_command();
            if mysql {
                client.last.answered_clean(0);
            } else {
                // The statement before has left what a question shows still.
                client.last.answered(0);
                client.last.conditions = 0;
            }
            self.answers().ok(key, &OwnOk::PLAIN);
            return Spoken::Handled(Handled::Used);
        }
        if client.pins.has(PinCause::TextPrepare, &name) {
            let mut holdings = Holdings::default();
            let end = Ended::One(PinCause::TextPrepare, name.clone());
            holdings.ended.push(end);
            if let Some(client) = self.clients.get_mut(key) {
                client.plan_more(sql, holdings, Void::Never);
            }
            let session = Rc::<Session>::default();
            let nothing = self.definitions.define(
                &mut self.sessions,
                b"",
                &session,
                classify(b"", LexMode::default()),
            );
            let under_way = UnderWay::named(Command::Query, nothing, Named::Deallocate(name));
            return Spoken::Handled(self.start_named(key, message, under_way));
        }
        if client.pins.is_unread() {
            return Spoken::Plain;
        }
        Spoken::Handled(self.use_absent(key, message, name))
    }

    /// A name that the client does not have: the server says so.
    fn use_absent(&mut self, key: Key, message: &[u8], name: Name) -> Handled {
        let session = Rc::<Session>::default();
        let nothing = self.definitions.define(
            &mut self.sessions,
            b"",
            &session,
            classify(b"", LexMode::default()),
        );
        let under_way = UnderWay::named(Command::Query, nothing, Named::Absent(name));
        self.start_named(key, message, under_way)
    }

    fn start_named(&mut self, key: Key, message: &[u8], under_way: UnderWay) -> Handled {
        let Some(client) = self.clients.get_mut(key) else {
            return Handled::Used;
        };
        client.prepared.get_or_insert_default().under_way = Some(under_way);
        let mut statement = Statement::plain(ReplyShape::Results);
        statement.explain();
        statement.standing = Standing::Anywhere;
        self.start(key, message, statement)
    }

    /// A client's text is such code. If names have to be taken from its backend in front of it,
    /// what its last statement has left there is gone before the text could ask for it. Says
    /// whether that is being read back just now, and to be waited for.
    pub(crate) fn lose_to_hidden_names(&mut self, key: Key) -> bool {
        let Some(client) = self.clients.get_mut(key) else {
            return false;
        };
        let backend = client.lease().and_then(|lease| self.backends.get(lease));
        let named = |b: &Backend<N::Sock>| b.prepared.named.iter().any(|name| hides(client, name));
        if !backend.is_some_and(named) {
            return false;
        }
        client.last.disown(LEFT_BY_STATEMENT);
        self.client_view(key)
            .is_some_and(|view| view.is_read_back_now(LEFT_BY_STATEMENT))
    }

    /// Closes what idle backends have prepared beyond their share: that of each is smaller since
    /// the server takes fewer (`max_prepared_stmt_count`), and clients' own would be refused.
    pub(crate) fn give_statements_back(&mut self) {
        let share = self.shared.prepared_of_backend(&self.settings);
        for lease in self.backends.keys() {
            let Some(backend) = self.backends.get_mut(lease) else {
                continue;
            };
            let idle = backend.state() == BackendState::Idle;
            if !idle || backend.prepared.count() <= share {
                continue;
            }
            let mut out = Vec::new();
            while backend.prepared.count() > share
                && let Some(id) = backend.prepared.take_oldest()
            {
                put_closes(&mut out, &[id]);
            }
            // The rest are names, whose end has a reply.
            if backend.prepared.count() > share {
                self.let_go(lease);
            } else {
                self.backend_writer().send(lease, &out);
            }
        }
    }
}
