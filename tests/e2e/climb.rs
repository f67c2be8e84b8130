//! `onramp climb` as a command: a small ladder on a private MariaDB, from nothing to a page.

use crate::world::*;
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(120);
/// Time limit of a climb that installs six servers, or a MySQL.
const SIX_SERVERS: Duration = Duration::from_secs(400);

/// Two rungs, two paths: four cells, each with figures, nothing failed, nothing left behind.
#[test]
fn a_small_climb_reaches_its_top() {
    // The shared server is not used, but says whether MariaDB is installed.
    let Some(real) = pooled(server) else { return };
    let folder = real.folder().join("climb");
    std::fs::create_dir_all(&folder).unwrap();
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (json, html, scratch) = (path("climb.json"), path("climb.html"), path("scratch"));
    std::fs::create_dir_all(&scratch).unwrap();
    let allowed = rustix::thread::sched_getaffinity(None).unwrap();
    let mut allowed = (0..rustix::thread::CpuSet::MAX_CPU).filter(|&n| allowed.is_set(n));
    let first = allowed.next().unwrap();
    let last = allowed.next_back().unwrap_or(first);
    let words = format!(
        "climb --rungs 10,50 --paths direct,onramp --time 4 --warmup-time 0 --tables 1 \
         --table-size 1000 --cpus server={last},pool={first},load={first}"
    );
    let mut all: Vec<&str> = words.split_whitespace().collect();
    all.extend([
        "--out-json",
        &json,
        "--out-html",
        &html,
        "--scratch-dir",
        &scratch,
    ]);
    let ran = run(binary(), &all, LIMIT).ends(0);

    let text = std::fs::read_to_string(&json).unwrap();
    let evidence: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(evidence["finished"], true, "{evidence}");
    let rows = evidence["rows"].as_array().unwrap();
    let cells: Vec<_> = rows
        .iter()
        .map(|row| (row["connections"].as_u64(), row["path"].as_str()))
        .collect();
    let expected = [10, 10, 50, 50].map(Some);
    let paths = ["direct", "onramp", "direct", "onramp"].map(Some);
    assert_eq!(cells, expected.into_iter().zip(paths).collect::<Vec<_>>());
    for row in rows {
        assert_eq!(row["connected"], row["connections"], "{row}");
        assert_eq!(row["failed_statements"], 0);
        assert_eq!(row["failed_connects"], 0);
        assert!(row["statements_per_s"].as_f64().unwrap() > 0.0, "{row}");
        assert!(row["limit"].is_null(), "{row}");
        let figure = |name: &str| row[name].as_f64();
        let rate = figure("statements_per_server_cpu_s").unwrap();
        let server = figure("server_us_per_statement").unwrap();
        assert!((rate * server / 1e6 - 1.0).abs() < 1e-9, "{row}");
        assert!(server > 1.0, "{row}");
        let proxy = figure("pool_us_per_statement");
        assert_eq!(
            proxy.is_some_and(|us| us > 0.0),
            row["path"] == "onramp",
            "{row}"
        );
        assert!(figure("load_us_per_statement").unwrap() > 0.0, "{row}");
    }
    let part = "CPU for a statement in us, without connecting; processors: server=";
    says(&ran.stdout, part);
    if first != last {
        assert_eq!(evidence["settings"]["place"], "apart");
        let headline = evidence["headline"].as_str().unwrap();
        says(headline, "statements by CPU-second of the server");
        says(headline, "CPU of the proxy for a statement: onramp ");
    }
    let page = std::fs::read_to_string(&html).unwrap();
    assert!(page.contains("Onramp climb") && page.contains("<svg"));
    for path in ["direct", "onramp"] {
        says(&ran.stdout, path);
    }
    let left = std::fs::read_dir(&scratch).unwrap().count();
    assert_eq!(left, 0, "the server's data is gone");
}

/// The writer dies, or is changed as planned: what each way makes of that is in one table, one
/// picture and the evidence.
#[test]
fn a_failover_and_a_switchover_are_shown_for_each_way() {
    let Some(real) = pooled(server) else { return };
    for (scenario, cut) in [("failover", 8), ("switchover", 0)] {
        let folder = real.folder().join(scenario);
        std::fs::create_dir_all(folder.join("scratch")).unwrap();
        let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
        let (json, html, scratch) = (path("climb.json"), path("climb.html"), path("scratch"));
        let words = format!("climb --scenario {scenario} --rungs 8 --time 8");
        let mut all: Vec<&str> = words.split_whitespace().collect();
        all.extend(["--out-json", &json, "--out-html", &html]);
        all.extend(["--scratch-dir", &scratch]);
        let ran = run(binary(), &all, SIX_SERVERS).ends(0);
        let evidence: Value =
            serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
        let outcomes = evidence["outcomes"].as_array().unwrap();
        let of = |way: &str| outcomes.iter().find(|it| it["way"] == way).unwrap();
        for way in ["direct", "onramp"] {
            let series = of(way)["series"].as_array().unwrap();
            let count = |it: &Value| it.as_u64().unwrap();
            let before = series[..25].iter().map(count).sum::<u64>();
            let after = series[60..].iter().map(count).sum::<u64>();
            assert!(before > 0 && after > 0, "{scenario}, {way}: {series:?}");
            assert_eq!(of(way)["lost"], 0);
            says(&ran.stdout, way);
        }
        assert_eq!(of("direct")["disconnected"], cut);
        assert_eq!(of("onramp")["disconnected"], 0);
        if scenario == "switchover" {
            assert_eq!(of("onramp")["errors"], serde_json::json!({}));
        }
        let page = std::fs::read_to_string(&html).unwrap();
        assert_eq!(page.matches("<path class=").count(), outcomes.len());
        assert_eq!(std::fs::read_dir(&scratch).unwrap().count(), 0);
    }
}

/// A private MySQL, direct, with its own pool of threads and through the pool.
#[test]
fn a_private_mysql_is_climbed() {
    let Some(real) = pooled(mysql) else { return };
    let folder = real.folder().join("climb");
    std::fs::create_dir_all(folder.join("scratch")).unwrap();
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (json, html, scratch) = (path("climb.json"), path("climb.html"), path("scratch"));
    let words = "climb --server mysql --rungs 10 --time 1 --warmup-time 0 --tables 1 \
                 --table-size 1000";
    let mut all: Vec<&str> = words.split_whitespace().collect();
    all.extend(["--out-json", &json, "--out-html", &html]);
    all.extend(["--scratch-dir", &scratch]);
    run(binary(), &all, SIX_SERVERS).ends(0);
    let evidence: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    says(evidence["host"]["server"].as_str().unwrap(), "MySQL ");
    let rows = evidence["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 3);
    for row in rows {
        let limit = row["limit"].as_str().unwrap_or_default();
        // A MySQL without thread_pool.so has no pool of threads.
        if row["path"] == "server-pool" && !limit.is_empty() {
            says(limit, " has no thread_pool.so in '/");
            continue;
        }
        assert_eq!(row["limit"].as_str(), None, "{row}");
        assert_eq!(row["failed_statements"], 0, "{row}");
        assert!(row["statements_per_s"].as_f64().unwrap() > 0.0, "{row}");
    }
    assert_eq!(std::fs::read_dir(&scratch).unwrap().count(), 0);
}
