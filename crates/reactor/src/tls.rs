//! TLS over a socket: what is read and written is plaintext, and the socket carries records.
//!
//! The problem: what a peer says does not depend on TLS, but when its socket is empty, what a short
//! read means and whether everything has been written do. The mechanism: [`Tls`] has no socket of
//! its own, and is handed it with each call. Its calls mean what [`Net`]'s do, for the bytes
//! inside: the handshake goes on in [`Tls::read`]. On the server's side, of which there are many,
//! rustls makes the handshake only, and the records behind it are ours ([`crate::records`]); on a
//! client's side, of which there are few, rustls stays.
//!
//! Invariants:
//! - nothing is written, and no byte is handed over, before the handshake has succeeded;
//! - decrypted bytes that the caller had no room for are never forgotten: only [`Tls::is_emptied`]
//!   says that there is nothing to read, and it is false then;
//! - ciphertext that waits for room in the socket is bounded by [`UNSENT_BYTES_MAX`], and is
//!   reported by [`Tls::has_unsent`] until [`Tls::flush`] has sent it.

mod handshake;
mod stream;

use crate::tls::handshake::Handshake;
use crate::tls::stream::{Stream, put_bytes, take_bytes, with_received};
use crate::{Net, Read, Write};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, ConnectionCommon, HandshakeKind, ServerConfig};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::sync::Arc;

/// Plaintext that is encrypted and not yet sent is at most this.
const WRITE_BYTES_MAX: usize = 32 * 1024;
/// Bytes that encryption adds: a header, a nonce or a content type, and a tag for each record.
const RECORDS_OVERHEAD_MAX: usize = 1024;
/// Ciphertext of one connection that waits for room in its socket.
pub const UNSENT_BYTES_MAX: usize = WRITE_BYTES_MAX + RECORDS_OVERHEAD_MAX;
/// A certificate that comes from another process.
const CERTIFICATE_BYTES_MAX: usize = 64 * 1024;
/// Memory of a server's side while its handshake is under way: the state of rustls, as measured.
const HANDSHAKE_BYTES: usize = 8 * 1024;

/// One side of a connection under TLS, without its socket.
#[derive(Debug)]
pub struct Tls {
    stage: Stage,
    /// Certificate that the client has shown to a server's side, in DER.
    certificate: Option<Box<[u8]>>,
}

#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "most are the large one, and `Tls` stands in a box"
)]
enum Stage {
    /// A client's side, from the first byte to the last.
    Client(Box<Client>),
    /// A server's side in front of the end of its handshake.
    Handshake(Box<Handshake>),
    /// A server's side behind it.
    Records(Stream),
    /// A server's side that has failed on the way from the one to the other.
    Failed,
}

/// Most of the cost of an idle client under TLS.
const _: () = assert!(size_of::<Tls>() <= 448);

/// A client's side: rustls with what its socket has told.
#[derive(Debug)]
struct Client {
    connection: ClientConnection,
    /// True if the last read of the socket has emptied it.
    is_emptied: bool,
}

impl Tls {
    /// The server's side, in front of its handshake.
    ///
    /// # Errors
    /// rustls cannot use the configuration.
    pub fn server(config: &ServerConfig) -> io::Result<Tls> {
        Ok(Tls::new(Stage::Handshake(Box::new(Handshake::new(
            config,
        )?))))
    }

    /// The side of a client of the server that is called `name`, in front of its handshake.
    /// [`Tls::flush`] sends the first message.
    ///
    /// # Errors
    /// rustls cannot use the configuration.
    pub fn client(config: &Arc<ClientConfig>, name: ServerName<'static>) -> io::Result<Tls> {
        let connection = ClientConnection::new(config.clone(), name);
        let mut connection = connection.map_err(io::Error::other)?;
        connection.set_buffer_limit(Some(WRITE_BYTES_MAX));
        Ok(Tls::new(Stage::Client(Box::new(Client {
            connection,
            is_emptied: false,
        }))))
    }

    fn new(stage: Stage) -> Tls {
        Tls {
            stage,
            certificate: None,
        }
    }

    /// Takes bytes that have been read from the socket already: they are the first of TLS.
    ///
    /// # Errors
    /// They are no TLS, or the peer's offer cannot be taken. The alert has been sent.
    pub fn take<N: Net>(&mut self, net: &mut N, sock: &N::Sock, received: &[u8]) -> io::Result<()> {
        match &mut self.stage {
            Stage::Client(client) => client.take(net, sock, received),
            Stage::Handshake(handshake) => match handshake.take(net, sock, received)? {
                true => self.finish(),
                false => Ok(()),
            },
            Stage::Records(_) | Stage::Failed => Err(not_connected()),
        }
    }

    /// Takes the secrets of a complete handshake, and goes on without rustls.
    fn finish(&mut self) -> io::Result<()> {
        match std::mem::replace(&mut self.stage, Stage::Failed) {
            Stage::Handshake(handshake) => {
                let (finished, opened) = handshake.finish()?;
                let kept = (finished.received, opened, finished.unsent);
                self.certificate = finished.certificate;
                self.stage = Stage::Records(Stream::new(finished.records, kept));
            }
            other => self.stage = other,
        }
        Ok(())
    }

    /// True if the handshake has not ended: a read may cost as much as a thousand others.
    #[must_use]
    pub fn is_handshaking(&self) -> bool {
        match &self.stage {
            Stage::Client(client) => client.connection.is_handshaking(),
            Stage::Handshake(_) => true,
            Stage::Records(_) | Stage::Failed => false,
        }
    }

    /// True if nothing is left to be read, in the socket and here, after a read that did not fill
    /// its buffer. The end of the connection, and whatever comes later, is told by an event.
    #[must_use]
    pub fn is_emptied(&self) -> bool {
        match &self.stage {
            Stage::Client(client) => client.is_emptied,
            Stage::Records(stream) => stream.is_emptied(),
            Stage::Handshake(_) | Stage::Failed => false,
        }
    }

    /// Bytes of memory that it takes, as far as it is a server's side, but for ciphertext that
    /// waits for room in the socket.
    #[must_use]
    pub fn kept_bytes(&self) -> usize {
        let certificate = self.certificate.as_ref().map_or(0, |shown| shown.len());
        match &self.stage {
            Stage::Records(stream) => size_of::<Tls>() + certificate + stream.kept_bytes(),
            _ => HANDSHAKE_BYTES,
        }
    }

    /// True if bytes that were taken from the caller have not been sent yet.
    #[must_use]
    pub fn has_unsent(&self) -> bool {
        match &self.stage {
            Stage::Client(client) => client.connection.wants_write(),
            Stage::Handshake(handshake) => handshake.has_unsent(),
            Stage::Records(stream) => stream.has_unsent(),
            Stage::Failed => false,
        }
    }

    /// Bytes of ciphertext behind a server's handshake that have not been sent yet, at most
    /// [`UNSENT_BYTES_MAX`].
    #[must_use]
    pub fn unsent_len(&self) -> usize {
        match &self.stage {
            Stage::Records(stream) => stream.unsent_len(),
            _ => 0,
        }
    }

    /// Sends what was taken and has not been sent; `false` where there is no room for all of it.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn flush<N: Net>(&mut self, net: &mut N, sock: &N::Sock) -> io::Result<bool> {
        match &mut self.stage {
            Stage::Client(client) => send_pending(&mut client.connection, net, sock),
            Stage::Handshake(handshake) => handshake.flush(net, sock),
            Stage::Records(stream) => stream.flush(net, sock),
            Stage::Failed => Err(not_connected()),
        }
    }

    /// True if it can go on in another process: a server's side behind its handshake, of which
    /// everything has been sent.
    #[must_use]
    pub fn may_go(&self) -> bool {
        matches!(&self.stage, Stage::Records(stream) if stream.may_go())
    }

    /// Appends all of it, keys too, if it may go. From then on nothing may be read or written here,
    /// unless the bytes are dropped unread.
    pub fn put_record(&self, out: &mut Vec<u8>) {
        if let Stage::Records(stream) = &self.stage
            && stream.may_go()
        {
            stream.put(out);
            put_bytes(out, self.certificate.as_deref().unwrap_or_default());
        }
    }

    /// Reads what [`Tls::put_record`] has written; `None`: it is not that.
    #[must_use]
    pub fn read_record(mut bytes: &[u8]) -> Option<Tls> {
        let stream = Stream::read_record(&mut bytes)?;
        let certificate = take_bytes(&mut bytes, CERTIFICATE_BYTES_MAX)?;
        bytes.is_empty().then(|| Tls {
            stage: Stage::Records(stream),
            certificate: (!certificate.is_empty()).then(|| certificate.into()),
        })
    }

    /// The certificate that the peer has shown, in DER; the handshake has checked it.
    #[must_use]
    pub fn peer_certificate(&self) -> Option<&[u8]> {
        match &self.stage {
            Stage::Client(client) => client.peer_certificate(),
            _ => self.certificate.as_deref(),
        }
    }

    /// Names of version and cipher of a server's side behind its handshake.
    #[must_use]
    pub fn names(&self) -> Option<(&'static str, &'static str)> {
        match &self.stage {
            Stage::Records(stream) => Some(stream.names()),
            _ => None,
        }
    }

    /// True where the handshake went on from an earlier connection's.
    #[must_use]
    pub fn is_resumed(&self) -> bool {
        match &self.stage {
            Stage::Client(client) => {
                client.connection.handshake_kind() == Some(HandshakeKind::Resumed)
            }
            _ => false,
        }
    }

    /// Tells the peer that nothing more will come, as far as there is room for that.
    pub fn end<N: Net>(&mut self, net: &mut N, sock: &N::Sock) {
        match &mut self.stage {
            Stage::Client(client) => client.end(net, sock),
            Stage::Records(stream) => stream.end(net, sock),
            Stage::Handshake(_) | Stage::Failed => {}
        }
    }

    /// Reads into `buffer`, which is not empty; goes on with the handshake first.
    pub fn read<N: Net>(&mut self, net: &mut N, sock: &N::Sock, buffer: &mut [u8]) -> Read {
        if let Stage::Handshake(handshake) = &mut self.stage {
            if let Err(ended) = with_received(|scratch| handshake.read(net, sock, scratch)) {
                return ended;
            }
            if let Err(error) = self.finish() {
                return Read::Failed(error);
            }
        }
        match &mut self.stage {
            Stage::Client(client) => client.read(net, sock, buffer),
            Stage::Records(stream) => stream.read(net, sock, buffer),
            Stage::Handshake(_) | Stage::Failed => Read::Failed(not_connected()),
        }
    }

    /// Writes from `bytes`, which is not empty. Some of what was taken may still have to be sent:
    /// see [`Tls::has_unsent`].
    pub fn write<N: Net>(&mut self, net: &mut N, sock: &N::Sock, bytes: &[u8]) -> Write {
        match &mut self.stage {
            Stage::Client(client) => client.write(net, sock, bytes),
            Stage::Records(stream) => stream.write(net, sock, bytes),
            Stage::Handshake(_) | Stage::Failed => Write::Failed(not_connected()),
        }
    }
}

fn not_connected() -> io::Error {
    io::Error::new(
        ErrorKind::NotConnected,
        "the TLS handshake has not finished",
    )
}

impl Client {
    fn take<N: Net>(&mut self, net: &mut N, sock: &N::Sock, mut received: &[u8]) -> io::Result<()> {
        while !received.is_empty() {
            self.connection.read_tls(&mut received)?;
            process(&mut self.connection, net, sock)?;
        }
        Ok(())
    }

    fn peer_certificate(&self) -> Option<&[u8]> {
        let shown = self.connection.peer_certificates()?.first()?;
        (!self.connection.is_handshaking()).then_some(shown)
    }

    fn end<N: Net>(&mut self, net: &mut N, sock: &N::Sock) {
        if !self.connection.is_handshaking() {
            self.connection.send_close_notify();
            // The connection is closed next, whatever became of it.
            let _ = send_pending(&mut self.connection, net, sock);
        }
    }

    fn read<N: Net>(&mut self, net: &mut N, sock: &N::Sock, buffer: &mut [u8]) -> Read {
        let mut filled = 0;
        // What was so in an earlier call says nothing of what has come since.
        self.is_emptied = false;
        loop {
            match self.connection.reader().read(&mut buffer[filled..]) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // An end without an announcement is one as well: every message has its length.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                    return self.ended(filled);
                }
                Ok(0) => return self.ended(filled),
                Ok(count) => filled += count,
                Err(error) => return Read::Failed(error),
            }
            if filled == buffer.len() || filled > 0 && self.is_emptied {
                return Read::Bytes(filled);
            }
            let mut socket = Socket::new(net, sock);
            let result = self.connection.read_tls(&mut socket);
            self.is_emptied = socket.is_emptied;
            match result {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return match filled {
                        0 => Read::Blocked,
                        _ => Read::Bytes(filled),
                    };
                }
                Err(error) => return Read::Failed(error),
            }
            if let Err(error) = process(&mut self.connection, net, sock) {
                return Read::Failed(error);
            }
        }
    }

    fn ended(&mut self, filled: usize) -> Read {
        // So that the end is met by the next read.
        self.is_emptied = false;
        match filled {
            0 => Read::End,
            _ => Read::Bytes(filled),
        }
    }

    fn write<N: Net>(&mut self, net: &mut N, sock: &N::Sock, bytes: &[u8]) -> Write {
        if self.connection.is_handshaking() {
            return Write::Failed(not_connected());
        }
        match send_pending(&mut self.connection, net, sock) {
            Ok(true) => {}
            Ok(false) => return Write::Blocked,
            Err(error) => return Write::Failed(error),
        }
        let taken = self.connection.writer().write(bytes);
        match taken.and_then(|count| send_pending(&mut self.connection, net, sock).map(|_| count)) {
            Ok(0) => Write::Blocked,
            Ok(count) => Write::Bytes(count),
            Err(error) => Write::Failed(error),
        }
    }
}

/// Deals with the records that have come, and sends what they ask for: also the alert that tells
/// the peer why it is being left.
fn process<N: Net>(
    connection: &mut ClientConnection,
    net: &mut N,
    sock: &N::Sock,
) -> io::Result<()> {
    let processed = connection.process_new_packets();
    let sent = send_pending(connection, net, sock);
    match processed {
        Ok(_) => sent.map(|_| ()),
        // Whether the alert could be sent changes nothing.
        Err(error) => Err(io::Error::new(ErrorKind::InvalidData, error)),
    }
}

/// Sends ciphertext of either side; `false` where there is no room for all of it.
///
/// # Errors
/// The system's.
pub fn send_pending<D, N: Net>(
    connection: &mut ConnectionCommon<D>,
    net: &mut N,
    sock: &N::Sock,
) -> io::Result<bool> {
    while connection.wants_write() {
        match connection.write_tls(&mut Socket::new(net, sock)) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// The socket as rustls reads and writes it.
#[derive(Debug)]
pub struct Socket<'a, N: Net> {
    net: &'a mut N,
    sock: &'a N::Sock,
    is_emptied: bool,
}

impl<'a, N: Net> Socket<'a, N> {
    /// Socket for one call of rustls.
    pub fn new(net: &'a mut N, sock: &'a N::Sock) -> Self {
        Socket {
            net,
            sock,
            is_emptied: false,
        }
    }
}

impl<N: Net> io::Read for Socket<'_, N> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.net.read(self.sock, buffer) {
            Read::Bytes(count) => {
                self.is_emptied = count < buffer.len();
                Ok(count)
            }
            Read::Blocked => {
                self.is_emptied = true;
                Err(ErrorKind::WouldBlock.into())
            }
            Read::End => Ok(0),
            Read::Failed(error) => Err(error),
        }
    }
}

impl<N: Net> io::Write for Socket<'_, N> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.net.write(self.sock, bytes) {
            Write::Bytes(count) => Ok(count),
            Write::Blocked => Err(ErrorKind::WouldBlock.into()),
            Write::Failed(error) => Err(error),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests;
