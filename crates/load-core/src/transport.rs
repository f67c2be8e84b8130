//! A connection's bytes, plain or under TLS: the one type that everything on the event loop uses.
//!
//! The problem: what a connection says does not depend on TLS, but when its socket is empty, what
//! a short read means and what has to be written do. The mechanism: [`Transport`] owns the socket
//! and, where TLS was asked for, rustls's connection, which has no socket of its own. Its calls
//! mean what [`Net`]'s do, for the bytes inside.
//!
//! Invariants:
//! - nothing of the caller's is sent or handed over before the handshake has succeeded
//!   ([`Transport::handshake`]), that is before the certificate has been checked;
//! - an end that the peer has not announced (close_notify) is told apart from one that it has:
//!   somebody on the way may have cut the stream;
//! - a plain connection costs its socket and one empty pointer;
//! - ciphertext that waits for room is bounded by rustls (64 KiB), and goes at the next
//!   [`Transport::flush`].

mod fault;
mod mysql;
mod security;

pub use mysql::{Stream, blocking};
pub use security::{Check, Security, TlsArgs};

use crate::errors::Fault;
use reactor::tls::{Socket, send_pending};
use reactor::{Net, Read, RealNet, Write};
use rustls::{ClientConnection, HandshakeKind};
use security::Asking;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;

/// Result of reading.
#[derive(Debug)]
pub enum Came {
    /// Number of bytes read, at least one.
    Bytes(usize),
    /// Nothing now; an event will tell.
    Blocked,
    /// End: the peer will send no more.
    End(Ending),
    /// Fault of a broken connection.
    Failed(Fault),
}

/// End of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// End that the peer wanted, as far as the protocol can tell.
    Announced,
    /// Under TLS, without the announcement: what was to come behind may have been cut off.
    Cut,
}

/// Progress of the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handshake {
    /// Continues at the next event.
    Waits,
    /// Connection that can be used. Bytes may have come with the end of the handshake: read now.
    Done,
}

/// A connection, plain or under TLS.
#[derive(Debug)]
pub struct Transport {
    sock: OwnedFd,
    tls: Option<Box<Tls>>,
}

/// State of TLS.
#[derive(Debug)]
struct Tls {
    connection: ClientConnection,
    begin: Begin,
    /// Bytes that came in clear in front of TLS, for the caller to read first.
    kept: Vec<u8>,
}

/// Beginning of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begin {
    /// Now, or it has begun.
    AtOnce,
    /// Handshake behind a MySQL server's greeting and the request for TLS.
    BehindGreeting(Asking),
    /// Never: the server does not offer it, or has refused the connection. The caller reads what
    /// the server has said, and can send nothing.
    Never,
    /// Never, and the connection goes on in clear.
    InClear,
}

impl Transport {
    /// Over a socket that the system has begun to connect.
    ///
    /// # Errors
    /// What rustls says, where it cannot make a connection of its own.
    pub fn new(sock: OwnedFd, security: &Security) -> Result<Transport, Fault> {
        let begin = security
            .of_greeting()
            .map_or(Begin::AtOnce, Begin::BehindGreeting);
        let tls = security.connection()?.map(|connection| {
            Box::new(Tls {
                connection,
                begin,
                kept: Vec::new(),
            })
        });
        Ok(Transport { sock, tls })
    }

    /// Socket, to be watched, and asked how the connecting went.
    pub fn sock(&self) -> &OwnedFd {
        &self.sock
    }

    /// True where less than a whole buffer means that there is nothing more to read. Under TLS it
    /// means the end of a record.
    pub fn is_emptied_by_short_read(&self) -> bool {
        self.tls.is_none()
    }

    /// The protocol that both sides have agreed on, if there was anything to agree.
    pub fn protocol(&self) -> Option<&[u8]> {
        self.tls.as_ref()?.connection.alpn_protocol()
    }

    /// Goes on with the handshake; for a socket that is connected, at each of its events.
    ///
    /// # Errors
    /// Why there is no connection: the certificate, the peer's refusal, another protocol.
    pub fn handshake(&mut self, net: &mut RealNet) -> Result<Handshake, Fault> {
        let Some(tls) = &mut self.tls else {
            return Ok(Handshake::Done);
        };
        let sock = &self.sock;
        if let Begin::BehindGreeting(asking) = tls.begin {
            let begin = mysql::greeted(net, sock, asking, &mut tls.kept)?;
            let Some(begin) = begin else {
                return Ok(Handshake::Waits);
            };
            tls.begin = begin;
        }
        if tls.begin != Begin::AtOnce {
            return Ok(Handshake::Done);
        }
        let tls = &mut tls.connection;
        while tls.is_handshaking() {
            send_ciphertext(tls, net, sock)?;
            match tls.read_tls(&mut Socket::new(net, sock)) {
                Ok(0) => return Err(fault::ended_in_handshake()),
                Ok(_) => process(tls, net, sock)?,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Handshake::Waits),
                Err(error) => return Err(Fault::system(&error)),
            }
        }
        send_ciphertext(tls, net, sock)?;
        Ok(Handshake::Done)
    }

    /// True where the handshake went on from an earlier connection's.
    pub fn is_resumed(&self) -> bool {
        let kind = self.tls.as_ref().map(|tls| tls.connection.handshake_kind());
        kind == Some(Some(HandshakeKind::Resumed))
    }

    /// Reads into `buffer`, which is not empty.
    pub fn read(&mut self, net: &mut RealNet, buffer: &mut [u8]) -> Came {
        let is_plain = |tls: &Tls| tls.begin == Begin::InClear && tls.kept.is_empty();
        if self.tls.as_deref().is_some_and(is_plain) {
            // The greeting has been read: from now on this is a connection like others.
            self.tls = None;
        }
        let sock = &self.sock;
        let Some(tls) = &mut self.tls else {
            return match net.read(sock, buffer) {
                Read::Bytes(count) => Came::Bytes(count),
                Read::Blocked => Came::Blocked,
                Read::End => Came::End(Ending::Announced),
                Read::Failed(error) => Came::Failed(Fault::system(&error)),
            };
        };
        if !tls.kept.is_empty() {
            let count = tls.kept.len().min(buffer.len());
            buffer[..count].copy_from_slice(&tls.kept[..count]);
            tls.kept.drain(..count);
            return Came::Bytes(count);
        }
        if tls.begin == Begin::Never {
            return Came::Blocked;
        }
        tls.kept = Vec::new();
        let tls = &mut tls.connection;
        loop {
            match io::Read::read(&mut tls.reader(), buffer) {
                Ok(0) => return Came::End(Ending::Announced),
                Ok(count) => return Came::Bytes(count),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                    return Came::End(Ending::Cut);
                }
                Err(error) => return Came::Failed(Fault::system(&error)),
            }
            match tls.read_tls(&mut Socket::new(net, sock)) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Came::Blocked,
                Err(error) => return Came::Failed(Fault::system(&error)),
                // Of an end (0 bytes) the reader above tells, with its kind.
                Ok(_) => {}
            }
            if let Err(fault) = process(tls, net, sock) {
                return Came::Failed(fault);
            }
        }
    }

    /// Writes from `bytes`, which is not empty. What TLS has taken and the socket has not is sent
    /// by [`Transport::flush`].
    pub fn write(&mut self, net: &mut RealNet, bytes: &[u8]) -> Write {
        let sock = &self.sock;
        let Some(tls) = &mut self.tls else {
            return net.write(sock, bytes);
        };
        match tls.begin {
            Begin::AtOnce => {}
            Begin::InClear => return net.write(sock, bytes),
            Begin::BehindGreeting(_) | Begin::Never => {
                return Write::Failed(io::Error::other("nothing is sent before TLS has begun"));
            }
        }
        let tls = &mut tls.connection;
        let result = match send_pending(tls, net, sock) {
            Ok(false) => return Write::Blocked,
            Ok(true) => io::Write::write(&mut tls.writer(), bytes),
            Err(error) => return Write::Failed(error),
        };
        match result.and_then(|count| send_pending(tls, net, sock).map(|_| count)) {
            Ok(0) => Write::Blocked,
            Ok(count) => Write::Bytes(count),
            Err(error) => Write::Failed(error),
        }
    }

    /// Sends what waits, as far as there is room to write.
    ///
    /// # Errors
    /// The system's.
    pub fn flush(&mut self, net: &mut RealNet) -> Result<(), Fault> {
        match &mut self.tls {
            Some(tls) if tls.begin == Begin::AtOnce => {
                send_ciphertext(&mut tls.connection, net, &self.sock)
            }
            // In clear nothing of TLS may be sent, though it has its first message ready.
            Some(_) | None => Ok(()),
        }
    }
}

/// Deals with the records that have come, and sends what they ask for: also the alert that tells
/// the peer why it is being left.
fn process(tls: &mut ClientConnection, net: &mut RealNet, sock: &OwnedFd) -> Result<(), Fault> {
    let processed = tls.process_new_packets();
    let sent = send_ciphertext(tls, net, sock);
    match processed {
        Ok(_) => sent,
        // Whether the alert could be sent changes nothing.
        Err(error) => Err(fault::tls(&error)),
    }
}

fn send_ciphertext(
    tls: &mut ClientConnection,
    net: &mut RealNet,
    sock: &OwnedFd,
) -> Result<(), Fault> {
    send_pending(tls, net, sock)
        .map(|_| ())
        .map_err(|error| Fault::system(&error))
}
