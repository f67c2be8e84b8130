//! Workloads: what a connection says, statement after statement.
//!
//! An event is one run of a workload's script. [`Event`] is the place in the script, in a few bytes
//! a connection; [`Workload::put_next`] appends the next statement's text, or says that the event
//! is over. Which table and which rows is drawn from the connection's own random numbers.
//!
//! Invariants: nothing is allocated but the growth of the buffer that is passed in; a workload
//! never looks at replies, so a script's length is known before it runs.
//!
//! A new workload is a file with its steps and a line in each match below; another distribution of
//! rows is a value of [`Distribution`] and an arm in [`Shape::row`].

mod point_select;
mod read_write;
mod select;
mod text;

use crate::random::Random;
use clap::ValueEnum;
pub(crate) use text::{put_number, put_row_values};

/// A script that each connection runs over and over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Workload {
    /// One row by its key: SELECT c ... WHERE id=R
    #[value(name = "oltp_point_select")]
    PointSelect,
    /// One row by its key, as sysbench 0.5 had it: SELECT pad ... WHERE id=R
    #[value(name = "select")]
    Select,
    /// A transaction of 20 statements: 14 reads, 4 writes, BEGIN and COMMIT
    #[value(name = "oltp_read_write")]
    ReadWrite,
}

/// How rows are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Distribution {
    /// Each row as often as another
    Uniform,
}

/// The tables and how they are used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) tables: u32,
    pub(crate) table_size: u32,
    pub(crate) range_size: u32,
    pub(crate) distribution: Distribution,
}

/// How far a connection is in its event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    /// Statements of the event so far.
    pub(crate) step: u16,
    /// Table and row that later statements of the event come back to.
    table: u32,
    row: u32,
}

impl Workload {
    /// The word on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Workload::PointSelect => "oltp_point_select",
            Workload::Select => "select",
            Workload::ReadWrite => "oltp_read_write",
        }
    }

    /// Appends the text of the event's next statement and moves on; false when the event is over.
    pub(crate) fn put_next(
        self,
        shape: &Shape,
        event: &mut Event,
        random: &mut Random,
        out: &mut Vec<u8>,
    ) -> bool {
        let more = match self {
            Workload::PointSelect => point_select::put(shape, event, random, out),
            Workload::Select => select::put(shape, event, random, out),
            Workload::ReadWrite => read_write::put(shape, event, random, out),
        };
        event.step += u16::from(more);
        more
    }

    /// True where the statement that was sent last stands in a transaction of the script.
    pub(crate) fn in_transaction(self, event: &Event) -> bool {
        match self {
            Workload::PointSelect | Workload::Select => false,
            Workload::ReadWrite => event.step > 0,
        }
    }
}

impl Shape {
    /// A table's number, from 1.
    fn table(&self, random: &mut Random) -> u32 {
        1 + random.below(self.tables)
    }

    /// A row's id, from 1.
    fn row(&self, random: &mut Random) -> u32 {
        match self.distribution {
            Distribution::Uniform => 1 + random.below(self.table_size),
        }
    }
}

#[cfg(test)]
mod tests;
