//! The verdict: on each way, how many connections would be reached today, and by which limits.
//!
//! Nothing is computed here that the findings do not say: the ladder is their numbers in order.

use crate::facts::NO_LIMIT;
use crate::finding::Finding;
use crate::question::Way;

/// One limit on a way.
#[derive(Clone, Copy, Debug)]
pub struct Rung<'a> {
    /// Connections reached when it stops the next one.
    pub connections: u64,
    /// Finding that stops it.
    pub finding: &'a Finding,
}

/// All limits on `way`, the lowest first; in the order of the checks where they are equal.
#[must_use]
pub fn ladder(findings: &[Finding], way: Way) -> Vec<Rung<'_>> {
    let rung = |finding| {
        let connections = Finding::holds_on(finding, way)?;
        (connections != NO_LIMIT).then_some(Rung {
            connections,
            finding,
        })
    };
    let mut rungs: Vec<_> = findings.iter().filter_map(rung).collect();
    rungs.sort_by_key(|rung| rung.connections);
    rungs
}

/// The first limit on `way`; None if no fact bounds it.
#[must_use]
pub fn limit(findings: &[Finding], way: Way) -> Option<Rung<'_>> {
    ladder(findings, way).into_iter().next()
}
