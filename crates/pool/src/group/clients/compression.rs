//! Clients that speak in compressed frames: read piece by piece, as long as their turn lasts.
//!
//! A frame and its pieces are a matter of [`crate::client::frames`]. Invariant: who may not take
//! more of an unfinished command is not unpacked for either.

use crate::client::frames::PIECE;
use crate::errors::reasons::Refusal;
use crate::group::Group;
use reactor::{Key, Net, Read};

/// Pieces of one client that are read or unpacked without a command being looked for.
const PIECES_MAX: usize = 8;

impl<N: Net> Group<N> {
    /// Unpacks a piece of a client's frames into its input, or reads more of them; `false` when
    /// there is nothing to do until more bytes come, or its turn does.
    pub(crate) fn fill_frames(&mut self, key: Key) -> bool {
        for _ in 0..PIECES_MAX {
            let Some(client) = self.clients.get_mut(key) else {
                return false;
            };
            let lacking = match client.lacks_of_frame(&mut self.packing, &self.shared) {
                Ok(Some(lacking)) => lacking,
                Ok(None) => return false,
                Err(refusal) => return self.refuse_frame(key, &refusal),
            };
            if lacking > 0 {
                let net = &mut self.net;
                match client.read_frames(net, &mut self.tls_bytes, lacking) {
                    Some(Read::Bytes(n)) if n > 0 => continue,
                    Some(read) => return self.no_bytes(key, &read),
                    None => return false,
                }
            }
            if !self.takes_more(key, PIECE) {
                return false;
            }
            let Some(client) = self.clients.get_mut(key) else {
                return true;
            };
            match client.unpack(&mut self.packing) {
                Ok(true) => return true,
                Ok(false) => {}
                Err(refusal) => return self.refuse_frame(key, &refusal),
            }
        }
        true
    }

    /// A frame cannot be used: its client is told so, and goes.
    fn refuse_frame(&mut self, key: Key, refusal: &Refusal) -> bool {
        if let Some(client) = self.clients.get_mut(key) {
            client.drop_frame();
            self.refuse_and_leave(key, refusal);
        }
        false
    }
}
