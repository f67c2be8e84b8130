//! State that a client's statement leaves when its reply is complete: counts, conditions,
//! FOUND_ROWS(); those of them that are still valid on a backend, and what clears them.
//!
//! The problem: the next statement may ask for any of it, and both ends have a part: the client
//! what the reply told, its backend the rest, as long as nothing changes it there. The mechanism:
//! [`session::last_statement::LastStatement`] says what a statement leaves; here the backend's part
//! is brought to the same, and what it will not be able to tell is taken from the client.
//!
//! Conditions (warnings, errors): a server session keeps those of its last statement, and SHOW
//! WARNINGS, GET DIAGNOSTICS, or code that a text runs, would show those of the client before. A
//! backend notes whose conditions it may hold; before another client's command goes out on it, a
//! statement that clears them does, in the same write ([`Pair::put_clearing`]).
//!
//! FOUND_ROWS() is what the session's last query found, and the backend that ran it may have served
//! others since. Most texts tell: the rows of the reply count, or the number stays
//! ([`session::found::Found`]). Behind SQL_CALC_FOUND_ROWS, whose client asks next, it is read
//! back. What a query counts otherwise than it sends (UNION, OFFSET, INTO), or perhaps (CALL,
//! EXPLAIN), its backend knows until it serves somebody else; then a question is refused.
//!
//! What is said here of a text was compared with MariaDB 10.11 and MySQL 9.7.
//!
//! Invariants: a client's number is known, or its backend has it, or it is neither and a question
//! is refused; no client's statement runs where another client's conditions stand.

use crate::backend::{BackendSession, ForBackend, ForSession, InFlight, Purpose};
use crate::errors::reasons::PinReason;
use crate::group::tokens::ClientId;
use crate::pair::Pair;
use session::diagnostics::Area;
use session::last_gtid::doubt;
use session::last_statement::COUNTS;
use session::read_back::{Answer, Ended, Properties};
use session::reply_summary::ReplySummary;
use session::send_mode::SendMode;
use session::statement::{Code, Untracked};
use sql::classify::Reads;
use sql::lex::Server;
use wire::attributes::put_query;
use wire::capabilities::NO_SCHEMA;
use wire::command::ReplyShape;

/// Clears MariaDB's conditions, for it looks at a table, and leaves FOUND_ROWS().
const CLEARS_MARIADB: &str = "SHOW CREATE TABLE information_schema.TABLES";
/// Clears MariaDB's for a client with CLIENT_NO_SCHEMA, for whom no table has a schema: it names a
/// table, though it never reads it.
const CLEARS_WITHOUT_SCHEMA: &str = "DO IF(0,(SELECT 1 FROM (SELECT 1) AS x),1)";
/// Clears MySQL's, as any statement does that does not ask for them.
const CLEARS_MYSQL: &str = "DO 0";

/// Owner of the conditions of a statement for which nobody waits.
const NOBODY: ClientId = ClientId::from_parts(u32::MAX, 0);

/// Errors of a SET that has not begun: no such variable, none of a session, none that can be set.
pub(super) const NOT_BEGUN: [u16; 3] = [1193, 1229, 1238];

impl Pair<'_> {
    /// Notes what the client's statement has left; `alone`: nothing of others stands behind it on
    /// the backend.
    pub(crate) fn note_left(&mut self, command: &InFlight, summary: &ReplySummary, alone: bool) {
        let client = &mut *self.client;
        self.command.allow_pipelining();
        if !client.pins.is_empty() {
            client.pins.answered(summary);
        }
        if let Some(modified) = &mut client.modified {
            modified.note_result(summary.error.is_some());
        }
        if let Some((code, _)) = &summary.error {
            doubt(self.context.gtids, self.owner, (&client.statement, *code));
        }
        if self.may_have_set_unseen(summary) {
            self.pin(PinReason::UnexplainedChange);
        }
        self.client.last.ended(&Ended {
            statement: &self.client.statement,
            summary,
            rows: command.reply.reply().rows(),
            session: &self.client.state,
            alone,
            mysql: self.context.server.flavour.is_mysql(),
        });
        let (session, there) = (&self.client.state, &self.backend.state);
        // What is to follow would begin with COM_SET_OPTION, which sets the counts itself.
        if there.multi_statements != session.multi_statements {
            self.client.last.invalidate(COUNTS);
        }
        // COM_INIT_DB is sent in whatever schema the backend is; where it fails, the session's own
        // is to be set in front of what follows.
        let moves = self.client.statement.send_mode == SendMode::NewSchema;
        if summary.error.is_some() && moves && !there.stands_in_schema_of(session) {
            (self.client.last).invalidate(COUNTS.union(Reads::DIAGNOSTICS));
        }
    }

    /// True if the statement may have set a variable before it failed: an error has no room for a
    /// report. Where its values call nothing, errors of [`NOT_BEGUN`] come before the first.
    fn may_have_set_unseen(&self, summary: &ReplySummary) -> bool {
        let statement = &self.client.statement;
        let begun =
            |(code, _): &(u16, _)| statement.code != Code::None || !NOT_BEGUN.contains(code);
        statement.untracked.contains(Untracked::WHERE_IT_FAILS)
            && !self.context.server.flavour.is_mysql()
            && summary.error.as_ref().is_some_and(begun)
    }

    /// Takes the FOUND_ROWS() that was read back.
    pub(super) fn note_found_rows(&mut self, answer: &Answer) {
        let Some(found) = answer.number(Properties::FOUND_ROWS) else {
            return;
        };
        self.client.last.found_rows.set(Some(found));
    }

    /// True if the backend may hold conditions that are not those of its client's statement before:
    /// no client is to read another's, whatever its text, or code that it calls, asks for.
    pub(super) fn has_conditions_of_others(&self) -> bool {
        (self.backend.conditions_of).is_some_and(|of| self.are_of_others(of))
    }

    /// True if conditions of this client's last statement are not its own to be seen.
    fn are_of_others(&self, of: ClientId) -> bool {
        // What the last statement has left here, if with fewer conditions than are kept of it.
        let here = [Reads::DIAGNOSTICS, Reads::ROW_COUNT];
        let here = (here.iter()).any(|&what| self.client.last.is_valid_on_backend(what));
        // Its own, or those of what has restored its session, MySQL clears itself unless the text
        // asks for them; a statement in front would count.
        let asks = (self.client.statement.looks_back).contains(Reads::DIAGNOSTICS);
        let cleared = self.context.server.flavour.is_mysql() && !asks;
        let own = of == self.owner && (here || cleared);
        // Within a transaction nobody else has been here.
        !own && !self.backend.in_transaction()
    }

    /// Writes what clears them.
    pub(super) fn put_clearing(&mut self, out: &mut Vec<u8>) {
        let (client, backend) = (&mut *self.client, &mut *self.backend);
        let clears = match self.context.server.flavour {
            Server::MariaDb(_) if self.ends.capabilities & NO_SCHEMA != 0 => CLEARS_WITHOUT_SCHEMA,
            Server::MariaDb(_) => CLEARS_MARIADB,
            _ => {
                client.last.invalidate(Reads::FOUND_ROWS);
                CLEARS_MYSQL
            }
        };
        backend.conditions_of = None;
        (client.last).invalidate(COUNTS.union(Reads::DIAGNOSTICS));
        let command = InFlight::own(Some(self.owner), ForBackend::Clearing, ReplyShape::Results);
        self.flight.expect(command);
        put_query(out, self.ends.on.form, clears.as_bytes());
    }
}

impl BackendSession {
    /// Notes whose conditions it may hold after an answered command. `area`: what the statement of
    /// the command's owner does with those of before.
    pub(crate) fn note_conditions_left(
        &mut self,
        command: &InFlight,
        summary: &ReplySummary,
        area: Option<Area>,
    ) {
        if !matches!(
            command.purpose,
            Purpose::Statement
                | Purpose::Backend(ForBackend::Schema)
                | Purpose::Session(
                    ForSession::Ahead | ForSession::Joined(_) | ForSession::Restore(_)
                )
        ) {
            return;
        }
        if summary.error.is_some() || summary.warned || area == Some(Area::Warns) {
            self.conditions_of = Some(command.owner.unwrap_or(NOBODY));
        } else if area == Some(Area::Clears) && command.purpose == Purpose::Statement {
            self.conditions_of = None;
        }
    }

    /// Notes the warning that FOUND_ROWS(), asked by the pool for a client, leaves on MySQL. It is
    /// no client's.
    pub(crate) fn note_deprecation(&mut self, client: ClientId, server: Server) {
        if server.is_mysql() {
            self.conditions_of = Some(client);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::tests::{Parts, owner};
    use session::found::Found;
    use session::plan::statement_without_text;
    use session::state::Session;
    use std::rc::Rc;
    use wire::command::Command;

    fn ends(parts: &mut Parts, summary: &ReplySummary, alone: bool) {
        let command = InFlight::own(Some(owner()), Purpose::Statement, ReplyShape::Results);
        parts.pair().note_left(&command, summary, alone);
    }

    /// Changes the backend's session, so that it differs from its client's.
    fn differs(parts: &mut Parts, change: impl FnOnce(&mut Session)) {
        let mut session = (*parts.client.session.state).clone();
        change(&mut session);
        parts.backend.session.state = Rc::new(session);
    }

    #[test]
    fn a_warning_that_no_reply_counts_is_its_clients_too() {
        let mysql = Server::MySql(90_700);
        let statement = statement_without_text(Command::FieldList, mysql);
        let command = InFlight::own(Some(owner()), Purpose::Statement, ReplyShape::Rows);
        let mut parts = Parts::bound();
        let summary = ReplySummary::default();
        (parts.backend)
            .session
            .note_conditions_left(&command, &summary, Some(statement.area));
        assert_eq!(parts.backend.session.conditions_of, Some(owner()));
    }

    #[test]
    fn counts_are_not_left_to_a_backend_that_is_told_of_several_statements_first() {
        let mut parts = Parts::bound();
        ends(&mut parts, &ReplySummary::default(), true);
        assert!(parts.client.session.last.is_valid_on_backend(COUNTS));
        differs(&mut parts, |session| {
            session.multi_statements = !session.multi_statements;
        });
        ends(&mut parts, &ReplySummary::default(), true);
        assert!(!parts.client.session.last.is_valid_on_backend(COUNTS));
    }

    #[test]
    fn a_set_of_several_that_fails_pins_once_it_may_have_set_one() {
        let (ok, failed) = (None, |code| Some((code, String::new())));
        let mariadb = Server::MariaDb(101_119);
        let mysql = Server::MySql(90_700);
        let several = Untracked::WHERE_IT_FAILS;
        for (server, untracked, code, error, pins) in [
            (mariadb, several, Code::None, failed(1230), true),
            (mariadb, several, Code::None, failed(1193), false),
            (mariadb, several, Code::None, failed(1229), false),
            (mariadb, several, Code::None, failed(1238), false),
            (mariadb, several, Code::Unread, failed(1193), true),
            (mariadb, several, Code::None, ok, false),
            (mariadb, Untracked::ROLE, Code::None, failed(1230), false),
            (mysql, several, Code::None, failed(1230), false),
        ] {
            let mut parts = Parts::bound();
            parts.server.flavour = server;
            parts.client.session.statement.untracked = untracked;
            parts.client.session.statement.code = code;
            let summary = ReplySummary {
                error,
                ..ReplySummary::default()
            };
            ends(&mut parts, &summary, true);
            let pinned = (parts.client.session.pins).is_pinned_for(PinReason::UnexplainedChange);
            assert_eq!(pinned, pins, "{server:?} {code:?} {summary:?}");
        }
    }

    #[test]
    fn the_error_of_a_change_of_schema_is_not_left_where_another_schema_is_set_first() {
        let failed = ReplySummary {
            error: Some((1049, "Unknown database".into())),
            ..ReplySummary::default()
        };
        let asked = COUNTS.union(Reads::DIAGNOSTICS);
        for (schema, native) in [(None, true), (Some(&b"other"[..]), false)] {
            let mut parts = Parts::bound();
            parts.client.session.statement.send_mode = SendMode::NewSchema;
            differs(&mut parts, |session| {
                session.schema = schema.map(Into::into)
            });
            ends(&mut parts, &failed, true);
            assert_eq!(parts.client.session.last.is_valid_on_backend(asked), native);
        }
    }

    #[test]
    fn a_count_is_the_backends_only_where_nothing_of_others_stands_behind() {
        let mut parts = Parts::bound();
        parts.client.session.statement.found = Found::Rows;
        ends(&mut parts, &ReplySummary::default(), true);
        assert!((parts.client.session.last).is_valid_on_backend(Reads::FOUND_ROWS));
        ends(&mut parts, &ReplySummary::default(), false);
        assert!(!(parts.client.session.last).is_valid_on_backend(Reads::FOUND_ROWS));
        assert_eq!(
            parts.client.session.last.found_rows.get(),
            Some(0),
            "it is the client's"
        );
    }
}
