//! Outages: what a group does while the server cannot be reached, when it is back, and when it is
//! elsewhere.
//!
//! [`crate::server::upstream`] knows of an outage, from all groups and the watch. Until it has
//! lasted for `server_down_fail_ms`, clients wait for the server as they wait for a backend; from
//! then on they are refused at once, if their pool has no backend that could become free. At the
//! end of an outage the group dials again, without regard to what earlier dials have come to.
//!
//! Invariant: who is refused has a dial made on its behalf, unless one is under way, so that a
//! group finds the server's return even where nothing else looks for it.

use crate::backend::{Backend, BackendState};
use crate::errors::reasons::Refusal;
use crate::group::Group;
use crate::server::outlook::Changed;
use reactor::Net;
use std::time::Duration;

impl<N: Net> Group<N> {
    /// Takes notice of the end of an outage, and of another meaning of the server's name.
    pub(crate) fn notice_upstream(&mut self, changed: Changed) {
        if changed.is_back {
            // What was dialled before may never be answered, and nobody waits for the end of a
            // back-off.
            let now = self.net.now();
            let pools = &mut self.backend_pools.pools;
            pools.iter_mut().for_each(|pool| pool.dial_succeeded(now));
            let stale = self.backends.keys_of(|backend| backend.is_stale_dial(now));
            stale.into_iter().for_each(|key| self.retire(key));
        }
        if changed.has_moved {
            // Backends elsewhere serve their clients to the end of their leases, and nobody else.
            self.epoch += 1;
            let upstream = self.shared.upstream.clone();
            self.leave_backends(|backend| !upstream.means(&backend.at));
        }
    }

    /// These backends serve their clients to the end of their leases, and nobody else.
    pub(crate) fn leave_backends(&mut self, which: impl Fn(&Backend<N::Sock>) -> bool) {
        for key in self.backends.keys_of(which) {
            match self.backends.get_mut(key) {
                Some(backend) if backend.state() == BackendState::Leased => {
                    backend.reuse.end_with_client();
                }
                _ => self.retire(key),
            }
        }
    }

    /// The server is away, and the pool has no backend that could serve: nobody waits for one.
    pub(crate) fn refuse_while_down(&mut self, pool: usize, lasted: Duration) {
        let entry = &self.backend_pools.pools[pool];
        if entry.count > entry.dialling {
            return;
        }
        let why = entry.last_failure.clone();
        // Its return would not help them.
        if let Some(why) = entry.key.outdated_password(&self.shared.accounts) {
            self.refuse_waiting(pool, &Refusal::BackendLogin(why), true);
            return;
        }
        let why = why.unwrap_or_else(|| "the connections to it were lost".into());
        if self.refuse_waiting(pool, &Refusal::ServerDown { lasted, why }, false) {
            self.refused_pool = Some(pool);
        }
    }
}
