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
//! bounded ([`crate::input_room`]), a piece of a packed frame, and what unpacks it. What
//! is written is packed before it is kept, so a client that takes its reply slowly holds the server
//! back as any other does.
//!
//! A command is handled once its frame was found whole and its checksum right, but for frames
//! longer than [`CHECKED_MAX`]: of several commands in one of those, the first ones are run before
//! the end has come.
//!
//! Invariants: frames are numbered from 0 with each command and go on through its reply, as a
//! server numbers them; the last uncompressed packet is the OK of the login.

use crate::buffers::packing::{STEP_MAX, STEP_MIN};
use crate::buffers::room::{INPUT_FREE, make_room};
use crate::client::{Client, ClientState};
use crate::errors::reasons::Refusal;
use crate::group::Group;
use reactor::{Key, Net, Read};
use wire::compressed::{Body, Broken, FrameHeader, HEADER_LEN};

/// Bytes unpacked at once.
const PIECE: usize = 16 * 1024;
/// Of a frame that unpacks to no more than this, nothing is handled before all of it was right.
const CHECKED_MAX: usize = 64 * 1024;
/// Pieces of one client that are read or unpacked without a command being looked for.
const PIECES_MAX: usize = 8;
/// What a frame may unpack to where the server takes no statement as long as that.
const FRAME_MIN: usize = 64 * 1024;

impl<S> Client<S> {
    /// Whether its bytes come and go in frames.
    pub(crate) fn compresses(&self) -> bool {
        self.transport.compression().is_some_and(|c| c.on)
    }

    /// Whether what has been unpacked is not to be handled yet: its frame is not known to be right.
    pub(crate) fn withholds_input(&self) -> bool {
        let body = self.transport.compression().and_then(|c| c.body.as_ref());
        body.is_some_and(|body| {
            let header = body.header();
            header.is_packed() && header.unpacked.max(header.sent) <= CHECKED_MAX
        })
    }

    /// Whether the frame that is being unpacked is longer than what a client is read for nothing.
    pub(crate) fn unpacks_much(&self) -> bool {
        let body = self.transport.compression().and_then(|c| c.body.as_ref());
        let header = body.map(|body| body.header());
        header.is_some_and(|header| header.is_packed() && header.unpacked > INPUT_FREE)
    }

    /// The login is over; from here on what was agreed holds, also for what the client has said
    /// behind its login without waiting for the answer.
    pub(crate) fn begin_compression(&mut self) {
        if let Some(compression) = self.transport.compression_mut()
            && !std::mem::replace(&mut compression.on, true)
            && let Some(input) = self.input.take()
        {
            compression.raw = input.into_bytes();
        }
    }

    /// Keeps what was read together with the last packet of the login.
    pub(crate) fn keep_frames(&mut self, bytes: &[u8]) {
        if let Some(compression) = self.transport.compression_mut() {
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
            let Some(compression) = client.transport.compression() else {
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
        let Some(compression) = client.transport.compression_mut() else {
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
        let Some(compression) = client.transport.compression_mut() else {
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
        if !client.transport.is_readable() || client.closing {
            return false;
        }
        let Some(compression) = client.transport.compression_mut() else {
            return false;
        };
        let mut raw = std::mem::take(&mut compression.raw);
        let start = raw.len();
        let step = lacking.clamp(STEP_MIN, STEP_MAX);
        make_room(&mut raw, step);
        raw.resize(start + step, 0);
        let read =
            (client.transport).read_counted(&mut self.net, &mut raw[start..], &mut self.tls_bytes);
        let got = if let Read::Bytes(n) = read { n } else { 0 };
        raw.truncate(start + got);
        if let Some(compression) = client.transport.compression_mut()
            && !raw.is_empty()
        {
            compression.raw = raw;
        }
        if got > 0 {
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
        if let Some(compression) = client.transport.compression_mut() {
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
}
