//! The page of a running pool: what it shows, second by second, and the last hour.
//!
//! The page is a file that never changes (`live.html`); it fetches `/history.json` once and
//! `/live.json` each second. A thread of its own makes both, so that the thread that serves HTTP
//! waits for nobody: it takes the groups' last views, adds a point to the history, and, while
//! somebody looks at the page, asks the groups for their clients as the console does.
//!
//! Bounds: [`POINTS_MAX`] points; lists of clients only up to [`LISTED_MAX`] of them, and
//! [`LINES_MAX`] lines of each; [`ROWS_MAX`] of any other table.

use crate::admin::console::Console;
use crate::observe::figures::{GroupView, Histogram, Stage};
use crate::observe::listing::Sums;
use crate::observe::metrics::Sample;
use console::{DEFAULT_SCHEMA, Row, Source as _, Table, Value};
use measure::host::{Host, Watch};
use measure::process;
use reactor::Time;
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// The page.
pub(crate) const PAGE: &str = include_str!("live.html");
/// Time between two points.
const EVERY: Duration = Duration::from_secs(1);
/// Points of an hour.
const POINTS_MAX: usize = 3600;
/// Somebody looks at the page if it was asked for within this time.
const LOOKED_WITHIN: Duration = Duration::from_secs(5);
/// Most clients that are listed; of more the console finds single ones.
const LISTED_MAX: usize = 20_000;
/// Lines of a list.
const LINES_MAX: usize = 20;
/// Tables of the console that the page shows as they are.
const TABLES: [&str; 15] = [
    "groups",
    "users",
    "queues",
    "errors",
    "memory",
    "servers",
    "fleet",
    "refusals",
    "running",
    "transactions",
    "holders",
    "clients",
    "statements",
    "recent_statements",
    "recent_users",
];
/// Lines of a table on the page.
const ROWS_MAX: usize = 200;
/// Points that `onramp top` draws: five minutes.
const TOP_POINTS: usize = 300;

/// Data of the page: made by [`keep`], read by whoever asks.
#[derive(Default)]
pub(crate) struct Live {
    shown: Mutex<Shown>,
    /// Source of tables, once the groups serve.
    source: OnceLock<Arc<Console>>,
    /// Moments of the last questions for the page's figures, and the last hour's; each a [`Time`].
    asked: AtomicU64,
    history_asked: AtomicU64,
}

#[derive(Clone, Debug, Default)]
struct Shown {
    live: Arc<str>,
    history: Arc<str>,
}

impl Live {
    /// Current data of the page; empty until the groups serve.
    pub(crate) fn live(&self) -> Arc<str> {
        self.asked.store(Time::now().0, Relaxed);
        self.shown().live
    }

    /// The last hour.
    pub(crate) fn history(&self) -> Arc<str> {
        self.history_asked.store(Time::now().0, Relaxed);
        self.shown().history
    }

    /// A table of the console, as JSON: by its name, or a list of them all where that is empty.
    /// `None` where there is no such table. Groups may be asked, so that it takes a while.
    pub(crate) fn table(&self, name: &str) -> Option<Result<String, String>> {
        let Some(source) = self.source.get() else {
            return Some(Err("the pool does not serve yet".into()));
        };
        let tables = (source.tables().iter()).filter(|table| table.schema == DEFAULT_SCHEMA);
        if name.is_empty() {
            let list = tables.map(|table| json!({"name": table.name, "help": table.help}));
            return Some(Ok(Json::from_iter(list).to_string()));
        }
        let table = tables.into_iter().find(|table| table.name == name)?;
        let rows = source.rows_of(table, &source.sample());
        Some(rows.map(|rows| as_json(table, rows).to_string()))
    }

    /// Carries out a command of the console, which waits for groups.
    pub(crate) fn command(&self, text: &[u8]) -> Result<String, String> {
        let source = self.source.get().ok_or("the pool does not serve yet")?;
        let action = console::command(text, &**source)?;
        let done = source.act("http", &action).map_err(|why| why.to_string());
        if done.is_ok() {
            source.has_answered(&action);
        }
        done
    }

    fn shown(&self) -> Shown {
        (self.shown.lock().unwrap_or_else(PoisonError::into_inner)).clone()
    }

    fn is_looked_at(&self) -> bool {
        is_recent(&self.asked)
    }
}

fn is_recent(asked: &AtomicU64) -> bool {
    Time::now().since(Time(asked.load(Relaxed))) < LOOKED_WITHIN
}

/// Keeps what is handed out current, in a thread of its own that ends with the process.
///
/// # Errors
/// A sentence with the system's reason.
pub(crate) fn keep(live: Arc<Live>, source: Arc<Console>) -> Result<(), String> {
    let _ = live.source.set(source.clone());
    let work = move || {
        let mut maker = Maker {
            source,
            host: Watch::default(),
            last: None,
            points: VecDeque::new(),
        };
        loop {
            reactor::pause(EVERY);
            maker.make(&live);
        }
    };
    let builder = std::thread::Builder::new().name("live".into());
    let started = builder.spawn(work);
    (started.map(|_| ())).map_err(|error| format!("cannot start the thread of the page: {error}"))
}

/// The figures of one second. In the history it is a row of numbers in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Point {
    /// Seconds since 1970.
    at: u64,
    statements: f64,
    errors: f64,
    wait_p99_ms: f64,
    service_p50_ms: f64,
    service_p99_ms: f64,
    clients: usize,
    running: usize,
    waiting: usize,
    backends: usize,
    cpu: f64,
}

/// The names of a [`Point`]'s numbers.
const NAMES: [&str; 11] = [
    "at",
    "statements",
    "errors",
    "wait_p99_ms",
    "service_p50_ms",
    "service_p99_ms",
    "clients",
    "running",
    "waiting",
    "backends",
    "cpu",
];

impl Point {
    fn row(&self) -> Json {
        // Milliseconds to the microsecond, rates to a tenth: a history is 150 KB.
        let ms = |value: f64| (value * 1e3).round() / 1e3;
        let rate = |value: f64| (value * 10.0).round() / 10.0;
        json!([
            self.at,
            rate(self.statements),
            rate(self.errors),
            ms(self.wait_p99_ms),
            ms(self.service_p50_ms),
            ms(self.service_p99_ms),
            self.clients,
            self.running,
            self.waiting,
            self.backends,
            ms(self.cpu),
        ])
    }
}

/// Counters at a moment, of which the next point takes the difference.
struct Counted {
    at: Time,
    statements: u64,
    errors: u64,
    wait: Histogram,
    service: Histogram,
    cpu: Duration,
}

impl Counted {
    fn of(view: &GroupView, errors: u64) -> Counted {
        let (mut wait, mut service) = (Histogram::default(), Histogram::default());
        for user in view.figures.users() {
            wait.add(&user.wait);
            service.add(&user.service);
        }
        let counts = &view.census.counts;
        let refusals: u64 = counts.refusals.values().sum();
        Counted {
            at: Time::now(),
            statements: counts.statements,
            errors: errors + refusals,
            wait,
            service,
            cpu: process::own().map_or(Duration::ZERO, |own| own.cpu),
        }
    }

    fn point(&self, since: &Counted, view: &GroupView) -> Point {
        let seconds = self.at.since(since.at).as_secs_f64().max(1e-3);
        let rate = |now: u64, then: u64| now.saturating_sub(then) as f64 / seconds;
        // What waits and runs has waited and run for so long already.
        let (mut wait, mut service) = (
            self.wait.since(&since.wait),
            self.service.since(&since.service),
        );
        wait.add(&view.waiting);
        service.add(&view.running);
        let ms = |times: &Histogram, percent| times.percentile(percent).as_secs_f64() * 1e3;
        Point {
            at: reactor::utc_now().as_secs(),
            statements: rate(self.statements, since.statements),
            errors: rate(self.errors, since.errors),
            wait_p99_ms: ms(&wait, 99.0),
            service_p50_ms: ms(&service, 50.0),
            service_p99_ms: ms(&service, 99.0),
            clients: view.census.clients,
            running: view.stages[Stage::Running as usize],
            waiting: view.census.waiting,
            backends: view.census.backends(),
            cpu: self.cpu.saturating_sub(since.cpu).as_secs_f64() / seconds,
        }
    }
}

struct Maker {
    source: Arc<Console>,
    host: Watch,
    last: Option<Counted>,
    points: VecDeque<Point>,
}

/// Adds the point of a second; the oldest one goes.
fn add_point<P>(points: &mut VecDeque<P>, point: P) {
    if points.len() == POINTS_MAX {
        points.pop_front();
    }
    points.push_back(point);
}

impl Maker {
    fn make(&mut self, live: &Live) {
        let source = self.source.clone();
        let sample = source.sample();
        let Some(pool) = &sample.pool else {
            return;
        };
        let view = &pool.total;
        source.note_figures(&view.figures);
        let (numbers, others) = self.source.server_errors();
        let counted = Counted::of(view, numbers.values().sum::<u64>() + others);
        let host = self.host.look();
        let Some(last) = self.last.replace(counted) else {
            return;
        };
        let Some(counted) = &self.last else { return };
        add_point(&mut self.points, counted.point(&last, view));
        let before = live.shown();
        if !live.is_looked_at() && !before.live.is_empty() {
            return;
        }
        // A page asks for the last hour when it is opened.
        let history = match is_recent(&live.history_asked) || before.history.is_empty() {
            true => self.history().to_string().into(),
            false => before.history,
        };
        let shown = Shown {
            live: self.live(&sample, view, host).to_string().into(),
            history,
        };
        *live.shown.lock().unwrap_or_else(PoisonError::into_inner) = shown;
    }

    fn history(&self) -> Json {
        let rows: Vec<Json> = self.points.iter().map(Point::row).collect();
        json!({ "names": NAMES, "rows": rows })
    }

    fn live(&self, sample: &Sample<'_>, view: &GroupView, host: Host) -> Json {
        let stages = Stage::ALL.map(|stage| (stage.name(), view.stages[stage as usize]));
        let stages: BTreeMap<&str, usize> = stages.into_iter().collect();
        let table = |name: &&str| Some(((*name).to_owned(), self.table(name, sample)?));
        let tables: serde_json::Map<String, Json> = TABLES.iter().filter_map(table).collect();
        let point = self.points.back().map(Point::row);
        let first = self.points.len().saturating_sub(TOP_POINTS);
        let points: Vec<Json> = self.points.range(first..).map(Point::row).collect();
        let sums = match view.census.clients {
            0..=LISTED_MAX => self.source.sums().ok(),
            _ => None,
        };
        let rss = process::own().map_or(0, |own| own.rss_bytes);
        json!({
            "pool": self.source.facts(sample),
            "names": NAMES,
            "point": point,
            "points": points,
            "stages": stages,
            "pinned": view.census.pinned,
            "backends": {
                "dialling": view.census.backends_dialling,
                "idle": view.census.backends_idle,
                "checked_out": view.census.backends_checked_out,
                "max": self.source.backends_max(),
            },
            "rss_bytes": rss,
            "host": host,
            "tables": tables,
            "sources": sums.as_ref().map(sources),
            "pins": sums.as_ref().map(pins),
        })
    }

    /// A table of the console.
    fn table(&self, name: &str, sample: &Sample<'_>) -> Option<Json> {
        let mut tables = self.source.tables().iter();
        let table = tables.find(|table| table.name == name)?;
        let rows = match name {
            // Idle ones are counted by user and address.
            "clients" => self.source.busy_rows(sample, LINES_MAX),
            _ => self.source.rows_of(table, sample),
        };
        let mut rows = rows.ok()?;
        match name {
            // Those of each time by themselves, of which the first are those that take most time.
            "recent_statements" => {
                let mut before = (Value::Null, 0);
                rows.retain(|row| {
                    let is_next = before.0 != row[0];
                    before = (row[0].clone(), if is_next { 1 } else { before.1 + 1 });
                    before.1 <= LINES_MAX
                });
            }
            "statements" | "refusals" | "running" | "transactions" | "holders" => {
                rows.truncate(LINES_MAX);
            }
            _ => rows.truncate(ROWS_MAX),
        }
        Some(as_json(table, rows))
    }
}

/// A table with its columns' names.
fn as_json(table: &Table, rows: Vec<Row>) -> Json {
    let names: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
    let shown = |value: Value| match value {
        Value::Null => Json::Null,
        Value::Integer(number) => number.into(),
        Value::Real(number) => number.into(),
        Value::Text(text) => text.into(),
    };
    let rows = rows.into_iter();
    let rows: Vec<Vec<Json>> = (rows.map(|row| row.into_iter().map(shown).collect())).collect();
    json!({ "names": names, "rows": rows })
}

/// Clients by user and host, those with the most first.
fn sources(sums: &Sums) -> Json {
    let mut all: Vec<_> = sums.sources.iter().collect();
    all.sort_by_key(|(_, counts)| std::cmp::Reverse(counts[0]));
    let rows = all.into_iter().take(LINES_MAX);
    let rows: Vec<Json> = rows
        .map(|((user, host), [clients, running, waiting, pinned])| {
            json!([user, host, clients, running, waiting, pinned])
        })
        .collect();
    json!({
        "names": ["user", "address", "clients", "running", "waiting", "pinned"],
        "rows": rows,
    })
}

/// Pins by reason and statement, those with the most clients first.
fn pins(sums: &Sums) -> Json {
    let mut all: Vec<_> = sums.pins.iter().collect();
    all.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
    let rows = all.into_iter().take(LINES_MAX);
    let rows: Vec<Json> = rows
        .map(|((reason, by), (count, longest))| json!([reason, by, count, longest]))
        .collect();
    json!({ "names": ["reason", "by", "clients", "longest_seconds"], "rows": rows })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::listing::ClientLine;
    use crate::observe::log::Peer;

    fn line(
        user: &str,
        address: &str,
        state: &'static str,
        pin: Option<&'static str>,
    ) -> ClientLine {
        ClientLine {
            id: 1,
            user: Some(user.into()),
            address: Peer::Tcp(address.parse().unwrap()),
            group: 0,
            state,
            state_seconds: 0.0,
            queue: None,
            schema: None,
            thread: None,
            in_transaction: false,
            transaction: None,
            pins: pin.map(|pin| (pin, 2.5)).into_iter().collect(),
            lock_names: Vec::new(),
            pinned_by: pin.map(|_| "SET @x".into()),
            prepared: 0,
            memory_bytes: 0,
            unsent_bytes: 0,
            tls: None,
            program: None,
            connected_seconds: 0.0,
            digest: 0,
            statement: None,
            statements: 0,
            bytes: None,
        }
    }

    #[test]
    fn the_history_has_an_hour() {
        let mut points = VecDeque::new();
        (0..POINTS_MAX + 5).for_each(|second| add_point(&mut points, second));
        assert_eq!((points.len(), points.front()), (POINTS_MAX, Some(&5)));
    }

    #[test]
    fn clients_are_counted_by_user_and_host() {
        let clients = [
            line("a", "192.0.2.1:1", "running", None),
            line("a", "192.0.2.1:2", "waiting", Some("user_lock")),
            line("b", "[2001:db8::1]:3", "idle", Some("user_lock")),
        ];
        let mut sums = Sums::default();
        clients[..2].iter().for_each(|client| sums.add(client));
        let mut page = Sums::default();
        clients[2..].iter().for_each(|client| page.add(client));
        sums.merge(page);
        let rows = &sources(&sums)["rows"];
        let expected = json!([
            ["a", "192.0.2.1", 2, 1, 1, 1],
            ["b", "[2001:db8::1]", 1, 0, 0, 1]
        ]);
        assert_eq!(*rows, expected);
        assert_eq!(
            pins(&sums)["rows"],
            json!([["user_lock", "SET @x", 2, 2.5]])
        );
    }

    #[test]
    fn lists_are_bounded() {
        let mut sums = Sums::default();
        (0..LINES_MAX + 5)
            .map(|n| line("a", &format!("192.0.2.{n}:1"), "idle", None))
            .for_each(|client| sums.add(&client));
        assert_eq!(sources(&sums)["rows"].as_array().unwrap().len(), LINES_MAX);
    }

    #[test]
    fn a_point_is_what_has_happened_since_the_last() {
        let mut view = GroupView::empty(1);
        view.census.counts.statements = 100;
        let before = Counted::of(&view, 1);
        view.census.counts.statements = 300;
        view.census.clients = 7;
        let mut after = Counted::of(&view, 5);
        after.at = before.at + Duration::from_secs(2);
        let point = after.point(&before, &view);
        assert_eq!(
            (point.statements, point.errors, point.clients),
            (100.0, 2.0, 7)
        );
        assert_eq!(point.row().as_array().unwrap().len(), NAMES.len());
    }
}
