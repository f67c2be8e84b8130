//! A server that stops without closing anything: whoever waits for it hears so, in every state.

use crate::walls::{has, is_root, is_soak, small_disk};
use crate::world::*;
use testkit::real::await_blocked;

fn failure_of(client: &mut Client) -> Failure {
    match client.receive().unwrap().pop() {
        Some(Outcome::Failed(failure)) => failure,
        other => panic!("expected an error, got {other:?}"),
    }
}

#[test]
fn nobody_waits_for_a_server_that_stands_still() {
    own_servers(&[]).for_each(|real| stand_still(&real));
}

fn stand_still(real: &Real) {
    real.script("CREATE DATABASE still; CREATE TABLE still.t (v INT PRIMARY KEY) ENGINE=InnoDB");
    let settings = "backends_max = 8\ngroups = 1\ndial_ms_max = 2000\nwait_ms_max = 600000\n\
        server_down_fail_ms = 1000";
    let pool = fresh_pool(real, settings);
    let open = || login(&pool.address, &app());
    // Its statement runs when the server stops.
    let mut runs = open();
    send(&mut runs, "SELECT SLEEP(600)");
    await_blocked(&mut real.admin(), &runs, "SELECT SLEEP(600)");
    // It has prepared on a backend that is another client's then.
    let mut prepares = open();
    let id = prepares.prepare("SELECT 7").id;
    let mut holds = open();
    holds.must(HOLD);
    holds.must("INSERT INTO still.t VALUES (1)");
    let mut spare = [open(), open(), open()];
    for client in &mut spare {
        client.must(HOLD);
    }
    for client in &mut spare {
        client.must("ROLLBACK");
    }
    let [mut sends, mut comes, _] = spare;
    real.suspend();
    // Nobody knows yet: both go to backends that are free, one behind a command of the pool's own.
    send(&mut sends, "SELECT 2");
    let execution = [&id.to_le_bytes()[..], &[0, 1, 0, 0, 0]].concat();
    prepares
        .send(&[(Command::StmtExecute, &execution)])
        .unwrap();
    pool.wait_for("event=server-lost ").unwrap();
    // Neither one with a free backend, nor a new one.
    send(&mut comes, "SELECT 3");
    let mut new = open();
    for failure in [
        new.failure("SELECT 4"),
        failure_of(&mut comes),
        failure_of(&mut prepares),
        holds.failure("SELECT 5"),
    ] {
        assert_eq!(failure.code, 9507, "{failure}");
        says(&failure.message, "nothing was executed");
    }
    for client in [&mut runs, &mut sends] {
        let failure = failure_of(client);
        assert_eq!(failure.code, 1158, "{failure}");
        says(&failure.message, "the server has answered nobody for ");
    }
    assert_eq!(new.failure("SELECT 6").code, 9507, "at once");
    real.resume();
    pool.wait_for("event=server-back ").unwrap();
    holds.must("COMMIT");
    for client in [&mut new, &mut comes, &mut prepares, &mut runs, &mut sends] {
        assert_eq!(client.value("SELECT v FROM still.t"), "1");
    }
}

#[test]
fn a_server_that_answers_its_watch_alone_is_waited_for_within_the_limits_of_time() {
    for real in [pooled(server), pooled(mysql)].into_iter().flatten() {
        answers_the_watch_alone(real);
    }
}

/// Checks the pool as behind a full disk: the server answers the watch, and no statement that
/// writes.
fn answers_the_watch_alone(real: &Real) {
    let sql = "CREATE DATABASE full_disk; \
               CREATE TABLE full_disk.t (v INT PRIMARY KEY) ENGINE=InnoDB";
    real.script(sql);
    let settings = "backends_max = 2\ngroups = 1\nwait_ms_max = 3000\nserver_down_fail_ms = 1500\n\
        dial_ms_max = 1500\nstatement_ms_max = 8000";
    let pool = fresh_pool(real, settings);
    let open = || login(&pool.address, &app());
    // It has prepared on a backend that is another client's then.
    let mut prepares = open();
    let id = prepares.prepare("INSERT INTO full_disk.t VALUES (2)").id;
    let mut writes = open();
    writes.must(HOLD);
    let mut waits = open();
    let mut full = real.admin();
    full.must("LOCK TABLES full_disk.t WRITE");
    send(&mut writes, "INSERT INTO full_disk.t VALUES (1)");
    let execution = [&id.to_le_bytes()[..], &[0, 1, 0, 0, 0]].concat();
    prepares
        .send(&[(Command::StmtExecute, &execution)])
        .unwrap();
    let failure = waits.failure("SELECT 'a backend is waited for'");
    assert_eq!(failure.code, 9501, "{failure}");
    says(&failure.message, "has not answered a statement for");
    for client in [&mut writes, &mut prepares] {
        let failure = failure_of(client);
        assert_eq!(failure.code, 3024, "{failure}");
        assert!(failure.message.contains("statement_ms_max"), "{failure}");
    }
    // The KILLs of what the pool has given up have come.
    let runs = "SELECT COUNT(*) FROM information_schema.processlist \
        WHERE info LIKE 'INSERT INTO full_disk%'";
    until(|| match full.value(runs) {
        none if none == "0" => Ok(()),
        some => Err(format!("{some} of them run")),
    });
    full.must("UNLOCK TABLES");
    assert_eq!(waits.value("SELECT COUNT(*) FROM full_disk.t"), "0");
    assert!(!pool.said().contains("event=server-lost"), "it answers");
}

/// Writers wait until the disk of the binary log has room, as without a pool; readers do not, and
/// nobody hears of an outage. Servers look for room once a minute; with `ONRAMP_WALLS=1` that is
/// waited for: each write is in then, once.
#[test]
fn a_full_binary_log_holds_up_those_that_write() {
    if !is_root() || !has(&["unshare", "mount"]) {
        return;
    }
    let (prefix, log) = (small_disk("/mnt"), ["--log-bin=/mnt/log"]);
    let servers = [
        Real::start_behind(&prefix, &log),
        Real::start_mysql_behind(&prefix, &log),
    ];
    for real in servers.into_iter().filter_map(own) {
        fills_its_log(&real, is_soak());
    }
}

fn fills_its_log(real: &Real, frees: bool) {
    real.script("CREATE DATABASE full_log; CREATE TABLE full_log.t (v LONGTEXT) ENGINE=InnoDB");
    let settings = "backends_max = 2\ngroups = 1\nwait_ms_max = 3000\nserver_down_fail_ms = 1500\n\
        dial_ms_max = 1500";
    let pool = fresh_pool(real, settings);
    let [mut first, mut second, mut reads] = [(); 3].map(|()| login(&pool.address, &app()));
    let fill = format!("/proc/{}/root/mnt/fill", real.pid());
    let filled = std::fs::write(&fill, vec![0; 1 << 20]);
    assert!(filled.is_err(), "there is room");
    // The log has the text.
    let write = format!("INSERT INTO full_log.t VALUES ('{}')", "x".repeat(50_000));
    send(&mut first, &write);
    until(|| match real.log() {
        log if log.contains("Waiting for someone to free space") => Ok(()),
        log => Err(log),
    });
    // For longer than an outage would be waited for.
    assert_eq!(reads.value("SELECT SLEEP(4)"), "0");
    assert_eq!(reads.value("SELECT COUNT(*) FROM full_log.t"), "0");
    send(&mut second, &write);
    pool.wait_for_census("backends_checked_out: 2,").unwrap();
    let failure = reads.failure("SELECT 'a backend is waited for'");
    assert_eq!(failure.code, 9501, "{failure}");
    says(&failure.message, "has not answered a statement for");
    for client in [&first, &second] {
        assert!(!client.has_answer().unwrap());
    }
    assert!(!pool.said().contains("event=server-lost"), "it answers");
    if frees {
        std::fs::remove_file(fill).unwrap();
        for client in [&mut first, &mut second] {
            assert!((0..3).any(|_| client.await_answer().unwrap()));
            assert_eq!(client.receive().unwrap()[0].done().affected_rows, 1);
        }
        assert_eq!(reads.value("SELECT COUNT(*) FROM full_log.t"), "2");
        assert!(!pool.said().contains("event=server-lost"), "it answered");
    }
}
