//! Options of `onramp explain`.
//!
//! The error itself is a positional argument of any number of words, so that a number, a name and a
//! whole line can be given without thinking about quotes; without one, a log is read from standard
//! input.

use wire::dsn::Dsn;

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

    /// Ask this server for its values: mysql://USER@HOST[:PORT] or
    /// mysql://USER@localhost?socket=/PATH, with the password in a file (password_file=FILE behind
    /// the ?), or in the environment (password_env=NAME)
    #[arg(long, value_name = "DSN", value_parser = Dsn::read_plain)]
    pub target: Option<Dsn>,

    /// The server's process on this host [default: as the target says, or the only one]
    #[arg(long, value_name = "PID")]
    pub server_pid: Option<u64>,

    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
}
