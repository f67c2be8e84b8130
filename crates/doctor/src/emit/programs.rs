//! Fragments of programs: the server, HAProxy, the pool.
//!
//! They are made from the question alone, so that they can be had without a server that answers;
//! where one did, what is larger there stays.

use super::{comment, head};
use crate::facts::{Facts, Server};
use crate::need::{
    CONNECTIONS_SPARE, SERVER_CONNECTIONS_MAX, SYSBENCH_STATEMENTS, server_connections,
    server_files, server_tables,
};
use crate::number::{round_up, thousands};
use crate::question::{Question, Way};
use std::fmt::Write as _;

/// The most of back_log.
const BACK_LOG_MAX: u64 = 65_535;
/// Statements a second that a small server does at the least, to reckon how long a line may be.
const STATEMENTS_PER_SECOND: u64 = 5_000;

pub(super) fn my_cnf(facts: &Facts, question: &Question) -> String {
    let seen = question.server_sees();
    let mut out = head(
        "/etc/mysql/conf.d/90-onramp.cnf",
        "The server reads it when it starts; its limit of descriptors is the unit's (--emit \
         systemd).",
        facts,
        question,
    );
    let has = |name: &str, value: &str| {
        let server = facts.server.as_ref();
        server.is_some_and(|server| server.text(name).eq_ignore_ascii_case(value))
    };
    let values = server_values(facts.server.as_ref(), question, seen);
    let redo = redo_log_names(facts.server.as_ref()).iter();
    let redo = redo.map(|name| (*name, REDO_BYTES.to_string()));
    let (redo_right, redo): (Vec<_>, Vec<_>) = redo.partition(|(name, value)| has(name, value));
    let (right, values): (Vec<_>, Vec<_>) = values
        .into_iter()
        .partition(|(name, value, _)| has(name, value));
    let right = right.iter().map(|(name, ..)| *name);
    let right: Vec<_> = right
        .chain(redo_right.iter().map(|(name, _)| *name))
        .collect();
    if !right.is_empty() {
        out.push_str(&comment(&format!(
            "Left out, because the server has them so already: {}. One that was set with SET \
             GLOBAL and is in no file is lost at its next start.",
            right.join(", ")
        )));
    }
    out.push_str("\n[mysqld]\n");
    for (name, value, why) in values {
        let _ = write!(out, "{}{name} = {value}\n\n", comment(&why));
    }
    if !redo.is_empty() {
        let why = "Redo log: where much is written, throughput is flat past what it holds, with \
                   any number of connections.";
        out.push_str(&comment(why));
    }
    for (name, value) in redo {
        let _ = writeln!(out, "{name} = {value}");
    }
    if question.ways.contains(&Way::ServerPool) && !has("thread_handling", "pool-of-threads") {
        out.push_str(&pool_of_threads(facts.server.as_ref()));
    }
    out
}

/// Names of the size of the redo log. A server that was not asked takes the name that it knows and
/// passes over the other.
fn redo_log_names(server: Option<&Server>) -> &'static [&'static str] {
    match server {
        None => &[
            "loose_innodb_log_file_size",
            "loose_innodb_redo_log_capacity",
        ],
        Some(server) if server.variables.contains_key("innodb_redo_log_capacity") => {
            &["innodb_redo_log_capacity"]
        }
        Some(_) => &["innodb_log_file_size"],
    }
}

/// The server's own pool; empty where the server has none built in. MySQL ends at a value of
/// thread_handling that it does not know, and does not read the group [mariadb].
fn pool_of_threads(server: Option<&Server>) -> String {
    let (group, why) = match server {
        None => (
            "\n[mariadb]\n",
            "The server's own pool. For Percona Server put it under [mysqld]; MySQL has it as a \
             plugin: plugin-load-add=thread_pool.so instead.",
        ),
        Some(server) if server.is_mariadb() || has_pool_built_in(server) => {
            ("\n", "The server's own pool.")
        }
        Some(_) => return String::new(),
    };
    format!("{group}{}thread_handling = pool-of-threads\n", comment(why))
}

/// True if the thread pool is built in, as in Percona Server; MySQL with the plugin has the
/// variables too, and another thread_handling.
fn has_pool_built_in(server: &Server) -> bool {
    server.variables.contains_key("thread_pool_size")
        && server.text("thread_handling") != "loaded-dynamically"
}

/// Size of a redo log where much is written, in bytes.
const REDO_BYTES: u64 = 2 << 30;

/// Name, value and reason.
type Value = (&'static str, String, String);

fn server_values(server: Option<&Server>, question: &Question, seen: u64) -> Vec<Value> {
    let mut values = numbers(server, question, seen);
    let fixed = [
        (
            "wait_timeout",
            "28800",
            "Seconds of silence that a connection may keep.",
        ),
        (
            "max_connect_errors",
            "1000000",
            "A storm of connects that time out does not block its host (error 1129).",
        ),
        (
            "skip_name_resolve",
            "ON",
            "Logins wait for no name server. Accounts then need addresses, not names, of hosts.",
        ),
    ];
    let text = |(name, value, why): (_, &str, &str)| (name, value.to_owned(), why.to_owned());
    values.extend(fixed.map(text));
    values
}

/// Settings that follow from the number of connections; those that are larger on this server stay.
fn numbers(server: Option<&Server>, question: &Question, seen: u64) -> Vec<Value> {
    let each = question.statements.unwrap_or(SYSBENCH_STATEMENTS);
    let wanted = question.wanted();
    let burst = wanted.min(question.connect_rate).max(seen.min(1_000));
    let numbers = [
        (
            "max_connections",
            server_connections(seen),
            format!(
                "{} that the server sees and {CONNECTIONS_SPARE} to spare, rounded up; {} is the \
                 most a server takes.",
                thousands(seen),
                thousands(SERVER_CONNECTIONS_MAX)
            ),
        ),
        (
            "back_log",
            round_up(burst).min(BACK_LOG_MAX),
            "Connections that wait to be accepted: a second of new ones. The kernel cuts it to \
             net.core.somaxconn."
                .to_owned(),
        ),
        (
            "open_files_limit",
            server_files(seen),
            "One for each connection, two for each place of table_open_cache, and logs; a server \
             that gets fewer cuts both. Its unit needs the same (LimitNOFILE)."
                .to_owned(),
        ),
        (
            "max_prepared_stmt_count",
            round_up(each * seen).clamp(STATEMENTS_MIN, STATEMENTS_MAX),
            format!(
                "{each} statements for each of {} connections; {} is the most that all servers \
                 take.",
                thousands(seen),
                thousands(STATEMENTS_MAX)
            ),
        ),
        (
            "table_open_cache",
            server_tables(seen),
            "An instance of each table for each statement that runs.".to_owned(),
        ),
    ];
    let kept = |(name, value, why): (&'static str, u64, String)| {
        let now = server.and_then(|server| server.number(name));
        (name, value.max(now.unwrap_or_default()).to_string(), why)
    };
    numbers.map(kept).into()
}

/// The default of max_prepared_stmt_count.
const STATEMENTS_MIN: u64 = 16_382;
/// The most that every server takes.
const STATEMENTS_MAX: u64 = 1_048_576;

pub(super) fn haproxy(facts: &Facts, question: &Question) -> String {
    let wanted = question.wanted();
    let ports = facts.host.sysctls.get("net.ipv4.ip_local_port_range");
    let ports = ports
        .and_then(|range| Some(range.last()? - range.first()? + 1))
        .unwrap_or(28_232);
    let sources = wanted.div_ceil(ports);
    let mut out = head(
        "/etc/haproxy/haproxy.cfg",
        "SERVER_ADDRESS and the SOURCE addresses are yours to fill in; haproxy -c -f checks it.",
        facts,
        question,
    );
    let cpus = facts.host.cpus.unwrap_or(1);
    let _ = write!(
        out,
        "\nglobal\n{}    maxconn {wanted}\n{}    ulimit-n {}\n    nbthread {cpus}\n\n",
        indented("Connections of clients at once."),
        indented("Two descriptors for each connection, and some to spare."),
        wanted * 2 + 1_000
    );
    let _ = write!(
        out,
        "defaults\n    mode tcp\n    maxconn {wanted}\n    timeout connect 10s\n{}    timeout \
         client 8h\n    timeout server 8h\n\nlisten mysql\n    bind :6033\n    backlog {}\n",
        indented("As long as the server's wait_timeout: MySQL connections are silent for hours."),
        question.connect_rate
    );
    out.push_str(&indented(&format!(
        "HAProxy passes each connection on as one of its own, so the server sees all {}, and each \
         address of HAProxy's has {} local ports towards the server: {sources} source addresses.",
        thousands(wanted),
        thousands(ports)
    )));
    for number in 1..=sources.min(SOURCES_SHOWN) {
        let share = wanted.div_ceil(sources);
        let _ = writeln!(
            out,
            "    server db{number} SERVER_ADDRESS:3306 source SOURCE_{number} maxconn {share}"
        );
    }
    if sources > SOURCES_SHOWN {
        out.push_str(&indented(&format!("and so on, up to db{sources}.")));
    }
    out
}

/// Lines for source addresses that are written out.
const SOURCES_SHOWN: u64 = 64;

fn indented(words: &str) -> String {
    comment(words)
        .lines()
        .map(|line| format!("    {line}\n"))
        .collect()
}

pub(super) fn onramp(facts: &Facts, question: &Question) -> String {
    let wanted = question.wanted();
    let mut out = head(
        "/etc/onramp/pool.toml",
        "Start it with: onramp pool --config /etc/onramp/pool.toml. Put the server's address and \
         the account in place of the capitals.",
        facts,
        question,
    );
    let address = facts
        .server
        .as_ref()
        .map_or("SERVER_ADDRESS:3306", |server| &server.place);
    let wait_s = (wanted / STATEMENTS_PER_SECOND).max(30);
    let values = [
        (
            "listen",
            "[\"0.0.0.0:6033\"]".to_owned(),
            "Where clients connect.".to_owned(),
        ),
        (
            "clients_max",
            wanted.to_string(),
            "Clients at once, over all groups.".to_owned(),
        ),
        (
            "backends_max",
            question.backends.to_string(),
            "Connections to the server, never exceeded; at least one for each group.".to_owned(),
        ),
        (
            "wait_ms_max",
            (wait_s * 1_000).to_string(),
            format!(
                "The longest wait for a backend. With all {} executing, each waits for all the \
                 others: {wait_s} s at {} statements a second.",
                thousands(wanted),
                thousands(STATEMENTS_PER_SECOND)
            ),
        ),
        (
            "backlog",
            question.connect_rate.max(4_096).to_string(),
            "Connections that wait to be accepted, for each group; the kernel cuts it to \
             net.core.somaxconn."
                .to_owned(),
        ),
    ];
    for (name, value, why) in values {
        let _ = write!(out, "\n{}{name} = {value}\n", comment(&why));
    }
    let _ = write!(
        out,
        "\n[backend]\naddress = \"{address}\"\n\n[[user]]\nname = \"USER\"\npassword = \
         \"PASSWORD\"\n"
    );
    out
}
