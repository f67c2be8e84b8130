//! `onramp explain` as a process at a real server, and the doctor's checks against a real server:
//! each fact that matters has its check, with a value.

use crate::world::*;
use serde_json::Value;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// Values that no server has by default.
const OPTIONS: &str = "--max-connections=77 --max-prepared-stmt-count=5432 --back-log=123";

fn own_server(test: &str) -> Option<Real> {
    found(Real::start(&words(OPTIONS)), test)
}

fn target(server: &Real) -> String {
    format!("mysql://root@/?socket={}", server.socket())
}

fn explain(arguments: &[&str]) -> Ran {
    run(binary(), &[&["explain"], arguments].concat(), LIMIT)
}

fn json(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

/// Result of a statement on the server that was named.
fn shown(explained: &Value, sql: &str) -> Value {
    let looks = explained["verify"].as_array().unwrap();
    let look = looks.iter().find(|look| look["sql"] == sql);
    look.unwrap_or_else(|| panic!("no {sql}: {explained:#}"))["now"].clone()
}

#[test]
fn servers_are_only_spoken_of_where_their_limits_are_asked_for() {
    let _two = or_return!(pooled(own_server).zip(pooled(own_server)));
    let ran = explain(&["cD"]);
    assert!(ran.status.success() && ran.stderr.is_empty(), "{ran:?}");
    let ran = explain(&["EMFILE"]);
    assert!(ran.stderr.contains("choose with --server-pid"), "{ran:?}");
}

#[test]
fn explain_shows_the_values_of_the_server_that_is_named() {
    let server = or_return!(pooled(own_server));
    let target = target(&server);
    let mut client = server.admin();
    client.prepare("SELECT 1");
    client.prepare("SELECT 2");
    let statements = "SHOW GLOBAL VARIABLES LIKE 'max_prepared_stmt_count'";
    let now = "SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'";
    let ran = explain(&["1461", "--json", "--target", &target]);
    assert!(ran.status.success() && ran.stderr.is_empty(), "{ran:?}");
    let answer = json(&ran);
    assert_eq!(answer[0]["name"], "server-1461");
    assert_eq!(shown(&answer[0], statements), "5432");
    assert_eq!(shown(&answer[0], now), "2");
    // Without a target no value of a server is known.
    let bare = json(&explain(&["1461", "--json"]));
    assert_eq!(shown(&bare[0], statements), Value::Null);
    let line = "ERROR 1040 (08004): Too many connections";
    let ran = explain(&[line, "--target", &target]);
    let text = ran.stdout;
    let at = text.find("sql> SHOW GLOBAL VARIABLES LIKE 'max_connections'");
    let after = at.map(|at| text[at..].lines().nth(1).unwrap_or_default());
    says(after.unwrap(), "77");
}

#[test]
fn explain_goes_on_without_a_server_that_does_not_answer() {
    let nowhere = "mysql://root@/?socket=/nowhere/s.sock";
    let ran = explain(&["1135", "--json", "--target", nowhere]);
    assert!(ran.status.success(), "{ran:?}");
    let said = "onramp explain: cannot connect to /nowhere/s.sock: No such file";
    assert!(ran.stderr.starts_with(said), "{ran:?}");
    assert_eq!(json(&ran)[0]["name"], "server-1135");
    explain(&["there is no such error", "--target", nowhere]).ends(1);
}

#[test]
fn explain_reads_a_log_beside_the_server_that_wrote_it() {
    let server = or_return!(pooled(own_server));
    let mut child = Command::new(binary())
        .args(["explain", "--json", "--target", &target(&server)])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let log = "FATAL: MySQL error: 1461 \"Can't create more than max_prepared_stmt_count \
               statements (current value: 5432)\"\nall is well\n";
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(log.as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let statements = "SHOW GLOBAL VARIABLES LIKE 'max_prepared_stmt_count'";
    assert_eq!(shown(&answer[0], statements), "5432");
    says(answer[0]["arithmetic"].as_str().unwrap(), "5,432 / 91");
}

/// Facts of the host and of the server, the check that has each, and what else its words must name.
/// Where a check is there only sometimes (conntrack is loaded, a setting is shown in this
/// namespace), it stands in [`SOMETIMES`].
const FACTS: &str = "
    max_map_count => memory maps
    pid_max =>
    threads_max =>
    group_pids => pids.max; TasksMax
    user_processes => RLIMIT_NPROC
    server_descriptors => soft; hard; open_files_limit; mariadbd (process
    nr_open =>
    pool_descriptors => ulimit -Hn
    client_descriptors => ulimit -Hn
    file_max => open now
    memory => in the kernel; in processes
    group_memory => memory.max
    overcommit => stack
    tcp_mem => pages
    tcp_buffers => tcp_rmem; tcp_wmem
    local_ports => reserved; TIME_WAIT; target addresses
    epoll_watches =>
    accept_queue => back_log (123); somaxconn
    syn_queue => tcp_max_syn_backlog
    listen_drops => SYNs dropped
    orphans => tcp_max_orphans
    time_wait_overflows => tcp_max_tw_buckets
    cpus =>
    steal =>
    clock_source =>
    server => asked at
    max_connections =>
    max_user_connections =>
    max_prepared_stmt_count => 9 x 10 + 1
    thread_handling => thread_pool_size; thread_pool_max_threads
    table_open_cache =>
    session_buffers => sort_buffer_size; join_buffer_size
    wait_timeout =>
    max_connect_errors =>
    skip_name_resolve =>
    redo_log => Last checkpoint at
    buffer_pool =>
    flush_settings => innodb_flush_log_at_trx_commit
    aborted_connects =>
    connection_errors => Connection_errors_
    threads_running =>";
const SOMETIMES: &str = "connection_table conntrack netdev_backlog tcp_sockets";

#[test]
fn every_fact_of_host_and_server_has_its_check() {
    let server = or_return!(pooled(own_server));
    let line = "doctor --json --connections 1000 --source-addresses 1 --target";
    let ran = onramp(&format!("{line} {}", target(&server)));
    let answer = json(&ran);
    let checks = answer["checks"].as_array().unwrap();
    let facts = table(FACTS);
    for [name, parts] in &facts {
        let check = checks.iter().find(|check| check["name"] == *name);
        let check = check.unwrap_or_else(|| panic!("no {name}: {answer:#}"));
        let is_asked = !check["have"].is_null() && check["status"] != "skipped";
        assert!(is_asked, "{check:#}");
        let why = check["why"].as_str().unwrap();
        parts.split("; ").for_each(|part| says(why, part));
    }
    let mut names = checks.iter().map(|check| check["name"].as_str().unwrap());
    let is_known = |name: &str| {
        words(SOMETIMES).contains(&name) || facts.iter().any(|[known, _]| *known == name)
    };
    let unknown = names.find(|name| !is_known(name));
    assert_eq!(unknown, None, "a check without its place in this table");
    let have =
        |name: &str| checks.iter().find(|check| check["name"] == name).unwrap()["have"].clone();
    assert_eq!(have("max_connections"), 77);
    assert_eq!(have("max_prepared_stmt_count"), 5432);
    assert!(have("server").as_str().unwrap().contains("MariaDB"));
}
