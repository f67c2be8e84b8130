//! Deferred questions: what a client's last backend knows of it and nobody else.
//!
//! The problem: of some statements neither text nor reply tells what they leave (FOUND_ROWS()
//! behind UNION or OFFSET, the items of a condition). To ask behind each of them costs a round trip
//! that hardly any client wants. The mechanism: a backend that becomes free notes its last client
//! ([`crate::backend::Backend::last_client`]) until somebody else gets it. Until then the
//! client's own question goes there and the server answers it
//! ([`crate::scheduler::matching::Matching::last_backend_for_text`]).
//! When another client gets the backend, or it is to be closed, the questions that save the answers
//! go out first, in one write with that client's commands ([`Group::ask_for`]): GET DIAGNOSTICS
//! into variables of the pool's own, which clears nothing, then one SELECT of FOUND_ROWS() and of
//! those variables.
//!
//! The client is noted with the number of statements that it had sent, so the backend is its last
//! one only as long as it has run nothing elsewhere.
//!
//! Invariants: none of the commands of a client that is being asked for goes on
//! ([`session::last_statement::LastStatement::is_asked_elsewhere`]); what was asked counts only for
//! the statement that left it.

use crate::backend::lazy_readback::LazyReadback;
use crate::backend::{BackendState, InFlight, Purpose};
use crate::client::{Client, ClientState};
use crate::group::Group;
use crate::group::tokens::{BackendId, ClientId};
use crate::pair::left::counted;
use crate::server::rows::row_of;
use reactor::Net;
use session::reply_summary::ReplySummary;
use session::text::Text;
use sql::classify::Reads;
use sql::lex::Server;
use wire::attributes::put_query;
use wire::command::ReplyShape;

impl<S> Client<S> {
    /// Keeps what a backend that it had has answered.
    fn take_answers(&mut self, asked: LazyReadback, row: Option<Vec<Text>>, server: Server) {
        self.last.asked_elsewhere();
        if asked.failed || row.is_none() {
            // They have left conditions of their own.
            self.last.disown(Reads::DIAGNOSTICS);
        }
        if let Some(row) = row.filter(|_| self.last.number == asked.sent) {
            if asked.questions.found {
                let number = row.first().and_then(|text| std::str::from_utf8(text).ok());
                let number = number.and_then(|text| text.parse().ok());
                let found = number.and_then(|number| counted(number, asked.unsettled));
                self.last.found_rows.set(found);
            }
            let items = row.get(1..).unwrap_or_default();
            if asked.questions.conditions > 0
                && !asked.failed
                && let Some(kept) = self.last.kept_mut()
            {
                kept.take_items(items, asked.questions.all, server);
            }
        }
    }
}

impl<N: Net> Group<N> {
    /// True if a text that reads this has to wait for what is being read back, or is to be: on the
    /// backend that its client has gone back to, FOUND_ROWS() where nobody can tell whether its
    /// last statement has counted.
    pub(crate) fn reads_back_first(&mut self, key: ClientId, reads: Reads) -> bool {
        let Some(view) = self.client_view(key) else {
            return false;
        };
        if view.is_read_back_now(reads) {
            return true;
        }
        let backend = view.client.backend().filter(|_| view.tells_count(reads));
        backend.is_some_and(|backend| self.ask_for(key, backend))
    }

    /// Checks in the backend of a client that has not used it after all.
    pub(crate) fn leave_last_backend(&mut self, key: ClientId) {
        let client = self.clients.get(key);
        let backend = client.filter(|client| client.state() == ClientState::Idle);
        if let Some(backend) = backend.and_then(|client| client.backend()) {
            self.settle(backend);
        }
    }

    /// Asks a backend for what a client has left there; `false` when that is nothing.
    pub(crate) fn ask_for(&mut self, key: ClientId, backend_id: BackendId) -> bool {
        let server = self.shared.server.flavour;
        let (Some(client), Some(backend)) =
            (self.clients.get_mut(key), self.backends.get_mut(backend_id))
        else {
            return false;
        };
        let questions = client.last.questions(server);
        if questions.is_none() {
            return false;
        }
        // It waits for the answer first, and keeps its place meanwhile.
        // Neither GET DIAGNOSTICS nor a query of no table clears conditions on MariaDB.
        let stays = match server {
            Server::MariaDb(_) if client.backend() == Some(backend_id) => Reads::DIAGNOSTICS,
            _ => Reads::NONE,
        };
        client.last.ask_elsewhere(stays);
        let waits = client.state() == ClientState::Waiting;
        backend.asked = Some(LazyReadback {
            client: key,
            sent: client.last.number,
            questions,
            unsettled: backend.unsettled.take(),
            failed: false,
        });
        backend.found = Some(1);
        if questions.has_conditions() {
            // The questions' own variables.
            backend.leftovers = true;
        }
        let mut out = Vec::new();
        let mut columns = String::from("SELECT FOUND_ROWS()");
        let mut put = |last: bool, sql: &str| {
            let command = InFlight::own(None, Purpose::LazyReadback(last), ReplyShape::Results);
            backend.expect(command);
            put_query(&mut out, backend.form, sql.as_bytes());
        };
        for number in 1..=questions.conditions {
            let mut sql = format!("GET DIAGNOSTICS CONDITION {number} ");
            session::conditions::put_question(
                &mut sql,
                &mut columns,
                number,
                questions.all,
                server,
            );
            put(false, &sql);
        }
        columns.push_str(" LIMIT 1");
        put(true, &columns);
        if let Some(backend) = self.backends.get_mut(backend_id) {
            backend.note_deprecation(key, self.shared.server.flavour);
        }
        self.backend_writer().ask(backend_id, &out);
        if waits {
            self.waiters().forget(key);
        }
        true
    }

    /// A deferred question was answered; `last`: the one that has the answers.
    pub(crate) fn lazy_readback_answered(
        &mut self,
        backend_id: BackendId,
        last: bool,
        summary: &ReplySummary,
        collected: &[u8],
    ) {
        let backend = self.backends.get(backend_id);
        let asked = backend.and_then(|backend| backend.asked.zip(backend.client()));
        if let Some((asked, owner)) = asked
            && asked.client == owner
        {
            // The OK of GET DIAGNOSTICS has what the statement's own reply had no room for.
            let pair = self.pair(owner, backend_id);
            if let Some(Err(why)) = pair.map(|mut pair| pair.take_changes(summary)) {
                self.lose(backend_id, why);
            }
        }
        let Some(backend) = self.backends.get_mut(backend_id) else {
            return;
        };
        if !last {
            if let Some(asked) = &mut backend.asked {
                asked.failed |= summary.error.is_some() || summary.warnings > 0;
            }
            return;
        }
        let asked = backend.asked.take();
        if let Some(asked) = asked {
            let row = row_of(collected).filter(|_| summary.error.is_none());
            let server = self.shared.server.flavour;
            if let Some(client) = self.clients.get_mut(asked.client) {
                client.take_answers(asked, row, server);
            }
        }
        // What else is to be read back goes out in front of the client's next command.
        self.go_on_behind(backend_id);
        if let Some(asked) = asked {
            self.wake(asked.client);
        }
    }

    /// The backend goes on with what stands behind the questions; whom it was for may have gone.
    fn go_on_behind(&mut self, backend_id: BackendId) {
        let Some(backend) = self.backends.get_mut(backend_id) else {
            return;
        };
        let gone = backend
            .client()
            .is_none_or(|key| self.clients.get(key).is_none());
        let bound = backend.state() == BackendState::CheckedOut;
        if !gone || !bound || !backend.flight().is_empty() {
            return self.settle(backend_id);
        }
        backend.insert_id = None;
        self.release(backend_id);
    }

    /// A backend is gone, and with it what it was being asked.
    pub(crate) fn lazy_readback_lost(&mut self, asked: Option<LazyReadback>) {
        let Some(asked) = asked else {
            return;
        };
        let Some(client) = self.clients.get_mut(asked.client) else {
            return;
        };
        client.last.asked_elsewhere();
        if client.state() == ClientState::Waiting
            && !client.place.is_in_lane()
            && client.backend().is_none()
        {
            self.line_up(asked.client);
        }
    }

    /// Closes an idle backend, once its last client's questions are answered.
    pub(crate) fn let_go(&mut self, backend: BackendId) {
        if !self.ask_last_backend(backend) {
            self.retire(backend);
        }
    }

    /// Binds an idle backend to the client that it served last, and asks it what it alone knows of
    /// that; `false` when there is nothing to ask.
    pub(crate) fn ask_last_backend(&mut self, backend: BackendId) -> bool {
        let client = self.matching().client_to_ask_about(backend);
        client.is_some_and(|key| self.bind(key, backend) && self.ask_for(key, backend))
    }

    /// True if FOUND_ROWS() of a client who leaves its session is asked for first: servers keep it.
    pub(crate) fn asks_before_leaving(&mut self, key: ClientId) -> bool {
        if self.client_view(key).is_some_and(|view| view.is_counting()) {
            return true;
        }
        let Some(client) = self
            .clients
            .get(key)
            .filter(|client| client.last.counts_unread())
        else {
            return false;
        };
        if let Some(backend_id) = client.backend() {
            let backend = self.backends.get(backend_id);
            let Some(backend) =
                backend.filter(|b| !b.transaction.is_announced() && !b.reuse.is_frozen())
            else {
                return false;
            };
            // Behind what is being read back, this is asked for next.
            return !backend.flight().is_empty() || self.ask_for(key, backend_id);
        }
        let last = self.matching().last_backend_of(key);
        last.is_some_and(|backend_id| self.ask_last_backend(backend_id))
    }
}
