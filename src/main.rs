//! `onramp`: one binary, several jobs.
//!
//! This file only hands each subcommand to the crate that does it. Exit status: 0 done, 1 could
//! not be done, 2 the command line or a file cannot be used, 130 ended by a signal.
#![forbid(unsafe_code)]

mod command_line;
mod generate;
mod import;
mod preflight;
mod tls;
mod top;

use crate::command_line::without_passwords;
use crate::preflight::{Checked, look, of_load, of_pool};
use clap::{CommandFactory as _, Parser, Subcommand};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A thread pool in front of any MySQL-protocol server, and the tools that prove it.
#[derive(Parser)]
#[command(version, propagate_version = true, after_help = AFTER_HELP)]
struct Cli {
    #[command(subcommand)]
    job: Job,
}

const AFTER_HELP: &str = "\
Try it: onramp climb measures a private MariaDB direct and through the pool (a few minutes).

Exit status: 0 done; 1 could not be done; 2 the command line or a file cannot be used; 3 a threshold
of load was crossed, or data are wrong; 130 ended by a signal (climb) or by a second one (load,
target).";

#[derive(Subcommand)]
enum Job {
    Pool(Box<Checked<pool::PoolArgs>>),
    Load(Box<Checked<load::LoadArgs>>),
    Doctor(doctor::DoctorArgs),
    Explain(doctor::explain::ExplainArgs),
    Sysbench(load::SysbenchArgs),
    Merge(load::MergeArgs),
    Climb(climb::ClimbArgs),
    Target(load_http::target::TargetArgs),
    Tls(tls::TlsArgs),
    Import(import::ImportArgs),
    Top(top::TopArgs),
    Generate(generate::GenerateArgs),
}

fn main() -> ExitCode {
    let words = command_line::read();
    ignore_signals_of_the_pool();
    if let Some(args) = long_connections(&words) {
        return args.map_or_else(
            |error| without_passwords(error).exit(),
            |args| load::run_long(&args, &stop_flag()),
        );
    }
    if let Some(line) = script(&words) {
        return line.map_or_else(
            |error| without_passwords(error).exit(),
            |line| load::run_script(&line, &stop_flag()),
        );
    }
    let started = pool::Started::with(words.clone());
    let cli = Cli::try_parse_from(words).unwrap_or_else(|error| without_passwords(error).exit());
    warn_of_files(&cli.job);
    match cli.job {
        Job::Pool(job) => {
            if let Some(what) = job.args.check {
                return pool::check(job.args, what);
            }
            outlive_hangup();
            let started = started.in_place_of(job.args.upgrade);
            pool::settings(job.args)
                .and_then(|(source, settings)| {
                    look("pool", job.preflight, of_pool(&settings))?;
                    Ok(pool::run(source, settings, started, tls::own))
                })
                .unwrap_or_else(|status| status)
        }
        Job::Load(job) => match look("load", job.preflight, of_load(&job.args)) {
            Ok(()) => load::run(&job.args, &stop_flag()),
            Err(status) => status,
        },
        Job::Doctor(args) => doctor::run(&args),
        Job::Explain(args) => doctor::explain::run(&args),
        Job::Sysbench(args) => load::run_sysbench(&args, &stop_flag()),
        Job::Merge(args) => load::run_merge(&args),
        Job::Climb(args) => climb::run(args).unwrap_or_else(|error| {
            let _ = writeln!(std::io::stderr(), "onramp climb: {error:#}");
            ExitCode::FAILURE
        }),
        Job::Target(args) => load_http::target::run(&args, &stop_flag()),
        Job::Tls(args) => tls::run(&args),
        Job::Import(args) => import::run(&args),
        Job::Top(args) => top::run(&args),
        Job::Generate(args) => generate::run(&args, Cli::command()),
    }
}

/// `onramp load tcp-hold ...` and `onramp load http://... ...`: where a workload's name stands
/// otherwise is what has options of its own.
fn long_connections(words: &[OsString]) -> Option<Result<load_http::long::LongArgs, clap::Error>> {
    let words = words.get(1..)?;
    let is_load = words.first().is_some_and(|word| word == "load");
    is_load.then(|| load_http::long::LongArgs::read(words[1..].iter().cloned()))?
}

/// `onramp load SCRIPT.lua ...`: a script takes options of its own.
fn script(words: &[OsString]) -> Option<Result<load::ScriptLine, clap::Error>> {
    let words = words.get(1..)?;
    let is_load = words.first().is_some_and(|word| word == "load");
    is_load.then(|| load::ScriptLine::read(words[1..].iter().cloned()))?
}

/// Says which files with passwords others can read. The pool says it with its settings, and climb
/// with its plan.
fn warn_of_files(job: &Job) {
    let (name, target) = match job {
        Job::Load(job) => ("load", Some(&job.args.target)),
        Job::Doctor(args) => ("doctor", args.server.target.as_ref()),
        Job::Explain(args) => ("explain", args.server.target.as_ref()),
        Job::Pool(_)
        | Job::Sysbench(_)
        | Job::Merge(_)
        | Job::Climb(_)
        | Job::Target(_)
        | Job::Tls(_)
        | Job::Import(_)
        | Job::Top(_)
        | Job::Generate(_) => {
            return;
        }
    };
    if let Some(warning) = target.and_then(wire::dsn::Dsn::warning) {
        command_line::warn(name, &warning);
    }
}

/// Ignores SIGHUP, which does not end the pool, not even before it handles its signals itself.
fn outlive_hangup() {
    pass_over(&[SIGHUP]);
}

/// Ignores the signals that ask a pool for something: they do no harm to the other commands, which
/// have the same process name, nor to a pool that begins or only checks its settings.
fn ignore_signals_of_the_pool() {
    pass_over(&[SIGUSR1, SIGUSR2]);
}

fn pass_over(signals: &[i32]) {
    for signal in signals {
        if let Err(error) = signal_hook::flag::register(*signal, Arc::default()) {
            let _ = writeln!(std::io::stderr(), "onramp: cannot handle signals: {error}");
        }
    }
}

/// Set by the first SIGINT or SIGTERM, so that a run ends early with a report of what it measured;
/// a second one ends the process.
fn stop_flag() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        let again = signal_hook::flag::register_conditional_shutdown(signal, 130, stop.clone());
        let first = signal_hook::flag::register(signal, stop.clone());
        if let Err(error) = again.and(first) {
            let _ = writeln!(std::io::stderr(), "onramp: cannot handle signals: {error}");
        }
    }
    stop
}
