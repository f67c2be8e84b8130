//! A small blocking client: [`Talk`] over a socket.
//!
//! It can say anything at any time, which drivers cannot: raw bytes, several commands in one
//! write, a command without waiting. It never waits longer than [`ANSWER_MAX`].

mod executions;

pub use executions::{bulk_execution, cut_execution, execution, execution_again};

use crate::frames::Frames;
use crate::reply::{Column, Failure, Outcome, Prepared, Rows};
use crate::talk::{Account, Happened, Talk, VAR_STRING};
use crate::tls::{self, GlobalDefaults, TlsStream};
use executions::{attributed, execution_of};
use reactor::Address;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use wire::attributes::Form;
use wire::capabilities as cap;
use wire::command::Command;
use wire::packet::{HEADER_LEN, Header};

/// Nothing that the tests ask for takes longer.
pub const ANSWER_MAX: Duration = Duration::from_secs(120);

/// Reason for a missing answer.
#[derive(Debug)]
pub enum ClientError {
    /// The connection failed or ended.
    Io(io::Error),
    /// The other side refused it.
    Refused(Failure),
    /// The other side broke the protocol.
    Protocol(String),
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::Io(error) => write!(f, "connection: {error}"),
            ClientError::Refused(failure) => write!(f, "{failure}"),
            ClientError::Protocol(what) => write!(f, "protocol: {what}"),
        }
    }
}

impl std::error::Error for ClientError {}

impl From<io::Error> for ClientError {
    fn from(error: io::Error) -> Self {
        ClientError::Io(error)
    }
}

#[derive(Debug)]
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<TlsStream>),
}

impl Stream {
    fn open(address: &Address) -> io::Result<Stream> {
        match address {
            Address::Tcp(address) => {
                let stream = TcpStream::connect(address)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(ANSWER_MAX))?;
                stream.set_write_timeout(Some(ANSWER_MAX))?;
                Ok(Stream::Tcp(stream))
            }
            Address::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(ANSWER_MAX))?;
                stream.set_write_timeout(Some(ANSWER_MAX))?;
                Ok(Stream::Unix(stream))
            }
        }
    }

    fn wait_at_most(&self, limit: Duration) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.set_read_timeout(Some(limit)),
            Stream::Unix(stream) => stream.set_read_timeout(Some(limit)),
            Stream::Tls(stream) => stream.sock.set_read_timeout(Some(limit)),
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(buffer),
            Stream::Unix(stream) => stream.read(buffer),
            Stream::Tls(stream) => match stream.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
                read => read,
            },
        }
    }

    fn read_exact(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.read_exact(buffer),
            Stream::Unix(stream) => stream.read_exact(buffer),
            Stream::Tls(stream) => stream.read_exact(buffer),
        }
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.write_all(bytes),
            Stream::Unix(stream) => stream.write_all(bytes),
            Stream::Tls(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
        }
    }

    fn shutdown(&self) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Stream::Unix(stream) => stream.shutdown(Shutdown::Write),
            Stream::Tls(stream) => stream.sock.shutdown(Shutdown::Write),
        }
    }
}

/// One connection.
#[derive(Debug)]
pub struct Client {
    stream: Stream,
    talk: Talk,
    frames: Option<Frames>,
    /// Content that LOAD DATA LOCAL sends, whatever file is asked for; `None` sends an empty file.
    pub local_file: Option<Vec<u8>>,
    /// The longest piece of it that is sent as one payload, in bytes.
    pub file_piece: usize,
    /// Names of the files that were asked for.
    pub files_wanted: Vec<String>,
    /// Address to which it has connected.
    address: Address,
}

impl Client {
    /// Connects, without a word said, or only that for TLS where the account asks for it
    /// (CLIENT_SSL) and the server offers it.
    ///
    /// # Errors
    /// The system's.
    pub fn open(address: &Address, account: &Account) -> Result<Client, ClientError> {
        let secure = matches!(address, Address::Unix(_));
        let mut account = account.clone();
        if secure {
            // It goes in clear there, and must not say otherwise.
            account.capabilities &= !cap::SSL;
        }
        let mut talk = Talk::new(account.clone(), secure);
        let mut stream = Stream::open(address)?;
        if account.capabilities & cap::SSL != 0
            && let Stream::Tcp(plain) = stream
        {
            // MySQL goes by what the request says, and not by the login behind it.
            let schema = account.schema.as_ref().map_or(0, |_| cap::CONNECT_WITH_DB);
            let (greeting, begun) = tls::begin(
                plain,
                (
                    account.capabilities | schema,
                    account.extended,
                    account.collation.to_le_bytes()[0],
                ),
                account.tls12,
            )?;
            stream = match begun {
                GlobalDefaults::Plain(plain) => Stream::Tcp(plain),
                GlobalDefaults::Tls(tls) => {
                    talk.is_under_tls();
                    Stream::Tls(tls)
                }
            };
            talk.feed(&greeting);
        }
        Ok(Client {
            stream,
            talk,
            frames: None,
            local_file: None,
            file_piece: 1 << 20,
            files_wanted: Vec::new(),
            address: address.clone(),
        })
    }

    /// Connects and logs in.
    ///
    /// # Errors
    /// [`ClientError::Refused`] when the login is refused.
    pub fn connect(address: &Address, account: &Account) -> Result<Client, ClientError> {
        let mut client = Client::open(address, account)?;
        match client.wait()? {
            Happened::In => {
                let agreed = client.talk.capabilities;
                client.frames = Frames::agreed(agreed, account.zstd_level);
                Ok(client)
            }
            Happened::Refused(failure) => Err(ClientError::Refused(failure)),
            other => Err(ClientError::Protocol(format!(
                "{other:?} instead of a login"
            ))),
        }
    }

    /// Connects and sends these commands in one write with its login, before anybody has answered
    /// that. Their replies are received one by one.
    ///
    /// # Errors
    /// [`ClientError::Refused`] when the login is refused.
    pub fn connect_saying(
        address: &Address,
        account: &Account,
        commands: &[(Command, &[u8])],
    ) -> Result<Client, ClientError> {
        let mut client = Client::open(address, account)?;
        let mut out = Vec::new();
        while out.is_empty() {
            client.read_packet()?;
            client.talk.next(&mut out).map_err(ClientError::Protocol)?;
        }
        let mut frames = Frames::agreed(client.talk.capabilities, account.zstd_level);
        for (command, arguments) in commands {
            let mut said = Vec::new();
            client.talk.command(&mut said, *command, arguments);
            match &mut frames {
                Some(frames) => out.extend(frames.pack(&said, true)),
                None => out.extend(said),
            }
        }
        client.stream.write_all(&out)?;
        let happened = loop {
            // Packet by packet: what stands behind the OK of the login may be frames.
            let mut out = Vec::new();
            match client.talk.next(&mut out).map_err(ClientError::Protocol)? {
                Some(happened) => break happened,
                None => client.stream.write_all(&out)?,
            }
            client.read_packet()?;
        };
        match happened {
            Happened::In => {
                client.frames = frames;
                Ok(client)
            }
            Happened::Refused(failure) => Err(ClientError::Refused(failure)),
            other => Err(ClientError::Protocol(format!(
                "{other:?} instead of a login"
            ))),
        }
    }

    /// Reads one packet, and nothing of what follows it.
    fn read_packet(&mut self) -> Result<(), ClientError> {
        let mut packet = vec![0; HEADER_LEN];
        self.stream.read_exact(&mut packet)?;
        let len = Header::read(&packet).map_or(0, |header| header.len);
        packet.resize(HEADER_LEN + len, 0);
        self.stream.read_exact(&mut packet[HEADER_LEN..])?;
        self.talk.feed(&packet);
        Ok(())
    }

    /// Waits so long for an answer from now on, instead of [`ANSWER_MAX`].
    ///
    /// # Errors
    /// The system's.
    pub fn wait_at_most(&self, limit: Duration) -> Result<(), ClientError> {
        Ok(self.stream.wait_at_most(limit)?)
    }

    /// Its end of the connection; `None` over a Unix socket.
    #[must_use]
    pub fn local_address(&self) -> Option<SocketAddr> {
        match &self.stream {
            Stream::Tcp(stream) => stream.local_addr().ok(),
            Stream::Unix(_) => None,
            Stream::Tls(stream) => stream.sock.local_addr().ok(),
        }
    }

    /// True if it is under TLS.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        matches!(self.stream, Stream::Tls(_))
    }

    /// The conversation: capabilities, greeting.
    #[must_use]
    pub fn talk(&self) -> &Talk {
        &self.talk
    }

    /// Sends bytes as they are, in frames where compression was agreed.
    ///
    /// # Errors
    /// The system's.
    pub fn send_raw(&mut self, bytes: &[u8]) -> Result<(), ClientError> {
        self.talk.note_raw();
        self.write(bytes, true)
    }

    /// Sends so many bytes of these commands, as they go over the network; what is left of them.
    ///
    /// # Errors
    /// The system's.
    pub fn send_in_part(
        &mut self,
        commands: &[(Command, &[u8])],
        len: usize,
    ) -> Result<Vec<u8>, ClientError> {
        let mut out = Vec::new();
        for (command, arguments) in commands {
            self.talk.command(&mut out, *command, arguments);
        }
        if let Some(frames) = &mut self.frames {
            out = frames.pack(&out, true);
        }
        if let Stream::Tls(stream) = &mut self.stream {
            stream.conn.writer().write_all(&out)?;
            out.clear();
            while stream.conn.wants_write() {
                stream.conn.write_tls(&mut out)?;
            }
        }
        let rest = out.split_off(len.min(out.len()));
        self.send_rest(&out)?;
        Ok(rest)
    }

    /// Sends what [`Client::send_in_part`] has left.
    ///
    /// # Errors
    /// The system's.
    pub fn send_rest(&mut self, rest: &[u8]) -> Result<(), ClientError> {
        match &mut self.stream {
            Stream::Tls(stream) => stream.sock.write_all(rest)?,
            other => other.write_all(rest)?,
        }
        Ok(())
    }

    /// Sends bytes over the socket as they are, whatever was agreed.
    ///
    /// # Errors
    /// The system's.
    pub fn send_unframed(&mut self, bytes: &[u8]) -> Result<(), ClientError> {
        self.talk.note_raw();
        if let Some(frames) = &mut self.frames {
            frames.lost = true;
        }
        Ok(self.stream.write_all(bytes)?)
    }

    /// Frames received so far that were packed, and that were as they are.
    #[must_use]
    pub fn frames_received(&self) -> (usize, usize) {
        self.frames.as_ref().map_or((0, 0), |f| f.received)
    }

    fn write(&mut self, bytes: &[u8], begins: bool) -> Result<(), ClientError> {
        match &mut self.frames {
            Some(frames) => self.stream.write_all(&frames.pack(bytes, begins))?,
            None => self.stream.write_all(bytes)?,
        }
        Ok(())
    }

    /// True if bytes of an answer have come that nobody has read, or the connection has ended.
    ///
    /// # Errors
    /// The system's.
    pub fn has_answer(&self) -> Result<bool, ClientError> {
        self.wait_for_answer(Duration::ZERO)
    }

    /// True once there are bytes to read; false after [`ANSWER_MAX`]. Nothing is read.
    ///
    /// # Errors
    /// The system's.
    pub fn await_answer(&self) -> Result<bool, ClientError> {
        self.wait_for_answer(ANSWER_MAX)
    }

    fn wait_for_answer(&self, limit: Duration) -> Result<bool, ClientError> {
        let limit = Timespec::try_from(limit).map_err(io::Error::other)?;
        let ready = |socket: BorrowedFd| {
            let mut polled = [PollFd::from_borrowed_fd(socket, PollFlags::IN)];
            poll(&mut polled, Some(&limit))
        };
        let ready = match &self.stream {
            Stream::Tcp(stream) => ready(stream.as_fd()),
            Stream::Unix(stream) => ready(stream.as_fd()),
            Stream::Tls(stream) => ready(stream.sock.as_fd()),
        };
        Ok(ready.map_err(io::Error::from)? > 0)
    }

    /// Says that nothing more will be sent.
    ///
    /// # Errors
    /// The system's.
    pub fn end_sending(&mut self) -> Result<(), ClientError> {
        Ok(self.stream.shutdown()?)
    }

    /// Sends commands in one write; their replies are received one by one.
    ///
    /// # Errors
    /// The system's.
    pub fn send(&mut self, commands: &[(Command, &[u8])]) -> Result<(), ClientError> {
        let mut out = Vec::new();
        for (command, arguments) in commands {
            self.talk.command(&mut out, *command, arguments);
        }
        self.write(&out, true)
    }

    /// Waits for what happens next.
    ///
    /// # Errors
    /// When the connection ends or the other side breaks the protocol.
    pub fn wait(&mut self) -> Result<Happened, ClientError> {
        let mut buffer = vec![0; 256 * 1024];
        loop {
            let mut out = Vec::new();
            let happened = self.talk.next(&mut out).map_err(ClientError::Protocol)?;
            if !out.is_empty() {
                self.write(&out, false)?;
            }
            if let Some(happened) = happened {
                return Ok(happened);
            }
            let read = match self.stream.read(&mut buffer) {
                // A read with a time limit is not restarted by the kernel.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            match read {
                0 => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                n => match &mut self.frames {
                    Some(frames) => self.talk.feed(&frames.unpack(&buffer[..n])?),
                    None => self.talk.feed(&buffer[..n]),
                },
            }
        }
    }

    /// The reply to the oldest unanswered command.
    ///
    /// # Errors
    /// As [`Client::wait`].
    pub fn receive(&mut self) -> Result<Vec<Outcome>, ClientError> {
        loop {
            match self.wait()? {
                Happened::Reply(outcomes) => return Ok(outcomes),
                Happened::FileWanted(name) => {
                    self.files_wanted.push(name);
                    let mut out = Vec::new();
                    let content = self.local_file.as_deref().unwrap_or_default();
                    self.talk.file(&mut out, content, self.file_piece);
                    self.write(&out, false)?;
                }
                Happened::Refused(failure) => return Err(ClientError::Refused(failure)),
                Happened::In => return Err(ClientError::Protocol("logged in twice".into())),
            }
        }
    }

    /// Runs a command.
    ///
    /// # Errors
    /// As [`Client::wait`]; an ERR packet is an outcome, no error.
    pub fn run(&mut self, command: Command, args: &[u8]) -> Result<Vec<Outcome>, ClientError> {
        self.send(&[(command, args)])?;
        if command.reply() == wire::command::ReplyShape::None {
            return Ok(Vec::new());
        }
        self.receive()
    }

    /// Runs SQL.
    ///
    /// # Errors
    /// As [`Client::run`].
    pub fn query(&mut self, sql: &str) -> Result<Vec<Outcome>, ClientError> {
        self.run(Command::Query, sql.as_bytes())
    }

    /// The connection in words: where to, its number there, and the server's release.
    #[must_use]
    pub fn who(&self) -> String {
        match self.talk.greeting.as_ref() {
            Some(greeting) => format!(
                "connection {} to {} ({})",
                greeting.connection_id,
                self.address,
                String::from_utf8_lossy(&greeting.version)
            ),
            None => format!("a connection to {} without a greeting", self.address),
        }
    }

    /// Runs SQL that must succeed; its first outcome.
    ///
    /// # Panics
    /// When it does not succeed.
    pub fn must(&mut self, sql: &str) -> Outcome {
        let outcomes = self
            .query(sql)
            .unwrap_or_else(|error| panic!("{}: `{sql}`: {error}", self.who()));
        for (index, outcome) in outcomes.iter().enumerate() {
            if let Outcome::Failed(failure) = outcome {
                panic!("{}: `{sql}`, result {}: {failure}", self.who(), index + 1);
            }
        }
        outcomes.into_iter().next().unwrap()
    }

    /// Runs statements that stand apart by `; `, each by itself, which must succeed.
    ///
    /// # Panics
    /// When one does not.
    pub fn script(&mut self, text: &str) {
        for sql in text.split("; ") {
            self.must(sql);
        }
    }

    /// Runs SQL that must return rows.
    ///
    /// # Panics
    /// When it does not.
    pub fn rows(&mut self, sql: &str) -> Rows {
        self.must(sql).rows().clone()
    }

    /// Runs SQL that must return one value.
    ///
    /// # Panics
    /// When it does not.
    pub fn value(&mut self, sql: &str) -> String {
        self.rows(sql).only()
    }

    /// Runs SQL that must fail.
    ///
    /// # Panics
    /// When it succeeds.
    pub fn failure(&mut self, sql: &str) -> Failure {
        let outcomes = self
            .query(sql)
            .unwrap_or_else(|error| panic!("{}: `{sql}`: {error}", self.who()));
        outcomes.last().unwrap().failure().clone()
    }

    /// Prepares a statement that must be preparable.
    ///
    /// # Panics
    /// When it is not.
    pub fn prepare(&mut self, sql: &str) -> Prepared {
        let outcomes = self.run(Command::StmtPrepare, sql.as_bytes());
        match outcomes
            .unwrap_or_else(|error| panic!("{}: `{sql}`: {error}", self.who()))
            .remove(0)
        {
            Outcome::Prepared(prepared) => prepared,
            other => panic!(
                "{}: `{sql}`: expected a prepared statement, got {other:?}",
                self.who()
            ),
        }
    }

    /// Executes a prepared statement with texts as parameters; `cursor` opens a read-only one.
    ///
    /// # Errors
    /// As [`Client::run`].
    pub fn execute(
        &mut self,
        id: u32,
        params: &[Option<&[u8]>],
        cursor: bool,
    ) -> Result<Vec<Outcome>, ClientError> {
        let arguments = self.execution_of(id, params, cursor, true);
        self.run(Command::StmtExecute, &arguments)
    }

    /// Executes a statement with the types of the execution before.
    ///
    /// # Errors
    /// As [`Client::run`].
    pub fn execute_again(
        &mut self,
        id: u32,
        params: &[Option<&[u8]>],
    ) -> Result<Vec<Outcome>, ClientError> {
        let arguments = self.execution_of(id, params, false, false);
        self.run(Command::StmtExecute, &arguments)
    }

    /// Executes a statement of one parameter, and leaves out most of its value.
    ///
    /// # Errors
    /// As [`Client::run`].
    pub fn execute_cut(&mut self, id: u32) -> Result<Vec<Outcome>, ClientError> {
        let arguments = cut_execution(id, self.talk.form());
        self.run(Command::StmtExecute, &arguments)
    }

    /// The arguments of an execution in the form of this connection.
    fn execution_of(
        &mut self,
        id: u32,
        params: &[Option<&[u8]>],
        cursor: bool,
        typed: bool,
    ) -> Vec<u8> {
        let types = [VAR_STRING, 0].repeat(params.len());
        if self.talk.form() == Form::Plain {
            return execution_of(id, params, cursor, typed.then_some(&types));
        }
        attributed(id, (params, cursor, typed), &self.take_attributes())
    }

    fn take_attributes(&mut self) -> Vec<(String, String)> {
        std::mem::take(&mut self.talk.attributes)
    }

    /// Sets the query attributes, as texts, of the next COM_QUERY or [`Client::execute`], where
    /// such were agreed on.
    pub fn attributes(&mut self, attributes: &[(&str, &str)]) {
        let own = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
        self.talk.attributes = attributes.iter().map(own).collect();
    }

    /// Reads rows from a cursor.
    ///
    /// # Errors
    /// As [`Client::run`].
    pub fn fetch(
        &mut self,
        id: u32,
        rows: u32,
        columns: &[Column],
    ) -> Result<Vec<Outcome>, ClientError> {
        let mut out = Vec::new();
        self.talk.fetch(&mut out, id, rows, columns.to_vec());
        self.send_raw(&out)?;
        self.receive()
    }

    /// Sends bytes that are answered in the form of the reply to `like`, and receives that.
    ///
    /// # Errors
    /// As [`Client::wait`].
    pub fn exchange(&mut self, bytes: &[u8], like: Command) -> Result<Vec<Outcome>, ClientError> {
        self.talk.command(&mut Vec::new(), like, b"");
        self.send_raw(bytes)?;
        self.receive()
    }

    /// Sends a command that this crate has no name for; it must be answered by ERR.
    ///
    /// # Panics
    /// When it is not.
    pub fn refused_command(&mut self, byte: u8) -> Failure {
        // A ping is answered in the same form: by one packet.
        let outcomes = self
            .exchange(&[1, 0, 0, 0, byte], Command::Ping)
            .unwrap_or_else(|e| panic!("command {byte:02x}: {e}"));
        outcomes[0].failure().clone()
    }

    /// COM_CHANGE_USER.
    ///
    /// # Errors
    /// As [`Client::run`].
    pub fn change_user(&mut self, account: &Account) -> Result<Vec<Outcome>, ClientError> {
        let mut out = Vec::new();
        self.talk.change_user(&mut out, account.clone());
        self.send_raw(&out)?;
        self.receive()
    }
}
