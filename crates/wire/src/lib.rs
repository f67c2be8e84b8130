//! The MySQL client/server protocol, both sides, without a socket.
//!
//! The problem: a pool sits between clients and servers and must know, byte for byte, where a
//! command and its reply end, what a reply changes, and how to say the same thing to a peer that
//! negotiated other capabilities. The mechanism: plain functions and small state machines from
//! bytes to values and back. Everything a peer sends is untrusted; every parser returns an error
//! that says what was expected and what came, and none panics.
//!
//! Invariants:
//! - no socket is opened and no clock read ([`blocking`] uses the stream that it is given), no
//!   randomness of its own (nonces are arguments), no `unsafe`;
//! - no allocation on the relay path ([`packet`], [`reply`]); login and errors may allocate;
//! - numbers are little-endian as on the wire; lengths are bytes.
//!
//! Sources of protocol facts: the MySQL Internals manual ("Client/Server Protocol"), MariaDB's
//! "Clientserver Protocol" pages, and the behaviour of live servers.
#![forbid(unsafe_code)]

pub mod attributes;
pub mod auth;
pub mod blocking;
pub mod capabilities;
pub mod checked;
pub mod client_login;
pub mod command;
pub mod compressed;
pub mod dsn;
pub mod errors;
pub mod execution;
pub mod handshake;
pub mod packet;
pub mod proxy_header;
pub mod reply;
pub mod rows;
pub mod status;
pub mod track;
pub mod wiped;
pub mod wrong_protocol;
