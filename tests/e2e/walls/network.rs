//! The network's walls: local ports, in a network of the test's own, and the listener's line.

use super::{compare, doctor, explained, has, is_root};
use crate::world::*;
use serde_json::Value;
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};

#[test]
fn local_ports_end_where_the_doctor_says() {
    if !is_root() || !has(&["unshare", "nsenter", "ip"]) {
        return;
    }
    let script = r#"ip link set lo up &&
        echo "20000 20999" > /proc/sys/net/ipv4/ip_local_port_range && exec "$@""#;
    let prefix = ["unshare", "--net", "sh", "-c", script, "sh"];
    let real = or_return!(own(Real::start_behind(
        &prefix,
        &["--max-connections=3000"]
    )));
    real.create_user("app", "app");
    let pid = real.pid().to_string();
    let enter = ["nsenter", "--target", &pid, "--net", "--"];
    let forecast = doctor(&enter, &["--role", "client", "--source-addresses", "1"]);
    let (report, said) = load(&enter, real.port(), &real.folder().join("load.json"));
    let reached = report["connected"].as_u64().unwrap();
    let errors = report["errors"].as_array().unwrap();
    assert!(errors.iter().any(|error| error["code"] == 99), "{report:#}");
    let words = said.lines().find(|line| line.contains("EADDRNOTAVAIL"));
    assert_eq!(explained(words.unwrap()), ["client-2003-99"], "{said}");
    compare(&forecast, "local_ports", reached);
}

/// Opens more connections from one address than there are ports.
fn load(enter: &[&str], port: u16, json: &std::path::Path) -> (Value, String) {
    let target = format!("mysql://app:app@127.0.0.1:{port}/mysql");
    let output = Command::new(enter[0])
        .args(&enter[1..])
        .arg(binary())
        .args(["load", "select", "run", "--target", &target])
        .args(["--connections", "2000", "--source-addresses", "127.0.0.1"])
        .args(["--time", "1", "--json"])
        .arg(json)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let text = fs::read_to_string(json).unwrap_or_else(|error| panic!("{error}: {said}"));
    (serde_json::from_str(&text).unwrap(), said)
}

#[test]
fn connections_that_wait_end_where_the_doctor_says() {
    let test = "connections_that_wait_end_where_the_doctor_says";
    if !has(&["kill"]) {
        return;
    }
    let real = or_return!(own(Real::start(&["--back-log=200"])));
    let target = format!("mysql://root@localhost?socket={}", real.socket());
    let forecast = doctor(&[], &["--target", &target]);
    let line = forecast.have("accept_queue");
    let pid = real.pid().to_string();
    let stopped = Command::new("kill").args(["-STOP", &pid]).status().unwrap();
    assert!(stopped.success());
    let place = SocketAddr::from(([127, 0, 0, 1], real.port()));
    let mut waiting = Vec::new();
    // A line that is full does not answer at all; one that is not answers at once.
    while let Ok(stream) = TcpStream::connect_timeout(&place, Duration::from_secs(2)) {
        waiting.push(stream);
        assert!(waiting.len() < 1000, "the line has no end");
    }
    let reached = waiting.len() as u64;
    eprintln!("{test}: forecast {line}, reached {reached}");
    let is_near = line.abs_diff(reached) * 50 <= reached;
    assert!(is_near, "forecast {line}, reached {reached}");
}
