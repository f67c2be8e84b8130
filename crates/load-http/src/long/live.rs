//! The page of a run of long connections while it goes (`--http`): its JSON and its figures for
//! Prometheus, updated each second.
//!
//! The page itself and who hands it out are those of statement runs (`load`); the file
//! that the browser has draws either kind by what is in the JSON. Names and units are those of the
//! result's JSON where there is the same figure.
//!
//! Invariant: the series is bounded by [`PAST_MAX`], so that an answer stays small however long a
//! run takes.

use super::counts::{Counts, Verdict};
use super::summary::Verdicts;
use load_core::errors::{ErrorCount, Phase};
use load_core::exposition::{put_head, put_summary};
use load_core::latency::Latency;
use load_core::live_server::{Offer, Server, Shown};
use measure::host::{Host, Watch};
use measure::process;
use reactor::Time;
use serde::Serialize;
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::time::Duration;

/// Seconds that the charts show.
const PAST_MAX: usize = 300;
/// Kinds of error that are listed, the most frequent.
const ERRORS_MAX: usize = 20;

/// Subject of the run.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Scene {
    pub(super) kind: &'static str,
    /// Name of a message.
    pub(super) message: &'static str,
    pub(super) target: String,
    pub(super) tls: &'static str,
    pub(super) connections: u32,
    pub(super) time_s: u64,
}

/// Connections by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Gauges {
    pub(super) connected: u64,
    /// Being opened.
    pub(super) opening: u64,
    /// Connections that wait for an answer.
    pub(super) waiting: u64,
}

impl Gauges {
    pub(super) fn add(&mut self, other: Gauges) {
        self.connected += other.connected;
        self.opening += other.opening;
        self.waiting += other.waiting;
    }
}

/// One second.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Point {
    /// Its end, in seconds since all connections had been opened.
    t_s: f64,
    /// Right ones and late ones, each second.
    messages_per_s: f64,
    /// Number in the whole interval.
    late: u64,
    wrong: u64,
    lost: u64,
    p50_ms: f64,
    p95_ms: f64,
    p99_ms: f64,
    connected: u64,
    /// CPU time of this process over the cores it can use: 0 to 1.
    cpu_share: f64,
}

#[derive(Serialize)]
struct Live<'a> {
    #[serde(flatten)]
    scene: &'a Scene,
    /// Connections are being opened; then they talk.
    is_ramp: bool,
    #[serde(flatten)]
    gauges: Gauges,
    messages: Verdicts,
    failed_connects: u64,
    lost_connections: u64,
    reopened_connections: u64,
    /// Latency of the whole run so far.
    latency: Latency,
    connect_latency: Latency,
    errors: Vec<&'a ErrorCount>,
    rss_bytes: u64,
    host: Host,
    series: &'a VecDeque<Point>,
}

/// The page, and what it remembers.
pub(super) struct LivePage {
    server: Server,
    scene: Scene,
    cores: u32,
    past: VecDeque<Point>,
    host: Watch,
    /// Moment of the last showing, and the CPU time of this process then.
    last: (Time, Duration),
    /// Counts since then.
    second: Counts,
    /// Moment at which all connections were open.
    began: Option<Time>,
}

impl LivePage {
    /// Listens at `address`, and answers under `names` besides.
    ///
    /// # Errors
    /// A sentence with the option, the address and the system's reason.
    pub(super) fn open(
        (address, names): (&str, &[String]),
        scene: Scene,
        cores: u32,
    ) -> Result<LivePage, String> {
        let server = Server::default();
        server.listen(Offer::Page, address, names)?;
        let own = process::own().unwrap_or_default();
        Ok(LivePage {
            server,
            scene,
            cores,
            past: VecDeque::new(),
            host: Watch::default(),
            last: (Time::now(), own.cpu),
            second: Counts::default(),
            began: None,
        })
    }

    /// Adds what a group has counted.
    pub(super) fn count(&mut self, counts: &Counts) {
        self.second.merge(counts.clone());
    }

    /// Begins the figures of a run whose connections have all been tried: from now on they talk.
    pub(super) fn begin(&mut self) {
        let own = process::own().unwrap_or_default();
        self.began = Some(Time::now());
        (self.last, self.second) = ((Time::now(), own.cpu), Counts::default());
    }

    /// Shows how things stand.
    pub(super) fn show(&mut self, total: &Counts, gauges: Gauges) {
        if let Some(began) = self.began {
            let point = self.point(began, gauges);
            self.past.push_back(point);
            if self.past.len() > PAST_MAX {
                self.past.pop_front();
            }
        }
        let mut errors = total.errors.all();
        errors.truncate(ERRORS_MAX);
        let live = Live {
            scene: &self.scene,
            is_ramp: self.began.is_none(),
            gauges,
            messages: Verdicts::of(total),
            failed_connects: total.failed_connects,
            lost_connections: total.lost_connections,
            reopened_connections: total.reopened,
            latency: Latency::of(&total.latency),
            connect_latency: Latency::of(&total.connects),
            errors,
            rss_bytes: process::own().unwrap_or_default().rss_bytes,
            host: self.host.look(),
            series: &self.past,
        };
        // Numbers and strings can always be written.
        let json = serde_json::to_string(&live).unwrap_or_default();
        self.server.show(Shown {
            metrics: metrics(total, gauges).into(),
            json: json.into(),
        });
    }

    /// The time since the last one.
    fn point(&mut self, began: Time, gauges: Gauges) -> Point {
        let (now, cpu) = (Time::now(), process::own().unwrap_or_default().cpu);
        let seconds = now.since(self.last.0).as_secs_f64().max(1e-9);
        let used = cpu.saturating_sub(self.last.1).as_secs_f64();
        self.last = (now, cpu);
        let second = std::mem::take(&mut self.second);
        let came = second.of(Verdict::Right) + second.of(Verdict::Late);
        Point {
            t_s: now.since(began).as_secs_f64(),
            messages_per_s: came as f64 / seconds,
            late: second.of(Verdict::Late),
            wrong: second.of(Verdict::Wrong),
            lost: second.of(Verdict::Lost),
            p50_ms: second.latency.percentile_ms(50.0),
            p95_ms: second.latency.percentile_ms(95.0),
            p99_ms: second.latency.percentile_ms(99.0),
            connected: gauges.connected,
            cpu_share: used / seconds / f64::from(self.cores.max(1)),
        }
    }
}

/// Figures for Prometheus.
fn metrics(total: &Counts, gauges: Gauges) -> String {
    let mut out = String::new();
    let name = "onramp_load_messages_total";
    put_head(
        &mut out,
        name,
        "counter",
        "Messages or answers, by verdict.",
    );
    for (verdict, count) in [
        ("right", total.of(Verdict::Right)),
        ("late", total.of(Verdict::Late)),
        ("wrong", total.of(Verdict::Wrong)),
        ("lost", total.of(Verdict::Lost)),
    ] {
        let _ = writeln!(out, "{name}{{verdict=\"{verdict}\"}} {count}");
    }
    for (name, help, value) in [
        ("connects", "Connections opened.", total.connects.count()),
        ("reconnects", "Connections opened again.", total.reopened),
        (
            "failed_connects",
            "Attempts to connect that failed.",
            total.failed_connects,
        ),
        (
            "lost_connections",
            "Connections lost while open.",
            total.lost_connections,
        ),
    ] {
        let name = format!("onramp_load_{name}_total");
        put_head(&mut out, &name, "counter", help);
        let _ = writeln!(out, "{name} {value}");
    }
    let name = "onramp_load_errors_total";
    put_head(&mut out, name, "counter", "Errors by phase and number.");
    for (word, phase) in [("connect", Phase::Connect), ("statement", Phase::Statement)] {
        for row in total.errors.of(phase) {
            let labels = format!(
                "phase=\"{word}\",code=\"{}\",sqlstate=\"{}\"",
                row.code, row.sqlstate
            );
            let _ = writeln!(out, "{name}{{{labels}}} {}", row.count);
        }
    }
    for (name, help, value) in [
        ("connected", "Connections that are open.", gauges.connected),
        ("opening", "Connections being opened.", gauges.opening),
        (
            "executing",
            "Connections that wait for an answer.",
            gauges.waiting,
        ),
    ] {
        let name = format!("onramp_load_{name}");
        put_head(&mut out, &name, "gauge", help);
        let _ = writeln!(out, "{name} {value}");
    }
    let name = "onramp_load_latency_seconds";
    put_head(&mut out, name, "summary", "Latencies by kind.");
    put_summary(&mut out, name, "message", &total.latency);
    put_summary(&mut out, name, "connect", &total.connects);
    out
}
