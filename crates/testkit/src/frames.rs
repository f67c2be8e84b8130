//! The compressed protocol as a client speaks it, with its frames' numbers checked.
//!
//! [`Frames`] stands between a [`crate::client::Client`] and its socket once the login is over.

use std::io;
use wire::capabilities as cap;
use wire::compressed::{Algorithm, FrameHeader, Packer};

/// One connection's frames.
#[derive(Debug)]
pub(crate) struct Frames {
    packer: Packer,
    algorithm: Algorithm,
    raw: Vec<u8>,
    /// Number of the next frame, in either direction.
    seq: u8,
    /// Writes that restarted the numbers at 0, and were not answered when the next one was made.
    unanswered: usize,
    /// True once bytes were written that were not packed here: the next number may be any.
    pub(crate) lost: bool,
    /// Frames received that were packed, and that were as they are.
    pub(crate) received: (usize, usize),
}

impl Frames {
    /// Frames by what was agreed; `None` where none were.
    pub(crate) fn agreed(capabilities: u32, zstd_level: u8) -> Option<Frames> {
        let algorithm = if capabilities & cap::COMPRESS != 0 {
            Algorithm::Zlib
        } else if capabilities & cap::ZSTD != 0 {
            Algorithm::Zstd(zstd_level)
        } else {
            return None;
        };
        Some(Frames {
            packer: Packer::default(),
            algorithm,
            raw: Vec::new(),
            seq: 0,
            unanswered: 0,
            lost: false,
            received: (0, 0),
        })
    }

    /// Packs what is to be written. `begins`: with a command, whose frames begin at 0.
    pub(crate) fn pack(&mut self, bytes: &[u8], begins: bool) -> Vec<u8> {
        if begins {
            self.unanswered += usize::from(self.seq != 0);
            self.seq = 0;
        }
        let mut out = Vec::new();
        self.seq = self
            .packer
            .pack_as(self.algorithm, self.seq, bytes, &mut out);
        out
    }

    /// Unpacks what came.
    ///
    /// # Errors
    /// When a frame is broken or has not the number that must come.
    pub(crate) fn unpack(&mut self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let wrong = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
        self.raw.extend_from_slice(bytes);
        let (mut out, mut at) = (Vec::new(), 0);
        while let Some(header) = FrameHeader::read(&self.raw[at..]) {
            let rest = &self.raw[at..];
            let used = self.packer.unpack_as(self.algorithm, rest, &mut out);
            let Some(used) = used.map_err(|error| wrong(error.to_string()))? else {
                break;
            };
            if header.seq != self.seq && !std::mem::take(&mut self.lost) {
                if header.seq != 1 || self.unanswered == 0 {
                    let (expected, got) = (self.seq, header.seq);
                    return Err(wrong(format!("frame number {got}, expected {expected}")));
                }
                self.unanswered -= 1;
            }
            self.seq = header.seq.wrapping_add(1);
            match header.unpacked {
                0 => self.received.1 += 1,
                _ => self.received.0 += 1,
            }
            at += used;
        }
        self.raw.drain(..at);
        Ok(out)
    }
}
