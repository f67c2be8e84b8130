//! Bytes on their way.
//!
//! [`transport`] and [`packing`] are what lies over a client's socket; [`received`] is what a
//! client has sent, [`message`] finds the command at its front, and [`text_reading`] has its long
//! texts classified; [`outgoing`] is what a backend is sent. [`lent`] is what a group lends for a
//! moment, and [`room`] counts unfinished commands. Nothing here knows a client or a backend.

pub(crate) mod lent;
pub(crate) mod message;
pub(crate) mod outgoing;
pub(crate) mod packing;
pub(crate) mod received;
pub(crate) mod room;
pub(crate) mod text_reading;
pub(crate) mod text_workers;
pub(crate) mod transport;
