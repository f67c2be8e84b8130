//! The evidence of a climb: what `climb.json` holds, and what the table and the page are made of.
//!
//! The host, the settings, one [`Row`] for each cell, and the sentence that they come down to.

use std::fs;
use std::path::Path as FilePath;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::headline::Place;
use crate::ladder::Path;
use crate::machine::Machine;
use crate::options::Plan;
use crate::row::Row;
use crate::scenario::Step;
use crate::{headline, machine, peers, target};

/// All of `climb.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Evidence {
    pub(crate) headline: String,
    /// False if the climb was stopped before its last cell.
    pub(crate) finished: bool,
    pub(crate) host: Host,
    pub(crate) settings: Settings,
    pub(crate) rows: Vec<Row>,
}

/// Place, time and machine.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Host {
    pub(crate) date: String,
    pub(crate) command: String,
    pub(crate) onramp_version: String,
    pub(crate) onramp_commit: Option<String>,
    pub(crate) server: String,
    /// Versions of the peers that are paths, as they say them.
    pub(crate) peers: Vec<String>,
    pub(crate) cpus: u64,
    pub(crate) cpu_model: String,
    pub(crate) memory_bytes: u64,
    pub(crate) kernel: String,
    pub(crate) nofile_hard: u64,
    /// A sentence where this is not the machine of the published figures.
    pub(crate) unlike_published: Option<String>,
}

/// Settings of the run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Settings {
    pub(crate) workload: String,
    /// Statements were prepared and executed by the binary protocol.
    pub(crate) prepared: bool,
    pub(crate) tables: u32,
    pub(crate) table_size: u32,
    pub(crate) warmup_s: u32,
    pub(crate) time_s: u32,
    /// The user's server without its password; null is a private one.
    pub(crate) target: Option<String>,
    pub(crate) pool_args: Vec<String>,
    pub(crate) load_args: Vec<String>,
    pub(crate) server_args: Vec<String>,
    pub(crate) scenario: Option<String>,
    /// Processors by part, as `--cpus` has them.
    pub(crate) cpus: Option<String>,
    /// Place of the server, by which paths are compared.
    pub(crate) place: Place,
    /// Options of a scenario's steps.
    pub(crate) steps: Vec<StepArgs>,
}

/// One step of a scenario.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct StepArgs {
    pub(crate) name: String,
    pub(crate) workload: String,
    pub(crate) load_args: Vec<String>,
    pub(crate) pool_args: Vec<String>,
}

impl Evidence {
    pub(crate) fn new(plan: &Plan, steps: &[Step], machine: &Machine, server: String) -> Self {
        let raw = &plan.raw;
        let workloads: Vec<&str> = steps.iter().map(|s| &s.plan.raw.workload[..]).collect();
        let of_steps = steps.iter().map(|step| StepArgs {
            name: step.name.clone(),
            workload: step.plan.raw.workload.clone(),
            load_args: step.plan.raw.load_arg.clone(),
            pool_args: step.plan.raw.pool_arg.clone(),
        });
        Self {
            headline: headline::of(&[], Place::default()),
            finished: false,
            host: Host {
                peers: peers_of(steps),
                ..Host::of(machine, server)
            },
            settings: Settings {
                workload: distinct(workloads).join(", "),
                scenario: raw.scenario.map(|scenario| scenario.name().to_owned()),
                steps: of_steps.filter(|step| !step.name.is_empty()).collect(),
                prepared: raw.prepared,
                tables: raw.tables,
                table_size: raw.table_size,
                warmup_s: raw.warmup_time,
                time_s: raw.time,
                target: plan.target.as_ref().map(ToString::to_string),
                pool_args: raw.pool_arg.clone(),
                load_args: raw.load_arg.clone(),
                server_args: raw.server_arg.clone(),
                cpus: raw.cpus.as_ref().map(ToString::to_string),
                place: match &plan.target {
                    Some(_) => Place::Elsewhere,
                    None if plan.processors.server_is_apart() => Place::Apart,
                    None => Place::Shared,
                },
            },
            rows: Vec::new(),
        }
    }

    /// Adds a row, and updates what all of them show.
    pub(crate) fn push(&mut self, row: Row) {
        self.rows.push(row);
        self.headline = headline::of_steps(&self.rows, self.settings.place);
    }

    /// Writes `climb.json`.
    pub(crate) fn write_json(&self, file: &FilePath) -> Result<()> {
        let mut text = serde_json::to_string_pretty(self).context("the evidence is no JSON")?;
        text.push('\n');
        fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
    }
}

impl Host {
    pub(crate) fn of(machine: &Machine, server: String) -> Self {
        let arguments = std::env::args().skip(1);
        let arguments = std::iter::once("onramp".to_owned()).chain(arguments);
        Self {
            date: machine::now_utc(),
            command: target::shown_command(arguments),
            onramp_version: env!("CARGO_PKG_VERSION").to_owned(),
            onramp_commit: option_env!("ONRAMP_COMMIT").map(ToOwned::to_owned),
            server,
            peers: Vec::new(),
            cpus: machine.cpus,
            cpu_model: machine.cpu_model.clone(),
            memory_bytes: machine.memory_bytes,
            kernel: machine.kernel.clone(),
            nofile_hard: machine.nofile_hard,
            unlike_published: machine.unlike_published(),
        }
    }
}

/// Versions of the peers that are paths of any step.
fn peers_of(steps: &[Step]) -> Vec<String> {
    let is_path = |path: &Path| steps.iter().any(|step| step.plan.paths.contains(path));
    let paths = Path::ALL.into_iter().filter(is_path);
    paths
        .filter_map(peers::program)
        .filter_map(peers::version)
        .collect()
}

fn distinct(mut words: Vec<&str>) -> Vec<&str> {
    words.dedup();
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn the_names_in_the_file_are_those_that_were_promised() {
        let value = serde_json::to_value(samples::evidence()).unwrap();
        let host = value["host"].as_object().unwrap();
        for name in [
            "cpus",
            "cpu_model",
            "memory_bytes",
            "kernel",
            "nofile_hard",
            "server",
        ] {
            assert!(host.contains_key(name), "host.{name}");
        }
        for row in value["rows"].as_array().unwrap() {
            let row = row.as_object().unwrap();
            for name in [
                "path",
                "connections",
                "statements_per_s",
                "mean_ms",
                "p50_ms",
                "p95_ms",
                "p99_ms",
                "failed_statements",
                "failed_connects",
                "connect_s",
                "limit",
                "pool_rss_bytes",
                "load_rss_bytes",
                "kernel_bytes",
            ] {
                assert!(row.contains_key(name), "{name}");
            }
        }
    }

    #[test]
    fn evidence_reads_back() {
        let evidence = samples::evidence();
        let text = serde_json::to_string(&evidence).unwrap();
        let back: Evidence = serde_json::from_str(&text).unwrap();
        assert_eq!((&back.headline, back.finished), (&evidence.headline, true));
        let summary = |row: &Row| (row.path(), row.connections, row.failed(), row.limit.clone());
        let summaries = |rows: &[Row]| rows.iter().map(summary).collect::<Vec<_>>();
        assert_eq!(summaries(&back.rows), summaries(&evidence.rows));
    }
}
