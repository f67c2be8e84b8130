//! One connection: a request that comes in pieces, and an answer that leaves in pieces.
//!
//! Invariant: after the answer no byte is taken for a request; what still comes is thrown away, so
//! that closing does not reset a connection on which the answer is still under way.

use crate::later::Later;
use crate::names::Names;
use crate::{ASK_MAX, Answer, Job, MAKE_MAX, POST_HEADER, REQUEST_BYTES_MAX, TAKE_MAX};
use crate::{Post, Reply, Request, Site, Status, kind};
use reactor::Time;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};

/// Headers of a request.
const HEADERS_MAX: usize = 64;
/// Bytes read at once.
const PIECE: usize = 4096;
/// Scheme in front of a token.
const BEARER: &[u8] = b"Bearer ";
/// Reads in a row before others have their turn.
const PIECES_MAX: usize = 8;

/// Progress of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    Open,
    Closed,
}

/// State of a connection.
#[derive(Debug)]
enum State {
    /// Request that has come so far.
    Asking(Vec<u8>),
    /// Request whose answer is being made; whether the reader wants its head only.
    Waiting { head_only: bool },
    /// The answer, and how much of it has been taken.
    Answering(Vec<u8>, usize),
    /// Answer that has been written; the reader's end is waited for.
    Ending,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: TcpStream,
    number: u64,
    state: State,
    until: Time,
}

impl Connection {
    pub(crate) fn new(socket: TcpStream, number: u64, now: Time) -> io::Result<Connection> {
        socket.set_nonblocking(true)?;
        Ok(Connection {
            socket,
            number,
            state: State::Asking(Vec::new()),
            until: now + ASK_MAX,
        })
    }

    /// Number of the connection, counted from the first that was accepted.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Moment at which the connection is closed, whatever it is doing.
    pub(crate) fn until(&self) -> Time {
        self.until
    }

    pub(crate) fn is_writing(&self) -> bool {
        matches!(self.state, State::Answering(..))
    }

    /// Takes the answer that it waits for.
    pub(crate) fn take_reply(&mut self, reply: &Reply, now: Time) {
        if let State::Waiting { head_only } = self.state {
            self.state = State::Answering(written(reply, head_only), 0);
            self.until = now + TAKE_MAX;
        }
    }

    /// Carries on with what can be done without waiting.
    pub(crate) fn go_on(
        &mut self,
        (site, names): (&mut impl Site, &Names),
        later: &Later,
        now: Time,
    ) -> Progress {
        // What fails has no reader any more. A request that has come is answered, however late this
        // thread is.
        let progress = self.try_to_go_on((site, names), later, now);
        match progress.unwrap_or(Progress::Closed) {
            Progress::Open if now < self.until => Progress::Open,
            _ => Progress::Closed,
        }
    }

    fn try_to_go_on(
        &mut self,
        (site, names): (&mut impl Site, &Names),
        later: &Later,
        now: Time,
    ) -> io::Result<Progress> {
        if let State::Asking(asked) = &mut self.state {
            let ended = match read(&mut self.socket, |piece| asked.extend_from_slice(piece))? {
                Some(ended) => ended,
                None => return Ok(Progress::Open),
            };
            let Some((answer, head_only)) = answer(asked, site, names) else {
                return Ok(if ended {
                    Progress::Closed
                } else {
                    Progress::Open
                });
            };
            self.state = State::Waiting { head_only };
            self.until = now + MAKE_MAX;
            match answer {
                Answer::Now(reply) => self.take_reply(&reply, now),
                Answer::Later(job) => self.wait_for(job, later, now),
            }
        }
        if matches!(self.state, State::Waiting { .. }) {
            return Ok(match read(&mut self.socket, |_| {})? {
                Some(true) => Progress::Closed,
                _ => Progress::Open,
            });
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

    fn wait_for(&mut self, job: Job, later: &Later, now: Time) {
        if !later.make(self.number, job) {
            let why = "too many answers are being made; ask again";
            self.take_reply(&Reply::text(Status::Unavailable, why), now);
        }
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

/// The answer to a request, and whether only its head is wanted; `None` while it has not come
/// whole.
pub(crate) fn answer(asked: &[u8], site: &mut impl Site, names: &Names) -> Option<(Answer, bool)> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    let answer = match request.parse(asked) {
        Ok(httparse::Status::Partial) if asked.len() < REQUEST_BYTES_MAX => return None,
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            let why = format!("a request has at most {REQUEST_BYTES_MAX} bytes here");
            Reply::text(Status::TooLarge, &why).into()
        }
        Err(error) => Reply::text(Status::BadRequest, &format!("no HTTP request: {error}")).into(),
        Ok(httparse::Status::Complete(head)) => match names.check(request.headers) {
            Ok(()) => answer_method(&request, &asked[head..], site)?,
            Err(why) => Reply::text(Status::Forbidden, &why).into(),
        },
    };
    Some((answer, request.method == Some("HEAD")))
}

/// The answer to a request that may be answered under the name by which it came; `None` while its
/// body has not come whole.
fn answer_method(
    request: &httparse::Request<'_, '_>,
    rest: &[u8],
    site: &mut impl Site,
) -> Option<Answer> {
    let header = |name: &str| {
        let mut headers = request.headers.iter();
        let found = headers.find(|header| header.name.eq_ignore_ascii_case(name));
        found.map(|header| header.value)
    };
    let target = request.path.unwrap_or("/");
    let path = target.split(['?', '#']).next().unwrap_or(target);
    let accept = std::str::from_utf8(header("accept").unwrap_or_default()).unwrap_or_default();
    let post = match request.method {
        Some("GET" | "HEAD") => None,
        Some("POST") if header(POST_HEADER).is_none() => {
            let why = format!("a POST needs the header {POST_HEADER}");
            return Some(Reply::text(Status::Forbidden, &why).into());
        }
        Some("POST") if site.takes_post(path) => {
            let len = header("content-length").and_then(|len| std::str::from_utf8(len).ok());
            let Some(len) = len.and_then(|len| len.trim().parse::<usize>().ok()) else {
                let why = "a POST needs a Content-Length";
                return Some(Reply::text(Status::BadRequest, why).into());
            };
            if len > REQUEST_BYTES_MAX {
                let why = format!("a request has at most {REQUEST_BYTES_MAX} bytes here");
                return Some(Reply::text(Status::TooLarge, &why).into());
            }
            let authorization = header("authorization").unwrap_or_default();
            Some(Post {
                token: authorization.strip_prefix(BEARER).unwrap_or_default(),
                body: rest.get(..len)?,
            })
        }
        _ => {
            let reply = Reply::text(Status::MethodNotAllowed, "expected GET or HEAD");
            return Some(reply.into());
        }
    };
    let request = Request { path, accept, post };
    Some(site.answer(&request))
}

/// An answer as it is sent.
pub(crate) fn written(reply: &Reply, head_only: bool) -> Vec<u8> {
    let body = if head_only { "" } else { &*reply.body };
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
    [head.as_bytes(), body.as_bytes()].concat()
}
