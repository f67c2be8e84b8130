//! Packets: a 3-byte payload length, a sequence number, the payload.
//!
//! A payload of 2^24-1 bytes is continued by the next packet, until a shorter (maybe empty) one
//! ends it. [`Header`] reads and writes the four bytes; [`Reader`] takes a payload apart without
//! ever reading past its end; the `put_*` functions write the same types. [`frame`] finds whole
//! logical messages (all continuation packets) at the front of a buffer.
//!
//! Invariants: no function here panics on any input; a [`Reader`] never returns bytes outside the
//! payload it was given; [`put_packet`] splits exactly as a server does, so a payload of
//! n * (2^24-1) bytes ends with an empty packet.

use std::fmt;

/// Bytes in front of each payload.
pub const HEADER_LEN: usize = 4;
/// The longest payload of one packet; a payload of exactly this length is continued.
pub const PAYLOAD_MAX: usize = 0xFF_FFFF;

/// The four bytes in front of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Payload length in bytes, 0 to [`PAYLOAD_MAX`].
    pub len: usize,
    /// Sequence number; starts at 0 with each command and wraps at 255.
    pub seq: u8,
}

impl Header {
    /// Reads a header from the first four bytes of `bytes`, if they are all there.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Header> {
        let &[a, b, c, seq] = bytes.first_chunk::<HEADER_LEN>()?;
        Some(Header {
            len: u32::from_le_bytes([a, b, c, 0]) as usize,
            seq,
        })
    }

    /// The header as it stands on the wire. `len` above [`PAYLOAD_MAX`] is cut to 24 bits; callers
    /// split first ([`put_packet`]).
    #[must_use]
    pub fn bytes(self) -> [u8; HEADER_LEN] {
        let [a, b, c, ..] = self.len.to_le_bytes();
        [a, b, c, self.seq]
    }
}

/// Packet at the front of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A whole message of `total` bytes, headers included; `last_seq` is its last packet's number.
    Whole {
        /// Bytes the message occupies, all headers included.
        total: usize,
        /// Sequence number of the last packet; the reply starts at the next one.
        last_seq: u8,
    },
    /// More bytes are needed; at least `total` in all as far as is known now.
    Partial {
        /// Lower bound of the message's length in bytes.
        total: usize,
    },
    /// A continuation packet whose number does not follow its predecessor's.
    OutOfOrder {
        /// The number that had to come.
        expected: u8,
        /// The number that came.
        got: u8,
    },
}

/// Finds the message at the front of `bytes`: one packet, or several where the payload is longer
/// than [`PAYLOAD_MAX`].
#[must_use]
pub fn frame(bytes: &[u8]) -> Frame {
    let mut at = 0;
    let mut expected = None;
    loop {
        let Some(header) = bytes.get(at..).and_then(Header::read) else {
            return Frame::Partial {
                total: at + HEADER_LEN,
            };
        };
        if let Some(expected) = expected
            && expected != header.seq
        {
            return Frame::OutOfOrder {
                expected,
                got: header.seq,
            };
        }
        at += HEADER_LEN + header.len;
        if at > bytes.len() {
            return Frame::Partial { total: at };
        }
        if header.len < PAYLOAD_MAX {
            return Frame::Whole {
                total: at,
                last_seq: header.seq,
            };
        }
        expected = Some(header.seq.wrapping_add(1));
    }
}

/// Packets of a message that takes so many bytes with its headers, as [`frame`] finds it.
#[must_use]
pub fn packets(total: usize) -> usize {
    total.div_ceil(HEADER_LEN + PAYLOAD_MAX)
}

/// Bytes of payload in a message that takes so many with its headers, as [`frame`] finds it.
#[must_use]
pub fn payload_len(total: usize) -> usize {
    total - HEADER_LEN * packets(total)
}

/// Appends `payload` as one or more packets that start at `seq`; returns the next free number.
pub fn put_packet(out: &mut Vec<u8>, seq: u8, payload: &[u8]) -> u8 {
    let mut seq = seq;
    let mut rest = payload;
    loop {
        let (now, later) = rest.split_at(rest.len().min(PAYLOAD_MAX));
        out.extend_from_slice(
            &Header {
                len: now.len(),
                seq,
            }
            .bytes(),
        );
        out.extend_from_slice(now);
        seq = seq.wrapping_add(1);
        if now.len() < PAYLOAD_MAX {
            return seq;
        }
        rest = later;
    }
}

/// Appends one packet whose payload `body` writes; for payloads that are known to be short.
pub fn put_short(out: &mut Vec<u8>, seq: u8, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER_LEN]);
    body(out);
    let len = out.len() - start - HEADER_LEN;
    debug_assert!(len < PAYLOAD_MAX, "put_short is for short payloads");
    out[start..start + HEADER_LEN].copy_from_slice(&Header { len, seq }.bytes());
}

/// Copies the payload of a whole message at the front of `bytes` into `out`, without its headers.
pub fn join_payload(bytes: &[u8], out: &mut Vec<u8>) {
    let mut rest = bytes;
    while let Some(header) = Header::read(rest) {
        let end = (HEADER_LEN + header.len).min(rest.len());
        out.extend_from_slice(&rest[HEADER_LEN..end]);
        rest = &rest[end..];
        if header.len < PAYLOAD_MAX {
            return;
        }
    }
}

/// A payload that is not what its place in the protocol calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// Name of the value that was being read.
    pub what: &'static str,
    /// Offset in the payload, in bytes.
    pub at: usize,
    /// The payload's length in bytes.
    pub len: usize,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Malformed { what, at, len } = self;
        write!(
            f,
            "malformed packet: expected {what} at byte {at} of a payload of {len} bytes"
        )
    }
}

impl std::error::Error for Malformed {}

/// Takes a payload apart from front to back.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Reads `payload` from its first byte.
    #[must_use]
    pub fn new(payload: &'a [u8]) -> Self {
        Reader {
            bytes: payload,
            at: 0,
        }
    }

    /// True when every byte has been read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// Everything that has not been read yet; nothing is left afterwards.
    pub fn rest(&mut self) -> &'a [u8] {
        let rest = &self.bytes[self.at.min(self.bytes.len())..];
        self.at = self.bytes.len();
        rest
    }

    /// The error for `what` at the present place.
    #[must_use]
    pub fn malformed(&self, what: &'static str) -> Malformed {
        Malformed {
            what,
            at: self.at,
            len: self.bytes.len(),
        }
    }

    /// The next `n` bytes.
    ///
    /// # Errors
    /// [`Malformed`] when fewer are left.
    pub fn bytes(&mut self, n: usize, what: &'static str) -> Result<&'a [u8], Malformed> {
        let end = self.at.checked_add(n).ok_or(self.malformed(what))?;
        let found = self.bytes.get(self.at..end).ok_or(self.malformed(what))?;
        self.at = end;
        Ok(found)
    }

    /// One byte.
    ///
    /// # Errors
    /// [`Malformed`] at the end of the payload.
    pub fn u8(&mut self, what: &'static str) -> Result<u8, Malformed> {
        Ok(self.bytes(1, what)?[0])
    }

    /// Two bytes, little-endian.
    ///
    /// # Errors
    /// [`Malformed`] when fewer are left.
    pub fn u16(&mut self, what: &'static str) -> Result<u16, Malformed> {
        let bytes = self.bytes(2, what)?;
        Ok(u16::from_le_bytes([bytes[0], bytes[1]]))
    }

    /// Four bytes, little-endian.
    ///
    /// # Errors
    /// [`Malformed`] when fewer are left.
    pub fn u32(&mut self, what: &'static str) -> Result<u32, Malformed> {
        let bytes = self.bytes(4, what)?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// A length-encoded integer. `0xFB` (NULL) and `0xFF` (ERR) are no integers here.
    ///
    /// # Errors
    /// [`Malformed`] on those two and at the end of the payload.
    pub fn lenenc(&mut self, what: &'static str) -> Result<u64, Malformed> {
        let width = match self.u8(what)? {
            small @ 0..=0xFA => return Ok(u64::from(small)),
            0xFC => 2,
            0xFD => 3,
            0xFE => 8,
            _ => {
                return Err(Malformed {
                    what,
                    at: self.at - 1,
                    len: self.bytes.len(),
                });
            }
        };
        let mut value = [0; 8];
        value[..width].copy_from_slice(self.bytes(width, what)?);
        Ok(u64::from_le_bytes(value))
    }

    /// A length-encoded string.
    ///
    /// # Errors
    /// [`Malformed`] when the length is no integer or reaches past the end.
    pub fn lenenc_bytes(&mut self, what: &'static str) -> Result<&'a [u8], Malformed> {
        let len = self.lenenc(what)?;
        let len = usize::try_from(len).map_err(|_| self.malformed(what))?;
        self.bytes(len, what)
    }

    /// A string up to a NUL byte, which is read too.
    ///
    /// # Errors
    /// [`Malformed`] when no NUL follows.
    pub fn nul_bytes(&mut self, what: &'static str) -> Result<&'a [u8], Malformed> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let len = rest
            .iter()
            .position(|&b| b == 0)
            .ok_or(self.malformed(what))?;
        self.at += len + 1;
        Ok(&rest[..len])
    }
}

/// Appends a length-encoded integer in its shortest form.
pub fn put_lenenc(out: &mut Vec<u8>, value: u64) {
    let bytes = value.to_le_bytes();
    match value {
        0..=0xFA => out.push(bytes[0]),
        0xFB..=0xFFFF => {
            out.push(0xFC);
            out.extend_from_slice(&bytes[..2]);
        }
        0x1_0000..=0xFF_FFFF => {
            out.push(0xFD);
            out.extend_from_slice(&bytes[..3]);
        }
        _ => {
            out.push(0xFE);
            out.extend_from_slice(&bytes);
        }
    }
}

/// Appends a length-encoded string.
pub fn put_lenenc_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_lenenc(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_three_length_bytes_and_a_number() {
        let header = Header {
            len: 0x01_02_03,
            seq: 7,
        };
        assert_eq!(header.bytes(), [0x03, 0x02, 0x01, 7]);
        assert_eq!(Header::read(&[0x03, 0x02, 0x01, 7, 99]), Some(header));
        assert_eq!(Header::read(&[3, 0, 0]), None);
    }

    #[test]
    fn frame_wants_every_byte_of_a_packet() {
        let ping = [1, 0, 0, 0, 0x0E];
        for cut in 0..ping.len() {
            assert!(matches!(frame(&ping[..cut]), Frame::Partial { total } if total > cut));
        }
        assert_eq!(
            frame(&ping),
            Frame::Whole {
                total: 5,
                last_seq: 0
            }
        );
        let two = [1, 0, 0, 0, 0x0E, 1, 0, 0, 0, 0x01];
        assert_eq!(
            frame(&two),
            Frame::Whole {
                total: 5,
                last_seq: 0
            }
        );
    }

    #[test]
    fn a_payload_of_the_maximum_is_continued_by_an_empty_packet() {
        let payload = vec![b'x'; PAYLOAD_MAX];
        let mut out = Vec::new();
        assert_eq!(put_packet(&mut out, 0, &payload), 2);
        assert_eq!(out.len(), HEADER_LEN + PAYLOAD_MAX + HEADER_LEN);
        assert_eq!(payload_len(out.len()), PAYLOAD_MAX);
        assert_eq!(out[..4], [0xFF, 0xFF, 0xFF, 0]);
        assert_eq!(out[HEADER_LEN + PAYLOAD_MAX..], [0, 0, 0, 1]);
        assert_eq!(
            frame(&out),
            Frame::Whole {
                total: out.len(),
                last_seq: 1
            }
        );
        assert!(matches!(
            frame(&out[..out.len() - 1]),
            Frame::Partial { .. }
        ));
        let mut joined = Vec::new();
        join_payload(&out, &mut joined);
        assert!(joined == payload);
    }

    #[test]
    fn a_continuation_with_a_wrong_number_is_out_of_order() {
        let mut out = Vec::new();
        put_packet(&mut out, 0, &vec![0; PAYLOAD_MAX]);
        let last = out.len() - 1;
        out[last] = 5;
        assert_eq!(
            frame(&out),
            Frame::OutOfOrder {
                expected: 1,
                got: 5
            }
        );
    }

    #[test]
    fn length_encoded_integers_have_four_widths() {
        let cases: [(u64, &[u8]); 7] = [
            (0, &[0]),
            (250, &[0xFA]),
            (251, &[0xFC, 0xFB, 0]),
            (0xFFFF, &[0xFC, 0xFF, 0xFF]),
            (0x1_0000, &[0xFD, 0, 0, 1]),
            (0x100_0000, &[0xFE, 0, 0, 0, 1, 0, 0, 0, 0]),
            (u64::MAX, &[0xFE, 255, 255, 255, 255, 255, 255, 255, 255]),
        ];
        for (value, bytes) in cases {
            let mut out = Vec::new();
            put_lenenc(&mut out, value);
            assert_eq!(out, bytes);
            assert_eq!(Reader::new(bytes).lenenc("n"), Ok(value));
        }
        assert!(Reader::new(&[0xFB]).lenenc("n").is_err());
        assert!(Reader::new(&[0xFF]).lenenc("n").is_err());
        assert!(Reader::new(&[0xFC, 1]).lenenc("n").is_err());
    }

    #[test]
    fn a_reader_never_leaves_its_payload() {
        let mut reader = Reader::new(&[0xFE, 255, 255, 255, 255, 255, 255, 255, 255, b'a']);
        assert!(reader.lenenc_bytes("string").is_err());
        assert!(Reader::new(b"abc").nul_bytes("string").is_err());
        assert_eq!(Reader::new(b"ab\0c").nul_bytes("string"), Ok(&b"ab"[..]));
        let error = Reader::new(&[1]).u32("a number").unwrap_err();
        assert_eq!(
            error.to_string(),
            "malformed packet: expected a number at byte 0 of a payload of 1 bytes"
        );
    }
}
