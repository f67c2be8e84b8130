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
//!
//! A text of several statements may execute some by name, and so may SET STATEMENT on MariaDB. What
//! the client has under these names is prepared in the same way, one after the other. A name that
//! the text gives to something else is the server's to know from then on. A procedure that nobody
//! has read may use any of its caller's names: so all of these are prepared in front of its CALL,
//! but for those that cannot be prepared any more, or not now: MariaDB prepares no INSERT in a
//! read-only transaction. They are gone then.

use crate::buffers::message::payload_of;
use crate::client::Handled;
use crate::errors::reasons::{PinReason, Refusal, Unprepared};
use crate::group::Group;
use reactor::{Key, Net};
use session::last_statement::COUNTS;
use session::prepared::UnderWay;
use session::prepared::names::Named;
use session::read_back::Properties;
use session::standing::Standing;
use session::statement::Code;
use sql::classify::{self, PinCause, Verb, classify};
use sql::text_prepared::{NamesIn, names_in};
use std::rc::Rc;
use wire::command::Command;

impl<N: Net> Group<N> {
    /// Prepares what a client's execution needs and its backend lacks; `None` when that is nothing.
    pub(crate) fn prepare_ahead(
        &mut self,
        key: Key,
        lease: Key,
        message: &[u8],
    ) -> Option<Handled> {
        self.note_lacking_name(key, lease, message);
        let (client, backend) = (self.clients.get(key)?, self.backends.get(lease)?);
        if client.prepares_unread() {
            return Some(self.read_back_ahead(key, lease));
        }
        if client.is_prepared_on(backend, message, &self.shared.server) {
            return None;
        }
        let share = self.shared.prepared_of_backend(&self.settings);
        if backend.prepared.is_full(share) {
            return Some(self.answers().refuse_to_prepare(key));
        }
        let definition = client.under_way()?.definition.clone();
        let session = client.session_to_prepare_in(&definition.session, &mut self.sessions);
        let Some(session) = session else {
            let refusal = Refusal::Prepared(Unprepared::NoSession);
            return Some(self.answers().refuse_counted(key, &refusal));
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
        let mut pair = self.pair(key, lease)?;
        pair.put_restore(&session, Standing::Anywhere, &mut out);
        if !out.is_empty() {
            // A SET has a ROW_COUNT() of its own.
            pair.client.last.disown(COUNTS);
        }
        pair.prepare_ahead(share, &mut out)?;
        Some(self.send_restore(key, lease, &out))
    }

    /// Where a client's text uses statements by name and is more than that, the first that its
    /// backend lacks is what is to be prepared there. Where it lacks none, the text goes out, and
    /// what it prepares itself is not overwritten later by what the client had under that name.
    fn note_lacking_name(&mut self, key: Key, lease: Key, message: &[u8]) -> Option<()> {
        let (client, backend) = (self.clients.get(key)?, self.backends.get(lease)?);
        let own = client.prepared.as_ref()?;
        let uses = client.is_pinned_for(PinReason::Text(PinCause::TextPrepare));
        let unread = client.statement.code == Code::Unread && client.pins.is_unread();
        if own.named.is_empty() || own.under_way.is_some() || !(uses || unread) {
            return None;
        }
        let payload = payload_of(message);
        let (command, arguments) = payload.split_first()?;
        if *command != Command::Query.byte() {
            return None;
        }
        let sql = client.text_in(arguments).ok()?;
        let mode = client.lex_mode(&self.shared.server);
        let class = classify(sql, mode);
        // The server refuses it whole, and runs nothing of it.
        if class.multi && !client.session.multi_statements {
            return None;
        }
        let mut names = match uses {
            true => names_in(sql, mode),
            false => NamesIn::default(),
        };
        let named = names.used.len();
        if unread && may_prepare(&class) {
            let all = own.named.iter().map(|(name, _)| name.clone());
            let others: Vec<_> = all.filter(|name| !names.used.contains(name)).collect();
            names.used.extend(others);
        }
        names
            .used
            .truncate(self.shared.prepared_of_backend(&self.settings));
        if let Some((name, definition)) = own.lacking(&names.used, &backend.prepared) {
            let named = match names.used.iter().take(named).any(|one| one == name) {
                true => Named::Execute(name.clone()),
                false => Named::MayExecute(name.clone()),
            };
            let under_way = UnderWay::named(Command::StmtExecute, definition.clone(), named);
            self.clients.get_mut(key)?.prepared.as_mut()?.under_way = Some(under_way);
            return Some(());
        }
        // What the backend has of the client under these names is for the server to know from here
        // on. What it has there of others is taken away in front of the text.
        let (client, backend) = (self.clients.get_mut(key)?, self.backends.get_mut(lease)?);
        let own = client.prepared.as_mut()?;
        for name in &names.given {
            let there = own.named(name);
            if there.is_some_and(|there| backend.prepared.has_named(name, there)) {
                backend.prepared.set_named(name, Some(None));
            }
            own.forget_name(name);
        }
        None
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
        if !under_way && let Some(mut pair) = self.pair(key, lease) {
            let next = pair.read_back(property);
            self.follow(key, lease, next);
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
}

/// Whether code that a text runs may prepare statements by name: functions and triggers may not.
fn may_prepare(class: &classify::Statement) -> bool {
    class.multi || matches!(class.verb, Verb::Call | Verb::Prepare)
}
