//! The doctor as a process, at a real server: what it prints, sets and sets back.

use crate::world::*;
use serde_json::Value;

fn doctor(arguments: &[&str]) -> Ran {
    let mut all = vec!["doctor"];
    all.extend_from_slice(arguments);
    run(binary(), &all, LIMIT)
}

/// A server of its own: its variables are changed here.
fn own_server(_: &str) -> Option<Real> {
    own(Real::start(&["--max-connections=77"]))
}

fn target(server: &Real) -> String {
    format!("mysql://root@/?socket={}", server.socket())
}

/// Asks about 300 connections straight to a server.
fn direct_for_300(target: &str) -> [&str; 6] {
    [
        "--connections",
        "300",
        "--way",
        "direct",
        "--target",
        target,
    ]
}

fn max_connections(server: &Real) -> String {
    server.admin().value("SELECT @@global.max_connections")
}

#[test]
fn a_servers_limit_is_found_set_and_set_back() {
    let server = or_return!(pooled(own_server));
    let target = target(&server);
    let ladder = doctor(&["--target", &target, "--json"]);
    assert!(ladder.status.success(), "{ladder:?}");
    let answer: serde_json::Value = serde_json::from_str(&ladder.stdout).unwrap();
    assert_eq!(answer["connections_possible"]["direct"], 77, "{ladder:?}");
    assert_eq!(answer["limited_by"]["direct"], "max_connections");
    assert!(answer["connections_possible"]["onramp"].as_u64() > Some(77));
    let check = &answer["checks"][0];
    for key in ["name", "status", "have", "need", "why", "remedy"] {
        assert!(!check[key].is_object(), "{key}: {check}");
        assert!(check.get(key).is_some(), "{key}: {check}");
    }
    // For 300 straight to the server nothing but its own variables is short.
    let wanted = direct_for_300(&target);
    let short = doctor(&wanted).ends(1);
    says(&short.stdout, "SET GLOBAL max_connections = 300");
    let record = server.folder().join("undo.json");
    let record = ["--record", record.to_str().unwrap(), "--yes"];
    let applied = doctor(&[&wanted[..], &record[..], &["--apply"]].concat());
    assert!(applied.status.success(), "{applied:?}");
    assert_eq!(max_connections(&server), "300", "{applied:?}");
    assert_eq!(doctor(&wanted).status.code(), Some(0));
    let undone = doctor(&[&["--undo", "--target", &target][..], &record[..]].concat());
    assert!(undone.status.success(), "{undone:?}");
    assert_eq!(max_connections(&server), "77", "{undone:?}");
    let again = doctor(&[&["--undo"][..], &record[..]].concat());
    assert_eq!(
        again.status.code(),
        Some(2),
        "the record is gone: {again:?}"
    );
}

#[test]
fn nothing_is_set_when_nobody_can_be_asked() {
    let server = or_return!(pooled(own_server));
    let target = target(&server);
    let record = server.folder().join("undo.json");
    let record = record.to_str().unwrap();
    let options = direct_for_300(&target);
    let ran = doctor(&[&options[..], &["--apply", "--record", record]].concat()).ends(2);
    assert!(ran.stderr.contains("--yes"), "{ran:?}");
    assert_eq!(max_connections(&server), "77");
}

#[test]
fn it_says_which_servers_limits_it_reads() {
    let (one, other) = or_return!(pooled(own_server).zip(pooled(own_server)));
    let whose = |pid: u32, server: &Real| {
        let socket = server.socket();
        let place = format!("process {pid} (port {}, socket {socket})", server.port());
        place
    };
    let (first, second) = (whose(one.pid(), &one), whose(other.pid(), &other));
    let unwrapped = |ran: &Ran| ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let ran = doctor(&[]);
    let text = unwrapped(&ran);
    says(&text, "none of their limits are looked at");
    assert!(text.contains(&first) && text.contains(&second), "{text}");
    assert!(text.contains("--server-pid PID"), "{text}");
    let (pid, target) = (one.pid().to_string(), target(&one));
    for named in [["--server-pid", &pid], ["--target", &target]] {
        let text = unwrapped(&doctor(&named));
        assert!(text.contains("limits of the server are those of"), "{text}");
        let (chosen, others) = text.split_once("also on this host").unwrap();
        says(chosen, &first);
        assert!(!chosen.contains(&second), "{chosen}");
        assert!(others.contains(&second), "{text}");
    }
    let ran = doctor(&["--json"]);
    assert!(ran.stderr.contains("choose with --server-pid"), "{ran:?}");
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(answer["server_pid"].is_null(), "{answer}");
    assert!(answer["servers"].as_array().unwrap().len() >= 2, "{answer}");
    doctor(&["--server-pid", "4194304"]).ends(1);
}

/// The check of this name.
fn check<'a>(answer: &'a Value, name: &str) -> &'a Value {
    let checks = answer["checks"].as_array().unwrap();
    let found = checks.iter().find(|check| check["name"] == name);
    found.unwrap_or_else(|| panic!("no check {name}: {answer:#}"))
}

/// The doctor's answer to an account without a single privilege.
fn asked_by_the_poor(server: &Real) -> Value {
    let target = format!("mysql://poor:x@/?socket={}", server.socket());
    let ran = doctor(&["--json", "--target", &target]);
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

#[test]
fn an_account_without_privileges_is_told_what_it_lacks_by_mariadb() {
    let server = or_return!(pooled(own_server));
    server.execute(&["CREATE USER 'poor'@'%' IDENTIFIED BY 'x'"]);
    // MariaDB tells everybody the age of its checkpoint, so nothing is missing.
    let answer = asked_by_the_poor(&server);
    assert_eq!(answer["connections_possible"]["direct"], 77, "{answer:#}");
    assert_eq!(check(&answer, "server")["status"], "ok");
    assert!(check(&answer, "redo_log")["need"].is_u64(), "{answer:#}");
    // But it may set nothing, and is told which privilege would let it.
    let socket = server.socket().to_string();
    let target = format!("mysql://poor:x@/?socket={socket}");
    let record = server.folder().join("undo.json");
    let wanted = direct_for_300(&target);
    let to = ["--apply", "--yes", "--record", record.to_str().unwrap()];
    let ran = doctor(&[&wanted[..], &to[..]].concat()).ends(1);
    let line = "could not set GLOBAL max_connections: error 1227";
    let line = ran.stdout.lines().find(|said| said.starts_with(line));
    let is_named = line.is_some_and(|line| line.contains("CONNECTION ADMIN privilege"));
    assert!(is_named, "{ran:?}");
    assert_eq!(max_connections(&server), "77");
    // Settings of the kernel may have been set besides.
    if record.exists() {
        let undone = doctor(&[&["--undo"][..], &to[1..]].concat());
        assert!(undone.status.success(), "{undone:?}");
    }
    let wrong = doctor(&["--target", &format!("mysql://poor:y@/?socket={socket}")]).ends(1);
    assert!(wrong.stdout.contains("error 1045"), "{wrong:?}");
}

/// Before MySQL 8.0.30 the checkpoint stands in SHOW ENGINE INNODB STATUS only, which wants
/// PROCESS; later ones tell it everybody.
#[test]
fn an_account_without_privileges_is_told_what_it_lacks_by_mysql() {
    let server = or_return!(own(Real::start_mysql(&["--max-connections=77"])));
    server.execute(&["CREATE USER 'poor'@'%' IDENTIFIED BY 'x'"]);
    let answer = asked_by_the_poor(&server);
    assert_eq!(answer["connections_possible"]["direct"], 77, "{answer:#}");
    let told = "SHOW GLOBAL STATUS LIKE 'Innodb_redo_log_checkpoint_lsn'";
    if server.admin().rows(told).rows.is_empty() {
        let asked = check(&answer, "server");
        assert_eq!(asked["status"], "warn", "{answer:#}");
        let why = asked["why"].as_str().unwrap();
        let command = "GRANT PROCESS ON *.* TO 'poor'@'%'";
        says(why, "accounts with PROCESS only");
        assert!(why.ends_with(command), "{why}");
        let redo_log = &check(&answer, "redo_log")["status"];
        assert_eq!(redo_log, "skipped", "{answer:#}");
        server.execute(&[command]);
    } else {
        skip("only in part: the word PROCESS is for MySQL before 8.0.30 (ONRAMP_MYSQL)");
    }
    let answer = asked_by_the_poor(&server);
    assert_eq!(check(&answer, "server")["status"], "ok", "{answer:#}");
    assert!(check(&answer, "redo_log")["need"].is_u64(), "{answer:#}");
}

#[test]
fn pool_and_load_refuse_in_the_doctors_words() {
    let refused = |arguments: &[&str], check: &str| {
        let ran = run(binary(), arguments, LIMIT).ends(1);
        let start = format!("onramp {}: refused: {check}: have ", arguments[0]);
        assert!(ran.stderr.starts_with(&start), "{ran:?}");
        ran.stderr
    };
    let target = "mysql://a@127.0.0.1:1/t";
    let load = format!("load select run --target {target} --connections 200000");
    let load = words(&load);
    let one = ["--source-addresses", "127.0.0.9", "--preflight", "refuse"];
    let said = refused(&[&load[..], &one[..]].concat(), "local_ports");
    let options = ["--connections", "200000", "--role", "client"];
    let answer = doctor(&[&options[..], &["--source-addresses", "127.0.0.9"]].concat());
    let why = "a connection is told from others by addresses and ports";
    says(&said, why);
    says(&answer.stdout, why);
    let backend = "mysql://a@127.0.0.1:1";
    let pool = ["pool", "--listen", "127.0.0.1:0", "--backend", backend];
    let many = words("--clients-max 10000000 --backends-max 1 --preflight refuse");
    let hard = doctor(&["--save-facts", "/dev/stderr"]).stderr;
    let facts: serde_json::Value = serde_json::from_str(&hard).unwrap();
    if facts["this"]["nofile_hard"].as_u64() > Some(9_000_000) {
        return skipped("pool_refuses", "this shell has descriptors for all of them");
    }
    refused(&[&pool[..], &many[..]].concat(), "pool_descriptors");
}
