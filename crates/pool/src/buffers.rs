//! Bytes on their way, and what they may take of memory.
//!
//! [`transport`] and [`packing`] are what lies over a client's socket; [`message`] finds the
//! command at the front of what was read; [`room`], [`spool`] and [`memory`] count what is kept,
//! and bound it. Nothing here knows a client or a backend.

pub(crate) mod memory;
pub(crate) mod message;
pub(crate) mod packing;
pub(crate) mod room;
pub(crate) mod spool;
pub(crate) mod transport;
