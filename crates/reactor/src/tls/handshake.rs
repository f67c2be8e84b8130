//! The server's side of a handshake, record by record.
//!
//! The problem: rustls takes whatever it is handed, and what it has taken behind the end of the
//! handshake would be lost with it. The mechanism: bytes are cut into records here, and rustls gets
//! one at a time; with the one that ends the handshake it is done, and its secrets go on in
//! [`Records`]. What it wants to send is taken out of it at once.
//!
//! Invariants:
//! - rustls is never handed a byte behind the record that ends the handshake;
//! - a connection is given up, after the alert of rustls, if its secrets are not to be had: there
//!   is no second way to go on;
//! - what is kept of an unfinished record is at most that record.

use crate::records::{Records, Secrets};
use crate::tls::stream::send;
use crate::{Net, Read};
use rustls::{ConnectionCommon, KeyLog, ServerConfig, ServerConnection};
use std::fmt;
use std::io::{self, ErrorKind, Read as _};
use std::sync::{Arc, Mutex, PoisonError};
use zeroize::Zeroizing;

/// The longest record in front of the end of a handshake, as rustls takes it, with its header.
const RECORD_MAX: usize = 5 + (1 << 14) + 2048;

/// A handshake that is under way.
pub(crate) struct Handshake {
    connection: ServerConnection,
    secrets: Arc<Captured>,
    /// Bytes that have been read and not handed to rustls.
    received: Vec<u8>,
    /// Bytes that rustls has written and the socket had no room for.
    unsent: Vec<u8>,
}

/// Result of a handshake.
pub(crate) struct Finished {
    pub(crate) records: Records,
    /// Records behind the handshake, the last of which may not be whole.
    pub(crate) received: Vec<u8>,
    pub(crate) unsent: Vec<u8>,
    /// Certificate that the client has shown, in DER.
    pub(crate) certificate: Option<Box<[u8]>>,
}

impl fmt::Debug for Handshake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handshake")
    }
}

/// The secrets of TLS 1.3 as rustls tells them while it makes the handshake.
#[derive(Default)]
struct Captured {
    client: Mutex<Zeroizing<Vec<u8>>>,
    server: Mutex<Zeroizing<Vec<u8>>>,
}

impl fmt::Debug for Captured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Captured")
    }
}

impl Captured {
    fn of(&self, label: &str) -> Option<&Mutex<Zeroizing<Vec<u8>>>> {
        match label {
            "CLIENT_TRAFFIC_SECRET_0" => Some(&self.client),
            "SERVER_TRAFFIC_SECRET_0" => Some(&self.server),
            _ => None,
        }
    }
}

impl KeyLog for Captured {
    fn log(&self, label: &str, _client_random: &[u8], secret: &[u8]) {
        if let Some(kept) = self.of(label) {
            *kept.lock().unwrap_or_else(PoisonError::into_inner) = Zeroizing::new(secret.to_vec());
        }
    }

    fn will_log(&self, label: &str) -> bool {
        self.of(label).is_some()
    }
}

fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, error)
}

impl Handshake {
    /// Handshake of one connection: rustls tells the secrets of no other to it.
    pub(crate) fn new(config: &ServerConfig) -> io::Result<Handshake> {
        let secrets = Arc::new(Captured::default());
        let mut config = config.clone();
        config.enable_secret_extraction = true;
        config.key_log = secrets.clone();
        let connection = ServerConnection::new(Arc::new(config)).map_err(io::Error::other)?;
        Ok(Handshake {
            connection,
            secrets,
            received: Vec::new(),
            unsent: Vec::new(),
        })
    }

    pub(crate) fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    pub(crate) fn flush<N: Net>(&mut self, net: &mut N, sock: &N::Sock) -> io::Result<bool> {
        let waiting = std::mem::take(&mut self.unsent);
        send(net, sock, &waiting, &mut self.unsent)
    }

    /// Reads what the socket has, by way of `scratch`; whether the handshake is over with that.
    /// Otherwise, what ended the reading, which is no bytes.
    pub(crate) fn read<N: Net>(
        &mut self,
        net: &mut N,
        sock: &N::Sock,
        scratch: &mut [u8],
    ) -> Result<(), Read> {
        loop {
            match net.read(sock, scratch) {
                Read::Bytes(count) => match self.take(net, sock, &scratch[..count]) {
                    Ok(true) => return Ok(()),
                    Ok(false) => {}
                    Err(error) => return Err(Read::Failed(error)),
                },
                other => return Err(other),
            }
        }
    }

    /// Takes bytes of the peer; whether the handshake is over with them.
    pub(crate) fn take<N: Net>(
        &mut self,
        net: &mut N,
        sock: &N::Sock,
        bytes: &[u8],
    ) -> io::Result<bool> {
        self.received.extend_from_slice(bytes);
        let (mut at, mut result) = (0, Ok(()));
        while result.is_ok() && self.connection.is_handshaking() {
            let rest = &self.received[at..];
            let len = match len_of_record(rest) {
                Some(len) if len <= rest.len() => len,
                Some(_) => break,
                // Not a record: rustls says why, and tells the peer.
                None if rest.len() >= 5 || !rest.first().is_none_or(is_type) => rest.len(),
                None => break,
            };
            let is_record = len_of_record(rest).is_some();
            result = feed(&mut self.connection, &rest[..len]);
            if result.is_ok() && !is_record {
                result = Err(invalid("what the client sent is no TLS"));
            }
            at += len;
        }
        self.received.drain(..at);
        while self.connection.wants_write() {
            self.connection.write_tls(&mut self.unsent)?;
        }
        let sent = self.flush(net, sock);
        // Whether the alert could be sent changes nothing.
        result?;
        sent?;
        Ok(!self.connection.is_handshaking())
    }

    /// Ends the handshake: its result, and the bytes that are not sent yet.
    pub(crate) fn finish(mut self) -> io::Result<(Finished, Vec<u8>)> {
        let mut opened = Vec::new();
        match self.connection.reader().read_to_end(&mut opened) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        let version = self.connection.protocol_version();
        let shown = self.connection.peer_certificates();
        let shown = shown.and_then(|chain| chain.first());
        let certificate = shown.map(|shown| shown.as_ref().into());
        let keys = self.connection.dangerous_extract_secrets();
        let keys = keys.map_err(invalid)?;
        let lock = |kept: &Mutex<Zeroizing<Vec<u8>>>| {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *kept)
        };
        let (client, server) = (lock(&self.secrets.client), lock(&self.secrets.server));
        let secrets = Secrets {
            client: &client,
            server: &server,
        };
        let records =
            Records::new(version, keys, &secrets).map_err(|fault| invalid(fault.error))?;
        let finished = Finished {
            records,
            received: self.received,
            unsent: self.unsent,
            certificate,
        };
        Ok((finished, opened))
    }
}

/// Length of the record at the front; `None`: it has not come, or is none.
fn len_of_record(bytes: &[u8]) -> Option<usize> {
    let &[kind, _, _, high, low] = bytes.first_chunk()?;
    let len = 5 + usize::from(u16::from_be_bytes([high, low]));
    (is_type(&kind) && len <= RECORD_MAX).then_some(len)
}

/// True if a record may begin with it.
fn is_type(kind: &u8) -> bool {
    (20..=23).contains(kind)
}

/// Hands bytes to rustls, which deals with all of them.
fn feed<D>(connection: &mut ConnectionCommon<D>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        connection.read_tls(&mut bytes)?;
        connection.process_new_packets().map_err(invalid)?;
    }
    Ok(())
}
