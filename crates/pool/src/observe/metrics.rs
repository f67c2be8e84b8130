//! Metrics: every figure that the pool publishes, in one table.
//!
//! A row of [`METRICS`] has the name, the type, the labels, the help and how the figure is read.
//! The text for Prometheus, the JSON, and docs/pool/metrics.md (`page.rs`) are made from it.
//! `ONRAMP_WRITE=1 cargo test -p pool metrics_page` writes the page.
//!
//! Names follow Prometheus: a base unit at the end (`_seconds`, `_bytes`), `_total` behind that of
//! a counter. Invariant: each label has a bounded number of values. They come from enums of this
//! program, from the places of users and accounts (`places.rs`), from the number of groups
//! ([`GROUPS_MAX`]) or from a table with a bound (`totals.rs`); never an address, an id or a text.

mod otlp;
#[cfg(test)]
pub(crate) mod reference;
mod text;

pub(crate) use otlp::{nanoseconds, otlp, text};
pub(crate) use text::{json, openmetrics, prometheus};

use crate::config::{Origin, User};
use crate::errors::reasons::{PinReason, Refusal};
use crate::group::shared::Shared;
use crate::observe::figures::places::{OTHERS, USERS_MAX};
use crate::observe::figures::{GroupView, Histogram, Published, Stage, UserFigures};
use crate::observe::listing::ClientLine;
use crate::observe::telemetry::Outcome;
use crate::scheduler::queue::QueueName;
use measure::process;
use reactor::Time;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Groups that have figures of their own; the others are summed up under `other`.
pub(crate) const GROUPS_MAX: usize = 128;
/// The label of what has none of its own.
const OTHER: &str = "other";

/// Board on which the main thread and the groups publish their figures.
#[derive(Debug)]
pub(crate) struct Board {
    /// Time of day at which the process began to serve.
    began: Duration,
    draining: AtomicBool,
    pool: OnceLock<Source>,
}

/// Source of a pool's figures.
#[derive(Debug)]
struct Source {
    shared: Arc<Shared>,
    groups: Vec<Arc<Published>>,
}

impl Default for Board {
    fn default() -> Board {
        Board {
            began: reactor::utc_now(),
            draining: AtomicBool::new(false),
            pool: OnceLock::new(),
        }
    }
}

impl Board {
    /// Publishes the figures of the groups once they serve.
    pub(crate) fn serves(&self, shared: Arc<Shared>, groups: Vec<Arc<Published>>) {
        let _ = self.pool.set(Source { shared, groups });
    }

    /// Marks the pool as draining: it takes no more clients.
    pub(crate) fn drains(&self) {
        self.draining.store(true, Relaxed);
    }

    /// All figures of this moment.
    pub(crate) fn sample(&self) -> Sample<'_> {
        let pool = self.pool.get().map(|source| {
            let groups: Vec<_> = source.groups.iter().map(|group| group.get()).collect();
            let users = source.shared.settings().users.len();
            let total = GroupView::sum(users, groups.iter().map(|view| &**view));
            PoolSample {
                shared: &source.shared,
                groups,
                total,
            }
        });
        Sample {
            now: Time::now(),
            began: self.began,
            draining: self.draining.load(Relaxed),
            pool,
            busy: OnceCell::new(),
        }
    }
}

/// All figures of a moment.
pub(crate) struct Sample<'a> {
    now: Time,
    began: Duration,
    draining: bool,
    /// `None` until the server has answered.
    pub(crate) pool: Option<PoolSample<'a>>,
    /// Clients that have a backend or wait for one, once they were asked for.
    pub(crate) busy: OnceCell<Vec<ClientLine>>,
}

/// Those of the groups.
pub(crate) struct PoolSample<'a> {
    pub(crate) shared: &'a Shared,
    groups: Vec<Arc<GroupView>>,
    pub(crate) total: GroupView,
}

/// A value as lists show it.
pub(crate) struct PointShown {
    pub(crate) name: &'static str,
    pub(crate) labels: String,
    /// The value; of a histogram the mean in seconds.
    pub(crate) value: f64,
    /// Count of a histogram.
    pub(crate) count: Option<u64>,
    pub(crate) p99: Option<Duration>,
}

/// All values of a sample.
pub(crate) fn points(sample: &Sample<'_>) -> Vec<PointShown> {
    let mut shown = Vec::new();
    for metric in METRICS {
        for point in metric.points(sample) {
            let labels = point.labels.iter();
            let labels: Vec<String> = labels
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            let (value, count, p99) = match point.value {
                PointValue::Number(number) => (number, None, None),
                PointValue::Times(times) => (
                    times.mean().as_secs_f64(),
                    Some(times.count()),
                    Some(times.percentile(99.0)),
                ),
            };
            shown.push(PointShown {
                name: metric.name,
                labels: labels.join(", "),
                value,
                count,
                p99,
            });
        }
    }
    shown
}

impl PoolSample<'_> {
    /// Each group's view.
    pub(crate) fn groups(&self) -> &[Arc<GroupView>] {
        &self.groups
    }
}

impl Sample<'_> {
    /// Time of day at which the process began to serve.
    pub(crate) fn began(&self) -> Duration {
        self.began
    }

    /// Reason why the pool should not be sent clients, if so.
    pub(crate) fn unready(&self) -> Option<String> {
        if self.draining {
            return Some("draining: new clients belong elsewhere".into());
        }
        let Some(pool) = &self.pool else {
            return Some("starting: the server has not answered yet".into());
        };
        if let Some(why) = pool.shared.upstream.no_writer() {
            return Some(format!("no server is written to: {why}"));
        }
        let since = pool.shared.upstream.failing_since()?;
        let seconds = self.now.since(since).as_secs();
        Some(format!("the server cannot be reached, for {seconds} s now"))
    }

    /// True between PAUSE and RESUME.
    pub(crate) fn is_paused(&self) -> bool {
        let pool = self.pool.as_ref();
        pool.is_some_and(|pool| pool.shared.scheduling.is_paused())
    }

    /// Group that has not turned for so long that something is wrong with it, if any.
    pub(crate) fn unhealthy(&self, longest: Duration) -> Option<String> {
        let groups = self.pool.iter().flat_map(|pool| &pool.groups);
        let stands = groups.map(|view| self.now.since(view.at)).enumerate();
        let (group, stands) = stands.max_by_key(|(_, stands)| *stands)?;
        let seconds = stands.as_secs();
        // A group that has ended in a drain turns no more.
        (stands > longest && !self.draining)
            .then(|| format!("group {group} has not turned for {seconds} s"))
    }
}

/// Type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Counter,
    Gauge,
    Histogram,
}

impl Type {
    fn name(self) -> &'static str {
        match self {
            Type::Counter => "counter",
            Type::Gauge => "gauge",
            Type::Histogram => "histogram",
        }
    }
}

/// A figure.
pub(crate) struct Metric {
    pub(crate) name: &'static str,
    pub(crate) kind: Type,
    pub(crate) labels: &'static [&'static str],
    pub(crate) help: &'static str,
    read: Reading,
}

/// Way of reading it.
enum Reading {
    /// Figures of the process, at any time.
    Process(fn(&Sample<'_>, &mut Points)),
    /// Once the groups serve.
    Pool(fn(&PoolSample<'_>, &mut Points)),
}

/// One value with its labels.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Point {
    labels: Vec<(&'static str, String)>,
    value: PointValue,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PointValue {
    Number(f64),
    Times(Histogram),
}

/// The values of one metric.
struct Points {
    names: &'static [&'static str],
    points: Vec<Point>,
}

/// A count as a figure; exact up to 2^53.
trait Figure {
    fn figure(self) -> f64;
}

impl Figure for u64 {
    fn figure(self) -> f64 {
        self as f64
    }
}

impl Figure for usize {
    fn figure(self) -> f64 {
        self as f64
    }
}

impl Figure for bool {
    fn figure(self) -> f64 {
        f64::from(u8::from(self))
    }
}

impl Figure for Duration {
    fn figure(self) -> f64 {
        self.as_secs_f64()
    }
}

impl Figure for f64 {
    fn figure(self) -> f64 {
        self
    }
}

impl Points {
    fn put(&mut self, values: &[&str], value: PointValue) {
        debug_assert_eq!(values.len(), self.names.len());
        let labels = self.names.iter().zip(values);
        let labels = labels.map(|(name, value)| (*name, (*value).to_owned()));
        self.points.push(Point {
            labels: labels.collect(),
            value,
        });
    }

    fn set(&mut self, values: &[&str], figure: impl Figure) {
        self.put(values, PointValue::Number(figure.figure()));
    }

    fn times(&mut self, values: &[&str], times: &Histogram) {
        self.put(values, PointValue::Times(times.clone()));
    }
}

/// A user of the settings or an account of the server that has a place among the figures, or those
/// that have none.
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) place: usize,
    pub(crate) clients: usize,
    pub(crate) clients_max: Option<usize>,
}

impl Named {
    /// A user of the settings, whose figures are in this place.
    pub(crate) fn of_user(user: &User, place: usize) -> Named {
        Named {
            name: user.name.clone(),
            place,
            clients: user.usage.clients.load(Relaxed),
            clients_max: user.limits.clients_max,
        }
    }
}

impl PoolSample<'_> {
    /// Users and accounts by their places. Entries of the settings that stand for accounts of the
    /// server have no figures: these have them.
    pub(crate) fn users(&self) -> Vec<Named> {
        let settings = self.shared.settings();
        let clients = |user: &User| user.usage.clients.load(Relaxed);
        let users = settings.users.iter().enumerate();
        let users = users.filter(|(_, user)| user.origin != Origin::Server);
        let (first, rest): (Vec<_>, Vec<_>) = users.partition(|(place, _)| *place < USERS_MAX);
        let first = first.into_iter();
        let mut named: Vec<Named> = first
            .map(|(place, user)| Named::of_user(user, place))
            .collect();
        let of_server = self.shared.logins.accounts.of_server();
        for (place, name) in
            (usize::from(OTHERS) + 1..).zip(self.shared.connections.account_places.all())
        {
            let rule = settings.server_account(&name);
            named.push(Named {
                clients: of_server.clients_of(&name),
                clients_max: rule.and_then(|rule| settings.users[rule].limits.clients_max),
                name,
                place,
            });
        }
        let others = self.figures_of(usize::from(OTHERS));
        if !rest.is_empty() || others.is_some_and(|others| others.wait.count() > 0) {
            // A user may be called so.
            let mut name = OTHER.to_owned();
            while named.iter().any(|named| named.name == name) {
                name.push('_');
            }
            named.push(Named {
                name,
                place: OTHERS.into(),
                clients: rest.into_iter().map(|(_, user)| clients(user)).sum(),
                clients_max: None,
            });
        }
        named
    }

    /// Figures in a place.
    pub(crate) fn figures_of(&self, place: usize) -> Option<&UserFigures> {
        self.total.figures.users().get(place)
    }

    /// Sets a figure for each user.
    fn each_user(&self, mut set: impl FnMut(&str, &UserFigures)) {
        let none = UserFigures::default();
        for user in self.users() {
            set(&user.name, self.figures_of(user.place).unwrap_or(&none));
        }
    }

    fn each_group(&self, out: &mut Points, of: fn(&GroupView) -> f64) {
        each_group(&self.groups, out, of);
    }
}

/// Sets a figure for each of these values of a label. What has not happened yet is 0: a figure that
/// appears with its first event has no increase that could be seen.
fn each_of<F: Figure + Copy + Default>(
    names: impl Iterator<Item = &'static str>,
    counted: &BTreeMap<&'static str, F>,
    out: &mut Points,
) {
    let mut all: BTreeMap<&str, F> = names.map(|name| (name, F::default())).collect();
    all.extend(counted.iter().map(|(name, count)| (*name, *count)));
    for (name, count) in all {
        out.set(&[name], count);
    }
}

/// Sets a figure for each group, and the sum of those that have no place of their own.
fn each_group(groups: &[Arc<GroupView>], out: &mut Points, of: fn(&GroupView) -> f64) {
    for (index, view) in groups.iter().take(GROUPS_MAX).enumerate() {
        out.set(&[&index.to_string()], of(view));
    }
    if groups.len() > GROUPS_MAX {
        let others = groups[GROUPS_MAX..].iter();
        out.set(&[OTHER], others.map(|view| of(view)).sum::<f64>());
    }
}

macro_rules! metrics {
    ($(
        $kind:ident $from:ident $name:literal [$($label:literal),*] $help:literal $read:expr;
    )*) => {
        /// All metrics, in the order in which they are shown.
        pub(crate) static METRICS: &[Metric] = &[$(
            Metric {
                name: $name,
                kind: Type::$kind,
                labels: &[$($label),*],
                help: $help,
                read: Reading::$from($read),
            },
        )*];
    };
}

metrics! {
    Gauge Process "onramp_build_info" ["version"]
        "Always 1; the version of the program."
        |_, out| out.set(&[env!("CARGO_PKG_VERSION")], true);
    Gauge Process "onramp_pool_ready" []
        "1 if the pool takes clients and the server answers, as /readyz says."
        |sample, out| out.set(&[], sample.unready().is_none());
    Gauge Process "onramp_pool_draining" []
        "1 during a drain."
        |sample, out| out.set(&[], sample.draining);
    Gauge Pool "onramp_pool_paused" []
        "1 between PAUSE and RESUME at the console."
        |pool, out| out.set(&[], pool.shared.scheduling.is_paused());
    Gauge Pool "onramp_pool_rules" []
        "Digests with a rule (SHOW RULES)."
        |pool, out| out.set(&[], pool.shared.scheduling.rules.get().len());
    Gauge Process "process_start_time_seconds" []
        "Start of service, in seconds since 1970."
        |sample, out| out.set(&[], sample.began);
    Counter Process "process_cpu_seconds_total" []
        "CPU time of the process, user and system."
        |_, out| if let Ok(own) = process::own() {
            out.set(&[], own.cpu);
        };
    Gauge Process "process_resident_memory_bytes" []
        "Resident memory of the process."
        |_, out| if let Ok(own) = process::own() {
            out.set(&[], own.rss_bytes);
        };

    Gauge Pool "onramp_pool_server_info" ["flavour", "version"]
        "Always 1; the server's kind and version at the pool's start."
        |pool, out| {
            let server = &pool.shared.server;
            let is_mysql = server.flavour.is_mysql();
            let flavour = if is_mysql { "mysql" } else { "mariadb" };
            out.set(&[flavour, server.version_shown()], true);
        };
    Gauge Pool "onramp_pool_server_up" []
        "1 if the server can be reached."
        |pool, out| out.set(&[], pool.shared.upstream.failing_since().is_none());
    Gauge Pool "onramp_pool_server_state" ["server", "state"]
        "Always 1: the state of each of several servers, as in SHOW SERVERS."
        |pool, out| for server in pool.shared.cluster.iter().flat_map(|cluster| cluster.shown()) {
            out.set(&[&server.name, server.state.word()], true);
        };
    Gauge Pool "onramp_pool_server_lag_seconds" ["server"]
        "Lag of each of several servers that replicates, if it is known."
        |pool, out| for server in pool.shared.cluster.iter().flat_map(|cluster| cluster.shown()) {
            if let Some(lag) = server.lag {
                out.set(&[&server.name], lag);
            }
        };
    Gauge Pool "onramp_pool_fleet_backends" ["seat", "of"]
        "Backends of each pool of the fleet: its demand, what it holds, its share."
        |pool, out| for it in pool.shared.connections.fleet.iter().flat_map(|fleet| fleet.seats()) {
            let seat = it.seat.to_string();
            for (of, number) in [("demand", it.demand), ("held", it.held), ("share", it.share)] {
                out.set(&[&seat, of], number as usize);
            }
        };
    Counter Pool "onramp_pool_reads_total" ["server"]
        "Statements that each of several servers has answered as a reader."
        |pool, out| for server in pool.shared.cluster.iter().flat_map(|cluster| cluster.shown()) {
            out.set(&[&server.name], server.reads);
        };
    Counter Pool "onramp_pool_routes_total" ["why"]
        "Statements of clients that read elsewhere: read and read_only went to a reader (with \
         read_dry_run they would have), all others to the writer."
        |pool, out| for cluster in pool.shared.cluster.iter() {
            for (why, count) in cluster.reads().counted() {
                out.set(&[why.word()], count);
            }
        };
    Counter Pool "onramp_pool_reads_behind_total" []
        "Reads whose reader had not caught up within read_wait_ms_max."
        |pool, out| {
            let reads = pool.shared.cluster.as_ref().map(|cluster| cluster.reads());
            out.set(&[], reads.map_or(0, |reads| reads.behind.load(Relaxed)));
        };
    Counter Pool "onramp_pool_reads_again_total" []
        "Reads that ran once more, on the writer."
        |pool, out| {
            let reads = pool.shared.cluster.as_ref().map(|cluster| cluster.reads());
            out.set(&[], reads.map_or(0, |reads| reads.again.load(Relaxed)));
        };
    Counter Pool "onramp_pool_writer_moves_total" []
        "Changes of which of several servers is written to, also to none."
        |pool, out| {
            out.set(&[], pool.shared.cluster.as_ref().map_or(0, |cluster| cluster.epoch()));
        };
    Counter Pool "onramp_pool_server_outages_total" []
        "Outages of the server that have ended."
        |pool, out| out.set(&[], pool.shared.upstream.returns());

    Gauge Pool "onramp_pool_clients" ["state"]
        "Clients by state: logging_in, idle, holding (between statements, with a backend), \
         waiting (in a queue), running, killing, delayed (after a failed login) or leaving."
        |pool, out| for stage in Stage::ALL {
            out.set(&[stage.name()], pool.total.stages[stage as usize]);
        };
    Gauge Pool "onramp_pool_user_clients" ["user"]
        "Clients that have logged in."
        |pool, out| for user in pool.users() {
            out.set(&[&user.name], user.clients);
        };
    Gauge Pool "onramp_pool_clients_max" []
        "The setting clients_max."
        |pool, out| out.set(&[], pool.shared.settings().clients_max);
    Gauge Pool "onramp_pool_pinned_clients" ["reason"]
        "Clients that are pinned now; one may have several reasons."
        |pool, out| each_of(PinReason::all().map(PinReason::name), &pool.total.pinned, out);
    Counter Pool "onramp_pool_connections_accepted_total" []
        "Connections accepted from clients."
        |pool, out| out.set(&[], pool.total.census.counts.accepted);
    Counter Pool "onramp_pool_addresses_uncounted_total" []
        "Connections not counted by limits by address, because their table was full."
        |pool, out| out.set(&[], pool.shared.logins.address_limits.uncounted());
    Counter Pool "onramp_pool_accept_failures_total" []
        "Accepts that failed for lack of descriptors or memory."
        |pool, out| out.set(&[], pool.total.census.counts.accept_failures);
    Counter Pool "onramp_pool_logins_total" []
        "Logins that succeeded."
        |pool, out| out.set(&[], pool.total.census.counts.logins);
    Counter Pool "onramp_pool_login_failures_total" []
        "Logins with a wrong name or password."
        |pool, out| out.set(&[], pool.total.census.counts.denied);
    Counter Pool "onramp_pool_audit_lines_lost_total" []
        "Lines of the audit trail (audit_log) that could not be written, or not in time."
        |pool, out| out.set(&[], pool.shared.records.audit.lost());
    Counter Pool "onramp_pool_clients_closed_total" ["reason"]
        "Clients closed by the pool: memory (more than their share), slow_reader (did not read \
         while others waited), idle (idle_s_max, wait_timeout), time_limit, input_stalled (stopped \
         within a long command)."
        |pool, out| {
            let counts = &pool.total.census.counts;
            out.set(&["memory"], counts.memory_closed);
            out.set(&["slow_reader"], counts.slow_closed);
            out.set(&["idle"], counts.idle_closed);
            out.set(&["time_limit"], counts.too_slow);
            out.set(&["input_stalled"], counts.input_stalled);
        };

    Counter Pool "onramp_pool_statements_total" []
        "Statements with a complete reply."
        |pool, out| out.set(&[], pool.total.census.counts.statements);
    Counter Pool "onramp_pool_user_statement_errors_total" ["user"]
        "Statements that ended with an error of the server."
        |pool, out| pool.each_user(|name, user| out.set(&[name], user.errors));
    Counter Pool "onramp_pool_server_errors_total" ["number"]
        "Statements that ended with an error of the server, by its number."
        |pool, out| {
            let (numbers, others) = pool.shared.records.errors.read();
            for (number, count) in numbers {
                out.set(&[&number.to_string()], count);
            }
            out.set(&[OTHER], others);
        };
    Counter Pool "onramp_pool_refused_total" []
        "Clients and statements refused by the pool."
        |pool, out| out.set(&[], pool.total.census.counts.refused);
    Counter Pool "onramp_pool_refusals_total" ["account", "reason"]
        "Refused clients and statements, and failed logins, by account (empty: of no account) and \
         reason (SHOW REFUSALS); at most 1,000 of them, then of account (others)."
        |pool, out| for ((account, reason), refused) in pool.shared.records.refusals.all() {
            out.set(&[&account, reason], refused.count);
        };
    Counter Pool "onramp_pool_errors_total" ["reason"]
        "Errors made by the pool."
        |pool, out| {
            let names = Refusal::names().into_iter();
            each_of(names, &pool.total.census.counts.refusals, out);
        };
    Histogram Pool "onramp_pool_wait_seconds" ["user"]
        "Time from a statement's arrival until it was sent to the server; 0 if it did not wait."
        |pool, out| pool.each_user(|name, user| out.times(&[name], &user.wait));
    Histogram Pool "onramp_pool_service_seconds" ["user"]
        "Time from sending a statement to the last byte of its reply."
        |pool, out| pool.each_user(|name, user| out.times(&[name], &user.service));

    Gauge Pool "onramp_pool_waiting" []
        "Statements and logins in queues."
        |pool, out| out.set(&[], pool.total.census.waiting);
    Gauge Pool "onramp_pool_running_max" []
        "Statements that may run at once, over all groups (oversubscribe)."
        |pool, out| out.set(&[], pool.shared.running_max(&pool.shared.settings()));
    Histogram Pool "onramp_pool_queue_wait_seconds" ["queue"]
        "Time in a queue of those that had to wait: login, high, low, or held (with a backend, \
         under high_prio_mode none)."
        |pool, out| for queue in QueueName::ALL {
            let name = if queue == QueueName::Held { "held" } else { queue.name() };
            out.times(&[name], pool.total.figures.queue(queue));
        };
    Counter Pool "onramp_pool_waited_total" []
        "Statements and logins that had to wait in a queue."
        |pool, out| out.set(&[], pool.total.census.counts.waited);
    Counter Pool "onramp_pool_kicked_up_total" []
        "Statements of low priority that were moved up after prio_kickup_ms."
        |pool, out| out.set(&[], pool.total.census.counts.kicked_up);
    Counter Pool "onramp_pool_gave_up_total" []
        "Clients that disconnected while their statement waited; it was not executed."
        |pool, out| out.set(&[], pool.total.census.counts.gave_up);
    Counter Pool "onramp_pool_pipelined_total" []
        "Statements sent behind another client's statement in flight (pipeline_max)."
        |pool, out| out.set(&[], pool.total.census.counts.pipelined);
    Counter Pool "onramp_pool_pipelined_again_total" []
        "Pipelined statements that ran again, because the one in front changed their session."
        |pool, out| out.set(&[], pool.total.census.counts.pipelined_again);
    Counter Pool "onramp_pool_pins_total" ["reason"]
        "Times that a client was pinned."
        |pool, out| {
            let names = PinReason::all().map(PinReason::name);
            each_of(names, &pool.total.census.counts.pins, out);
        };
    Counter Pool "onramp_pool_restores_total" []
        "Times that a backend was changed to another session's state."
        |pool, out| out.set(&[], pool.total.census.counts.restored);
    Counter Pool "onramp_pool_round_trips_saved_total" []
        "Restores sent in one write with the statement, without a round trip of their own."
        |pool, out| out.set(&[], pool.total.census.counts.restored_in_front);
    Counter Pool "onramp_pool_transactions_deferred_total" []
        "Transactions whose BEGIN was answered locally (defer_begin)."
        |pool, out| out.set(&[], pool.total.census.counts.transactions_deferred);
    Counter Pool "onramp_pool_transactions_unsent_total" []
        "Deferred transactions that ended before a statement."
        |pool, out| out.set(&[], pool.total.census.counts.transactions_unsent);
    Counter Pool "onramp_pool_ends_spared_total" []
        "COMMIT and ROLLBACK without a transaction, answered locally."
        |pool, out| out.set(&[], pool.total.census.counts.ends_spared);
    Counter Pool "onramp_pool_sets_spared_total" []
        "SET of variables to their present values, answered locally."
        |pool, out| out.set(&[], pool.total.census.counts.sets_spared);
    Counter Pool "onramp_pool_rolled_back_total" []
        "Transactions of disconnected clients, rolled back on a backend that stays open."
        |pool, out| out.set(&[], pool.total.census.counts.rolled_back);
    Counter Pool "onramp_pool_read_backs_total" []
        "Queries of the pool that read session state back after a statement."
        |pool, out| out.set(&[], pool.total.census.counts.questions);
    Counter Pool "onramp_pool_read_back_properties_total" []
        "Properties of sessions read back by these queries."
        |pool, out| out.set(&[], pool.total.census.counts.properties_asked);
    Counter Pool "onramp_pool_resets_total" []
        "Resets of a backend's session, for a user variable that its client had never set."
        |pool, out| out.set(&[], pool.total.census.counts.resets);
    Counter Pool "onramp_pool_stored_code_total" ["code"]
        "Statements that ran stored code: known, or unread."
        |pool, out| {
            out.set(&["known"], pool.total.census.counts.code_known);
            out.set(&["unread"], pool.total.census.counts.code_unread);
        };
    Counter Pool "onramp_pool_abandoned_total" []
        "Statements killed because their clients disconnected."
        |pool, out| out.set(&[], pool.total.census.counts.abandoned);

    Gauge Pool "onramp_pool_backends" ["state"]
        "Connections to the server: dialling (being opened), idle, checked_out (used by a client)."
        |pool, out| {
            out.set(&["dialling"], pool.total.census.backends_dialling);
            out.set(&["idle"], pool.total.census.backends_idle);
            out.set(&["checked_out"], pool.total.census.backends_checked_out);
        };
    Gauge Pool "onramp_pool_backends_max" []
        "The setting backends_max."
        |pool, out| out.set(&[], pool.shared.settings().backends_max);
    Gauge Pool "onramp_pool_pinned_backends" []
        "Backends held by pinned clients."
        |pool, out| out.set(&[], pool.total.census.pinned);
    Counter Pool "onramp_pool_dials_total" []
        "Attempts to connect to the server."
        |pool, out| out.set(&[], pool.total.census.counts.dialled);
    Counter Pool "onramp_pool_dial_failures_total" []
        "Failed attempts to connect to the server."
        |pool, out| out.set(&[], pool.total.census.counts.dial_failures);
    Counter Pool "onramp_pool_backends_lost_total" []
        "Connections to the server lost."
        |pool, out| out.set(&[], pool.total.census.counts.backends_lost);
    Counter Pool "onramp_pool_backends_trimmed_total" []
        "Connections to the server closed for being idle or old."
        |pool, out| out.set(&[], pool.total.census.counts.trimmed);
    Counter Pool "onramp_pool_backends_lent_total" []
        "Connections to the server closed because another group needed one."
        |pool, out| out.set(&[], pool.total.census.counts.lent);
    Counter Pool "onramp_pool_stalls_total" []
        "Times that a backend exceeded stall_ms_max while others waited."
        |pool, out| out.set(&[], pool.total.census.counts.stalled);

    Gauge Pool "onramp_pool_client_memory_bytes" []
        "Memory for clients: sessions, commands, replies, prepared statements, variables."
        |pool, out| out.set(&[], pool.total.census.memory_bytes);
    Gauge Pool "onramp_pool_client_memory_max_bytes" []
        "Limit of memory for clients (memory_bytes_max)."
        |pool, out| out.set(&[], pool.shared.retained.memory.max());
    Gauge Pool "onramp_pool_input_bytes" []
        "Bytes of commands that are incomplete or wait."
        |pool, out| out.set(&[], pool.total.census.input_bytes);
    Counter Pool "onramp_pool_input_waited_total" []
        "Commands that waited for room before the rest was read (input_bytes_max)."
        |pool, out| out.set(&[], pool.total.census.counts.input_waited);
    Gauge Pool "onramp_pool_user_variables_bytes" []
        "Bytes of clients' user variables."
        |pool, out| out.set(&[], pool.total.census.variables_bytes);
    Gauge Pool "onramp_pool_slow_readers" []
        "Backends held up by slow readers."
        |pool, out| out.set(&[], pool.total.census.slow_readers);
    Gauge Pool "onramp_pool_spooled_clients" []
        "Clients whose reply is in the spool."
        |pool, out| out.set(&[], pool.total.census.spooled_clients);
    Gauge Pool "onramp_pool_spool_bytes" []
        "Bytes in the spool."
        |pool, out| out.set(&[], pool.total.census.spooled_bytes);
    Gauge Pool "onramp_pool_spool_max_bytes" []
        "The setting spool_bytes_max."
        |pool, out| out.set(&[], pool.shared.settings().spool_bytes_max);
    Counter Pool "onramp_pool_spooled_total" []
        "Replies moved to the spool."
        |pool, out| out.set(&[], pool.total.census.counts.spooled);

    Counter Pool "onramp_pool_otel_requests_total" ["result"]
        "Requests to the OpenTelemetry collector: ok or failed."
        |pool, out| if let Some(telemetry) = &pool.shared.records.telemetry {
            out.set(&["ok"], telemetry.requests(true));
            out.set(&["failed"], telemetry.requests(false));
        };
    Counter Pool "onramp_pool_otel_spans_total" ["outcome"]
        "Spans: sent, left_out (queue full), rejected (by the collector), or given_up \
         (unreachable for too long)."
        |pool, out| if let Some(telemetry) = &pool.shared.records.telemetry {
            for outcome in Outcome::ALL {
                out.set(&[outcome.name()], telemetry.spans.counted(outcome));
            }
        };
    Counter Pool "onramp_pool_otel_log_records_total" ["outcome"]
        "Lines of the log for the collector (otel.logs); outcomes as for spans."
        |pool, out| if let Some(telemetry) = &pool.shared.records.telemetry
            && let Some(records) = &telemetry.records
        {
            for outcome in Outcome::ALL {
                out.set(&[outcome.name()], records.counted(outcome));
            }
        };

    Gauge Pool "onramp_pool_groups" []
        "Groups: threads that serve clients."
        |pool, out| out.set(&[], pool.groups.len());
    Histogram Pool "onramp_pool_turn_seconds" []
        "Length of a turn; a statement may be late by one."
        |pool, out| out.times(&[], &pool.total.turns.lengths);
    Counter Pool "onramp_pool_group_busy_seconds_total" ["group"]
        "Time spent in turns; its rate is the saturation of the group's thread, 1 at most."
        |pool, out| pool.each_group(out, |view| view.turns.lengths.sum().figure());
    Counter Pool "onramp_pool_group_turns_total" ["group"]
        "Turns of a group."
        |pool, out| pool.each_group(out, |view| view.turns.lengths.count().figure());
    Counter Pool "onramp_pool_group_publishing_seconds_total" ["group"]
        "Time spent copying figures for readers."
        |pool, out| pool.each_group(out, |view| view.turns.publishing.figure());
    Gauge Pool "onramp_pool_group_clients" ["group"]
        "Clients of a group; /proc/PID/fd does not show their descriptors."
        |pool, out| pool.each_group(out, |view| view.census.clients.figure());
    Gauge Pool "onramp_pool_group_clients_max" []
        "Clients that fit into a group's descriptor table."
        |pool, out| out.set(&[], pool.shared.clients_per_group());
    Gauge Pool "onramp_pool_group_backends" ["group"]
        "A group's connections to the server."
        |pool, out| pool.each_group(out, |view| view.census.backends().figure());
    Gauge Pool "onramp_pool_group_waiting" ["group"]
        "Statements and logins in a group's queues."
        |pool, out| pool.each_group(out, |view| view.census.waiting.figure());
}

#[cfg(test)]
mod tests;
