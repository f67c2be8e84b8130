//! `onramp load` as a command: tables, reports, files, thresholds, statuses, and a storm.

use crate::world::*;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use testkit::output::Output;

/// A test's server, and a schema of its own there.
struct Place {
    real: &'static Real,
    target: String,
    folder: PathBuf,
}

impl Place {
    /// `None`, said on stderr, where there is no server, or where it is the server that is tested.
    fn new(test: &str) -> Option<Place> {
        let real = server(test)?;
        let schema = format!("load_{test}");
        fresh_schema(real, &schema);
        let folder = real.folder().join(&schema);
        std::fs::create_dir_all(&folder).unwrap();
        Some(Place {
            real,
            target: format!("mysql://app:app@127.0.0.1:{}/{schema}", real.port()),
            folder,
        })
    }

    fn file(&self, name: &str) -> String {
        self.folder.join(name).to_str().unwrap().to_owned()
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.join(name)).unwrap()
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.read("result.json")).unwrap()
    }

    /// Runs `load` with these words; the JSON goes to `result.json`.
    fn load(&self, words: &str) -> Ran {
        let json = self.file("result.json");
        let mut all = vec!["load", "--target", &self.target, "--json", &json];
        all.extend(words.split_whitespace());
        run(binary(), &all, LIMIT)
    }

    /// Runs it to an end with this status.
    #[track_caller]
    fn ends(&self, code: i32, words: &str) -> Ran {
        self.load(words).ends(code)
    }

    /// Makes one small table.
    fn prepare(&self) {
        self.ends(0, "select prepare --table-size 100");
    }

    /// The schema by another way.
    fn target_at(&self, way: &Way) -> String {
        format!("mysql://app:app@{}/{}", **way, self.schema())
    }

    fn schema(&self) -> &str {
        self.target.rsplit('/').next().unwrap()
    }
}

#[test]
fn tables_are_made_run_on_and_dropped() {
    let place = or_return!(Place::new("tables"));
    let sizes = "--tables 2 --table-size 500";
    place.ends(0, &format!("oltp_read_write prepare {sizes}"));
    let mut admin = place.real.admin();
    let count = format!("SELECT COUNT(*) FROM {}.sbtest2", place.schema());
    assert_eq!(admin.value(&count), "500");

    let words = "oltp_read_write run --connections 4 --events 40 --time 0 --range-size 10";
    let ran = place.ends(0, &format!("{words} {sizes}"));
    for part in [
        "sysbench 1.0.20 (using onramp ",
        "Number of threads: 4\n",
        "\nThreads started!\n",
        "    transactions:                        40     (",
        "    reconnects:                          0      (0.00 per sec.)\n",
        "    total number of events:              40\n",
        "\nThreads fairness:\n    events (avg/stddev):           10.0000/",
    ] {
        says(&ran.stdout, part);
    }
    let json = place.json();
    assert_eq!(
        (&json["connected"], &json["groups"].is_u64()),
        (&4.into(), &true)
    );
    assert_eq!(json["latencies"]["event"]["count"], 40);
    // A deadlock among four connections runs an event again; each ends once.
    let ignored = json["ignored_errors"].as_u64().unwrap();
    let reads = json["latencies"]["read"]["count"].as_u64().unwrap();
    let are_read = reads >= 40 * 14 && (ignored > 0 || reads == 40 * 14);
    assert!(are_read, "{json}");
    assert_eq!(json["failed_statements"], 0);
    let shown = format!("{} {json}", ran.stderr);
    assert!(!shown.contains("app:app"), "a password must not be printed");

    place.ends(0, &format!("oltp_read_write cleanup {sizes}"));
    let tables = "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema";
    let left = admin.value(&format!("{tables} = '{}'", place.schema()));
    assert_eq!(left, "0");
}

#[test]
fn errors_stand_by_number_in_the_servers_words() {
    let place = or_return!(Place::new("errors"));
    let ran = place.ends(1, "select run --connections 2 --events 10 --time 0");
    says(&ran.stderr, "onramp load: no event succeeded");
    let json = place.json();
    assert_eq!(json["failed_statements"], 10);
    assert_eq!(json["statements"], 10);
    let error = &json["errors"][0];
    assert_eq!(error["code"], 1146);
    assert_eq!(error["count"], 10);
    assert_eq!(error["sqlstate"], "42S02");
    assert_eq!(error["phase"], "statement");
    let words = format!("Table '{}.sbtest1' doesn't exist", place.schema());
    assert_eq!(error["message"], words);
    // BEGIN and ROLLBACK succeed around what fails.
    let whole = place.ends(
        1,
        "oltp_read_write run --connections 2 --events 10 --time 0",
    );
    says(&whole.stderr, "onramp load: no event succeeded");
    let told = format!("error 1146 (42S02) x 10 while executing: {words}");
    says(&ran.stderr, &told);
}

#[test]
fn a_run_that_cannot_be_has_status_1_and_says_why() {
    let place = or_return!(Place::new("cannot"));
    let wrong = place.target.replace("app:app", "app:wrong");
    let nobody = format!("mysql://app:app@127.0.0.1:{}/x", free_port());
    let cases = [
        (wrong, 1045, "Access denied"),
        (nobody, 111, "ECONNREFUSED"),
    ];
    for (target, code, words) in cases {
        let ran = place.ends(1, &format!("select run --target {target} --connections 3"));
        says(&ran.stderr, "limit: 0 of 3 connections stand");
        let json = place.json();
        assert_eq!(json["connected"], 0);
        assert_eq!(json["failed_connects"], 3);
        assert_eq!(json["errors"][0]["code"], code);
        assert!(json["limit"].as_str().unwrap().contains(words), "{json}");
    }
}

#[test]
fn thresholds_decide_the_status() {
    let place = or_return!(Place::new("thresholds"));
    place.prepare();
    let run = "select run --table-size 100 --connections 2 --events 50 --time 0";
    place.ends(0, &format!("{run} --fail-if errors>0 --fail-if p99>1m"));
    assert_eq!(place.json()["thresholds"][0]["crossed"], false);
    let crossed = place.ends(3, &format!("{run} --fail-if errors>0 --fail-if max<1m"));
    says(&crossed.stderr, "threshold kept: errors>0 (measured 0.000)");
    says(&crossed.stderr, "threshold CROSSED: max<1m (measured ");
    let thresholds = &place.json()["thresholds"];
    assert_eq!(thresholds[1]["rule"], "max<1m");
    assert_eq!(thresholds[1]["crossed"], true);
    let wrong = place.ends(2, &format!("{run} --fail-if speed>1"));
    says(&wrong.stderr, "goodput");
}

/// An open loop for two seconds, with everything that can be written; while it runs, it is asked
/// for its figures.
#[test]
fn an_open_loop_is_written_everywhere() {
    let place = or_return!(Place::new("open"));
    place.prepare();
    let address = format!("127.0.0.1:{}", free_port());
    let (csv, html) = (place.file("series.csv"), place.file("page.html"));
    let words = format!(
        "select run --table-size 100 --connections 20 --rate 300 --arrivals constant --time 2 \
         --report-interval 1 --csv {csv} --html {html} --prometheus {address}"
    );
    let (ran, scraped) = std::thread::scope(|scope| {
        let running = scope.spawn(|| place.ends(0, &words));
        let mut scraped = String::new();
        wait_while(|| {
            scraped = scrape(&address).unwrap_or_default();
            !running.is_finished() && counted(&scraped, "arrived") == 0
        });
        (running.join().unwrap(), scraped)
    });
    assert!(counted(&scraped, "arrived") > 0, "{scraped}");
    says(&scraped, "\nonramp_load_connected 20\n");
    says(&ran.stdout, "\nTarget transaction rate: 300/sec\n");
    assert!(ran.stdout.contains("\n[ 1s ] queue length: "), "{ran:?}");
    let json = place.json();
    // The run may end late on a busy machine; events arrive until it does.
    let arrived = json["arrived_per_s"].as_f64().unwrap();
    assert!((200.0..=301.0).contains(&arrived), "{arrived} a second");
    assert_eq!((&json["shed"], &json["expired"]), (&0.into(), &0.into()));
    let rows = place.read("series.csv");
    let seconds = json["series"].as_array().unwrap().len();
    assert_eq!(rows.lines().count(), 1 + seconds);
    assert!(rows.starts_with("t_s,statements_per_s,"), "{rows}");
    let page = place.read("page.html");
    says(&page, "<polyline");
    assert!(page.ends_with("</html>"), "{page}");
    says(&page, "<dt>Written</dt><dd>20");
}

/// The page of a run that goes on, and what it draws; the server refuses some statements.
#[test]
fn the_page_of_a_run_is_served_while_it_goes() {
    let place = or_return!(Place::new("page"));
    place.prepare();
    let address = format!("127.0.0.1:{}", free_port());
    let words = format!(
        "select run --table-size 100 --connections 20 --think-time 10ms --time 3 --http {address}"
    );
    let (seen, page, metrics) = std::thread::scope(|scope| {
        let running = scope.spawn(|| place.ends(0, &words));
        let (mut seen, mut page, mut metrics) = (serde_json::Value::Null, None, None);
        while !running.is_finished() && seen["series"].as_array().is_none_or(Vec::is_empty) {
            let live = fetch(&address, "/live.json").unwrap_or_default();
            let (_, json) = live.split_once("\r\n\r\n").unwrap_or_default();
            seen = serde_json::from_str(json).unwrap_or_default();
            page = page.or_else(|| fetch(&address, "/"));
            metrics = scrape(&address).or(metrics);
            std::thread::yield_now();
        }
        running.join().unwrap();
        (seen, page.unwrap(), metrics.unwrap())
    });
    assert_eq!(seen["is_ramp"], false, "{seen}");
    assert_eq!(seen["connected"], 20, "{seen}");
    assert!(seen["statements"].as_u64().unwrap() > 0, "{seen}");
    let p99 = seen["statement"]["p99_ms"].as_f64();
    assert!(p99.unwrap() > 0.0, "{seen}");
    assert!(seen["host"]["tcp_open"].as_u64().unwrap() >= 20, "{seen}");
    assert!(seen["host"]["ports"].as_u64().unwrap() > 0, "{seen}");
    let target = seen["target"].as_str().unwrap();
    assert!(!target.contains("app:app"), "{seen}");
    says(&page, "HTTP/1.1 200 OK\r\nContent-Type: text/html");
    assert!(page.ends_with("</html>\n"), "{page}");
    assert_eq!(counted(&metrics, "connects"), 20, "{metrics}");
}

/// A terminal as standard output: the picture is drawn, and taken away before the report.
#[test]
fn a_terminal_shows_the_run() {
    let place = or_return!(Place::new("terminal"));
    let script = Path::new("/usr/bin/script");
    if !script.exists() {
        return skip("script is not installed (Debian: bsdutils)");
    }
    place.prepare();
    let command = format!(
        "stty rows 30 cols 100; {} load select run --target {} --table-size 100 --connections 5 \
         --think-time 10ms --time 2",
        binary().display(),
        place.target
    );
    let ran = run(script, &["-qec", &command, "/dev/null"], LIMIT).ends(0);
    let picture = ran.stdout.find(" statements/s ").unwrap();
    let report = ran.stdout.find("SQL statistics:").unwrap();
    let erased = ran.stdout.rfind("\x1b[17A\r\x1b[J").unwrap();
    assert!(picture < erased && erased < report, "{ran:?}");
    assert!(ran.stdout.contains("connections  open 5 "), "{ran:?}");
    let quiet = place.load("select run --table-size 100 --events 1 --time 0");
    let has_picture = quiet.stdout.contains('\x1b');
    assert!(!has_picture, "a pipe gets the report only");
}

fn scrape(address: &str) -> Option<String> {
    fetch(address, "/metrics")
}

pub(crate) fn fetch(address: &str, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    let asked = format!("GET {path} HTTP/1.0\r\n\r\n");
    stream.write_all(asked.as_bytes()).ok()?;
    let mut said = String::new();
    stream.read_to_string(&mut said).ok()?;
    Some(said)
}

/// The counter of this name; 0 where it is not there.
fn counted(scraped: &str, name: &str) -> u64 {
    let name = format!("onramp_load_{name}_total ");
    let mut values = scraped.lines().filter_map(|line| line.strip_prefix(&name));
    values.next().map_or(0, |value| value.parse().unwrap())
}

/// While a table is locked nobody is answered: clients give up, hang up, come back and ask again.
/// When the lock is gone, all their events are answered.
#[test]
fn a_storm_rises_and_ends() {
    if let Some(place) = Place::new("storm") {
        place.prepare();
        storm(&place, &place.target);
    }
}

/// A storm with the pool in between: whoever hangs up leaves a statement behind that nobody reads,
/// and the pool has two backends for all of them.
#[test]
fn a_storm_rises_and_ends_through_the_pool() {
    let place = or_return!(Place::new("storm_pool"));
    place.prepare();
    let way = through(place.real, 2);
    storm(&place, &place.target_at(&way));
}

/// Through the pool each statement of a script is counted for itself, as it is without one.
#[test]
fn statements_of_ones_own_are_told_apart_through_the_pool() {
    let place = or_return!(Place::new("own_statements"));
    place.prepare();
    let way = through(place.real, 2);
    let target = place.target_at(&way);
    let json = place.file("result.json");
    let texts = [
        "SELECT c FROM sbtest# WHERE id=?",
        "UPDATE sbtest# SET k=k+1 WHERE id=?",
        "SELECT no_such_column FROM sbtest1",
    ];
    let times = format!("3*{}", texts[0]);
    let bounds = "--table-size 100 --connections 4 --time 0 --events 20";
    let line = format!("load statements run --target {target} --json {json} {bounds}");
    let line = words(&line);
    let statements = ["--statement", &times, "--statement", texts[1]];
    run(binary(), &[&line[..], &statements].concat(), LIMIT).ends(0);
    let report = place.json();
    assert_eq!(report["failed_statements"], 0, "{report}");
    let ignored = report["ignored_errors"].as_u64().unwrap();
    let parts = report["by_statement"].as_array().unwrap();
    assert_eq!(parts.len(), 2, "{report}");
    for ((part, text), least) in parts.iter().zip(texts).zip([60, 20]) {
        assert_eq!(part["statement"], text);
        let count = part["count"].as_u64().unwrap();
        // A deadlock would run an event again.
        assert!(count == least || (count > least && ignored > 0), "{report}");
        assert!(part["mean_ms"].as_f64().unwrap() > 0.0, "{report}");
    }
    let changed = format!("SELECT COUNT(*) FROM {}.sbtest1", place.schema());
    assert_eq!(place.real.admin().value(&changed), "100");

    // One that fails has no latency, and the server's words come through.
    let statements = ["--statement", texts[0], "--statement", texts[2]];
    run(binary(), &[&line[..], &statements].concat(), LIMIT).ends(1);
    let report = place.json();
    let counts = [0, 1].map(|at| report["by_statement"][at]["count"].as_u64().unwrap());
    assert!(counts[0] > 0 && counts[1] == 0, "{report}");
    assert_eq!(report["errors"][0]["code"], 1054, "{report}");
}

/// Connections take several places in turn; the report is of all of them.
#[test]
fn several_hosts_are_loaded_in_turn() {
    let place = or_return!(Place::new("hosts"));
    place.prepare();
    let run = "select run --table-size 100 --connections 4 --events 20 --time 0 --target-hosts";
    let way = through(place.real, 2);
    let both = place.ends(0, &format!("{run} {}", *way));
    says(&both.stderr, " and, in turn, 1 more in ");
    let json = place.json();
    assert_eq!(json["connected"], 4);
    assert_eq!(json["latencies"]["event"]["count"], 20);
    // Where one of them is nobody, his connections fail, and the others do all the work.
    place.ends(0, &format!("{run} 127.0.0.1:{}", free_port()));
    let json = place.json();
    assert_eq!(json["connected"], 2);
    assert_eq!(json["failed_connects"], 2);
    assert_eq!(json["latencies"]["event"]["count"], 20);
    assert_eq!(json["errors"][0]["code"], 111, "{json}");
}

/// Clients lose patience with a locked table of the place, on their way to `target`.
fn storm(place: &Place, target: &str) {
    let mut locker = place.real.admin();
    locker.must(&format!("LOCK TABLES {}.sbtest1 WRITE", place.schema()));
    let address = format!("127.0.0.1:{}", free_port());
    let words = format!(
        "select run --target {target} --table-size 100 --connections 3 --events 30 --time 0 \
         --give-up 300ms --prometheus {address}"
    );
    std::thread::scope(|scope| {
        let running = scope.spawn(|| place.ends(0, &words));
        wait_while(|| {
            let scraped = scrape(&address).unwrap_or_default();
            counted(&scraped, "gave_up") < 9 && !running.is_finished()
        });
        locker.must("UNLOCK TABLES");
        running.join().unwrap()
    });
    let json = place.json();
    let gave_up = json["gave_up"].as_u64().unwrap();
    assert!(gave_up >= 6, "{json}");
    let events = &json["latencies"]["event"]["count"];
    assert_eq!(*events, 30, "every event is answered in the end");
    assert!(json["reconnects"].as_u64().unwrap() >= 3, "{json}");
    assert_eq!(json["failed_statements"], 0);
    assert_eq!(json["in_time_ms"], 300.0);
    assert!(json["goodput_per_s"].as_f64().unwrap() > 0.0);
    let longest = json["latencies"]["event"]["max_ms"].as_f64().unwrap();
    // An event's clock runs through its repetitions.
    assert!(longest >= 600.0, "{longest}");
}

/// Both outputs closed, as by `2>&1 | head`.
#[test]
fn a_run_whose_listener_has_gone_goes_on_to_its_end() {
    let place = or_return!(Place::new("unheard"));
    place.prepare();
    let json = place.file("result.json");
    let mut load = std::process::Command::new(binary());
    load.args(["load", "--target", &place.target, "--json", &json]);
    let line = "select run --table-size 100 --events 30 --connections 3 --time 0";
    load.args(words(line));
    let (reader, writer) = std::io::pipe().unwrap();
    load.stdout(writer.try_clone().unwrap()).stderr(writer);
    drop(reader);
    let status = load.status().unwrap();
    assert_eq!(status.code(), Some(0));
    assert_eq!(place.json()["statements"], 30);
}

#[test]
fn results_of_two_runs_are_merged_into_one() {
    let place = or_return!(Place::new("merge"));
    place.prepare();
    let mut parts = Vec::new();
    for name in ["a.json", "b.json"] {
        place.ends(
            0,
            "select run --table-size 100 --connections 3 --events 300 --time 0",
        );
        parts.push(place.json());
        std::fs::rename(place.file("result.json"), place.file(name)).unwrap();
    }
    let [a, b, all, page] = ["a.json", "b.json", "all.json", "all.html"].map(|n| place.file(n));
    let words = ["merge", &a, &b, "--json", &all, "--html", &page];
    let ran = run(binary(), &words, LIMIT).ends(0);
    says(&ran.stdout, "2 runs of select: 6 connections");
    let merged: Value = serde_json::from_str(&place.read("all.json")).unwrap();
    let statements = parts
        .iter()
        .map(|part| part["statements"].as_u64().unwrap());
    assert_eq!(merged["statements"], statements.sum::<u64>());
    assert_eq!(merged["latencies"]["statement"]["count"], 600);
    let longest = parts.iter().map(|part| part["max_ms"].as_f64().unwrap());
    let largest = longest.fold(0.0, f64::max);
    assert_eq!(merged["max_ms"].as_f64().unwrap(), largest);
    assert!(place.read("all.html").contains("6 connections ran select"));

    std::fs::write(place.file("b.json"), "{}").unwrap();
    let ran = run(binary(), &words, LIMIT).ends(1);
    says(&ran.stderr, "b.json: expected what `onramp load --json`");
}

/// A server that stands still, and one that is killed and comes back: the run tells how long
/// nobody was answered, when errors came, and when the rate before was reached again.
#[test]
fn an_outage_is_told_in_tenths_of_a_second() {
    let mut real = or_return!(pooled(own_server));
    fresh_schema(&real, "outage");
    let folder = real.folder().join("outage");
    std::fs::create_dir_all(&folder).unwrap();
    let target = format!("--target=mysql://app:app@127.0.0.1:{}/outage", real.port());
    onramp(&format!("load select prepare --table-size=100 {target}")).ends(0);
    for is_killed in [false, true] {
        let address = format!("127.0.0.1:{}", free_port());
        let file = |name: &str| folder.join(name).to_str().unwrap().to_owned();
        let (json, html) = (file("result.json"), file("page.html"));
        let line = format!(
            "load select run {target} --table-size 100 --connections 10 --rate 200 --arrivals \
             constant --time 0 --http {address} --json {json} --html {html} \
             --fail-if longest_gap>500ms --fail-if recovery>3m"
        );
        let rates = || -> Vec<f64> {
            let live = fetch(&address, "/live.json").unwrap_or_default();
            let (_, json) = live.split_once("\r\n\r\n").unwrap_or_default();
            let seen: Value = serde_json::from_str(json).unwrap_or_default();
            let points = seen["series"].as_array().into_iter().flatten();
            let rates = points.map(|point| point["statements_per_s"].as_f64().unwrap());
            rates.collect()
        };
        let until_second = |wanted| wait_while(|| rates().len() < wanted);
        let mut load = std::process::Command::new(binary());
        load.args(words(&line)).stdout(Stdio::null());
        let mut load = Ended(load.stderr(Stdio::piped()).spawn().unwrap());
        let said = Output::of(load.0.stderr.take().unwrap());
        until_second(3);
        match is_killed {
            true => real.kill9(),
            false => real.suspend(),
        }
        until_second(rates().len() + 3);
        let back = rates().len();
        match is_killed {
            true => real.restart().unwrap(),
            false => real.resume(),
        }
        // However long that takes: until the rate is what it was, for more than a second.
        let is_back = |rates: &[f64]| rates.iter().filter(|rate| **rate >= 199.0).count() > 2;
        wait_while(|| !rates().get(back..).is_some_and(is_back));
        testkit::onramp::terminate(&load.0);
        let (status, said) = (load.0.wait().unwrap(), said.whole());
        assert_eq!(status.code(), Some(3), "{said}");
        says(&said, "threshold CROSSED: longest_gap>500ms");
        says(&said, "threshold kept: recovery>3m");
        let told: Value = serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
        let outage = &told["outage"];
        let seconds = |name: &str| outage[name].as_f64();
        let gap = seconds("longest_gap_s").unwrap();
        let began = seconds("began_s").unwrap();
        assert!(gap > 1.5 && began > 1.5, "{outage}");
        let recovered = seconds("recovered_s").unwrap();
        assert!(recovered >= gap, "{outage}");
        let errors = seconds("first_error_s").zip(seconds("last_error_s"));
        assert_eq!(errors.is_some(), is_killed, "{outage}");
        assert!(errors.is_none_or(|(first, last)| first <= last && first >= began));
        let expected = format!("longest time without an answer {gap:.1} s from ");
        says(&said, &expected);
        let page = std::fs::read_to_string(html).unwrap();
        says(&page, "The outage</h3>");
        says(&page, &format!("{gap:.1} s without an answer"));
    }
}

/// Each side's table is in its own schema: a statement that went elsewhere would fail.
#[test]
fn reads_and_writes_go_to_servers_of_their_own() {
    let (place, reads) = or_return!(Place::new("writes").zip(Place::new("reads")));
    let mut admin = place.real.admin();
    admin.must("CREATE TABLE load_writes.written (id INT)");
    admin.must("CREATE TABLE load_reads.readable (id INT)");
    let (json, at, reads) = (place.file("result.json"), &place.target, &reads.target);
    let line = format!(
        "load statements run --target {at} --read-target {reads} --json {json} --connections=8 \
         --read-connections=6 --events=400 --time=0"
    );
    let read = "--statement=SELECT COUNT(*) FROM readable";
    let write = "--statement=INSERT INTO written VALUES (1)";
    let ran = run(
        binary(),
        &[&words(&line)[..], &[read, write]].concat(),
        LIMIT,
    )
    .ends(0);
    says(&ran.stderr, ", 6 of them to 127.0.0.1:");
    let json = place.json();
    assert_eq!(json["failed_statements"], 0, "{json:#}");
    let written = admin.value("SELECT COUNT(*) FROM load_writes.written");
    let written: u64 = written.parse().unwrap();
    assert!((1..400).contains(&written), "{written}");
    let counts = [0, 1].map(|at| json["by_statement"][at]["count"].as_u64());
    assert_eq!(counts, [Some(written), Some(400 - written)], "{json:#}");
    says(json["target"].as_str().unwrap(), "; reads: mysql://app@");
    assert!(!json.to_string().contains("app:app"), "{json:#}");
    place.prepare();
    let nobody = format!("--read-target mysql://app:app@127.0.0.1:{}/x", free_port());
    let few = "--connections 2 --events 10 --time 0 --table-size 100";
    let ran = place.ends(1, &format!("oltp_read_write run {nobody} {few}"));
    says(&ran.stderr, "no event at --read-target succeeded");
}
