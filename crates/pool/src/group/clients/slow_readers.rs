//! A group's part in slow readers ([`crate::limits::slow_readers::unread`]): their backends are
//! read on.
//!
//! While others wait for backends, replies are taken off those of slow readers, and statements that
//! are known to be short go first. Who has to go is closed by
//! [`crate::limits::slow_readers::unread`].

use crate::group::Group;
use crate::limits::slow_readers::Demand;
use reactor::Net;

impl<N: Net> Group<N> {
    /// Takes replies off their backends while others wait for those.
    pub(crate) fn relieve_backends(&mut self) {
        let owes = || (self.backend_pools).owes_next(&self.shared.budget, self.index);
        let any = !self.waiting_count.is_empty() || owes();
        let mut matching = self.matching();
        let was_squeezed = matching.is_squeezed();
        let long = any && matching.long_waits();
        let read_on = self.unread().relieve(Demand { any, long });
        let mut matching = self.matching();
        let mut raised = Vec::new();
        if matching.is_squeezed() && !was_squeezed {
            raised = matching.put_short_first();
        }
        let tried = matching.put_trial_first();
        for key in raised.into_iter().chain(tried) {
            if let Some(client) = self.clients.get_mut(key) {
                client.place.raise();
            }
        }
        let now = self.net.now();
        tried.inspect(|key| self.slow_readers.start_trial(*key, now));
        for backend in read_on {
            self.bulk.read_at_once(backend);
        }
    }
}
