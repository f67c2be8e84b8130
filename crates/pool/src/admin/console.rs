//! The console's source: what the pool shows and does for administrators ([`console`]).
//!
//! The tables are in `tables.rs`, those that servers with a thread pool have in `servers.rs`, the
//! commands in `acting.rs`. Sums
//! come from what the groups publish; lists of clients and backends are asked of each group, in
//! pages ([`crate::observe::listing`]).
//!
//! Invariant: a group answers within its turn and waits for nobody; one that does not answer within
//! [`ANSWER_MAX`] is an error of the statement that asks.

use crate::cluster::Cluster;
use crate::config::ConsoleSettings;
use crate::group::shared::{Order, Shared};
use crate::observe::figures::Figures;
use crate::observe::figures::recent::Recent;
use crate::observe::listing::{
    BackendLine, ClientLine, PAGE, Question, Questions, Said, Sums, Wanted,
};
use crate::observe::log::{Event, note};
use crate::observe::metrics::{Board, Sample};
use crate::server::watched::lock_waits::LockWaits;
use console::{Access, Account, Action, Listener, Refused, Row, Source, Table, Value};
use reactor::address::listen_failure;
use reactor::socket::{self, FileAccess};
use reactor::{Address, Sender, Time};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level::raise;
use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

/// Tables in the order of the documentation.
macro_rules! tables {
    ($tables:ident $schema:expr; $(
        $name:literal $help:literal $rows:expr => {
            $($column:literal $of:ident $(($width:literal))? $says:literal,)*
        }
    )*) => {
        pub(crate) static $tables: &[Shown] = &[$(Shown {
            table: Table {
                schema: $schema,
                name: $name,
                help: $help,
                columns: &[$(Column {
                    name: $column,
                    of: Type::$of,
                    width: super::width_of(&[$($width)?]),
                    help: $says,
                },)*],
            },
            rows: $rows,
        },)*];
    };
}

/// Width of a column that has one.
const fn width_of(width: &[usize]) -> Option<usize> {
    match width {
        [width, ..] => Some(*width),
        [] => None,
    }
}

mod acting;
#[cfg(test)]
mod page;
mod recent;
mod running;
mod servers;
mod tables;

/// A group that has not answered after this time is stuck.
const ANSWER_MAX: Duration = Duration::from_secs(2);
/// A server that has not said who waits for locks after this time is not waited for.
const SERVER_ANSWER_MAX: Duration = Duration::from_secs(5);
/// Accounts and hosts whose logins at the console are remembered.
const LOGGED_MAX: usize = 64;
/// Interval after which their next login is logged.
const LOGGED_AGAIN: Duration = Duration::from_secs(3600);
/// Interval at which the groups are asked if all transactions have ended.
const QUIET_EVERY: Duration = Duration::from_millis(5);
/// Connections that may wait to be accepted.
const BACKLOG: i32 = 32;

/// A table and where its rows come from.
struct Shown {
    table: Table,
    rows: fn(&Console, &Sample<'_>) -> Result<Vec<Row>, String>,
}

/// All of them.
static TABLES: LazyLock<Vec<Table>> = LazyLock::new(|| shown().map(|shown| shown.table).collect());

fn shown() -> impl Iterator<Item = &'static Shown> {
    let own = running::TABLES.iter().chain(recent::TABLES);
    let own = own.chain(tables::TABLES).chain(servers::STATUS);
    own.chain(servers::TABLES).chain(servers::PERFORMANCE)
}

/// Source of the console's tables.
pub(crate) struct Console {
    shared: Arc<Shared>,
    board: Arc<Board>,
    groups: Vec<Sender<Order>>,
    questions: Arc<Questions>,
    /// Accounts and hosts whose login has been logged, and when.
    logged: Mutex<VecDeque<(String, Time)>>,
    /// Figures of the last minutes.
    recent: Mutex<Recent>,
}

/// Serves the console where the settings say.
///
/// # Errors
/// A sentence with the setting, the address and the system's reason.
pub(crate) fn serve(
    settings: &ConsoleSettings,
    access: FileAccess,
    source: Arc<Console>,
) -> Result<(), String> {
    let address = &settings.listen;
    let wrong = |error| format!("console.listen: {}", listen_failure(address, &error));
    let (listener, place) = match address {
        Address::Tcp(address) => {
            let listener = TcpListener::bind(address).map_err(wrong)?;
            let place = listener.local_addr().map_err(wrong)?.to_string();
            (Listener::Tcp(listener), place)
        }
        Address::Unix(path) => {
            let listener = socket::listen_unix(path, access, BACKLOG).map_err(wrong)?;
            let listener = UnixListener::from(listener);
            listener.set_nonblocking(false).map_err(wrong)?;
            (Listener::Unix(listener), path.display().to_string())
        }
    };
    let accounts = settings.accounts.iter().map(|account| Account {
        name: account.name.clone(),
        password: account.password.as_bytes().to_vec(),
        access: match account.is_admin {
            true => Access::Admin,
            false => Access::Read,
        },
    });
    console::serve(listener, accounts.collect(), source).map_err(wrong)?;
    note(Event::Console, format_args!("console at {place}"));
    Ok(())
}

/// A question that a group has not answered yet.
struct Awaited<'c> {
    group: usize,
    ticket: u64,
    answer: Receiver<Said>,
    questions: &'c Questions,
}

impl Awaited<'_> {
    fn wait(self) -> Result<Said, String> {
        self.answer.recv_timeout(ANSWER_MAX).map_err(|_| {
            let (group, seconds) = (self.group, ANSWER_MAX.as_secs());
            format!(
                "group {group} has not answered within {seconds} s (SHOW GROUPS says its state)"
            )
        })
    }
}

/// Removes the question; does nothing for an answer that has come.
impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        self.questions.forget(self.ticket);
    }
}

impl Console {
    pub(crate) fn new(
        shared: Arc<Shared>,
        board: Arc<Board>,
        groups: Vec<Sender<Order>>,
        questions: Arc<Questions>,
    ) -> Console {
        Console {
            shared,
            board,
            groups,
            questions,
            logged: Mutex::default(),
            recent: Mutex::new(Recent::since(Time::now())),
        }
    }

    /// Sums of all groups, for the figures of the last minutes.
    pub(crate) fn note_figures(&self, figures: &Figures) {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.note(Time::now(), figures);
    }

    /// All figures of this moment.
    pub(crate) fn sample(&self) -> Sample<'_> {
        self.board.sample()
    }

    /// A table's rows, with the figures of this moment.
    pub(crate) fn rows_of(&self, table: &Table, sample: &Sample<'_>) -> Result<Vec<Row>, String> {
        match shown().find(|shown| shown.table == *table) {
            Some(shown) => (shown.rows)(self, sample),
            None => Err(format!("there is no table {}", table.name)),
        }
    }

    /// Rows of `clients` of those that have a backend or wait for one, for the page.
    pub(crate) fn busy_rows(&self, sample: &Sample<'_>, max: usize) -> Result<Vec<Row>, String> {
        running::busy(self, sample, max)
    }

    /// Asks a group, and does not wait for it.
    fn begin(&self, group: usize, what: Wanted) -> Result<Awaited<'_>, String> {
        let Some(orders) = self.groups.get(group) else {
            return Err(format!("there is no group {group}"));
        };
        let (ticket, answer) = self.questions.ticket();
        orders.send(Order::Ask(Question { ticket, what }));
        Ok(Awaited {
            group,
            ticket,
            answer,
            questions: &self.questions,
        })
    }

    /// Asks one group.
    fn ask(&self, group: usize, what: Wanted) -> Result<Said, String> {
        self.begin(group, what)?.wait()
    }

    /// The server's errors by number, and how many have no place.
    pub(crate) fn server_errors(&self) -> (BTreeMap<u32, u64>, u64) {
        self.shared.records.errors.read()
    }

    /// Backends that there may be now.
    pub(crate) fn backends_max(&self) -> usize {
        self.shared.budget.total()
    }

    /// Facts about the pool, for its page.
    pub(crate) fn facts(&self, sample: &Sample<'_>) -> serde_json::Value {
        let server = &self.shared.server;
        let uptime = reactor::utc_now().saturating_sub(sample.began());
        serde_json::json!({
            "address": self.shared.settings().backend.to_string(),
            "flavour": flavour(&self.shared),
            "version": server.version_shown(),
            "unready": sample.unready(),
            "paused": self.shared.scheduling.is_paused(),
            "onramp": env!("CARGO_PKG_VERSION"),
            "uptime_s": uptime.as_secs(),
        })
    }

    /// All clients, group by group.
    pub(crate) fn clients(&self) -> Result<Vec<ClientLine>, String> {
        self.list(false)
    }

    /// All clients, or those that are busy.
    fn list(&self, busy: bool) -> Result<Vec<ClientLine>, String> {
        let mut lists: Vec<Vec<ClientLine>> = vec![Vec::new(); self.groups.len()];
        let page = |from| Wanted::Clients { from, busy };
        self.for_pages(page, |group, said| match said {
            Said::Clients(lines) => {
                let count = lines.len();
                lists[group].extend(lines);
                count
            }
            _ => 0,
        })?;
        Ok(lists.into_iter().flatten().collect())
    }

    /// All clients, summed up.
    pub(crate) fn sums(&self) -> Result<Sums, String> {
        let mut all = Sums::default();
        let page = |from| Wanted::Sums { from };
        self.for_pages(page, |_, said| match said {
            Said::Sums(sums, count) => {
                all.merge(sums);
                count
            }
            _ => 0,
        })?;
        Ok(all)
    }

    /// Asks all groups for their clients, page by page: they make theirs at the same time. `take`
    /// says how many clients a page has; one that is not full is the last.
    fn for_pages(
        &self,
        wanted: impl Fn(usize) -> Wanted,
        mut take: impl FnMut(usize, Said) -> usize,
    ) -> Result<(), String> {
        let mut unread: Vec<(usize, usize)> = (0..self.groups.len()).map(|g| (g, 0)).collect();
        let mut sum = 0;
        while !unread.is_empty() && sum <= console::ROWS_MAX {
            let ask = |(group, from)| Ok((from, self.begin(group, wanted(from))?));
            let pages = unread.drain(..).map(ask);
            for (from, page) in pages.collect::<Result<Vec<_>, String>>()? {
                let group = page.group;
                let count = take(group, page.wait()?);
                sum += count;
                unread.extend((count == PAGE).then_some((group, from + count)));
            }
        }
        Ok(())
    }

    /// The client of a group that holds most memory.
    fn holder(&self, group: usize) -> Option<ClientLine> {
        match self.ask(group, Wanted::Holder) {
            Ok(Said::Clients(lines)) => lines.into_iter().next(),
            _ => None,
        }
    }

    /// Clients that have a backend or wait for one, asked for once in a sample.
    fn busy<'s>(&self, sample: &'s Sample<'_>) -> Result<&'s [ClientLine], String> {
        match sample.busy.get() {
            Some(busy) => Ok(busy),
            None => {
                let busy = self.list(true)?;
                Ok(sample.busy.get_or_init(|| busy))
            }
        }
    }

    /// Waits for locks, which the server is asked for.
    fn lock_waits(&self) -> LockWaits {
        let Some(answer) = self.shared.watched.lock_questions.ask() else {
            return Err(
                "the server has not answered many such questions: it cannot be asked".into(),
            );
        };
        self.shared.watched.trigger.fire();
        let answer = answer.recv_timeout(SERVER_ANSWER_MAX);
        answer.unwrap_or_else(|_| {
            let seconds = SERVER_ANSWER_MAX.as_secs();
            Err(format!("the server has not answered within {seconds} s"))
        })
    }

    fn backends(&self) -> Result<Vec<BackendLine>, String> {
        let mut all = Vec::new();
        for group in 0..self.groups.len() {
            if let Said::Backends(lines) = self.ask(group, Wanted::Backends)? {
                all.extend(lines);
            }
        }
        Ok(all)
    }

    /// True of an account and a host whose login has not been logged in the last hour: a monitor
    /// logs in every few seconds.
    fn is_new(&self, account: &str, peer: &str) -> bool {
        let host = peer.rsplit_once(':').map_or(peer, |(host, _)| host);
        let (name, now) = (format!("{account}@{host}"), Time::now());
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        logged.retain(|(_, at)| now.since(*at) < LOGGED_AGAIN);
        let is_new = logged.iter().all(|(known, _)| *known != name);
        if is_new {
            if logged.len() == LOGGED_MAX {
                logged.pop_front();
            }
            logged.push_back((name, now));
        }
        is_new
    }

    fn cluster(&self) -> Result<&Cluster, String> {
        let cluster = self.shared.cluster.as_deref();
        cluster.ok_or("there is one server; [[server]] in the settings makes several".into())
    }

    /// Switches the writer to another server during a pause, so that no client's statement meets
    /// the change.
    fn switch_to(&self, name: &str) -> Result<String, String> {
        let cluster = self.cluster()?;
        let switch = cluster.begin_switch(name)?;
        let unchanged = |why| format!("everything goes on where it was: {why}");
        let steps = cluster.approach(&switch).map_err(unchanged)?;
        let pauses = !self.shared.scheduling.set_paused(true);
        Order::Look.tell_all(&self.groups);
        let quiet = self.await_quiet(cluster.switch_max());
        let done = quiet.and_then(|()| cluster.carry_out(&switch, steps));
        if pauses {
            self.shared.scheduling.set_paused(false);
            Order::Look.tell_all(&self.groups);
        }
        match done.map_err(unchanged)? {
            Ok(took) => Ok(format!(
                "'{name}' is written to, after {} ms",
                took.as_millis()
            )),
            Err(lasted) => Err(format!(
                "'{name}' is to be written to from now on, but could not be reached within {} ms \
                 (4 times cluster.switch_ms_max): statements wait; SHOW SERVERS has its state",
                lasted.as_millis()
            )),
        }
    }

    /// Waits until no backend has a transaction or runs a statement.
    fn await_quiet(&self, longest: Duration) -> Result<(), String> {
        let begun = Time::now();
        loop {
            let backends = self.backends()?;
            let busy = |line: &&BackendLine| line.in_transaction || line.in_flight > 0;
            let count = backends.iter().filter(busy).count();
            if count == 0 {
                return Ok(());
            }
            if Time::now().since(begun) > longest {
                return Err(format!(
                    "{count} transactions or statements have not ended within {} ms \
                     (cluster.switch_ms_max); SHOW TRANSACTIONS has them",
                    longest.as_millis()
                ));
            }
            reactor::pause(QUIET_EVERY);
        }
    }
}

impl Source for Console {
    fn tables(&self) -> &'static [Table] {
        &TABLES
    }

    fn rows(&self, table: &Table) -> Result<Vec<Row>, String> {
        self.rows_of(table, &self.sample())
    }

    fn variables(&self) -> Vec<(String, String)> {
        let settings = tables::in_force(&self.shared, &self.shared.settings());
        servers::variables().into_iter().chain(settings).collect()
    }

    fn summary(&self) -> String {
        servers::summary(self, &self.sample())
    }

    fn is_setting(&self, name: &str) -> bool {
        let settings = self.shared.settings();
        settings.shown.iter().any(|setting| setting.name == name)
    }

    fn act(&self, admin: &str, action: &Action) -> Result<String, Refused> {
        let done = self.carry_out(action);
        match &done {
            Ok(_) => note(
                Event::ConsoleCommand,
                format_args!("'{admin}' has said {action}"),
            ),
            Err(why) => note(
                Event::ConsoleCommand,
                format_args!("'{admin}' has said {action}, which was refused: {why}"),
            ),
        }
        done
    }

    fn has_answered(&self, action: &Action) {
        // The main thread does what it does at these signals. Two of a kind would count as one, and
        // the second one ends a drain.
        let signals: &[i32] = match action {
            Action::Drain => &[SIGTERM],
            Action::Shutdown => &[SIGTERM, SIGINT],
            _ => &[],
        };
        for signal in signals {
            if let Err(error) = raise(*signal) {
                note(
                    Event::Failed,
                    format_args!("{action}: cannot raise a signal: {error}"),
                );
            }
        }
    }

    fn logged_in(&self, account: &str, peer: &str, accepted: bool) {
        if accepted && !self.is_new(account, peer) {
            return;
        }
        let (event, what) = match accepted {
            true => (Event::ConsoleLogin, "has logged in"),
            false => (Event::ConsoleDenied, "was denied"),
        };
        note(
            event,
            format_args!("'{account}' from {peer} {what} at the console"),
        );
    }
}

/// Name of the server's product.
fn flavour(shared: &Shared) -> &'static str {
    match shared.server.flavour.is_mysql() {
        true => "mysql",
        false => "mariadb",
    }
}

/// A text.
fn text(text: impl Into<Cow<'static, str>>) -> Value {
    Value::Text(text.into())
}

/// A count.
fn number(number: impl TryInto<i64>) -> Value {
    number.try_into().map_or(Value::Null, Value::Integer)
}

/// True if something is so.
fn flag(on: bool) -> Value {
    number(i64::from(on))
}

/// A digest.
fn digest(digest: u64) -> Value {
    match digest {
        0 => Value::Null,
        _ => text(format!("{digest:016x}")),
    }
}

/// Seconds, rounded to microseconds.
fn seconds(seconds: f64) -> Value {
    Value::Real((seconds * 1e6).round() / 1e6)
}

/// A value that may be missing.
fn maybe<T>(value: Option<T>, shown: impl FnOnce(T) -> Value) -> Value {
    value.map_or(Value::Null, shown)
}
