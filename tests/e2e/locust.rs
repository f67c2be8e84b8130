//! `onramp load --locust-master` with a real Locust master, unmodified: the users that it asks for
//! run, are reported, and stop.
//!
//! Where Locust is not installed (`locust` in the path, or `ONRAMP_LOCUST` as its path) these tests
//! skip.

use crate::world::{binary, direct, fresh_schema, server};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use testkit::onramp::{free_port, run};
use testkit::real::{Real, skipped};

/// How long the master may take for anything.
const LIMIT: Duration = Duration::from_secs(60);

/// Ends a child when the test is over.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn program() -> String {
    std::env::var("ONRAMP_LOCUST").unwrap_or_else(|_| "locust".to_owned())
}

/// A real Locust master with this locustfile.
fn start(file: &Path, port: u16, web: u16) -> Child {
    let (port, web) = (port.to_string(), web.to_string());
    let mut master = Command::new(program());
    master.arg("-f").arg(file).arg("--master");
    master.args([
        "--master-bind-host",
        "127.0.0.1",
        "--master-bind-port",
        &port,
    ]);
    master.args(["--web-host", "127.0.0.1", "--web-port", &web]);
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
        if direct() {
            skipped(test, "it is about the load generator");
            return None;
        }
        if Command::new(program()).arg("--version").output().is_err() {
            skipped(test, "Locust is not installed");
            return None;
        }
        let real = server(test)?;
        let schema = format!("locust_{test}");
        fresh_schema(real, &schema);
        let target = format!("mysql://app:app@127.0.0.1:{}/{schema}", real.port());
        let words = [
            "load",
            "select",
            "prepare",
            "--target",
            &target,
            "--table-size",
            "100",
        ];
        let made = run(binary(), &words, LIMIT);
        assert_eq!(made.status.code(), Some(0), "{made:?}");
        let words = [
            "load",
            "select",
            "run",
            "--target",
            &target,
            "--print-locustfile",
        ];
        let printed = run(binary(), &words, LIMIT);
        assert!(
            printed.stdout.contains("class Select(User):"),
            "{printed:?}"
        );
        let file = real.folder().join(format!("{schema}.py"));
        std::fs::write(&file, printed.stdout).unwrap();
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
        let place = format!("127.0.0.1:{}", self.port);
        let worker = Command::new(binary())
            .args([
                "load",
                "select",
                "run",
                "--target",
                &self.target,
                "--table-size",
                "100",
            ])
            .args([
                "--connections",
                "50",
                "--groups",
                "1",
                "--locust-master",
                &place,
            ])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
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

    /// The master's view of the run, once it is as wanted.
    fn until(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + LIMIT;
        let mut last = None;
        while Instant::now() < end {
            let answer = self.ask("GET /stats/requests", "");
            last = answer.and_then(|body| serde_json::from_str(&body).ok());
            if let Some(stats) = last.as_ref().filter(|stats| is_so(stats)) {
                return stats.clone();
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("{what} did not come within {LIMIT:?}: {last:?}");
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
    let Some(mut master) = Master::new("killed") else {
        return;
    };
    let (kept, killed) = (master.worker(), master.worker());
    master.until("two workers", |stats| workers(stats, "ready") == 2);
    master
        .ask("POST /swarm", "user_count=20&spawn_rate=20")
        .unwrap();
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
    master
        .ask("POST /swarm", "user_count=7&spawn_rate=20")
        .unwrap();
    master.until("seven users", |stats| {
        connected(stats, 7) && master.connections() == "7"
    });
    drop(kept);
}

#[test]
fn users_of_a_real_master_run_are_reported_and_stop() {
    let Some(master) = Master::new("stop") else {
        return;
    };
    let _workers = [master.worker(), master.worker()];
    master.until("two workers", |stats| workers(stats, "ready") == 2);
    master
        .ask("POST /swarm", "user_count=20&spawn_rate=20")
        .unwrap();
    let stats = master.until("20 users and their requests", |stats| {
        stats["user_count"] == 20 && stats["stats"][0]["num_requests"].as_u64() > Some(100)
    });
    assert_eq!(stats["state"], "running");
    let row = &stats["stats"][0];
    assert_eq!(
        (&row["method"], &row["name"]),
        (&"SQL".into(), &"select".into())
    );
    assert_eq!(row["num_failures"], 0);
    assert_eq!(master.connections(), "20");

    master
        .ask("POST /swarm", "user_count=5&spawn_rate=20")
        .unwrap();
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
