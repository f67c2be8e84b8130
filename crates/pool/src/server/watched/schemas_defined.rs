//! Schemas that statements through the pool have altered, or dropped and created again.
//!
//! The problem: a connection keeps the character set that its default schema had when it came to
//! it, and takes from it what it creates. When another connection alters the schema, or has
//! dropped it and creates it again, that is the old one. On MariaDB no USE of the same schema
//! renews it. The mechanism: such a statement has a guard
//! ([`crate::client::guards::DefiningSchemas`]), which tells of it here when it has been answered;
//! each group then leaves the backends that stand in the schema. They are not left when it is
//! dropped: their clients could go nowhere else, and nothing is created in it before it is there.
//!
//! An ALTER DATABASE that names none alters the default schema of that moment, which a text of
//! several statements or a prepared one may have set since: it counts for any.
//!
//! CREATE DATABASE IF NOT EXISTS, with which many applications begin, is one that creates if it has
//! not warned, or if it is the first behind a DROP: MySQL also warns of a name of a character set.
//!
//! Not seen: what is defined past the pool, by stored code or by SET STATEMENT, and a statement
//! whose client or connection is lost before its answer. A client has its answer a moment before
//! the other groups know.
//!
//! Invariant: no more than [`NAMES_MAX`] are kept; for a group that has missed one, any schema may
//! have changed.

use sql::classify::stored::{Folded, Schema, SchemaChange};
use std::collections::VecDeque;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The latest schemas that are kept; also so many that were dropped.
const NAMES_MAX: usize = 64;

/// Schemas that were defined anew, shared by all groups.
#[derive(Debug, Default)]
pub(crate) struct SchemasDefined {
    /// Number of schemas that have been defined anew.
    count: AtomicU64,
    names: Mutex<Names>,
}

#[derive(Debug, Default)]
struct Names {
    /// The latest that have been defined anew; `None`: any may have been.
    latest: VecDeque<Option<Folded>>,
    /// Those that were dropped, and have not been created since.
    dropped: VecDeque<Folded>,
}

/// Keeps one more; the oldest goes where there are too many.
fn keep<T>(names: &mut VecDeque<T>, name: T) {
    if names.len() >= NAMES_MAX {
        names.pop_front();
    }
    names.push_back(name);
}

impl SchemasDefined {
    /// Number of schemas that have been defined anew.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a statement's change of this schema. `certain`: it has not failed, and nothing warned.
    pub(crate) fn note(&self, schema: Schema, certain: bool) {
        let mut names = self.lock();
        let Schema { name, change } = schema;
        let same = |dropped: &Folded| name.as_ref() == Some(dropped);
        let was_dropped = names.dropped.iter().position(same);
        let anew = match change {
            SchemaChange::Altered | SchemaChange::Created => true,
            SchemaChange::CreatedUnlessThere => certain || was_dropped.is_some(),
            SchemaChange::Dropped => false,
        };
        if let Some(at) = was_dropped {
            names.dropped.remove(at);
        }
        if change == SchemaChange::Dropped
            && let Some(name) = name
        {
            keep(&mut names.dropped, name);
        } else if anew {
            keep(&mut names.latest, name);
            self.count.fetch_add(1, Release);
        }
    }

    /// Number of them so far, and those behind the first `seen`. `None`: any.
    pub(crate) fn since(&self, seen: u64) -> (u64, Option<Vec<Folded>>) {
        let latest = &self.lock().latest;
        let count = self.count();
        let new = usize::try_from(count - seen).unwrap_or(usize::MAX);
        let first = latest.len().checked_sub(new);
        let names = first.and_then(|first| latest.iter().skip(first).cloned().collect());
        (count, names)
    }
}

#[cfg(test)]
mod tests {
    use super::SchemaChange::{Altered, Created, CreatedUnlessThere, Dropped};
    use super::*;

    fn named(name: u8, change: SchemaChange) -> Schema {
        Schema {
            name: Some([name].into()),
            change,
        }
    }

    #[test]
    fn a_group_that_has_missed_some_is_told_so() {
        let defined = SchemasDefined::default();
        assert_eq!(defined.since(0), (0, Some(Vec::new())));
        for number in 0..=NAMES_MAX {
            let schema = named(u8::try_from(number).unwrap(), Created);
            defined.note(schema, true);
        }
        let (count, names) = defined.since(1);
        assert_eq!(count, NAMES_MAX as u64 + 1);
        assert_eq!(names.map(|names| names.len()), Some(NAMES_MAX));
        assert_eq!(defined.since(0), (count, None));
        let last: Folded = [u8::try_from(NAMES_MAX).unwrap()].into();
        assert_eq!(defined.since(count - 1), (count, Some(vec![last])));
        let default = Schema {
            name: None,
            change: Altered,
        };
        defined.note(default, true);
        assert_eq!(defined.since(count - 1), (count + 1, None));
    }

    #[test]
    fn a_creation_that_warns_counts_behind_a_drop_alone() {
        let defined = SchemasDefined::default();
        let mut seen = 0;
        let mut counts = |name: u8, change, certain| {
            defined.note(named(name, change), certain);
            let count = defined.count();
            std::mem::replace(&mut seen, count) < count
        };
        assert!(!counts(b'a', CreatedUnlessThere, false));
        assert!(counts(b'a', CreatedUnlessThere, true));
        assert!(!counts(b'a', Dropped, true));
        assert!(!counts(b'b', CreatedUnlessThere, false));
        assert!(counts(b'a', CreatedUnlessThere, false));
        assert!(!counts(b'a', CreatedUnlessThere, false), "once");
        assert!(!counts(b'a', Dropped, false));
        assert!(counts(b'a', Created, false));
        assert!(counts(b'a', Altered, false));
        assert!(!counts(b'a', CreatedUnlessThere, false));
        // Of more drops than are kept the oldest is forgotten.
        for name in 0..=u8::try_from(NAMES_MAX).unwrap() {
            assert!(!counts(name, Dropped, true));
        }
        assert!(!counts(0, CreatedUnlessThere, false));
        assert!(counts(1, CreatedUnlessThere, false));
    }
}
