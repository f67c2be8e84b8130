//! SET of variables to the values that they have, which no server has to see.
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

use crate::client::Handled;
use crate::group::Group;
use crate::group::statements::deferred_begin::STATEMENT_ID;
use crate::pair::trackers::told_to;
use reactor::{Key, Net};
use session::read_back::Properties;
use session::state::CHARSET_VARIABLES;
use sql::lex::LexMode;
use sql::plain_set::{Assignment, assignments};
use wire::capabilities::SESSION_TRACK;

impl<N: Net> Group<N> {
    /// Answers a SET that changes nothing. `None` where it may change something, or a backend has
    /// to run it.
    pub(crate) fn on_spared_set(&mut self, key: Key, sql: &[u8], mode: LexMode) -> Option<Handled> {
        if !self.sets_nothing(key, sql, mode) {
            return None;
        }
        if self.is_about_to_leave(key) {
            return Some(self.wait_for_read_back(key));
        }
        if !self.may_answer_alone(key, mode) {
            return None;
        }
        self.counts.sets_spared += 1;
        self.answer_alone(key, sql, mode, &[]);
        Some(Handled::Used)
    }

    /// Whether a text is a SET that leaves a client's session as it is, and of which the client is
    /// told nothing.
    pub(crate) fn sets_nothing(&self, key: Key, sql: &[u8], mode: LexMode) -> bool {
        let Some(client) = self.clients.get(key) else {
            return false;
        };
        if !self.settings.defer_begin || self.draining.is_some() || client.is_begin_deferred() {
            return false;
        }
        let Some(all) = assignments(sql, mode) else {
            return false;
        };
        let server = &self.shared.server;
        let wanted = told_to(client, server);
        let tracks = client.capabilities & SESSION_TRACK != 0;
        let tells_of_all = wanted.state
            || wanted.transactions.has_states()
            || wanted.tells_of(STATEMENT_ID)
            || !client.pending_changes.bytes().is_empty();
        let is_told = |assignment: &Assignment<'_>| match *assignment {
            Assignment::Variable(name, _) => wanted.tells_of(name.as_bytes()),
            Assignment::Names(..) => {
                (CHARSET_VARIABLES.iter()).any(|name| wanted.tells_of(name.as_bytes()))
            }
        };
        if tracks && (tells_of_all || all.iter().any(is_told)) {
            return false;
        }
        // A collation that is still to be asked is known when its backend is given free.
        let unread = client
            .changed_properties()
            .intersects(Properties::COLLATION);
        let described = |collation: &[u8]| match unread {
            true => None,
            false => server.results_by_name(collation),
        };
        (all.iter()).all(|assignment| client.session.stands_at(assignment, described))
    }
}
