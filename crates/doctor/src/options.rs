//! Options of `onramp doctor`.
//!
//! What they mean together (which role a target has, say) is decided in `question` here, so that
//! the checks see one [`Question`] whatever was typed.

use crate::question::{Question, Role, Way};
use wire::dsn::Dsn;

/// Say what stands between this host, this server and N connections
///
/// Without --connections: how many connections could be reached today on each way, and by which
/// limits, in order. With it: every check against what N connections need. docs/doctor.md is the
/// manual.
#[derive(clap::Args, Clone, Debug)]
#[command(verbatim_doc_comment)]
pub struct DoctorArgs {
    /// Connections wanted, 1 to 16,000,000
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=16_000_000))]
    pub connections: Option<u64>,

    /// Ask this server too: mysql://USER[:PASSWORD]@HOST[:PORT] or ...?socket=/PATH
    #[arg(long, value_name = "DSN", value_parser = Dsn::parse)]
    pub target: Option<Dsn>,

    /// What runs on this host [default: all of it; with a target on another host, the clients]
    #[arg(long, value_enum)]
    pub role: Option<Role>,

    /// Look at these ways only; may be given several times [default: all]
    #[arg(long, value_enum)]
    pub way: Vec<Way>,

    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
}

impl DoctorArgs {
    /// What is asked.
    #[must_use]
    pub fn question(&self) -> Question {
        let default = Question::default();
        Question {
            connections: self.connections,
            ways: if self.way.is_empty() {
                default.ways
            } else {
                self.way.clone()
            },
            role: self.role.unwrap_or(Role::AllInOne),
            ..default
        }
    }
}
