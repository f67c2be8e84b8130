//! Whole climbs with stand-ins for MariaDB and for `onramp pool` and `onramp load`.
//!
//! The stand-ins are shell scripts in a directory of the test's own. Each writes its process number
//! to a file there, so that a test can see afterwards that none of them still runs; a file `mode`
//! says how they behave. Ctrl-C comes from the writer of the progress, at the moment when the load
//! says that it runs: no test waits for time to pass.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

use clap::Parser;
use rustix::process::{Pid, test_kill_process};
use serde_json::Value;

use super::*;

const MARIADBD: &str = r#"#!/bin/sh
here=$(dirname "$0")
case "$*" in *--version*) echo "mariadbd  Ver 10.11.19-MariaDB for Linux"; exit 0;; esac
if [ "$(cat "$here/mode")" = server-dies ]; then
    echo "10:00 0 [ERROR] Can't start server: no disk" >&2; exit 1
fi
echo $$ >> "$here/pids"
echo "server $(grep Cpus_allowed_list /proc/$$/status)" >> "$here/cpus"
echo "$*" >> "$here/servers"
echo "mariadbd: ready for connections." >&2
sleep 1000 & wait
"#;

const INSTALL_DB: &str = r#"#!/bin/sh
for word; do case "$word" in --datadir=*) mkdir "${word#--datadir=}";; esac; done
"#;

const ONRAMP: &str = r#"#!/bin/sh
here=$(dirname "$0")
mode=$(cat "$here/mode")
echo $$ >> "$here/pids"
echo "$1 $(grep Cpus_allowed_list /proc/$$/status)" >> "$here/cpus"
echo "$*" >> "$here/calls"
if [ "$1" = pool ]; then
    if [ "$mode" = pool-dies ]; then echo "no such option" >&2; exit 2; fi
    echo "INFO listening on $3" >&2
    sleep 1000 & wait
fi
while [ $# -gt 1 ]; do
    case "$1" in --json) json=$2;; --connections) connections=$2;; esac
    shift
done
echo "$1" >> "$here/verbs"
if [ "$1" = prepare ] && [ "$mode" = prepare-fails ]; then echo "no room" >&2; exit 1; fi
if [ "$1" != run ]; then exit 0; fi
case "$mode" in
load-fails) echo "target refuses" >&2; exit 1;;
load-hangs) echo "the load runs" >&2; sleep 1000 & wait;;
esac
echo "[ 1s ] thds: $connections tps: 9000.00 qps: 9000.00 (r/w/o: 9000.00/0.00/0.00)"
cat > "$json" <<END
{"connections": $connections, "connected": $connections, "statements_per_s": 9000.5,
 "mean_ms": 2.0, "p50_ms": 1.9, "p95_ms": 2.5, "p99_ms": 3.0, "failed_statements": 0,
 "failed_connects": 0, "connect_s": 0.1, "limit": null, "errors": []}
END
"#;

/// Only one test at a time writes programs and starts them: a program that any process has open for
/// writing, such as a child between fork and exec, cannot be started.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The stand-ins' directory, removed at the end.
struct Stage {
    directory: PathBuf,
    _turn: MutexGuard<'static, ()>,
}

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    climb: ClimbArgs,
}

impl Stage {
    fn set(mode: &str) -> Self {
        let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let name = format!(
            "climb-test-{}-{}",
            std::process::id(),
            scratch::random_hex(4).unwrap()
        );
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(directory.join("scratch")).unwrap();
        let programs = [
            ("mariadbd", MARIADBD),
            ("mariadb-install-db", INSTALL_DB),
            ("onramp", ONRAMP),
        ];
        for (name, text) in programs {
            let file = directory.join(name);
            fs::write(&file, text).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        }
        fs::write(directory.join("mode"), mode).unwrap();
        Self {
            directory,
            _turn: turn,
        }
    }

    fn plan(&self, words: &[&str]) -> Plan {
        let at = |name: &str| self.directory.join(name);
        let line = ["climb"].iter().chain(words).copied();
        let mut args = Line::try_parse_from(line).unwrap().climb;
        args.program = Some(at("onramp"));
        args.scratch_dir = Some(at("scratch"));
        (args.out_json, args.out_html) = (at("climb.json"), at("climb.html"));
        if args.target.is_none() {
            args.mariadb_dir = Some(self.directory.clone());
        }
        args.check().unwrap()
    }

    /// Climbs, and checks that nothing is left. Gives the table.
    fn climb(&self, words: &[&str]) -> Result<String> {
        let (mut table, mut said) = (Vec::new(), Vec::new());
        let mut progress = Progress::new(&mut said, false);
        let plan = self.plan(words);
        let result = climb(&plan, &Interrupt::default(), &mut progress, &mut table);
        self.assert_nothing_is_left();
        result.map(|()| String::from_utf8(table).unwrap())
    }

    fn lines(&self, file: &str) -> Vec<String> {
        let text = fs::read_to_string(self.directory.join(file)).unwrap_or_default();
        text.lines().map(ToOwned::to_owned).collect()
    }

    fn rows(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.directory.join("climb.json")).unwrap();
        let evidence: Value = serde_json::from_str(&text).unwrap();
        evidence["rows"].as_array().unwrap().clone()
    }

    fn assert_nothing_is_left(&self) {
        for pid in self.lines("pids") {
            let pid = Pid::from_raw(pid.parse().unwrap()).unwrap();
            assert!(test_kill_process(pid).is_err(), "{pid:?} still runs");
        }
        assert_eq!(
            fs::read_dir(self.directory.join("scratch"))
                .unwrap()
                .count(),
            0
        );
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

#[test]
fn a_whole_climb() {
    let stage = Stage::set("ok");
    let table = stage.climb(&["--rungs=10,20"]).unwrap();
    assert!(
        table.contains("20 executing connections on one shared machine: onramp 9,000 statements/s"),
        "{table}"
    );

    let rows = stage.rows();
    let cell = |row: &Value| (row["connections"].as_u64().unwrap(), row["path"].clone());
    let cells: Vec<_> = rows.iter().map(cell).collect();
    let expected =
        [10, 20].map(|rung| ladder::Path::DEFAULT.map(|path| (rung, Value::from(path.name()))));
    assert_eq!(cells, expected.concat());
    for row in &rows {
        assert_eq!(
            (&row["statements_per_s"], &row["limit"]),
            (&9000.5.into(), &Value::Null)
        );
        assert_eq!(row["pool_rss_bytes"].is_null(), row["path"] != "onramp");
    }
    assert!(stage.directory.join("climb.html").is_file());
    assert_eq!(stage.lines("verbs")[0], "prepare");
    let servers = stage.lines("servers");
    assert_eq!(servers.len(), 7, "one to prepare and one for each cell");
    assert_eq!(
        servers
            .iter()
            .filter(|words| words.contains("=pool-of-threads"))
            .count(),
        2
    );
}

#[test]
fn statements_are_prepared_on_request_on_all_paths() {
    for (words, prepared) in [(&["--rungs=10", "--prepared"][..], 3), (&["--rungs=10"], 0)] {
        let stage = Stage::set("ok");
        stage.climb(words).unwrap();
        let calls = stage.lines("calls");
        let prepares = |call: &&String| call.contains("--db-ps-mode=auto");
        assert_eq!(
            calls.iter().filter(prepares).count(),
            prepared,
            "{calls:#?}"
        );
        let page = fs::read_to_string(stage.directory.join("climb.html")).unwrap();
        assert_eq!(page.contains("by the binary protocol"), prepared > 0);
    }
}

#[test]
fn a_statement_of_a_high_rung_may_take_longer() {
    let stage = Stage::set("ok");
    stage
        .climb(&[
            "--rungs=20,50000",
            "--paths=onramp",
            "--pool-arg=--pipeline-max=1",
        ])
        .unwrap();
    let calls = stage.lines("calls");
    let of = |words: &[&str]| {
        calls
            .iter()
            .any(|call| words.iter().all(|word| call.contains(word)))
    };
    assert!(
        of(&["pool ", "--clients-max 20 ", "--wait-ms-max 30000 "]),
        "{calls:#?}"
    );
    assert!(of(&[
        "pool ",
        "--clients-max 50000 ",
        "--wait-ms-max 40000 "
    ]));
    assert!(of(&[
        "load ",
        "--connections 50000 ",
        "--end-timeout 40 ",
        "--warmup-time 5 "
    ]));
}

#[test]
fn each_part_runs_on_its_own_processors() {
    let allowed = rustix::thread::sched_getaffinity(None).unwrap();
    let mut allowed = (0..rustix::thread::CpuSet::MAX_CPU).filter(|&n| allowed.is_set(n));
    let first = allowed.next().unwrap();
    let last = allowed.next_back().unwrap_or(first);
    let stage = Stage::set("ok");
    let cpus = format!("--cpus=server={last},pool={first}");
    stage
        .climb(&["--rungs=10", "--paths=onramp", &cpus])
        .unwrap();
    let lines = stage.lines("cpus");
    let of = |part: &str| -> Vec<&str> {
        let lines = lines.iter().filter_map(|line| line.strip_prefix(part));
        lines
            .filter_map(|line| line.split_whitespace().last())
            .collect()
    };
    assert_eq!(of("server "), [last.to_string(), last.to_string()]);
    assert_eq!(of("pool "), [first.to_string()]);
    let own = fs::read_to_string("/proc/thread-self/status").unwrap();
    let own = own
        .lines()
        .find(|line| line.starts_with("Cpus_allowed_list"));
    let own = own.unwrap().split_whitespace().last().unwrap();
    assert_eq!(of("load "), [own, own], "a part that is not named");
    let text = fs::read_to_string(stage.directory.join("climb.json")).unwrap();
    let settings = &serde_json::from_str::<Value>(&text).unwrap()["settings"];
    assert_eq!(settings["cpus"], cpus["--cpus=".len()..]);
    assert_eq!(settings["place"], "shared", "the load is on all of them");
}

#[test]
fn a_cell_that_fails_is_a_row() {
    let cases = [
        (
            "load-fails",
            "load gave no figures: target refuses (exit status: 1)",
        ),
        (
            "pool-dies",
            "the pool ended before it was ready: no such option",
        ),
    ];
    for (mode, limit) in cases {
        let stage = Stage::set(mode);
        let table = stage.climb(&["--rungs=10", "--paths=onramp"]).unwrap();
        assert!(table.contains("No path held a rung."), "{table}");
        assert_eq!(stage.rows()[0]["limit"], limit);
    }
}

#[test]
fn without_tables_there_is_no_climb() {
    let stage = Stage::set("prepare-fails");
    let error = format!("{:#}", stage.climb(&[]).unwrap_err());
    assert!(
        error.contains("load prepare: no room (exit status: 1)"),
        "{error}"
    );
    assert!(
        !error.contains("sbtest:") || error.contains("sbtest:***@"),
        "{error}"
    );
    drop(stage);

    let stage = Stage::set("server-dies");
    let error = format!("{:#}", stage.climb(&[]).unwrap_err());
    assert!(
        error.contains("the server's log says: Can't start server: no disk"),
        "{error}"
    );
}

/// Presses Ctrl-C when it is told certain words.
struct CtrlC {
    at: &'static str,
    interrupt: Interrupt,
}

impl Write for CtrlC {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if String::from_utf8_lossy(bytes).contains(self.at) {
            self.interrupt.0.store(true, Ordering::Relaxed);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn ctrl_c_leaves_nothing_behind() {
    let stage = Stage::set("load-hangs");
    let interrupt = Interrupt::default();
    let mut said = CtrlC {
        at: "the load runs",
        interrupt: interrupt.clone(),
    };
    let mut progress = Progress::new(&mut said, true);
    let plan = stage.plan(&["--paths=onramp,direct"]);
    let mut table = Vec::new();
    let error = climb(&plan, &interrupt, &mut progress, &mut table).unwrap_err();
    assert!(error.is::<Interrupted>(), "{error:#}");
    assert_eq!(
        stage.lines("pids").len(),
        5,
        "two servers, prepare, a pool and a load"
    );
    stage.assert_nothing_is_left();
}

/// Greets one connection as a server does.
fn greeter() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let packet = b"\x0a8.4.0\0";
        let header = [u8::try_from(packet.len()).unwrap(), 0, 0, 0];
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(&[&header, &packet[..]].concat()).unwrap();
    });
    port
}

#[test]
fn a_users_server_is_tidied_up() {
    let stage = Stage::set("ok");
    let target = format!("--target=mysql://app:hush@127.0.0.1:{}/shop", greeter());
    let table = stage.climb(&["--rungs=10", &target]).unwrap();
    assert!(table.contains("onramp 9,000 statements/s"), "{table}");
    assert_eq!(stage.lines("verbs"), ["prepare", "run", "run", "cleanup"]);
    assert!(
        stage.rows()[1]["limit"]
            .as_str()
            .unwrap()
            .contains("needs a private server")
    );
    for file in ["climb.json", "climb.html"] {
        let text = fs::read_to_string(stage.directory.join(file)).unwrap();
        assert!(
            text.contains("mysql://app:***@") && !text.contains("hush"),
            "{file}"
        );
        assert!(text.contains("8.4.0"), "{file}");
    }
}

#[test]
fn tables_that_were_there_stay() {
    let stage = Stage::set("ok");
    let target = format!("--target=mysql://app@127.0.0.1:{}/shop", greeter());
    stage
        .climb(&["--rungs=10", "--paths=direct", "--no-prepare", &target])
        .unwrap();
    assert_eq!(stage.lines("verbs"), ["run"]);
    drop(stage);

    let stage = Stage::set("prepare-fails");
    let target = format!("--target=mysql://app@127.0.0.1:{}/shop", greeter());
    stage.climb(&[&target]).unwrap_err();
    assert_eq!(
        stage.lines("verbs"),
        ["prepare"],
        "what it did not make it does not drop"
    );
}

#[test]
fn results_that_cannot_be_written_are_found_first() {
    let stage = Stage::set("ok");
    let mut plan = stage.plan(&[]);
    plan.raw.out_html = stage.directory.join("nowhere/climb.html");
    let mut said = Vec::new();
    let mut progress = Progress::new(&mut said, false);
    let error = climb(&plan, &Interrupt::default(), &mut progress, &mut Vec::new()).unwrap_err();
    assert!(
        error.to_string().contains("there is no directory"),
        "{error}"
    );
    assert!(stage.lines("pids").is_empty());
}
