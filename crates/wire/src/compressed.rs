//! The compressed protocol: zlib frames around the stream of packets.
//!
//! Once CLIENT_COMPRESS is agreed and the login is over, everything travels in frames: a header of
//! 7 bytes (length as sent, a sequence number, length unpacked) and a body. A length unpacked of 0
//! says that the body is as it is, which is what short ones are sent as. Frames and packets cut the
//! stream at places of their own: a frame may end in the middle of a packet's header.
//!
//! Invariants: what a frame unpacks to is bounded by what a header can say, 16 MiB; nothing a peer
//! sends makes this panic or grow beyond that.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use std::fmt;

/// Bytes of a frame's header.
pub const HEADER_LEN: usize = 7;
/// Bodies below this are not worth the work; MySQL's clients and servers use the same bound.
const PACKED_MIN: usize = 50;
/// The largest body that a header can announce.
const BODY_MAX: usize = (1 << 24) - 1;

/// A frame that is not what its header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a compressed frame does not unpack to the length that its header says")
    }
}

impl std::error::Error for Broken {}

/// Packs and unpacks frames; keeps its tables, some 300 KiB, so one serves many connections.
pub struct Packer {
    compress: Compress,
    decompress: Decompress,
}

impl Default for Packer {
    fn default() -> Packer {
        Packer {
            compress: Compress::new(Compression::fast(), true),
            decompress: Decompress::new(true),
        }
    }
}

impl fmt::Debug for Packer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Packer")
    }
}

impl Packer {
    /// Appends `packets` as frames numbered from 0: a command begins the numbers anew.
    pub fn pack(&mut self, packets: &[u8], out: &mut Vec<u8>) {
        for (number, body) in packets.chunks(BODY_MAX).enumerate() {
            let at = out.len();
            out.resize(at + HEADER_LEN, 0);
            // Numbers wrap around, as those of packets do.
            let seq = number.to_le_bytes()[0];
            let unpacked = match self.compressed(body, out) {
                true => body.len(),
                false => {
                    out.truncate(at + HEADER_LEN);
                    out.extend_from_slice(body);
                    0
                }
            };
            let sent = out.len() - at - HEADER_LEN;
            out[at..at + 3].copy_from_slice(&sent.to_le_bytes()[..3]);
            out[at + 3] = seq;
            out[at + 4..at + HEADER_LEN].copy_from_slice(&unpacked.to_le_bytes()[..3]);
        }
    }

    /// Appends `body` packed; false where it did not become shorter, whatever was appended.
    fn compressed(&mut self, body: &[u8], out: &mut Vec<u8>) -> bool {
        if body.len() < PACKED_MIN {
            return false;
        }
        let at = out.len();
        out.reserve(body.len());
        self.compress.reset();
        let status = self.compress.compress_vec(body, out, FlushCompress::Finish);
        matches!(status, Ok(Status::StreamEnd)) && out.len() - at < body.len()
    }

    /// Unpacks the frame at the front of `bytes` and appends its body to `out`. Returns the bytes
    /// that the frame took, `None` while it has not come whole.
    ///
    /// # Errors
    /// [`Broken`] when it does not unpack to what its header says.
    pub fn unpack(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<Option<usize>, Broken> {
        let Some((header, rest)) = bytes.split_first_chunk::<HEADER_LEN>() else {
            return Ok(None);
        };
        let number = |at: usize| {
            usize::from(header[at])
                | usize::from(header[at + 1]) << 8
                | usize::from(header[at + 2]) << 16
        };
        let (sent, unpacked) = (number(0), number(4));
        let Some(body) = rest.get(..sent) else {
            return Ok(None);
        };
        if unpacked == 0 {
            out.extend_from_slice(body);
            return Ok(Some(HEADER_LEN + sent));
        }
        let at = out.len();
        out.reserve(unpacked);
        self.decompress.reset(true);
        let status = self
            .decompress
            .decompress_vec(body, out, FlushDecompress::Finish);
        match status {
            Ok(Status::StreamEnd) if out.len() - at == unpacked => Ok(Some(HEADER_LEN + sent)),
            _ => Err(Broken),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Unpacks all frames; returns the stream and how many frames there were.
    fn unpack_all(mut bytes: &[u8]) -> (Vec<u8>, usize) {
        let (mut packer, mut out, mut frames) = (Packer::default(), Vec::new(), 0);
        while let Some(used) = packer.unpack(bytes, &mut out).unwrap() {
            bytes = &bytes[used..];
            frames += 1;
        }
        assert!(bytes.is_empty());
        (out, frames)
    }

    #[test]
    fn short_bodies_go_as_they_are_and_long_ones_packed() {
        let mut packer = Packer::default();
        let mut out = Vec::new();
        packer.pack(b"\x09\0\0\0\x03SELECT 1", &mut out);
        assert_eq!(out, b"\x0d\0\0\0\0\0\0\x09\0\0\0\x03SELECT 1");
        let long = b"0123456789".repeat(100);
        out.clear();
        packer.pack(&long, &mut out);
        assert!(out.len() < 200, "{}", out.len());
        assert_eq!(&out[4..7], &[0xE8, 3, 0], "the length unpacked");
        assert_eq!(unpack_all(&out), (long, 1));
    }

    #[test]
    fn what_does_not_become_shorter_goes_as_it_is() {
        let mut state = 1u64;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            state.to_be_bytes()[0]
        })
        .take(500)
        .collect();
        let mut out = Vec::new();
        Packer::default().pack(&noise, &mut out);
        assert_eq!(out.len(), HEADER_LEN + 500);
        assert_eq!(unpack_all(&out), (noise, 1));
    }

    #[test]
    fn a_stream_longer_than_a_frame_is_several() {
        let long = vec![b'x'; BODY_MAX + 10];
        let mut out = Vec::new();
        Packer::default().pack(&long, &mut out);
        assert_eq!(unpack_all(&out), (long, 2));
    }

    #[test]
    fn a_frame_of_zlib_itself_is_unpacked() {
        // `zlib.compress(b"a" * 60)` as Python wrote it.
        let body = b"\x78\x9c\x4b\x4c\x24\x1f\x00\x00\xb5\xc0\x16\xbd";
        let mut frame = vec![body.len().to_le_bytes()[0], 0, 0, 1, 60, 0, 0];
        frame.extend_from_slice(body);
        assert_eq!(unpack_all(&frame), (vec![b'a'; 60], 1));
    }

    #[test]
    fn frames_are_awaited_whole_and_broken_ones_refused() {
        let mut out = Vec::new();
        let mut packer = Packer::default();
        packer.pack(&b"0123456789".repeat(20), &mut out);
        let mut plain = Vec::new();
        for cut in 0..out.len() {
            assert_eq!(
                packer.unpack(&out[..cut], &mut plain),
                Ok(None),
                "cut at {cut}"
            );
        }
        for (at, value) in [(4, 201), (4, 199), (9, 0xFF), (4, 0xFF)] {
            let mut broken = out.clone();
            broken[at] = value;
            plain.clear();
            assert_eq!(packer.unpack(&broken, &mut plain), Err(Broken), "{at}");
            assert!(plain.len() <= 300);
        }
    }
}
