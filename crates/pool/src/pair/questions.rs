//! Questions of the pool's own that go to a client's backend behind its statement.
//!
//! A question is a statement for the server: what the client's last one has left for others to read
//! is no longer what stands on the backend. Invariant: what a question takes away is noted with the
//! question, before it goes out.

use crate::backend::{InFlight, Purpose};
use crate::pair::Pair;
use session::last_statement::{COUNTS, LEFT_BY_STATEMENT, RowCount};
use sql::classify::Reads;
use sql::lex::Server;
use wire::attributes::put_query;
use wire::command::ReplyShape;

const WARNINGS: &[u8] = b"SHOW WARNINGS";
/// Its answer has no rows, and columns in the session's character set.
const NO_WARNINGS: &[u8] = b"SHOW WARNINGS LIMIT 0";

impl<S> Pair<'_, S> {
    /// Writes a question, and notes what it takes away.
    pub(crate) fn put_question(&mut self, out: &mut Vec<u8>, purpose: Purpose, sql: &[u8]) {
        // On MariaDB a query of no table leaves the conditions before it.
        let mariadb = matches!(self.context.server.flavour, Server::MariaDb(_));
        // SHOW WARNINGS leaves the ROW_COUNT() of a statement with rows, and of an error.
        let uncounted = self.client.last.row_count == RowCount::NONE;
        self.client.last.disown(match purpose {
            Purpose::Warnings if uncounted => Reads::NONE,
            Purpose::Warnings | Purpose::Retold => COUNTS,
            _ if mariadb => COUNTS.union(Reads::FOUND_ROWS),
            _ => LEFT_BY_STATEMENT,
        });
        match purpose {
            Purpose::Warnings | Purpose::Retold => {}
            Purpose::ReadBack(_) => self.backend.found = Some(1),
            _ => self.backend.found = None,
        }
        let command = InFlight::own(Some(self.owner), purpose, ReplyShape::Results);
        self.backend.expect(command);
        put_query(out, self.backend.form, sql);
    }

    /// Has the backend show the conditions of its client's last statement, to be kept.
    pub(crate) fn ask_for_conditions(&mut self) -> Vec<u8> {
        self.client.last.owed.warnings = false;
        self.client.last.owed.failed = false;
        let mut out = Vec::with_capacity(WARNINGS.len() + 8);
        self.put_question(&mut out, Purpose::Warnings, WARNINGS);
        out
    }

    /// Has the backend show no conditions, in the character set in which those that are kept of its
    /// client are shown from now on.
    pub(crate) fn ask_for_frame(&mut self) -> Vec<u8> {
        self.client.last.asks_for_frame();
        let mut out = Vec::with_capacity(NO_WARNINGS.len() + 8);
        self.put_question(&mut out, Purpose::Warnings, NO_WARNINGS);
        out
    }

    /// Has the server report what the client's last statement set.
    pub(crate) fn retell(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        let Some(touched) = &mut self.client.touched else {
            return out;
        };
        let sets = std::mem::take(&mut touched.sets);
        touched.awaited += sets.len();
        for set in sets {
            self.put_question(&mut out, Purpose::Retold, &set);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::touched::Touched;
    use crate::pair::tests::{Parts, owner};
    use session::last_statement::LastStatement;
    use session::read_back::{Properties, Question};

    const ALL: Reads = LEFT_BY_STATEMENT;

    /// Values that the client's backend still has of its last statement behind a question for this,
    /// and its FOUND_ROWS() there, if that is known; before it has all, and it is 7.
    fn left(purpose: Purpose, server: Server, row_count: RowCount) -> (Reads, Option<u64>) {
        let mut parts = Parts::bound();
        parts.server.flavour = server;
        parts.client.last.own(ALL);
        parts.client.last.row_count = row_count;
        parts.backend.found = Some(7);
        let mut out = Vec::new();
        parts.pair().put_question(&mut out, purpose, b"SELECT 1");
        assert!(out.ends_with(b"\x03SELECT 1"), "{out:?}");
        assert_eq!(parts.purposes(), [purpose]);
        assert_eq!(parts.backend.flight()[0].owner, Some(owner()));
        (ALL.without(parts.client.last.lost()), parts.backend.found)
    }

    fn read_back() -> Purpose {
        let asked = Question {
            properties: Properties::ROLE,
            ..Question::default()
        };
        Purpose::ReadBack(asked.asked())
    }

    const SERVERS: [Server; 2] = [Server::MariaDb(110_400), Server::MySql(90_700)];

    /// The ROW_COUNT() of a statement that has counted.
    fn counted() -> RowCount {
        LastStatement::default().row_count
    }

    #[test]
    fn showing_conditions_leaves_them_and_takes_the_counts_of_what_has_counted() {
        for server in SERVERS {
            let (kept, found) = left(Purpose::Warnings, server, counted());
            assert_eq!((kept, found), (ALL.without(COUNTS), Some(7)));
            // What has rows, or has failed, leaves -1, and so does the question.
            let (kept, _) = left(Purpose::Warnings, server, RowCount::NONE);
            assert_eq!(kept, ALL);
        }
    }

    #[test]
    fn a_set_that_is_told_again_takes_the_counts_alone() {
        for server in SERVERS {
            let (kept, found) = left(Purpose::Retold, server, RowCount::NONE);
            assert_eq!((kept, found), (ALL.without(COUNTS), Some(7)));
        }
    }

    #[test]
    fn a_query_takes_all_but_conditions_on_mariadb() {
        let [mariadb, mysql] = SERVERS;
        let (kept, found) = left(read_back(), mariadb, counted());
        let gone = COUNTS.union(Reads::FOUND_ROWS);
        assert_eq!(kept, ALL.without(gone));
        assert_eq!(found, Some(1), "it has one row");
        let (kept, found) = left(read_back(), mysql, counted());
        assert_eq!((kept, found), (Reads::NONE, Some(1)));
        let (_, found) = left(Purpose::LazyReadback(true), mysql, counted());
        assert_eq!(found, None, "who asks so knows how many rows it has");
    }

    #[test]
    fn conditions_are_asked_for_once() {
        let mut parts = Parts::bound();
        let owed = &mut parts.client.last.owed;
        (owed.warnings, owed.failed) = (true, true);
        let out = parts.pair().ask_for_conditions();
        assert!(out.ends_with(b"\x03SHOW WARNINGS"), "{out:?}");
        assert_eq!(parts.purposes(), [Purpose::Warnings]);
        let owed = parts.client.last.owed;
        assert!(!owed.warnings && !owed.failed);
    }

    #[test]
    fn each_set_is_told_again_and_waited_for() {
        let mut parts = Parts::bound();
        assert!(parts.pair().retell().is_empty(), "there is none");
        let sets = [&b"SET a=1"[..], b"SET b=2"].map(<[u8]>::to_vec);
        let touched = Touched {
            sets: sets.to_vec(),
            awaited: 1,
            ..Touched::default()
        };
        parts.client.touched = Some(Box::new(touched));
        let out = String::from_utf8_lossy(&parts.pair().retell()).into_owned();
        let places = ["SET a=1", "SET b=2"].map(|set| out.find(set));
        assert!(places[0].is_some() && places[0] < places[1], "{out}");
        assert_eq!(parts.purposes(), [Purpose::Retold; 2]);
        let touched = parts.client.touched.as_ref().unwrap();
        assert_eq!(touched.awaited, 3);
        assert!(!touched.is_untracked(), "none is told twice");
    }
}
