//! A fake server's packets: OK, ERR, result sets, and the trackers' blocks in them.
//!
//! The problem: the pool must see what a server sends, byte for byte in form, without a server. The
//! mechanism: an [`Answer`] says what happened, [`Answer::put`] writes it as a server would, to a
//! connection with CLIENT_SESSION_TRACK, with or without CLIENT_DEPRECATE_EOF. Invariant: packet
//! numbers leave none out.

use wire::errors::ErrorCode;
use wire::packet::{put_lenenc, put_lenenc_bytes, put_packet, put_short};
use wire::reply::{END, OK, OkPacket, put_err};
use wire::status;

/// Form of an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    /// Rows are binary, in answer to an execution.
    pub(crate) binary: bool,
    /// The collation that columns are described in.
    pub(crate) collation: u8,
    /// EOF packets stand behind definitions, and end rows.
    pub(crate) eofs: bool,
}

/// Answer to a command.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Ok {
        affected: u64,
        insert_id: u64,
        changes: Vec<u8>,
        /// 0xFE in front instead of 0x00.
        as_end: bool,
    },
    Rows {
        rows: Vec<Vec<Option<String>>>,
        warnings: u16,
        changes: Vec<u8>,
    },
    /// A prepared statement with one parameter.
    Prepared {
        id: u32,
        columns: u16,
    },
    Err(ErrorCode, String),
}

impl Answer {
    pub(crate) fn changed(changes: Vec<u8>) -> Answer {
        Answer::Ok {
            affected: 0,
            insert_id: 0,
            changes,
            as_end: false,
        }
    }

    pub(crate) fn row(values: Vec<Option<String>>) -> Answer {
        Answer::rows(vec![values])
    }

    pub(crate) fn rows(rows: Vec<Vec<Option<String>>>) -> Answer {
        Answer::Rows {
            rows,
            warnings: 0,
            changes: Vec::new(),
        }
    }

    /// Appends the packets of this answer, numbered from `first`, with these status flags.
    pub(crate) fn put(&self, out: &mut Vec<u8>, first: u8, flags: u16, form: Form) {
        match self {
            Answer::Ok {
                affected,
                insert_id,
                changes,
                as_end,
            } => {
                let ok = OkPacket {
                    affected_rows: *affected,
                    insert_id: *insert_id,
                    ..plain_ok(flags, 0, changes)
                };
                put_short(out, first, |out| match *as_end {
                    true if form.eofs => ok.put_eof(out),
                    true => ok.put(out, END, true),
                    false => ok.put(out, OK, true),
                });
            }
            Answer::Err(code, text) => put_err(out, first, *code, text),
            Answer::Rows {
                rows,
                warnings,
                changes,
            } => {
                let end = plain_ok(flags, *warnings, changes);
                put_rows(out, first, rows, &end, form);
            }
            Answer::Prepared { id, columns } => put_prepared(out, *id, *columns, form.eofs),
        }
    }
}

fn plain_ok(flags: u16, warnings: u16, changes: &[u8]) -> OkPacket<'_> {
    let changed = if changes.is_empty() {
        0
    } else {
        status::SESSION_STATE_CHANGED
    };
    OkPacket {
        affected_rows: 0,
        insert_id: 0,
        status: flags | changed,
        warnings,
        info: b"",
        changes,
    }
}

/// A column, or a parameter, of a text.
const COLUMN: &[u8] = b"\x03def\0\0\0\x01c\0\x0c\x2d\0\0\x01\0\0\xfd\0\0\0\0\0";

fn put_prepared(out: &mut Vec<u8>, id: u32, columns: u16, eofs: bool) {
    let mut header = vec![OK];
    header.extend_from_slice(&id.to_le_bytes());
    header.extend_from_slice(&columns.to_le_bytes());
    // One parameter, a filler, no warnings.
    header.extend_from_slice(&[1, 0, 0, 0, 0]);
    let mut seq = put_packet(out, 1, &header);
    for list in [1, columns] {
        for _ in 0..list {
            seq = put_packet(out, seq, COLUMN);
        }
        if eofs && list > 0 {
            seq = put_packet(out, seq, &[END, 0, 0, 2, 0]);
        }
    }
}

fn put_rows(
    out: &mut Vec<u8>,
    first: u8,
    rows: &[Vec<Option<String>>],
    end: &OkPacket<'_>,
    form: Form,
) {
    let columns = rows.first().map_or(1, Vec::len);
    let mut payload = Vec::new();
    put_lenenc(&mut payload, columns as u64);
    let mut seq = put_packet(out, first, &payload);
    for column in 0..columns {
        let value = rows.first().and_then(|row| row[column].as_deref());
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let mut definition = COLUMN.to_vec();
        let place = definition.len() - 12;
        definition[place] = form.collation;
        // A binary row would have to hold the number itself; it holds texts.
        if value.is_some_and(digits) && !form.binary {
            let kind = definition.len() - 6;
            definition[kind] = 8;
        }
        seq = put_packet(out, seq, &definition);
    }
    if form.eofs {
        payload.clear();
        OkPacket {
            warnings: 0,
            ..*end
        }
        .put_eof(&mut payload);
        seq = put_packet(out, seq, &payload);
    }
    for row in rows {
        payload.clear();
        if form.binary {
            // The header, and a bitmap of NULLs, of which executions have none.
            payload.extend_from_slice(&[0, 0]);
        }
        for value in row {
            match value {
                Some(text) => put_lenenc_bytes(&mut payload, text.as_bytes()),
                None => payload.push(0xFB),
            }
        }
        seq = put_packet(out, seq, &payload);
    }
    put_short(out, seq, |out| match form.eofs {
        true => end.put_eof(out),
        false => end.put(out, END, true),
    });
}

/// Appends the report of a variable's new value.
pub(crate) fn put_variable(changes: &mut Vec<u8>, name: &str, value: &str) {
    let mut body = Vec::new();
    put_lenenc_bytes(&mut body, name.as_bytes());
    put_lenenc_bytes(&mut body, value.as_bytes());
    changes.push(0);
    put_lenenc_bytes(changes, &body);
}

/// Appends the report of a text: 1 the schema, 4 a transaction's characteristics, 5 its state.
pub(crate) fn put_text(changes: &mut Vec<u8>, kind: u8, text: &str) {
    let mut body = Vec::new();
    put_lenenc_bytes(&mut body, text.as_bytes());
    changes.push(kind);
    put_lenenc_bytes(changes, &body);
}

/// Appends the report that something has changed.
pub(crate) fn put_state(changes: &mut Vec<u8>) {
    changes.extend_from_slice(b"\x02\x011");
}
