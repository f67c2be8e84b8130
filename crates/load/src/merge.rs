//! `onramp merge`: results of several machines as one.
//!
//! A test that needs more than one generator runs `onramp load ... --json FILE` on each, at the
//! same time, and merges the files. Counts and histograms are added, so percentiles are those of
//! all statements, as if one machine had sent them; rates are added as each machine measured its
//! own.
//!
//! Invariant: figures of the whole run are never averages of the machines'. The files have no
//! histograms of single seconds, so a second's percentiles are the largest of the machines', which
//! is said in the result, and its mean is weighted by each machine's statements per second.

use crate::output;
use crate::output_options::OutputArgs;
use crate::recorded::{Histograms, Recorded};
use crate::summary::{Latencies, OfStatement, Summary};
use clap::Args;
use load_core::errors::ErrorTable;
use load_core::series::Point;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Merge results of onramp load --json from several machines into one
///
/// Counts and histograms are added, so percentiles are exact. The result goes to stdout for people,
/// and to the files that are named. docs/load.md says how to start several machines at once.
#[derive(Args, Clone, Debug)]
pub struct MergeArgs {
    /// Files that onramp load --json wrote, at least one
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Write the merged result to this file, as JSON, which can be merged again
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Write a row for every second to this file
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    /// Write the merged result to this file, as a page with charts
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Merges what `args` say. The status is 0 when it is done, 1 when a file cannot be used.
#[must_use]
pub fn run(args: &MergeArgs) -> ExitCode {
    match merge_files(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            aside!("onramp merge: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn merge_files(args: &MergeArgs) -> Result<(), String> {
    let runs = args
        .files
        .iter()
        .map(|path| Ok((path.as_path(), read(path)?)))
        .collect::<Result<Vec<_>, String>>()?;
    let outputs = OutputArgs {
        json: args.json.clone(),
        csv: args.csv.clone(),
        html: args.html.clone(),
        ..OutputArgs::nowhere()
    };
    outputs.check()?;
    let merged = merge(runs)?;
    output::write_files(&outputs, &merged)?;
    let mut stdout = std::io::stdout().lock();
    // Whoever reads it may have gone.
    let _ = stdout.write_all(merged.merged_text(args.files.len()).as_bytes());
    Ok(())
}

fn read(path: &Path) -> Result<Summary, String> {
    let wrong = |error: String| format!("{}: {error}", path.display());
    let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| {
        wrong(format!(
            "expected what `onramp load --json` of this version writes: {error}"
        ))
    })
}

/// All runs as one.
///
/// # Errors
/// A sentence that names the file that does not go with the others.
fn merge(runs: Vec<(&Path, Summary)>) -> Result<Summary, String> {
    let mut runs = runs.into_iter();
    let (_, mut all) = runs.next().ok_or("no file is named")?;
    let mut machines = 1;
    for (path, run) in runs {
        machines += 1;
        add(&mut all, run).map_err(|reason| format!("{}: {reason}", path.display()))?;
    }
    settle(&mut all)?;
    if machines > 1 {
        all.warnings.push(
            "percentiles of single seconds are the largest of the machines': only those of the \
             whole run are merged exactly"
                .to_owned(),
        );
    }
    Ok(all)
}

fn add(all: &mut Summary, run: Summary) -> Result<(), String> {
    if run.workload != all.workload {
        return Err(format!(
            "it ran {}, and the first one {}; runs of different workloads have no common figures",
            run.workload, all.workload
        ));
    }
    if run.proof().is_some() {
        return Err("a proof is of one machine: its clients are all that may write".to_owned());
    }
    if run.in_time_ms != all.in_time_ms {
        return Err("its --in-time is not that of the first one".to_owned());
    }
    for (sum, part) in [
        (&mut all.connected, run.connected),
        (&mut all.statements, run.statements),
        (&mut all.failed_statements, run.failed_statements),
        (&mut all.failed_connects, run.failed_connects),
        (&mut all.load_rss_bytes, run.load_rss_bytes),
        (&mut all.ignored_errors, run.ignored_errors),
        (&mut all.lost_connections, run.lost_connections),
        (&mut all.reconnects, run.reconnects),
        (&mut all.drained_statements, run.drained_statements),
        (&mut all.unfinished_statements, run.unfinished_statements),
        (&mut all.gave_up, run.gave_up),
        (&mut all.shed, run.shed),
        (&mut all.expired, run.expired),
        (&mut all.waiting, run.waiting),
        (&mut all.retired_connections, run.retired_connections),
        (&mut all.arrived, run.arrived),
    ] {
        *sum += part;
    }
    for (sum, part) in [
        (&mut all.statements_per_s, run.statements_per_s),
        (&mut all.events_per_s, run.events_per_s),
        (&mut all.load_cpu_s, run.load_cpu_s),
        (&mut all.goodput_per_s, run.goodput_per_s),
        (&mut all.attempted_per_s, run.attempted_per_s),
        (&mut all.arrived_per_s, run.arrived_per_s),
    ] {
        *sum += part;
    }
    for (largest, one) in [
        (&mut all.connect_s, run.connect_s),
        (&mut all.duration_s, run.duration_s),
        (&mut all.load_cpu_share, run.load_cpu_share),
        (&mut all.load_busiest_share, run.load_busiest_share),
    ] {
        *largest = largest.max(one);
    }
    all.add_tpmc(&run);
    all.connections = all.connections.saturating_add(run.connections);
    all.groups = all.groups.saturating_add(run.groups);
    all.rss_bytes_per_connection = all
        .rss_bytes_per_connection
        .max(run.rss_bytes_per_connection);
    if run.target != all.target {
        all.target = format!("{}, {}", all.target, run.target);
    }
    all.limit = all.limit.take().or(run.limit);
    let mut errors = ErrorTable::default();
    errors.add_all(std::mem::take(&mut all.errors));
    errors.add_all(run.errors);
    all.errors = errors.sorted();
    all.thresholds.extend(run.thresholds);
    for warning in run.warnings {
        if !all.warnings.contains(&warning) {
            all.warnings.push(warning);
        }
    }
    all.outage.merge(run.outage);
    add_series(&mut all.series, run.series);
    add_statements(all, run.by_statement.iter(), &run.histograms)?;
    add_histograms(&mut all.histograms, &run.histograms)
}

fn add_histograms(all: &mut Histograms, run: &Histograms) -> Result<(), String> {
    for (sum, part) in [
        (&mut all.statement, &run.statement),
        (&mut all.read, &run.read),
        (&mut all.write, &run.write),
        (&mut all.other, &run.other),
        (&mut all.event, &run.event),
        (&mut all.connect, &run.connect),
        (&mut all.reconnect, &run.reconnect),
        (&mut all.lag, &run.lag),
    ] {
        sum.merge(part)?;
    }
    Ok(())
}

/// Adds the statements of a run: they are the same where their texts are.
fn add_statements<'a>(
    all: &mut Summary,
    run: impl Iterator<Item = &'a OfStatement>,
    histograms: &Histograms,
) -> Result<(), String> {
    for (at, one) in run.enumerate() {
        let recorded = histograms.by_statement.get(at);
        let recorded = recorded.ok_or("it lacks a histogram of a statement")?;
        let known = all
            .by_statement
            .iter()
            .position(|known| known.statement == one.statement);
        match known {
            Some(known) => match all.histograms.by_statement.get_mut(known) {
                Some(sum) => sum.merge(recorded)?,
                None => return Err("the first file lacks a histogram of a statement".to_owned()),
            },
            None => {
                all.by_statement.push(one.clone());
                all.histograms.by_statement.push(recorded.clone());
            }
        }
    }
    Ok(())
}

/// Computes the fields that follow from the histograms.
fn settle(all: &mut Summary) -> Result<(), String> {
    let histograms = &all.histograms;
    all.latencies = Latencies {
        statement: histograms.statement.latency()?,
        read: histograms.read.latency()?,
        write: histograms.write.latency()?,
        other: histograms.other.latency()?,
        event: histograms.event.latency()?,
        connect: histograms.connect.latency()?,
        reconnect: histograms.reconnect.latency()?,
        lag: histograms.lag.latency()?,
    };
    let statement = all.latencies.statement;
    all.mean_ms = statement.mean_ms;
    all.p50_ms = statement.p50_ms;
    all.p95_ms = statement.p95_ms;
    all.p99_ms = statement.p99_ms;
    all.p999_ms = statement.p999_ms;
    all.max_ms = statement.max_ms;
    let recorded = histograms.by_statement.iter().map(Recorded::latency);
    for (one, latency) in all.by_statement.iter_mut().zip(recorded) {
        one.latency = latency?;
    }
    Ok(())
}

/// Adds the series of a run: seconds are those since each machine's own start.
fn add_series(all: &mut Vec<Point>, run: Vec<Point>) {
    for (at, point) in run.into_iter().enumerate() {
        match all.get_mut(at) {
            Some(sum) => sum.merge(&point),
            None => all.push(point),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::{Measured, tests::summary};
    use load_core::errors::Fault;
    use load_core::stats::Class;
    use std::time::Duration;

    fn measured(latencies: std::ops::Range<u64>, seconds: f64) -> Measured {
        let mut measured = Measured {
            connected: 2,
            seconds,
            ..Measured::default()
        };
        for ms in latencies {
            let window = &mut measured.window;
            window.succeeded(Class::Read, Duration::from_millis(ms), None);
        }
        measured
            .window
            .failed(Fault::ended("during a statement"), false, None);
        measured.series.push(Point {
            t_s: 1.0,
            statements_per_s: 10.0,
            p99_ms: seconds,
            ..Point::default()
        });
        measured
    }

    #[test]
    fn counts_are_added_and_percentiles_are_those_of_all() {
        let (a, b) = (measured(1..11, 10.0), measured(100..190, 5.0));
        let merged = merge(vec![
            (Path::new("a"), summary(&a)),
            (Path::new("b"), summary(&b)),
        ])
        .unwrap();
        let mut both = measured(1..11, 10.0);
        both.window.merge(b.window);
        let one = summary(&both);
        assert_eq!(merged.latencies, one.latencies);
        assert_eq!((merged.p50_ms, merged.p99_ms), (one.p50_ms, one.p99_ms));
        assert_eq!(merged.statements_per_s, 1.0 + 18.0);
        assert_eq!((merged.connected, merged.duration_s), (4, 10.0));
        assert_eq!((merged.failed_statements, merged.errors[0].count), (2, 2));
        let point = merged.series[0];
        assert_eq!((point.statements_per_s, point.p99_ms), (20.0, 10.0));
    }

    #[test]
    fn what_was_written_can_be_read_and_merged_again() {
        let written = summary(&measured(1..50, 10.0)).json().unwrap();
        let read: Summary = serde_json::from_str(&written).unwrap();
        let merged = merge(vec![(Path::new("a"), read)]).unwrap();
        assert_eq!(merged.json().unwrap(), written);
    }

    #[test]
    fn different_workloads_are_refused() {
        let (a, mut b) = (summary(&measured(1..2, 1.0)), summary(&measured(1..2, 1.0)));
        b.workload = "another".to_owned();
        let refused = merge(vec![(Path::new("a"), a), (Path::new("b"), b)]).unwrap_err();
        assert!(refused.starts_with("b: it ran another"), "{refused}");
    }
}
