//! Pins: why a client keeps its backend, and when each reason for it ends.
//!
//! The problem: what a session has taken (locks, temporary tables, cursors) lives on one server
//! connection, and a client that has it must stay there; but no longer than it has it. The
//! mechanism: a client has a list of reasons, each either for good or with the names of what was
//! taken ([`sql::acquired`]). A statement's takings are planned when it is classified, count from
//! the moment it is sent, and what it gives back counts when the server has answered OK. Which
//! named locks are still held after a statement that takes or releases some, only the server
//! knows: it is asked ([`Pins::columns_to_ask`]) once nothing else pins the client; so it is for
//! variables that a statement uses up.
//!
//! Invariants: a client is unpinned when its last reason has ended; a doubt makes a reason last for
//! good; a client without pins has no box for them.

use crate::reply_summary::ReplySummary;
use crate::text::Text;
use failed_acquisition::FailedAcquisition;
use serde::{Deserialize, Serialize};
use sql::acquired::{Acquired, Ended, Name};
use sql::classify::{PinCause, Statement, Verb, rests_at};
use std::fmt;

pub mod failed_acquisition;

/// Bytes of a statement that are kept for the report.
const TEXT_MAX: usize = 200;
/// Things that a client may hold for one reason and still be unpinned when all have ended.
const NAMES_MAX: usize = 64;
/// Causes of which the server, or what was read back, can tell that they have ended.
const TOLD: [PinCause; 3] = [
    PinCause::UserLock,
    PinCause::VariableInUse,
    PinCause::UserVariable,
];

/// The beginning of a text as the report may show it: without comments, and up to its first
/// literal, either of which may hold a password or somebody's data. A literal begins with a quote,
/// or with a digit or a dollar sign that no name stands in front of, in every `sql_mode`; quotes in
/// names only end it sooner.
fn shown(sql: &[u8]) -> Text {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..);
    let mut out = Vec::with_capacity(sql.len().min(TEXT_MAX));
    let mut at = 0;
    while out.len() < TEXT_MAX {
        let Some(&byte) = sql.get(at) else { break };
        if let Some(end) = comment_end(&sql[at..]) {
            at += end;
            continue;
        }
        let in_name = out.last().is_some_and(|&before| is_name(before));
        if matches!(byte, b'\'' | b'"') || matches!(byte, b'0'..=b'9' | b'$') && !in_name {
            out.extend_from_slice(b"...");
            break;
        }
        // No blank in front, and one in place of those around a comment.
        let blank = byte.is_ascii_whitespace();
        if !blank
            || out
                .last()
                .is_some_and(|before| !before.is_ascii_whitespace())
        {
            out.push(byte);
        }
        at += 1;
    }
    out.into()
}

/// The length of the comment that a text begins with, if it does.
fn comment_end(sql: &[u8]) -> Option<usize> {
    let past = |end: &[u8]| {
        let mut places = sql.windows(end.len());
        places
            .position(|place| place == end)
            .map_or(sql.len(), |at| at + end.len())
    };
    match sql {
        // The server may run it.
        [b'/', b'*', b'!' | b'M', ..] => None,
        [b'/', b'*', ..] => Some(past(b"*/")),
        [b'#', ..] | [b'-', b'-', b' ' | b'\t' | b'\n', ..] => Some(past(b"\n")),
        _ => None,
    }
}

/// Reason why a client keeps its backend for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PinReason {
    /// Text of a statement that says that it may leave state behind.
    Text(PinCause),
    /// The server reported a change of state that neither a variable nor the text explains.
    UnexplainedChange,
    /// The text reaches a trigger, a view or a column whose code may leave something unseen.
    TriggersAndViews,
    /// A statement that asks for the default schema was prepared without one.
    PreparedSchema,
    /// Results or literals are in a character set of two or four bytes, in which the pool's own
    /// questions would be asked and answered too.
    WideCharset,
}

impl PinReason {
    /// All of them.
    pub fn all() -> impl Iterator<Item = PinReason> {
        let others = [
            PinReason::UnexplainedChange,
            PinReason::TriggersAndViews,
            PinReason::PreparedSchema,
            PinReason::WideCharset,
        ];
        let of_texts = PinCause::ALL.into_iter().map(PinReason::Text);
        of_texts.chain(others)
    }

    /// A short stable name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            PinReason::Text(cause) => cause.name(),
            PinReason::UnexplainedChange => "unexplained_change",
            PinReason::TriggersAndViews => "triggers_and_views",
            PinReason::PreparedSchema => "prepared_schema",
            PinReason::WideCharset => "wide_charset",
        }
    }
}

/// Something that is dropped when the statement has ended for which it was made, however that ends:
/// with an answer, with its client, or with its backend.
pub trait Guard: fmt::Debug {
    /// Takes the reply to the statement; that of several, to its last one.
    fn answered(&mut self, _summary: &ReplySummary) {}
}

/// One reason.
#[derive(Debug, Serialize, Deserialize)]
pub struct Pin {
    /// Reason of the pin.
    pub reason: PinReason,
    /// Moment since which it holds: nanoseconds by the system's monotonic clock, which all
    /// processes share.
    pub since: u64,
    /// The beginning of the statement; empty when none is at hand.
    pub text: Text,
    /// Names of what is held, never empty; `None` when nothing ends it.
    pub names: Option<Vec<Name>>,
}

/// Effect of a command on the pins once it is sent, and once it is answered.
#[derive(Debug, Default)]
pub struct Plan {
    text: Text,
    /// Reasons without an end.
    pub reasons: Vec<PinReason>,
    /// Resources that it acquires and gives back.
    pub acquired: Acquired,
    /// Condition under which it has not taken it.
    pub failed_acquisition: FailedAcquisition,
    /// Guards that end with it.
    pub guards: Vec<Box<dyn Guard>>,
    /// Pins that it begins, once it is sent.
    fresh: Vec<(PinReason, Option<Name>)>,
}

impl Plan {
    /// One for a command with this text, without any effect yet.
    #[must_use]
    pub fn of(sql: &[u8]) -> Plan {
        Plan {
            text: shown(sql),
            ..Plan::default()
        }
    }
}

/// The reasons of a client that has any, or whose command may give it some.
#[derive(Debug, Default, Serialize, Deserialize)]
struct PinList {
    list: Vec<Pin>,
    /// Pins of the command that is not sent yet; no client goes to another process meanwhile.
    #[serde(skip)]
    coming: Option<Plan>,
    /// Pins of the command that runs.
    #[serde(skip)]
    running: Option<Plan>,
    /// True if its named locks are still held, and its variables in use, is to be asked.
    asks: bool,
}

/// All that makes a client keep its backend; a pointer, while nothing does.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Pins(Option<Box<PinList>>);

impl Pins {
    /// The reasons, oldest first.
    #[must_use]
    pub fn list(&self) -> &[Pin] {
        self.0.as_ref().map_or(&[], |pins| &pins.list)
    }

    /// True if it is pinned, for whatever reason.
    #[must_use]
    pub fn is_pinned(&self) -> bool {
        !self.list().is_empty()
    }

    /// True if a command's plan waits for its sending, or for its answer.
    #[must_use]
    pub fn is_under_way(&self) -> bool {
        let pins = self.0.as_ref();
        pins.is_some_and(|pins| pins.coming.is_some() || pins.running.is_some())
    }

    /// True if there is neither a reason nor a plan.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// True if this is among its reasons, or among those that its command may give it.
    #[must_use]
    pub fn is_pinned_for(&self, reason: PinReason) -> bool {
        self.0.as_ref().is_some_and(|pins| {
            let planned = |plan: &Plan| {
                let among = |cause| plan.acquired.for_good.contains(cause);
                let text = matches!(reason, PinReason::Text(cause) if among(cause));
                text || plan.reasons.contains(&reason)
            };
            pins.list.iter().any(|pin| pin.reason == reason)
                || pins.coming.as_ref().is_some_and(planned)
        })
    }

    /// True if something of this name is held.
    #[must_use]
    pub fn has(&self, cause: PinCause, name: &[u8]) -> bool {
        let names = self.names(cause);
        names.is_some_and(|names| names.iter().any(|held| **held == *name))
    }

    /// True if the command that is sent next pins, as far as its text tells.
    #[must_use]
    pub fn will_pin(&self) -> bool {
        let plan = self.0.as_ref().and_then(|pins| pins.coming.as_ref());
        plan.is_some_and(|plan| {
            let acquired = &plan.acquired;
            let any = acquired.taken.is_empty() && acquired.for_good.is_empty();
            !any || !plan.reasons.is_empty()
        })
    }

    /// The names that are held for a cause, if they are known.
    #[must_use]
    pub fn names(&self, cause: PinCause) -> Option<&[Name]> {
        self.0.as_ref()?.names(cause)
    }

    /// Plan of the next command, which has this text.
    pub fn plan(&mut self, sql: &[u8]) -> &mut Plan {
        let pins = self.0.get_or_insert_default();
        pins.coming.get_or_insert_with(|| Plan::of(sql))
    }

    /// Makes this the plan of the next command.
    pub fn set_plan(&mut self, plan: Plan) {
        self.0.get_or_insert_default().coming = Some(plan);
    }

    /// Forgets the plan of a command that was not sent, and the box when nothing is in it.
    pub fn forget_plan(&mut self) {
        if let Some(pins) = &mut self.0 {
            pins.coming = None;
        }
        self.shrink();
    }

    fn shrink(&mut self) {
        let empty = |pins: &PinList| {
            let is_planned = pins.coming.is_some() || pins.running.is_some();
            pins.list.is_empty() && !is_planned
        };
        if self.0.as_deref().is_some_and(empty) {
            self.0 = None;
        }
    }

    /// Notes that a client keeps its backend from `since` on: for good, or as long as it has
    /// something of this name. `true` where the reason is new.
    pub fn add(&mut self, reason: PinReason, name: Option<Name>, since: u64) -> bool {
        let pins = self.0.get_or_insert_default();
        pins.add(reason, name, &Text::default(), since).0
    }

    /// Starts the pins of the command that goes out. Returns the reasons that are new.
    pub fn sent(&mut self, now: u64) -> Vec<PinReason> {
        let Some(pins) = &mut self.0 else {
            return Vec::new();
        };
        pins.running = None;
        let Some(mut plan) = pins.coming.take() else {
            return Vec::new();
        };
        let taken = plan.acquired.taken.drain(..);
        let named = taken.map(|(cause, name)| (PinReason::Text(cause), Some(name)));
        let causes = plan.acquired.for_good.iter().map(PinReason::Text);
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
        for cause in plan.acquired.blurred.iter() {
            if let Some(pin) = pins.find(PinReason::Text(cause)) {
                pin.names = None;
            }
        }
        pins.running = Some(plan);
        reasons
    }

    /// Ends what the answered statement gave back.
    pub fn answered(&mut self, summary: &ReplySummary) {
        let Some(pins) = &mut self.0 else { return };
        if let Some(mut plan) = pins.running.take() {
            for guard in &mut plan.guards {
                guard.answered(summary);
            }
            // What has run may have failed for any reason, and of its own choice.
            let hidden = plan.reasons.contains(&PinReason::TriggersAndViews);
            if !hidden && plan.failed_acquisition.is_so(summary) {
                pins.withdraw(plan.fresh);
            }
            if summary.error.is_none() {
                for ended in &plan.acquired.ended {
                    pins.end(ended);
                }
            }
            pins.rename(&plan.acquired.renamed, summary.error.is_none());
            pins.asks |= plan.acquired.asks_for_locks;
        }
        // Any statement may have used one up.
        pins.asks |= pins.names(PinCause::VariableInUse).is_some();
        self.shrink();
    }

    /// True if nothing pins but what may have ended unnoticed; `variables_read`: user variables are
    /// to be read back.
    #[must_use]
    pub fn may_have_ended(&self, variables_read: bool) -> bool {
        let fresh = variables_read && self.names(PinCause::UserVariable).is_some();
        let told = |pin: &Pin| {
            let among = matches!(pin.reason, PinReason::Text(cause) if TOLD.contains(&cause));
            among && pin.names.is_some()
        };
        self.0.is_some() && self.list().iter().all(told) && (self.asks() || fresh)
    }

    /// True if the server is to be asked what of the named has ended.
    #[must_use]
    pub fn asks(&self) -> bool {
        let some = |cause| self.names(cause).is_some();
        self.0.as_ref().is_some_and(|pins| pins.asks)
            && (some(PinCause::UserLock) || some(PinCause::VariableInUse))
    }

    /// Marks it to be asked, now that something has happened meanwhile.
    pub fn ask_again(&mut self) {
        if let Some(pins) = &mut self.0 {
            pins.asks = true;
        }
    }

    /// Columns that ask which of what pins it has ended: any of its named locks, each of its
    /// variables in use.
    pub fn columns_to_ask(&mut self) -> Vec<String> {
        let Some(pins) = &mut self.0 else {
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

    /// Ends what the server has answered 0 to: the named locks, and each variable in use.
    pub fn end_as_reported(&mut self, row: &[&[u8]]) {
        if let Some(pins) = &mut self.0 {
            pins.end_as_reported(row);
        }
        self.shrink();
    }

    /// Ends one of the things that are held for this cause.
    pub fn end(&mut self, cause: PinCause, name: &[u8]) {
        if let Some(pins) = &mut self.0 {
            pins.end(&Ended::One(cause, name.into()));
        }
        self.shrink();
    }
}

impl PinList {
    fn find(&mut self, reason: PinReason) -> Option<&mut Pin> {
        self.list.iter_mut().find(|pin| pin.reason == reason)
    }

    /// Adds what is held for a reason; `None` holds for good. Gives whether the reason is new, and
    /// whether anything is.
    fn add(
        &mut self,
        reason: PinReason,
        name: Option<Name>,
        text: &Text,
        since: u64,
    ) -> (bool, bool) {
        let Some(pin) = self.find(reason) else {
            self.list.push(Pin {
                reason,
                since,
                text: text.clone(),
                names: name.map(|name| vec![name]),
            });
            return (true, true);
        };
        match (&mut pin.names, name) {
            (Some(names), Some(name)) if names.len() < NAMES_MAX => {
                let new = !names.contains(&name);
                if new {
                    names.push(name);
                }
                (false, new)
            }
            (names, _) => {
                *names = None;
                (false, false)
            }
        }
    }

    fn end(&mut self, ended: &Ended) {
        self.list.retain_mut(|pin| match ended {
            Ended::All(cause) => pin.reason != PinReason::Text(*cause),
            Ended::One(cause, name) if pin.reason == PinReason::Text(*cause) => pin.lets_go(name),
            Ended::One(..) => true,
        });
    }

    /// Ends what the server has answered 0 to: the named locks, and each variable in use.
    fn end_as_reported(&mut self, row: &[&[u8]]) {
        let ended = |column: &[u8]| column == b"0";
        let variables = self.names(PinCause::VariableInUse).unwrap_or_default();
        let variables = variables.to_vec();
        let Some((locks, rest)) = row.split_first() else {
            return;
        };
        if ended(locks) && self.names(PinCause::UserLock).is_some() {
            self.end(&Ended::All(PinCause::UserLock));
        }
        for (name, _) in variables.iter().zip(rest).filter(|(_, told)| ended(told)) {
            self.end(&Ended::One(PinCause::VariableInUse, name.clone()));
        }
    }

    /// Gives tables their new names, if the statement has succeeded. One that failed half-way, or
    /// that may have meant another case of a name, leaves it open which.
    fn rename(&mut self, tables: &[(Name, Name)], done: bool) {
        let Some(pin) = self.find(PinReason::Text(PinCause::TemporaryTable)) else {
            return;
        };
        for (from, to) in tables {
            let Some(names) = &mut pin.names else { return };
            let held = names.iter().position(|name| name == from);
            let alike = names.iter().any(|name| name.eq_ignore_ascii_case(from));
            match held {
                Some(held) if done => names[held] = to.clone(),
                None if !alike => {}
                _ if done || tables.len() > 1 => pin.names = None,
                _ => {}
            }
        }
    }

    /// Takes back what a statement was noted to take.
    fn withdraw(&mut self, fresh: Vec<(PinReason, Option<Name>)>) {
        for (reason, name) in fresh {
            self.list.retain_mut(|pin| match &name {
                _ if pin.reason != reason => true,
                Some(name) => pin.lets_go(name),
                None => false,
            });
        }
    }

    /// The names that are held for a reason, if they are known.
    fn names(&self, cause: PinCause) -> Option<&[Name]> {
        let mut list = self.list.iter();
        let pin = list.find(|pin| pin.reason == PinReason::Text(cause))?;
        pin.names.as_deref()
    }
}

impl Pin {
    /// Forgets a name; `false` when it was the last.
    fn lets_go(&mut self, name: &Name) -> bool {
        let Some(names) = &mut self.names else {
            return true;
        };
        names.retain(|held| held != name);
        !names.is_empty()
    }
}

/// True if a text calls routines, and is none itself.
#[must_use]
pub fn only_calls(found: &Statement) -> bool {
    !found.multi && !matches!(found.verb, Verb::Other | Verb::Begin)
}

#[cfg(test)]
mod tests;
