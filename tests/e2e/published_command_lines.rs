//! Two published command lines, as they stand but for the program's name, on a machine where no
//! sysbench is to be found.
//!
//! Only what a test cannot have is smaller: rows, seconds, and 1,000 threads of 10,000, which
//! `ONRAMP_WALLS=1` runs in full. The servers' places are this test's.

use crate::sysbench::count;
use crate::world::*;
use std::process::{Command, Output, Stdio};

/// Runs a line of sysbench where its program cannot be found by anybody.
fn onramp(line: &str) -> Output {
    let words = line.split_whitespace();
    let mut command = Command::new(binary());
    command.arg("sysbench").args(words).stdin(Stdio::null());
    command.env("PATH", "/nowhere").output().unwrap()
}

fn report(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_published_line_of_0_5_runs() {
    let threads = match std::env::var_os("ONRAMP_WALLS") {
        Some(_) => 10_000,
        None => 1_000,
    };
    let options = "--max-connections=11000 --thread-handling=pool-of-threads --back-log=5000";
    let real = or_return!(own(Real::start(&words(options))));
    real.create_user("sbtest", "sbtest");
    real.execute(&["CREATE DATABASE sbtest"]);
    let line = format!(
        "--test=sysbench/tests/db/select.lua --mysql-host=127.0.0.1 --mysql-port={} \
         --mysql-user=sbtest --mysql-password=sbtest --oltp-tables-count=10 --report-interval=1 \
         --num-threads={threads} --max-time=3 --max-requests=0 --oltp-table-size=1000 \
         --rand-type=uniform --rand-init=on",
        real.port()
    );
    report(&onramp(&format!("{line} prepare")));
    let text = report(&onramp(&format!("{line} run")));
    assert!(text.starts_with("sysbench 0.5"), "{text}");
    says(&text, &format!("Number of threads: {threads}\n"));
    let shown = format!("[   1s] threads: {threads}, tps: 0.00, reads: ");
    assert!(text.contains(&shown), "{text}");
    let reads = count(&text, "read:");
    assert!(reads >= threads, "every thread has read: {text}");
    assert_eq!(count(&text, "total:"), reads);
    assert_eq!(count(&text, "ignored errors:"), 0);
    assert_eq!(count(&text, "reconnects:"), 0);
}

#[test]
fn the_published_line_of_1_0_runs() {
    let real = or_return!(own(Real::start(&[])));
    real.execute(&["CREATE DATABASE sysbenchtest"]);
    // 200 threads on ten tables prepare more statements than the server has by default; the line
    // ran for its author after he had raised this.
    real.execute(&["SET GLOBAL max_prepared_stmt_count = 100000"]);
    let line = format!(
        "/usr/share/sysbench/oltp_read_write.lua --mysql-user=root --mysql-port=3306 \
         --mysql-socket={} --mysql-host=localhost --mysql-db=sysbenchtest --tables=10 \
         --table-size=1000 --threads=200 --report-interval=5 --time=6",
        real.socket()
    );
    report(&onramp(&format!("{line} prepare")));
    let text = report(&onramp(&format!("{line} run")));
    for part in [
        "sysbench 1.0.20 (using ",
        "Number of threads: 200\nReport intermediate results every 5 second(s)\n",
        "\nThreads started!\n\n[ 5s ] thds: 200 tps: ",
    ] {
        assert!(text.contains(part), "'{part}' is missing: {text}");
    }
    let events = count(&text, "total number of events:");
    assert!(events >= 200, "every thread has run one: {text}");
    assert_eq!(count(&text, "transactions:"), events, "{text}");
    // Ten point selects and four ranges, four writes, BEGIN and COMMIT; a deadlock adds some.
    let reads = count(&text, "read:");
    assert!(reads >= 14 * events, "{text}");
    if count(&text, "ignored errors:") == 0 {
        let counts = (reads, count(&text, "other:"));
        assert_eq!(counts, (14 * events, 2 * events), "{text}");
    }
}

/// Percona's sysbench-tpcc, whose files are under a licence of their own and not here: `TPCC` names
/// their folder. One warehouse is made, run, and found consistent by the scripts' own checks.
#[test]
fn sysbench_tpcc_runs_unmodified_and_its_checks_pass() {
    let Some(folder) = std::env::var_os("TPCC") else {
        return skip("TPCC does not name the folder of sysbench-tpcc");
    };
    let options = "--innodb-flush-log-at-trx-commit=0 --innodb-log-file-size=256M";
    let real = or_return!(own(Real::start(&words(options))));
    real.create_user("sbtest", "sbtest");
    real.execute(&["CREATE DATABASE sbtest"]);
    let tpcc = |command: &str| {
        let mut program = Command::new(binary());
        let line = "sysbench ./tpcc.lua --mysql-host=127.0.0.1 --mysql-user=sbtest \
                    --mysql-password=sbtest --mysql-db=sbtest --tables=1 --scale=1 \
                    --threads=4 --time=3 --mysql-port=";
        program.args(words(&format!("{line}{}", real.port())));
        // Its scripts look for each other in the current folder.
        let program = program.arg(command).current_dir(&folder);
        report(&program.stdin(Stdio::null()).output().unwrap())
    };
    tpcc("prepare");
    assert!(count(&tpcc("run"), "transactions:") > 0);
    let checked = tpcc("check");
    says(&checked, "PASSED");
    assert!(!checked.contains("FAILED"), "{checked}");
}
