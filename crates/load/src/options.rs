//! Options of `onramp load`: what users write, with unit, range and default, and what follows.
//!
//! Names are sysbench's where sysbench has the same thing (`--threads` is taken for
//! `--connections`). [`LoadArgs`] is what the command line says; [`LoadArgs::check`] refuses what
//! contradicts itself before anything is opened.

use crate::manner::{Dialect, Manner};
use crate::output_options::OutputArgs;
use crate::proof::{self, Proof, TpccArgs};
use clap::{Args, ValueEnum};
use load_core::durations::parse_length;
use load_core::layout::Layout;
use load_core::model::{Active, ModelArgs};
use load_core::plan::Plan;
use load_core::program::Program;
use load_core::random::{RandArgs, Rows};
use load_core::tolerance::ToleranceArgs;
use load_core::transport::{Check, Security, TlsArgs};
use load_core::workload::catalogue;
use load_core::workload::{OwnStatement, PsMode, Script, ScriptArgs, Workload};
use load_locust::LocustArgs;
use sql::lex::{Kind, LexMode, Lexer};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use wire::dsn::{Dsn, SslMode};

/// The most connections that are taken.
const CONNECTIONS_MAX: u32 = 16_000_000;
/// Connections being opened at once in a group, where nothing else is said; and at most.
const IN_FLIGHT: u32 = 256;
const IN_FLIGHT_MAX: u32 = 65_536;

const EXAMPLE: &str = "\
Example, with the tables made on the server itself and the load through a pool:
  onramp load oltp_point_select prepare \\
      --target 'mysql://app@127.0.0.1:3306/sbtest?password_file=app.password'
  onramp load oltp_point_select run \\
      --target 'mysql://app@127.0.0.1:6033/sbtest?password_file=app.password' \\
      --connections 10000 --time 30 --report-interval 1

Instead of a workload, with options of their own:
  onramp load tcp-hold --help       hold long TCP connections, and judge every message
  onramp load http://HOST/ --help   ask over HTTP, and judge every answer";

/// Hold many executing MySQL connections, measure them, report as sysbench 1.0 does
///
/// sysbench's report goes to stdout; progress, a summary and reasons go to stderr. docs/load.md
/// describes the figures.
#[derive(Args, Clone, Debug)]
#[command(args_override_self = true, verbatim_doc_comment, after_long_help = EXAMPLE)]
pub struct LoadArgs {
    /// Workload that each connection runs
    #[arg(value_enum)]
    pub workload: Workload,

    /// Make the tables, run the workload, or drop the tables
    #[arg(value_enum)]
    pub command: Action,

    /// The server: mysql://USER@HOST[:PORT]/SCHEMA[?socket=/PATH]. The password stands in a file
    /// (?password_file=FILE), in the environment (?password_env=NAME), or behind USER (:PASSWORD),
    /// where it is seen in the shell's history
    #[arg(long, value_name = "DSN", value_parser = Dsn::read)]
    pub target: Dsn,

    /// Connections to hold, 1 to 16,000,000
    #[arg(long, visible_alias = "threads", value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(CONNECTIONS_MAX)))]
    pub connections: u32,

    /// Time to measure; 0 is without end
    #[arg(long, value_name = "D", default_value = "10", value_parser = parse_length)]
    pub time: Duration,

    /// End after so many events, over all connections; 0 is without end
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub events: u64,

    /// Execute for this long before measuring begins
    #[arg(long, value_name = "D", default_value = "0", value_parser = parse_length)]
    pub warmup_time: Duration,

    /// Hold all connections without a statement for this long before the run
    #[arg(long, value_name = "D", default_value = "0", value_parser = parse_length)]
    pub idle_time: Duration,

    /// Print a line every so many seconds; 0 prints none
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub report_interval: u64,

    /// Print a whole report after so many seconds, each about the time since the one before
    #[arg(long, value_name = "S,S,...", value_delimiter = ',')]
    pub report_checkpoints: Vec<u64>,

    /// The percentile in the report's lines, 1 to 100; 0 leaves it out
    #[arg(long, value_name = "P", default_value_t = 95,
          value_parser = clap::value_parser!(u8).range(0..=100))]
    pub percentile: u8,

    /// Tables sbtest1 to sbtestN, at least 1
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub tables: u32,

    /// Rows in each table, at least 1
    #[arg(long, value_name = "N", default_value_t = 10_000,
          value_parser = clap::value_parser!(u32).range(1..=2_147_483_647))]
    pub table_size: u32,

    /// Size and pace of TPC-C.
    #[command(flatten)]
    pub(crate) tpcc: TpccArgs,

    /// Seed of the random numbers; 0 takes one from the clock
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub rand_seed: u64,

    /// Connections to open each second, over all groups; 0 is as fast as possible
    #[arg(long, value_name = "N", default_value_t = 5_000)]
    pub connect_rate: u32,

    /// Connections being opened at once in each group, at least 1 [default: 256; 65,536 with
    /// --give-up]
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(IN_FLIGHT_MAX)))]
    pub connects_in_flight: Option<u32>,

    /// Longest time for one connection to open and log in, in seconds, at least 1
    #[arg(long, value_name = "S", default_value_t = 30,
          value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub connect_timeout: u64,

    /// A statement that each connection runs once after its login, before its first event; may be
    /// repeated
    #[arg(long, value_name = "SQL", value_parser = read_init)]
    pub init_sql: Vec<String>,

    /// Compress the protocol (zlib); the server has to offer it
    #[arg(long)]
    pub compression: bool,

    /// Connections are under TLS; the server has to offer it, and its certificate is checked. The
    /// target may say the same and other modes (?ssl-mode=VERIFY_IDENTITY)
    #[arg(long = "tls")]
    pub wants_tls: bool,

    /// Check of the server's certificate under TLS.
    #[command(flatten)]
    pub tls: TlsArgs,

    /// Longest wait at the end for statements that are still executing, in seconds
    #[arg(long, value_name = "S", default_value_t = 10,
          value_parser = clap::value_parser!(u64).range(0..=86_400))]
    pub end_timeout: u64,

    /// Addresses of this machine to connect from, in turn [default: the kernel's choice;
    /// 127.0.0.2 and so on where the server is on 127.0.0.0/8 and one address has too few ports]
    #[arg(long, value_name = "A,B,...", value_delimiter = ',')]
    pub source_addresses: Vec<IpAddr>,

    /// Further ports of the target's host, which connections take in turn with the target's own
    #[arg(long, value_name = "P,P,...", value_delimiter = ',',
          value_parser = clap::value_parser!(u16).range(1..))]
    pub target_ports: Vec<u16>,

    /// Further servers with the target's login and schema, which connections take in turn with it
    #[arg(long, value_name = "HOST[:PORT],...", value_delimiter = ',', value_parser = read_host)]
    pub target_hosts: Vec<Dsn>,

    /// Another server for reads, as --target: connections run what the workload reads there, or
    /// what it writes at the target; for oltp_read_write and statements
    #[arg(long, value_name = "DSN", value_parser = Dsn::read)]
    pub read_target: Option<Dsn>,

    /// Connections of --connections that read at --read-target [default: half of them]
    #[arg(long, value_name = "N", requires = "read_target",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub read_connections: Option<u32>,

    /// Groups (threads) that hold the connections; 0 is one a core, and more where the descriptor
    /// limit asks for it
    #[arg(long, value_name = "N", default_value_t = 0,
          value_parser = clap::value_parser!(u32).range(0..=65_536))]
    pub groups: u32,

    /// Model of load: when connections send, wait and end.
    #[command(flatten)]
    pub model: ModelArgs,

    /// Outputs of results.
    #[command(flatten)]
    pub output: OutputArgs,

    /// Believe that a group has this many descriptors, to try out many groups
    #[arg(long, value_name = "N", hide = true)]
    pub descriptors_per_group: Option<u64>,

    #[command(flatten)]
    pub(crate) rand: RandArgs,

    #[command(flatten)]
    pub(crate) script: ScriptArgs,

    #[command(flatten)]
    pub(crate) tolerance: ToleranceArgs,

    #[arg(skip)]
    pub(crate) manner: Manner,

    /// Locust master of the run.
    #[command(flatten)]
    pub(crate) locust: LocustArgs,

    /// A script that runs instead of the workload.
    #[arg(skip)]
    pub(crate) lua: Option<Arc<Program>>,

    /// The proof of a run that has begun.
    #[arg(skip)]
    pub(crate) proof: Option<Arc<Proof>>,
}

/// Action of `onramp load`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Action {
    /// Make the tables and fill them
    Prepare,
    /// Read the tables into the server's memory
    Prewarm,
    /// Run the workload
    Run,
    /// Check the tables of tpcc by the consistency conditions of its specification
    Check,
    /// Drop the tables
    Cleanup,
}

impl Action {
    /// The word on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Action::Prepare => "prepare",
            Action::Prewarm => "prewarm",
            Action::Run => "run",
            Action::Check => "check",
            Action::Cleanup => "cleanup",
        }
    }
}

impl LoadArgs {
    /// Division of the connections among groups.
    pub(crate) fn layout(&self) -> Layout {
        Layout::choose(self.connections, self.groups, self.descriptors_per_group)
    }

    /// Refuses options that contradict each other.
    ///
    /// # Errors
    /// A sentence that says which and what to do.
    pub fn check(&self) -> Result<(), String> {
        if self.target.schema.is_empty() {
            return Err(format!(
                "the target {} names no schema; append one, as in .../sbtest",
                self.target
            ));
        }
        self.model.check()?;
        if let Some(Active::Count(active)) = self.model.active
            && active > self.connections
        {
            return Err(format!(
                "--active {active} is more than --connections {}",
                self.connections
            ));
        }
        self.output.check()?;
        self.locust.check()?;
        if self.target.socket.is_some() && !self.source_addresses.is_empty() {
            return Err("--source-addresses is for TCP; the target is a Unix socket".into());
        }
        if self.target.socket.is_some() && !self.target_ports.is_empty() {
            return Err("--target-ports is for TCP; the target is a Unix socket".into());
        }
        if self.target.socket.is_some() && !self.target_hosts.is_empty() {
            return Err("--target-hosts is for TCP; the target is a Unix socket".into());
        }
        if self.command == Action::Check && self.workload != Workload::Tpcc {
            return Err("check is for tpcc alone".into());
        }
        self.check_sides()?;
        if self.lua.is_some() {
            return self.check_script();
        }
        if self.workload.is_interactive() {
            return self.check_interactive();
        }
        // sysbench lets a range reach past the table's end, however far.
        let is_run = self.command == Action::Run && self.manner.dialect == Dialect::Load;
        self.script
            .check(self.workload, is_run.then_some(self.table_size))?;
        if self.make_script().is_empty() {
            return Err("with these options an event has no statement; ask for one".into());
        }
        Ok(())
    }

    /// Refuses a target for reads where there are not both reads and writes.
    fn check_sides(&self) -> Result<(), String> {
        let Some(target) = &self.read_target else {
            return Ok(());
        };
        if target.schema.is_empty() {
            return Err(format!("--read-target: {target} names no schema"));
        }
        let settled = self.settled();
        if !(1..settled.connections).contains(&settled.readers()) {
            return Err("--read-connections: both reads and writes need a connection".into());
        }
        let mut own = self.script.statements.iter();
        if let Some(unclear) = own.find(|one| one.reads().is_none()) {
            return Err(format!(
                "--read-target: '{}' is not for certain a read or a write of tables",
                unclear.text()
            ));
        }
        let has_both = self.sides().is_some_and(|(reading, writing)| {
            !reading.make_script().is_empty() && !writing.make_script().is_empty()
        });
        match has_both && self.lua.is_none() {
            true => Ok(()),
            false => Err(
                "--read-target needs statements that read and statements that write: \
                          oltp_read_write, or statements with a SELECT and another one"
                    .into(),
            ),
        }
    }

    /// Connections that read at a server of their own.
    fn readers(&self) -> u32 {
        self.read_connections.unwrap_or(self.connections / 2)
    }

    /// The options of connections that read, and of those that write, where these are apart.
    pub(crate) fn sides(&self) -> Option<(LoadArgs, LoadArgs)> {
        let target = self.read_target.clone()?;
        let (mut reading, mut writing) = (self.clone(), self.clone());
        (reading.read_target, writing.read_target) = (None, None);
        reading.connections = self.readers();
        reading.target = target;
        (reading.target_ports, reading.target_hosts) = (Vec::new(), Vec::new());
        match self.workload {
            Workload::ReadWrite => {
                reading.workload = Workload::ReadOnly;
                writing.workload = Workload::WriteOnly;
            }
            Workload::Statements => {
                let is_read = |one: &OwnStatement| one.reads() == Some(true);
                reading.script.statements.retain(is_read);
                writing.script.statements.retain(|one| !is_read(one));
            }
            _ => return None,
        }
        Some((reading, writing))
    }

    /// Refuses options that do not go with a script in a file: it decides itself how long its
    /// connections live.
    fn check_script(&self) -> Result<(), String> {
        let model = self.model.model(self.connections);
        let wrong = [
            (model.lifetime.is_some(), "--lifetime does"),
            (model.give_up.is_some(), "--give-up does"),
            (!self.init_sql.is_empty(), "--init-sql does"),
            (self.compression, "--compression does"),
        ];
        match wrong.iter().find(|(is_given, _)| *is_given) {
            Some((_, option)) => Err(format!("{option} not go with scripts in files")),
            None => Ok(()),
        }
    }

    /// Refuses options that do not go with a workload whose clients are threads.
    fn check_interactive(&self) -> Result<(), String> {
        let model = self.model.model(self.connections);
        let name = self.workload.name();
        if self.connections > proof::CLIENTS_MAX {
            let most = proof::CLIENTS_MAX;
            return Err(format!("{name} takes at most {most} connections"));
        }
        let is_for_locust = self.locust.master.is_some() || self.locust.print_locustfile;
        let wrong = [
            (self.command == Action::Prewarm, "prewarm"),
            (self.model.rate.is_some(), "--rate"),
            (self.model.think_time.is_some(), "--think-time"),
            (self.model.active.is_some(), "--active"),
            (model.stages.is_some(), "--stages"),
            (model.lifetime.is_some(), "--lifetime"),
            (model.give_up.is_some(), "--give-up"),
            (self.compression, "--compression"),
            (!self.source_addresses.is_empty(), "--source-addresses"),
            (!self.report_checkpoints.is_empty(), "--report-checkpoints"),
            (self.script.db_ps_mode == PsMode::Auto, "--db-ps-mode auto"),
            (is_for_locust, "--locust-master"),
        ];
        match wrong.iter().find(|(is_given, _)| *is_given) {
            Some((_, what)) => Err(format!("{what}: {name} has no use for it; leave it out")),
            None => Ok(()),
        }
    }

    /// The options with the proof that the workload is, if it is one: its tables are filled anew.
    ///
    /// # Errors
    /// A sentence in the server's words.
    pub(crate) fn proving(&self, plan: &Plan) -> Result<LoadArgs, String> {
        let proof = Proof::begin(self.workload, self.tpcc, plan)?;
        Ok(LoadArgs {
            proof,
            ..self.clone()
        })
    }

    /// The name of what runs.
    pub(crate) fn workload_name(&self) -> &str {
        let script = self.lua.as_deref().map(Program::name);
        script.unwrap_or(self.workload.name())
    }

    /// The workload with its options put in.
    pub(crate) fn make_script(&self) -> Script {
        let rows = Rows::new(&self.rand, self.table_size);
        let (args, connections) = (&self.script, self.connections);
        catalogue::script(self.workload, args, self.tables, rows, connections)
    }

    /// The options with as many connections as the stages want at most.
    #[must_use]
    pub(crate) fn settled(&self) -> LoadArgs {
        let mut settled = self.clone();
        if self.model.stages.is_some() {
            settled.connections = self.model.model(CONNECTIONS_MAX).highest(CONNECTIONS_MAX);
        }
        settled
    }

    /// Security of connections before their logins.
    ///
    /// # Errors
    /// A sentence: files that cannot be read, targets that TLS does not go with.
    pub(crate) fn security(&self) -> Result<Security, String> {
        let mode = match (self.wants_tls, self.target.ssl_mode) {
            (false, None) => SslMode::Disabled,
            (true, None) if self.tls.insecure => SslMode::Required,
            (true, None) => SslMode::VerifyIdentity,
            (false, Some(mode)) => mode,
            (true, Some(mode)) => {
                return Err(format!(
                    "both --tls and the target's ssl-mode={} say how connections are secured; \
                     leave one out",
                    mode.name()
                ));
            }
        };
        let is_optional = mode == SslMode::Preferred;
        if self.target.socket.is_some() {
            return match mode {
                SslMode::Disabled | SslMode::Preferred => Ok(Security::Plain),
                _ => Err("TLS is for TCP; a Unix socket needs none".to_owned()),
            };
        }
        let check = match mode {
            SslMode::Disabled => return Ok(Security::Plain),
            SslMode::Preferred | SslMode::Required => Check::Nothing,
            SslMode::VerifyCa => Check::Authority,
            SslMode::VerifyIdentity => Check::Identity,
        };
        if self.tls.insecure && check != Check::Nothing {
            return Err(format!(
                "--insecure checks no certificate, but the target's ssl-mode is {}; leave one out",
                mode.name()
            ));
        }
        if self.tls.ca.is_some() && check == Check::Nothing {
            return Err(format!(
                "--ca has no use with ssl-mode={}, which checks no certificate; VERIFY_CA and \
                 VERIFY_IDENTITY do",
                mode.name()
            ));
        }
        let has_more = !self.target_hosts.is_empty() || !self.manner.more_targets.is_empty();
        if has_more && check == Check::Identity && self.tls.tls_name.is_none() {
            return Err(
                "TLS to several hosts needs --tls-name, a name that all their certificates have"
                    .to_owned(),
            );
        }
        let security = Security::tls(&self.tls, check, &self.target.host, &[])?;
        match check {
            Check::Nothing if is_optional => aside!(
                "load: TLS: INSECURE: only where the server offers it, and no certificate is \
                 checked (PREFERRED)"
            ),
            Check::Nothing => aside!("load: TLS: INSECURE: no certificate is checked"),
            Check::Authority => {
                aside!("load: TLS: the name in the server's certificate is not checked");
            }
            Check::Identity => {}
        }
        Ok(security.of_mysql(is_optional))
    }

    /// Connections being opened at once in each group. Clients who give up know nothing of each
    /// other, so nothing holds them up by default.
    pub(crate) fn connects_in_flight(&self) -> u32 {
        let default = match self.model.give_up {
            Some(_) => IN_FLIGHT_MAX,
            None => IN_FLIGHT,
        };
        self.connects_in_flight.unwrap_or(default)
    }

    /// Seconds after the start at which there is a report of what came since the one before, in
    /// order. At the start itself there would be nothing to report.
    pub(crate) fn checkpoints(&self) -> impl Iterator<Item = u64> {
        let mut checkpoints = self.report_checkpoints.clone();
        checkpoints.sort_unstable();
        checkpoints.into_iter().filter(|seconds| *seconds > 0)
    }

    /// Targets besides the first, used in turn.
    pub(crate) fn more_targets(&self) -> Vec<Dsn> {
        let ports = self.target_ports.iter().map(|port| Dsn {
            port: *port,
            ..self.target.clone()
        });
        let hosts = self.target_hosts.iter().map(|place| Dsn {
            host: place.host.clone(),
            port: place.port,
            ..self.target.clone()
        });
        let named = self.manner.more_targets.iter().cloned();
        ports.chain(hosts).chain(named).collect()
    }

    /// Time to measure; `None` is without end.
    pub(crate) fn duration(&self) -> Option<Duration> {
        (!self.time.is_zero()).then_some(self.time)
    }
}

/// The place of a server, as in a DSN.
fn read_host(text: &str) -> Result<Dsn, String> {
    if text.contains(['@', '/', '?']) {
        return Err("expected HOST or HOST:PORT; login and schema are the target's".to_owned());
    }
    Dsn::parse(&format!("mysql://-@{text}"))
}

/// A single statement. Of several in one text an error would not say which failed.
fn read_init(text: &str) -> Result<String, String> {
    let text = text.trim();
    let mut tokens = Lexer::new(text.as_bytes(), LexMode::default()).map(|token| token.kind);
    match tokens.next() {
        None | Some(Kind::Semicolon) => {
            return Err("expected a statement, as SET time_zone = '+00:00'".to_owned());
        }
        Some(_) => {}
    }
    let is_single = tokens.all(|kind| kind != Kind::Semicolon) || tokens.next().is_none();
    match is_single {
        true => Ok(text.to_owned()),
        false => Err("expected one statement; give each an --init-sql of its own".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        load: LoadArgs,
    }

    fn parse(line: &str) -> Result<LoadArgs, String> {
        let words = std::iter::once("load").chain(line.split_whitespace());
        let line = Line::try_parse_from(words).map_err(|e| e.to_string())?;
        line.load.check().map(|()| line.load)
    }

    #[test]
    fn the_line_of_the_manual_is_understood() {
        let args = parse(
            "oltp_point_select --target mysql://sbtest:sbtest@127.0.0.1:6033/sbtest \
             --connections 10000 --time 30 --report-interval 1 --tables 4 --table-size 100000 run",
        )
        .unwrap();
        assert_eq!(
            (args.workload, args.command),
            (Workload::PointSelect, Action::Run)
        );
        assert_eq!(
            (args.connections, args.tables, args.table_size),
            (10_000, 4, 100_000)
        );
        assert_eq!(args.duration(), Some(Duration::from_secs(30)));
        assert_eq!((args.connect_rate, args.percentile), (5_000, 95));
    }

    #[test]
    fn sources_are_a_list_and_threads_are_connections() {
        let args = parse(
            "select run --target mysql://a@10.0.0.1/t --threads 7 --source-addresses \
             10.0.0.2,10.0.0.3 --time 0",
        )
        .unwrap();
        assert_eq!((args.connections, args.source_addresses.len()), (7, 2));
        assert_eq!(args.duration(), None);
        let args = parse("select run --target mysql://a@h/t --time 2.5 --warmup-time 10ms");
        assert_eq!(args.unwrap().duration(), Some(Duration::from_millis(2_500)));
    }

    #[test]
    fn further_places_have_the_targets_login_and_schema() {
        let args = parse(
            "select run --target mysql://a:b@h:1/t --target-ports 2,3 --target-hosts g,[::1]:4",
        )
        .unwrap();
        let more = args.more_targets();
        let places: Vec<String> = more.iter().map(Dsn::place).collect();
        assert_eq!(places, ["h:2", "h:3", "g:3306", "[::1]:4"]);
        assert!(more.iter().all(|to| to.password == "b" && to.schema == "t"));
    }

    #[test]
    fn reads_and_writes_have_sides_of_their_own() {
        let sides = |line: &str| {
            let args = parse(&format!(
                "{line} run --target mysql://a@h/t --read-target mysql://b@g/u --target-ports 7"
            ));
            args.unwrap().sides().unwrap()
        };
        let (reading, writing) = sides("oltp_read_write --connections 5");
        assert_eq!(reading.workload, Workload::ReadOnly);
        assert_eq!(writing.workload, Workload::WriteOnly);
        assert_eq!((reading.connections, &*reading.target.user), (2, "b"));
        assert_eq!(
            (reading.more_targets().len(), writing.more_targets().len()),
            (0, 1)
        );
        let line = "statements --connections 9 --read-connections 8 --statement=SELECT";
        let (reading, writing) = sides(&format!("{line} --statement=DO+1"));
        assert_eq!(reading.connections, 8);
        let titles = |args: LoadArgs| args.make_script().titles().next().unwrap().to_owned();
        assert_eq!(
            (titles(reading), titles(writing)),
            ("SELECT".into(), "DO+1".into())
        );
    }

    #[test]
    fn a_statement_reads_or_writes_whatever_its_first_word() {
        for (text, reads) in [
            ("SELECT c FROM sbtest# WHERE id = ?", Some(true)),
            ("(SELECT c FROM t)", Some(true)),
            ("/* a */ select 1", Some(true)),
            ("WITH a AS (SELECT 1) SELECT * FROM a", Some(true)),
            ("SELECT 'FOR UPDATE ??' FROM t", Some(true)),
            ("SHOW TABLES", Some(true)),
            ("SELECT c FROM t FOR UPDATE", Some(false)),
            ("(SELECT c FROM t LOCK IN SHARE MODE)", Some(false)),
            ("SELECT c INTO @a FROM t", Some(false)),
            ("SELECT c FROM t INTO OUTFILE 'x'", Some(false)),
            ("SELECT NEXTVAL(s)", None),
            ("WITH a AS (SELECT 1) UPDATE t SET b = 1", Some(false)),
            ("INSERT INTO t SELECT 1", Some(false)),
            ("DO 1", Some(false)),
            ("SELECT @a := 1", None),
            ("SELECT LAST_INSERT_ID()", None),
            ("SELECT f(1)", None),
            ("BEGIN", None),
            ("SET autocommit = 0", None),
            ("SELECT 1; DELETE FROM t", None),
        ] {
            let words = ["load", "statements", "run", "--target", "mysql://a@h/t"];
            let own = ["--statement", text];
            let line = Line::try_parse_from(words.iter().chain(&own)).unwrap();
            let own = &line.load.script.statements[0];
            assert_eq!(own.reads(), reads, "{text}");
        }
    }

    #[test]
    fn each_init_sql_is_one_statement() {
        for (given, kept) in [
            (" SET NAMES utf8mb4 ", "SET NAMES utf8mb4"),
            ("SET @a = 'x;y';", "SET @a = 'x;y';"),
            ("DO 1 -- ; SET @a = 1", "DO 1 -- ; SET @a = 1"),
        ] {
            assert_eq!(read_init(given).unwrap(), kept);
        }
        for given in ["", "  ", "-- nothing", ";", "DO 1; DO 2", "DO 1;;"] {
            assert!(read_init(given).is_err(), "{given}");
        }
    }

    #[test]
    fn contradictions_are_refused_with_a_reason() {
        for (line, expected) in [
            ("select run --target mysql://a@h", "names no schema"),
            ("select run --target nonsense", "mysql://USER"),
            (
                "select run --target mysql://a@h/t --connections 0",
                "16000000",
            ),
            (
                "select run --target mysql://a@/t?socket=/s --source-addresses 127.0.0.2",
                "Unix socket",
            ),
            (
                "select run --target mysql://a@/t?socket=/s --target-ports 3307",
                "Unix socket",
            ),
            (
                "select run --target mysql://a@h/t --target-ports 0",
                "--target-ports",
            ),
            (
                "select run --target mysql://a@/t?socket=/s --target-hosts h",
                "Unix socket",
            ),
            (
                "select run --target mysql://a@h/t --target-hosts b@g",
                "HOST:PORT",
            ),
            (
                "oltp_read_write run --target mysql://a@h/t --table-size 50",
                "--range-size 100",
            ),
            (
                "select run --target mysql://a@h/t --init-sql=;",
                "time_zone",
            ),
            (
                "select run --target mysql://a@h/t --init-sql=DO+1;DO+2",
                "of its own",
            ),
            (
                "bank run --target mysql://a@h/t --connections 1001",
                "at most 1000",
            ),
            (
                "bank run --target mysql://a@h/t --rate 5",
                "--rate: bank has no use",
            ),
            (
                "tpcc run --target mysql://a@h/t --think-time 1s",
                "--think-time: tpcc has no use",
            ),
            (
                "tpcc run --target mysql://a@h/t --active 100%",
                "--active: tpcc has no use",
            ),
            ("bank check --target mysql://a@h/t", "tpcc alone"),
            (
                "tpcc prepare --target mysql://a@h/t --scale-down 101",
                "1..=100",
            ),
            (
                "tpcc prepare --target mysql://a@h/t --warehouses 100001",
                "1..=100000",
            ),
            (
                "select run --target mysql://a@h/t --threads 2 --read-target mysql://a@g/t",
                "oltp_read_write",
            ),
            (
                "oltp_read_write run --target mysql://a@h/t --read-target mysql://a@g/t",
                "--read-connections",
            ),
            (
                "statements run --target mysql://a@h/t --read-target mysql://a@g/t \
                 --threads 2 --statement=COMMIT --statement=DO+1",
                "'COMMIT' is not for certain",
            ),
            (
                "select run --target mysql://a@h/t --threads 20 --active 25",
                "--active 25 is more than --connections 20",
            ),
            ("select run --target mysql://a@h/t --time 5x", "250ms"),
            (
                "bank run --target mysql://a@h/t --locust-master m",
                "--locust-master",
            ),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }
}
