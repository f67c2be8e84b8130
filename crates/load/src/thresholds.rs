//! Thresholds: what must not be, as `METRIC>VALUE` or `METRIC<VALUE`, so that a pipeline can fail.
//!
//! A metric is a latency (`p99>50ms`, `connect.max>2s`), a count (`errors>0`), its share
//! (`errors>0.1%`), a rate (`goodput<5000`), or a time of an outage (`recovery>5s`). A latency of
//! which nothing was measured counts as crossed: a run without an answer must not pass for a fast
//! one.

use load_core::durations::parse_length;
use load_core::latency::Latency;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

const LATENCIES: &str = "\
mean, min, p50, p75, p90, p95, p99, p99.9, p99.99 or max, of statements or with read., write., \
other., event., connect. or reconnect. in front";
const COUNTS: &str = "errors, failed, ignored, gave_up, shed, failed_connects, lost, reconnects, \
     findings, refused, unanswered";
const OUTAGE: &str = "first_error, last_error, longest_gap or recovery";
const RATES: &str = "qps, tps, tpmc, goodput, connected, load_cpu";

/// A rule that a run must not break.
#[derive(Clone, Debug)]
pub struct Threshold {
    /// Text as it was written.
    pub(crate) text: String,
    pub(crate) metric: Metric,
    pub(crate) is_above: bool,
    /// Milliseconds, a share, or a plain number, as the metric has it.
    pub(crate) bound: f64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Metric {
    Latency(Kind, Figure),
    Count(Count),
    Share(Count),
    Rate(Rate),
    Outage(OfOutage),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum OfOutage {
    FirstError,
    LastError,
    LongestGap,
    Recovery,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Statement,
    Read,
    Write,
    Other,
    Event,
    Connect,
    Reconnect,
}

pub(crate) type Figure = fn(&Latency) -> f64;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Count {
    Errors,
    Failed,
    Ignored,
    GaveUp,
    Shed,
    FailedConnects,
    Lost,
    Reconnects,
    Findings,
    Refused,
    Unanswered,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Rate {
    Statements,
    Events,
    NewOrders,
    Goodput,
    Connected,
    Cpu,
}

/// Result of a threshold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Checked {
    /// Rule as it was written.
    pub rule: String,
    /// Measured value: milliseconds, a share in percent, or a plain number; null if nothing was.
    pub value: Option<f64>,
    /// True if the rule is broken.
    pub crossed: bool,
}

impl FromStr for Threshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Threshold, String> {
        let wrong = |what: &str| format!("'{text}': {what}; write as in 'p99>50ms', 'errors>0.1%'");
        let at = text.find(['>', '<']);
        let at = at.ok_or_else(|| wrong("a rule has > or < in it"))?;
        let (name, value) = (text[..at].trim(), text[at + 1..].trim());
        let number = |value: &str| value.parse().ok().filter(|value: &f64| value.is_finite());
        let (metric, bound) = if let Some((kind, figure)) = latency_named(name) {
            let length = parse_length(value)?;
            (Metric::Latency(kind, figure), length.as_secs_f64() * 1e3)
        } else if let Some(of_outage) = outage_named(name) {
            let length = parse_length(value)?;
            (Metric::Outage(of_outage), length.as_secs_f64() * 1e3)
        } else if let Some(count) = count_named(name) {
            match value.strip_suffix('%') {
                Some(percent) => (Metric::Share(count), number(percent)),
                None => (Metric::Count(count), number(value)),
            }
            .with_number()
            .ok_or_else(|| wrong("no number behind the sign"))?
        } else if let Some(rate) = rate_named(name) {
            (Metric::Rate(rate), number(value.trim_end_matches('%')))
                .with_number()
                .ok_or_else(|| wrong("no number behind the sign"))?
        } else {
            let known = format!("'{name}' is none of {LATENCIES}; {COUNTS}; {RATES}; {OUTAGE}");
            return Err(wrong(&known));
        };
        Ok(Threshold {
            text: text.to_owned(),
            metric,
            is_above: text[at..].starts_with('>'),
            bound,
        })
    }
}

trait WithNumber {
    fn with_number(self) -> Option<(Metric, f64)>;
}

impl WithNumber for (Metric, Option<f64>) {
    fn with_number(self) -> Option<(Metric, f64)> {
        self.1.map(|number| (self.0, number))
    }
}

fn latency_named(name: &str) -> Option<(Kind, Figure)> {
    let (kind, figure) = match name.split_once('.') {
        Some((kind, figure)) if !kind.starts_with('p') => (kind, figure),
        _ => ("statement", name),
    };
    let kind = match kind {
        "statement" => Kind::Statement,
        "read" => Kind::Read,
        "write" => Kind::Write,
        "other" => Kind::Other,
        "event" => Kind::Event,
        "connect" => Kind::Connect,
        "reconnect" => Kind::Reconnect,
        _ => return None,
    };
    let figure: Figure = match figure {
        "mean" | "avg" => |l| l.mean_ms,
        "min" => |l| l.min_ms,
        "p50" => |l| l.p50_ms,
        "p75" => |l| l.p75_ms,
        "p90" => |l| l.p90_ms,
        "p95" => |l| l.p95_ms,
        "p99" => |l| l.p99_ms,
        "p99.9" | "p999" => |l| l.p999_ms,
        "p99.99" | "p9999" => |l| l.p9999_ms,
        "max" => |l| l.max_ms,
        _ => return None,
    };
    Some((kind, figure))
}

fn count_named(name: &str) -> Option<Count> {
    Some(match name {
        "errors" => Count::Errors,
        "failed" => Count::Failed,
        "ignored" => Count::Ignored,
        "gave_up" => Count::GaveUp,
        "shed" => Count::Shed,
        "failed_connects" => Count::FailedConnects,
        "lost" => Count::Lost,
        "reconnects" => Count::Reconnects,
        "findings" => Count::Findings,
        "refused" => Count::Refused,
        "unanswered" => Count::Unanswered,
        _ => return None,
    })
}

fn outage_named(name: &str) -> Option<OfOutage> {
    Some(match name {
        "first_error" => OfOutage::FirstError,
        "last_error" => OfOutage::LastError,
        "longest_gap" => OfOutage::LongestGap,
        "recovery" => OfOutage::Recovery,
        _ => return None,
    })
}

fn rate_named(name: &str) -> Option<Rate> {
    Some(match name {
        "qps" => Rate::Statements,
        "tps" => Rate::Events,
        "tpmc" => Rate::NewOrders,
        "goodput" => Rate::Goodput,
        "connected" => Rate::Connected,
        "load_cpu" => Rate::Cpu,
        _ => return None,
    })
}

impl Checked {
    /// Text for people.
    pub(crate) fn text(&self) -> String {
        let verdict = if self.crossed { "CROSSED" } else { "kept" };
        match self.value {
            Some(value) => format!("threshold {verdict}: {} (measured {value:.3})", self.rule),
            None => format!("threshold {verdict}: {} (nothing was measured)", self.rule),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::tests::{full, summary};

    fn check(rule: &str) -> Checked {
        rule.parse::<Threshold>().unwrap().check(&summary(&full()))
    }

    /// 101 reads of 1 to 100 and of 200 ms succeeded, one statement failed; 10 connections.
    #[test]
    fn rules_are_held_against_what_was_measured() {
        for (rule, crossed) in [
            ("p99>150ms", false),
            ("p99>90ms", true),
            ("max > 0.2s", false),
            ("max>199999us", true),
            ("read.mean>50ms", true),
            ("p99.9<1s", true),
            ("errors>0", true),
            ("errors>1", false),
            ("errors>1%", false),
            ("errors>0.9%", true),
            ("failed>0.5%", true),
            ("gave_up>0", false),
            ("qps<50", false),
            ("qps<50.1", true),
            ("connected<10", false),
            ("tpmc>1", true),
            ("load_cpu>90%", true),
            ("shed>0%", false),
            ("longest_gap>0s", false),
            ("first_error<1h", false),
            ("last_error>0s", false),
            ("recovery>0s", false),
        ] {
            let checked = check(rule);
            assert_eq!(checked.crossed, crossed, "{rule}: {checked:?}");
            assert_eq!(checked.rule, rule);
        }
    }

    #[test]
    fn an_outage_is_held_against_rules() {
        let away = |end: usize| {
            let mut measured = full();
            let step = |answered, errors| load_core::steps::Step { answered, errors };
            measured.steps = [
                vec![step(9, 0); 20],
                vec![step(0, 1); 10],
                vec![step(9, 0); end],
            ]
            .concat();
            summary(&measured)
        };
        for (rule, crossed) in [
            ("longest_gap>1s", false),
            ("longest_gap>900ms", true),
            ("first_error<2s", false),
            ("first_error<2.1s", true),
            ("last_error>2.9s", false),
            ("last_error>2.8s", true),
            ("recovery>1s", false),
            ("recovery>0.9s", true),
        ] {
            let checked = rule.parse::<Threshold>().unwrap().check(&away(20));
            assert_eq!(checked.crossed, crossed, "{rule}: {checked:?}");
        }
        let never = "recovery>1h".parse::<Threshold>().unwrap().check(&away(0));
        assert_eq!((never.value, never.crossed), (None, true));
    }

    #[test]
    fn a_latency_of_nothing_is_crossed() {
        let checked = check("write.p99>1h");
        assert_eq!((checked.value, checked.crossed), (None, true));
        assert!(checked.text().contains("nothing was measured"));
    }

    #[test]
    fn a_rule_that_makes_no_sense_is_refused_with_an_example() {
        for (rule, words) in [
            ("p99", "> or <"),
            ("p98>1ms", "p99.9"),
            ("speed>1", "goodput"),
            ("p99>fast", "250ms"),
            ("errors>many", "errors>0.1%"),
            ("qps<", "p99>50ms"),
        ] {
            let error = rule.parse::<Threshold>().unwrap_err();
            assert!(error.contains(words), "{rule}: {error}");
        }
    }
}
