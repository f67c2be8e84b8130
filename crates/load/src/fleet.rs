//! Classes of users behind `--locust-master` and `--print-locustfile`, each with its runner.
//!
//! The command line is that of one class; `--locust-class` has the words of others. Each class has
//! groups of its own, so that a class can be any kind of run: statements, TCP connections that are
//! held, or HTTP.

use crate::crowd;
use crate::group_threads::GroupThreads;
use crate::options::{Action, LoadArgs};
use clap::{Args, Command, FromArgMatches};
use load_core::control::Order;
use load_core::errors::Phase;
use load_http::long::{self, LongArgs};
use load_locust::{Entries, LocustArgs, Runner, UserClass};
use reactor::Time;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Longest time for groups to end.
const END_MAX: Duration = Duration::from_secs(5);

/// Job of a command line of `onramp load`.
pub(crate) enum Line {
    Statements(Box<LoadArgs>),
    Long(LongArgs),
}

impl Line {
    fn locust(&self) -> &LocustArgs {
        match self {
            Line::Statements(args) => &args.locust,
            Line::Long(args) => &args.swarm().locust,
        }
    }

    /// Reads the words behind `onramp load` of another class, which belongs to the same master.
    fn read(words: &[String], main: &LocustArgs) -> Result<Line, String> {
        if let Some(read) = LongArgs::read(words.iter().map(Into::into)) {
            let mut args = read.map_err(|error| error.to_string())?;
            args.check()?;
            args.swarm_mut().locust.master.clone_from(&main.master);
            return Ok(Line::Long(args));
        }
        let mut command = LoadArgs::augment_args(Command::new("onramp load").no_binary_name(true));
        let matches = command.try_get_matches_from_mut(words);
        let read = matches.and_then(|matches| LoadArgs::from_arg_matches(&matches));
        let mut args = read.map_err(|error| error.to_string())?;
        if args.command != Action::Run {
            return Err("expected 'run' behind the workload".to_owned());
        }
        if args.workload.is_interactive() {
            return Err(format!("{} is no work for Locust", args.workload.name()));
        }
        args.check()?;
        args.locust.master.clone_from(&main.master);
        Ok(Line::Statements(Box::new(args)))
    }

    /// The class's name where none is given.
    fn class_name(&self) -> String {
        match self {
            Line::Statements(args) => class_name(args.workload_name()),
            Line::Long(LongArgs::Hold(_)) => "TcpHold".to_owned(),
            Line::Long(LongArgs::Http(_)) => "Http".to_owned(),
        }
    }

    /// Behind `onramp load`.
    fn name(&self) -> String {
        match self {
            Line::Statements(args) => format!("{} run", args.workload_name()),
            Line::Long(LongArgs::Hold(_)) => "tcp-hold".to_owned(),
            Line::Long(LongArgs::Http(args)) => args.url.to_string(),
        }
    }

    fn target(&self) -> String {
        match self {
            Line::Statements(args) => args.target.place(),
            Line::Long(args) => args.target().to_string(),
        }
    }

    fn users_max(&self) -> u32 {
        match self {
            Line::Statements(args) => args.connections,
            Line::Long(args) => args.swarm().connections,
        }
    }

    fn runner(&self) -> Result<Box<dyn Runner>, String> {
        Ok(match self {
            Line::Statements(args) => Box::new(Statements::start(args)?),
            Line::Long(args) => Box::new(long::Users::start(args)?),
        })
    }
}

/// A name as Python's classes have them.
fn class_name(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric());
    let class: String = words
        .filter(|word| !word.is_empty())
        .map(|word| {
            let (first, rest) = word.split_at(1);
            format!("{}{rest}", first.to_ascii_uppercase())
        })
        .collect();
    match class.starts_with(|c: char| c.is_ascii_digit()) {
        true => format!("C{class}"),
        false => class,
    }
}

/// The classes that a command line means, the one of the line itself first.
fn lines(main: Line) -> Result<Vec<(String, Line)>, String> {
    main.locust().check()?;
    let mut all = Vec::new();
    for (name, words) in &main.locust().classes {
        let read = Line::read(words, main.locust());
        let line = read.map_err(|reason| format!("--locust-class {name}: {reason}"))?;
        all.push((name.clone(), line));
    }
    let own = main.class_name();
    if all.iter().any(|(name, _)| *name == own) {
        return Err(format!(
            "--locust-class {own}: this is the name of the class that the command line itself \
             defines; take another one"
        ));
    }
    all.insert(0, (own, main));
    Ok(all)
}

/// Runs the users of a master.
///
/// # Errors
/// A sentence that says why it could not go on.
pub(crate) fn run(main: Line, stop: &AtomicBool) -> Result<(), String> {
    let args = main.locust().clone();
    let mut classes = Vec::new();
    for (name, line) in lines(main)? {
        let (runner, users_max) = (line.runner()?, line.users_max());
        aside!(
            "load: users of {name} run {} against {}, at most {users_max}",
            line.name(),
            line.target()
        );
        classes.push(UserClass {
            name,
            users_max,
            runner,
        });
    }
    load_locust::run(&args, classes, stop)
}

/// Prints the locustfile that a master is started with.
///
/// # Errors
/// That nobody reads it.
pub(crate) fn print_locustfile(main: Line) -> Result<(), String> {
    let text = locustfile(&lines(main)?);
    let written = std::io::stdout().write_all(text.as_bytes());
    written.map_err(|error| format!("cannot write the locustfile: {error}"))
}

/// A class of users for each class, which does nothing in Python.
fn locustfile(lines: &[(String, Line)]) -> String {
    let mut text = "# For the master: locust -f THIS_FILE --master\n\
         # The users run in `onramp load ... --locust-master HOST`; nothing runs here.\n\
         from locust import User, constant, task\n"
        .to_owned();
    for (class, line) in lines {
        text += &format!(
            "\n\n\
             class {class}(User):\n    \
                 # onramp load {name}\n    \
                 host = \"{target}\"\n    \
                 wait_time = constant(1)\n\n    \
                 @task\n    \
                 def runs_elsewhere(self):\n        \
                     pass\n",
            name = line.name(),
            target = line.target().replace(['"', '\\'], "_"),
        );
    }
    text
}

/// Users that run statements.
struct Statements {
    group_threads: GroupThreads,
    workload: String,
    /// The workload's statements, where it has several.
    titles: Vec<String>,
}

impl Statements {
    fn start(args: &LoadArgs) -> Result<Statements, String> {
        let plan = Arc::new(crowd::make_plan(args)?);
        let group_threads = GroupThreads::start(args, &plan, &args.layout())?;
        group_threads.order(Order::Start);
        let titles = match plan.is_mixed() {
            true => plan.titles().map(str::to_owned).collect(),
            false => Vec::new(),
        };
        Ok(Statements {
            group_threads,
            workload: args.workload_name().to_owned(),
            titles,
        })
    }
}

impl Runner for Statements {
    fn order(&mut self, users: u32) {
        self.group_threads.order(Order::Users(users));
    }

    fn listen(&mut self, until: Time) {
        self.group_threads.listen(until);
    }

    fn failure(&self) -> Option<String> {
        self.group_threads.reason_to_stop().cloned()
    }

    fn collect(&mut self, entries: &mut Entries, now: f64) {
        let stats = self.group_threads.report(Order::Report);
        let workload = &self.workload;
        if self.titles.is_empty() {
            entries.answered(workload, "SQL", &stats.statement_latency(), 0, now);
        }
        for (number, title) in self.titles.iter().enumerate() {
            entries.answered(title, "SQL", &stats.latency_with(number), 0, now);
        }
        for row in stats.errors.rows() {
            let method = match row.phase {
                Phase::Statement => "SQL",
                Phase::Connect | Phase::Init => "CONNECT",
            };
            let words = format!("{}: {}", row.code, row.message);
            entries.failed(workload, method, row.count, now);
            entries.explain(workload, method, words, row.count, now);
        }
    }

    fn end(&mut self) {
        let end = Time::now() + END_MAX;
        self.group_threads.order(Order::Stop(end));
        self.group_threads.end(end + END_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str) -> Result<Line, String> {
        let words: Vec<_> = words.split_whitespace().map(str::to_owned).collect();
        let none = "oltp_point_select run --target mysql://a@h/t";
        let words = if words.is_empty() {
            none.split(' ').map(str::to_owned).collect()
        } else {
            words
        };
        let mut command = LocustArgs::augment_args(Command::new("x").no_binary_name(true));
        let matches = command
            .try_get_matches_from_mut(["--locust-master", "m"])
            .unwrap();
        Line::read(&words, &LocustArgs::from_arg_matches(&matches).unwrap())
    }

    fn main_with(classes: &[(&str, &str)]) -> Line {
        let Ok(Line::Statements(mut args)) = read("") else {
            panic!("no line");
        };
        args.locust.classes = classes
            .iter()
            .map(|(name, words)| {
                (
                    (*name).to_owned(),
                    words.split(' ').map(str::to_owned).collect(),
                )
            })
            .collect();
        Line::Statements(args)
    }

    #[test]
    fn a_locustfile_has_each_class() {
        let main = main_with(&[
            ("Hold", "tcp-hold --target tcp://127.0.0.1:9000"),
            ("Web", "http://127.0.0.1:8080/a"),
        ]);
        let text = locustfile(&lines(main).unwrap());
        for words in [
            "class OltpPointSelect(User):",
            "# onramp load oltp_point_select run",
            "class Hold(User):",
            "host = \"tcp://127.0.0.1:9000\"",
            "class Web(User):",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }

    #[test]
    fn words_that_are_no_run_are_refused_with_their_class() {
        for (words, reason) in [
            ("tcp-hold", "--target <PLACE>"),
            ("oltp_point_select prepare --target mysql://a@h/t", "'run'"),
            ("nothing run --target mysql://a@h/t", "nothing"),
            ("bank run --target mysql://a@h/t", "no work for Locust"),
        ] {
            let error = lines(main_with(&[("Other", words)])).err().unwrap();
            assert!(error.starts_with("--locust-class Other: "), "{error}");
            assert!(error.contains(reason), "{error}");
        }
        let twice = lines(main_with(&[("OltpPointSelect", "http://h/")]));
        assert!(twice.err().unwrap().contains("itself"));
    }

    #[test]
    fn classes_are_named_as_pythons_are() {
        assert_eq!(class_name("oltp_point_select"), "OltpPointSelect");
        assert_eq!(class_name("7up"), "C7up");
    }
}
