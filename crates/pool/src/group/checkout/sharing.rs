//! Sharing: how a group comes by its backends' slots, and how it helps others with its own.
//!
//! `budget.rs` has the rules; this is when a group follows them. It takes a slot when a dial
//! begins, and gives it back when a backend is closed ([`Group::retire`]). While somebody in its
//! queues could be served by one more backend and there is no slot, it wants one
//! ([`crate::scheduler::budget::Budget::note_lack`]); groups with idle backends are told by a
//! message, busy ones see it when a backend is checked in. A group lends what has been idle for a
//! while, and at once what it owes, unless that is reserved; a backend that is checked out is never
//! taken away.
//!
//! Invariant: a want stands only while somebody waits for it, as of the end of the last turn.

use crate::group::Group;
use reactor::Net;

impl<N: Net> Group<N> {
    /// Closes idle backends that others need more.
    pub(crate) fn lend(&mut self) {
        while let Some((at, key)) = self.matching().next_lent()
            && at <= self.net.now()
        {
            self.counts.lent += 1;
            self.closer().retire(key);
        }
    }
}

impl<N: Net> Drop for Group<N> {
    /// Gives what the group has to the others when its thread ends.
    fn drop(&mut self) {
        self.backends = reactor::Slots::default();
        for (index, pool) in self.backend_pools.pools.iter().enumerate() {
            let count = |count| -isize::try_from(count).unwrap_or(0);
            pool.slots.count(count(pool.count), count(pool.dialling));
            pool.limits()
                .for_each(|slots| _ = slots.want((self.index, index), None));
        }
        self.slow_readers.end(&self.shared);
        self.shared
            .budget
            .give(self.index, self.backend_pools.count);
        self.shared.budget.unwant(self.index);
        self.shared.budget.note_idle(self.index, 0);
    }
}
