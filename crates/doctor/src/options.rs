//! Options of `onramp doctor`.
//!
//! What they mean together (which role a target has, say) is decided in `question` here, so that
//! the checks see one [`Question`] whatever was typed.

use crate::emit::Form;
use crate::facts::Facts;
use crate::question::{Question, Role, Way};
use crate::target::TargetArgs;
use std::net::IpAddr;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  onramp doctor                                    how far this host goes today, and why
  onramp doctor --connections 100000 --target mysql://root@127.0.0.1:3306
  onramp doctor --connections 100000 --emit sysctl > /etc/sysctl.d/90-connections.conf
  onramp doctor --connections 100000 --apply       set what can be set now, after asking

Exit status: 0 a way reaches the number, or the ladder was printed; 1 none does, or the server that
was named did not answer; 2 the command line or a file cannot be used.";

/// Say what stands between this host, this server and N connections
///
/// Without --connections: how many connections could be reached today on each way, and by which
/// limits, in order. With it: every check against what N connections need, with the arithmetic and
/// the command that closes each gap. docs/doctor.md is the manual.
#[derive(clap::Args, Clone, Debug)]
#[command(verbatim_doc_comment, after_long_help = EXAMPLES)]
pub struct DoctorArgs {
    /// Connections wanted, 1 to 16,000,000
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=16_000_000))]
    pub connections: Option<u64>,

    /// The server that is asked too.
    #[command(flatten)]
    pub server: TargetArgs,

    /// Programs that run on this host [default: all of it; with a target elsewhere, the clients]
    #[arg(long, value_enum)]
    pub role: Option<Role>,

    /// Look at these ways only; may be given several times [default: all; fragments and --apply are
    /// for onramp]
    #[arg(long, value_enum)]
    pub way: Vec<Way>,

    /// Prepared statements that each connection holds [default: sysbench's 91, as a warning only]
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    pub statements_per_connection: Option<u64>,

    /// Connections of the pool to the server, 1 to 100,000
    #[arg(long, value_name = "N", default_value_t = 64,
          value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub backends: u64,

    /// Addresses that clients connect from: a list, or how many [default: 1; towards this host as
    /// many as onramp load takes]
    #[arg(long, value_name = "A,B,...|COUNT", value_parser = count_sources)]
    pub source_addresses: Option<u64>,

    /// Pairs of address and port that clients connect to, 1 to 65,536
    #[arg(long, value_name = "COUNT", default_value_t = 1,
          value_parser = clap::value_parser!(u64).range(1..=65_536))]
    pub targets: u64,

    /// Connections that clients open in a second, 1 to 1,000,000
    #[arg(long, value_name = "N", default_value_t = 5_000,
          value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub connect_rate: u64,

    /// The server's process on this host [default: as the target says, or the only one]
    #[arg(long, value_name = "PID")]
    pub server_pid: Option<u64>,

    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,

    /// Also say why each check that is ok matters
    #[arg(long)]
    pub all: bool,

    /// Print a complete fragment for N connections instead
    #[arg(long, value_enum, value_name = "FORM", requires = "connections")]
    pub emit: Option<Form>,

    /// Set what can be set while everything runs, after showing it and asking
    #[arg(long, requires = "connections", conflicts_with_all = ["emit", "undo", "json"])]
    pub apply: bool,

    /// Set back what --apply has set
    #[arg(long, conflicts_with_all = ["emit", "json"])]
    pub undo: bool,

    /// Do not ask before --apply or --undo
    #[arg(long)]
    pub yes: bool,

    /// File in which --apply notes the values of before, and that --undo reads [default:
    /// /var/lib/onramp/doctor-undo.json for root, else ~/.onramp-doctor-undo.json]
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,

    /// Look at the facts in this file instead of this host's and the server's
    #[arg(long, value_name = "FILE", conflicts_with_all = ["target", "apply", "undo"])]
    pub facts: Option<PathBuf>,

    /// Also write the facts to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub save_facts: Option<PathBuf>,
}

/// A count, or a list of addresses.
fn count_sources(text: &str) -> Result<u64, String> {
    if let Ok(count) = text.parse::<u64>() {
        return match count {
            1..=65_536 => Ok(count),
            _ => Err(format!("{count} addresses; expected 1 to 65536")),
        };
    }
    let wrong = text
        .split(',')
        .find(|address| address.parse::<IpAddr>().is_err());
    match wrong {
        Some(wrong) => Err(format!("'{wrong}' is no address and no count")),
        None => Ok(text.split(',').count() as u64),
    }
}

impl DoctorArgs {
    /// File in which --apply and --undo keep their record: nobody else may write there, since its
    /// commands are carried out.
    ///
    /// # Errors
    /// A sentence, where this user has no place for it.
    pub fn record(&self) -> Result<PathBuf, String> {
        if let Some(record) = &self.record {
            return Ok(record.clone());
        }
        if rustix::process::geteuid().is_root() {
            let folder = PathBuf::from("/var/lib/onramp");
            let made = std::fs::create_dir_all(&folder);
            made.map_err(|error| {
                format!("{}: {error}; name a file with --record", folder.display())
            })?;
            return Ok(folder.join("doctor-undo.json"));
        }
        let home = std::env::var_os("HOME").ok_or("HOME is not set; name a file with --record")?;
        Ok(PathBuf::from(home).join(".onramp-doctor-undo.json"))
    }

    /// Question about these facts.
    #[must_use]
    pub fn question(&self, facts: &Facts) -> Question {
        let is_far = facts.server.as_ref().is_some_and(|server| !server.is_local);
        let role = self
            .role
            .unwrap_or(if is_far { Role::Client } else { Role::AllInOne });
        // Fragments are for one way.
        let one_way = self.emit.is_some() || self.apply;
        let ways = match (self.way.as_slice(), one_way) {
            // HAProxy passes connections on, each as one of its own.
            ([], _) if self.emit == Some(Form::Haproxy) => vec![Way::Direct],
            ([], true) => vec![Way::Onramp],
            ([], false) => Way::ALL.to_vec(),
            (ways, _) => ways.to_vec(),
        };
        Question {
            connections: self.connections,
            ways,
            role,
            statements: self.statements_per_connection,
            backends: self.backends,
            // 127.0.0.0/8 is all ours.
            sources: match (self.source_addresses, role) {
                (None, Role::AllInOne) => None,
                (sources, _) => Some(sources.unwrap_or(1)),
            },
            targets: self.targets,
            connect_rate: self.connect_rate,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Server;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        doctor: DoctorArgs,
    }

    fn parse(line: &str) -> Result<DoctorArgs, String> {
        let words = std::iter::once("doctor").chain(line.split_whitespace());
        let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
        Ok(line.doctor)
    }

    fn far() -> Facts {
        Facts {
            server: Some(Server::default()),
            ..Facts::default()
        }
    }

    #[test]
    fn a_server_on_another_host_leaves_the_clients_here() {
        let args = parse("--connections 100000").unwrap();
        let here = args.question(&Facts::default());
        assert_eq!(
            (here.role, here.sources, here.wanted()),
            (Role::AllInOne, None, 100_000)
        );
        assert_eq!(here.ways, Way::ALL);
        let there = args.question(&far());
        assert_eq!((there.role, there.sources), (Role::Client, Some(1)));
    }

    #[test]
    fn fragments_are_for_onramp_unless_another_way_is_named() {
        let args = parse("--connections 7 --emit sysctl").unwrap();
        assert_eq!(args.question(&far()).ways, [Way::Onramp]);
        let args = parse("--connections 7 --apply --way direct").unwrap();
        assert_eq!(args.question(&far()).ways, [Way::Direct]);
    }

    #[test]
    fn sources_are_a_count_or_a_list() {
        assert_eq!(count_sources("4"), Ok(4));
        assert_eq!(count_sources("10.0.0.1,10.0.0.2"), Ok(2));
        assert!(count_sources("10.0.0.1,x").unwrap_err().contains("'x'"));
        assert!(count_sources("0").is_err());
    }

    #[test]
    fn contradictions_are_refused() {
        assert!(
            parse("--emit sysctl")
                .unwrap_err()
                .contains("--connections")
        );
        assert!(parse("--connections 5 --apply --undo").is_err());
        assert!(parse("--connections 0").is_err());
    }
}
