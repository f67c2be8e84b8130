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
        let any = !self.line.is_empty() || owes();
        let mut matching = self.matching();
        let was_over = matching.is_over_share();
        let long = any && matching.long_waits();
        let read_on = self.unread().relieve(Demand { any, long });
        let mut matching = self.matching();
        if matching.is_over_share() && !was_over {
            for key in matching.put_short_first() {
                if let Some(client) = self.clients.get_mut(key) {
                    client.place.raise();
                }
            }
        }
        for backend in read_on {
            self.bulk.read_at_once(backend);
        }
    }
}
