//! A script's MySQL connection: one question at a time, the answer as the script sees it.
//!
//! The connections of the native workloads let rows pass by unread; a script may look at them, so
//! this one keeps the rows of a reply until it has ended, and hands them over as one piece of bytes
//! ([`Rows`]). Nothing of a reply is kept behind that, so an idle connection is its struct.
//!
//! Invariants: a connection asks one question at a time; a reply is handed over whole or not at
//! all; what is kept of one is bounded by [`RESULT_MAX`].

use load_core::errors::Fault;
use load_core::login::Credentials;
use load_core::transport::{Came, Handshake, Transport};
use load_core::workload::Verb;
use reactor::{Net, RealNet, Time, Write};
use std::os::fd::OwnedFd;
use wire::client_login::{ClientLogin, Progress};
use wire::command::{Command, ReplyShape};
use wire::packet::{HEADER_LEN, Header, put_packet};
use wire::reply::{Reply, Step};

/// Bytes of a reply's rows that are kept for a script, over all its results.
const RESULT_MAX: usize = 64 * 1024 * 1024;
/// Results of one statement (`CALL`, several statements in one) that are kept.
const RESULTS_MAX: usize = 1_024;
/// Statements that one connection may have prepared.
const STATEMENTS_MAX: usize = 1_000_000;
/// The server cannot prepare this statement: it goes as text.
const UNSUPPORTED_PS: u32 = 1295;
/// The first byte of a binary row's length of zero columns, and of a flag that types are sent.
const NEW_TYPES: u8 = 1;

/// Answer to a request.
#[derive(Debug)]
pub(super) enum Answer {
    /// Connected.
    Connected,
    /// Number under which the statement is known.
    Prepared(u32),
    /// The statement ran.
    Done(Done),
    /// Could not connect.
    Failed(Fault),
}

/// Result of a statement.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub(super) affected_rows: u64,
    /// Rows, if only none; of the first of several results.
    pub(super) rows: Option<Rows>,
    /// Further results with rows.
    pub(super) more: Vec<Rows>,
    /// Bytes of all of them.
    kept: usize,
}

/// The rows of a result, as the server sent them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Rows {
    pub(super) count: u64,
    pub(super) columns: u32,
    /// Columns' types and flags (2 bytes each) for rows of a prepared statement; then the rows,
    /// each with its length in four bytes in front.
    pub(super) bytes: Vec<u8>,
    pub(super) is_binary: bool,
}

/// State of a connection.
#[derive(Debug)]
enum State {
    Connecting,
    LoggingIn(Box<ClientLogin>),
    Idle,
    Querying,
    /// Text that is being prepared.
    Preparing(Box<str>),
    Executing,
}

/// A statement that was prepared.
#[derive(Debug)]
enum Prepared {
    Closed,
    /// The server knows it under this number.
    Server {
        id: u32,
        verb: Verb,
        values: u16,
    },
    /// Sent as text: the pieces between its `?`.
    Text {
        pieces: Box<[Box<str>]>,
        verb: Verb,
    },
}

/// A value of a prepared statement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value<'a> {
    Null,
    Integer(i64),
    Double(f64),
    Text(&'a [u8]),
}

/// A connection of a script.
#[derive(Debug)]
pub(super) struct Client {
    transport: Transport,
    state: State,
    /// Number by which the script's prelude knows it.
    pub(super) handle: u32,
    /// Number of its user.
    pub(super) user: u32,
    seq: u8,
    reply: Reply,
    /// Moment at which the question was sent; while connecting, when that began.
    pub(super) since: Time,
    /// The present statement by its first word.
    pub(super) verb: Verb,
    /// Bytes of a packet that is not whole; its header says at most 16 MiB.
    partial: Vec<u8>,
    unsent: Vec<u8>,
    /// The result that is coming, and those of the statement that have come.
    rows: Rows,
    done: Option<Box<Done>>,
    statements: Vec<Prepared>,
    /// Number of the first of `statements`: those before went with a lost connection.
    first_statement: u32,
}

impl Client {
    /// A connection that the system has begun to open.
    pub(super) fn new(
        transport: Transport,
        handle: u32,
        user: u32,
        first_statement: u32,
    ) -> Client {
        Client {
            transport,
            state: State::Connecting,
            handle,
            user,
            seq: 0,
            reply: Reply::new(ReplyShape::None),
            since: Time::now(),
            verb: Verb::Other,
            partial: Vec::new(),
            unsent: Vec::new(),
            rows: Rows::default(),
            done: None,
            statements: Vec::new(),
            first_statement,
        }
    }

    pub(super) fn sock(&self) -> &OwnedFd {
        self.transport.sock()
    }

    /// True until the server has let us in.
    pub(super) fn is_opening(&self) -> bool {
        matches!(self.state, State::Connecting | State::LoggingIn(_))
    }

    /// True while a statement has no answer.
    pub(super) fn is_asking(&self) -> bool {
        !self.is_opening() && !matches!(self.state, State::Idle)
    }

    /// The number that the next prepared statement gets.
    pub(super) fn next_statement(&self) -> u32 {
        self.first_statement + u32::try_from(self.statements.len()).unwrap_or(0)
    }

    /// Says goodbye; the socket is closed when the connection is dropped.
    pub(super) fn quit(&mut self, net: &mut RealNet) {
        if matches!(self.state, State::Idle) {
            // Nobody waits for an answer; a server that is gone needs no goodbye.
            let _ = self.transport.write(net, b"\x01\0\0\0\x01");
        }
    }

    /// Sends a statement as text.
    pub(super) fn query(&mut self, net: &mut RealNet, text: &[u8]) -> Result<(), Fault> {
        self.verb = Verb::of_bytes(text);
        self.state = State::Querying;
        self.ask(net, Command::Query, ReplyShape::Results, |out| {
            out.extend_from_slice(text);
        })
    }

    /// Prepares a statement, if only here: then it is answered at once.
    pub(super) fn prepare(
        &mut self,
        net: &mut RealNet,
        text: &str,
        on_server: bool,
    ) -> Result<Option<Answer>, Fault> {
        if self.statements.len() >= STATEMENTS_MAX {
            return Err(Fault::protocol(format!(
                "the script has prepared {STATEMENTS_MAX} statements on one connection, the most \
                 that are taken: close those that it is done with"
            )));
        }
        if !on_server {
            return Ok(Some(self.keep_text(text)));
        }
        self.state = State::Preparing(text.into());
        self.ask(net, Command::StmtPrepare, ReplyShape::Prepared, |out| {
            out.extend_from_slice(text.as_bytes());
        })?;
        Ok(None)
    }

    /// Executes a prepared statement.
    pub(super) fn execute(
        &mut self,
        net: &mut RealNet,
        number: u32,
        values: &[Value<'_>],
    ) -> Result<(), Fault> {
        let at = number.checked_sub(self.first_statement);
        let prepared = at.and_then(|at| self.statements.get(at as usize));
        match prepared {
            Some(Prepared::Server {
                values: expected, ..
            }) if usize::from(*expected) != values.len() => Err(Fault {
                code: 2031,
                sqlstate: "HY000".to_owned(),
                message: format!(
                    "the statement takes {expected} values, and bind_param() gave it {}",
                    values.len()
                ),
            }),
            Some(Prepared::Server { id, verb, .. }) => {
                let id = *id;
                self.verb = *verb;
                self.state = State::Executing;
                self.ask(net, Command::StmtExecute, ReplyShape::Results, |out| {
                    put_execution(out, id, values);
                })
            }
            Some(Prepared::Text { pieces, verb }) => {
                let mut text = Vec::new();
                put_as_text(&mut text, pieces, values);
                self.verb = *verb;
                self.state = State::Querying;
                self.ask(net, Command::Query, ReplyShape::Results, |out| {
                    out.extend_from_slice(&text);
                })
            }
            // What a client library says of a statement whose connection went away.
            _ => Err(Fault {
                code: 2030,
                sqlstate: "HY000".to_owned(),
                message: "Statement not prepared".to_owned(),
            }),
        }
    }

    /// Forgets a prepared statement.
    pub(super) fn close_statement(&mut self, net: &mut RealNet, number: u32) -> Result<(), Fault> {
        let at = number.checked_sub(self.first_statement);
        let Some(prepared) = at.and_then(|at| self.statements.get_mut(at as usize)) else {
            return Ok(());
        };
        if let Prepared::Server { id, .. } = std::mem::replace(prepared, Prepared::Closed) {
            let mut out = Vec::with_capacity(HEADER_LEN + 5);
            let [a, b, c, d] = id.to_le_bytes();
            put_packet(&mut out, 0, &[Command::StmtClose.byte(), a, b, c, d]);
            return self.send(net, &out);
        }
        Ok(())
    }

    fn keep_text(&mut self, text: &str) -> Answer {
        let pieces = cut(text);
        let verb = Verb::of_bytes(text.as_bytes());
        let number = self.next_statement();
        self.statements.push(Prepared::Text { pieces, verb });
        Answer::Prepared(number)
    }

    fn ask(
        &mut self,
        net: &mut RealNet,
        command: Command,
        shape: ReplyShape,
        arguments: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), Fault> {
        let mut payload = vec![command.byte()];
        arguments(&mut payload);
        let mut out = Vec::with_capacity(payload.len() + HEADER_LEN);
        self.seq = put_packet(&mut out, 0, &payload);
        self.reply = Reply::new(shape);
        self.rows = Rows::default();
        self.since = Time::now();
        self.send(net, &out)
    }

    /// Handles a writable socket: a connection stands or has failed, or there is room again.
    pub(super) fn on_writable(&mut self, net: &mut RealNet) -> Result<(), Fault> {
        let is_connecting = matches!(self.state, State::Connecting);
        if is_connecting && self.open_further(net)? == Handshake::Waits {
            return Ok(());
        }
        self.transport.flush(net)?;
        let unsent = std::mem::take(&mut self.unsent);
        self.send(net, &unsent)
    }

    /// Carries on with the handshake of a socket that is connected; fails if it is not.
    fn open_further(&mut self, net: &mut RealNet) -> Result<Handshake, Fault> {
        let connected = net.connected(self.transport.sock());
        connected.map_err(|e| Fault::system(&e))?;
        let how_far = self.transport.handshake(net)?;
        if how_far == Handshake::Done {
            self.state = State::LoggingIn(Box::default());
        }
        Ok(how_far)
    }

    /// True while the handshake of TLS goes on at each event.
    pub(super) fn is_securing(&self) -> bool {
        let is_plain = self.transport.is_emptied_by_short_read();
        !is_plain && matches!(self.state, State::Connecting)
    }

    /// True where reading may find what no event tells of: what came with a handshake.
    pub(super) fn may_have_read(&self) -> bool {
        let is_plain = self.transport.is_emptied_by_short_read();
        !is_plain && matches!(self.state, State::LoggingIn(_))
    }

    fn send(&mut self, net: &mut RealNet, bytes: &[u8]) -> Result<(), Fault> {
        let mut sent = 0;
        while sent < bytes.len() && self.unsent.is_empty() {
            match self.transport.write(net, &bytes[sent..]) {
                Write::Bytes(n) => sent += n,
                Write::Blocked => break,
                Write::Failed(error) => return Err(Fault::system(&error)),
            }
        }
        self.unsent.extend_from_slice(&bytes[sent..]);
        Ok(())
    }

    /// Reads what has come: an answer if one is whole, and whether the connection still stands. A
    /// server may answer and hang up at once.
    pub(super) fn on_readable(
        &mut self,
        net: &mut RealNet,
        buffer: &mut [u8],
        who: &Credentials,
        closed: bool,
    ) -> (Option<Answer>, Result<(), Fault>) {
        let mut answer = None;
        let is_plain = self.transport.is_emptied_by_short_read();
        let stands = loop {
            match self.read_once(net, buffer, who, &mut answer) {
                Ok(0) => break Ok(()),
                // Less than was asked for means that the socket is empty, but under TLS.
                Ok(came) if came < buffer.len() && !closed && is_plain => break Ok(()),
                Ok(_) => {}
                Err(fault) => break Err(fault),
            }
        };
        (answer, stands)
    }

    /// Returns how many bytes came; 0 where there were none.
    fn read_once(
        &mut self,
        net: &mut RealNet,
        buffer: &mut [u8],
        who: &Credentials,
        answer: &mut Option<Answer>,
    ) -> Result<usize, Fault> {
        let came = match self.transport.read(net, buffer) {
            Came::Bytes(came) => came,
            Came::Blocked => return Ok(0),
            Came::End(_) => return Err(Fault::ended(self.doing())),
            Came::Failed(fault) => return Err(fault),
        };
        let found = if self.partial.is_empty() {
            let (used, found) = self.take_packets(net, &buffer[..came], who)?;
            self.partial.extend_from_slice(&buffer[used..came]);
            found
        } else {
            let mut bytes = std::mem::take(&mut self.partial);
            bytes.extend_from_slice(&buffer[..came]);
            let (used, found) = self.take_packets(net, &bytes, who)?;
            bytes.drain(..used);
            // An idle connection keeps no buffer.
            self.partial = if bytes.is_empty() { Vec::new() } else { bytes };
            found
        };
        if found.is_some() {
            let is_second = answer.is_some();
            *answer = found;
            if is_second || !self.partial.is_empty() {
                return Err(Fault::protocol(format!(
                    "the server sent {} bytes behind the end of a reply",
                    self.partial.len()
                )));
            }
        }
        Ok(came)
    }

    fn doing(&self) -> &'static str {
        match self.state {
            State::Connecting | State::LoggingIn(_) => "during the login",
            State::Idle => "while it was idle",
            _ => "during a statement",
        }
    }

    /// Deals with the packets at the front of `bytes`; returns how many bytes were used.
    fn take_packets(
        &mut self,
        net: &mut RealNet,
        bytes: &[u8],
        who: &Credentials,
    ) -> Result<(usize, Option<Answer>), Fault> {
        let mut at = 0;
        loop {
            let rest = &bytes[at..];
            let Some(header) = Header::read(rest) else {
                return Ok((at, None));
            };
            let Some(payload) = rest.get(HEADER_LEN..HEADER_LEN + header.len) else {
                return Ok((at, None));
            };
            at += HEADER_LEN + header.len;
            if self.is_asking() && header.seq != self.seq {
                return Err(Fault::protocol(format!(
                    "packets out of order: expected number {} from the server, got {}",
                    self.seq, header.seq
                )));
            }
            self.seq = header.seq.wrapping_add(1);
            if let Some(answer) = self.on_packet(net, header, payload, who)? {
                return Ok((at, Some(answer)));
            }
        }
    }

    fn on_packet(
        &mut self,
        net: &mut RealNet,
        header: Header,
        payload: &[u8],
        who: &Credentials,
    ) -> Result<Option<Answer>, Fault> {
        match &mut self.state {
            State::LoggingIn(login) => {
                let mut out = Vec::new();
                let progress = login.on_packet(&who.account(), header.seq, payload, &mut out)?;
                self.send(net, &out)?;
                if progress == Progress::Waits {
                    return Ok(None);
                }
                self.state = State::Idle;
                Ok(Some(Answer::Connected))
            }
            State::Connecting | State::Idle => Err(match payload.first() {
                Some(&wire::reply::ERR) => Fault::server(&wire::reply::ErrPacket::read(payload)?),
                _ => Fault::protocol(format!(
                    "the server sent {} bytes that nobody asked for",
                    payload.len()
                )),
            }),
            State::Querying | State::Preparing(_) | State::Executing => self.on_reply(payload),
        }
    }

    fn on_reply(&mut self, payload: &[u8]) -> Result<Option<Answer>, Fault> {
        let is_binary = matches!(self.state, State::Executing);
        let is_prepare = matches!(self.state, State::Preparing(_));
        match self.reply.advance(payload.len(), payload)? {
            Step::Row => self.keep_row(payload)?,
            // No script gets at so long a row; what would be kept of it counts all the same.
            Step::Continuation => self.check_room(payload.len())?,
            Step::Definition { .. } if is_binary => self.keep_type(payload)?,
            Step::Definition { .. } if !is_prepare => self.rows.columns += 1,
            Step::Columns(_) => {
                self.rows = Rows {
                    is_binary,
                    ..Rows::default()
                };
            }
            Step::Ok(ok) => self.done.get_or_insert_default().affected_rows += ok.affected_rows,
            Step::End(_) => self.end_result()?,
            Step::Err(err) => {
                let fault = Fault::server(&err);
                self.done = None;
                let state = std::mem::replace(&mut self.state, State::Idle);
                return Ok(Some(match state {
                    State::Preparing(text) if fault.code == UNSUPPORTED_PS => self.keep_text(&text),
                    _ => Answer::Failed(fault),
                }));
            }
            Step::File => {
                let what = "the server asks for a local file, which no script offers here";
                return Err(Fault::protocol(what.to_owned()));
            }
            Step::Prepared(prepared) => {
                let verb = match &self.state {
                    State::Preparing(text) => Verb::of_bytes(text.as_bytes()),
                    _ => Verb::Other,
                };
                self.statements.push(Prepared::Server {
                    id: prepared.id,
                    verb,
                    values: prepared.params,
                });
            }
            Step::Cut
            | Step::Text
            | Step::Definition { .. }
            | Step::DefinitionsEnd(_)
            | Step::CursorOpen(_) => {}
        }
        if !self.reply.is_done() {
            return Ok(None);
        }
        let state = std::mem::replace(&mut self.state, State::Idle);
        Ok(Some(match state {
            State::Preparing(_) => Answer::Prepared(self.next_statement() - 1),
            _ => Answer::Done(self.done.take().map_or_else(Done::default, |done| *done)),
        }))
    }

    /// True if so many more bytes of the present reply are kept.
    fn check_room(&self, more: usize) -> Result<(), Fault> {
        let before = self.done.as_ref().map_or(0, |done| done.kept);
        match before + self.rows.bytes.len() + more > RESULT_MAX {
            true => Err(too_much()),
            false => Ok(()),
        }
    }

    fn keep_row(&mut self, payload: &[u8]) -> Result<(), Fault> {
        self.check_room(payload.len() + size_of::<u32>())?;
        let bytes = &mut self.rows.bytes;
        let len = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        bytes.extend_from_slice(&len.to_le_bytes());
        bytes.extend_from_slice(payload);
        self.rows.count += 1;
        Ok(())
    }

    /// Keeps a column's type and flags, by which its values are read.
    fn keep_type(&mut self, payload: &[u8]) -> Result<(), Fault> {
        let mut reader = wire::packet::Reader::new(payload);
        for _ in 0..6 {
            reader.lenenc_bytes("a name in a column's definition")?;
        }
        reader.lenenc("the length of a column's definition")?;
        reader.bytes(6, "a column's character set and length")?;
        let kind = reader.u8("a column's type")?;
        let flags = reader.u16("a column's flags")?;
        self.check_room(2)?;
        self.rows.columns += 1;
        // Of the flags only "unsigned" is looked at.
        self.rows.bytes.push(kind);
        self.rows.bytes.push(u8::from(flags & 0x20 != 0));
        Ok(())
    }

    fn end_result(&mut self) -> Result<(), Fault> {
        let rows = std::mem::take(&mut self.rows);
        let done = self.done.get_or_insert_default();
        done.kept += rows.bytes.len();
        if done.rows.is_none() {
            done.rows = Some(rows);
        } else if done.more.len() < RESULTS_MAX {
            done.more.push(rows);
        } else {
            return Err(too_much());
        }
        Ok(())
    }
}

fn too_much() -> Fault {
    Fault::protocol(format!(
        "a statement returned more than {} MiB or {RESULTS_MAX} results, the most that is kept for \
         a script: let it ask for less",
        RESULT_MAX >> 20
    ))
}

/// Appends the arguments of COM_STMT_EXECUTE: no cursor, one execution, NULLs, types, values.
fn put_execution(out: &mut Vec<u8>, id: u32, values: &[Value<'_>]) {
    out.extend_from_slice(&id.to_le_bytes());
    out.extend_from_slice(&[0, 1, 0, 0, 0]);
    if values.is_empty() {
        return;
    }
    let nulls = out.len();
    out.resize(nulls + values.len().div_ceil(8), 0);
    out.push(NEW_TYPES);
    for (at, value) in values.iter().enumerate() {
        if matches!(value, Value::Null) {
            out[nulls + at / 8] |= 1 << (at % 8);
        }
        out.push(match value {
            Value::Null => 0x06,
            Value::Integer(_) => 0x08,
            Value::Double(_) => 0x05,
            Value::Text(_) => 0xFD,
        });
        out.push(0);
    }
    for value in values {
        match value {
            Value::Null => {}
            Value::Integer(number) => out.extend_from_slice(&number.to_le_bytes()),
            Value::Double(number) => out.extend_from_slice(&number.to_le_bytes()),
            Value::Text(text) => wire::packet::put_lenenc_bytes(out, text),
        }
    }
}

/// The pieces of a statement between its `?`.
fn cut(text: &str) -> Box<[Box<str>]> {
    use sql::lex::{Kind, LexMode, Lexer};
    let mut pieces = Vec::new();
    let mut from = 0;
    for token in Lexer::new(text.as_bytes(), LexMode::default()) {
        if token.kind == Kind::Punct(b'?') {
            pieces.push(text[from..token.start].into());
            from = token.start + 1;
        }
    }
    pieces.push(text[from..].into());
    pieces.into_boxed_slice()
}

/// Appends a statement with its values in their places.
fn put_as_text(out: &mut Vec<u8>, pieces: &[Box<str>], values: &[Value<'_>]) {
    for (at, piece) in pieces.iter().enumerate() {
        out.extend_from_slice(piece.as_bytes());
        if at + 1 == pieces.len() {
            break;
        }
        match values.get(at).copied().unwrap_or(Value::Null) {
            Value::Null => out.extend_from_slice(b"NULL"),
            Value::Integer(number) => out.extend_from_slice(number.to_string().as_bytes()),
            Value::Double(number) => out.extend_from_slice(number.to_string().as_bytes()),
            Value::Text(text) => {
                out.push(b'\'');
                for &byte in text {
                    match byte {
                        0 => out.extend_from_slice(b"\\0"),
                        b'\n' => out.extend_from_slice(b"\\n"),
                        b'\r' => out.extend_from_slice(b"\\r"),
                        0x1A => out.extend_from_slice(b"\\Z"),
                        b'\'' | b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
                        _ => out.push(byte),
                    }
                }
                out.push(b'\'');
            }
        }
    }
}

impl Rows {
    /// The values of the row at `at` and where the next one begins; `None` behind the last.
    pub(super) fn row(
        bytes: &[u8],
        at: usize,
        columns: usize,
        is_binary: bool,
        mut value: impl FnMut(Option<&[u8]>),
    ) -> Option<usize> {
        let from = if at == 0 && is_binary {
            columns * 2
        } else {
            at
        };
        let len = bytes.get(from..from + 4)?.try_into().ok()?;
        let len = u32::from_le_bytes(len) as usize;
        let row = bytes.get(from + 4..from + 4 + len)?;
        let read = match is_binary {
            true => binary_row(row, &bytes[..columns * 2], &mut value),
            false => text_row(row, columns, &mut value),
        };
        read.ok()?;
        Some(from + 4 + len)
    }
}

fn text_row(
    row: &[u8],
    columns: usize,
    value: &mut impl FnMut(Option<&[u8]>),
) -> Result<(), wire::packet::Malformed> {
    let mut reader = wire::packet::Reader::new(row);
    for _ in 0..columns {
        let mut probe = reader;
        if probe.u8("a value")? == 0xFB {
            reader = probe;
            value(None);
        } else {
            value(Some(reader.lenenc_bytes("a value")?));
        }
    }
    Ok(())
}

fn binary_row(
    row: &[u8],
    types: &[u8],
    value: &mut impl FnMut(Option<&[u8]>),
) -> Result<(), wire::packet::Malformed> {
    let columns = types.len() / 2;
    let mut reader = wire::packet::Reader::new(row);
    reader.u8("a binary row")?;
    // The first two bits are not used.
    let nulls = reader.bytes((columns + 9) / 8, "a map of NULLs")?;
    for at in 0..columns {
        let bit = at + 2;
        if nulls[bit / 8] & (1 << (bit % 8)) != 0 {
            value(None);
            continue;
        }
        let (kind, is_unsigned) = (types[at * 2], types[at * 2 + 1] != 0);
        let text = match kind {
            0x01 => number(reader.bytes(1, "a number")?, is_unsigned),
            0x02 | 0x0D => number(reader.bytes(2, "a number")?, is_unsigned),
            0x03 | 0x09 => number(reader.bytes(4, "a number")?, is_unsigned),
            0x08 => number(reader.bytes(8, "a number")?, is_unsigned),
            0x04 => f32::from_bits(reader.u32("a float")?).to_string(),
            0x05 => {
                let bytes = reader.bytes(8, "a double")?;
                f64::from_le_bytes(bytes.try_into().unwrap_or_default()).to_string()
            }
            0x07 | 0x0A | 0x0C => {
                let len = reader.u8("a date")?;
                date(reader.bytes(len.into(), "a date")?, kind == 0x0A)
            }
            0x0B => {
                let len = reader.u8("a time")?;
                time(reader.bytes(len.into(), "a time")?)
            }
            _ => {
                value(Some(reader.lenenc_bytes("a value")?));
                continue;
            }
        };
        value(Some(text.as_bytes()));
    }
    Ok(())
}

fn number(bytes: &[u8], is_unsigned: bool) -> String {
    let is_negative = !is_unsigned && bytes.last().is_some_and(|byte| byte & 0x80 != 0);
    let mut wide = [if is_negative { 0xFF } else { 0 }; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    match is_unsigned {
        true => u64::from_le_bytes(wide).to_string(),
        false => i64::from_le_bytes(wide).to_string(),
    }
}

fn date(bytes: &[u8], is_short: bool) -> String {
    let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
    let year = u16::from_le_bytes([byte(0), byte(1)]);
    let mut text = format!("{year:04}-{:02}-{:02}", byte(2), byte(3));
    if !is_short {
        text += &format!(" {:02}:{:02}:{:02}", byte(4), byte(5), byte(6));
    }
    text + &micros(bytes.get(7..11))
}

fn time(bytes: &[u8]) -> String {
    let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
    let days = u32::from_le_bytes([byte(1), byte(2), byte(3), byte(4)]);
    let hours = u64::from(days) * 24 + u64::from(byte(5));
    let sign = if byte(0) != 0 { "-" } else { "" };
    format!("{sign}{hours:02}:{:02}:{:02}", byte(6), byte(7)) + &micros(bytes.get(8..12))
}

fn micros(bytes: Option<&[u8]>) -> String {
    let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
    bytes.map_or_else(String::new, |bytes| {
        format!(".{:06}", u32::from_le_bytes(bytes))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use load_core::transport::Security;

    fn row(rows: &Rows, at: usize) -> Option<(usize, Vec<Option<String>>)> {
        let mut values = Vec::new();
        let columns = rows.columns as usize;
        let next = Rows::row(&rows.bytes, at, columns, rows.is_binary, |value| {
            values.push(value.map(|v| String::from_utf8_lossy(v).into_owned()));
        })?;
        Some((next, values))
    }

    fn with_length(row: &[u8]) -> Vec<u8> {
        let len = u32::try_from(row.len()).unwrap();
        [&len.to_le_bytes()[..], row].concat()
    }

    /// A client that has asked, and waits for rows.
    fn asking(state: State) -> Client {
        let sock = std::fs::File::open("/dev/null").unwrap().into();
        let transport = Transport::new(sock, &Security::Plain).unwrap();
        let mut client = Client::new(transport, 0, 0, 0);
        client.state = state;
        client.reply = Reply::new(ReplyShape::Results);
        client
    }

    const COLUMN: &[u8] = b"\x03def\0\0\0\x01c\0\x0c\x3f\0\x01\0\0\0\x03\x81\0\0\0\0";
    const ANOTHER_RESULT: &[u8] = b"\xfe\0\0\x0a\0\0\0";

    /// Sends a result of so many rows; says whether it was taken.
    fn hear_result(client: &mut Client, row: &[u8], rows: usize) -> Result<(), Fault> {
        for packet in [&b"\x01"[..], COLUMN].into_iter().chain(vec![row; rows]) {
            assert!(client.on_reply(packet)?.is_none());
        }
        client.on_reply(ANOTHER_RESULT).map(|_| ())
    }

    #[test]
    fn what_is_kept_of_a_reply_is_bounded_over_all_its_results() {
        let row = vec![b'x'; (8 << 20) - size_of::<u32>()];
        let mut client = asking(State::Querying);
        for _ in 0..2 {
            hear_result(&mut client, &row, 4).unwrap();
        }
        let done = client.done.as_ref().unwrap();
        assert_eq!((done.kept, done.more.len()), (RESULT_MAX, 1));
        let fault = hear_result(&mut client, b"\x01x", 1).unwrap_err();
        assert!(fault.message.contains("64 MiB"), "{}", fault.message);
    }

    #[test]
    fn the_results_of_a_statement_are_counted() {
        let mut client = asking(State::Querying);
        for _ in 0..=RESULTS_MAX {
            hear_result(&mut client, b"\x01x", 1).unwrap();
        }
        let fault = hear_result(&mut client, b"\x01x", 1).unwrap_err();
        assert!(fault.message.contains("1024 results"), "{}", fault.message);
    }

    #[test]
    fn text_rows_are_read_one_after_the_other() {
        let bytes = [
            with_length(b"\x011\xfb\x02ab"),
            with_length(b"\x00\x01x\xfb"),
        ]
        .concat();
        let rows = Rows {
            count: 2,
            columns: 3,
            bytes,
            is_binary: false,
        };
        let (next, first) = row(&rows, 0).unwrap();
        assert_eq!(first, [Some("1".into()), None, Some("ab".into())]);
        let (end, second) = row(&rows, next).unwrap();
        assert_eq!(second, [Some(String::new()), Some("x".into()), None]);
        assert_eq!(row(&rows, end), None);
    }

    #[test]
    fn binary_rows_become_the_text_that_a_query_would_have_returned() {
        let types = [0x08, 0, 0x03, 0, 0x01, 1, 0xFD, 0, 0x0C, 0, 0x05, 0];
        let mut payload = vec![0, 0b0000_1000];
        payload.extend_from_slice(&(-5i64).to_le_bytes());
        // The second column is NULL.
        payload.push(200);
        payload.extend_from_slice(b"\x02hi");
        payload.extend_from_slice(&[7, 0xEA, 7, 11, 22, 8, 40, 3]);
        payload.extend_from_slice(&1.5f64.to_le_bytes());
        let bytes = [&types[..], &with_length(&payload)].concat();
        let rows = Rows {
            count: 1,
            columns: 6,
            bytes,
            is_binary: true,
        };
        let (end, values) = row(&rows, 0).unwrap();
        let expected = ["-5", "", "200", "hi", "2026-11-22 08:40:03", "1.5"];
        for (at, (value, expected)) in values.iter().zip(expected).enumerate() {
            assert_eq!(value.as_deref(), (at != 1).then_some(expected));
        }
        assert_eq!(row(&rows, end), None);
    }

    #[test]
    fn values_go_where_the_question_marks_are() {
        let pieces = cut("SELECT '?', a FROM t WHERE b=? AND c = ? -- ?");
        assert_eq!(pieces.len(), 3);
        let mut text = Vec::new();
        put_as_text(
            &mut text,
            &pieces,
            &[Value::Integer(7), Value::Text(b"it's")],
        );
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text, "SELECT '?', a FROM t WHERE b=7 AND c = 'it\\'s' -- ?");
    }

    #[test]
    fn an_execution_has_nulls_types_and_values() {
        let mut out = Vec::new();
        let values = [
            Value::Integer(258),
            Value::Null,
            Value::Text(b"x"),
            Value::Double(0.5),
        ];
        put_execution(&mut out, 9, &values);
        let mut expected = vec![9, 0, 0, 0, 0, 1, 0, 0, 0, 0b10, 1];
        expected.extend_from_slice(&[8, 0, 6, 0, 0xFD, 0, 5, 0]);
        expected.extend_from_slice(&258i64.to_le_bytes());
        expected.extend_from_slice(b"\x01x");
        expected.extend_from_slice(&0.5f64.to_le_bytes());
        assert_eq!(out, expected);
    }
}
