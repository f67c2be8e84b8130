//! Replies as a client receives them, as values to compare.
//!
//! [`Assembler`] takes the payloads of one command's reply and puts together its [`Outcome`]s, with
//! or without CLIENT_DEPRECATE_EOF and CLIENT_SESSION_TRACK, text or binary rows. It knows nothing
//! of `wire::reply::Reply`, which the pool follows replies with: the two check each other.

mod assemble;
mod rows;

pub use assemble::{Assembler, Progress};
pub use rows::{Column, Rows, Value};

use std::fmt::{self, Write as _};
use wire::errors;
use wire::packet::Malformed;
use wire::reply::{ErrPacket, OkPacket};
use wire::track::{self, Change};

/// A command, or one statement of it, succeeded; also the end of rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Rows changed.
    pub affected_rows: u64,
    /// The AUTO_INCREMENT value made.
    pub insert_id: u64,
    /// Status flags.
    pub status: u16,
    /// Warnings.
    pub warnings: u16,
    /// Text for people.
    pub info: String,
    /// Reports of the session trackers, in words such as `schema=shop`.
    pub changes: Vec<String>,
}

/// Bytes as text: what is no UTF-8 as `\xNN`, so that two such values are written differently.
#[must_use]
pub fn words(bytes: &[u8]) -> String {
    let mut words = String::new();
    for chunk in bytes.utf8_chunks() {
        words.push_str(chunk.valid());
        for byte in chunk.invalid() {
            let _ = write!(words, "\\x{byte:02x}");
        }
    }
    words
}

impl Done {
    pub(crate) fn of(ok: &OkPacket<'_>) -> Result<Done, Malformed> {
        let mut changes = Vec::new();
        track::changes(ok.changes, |change| changes.push(words_of(change)))?;
        Ok(Done {
            affected_rows: ok.affected_rows,
            insert_id: ok.insert_id,
            status: ok.status,
            warnings: ok.warnings,
            info: words(ok.info),
            changes,
        })
    }
}

fn words_of(change: Change<'_>) -> String {
    let text = words;
    match change {
        Change::Variable { name, value } => format!("{}={}", text(name), text(value)),
        Change::Schema(name) => format!("schema={}", text(name)),
        Change::State => "state".into(),
        Change::TransactionCharacteristics(sql) => format!("characteristics={}", text(sql)),
        Change::TransactionState(state) => format!("transaction={}", text(state)),
        Change::Gtids(body) => format!("gtids={}", text(body)),
        Change::Other(kind) => format!("tracker {kind}"),
    }
}

/// A command failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The error's number.
    pub code: u16,
    /// Its SQL state.
    pub state: String,
    /// Its words.
    pub message: String,
}

impl Failure {
    pub(crate) fn of(err: &ErrPacket<'_>) -> Failure {
        let text = words;
        Failure {
            code: err.code,
            state: text(err.state),
            message: text(err.message),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure {
            code,
            state,
            message,
        } = self;
        write!(f, "ERROR {code} ({state}): {message}")
    }
}

/// A prepared statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// The server's id of it.
    pub id: u32,
    /// Names of its parameters.
    pub params: Vec<Column>,
    /// Columns of its result.
    pub columns: Vec<Column>,
    /// Warnings.
    pub warnings: u16,
    /// Without CLIENT_DEPRECATE_EOF: status flags and warnings behind each list of definitions.
    pub eofs: Vec<(u16, u16)>,
}

/// One result; a command may have several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// OK.
    Done(Done),
    /// ERR.
    Failed(Failure),
    /// A result set.
    Rows(Rows),
    /// A prepared statement.
    Prepared(Prepared),
    /// A line of text.
    Text(String),
}

/// Errors about a statement's number begin, or end, so.
const UNKNOWN_WORDS: &str = "Unknown prepared statement handler (";
const CURSOR_WORDS: &str = "has no open cursor";

/// States of a transaction, as servers report them, in which nothing was done: one that was begun,
/// and none.
const STATES_WITHOUT_WORK: [&str; 2] = ["T_______", "________"];

/// A server's words without what stands in their first parentheses.
fn without_statement_id(words: &str) -> String {
    match (words.find('('), words.find(')')) {
        (Some(open), Some(close)) if open < close => {
            format!("{}{}", &words[..=open], &words[close..])
        }
        _ => words.to_owned(),
    }
}

impl Outcome {
    /// Sorts what the trackers said: servers send it in an order of their own.
    pub fn sort_changes(&mut self) {
        match self {
            Outcome::Done(done) | Outcome::Rows(Rows { end: done, .. }) => done.changes.sort(),
            _ => {}
        }
    }

    /// Takes out the flag of a change of which the trackers said nothing.
    pub fn forget_empty_change(&mut self) {
        if let Outcome::Done(done) | Outcome::Rows(Rows { end: done, .. }) = self
            && done.changes.is_empty()
        {
            done.status &= !wire::status::SESSION_STATE_CHANGED;
        }
    }

    /// Takes out the reported states of transactions but for two: one has begun and nothing was
    /// done in it, and none is open.
    pub fn forget_work_in_transaction(&mut self) {
        if let Outcome::Done(done) | Outcome::Rows(Rows { end: done, .. }) = self {
            done.changes.retain(|change| {
                let state = change.strip_prefix("transaction=");
                state.is_none_or(|state| STATES_WITHOUT_WORK.contains(&state))
            });
        }
    }

    /// Takes out the number of a prepared statement that a server does not know, also of what SHOW
    /// WARNINGS says of it: each connection counts its own, and a server may go on where the last
    /// connection of its thread has ended.
    pub fn forget_statement_id(&mut self) {
        match self {
            Outcome::Failed(failure) => {
                let codes = [errors::UNKNOWN_STATEMENT.code, errors::NO_OPEN_CURSOR.code];
                if codes.contains(&failure.code) {
                    failure.message = without_statement_id(&failure.message);
                }
            }
            Outcome::Rows(rows) => {
                for value in rows.rows.iter_mut().flatten().flatten() {
                    let said = String::from_utf8_lossy(value);
                    if said.starts_with(UNKNOWN_WORDS)
                        || said.trim_end_matches('.').ends_with(CURSOR_WORDS)
                    {
                        *value = without_statement_id(&said).into_bytes();
                    }
                }
            }
            _ => {}
        }
    }

    /// Takes out the number of a connection: of the values those that are this number, of an
    /// error's words any.
    pub fn forget_number(&mut self, id: u32) {
        let number = id.to_string();
        match self {
            Outcome::Rows(rows) => rows.forget(&number),
            Outcome::Failed(failure) => {
                for encoded in rows::encodings(&number) {
                    // Each of them is UTF-8, too.
                    let encoded = String::from_utf8_lossy(&encoded).into_owned();
                    failure.message = failure.message.replace(&encoded, "its number");
                }
            }
            _ => {}
        }
    }

    /// Takes out what the trackers said.
    pub fn forget_changes(&mut self) {
        if let Outcome::Done(done) = self {
            done.changes.clear();
            done.status &= !wire::status::SESSION_STATE_CHANGED;
        }
    }

    /// The OK.
    ///
    /// # Panics
    /// When it is something else; says what.
    #[must_use]
    pub fn done(&self) -> &Done {
        match self {
            Outcome::Done(done) => done,
            Outcome::Rows(rows) => panic!("expected OK, got {} rows", rows.rows.len()),
            other => panic!("expected OK, got {other:?}"),
        }
    }

    /// The rows.
    ///
    /// # Panics
    /// When it is something else; says what.
    #[must_use]
    pub fn rows(&self) -> &Rows {
        match self {
            Outcome::Rows(rows) => rows,
            other => panic!("expected rows, got {other:?}"),
        }
    }

    /// The error.
    ///
    /// # Panics
    /// When it is something else; says what.
    #[must_use]
    pub fn failure(&self) -> &Failure {
        match self {
            Outcome::Failed(failure) => failure,
            other => panic!("expected an error, got {other:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_transactions_their_beginning_and_their_end_are_left() {
        let told = ["schema=a", "transaction=T_______", "transaction=T_____S_"];
        let told = told
            .iter()
            .chain(&["transaction=________", "transaction=I___Ws__"]);
        let mut outcome = Outcome::Done(Done {
            changes: told.map(|change| (*change).to_owned()).collect(),
            ..Done::default()
        });
        outcome.forget_work_in_transaction();
        let left = ["schema=a", "transaction=T_______", "transaction=________"];
        assert_eq!(outcome.done().changes, left);
    }

    #[test]
    fn values_that_differ_are_written_differently() {
        let row = |value: Option<&[u8]>| vec![value.map(<[u8]>::to_vec)];
        let long = |end| [&[b'x'; 300][..], &[end]].concat();
        let (one, other) = (long(1), long(2));
        let many = |end: &[u8]| {
            let mut rows = vec![row(Some(b"x")); 30];
            rows.push(row(Some(end)));
            rows
        };
        let all = [
            vec![row(Some(b"\xff"))],
            vec![row(Some(b"\xfe"))],
            vec![row(None)],
            vec![row(Some(b"NULL"))],
            vec![row(Some(&one))],
            vec![row(Some(&other))],
            many(b"a"),
            many(b"b"),
        ];
        let written = all.map(|rows| {
            let rows = Rows {
                columns: Vec::new(),
                begin: None,
                rows,
                end: Done::default(),
            };
            format!("{rows:?}")
        });
        let different: std::collections::BTreeSet<_> = written.iter().collect();
        assert_eq!(different.len(), written.len(), "{written:#?}");
        assert_eq!(words(b"\xc3\xa9\xff"), "\u{e9}\\xff");
    }

    #[test]
    fn a_number_is_taken_out_in_whatever_character_set_it_came() {
        let values = [
            &b"42"[..],
            b"\x004\x002",
            b"4\x002\0",
            b"\0\0\x004\0\0\x002",
            b"421",
        ];
        let row = values.map(|value| Some(value.to_vec()));
        let mut outcome = Outcome::Rows(Rows {
            columns: Vec::new(),
            begin: None,
            rows: vec![row.to_vec()],
            end: Done::default(),
        });
        outcome.forget_number(42);
        let left: Vec<String> = outcome.rows().texts().concat();
        let number = "its number";
        assert_eq!(left, [number, number, number, number, "421"]);

        for words in [
            "thread 42!",
            "d\0 \x004\x002\0",
            "d\0\0\0 \0\0\x004\0\0\x002",
        ] {
            let mut outcome = Outcome::Failed(Failure {
                code: 1094,
                state: "HY000".into(),
                message: words.into(),
            });
            outcome.forget_number(42);
            assert!(outcome.failure().message.contains(number), "{words:?}");
        }
    }
}
