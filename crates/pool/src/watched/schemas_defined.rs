//! Schemata that statements through the pool have altered, or created again.
//!
//! The problem: a connection keeps the character set that its default schema had when it came to
//! it, and takes from it what it creates. When another connection alters the schema, or has
//! dropped it and creates it again, that is the old one. On MariaDB no USE of the same schema
//! renews it. The mechanism: such a statement has a guard, which notes the schema here when it has
//! ended; each group then leaves the backends that stand in it: they serve their clients to the
//! end of their leases, and nobody else.
//!
//! Not seen: what is defined past the pool, or by stored code.
//!
//! Invariant: no more than [`NAMES_MAX`] are kept; for a group that has missed one, any schema may
//! have changed.

use sql::classify::stored::Folded;
use std::collections::VecDeque;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The latest schemata that are kept.
const NAMES_MAX: usize = 64;

/// What all groups share of it.
#[derive(Debug, Default)]
pub(crate) struct SchemasDefined {
    /// How many there have been.
    count: AtomicU64,
    latest: Mutex<VecDeque<Folded>>,
}

impl SchemasDefined {
    /// How many there have been.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Folded>> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A statement that defines this one has ended.
    pub(crate) fn note(&self, name: Folded) {
        let mut latest = self.lock();
        if latest.len() >= NAMES_MAX {
            latest.pop_front();
        }
        latest.push_back(name);
        self.count.fetch_add(1, Release);
    }

    /// How many there have been, and which behind the first `seen`. `None`: not all are kept.
    pub(crate) fn since(&self, seen: u64) -> (u64, Option<Vec<Folded>>) {
        let latest = self.lock();
        let count = self.count();
        let new = usize::try_from(count - seen).unwrap_or(usize::MAX);
        let first = latest.len().checked_sub(new);
        let names = first.map(|first| latest.iter().skip(first).cloned().collect());
        (count, names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_that_has_missed_some_is_told_so() {
        let defined = SchemasDefined::default();
        assert_eq!(defined.since(0), (0, Some(Vec::new())));
        for number in 0..=NAMES_MAX {
            defined.note([u8::try_from(number).unwrap()].into());
        }
        let (count, names) = defined.since(1);
        assert_eq!(count, NAMES_MAX as u64 + 1);
        assert_eq!(names.map(|names| names.len()), Some(NAMES_MAX));
        assert_eq!(defined.since(0), (count, None));
        let last: Folded = [u8::try_from(NAMES_MAX).unwrap()].into();
        assert_eq!(defined.since(count - 1), (count, Some(vec![last])));
    }
}
