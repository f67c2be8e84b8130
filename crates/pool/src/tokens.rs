//! The kinds of sockets of which events tell: what a [`Token`] stands for.
//!
//! A group registers each of its sockets once, under one of these and the key of what it belongs
//! to. Invariant: a kind means the same table of keys for as long as a group lives.

use reactor::{Key, Token};

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
