//! The truth about a server: what its session trackers report, and what they do not.
//!
//! The problem: the pool shares backends because the server tells it of every change of a session;
//! where a server keeps quiet, the pool has to know by itself. The mechanism: for every kind of
//! state ([`states`], [`variables`]) and every way to change it ([`Way`]) a connection of its own
//! with all trackers on makes the change, reads the state before and after, and writes down which
//! reports came ([`cell`]). Statements that the pool answers by itself are in it with the server's
//! answers ([`answered`]). The table is committed (`tests/pages/trackers.md`, written by [`page`]),
//! and [`cover`] holds the classification of texts against it: what a server does not report must
//! pin, or be read back.
//!
//! Invariants: a change counts only when the state was read to be another one; the report counts
//! only when it is of this state. A cell is the same on each run on the same server.

mod answered;
mod cell;
pub mod conditions;
pub mod cover;
pub mod page;
mod states;
mod variables;

pub use answered::Answered;

use crate::client::Client;
use crate::real::{Flavour, Real};

/// Way by which a session is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// COM_QUERY.
    Text,
    /// COM_QUERY that names a variable `@@name`; for variables only.
    At,
    /// COM_STMT_PREPARE and COM_STMT_EXECUTE.
    Execute,
    /// Procedure: `CALL p()`.
    Call,
    /// Function: `SELECT f()`.
    Function,
    /// Trigger: `INSERT INTO t ...`.
    Trigger,
    /// Trigger that fails behind the change, so that the INSERT is answered by ERR.
    Failing,
}

impl Way {
    /// All, in the order of the table's columns.
    pub const ALL: [Way; 7] = [
        Way::Text,
        Way::At,
        Way::Execute,
        Way::Call,
        Way::Function,
        Way::Trigger,
        Way::Failing,
    ];

    /// Its column's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Way::Text => "text",
            Way::At => "`@@name`",
            Way::Execute => "execute",
            Way::Call => "procedure",
            Way::Function => "function",
            Way::Trigger => "trigger",
            Way::Failing => "failing trigger",
        }
    }
}

/// One kind of state: how it is changed, and how it is read.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    pub name: String,
    /// Said before, on the same connection.
    pub before: Vec<String>,
    /// Makes the change.
    pub change: String,
    /// The change by `@@name`.
    pub at: Option<String>,
    /// Reads the state: the last reply, or the first error, is what it is.
    pub proof: Vec<String>,
    /// Proof after the change; `None`: anything else than before.
    pub becomes: Option<String>,
    /// Names under which the variable tracker reports it.
    pub variables: Vec<String>,
    /// Part of an OK packet that reports it.
    pub told: Told,
}

/// Field of an OK packet that reports a state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Told {
    #[default]
    Nothing,
    InsertId,
    Affected,
    Warnings,
}

/// One row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The state, or the variable's name.
    pub name: String,
    /// The statement that changes it; empty for variables.
    pub change: String,
    /// Cells in the order of [`Way::ALL`].
    pub cells: [String; 7],
}

/// Table of one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The server and its version.
    pub server: String,
    /// States that have names of their own.
    pub states: Vec<Row>,
    /// Session variables.
    pub variables: Vec<Row>,
    /// Statements that change nothing.
    pub answered: Vec<Answered>,
    /// Session variables that no tried value changes, with the server's error.
    pub unchanged: Vec<String>,
    /// Session variables that `SET name = DEFAULT` does not bring back to what they began with.
    pub not_by_default: Vec<String>,
}

/// The name and version of a server, as the table has it: without what a distribution adds.
#[must_use]
pub fn server_of(real: &Real) -> String {
    let version = real.admin().value("SELECT VERSION()");
    let numbers = version.split(['-', ' ']).next().unwrap_or_default();
    match real.flavour() {
        Flavour::MariaDb => format!("MariaDB {numbers}"),
        Flavour::MySql => format!("MySQL {numbers}"),
    }
}

/// Examines a server; it takes some thousand statements.
///
/// # Panics
/// When the ground cannot be laid.
#[must_use]
pub fn examine(real: &Real) -> Table {
    let mut admin = real.admin();
    states::lay_ground(&mut admin, real.flavour());
    // It leaves a row uncommitted: who reads it, reads uncommitted.
    let mut writer: Client = real.admin();
    writer.must("BEGIN");
    writer.must("INSERT INTO truth.dirty VALUES (1)");
    let row = |admin: &mut Client, state: &State, change: &str| Row {
        name: state.name.clone(),
        change: change.into(),
        cells: cell::cells(real, admin, state),
    };
    let states = states::all(real.flavour());
    let states = states.iter();
    let states = states
        .map(|state| row(&mut admin, state, &state.change))
        .collect();
    let (found, unchanged) = variables::all(real);
    let found = found.iter();
    let variables = found.map(|state| row(&mut admin, state, "")).collect();
    Table {
        server: server_of(real),
        states,
        variables,
        answered: answered::all(real),
        unchanged,
        not_by_default: variables::not_by_default(real),
    }
}
