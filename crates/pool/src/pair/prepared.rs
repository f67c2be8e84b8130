//! Prepared statements of a client on its backend: what is sent for a command, and what came of it.
//!
//! The client's id becomes the server's, long data goes in front of its execution, and types that
//! the client left out are put in unless the server was sent the same ones last. What the backend
//! lacks is prepared ahead; what it has too much of is closed. When the reply is complete, client
//! and backend remember what now exists: a statement, a cursor.
//!
//! Invariant: a backend has at most its share of statements, but for those that cursors hold.

use crate::backend::relay::Adjustments;
use crate::backend::{ForSession, InFlight};
use crate::client::buffers::message::payload_of;
use crate::pair::Pair;
use crate::server::facts::ServerFacts;
use session::prepared::{Definition, Held, How, Statements, UnderWay, Wanted};
use session::reply_summary::ReplySummary;
use std::rc::Rc;
use wire::command::{Command, ReplyShape, put_command};
use wire::execution::{TypeList, Types, put_with_types, set_statement_id, types};
use wire::packet::{HEADER_LEN, PAYLOAD_MAX};
use wire::status;

/// Parts of the reply to a command about a prepared statement that its client is told otherwise
/// than the server says them: its own id of the statement, and what it knows of that.
pub(crate) fn adjustments(prepared: &Statements) -> Adjustments {
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

impl Pair<'_> {
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
        if let Some(prepared) = self.client.prepared.as_mut() {
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
        let command = InFlight::own(Some(self.owner), ForSession::Ahead, ReplyShape::Prepared);
        self.flight.expect(command);
        self.client.prepared.as_mut()?.under_way = Some(under_way);
        Some(())
    }

    fn put_execution(&mut self, under_way: &mut UnderWay, message: &[u8], out: &mut Vec<u8>) {
        let how = how(under_way, self.context.server);
        let (client, backend) = (&mut *self.client, &mut *self.backend);
        let Some(held) = (client.prepared.as_mut()).and_then(|p| p.get_mut(under_way.id)) else {
            return;
        };
        let command = under_way.command;
        let (form, params) = (self.ends.on.form, usize::from(held.params));
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
        if let Some(mut long) = held.long.take() {
            long.count(None);
            put_long_data(out, long.messages(), entry.id);
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
        if failed && !unread && under_way.runs_outside(&client.state) {
            client.owe_schema(self.ends.capabilities, self.context.server);
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
            prepared.count(&self.context.retained.statements);
        }
        let open = |flags| flags & (status::CURSOR_EXISTS | status::LAST_ROW_SENT);
        let flags = summary.status.unwrap_or_default();
        let is_open = match under_way.command {
            Command::StmtPrepare => {
                let definition = preparing.unwrap_or(under_way.definition);
                let header = summary.prepared.filter(|_| !failed);
                prepared.note_new(under_way.id, definition, header);
                prepared.count(&self.context.retained.statements);
                client.prepared.forget_command();
                return None;
            }
            Command::StmtFetch if failed => return None,
            Command::StmtFetch => flags & status::LAST_ROW_SENT == 0,
            Command::StmtReset => failed,
            _ => under_way.cursor && !failed && open(flags) == status::CURSOR_EXISTS,
        };
        if failed
            && let Some(mut long) = under_way.long.take()
            && unread
            && let Some(held) = prepared.get_mut(under_way.id)
        {
            // The server keeps them, and its complaint about them, until a reset: so must the
            // client, and nobody else may meet them.
            long.count(Some(&self.context.retained.long_data));
            held.long = Some(long);
            let sent_to = under_way.sent_to;
            (backend.prepared).take(&under_way.definition, sent_to);
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
            (backend.prepared).take(&under_way.definition, sent_to);
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
        (backend.prepared).set_cursor(what, is_open.then_some(under_way.sent_to));
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

pub(crate) fn how(under_way: &UnderWay, server: &ServerFacts) -> How {
    How {
        mysql: server.flavour.is_mysql(),
        cursor: under_way.cursor,
    }
}

pub(crate) fn wanted<'a>(given: Types<'a>, held: &'a Held) -> Wanted<'a> {
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
