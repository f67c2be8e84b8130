//! Assembly of outcomes from payloads.
//!
//! One [`Assembler`] per command. It is fed whole logical payloads (continuation packets joined)
//! and says when the reply is over. Every packet that does not fit its place is an error with both
//! sides of the mismatch in it.

use super::rows::{binary_row, text_row};
use super::{Column, Done, Failure, Outcome, Prepared, Rows, words};
use wire::capabilities as cap;
use wire::command::ReplyShape;
use wire::packet::{Malformed, PAYLOAD_MAX, Reader};
use wire::reply::{END, ERR, ErrPacket, LOCAL_INFILE, OK, OkPacket};
use wire::status;

/// Progress of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// More packets follow.
    More,
    /// The reply is over.
    Over,
    /// The server wants this file.
    File(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Start,
    Columns(usize),
    ColumnsEof,
    Rows,
    Params(usize),
    ParamsEof,
    PreparedColumns(usize),
    PreparedColumnsEof,
    Over,
}

/// Puts one reply together.
#[derive(Clone, Debug)]
pub struct Assembler {
    shape: ReplyShape,
    binary: bool,
    capabilities: u32,
    extended: u32,
    state: State,
    columns: Vec<Column>,
    begin: Option<(u16, u16)>,
    rows: Vec<Vec<super::Value>>,
    prepared: Option<Prepared>,
    left: (usize, usize),
    outcomes: Vec<Outcome>,
}

impl Assembler {
    /// A reply of this shape to a client with these capabilities; `binary` rows or text ones.
    #[must_use]
    pub fn new(shape: ReplyShape, binary: bool, capabilities: u32) -> Assembler {
        let state = match shape {
            ReplyShape::None => State::Over,
            ReplyShape::Rows => State::Rows,
            _ => State::Start,
        };
        Assembler {
            shape,
            binary,
            capabilities,
            extended: 0,
            state,
            columns: Vec::new(),
            begin: None,
            rows: Vec::new(),
            prepared: None,
            left: (0, 0),
            outcomes: Vec::new(),
        }
    }

    /// An assembler with these extended capabilities.
    #[must_use]
    pub fn extended(self, extended: u32) -> Assembler {
        Assembler { extended, ..self }
    }

    /// Sets the columns of a cursor's rows, known from the execution.
    pub fn expect_columns(&mut self, columns: Vec<Column>) {
        self.columns = columns;
    }

    /// True when nothing is outstanding.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// Outcomes of the reply, once it is over.
    #[must_use]
    pub fn into_outcomes(self) -> Vec<Outcome> {
        self.outcomes
    }

    fn has(&self, capability: u32) -> bool {
        self.capabilities & capability != 0
    }

    /// Takes the next payload.
    ///
    /// # Errors
    /// [`Malformed`] when it does not fit its place.
    pub fn feed(&mut self, payload: &[u8]) -> Result<Progress, Malformed> {
        let first = payload.first().copied();
        match (self.state, first) {
            (State::Over, _) => return Err(misfit("nothing after the reply's end", payload)),
            (_, Some(ERR)) => {
                let failure = Failure::of(&ErrPacket::read(payload)?);
                self.outcomes.push(Outcome::Failed(failure));
                self.state = State::Over;
            }
            (State::Start, _) => return self.start(payload),
            (State::Rows, Some(END)) if payload.len() < self.end_len_max() => {
                let end = self.read_end(payload)?;
                self.end_rows(end);
            }
            (State::Rows, _) => self.row(payload)?,
            (State::ColumnsEof, Some(END)) if self.opens_cursor(payload) => {
                let end = self.read_end(payload)?;
                self.end_rows(end);
            }
            (State::ColumnsEof | State::ParamsEof | State::PreparedColumnsEof, Some(END))
                if payload.len() == 5 =>
            {
                let end = read_eof(payload)?;
                self.note_eof(&end);
                // Rows of a cursor come by COM_STMT_FETCH.
                if end.status & status::CURSOR_EXISTS != 0 && self.shape == ReplyShape::Cursor {
                    self.end_rows(end);
                } else {
                    self.next_list();
                }
            }
            (State::ColumnsEof | State::ParamsEof | State::PreparedColumnsEof, _) => {
                return Err(misfit("an EOF packet behind the definitions", payload));
            }
            _ => self.definition(payload)?,
        }
        Ok(self.progress())
    }

    fn progress(&self) -> Progress {
        if self.is_over() {
            Progress::Over
        } else {
            Progress::More
        }
    }

    /// Most bytes of a reply's end: an EOF packet has 5; an OK in its place any number that a row
    /// cannot have.
    fn end_len_max(&self) -> usize {
        if self.has(cap::DEPRECATE_EOF) {
            PAYLOAD_MAX
        } else {
            9
        }
    }

    /// True if the rows of a cursor are fetched later: none follow now.
    fn opens_cursor(&self, payload: &[u8]) -> bool {
        let read = OkPacket::read(payload, false);
        self.shape == ReplyShape::Cursor
            && payload.len() == 5
            && read.is_ok_and(|eof| eof.status & status::CURSOR_EXISTS != 0)
    }

    fn read_end(&self, payload: &[u8]) -> Result<Done, Malformed> {
        if self.has(cap::DEPRECATE_EOF) {
            Done::of(&OkPacket::read(payload, self.has(cap::SESSION_TRACK))?)
        } else if payload.len() == 5 {
            read_eof(payload)
        } else {
            Err(misfit("an EOF packet of 5 bytes", payload))
        }
    }

    fn start(&mut self, payload: &[u8]) -> Result<Progress, Malformed> {
        match (self.shape, payload.first().copied()) {
            (ReplyShape::Text, _) => {
                let text = words(payload);
                self.outcomes.push(Outcome::Text(text));
                self.state = State::Over;
            }
            (ReplyShape::Prepared, Some(OK)) => self.prepared(payload)?,
            (ReplyShape::Status, Some(END))
            | (ReplyShape::Status | ReplyShape::Results | ReplyShape::Cursor, Some(OK)) => {
                let done = Done::of(&OkPacket::read(payload, self.has(cap::SESSION_TRACK))?)?;
                self.after(done.status);
                self.outcomes.push(Outcome::Done(done));
            }
            (ReplyShape::Results, Some(LOCAL_INFILE)) => {
                return Ok(Progress::File(
                    String::from_utf8_lossy(&payload[1..]).into_owned(),
                ));
            }
            (ReplyShape::Results | ReplyShape::Cursor, Some(_)) => {
                let mut reader = Reader::new(payload);
                let columns = reader.lenenc("a column count")?;
                if !reader.is_empty() || columns == 0 {
                    return Err(misfit("a column count and nothing else", payload));
                }
                self.columns.clear();
                self.state = State::Columns(usize::try_from(columns).unwrap());
            }
            _ => return Err(misfit("a reply's first packet", payload)),
        }
        Ok(self.progress())
    }

    /// Sets the state behind a result with these status flags.
    fn after(&mut self, flags: u16) {
        let results = matches!(self.shape, ReplyShape::Results | ReplyShape::Cursor);
        let more = flags & status::MORE_RESULTS != 0 && results;
        self.state = if more { State::Start } else { State::Over };
    }

    fn end_rows(&mut self, end: Done) {
        // MySQL says nothing of it behind OUT parameters, but the OK of the CALL follows.
        let out_params = |(flags, _)| flags & status::PS_OUT_PARAMS;
        let follows = self.begin.map_or(0, out_params) != 0;
        let more = if follows { status::MORE_RESULTS } else { 0 };
        self.after(end.status | more);
        // COM_FIELD_LIST has columns and no rows.
        let columns = std::mem::take(&mut self.columns);
        let rows = std::mem::take(&mut self.rows);
        let begin = self.begin.take();
        self.outcomes.push(Outcome::Rows(Rows {
            columns,
            begin,
            rows,
            end,
        }));
    }

    /// Takes an EOF packet behind a list of definitions.
    fn note_eof(&mut self, eof: &Done) {
        let said = (eof.status, eof.warnings);
        match &mut self.prepared {
            Some(prepared) => prepared.eofs.push(said),
            None => self.begin = Some(said),
        }
    }

    fn row(&mut self, payload: &[u8]) -> Result<(), Malformed> {
        if self.shape == ReplyShape::Rows && !self.binary {
            self.columns.push(Column::read(payload, self.extended)?);
            return Ok(());
        }
        self.rows.push(if self.binary {
            binary_row(payload, &self.columns)?
        } else {
            text_row(payload, self.columns.len())?
        });
        Ok(())
    }

    fn prepared(&mut self, payload: &[u8]) -> Result<(), Malformed> {
        let header = wire::reply::Prepared::read(payload)?;
        self.prepared = Some(Prepared {
            id: header.id,
            params: Vec::new(),
            columns: Vec::new(),
            warnings: header.warnings,
            eofs: Vec::new(),
        });
        self.left = (usize::from(header.params), usize::from(header.columns));
        self.next_list();
        Ok(())
    }

    /// Goes on to the next list of definitions, or to what follows the last.
    fn next_list(&mut self) {
        let Some(prepared) = self.prepared.as_mut() else {
            self.state = State::Rows;
            return;
        };
        let (params, columns) = std::mem::take(&mut self.left);
        if params > 0 {
            self.left = (0, columns);
            self.state = State::Params(params);
        } else if columns > 0 {
            self.state = State::PreparedColumns(columns);
        } else {
            let prepared = prepared.clone();
            self.outcomes.push(Outcome::Prepared(prepared));
            self.state = State::Over;
        }
    }

    fn definition(&mut self, payload: &[u8]) -> Result<(), Malformed> {
        let column = Column::read(payload, self.extended)?;
        let (left, eof) = match self.state {
            State::Columns(left) => {
                self.columns.push(column);
                self.state = State::Columns(left - 1);
                (left - 1, State::ColumnsEof)
            }
            State::Params(left) => {
                self.prepared.as_mut().unwrap().params.push(column);
                self.state = State::Params(left - 1);
                (left - 1, State::ParamsEof)
            }
            State::PreparedColumns(left) => {
                self.prepared.as_mut().unwrap().columns.push(column);
                self.state = State::PreparedColumns(left - 1);
                (left - 1, State::PreparedColumnsEof)
            }
            _ => return Err(misfit("no definition", payload)),
        };
        if left == 0 {
            self.state = eof;
            if self.has(cap::DEPRECATE_EOF) {
                self.next_list();
            }
        }
        Ok(())
    }
}

/// An EOF packet, without the flag that the session has changed: it has no room to say what, and
/// MariaDB sets it for trackers that its client has not switched on too.
fn read_eof(payload: &[u8]) -> Result<Done, Malformed> {
    let mut eof = Done::of(&OkPacket::read(payload, false)?)?;
    eof.status &= !status::SESSION_STATE_CHANGED;
    Ok(eof)
}

fn misfit(what: &'static str, payload: &[u8]) -> Malformed {
    Malformed {
        what,
        at: 0,
        len: payload.len(),
    }
}
