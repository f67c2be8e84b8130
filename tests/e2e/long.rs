//! Long connections and HTTP: `onramp load` against `onramp target`, and against servers that lie.
//!
//! What is late depends on the machine, so no test asserts that something was in time; what is
//! right, wrong or lost does not.

use crate::load::fetch;
use crate::world::*;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Mutex;
use testkit::onramp::Target;

pub(crate) fn target(kind: &str, arguments: &[&str]) -> Target {
    let all = [&["--connections-max", "2000"], arguments].concat();
    Target::start(binary(), kind, &all).unwrap()
}

fn load(words: &str) -> Ran {
    onramp(&format!("load {words} --report-interval 0")).ends(0)
}

fn hold(address: &str, words: &str) -> Ran {
    load(&format!("tcp-hold --target tcp://{address} {words}"))
}

/// The number in front of `word` in the report's line that begins with `line`.
pub(crate) fn number(ran: &Ran, line: &str, word: &str) -> u64 {
    let found = ran.stdout.lines().find(|text| text.starts_with(line));
    let words: Vec<_> = found.unwrap_or_default().split([' ', ',']).collect();
    let at = words.iter().position(|found| *found == word);
    let number = at.and_then(|at| words[at - 1].parse().ok());
    number.unwrap_or_else(|| panic!("no number of '{word}' in {line} of {}", ran.stdout))
}

/// Right ones and late ones, wrong ones, lost ones.
fn verdicts(ran: &Ran, line: &str) -> (u64, u64, u64) {
    let of = |word| number(ran, line, word);
    (of("right") + of("late"), of("wrong"), of("lost"))
}

#[test]
fn every_message_to_every_connection_is_counted() {
    let target = target("tcp", &["--every", "400ms", "--groups", "2"]);
    let line = "--connections 300 --every 400ms --time 3s --late-after 20s";
    let ran = hold(&target.address, line);
    let (came, wrong, lost) = verdicts(&ran, "messages:");
    assert_eq!((wrong, lost), (0, 0), "{ran:?}");
    assert!((300..=300 * 60).contains(&came), "{ran:?}");
    assert_eq!(number(&ran, "connections:", "stood"), 300, "{ran:?}");
    let (status, said) = target.end();
    assert!(status.success());
    let sent: u64 = said
        .rsplit("; ")
        .find_map(|part| part.split_once(" messages sent"))
        .and_then(|(number, _)| number.parse().ok())
        .unwrap_or_else(|| panic!("{said}"));
    assert!(sent >= came, "{sent} sent, {came} came");
    assert!(said.contains("300 accepted"), "{said}");
}

#[test]
fn messages_of_any_size_are_compared_to_their_last_byte() {
    let target = target("tcp", &["--every", "200ms", "--payload-size", "300000"]);
    let with = |size| {
        let rest = "--connections 8 --every 200ms --time 2s --late-after 20s";
        hold(&target.address, &format!("--payload-size {size} {rest}"))
    };
    let (came, wrong, lost) = verdicts(&with("300000"), "messages:");
    assert_eq!((wrong, lost), (0, 0));
    assert!(came >= 8, "{came}");
    let ran = with("299999");
    let (_, wrong, _) = verdicts(&ran, "messages:");
    assert!(wrong > 0, "{ran:?}");
}

#[test]
fn other_bytes_are_wrong_and_silence_is_lost() {
    let lies = target("tcp", &["--every", "200ms", "--payload", "no"]);
    let line = "--connections 20 --every 200ms --time 2s --late-after 20s";
    let ran = hold(&lies.address, line);
    let (right, wrong, _) = verdicts(&ran, "messages:");
    assert!(right == 0 && wrong >= 20, "{ran:?}");
    assert!(ran.stdout.contains("20 a wrong one"), "{ran:?}");

    let silent = target("tcp", &["--every", "1h"]);
    let line = "--connections 20 --every 100ms --time 1s --late-after 100ms";
    let ran = hold(&silent.address, line);
    let (right, wrong, lost) = verdicts(&ran, "messages:");
    assert!(right == 0 && wrong == 0 && lost >= 20 * 9, "{ran:?}");
    let lost = number(&ran, "connections:", "lost");
    assert_eq!(lost, 0, "the connections stand: {ran:?}");
}

/// A server of the test's own, which does `act` with each connection, one after the other.
fn server(act: impl Fn(std::net::TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || listener.incoming().map_while(Result::ok).for_each(act));
    address
}

#[test]
fn a_connection_that_the_server_ends_is_lost_with_all_its_messages() {
    let address = server(drop);
    let line = "--connections 10 --every 100ms --time 1s --late-after 0s";
    let ran = hold(&address, line);
    assert_eq!(number(&ran, "connections:", "lost"), 10, "{ran:?}");
    let (_, _, lost) = verdicts(&ran, "messages:");
    assert!(lost >= 90, "{ran:?}");
    says(&ran.stdout, "10 x 2013 the server closed the connection");
}

#[test]
fn answers_are_counted_with_and_without_keep_alive() {
    let target = target("http", &["--payload", "hello"]);
    let ask = |more: &str| {
        let usual = "--connections 20 --time 1s --late-after 20s";
        load(&format!("http://{}/x {usual} {more}", target.address))
    };
    for more in [
        "--expect hello",
        "--expect hello --think-time 10ms-50ms",
        "--expect hello --no-keep-alive --think-time 50ms",
    ] {
        let ran = ask(more);
        let (right, wrong, lost) = verdicts(&ran, "answers:");
        assert!(right >= 20 && wrong == 0 && lost == 0, "{more:?}: {ran:?}");
    }
    let ran = ask("--expect hell");
    let (right, wrong, _) = verdicts(&ran, "answers:");
    assert!(right == 0 && wrong >= 20, "{ran:?}");
    let (_, said) = target.end();
    assert!(said.contains("0 connections stand"), "{said}");
}

/// The JSON of a run, which must say what its text says.
#[test]
fn the_json_says_what_the_text_says_and_only_what_is_documented() {
    let held = target("tcp", &["--every", "200ms", "--payload-size", "70000"]);
    let asked = target("http", &["--payload-size", "70000"]);
    let json = |name: &str, run: &dyn Fn(&str) -> Ran| {
        let file = format!("onramp-long-{}-{name}.json", std::process::id());
        let file = std::env::temp_dir().join(file);
        let ran = run(file.to_str().unwrap());
        let text = std::fs::read_to_string(&file).unwrap();
        let _ = std::fs::remove_file(&file);
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        (ran, json)
    };
    let hold_to = |file: &str| {
        let line = "--payload-size 70000 --every 200ms --connections 12 --time 1s --json";
        hold(&held.address, &format!("{line} {file}"))
    };
    let ask_to = |file: &str| {
        let line = "--expect-size 70000 --think-time 20ms --connections 12 --time 1s --json";
        load(&format!("http://{}/ {line} {file}", asked.address))
    };
    let manual = include_str!("../../docs/long.md");
    for (line, (ran, json)) in [
        ("messages:", json("hold", &hold_to)),
        ("answers:", json("ask", &ask_to)),
    ] {
        let verdicts = &json["messages"];
        for word in ["right", "late", "wrong", "lost"] {
            let expected = number(&ran, line, word);
            assert_eq!(verdicts[word], expected, "{word}: {ran:?} {json:#}");
        }
        let came = verdicts["right"].as_u64().unwrap() + verdicts["late"].as_u64().unwrap();
        assert!(came >= 12, "{json:#}");
        assert_eq!(verdicts["wrong"], 0);
        assert_eq!(verdicts["lost"], 0);
        for name in ["connections", "connected", "standing"] {
            assert_eq!(json[name], 12, "{name}: {json:#}");
        }
        assert_eq!(json["failed_connects"], 0);
        assert!(json["bytes"].as_u64() >= Some(came * 70_000), "{json:#}");
        for name in json.as_object().unwrap().keys() {
            let is_there = manual.contains(&format!("`{name}`"));
            assert!(is_there, "{name} is not in docs/long.md");
        }
    }
}

/// Last state of the page of a run, and its figures, when all connections were open.
fn watched(words: &str) -> (Ran, serde_json::Value, String) {
    let address = format!("127.0.0.1:{}", free_port());
    let all = format!("{words} --http {address}");
    std::thread::scope(|scope| {
        let running = scope.spawn(|| load(&all));
        let (mut seen, mut metrics) = (serde_json::Value::Null, None);
        while !running.is_finished() && seen["series"].as_array().is_none_or(Vec::is_empty) {
            let live = fetch(&address, "/live.json").unwrap_or_default();
            let (_, json) = live.split_once("\r\n\r\n").unwrap_or_default();
            seen = serde_json::from_str(json).unwrap_or(seen);
            metrics = fetch(&address, "/metrics").or(metrics);
            std::thread::yield_now();
        }
        (running.join().unwrap(), seen, metrics.unwrap())
    })
}

#[test]
fn the_page_of_a_run_is_served_while_it_goes() {
    let held = target("tcp", &["--every", "100ms"]);
    let every = "--every 100ms --time 4s --connections 30";
    let target_of = format!("tcp-hold --target tcp://{}", held.address);
    let (_, seen, metrics) = watched(&format!("{target_of} {every}"));
    assert_eq!(seen["kind"], "tcp-hold", "{seen}");
    assert_eq!(seen["is_ramp"], false, "{seen}");
    assert_eq!(seen["connected"], 30);
    assert_eq!(seen["tls"], "none");
    let came = |seen: &serde_json::Value| {
        let of = |word: &str| seen["messages"][word].as_u64().unwrap();
        of("right") + of("late")
    };
    assert!(came(&seen) > 0, "{seen}");
    assert!(seen["host"]["tcp_open"].as_u64().unwrap() >= 30, "{seen}");
    says(&metrics, "onramp_load_messages_total{verdict=\"right\"}");

    let asked = target("http", &[]);
    let rest = "--connections 7 --think-time 10ms --time 4s";
    let (_, seen, metrics) = watched(&format!("http://{}/ {rest}", asked.address));
    assert_eq!(seen["kind"], "http");
    assert_eq!(seen["message"], "answer");
    assert!(came(&seen) > 0, "{seen}");
    assert!(seen["latency"]["p99_ms"].as_f64().unwrap() > 0.0, "{seen}");
    let rate = seen["series"][0]["messages_per_s"].as_f64().unwrap();
    assert!(rate > 0.0, "{seen}");
    says(&metrics, "onramp_load_connects_total 7");
}

#[test]
fn an_answer_that_breaks_off_is_lost_and_asked_for_again() {
    let address = server(|mut stream| {
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
    });
    let ran = load(&format!("http://{address}/ --connections 2 --time 3s"));
    let (right, wrong, lost) = verdicts(&ran, "answers:");
    assert!(right == 0 && wrong == 0 && lost >= 4, "{ran:?}");
}

#[test]
fn an_answer_that_never_comes_is_lost_after_the_timeout() {
    let kept = Mutex::new(Vec::new());
    let address = server(move |stream| kept.lock().unwrap().push(stream));
    let line = format!("http://{address}/ --connections 3 --time 3s --timeout 500ms");
    let ran = load(&line);
    let (right, wrong, lost) = verdicts(&ran, "answers:");
    assert!(right == 0 && wrong == 0 && lost >= 3, "{ran:?}");
    assert!(ran.stdout.contains("no answer within 0.5 s"), "{ran:?}");
}

#[test]
fn nobody_there_is_a_failure_with_its_number() {
    let ran = onramp("load tcp-hold --target tcp://127.0.0.1:1 --connections 5").ends(1);
    assert!(ran.stdout.contains("5 x 111 ECONNREFUSED"), "{ran:?}");
    says(&ran.stderr, "no connection came to stand");
    let ran = onramp("load tcp-hold --target 127.0.0.1:1").ends(2);
    assert!(ran.stderr.contains("expected tcp://HOST:PORT"), "{ran:?}");
}
