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

use crate::client::Client;
use crate::pair::view::ClientView;
use crate::server::facts::ServerFacts;
use session::beforehand::area_of;
use session::conditions::{absent_condition, number_in};
use session::diagnostics::{Area, Diagnostics, in_binary};
use session::last_gtid::LastGtid;
use session::last_statement::LEFT_BY_STATEMENT;
use session::prepared::Definition;
use session::state::Session;
use sql::asked::{Question, Which, question};
use sql::classify::{self, Marks, PinCause, Reads, Verb};
use sql::lex::{Kind, LexMode, Lexer, Server};
use sql::own_id::{Values, with_values};

/// From this version on a SHOW WARNINGS that MySQL refuses clears them as others do; earlier ones
/// were not tried.
const MYSQL_SHOWS_ALONE: u32 = 90_700;

/// True if a server refuses a text of several statements before it runs any of them, so that
/// nothing in it asks: its client may send one statement only.
pub(crate) fn is_refused_whole(found: &classify::Statement, session: &Session) -> bool {
    let one = matches!(found.verb, Verb::Select | Verb::Show | Verb::Diagnostics);
    found.multi && one && !session.multi_statements
}

impl<S> Client<S> {
    /// True if a text that begins with a question about conditions cannot have it answered from
    /// what was kept, because of code that it runs behind, and there are some, elsewhere.
    pub(crate) fn lacks_conditions(&self, found: &classify::Statement) -> bool {
        let asks = matches!(found.verb, Verb::Show | Verb::Diagnostics);
        asks && !is_refused_whole(found, &self.session)
            && self.last.has_conditions()
            && found
                .reads
                .of(self.reads_lost())
                .intersects(Reads::DIAGNOSTICS)
    }

    /// True if the syntax error of a text that its server refuses whole comes behind the conditions
    /// of before: to MySQL a text is a question about them as soon as GET DIAGNOSTICS stands there.
    pub(crate) fn stacks_conditions(&self, found: &classify::Statement, server: Server) -> bool {
        found.verb == Verb::Diagnostics && self.is_refused_behind_conditions(found, server)
    }

    /// True if it may list conditions twice, SHOW WARNINGS and the like included, which some
    /// versions are known to do.
    pub(crate) fn may_stack_conditions(&self, found: &classify::Statement, server: Server) -> bool {
        let shows = found.verb == Verb::Show && found.reads.intersects(Reads::DIAGNOSTICS);
        let seen = matches!(server, Server::MySql(MYSQL_SHOWS_ALONE..));
        shows && !seen && self.is_refused_behind_conditions(found, server)
    }

    fn is_refused_behind_conditions(&self, found: &classify::Statement, server: Server) -> bool {
        server.is_mysql() && is_refused_whole(found, &self.session) && self.last.has_conditions()
    }

    /// True if a text shows conditions where there are none: none stand on its backend either, once
    /// it is cleared of others'. On MySQL the pool's own question for FOUND_ROWS() leaves a
    /// warning.
    pub(crate) fn shows_none(&self, found: &classify::Statement, server: Server) -> bool {
        let asked = found.reads.of(self.reads_lost());
        let shows = found.verb == Verb::Show && asked == Reads::DIAGNOSTICS;
        shows && !self.last.has_conditions() && self.last.conditions == 0 && !server.is_mysql()
    }

    /// True if its last statement's warnings are not all kept, or not as the session would have
    /// them shown now.
    fn lacks_warnings(&self) -> bool {
        let charset = self.session.variable(b"character_set_results");
        let unlike = |kept: &Diagnostics| kept.charset.as_deref() != charset;
        self.last.has_unknown_conditions() || self.last.kept().is_some_and(unlike)
    }
}

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
        let lost = client.lacks_warnings();
        let refused = is_refused_whole(found, &client.session);
        let asked = found.reads.of(client.reads_lost());
        let none = client.shows_none(found, mode.server);
        if refused || none || found.multi && asked.is_empty() {
            return Previous::Same;
        }
        let sets = found.causes.contains(PinCause::SessionTracking);
        let runs = client.session.multi_statements;
        let trackers = found.reads.of(client.reads_elsewhere()) == Reads::TRACKERS;
        if found.multi && runs && trackers && !sets {
            // No statement of the text has a part in these, so each may ask.
            let text = with_values(sql, mode, self.values(found));
            return text.map_or(Previous::Gone, Previous::Text);
        }
        if found.multi {
            return self.previous_in_first(sql, mode);
        }
        let asks = matches!(found.verb, Verb::Show | Verb::Diagnostics);
        let question = question(sql, mode).filter(|_| asks);
        if question == Some(Question::Invalid) {
            return Previous::Same;
        }
        if asks && (lost || question.is_none()) {
            return Previous::Gone;
        }
        match question {
            Some(Question::Show {
                errors,
                offset,
                rows,
            }) => self.show(errors, offset, rows),
            Some(Question::Count { errors }) => {
                let values = self.values(found);
                let name = if errors {
                    "error_count"
                } else {
                    "warning_count"
                };
                let sql = format!("SELECT @@session.{name}");
                let text = with_values(sql.as_bytes(), mode, values);
                text.map_or(Previous::Gone, Previous::Text)
            }
            Some(Question::Get(get)) => {
                let server = self.server.flavour;
                let none = Diagnostics::default();
                let kept = client.last.kept().unwrap_or(&none);
                let condition = match &get.which {
                    Which::Statement => None,
                    Which::Number(number) => Some(*number),
                    Which::Variable(name) => match number_in(&client.session, name, mode) {
                        Some(number) => Some(number),
                        None => return Previous::Gone,
                    },
                };
                if condition.is_some_and(|at| at == 0 || at > u32::from(kept.conditions())) {
                    let text = absent_condition(sql, mode);
                    return text.map_or(Previous::Gone, Previous::Text);
                }
                let text = kept.assignments(&get, condition, client.last.row_count.get(), server);
                text.map_or(Previous::Gone, Previous::Text)
            }
            Some(Question::Handler | Question::Invalid) => Previous::Same,
            None => {
                let text = with_values(sql, mode, self.values(found));
                // Galera's functions are asked where they stand.
                let lost = found.reads.intersects(client.reads_lost());
                let otherwise = if lost { Previous::Gone } else { Previous::Same };
                text.map_or(otherwise, Previous::Text)
            }
        }
    }

    /// Answer for a text of several statements, of which only the first may ask.
    fn previous_in_first(&self, sql: &[u8], mode: LexMode) -> Previous {
        let semicolon = Lexer::new(sql, mode).find(|token| token.kind == Kind::Semicolon);
        let Some(end) = semicolon.map(|token| token.start) else {
            return Previous::Gone;
        };
        let (first, rest) = (&sql[..end], &sql[end..]);
        let (one, others) = (
            classify::classify(first, mode),
            classify::classify(&rest[1..], mode),
        );
        let open = others.reads.without(one.replaces);
        // A reply that is kept is sent by itself, and nothing behind it.
        let shows = one.verb == Verb::Show && one.reads.intersects(Reads::DIAGNOSTICS);
        let lost = LEFT_BY_STATEMENT.union(Reads::TRACKERS);
        if open.intersects(lost) || one.pin.or(others.pin).is_some() || shows {
            return Previous::Gone;
        }
        let mut text = match self.previous(first, mode, &one) {
            Previous::Text(text) => text,
            _ => return Previous::Gone,
        };
        let rewritten = self.view.client.with_own_id(rest, mode);
        text.extend_from_slice(rewritten.as_deref().unwrap_or(rest));
        Previous::Text(text)
    }

    /// Values of the statement before, for the questions that its backend cannot answer.
    fn values(&self, found: &classify::Statement) -> Values<'a> {
        let client = self.view.client;
        let mut values = Values {
            id: client.own_id(),
            asked: found.reads.of(client.reads_elsewhere()),
            row_count: client.last.row_count.get(),
            found_rows: client.last.found_rows.get(),
            last_gtid: self.gtid.map_or(Some(""), LastGtid::get),
            tracked: client.tracks(self.server),
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
        if client.last.has_unknown_conditions() || area == Area::Unsure {
            return values;
        }
        values.clears = area == Area::Clears;
        let kept = client.last.kept().filter(|_| area == Area::Keeps);
        values.warnings = kept.map_or(Some(0), |kept| kept.total);
        values.errors = kept.map_or(Some(0), Diagnostics::errors);
        values
    }

    /// Answers an execution of a text that reads what the statement before left, where its client's
    /// backend does not know: by a text of its own with the counts that are kept. `cursor`: it asks
    /// for one, which rows that are kept cannot have.
    pub(crate) fn execution(&self, definition: &Definition, cursor: bool) -> Previous {
        let (client, class) = (self.view.client, &definition.class);
        let mode = client.lex_mode(self.server);
        let text = with_values(&definition.sql, mode, self.values(class));
        if let Some(text) = text.filter(|_| !class.multi) {
            return Previous::Text(text);
        }
        let shown = (!cursor).then(|| self.shown_in_binary(&definition.sql, mode));
        shown.flatten().map_or(Previous::Gone, Previous::Rows)
    }

    /// The rows of a SHOW WARNINGS or SHOW ERRORS that is executed, from what was kept; `None`
    /// where it is none, or nothing was kept.
    fn shown_in_binary(&self, sql: &[u8], mode: LexMode) -> Option<Vec<u8>> {
        let Some(Question::Show {
            errors,
            offset,
            rows,
        }) = question(sql, mode)
        else {
            return None;
        };
        let client = self.view.client;
        let kept = client.last.kept().filter(|_| !client.lacks_warnings())?;
        let status = self.view.status(self.server.flavour);
        Some(in_binary(&kept.shown(errors, offset, rows, status)))
    }

    fn show(&self, errors: bool, offset: u64, rows: u64) -> Previous {
        let Some(kept) = self.view.client.last.kept() else {
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
        client.last.row_count = RowCount::NONE;
        client.last.found_rows.set(Some(12));
        let asked = text(previous(&client, "SELECT ROW_COUNT(), FOUND_ROWS()")).unwrap();
        assert!(asked.contains("IF(TRUE,-1,ROW_COUNT())"), "{asked}");
        assert!(asked.contains("IF(TRUE,12,FOUND_ROWS())"), "{asked}");
    }

    #[test]
    fn what_nobody_knows_is_gone_and_never_guessed() {
        let mut client = client();
        client.last.found_rows.set(None);
        assert!(matches!(
            previous(&client, "SELECT FOUND_ROWS()"),
            Previous::Gone
        ));
        client.last.lose_conditions();
        assert!(matches!(previous(&client, "SHOW WARNINGS"), Previous::Gone));
        assert!(matches!(
            previous(&client, "GET DIAGNOSTICS CONDITION 1 @a = MYSQL_ERRNO"),
            Previous::Gone
        ));
    }

    #[test]
    fn what_cannot_be_parsed_is_the_servers_to_refuse() {
        let mut client = client();
        client.last.lose_conditions();
        for sql in ["GET", "GET CURRENT", "SHOW WARNINGS LIMIT"] {
            assert!(matches!(previous(&client, sql), Previous::Same), "{sql}");
        }
    }

    #[test]
    fn each_statement_of_a_text_may_ask_what_its_client_is_told() {
        let mut client = client();
        Rc::make_mut(&mut client.session).multi_statements = true;
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
