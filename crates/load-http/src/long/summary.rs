//! Summary of a run of long connections: for people on stdout, for programs as JSON.
//!
//! Rates of success and failure come first, of messages and of connections, because a number of
//! connections says nothing without them.

use super::counts::{Census, Counts, Verdict};
use super::options::SwarmArgs;
use super::place::Place;
use load_core::errors::ErrorCount;
use load_core::layout::Layout;
use load_core::transport::Security;
use measure::{Histogram, process};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::Path;

/// Names of things in one kind of run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words {
    pub(super) kind: &'static str,
    /// Name of a message.
    pub(super) message: &'static str,
    /// Name of the latency.
    pub(super) latency: &'static str,
}

impl Words {
    /// The four verdicts in one line.
    pub(super) fn verdicts(&self, counts: &Counts) -> String {
        format!(
            "{}s: {} right, {} late, {} wrong, {} lost",
            self.message,
            counts.of(Verdict::Right),
            counts.of(Verdict::Late),
            counts.of(Verdict::Wrong),
            counts.of(Verdict::Lost)
        )
    }
}

/// Counts by verdict.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Verdicts {
    right: u64,
    late: u64,
    wrong: u64,
    lost: u64,
}

impl Verdicts {
    pub(super) fn of(counts: &Counts) -> Verdicts {
        Verdicts {
            right: counts.of(Verdict::Right),
            late: counts.of(Verdict::Late),
            wrong: counts.of(Verdict::Wrong),
            lost: counts.of(Verdict::Lost),
        }
    }
}

/// Latencies in milliseconds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Latency {
    mean_ms: f64,
    p50_ms: f64,
    p95_ms: f64,
    p99_ms: f64,
    max_ms: f64,
}

impl Latency {
    fn of(histogram: &Histogram) -> Latency {
        Latency {
            mean_ms: histogram.mean_ms(),
            p50_ms: histogram.percentile_ms(50.0),
            p95_ms: histogram.percentile_ms(95.0),
            p99_ms: histogram.percentile_ms(99.0),
            max_ms: histogram.max_ms(),
        }
    }

    fn text(&self, what: &str) -> String {
        let Latency {
            mean_ms,
            p50_ms,
            p95_ms,
            p99_ms,
            max_ms,
        } = self;
        format!(
            "mean {mean_ms:.3}, p50 {p50_ms:.3}, p95 {p95_ms:.3}, p99 {p99_ms:.3}, max \
             {max_ms:.3} ({what})"
        )
    }
}

/// Everything that `--json` writes.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Summary {
    kind: &'static str,
    target: String,
    /// `none`, `verified` or `insecure`.
    tls: &'static str,
    connections: u32,
    /// Came to stand in the ramp, for however long.
    pub(super) connected: u64,
    /// Handshakes that resumed a session; null where that was not wanted.
    resumed_handshakes: Option<u64>,
    /// Stood at the end.
    standing: u64,
    failed_connects: u64,
    lost_connections: u64,
    reopened_connections: u64,
    pub(super) connect_s: f64,
    duration_s: f64,
    /// Messages or answers.
    messages: Verdicts,
    messages_per_s: f64,
    /// Percentage of those that should have come.
    success_percent: f64,
    failure_percent: f64,
    /// Connections that met at least one.
    connections_with: Verdicts,
    /// Connections over which nothing was due.
    silent_connections: u64,
    unfinished: u64,
    bytes: u64,
    latency: Latency,
    connect_latency: Latency,
    errors: Vec<ErrorCount>,
    groups: u32,
    pub(super) rss_bytes_per_connection: Option<u64>,
    load_rss_bytes: u64,
    load_cpu_s: f64,
    #[serde(skip)]
    before: u64,
}

impl Summary {
    pub(super) fn new(
        words: &Words,
        args: &SwarmArgs,
        place: &Place,
        layout: &Layout,
        security: &Security,
    ) -> Summary {
        Summary {
            kind: words.kind,
            target: place.to_string(),
            tls: security.name(),
            connections: args.connections,
            connected: 0,
            resumed_handshakes: (place.is_secure() && args.tls.tls_resume).then_some(0),
            standing: 0,
            failed_connects: 0,
            lost_connections: 0,
            reopened_connections: 0,
            connect_s: 0.0,
            duration_s: 0.0,
            messages: Verdicts::default(),
            messages_per_s: 0.0,
            success_percent: 0.0,
            failure_percent: 0.0,
            connections_with: Verdicts::default(),
            silent_connections: 0,
            unfinished: 0,
            bytes: 0,
            latency: Latency::default(),
            connect_latency: Latency::default(),
            errors: Vec::new(),
            groups: layout.groups,
            rss_bytes_per_connection: None,
            load_rss_bytes: 0,
            load_cpu_s: 0.0,
            before: 0,
        }
    }

    /// Takes the figures of the ramp, after which all connections have been tried.
    pub(super) fn ramped(&mut self, counts: &Counts, seconds: f64) {
        self.connected = counts.connects.count();
        self.connect_s = seconds;
        self.before = counts.expected();
    }

    /// Takes the figures of the run's end: `seconds` after the ramp, with so many connections
    /// standing.
    pub(super) fn finish(&mut self, counts: &Counts, standing: u64, census: Census, seconds: f64) {
        self.standing = standing;
        self.resumed_handshakes = self.resumed_handshakes.map(|_| counts.resumed);
        self.failed_connects = counts.failed_connects;
        self.lost_connections = counts.lost_connections;
        self.reopened_connections = counts.reopened;
        self.duration_s = seconds;
        self.messages = Verdicts::of(counts);
        let came = counts
            .expected()
            .saturating_sub(self.messages.lost + self.before);
        self.messages_per_s = came as f64 / seconds.max(1e-9);
        let expected = counts.expected().max(1) as f64;
        self.success_percent = self.messages.right as f64 * 100.0 / expected;
        self.failure_percent = (counts.expected() - self.messages.right) as f64 * 100.0 / expected;
        self.connections_with = Verdicts {
            right: census.all_right,
            late: census.late,
            wrong: census.wrong,
            lost: census.lost,
        };
        self.silent_connections = census.silent;
        self.unfinished = counts.unfinished;
        self.bytes = counts.bytes;
        self.latency = Latency::of(&counts.latency);
        self.connect_latency = Latency::of(&counts.connects);
        self.errors = counts.errors.clone().sorted();
        let own = process::own().unwrap_or_default();
        self.load_rss_bytes = own.rss_bytes;
        self.load_cpu_s = own.cpu.as_secs_f64();
    }

    /// Text for people.
    pub(super) fn text(&self, words: &Words) -> String {
        let mut text = String::new();
        let mut line = |name: &str, what: String| {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{name:<14}{what}");
        };
        line("connections:", self.connections_text());
        match self.tls {
            "verified" => line("TLS:", "every server's certificate is checked".to_owned()),
            "insecure" => line(
                "TLS:",
                "INSECURE: no certificate was checked (--insecure)".to_owned(),
            ),
            _ => {}
        }
        if let Some(resumed) = self.resumed_handshakes {
            line(
                "",
                format!("{resumed} handshakes resumed the session of an earlier connection"),
            );
        }
        let messages = self.messages;
        let Verdicts {
            right,
            late,
            wrong,
            lost,
        } = messages;
        let verdicts = format!("{right} right, {late} late, {wrong} wrong, {lost} lost");
        line(&format!("{}s:", words.message), verdicts);
        line("", self.rates_text());
        let Verdicts {
            right,
            late,
            wrong,
            lost,
        } = self.connections_with;
        line(
            "of them:",
            format!(
                "{right} connections heard right ones only; {late} a late one, {wrong} a wrong \
                 one, {lost} lost one; {} had none due",
                self.silent_connections
            ),
        );
        line("latency, ms:", self.latency.text(words.latency));
        line(
            "connect, ms:",
            self.connect_latency.text("until a connection stands"),
        );
        line(
            "time, s:",
            format!(
                "{:.1} connecting, {:.1} since",
                self.connect_s, self.duration_s
            ),
        );
        line("generator:", self.generator_text());
        for error in &self.errors {
            line(
                "error:",
                format!("{} x {} {}", error.count, error.code, error.message),
            );
        }
        text
    }

    fn connections_text(&self) -> String {
        format!(
            "{} wanted, {} stood, {} failed to open, {} lost, {} stood at the end",
            self.connections,
            self.connected,
            self.failed_connects,
            self.lost_connections,
            self.standing
        )
    }

    fn rates_text(&self) -> String {
        format!(
            "{:.4} % success, {:.4} % failure; {:.1} a second; {} unfinished at the end",
            self.success_percent, self.failure_percent, self.messages_per_s, self.unfinished
        )
    }

    fn generator_text(&self) -> String {
        let each = self.rss_bytes_per_connection;
        let each = each.map(|bytes| format!("{bytes} bytes for each connection, "));
        format!(
            "{:.1} s of CPU, {:.1} MiB, {}{} groups",
            self.load_cpu_s,
            self.load_rss_bytes as f64 / f64::from(1 << 20),
            each.unwrap_or_default(),
            self.groups
        )
    }

    /// Writes the JSON, if that is wanted.
    pub(super) fn write(&self, file: Option<&Path>) -> Result<(), String> {
        let Some(file) = file else {
            return Ok(());
        };
        let shown = file.display();
        let text = serde_json::to_string_pretty(self).map_err(|e| format!("{shown}: {e}"))?;
        std::fs::write(file, text + "\n").map_err(|e| format!("cannot write {shown}: {e}"))
    }
}
