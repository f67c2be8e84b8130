//! Pins: why a client keeps its backend, and when each reason for it ends.
//!
//! The problem: what a session has taken (locks, temporary tables, cursors) lives on one server
//! connection, and a client that has it must stay there; but no longer than it has it. The
//! mechanism: a client has a list of reasons, each either for good or with the names of what was
//! taken ([`sql::holdings`]). A statement's takings are planned when it is classified, count from
//! the moment it is sent, and what it gives back counts when the server has answered OK. Which
//! named locks are still held after a statement that takes or releases some, only the server
//! knows: it is asked ([`Group::ask_for_holdings`]) once nothing else pins
//! the client; so it is for variables that a statement uses up.
//!
//! Invariants: a client is unpinned when its last reason has ended, and then the lease ends as any
//! other does (`endings.rs`: what is owed is read back first); a doubt makes a reason last for
//! good; a client without pins has no box for them.

use crate::client::guards::{Coming, Setting};
use crate::client::pins::void::Void;
use crate::errors::reasons::PinReason;
use reactor::Time;
use session::text::Text;
use sql::classify::{PinCause, Statement, Verb};
use sql::holdings::{Ended, Holdings, Name};

mod recorded;
pub(crate) mod void;

/// Bytes of a statement that are kept for the report.
pub(crate) const TEXT_MAX: usize = 200;
/// Things that a client may hold for one reason and still be unpinned when all have ended.
pub(crate) const NAMES_MAX: usize = 64;
/// Causes of which the server, or what was read back, can tell that they have ended.
pub(crate) const TOLD: [PinCause; 3] = [
    PinCause::UserLock,
    PinCause::VariableInUse,
    PinCause::UserVariable,
];

/// The beginning of a text as the report may show it: without comments, and up to its first
/// literal, either of which may hold a password or somebody's data. A literal begins with a quote,
/// or with a digit or a dollar sign that no name stands in front of, in every `sql_mode`; quotes in
/// names only end it sooner.
pub(crate) fn shown(sql: &[u8]) -> Text {
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

/// One reason.
#[derive(Debug)]
pub(crate) struct Pin {
    pub(crate) reason: PinReason,
    /// Since when.
    pub(crate) since: Time,
    /// The beginning of the statement; empty when none is at hand.
    pub(crate) text: Text,
    /// What is held, never empty; `None` when nothing ends it.
    pub(crate) names: Option<Vec<Name>>,
}

/// What a command will do to the pins once it is sent, and once it is answered.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) text: Text,
    /// Reasons without an end.
    pub(crate) reasons: Vec<PinReason>,
    pub(crate) holdings: Holdings,
    pub(crate) void: Void,
    /// It defines code that no text shows.
    pub(crate) defines: Option<Coming>,
    /// It sets a global variable.
    pub(crate) sets: Option<Setting>,
    /// What it has newly taken, once it is sent.
    pub(crate) fresh: Vec<(PinReason, Option<Name>)>,
}

/// The reasons of a client that has any, or whose command may give it some.
#[derive(Debug, Default)]
pub(crate) struct Pins {
    pub(crate) list: Vec<Pin>,
    /// Of the command that is not sent yet.
    pub(crate) coming: Option<Plan>,
    /// Of the command that runs.
    pub(crate) running: Option<Plan>,
    /// Whether its named locks are still held, and its variables in use, is to be asked.
    pub(crate) asks: bool,
}

impl Pins {
    /// The reasons, oldest first.
    pub(crate) fn list(&self) -> &[Pin] {
        &self.list
    }

    pub(crate) fn find(&mut self, reason: PinReason) -> Option<&mut Pin> {
        self.list.iter_mut().find(|pin| pin.reason == reason)
    }

    /// Adds what is held for a reason; `None` holds for good. Gives whether the reason is new, and
    /// whether anything is.
    pub(crate) fn add(
        &mut self,
        reason: PinReason,
        name: Option<Name>,
        text: &Text,
        since: Time,
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

    pub(crate) fn end(&mut self, ended: &Ended) {
        self.list.retain_mut(|pin| match ended {
            Ended::All(cause) => pin.reason != PinReason::Text(*cause),
            Ended::One(cause, name) if pin.reason == PinReason::Text(*cause) => pin.lets_go(name),
            Ended::One(..) => true,
        });
    }

    /// Ends what the server has answered 0 to: the named locks, and each variable in use.
    pub(crate) fn end_as_told(&mut self, row: &[&[u8]]) {
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

    /// Tables have other names, if the statement has succeeded. One that failed half-way, or that
    /// may have meant another case of a name, leaves it open which.
    pub(crate) fn rename(&mut self, tables: &[(Name, Name)], done: bool) {
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
    pub(crate) fn withdraw(&mut self, fresh: Vec<(PinReason, Option<Name>)>) {
        for (reason, name) in fresh {
            self.list.retain_mut(|pin| match &name {
                _ if pin.reason != reason => true,
                Some(name) => pin.lets_go(name),
                None => false,
            });
        }
    }

    /// Whether the server is to be asked what of the named has ended.
    pub(crate) fn asks_for_some(&self) -> bool {
        let some = |cause| self.names(cause).is_some();
        self.asks && (some(PinCause::UserLock) || some(PinCause::VariableInUse))
    }

    /// The names that are held for a reason, if they are known.
    pub(crate) fn names(&self, cause: PinCause) -> Option<&[Name]> {
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

/// Whether a text calls routines, and is none itself.
pub(crate) fn only_calls(found: &Statement) -> bool {
    !found.multi && !matches!(found.verb, Verb::Other | Verb::Begin)
}
