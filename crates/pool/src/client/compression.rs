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
//! bounded ([`crate::limits::unfinished`]), a piece of a packed frame, and what unpacks it. What
//! is written is packed before it is kept, so a client that takes its reply slowly holds the server
//! back as any other does.
//!
//! A command is handled once its frame was found whole and its checksum right, but for frames
//! longer than [`CHECKED_MAX`]: of several commands in one of those, the first ones are run before
//! the end has come.
//!
//! Invariants: frames are numbered from 0 with each command and go on through its reply, as a
//! server numbers them; the last uncompressed packet is the OK of the login.

use crate::client::buffers::packing::{Packing, STEP_MAX, STEP_MIN};
use crate::client::buffers::room::make_room;
use crate::client::{Client, ClientState};
use crate::errors::reasons::Refusal;
use crate::group::shared::Shared;
use reactor::{Net, Read};
use session::meter::Meter;
use wire::compressed::{Body, Broken, FrameHeader, HEADER_LEN};

/// Bytes unpacked at once.
pub(crate) const PIECE: usize = 16 * 1024;
/// Bytes that a frame may unpack to where the server takes no statement as long as that.
const FRAME_MIN: usize = 64 * 1024;

impl<S> Client<S> {
    /// Starts the agreed compression after the login, also for what the client has sent behind its
    /// login without waiting for the answer.
    pub(crate) fn begin_compression(&mut self) {
        if let Some(compression) = self.transport.compression_mut()
            && !std::mem::replace(&mut compression.on, true)
            && let Some(input) = self.input.take()
        {
            compression.raw = input.into_bytes();
        }
    }

    /// Bytes that lack before a piece can be unpacked; the frame at the front is begun if none is.
    /// `None`: it speaks in none.
    ///
    /// # Errors
    /// The frame cannot be used.
    pub(crate) fn lacks_of_frame(
        &mut self,
        packing: &mut Packing,
        shared: &Shared,
    ) -> Result<Option<usize>, Refusal> {
        let Some(compression) = self.transport.compression() else {
            return Ok(None);
        };
        match &compression.body {
            Some(body) if compression.raw.is_empty() && !body.has_more() => Ok(Some(body.left())),
            Some(_) => Ok(Some(0)),
            None => self.begin_frame(packing, shared).map(Some),
        }
    }

    /// Begins the frame at the front; returns the bytes that it lacks for that, at least.
    fn begin_frame(&mut self, packing: &mut Packing, shared: &Shared) -> Result<usize, Refusal> {
        let max = (shared.server.max_allowed_packet + HEADER_LEN).max(FRAME_MIN);
        let begins = self.input.bytes().is_none() && self.state() == ClientState::Idle;
        let Some(compression) = self.transport.compression_mut() else {
            return Ok(0);
        };
        let lacking = compression.check(begins, max)?;
        let header = FrameHeader::read(&compression.raw).filter(|_| lacking == 0);
        let Some(header) = header else {
            return Ok(lacking);
        };
        let inflater = match header.is_packed() {
            true => Some(
                packing
                    .inflater(compression.algorithm)
                    .ok_or_else(|| shared.retained.memory.refusal())?,
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
    pub(crate) fn unpack(&mut self, packing: &mut Packing) -> Result<bool, Refusal> {
        let Some(compression) = self.transport.compression_mut() else {
            return Ok(true);
        };
        let Some(body) = &mut compression.body else {
            return Ok(true);
        };
        let mut piece = std::mem::take(&mut packing.piece);
        piece.resize(PIECE, 0);
        let broken = |Broken| Refusal::Malformed(Broken.to_string());
        let (used, written) = body.unpack(&compression.raw, &mut piece).map_err(broken)?;
        let over = body.is_over();
        compression.drop_raw(used);
        if over && let Some(body) = compression.body.take() {
            packing.give_back(body.into_inflater());
        }
        self.keep_input(&piece[..written]);
        packing.piece = piece;
        Ok(over || written > 0 && !self.transport.withholds_input())
    }

    /// Reads what a frame lacks; `None` where nothing can be read.
    pub(crate) fn read_frames<N: Net<Sock = S>>(
        &mut self,
        net: &mut N,
        tls_bytes: &Meter,
        lacking: usize,
    ) -> Option<Read> {
        if !self.transport.is_readable() || self.ended.is_closing() {
            return None;
        }
        let compression = self.transport.compression_mut()?;
        let mut raw = std::mem::take(&mut compression.raw);
        let start = raw.len();
        let step = lacking.clamp(STEP_MIN, STEP_MAX);
        make_room(&mut raw, step);
        raw.resize(start + step, 0);
        let read = (self.transport).read_counted(net, &mut raw[start..], tls_bytes);
        let got = if let Read::Bytes(n) = read { n } else { 0 };
        raw.truncate(start + got);
        if let Some(compression) = self.transport.compression_mut()
            && !raw.is_empty()
        {
            compression.raw = raw;
        }
        if got > 0 {
            self.heard_from(net.now());
        }
        Some(read)
    }

    /// Drops the frame that is being read, which cannot be used: what follows it cannot be either.
    pub(crate) fn drop_frame(&mut self) {
        if let Some(compression) = self.transport.compression_mut() {
            if compression.body.is_none() {
                let got = FrameHeader::read(&compression.raw).map_or(0, |header| header.seq);
                compression.seq = got.wrapping_add(1);
            }
            compression.forget_input();
        }
        self.input.put(None);
        self.identity.seq = 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::buffers::packing::Compression;
    use crate::client::buffers::transport::CHECKED_MAX;
    use crate::group::scripted::{Scripted, shared};
    use crate::group::tokens::ClientId;
    use reactor::{Event, Time};
    use std::rc::Rc;
    use wire::compressed::Algorithm;

    const PING: &[u8] = b"\x01\0\0\0\x0e";

    /// A client between its statements that speaks in frames, of which these bytes have come.
    fn client(raw: &[u8]) -> Client<()> {
        let mut client = Client::of_tests(Time(1), Rc::default());
        client.login = None;
        assert!(client.change_state(ClientState::Idle, Time(1)));
        let compression = Compression::going_on(Algorithm::Zlib, 0, raw.to_vec());
        client.transport.set_compression(Some(compression));
        client
    }

    fn frame(seq: u8, payload: &[u8]) -> Vec<u8> {
        let mut packing = Packing::default();
        let mut out = Vec::new();
        let packer = packing.packer();
        packer.pack_as(Algorithm::Zlib, seq, payload, &mut out);
        out
    }

    /// Unpacks all that can be; what lacks then.
    fn unpack_all(client: &mut Client<()>) -> Result<usize, Refusal> {
        let (mut packing, shared) = (Packing::default(), shared(""));
        loop {
            let lacking = client.lacks_of_frame(&mut packing, &shared)?.unwrap();
            if lacking > 0 {
                return Ok(lacking);
            }
            client.unpack(&mut packing)?;
        }
    }

    fn input(client: &Client<()>) -> &[u8] {
        client.input.bytes().map_or(&[], |input| input)
    }

    #[test]
    fn a_frame_becomes_the_clients_input() {
        let mut client = client(&frame(0, PING));
        assert!(client.transport.compresses());
        assert!(unpack_all(&mut client).is_ok_and(|lacking| lacking > 0));
        assert_eq!(input(&client), PING);
        assert!(!client.transport.withholds_input());
    }

    #[test]
    fn nothing_of_a_packed_frame_is_handled_before_all_of_it_was_right() {
        // It is packed, and too long to be waited for whole.
        let mut seed = 7_u32;
        let text: Vec<u8> = std::iter::repeat_with(|| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            u8::try_from(seed >> 26).unwrap()
        })
        .take(CHECKED_MAX - 1)
        .collect();
        let packed = frame(0, &text);
        let mut client = client(&packed[..packed.len() - 4]);
        assert!(unpack_all(&mut client).is_ok_and(|lacking| lacking == 4));
        assert!(
            client.transport.withholds_input(),
            "the checksum has not come"
        );
        let rest = &packed[packed.len() - 4..];
        client.transport.keep_frames(rest);
        assert!(unpack_all(&mut client).is_ok());
        assert!(!client.transport.withholds_input());
        assert_eq!(input(&client), text);
    }

    #[test]
    fn a_frame_that_is_broken_is_refused() {
        let mut packed = frame(0, &[b'x'; 1000]);
        let last = packed.len() - 1;
        packed[last] ^= 1;
        let mut client = client(&packed);
        assert!(unpack_all(&mut client).is_err());
        client.drop_frame();
        assert!(client.input.bytes().is_none() && !client.is_amid_command());
        assert_eq!(client.identity.seq, 1);
    }

    #[test]
    fn frames_go_on_with_what_was_said_behind_the_login() {
        let mut client = client(b"");
        let compression = client.transport.compression_mut().unwrap();
        compression.on = false;
        assert!(!client.transport.compresses());
        client.keep_input(&frame(0, PING));
        client.begin_compression();
        assert!(client.transport.compresses() && client.input.bytes().is_none());
        assert!(unpack_all(&mut client).is_ok());
        assert_eq!(input(&client), PING);
    }

    #[test]
    fn no_more_is_read_than_what_a_frame_needs_and_a_step() {
        let mut client = client(b"");
        let token = ClientId::from_parts(1, 0).token();
        client.transport.note(Event {
            token,
            readable: true,
            writable: false,
            closed: false,
        });
        let mut net = Scripted {
            incoming: vec![b'x'; 10 * STEP_MAX],
            ..Scripted::default()
        };
        let tls_bytes = Meter::default();
        let read = client.read_frames(&mut net, &tls_bytes, usize::MAX);
        assert!(matches!(read, Some(Read::Bytes(n)) if n == STEP_MAX));
        let read = client.read_frames(&mut net, &tls_bytes, 1);
        assert!(matches!(read, Some(Read::Bytes(n)) if n == STEP_MIN));
        client.ended.set_closing();
        assert!(client.read_frames(&mut net, &tls_bytes, 1).is_none());
    }
}
