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

mod admin;
mod auth;
mod backend;
mod client;
mod cluster;
mod config;
mod errors;
mod group;
mod limits;
mod observe;
mod pair;
mod run;
mod scheduler;
mod server;
mod statements;
mod upgrade;

pub use auth::network::Network;
pub use auth::own_certificate::MakePem;
pub use auth::secret::Secret;
pub use config::options::{Checked, PoolArgs};
pub use config::source::Source;
pub use config::{
    FileMode, GroupNumber, HttpAddress, Limits, Raw, Settings, StoredCode, UserNumber,
};
pub use group::Group;
pub use group::shared::{Lengths, Order, Shared, Sizes};
pub use group::tokens::listener_token;
pub use limits::spool_jobs::{SpoolDone, SpoolFiles};
pub use observe::figures::counts::{Census, Counts};
pub use observe::log::statement::StatementLog;
pub use observe::log::{Level, LogFormat};
pub use run::check::check;
pub use run::{run, settings};
pub use scheduler::priority::{Mode, Priority};
pub use scheduler::running_limit::Oversubscribe;
pub use server::facts::{ServerFacts, ServerTimeouts};
pub use session::known_digests::REPLY_MAX;
pub use session::text::Text;
pub use statements::kill::jobs::{KillAsk, KillEnd, Threads};
pub use upgrade::process::successor::Started;
