//! Facts that a server tells of itself, asked over the wire.
//!
//! Three questions: global variables, global status, and where the checkpoint of the redo log is,
//! which some servers tell in status variables and others only in SHOW ENGINE INNODB STATUS, for
//! which an account needs the privilege PROCESS. What may not be asked is said in a sentence with
//! the privilege and the command that grants it; everything else is used all the same.

use crate::client::{Client, Failure};
use crate::explain::is_told;
use crate::facts::{Fact, Files, Server};
use crate::target::Target;
use std::collections::BTreeMap;

/// Variables that some check looks at.
const VARIABLES: &[&str] = &[
    "back_log",
    "innodb_buffer_pool_size",
    "innodb_flush_log_at_trx_commit",
    "innodb_log_file_size",
    "innodb_log_files_in_group",
    "innodb_redo_log_capacity",
    "join_buffer_size",
    "max_connect_errors",
    "max_connections",
    "max_prepared_stmt_count",
    "max_user_connections",
    "net_buffer_length",
    "open_files_limit",
    "pid_file",
    "datadir",
    "query_cache_size",
    "query_cache_type",
    "read_buffer_size",
    "read_rnd_buffer_size",
    "skip_name_resolve",
    "sort_buffer_size",
    "sync_binlog",
    "table_open_cache",
    "thread_cache_size",
    "thread_handling",
    "thread_pool_max_threads",
    "thread_pool_oversubscribe",
    "thread_pool_size",
    "thread_pool_stall_limit",
    "thread_stack",
    "tmp_table_size",
    "version_comment",
    "wait_timeout",
];

/// Status that some check looks at; all of `Connection_errors_*` besides.
const STATUS: &[&str] = &[
    "Aborted_clients",
    "Aborted_connects",
    "Connections",
    "Innodb_checkpoint_age",
    "Innodb_redo_log_checkpoint_lsn",
    "Innodb_redo_log_current_lsn",
    "Max_used_connections",
    "Prepared_stmt_count",
    "Threads_cached",
    "Threads_connected",
    "Threads_created",
    "Threads_running",
];

/// The server's number for a privilege that is missing.
const NEEDS_PRIVILEGE: u16 = 1227;

/// Asks the server at `target`. Also returns sentences about what it would not tell.
///
/// # Errors
/// A sentence about a server that cannot be reached, or does not let us in.
pub fn ask(target: &Target) -> Result<(Server, Vec<String>), Failure> {
    let mut client = Client::connect(target)?;
    let mut missing = Vec::new();
    let mut all = |client: &mut Client, sql: &str| match client.query(sql) {
        Ok(rows) => pairs(rows),
        Err(failure) => {
            missing.push(failure.to_string());
            BTreeMap::new()
        }
    };
    let variables = all(&mut client, "SHOW GLOBAL VARIABLES");
    let status = all(&mut client, "SHOW GLOBAL STATUS");
    let mut server = Server {
        place: target.dsn.place(),
        is_local: client.is_local(),
        link: Some(client.link()),
        version: variables.get("version").cloned().unwrap_or_default(),
        variables: only(variables, |name| VARIABLES.contains(&name) || is_told(name)),
        status: only(status, |name| {
            STATUS.contains(&name) || name.starts_with("Connection_errors_") || is_told(name)
        }),
        checkpoint_age: None,
    };
    account_limit(&mut client, &mut server);
    match checkpoint_age(&mut client, &server) {
        Ok(age) => server.checkpoint_age = age,
        Err(failure) if failure.code == Some(NEEDS_PRIVILEGE) => missing.push(format!(
            "the position of the checkpoint is shown to accounts with PROCESS only: GRANT PROCESS \
             ON *.* TO {}",
            account(&mut client, target)
        )),
        Err(failure) => missing.push(failure.to_string()),
    }
    Ok((server, missing))
}

/// The account that the server took us for, as GRANT wants it written.
fn account(client: &mut Client, target: &Target) -> String {
    let rows = client.query("SELECT CURRENT_USER()").unwrap_or_default();
    let name = rows.into_iter().flatten().next().unwrap_or_default();
    let (user, host) = name.rsplit_once('@').unwrap_or((&target.dsn.user, "%"));
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
    format!("{}@{}", quoted(user), quoted(host))
}

/// Reads what this account may have from the session's value, where it may have less than others.
fn account_limit(client: &mut Client, server: &mut Server) {
    let rows = client
        .query("SELECT @@session.max_user_connections")
        .unwrap_or_default();
    if let Some(value) = rows.into_iter().flatten().next() {
        server
            .variables
            .insert("max_user_connections".to_owned(), value);
    }
}

/// `name, value` as a map.
fn pairs(rows: Vec<Vec<String>>) -> BTreeMap<String, String> {
    let pair = |row: Vec<String>| {
        let mut row = row.into_iter();
        Some((row.next()?, row.next()?))
    };
    rows.into_iter().filter_map(pair).collect()
}

fn only(all: BTreeMap<String, String>, wanted: impl Fn(&str) -> bool) -> BTreeMap<String, String> {
    all.into_iter().filter(|(name, _)| wanted(name)).collect()
}

/// Bytes of redo log between the newest record and the checkpoint.
fn checkpoint_age(client: &mut Client, server: &Server) -> Result<Fact, Failure> {
    if let Some(age) = server.counted("Innodb_checkpoint_age") {
        return Ok(Some(age));
    }
    let lsn = |which: &str| server.counted(&format!("Innodb_redo_log_{which}_lsn"));
    if let (Some(current), Some(checkpoint)) = (lsn("current"), lsn("checkpoint")) {
        return Ok(Some(current.saturating_sub(checkpoint)));
    }
    let rows = client.query("SHOW ENGINE INNODB STATUS")?;
    let text = rows.into_iter().flatten().next_back().unwrap_or_default();
    Ok(age_in_status(&text))
}

/// Age of the checkpoint by the lines `Log sequence number 123` and `Last checkpoint at 45`.
fn age_in_status(text: &str) -> Fact {
    let number = |name: &str| -> Fact {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse().ok()
    };
    let age = number("Log sequence number")?.saturating_sub(number("Last checkpoint at")?);
    Some(age)
}

/// The process of a server on this host, by the file in which it wrote its number.
#[must_use]
pub fn local_process(files: &Files, server: &Server) -> Fact {
    if !server.is_local {
        return None;
    }
    let named = server.text("pid_file");
    let path = if named.starts_with('/') {
        named.to_owned()
    } else {
        format!("{}/{named}", server.text("datadir").trim_end_matches('/'))
    };
    let pid = files.number(&path)?;
    // In a container the number is of the container, and may be anybody's here.
    let name = files.text(&format!("/proc/{pid}/comm"))?;
    ["mysqld", "mariadbd"].contains(&name.trim()).then_some(pid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::dsn::Dsn;

    #[test]
    fn the_checkpoints_age_is_the_difference_of_two_lines() {
        let text = "LOG\n---\nLog sequence number          2222568315\n\
            Log flushed up to            2222533410\nLast checkpoint at           2144057261\n";
        assert_eq!(age_in_status(text), Some(78_511_054));
        assert_eq!(age_in_status("nothing"), None);
    }

    #[test]
    fn a_process_is_found_by_its_file_and_only_on_this_host() {
        let root = std::env::temp_dir().join(format!("doctor-{}-pid", std::process::id()));
        for (path, text) in [("data/db.pid", "7\n"), ("proc/7/comm", "mariadbd\n")] {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let files = Files::below(&root);
        let mut server = Server {
            is_local: true,
            ..Server::default()
        };
        server.variables.insert("pid_file".into(), "db.pid".into());
        server.variables.insert("datadir".into(), "/data/".into());
        assert_eq!(local_process(&files, &server), Some(7));
        server.is_local = false;
        assert_eq!(local_process(&files, &server), None);
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn nobody_there_is_said_with_its_place() {
        let dsn = Dsn::parse("mysql://a@/?socket=/nowhere/s.sock").unwrap();
        let target = Target::new(dsn, None).unwrap();
        let failure = ask(&target).unwrap_err();
        assert!(
            failure
                .words
                .starts_with("cannot connect to /nowhere/s.sock: No such file")
        );
    }
}
