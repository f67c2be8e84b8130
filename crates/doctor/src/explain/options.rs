//! Options of `onramp explain`.
//!
//! The error itself is a positional argument of any number of words, so that a number, a name and a
//! whole line can be given without thinking about quotes; without one, a log is read from standard
//! input.

use crate::target::TargetArgs;

/// Say what an error means, how to see it on this host now, and what to do
///
/// An error is a number (1135, 24), a name (EMFILE, ER_CON_COUNT_ERROR) or a whole line of any tool
/// in quotes. Without one, or with -, a log is read from standard input.
#[derive(clap::Args, Clone, Debug)]
#[command(verbatim_doc_comment)]
pub struct ExplainArgs {
    /// The error: 1135, EMFILE, or a line in quotes
    #[arg(value_name = "ERROR")]
    pub error: Vec<String>,

    /// The server whose values are shown.
    #[command(flatten)]
    pub server: TargetArgs,

    /// The server's process on this host [default: as the target says, or the only one]
    #[arg(long, value_name = "PID")]
    pub server_pid: Option<u64>,

    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
}
