//! A server that dies under load: every lost statement is reported, none is silently repeated.

use crate::world::*;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const CLIENTS: usize = 20;

/// One client's knowledge of each of its statements.
#[derive(Default)]
struct Ledger {
    told_ok: Vec<String>,
    not_ok: Vec<String>,
    after_restart: usize,
}

/// Inserts unique tags until told to end.
fn insert_tags(
    address: &Address,
    who: usize,
    phase: &AtomicUsize,
    (inserted, ends): (&AtomicUsize, &AtomicBool),
) -> Ledger {
    let account = app().schema("faults");
    let mut ledger = Ledger::default();
    let mut client: Option<Client> = None;
    for number in 0.. {
        let now = phase.load(Ordering::SeqCst);
        if now == 2 && ledger.after_restart >= 10 || ends.load(Ordering::SeqCst) {
            return ledger;
        }
        let again = || Client::connect(address, &account).map_err(|error| error.to_string());
        let open = client.get_or_insert_with(|| until(again));
        let tag = format!("{who}.{number}");
        match open.query(&format!("INSERT INTO t VALUES ('{tag}')")) {
            Ok(outcomes) if matches!(outcomes[..], [Outcome::Done(_)]) => {
                ledger.told_ok.push(tag);
                inserted.fetch_add(1, Ordering::SeqCst);
                ledger.after_restart += usize::from(now == 2);
            }
            Ok(_) => ledger.not_ok.push(tag),
            Err(_) => {
                ledger.not_ok.push(tag);
                client = None;
            }
        }
    }
    unreachable!("the phases end")
}

#[test]
fn a_killed_servers_statements_are_reported_and_never_repeated() {
    let mut real = or_return!(pooled(own_server));
    let sql = "SET GLOBAL innodb_flush_log_at_trx_commit = 1; CREATE DATABASE faults; \
               CREATE TABLE faults.t (tag VARCHAR(40)) ENGINE=InnoDB";
    real.script(sql);
    let pool = start_pool_for_app(&real);
    let address = &pool.address;
    let (phase, inserted) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let ends = AtomicBool::new(false);
    let ledgers: Vec<Ledger> = std::thread::scope(|scope| {
        let _end = Stop(&ends);
        let clients: Vec<_> = (0..CLIENTS)
            .map(|who| {
                let (phase, counts) = (&phase, (&inserted, &ends));
                scope.spawn(move || insert_tags(address, who, phase, counts))
            })
            .collect();
        wait_while(|| inserted.load(Ordering::SeqCst) < 500);
        real.kill9();
        phase.store(1, Ordering::SeqCst);
        real.restart().unwrap();
        phase.store(2, Ordering::SeqCst);
        clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .collect()
    });
    let mut present: HashMap<String, usize> = HashMap::new();
    for row in real.admin().rows("SELECT tag FROM faults.t").texts() {
        *present.entry(row[0].clone()).or_default() += 1;
    }
    let are_single = present.values().all(|&count| count == 1);
    assert!(are_single, "a statement was executed twice");
    for ledger in &ledgers {
        for tag in &ledger.told_ok {
            assert!(
                present.contains_key(tag),
                "{tag} was reported OK and is not there"
            );
        }
        assert!(ledger.after_restart > 0);
    }
    let known: usize = ledgers
        .iter()
        .map(|l| l.told_ok.len() + l.not_ok.len())
        .sum();
    assert!(present.len() <= known, "somebody executed what nobody sent");
}

fn start_pool_for_app(real: &testkit::real::Real) -> testkit::onramp::Pool {
    let url = format!("mysql://app:app@127.0.0.1:{}", real.port());
    let arguments = [
        "--backend",
        &url,
        "--backends-max",
        "4",
        "--clients-max",
        "1000",
    ];
    testkit::onramp::Pool::start(crate::world::binary(), &arguments).unwrap()
}

#[test]
fn a_statement_lost_in_a_transaction_ends_the_session_as_a_server_would() {
    let mut real = or_return!(pooled(own_server));
    real.script("CREATE DATABASE faults; CREATE TABLE faults.t (v INT) ENGINE=InnoDB");
    let pool = start_pool_for_app(&real);
    let address = &pool.address;
    let mut inside = login(address, &app().schema("faults"));
    let mut idle = login(address, &app().schema("faults"));
    inside.must(HOLD);
    inside.must("INSERT INTO t VALUES (1)");
    assert_eq!(idle.value("SELECT COUNT(*) FROM t"), "0");
    real.restart().unwrap();
    let lost = inside.query("INSERT INTO t VALUES (2)");
    let told = match &lost {
        Err(_) => true,
        Ok(outcomes) => matches!(outcomes[..], [Outcome::Failed(_)]),
    };
    assert!(told, "a transaction that is gone must not go on: {lost:?}");
    // An idle client holds nothing on the server, so it need not notice; one error is allowed
    // to a statement that met the broken connection.
    let first = idle.query("SELECT COUNT(*) FROM t").unwrap();
    if !matches!(first[..], [Outcome::Rows(_)]) {
        assert_eq!(idle.value("SELECT COUNT(*) FROM t"), "0");
    }
    let mut new = login(address, &app().schema("faults"));
    assert_eq!(new.value("SELECT COUNT(*) FROM t"), "0");
}

#[test]
fn a_server_that_is_away_is_waited_for_within_a_limit() {
    let mut real = or_return!(pooled(own_server));
    let bounds = "wait_ms_max = 2000\nserver_down_fail_ms = 600000";
    let pool = fresh_pool(&real, &format!("backends_max = 2\ngroups = 1\n{bounds}"));
    let mut client = login(&pool.address, &Account::new("app", "app"));
    assert_eq!(client.value("SELECT 1"), "1");
    real.stop();
    let mut failures = Vec::new();
    while failures.len() < 3 {
        match &client.query("SELECT 1").unwrap()[..] {
            [Outcome::Failed(failure)] => failures.push(failure.clone()),
            other => panic!("the server is away: {other:?}"),
        }
    }
    assert!(failures[1..].iter().all(|f| f.code == 9501), "{failures:?}");
    real.restart().unwrap();
    // The error is retryable: a client that tries again gets its answer.
    wait_while(|| matches!(client.query("SELECT 1").unwrap()[..], [Outcome::Failed(_)]));
    let lost = pool.wait_for("level=error event=server-lost ").unwrap();
    assert!(lost.contains("message=the server at 127.0.0.1:"), "{lost}");
    let back = pool.wait_for("level=info event=server-back ").unwrap();
    assert!(back.contains(" can be reached again, after "), "{back}");
    // One outage, whoever noticed it: one pair of lines.
    let said = pool.said();
    for event in ["event=server-lost ", "event=server-back "] {
        assert_eq!(said.matches(event).count(), 1, "{said}");
    }
}

/// A server that takes connections and says nothing is named in the error of who waits for one.
#[test]
fn a_server_that_does_not_answer_is_named_in_the_error() {
    let real = or_return!(pooled(own_server));
    let settings = "backends_max = 2\ngroups = 1\nwait_ms_max = 2000";
    let pool = fresh_pool(&real, settings);
    let mut holds = login(&pool.address, &Account::new("app", "app"));
    let mut waits = login(&pool.address, &Account::new("app", "app"));
    holds.script("BEGIN; SELECT 1");
    real.suspend();
    // Where there is a free connection still, the statement goes there and is never answered.
    send(&mut waits, "SELECT 2");
    let mut dials = login(&pool.address, &Account::new("app", "app"));
    let failure = dials.failure("SELECT 3");
    real.resume();
    assert_eq!(failure.code, 9501, "{failure:?}");
    let named = "; the server at 127.0.0.1:";
    let why = &failure.message;
    says(why, named);
    says(why, " has not answered a login for ");
}
