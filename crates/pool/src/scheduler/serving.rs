//! Serving: who waits gets a backend, or is pipelined, when its turn has come.
//!
//! [`crate::scheduler::matching`] says whose turn it is. Each step serves one client, and leaves
//! the next to a task.

use crate::auth::logins;
use crate::client::ClientState;
use crate::group::parts::Parts;
use crate::group::tasks::Task;
use crate::group::tokens::{BackendId, ClientId};
use crate::scheduler::account_slots::RunPlace;
use crate::scheduler::checkout;
use crate::statements::start;
use reactor::Net;
use session::send_mode::Prefix;

/// Gives an idle backend to the client whose turn it is, and leaves it to the next step to go
/// on. Each pool goes in its order, the pool of the account first that uses the fewest. Who has
/// a backend can go on even when there is none for those in front.
pub(crate) fn serve<N: Net>(parts: &mut Parts<N>) {
    let mut matching = parts.matching();
    if !matching.may_run_any() || matching.yields() {
        return;
    }
    let Some(pool) = matching.fairest_pool() else {
        return;
    };
    let Some((waiting, backend)) = matching.next_to_serve(pool) else {
        return;
    };
    let running = match backend {
        Some(_) => parts.backend_pools.pools[pool].run(),
        None => Some(None),
    };
    let Some(running) = running else {
        return;
    };
    parts.waiters().pop(pool, waiting);
    (parts.shared.scheduling.fronts).gets_on(parts.index, parts.net.now());
    match backend {
        Some(backend) => {
            grant(parts, waiting.client, backend, running);
            parts.work.tasks.add(Task::Pipeline(backend));
        }
        None => {
            parts.waiters().forget(waiting.client);
            parts.return_to_idle(waiting.client);
        }
    }
    parts.work.tasks.add(Task::Serve);
}

/// Serves every pool; statements that have run for long no longer count.
pub(crate) fn serve_all<N: Net>(parts: &mut Parts<N>) {
    if parts.matching().lacks_running() {
        let (now, mut wanting) = (parts.net.now(), Vec::new());
        let running = &mut parts.server_side.running;
        let stalled =
            running.discount_stalled(&mut parts.backends, &parts.settings, now, &mut wanting);
        parts.observed.counts.stalled += stalled;
        parts.work.turn_output.wake(wanting.into_iter());
    }
    serve(parts);
}

/// Lets those at the front of the queue be pipelined, as long as they may: on a backend that
/// has begun or ended a statement, or behind those of their own session.
pub(crate) fn take_followers<N: Net>(parts: &mut Parts<N>, backend_id: BackendId) {
    while !parts.client_side.waiting_count.is_empty()
        && let Some(backend) = parts.backends.get(backend_id)
        && backend.takes_followers()
        && backend.flight.len() < parts.settings.pipeline_max
        && let pool = backend.pool
        && !parts.matching().yields()
        && !(parts.backend_pools).owes_next(&parts.shared.budget, parts.index)
        && let mut matching = parts.matching()
        && let Some(waiting) = matching.front_to_serve(pool)
        && let Some(place) = matching.place_for_waiting(waiting.client, backend_id)
    {
        parts.waiters().pop(pool, waiting);
        (parts.shared.scheduling.fronts).gets_on(parts.index, parts.net.now());
        parts.waiters().forget(waiting.client);
        let Some(client) = parts.clients.get_mut(waiting.client) else {
            return;
        };
        let Some(input) = client.input.take() else {
            return parts.clients.close_later(waiting.client);
        };
        let len = input.command_len();
        start::send_statement(
            parts,
            waiting.client,
            place,
            &input[..len],
            &Prefix::CannotFail,
        );
        let Some(client) = parts.clients.get_mut(waiting.client) else {
            return;
        };
        if len < input.len() {
            client.input.put(Some(input));
            client.drop_input(len);
        } else {
            client.place.give_up();
            parts.work.lent.inputs.put(input);
        }
    }
}

/// Checks a backend out to a waiting client whose turn has come, and goes on with its command.
fn grant<N: Net>(parts: &mut Parts<N>, key: ClientId, backend: BackendId, running: RunPlace) {
    parts.waiters().forget(key);
    if !checkout::bind(parts, key, backend, running) {
        return parts.closer().retire(backend);
    }
    let now = parts.net.now();
    let Some(client) = parts.clients.get_mut(key) else {
        return;
    };
    if client.state() == ClientState::Opening {
        client.place.give_up();
        if logins::open_on(parts, key, backend) {
            parts.work.tasks.add(Task::Read(key));
            parts.work.tasks.add(Task::Settle(backend));
        }
        return;
    }
    if !client.change_state(ClientState::Idle, now) {
        return parts.clients.close_later(key);
    }
    parts.work.tasks.add(Task::Read(key));
    parts.work.tasks.add(Task::Settle(backend));
}
