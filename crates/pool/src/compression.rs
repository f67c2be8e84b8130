//! Compression towards clients: zlib for all of them, zstd too where the server is a MySQL of a
//! version that has it.
//!
//! The pool speaks it itself, with the setting `compression`; the server is never asked for it. A
//! frame is packed or unpacked by tables of the group's ([`Packing`]), which are made when the
//! first such client comes; what a client has of its own ([`Compression`]) are the numbers of its
//! frames and the front of one that has not come whole. A client without compression costs one
//! look at a pointer per read and per write.
//!
//! What is read is unpacked frame by frame, and only while the client's input is wanted: what a
//! client may make the pool hold is the command that it sends and one frame. What is written is
//! packed before it is kept, so a client that takes its reply slowly holds the server back as any
//! other does.
//!
//! Invariants: frames are numbered from 0 with each command and go on through its reply, as a
//! server numbers them; the last uncompressed packet is the OK of the login.

use crate::client::{Client, ClientState};
use crate::config::Settings;
use crate::group::{Group, ServerFacts};
use crate::reasons::Refusal;
use reactor::{Key, Net, Read};
use wire::capabilities as cap;
use wire::compressed::{Algorithm, Broken, FrameHeader, HEADER_LEN, Packer, ZSTD_LEVELS};
use wire::handshake::Login;
use wire::lex::Server;

/// Bytes read at once behind a frame's first part: as many as it lacks, within these bounds.
const STEP_MIN: usize = 4 * 1024;
const STEP_MAX: usize = 256 * 1024;
/// What a frame may unpack to where the server takes no statement as long as that.
const FRAME_MIN: usize = 64 * 1024;
/// The first MySQL that knows zstd (8.0.18).
const ZSTD_SINCE: u32 = 80_018;

/// What all compressed clients of a group share.
#[derive(Debug, Default)]
pub(crate) struct Packing {
    /// The tables, once somebody needed them.
    packer: Option<Box<Packer>>,
    /// Lent to whoever writes.
    frames: Vec<u8>,
}

impl Packing {
    fn packer(&mut self) -> &mut Packer {
        self.packer.get_or_insert_default()
    }
}

/// What a client that compresses has besides others.
#[derive(Debug)]
pub(crate) struct Compression {
    algorithm: Algorithm,
    /// The login is over: frames it is.
    on: bool,
    /// Number of the next frame, in either direction.
    seq: u8,
    /// A frame that has not come whole, and what came behind those that are used up.
    raw: Vec<u8>,
}

impl Compression {
    /// What a client has chosen at its login: as a server does, zlib if it offers both. `None`
    /// without compression.
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
        })))
    }

    /// Whether a part of a frame has come.
    pub(crate) fn is_amid_frame(&self) -> bool {
        !self.raw.is_empty()
    }

    /// Checks the frame at the front, as far as it has come: its number, and what it would unpack
    /// to. `begins`: a command may begin here, with number 0. Returns the bytes it lacks.
    fn check(&self, begins: bool, max: usize) -> Result<usize, Refusal> {
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
        Ok((HEADER_LEN + header.sent).saturating_sub(self.raw.len()))
    }
}

/// What a greeting offers of compression.
pub(crate) fn offered(settings: &Settings, server: &ServerFacts) -> u32 {
    match server.flavour {
        _ if !settings.compression => 0,
        Server::MySql(version) if version >= ZSTD_SINCE => cap::COMPRESS | cap::ZSTD,
        _ => cap::COMPRESS,
    }
}

impl<S> Client<S> {
    /// Whether its bytes come and go in frames.
    pub(crate) fn compresses(&self) -> bool {
        self.compression.as_ref().is_some_and(|c| c.on)
    }

    /// The login is over; from here on what was agreed holds, also for what the client has said
    /// behind its login without waiting for the answer.
    pub(crate) fn begin_compression(&mut self) {
        if let Some(compression) = &mut self.compression
            && !std::mem::replace(&mut compression.on, true)
            && let Some(input) = self.input.take()
        {
            compression.raw = *input;
        }
    }

    /// Keeps what was read together with the last packet of the login.
    pub(crate) fn keep_frames(&mut self, bytes: &[u8]) {
        if let Some(compression) = &mut self.compression {
            compression.raw.extend_from_slice(bytes);
        }
    }
}

impl<N: Net> Group<N> {
    /// Unpacks the next frame of a client into its input, or reads more of it; `false` when there
    /// is nothing to do until more bytes come.
    pub(crate) fn fill_frames(&mut self, key: Key) -> bool {
        let max = (self.shared.server.max_allowed_packet + HEADER_LEN).max(FRAME_MIN);
        let Some(client) = self.clients.get(key) else {
            return false;
        };
        let Some(compression) = &client.compression else {
            return false;
        };
        let begins = client.input.is_none() && client.state() == ClientState::Idle;
        match compression.check(begins, max) {
            Ok(0) => self.unpack(key),
            Ok(missing) => self.read_frames(key, missing),
            Err(refusal) => {
                self.refuse_frame(key, &refusal);
                false
            }
        }
    }

    /// The frame at the front has come whole.
    fn unpack(&mut self, key: Key) -> bool {
        let Some(client) = self.clients.get_mut(key) else {
            return false;
        };
        let Some(compression) = &mut client.compression else {
            return false;
        };
        let input = client.input.get_or_insert_default();
        let header = FrameHeader::read(&compression.raw);
        let packer = self.packing.packer();
        match packer.unpack_as(compression.algorithm, &compression.raw, input) {
            Ok(Some(used)) => {
                compression.seq = header.map_or(0, |header| header.seq.wrapping_add(1));
                compression.raw.drain(..used);
                if compression.raw.is_empty() {
                    compression.raw = Vec::new();
                }
                // A frame without a body, which nobody sends, must not look like input.
                if input.is_empty() {
                    client.input = None;
                }
                true
            }
            Ok(None) => false,
            Err(Broken) => {
                self.refuse_frame(key, &Refusal::Malformed(Broken.to_string()));
                false
            }
        }
    }

    /// Reads what a frame lacks.
    fn read_frames(&mut self, key: Key, missing: usize) -> bool {
        let Some(client) = self.clients.get_mut(key) else {
            return false;
        };
        if !client.readable || client.doomed {
            return false;
        }
        let Some(compression) = &mut client.compression else {
            return false;
        };
        let raw = &mut compression.raw;
        let start = raw.len();
        let step = missing.clamp(STEP_MIN, STEP_MAX);
        raw.resize(start + step, 0);
        let read = self.net.read(&client.sock, &mut raw[start..]);
        let got = if let Read::Bytes(n) = read { n } else { 0 };
        raw.truncate(start + got);
        if raw.is_empty() {
            *raw = Vec::new();
        }
        if got > 0 {
            client.readable = got == step || client.ended;
            client.heard_from(self.net.now());
            return true;
        }
        self.no_bytes(key, &read)
    }

    /// A frame that cannot be used: what follows it cannot be either.
    fn refuse_frame(&mut self, key: Key, refusal: &Refusal) {
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        if let Some(compression) = &mut client.compression {
            let got = FrameHeader::read(&compression.raw).map_or(0, |header| header.seq);
            compression.seq = got.wrapping_add(1);
            compression.raw = Vec::new();
        }
        client.input = None;
        client.seq = 1;
        self.refuse_and_leave(key, refusal);
    }

    /// Sends `bytes` to a client in frames.
    pub(crate) fn send_frames(&mut self, key: Key, bytes: &[u8]) {
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        let Some(compression) = &mut client.compression else {
            return;
        };
        let mut frames = std::mem::take(&mut self.packing.frames);
        frames.clear();
        let (algorithm, seq) = (compression.algorithm, compression.seq);
        let packer = self.packing.packer();
        compression.seq = packer.pack_as(algorithm, seq, bytes, &mut frames);
        self.send_bytes(key, &frames);
        self.packing.frames = frames;
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
    fn an_idle_compressed_client_has_little_more() {
        assert!(size_of::<Compression>() <= 40);
    }
}
