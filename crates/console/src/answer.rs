//! Answers as packets of the MySQL protocol: rows, OK and errors.
//!
//! Columns have no declared type in the engine, so a column is a number if all its values are.

use crate::engine::Rows;
use crate::{Row, Value};
use wire::errors::ErrorCode;
use wire::packet::{put_lenenc, put_lenenc_bytes, put_packet, put_short};
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

/// How the client wants its answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    /// It has agreed on CLIENT_DEPRECATE_EOF.
    pub(crate) deprecate_eof: bool,
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

/// An OK packet with this text, and the number of the one behind it.
pub(crate) fn put_ok(out: &mut Vec<u8>, seq: u8, info: &str) {
    let mut payload = Vec::new();
    ok_packet(info).put(&mut payload, OK, false);
    put_packet(out, seq, &payload);
}

/// An error.
pub(crate) fn put_error(out: &mut Vec<u8>, seq: u8, code: ErrorCode, words: &str) {
    put_err(out, seq, code, words);
}

/// The end of columns, or of rows, for clients with EOF packets.
fn put_eof(out: &mut Vec<u8>, seq: u8) {
    put_short(out, seq, |out| ok_packet("").put_eof(out));
}

/// A result set that begins with the packet of this number.
pub(crate) fn put_rows(out: &mut Vec<u8>, mut seq: u8, form: Form, answer: &Rows) {
    let mut next = || {
        let now = seq;
        seq = seq.wrapping_add(1);
        now
    };
    put_short(out, next(), |out| {
        put_lenenc(out, answer.columns.len() as u64)
    });
    for (at, name) in answer.columns.iter().enumerate() {
        let of = type_of(&answer.rows, at);
        put_short(out, next(), |out| put_column(out, name, of));
    }
    if !form.deprecate_eof {
        put_eof(out, next());
    }
    let mut payload = Vec::new();
    for row in &answer.rows {
        payload.clear();
        for value in row {
            match value {
                Value::Null => payload.push(NULL),
                Value::Integer(number) => put_text(&mut payload, &number.to_string()),
                Value::Real(number) => put_text(&mut payload, &number.to_string()),
                Value::Text(text) => put_text(&mut payload, text),
            }
        }
        // An answer has less bytes than a packet of several parts.
        put_packet(out, next(), &payload);
    }
    if form.deprecate_eof {
        payload.clear();
        ok_packet("").put(&mut payload, END, false);
        put_packet(out, next(), &payload);
    } else {
        put_eof(out, next());
    }
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put_lenenc_bytes(out, text.as_bytes());
}

fn type_of(rows: &[Row], at: usize) -> u8 {
    let mut of = None;
    for row in rows {
        match row.get(at) {
            Some(Value::Text(_)) => return VAR_STRING,
            Some(Value::Real(_)) => of = Some(DOUBLE),
            Some(Value::Integer(_)) => of = of.or(Some(LONGLONG)),
            Some(Value::Null) | None => {}
        }
    }
    of.unwrap_or(VAR_STRING)
}

fn put_column(out: &mut Vec<u8>, name: &str, of: u8) {
    let (collation, flags, decimals) = match of {
        DOUBLE => (BINARY_COLLATION, NUMBER_FLAGS, NOT_FIXED),
        LONGLONG => (BINARY_COLLATION, NUMBER_FLAGS, 0),
        _ => (TEXT_COLLATION, 0, NOT_FIXED),
    };
    put_text(out, "def");
    // Schema, table and the table's own name: a client that looks for keys finds none.
    for _ in 0..3 {
        put_text(out, "");
    }
    put_text(out, name);
    put_text(out, name);
    out.push(0x0C);
    out.extend_from_slice(&u16::from(collation).to_le_bytes());
    let length: u32 = if of == VAR_STRING { 1 << 24 } else { 22 };
    out.extend_from_slice(&length.to_le_bytes());
    out.push(of);
    out.extend_from_slice(&flags.to_le_bytes());
    out.extend_from_slice(&[decimals, 0, 0]);
}
