//! Live upgrade between two processes: values as bytes, messages, and descriptors that go along.
//!
//! The problem: a process hands its listeners, its clients and what it knows of them to another
//! one, which may be of another build. The mechanism: a value becomes bytes and back by one trait
//! ([`Record`]); a message ([`Frame`]) has a bounded length and the version of all records in it; a
//! [`Channel`] carries messages, with descriptors, over a Unix socket.
//!
//! Invariants: a record is read whole or not at all; one that is cut off, garbled or longer than
//! its value is an error, never a panic; nothing is reserved for a length whose bytes are not
//! there.
#![forbid(unsafe_code)]

mod channel;
mod descriptors;
mod frames;
mod record;

pub use channel::{Channel, Come};
pub use descriptors::{
    DESCRIPTORS_MAX, Peer, dial, listen_at, local_address, own, peer, receive, send,
};
pub use frames::{ClientRecords, FRAME_BYTES_MAX, Frame, VERSION};
pub use record::{Record, RecordError};
