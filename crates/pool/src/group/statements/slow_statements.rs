//! The log of slow statements: which took long, how long they waited for a backend and how long
//! they ran.
//!
//! What is noted of a statement when it is sent (its wait, its trace, its text if the settings want
//! that) is kept until its end, and only while the settings want slow statements logged: then the
//! statement path pays for it. The text in the log is the one of its digest, without values, unless
//! the settings ask for values. A group logs so many lines in a second ([`LineLimit`]).
//!
//! Invariant: one note for each client at most, dropped with its statement or its client.

use crate::backend::InFlight;
use crate::buffers::message::payload_of;
use crate::group::Group;
use crate::log::line_limit::LineLimit;
use crate::log::{Event, Facts, StatementFacts, note_of};
use reactor::{Key, Net};
use session::reply_summary::ReplySummary;
use std::collections::HashMap;
use std::time::Duration;
use wire::attributes::{Form, header_len};
use wire::command::Command;

/// Bytes of a text with its values.
const TEXT_MAX: usize = 4096;

/// What is noted of a statement that runs.
#[derive(Debug)]
struct Note {
    waited: Duration,
    trace: Option<Box<str>>,
    /// The text with its values.
    text: Option<Box<str>>,
}

/// What a group knows of statements that may turn out to be slow.
#[derive(Debug, Default)]
pub(crate) struct SlowStatements {
    notes: HashMap<Key, Note>,
    pub(crate) lines: LineLimit,
}

impl SlowStatements {
    /// A client has left.
    pub(crate) fn forget(&mut self, client: Key) {
        if !self.notes.is_empty() {
            self.notes.remove(&client);
        }
    }
}

impl<N: Net> Group<N> {
    /// A client's statement is sent, having waited for so long.
    pub(crate) fn note_slow(&mut self, key: Key, message: &[u8], waited: Duration) {
        if self.settings.slow_statement.is_none() {
            return;
        }
        let note = Note {
            waited,
            trace: sql::traceparent::find(message).map(Into::into),
            text: self.text_with_values(key, message),
        };
        self.slow.notes.insert(key, note);
    }

    fn text_with_values(&self, key: Key, message: &[u8]) -> Option<Box<str>> {
        if !self.settings.slow_statement_values {
            return None;
        }
        let client = self.clients.get(key)?;
        let payload = payload_of(message);
        let (byte, arguments) = payload.split_first()?;
        if Command::from_byte(*byte) != Some(Command::Query) {
            return None;
        }
        let header = header_len(Form::of(client.capabilities), arguments).ok()?;
        let text = arguments.get(header..)?;
        let text = &text[..text.len().min(TEXT_MAX)];
        Some(String::from_utf8_lossy(text).into())
    }

    /// Its reply has come whole.
    pub(crate) fn log_if_slow(
        &mut self,
        key: Key,
        command: &InFlight,
        service: Duration,
        summary: &ReplySummary,
    ) {
        let Some(note) = self.slow.notes.remove(&key) else {
            return;
        };
        let is_slow = |min: Duration| note.waited + service >= min;
        if !self.settings.slow_statement.is_some_and(is_slow) {
            return;
        }
        let now = self.net.now();
        let Some(omitted) = self.slow.lines.admit(now) else {
            return;
        };
        let Some(client) = self.clients.get(key) else {
            return;
        };
        let digest = client.statement.digest;
        let user = self.settings.users.get(client.user as usize);
        let facts = Facts {
            client: Some(client.transport.peer(&self.net).into()),
            account: user.map(|user| user.name.as_bytes()),
            omitted,
            statement: Some(StatementFacts {
                wait: note.waited,
                service,
                rows: command.reply.rows(),
                error: summary.error.as_ref().map(|(number, _)| *number),
                digest: (digest != 0).then_some(digest),
                trace: note.trace.as_deref(),
            }),
            ..Facts::default()
        };
        let masked = self.figures.digests.text(digest);
        let text = note.text.as_deref().or(masked.as_deref());
        let text = text.unwrap_or("(a command without a text)");
        note_of(Event::SlowStatement, &facts, format_args!("{text}"));
    }
}
