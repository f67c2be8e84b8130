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
pub use options::{OwnStatement, PsMode, ScriptArgs};
pub use script::{Script, Verb};
pub use text::{put_number, put_row_values};

/// Makes [`Workload`] of its rows: an event, the variant, and the word on the command line.
macro_rules! workloads {
    ($(#[doc = $event:literal] $variant:ident $name:literal;)*) => {
        /// A script that each connection runs over and over. Those that begin with `Old` are 0.5's.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
        pub enum Workload {
            $(#[doc = $event] #[value(name = $name)] $variant,)*
        }

        impl Workload {
            /// The word on the command line.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Workload::$variant => $name,)*
                }
            }
        }
    };
}

workloads! {
    /// One row by its key: SELECT c ... WHERE id=R.
    PointSelect "oltp_point_select";
    /// A transaction of 10 rows by key and 4 ranges.
    ReadOnly "oltp_read_only";
    /// A transaction of 20 statements: 14 reads, 4 writes, BEGIN and COMMIT.
    ReadWrite "oltp_read_write";
    /// A transaction of 4 writes.
    WriteOnly "oltp_write_only";
    /// One new row.
    Insert "oltp_insert";
    /// One row less.
    Delete "oltp_delete";
    /// One row changed in an indexed column.
    UpdateIndex "oltp_update_index";
    /// One row changed in a column without index.
    UpdateNonIndex "oltp_update_non_index";
    /// Rows at random places of an index, in one statement.
    RandomPoints "select_random_points";
    /// Short ranges at random places of an index, in one statement.
    RandomRanges "select_random_ranges";
    /// Rows into a table of the connection's own, half a mebibyte at a time.
    BulkInsert "bulk_insert";
    /// The statements of --statement, one after the other.
    Statements "statements";
    /// Transfers between accounts, with a proof that none was lost or done twice.
    Bank "bank";
    /// Lists that are appended to and read, with a proof that they grow as they should.
    Append "append";
    /// Registers that are written and read, with a proof that one order explains all answers.
    Register "register";
    /// Transactions of TPC-C, the order entry of a wholesale supplier.
    Tpcc "tpcc";
    /// One row by its key: SELECT pad ... WHERE id=R.
    OldSelect "select";
    /// The transaction of oltp_read_write, all of it in one table.
    OldOltp "oltp";
    /// One row by its key: SELECT c ... WHERE id=R.
    OldSimple "oltp_simple";
    /// One new row.
    OldInsert "insert";
    /// One row less.
    OldDelete "delete";
    /// One row changed in an indexed column.
    OldUpdateIndex "update_index";
    /// One row changed in a column without index.
    OldUpdateNonIndex "update_non_index";
}

impl Workload {
    /// True for those whose statements depend on answers, which are no scripts of sysbench.
    #[must_use]
    pub fn is_interactive(self) -> bool {
        use Workload::{Append, Bank, Register, Tpcc};
        matches!(self, Bank | Append | Register | Tpcc)
    }
}

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
