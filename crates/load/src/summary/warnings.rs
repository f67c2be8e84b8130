//! Reasons to doubt the figures of a run, told in each report.
//!
//! A load generator that is itself the bottleneck shows its own limits as the server's. It is known
//! by three signs: it used nearly all of its cores, one of its threads was busy nearly all the
//! time, or it began (or gave up) noticeably later than it was to.

use super::Summary;
use crate::options::LoadArgs;

/// Above this share of its cores, or of one thread's time, the generator may be what limits.
const BUSY_SHARE: f64 = 0.85;
/// Being late by less than this is the system's timers.
const LAG_MS: f64 = 5.0;

/// The warnings that a result deserves.
pub(super) fn of(summary: &Summary, args: &LoadArgs) -> Vec<String> {
    let mut warnings = Vec::new();
    if summary.load_cpu_share > BUSY_SHARE {
        warnings.push(
            "the generator itself was busy nearly all the time: the server may be capable of more; \
             use another machine or more cores for the generator"
                .to_owned(),
        );
    } else if summary.load_busiest_share > BUSY_SHARE {
        warnings.push(format!(
            "one thread of the generator was busy {:.0} % of the time: the server may be capable \
             of more; spread the connections over more threads (--groups)",
            summary.load_busiest_share * 100.0
        ));
    }
    let lag = &summary.latencies.lag;
    if lag.p99_ms > LAG_MS.max(summary.latencies.event.mean_ms / 10.0) {
        warnings.push(format!(
            "the generator did one in a hundred things {:.1} ms late or later, which is in the \
             latencies of what it began: it had too little of the processor",
            lag.p99_ms
        ));
    }
    let unserved = summary.shed + summary.expired;
    if unserved > 0 {
        warnings.push(format!(
            "{unserved} events found no idle connection in time ({} met a full line, {} lost their \
             patience in it): the server was too slow for --rate, or {} connections are too few \
             (rate times latency are needed)",
            summary.shed, summary.expired, args.connections
        ));
    }
    warnings
}
