//! A frame's body, unpacked piece by piece as its bytes come.
//!
//! The problem: a header of 7 bytes announces up to 16 MiB, and a body of 16 KiB may well unpack to
//! that. Whoever unpacks a frame at once gives its peer a thousand bytes for each byte that it
//! sends. The mechanism: a [`Body`] takes any part of the packed bytes and fills a buffer of the
//! caller's, whose length is all that is unpacked. What it keeps between two calls ([`Inflater`])
//! has a known size ([`Inflater::bytes`]), and can serve one body after another.
//!
//! Invariants: nothing is reserved for what a header announces; no byte beyond the announced
//! length is ever given out; a body is over once its last byte has come, it has unpacked to the
//! announced length, and the checksum of the algorithm was right.

use super::{Algorithm, Broken, FrameHeader};
use flate2::{Decompress, FlushDecompress, Status};
use std::fmt;
use zstd::zstd_safe::{DCtx, InBuffer, OutBuffer, ResetDirective};

/// Tables and the window of zlib's inflater, in bytes.
const ZLIB_BYTES: usize = 44 * 1024;
/// The tables of zstd's, without its window.
const ZSTD_BYTES: usize = 160 * 1024;

/// Decompression state between two pieces of a body. One serves one body at a time.
pub struct Inflater {
    by: By,
    /// Bytes unpacked since it was started over: its window holds at most as many.
    unpacked: usize,
}

enum By {
    Zlib(Box<Decompress>),
    Zstd(Box<DCtx<'static>>),
}

impl fmt::Debug for Inflater {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Inflater")
    }
}

/// Result of one call.
struct Step {
    used: usize,
    written: usize,
    ended: bool,
}

impl Inflater {
    /// One for this algorithm; `None` when there is no memory for it.
    #[must_use]
    pub fn new(algorithm: Algorithm) -> Option<Inflater> {
        let by = match algorithm {
            Algorithm::Zlib => By::Zlib(Box::new(Decompress::new(true))),
            Algorithm::Zstd(_) => By::Zstd(Box::new(DCtx::try_create()?)),
        };
        Some(Inflater { by, unpacked: 0 })
    }

    /// True if it is of this algorithm.
    #[must_use]
    pub fn is_of(&self, algorithm: Algorithm) -> bool {
        matches!(
            (&self.by, algorithm),
            (By::Zlib(_), Algorithm::Zlib) | (By::Zstd(_), Algorithm::Zstd(_))
        )
    }

    /// Memory that it holds, in bytes. The window of zstd, which the body itself asks for, is
    /// memory only as far as something has been unpacked into it.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match &self.by {
            By::Zlib(_) => ZLIB_BYTES,
            By::Zstd(context) => context.sizeof().min(ZSTD_BYTES + self.unpacked),
        }
    }

    /// Forgets the body before; `false` when it cannot be used again.
    #[must_use]
    pub fn restart(&mut self) -> bool {
        self.unpacked = 0;
        match &mut self.by {
            By::Zlib(inflate) => {
                inflate.reset(true);
                true
            }
            By::Zstd(context) => context.reset(ResetDirective::SessionOnly).is_ok(),
        }
    }

    /// Unpacks from `input` into `out`, as far as there is room.
    fn step(&mut self, input: &[u8], out: &mut [u8]) -> Result<Step, Broken> {
        let step = match &mut self.by {
            By::Zlib(inflate) => {
                let (used, written) = (inflate.total_in(), inflate.total_out());
                let status = inflate
                    .decompress(input, out, FlushDecompress::None)
                    .map_err(|_| Broken)?;
                let since = |now: u64, before: u64| usize::try_from(now - before);
                Step {
                    used: since(inflate.total_in(), used).map_err(|_| Broken)?,
                    written: since(inflate.total_out(), written).map_err(|_| Broken)?,
                    ended: status == Status::StreamEnd,
                }
            }
            By::Zstd(context) => {
                let (mut from, mut to) = (InBuffer::around(input), OutBuffer::around(out));
                let left = context
                    .decompress_stream(&mut to, &mut from)
                    .map_err(|_| Broken)?;
                Step {
                    used: from.pos(),
                    written: to.pos(),
                    ended: left == 0,
                }
            }
        };
        self.unpacked += step.written;
        Ok(step)
    }
}

/// A frame's body on its way.
#[derive(Debug)]
pub struct Body {
    /// The body's frame header.
    header: FrameHeader,
    /// Bytes of it, as sent, that are still to come.
    left: usize,
    /// Bytes that it has unpacked to so far.
    unpacked: usize,
    /// Decompressor; `None` when the body is sent as it is.
    inflater: Option<Inflater>,
    /// True if the packed stream has come to its end.
    ended: bool,
    /// True if the last piece has filled its buffer: there may be more without another byte.
    full: bool,
}

impl Body {
    /// The body behind this header. `inflater`: a fresh one, where the header says that the body
    /// is packed ([`FrameHeader::is_packed`]).
    #[must_use]
    pub fn new(header: FrameHeader, inflater: Option<Inflater>) -> Body {
        Body {
            header,
            left: header.sent,
            unpacked: 0,
            inflater,
            ended: false,
            full: false,
        }
    }

    /// The body's frame header.
    #[must_use]
    pub fn header(&self) -> FrameHeader {
        self.header
    }

    /// Bytes of it that are still to be given to [`Body::unpack`].
    #[must_use]
    pub fn left(&self) -> usize {
        self.left
    }

    /// True if another call may give bytes without being given any.
    #[must_use]
    pub fn has_more(&self) -> bool {
        self.full
    }

    /// Memory that it holds besides itself, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.inflater.as_ref().map_or(0, Inflater::bytes)
    }

    /// Takes from `input`, which may go on behind the body, and fills `out` as far as that goes.
    /// Returns the bytes taken and the bytes written.
    ///
    /// # Errors
    /// [`Broken`] when it does not unpack to what its header says.
    pub fn unpack(&mut self, input: &[u8], out: &mut [u8]) -> Result<(usize, usize), Broken> {
        let input = &input[..input.len().min(self.left)];
        let Some(inflater) = &mut self.inflater else {
            let now = input.len().min(out.len());
            out[..now].copy_from_slice(&input[..now]);
            self.left -= now;
            return Ok((now, now));
        };
        let (mut used, mut written) = (0, 0);
        loop {
            if self.ended && inflater.is_of(Algorithm::Zlib) {
                // What stands behind the end of the stream means nothing.
                used = input.len();
                break;
            }
            // One byte more than may come shows a body that is longer than announced.
            let room = (out.len() - written).min(self.header.unpacked - self.unpacked + 1);
            let (from, to) = (&input[used..], &mut out[written..written + room]);
            let is_blocked = from.is_empty() && !self.full || to.is_empty();
            if is_blocked || self.ended && from.is_empty() {
                break;
            }
            let step = inflater.step(from, to)?;
            used += step.used;
            written += step.written;
            self.unpacked += step.written;
            self.full = step.written == room && !step.ended;
            self.ended = step.ended;
            if self.unpacked > self.header.unpacked {
                return Err(Broken);
            }
            if step.used == 0 && step.written == 0 {
                break;
            }
        }
        self.left -= used;
        if self.left == 0 && !self.full && !self.is_over() {
            return Err(Broken);
        }
        Ok((used, written))
    }

    /// Gives back what unpacked it, for another body; `None` when there was nothing, or it cannot
    /// be used again.
    #[must_use]
    pub fn into_inflater(self) -> Option<Inflater> {
        let mut inflater = self.inflater?;
        inflater.restart().then_some(inflater)
    }

    /// True if all of it has been unpacked, and was what its header said.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let whole = match self.inflater {
            None => true,
            Some(_) => self.ended && self.unpacked == self.header.unpacked,
        };
        self.left == 0 && whole
    }
}

#[cfg(test)]
mod tests {
    use super::super::{HEADER_LEN, Packer};
    use super::*;

    const ALGORITHMS: [Algorithm; 2] = [Algorithm::Zlib, Algorithm::Zstd(3)];

    /// A frame with these bytes, taken apart: its header and its body as sent.
    fn packed(algorithm: Algorithm, plain: &[u8]) -> (FrameHeader, Vec<u8>) {
        let mut frame = Vec::new();
        Packer::default().pack_as(algorithm, 0, plain, &mut frame);
        let header = FrameHeader::read(&frame).unwrap();
        (header, frame.split_off(HEADER_LEN))
    }

    fn body(header: FrameHeader, algorithm: Algorithm) -> Body {
        let inflater = header.is_packed().then(|| Inflater::new(algorithm));
        Body::new(header, inflater.flatten())
    }

    /// Unpacks all of a body, so many bytes given at once and so many taken.
    fn pieces(
        body: &mut Body,
        sent: &[u8],
        (given, taken): (usize, usize),
    ) -> Result<Vec<u8>, Broken> {
        let (mut plain, mut at, mut piece) = (Vec::new(), 0, vec![0; taken]);
        loop {
            let end = (at + given).min(sent.len());
            let (used, written) = body.unpack(&sent[at..end], &mut piece)?;
            at += used;
            plain.extend_from_slice(&piece[..written]);
            if body.is_over() || used == 0 && written == 0 {
                return Ok(plain);
            }
        }
    }

    #[test]
    fn a_body_is_unpacked_in_pieces_of_any_length() {
        let texts = [
            b"0123456789".repeat(1000),
            vec![0; 200_000],
            b"abc".to_vec(),
            (0..70_000u32)
                .flat_map(|n| n.wrapping_mul(n).to_le_bytes())
                .collect(),
        ];
        for (algorithm, plain) in ALGORITHMS
            .iter()
            .flat_map(|a| texts.iter().map(move |t| (a, t)))
        {
            let (header, sent) = packed(*algorithm, plain);
            for (given, taken) in [(1, 1000), (7, 1), (1000, 333), (usize::MAX / 2, 4096)] {
                if plain.len() > 100_000 && (given == 7 || taken == 1) {
                    continue;
                }
                let mut body = body(header, *algorithm);
                let got = pieces(&mut body, &sent, (given, taken));
                assert!(got.as_ref() == Ok(plain), "{algorithm:?} {given} {taken}");
                assert!(body.is_over() && body.left() == 0);
            }
        }
    }

    #[test]
    fn a_body_of_zlib_and_one_of_zstd_byte_by_byte() {
        // `zlib.compress(b"a" * 60)` as Python wrote it, and
        // `printf 'a%.0s' $(seq 60) | zstd --no-check`.
        let zlib: &[u8] = b"\x78\x9c\x4b\x4c\x24\x1f\x00\x00\xb5\xc0\x16\xbd";
        let zstd: &[u8] = b"\x28\xb5\x2f\xfd\0\x58\x45\0\0\x10aa\x01\0\x3f\x01\x16";
        for (algorithm, sent) in ALGORITHMS.into_iter().zip([zlib, zstd]) {
            let header = FrameHeader {
                sent: sent.len(),
                seq: 0,
                unpacked: 60,
            };
            let mut body = body(header, algorithm);
            let (mut plain, mut piece) = (Vec::new(), [0; 8]);
            for (at, byte) in sent.iter().enumerate() {
                assert!(!body.is_over(), "over before byte {at}");
                assert_eq!(body.left(), sent.len() - at);
                let (mut rest, mut more) = (&[*byte][..], true);
                while more {
                    let (used, written) = body.unpack(rest, &mut piece).unwrap();
                    plain.extend_from_slice(&piece[..written]);
                    rest = &rest[used..];
                    more = body.has_more() || !rest.is_empty();
                }
            }
            assert!(body.is_over());
            assert_eq!(plain, vec![b'a'; 60]);
        }
    }

    #[test]
    fn what_a_call_unpacks_is_what_its_buffer_holds() {
        for algorithm in ALGORITHMS {
            // 16 MiB but for a byte, in a few KiB.
            let (header, sent) = packed(algorithm, &vec![0; (1 << 24) - 1]);
            assert_eq!(header.unpacked, (1 << 24) - 1);
            assert!(sent.len() < 80_000, "{}", sent.len());
            let mut body = body(header, algorithm);
            let mut piece = vec![1; 16 * 1024];
            let (used, written) = body.unpack(&sent, &mut piece).unwrap();
            assert!(written <= piece.len() && used <= sent.len());
            assert!(!body.is_over());
            // What is kept of a body that does not go on is small.
            assert!(body.bytes() <= 256 * 1024, "{} bytes", body.bytes());
        }
    }

    #[test]
    fn bodies_as_they_are_pass_through() {
        let header = FrameHeader {
            sent: 5,
            seq: 0,
            unpacked: 0,
        };
        let mut body = Body::new(header, None);
        let mut out = [0; 3];
        assert_eq!(body.unpack(b"abcdeNEXT", &mut out), Ok((3, 3)));
        assert!(!body.is_over());
        assert_eq!(body.unpack(b"deNEXT", &mut out), Ok((2, 2)));
        assert!(body.is_over());
        assert_eq!(&out[..2], b"de");
    }

    #[test]
    fn what_is_broken_is_found_at_the_end_at_the_latest() {
        let plain = b"0123456789".repeat(100);
        for algorithm in ALGORITHMS {
            let (header, sent) = packed(algorithm, &plain);
            for (sent_change, unpacked_change) in [(0, 1), (0, -1), (-1, 0), (-3, 0)] {
                let header = FrameHeader {
                    sent: header.sent.checked_add_signed(sent_change).unwrap(),
                    unpacked: header.unpacked.checked_add_signed(unpacked_change).unwrap(),
                    ..header
                };
                for sizes in [(1, 100), (10_000, 10_000), (10_000, 7)] {
                    let mut body = body(header, algorithm);
                    assert_eq!(
                        pieces(&mut body, &sent, sizes),
                        Err(Broken),
                        "{algorithm:?} {sent_change} {unpacked_change} {sizes:?}"
                    );
                }
            }
            let mut damaged = sent.clone();
            damaged[sent.len() / 2] ^= 0x55;
            let got = pieces(&mut body(header, algorithm), &damaged, (50, 50));
            assert!(got != Ok(plain.clone()), "{algorithm:?}");
        }
    }

    #[test]
    fn an_inflater_serves_one_body_after_another_whatever_became_of_it() {
        for algorithm in ALGORITHMS {
            let plain = b"0123456789".repeat(1000);
            let (header, sent) = packed(algorithm, &plain);
            let mut first = body(header, algorithm);
            let half = &sent[..sent.len() / 2];
            first.unpack(half, &mut [0; 100]).unwrap();
            let inflater = first.into_inflater().unwrap();
            assert!(inflater.is_of(algorithm));
            let mut second = Body::new(header, Some(inflater));
            assert!(pieces(&mut second, &sent, (1000, 1000)) == Ok(plain));
        }
    }
}
