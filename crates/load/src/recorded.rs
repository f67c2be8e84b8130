//! Histograms as they stand in the JSON of a run, so that runs can be merged exactly.
//!
//! A percentile of several machines cannot be computed from theirs; the counts behind them can be
//! added. A histogram is written as its bucket's lengths and counts, as they are: reading it back
//! gives the histogram that was written.

use load_core::latency::Latency;
use measure::Histogram;
use serde::{Deserialize, Serialize};

/// The counts behind one kind of latency.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// The sum, the shortest and the longest, in nanoseconds; 0 where nothing was counted.
    pub sum_ns: u64,
    /// See `sum_ns`.
    pub min_ns: u64,
    /// See `sum_ns`.
    pub max_ns: u64,
    /// `LENGTH:COUNT` for each bucket that is not empty, with blanks between: the largest length of
    /// the bucket in microseconds, and how many fell into it.
    pub buckets_us: String,
}

impl Recorded {
    pub(crate) fn of(histogram: &Histogram) -> Recorded {
        let buckets = histogram.buckets_us();
        let buckets: Vec<String> = buckets
            .map(|(length, count)| format!("{length}:{count}"))
            .collect();
        let (sum, min, max) = histogram.exact_ns();
        Recorded {
            sum_ns: u64::try_from(sum).unwrap_or(u64::MAX),
            min_ns: min,
            max_ns: max,
            buckets_us: buckets.join(" "),
        }
    }

    /// The histogram that was written.
    ///
    /// # Errors
    /// A sentence that says what is not of the form.
    pub(crate) fn histogram(&self) -> Result<Histogram, String> {
        let mut buckets = Vec::new();
        for part in self.buckets_us.split_ascii_whitespace() {
            let pair = part
                .split_once(':')
                .and_then(|(length, count)| Some((length.parse().ok()?, count.parse().ok()?)));
            let pair: (u64, u64) = pair.ok_or_else(|| {
                format!("'{part}' is no bucket of a histogram; expected LENGTH:COUNT")
            })?;
            buckets.push(pair);
        }
        let exact = (self.sum_ns.into(), self.min_ns, self.max_ns);
        Ok(Histogram::restored(buckets.into_iter(), exact))
    }

    /// Adds another one's counts.
    pub(crate) fn merge(&mut self, other: &Recorded) -> Result<(), String> {
        let mut histogram = self.histogram()?;
        histogram.merge(&other.histogram()?);
        *self = Recorded::of(&histogram);
        Ok(())
    }

    /// The figures that follow from it.
    pub(crate) fn latency(&self) -> Result<Latency, String> {
        Ok(Latency::of(&self.histogram()?))
    }
}

/// The histograms of a run, by kind of latency as in `latencies`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histograms {
    /// All statements.
    pub statement: Recorded,
    /// Statements that returned rows.
    pub read: Recorded,
    /// Statements that changed rows.
    pub write: Recorded,
    /// Statements that did neither.
    pub other: Recorded,
    /// Events.
    pub event: Recorded,
    /// Connecting for the first time.
    pub connect: Recorded,
    /// Latencies of reconnects.
    pub reconnect: Recorded,
    /// Lateness of the generator.
    pub lag: Recorded,
    /// By the workload's statements, in the order of `by_statement`.
    pub by_statement: Vec<Recorded>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn filled(step: u64, count: u64) -> Histogram {
        let mut histogram = Histogram::new();
        (1..=count).for_each(|i| histogram.record(Duration::from_nanos(i * i * step)));
        histogram
    }

    #[test]
    fn what_is_read_back_is_what_was_written() {
        let histogram = filled(12_345, 3_000);
        let read = Recorded::of(&histogram).histogram().unwrap();
        assert_eq!(Latency::of(&read), Latency::of(&histogram));
        let empty = Recorded::of(&Histogram::new());
        assert_eq!(empty, Recorded::default());
        assert_eq!(empty.latency().unwrap(), Latency::default());
    }

    /// The percentiles of two machines together are those of one that had seen it all.
    #[test]
    fn merging_is_exact() {
        let (a, b) = (filled(9_000, 2_000), filled(777, 5_000));
        let mut together = a.clone();
        together.merge(&b);
        let mut merged = Recorded::of(&a);
        merged.merge(&Recorded::of(&b)).unwrap();
        assert_eq!(merged, Recorded::of(&together));
        assert_eq!(merged.latency().unwrap(), Latency::of(&together));
    }

    #[test]
    fn what_is_no_bucket_is_refused() {
        for wrong in ["5", "a:1", "5:", "5:-1"] {
            let recorded = Recorded {
                buckets_us: wrong.to_owned(),
                ..Recorded::default()
            };
            assert!(recorded.histogram().unwrap_err().contains(wrong));
        }
    }
}
