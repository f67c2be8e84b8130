//! Texts: what a client's COM_QUERY does, what it needs to know first, and what is sent of it.
//!
//! The problem: a text may ask about the statement before, call code that nobody has read, or set
//! what no tracker reports; and once it is on its way to a shared backend it is too late to notice.
//! The mechanism: everything that the text alone, the client and what is known of stored code can
//! tell is found here, in this order:
//!
//! 1. texts that no server has to see, KILL;
//! 2. what the code that it runs comes to ([`crate::statements::stored_code`]), and whether that
//!    may ask what only another backend knows;
//! 3. questions about the statement before, answered from what was kept
//!    ([`crate::pair::previous`]);
//! 4. what it takes, gives back and sets ([`crate::statements::pinning`]), and whether it may be
//!    pipelined.
//!
//! Then it is started (`statements.rs: start`), perhaps with another text in its place.
//!
//! Invariant: what a text may leave behind unreported pins its client, or is noted to be read back,
//! before it is sent.

use crate::client::Handled;
use crate::errors::reasons::Refusal;
use crate::group::Group;
use crate::group::tokens::ClientId;
use crate::pair::previous::Previous;
use crate::scheduler::priority::{Asked, asked};
use crate::statements::own_ok::OwnOk;
use crate::statements::stored_code::SchemaText;
use reactor::Net;
use session::plan::{class_with, hides_reads, statement_of};
use session::send_mode::send_mode_of;
use session::shapes::{Pipelinable, may_pipeline_text};
use session::statement::Statement;
use sql::classify::{self, PinCause, Reads, Verb};
use sql::kill::Kill;
use sql::text::Text;

/// Source of the answer to a text's question about the statement before.
enum Asks {
    /// The backend that runs it; or nothing is asked.
    There,
    /// The backend, by these words instead, which have the answer in them.
    InWords(Vec<u8>),
    /// It does not run now: it has been answered or refused, or waits.
    Not(Handled),
}

impl<N: Net> Group<N> {
    /// A text that a client sends, behind its attributes if it has any.
    pub(crate) fn on_query(&mut self, key: ClientId, message: &[u8], arguments: &[u8]) -> Handled {
        self.code().see();
        let Some(client) = self.clients.get(key) else {
            return Handled::Used;
        };
        let Ok(sql) = client.text_in(arguments) else {
            self.answers().malformed(key);
            return Handled::Used;
        };
        let mode = client.lex_mode(&self.shared.server);
        let digested = self.figures.digests.are_counted();
        let names = self.code_seen.names.tables();
        let seen = (self.current_input).seen(message, (sql, mode), digested, names);
        let names_none_of = (!seen.may_name).then_some(self.code_seen.version);
        let text = Text { sql, mode, seen };
        let class = &text.seen.class;
        let answered = match class.verb {
            Verb::Begin | Verb::Commit | Verb::Rollback => self.on_text_alone(key, &text),
            Verb::Set => (self.on_text_alone(key, &text)).or_else(|| self.on_priority(key, &text)),
            _ if sql.is_empty() => self.on_empty_text(key, &text),
            Verb::Kill if !class.multi => Some(self.on_kill(key, message, Kill::read(sql, mode))),
            _ => None,
        };
        if let Some(handled) = answered {
            return handled;
        }
        if text.seen.hides_kill {
            return self.answers().refuse_counted(key, &Refusal::Kill);
        }
        let handled = self.run_text(key, message, &text, names_none_of);
        self.leave_last_backend(key);
        handled
    }

    /// A SET of the client's own priority, which no server sees.
    fn on_priority(&mut self, key: ClientId, text: &Text<'_>) -> Option<Handled> {
        let asked = asked(text.sql, text.mode);
        if asked == Asked::Nothing {
            return None;
        }
        Some(match self.waiters().ask_priority(key, asked) {
            Ok(()) => {
                self.answers().ok(key, &OwnOk::PLAIN);
                Handled::Used
            }
            Err(refusal) => self.answers().refuse_counted(key, &refusal),
        })
    }

    /// Runs a text of a client's. `names_none_of`: [`SchemaText::names_none_of`].
    fn run_text(
        &mut self,
        key: ClientId,
        message: &[u8],
        text: &Text<'_>,
        names_none_of: Option<u64>,
    ) -> Handled {
        let Text { sql, mode, seen } = text;
        let (sql, mode, words) = (*sql, *mode, &seen.class);
        let Some(client) = self.clients.get(key) else {
            return Handled::Used;
        };
        let session = client.session.clone();
        // Without a schema a name that names none is nothing's: the server refuses it.
        let schema = Some(session.schema.as_deref().unwrap_or_default());
        let judged = SchemaText {
            sql,
            mode,
            found: words,
            schema,
            names_none_of,
        };
        let known = self.code().knows(judged, &session);
        let mut class = class_with(words, known);
        let mut statement = statement_of(&class, mode);
        let mut instead = None;
        if class.causes.contains(PinCause::SessionTracking)
            && let Some(client) = self.clients.get_mut(key)
        {
            instead = client.retrack((sql, mode), &mut class, &self.shared.server);
        }
        let found = &class;
        let judged = SchemaText { found, ..judged };
        let planning = self.planning(key);
        if planning.is_some_and(|mut planning| planning.may_look_back(words)) {
            match self.look_back(key, judged, words, &mut statement) {
                Asks::There => {}
                Asks::InWords(text) => instead = Some(text),
                Asks::Not(handled) => return handled,
            }
        }
        let may_pipeline =
            self.settings.pipeline_max > 1 && may_pipeline_text(sql, found, statement.found);
        if may_pipeline || self.figures.digests.are_counted() {
            statement.digest = text.digest();
            let now = self.net.now();
            (self.figures.digests).note(statement.digest, (sql, mode), now);
        }
        if may_pipeline {
            statement.pipelinable = Pipelinable::Text;
        }
        if let Some(mut planning) = self.planning(key) {
            planning.plan(judged, known, &mut statement);
        }
        statement.send_mode = send_mode_of(found);
        if instead.is_none() && found.reads.intersects(Reads::CONNECTION_ID) {
            instead = self.clients.get(key).and_then(|c| c.with_own_id(sql, mode));
        }
        let Some(instead) = instead else {
            return self.start(key, message, statement);
        };
        let Some(client) = self.clients.get(key) else {
            return Handled::Used;
        };
        let message = client.reworded(message, &instead);
        self.start(key, &message, statement)
    }

    /// Finds who answers what a text, or code that it runs, asks about the statement before. The
    /// client goes back to the backend of that, where that can be had. `words`: what the text says
    /// by itself.
    fn look_back(
        &mut self,
        key: ClientId,
        text: SchemaText<'_>,
        words: &classify::Statement,
        statement: &mut Statement,
    ) -> Asks {
        let SchemaText {
            sql, mode, found, ..
        } = text;
        if let Some(backend) = self.matching().last_backend_for_text(key, words) {
            self.bind(key, backend);
        }
        // Stored code may read anything; that it reads what a statement before its call left is
        // not assumed, or no CALL could ever be made.
        let told = !hides_reads(found);
        if self.asks_for_lost(key, text) {
            return Asks::Not(self.answers().refuse_counted(key, &Refusal::PreviousGone));
        }
        let Some(client) = self.clients.get(key) else {
            return Asks::Not(Handled::Used);
        };
        let mut found = *found;
        if !told {
            // What the client is told of its session is the pool's to say, whatever code runs.
            found.reads = match found.own_reads {
                Reads::ALL => Reads::NONE,
                own => own.of(Reads::TRACKERS),
            };
        }
        // A SET of its trackers is in other words already.
        if client.retracking.is_some() || !found.reads.intersects(client.reads_elsewhere()) {
            return Asks::There;
        }
        if (self.client_view(key)).is_some_and(|view| view.is_read_back_now(found.reads)) {
            return Asks::Not(self.waiters().wait_outside(key));
        }
        let before = self.survey().before(key);
        match before.map_or(Previous::Gone, |b| b.previous(sql, mode, &found)) {
            Previous::Same => Asks::There,
            Previous::Text(text) => {
                statement.conditions = statement.conditions.in_words();
                Asks::InWords(text)
            }
            Previous::Rows(rows) => {
                self.answers().show(key, &rows);
                Asks::Not(Handled::Used)
            }
            Previous::Gone => Asks::Not(self.answers().refuse_counted(key, &Refusal::PreviousGone)),
        }
    }
}
