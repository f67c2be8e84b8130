//! The catalogue of checks, in the order in which they are shown.
//!
//! Each check is a function of facts and question, and returns its finding, or None where it has no
//! place on this host. A check reads nothing and decides only about its own fact.

mod descriptors;
mod health;
mod machine;
mod memory;
mod network;
mod server;
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
    descriptors::pool_descriptors,
    descriptors::client_descriptors,
    descriptors::file_max,
    memory::memory,
    memory::group_memory,
    memory::overcommit,
    memory::tcp_mem,
    memory::tcp_buffers,
    network::local_ports,
    network::connection_table,
    network::conntrack,
    network::epoll_watches,
    network::accept_queue,
    network::syn_queue,
    network::listen_drops,
    network::netdev_backlog,
    network::orphans,
    network::time_wait,
    machine::cpus,
    machine::steal,
    machine::clock_source,
    machine::sockets,
    server::server,
    server::server_identity,
    server::max_connections,
    server::max_user_connections,
    server::prepared_statements,
    server::thread_handling,
    server::table_open_cache,
    memory::session_buffers,
    health::wait_timeout,
    health::max_connect_errors,
    health::skip_name_resolve,
    health::query_cache,
    health::redo_log,
    health::buffer_pool,
    health::flush_settings,
    health::aborted_connects,
    health::connection_errors,
    health::threads_running,
];

/// All findings about `facts` that the question asks for.
#[must_use]
pub fn check(facts: &Facts, question: &Question) -> Vec<Finding> {
    CHECKS
        .iter()
        .filter_map(|check| check(facts, question))
        .collect()
}

#[cfg(test)]
mod tests;
