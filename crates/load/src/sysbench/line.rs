//! A command line of sysbench, taken apart.
//!
//! 1.0: `[options]... [testname] [command]`; 0.5: `--test=SCRIPT [options]... command`. Options are
//! `--name=value` or `--name`, and may stand anywhere; `-` and `_` are the same in a name. A line
//! with `--test=` is 0.5's, unless its script is one that only 1.0 has: 1.0 took that form, too.
//!
//! Invariants: what comes later counts, a configuration file in the place of its option; an option
//! that 1.0 does not know is an error, and one that 0.5 does not know is said and left out, because
//! 0.5 handed such options to its script.

use super::known::{self, ALIASES, Fate, Kind};
use crate::manner::Dialect;
use clap::ValueEnum;
use load_core::program::size;
use load_core::workload::Workload;
use std::collections::BTreeMap;
use std::path::Path;

/// A line, taken apart.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) dialect: Dialect,
    /// The script's name as it was written.
    pub(super) script: Option<String>,
    pub(super) command: Option<String>,
    /// File that is the script, to be run as it is.
    pub(super) file: Option<String>,
    /// Options that only the script in the file can know, with `-` in their names.
    pub(super) given: Vec<(String, Option<String>)>,
    /// Options that were given, by name with `-`, checked.
    pub(super) values: BTreeMap<String, String>,
    /// Notes about the line.
    pub(super) notes: Vec<String>,
}

/// Files that name files that name files: at most so deep.
const FILES_MAX: usize = 8;

impl Line {
    /// Takes the words behind the program's name apart.
    ///
    /// # Errors
    /// A sentence that says which word is wrong and what was expected.
    pub(super) fn read(words: &[String]) -> Result<Line, String> {
        let mut given = Vec::new();
        let mut line = Line::default();
        let mut plain = Vec::new();
        for word in words {
            match word.strip_prefix("--") {
                Some(option) => take_option(option, &mut given, FILES_MAX)?,
                None => plain.push(word.clone()),
            }
        }
        let test = given.iter().rposition(|(name, _)| name == "test");
        if let Some((_, Some(script))) = test.map(|at| given[at].clone()) {
            line.dialect = dialect_of(&script);
            line.script = Some(script);
            given.retain(|(name, _)| name != "test");
        } else {
            line.dialect = Dialect::New;
            let mut rest = plain.into_iter();
            line.script = rest.next();
            plain = rest.collect();
        }
        let mut rest = plain.into_iter();
        line.command = rest.next();
        if let Some(word) = rest.next() {
            return Err(format!("'{word}' is one word too many; expected {FORM}"));
        }
        line.file = line.script.as_deref().and_then(file_of);
        for (name, value) in given {
            line.set(name, value)?;
        }
        Ok(line)
    }

    fn set(&mut self, name: String, value: Option<String>) -> Result<(), String> {
        let mut name = name;
        if let Some((old, new)) = ALIASES.iter().find(|(old, _)| *old == name) {
            if self.dialect == Dialect::New {
                self.notes
                    .push(format!("--{old} is an old name of --{new}"));
            }
            name = (*new).to_owned();
        }
        let known = match self.file {
            Some(_) => known::find_general(self.dialect, &name),
            None => known::find(self.dialect, &name),
        };
        let Some(known) = known else {
            if self.file.is_some() {
                self.given.push((name, value));
                return Ok(());
            }
            if self.dialect == Dialect::Old {
                let what = format!("--{name} is for a script of its own; nothing here reads it");
                self.notes.push(what);
                return Ok(());
            }
            return Err(format!("invalid option: --{name}; see --help"));
        };
        let value = match (value, known.kind) {
            (Some(value), _) => value,
            (None, Kind::Bool) => "on".to_owned(),
            (None, Kind::Text) if name == "forced-shutdown" => "auto".to_owned(),
            (None, _) => return Err(format!("--{name} needs a value: --{name}=...")),
        };
        let value = check(known.kind, &value)
            .ok_or_else(|| format!("--{name}: '{value}' is not {}", words_for(known.kind)))?;
        if known.fate == Fate::Ignored && self.file.is_none() {
            return Ok(());
        }
        self.values.insert(name, value);
        Ok(())
    }

    /// The value of an option, or its default.
    pub(super) fn value(&self, name: &str) -> &str {
        let default = || known::find(self.dialect, name).map_or("", |known| known.default);
        self.values.get(name).map_or_else(default, String::as_str)
    }

    /// The workload of the script's name.
    pub(super) fn workload(&self) -> Option<Workload> {
        workload_named(stem(self.script.as_deref()?))
    }
}

/// The workload that is sysbench's script of this name.
fn workload_named(name: &str) -> Option<Workload> {
    let workload = Workload::from_str(name, false).ok();
    workload.filter(|workload| !workload.is_interactive())
}

pub(super) const FORM: &str = "[--option=value]... SCRIPT COMMAND";

/// Folders in which sysbench's own scripts are installed.
const FOLDERS: [&str; 3] = [".", "/usr/local/share/sysbench", "/usr/share/sysbench"];

/// The file that a script's name means; `None` where a workload of ours has that name, and no
/// file is named.
fn file_of(script: &str) -> Option<String> {
    if script.contains('/') || script.ends_with(".lua") {
        return Path::new(script).is_file().then(|| script.to_owned());
    }
    if workload_named(script).is_some() {
        return None;
    }
    let found = FOLDERS
        .iter()
        .map(|folder| format!("{folder}/{script}.lua"));
    found.into_iter().find(|path| Path::new(path).is_file())
}

/// The last part of a path, without `.lua`.
fn stem(script: &str) -> &str {
    let name = script.rsplit('/').next().unwrap_or(script);
    name.strip_suffix(".lua").unwrap_or(name)
}

/// `--test` with a script that only 1.0 has is 1.0's.
fn dialect_of(script: &str) -> Dialect {
    let name = stem(script);
    let is_new = name.starts_with("oltp_") && name != "oltp_simple";
    if is_new { Dialect::New } else { Dialect::Old }
}

fn take_option(
    option: &str,
    given: &mut Vec<(String, Option<String>)>,
    files: usize,
) -> Result<(), String> {
    let (name, value) = match option.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (option, None),
    };
    let name = name.replace('_', "-");
    if name != "config-file" {
        given.push((name, value));
        return Ok(());
    }
    let path = value.ok_or("--config-file needs a file's name")?;
    if files == 0 {
        return Err(format!(
            "{path}: configuration files name each other without end"
        ));
    }
    let text = std::fs::read_to_string(&path)
        .map_err(|error| format!("cannot read the configuration file {path}: {error}"))?;
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let (name, value) = line.split_once('=').unwrap_or((line, "on"));
        let option = format!("{}={}", name.trim().trim_start_matches("--"), value.trim());
        take_option(&option, given, files - 1)?;
    }
    Ok(())
}

/// The value in the form that `onramp load` takes; `None` where it is not of its kind.
fn check(kind: Kind, value: &str) -> Option<String> {
    match kind {
        Kind::Bool => match value {
            "on" | "true" | "1" => Some("on".to_owned()),
            "off" | "false" | "0" => Some("off".to_owned()),
            _ => None,
        },
        Kind::Int => value.parse::<i32>().ok().map(|number| number.to_string()),
        Kind::Size => size(value).map(|bytes| bytes.to_string()),
        Kind::Double => {
            let number: f64 = value.parse().ok()?;
            number.is_finite().then(|| number.to_string())
        }
        Kind::Text | Kind::List => Some(value.to_owned()),
    }
}

fn words_for(kind: Kind) -> &'static str {
    match kind {
        Kind::Bool => "on or off",
        Kind::Int => "a whole number of 32 bits",
        Kind::Size => "a size, as in 64K",
        Kind::Double => "a number",
        Kind::Text | Kind::List => "a text",
    }
}
