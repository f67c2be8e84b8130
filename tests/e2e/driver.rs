//! Drivers that are not ours: the `mariadb` command line, and PyMySQL.

use crate::world::*;
use std::io::Write;
use std::process::{Command, Output, Stdio};

fn mariadb(port: impl std::fmt::Display, arguments: &[&str], input: &str) -> Option<Output> {
    let mut command = Command::new("mariadb");
    let usual = format!("--no-defaults --protocol=tcp -h127.0.0.1 -P{port}");
    command.args(words(&usual)).args(arguments);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().ok()?;
    child.stdin.take()?.write_all(input.as_bytes()).ok()?;
    child.wait_with_output().ok()
}

/// Runs the same on both ways; what is printed must be the same.
fn both_ways((real, way): (&Real, &Address), arguments: &[&str], input: &str) -> Option<String> {
    let Some(expected) = mariadb(real.port(), arguments, input) else {
        skip("the mariadb command line is not installed");
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
    let (real, way) = or_return!(shared(1));
    let port = port_of(&way);
    let sleep = "SELECT SLEEP(60) FROM (SELECT 'to be lost') AS why";
    let asked = move || mariadb(&port, &["-uapp", "-papp", "-e", sleep], "");
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
        return skip("the mariadb command line is not installed");
    };
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(said.contains("ERROR 1158 (08S01)"), "{said}");
    says(&said, "whether the statement took effect is unknown");
}

#[test]
fn the_mariadb_command_line_works() {
    let Some(real) = pooled(server) else { return };
    fresh_schema(real, "cli");
    let way = through(real, 2);
    let app = ["-uapp", "-papp"];
    let run =
        |more: &[&str], input: &str| both_ways((real, &way), &[&app[..], more].concat(), input);
    let out = or_return!(run(&["-t", "-e", "SELECT 1 AS one, NULL, 'a b'"], ""));
    assert!(out.contains("| one |"), "{out}");
    let several = "SELECT DATABASE(); SHOW TABLES; SELECT * FROM missing";
    run(&["cli", "-e", several], "");
    let names = "SET NAMES latin1;\nSELECT 'x' AS `\u{e9}`;\nSELECT 1/0;\n";
    run(&["cli", "-v", "-v"], names);
    let script = "CREATE OR REPLACE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v TEXT);\n\
                  INSERT INTO t (v) VALUES ('a'), ('b');\nSELECT LAST_INSERT_ID();\n\
                  DELIMITER //\nCREATE OR REPLACE PROCEDURE p() BEGIN SELECT 1; SELECT 2; END//\n\
                  DELIMITER ;\nCALL p();\nUSE shop\nSELECT DATABASE();\nUSE cli\n\
                  SELECT * FROM t;\nDROP TABLE t;\n";
    run(&["cli"], script);
    let warns = "SELECT CAST('x' AS SIGNED); SELECT 2";
    run(&["--show-warnings", "cli", "-e", warns], "");
    run(&["nowhere", "-e", "SELECT 1"], "");
    let filler = "x".repeat(300_000);
    let long = format!("SELECT LENGTH('{filler}'), REPEAT('y', 300000)");
    for end in ["", ";\nSELECT 1/0;\nSHOW WARNINGS;\n"] {
        let out = run(&["--compress", "cli"], &format!("{long}{end}"));
        assert!(out.is_some_and(|out| out.len() > 300_000));
    }
    let wrong = ["-uapp", "-pwrong", "-e", "SELECT 1"];
    both_ways((real, &way), &wrong, "");
    both_ways((real, &way), &["-unobody", "-e", "SELECT 1"], "");
}

const PYMYSQL: &str = include_str!("driver.py");

#[test]
fn pymysql_works() {
    let Some(real) = pooled(server) else { return };
    let able = |python: &&str| {
        let imports = ["-c", "import pymysql, cryptography"];
        let import = Command::new(python).args(imports).output();
        import.is_ok_and(|output| output.status.success())
    };
    let Some(python) = ["python3", "/usr/bin/python3"].into_iter().find(able) else {
        return skip("python3 cannot import pymysql and cryptography");
    };
    fresh_schema(real, "pymysql");
    let way = through(real, 2);
    let port = port_of(&way);
    let arguments = ["-c", PYMYSQL, &port, SHA_PASSWORD];
    let output = Command::new(python).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{said}");
    says(&said, "all passed\n");
}

/// MariaDB's library answers a change of user with the nonce of the greeting, whatever it is sent.
#[test]
fn mariadbs_library_changes_its_user() {
    let (real, way) = or_return!(shared(1));
    let tell = |port: String| {
        let mut command = Command::new("python3");
        command.arg("-").arg(port);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().ok()?;
        let program = include_bytes!("libmariadb.py");
        child.stdin.take()?.write_all(program).ok()?;
        let output = child.wait_with_output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code() != Some(77)).then_some(text)
    };
    let Some(expected) = tell(real.port().to_string()) else {
        return skip("MariaDB's client library is not installed");
    };
    assert_eq!(tell(port_of(&way)).unwrap(), expected);
    assert_eq!(expected.matches(" 0 ").count(), 3, "{expected}");
}
