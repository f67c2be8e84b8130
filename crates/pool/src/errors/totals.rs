//! Counts of the server's errors by number, over all groups.
//!
//! The problem: numbers of errors become values of a label, and whoever may raise errors chooses
//! their numbers. The mechanism: a table of [`ERRORS_MAX`] places, which all groups share; a number
//! takes one with its first error. Invariant: a count never falls, and no number changes its place.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Numbers of the servers' errors that are counted one by one; others share one place.
pub(crate) const ERRORS_MAX: usize = 100;

/// Errors of the server by number, over all groups. A number has a place from its first error on;
/// when all places are taken, the numbers that come after share one.
#[derive(Debug)]
pub(crate) struct ErrorCounts {
    /// A number, 0 while nobody has the place, and how often it came.
    places: Box<[(AtomicU32, AtomicU64)]>,
    others: AtomicU64,
}

impl Default for ErrorCounts {
    fn default() -> ErrorCounts {
        ErrorCounts {
            places: (0..ERRORS_MAX).map(|_| Default::default()).collect(),
            others: AtomicU64::new(0),
        }
    }
}

impl ErrorCounts {
    pub(crate) fn count(&self, number: u16) {
        let number = u32::from(number);
        for (place, count) in &self.places {
            let taken = match place.load(Relaxed) {
                0 => match place.compare_exchange(0, number, Relaxed, Relaxed) {
                    Ok(_) => number,
                    Err(other) => other,
                },
                taken => taken,
            };
            if taken == number {
                count.fetch_add(1, Relaxed);
                return;
            }
        }
        self.others.fetch_add(1, Relaxed);
    }

    /// Numbers with their counts in the order of the numbers, and how many have no place.
    pub(crate) fn read(&self) -> (BTreeMap<u32, u64>, u64) {
        let taken = (self.places.iter())
            .map(|(number, count)| (number.load(Relaxed), count.load(Relaxed)))
            .take_while(|(number, _)| *number != 0);
        (taken.collect(), self.others.load(Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_errors_beyond_the_bound_share_a_place() {
        let errors = ErrorCounts::default();
        let most = u16::try_from(ERRORS_MAX).unwrap();
        for number in 1000..1000 + most + 7 {
            errors.count(number);
        }
        errors.count(1000);
        errors.count(1000 + most);
        let (numbers, others) = errors.read();
        assert_eq!((numbers.len(), others), (ERRORS_MAX, 8));
        assert_eq!((numbers[&1000], numbers[&1001]), (2, 1));
    }
}
