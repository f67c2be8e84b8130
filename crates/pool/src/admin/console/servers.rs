//! Tables and variables that servers with a thread pool have, for tools that were written for them:
//! `information_schema.THREAD_POOL_*` of MariaDB, `Threadpool_%` of Percona Server and MariaDB,
//! `performance_schema.tp_*` of MySQL (9.7's), and the list of processes.
//!
//! A backend stands for a thread of such a pool. Columns that count what only threads do are 0.
//! Names and order of the columns are compared with the servers' own by a test.

use super::{Console, Shown, flag, maybe, number, text};
use crate::observe::figures::{GroupView, Stage};
use crate::observe::listing::{BackendLine, ClientLine};
use crate::observe::metrics::Sample;
use crate::scheduler::queue::QueueName;
use console::{Column, DEFAULT_SCHEMA, Row, Table, Type, Value};
use reactor::Time;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A group in health turns twice a second.
const STALLED_AFTER: Duration = Duration::from_secs(1);

tables! { STATUS DEFAULT_SCHEMA;
    "status" "A status variable, as in servers with a thread pool." status => {
        "name" Text "its name",
        "value" Text "its value",
    }
}

tables! { TABLES "information_schema";
    "PROCESSLIST" "A client, as a server lists its connections." processes => {
        "Id" Integer(10) "its CONNECTION_ID()",
        "User" Text(12) "its user",
        "Host" Text(21) "its address",
        "db" Text(8) "its default schema",
        "Command" Text(7) "Connect, Sleep or Query",
        "Time" Integer(5) "seconds in its state",
        "State" Text(8) "its state, as in SHOW CLIENTS",
        "Info" Text(24) "text of its statement, as `statement_text` says",
    }
    "THREAD_POOL_GROUPS" "A group, as in MariaDB." groups => {
        "GROUP_ID" Integer "its number",
        "CONNECTIONS" Integer "its clients",
        "THREADS" Integer "its backends",
        "ACTIVE_THREADS" Integer "backends that a client uses",
        "STANDBY_THREADS" Integer "idle backends",
        "QUEUE_LENGTH" Integer "statements and logins that wait",
        "HAS_LISTENER" Integer "1",
        "IS_STALLED" Integer "1 if statements wait and it has made no turn for a second",
    }
    "THREAD_POOL_QUEUES" "A client that waits, as in MariaDB." queues => {
        "GROUP_ID" Integer "its group",
        "POSITION" Integer "its place in the group's queue, from 0, the longest wait first",
        "PRIORITY" Integer "0 for high priority and logins, 1 for low priority",
        "CONNECTION_ID" Integer "its CONNECTION_ID()",
        "QUEUEING_TIME_MICROSECONDS" Integer "time that it has waited",
    }
    "THREAD_POOL_STATS" "Counters of a group, as in MariaDB." stats => {
        "GROUP_ID" Integer "its number",
        "THREAD_CREATIONS" Integer "backends opened",
        "THREAD_CREATIONS_DUE_TO_STALL" Integer "0",
        "WAKES" Integer "its turns",
        "WAKES_DUE_TO_STALL" Integer "0",
        "THROTTLES" Integer "0",
        "STALLS" Integer "times that a backend sent nothing for stall_ms_max",
        "POLLS_BY_LISTENER" Integer "its turns",
        "POLLS_BY_WORKER" Integer "0",
        "DEQUEUES_BY_LISTENER" Integer "statements that did not wait",
        "DEQUEUES_BY_WORKER" Integer "statements that waited",
    }
    "THREAD_POOL_WAITS" "Reasons for waits, as in MariaDB." waits => {
        "REASON" Text "UNKNOWN: the pool does not see the server's waits",
        "COUNT" Integer "times that a backend sent nothing for stall_ms_max",
    }
}

tables! { PERFORMANCE "performance_schema";
    "tp_connections" "A client, as a connection of MySQL's thread pool." connections => {
        "CONNECTION_ID" Integer "its CONNECTION_ID()",
        "TP_GROUP_ID" Integer "its group",
        "TP_PROCESSING_THREAD_NUMBER" Integer "its backend's TP_THREAD_NUMBER, if it has one",
        "THREAD_ID" Integer "its backend's THREAD_ID, if it has one",
        "STATE" Text "Established (logging in), Armed (idle), Queued (waiting), Attached (with a \
                      backend) or Killed",
        "ACTIVE_FLAG" Integer "1 if it has a backend",
        "KILLED_STATE" Text "empty",
        "CLEANUP_STATE" Text "empty",
        "TIME_OF_LAST_EVENT_COMPLETION" Integer "0",
        "TIME_OF_EXPIRY" Integer "0",
        "TIME_OF_ADD" Integer "0",
        "TIME_OF_POP" Integer "0",
        "TIME_OF_ARM" Integer "0",
        "CONNECT_HANDLER_INDEX" Integer "0",
        "TYPE" Text "User",
        "DIRECT_QUERY_EVENTS" Integer "0: the pool counts by group",
        "QUEUED_QUERY_EVENTS" Integer "0: the pool counts by group",
        "TIME_OF_EVENT_ARRIVAL" Integer "0",
        "MANAGEMENT_TIME" Integer "0",
    }
    "tp_thread_group_state" "A group, as in MySQL." oracle_state => {
        "TP_GROUP_ID" Integer "its number",
        "CONSUMER_THREADS" Integer "1",
        "RESERVE_THREADS" Integer "idle backends",
        "CONNECT_THREAD_COUNT" Integer "backends being opened",
        "CONNECTION_COUNT" Integer "its clients",
        "QUEUED_QUERIES" Integer "waiting logins and statements of high priority",
        "QUEUED_TRANSACTIONS" Integer "waiting statements of low priority",
        "STALL_LIMIT" Integer "stall_ms_max, in hundredths of a second",
        "PRIO_KICKUP_TIMER" Integer "prio_kickup_ms, in milliseconds",
        "ALGORITHM" Text "onramp",
        "THREAD_COUNT" Integer "its backends",
        "ACTIVE_THREAD_COUNT" Integer "backends that a client uses",
        "STALLED_THREAD_COUNT" Integer "backends whose statement runs longer than stall_ms_max",
        "WAITING_THREAD_NUMBER" Integer "NULL: no backend waits for clients",
        "OLDEST_QUEUED" Integer "longest present wait, in milliseconds",
        "MAX_THREAD_IDS_IN_GROUP" Integer "its backends",
        "EFFECTIVE_MAX_TRANSACTIONS_LIMIT" Integer "NULL: the groups share backends_max",
        "NUM_QUERY_THREADS" Integer "its backends",
        "TIME_OF_LAST_THREAD_CREATION" Integer "NULL: not recorded",
        "NUM_CONNECT_HANDLER_THREAD_IN_SLEEP" Integer "0",
        "THREADS_BOUND_TO_TRANSACTION" Integer "its backends in a transaction",
        "QUERY_THREADS_COUNT" Integer "its backends",
        "TIME_OF_EARLIEST_CON_EXPIRE" Integer "NULL: not limited here",
        "TIME_OF_LAST_LONGRUNNING_TRXS_CHECK" Integer "NULL: there is no such check",
    }
    "tp_thread_group_stats" "Counters of a group, as in MySQL." oracle_stats => {
        "TP_GROUP_ID" Integer "its number",
        "CONNECTIONS_STARTED" Integer "clients accepted",
        "CONNECTIONS_CLOSED" Integer "clients that have left",
        "QUERIES_EXECUTED" Integer "statements served",
        "QUERIES_QUEUED" Integer "statements that had to wait",
        "THREADS_STARTED" Integer "backends opened",
        "PRIO_KICKUPS" Integer "statements of low priority that were moved up for waiting too long",
        "STALLED_QUERIES_EXECUTED" Integer "times that a backend stalled",
        "BECOME_CONSUMER_THREAD" Integer "0",
        "BECOME_RESERVE_THREAD" Integer "0",
        "BECOME_WAITING_THREAD" Integer "0",
        "WAKE_THREAD_STALL_CHECKER" Integer "0",
        "SLEEP_WAITS" Integer "0: the pool does not see the server's waits",
        "DISK_IO_WAITS" Integer "0",
        "ROW_LOCK_WAITS" Integer "0",
        "GLOBAL_LOCK_WAITS" Integer "0",
        "META_DATA_LOCK_WAITS" Integer "0",
        "TABLE_LOCK_WAITS" Integer "0",
        "USER_LOCK_WAITS" Integer "0",
        "BINLOG_WAITS" Integer "0",
        "GROUP_COMMIT_WAITS" Integer "0",
        "FSYNC_WAITS" Integer "0",
    }
    "tp_thread_state" "A backend, as a thread in MySQL." oracle_threads => {
        "TP_GROUP_ID" Integer "its group",
        "TP_THREAD_NUMBER" Integer "its place in its group, from 0",
        "PROCESS_COUNT" Integer "run time of its statement in units of 10 ms, from 1; 0: none runs",
        "WAIT_TYPE" Text "NULL: the pool does not see the server's waits",
        "TP_THREAD_TYPE" Text "QUERY_WORKER_THREAD",
        "THREAD_ID" Integer "its thread ID on the server",
        "TIME_OF_ATTACH" Integer "0",
        "MARKED_STALLED" Integer "1 if its statement has run for longer than stall_ms_max",
        "STATE" Text "its state, as in SHOW BACKENDS",
        "EVENT_COUNT" Integer "0: the pool counts by group",
        "ACCUMULATED_EVENT_TIME" Integer "0",
        "EXEC_COUNT" Integer "0: the pool counts by group",
        "ACCUMULATED_EXEC_TIME" Integer "0",
    }
}

/// A backend with its place among those of its group.
struct Placed {
    place: usize,
    line: BackendLine,
}

impl Placed {
    /// Time for which its statement has run, if one does.
    fn runs_for(&self) -> Option<Duration> {
        let runs = self.line.in_flight > 0;
        runs.then(|| Duration::from_secs_f64(self.line.state_seconds))
    }

    fn is_stalled(&self, longest: Duration) -> bool {
        self.runs_for().is_some_and(|time| time > longest)
    }
}

/// The backends, group by group.
fn placed(console: &Console) -> Result<Vec<Placed>, String> {
    let mut next = (usize::MAX, 0);
    let mut with_place = |line: BackendLine| {
        next = match next {
            (group, place) if group == line.group => (group, place + 1),
            _ => (line.group, 0),
        };
        Placed {
            place: next.1,
            line,
        }
    };
    let all = console.backends()?.into_iter();
    Ok(all.map(&mut with_place).collect())
}

fn of_groups(sample: &Sample<'_>, row: impl Fn(usize, &GroupView) -> Row) -> Vec<Row> {
    let views = (sample.pool.iter()).flat_map(|pool| pool.groups().iter().enumerate());
    (views.map(|(group, view): (usize, &Arc<GroupView>)| row(group, view))).collect()
}

fn processes(console: &Console, _: &Sample<'_>) -> Result<Vec<Row>, String> {
    let row = |client: ClientLine| {
        let command = match client.state {
            "logging_in" => "Connect",
            "idle" | "holding" => "Sleep",
            _ => "Query",
        };
        vec![
            number(client.id),
            client.user.map_or(text("unauthenticated user"), text),
            text(client.address.to_string()),
            maybe(client.schema, text),
            text(command),
            number(Duration::from_secs_f64(client.state_seconds).as_secs()),
            text(client.state),
            maybe(client.statement, |statement| text(statement.to_string())),
        ]
    };
    Ok(console.clients()?.into_iter().map(row).collect())
}

fn groups(_: &Console, sample: &Sample<'_>) -> Result<Vec<Row>, String> {
    let now = Time::now();
    Ok(of_groups(sample, |group, view| {
        let stands = now.since(view.at) > STALLED_AFTER;
        vec![
            number(group),
            number(view.census.clients),
            number(view.census.backends()),
            number(view.census.backends_checked_out),
            number(view.census.backends_idle),
            number(view.census.waiting),
            number(1),
            flag(stands && view.census.waiting > 0),
        ]
    }))
}

fn queues(console: &Console, _: &Sample<'_>) -> Result<Vec<Row>, String> {
    let mut waiting = console.clients()?;
    waiting.retain(|client| client.queue.is_some());
    waiting.sort_by(|one, other| {
        let by_time = other.state_seconds.total_cmp(&one.state_seconds);
        one.group.cmp(&other.group).then(by_time)
    });
    let mut place = (usize::MAX, 0);
    let mut rows = Vec::with_capacity(waiting.len());
    for client in waiting {
        place = match place {
            (group, position) if group == client.group => (group, position + 1),
            _ => (client.group, 0),
        };
        let low = client.queue == Some(QueueName::Low.name());
        rows.push(vec![
            number(client.group),
            number(place.1),
            flag(low),
            number(client.id),
            number(Duration::from_secs_f64(client.state_seconds).as_micros()),
        ]);
    }
    Ok(rows)
}

fn stats(_: &Console, sample: &Sample<'_>) -> Result<Vec<Row>, String> {
    Ok(of_groups(sample, |group, view| {
        let counts = &view.census.counts;
        let turns = view.turns.lengths.count();
        vec![
            number(group),
            number(counts.dialled),
            number(0),
            number(turns),
            number(0),
            number(0),
            number(counts.stalled),
            number(turns),
            number(0),
            number(counts.statements.saturating_sub(counts.waited)),
            number(counts.waited),
        ]
    }))
}

fn waits(_: &Console, sample: &Sample<'_>) -> Result<Vec<Row>, String> {
    let stalled = (sample.pool.as_ref()).map_or(0, |pool| pool.total.census.counts.stalled);
    Ok(vec![vec![text("UNKNOWN"), number(stalled)]])
}

fn connections(console: &Console, _: &Sample<'_>) -> Result<Vec<Row>, String> {
    let backends = placed(console)?;
    let by_client: BTreeMap<u32, &Placed> = backends
        .iter()
        .filter_map(|backend| Some((backend.line.client?, backend)))
        .collect();
    let row = |client: ClientLine| {
        let backend = by_client.get(&client.id);
        let state = match client.state {
            "logging_in" | "delayed" => "Established",
            "idle" => "Armed",
            "waiting" => "Queued",
            "killing" | "leaving" => "Killed",
            _ => "Attached",
        };
        let mut row = vec![
            number(client.id),
            number(client.group),
            maybe(backend, |backend| number(backend.place)),
            maybe(backend, |backend| number(backend.line.thread)),
            text(state),
            flag(backend.is_some()),
            text(""),
            text(""),
        ];
        row.extend([(); 6].map(|()| number(0)));
        row.push(text("User"));
        row.extend([(); 4].map(|()| number(0)));
        row
    };
    Ok(console.clients()?.into_iter().map(row).collect())
}

/// Figures of a group from the lists.
#[derive(Clone, Copy, Default)]
struct OfLists {
    first: usize,
    low: usize,
    oldest: Option<Duration>,
    stalled: usize,
    in_transaction: usize,
}

fn of_lists(console: &Console, stall_max: Duration) -> Result<Vec<OfLists>, String> {
    let mut groups = vec![OfLists::default(); console.groups.len()];
    for client in console.clients()? {
        let (Some(queue), Some(group)) = (client.queue, groups.get_mut(client.group)) else {
            continue;
        };
        match queue == QueueName::Low.name() {
            true => group.low += 1,
            false => group.first += 1,
        }
        let waits = Duration::from_secs_f64(client.state_seconds);
        group.oldest = group.oldest.max(Some(waits));
    }
    for backend in placed(console)? {
        if let Some(group) = groups.get_mut(backend.line.group) {
            group.stalled += usize::from(backend.is_stalled(stall_max));
            group.in_transaction += usize::from(backend.line.in_transaction);
        }
    }
    Ok(groups)
}

fn oracle_state(console: &Console, sample: &Sample<'_>) -> Result<Vec<Row>, String> {
    let settings = &console.shared.settings();
    let lists = of_lists(console, settings.stall_max)?;
    Ok(of_groups(sample, |group, view| {
        let census = &view.census;
        let list = lists.get(group).copied().unwrap_or_default();
        vec![
            number(group),
            number(1),
            number(census.backends_idle),
            number(census.backends_dialling),
            number(census.clients),
            number(list.first),
            number(list.low),
            number(settings.stall_max.as_millis() / 10),
            number(settings.prio_kickup.as_millis()),
            text("onramp"),
            number(census.backends()),
            number(census.backends_checked_out),
            number(list.stalled),
            Value::Null,
            maybe(list.oldest, |time| number(time.as_millis())),
            number(census.backends()),
            Value::Null,
            number(census.backends()),
            Value::Null,
            number(0),
            number(list.in_transaction),
            number(census.backends()),
            Value::Null,
            Value::Null,
        ]
    }))
}

fn oracle_stats(_: &Console, sample: &Sample<'_>) -> Result<Vec<Row>, String> {
    Ok(of_groups(sample, |group, view| {
        let counts = &view.census.counts;
        let mut row = vec![
            number(group),
            number(counts.accepted),
            number(counts.accepted.saturating_sub(view.census.clients as u64)),
            number(counts.statements),
            number(counts.waited),
            number(counts.dialled),
            number(counts.kicked_up),
            number(counts.stalled),
        ];
        row.extend([(); 14].map(|()| number(0)));
        row
    }))
}

fn oracle_threads(console: &Console, _: &Sample<'_>) -> Result<Vec<Row>, String> {
    let stall_max = console.shared.settings().stall_max;
    let row = |backend: Placed| {
        let tens = backend.runs_for().map(|time| 1 + time.as_millis() / 10);
        vec![
            number(backend.line.group),
            number(backend.place),
            number(tens.unwrap_or(0)),
            Value::Null,
            text("QUERY_WORKER_THREAD"),
            number(backend.line.thread),
            number(0),
            flag(backend.is_stalled(stall_max)),
            text(backend.line.state),
            number(0),
            number(0),
            number(0),
            number(0),
        ]
    };
    Ok(placed(console)?.into_iter().map(row).collect())
}

/// Rows of SHOW STATUS.
pub(crate) fn status(_: &Console, sample: &Sample<'_>) -> Result<Vec<Row>, String> {
    let uptime = reactor::utc_now().saturating_sub(sample.began()).as_secs();
    let Some(pool) = &sample.pool else {
        return Ok(Vec::new());
    };
    let (census, counts) = (&pool.total.census, &pool.total.census.counts);
    let mut high = pool.total.figures.queue(QueueName::High).clone();
    high.add(pool.total.figures.queue(QueueName::Login));
    let low = pool.total.figures.queue(QueueName::Low);
    let rows: [(&str, String); 14] = [
        ("Aborted_connects", counts.denied.to_string()),
        ("Connections", counts.accepted.to_string()),
        ("Questions", counts.statements.to_string()),
        ("Slow_launch_threads", counts.stalled.to_string()),
        (
            "Threadpool_average_hp_queue_wait_us",
            high.mean().as_micros().to_string(),
        ),
        (
            "Threadpool_average_queue_wait_us",
            low.mean().as_micros().to_string(),
        ),
        ("Threadpool_idle_threads", census.backends_idle.to_string()),
        (
            "Threadpool_requests_waiting_in_queue",
            census.waiting.to_string(),
        ),
        ("Threadpool_threads", census.backends().to_string()),
        ("Threads_cached", census.backends_idle.to_string()),
        ("Threads_connected", census.clients.to_string()),
        ("Threads_created", counts.dialled.to_string()),
        (
            "Threads_running",
            pool.total.stages[Stage::Running as usize].to_string(),
        ),
        ("Uptime", uptime.to_string()),
    ];
    Ok(rows
        .into_iter()
        .map(|(name, value)| vec![text(name), text(value)])
        .collect())
}

/// Answer to COM_STATISTICS: figures of SHOW STATUS in the servers' form.
pub(crate) fn summary(console: &Console, sample: &Sample<'_>) -> String {
    let rows = status(console, sample).unwrap_or_default();
    let figure = |name: &str| {
        let mut rows = rows.iter();
        let found = rows.find_map(|row| match &row[..] {
            [Value::Text(key), Value::Text(value)] if key == name => Some(value.to_string()),
            _ => None,
        });
        found.unwrap_or_else(|| "0".into())
    };
    format!(
        "Uptime: {}  Threads: {}  Questions: {}",
        figure("Uptime"),
        figure("Threads_connected"),
        figure("Questions")
    )
}

/// Values for `@@NAME` and SHOW VARIABLES: those that clients ask for at their start.
pub(crate) fn variables() -> Vec<(String, String)> {
    const FIXED: [(&str, &str); 31] = [
        ("auto_increment_increment", "1"),
        ("autocommit", "1"),
        ("character_set_client", "utf8mb4"),
        ("character_set_connection", "utf8mb4"),
        ("character_set_database", "utf8mb4"),
        ("character_set_results", "utf8mb4"),
        ("character_set_server", "utf8mb4"),
        ("collation_connection", "utf8mb4_general_ci"),
        ("collation_database", "utf8mb4_general_ci"),
        ("collation_server", "utf8mb4_general_ci"),
        ("init_connect", ""),
        ("interactive_timeout", "28800"),
        ("license", "Apache-2.0"),
        ("lower_case_table_names", "1"),
        ("max_allowed_packet", "1048576"),
        ("net_buffer_length", "16384"),
        ("net_read_timeout", "28800"),
        ("net_write_timeout", "10"),
        ("performance_schema", "0"),
        ("port", "0"),
        ("read_only", "1"),
        ("sql_auto_is_null", "0"),
        ("sql_mode", ""),
        ("system_time_zone", "UTC"),
        ("time_zone", "SYSTEM"),
        ("transaction_isolation", "READ-UNCOMMITTED"),
        ("transaction_read_only", "1"),
        ("tx_isolation", "READ-UNCOMMITTED"),
        ("tx_read_only", "1"),
        ("version_comment", "onramp console"),
        ("wait_timeout", "28800"),
    ];
    let fixed = FIXED.iter();
    let mut all: Vec<(String, String)> = fixed
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    all.push(("version".into(), console::VERSION.into()));
    all
}
