//! Live upgrade: another process of the pool takes the place of this one.
//!
//! [`record`] makes a client into bytes and back, [`arrival`] takes one in; [`migrating`] has
//! backends that migrate with their clients; [`process`] says what comes after what, on both sides.
//! The crate [`handover`] carries messages and descriptors.

pub(crate) mod arrival;
pub(crate) mod migrating;
pub(crate) mod process;
pub(crate) mod record;
