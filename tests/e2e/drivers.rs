//! Real drivers doing real work: `tests/drivers`, each told directly and through the pool.
//!
//! A program there connects, pools, commits, rolls back, meets a deadlock, prepares, moves a value
//! of 6 MiB, cancels, loses a connection, and lets sixteen workers run in one crowd, each with
//! session state of its own; it prints facts. Both ways must print the same, and the pool has four
//! backends for all of it. Then it does all of that once more under TLS, in front of a pool that
//! takes nothing else. `scripts/drivers.sh` fetches and builds; what it could not have is
//! skipped here by name, with its reason. `ONRAMP_DRIVERS_MYSQL=1` does it all on MySQL too.

use crate::world::{app, direct, found, fresh_schema, login, server, start_pool, through, tls};
use reactor::Address;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use testkit::real::{Real, skipped};

/// Sixteen workers and a few more connections share these.
const BACKENDS: usize = 4;
/// The longest that a program may take; on a machine with nothing else to do it takes seconds.
const LIMIT: Duration = Duration::from_secs(180);

/// What a program printed, and how it ended.
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
