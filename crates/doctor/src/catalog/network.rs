//! The network: ports, queues of connections that are not yet accepted, connection tracking.
//!
//! Ports are a wall where one client address meets one server address; everything else here costs
//! connections only in a storm, and then without a word on either side.

use crate::facts::Facts;
use crate::finding::{Demand, Finding, Severity};
use crate::number::thousands;
use crate::question::Question;
use crate::setting::Setting;

/// The widest range that leaves the well-known ports alone.
const RANGE_WIDE: [u64; 2] = [1_024, 65_535];

pub(super) fn local_ports(facts: &Facts, question: &Question) -> Option<Finding> {
    question.role.has_clients().then_some(())?;
    let host = &facts.host;
    let range = host.sysctls.get("net.ipv4.ip_local_port_range");
    let range = range.and_then(|range| Some((*range.first()?, *range.last()?)));
    let taken =
        host.count("ports_reserved").unwrap_or(0) + host.count("ports_listening").unwrap_or(0);
    let ports = range.map(|(first, last)| (last + 1).saturating_sub(first).saturating_sub(taken));
    let have = match (ports, question.sources) {
        (None, _) => None,
        (_, None) => Some(crate::facts::NO_LIMIT),
        (Some(ports), Some(sources)) => Some(ports * sources * question.targets),
    };
    let demands = [Some(Demand::new(0, 1)); 3];
    let finding = Finding::of(question, "local_ports", Severity::Wall, have, demands);
    let (first, last) = range.unwrap_or_default();
    Some(finding
        .why(format!(
            "a connection is told from others by addresses and ports: {} local ports ({first} to \
             {last}, less {taken} reserved or listened on) x source addresses x targets",
            thousands(ports.unwrap_or_default())
        ))
        .settings(vec![Setting::Sysctl("net.ipv4.ip_local_port_range", RANGE_WIDE.to_vec())]))
}
