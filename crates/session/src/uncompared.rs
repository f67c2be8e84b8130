//! A note beside a value, which is no part of it.
//!
//! A session is shared, compared and hashed by its state. What is worked out of it once, or known
//! of it for a while, is kept in a cell that equality and hash pass over; a copy, which is made to
//! be changed, begins without it.

use std::cell::Cell;
use std::hash::{Hash, Hasher};

/// A note beside a session's state: equal sessions stay equal, and a copy, which is made to be
/// changed, begins without it.
#[derive(Debug, Default)]
pub struct Uncompared<T: Copy>(Cell<T>);

impl<T: Copy> Uncompared<T> {
    /// The note.
    pub fn get(&self) -> T {
        self.0.get()
    }

    /// Notes this.
    pub fn set(&self, value: T) {
        self.0.set(value);
    }
}

impl<T: Copy + Default> Clone for Uncompared<T> {
    fn clone(&self) -> Self {
        Uncompared::default()
    }
}

impl<T: Copy> PartialEq for Uncompared<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T: Copy> Eq for Uncompared<T> {}

impl<T: Copy> Hash for Uncompared<T> {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// The epoch in which a backend has stood in a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Accepted(Uncompared<u64>);

impl Accepted {
    /// Notes that a backend of this epoch stands in the session.
    pub fn note(&self, epoch: u64) {
        self.0.set(epoch);
    }

    /// Withdraws that, a backend not having taken it.
    pub fn withdraw(&self) {
        self.0.set(0);
    }

    /// True if a backend of this epoch has stood in it.
    pub fn is_of(&self, epoch: u64) -> bool {
        self.0.get() == epoch
    }
}
