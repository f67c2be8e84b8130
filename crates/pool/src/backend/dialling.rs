//! Dialling: connections are opened while somebody waits, every limit allows and dialling does not
//! fail.
//!
//! A pool that has waiting clients and no backend at all takes one from another pool, oldest
//! waiter first, so that no account can shut out another. Dialling that fails backs off, and those
//! who wait for it wait on, within their limit, unless the server refuses the account itself and no
//! backend of before gets free by the end of a statement.

use crate::backend::pools::DialEnd;
use crate::backend::{Backend, Endpoint};
use crate::cluster::leaving_readers;
use crate::errors::reasons::Refusal;
use crate::group::parts::Parts;
use crate::group::tokens::BackendId;
use crate::observe::log::{Event, note};
use crate::scheduler::account_slots::AccountSlots;
use crate::scheduler::queueing;
use reactor::{Address, Net, Time};
use session::state::Session;
use std::sync::Arc;

/// Opens connections for those who wait, as far as every limit allows.
pub(crate) fn dial_where_wanted<N: Net>(parts: &mut Parts<N>) {
    let mut lacks = false;
    if !parts.client_side.waiting_count.is_empty() && parts.matching().may_run_any() {
        let mut order = std::mem::take(&mut parts.backend_pools.order);
        parts.matching().put_fair_order(&mut order);
        for &pool in &order {
            lacks |= parts.matching().may_run(pool) && dial_for(parts, pool);
        }
        parts.backend_pools.order = order;
    }
    if parts.matching().note_account_wants() {
        let (groups, index) = (parts.shared.groups(), parts.index);
        (parts.work.turn_output).wake((0..groups).filter(|group| *group != index));
    }
    // What is given back before the want is seen, `is_behind` sees.
    let lenders = parts.shared.budget.note_lack(parts.index, lacks);
    parts.work.turn_output.wake(lenders);
    // Who was refused because the server is away gets a dial all the same, for those who come
    // later, one at a time.
    if let Some(pool) = parts.server_side.refused_pool.take()
        && parts.backend_pools.dialling == 0
        && parts.shared.budget.has_room(parts.index)
    {
        dial(parts, pool);
    }
}

/// Opens connections of one pool; `true` when there is no slot for one that is wanted.
fn dial_for<N: Net>(parts: &mut Parts<N>, pool: usize) -> bool {
    loop {
        let mut matching = parts.matching();
        let serves = matching.wants_dial(pool);
        if !serves && !matching.wants_more(pool) {
            return false;
        }
        let may_dial = matching.may_dial(pool);
        if matching.may_have_room()
            && let key = &parts.backend_pools.pools[pool].key
            && let Some(why) = key.outdated_password(&parts.shared.logins.accounts)
        {
            queueing::end_waiting(parts, pool, &why);
            return false;
        }
        let now = parts.net.now();
        if may_dial && !parts.matching().account_has_room(pool) {
            // One that no command can bring into the state of who waits makes room.
            if serves && let Some(&unfit) = parts.backend_pools.pools[pool].idle.first() {
                parts.closer().retire(unfit);
            } else if parts.backend_pools.pools[pool].is_server_full() {
                leaving_readers::send_home(parts, pool);
            }
            return false;
        }
        let address = may_dial.then(|| address_of(parts, pool, now)).flatten();
        let Some(address) = address else {
            return false;
        };
        let fleet = parts.shared.connections.fleet.as_ref();
        let waits_for_unit = fleet.is_some_and(|fleet| !fleet.may_dial(&address, now));
        if !(parts.backend_pools).has_room(&parts.shared.budget, parts.index) {
            if serves && let Some(victim) = parts.matching().least_needed() {
                replace(parts, victim, pool);
                if parts.shared.connections.fleet.is_some() {
                    // Its unit is free once the server has ended it.
                    return false;
                }
                continue;
            }
            return parts.backend_pools.count < parts.shared.budget.most();
        }
        let before = parts.observed.counts.dialled;
        if !waits_for_unit {
            dial(parts, pool);
        }
        // The fleet tells when there is a unit, also of the account.
        if parts.shared.connections.fleet.is_some() && parts.observed.counts.dialled == before {
            return false;
        }
    }
}

/// Closes a free backend to open one of another pool. Another group may have a better right to
/// its slot, but not to that of the reserve.
pub(crate) fn replace<N: Net>(parts: &mut Parts<N>, backend_id: BackendId, pool: usize) {
    parts.closer().close(backend_id);
    let unused = parts.backend_pools.unused();
    parts.server_side.has_slot = parts.shared.budget.keeps_slot(parts.index, unused);
    if !parts.server_side.has_slot {
        parts.closer().give_slot_back();
    }
    dial(parts, pool);
    if std::mem::take(&mut parts.server_side.has_slot) {
        parts.closer().give_slot_back();
    }
}

/// Address to dial for a pool, if there is one now.
fn address_of<N: Net>(parts: &mut Parts<N>, pool: usize, now: Time) -> Option<Arc<Address>> {
    match parts.backend_pools.pools[pool].key.reader {
        None => (parts.server_side.status).address(&parts.shared.upstream, now),
        Some(id) => parts.server_side.reads.address(id),
    }
}

/// Begins to open a connection of this pool.
pub(crate) fn dial<N: Net>(parts: &mut Parts<N>, pool: usize) {
    let now = parts.net.now();
    if now < parts.backend_pools.pools[pool].dial_at || !parts.matching().account_has_room(pool) {
        return;
    }
    let key = &parts.backend_pools.pools[pool].key;
    if let Some(why) = key.outdated_password(&parts.shared.logins.accounts) {
        let end = DialEnd::PasswordUnknown;
        parts.backend_pools.pools[pool].dial_failed(now, why.clone(), end);
        if parts.backend_pools.pools[pool].count == 0 {
            queueing::end_waiting(parts, pool, &why);
        }
        return;
    }
    let Some(address) = address_of(parts, pool, now) else {
        return;
    };
    let fleet = parts.shared.connections.fleet.as_ref();
    if fleet.is_some_and(|fleet| !fleet.may_dial(&address, now)) {
        return;
    }
    let reader = parts.backend_pools.pools[pool].key.reader;
    let Some(tls) = parts.shared.tls_at(reader, &address, &parts.settings) else {
        return;
    };
    let server = parts.shared.connections_at(reader, &address);
    let on_server = server.as_ref().map(AccountSlots::connect);
    if matches!(on_server, Some(None)) {
        return;
    }
    let slots = parts.backend_pools.pools[pool].slots.clone();
    if !slots.take() {
        return;
    }
    let budget = &parts.shared.budget;
    let takes_slot =
        || parts.backend_pools.has_room(budget, parts.index) && budget.take(parts.index);
    if !std::mem::take(&mut parts.server_side.has_slot) && !takes_slot() {
        return slots.count(-1, -1);
    }
    let Some(units) = parts.shared.take_units(&slots) else {
        slots.count(-1, -1);
        return parts.closer().give_slot_back();
    };
    parts.observed.counts.dialled += 1;
    let sock = match parts.net.connect(&address) {
        Ok(sock) => sock,
        Err(error) => {
            parts.observed.counts.dial_failures += 1;
            slots.count(-1, -1);
            let words = parts.shared.upstream.words(&address);
            let why = format!("cannot connect to {words}: {error}");
            if !parts.backend_pools.is_reader(pool) {
                parts.shared.upstream.failed(&address, now, &why);
            }
            parts.backend_pools.pools[pool].dial_failed(now, why, DialEnd::Unreached);
            leaving_readers::send_home(parts, pool);
            return parts.closer().give_slot_back();
        }
    };
    let session = (parts.known.sessions).intern(Session::not_known(&parts.known.defaults));
    let client = parts.backend_pools.pools[pool].key.client_address;
    let header = parts.settings.backend_proxy.header(client);
    let mut backend =
        Backend::dialling(Endpoint::new(sock, address, pool), now, session, Some(tls));
    backend.count_at(on_server.flatten());
    backend.begin_dial(header, parts.server_side.epoch);
    backend.stand_for(units);
    backend.take_kind(&parts.backend_pools.pools[pool].key);
    parts.backend_pools.dial_begins(pool);
    let key = parts.backends.insert(backend);
    let watched = match parts.backends.get(key) {
        Some(backend) => {
            let sock = backend.transport.sock();
            parts.net.watch(sock, key.token())
        }
        None => return,
    };
    if let Err(error) = watched {
        let why = format!("cannot watch a connection: {error}");
        dial_failed(parts, key, &why, DialEnd::Answered);
    }
}

/// Drops a connection that could not be opened; those who wait for it wait on, unless it is of
/// no use.
pub(crate) fn dial_failed<N: Net>(
    parts: &mut Parts<N>,
    backend_id: BackendId,
    why: &str,
    end: DialEnd,
) {
    let Some(backend) = parts.backends.get(backend_id) else {
        return;
    };
    let (pool, now) = (backend.pool, parts.net.now());
    if end == DialEnd::Unreached && !backend.is_reader() {
        parts.shared.upstream.failed(backend.at(), now, why);
    }
    parts.observed.counts.dial_failures += 1;
    parts.server_side.epoch += 1;
    let entry = &mut parts.backend_pools.pools[pool];
    let first = entry.last_failure.is_none();
    if end == DialEnd::PasswordUnknown {
        (entry.key).forget_password(&parts.shared.logins.accounts);
    }
    match end {
        // The account has a back-off of its own, over all groups.
        DialEnd::AccountFull => {
            entry.slots.refused(why, now);
            entry.last_failure = Some(why.into());
            entry.is_refused = false;
        }
        _ => entry.dial_failed(now, why.into(), end),
    }
    parts.closer().retire(backend_id);
    leaving_readers::send_home(parts, pool);
    let entry = &parts.backend_pools.pools[pool];
    let user = &entry.key.user;
    if end != DialEnd::Unreached && first {
        note(
            Event::BackendRefused,
            format_args!("no backend for '{user}': {why}"),
        );
    }
    if let Some(why) = parts.backend_pools.pools[pool].dead_end(&parts.shared.logins.accounts) {
        return queueing::end_waiting(parts, pool, &why);
    }
    if end == DialEnd::Account && !parts.matching().gets_one_free(pool) {
        queueing::refuse_waiting(parts, pool, &Refusal::BackendLogin(why.into()));
    }
}
