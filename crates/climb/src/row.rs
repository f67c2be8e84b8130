//! One cell's figures, and the report of `load` that most of them come from.
//!
//! One row per cell, always: a cell that did not hold has a `limit` that says why, and null for
//! each figure that would be about another number of connections than the row's. The figures have
//! the names that `load --json` gives them. Memory stands as it was read (`pool_rss_bytes`,
//! `server_rss_bytes`: the peak of the resident set, next to its value before the clients came)
//! and as what follows from it per client.
//!
//! Reading is lenient (`load` may say more or less than we know of), writing is complete: every
//! field of a row is there, if only as null.

use crate::ladder::{Cell, Path};
use serde::{Deserialize, Serialize};

/// Statements of a script that are shown one by one, at most.
const STATEMENTS_SHOWN_MAX: usize = 3;

/// One cell.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Row {
    /// The step of the scenario that it belongs to; empty without one.
    pub(crate) step: String,
    pub(crate) path: String,
    pub(crate) connections: u32,
    pub(crate) connected: Option<u64>,
    pub(crate) statements_per_s: Option<f64>,
    pub(crate) mean_ms: Option<f64>,
    pub(crate) p50_ms: Option<f64>,
    pub(crate) p95_ms: Option<f64>,
    pub(crate) p99_ms: Option<f64>,
    pub(crate) p999_ms: Option<f64>,
    pub(crate) max_ms: Option<f64>,
    pub(crate) p99_over_mean: Option<f64>,
    pub(crate) statements: Option<u64>,
    pub(crate) failed_statements: Option<u64>,
    pub(crate) failed_connects: Option<u64>,
    /// Statements that succeeded within the clients' patience.
    pub(crate) goodput_per_s: Option<f64>,
    /// Statements sent, answered or not.
    pub(crate) offered_per_s: Option<f64>,
    /// Statements whose client hung up.
    pub(crate) gave_up: Option<u64>,
    pub(crate) reconnects: Option<u64>,
    /// Runs of the workload's script that came to their end: transactions, where it has one.
    pub(crate) events_per_s: Option<f64>,
    /// Latency of an event.
    pub(crate) event: Option<Latency>,
    /// Latencies of the script's statements, where it has several.
    pub(crate) by_statement: Vec<OfStatement>,
    pub(crate) connect_s: Option<f64>,
    pub(crate) duration_s: Option<f64>,
    /// Limit that stopped the cell; null if every connection was held.
    pub(crate) limit: Option<String>,
    pub(crate) errors: Vec<LoadError>,
    pub(crate) pool_rss_bytes: Option<u64>,
    pub(crate) pool_rss_before_bytes: Option<u64>,
    pub(crate) pool_bytes_per_client: Option<f64>,
    pub(crate) pool_cpu_s: Option<f64>,
    pub(crate) server_rss_bytes: Option<u64>,
    pub(crate) server_rss_before_bytes: Option<u64>,
    pub(crate) server_bytes_per_client: Option<f64>,
    pub(crate) server_cpu_s: Option<f64>,
    pub(crate) load_rss_bytes: Option<u64>,
    pub(crate) load_cpu_s: Option<f64>,
    /// Growth of the kernel's own memory, mostly sockets; of the whole machine.
    pub(crate) kernel_bytes: Option<u64>,
    /// Statements for each second of the server's CPU, while nobody connects.
    pub(crate) statements_per_server_cpu_s: Option<f64>,
    /// CPU for a statement, while nobody connects.
    pub(crate) server_us_per_statement: Option<f64>,
    pub(crate) pool_us_per_statement: Option<f64>,
    pub(crate) load_us_per_statement: Option<f64>,
}

/// Fields of `onramp load --json` that are used here.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct LoadReport {
    pub(crate) connected: Option<u64>,
    pub(crate) statements_per_s: Option<f64>,
    pub(crate) mean_ms: Option<f64>,
    pub(crate) p50_ms: Option<f64>,
    pub(crate) p95_ms: Option<f64>,
    pub(crate) p99_ms: Option<f64>,
    pub(crate) p999_ms: Option<f64>,
    pub(crate) max_ms: Option<f64>,
    pub(crate) statements: Option<u64>,
    pub(crate) failed_statements: Option<u64>,
    pub(crate) failed_connects: Option<u64>,
    pub(crate) goodput_per_s: Option<f64>,
    pub(crate) attempted_per_s: Option<f64>,
    pub(crate) gave_up: Option<u64>,
    pub(crate) reconnects: Option<u64>,
    pub(crate) events_per_s: Option<f64>,
    pub(crate) latencies: Latencies,
    pub(crate) by_statement: Vec<OfStatement>,
    pub(crate) connect_s: Option<f64>,
    pub(crate) duration_s: Option<f64>,
    pub(crate) limit: Option<String>,
    pub(crate) load_rss_bytes: Option<u64>,
    pub(crate) load_cpu_s: Option<f64>,
    pub(crate) errors: Vec<LoadError>,
}

/// Latencies by kind, as far as they are used here.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Latencies {
    pub(crate) event: Option<Latency>,
}

/// Latencies of one statement of the script.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct OfStatement {
    pub(crate) statement: String,
    #[serde(flatten)]
    pub(crate) latency: Latency,
}

/// Latencies of one kind, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Latency {
    pub(crate) count: u64,
    pub(crate) mean_ms: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p95_ms: f64,
    pub(crate) p99_ms: f64,
}

/// One kind of failure, with how often it came.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct LoadError {
    pub(crate) code: Option<i64>,
    pub(crate) sqlstate: Option<String>,
    pub(crate) message: Option<String>,
    pub(crate) count: u64,
    pub(crate) phase: Option<String>,
    /// Shortest and longest time from sending the statement, or from beginning to connect.
    pub(crate) age_min_ms: Option<f64>,
    pub(crate) age_max_ms: Option<f64>,
}

impl Row {
    pub(crate) fn of(cell: Cell) -> Self {
        let path = cell.path.name().to_owned();
        Self {
            path,
            connections: cell.connections,
            ..Self::default()
        }
    }

    /// Takes over what `load` says about connecting, and its figures if they are about this rung.
    pub(crate) fn take(&mut self, report: LoadReport, held: bool) {
        self.connected = report.connected;
        self.failed_connects = report.failed_connects;
        self.connect_s = finite(report.connect_s);
        // Of what load says of itself and what was seen from outside, the peak.
        self.load_rss_bytes = report.load_rss_bytes.max(self.load_rss_bytes);
        self.load_cpu_s = finite(report.load_cpu_s).or(self.load_cpu_s);
        self.errors = report.errors;
        if !held {
            return;
        }
        self.goodput_per_s = finite(report.goodput_per_s);
        self.gave_up = report.gave_up;
        self.reconnects = report.reconnects;
        self.offered_per_s = finite(report.attempted_per_s);
        self.events_per_s = finite(report.events_per_s);
        self.event = report.latencies.event;
        self.by_statement = report.by_statement;
        self.statements_per_s = finite(report.statements_per_s);
        self.mean_ms = finite(report.mean_ms);
        self.p50_ms = finite(report.p50_ms);
        self.p95_ms = finite(report.p95_ms);
        self.p99_ms = finite(report.p99_ms);
        self.p999_ms = finite(report.p999_ms);
        self.max_ms = finite(report.max_ms);
        self.statements = report.statements;
        self.failed_statements = report.failed_statements;
        self.duration_s = finite(report.duration_s);
        let ratio = |(p99, mean): (f64, f64)| (mean > 0.0).then_some(p99 / mean);
        self.p99_over_mean = self.p99_ms.zip(self.mean_ms).and_then(ratio);
    }

    /// Takes over the CPU seconds for a statement of server, proxy and load.
    pub(crate) fn take_cpu(&mut self, seconds: [Option<f64>; 3]) {
        let [server, pool, load] = seconds.map(|seconds| finite(seconds.map(|s| s * 1e6)));
        let some = server.filter(|us| *us > 0.0);
        self.statements_per_server_cpu_s = some.map(|us| 1e6 / us);
        self.server_us_per_statement = server;
        self.pool_us_per_statement = pool;
        self.load_us_per_statement = load;
    }

    /// Path of the row; None for a name from another version.
    pub(crate) fn path(&self) -> Option<Path> {
        Path::named(&self.path)
    }

    /// True if clients lost their patience.
    pub(crate) fn is_storm(&self) -> bool {
        self.gave_up.is_some_and(|count| count > 0)
    }

    /// True if the script's statements are few and unlike, so that each is worth a line.
    pub(crate) fn is_mixed(&self) -> bool {
        (2..=STATEMENTS_SHOWN_MAX).contains(&self.by_statement.len())
    }

    /// True if an event is a transaction.
    pub(crate) fn is_transaction(&self) -> bool {
        self.by_statement.iter().any(|of| of.statement == "BEGIN")
    }

    /// True if an event is more than a statement.
    pub(crate) fn has_long_events(&self) -> bool {
        self.by_statement.len() > 1
    }

    /// True if there are figures for this number of connections.
    pub(crate) fn has_figures(&self) -> bool {
        self.statements_per_s.is_some()
    }

    /// Statements and connects that failed; None if nothing ran.
    pub(crate) fn failed(&self) -> Option<u64> {
        match (self.failed_statements, self.failed_connects) {
            (None, None) => None,
            (statements, connects) => {
                Some(statements.unwrap_or_default() + connects.unwrap_or_default())
            }
        }
    }

    /// Bytes that one more client costs the process that holds the clients.
    pub(crate) fn holder_bytes_per_client(&self) -> Option<f64> {
        match self.path()? {
            Path::Onramp | Path::HaProxy | Path::Router => self.pool_bytes_per_client,
            Path::Direct | Path::ServerPool => self.server_bytes_per_client,
        }
    }
}

/// The growth of a process's memory per client; None if it did not grow or nobody was there.
pub(crate) fn bytes_per_client(before: u64, peak: u64, clients: u64) -> Option<f64> {
    (peak > before && clients > 0).then(|| (peak - before) as f64 / clients as f64)
}

fn finite(value: Option<f64>) -> Option<f64> {
    value.filter(|value| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_may_say_more_and_less() {
        let text = r#"{"connected": 5, "p99_ms": 3.0, "mean_ms": 2.0, "limit": null,
            "errors": [{"code": 1040, "count": 7, "phase": "connect", "more": []}], "new": {}}"#;
        let report: LoadReport = serde_json::from_str(text).unwrap();
        assert_eq!(report.errors[0].code, Some(1040));
        let mut row = Row::of(Cell {
            connections: 5,
            path: Path::Onramp,
        });
        row.take(report.clone(), true);
        assert_eq!((row.connected, row.p99_over_mean), (Some(5), Some(1.5)));
        let mut row = Row::of(Cell {
            connections: 9,
            path: Path::Onramp,
        });
        row.take(report, false);
        assert_eq!((row.connected, row.p99_ms), (Some(5), None));
    }

    #[test]
    fn memory_per_client_is_the_growth() {
        assert_eq!(bytes_per_client(1_000, 6_000, 10), Some(500.0));
        assert_eq!(bytes_per_client(6_000, 1_000, 10), None);
        assert_eq!(bytes_per_client(0, 1_000, 0), None);
    }
}
