//! The kinds of sockets of which events tell, and the ids of clients and backends: what a
//! [`Token`] stands for.
//!
//! A group registers each of its sockets once, under one of these and the key of what it belongs
//! to. Invariant: a kind means the same table of keys for as long as a group lives.
//!
//! Clients and backends stand in two tables, and most of the pool handles one of each at a time.
//! Their keys therefore have a type for each table: taking one for the other does not compile.

use reactor::{Key, Token, slot_key};

pub(crate) const LISTENER: u8 = 0;
pub(crate) const CLIENT: u8 = 1;
pub(crate) const BACKEND: u8 = 2;
pub(crate) const MAILBOX: u8 = 3;
pub(crate) const KILL_CONNECTION: u8 = 4;
/// A socket to another process of the pool, which is handled between the turns.
pub(crate) const UPGRADE: u8 = 5;

/// The token for events of listener number `index`.
#[must_use]
pub fn listener_token(index: u32) -> Token {
    Token::new(LISTENER, Key::from_parts(index, 0))
}

slot_key! {
    /// Names a client in the table of its group.
    ClientId
}

slot_key! {
    /// Names a backend in the table of its group.
    BackendId
}

slot_key! {
    /// Names one of the connections that carry a KILL, by how many a group has opened before.
    KillConnectionId
}

impl ClientId {
    /// The token under which the client's socket is watched.
    pub(crate) fn token(self) -> Token {
        Token::new(CLIENT, self.into())
    }
}

impl BackendId {
    /// The token under which the backend's socket is watched.
    pub(crate) fn token(self) -> Token {
        Token::new(BACKEND, self.into())
    }
}

impl KillConnectionId {
    /// The token under which the connection's socket is watched.
    pub(crate) fn token(self) -> Token {
        Token::new(KILL_CONNECTION, self.into())
    }
}
