//! Questions of the pool's own that go to a client's backend behind its statement.
//!
//! A question is a statement for the server: what the client's last one has left for others to read
//! is no longer what stands on the backend. Invariant: what a question takes away is noted with the
//! question, before it goes out.

use crate::backend::{ForSession, InFlight};
use crate::pair::Pair;
use session::last_statement::{COUNTS, LEFT_BY_STATEMENT, RowCount};
use sql::classify::Reads;
use sql::lex::Server;
use wire::attributes::put_query;
use wire::command::ReplyShape;

const WARNINGS: &[u8] = b"SHOW WARNINGS";

impl Pair<'_> {
    /// Writes a question, and notes what it takes away.
    pub(crate) fn put_question(&mut self, out: &mut Vec<u8>, purpose: ForSession, sql: &[u8]) {
        // On MariaDB a query of no table leaves the conditions before it.
        let mariadb = matches!(self.context.server.flavour, Server::MariaDb(_));
        // SHOW WARNINGS leaves the ROW_COUNT() of a statement with rows, and of an error.
        let uncounted = self.client.last.row_count == RowCount::NONE;
        self.client.last.invalidate(match purpose {
            ForSession::Warnings if uncounted => Reads::NONE,
            ForSession::Warnings | ForSession::SetAgain => COUNTS,
            _ if mariadb => COUNTS.union(Reads::FOUND_ROWS),
            _ => LEFT_BY_STATEMENT,
        });
        let command = InFlight::own(Some(self.owner), purpose, ReplyShape::Results);
        self.flight.expect(command);
        put_query(out, self.ends.on.form, sql);
    }

    /// Bytes that ask the backend for the conditions of its client's last statement, to be
    /// retained.
    pub(crate) fn ask_for_conditions(&mut self) -> Vec<u8> {
        self.client.last.pending.warnings = false;
        self.client.last.pending.failed = false;
        let mut out = Vec::with_capacity(WARNINGS.len() + 8);
        self.put_question(&mut out, ForSession::Warnings, WARNINGS);
        out
    }

    /// Bytes that make the server report again what the client's last statement set.
    pub(crate) fn retell(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        let Some(modified) = &mut self.client.modified else {
            return out;
        };
        let sets = std::mem::take(&mut modified.sets);
        modified.awaited += sets.len();
        for set in sets {
            self.put_question(&mut out, ForSession::SetAgain, &set);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::modified::Modified;
    use crate::pair::tests::{Parts, owner};
    use session::last_statement::LastStatement;
    use session::read_back::{Properties, Question};

    const ALL: Reads = LEFT_BY_STATEMENT;

    /// Values of its client's last statement that the backend, which has all, still has behind a
    /// question for this.
    fn left(purpose: ForSession, server: Server, row_count: RowCount) -> Reads {
        let mut parts = Parts::bound();
        parts.server.flavour = server;
        parts.client.session.last.own(ALL);
        parts.client.session.last.row_count = row_count;
        let mut out = Vec::new();
        parts.pair().put_question(&mut out, purpose, b"SELECT 1");
        assert!(out.ends_with(b"\x03SELECT 1"), "{out:?}");
        assert_eq!(parts.purposes(), [purpose.into()]);
        assert_eq!(parts.backend.flight.front().unwrap().owner, Some(owner()));
        ALL.without(parts.client.session.last.lost())
    }

    fn read_back() -> ForSession {
        let asked = Question {
            properties: Properties::ROLE,
            ..Question::default()
        };
        ForSession::ReadBack(asked.asked())
    }

    const SERVERS: [Server; 2] = [Server::MariaDb(110_400), Server::MySql(90_700)];

    /// The ROW_COUNT() of a statement that has counted.
    fn counted() -> RowCount {
        LastStatement::default().row_count
    }

    #[test]
    fn a_question_takes_away_what_its_server_says_anew() {
        let counts = COUNTS.union(Reads::FOUND_ROWS);
        for server in SERVERS {
            let shown = left(ForSession::Warnings, server, counted());
            assert_eq!(shown, ALL.without(COUNTS));
            // What has rows, or has failed, leaves -1, and so does the question.
            assert_eq!(left(ForSession::Warnings, server, RowCount::NONE), ALL);
            let told_again = left(ForSession::SetAgain, server, RowCount::NONE);
            assert_eq!(told_again, ALL.without(COUNTS));
        }
        let [mariadb, mysql] = SERVERS;
        assert_eq!(left(read_back(), mariadb, counted()), ALL.without(counts));
        assert_eq!(left(read_back(), mysql, counted()), Reads::NONE);
    }

    #[test]
    fn conditions_are_asked_for_once() {
        let mut parts = Parts::bound();
        let pending = &mut parts.client.session.last.pending;
        (pending.warnings, pending.failed) = (true, true);
        let out = parts.pair().ask_for_conditions();
        assert!(out.ends_with(b"\x03SHOW WARNINGS"), "{out:?}");
        assert_eq!(parts.purposes(), [ForSession::Warnings.into()]);
        let pending = parts.client.session.last.pending;
        assert!(!pending.warnings && !pending.failed);
    }

    #[test]
    fn each_set_is_told_again_and_waited_for() {
        let mut parts = Parts::bound();
        assert!(parts.pair().retell().is_empty(), "there is none");
        let sets = [&b"SET a=1"[..], b"SET b=2"].map(<[u8]>::to_vec);
        let modified = Modified {
            sets: sets.to_vec(),
            awaited: 1,
            ..Modified::default()
        };
        parts.client.session.modified = Some(Box::new(modified));
        let out = String::from_utf8_lossy(&parts.pair().retell()).into_owned();
        let places = ["SET a=1", "SET b=2"].map(|set| out.find(set));
        assert!(places[0].is_some() && places[0] < places[1], "{out}");
        assert_eq!(parts.purposes(), [ForSession::SetAgain.into(); 2]);
        let modified = parts.client.session.modified.as_ref().unwrap();
        assert_eq!(modified.awaited, 3);
        assert!(!modified.is_untracked(), "none is told twice");
    }
}
