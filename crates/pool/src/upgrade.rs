//! What two processes of the pool say to each other while one takes the place of the other.
//!
//! These are values and bytes: a client as a record (`record.rs`), messages (`frames.rs`), and the
//! socket that carries them with descriptors (`channel.rs`). `group/clients/moving.rs` makes
//! clients of records and records of clients; `operations/upgrade.rs` and its folder say what comes
//! after what.

pub(crate) mod aside;
pub(crate) mod channel;
pub(crate) mod frames;
pub(crate) mod record;
