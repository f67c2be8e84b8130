//! Use of one user at this moment, in all groups: counted by whoever takes it and gives it back.
//!
//! Invariant: it belongs to the user's name, and outlives a change of the user's settings.

use session::own_writes::OwnWrites;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;

/// Use of one user.
#[derive(Debug, Default)]
pub(crate) struct UserUse {
    /// Clients that have logged in.
    pub(crate) clients: AtomicUsize,
    /// Statements that wait; counted for users with a limit only.
    pub(crate) waiting: AtomicUsize,
    /// Bytes of unfinished and waiting commands; counted for users with a limit only.
    pub(crate) input_bytes: AtomicUsize,
    /// Backends that slow readers hold; counted for users with a limit only.
    pub(crate) slow: AtomicUsize,
    /// Writes of all its clients, where reads of each are to see them.
    pub(crate) writes: Mutex<OwnWrites>,
}
