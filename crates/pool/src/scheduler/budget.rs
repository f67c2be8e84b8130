//! The budget: connections to the server, over all groups, and who may take the next one.
//!
//! The problem: `backends_max` bounds all groups together, but clients are dealt to groups by
//! chance. Dealt out for good, slots lie idle in one group while statements wait in another.
//! The mechanism: one count of free slots. A slot is taken before a dial and given back after the
//! close, so no instant exceeds the whole. Each group has a *share*, an even one:
//! - below it a slot is the group's by right; who is above its own owes it one, and gives it back
//!   as soon as a backend of its is checked in ([`Owed::AtOnce`]);
//! - above it the group borrows, from what nobody else may claim, the oldest want first; who has
//!   idle backends that it has not used for a while lends them ([`Owed::Idle`]).
//!
//! Who cannot have a slot says so ([`Budget::want`]); who gives one back tells those who can have
//! it now ([`Budget::served`]). Messages carry that; there are no locks, and while nobody wants
//! anything a statement's path costs one read of a line that is hardly ever written.
//!
//! The whole may be lowered, when the server takes fewer connections, and raised again
//! ([`Budget::set_total`]). Then there may be less than nothing free, and who is above its own
//! share owes at once, until there is not.
//!
//! Invariants:
//! - the free and the held slots are the whole, but for those that are under way: a slot is counted
//!   as held, or as neither, when it is not free;
//! - what a group reserves for statements of high priority ([`Share::reserved`]) is within its
//!   share and is not borrowed by others: it is idle with the group, or free;
//! - whoever wants a slot below its share can take one, or somebody is above its own and owes it.
//!
//! What groups read of each other may be older than the count of free slots, never newer: a slot is
//! noted as given back before it is free, and as held after it was free. So a stale look refuses
//! what it could have granted, and the giver's message mends that.

use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::SeqCst};

/// Most slots that a group may hold by borrowing, where its descriptor table is made for all of
/// them.
const BORROWED_MAX: usize = 1024;
/// A group reserves at most one backend of so many of its share: with few, every one is wanted.
const BACKENDS_PER_RESERVED: usize = 8;
/// Wish for nothing.
const NOTHING: usize = 0;

/// Backends that one group has and wants; alone on its cache lines.
#[derive(Debug)]
#[repr(align(128))]
struct Share {
    /// Slots that are the group's by right.
    share: AtomicUsize,
    /// Slots of its share that others leave to it, besides those that it uses.
    reserved: AtomicUsize,
    /// Slots that it has taken.
    held: AtomicUsize,
    /// Number of them that it does not use, as it said at the end of its last turn.
    idle: AtomicUsize,
    /// The number of its want, or [`NOTHING`]; a lower number is an older want.
    wants: AtomicUsize,
}

impl Share {
    fn held(&self) -> usize {
        self.held.load(SeqCst)
    }

    fn share(&self) -> usize {
        self.share.load(SeqCst)
    }

    fn reserved(&self) -> usize {
        self.reserved.load(SeqCst)
    }

    /// Sets its part of `total`, of which it may reserve so many.
    fn divide(&self, share: usize, reserved: usize) {
        self.share.store(share, SeqCst);
        let reserved = reserved.min(share / BACKENDS_PER_RESERVED);
        self.reserved.store(reserved, SeqCst);
    }

    fn is_short(&self) -> bool {
        self.held() < self.share()
    }

    /// True if it uses what it should leave to statements of high priority and poorer accounts.
    fn lacks_reserve(&self) -> bool {
        self.idle.load(SeqCst) < self.reserved()
    }

    /// Free slots that nobody else may take, so that the reserve stays, and its low queue gets one
    /// besides.
    fn reserve_missing(&self) -> usize {
        let (reserved, held) = (self.reserved(), self.held());
        if reserved == 0 {
            return 0;
        }
        let missing = reserved.saturating_sub(self.idle.load(SeqCst));
        let missing = missing.max((reserved + 1).saturating_sub(held));
        missing.min(self.share().saturating_sub(held))
    }
}

/// Backends that a group should give up for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owed {
    /// Nothing.
    Nothing,
    /// Slot that it has not used for a while.
    Idle,
    /// The next backend that becomes free: another group is below its share.
    AtOnce,
}

/// The slots of all groups.
#[derive(Debug)]
pub struct Budget {
    /// Below zero after the whole was lowered, until as many backends are closed.
    free: AtomicIsize,
    /// The whole.
    total: AtomicUsize,
    /// Most backends that each group would reserve.
    reserved: usize,
    /// Groups that want something.
    wanting: AtomicUsize,
    /// The number of the youngest want.
    wants: AtomicUsize,
    /// The most that the whole may be, and that one group may hold.
    most_total: usize,
    most: usize,
    shares: Box<[Share]>,
}

impl Budget {
    /// `total` slots for so many groups, each of which reserves up to `reserved` of its share.
    #[must_use]
    pub fn new(total: usize, groups: usize, reserved: usize) -> Budget {
        let shares = (0..groups).map(|_| Share {
            share: AtomicUsize::new(0),
            reserved: AtomicUsize::new(0),
            held: AtomicUsize::new(0),
            idle: AtomicUsize::new(0),
            wants: AtomicUsize::new(NOTHING),
        });
        let budget = Budget {
            free: AtomicIsize::new(signed(total)),
            total: AtomicUsize::new(total),
            reserved,
            wanting: AtomicUsize::new(0),
            wants: AtomicUsize::new(NOTHING),
            most_total: total,
            most: Budget::most_of_group(total, groups),
            shares: shares.collect(),
        };
        budget.divide(total);
        budget
    }

    fn divide(&self, total: usize) {
        let groups = self.shares.len();
        for (index, share) in self.shares.iter().enumerate() {
            let even = total / groups + usize::from(index < total % groups);
            share.divide(even, self.reserved);
        }
    }

    /// The most that the whole may be: what it was made with.
    pub(crate) fn most_total(&self) -> usize {
        self.most_total
    }

    /// The whole.
    pub(crate) fn total(&self) -> usize {
        self.total.load(SeqCst)
    }

    /// Makes the whole another one, at most what it was made with; `true` when that is new. What
    /// groups hold above it they owe, until their next checkin. By one thread only.
    pub(crate) fn set_total(&self, total: usize) -> bool {
        let old = self.total.swap(total, SeqCst);
        if total < old {
            // Nobody takes more before the shares say so.
            self.free.fetch_sub(signed(old - total), SeqCst);
            self.divide(total);
        } else if total > old {
            self.divide(total);
            self.free.fetch_add(signed(total - old), SeqCst);
        }
        total != old
    }

    /// Free slots.
    fn free(&self) -> usize {
        usize::try_from(self.free.load(SeqCst)).unwrap_or(0)
    }

    /// The most backends that one of so many groups may have, for its descriptor table.
    #[must_use]
    pub(crate) fn most_of_group(total: usize, groups: usize) -> usize {
        total.min(BORROWED_MAX.max(total.div_ceil(groups.max(1))))
    }

    /// The most that any group may hold.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// Slots that are group `index`'s by right.
    pub(crate) fn share(&self, index: usize) -> usize {
        self.shares[index].share()
    }

    /// Slots that group `index` leaves to statements of high priority and to logins.
    pub(crate) fn reserved(&self, index: usize) -> usize {
        self.shares[index].reserved()
    }

    fn others(&self, index: usize) -> impl Iterator<Item = (usize, &Share)> {
        let all = self.shares.iter().enumerate();
        all.filter(move |(other, _)| *other != index)
    }

    /// Free slots that group `index` has to leave to others: their reserves, and wants that come
    /// first. A group without its reserve waits for reserves only, and of several such the one with
    /// the fewest backends for none.
    fn left_to_others(&self, index: usize) -> usize {
        let mine = &self.shares[index];
        let (short, want) = (mine.is_short(), mine.wants.load(SeqCst));
        let lacks = mine.reserve_missing() > 0;
        let (first_of_all, poorer) = (mine.lacks_reserve(), (mine.held(), index));
        let left = |(number, other): (usize, &Share)| {
            let wants = other.wants.load(SeqCst);
            // Who has no want yet comes after all who have one.
            let older = want == NOTHING || wants < want;
            let first = !short && !first_of_all && (other.is_short() || older);
            let reserve = match lacks && poorer < (other.held(), number) {
                true => 0,
                false => other.reserve_missing(),
            };
            reserve.max(usize::from(wants != NOTHING && first))
        };
        self.others(index).map(left).sum()
    }

    /// True if group `index` could take a slot now.
    pub(crate) fn has_room(&self, index: usize) -> bool {
        let free = self.free();
        free > 0 && self.shares[index].held() < self.most && free > self.left_to_others(index)
    }

    /// True if group `index`, in which no client has `unused` backends, has checked out as many as
    /// the low queue may have: the rest is for statements of high priority and for logins, so that
    /// clients which all wait for one lock leave them some. `besides`: so many more are left.
    pub(crate) fn is_reserve_reached(&self, index: usize, unused: usize, besides: usize) -> bool {
        let reserved = self.reserved(index) + besides;
        reserved >= unused && reserved >= unused + self.by_right(index)
    }

    /// True if the slot of a backend that is closed for another account stays with group `index`,
    /// which has `unused` others: it is the reserve's.
    pub(crate) fn keeps_slot(&self, index: usize, unused: usize) -> bool {
        unused < self.reserved(index) && self.free.load(SeqCst) >= 0
    }

    /// True if the next backend that becomes free in group `index`, which has `count` and does not
    /// use `unused` others, is owed to another group.
    pub(crate) fn owes_next(
        &self,
        index: usize,
        count: usize,
        unused: impl FnOnce() -> usize,
    ) -> bool {
        let spare = || self.free.load(SeqCst) < 0 || unused() >= self.reserved(index);
        count > self.share(index) && spare() && self.owed(index) == Owed::AtOnce
    }

    /// Slots that group `index` can still take by right.
    pub(crate) fn by_right(&self, index: usize) -> usize {
        let mine = &self.shares[index];
        let (free, missing) = (self.free(), mine.share().saturating_sub(mine.held()));
        if free == 0 || missing == 0 {
            return 0;
        }
        let reserves = self.others(index).map(|(_, other)| other.reserve_missing());
        missing.min(free.saturating_sub(reserves.sum()))
    }

    /// Takes a slot for group `index`; `false` when it cannot have one now.
    #[must_use]
    pub(crate) fn take(&self, index: usize) -> bool {
        loop {
            let free = self.free.load(SeqCst);
            // Looked at after the count was read, and the count must be the same still.
            if !self.has_room(index) || free <= 0 {
                return false;
            }
            let taken = self.free.compare_exchange(free, free - 1, SeqCst, SeqCst);
            if taken.is_ok() {
                self.shares[index].held.fetch_add(1, SeqCst);
                return true;
            }
        }
    }

    /// Returns the slots of `count` closed backends of group `index`.
    pub(crate) fn give(&self, index: usize, count: usize) {
        self.shares[index].held.fetch_sub(count, SeqCst);
        self.free.fetch_add(signed(count), SeqCst);
    }

    /// Notes that group `index` lacks a slot. `true` when that is new: those in
    /// [`Budget::lenders`] are to be told, after another look whether there is room by now.
    pub(crate) fn want(&self, index: usize) -> bool {
        let wants = &self.shares[index].wants;
        let new = wants.load(SeqCst) == NOTHING;
        if new {
            wants.store(self.wants.fetch_add(1, SeqCst) + 1, SeqCst);
            self.wanting.fetch_add(1, SeqCst);
        }
        new
    }

    /// True if group `index` has noted that it lacks a slot.
    pub(crate) fn wants(&self, index: usize) -> bool {
        self.shares[index].wants.load(SeqCst) != NOTHING
    }

    /// Notes whether somebody waits in group `index` for a slot that is not there. Returns whom to
    /// tell, which is nobody unless that is new.
    pub(crate) fn note_lack(&self, index: usize, lacks: bool) -> impl Iterator<Item = usize> {
        if !lacks {
            self.unwant(index);
        }
        let tells = lacks && self.want(index);
        let told = if tells { usize::MAX } else { 0 };
        self.lenders(index).take(told)
    }

    /// Clears the wants of group `index`, which lacks nothing any more.
    pub(crate) fn unwant(&self, index: usize) {
        let wants = &self.shares[index].wants;
        // It lacks nothing at the end of most turns.
        if wants.load(SeqCst) != NOTHING && wants.swap(NOTHING, SeqCst) != NOTHING {
            self.wanting.fetch_sub(1, SeqCst);
        }
    }

    /// Notes how many backends group `index` does not use.
    pub(crate) fn note_idle(&self, index: usize, idle: usize) {
        let noted = &self.shares[index].idle;
        // It is read by others far more often than it changes.
        if noted.load(SeqCst) != idle {
            noted.store(idle, SeqCst);
        }
    }

    /// Groups with backends that they do not use.
    pub(crate) fn lenders(&self, index: usize) -> impl Iterator<Item = usize> {
        let lends = |other: &Share| other.idle.load(SeqCst) > 0;
        let others = self.others(index).filter(move |(_, other)| lends(other));
        others.map(|(other, _)| other)
    }

    /// Groups whose want can be served now.
    pub(crate) fn served(&self, index: usize) -> impl Iterator<Item = usize> {
        let some = self.wanting.load(SeqCst) > 0;
        let others = self.others(index).filter(move |_| some);
        others
            .filter(|(other, share)| share.wants.load(SeqCst) != NOTHING && self.has_room(*other))
            .map(|(other, _)| other)
    }

    /// Backend that group `index` should give up.
    pub(crate) fn owed(&self, index: usize) -> Owed {
        let mine = &self.shares[index];
        let borrows = mine.held() > mine.share();
        if borrows && self.free.load(SeqCst) < 0 {
            return Owed::AtOnce;
        }
        match self.wanting.load(SeqCst) {
            0 => Owed::Nothing,
            _ => self.owed_to_others(index, borrows),
        }
    }

    /// Debt towards groups that want a slot; `borrows`: it has more than its share.
    fn owed_to_others(&self, index: usize, borrows: bool) -> Owed {
        let owed_to = |(other, share): (usize, &Share)| {
            if share.wants.load(SeqCst) == NOTHING || self.has_room(other) {
                Owed::Nothing
            } else if borrows && share.is_short() {
                Owed::AtOnce
            } else {
                Owed::Idle
            }
        };
        let owed = self.others(index).map(owed_to).max();
        owed.unwrap_or(Owed::Nothing)
    }
}

/// Slots as a signed number: they are few.
fn signed(slots: usize) -> isize {
    isize::try_from(slots).unwrap_or(isize::MAX)
}

#[cfg(test)]
mod tests;
