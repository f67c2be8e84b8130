//! Sharing: how a group comes by its backends' slots, and how it helps others with its own.
//!
//! `budget.rs` has the rules; this is when a group follows them. It takes a slot when a dial
//! begins, and gives it back when a backend is closed. While somebody in its queues could be served
//! by one more backend and there is no slot, it wants one
//! ([`crate::scheduler::budget::Budget::note_lack`]); groups with idle backends are told by a
//! message, busy ones see it when a backend is checked in. A group lends what has been idle for a
//! while, and at once what it owes, unless that is reserved; a backend that is checked out is never
//! taken away.
//!
//! Invariant: a want stands only while somebody waits for it, as of the end of the last turn.

use crate::group::parts::Parts;
use reactor::Net;

/// Closes idle backends that others need more.
pub(crate) fn lend<N: Net>(parts: &mut Parts<N>) {
    while let Some((at, key)) = parts.matching().next_lent()
        && at <= parts.net.now()
    {
        parts.observed.counts.lent += 1;
        parts.closer().retire(key);
    }
}
