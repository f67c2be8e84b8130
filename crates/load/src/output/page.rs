//! The result as one page: what came out on top, the run over time, then every figure.
//!
//! One file with everything in it, drawn here; the little script in it only reads values out under
//! the pointer. It must stand on any result: no connection, no second, no statement that succeeded.
//! Charts and tables that have nothing to show are left out.

use super::chart::{Chart, Line, short};
use crate::proof::{Data, Verdict};
use crate::summary::Summary;
use askama::Template;
use load_core::latency::Latency;
use load_core::series::Point;
use measure::number::{separated, thousands};

/// More points than a chart has pixels only make the file larger.
const POINTS_MAX: usize = 800;

#[derive(Template)]
#[template(path = "page.html")]
struct Page<'a> {
    summary: &'a Summary,
    proof: Option<&'a Verdict>,
    headline: String,
    tiles: Vec<Tile>,
    figures: Vec<Figure>,
    kinds: Vec<(&'a str, Vec<String>)>,
    facts: Vec<(&'static str, String)>,
}

struct Tile {
    name: &'static str,
    value: String,
    unit: &'static str,
    note: String,
    is_bad: bool,
}

struct Figure {
    title: &'static str,
    note: &'static str,
    svg: String,
    /// Data that the script reads: times, and names with values.
    data: String,
}

/// The page's text.
///
/// # Errors
/// The template's error, which does not happen: writing to a string cannot fail.
pub(super) fn render(summary: &Summary) -> Result<String, String> {
    let page = Page {
        summary,
        proof: summary.proof(),
        headline: headline(summary),
        tiles: tiles(summary),
        figures: figures(summary),
        kinds: kinds(summary),
        facts: facts(summary),
    };
    page.render().map_err(|error| error.to_string())
}

fn headline(summary: &Summary) -> String {
    if summary.duration_s <= 0.0 {
        let limit = summary.limit.as_deref().unwrap_or("the run was stopped");
        return format!("It could not run: {limit}");
    }
    let later = summary.series.iter().map(|point| point.connected).max();
    format!(
        "{} connections ran {} for {:.0} s against {}",
        thousands(summary.connected.max(later.unwrap_or(0))),
        summary.workload,
        summary.duration_s,
        summary.target
    )
}

fn tiles(summary: &Summary) -> Vec<Tile> {
    if summary.duration_s <= 0.0 {
        return Vec::new();
    }
    let failed = summary.failed_statements + summary.gave_up;
    let share = failed as f64 / summary.statements.max(1) as f64 * 100.0;
    let [p50, max] = [summary.p50_ms, summary.max_ms].map(short);
    let mib = summary.load_rss_bytes as f64 / f64::from(1 << 20);
    let mut tiles = vec![
        Tile {
            name: "Throughput",
            value: separated(&format!("{:.0}", summary.statements_per_s)),
            unit: "statements/s",
            note: format!("{} events/s", short(summary.events_per_s)),
            is_bad: false,
        },
        Tile {
            name: "Latency, p99",
            value: short(summary.p99_ms),
            unit: "ms",
            note: format!("p50 {p50} ms, largest {max} ms"),
            is_bad: false,
        },
        Tile {
            name: "Failed",
            value: thousands(failed),
            unit: "statements",
            note: format!("{} % of {}", short(share), thousands(summary.statements)),
            is_bad: false,
        },
        Tile {
            name: "This generator",
            value: short(summary.load_cpu_share * 100.0),
            unit: "% of its cores",
            note: format!("{} MiB", short(mib)),
            is_bad: false,
        },
    ];
    if let Some(in_time) = summary.in_time_ms {
        let [in_time, attempted] = [in_time, summary.attempted_per_s].map(short);
        let tile = Tile {
            name: "Goodput",
            value: separated(&format!("{:.0}", summary.goodput_per_s)),
            unit: "statements/s",
            note: format!("within {in_time} ms, of {attempted} attempted/s"),
            is_bad: false,
        };
        tiles.insert(1, tile);
    }
    if let Some(tpmc) = summary.tpmc() {
        let tile = Tile {
            name: "TPC-C (tpmC)",
            value: separated(&format!("{tpmc:.0}")),
            unit: "new orders a minute",
            note: "committed; not a result by the specification".to_owned(),
            is_bad: false,
        };
        tiles.insert(0, tile);
    }
    if let Some(proof) = summary.proof() {
        tiles.insert(0, data(proof));
    }
    let outage = &summary.outage;
    if outage.began_s.is_some() {
        let (value, unit) = match outage.recovered_s {
            Some(after) => (format!("{after:.1}"), "s to 95 % of the rate"),
            None => ("-".to_owned(), "never at 95 % of the rate again"),
        };
        let seconds =
            |at: Option<f64>| at.map_or_else(|| "-".to_owned(), |at| format!("{at:.1} s"));
        tiles.push(Tile {
            name: "Outage",
            value,
            unit,
            note: format!(
                "{:.1} s without an answer; errors from {} to {}",
                outage.longest_gap_s,
                seconds(outage.first_error_s),
                seconds(outage.last_error_s)
            ),
            is_bad: false,
        });
    }
    tiles
}

/// Verdict on the data.
fn data(proof: &Verdict) -> Tile {
    let counts = [
        (proof.refused, "refused"),
        (proof.unanswered, "without an answer"),
        (proof.reads, "reads"),
    ];
    let counts = counts.map(|(count, name)| format!("{} {name}", thousands(count)));
    Tile {
        name: "The data are",
        value: proof.word().to_owned(),
        unit: "",
        note: format!(
            "{} writes acknowledged, {}",
            thousands(proof.acknowledged),
            counts.join(", ")
        ),
        is_bad: proof.data == Data::Wrong,
    }
}

type Value = fn(&Point) -> f64;
type Named = (&'static str, u8, Value);

fn figures(summary: &Summary) -> Vec<Figure> {
    let series = thinned(&summary.series);
    if series.is_empty() {
        return Vec::new();
    }
    let draw = |title, note, unit, named: &[Named]| figure(title, note, unit, &series, named);
    let mut figures = vec![
        draw(
            "Throughput",
            "Succeeded, in each second.",
            "per second",
            &rates(summary),
        ),
        draw(
            "Latency",
            "Of the statements that ended in each second.",
            "ms",
            &LATENCIES,
        ),
    ];
    let failures = failures(&series);
    if !failures.is_empty() {
        let note = "What went wrong, in each second.";
        figures.push(draw("Failures", note, "in the second", &failures));
    }
    if !summary.outage.steps.is_empty() {
        figures.push(outage(summary));
    }
    let note = "At the end of each second.";
    figures.push(draw(
        "Connections",
        note,
        "connections",
        &connections(&series),
    ));
    let note = "When it nears 100 %, the generator is the limit and not the server.";
    figures.push(draw(
        "The generator's own CPU",
        note,
        "% of its cores",
        &CPU,
    ));
    figures
}

const LATENCIES: [Named; 4] = [
    ("p50", 3, |p| p.p50_ms),
    ("p95", 1, |p| p.p95_ms),
    ("p99", 2, |p| p.p99_ms),
    ("max", 4, |p| p.max_ms),
];

const CPU: [Named; 1] = [("generator", 1, |p| p.cpu_share * 100.0)];

fn rates(summary: &Summary) -> Vec<Named> {
    let mut rates: Vec<Named> = vec![("statements", 1, |p| p.statements_per_s)];
    if summary.in_time_ms.is_some() {
        rates.push(("goodput", 3, |p| p.goodput_per_s));
    }
    if summary.arrived_per_s > 0.0 {
        rates.push(("arrivals", 2, |p| p.arrived_per_s));
    }
    rates
}

/// Counts of failures that are not all zero.
fn failures(series: &[Point]) -> Vec<Named> {
    let failures: [Named; 5] = [
        ("failed", 4, |p| p.failed as f64),
        ("gave up", 2, |p| p.gave_up as f64),
        ("shed", 5, |p| p.shed as f64),
        ("reconnects", 1, |p| p.reconnects as f64),
        ("no connect", 3, |p| p.failed_connects as f64),
    ];
    let was = |named: &Named| series.iter().any(|point| named.2(point) > 0.0);
    failures.into_iter().filter(was).collect()
}

fn connections(series: &[Point]) -> Vec<Named> {
    let mut connections: Vec<Named> = vec![
        ("open", 1, |p| p.connected as f64),
        ("executing", 2, |p| p.executing as f64),
    ];
    if series.iter().any(|point| point.waiting > 0) {
        connections.push(("in line", 4, |p| p.waiting as f64));
    }
    connections
}

fn figure(
    title: &'static str,
    note: &'static str,
    unit: &str,
    series: &[Point],
    named: &[Named],
) -> Figure {
    let times: Vec<f64> = series.iter().map(|point| point.t_s).collect();
    let lines = named.iter().map(|(name, colour, value)| Line {
        name,
        colour: *colour,
        values: series.iter().map(|point| rounded(value(point))).collect(),
    });
    drawn(title, note, unit, &times, lines.collect())
}

/// The steps around the outage. Its times begin at 0, as the chart's do.
fn outage(summary: &Summary) -> Figure {
    let steps = &summary.outage.steps;
    let from = steps.first().map_or(0.0, |step| step.t_s);
    let times: Vec<f64> = steps.iter().map(|step| rounded(step.t_s - from)).collect();
    let line = |name, colour, values| Line {
        name,
        colour,
        values,
    };
    let lines = vec![
        line(
            "answered",
            1,
            steps.iter().map(|step| step.answered.into()).collect(),
        ),
        line(
            "errors",
            4,
            steps.iter().map(|step| step.errors.into()).collect(),
        ),
    ];
    let note = "In each tenth of a second, from 3 s before it to 3 s after it.";
    drawn("The outage", note, "in 0.1 s", &times, lines)
}

fn drawn(
    title: &'static str,
    note: &'static str,
    unit: &str,
    times: &[f64],
    lines: Vec<Line>,
) -> Figure {
    let named: Vec<_> = lines.iter().map(|line| (line.name, &line.values)).collect();
    let data = serde_json::json!({ "t": times, "lines": named, "unit": unit }).to_string();
    let chart = Chart {
        name: title,
        unit,
        may_be_logarithmic: unit == "ms",
        times,
        lines,
    };
    Figure {
        title,
        note,
        svg: chart.svg(),
        data,
    }
}

/// Value with three decimals, more than a chart shows.
fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// Points, at most as many as a chart can show: of each stretch the middle one.
fn thinned(series: &[Point]) -> Vec<Point> {
    let stretch = series.len().div_ceil(POINTS_MAX).max(1);
    let middle = |chunk: &[Point]| chunk.get(chunk.len() / 2).copied();
    series.chunks(stretch).filter_map(middle).collect()
}

/// Rows of the table of latencies.
fn kinds(summary: &Summary) -> Vec<(&str, Vec<String>)> {
    let latencies = &summary.latencies;
    let statements = summary.by_statement.iter();
    [
        ("Statements", &latencies.statement),
        ("Reads", &latencies.read),
        ("Writes", &latencies.write),
        ("Others", &latencies.other),
        ("Events", &latencies.event),
        ("Connects", &latencies.connect),
        ("Reconnects", &latencies.reconnect),
        ("The generator's own lag", &latencies.lag),
    ]
    .into_iter()
    .chain(statements.map(|one| (&*one.statement, &one.latency)))
    .filter(|(_, latency)| latency.count > 0)
    .map(|(name, latency)| (name, cells(latency)))
    .collect()
}

fn cells(latency: &Latency) -> Vec<String> {
    let figures = [
        latency.mean_ms,
        latency.p50_ms,
        latency.p90_ms,
        latency.p95_ms,
        latency.p99_ms,
        latency.p999_ms,
        latency.p9999_ms,
        latency.max_ms,
    ];
    let count = thousands(latency.count);
    let figures = figures.iter().map(|ms| format!("{ms:.3}"));
    std::iter::once(count).chain(figures).collect()
}

fn facts(summary: &Summary) -> Vec<(&'static str, String)> {
    let of = |part: u64, name: &str| format!("{} {name}", thousands(part));
    let mut facts = vec![
        ("Written", measure::utc::text_of_second(reactor::utc_now())),
        ("Target", summary.target.clone()),
        ("Workload", summary.workload.clone()),
        (
            "Connections",
            format!(
                "{} wanted, {} stood, after {:.1} s; {}",
                thousands(summary.connections.into()),
                thousands(summary.connected),
                summary.connect_s,
                of(summary.failed_connects, "attempts failed")
            ),
        ),
        ("Measured time", format!("{:.1} s", summary.duration_s)),
        (
            "Statements",
            format!(
                "{}: {}, {}, {}",
                thousands(summary.statements),
                of(summary.failed_statements, "failed"),
                of(summary.ignored_errors, "ignored"),
                of(summary.gave_up, "given up")
            ),
        ),
        (
            "Connections later",
            format!(
                "{}, {}, {}",
                of(summary.lost_connections, "lost"),
                of(summary.retired_connections, "at the end of their lifetime"),
                of(summary.reconnects, "opened again")
            ),
        ),
    ];
    if summary.arrived_per_s > 0.0 {
        facts.push((
            "Open loop",
            format!(
                "{} events/s arrived; {}, {}, {}",
                short(summary.arrived_per_s),
                of(summary.shed, "shed"),
                of(summary.expired, "expired in line"),
                of(summary.waiting, "in line at the end")
            ),
        ));
    }
    facts.push((
        "This generator",
        format!(
            "{} threads; {:.1} s of CPU, {:.0} % of its cores, its busiest thread {:.0} %; {} MiB",
            summary.groups,
            summary.load_cpu_s,
            summary.load_cpu_share * 100.0,
            summary.load_busiest_share * 100.0,
            short(summary.load_rss_bytes as f64 / f64::from(1 << 20))
        ),
    ));
    facts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::Measured;
    use crate::summary::tests::{full, summary};

    fn point(t_s: f64) -> Point {
        Point {
            t_s,
            statements_per_s: 50.0,
            p50_ms: 1.0,
            p99_ms: 99.0,
            ..Point::default()
        }
    }

    #[test]
    fn a_page_has_the_figures_and_fetches_nothing() {
        let mut measured = full();
        measured.series = vec![point(1.0), point(2.0)];
        let page = render(&summary(&measured)).unwrap();
        for part in [
            "50 <small>statements/s",
            "<svg",
            "Reads",
            "error 2013",
            "polyline",
        ] {
            assert!(page.contains(part), "{part}");
        }
        for part in [
            "http://",
            "https://",
            "src=",
            "@import",
            "secret",
            "Failures</h3>",
        ] {
            assert!(!page.contains(part), "{part}");
        }
    }

    #[test]
    fn an_outage_has_its_tile_and_its_chart() {
        let mut measured = full();
        measured.series = vec![point(1.0), point(2.0)];
        let page = render(&summary(&measured)).unwrap();
        assert!(!page.contains("utage"), "{page}");
        let step = |answered, errors| load_core::steps::Step { answered, errors };
        measured.steps = [
            vec![step(9, 0); 20],
            vec![step(0, 1); 12],
            vec![step(9, 0); 20],
        ]
        .concat();
        let page = render(&summary(&measured)).unwrap();
        for part in [
            "1.2 <small>s to 95 % of the rate",
            "1.2 s without an answer; errors from 2.0 s to 3.1 s",
            "The outage</h3>",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }

    #[test]
    fn a_proof_has_its_verdict_and_what_shows_it() {
        let mut measured = full();
        let mut proof = crate::proof::tests::wrong();
        measured.proof = Some(proof.clone());
        let page = render(&summary(&measured)).unwrap();
        for part in [
            "<b class=\"crossed\">WRONG <small>",
            "7 writes acknowledged, 2 refused, 1 without an answer, 5 reads",
            "<h2>What is wrong with the data</h2>",
            "<tr><th>torn</th>\n    <td>3</td>",
            "an account is &#60;odd&#62;<br>  1.000 to - ms: client 4: write 8 at 1: no answer",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        proof.findings.clear();
        proof.give_up("no time".to_owned());
        measured.proof = Some(proof);
        let page = render(&summary(&measured)).unwrap();
        assert!(page.contains("<b>The data are unknown</b>: no time"));
        assert!(!page.contains("What is wrong"));
    }

    #[test]
    fn a_page_stands_on_nothing_at_all() {
        let page = render(&summary(&Measured::default())).unwrap();
        assert!(page.contains("It could not run"), "{page}");
        assert!(!page.contains("<svg") && !page.contains("NaN"));
    }

    #[test]
    fn words_of_a_server_are_no_markup() {
        let mut measured = full();
        let fault = load_core::errors::Fault::protocol("<script>alert(1)</script>".to_owned());
        measured.window.failed(fault, false, None);
        measured.series = vec![point(1.0)];
        let page = render(&summary(&measured)).unwrap();
        assert!(!page.contains("<script>alert"), "it is escaped");
    }

    #[test]
    fn a_long_run_is_thinned() {
        let series: Vec<Point> = (1..=86_400u32).map(|t| point(t.into())).collect();
        let thin = thinned(&series);
        assert!((700..=POINTS_MAX).contains(&thin.len()), "{}", thin.len());
        assert_eq!(thinned(&series[..5]).len(), 5);
        assert_eq!(thousands(1_234_567), "1,234,567");
    }
}
