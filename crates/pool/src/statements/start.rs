//! Start: a command runs on its client's backend, on another one, or later.
//!
//! A backend is brought into its client's session first ([`begin`]): by what goes in front of the
//! statement, by a reset, or by what is waited for.

use crate::backend::session_reset;
use crate::client::{Handled, leaving};
use crate::cluster::routing;
use crate::errors::reasons::Refusal;
use crate::group::parts::Parts;
use crate::group::tasks::Task;
use crate::group::tokens::{BackendId, ClientId};
use crate::limits::rules::admit;
use crate::scheduler::checkout;
use crate::scheduler::queueing::silence;
use crate::statements::{ahead, sending};
use reactor::Net;
use session::send_mode::Prefix;
use session::statement::Statement;

/// Refuses a statement that a rule is against, and counts one that a rule limits. `None`: it
/// goes on.
pub(crate) fn keep_rules<N: Net>(
    parts: &mut Parts<N>,
    key: ClientId,
    digest: u64,
) -> Option<Handled> {
    let client = parts.clients.get_mut(key)?;
    match admit(&parts.known.rules, digest, parts.net.now()) {
        Ok(slot) => {
            client.session.effects.set_slot(slot);
            None
        }
        Err(refusal) => {
            client.session.statement.digest = digest;
            Some(parts.answers().refuse_counted(key, &refusal))
        }
    }
}

/// Runs a command on the client's backend, on another one, or later.
pub(crate) fn start<N: Net>(
    parts: &mut Parts<N>,
    key: ClientId,
    message: &[u8],
    statement: Statement,
) -> Handled {
    let now = parts.net.now();
    let silent_for = (parts.shared.upstream).silent_for(now, parts.settings.server_down_fail);
    let Some(client) = parts.clients.get_mut(key) else {
        return Handled::Used;
    };
    if client.ended.take_interruption() {
        client.session.last.lose_conditions();
        parts.answers().refuse(key, &Refusal::Interrupted);
        return Handled::Used;
    }
    client.session.statement = statement;
    if parts.shared.cluster.is_some()
        && !statement.place.is_elsewhere()
        && let Some(handled) = routing::leave_for_writer(parts, key)
    {
        return handled;
    }
    let Some(client) = parts.clients.get_mut(key) else {
        return Handled::Used;
    };
    let on_reader = parts.backend_pools.pools[client.pool as usize]
        .home
        .is_some();
    if let Some(backend) = client.backend() {
        if let Some(lasted) = silent_for.filter(|_| !on_reader) {
            client.session.pins.forget_plan();
            parts.answers().refuse_counted(key, &silence(lasted));
            return Handled::Used;
        }
        if parts.matching().waits_for_read_back(key) {
            return parts.waiters().wait_outside(key);
        }
        if parts.matching().waits_with_backend(key) {
            return checkout::wait_in_queue(parts, key, message.len());
        }
        return begin(parts, key, backend, message);
    }
    if parts.work.drain.is_ending() {
        leaving::refuse_and_leave(parts, key, &Refusal::Draining);
        return Handled::Used;
    }
    if let Some(backend) = checkout::acquire(parts, key) {
        return begin(parts, key, backend, message);
    }
    if (on_reader || !parts.shared.upstream.is_silent())
        && let Some(backend) = parts.matching().place_to_pipeline(key, message)
        && !parts.matching().is_ahead()
    {
        sending::send_statement(parts, key, backend, message, &Prefix::CannotFail);
        return Handled::Used;
    }
    checkout::wait_in_queue(parts, key, message.len())
}

/// Sends a command to the client's backend, once that stands in the client's session state.
pub(crate) fn begin<N: Net>(
    parts: &mut Parts<N>,
    key: ClientId,
    backend_id: BackendId,
    message: &[u8],
) -> Handled {
    let (Some(client), Some(backend)) = (
        parts.clients.get_mut(key),
        parts.backends.get_mut(backend_id),
    ) else {
        return Handled::Used;
    };
    if client.will_keep()
        && let Some(refusal) = backend.keep(&parts.backend_pools, false)
    {
        client.session.pins.forget_plan();
        parts.work.tasks.add(Task::Settle(backend_id));
        return parts.answers().refuse_counted(key, &refusal);
    }
    let has_prepared = client.session.prepared.is_some();
    let facts = (&parts.known.defaults, &parts.shared.server);
    if !client.session.fits_at_once(&backend.session)
        && let Some(unfit) = (client.session).unfit_session(&backend.session, key, facts)
        && let Some(handled) =
            session_reset::reset_session(parts, (key, backend_id), unfit, message.len())
    {
        return handled;
    }
    if has_prepared && let Some(handled) = ahead::prepare_ahead(parts, key, backend_id, message) {
        return handled;
    }
    let mut out = std::mem::take(&mut parts.work.lent.out);
    out.clear();
    if parts.shared.cluster.is_some() {
        parts.readers().put_catch_up(key, backend_id, &mut out);
    }
    let text_here_max = parts.shared.lengths.text_here;
    let pair = parts.pair(key, backend_id);
    let prefix = pair.map(|mut pair| pair.put_prefix(message, text_here_max, &mut out));
    let result = match prefix {
        None => Handled::Used,
        Some(Prefix::Waited) => sending::send_restore(parts, key, backend_id, &out),
        Some(prefix) => {
            parts.backend_writer().send(backend_id, &out);
            sending::send_statement(parts, key, backend_id, message, &prefix);
            Handled::Used
        }
    };
    parts.work.lent.out = out;
    result
}
