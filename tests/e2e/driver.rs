//! Drivers that are not ours: the `mariadb` command line, and PyMySQL.

use crate::world::*;
use std::io::Write;
use std::process::{Command, Output, Stdio};

fn port_of(address: &Address) -> u16 {
    match address {
        Address::Tcp(address) => address.port(),
        Address::Unix(path) => panic!("{} has no port", path.display()),
    }
}

fn mariadb(port: u16, arguments: &[&str], input: &str) -> Option<Output> {
    let mut command = Command::new("mariadb");
    command.args([
        "--no-defaults",
        "--protocol=tcp",
        "-h127.0.0.1",
        &format!("-P{port}"),
    ]);
    command.args(arguments);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().ok()?;
    child.stdin.take()?.write_all(input.as_bytes()).ok()?;
    child.wait_with_output().ok()
}

/// Runs the same on both ways; what is printed must be the same.
fn both_ways(
    (real, way): (&Real, &Address),
    test: &str,
    arguments: &[&str],
    input: &str,
) -> Option<String> {
    let Some(expected) = mariadb(real.port(), arguments, input) else {
        skipped(test, "the mariadb command line is not installed");
        return None;
    };
    let port = port_of(way);
    let found = mariadb(port, arguments, input)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(text(&found.stderr), text(&expected.stderr), "{arguments:?}");
    assert_eq!(text(&found.stdout), text(&expected.stdout), "{arguments:?}");
    assert_eq!(found.status.code(), expected.status.code(), "{arguments:?}");
    Some(text(&found.stdout))
}

/// Its library takes an error with a number of its own range for a packet that it cannot read.
#[test]
fn the_mariadb_command_line_shows_the_pools_own_errors() {
    let test = "the_mariadb_command_line_shows_the_pools_own_errors";
    let Some(real) = pooled(server) else { return };
    let way = through(real, 1);
    let port = port_of(&way);
    let sleep = "SELECT SLEEP(60) FROM (SELECT 'to be lost') AS why";
    let asked = move || mariadb(port, &["-uapp", "-papp", "-e", sleep], "");
    let client = std::thread::spawn(asked);
    let mut admin = real.admin();
    let find = "SELECT id FROM information_schema.processlist WHERE state = 'User sleep' \
         AND info LIKE '%to be lost%'";
    let backend = loop {
        if let Some(mut row) = admin.rows(find).texts().pop() {
            break row.remove(0);
        }
        if client.is_finished() {
            break "0".to_owned();
        }
    };
    if backend != "0" {
        admin.must(&format!("KILL {backend}"));
    }
    let Some(ended) = client.join().unwrap() else {
        return skipped(test, "the mariadb command line is not installed");
    };
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(said.contains("ERROR 1158 (08S01)"), "{said}");
    says(&said, "whether the statement took effect is unknown");
}

#[test]
fn the_mariadb_command_line_works() {
    let test = "the_mariadb_command_line_works";
    let Some(real) = pooled(server) else { return };
    fresh_schema(real, "cli");
    let way = through(real, 2);
    let app = ["-uapp", "-papp"];
    let run = |more: &[&str], input: &str| {
        let arguments: Vec<&str> = app.iter().chain(more).copied().collect();
        both_ways((real, &way), test, &arguments, input)
    };
    let Some(out) = run(&["-t", "-e", "SELECT 1 AS one, NULL, 'a b'"], "") else {
        return;
    };
    assert!(out.contains("| one |"), "{out}");
    run(
        &[
            "cli",
            "-e",
            "SELECT DATABASE(); SHOW TABLES; SELECT * FROM missing",
        ],
        "",
    );
    run(
        &["cli", "-v", "-v"],
        "SET NAMES latin1;\nSELECT 'x' AS `\u{e9}`;\nSELECT 1/0;\n",
    );
    let script = "CREATE OR REPLACE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v TEXT);\n\
                  INSERT INTO t (v) VALUES ('a'), ('b');\nSELECT LAST_INSERT_ID();\n\
                  DELIMITER //\nCREATE OR REPLACE PROCEDURE p() BEGIN SELECT 1; SELECT 2; END//\n\
                  DELIMITER ;\nCALL p();\nUSE shop\nSELECT DATABASE();\nUSE cli\n\
                  SELECT * FROM t;\nDROP TABLE t;\n";
    run(&["cli"], script);
    run(
        &[
            "--show-warnings",
            "cli",
            "-e",
            "SELECT CAST('x' AS SIGNED); SELECT 2",
        ],
        "",
    );
    run(&["nowhere", "-e", "SELECT 1"], "");
    let long = format!(
        "SELECT LENGTH('{}'), REPEAT('y', 300000)",
        "x".repeat(300_000)
    );
    for end in ["", ";\nSELECT 1/0;\nSHOW WARNINGS;\n"] {
        let out = run(&["--compress", "cli"], &format!("{long}{end}"));
        assert!(out.is_some_and(|out| out.len() > 300_000));
    }
    both_ways(
        (real, &way),
        test,
        &["-uapp", "-pwrong", "-e", "SELECT 1"],
        "",
    );
    both_ways((real, &way), test, &["-unobody", "-e", "SELECT 1"], "");
}

#[test]
fn the_mariadb_command_line_speaks_caching_sha2() {
    let test = "the_mariadb_command_line_speaks_caching_sha2";
    let Some(real) = pooled(server) else { return };
    let way = through(real, 2);
    let port = port_of(&way);
    // Towards an address of loopback this client sends the password in clear where a server asks
    // for it, which is not to be had without TLS; so the fast path only. RSA is PyMySQL's part.
    let password = format!("-p{SHA_PASSWORD}");
    let arguments = ["-u", "sha", &password, "-N", "-e", "SELECT 'in'"];
    let Some(output) = mariadb(port, &arguments, "") else {
        return skipped(test, "the mariadb command line is not installed");
    };
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("cannot be loaded") {
        return skipped(test, "the client's plugin is not installed");
    }
    assert_eq!(String::from_utf8_lossy(&output.stdout), "in\n", "{said}");
}

const PYMYSQL: &str = include_str!("driver.py");

#[test]
fn pymysql_works() {
    let test = "pymysql_works";
    let Some(real) = pooled(server) else { return };
    let able = |python: &&str| {
        let import = Command::new(python)
            .args(["-c", "import pymysql, cryptography"])
            .output();
        import.is_ok_and(|output| output.status.success())
    };
    let Some(python) = ["python3", "/usr/bin/python3"].into_iter().find(able) else {
        return skipped(test, "python3 cannot import pymysql and cryptography");
    };
    fresh_schema(real, "pymysql");
    let way = through(real, 2);
    let port = port_of(&way).to_string();
    let output = Command::new(python)
        .args(["-c", PYMYSQL, &port, SHA_PASSWORD])
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    assert!(
        text(&output.stdout).ends_with("all passed\n"),
        "{}",
        text(&output.stdout)
    );
}

/// MariaDB's library answers a change of user with the nonce of the greeting, whatever it is sent.
#[test]
fn mariadbs_library_changes_its_user() {
    let test = "mariadbs_library_changes_its_user";
    let Some(real) = pooled(server) else { return };
    let way = through(real, 1);
    let tell = |port: u16| {
        let mut command = Command::new("python3");
        command.arg("-").arg(port.to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().ok()?;
        let program = include_bytes!("libmariadb.py");
        child.stdin.take()?.write_all(program).ok()?;
        let output = child.wait_with_output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code() != Some(77)).then_some(text)
    };
    let Some(expected) = tell(real.port()) else {
        return skipped(test, "MariaDB's client library is not installed");
    };
    assert_eq!(tell(port_of(&way)).unwrap(), expected);
    assert_eq!(expected.matches(" 0 ").count(), 3, "{expected}");
}
