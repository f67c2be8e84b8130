//! Latencies: 1 microsecond to 1 hour, three significant digits, constant memory.
//!
//! A thin coat over hdrhistogram that fixes range and precision, so that any two can be merged, and
//! speaks in durations and milliseconds. Below the range counts as 1 microsecond, above it as one
//! hour: nothing recorded is ever lost. The largest and smallest values and the sum are kept to the
//! nanosecond, so that a mean has no error of rounding.
//!
//! Size: 23 * 1024 counters of 8 bytes from the first latency on, a few bytes before.

use std::time::Duration;

/// The longest latency that is told from longer ones, in microseconds.
const HIGHEST_US: u64 = 3_600_000_000;
const DIGITS: u8 = 3;

/// Counts of latencies by their length.
#[derive(Clone, Debug)]
pub struct Histogram {
    /// `None` until something is counted.
    counts: Option<hdrhistogram::Histogram<u64>>,
    sum_ns: u128,
    min_ns: u64,
    max_ns: u64,
}

/// Counts of nothing.
fn empty() -> hdrhistogram::Histogram<u64> {
    hdrhistogram::Histogram::new_with_bounds(1, HIGHEST_US, DIGITS)
        .expect("1 us to 1 h with three digits is a range hdrhistogram takes")
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram::new()
    }
}

impl Histogram {
    /// An empty histogram.
    #[must_use]
    pub fn new() -> Histogram {
        Histogram {
            counts: None,
            sum_ns: 0,
            min_ns: u64::MAX,
            max_ns: 0,
        }
    }

    /// Counts one latency.
    ///
    /// # Panics
    /// Never: the bounds are constants that hdrhistogram takes.
    pub fn record(&mut self, latency: Duration) {
        let ns = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.counts
            .get_or_insert_with(empty)
            .saturating_record((ns / 1_000).max(1));
        self.sum_ns += u128::from(ns);
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    /// Adds what another one counted.
    pub fn merge(&mut self, other: &Histogram) {
        match (&mut self.counts, &other.counts) {
            (_, None) => return,
            (counts @ None, _) => counts.clone_from(&other.counts),
            // Both have the same bounds, so nothing can be out of range.
            (Some(own), Some(others)) => {
                let _ = own.add(others);
            }
        }
        self.sum_ns += other.sum_ns;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Each bucket that is not empty: its largest length in microseconds, and how many are in it.
    pub fn buckets_us(&self) -> impl Iterator<Item = (u64, u64)> {
        let counts = self.counts.iter().flat_map(|counts| counts.iter_recorded());
        counts.map(|step| (step.value_iterated_to(), step.count_at_value()))
    }

    /// The sum, the shortest and the longest latency in nanoseconds; 0 where nothing was counted.
    #[must_use]
    pub fn exact_ns(&self) -> (u128, u64, u64) {
        match self.count() {
            0 => (0, 0, 0),
            _ => (self.sum_ns, self.min_ns, self.max_ns),
        }
    }

    /// The histogram that [`Histogram::buckets_us`] and [`Histogram::exact_ns`] were read from.
    ///
    /// # Panics
    /// Never: the bounds are constants that hdrhistogram takes.
    pub fn restored(
        buckets: impl Iterator<Item = (u64, u64)>,
        (sum_ns, min_ns, max_ns): (u128, u64, u64),
    ) -> Histogram {
        let mut histogram = Histogram::new();
        for (length, count) in buckets {
            histogram
                .counts
                .get_or_insert_with(empty)
                .saturating_record_n(length.max(1), count);
        }
        if histogram.counts.is_some() {
            (histogram.sum_ns, histogram.min_ns, histogram.max_ns) = (sum_ns, min_ns, max_ns);
        }
        histogram
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = Histogram::new();
    }

    /// Latencies counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.as_ref().map_or(0, hdrhistogram::Histogram::len)
    }

    /// The latency that `percent` (0 to 100) of all do not exceed, in milliseconds; 0 when nothing
    /// was counted.
    #[must_use]
    pub fn percentile_ms(&self, percent: f64) -> f64 {
        let Some(counts) = &self.counts else {
            return 0.0;
        };
        let us = counts.value_at_quantile(percent / 100.0);
        // A bucket's upper edge may lie above the largest value that fell into it.
        (us as f64 / 1e3).min(self.max_ms())
    }

    /// Every length that was counted, in milliseconds to three digits, with how often; the shortest
    /// first.
    pub fn lengths_ms(&self) -> impl Iterator<Item = (f64, u64)> {
        let counts = self.counts.iter().flat_map(|counts| counts.iter_recorded());
        counts.map(|step| (step.value_iterated_to() as f64 / 1e3, step.count_at_value()))
    }

    /// The mean in milliseconds; 0 when nothing was counted.
    #[must_use]
    pub fn mean_ms(&self) -> f64 {
        if self.count() == 0 {
            return 0.0;
        }
        self.sum_ms() / self.count() as f64
    }

    /// The sum in milliseconds.
    #[must_use]
    pub fn sum_ms(&self) -> f64 {
        self.sum_ns as f64 / 1e6
    }

    /// The largest in milliseconds; 0 when nothing was counted.
    #[must_use]
    pub fn max_ms(&self) -> f64 {
        self.max_ns as f64 / 1e6
    }

    /// The smallest in milliseconds; 0 when nothing was counted.
    #[must_use]
    pub fn min_ms(&self) -> f64 {
        if self.count() == 0 {
            return 0.0;
        }
        self.min_ns as f64 / 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_come_with_how_often_they_were_counted() {
        let mut histogram = Histogram::new();
        assert_eq!(histogram.lengths_ms().count(), 0);
        for ms in [5, 1, 5] {
            histogram.record(Duration::from_millis(ms));
        }
        let lengths: Vec<_> = histogram.lengths_ms().collect();
        assert_eq!(lengths.len(), 2);
        assert_eq!((lengths[0].1, lengths[1].1), (1, 2));
        assert!((lengths[0].0 - 1.0).abs() < 0.01 && (lengths[1].0 - 5.0).abs() < 0.01);
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() <= b.abs() * 0.002
    }

    #[test]
    fn percentiles_have_three_digits() {
        let mut all = Histogram::new();
        for us in 1..=10_000u64 {
            all.record(Duration::from_micros(us));
        }
        assert!(near(all.percentile_ms(50.0), 5.0));
        assert!(near(all.percentile_ms(99.0), 9.9));
        assert!(near(all.percentile_ms(99.9), 9.99));
        assert!(near(all.mean_ms(), 5.0005));
        assert_eq!(
            (all.min_ms(), all.max_ms(), all.count()),
            (0.001, 10.0, 10_000)
        );
        assert!(all.percentile_ms(100.0) <= all.max_ms());
    }

    #[test]
    fn nothing_recorded_is_lost_outside_the_range() {
        let mut edges = Histogram::new();
        edges.record(Duration::ZERO);
        edges.record(Duration::from_secs(7200));
        assert_eq!(edges.count(), 2);
        assert_eq!(edges.max_ms(), 7_200_000.0);
        assert_eq!(edges.min_ms(), 0.0);
    }

    #[test]
    fn merging_is_recording_both() {
        let (mut a, mut b) = (Histogram::new(), Histogram::new());
        a.record(Duration::from_millis(1));
        b.record(Duration::from_millis(3));
        a.merge(&b);
        a.merge(&Histogram::new());
        assert_eq!((a.count(), a.min_ms(), a.max_ms()), (2, 1.0, 3.0));
        assert_eq!((a.mean_ms(), a.sum_ms()), (2.0, 4.0));
        a.clear();
        assert_eq!((a.count(), a.percentile_ms(99.0)), (0, 0.0));
        assert_eq!((a.mean_ms(), a.min_ms(), a.max_ms()), (0.0, 0.0, 0.0));
    }
}
