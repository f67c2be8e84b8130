//! `onramp load` against MySQL: its logins by caching_sha2_password, and zlib.
//!
//! That a login was the long one (the password over RSA) or the short one (a scramble) is the
//! server's choice: its cache is empty at first. That a connection is compressed is the server's
//! word too: one that lets in nobody else refuses a plain connection.

use crate::world::*;
use serde_json::Value;

fn own_mysql() -> Option<Real> {
    let real = own(Real::start_mysql(&[]))?;
    real.create_user("app", "app's own");
    real.execute(&["CREATE DATABASE sbtest"]);
    Some(real)
}

/// Runs `load` over TCP; its JSON.
fn load(real: &Real, target: &str, words: &str) -> (Ran, Value) {
    let json = real.folder().join("load.json");
    let _ = std::fs::remove_file(&json);
    let mut line = vec!["load", "--target", target, "--json", json.to_str().unwrap()];
    line.extend(words.split_whitespace());
    let ran = run(binary(), &line, LIMIT);
    let text = std::fs::read_to_string(&json).unwrap_or_else(|_| "null".to_owned());
    (ran, serde_json::from_str(&text).unwrap())
}

fn tcp(real: &Real, password: &str) -> String {
    format!("mysql://app:{password}@127.0.0.1:{}/sbtest", real.port())
}

/// All connections stood, all events ended, nothing failed.
fn all_well(ran: &Ran, json: &Value, connections: u64, events: u64) {
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    assert_eq!(json["connected"], connections, "{ran:?}");
    assert_eq!(json["latencies"]["event"]["count"], events, "{json:#}");
    assert_eq!(json["failed_statements"], 0, "{json:#}");
}

#[test]
fn load_logs_in_by_caching_sha2_the_long_way_and_the_short() {
    let real = or_return!(own_mysql());
    let plugin = "SELECT plugin FROM mysql.user WHERE user = 'app'";
    assert_eq!(real.admin().value(plugin), "caching_sha2_password");
    let target = tcp(&real, "app%27s%20own");
    let (ran, _) = load(&real, &target, "select prepare --table-size 100");
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    let run = "select run --table-size 100 --connections 20 --events 200 --time 0";
    // Without a cache, with one, and over the socket, where the password goes in clear.
    for way in ["long", "short", "socket"] {
        let mut target = tcp(&real, "app%27s%20own");
        if way != "short" {
            real.execute(&["FLUSH PRIVILEGES"]);
        }
        if way == "socket" {
            target = format!("mysql://app:app%27s%20own@/sbtest?socket={}", real.socket());
        }
        for mode in ["disable", "auto"] {
            let (ran, json) = load(&real, &target, &format!("{run} --db-ps-mode {mode}"));
            all_well(&ran, &json, 20, 200);
        }
    }
    let (ran, json) = load(&real, &tcp(&real, "wrong"), run);
    assert_eq!(ran.status.code(), Some(1), "{ran:?}");
    let refused = format!("{}{json}", ran.stderr);
    assert!(refused.contains("1045"), "{ran:?}");
}

#[test]
fn load_compresses_for_a_server_that_wants_it() {
    let real = or_return!(own_mysql());
    let target = tcp(&real, "app%27s%20own");
    let sizes = "--tables 2 --table-size 300";
    let (ran, _) = load(&real, &target, &format!("oltp_read_write prepare {sizes}"));
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    real.execute(&["SET GLOBAL protocol_compression_algorithms = 'zlib'"]);
    let run = format!("oltp_read_only run {sizes} --connections 8 --events 80 --time 0");
    let (ran, json) = load(&real, &target, &run);
    assert_eq!(
        ran.status.code(),
        Some(1),
        "a plain connection is refused: {ran:?} {json:#}"
    );
    for mode in ["disable", "auto"] {
        let words = format!("{run} --compression --db-ps-mode {mode}");
        let (ran, json) = load(&real, &target, &words);
        all_well(&ran, &json, 8, 80);
    }
}
