//! Read-back of a session behind a statement: one question, whatever is asked.
//!
//! The problem: no tracker reports all that a statement may have changed, and each question to the
//! server is a round trip before its backend may serve somebody else. The mechanism: [`TABLE`] has
//! a row for each property that is read back: which statements may have changed it
//! ([`changed_by`]), the columns that tell it, and what a session makes of them ([`take`]).
//! [`question`] makes one SELECT of one row of all that are asked; [`Answer`] says which columns of
//! the row are whose.
//!
//! Some properties are more than a value of the session: the pool knows from elsewhere when one of
//! them is to be asked ([`by_owner`]), and takes the answer itself ([`TakenBy::Owner`]).
//!
//! Conditions (SHOW WARNINGS, GET DIAGNOSTICS) are no columns, and a SELECT clears them on MySQL:
//! they are asked before.
//!
//! Invariants: columns stand in the order of the table; user variables are the last of it, so that
//! an answer about them can be left out when it has become outdated on its way.

use crate::found::Found;
use crate::known_digests::Pipelinable;
use crate::reply_summary::ReplySummary;
use crate::roles::argument_of;
use crate::state::Session;
use crate::statement::{Statement, Untracked};
use crate::text::Text;
use crate::user_variables::{Column, collected_row, put_columns};
use serde::{Deserialize, Serialize};
use sql::classify::{PinCause, PinCauses};
use sql::lex::Server;
use std::ops::Range;

/// Properties of a session that are read back, as a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Properties(u16);

sql::set_of_bits!(Properties as u16);

impl Properties {
    /// FOUND_ROWS().
    pub const FOUND_ROWS: Self = Self(1);
    /// LAST_INSERT_ID().
    pub const INSERT_ID: Self = Self(1 << 1);
    /// The collation, and that of results, which no variable shows: it is the column's own.
    pub const COLLATION: Self = Self(1 << 3);
    /// The role.
    pub const ROLE: Self = Self(1 << 4);
    /// The clock, if it stands still.
    pub const CLOCK: Self = Self(1 << 5);
    /// Named locks and variables in use that are still there.
    pub const HOLDINGS: Self = Self(1 << 6);
    /// User variables.
    pub const USER_VARIABLES: Self = Self(1 << 7);
    /// Moment at which the next transaction was committed on the server that it comes from, as a
    /// client of MySQL has said: that transaction uses it up.
    pub const COMMIT_TIMESTAMP: Self = Self(1 << 8);
    /// The version of the server on which that transaction was first committed.
    pub const ORIGINAL_VERSION: Self = Self(1 << 9);
    /// The version of the server from which it comes last.
    pub const IMMEDIATE_VERSION: Self = Self(1 << 10);

    /// Number of properties.
    #[must_use]
    pub const fn count(self) -> u32 {
        self.0.count_ones()
    }
}

/// The columns that tell a property.
#[derive(Clone, Copy, Debug)]
enum Columns {
    /// Always these.
    Are(&'static [&'static str]),
    /// One for each of what its client holds ([`Question::acquired resources`]).
    Acquired,
    /// Three for each variable ([`Question::user_variables`]).
    UserVariables,
}

/// A statement that has ended, and the session that it has left, as far as that is known.
#[derive(Clone, Copy, Debug)]
pub struct Ended<'a> {
    /// Facts of the statement from its text.
    pub statement: &'a Statement,
    /// Summary of its reply.
    pub summary: &'a ReplySummary,
    /// Rows of its last result.
    pub rows: u64,
    /// Session with the changes that were reported.
    pub session: &'a Session,
    /// True if nothing of others stands behind it on its backend.
    pub alone: bool,
    /// True if its server is MySQL.
    pub mysql: bool,
}

/// Receiver of the answer about a property.
#[derive(Clone, Copy, Debug)]
enum TakenBy {
    /// Whoever has asked, and has more than the session to change.
    Owner,
    /// The session: it has this value, the text of its one column, from now on, or cannot carry it.
    Session(fn(&mut Session, &[u8], Server) -> Result<(), PinCause>),
}

/// All that is to be known of a property.
#[derive(Clone, Copy, Debug)]
struct Row {
    property: Properties,
    /// True if a statement may have changed it, and nobody has reported that.
    changed_by: fn(&Ended<'_>) -> bool,
    /// Columns that tell it.
    columns: Columns,
    taken_by: TakenBy,
}

/// Never: the owner knows when it is to be asked.
const fn by_owner(_: &Ended<'_>) -> bool {
    false
}

/// Every property that is read back, in the order of the columns.
const TABLE: [Row; 10] = [
    Row {
        property: Properties::FOUND_ROWS,
        changed_by: |ended| {
            ended.statement.found == Found::Calculated && ended.summary.error.is_none()
        },
        columns: Columns::Are(&["FOUND_ROWS()"]),
        taken_by: TakenBy::Owner,
    },
    Row {
        property: Properties::INSERT_ID,
        changed_by: |ended| ended.summary.may_have_set_insert_id(ended.statement),
        columns: Columns::Are(&["LAST_INSERT_ID()"]),
        taken_by: TakenBy::Owner,
    },
    Row {
        property: Properties::COLLATION,
        changed_by: |ended| ended.statement.untracked.contains(Untracked::CHARSET),
        columns: Columns::Are(&["@@collation_connection"]),
        taken_by: TakenBy::Owner,
    },
    Row {
        property: Properties::ROLE,
        changed_by: |ended| ended.statement.untracked.contains(Untracked::ROLE),
        columns: Columns::Are(&["CURRENT_ROLE()"]),
        taken_by: TakenBy::Session(take_role),
    },
    Row {
        property: Properties::CLOCK,
        changed_by: by_owner,
        columns: Columns::Are(&["@@timestamp"]),
        taken_by: TakenBy::Owner,
    },
    Row {
        property: Properties::COMMIT_TIMESTAMP,
        changed_by: |ended| may_use_up(ended, COMMIT_TIMESTAMP),
        columns: Columns::Are(&["@@original_commit_timestamp"]),
        taken_by: TakenBy::Session(|session, now, _| take_used_up(session, COMMIT_TIMESTAMP, now)),
    },
    Row {
        property: Properties::ORIGINAL_VERSION,
        changed_by: |ended| may_use_up(ended, ORIGINAL_VERSION),
        columns: Columns::Are(&["@@original_server_version"]),
        taken_by: TakenBy::Session(|session, now, _| take_used_up(session, ORIGINAL_VERSION, now)),
    },
    Row {
        property: Properties::IMMEDIATE_VERSION,
        changed_by: |ended| may_use_up(ended, IMMEDIATE_VERSION),
        columns: Columns::Are(&["@@immediate_server_version"]),
        taken_by: TakenBy::Session(|session, now, _| take_used_up(session, IMMEDIATE_VERSION, now)),
    },
    Row {
        property: Properties::HOLDINGS,
        changed_by: by_owner,
        columns: Columns::Acquired,
        taken_by: TakenBy::Owner,
    },
    Row {
        property: Properties::USER_VARIABLES,
        changed_by: by_owner,
        columns: Columns::UserVariables,
        taken_by: TakenBy::Owner,
    },
];

/// Properties that a statement may have changed unreported, as far as it and its reply tell.
#[must_use]
pub fn changed_by(ended: &Ended<'_>) -> Properties {
    TABLE.iter().fold(Properties::NONE, |all, row| {
        all.union(row.property.when((row.changed_by)(ended)))
    })
}

/// True if a session takes the answer about any of these itself.
#[must_use]
pub fn has_values(asked: Properties) -> bool {
    let value = |row: &Row| matches!(row.taken_by, TakenBy::Session(_));
    (TABLE.iter()).any(|row| asked.intersects(row.property) && value(row))
}

/// Takes into a session what an answer tells of its values; gives the causes of what it cannot
/// carry.
#[must_use]
pub fn take(
    asked: Properties,
    session: &mut Session,
    answer: &Answer,
    server: Server,
) -> PinCauses {
    let mut causes = PinCauses::NONE;
    for row in TABLE.iter().filter(|row| asked.intersects(row.property)) {
        if let TakenBy::Session(take) = row.taken_by
            && let Err(cause) = take(session, answer.text(row.property), server)
        {
            causes.insert(cause);
        }
    }
    causes
}

/// A variable that a transaction uses up, and the value at which it rests then.
type UsedUp = (&'static [u8], &'static [u8]);

const COMMIT_TIMESTAMP: UsedUp = (b"original_commit_timestamp", b"36028797018963968");
const ORIGINAL_VERSION: UsedUp = (b"original_server_version", b"999999");
const IMMEDIATE_VERSION: UsedUp = (b"immediate_server_version", b"999999");

/// True if a statement may have used up a variable that its client has set. A plain read, which may
/// be pipelined with others, uses up none.
fn may_use_up(ended: &Ended<'_>, (name, _): UsedUp) -> bool {
    ended.statement.pipelinable == Pipelinable::Never && ended.session.variable(name).is_some()
}

/// Takes the rest that a statement has left of a variable in use.
fn take_used_up(session: &mut Session, used: UsedUp, now: &[u8]) -> Result<(), PinCause> {
    let (name, rest) = used;
    match now == rest {
        true => session.unset(name),
        false => session.put(name, now),
    }
    Ok(())
}

/// The role that a statement has set.
fn take_role(session: &mut Session, now: &[u8], server: Server) -> Result<(), PinCause> {
    session.role = Some(argument_of(now, server).ok_or(PinCause::Role)?);
    Ok(())
}

/// Question to a backend.
#[derive(Clone, Copy, Debug, Default)]
pub struct Question<'a> {
    /// The properties.
    pub properties: Properties,
    /// Columns that tell what the client holds.
    pub acquired: &'a [String],
    /// Names of user variables.
    pub user_variables: &'a [Text],
    /// Bytes of the longest value that is of use.
    pub value_max: usize,
}

impl Question<'_> {
    /// Note of the question until the answer comes.
    #[must_use]
    pub fn asked(&self) -> Asked {
        Asked {
            properties: self.properties,
            acquired: u8::try_from(self.acquired.len()).unwrap_or(u8::MAX),
        }
    }
}

/// Note of a question that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The properties. Those of the end may be taken out on the way: their answer is outdated.
    pub properties: Properties,
    /// Columns for what the client holds.
    acquired: u8,
}

impl Asked {
    /// The place of a property's columns, in an answer of `total`.
    fn place(self, property: Properties, total: usize) -> Range<usize> {
        let mut at = 0;
        for row in TABLE {
            let width = match row.columns {
                _ if !self.properties.intersects(row.property) => 0,
                Columns::Are(columns) => columns.len(),
                Columns::Acquired => usize::from(self.acquired),
                Columns::UserVariables => total.saturating_sub(at),
            };
            if row.property == property {
                return at..at + width;
            }
            at += width;
        }
        at..at
    }
}

/// The question as a text.
#[must_use]
pub fn question(question: &Question<'_>) -> Vec<u8> {
    let mut sql = b"SELECT ".to_vec();
    let mut put = |column: &[u8]| {
        if sql.len() > b"SELECT ".len() {
            sql.push(b',');
        }
        sql.extend_from_slice(column);
    };
    for row in TABLE {
        match row.columns {
            _ if !question.properties.intersects(row.property) => {}
            Columns::Are(columns) => columns.iter().for_each(|column| put(column.as_bytes())),
            Columns::Acquired => {
                let acquired = question.acquired.iter();
                acquired.for_each(|column| put(column.as_bytes()));
            }
            Columns::UserVariables => {
                put_columns(question.user_variables, question.value_max, &mut put);
            }
        }
    }
    // A session with sql_select_limit = 0 would answer nothing.
    sql.extend_from_slice(b" LIMIT 1");
    sql
}

/// The row that answers a question.
#[derive(Debug)]
pub struct Answer {
    asked: Asked,
    columns: Vec<Column>,
    values: Vec<Option<Text>>,
}

impl Answer {
    /// Reads it; `None` where it is none to this question. `extended` are the capabilities that
    /// decide the form of columns.
    #[must_use]
    pub fn read(asked: Asked, collected: &[u8], extended: u32) -> Option<Answer> {
        let (columns, values) = collected_row(collected, extended)?;
        let last = TABLE.last().map_or(Properties::NONE, |row| row.property);
        let needed = asked.place(last, 0).start;
        let answer = Answer {
            asked,
            columns,
            values,
        };
        (answer.values.len() == answer.columns.len() && answer.values.len() >= needed)
            .then_some(answer)
    }

    /// Its columns for one property, with their values.
    pub fn of(&self, property: Properties) -> impl Iterator<Item = (&Column, Option<&Text>)> {
        let place = self.asked.place(property, self.values.len());
        let values = self.values[place.clone()].iter().map(Option::as_ref);
        self.columns[place].iter().zip(values)
    }

    /// The only column of a property, as a text; NULL is an empty one.
    #[must_use]
    pub fn text(&self, property: Properties) -> &[u8] {
        let first = self.of(property).next();
        first.and_then(|(_, value)| value).map_or(b"", |text| text)
    }

    /// The only column of a property, as a number.
    #[must_use]
    pub fn number(&self, property: Properties) -> Option<u64> {
        std::str::from_utf8(self.text(property)).ok()?.parse().ok()
    }
}

#[cfg(test)]
mod tests;
