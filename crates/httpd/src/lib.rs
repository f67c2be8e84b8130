//! A small HTTP/1.1 server for figures and pages: what `onramp pool` and `onramp load` show of
//! themselves while they run.
//!
//! The problem: a probe of the health of a process has to be answered at once, however many other
//! readers are slow, silent or hostile, and the threads that do the process's work must not notice.
//! The mechanism: one thread polls all its sockets and never waits for one of them. A request is
//! read by `httparse`, answered in one piece, and the connection is closed. There are at most
//! [`CONNECTIONS_MAX`] connections: one more closes the oldest. A request has at most
//! [`REQUEST_BYTES_MAX`] bytes and [`ASK_MAX`] to arrive; the answer has [`TAKE_MAX`] to be taken.
//! What cannot be answered at once is done in a second thread, one after another
//! ([`Answer::Later`]): at most [`LATER_MAX`] wait for it, for [`MAKE_MAX`] each.
//!
//! Invariant: a reader's socket exists in this thread's descriptor table only. A group that begins
//! while a reader is being answered copies the main table; a copy of the socket there would keep it
//! open for as long as the group lives, and the reader would wait for its end all that time.

mod connection;
mod later;
mod names;

pub use names::Names;

use connection::{Connection, Progress};
use later::Later;
use reactor::{Time, descriptors};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

/// Connections at once; one more closes the oldest.
pub const CONNECTIONS_MAX: usize = 64;
/// Bytes of a request. The body of a GET is not read.
pub const REQUEST_BYTES_MAX: usize = 16 * 1024;
/// Longest time for a request to arrive.
pub const ASK_MAX: Duration = Duration::from_secs(2);
/// Answers that wait to be made, the one that is being made not counted.
pub const LATER_MAX: usize = 8;
/// Longest time for an answer to be made.
pub const MAKE_MAX: Duration = Duration::from_secs(30);
/// Longest time for an answer to be taken.
pub const TAKE_MAX: Duration = Duration::from_secs(10);
/// The header that a POST needs. A page of another origin can send it only after a preflight, which
/// is not answered here.
pub const POST_HEADER: &str = "X-Onramp";
/// Pause after an accept that failed for want of descriptors.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);
/// The longest that the thread sleeps.
const SLEEP_MAX: Duration = Duration::from_secs(3600);

/// Mark in a page for the style and the script that all share.
const STYLE_MARK: &str = "/* page.css */\n";
const SCRIPT_MARK: &str = "// page.js\n";

/// A page of a process, with the style and the functions that all pages share in place of the marks
/// that it has for them. It refers to nothing outside of itself.
#[must_use]
pub fn page(own: &str) -> String {
    own.replacen(STYLE_MARK, include_str!("page.css"), 1)
        .replacen(SCRIPT_MARK, include_str!("page.js"), 1)
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The path, without the `?` and what follows it.
    pub path: &'a str,
    /// The value of the header `Accept`; empty where there is none.
    pub accept: &'a str,
    /// Token and body of a POST; `None`: GET or HEAD.
    pub post: Option<Post<'a>>,
}

/// Parts of a POST.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Post<'a> {
    /// The token of the header `Authorization`, behind `Bearer`; empty where there is none.
    pub token: &'a [u8],
    /// The body.
    pub body: &'a [u8],
}

impl Request<'_> {
    /// True if the client has named this type among those that it takes; `q=0` says that it does
    /// not take it.
    #[must_use]
    pub fn accepts(&self, kind: &str) -> bool {
        self.accept.split(',').any(|one| {
            let mut parts = one.split(';').map(str::trim);
            let is_named = parts
                .next()
                .is_some_and(|name| name.eq_ignore_ascii_case(kind));
            let is_refused = parts.any(|part| {
                let quality = part
                    .split_once('=')
                    .filter(|(name, _)| name.trim().eq_ignore_ascii_case("q"));
                quality.is_some_and(|(_, value)| value.trim().parse() == Ok(0.0))
            });
            is_named && !is_refused
        })
    }
}

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The status.
    pub status: Status,
    /// The value of the header `Content-Type`.
    pub kind: &'static str,
    /// The body.
    pub body: String,
}

/// The status of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// 200.
    Ok,
    /// 400: no request of HTTP/1.
    BadRequest,
    /// 401: a POST with a wrong token.
    Unauthorized,
    /// 403: a name that is not listed, or a POST without [`POST_HEADER`].
    Forbidden,
    /// 404.
    NotFound,
    /// 405: neither GET nor HEAD, or a POST to a path that takes none.
    MethodNotAllowed,
    /// 431: longer than [`REQUEST_BYTES_MAX`], or too many headers.
    TooLarge,
    /// 503.
    Unavailable,
}

impl Status {
    fn line(self) -> &'static str {
        match self {
            Status::Ok => "200 OK",
            Status::BadRequest => "400 Bad Request",
            Status::Unauthorized => "401 Unauthorized",
            Status::Forbidden => "403 Forbidden",
            Status::NotFound => "404 Not Found",
            Status::MethodNotAllowed => "405 Method Not Allowed",
            Status::TooLarge => "431 Request Header Fields Too Large",
            Status::Unavailable => "503 Service Unavailable",
        }
    }
}

/// Content types of answers.
pub mod kind {
    /// Plain text.
    pub const TEXT: &str = "text/plain; charset=utf-8";
    /// A page.
    pub const HTML: &str = "text/html; charset=utf-8";
    /// JSON.
    pub const JSON: &str = "application/json";
    /// Figures in the text format of Prometheus.
    pub const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";
    /// Figures in the format of OpenMetrics.
    pub const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
}

impl Reply {
    /// A 200 with this body.
    #[must_use]
    pub fn ok(kind: &'static str, body: impl Into<String>) -> Reply {
        Reply {
            status: Status::Ok,
            kind,
            body: body.into(),
        }
    }

    /// A line of text with another status.
    #[must_use]
    pub fn text(status: Status, line: &str) -> Reply {
        Reply {
            status,
            kind: kind::TEXT,
            body: format!("{line}\n"),
        }
    }
}

/// Function that makes an answer that takes a while.
pub type Job = Box<dyn FnOnce() -> Reply + Send>;

/// Answer to a request: at once or later.
pub enum Answer {
    /// Reply at once.
    Now(Reply),
    /// Another thread makes the answer.
    Later(Job),
}

impl From<Reply> for Answer {
    fn from(reply: Reply) -> Answer {
        Answer::Now(reply)
    }
}

/// A site: answers requests.
pub trait Site {
    /// The answer to a request. It must not wait for anything.
    fn answer(&mut self, request: &Request<'_>) -> Answer;

    /// True if this path takes a POST.
    fn takes_post(&self, _path: &str) -> bool {
        false
    }

    /// Interval of [`Site::tick`]; `None`: never.
    fn every(&self) -> Option<Duration> {
        None
    }

    /// Works on what is due after a moment.
    fn tick(&mut self) {}
}

impl<A: Into<Answer>, F: FnMut(&Request<'_>) -> A> Site for F {
    fn answer(&mut self, request: &Request<'_>) -> Answer {
        self(request).into()
    }
}

/// Answers whoever comes, by an address or one of the names, in a thread of its own, until the
/// process ends.
///
/// # Errors
/// The system's, where the listener cannot be used or the thread cannot be started.
pub fn serve(
    listener: TcpListener,
    names: Names,
    site: impl Site + Send + 'static,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let later = Later::start()?;
    let work = move || {
        // Where this is not allowed no group has a table of its own either, and nothing is copied.
        let _ = descriptors::own_table();
        Server {
            listener,
            names,
            site,
            connections: Vec::new(),
            numbers: 0,
            later,
            accept_at: Time(0),
        }
        .run();
    };
    let builder = thread::Builder::new().name("http".to_owned());
    builder.spawn(work).map(|_| ())
}

struct Server<S> {
    listener: TcpListener,
    names: Names,
    site: S,
    /// The oldest first.
    connections: Vec<Connection>,
    /// Number of connections so far.
    numbers: u64,
    later: Later,
    /// Moment before which no connection is accepted.
    accept_at: Time,
}

impl<S: Site> Server<S> {
    fn run(mut self) {
        let every = self.site.every();
        let mut tick_at = every.map_or(Time::NEVER, |every| Time::now() + every);
        loop {
            self.wait(tick_at);
            let now = Time::now();
            if let Some(every) = every.filter(|_| now >= tick_at) {
                self.site.tick();
                tick_at = now + every;
            }
            for (number, reply) in self.later.made() {
                let mut connections = self.connections.iter_mut();
                if let Some(waits) = connections.find(|waits| waits.number() == number) {
                    waits.take_reply(&reply, now);
                }
            }
            let (site, names, later) = (&mut self.site, &self.names, &self.later);
            self.connections.retain_mut(|connection| {
                connection.go_on((site, names), later, now) == Progress::Open
            });
            if now >= self.accept_at {
                self.accept(now);
            }
        }
    }

    /// Waits until a socket is ready or a time limit has come.
    fn wait(&self, tick_at: Time) {
        let now = Time::now();
        let accepts = now >= self.accept_at;
        let mut until = tick_at;
        if !accepts {
            until = until.min(self.accept_at);
        }
        let mut polled = Vec::with_capacity(self.connections.len() + 2);
        polled.push(PollFd::new(self.later.wake(), PollFlags::IN));
        for connection in &self.connections {
            until = until.min(connection.until());
            let flags = match connection.is_writing() {
                true => PollFlags::OUT,
                false => PollFlags::IN,
            };
            polled.push(PollFd::new(connection.socket(), flags));
        }
        if accepts {
            polled.push(PollFd::new(&self.listener, PollFlags::IN));
        }
        // A timespec of a bounded time always exists; an interrupted wait is one that has ended.
        let sleep = until.since(now).min(SLEEP_MAX);
        let _ = poll(&mut polled, Timespec::try_from(sleep).ok().as_ref());
    }

    fn accept(&mut self, now: Time) {
        for _ in 0..CONNECTIONS_MAX {
            match self.listener.accept() {
                Ok((socket, _)) => {
                    if self.connections.len() >= CONNECTIONS_MAX {
                        self.connections.remove(0);
                    }
                    self.numbers += 1;
                    if let Ok(connection) = Connection::new(socket, self.numbers, now) {
                        self.connections.push(connection);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                // No descriptor is left, or no memory.
                Err(_) => {
                    self.accept_at = now + ACCEPT_AGAIN;
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
