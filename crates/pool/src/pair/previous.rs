//! State that a statement leaves for questions about it: warnings, errors, and counts.
//!
//! The problem: SHOW WARNINGS, GET DIAGNOSTICS, `@@warning_count`, ROW_COUNT() and FOUND_ROWS() ask
//! the session about its last statement, and the backend that ran it may have served others since.
//! The mechanism: counts are taken from the reply, warnings are read back when the backend is
//! checked in (`next.rs`), and both stay with the client. A question that its backend cannot answer
//! is answered from there: rows that were kept are sent again, numbers are put into the text as
//! expressions of the same type ([`sql::own_id`]), GET DIAGNOSTICS becomes a SET of the same values
//! ([`sql::asked`]).
//!
//! Most statements clear the warnings before them, some leave them, and whether one has tables
//! decides on MariaDB. [`Area`] says what is known of a text; it was compared with MariaDB 10.11
//! and MySQL 9.7, statement by statement. What a statement makes of FOUND_ROWS(), and whose
//! conditions a backend holds, is noted in [`crate::pair::left`].
//!
//! Invariant: what is not known for certain is [`Previous::Gone`], never a guess.

use crate::pair::view::ClientView;
use crate::server::facts::ServerFacts;
use session::diagnostics::{Area, Diagnostics};
use session::last_gtid::LastGtid;
use session::plan::area_of;
use session::prepared::Definition;
use sql::asked::{Question, is_cut_short, question};
use sql::classify::{self, Marks, PinCause, Reads, Verb};
use sql::lex::{LexMode, Server};
use sql::own_id::{Values, with_values};

/// Answer to a question about the statement before, where its backend does not give it.
pub(crate) enum Previous {
    /// By these rows, as they were kept.
    Rows(Vec<u8>),
    /// By a backend, to this text instead.
    Text(Vec<u8>),
    /// By a backend, as it is.
    Same,
    /// Not at all.
    Gone,
}

/// True if FOUND_ROWS() in a text may tell of another query of the same text: to MariaDB it is the
/// number of rows so far behind UNION, and none behind a derived table.
fn counts_itself(found: &classify::Statement, server: Server) -> bool {
    let queries = found.marks.contains(Marks::SELECT_INSIDE)
        && found.marks.intersects(Marks::COUNTED.union(Marks::CUTS));
    queries && !server.is_mysql()
}

/// A client, and what is kept of its statement before.
pub(crate) struct Before<'a, S> {
    pub(crate) view: ClientView<'a, S>,
    /// True if it has a backend, or goes back to its last one.
    pub(crate) bound: bool,
    pub(crate) gtid: Option<&'a LastGtid>,
    pub(crate) server: &'a ServerFacts,
}

impl<'a, S> Before<'a, S> {
    /// Answers a text that reads what the statement before left, where its client's backend does
    /// not know.
    pub(crate) fn previous(
        &self,
        sql: &[u8],
        mode: LexMode,
        found: &classify::Statement,
    ) -> Previous {
        let client = self.view.client;
        if found.multi {
            return self.previous_of_several(sql, mode, found);
        }
        let asks = matches!(found.verb, Verb::Show | Verb::Diagnostics);
        if !asks {
            let text = with_values(sql, mode, self.values(found));
            // Galera's functions are asked where they stand.
            let lost = (found.reads).intersects(client.session.reads_lost(self.bound));
            let otherwise = if lost { Previous::Gone } else { Previous::Same };
            return text.map_or(otherwise, Previous::Text);
        }
        let question = question(sql, mode).filter(|_| !client.session.lacks_warnings());
        match question {
            Some(Question::Show {
                errors,
                offset,
                rows,
            }) => self.show(errors, offset, rows),
            Some(Question::Count { errors }) => {
                let name = if errors {
                    "error_count"
                } else {
                    "warning_count"
                };
                let sql = format!("SELECT @@session.{name}");
                let text = with_values(sql.as_bytes(), mode, self.values(found));
                text.map_or(Previous::Gone, Previous::Text)
            }
            Some(Question::Get(get)) => {
                let none = Diagnostics::default();
                let kept = client.session.last.kept().unwrap_or(&none);
                let rows = client.session.last.row_count.get();
                let text = kept.assignments(&get, rows, self.server.flavour);
                text.map_or(Previous::Gone, Previous::Text)
            }
            // The server's error, on any backend.
            None if is_cut_short(sql, mode) => Previous::Same,
            None => Previous::Gone,
        }
    }

    /// Answer for a text of several statements: only trackers, in which none of them has a part,
    /// can be told in each.
    fn previous_of_several(
        &self,
        sql: &[u8],
        mode: LexMode,
        found: &classify::Statement,
    ) -> Previous {
        let client = self.view.client;
        if (found.reads.of(client.session.reads_lost(self.bound))).is_empty() {
            return Previous::Same;
        }
        let sets = found.causes.contains(PinCause::SessionTracking);
        let trackers =
            found.reads.of(client.session.reads_elsewhere(self.bound)) == Reads::TRACKERS;
        let tells = client.session.state.multi_statements && trackers && !sets;
        let text = tells.then(|| with_values(sql, mode, self.values(found)));
        text.flatten().map_or(Previous::Gone, Previous::Text)
    }

    /// Values of the statement before, for the questions that its backend cannot answer.
    fn values(&self, found: &classify::Statement) -> Values<'a> {
        let client = self.view.client;
        let mut values = Values {
            id: client.own_id(),
            asked: found.reads.of(client.session.reads_elsewhere(self.bound)),
            row_count: client.session.last.row_count.get(),
            found_rows: client.session.last.found_rows.get(),
            last_gtid: self.gtid.map_or(Some(""), LastGtid::get),
            tracked: client.session.tracks(self.server),
            ..Values::default()
        };
        let server = self.server.flavour;
        if counts_itself(found, server) {
            values.found_rows = None;
        }
        // MariaDB clears the warnings in front of the statement, MySQL behind it.
        let area = match server {
            Server::MySql(_) => Area::Keeps,
            _ => area_of(found, server),
        };
        if client.session.last.has_unknown_conditions() || area == Area::Unsure {
            return values;
        }
        values.clears = area == Area::Clears;
        let kept = client.session.last.kept().filter(|_| area == Area::Keeps);
        values.warnings = kept.map_or(Some(0), |kept| kept.total);
        values.errors = kept.map_or(Some(0), Diagnostics::errors);
        values
    }

    /// Answers an execution of a text that reads what the statement before left, where its client's
    /// backend does not know: the text of its own to execute, with the counts that are kept.
    pub(crate) fn execution(&self, definition: &Definition) -> Option<Vec<u8>> {
        let class = &definition.class;
        let mode = self.view.client.lex_mode(self.server);
        let text = with_values(&definition.sql, mode, self.values(class));
        text.filter(|_| !class.multi)
    }

    fn show(&self, errors: bool, offset: u64, rows: u64) -> Previous {
        let Some(kept) = self.view.client.session.last.kept() else {
            // There are none; the backend's own are another's.
            let what = if errors { "ERRORS" } else { "WARNINGS" };
            return Previous::Text(format!("SHOW {what} LIMIT 0").into_bytes());
        };
        let status = self.view.status(self.server.flavour);
        Previous::Rows(kept.shown(errors, offset, rows, status))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Client;
    use crate::group::tokens::ClientId;
    use reactor::Time;
    use session::last_statement::RowCount;
    use sql::classify::classify;
    use std::rc::Rc;

    fn mode() -> LexMode {
        LexMode {
            server: Server::MariaDb(110_400),
            ..LexMode::default()
        }
    }

    /// A client without a backend.
    fn client() -> Client<()> {
        Client::of_tests(Time(1), Rc::default())
    }

    fn previous(client: &Client<()>, sql: &str) -> Previous {
        let server = ServerFacts::of_tests();
        let view = ClientView {
            key: ClientId::from_parts(1, 0),
            client,
            backend: None,
        };
        let before = Before {
            view,
            bound: false,
            gtid: None,
            server: &server,
        };
        let sql = sql.as_bytes();
        before.previous(sql, mode(), &classify(sql, mode()))
    }

    fn text(previous: Previous) -> Result<String, &'static str> {
        match previous {
            Previous::Text(text) => Ok(String::from_utf8(text).unwrap()),
            Previous::Rows(_) => Err("rows"),
            Previous::Same => Err("as it is"),
            Previous::Gone => Err("gone"),
        }
    }

    #[test]
    fn counts_that_are_known_stand_in_the_text() {
        let mut client = client();
        client.session.last.row_count = RowCount::NONE;
        client.session.last.found_rows.set(Some(12));
        let asked = text(previous(&client, "SELECT ROW_COUNT(), FOUND_ROWS()")).unwrap();
        assert!(asked.contains("IF(TRUE,-1,ROW_COUNT())"), "{asked}");
        assert!(asked.contains("IF(TRUE,12,FOUND_ROWS())"), "{asked}");
    }

    #[test]
    fn what_nobody_knows_is_gone_and_never_guessed() {
        let mut client = client();
        client.session.last.found_rows.set(None);
        assert!(matches!(
            previous(&client, "SELECT FOUND_ROWS()"),
            Previous::Gone
        ));
        client.session.last.lose_conditions();
        assert!(matches!(previous(&client, "SHOW WARNINGS"), Previous::Gone));
        assert!(matches!(
            previous(&client, "GET DIAGNOSTICS CONDITION 1 @a = MYSQL_ERRNO"),
            Previous::Gone
        ));
    }

    #[test]
    fn each_statement_of_a_text_may_ask_what_its_client_is_told() {
        let mut client = client();
        Rc::make_mut(&mut client.session.state).multi_statements = true;
        let shown = |sql| text(previous(&client, sql));
        let asked = shown("SELECT 1; SELECT @@session_track_schema; SELECT 2").unwrap();
        let (first, rest) = asked.split_once("; SELECT ").unwrap();
        assert_eq!(first, "SELECT 1");
        assert!(
            rest.contains("`@@session_track_schema`; SELECT 2"),
            "{rest}"
        );
        assert!(!rest.starts_with("@@"), "{rest}");
        for lost in [
            "SET session_track_schema = OFF; SELECT @@session_track_schema",
            "SELECT ROW_COUNT(); SELECT @@session_track_schema",
        ] {
            assert_eq!(shown(lost), Err("gone"), "{lost}");
        }
    }

    #[test]
    fn what_asks_nothing_goes_as_it_is() {
        assert!(matches!(
            previous(&client(), "SELECT 1; SELECT 2"),
            Previous::Same
        ));
    }
}
