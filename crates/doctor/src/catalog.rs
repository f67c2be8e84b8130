//! The catalogue of checks, in the order in which they are shown.
//!
//! Each check is a function of facts and question, and returns its finding, or None where it has no
//! place on this host. A check reads nothing and decides only about its own fact.

mod descriptors;
mod network;
mod threads;

use crate::facts::Facts;
use crate::finding::Finding;
use crate::question::Question;

type Check = fn(&Facts, &Question) -> Option<Finding>;

const CHECKS: &[Check] = &[
    threads::max_map_count,
    threads::pid_max,
    threads::threads_max,
    threads::group_pids,
    threads::user_processes,
    descriptors::server_descriptors,
    descriptors::nr_open,
    descriptors::pooler_descriptors,
    descriptors::client_descriptors,
    descriptors::file_max,
    network::local_ports,
];

/// All findings about `facts` that the question asks for.
#[must_use]
pub fn check(facts: &Facts, question: &Question) -> Vec<Finding> {
    CHECKS
        .iter()
        .filter_map(|check| check(facts, question))
        .collect()
}
