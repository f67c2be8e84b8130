//! A client that waits: one connection, one command after another, over any stream.
//!
//! Who asks a few questions once needs no event loop: the doctor, `prepare` of the load generator,
//! the pool's probe and watch. This is the client that they share. The stream is the caller's, who
//! has opened it and has set its time limits; nothing here opens a socket or reads a clock.
//!
//! Invariants: no more than [`MESSAGE_MAX`] bytes of a message are kept; an error of the server
//! leaves the connection usable, any other does not.

use crate::client_login::{Account, ClientLogin, LoginError, Progress, put_tls_request};
use crate::command::{Command, ReplyShape, put_command};
use crate::handshake::Greeting;
use crate::packet::{HEADER_LEN, Header, Malformed, PAYLOAD_MAX, Reader};
use crate::reply::{ERR, Reply, Step};
use crate::wiped::wipe_all;
use std::fmt;
use std::io::{self, BufReader, Read, Write};

/// The longest message that is read.
pub const MESSAGE_MAX: usize = 64 << 20;
/// Bytes that are read at once.
const READ_AT_ONCE: usize = 16 << 10;
/// Room for any packet of a login of ours.
const LOGIN_BYTES: usize = 4 << 10;

/// Reason for a missing answer.
#[derive(Debug)]
pub enum Failure {
    /// The stream could not be written.
    Write(io::Error),
    /// The stream could not be read.
    Read(io::Error),
    /// The server closed the connection.
    Closed,
    /// Message of more than [`MESSAGE_MAX`] bytes.
    TooLong,
    /// The login failed.
    Login(LoginError),
    /// A packet that has no place where it came.
    Malformed(Malformed),
    /// Server's request for a local file, which nobody offered.
    LocalFile,
    /// The server's error; the connection can be used on.
    Server {
        /// The error's number.
        code: u16,
        /// Its SQL state.
        state: Vec<u8>,
        /// Its words.
        message: Vec<u8>,
    },
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Write(error) | Failure::Read(error) => error.fmt(f),
            Failure::Closed => f.write_str("the server closed the connection"),
            Failure::TooLong => {
                let mib = MESSAGE_MAX >> 20;
                write!(f, "the server sent a packet of more than {mib} MiB")
            }
            Failure::Login(error) => error.fmt(f),
            Failure::Malformed(malformed) => write!(f, "from the server: {malformed}"),
            Failure::LocalFile => {
                f.write_str("the server asks for a local file, which nobody offered")
            }
            Failure::Server { code, message, .. } => {
                write!(f, "error {code}: {}", String::from_utf8_lossy(message))
            }
        }
    }
}

impl std::error::Error for Failure {}

impl From<Malformed> for Failure {
    fn from(malformed: Malformed) -> Failure {
        Failure::Malformed(malformed)
    }
}

/// Puts TLS over a stream.
pub type Secure<'a, S> = &'a mut dyn FnMut(&mut S) -> io::Result<()>;

/// One connection.
#[derive(Debug)]
pub struct Connection<S: Read + Write> {
    stream: BufReader<S>,
    /// The present message.
    payload: Vec<u8>,
}

impl<S: Read + Write> Connection<S> {
    /// A connection on a stream on which nothing has been said.
    pub fn new(stream: S) -> Connection<S> {
        Connection {
            stream: BufReader::with_capacity(READ_AT_ONCE, stream),
            payload: Vec::new(),
        }
    }

    /// Logs in, in clear; returns the server's greeting.
    ///
    /// # Errors
    /// [`Failure`]: the connection is of no more use.
    pub fn log_in(&mut self, account: &Account<'_>) -> Result<Greeting, Failure> {
        self.log_in_over(account, None)
    }

    /// Logs in; where `secure` is given and the server offers TLS, it is asked for, and `secure`
    /// puts it over the stream.
    ///
    /// # Errors
    /// [`Failure`]: the connection is of no more use.
    pub fn log_in_over(
        &mut self,
        account: &Account<'_>,
        secure: Option<Secure<'_, S>>,
    ) -> Result<Greeting, Failure> {
        // It holds a password for a moment, and a buffer that grows leaves a copy behind.
        let mut out = Vec::with_capacity(LOGIN_BYTES);
        let greeting = self.log_in_with(account, secure, &mut out);
        wipe_all(&mut out);
        greeting
    }

    fn log_in_with(
        &mut self,
        account: &Account<'_>,
        mut secure: Option<Secure<'_, S>>,
        out: &mut Vec<u8>,
    ) -> Result<Greeting, Failure> {
        let mut login = ClientLogin::new();
        let mut greeting = None;
        loop {
            let mut seq = self.receive()?;
            if greeting.is_none() {
                greeting = Greeting::read(&self.payload).ok();
            }
            out.clear();
            if let Some(secure) = secure.take()
                && self.payload.first() != Some(&ERR)
                && put_tls_request(account.first(), seq, &self.payload, out)?
            {
                self.begin_tls(out, secure)?;
                seq = seq.wrapping_add(1);
                out.clear();
            }
            let progress = login
                .on_packet(account, seq, &self.payload, out)
                .map_err(Failure::Login)?;
            self.send(out)?;
            if progress == Progress::Done {
                return greeting.ok_or_else(|| {
                    let what = "the server did not greet".to_owned();
                    Failure::Login(LoginError::OutOfPlace(what))
                });
            }
        }
    }

    fn begin_tls(&mut self, request: &[u8], secure: Secure<'_, S>) -> Result<(), Failure> {
        if !self.stream.buffer().is_empty() {
            // It is not under TLS, so it must not be read as if it were.
            let what = "bytes behind the server's greeting, in front of TLS".to_owned();
            return Err(Failure::Login(LoginError::OutOfPlace(what)));
        }
        self.send(request)?;
        secure(self.stream.get_mut()).map_err(Failure::Read)
    }

    /// Runs a statement and hands each row to `on_row`; returns the number of changed rows.
    ///
    /// # Errors
    /// [`Failure`]; after the server's own error the connection can be used.
    pub fn query(&mut self, text: &[u8], on_row: impl FnMut(&[u8])) -> Result<u64, Failure> {
        self.send_queries(&[text])?;
        self.answer(on_row)
    }

    /// Sends several statements in one write; [`Connection::answer`] reads the answer of each.
    /// There must be few enough of them to lie in a socket's buffer.
    ///
    /// # Errors
    /// [`Failure::Write`]
    pub fn send_queries(&mut self, texts: &[impl AsRef<[u8]>]) -> Result<(), Failure> {
        let mut out = Vec::new();
        for text in texts {
            put_command(&mut out, Command::Query, text.as_ref());
        }
        self.send(&out)
    }

    /// Reads the answer to one statement, as [`Connection::query`].
    ///
    /// # Errors
    /// [`Failure`]; after the server's own error the connection can be used.
    pub fn answer(&mut self, on_row: impl FnMut(&[u8])) -> Result<u64, Failure> {
        self.answer_table(|_| {}, on_row)
    }

    /// Reads one answer as [`Connection::answer`], with the definitions of its columns.
    ///
    /// # Errors
    /// [`Failure`]; after the server's own error the connection can be used.
    pub fn answer_table(
        &mut self,
        mut on_column: impl FnMut(&[u8]),
        mut on_row: impl FnMut(&[u8]),
    ) -> Result<u64, Failure> {
        let mut reply = Reply::new(ReplyShape::Results);
        let mut changed = 0;
        while !reply.is_done() {
            self.receive()?;
            // A message is whole here, however many packets it came in: none goes on with it.
            let mut len = self.payload.len();
            len += usize::from(len == PAYLOAD_MAX);
            match reply.advance(len, &self.payload)? {
                Step::Ok(ok) => changed = ok.affected_rows,
                Step::Err(err) => {
                    return Err(Failure::Server {
                        code: err.code,
                        state: err.state.to_vec(),
                        message: err.message.to_vec(),
                    });
                }
                Step::File => return Err(Failure::LocalFile),
                Step::Row => on_row(&self.payload),
                Step::Definition { .. } => on_column(&self.payload),
                Step::Cut => {
                    let what = "a shorter packet that decides something";
                    return Err(Malformed { what, at: 0, len }.into());
                }
                _ => {}
            }
        }
        Ok(changed)
    }

    /// Says goodbye, so that the server need not wonder.
    pub fn quit(&mut self) {
        let mut bye = Vec::new();
        put_command(&mut bye, Command::Quit, b"");
        // A server that is gone needs no goodbye.
        let _ = self.send(&bye);
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.stream
            .get_mut()
            .write_all(bytes)
            .map_err(Failure::Write)
    }

    /// Reads one message into `payload`, from as many packets as it has; returns the number of the
    /// last.
    fn receive(&mut self) -> Result<u8, Failure> {
        self.payload.clear();
        loop {
            let mut header = [0; HEADER_LEN];
            self.stream.read_exact(&mut header).map_err(unread)?;
            let header = Header::read(&header).unwrap_or(Header { len: 0, seq: 0 });
            if self.payload.len() + header.len > MESSAGE_MAX {
                return Err(Failure::TooLong);
            }
            let mut packet = (&mut self.stream).take(header.len as u64);
            let read = packet.read_to_end(&mut self.payload).map_err(unread)?;
            if read < header.len {
                return Err(Failure::Closed);
            }
            if header.len < PAYLOAD_MAX {
                return Ok(header.seq);
            }
        }
    }
}

fn unread(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Failure::Closed,
        _ => Failure::Read(error),
    }
}

/// The values of a row in the text protocol; NULL is an empty one.
pub fn values(row: &[u8]) -> impl Iterator<Item = &[u8]> {
    values_or_null(row).map(Option::unwrap_or_default)
}

/// The values of a row in the text protocol; NULL is `None`.
pub fn values_or_null(row: &[u8]) -> impl Iterator<Item = Option<&[u8]>> {
    let mut reader = Reader::new(row);
    std::iter::from_fn(move || {
        // NULL is the byte 0xFB, which is no length.
        (!reader.is_empty()).then(|| reader.lenenc_bytes("a value").ok())
    })
}

/// The name of a column, by its definition: the fifth of the texts that this begins with.
pub fn column_name(definition: &[u8]) -> &[u8] {
    let mut reader = Reader::new(definition);
    let mut text = || {
        reader
            .lenenc_bytes("a column's definition")
            .unwrap_or_default()
    };
    for _ in 0..4 {
        text();
    }
    text()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::Credential;
    use crate::client_login::COLLATION;
    use crate::packet::{put_lenenc, put_packet};

    /// A server that has said all this, and keeps what it hears.
    #[derive(Default)]
    struct Said {
        says: io::Cursor<Vec<u8>>,
        heard: Vec<u8>,
    }

    impl Read for Said {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.says.read(buffer)
        }
    }

    impl Write for Said {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.heard.extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn on(messages: &[&[u8]]) -> Connection<Said> {
        let mut says = Vec::new();
        for message in messages {
            put_packet(&mut says, 1, message);
        }
        Connection::new(Said {
            says: io::Cursor::new(says),
            heard: Vec::new(),
        })
    }

    const ONE_COLUMN: [&[u8]; 2] = [
        b"\x01",
        b"\x03def\0\0\0\x01a\0\x0c\x3f\0\0\0\0\0\xfd\0\0\0\0\0",
    ];
    #[test]
    fn a_column_has_its_name_and_null_is_no_text() {
        let [_, definition] = ONE_COLUMN;
        assert_eq!(column_name(definition), b"a");
        assert_eq!(column_name(b""), b"");
        let row: Vec<Option<&[u8]>> = values_or_null(b"\x01x\xfb\x00").collect();
        assert_eq!(row, [Some(&b"x"[..]), None, Some(b"")]);
    }

    const END: &[u8] = b"\xfe\0\0\x02\0\0\0";
    const OK: &[u8] = b"\0\x03\0\x02\0\0\0";
    const UNKNOWN_TABLE: &[u8] = b"\xff\x7a\x04#42S02no such table";

    #[test]
    fn rows_are_handed_on_and_changed_ones_counted() {
        let [count, column] = ONE_COLUMN;
        let mut client = on(&[count, column, b"\x03yes", b"\xfb", END, OK]);
        let mut rows = Vec::new();
        let mut keep = |row: &[u8]| rows.push(values(row).map(<[u8]>::to_vec).collect::<Vec<_>>());
        client.query(b"SELECT a", &mut keep).unwrap();
        assert_eq!(rows, [[b"yes".to_vec()], [Vec::new()]]);
        assert_eq!(client.query(b"DELETE", |_| ()).unwrap(), 3);
        let heard = &client.stream.get_ref().heard;
        assert_eq!(heard, b"\x09\0\0\0\x03SELECT a\x07\0\0\0\x03DELETE");
    }

    #[test]
    fn an_error_of_the_server_leaves_the_connection_usable() {
        let mut client = on(&[UNKNOWN_TABLE, OK]);
        client.send_queries(&["DROP TABLE x", "DO 1"]).unwrap();
        let error = client.answer(|_| ()).unwrap_err();
        assert!(matches!(&error, Failure::Server { code: 1146, .. }));
        assert_eq!(error.to_string(), "error 1146: no such table");
        assert_eq!(client.answer(|_| ()).unwrap(), 3);
    }

    #[test]
    fn a_row_of_several_packets_is_one_row() {
        let [count, column] = ONE_COLUMN;
        for length in [
            PAYLOAD_MAX - 5,
            PAYLOAD_MAX - 4,
            PAYLOAD_MAX,
            2 * PAYLOAD_MAX,
        ] {
            let mut row = Vec::new();
            put_lenenc(&mut row, length as u64);
            row.resize(row.len() + length, b'x');
            let mut client = on(&[count, column, &row, b"\x03yes", END]);
            let mut lengths = Vec::new();
            let keep = |row: &[u8]| lengths.extend(values(row).map(<[u8]>::len));
            client.query(b"SELECT a", keep).unwrap();
            assert_eq!(lengths, [length, 3]);
        }
    }

    #[test]
    fn a_message_may_be_so_long_and_no_longer() {
        let [count, column] = ONE_COLUMN;
        for (length, fits) in [(MESSAGE_MAX, true), (MESSAGE_MAX + 1, false)] {
            let mut row = vec![0xfe];
            row.extend_from_slice(&(length as u64 - 9).to_le_bytes());
            row.resize(length, b'x');
            let mut client = on(&[count, column, &row, END]);
            let result = client.query(b"SELECT a", |_| ());
            assert_eq!(result.is_ok(), fits);
            if let Err(error) = result {
                assert!(error.to_string().contains("more than 64 MiB"), "{error}");
            }
        }
    }

    #[test]
    fn what_is_cut_or_out_of_place_is_an_error() {
        let mut cut = on(&[]);
        cut.stream.get_mut().says = io::Cursor::new(b"\x05\0\0\x01\0".to_vec());
        assert!(matches!(cut.query(b"DO 1", |_| ()), Err(Failure::Closed)));
        let mut nothing = on(&[]);
        assert!(matches!(
            nothing.query(b"DO 1", |_| ()),
            Err(Failure::Closed)
        ));
        let mut file = on(&[b"\xfb/etc/passwd"]);
        assert!(matches!(
            file.query(b"LOAD", |_| ()),
            Err(Failure::LocalFile)
        ));
        let mut refused = on(&[b"\xff\x10\x04Too many connections"]);
        let account = Account {
            user: b"app",
            credential: Credential::Password(b""),
            schema: b"",
            private: true,
            wanted: 0,
            extended: 0,
            required: 0,
            collation: COLLATION,
            server_key: crate::client_login::ServerKey::Sent,
        };
        let error = refused.log_in(&account).unwrap_err();
        assert!(matches!(
            error,
            Failure::Login(LoginError::Refused { code: 1040, .. })
        ));
    }
}
