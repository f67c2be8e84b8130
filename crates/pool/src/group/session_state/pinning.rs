//! Pins of clients: planned for a text, taken when it is sent, asked about and ended.
//!
//! The reasons themselves are values ([`crate::client::pins`]). A statement's takings count from
//! the moment that it is sent; its answer confirms them or takes them back.

use crate::client::Client;
use crate::client::guards::Setting;
use crate::client::pins::void::{Void, void_of};
use crate::client::pins::{Pin, Pins, Plan, TOLD, only_calls, shown};
use crate::config::StoredCode;
use crate::errors::reasons::PinReason;
use crate::group::Group;
use reactor::{Key, Net, Time};
use session::read_back::{Answer, Properties};
use session::reply_summary::ReplySummary;
use session::shapes::Ride;
use session::text::Text;
use sql::classify::{PinCause, Statement, Verb, rests_at};
use sql::holdings::{Ended, Holdings, Name, holdings};
use sql::lex::{Kind, LexMode, Lexer, Token};

impl<S> Client<S> {
    /// Whether it is pinned, for whatever reason.
    pub(crate) fn is_pinned(&self) -> bool {
        self.pins.as_ref().is_some_and(|pins| !pins.list.is_empty())
    }

    /// Whether this is among its reasons, or among those that its command may give it.
    pub(crate) fn is_pinned_for(&self, reason: PinReason) -> bool {
        self.pins.as_ref().is_some_and(|pins| {
            let planned = |plan: &Plan| {
                let among = |cause| plan.holdings.for_good.contains(cause);
                let text = matches!(reason, PinReason::Text(cause) if among(cause));
                text || plan.reasons.contains(&reason)
            };
            pins.list.iter().any(|pin| pin.reason == reason)
                || pins.coming.as_ref().is_some_and(planned)
        })
    }

    /// Whether it holds something of this name.
    pub(crate) fn holds(&self, cause: PinCause, name: &[u8]) -> bool {
        let names = self.pins.as_ref().and_then(|pins| pins.names(cause));
        names.is_some_and(|names| names.iter().any(|held| **held == *name))
    }

    /// Whether it is pinned for code or texts that nobody has read: its session may have names that
    /// the pool does not know.
    pub(crate) fn is_unread(&self) -> bool {
        let unread = |pin: &Pin| {
            let cause = matches!(
                pin.reason,
                PinReason::Text(PinCause::StoredCode | PinCause::TextPrepare | PinCause::Unknown)
            );
            cause && pin.names.is_none()
        };
        let coming = |plan: &Plan| {
            use PinCause::{StoredCode, TextPrepare, Unknown};
            let mut causes = [StoredCode, TextPrepare, Unknown].into_iter();
            causes.any(|cause| plan.holdings.for_good.contains(cause))
        };
        self.pins.as_ref().is_some_and(|pins| {
            pins.list.iter().any(unread) || pins.coming.as_ref().is_some_and(coming)
        })
    }

    /// Forgets the plan of a command that was not sent, and the box when nothing is in it.
    pub(crate) fn forget_plan(&mut self) {
        if let Some(pins) = &mut self.pins {
            pins.coming = None;
            if pins.list.is_empty() && pins.running.is_none() {
                self.pins = None;
            }
        }
    }

    fn plan(&mut self, sql: &[u8]) -> &mut Plan {
        let pins = self.pins.get_or_insert_default();
        pins.coming.get_or_insert_with(|| Plan {
            text: shown(sql),
            ..Plan::default()
        })
    }

    /// Its command goes out: what it takes counts from now on. Gives the reasons that are new.
    pub(crate) fn pins_are_sent(&mut self, now: Time) -> Vec<PinReason> {
        let Some(pins) = &mut self.pins else {
            return Vec::new();
        };
        pins.running = pins.coming.take();
        let Some(mut plan) = pins.running.take() else {
            return Vec::new();
        };
        let taken = plan.holdings.taken.drain(..);
        let named = taken.map(|(cause, name)| (PinReason::Text(cause), Some(name)));
        let causes = plan.holdings.for_good.iter().map(PinReason::Text);
        let for_good = causes.chain(plan.reasons.iter().copied());
        let all: Vec<_> = named.chain(for_good.map(|reason| (reason, None))).collect();
        let mut reasons = Vec::new();
        for (reason, name) in all {
            let (first, new) = pins.add(reason, name.clone(), &plan.text, now);
            if first {
                reasons.push(reason);
            }
            if new {
                plan.fresh.push((reason, name));
            }
        }
        for cause in plan.holdings.blurred.iter() {
            if let Some(pin) = pins.find(PinReason::Text(cause)) {
                pin.names = None;
            }
        }
        pins.running = Some(plan);
        reasons
    }

    /// Its statement is answered: what it gave back has ended.
    pub(crate) fn pins_are_answered(&mut self, summary: &ReplySummary) {
        let Some(pins) = &mut self.pins else { return };
        if let Some(plan) = pins.running.take() {
            // What has run may have failed for any reason, and of its own choice.
            let hidden = plan.reasons.contains(&PinReason::TriggersAndViews);
            if !hidden && plan.void.is_so(summary) {
                pins.withdraw(plan.fresh);
            }
            if summary.error.is_none() {
                for ended in &plan.holdings.ended {
                    pins.end(ended);
                }
            }
            pins.rename(&plan.holdings.renamed, summary.error.is_none());
            pins.asks |= plan.holdings.asks_for_locks;
        }
        // Any statement may have used one up.
        pins.asks |= pins.names(PinCause::VariableInUse).is_some();
        self.forget_empty_pins();
    }

    fn forget_empty_pins(&mut self) {
        let empty =
            |pins: &Pins| pins.list.is_empty() && pins.coming.is_none() && pins.running.is_none();
        if self.pins.as_ref().is_some_and(|pins| empty(pins)) {
            self.pins = None;
        }
    }

    /// Whether nothing pins it but what may have ended unnoticed.
    pub(crate) fn may_have_ended(&self) -> bool {
        let cursor = self.prepared.as_ref().is_some_and(|p| p.holds());
        let fresh = self.touched.as_ref().is_some_and(|touched| touched.fresh);
        let fresh = |pins: &Pins| fresh && pins.names(PinCause::UserVariable).is_some();
        let told = |pin: &Pin| {
            let among = matches!(pin.reason, PinReason::Text(cause) if TOLD.contains(&cause));
            among && pin.names.is_some()
        };
        let may = |pins: &Pins| pins.list.iter().all(told) && (pins.asks_for_some() || fresh(pins));
        !cursor && self.pins.as_deref().is_some_and(may)
    }

    /// Whether the server is to be asked what of it has ended.
    pub(crate) fn asks_for_holdings(&self) -> bool {
        self.pins.as_deref().is_some_and(Pins::asks_for_some)
    }

    /// Columns that ask which of what pins it has ended: any of its named locks, each of its
    /// variables in use.
    pub(crate) fn holdings_to_ask(&mut self) -> Vec<String> {
        let Some(pins) = &mut self.pins else {
            return Vec::new();
        };
        pins.asks = false;
        let locks = pins.names(PinCause::UserLock).unwrap_or_default();
        let held = locks.iter().map(|name| {
            let name = String::from_utf8_lossy(name);
            format!("IS_USED_LOCK('{name}')<=>CONNECTION_ID()")
        });
        let held: Vec<String> = held.collect();
        let mut columns = vec![match held.is_empty() {
            true => "0".to_string(),
            false => held.join(" OR "),
        }];
        for name in pins.names(PinCause::VariableInUse).unwrap_or_default() {
            if let Some((name, rest)) = rests_at(name) {
                columns.push(format!("@@SESSION.{name}<>{rest}"));
            }
        }
        columns
    }

    /// One of the things that it holds for this cause has ended.
    pub(crate) fn end_pin(&mut self, cause: PinCause, name: &[u8]) {
        if let Some(pins) = &mut self.pins {
            pins.end(&Ended::One(cause, name.into()));
        }
        self.forget_empty_pins();
    }
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
        self.pin_for(key, reason, None);
    }

    /// Notes that it does as long as it has something of this name.
    pub(crate) fn pin_while(&mut self, key: Key, reason: PinReason, name: &[u8]) {
        self.pin_for(key, reason, Some(name.into()));
    }

    fn pin_for(&mut self, key: Key, reason: PinReason, name: Option<Name>) {
        let since = self.net.now();
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        let pins = client.pins.get_or_insert_default();
        if pins.add(reason, name, &Text::default(), since).0 {
            *self.counts.pins.entry(reason.name()).or_default() += 1;
        }
    }

    /// The same for a statement, from the moment that it is sent.
    pub(crate) fn pin_by(&mut self, key: Key, reason: PinReason, sql: &[u8]) {
        if let Some(client) = self.clients.get_mut(key) {
            client.plan(sql).reasons.push(reason);
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
        let releases = client.session.releases && ends_transaction(sql, mode, found);
        if found.causes.is_empty() && client.pins.is_none() && !releases {
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
        let plan = client.plan(sql);
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
            client.plan(text.0).defines = Some(coming);
        }
        if found.sets_global
            && let Some(client) = self.clients.get_mut(key)
        {
            client.plan(text.0).sets = Some(Setting(self.shared.clone()));
        }
        statement.judged = self.see_code_catalogue();
        if !self.runs_triggers_or_views(text, found, schema) {
            return;
        }
        statement.ride = Ride::Never;
        match self.settings.stored_code {
            StoredCode::Pin => self.pin_by(key, PinReason::TriggersAndViews, text.0),
            StoredCode::Transaction => statement.spoils = true,
            StoredCode::Trust => {}
        }
    }

    /// Plans that a statement takes, or gives back, something that its text does not show.
    pub(crate) fn plan_more(&mut self, key: Key, sql: &[u8], holdings: Holdings, void: Void) {
        if let Some(client) = self.clients.get_mut(key) {
            let plan = client.plan(sql);
            (plan.holdings, plan.void) = (holdings, void);
        }
    }

    /// A client's command goes out.
    pub(crate) fn note_pins(&mut self, key: Key) {
        let now = self.net.now();
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        for reason in client.pins_are_sent(now) {
            *self.counts.pins.entry(reason.name()).or_default() += 1;
        }
    }

    /// The server has said which of what a client holds are still there.
    pub(crate) fn holdings_told(&mut self, key: Key, owner: Key, answer: &Answer) {
        let alone = self
            .backends
            .get(key)
            .is_some_and(|backend| backend.flight().is_empty());
        let Some(client) = self.clients.get_mut(owner) else {
            return;
        };
        if let Some(pins) = &mut client.pins {
            if alone {
                let told = answer.of(Properties::HOLDINGS);
                let row: Vec<_> = told
                    .map(|(_, value)| value.map_or(&b""[..], |v| v))
                    .collect();
                pins.end_as_told(&row);
            } else {
                // A statement went out behind the question, and may have taken a lock again.
                pins.asks = true;
            }
        }
        client.forget_empty_pins();
    }
}

#[cfg(test)]
mod tests;
