//! Sets of pin causes: one text may leave several things behind.
//!
//! A pin ends when all that it stands for has ended, so the first cause that a scan meets is not
//! enough. A set is one word of bits, since every statement has one.

use super::PinCause;

/// A set of causes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PinCauses(u32);

const _: () = assert!(PinCause::ALL.len() <= 32);

impl PinCauses {
    /// No cause.
    pub const NONE: Self = Self(0);

    /// One cause.
    #[must_use]
    pub const fn of(cause: PinCause) -> Self {
        Self(1 << cause as u32)
    }

    /// True if there is none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// True if `cause` is among them.
    #[must_use]
    pub fn contains(self, cause: PinCause) -> bool {
        self.0 & Self::of(cause).0 != 0
    }

    /// Adds a cause.
    pub fn insert(&mut self, cause: PinCause) {
        self.0 |= Self::of(cause).0;
    }

    /// Takes a cause out.
    pub fn remove(&mut self, cause: PinCause) {
        self.0 &= !Self::of(cause).0;
    }

    /// Causes of both sets.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Each of them, in the order of [`PinCause::ALL`].
    pub fn iter(self) -> impl Iterator<Item = PinCause> {
        let all = PinCause::ALL.into_iter();
        all.filter(move |cause| self.contains(*cause))
    }
}
