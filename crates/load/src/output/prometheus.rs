//! The figures for a monitoring system, while the run goes: the Prometheus text format.
//!
//! Counters are of the whole run, the ramp included and a warm-up not; latencies are summaries, in
//! seconds as is the custom there. `http.rs` hands the text out.
//! (The format: prometheus.io, "Exposition formats", version 0.0.4.)

use super::Frame;
use load_core::errors::Phase;
use load_core::exposition::{put_head, put_summary};
use load_core::stats::{Class, Stats};
use measure::process;
use std::fmt::Write as _;

/// A counter or a gauge: its name, what it is, and its value.
type Figure<T> = (&'static str, &'static str, T);

pub(super) fn render(frame: &Frame<'_>) -> String {
    let mut out = String::new();
    put_counters(&mut out, frame.total);
    put_errors(&mut out, frame.total);
    put_gauges(&mut out, frame);
    put_latencies(&mut out, frame.total);
    out
}

fn put_counters(out: &mut String, total: &Stats) {
    let name = "onramp_load_statements_total";
    put_head(out, name, "counter", "Statements that succeeded, by class.");
    for (class, count) in [
        ("read", total.reads),
        ("write", total.writes),
        ("other", total.others),
    ] {
        let _ = writeln!(out, "{name}{{class=\"{class}\"}} {count}");
    }
    let counters: [Figure<u64>; 13] = [
        ("events", "Events that ran to their end.", total.events),
        (
            "in_time",
            "Statements that succeeded in time.",
            total.in_time,
        ),
        ("failed_statements", "Statements that failed.", total.failed),
        (
            "ignored_errors",
            "Statements whose event was run again.",
            total.ignored,
        ),
        ("gave_up", "Statements that clients gave up.", total.gave_up),
        (
            "arrived",
            "Events that arrived in the open loop.",
            total.arrived,
        ),
        ("shed", "Arrivals that found the line full.", total.shed),
        (
            "expired",
            "Arrivals whose patience ended in the line.",
            total.expired,
        ),
        (
            "connects",
            "Connections opened for the first time.",
            total.connect_latency.count(),
        ),
        ("reconnects", "Connections opened again.", total.reconnects),
        (
            "failed_connects",
            "Attempts to connect that failed.",
            total.failed_connects,
        ),
        (
            "lost_connections",
            "Connections lost while open.",
            total.lost,
        ),
        (
            "retired_connections",
            "Connections at their lifetime's end.",
            total.retired,
        ),
    ];
    for (name, help, value) in counters {
        let name = format!("onramp_load_{name}_total");
        put_head(out, &name, "counter", help);
        let _ = writeln!(out, "{name} {value}");
    }
}

fn put_errors(out: &mut String, total: &Stats) {
    let name = "onramp_load_errors_total";
    put_head(out, name, "counter", "Errors by phase and number.");
    for (word, phase) in [
        ("connect", Phase::Connect),
        ("init", Phase::Init),
        ("statement", Phase::Statement),
    ] {
        for row in total.errors.of(phase) {
            let (code, state, count) = (row.code, &row.sqlstate, row.count);
            let labels = format!("phase=\"{word}\",code=\"{code}\",sqlstate=\"{state}\"");
            let _ = writeln!(out, "{name}{{{labels}}} {count}");
        }
    }
}

fn put_gauges(out: &mut String, frame: &Frame<'_>) {
    let sample = process::own().unwrap_or_default();
    let point = frame.point.copied().unwrap_or_default();
    let gauges: [Figure<f64>; 6] = [
        (
            "connected",
            "Connections that are open.",
            frame.gauges.connected as f64,
        ),
        (
            "executing",
            "Connections that wait for an answer.",
            frame.gauges.executing as f64,
        ),
        (
            "waiting",
            "Events that wait for an idle connection.",
            frame.gauges.waiting as f64,
        ),
        (
            "statements_per_second",
            "In the last second.",
            point.statements_per_s,
        ),
        (
            "cpu_share",
            "CPU over usable cores, in the last second.",
            point.cpu_share,
        ),
        (
            "resident_memory_bytes",
            "Of this process.",
            sample.rss_bytes as f64,
        ),
    ];
    for (name, help, value) in gauges {
        let name = format!("onramp_load_{name}");
        put_head(out, &name, "gauge", help);
        let _ = writeln!(out, "{name} {value}");
    }
    let name = "onramp_load_cpu_seconds_total";
    put_head(out, name, "counter", "CPU time of this process.");
    let _ = writeln!(out, "{name} {}", sample.cpu.as_secs_f64());
}

fn put_latencies(out: &mut String, total: &Stats) {
    let name = "onramp_load_latency_seconds";
    put_head(
        out,
        name,
        "summary",
        "Latencies by kind, over the whole run.",
    );
    for (kind, counts) in [
        ("read", total.latency_of(Class::Read)),
        ("write", total.latency_of(Class::Write)),
        ("other", total.latency_of(Class::Other)),
        ("event", &total.event_latency),
        ("connect", &total.connect_latency),
        ("reconnect", &total.reconnect_latency),
        ("lag", &total.lag),
    ] {
        put_summary(out, name, kind, counts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use load_core::control::Gauges;
    use load_core::errors::Fault;
    use std::time::Duration;

    fn rendered() -> String {
        let mut total = Stats::default();
        for ms in 1..=100 {
            total.succeeded(Class::Read, Duration::from_millis(ms), None);
        }
        total.failed(Fault::ended("during a statement"), false, None);
        total.gave_up = 4;
        let gauges = Gauges {
            connected: 9,
            ..Gauges::default()
        };
        render(&Frame {
            total: &total,
            gauges,
            point: None,
        })
    }

    #[test]
    fn every_figure_has_its_head_and_its_value() {
        let text = rendered();
        for line in [
            "# TYPE onramp_load_statements_total counter",
            "onramp_load_statements_total{class=\"read\"} 100",
            "onramp_load_gave_up_total 4",
            "onramp_load_connected 9",
            "onramp_load_errors_total{phase=\"statement\",code=\"2013\",sqlstate=\"HY000\"} 1",
            "# TYPE onramp_load_latency_seconds summary",
            "onramp_load_latency_seconds_sum{kind=\"read\"} 5.05",
            "onramp_load_latency_seconds_count{kind=\"read\"} 100",
        ] {
            assert!(text.lines().any(|l| l == line), "{line}\n{text}");
        }
        let heads = text.lines().filter(|l| l.starts_with("# TYPE")).count();
        let mut names: Vec<&str> = text
            .lines()
            .filter_map(|l| l.strip_prefix("# TYPE ")?.split(' ').next())
            .collect();
        names.dedup();
        assert_eq!(names.len(), heads, "no name has two heads");
    }
}
