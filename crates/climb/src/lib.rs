//! `onramp climb`: the challenge itself, in one command.
//!
//! How many connections can execute at once against one MySQL server, and what does each of them
//! get? The climb raises the number of connections rung by rung, and on each rung goes three ways:
//! straight to a server with a thread per connection, straight to the server's own pool of threads,
//! and through `onramp pool`. What comes out is a table, `climb.json` and a page with charts.
//!
//! The story is `climb` below: look at the machine, start a private server in a scratch directory
//! (or take the user's), make tables, measure cell by cell, write. Invariants: a cell that cannot
//! hold is a row and not an end; what was measured is on the disk before the next cell begins;
//! children, scratch directory and tables are gone at the end, whatever the end is.

mod child;
mod evidence;
mod export;
mod failover;
mod format;
mod headline;
mod ladder;
mod limits;
mod machine;
mod namespace;
mod options;
mod peers;
mod processors;
mod progress;
mod row;
mod rung;
#[cfg(test)]
mod samples;
mod scenario;
mod scratch;
mod server;
mod table;
mod target;
#[cfg(test)]
mod tests;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use measure::report_file::check_writable;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::child::{Interrupt, Interrupted};
use crate::evidence::Evidence;
use crate::ladder::Cell;
use crate::machine::Machine;
pub use crate::options::ClimbArgs;
use crate::options::{Plan, Scenario};
use crate::processors::Part;
use crate::progress::Progress;
use crate::row::Row;
use crate::rung::Bench;
use crate::scenario::Step;
use crate::scratch::Scratch;
use crate::server::{Kind, PrivateServer, Programs};

/// Exit status of a climb with options that make no sense.
const STATUS_USAGE: u8 = 2;
/// Exit status of a climb that was interrupted, as shells count it.
const STATUS_INTERRUPTED: u8 = 130;

/// Climbs. The table goes to stdout, progress to stderr, the evidence to two files.
///
/// Status 0: every cell has a row, with figures or with its limit. 2: an option makes no sense.
/// 130: SIGINT, SIGTERM or SIGHUP; the table holds what was measured until then.
///
/// # Errors
/// A reason for which no cell can be measured: no server found, tables that cannot be made, results
/// that cannot be written. The program prints it and ends with status 1.
pub fn run(args: ClimbArgs) -> Result<ExitCode> {
    let mut stderr = std::io::stderr();
    let plan = match args.check() {
        Ok(plan) => plan,
        Err(text) => {
            writeln!(stderr, "error: {text}")?;
            return Ok(ExitCode::from(STATUS_USAGE));
        }
    };
    let interrupt = Interrupt::default();
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&interrupt.0))
            .context("cannot listen for signals")?;
    }
    let terminal = stderr.is_terminal();
    let steps = scenario::steps(&plan);
    let rung_max = steps.iter().map(|step| step.plan.rung_max()).max();
    // Somebody's own server is where it is.
    let scenario = plan.raw.scenario;
    let is_failover = matches!(scenario, Some(Scenario::Failover | Scenario::Switchover));
    let said = rung_max
        .filter(|_| plan.target.is_none() && !is_failover)
        .and_then(namespace::enter);
    let mut progress = Progress::new(&mut stderr, terminal);
    if let Some(words) = said {
        progress.line(&words);
    }
    let stdout = &mut std::io::stdout();
    let climbed = match is_failover {
        true => failover::climb(&plan, &interrupt, &mut progress, stdout),
        false => climb(&plan, &interrupt, &mut progress, stdout),
    };
    match climbed {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) if error.is::<Interrupted>() => {
            progress.line(&format!("climb: {error:#}; its children are stopped"));
            Ok(ExitCode::from(STATUS_INTERRUPTED))
        }
        Err(error) => Err(error),
    }
}

fn climb(
    plan: &Plan,
    interrupt: &Interrupt,
    progress: &mut Progress<'_>,
    report: &mut dyn Write,
) -> Result<()> {
    for file in [&plan.raw.out_json, &plan.raw.out_html] {
        check_writable(file).map_err(anyhow::Error::msg)?;
    }
    let steps = scenario::steps(plan);
    let (mut bench, server) = open(plan, &steps, interrupt, progress)?;
    let mut evidence = Evidence::new(plan, &steps, &bench.machine, server);
    let measured = measure_all(&mut bench, &steps, &mut evidence, progress);
    let cleaned = bench.cleanup();
    drop(bench);
    if !evidence.rows.is_empty() {
        progress.clear();
        write!(
            report,
            "{}",
            table::report(&evidence, &plan.raw.out_json, &plan.raw.out_html)
        )
        .context("cannot write the table to stdout")?;
        report.flush().context("cannot write the table to stdout")?;
    }
    if let (Err(_), Err(error)) = (&measured, &cleaned) {
        progress.line(&format!("climb: {error:#}"));
    }
    measured.and(cleaned)
}

/// Everything before the first cell: the machine, the server, the scratch directory. Also gives
/// the server's version.
fn open<'a>(
    plan: &'a Plan,
    steps: &[Step],
    interrupt: &Interrupt,
    progress: &mut Progress<'_>,
) -> Result<(Bench<'a>, String)> {
    let rung_max = steps.iter().map(|step| step.plan.rung_max()).max();
    machine::raise_limits(u64::from(rung_max.unwrap_or_default()) * 2 + 10_000);
    let machine = Machine::read();
    let program = match &plan.raw.program {
        Some(program) => program.clone(),
        None => std::env::current_exe().context("the path of this program is not known")?,
    };
    let programs = match plan.target {
        None => {
            let raw = &plan.raw;
            let directory = match raw.server {
                Kind::Mariadb => &raw.mariadb_dir,
                Kind::Mysql => &raw.mysql_dir,
            };
            Some(Programs::find(raw.server, directory.as_deref())?)
        }
        Some(_) => None,
    };
    if let Some(warning) = plan.target.as_ref().and_then(target::Dsn::warning) {
        progress.line(&format!("climb: warning: {warning}"));
    }
    let version = match &plan.target {
        Some(target) => target.greeted_version()?,
        None => String::new(),
    };
    let scratch = Scratch::make(plan.raw.scratch_dir.as_deref(), plan.raw.keep_scratch)?;
    let server = match programs {
        Some(programs) => {
            let at = scratch.path().display();
            progress.line(&format!(
                "climb: {} {} in {at}",
                programs.kind.process().replacen("the", "a", 1),
                programs.version
            ));
            Some(PrivateServer::install(
                programs,
                &scratch,
                &plan.raw.server_arg,
                plan.processors.of(Part::Server),
                interrupt,
            )?)
        }
        None => None,
    };
    let version = server.as_ref().map_or(version, PrivateServer::version);
    let bench = Bench {
        plan,
        machine,
        program,
        interrupt: interrupt.clone(),
        server,
        tables_made: false,
        scratch,
    };
    Ok((bench, version))
}

fn measure_all<'a>(
    bench: &mut Bench<'a>,
    steps: &'a [Step],
    evidence: &mut Evidence,
    progress: &mut Progress<'_>,
) -> Result<()> {
    let plan = bench.plan;
    if !plan.raw.no_prepare {
        progress.line(&what_is_made(plan));
        bench.prepare()?;
    }
    let of_step = |step: &'a Step| step.plan.cells().into_iter().map(move |cell| (step, cell));
    let cells: Vec<(&Step, Cell)> = steps.iter().flat_map(of_step).collect();
    for (number, &(step, cell)) in cells.iter().enumerate() {
        let place = format!("[{}/{}] {cell}", number + 1, cells.len());
        let name = match &step.name[..] {
            "" => String::new(),
            name => format!(" ({name})"),
        };
        progress.line(&format!("{place}{name}"));
        bench.plan = &step.plan;
        let mut row = bench.measure(cell, progress)?;
        row.step.clone_from(&step.name);
        progress.line(&format!(
            "{} {}",
            " ".repeat(place.len() - cell.to_string().len() - 1),
            outcome(&row)
        ));
        evidence.push(row);
        evidence.finished = number + 1 == cells.len();
        evidence.write_json(&plan.raw.out_json)?;
        export::html::write(evidence, &plan.raw.out_html)?;
    }
    Ok(())
}

fn what_is_made(plan: &Plan) -> String {
    let (tables, rows) = (
        plan.raw.tables,
        format::thousands(u64::from(plan.raw.table_size)),
    );
    match &plan.target {
        None => format!("climb: {tables} tables of {rows} rows"),
        Some(target) => format!(
            "climb: makes {tables} tables of {rows} rows (sbtest1 to sbtest{tables}) in {target}, \
             schema {}; they are dropped at the end",
            target.schema()
        ),
    }
}

/// A row in one line, for the progress.
fn outcome(row: &Row) -> String {
    let mut parts = Vec::new();
    if let Some(rate) = row.statements_per_s {
        parts.push(format!("{} statements/s", format::whole(rate)));
        if let (Some(goodput), Some(1..)) = (row.goodput_per_s, row.gave_up) {
            parts.push(format!("{} in time", format::whole(goodput)));
        }
        parts.push(format!(
            "p99 {} ms",
            format::or_absent(row.p99_ms, format::figure)
        ));
        parts.push(format!(
            "{} failed",
            format::thousands(row.failed().unwrap_or_default())
        ));
    }
    parts.extend(row.limit.clone());
    parts.join(", ")
}
