//! Pipelined statements that are aborted.
//!
//! The one before them has changed their session, or their backend is closed. They run again, or
//! their clients lose what they kept there ([`crate::client::lost_backend`]).

use crate::backend::Aborted;
use crate::client::lost_backend::{Loss, LossCause};
use crate::client::{ClientState, lost_backend};
use crate::group::parts::Parts;
use crate::group::tokens::{BackendId, ClientId};
use reactor::Net;
use session::transaction::Doubt;

/// Reason why the rest of a reply does not come. Who is pipelined has no transaction, and keeps
/// nothing.
const ABORTED: Loss<'_> = Loss {
    why: "a statement that was sent behind this one had its connection closed",
    in_transaction: false,
    doubt: Doubt::None,
    served: false,
    hides_changes: false,
    amid_packet: true,
    cause: LossCause::Ended,
};

/// Reason why a client loses the session that it keeps on its backend.
const CHANGED: Loss<'_> = Loss {
    why: "a statement of another client that had begun there has changed the session",
    in_transaction: false,
    doubt: Doubt::None,
    served: true,
    hides_changes: false,
    amid_packet: false,
    cause: LossCause::Ended,
};

/// Aborts the statements pipelined behind one that has changed their session, or whose backend
/// is closed: what they would be answered may be wrong, or nothing. The answers are dropped,
/// and their statements, plain reads of which they have seen nothing, run again in order, each
/// of them with nobody beside it. The backend is `owner`'s, who is none of them. Where it is
/// nobody's, a client that kept something on the backend has lost it.
pub(crate) fn abort_followers<N: Net>(
    parts: &mut Parts<N>,
    backend_id: BackendId,
    owner: Option<ClientId>,
) {
    let Some(backend) = parts.backends.get_mut(backend_id) else {
        return;
    };
    backend.flight.close_pipeline();
    if owner.is_some() {
        // What their statements do to the session, which was not theirs, is not known.
        backend.reuse.end_with_client();
    }
    let changed = Loss {
        in_transaction: backend.session.in_transaction(),
        doubt: backend.session.transaction.doubt(),
        hides_changes: (backend.session.reports).hides_changes(backend.session.in_transaction()),
        ..CHANGED
    };
    let keeper = backend.client().filter(|_| owner.is_none());
    let followers = backend.flight.abort_followers(owner);
    let keeper = keeper.filter(|keeper| followers.iter().all(|(follower, _)| follower != keeper));
    let now = parts.net.now();
    backend.flight.note_left(now);
    backend.binding.hand_over(owner);
    for (follower, aborted) in followers {
        match aborted {
            Aborted::RunsAgain(command) => run_again(parts, follower, &command),
            Aborted::HasBegun => lost_backend::backend_lost(parts, follower, ABORTED),
            Aborted::OwnsSession => lost_backend::backend_lost(parts, follower, changed),
        }
    }
    let Some((key, client)) = keeper.and_then(|key| Some((key, parts.clients.get(key)?))) else {
        return;
    };
    // Who keeps nothing there goes on without it.
    let is_idle = client.state() == ClientState::Idle;
    if is_idle && !client.session.loses_with_backend(changed.in_transaction) {
        parts.clients.unbind(key, &mut parts.backends);
    } else {
        lost_backend::backend_lost(parts, key, changed);
    }
}

/// Runs a statement of a client once more, as if it had come just now.
pub(crate) fn run_again<N: Net>(parts: &mut Parts<N>, key: ClientId, command: &[u8]) {
    let Some((client, _)) = parts.clients.unbind(key, &mut parts.backends) else {
        return;
    };
    client.command.run_apart();
    client.input.put_front(command);
    parts.observed.counts.pipelined_again += 1;
    parts.return_to_idle(key);
}
