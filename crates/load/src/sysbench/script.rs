//! A line of sysbench about a script in a file: what the script is told of it.
//!
//! All options that are not a script's own reach it as values with types, under their names with
//! `_` and under older names, whether they have an effect here or not: scripts read them.

use super::known::{self, ALIASES, Kind};
use super::line::Line;
use load_core::program::{Distribution, Program, Setting, Shape, size};
use reactor::Time;

/// The script in `file`, with the options that all scripts have.
pub(super) fn program(line: &Line, file: &str, words: &[String]) -> Program {
    Program {
        path: file.to_owned(),
        command: line.command.clone(),
        argv: words.to_vec(),
        settings: settings(line),
        given: line.given.clone(),
        offered: Vec::new(),
        shape: shape(line),
        unique_from: u32::try_from(Time::now().0 & u64::from(u32::MAX)).unwrap_or(0),
    }
}

/// Each option by its name with `_`, and the older names besides.
fn settings(line: &Line) -> Vec<(String, Setting)> {
    let mut settings: Vec<(String, Setting)> = known::all_general(line.dialect)
        .map(|known| {
            let value = line.value(known.name);
            (known.name.replace('-', "_"), setting(known.kind, value))
        })
        .collect();
    for (old, new) in ALIASES {
        let new = new.replace('-', "_");
        let found = settings.iter().find(|(name, _)| *name == new);
        if let Some((_, value)) = found.cloned() {
            settings.push((old.replace('-', "_"), value));
        }
    }
    settings
}

fn setting(kind: Kind, value: &str) -> Setting {
    match kind {
        Kind::Bool => Setting::Bool(value == "on"),
        Kind::Int | Kind::Size | Kind::Double => match value.parse() {
            Ok(number) => Setting::Number(number),
            // A default with a unit.
            Err(_) => Setting::Number(size(value).unwrap_or(0) as f64),
        },
        Kind::Text => Setting::Text(value.to_owned()),
        Kind::List => {
            let parts = value.split(',').map(str::trim);
            let parts = parts.filter(|part| !part.is_empty());
            Setting::List(parts.map(str::to_owned).collect())
        }
    }
}

fn shape(line: &Line) -> Shape {
    let number = |name: &str, default: f64| line.value(name).parse().unwrap_or(default);
    Shape {
        kind: Distribution::from_name(line.value("rand-type")).unwrap_or_default(),
        iterations: line.value("rand-spec-iter").parse().unwrap_or(12),
        special_percent: number("rand-spec-pct", 1.0),
        special_share: number("rand-spec-res", 75.0),
        pareto_h: number("rand-pareto-h", 0.2),
        zipfian_exponent: number("rand-zipfian-exp", 0.8),
    }
}
