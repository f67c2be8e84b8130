//! The result for people (stderr) and for programs (JSON).
//!
//! Latencies are those of statements: from just before the write to the reply's last byte, only of
//! those that succeeded. Rates are of the measured time alone; counts of failures are of the whole
//! run, from the first connection to the last reply.
//!
//! The first fields of [`Summary`] have the names of a row of climb.json.

mod checks;
mod limit;
mod outage;
mod text;
mod warnings;

use crate::manner::Dialect;
use crate::options::LoadArgs;
use crate::proof::{Data, Verdict};
use crate::recorded::{Histograms, Recorded};
use crate::thresholds::Checked;
use load_core::errors::{ErrorCount, ErrorTable};
use load_core::latency::Latency;
use load_core::layout::Layout;
use load_core::plan::Plan;
use load_core::series::Point;
use load_core::stats::{Class, Stats, Tally};
use load_core::steps::Step;
use load_core::workload::Workload;
use measure::Histogram;
use measure::process::bytes_each;
pub use outage::Outage;
use serde::{Deserialize, Serialize};
use wire::dsn::Dsn;

/// Measurements that the main thread gathered.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    /// While connecting and holding.
    pub(crate) outside: Stats,
    /// Statements of scripts before their first event, where the report counts them, as sysbench's.
    pub(crate) starting: Stats,
    /// Counts from the start to the order to stop.
    pub(crate) window: Stats,
    /// The part of it that no checkpoint has reported, where there are checkpoints.
    pub(crate) rest: Option<Rest>,
    /// Counts after the order to stop.
    pub(crate) drain: Stats,
    pub(crate) series: Vec<Point>,
    /// The window, by the tenth of a second.
    pub(crate) steps: Vec<Step>,
    pub(crate) connected: u64,
    pub(crate) connect_s: f64,
    pub(crate) seconds: f64,
    /// Seconds from the start to the end of the last statement.
    pub(crate) whole_seconds: f64,
    pub(crate) cpu_s: f64,
    pub(crate) rss_before_bytes: u64,
    pub(crate) rss_idle_bytes: u64,
    pub(crate) rss_bytes: u64,
    /// Sums over connections, since the last checkpoint if there are any.
    pub(crate) tally: Tally,
    pub(crate) unfinished: u64,
    /// Events that had arrived and waited at the end of the measured time.
    pub(crate) waiting: u64,
    /// CPU time of the group that used most of it, within the measured time.
    pub(crate) busiest_group_s: f64,
    /// Cores that this program can keep busy.
    pub(crate) cores: f64,
    pub(crate) proof: Option<Verdict>,
}

/// Counts after the last checkpoint.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rest {
    /// Counts from then to the order to stop.
    pub(crate) window: Stats,
    /// Time of that checkpoint, in seconds since the start.
    pub(crate) from_s: f64,
}

impl Measured {
    /// Latencies of all events that began in the measured time.
    pub(crate) fn event_latency(&self) -> Histogram {
        let mut all = self.window.event_latency.clone();
        all.merge(&self.drain.event_latency);
        all
    }

    fn statement_latency(&self) -> Histogram {
        let mut all = self.window.statement_latency();
        all.merge(&self.drain.statement_latency());
        all
    }

    fn latency_of(&self, class: Class) -> Histogram {
        let mut all = self.window.latency_of(class).clone();
        all.merge(self.drain.latency_of(class));
        all
    }

    fn histograms(&self, plan: &Plan) -> Histograms {
        let statements = self.statements(plan);
        Histograms {
            statement: Recorded::of(&self.statement_latency()),
            read: Recorded::of(&self.latency_of(Class::Read)),
            write: Recorded::of(&self.latency_of(Class::Write)),
            other: Recorded::of(&self.latency_of(Class::Other)),
            event: Recorded::of(&self.event_latency()),
            connect: Recorded::of(&self.whole(|stats| &stats.connect_latency)),
            reconnect: Recorded::of(&self.whole(|stats| &stats.reconnect_latency)),
            lag: Recorded::of(&self.whole(|stats| &stats.lag)),
            by_statement: statements
                .map(|(_, counts)| Recorded::of(&counts))
                .collect(),
        }
    }

    fn latencies(&self) -> Latencies {
        Latencies {
            statement: Latency::of(&self.statement_latency()),
            read: Latency::of(&self.latency_of(Class::Read)),
            write: Latency::of(&self.latency_of(Class::Write)),
            other: Latency::of(&self.latency_of(Class::Other)),
            event: Latency::of(&self.event_latency()),
            connect: Latency::of(&self.whole(|stats| &stats.connect_latency)),
            reconnect: Latency::of(&self.whole(|stats| &stats.reconnect_latency)),
            lag: Latency::of(&self.whole(|stats| &stats.lag)),
        }
    }

    /// By the statements of a script that has several.
    fn by_statement(&self, plan: &Plan) -> Vec<OfStatement> {
        let of = |(text, all): (&str, Histogram)| OfStatement {
            statement: text.to_owned(),
            latency: Latency::of(&all),
        };
        self.statements(plan).map(of).collect()
    }

    /// The statements of a script that has several, with the counts of each.
    fn statements<'a>(&'a self, plan: &'a Plan) -> impl Iterator<Item = (&'a str, Histogram)> + 'a {
        let titles = plan.titles().enumerate().filter(|_| plan.is_mixed());
        titles.map(|(at, text)| {
            let mut all = self.window.latency_with(at);
            all.merge(&self.drain.latency_with(at));
            (text, all)
        })
    }

    /// Histogram of the whole run, from the first connection on.
    fn whole(&self, of: impl Fn(&Stats) -> &Histogram) -> Histogram {
        let mut all = Histogram::new();
        for stats in [&self.outside, &self.window, &self.drain] {
            all.merge(of(stats));
        }
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

/// A run's result, as `--json` writes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// Statements that got a reply, good or bad, and those that were lost with their connection
    /// or given up; also those that ended after the measured time.
    pub statements: u64,
    /// Statements that failed for good.
    pub failed_statements: u64,
    /// Attempts to connect that failed.
    pub failed_connects: u64,
    /// Length of the ramp in seconds.
    pub connect_s: f64,
    /// The measured time.
    pub duration_s: f64,
    /// Reason why not all connections could be opened, or why nothing could run.
    pub limit: Option<String>,
    /// Resident memory of this process at the end of the measured time.
    pub load_rss_bytes: u64,
    /// CPU time of this process within the measured time.
    pub load_cpu_s: f64,
    /// Errors by phase and number.
    pub errors: Vec<ErrorCount>,
    /// The run, interval by interval.
    pub series: Vec<Point>,
    /// The workload's name.
    pub workload: String,
    /// The server, without its password.
    pub target: String,
    /// Command line of this process, without the password.
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
    /// Resident memory that each idle connection added; null where they are too few to tell it
    /// from that of the program.
    pub rss_bytes_per_connection: Option<u64>,
    /// Threads that held the connections.
    pub groups: u32,
    /// Statements that succeeded in time, each second of the measured time.
    pub goodput_per_s: f64,
    /// Longest latency that counts as goodput; null counts all that succeed.
    pub in_time_ms: Option<f64>,
    /// Statements that came to an end or were given up, each second of the measured time: the load
    /// that was really put on the server.
    pub attempted_per_s: f64,
    /// Events that arrived in the open loop, each second of the measured time.
    pub arrived_per_s: f64,
    /// Statements that were given up before they were answered, in the whole run.
    pub gave_up: u64,
    /// Arrivals that found the line full; those whose patience ended in the line; those that still
    /// waited at the end of the measured time.
    pub shed: u64,
    /// See `shed`.
    pub expired: u64,
    /// See `shed`.
    pub waiting: u64,
    /// Connections that were closed at the end of their lifetime.
    pub retired_connections: u64,
    /// Latencies by kind.
    pub latencies: Latencies,
    /// Latencies by the workload's statements, where it has several.
    pub by_statement: Vec<OfStatement>,
    /// CPU time of this process over the cores it can use, in the measured time: 0 to 1.
    pub load_cpu_share: f64,
    /// CPU time of its busiest thread over the measured time: 0 to 1.
    pub load_busiest_share: f64,
    /// Reasons to doubt the figures.
    pub warnings: Vec<String>,
    /// Results of the thresholds.
    pub thresholds: Vec<Checked>,
    /// New orders of `tpcc` that were committed, each minute of the measured time.
    tpmc: Option<f64>,
    /// Result of a workload that proves data.
    proof: Option<Verdict>,
    /// Errors, gaps, and the return to the rate before.
    pub outage: Outage,
    /// Events that arrived in the open loop, in the whole run.
    pub arrived: u64,
    /// The counts behind `latencies` and `by_statement`, by which results of several machines are
    /// merged.
    pub histograms: Histograms,
}

/// Latencies of one of the workload's statements.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OfStatement {
    /// Its text, `?` for each value and `#` for the table's number; long ones are cut.
    pub statement: String,
    /// Times from the write to the reply's last byte, of those that succeeded.
    #[serde(flatten)]
    pub latency: Latency,
}

/// Latencies by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latencies {
    /// All statements.
    pub statement: Latency,
    /// Statements that returned rows.
    pub read: Latency,
    /// Statements that changed rows.
    pub write: Latency,
    /// Statements that did neither.
    pub other: Latency,
    /// Events, from their intended start to the end of their last statement.
    pub event: Latency,
    /// Connecting and logging in, for the first time.
    pub connect: Latency,
    /// Latencies of reconnects.
    pub reconnect: Latency,
    /// Lateness of this program itself in doing things at a certain time: begin, give up.
    pub lag: Latency,
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
        let is_tpcc = args.workload == Workload::Tpcc;
        let failed = measured.sum(|stats| stats.failed);
        let ignored = measured.sum(|stats| stats.ignored);
        let mut summary = Summary {
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
            statements: measured.sum(Stats::ended),
            failed_statements: failed,
            failed_connects: measured.sum(|stats| stats.failed_connects),
            connect_s: measured.connect_s,
            duration_s: measured.seconds,
            limit: failure.or_else(|| limit::of(args, plan, layout, measured)),
            load_rss_bytes: measured.rss_bytes.max(measured.rss_idle_bytes),
            load_cpu_s: measured.cpu_s,
            errors: measured.errors().sorted(),
            series: measured.series.clone(),
            workload: args.workload_name().to_owned(),
            target: match &args.read_target {
                Some(reads) => format!("{}; reads: {}", shown(&args.target), shown(reads)),
                None => shown(&args.target),
            },
            command: command_line(std::env::args()),
            ignored_errors: ignored,
            lost_connections: measured.sum(|stats| stats.lost),
            reconnects: measured.sum(|stats| stats.reconnects),
            drained_statements: measured.drain.successes(),
            unfinished_statements: measured.unfinished,
            rss_bytes_per_connection: bytes_each(
                measured.rss_before_bytes,
                measured.rss_idle_bytes,
                measured.connected,
            ),
            groups: layout.groups,
            goodput_per_s: rate(measured.window.in_time),
            in_time_ms: plan.model.in_time.map(|time| time.as_secs_f64() * 1e3),
            attempted_per_s: rate(measured.window.ended()),
            arrived_per_s: rate(measured.window.arrived),
            gave_up: measured.sum(|stats| stats.gave_up),
            shed: measured.sum(|stats| stats.shed),
            expired: measured.sum(|stats| stats.expired),
            waiting: measured.waiting,
            retired_connections: measured.sum(|stats| stats.retired),
            latencies: measured.latencies(),
            by_statement: measured.by_statement(plan),
            load_cpu_share: share(measured.cpu_s, measured.seconds * measured.cores),
            load_busiest_share: share(measured.busiest_group_s, measured.seconds),
            warnings: Vec::new(),
            thresholds: Vec::new(),
            tpmc: is_tpcc.then(|| rate(measured.window.latency_with(0).count()) * 60.0),
            proof: measured.proof.clone(),
            outage: Outage::of(&measured.steps),
            arrived: measured.sum(|stats| stats.arrived),
            histograms: measured.histograms(plan),
        };
        summary.warnings = warnings::of(&summary, args);
        let rules = args.output.fail_if.iter();
        summary.thresholds = rules.map(|rule| rule.check(&summary)).collect();
        summary
    }

    /// New orders of `tpcc`, each minute.
    pub(crate) fn tpmc(&self) -> Option<f64> {
        self.tpmc
    }

    /// Adds the new orders of another machine.
    pub(crate) fn add_tpmc(&mut self, run: &Summary) {
        self.tpmc = self.tpmc.zip(run.tpmc).map(|(sum, part)| sum + part);
    }

    /// Verdict of a workload that proves data.
    pub(crate) fn proof(&self) -> Option<&Verdict> {
        self.proof.as_ref()
    }

    /// True if a threshold was crossed, or the data are wrong.
    pub(crate) fn is_crossed(&self) -> bool {
        let proof = self.proof.as_ref();
        self.thresholds.iter().any(|checked| checked.crossed)
            || proof.is_some_and(|proof| proof.data == Data::Wrong)
    }

    /// Checks that the run has shown something.
    ///
    /// # Errors
    /// A sentence that says why it has not.
    pub(crate) fn check_success(&self, args: &LoadArgs, measured: &Measured) -> Result<(), String> {
        let failed = self.failed_statements + self.ignored_errors + self.gave_up;
        let events = measured.sum(|stats| stats.events);
        let reads = measured.sum(|stats| stats.read_events);
        let has_sides = args.read_target.is_some();
        let what = match (events, reads) {
            (0, _) => "event",
            (_, 0) if has_sides => "event at --read-target",
            (all, reads) if has_sides && all == reads => "event at --target",
            _ => "",
        };
        if !what.is_empty() && failed + self.failed_connects > 0 {
            return Err(format!("no {what} succeeded; the errors above say why"));
        }
        if self.statements == 0 && events > 0 && args.manner.dialect == Dialect::Load {
            return Err("no statement was sent".to_owned());
        }
        match self.proof.as_ref().and_then(|proof| proof.reason.as_ref()) {
            Some(reason) => Err(format!("the data are unknown: {reason}")),
            None => Ok(()),
        }
    }

    /// The JSON.
    ///
    /// # Errors
    /// The serializer's, which does not happen with these types.
    pub(crate) fn json(&self) -> Result<String, String> {
        let mut json = serde_json::to_string_pretty(self).map_err(|e| e.to_string())?;
        json.push('\n');
        Ok(json)
    }
}

/// `part` of `whole`; 0 where there is no whole.
fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// A target without its password, and without the path of the file that has it.
fn shown(target: &Dsn) -> String {
    const FILE: &str = "password_file=";
    let text = target.to_string();
    match text.split_once(FILE) {
        Some((before, path)) => {
            let rest = path.find('&').map_or("", |end| &path[end..]);
            format!("{before}{FILE}...{rest}")
        }
        None => text,
    }
}

/// The command line with the target's password left out.
fn command_line(words: impl Iterator<Item = String>) -> String {
    let masked = words.map(|word| {
        let (option, value) = match word.split_once("mysql://") {
            Some((option, _)) => (option, &word[option.len()..]),
            None => return word.clone(),
        };
        match Dsn::parse(value) {
            Ok(dsn) => format!("{option}{}", shown(&dsn)),
            Err(_) => format!("{option}mysql://..."),
        }
    });
    masked.map(quoted).collect::<Vec<_>>().join(" ")
}

/// A word as a shell takes it.
fn quoted(word: String) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=.,:/@%+".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word,
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
pub(crate) mod tests;
