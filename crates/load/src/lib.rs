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
mod aside;
mod allowance;
mod arrivals;
mod blocking;
mod connection;
mod connection_slot;
mod context;
mod control;
mod crowd;
mod durations;
mod errors;
mod event_loop;
mod fleet;
mod group;
mod group_threads;
mod hooks;
mod latency;
mod layout;
mod locust;
mod login;
pub mod long;
mod lua;
mod manner;
mod merge;
mod model;
mod opener;
mod options;
mod output;
mod output_options;
mod pace;
mod plan;
mod ports;
mod prepare;
mod preparing;
mod program;
mod random;
mod rate_profile;
mod recorded;
mod report;
mod script_run;
mod series;
mod stats;
mod summary;
mod sysbench;
pub mod target;
mod threads;
mod thresholds;
mod timers;
mod tolerance;
mod transport;
mod work;
mod workload;

#[cfg(test)]
mod tests;

pub use arrivals::Gaps;
pub use durations::Spread;
pub use errors::{ErrorCount, Phase};
pub use latency::Latency;
pub use merge::{MergeArgs, run as run_merge};
pub use model::{Active, ModelArgs};
pub use options::{Action, LoadArgs};
pub use output_options::{OutputArgs, When};
pub use rate_profile::RateProfile;
pub use recorded::{Histograms, Recorded};
pub use series::Point;
pub use summary::{Latencies, Summary};
pub use sysbench::{ScriptLine, SysbenchArgs, run as run_sysbench, run_script};
pub use thresholds::{Checked, Threshold};
pub use tolerance::ToleranceArgs;
pub use workload::Workload;

use fleet::Line;
use hooks::NoHooks;
use long::LongArgs;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// It ran, whatever the statements said.
const RAN: u8 = 0;
/// It could not run: no connection, or tables that could not be made.
const FAILED: u8 = 1;
/// The options contradict each other.
const BAD_OPTIONS: u8 = 2;
/// It ran, and a threshold was crossed.
const CROSSED: u8 = 3;
/// A line of sysbench asked for an end by force, and it came to that.
const FORCED: u8 = 2;

/// Does what `args` say. `stop` is set from outside (by a signal) to end a run early, with the
/// report of what was measured until then.
///
/// The status is 0 when it ran (also with failed statements), 1 when it could not, 2 for bad
/// options, 3 when it ran and crossed a threshold; the reason is on stderr.
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
        Action::Prepare => prepare::prepare(args, stop).map(|()| Outcome::Ran),
        Action::Prewarm => prepare::prewarm(args).map(|()| Outcome::Ran),
        Action::Cleanup => prepare::cleanup(args).map(|()| Outcome::Ran),
    };
    status(args, result)
}

/// Does what `args` say of long connections, until `stop` is set from outside or the time is over.
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
    /// A threshold was crossed.
    Crossed,
    /// Statements were left where they were, as a line of sysbench had asked for.
    Forced,
}
