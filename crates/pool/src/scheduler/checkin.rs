//! Checkin: a backend is given back, and goes to the next who waits.
//!
//! The problem: a command may come while something is read back on its client's last backend
//! ([`crate::scheduler::waiters`] keeps its place). The mechanism: when the backend is checked in,
//! the command goes to the queue of [`crate::scheduler::checkout`].
//!
//! Invariant: nobody passes those who wait because its last backend is not checked in yet.

use crate::backend::{BackendState, LastClient, Purpose, Reports, abort, dialling};
use crate::client::{ClientState, Handled};
use crate::group::parts::Parts;
use crate::group::tasks::Task;
use crate::group::tokens::{BackendId, ClientId};
use crate::scheduler::checkout;
use crate::statements::answered_locally::is_answered_here;
use reactor::Net;
use wire::command::Command;
use wire::packet::HEADER_LEN;

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
        backend.note_accepted(client.as_deref().map(|client| &client.session));
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
            backend.session.note_last_client(LastClient {
                client: owner,
                sent: client.session.last.number,
            });
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
        if checkout::wait_in_queue(parts, key, len) == Handled::Kept {
            return;
        }
        if let Some(client) = parts.clients.get_mut(key) {
            client.drop_input(len);
        }
    }
    parts.return_to_idle(key);
}
