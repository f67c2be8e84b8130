//! Buffers of a group that are lent for a moment.
//!
//! The problem: who reads, unpacks or writes needs room for a moment, and a hundred thousand
//! clients cannot have each their own. The mechanism: a group has one of each. Who needs one takes
//! it out and puts it back; where serving one client leads to serving another, that finds an empty
//! one.
//!
//! Invariant: nothing lies in a buffer that is not lent but what was in it last; what may have been
//! a password is wiped before it is given back.

use crate::client::buffers::packing::Packing;
use crate::client::buffers::received::Received;

/// Buffers that a group lends.
#[derive(Debug, Default)]
pub(crate) struct Lent {
    /// Buffer of whoever reads from a client.
    pub(crate) from_client: Vec<u8>,
    /// Buffer of whoever reads from a backend.
    pub(crate) from_backend: Vec<u8>,
    /// Buffer of whoever writes.
    pub(crate) out: Vec<u8>,
    /// Inputs of clients that wait.
    pub(crate) inputs: SpareInputs,
    /// Buffers that compressed clients share.
    pub(crate) packing: Packing,
}

/// Boxes for the input of clients that wait, used over and over: a statement that has to wait its
/// turn is the rule under load.
#[derive(Debug, Default)]
pub(crate) struct SpareInputs(
    #[expect(clippy::vec_box, reason = "a client takes the box as it is")] Vec<Box<Received>>,
);

impl SpareInputs {
    /// Boxes that a group keeps at most, and bytes of each.
    const COUNT_MAX: usize = 64;
    const BYTES_MAX: usize = 4096;

    /// An empty one, if there is one.
    pub(crate) fn take(&mut self) -> Option<Box<Received>> {
        self.0.pop()
    }

    /// Takes one back that is needed no more.
    pub(crate) fn put(&mut self, mut input: Box<Received>) {
        if self.0.len() < Self::COUNT_MAX && input.capacity() <= Self::BYTES_MAX {
            input.clear();
            self.0.push(input);
        }
    }
}
