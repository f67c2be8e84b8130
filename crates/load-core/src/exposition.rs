//! Metrics of a run in Prometheus' text format: the lines that all generators write alike.
//!
//! A metric has its `# HELP` and `# TYPE` once ([`put_head`]); latencies are summaries with a label
//! `kind` ([`put_summary`]), in seconds, over the whole run.

use measure::Histogram;
use std::fmt::Write as _;

const QUANTILES: [f64; 6] = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999];

/// Appends the quantiles, sum and count of the latencies of a kind, in seconds.
pub fn put_summary(out: &mut String, name: &str, kind: &str, counts: &Histogram) {
    for quantile in QUANTILES {
        let seconds = counts.percentile_ms(quantile * 100.0) / 1e3;
        let _ = writeln!(
            out,
            "{name}{{kind=\"{kind}\",quantile=\"{quantile}\"}} {seconds}"
        );
    }
    let sum = counts.sum_ms() / 1e3;
    let _ = writeln!(out, "{name}_sum{{kind=\"{kind}\"}} {sum}");
    let _ = writeln!(out, "{name}_count{{kind=\"{kind}\"}} {}", counts.count());
}

/// Appends the help and the type of a metric, which come before its values.
pub fn put_head(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}
