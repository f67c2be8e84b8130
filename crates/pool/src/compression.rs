//! Compression towards clients: zlib for all of them, zstd too where the server is a MySQL of a
//! version that has it.
//!
//! The pool speaks it itself, with the setting `compression`; the server is never asked for it. A
//! frame is packed or unpacked by tables of the group's ([`Packing`]), which are made when the
//! first such client comes; what a client has of its own ([`Compression`]) are the numbers of its
//! frames and the front of one that has not come whole. A client without compression costs one
//! look at a pointer per read and per write.
//!
//! What is read is unpacked in pieces ([`PIECE`]), as it comes, and only while the client's input
//! is wanted: what a client may make the pool hold is the command that it sends, as any other's is
//! bounded ([`crate::input`]), a piece of a packed frame, and what unpacks it. What is written is
//! packed before it is kept, so a client that takes its reply slowly holds the server back as any
//! other does.
//!
//! A command is handled once its frame was found whole and its checksum right, but for frames
//! longer than [`CHECKED_MAX`]: of several commands in one of those, the first ones are run before
//! the end has come.
//!
//! Invariants: frames are numbered from 0 with each command and go on through its reply, as a
//! server numbers them; the last uncompressed packet is the OK of the login.

use crate::client::{Client, ClientState};
use crate::config::Settings;
use crate::group::Group;
use crate::reasons::Refusal;
use crate::room::make_room;
use crate::server_facts::ServerFacts;
use reactor::{Key, Net, Read};
use sql::lex::Server;
use wire::capabilities as cap;
use wire::compressed::{
    Algorithm, Body, Broken, FrameHeader, HEADER_LEN, Inflater, Packer, ZSTD_LEVELS,
};
use wire::handshake::Login;

/// Bytes of frames read at once: as many as are lacking, within these bounds.
const STEP_MIN: usize = 4 * 1024;
const STEP_MAX: usize = 16 * 1024;
/// A frame that is sent in fewer bytes is not begun before it has come whole: so few bytes are
/// kept for less than what unpacks them takes.
const WHOLE_MAX: usize = STEP_MAX;
/// Bytes unpacked at once.
const PIECE: usize = 16 * 1024;
/// Of a frame that unpacks to no more than this, nothing is handled before all of it was right.
const CHECKED_MAX: usize = 64 * 1024;
/// Pieces of one client that are read or unpacked without a command being looked for.
const PIECES_MAX: usize = 8;
/// What unpacks is kept for the next frames, so many of each group.
const INFLATERS_MAX: usize = 4;
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
    /// Lent to whoever unpacks.
    piece: Vec<u8>,
    /// What unpacks and is of no frame.
    inflaters: Vec<Inflater>,
}

impl Packing {
    fn packer(&mut self) -> &mut Packer {
        self.packer.get_or_insert_default()
    }

    /// What unpacks a frame; `None` when there is no memory for it.
    fn inflater(&mut self, algorithm: Algorithm) -> Option<Inflater> {
        let spare = (self.inflaters.iter()).position(|inflater| inflater.is_of(algorithm));
        match spare {
            Some(at) => Some(self.inflaters.swap_remove(at)),
            None => Inflater::new(algorithm),
        }
    }

    fn give_back(&mut self, inflater: Option<Inflater>) {
        if self.inflaters.len() < INFLATERS_MAX {
            self.inflaters.extend(inflater);
        }
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
    /// What has been read and not unpacked: a part of a frame, and what came behind it.
    raw: Vec<u8>,
    /// The frame that is being unpacked.
    body: Option<Box<Body>>,
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
            body: None,
        })))
    }

    /// Whether a part of a frame has come.
    pub(crate) fn is_amid_frame(&self) -> bool {
        !self.raw.is_empty() || self.body.is_some()
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
    fn drop_raw(&mut self, used: usize) {
        self.raw.drain(..used);
        if self.raw.is_empty() {
            self.raw = Vec::new();
        }
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
        let first = if header.sent > WHOLE_MAX {
            0
        } else {
            header.sent
        };
        Ok((HEADER_LEN + first).saturating_sub(self.raw.len()))
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

    /// Whether what has been unpacked is not to be handled yet: its frame is not known to be right.
    pub(crate) fn withholds_input(&self) -> bool {
        let body = self.compression.as_ref().and_then(|c| c.body.as_ref());
        body.is_some_and(|body| {
            let header = body.header();
            header.is_packed() && header.unpacked.max(header.sent) <= CHECKED_MAX
        })
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
    /// Unpacks a piece of a client's frames into its input, or reads more of them; `false` when
    /// there is nothing to do until more bytes come, or its turn does.
    pub(crate) fn fill_frames(&mut self, key: Key) -> bool {
        for _ in 0..PIECES_MAX {
            let Some(client) = self.clients.get(key) else {
                return false;
            };
            let Some(compression) = &client.compression else {
                return false;
            };
            let lacking = match &compression.body {
                Some(body) if compression.raw.is_empty() && !body.has_more() => body.left(),
                Some(_) => 0,
                None => match self.begin_frame(key) {
                    Ok(lacking) => lacking,
                    Err(refusal) => {
                        self.refuse_frame(key, &refusal);
                        return false;
                    }
                },
            };
            if lacking > 0 {
                if !self.read_frames(key, lacking) {
                    return false;
                }
                continue;
            }
            if !self.takes_more(key, PIECE) {
                return false;
            }
            match self.unpack(key) {
                Ok(true) => return true,
                Ok(false) => {}
                Err(refusal) => {
                    self.refuse_frame(key, &refusal);
                    return false;
                }
            }
        }
        true
    }

    /// Begins the frame at the front; returns the bytes that it lacks for that, at least.
    fn begin_frame(&mut self, key: Key) -> Result<usize, Refusal> {
        let max = (self.shared.server.max_allowed_packet + HEADER_LEN).max(FRAME_MIN);
        let Some(client) = self.clients.get_mut(key) else {
            return Ok(0);
        };
        let begins = client.input.is_none() && client.state() == ClientState::Idle;
        let Some(compression) = &mut client.compression else {
            return Ok(0);
        };
        let lacking = compression.check(begins, max)?;
        let header = FrameHeader::read(&compression.raw).filter(|_| lacking == 0);
        let Some(header) = header else {
            return Ok(lacking);
        };
        let inflater = match header.is_packed() {
            true => Some(
                self.packing
                    .inflater(compression.algorithm)
                    .ok_or_else(|| self.shared.memory_refusal())?,
            ),
            false => None,
        };
        compression.drop_raw(HEADER_LEN);
        compression.seq = header.seq.wrapping_add(1);
        let body = Body::new(header, inflater);
        // A frame without a body, which nobody sends.
        compression.body = (!body.is_over()).then(|| Box::new(body));
        Ok(0)
    }

    /// Unpacks a piece of the frame at the front; `true` when there is something to be handled.
    fn unpack(&mut self, key: Key) -> Result<bool, Refusal> {
        let Some(client) = self.clients.get_mut(key) else {
            return Ok(true);
        };
        let Some(compression) = &mut client.compression else {
            return Ok(true);
        };
        let Some(body) = &mut compression.body else {
            return Ok(true);
        };
        let mut piece = std::mem::take(&mut self.packing.piece);
        piece.resize(PIECE, 0);
        let broken = |Broken| Refusal::Malformed(Broken.to_string());
        let (used, written) = body.unpack(&compression.raw, &mut piece).map_err(broken)?;
        let over = body.is_over();
        compression.drop_raw(used);
        if over && let Some(body) = compression.body.take() {
            self.packing.give_back(body.into_inflater());
        }
        client.keep_input(&piece[..written]);
        self.packing.piece = piece;
        Ok(over || written > 0 && !client.withholds_input())
    }

    /// Reads what a frame lacks.
    fn read_frames(&mut self, key: Key, lacking: usize) -> bool {
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
        let step = lacking.clamp(STEP_MIN, STEP_MAX);
        make_room(raw, step);
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
            if compression.body.is_none() {
                let got = FrameHeader::read(&compression.raw).map_or(0, |header| header.seq);
                compression.seq = got.wrapping_add(1);
            }
            compression.forget_input();
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
