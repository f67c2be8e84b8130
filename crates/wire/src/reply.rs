//! Replies: where one ends, and what its packets say.
//!
//! The problem: a pool must know the last byte of a reply, because there the backend is free for
//! somebody else, and must not keep the reply to find out. The mechanism: [`Reply`] is told the
//! length of each packet and shown what is there of it, and says what it does ([`Step`]). Packets
//! that carry a decision (OK, ERR, a column count, the header of a prepared statement) must be
//! there whole ([`Step::Cut`]), as must definitions; all others may pass by in pieces. A relay has
//! more checked ([`crate::checked`]).
//!
//! Invariants:
//! - the other end negotiated CLIENT_PROTOCOL_41. With CLIENT_DEPRECATE_EOF no EOF packet stands
//!   between columns and rows, and a result set ends in an OK packet that begins with 0xFE; without
//!   it ([`Reply::with_eofs`]) an EOF packet stands behind each list of definitions and ends rows;
//! - a packet that continues a payload of 2^24-1 bytes has no role of its own;
//! - after [`Step::Err`] the reply is over whatever was announced before.

use crate::command::ReplyShape;
use crate::errors::ErrorCode;
use crate::packet::{Malformed, PAYLOAD_MAX, Reader, put_lenenc, put_lenenc_bytes, put_short};
use crate::rows::{COLUMNS_MAX, check_definition};
use crate::status;

/// First byte of an OK packet that answers a command.
pub const OK: u8 = 0x00;
/// First byte of the packet that ends a result set.
pub const END: u8 = 0xFE;
/// Bytes of an EOF packet's payload.
pub const EOF_LEN: usize = 5;
/// Zeros that MariaDB writes in front of session changes, at most: where the default schema is in
/// ucs2, utf16 or utf32, it gives the length of the info text in as many bytes as a character has
/// there.
const PADDING_MAX: usize = 3;
/// First byte of an ERR packet.
pub const ERR: u8 = 0xFF;
/// First byte of a request for a local file.
pub const LOCAL_INFILE: u8 = 0xFB;

/// An OK packet, or the packet that ends a result set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OkPacket<'a> {
    /// Rows changed (or found, with CLIENT_FOUND_ROWS).
    pub affected_rows: u64,
    /// The AUTO_INCREMENT value that the statement made or was given, 0 for none.
    pub insert_id: u64,
    /// Status flags, see [`crate::status`].
    pub status: u16,
    /// Warnings of this statement.
    pub warnings: u16,
    /// Human-readable text, mostly empty.
    pub info: &'a [u8],
    /// Session tracker blocks, see [`crate::track`].
    pub changes: &'a [u8],
}

impl<'a> OkPacket<'a> {
    /// Takes an OK packet apart; `session_track` tells whether CLIENT_SESSION_TRACK was agreed.
    /// A bare EOF packet (5 bytes) is understood too.
    ///
    /// # Errors
    /// [`Malformed`] when a field is cut.
    pub fn read(payload: &'a [u8], session_track: bool) -> Result<OkPacket<'a>, Malformed> {
        let mut reader = Reader::new(payload);
        let first = reader.u8("an OK packet")?;
        let mut ok = OkPacket {
            affected_rows: 0,
            insert_id: 0,
            status: 0,
            warnings: 0,
            info: b"",
            changes: b"",
        };
        if first == END && payload.len() == EOF_LEN {
            ok.warnings = reader.u16("a warning count")?;
            ok.status = reader.u16("status flags")?;
            return Ok(ok);
        }
        ok.affected_rows = reader.lenenc("affected rows")?;
        ok.insert_id = reader.lenenc("an insert id")?;
        ok.status = reader.u16("status flags")?;
        ok.warnings = reader.u16("a warning count")?;
        if !session_track {
            ok.info = read_plain_info(reader);
        } else if !reader.is_empty() {
            ok.info = reader.lenenc_bytes("an info text")?;
            if ok.status & status::SESSION_STATE_CHANGED != 0 && !reader.is_empty() {
                ok.changes = reader.lenenc_bytes("session changes")?;
                for _ in 0..PADDING_MAX {
                    if ok.changes.is_empty() && !reader.is_empty() {
                        ok.changes = reader.lenenc_bytes("session changes")?;
                    }
                }
            }
        }
        Ok(ok)
    }

    /// Appends this packet's payload. `first` is [`OK`] or [`END`]; `session_track` tells whether
    /// the receiver agreed on CLIENT_SESSION_TRACK. Whoever passes `changes` sets the status flag
    /// that announces them.
    pub fn put(&self, out: &mut Vec<u8>, first: u8, session_track: bool) {
        out.push(first);
        put_lenenc(out, self.affected_rows);
        put_lenenc(out, self.insert_id);
        out.extend_from_slice(&self.status.to_le_bytes());
        out.extend_from_slice(&self.warnings.to_le_bytes());
        let changed = session_track && self.status & status::SESSION_STATE_CHANGED != 0;
        if changed || !self.info.is_empty() {
            put_lenenc_bytes(out, self.info);
        }
        if changed {
            put_lenenc_bytes(out, self.changes);
        }
    }

    /// Appends the 5-byte EOF packet that stands for this one towards a receiver without
    /// CLIENT_DEPRECATE_EOF.
    pub fn put_eof(&self, out: &mut Vec<u8>) {
        out.push(END);
        out.extend_from_slice(&self.warnings.to_le_bytes());
        out.extend_from_slice(&self.status.to_le_bytes());
    }
}

/// The text at the end of an OK packet without session tracking. The manual has it go on to the
/// packet's end; servers send its length in front all the same, and clients count on it.
fn read_plain_info(mut reader: Reader<'_>) -> &[u8] {
    let mut probe = reader;
    match probe.lenenc_bytes("an info text") {
        Ok(info) if probe.is_empty() => info,
        _ => reader.rest(),
    }
}

/// An ERR packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrPacket<'a> {
    /// The error's number.
    pub code: u16,
    /// Five characters of SQL state; `HY000` where the packet carries none.
    pub state: &'a [u8],
    /// The error's words.
    pub message: &'a [u8],
}

impl<'a> ErrPacket<'a> {
    /// Takes an ERR packet apart. Before login a server may leave the SQL state out.
    ///
    /// # Errors
    /// [`Malformed`] when the number is cut.
    pub fn read(payload: &'a [u8]) -> Result<ErrPacket<'a>, Malformed> {
        let mut reader = Reader::new(payload);
        reader.u8("an ERR packet")?;
        let code = reader.u16("an error number")?;
        let rest = reader.rest();
        Ok(match rest.split_first() {
            Some((b'#', rest)) if rest.len() >= 5 => {
                let (state, message) = rest.split_at(5);
                ErrPacket {
                    code,
                    state,
                    message,
                }
            }
            _ => ErrPacket {
                code,
                state: b"HY000",
                message: rest,
            },
        })
    }
}

/// Appends an ERR packet.
pub fn put_err(out: &mut Vec<u8>, seq: u8, error: ErrorCode, message: &str) {
    put_short(out, seq, |out| {
        out.push(ERR);
        out.extend_from_slice(&error.code.to_le_bytes());
        out.push(b'#');
        out.extend_from_slice(error.state.as_bytes());
        // Clients keep error texts in buffers of 512 bytes.
        let cut = message.floor_char_boundary(500);
        out.extend_from_slice(&message.as_bytes()[..cut]);
    });
}

/// The header of a prepared statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// The server's id of the statement.
    pub id: u32,
    /// Columns of its result, 0 for none.
    pub columns: u16,
    /// Parameters it takes.
    pub params: u16,
    /// Warnings while preparing.
    pub warnings: u16,
}

impl Prepared {
    /// Takes the header apart.
    ///
    /// # Errors
    /// [`Malformed`] when a field is cut.
    pub fn read(payload: &[u8]) -> Result<Prepared, Malformed> {
        let mut reader = Reader::new(payload);
        reader.u8("a prepared statement")?;
        let id = reader.u32("a statement id")?;
        let columns = reader.u16("a column count")?;
        let params = reader.u16("a parameter count")?;
        reader.u8("a filler")?;
        let warnings = if reader.is_empty() {
            0
        } else {
            reader.u16("a warning count")?
        };
        Ok(Prepared {
            id,
            columns,
            params,
            warnings,
        })
    }
}

/// Effect of a packet on the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// Nothing yet: all of it must be there.
    Cut,
    /// Continues a payload that began in an earlier packet.
    Continuation,
    /// A line of text.
    Text,
    /// A row.
    Row,
    /// The definition of a column or parameter; `ends`: the last one of a list, behind which a peer
    /// without CLIENT_DEPRECATE_EOF expects an EOF packet.
    Definition {
        /// The other end sends no such packet.
        ends: bool,
    },
    /// A result begins, of so many columns.
    Columns(u64),
    /// The EOF packet behind a list of definitions.
    DefinitionsEnd(OkPacket<'a>),
    /// The EOF packet behind a list of definitions, with a cursor open: the reply is over.
    CursorOpen(OkPacket<'a>),
    /// A command succeeded.
    Ok(OkPacket<'a>),
    /// End of a result set.
    End(OkPacket<'a>),
    /// The command failed; the reply is over.
    Err(ErrPacket<'a>),
    /// Request for the packets of a local file.
    File,
    /// Prepared statement; its definitions follow.
    Prepared(Prepared),
}

impl Step<'_> {
    /// True if the packet decides nothing, so that its payload may pass by in pieces.
    #[must_use]
    pub fn passes_by(&self) -> bool {
        matches!(
            self,
            Step::Continuation | Step::Text | Step::Row | Step::Definition { .. }
        )
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The next packet opens a result.
    Start,
    /// Definitions of columns or parameters that are still to come, one at least.
    Definitions {
        left: u64,
        then: Then,
    },
    /// The EOF packet behind them.
    DefinitionsEof(Then),
    /// Rows up to the end packet.
    Rows,
    Done,
}

/// Part of a reply behind a list of definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    /// The rows of a result.
    Rows,
    /// Behind the parameters of a prepared statement: so many columns.
    Columns(u16),
    /// Nothing: behind its columns.
    Nothing,
}

impl State {
    /// State before this many more definitions, and then `then`.
    fn definitions(left: u64, then: Then) -> State {
        match (left, then) {
            (1.., then) => State::Definitions { left, then },
            (0, Then::Rows) => State::Rows,
            (0, Then::Columns(columns)) => State::definitions(columns.into(), Then::Nothing),
            (0, Then::Nothing) => State::Done,
        }
    }
}

/// Follows one command's reply to its last packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    shape: ReplyShape,
    state: State,
    eofs: bool,
    /// True if the rows are the OUT parameters of a CALL.
    out_params: bool,
    continued: bool,
    rows: u64,
}

impl Reply {
    /// The reply to come for a command of this shape.
    #[must_use]
    pub fn new(shape: ReplyShape) -> Reply {
        let state = match shape {
            ReplyShape::None => State::Done,
            ReplyShape::Rows => State::Rows,
            _ => State::Start,
        };
        Reply {
            shape,
            state,
            eofs: false,
            out_params: false,
            continued: false,
            rows: 0,
        }
    }

    /// Sets that the other end has not agreed on CLIENT_DEPRECATE_EOF.
    #[must_use]
    pub fn with_eofs(self, eofs: bool) -> Reply {
        Reply { eofs, ..self }
    }

    /// True when no packet of this reply is outstanding.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.state == State::Done && !self.continued
    }

    /// True when nothing of the reply has come yet, or a further result is about to begin.
    #[must_use]
    pub fn is_at_start(&self) -> bool {
        self.state == State::Start
    }

    /// Rows seen in the present or last result set.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// True when the next packet, of `len` payload bytes that begin with `payload`, is a row.
    #[must_use]
    pub fn next_is_row(&self, len: usize, payload: &[u8]) -> bool {
        let ends = |first| first == ERR || first == END && len < PAYLOAD_MAX;
        let is_cut = payload.is_empty() && len > 0;
        self.state == State::Rows
            && !self.continued
            && !is_cut
            && !payload.first().is_some_and(|first| ends(*first))
    }

    /// Takes the next packet, of `len` payload bytes; `there` begins with those that have come.
    ///
    /// # Errors
    /// [`Malformed`] when a packet does not fit its place, or comes after the reply's end.
    pub fn advance<'a>(&mut self, len: usize, there: &'a [u8]) -> Result<Step<'a>, Malformed> {
        if self.is_done() {
            return Err(Malformed {
                what: "nothing after the reply's end",
                at: 0,
                len,
            });
        }
        let payload = &there[..len.min(there.len())];
        let first = payload.first().copied();
        if first.is_none() && len > 0 {
            return Ok(Step::Cut);
        }
        let step = match (self.state, first) {
            _ if self.continued => Ok(Step::Continuation),
            _ if self.next_is_row(len, payload) => {
                self.rows += 1;
                Ok(Step::Row)
            }
            (State::Start, first) if first != Some(ERR) && self.shape == ReplyShape::Text => {
                self.state = State::Done;
                Ok(Step::Text)
            }
            // What follows decides something.
            _ if payload.len() < len => return Ok(Step::Cut),
            (_, Some(ERR)) => {
                self.state = State::Done;
                ErrPacket::read(payload).map(Step::Err)
            }
            (State::Definitions { left, then }, _) => {
                check_definition(payload)?;
                Ok(self.on_definition(left, then))
            }
            (State::DefinitionsEof(then), _) => self.on_definitions_end(then, payload),
            (State::Start, _) if self.shape == ReplyShape::Prepared => self.on_prepared(payload),
            (State::Rows, _) | (State::Start, Some(OK | END)) => self.on_ok(payload),
            (State::Start, _) if self.shape == ReplyShape::Status => Err(Malformed {
                what: "an OK or ERR packet",
                at: 0,
                len,
            }),
            (State::Start, Some(LOCAL_INFILE)) => Ok(Step::File),
            _ => self.on_columns(payload),
        };
        self.continued = len == PAYLOAD_MAX;
        step
    }

    fn on_columns<'a>(&mut self, payload: &'a [u8]) -> Result<Step<'a>, Malformed> {
        let mut reader = Reader::new(payload);
        let columns = reader.lenenc("a column count")?;
        if !(1..=COLUMNS_MAX).contains(&columns) || !reader.is_empty() {
            return Err(reader.malformed("a count of 1 to 65,535 columns, alone in its packet"));
        }
        self.state = State::definitions(columns, Then::Rows);
        self.rows = 0;
        Ok(Step::Columns(columns))
    }

    fn on_ok<'a>(&mut self, payload: &'a [u8]) -> Result<Step<'a>, Malformed> {
        let mut ok = OkPacket::read(payload, true)?;
        let ends_rows = self.state == State::Rows;
        // MySQL leaves the flag out of the EOF packet behind OUT parameters, and the OK of the CALL
        // follows all the same (seen on 9.7).
        let follows = std::mem::take(&mut self.out_params);
        if self.shape == ReplyShape::Call && ends_rows && !follows {
            ok.status |= status::MORE_RESULTS;
        }
        let more = ok.status & status::MORE_RESULTS != 0 || follows;
        let more = more && self.shape.has_results();
        self.state = if more { State::Start } else { State::Done };
        Ok(if ends_rows {
            Step::End(ok)
        } else {
            Step::Ok(ok)
        })
    }

    fn on_prepared<'a>(&mut self, payload: &'a [u8]) -> Result<Step<'a>, Malformed> {
        let prepared = Prepared::read(payload)?;
        if payload.first() != Some(&OK) {
            return Err(Malformed {
                what: "the header of a prepared statement",
                at: 0,
                len: payload.len(),
            });
        }
        let then = Then::Columns(prepared.columns);
        self.state = State::definitions(prepared.params.into(), then);
        Ok(Step::Prepared(prepared))
    }

    fn on_definitions_end<'a>(
        &mut self,
        then: Then,
        payload: &'a [u8],
    ) -> Result<Step<'a>, Malformed> {
        if payload.len() != EOF_LEN || payload[0] != END {
            return Err(Malformed {
                what: "an EOF packet behind the definitions",
                at: 0,
                len: payload.len(),
            });
        }
        let eof = OkPacket::read(payload, true)?;
        self.out_params = eof.status & status::PS_OUT_PARAMS != 0;
        // A procedure that has opened a cursor of its own leaves the flag to the results behind.
        let opens = self.shape == ReplyShape::Cursor && eof.status & status::CURSOR_EXISTS != 0;
        if opens && then == Then::Rows {
            self.state = State::Done;
            return Ok(Step::CursorOpen(eof));
        }
        self.state = State::definitions(0, then);
        Ok(Step::DefinitionsEnd(eof))
    }

    fn on_definition<'a>(&mut self, left: u64, then: Then) -> Step<'a> {
        self.state = match left {
            1 if self.eofs => State::DefinitionsEof(then),
            left => State::definitions(left - 1, then),
        };
        let ends = left == 1 && !self.eofs;
        Step::Definition { ends }
    }
}

#[cfg(test)]
mod tests;
