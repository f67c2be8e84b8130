//! The walls, met for real: what `onramp doctor` forecasts is compared with what happens.
//!
//! Each test makes one limit small for a server of its own, in a way that harms nobody else (a
//! limit of one process, a control group, a namespace), asks the doctor how many connections it
//! allows and by what, and then connects until it ends. Forecast and count must agree within 2 %,
//! the limit must be the one that was made small, and `onramp explain` must know the error's words.
//!
//! A test that needs root says so and is skipped by name. With `ONRAMP_WALLS=1` the limits are also
//! met at their real size, which takes minutes and raises kernel.pid_max meanwhile.

mod crowd;
mod maps;
mod network;
mod ours;
mod server;
pub(crate) mod threads;

use crate::world::*;
use serde_json::Value;
use std::process::{Command, Stdio};

/// The doctor's word about connections straight to a server.
#[derive(Debug)]
pub(crate) struct Forecast {
    /// Number of connections.
    pub(crate) connections: u64,
    /// The check that bounds them.
    pub(crate) limited_by: String,
    /// Everything it said.
    pub(crate) answer: Value,
}

impl Forecast {
    /// The value that a check has found.
    pub(crate) fn have(&self, check: &str) -> u64 {
        let checks = self.answer["checks"].as_array().unwrap();
        let found = checks.iter().find(|one| one["name"] == check);
        let found = found.unwrap_or_else(|| panic!("no check {check}: {checks:?}"));
        found["have"]
            .as_u64()
            .unwrap_or_else(|| panic!("{check} has no number: {found}"))
    }

    /// Reads `onramp doctor --json --way direct`.
    pub(crate) fn of(json: &str) -> Forecast {
        Forecast::of_way("direct", json)
    }

    fn of_way(way: &str, json: &str) -> Forecast {
        let answer: Value =
            serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"));
        let connections = answer["connections_possible"][way].as_u64();
        Forecast {
            connections: connections.unwrap_or_else(|| panic!("no forecast: {answer}")),
            limited_by: answer["limited_by"][way].as_str().unwrap().to_owned(),
            answer,
        }
    }
}

/// Asks the doctor about the direct way, behind `prefix`: a program and its arguments.
pub(crate) fn doctor(prefix: &[&str], arguments: &[&str]) -> Forecast {
    doctor_about("direct", prefix, arguments)
}

/// The doctor's word about another way, as the doctor calls it.
pub(crate) fn doctor_about(way: &str, prefix: &[&str], arguments: &[&str]) -> Forecast {
    let binary = binary().to_str().unwrap();
    let line: Vec<&str> = prefix
        .iter()
        .copied()
        .chain([binary, "doctor", "--json", "--way", way])
        .chain(arguments.iter().copied())
        .collect();
    let output = Command::new(line[0])
        .args(&line[1..])
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("{line:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.stdout.is_empty(), "{line:?}: {said}");
    Forecast::of_way(way, &String::from_utf8_lossy(&output.stdout))
}

/// Holds a forecast against what happened.
pub(crate) fn compare(forecast: &Forecast, limit: &str, reached: u64) {
    let Forecast { connections, .. } = forecast;
    eprintln!("forecast {connections} by {limit}, reached {reached}");
    assert_eq!(forecast.limited_by, limit, "{:#}", forecast.answer);
    let is_near = connections.abs_diff(reached) * 50 <= reached;
    assert!(
        is_near,
        "forecast {connections}, reached {reached}: more than 2 % off"
    );
}

/// The names of the entries with which `onramp explain` explains a line.
pub(crate) fn explained(line: &str) -> Vec<String> {
    let ran = run(binary(), &["explain", "--json", line], LIMIT);
    let list: Value = serde_json::from_str(&ran.stdout).unwrap();
    let names = list.as_array().unwrap().iter();
    let name = |one: &Value| one["name"].as_str().unwrap_or("-").to_owned();
    names.map(name).collect()
}

/// A program in front of another one, for which this folder is a disk of its own, of a megabyte.
pub(crate) fn small_disk(folder: &str) -> [&str; 7] {
    const MOUNT: &str = r#"mount -t tmpfs -o size=1m none "$1" && shift && exec "$@""#;
    ["unshare", "--mount", "sh", "-c", MOUNT, "sh", folder]
}

/// True if this is root; a test that needs it is skipped, and says so.
pub(crate) fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output();
    let root = output.is_ok_and(|output| output.stdout == b"0\n");
    if !root {
        skip("it needs root");
    }
    root
}

/// True if the programs are there; a test that lacks one is skipped, and says so.
pub(crate) fn has(programs: &[&str]) -> bool {
    let missing = programs.iter().find(|program| {
        let found = Command::new("sh")
            .args(["-c", "command -v \"$0\"", program])
            .stdout(Stdio::null())
            .status();
        !found.is_ok_and(|status| status.success())
    });
    if let Some(program) = missing {
        skip(&format!("{program} is not installed"));
    }
    missing.is_none()
}

/// True if the limits are to be met at their real size too.
pub(crate) fn is_soak() -> bool {
    let asked = std::env::var_os("ONRAMP_WALLS").is_some();
    if !asked {
        skip("it takes long; ONRAMP_WALLS=1 runs it");
    }
    asked
}
