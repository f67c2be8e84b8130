//! `onramp top`: the page of a running pool in a terminal.
//!
//! The problem: whoever is logged in on a server has a terminal, and no browser that reaches the
//! pool's address. The mechanism: what the page shows (`/live.json` of `onramp pool --http`) is
//! asked for once in a while and written as text, as high and wide as the terminal is at that
//! moment. One thread asks, one waits for signals, one for keys; the main thread alone writes, and
//! changes the terminal's modes. Without a terminal one picture is written, with all its lines.
//!
//! Invariants: an answer has at most [`ANSWER_MAX`] bytes and [`WAIT_MAX`] to come, and the first
//! figures of a pool that has just been started have as long; a pool that does not answer holds up
//! neither a key nor a signal; what the pool says (names, texts of statements) cannot send the
//! terminal a control character; however this ends, but by SIGKILL, the terminal has the modes that
//! it had.

use clap::Args;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use serde_json::Value;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGWINCH};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::process::ExitCode;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

/// Bytes of an answer.
const ANSWER_MAX: u64 = 16 << 20;
/// The longest wait for the pool.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// Time within which the picture is made anew after the first question.
const FRESH: Duration = Duration::from_millis(1200);
/// Between two questions to a pool that has no figures yet, and how many there are: together as
/// long as [`WAIT_MAX`].
const AGAIN: Duration = Duration::from_millis(200);
const ASKED_MAX: u32 = 25;
/// Events that wait until the main thread takes them.
const EVENTS_MAX: usize = 8;
/// The key that ends it.
const LEAVE: u8 = b'q';
/// Columns where there is no terminal.
const WIDTH: usize = 120;
/// Columns of the names of sections' first columns.
const NARROW: usize = 40;
/// Lines of a chart, each of as many steps as there are [`BARS`].
const CHART_LINES: usize = 3;
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// The time of a chart, and its columns at most.
const CHART_S: f64 = 300.0;
const CHART_MAX: usize = 60;

/// Show what a running pool does
///
/// Asks a pool that was started with --http ADDRESS, and shows rates, percentiles, clients, the
/// statements that took most time, and pins, again each second until q or Ctrl-C. Where standard
/// output is no terminal, it is shown once.
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct TopArgs {
    /// The pool's --http address
    #[arg(value_name = "HOST:PORT", default_value = "127.0.0.1:9104")]
    address: String,

    /// Seconds between two looks
    #[arg(long, value_name = "S", default_value_t = 1,
          value_parser = clap::value_parser!(u64).range(1..=3600))]
    every: u64,

    /// Show it once
    #[arg(long)]
    once: bool,
}

/// Event that the main thread waits for.
enum Event {
    /// The pool's answer.
    Asked(Result<Value, String>),
    /// A key or a signal that ends it.
    Leave,
    /// SIGWINCH: the terminal has another size.
    Resized,
    /// SIGTSTP: the shell wants its terminal.
    Suspend,
    /// SIGCONT: the shell has given it back.
    Continued,
}

/// Keys come one by one and are not shown, as long as this is there.
struct Keys {
    was: Termios,
}

impl Keys {
    /// `None` where standard input is no terminal: there are no keys then.
    fn take() -> Option<Keys> {
        let was = tcgetattr(io::stdin()).ok()?;
        let mut modes = was.clone();
        modes
            .local_modes
            .remove(LocalModes::ICANON | LocalModes::ECHO);
        tcsetattr(io::stdin(), OptionalActions::Now, &modes).ok()?;
        Some(Keys { was })
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        // Keys that nobody has read are not the shell's.
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.was);
    }
}

/// Shows it until it is told to end.
pub(crate) fn run(args: &TopArgs) -> ExitCode {
    // A pool that nobody has looked at makes its picture once somebody has asked.
    if let Err(why) = await_figures(&args.address) {
        return fail(&why);
    }
    let shown = match args.once || !io::stdout().is_terminal() {
        true => show_once(&args.address),
        false => show(args),
    };
    match shown {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => fail(&why),
    }
}

fn show_once(address: &str) -> Result<(), String> {
    reactor::pause(FRESH);
    let shown = ask(address)?;
    write(&picture(&shown, (WIDTH, None)))
}

/// Waits for the first figures: a pool has none before it has counted for a second.
fn await_figures(address: &str) -> Result<(), String> {
    for _ in 0..ASKED_MAX {
        if answer(address)?.is_some() {
            return Ok(());
        }
        reactor::pause(AGAIN);
    }
    Err(no_figures(address))
}

fn write(text: &str) -> Result<(), String> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| format!("cannot write: {error}"))
}

/// Shows it again and again.
fn show(args: &TopArgs) -> Result<(), String> {
    let (events, waiting) = sync_channel(EVENTS_MAX);
    // In front of the terminal's modes: from here on no signal ends it without them.
    await_signals(events.clone())?;
    let mut keys = Keys::take();
    if keys.is_some() {
        await_keys(events.clone())?;
    }
    ask_again(
        args.address.clone(),
        Duration::from_secs(args.every),
        events,
    )?;
    let mut last = None;
    for event in waiting {
        match event {
            Event::Leave => break,
            Event::Asked(answer) => last = Some(answer),
            Event::Resized => {}
            Event::Suspend => {
                drop(keys.take());
                emulate_default_handler(SIGTSTP).map_err(|error| error.to_string())?;
                // SIGCONT has woken it: it is drawn behind that, with keys.
                continue;
            }
            Event::Continued => {
                drop(keys.take());
                keys = Keys::take();
            }
        }
        if let Some(answer) = &last {
            write(&drawn(answer))?;
        }
    }
    Ok(())
}

/// A picture in place of the one before.
fn drawn(answer: &Result<Value, String>) -> String {
    match answer {
        // From the upper left corner on, over what was there, and nothing behind it.
        Ok(shown) => {
            let text = coloured(shown, picture(shown, size()));
            format!("\x1b[H{}\x1b[J", text.replace('\n', "\x1b[K\n"))
        }
        Err(why) => format!("\x1b[H{why}; asked again\x1b[K\n"),
    }
}

/// A picture whose first line is red where the pool is paused or not ready.
fn coloured(shown: &Value, text: String) -> String {
    let pool = &shown["pool"];
    match text.split_once('\n') {
        Some((first, rest)) if pool["paused"] == true || pool["unready"].is_string() => {
            format!("\x1b[1;31m{first}\x1b[0m\n{rest}")
        }
        _ => text,
    }
}

/// Starts a thread that sends events until nobody wants them.
fn begin(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), String> {
    let begun = thread::Builder::new().name(name.to_owned()).spawn(work);
    begun
        .map(|_| ())
        .map_err(|error| format!("cannot start a thread: {error}"))
}

fn await_signals(events: SyncSender<Event>) -> Result<(), String> {
    let known = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP, SIGCONT];
    let signals = Signals::new(known);
    let mut signals = signals.map_err(|error| format!("cannot handle signals: {error}"))?;
    begin("signals", move || {
        for signal in signals.forever() {
            let event = match signal {
                SIGWINCH => Event::Resized,
                SIGTSTP => Event::Suspend,
                SIGCONT => Event::Continued,
                _ => Event::Leave,
            };
            if events.send(event).is_err() {
                return;
            }
        }
    })
}

fn await_keys(events: SyncSender<Event>) -> Result<(), String> {
    begin("keys", move || {
        let keys = io::stdin().lock().bytes().map_while(Result::ok);
        for key in keys {
            if key.eq_ignore_ascii_case(&LEAVE) && events.send(Event::Leave).is_err() {
                return;
            }
        }
    })
}

fn ask_again(address: String, every: Duration, events: SyncSender<Event>) -> Result<(), String> {
    begin("asks", move || {
        reactor::pause(FRESH);
        while events.send(Event::Asked(ask(&address))).is_ok() {
            reactor::pause(every);
        }
    })
}

fn fail(why: &str) -> ExitCode {
    let _ = writeln!(io::stderr(), "onramp top: {why}");
    ExitCode::FAILURE
}

/// Columns and lines of the terminal at this moment.
fn size() -> (usize, Option<usize>) {
    match rustix::termios::tcgetwinsize(io::stdout()) {
        Ok(size) if size.ws_col > 0 => (usize::from(size.ws_col), Some(usize::from(size.ws_row))),
        _ => (WIDTH, None),
    }
}

/// Figures of the pool.
fn ask(address: &str) -> Result<Value, String> {
    answer(address)?.ok_or_else(|| no_figures(address))
}

fn no_figures(address: &str) -> String {
    format!("{address}: the pool has no figures yet")
}

/// Figures of the pool; `None` where it has none yet.
fn answer(address: &str) -> Result<Option<Value>, String> {
    let wrong = |error: io::Error| {
        format!("{address}: {error}; expected the address of onramp pool --http there")
    };
    let all: Vec<SocketAddr> = address.to_socket_addrs().map_err(wrong)?.collect();
    let first = all
        .first()
        .ok_or_else(|| format!("{address}: no such host"))?;
    let mut socket = TcpStream::connect_timeout(first, WAIT_MAX).map_err(wrong)?;
    socket.set_read_timeout(Some(WAIT_MAX)).map_err(wrong)?;
    socket.set_write_timeout(Some(WAIT_MAX)).map_err(wrong)?;
    // By the address: a name would have to be among the pool's http_names.
    let asked = format!("GET /live.json HTTP/1.1\r\nHost: {first}\r\nConnection: close\r\n\r\n");
    socket.write_all(asked.as_bytes()).map_err(wrong)?;
    let answer = read_all(socket).map_err(wrong)?;
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    if !head.starts_with("HTTP/1.1 200 ") {
        let line = head.lines().next().unwrap_or_default().escape_debug();
        return Err(format!(
            "{address}: expected the page of onramp pool, got '{line}'"
        ));
    }
    let shown: Value = serde_json::from_str(body)
        .map_err(|error| format!("{address}: expected JSON of onramp pool: {error}"))?;
    Ok(shown["point"].is_array().then_some(shown))
}

/// An answer to its end, or to its bound.
fn read_all(from: impl io::Read) -> io::Result<Vec<u8>> {
    let mut answer = Vec::new();
    from.take(ANSWER_MAX).read_to_end(&mut answer)?;
    Ok(answer)
}

/// A number as the page writes it.
fn short(number: f64) -> String {
    match number {
        n if n >= 1e9 => format!("{:.1}G", n / 1e9),
        n if n >= 1e6 => format!("{:.1}M", n / 1e6),
        n if n >= 1e4 => format!("{:.1}k", n / 1e3),
        n if n >= 100.0 || n.fract() == 0.0 => format!("{n:.0}"),
        n => format!("{n:.2}"),
    }
}

fn time(seconds: f64) -> String {
    match seconds {
        s if s >= 5400.0 => format!("{:.1} h", s / 3600.0),
        s if s >= 120.0 => format!("{:.0} min", s / 60.0),
        s if s >= 1.0 => format!("{s:.1} s"),
        s => format!("{:.2} ms", s * 1e3),
    }
}

/// A percentile, whose range ends at an hour.
fn percentile(seconds: f64) -> String {
    match seconds {
        3600.0.. => "more than 1 h".into(),
        s => time(s),
    }
}

fn cell(name: &str, value: &Value) -> String {
    match value {
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or(0.0);
            match name {
                "id" => format!("{number:.0}"),
                _ if name.ends_with("p99_seconds") => percentile(number),
                "seconds" => time(number),
                _ if name.ends_with("_seconds") => time(number),
                _ => short(number),
            }
        }
        Value::String(text) => text.chars().map(printable).collect(),
        _ => "-".into(),
    }
}

/// No control characters: they would be commands to the terminal.
fn printable(c: char) -> char {
    if c.is_control() { ' ' } else { c }
}

/// A line in as many as its terminal's width asks for, broken between words.
fn fold(line: &str, width: usize) -> String {
    let (mut text, mut used) = (String::new(), 0);
    for word in line.split(' ') {
        let len = word.chars().count();
        if used > 0 {
            let fits = used + 1 + len <= width;
            text.push(if fits { ' ' } else { '\n' });
            used = if fits { used + 1 } else { 0 };
        }
        text.push_str(word);
        used += len;
    }
    text + "\n"
}

/// A table that the picture shows.
struct Section<'a> {
    title: &'a str,
    /// The columns of these names, the last of which is a text; where the terminal is narrow, those
    /// in front of it are left out, from the right.
    columns: &'a [&'a str],
    /// Least number of rows of the last one.
    last_min: usize,
    rows_max: usize,
}

fn section_of(section: &Section<'_>, table: &Value, width: usize) -> String {
    let names: Vec<&str> = (table["names"].as_array().into_iter().flatten())
        .filter_map(Value::as_str)
        .collect();
    let places: Vec<(usize, &str)> = (section.columns.iter())
        .filter_map(|column| Some((names.iter().position(|name| name == column)?, *column)))
        .collect();
    let rows = table["rows"]
        .as_array()
        .into_iter()
        .flatten()
        .take(section.rows_max);
    let mut lines: Vec<Vec<String>> = rows
        .map(|row| {
            places
                .iter()
                .map(|(at, name)| cell(name, &row[*at]))
                .collect()
        })
        .collect();
    if lines.is_empty() {
        return String::new();
    }
    let heads = places.iter().map(|(_, name)| {
        let name = name.strip_suffix("_seconds").unwrap_or(name);
        name.replace('_', " ")
    });
    lines.insert(0, heads.collect());
    // The last column has what the others leave, and is cut; a text is on the left.
    let last = places.len() - 1;
    let widest = |at: usize| {
        lines
            .iter()
            .map(|line| line[at].chars().count())
            .max()
            .unwrap_or(0)
    };
    let mut widths: Vec<usize> = (0..last).map(|at| widest(at).min(NARROW)).collect();
    let used = |widths: &[usize]| widths.iter().map(|width| width + 2).sum::<usize>();
    while widths.len() > 1 && used(&widths) + section.last_min > width {
        widths.pop();
    }
    let mut text = format!("\n{}\n", section.title);
    for line in &lines {
        let mut out = String::new();
        for (cell, width) in line.iter().zip(&widths) {
            let cell: String = cell.chars().take(*width).collect();
            let _ = write!(out, "{cell:>width$}  ");
        }
        out.push_str(&line[last]);
        text.extend(out.chars().take(width));
        text.push('\n');
    }
    text
}

/// Values of the pool over the last five minutes, to be drawn.
struct Chart<'a> {
    title: &'a str,
    /// Times and values, in the order of time.
    points: Vec<(f64, f64)>,
    write: fn(f64) -> String,
}

impl Chart<'_> {
    /// Lines of this width: the title with the last value, bars under the value of their height,
    /// an axis. Spikes are cut, so that they do not flatten all others, and marked.
    fn lines(&self, width: usize) -> Vec<String> {
        const EDGE: usize = 11;
        let columns = width.saturating_sub(EDGE).min(CHART_MAX);
        let Some(&(end, last)) = self.points.last().filter(|_| columns > 0) else {
            return Vec::new();
        };
        let largest = self.points.iter().map(|point| point.1).fold(0.0, f64::max);
        // In each column the largest of its time.
        let edge = |column: usize| end - CHART_S * (columns - column) as f64 / columns as f64;
        let largest_in = |column: usize| {
            let (from, to) = (edge(column), edge(column + 1));
            let points = self.points.iter();
            let its = points.filter(|(at, _)| *at > from && *at <= to);
            its.map(|point| point.1).reduce(f64::max)
        };
        let values: Vec<Option<f64>> = (0..columns).map(largest_in).collect();
        let mut sorted: Vec<f64> = values.iter().flatten().copied().collect();
        sorted.sort_by(f64::total_cmp);
        let usual = sorted[(sorted.len() - 1) * 95 / 100];
        let top = match usual > 0.0 && largest > usual * 4.0 {
            true => usual * 1.5,
            false => largest.max(1e-9),
        };
        let write = self.write;
        let title = format!(
            "{}: {}, at most {}",
            self.title,
            write(last),
            write(largest)
        );
        let mut lines = vec![title];
        for line in (0..CHART_LINES).rev() {
            let label = if line + 1 == CHART_LINES {
                write(top)
            } else {
                String::new()
            };
            let bar = |value: &Option<f64>| {
                let Some(value) = value else { return ' ' };
                let is_cut = *value > top && line + 1 == CHART_LINES;
                let of_all = (value / top).min(1.0) * (CHART_LINES * BARS.len()) as f64;
                let steps = (0..CHART_LINES * BARS.len()).filter(|step| of_all > *step as f64);
                match steps.count().saturating_sub(line * BARS.len()) {
                    _ if is_cut => '↑',
                    0 if line == 0 => BARS[0],
                    0 => ' ',
                    steps => BARS[steps.min(BARS.len()) - 1],
                }
            };
            let bars: String = values.iter().map(bar).collect();
            lines.push(format!(
                "{label:>0$}{bars}",
                EDGE,
                label = format!("{label} ")
            ));
        }
        let axis = format!(
            "{:<half$}{:<rest$}",
            "-5 min",
            "-2.5 min",
            half = columns / 2,
            rest = (columns - columns / 2).saturating_sub(3)
        );
        lines.push(format!("{:EDGE$}{axis}now", ""));
        lines
    }
}

/// Charts beside each other where the terminal is wide enough, else below one another.
fn charts(charts: &[Chart<'_>], width: usize) -> String {
    let beside = if width >= 78 { 2 } else { 1 };
    let each = (width + 2) / beside - 2;
    let mut text = String::new();
    for row in charts.chunks(beside) {
        let drawn: Vec<Vec<String>> = row.iter().map(|chart| chart.lines(each)).collect();
        let count = drawn.iter().map(Vec::len).max().unwrap_or(0);
        for at in 0..count {
            let cells = drawn
                .iter()
                .map(|lines| lines.get(at).map_or("", |line| line));
            let line: Vec<String> = cells.map(|cell| format!("{cell:<each$}")).collect();
            let _ = write!(
                text,
                "{}{}",
                if at == 0 { "\n" } else { "" },
                line.join("  ").trim_end()
            );
            text.push('\n');
        }
    }
    text
}

/// Rows of the last five minutes in a table that has those of several times.
fn recent(table: &Value) -> Value {
    let rows = table["rows"].as_array().into_iter().flatten();
    let rows: Vec<&Value> = rows.filter(|row| row[0] == CHART_S / 60.0).collect();
    serde_json::json!({"names": table["names"], "rows": rows})
}

/// The whole picture; its lines are no wider than the terminal, nor are there more.
fn picture(shown: &Value, (width, height): (usize, Option<usize>)) -> String {
    let names = shown["names"].as_array().into_iter().flatten();
    let point = |name: &str| {
        let at = names.clone().position(|named| named == name);
        at.and_then(|at| shown["point"][at].as_f64()).unwrap_or(0.0)
    };
    let pool = &shown["pool"];
    let words = |value: &Value| cell("", value);
    let state = match &pool["unready"] {
        Value::String(why) => format!("NOT READY, {why}"),
        _ => "ready".into(),
    };
    let paused = if pool["paused"] == true {
        ", PAUSED"
    } else {
        ""
    };
    let ms = |name: &str| time(point(name) / 1e3);
    let (stages, backends) = (&shown["stages"], &shown["backends"]);
    let count = |value: &Value| short(value.as_f64().unwrap_or(0.0));
    let mut text = format!(
        "onramp {} in front of {} ({} {}): {state}{paused}\n",
        words(&pool["onramp"]),
        words(&pool["address"]),
        words(&pool["flavour"]),
        words(&pool["version"]),
    );
    let _ = writeln!(
        text,
        "{} statements/s, {} errors/s; service p50 {}, p99 {}; waiting p99 {}, {} wait",
        short(point("statements")),
        short(point("errors")),
        ms("service_p50_ms"),
        ms("service_p99_ms"),
        ms("wait_p99_ms"),
        short(point("waiting")),
    );
    let _ = writeln!(
        text,
        "{} clients: {} running, {} waiting, {} idle, {} hold a backend, {} pinned, {} logging in",
        short(point("clients")),
        count(&stages["running"]),
        count(&stages["waiting"]),
        count(&stages["idle"]),
        count(&stages["holding"]),
        count(&shown["pinned"]),
        count(&stages["logging_in"]),
    );
    let _ = writeln!(
        text,
        "{} of {} backends in use, {} free, {} being dialled; CPU {:.2} cores, {} MiB",
        count(&backends["checked_out"]),
        count(&backends["max"]),
        count(&backends["idle"]),
        count(&backends["dialling"]),
        point("cpu"),
        shown["rss_bytes"].as_u64().unwrap_or(0) >> 20,
    );
    let text: String = text.lines().map(|line| fold(line, width)).collect();
    let tables = &shown["tables"];
    // What goes on now stands on top: who runs, holds and is refused.
    let sections = [
        (
            "Running and waiting, the longest first",
            &tables["running"],
            &["seconds", "id", "state", "user", "address", "statement"][..],
            (24, 4),
        ),
        (
            "Open transactions, the oldest first",
            &tables["transactions"],
            &[
                "seconds",
                "id",
                "statements",
                "state",
                "user",
                "address",
                "statement",
            ],
            (24, 3),
        ),
        (
            "Who has the backends",
            &tables["holders"],
            &[
                "backends",
                "running",
                "holding",
                "transactions",
                "pinned",
                "seconds",
                "user",
                "host",
                "program",
            ],
            (12, 3),
        ),
        (
            "Refused, the latest first",
            &tables["refusals"],
            &["count", "seen_seconds", "reason", "account", "message"],
            (24, 3),
        ),
    ];
    let section = |(title, table, columns, (last_min, rows_max)): (&str, &Value, &[&str], _)| {
        let section = Section {
            title,
            columns,
            last_min,
            rows_max,
        };
        section_of(&section, table, width)
    };
    let now: String = sections.into_iter().map(section).collect();
    let points = |name: &str| {
        let at = names.clone().position(|named| named == name);
        let rows = shown["points"].as_array().into_iter().flatten();
        let values = rows.filter_map(|row| Some((row[0].as_f64()?, row[at?].as_f64()?)));
        values.collect::<Vec<_>>()
    };
    let charts = charts(
        &[
            Chart {
                title: "statements/s",
                points: points("statements"),
                write: short,
            },
            Chart {
                title: "service time, p99",
                points: points("service_p99_ms"),
                write: |ms| percentile(ms / 1e3),
            },
        ],
        width,
    );
    let recent = recent(&tables["recent_statements"]);
    let sections = [
        (
            "Statements of the last 5 minutes, by the server's time",
            &recent,
            &[
                "count",
                "errors",
                "running",
                "mean_seconds",
                "hour_seconds",
                "wait_seconds",
                "statement",
            ][..],
            (30, 10),
        ),
        (
            "Clients by user and address",
            &shown["sources"],
            &["clients", "running", "waiting", "pinned", "user", "address"],
            (0, 5),
        ),
        (
            "Pinned, and by which statement",
            &shown["pins"],
            &["clients", "reason", "longest_seconds", "by"],
            (20, 5),
        ),
        (
            "Errors",
            &tables["errors"],
            &["count", "source", "error"],
            (0, 5),
        ),
    ];
    let rest: String = sections.into_iter().map(section).collect();
    let text = text + &now + &charts + &rest;
    // One line is left for the cursor.
    let height = height.map_or(usize::MAX, |height| height.saturating_sub(1));
    let lines = text.lines().take(height);
    lines.fold(String::new(), |mut all, line| {
        all.extend(line.chars().take(width));
        all.push('\n');
        all
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown() -> Value {
        json!({
            "pool": {"address": "db:3306", "flavour": "mariadb", "version": "10.11", "onramp": "1",
                     "unready": null, "paused": true},
            "names": ["at", "statements", "errors", "wait_p99_ms", "service_p50_ms",
                      "service_p99_ms", "clients", "waiting", "cpu"],
            "point": [1, 12345.6, 0, 0.5, 1.25, 1500.0, 100, 3, 0.5],
            "stages": {"running": 4, "waiting": 3, "idle": 90, "holding": 3, "logging_in": 0},
            "pinned": 2,
            "backends": {"checked_out": 7, "max": 64, "idle": 1, "dialling": 0},
            "rss_bytes": 30 << 20,
            "tables": {
                "recent_statements": {
                    "names": ["minutes", "statement", "count", "errors", "running", "wait_seconds",
                              "mean_seconds", "hour_seconds"],
                    "rows": [[1, "SELECT 1", 1, 0, 0, 0.0, 0.0, 0.0],
                             [5, "SELECT \u{1b}[31m?", 10, 0, 2, 0.0, 0.25, 0.5],
                             [60, "SELECT 60", 1, 0, 0, 0.0, 0.0, 0.0]],
                },
                "running": {
                    "names": ["id", "user", "address", "program", "seconds", "state", "statement"],
                    "rows": [[7, "app", "192.0.2.1:5", null, 4000.0, "running", "SELECT SLEEP(?)"]],
                },
                "holders": {
                    "names": ["user", "host", "program", "backends", "running", "holding",
                              "transactions", "pinned", "seconds"],
                    "rows": [["app", "192.0.2.1", "java", 7, 1, 6, 2, 0, 130.0]],
                },
                "errors": {"names": ["source", "error", "count"], "rows": []},
            },
            "sources": {"names": ["user", "address", "clients", "running", "waiting", "pinned"],
                        "rows": [["app", "192.0.2.1", 100, 4, 3, 2]]},
            "pins": {"names": ["reason", "by", "clients", "longest_seconds"], "rows": []},
        })
    }

    #[test]
    fn the_picture_has_what_the_page_has() {
        let text = picture(&shown(), (120, None));
        let expected = "\
onramp 1 in front of db:3306 (mariadb 10.11): ready, PAUSED
12.3k statements/s, 0 errors/s; service p50 1.25 ms, p99 1.5 s; waiting p99 0.50 ms, 3 wait
100 clients: 4 running, 3 waiting, 90 idle, 3 hold a backend, 2 pinned, 0 logging in
7 of 64 backends in use, 1 free, 0 being dialled; CPU 0.50 cores, 30 MiB

Running and waiting, the longest first
seconds  id    state  user      address  statement
 67 min   7  running   app  192.0.2.1:5  SELECT SLEEP(?)

Who has the backends
backends  running  holding  transactions  pinned  seconds  user       host  program
       7        1        6             2       0    2 min   app  192.0.2.1  java

Statements of the last 5 minutes, by the server's time
count  errors  running       mean       hour     wait  statement
   10       0        2  250.00 ms  500.00 ms  0.00 ms  SELECT  [31m?

Clients by user and address
clients  running  waiting  pinned  user  address
    100        4        3       2   app  192.0.2.1
";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_paused_pool_is_red() {
        let mut shown = shown();
        let red = |shown: &Value| coloured(shown, picture(shown, (120, None)));
        let begins = |line: String| line.starts_with("\x1b[1;31monramp 1 in front of");
        assert!(begins(red(&shown)) && red(&shown).contains(", PAUSED\x1b[0m\n"));
        shown["pool"]["paused"] = false.into();
        assert!(!begins(red(&shown)));
        shown["pool"]["unready"] = "a drain".into();
        assert!(begins(red(&shown)));
    }

    #[test]
    fn a_narrow_terminal_has_the_statements_and_all_words() {
        let text = picture(&shown(), (72, None));
        let expected = "\
onramp 1 in front of db:3306 (mariadb 10.11): ready, PAUSED
12.3k statements/s, 0 errors/s; service p50 1.25 ms, p99 1.5 s; waiting
p99 0.50 ms, 3 wait
100 clients: 4 running, 3 waiting, 90 idle, 3 hold a backend, 2 pinned,
0 logging in
7 of 64 backends in use, 1 free, 0 being dialled; CPU 0.50 cores, 30 MiB

Running and waiting, the longest first
seconds  id    state  user      address  statement
 67 min   7  running   app  192.0.2.1:5  SELECT SLEEP(?)
";
        assert!(text.starts_with(expected), "{text}");
        let text = picture(&shown(), (40, None));
        assert!(text.contains("\ncount  statement\n"), "{text}");
    }

    #[test]
    fn a_chart_has_an_axis_and_cuts_a_spike() {
        let seconds = (0..300).map(f64::from);
        let value = |at: f64| if at == 100.0 { 5e6 } else { at };
        let chart = Chart {
            title: "statements/s",
            points: seconds.map(|at| (at, value(at))).collect(),
            write: short,
        };
        let expected = "\
statements/s: 299, at most 5.0M
       434           ↑                  ▁
                     █   ▁▁▂▂▃▄▄▅▅▆▆▇▇███
           ▁▂▂▃▃▄▄▅▅▆█▇██████████████████
           -5 min         -2.5 min    now";
        assert_eq!(chart.lines(41).join("\n"), expected);
        let none = Chart {
            points: Vec::new(),
            ..chart
        };
        assert!(none.lines(39).is_empty() && charts(&[none], 120).is_empty());
    }

    #[test]
    fn the_picture_fits_its_terminal() {
        for (width, height) in [(20, 3), (1, 1), (200, 100), (0, 0)] {
            let text = picture(&shown(), (width, Some(height)));
            assert!(text.lines().count() < height.max(1), "{text}");
            assert!(text.lines().all(|line| line.chars().count() <= width));
        }
    }

    #[test]
    fn what_is_no_pool_is_said_so() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        for (answer, expected) in [
            (
                "HTTP/1.1 404 Not Found\r\n\r\nx",
                "got 'HTTP/1.1 404 Not Found'",
            ),
            (
                "5.5.5-10.11\u{1b}",
                "expected the page of onramp pool, got '5.5.5-10.11\\u{1b}'",
            ),
            ("HTTP/1.1 200 OK\r\n\r\n<html>", "expected JSON"),
            ("HTTP/1.1 200 OK\r\n\r\n{}", "no figures yet"),
        ] {
            let listener = listener.try_clone().unwrap();
            let server = std::thread::spawn(move || {
                let (mut socket, _) = listener.accept().unwrap();
                let mut asked = [0; 1024];
                let _ = socket.read(&mut asked).unwrap();
                socket.write_all(answer.as_bytes()).unwrap();
            });
            let why = ask(&address).unwrap_err();
            assert!(why.contains(expected), "{why}");
            server.join().unwrap();
        }
        drop(listener);
        assert!(ask(&address).unwrap_err().contains("onramp pool --http"));
    }

    #[test]
    fn an_answer_without_end_is_read_to_its_bound() {
        let answer = read_all(io::repeat(b'x')).unwrap();
        assert_eq!(answer.len() as u64, ANSWER_MAX);
    }
}
