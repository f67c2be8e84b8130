//! TLS over a socket: what is read and written is plaintext, and the socket carries records.
//!
//! The problem: what a peer says does not depend on TLS, but when its socket is empty, what a short
//! read means and whether everything has been written do. The mechanism: [`Tls`] holds the state of
//! rustls, which has no socket of its own, and is handed the socket with each call. Its calls mean
//! what [`Net`]'s do, for the bytes inside: the handshake goes on in [`Tls::read`].
//!
//! Invariants:
//! - nothing is written, and no byte is handed over, before the handshake has succeeded;
//! - decrypted bytes that the caller had no room for are never forgotten: only [`Tls::is_emptied`]
//!   says that there is nothing to read, and it is false then;
//! - ciphertext that waits for room in the socket is bounded by [`UNSENT_BYTES_MAX`], and is
//!   reported by [`Tls::has_unsent`] until [`Tls::flush`] has sent it.

use crate::{Net, Read, Write};
use rustls::pki_types::ServerName;
use rustls::{
    ClientConfig, ClientConnection, Connection, ConnectionCommon, HandshakeKind, ServerConfig,
    ServerConnection,
};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::sync::Arc;

/// Plaintext that is encrypted and not yet sent is at most this.
const WRITE_BYTES_MAX: usize = 32 * 1024;
/// What encryption adds to it: a header, a nonce or a content type, and a tag for each record.
const RECORDS_OVERHEAD_MAX: usize = 1024;
/// Ciphertext of one connection that waits for room in its socket.
pub const UNSENT_BYTES_MAX: usize = WRITE_BYTES_MAX + RECORDS_OVERHEAD_MAX;

/// One side of a connection under TLS, without its socket.
#[derive(Debug)]
pub struct Tls {
    connection: Connection,
    /// The last read of the socket has emptied it.
    is_emptied: bool,
}

impl Tls {
    /// The server's side, in front of its handshake.
    ///
    /// # Errors
    /// rustls cannot use the configuration.
    pub fn server(config: &Arc<ServerConfig>) -> io::Result<Tls> {
        let connection = ServerConnection::new(config.clone()).map_err(io::Error::other)?;
        Ok(Tls::new(connection.into()))
    }

    /// The side of a client of the server that is called `name`, in front of its handshake.
    /// [`Tls::flush`] sends the first message.
    ///
    /// # Errors
    /// rustls cannot use the configuration.
    pub fn client(config: &Arc<ClientConfig>, name: ServerName<'static>) -> io::Result<Tls> {
        let connection = ClientConnection::new(config.clone(), name).map_err(io::Error::other)?;
        Ok(Tls::new(connection.into()))
    }

    fn new(mut connection: Connection) -> Tls {
        connection.set_buffer_limit(Some(WRITE_BYTES_MAX));
        Tls {
            connection,
            is_emptied: false,
        }
    }

    /// Takes bytes that have been read from the socket already: they are the first of TLS.
    ///
    /// # Errors
    /// They are no TLS, or the peer's offer cannot be taken. The alert has been sent.
    pub fn take<N: Net>(
        &mut self,
        net: &mut N,
        sock: &N::Sock,
        mut received: &[u8],
    ) -> io::Result<()> {
        while !received.is_empty() {
            self.connection.read_tls(&mut received)?;
            process(&mut self.connection, net, sock)?;
        }
        Ok(())
    }

    /// Whether the handshake has not ended: a read may cost as much as a thousand others.
    #[must_use]
    pub fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// Whether nothing is left to be read, in the socket and here, after a read that did not fill
    /// its buffer. The end of the connection, and whatever comes later, is told by an event.
    #[must_use]
    pub fn is_emptied(&self) -> bool {
        self.is_emptied
    }

    /// Whether bytes that were taken from the caller have not been sent yet.
    #[must_use]
    pub fn has_unsent(&self) -> bool {
        self.connection.wants_write()
    }

    /// Sends what was taken and has not been sent; `false` where there is no room for all of it.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn flush<N: Net>(&mut self, net: &mut N, sock: &N::Sock) -> io::Result<bool> {
        send_all(&mut self.connection, net, sock)
    }

    /// The certificate that the peer has shown, in DER; the handshake has checked it.
    #[must_use]
    pub fn peer_certificate(&self) -> Option<&[u8]> {
        let shown = self.connection.peer_certificates()?.first()?;
        (!self.connection.is_handshaking()).then_some(shown)
    }

    /// True where the handshake went on from an earlier connection's.
    #[must_use]
    pub fn is_resumed(&self) -> bool {
        self.connection.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// Tells the peer that nothing more will come, as far as there is room for that.
    pub fn end<N: Net>(&mut self, net: &mut N, sock: &N::Sock) {
        if !self.connection.is_handshaking() {
            self.connection.send_close_notify();
            // The connection is closed next, whatever became of it.
            let _ = send_all(&mut self.connection, net, sock);
        }
    }

    /// Reads into `buffer`, which is not empty; goes on with the handshake first.
    pub fn read<N: Net>(&mut self, net: &mut N, sock: &N::Sock, buffer: &mut [u8]) -> Read {
        let mut filled = 0;
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

    /// Writes from `bytes`, which is not empty. Some of what was taken may still have to be sent:
    /// see [`Tls::has_unsent`].
    pub fn write<N: Net>(&mut self, net: &mut N, sock: &N::Sock, bytes: &[u8]) -> Write {
        if self.connection.is_handshaking() {
            return Write::Failed(io::Error::new(
                ErrorKind::NotConnected,
                "the TLS handshake has not finished",
            ));
        }
        match send_all(&mut self.connection, net, sock) {
            Ok(true) => {}
            Ok(false) => return Write::Blocked,
            Err(error) => return Write::Failed(error),
        }
        let taken = self.connection.writer().write(bytes);
        match taken.and_then(|count| send_all(&mut self.connection, net, sock).map(|_| count)) {
            Ok(0) => Write::Blocked,
            Ok(count) => Write::Bytes(count),
            Err(error) => Write::Failed(error),
        }
    }
}

/// Deals with the records that have come, and sends what they ask for: also the alert that tells
/// the peer why it is being left.
fn process<N: Net>(connection: &mut Connection, net: &mut N, sock: &N::Sock) -> io::Result<()> {
    let processed = connection.process_new_packets();
    let sent = send_all(connection, net, sock);
    match processed {
        Ok(_) => sent.map(|_| ()),
        // Whether the alert could be sent changes nothing.
        Err(error) => Err(io::Error::new(ErrorKind::InvalidData, error)),
    }
}

fn send_all<N: Net>(connection: &mut Connection, net: &mut N, sock: &N::Sock) -> io::Result<bool> {
    match connection {
        Connection::Client(connection) => send_pending(connection, net, sock),
        Connection::Server(connection) => send_pending(connection, net, sock),
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
    /// For one call of rustls.
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
