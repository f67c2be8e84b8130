//! TLS of MySQL connections: it begins behind the server's greeting.
//!
//! A server greets in clear and says whether it offers TLS. The client answers with the first 32
//! bytes of a login (SSLRequest), and both sides begin TLS; the login follows under it. Clients of
//! this crate do not see that: they read the greeting when TLS stands, with the number that the
//! packet in front of theirs then has.
//!
//! Invariants: not a byte more than the greeting is taken in clear, so that nothing that somebody
//! put in front of TLS is believed; where the server does not offer TLS nothing is sent, unless TLS
//! is optional.

use super::{Asking, Begin, Security, fault};
use crate::errors::Fault;
use reactor::{Net, Read, RealNet, Write, tls_client};
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use wire::client_login::{COLLATION, put_tls_request};
use wire::packet::HEADER_LEN;
use wire::reply::ERR;

/// Bytes of a greeting.
const GREETING_BYTES_MAX: usize = 4096;

/// Takes the greeting; when it has come whole, asks for TLS and says how that begins. The greeting
/// is in `kept` then.
pub(super) fn greeted(
    net: &mut RealNet,
    sock: &OwnedFd,
    asking: Asking,
    kept: &mut Vec<u8>,
) -> Result<Option<Begin>, Fault> {
    let mut buffer = [0; GREETING_BYTES_MAX];
    loop {
        let missing = missing(kept)?;
        if missing == 0 {
            break;
        }
        match net.read(sock, &mut buffer[..missing]) {
            Read::Bytes(count) => kept.extend_from_slice(&buffer[..count]),
            Read::Blocked => return Ok(None),
            Read::End => return Err(Fault::ended("during the login")),
            Read::Failed(error) => return Err(Fault::system(&error)),
        }
    }
    let Some(request) = request(asking.wanted, kept)? else {
        return Ok(Some(match asking.is_optional {
            true => Begin::InClear,
            false => Begin::Never,
        }));
    };
    match net.write(sock, &request) {
        Write::Bytes(count) if count == request.len() => Ok(Some(Begin::AtOnce)),
        Write::Bytes(_) | Write::Blocked => Err(Fault::protocol(
            "a new connection has no room for a packet of 36 bytes".to_owned(),
        )),
        Write::Failed(error) => Err(Fault::system(&error)),
    }
}

/// Bytes of the greeting that have not come.
fn missing(kept: &[u8]) -> Result<usize, Fault> {
    let &[a, b, c, _, ..] = kept else {
        return Ok(HEADER_LEN - kept.len());
    };
    let length = HEADER_LEN + u32::from_le_bytes([a, b, c, 0]) as usize;
    if length > GREETING_BYTES_MAX {
        return Err(Fault::protocol(format!(
            "the server greets with {length} bytes where {GREETING_BYTES_MAX} are the most; look \
             whether it speaks MySQL"
        )));
    }
    Ok(length - kept.len())
}

/// The packet that asks for TLS, and the greeting with the number that this gives it; `None` where
/// the server refuses the connection or does not offer TLS.
fn request(wanted: u32, kept: &mut [u8]) -> Result<Option<Vec<u8>>, Fault> {
    let mut out = Vec::new();
    let (header, payload) = kept.split_at_mut(HEADER_LEN);
    let is_refusal = payload.first() == Some(&ERR);
    if is_refusal || !put_tls_request((wanted, 0, COLLATION), header[3], payload, &mut out)? {
        return Ok(None);
    }
    header[3] = header[3].wrapping_add(1);
    Ok(Some(out))
}

/// A stream that waits, for connections that are not on the event loop.
pub trait Stream: io::Read + io::Write + Send {}
impl<T: io::Read + io::Write + Send> Stream for T {}

/// The greeting, and what comes behind it.
struct Greeted<S> {
    greeting: io::Cursor<Vec<u8>>,
    stream: S,
}

impl<S: io::Read> io::Read for Greeted<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.greeting.read(buffer)? {
            0 => self.stream.read(buffer),
            count => Ok(count),
        }
    }
}

impl<S: io::Write> io::Write for Greeted<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Opens a connection that waits: plain, or under TLS.
///
/// # Errors
/// Why there is no connection, as [`super::Transport::handshake`].
pub fn blocking(mut stream: TcpStream, security: &Security) -> Result<Box<dyn Stream>, Fault> {
    let (Some(connection), Some(asking)) = (security.connection()?, security.of_greeting()) else {
        return Ok(Box::new(stream));
    };
    let system = |error: io::Error| Fault::system(&error);
    let mut kept = Vec::new();
    loop {
        let missing = missing(&kept)?;
        if missing == 0 {
            break;
        }
        let before = kept.len();
        kept.resize(before + missing, 0);
        stream.read_exact(&mut kept[before..]).map_err(system)?;
    }
    let Some(request) = request(asking.wanted, &mut kept)? else {
        let greeting = io::Cursor::new(kept);
        return Ok(match asking.is_optional {
            true => Box::new(Greeted { greeting, stream }),
            // The login finds out what the server has to say, and sends nothing.
            false => Box::new(greeting),
        });
    };
    stream.write_all(&request).map_err(system)?;
    let stream = tls_client::over(connection, stream).map_err(|error| {
        let inner = error.get_ref();
        let reason = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>());
        reason.map_or_else(|| Fault::system(&error), fault::tls)
    })?;
    Ok(Box::new(Greeted {
        greeting: io::Cursor::new(kept),
        stream,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greeting_is_taken_up_to_its_bound() {
        let longest = u32::try_from(GREETING_BYTES_MAX - HEADER_LEN).unwrap();
        let of = |len: u32| [&len.to_le_bytes()[..3], &[0, 10]].concat();
        assert_eq!(missing(&[]).unwrap(), HEADER_LEN);
        assert_eq!(missing(&of(longest)).unwrap(), GREETING_BYTES_MAX - 5);
        let fault = missing(&of(longest + 1)).unwrap_err();
        assert!(fault.message.contains("4097 bytes"), "{}", fault.message);
    }
}
