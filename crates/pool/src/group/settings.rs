//! Settings in force.
//!
//! A group takes others at the begin of a turn, and before a client that has proven its account is
//! let in: the account may be newer than the turn.

use crate::backend::{Backend, BackendState};
use crate::group::parts::Parts;
use reactor::Net;

/// Takes the settings in force, if they are others by now.
pub(crate) fn take_settings<N: Net>(parts: &mut Parts<N>) {
    if parts.shared.settings_epoch() != parts.known.settings_epoch {
        replace_settings(parts);
    }
}

/// Replaces the settings by those in force. Counts that are kept for users with a limit alone are
/// made anew: a limit may have come, or gone.
fn replace_settings<N: Net>(parts: &mut Parts<N>) {
    parts.known.settings_epoch = parts.shared.settings_epoch();
    parts.waiters().count_for_limits(false);
    parts.room().count_all(false);
    let old = std::mem::replace(&mut parts.settings, parts.shared.settings());
    parts.members().follow_users();
    // What is on its way with a password of before would be refused for it.
    let (now, settings) = (parts.net.now(), parts.settings.clone());
    for pool in parts.backend_pools.follow_passwords(&old, &settings) {
        parts.backend_pools.pools[pool].dial_succeeded(now);
        let dials = |b: &Backend<N::Sock>| b.pool == pool && b.state() == BackendState::Dialling;
        for key in parts.backends.keys_of(dials) {
            parts.closer().retire(key);
        }
    }
    parts.waiters().count_for_limits(true);
    parts.room().count_all(true);
    parts.address_counts().count_all();
    parts.observed.figures.fit(parts.settings.users.len());
}
