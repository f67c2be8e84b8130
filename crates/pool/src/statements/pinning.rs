//! Pins of a client: planned for a text, taken when it is sent.
//!
//! The reasons themselves are values ([`session::holds`]). A statement's takings count from
//! the moment that it is sent; its answer confirms them or takes them back. Here they are planned:
//! what its text takes and gives back, what it reaches of stored code, and what code it defines, as
//! the policy `stored_code` wants it. The plan is the client's; what follows for the reports that
//! come with the reply is noted with the statement.

use crate::buffers::message::payload_of;
use crate::client::Client;
use crate::client::guards::{Changing, Coming, DefiningSchemas};
use crate::config::StoredCode;
use crate::errors::reasons::PinReason;
use crate::group::shared::Shared;
use crate::statements::stored_code::{CodeSeen, SchemaText};
use session::pins::failed_acquisition::failed_acquisition_of;
use session::pins::only_calls;
use session::shapes::Pipelinable;
use session::statement::Code;
use sql::acquired::{Ended, acquired};
use sql::classify::stored::definitions;
use sql::classify::{PinCause, Statement, Verb, classify};
use sql::lex::{Kind, LexMode, Lexer, Token};
use std::sync::Arc;
use wire::command::Command;

impl<S> Client<S> {
    /// True if it is pinned, for whatever reason.
    pub(crate) fn is_pinned(&self) -> bool {
        self.pins.is_pinned()
    }

    /// True if this is among its reasons, or among those that its command may give it.
    pub(crate) fn is_pinned_for(&self, reason: PinReason) -> bool {
        self.pins.is_pinned_for(reason)
    }

    /// Plans that it is pinned for this, from the moment that the statement is sent.
    pub(crate) fn pin_by(&mut self, reason: PinReason, sql: &[u8]) {
        self.pins.plan(sql).reasons.push(reason);
    }

    /// True if nothing pins it but what may have ended unnoticed.
    pub(crate) fn may_have_ended(&self) -> bool {
        let cursor = self.prepared.as_ref().is_some_and(|p| p.holds());
        let fresh = self
            .modified
            .as_ref()
            .is_some_and(|modified| modified.fresh);
        !cursor && self.pins.may_have_ended(fresh)
    }
}

/// What says that COMMIT and ROLLBACK end their connection.
const COMPLETION: &[u8] = b"completion_type";

/// True if a text of several statements may itself set [`COMPLETION`]. One that names it and does
/// not is only pinned.
fn names_completion(sql: &[u8], found: &Statement) -> bool {
    let named = |part: &[u8]| part.eq_ignore_ascii_case(COMPLETION);
    found.multi && sql.windows(COMPLETION.len()).any(named)
}

/// True if a text may commit or roll back, and with that end a connection whose `completion_type`
/// says so.
fn ends_transaction(sql: &[u8], mode: LexMode, found: &Statement) -> bool {
    let ends = |token: &Token| {
        let word = sql.get(token.start..token.end).unwrap_or_default();
        let is = |other: &[u8]| word.eq_ignore_ascii_case(other);
        token.kind == Kind::Word && (is(b"COMMIT") || is(b"ROLLBACK"))
    };
    match found.multi {
        true => Lexer::new(sql, mode).any(|token| ends(&token)),
        false => matches!(found.verb, Verb::Commit | Verb::Rollback),
    }
}

/// A client's text that is about to be sent, and by what it is judged.
pub(crate) struct Planning<'a, S> {
    pub(crate) client: &'a mut Client<S>,
    pub(crate) code: CodeSeen<'a>,
    /// For the guards of statements that change what is watched.
    pub(crate) shared: &'a Arc<Shared>,
    pub(crate) policy: StoredCode,
}

impl<S> Planning<'_, S> {
    /// Plans what a statement takes, gives back and sets; `known`: the code that it calls is known
    /// to be clean.
    pub(crate) fn plan(
        &mut self,
        text: SchemaText<'_>,
        known: bool,
        statement: &mut session::statement::Statement,
    ) {
        if known {
            statement.runs_known_code();
        }
        let SchemaText {
            sql, mode, found, ..
        } = text;
        if found.verb == Verb::Ddl || found.multi || found.changes_watched {
            self.plan_definitions(text);
        }
        statement.judged = self.code.see();
        if self.code.named(text).pins() {
            self.plan_triggers_and_views(sql, statement);
        }
        let releases = self.may_release(text) && ends_transaction(sql, mode, found);
        if releases || !found.causes.is_empty() || !self.client.pins.is_empty() {
            self.plan_acquired(text, releases, statement);
        }
        if found.user_variables || found.untracked || found.sets_clock || found.runs_strings() {
            self.client.touch(sql, mode, found);
        }
    }

    /// True if the end of a transaction may be that of its client's connection.
    fn may_release(&self, text: SchemaText<'_>) -> bool {
        self.client.session.releases || names_completion(text.sql, text.found)
    }

    /// Plans what a statement takes and gives back by its own text, its connection too if it
    /// `releases` that.
    fn plan_acquired(
        &mut self,
        text: SchemaText<'_>,
        releases: bool,
        statement: &mut session::statement::Statement,
    ) {
        let SchemaText {
            sql,
            mode,
            found,
            schema,
            ..
        } = text;
        let client = &mut *self.client;
        let mut acquired = acquired(sql, mode, found, schema);
        if releases {
            acquired.for_good.insert(PinCause::Release);
        }
        let tables = PinCause::TemporaryTable;
        // A temporary table that is altered is recreated, which is reported as if it were another.
        let own_table = PinReason::Text(tables);
        let alters = found.verb == Verb::Ddl && !found.multi && client.is_pinned_for(own_table);
        let ends_table = |ended: &Ended| matches!(ended, Ended::One(cause, _) if *cause == tables);
        let changes_own = alters
            || found.causes.contains(tables)
            || acquired.ended.iter().any(ends_table)
            || acquired.blurred.contains(tables)
            || !acquired.renamed.is_empty();
        if changes_own {
            statement.explain();
        }
        if self.policy == StoredCode::Trust && only_calls(found) {
            if acquired.for_good.contains(PinCause::StoredCode) {
                statement.explain();
            }
            acquired.for_good.remove(PinCause::StoredCode);
        }
        if acquired.is_empty() {
            return;
        }
        let plan = client.pins.plan(sql);
        plan.acquired = acquired;
        plan.failed_acquisition = failed_acquisition_of((sql, mode), found, schema);
    }

    /// Plans what is watched, and changes with a statement: code that it defines, a global value,
    /// an account.
    fn plan_definitions(&mut self, text: SchemaText<'_>) {
        if text.found.verb == Verb::Ddl || text.found.multi {
            let mut defined = definitions(text.sql, text.mode);
            let schemas = std::mem::take(&mut defined.schemas);
            if !schemas.is_empty() {
                let defining = DefiningSchemas {
                    shared: self.shared.clone(),
                    schemas,
                    several: text.found.multi,
                };
                let plan = self.client.pins.plan(text.sql);
                plan.guards.push(Box::new(defining));
            }
            if let Some(number) = self.code.defines(text, defined) {
                let shared = self.shared.clone();
                let coming = Coming { shared, number };
                let plan = self.client.pins.plan(text.sql);
                plan.guards.push(Box::new(coming));
            }
        }
        if text.found.changes_watched {
            let changing = Changing(self.shared.clone());
            let plan = self.client.pins.plan(text.sql);
            plan.guards.push(Box::new(changing));
        }
    }

    /// Plans what a statement does through code that its text does not show.
    fn plan_triggers_and_views(
        &mut self,
        sql: &[u8],
        statement: &mut session::statement::Statement,
    ) {
        statement.pipelinable = Pipelinable::Never;
        if self.policy == StoredCode::Pin {
            self.client.pin_by(PinReason::TriggersAndViews, sql);
        }
    }

    /// True if a text, or code that it runs, may ask about the statement before, as far as `words`
    /// tell; or whether that has left conditions, which a text may keep.
    pub(crate) fn may_look_back(&mut self, words: &Statement) -> bool {
        !words.asks_nothing() || self.client.last.has_conditions() || self.code.any_asks()
    }

    /// True if names of code have changed since the client's command was judged.
    pub(crate) fn is_outdated(&self) -> bool {
        let judged = self.client.statement.judged;
        !self.shared.code_catalogue.holds(judged)
    }

    /// Judges a command again that is about to be sent: the names have changed since it was judged.
    /// It has waited for a backend, and code in triggers and views has come into being meanwhile.
    pub(crate) fn judge_again(&mut self, message: &[u8]) {
        let client = &*self.client;
        let payload = payload_of(message);
        let (sql, session) = match client.under_way() {
            Some(under_way) => {
                let definition = &under_way.definition;
                (definition.sql.to_vec(), definition.session.clone())
            }
            None if payload.first() == Some(&Command::Query.byte()) => {
                let sql = client.text_in(&payload[1..]).unwrap_or(&payload[1..]);
                (sql.to_vec(), client.session.clone())
            }
            None => return,
        };
        let mode = (self.shared.server).lex_mode(&session, client.capabilities);
        let found = classify(&sql, mode);
        let schema = Some(session.schema.as_deref().unwrap_or_default());
        let known = client.statement.code == Code::Known;
        let text = SchemaText {
            sql: &sql,
            mode,
            found: &found,
            schema,
            names_none_of: None,
        };
        let unknown = known && !self.code.knows(text, &session);
        if unknown || self.code.named(text).pins() {
            let mut statement = client.statement;
            self.plan_triggers_and_views(&sql, &mut statement);
            self.client.statement = statement;
        }
    }
}
