//! Compression of one client: its state, and what a group lends to whoever packs or unpacks.
//!
//! These are the values and what they do alone; `client/compression.rs` moves bytes through them.
//!
//! Invariant: what a length announces is not reserved before its bytes come.

use crate::config::Settings;
use crate::errors::reasons::Refusal;
use crate::server::facts::ServerFacts;
use sql::lex::Server;
use wire::capabilities as cap;
use wire::compressed::{Algorithm, Body, FrameHeader, HEADER_LEN, Inflater, Packer, ZSTD_LEVELS};
use wire::handshake::Login;

/// Bytes of frames read at once: as many as are lacking, within these bounds.
pub(crate) const STEP_MIN: usize = 4 * 1024;

pub(crate) const STEP_MAX: usize = 16 * 1024;

/// A frame that is sent in fewer bytes is not begun before it has come whole: so few bytes are
/// kept for less than what unpacks them takes.
const WHOLE_MAX: usize = STEP_MAX;

/// Decompressors of a group that are kept for the next frames.
const INFLATERS_MAX: usize = 4;

/// The first MySQL that knows zstd (8.0.18).
const ZSTD_SINCE: u32 = 80_018;

/// Resources that all compressed clients of a group share.
#[derive(Debug, Default)]
pub(crate) struct Packing {
    /// The tables, once somebody needed them.
    packer: Option<Box<Packer>>,
    /// Lent to whoever writes.
    pub(crate) frames: Vec<u8>,
    /// Lent to whoever unpacks.
    pub(crate) piece: Vec<u8>,
    /// Decompressors that are of no frame.
    inflaters: Vec<Inflater>,
}

impl Packing {
    pub(crate) fn packer(&mut self) -> &mut Packer {
        self.packer.get_or_insert_default()
    }

    /// Decompressor of a frame; `None` when there is no memory for it.
    pub(crate) fn inflater(&mut self, algorithm: Algorithm) -> Option<Inflater> {
        let spare = (self.inflaters.iter()).position(|inflater| inflater.is_of(algorithm));
        match spare {
            Some(at) => Some(self.inflaters.swap_remove(at)),
            None => Inflater::new(algorithm),
        }
    }

    pub(crate) fn give_back(&mut self, inflater: Option<Inflater>) {
        if self.inflaters.len() < INFLATERS_MAX {
            self.inflaters.extend(inflater);
        }
    }
}

/// State of a client that compresses.
#[derive(Debug)]
pub(crate) struct Compression {
    pub(crate) algorithm: Algorithm,
    /// True once the login is over: frames it is.
    pub(crate) on: bool,
    /// Number of the next frame, in either direction.
    pub(crate) seq: u8,
    /// Bytes that have been read and not unpacked: a part of a frame, and those behind it.
    pub(crate) raw: Vec<u8>,
    /// The frame that is being unpacked.
    pub(crate) body: Option<Box<Body>>,
}

impl Compression {
    /// Compression that a client has chosen at its login: as a server does, zlib if it offers both.
    /// `None` without compression.
    ///
    /// # Errors
    /// A sentence when its level is none.
    pub(crate) fn agreed(
        capabilities: u32,
        login: &Login<'_>,
    ) -> Result<Option<Box<Compression>>, String> {
        let algorithm = if capabilities & cap::COMPRESS != 0 {
            Algorithm::Zlib
        } else if capabilities & cap::ZSTD == 0 {
            return Ok(None);
        } else if ZSTD_LEVELS.contains(&login.zstd_level) {
            Algorithm::Zstd(login.zstd_level)
        } else {
            return Err(format!(
                "login with level {} of zstd; expected {} to {}",
                login.zstd_level,
                ZSTD_LEVELS.start(),
                ZSTD_LEVELS.end()
            ));
        };
        Ok(Some(Box::new(Compression {
            algorithm,
            on: false,
            seq: 0,
            raw: Vec::new(),
            body: None,
        })))
    }

    /// Resumes compression for a migrated client: next sequence number and undecoded bytes.
    pub(crate) fn going_on(algorithm: Algorithm, seq: u8, raw: Vec<u8>) -> Box<Compression> {
        Box::new(Compression {
            algorithm,
            on: true,
            seq,
            raw,
            body: None,
        })
    }

    /// True if a part of a frame has come, and is not used up.
    pub(crate) fn is_amid_frame(&self) -> bool {
        !self.raw.is_empty() || self.is_unpacking()
    }

    /// True if a part of a frame is unpacked, which nobody else can go on with.
    pub(crate) fn is_unpacking(&self) -> bool {
        self.body.is_some()
    }

    /// Bytes of memory that frames which are not used up take.
    pub(crate) fn held(&self) -> usize {
        self.raw.capacity() + self.body.as_ref().map_or(0, |body| body.bytes())
    }

    /// Drops what has been read and not used.
    pub(crate) fn forget_input(&mut self) {
        self.raw = Vec::new();
        self.body = None;
    }

    /// Drops the first bytes of what has been read.
    pub(crate) fn drop_raw(&mut self, used: usize) {
        self.raw.drain(..used);
        if self.raw.is_empty() {
            self.raw = Vec::new();
        }
    }

    /// Checks the frame at the front, as far as it has come: its number, and what it would unpack
    /// to. `begins`: a command may begin here, with number 0. Returns the bytes it lacks.
    pub(crate) fn check(&self, begins: bool, max: usize) -> Result<usize, Refusal> {
        let Some(header) = FrameHeader::read(&self.raw) else {
            return Ok(HEADER_LEN - self.raw.len());
        };
        if header.seq != self.seq && !(begins && header.seq == 0) {
            return Err(Refusal::OutOfOrder {
                expected: if begins { 0 } else { self.seq },
                got: header.seq,
            });
        }
        let len = header.unpacked.max(header.sent);
        if len > max {
            return Err(Refusal::TooLong { len, max });
        }
        let first = if header.sent > WHOLE_MAX {
            0
        } else {
            header.sent
        };
        Ok((HEADER_LEN + first).saturating_sub(self.raw.len()))
    }
}

/// Capabilities of compression that a greeting offers.
pub(crate) fn offered(settings: &Settings, server: &ServerFacts) -> u32 {
    match server.flavour {
        _ if !settings.compression => 0,
        Server::MySql(version) if version >= ZSTD_SINCE => cap::COMPRESS | cap::ZSTD,
        _ => cap::COMPRESS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login(zstd_level: u8) -> Login<'static> {
        Login {
            capabilities: 0,
            extended: 0,
            collation: 45,
            user: b"app",
            answer: b"",
            schema: b"",
            plugin: b"",
            zstd_level,
        }
    }

    fn agreed(capabilities: u32, level: u8) -> Result<Option<Algorithm>, String> {
        let agreed = Compression::agreed(capabilities, &login(level))?;
        Ok(agreed.map(|compression| compression.algorithm))
    }

    #[test]
    fn zlib_goes_before_zstd_and_a_level_must_be_one() {
        assert_eq!(agreed(0, 3), Ok(None));
        assert_eq!(agreed(cap::COMPRESS, 3), Ok(Some(Algorithm::Zlib)));
        assert_eq!(agreed(cap::ZSTD, 22), Ok(Some(Algorithm::Zstd(22))));
        assert_eq!(
            agreed(cap::ZSTD | cap::COMPRESS, 3),
            Ok(Some(Algorithm::Zlib))
        );
        for level in [0, 23, 255] {
            assert!(
                agreed(cap::ZSTD, level)
                    .unwrap_err()
                    .contains("expected 1 to 22")
            );
        }
    }

    #[test]
    fn a_frame_is_judged_by_its_header() {
        let mut own = Compression::agreed(cap::COMPRESS, &login(3))
            .unwrap()
            .unwrap();
        own.seq = 5;
        let mut check = |raw: &[u8], begins| {
            own.raw = raw.to_vec();
            own.check(begins, 1000).map_err(|refusal| refusal.name())
        };
        // Length as sent 20, number, length unpacked 100.
        let frame = |seq: u8| [20, 0, 0, seq, 100, 0, 0];
        assert_eq!(check(&[], false), Ok(7));
        assert_eq!(check(&frame(5)[..4], false), Ok(3));
        assert_eq!(check(&frame(5), false), Ok(20));
        assert_eq!(check(&[&frame(5)[..], &[0; 25]].concat(), false), Ok(0));
        assert_eq!(check(&frame(0), true), Ok(20), "a command begins");
        assert_eq!(check(&frame(0), false), Err("out-of-order"));
        assert_eq!(check(&frame(6), true), Err("out-of-order"));
        // What it would unpack to, or is sent as it is, must be within what the server takes.
        assert_eq!(check(&[20, 0, 0, 5, 0xE9, 3, 0], false), Err("too-long"));
        assert_eq!(check(&[0xE9, 3, 0, 5, 0, 0, 0], false), Err("too-long"));
        assert_eq!(check(&[0xE8, 3, 0, 5, 0, 0, 0], false), Ok(1000));
    }

    #[test]
    fn a_client_is_amid_a_frame_from_its_first_byte_on() {
        let mut own = *Compression::agreed(cap::COMPRESS, &login(3))
            .unwrap()
            .unwrap();
        assert!(!own.is_amid_frame());
        own.raw = vec![20];
        assert!(own.is_amid_frame() && !own.is_unpacking());
        own.drop_raw(1);
        assert!(!own.is_amid_frame());
        let header = FrameHeader::read(&[20, 0, 0, 0, 0, 0, 0]).unwrap();
        own.body = Some(Box::new(Body::new(header, None)));
        assert!(own.is_amid_frame() && own.is_unpacking());
    }

    #[test]
    fn an_idle_compressed_client_has_little_more() {
        assert!(size_of::<Compression>() <= 40);
    }
}
