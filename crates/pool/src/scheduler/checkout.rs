//! Checkout and checkin: which client gets which backend, and who gets that next.
//!
//! A statement gets an idle backend of its client's pool, or waits in the pool's queue, first come,
//! first served; a backend that becomes free goes to the front of the queue in the same turn. A
//! command may come while something is read back on its client's last backend
//! ([`crate::scheduler::waiters`] keeps its place): it goes to the queue when that is checked in.
//!
//! Invariants: an idle backend and a waiting client of the same pool do not exist side by side
//! (unless no command can bring that backend into the client's state; then it is replaced). The two
//! name each other by [`crate::backend::binding`]. A backend not checked in yet lets nobody pass.

use crate::backend::{BackendState, Purpose, Reports, abort, dialling};
use crate::client::{ClientState, Handled};
use crate::group::parts::Parts;
use crate::group::tasks::Task;
use crate::group::tokens::{BackendId, ClientId};
use crate::scheduler::account_slots::RunPlace;
use crate::scheduler::priority::Priority;
use crate::scheduler::waiters::Entered;
use crate::statements::answered_locally::is_answered_here;
use reactor::Net;
use wire::command::Command;
use wire::packet::HEADER_LEN;

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
    if last != Some(client.session.as_last(key)) {
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

/// Checks in the backend of a client that holds nothing there, and serves the next.
pub(crate) fn release<N: Net>(parts: &mut Parts<N>, backend_id: BackendId) {
    let now = parts.net.now();
    parts.client_side.slow_readers.checked_in(backend_id);
    let Some(backend) = parts.backends.get_mut(backend_id) else {
        return;
    };
    let owner = backend.client();
    let client = owner.and_then(|owner| parts.clients.get_mut(owner));
    if !backend.is_reader() {
        (backend.session).note_accepted(client.as_deref().map(|client| &client.session));
    }
    if backend.flight.is_empty() {
        // It may have run nothing.
        let wanting = parts.server_side.running.ends(backend);
        parts.work.turn_output.wake(wanting.into_iter());
    }
    let mut waits = false;
    match (owner, client) {
        (Some(owner), Some(client)) => {
            client.unbind(owner, Some(backend));
            backend
                .session
                .note_last_client(client.session.as_last(owner));
            waits = client.state() == ClientState::Waiting && !client.place.is_in_queue();
        }
        (Some(owner), None) => backend.binding.forget(owner),
        (None, _) => {}
    }
    if !backend.reuse.is_for_others() || !backend.change_state(BackendState::Idle, now) {
        parts.closer().retire(backend_id);
    }
    if let Some(owner) = owner {
        if parts.shared.cluster.is_some() {
            parts.readers().go_home(owner);
        }
        if waits {
            line_up(parts, owner);
        }
    }
    offer(parts, backend_id);
}

/// Puts an idle backend at the disposal of those who wait.
pub(crate) fn offer<N: Net>(parts: &mut Parts<N>, backend_id: BackendId) {
    let Some(backend) = parts.backends.get(backend_id) else {
        return;
    };
    let pool = backend.pool;
    let mut matching = parts.matching();
    let front = matching.front_of(pool);
    let since = front.map(|waiting| waiting.since);
    if !matching.waiting_count.is_empty()
        && let Some(needy) =
            (matching.starved_pool(pool, since)).or_else(|| matching.poorer_pool(pool))
    {
        return dialling::replace(parts, backend_id, needy);
    }
    if (parts.backend_pools).owes_next(&parts.shared.budget, parts.index) {
        parts.observed.counts.lent += 1;
        return parts.closer().retire(backend_id);
    }
    let place = (parts.index, pool);
    let limits = parts.backend_pools.pools[pool].limits();
    let owed_at = limits.filter_map(|slots| slots.owed_at(place, since)).min();
    if owed_at.is_some_and(|at| at <= parts.net.now()) {
        parts.observed.counts.lent += 1;
        return parts.closer().retire(backend_id);
    }
    if front.is_none() && parts.work.drain.is_ending() {
        return parts.closer().retire(backend_id);
    }
    parts.backend_pools.pools[pool].idle.push(backend_id);
    if front.is_some() {
        parts.work.tasks.add(Task::Serve);
    }
    parts.work.tasks.add(Task::Spare(pool));
}

/// Rolls back, checks in or closes the backend of a client that has gone, or has reset its
/// session; its last statement runs on to its end.
pub(crate) fn orphan<N: Net>(
    parts: &mut Parts<N>,
    key: ClientId,
    backend_id: BackendId,
    pinned: bool,
) {
    let now = parts.net.now();
    let Some(backend) = parts.backends.get_mut(backend_id) else {
        return;
    };
    if !pinned && let Some(out) = backend.roll_back(key, now) {
        parts.observed.counts.rolled_back += 1;
        return parts.backend_writer().ask(backend_id, &out);
    }
    let clean = !pinned
        && !backend.session.in_transaction()
        && backend.session.reports == Reports::Complete;
    let mut flight = backend.flight.iter();
    let only_statements = flight.all(|command| command.purpose == Purpose::Statement);
    if !clean || !only_statements {
        abort::abort_followers(parts, backend_id, Some(key));
        return parts.closer().retire(backend_id);
    }
    backend.binding.forget(key);
    if backend.flight.is_empty() {
        backend.session.forget_insert_id();
        return release(parts, backend_id);
    }
    // Its last statement runs on: it ends as it would on a connection of the client's own, and
    // then the backend is looked at again.
    for command in backend.flight.iter_mut() {
        if command.owner == Some(key) {
            command.owner = None;
        }
    }
    backend.flight.note_left(now);
    // Its reading may have stopped for the client's sake, and no event will start it again.
    parts.work.bulk.read_at_once(backend_id);
}

/// Queues a command that came before its client's backend was checked in, if it needs a
/// backend.
pub(crate) fn line_up<N: Net>(parts: &mut Parts<N>, key: ClientId) {
    let Some(client) = parts.clients.get(key) else {
        return;
    };
    let byte = (client.input.bytes().as_ref()).and_then(|input| input.get(HEADER_LEN));
    let command = byte.and_then(|&byte| Command::from_byte(byte));
    if !command.is_some_and(is_answered_here)
        && !(parts.reading(key)).is_some_and(|reading| reading.leaves_writer())
        && !(parts.alone(key)).is_some_and(|alone| alone.may_need_no_backend())
    {
        let len = client.input.command_len();
        if wait_in_queue(parts, key, len) == Handled::Kept {
            return;
        }
        if let Some(client) = parts.clients.get_mut(key) {
            client.drop_input(len);
        }
    }
    parts.return_to_idle(key);
}
