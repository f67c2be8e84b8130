//! Texts that no server has to see: the edges of a transaction of which no backend knows, SETs that
//! change nothing, and empty texts one behind the other.
//!
//! # Edges
//!
//! The problem: BEGIN does nothing but set a flag, and costs a round trip and a backend; a client
//! that begins a transaction and then thinks holds a backend meanwhile. The mechanism: the pool
//! answers a plain BEGIN itself, as the server would. BEGIN goes out in front of the client's next
//! statement, in the same write. A COMMIT or ROLLBACK that comes instead ends nothing, so the pool
//! answers it too; and so it does where none has begun at all, as behind each request of frameworks
//! that roll back what they give back.
//!
//! A COMMIT or ROLLBACK that goes to the server gives its backend free. What only that backend
//! knows of its client is asked in the same write ([`Alone::asks_before_end`]).
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
//!
//! # Empty texts
//!
//! A server answers an empty text with an error, whose condition is read back. An empty text behind
//! another one, with nothing sent in between, is answered here with the same error once that is
//! read: nothing else comes of it, and the condition stays.
//!
//! # SETs
//!
//! The problem: frameworks and drivers set `autocommit`, `sql_mode` or the isolation level with
//! each request, to what it is already; each such SET costs a round trip and a backend. The
//! mechanism: the pool knows the values of its client's session. A SET of nothing but listed
//! variables to literals ([`sql::plain_set`]) that changes none of them is answered here.
//!
//! What servers do (MariaDB 10.11, MySQL 9.7): such a SET leaves ROW_COUNT() 0 and keeps
//! FOUND_ROWS(); MySQL clears conditions, MariaDB keeps them. It is reported even where nothing
//! changes, so a client that is told of such a variable hears the server. USE of the present schema
//! is not among these: the schema may be gone, or the right to use it.
//!
//! Invariant: a SET is answered here only where the server would answer with a plain OK and stay as
//! it is; where that is not known, the server answers.

use crate::backend::Reports;
use crate::client::Client;
use crate::client::answers::EMPTY_QUERY;
use crate::observe::figures::counts::Counts;
use crate::pair::restoring::BEGIN;
use crate::pair::trackers::wanted_by;
use crate::pair::view::ClientView;
use crate::server::facts::ServerFacts;
use session::read_back::Properties;
use session::state::{CHARSET_VARIABLES, LEVEL_NAMES};
use session::statement::Conditions;
use sql::lex::LexMode;
use sql::plain_set::{Assignment, assignments};
use wire::attributes::{Form, header_len};
use wire::capabilities::SESSION_TRACK;
use wire::command::Command;
use wire::packet::HEADER_LEN;
use wire::track::{Bound, Transactions, put_bound};

/// Commands that the pool answers itself, with the session's status.
pub(crate) fn is_answered_here(command: Command) -> bool {
    matches!(
        command,
        Command::Ping | Command::SetOption | Command::StmtReset
    )
}

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

/// Variable that MySQL reports with every statement where all variables are tracked.
const STATEMENT_ID: &[u8] = b"statement_id";
/// Sessions whose transactions are read-only are told so, where they begin.
const READ_ONLY: [&[u8]; 2] = [b"transaction_read_only", b"tx_read_only"];

/// Effect of a text on a transaction, if that is all that it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edge {
    Begin,
    End,
}

/// Read so narrowly that no server reads the text otherwise.
pub(crate) fn edge_of(sql: &[u8]) -> Option<Edge> {
    let longest = BEGINS[1].len();
    let text = sql.trim_ascii();
    let is_one_of = |texts: &[&[u8]]| texts.iter().any(|one| one.eq_ignore_ascii_case(text));
    match text.len() <= longest {
        true if is_one_of(&BEGINS) => Some(Edge::Begin),
        true if is_one_of(&ENDS) => Some(Edge::End),
        _ => None,
    }
}

/// True if a time limit or a switch of a server is not off.
fn is_set(value: &[u8]) -> bool {
    !matches!(value, b"0" | b"OFF")
}

impl<S> Client<S> {
    /// Notes a text answered locally with OK, which has begun or ended its transaction, or changed
    /// nothing.
    pub(crate) fn note_answered_locally(
        &mut self,
        edge: Option<Edge>,
        mysql: bool,
        counts: &mut Counts,
    ) {
        let begun = self.command.is_begin_deferred();
        match edge {
            Some(Edge::Begin) => {
                self.command.defer_begin();
                counts.transactions_deferred += 1;
            }
            Some(Edge::End) => {
                self.command.allow_pipelining();
                match begun {
                    true => counts.transactions_unsent += 1,
                    false => counts.ends_spared += 1,
                }
            }
            None => counts.sets_spared += 1,
        }
        match mysql {
            true => {
                self.session.last.answered_clean(0);
                // What clears its conditions there counts.
                if self.session.last.counts_unread() {
                    (self.session.last).invalidate(sql::classify::Reads::FOUND_ROWS);
                }
            }
            false => self.session.last.answered_uncounted(0),
        }
    }
}

/// A client, and whether it may be answered without the server.
pub(crate) struct Alone<'a, S> {
    pub(crate) view: ClientView<'a, S>,
    pub(crate) server: &'a ServerFacts,
    /// The settings want it so, and nobody drains.
    pub(crate) is_on: bool,
}

impl<S> Alone<'_, S> {
    /// True if a client stands so that a text that needs no server may be answered here, and a
    /// transaction may begin and end for it alone.
    pub(crate) fn may_answer(&self) -> bool {
        let client = self.view.client;
        let session = &client.session.state;
        let is_set = |name: &&[u8]| session.value(name).is_some_and(is_set);
        client.backend().is_none()
            && !client.session.is_held()
            && client.session.modified.is_none()
            && !client.ended.is_interrupted()
            // There BEGIN begins a block.
            && !session.sql_mode_has("ORACLE")
            && !IDLE_TIMEOUTS.iter().chain(&READ_ONLY).any(is_set)
    }

    /// True if the client's backend alone knows its LAST_INSERT_ID(), and nothing else of it.
    fn owes_insert_id_alone(&self) -> bool {
        let client = self.view.client;
        let pending = &client.session.last.pending;
        client.session.changed_properties() == Properties::INSERT_ID
            && !(pending.warnings
                || pending.failed
                || client.session.is_held()
                || client.session.modified.is_some())
            && !(client.session.last.has_conditions() || client.session.last.counts_unread())
            && client.session.state.completes_plainly()
    }

    /// True if COMMIT and ROLLBACK do and report nothing, where no transaction is open for it.
    fn ends_nothing(&self) -> bool {
        let client = self.view.client;
        let session = &client.session.state;
        let autocommit = session.value(b"autocommit");
        session.completes_plainly()
            && matches!(autocommit, Some(b"ON" | b"1"))
            // MySQL may report one with any COMMIT.
            && !session.tracks_gtids()
            && client.session.pending_changes.bytes().is_empty()
    }

    /// The backend that is asked for LAST_INSERT_ID() in the same write as the COMMIT or ROLLBACK
    /// that is to give it free, and in front of that: asked behind it, the question would cost a
    /// round trip. Only where the text tells all that it does, and where nothing is to be asked but
    /// LAST_INSERT_ID(), which it does not change.
    pub(crate) fn asks_before_end(&self) -> bool {
        let client = self.view.client;
        let Some(backend) = self.view.backend.filter(|_| self.owes_insert_id_alone()) else {
            return false;
        };
        let wanted = wanted_by(&client.session, self.server);
        // In a transaction that it is told of, a question of the pool's own would show.
        let tells = wanted.state || wanted.transactions.has_states();
        let rests = backend.flight.is_empty() && !backend.reuse.is_frozen();
        let has_reports = backend.session.reports == Reports::Complete;
        !tells && rests && has_reports && backend.session.in_transaction()
    }

    /// Reports in the answer to such a text. `None` where the client is to be told what only the
    /// server can say, or the server does more than to begin or to end.
    pub(crate) fn reports_of_edge(&self, edge: Edge) -> Option<Vec<u8>> {
        let client = self.view.client;
        if !self.is_on {
            return None;
        }
        let wanted = wanted_by(&client.session, self.server);
        let tracks = client.capabilities & SESSION_TRACK != 0;
        let bounds = tracks && wanted.transactions == Transactions::Bounds;
        if tracks && (wanted.state || wanted.transactions.has_states()) {
            return None;
        }
        let to = match (edge, client.command.is_begin_deferred()) {
            (Edge::Begin, false) => Some(Bound::Inside),
            // One ends and another one begins, which the server has a form of its own to say.
            (Edge::Begin, true) if bounds => return None,
            (Edge::Begin, true) => None,
            (Edge::End, true) if client.session.state.completes_plainly() => Some(Bound::Outside),
            (Edge::End, true) => return None,
            (Edge::End, false) if tracks && wanted.tells_of(STATEMENT_ID) => return None,
            (Edge::End, false) if self.ends_nothing() => None,
            (Edge::End, false) => return None,
        };
        let mut reports = Vec::new();
        if let Some(to) = to.filter(|_| bounds) {
            put_bound(&mut reports, to);
        }
        Some(reports)
    }

    /// True if a client has its backend only until the pool's questions behind its last statement
    /// are answered.
    pub(crate) fn is_about_to_leave(&self) -> bool {
        let backend = (self.view.backend).filter(|_| !self.view.client.session.is_held());
        backend.is_some_and(|b| !b.session.in_transaction() && !b.flight.is_empty())
    }

    /// True if a command that waits in the client's input may need no backend.
    pub(crate) fn may_need_no_backend(&self) -> bool {
        let client = self.view.client;
        let Some(input) = client.input.bytes() else {
            return false;
        };
        let message = &input[..client.input.command_len()];
        let payload = message.get(HEADER_LEN..).unwrap_or_default();
        let Some((&byte, arguments)) = payload.split_first() else {
            return false;
        };
        let header = header_len(Form::of(client.capabilities), arguments).unwrap_or(0);
        let sql = &arguments[header..];
        let mode = client.lex_mode(self.server);
        let needs_none = |edge| self.reports_of_edge(edge).is_some();
        byte == Command::Query.byte()
            && (edge_of(sql).is_some_and(needs_none)
                || self.sets_nothing(sql, mode)
                || sql.is_empty() && self.repeats_empty())
    }

    /// True if the last statement that a client has sent to a server was an empty text.
    pub(crate) fn follows_empty(&self) -> bool {
        self.is_on && self.view.client.session.statement.conditions == Conditions::Empty
    }

    /// True if an empty text leaves all as it is: the server's error for the one before, and what
    /// that has left, are known.
    pub(crate) fn repeats_empty(&self) -> bool {
        let client = self.view.client;
        self.follows_empty()
            && !client.command.is_begin_deferred()
            && client.session.last.fails_again(EMPTY_QUERY)
            && self.may_answer()
    }

    /// True if a text is a SET that leaves a client's session as it is, and of which the client is
    /// told nothing.
    pub(crate) fn sets_nothing(&self, sql: &[u8], mode: LexMode) -> bool {
        let client = self.view.client;
        if !self.is_on || client.command.is_begin_deferred() {
            return false;
        }
        let Some(all) = assignments(sql, mode) else {
            return false;
        };
        let server = self.server;
        let wanted = wanted_by(&client.session, server);
        let tracks = client.capabilities & SESSION_TRACK != 0;
        let tells_of_all = wanted.state
            || wanted.transactions.has_states()
            || wanted.tells_of(STATEMENT_ID)
            || !client.session.pending_changes.bytes().is_empty();
        let is_told = |assignment: &Assignment<'_>| match *assignment {
            Assignment::Variable(name, _) => wanted.tells_of(name.as_bytes()),
            Assignment::Level(_) => LEVEL_NAMES.iter().any(|name| wanted.tells_of(name)),
            Assignment::Names(..) => {
                (CHARSET_VARIABLES.iter()).any(|name| wanted.tells_of(name.as_bytes()))
            }
        };
        if tracks && (tells_of_all || all.iter().any(is_told)) {
            return false;
        }
        // A collation that is still to be asked is known when its backend is given free.
        let unread = (client.session.changed_properties()).intersects(Properties::COLLATION);
        let described = |collation: &[u8]| match unread {
            true => None,
            false => server.results_by_name(collation),
        };
        (all.iter()).all(|assignment| client.session.state.stands_at(assignment, described))
    }
}

#[cfg(test)]
mod tests;
