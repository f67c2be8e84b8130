//! Prepared statements of a client on its backend: what is sent for a command, and what came of it.
//!
//! The client's id becomes the server's, long data goes in front of its execution, and types that
//! the client left out are put in unless the server was sent the same ones last. What the backend
//! lacks is prepared ahead; what it has too much of is closed. When the reply is complete, client
//! and backend remember what now exists: a statement, a cursor.
//!
//! Invariant: a backend has at most its share of statements, but for those that cursors hold.

use crate::backend::relay::Adjustments;
use crate::backend::{Backend, InFlight, Purpose};
use crate::buffers::message::payload_of;
use crate::client::Client;
use crate::errors::reasons::PinReason;
use crate::pair::Pair;
use crate::server::facts::ServerFacts;
use crate::statements::stored_code::SchemaText;
use session::prepared::{Definition, Definitions, Held, How, Statements, UnderWay, Wanted};
use session::read_back::Properties;
use session::reply_summary::ReplySummary;
use session::state::{Interner, Session};
use session::text::may_ask_for_schema;
use sql::classify::{self, Verb};
use std::rc::Rc;
use wire::command::{Command, ReplyShape, put_command};
use wire::execution::{LAST_PREPARED, TypeList, Types, put_with_types, set_statement_id, types};
use wire::packet::{HEADER_LEN, PAYLOAD_MAX};
use wire::status;

impl<S> Client<S> {
    /// Its statement that an id means.
    pub(crate) fn statement_meant(&self, id: u32, mysql: bool) -> Option<u32> {
        let prepared = self.prepared.as_ref()?;
        let id = match prepared.last {
            Some(last) if id == LAST_PREPARED && !mysql => last,
            _ => id,
        };
        prepared.get(id).map(|held: &Held| held.id)
    }

    /// True if nothing more than its own command belongs to an execution.
    pub(crate) fn executes_whole(&self, command: Command, id: u32) -> bool {
        let held = self.prepared.as_ref().and_then(|all| all.get(id));
        command == Command::StmtExecute
            && held.is_some_and(|held| !held.cursor && held.long.is_none())
    }

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
            schema: schema.filter(|schema| self.session.schema.as_deref() == Some(*schema)),
            names_none_of: None,
        }
    }

    /// Notes that its command goes to the backend where a statement's cursor is open, if it is.
    pub(crate) fn goes_to_cursor(&mut self, command: Command, id: u32) -> bool {
        let Some(prepared) = &mut self.prepared else {
            return false;
        };
        let Some(definition) = prepared.cursor_of(id).cloned() else {
            return false;
        };
        prepared.under_way = Some(UnderWay::new(command, id, definition));
        true
    }

    /// Forgets long data that was to be executed with; returns how many bytes that was.
    pub(crate) fn drop_long_data(&mut self, id: u32) -> usize {
        let prepared = self.prepared.as_mut();
        let Some(held) = prepared.and_then(|all| all.get_mut(id)) else {
            return 0;
        };
        held.overlong = false;
        held.long.take().map_or(0, |long| long.len())
    }

    /// The statement that its command is about.
    pub(crate) fn under_way(&self) -> Option<&UnderWay> {
        self.prepared.as_ref()?.under_way.as_ref()
    }

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
            && !self.is_pinned_for(PinReason::WideCharset)
            && self.under_way().is_some_and(prepares)
    }

    /// The session in which a definition can be prepared for it: its own, but without a
    /// schema it can be any where the client now has one, since the text names none.
    pub(crate) fn session_to_prepare_in(
        &self,
        session: &Rc<Session>,
        sessions: &mut Interner,
    ) -> Option<Rc<Session>> {
        match (&session.schema, &self.session.schema) {
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

    /// The command at the front of its input is answered; returns how many bytes of long data went
    /// with it.
    pub(crate) fn drop_command(&mut self) -> usize {
        let len = self.command_len();
        self.drop_input(len);
        let under_way = self.prepared.as_mut().and_then(|p| p.under_way.take());
        under_way.map_or(0, |under_way| self.drop_long_data(under_way.id))
    }

    /// True if a backend has what its execution needs.
    pub(crate) fn is_prepared_on(
        &self,
        backend: &Backend<S>,
        message: &[u8],
        server: &ServerFacts,
    ) -> bool {
        let Some(prepared) = &self.prepared else {
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
        let given = types(under_way.command, head, params, backend.form);
        let what = (&under_way.definition, under_way.id);
        let wanted = wanted(given, held);
        backend.prepared.has(what, wanted, how(under_way, server))
    }
}

/// Parts of the reply to a command about a prepared statement that its client is told otherwise
/// than the server says them: its own id of the statement, and what it knows of that.
pub(super) fn adjustments(prepared: &Statements) -> Adjustments {
    let Some(under_way) = &prepared.under_way else {
        return Adjustments::default();
    };
    // Prepared without a schema it runs without one, and a server says the client's again.
    let fresh = under_way.definition.session.schema.is_none();
    let columns = || {
        let known = prepared.get(under_way.id)?.columns;
        // A statement without a result, CALL among them, has none to compare.
        (known > 0).then_some(known)
    };
    match under_way.command {
        Command::StmtPrepare => Adjustments {
            id: Some(under_way.id),
            ..Adjustments::default()
        },
        Command::StmtExecute => Adjustments {
            columns: columns(),
            schema: fresh,
            ..Adjustments::default()
        },
        Command::StmtBulkExecute => Adjustments {
            schema: fresh,
            ..Adjustments::default()
        },
        _ => Adjustments::default(),
    }
}

impl<S> Backend<S> {
    /// It has answered a command, and may have prepared what it was to: returns the definition, and
    /// the ids of what is of no use any more.
    pub(crate) fn take_prepared(
        &mut self,
        summary: &ReplySummary,
        definitions: &mut Definitions,
    ) -> Option<(Rc<Definition>, Vec<u32>)> {
        let definition = self.prepared.preparing.take()?;
        // What was read back in front of it belongs to the session in which it was prepared.
        let definition = definitions.with_session(&definition, self.session.clone());
        let mut old = Vec::new();
        if let Some(new) = summary.prepared {
            // Of this session, which may be another than the one known in front of it. Where its
            // collation is not read back, the same definition was prepared in another one.
            old = self.prepared.take_all_of(&definition);
            self.prepared.add(definition.clone(), new.id);
        }
        Some((definition, old))
    }

    /// Its client has closed a statement whose cursor is open here: what closes that here.
    pub(crate) fn close_cursor(&mut self, definition: &Rc<Definition>, id: u32) -> Option<Vec<u8>> {
        let sent_to = self.prepared.with_cursor((definition, id))?;
        self.prepared.take(definition, sent_to);
        let mut out = Vec::new();
        put_closes(&mut out, &[sent_to]);
        Some(out)
    }

    /// Notes that a backend is about to prepare a statement, and closes what is too many for that.
    fn make_room_for(&mut self, under_way: &UnderWay, share: usize, out: &mut Vec<u8>) {
        self.prepared.preparing = Some(under_way.definition.clone());
        // The same text again: what it means may have changed since.
        let old = self.prepared.take_all_of(&under_way.definition);
        put_closes(out, &old);
        while self.prepared.count() >= share
            && let Some(id) = self.prepared.take_oldest()
        {
            put_closes(out, &[id]);
        }
    }
}

impl<S> Pair<'_, S> {
    /// The client's command, which is about this statement, in the words that the backend knows;
    /// in front of it what makes room for it among the `share` of statements of the backend.
    pub(crate) fn put_prepared(
        &mut self,
        mut under_way: UnderWay,
        message: &[u8],
        share: usize,
    ) -> Vec<u8> {
        let mut out = Vec::with_capacity(message.len() + 64);
        match under_way.command {
            Command::StmtPrepare => {
                self.backend.make_room_for(&under_way, share, &mut out);
                out.extend_from_slice(message);
            }
            Command::StmtExecute | Command::StmtBulkExecute => {
                self.put_execution(&mut under_way, message, &mut out);
            }
            _ => {
                let what = (&under_way.definition, under_way.id);
                let open = self.backend.prepared.with_cursor(what);
                under_way.sent_to = open.unwrap_or(0);
                out.extend_from_slice(message);
                set_statement_id(&mut out, under_way.sent_to);
            }
        }
        if let Some(prepared) = &mut self.client.prepared {
            if under_way.command == Command::StmtPrepare {
                self.client.statements_made = under_way.id;
            }
            prepared.under_way = Some(under_way);
        }
        out
    }

    /// Writes what prepares the definition of the client's command on its backend, ahead of that.
    pub(crate) fn prepare_ahead(&mut self, share: usize, out: &mut Vec<u8>) -> Option<()> {
        let mut under_way = self.client.prepared.as_mut()?.under_way.take()?;
        under_way.ahead = true;
        self.backend.make_room_for(&under_way, share, out);
        self.note_prepared_ahead(&under_way.definition);
        put_command(out, Command::StmtPrepare, &under_way.definition.sql);
        let command = InFlight::own(Some(self.owner), Purpose::Ahead, ReplyShape::Prepared);
        self.backend.expect(command);
        self.client.prepared.as_mut()?.under_way = Some(under_way);
        Some(())
    }

    fn put_execution(&mut self, under_way: &mut UnderWay, message: &[u8], out: &mut Vec<u8>) {
        let how = how(under_way, self.context.server);
        let (client, backend) = (&mut *self.client, &mut *self.backend);
        let Some(held) = client
            .prepared
            .as_mut()
            .and_then(|p| p.get_mut(under_way.id))
        else {
            return;
        };
        let command = under_way.command;
        let (form, params) = (backend.form, usize::from(held.params));
        let given = types(command, head_of(message), params, form);
        let now = backend.prepared.use_now();
        let what = (&under_way.definition, under_way.id);
        let wanted = wanted(given, held);
        let Some(entry) = backend.prepared.find(what, wanted, how) else {
            return;
        };
        entry.used = now;
        entry.began_with_cursor.get_or_insert(how.cursor);
        under_way.sent_to = entry.id;
        if let Some(long) = held.long.take() {
            *self.context.long_data -= long.len();
            put_long_data(out, &long, entry.id);
            under_way.long = Some(long);
        }
        let start = out.len();
        match (given, &held.types) {
            (Types::Earlier, Some(types)) if entry.types.as_ref() != Some(types) => {
                put_with_types(out, command, &payload_of(message), types, form);
                entry.types = Some(types.clone());
            }
            _ => out.extend_from_slice(message),
        }
        set_statement_id(&mut out[start..], entry.id);
        if let Types::Sent(types) = given {
            match &entry.types {
                // Equal ones are one object from here on.
                Some(sent) if types.is(sent) => held.types = Some(sent.clone()),
                _ => entry.types.clone_from(&held.types),
            }
        }
        if given == Types::Unreadable {
            // How much of it the server takes is unknown, so nobody else is to use it after that.
            let id = entry.id;
            put_closes(out, &[id]);
            backend.prepared.take(&under_way.definition, id);
        }
    }

    /// The reply to a statement is complete: notes what it has prepared (`preparing`, if the
    /// backend did), opened or closed. Returns a statement of the backend's that is of no use any
    /// more.
    pub(crate) fn note_prepared(
        &mut self,
        preparing: Option<Rc<Definition>>,
        summary: &ReplySummary,
    ) -> Option<u32> {
        let (client, backend) = (&mut *self.client, &mut *self.backend);
        let prepared = client.prepared.as_mut();
        let mut under_way = prepared.and_then(|prepared| prepared.under_way.take())?;
        let failed = summary.error.is_some();
        let unread = leaves_long_data(summary);
        if failed && !unread && under_way.runs_outside(&client.session) {
            client.owe_schema(self.context.server);
        }
        let prepared = client.prepared.as_mut()?;
        let executes = matches!(
            under_way.command,
            Command::StmtExecute | Command::StmtBulkExecute
        );
        let malformed = summary.is_error(1835) && self.context.server.flavour.is_mysql();
        if executes {
            prepared.settle_types(under_way.id, !malformed);
        }
        if executes && malformed {
            prepared.count(self.context.statements);
        }
        let open = |flags| flags & (status::CURSOR_EXISTS | status::LAST_ROW_SENT);
        let flags = summary.status.unwrap_or_default();
        let is_open = match under_way.command {
            Command::StmtPrepare => {
                let definition = preparing.unwrap_or(under_way.definition);
                let header = summary.prepared.filter(|_| !failed);
                prepared.note_new(under_way.id, definition, header);
                prepared.count(self.context.statements);
                client.forget_command();
                return None;
            }
            Command::StmtFetch if failed => return None,
            Command::StmtFetch => flags & status::LAST_ROW_SENT == 0,
            Command::StmtReset => failed,
            _ => under_way.cursor && !failed && open(flags) == status::CURSOR_EXISTS,
        };
        if failed
            && let Some(long) = under_way.long.take()
            && unread
            && let Some(held) = prepared.get_mut(under_way.id)
        {
            // The server keeps them, and its complaint about them, until a reset: so must the
            // client, and nobody else may meet them.
            *self.context.long_data += long.len();
            held.long = Some(long);
            let sent_to = under_way.sent_to;
            backend.prepared.take(&under_way.definition, sent_to);
            return Some(sent_to);
        }
        if executes && is_unread(summary) {
            let on = prepared.cursor_of(under_way.id).cloned();
            let open = on.and_then(|on| backend.prepared.with_cursor((&on, under_way.id)));
            if open.is_none() {
                prepared.set_cursor(under_way.id, None);
            }
            let sent_to = under_way.sent_to;
            if !malformed || open == Some(sent_to) {
                return None;
            }
            // The server has not taken the types that it was sent.
            backend.prepared.take(&under_way.definition, sent_to);
            return Some(sent_to);
        }
        let held = prepared.get_mut(under_way.id).filter(|h| h.columns > 0);
        if let (Some(columns), Some(held)) = (summary.columns, held) {
            held.columns = columns;
        }
        let what = (&under_way.definition, under_way.id);
        // One that is open on something else, as on another text with other counts in it, is
        // fetched from no more.
        let open = prepared.cursor_of(under_way.id).cloned();
        let open = open.and_then(|on| Some((backend.prepared.with_cursor((&on, what.1))?, on)));
        let other = open.filter(|(id, _)| *id != under_way.sent_to);
        if let Some((id, on)) = &other {
            backend.prepared.take(on, *id);
        }
        backend
            .prepared
            .set_cursor(what, is_open.then_some(under_way.sent_to));
        if prepared.set_cursor(under_way.id, is_open.then_some(what.0)) && is_open {
            *self.context.counts.pins.entry("cursor").or_default() += 1;
        }
        other.map(|(id, _)| id)
    }
}

/// True if a server could not read an execution. It says so before it closes the cursor that the
/// execution before has opened.
fn is_unread(summary: &ReplySummary) -> bool {
    summary.is_error(1835) || is_of_arguments(summary)
}

/// True if a server still has the long data of an execution that failed: one that it did not read
/// (1835), or one to which data for no parameter had come (1210, of another function). Of an
/// execution whose types cannot have them, it drops them (seen on MariaDB 10.11 and MySQL 9.7).
fn leaves_long_data(summary: &ReplySummary) -> bool {
    summary.is_error(1835) || summary.is_error(1210) && !is_of_arguments(summary)
}

/// True if a server took the arguments of an execution apart and could not use them.
fn is_of_arguments(summary: &ReplySummary) -> bool {
    let of_execution = |(_, text): &(u16, String)| text.contains("stmt_execute");
    summary.is_error(1210) && summary.error.as_ref().is_some_and(of_execution)
}

fn how(under_way: &UnderWay, server: &ServerFacts) -> How {
    How {
        mysql: server.flavour.is_mysql(),
        cursor: under_way.cursor,
    }
}

fn wanted<'a>(given: Types<'a>, held: &'a Held) -> Wanted<'a> {
    match (given, &held.types) {
        (Types::Sent(types), _) => Wanted::Types(types),
        (Types::NoParameters, _) => Wanted::Types(TypeList::plain(&[])),
        (Types::Earlier | Types::Unreadable, Some(types)) => Wanted::Types(TypeList::plain(types)),
        (Types::Earlier | Types::Unreadable, None) => Wanted::Unmodified,
    }
}

/// Appends COM_STMT_CLOSE for each id.
pub(crate) fn put_closes(out: &mut Vec<u8>, ids: &[u32]) {
    for id in ids {
        wire::command::put_command(out, Command::StmtClose, &id.to_le_bytes());
    }
}

/// Appends messages of long data, with the server's id in each.
fn put_long_data(out: &mut Vec<u8>, messages: &[u8], id: u32) {
    let mut at = 0;
    while let wire::packet::Frame::Whole { total, .. } = wire::packet::frame(&messages[at..]) {
        let start = out.len();
        out.extend_from_slice(&messages[at..at + total]);
        set_statement_id(&mut out[start..], id);
        at += total;
    }
}

/// The payload's first packet, which is where everything stands that is looked at here.
pub(crate) fn head_of(message: &[u8]) -> &[u8] {
    let end = message.len().min(HEADER_LEN + PAYLOAD_MAX);
    &message[HEADER_LEN..end]
}
