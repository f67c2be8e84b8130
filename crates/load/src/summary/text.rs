//! The result for people, on stderr.
//!
//! What always matters comes first; lines on special things are there only where there is something
//! to tell. The JSON has all of it.

use super::{Measured, Summary, share};
use crate::proof::Verdict;
use crate::thresholds::Checked;
use load_core::errors::ErrorCount;
use load_core::layout::Layout;
use load_core::stats::Stats;

impl Summary {
    /// The result for people.
    pub(crate) fn text(&self, measured: &Measured, layout: &Layout) -> String {
        let mut lines = vec![format!(
            "connects: {} ok, {} failed, {:.1} s",
            self.connected, self.failed_connects, self.connect_s
        )];
        if self.duration_s > 0.0 {
            self.put_run(&mut lines, measured, layout);
        }
        lines.extend(self.errors.iter().map(ErrorCount::text));
        lines.extend(self.proof.iter().flat_map(Verdict::lines));
        lines.extend(self.thresholds.iter().map(Checked::text));
        if let Some(limit) = &self.limit {
            lines.push(format!("limit: {limit}"));
        }
        lines
            .into_iter()
            .map(|line| format!("load: {line}\n"))
            .collect()
    }

    /// Result of so many runs together, for people.
    pub(crate) fn merged_text(&self, runs: usize) -> String {
        let latency = &self.latencies.statement;
        let mut lines = vec![
            format!(
                "{runs} runs of {}: {} connections, {:.1} s",
                self.workload, self.connected, self.duration_s
            ),
            format!(
                "statements: {:.0} per second, {} in all; ms: {}",
                self.statements_per_s,
                self.statements,
                latency.text()
            ),
            format!(
                "statements: {} failed, {} ignored; {} connections lost, {} reopened",
                self.failed_statements, self.ignored_errors, self.lost_connections, self.reconnects
            ),
        ];
        lines.push(format!(
            "events: {:.0} per second; ms: {}",
            self.events_per_s,
            self.latencies.event.text()
        ));
        lines.extend(self.outage.text());
        self.put_kinds(&mut lines);
        lines.extend(self.errors.iter().map(ErrorCount::text));
        lines.extend(self.proof.iter().flat_map(Verdict::lines));
        lines.extend(self.thresholds.iter().map(Checked::text));
        if let Some(limit) = &self.limit {
            lines.push(format!("limit: {limit}"));
        }
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    fn put_run(&self, lines: &mut Vec<String>, measured: &Measured, layout: &Layout) {
        let ratio = share(self.p99_ms, self.mean_ms);
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
        lines.extend(self.outage.text());
        self.put_kinds(lines);
        let each = self.rss_bytes_per_connection;
        let each = each.map(|bytes| format!(", {bytes} bytes for each idle connection"));
        lines.push(format!(
            "this generator: {:.1} s of CPU in {:.1} s ({:.0} % of {} cores), {:.1} MiB{}",
            self.load_cpu_s,
            self.duration_s,
            self.load_cpu_share * 100.0,
            layout.usable_cores(),
            self.load_rss_bytes as f64 / f64::from(1 << 20),
            each.unwrap_or_default()
        ));
        let warnings = self.warnings.iter();
        lines.extend(warnings.map(|warning| format!("warning: {warning}")));
    }

    /// Lines that are there only where there is something to tell.
    fn put_kinds(&self, lines: &mut Vec<String>) {
        if let Some(tpmc) = self.tpmc {
            lines.push(format!(
                "tpcc: {tpmc:.1} new orders committed each minute (tpmC)"
            ));
        }
        if let Some(in_time) = self.in_time_ms {
            lines.push(format!(
                "goodput: {:.0} statements per second answered within {in_time} ms, of {:.0} \
                 attempted; {} given up",
                self.goodput_per_s, self.attempted_per_s, self.gave_up
            ));
        }
        if self.arrived_per_s > 0.0 {
            lines.push(format!(
                "open loop: {:.0} events per second arrived, {:.0} were done; {} shed, {} expired, \
                 {} waiting at the end",
                self.arrived_per_s, self.events_per_s, self.shed, self.expired, self.waiting
            ));
        }
        let latencies = &self.latencies;
        let classes = [
            ("reads", &latencies.read),
            ("writes", &latencies.write),
            ("others", &latencies.other),
        ];
        // Of a single class the line of all statements has said it.
        let several = classes.iter().filter(|(_, one)| one.count > 0).count() > 1;
        let statements = self.by_statement.iter();
        let kinds = classes
            .into_iter()
            .filter(|_| several)
            .chain(statements.map(|one| (&*one.statement, &one.latency)))
            .chain([
                ("connects", &latencies.connect),
                ("reconnects", &latencies.reconnect),
            ])
            .filter(|(_, one)| one.count > 0);
        for (name, one) in kinds {
            lines.push(format!("{name}: {}; ms: {}", one.count, one.text()));
        }
    }
}
