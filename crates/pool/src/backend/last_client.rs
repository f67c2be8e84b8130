//! The client that a backend has served last: it may come back for what its statement left there.
//!
//! The mechanism: the backend notes it at checkin, with the number of its statements; whoever else
//! is bound to the backend replaces it. Who goes back, and for what, decides `scheduler/matching`.

use crate::group::tokens::ClientId;

/// The client that a backend has served last. Once that has sent another statement elsewhere, the
/// backend knows nothing of it that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LastClient {
    pub(crate) client: ClientId,
    /// Number of statements that it had sent.
    pub(crate) sent: u32,
}
