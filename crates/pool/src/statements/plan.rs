//! Plan of a client's text, or of an execution: what is to become of it, as a value.
//!
//! The problem: a text may need no server, ask about the statement before, call code that nobody
//! has read, or set what no tracker reports; and once it is on its way to a shared backend it is
//! too late to notice. The mechanism: [`Judging`] borrows everything that can tell, changes
//! nothing, and gives one [`Plan`], which the group carries out. It looks, in this order, for
//!
//! 1. texts that no server has to see ([`crate::statements::answered_locally`]), and KILL;
//! 2. what the code that it runs comes to ([`crate::statements::stored_code`]), and whether that
//!    may ask what only another backend knows;
//! 3. questions about the statement before, answered from what was retained
//!    ([`crate::pair::previous`]);
//! 4. what it takes, gives back and sets ([`crate::statements::pinning`]), and whether it may be
//!    pipelined.
//!
//! Invariant: what a text may leave behind unreported pins its client, or is noted to be read back,
//! before it is sent. A command that has waited for its backend is judged anew when it has one:
//! its client's session, and the code of the server, may be others by then.

use crate::client::Client;
use crate::client::buffers::message::payload_of;
use crate::config::StoredCode;
use crate::errors::reasons::Refusal;
use crate::group::tokens::BackendId;
use crate::pair::previous::{Before, Previous};
use crate::scheduler::priority::{Asked, asked};
use crate::server::facts::ServerFacts;
use crate::statements::answered_locally::{Alone, Edge, edge_of};
use crate::statements::pinning::{Effects, Planning};
use crate::statements::stored_code::{CodeSeen, SchemaText};
use session::diagnostics::Area;
use session::elsewhere::{Why, asks_only, place_of};
use session::found::Found;
use session::known_digests::{Pipelinable, may_pipeline_text};
use session::last_gtid::LastGtid;
use session::plan::{area_of, class_with, hides_reads, in_bulk, statement_of};
use session::prepared::Definition;
use session::send_mode::{send_mode_of, send_mode_of_execution};
use session::statement::Statement;
use sql::classify::{self, Marks, PinCause, Reads, Verb};
use sql::elsewhere::tie;
use sql::kill::Kill;
use sql::text::Text;
use sql::tracking::Retracked;
use wire::command::{Command, ReplyShape};
use wire::execution::wants_cursor;

/// Fate of a command.
#[derive(Debug)]
pub(crate) enum Plan {
    /// The pool answers it.
    Reply(OwnReply),
    /// End of a client or its statement; `None`: in words that cannot be read for certain.
    Kill(Option<Kill>),
    /// Refusal.
    Refuse(Refusal),
    /// Wait for what is being read back just now; it is judged again then.
    Wait,
    /// A backend runs it.
    Run(RunPlan),
}

/// Answer of the pool's own.
#[derive(Debug)]
pub(crate) enum OwnReply {
    /// OK, with these reports in it: a transaction begins or ends of which no backend knows, or a
    /// SET changes nothing.
    Ok(Option<Edge>, Vec<u8>),
    /// The error of the empty text before.
    EmptyAgain,
    /// Rows that were retained.
    Rows(Vec<u8>),
    /// OK, or an error: it sets the client's priority, which no server sees.
    Priority(Asked),
}

/// Command that a backend runs.
#[derive(Debug)]
pub(crate) struct RunPlan {
    pub(crate) statement: Statement,
    /// Text in place of the client's own.
    pub(crate) instead: Option<Vec<u8>>,
    /// Definition in place of the client's own.
    pub(crate) definition: Option<Box<Definition>>,
    /// Effects on its client.
    pub(crate) effects: Effects,
    /// Its SET of what the client is told.
    pub(crate) retracking: Option<Box<Retracked>>,
    /// The backend of the statement before, to which the client goes back for it.
    pub(crate) back: Option<BackendId>,
    /// LAST_INSERT_ID() is asked in the same write, in front of it.
    pub(crate) asks_insert_id: bool,
    /// True if it opens a cursor.
    pub(crate) cursor: bool,
    /// True if it is sent without its wish for a cursor.
    pub(crate) drops_cursor: bool,
}

impl RunPlan {
    fn of(statement: Statement, back: Option<BackendId>) -> RunPlan {
        RunPlan {
            statement,
            instead: None,
            definition: None,
            effects: Effects::default(),
            retracking: None,
            back,
            asks_insert_id: false,
            cursor: false,
            drops_cursor: false,
        }
    }
}

/// An execution of a prepared statement, with the client's id of that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Execution<'a> {
    pub(crate) command: Command,
    pub(crate) id: u32,
    pub(crate) definition: &'a Definition,
    pub(crate) message: &'a [u8],
}

/// A client, and everything else by which its commands are judged.
pub(crate) struct Judging<'a, S> {
    /// The client, with its backend and its server.
    pub(crate) alone: Alone<'a, S>,
    pub(crate) code: CodeSeen<'a>,
    pub(crate) policy: StoredCode,
    /// `@@last_gtid` as it was reported to the client last.
    pub(crate) gtid: Option<&'a LastGtid>,
    /// Statements of several clients may be in flight on one backend.
    pub(crate) pipelines: bool,
    /// Statements are counted by digest.
    pub(crate) digests: bool,
    /// True if its reads may go to another server.
    pub(crate) reads_elsewhere: bool,
    /// True if the text has guards ([`crate::statements::pinning::guards`]).
    pub(crate) guarded: bool,
    /// Finds the backend of the client's last statement, if it can be used for a text that does
    /// nothing but ask, or else for another.
    pub(crate) last_backend: &'a dyn Fn(&dyn Fn() -> bool) -> Option<BackendId>,
}

impl<S> Judging<'_, S> {
    /// Plan of a text. `names_none_of`: [`SchemaText::names_none_of`].
    pub(crate) fn text(&self, text: &Text<'_>, names_none_of: Option<u64>) -> Plan {
        match self.without_server(text) {
            Some(plan) => plan,
            None if text.seen.hides_kill => Plan::Refuse(Refusal::Kill),
            None => self.run_text(text, names_none_of),
        }
    }

    fn client(&self) -> &Client<S> {
        self.alone.view.client
    }

    fn server(&self) -> &ServerFacts {
        self.alone.server
    }

    /// Plan of a text that the pool answers by itself; `None` where a backend has to run it.
    fn without_server(&self, text: &Text<'_>) -> Option<Plan> {
        let (sql, mode, class) = (text.sql, text.mode, &text.seen.class);
        match class.verb {
            Verb::Begin | Verb::Commit | Verb::Rollback => self.edge_or_set(text),
            Verb::Set => self.edge_or_set(text).or_else(|| match asked(sql, mode) {
                Asked::Nothing => None,
                asked => Some(Plan::Reply(OwnReply::Priority(asked))),
            }),
            _ if sql.is_empty() && self.alone.follows_empty() => {
                if self.alone.is_about_to_leave() {
                    return Some(Plan::Wait);
                }
                let again = Plan::Reply(OwnReply::EmptyAgain);
                self.alone.repeats_empty().then_some(again)
            }
            Verb::Kill if !class.multi => Some(Plan::Kill(Kill::read(sql, mode))),
            _ => None,
        }
    }

    /// Plan of a text that begins or ends a transaction of which no backend knows, or of a SET that
    /// changes nothing.
    fn edge_or_set(&self, text: &Text<'_>) -> Option<Plan> {
        let edge = edge_of(text.sql);
        let reports = match edge {
            Some(edge) => self.alone.reports_of_edge(edge)?,
            None if self.alone.sets_nothing(text.sql, text.mode) => Vec::new(),
            None => return None,
        };
        if self.alone.is_about_to_leave() {
            return Some(Plan::Wait);
        }
        let ok = Plan::Reply(OwnReply::Ok(edge, reports));
        self.alone.may_answer().then_some(ok)
    }

    fn run_text(&self, text: &Text<'_>, names_none_of: Option<u64>) -> Plan {
        let (sql, mode, words) = (text.sql, text.mode, &text.seen.class);
        let client = self.client();
        // Without a schema a name that names none is nothing's: the server refuses it.
        let schema = Some(client.session.state.schema.as_deref().unwrap_or_default());
        let judged = SchemaText {
            sql,
            mode,
            found: words,
            schema,
            names_none_of,
        };
        let known = self.code.knows(judged, &client.session.state);
        let mut class = class_with(words, known);
        let mut run = RunPlan::of(statement_of(&class, mode), None);
        if class.causes.contains(PinCause::SessionTracking)
            && let Some(retracked) =
                (client.session).retrack((sql, mode), &mut class, self.server())
        {
            run.instead = Some(retracked.sql.clone());
            run.retracking = Some(Box::new(retracked));
        }
        let judged = SchemaText {
            found: &class,
            ..judged
        };
        let asks_nothing =
            words.asks_nothing() && !client.session.last.has_conditions() && !self.code.any_asks();
        if !asks_nothing && let Some(plan) = self.look_back(judged, words, &mut run) {
            return plan;
        }
        let may_pipeline = self.pipelines && may_pipeline_text(sql, &class, run.statement.found);
        if may_pipeline || self.digests {
            run.statement.digest = text.digest();
        }
        if may_pipeline {
            run.statement.pipelinable = Pipelinable::Text;
        }
        if self.reads_elsewhere {
            let (tie, found) = (|| tie(sql, mode), run.statement.found);
            run.statement.place = place_of((sql, mode), tie, schema, (&class, found));
        }
        run.effects = self.effects(judged, known, &mut run.statement);
        run.statement.send_mode = send_mode_of(&class);
        if run.instead.is_none() && class.reads.intersects(Reads::CONNECTION_ID) {
            run.instead = client.with_own_id(sql, mode);
        }
        let ends = matches!(words.verb, Verb::Commit | Verb::Rollback);
        run.asks_insert_id =
            ends && edge_of(sql) == Some(Edge::End) && self.alone.asks_before_end();
        Plan::Run(run)
    }

    /// True if a client goes back to the backend of its last statement for a text that reads what
    /// that has left there, or behind which only that backend knows whether its conditions are
    /// gone.
    fn goes_back_for(&self, class: &classify::Statement) -> bool {
        let asks = Reads::ROW_COUNT
            .union(Reads::FOUND_ROWS)
            .union(Reads::DIAGNOSTICS)
            .union(Reads::LAST_GTID);
        let unsure = || area_of(class, self.server().flavour) == Area::Unsure;
        class.reads.intersects(asks) || self.client().session.last.has_conditions() && unsure()
    }

    /// The backend of the client's last statement, if a text can go there that does this by itself.
    fn last_backend(&self, words: &classify::Statement, text: SchemaText<'_>) -> Option<BackendId> {
        (self.last_backend)(&|| asks_only((text.sql, text.mode), words))
    }

    /// True if a text, or code that it runs, asks what the statement before left, and that is lost.
    /// Where the backend of that statement can be had, the client goes `back` to it.
    fn asks_for_lost(
        &self,
        text: SchemaText<'_>,
        words: &classify::Statement,
        back: &mut Option<BackendId>,
    ) -> bool {
        let asked = self.code.asked(text);
        if asked.is_empty() {
            return false;
        }
        *back = back.or_else(|| self.last_backend(words, text));
        let lost = self.client().session.lost_to_code(self.is_bound(*back));
        lost.intersects(asked)
    }

    /// True if the client has a backend, or goes back to one.
    fn is_bound(&self, back: Option<BackendId>) -> bool {
        back.is_some() || self.client().backend().is_some()
    }

    /// Finds who answers what a text, or code that it runs, asks about the statement before: a plan
    /// where it does not run now; else in `run` the backend to go back to, and the words that have
    /// the answer in them. `words`: what the text says by itself.
    fn look_back(
        &self,
        text: SchemaText<'_>,
        words: &classify::Statement,
        run: &mut RunPlan,
    ) -> Option<Plan> {
        let client = self.client();
        if self.goes_back_for(words) {
            run.back = self.last_backend(words, text);
        }
        if self.asks_for_lost(text, words, &mut run.back) {
            return Some(Plan::Refuse(Refusal::PreviousGone));
        }
        let mut found = *text.found;
        // Stored code may read anything; that it reads what a statement before its call left is
        // not assumed, or no CALL could ever be made.
        if hides_reads(&found) {
            // What the client is told of its session is the pool's to say, whatever code runs.
            found.reads = match found.own_reads {
                Reads::ALL => Reads::NONE,
                own => own.of(Reads::TRACKERS),
            };
        }
        let bound = self.is_bound(run.back);
        // A SET of its trackers is in other words already.
        if run.retracking.is_some()
            || !(found.reads).intersects(client.session.reads_elsewhere(bound))
        {
            return None;
        }
        if self.alone.view.is_read_back_now(found.reads) {
            return Some(Plan::Wait);
        }
        match self.before(bound).previous(text.sql, text.mode, &found) {
            Previous::Same => None,
            Previous::Text(text) => {
                run.statement.conditions = run.statement.conditions.in_words();
                run.instead = Some(text);
                None
            }
            Previous::Rows(rows) => Some(Plan::Reply(OwnReply::Rows(rows))),
            Previous::Gone => Some(Plan::Refuse(Refusal::PreviousGone)),
        }
    }

    /// Record of the client's statement before.
    fn before(&self, bound: bool) -> Before<'_, S> {
        Before {
            view: self.alone.view,
            bound,
            gtid: self.gtid,
            server: self.server(),
        }
    }

    fn effects(&self, text: SchemaText<'_>, known: bool, statement: &mut Statement) -> Effects {
        let planning = Planning {
            client: self.client(),
            code: self.code,
            policy: self.policy,
            guarded: self.guarded,
        };
        planning.effects(text, known, statement)
    }

    /// Plan of an execution; it runs a text of the pool's own where it reads what its backend does
    /// not know.
    pub(crate) fn execution(&self, execution: Execution<'_>) -> Plan {
        let (client, definition) = (self.client(), execution.definition);
        let text = self.text_of(definition, &definition.class);
        let known = self.code.knows(text, &definition.session);
        let class = class_with(&definition.class, known);
        let goes = self.goes_back_for(&definition.class);
        let mut back = (goes.then(|| self.last_backend(&definition.class, text))).flatten();
        let bound = self.is_bound(back);
        let asks = (class.reads).intersects(client.session.reads_elsewhere(bound));
        if asks && !hides_reads(&class) {
            if self.alone.view.is_read_back_now(class.reads) {
                return Plan::Wait;
            }
            // Each execution of a bulk asks anew, so that no text has all the answers.
            let one = execution.command == Command::StmtExecute;
            let before = one.then(|| self.before(bound));
            let Some(sql) = before.and_then(|before| before.execution(definition)) else {
                return Plan::Refuse(Refusal::PreviousGone);
            };
            let mut class = definition.class;
            class.reads = Reads::NONE;
            let own = Definition::new(sql.into(), client.session.state.clone(), class);
            let mut run = self.execute(execution, &own, known, back);
            run.definition = Some(Box::new(own));
            return Plan::Run(run);
        }
        let text = SchemaText {
            found: &class,
            ..text
        };
        if self.asks_for_lost(text, &definition.class, &mut back) {
            return Plan::Refuse(Refusal::PreviousGone);
        }
        Plan::Run(self.execute(execution, definition, known, back))
    }

    /// Plan of an execution that runs this definition.
    fn execute(
        &self,
        execution: Execution<'_>,
        definition: &Definition,
        known: bool,
        back: Option<BackendId>,
    ) -> RunPlan {
        let Execution { command, id, .. } = execution;
        let class = class_with(&definition.class, known);
        let text = self.text_of(definition, &class);
        let mut run = RunPlan::of(statement_of(&class, text.mode), back);
        // MariaDB 10.11 answers ANALYZE of a query with two results in one where a cursor is asked
        // for, and MySQL 9.7 ends itself at EXPLAIN of one.
        let explains = class.verb == Verb::Explain && class.marks.contains(Marks::SELECT_INSIDE);
        run.drops_cursor = explains && command == Command::StmtExecute;
        // The servers send the results of a CALL at once, whatever it asks for.
        run.cursor = command == Command::StmtExecute
            && class.verb != Verb::Call
            && !explains
            && wants_cursor(&payload_of(execution.message));
        let statement = &mut run.statement;
        if command == Command::StmtBulkExecute {
            *statement = in_bulk(*statement, class.verb);
        }
        statement.send_mode = send_mode_of_execution(definition.asks_schema(), &class);
        if run.cursor {
            statement.found = Found::Unsure;
            statement.shape = ReplyShape::Cursor;
        }
        let may_pipeline = !run.cursor
            && self.pipelines
            && may_pipeline_text(&definition.sql, &class, statement.found);
        if may_pipeline || self.digests {
            statement.digest = definition.digest(text.mode);
        }
        let is_whole = self.client().session.prepared.executes_whole(command, id);
        if may_pipeline && is_whole {
            statement.pipelinable = Pipelinable::Execution;
        }
        if self.reads_elsewhere {
            let schema = definition.session.schema.as_deref();
            let tie = || definition.tie(text.mode);
            let by_text = (&class, statement.found);
            let why = place_of((text.sql, text.mode), tie, schema, by_text);
            // Only what is whole can be sent once more.
            if why == Why::Read && is_whole || !why.is_elsewhere() {
                statement.place = why;
            }
        }
        run.effects = self.effects(text, known, statement);
        run
    }

    /// A prepared text, which is known to do this.
    fn text_of<'t>(
        &self,
        definition: &'t Definition,
        found: &'t classify::Statement,
    ) -> SchemaText<'t> {
        let text = self.client().prepared_text(definition, self.server());
        let seen = self.code.seen;
        let names_none = definition.names_none_of(&seen.names, seen.version, text.mode);
        SchemaText {
            found,
            names_none_of: names_none.then_some(seen.version),
            ..text
        }
    }
}

#[cfg(test)]
mod tests;
