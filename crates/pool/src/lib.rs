//! `onramp pool`: a thread pool in front of any MySQL-protocol server.
//!
//! The problem: a server gives each connection a thread, and thousands of threads that all want to
//! run leave it no time to work. The mechanism: clients connect here, at the cost of a small struct
//! each; their statements run, first come first served, on a few connections to the server, and
//! each finds the session state that its client left. Several groups ([`Group`]), each a thread
//! with its own sockets and its own descriptor table, share nothing while they serve.
//!
//! [`run`] is the main thread's part: settings, what the server is like, the groups, signals, the
//! drain. ARCHITECTURE.md follows one statement through the rest.
#![forbid(unsafe_code)]

mod abandoned;
mod accounts;
mod admission;
mod arrivals;
mod attributes;
mod auth_delay;
mod auth_failures;
mod backend;
mod backend_pools;
mod backends;
mod begins;
mod bell;
mod binding;
mod budget;
mod bulk;
mod bulk_turn;
mod certificate;
mod client;
mod clients;
mod code_catalogue;
mod compression;
mod concurrency_limit;
mod config;
mod counts;
mod debts;
mod diagnostics;
mod dial;
mod endings;
mod error_counts;
mod fairness;
mod figures;
mod forgotten;
mod found;
mod fresh;
mod fronts;
#[cfg(test)]
mod generated_page;
mod global_values;
mod globals;
mod group;
mod guards;
mod init_connect;
mod input;
mod kill_connection;
mod kill_jobs;
mod kills;
mod lane;
mod lazy_readback;
mod leases;
mod limits;
mod line_limit;
mod log;
mod login;
mod losses;
mod memory;
mod memory_share;
mod message;
mod metrics;
mod options;
mod outages;
mod packing;
mod password_checks;
mod password_workers;
mod pinning;
mod pins;
mod prepared;
mod prepared_statements;
mod priority;
mod privileges;
mod probe;
mod queueing;
mod reasons;
mod relay;
mod renewal;
mod report;
mod reports;
mod reset_connection;
mod restoring;
mod roles;
mod room;
mod rows;
mod run;
mod schemas;
mod secret;
mod sending;
mod server_facts;
mod shared;
mod sharing;
mod silence;
mod site;
mod slow_readers;
mod spool;
mod statements;
mod timeouts;
mod tls;
mod touched;
mod trackers;
mod transport;
mod triggers_and_views;
mod untracked_changes;
mod upstream;
mod user_variables;
mod variables_had;
mod verifier;
mod waiting;
mod watch;

pub use config::{
    FileMode, GroupNumber, HttpAddress, Limits, Raw, Settings, StoredCode, UserNumber,
};
pub use counts::{Census, Counts};
pub use group::{Group, listener_token};
pub use kill_jobs::{KillAsk, KillEnd, Threads};
pub use log::{Level, LogFormat};
pub use options::PoolArgs;
pub use priority::{Mode, Priority};
pub use run::{run, settings};
pub use secret::Secret;
pub use server_facts::{ServerFacts, ServerTimeouts};
pub use session::text::Text;
pub use shared::{Order, Shared};
