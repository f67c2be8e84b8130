//! The answer as JSON and as text.
//!
//! Both show the same findings. The JSON's form is for programs and does not change between
//! versions; the text is for a person who has a run to save.

use crate::facts::NO_LIMIT;
use crate::finding::{Amount, Finding, Status};
use crate::number::thousands;
use crate::question::{Question, Way};
use crate::verdict::{ladder, limit};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// One check, as programs read it.
#[derive(Debug, Serialize)]
struct CheckJson<'a> {
    name: &'a str,
    status: Status,
    have: &'a Amount,
    need: &'a Amount,
    why: &'a str,
    remedy: &'a str,
}

/// The answer, as programs read it.
#[derive(Debug, Serialize)]
struct AnswerJson<'a> {
    connections_possible: BTreeMap<Way, Option<u64>>,
    limited_by: BTreeMap<Way, Option<&'a str>>,
    checks: Vec<CheckJson<'a>>,
}

/// The answer as JSON, on several lines.
#[must_use]
pub fn json(findings: &[Finding]) -> String {
    let of = |way: Way| limit(findings, way);
    let answer = AnswerJson {
        connections_possible: Way::ALL
            .into_iter()
            .map(|way| (way, of(way).map(|rung| rung.connections)))
            .collect(),
        limited_by: Way::ALL
            .into_iter()
            .map(|way| (way, of(way).map(|rung| rung.finding.name)))
            .collect(),
        checks: findings
            .iter()
            .map(|finding| CheckJson {
                name: finding.name,
                status: finding.status,
                have: &finding.have,
                need: &finding.need,
                why: &finding.why,
                remedy: &finding.remedy,
            })
            .collect(),
    };
    serde_json::to_string_pretty(&answer).unwrap_or_default() + "\n"
}

/// The answer as text.
#[must_use]
pub fn text(findings: &[Finding], question: &Question) -> String {
    let mut out = String::new();
    for way in &question.ways {
        let _ = match limit(findings, *way) {
            Some(rung) => writeln!(
                out,
                "{way:<15} {:>12}  by {}",
                thousands(rung.connections),
                rung.finding.name
            ),
            None => writeln!(out, "{way:<15} {:>12}", "unbounded"),
        };
    }
    if question.connections.is_none() {
        for way in &question.ways {
            let _ = writeln!(out, "\n{way}");
            for rung in ladder(findings, *way)
                .iter()
                .filter(|rung| rung.connections < NO_LIMIT)
            {
                let connections = thousands(rung.connections);
                let _ = writeln!(out, "  {connections:>14}  {}", rung.finding.name);
            }
        }
        return out;
    }
    for finding in findings {
        let (have, need) = (&finding.have, &finding.need);
        let status = format!("{:?}", finding.status).to_lowercase();
        let _ = writeln!(
            out,
            "{status:<8} {:<20} {have:>12} {need:>12}",
            finding.name
        );
        if !finding.remedy.is_empty() {
            let _ = writeln!(out, "         {}\n         {}", finding.why, finding.remedy);
        }
    }
    out
}
