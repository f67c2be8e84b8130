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
/// After the first question the picture is made anew within this time.
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
            let text = picture(shown, size());
            format!("\x1b[H{}\x1b[J", text.replace('\n', "\x1b[K\n"))
        }
        Err(why) => format!("\x1b[H{why}; asked again\x1b[K\n"),
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
        s if s >= 1.0 => format!("{s:.1} s"),
        s => format!("{:.2} ms", s * 1e3),
    }
}

fn cell(name: &str, value: &Value) -> String {
    match value {
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or(0.0);
            match name.ends_with("_seconds") {
                true => time(number),
                false => short(number),
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

fn section(section: &Section<'_>, table: &Value, width: usize) -> String {
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
    let statements = Section {
        title: "Statements that took most of the server's time",
        columns: &[
            "count",
            "errors",
            "service_seconds",
            "service_mean_seconds",
            "service_max_seconds",
            "wait_seconds",
            "rows",
            "statement",
        ],
        last_min: 30,
        rows_max: 10,
    };
    let sources = Section {
        title: "Clients by user and address",
        columns: &["clients", "running", "waiting", "pinned", "user", "address"],
        last_min: 0,
        rows_max: 5,
    };
    let pins = Section {
        title: "Pinned, and by which statement",
        columns: &["clients", "reason", "longest_seconds", "by"],
        last_min: 20,
        rows_max: 5,
    };
    let errors = Section {
        title: "Errors",
        columns: &["count", "source", "error"],
        last_min: 0,
        rows_max: 5,
    };
    let text = text
        + &section(&statements, &tables["statements"], width)
        + &section(&sources, &shown["sources"], width)
        + &section(&pins, &shown["pins"], width)
        + &section(&errors, &tables["errors"], width);
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
                "statements": {
                    "names": ["digest", "statement", "count", "errors", "rows", "wait_seconds",
                              "service_seconds", "service_mean_seconds", "service_max_seconds"],
                    "rows": [["00ab", "SELECT \u{1b}[31m?", 10, 0, 20, 0.0, 2.5, 0.25, 0.5]],
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

Statements that took most of the server's time
count  errors  service  service mean  service max     wait  rows  statement
   10       0    2.5 s     250.00 ms    500.00 ms  0.00 ms    20  SELECT  [31m?

Clients by user and address
clients  running  waiting  pinned  user  address
    100        4        3       2   app  192.0.2.1
";
        assert_eq!(text, expected);
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

Statements that took most of the server's time
count  errors  service  service mean  statement
   10       0    2.5 s     250.00 ms  SELECT  [31m?
";
        assert!(text.starts_with(expected), "{text}");
        let text = picture(&shown(), (40, None));
        assert!(text.contains("\ncount  statement\n"), "{text}");
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
