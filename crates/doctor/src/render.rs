//! The answer as JSON, for programs.
//!
//! Its form does not change between versions: names of checks stay, and numbers are numbers. What
//! is not known is null, and what has no limit the word "unlimited".

use crate::facts::{Facts, Running};
use crate::finding::{Amount, Finding, Status};
use crate::question::Way;
use crate::verdict::limit;
use serde::Serialize;
use std::collections::BTreeMap;

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
    /// Process whose limits are the server's; null where none was found, or none chosen of several.
    server_pid: Option<u64>,
    /// All servers on this host.
    servers: &'a [Running],
    connections_possible: BTreeMap<Way, Option<u64>>,
    limited_by: BTreeMap<Way, Option<&'a str>>,
    checks: Vec<CheckJson<'a>>,
}

/// The answer as JSON, on several lines.
#[must_use]
pub fn json(findings: &[Finding], facts: &Facts) -> String {
    let of = |way: Way| limit(findings, way);
    let answer = AnswerJson {
        server_pid: facts.server_process.as_ref().map(|process| process.pid),
        servers: &facts.servers,
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
            .filter(|finding| finding.is_asked)
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
