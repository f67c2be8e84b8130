//! `onramp`: one binary, several jobs.
//!
//! This file only hands each subcommand to the crate that does it. Exit status: 0 done, 1 could
//! not be done, 2 the command line or a file cannot be used, 130 ended by a signal.
#![forbid(unsafe_code)]

use clap::{Parser, Subcommand};
use signal_hook::consts::{SIGINT, SIGTERM};
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
Try it: `onramp climb` measures a private MariaDB direct and through the pool (a few minutes).

Exit status: 0 done; 1 could not be done; 2 the command line or a file cannot be used;
130 ended by a signal (climb) or by a second one (load).";

#[derive(Subcommand)]
enum Job {
    Pool(pool::PoolArgs),
    Load(Box<load::LoadArgs>),
    Doctor(doctor::DoctorArgs),
    Explain(doctor::explain::ExplainArgs),
    Climb(climb::ClimbArgs),
}

fn main() -> ExitCode {
    match Cli::parse().job {
        Job::Pool(args) => pool::run(args),
        Job::Load(args) => load::run(&args, &stop_flag()),
        Job::Doctor(args) => doctor::run(&args),
        Job::Explain(args) => doctor::explain::run(&args),
        Job::Climb(args) => climb::run(args).unwrap_or_else(|error| {
            let _ = writeln!(std::io::stderr(), "onramp climb: {error:#}");
            ExitCode::FAILURE
        }),
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
