//! Executions of a client: the prepared statement that is meant, its parameters, and whether a
//! backend has it ([`crate::pair::prepared`]).
//!
//! Nothing here sends; a statement's definition is never changed, only replaced.

use crate::backend::Backend;
use crate::client::{Client, ClientSession};
use crate::errors::reasons::PinReason;
use crate::pair::prepared::{head_of, how, wanted};
use crate::server::facts::ServerFacts;
use crate::statements::stored_code::SchemaText;
use session::prepared::{Definition, Held, Statements, UnderWay};
use session::read_back::Properties;
use session::state::{Interner, Session};
use session::text::may_ask_for_schema;
use sql::classify::{self, Verb};
use std::ops::{Deref, DerefMut};
use std::rc::Rc;
use wire::command::Command;
use wire::execution::{LAST_PREPARED, types};

/// Prepared statements of a client, in a box that is there only while it has any.
#[derive(Debug, Default)]
pub(crate) struct Prepared(Option<Box<Statements>>);

impl Deref for Prepared {
    type Target = Option<Box<Statements>>;

    fn deref(&self) -> &Option<Box<Statements>> {
        &self.0
    }
}

impl DerefMut for Prepared {
    fn deref_mut(&mut self) -> &mut Option<Box<Statements>> {
        &mut self.0
    }
}

impl Prepared {
    /// Its statement that an id means.
    pub(crate) fn statement_meant(&self, id: u32, mysql: bool) -> Option<u32> {
        let prepared = self.0.as_ref()?;
        let id = match prepared.last {
            Some(last) if id == LAST_PREPARED && !mysql => last,
            _ => id,
        };
        prepared.get(id).map(|held: &Held| held.id)
    }

    /// True if nothing more than its own command belongs to an execution.
    pub(crate) fn executes_whole(&self, command: Command, id: u32) -> bool {
        let held = self.0.as_ref().and_then(|all| all.get(id));
        command == Command::StmtExecute
            && held.is_some_and(|held| !held.cursor && held.long.is_none())
    }

    /// Notes that its command goes to the backend where a statement's cursor is open, if it is.
    pub(crate) fn goes_to_cursor(&mut self, command: Command, id: u32) -> bool {
        let Some(prepared) = self.0.as_mut() else {
            return false;
        };
        let Some(definition) = prepared.cursor_of(id).cloned() else {
            return false;
        };
        prepared.under_way = Some(UnderWay::new(command, id, definition));
        true
    }

    /// Forgets long data that was to be executed with.
    pub(crate) fn drop_long_data(&mut self, id: u32) {
        let prepared = self.0.as_mut();
        if let Some(held) = prepared.and_then(|all| all.get_mut(id)) {
            held.overlong = false;
            held.long = None;
        }
    }

    /// The statement that its command is about.
    pub(crate) fn under_way(&self) -> Option<&UnderWay> {
        self.0.as_ref()?.under_way.as_ref()
    }

    /// Notes whether something is read back for the sake of its execution; gives whether it was.
    pub(crate) fn mark_read_back(&mut self, is_under_way: bool) -> bool {
        let prepared = self.0.as_mut();
        let under_way = prepared.and_then(|prepared| prepared.under_way.as_mut());
        under_way.is_some_and(|one| std::mem::replace(&mut one.reads_back, is_under_way))
    }

    /// Forgets a command about a prepared statement that was not carried out, and the box when
    /// nothing else is in it.
    pub(crate) fn forget_command(&mut self) {
        if let Some(prepared) = &mut self.0 {
            prepared.under_way = None;
            if prepared.is_empty() {
                self.0 = None;
            }
        }
    }
}

impl<S> Client<S> {
    /// A text that it has prepared. A server looks names up where they were prepared, or where it
    /// is now.
    pub(crate) fn prepared_text<'t>(
        &self,
        definition: &'t Definition,
        server: &ServerFacts,
    ) -> SchemaText<'t> {
        let schema = definition.session.schema.as_deref();
        SchemaText {
            sql: &definition.sql,
            mode: server.lex_mode(&definition.session, self.capabilities),
            found: &definition.class,
            schema: schema.filter(|schema| self.session.state.schema.as_deref() == Some(*schema)),
            names_none_of: None,
        }
    }

    /// Drops the answered command at the front of its input, with its long data.
    pub(crate) fn drop_command(&mut self) {
        let len = self.input.command_len();
        self.drop_input(len);
        let under_way = (self.session.prepared.as_mut()).and_then(|p| p.under_way.take());
        if let Some(under_way) = under_way {
            self.session.prepared.drop_long_data(under_way.id);
        }
    }
}

impl ClientSession {
    /// Plans that it is pinned for a text that asks for the default schema, or sets one, when it is
    /// prepared in a session without one.
    pub(crate) fn pin_without_schema(
        &mut self,
        session: &Session,
        (sql, class): (&[u8], &classify::Statement),
    ) {
        let asks = || class.verb == Verb::Use || may_ask_for_schema(sql);
        if session.schema.is_none() && asks() {
            // No command takes a schema away again, so only here can it be prepared without one.
            self.pin_by(PinReason::PreparedSchema, sql);
        }
    }

    /// True if it prepares a statement in a session that is not known whole.
    pub(crate) fn prepares_unread(&self) -> bool {
        let prepares = |under_way: &UnderWay| under_way.command == Command::StmtPrepare;
        self.last.pending.changed.intersects(Properties::COLLATION)
            && !self.pins.is_pinned_for(PinReason::WideCharset)
            && self.prepared.under_way().is_some_and(prepares)
    }

    /// The session in which a definition can be prepared for it: its own, but without a
    /// schema it can be any where the client now has one, since the text names none.
    pub(crate) fn session_to_prepare_in(
        &self,
        session: &Rc<Session>,
        sessions: &mut Interner,
    ) -> Option<Rc<Session>> {
        match (&session.schema, &self.state.schema) {
            (None, Some(schema)) => {
                let mut with_schema = (**session).clone();
                with_schema.schema = Some(schema.clone());
                Some(sessions.intern(with_schema))
            }
            // There would be no way back to a session without a schema.
            (Some(_), None) => None,
            _ => Some(session.clone()),
        }
    }

    /// True if a backend has what its execution needs.
    pub(crate) fn is_prepared_on<S>(
        &self,
        backend: &Backend<S>,
        message: &[u8],
        server: &ServerFacts,
    ) -> bool {
        let Some(prepared) = self.prepared.as_ref() else {
            return true;
        };
        let Some(under_way) = &prepared.under_way else {
            return true;
        };
        let executes = matches!(
            under_way.command,
            Command::StmtExecute | Command::StmtBulkExecute
        );
        let Some(held) = prepared.get(under_way.id).filter(|_| executes) else {
            return true;
        };
        let (head, params) = (head_of(message), usize::from(held.params));
        let given = types(under_way.command, head, params, backend.form());
        let what = (&under_way.definition, under_way.id);
        let wanted = wanted(given, held);
        (backend.session.prepared).has(what, wanted, how(under_way, server))
    }
}
