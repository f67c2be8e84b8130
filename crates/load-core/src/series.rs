//! The run second by second: one [`Point`] each, for the JSON, the CSV, the page and the screen.
//!
//! A point is made of what all groups counted in that second, and of how things stand at its end.

use crate::control::Gauges;
use crate::stats::Stats;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// One second of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Its end, in seconds since measuring began.
    pub t_s: f64,
    /// Statements that succeeded, each second.
    pub statements_per_s: f64,
    /// 95th percentile of their latencies.
    pub p95_ms: f64,
    /// Statements that failed, in the whole interval.
    pub failed: u64,
    /// Statements that succeeded in time, each second.
    pub goodput_per_s: f64,
    /// Events that ran to their end, each second.
    pub events_per_s: f64,
    /// Events that arrived in the open loop, each second.
    pub arrived_per_s: f64,
    /// Mean, median, 99th percentile and largest latency of statements.
    pub mean_ms: f64,
    /// Median.
    pub p50_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// The largest.
    pub max_ms: f64,
    /// Statements that clients gave up, in the whole interval.
    pub gave_up: u64,
    /// Arrivals that found the line full or lost their patience in it, in the whole interval.
    pub shed: u64,
    /// Connections that were opened again, in the whole interval.
    pub reconnects: u64,
    /// Attempts to connect that failed, in the whole interval.
    pub failed_connects: u64,
    /// Connections that are open, at the end of the interval.
    pub connected: u64,
    /// Connections that wait for an answer.
    pub executing: u64,
    /// Events that wait for an idle connection.
    pub waiting: u64,
    /// CPU time of this process over the cores it can use: 0 to 1.
    pub cpu_share: f64,
}

impl Point {
    /// Adds the same second of another machine. Percentiles of both are not to be had without their
    /// histograms: the larger one stands.
    pub fn merge(&mut self, other: &Point) {
        let (own, others) = (self.statements_per_s, other.statements_per_s);
        if own + others > 0.0 {
            self.mean_ms = (self.mean_ms * own + other.mean_ms * others) / (own + others);
        }
        for (sum, part) in [
            (&mut self.statements_per_s, other.statements_per_s),
            (&mut self.goodput_per_s, other.goodput_per_s),
            (&mut self.events_per_s, other.events_per_s),
            (&mut self.arrived_per_s, other.arrived_per_s),
        ] {
            *sum += part;
        }
        for (sum, part) in [
            (&mut self.failed, other.failed),
            (&mut self.gave_up, other.gave_up),
            (&mut self.shed, other.shed),
            (&mut self.reconnects, other.reconnects),
            (&mut self.failed_connects, other.failed_connects),
            (&mut self.connected, other.connected),
            (&mut self.executing, other.executing),
            (&mut self.waiting, other.waiting),
        ] {
            *sum += part;
        }
        for (largest, one) in [
            (&mut self.p50_ms, other.p50_ms),
            (&mut self.p95_ms, other.p95_ms),
            (&mut self.p99_ms, other.p99_ms),
            (&mut self.max_ms, other.max_ms),
            (&mut self.cpu_share, other.cpu_share),
        ] {
            *largest = largest.max(one);
        }
    }

    /// Counts of `length` up to `at` after the start; `cores` are those that this program can use.
    pub fn new(
        at: Duration,
        length: Duration,
        counts: &Stats,
        gauges: &Gauges,
        cpu: Duration,
        cores: f64,
    ) -> Point {
        let seconds = length.as_secs_f64().max(1e-9);
        let per_second = |count: u64| count as f64 / seconds;
        let latency = counts.statement_latency();
        Point {
            t_s: (at.as_secs_f64() * 1e3).round() / 1e3,
            statements_per_s: per_second(counts.successes()),
            p95_ms: latency.percentile_ms(95.0),
            failed: counts.failed,
            goodput_per_s: per_second(counts.in_time),
            events_per_s: per_second(counts.events),
            arrived_per_s: per_second(counts.arrived),
            mean_ms: latency.mean_ms(),
            p50_ms: latency.percentile_ms(50.0),
            p99_ms: latency.percentile_ms(99.0),
            max_ms: latency.max_ms(),
            gave_up: counts.gave_up,
            shed: counts.shed + counts.expired,
            reconnects: counts.reconnects,
            failed_connects: counts.failed_connects,
            connected: gauges.connected,
            executing: gauges.executing,
            waiting: gauges.waiting,
            cpu_share: cpu.as_secs_f64() / seconds / cores,
        }
    }
}
