//! What a backend is being asked for the client that it served last, as a value.
//!
//! [`crate::group::session_state::lazy_readback`] decides when it is asked; the backend holds
//! [`LazyReadback`] while the answers are on their way.

use reactor::Key;
use session::last_statement::Questions;

/// The client that a backend has served last. Once that has sent another statement elsewhere, the
/// backend knows nothing of it that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LastClient {
    pub(crate) client: Key,
    /// How many statements it had sent.
    pub(crate) sent: u32,
}

/// What is being asked of a backend, and for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LazyReadback {
    pub(crate) client: Key,
    /// How many statements the client had sent.
    pub(crate) sent: u32,
    pub(crate) questions: Questions,
    /// What FOUND_ROWS() was there before, and for the client, where that may have stayed.
    pub(crate) unsettled: Option<(u64, u64)>,
    /// A condition could not be read.
    pub(crate) failed: bool,
}
