//! Health of the server: time limits, logins, its logs on disk, and its counts since it started.
//!
//! None of these bounds the number of connections; each has made a run's figures, or a morning,
//! worse than they had to be.

use crate::facts::{Facts, Server};
use crate::finding::{Amount, Demand, Finding, Severity, Status};
use crate::number::{bytes, thousands};
use crate::question::Question;
use crate::setting::Setting;

/// Percent between checkpoint and newest record from which on a redo log is short.
const REDO_PERCENT_MAX: u64 = 75;
/// Size of a redo log where much is written, in bytes.
const REDO_BYTES: u64 = 2 << 30;
/// Waits in a long line are longer than this, in seconds.
const WAIT_SECONDS_MIN: u64 = 600;
/// Interrupted logins of a host that a run may have.
const CONNECT_ERRORS_MIN: u64 = 1_000_000;

fn is_on(server: &Server, name: &str) -> bool {
    matches!(server.text(name), "ON" | "1")
}

/// A number that should be at least `least`.
fn at_least(name: &'static str, have: u64, least: u64) -> Finding {
    let status = if have >= least {
        Status::Ok
    } else {
        Status::Warn
    };
    Finding::observed(name, status, Amount::Number(have), Amount::Number(least))
}

pub(super) fn wait_timeout(facts: &Facts, _question: &Question) -> Option<Finding> {
    let have = facts.server.as_ref()?.number("wait_timeout")?;
    Some(
        at_least("wait_timeout", have, WAIT_SECONDS_MIN)
            .why(
                "seconds after which the server closes a connection that says nothing; a backend \
                 of the pool, or a client that is slow to its next statement, then meets error \
                 2006 or 2013",
            )
            .settings(vec![Setting::Global("wait_timeout", "28800".into())]),
    )
}

pub(super) fn max_connect_errors(facts: &Facts, _question: &Question) -> Option<Finding> {
    let server = facts.server.as_ref()?;
    let have = server.number("max_connect_errors")?;
    // The count is kept with the names of hosts.
    let counts = !is_on(server, "skip_name_resolve");
    let least = if counts { CONNECT_ERRORS_MIN } else { 0 };
    Some(
        at_least("max_connect_errors", have, least)
            .why(
                "so many interrupted logins in a row from one host, and the server blocks it \
                 (error 1129): a storm of connects that time out does it. With skip_name_resolve \
                 nobody is counted",
            )
            .settings(vec![Setting::Global(
                "max_connect_errors",
                CONNECT_ERRORS_MIN.to_string(),
            )]),
    )
}

pub(super) fn skip_name_resolve(facts: &Facts, question: &Question) -> Option<Finding> {
    let server = facts.server.as_ref()?;
    let skips = is_on(server, "skip_name_resolve");
    let few = question.wanted() <= 1_000;
    let status = if skips || few {
        Status::Ok
    } else {
        Status::Warn
    };
    let have = Amount::Words(if skips { "ON" } else { "OFF" }.into());
    let need = Amount::Words(if few { "any" } else { "ON" }.into());
    Some(
        Finding::observed("skip_name_resolve", status, have, need)
            .why(
                "without it a login from an address that is not in the host cache waits for a \
                 look-up of its name, and a slow name server makes every login slow",
            )
            .settings(vec![Setting::File("skip_name_resolve", "ON".into())]),
    )
}

/// MariaDB's query cache, where it is on.
pub(super) fn query_cache(facts: &Facts, _question: &Question) -> Option<Finding> {
    let server = facts.server.as_ref()?;
    let size = server.number("query_cache_size").filter(|size| *size > 0)?;
    let kind = server.text("query_cache_type");
    if matches!(kind, "OFF" | "0" | "") {
        return None;
    }
    let have = Amount::Words(format!("{kind}, {}", bytes(size)));
    let need = Amount::Words("OFF".into());
    Some(
        Finding::observed("query_cache", Status::Warn, have, need)
            .why(
                "MariaDB neither fills nor uses it on connections that report the state of \
                 transactions (session_track_transaction_info), which onramp's do: through onramp \
                 it takes memory and a lock, and answers nothing",
            )
            .settings(vec![
                Setting::Global("query_cache_type", "OFF".into()),
                Setting::Global("query_cache_size", "0".into()),
            ]),
    )
}

/// Bytes of redo log that the server has.
fn redo_bytes(server: &Server) -> Option<u64> {
    server.number("innodb_redo_log_capacity").or_else(|| {
        let files = server.number("innodb_log_files_in_group").unwrap_or(1);
        Some(server.number("innodb_log_file_size")? * files)
    })
}

pub(super) fn redo_log(facts: &Facts, _question: &Question) -> Option<Finding> {
    let server = facts.server.as_ref()?;
    let size = redo_bytes(server);
    let name = if server.variables.contains_key("innodb_redo_log_capacity") {
        "innodb_redo_log_capacity"
    } else {
        "innodb_log_file_size"
    };
    let demand = server
        .checkpoint_age
        .map(|age| Demand::new(age.saturating_mul(100) / REDO_PERCENT_MAX, 0));
    let question = Question {
        connections: Some(0),
        ..Question::default()
    };
    let mut finding =
        Finding::of(&question, "redo_log", Severity::Strain, size, [demand; 3]).in_bytes();
    // It is shown as skipped where the account may not see the checkpoint.
    finding.is_asked = true;
    let (age, size) = (server.checkpoint_age, size.unwrap_or_default());
    let why = match age {
        None => {
            "how far the checkpoint is behind is not known: this server shows it to accounts with \
                 the privilege PROCESS only"
                .to_owned()
        }
        Some(age) => format!(
            "{} of the redo log's {} lie between the checkpoint and the newest record (Log \
             sequence number less Last checkpoint at). Past {REDO_PERCENT_MAX} % the server \
             writes pages instead of running statements, and more connections bring nothing",
            bytes(age),
            bytes(size)
        ),
    };
    let value = REDO_BYTES.max(size).to_string();
    Some(
        finding
            .why(why)
            .settings(vec![Setting::Global(name, value)]),
    )
}

pub(super) fn buffer_pool(facts: &Facts, _question: &Question) -> Option<Finding> {
    let server = facts.server.as_ref()?;
    let size = server.number("innodb_buffer_pool_size")?;
    let memory = facts.host.count("memory_bytes").filter(|_| server.is_local);
    let fits = memory.is_none_or(|memory| size <= memory / 10 * 8);
    let status = if fits { Status::Ok } else { Status::Warn };
    let need = memory.map_or(Amount::Unknown, |memory| {
        Amount::Words(format!("at most {}", bytes(memory / 10 * 8)))
    });
    Some(
        Finding::observed("buffer_pool", status, Amount::Words(bytes(size)), need)
            .why(
                "innodb_buffer_pool_size; what it takes is not there for connections, and what \
                 does not fit in it is read from the disk",
            )
            .remedy("leave a fifth of the host's memory to connections and to the kernel"),
    )
}

pub(super) fn flush_settings(facts: &Facts, _question: &Question) -> Option<Finding> {
    let server = facts.server.as_ref()?;
    let (commit, binlog) = (
        server.text("innodb_flush_log_at_trx_commit"),
        server.text("sync_binlog"),
    );
    let have = Amount::Words(format!("{commit} / {binlog}"));
    Some(
        Finding::observed("flush_settings", Status::Ok, have, Amount::Unknown).why(
            "innodb_flush_log_at_trx_commit / sync_binlog: with 1 a commit waits for the disk, so \
             writes are as fast as its syncs, whatever the number of connections",
        ),
    )
}

pub(super) fn aborted_connects(facts: &Facts, _question: &Question) -> Option<Finding> {
    let server = facts.server.as_ref()?;
    let aborted = server.counted("Aborted_connects")?;
    let all = server.counted("Connections").unwrap_or_default();
    let status = if aborted * 100 > all {
        Status::Warn
    } else {
        Status::Ok
    };
    Some(
        Finding::observed(
            "aborted_connects",
            status,
            Amount::Number(aborted),
            Amount::Number(all / 100),
        )
        .why(format!(
            "logins that failed, of {} since the server's start: wrong passwords, handshakes \
             that took longer than connect_timeout, clients that gave up in a storm; one of a \
             hundred is ordinary",
            thousands(all)
        ))
        .remedy("look at the server's log with log_error_verbosity (log_warnings) 3"),
    )
}

pub(super) fn connection_errors(facts: &Facts, _question: &Question) -> Option<Finding> {
    let server = facts.server.as_ref()?;
    let errors = server.status.iter().filter_map(|(name, count)| {
        let name = name.strip_prefix("Connection_errors_")?;
        Some((name, count.parse::<u64>().ok()?))
    });
    let errors: Vec<_> = errors.collect();
    if errors.is_empty() {
        return None;
    }
    let sum = errors.iter().map(|(_, count)| count).sum();
    let names: Vec<String> = errors
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{} {name}", thousands(*count)))
        .collect();
    let status = if sum == 0 { Status::Ok } else { Status::Warn };
    let names = if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    };
    Some(
        Finding::observed(
            "connection_errors",
            status,
            Amount::Number(sum),
            Amount::Number(0),
        )
        .why(format!(
            "connections that the server could not take since its start: {names} \
                 (Connection_errors_*): max_connections is error 1040, internal a thread that \
                 could not be made, accept a lack of descriptors"
        ))
        .remedy("it has happened here: the checks above say which limit is the nearest"),
    )
}

pub(super) fn threads_running(facts: &Facts, _question: &Question) -> Option<Finding> {
    let server = facts.server.as_ref()?;
    let running = server.counted("Threads_running")?;
    let cpus = facts.host.cpus.filter(|_| server.is_local);
    let most = cpus.map_or(64, |cpus| (cpus * 8).max(16));
    let status = if running > most {
        Status::Warn
    } else {
        Status::Ok
    };
    Some(
        Finding::observed(
            "threads_running",
            status,
            Amount::Number(running),
            Amount::Number(most),
        )
        .why("statements that run in the server at this moment: what others do to it now")
        .remedy("it is busy already: what you measure now is not yours alone"),
    )
}
