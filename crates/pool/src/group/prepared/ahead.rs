//! Ahead: preparing on a backend what a client's execution needs there.
//!
//! The execution stays in its client's input, and is looked at again when the backend has answered:
//! in one write the backend is brought into the session in which the client prepared the statement,
//! if it is in another, and prepares the text; then the execution takes its usual way. Only the
//! answer to the preparation is waited for, since it has the id. What was prepared in a wrong
//! session is closed with its backend.
//!
//! A text that can no longer be prepared fails as its execution would: a server that finds its
//! tables changed prepares again, and says what that said.

use crate::backend::{InFlight, Purpose};
use crate::client::{Client, ClientState, Handled};
use crate::errors::reasons::{PinReason, Refusal, Unprepared};
use crate::group::Group;
use reactor::{Key, Net};
use session::prepared::UnderWay;
use session::prepared::names::Named;
use session::read_back::Properties;
use session::reply_summary::ReplySummary;
use session::standing::Standing;
use session::state::Session;
use sql::text_prepared::put_prepare;
use std::rc::Rc;
use wire::attributes::put_query;
use wire::command::{Command, ReplyShape, put_command};

impl<N: Net> Group<N> {
    /// Prepares what a client's execution needs and its backend lacks; `None` when that is nothing.
    pub(crate) fn prepare_ahead(
        &mut self,
        key: Key,
        lease: Key,
        message: &[u8],
    ) -> Option<Handled> {
        if self.prepares_unread(key) {
            return Some(self.read_back_ahead(key, lease));
        }
        if self.is_prepared(key, lease, message) {
            return None;
        }
        if self.is_full(lease) {
            return Some(self.refuse_to_prepare(key));
        }
        let client = self.clients.get(key)?;
        let definition = client
            .prepared
            .as_ref()?
            .under_way
            .as_ref()?
            .definition
            .clone();
        let Some(session) = self.session_to_prepare_in(key, &definition.session) else {
            return Some(self.no_session_to_prepare_in(key));
        };
        let client = self.clients.get(key)?;
        let same = Rc::ptr_eq(&self.backends.get(lease)?.session, &session);
        let session = match client {
            _ if same => session,
            // What the session is now must be known, or there would be no way back to it.
            client if client.last.owed.changed.intersects(Properties::COLLATION) => {
                return Some(self.read_back_ahead(key, lease));
            }
            _ => session,
        };
        // How a text is read is no matter of user variables, and theirs may not be read back yet.
        // What it may do is judged when it is executed.
        let session = session.with_unread_of(&client.session);
        let session = self.sessions.intern(session);
        let mut out = Vec::new();
        self.put_restore((key, lease), &session, Standing::Anywhere, &mut out)?;
        let client = self.clients.get_mut(key)?;
        let mut under_way = client.prepared.as_mut()?.under_way.take()?;
        under_way.ahead = true;
        let closed = self.make_room_for(lease, &under_way, &mut out);
        self.note_deallocations(key, lease, closed, 0);
        let shape = self.put_ahead(key, lease, &under_way, &mut out);
        let command = InFlight::own(Some(key), Purpose::Ahead, shape);
        self.backends.get_mut(lease)?.expect(command);
        let prepared = self.clients.get_mut(key)?.prepared.as_mut()?;
        prepared.under_way = Some(under_way);
        Some(self.send_restore(key, lease, &out))
    }

    /// Writes the command that prepares a definition; gives how it is answered.
    fn put_ahead(
        &self,
        key: Key,
        lease: Key,
        under_way: &UnderWay,
        out: &mut Vec<u8>,
    ) -> ReplyShape {
        let definition = &under_way.definition;
        let (Some(client), Some(Named::Execute(name))) = (self.clients.get(key), &under_way.named)
        else {
            put_command(out, Command::StmtPrepare, &definition.sql);
            return ReplyShape::Prepared;
        };
        let mode = self.lex_mode(&definition.session, client.capabilities);
        let mut text = Vec::new();
        put_prepare(&mut text, name, &definition.sql, mode);
        let form = self.form_of(lease);
        put_query(out, form, &text);
        ReplyShape::Results
    }

    /// Whether a client prepares a statement in a session that is not known whole.
    fn prepares_unread(&self, key: Key) -> bool {
        let unread = |client: &&Client<N::Sock>| {
            client.last.owed.changed.intersects(Properties::COLLATION)
                && !client.is_pinned_for(PinReason::WideCharset)
        };
        let Some(client) = self.clients.get(key).filter(unread) else {
            return false;
        };
        let under_way = client.prepared.as_ref().and_then(|p| p.under_way.as_ref());
        under_way.is_some_and(|under_way| under_way.command == Command::StmtPrepare)
    }

    /// Keeps a command until the session that it needs to be known has been read back.
    fn read_back_ahead(&mut self, key: Key, lease: Key) -> Handled {
        let prepared = self.clients.get_mut(key).map(|client| &mut client.prepared);
        if let Some(Some(prepared)) = prepared
            && let Some(under_way) = &mut prepared.under_way
        {
            under_way.reads_back = true;
        }
        self.wait_for_property(key, lease, Properties::COLLATION)
    }

    /// Keeps a client's command until this property of its session has been read back, which is
    /// asked for now if it is not under way.
    pub(crate) fn wait_for_property(
        &mut self,
        key: Key,
        lease: Key,
        property: Properties,
    ) -> Handled {
        let handled = self.send_restore(key, lease, b"");
        let under_way = self.backends.get(lease).is_some_and(|backend| {
            let mut flight = backend.flight().iter();
            flight.any(|command| command.reads(property))
        });
        if !under_way {
            self.read_back(lease, key, property);
        }
        handled
    }

    /// What was read back for the sake of an execution is there: it goes on.
    pub(crate) fn go_on(&mut self, key: Key) {
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        let under_way = client.prepared.as_mut().and_then(|p| p.under_way.as_mut());
        if !under_way.is_some_and(|under_way| std::mem::take(&mut under_way.reads_back)) {
            return;
        }
        self.return_to_idle(key);
    }

    /// The session in which a definition can be prepared for this client: its own, but without a
    /// schema it can be any where the client now has one, since the text names none.
    fn session_to_prepare_in(&mut self, key: Key, session: &Rc<Session>) -> Option<Rc<Session>> {
        let now = self.clients.get(key)?.session.schema.clone();
        match (&session.schema, now) {
            (None, Some(schema)) => {
                let mut with_schema = (**session).clone();
                with_schema.schema = Some(schema);
                Some(self.sessions.intern(with_schema))
            }
            // There would be no way back to a session without a schema.
            (Some(_), None) => None,
            _ => Some(session.clone()),
        }
    }

    fn no_session_to_prepare_in(&mut self, key: Key) -> Handled {
        self.counts.refused += 1;
        self.refuse(key, &Refusal::Prepared(Unprepared::NoSession));
        Handled::Used
    }

    /// Whether every statement that a backend may have is held by a cursor.
    pub(super) fn is_full(&self, lease: Key) -> bool {
        let share = self.shared.prepared_of_backend(&self.settings);
        let backend = self.backends.get(lease);
        backend.is_some_and(|backend| backend.prepared.is_full(share))
    }

    pub(super) fn refuse_to_prepare(&mut self, key: Key) -> Handled {
        let max = self.shared.prepared_of_backend(&self.settings);
        self.counts.refused += 1;
        self.refuse(key, &Refusal::Prepared(Unprepared::Full { max }));
        Handled::Used
    }

    /// A backend has answered to a text that was prepared ahead.
    pub(crate) fn prepared_ahead(
        &mut self,
        lease: Key,
        owner: Option<Key>,
        summary: &ReplySummary,
        collected: &[u8],
    ) {
        let Some(owner) = owner.filter(|owner| self.clients.get(*owner).is_some()) else {
            return self.retire(lease);
        };
        let Some(backend) = self.backends.get_mut(lease) else {
            return;
        };
        let preparing = backend.prepared.preparing.take();
        let client = self.clients.get_mut(owner);
        let prepared = client.and_then(|client| client.prepared.as_ref());
        let under_way = prepared.and_then(|prepared| prepared.under_way.as_ref());
        let named = under_way.and_then(|under_way| under_way.named.clone());
        match (preparing, summary.prepared, &named) {
            (Some(definition), _, Some(Named::Execute(name))) if summary.error.is_none() => {
                backend.prepared.set_named(name, Some(Some(definition)));
            }
            (Some(definition), Some(header), _) => backend.prepared.add(definition, header.id),
            _ => {}
        }
        let now = self.net.now();
        let Some(client) = self.clients.get_mut(owner) else {
            return;
        };
        client.last.prepared_ahead(named.is_some());
        if !client.change_state(ClientState::Idle, now) {
            return self.close_later(owner);
        }
        if summary.error.is_some() {
            self.drop_command(owner);
            self.replay(owner, collected);
            if let Some(client) = self.clients.get_mut(owner) {
                client.last.failed_ahead(summary);
            }
            self.settle(lease);
            return self.pump(owner);
        }
        self.pump(owner);
        self.settle(lease);
    }

    /// A backend could not be brought into the session in which a statement was prepared; `false`
    /// when that is not what the client waits for. `gone`: the client's session was on it alone.
    pub(crate) fn ahead_failed(&mut self, owner: Key, gone: bool, code: u16, text: &str) -> bool {
        let client = self.clients.get(owner);
        let under_way = client.and_then(|client| client.prepared.as_ref()?.under_way.as_ref());
        if !under_way.is_some_and(|under_way| under_way.ahead) {
            return false;
        }
        self.drop_command(owner);
        let now = self.net.now();
        let Some(client) = self.clients.get_mut(owner) else {
            return true;
        };
        let moved = client.change_state(ClientState::Idle, now);
        self.counts.refused += 1;
        self.refuse(owner, &Refusal::Restore(format!("error {code}: {text}")));
        if gone || !moved {
            self.leave(owner);
        } else {
            self.pump(owner);
        }
        true
    }

    /// The command at the front of a client's input is answered.
    fn drop_command(&mut self, key: Key) {
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        let len = client.command_len();
        client.drop_input(len);
        let under_way = client.prepared.as_mut().and_then(|p| p.under_way.take());
        if let Some(under_way) = under_way {
            self.drop_long_data(key, under_way.id);
        }
    }
}
