//! `onramp load --locust-master` with a real Locust master, unmodified: the users that it asks for
//! run, are reported, and stop.
//!
//! Where Locust is not installed (`locust` in the path, or `ONRAMP_LOCUST` as its path) these tests
//! skip.

use crate::world::*;
use serde_json::Value;
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use testkit::onramp::Target;

fn program() -> String {
    std::env::var("ONRAMP_LOCUST").unwrap_or_else(|_| "locust".to_owned())
}

/// A real Locust master with this locustfile.
fn start(file: &Path, port: u16, web: u16) -> Child {
    let mut master = Command::new(program());
    let places = format!("--master-bind-host 127.0.0.1 --master-bind-port {port}");
    let words = format!("{places} --web-host 127.0.0.1 --web-port {web}");
    master
        .arg("-f")
        .arg(file)
        .arg("--master")
        .args(words.split(' '));
    let silent = master.stdout(Stdio::null()).stderr(Stdio::null());
    silent.spawn().unwrap()
}

struct Master {
    process: Ended,
    file: PathBuf,
    real: &'static Real,
    target: String,
    port: u16,
    web: u16,
}

impl Master {
    fn new(test: &str) -> Option<Master> {
        Master::with(test, &[], "")
    }

    /// One whose locustfile has more classes, and this besides.
    fn with(test: &str, classes: &[&str], python: &str) -> Option<Master> {
        if Command::new(program()).arg("--version").output().is_err() {
            skipped(test, "Locust is not installed");
            return None;
        }
        let real = server(test)?;
        let schema = format!("locust_{test}");
        fresh_schema(real, &schema);
        let target = format!("mysql://app:app@127.0.0.1:{}/{schema}", real.port());
        let line = format!("load select prepare --target {target} --table-size 100");
        onramp(&line).ends(0);
        let words = format!("load select run --target {target} --print-locustfile");
        let words: Vec<_> = words.split(' ').chain(classes.iter().copied()).collect();
        let printed = run(binary(), &words, LIMIT);
        says(&printed.stdout, "class Select(User):");
        let file = real.folder().join(format!("{schema}.py"));
        std::fs::write(&file, printed.stdout + python).unwrap();
        let (port, web) = (free_port(), free_port());
        Some(Master {
            process: Ended(start(&file, port, web)),
            file,
            real,
            target,
            port,
            web,
        })
    }

    /// Ends the master, and starts another one in its place.
    fn restart(&mut self) {
        let Ended(old) = &mut self.process;
        old.kill().unwrap();
        old.wait().unwrap();
        self.process = Ended(start(&self.file, self.port, self.web));
    }

    fn worker(&self) -> Ended {
        self.worker_with(&[], Stdio::null())
    }

    fn worker_with(&self, options: &[&str], stderr: Stdio) -> Ended {
        let (target, port) = (&self.target, self.port);
        let run = format!("load select run --target {target} --table-size 100 --connections 50");
        let worker = Command::new(binary())
            .args(format!("{run} --groups 1 --locust-master 127.0.0.1:{port}").split(' '))
            .args(options)
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn();
        Ended(worker.unwrap())
    }

    /// Asks the master's page; `None` where it is not there yet.
    fn ask(&self, request: &str, body: &str) -> Option<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.web)).ok()?;
        let head = format!(
            "{request} HTTP/1.0\r\nHost: localhost\r\nContent-Type: \
             application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (_, body) = answer.split_once("\r\n\r\n")?;
        Some(body.to_owned())
    }

    /// Orders this many users.
    fn swarm(&self, users: u32) {
        let form = format!("user_count={users}&spawn_rate=50");
        self.ask("POST /swarm", &form).unwrap();
    }

    /// The master's view of the run, once it is as wanted.
    fn until(&self, what: &str, mut is_so: impl FnMut(&Value) -> bool) -> Value {
        until(|| {
            let answer = self.ask("GET /stats/requests", "").unwrap_or_default();
            let stats = serde_json::from_str(&answer).unwrap_or(Value::Null);
            match is_so(&stats) {
                true => Ok(stats),
                false => Err(format!("{what} has not come: {stats}")),
            }
        })
    }

    fn connections(&self) -> String {
        let count = "SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'app' AND \
                     db = DATABASE()";
        let schema = self.target.rsplit('/').next().unwrap();
        let mut admin = self.real.admin();
        admin.value(&count.replace("DATABASE()", &format!("'{schema}'")))
    }
}

fn workers(stats: &Value, state: &str) -> usize {
    let all = stats["workers"].as_array();
    let all = all.into_iter().flatten();
    all.filter(|worker| worker["state"] == state).count()
}

fn connected(stats: &Value, users: u64) -> bool {
    stats["user_count"] == users && stats["state"] == "running"
}

/// A worker that is killed takes its users with it, and the master misses it as one of its own; a
/// master that is killed leaves no user behind, and the next one finds the worker ready.
#[test]
fn a_killed_worker_and_a_killed_master_are_got_over() {
    let mut master = or_return!(Master::new("killed"));
    let (kept, killed) = (master.worker(), master.worker());
    master.until("two workers", |stats| workers(stats, "ready") == 2);
    master.swarm(20);
    master.until("20 users", |stats| {
        connected(stats, 20) && master.connections() == "20"
    });
    drop(killed);
    // Locust gives its users to others a minute later; until then ten are left.
    master.until("the loss of ten users", |stats| {
        workers(stats, "running") == 1 && stats["user_count"] == 10 && master.connections() == "10"
    });
    master.restart();
    master.until("the worker at the new master, without users", |stats| {
        workers(stats, "ready") == 1 && master.connections() == "0"
    });
    master.swarm(7);
    master.until("seven users", |stats| {
        connected(stats, 7) && master.connections() == "7"
    });
    drop(kept);
}

/// A worker that tries to reach its master before that listens is ready with its first connection.
#[test]
fn a_worker_that_starts_before_its_master_is_ready_with_its_first_connection() {
    let mut master = or_return!(Master::new("before"));
    let Ended(old) = &mut master.process;
    old.kill().unwrap();
    old.wait().unwrap();
    let log = master.real.folder().join("before.log");
    let _worker = master.worker_with(&["--workers", "4"], File::create(&log).unwrap().into());
    let said = || std::fs::read_to_string(&log).unwrap();
    wait_while(|| !said().contains("no Locust master at"));
    master.process = Ended(start(&master.file, master.port, master.web));
    master.until("four workers", |stats| workers(stats, "ready") == 4);
    assert!(!said().contains("is gone"), "{}", said());
}

#[test]
fn users_of_a_real_master_run_are_reported_and_stop() {
    let master = or_return!(Master::new("stop"));
    let _workers = [master.worker(), master.worker()];
    master.until("two workers", |stats| workers(stats, "ready") == 2);
    master.swarm(20);
    let stats = master.until("20 users and their requests", |stats| {
        stats["user_count"] == 20 && stats["stats"][0]["num_requests"].as_u64() > Some(100)
    });
    assert_eq!(stats["state"], "running");
    let row = &stats["stats"][0];
    assert_eq!(row["method"], "SQL");
    assert_eq!(row["name"], "select");
    assert_eq!(row["num_failures"], 0);
    assert_eq!(master.connections(), "20");

    master.swarm(5);
    master.until("five users", |stats| {
        stats["user_count"] == 5 && master.connections() == "5"
    });
    master.ask("POST /stop", "").unwrap();
    master.until("the end", |stats| stats["state"] == "stopped");
    master.until("no connection", |_| master.connections() == "0");
    master.until("workers that are ready again", |stats| {
        workers(stats, "ready") == 2
    });
}

/// The master's row about the requests of a method and name.
fn row<'a>(stats: &'a Value, method: &str, name: &str) -> Option<&'a Value> {
    let mut rows = stats["stats"].as_array().into_iter().flatten();
    rows.find(|row| row["method"] == method && row["name"] == name)
}

fn requests(stats: &Value, method: &str, name: &str) -> u64 {
    row(stats, method, name).map_or(0, |row| row["num_requests"].as_u64().unwrap())
}

/// Statements, TCP connections that are held and HTTP are classes of one worker; each has the users
/// that the master wants of it, also when their number changes and when their server goes away.
#[test]
fn holds_and_http_are_classes_of_users() {
    let target = |kind: &str, options: &[&str]| Target::start(binary(), kind, options).unwrap();
    let tcp = target("tcp", &["--every", "200ms"]);
    let http = target("http", &[]);
    let place = format!("tcp://{}", tcp.address);
    let hold = format!(
        "Hold=tcp-hold --target {place} --every 200ms --late-after 20s --connections 50 --groups 2"
    );
    let url = format!("http://{}", http.address);
    let web = format!("Web={url}/right --expect ok --think-time 20ms --connections 50 --groups 2");
    let wrong = format!("Wrong={url}/wrong --expect 'not that' --think-time 20ms --connections 50");
    let classes = [&hold, &web, &wrong]
        .map(|class| ["--locust-class", class])
        .concat();
    let master = or_return!(Master::with("classes", &classes, ""));
    let _worker = master.worker_with(&classes, Stdio::null());
    master.until("a worker", |stats| workers(stats, "ready") == 1);
    master.swarm(20);
    let stats = master.until("requests of each class", |stats| {
        let each = [("SQL", "select"), ("TCP", &*place), ("GET", "/right")];
        connected(stats, 20)
            && each
                .iter()
                .all(|(method, name)| requests(stats, method, name) > 20)
            && requests(stats, "GET", "/wrong") > 20
            && master.connections() == "5"
    });
    for (method, name) in [("SQL", "select"), ("TCP", &*place), ("GET", "/right")] {
        let row = row(&stats, method, name).unwrap();
        assert_eq!(row["num_failures"], 0, "{stats}");
    }
    let wrong = row(&stats, "GET", "/wrong").unwrap();
    assert_eq!(wrong["num_failures"], wrong["num_requests"]);
    let errors = stats["errors"].to_string();
    says(&errors, "status 200, with another body than expected");

    // Fewer: each class ends some of its own. More again: they come back.
    master.swarm(4);
    master.until("one user of each", |stats| {
        connected(stats, 4) && master.connections() == "1"
    });
    let before = master.until("numbers", |_| true);
    master.until("requests of those that are left", |stats| {
        [("TCP", &*place), ("GET", "/right")]
            .iter()
            .all(|(method, name)| {
                requests(stats, method, name) > requests(&before, method, name) + 3
            })
    });
    master.swarm(20);
    master.until("five users of each", |stats| {
        connected(stats, 20) && master.connections() == "5"
    });
    // Its connections are lost, and cannot be opened again.
    let (_, said) = tcp.end();
    let accepted = said.split(" accepted").next().unwrap().rsplit(' ').next();
    assert_eq!(accepted, Some("9"), "five, and four of them again: {said}");
    let stats = master.until("the failures of the server that is gone", |stats| {
        requests(stats, "CONNECT", &place) > 5 && stats["user_count"] == 20
    });
    let errors = stats["errors"].to_string();
    assert!(errors.contains("ECONNREFUSED"), "{errors}");
    let words = "the server closed the connection while it was held";
    says(&errors, words);
    master.ask("POST /stop", "").unwrap();
    master.until("the end", |stats| {
        stats["state"] == "stopped" && workers(stats, "ready") == 1 && master.connections() == "0"
    });
}

/// A locustfile as Locust's own example of custom messages has it: the master sends names to each
/// worker when a test begins, and workers acknowledge them.
const CUSTOM: &str = r#"

from locust import events
from locust.runners import MasterRunner

ACKNOWLEDGED = []

def acknowledged(environment, msg, **kwargs):
    ACKNOWLEDGED.append([msg.node_id, msg.data])

@events.init.add_listener
def on_init(environment, **kwargs):
    if isinstance(environment.runner, MasterRunner):
        environment.runner.register_message("acknowledge_users", acknowledged)
        environment.web_ui.app.add_url_rule(
            "/acknowledged", "acknowledged", lambda: {"seen": ACKNOWLEDGED})

@events.test_start.add_listener
def on_start(environment, **kwargs):
    environment.runner.send_message("nobody_knows", 1)
    environment.runner.send_message("test_users", [{"name": "User 1"}, {"name": "Jürgen"}])
    environment.runner.send_message("broken", None)
"#;

/// Messages of a locustfile's own reach the program that was named for them, whose answer reaches
/// the master; others are ignored with a line, and a program that fails is an exception there.
#[test]
fn messages_of_a_locustfile_reach_a_program_and_its_answer_the_master() {
    let master = or_return!(Master::with("custom", &[], CUSTOM));
    let program = master.real.folder().join("acknowledge.sh");
    let text = "#!/bin/sh\nprintf '{\"type\": \"acknowledge_users\", \"data\": {\"index\": %s, \
                \"users\": %s}}\\n' \"$ONRAMP_LOCUST_INDEX\" \"$(cat)\"\n";
    std::fs::write(&program, text).unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, executable).unwrap();
    let log = master.real.folder().join("custom.log");
    let named = format!("test_users={}", program.display());
    let options = format!("--workers 2 --locust-on {named} --locust-on broken=/bin/false");
    let options: Vec<_> = options.split(' ').collect();
    let _worker = master.worker_with(&options, File::create(&log).unwrap().into());
    master.until("two workers", |stats| workers(stats, "ready") == 2);
    master.swarm(4);
    let mut seen = Value::Null;
    master.until("both answers", |_| {
        let answer = master.ask("GET /acknowledged", "").unwrap_or_default();
        seen = serde_json::from_str(&answer).unwrap_or_default();
        seen["seen"].as_array().is_some_and(|all| all.len() == 2)
    });
    let users = serde_json::json!([{"name": "User 1"}, {"name": "Jürgen"}]);
    let mut indexes = Vec::new();
    for said in seen["seen"].as_array().unwrap() {
        assert_eq!(said[1]["users"], users);
        indexes.push(said[1]["index"].as_u64().unwrap());
    }
    indexes.sort_unstable();
    assert_eq!(indexes, [0, 1]);
    master.until("the exception", |_| {
        let answer = master.ask("GET /exceptions", "").unwrap_or_default();
        answer.contains("--locust-on broken=/bin/false: it ended with exit status: 1")
    });
    let said = std::fs::read_to_string(&log).unwrap();
    let words = "the Locust master sent 'nobody_knows', which no --locust-on";
    says(&said, words);
}

/// A shape of the locustfile's own: six users for some seconds, then three, then the end.
const SHAPE: &str = r#"

from locust import LoadTestShape

class Steps(LoadTestShape):
    def tick(self):
        seconds = self.get_run_time()
        return (6, 6) if seconds < 5 else (3, 6) if seconds < 10 else None
"#;

/// Without a page: the shape of a locustfile decides how many users there are, Locust writes its
/// CSV files, and its end is the worker's.
#[test]
fn a_shape_runs_to_its_end_and_csv_files_have_its_requests() {
    let master = or_return!(pooled(Master::new));
    let folder = master.real.folder().to_owned();
    let file = folder.join("shape.py");
    let text = std::fs::read_to_string(&master.file).unwrap() + SHAPE;
    std::fs::write(&file, text).unwrap();
    let port = free_port();
    let place = format!("127.0.0.1:{port}");
    let csv = folder.join("csv");
    let mut headless = Command::new(program());
    headless.arg("-f").arg(&file).arg("--csv").arg(&csv);
    let bind = format!("--master-bind-host 127.0.0.1 --master-bind-port {port}");
    let words = format!("--master --headless --expect-workers 1 --csv-full-history {bind}");
    headless.args(words.split(' '));
    let silent = headless.stdout(Stdio::null()).stderr(Stdio::null());
    let mut headless = Ended(silent.spawn().unwrap());
    let mut worker = master.worker_with(&["--locust-master", &place], Stdio::null());
    let Ended(child) = &mut headless;
    let status = child.wait().unwrap();
    assert!(status.success(), "{status:?}");
    let Ended(child) = &mut worker;
    let code = child.wait().unwrap().code();
    assert_eq!(code, Some(0), "the master said quit");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let stats = read("csv_stats.csv");
    let row = stats.lines().find(|line| line.starts_with("SQL,select,"));
    let fields: Vec<_> = row
        .unwrap_or_else(|| panic!("{stats}"))
        .split(',')
        .collect();
    let count = fields[2].parse::<u64>().unwrap();
    assert!(count > 100 && fields[3] == "0", "{stats}");
    let history = read("csv_stats_history.csv");
    let users = history.lines().filter_map(|line| line.split(',').nth(1));
    let users: Vec<_> = users.collect();
    for wanted in ["6", "3"] {
        assert!(users.contains(&wanted), "{wanted}: {history}");
    }
}

/// A script whose users are the master's: each has a connection of its own, which it leaves open.
const SCRIPT: &str = r#"
function thread_init()
   con = sysbench.sql.driver():connect()
end

function event()
   con:query("SELECT " .. sysbench.tid)
end
"#;

/// A script in a file can be what users run: they come, go, and come again.
#[test]
fn users_of_a_master_run_a_script() {
    let master = or_return!(Master::new("script"));
    let script = master.real.folder().join("users.lua");
    std::fs::write(&script, SCRIPT).unwrap();
    let (target, port) = (&master.target, master.port);
    let words = format!("run --target {target} --connections 20 --groups 2 --locust-master");
    let mut worker = Command::new(binary());
    worker.arg("load").arg(&script).args(words.split(' '));
    worker.arg(format!("127.0.0.1:{port}"));
    let silent = worker.stdout(Stdio::null()).stderr(Stdio::null());
    let _worker = Ended(silent.spawn().unwrap());
    master.until("a worker", |stats| workers(stats, "ready") == 1);
    for users in [10_u32, 3, 10] {
        master.swarm(users);
        let before = master.until("numbers", |_| true);
        master.until("the users and their requests", |stats| {
            connected(stats, users.into())
                && master.connections() == users.to_string()
                && requests(stats, "SQL", "users") > requests(&before, "SQL", "users") + 100
        });
    }
    master.ask("POST /stop", "").unwrap();
    let stats = master.until("the end", |stats| {
        stats["state"] == "stopped" && master.connections() == "0"
    });
    let failures = &row(&stats, "SQL", "users").unwrap()["num_failures"];
    assert_eq!(*failures, 0, "{stats}");
}
