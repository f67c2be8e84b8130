//! Workloads: what a connection says, statement after statement.
//!
//! An event is one run of a workload's script. A [`Script`] is the workload with its options put
//! in, as a list of steps that all connections share; what a connection has of its own is
//! [`Event`], its place in the script, and its random numbers. Which table and which rows a
//! statement is about is drawn when it is written.
//!
//! Invariants: nothing is allocated but the growth of the buffer that is passed in; a workload
//! never looks at replies, so a script's length is known before it runs.
//!
//! A new workload is a name in [`Workload`] and its steps in `catalogue.rs`.

pub mod catalogue;
mod options;
mod script;
mod text;

use crate::random::Random;
use clap::ValueEnum;
use clap::builder::PossibleValue;
pub use options::ScriptArgs;
pub use script::{Script, Verb};
pub use text::{put_number, put_row_values};

/// A script that each connection runs over and over. Those that begin with `Old` are 0.5's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// One row by its key: SELECT c ... WHERE id=R.
    PointSelect,
    /// A transaction of 10 rows by key and 4 ranges.
    ReadOnly,
    /// A transaction of 20 statements: 14 reads, 4 writes, BEGIN and COMMIT.
    ReadWrite,
    /// A transaction of 4 writes.
    WriteOnly,
    /// One new row.
    Insert,
    /// One row less.
    Delete,
    /// One row changed in an indexed column.
    UpdateIndex,
    /// One row changed in a column without index.
    UpdateNonIndex,
    /// Rows at random places of an index, in one statement.
    RandomPoints,
    /// Short ranges at random places of an index, in one statement.
    RandomRanges,
    /// Rows into a table of the connection's own, half a mebibyte at a time.
    BulkInsert,
    /// The user's own statements.
    Statements,
    /// One row by its key: SELECT pad ... WHERE id=R.
    OldSelect,
    /// The transaction of oltp_read_write, all of it in one table.
    OldOltp,
    /// One row by its key: SELECT c ... WHERE id=R.
    OldSimple,
    /// One new row.
    OldInsert,
    /// One row less.
    OldDelete,
    /// One row changed in an indexed column.
    OldUpdateIndex,
    /// One row changed in a column without index.
    OldUpdateNonIndex,
}

/// All of them, with the word on the command line and what an event is.
const WORKLOADS: [(Workload, &str, &str); 19] = [
    (
        Workload::PointSelect,
        "oltp_point_select",
        "One row by its key: SELECT c ... WHERE id=R",
    ),
    (
        Workload::ReadOnly,
        "oltp_read_only",
        "A transaction of 10 rows by key and 4 ranges",
    ),
    (
        Workload::ReadWrite,
        "oltp_read_write",
        "A transaction of 20 statements: 14 reads, 4 writes, BEGIN and COMMIT",
    ),
    (
        Workload::WriteOnly,
        "oltp_write_only",
        "A transaction of 4 writes",
    ),
    (Workload::Insert, "oltp_insert", "One new row"),
    (Workload::Delete, "oltp_delete", "One row less"),
    (
        Workload::UpdateIndex,
        "oltp_update_index",
        "One row changed in an indexed column",
    ),
    (
        Workload::UpdateNonIndex,
        "oltp_update_non_index",
        "One row changed in a column without index",
    ),
    (
        Workload::RandomPoints,
        "select_random_points",
        "Rows at random places of an index, in one statement",
    ),
    (
        Workload::RandomRanges,
        "select_random_ranges",
        "Short ranges at random places of an index, in one statement",
    ),
    (
        Workload::BulkInsert,
        "bulk_insert",
        "Rows into a table of the connection's own, half a mebibyte at a time",
    ),
    (
        Workload::Statements,
        "statements",
        "What --statement says, one after the other",
    ),
    (
        Workload::OldSelect,
        "select",
        "One row by its key: SELECT pad ... WHERE id=R",
    ),
    (
        Workload::OldOltp,
        "oltp",
        "The transaction of oltp_read_write, all of it in one table",
    ),
    (
        Workload::OldSimple,
        "oltp_simple",
        "One row by its key: SELECT c ... WHERE id=R",
    ),
    (Workload::OldInsert, "insert", "One new row"),
    (Workload::OldDelete, "delete", "One row less"),
    (
        Workload::OldUpdateIndex,
        "update_index",
        "One row changed in an indexed column",
    ),
    (
        Workload::OldUpdateNonIndex,
        "update_non_index",
        "One row changed in a column without index",
    ),
];

/// Progress of a connection in its event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// Statements of the event so far, the one that was written last included.
    pub step: u16,
    /// The table of the present statement.
    table: u32,
    /// The row that later statements of the event come back to; for rows in bulk, how many.
    row: u32,
}

impl Event {
    /// Goes back to the beginning; rows in bulk stay as many.
    pub fn restart(&mut self) {
        self.step = 0;
    }
}

/// Random numbers of a connection, and its number.
pub struct Draw<'a> {
    /// Random numbers of the connection.
    pub random: &'a mut Random,
    /// Number of the connection, from 0.
    pub index: u32,
    /// Rows that it has made so far, besides those that it only put back.
    pub made: &'a mut u32,
}

impl Workload {
    fn entry(self) -> &'static (Workload, &'static str, &'static str) {
        let found = WORKLOADS.iter().find(|(workload, ..)| *workload == self);
        found.unwrap_or(&WORKLOADS[0])
    }

    /// The word on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.entry().1
    }
}

impl ValueEnum for Workload {
    fn value_variants<'a>() -> &'a [Workload] {
        const VARIANTS: [Workload; WORKLOADS.len()] = {
            let mut variants = [Workload::PointSelect; WORKLOADS.len()];
            let mut i = 0;
            while i < variants.len() {
                variants[i] = WORKLOADS[i].0;
                i += 1;
            }
            variants
        };
        &VARIANTS
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (_, name, help) = *self.entry();
        Some(PossibleValue::new(name).help(help))
    }
}
