//! Command lines about a script in a file: its help, a command, a run.
//!
//! The script is loaded once by itself, for the options and commands that it declares; then its
//! command runs, or the groups of a run begin, which load it for each connection again.

use crate::Outcome;
use crate::crowd;
use crate::fleet::{self, Line};
use crate::hooks::{Hook, Hooks, Numbers};
use crate::manner::Dialect;
use crate::options::LoadArgs;
use crate::report;
use load_core::allowance::Allowance;
use load_core::program::Program;
use load_lua::{Body, Stage};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Job of a script.
enum Job {
    /// No more than to be loaded, as sysbench does without a command.
    Load,
    Run,
    Command {
        parallel: bool,
    },
    Help,
}

/// Runs the command of a script.
///
/// # Errors
/// What stands behind `FATAL:`; empty where it has been said already.
pub(crate) fn main(
    args: &LoadArgs,
    program: Program,
    stop: &Arc<AtomicBool>,
) -> Result<Outcome, String> {
    if args.locust.print_locustfile {
        let mut args = args.clone();
        args.lua = Some(Arc::new(program));
        fleet::print_locustfile(Line::Statements(Box::new(args)))?;
        return Ok(Outcome::Ran);
    }
    let plan = Arc::new(crowd::make_plan(args)?);
    let events = || Arc::new(Allowance::new(0));
    let name: Rc<str> = "".into();
    let mut program = program;
    let mut stage = Stage::new(plan.clone(), &program, (0, 1), (0, 1), events())?;
    stage.begin(0, Body::Main, &name);
    stage.run_out(stop).map_err(plain)?;
    let declared = stage.lua.declared(0)?;
    let job = job_of(&program, &stage, args.manner.dialect)?;
    if let Job::Help = job {
        args.manner.say(&report::version_line(args));
        match stage.lua.has(0, "help")? {
            true => call(&mut stage, "help", stop)?,
            false => {
                let name = Path::new(&program.path).file_name().unwrap_or_default();
                let name = name.to_string_lossy();
                let list = load_lua::help(declared.as_deref().unwrap_or_default());
                args.manner.say(&format!("{name} options:\n{list}\n"));
            }
        }
        return Ok(Outcome::Ran);
    }
    let settled = load_lua::settle(declared.as_deref(), &program.given, &program.offered);
    let settings = match (settled, args.manner.dialect) {
        (Err(reason), Dialect::Load) => {
            aside!("onramp load: {reason}");
            return Ok(Outcome::BadOptions);
        }
        (settled, _) => settled?,
    };
    stage.lua.set_options(&settings)?;
    program.settings.extend(settings);
    let command: Rc<str> = program.command.clone().unwrap_or_default().into();
    match job {
        Job::Run => run(args, program, &mut stage, stop),
        Job::Command { parallel } => {
            args.manner.say(&report::version_line(args));
            if parallel && args.connections > 1 {
                let all = (0, args.connections);
                let mut stage = Stage::new(plan, &program, all, (0, 1), events())?;
                (0..args.connections).for_each(|user| stage.begin(user, Body::Parallel, &command));
                stage.run_out(stop).map_err(plain)?;
            } else {
                stage.begin(0, Body::Single, &command);
                stage.run_out(stop).map_err(plain)?;
            }
            Ok(Outcome::Ran)
        }
        Job::Load | Job::Help => Ok(Outcome::Ran),
    }
}

/// The run, with the script's `init()` in front and `done()` behind.
fn run(
    args: &LoadArgs,
    program: Program,
    stage: &mut Stage,
    stop: &Arc<AtomicBool>,
) -> Result<Outcome, String> {
    call(stage, "init", stop)?;
    let mut args = args.settled();
    args.lua = Some(Arc::new(program));
    if args.locust.master.is_some() {
        fleet::run(Line::Statements(Box::new(args)), stop)?;
        call(stage, "done", &AtomicBool::new(false))?;
        return Ok(Outcome::Ran);
    }
    let mut hooks = ScriptHooks {
        stage: &mut *stage,
        stop,
        is_cut: false,
    };
    let outcome = crowd::run(&args, &mut hooks, stop);
    stage.lua.end_reports()?;
    let outcome = outcome?;
    // A run that was stopped early is wound up like any other.
    call(stage, "done", &AtomicBool::new(false))?;
    Ok(outcome)
}

/// The hooks of the script, in the environment that `init()` ran in.
struct ScriptHooks<'a> {
    stage: &'a mut Stage,
    stop: &'a AtomicBool,
    /// A signal came while one ran: it is still where it was, and none runs again.
    is_cut: bool,
}

impl Hooks for ScriptHooks<'_> {
    fn report(&mut self, hook: Hook, numbers: Numbers) -> bool {
        if self.is_cut || !self.stage.lua.has_hook(0, hook.name()) {
            return false;
        }
        let was_stopped = self.stop.load(Ordering::Relaxed);
        let begun = self.stage.lua.set_numbers(&numbers).and_then(|()| {
            self.stage.begin(0, Body::Hook, &hook.name().into());
            match was_stopped {
                // The last report of a run that was stopped is written like any other.
                true => self.stage.run_out(&AtomicBool::new(false)),
                false => self.stage.run_out(self.stop),
            }
        });
        if let Err(reason) = begun {
            self.is_cut = !was_stopped && self.stop.load(Ordering::Relaxed);
            let name = hook.name();
            aside!(
                "FATAL: `sysbench.hooks.{name}' function failed: {}",
                plain(reason)
            );
        }
        true
    }
}

fn job_of(program: &Program, stage: &Stage, dialect: Dialect) -> Result<Job, String> {
    let Some(command) = program.command.as_deref() else {
        return Ok(match dialect {
            Dialect::Load => Job::Run,
            _ => Job::Load,
        });
    };
    match stage.lua.command(0, command)? {
        _ if command == "run" => Ok(Job::Run),
        Some(parallel) if command != "help" => Ok(Job::Command { parallel }),
        _ if command == "help" => Ok(Job::Help),
        _ if ["prepare", "cleanup"].contains(&command) => {
            let script = Path::new(&program.path).file_name().unwrap_or_default();
            Err(format!(
                "'{}' test does not implement the '{command}' command.",
                script.to_string_lossy()
            ))
        }
        _ => Err(format!(
            "Unknown command: {command}; {} has no such function or command",
            program.path
        )),
    }
}

/// Calls a function of the script, if it has it.
fn call(stage: &mut Stage, name: &str, stop: &AtomicBool) -> Result<(), String> {
    if !stage.lua.has(0, name)? {
        return Ok(());
    }
    stage.begin(0, Body::Call, &name.into());
    let ended = stage.run_out(stop);
    ended.map_err(|reason| match reason.split_once(" function failed: ") {
        Some((_, reason)) => format!("`{name}' function failed: {reason}"),
        None => reason,
    })
}

/// Message of a failure outside of a thread's functions.
fn plain(reason: String) -> String {
    match reason.split_once(" function failed: ") {
        Some((_, reason)) => reason.to_owned(),
        None => reason,
    }
}
