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
