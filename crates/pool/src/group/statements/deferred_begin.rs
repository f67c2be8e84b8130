//! A transaction that has begun for its client, and on no backend yet.
//!
//! The problem: BEGIN does nothing but set a flag, and costs a round trip and a backend; a client
//! that begins a transaction and then thinks holds a backend meanwhile. The mechanism: the pool
//! answers a plain BEGIN itself, as the server would. BEGIN goes out in front of the client's next
//! statement, in the same write. A COMMIT or ROLLBACK that comes instead ends nothing, so the pool
//! answers it too; and so it does where none has begun at all, as behind each request of frameworks
//! that roll back what they give back.
//!
//! A COMMIT or ROLLBACK that goes to the server gives its backend free. What only that backend
//! knows of its client is asked in the same write ([`Group::ask_before_end`]).
//!
//! What servers do (MariaDB 10.11, MySQL 9.7): BEGIN takes no snapshot and no lock, leaves
//! ROW_COUNT() 0 and keeps FOUND_ROWS(); MySQL clears conditions, MariaDB keeps them. COMMIT and
//! ROLLBACK without a transaction do the same, and report nothing. BEGIN can fail where the server
//! takes no statement at all, or is ending. Then the statement behind it may have run alone: its
//! client is told so, and is closed.
//!
//! Invariants: BEGIN is deferred only for a client that has no backend, no pin and nothing
//! announced; no statement of such a client is sent but behind its BEGIN
//! ([`crate::pair::restoring`]), and none of it shares a backend in flight
//! ([`Client::shape`]).

use crate::backend::{Backend, Reports};
use crate::client::{Client, Company, Handled};
use crate::group::Group;
use crate::pair::restoring::BEGIN;
use crate::pair::trackers::told_to;
use reactor::{Key, Net};
use session::read_back::Properties;
use session::reply_summary::ReplySummary;
use session::standing::Behind;
use sql::lex::LexMode;
use std::time::Duration;
use wire::attributes::{Form, header_len};
use wire::capabilities::SESSION_TRACK;
use wire::command::Command;
use wire::packet::HEADER_LEN;
use wire::track::{Bound, Change, Transactions, changes, keep, put_bound};

/// Texts that begin a transaction and say nothing else of it.
const BEGINS: [&[u8]; 3] = [BEGIN, b"START TRANSACTION", b"BEGIN WORK"];
/// Texts that end one and do nothing else, unless `completion_type` says so.
const ENDS: [&[u8]; 4] = [b"COMMIT", b"ROLLBACK", b"COMMIT WORK", b"ROLLBACK WORK"];
/// Time limits of MariaDB for clients that begin a transaction and say nothing: the server keeps
/// them where it knows of the transaction.
const IDLE_TIMEOUTS: [&[u8]; 3] = [
    b"idle_transaction_timeout",
    b"idle_readonly_transaction_timeout",
    b"idle_write_transaction_timeout",
];

/// What MySQL may report with any COMMIT.
const GTIDS: &[u8] = b"session_track_gtids";
/// With all variables tracked, MySQL reports this one with every statement.
pub(crate) const STATEMENT_ID: &[u8] = b"statement_id";
/// Sessions whose transactions are read-only are told so, where they begin.
const READ_ONLY: [&[u8]; 2] = [b"transaction_read_only", b"tx_read_only"];

/// What a text does to a transaction, if that is all that it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Edge {
    Begin,
    End,
}

/// Read so narrowly that no server reads the text otherwise.
fn edge_of(sql: &[u8]) -> Option<Edge> {
    let longest = BEGINS[1].len();
    let text = sql.trim_ascii();
    let is_one_of = |texts: &[&[u8]]| texts.iter().any(|one| one.eq_ignore_ascii_case(text));
    match text.len() <= longest {
        true if is_one_of(&BEGINS) => Some(Edge::Begin),
        true if is_one_of(&ENDS) => Some(Edge::End),
        _ => None,
    }
}

/// Whether a time limit or a switch of a server is not off.
fn is_set(value: &[u8]) -> bool {
    !matches!(value, b"0" | b"OFF")
}

impl<S> Client<S> {
    /// Whether a transaction may begin and end for it alone.
    fn may_begin_alone(&self) -> bool {
        let session = &self.session;
        let is_set = |name: &&[u8]| session.value(name).is_some_and(is_set);
        self.lease().is_none()
            && !self.is_held()
            && self.touched.is_none()
            && !self.interrupted
            // There BEGIN begins a block.
            && !session.sql_mode_has("ORACLE")
            && !IDLE_TIMEOUTS.iter().chain(&READ_ONLY).any(is_set)
    }

    /// Whether its backend alone knows its LAST_INSERT_ID(), and nothing else of it.
    fn owes_insert_id_alone(&self) -> bool {
        let owed = &self.last.owed;
        self.changed_properties() == Properties::INSERT_ID
            && !(owed.warnings || owed.failed || self.is_held() || self.touched.is_some())
            && !(self.last.has_conditions() || self.last.counts_unread())
            && self.session.completes_plainly()
    }

    /// Whether COMMIT and ROLLBACK do and report nothing, where no transaction is open for it.
    fn ends_nothing(&self) -> bool {
        let session = &self.session;
        let autocommit = session.value(b"autocommit");
        session.completes_plainly()
            && matches!(autocommit, Some(b"ON" | b"1"))
            && !session.value(GTIDS).is_some_and(is_set)
            && self.pending_changes.bytes().is_empty()
    }
}

impl<N: Net> Group<N> {
    /// Answers a text that begins or ends a transaction of which no backend knows. `None` where it
    /// is none, or a backend has to run it.
    pub(crate) fn on_edge_of_transaction(
        &mut self,
        key: Key,
        sql: &[u8],
        mode: LexMode,
    ) -> Option<Handled> {
        let edge = edge_of(sql)?;
        if edge == Edge::End {
            self.ask_before_end(key);
        }
        let reports = self.reports_of_edge(key, edge)?;
        if self.is_about_to_leave(key) {
            return Some(self.wait_for_read_back(key));
        }
        if !self.may_answer_alone(key, mode) {
            return None;
        }
        let client = self.clients.get_mut(key)?;
        let begun = client.is_begin_deferred();
        client.company = match edge {
            Edge::Begin => Company::BeginDeferred,
            Edge::End => Company::Any,
        };
        match edge {
            Edge::Begin => self.counts.transactions_deferred += 1,
            Edge::End if begun => self.counts.transactions_unsent += 1,
            Edge::End => self.counts.ends_spared += 1,
        }
        self.answer_alone(key, sql, mode, &reports);
        Some(Handled::Used)
    }

    /// Whether a client stands so that a text that needs no server may be answered here.
    pub(crate) fn may_answer_alone(&self, key: Key, mode: LexMode) -> bool {
        self.clients.get(key).is_some_and(|client| {
            // What clears its conditions on MySQL would count there, where its count is to be
            // asked.
            let uncounted = mode.server.is_mysql() && client.last.counts_unread();
            !uncounted && client.may_begin_alone()
        })
    }

    /// Answers a text that changes nothing of a session and goes well, as the server would.
    pub(crate) fn answer_alone(&mut self, key: Key, sql: &[u8], mode: LexMode, reports: &[u8]) {
        let digest = self.digest_of(sql, mode);
        self.figures.digests.sent(digest, Duration::ZERO);
        (self.figures.digests).answered(digest, Duration::ZERO, false, 0);
        if let Some(client) = self.clients.get_mut(key) {
            match mode.server.is_mysql() {
                true => client.last.answered_clean(0),
                false => client.last.answered_uncounted(0),
            }
        }
        self.send_reporting_ok(key, reports);
    }

    /// Asks what has to be known before the backend of a client may serve another one, in the same
    /// write as the COMMIT or ROLLBACK that is to give it free, and in front of that: asked behind
    /// it, the question would cost a round trip. Only where the text tells all that it does, and
    /// where nothing is to be asked but LAST_INSERT_ID(), which it does not change.
    fn ask_before_end(&mut self, key: Key) {
        let Some(client) = self.clients.get(key) else {
            return;
        };
        let Some(lease) = client.lease().filter(|_| client.owes_insert_id_alone()) else {
            return;
        };
        let wanted = told_to(client, &self.shared.server);
        // In a transaction that it is told of, a question of the pool's own would show.
        let tells = wanted.state || wanted.transactions.has_states();
        let is_ready = |backend: &Backend<N::Sock>| {
            let has_reports = backend.reports == Reports::Complete;
            let rests = backend.flight().is_empty() && !backend.frozen;
            rests && has_reports && backend.in_transaction()
        };
        if !tells && self.backends.get(lease).is_some_and(is_ready) {
            self.read_back(lease, key, Properties::INSERT_ID);
        }
    }

    /// What the answer to such a text reports. `None` where the client is to be told what only the
    /// server can say, or the server does more than to begin or to end.
    fn reports_of_edge(&self, key: Key, edge: Edge) -> Option<Vec<u8>> {
        let client = self.clients.get(key)?;
        if !self.settings.defer_begin || self.draining.is_some() {
            return None;
        }
        let wanted = told_to(client, &self.shared.server);
        let tracks = client.capabilities & SESSION_TRACK != 0;
        let bounds = tracks && wanted.transactions == Transactions::Bounds;
        if tracks && (wanted.state || wanted.transactions.has_states()) {
            return None;
        }
        let to = match (edge, client.is_begin_deferred()) {
            (Edge::Begin, false) => Some(Bound::Inside),
            // One ends and another one begins, which the server has a form of its own to say.
            (Edge::Begin, true) if bounds => return None,
            (Edge::Begin, true) => None,
            (Edge::End, true) if client.session.completes_plainly() => Some(Bound::Outside),
            (Edge::End, true) => return None,
            (Edge::End, false) if tracks && wanted.tells_of(STATEMENT_ID) => return None,
            (Edge::End, false) if client.ends_nothing() => None,
            (Edge::End, false) => return None,
        };
        let mut reports = Vec::new();
        if let Some(to) = to.filter(|_| bounds) {
            put_bound(&mut reports, to);
        }
        Some(reports)
    }

    /// Whether a client's lease lasts only until the pool's questions behind its last statement
    /// are answered.
    pub(crate) fn is_about_to_leave(&self, key: Key) -> bool {
        let client = self.clients.get(key).filter(|client| !client.is_held());
        let lease = client.and_then(|client| client.lease());
        let backend = lease.and_then(|lease| self.backends.get(lease));
        backend.is_some_and(|b| !b.in_transaction() && !b.flight().is_empty())
    }

    /// Whether a command that waits in a client's input may be answered as
    /// [`Group::on_edge_of_transaction`] or [`Group::on_spared_set`] does.
    pub(crate) fn may_need_no_backend(&self, key: Key) -> bool {
        let Some(client) = self.clients.get(key) else {
            return false;
        };
        let Some(input) = &client.input else {
            return false;
        };
        let message = &input[..client.command_len()];
        let payload = message.get(HEADER_LEN..).unwrap_or_default();
        let Some((&byte, arguments)) = payload.split_first() else {
            return false;
        };
        let header = header_len(Form::of(client.capabilities), arguments).unwrap_or(0);
        let sql = &arguments[header..];
        let edge = edge_of(sql);
        let mode = self
            .shared
            .server
            .lex_mode(&client.session, client.capabilities);
        let needs_none = |edge| self.reports_of_edge(key, edge).is_some();
        byte == Command::Query.byte()
            && (edge.is_some_and(needs_none) || self.sets_nothing(key, sql, mode))
    }

    /// That BEGIN was answered.
    pub(crate) fn deferred_begin_answered(
        &mut self,
        lease: Key,
        owner: Option<Key>,
        summary: &ReplySummary,
    ) {
        let Some((owner, client)) = owner.and_then(|owner| Some((owner, self.clients.get(owner)?)))
        else {
            return self.retire(lease);
        };
        if let Some((code, text)) = &summary.error {
            return self.restore_failed(lease, owner, Behind::Unknown, (*code, text));
        }
        let Some(backend) = self.backends.get_mut(lease) else {
            return;
        };
        // Its client has been told of the beginning, if it is told of transactions at all.
        let wanted = told_to(client, &self.shared.server);
        let told = match client.capabilities & SESSION_TRACK != 0 {
            true => keep(
                &summary.changes,
                &wanted,
                &mut backend.bound,
                &mut Vec::new(),
            ),
            false => Ok(false),
        };
        let read = changes(&summary.changes, |change| match change {
            Change::TransactionState(state) => backend.transaction.note_state(state),
            Change::TransactionCharacteristics(sql) => {
                backend.transaction.note_characteristics(sql);
            }
            _ => {}
        });
        if told.is_err() || read.is_err() {
            self.lose(lease, "the server sent session changes that cannot be read");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_texts_alone_are_edges() {
        for begin in ["BEGIN", "begin", " Start Transaction\n", "BEGIN WORK"] {
            assert_eq!(edge_of(begin.as_bytes()), Some(Edge::Begin), "{begin}");
        }
        for end in ["COMMIT", "rollback ", "Commit Work", "ROLLBACK WORK"] {
            assert_eq!(edge_of(end.as_bytes()), Some(Edge::End), "{end}");
        }
        for other in [
            "",
            "BEGIN;",
            "BEGIN NOT ATOMIC",
            "START TRANSACTION READ ONLY",
            "START TRANSACTION READ WRITE",
            "START TRANSACTION WITH CONSISTENT SNAPSHOT",
            "START  TRANSACTION",
            "START SLAVE",
            "COMMIT AND CHAIN",
            "ROLLBACK RELEASE",
            "ROLLBACK TO a",
            "/*!BEGIN*/",
            "BEGIN -- x",
        ] {
            assert_eq!(edge_of(other.as_bytes()), None, "{other}");
        }
    }
}
