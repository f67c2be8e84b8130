//! One connection of a target: what it is still owed.
//!
//! Everything that is sent is one of a few fixed texts, so a connection needs no buffer: it owes
//! so many whole copies of the message, of the first of which so many bytes have left, and perhaps
//! one last text behind them. While something is owed to an HTTP client it is not read, which
//! bounds what a client can ask for without taking it.

use super::request::{self, Request};
use reactor::{Net, Read, Write};
use std::sync::Arc;

/// Bound on one of them: a million are this times a million.
const _: () = assert!(size_of::<Peer<std::os::fd::OwnedFd>>() <= 48);

/// The texts that peers are sent.
#[derive(Debug)]
pub(super) struct Texts {
    /// A message; with HTTP its head as well.
    pub(super) message: Arc<[u8]>,
    /// The last answer on a connection, as its client wishes.
    last: Arc<[u8]>,
    /// The answer to what is no request.
    bad: Arc<[u8]>,
    /// Peers ask.
    http: bool,
}

impl Texts {
    /// Messages that nobody asks for.
    pub(super) fn plain(body: &[u8]) -> Texts {
        Texts {
            message: body.into(),
            last: Arc::default(),
            bad: Arc::default(),
            http: false,
        }
    }

    /// Answers.
    pub(super) fn http(body: &[u8]) -> Texts {
        let answer = |status: &str, more: &str, body: &[u8]| {
            let length = body.len();
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\
                 {more}\r\n"
            );
            [head.as_bytes(), body].concat().into()
        };
        let close = "Connection: close\r\n";
        Texts {
            message: answer("200 OK", "", body),
            last: answer("200 OK", close, body),
            bad: answer(
                "400 Bad Request",
                close,
                b"expected a request of HTTP/1.1\n",
            ),
            http: true,
        }
    }
}

/// End behind the messages that are owed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    Nothing,
    Answer,
    Bad,
}

/// Fate of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Stays,
    /// Ended in order: by its client, or after a last answer.
    Ended,
    /// Broke.
    Broke,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Peer<S> {
    pub(super) sock: S,
    owed: u32,
    /// Bytes of the first owed text that have left.
    sent: u32,
    last: Last,
    /// True if the kernel may hold more of its bytes.
    readable: bool,
    /// Bytes of a request's body that are yet to come.
    skip: u64,
    /// The beginning of a head.
    #[expect(
        clippy::box_collection,
        reason = "8 bytes of an idle connection instead of 24"
    )]
    head: Option<Box<Vec<u8>>>,
}

impl<S> Peer<S> {
    pub(super) fn new(sock: S) -> Peer<S> {
        Peer {
            sock,
            owed: 0,
            sent: 0,
            last: Last::Nothing,
            readable: false,
            skip: 0,
            head: None,
        }
    }

    /// Adds a due message. True when the one before has not left yet.
    pub(super) fn owe(&mut self) -> bool {
        self.owed = self.owed.saturating_add(1);
        self.owed > 1
    }

    /// Reads and answers, the socket having news.
    pub(super) fn on_event(
        &mut self,
        net: &mut impl Net<Sock = S>,
        texts: &Texts,
        readable: bool,
        buffer: &mut [u8],
    ) -> (Fate, u64) {
        self.readable |= readable;
        let mut left = 0;
        loop {
            let (fate, count) = self.write(net, texts);
            left += count;
            if fate != Fate::Stays || !self.readable || self.owed > 0 {
                return (fate, left);
            }
            match net.read(&self.sock, buffer) {
                Read::Bytes(count) => {
                    if texts.http {
                        self.take(&buffer[..count]);
                    }
                }
                Read::Blocked => self.readable = false,
                Read::End => return (Fate::Ended, left),
                Read::Failed(_) => return (Fate::Broke, left),
            }
        }
    }

    /// Writes what is owed, as far as there is room; also says how many texts have left whole.
    pub(super) fn write(&mut self, net: &mut impl Net<Sock = S>, texts: &Texts) -> (Fate, u64) {
        let mut left = 0;
        loop {
            let text = match (self.owed, self.last) {
                (0, Last::Nothing) => return (Fate::Stays, left),
                (0, Last::Answer) => &texts.last,
                (0, Last::Bad) => &texts.bad,
                _ => &texts.message,
            };
            let rest = text.get(self.sent as usize..).unwrap_or_default();
            match net.write(&self.sock, rest) {
                Write::Bytes(count) if count < rest.len() => {
                    self.sent += u32::try_from(count).unwrap_or(0);
                }
                Write::Bytes(_) => {
                    left += 1;
                    self.sent = 0;
                    if self.owed == 0 {
                        return (Fate::Ended, left);
                    }
                    self.owed -= 1;
                }
                Write::Blocked => return (Fate::Stays, left),
                Write::Failed(_) => return (Fate::Broke, left),
            }
        }
    }

    /// Takes the requests in `bytes`.
    fn take(&mut self, bytes: &[u8]) {
        let mut kept = self.head.take().map(|head| *head).unwrap_or_default();
        let mut rest = if kept.is_empty() {
            bytes
        } else {
            kept.extend_from_slice(bytes);
            &kept
        };
        while !rest.is_empty() && self.last == Last::Nothing {
            let pass = usize::try_from(self.skip)
                .unwrap_or(usize::MAX)
                .min(rest.len());
            self.skip -= pass as u64;
            rest = &rest[pass..];
            if rest.is_empty() {
                return;
            }
            match request::read(rest) {
                Request::Whole { len, body, close } => {
                    rest = &rest[len..];
                    self.skip = body;
                    if close {
                        self.last = Last::Answer;
                    } else {
                        self.owed = self.owed.saturating_add(1);
                    }
                }
                Request::Partial => {
                    self.head = Some(Box::new(rest.to_vec()));
                    return;
                }
                Request::Bad => self.last = Last::Bad,
            }
        }
    }
}

#[cfg(test)]
mod tests;
