//! The table that a climb prints at its end.
//!
//! Rungs from top to bottom, the paths of a rung under each other, numbers right-aligned, so that
//! the eye compares down a column. A cell without figures has its limit in their place; one with
//! both has the limit on lines of its own below. Under the table stands what failed, by error, and
//! where the evidence is. At most 100 columns, plain ASCII: it is pasted into issues and mails.

use std::path::Path;

use crate::evidence::Evidence;
use crate::format::{ABSENT, figure, or_absent, ratio, seconds, thousands, whole};
use crate::headline::by_step;
use crate::row::{Latency, LoadError, Row};

const WIDTH: usize = 100;
/// The column at which a limit's text begins: behind the path's name.
const LIMIT_INDENT: usize = 24;
const HEADINGS: [&str; 10] = [
    "connections",
    "path",
    "statements/s",
    "p50 ms",
    "p95 ms",
    "p99 ms",
    "p99/mean",
    "failed",
    "connect s",
    "pool B/client",
];
const WIDTHS: [usize; 10] = [11, 11, 12, 7, 7, 7, 8, 6, 9, 13];

/// All that goes to stdout.
pub(crate) fn report(evidence: &Evidence, json: &Path, html: &Path) -> String {
    let mut text = format!("\n{}\n", wrapped(&evidence.headline, 0));
    for (name, rows) in by_step(&evidence.rows) {
        if !name.is_empty() {
            text += &format!("\n{name}\n");
        }
        text += &of(rows);
        text += &goodput(rows);
        if !name.is_empty() {
            text += &events(rows);
            text += &statements(rows);
        }
    }
    text += &cpu(evidence);
    text += &memory(&evidence.rows);
    text += &failures(&evidence.rows);
    if let Some(unlike) = &evidence.host.unlike_published {
        text += &format!("\n{}", wrapped(unlike, 0));
    }
    if !evidence.finished {
        text += "\nThe climb was stopped before its last cell.\n";
    }
    text += &format!(
        "\nevidence: {}   page: {}\n",
        json.display(),
        html.display()
    );
    text
}

/// The table alone.
fn of(rows: &[Row]) -> String {
    let mut text = line(HEADINGS.map(ToOwned::to_owned));
    let mut last_rung = None;
    for row in rows {
        let first = last_rung.replace(row.connections) != Some(row.connections);
        if first {
            text += &"-".repeat(WIDTHS.iter().sum::<usize>() + WIDTHS.len() - 1);
            text.push('\n');
        }
        let limit = row
            .limit
            .as_deref()
            .map(|limit| wrapped(limit, LIMIT_INDENT));
        let limit = limit.unwrap_or_default();
        if row.has_figures() || limit.is_empty() {
            text += &line(columns(row, first));
            text += &limit;
        } else {
            let [rung, path, ..] = columns(row, first);
            let [rung_width, path_width, ..] = WIDTHS;
            text += &format!(
                "{rung:>rung_width$} {path:<path_width$} {}",
                limit.trim_start()
            );
        }
    }
    text
}

fn columns(row: &Row, first: bool) -> [String; 10] {
    let rung = thousands(u64::from(row.connections));
    [
        if first { rung } else { String::new() },
        row.path.clone(),
        or_absent(row.statements_per_s, whole),
        or_absent(row.p50_ms, figure),
        or_absent(row.p95_ms, figure),
        or_absent(row.p99_ms, figure),
        or_absent(row.p99_over_mean, ratio),
        row.failed().map_or_else(|| ABSENT.to_owned(), thousands),
        or_absent(row.connect_s, seconds),
        or_absent(row.pool_bytes_per_client, whole),
    ]
}

fn line(columns: [String; 10]) -> String {
    let mut text = String::new();
    for (at, (column, width)) in columns.iter().zip(WIDTHS).enumerate() {
        // The path is a word; everything else is a number.
        text += &if at == 1 {
            format!("{column:<width$}")
        } else {
            format!("{column:>width$}")
        };
        text.push(' ');
    }
    format!("{}\n", text.trim_end())
}

/// Goodput beside the demand; empty where everybody was patient.
fn goodput(rows: &[Row]) -> String {
    if !rows.iter().any(Row::is_storm) {
        return String::new();
    }
    let mut text = format!(
        "\n{:>11} {:<11} {:>12} {:>12} {:>12} {:>12}\n",
        "connections", "path", "asked/s", "in time/s", "gave up", "reconnects"
    );
    for row in rows {
        text += &format!(
            "{:>11} {:<11} {:>12} {:>12} {:>12} {:>12}\n",
            thousands(u64::from(row.connections)),
            row.path,
            or_absent(row.offered_per_s, whole),
            or_absent(row.goodput_per_s, whole),
            row.gave_up.map_or_else(|| ABSENT.to_owned(), thousands),
            row.reconnects.map_or_else(|| ABSENT.to_owned(), thousands),
        );
    }
    text
}

/// Latencies of whole events: transactions, mostly. Empty where an event is one statement.
fn events(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows.iter().filter(|row| row.has_long_events()) {
        let Some(event) = row.event else { continue };
        text += &format!(
            "{:>11} {:<11} {:>12} {}\n",
            thousands(u64::from(row.connections)),
            row.path,
            or_absent(row.events_per_s, whole),
            latency(&event)
        );
    }
    if text.is_empty() {
        return text;
    }
    format!("\nconnections path             events/s  mean ms   p50 ms   p95 ms   p99 ms\n{text}")
}

/// Latencies of each statement, where the script has few.
fn statements(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows.iter().filter(|row| row.is_mixed()) {
        for of in &row.by_statement {
            text += &format!(
                "{:>11} {:<11} {:>12} {}  {}\n",
                thousands(u64::from(row.connections)),
                row.path,
                thousands(of.latency.count),
                latency(&of.latency),
                shortened(&of.statement)
            );
        }
    }
    if text.is_empty() {
        return text;
    }
    let headings = "connections path               count  mean ms   p50 ms   p95 ms   p99 ms";
    format!("\n{headings}  statement\n{text}")
}

fn latency(of: &Latency) -> String {
    let columns = [of.mean_ms, of.p50_ms, of.p95_ms, of.p99_ms];
    columns.map(|ms| format!("{:>8}", figure(ms))).join(" ")
}

/// A statement as far as the line has room for it.
fn shortened(statement: &str) -> String {
    const ROOM: usize = WIDTH - 75;
    match statement.char_indices().nth(ROOM) {
        None => statement.to_owned(),
        Some(_) => statement
            .chars()
            .take(ROOM - 3)
            .chain("...".chars())
            .collect(),
    }
}

/// CPU for a statement, by process; empty if nobody's is known.
fn cpu(evidence: &Evidence) -> String {
    let mut text = String::new();
    for row in &evidence.rows {
        let costs = [
            row.server_us_per_statement,
            row.pool_us_per_statement,
            row.load_us_per_statement,
        ];
        if costs.iter().all(Option::is_none) {
            continue;
        }
        let [server, proxy, load] = costs.map(|cost| or_absent(cost, figure));
        let rate = or_absent(row.statements_per_server_cpu_s, whole);
        let (rung, path) = (thousands(u64::from(row.connections)), &row.path);
        text += &format!("{rung:>11} {path:<11} {rate:>26} {server:>9} {proxy:>9} {load:>9}\n");
    }
    if text.is_empty() {
        return text;
    }
    let place = match &evidence.settings.cpus {
        Some(cpus) => format!("processors: {cpus}"),
        None => "all processes share the processors".to_owned(),
    };
    format!(
        "\nCPU for a statement in us, without connecting; {place}\n\
         connections path        statements/CPU-s of server    server     proxy      load\n{text}"
    )
}

/// Memory of each process at its peak, in MiB; empty if nobody's memory is known.
fn memory(rows: &[Row]) -> String {
    let columns = |row: &Row| {
        let bytes = [
            row.server_rss_bytes,
            row.pool_rss_bytes,
            row.load_rss_bytes,
            row.kernel_bytes,
        ];
        let known = bytes.iter().any(Option::is_some);
        known.then(|| bytes.map(|bytes| or_absent(bytes.map(|bytes| bytes as f64), mebibytes)))
    };
    let mut text = String::new();
    for row in rows {
        let Some([server, pool, load, kernel]) = columns(row) else {
            continue;
        };
        let (rung, path) = (thousands(u64::from(row.connections)), &row.path);
        text += &format!("{rung:>11} {path:<11} {server:>12} {pool:>7} {load:>7} {kernel:>7}\n");
    }
    if text.is_empty() {
        return text;
    }
    format!(
        "\nmemory at its peak, MiB; the kernel's is its growth, mostly sockets\n\
         connections path              server    pool    load  kernel\n{text}"
    )
}

fn mebibytes(bytes: f64) -> String {
    whole(bytes / f64::from(1 << 20))
}

/// One line for each kind of failure of each row that has any.
fn failures(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows {
        let rung = thousands(u64::from(row.connections));
        for error in row.errors.iter().filter(|error| error.count > 0) {
            let failed = format!("{} at {rung}: {}", row.path, of_error(error));
            text += &wrapped(&failed, 2);
        }
    }
    if text.is_empty() {
        text
    } else {
        format!("\nfailed:\n{text}")
    }
}

/// An error in words: `12 x 2013 (HY000) Lost connection, in a statement, 2.5 s after it began`.
pub(crate) fn of_error(error: &LoadError) -> String {
    let mut text = format!("{} x", thousands(error.count));
    if let Some(code) = error.code {
        text += &format!(" {code}");
    }
    if let Some(state) = &error.sqlstate {
        text += &format!(" ({state})");
    }
    text += &format!(" {}", error.message.as_deref().unwrap_or("no message"));
    match error.phase.as_deref() {
        Some("connect") => text += ", at a connect",
        Some("init") => text += ", in --init-sql",
        Some("statement") => text += ", in a statement",
        _ => {}
    }
    if let (Some(least), Some(most)) = (error.age_min_ms, error.age_max_ms) {
        let [least, most] = [least, most].map(|ms| seconds(ms / 1e3));
        text += &match least == most {
            true => format!(", {most} s after it began"),
            false => format!(", {least} to {most} s after it began"),
        };
    }
    text
}

/// Text broken at spaces to the width of the table, each line indented.
fn wrapped(text: &str, indent: usize) -> String {
    let mut lines = String::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && indent + line.len() + 1 + word.len() > WIDTH {
            lines += &format!("{:indent$}{line}\n", "");
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line += word;
    }
    if !line.is_empty() {
        lines += &format!("{:indent$}{line}\n", "");
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::OfStatement;
    use crate::samples;

    #[test]
    fn what_a_script_is_made_of_is_shown_where_it_is_little() {
        let latency = |p99_ms| Latency {
            count: 9_900,
            mean_ms: 1.5,
            p50_ms: 1.25,
            p95_ms: 2.5,
            p99_ms,
        };
        let of = |text: &str, p99_ms| OfStatement {
            statement: text.to_owned(),
            latency: latency(p99_ms),
        };
        let mut row = samples::rows().remove(0);
        row.events_per_s = Some(172.0);
        row.event = Some(latency(160.0));
        row.by_statement = vec![
            of("SELECT c FROM sbtest# WHERE id=?", 3.75),
            of("SELECT SLEEP(0.1)", 101.0),
        ];
        let rows = [row];
        assert_eq!(
            events(&rows),
            "
connections path             events/s  mean ms   p50 ms   p95 ms   p99 ms
        100 direct               172     1.50     1.25     2.50      160
"
        );
        assert_eq!(
            statements(&rows),
            "
connections path               count  mean ms   p50 ms   p95 ms   p99 ms  statement
        100 direct             9,900     1.50     1.25     2.50     3.75  SELECT c FROM sbtest# ...
        100 direct             9,900     1.50     1.25     2.50      101  SELECT SLEEP(0.1)
"
        );
        let many = vec![of("COMMIT", 1.0); 4];
        let [mut row] = rows;
        row.by_statement = many;
        assert_eq!(statements(&[row]), "");
    }

    #[test]
    fn the_whole_report() {
        let mut evidence = samples::evidence();
        evidence.finished = false;
        let text = report(&evidence, Path::new("climb.json"), Path::new("climb.html"));
        let expected = include_str!("table.txt");
        assert_eq!(text, expected, "\n{text}");
        assert!(
            text.lines()
                .all(|line| line.len() <= WIDTH && line == line.trim_end())
        );
    }

    #[test]
    fn figures_and_a_limit_are_both_shown() {
        let text = of(&[samples::almost_held()]);
        let lines: Vec<_> = text.lines().skip(2).collect();
        assert!(
            lines[0].starts_with("     10,000 direct             9,804     512"),
            "{text}"
        );
        assert_eq!(
            lines[1].find("9,990 of 10,000 connected"),
            Some(LIMIT_INDENT)
        );
    }

    #[test]
    fn cpu_is_shown_by_process_with_the_place_of_each() {
        let mut evidence = samples::evidence();
        assert_eq!(cpu(&evidence), "");
        evidence.rows[2].take_cpu([Some(20e-6), Some(12.34e-6), None]);
        let shared = cpu(&evidence);
        let shown = "
CPU for a statement in us, without connecting; all processes share the processors
connections path        statements/CPU-s of server    server     proxy      load
        100 onramp                          50,000      20.0      12.3         -
";
        assert_eq!(shared, shown);
        evidence.settings.cpus = Some("server=0,pool=1,load=1".to_owned());
        assert!(cpu(&evidence).contains("; processors: server=0,pool=1,load=1\n"));
    }

    #[test]
    fn a_table_without_rows_is_its_headings() {
        assert_eq!(of(&[]).lines().count(), 1);
        assert_eq!(memory(&[]), "");
    }

    #[test]
    fn an_error_says_as_much_as_is_known() {
        let error = LoadError {
            count: 1_200,
            ..LoadError::default()
        };
        assert_eq!(of_error(&error), "1,200 x no message");
        let text = of_error(&samples::rows()[6].errors[0]);
        let expected = "12 x 2013 (HY000) Lost connection to server during query, in a statement, \
                        299.8 to 300.2 s after it began";
        assert_eq!(text, expected);
    }
}
