//! Read-back for the client that a backend served last, as a value.
//!
//! [`crate::group::session_state::lazy_readback`] decides when it is asked; the backend holds
//! [`LazyReadback`] while the answers are on their way.

use crate::group::tokens::ClientId;
use session::last_statement::Questions;

/// The client that a backend has served last. Once that has sent another statement elsewhere, the
/// backend knows nothing of it that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LastClient {
    pub(crate) client: ClientId,
    /// Number of statements that it had sent.
    pub(crate) sent: u32,
}

/// Read-back from a backend, with the client that it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LazyReadback {
    pub(crate) client: ClientId,
    /// Number of statements that the client had sent.
    pub(crate) sent: u32,
    pub(crate) questions: Questions,
    /// FOUND_ROWS() there before, and for the client, where that may have stayed.
    pub(crate) unsettled: Option<(u64, u64)>,
    /// A condition could not be read.
    pub(crate) failed: bool,
}
