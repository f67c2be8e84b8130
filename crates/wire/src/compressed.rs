//! The compressed protocol: frames of zlib or zstd around the stream of packets.
//!
//! Once CLIENT_COMPRESS or CLIENT_ZSTD_COMPRESSION_ALGORITHM is agreed and the login is over,
//! everything travels in frames: a header of 7 bytes (length as sent, a sequence number, length
//! unpacked) and a body. A length unpacked of 0 says that the body is as it is, which is what short
//! ones are sent as. Frames and packets cut the stream at places of their own: a frame may end in
//! the middle of a packet's header.
//!
//! Each body is packed by itself, so what packs and unpacks ([`Packer`]) holds nothing of a
//! connection and serves all of a thread; a connection has its frames' numbers.
//!
//! [`Packer::unpack_as`] unpacks a frame that has come whole, at once, for who trusts its peer;
//! [`Body`] does so piece by piece, for who does not.
//!
//! Invariants: what a frame unpacks to is bounded by what a header can say, 16 MiB; nothing a peer
//! sends makes this panic or grow beyond that.

mod body;

pub use body::{Body, Inflater};

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use std::fmt;

/// Bytes of a frame's header.
pub const HEADER_LEN: usize = 7;
/// Bodies below this are not worth the work; MySQL's clients and servers use the same bound.
const PACKED_MIN: usize = 50;
/// The largest body that a header can announce.
const BODY_MAX: usize = (1 << 24) - 1;
/// The levels of zstd that a client may ask for; 3 is what MySQL's clients ask for by themselves.
pub const ZSTD_LEVELS: std::ops::RangeInclusive<u8> = 1..=22;
/// The highest level that is used, whatever a client asks for: above it a frame costs milliseconds,
/// which everybody served by the same thread would wait for.
const ZSTD_LEVEL_USED_MAX: u8 = 6;

/// Compression of bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// CLIENT_COMPRESS.
    Zlib,
    /// CLIENT_ZSTD_COMPRESSION_ALGORITHM, with the level of the login packet.
    Zstd(u8),
}

/// A frame that is not what its header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("compressed frame that does not unpack to the length that its header says")
    }
}

impl std::error::Error for Broken {}

/// A frame's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// Bytes of the body as sent.
    pub sent: usize,
    /// The frame's number.
    pub seq: u8,
    /// Bytes of the body unpacked; 0 when it is sent as it is.
    pub unpacked: usize,
}

impl FrameHeader {
    /// The header at the front, once it is there whole.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<FrameHeader> {
        let [a, b, c, seq, d, e, f] = *bytes.first_chunk::<HEADER_LEN>()?;
        let number = |low, mid, high| u32::from_le_bytes([low, mid, high, 0]) as usize;
        Some(FrameHeader {
            sent: number(a, b, c),
            seq,
            unpacked: number(d, e, f),
        })
    }

    /// True if the body is packed; otherwise it is sent as it is.
    #[must_use]
    pub fn is_packed(self) -> bool {
        self.unpacked > 0
    }
}

/// Packs and unpacks frames; keeps its tables, some 300 KiB, so one serves many connections. Those
/// of zstd are made when they are needed first.
pub struct Packer {
    compress: Compress,
    decompress: Decompress,
    zstd: Option<Box<Zstd>>,
}

struct Zstd {
    compress: zstd::bulk::Compressor<'static>,
    decompress: zstd::bulk::Decompressor<'static>,
    level: u8,
}

impl Default for Packer {
    fn default() -> Packer {
        Packer {
            compress: Compress::new(Compression::fast(), true),
            decompress: Decompress::new(true),
            zstd: None,
        }
    }
}

impl fmt::Debug for Packer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Packer")
    }
}

impl Packer {
    /// Appends `packets` as frames of zlib numbered from 0: each command restarts the numbers.
    pub fn pack(&mut self, packets: &[u8], out: &mut Vec<u8>) {
        self.pack_as(Algorithm::Zlib, 0, packets, out);
    }

    /// Appends `packets` as frames numbered from `seq`; returns the number of the next frame.
    pub fn pack_as(
        &mut self,
        algorithm: Algorithm,
        seq: u8,
        packets: &[u8],
        out: &mut Vec<u8>,
    ) -> u8 {
        let mut seq = seq;
        for body in packets.chunks(BODY_MAX) {
            let at = out.len();
            out.resize(at + HEADER_LEN, 0);
            let unpacked = match self.compressed(algorithm, body, out) {
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
            // Numbers wrap around, as those of packets do.
            seq = seq.wrapping_add(1);
        }
        seq
    }

    /// Appends `body` packed; false where it did not become shorter, whatever was appended.
    fn compressed(&mut self, algorithm: Algorithm, body: &[u8], out: &mut Vec<u8>) -> bool {
        if body.len() < PACKED_MIN {
            return false;
        }
        let at = out.len();
        let packed = match algorithm {
            Algorithm::Zlib => {
                out.reserve(body.len());
                self.compress.reset();
                let status = self.compress.compress_vec(body, out, FlushCompress::Finish);
                matches!(status, Ok(Status::StreamEnd))
            }
            // Not more room than the body takes itself: what does not fit is sent as it is.
            Algorithm::Zstd(level) => self.zstd(level).is_some_and(|zstd| {
                out.resize(at + body.len(), 0);
                let packed = zstd.compress.compress_to_buffer(body, &mut out[at..]);
                out.truncate(at + packed.as_ref().copied().unwrap_or(0));
                packed.is_ok()
            }),
        };
        packed && out.len() - at < body.len()
    }

    /// The tables of zstd, set to a level; `None` when there is no memory for them.
    fn zstd(&mut self, level: u8) -> Option<&mut Zstd> {
        let level = level.clamp(*ZSTD_LEVELS.start(), ZSTD_LEVEL_USED_MAX);
        if self.zstd.is_none() {
            self.zstd = Some(Box::new(Zstd {
                compress: zstd::bulk::Compressor::new(i32::from(level)).ok()?,
                decompress: zstd::bulk::Decompressor::new().ok()?,
                level,
            }));
        }
        let zstd = self.zstd.as_deref_mut()?;
        if zstd.level != level {
            zstd.compress.set_compression_level(i32::from(level)).ok()?;
            zstd.level = level;
        }
        Some(zstd)
    }

    /// Unpacks the frame of zlib at the front of `bytes` and appends its body to `out`. Returns the
    /// bytes that the frame took, `None` while it has not come whole.
    ///
    /// # Errors
    /// [`Broken`] when it does not unpack to what its header says.
    pub fn unpack(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<Option<usize>, Broken> {
        self.unpack_as(Algorithm::Zlib, bytes, out)
    }

    /// Unpacks a frame of this algorithm.
    ///
    /// # Errors
    /// [`Broken`] when it does not unpack to what its header says.
    pub fn unpack_as(
        &mut self,
        algorithm: Algorithm,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<usize>, Broken> {
        let Some(FrameHeader { sent, unpacked, .. }) = FrameHeader::read(bytes) else {
            return Ok(None);
        };
        let Some(body) = bytes.get(HEADER_LEN..HEADER_LEN + sent) else {
            return Ok(None);
        };
        if unpacked == 0 {
            out.extend_from_slice(body);
            return Ok(Some(HEADER_LEN + sent));
        }
        let at = out.len();
        let whole = match algorithm {
            Algorithm::Zlib => {
                out.reserve(unpacked);
                self.decompress.reset(true);
                let status = self
                    .decompress
                    .decompress_vec(body, out, FlushDecompress::Finish);
                matches!(status, Ok(Status::StreamEnd))
            }
            Algorithm::Zstd(level) => {
                let zstd = self.zstd(level).ok_or(Broken)?;
                out.resize(at + unpacked, 0);
                let got = zstd.decompress.decompress_to_buffer(body, &mut out[at..]);
                out.truncate(at + got.as_ref().copied().unwrap_or(0));
                got.is_ok()
            }
        };
        if whole && out.len() - at == unpacked {
            Ok(Some(HEADER_LEN + sent))
        } else {
            out.truncate(at);
            Err(Broken)
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
            assert!(plain.is_empty(), "{at}");
        }
    }

    #[test]
    fn frames_of_zstd_are_packed_unpacked_and_refused_when_broken() {
        let mut packer = Packer::default();
        let long = b"0123456789".repeat(200);
        for level in [1, 3, 22] {
            let zstd = Algorithm::Zstd(level);
            let mut out = Vec::new();
            assert_eq!(packer.pack_as(zstd, 255, &long, &mut out), 0);
            let header = FrameHeader::read(&out).unwrap();
            let expected = FrameHeader {
                sent: out.len() - HEADER_LEN,
                seq: 255,
                unpacked: 2000,
            };
            assert_eq!(header, expected);
            assert!(out.len() < 100, "{}", out.len());
            assert_eq!(
                out[HEADER_LEN..][..4],
                [0x28, 0xB5, 0x2F, 0xFD],
                "zstd's own mark"
            );
            let mut plain = b"before".to_vec();
            for cut in 0..out.len() {
                assert_eq!(packer.unpack_as(zstd, &out[..cut], &mut plain), Ok(None));
            }
            let used = packer.unpack_as(zstd, &out, &mut plain);
            assert_eq!(used, Ok(Some(out.len())));
            assert_eq!(plain, [b"before", &long[..]].concat());
            for (at, value) in [(4, 0xD1), (4, 0xCF), (7, 0), (5, 0xFF)] {
                let mut broken = out.clone();
                broken[at] = value;
                assert_eq!(packer.unpack_as(zstd, &broken, &mut plain), Err(Broken));
                assert_eq!(packer.unpack(&broken, &mut plain), Err(Broken));
                assert_eq!(plain.len(), 2006, "nothing of a broken frame is kept");
            }
        }
    }

    #[test]
    fn a_frame_of_zstd_without_its_length_is_unpacked() {
        // `printf 'a%.0s' $(seq 60) | zstd --no-check`: a stream whose length was not known
        // beforehand, which is how MySQL's clients write.
        let body = b"\x28\xb5\x2f\xfd\0\x58\x45\0\0\x10aa\x01\0\x3f\x01\x16";
        let mut frame = vec![body.len().to_le_bytes()[0], 0, 0, 0, 60, 0, 0];
        frame.extend_from_slice(body);
        let (mut packer, mut plain) = (Packer::default(), Vec::new());
        let used = packer.unpack_as(Algorithm::Zstd(3), &frame, &mut plain);
        assert_eq!((used, plain), (Ok(Some(frame.len())), vec![b'a'; 60]));
    }
}
