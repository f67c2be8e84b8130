//! Options of `onramp target`.

use crate::long::body::{BodyArgs, parse_period};
use clap::{Args, Subcommand};
use std::time::Duration;

const EXAMPLE: &str = "\
Example, with its other side:
  onramp target tcp --listen 127.0.0.1:9000 --every 60s --payload ok
  onramp load tcp-hold --target tcp://127.0.0.1:9000 --connections 100000 --every 60s --payload ok";

/// Be a server to test long connections or HTTP against
///
/// It serves until SIGINT or SIGTERM, and then says what it has done. docs/long.md has examples.
#[derive(Args, Clone, Debug)]
#[command(verbatim_doc_comment, after_long_help = EXAMPLE)]
pub struct TargetArgs {
    /// Protocol that it speaks
    #[command(subcommand)]
    pub kind: Kind,
}

/// Protocol of a target.
#[derive(Subcommand, Clone, Debug)]
pub enum Kind {
    /// Send a message to every connection, once a period
    Tcp(TcpArgs),
    /// Answer every HTTP/1.1 request with a message
    Http(HttpArgs),
}

/// Options of `onramp target tcp`.
#[derive(Args, Clone, Debug)]
#[command(args_override_self = true)]
pub struct TcpArgs {
    /// Listen here; port 0 takes a free one and says which
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:9000")]
    pub listen: String,

    /// Send after this time, and again after each such time: 250ms, 60s, 5m
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_period)]
    pub every: Duration,

    /// Message that is sent.
    #[command(flatten)]
    pub body: BodyArgs,

    /// Size of the target.
    #[command(flatten)]
    pub size: SizeArgs,
}

/// Options of `onramp target http`.
#[derive(Args, Clone, Debug)]
#[command(args_override_self = true)]
pub struct HttpArgs {
    /// Listen here; port 0 takes a free one and says which
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8080")]
    pub listen: String,

    /// Body of answers.
    #[command(flatten)]
    pub body: BodyArgs,

    /// Size of the target.
    #[command(flatten)]
    pub size: SizeArgs,
}

/// Size that a target is made for.
#[derive(Args, Clone, Debug)]
pub struct SizeArgs {
    /// Connections at once, 1 to 16,000,000: decides the groups, by the limit on descriptors of
    /// each
    #[arg(long, value_name = "N", default_value_t = 1_000_000,
          value_parser = clap::value_parser!(u32).range(1..=16_000_000))]
    pub connections_max: u32,

    /// Groups (threads); 0 is one a core, and more where the descriptor limit asks for it
    #[arg(long, value_name = "N", default_value_t = 0,
          value_parser = clap::value_parser!(u32).range(0..=4_096))]
    pub groups: u32,

    /// Connections that may wait to be accepted, for each group; the kernel cuts it to
    /// net.core.somaxconn
    #[arg(long, value_name = "N", default_value_t = 4_096,
          value_parser = clap::value_parser!(i32).range(1..=1_048_576))]
    pub backlog: i32,

    /// Say on stderr how many connections stand, every so many seconds; 0 says nothing
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub report_interval: u64,
}
