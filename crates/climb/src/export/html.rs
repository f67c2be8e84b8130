//! The page's words and numbers: from evidence to what the template shows.
//!
//! The page must stand on any evidence: one rung, a path that held nothing, no rows at all. So each
//! part is built from what is there: charts skip missing figures, tiles are made for the rung that
//! the headline speaks of, and what is empty is left out by the template. The order of paths and
//! their colours are the same everywhere.

use std::fs;
use std::path::Path as FilePath;

use anyhow::{Context, Result};
use askama::Template;

use super::chart::{Axis, Chart, Cross, Line, Point};
use crate::evidence::Evidence;
use crate::format::{ABSENT, bytes, figure, or_absent, ratio, seconds, thousands, times, whole};
use crate::ladder::Path;
use crate::row::Row;
use crate::{headline, table};
use headline::Place;

/// A figure of a row, if it has it.
type Value = fn(&Row) -> Option<f64>;

/// Above this an unfairness is drawn in decades, or the small ones could not be told apart.
const FAIRNESS_LINEAR_MAX: f64 = 12.0;

/// Writes `climb.html`.
pub(crate) fn write(evidence: &Evidence, file: &FilePath) -> Result<()> {
    let page = render(evidence)?;
    fs::write(file, page).with_context(|| format!("cannot write {}", file.display()))
}

#[derive(Template)]
#[template(path = "page.html")]
struct Page<'a> {
    evidence: &'a Evidence,
    title: String,
    /// The headline's number of connections, and what it says of them.
    headline: (&'a str, &'a str),
    tiles: Vec<Tile>,
    steps: Vec<StepView>,
    failures: Vec<(String, String)>,
    facts: Vec<(&'static str, String)>,
    has_ratio: bool,
    /// Unit of what paths are compared by.
    unit: &'static str,
}

/// One ladder: its charts and its rows.
struct StepView {
    name: String,
    figures: Vec<Figure>,
    rungs: Vec<Rung>,
}

/// A path on the headline's rung.
struct Tile {
    path: String,
    rate: String,
    p99: String,
    fairness: String,
    failed: String,
    limit: String,
}

/// A chart with its words.
struct Figure {
    title: &'static str,
    note: &'static str,
    svg: String,
}

/// The rows of one rung.
struct Rung {
    connections: String,
    rows: Vec<RowView>,
}

struct RowView {
    path: String,
    /// Statements/s, ratio, p50, p95, p99, p99/mean, failed statements and connects, connect s,
    /// pool's memory, CPU of server and proxy.
    cells: Vec<String>,
    has_figures: bool,
    limit: String,
}

/// The page as text.
fn render(evidence: &Evidence) -> Result<String> {
    let (rows, place) = (&evidence.rows, evidence.settings.place);
    let mut rungs: Vec<u32> = rows.iter().map(|row| row.connections).collect();
    rungs.sort_unstable();
    rungs.dedup();
    let page = Page {
        evidence,
        title: title(evidence, &rungs),
        headline: match &evidence.settings.scenario {
            Some(scenario) => (scenario, &evidence.headline),
            None => evidence
                .headline
                .split_once(": ")
                .unwrap_or((&evidence.headline, "")),
        },
        tiles: if evidence.settings.scenario.is_none() {
            tiles(rows, place)
        } else {
            Vec::new()
        },
        steps: headline::by_step(rows)
            .into_iter()
            .map(|step| step_view(step, place))
            .collect(),
        failures: failures(rows),
        facts: facts(evidence),
        has_ratio: rows
            .iter()
            .any(|row| other_ratio(row, rows, place).is_some()),
        unit: place.unit(),
    };
    page.render().context("the page does not render")
}

fn step_view((name, rows): (&str, &[Row]), place: Place) -> StepView {
    let mut rungs: Vec<u32> = rows.iter().map(|row| row.connections).collect();
    rungs.sort_unstable();
    rungs.dedup();
    StepView {
        name: name.to_owned(),
        figures: figures(rows, &rungs, place),
        rungs: rungs
            .iter()
            .map(|rung| rung_view(*rung, rows, place))
            .collect(),
    }
}

fn title(evidence: &Evidence, rungs: &[u32]) -> String {
    let settings = &evidence.settings;
    let workload = settings.scenario.as_ref().unwrap_or(&settings.workload);
    let workload = match settings.prepared {
        true => format!("{workload}, prepared,"),
        false => workload.clone(),
    };
    match rungs {
        [] => format!("{workload}: no rung yet"),
        [only] => format!("{workload} on {} connections", thousands(u64::from(*only))),
        [first, .., last] => format!(
            "{workload} on {} to {} connections",
            thousands(u64::from(*first)),
            thousands(u64::from(*last))
        ),
    }
}

fn tiles(rows: &[Row], place: Place) -> Vec<Tile> {
    let top = headline::top_rung(rows);
    let of_top = rows.iter().filter(|row| Some(row.connections) == top);
    let tile = |row: &Row| Tile {
        path: row.path.clone(),
        rate: or_absent(place.rate(row), whole),
        p99: or_absent(row.p99_ms, figure),
        fairness: or_absent(row.p99_over_mean, ratio),
        failed: row.failed().map_or_else(|| ABSENT.to_owned(), thousands),
        limit: row.limit.clone().unwrap_or_default(),
    };
    of_top.map(tile).collect()
}

/// Onramp's rate over this path's; nothing for onramp itself.
fn other_ratio(row: &Row, rows: &[Row], place: Place) -> Option<f64> {
    (row.path() != Some(Path::Onramp))
        .then(|| headline::ratio_to_onramp(row, rows, place))
        .flatten()
}

fn rung_view(rung: u32, rows: &[Row], place: Place) -> Rung {
    let of_rung = rows.iter().filter(|row| row.connections == rung);
    let count = |value: Option<u64>| value.map_or_else(|| ABSENT.to_owned(), thousands);
    let view = |row: &Row| RowView {
        path: row.path.clone(),
        cells: vec![
            or_absent(row.statements_per_s, whole),
            or_absent(other_ratio(row, rows, place), times),
            or_absent(row.p50_ms, figure),
            or_absent(row.p95_ms, figure),
            or_absent(row.p99_ms, figure),
            or_absent(row.p99_over_mean, ratio),
            count(row.failed_statements),
            count(row.failed_connects),
            or_absent(row.connect_s, seconds),
            or_absent(row.holder_bytes_per_client(), bytes),
            or_absent(row.server_us_per_statement, figure),
            or_absent(row.pool_us_per_statement, figure),
        ],
        has_figures: row.has_figures(),
        limit: row.limit.clone().unwrap_or_default(),
    };
    Rung {
        connections: thousands(u64::from(rung)),
        rows: of_rung.map(view).collect(),
    }
}

fn failures(rows: &[Row]) -> Vec<(String, String)> {
    let mut failures = Vec::new();
    for row in rows {
        let place = format!("{} at {}", row.path, thousands(u64::from(row.connections)));
        for error in row.errors.iter().filter(|error| error.count > 0) {
            failures.push((place.clone(), table::of_error(error)));
        }
    }
    failures
}

fn facts(evidence: &Evidence) -> Vec<(&'static str, String)> {
    let (host, settings) = (&evidence.host, &evidence.settings);
    let commit = host
        .onramp_commit
        .as_ref()
        .map(|commit| format!(" ({commit})"));
    let place = settings.target.clone();
    let place = place.unwrap_or_else(|| "private, on the same machine".to_owned());
    let (tables, rows) = (settings.tables, thousands(u64::from(settings.table_size)));
    let mut facts = vec![
        ("Date", host.date.replace('T', " ").replace('Z', " UTC")),
        (
            "Onramp",
            format!("{}{}", host.onramp_version, commit.unwrap_or_default()),
        ),
        ("Server", format!("{}, {place}", host.server)),
        ("Peers", host.peers.join("; ")),
        ("Processor", format!("{} x {}", host.cpus, host.cpu_model)),
        ("Memory", bytes(host.memory_bytes as f64)),
        ("Kernel", host.kernel.clone()),
        ("Descriptors per process", thousands(host.nofile_hard)),
        ("Workload", settings.workload.clone()),
        (
            "Statements",
            match settings.prepared {
                true => "prepared, by the binary protocol".to_owned(),
                false => "text".to_owned(),
            },
        ),
        ("Tables", format!("{tables} of {rows} rows")),
        (
            "Each cell",
            format!(
                "{} s warm-up, {} s measured",
                settings.warmup_s, settings.time_s
            ),
        ),
    ];
    facts.retain(|(_, value)| !value.is_empty());
    if let Some(cpus) = &settings.cpus {
        facts.push(("Processors by part", cpus.clone()));
    }
    for (name, arguments) in [
        ("Pool's arguments", &settings.pool_args),
        ("Load's arguments", &settings.load_args),
        ("Server's arguments", &settings.server_args),
    ] {
        if !arguments.is_empty() {
            facts.push((name, arguments.join(" ")));
        }
    }
    facts
}

fn figures(rows: &[Row], rungs: &[u32], place: Place) -> Vec<Figure> {
    if !rows.iter().any(Row::has_figures) {
        return Vec::new();
    }
    let mut figures = vec![
        throughput(rows, rungs),
        latency(rows, rungs),
        fairness(rows, rungs),
        memory(rows, rungs),
    ];
    if place == Place::Apart {
        figures.insert(0, by_server_cpu(rows, rungs));
    }
    if rows.iter().any(Row::is_storm) {
        figures.insert(0, goodput(rows, rungs));
    }
    if rows
        .iter()
        .any(|row| row.is_mixed() && !row.is_transaction())
    {
        figures.insert(0, first_statement(rows, rungs));
    } else if rows.iter().any(Row::has_long_events) {
        figures.push(events(rows, rungs));
    }
    figures
}

/// A chart of amounts, one for each path, that starts at 0.
fn amounts<'a>(name: &'a str, unit: &'a str, rungs: &'a [u32], lines: Vec<Line>) -> Chart<'a> {
    Chart {
        name,
        unit,
        axis: Axis::Linear,
        rungs,
        lines,
        crosses: Vec::new(),
        reference: None,
        write_tick: whole,
        write_value: whole,
    }
}

/// A chart of latencies: each path's p99, and a bar down to its p50.
fn latencies<'a>(name: &'a str, rungs: &'a [u32], lines: Vec<Line>) -> Chart<'a> {
    Chart {
        axis: Axis::Decades,
        write_tick: milliseconds,
        write_value: milliseconds,
        ..amounts(name, "latency: p99, and down to p50", rungs, lines)
    }
}

/// A chart with its words.
fn drawn(title: &'static str, note: &'static str, chart: Chart<'_>) -> Figure {
    let svg = chart.svg();
    Figure { title, note, svg }
}

fn throughput(rows: &[Row], rungs: &[u32]) -> Figure {
    let lost = rows.iter().filter(|row| !row.has_figures());
    let cross = |row: &Row| {
        let limit = row.limit.clone().unwrap_or_default();
        Some(Cross {
            path: row.path()?,
            connections: f64::from(row.connections),
            limit,
        })
    };
    let name = "Statements per second over the number of connections, a line per path";
    let lines = lines(rows, |row| row.statements_per_s, |_| None);
    let chart = Chart {
        crosses: lost.filter_map(cross).collect(),
        ..amounts(name, "statements/s", rungs, lines)
    };
    let note = if chart.crosses.is_empty() {
        "Flat is good: more connections should not make the server do less."
    } else {
        "Flat is good: more connections should not make the server do less. A cross marks a path \
         without figures; the table says why."
    };
    drawn("Throughput", note, chart)
}

fn by_server_cpu(rows: &[Row], rungs: &[u32]) -> Figure {
    let name = "Statements for each second of the server's CPU, a line per path";
    let lines = lines(rows, |row| row.statements_per_server_cpu_s, |_| None);
    let note = "What the path lets the server do with its own processors. What the path itself \
                uses is in the table; connecting is left out of both.";
    let chart = amounts(name, "statements by CPU-second", rungs, lines);
    drawn("The server's work", note, chart)
}

fn goodput(rows: &[Row], rungs: &[u32]) -> Figure {
    let name = "Statements answered in time, per second, over the number of clients";
    let lines = lines(rows, |row| row.goodput_per_s, |_| None);
    let note = "What is answered before its client loses patience, hangs up and asks again. A line \
                that falls is an outage: the work goes on, for nobody.";
    let chart = amounts(name, "statements/s in time", rungs, lines);
    drawn("Goodput", note, chart)
}

fn first_statement(rows: &[Row], rungs: &[u32]) -> Figure {
    let name = "Latency of the script's first statement, from p50 to p99 per path";
    let lines = lines(
        rows,
        |row| row.by_statement.first().map(|of| of.latency.p99_ms),
        |row| row.by_statement.first().map(|of| of.latency.p50_ms),
    );
    let note = "The statement that most of the script is. What the others cost it shows here.";
    drawn("The first statement", note, latencies(name, rungs, lines))
}

fn events(rows: &[Row], rungs: &[u32]) -> Figure {
    let name = "Latency of whole events, from p50 to p99 per path";
    let lines = lines(
        rows,
        |row| row.event.map(|event| event.p99_ms),
        |row| row.event.map(|event| event.p50_ms),
    );
    let note = "From an event's first statement to its last reply. While it lasts it holds its \
                locks, so what makes it long makes others long.";
    drawn("Transactions", note, latencies(name, rungs, lines))
}

fn latency(rows: &[Row], rungs: &[u32]) -> Figure {
    let name = "Latency of a statement over the number of connections, from p50 to p99 per path";
    let lines = lines(rows, |row| row.p99_ms, |row| row.p50_ms);
    let note = "The line is p99; the bar hangs down from it to p50. With every connection \
                executing, latency must rise with their number. A short bar means that all \
                wait alike.";
    drawn("Latency", note, latencies(name, rungs, lines))
}

fn fairness(rows: &[Row], rungs: &[u32]) -> Figure {
    let name = "p99 latency over mean latency, over the number of connections, a line per path";
    let lines = lines(rows, |row| row.p99_over_mean, |_| None);
    let most = rows
        .iter()
        .filter_map(|row| row.p99_over_mean)
        .fold(0.0, f64::max);
    let chart = Chart {
        axis: if most > FAIRNESS_LINEAR_MAX {
            Axis::Decades
        } else {
            Axis::Linear
        },
        reference: Some((1.0, "1 = everybody waits equally long")),
        write_tick: plain,
        write_value: ratio,
        ..amounts(name, "p99 / mean", rungs, lines)
    };
    let note = "How much longer the slowest hundredth of statements takes than the average one.";
    drawn("Fairness", note, chart)
}

fn memory(rows: &[Row], rungs: &[u32]) -> Figure {
    let name = "Memory per client over the number of connections, a line per path";
    let lines = lines(rows, Row::holder_bytes_per_client, |_| None);
    let chart = Chart {
        axis: Axis::PowersOfFour,
        write_tick: whole_bytes,
        write_value: bytes,
        ..amounts(name, "memory per client", rungs, lines)
    };
    let note = "What one more client costs the process that holds it: the proxy, or the \
                server otherwise. On low rungs the process's own growth weighs most.";
    drawn("Memory", note, chart)
}

/// A line per path that has this figure anywhere, with bars down to another figure if there is one.
fn lines(rows: &[Row], value: Value, foot: Value) -> Vec<Line> {
    let line = |path: Path| {
        let of_path = rows.iter().filter(|row| row.path() == Some(path));
        let point = |row: &Row| {
            let connections = f64::from(row.connections);
            Some(Point {
                connections,
                value: value(row)?,
                foot: foot(row),
            })
        };
        let mut points: Vec<_> = of_path.filter_map(point).collect();
        points.sort_by(|a, b| a.connections.total_cmp(&b.connections));
        Line { path, points }
    };
    Path::ALL
        .map(line)
        .into_iter()
        .filter(|line| !line.points.is_empty())
        .collect()
}

/// Milliseconds below a second, seconds above.
fn milliseconds(value: f64) -> String {
    if value < 999.5 {
        format!("{} ms", plain(value))
    } else {
        format!("{} s", plain(value / 1e3))
    }
}

/// Figure of at most three digits, without zeros that say nothing.
fn plain(value: f64) -> String {
    let text = figure(value);
    if !text.contains('.') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn whole_bytes(value: f64) -> String {
    bytes(value).replace(".00 ", " ").replace(".0 ", " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    /// Checks that hold for every page, whatever its rows.
    fn checked(evidence: &Evidence) -> String {
        let page = render(evidence).unwrap();
        for word in ["NaN", "inf<", ">None", "Some("] {
            assert!(!page.contains(word), "{word}");
        }
        let charts = if evidence.rows.iter().any(Row::has_figures) {
            4
        } else {
            0
        };
        assert_eq!(page.matches("<svg").count(), charts);
        assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
        assert!(
            !page.contains("<script") && !page.contains("http"),
            "the page stands alone"
        );
        page
    }

    #[test]
    fn a_full_climb_is_all_there() {
        let page = checked(&samples::evidence());
        for words in [
            "oltp_point_select on 100 to 100,000 connections",
            "13,921",
            "1.42 x",
            "not tried: the server would need 100,500 file descriptors",
            "Lost connection to server during query",
            "onramp climb --rungs 100,1000,10000,100000",
            "24.0 GiB",
        ] {
            assert!(page.contains(words), "{words}");
        }
    }

    #[test]
    fn a_server_on_its_own_processors_is_compared_by_its_cpu_time() {
        let mut evidence = samples::evidence();
        for row in evidence.rows.iter_mut().filter(|row| row.has_figures()) {
            row.take_cpu([Some(20e-6), Some(12.34e-6), None]);
        }
        let page = checked(&evidence);
        assert!(page.contains("<td>20.0</td><td>12.3</td>"), "{page}");
        assert!(page.contains("<small>statements/s</small>"), "{page}");
        evidence.settings.place = Place::Apart;
        evidence.settings.cpus = Some("server=0,pool=1,load=1".to_owned());
        let page = render(&evidence).unwrap();
        for words in [
            "50,000 <small>statements by CPU-second of the server</small>",
            "<td>1.00 x</td>",
            "<h3>The server&#39;s work</h3>",
            "<dd>server=0,pool=1,load=1</dd>",
        ] {
            assert!(page.contains(words), "{words}: {page}");
        }
    }

    #[test]
    fn one_rung_one_path_and_nothing_are_pages_too() {
        let all = samples::evidence();
        let only = |wanted: &dyn Fn(&Row) -> bool| {
            let mut evidence = samples::empty();
            all.rows
                .iter()
                .filter(|row| wanted(row))
                .for_each(|row| evidence.push(row.clone()));
            evidence
        };
        checked(&only(&|row| row.connections == 10_000));
        checked(&only(&|row| row.path == "onramp"));
        checked(&only(&|row| {
            row.path == "direct" && row.connections == 100_000
        }));
        let page = checked(&only(&|_| false));
        assert!(page.contains("No path held a rung."));
    }

    #[test]
    fn figures_that_are_missing_are_dashes() {
        let mut evidence = samples::evidence();
        for row in &mut evidence.rows {
            (row.mean_ms, row.p99_over_mean, row.connect_s) = (None, Some(f64::NAN), None);
            row.pool_bytes_per_client = None;
            row.server_bytes_per_client = None;
        }
        assert!(checked(&evidence).contains("no figures for this chart"));
    }

    #[test]
    fn names_from_outside_cannot_break_the_page() {
        let mut evidence = samples::evidence();
        evidence.host.server = "<b>&\"x".to_owned();
        evidence.rows[9].limit = Some("<i>\"no\"".to_owned());
        let page = render(&evidence).unwrap();
        assert!(!page.contains("<b>&") && !page.contains("<i>\"no"));
    }

    #[test]
    #[ignore = "writes pages to look at in a browser"]
    fn sample_pages() {
        let all = samples::evidence();
        let write_only = |name: &str, wanted: &dyn Fn(&Row) -> bool| {
            let mut evidence = samples::empty();
            all.rows
                .iter()
                .filter(|row| wanted(row))
                .for_each(|row| evidence.push(row.clone()));
            evidence.finished = true;
            write(
                &evidence,
                &std::env::temp_dir().join(format!("climb-{name}.html")),
            )
            .unwrap();
        };
        write_only("full", &|_| true);
        write_only("default", &|row| row.connections <= 10_000);
        write_only("one-rung", &|row| row.connections == 10_000);
        write_only("one-cell", &|row| {
            row.connections == 100_000 && row.path == "onramp"
        });
        write_only("no-figures", &|row| {
            row.connections == 100_000 && row.path == "direct"
        });
    }
}
