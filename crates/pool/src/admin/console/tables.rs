//! The console's own tables: each with its columns, what they say, and the function that makes its
//! rows.
//!
//! docs/pool/console.md is made from them.

use super::{Console, Shown, flag, flavour, maybe, number, seconds, text};
use crate::cluster::MemberShown;
use crate::config::reload::limits_of_users;
use crate::config::{Origin, Settings, ShownSetting, User};
use crate::group::shared::Shared;
use crate::limits::memory::memory_of;
use crate::limits::rules::{Effect, Rule};
use crate::observe::figures::digests::{Entry, Sums};
use crate::observe::figures::places::{OTHERS, USERS_MAX};
use crate::observe::figures::{Stage, UserFigures};
use crate::observe::metrics::{Named, PointShown, Sample, points};
use crate::observe::refusals::Refused;
use crate::scheduler::queue::QueueName;
use ::cluster::State;
use ::cluster::fleet::SeatView;
use console::{Column, DEFAULT_SCHEMA, Row, Table, Type, Value};
use measure::process;
use std::sync::atomic::Ordering::Relaxed;

tables! { TABLES DEFAULT_SCHEMA;
    "backends" "A connection to the server." backends => {
        "thread" Integer(8) "its thread ID on the server",
        "account" Text(12) "its account on the server",
        "address" Text(21) "the address that it is connected to",
        "group_id" Integer "its group",
        "state" Text(9) "dialling (connecting), preparing (logging in), idle, running, or held \
                         (by a client that runs nothing)",
        "state_seconds" Real(13) "time in this state",
        "age_seconds" Real "time since it was opened",
        "client" Integer(10) "the client that uses it",
        "in_transaction" Integer(14) "1 in a transaction",
        "in_flight" Integer "commands without a complete reply",
        "prepared" Integer "prepared statements on it",
    }
    "servers" "A server." servers => {
        "name" Text(8) "its name in the settings; NULL where there is one server",
        "address" Text(21) "its address",
        "role" Text "its role",
        "state" Text(7) "writer, full, reader (fit to be read), unused, down, off or unknown",
        "state_seconds" Real(13) "time in this state",
        "why" Text(44) "reason for the state, or why no backend opens or no statement runs",
        "lag_seconds" Real "its lag as a replica",
        "flavour" Text "mariadb or mysql",
        "version" Text "its version; of one server at the pool's start",
        "up" Integer "1 if it can be reached",
        "down_seconds" Real "length of the present outage",
        "outages" Integer "outages that have ended; of several servers those of the writer",
        "paused" Integer "1 between PAUSE and RESUME",
        "backends" Integer(8) "connections of the pool to it",
        "backends_max" Integer "the most that the pool opens now",
        "running" Integer "those that run something, where limited",
        "running_max" Integer "their limit",
        "reads" Integer "statements that it has answered as a reader",
    }
    "fleet" "A pool of the fleet." fleet => {
        "seat" Integer(4) "its number, part of its clients' ids",
        "is_self" Integer(7) "1 for this pool",
        "demand" Integer(6) "backends that it could use",
        "held" Integer(6) "backends that it may open now",
        "share" Integer(6) "backends that it should have",
        "connection" Integer "the server's number of the connection that holds its locks",
    }
    "groups" "A group: a thread with its own clients and backends." groups => {
        "group_id" Integer(8) "its number",
        "clients" Integer(7) "its clients",
        "running" Integer(7) "clients whose statement runs",
        "waiting" Integer(7) "statements and logins that wait",
        "pinned" Integer(6) "pinned clients",
        "backends" Integer(8) "its connections to the server",
        "backends_idle" Integer "idle ones among them",
        "statements" Integer(12) "statements served",
        "turn_p99_seconds" Real(16) "99th percentile of a turn's length",
        "age_seconds" Real(11) "age of these figures; over 0.5 the group is late",
    }
    "queues" "A queue, over all groups." queues => {
        "queue" Text "login, high, low, or held (clients that have a backend)",
        "waited" Integer "statements and logins that had to wait there",
        "mean_seconds" Real "mean wait",
        "p50_seconds" Real "median",
        "p95_seconds" Real "95th percentile",
        "p99_seconds" Real "99th percentile",
    }
    "pins" "A reason for pins." pins => {
        "reason" Text "its name, as in docs/pool/pins.md",
        "clients" Integer "clients pinned for it now",
        "total" Integer "times that a client was pinned for it",
    }
    "users" "A user of the settings, or an account of the server; the first 50 of each." users => {
        "user" Text(16) "its name",
        "clients" Integer(7) "its clients",
        "clients_max" Integer(11) "its limit on clients",
        "statements" Integer(12) "statements answered",
        "errors" Integer(8) "statements that ended with an error of the server",
        "wait_mean_seconds" Real "mean time from a statement's arrival until it was sent",
        "wait_p99_seconds" Real(16) "99th percentile of that time; 3600: that or more",
        "service_mean_seconds" Real "mean time from sending until the reply was complete",
        "service_p99_seconds" Real(19) "99th percentile of that time; 3600: that or more",
    }
    "statements" "Statements of one digest; `digests_max` limits their number." statements => {
        "digest" Text(16) "number of the text without its values; NULL: all others together",
        "statement" Text(32) "the text without its values, 512 bytes at most",
        "count" Integer(10) "statements answered",
        "errors" Integer(6) "statements that ended with an error of the server",
        "rows" Integer "rows in their replies",
        "wait_seconds" Real "total time from their arrival until they were sent",
        "service_seconds" Real(15) "total time from sending until their replies were complete",
        "service_mean_seconds" Real(20) "mean of that time",
        "service_max_seconds" Real "longest of that time",
        "seen_seconds" Real "time since the last one",
    }
    "config" "A setting." config => {
        "name" Text(32) "its name",
        "value" Text(28) "its value in force; *** for a password",
        "default" Text(18) "its default",
        "place" Text(20) "where it was set, and the server's variable that lowers it; NULL: \
                          default",
        "reload" Integer(6) "1: RELOAD applies another value; 0: a restart is needed",
    }
    "stats" "A metric, as in /metrics." stats => {
        "name" Text(45) "its name, as in docs/pool/metrics.md",
        "labels" Text(25) "its labels",
        "value" Real(15) "its value; of a histogram the mean in seconds",
        "count" Integer(10) "observations of a histogram",
        "p99" Real(8) "99th percentile of a histogram",
    }
    "memory" "A use of memory." memory => {
        "what" Text(80) "what the memory is for",
        "bytes" Integer(14) "bytes in use",
        "bytes_max" Integer(14) "its limit; NULL: part of the limit above",
    }
    "errors" "An error that clients got." errors => {
        "source" Text "server: passed on; pool: made by the pool",
        "error" Text "the server's number, or the pool's reason",
        "count" Integer "times",
    }
    "refusals" "Refusals of an account for one reason, the latest first. docs/pool/errors.md says \
                what each reason asks for." refusals => {
        "account" Text(12) "the account; empty: none of that name, or not known yet",
        "reason" Text(17) "the reason, as in the log",
        "count" Integer(8) "times",
        "seen_seconds" Real(12) "time since the last one",
        "address" Text(21) "address of its client",
        "message" Text(31) "what it was told, with the limit",
    }
    "rules" "A rule that an administrator has set; see [Commands](#commands)." rules => {
        "rule" Text(6) "reject or limit (statements of a digest); user (a limit of a user)",
        "target" Text(16) "the digest, or the user",
        "value" Text(20) "statements at once, or the limit and its value",
        "running" Integer "statements that run or wait, counted for `limit`",
        "refused" Integer(8) "statements that it has refused",
        "seconds_left" Real(12) "time until it ends by itself",
        "message" Text(15) "what clients hear",
        "statement" Text(15) "text of the digest",
    }
    "version" "The program." version => {
        "name" Text "onramp",
        "version" Text "its version",
        "started" Real "start of service, in seconds since 1970",
    }
}

fn backends(console: &Console, _: &Sample<'_>) -> Result<Vec<Row>, String> {
    let row = |backend: crate::observe::listing::BackendLine| {
        vec![
            number(backend.thread),
            text(backend.account),
            text(backend.address),
            number(backend.group),
            text(backend.state),
            seconds(backend.state_seconds),
            seconds(backend.age_seconds),
            maybe(backend.client, number),
            flag(backend.in_transaction),
            number(backend.in_flight),
            number(backend.prepared),
        ]
    };
    Ok(console.backends()?.into_iter().map(row).collect())
}

fn fleet(console: &Console, _: &Sample<'_>) -> Result<Vec<Row>, String> {
    let row = |pool: SeatView| {
        vec![
            number(pool.seat),
            flag(pool.is_self),
            number(pool.demand),
            number(pool.held),
            number(pool.share),
            number(pool.connection),
        ]
    };
    let seats = (console.shared.connections.fleet.as_ref()).map(|fleet| fleet.seats());
    Ok(seats.unwrap_or_default().into_iter().map(row).collect())
}

fn servers(console: &Console, sample: &Sample<'_>) -> Result<Vec<Row>, String> {
    let shared = &console.shared;
    let since = shared.upstream.failing_since();
    let down = since.map(|since| reactor::Time::now().since(since).as_secs_f64());
    let backends = (sample.pool.as_ref()).map(|pool| pool.total.census.backends());
    let version = || shared.server.version_shown().to_owned();
    let outage = || vec![flag(since.is_none()), maybe(down, seconds)];
    let total = shared.budget.total();
    let paused = shared.scheduling.is_paused();
    let pause = paused.then_some("paused at the console, until RESUME");
    let state_of_it = || vec![number(shared.upstream.returns()), flag(paused)];
    let Some(cluster) = &shared.cluster else {
        let mut row = vec![Value::Null; 7];
        row[1] = text(shared.settings().backend.to_string());
        let pool = sample.pool.as_ref();
        let failure = pool.and_then(|pool| pool.total.dial_failure.as_deref());
        let silent = shared.upstream.is_silent();
        let silence = silent.then_some("it answers on no connection");
        let why = failure.or(silence).or(pause);
        row[3] = text(since.map_or(State::Writer, |_| State::Down).word());
        row[4] = maybe(down, seconds);
        row[5] = maybe(why.map(str::to_owned), text);
        row.extend([text(flavour(shared)), text(version())]);
        row.extend(outage().into_iter().chain(state_of_it()));
        row.extend([maybe(backends, number), number(total)]);
        row.extend([Value::Null, Value::Null, number(0)]);
        return Ok(vec![row]);
    };
    let row = |server: MemberShown| {
        let since = server.since.as_secs_f64();
        let is_down = server.state == State::Down;
        let mut row = vec![
            text(server.name),
            text(server.address),
            text(server.role),
            text(server.state.word()),
            seconds(since),
            text(server.why),
            maybe(server.lag.map(|lag| lag.as_secs_f64()), seconds),
            text(flavour(shared)),
            maybe(server.version, text),
            flag(!is_down),
            maybe(is_down.then_some(since), seconds),
        ];
        match server.state {
            State::Writer | State::Full => {
                if let Some(pause) = pause {
                    row[5] = text(pause);
                }
                row.extend(state_of_it());
            }
            _ => row.extend([number(0), flag(false)]),
        }
        let (backends, max) = server.backends;
        let max = max.map_or(total, |max| max.min(total));
        let (running, running_max) = server.running.unzip();
        row.extend([number(backends), number(max)]);
        row.extend([maybe(running, number), maybe(running_max.flatten(), number)]);
        row.push(number(server.reads));
        row
    };
    Ok(cluster.shown().into_iter().map(row).collect())
}

fn groups(_: &Console, sample: &Sample<'_>) -> Result<Vec<Row>, String> {
    let views = (sample.pool.iter()).flat_map(|pool| pool.groups().iter().enumerate());
    let row = |(group, view): (usize, &std::sync::Arc<crate::observe::figures::GroupView>)| {
        vec![
            number(group),
            number(view.census.clients),
            number(view.stages[Stage::Running as usize]),
            number(view.census.waiting),
            number(view.census.pinned),
            number(view.census.backends()),
            number(view.census.backends_idle),
            number(view.census.counts.statements),
            seconds(view.turns.lengths.percentile(99.0).as_secs_f64()),
            seconds(reactor::Time::now().since(view.at).as_secs_f64()),
        ]
    };
    Ok(views.map(row).collect())
}

fn queues(_: &Console, sample: &Sample<'_>) -> Result<Vec<Row>, String> {
    let Some(pool) = &sample.pool else {
        return Ok(Vec::new());
    };
    let row = |queue: QueueName| {
        let name = if queue == QueueName::Held {
            "held"
        } else {
            queue.name()
        };
        let times = pool.total.figures.queue(queue);
        let at = |percent| seconds(times.percentile(percent).as_secs_f64());
        vec![
            text(name),
            number(times.count()),
            seconds(times.mean().as_secs_f64()),
            at(50.0),
            at(95.0),
            at(99.0),
        ]
    };
    Ok(QueueName::ALL.into_iter().map(row).collect())
}

fn pins(_: &Console, sample: &Sample<'_>) -> Result<Vec<Row>, String> {
    let Some(pool) = &sample.pool else {
        return Ok(Vec::new());
    };
    let row = |(reason, total): (&&'static str, &u64)| {
        let now = pool.total.pinned.get(*reason).copied().unwrap_or(0);
        vec![text(*reason), number(now), number(*total)]
    };
    Ok(pool.total.census.counts.pins.iter().map(row).collect())
}

fn users(console: &Console, sample: &Sample<'_>) -> Result<Vec<Row>, String> {
    let Some(pool) = &sample.pool else {
        return Ok(Vec::new());
    };
    let settings = console.shared.settings();
    // Who was removed is shown as long as clients of that name are here.
    let is_here = |user: &User| user.usage.clients.load(Relaxed) > 0;
    let is_shown = |user: &User| user.origin != Origin::Removed || is_here(user);
    let named = pool.users().into_iter();
    let of_settings = |place: usize| settings.users.get(place).filter(|_| place < USERS_MAX);
    let named = named.filter(|user| of_settings(user.place).is_none_or(is_shown));
    let named = named.map(|user| (pool.figures_of(user.place), user));
    // Those whose figures stand in one row have rows of their own besides.
    let rest = settings.users.iter().skip(USERS_MAX);
    let rest = rest.filter(|user| user.origin != Origin::Server && is_shown(user));
    let rest = rest.map(|user| (None, Named::of_user(user, OTHERS.into())));
    let row = |(figures, user): (Option<&UserFigures>, Named)| {
        let mut row = vec![
            text(user.name),
            number(user.clients),
            maybe(user.clients_max, number),
            maybe(figures.map(|of| of.service.count()), number),
            maybe(figures.map(|of| of.errors), number),
        ];
        for times in [figures.map(|of| &of.wait), figures.map(|of| &of.service)] {
            row.push(maybe(times, |times| seconds(times.mean().as_secs_f64())));
            row.push(maybe(times, |times| {
                seconds(times.percentile(99.0).as_secs_f64())
            }));
        }
        row
    };
    Ok(named.chain(rest).map(row).collect())
}

fn statements(_: &Console, sample: &Sample<'_>) -> Result<Vec<Row>, String> {
    let Some(pool) = &sample.pool else {
        return Ok(Vec::new());
    };
    let digests = &pool.total.figures.digests;
    let row = |digest: Option<u64>, entry: Option<&Entry>, sums: &Sums| {
        let mean = sums.service.as_secs_f64() / sums.count.max(1) as f64;
        vec![
            maybe(digest, super::digest),
            maybe(entry, |entry| text(entry.text.to_string())),
            number(sums.count),
            number(sums.errors),
            number(sums.rows),
            seconds(sums.wait.as_secs_f64()),
            seconds(sums.service.as_secs_f64()),
            seconds(mean),
            seconds(sums.service_max.as_secs_f64()),
            maybe(entry, |entry| {
                seconds(reactor::Time::now().since(entry.last).as_secs_f64())
            }),
        ]
    };
    let list = digests.list().into_iter();
    let mut rows: Vec<Row> = list
        .map(|(digest, entry)| row(Some(digest), Some(entry), &entry.sums))
        .collect();
    if *digests.others() != Sums::default() {
        rows.push(row(None, None, digests.others()));
    }
    Ok(rows)
}

/// The value in force of a setting that the pool works out where none is written, or where the
/// server takes less.
fn worked_out(shared: &Shared, name: &str) -> Option<String> {
    let settings = shared.settings();
    Some(match name {
        "backends_max" => shared.backends_max(&settings).to_string(),
        "prepared_max" => shared.watched.prepared_max(&settings).to_string(),
        "groups" => shared.groups().to_string(),
        "memory_bytes_max" => memory_of(settings.memory_bytes_max).to_string(),
        "input_bytes_max" => shared.retained.input.max.to_string(),
        "spool_bytes_max" => settings.spool_bytes_max.to_string(),
        "tls.mode" => match &settings.tls {
            None => "off",
            Some(tls) if tls.required => "required",
            Some(_) => "optional",
        }
        .to_owned(),
        "backend.monitor_user" => settings.monitor_account().0,
        _ => return None,
    })
}

/// Source of the value in force; `None`: it is the default.
fn place_of(shared: &Shared, setting: &ShownSetting) -> Option<String> {
    let settings = shared.settings();
    let (wished, now, variable) = match setting.name.as_str() {
        "backends_max" => (
            settings.backends_max,
            shared.backends_max(&settings),
            "max_connections",
        ),
        "prepared_max" => (
            settings.prepared_max,
            shared.watched.prepared_max(&settings),
            "max_prepared_stmt_count",
        ),
        _ => return setting.place.clone(),
    };
    if now == wished {
        return setting.place.clone();
    }
    let place = setting.place.as_deref().unwrap_or("default");
    Some(format!(
        "{place}, lowered from {wished} by the server's {variable}"
    ))
}

/// Every setting with its value in force.
pub(crate) fn in_force(shared: &Shared, settings: &Settings) -> Vec<(String, String)> {
    let value = |setting: &ShownSetting| {
        let worked_out = worked_out(shared, &setting.name);
        let value = worked_out.unwrap_or_else(|| setting.value.clone());
        (setting.name.clone(), value)
    };
    settings.shown.iter().map(value).collect()
}

fn config(console: &Console, _: &Sample<'_>) -> Result<Vec<Row>, String> {
    let shared = &console.shared;
    let settings = shared.settings();
    let in_force = in_force(shared, &settings);
    let row = |(setting, (name, value)): (&ShownSetting, (String, String))| {
        vec![
            text(name),
            text(value),
            text(setting.default.clone()),
            maybe(place_of(shared, setting), text),
            flag(!setting.is_fixed),
        ]
    };
    Ok(settings.shown.iter().zip(in_force).map(row).collect())
}

fn stats(_: &Console, sample: &Sample<'_>) -> Result<Vec<Row>, String> {
    let row = |point: PointShown| {
        vec![
            text(point.name),
            text(point.labels),
            Value::Real(point.value),
            maybe(point.count, number),
            maybe(point.p99, |time| seconds(time.as_secs_f64())),
        ]
    };
    Ok(points(sample).into_iter().map(row).collect())
}

fn memory(console: &Console, sample: &Sample<'_>) -> Result<Vec<Row>, String> {
    let shared = &console.shared;
    let own = process::own().map_err(|error| error.to_string())?;
    let process = memory_of(shared.settings().memory_bytes_max);
    let mut rows = vec![vec![
        text("process (resident)"),
        number(own.rss_bytes),
        number(process),
    ]];
    if let Some(pool) = &sample.pool {
        let census = &pool.total.census;
        let none = || Value::Null;
        let parts = census.input_bytes + census.variables_bytes;
        let rest = census.memory_bytes.saturating_sub(parts);
        rows.extend([
            vec![
                text("clients, all together"),
                number(census.memory_bytes),
                number(shared.retained.memory.max()),
            ],
            vec![
                text("incomplete and waiting commands"),
                number(census.input_bytes),
                none(),
            ],
            vec![
                text("user variables"),
                number(census.variables_bytes),
                none(),
            ],
            vec![
                text("sessions, replies, prepared statements, TLS"),
                number(rest),
                none(),
            ],
            vec![
                text("program, connections, figures: the rest of the process"),
                number(own.rss_bytes.saturating_sub(census.memory_bytes as u64)),
                none(),
            ],
            vec![
                text("replies in the spool (a file)"),
                number(census.spooled_bytes),
                number(shared.settings().spool_bytes_max),
            ],
        ]);
    }
    // One that answers too late keeps nobody from the rest.
    let holders = (0..console.groups.len()).filter_map(|group| console.holder(group));
    if let Some(holder) = holders.max_by_key(|client| client.memory_bytes) {
        let user = holder.user.as_deref().unwrap_or("");
        let program = holder.program.as_deref().unwrap_or("no program named");
        let (id, address) = (holder.id, holder.address);
        rows.push(vec![
            text(format!(
                "most of one client: {id} ('{user}', {address}, {program})"
            )),
            number(holder.memory_bytes),
            Value::Null,
        ]);
    }
    Ok(rows)
}

fn errors(console: &Console, sample: &Sample<'_>) -> Result<Vec<Row>, String> {
    let (numbers, others) = console.shared.records.errors.read();
    let of_server = |error: String, count: u64| vec![text("server"), text(error), number(count)];
    let mut rows: Vec<Row> = numbers
        .into_iter()
        .map(|(error, count)| of_server(error.to_string(), count))
        .collect();
    if others > 0 {
        rows.push(of_server("other".into(), others));
    }
    let refusals = (sample.pool.iter()).flat_map(|pool| pool.total.census.counts.refusals.iter());
    rows.extend(refusals.map(|(reason, count)| vec![text("pool"), text(*reason), number(*count)]));
    Ok(rows)
}

fn refusals(console: &Console, _: &Sample<'_>) -> Result<Vec<Row>, String> {
    let mut all: Vec<_> = console.shared.records.refusals.all().into_iter().collect();
    all.sort_by_key(|(_, refused)| std::cmp::Reverse(refused.last));
    let row = |((account, reason), refused): ((String, &'static str), Refused)| {
        vec![
            text(account),
            text(reason),
            number(refused.count),
            seconds(reactor::Time::now().since(refused.last).as_secs_f64()),
            text(refused.peer.to_string()),
            text(refused.words),
        ]
    };
    Ok(all.into_iter().map(row).collect())
}

fn rules(console: &Console, sample: &Sample<'_>) -> Result<Vec<Row>, String> {
    let now = reactor::Time::now();
    let row = |(digest, rule): (&u64, &Rule)| {
        let (kind, max, message) = match &rule.effect {
            Effect::Reject(message) => ("reject", None, Some(message)),
            Effect::Limit(max) => ("limit", Some(max), None),
        };
        let (running, refused) = rule.counts();
        let known = sample.pool.as_ref();
        let statement = known.and_then(|pool| pool.total.figures.digests.text(*digest));
        let left = (rule.until != reactor::Time::NEVER).then(|| rule.until.since(now));
        vec![
            text(kind),
            super::digest(*digest),
            maybe(max, |max| text(max.to_string())),
            maybe(max, |_| number(running)),
            number(refused),
            maybe(left, |left| seconds(left.as_secs_f64())),
            maybe(message, |message| text(message.clone())),
            maybe(statement, |statement| text(statement.to_string())),
        ]
    };
    let mut rows: Vec<Row> = (console.shared.scheduling.rules.get().iter().map(row)).collect();
    rows.extend(limits_of_users(&console.shared).into_iter().map(|limit| {
        let value = limit.value.unwrap_or_default();
        let mut row = vec![
            text("user"),
            text(limit.user),
            text(format!("{} = {value}", limit.name)),
        ];
        row.resize(8, Value::Null);
        row
    }));
    Ok(rows)
}

fn version(_: &Console, sample: &Sample<'_>) -> Result<Vec<Row>, String> {
    Ok(vec![vec![
        text("onramp"),
        text(env!("CARGO_PKG_VERSION")),
        seconds(sample.began().as_secs_f64()),
    ]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::scripted;

    /// Value and place, as they are shown.
    fn shown(shared: &Shared, name: &str) -> (String, Option<String>) {
        let settings = shared.settings();
        let setting = settings.shown.iter().find(|one| one.name == name).unwrap();
        let value = worked_out(shared, name).unwrap_or_else(|| setting.value.clone());
        (value, place_of(shared, setting))
    }

    #[test]
    fn what_the_server_does_not_take_is_not_in_force() {
        // One group, which has two connections beside its backends; two are for administrators.
        let shared = scripted::shared("backends_max = 20");
        let (value, place) = shown(&shared, "backends_max");
        let place = place.unwrap();
        assert_eq!(value, "20");
        let lowered = format!("{place}, lowered from 20 by the server's max_connections");
        for (connections, value, is_lowered) in [
            (15, "10", true),
            (24, "19", true),
            (25, "20", false),
            (0, "1", true),
            (500, "20", false),
        ] {
            shared.fit_backends(connections);
            let expected = if is_lowered { &lowered } else { &place };
            let expected = (value.to_owned(), Some(expected.clone()));
            assert_eq!(shown(&shared, "backends_max"), expected, "{connections}");
        }
        let (all, place) = shown(&shared, "prepared_max");
        assert_eq!(place, None);
        let all: usize = all.parse().unwrap();
        let lowered =
            format!("default, lowered from {all} by the server's max_prepared_stmt_count");
        for (taken, value, place) in [(16, 12, Some(&lowered)), (2 * all, all, None)] {
            shared.watched.set_prepared_taken(taken);
            let expected = (value.to_string(), place.cloned());
            assert_eq!(shown(&shared, "prepared_max"), expected, "{taken}");
        }
    }
}
