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

mod address_counts;
mod alone;
mod answers;
mod arrival;
mod auth;
mod backend;
mod buffers;
mod client;
mod code_seen;
mod config;
mod errors;
mod failed_logins;
mod figures;
mod from_backend;
mod from_client;
mod from_files;
#[cfg(test)]
mod generated_page;
mod group;
mod input_room;
mod kept;
mod kill_connection;
mod kill_fate;
mod kill_meaning;
mod limited_log;
mod line;
mod listing;
mod log;
mod matching;
mod naming;
mod openings;
mod operations;
mod own_ok;
mod pair;
mod pinning;
mod pool_members;
mod probe;
mod queue;
mod run;
mod running;
#[cfg(test)]
mod scripted;
mod server;
mod shared;
mod slow_readers;
mod statement_commands;
mod statement_logs;
mod survey;
mod telemetry;
mod time_limits;
mod to_backend;
mod to_client;
mod tokens;
mod turn_output;
mod unread;
mod upgrade;
mod waiters;
mod watched;

pub use auth::network::Network;
pub use auth::own_certificate::MakePem;
pub use auth::secret::Secret;
pub use backend::kill_jobs::{KillAsk, KillEnd, Threads};
pub use buffers::spool_jobs::{SpoolDone, SpoolFiles};
pub use config::options::PoolArgs;
pub use config::source::Source;
pub use config::{
    FileMode, GroupNumber, HttpAddress, Limits, Raw, Settings, StoredCode, UserNumber,
};
pub use figures::counts::{Census, Counts};
pub use group::Group;
pub use log::statement::StatementLog;
pub use log::{Level, LogFormat};
pub use operations::upgrade::successor::Started;
pub use queue::priority::{Mode, Priority};
pub use queue::running_limit::Oversubscribe;
pub use run::{run, settings};
pub use server::server_facts::{ServerFacts, ServerTimeouts};
pub use session::shapes::REPLY_MAX;
pub use session::text::Text;
pub use shared::{Order, Shared, Sizes};
pub use tokens::listener_token;
