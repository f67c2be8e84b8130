//! Events that may still begin, counted over all groups.
//!
//! Groups take one after the other from a common number. Shares dealt beforehand would be left over
//! in a group whose connections could not be opened, or are not wanted any more, and the run would
//! wait for them without end.

use std::sync::atomic::{AtomicU64, Ordering};

/// The events of a run that have not begun.
#[derive(Debug)]
pub struct Allowance {
    /// `None` is without end.
    left: Option<AtomicU64>,
}

impl Allowance {
    /// Allowance of this many events; 0 is without end, as on the command line.
    pub fn new(events: u64) -> Allowance {
        Allowance {
            left: (events > 0).then(|| AtomicU64::new(events)),
        }
    }

    /// Takes leave to begin up to `wanted` events; returns how many.
    pub fn take(&self, wanted: u32) -> u32 {
        let Some(left) = &self.left else {
            return wanted;
        };
        // The number guards nothing but itself.
        let before = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            (left > 0).then(|| left.saturating_sub(wanted.into()))
        });
        before.map_or(0, |left| {
            u32::try_from(left).map_or(wanted, |left| left.min(wanted))
        })
    }

    /// True where the number of events has an end.
    pub fn is_bounded(&self) -> bool {
        self.left.is_some()
    }

    /// True when no event may begin any more.
    pub fn is_used_up(&self) -> bool {
        let left = self.left.as_ref();
        left.is_some_and(|left| left.load(Ordering::Relaxed) == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_gone() {
        let events = Allowance::new(5);
        assert_eq!((events.take(1), events.take(3)), (1, 3));
        assert!(events.is_bounded() && !events.is_used_up());
        assert_eq!((events.take(2), events.take(2)), (1, 0));
        assert!(events.is_used_up());
    }

    #[test]
    fn more_than_a_u32_is_left() {
        let events = Allowance::new(1 << 33);
        assert_eq!(events.take(u32::MAX), u32::MAX);
        assert!(!events.is_used_up());
    }

    #[test]
    fn nothing_said_is_without_end() {
        let events = Allowance::new(0);
        assert_eq!(events.take(7), 7);
        assert!(!events.is_bounded() && !events.is_used_up());
    }
}
