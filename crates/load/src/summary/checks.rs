//! Rules that a run must not break, held to its result.
//!
//! What a rule may say is in `thresholds.rs`, which options need; here is which figure of a
//! [`Summary`] it means. A figure of which nothing was measured breaks its rule.

use super::Summary;
use crate::proof::Verdict;
use crate::thresholds::{Checked, Count, Kind, Metric, OfOutage, Rate, Threshold};

impl Count {
    /// Count, and the whole that it is a share of.
    fn of(self, summary: &Summary) -> (u64, u64) {
        let connects = summary.latencies.connect.count + summary.latencies.reconnect.count;
        let arrived = summary.arrived.max(1);
        let statements = summary.statements;
        let proof = summary.proof.as_ref();
        let writes = proof.map_or(0, Verdict::writes);
        match self {
            Count::Errors => (summary.failed_statements + summary.gave_up, statements),
            Count::Failed => (summary.failed_statements, statements),
            Count::Ignored => (summary.ignored_errors, statements),
            Count::GaveUp => (summary.gave_up, statements),
            Count::Shed => (summary.shed + summary.expired, arrived),
            Count::FailedConnects => (summary.failed_connects, connects + summary.failed_connects),
            Count::Lost => (summary.lost_connections, connects),
            Count::Reconnects => (summary.reconnects, connects),
            Count::Findings => (proof.map_or(0, Verdict::faults), writes),
            Count::Refused => (proof.map_or(0, |proof| proof.refused), writes),
            Count::Unanswered => (proof.map_or(0, |proof| proof.unanswered), writes),
        }
    }
}

impl Threshold {
    /// Holds a result to the rule.
    pub(crate) fn check(&self, summary: &Summary) -> Checked {
        let value = self.value(summary);
        let crossed = match value {
            // Without an error there is no first and no last one.
            None => !matches!(
                self.metric,
                Metric::Outage(OfOutage::FirstError | OfOutage::LastError)
            ),
            Some(value) if self.is_above => value > self.bound,
            Some(value) => value < self.bound,
        };
        Checked {
            rule: self.text.clone(),
            value,
            crossed,
        }
    }

    fn value(&self, summary: &Summary) -> Option<f64> {
        let latencies = &summary.latencies;
        match self.metric {
            Metric::Latency(kind, figure) => {
                let latency = match kind {
                    Kind::Statement => &latencies.statement,
                    Kind::Read => &latencies.read,
                    Kind::Write => &latencies.write,
                    Kind::Other => &latencies.other,
                    Kind::Event => &latencies.event,
                    Kind::Connect => &latencies.connect,
                    Kind::Reconnect => &latencies.reconnect,
                };
                (latency.count > 0).then(|| figure(latency))
            }
            Metric::Count(count) => Some(count.of(summary).0 as f64),
            Metric::Share(count) => {
                let (part, whole) = count.of(summary);
                Some(part as f64 / whole.max(1) as f64 * 100.0)
            }
            Metric::Rate(Rate::NewOrders) => summary.tpmc(),
            Metric::Rate(rate) => Some(match rate {
                Rate::NewOrders => 0.0,
                Rate::Statements => summary.statements_per_s,
                Rate::Events => summary.events_per_s,
                Rate::Goodput => summary.goodput_per_s,
                Rate::Connected => summary.connected as f64,
                Rate::Cpu => summary.load_cpu_share * 100.0,
            }),
            Metric::Outage(of_outage) => {
                let outage = &summary.outage;
                let seconds = match of_outage {
                    OfOutage::FirstError => outage.first_error_s,
                    OfOutage::LastError => outage.last_error_s,
                    OfOutage::LongestGap => Some(outage.longest_gap_s),
                    OfOutage::Recovery if outage.began_s.is_none() => Some(0.0),
                    OfOutage::Recovery => outage.recovered_s,
                };
                seconds.map(|seconds| seconds * 1e3)
            }
        }
    }
}
