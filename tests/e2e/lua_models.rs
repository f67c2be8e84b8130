//! Models of load with scripts of sysbench: turns, pauses and stages.

use crate::world::*;
use serde_json::Value;

/// Runs a script with `onramp load`, in one thread, so that it may count in Lua's own tables; its
/// JSON.
fn load(name: &str, script: &str, words: &str) -> Option<(Ran, Value)> {
    let (ran, json) = ended(name, script, words)?;
    let text = std::fs::read_to_string(json).unwrap();
    Some((ran.ends(0), serde_json::from_str(&text).unwrap()))
}

/// Runs a script to whatever end; where its JSON would be.
fn ended(name: &str, script: &str, words: &str) -> Option<(Ran, String)> {
    let real = pooled(server)?;
    let path = |end: &str| real.folder().join(format!("{name}.{end}"));
    let (file, json) = (path("lua"), path("json"));
    std::fs::write(&file, script).unwrap();
    let target = format!("mysql://app:app@127.0.0.1:{}/shop", real.port());
    let (file, json) = (file.to_str().unwrap(), json.to_str().unwrap());
    let mut line = vec!["load", file, "run", "--target", &target, "--json", json];
    line.extend(["--groups", "1"]);
    line.extend(words.split_whitespace());
    Some((run(binary(), &line, LIMIT), json.to_owned()))
}

/// An option that a script with options does not have is a wrong line; a run that sends nothing has
/// failed.
#[test]
fn an_unknown_option_and_an_empty_script_have_their_exit_status() {
    let script = format!("sysbench.cmdline.options = {{ rows = {{ 'Rows', 1 }} }}{CROWD}");
    let Some((ran, _)) = ended("unknown", &script, "--events 1 --no-such=1") else {
        return;
    };
    says(&ran.ends(2).stderr, "no-such");
    let (ran, _) = ended("empty", "function event() end", "--events 3").unwrap();
    says(&ran.ends(1).stderr, "no statement was sent");
}

const CROWD: &str = r#"
    string.inside, string.most, string.events = 0, string.most or 0, string.events or {}
    function thread_init() con = sysbench.sql.driver():connect() end
    function event(tid)
      string.inside = string.inside + 1
      string.most = math.max(string.most, string.inside)
      string.events[tid] = (string.events[tid] or 0) + 1
      con:query("SELECT SLEEP(0.001)")
      string.inside = string.inside - 1
    end
    function thread_done(tid) print("> " .. tid, string.events[tid], string.most) end
"#;

#[test]
fn so_many_users_of_a_script_run_events_at_a_time_in_turn() {
    let words = "--connections 20 --active 10% --events 200 --time 0";
    let Some((ran, json)) = load("active", CROWD, words) else {
        return;
    };
    assert_eq!(json["latencies"]["event"]["count"], 200, "{ran:?}");
    let users: Vec<&str> = ran.stdout.lines().filter(|l| l.starts_with("> ")).collect();
    assert_eq!(users.len(), 20, "{ran:?}");
    for user in users {
        let words: Vec<u32> = user
            .split_whitespace()
            .skip(2)
            .map(|w| w.parse().unwrap())
            .collect();
        assert!((5..=15).contains(&words[0]), "{ran:?}");
        assert_eq!(words[1], 2, "{ran:?}");
    }
}

#[test]
fn users_of_a_script_pause_between_events() {
    let words = "--connections 10 --think-time 20ms-40ms --events 100 --time 0";
    let Some((ran, json)) = load("thinking", CROWD, words) else {
        return;
    };
    let latencies = &json["latencies"];
    assert_eq!(latencies["event"]["count"], 100, "{ran:?}");
    assert_eq!(latencies["lag"]["count"], 100, "{ran:?}");
    // Of a hundred events in ten users one has ten, with nine whole pauses between them.
    assert!(json["duration_s"].as_f64().unwrap() >= 0.18, "{json:#}");
}

/// A pause that is longer than the run does not hold its end up.
#[test]
fn users_that_pause_end_with_the_run() {
    let words = "--connections 4 --think-time 1000h --time 1 --end-timeout 50";
    let Some((ran, json)) = load("sleeping", CROWD, words) else {
        return;
    };
    assert_eq!(json["latencies"]["event"]["count"], 0, "{ran:?}");
    assert_eq!(ran.stdout.matches("\n> ").count(), 4, "{ran:?}");
}

#[test]
fn users_of_a_script_follow_their_stages() {
    let words = "--stages 0:2,200ms:12,4s:12,4200ms:3 --time 8 --connect-rate 0";
    let Some((ran, json)) = load("stages", CROWD, words) else {
        return;
    };
    let connected = json["series"].as_array().unwrap().iter();
    let connected: Vec<u64> = connected
        .map(|p| p["connected"].as_u64().unwrap())
        .collect();
    let most = connected.iter().max();
    assert_eq!((most, connected.last()), (Some(&12), Some(&3)), "{ran:?}");
    // Nine have ended within the run, three at its end.
    assert_eq!(ran.stdout.matches("\n> ").count(), 12, "{ran:?}");
    assert_eq!(json["failed_statements"], 0, "{ran:?}");
}
