//! One cell of the ladder, from a fresh server to a row: start, connect, warm up, hold and measure,
//! let go.
//!
//! `load` and `pool` run as child processes of the same program, as a stranger would run them, and
//! are watched from outside: five times a second the resident memory and CPU time of the server,
//! the pool and the load are read. The memory of a pool per client is the growth from before
//! the first client to the peak, over the clients; so what the pool needs anyway is not charged
//! to them, and what a login needs for a moment is.
//!
//! A cell that fails is a row with a `limit`, and the climb goes on. Only Ctrl-C goes through.
//! Every wait has a bound that grows with the work of the cell.

use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::Pid;

use crate::child::{Child, Event, Interrupt, Interrupted, SLICE, Stream, Usage};
use crate::ladder::{Cell, Path};
use crate::limits::{self, Outcome};
use crate::machine::{self, Machine};
use crate::options::Plan;
use crate::peers::{self, Scene};
use crate::processors::{Part, Processors};
use crate::progress::{self, Progress};
use crate::row::{LoadReport, Row, bytes_per_client};
use crate::scratch::Scratch;
use crate::server::{PrivateServer, Settings, free_loopback_port};
use crate::target::Dsn;
use doctor::question::{Question, Role};

/// Clients of the server when the pool stands in front: its backends, with room to spare.
const BACKENDS_MAX: u32 = 2_000;
const POOL_PATIENCE: Duration = Duration::from_secs(60);
const POOL_GRACE: Duration = Duration::from_secs(15);
const PREPARE_PATIENCE: Duration = Duration::from_secs(3600);
const CLEANUP_PATIENCE: Duration = Duration::from_secs(60);
/// Time that a cell gets beyond its arithmetic, before it is given up.
const CELL_SLACK: Duration = Duration::from_secs(120);
/// Factor by which its connects may be slower than the rate.
const CONNECT_SLOWNESS_MAX: u32 = 5;

/// State that all cells share. Dropping it stops the server and then removes the scratch directory.
pub(crate) struct Bench<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) machine: Machine,
    pub(crate) program: PathBuf,
    pub(crate) interrupt: Interrupt,
    /// None if the user named a server.
    pub(crate) server: Option<PrivateServer>,
    /// Tables of ours in the user's server.
    pub(crate) tables_made: bool,
    /// Last, because the server's data is in it.
    pub(crate) scratch: Scratch,
}

/// Result of a run of `load`.
struct Run {
    status: ExitStatus,
    report: Option<LoadReport>,
    last_words: String,
    pool_death: Option<String>,
    span: Span,
}

/// Measured seconds in which nobody connects or goes: from the end of the first to the end of the
/// last but one.
#[derive(Default)]
struct Span {
    first: Option<Mark>,
    last: Option<Mark>,
    /// Sum of the rates of the seconds after the first, and their number.
    rates: (f64, u32),
}

/// CPU seconds of the server, the proxy and load up to a moment.
struct Mark {
    at: Instant,
    cpu_s: [Option<f64>; 3],
}

impl Span {
    /// Notes the end of a second, in which so many statements succeeded.
    fn mark(&mut self, rate: f64, mark: Mark) {
        if self.first.is_none() {
            self.first = Some(mark);
            return;
        }
        self.rates = (self.rates.0 + rate, self.rates.1 + 1);
        self.last = Some(mark);
    }

    /// CPU seconds for a statement; None where there were too few seconds, or no statements.
    fn for_statement(&self) -> [Option<f64>; 3] {
        let (Some(first), Some(last)) = (&self.first, &self.last) else {
            return [None; 3];
        };
        let seconds = last.at.duration_since(first.at).as_secs_f64();
        let statements = self.rates.0 / f64::from(self.rates.1) * seconds;
        let of = |at: usize| Some((last.cpu_s[at]? - first.cpu_s[at]?) / statements);
        [0, 1, 2].map(|at| of(at).filter(|_| statements > 0.0))
    }
}

/// A process whose memory and CPU time are followed.
struct Watched {
    pid: Pid,
    before: Usage,
    peak_rss_bytes: u64,
    cpu_s: f64,
}

impl Bench<'_> {
    /// Creates and fills the tables.
    pub(crate) fn prepare(&mut self) -> Result<()> {
        let target = match &mut self.server {
            Some(server) => {
                let settings = Settings {
                    pool_of_threads: false,
                    clients_max: BACKENDS_MAX,
                };
                server.start(settings, &self.machine, &self.interrupt)?;
                server.dsn()?
            }
            None => self.users_server()?.clone(),
        };
        self.run_to_end("prepare", &target, PREPARE_PATIENCE, &self.interrupt)
            .with_context(|| format!("the tables could not be made, or not all, in {target}"))?;
        match &mut self.server {
            Some(server) => server.stop(),
            None => self.tables_made = true,
        }
        Ok(())
    }

    /// Drops what `prepare` made in the user's server. A private one is removed as a whole.
    pub(crate) fn cleanup(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.tables_made) {
            return Ok(());
        }
        let target = self.users_server()?;
        // Ctrl-C ends the climb, but not the tidying up after it.
        let patience = Interrupt::default();
        self.run_to_end("cleanup", target, CLEANUP_PATIENCE, &patience)
            .with_context(|| format!("the tables could not be dropped from {target}"))
    }

    /// Measures one cell. An error is only ever Ctrl-C.
    pub(crate) fn measure(&mut self, cell: Cell, progress: &mut Progress<'_>) -> Result<Row> {
        let mut row = Row::of(cell);
        row.limit = self.not_tried(cell);
        if row.limit.is_some() {
            return Ok(row);
        }
        let attempt = self.attempt(cell, &mut row, progress);
        if let Some(server) = &mut self.server {
            server.stop();
        }
        match attempt {
            Err(error) if error.is::<Interrupted>() => return Err(error),
            Err(error) => row.limit = Some(format!("{error:#}")),
            Ok(()) => {}
        }
        Ok(row)
    }

    fn not_tried(&self, cell: Cell) -> Option<String> {
        match (&self.server, cell.path) {
            (Some(server), Path::ServerPool) if server.no_pool().is_some() => server.no_pool(),
            (server, Path::Router) if server.as_ref().is_none_or(|it| !it.is_mysql()) => Some(
                "not tried: MySQL Router is measured before a private MySQL (--server mysql)"
                    .to_owned(),
            ),
            (Some(_), _) => {
                let facts = limits::facts_with_server(self.clients_of_server(cell));
                limits::forbidden(&self.question(cell), &facts)
            }
            (None, Path::ServerPool) => Some(
                "not tried: it needs a private server, whose thread_handling can be chosen; with \
                 --target the path direct is the server as it is"
                    .to_owned(),
            ),
            (None, _) => None,
        }
    }

    /// Question to the doctor about a cell; where the server is the user's, it may be elsewhere.
    fn question(&self, cell: Cell) -> Question {
        let role = match &self.server {
            Some(_) => Role::AllInOne,
            None => Role::Client,
        };
        limits::question(cell, role, BACKENDS_MAX)
    }

    /// Connections that the private server sees.
    fn clients_of_server(&self, cell: Cell) -> u32 {
        match cell.path {
            Path::Direct | Path::ServerPool | Path::HaProxy | Path::Router => cell.connections,
            Path::Onramp => BACKENDS_MAX,
        }
    }

    fn attempt(&mut self, cell: Cell, row: &mut Row, progress: &mut Progress<'_>) -> Result<()> {
        // Before the run: afterwards its own threads and sockets would count as others'.
        let mut facts = limits::facts_with_server(self.clients_of_server(cell));
        if self.server.is_none() {
            facts.server = None;
        }
        self.start_server(cell)?;
        let direct = match &self.server {
            Some(server) => server.dsn()?,
            None => self.users_server()?.clone(),
        };
        let mut pool = None;
        let mut target = direct.clone();
        if cell.path == Path::Onramp || peers::program(cell.path).is_some() {
            let port = free_loopback_port()?;
            target = direct.behind_pool(port);
            pool = Some(match cell.path {
                Path::Onramp => self.start_pool(cell, port, &direct)?,
                _ => self.start_peer(cell, port, &direct)?,
            });
        }
        let mut server_usage = self
            .server
            .as_ref()
            .and_then(PrivateServer::pid)
            .map(Watched::new);
        let mut pool_usage = pool.as_ref().map(|pool| Watched::new(pool.pid()));
        let watched = [&mut server_usage, &mut pool_usage];
        let run = self.run_load(cell, &target, watched, pool.as_ref(), row, progress)?;

        let load_words = format!("{} ({})", run.last_words, run.status);
        let server_log = self
            .server
            .as_ref()
            .map(PrivateServer::log_tail)
            .unwrap_or_default();
        let outcome = Outcome {
            cell,
            report: run.report.as_ref(),
            load_words: &load_words,
            pool_death: run.pool_death.as_deref(),
            server_log: &server_log,
            question: &self.question(cell),
            facts: &facts,
        };
        row.limit = outcome.limit();
        if let Some(report) = run.report {
            let held = limits::is_held(cell, &report);
            row.take(report, held);
            if held {
                row.take_cpu(run.span.for_statement());
            }
        }
        note_usage(row, server_usage, pool_usage);
        if let Some(mut pool) = pool {
            pool.stop(POOL_GRACE);
        }
        Ok(())
    }

    fn start_server(&mut self, cell: Cell) -> Result<()> {
        let clients_max = self.clients_of_server(cell);
        let Some(server) = &mut self.server else {
            return Ok(());
        };
        let settings = Settings {
            pool_of_threads: cell.path == Path::ServerPool,
            clients_max,
        };
        server.start(settings, &self.machine, &self.interrupt)
    }

    /// Address of the server for a path's proxy.
    fn backend(&self, path: Path, direct: &Dsn) -> Result<Dsn> {
        let processors = &self.plan.processors;
        let beside = |server: &&PrivateServer| uses_socket(path, server.is_mysql(), processors);
        let beside = self.server.as_ref().filter(beside);
        beside.map_or_else(|| Ok(direct.clone()), PrivateServer::backend)
    }

    fn start_peer(&self, cell: Cell, port: u16, direct: &Dsn) -> Result<Child> {
        let backend = self.backend(cell.path, direct)?;
        let scene = Scene {
            cell,
            folder: self.scratch.path(),
            port,
            backend: &backend,
            direct,
            processors: self.plan.processors.of(Part::Pool),
        };
        peers::start(&scene, &self.interrupt)
    }

    fn start_pool(&self, cell: Cell, port: u16, direct: &Dsn) -> Result<Child> {
        let backend = self.backend(cell.path, direct)?;
        let mut command = Command::new(&self.program);
        let backend = backend.for_pool(&mut command);
        command
            .args(["pool", "--listen", &format!("127.0.0.1:{port}")])
            .args(["--backend", &backend])
            .args(["--clients-max", &cell.connections.to_string()])
            .args([
                "--wait-ms-max",
                &(self.answer_max_s(cell) * 1_000).to_string(),
            ])
            .args(&self.plan.raw.pool_arg);
        let processors = self.plan.processors.of(Part::Pool);
        let mut pool = Child::start_on(processors, "the pool", command)?;
        pool.await_line("listening on", POOL_PATIENCE, &self.interrupt)?;
        Ok(pool)
    }

    /// Runs `load` to its end, and samples memory meanwhile.
    fn run_load(
        &self,
        cell: Cell,
        target: &Dsn,
        mut watched: [&mut Option<Watched>; 2],
        pool: Option<&Child>,
        row: &mut Row,
        progress: &mut Progress<'_>,
    ) -> Result<Run> {
        let json = self
            .scratch
            .path()
            .join(format!("{}-{}.json", cell.connections, cell.path));
        let mut load = self.start_load(self.load_command(cell, target, &json))?;
        let mut span = Span::default();
        let mut load_usage = Watched::new(load.pid());
        let mut kernel = KernelMemory::new();
        let deadline = Instant::now() + self.patience(cell);
        loop {
            let event = load.next_event(SLICE);
            self.interrupt.check()?;
            for process in watched.iter_mut().filter_map(|process| process.as_mut()) {
                process.sample();
            }
            load_usage.sample();
            kernel.sample();
            match event {
                Event::Line(stream, text) => {
                    let last = u64::from(self.plan.raw.time_of(cell.connections));
                    let second = progress::report_line(&text);
                    if let Some((_, rate)) = second.filter(|(second, _)| *second < last) {
                        let cpu_of = |process: &Option<Watched>| process.as_ref()?.cpu_now();
                        let cpu_s = [cpu_of(watched[0]), cpu_of(watched[1]), load_usage.cpu_now()];
                        let at = Instant::now();
                        span.mark(rate, Mark { at, cpu_s });
                    }
                    self.show(cell, stream, &text, progress);
                }
                Event::Quiet => {}
                Event::Closed => break,
            }
            if Instant::now() >= deadline {
                let seconds = self.patience(cell).as_secs();
                bail!(
                    "given up after {seconds} s; load said last: {}",
                    load.last_words()
                );
            }
        }
        let last_words = load.last_words();
        let pool_death = pool.filter(|pool| pool.has_ended(Duration::ZERO));
        let pool_death = pool_death.map(Child::last_words);
        let status = load.finish(CELL_SLACK, &self.interrupt)?;
        row.load_rss_bytes = Some(load_usage.peak_rss_bytes);
        row.load_cpu_s = Some(load_usage.cpu_s);
        row.kernel_bytes = kernel.growth();
        let report = std::fs::read(&json).ok();
        let report = report.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Ok(Run {
            status,
            report,
            last_words,
            pool_death,
            span,
        })
    }

    fn load_command(&self, cell: Cell, target: &Dsn, json: &std::path::Path) -> Command {
        let raw = &self.plan.raw;
        let mut command = self.load(target);
        command
            .args(["--connections", &cell.connections.to_string()])
            .args(["--connect-rate", &self.plan.connect_rate(cell).to_string()])
            .args([
                "--warmup-time",
                &raw.warmup_of(cell.connections).to_string(),
            ])
            .args(["--time", &raw.time_of(cell.connections).to_string()])
            .args(["--end-timeout", &self.answer_max_s(cell).to_string()])
            .args(["--report-interval", "1"])
            .args(raw.prepared.then_some("--db-ps-mode=auto"))
            .arg("--json")
            .arg(json)
            .args(peers::load_arguments(cell.path))
            .args(&raw.load_arg)
            .arg("run");
        command
    }

    /// A command as far as prepare, run and cleanup have it in common.
    fn load(&self, target: &Dsn) -> Command {
        let raw = &self.plan.raw;
        let mut command = Command::new(&self.program);
        let target = target.for_load(&mut command);
        command
            .args(["load", &raw.workload, "--target", &target])
            .args(["--tables", &raw.tables.to_string()])
            .args(["--table-size", &raw.table_size.to_string()]);
        command
    }

    fn run_to_end(
        &self,
        verb: &'static str,
        target: &Dsn,
        patience: Duration,
        interrupt: &Interrupt,
    ) -> Result<()> {
        let mut command = self.load(target);
        command.arg(verb);
        let mut child = self.start_load(command)?;
        let status = child.finish(patience, interrupt)?;
        anyhow::ensure!(
            status.success(),
            "load {verb}: {} ({status})",
            child.last_words()
        );
        Ok(())
    }

    fn start_load(&self, command: Command) -> Result<Child> {
        Child::start_on(self.plan.processors.of(Part::Load), "load", command)
    }

    fn users_server(&self) -> Result<&Dsn> {
        self.plan
            .target
            .as_ref()
            .context("no server is named and none is private")
    }

    /// Seconds that a statement of the cell may take.
    fn answer_max_s(&self, cell: Cell) -> u64 {
        self.plan.raw.answer_max_of(cell.connections).into()
    }

    fn patience(&self, cell: Cell) -> Duration {
        let connects = cell.connections / self.plan.connect_rate(cell);
        let raw = &self.plan.raw;
        let run = raw.warmup_of(cell.connections) + raw.time_of(cell.connections);
        let seconds = connects
            .saturating_mul(CONNECT_SLOWNESS_MAX)
            .saturating_add(run);
        Duration::from_secs(u64::from(seconds) + self.answer_max_s(cell)) + CELL_SLACK
    }

    fn show(&self, cell: Cell, stream: Stream, text: &str, progress: &mut Progress<'_>) {
        match (stream, progress::report_line(text)) {
            (Stream::Stdout, Some((second, rate))) => {
                let last = self.plan.raw.time_of(cell.connections);
                let rate = crate::format::whole(rate);
                progress.live(&format!(
                    "  {cell}: second {second} of {last}, {rate} statements/s"
                ));
            }
            (Stream::Stderr, _) => progress.live(&format!("  {cell}: {}", text.trim())),
            (Stream::Stdout, None) => {}
        }
    }
}

impl Drop for Bench<'_> {
    fn drop(&mut self) {
        // Reached with tables only after a panic; `cleanup` has reported otherwise.
        let _ = self.cleanup();
    }
}

impl Watched {
    fn new(pid: Pid) -> Self {
        let before = Usage::of(pid).unwrap_or_default();
        Self {
            pid,
            before,
            peak_rss_bytes: before.rss_bytes,
            cpu_s: 0.0,
        }
    }

    fn cpu_now(&self) -> Option<f64> {
        Some(Usage::of(self.pid)?.cpu_s)
    }

    /// Takes figures of the processes; one that is gone keeps its last ones.
    fn sample(&mut self) {
        if let Some(now) = Usage::of(self.pid) {
            self.peak_rss_bytes = self.peak_rss_bytes.max(now.rss_bytes);
            self.cpu_s = now.cpu_s - self.before.cpu_s;
        }
    }
}

/// Memory that the kernel keeps for itself and cannot give back, mostly sockets: how it grew.
struct KernelMemory {
    before: Option<u64>,
    peak: u64,
}

impl KernelMemory {
    fn new() -> Self {
        let before = machine::kernel_memory_bytes();
        Self {
            before,
            peak: before.unwrap_or_default(),
        }
    }

    fn sample(&mut self) {
        self.peak = self
            .peak
            .max(machine::kernel_memory_bytes().unwrap_or_default());
    }

    fn growth(&self) -> Option<u64> {
        Some(self.peak - self.before?)
    }
}

/// True if a path's proxy reaches a private server by its Unix socket: not a server that is apart,
/// which stands for one on a machine of its own. A MySQL takes a password by its socket as it is,
/// and clients encrypt it for a peer.
fn uses_socket(path: Path, is_mysql: bool, processors: &Processors) -> bool {
    !processors.server_is_apart() && (path == Path::Onramp || !is_mysql)
}

fn note_usage(row: &mut Row, server: Option<Watched>, pool: Option<Watched>) {
    let clients = row.connected.unwrap_or_default();
    if let Some(server) = server {
        let (before, peak) = (server.before.rss_bytes, server.peak_rss_bytes);
        row.server_rss_before_bytes = Some(before);
        row.server_rss_bytes = Some(peak);
        row.server_bytes_per_client = bytes_per_client(before, peak, clients);
        row.server_cpu_s = Some(server.cpu_s);
    }
    if let Some(pool) = pool {
        let (before, peak) = (pool.before.rss_bytes, pool.peak_rss_bytes);
        row.pool_rss_before_bytes = Some(before);
        row.pool_rss_bytes = Some(peak);
        row.pool_bytes_per_client = bytes_per_client(before, peak, clients);
        row.pool_cpu_s = Some(pool.cpu_s);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_shares_its_processors_is_reached_by_its_socket() {
        let shared = Processors::default();
        let apart: Processors = "server=0,pool=1,load=1".parse().unwrap();
        for (path, is_mysql, by_socket) in [
            (Path::Onramp, false, true),
            (Path::Onramp, true, true),
            (Path::HaProxy, false, true),
            (Path::HaProxy, true, false),
            (Path::Router, true, false),
        ] {
            assert_eq!(uses_socket(path, is_mysql, &shared), by_socket, "{path:?}");
            assert!(!uses_socket(path, is_mysql, &apart), "{path:?}");
        }
    }

    #[test]
    fn cpu_is_counted_between_the_first_and_the_last_second() {
        let began = Instant::now();
        let mut span = Span::default();
        assert_eq!(span.for_statement(), [None; 3]);
        // Connecting took the server 90 s; then 4,000 and 6,000 statements took 0.5 s.
        for (second, rate, server) in [(1, 9.0, 90.0), (2, 4_000.0, 90.25), (3, 6_000.0, 90.5)] {
            let at = began + Duration::from_secs(second);
            let cpu_s = [Some(server), None, Some(1.0)];
            span.mark(rate, Mark { at, cpu_s });
            assert_eq!(span.for_statement()[0].is_some(), second > 1);
        }
        assert_eq!(
            span.for_statement(),
            [Some(0.5 / 10_000.0), None, Some(0.0)]
        );
        let mut row = Row::default();
        row.take_cpu(span.for_statement());
        assert_eq!(row.statements_per_server_cpu_s, Some(20_000.0));
        assert_eq!(row.server_us_per_statement, Some(50.0));
        assert_eq!(row.pool_us_per_statement, None);
    }
}
