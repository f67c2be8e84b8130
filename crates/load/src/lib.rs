//! `onramp load`: holds as many executing MySQL connections as wanted, and measures them.
//!
//! The problem: load generators give each connection a thread or an interpreter, so the machine
//! that makes the load gives out long before the server. The mechanism: a connection is a struct of
//! some hundred bytes, driven by the events of its socket ([`connection`]); one thread per core
//! holds many of them ([`group`]), each with a descriptor table of its own; the main thread ramps
//! them up, holds them, and reports ([`crowd`]).
//!
//! Results go to three places: sysbench's report on stdout and nothing else ([`report`]), progress
//! and a summary for people on stderr, and JSON in a file for programs ([`summary`]).
#![forbid(unsafe_code)]
// A reader of standard error who has gone must not end a run: `aside!` does not panic.
#![warn(clippy::print_stderr)]

#[macro_use]
extern crate load_core;

mod blocking;
mod connection;
mod context;
mod crowd;
mod fleet;
mod group;
mod group_threads;
mod hooks;
mod manner;
mod merge;
mod options;
mod output;
mod output_options;
mod prepare;
mod preparing;
mod proof;
mod recorded;
mod report;
mod script_run;
mod summary;
mod sysbench;
mod thresholds;
mod work;

#[cfg(test)]
mod tests;

pub use load_core::arrivals::Gaps;
pub use load_core::durations::Spread;
pub use load_core::errors::{ErrorCount, Phase};
pub use load_core::latency::Latency;
pub use load_core::model::{Active, ModelArgs};
pub use load_core::rate_profile::RateProfile;
pub use load_core::series::Point;
pub use load_core::tolerance::ToleranceArgs;
pub use load_core::workload::Workload;
pub use merge::{MergeArgs, run as run_merge};
pub use options::{Action, LoadArgs};
pub use output_options::{OutputArgs, When};
pub use proof::{Data, Finding, Kind, Shown, Verdict};
pub use recorded::{Histograms, Recorded};
pub use summary::{Latencies, Outage, Summary};
pub use sysbench::{ScriptLine, SysbenchArgs, run as run_sysbench, run_script};
pub use thresholds::{Checked, Threshold};

use fleet::Line;
use hooks::NoHooks;
use load_core::exit_status::{BAD_OPTIONS, CROSSED, FAILED, FORCED, RAN};
use load_http::long::{self, LongArgs};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Runs what `args` say. `stop` is set from outside (by a signal) to end a run early, with the
/// report of what was measured until then.
///
/// The status is 0 when it ran (also with failed statements), 1 when it could not, 2 for bad
/// options, 3 when it ran and crossed a threshold or proved the data wrong; the reason is on
/// stderr.
#[must_use]
pub fn run(args: &LoadArgs, stop: &Arc<AtomicBool>) -> ExitCode {
    if let Err(reason) = args.check() {
        aside!("onramp load: {reason}");
        return BAD_OPTIONS.into();
    }
    let result = match args.command {
        Action::Run if args.locust.print_locustfile => {
            fleet::print_locustfile(Line::Statements(Box::new(args.clone()))).map(|()| Outcome::Ran)
        }
        Action::Run if args.locust.master.is_some() => {
            fleet::run(Line::Statements(Box::new(args.clone())), stop).map(|()| Outcome::Ran)
        }
        Action::Run => crowd::run(&args.settled(), &mut NoHooks, stop),
        Action::Prepare if args.workload.is_interactive() => crowd::make_plan(args)
            .and_then(|plan| proof::prepare(args.workload, args.tpcc, &plan, stop))
            .map(|()| Outcome::Ran),
        Action::Cleanup if args.workload.is_interactive() => crowd::make_plan(args)
            .and_then(|plan| proof::cleanup(args.workload, &plan))
            .map(|()| Outcome::Ran),
        Action::Prepare => prepare::prepare(args, stop).map(|()| Outcome::Ran),
        Action::Check => {
            let most = proof::CONDITIONS_MAX;
            crowd::make_plan(args).and_then(|plan| proof::check_tables(args.tpcc, plan, most))
        }
        Action::Prewarm => prepare::prewarm(args).map(|()| Outcome::Ran),
        Action::Cleanup => prepare::cleanup(args).map(|()| Outcome::Ran),
    };
    status(args, result)
}

/// Runs what `args` say of long connections, until `stop` is set from outside or the time is over.
/// The status is 0 when it ran, whatever came; 1 when it could not; 2 for options that make no
/// sense; the reason is on stderr.
#[must_use]
pub fn run_long(args: &LongArgs, stop: &AtomicBool) -> ExitCode {
    let locust = &args.swarm().locust;
    let checked = args.check().and_then(|()| locust.check());
    if let Err(reason) = checked {
        aside!("onramp load: {reason}");
        return BAD_OPTIONS.into();
    }
    let line = || Line::Long(args.clone());
    let ended = if locust.print_locustfile {
        fleet::print_locustfile(line())
    } else if locust.master.is_some() {
        fleet::run(line(), stop)
    } else {
        return long::run(args, stop);
    };
    match ended {
        Ok(()) => RAN.into(),
        Err(reason) => {
            aside!("onramp load: {reason}");
            FAILED.into()
        }
    }
}

/// The status of a job that ended so; says why one failed.
fn status(args: &LoadArgs, result: Result<Outcome, String>) -> ExitCode {
    match result {
        Ok(Outcome::Ran) => RAN.into(),
        Ok(Outcome::BadOptions) => BAD_OPTIONS.into(),
        Ok(Outcome::Forced) => FORCED.into(),
        Ok(Outcome::Crossed) => CROSSED.into(),
        Err(reason) => {
            aside!("{}: {reason}", args.manner.prefix());
            FAILED.into()
        }
    }
}

/// Result of a job that could be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Ran,
    /// Options that the script does not have, which has been said.
    BadOptions,
    /// Crossed threshold, or data that are wrong.
    Crossed,
    /// Statements were left where they were, as a line of sysbench had asked for.
    Forced,
}
