//! `onramp sysbench`: sysbench's command lines, as they are.
//!
//! The problem: years of scripts call `sysbench --test=... --num-threads=...` or `sysbench
//! oltp_read_write --threads=... run` and read what it prints. The mechanism: [`line`] takes such a
//! line apart by the rules of 1.0 or 0.5 and the table in [`known`]; [`translate`] says the same to
//! `onramp load`, which runs its own workload of the script's name. No sysbench has to be there.
//!
//! Invariants: standard output has the report and nothing else, in the form of the version that the
//! line is written for; everything else goes to standard error; exit statuses are sysbench's: 0
//! done, 1 failed, 2 ended by force.

mod help;
mod known;
mod line;
mod load_line;
mod script;
mod translate;

use crate::manner::Manner;
use crate::options::{Action, LoadArgs};
use clap::Args;
use line::Line;
pub use load_line::{ScriptLine, run as run_script};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Take sysbench's own command lines, of 1.0 and 0.5
///
/// As in: onramp sysbench oltp_read_write --mysql-socket=/run/mysqld/mysqld.sock --threads=200 run.
/// `onramp sysbench --help` lists the options; docs/sysbench.md says what differs.
#[derive(Args, Clone, Debug)]
#[command(disable_help_flag = true, disable_version_flag = true)]
pub struct SysbenchArgs {
    /// Options, script and command, as behind `sysbench`
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "WORD"
    )]
    words: Vec<String>,
}

const FAILED: u8 = 1;

/// Runs what sysbench would with this line.
#[must_use]
pub fn run(args: &SysbenchArgs, stop: &Arc<AtomicBool>) -> ExitCode {
    let line = match Line::read(&args.words) {
        Ok(line) => line,
        Err(reason) => return fail(&reason),
    };
    if let Some(text) = help::answer(&line) {
        Manner::default().say(&text);
        return ExitCode::SUCCESS;
    }
    for note in &line.notes {
        aside!("sysbench: {note}");
    }
    let job = match translate::load_args(&line) {
        Ok(job) => job,
        Err(reason) => return fail(&reason),
    };
    match &line.file {
        Some(file) => {
            let program = script::program(&line, file, &args.words);
            crate::status(&job, crate::script_run::main(&job, program, stop))
        }
        None => start(&job, stop),
    }
}

fn start(args: &LoadArgs, stop: &Arc<AtomicBool>) -> ExitCode {
    if args.command != Action::Run {
        args.manner.say(&crate::report::version_line(args));
    }
    crate::run(args, stop)
}

fn fail(reason: &str) -> ExitCode {
    aside!("FATAL: {reason}");
    FAILED.into()
}

#[cfg(test)]
mod tests;
