//! Effects of a statement on its client: found in its text, counted when it is sent.
//!
//! Pins themselves are values ([`session::pins`]). What a statement acquires counts from the moment
//! that it is sent; its answer confirms it or takes it back. Here it is found: what a text acquires
//! and gives back, what it reaches of stored code, as the policy `stored_code` wants it, and what
//! it may set without a report. What follows for the reports that come with the reply is noted with
//! the statement. Nothing is changed here but the catalogue, by a text that defines code
//! ([`guards`]).

use crate::client::guards::{Changing, Coming, DefiningSchemas};
use crate::client::modified::Modified;
use crate::client::{Client, ClientSession};
use crate::config::StoredCode;
use crate::errors::reasons::PinReason;
use crate::group::shared::Shared;
use crate::server::watched::code_catalogue::Seen;
use crate::statements::stored_code::{CodeSeen, SchemaText};
use session::known_digests::Pipelinable;
use session::pins::failed_acquisition::failed_acquisition_of;
use session::pins::{Guard, Plan, only_calls};
use sql::acquired::{Ended, acquired};
use sql::classify::stored::definitions;
use sql::classify::{PinCause, Statement, Verb};
use sql::lex::{Kind, LexMode, Lexer, Token};
use std::sync::Arc;

impl ClientSession {
    /// Plans that it is pinned for this, from the moment that the statement is sent.
    pub(crate) fn pin_by(&mut self, reason: PinReason, sql: &[u8]) {
        self.pins.plan(sql).reasons.push(reason);
    }

    /// Takes on the effects of its command, which end with these guards.
    pub(crate) fn take_effects(
        &mut self,
        sql: &[u8],
        effects: Effects,
        guards: Vec<Box<dyn Guard>>,
    ) {
        if let Some(plan) = effects.pins {
            self.pins.set_plan(*plan);
        }
        if !guards.is_empty() {
            self.pins.plan(sql).guards = guards;
        }
        self.effects.plan_modifying(effects.modifying);
    }

    /// True if nothing pins it but what may have ended unnoticed.
    pub(crate) fn may_have_ended(&self) -> bool {
        let cursor = self.prepared.as_ref().is_some_and(|p| p.holds());
        let fresh = (self.modified.as_ref()).is_some_and(|modified| modified.fresh);
        !cursor && self.pins.may_have_ended(fresh)
    }
}

/// Variable by which COMMIT and ROLLBACK end their connection.
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

/// Effects of a statement on its client, which count from the moment that it is sent.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    /// Resources that it acquires and gives back, and pins.
    pub(crate) pins: Option<Box<Plan>>,
    /// Variables that it may set without a report.
    pub(crate) modifying: Option<Box<Modified>>,
}

impl Effects {
    fn pins(&mut self, sql: &[u8]) -> &mut Plan {
        self.pins.get_or_insert_with(|| Box::new(Plan::of(sql)))
    }
}

/// Guards of a text that changes what is watched: code that it defines, a global value, an account.
/// Code that it defines counts from here on, for its own judgement too.
pub(crate) fn guards(
    text: SchemaText<'_>,
    seen: &mut Seen,
    shared: &Arc<Shared>,
) -> Vec<Box<dyn Guard>> {
    let found = text.found;
    match found.verb == Verb::Ddl || found.multi || found.changes_watched {
        true => guards_of_changes(text, seen, shared),
        false => Vec::new(),
    }
}

fn guards_of_changes(
    text: SchemaText<'_>,
    seen: &mut Seen,
    shared: &Arc<Shared>,
) -> Vec<Box<dyn Guard>> {
    let mut guards: Vec<Box<dyn Guard>> = Vec::new();
    let found = text.found;
    if found.verb == Verb::Ddl || found.multi {
        let mut defined = definitions(text.sql, text.mode);
        let schemas = std::mem::take(&mut defined.schemas);
        if !schemas.is_empty() {
            guards.push(Box::new(DefiningSchemas {
                shared: shared.clone(),
                schemas,
                several: found.multi,
            }));
        }
        if let Some(number) = CodeSeen::of(shared, seen).defines(text, defined) {
            let shared = shared.clone();
            guards.push(Box::new(Coming { shared, number }));
        }
        seen.renew(&shared.watched.code_catalogue);
    }
    if found.changes_watched {
        guards.push(Box::new(Changing(shared.clone())));
    }
    guards
}

/// A client's text, and by what its effects are found.
pub(crate) struct Planning<'a, S> {
    pub(crate) client: &'a Client<S>,
    pub(crate) code: CodeSeen<'a>,
    pub(crate) policy: StoredCode,
    /// True if the text has guards.
    pub(crate) guarded: bool,
}

impl<S> Planning<'_, S> {
    /// Effects of a statement; `known`: the code that it calls is known to be clean.
    pub(crate) fn effects(
        &self,
        text: SchemaText<'_>,
        known: bool,
        statement: &mut session::statement::Statement,
    ) -> Effects {
        if known {
            statement.runs_known_code();
        }
        let mut effects = Effects::default();
        let SchemaText {
            sql, mode, found, ..
        } = text;
        statement.judged = self.code.seen.short();
        if self.code.named(text).pins() {
            statement.pipelinable = Pipelinable::Never;
            statement.runs_code();
            if self.policy == StoredCode::Pin {
                let reasons = &mut effects.pins(sql).reasons;
                reasons.push(PinReason::TriggersAndViews);
            }
        }
        let releases = self.may_release(text) && ends_transaction(sql, mode, found);
        let pins = self.guarded || effects.pins.is_some() || !self.client.session.pins.is_empty();
        if releases || !found.causes.is_empty() || pins {
            self.acquires(text, releases, statement, &mut effects);
        }
        if found.user_variables || found.untracked || found.sets_clock || found.runs_strings() {
            let (modifying, certain) = self.client.session.sets_by(sql, mode, found);
            effects.modifying = modifying;
            if !certain {
                let reasons = &mut effects.pins(sql).reasons;
                reasons.push(PinReason::Text(PinCause::UserVariable));
            }
        }
        effects
    }

    /// True if the end of a transaction may be that of its client's connection.
    fn may_release(&self, text: SchemaText<'_>) -> bool {
        self.client.session.state.releases || names_completion(text.sql, text.found)
    }

    /// Plans what a statement takes and gives back by its own text, its connection too if it
    /// `releases` that.
    fn acquires(
        &self,
        text: SchemaText<'_>,
        releases: bool,
        statement: &mut session::statement::Statement,
        effects: &mut Effects,
    ) {
        let SchemaText {
            sql,
            mode,
            found,
            schema,
            ..
        } = text;
        let mut acquired = acquired(sql, mode, found, schema);
        if releases {
            acquired.for_good.insert(PinCause::Release);
        }
        let tables = PinCause::TemporaryTable;
        // A temporary table that is altered is recreated, which is reported as if it were another.
        let own_table = PinReason::Text(tables);
        let alters = found.verb == Verb::Ddl && !found.multi;
        let alters = alters && self.client.session.pins.is_pinned_for(own_table);
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
        let plan = effects.pins(sql);
        plan.acquired = acquired;
        plan.failed_acquisition = failed_acquisition_of((sql, mode), found, schema);
    }
}
