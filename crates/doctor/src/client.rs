//! A connection to the server: opened by a DSN, a few questions, rows kept.
//!
//! The client itself is [`wire::blocking`]. Every wait is bounded. An error keeps the server's
//! number, since a missing privilege is told by it.

use crate::facts::Link;
use crate::target::{Target, TargetTls, words_of};
use reactor::tls_client;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{IpAddr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use wire::auth::Credential;
use wire::blocking::{self, Connection, values};
use wire::capabilities as cap;
use wire::client_login::{Account, COLLATION, LoginError};
use wire::dsn::{Dsn, UNPROTECTED_REMEDY};

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

/// Reason for a server that could not be asked, or did not answer.
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

impl From<blocking::Failure> for Failure {
    fn from(failure: blocking::Failure) -> Failure {
        use blocking::Failure as F;
        let code = match &failure {
            F::Server { code, .. } | F::Login(LoginError::Refused { code, .. }) => Some(*code),
            _ => None,
        };
        let words = match &failure {
            F::Read(error) | F::Write(error) => system(error),
            F::Login(LoginError::Unprotected) => format!("{failure}; {UNPROTECTED_REMEDY}"),
            _ => failure.to_string(),
        };
        Failure { code, words }
    }
}

trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

/// One connection, logged in.
pub struct Client {
    connection: Connection<Box<dyn Stream>>,
    is_local: bool,
    link: Link,
}

impl Client {
    /// Connects and logs in.
    ///
    /// # Errors
    /// The system's or the server's words.
    pub fn connect(target: &Target) -> Result<Client, Failure> {
        let (dsn, tls) = (&target.dsn, target.tls());
        let place = dsn.place();
        let (stream, is_local) = dial(dsn)
            .map_err(|error| Failure::of(format!("cannot connect to {place}: {error}")))?;
        let mut client = Client {
            connection: Connection::new(stream),
            is_local,
            link: Link::Clear,
        };
        let account = Account {
            user: dsn.user.as_bytes(),
            credential: Credential::Password(dsn.password.as_bytes()),
            schema: b"",
            private: dsn.socket.is_some(),
            wanted: WANTED | tls.map_or(0, |_| cap::SSL),
            extended: 0,
            required: match tls {
                Some(tls) if tls.is_required => REQUIRED | cap::SSL,
                _ => REQUIRED,
            },
            collation: COLLATION,
            server_key: dsn.server_key(is_local),
        };
        let mut secure = tls.map(|tls| move |stream: &mut _| begin_tls(stream, tls));
        let secure = (secure.as_mut()).map(|secure| secure as &mut dyn FnMut(&mut _) -> _);
        let greeting = client.connection.log_in_over(&account, secure)?;
        client.link = match tls {
            Some(tls) if tls.checks => Link::Checked,
            Some(_) if greeting.capabilities & cap::SSL != 0 => Link::Unchecked,
            _ => Link::Clear,
        };
        Ok(client)
    }

    /// Protection of the connection.
    #[must_use]
    pub fn link(&self) -> Link {
        self.link
    }

    /// True if the server is on this host: a Unix socket, or a loopback address.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.is_local
    }

    /// All rows of a statement; NULL is an empty text.
    ///
    /// # Errors
    /// The server's error, with its number, or the system's.
    pub fn query(&mut self, sql: &str) -> Result<Vec<Vec<String>>, Failure> {
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        let mut rows = Vec::new();
        let asked = self.connection.query(sql.as_bytes(), |row| {
            rows.push(values(row).map(text).collect())
        });
        match asked {
            Ok(_) => Ok(rows),
            Err(blocking::Failure::Server { code, message, .. }) => Err(Failure {
                code: Some(code),
                words: format!("error {code} to '{sql}': {}", text(&message)),
            }),
            Err(failure) => Err(failure.into()),
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.connection.quit();
    }
}

/// Puts TLS over a stream, and waits until it stands.
fn begin_tls(stream: &mut Box<dyn Stream>, tls: &TargetTls) -> io::Result<()> {
    let plain = std::mem::replace(stream, Box::new(io::Cursor::new(Vec::new())));
    *stream = Box::new(tls_client::over(tls.connection()?, plain)?);
    Ok(())
}

fn system(error: &io::Error) -> String {
    if let Some(words) = words_of(error) {
        return words;
    }
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            format!("the server did not answer within {} s", WAIT_MAX.as_secs())
        }
        _ => error.to_string(),
    }
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
