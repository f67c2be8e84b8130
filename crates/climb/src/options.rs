//! The options of `onramp climb`, raw and checked.
//!
//! `ClimbArgs` is what clap reads: each option says its unit, its range and its default, and clap
//! refuses a value outside of the range with one line and exit status 2. `Plan` is what the rest of
//! the crate works from: lists sorted and freed of repetitions, the address taken apart, and the
//! combinations refused that make no sense. No other file looks at a raw option.

use std::path::PathBuf;

use clap::Args;
use clap::value_parser;

use crate::ladder::{self, Cell, Path};
use crate::processors::{Part, Processors};
use crate::server::Kind;
use crate::target::Dsn;

const EXAMPLE: &str = "\
Example, 100,000 connections through the pool alone:
  onramp climb --rungs 1000,10000,100000 --paths onramp";

/// Measure a server direct and through the pool, with more connections rung by rung
///
/// All options have defaults: onramp climb alone starts a private MariaDB in a scratch directory,
/// measures 100, 1,000 and 10,000 executing connections three ways, prints a table, writes
/// climb.json and climb.html, and leaves nothing else behind. docs/climb.md describes the figures.
#[derive(Args, Clone, Debug)]
#[command(verbatim_doc_comment, after_long_help = EXAMPLE)]
pub struct ClimbArgs {
    /// Executing connections, one rung each: numbers from 1 to 10,000,000, with commas between
    /// [default: 100,1000,10000, or what the scenario says]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = ladder::parse_rung)]
    pub rungs: Vec<u32>,

    /// A preset of rungs, workloads and arguments that shows one behaviour
    #[arg(long, value_name = "NAME", value_enum)]
    pub scenario: Option<Scenario>,

    /// Ways to the server, in this order on each rung: direct (the server runs a thread per
    /// connection), server-pool (the server runs its own pool of threads), haproxy, router (MySQL
    /// Router; both are fetched by scripts/get-peers.sh), onramp (through onramp pool)
    /// [default: direct,server-pool,onramp, or those of the scenario]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub paths: Vec<String>,

    /// The workload that every connection runs without a pause: a name that onramp load knows
    #[arg(long, value_name = "NAME", default_value = "oltp_point_select")]
    #[arg(conflicts_with = "scenario")]
    pub workload: String,

    /// Prepare the statements and execute them by the binary protocol, on all paths, as sysbench
    /// does by default [default: statements are text]
    #[arg(long)]
    pub prepared: bool,

    /// Tables sbtest1 to sbtestN, 1 to 1000
    #[arg(long, value_name = "N", default_value_t = 4)]
    #[arg(value_parser = value_parser!(u32).range(1..=1000))]
    pub tables: u32,

    /// Rows in each table, 1 to 100,000,000
    #[arg(long, value_name = "N", default_value_t = 25_000)]
    #[arg(value_parser = value_parser!(u32).range(1..=100_000_000))]
    pub table_size: u32,

    /// Execute for so many seconds before measuring begins, 0 to 3600; one more is added for each
    /// 20,000 connections, because each must have had its turn
    #[arg(long, value_name = "S", default_value_t = 3)]
    #[arg(value_parser = value_parser!(u32).range(0..=3600))]
    pub warmup_time: u32,

    /// Time to measure each cell, in seconds, 1 to 86,400; one more is added for each 10,000
    /// connections
    #[arg(long, value_name = "S", default_value_t = 10)]
    #[arg(value_parser = value_parser!(u32).range(1..=86_400))]
    pub time: u32,

    /// Connections to open each second, 1 to 1,000,000 [default: 4000 for direct and server-pool;
    /// 8000 for onramp, and a hundredth of a rung of more than 800,000]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=1_000_000))]
    pub connect_rate: Option<u32>,

    /// Processors of each part, as server=0,pool=1,load=1; several are written 2-5+8. pool is the
    /// proxy of any path; a part that is not named stays where it is. Where the server shares none,
    /// paths are compared by statements for each second of the server's CPU
    #[arg(long, value_name = "PART=LIST,...", value_parser = str::parse::<Processors>)]
    pub cpus: Option<Processors>,

    /// Kind of the private server
    #[arg(long, value_name = "KIND", value_enum, default_value = "mariadb")]
    #[arg(conflicts_with = "target")]
    pub server: Kind,

    /// Use this server and not a private one: mysql://USER@HOST[:PORT]/SCHEMA, or the same with
    /// ?socket=/PATH, and with the password in a file (password_file=FILE behind the ?), or in the
    /// environment (password_env=NAME). The tables are created in SCHEMA, and dropped at the end
    #[arg(long, value_name = "DSN")]
    pub target: Option<String>,

    /// With --target: use the tables that are there; create none, drop none
    #[arg(long, requires = "target")]
    pub no_prepare: bool,

    /// Directory of the private MariaDB's programs, with mariadbd and mariadb-install-db
    /// in it or in its bin, sbin and scripts [default: PATH, /usr/sbin, /usr/local/sbin]
    #[arg(long, value_name = "DIR", conflicts_with = "target")]
    pub mariadb_dir: Option<PathBuf>,

    /// Directory of the private MySQL (--server mysql), with run as scripts/get-mysql.sh makes
    /// it, or with mysqld in it or in its bin or sbin [default: what ONRAMP_MYSQL names, what the
    /// script made in target/mysql, PATH]
    #[arg(long, value_name = "DIR", conflicts_with = "target")]
    pub mysql_dir: Option<PathBuf>,

    /// Folder for the scratch directory, which holds the private server's data (about 200 MB by
    /// default) [default: TMPDIR or /tmp]
    #[arg(long, value_name = "DIR")]
    pub scratch_dir: Option<PathBuf>,

    /// Leave the scratch directory in place at the end, with the server's data and load's reports
    #[arg(long)]
    pub keep_scratch: bool,

    /// One more argument for onramp pool, as --pool-arg=--name=value; may be repeated
    #[arg(long, value_name = "ARG", allow_hyphen_values = true)]
    pub pool_arg: Vec<String>,

    /// One more argument for each onramp load ... run; may be repeated
    #[arg(long, value_name = "ARG", allow_hyphen_values = true)]
    pub load_arg: Vec<String>,

    /// One more argument for the private server; may be repeated
    #[arg(
        long,
        value_name = "ARG",
        allow_hyphen_values = true,
        conflicts_with = "target"
    )]
    pub server_arg: Vec<String>,

    /// File for the evidence as JSON, rewritten after each cell
    #[arg(long, value_name = "FILE", default_value = "climb.json")]
    pub out_json: PathBuf,

    /// File for the page with the charts
    #[arg(long, value_name = "FILE", default_value = "climb.html")]
    pub out_html: PathBuf,

    /// The program that runs `pool` and `load`; None is this program itself. Set by tests only.
    #[arg(skip)]
    pub program: Option<PathBuf>,
}

/// The options after all checks.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) rungs: Vec<u32>,
    pub(crate) paths: Vec<Path>,
    pub(crate) target: Option<Dsn>,
    pub(crate) processors: Processors,
    /// The rest needs no second form.
    pub(crate) raw: ClimbArgs,
}

/// Connections for which a second is added to the warm-up: with everybody executing, each has its
/// turn about once in N / (statements per second) seconds, and is warm when it has had one.
const CONNECTIONS_PER_WARM_SECOND: u32 = 20_000;
/// Connections for which a second is measured more: all must have had several turns.
const CONNECTIONS_PER_MEASURED_SECOND: u32 = 10_000;

/// Rungs when the user names none.
const RUNGS_DEFAULT: [u32; 3] = [100, 1_000, 10_000];

/// Seconds that a statement may take on a rung of few connections.
const ANSWER_S: u32 = 30;
/// Statements a second at which everybody's last as long as one may take: in a closed loop each
/// waits for all the others, and a slow server is to be measured, not refused.
const STATEMENTS_PER_SECOND_MIN: u32 = 5_000;

impl ClimbArgs {
    /// Seconds of warm-up with so many connections.
    pub(crate) fn warmup_of(&self, connections: u32) -> u32 {
        self.warmup_time + connections / CONNECTIONS_PER_WARM_SECOND
    }

    /// Seconds measured with so many connections.
    pub(crate) fn time_of(&self, connections: u32) -> u32 {
        self.time + connections / CONNECTIONS_PER_MEASURED_SECOND
    }

    /// Seconds that one statement may take with so many connections, at most a day.
    pub(crate) fn answer_max_of(&self, connections: u32) -> u32 {
        (ANSWER_S + connections / STATEMENTS_PER_SECOND_MIN).min(86_400)
    }

    fn processors(&self) -> Result<Processors, String> {
        let Some(processors) = &self.cpus else {
            return Ok(Processors::default());
        };
        let server = processors.of(Part::Server);
        if self.target.is_some() && !server.is_empty() {
            return Err("server=: the server of --target runs where it was started".to_owned());
        }
        if matches!(
            self.scenario,
            Some(Scenario::Failover | Scenario::Switchover)
        ) {
            return Err("has no meaning in a failover: it counts no CPU".to_owned());
        }
        processors.check().map(|()| processors.clone())
    }

    /// Checks what clap cannot. An error is one line for the user.
    pub(crate) fn check(&self) -> Result<Plan, String> {
        let parsed: Result<Vec<_>, _> = self.paths.iter().map(|p| ladder::parse_path(p)).collect();
        let paths = parsed.map_err(|text| format!("--paths {}: {text}", self.paths.join(",")))?;
        let paths = if paths.is_empty() {
            Path::DEFAULT.to_vec()
        } else {
            paths
        };
        let rungs = match &self.rungs[..] {
            [] => &RUNGS_DEFAULT,
            rungs => rungs,
        };
        if self.workload.is_empty() || self.workload.starts_with('-') {
            return Err(format!(
                "--workload '{}': expected the name of a workload",
                self.workload
            ));
        }
        let unused = match self.server {
            Kind::Mariadb => ("--mysql-dir", &self.mysql_dir),
            Kind::Mysql => ("--mariadb-dir", &self.mariadb_dir),
        };
        if let (option, Some(_)) = unused {
            let kind = self.server.name();
            return Err(format!(
                "{option}: the private server is a {kind}: see --server"
            ));
        }
        let failover = matches!(
            self.scenario,
            Some(Scenario::Failover | Scenario::Switchover)
        );
        if failover && self.server == Kind::Mysql {
            return Err("--server mysql: failover and switchover know MariaDB only".to_owned());
        }
        if self.out_json == self.out_html {
            let file = self.out_json.display();
            return Err(format!(
                "--out-json and --out-html are both {file}: name two files"
            ));
        }
        let target = self.target.as_deref().map(Dsn::parse).transpose();
        let target = target.map_err(|text| format!("--target: {text}"))?;
        let processors = self.processors().map_err(|text| format!("--cpus {text}"))?;
        Ok(Plan {
            rungs: ladder::ascending(rungs),
            paths: ladder::distinct(&paths),
            target,
            processors,
            raw: self.clone(),
        })
    }
}

/// A scenario, by its name in `--scenario`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Scenario {
    /// Clients who give up after 1 s, reconnect and try again: at up to 5 times what the server
    /// can do, how much is still answered in time
    Snowball,
    /// Updates of one row, and sysbench's read-write, in transactions; with priority for open
    /// transactions and without
    Transactions,
    /// The first half of transactions: updates of one row
    Update,
    /// The second half of transactions: sysbench's read-write
    ReadWrite,
    /// One slow statement in a hundred; with other statements let past it and without
    Slow,
    /// A writer that dies under clients who update rows: direct with a driver that connects to the
    /// other server, through HAProxy and MySQL Router where they are, and through the pool
    Failover,
    /// A writer that is changed for another as planned, the same three ways
    Switchover,
}

impl Scenario {
    /// The name in options and in the evidence.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Snowball => "snowball",
            Self::Transactions => "transactions",
            Self::Update => "update",
            Self::ReadWrite => "read-write",
            Self::Slow => "slow",
            Self::Failover => "failover",
            Self::Switchover => "switchover",
        }
    }
}

impl Plan {
    pub(crate) fn cells(&self) -> Vec<Cell> {
        ladder::cells(&self.rungs, &self.paths)
    }

    pub(crate) fn connect_rate(&self, cell: Cell) -> u32 {
        let default = cell.path.connect_rate_default(cell.connections);
        self.raw.connect_rate.unwrap_or(default)
    }

    pub(crate) fn rung_max(&self) -> u32 {
        self.rungs.last().copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        climb: ClimbArgs,
    }

    fn read(words: &[&str]) -> Result<ClimbArgs, clap::Error> {
        let words = std::iter::once("climb").chain(words.iter().copied());
        Line::try_parse_from(words).map(|line| line.climb)
    }

    #[test]
    fn no_options_are_a_full_climb() {
        let plan = read(&[]).unwrap().check().unwrap();
        assert_eq!(plan.rungs, [100, 1_000, 10_000]);
        assert_eq!(plan.paths, Path::DEFAULT);
        assert_eq!(plan.cells().len(), 9);
        let rate = |path, connections| plan.connect_rate(Cell { path, connections });
        assert_eq!(rate(Path::Direct, 2_000_000), 4_000);
        assert_eq!(rate(Path::Onramp, 100_000), 8_000);
        assert_eq!(rate(Path::Onramp, 1_000_000), 20_000);
        assert_eq!(rate(Path::Onramp, 2_000_000), 20_000);
        assert_eq!((plan.raw.tables, plan.raw.table_size), (4, 25_000));
        let times = |n| {
            (
                plan.raw.warmup_of(n),
                plan.raw.time_of(n),
                plan.raw.answer_max_of(n),
            )
        };
        assert_eq!(times(1_000), (3, 10, 30));
        assert_eq!(times(1_000_000), (53, 110, 230));
    }

    #[test]
    fn lists_are_read_at_commas() {
        let words = ["--rungs", "100000,1_000", "--paths=onramp,direct,onramp"];
        let plan = read(&words).unwrap().check().unwrap();
        assert_eq!(plan.rungs, [1_000, 100_000]);
        assert_eq!(plan.paths, [Path::Onramp, Path::Direct]);
        assert_eq!(plan.rung_max(), 100_000);
    }

    #[test]
    fn arguments_pass_through_with_their_hyphens() {
        let words = [
            "--pool-arg",
            "--groups=6",
            "--pool-arg=--quiet",
            "--server-arg=--skip-x",
        ];
        let args = read(&words).unwrap();
        assert_eq!(args.pool_arg, ["--groups=6", "--quiet"]);
        assert_eq!(args.server_arg, ["--skip-x"]);
    }

    #[test]
    fn values_out_of_range_end_with_status_2() {
        let bad: [&[&str]; 9] = [
            &["--cpus=load"],
            &["--rungs=0"],
            &["--rungs=1000,x"],
            &["--tables=0"],
            &["--time=0"],
            &["--warmup-time=3601"],
            &["--connect-rate=0"],
            &["--no-prepare"],
            &["--target=mysql://u@h/d", "--server-arg=x"],
        ];
        for words in bad {
            let error = read(words).map(|_| ()).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{words:?}");
        }
        let text = read(&["--rungs=10k"]).map(|_| ()).unwrap_err().to_string();
        assert!(
            text.contains("a rung is a number of connections from 1 to"),
            "{text}"
        );
    }

    #[test]
    fn what_clap_cannot_see_is_one_line() {
        let bad = [
            (
                "--paths=pool",
                "--paths pool: a path is one of direct, server-pool, haproxy, router, onramp",
            ),
            (
                "--workload=",
                "--workload '': expected the name of a workload",
            ),
            (
                "--out-json=climb.html",
                "--out-json and --out-html are both climb.html: ",
            ),
            (
                "--mysql-dir=/m",
                "--mysql-dir: the private server is a MariaDB: see --server",
            ),
            (
                "--cpus=server=1023",
                "--cpus server=1023: this machine has the processors ",
            ),
            (
                "--target=db:3306",
                "--target: it has no mysql://; expected mysql://",
            ),
        ];
        for (word, start) in bad {
            let text = read(&[word]).unwrap().check().unwrap_err();
            assert!(text.starts_with(start) && !text.contains('\n'), "{text}");
        }
        for (words, start) in [
            (
                ["--cpus=server=0", "--target=mysql://u@h/d"],
                "--cpus server=: the server of --target runs",
            ),
            (
                ["--cpus=pool=0", "--scenario=failover"],
                "--cpus has no meaning in a failover",
            ),
        ] {
            let text = read(&words).unwrap().check().unwrap_err();
            assert!(text.starts_with(start), "{text}");
        }
    }
}
