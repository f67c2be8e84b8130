//! A client and the backend that it has, looked at and not changed.
//!
//! What is in flight on a backend says what a client has to wait for: a question on its behalf that
//! is not answered yet. Invariant: a client without a backend waits for nothing here.

use crate::backend::{Backend, ForSession, InFlight};
use crate::client::clients::Clients;
use crate::client::{Client, ClientState};
use crate::group::tokens::{BackendId, ClientId};
use reactor::Slots;
use session::global_defaults::GlobalDefaults;
use session::read_back::Properties;
use sql::classify::Reads;
use sql::lex::Server;
use wire::status;

/// A client, with the backend that it has, if it has one.
#[derive(Debug)]
pub(crate) struct ClientView<'a, S> {
    /// The client's key.
    pub(crate) key: ClientId,
    pub(crate) client: &'a Client<S>,
    pub(crate) backend: Option<&'a Backend<S>>,
}

impl<S> Clone for ClientView<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for ClientView<'_, S> {}

impl<'a, S> ClientView<'a, S> {
    /// The client with this key, with the backend that it has.
    pub(crate) fn of(
        key: ClientId,
        clients: &'a Clients<S>,
        backends: &'a Slots<Backend<S>, BackendId>,
    ) -> Option<ClientView<'a, S>> {
        let client = clients.get(key)?;
        Some(ClientView {
            key,
            client,
            backend: client.backend_in(backends),
        })
    }
}

impl<S> ClientView<'_, S> {
    /// True if its backend is asked this on its behalf, and has not answered yet.
    pub(crate) fn is_being_asked(&self, command: ForSession) -> bool {
        self.has_in_flight(|in_flight| in_flight.purpose == command.into())
    }

    /// True if its backend is asked for this property of its session, and has not answered yet.
    pub(crate) fn is_reading(&self, property: Properties) -> bool {
        self.has_in_flight(|command| command.reads(property))
    }

    /// True if its FOUND_ROWS() is being read back, or is to be behind what is: it outlives the
    /// session.
    pub(crate) fn is_counting(&self) -> bool {
        let last = &self.client.session.last;
        let pending =
            last.counts_unread() && last.pending.changed.intersects(Properties::FOUND_ROWS);
        last.found_rows.get().is_none()
            && (self.is_reading(Properties::FOUND_ROWS) || pending && self.has_in_flight(|_| true))
    }

    /// True if a text asks for what is being read back at this moment: FOUND_ROWS(), or the
    /// conditions of the statement before.
    pub(crate) fn is_read_back_now(&self, reads: Reads) -> bool {
        let conditions = reads.intersects(Reads::DIAGNOSTICS);
        // Conditions are shown in the collation of results.
        let shown_by = || self.is_reading(Properties::COLLATION);
        conditions && (self.is_being_asked(ForSession::Warnings) || shown_by())
            || reads.intersects(Reads::FOUND_ROWS) && self.is_counting()
    }

    /// True if such a command of its own is in flight on its backend.
    fn has_in_flight(&self, is_such: impl Fn(&InFlight) -> bool) -> bool {
        let own = |command: &InFlight| command.owner == Some(self.key) && is_such(command);
        (self.backend).is_some_and(|backend| backend.flight.iter().any(own))
    }

    /// True if nothing but questions of the pool's own is under way for an idle client.
    pub(crate) fn is_read_back(&self) -> bool {
        let client = self.client;
        if client.state() != ClientState::Idle || client.session.is_held() {
            return false;
        }
        match self.backend {
            Some(backend) => !backend.session.in_transaction() && !backend.flight.is_empty(),
            None => false,
        }
    }

    /// The global values under which its sessions began: its own, those of its backend, and those
    /// of what it has prepared.
    pub(crate) fn defaults(&self) -> Vec<GlobalDefaults> {
        let mut all = vec![self.client.session.state.defaults.clone()];
        let mut add = |defaults: &GlobalDefaults| {
            if !all.contains(defaults) {
                all.push(defaults.clone());
            }
        };
        if let Some(backend) = self.backend {
            let there = &backend.session;
            let sessions = there.prepared.sessions().chain([&there.state]);
            sessions.for_each(|session| add(&session.defaults));
        }
        if let Some(prepared) = self.client.session.prepared.as_ref() {
            let held = prepared.held().iter().map(|held| &held.definition);
            held.for_each(|definition| add(&definition.session.defaults));
        }
        all
    }

    /// The status flags that a server would send the client now.
    pub(crate) fn status(&self, server: Server) -> u16 {
        let client = self.client;
        const OF_SQL_MODE: u16 = status::NO_BACKSLASH_ESCAPES | status::ANSI_QUOTES;
        let session = &client.session.state;
        // A statement with a `sql_mode` of its own has left its flags in the last OK.
        // A backend that is still in somebody else's session tells whether that one commits.
        let told = |backend: &Backend<S>| {
            let flags = backend.session.transaction.status() & !status::OF_ONE_REPLY;
            match session.commits() {
                commits if commits == backend.session.state.commits() => flags,
                true => flags | status::AUTOCOMMIT,
                false => flags & !status::AUTOCOMMIT,
            }
        };
        let in_trans = u16::from(client.command.is_begin_deferred()) * status::IN_TRANS;
        // A transaction that the client's backend does not know of yet is one to the client.
        let mut flags = match self.backend.map(told) {
            Some(flags) if session.value(b"sql_mode").is_none() => return flags | in_trans,
            Some(flags) => flags & !OF_SQL_MODE,
            None => u16::from(session.commits()) * status::AUTOCOMMIT,
        };
        flags |= in_trans;
        if session.sql_mode_has("NO_BACKSLASH_ESCAPES") {
            flags |= status::NO_BACKSLASH_ESCAPES;
        }
        let tells_quotes = matches!(server, Server::MariaDb(_));
        if tells_quotes && session.sql_mode_has("ANSI_QUOTES") {
            flags |= status::ANSI_QUOTES;
        }
        flags
    }
}

#[cfg(test)]
mod tests {
    use super::ClientView;
    use crate::pair::tests::{Parts, owner};
    use session::state::Session;
    use sql::lex::Server;
    use std::rc::Rc;
    use wire::status;

    #[test]
    fn a_backend_in_somebody_elses_session_does_not_tell_whether_the_client_commits() {
        let mut parts = Parts::bound();
        let mut off = Session::default();
        off.put(b"autocommit", b"OFF");
        let (on, off) = (parts.client.session.state.clone(), Rc::new(off));
        let told = |flags, client: &Rc<Session>, backend: &Rc<Session>, parts: &mut Parts| {
            parts.client.session.state = client.clone();
            parts.backend.session.state = backend.clone();
            parts.backend.session.transaction.note_status(flags);
            let view = ClientView {
                key: owner(),
                client: &parts.client,
                backend: Some(&parts.backend),
            };
            view.status(Server::MySql(90_000))
        };
        let commits = status::AUTOCOMMIT;
        assert_eq!(told(0, &on, &off, &mut parts), commits);
        assert_eq!(told(commits, &off, &on, &mut parts), 0);
        // In one session the server knows better.
        assert_eq!(told(0, &on, &on, &mut parts), 0);
        assert_eq!(told(commits, &off, &off, &mut parts), commits);
    }
}
