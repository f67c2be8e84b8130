//! One connection: its login, then one statement after the other.
//!
//! Passwords are proven by `caching_sha2_password`, which all clients of today have, or by
//! `mysql_native_password` where a client begins with that. The password is known here, so the
//! quick proof is always enough, and none crosses the connection in clear.
//!
//! Invariant: each read and write has a limit of time ([`LOGIN_MAX`], [`IDLE_MAX`],
//! [`COMMAND_REST_MAX`], [`TAKE_MAX`]), whatever pieces it comes in.

use crate::answer::{Answer, Form, TEXT_COLLATION, Wrong, put_error, put_ok};
use crate::dialect::{self, Action, Asked, Names};
use crate::engine::{Engine, OWN, Who};
use crate::shares::Held;
use crate::{
    Access, Account, COMMAND_MAX, COMMAND_REST_MAX, DENIED_AFTER, IDLE_MAX, LOGIN_MAX, Refused,
    Site, TAKE_MAX, Table,
};
use reactor::Time;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use wire::auth::caching_sha2::{self, FAST_AUTH_OK};
use wire::auth::{NONCE_LEN, Nonce, Plugin, native};
use wire::capabilities as cap;
use wire::command::Command;
use wire::errors;
use wire::handshake::{AUTH_MORE, Greeting, Login, nonce_from_random, put_auth_switch};
use wire::packet::{HEADER_LEN, Header, put_packet, put_short};
use wire::status::AUTOCOMMIT;

/// Bytes of a packet that is too long, read at once.
const DISCARDED_AT_ONCE: usize = 64 * 1024;

/// Capabilities that a client may choose from.
const OFFERED: u32 = cap::LONG_PASSWORD
    | cap::FOUND_ROWS
    | cap::LONG_FLAG
    | cap::CONNECT_WITH_DB
    | cap::IGNORE_SPACE
    | cap::PROTOCOL_41
    | cap::INTERACTIVE
    | cap::TRANSACTIONS
    | cap::SECURE_CONNECTION
    | cap::MULTI_RESULTS
    | cap::PLUGIN_AUTH
    | cap::CONNECT_ATTRS
    | cap::PLUGIN_AUTH_LENENC_DATA
    | cap::DEPRECATE_EOF;

/// Nice value of a connection's thread.
const NICE: i32 = 10;

/// The version in the greeting: clients choose their first statements by its number.
pub const VERSION: &str = concat!("8.0.36-onramp-console-", env!("CARGO_PKG_VERSION"));

/// A connection's socket.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream, SocketAddr),
    Unix(UnixStream),
}

impl Stream {
    /// Another handle of the socket, for whoever may have to end it.
    pub(crate) fn copy(&self) -> io::Result<Stream> {
        Ok(match self {
            Stream::Tcp(stream, peer) => Stream::Tcp(stream.try_clone()?, *peer),
            Stream::Unix(stream) => Stream::Unix(stream.try_clone()?),
        })
    }

    /// Ends it: its thread's next read or write fails.
    pub(crate) fn end(&self) {
        let _ = match self {
            Stream::Tcp(stream, _) => stream.shutdown(Shutdown::Both),
            Stream::Unix(stream) => stream.shutdown(Shutdown::Both),
        };
    }

    fn peer(&self) -> String {
        match self {
            Stream::Tcp(_, peer) => peer.to_string(),
            Stream::Unix(_) => "localhost".to_owned(),
        }
    }

    fn host(&self) -> String {
        match self {
            Stream::Tcp(_, peer) => peer.ip().to_string(),
            Stream::Unix(_) => "localhost".to_owned(),
        }
    }

    fn set_read_limit(&self, limit: Duration) -> io::Result<()> {
        match self {
            Stream::Tcp(stream, _) => stream.set_read_timeout(Some(limit)),
            Stream::Unix(stream) => stream.set_read_timeout(Some(limit)),
        }
    }

    fn set_write_limit(&self, limit: Duration) -> io::Result<()> {
        match self {
            Stream::Tcp(stream, _) => stream.set_write_timeout(Some(limit)),
            Stream::Unix(stream) => stream.set_write_timeout(Some(limit)),
        }
    }

    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream, _) => stream.read(bytes),
            Stream::Unix(stream) => stream.read(bytes),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream, _) => stream.write(bytes),
            Stream::Unix(stream) => stream.write(bytes),
        }
    }

    /// Fills `bytes`, until this moment: who sends them one by one gets no more time.
    fn read_exact(&mut self, bytes: &mut [u8], until: Time) -> io::Result<()> {
        let mut filled = 0;
        while filled < bytes.len() {
            self.set_read_limit(rest(until)?)?;
            match self.read(&mut bytes[filled..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(more) => filled += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Sends all of it within [`TAKE_MAX`].
    fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let until = Time::now() + TAKE_MAX;
        while !bytes.is_empty() {
            self.set_write_limit(rest(until)?)?;
            match self.write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(sent) => bytes = &bytes[sent..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The next packet's payload and the number of the one that answers it. It begins and ends
    /// until these moments. `None`: it is longer than a command may be.
    fn packet(&mut self, until: Time, rest: Duration) -> io::Result<(Option<Vec<u8>>, u8)> {
        let mut header = [0; HEADER_LEN];
        self.read_exact(&mut header[..1], until)?;
        let until = until.min(Time::now() + rest);
        self.read_exact(&mut header[1..], until)?;
        let Some(header) = Header::read(&header) else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        let seq = header.seq.wrapping_add(1);
        if header.len > COMMAND_MAX {
            // Who is still writing would find the connection broken, and not hear why: the rest of
            // a packet, 16 MiB at most, is read and dropped.
            self.discard(header.len, until)?;
            return Ok((None, seq));
        }
        let mut payload = vec![0; header.len];
        self.read_exact(&mut payload, until)?;
        Ok((Some(payload), seq))
    }

    /// Reads so many bytes and keeps none.
    fn discard(&mut self, mut len: usize, until: Time) -> io::Result<()> {
        let mut dropped = vec![0; len.min(DISCARDED_AT_ONCE)];
        while len > 0 {
            let part = len.min(dropped.len());
            self.read_exact(&mut dropped[..part], until)?;
            len -= part;
        }
        Ok(())
    }
}

/// The time until then, or that it is over.
fn rest(until: Time) -> io::Result<Duration> {
    match until.since(Time::now()) {
        Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
        rest => Ok(rest),
    }
}

/// Serves one connection to its end.
pub(crate) fn attend(site: &Site, mut stream: Stream, number: u32) {
    // Whoever is gone needs no answer, and nothing here is worth a line of the log.
    let _ = serve(site, &mut stream, number);
    stream.end();
}

fn serve(site: &Site, stream: &mut Stream, number: u32) -> io::Result<()> {
    // Statements of the pool's clients go first.
    let _ = rustix::process::setpriority_process(None, NICE);
    let Some((account, form, schema)) = log_in(site, stream, number)? else {
        return Ok(());
    };
    let who = Who {
        user: format!("{}@{}", account.name, stream.host()),
        id: number,
        version: VERSION.to_owned(),
    };
    let engine = match Engine::new(site.source.clone(), &who) {
        Ok(engine) => engine,
        Err(error) => {
            let words = format!("the console cannot make its tables: {error}");
            let mut out = Vec::new();
            put_error(&mut out, 0, errors::UNKNOWN_ERROR, &words);
            return stream.write_all(&out);
        }
    };
    let session = Session {
        site,
        account,
        form,
        engine,
    };
    session.use_schema_of_login(&schema);
    loop {
        let (payload, seq) = stream.packet(Time::now() + IDLE_MAX, COMMAND_REST_MAX)?;
        let mut out = Vec::new();
        let Some(payload) = payload else {
            let words = format!("Got a packet bigger than {COMMAND_MAX} bytes");
            put_error(&mut out, seq, errors::NET_PACKET_TOO_LARGE, &words);
            return stream.write_all(&out);
        };
        let Some(answered) = session.command(&payload, seq, &mut out) else {
            return Ok(());
        };
        let sent = stream.write_all(&out);
        if let Some(action) = &answered.done {
            site.source.has_answered(action);
        }
        sent?;
    }
}

/// The exchange of a login: the account, how it wants answers, and the schema that it names.
/// `None`: it has failed, and the client knows.
fn log_in<'s>(
    site: &'s Site,
    stream: &mut Stream,
    number: u32,
) -> io::Result<Option<(&'s Account, Form, String)>> {
    let until = Time::now() + LOGIN_MAX;
    let nonce = fresh_nonce()?;
    let mut out = Vec::new();
    let greeting = Greeting {
        version: VERSION.into(),
        connection_id: number,
        nonce,
        capabilities: OFFERED,
        extended: 0,
        collation: TEXT_COLLATION,
        status: AUTOCOMMIT,
        plugin: Plugin::CachingSha2.name().into(),
    };
    greeting.put(&mut out);
    stream.write_all(&out)?;
    let (payload, mut seq) = stream.packet(until, LOGIN_MAX)?;
    let refuse = |stream: &mut Stream, seq: u8, code, words: &str| {
        let mut out = Vec::new();
        put_error(&mut out, seq, code, words);
        stream.write_all(&out).map(|()| None)
    };
    let payload = payload.unwrap_or_default();
    let login = match Login::read(&payload) {
        Ok(login) => login,
        Err(error) => {
            let words = format!("Bad handshake: {error}");
            return refuse(stream, seq, errors::HANDSHAKE, &words);
        }
    };
    if login.capabilities & cap::PROTOCOL_41 == 0 {
        let words = "Bad handshake: the client must speak the protocol of MySQL 4.1 or later";
        return refuse(stream, seq, errors::HANDSHAKE, words);
    }
    let (mut plugin, mut nonce) = (Plugin::from_name(login.plugin), nonce);
    let mut proof = login.answer.to_vec();
    if plugin.is_none() {
        nonce = fresh_nonce()?;
        let mut out = Vec::new();
        put_auth_switch(&mut out, seq, Plugin::CachingSha2.name(), &nonce);
        stream.write_all(&out)?;
        let (answer, next) = stream.packet(until, LOGIN_MAX)?;
        (proof, seq) = (answer.unwrap_or_default(), next);
        plugin = Some(Plugin::CachingSha2);
    }
    let account = site
        .accounts
        .iter()
        .find(|account| account.name.as_bytes() == login.user);
    let plugin = plugin.unwrap_or(Plugin::CachingSha2);
    let right = proves(account, plugin, &proof, &nonce);
    let name = String::from_utf8_lossy(login.user);
    site.source.logged_in(&name, &stream.peer(), right);
    let Some(account) = account.filter(|_| right) else {
        reactor::pause(DENIED_AFTER);
        let using = if proof.is_empty() { "NO" } else { "YES" };
        let words = format!(
            "Access denied for user '{name}'@'{}' (using password: {using})",
            stream.host()
        );
        return refuse(stream, seq, errors::ACCESS_DENIED, &words);
    };
    // In front of the answer: who has it may count on it.
    site.note_login(number);
    let mut out = Vec::new();
    if plugin == Plugin::CachingSha2 {
        put_short(&mut out, seq, |out| {
            out.extend_from_slice(&[AUTH_MORE, FAST_AUTH_OK])
        });
        seq = seq.wrapping_add(1);
    }
    put_ok(&mut out, seq, "");
    stream.write_all(&out)?;
    let form = Form {
        deprecate_eof: login.capabilities & cap::DEPRECATE_EOF != 0,
    };
    let schema = String::from_utf8_lossy(login.schema).into_owned();
    Ok(Some((account, form, schema)))
}

fn fresh_nonce() -> io::Result<Nonce> {
    let mut random = [0; NONCE_LEN];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    Ok(nonce_from_random(random))
}

/// True if the proof is that of the account; takes the same steps where there is none.
fn proves(account: Option<&Account>, plugin: Plugin, proof: &[u8], nonce: &Nonce) -> bool {
    let password = account.map_or(&b"?"[..], |account| &account.password);
    let right = match plugin {
        Plugin::CachingSha2 => caching_sha2::verify(proof, nonce, &caching_sha2::cached(password)),
        Plugin::Native => native::verify(proof, nonce, &native::stored(password)),
    };
    right && account.is_some() && !password.is_empty()
}

/// Rest of an answer until it is sent.
struct Answered {
    /// Its memory; dropped with it.
    _held: Held,
    /// The command that was carried out.
    done: Option<Action>,
}

struct Session<'s> {
    site: &'s Site,
    account: &'s Account,
    form: Form,
    engine: Engine,
}

impl Session<'_> {
    /// Answers one command. `None`: the client has said that it leaves.
    fn command(&self, payload: &[u8], seq: u8, out: &mut Vec<u8>) -> Option<Answered> {
        let mut done = None;
        let mut held = Held::none(self.site.answers.clone());
        let (byte, arguments) = match payload.split_first() {
            Some((byte, arguments)) => (*byte, arguments),
            None => (0, payload),
        };
        match Command::from_byte(byte) {
            Some(Command::Quit) => return None,
            Some(Command::Query) => done = self.query(arguments, seq, out, &mut held),
            Some(Command::InitDb) => self.init_db(arguments, seq, out),
            Some(
                Command::Ping
                | Command::ResetConnection
                | Command::SetOption
                | Command::Refresh
                | Command::Debug,
            ) => put_ok(out, seq, ""),
            Some(Command::Statistics) => {
                put_packet(out, seq, self.site.source.summary().as_bytes());
            }
            Some(Command::StmtClose | Command::StmtSendLongData) => {}
            Some(Command::StmtPrepare) => put_error(
                out,
                seq,
                errors::UNSUPPORTED_PREPARED,
                "the console has no prepared statements; send the text (COM_QUERY)",
            ),
            _ => put_error(
                out,
                seq,
                errors::UNKNOWN_COM,
                "the console knows COM_QUERY, COM_PING, COM_INIT_DB, COM_STATISTICS and COM_QUIT",
            ),
        }
        Some(Answered { _held: held, done })
    }

    /// Lends the session's names to a function.
    fn with_names<T>(&self, ask: impl FnOnce(&Names<'_>) -> T) -> T {
        let source = &self.site.source;
        let tables: Vec<Table> = source.tables().iter().chain(OWN).copied().collect();
        ask(&Names {
            tables: &tables,
            schema: self.engine.schema(),
            variables: &source.variables(),
            settings: &|name| source.is_setting(name),
        })
    }

    /// Tools name the schema that their usual server has, so one that is not here is passed over.
    fn use_schema_of_login(&self, named: &str) {
        if let Ok(schema) = self.with_names(|names| names.schema(named)) {
            self.engine.use_schema(schema);
        }
    }

    fn init_db(&self, named: &[u8], seq: u8, out: &mut Vec<u8>) {
        let named = String::from_utf8_lossy(named);
        match self.with_names(|names| names.schema(&named)) {
            Ok(schema) => {
                self.engine.use_schema(schema);
                put_ok(out, seq, "");
            }
            Err(Wrong { code, words }) => put_error(out, seq, code, &words),
        }
    }

    /// Answers a text; the command that it was, if that was carried out.
    fn query(&self, text: &[u8], seq: u8, out: &mut Vec<u8>, held: &mut Held) -> Option<Action> {
        let source = &self.site.source;
        match self.with_names(|names| dialect::read(text, names)) {
            Err(Wrong { code, words }) => put_error(out, seq, code, &words),
            Ok(Asked::Nothing) => put_ok(out, seq, ""),
            Ok(Asked::Use(schema)) => {
                self.engine.use_schema(schema);
                put_ok(out, seq, "");
            }
            Ok(Asked::Act(_)) if self.account.access == Access::Read => put_error(
                out,
                seq,
                errors::SPECIFIC_ACCESS_DENIED,
                &format!(
                    "Access denied; the console's account '{}' may only read",
                    self.account.name
                ),
            ),
            Ok(Asked::Act(action)) => match source.act(&self.account.name, &action) {
                Ok(done) => {
                    match (&action, done.split_once(": ")) {
                        // It is what was asked for, and few clients show what an OK says.
                        (Action::Route(_), Some((server, why))) => {
                            let text = |it: &str| it.replace('\'', "''");
                            let (server, why) = (text(server), text(why));
                            let row = format!("SELECT '{server}' AS server, '{why}' AS why");
                            self.rows(seq, out, held, |answer| self.engine.run(&row, answer));
                        }
                        _ => put_ok(out, seq, &done),
                    }
                    return Some(action);
                }
                Err(why) => {
                    let code = match why {
                        Refused::UnknownClient(..) => errors::NO_SUCH_THREAD,
                        Refused::Late(_) => errors::QUERY_TIMEOUT,
                        Refused::Because(_) => errors::UNKNOWN_ERROR,
                    };
                    put_error(out, seq, code, &why.to_string());
                }
            },
            Ok(Asked::Rows(text)) => {
                self.rows(seq, out, held, |answer| self.engine.run(&text, answer));
            }
            Ok(Asked::All(table)) => {
                self.rows(seq, out, held, |answer| self.engine.list(&table, answer));
            }
        }
        None
    }

    /// Answers with the rows that something writes, or with what it says is wrong.
    fn rows(
        &self,
        seq: u8,
        out: &mut Vec<u8>,
        held: &mut Held,
        write: impl FnOnce(Answer<'_>) -> Result<(), Wrong>,
    ) {
        let Some(_place) = self.site.statements.place(self.account.access) else {
            let words = "other statements are running at the console, and none has ended";
            return put_error(out, seq, errors::QUERY_TIMEOUT, words);
        };
        let start = out.len();
        if let Err(Wrong { code, words }) = write(Answer::new(out, seq, self.form, held)) {
            out.truncate(start);
            put_error(out, seq, code, &words);
        }
    }
}
