//! Checkout: which client gets which backend.
//!
//! A statement gets an idle backend of its client's pool, or waits in the pool's queue, first come,
//! first served; a backend that becomes free goes to the front of the queue in the same turn
//! ([`crate::scheduler::checkin`]).
//!
//! Invariants: an idle backend and a waiting client of the same pool do not exist side by side
//! (unless no command can bring that backend into the client's state; then it is replaced). The two
//! name each other by [`crate::backend::binding`].

use crate::backend::{BackendState, LastClient};
use crate::client::Handled;
use crate::group::parts::Parts;
use crate::group::tokens::{BackendId, ClientId};
use crate::scheduler::account_slots::RunPlace;
use crate::scheduler::priority::Priority;
use crate::scheduler::waiters::Entered;
use reactor::Net;

/// Binds an idle backend to a client that wants to run something now.
pub(crate) fn acquire<N: Net>(parts: &mut Parts<N>, key: ClientId) -> Option<BackendId> {
    let client = parts.clients.get(key)?;
    let mut pool = client.pool as usize;
    let priority = client.place.priority;
    // A pool of older privileges that has no backend is left for that of now. Who waits in its
    // queue is served in order first.
    if parts.backend_pools.pools[pool].count == 0
        && parts.members().outdated(key).is_some()
        && parts.matching().front_of(pool).is_none()
    {
        pool = parts.members().move_on(key, pool);
    }
    let mut matching = parts.matching();
    let goes_first = matching.goes_before_slow(key);
    let is_tried = !goes_first && matching.may_try(key);
    let is_held_back = priority != Some(Priority::High)
        && (matching.is_reserve_reached(pool) || matching.is_ahead())
        && !(goes_first || is_tried);
    if is_held_back
        || matching.is_held_back(key)
        || !(goes_first || is_tried) && matching.waits_for_alike(key)
        || !matching.may_run(pool)
        || matching.front_of(pool).is_some()
    {
        return None;
    }
    let found = matching.pick_idle(pool, key)?;
    let running = parts.backend_pools.pools[pool].run()?;
    if is_tried {
        (parts.client_side.slow_readers).start_trial(key, parts.net.now());
    }
    let now = parts.net.now();
    (parts.client_side.waiting_count).place_of(parts.clients.get_mut(key)?, now);
    bind(parts, key, found, running).then_some(found)
}

/// Binds a client and an idle backend, with its place among what runs on its server. `false` where
/// one of them is not there, or not idle.
pub(crate) fn bind<N: Net>(
    parts: &mut Parts<N>,
    key: ClientId,
    backend_id: BackendId,
    running: RunPlace,
) -> bool {
    let now = parts.net.now();
    let is_long = parts.matching().is_long(key);
    let Some(backend) = parts.backends.get_mut(backend_id) else {
        return false;
    };
    let Some(client) = parts.clients.get_mut(key) else {
        return false;
    };
    if !backend.change_state(BackendState::CheckedOut, now) {
        return false;
    }
    parts.backend_pools.pools[backend.pool]
        .idle
        .retain(|&idle| idle != backend_id);
    // A free slot that stands in for the reserve is to be seen as such.
    (parts.backend_pools).note_unused(&parts.shared.budget, parts.index);
    let last = backend.begin_checkout(running);
    if is_long {
        parts.client_side.slow_readers.start_long(backend_id, key);
    } else if !client.session.statement.has_short_reply()
        && parts.shared.budget.reserved(parts.index) > 0
    {
        (parts.client_side.slow_readers).start_unknown(client.session.statement.digest, now);
    }
    client.bind(backend, (key, backend_id));
    client.pool = u32::try_from(backend.pool).unwrap_or(client.pool);
    let own = LastClient {
        client: key,
        sent: client.session.last.number,
    };
    if last != Some(own) {
        client.session.last.moved();
    }
    true
}

/// Puts a client whose command of `len` bytes is at the front of its input in its queue, or
/// says why it cannot wait there.
pub(crate) fn wait_in_queue<N: Net>(parts: &mut Parts<N>, key: ClientId, len: usize) -> Handled {
    let matching = parts.matching();
    let goes_before_slow = matching.goes_before_slow(key);
    let is_tried = !goes_before_slow && matching.may_try(key);
    if is_tried {
        (parts.client_side.slow_readers).start_trial(key, parts.net.now());
    }
    match (parts.waiters()).enter(key, len, goes_before_slow || is_tried) {
        Entered::Waits => Handled::Kept,
        Entered::Gone => Handled::Used,
        Entered::Refused(refusal) => {
            parts.answers().refuse(key, &refusal);
            Handled::Used
        }
    }
}
