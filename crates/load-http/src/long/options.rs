//! Options of `onramp load tcp-hold` and `onramp load http://...`.
//!
//! The two share how connections are opened ([`SwarmArgs`]); the rest differs, so each has a
//! command line of its own, which [`LongArgs::read`] chooses by the first word behind `load`. The
//! options of SQL workloads are elsewhere.

use super::Kind;
use super::body::{BodyArgs, parse_period};
use super::place::Place;
use clap::{Args, Command, FromArgMatches};
use load_core::durations::{Spread, parse_length};
use load_core::transport::TlsArgs;
use load_locust::LocustArgs;
use measure::report_file::check_writable;
use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

const HOLD_EXAMPLE: &str = "\
Example, with the server to test against:
  onramp target tcp --listen 127.0.0.1:9000 --every 60s --payload ok
  onramp load tcp-hold --target tcp://127.0.0.1:9000 --connections 100000 --connect-rate 20000";

const HTTP_EXAMPLE: &str = "\
Example, with the server to test against:
  onramp target http --listen 127.0.0.1:8080 --payload ok
  onramp load http://127.0.0.1:8080/ --connections 1000 --think-time 100ms-1s --expect ok";

/// Hold many TCP connections and judge every message that comes over them
///
/// Every connection must hear the same message once a period, counted from its start. docs/long.md
/// describes the figures.
#[derive(Args, Clone, Debug)]
#[command(args_override_self = true, verbatim_doc_comment, after_long_help = HOLD_EXAMPLE)]
pub struct HoldArgs {
    /// The server: tcp://HOST:PORT, or tls://HOST:PORT for TLS
    #[arg(long, value_name = "PLACE", value_parser = Place::tcp)]
    pub target: Place,

    /// Period agreed with the server: a message comes this often from the connection's start on
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_period)]
    pub every: Duration,

    /// Message agreed with the server.
    #[command(flatten)]
    pub body: BodyArgs,

    /// Most by which a message may come later than its time, or earlier
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_length)]
    pub late_after: Duration,

    /// Time to hold once all connections are open [default: two periods]
    #[arg(long, value_name = "TIME", value_parser = parse_period)]
    pub time: Option<Duration>,

    /// Number of connections, and their opening.
    #[command(flatten)]
    pub swarm: SwarmArgs,
}

/// Ask over many HTTP connections, and judge every answer
///
/// Each connection asks, reads the answer, thinks, and asks again. docs/long.md describes the
/// figures.
#[derive(Args, Clone, Debug)]
#[command(args_override_self = true, verbatim_doc_comment, after_long_help = HTTP_EXAMPLE)]
pub struct HttpArgs {
    /// URL to request: http://HOST[:PORT][/PATH], or https://... for TLS
    #[arg(value_name = "URL", value_parser = Place::http)]
    pub url: Place,

    /// The version of HTTP: 1.1, or 2 (without TLS: with prior knowledge)
    #[arg(long, value_name = "VERSION", value_enum, default_value_t = HttpVersion::One)]
    pub http_version: HttpVersion,

    /// With HTTP/2, requests of one connection that are under way at once, at most as many as the
    /// server allows
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub streams: u16,

    /// The pause between an answer and the next request: a time, FROM-TO for any between, or
    /// exp:MEAN
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = Spread::parse)]
    pub think_time: Spread,

    /// The body of a right answer [default: any]
    #[arg(long, value_name = "TEXT")]
    pub expect: Option<String>,

    /// The body of a right answer is what a target with this --payload-size answers
    #[arg(long, value_name = "BYTES", conflicts_with = "expect",
          value_parser = clap::value_parser!(u32).range(1..=64 << 20))]
    pub expect_size: Option<u32>,

    /// A right answer that took longer is counted as late
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_period)]
    pub late_after: Duration,

    /// Give an answer up after this time, and its connection
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_period)]
    pub timeout: Duration,

    /// Use a connection for one request only
    #[arg(long)]
    pub no_keep_alive: bool,

    /// Time to send requests once all connections are open
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_period)]
    pub time: Duration,

    /// Number of connections, and their opening.
    #[command(flatten)]
    pub swarm: SwarmArgs,
}

/// Version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum HttpVersion {
    /// One request after the other.
    #[value(name = "1.1")]
    One,
    /// Several at once over one connection.
    #[value(name = "2")]
    Two,
}

/// Number of connections, and their opening.
#[derive(Args, Clone, Debug)]
pub struct SwarmArgs {
    /// Connections to hold, 1 to 16,000,000
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=16_000_000))]
    pub connections: u32,

    /// Connections to open each second, over all groups; 0 is as fast as possible
    #[arg(long, value_name = "N", default_value_t = 5_000)]
    pub connect_rate: u32,

    /// Connections being opened at once in each group, at least 1
    #[arg(long, value_name = "N", default_value_t = 256,
          value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub connects_in_flight: u32,

    /// Longest time for one connection to open
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_period)]
    pub connect_timeout: Duration,

    /// Check of the server's certificate.
    #[command(flatten)]
    pub tls: TlsArgs,

    /// Addresses of this machine to connect from, in turn [default: the kernel's choice;
    /// 127.0.0.2 and so on where the server is on 127.0.0.0/8 and one address has too few ports]
    #[arg(long, value_name = "A,B,...", value_delimiter = ',')]
    pub source_addresses: Vec<IpAddr>,

    /// Groups (threads) that hold the connections; 0 is one a core, and more where the descriptor
    /// limit asks for it
    #[arg(long, value_name = "N", default_value_t = 0,
          value_parser = clap::value_parser!(u32).range(0..=65_536))]
    pub groups: u32,

    /// Say on stderr how it goes, every so many seconds; 0 says it at the end only
    #[arg(long, value_name = "S", default_value_t = 10)]
    pub report_interval: u64,

    /// Write the result to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Serve the page of the run while it goes at http://ADDR/, as HOST:PORT; also /live.json and
    /// /metrics
    #[arg(long, value_name = "ADDR")]
    pub http: Option<String>,

    /// A name under which --http is asked for, besides addresses and localhost; may be given
    /// several times
    #[arg(long = "http-name", value_name = "NAME")]
    pub http_names: Vec<String>,

    /// Locust master of the run.
    #[command(flatten)]
    pub locust: LocustArgs,

    /// Seed of the random numbers; 0 takes one from the clock
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub rand_seed: u64,

    /// Believe that a group has this many descriptors, to try out many groups
    #[arg(long, value_name = "N", hide = true)]
    pub descriptors_per_group: Option<u64>,
}

impl BodyArgs {
    /// The body of that size.
    fn of_size(size: u32) -> BodyArgs {
        BodyArgs {
            payload: String::new(),
            payload_size: Some(size),
        }
    }
}

impl HttpArgs {
    /// The body of a right answer, if it matters.
    pub(super) fn expected(&self) -> Option<std::sync::Arc<[u8]>> {
        match (&self.expect, self.expect_size) {
            (Some(text), _) => Some(text.as_bytes().into()),
            (None, Some(size)) => Some(BodyArgs::of_size(size).bytes()),
            (None, None) => None,
        }
    }
}

/// The options of either kind.
#[derive(Clone, Debug)]
pub enum LongArgs {
    /// `onramp load tcp-hold`
    Hold(Box<HoldArgs>),
    /// `onramp load http://...`
    Http(Box<HttpArgs>),
}

impl LongArgs {
    /// Number of connections, and their opening.
    pub fn swarm(&self) -> &SwarmArgs {
        match self {
            LongArgs::Hold(args) => &args.swarm,
            LongArgs::Http(args) => &args.swarm,
        }
    }

    /// Options that both kinds have, to be changed.
    pub fn swarm_mut(&mut self) -> &mut SwarmArgs {
        match self {
            LongArgs::Hold(args) => &mut args.swarm,
            LongArgs::Http(args) => &mut args.swarm,
        }
    }

    /// Target of the connections.
    pub fn target(&self) -> &Place {
        match self {
            LongArgs::Hold(args) => &args.target,
            LongArgs::Http(args) => &args.url,
        }
    }

    /// Refuses options that contradict each other.
    ///
    /// # Errors
    /// A sentence that says which and what to do.
    pub fn check(&self) -> Result<(), String> {
        if let Some(file) = &self.swarm().json {
            check_writable(file).map_err(|why| format!("--json: {why}"))?;
        }
        match self {
            LongArgs::Hold(args) if args.body.bytes().is_empty() => {
                Err("--payload is empty; a message has at least one byte".to_owned())
            }
            LongArgs::Http(args) if args.streams > 1 && args.http_version == HttpVersion::One => {
                Err("--streams is of HTTP/2; add --http-version 2".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Reads the words behind `onramp load`, if the first one asks for long connections.
    ///
    /// # Errors
    /// What clap has to say: that an option makes no sense, or the help that was asked for.
    pub fn read(
        words: impl IntoIterator<Item = OsString>,
    ) -> Option<Result<LongArgs, clap::Error>> {
        let words: Vec<_> = words.into_iter().collect();
        let kind = Kind::of(words.first()?.to_str()?)?;
        Some(match kind {
            Kind::Hold => read("onramp load tcp-hold", &words[1..]).map(LongArgs::Hold),
            Kind::Http => read("onramp load", &words).map(LongArgs::Http),
        })
    }
}

fn read<T: Args + FromArgMatches>(
    name: &'static str,
    words: &[OsString],
) -> Result<Box<T>, clap::Error> {
    let mut command = T::augment_args(Command::new(name).no_binary_name(true));
    let matches = command.try_get_matches_from_mut(words)?;
    T::from_arg_matches(&matches)
        .map(Box::new)
        .map_err(|error| error.format(&mut command))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Option<Result<LongArgs, clap::Error>> {
        LongArgs::read(line.split_whitespace().map(OsString::from))
    }

    fn hold(line: &str) -> Result<HoldArgs, String> {
        match parse(line).unwrap() {
            Ok(LongArgs::Hold(args)) => Ok(*args),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error.to_string()),
        }
    }

    fn http(line: &str) -> Result<HttpArgs, String> {
        match parse(line).unwrap() {
            Ok(LongArgs::Http(args)) => Ok(*args),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn the_first_word_decides() {
        assert!(parse("oltp_point_select run --target mysql://a@h/t").is_none());
        assert!(parse("").is_none());
        assert!(parse("--help").is_none());
    }

    #[test]
    fn the_lines_of_the_manual_are_understood() {
        let args = hold(
            "tcp-hold --target tcp://127.0.0.1:9000 --connections 1000000 \
                         --connect-rate 20000",
        )
        .unwrap();
        assert_eq!(
            (args.swarm.connections, args.swarm.connect_rate),
            (1_000_000, 20_000)
        );
        assert_eq!(
            (args.every, &*args.body.bytes()),
            (Duration::from_secs(60), &b"ok"[..])
        );
        let args = http("http://127.0.0.1:8080/ --connections 9 --think-time 100ms-1s --expect ok")
            .unwrap();
        assert_eq!(args.url.to_string(), "http://127.0.0.1:8080/");
        assert_eq!(args.expected().as_deref(), Some(&b"ok"[..]));
        let args = http("http://h/ --expect-size 100").unwrap();
        assert_eq!(args.expected().map(|body| body.len()), Some(100));
    }

    #[test]
    fn mistakes_are_said_with_what_was_expected() {
        for (line, words) in [
            ("tcp-hold", "--target <PLACE>"),
            (
                "tcp-hold --target 127.0.0.1:9000",
                "expected tcp://HOST:PORT",
            ),
            ("tcp-hold --target tcp://h:1 --every 0s", "above 0"),
            (
                "tcp-hold --target tcp://h:1 --payload a --payload-size 5",
                "cannot be used with",
            ),
        ] {
            let error = hold(line).unwrap_err();
            assert!(error.contains(words), "{line}: {error}");
        }
        let error = http("http://h/ --think-time fast").unwrap_err();
        assert!(error.contains("250ms"), "{error}");
    }
}
