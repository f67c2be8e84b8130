//! The world as a group sees it: reading, writing, accepting, connecting, the time.
//!
//! The problem: a group must run on real sockets at full speed and in a simulation from a seed,
//! with the same code. The mechanism: [`Net`], implemented by [`crate::RealNet`] and by the
//! simulation; the group is generic over it, so the real one costs no indirect call.
//!
//! Events are edge-triggered: after [`Event::readable`] the owner reads until [`Read::Blocked`] or
//! remembers that there is more; likewise for writing.

use crate::{Address, Key, Time};
use std::io;

/// Names what an event is about: a kind of object, chosen by the owner, and its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token(u64);

impl Token {
    /// A token of `kind` (0 to 15) for `key`.
    #[must_use]
    pub fn new(kind: u8, key: Key) -> Token {
        let (index, generation) = key.parts();
        Token(u64::from(kind & 15) << 60 | u64::from(generation) << 32 | u64::from(index))
    }

    /// Kind with which it was made.
    #[must_use]
    pub fn kind(self) -> u8 {
        (self.0 >> 60) as u8
    }

    /// Key with which it was made.
    #[must_use]
    pub fn key(self) -> Key {
        #[expect(clippy::cast_possible_truncation, reason = "takes the halves apart")]
        Key::from_parts(self.0 as u32, (self.0 >> 32) as u32)
    }

    /// The number given to the kernel.
    #[must_use]
    pub fn bits(self) -> u64 {
        self.0
    }

    /// A token again from its number.
    #[must_use]
    pub fn from_bits(bits: u64) -> Token {
        Token(bits)
    }
}

/// Readiness of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Token of the socket.
    pub token: Token,
    /// True if there may be bytes (or an end, or an error) to read.
    pub readable: bool,
    /// True if there may be room to write, or a connection is open or has failed.
    pub writable: bool,
    /// True if the peer will send no more, or the connection is gone.
    pub closed: bool,
}

/// Result of reading.
#[derive(Debug)]
pub enum Read {
    /// Number of bytes read, at least one.
    Bytes(usize),
    /// Nothing now; an event will tell.
    Blocked,
    /// The peer sent its last byte.
    End,
    /// Error of a broken connection.
    Failed(io::Error),
}

/// Result of writing.
#[derive(Debug)]
pub enum Write {
    /// Number of bytes taken, at least one.
    Bytes(usize),
    /// No room now; an event will tell.
    Blocked,
    /// Error of a broken connection; no byte of this call was taken.
    Failed(io::Error),
}

/// The world of one group.
pub trait Net {
    /// A connection; dropping it closes it.
    type Sock;

    /// The moment of this turn.
    fn now(&self) -> Time;

    /// The time as it goes on within the turn. It costs a call, and tells only how long work took:
    /// what is decided of clients goes by [`Net::now`].
    fn clock(&self) -> Time {
        self.now()
    }

    /// The next connection waiting at listener number `listener` (in the order in which they were
    /// given); `None` when there is none.
    ///
    /// # Errors
    /// The system's error; EMFILE when this group's descriptor table is full.
    fn accept(&mut self, listener: usize) -> io::Result<Option<Self::Sock>>;

    /// Begins a connection; an event tells when it stands ([`Net::connected`] says how it went).
    ///
    /// # Errors
    /// The system's error when it cannot even begin.
    fn connect(&mut self, to: &Address) -> io::Result<Self::Sock>;

    /// Result of a begun connection; called at its first event.
    ///
    /// # Errors
    /// Why it failed.
    fn connected(&mut self, sock: &Self::Sock) -> io::Result<()>;

    /// Asks for events on `sock` under `token`, once for its whole life.
    ///
    /// # Errors
    /// The system's error.
    fn watch(&mut self, sock: &Self::Sock, token: Token) -> io::Result<()>;

    /// No more events of a socket, which another process may go on with. To be done before it is
    /// closed here: as long as another process has it, the kernel would go on reporting it, and
    /// nobody could end that any more.
    ///
    /// # Errors
    /// The system's error.
    fn unwatch(&mut self, sock: &Self::Sock) -> io::Result<()>;

    /// Reads into `buffer`, which is not empty.
    fn read(&mut self, sock: &Self::Sock, buffer: &mut [u8]) -> Read;

    /// Writes from `bytes`, which is not empty.
    fn write(&mut self, sock: &Self::Sock, bytes: &[u8]) -> Write;

    /// Fills `bytes` with random ones, fit for nonces.
    fn random(&mut self, bytes: &mut [u8]);

    /// Time since anything has come from the peer's host, where it leaves unacknowledged what was
    /// sent again and again; `None` where it does not.
    fn unanswered(&self, _sock: &Self::Sock) -> Option<std::time::Duration> {
        None
    }

    /// Asks the host of an idle peer for a sign of life, in a second, and closes the connection if
    /// none comes.
    fn start_probing(&mut self, _sock: &Self::Sock) {}

    /// Asks no more where a sign of life has come.
    fn stop_probing(&mut self, _sock: &Self::Sock) {}

    /// Makes the close of this connection a reset in place of an end in order; what has not been
    /// sent by then is dropped.
    fn reset_on_close(&mut self, _sock: &Self::Sock) {}

    /// Bytes that the peer has sent and that it has been sent, as the kernel counts them; `None`
    /// for a Unix socket.
    fn bytes(&self, _sock: &Self::Sock) -> Option<(u64, u64)> {
        None
    }

    /// The peer's address; `None` for a Unix socket and where there is none.
    fn peer(&self, _sock: &Self::Sock) -> Option<std::net::SocketAddr> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_keeps_its_kind_and_its_key() {
        for (kind, index, generation) in [(0, 0, 0), (15, u32::MAX, (1 << 28) - 1), (3, 7, 9)] {
            let key = Key::from_parts(index, generation);
            let token = Token::from_bits(Token::new(kind, key).bits());
            assert_eq!((token.kind(), token.key()), (kind, key));
        }
    }
}
