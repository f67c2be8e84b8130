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
use crate::queue::budget::Owed;
use crate::queue::lane::LaneName;
use crate::shared::Order;
use reactor::{Key, Net, Time};
use std::time::Duration;

/// A backend that has been idle for so long is lent: a dial costs about a millisecond, and who
/// pauses for less than this is not to pay for one each time.
const LEND_AFTER: Duration = Duration::from_millis(50);

impl<N: Net> Group<N> {
    /// Whether another backend may be dialled.
    pub(crate) fn has_room(&self) -> bool {
        self.shared.budget.has_room(self.index)
    }

    /// Backends that no client has.
    fn unused(&self) -> usize {
        let idle: usize = self
            .backend_pools
            .pools
            .iter()
            .map(|pool| pool.idle.len())
            .sum();
        idle + self.backend_pools.dialling
    }

    /// Whether as many backends are leased as the low lane may have: the rest is for statements of
    /// high priority and for logins, so that clients which all wait for one lock leave them some.
    pub(crate) fn is_reserve_reached(&self) -> bool {
        let reserved = self.shared.budget.reserved(self.index);
        let unused = self.unused();
        reserved >= unused && reserved >= unused + self.shared.budget.by_right(self.index)
    }

    /// Whether the low lane waits for a backend besides the reserve, and the group may have more.
    pub(crate) fn wants_more(&mut self, pool: usize) -> bool {
        self.backend_pools.count < self.shared.budget.most()
            && self.unused() <= self.shared.budget.reserved(self.index)
            && self.is_reserve_reached()
            && self.front_in(pool, LaneName::Low).is_some()
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

    /// Whether the next backend that becomes free is owed to another group.
    pub(crate) fn owes_next(&self) -> bool {
        let budget = &self.shared.budget;
        self.backend_pools.count > budget.share(self.index)
            && budget.owed(self.index) == Owed::AtOnce
    }

    /// Closes idle backends that others need more.
    pub(crate) fn lend(&mut self) {
        while self.next_lend() <= self.net.now()
            && let Some((_, key)) = self.longest_idle()
        {
            self.counts.lent += 1;
            self.let_go(key);
        }
    }

    /// Tells the others what is idle here, at the end of a turn.
    pub(crate) fn publish_idle(&self) {
        self.shared.budget.note_idle(self.index, self.unused());
    }

    /// When an idle backend is to be lent.
    pub(crate) fn next_lend(&self) -> Time {
        if self.unused() <= self.shared.budget.reserved(self.index) {
            return Time::NEVER;
        }
        match (self.shared.budget.owed(self.index), self.longest_idle()) {
            (Owed::Nothing, _) | (_, None) => Time::NEVER,
            (Owed::AtOnce, Some(_)) => Time(0),
            (Owed::Idle, Some((since, _))) => since + LEND_AFTER,
        }
    }

    fn longest_idle(&self) -> Option<(Time, Key)> {
        let all = self.backend_pools.pools.iter().flat_map(|pool| &pool.idle);
        all.filter_map(|key| Some((self.backends.get(*key)?.since, *key)))
            .min()
    }
}

impl<N: Net> Drop for Group<N> {
    /// What the group has is the others' when its thread ends.
    fn drop(&mut self) {
        self.backends = reactor::Slots::default();
        self.collecting.end(&self.shared.collecting);
        self.shared
            .budget
            .give(self.index, self.backend_pools.count);
        self.shared.budget.unwant(self.index);
        self.shared.budget.note_idle(self.index, 0);
    }
}
