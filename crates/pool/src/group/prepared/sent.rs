//! What a backend is sent for a client's command about a prepared statement, and what came of it.
//!
//! The client's id becomes the server's, long data goes in front of its execution, and types that
//! the client left out are put in unless the server was sent the same ones last. When the reply is
//! complete, client and backend remember what now exists: a statement, a cursor.

use super::commands::{head_of, put_closes, put_long_data};
use crate::backend::relay::Told;
use crate::buffers::message::payload_of;
use crate::client::Client;
use crate::group::Group;
use reactor::{Key, Net};
use session::prepared::names::Named;
use session::prepared::{Held, How, UnderWay, Wanted};
use session::reply_summary::ReplySummary;
use std::rc::Rc;
use wire::command::Command;
use wire::execution::{TypeList, Types, put_with_types, set_statement_id, types};
use wire::status;

impl<N: Net> Group<N> {
    /// Sends a client's command to the backend that it has, in the words that the backend knows.
    pub(crate) fn send_command(&mut self, key: Key, lease: Key, message: &[u8]) {
        let under_way = self
            .clients
            .get_mut(key)
            .and_then(|client| client.prepared.as_mut()?.under_way.take());
        let Some(mut under_way) = under_way else {
            return self.send_message(lease, message);
        };
        let mut out = Vec::with_capacity(message.len() + 64);
        match under_way.command {
            _ if under_way.named.is_some() => {
                let closed = self.put_for_named(lease, &under_way, &mut out);
                self.note_deallocations(key, lease, closed, 1);
                out.extend_from_slice(message);
            }
            Command::StmtPrepare => {
                let closed = self.make_room_for(lease, &under_way, &mut out);
                self.note_deallocations(key, lease, closed, 1);
                out.extend_from_slice(message);
            }
            Command::StmtExecute | Command::StmtBulkExecute => {
                self.put_execution(key, lease, &mut under_way, message, &mut out);
            }
            _ => {
                let what = (&under_way.definition, under_way.id);
                let backend = self.backends.get(lease);
                let open = backend.and_then(|backend| backend.prepared.with_cursor(what));
                under_way.sent_to = open.unwrap_or(0);
                out.extend_from_slice(message);
                set_statement_id(&mut out, under_way.sent_to);
            }
        }
        if let Some(client) = self.clients.get_mut(key)
            && let Some(prepared) = &mut client.prepared
        {
            if under_way.command == Command::StmtPrepare && under_way.named.is_none() {
                client.statements_made = under_way.id;
            }
            prepared.under_way = Some(under_way);
        }
        self.send_backend(lease, &out);
    }

    /// Notes that a backend is about to prepare a statement, and closes what is too many for that.
    /// Gives how many commands with a reply were written for that.
    pub(super) fn make_room_for(
        &mut self,
        lease: Key,
        under_way: &UnderWay,
        out: &mut Vec<u8>,
    ) -> usize {
        let Some(backend) = self.backends.get_mut(lease) else {
            return 0;
        };
        backend.prepared.preparing = Some(under_way.definition.clone());
        if let Some(Named::Execute(name)) = &under_way.named {
            backend.prepared.set_named(name, None);
        } else {
            // The same text again: what it means may have changed since.
            let old = backend.prepared.take_all_of(&under_way.definition);
            put_closes(out, &old);
        }
        self.put_room(lease, out)
    }

    fn put_execution(
        &mut self,
        key: Key,
        lease: Key,
        under_way: &mut UnderWay,
        message: &[u8],
        out: &mut Vec<u8>,
    ) {
        let how = self.how(under_way);
        let (Some(client), Some(backend)) =
            (self.clients.get_mut(key), self.backends.get_mut(lease))
        else {
            return;
        };
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
            self.long_data -= long.len();
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

    fn how(&self, under_way: &UnderWay) -> How {
        How {
            mysql: self.shared.server.flavour.is_mysql(),
            cursor: under_way.cursor,
        }
    }

    /// Whether the backend of a client has what its execution needs.
    pub(crate) fn is_prepared(&self, key: Key, lease: Key, message: &[u8]) -> bool {
        let (Some(client), Some(backend)) = (self.clients.get(key), self.backends.get(lease))
        else {
            return true;
        };
        let Some(prepared) = &client.prepared else {
            return true;
        };
        let Some(under_way) = &prepared.under_way else {
            return true;
        };
        let executes = matches!(
            under_way.command,
            Command::StmtExecute | Command::StmtBulkExecute
        );
        if let Some(Named::Execute(name)) = &under_way.named {
            return backend.prepared.has_named(name, &under_way.definition);
        }
        let Some(held) = prepared.get(under_way.id).filter(|_| executes) else {
            return true;
        };
        let (head, params) = (head_of(message), usize::from(held.params));
        let given = types(under_way.command, head, params, backend.form);
        let what = (&under_way.definition, under_way.id);
        let wanted = wanted(given, held);
        backend.prepared.has(what, wanted, self.how(under_way))
    }

    /// The reply to a statement is complete: notes what it has prepared, opened or closed.
    /// `owner` is gone when the client is.
    pub(crate) fn note_prepared(&mut self, lease: Key, owner: Option<Key>, summary: &ReplySummary) {
        let Some(backend) = self.backends.get_mut(lease) else {
            return;
        };
        let preparing = backend.prepared.preparing.take().map(|definition| {
            // What was read back in front of it belongs to the session in which it was prepared.
            let session = backend.session.clone();
            self.definitions.with_session(&definition, session)
        });
        if let (Some(definition), Some(new)) = (&preparing, summary.prepared) {
            backend.prepared.add(definition.clone(), new.id);
        }
        let Some(client) = owner.and_then(|owner| self.clients.get_mut(owner)) else {
            return;
        };
        let prepared = client.prepared.as_mut();
        let Some(mut under_way) = prepared.and_then(|prepared| prepared.under_way.take()) else {
            return;
        };
        let failed = summary.error.is_some();
        let unread = summary.is_error(1210) || summary.is_error(1835);
        if failed && !unread && under_way.runs_outside(&client.session) {
            client.owe_schema(&self.shared.server);
        }
        if under_way.named.is_some() {
            client.forget_command();
            return self.note_named(lease, owner, &under_way, preparing, summary);
        }
        let Some(prepared) = &mut client.prepared else {
            return;
        };
        let open = |flags| flags & (status::CURSOR_EXISTS | status::LAST_ROW_SENT);
        let flags = summary.status.unwrap_or_default();
        let is_open = match under_way.command {
            Command::StmtPrepare => {
                let definition = preparing.unwrap_or(under_way.definition);
                let header = summary.prepared.filter(|_| !failed);
                prepared.note_new(under_way.id, definition, header);
                prepared.count(&self.statements);
                return client.forget_command();
            }
            Command::StmtFetch if failed => return,
            Command::StmtFetch => flags & status::LAST_ROW_SENT == 0,
            Command::StmtReset => failed,
            _ => under_way.cursor && !failed && open(flags) == status::CURSOR_EXISTS,
        };
        if failed
            && let Some(long) = under_way.long.take()
            && unread
            && let Some(held) = prepared.get_mut(under_way.id)
        {
            // The server keeps long data that it could not execute with, and its complaint about
            // it, until a reset: so must the client, and nobody else may meet them.
            self.long_data += long.len();
            held.long = Some(long);
            let sent_to = under_way.sent_to;
            backend.prepared.take(&under_way.definition, sent_to);
            return self.close_on(lease, &[sent_to]);
        }
        let held = prepared.get_mut(under_way.id).filter(|h| h.columns > 0);
        if let (Some(columns), Some(held)) = (summary.columns, held) {
            held.columns = columns;
        }
        let what = (&under_way.definition, under_way.id);
        // One that is open on another text, with other counts in it, is executed no more.
        let other = prepared.cursor_of(under_way.id).cloned();
        let other = other.filter(|other| !Rc::ptr_eq(other, what.0));
        let other = other.and_then(|other| {
            let id = backend.prepared.with_cursor((&other, what.1))?;
            backend.prepared.take(&other, id);
            Some(id)
        });
        backend
            .prepared
            .set_cursor(what, is_open.then_some(under_way.sent_to));
        if prepared.set_cursor(under_way.id, is_open.then_some(what.0)) && is_open {
            *self.counts.pins.entry("cursor").or_default() += 1;
        }
        if let Some(id) = other {
            self.close_on(lease, &[id]);
        }
    }

    /// What a client knows of the statement that the reply to its command is about.
    pub(crate) fn told(&self, owner: Option<Key>) -> Told {
        let client = owner.and_then(|owner| self.clients.get(owner));
        if client.is_some_and(Client::forgets_changes) {
            return Told {
                changed: true,
                ..Told::default()
            };
        }
        let counting = client.filter(|c| c.statement.counts_before);
        if let Some(client) = counting {
            return Told {
                warnings: Some(client.last.conditions),
                ..Told::default()
            };
        }
        let prepared = client.and_then(|client| client.prepared.as_ref());
        let Some((prepared, under_way)) =
            prepared.and_then(|prepared| Some((prepared, prepared.under_way.as_ref()?)))
        else {
            return Told::default();
        };
        // Prepared without a schema it runs without one, and a server says the client's again.
        let fresh = under_way.definition.session.schema.is_none();
        let columns = || {
            let known = prepared.get(under_way.id)?.columns;
            // A statement without a result, CALL among them, has none to compare.
            (known > 0).then_some(known)
        };
        match under_way.command {
            _ if under_way.named.is_some() => Told {
                schema: fresh && matches!(under_way.named, Some(Named::Execute(_))),
                ..Told::default()
            },
            Command::StmtPrepare => Told {
                id: Some(under_way.id),
                ..Told::default()
            },
            Command::StmtExecute => Told {
                columns: columns(),
                schema: fresh,
                ..Told::default()
            },
            Command::StmtBulkExecute => Told {
                schema: fresh,
                ..Told::default()
            },
            _ => Told::default(),
        }
    }
}

fn wanted<'a>(given: Types<'a>, held: &'a Held) -> Wanted<'a> {
    match (given, &held.types) {
        (Types::Sent(types), _) => Wanted::Types(types),
        (Types::NoParameters, _) => Wanted::Types(TypeList::plain(&[])),
        (Types::Earlier | Types::Unreadable, Some(types)) => Wanted::Types(TypeList::plain(types)),
        (Types::Earlier | Types::Unreadable, None) => Wanted::Untouched,
    }
}
