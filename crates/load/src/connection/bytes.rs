//! Bytes of a connection: reading, writing, and the frames of compression.
//!
//! Bytes are read into the group's buffer and dealt with there. What a short read or a full socket
//! leaves over is kept in a [`Spill`] for a while. A compressed stream is unpacked into another of
//! the group's buffers first; frames and packets end at different places, so two rests are kept.
//!
//! Invariants: a connection with nothing left over has no spill; the group's buffers are back when
//! a call returns; a connection keeps at most the beginning of a frame ([`FRAME_MAX`]) and of a
//! packet ([`super::WHOLE_MAX`]), and what is unpacked at a time is one frame.

use super::{Connection, State};
use crate::context::Context;
use load_core::errors::Fault;
use load_core::transport::{Came, Handshake};
use reactor::Write;

/// Largest length of a frame's body, packed or not.
const FRAME_MAX: usize = (1 << 24) - 1;

/// Bytes that could not be dealt with at once.
#[derive(Debug, Default)]
pub(super) struct Spill {
    /// Read, but less than what is needed to go on.
    partial: Vec<u8>,
    /// Bytes of a frame that is not whole.
    partial_frame: Vec<u8>,
    /// Bytes to be written when there is room.
    unsent: Vec<u8>,
}

impl Spill {
    fn is_empty(&self) -> bool {
        self.partial.is_empty() && self.partial_frame.is_empty() && self.unsent.is_empty()
    }
}

impl Connection {
    /// Reads a readable socket until nothing is left, and deals with it.
    pub(crate) fn on_readable(&mut self, context: &mut Context, closed: bool) -> Result<(), Fault> {
        if matches!(self.state, State::Connecting) {
            let is_plain = self.transport.is_emptied_by_short_read();
            if is_plain || self.open_further(context)? == Handshake::Waits {
                return Ok(());
            }
        }
        let mut buffer = std::mem::take(&mut context.buffer);
        let result = self.read_all(context, &mut buffer, closed);
        context.buffer = buffer;
        result
    }

    fn read_all(
        &mut self,
        context: &mut Context,
        buffer: &mut [u8],
        closed: bool,
    ) -> Result<(), Fault> {
        loop {
            // What the last read left over is put in front of the new bytes.
            let kept = match &self.spill {
                Some(spill) if !self.is_packed => {
                    buffer[..spill.partial.len()].copy_from_slice(&spill.partial);
                    spill.partial.len()
                }
                _ => 0,
            };
            let came = match self.transport.read(&mut context.net, &mut buffer[kept..]) {
                Came::Bytes(came) => came,
                Came::Blocked => return Ok(()),
                Came::End(_) => return Err(Fault::ended(self.doing())),
                Came::Failed(fault) => return Err(fault),
            };
            let bytes = &buffer[..kept + came];
            if self.is_packed {
                self.take_frames(context, bytes)?;
            } else {
                let used = self.take_packets(context, bytes, 0)?;
                self.spill_over(&bytes[used..], |spill| &mut spill.partial);
            }
            // Less than was asked for means that the socket is empty: no second read to hear it,
            // unless the peer's end has to be heard.
            let is_plain = self.transport.is_emptied_by_short_read();
            if kept + came < buffer.len() && is_plain && !closed {
                return Ok(());
            }
        }
    }

    /// Unpacks the frames that have come whole and deals with their packets.
    fn take_frames(&mut self, context: &mut Context, came: &[u8]) -> Result<(), Fault> {
        let mut spill = self.spill.take().unwrap_or_default();
        let mut frames = std::mem::take(&mut spill.partial_frame);
        let bytes = if frames.is_empty() {
            came
        } else {
            frames.extend_from_slice(came);
            &frames
        };
        let mut plain = std::mem::take(&mut context.plain);
        plain.clear();
        plain.append(&mut spill.partial);
        self.keep(spill);
        let result = self.take_unpacked(context, bytes, &mut plain);
        context.plain = plain;
        result
    }

    fn take_unpacked(
        &mut self,
        context: &mut Context,
        bytes: &[u8],
        plain: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let broken = |error| Fault::protocol(format!("from the server: {error}"));
        let mut at = 0;
        // One at a time: a few hundred bytes may unpack to megabytes.
        while let Some(used) = context.packer.unpack(&bytes[at..], plain).map_err(broken)? {
            at += used;
            debug_assert!(
                plain.len() <= FRAME_MAX + super::WHOLE_MAX,
                "several frames"
            );
            let used = self.take_packets(context, plain, bytes.len() - at)?;
            plain.drain(..used);
        }
        self.spill_over(plain, |spill| &mut spill.partial);
        self.spill_over(&bytes[at..], |spill| &mut spill.partial_frame);
        Ok(())
    }

    /// Keeps what is left over in its place.
    fn spill_over(&mut self, rest: &[u8], place: fn(&mut Spill) -> &mut Vec<u8>) {
        if rest.is_empty() && self.spill.is_none() {
            return;
        }
        let mut spill = self.spill.take().unwrap_or_default();
        let kept = place(&mut spill);
        kept.clear();
        kept.extend_from_slice(rest);
        self.keep(spill);
    }

    fn keep(&mut self, spill: Box<Spill>) {
        self.spill = (!spill.is_empty()).then_some(spill);
    }

    /// Sends what is waiting, once the socket has room again.
    pub(super) fn send_rest(&mut self, context: &mut Context) -> Result<(), Fault> {
        let Some(mut spill) = self.spill.take() else {
            return Ok(());
        };
        let unsent = std::mem::take(&mut spill.unsent);
        self.keep(spill);
        self.write(context, &unsent)
    }

    /// Sends packets, in frames where that was agreed.
    pub(super) fn send(&mut self, context: &mut Context, packets: &[u8]) -> Result<(), Fault> {
        if !self.is_packed {
            return self.write(context, packets);
        }
        let mut frames = std::mem::take(&mut context.frames);
        frames.clear();
        context.packer.pack(packets, &mut frames);
        let result = self.write(context, &frames);
        context.frames = frames;
        result
    }

    fn write(&mut self, context: &mut Context, bytes: &[u8]) -> Result<(), Fault> {
        let waiting = self
            .spill
            .as_ref()
            .is_some_and(|spill| !spill.unsent.is_empty());
        let mut sent = 0;
        while sent < bytes.len() && !waiting {
            match self.transport.write(&mut context.net, &bytes[sent..]) {
                Write::Bytes(n) => sent += n,
                Write::Blocked => break,
                Write::Failed(error) => return Err(Fault::system(&error)),
            }
        }
        if sent < bytes.len() {
            let spill = self.spill.get_or_insert_default();
            spill.unsent.extend_from_slice(&bytes[sent..]);
        }
        Ok(())
    }
}
