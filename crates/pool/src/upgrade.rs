//! Live upgrade: another process of the pool takes the place of this one.
//!
//! [`departures`] are who goes next, [`record`] makes a client into bytes and back, [`arrival`] and
//! [`taking_in`] take one in; [`migrating`] has backends that migrate with their clients;
//! [`process`] says what comes after what, on both sides. The crate [`handover`] carries messages
//! and descriptors.

pub(crate) mod arrival;
pub(crate) mod departing;
pub(crate) mod departures;
pub(crate) mod migrating;
pub(crate) mod process;
pub(crate) mod record;
pub(crate) mod taking_in;
