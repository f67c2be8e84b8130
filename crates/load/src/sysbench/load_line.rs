//! `onramp load SCRIPT.lua COMMAND`: a script of sysbench with the options of `onramp load`.
//!
//! Options that `onramp load` has are its own, and reach the script besides if it declares one of
//! that name (`--tables`, `--table-size`); all others are the script's, written `--name=value`.

use super::line::Line;
use super::script;
use crate::options::LoadArgs;
use crate::script_run;
use clap::error::ErrorKind;
use clap::{Args, Command, FromArgMatches};
use load_core::program::Program;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A command line about a script.
#[derive(Clone, Debug)]
pub struct ScriptLine {
    args: Box<LoadArgs>,
    program: Program,
}

impl ScriptLine {
    /// Takes the words behind `onramp load` apart; `None` where they do not begin with a script.
    ///
    /// # Errors
    /// The parser's, about an option of `onramp load`.
    pub fn read(
        words: impl IntoIterator<Item = OsString>,
    ) -> Option<Result<ScriptLine, clap::Error>> {
        let words: Vec<String> = words
            .into_iter()
            .map(OsString::into_string)
            .collect::<Result<_, _>>()
            .ok()?;
        let path = words.first().filter(|word| word.ends_with(".lua"))?;
        Some(read(path, &words))
    }
}

/// Runs the script's command. The status is that of `onramp load`.
#[must_use]
pub fn run(line: &ScriptLine, stop: &Arc<AtomicBool>) -> ExitCode {
    let result = script_run::main(&line.args, line.program.clone(), stop);
    crate::status(&line.args, result)
}

fn read(path: &str, words: &[String]) -> Result<ScriptLine, clap::Error> {
    let mut command = LoadArgs::augment_args(Command::new("onramp load").no_binary_name(true));
    let takes_value = takes_value(&command);
    // What runs is the script; nothing of a workload is looked at.
    let mut own = vec!["oltp_point_select".to_owned(), "run".to_owned()];
    let mut line = Line {
        file: Some(path.to_owned()),
        script: Some(path.to_owned()),
        ..Line::default()
    };
    let mut offered = Vec::new();
    let mut rest = words[1..].iter();
    while let Some(word) = rest.next() {
        let Some(option) = word.strip_prefix("--") else {
            if line.command.replace(word.clone()).is_some() {
                let what = format!("'{word}' is one word too many; expected SCRIPT.lua COMMAND\n");
                return Err(command.error(ErrorKind::UnknownArgument, what));
            }
            continue;
        };
        let (name, mut value) = match option.split_once('=') {
            Some((name, value)) => (name.replace('_', "-"), Some(value.to_owned())),
            None => (option.replace('_', "-"), None),
        };
        match takes_value.get(&name) {
            Some(takes_value) => {
                if *takes_value && value.is_none() {
                    value = rest.next().cloned();
                }
                own.push(match &value {
                    Some(value) => format!("--{name}={value}"),
                    None => format!("--{name}"),
                });
                offered.push((name, value));
            }
            None => line.given.push((name, value)),
        }
    }
    let matches = command.try_get_matches_from_mut(own)?;
    let mut args = LoadArgs::from_arg_matches(&matches)
        .map(Box::new)
        .map_err(|error| error.format(&mut command))?;
    line.values = values(&args, &offered);
    let mut program = script::program(&line, path, words);
    program.offered = offered;
    args.lua = Some(Arc::new(program.clone()));
    args.check()
        .map_err(|reason| command.error(ErrorKind::ArgumentConflict, reason + "\n"))?;
    Ok(ScriptLine { args, program })
}

/// The options of `onramp load`, and which take a value.
fn takes_value(command: &Command) -> BTreeMap<String, bool> {
    let mut known = BTreeMap::new();
    for arg in command.get_arguments() {
        let takes = arg.get_action().takes_values();
        let names = arg.get_long_and_visible_aliases().unwrap_or_default();
        known.extend(names.into_iter().map(|name| (name.to_owned(), takes)));
    }
    known.extend([("help".to_owned(), false)]);
    known
}

/// Values of `sysbench.opt` for options that all scripts have.
fn values(args: &LoadArgs, offered: &[(String, Option<String>)]) -> BTreeMap<String, String> {
    let target = &args.target;
    let mut values: BTreeMap<String, String> = [
        ("threads", args.connections.to_string()),
        ("events", args.events.to_string()),
        ("time", args.time.as_secs_f64().to_string()),
        ("report-interval", args.report_interval.to_string()),
        ("percentile", args.percentile.to_string()),
        ("rand-seed", args.rand_seed.to_string()),
        ("rand-type", "uniform".to_owned()),
        ("mysql-host", target.host.clone()),
        ("mysql-port", target.port.to_string()),
        ("mysql-socket", target.socket.clone().unwrap_or_default()),
        ("mysql-user", target.user.clone()),
        ("mysql-password", target.password.clone()),
        ("mysql-db", target.schema.clone()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    let of_random = offered.iter().filter(|(name, _)| name.starts_with("rand-"));
    values.extend(of_random.filter_map(|(name, value)| Some((name.clone(), value.clone()?))));
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use load_core::program::{Distribution, Setting};

    fn parse(line: &str) -> Option<Result<ScriptLine, String>> {
        let read = ScriptLine::read(line.split_whitespace().map(OsString::from))?;
        Some(read.map_err(|error| error.to_string()))
    }

    #[test]
    fn options_are_the_loads_or_the_scripts() {
        let line = parse(
            "mine.lua run --target mysql://a:b@h:33/t --threads 7 --table_size=50 --my-option=x \
             --rand-type pareto",
        );
        let line = line.unwrap().unwrap();
        assert_eq!((line.args.connections, line.args.table_size), (7, 50));
        assert_eq!(line.program.command.as_deref(), Some("run"));
        assert_eq!(
            line.program.given,
            [("my-option".to_owned(), Some("x".to_owned()))]
        );
        assert!(
            line.program
                .offered
                .contains(&("table-size".to_owned(), Some("50".to_owned())))
        );
        assert_eq!(line.program.shape.kind, Distribution::Pareto);
        let setting = |wanted: &str| {
            let mut all = line.program.settings.iter();
            all.find(|(name, _)| name == wanted)
                .map(|(_, value)| value.clone())
        };
        assert_eq!(setting("threads"), Some(Setting::Number(7.0)));
        assert_eq!(setting("mysql_db"), Some(Setting::Text("t".to_owned())));
    }

    #[test]
    fn what_no_script_can_have_is_refused() {
        assert!(parse("oltp_point_select run --target mysql://a@h/t").is_none());
        for (line, expected) in [
            (
                "a.lua run --target mysql://a@h/t --lifetime 5 --threads 9",
                "scripts",
            ),
            ("a.lua run run --target mysql://a@h/t", "one word too many"),
            ("a.lua run", "--target"),
        ] {
            let refused = parse(line).unwrap().unwrap_err();
            assert!(refused.contains(expected), "{line}: {refused}");
        }
    }
}
