//! A reply that is relayed: what a server sends is checked as what a client sends.
//!
//! The problem: a server that is not what it should be, or somebody in its place, must not reach
//! past the pool into a client: ask for its files, or have it read rows that are none. The
//! mechanism:
//! [`CheckedReply`] follows a reply as [`Reply`] does, and besides checks packet numbers, requests
//! for local files, and the values of rows ([`crate::rows`]) while they pass by in pieces.
//!
//! Invariants: after a [`Breach`] nothing more is passed on, and nothing of the packet but of a row
//! of more than [`ROW_WHOLE_MAX`] bytes that had not come whole.

use crate::command::{Command, ReplyShape};
use crate::packet::{Header, Malformed, PAYLOAD_MAX};
use crate::reply::{Reply, Step};
use crate::rows::{Columns, Row, binary_head_len, check_binary, check_text};
use std::fmt;

/// Rows up to this length are checked before any byte of them is passed on.
pub const ROW_WHOLE_MAX: usize = 1024;

/// A breach of the protocol by a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breach {
    /// Packet that does not fit its place.
    Malformed(Malformed),
    /// Packet whose number does not follow that of the packet before.
    OutOfOrder {
        /// The number that had to come.
        expected: u8,
        /// The number that came.
        got: u8,
    },
    /// A request for a local file answers a statement that is no LOAD DATA LOCAL, or is for a
    /// client that has not agreed to send files.
    LocalFile,
}

impl Breach {
    /// A reply whose first packet has the number of a command's.
    pub const NUMBERED_0: Breach = Breach::OutOfOrder {
        expected: 1,
        got: 0,
    };
}

impl From<Malformed> for Breach {
    fn from(malformed: Malformed) -> Breach {
        Breach::Malformed(malformed)
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Breach::Malformed(malformed) => malformed.fmt(f),
            Breach::OutOfOrder { expected, got } => write!(
                f,
                "packets out of order: expected number {expected}, got {got}"
            ),
            Breach::LocalFile => f.write_str(
                "it asked for a file of the client's, in answer to a statement that is no LOAD \
                 DATA LOCAL or of a client that has not agreed to send files",
            ),
        }
    }
}

impl std::error::Error for Breach {}

/// Form of a reply's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RowForm {
    Text,
    Binary,
    /// Rows whose columns are not known (COM_STMT_FETCH, COM_FIELD_LIST), and those of a kept
    /// reply.
    Unchecked,
}

/// Number of the next packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Numbers {
    /// Not checked: the reply was retained, and is relayed again.
    Unchecked,
    /// Any number: the packets in front of it have not been counted.
    Any,
    /// Next after the last packet of the reply in front, which is to the same command.
    Behind,
    /// Next after the packet before.
    Next(u8),
}

/// Follows one command's reply to its last packet, and checks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckedReply {
    reply: Reply,
    form: RowForm,
    /// True if the command may be answered with a request for a local file.
    files: bool,
    numbers: Numbers,
    /// Columns of the present result.
    columns: Columns,
    /// The row that passes by in pieces.
    row: Option<Row>,
    /// True if the present payload goes on in another packet.
    continued: bool,
}

impl CheckedReply {
    /// The reply to come for a command of this shape, which was sent in packets of which nobody has
    /// kept count.
    #[must_use]
    pub fn new(shape: ReplyShape) -> CheckedReply {
        let form = match shape {
            ReplyShape::Results | ReplyShape::LocalFile | ReplyShape::Call => RowForm::Text,
            ReplyShape::Cursor => RowForm::Binary,
            _ => RowForm::Unchecked,
        };
        CheckedReply {
            reply: Reply::new(shape),
            form,
            files: shape == ReplyShape::LocalFile,
            numbers: Numbers::Any,
            columns: Columns::new(0),
            row: None,
            continued: false,
        }
    }

    /// Checks for this command: executions are answered with binary rows.
    #[must_use]
    pub fn to_command(self, command: Command) -> CheckedReply {
        let executes = matches!(command, Command::StmtExecute | Command::StmtBulkExecute);
        let form = match self.form {
            RowForm::Text if executes => RowForm::Binary,
            form => form,
        };
        CheckedReply { form, ..self }
    }

    /// Checks the rows of COM_STMT_FETCH against the columns with which the cursor was opened.
    #[must_use]
    pub fn of_cursor(self, columns: &Columns) -> CheckedReply {
        CheckedReply {
            form: RowForm::Binary,
            columns: *columns,
            ..self
        }
    }

    /// Sets which end of definitions and of rows the server sends: an EOF packet where it has not
    /// agreed on CLIENT_DEPRECATE_EOF (`eofs`), else none behind definitions, and an OK packet
    /// behind rows.
    #[must_use]
    pub fn with_eofs(self, eofs: bool) -> CheckedReply {
        let reply = self.reply.with_eofs(eofs);
        CheckedReply { reply, ..self }
    }

    /// Sets that the client has not agreed to send files (CLIENT_LOCAL_FILES).
    #[must_use]
    pub fn without_files(self) -> CheckedReply {
        CheckedReply {
            files: false,
            ..self
        }
    }

    /// Expects the first packet's number behind a command of one packet, numbered 0.
    #[must_use]
    pub fn numbered(self) -> CheckedReply {
        let numbers = Numbers::Next(1);
        CheckedReply { numbers, ..self }
    }

    /// Follows a reply without checks: they were made when it came.
    #[must_use]
    pub fn unchecked(self) -> CheckedReply {
        CheckedReply {
            form: RowForm::Unchecked,
            numbers: Numbers::Unchecked,
            ..self
        }
    }

    /// Expects numbers that go on from the statement in front, for all but the first of a command.
    #[must_use]
    pub fn behind(self) -> CheckedReply {
        let numbers = Numbers::Behind;
        CheckedReply { numbers, ..self }
    }

    /// Notes the end of the reply in front of it.
    pub fn note_before(&mut self, before: &CheckedReply) {
        if self.numbers == Numbers::Behind {
            self.numbers = before.numbers;
        }
    }

    /// Columns of the present or last result.
    #[must_use]
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// The reply as far as it has come.
    #[must_use]
    pub fn reply(&self) -> &Reply {
        &self.reply
    }

    /// Takes the next packet; `there` begins with those bytes of its payload that have come.
    /// `None`: more of them must be there, and nothing has happened. [`Step::Cut`]: all of them
    /// must.
    ///
    /// # Errors
    /// [`Breach`]
    pub fn advance<'a>(
        &mut self,
        header: Header,
        there: &'a [u8],
    ) -> Result<Option<Step<'a>>, Breach> {
        let Header { len, seq } = header;
        if let Numbers::Next(expected) = self.numbers
            && expected != seq
        {
            return Err(Breach::OutOfOrder { expected, got: seq });
        }
        let payload = &there[..len.min(there.len())];
        if self.reply.next_is_row(len, payload) && !self.begin_row(len, payload)? {
            return Ok(None);
        }
        let step = self.reply.advance(len, there)?;
        match step {
            Step::Cut => return Ok(Some(step)),
            Step::Columns(count) => {
                self.columns = Columns::new(u16::try_from(count).unwrap_or(u16::MAX));
            }
            Step::Definition { .. } => self.columns.define(payload),
            Step::File if !self.files => return Err(Breach::LocalFile),
            _ => {}
        }
        self.continued = len == PAYLOAD_MAX;
        self.numbers = match step {
            _ if self.numbers == Numbers::Unchecked => Numbers::Unchecked,
            // The packets of the file have the numbers in between.
            Step::File => Numbers::Any,
            _ => Numbers::Next(seq.wrapping_add(1)),
        };
        Ok(Some(step))
    }

    /// Begins a row, and checks it as far as that goes now. `false`: more of it must be there.
    fn begin_row(&mut self, len: usize, there: &[u8]) -> Result<bool, Malformed> {
        let is_whole = there.len() == len;
        let columns = &self.columns;
        let goes_on = !is_whole || len == PAYLOAD_MAX;
        match self.form {
            RowForm::Unchecked => {}
            _ if !is_whole && len <= ROW_WHOLE_MAX => return Ok(false),
            RowForm::Text if !goes_on => check_text(columns.count, there)?,
            RowForm::Text => self.row = Some(Row::new(columns.count)),
            RowForm::Binary if !goes_on => check_binary(columns, there)?,
            RowForm::Binary if !is_whole && there.len() < binary_head_len(columns.count) => {
                return Ok(false);
            }
            RowForm::Binary => self.row = Some(Row::binary(columns, there, len)?),
        }
        Ok(true)
    }

    /// Takes bytes of a payload that passes by, before they are passed on; `ends` with the last
    /// ones of its packet.
    ///
    /// # Errors
    /// [`Malformed`] when a row has not as many values as its result has columns.
    pub fn pass(&mut self, piece: &[u8], ends: bool) -> Result<(), Malformed> {
        let Some(row) = &mut self.row else {
            return Ok(());
        };
        row.take(&self.columns, piece)?;
        match ends && !self.continued {
            true => self.row.take().unwrap_or_default().end(),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
