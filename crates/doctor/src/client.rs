//! A plain client that waits: one connection, a few questions, rows kept.
//!
//! The doctor asks a server a handful of questions once, so it needs no poll loop: a blocking
//! socket, the login and the reply follower of `wire`. Every wait is bounded. An error keeps the
//! server's number, since a missing privilege is told by it.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{IpAddr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use wire::capabilities as cap;
use wire::client_login::{Account, ClientLogin, LoginError, Progress};
use wire::command::{Command, ReplyShape, put_command};
use wire::dsn::Dsn;
use wire::packet::{HEADER_LEN, Header, Reader};
use wire::reply::{Reply, Role, Step};

/// The longest wait for a connection, and for each answer.
const WAIT_MAX: Duration = Duration::from_secs(5);

const REQUIRED: u32 =
    cap::PROTOCOL_41 | cap::SECURE_CONNECTION | cap::PLUGIN_AUTH | cap::DEPRECATE_EOF;
const WANTED: u32 = REQUIRED
    | cap::LONG_PASSWORD
    | cap::LONG_FLAG
    | cap::TRANSACTIONS
    | cap::PLUGIN_AUTH_LENENC_DATA
    | cap::CONNECT_ATTRS;

/// Why a server could not be asked, or did not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The server's number; None when it was not the server who said it.
    pub code: Option<u16>,
    /// A sentence.
    pub words: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

impl Failure {
    fn of(words: impl Into<String>) -> Failure {
        Failure {
            code: None,
            words: words.into(),
        }
    }
}

impl From<LoginError> for Failure {
    fn from(error: LoginError) -> Failure {
        let code = match &error {
            LoginError::Refused { code, .. } => Some(*code),
            _ => None,
        };
        Failure {
            code,
            words: error.to_string(),
        }
    }
}

trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

/// One connection, logged in.
pub struct Client {
    stream: Box<dyn Stream>,
    payload: Vec<u8>,
    is_local: bool,
}

impl Client {
    /// Connects and logs in.
    ///
    /// # Errors
    /// The system's or the server's words.
    pub fn connect(target: &Dsn) -> Result<Client, Failure> {
        let place = target.place();
        let (stream, is_local) = dial(target)
            .map_err(|error| Failure::of(format!("cannot connect to {place}: {error}")))?;
        let mut client = Client {
            stream,
            payload: Vec::new(),
            is_local,
        };
        client.log_in(target)?;
        Ok(client)
    }

    /// The server is on this host: a Unix socket, or a loopback address.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.is_local
    }

    fn log_in(&mut self, target: &Dsn) -> Result<(), Failure> {
        let account = Account {
            user: target.user.as_bytes(),
            password: target.password.as_bytes(),
            schema: b"",
            private: target.socket.is_some(),
            wanted: WANTED,
            extended: 0,
            required: REQUIRED,
        };
        let (mut login, mut out) = (ClientLogin::new(), Vec::new());
        loop {
            let header = self.receive()?;
            out.clear();
            let progress = login.on_packet(&account, header.seq, &self.payload, &mut out)?;
            self.send(&out)?;
            if progress == Progress::Done {
                return Ok(());
            }
        }
    }

    /// All rows of a statement; NULL is an empty text.
    ///
    /// # Errors
    /// The server's error, with its number, or the system's.
    pub fn query(&mut self, sql: &str) -> Result<Vec<Vec<String>>, Failure> {
        let mut out = Vec::new();
        put_command(&mut out, Command::Query, sql.as_bytes());
        self.send(&out)?;
        let mut reply = Reply::new(ReplyShape::Results);
        let mut rows = Vec::new();
        while !reply.is_done() {
            let header = self.receive()?;
            let role = reply.role(self.payload.first().copied(), header.len);
            let step = reply.advance(role, &self.payload, header.len);
            match step.map_err(|error| Failure::of(format!("from the server: {error}")))? {
                Step::Err(err) => {
                    return Err(Failure {
                        code: Some(err.code),
                        words: format!(
                            "error {} to '{sql}': {}",
                            err.code,
                            String::from_utf8_lossy(err.message)
                        ),
                    });
                }
                _ if role == Role::Row => rows.push(read_row(&self.payload)),
                _ => {}
            }
        }
        Ok(rows)
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.stream.write_all(bytes).map_err(|error| system(&error))
    }

    /// Reads one packet into `payload`.
    fn receive(&mut self) -> Result<Header, Failure> {
        let mut header = [0; HEADER_LEN];
        self.stream
            .read_exact(&mut header)
            .map_err(|error| system(&error))?;
        let header = Header::read(&header).unwrap_or(Header { len: 0, seq: 0 });
        self.payload.resize(header.len, 0);
        self.stream
            .read_exact(&mut self.payload)
            .map_err(|error| system(&error))?;
        Ok(header)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let mut bye = Vec::new();
        put_command(&mut bye, Command::Quit, b"");
        // A server that is gone needs no goodbye.
        let _ = self.stream.write_all(&bye);
    }
}

fn system(error: &io::Error) -> Failure {
    Failure::of(match error.kind() {
        io::ErrorKind::UnexpectedEof => "the server closed the connection".to_owned(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            format!("the server did not answer within {} s", WAIT_MAX.as_secs())
        }
        _ => error.to_string(),
    })
}

/// The stream, and whether its other end is on this host.
fn dial(target: &Dsn) -> io::Result<(Box<dyn Stream>, bool)> {
    if let Some(path) = &target.socket {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(WAIT_MAX))?;
        return Ok((Box::new(stream), true));
    }
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in (target.host.as_str(), target.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, WAIT_MAX) {
            Ok(stream) => {
                stream.set_read_timeout(Some(WAIT_MAX))?;
                stream.set_nodelay(true)?;
                // An address of this host is also its own source address.
                let own = stream.local_addr()?.ip() == address.ip();
                return Ok((Box::new(stream), own || is_loopback(address.ip())));
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

fn read_row(payload: &[u8]) -> Vec<String> {
    let mut reader = Reader::new(payload);
    let mut row = Vec::new();
    while !reader.is_empty() {
        // NULL is the byte 0xFB, which is no length.
        let value = reader.lenenc_bytes("a value").unwrap_or_default();
        row.push(String::from_utf8_lossy(value).into_owned());
    }
    row
}
