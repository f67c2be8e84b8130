//! Bytes on their way, and what they may take of memory.
//!
//! [`transport`] and [`packing`] are what lies over a client's socket; [`received`] is what a
//! client has sent, [`message`] finds the command at its front, and [`text_reading`] has its long
//! texts classified; [`outgoing`] is what a backend is sent. [`lent`] is what a group lends for a
//! moment. [`room`], [`spool`] and [`memory`] count what is kept, and bound it; [`spool_jobs`] is
//! what the spool's threads do. Nothing here knows a client or a backend.

pub(crate) mod lent;
pub(crate) mod memory;
pub(crate) mod message;
pub(crate) mod outgoing;
pub(crate) mod packing;
pub(crate) mod received;
pub(crate) mod room;
pub(crate) mod spool;
pub(crate) mod spool_jobs;
pub(crate) mod text_reading;
pub(crate) mod transport;
