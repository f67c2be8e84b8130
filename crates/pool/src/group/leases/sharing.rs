//! Sharing: how a group comes by its backends' slots, and how it helps others with its own.
//!
//! `budget.rs` has the rules; this is when a group follows them. It takes a slot when a dial
//! begins, and gives it back when a backend is closed ([`Group::retire`]). While somebody in its
//! lanes could be served by one more backend and there is no slot, it wants one
//! ([`Group::note_lack`]); groups with idle backends are told by a message, busy ones see it when a
//! lease ends. A group lends what has been idle for [`LEND_AFTER`], and at once what it owes,
//! unless that is reserved; a backend that is leased is never taken away.
//!
//! Invariant: a want stands only while somebody waits for it, as of the end of the last turn.

use crate::group::Group;
use crate::group::leases::queueing::stands;
use crate::queue::budget::Owed;
use crate::queue::lane::LaneName;
use crate::shared::Order;
use reactor::{Key, Net, Time};
use std::time::Duration;

/// A backend that has been idle for so long is lent: a dial costs about a millisecond, and who
/// pauses for less than this is not to pay for one each time.
const LEND_AFTER: Duration = Duration::from_millis(50);

impl<N: Net> Group<N> {
    /// Whether the low lane waits for a backend besides the reserve, and the group may have more.
    pub(crate) fn wants_more(&mut self, pool: usize) -> bool {
        self.backend_pools.count < self.shared.budget.most()
            && self.backend_pools.unused() <= self.shared.budget.reserved(self.index)
            && self
                .shared
                .budget
                .is_reserve_reached(self.index, self.backend_pools.unused())
            && self
                .backend_pools
                .front_in(pool, LaneName::Low, |waiting| {
                    stands(&self.clients, waiting)
                })
                .is_some()
    }

    /// Gives the slot of a backend back that is closed, and tells who can have it.
    pub(crate) fn give_back(&mut self) {
        let budget = &self.shared.budget;
        budget.give(self.index, 1);
        let served = budget.served(self.index);
        self.messages
            .extend(served.map(|group| (group, Order::Look)));
    }

    /// Notes whether somebody waits for a slot that is not there.
    pub(crate) fn note_lack(&mut self, lacks: bool) {
        if !lacks {
            if std::mem::take(&mut self.lacks) {
                self.shared.budget.unwant(self.index);
            }
        } else if self.shared.budget.want(self.index) {
            self.lacks = true;
            let lenders = self.shared.budget.lenders(self.index);
            self.messages
                .extend(lenders.map(|group| (group, Order::Look)));
        }
    }

    /// Which idle backend is to be lent next, and when.
    pub(crate) fn next_lent(&self) -> Option<(Time, Key)> {
        let budget = &self.shared.budget;
        if self.backend_pools.unused() <= budget.reserved(self.index) {
            return None;
        }
        let owed = budget.owed(self.index);
        let idle = self.backend_pools.pools.iter().flat_map(|pool| &pool.idle);
        let since = idle.filter_map(|key| Some((self.backends.get(*key)?.since, *key)));
        match (owed, since.min()?) {
            (Owed::Nothing, _) => None,
            (Owed::AtOnce, (_, key)) => Some((Time(0), key)),
            (Owed::Idle, (since, key)) => Some((since + LEND_AFTER, key)),
        }
    }

    /// Closes idle backends that others need more.
    pub(crate) fn lend(&mut self) {
        while let Some((at, key)) = self.next_lent()
            && at <= self.net.now()
        {
            self.counts.lent += 1;
            self.let_go(key);
        }
    }
}

impl<N: Net> Drop for Group<N> {
    /// What the group has is the others' when its thread ends.
    fn drop(&mut self) {
        self.backends = reactor::Slots::default();
        self.slow_readers.end(&self.shared);
        self.shared
            .budget
            .give(self.index, self.backend_pools.count);
        self.shared.budget.unwant(self.index);
        self.shared.budget.note_idle(self.index, 0);
    }
}
