//! Real drivers doing real work: `tests/drivers`, each told directly and through the pool.
//!
//! A program there connects, pools, commits, rolls back, meets a deadlock, prepares, moves a value
//! of 6 MiB, cancels, loses a connection, and lets sixteen workers run in one crowd, each with
//! session state of its own; it prints facts. Both ways must print the same, and the pool has four
//! backends for all of it. Then it does all of that once more under TLS, in front of a pool that
//! takes nothing else. `scripts/drivers.sh` fetches and builds; what it could not have is
//! skipped here by name, with its reason. `ONRAMP_DRIVERS_MYSQL=1` does it all on MySQL too.

use crate::world::{app, direct, found, fresh_schema, login, mysql, server, start_pool};
use crate::world::{through, tls};
use reactor::Address;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use testkit::real::{Real, skipped};

/// Sixteen workers and a few more connections share these.
const BACKENDS: usize = 4;
/// The longest that a program may take; on a machine with nothing else to do it takes seconds.
const LIMIT: Duration = Duration::from_secs(180);

/// Runs a program; gives its output.
fn run(program: &Path, address: &Address, schema: &str, is_tls: bool) -> String {
    let Address::Tcp(address) = address else {
        panic!("{address} has no port");
    };
    let mut command = Command::new(program);
    if is_tls {
        command.env("DRIVER_TLS", "1");
    }
    let mut child = command
        .args([&address.port().to_string(), schema])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    let (mut out, mut said) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let said = std::thread::spawn(move || {
        let mut text = String::new();
        said.read_to_string(&mut text).map(|_| text)
    });
    let facts = std::thread::spawn(move || {
        let mut text = String::new();
        out.read_to_string(&mut text).map(|_| text)
    });
    let ended = wait(&mut child);
    let (facts, said) = (
        facts.join().unwrap().unwrap(),
        said.join().unwrap().unwrap(),
    );
    assert_eq!(ended, Some(0), "{}:\n{facts}{said}", program.display());
    assert!(facts.ends_with("done\n"), "{facts}{said}");
    facts
}

/// The program's exit code; `None` where it took too long, or was ended by a signal.
fn wait(child: &mut Child) -> Option<i32> {
    let started = Instant::now();
    while started.elapsed() < LIMIT {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    None
}

/// One driver on both ways to one server.
fn works_on(real: &Real, program: &Path, schema: &str) {
    fresh_schema(real, schema);
    let expected = run(program, &real.address(), schema, false);
    assert!(expected.contains("crowd: 0 16 320\n"), "{expected}");
    if direct() {
        return;
    }
    fresh_schema(real, schema);
    let way = through(real, BACKENDS);
    let found = run(program, &way, schema, false);
    assert_eq!(found, expected, "through the pool and directly");
    drop(way);
    fresh_schema(real, schema);
    let extra = format!(
        "backends_max = {BACKENDS}\ngroups = 1\n{}",
        tls(real, "required")
    );
    let pool = start_pool(real, &format!("{schema}-tls.toml"), &extra);
    let found = run(program, &pool.address, schema, true);
    assert_eq!(found, expected, "through the pool under TLS and directly");
}

fn works(driver: &str) {
    let test = format!("{driver} does its work");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/drivers");
    let program = folder.join(driver).join("run");
    if !program.is_file() {
        let why = std::fs::read_to_string(folder.join(driver).join("missing"));
        let why = why.unwrap_or_else(|_| "not fetched; scripts/drivers.sh does".into());
        return skipped(&test, why.trim());
    }
    let Some(real) = server(&test) else { return };
    let schema = format!("driver_{}", driver.replace('-', "_"));
    works_on(real, &program, &schema);
    if std::env::var_os("ONRAMP_DRIVERS_MYSQL").is_none() {
        return;
    }
    let Some(mysql) = found(Real::start_mysql(&[]), &test) else {
        return;
    };
    mysql.create_user("app", "app");
    // The server knows the password's hash from then on, and no driver needs a key to say it.
    drop(login(&mysql.address(), &app()));
    mysql.execute(&["INSTALL COMPONENT 'file://component_query_attributes'"]);
    works_on(&mysql, &program, &schema);
}

#[test]
fn pymysql_does_its_work() {
    works("pymysql");
}

#[test]
fn sqlalchemy_does_its_work() {
    works("sqlalchemy");
}

#[test]
fn mysql_connector_python_does_its_work() {
    works("mysql-connector-python");
}

#[test]
fn go_sql_driver_does_its_work() {
    works("go");
}

#[test]
fn mysql2_for_node_does_its_work() {
    works("mysql2");
}

#[test]
fn mariadb_connector_for_node_does_its_work() {
    works("mariadb-node");
}

#[test]
fn mysql_connector_j_does_its_work() {
    works("mysql-connector-j");
}

#[test]
fn mariadb_connector_j_does_its_work() {
    works("mariadb-connector-j");
}

#[test]
fn sqlx_does_its_work() {
    works("sqlx");
}

/// Programs that say what they hear of a connection that ends: their folders, and who they are.
const ENDS: [(&str, &str); 6] = [
    ("pymysql", "PyMySQL"),
    ("mysql-connector-python", "Connector/Python"),
    ("go", "database/sql of Go"),
    ("mysql2", "mysql2 of Node"),
    ("mysql-connector-j", "Connector/J"),
    ("mariadb-connector-j", "MariaDB Connector/J"),
];
/// Page with what they hear.
const ENDS_PAGE: &str = "docs/pool/ends.md";

/// Cause of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Time,
    Kill,
    KillAtWork,
}

/// Ends: their names on the page, what is done in the session before, and the cause.
const IDLE: (&str, &str, Cause) = ("`wait_timeout`", "SET wait_timeout = 1", Cause::Time);
const IDLE_OPEN: (&str, &str, Cause) = (
    "`wait_timeout`, in a transaction",
    "SET wait_timeout = 1;BEGIN;SELECT 1",
    Cause::Time,
);
const IDLE_TRANSACTION: (&str, &str, Cause) = (
    "`idle_transaction_timeout`",
    "SET idle_transaction_timeout = 1;BEGIN;SELECT 1",
    Cause::Time,
);
const KILLED: (&str, &str, Cause) = ("KILL of an idle client", "", Cause::Kill);
const KILLED_AT_WORK: (&str, &str, Cause) = ("KILL while a statement runs", "", Cause::KillAtWork);

/// True while a process has a connection to this port that neither side has ended.
/// (Documentation/networking/proc_net_tcp.rst of Linux: the other end is the third column, the
/// state the fourth, the inode the tenth.)
fn is_connected(pid: u32, port: u16) -> bool {
    let open = std::fs::read_dir(format!("/proc/{pid}/fd"));
    let open: Vec<String> = (open.into_iter().flatten().flatten())
        .filter_map(|entry| std::fs::read_link(entry.path()).ok())
        .map(|link| link.to_string_lossy().into_owned())
        .collect();
    let port = format!(":{port:04X}");
    ["/proc/net/tcp", "/proc/net/tcp6"].iter().any(|table| {
        let table = std::fs::read_to_string(table).unwrap_or_default();
        table.lines().any(|line| {
            let columns: Vec<&str> = line.split_whitespace().collect();
            columns[2].ends_with(&port)
                && columns[3] == "01"
                && open.contains(&format!("socket:[{}]", columns[9]))
        })
    })
}

/// A driver's word when this has ended its connection.
fn hears(
    driver: &str,
    (real, address, schema): (&Real, &Address, &str),
    (_, before, cause): (&str, &str, Cause),
) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/drivers");
    let Address::Tcp(place) = address else {
        panic!("{address} has no port");
    };
    let statement = match cause {
        Cause::KillAtWork => format!("SELECT SLEEP(60), '{driver}'"),
        _ => "SELECT 1".to_owned(),
    };
    let mut child = Command::new(folder.join(driver).join("ends"))
        .args([&place.port().to_string(), schema, before, &statement])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || said.next().map_or_else(String::new, Result::unwrap);
    let id = next();
    let mut input = child.stdin.take().unwrap();
    let until = |what: &str, is_so: &mut dyn FnMut() -> bool| {
        let started = Instant::now();
        while !is_so() {
            assert!(started.elapsed() < LIMIT, "{driver}: {what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    if cause == Cause::KillAtWork {
        input.write_all(b"\n").unwrap();
        let runs = format!(
            "SELECT COUNT(*) FROM information_schema.processlist WHERE \
             info LIKE \"SELECT SLEEP(60), '{driver}'%\""
        );
        let mut admin = real.admin();
        until("it runs", &mut || admin.value(&runs) == "1");
    }
    if cause != Cause::Time {
        login(address, &app()).must(&format!("KILL {id}"));
    }
    if cause != Cause::KillAtWork {
        let (pid, port) = (child.id(), place.port());
        until("its connection ends", &mut || !is_connected(pid, port));
        input.write_all(b"\n").unwrap();
    }
    let heard = next();
    let _ = wait(&mut child);
    heard
}

/// The rows of the page for one server, after a comparison of both ways.
fn ends_at(real: &Real, server: &str, causes: &[(&str, &str, Cause)]) -> String {
    let schema = "driver_ends";
    fresh_schema(real, schema);
    let way = through(real, 2 * ENDS.len());
    let columns = std::thread::scope(|scope| {
        let column = |(driver, _): (&'static str, &str)| {
            let way = &*way;
            scope.spawn(move || {
                let heard = |cause: &(&str, &str, Cause)| {
                    let directly = hears(driver, (real, &real.address(), schema), *cause);
                    let pooled = hears(driver, (real, way, schema), *cause);
                    assert_eq!(pooled, directly, "{driver} at {server}: {}", cause.0);
                    assert!(!directly.is_empty(), "{driver} at {server}: {}", cause.0);
                    directly
                };
                causes.iter().map(heard).collect::<Vec<String>>()
            })
        };
        let columns: Vec<_> = ENDS.into_iter().map(column).collect();
        let columns = columns.into_iter().map(|column| column.join().unwrap());
        columns.collect::<Vec<_>>()
    });
    let row = |(number, (cause, ..)): (usize, &(&str, &str, Cause))| {
        let heard: Vec<&str> = columns.iter().map(|column| &*column[number]).collect();
        format!("| {server} | {cause} | {} |\n", heard.join(" | "))
    };
    causes.iter().enumerate().map(row).collect()
}

#[test]
fn drivers_hear_of_an_end_what_they_hear_directly() {
    let test = "drivers hear of an end what they hear directly";
    if direct() {
        return skipped(test, "it compares both ways");
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/drivers");
    let missing = (ENDS.iter()).find(|(driver, _)| !folder.join(driver).join("ends").is_file());
    if let Some((driver, _)) = missing {
        return skipped(
            test,
            &format!("{driver} is not fetched; scripts/drivers.sh does"),
        );
    }
    let (Some(maria), Some(mysql)) = (server(test), mysql(test)) else {
        return;
    };
    drop(login(&mysql.address(), &app()));
    let causes = [IDLE, IDLE_OPEN, IDLE_TRANSACTION, KILLED, KILLED_AT_WORK];
    let rows = ends_at(maria, "MariaDB", &causes);
    let causes = [IDLE, IDLE_OPEN, KILLED, KILLED_AT_WORK];
    let rows = rows + &ends_at(mysql, "MySQL", &causes);
    let names: Vec<&str> = ENDS.iter().map(|(_, name)| *name).collect();
    let made = format!(
        "# What drivers say when a connection ends\n\n\
         <!-- Made by tests/e2e/drivers.rs; do not edit.\n     \
         ONRAMP_WRITE=1 cargo test --test e2e drivers_hear -->\n\n\
         The pool ends a connection as the server of its clients does. MariaDB resets one that is \
         over\na timeout, which drivers report as a server that has gone away (2006), or open anew \
         by themselves.\nKILL ends one in order; MySQL sends error 4031 first where a client was \
         idle for too long.\nEach driver hears the same directly and through the pool. The table \
         has what it says of the\nnext statement, with MariaDB 10.11 and MySQL 9.7: its number, \
         its SQL state and number, or its own\nword.\n\n\
         | server | what ends it | {} |\n|---|---|{}\n{rows}",
        names.join(" | "),
        "---|".repeat(names.len()),
    );
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join(ENDS_PAGE);
    if std::env::var_os("ONRAMP_WRITE").is_some() {
        return std::fs::write(page, made).unwrap();
    }
    assert_eq!(made, std::fs::read_to_string(page).unwrap());
}
