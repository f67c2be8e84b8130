//! The result for people (stderr) and for programs (JSON).
//!
//! Latencies are those of statements: from just before the write to the reply's last byte, only of
//! those that succeeded. Rates are of the measured time alone; counts of failures are of the whole
//! run, from the first connection to the last reply.
//!
//! The first fields of [`Summary`] have the names of a row of climb.json.

use crate::crew::Layout;
use crate::errors::{EADDRNOTAVAIL, EMFILE, ErrorCount, ErrorTable, Phase};
use crate::group::Plan;
use crate::options::LoadArgs;
use crate::stats::{Stats, Tally};
use measure::Histogram;
use serde::Serialize;
use std::fs;
use std::path::Path;
use wire::dsn::Dsn;

/// Above this share of its cores the generator may be what limits the result.
const BUSY_SHARE: f64 = 0.85;

/// What the main thread gathered.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    /// While connecting and holding.
    pub(crate) outside: Stats,
    /// From the start to the order to stop.
    pub(crate) window: Stats,
    /// After the order to stop.
    pub(crate) drain: Stats,
    pub(crate) series: Vec<Point>,
    pub(crate) connected: u64,
    pub(crate) connect_s: f64,
    pub(crate) seconds: f64,
    pub(crate) cpu_s: f64,
    pub(crate) rss_before_bytes: u64,
    pub(crate) rss_idle_bytes: u64,
    pub(crate) rss_bytes: u64,
    pub(crate) tally: Tally,
    pub(crate) unfinished: u64,
}

impl Measured {
    /// Latencies of all events that began in the measured time.
    pub(crate) fn event_latency(&self) -> Histogram {
        let mut all = self.window.event_latency.clone();
        all.merge(&self.drain.event_latency);
        all
    }

    fn statement_latency(&self) -> Histogram {
        let mut all = self.window.statement_latency.clone();
        all.merge(&self.drain.statement_latency);
        all
    }

    fn errors(&self) -> ErrorTable {
        let mut all = ErrorTable::default();
        for stats in [&self.outside, &self.window, &self.drain] {
            all.merge(stats.errors.clone());
        }
        all
    }

    fn sum(&self, count: impl Fn(&Stats) -> u64) -> u64 {
        count(&self.outside) + count(&self.window) + count(&self.drain)
    }
}

/// One interval of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Its end, in seconds since measuring began.
    pub t_s: f64,
    /// Statements that succeeded, each second.
    pub statements_per_s: f64,
    /// 95th percentile of their latencies.
    pub p95_ms: f64,
    /// Statements that failed, in the whole interval.
    pub failed: u64,
}

/// A run's result, as `--json` writes it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Connections wanted.
    pub connections: u32,
    /// Connections that stood at the end of the ramp.
    pub connected: u64,
    /// Statements that succeeded, each second of the measured time.
    pub statements_per_s: f64,
    /// Events that ran to their end, each second of the measured time.
    pub events_per_s: f64,
    /// Mean latency of a statement.
    pub mean_ms: f64,
    /// Median latency.
    pub p50_ms: f64,
    /// 95th percentile.
    pub p95_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// 99.9th percentile.
    pub p999_ms: f64,
    /// The longest latency.
    pub max_ms: f64,
    /// Statements that got a reply, good or bad, and those that were lost with their connection;
    /// also those that ended after the measured time.
    pub statements: u64,
    /// Those of them that failed for good.
    pub failed_statements: u64,
    /// Attempts to connect that failed.
    pub failed_connects: u64,
    /// How long the ramp took.
    pub connect_s: f64,
    /// The measured time.
    pub duration_s: f64,
    /// What kept it from opening all connections, or from running.
    pub limit: Option<String>,
    /// Resident memory of this process at the end of the measured time.
    pub load_rss_bytes: u64,
    /// CPU time of this process within the measured time.
    pub load_cpu_s: f64,
    /// What went wrong, by phase and number.
    pub errors: Vec<ErrorCount>,
    /// The run, interval by interval.
    pub series: Vec<Point>,
    /// The workload's name.
    pub workload: &'static str,
    /// The server, without its password.
    pub target: String,
    /// How this process was called, without the password.
    pub command: String,
    /// Statements that failed with an error after which their event was run again.
    pub ignored_errors: u64,
    /// Connections that were lost while they were open.
    pub lost_connections: u64,
    /// Lost connections that were opened again.
    pub reconnects: u64,
    /// Statements that succeeded after the measured time.
    pub drained_statements: u64,
    /// Statements that had no reply when waiting for them ended.
    pub unfinished_statements: u64,
    /// Resident memory that each idle connection added.
    pub rss_bytes_per_connection: u64,
    /// Threads that held the connections.
    pub groups: u32,
}

impl Summary {
    pub(crate) fn new(
        args: &LoadArgs,
        plan: &Plan,
        layout: &Layout,
        measured: &Measured,
        failure: Option<String>,
    ) -> Summary {
        let latency = measured.statement_latency();
        let rate = |count: u64| match measured.seconds {
            seconds if seconds > 0.0 => count as f64 / seconds,
            _ => 0.0,
        };
        let failed = measured.sum(|stats| stats.failed);
        let ignored = measured.sum(|stats| stats.ignored);
        let grown = measured
            .rss_idle_bytes
            .saturating_sub(measured.rss_before_bytes);
        Summary {
            connections: args.connections,
            connected: measured.connected,
            statements_per_s: rate(measured.window.successes()),
            events_per_s: rate(measured.window.events),
            mean_ms: latency.mean_ms(),
            p50_ms: latency.percentile_ms(50.0),
            p95_ms: latency.percentile_ms(95.0),
            p99_ms: latency.percentile_ms(99.0),
            p999_ms: latency.percentile_ms(99.9),
            max_ms: latency.max_ms(),
            statements: measured.sum(Stats::successes) + failed + ignored,
            failed_statements: failed,
            failed_connects: measured.sum(|stats| stats.failed_connects),
            connect_s: measured.connect_s,
            duration_s: measured.seconds,
            limit: failure.or_else(|| limit(args, plan, layout, measured)),
            load_rss_bytes: measured.rss_bytes.max(measured.rss_idle_bytes),
            load_cpu_s: measured.cpu_s,
            errors: measured.errors().sorted(),
            series: measured.series.clone(),
            workload: args.workload.name(),
            target: args.target.to_string(),
            command: command_line(std::env::args()),
            ignored_errors: ignored,
            lost_connections: measured.sum(|stats| stats.lost),
            reconnects: measured.sum(|stats| stats.reconnects),
            drained_statements: measured.drain.successes(),
            unfinished_statements: measured.unfinished,
            rss_bytes_per_connection: grown.checked_div(measured.connected).unwrap_or(0),
            groups: layout.groups,
        }
    }

    /// Writes the JSON, if a file is wanted.
    ///
    /// # Errors
    /// A sentence with the file's name and the system's reason.
    pub(crate) fn write(&self, path: Option<&Path>) -> Result<(), String> {
        let Some(path) = path else {
            return Ok(());
        };
        let mut json = serde_json::to_string_pretty(self).map_err(|e| e.to_string())?;
        json.push('\n');
        fs::write(path, json).map_err(|e| format!("--json {}: {e}", path.display()))
    }

    /// The result for people.
    pub(crate) fn text(&self, measured: &Measured, layout: &Layout) -> String {
        let mut lines = vec![format!(
            "connects: {} ok, {} failed, {:.1} s",
            self.connected, self.failed_connects, self.connect_s
        )];
        if self.duration_s > 0.0 {
            self.put_run(&mut lines, measured, layout);
        }
        for row in &self.errors {
            let phase = match row.phase {
                Phase::Connect => "connecting",
                Phase::Statement => "executing",
            };
            let state = match row.sqlstate.as_str() {
                "" => String::new(),
                state => format!(" ({state})"),
            };
            let ErrorCount {
                code,
                message,
                count,
                ..
            } = row;
            lines.push(format!(
                "error {code}{state} x {count} while {phase}: {message}"
            ));
        }
        if let Some(limit) = &self.limit {
            lines.push(format!("limit: {limit}"));
        }
        lines
            .into_iter()
            .map(|line| format!("load: {line}\n"))
            .collect()
    }

    fn put_run(&self, lines: &mut Vec<String>, measured: &Measured, layout: &Layout) {
        let ratio = if self.mean_ms > 0.0 {
            self.p99_ms / self.mean_ms
        } else {
            0.0
        };
        lines.push(format!(
            "statements: {:.0} per second; ms: mean {:.3}, p50 {:.3}, p95 {:.3}, p99 {:.3}, \
             p99.9 {:.3}, max {:.3}; p99/mean {ratio:.2}",
            self.statements_per_s,
            self.mean_ms,
            self.p50_ms,
            self.p95_ms,
            self.p99_ms,
            self.p999_ms,
            self.max_ms
        ));
        lines.push(format!(
            "statements: {} succeeded, {} failed, {} ignored; {} connections lost, {} reopened",
            measured.sum(Stats::successes),
            self.failed_statements,
            self.ignored_errors,
            self.lost_connections,
            self.reconnects
        ));
        if self.unfinished_statements > 0 {
            lines.push(format!(
                "statements: {} had no reply when the run ended and are counted neither as \
                 succeeded nor as failed (--end-timeout)",
                self.unfinished_statements
            ));
        }
        let usable = f64::from(layout.groups.min(layout.cores).max(1));
        let share = self.load_cpu_s / (self.duration_s * usable);
        lines.push(format!(
            "this generator: {:.1} s of CPU in {:.1} s ({:.0} % of {usable} cores), {:.1} MiB, \
             {} bytes for each idle connection",
            self.load_cpu_s,
            self.duration_s,
            share * 100.0,
            self.load_rss_bytes as f64 / f64::from(1 << 20),
            self.rss_bytes_per_connection
        ));
        if share > BUSY_SHARE {
            lines.push(
                "warning: the generator itself was busy nearly all the time: the server may be \
                 capable of more; use another machine or more cores for the generator"
                    .to_owned(),
            );
        }
    }
}

/// Why fewer connections stand than were wanted.
fn limit(args: &LoadArgs, plan: &Plan, layout: &Layout, measured: &Measured) -> Option<String> {
    if measured.connected >= u64::from(args.connections) {
        return None;
    }
    let had = format!(
        "{} of {} connections stand",
        measured.connected, args.connections
    );
    let errors = measured.errors();
    let Some(first) = errors.of(Phase::Connect).into_iter().next() else {
        return Some(format!(
            "{had}: the run was stopped while it was connecting"
        ));
    };
    let advice = match (first.code, first.sqlstate.as_str()) {
        (code, "") if code == EMFILE.unsigned_abs() => {
            format!(
                "; {}; raise the limit (ulimit -n) or use --groups",
                layout.reason()
            )
        }
        (code, "") if code == EADDRNOTAVAIL.unsigned_abs() => format!(
            "; {}; give more --source-addresses, or widen net.ipv4.ip_local_port_range",
            plan.sources.arithmetic()
        ),
        (1040 | 1203 | 1226, _) => "; raise the server's limit on connections".to_owned(),
        (1045 | 1130 | 1044, _) if !plan.sources.addresses.is_empty() => format!(
            "; connections come from {} addresses: the account must be allowed from all of them \
             ('user'@'%')",
            plan.sources.addresses.len()
        ),
        _ => String::new(),
    };
    let who = if first.sqlstate.is_empty() {
        "the system"
    } else {
        "the server"
    };
    let code = match first.sqlstate.as_str() {
        "" => String::new(),
        state => format!("error {} ({state}): ", first.code),
    };
    Some(format!(
        "{had}: {who} said {} times: {code}{}{advice}",
        first.count, first.message
    ))
}

/// The command line with the target's password left out.
fn command_line(words: impl Iterator<Item = String>) -> String {
    let masked = words.map(|word| {
        let (option, value) = match word.split_once("mysql://") {
            Some((option, _)) => (option, &word[option.len()..]),
            None => return word.clone(),
        };
        match Dsn::parse(value) {
            Ok(dsn) => format!("{option}{dsn}"),
            Err(_) => format!("{option}mysql://..."),
        }
    });
    masked.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
