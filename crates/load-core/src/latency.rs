//! One kind of latency in numbers: how many, and the percentiles that people ask for.
//!
//! Histograms are for merging; what leaves this program is a [`Latency`], made once at the end.

use measure::Histogram;
use serde::{Deserialize, Serialize};

/// Latencies of one kind, in milliseconds; all 0 where nothing was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Number of latencies.
    pub count: u64,
    /// Exact.
    pub mean_ms: f64,
    /// Exact.
    pub min_ms: f64,
    /// Median.
    pub p50_ms: f64,
    /// 75th percentile.
    pub p75_ms: f64,
    /// 90th percentile.
    pub p90_ms: f64,
    /// 95th percentile.
    pub p95_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// 99.9th percentile.
    pub p999_ms: f64,
    /// 99.99th percentile.
    pub p9999_ms: f64,
    /// Exact.
    pub max_ms: f64,
}

impl Latency {
    /// Mean, percentiles and maximum of a histogram, in milliseconds.
    pub fn of(counts: &Histogram) -> Latency {
        let percentile = |percent| counts.percentile_ms(percent);
        Latency {
            count: counts.count(),
            mean_ms: counts.mean_ms(),
            min_ms: counts.min_ms(),
            p50_ms: percentile(50.0),
            p75_ms: percentile(75.0),
            p90_ms: percentile(90.0),
            p95_ms: percentile(95.0),
            p99_ms: percentile(99.0),
            p999_ms: percentile(99.9),
            p9999_ms: percentile(99.99),
            max_ms: counts.max_ms(),
        }
    }

    /// The line of percentiles for people.
    pub fn text(&self) -> String {
        format!(
            "mean {:.3}, p50 {:.3}, p95 {:.3}, p99 {:.3}, p99.9 {:.3}, max {:.3}",
            self.mean_ms, self.p50_ms, self.p95_ms, self.p99_ms, self.p999_ms, self.max_ms
        )
    }
}
