//! The doctor as a process, at a real server: what it prints, sets and sets back.

use crate::world::{binary, direct, found};
use std::time::Duration;
use testkit::onramp::{Ran, run};
use testkit::real::{Real, skipped};

const LIMIT: Duration = Duration::from_secs(20);

fn doctor(arguments: &[&str]) -> Ran {
    let mut all = vec!["doctor"];
    all.extend_from_slice(arguments);
    run(binary(), &all, LIMIT)
}

/// A server of its own: its variables are changed here.
fn own_server(test: &str) -> Option<Real> {
    if direct() {
        skipped(test, "it is about the doctor");
        return None;
    }
    found(Real::start(&["--max-connections=77"]), test)
}

fn target(server: &Real) -> String {
    format!("mysql://root@/?socket={}", server.socket())
}

fn max_connections(server: &Real) -> String {
    server.admin().value("SELECT @@global.max_connections")
}

#[test]
fn a_servers_limit_is_found_set_and_set_back() {
    let Some(server) = own_server("a_servers_limit_is_found_set_and_set_back") else {
        return;
    };
    let target = target(&server);
    let ladder = doctor(&["--target", &target, "--json"]);
    assert!(ladder.status.success(), "{ladder:?}");
    let answer: serde_json::Value = serde_json::from_str(&ladder.stdout).unwrap();
    assert_eq!(answer["connections_possible"]["direct"], 77, "{ladder:?}");
    assert_eq!(answer["limited_by"]["direct"], "max_connections");
    assert!(answer["connections_possible"]["onramp"].as_u64() > Some(77));
    let check = &answer["checks"][0];
    for key in ["name", "status", "have", "need", "why", "remedy"] {
        assert!(
            !check[key].is_object() && check.get(key).is_some(),
            "{key}: {check}"
        );
    }
    // For 300 straight to the server nothing but its own variables is short.
    let wanted = [
        "--connections",
        "300",
        "--way",
        "direct",
        "--target",
        &target,
    ];
    let short = doctor(&wanted);
    assert_eq!(short.status.code(), Some(1), "{short:?}");
    assert!(
        short.stdout.contains("SET GLOBAL max_connections = 300"),
        "{short:?}"
    );
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
    let Some(server) = own_server("nothing_is_set_when_nobody_can_be_asked") else {
        return;
    };
    let target = target(&server);
    let record = server.folder().join("undo.json");
    let record = record.to_str().unwrap();
    let options = [
        "--connections",
        "300",
        "--way",
        "direct",
        "--target",
        &target,
    ];
    let ran = doctor(&[&options[..], &["--apply", "--record", record]].concat());
    assert_eq!(ran.status.code(), Some(2), "{ran:?}");
    assert!(ran.stderr.contains("--yes"), "{ran:?}");
    assert_eq!(max_connections(&server), "77");
}

#[test]
fn what_an_account_may_not_ask_is_said_with_its_privilege() {
    let Some(server) = own_server("what_an_account_may_not_ask_is_said") else {
        return;
    };
    server.create_user("poor", "x");
    server.execute(&["REVOKE ALL PRIVILEGES, GRANT OPTION FROM 'poor'@'%'"]);
    let socket = server.socket().to_string();
    let ran = doctor(&[
        "--target",
        &format!("mysql://poor:x@/?socket={socket}"),
        "--json",
    ]);
    // MariaDB tells everybody its checkpoint's age; MySQL and what is older want PROCESS.
    let answer: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(answer["connections_possible"]["direct"], 77, "{ran:?}");
    let wrong = doctor(&["--target", &format!("mysql://poor:y@/?socket={socket}")]);
    assert_eq!(wrong.status.code(), Some(1), "{wrong:?}");
    assert!(wrong.stdout.contains("error 1045"), "{wrong:?}");
}

#[test]
fn the_poolers_fragment_starts_a_pool_but_for_names() {
    if direct() {
        return skipped(
            "the_poolers_fragment_starts_a_pool",
            "it is about the doctor",
        );
    }
    let ran = doctor(&["--connections", "2000", "--emit", "onramp"]);
    assert!(ran.status.success(), "{ran:?}");
    let text = ran.stdout.replace("SERVER_ADDRESS", "127.0.0.1");
    let settings = pool::Raw::parse(&text).and_then(pool::Raw::check).unwrap();
    assert_eq!(settings.clients_max, 2_000);
    for form in [
        "sysctl", "limits", "systemd", "ansible", "my.cnf", "haproxy",
    ] {
        let ran = doctor(&["--connections", "2000", "--emit", form]);
        assert!(
            ran.status.success() && ran.stdout.len() > 300,
            "{form}: {ran:?}"
        );
    }
}

#[test]
fn pool_and_load_refuse_in_the_doctors_words() {
    if direct() {
        return skipped("pool_and_load_refuse", "it is about the doctor");
    }
    let refused = |arguments: &[&str], check: &str| {
        let ran = run(binary(), arguments, LIMIT);
        assert_eq!(ran.status.code(), Some(1), "{ran:?}");
        let start = format!("onramp {}: refused: {check}: have ", arguments[0]);
        assert!(ran.stderr.starts_with(&start), "{ran:?}");
        ran.stderr
    };
    let target = "mysql://a@127.0.0.1:1/t";
    let load = [
        "load",
        "select",
        "run",
        "--target",
        target,
        "--connections",
        "200000",
    ];
    let one = ["--source-addresses", "127.0.0.9", "--preflight", "refuse"];
    let words = refused(&[&load[..], &one[..]].concat(), "local_ports");
    let options = ["--connections", "200000", "--role", "client"];
    let answer = doctor(&[&options[..], &["--source-addresses", "127.0.0.9"]].concat());
    let why = "a connection is told from others by addresses and ports";
    assert!(
        words.contains(why) && answer.stdout.contains(why),
        "{words}\n{answer:?}"
    );
    let backend = "mysql://a:b@127.0.0.1:1";
    let pool = ["pool", "--listen", "127.0.0.1:0", "--backend", backend];
    let many = [
        "--clients-max",
        "10000000",
        "--backends-max",
        "1",
        "--preflight",
        "refuse",
    ];
    let hard = doctor(&["--save-facts", "/dev/stderr"]).stderr;
    let facts: serde_json::Value = serde_json::from_str(&hard).unwrap();
    if facts["this"]["nofile_hard"].as_u64() > Some(9_000_000) {
        return skipped("pool_refuses", "this shell has descriptors for all of them");
    }
    refused(&[&pool[..], &many[..]].concat(), "pooler_descriptors");
}
