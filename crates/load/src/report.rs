//! sysbench 1.0's text, as its parsers expect it on stdout.
//!
//! Labels, columns and blank lines are the format that scripts and parsers rely on, so they are
//! kept exactly; the name in the first line's parentheses says who really wrote it. Latencies here
//! are those of events, as in sysbench; statements are in the summary and the JSON.

use crate::crew::Gauges;
use crate::options::LoadArgs;
use crate::stats::Stats;
use crate::summary::Measured;
use std::fmt::Write;

/// The line after which the run begins.
pub(crate) const THREADS_STARTED: &str = "Threads started!\n\n";

/// Everything up to the first connection.
pub(crate) fn header(args: &LoadArgs) -> String {
    let mut out = String::new();
    let version = env!("CARGO_PKG_VERSION");
    out.push_str(&format!("sysbench 1.0.20 (onramp {version})\n\n"));
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
    out.push_str(&match args.rand_seed {
        0 => "Initializing random number generator from current time\n".to_owned(),
        seed => format!("Initializing random number generator from seed ({seed}).\n"),
    });
    out.push_str("\n\nInitializing worker threads...\n\n");
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
    if args.model.rate.is_some() {
        let Gauges {
            waiting, executing, ..
        } = gauges;
        line(
            &mut out,
            &format!("[ {at:.0}s ] queue length: {waiting}, concurrency: {executing}"),
        );
    }
    out
}

/// The report at the end. Failed statements are among the ignored errors, for the run went on.
pub(crate) fn last(args: &LoadArgs, measured: &Measured) -> String {
    let window = &measured.window;
    let mut out = String::from("SQL statistics:\n    queries performed:\n");
    let counts = [
        ("read:", window.reads),
        ("write:", window.writes),
        ("other:", window.others),
        ("total:", window.successes()),
    ];
    for (label, count) in counts {
        line(&mut out, &format!("        {label:<33}{count}"));
    }
    let seconds = measured.seconds.max(1e-9);
    let rates = [
        ("transactions:", window.events),
        ("queries:", window.successes()),
        (
            "ignored errors:",
            window.ignored + window.failed + window.gave_up,
        ),
        ("reconnects:", window.reconnects),
    ];
    for (label, count) in rates {
        let rate = count as f64 / seconds;
        line(
            &mut out,
            &format!("    {label:<37}{count:<6} ({rate:.2} per sec.)"),
        );
    }
    out.push_str("\nGeneral statistics:\n");
    line(
        &mut out,
        &format!("    {:<37}{:.4}s", "total time:", measured.seconds),
    );
    line(
        &mut out,
        &format!("    {:<37}{}", "total number of events:", window.events),
    );
    put_latency(&mut out, args.percentile, measured);
    let (events, seconds) = (measured.tally.events(), measured.tally.seconds());
    out.push_str("\nThreads fairness:\n");
    line(
        &mut out,
        &format!(
            "    {:<31}{:.4}/{:.2}",
            "events (avg/stddev):", events.0, events.1
        ),
    );
    let label = "execution time (avg/stddev):";
    line(
        &mut out,
        &format!("    {label:<31}{:.4}/{:.2}", seconds.0, seconds.1),
    );
    out.push('\n');
    out
}

fn put_latency(out: &mut String, percentile: u8, measured: &Measured) {
    let latency = measured.event_latency();
    out.push_str("\nLatency (ms):\n");
    line(out, &format!("         min: {:39.2}", latency.min_ms()));
    line(out, &format!("         avg: {:39.2}", latency.mean_ms()));
    line(out, &format!("         max: {:39.2}", latency.max_ms()));
    let value = latency.percentile_ms(percentile.into());
    line(
        out,
        &format!("        {percentile:3}th percentile: {value:27.2}"),
    );
    line(out, &format!("         sum: {:39.2}", latency.sum_ms()));
}

fn line(out: &mut String, text: &str) {
    // Writing to a string does not fail.
    let _ = writeln!(out, "{text}");
}

#[cfg(test)]
mod tests;
