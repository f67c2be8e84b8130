//! Answers as packets of the MySQL protocol: rows, OK and errors.
//!
//! The problem: a list of 10,000 clients is 150,000 values, and whoever asks for it waits. The
//! mechanism: each row becomes a packet behind those before it as soon as it is known ([`Answer`]);
//! no value is kept besides. Columns have no declared type in the engine, so a column is a number
//! if all its values are. That is known behind the last row, and the definition stands in front of
//! the first: it has the same length whatever the type, which is put in its place at the end.
//!
//! Bounds: the bytes of an answer, and those of all answers together ([`Held`]).

use crate::shares::Held;
use crate::{ANSWERS_BYTES_MAX, RESULT_BYTES_MAX};
use rusqlite::types::ValueRef;
use std::fmt::Write as _;
use wire::errors::{self, ErrorCode};
use wire::packet::{
    HEADER_LEN, Header, PAYLOAD_MAX, put_lenenc, put_lenenc_bytes, put_packet, put_short,
};
use wire::reply::{END, OK, OkPacket, put_err};
use wire::status::AUTOCOMMIT;

/// `utf8mb4_general_ci`; what clients are told of texts.
pub(crate) const TEXT_COLLATION: u8 = 45;
/// `binary`; of numbers.
const BINARY_COLLATION: u8 = 63;
/// MYSQL_TYPE_DOUBLE, MYSQL_TYPE_LONGLONG, MYSQL_TYPE_VAR_STRING.
const DOUBLE: u8 = 5;
const LONGLONG: u8 = 8;
const VAR_STRING: u8 = 253;
/// NUM_FLAG and BINARY_FLAG of a column of numbers.
const NUMBER_FLAGS: u16 = 0x8080;
/// Digits behind the point of which nothing is said.
const NOT_FIXED: u8 = 31;
/// NULL in a row.
const NULL: u8 = 0xFB;
/// Bytes of a column's definition that its type decides, behind the names.
const TYPE_LEN: usize = 12;

/// Form of answers that the client wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    /// True if the client has agreed on CLIENT_DEPRECATE_EOF.
    pub(crate) deprecate_eof: bool,
}

/// Error of a statement: a server's number for it, and a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    pub(crate) code: ErrorCode,
    pub(crate) words: String,
}

impl Wrong {
    /// A bound on rows, bytes or memory is reached.
    pub(crate) fn too_much(words: String) -> Wrong {
        Wrong {
            code: errors::OUT_OF_RESOURCES,
            words,
        }
    }

    /// Error of a statement that cannot be answered in the time that there is.
    pub(crate) fn too_late(words: String) -> Wrong {
        Wrong {
            code: errors::QUERY_TIMEOUT,
            words,
        }
    }

    /// Error of a text that is none that can be run.
    pub(crate) fn syntax(words: impl Into<String>) -> Wrong {
        Wrong {
            code: errors::PARSE_ERROR,
            words: words.into(),
        }
    }
}

fn ok_packet(info: &str) -> OkPacket<'_> {
    OkPacket {
        affected_rows: 0,
        insert_id: 0,
        status: AUTOCOMMIT,
        warnings: 0,
        info: info.as_bytes(),
        changes: b"",
    }
}

/// Appends an OK packet with this text, and the number of the one behind it.
pub(crate) fn put_ok(out: &mut Vec<u8>, seq: u8, info: &str) {
    let mut payload = Vec::new();
    ok_packet(info).put(&mut payload, OK, false);
    put_packet(out, seq, &payload);
}

/// Appends an error.
pub(crate) fn put_error(out: &mut Vec<u8>, seq: u8, code: ErrorCode, words: &str) {
    put_err(out, seq, code, words);
}

/// Appends the end of columns, or of rows, for clients with EOF packets.
fn put_eof(out: &mut Vec<u8>, seq: u8) {
    put_short(out, seq, |out| ok_packet("").put_eof(out));
}

/// A column of an answer.
#[derive(Clone, Copy, Debug)]
struct Column {
    /// Offset of its type.
    at: usize,
    /// The type of the values so far; `None` while all were NULL.
    of: Option<u8>,
}

/// A result set, written row by row behind what is in `out`.
pub(crate) struct Answer<'o> {
    out: &'o mut Vec<u8>,
    held: &'o mut Held,
    form: Form,
    /// The number of the next packet.
    seq: u8,
    /// Offset at which it begins.
    start: usize,
    columns: Vec<Column>,
    /// A number as text.
    digits: String,
}

impl<'o> Answer<'o> {
    /// Answer that begins with the packet of this number.
    pub(crate) fn new(out: &'o mut Vec<u8>, seq: u8, form: Form, held: &'o mut Held) -> Answer<'o> {
        Answer {
            start: out.len(),
            out,
            held,
            form,
            seq,
            columns: Vec::new(),
            digits: String::new(),
        }
    }

    fn next(&mut self) -> u8 {
        let now = self.seq;
        self.seq = now.wrapping_add(1);
        now
    }

    /// Appends the columns, in front of the first row.
    pub(crate) fn columns<'n>(&mut self, names: impl ExactSizeIterator<Item = &'n str>) {
        let seq = self.next();
        put_short(self.out, seq, |out| put_lenenc(out, names.len() as u64));
        for name in names {
            let seq = self.next();
            put_short(self.out, seq, |out| {
                put_names(out, name);
                put_type(out, VAR_STRING);
            });
            let at = self.out.len() - TYPE_LEN;
            self.columns.push(Column { at, of: None });
        }
        if !self.form.deprecate_eof {
            let seq = self.next();
            put_eof(self.out, seq);
        }
    }

    /// A row, with a value for each column.
    ///
    /// # Errors
    /// The answer, or all answers together, would be too long.
    pub(crate) fn row<'v>(
        &mut self,
        values: impl Iterator<Item = ValueRef<'v>>,
    ) -> Result<(), Wrong> {
        let (from, capacity) = (self.out.len(), self.out.capacity());
        self.out.extend_from_slice(&[0; HEADER_LEN]);
        for (column, value) in self.columns.iter_mut().zip(values) {
            column.of = match value {
                ValueRef::Null => {
                    self.out.push(NULL);
                    continue;
                }
                // As SQLite has it.
                ValueRef::Real(number) if number.is_nan() => {
                    self.out.push(NULL);
                    continue;
                }
                ValueRef::Integer(number) => {
                    put_number(self.out, &mut self.digits, number);
                    column.of.or(Some(LONGLONG))
                }
                ValueRef::Real(number) => {
                    put_number(self.out, &mut self.digits, number);
                    column.of.filter(|of| *of == VAR_STRING).or(Some(DOUBLE))
                }
                ValueRef::Text(text) | ValueRef::Blob(text) => {
                    put_text(self.out, &String::from_utf8_lossy(text));
                    Some(VAR_STRING)
                }
            };
        }
        self.end_row(from);
        if !self.held.grow(self.out.capacity() - capacity) {
            return Err(Wrong::too_much(format!(
                "all answers of the console together may take {} MiB; try again when others have \
                 been taken",
                ANSWERS_BYTES_MAX >> 20
            )));
        }
        if self.out.len() - self.start > RESULT_BYTES_MAX {
            return Err(Wrong::too_much(format!(
                "the answer is longer than {} MiB; ask for less of it",
                RESULT_BYTES_MAX >> 20
            )));
        }
        Ok(())
    }

    /// Writes the header of the row that begins here; a long row is several packets.
    fn end_row(&mut self, from: usize) {
        let len = self.out.len() - from - HEADER_LEN;
        if len < PAYLOAD_MAX {
            let header = Header {
                len,
                seq: self.next(),
            };
            self.out[from..from + HEADER_LEN].copy_from_slice(&header.bytes());
        } else {
            let payload = self.out.split_off(from + HEADER_LEN);
            self.out.truncate(from);
            self.seq = put_packet(self.out, self.seq, &payload);
        }
    }

    /// Appends the end, behind the last row.
    pub(crate) fn end(mut self) {
        for column in &self.columns {
            let mut of = Vec::with_capacity(TYPE_LEN);
            put_type(&mut of, column.of.unwrap_or(VAR_STRING));
            self.out[column.at..column.at + TYPE_LEN].copy_from_slice(&of);
        }
        let seq = self.next();
        if self.form.deprecate_eof {
            put_short(self.out, seq, |out| ok_packet("").put(out, END, false));
        } else {
            put_eof(self.out, seq);
        }
    }
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put_lenenc_bytes(out, text.as_bytes());
}

fn put_number(out: &mut Vec<u8>, digits: &mut String, number: impl std::fmt::Display) {
    digits.clear();
    let _ = write!(digits, "{number}");
    put_text(out, digits);
}

/// Appends the part of a column's definition that its type does not decide.
fn put_names(out: &mut Vec<u8>, name: &str) {
    put_text(out, "def");
    // Schema, table and the table's own name: a client that looks for keys finds none.
    for _ in 0..3 {
        put_text(out, "");
    }
    put_text(out, name);
    put_text(out, name);
    out.push(0x0C);
}

/// Appends the rest of it, [`TYPE_LEN`] bytes.
fn put_type(out: &mut Vec<u8>, of: u8) {
    let (collation, flags, decimals) = match of {
        DOUBLE => (BINARY_COLLATION, NUMBER_FLAGS, NOT_FIXED),
        LONGLONG => (BINARY_COLLATION, NUMBER_FLAGS, 0),
        _ => (TEXT_COLLATION, 0, NOT_FIXED),
    };
    out.extend_from_slice(&u16::from(collation).to_le_bytes());
    let length: u32 = if of == VAR_STRING { 1 << 24 } else { 22 };
    out.extend_from_slice(&length.to_le_bytes());
    out.push(of);
    out.extend_from_slice(&flags.to_le_bytes());
    out.extend_from_slice(&[decimals, 0, 0]);
}
