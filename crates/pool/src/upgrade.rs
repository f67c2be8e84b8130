//! Live upgrade: another process of the pool takes the place of this one.
//!
//! [`record`] makes a client into bytes and back, [`arrival`] takes one in; `frames.rs` and
//! [`channel`] carry messages and descriptors; [`migrating`] has backends that migrate with their
//! clients; [`process`] says what comes after what, on both sides.

pub(crate) mod arrival;
pub(crate) mod channel;
pub(crate) mod frames;
pub(crate) mod migrating;
pub(crate) mod process;
pub(crate) mod record;
