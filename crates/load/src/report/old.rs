//! The text of sysbench 0.5.
//!
//! It counts otherwise than 1.0: a statement is a read or a write by its first word, and a
//! transaction is a COMMIT, so a script without transactions shows none.

use super::{
    Scope, line, put_fairness, put_forced, put_general, put_performed, put_queue, put_rates,
};
use crate::options::LoadArgs;
use load_core::control::Gauges;
use load_core::stats::Stats;

/// Line about the random numbers where no seed is given.
pub(super) fn seed_line(args: &LoadArgs) -> String {
    let ignored = "Random number generator seed is 0 and will be ignored\n";
    if args.manner.from_timer {
        format!("Initializing random number generator from timer.\n\n{ignored}")
    } else {
        ignored.to_owned()
    }
}

/// One line for an interval; in the open loop a second one.
pub(super) fn interval(
    args: &LoadArgs,
    at: f64,
    seconds: f64,
    gauges: &Gauges,
    counts: &Stats,
) -> String {
    let per_second = |count: u64| count as f64 / seconds;
    let percentile = args.percentile;
    let connected = gauges.connected;
    let mut out = format!(
        "[{at:4.0}s] threads: {connected}, tps: {:4.2}, reads: {:4.2}, writes: {:4.2}, \
         response time: {:4.2}ms ({percentile}%), errors: {:4.2}, reconnects: {:5.2}\n",
        per_second(counts.commits),
        per_second(counts.reads),
        per_second(counts.writes),
        counts.event_latency.percentile_ms(percentile.into()),
        per_second(counts.failed + counts.ignored + counts.gave_up),
        per_second(counts.reconnects),
    );
    put_queue(&mut out, args, at, gauges);
    out
}

/// One report.
pub(super) fn whole(args: &LoadArgs, scope: &Scope<'_>) -> String {
    let counts = &*scope.counts;
    let mut out = String::from("OLTP test statistics:\n");
    put_performed(&mut out, counts);
    let rates = [
        ("transactions:", counts.commits),
        ("read/write requests:", counts.reads + counts.writes),
        ("other operations:", counts.others),
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
    let latency = &scope.latency;
    let label = "total time taken by event execution:";
    let seconds = latency.sum_ms() / 1e3;
    line(&mut out, &format!("    {label} {seconds:.4}s"));
    out.push_str("    response time:\n");
    for (label, value) in [
        ("min:", latency.min_ms()),
        ("avg:", latency.mean_ms()),
        ("max:", latency.max_ms()),
    ] {
        line(&mut out, &format!("         {label:<31} {value:>10.2}ms"));
    }
    if args.percentile > 0 {
        let label = format!("approx. {:3} percentile:", args.percentile);
        let value = latency.percentile_ms(args.percentile.into());
        line(&mut out, &format!("         {label:<31} {value:>10.2}ms"));
    }
    put_fairness(&mut out, &scope.tally);
    out
}
