//! Peers that speak another protocol where a login must come: recognised by their first bytes.
//!
//! The problem: a proxy in front that adds a PROXY header, or a client that begins TLS unasked, is
//! a mistake in a configuration, and "malformed packet" does not say which. The mechanism: what
//! such a peer sends first cannot be the header of a login packet. Read as one it would announce
//! more than 64 KiB, or the wrong sequence number. Nothing of it is parsed beyond that.

use crate::capabilities::SSL;

/// Bytes of an SSLRequest: a login packet that ends in front of the user's name.
const SSL_REQUEST_LEN: usize = 32;

/// Protocol of a peer that does not speak MySQL's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrongProtocol {
    /// A header of the PROXY protocol, version 1: text.
    ProxyV1,
    /// Version 2 of the PROXY protocol: binary.
    ProxyV2,
    /// The ClientHello of TLS.
    ClientHello,
    /// A packet that announces TLS, which was not offered.
    SslRequest,
}

impl WrongProtocol {
    /// Protocol that the first bytes of a connection, four of them or more, show; `None` for what
    /// may be a login packet.
    #[must_use]
    pub fn of_bytes(bytes: &[u8]) -> Option<WrongProtocol> {
        match bytes {
            [b'P', b'R', b'O', b'X', ..] => Some(WrongProtocol::ProxyV1),
            [b'\r', b'\n', b'\r', b'\n', ..] => Some(WrongProtocol::ProxyV2),
            // A handshake record of TLS 1.0 to 1.3.
            [0x16, 3, 1..=4, _, ..] => Some(WrongProtocol::ClientHello),
            _ => None,
        }
    }

    /// Protocol that the payload of the packet in the place of a login shows; `None` for what may
    /// be a login.
    #[must_use]
    pub fn of_login(payload: &[u8]) -> Option<WrongProtocol> {
        let flags = payload
            .first_chunk()
            .map(|bytes| u32::from_le_bytes(*bytes))?;
        let is_request = payload.len() == SSL_REQUEST_LEN && flags & SSL != 0;
        is_request.then_some(WrongProtocol::SslRequest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_other_protocols_are_known_by_four_bytes() {
        let cases: [(&[u8], WrongProtocol); 4] = [
            (
                b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n",
                WrongProtocol::ProxyV1,
            ),
            (
                b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c",
                WrongProtocol::ProxyV2,
            ),
            (
                b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03",
                WrongProtocol::ClientHello,
            ),
            (b"\x16\x03\x03\0", WrongProtocol::ClientHello),
        ];
        for (bytes, wrong) in cases {
            assert_eq!(WrongProtocol::of_bytes(bytes), Some(wrong));
            assert_eq!(WrongProtocol::of_bytes(&bytes[..4]), Some(wrong));
            assert_eq!(WrongProtocol::of_bytes(&bytes[..3]), None, "not known yet");
        }
    }

    #[test]
    fn no_login_packet_is_taken_for_another_protocol() {
        // Every length that a login may have, with the number that it must have.
        for len in 0..=u32::from(u16::MAX) {
            let [a, b, c, _] = len.to_le_bytes();
            assert_eq!(
                WrongProtocol::of_bytes(&[a, b, c, 1, 0x85]),
                None,
                "{len} bytes"
            );
        }
    }

    #[test]
    fn an_ssl_request_is_a_login_that_ends_in_front_of_its_name() {
        let mut request = vec![0; SSL_REQUEST_LEN];
        assert_eq!(
            WrongProtocol::of_login(&request),
            None,
            "it does not ask for TLS"
        );
        request[..4].copy_from_slice(&(SSL | 0x200).to_le_bytes());
        assert_eq!(
            WrongProtocol::of_login(&request),
            Some(WrongProtocol::SslRequest)
        );
        request.push(b'a');
        assert_eq!(WrongProtocol::of_login(&request), None);
        assert_eq!(WrongProtocol::of_login(b"abc"), None);
    }
}
