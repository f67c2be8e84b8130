//! A client's side of a connection, without the connection: bytes in, bytes out.
//!
//! [`Talk`] logs in (native or caching_sha2, with RSA where the server asks for the password),
//! sends commands, any number before the first reply, and checks of every packet that its sequence
//! number is the one that must come. What it receives are [`Happened`]s in order.

use crate::reply::{Assembler, Column, Failure, Outcome, Progress};
use std::collections::VecDeque;
use wire::attributes::{Form, put_reworded};
use wire::auth::caching_sha2::{self, FAST_AUTH_OK, FULL_AUTH, REQUEST_PUBLIC_KEY};
use wire::auth::{Nonce, Plugin};
use wire::capabilities as cap;
use wire::command::{Command, ReplyShape, put_command};
use wire::execution::CURSOR_FLAGS;
use wire::handshake::{AUTH_MORE, AUTH_SWITCH, AuthSwitch, Greeting, Login};
use wire::packet::{Frame, frame, join_payload, put_lenenc_bytes, put_packet};
use wire::reply::{ERR, ErrPacket, OK};

/// `utf8mb4_general_ci`.
const COLLATION: u8 = 45;
/// The type of a text as a parameter.
pub const VAR_STRING: u8 = 253;

/// Capabilities that a client asks for unless a test says otherwise: those of the common drivers.
pub const USUAL: u32 = cap::LONG_PASSWORD
    | cap::LONG_FLAG
    | cap::PROTOCOL_41
    | cap::TRANSACTIONS
    | cap::SECURE_CONNECTION
    | cap::MULTI_RESULTS
    | cap::PS_MULTI_RESULTS
    | cap::PLUGIN_AUTH
    | cap::PLUGIN_AUTH_LENENC_DATA
    | cap::SESSION_TRACK
    | cap::DEPRECATE_EOF;

/// Account and manner of a login.
#[derive(Clone, Debug)]
pub struct Account {
    /// The name.
    pub user: String,
    /// The password.
    pub password: String,
    /// The schema at login.
    pub schema: Option<String>,
    /// Capabilities that the client asks for; those that the server does not offer are left out.
    pub capabilities: u32,
    /// MariaDB's extended capabilities that it asks for; they turn LONG_PASSWORD off.
    pub extended: u32,
    /// The plugin of the first answer; `None` takes the server's.
    pub plugin: Option<Plugin>,
    /// The collation's number. A login has room for its low byte alone, a change of user for both.
    pub collation: u16,
    /// The level of zstd, with that capability.
    pub zstd_level: u8,
    /// Under TLS, nothing newer than TLS 1.2 is spoken.
    pub tls12: bool,
}

impl Account {
    /// A name and a password, and the usual capabilities; with `ONRAMP_E2E_TLS` set, TLS where it
    /// is offered.
    #[must_use]
    pub fn new(user: &str, password: &str) -> Account {
        Account {
            user: user.into(),
            password: password.into(),
            schema: None,
            capabilities: match std::env::var_os("ONRAMP_E2E_TLS") {
                Some(_) => USUAL | cap::SSL,
                None => USUAL,
            },
            extended: 0,
            plugin: None,
            collation: COLLATION.into(),
            zstd_level: 3,
            tls12: false,
        }
    }

    /// The account with a schema.
    #[must_use]
    pub fn schema(mut self, schema: &str) -> Account {
        self.schema = Some(schema.into());
        self
    }

    /// The account with the collation of this number.
    #[must_use]
    pub fn speaking(mut self, collation: u16) -> Account {
        self.collation = collation;
        self
    }

    /// The account with more capabilities.
    #[must_use]
    pub fn with(mut self, capabilities: u32) -> Account {
        self.capabilities |= capabilities;
        self
    }

    /// The account with TLS 1.2 at most.
    #[must_use]
    pub fn tls12(mut self) -> Account {
        self.tls12 = true;
        self
    }

    /// The account with extended capabilities.
    #[must_use]
    pub fn extended(mut self, extended: u32) -> Account {
        self.extended |= extended;
        self
    }

    /// The account with fewer capabilities.
    #[must_use]
    pub fn without(mut self, capabilities: u32) -> Account {
        self.capabilities &= !capabilities;
        self
    }

    /// The account that answers with this plugin first.
    #[must_use]
    pub fn plugin(mut self, plugin: Plugin) -> Account {
        self.plugin = Some(plugin);
        self
    }
}

/// Event that a client sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happened {
    /// Logged in.
    In,
    /// Not let in, or told to go without having asked; the connection ends.
    Refused(Failure),
    /// The reply to the oldest unanswered command is complete.
    Reply(Vec<Outcome>),
    /// The server wants this file: [`Talk::file`] sends it.
    FileWanted(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Greeting,
    Answered(Plugin),
    Key,
    In,
    Refused,
}

#[derive(Clone, Debug)]
struct Expected {
    assembler: Assembler,
    seq: u8,
    /// COM_CHANGE_USER: where the authentication before its OK stands.
    login: Option<Phase>,
}

/// Header of a text with these attributes, as texts.
fn header_of(attributes: &[(String, String)]) -> Vec<u8> {
    let mut out = vec![u8::try_from(attributes.len()).expect("a few"), 1];
    if attributes.is_empty() {
        return out;
    }
    out.resize(out.len() + attributes.len().div_ceil(8), 0);
    out.push(1);
    for (name, _) in attributes {
        out.extend_from_slice(&[VAR_STRING, 0]);
        put_lenenc_bytes(&mut out, name.as_bytes());
    }
    for (_, value) in attributes {
        put_lenenc_bytes(&mut out, value.as_bytes());
    }
    out
}

/// One connection's conversation.
#[derive(Clone, Debug)]
pub struct Talk {
    account: Account,
    secure: bool,
    phase: Phase,
    nonce: Nonce,
    /// Bytes have been sent past it.
    raw: bool,
    seq: u8,
    input: Vec<u8>,
    read: usize,
    expected: VecDeque<Expected>,
    /// Capabilities of both sides, once the greeting is there.
    pub capabilities: u32,
    /// MariaDB's extended capabilities of both sides.
    pub extended: u32,
    /// The server's greeting, once it is there.
    pub greeting: Option<Greeting>,
    /// The OK packet that ended the login, once it is there.
    pub let_in: Vec<u8>,
    /// Number of logins over RSA or in clear.
    pub full_authentications: u32,
    /// Query attributes of the next COM_QUERY or execution, and of no other; sent where both
    /// sides agreed on such.
    pub attributes: Vec<(String, String)>,
}

impl Talk {
    /// A conversation about to begin; `secure`: over a Unix socket.
    #[must_use]
    pub fn new(account: Account, secure: bool) -> Talk {
        Talk {
            account,
            secure,
            phase: Phase::Greeting,
            nonce: [0; 20],
            raw: false,
            seq: 0,
            input: Vec::new(),
            read: 0,
            expected: VecDeque::new(),
            capabilities: 0,
            extended: 0,
            greeting: None,
            let_in: Vec::new(),
            full_authentications: 0,
            attributes: Vec::new(),
        }
    }

    /// Marks the conversation as under TLS behind the greeting, which is to be fed with the next
    /// number.
    pub fn is_under_tls(&mut self) {
        self.secure = true;
        self.seq = 1;
    }

    /// Bytes came.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.read > 0 && self.read * 2 >= self.input.len() {
            self.input.drain(..self.read);
            self.read = 0;
        }
        self.input.extend_from_slice(bytes);
    }

    /// Replies that are outstanding.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.expected.len()
    }

    /// The next message's packets: its payload and the number of its first and last packet.
    pub fn message(&mut self) -> Result<Option<(u8, u8, Vec<u8>)>, String> {
        let input = &self.input[self.read..];
        match frame(input) {
            Frame::Partial { .. } => Ok(None),
            Frame::OutOfOrder { expected, got } => Err(format!(
                "packet number {got} continues a payload, expected {expected}"
            )),
            Frame::Whole { total, last_seq } => {
                let mut payload = Vec::with_capacity(total);
                join_payload(&input[..total], &mut payload);
                let first = input[3];
                self.read += total;
                Ok(Some((first, last_seq, payload)))
            }
        }
    }

    /// Appends a command to `out`; its reply will be a [`Happened::Reply`], empty for commands
    /// without one (which are not reported).
    pub fn command(&mut self, out: &mut Vec<u8>, command: Command, arguments: &[u8]) {
        let before = out.len();
        let mut header = Vec::new();
        if command == Command::Query && self.form() == Form::Attributed {
            header = header_of(&std::mem::take(&mut self.attributes));
            put_reworded(out, &header, arguments);
        } else {
            put_command(out, command, arguments);
        }
        let packets = (1 + header.len() + arguments.len()) / wire::packet::PAYLOAD_MAX + 1;
        debug_assert!(out.len() > before);
        let binary = matches!(
            command,
            Command::StmtExecute | Command::StmtBulkExecute | Command::StmtFetch
        );
        let flags = arguments.get(4).copied().unwrap_or_default();
        let shape = match command {
            Command::StmtExecute if flags & CURSOR_FLAGS != 0 => ReplyShape::Cursor,
            _ => command.reply(),
        };
        let assembler = Assembler::new(shape, binary, self.capabilities).extended(self.extended);
        if !assembler.is_over() {
            self.expected.push_back(Expected {
                assembler,
                seq: u8::try_from(packets % 256).unwrap(),
                login: None,
            });
        }
    }

    /// Form of COM_QUERY and COM_STMT_EXECUTE on this connection.
    #[must_use]
    pub fn form(&self) -> Form {
        Form::of(self.capabilities)
    }

    /// Sends COM_STMT_FETCH, with the columns that the execution announced.
    pub fn fetch(&mut self, out: &mut Vec<u8>, id: u32, rows: u32, columns: Vec<Column>) {
        let arguments = [id.to_le_bytes(), rows.to_le_bytes()].concat();
        self.command(out, Command::StmtFetch, &arguments);
        let last = self.expected.back_mut().expect("a fetch has a reply");
        last.assembler.expect_columns(columns);
    }

    /// Sends COM_CHANGE_USER.
    pub fn change_user(&mut self, out: &mut Vec<u8>, account: Account) {
        let plugin = account.plugin.unwrap_or(Plugin::Native);
        let mut arguments = account.user.clone().into_bytes();
        arguments.push(0);
        let answer = plugin.answer(account.password.as_bytes(), &self.nonce);
        arguments.push(u8::try_from(answer.len()).unwrap());
        arguments.extend_from_slice(&answer);
        arguments.extend_from_slice(account.schema.as_deref().unwrap_or("").as_bytes());
        arguments.push(0);
        arguments.extend_from_slice(&account.collation.to_le_bytes());
        arguments.extend_from_slice(plugin.name().as_bytes());
        arguments.push(0);
        self.account = account;
        self.command(out, Command::ChangeUser, &arguments);
        let last = self
            .expected
            .back_mut()
            .expect("a change of user has a reply");
        last.login = Some(Phase::Answered(plugin));
    }

    /// Appends a local file's packets: its content in pieces of this length, and an empty one.
    pub fn file(&mut self, out: &mut Vec<u8>, content: &[u8], piece: usize) {
        let expected = self.expected.front_mut().expect("a file was asked for");
        let mut seq = expected.seq;
        for piece in content.chunks(piece) {
            seq = put_packet(out, seq, piece);
        }
        expected.seq = put_packet(out, seq, b"");
    }

    /// Event that the bytes so far make up; the answer to it is appended to `out`.
    ///
    /// # Errors
    /// A sentence when the other side broke the protocol.
    pub fn next(&mut self, out: &mut Vec<u8>) -> Result<Option<Happened>, String> {
        while let Some((first, last, payload)) = self.message()? {
            let happened = match self.phase {
                Phase::In => self.on_reply(out, first, last, &payload)?,
                Phase::Refused => return Err(format!("bytes after the refusal: {payload:02x?}")),
                _ => {
                    if first != self.seq {
                        return Err(format!("login packet {first}, expected {}", self.seq));
                    }
                    self.seq = last.wrapping_add(1);
                    self.on_login(out, &payload)?
                }
            };
            if happened.is_some() {
                return Ok(happened);
            }
        }
        Ok(None)
    }

    fn on_reply(
        &mut self,
        out: &mut Vec<u8>,
        first: u8,
        last: u8,
        payload: &[u8],
    ) -> Result<Option<Happened>, String> {
        // A server that compresses takes its packets' numbers from the frames at times.
        let framed = self.capabilities & (cap::COMPRESS | cap::ZSTD) != 0;
        let Some(expected) = self.expected.front_mut() else {
            return match first {
                0 => self.unasked(payload),
                _ if framed || self.raw => self.unasked(payload),
                // Drivers take another number for a broken stream, and do not read the error.
                _ => Err(format!(
                    "packet {first} that nobody asked for: {payload:02x?}"
                )),
            };
        };
        if first != expected.seq && !framed {
            let wanted = expected.seq;
            return Err(format!(
                "reply packet number {first}, expected {wanted}: {payload:02x?}"
            ));
        }
        expected.seq = last.wrapping_add(1);
        let talks = matches!(payload.first(), Some(&(AUTH_SWITCH | AUTH_MORE)));
        if talks && let Some(phase) = expected.login {
            let seq = expected.seq;
            return self.change_exchange(out, phase, seq, payload);
        }
        match expected
            .assembler
            .feed(payload)
            .map_err(|e| format!("{e}: {payload:02x?}"))?
        {
            Progress::More => Ok(None),
            Progress::File(name) => Ok(Some(Happened::FileWanted(name))),
            Progress::Over => {
                let over = self.expected.pop_front().expect("there is a first");
                Ok(Some(Happened::Reply(over.assembler.into_outcomes())))
            }
        }
    }

    /// The exchange inside COM_CHANGE_USER, which runs on the command's own packet numbers; the
    /// final OK or ERR is the command's reply.
    fn change_exchange(
        &mut self,
        out: &mut Vec<u8>,
        phase: Phase,
        seq: u8,
        payload: &[u8],
    ) -> Result<Option<Happened>, String> {
        self.phase = phase;
        self.seq = seq;
        self.on_login(out, payload)?;
        if let Some(expected) = self.expected.front_mut() {
            expected.seq = self.seq;
            expected.login = Some(self.phase);
        }
        self.phase = Phase::In;
        Ok(None)
    }

    fn on_login(&mut self, out: &mut Vec<u8>, payload: &[u8]) -> Result<Option<Happened>, String> {
        let text = |error: wire::packet::Malformed| error.to_string();
        match (self.phase, payload.first().copied()) {
            (_, Some(ERR)) => {
                self.phase = Phase::Refused;
                let failure = Failure::of(&ErrPacket::read(payload).map_err(text)?);
                return Ok(Some(Happened::Refused(failure)));
            }
            (Phase::Greeting, _) => {
                let greeting = Greeting::read(payload).map_err(text)?;
                self.answer_greeting(out, greeting);
            }
            (Phase::Answered(_), Some(OK)) => {
                self.phase = Phase::In;
                self.let_in = payload.to_vec();
                return Ok(Some(Happened::In));
            }
            (_, Some(AUTH_SWITCH)) => {
                let switch = AuthSwitch::read(payload).map_err(text)?;
                let plugin = Plugin::from_name(switch.plugin).ok_or("switch to unknown plugin")?;
                self.nonce = switch.nonce().ok_or("switch without a nonce")?;
                self.phase = Phase::Answered(plugin);
                let answer = plugin.answer(self.account.password.as_bytes(), &self.nonce);
                self.put(out, &answer);
            }
            (Phase::Key, Some(AUTH_MORE)) => {
                let password = self.account.password.as_bytes();
                let sent = caching_sha2::encrypt(password, &self.nonce, &payload[1..])?;
                self.phase = Phase::Answered(Plugin::CachingSha2);
                self.put(out, &sent);
            }
            (Phase::Answered(_), Some(AUTH_MORE)) => self.more(out, &payload[1..])?,
            _ => return Err(format!("unexpected packet during login: {payload:02x?}")),
        }
        Ok(None)
    }

    fn answer_greeting(&mut self, out: &mut Vec<u8>, greeting: Greeting) {
        self.nonce = greeting.nonce;
        let offered = Plugin::from_name(&greeting.plugin).unwrap_or(Plugin::Native);
        let plugin = self.account.plugin.unwrap_or(offered);
        self.phase = Phase::Answered(plugin);
        let schema = self.account.schema.clone().unwrap_or_default();
        self.capabilities = self.account.capabilities & greeting.capabilities;
        if !schema.is_empty() {
            self.capabilities |= cap::CONNECT_WITH_DB;
        }
        self.extended = self.account.extended & greeting.extended;
        if self.extended != 0 {
            self.capabilities &= !cap::LONG_PASSWORD;
        }
        // An answer made for another plugin than the nonce's is refused or switched anyway.
        let answer = plugin.answer(self.account.password.as_bytes(), &self.nonce);
        Login {
            capabilities: self.capabilities,
            extended: self.extended,
            collation: self.account.collation.to_le_bytes()[0],
            user: self.account.user.as_bytes(),
            answer: &answer,
            schema: schema.as_bytes(),
            plugin: plugin.name().as_bytes(),
            zstd_level: self.account.zstd_level,
        }
        .put(out, self.seq);
        self.seq = self.seq.wrapping_add(1);
        self.greeting = Some(greeting);
    }

    fn more(&mut self, out: &mut Vec<u8>, data: &[u8]) -> Result<(), String> {
        match data {
            [FAST_AUTH_OK] => Ok(()),
            [FULL_AUTH] => {
                self.full_authentications += 1;
                if self.secure {
                    let password = [self.account.password.as_bytes(), b"\0"].concat();
                    self.put(out, &password);
                } else {
                    self.phase = Phase::Key;
                    self.put(out, &[REQUEST_PUBLIC_KEY]);
                }
                Ok(())
            }
            _ => Err(format!("unknown authentication data {data:02x?}")),
        }
    }

    fn put(&mut self, out: &mut Vec<u8>, payload: &[u8]) {
        self.seq = put_packet(out, self.seq, payload);
    }

    /// Notes bytes sent past it: what answers them has a number of which it knows nothing.
    pub(crate) fn note_raw(&mut self) {
        self.raw = true;
    }

    /// A server that closes a connection may say why in an ERR packet that nobody asked for.
    fn unasked(&mut self, payload: &[u8]) -> Result<Option<Happened>, String> {
        if payload.first() != Some(&ERR) {
            return Err(format!("a packet that nobody asked for: {payload:02x?}"));
        }
        let err = ErrPacket::read(payload).map_err(|error| error.to_string())?;
        self.phase = Phase::Refused;
        Ok(Some(Happened::Refused(Failure::of(&err))))
    }
}
