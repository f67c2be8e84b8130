//! A group's part in slow readers ([`crate::limits::slow_readers::unread`]): their backends are
//! read on.
//!
//! While others wait for backends, replies are taken off those of slow readers, and statements that
//! are known to be short go first. Who has to go is closed by
//! [`crate::limits::slow_readers::unread`].

use crate::group::parts::Parts;
use crate::limits::slow_readers::Demand;
use reactor::Net;

/// Takes replies off their backends while others wait for those.
pub(crate) fn relieve_backends<N: Net>(parts: &mut Parts<N>) {
    let owes = || (parts.backend_pools).owes_next(&parts.shared.budget, parts.index);
    let any = !parts.client_side.waiting_count.is_empty() || owes();
    let mut matching = parts.matching();
    let was_squeezed = matching.is_squeezed();
    let long = any && matching.long_waits();
    let read_on = parts.unread().relieve(Demand { any, long });
    let mut matching = parts.matching();
    let mut raised = Vec::new();
    if matching.is_squeezed() && !was_squeezed {
        raised = matching.put_short_first();
    }
    let tried = matching.put_trial_first();
    for key in raised.into_iter().chain(tried) {
        if let Some(client) = parts.clients.get_mut(key) {
            client.place.raise();
        }
    }
    let now = parts.net.now();
    tried.inspect(|key| parts.client_side.slow_readers.start_trial(*key, now));
    for backend in read_on {
        parts.work.bulk.read_at_once(backend);
    }
}
