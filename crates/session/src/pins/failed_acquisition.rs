//! Failed acquisitions: statements that failed before they did anything.
//!
//! A statement's takings count from the moment that it is sent. Its error tells that nothing came
//! of it, where the servers find that error before they begin: a text that cannot be read, a
//! variable or a routine that there is not. Code that a text runs may fail with the same numbers
//! behind something that it did; so a missing routine must be the only one that the text calls, and
//! the error must name it. Doubts are [`FailedAcquisition::Never`].

use super::only_calls;
use crate::reply_summary::ReplySummary;
use crate::text::mentions;
use sql::classify::stored::calls_in;
use sql::classify::{PinCause, PinCauses, Statement, Verb};
use sql::lex::LexMode;

/// Statements that take what they name or fail; the manuals of both servers on each.
const WHOLE: [PinCause; 5] = [
    PinCause::SessionStatus,
    PinCause::LockTables,
    PinCause::TemporaryTable,
    PinCause::Handler,
    PinCause::Xa,
];
/// Words without which no text of a text is run: what that fails with is not about the whole.
const RUNS_TEXTS: [&str; 3] = ["CALL", "EXECUTE", "PREPARE"];
/// The server's error number for a text that it cannot read.
const UNPARSED: u16 = 1064;
/// The one for a name without a schema where no default one is chosen. Code has always one.
const NO_SCHEMA: u16 = 1046;
/// Those for a routine that does not exist; the second where its name is a built-in function's too.
const NO_ROUTINE: [u16; 2] = [1305, 1630];
/// The one for a variable that does not exist, which is found before a SET begins.
const NO_VARIABLE: u16 = 1193;

/// Condition under which a statement has not taken what it was to take.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FailedAcquisition {
    /// That is never certain.
    #[default]
    Never,
    /// Failure of the server to read it, or its first statement.
    Unparsed,
    /// Lack of the schema, or of one that says where the routines are that it calls.
    Nowhere,
    /// Failure of the server to read it, or a variable that there is not.
    Unset,
    /// Failure for whatever reason.
    Failed,
    /// Failure of the server to read it, or lack of a routine of this name, with its schema, in
    /// lower case.
    Missing(Box<[u8]>),
    /// Lack of the routine of a CALL, whose code may prepare a text that cannot be read.
    Uncalled(Box<[u8]>),
}

impl FailedAcquisition {
    /// True if it has not, by what was heard of it.
    #[must_use]
    pub fn is_so(&self, summary: &ReplySummary) -> bool {
        match self {
            Self::Never => false,
            Self::Unparsed => summary.is_error(UNPARSED) && summary.is_first(),
            Self::Nowhere => {
                (summary.is_error(UNPARSED) || summary.is_error(NO_SCHEMA)) && summary.is_first()
            }
            Self::Unset => summary.is_error(UNPARSED) || summary.is_error(NO_VARIABLE),
            Self::Failed => summary.error.is_some(),
            Self::Missing(name) => {
                summary.is_first() && (summary.is_error(UNPARSED) || says_missing(summary, name))
            }
            Self::Uncalled(name) => summary.is_first() && says_missing(summary, name),
        }
    }
}

/// True if an error says that there is no routine of this name.
fn says_missing(summary: &ReplySummary, name: &[u8]) -> bool {
    summary.error.as_ref().is_some_and(|(number, words)| {
        let words = words.to_ascii_lowercase();
        let named = words.split(' ').any(|word| word.as_bytes() == name);
        NO_ROUTINE.contains(number) && named
    })
}

/// Condition under which a text with these findings has not taken what it was to take.
#[must_use]
pub fn failed_acquisition_of(
    (sql, mode): (&[u8], LexMode),
    found: &Statement,
    schema: Option<&[u8]>,
) -> FailedAcquisition {
    if let Some(name) = only_routine((sql, mode), found, schema) {
        return match found.verb {
            Verb::Call => FailedAcquisition::Uncalled(name),
            _ => FailedAcquisition::Missing(name),
        };
    }
    if schema.is_some_and(<[u8]>::is_empty) && names_no_schema((sql, mode), found) {
        return FailedAcquisition::Nowhere;
    }
    // Code that runs in it may have done something before it met what cannot be read.
    let hides = [PinCause::StoredCode, PinCause::TextExecute];
    let hidden = hides.iter().any(|cause| found.causes.contains(*cause));
    // The same where the text has not been understood.
    let blind = found.causes.contains(PinCause::Unknown);
    if hidden || (blind && RUNS_TEXTS.iter().any(|word| mentions(sql, word.as_bytes()))) {
        return FailedAcquisition::Never;
    }
    let whole = WHOLE
        .iter()
        .any(|cause| found.causes == PinCauses::of(*cause));
    match found.multi {
        false if whole => FailedAcquisition::Failed,
        false if found.verb == Verb::Set => FailedAcquisition::Unset,
        _ => FailedAcquisition::Unparsed,
    }
}

/// True if a text calls routines, and names the schema of none.
fn names_no_schema(text: (&[u8], LexMode), found: &Statement) -> bool {
    if found.causes != PinCauses::of(PinCause::StoredCode) || !only_calls(found) {
        return false;
    }
    let calls = calls_in(text.0, text.1);
    calls.is_some_and(|calls| calls.iter().all(|call| call.path.schema.is_none()))
}

/// The one routine that a text calls, with its schema, in lower case, as errors name it.
fn only_routine(
    text: (&[u8], LexMode),
    found: &Statement,
    schema: Option<&[u8]>,
) -> Option<Box<[u8]>> {
    let unread = [PinCause::TextExecute, PinCause::Unknown];
    let unread = unread.iter().any(|cause| found.causes.contains(*cause));
    if unread || !found.causes.contains(PinCause::StoredCode) || !only_calls(found) {
        return None;
    }
    let calls = calls_in(text.0, text.1)?;
    let mut calls = calls.iter();
    let call = calls.next().filter(|call| !call.perhaps)?;
    let schema = match &call.path.schema {
        Some(schema) => schema,
        None => schema.filter(|schema| !schema.is_empty())?,
    };
    let name = [schema, b".", &*call.path.name]
        .concat()
        .to_ascii_lowercase();
    calls.next().is_none().then(|| name.into())
}
