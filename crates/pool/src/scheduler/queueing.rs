//! Queueing: which queue a command waits in, within which limits, and how its wait ends.
//!
//! A command that gets no backend at once waits in a queue of its client's pool
//! ([`crate::scheduler::waiters`]). A wait is bounded four ways: by the statements that wait in the
//! group, by those of the client's user, by the bytes of their commands, and by time. Who meets a
//! bound gets an error of its own number at once; nothing was executed, so it may be tried again.
//!
//! A client with an open transaction needs no queue, because it has a backend; only under
//! `high_prio_mode = "none"` it waits like everybody else
//! ([`crate::scheduler::matching::Matching::waits_with_backend`]). It waits at the concurrency
//! limit, in which stalled statements do not count. None of the bounds holds for it: the others may
//! wait for the locks of its transaction, so it has to get on, and there is at most one such client
//! for each backend.
//!
//! Invariant: who waits in a queue is counted ([`crate::scheduler::waiting_count`]), and who is
//! counted waits in one.

use crate::client::{ClientState, leaving};
use crate::errors::reasons::Refusal;
use crate::group::parts::Parts;
use crate::group::tokens::ClientId;
use crate::scheduler::matching::turns::REFUSABLE;
use reactor::Net;
use std::time::Duration;

/// The refusal of statements that were not sent to a silent server.
pub(crate) fn silence(lasted: Duration) -> Refusal {
    Refusal::ServerDown {
        lasted,
        why: "it does not answer on connections that stand".into(),
    }
}

/// Refuses the waiting clients of a pool without a usable backend while the server is away.
pub(crate) fn refuse_while_down<N: Net>(parts: &mut Parts<N>, pool: usize, lasted: Duration) {
    let entry = &parts.backend_pools.pools[pool];
    if entry.home.is_some() {
        return;
    }
    if parts.shared.upstream.is_silent() {
        refuse_waiting(parts, pool, &silence(lasted));
        return;
    }
    if entry.count > entry.dialling {
        return;
    }
    let why = entry.last_failure.clone();
    // Its return would not help them.
    if let Some(why) = entry.key.outdated_password(&parts.shared.logins.accounts) {
        end_waiting(parts, pool, &why);
        return;
    }
    let why = why.unwrap_or_else(|| "the connections to it were lost".into());
    if refuse_waiting(parts, pool, &Refusal::ServerDown { lasted, why }) {
        parts.server_side.refused_pool = Some(pool);
    }
}

/// Refuses those who have waited too long for a backend.
pub(crate) fn expire<N: Net>(parts: &mut Parts<N>) {
    let now = parts.net.now();
    let longest = parts.settings.wait_max;
    let down = (parts.shared.upstream).down_for(now, parts.settings.server_down_fail);
    for pool in 0..parts.backend_pools.pools.len() {
        if let Some(lasted) = down {
            refuse_while_down(parts, pool, lasted);
        }
        for queue in REFUSABLE {
            while let Some(front) = parts.matching().front_in(pool, queue) {
                let waited = now.since(front.since);
                if waited < longest {
                    break;
                }
                parts.backend_pools.pools[pool].queues.pop(queue);
                let mut detail = parts.survey().what_backends_do(pool);
                if parts.backend_pools.pools[pool].slots.is_at_max() {
                    detail.push_str("; its account may have no more (account_backends_max)");
                }
                if let Some(why) = parts.shared.upstream.no_writer() {
                    detail.push_str("; no server is known to take writes: ");
                    detail.push_str(&why);
                }
                if parts.backend_pools.pools[pool].is_server_full() {
                    detail.push_str("; its server takes no more (backends_max of [[server]])");
                }
                if parts.backend_pools.pools[pool].is_running_full() {
                    detail.push_str("; as much runs there as may (running_max of [[server]])");
                }
                let refusal = Refusal::WaitedTooLong {
                    queue,
                    ahead: parts.backend_pools.pools[pool].queues.ahead_of(queue),
                    waited,
                    detail,
                };
                give_up(parts, front.client, &refusal);
            }
        }
    }
}

/// Takes a waiting client out of its queue with an error instead of a backend.
pub(crate) fn give_up<N: Net>(parts: &mut Parts<N>, key: ClientId, refusal: &Refusal) {
    parts.waiters().forget(key);
    parts.answers().refuse_counted(key, refusal);
    let Some(client) = parts.clients.get_mut(key) else {
        return;
    };
    client.session.pins.forget_plan();
    if client.state() == ClientState::Opening {
        parts.clients.note_end(key, refusal.name());
        return leaving::leave(parts, key);
    }
    let len = client.input.command_len();
    client.drop_input(len);
    parts.return_to_idle(key);
}

/// Gives every client of a pool that waits for a backend an error. True if there were any.
pub(crate) fn refuse_waiting<N: Net>(parts: &mut Parts<N>, pool: usize, refusal: &Refusal) -> bool {
    let mut any = false;
    while let Some(client) = parts.matching().take_refusable(pool) {
        any = true;
        give_up(parts, client, refusal);
    }
    any
}

/// Closes every client of a pool that waits for a backend, where none can be had any more.
pub(crate) fn end_waiting<N: Net>(parts: &mut Parts<N>, pool: usize, why: &str) {
    while let Some(client) = parts.matching().take_refusable(pool) {
        parts.waiters().forget(client);
        end_client(parts, client, why);
    }
}

/// Closes a client that can run no statement any more. One that has run some is told so by an
/// error for which drivers connect again, some without its words. One that has run none would
/// meet the same again: it is told the words.
pub(crate) fn end_client<N: Net>(parts: &mut Parts<N>, key: ClientId, why: &str) {
    let has_run = (parts.clients.get(key)).is_some_and(|c| c.session.last.number != 0);
    let refusal = match has_run {
        true => Refusal::NoBackendLogin(why.into()),
        false => Refusal::BackendLogin(why.into()),
    };
    leaving::refuse_and_leave(parts, key, &refusal);
}
