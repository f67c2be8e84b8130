//! One connection: a request that comes in pieces, and an answer that leaves in pieces.
//!
//! Invariant: after the answer no byte is taken for a request; what still comes is thrown away, so
//! that closing does not reset a connection on which the answer is still under way.

use crate::{ASK_MAX, REQUEST_BYTES_MAX, Reply, Request, Site, Status, TAKE_MAX, kind};
use reactor::Time;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};

/// Headers of a request.
const HEADERS_MAX: usize = 64;
/// Bytes read at once.
const PIECE: usize = 4096;
/// Reads in a row before others have their turn.
const PIECES_MAX: usize = 8;

/// What becomes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    Open,
    Closed,
}

/// Where it stands.
#[derive(Debug)]
enum State {
    /// The request has come so far.
    Asking(Vec<u8>),
    /// The answer, and how much of it has been taken.
    Answering(Vec<u8>, usize),
    /// All has been written; the reader's end is waited for.
    Ending,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: TcpStream,
    state: State,
    until: Time,
}

impl Connection {
    pub(crate) fn new(socket: TcpStream, now: Time) -> io::Result<Connection> {
        socket.set_nonblocking(true)?;
        Ok(Connection {
            socket,
            state: State::Asking(Vec::new()),
            until: now + ASK_MAX,
        })
    }

    pub(crate) fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// It is closed at this moment, whatever it is doing.
    pub(crate) fn until(&self) -> Time {
        self.until
    }

    pub(crate) fn is_writing(&self) -> bool {
        matches!(self.state, State::Answering(..))
    }

    /// Does what can be done without waiting.
    pub(crate) fn go_on(&mut self, site: &mut impl Site, now: Time) -> Progress {
        // What fails has no reader any more. A request that has come is answered, however late this
        // thread is.
        let progress = self.try_to_go_on(site, now);
        match progress.unwrap_or(Progress::Closed) {
            Progress::Open if now < self.until => Progress::Open,
            _ => Progress::Closed,
        }
    }

    fn try_to_go_on(&mut self, site: &mut impl Site, now: Time) -> io::Result<Progress> {
        if let State::Asking(asked) = &mut self.state {
            let ended = match read(&mut self.socket, |piece| asked.extend_from_slice(piece))? {
                Some(ended) => ended,
                None => return Ok(Progress::Open),
            };
            let Some(answer) = answer(asked, site) else {
                return Ok(if ended {
                    Progress::Closed
                } else {
                    Progress::Open
                });
            };
            self.state = State::Answering(answer, 0);
            self.until = now + TAKE_MAX;
        }
        if let State::Answering(answer, sent) = &mut self.state {
            while *sent < answer.len() {
                match self.socket.write(&answer[*sent..]) {
                    Ok(0) => return Ok(Progress::Closed),
                    Ok(written) => *sent += written,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        return Ok(Progress::Open);
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            self.socket.shutdown(Shutdown::Write)?;
            self.state = State::Ending;
            self.until = now + ASK_MAX;
        }
        Ok(match read(&mut self.socket, |_| {})? {
            Some(true) => Progress::Closed,
            _ => Progress::Open,
        })
    }
}

/// Reads what is there; whether that was the end. `None` where nothing was there.
fn read(socket: &mut TcpStream, mut take: impl FnMut(&[u8])) -> io::Result<Option<bool>> {
    let mut piece = [0; PIECE];
    let mut read = None;
    for _ in 0..PIECES_MAX {
        match socket.read(&mut piece) {
            Ok(0) => return Ok(Some(true)),
            Ok(n) => {
                take(&piece[..n]);
                read = Some(false);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}

/// The whole answer to a request; `None` while it has not come whole.
pub(crate) fn answer(asked: &[u8], site: &mut impl Site) -> Option<Vec<u8>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    let reply = match request.parse(asked) {
        Ok(httparse::Status::Partial) if asked.len() < REQUEST_BYTES_MAX => return None,
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            let why = format!("a request has at most {REQUEST_BYTES_MAX} bytes here");
            Reply::text(Status::TooLarge, &why)
        }
        Err(error) => Reply::text(Status::BadRequest, &format!("no HTTP request: {error}")),
        Ok(httparse::Status::Complete(_)) => match request.method {
            Some("GET" | "HEAD") => {
                let target = request.path.unwrap_or("/");
                let mut accepts = (request.headers.iter())
                    .filter(|header| header.name.eq_ignore_ascii_case("accept"));
                let accept = accepts.next().map_or(&b""[..], |header| header.value);
                site.answer(&Request {
                    path: target.split(['?', '#']).next().unwrap_or(target),
                    accept: std::str::from_utf8(accept).unwrap_or_default(),
                })
            }
            _ => Reply::text(Status::MethodNotAllowed, "expected GET or HEAD"),
        },
    };
    let body = match request.method {
        Some("HEAD") => "",
        _ => &*reply.body,
    };
    let allow = match reply.status {
        Status::MethodNotAllowed => "Allow: GET, HEAD\r\n",
        _ => "",
    };
    // A page of ours runs what it brings along, and nothing from elsewhere.
    let policy = match reply.kind {
        kind::HTML => {
            "Content-Security-Policy: default-src 'none'; script-src 'unsafe-inline'; style-src \
             'unsafe-inline'; connect-src 'self'; img-src data:\r\n"
        }
        _ => "",
    };
    let head = format!(
        "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{allow}{policy}\
         X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n",
        reply.status.line(),
        reply.kind,
        reply.body.len()
    );
    Some([head.as_bytes(), body.as_bytes()].concat())
}
