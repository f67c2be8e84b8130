//! Pins of clients: planned for a text, taken when it is sent, asked about and ended.
//!
//! The reasons themselves are values ([`session::holds`]). A statement's takings count from
//! the moment that it is sent; its answer confirms them or takes them back.

use crate::client::Client;
use crate::client::guards::Setting;
use crate::config::StoredCode;
use crate::errors::reasons::PinReason;
use crate::group::Group;
use reactor::{Key, Net};
use session::holds::only_calls;
use session::holds::void::{Void, void_of};
use session::shapes::Ride;
use sql::classify::{PinCause, Statement, Verb};
use sql::holdings::{Ended, Holdings, holdings};
use sql::lex::{Kind, LexMode, Lexer, Token};

impl<S> Client<S> {
    /// Whether it is pinned, for whatever reason.
    pub(crate) fn is_pinned(&self) -> bool {
        self.pins.is_pinned()
    }

    /// Whether this is among its reasons, or among those that its command may give it.
    pub(crate) fn is_pinned_for(&self, reason: PinReason) -> bool {
        self.pins.is_pinned_for(reason)
    }

    /// Plans that it is pinned for this, from the moment that the statement is sent.
    pub(crate) fn pin_by(&mut self, reason: PinReason, sql: &[u8]) {
        self.pins.plan(sql).reasons.push(reason);
    }

    /// Plans that its statement takes, or gives back, something that its text does not show.
    pub(crate) fn plan_more(&mut self, sql: &[u8], holdings: Holdings, void: Void) {
        let plan = self.pins.plan(sql);
        (plan.holdings, plan.void) = (holdings, void);
    }

    /// Whether nothing pins it but what may have ended unnoticed.
    pub(crate) fn may_have_ended(&self) -> bool {
        let cursor = self.prepared.as_ref().is_some_and(|p| p.holds());
        let fresh = self.touched.as_ref().is_some_and(|touched| touched.fresh);
        !cursor && self.pins.may_have_ended(fresh)
    }
}

/// What says that COMMIT and ROLLBACK end their connection.
const COMPLETION: &[u8] = b"completion_type";

/// Whether a text of several statements may itself set [`COMPLETION`]. One that names it and does
/// not is only pinned.
fn names_completion(sql: &[u8], found: &Statement) -> bool {
    let named = |part: &[u8]| part.eq_ignore_ascii_case(COMPLETION);
    found.multi && sql.windows(COMPLETION.len()).any(named)
}

/// Whether a text may commit or roll back, and with that end a connection whose `completion_type`
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

impl<N: Net> Group<N> {
    /// Notes that a client keeps its backend for good from now on, for what it did before.
    pub(crate) fn pin(&mut self, key: Key, reason: PinReason) {
        let now = self.net.now();
        if let Some(client) = self.clients.get_mut(key) {
            client.pin(reason, None, (now, &mut self.counts));
        }
    }

    /// Plans what a statement takes and gives back. `schema` is where its names are looked up.
    /// Notes with `statement` what follows from it for the reports that come with its reply.
    pub(crate) fn plan_pins(
        &mut self,
        key: Key,
        sql: &[u8],
        (mode, found): (LexMode, &Statement),
        schema: Option<&[u8]>,
        statement: &mut session::statement::Statement,
    ) {
        self.plan_triggers_and_views(key, (sql, mode), found, schema, statement);
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        let releases = client.session.releases || names_completion(sql, found);
        let releases = releases && ends_transaction(sql, mode, found);
        if found.causes.is_empty() && client.pins.is_empty() && !releases {
            return;
        }
        let mut holdings = holdings(sql, mode, found, schema);
        if releases {
            holdings.for_good.insert(PinCause::Release);
        }
        let tables = PinCause::TemporaryTable;
        // A temporary table that is altered is recreated, which is reported as if it were another.
        let own_table = PinReason::Text(tables);
        let alters = found.verb == Verb::Ddl && !found.multi && client.is_pinned_for(own_table);
        let ends_table = |ended: &Ended| matches!(ended, Ended::One(cause, _) if *cause == tables);
        let changes_own = alters
            || found.causes.contains(tables)
            || holdings.ended.iter().any(ends_table)
            || holdings.blurred.contains(tables)
            || !holdings.renamed.is_empty();
        if changes_own {
            statement.explain();
        }
        let policy = self.settings.stored_code;
        if policy != StoredCode::Pin && only_calls(found) {
            let calls = holdings.for_good.contains(PinCause::StoredCode);
            statement.spoils |= calls && policy == StoredCode::Transaction;
            if calls && policy == StoredCode::Trust {
                statement.explain();
            }
            holdings.for_good.remove(PinCause::StoredCode);
        }
        if holdings.is_empty() {
            return;
        }
        let plan = client.pins.plan(sql);
        plan.holdings = holdings;
        plan.void = void_of((sql, mode), found, schema);
    }

    /// Plans what a statement does through code that its text does not show, or defines such code.
    fn plan_triggers_and_views(
        &mut self,
        key: Key,
        text: (&[u8], LexMode),
        found: &Statement,
        schema: Option<&[u8]>,
        statement: &mut session::statement::Statement,
    ) {
        if let Some(coming) = self.defines_code(text, found, schema)
            && let Some(client) = self.clients.get_mut(key)
        {
            client.pins.plan(text.0).guards.push(Box::new(coming));
        }
        if found.sets_global
            && let Some(client) = self.clients.get_mut(key)
        {
            let setting = Setting(self.shared.clone());
            client.pins.plan(text.0).guards.push(Box::new(setting));
        }
        statement.judged = self.see_code_catalogue();
        if !self.runs_triggers_or_views(text, found, schema) {
            return;
        }
        statement.ride = Ride::Never;
        match self.settings.stored_code {
            StoredCode::Pin => {
                if let Some(client) = self.clients.get_mut(key) {
                    client.pin_by(PinReason::TriggersAndViews, text.0);
                }
            }
            StoredCode::Transaction => statement.spoils = true,
            StoredCode::Trust => {}
        }
    }
}
