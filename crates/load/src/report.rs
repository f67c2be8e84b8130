//! sysbench's text, as its parsers expect it on stdout: 1.0's, and by `old.rs` that of 0.5.
//!
//! Labels, columns and blank lines are the format that scripts and parsers rely on, so they are
//! kept exactly; the name in the first line's parentheses says who really wrote it. Latencies here
//! are those of events, as in sysbench; statements are in the summary and the JSON.

use crate::hooks::Numbers;
use crate::manner::Dialect;
use crate::options::LoadArgs;
use crate::summary::{Measured, Rest};
use load_core::control::Gauges;
use load_core::stats::{Stats, Tally};
use measure::Histogram;
use std::borrow::Cow;
use std::fmt::Write;

mod distribution;
mod old;

/// The line after which the run begins.
pub(crate) const THREADS_STARTED: &str = "Threads started!\n\n";

/// The first line, with an empty one behind it.
pub(crate) fn version_line(args: &LoadArgs) -> String {
    match args.manner.dialect {
        Dialect::Old => "sysbench 0.5:  multi-threaded system evaluation benchmark\n\n".to_owned(),
        _ => concat!(
            "sysbench 1.0.20 (using onramp ",
            env!("CARGO_PKG_VERSION"),
            ")\n\n"
        )
        .to_owned(),
    }
}

/// Span of a report: the measured time; or, as sysbench has it, everything from the start to the
/// last event's end. Where there are checkpoints, the time since the last one.
struct Scope<'a> {
    counts: Cow<'a, Stats>,
    /// Length of the span: rates are over this time.
    seconds: f64,
    /// Seconds since the start.
    total_seconds: f64,
    latency: Histogram,
    tally: Tally,
    /// Events that were left where they were at the end.
    unfinished: u64,
}

impl<'a> Scope<'a> {
    fn of(args: &LoadArgs, measured: &'a Measured) -> Scope<'a> {
        let window = measured.rest.as_ref().map(|rest| &rest.window);
        let window = window.unwrap_or(&measured.window);
        let mut latency = window.event_latency.clone();
        latency.merge(&measured.drain.event_latency);
        let mut scope = Scope {
            counts: Cow::Borrowed(window),
            seconds: 0.0,
            total_seconds: measured.seconds,
            latency,
            tally: measured.tally,
            unfinished: measured.unfinished,
        };
        if args.manner.finishes_events() {
            scope.counts.to_mut().merge(measured.drain.clone());
            if measured.rest.is_none() {
                scope.counts.to_mut().merge(measured.starting.clone());
            }
            scope.total_seconds = measured.whole_seconds;
        }
        let from_s = measured.rest.as_ref().map_or(0.0, |rest| rest.from_s);
        scope.seconds = scope.total_seconds - from_s;
        scope
    }
}

/// Everything up to the first connection.
pub(crate) fn header(args: &LoadArgs) -> String {
    let mut out = version_line(args);
    out.push_str("Running the test with following options:\n");
    out.push_str(&format!("Number of threads: {}\n", args.connections));
    if let Some(rate) = &args.model.rate {
        let rate = rate.highest();
        out.push_str(&format!("Target transaction rate: {rate:.0}/sec\n"));
    }
    if args.report_interval > 0 {
        let seconds = args.report_interval;
        out.push_str(&format!(
            "Report intermediate results every {seconds} second(s)\n"
        ));
    }
    if !args.report_checkpoints.is_empty() {
        let mut at = args.report_checkpoints.clone();
        at.sort_unstable();
        let at: Vec<String> = at.iter().map(u64::to_string).collect();
        let text = format!("Report checkpoint(s) at {} seconds", at.join(", "));
        line(&mut out, &text);
    }
    out.push_str(&match (args.manner.dialect, args.rand_seed) {
        (Dialect::Old, 0) => old::seed_line(args),
        (_, 0) => "Initializing random number generator from current time\n".to_owned(),
        (_, seed) => format!("Initializing random number generator from seed ({seed}).\n"),
    });
    if args.manner.forced {
        let seconds = args.time.as_secs() + args.end_timeout;
        out.push_str(&format!("\nForcing shutdown in {seconds} seconds\n"));
    } else {
        out.push('\n');
    }
    out.push_str("\nInitializing worker threads...\n\n");
    out
}

/// One line for an interval of `seconds` that ended `at` seconds after the start; in the open loop
/// a second one with the line of those that wait, and how many connections work.
pub(crate) fn interval(
    args: &LoadArgs,
    at: f64,
    seconds: f64,
    gauges: &Gauges,
    counts: &Stats,
) -> String {
    if args.manner.dialect == Dialect::Old {
        return old::interval(args, at, seconds, gauges, counts);
    }
    let (connected, percentile) = (gauges.connected, args.percentile);
    let per_second = |count: u64| count as f64 / seconds;
    let mut out = format!(
        "[ {at:.0}s ] thds: {connected} tps: {:4.2} qps: {:4.2} (r/w/o: {:4.2}/{:4.2}/{:4.2}) \
         lat (ms,{percentile}%): {:4.2} err/s: {:4.2} reconn/s: {:4.2}\n",
        per_second(counts.events),
        per_second(counts.successes()),
        per_second(counts.reads),
        per_second(counts.writes),
        per_second(counts.others),
        counts.event_latency.percentile_ms(percentile.into()),
        per_second(counts.failed + counts.ignored + counts.gave_up),
        per_second(counts.reconnects),
    );
    put_queue(&mut out, args, at, gauges);
    out
}

/// The numbers of an interval's line, for a hook.
pub(crate) fn interval_numbers(
    args: &LoadArgs,
    at: f64,
    seconds: f64,
    gauges: &Gauges,
    counts: &Stats,
) -> Numbers {
    let mut numbers = counted(args, counts, &counts.event_latency);
    numbers.extend([
        ("threads_running", gauges.connected as f64),
        ("time_interval", seconds),
        ("time_total", at),
        ("queue_length", gauges.waiting as f64),
        ("concurrency", gauges.executing as f64),
    ]);
    numbers
}

/// Counts of one report, as sysbench names them for hooks.
fn counted(args: &LoadArgs, counts: &Stats, latency: &Histogram) -> Numbers {
    let percentile = match args.percentile {
        0 => 0.0,
        percent => latency.percentile_ms(percent.into()) / 1e3,
    };
    vec![
        ("latency_pct", percentile),
        ("events", counts.events as f64),
        ("reads", counts.reads as f64),
        ("writes", counts.writes as f64),
        ("other", counts.others as f64),
        (
            "errors",
            (counts.failed + counts.ignored + counts.gave_up) as f64,
        ),
        ("reconnects", counts.reconnects as f64),
    ]
}

/// Time that a line is about: `at` seconds after the start, as the dialect writes it.
fn moment(args: &LoadArgs, at: f64) -> String {
    match args.manner.dialect {
        Dialect::Old => format!("[{at:4.0}s] "),
        _ => format!("[ {at:.0}s ] "),
    }
}

/// Appends the line of the open loop: those that wait, and how many connections work.
fn put_queue(out: &mut String, args: &LoadArgs, at: f64, gauges: &Gauges) {
    if args.model.rate.is_some() {
        let Gauges {
            waiting, executing, ..
        } = gauges;
        let at = moment(args, at);
        let text = format!("{at}queue length: {waiting}, concurrency: {executing}");
        line(out, &text);
    }
}

/// A whole report, of a checkpoint or of the end.
pub(crate) struct Whole<'a> {
    scope: Scope<'a>,
    /// Text in front of the report.
    front: String,
    /// Connections that run.
    threads: u64,
}

impl<'a> Whole<'a> {
    /// Report of a checkpoint that was due `at` seconds after the start and came after
    /// `total_seconds`: what has been counted since the last one.
    pub(crate) fn checkpoint(
        args: &LoadArgs,
        (at, total_seconds): (f64, f64),
        threads: u64,
        rest: &'a Rest,
        tally: &Tally,
    ) -> Whole<'a> {
        let scope = Scope {
            counts: Cow::Borrowed(&rest.window),
            seconds: total_seconds - rest.from_s,
            total_seconds,
            latency: rest.window.event_latency.clone(),
            tally: *tally,
            unfinished: 0,
        };
        let front = moment(args, at) + "Checkpoint report:\n";
        Whole {
            scope,
            front,
            threads,
        }
    }

    /// Report of the end.
    pub(crate) fn last(args: &LoadArgs, measured: &'a Measured) -> Whole<'a> {
        let scope = Scope::of(args, measured);
        let front = match args.manner.histogram && args.manner.dialect != Dialect::Old {
            true => distribution::text(&scope.latency),
            false => String::new(),
        };
        Whole {
            scope,
            front,
            threads: 0,
        }
    }

    pub(crate) fn text(&self, args: &LoadArgs) -> String {
        self.front.clone() + &whole(args, &self.scope)
    }

    /// The part that stays where a hook takes the report.
    pub(crate) fn front(&self) -> &str {
        &self.front
    }

    /// The numbers, for a hook.
    pub(crate) fn numbers(&self, args: &LoadArgs) -> Numbers {
        let latency = &self.scope.latency;
        let mut numbers = counted(args, &self.scope.counts, latency);
        numbers.extend([
            ("threads_running", self.threads as f64),
            ("time_interval", self.scope.seconds),
            ("time_total", self.scope.total_seconds),
            ("latency_min", latency.min_ms() / 1e3),
            ("latency_max", latency.max_ms() / 1e3),
            ("latency_avg", latency.mean_ms() / 1e3),
            ("latency_sum", latency.sum_ms() / 1e3),
        ]);
        numbers
    }
}

/// One report. Failed statements are among the ignored errors, for the run went on.
fn whole(args: &LoadArgs, scope: &Scope<'_>) -> String {
    if args.manner.dialect == Dialect::Old {
        return old::whole(args, scope);
    }
    let counts = &*scope.counts;
    let mut out = String::from("SQL statistics:\n");
    put_performed(&mut out, counts);
    let rates = [
        ("transactions:", counts.events),
        ("queries:", counts.successes()),
        (
            "ignored errors:",
            counts.ignored + counts.failed + counts.gave_up,
        ),
        ("reconnects:", counts.reconnects),
    ];
    put_rates(&mut out, &rates, scope.seconds);
    put_forced(&mut out, args, scope);
    out.push_str("\nGeneral statistics:\n");
    put_general(&mut out, scope);
    put_latency(&mut out, args.percentile, &scope.latency);
    put_fairness(&mut out, &scope.tally);
    out
}

fn put_performed(out: &mut String, counts: &Stats) {
    out.push_str("    queries performed:\n");
    for (label, count) in [
        ("read:", counts.reads),
        ("write:", counts.writes),
        ("other:", counts.others),
        ("total:", counts.successes()),
    ] {
        line(out, &format!("        {label:<33}{count}"));
    }
}

fn put_rates(out: &mut String, rates: &[(&str, u64)], seconds: f64) {
    for (label, count) in rates {
        let rate = *count as f64 / seconds.max(1e-9);
        let text = format!("    {label:<37}{count:<6} ({rate:.2} per sec.)");
        line(out, &text);
    }
}

fn put_forced(out: &mut String, args: &LoadArgs, scope: &Scope<'_>) {
    if args.manner.forced && scope.unfinished > 0 {
        let count = scope.unfinished;
        let label = "Number of unfinished transactions on forced shutdown";
        line(out, &format!("\n{label}: {count}"));
    }
}

fn put_general(out: &mut String, scope: &Scope<'_>) {
    let seconds = scope.total_seconds;
    line(out, &format!("    {:<37}{seconds:.4}s", "total time:"));
    let events = scope.counts.events;
    line(
        out,
        &format!("    {:<37}{events}", "total number of events:"),
    );
}

fn put_fairness(out: &mut String, tally: &Tally) {
    let (events, seconds) = (tally.events(), tally.seconds());
    out.push_str("\nThreads fairness:\n");
    for (label, (mean, deviation)) in [
        ("events (avg/stddev):", events),
        ("execution time (avg/stddev):", seconds),
    ] {
        line(out, &format!("    {label:<31}{mean:.4}/{deviation:.2}"));
    }
    out.push('\n');
}

fn put_latency(out: &mut String, percentile: u8, latency: &Histogram) {
    out.push_str("\nLatency (ms):\n");
    line(out, &format!("         min: {:39.2}", latency.min_ms()));
    line(out, &format!("         avg: {:39.2}", latency.mean_ms()));
    line(out, &format!("         max: {:39.2}", latency.max_ms()));
    if percentile == 0 {
        line(out, "         percentile stats:               disabled");
    } else {
        let value = latency.percentile_ms(percentile.into());
        line(
            out,
            &format!("        {percentile:3}th percentile: {value:27.2}"),
        );
    }
    line(out, &format!("         sum: {:39.2}", latency.sum_ms()));
}

fn line(out: &mut String, text: &str) {
    // Writing to a string does not fail.
    let _ = writeln!(out, "{text}");
}

#[cfg(test)]
mod tests;
