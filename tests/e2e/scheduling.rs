//! Scheduling: priority, limits of users, of time and of memory, the reserve, idle backends.
//!
//! Each test makes everybody wait for one lock or one backend, so that what happens next is the
//! pool's choice, and then looks at the order or the error. Nothing is timed; where the pool must
//! be seen to have got somewhere, its census says so.

use crate::metrics::{figures, place_of};
use crate::world::*;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use testkit::talk::Happened;

/// The shared server with a fresh schema named like the test.
fn stage(test: &str) -> Option<&'static Real> {
    let real = server(test)?;
    crate::world::fresh_schema(real, test);
    let mut admin = real.admin();
    for sql in [
        "CREATE TABLE log (id INT AUTO_INCREMENT PRIMARY KEY, who VARCHAR(20))",
        "CREATE TABLE pair (id INT PRIMARY KEY, n INT)",
        "INSERT INTO pair VALUES (1, 0), (2, 0)",
    ] {
        admin.must(&format!("USE {test}"));
        admin.must(sql);
    }
    Some(real)
}

/// A pool in front of `real`: these settings, and these lines for its only user.
fn pool(real: &Real, settings: &str, user: &str) -> Pool {
    let text = format!(
        "{settings}\n[backend]\naddress = \"{}\"\n\
         [[user]]\nname = \"app\"\npassword = \"app\"\n{user}\n",
        real.address()
    );
    pool_from(real, &text)
}

fn client(pool: &Pool, test: &str) -> Client {
    login(&pool.address, &Account::new("app", "app").schema(test))
}

/// Sends a statement and does not wait for its reply.
fn failure_of(outcomes: &[Outcome]) -> (u16, String) {
    match outcomes {
        [Outcome::Failed(failure)] => (failure.code, failure.message.clone()),
        other => panic!("expected one error, got {other:?}"),
    }
}

#[test]
fn high_priority_goes_first_and_tickets_bound_it() {
    let test = "high_priority_goes_first_and_tickets_bound_it";
    let Some(real) = stage(test) else { return };
    let settings = "backends_max = 1\ngroups = 1\nprio_kickup_ms = 60000";
    let pool = pool(real, settings, "high_prio_tickets = 1");
    let mut holder = client(&pool, test);
    let mut low = client(&pool, test);
    let mut high = client(&pool, test);
    high.must("SET onramp_priority = 'high'");
    for round in 0..2 {
        // Everybody waits for the only backend; then they go as priority says.
        holder.must(HOLD);
        send(
            &mut low,
            &format!("INSERT INTO log (who) VALUES ('low{round}')"),
        );
        pool.wait_for_census("waiting: 1,").unwrap();
        send(
            &mut high,
            &format!("INSERT INTO log (who) VALUES ('high{round}')"),
        );
        pool.wait_for_census("waiting: 2,").unwrap();
        holder.must("COMMIT");
        low.receive().unwrap();
        high.receive().unwrap();
    }
    let rows = holder.rows("SELECT who FROM log ORDER BY id").texts();
    let order: Vec<String> = rows.into_iter().flatten().collect();
    // The second time its only ticket is used up, so it goes by the low queue.
    assert_eq!(order, ["high0", "low0", "low1", "high1"]);
    let wrong = failure_of(&high.query("SET onramp_priority = 'urgent'").unwrap());
    assert_eq!(wrong.0, 1231, "{}", wrong.1);
}

#[test]
fn who_waited_for_long_enough_is_kicked_up() {
    let test = "who_waited_for_long_enough_is_kicked_up";
    let Some(real) = stage(test) else { return };
    let settings = "backends_max = 1\ngroups = 1\nprio_kickup_ms = 1";
    let pool = pool(real, settings, "");
    let (mut holder, mut low) = (client(&pool, test), client(&pool, test));
    let mut high = client(&pool, test);
    high.must("SET SESSION onramp_priority := 'HIGH'");
    holder.must(HOLD);
    send(&mut low, "INSERT INTO log (who) VALUES ('low')");
    // The census is taken twice a second, so the low one has waited for more than its millisecond.
    pool.wait_for_census("waiting: 1,").unwrap();
    holder.must("SELECT SLEEP(0.01)");
    send(&mut high, "INSERT INTO log (who) VALUES ('high')");
    pool.wait_for_census("waiting: 2,").unwrap();
    holder.must("COMMIT");
    low.receive().unwrap();
    high.receive().unwrap();
    let rows = holder.rows("SELECT who FROM log ORDER BY id").texts();
    assert_eq!(
        rows.into_iter().flatten().collect::<Vec<_>>(),
        ["low", "high"]
    );
}

/// The shape of MDEV-38219: one transaction holds a row, and everybody else wants it.
#[test]
fn who_holds_a_lock_gets_on_while_all_others_wait_for_it() {
    let test = "who_holds_a_lock_gets_on_while_all_others_wait_for_it";
    let Some(real) = stage(test) else { return };
    for mode in ["transactions", "none"] {
        let settings = format!(
            "backends_max = 8\ngroups = 1\noversubscribe = 0\nstall_ms_max = 5\n\
             high_prio_mode = \"{mode}\""
        );
        let pool = pool(real, &settings, "");
        let mut holder = client(&pool, test);
        let mut admin = client(&pool, test);
        admin.must("SET onramp_priority = 'high'");
        holder.must(HOLD);
        holder.must("UPDATE pair SET n = n + 1 WHERE id = 1");
        let mut others: Vec<Client> = (0..8).map(|_| client(&pool, test)).collect();
        for other in &mut others {
            send(other, "UPDATE pair SET n = n + 1 WHERE id = 1");
        }
        // Six of the eight backends wait for the row, one is reserved, one holds the row.
        pool.wait_for_census("waiting: 2,").unwrap();
        assert_eq!(admin.value("SELECT n FROM pair WHERE id = 2"), "0");
        holder.script("UPDATE pair SET n = n + 1 WHERE id = 1; COMMIT");
        for other in &mut others {
            assert!(matches!(other.receive().unwrap()[..], [Outcome::Done(_)]));
        }
        assert_eq!(holder.value("SELECT n FROM pair WHERE id = 1"), "10");
        real.admin().must(&format!("UPDATE {test}.pair SET n = 0"));
    }
}

/// The packet that says "proven" stands in front of the error, and counts in its number.
#[test]
fn a_client_too_many_hears_so_behind_the_proof_of_caching_sha2_password() {
    let real = or_return!(stage("too_many_proven"));
    let settings = "backends_max = 1\ngroups = 1";
    let user = "clients_max = 1\nauth = \"caching_sha2_password\"";
    let pool = pool(real, settings, user);
    let _first = client(&pool, "too_many_proven");
    let second = Client::connect(&pool.address, &Account::new("app", "app"));
    let error = second.expect_err("one is the limit").to_string();
    assert!(error.contains("1203"), "{error}");
}

#[test]
fn a_user_has_no_more_clients_and_waiting_statements_than_it_may() {
    let real = or_return!(stage("too_many_of_a_user"));
    let settings = "backends_max = 1\ngroups = 1";
    let pool = pool(real, settings, "clients_max = 3\nwaiting_max = 1");
    let mut clients: Vec<Client> = (0..3)
        .map(|_| client(&pool, "too_many_of_a_user"))
        .collect();
    let fourth = Client::connect(&pool.address, &Account::new("app", "app"));
    let error = fourth.expect_err("three are the limit").to_string();
    says(&error, "1203");
    says(&error, "clients_max");
    clients[0].must(HOLD);
    send(&mut clients[1], "INSERT INTO log (who) VALUES ('waits')");
    pool.wait_for_census("waiting: 1,").unwrap();
    let (code, words) = failure_of(&clients[2].query("SELECT 1").unwrap());
    assert_eq!(code, 9503, "{words}");
    says(&words, "'app'");
    says(&words, "low queue");
    clients[0].must("COMMIT");
    clients[1].receive().unwrap();
    assert_eq!(clients[2].value("SELECT COUNT(*) FROM log"), "1");
    // One that leaves makes room for another.
    drop(clients);
    pool.wait_for_census("clients: 0,").unwrap();
    client(&pool, "too_many_of_a_user").must("SELECT 1");
}

#[test]
fn full_queues_refuse_early_with_a_number_for_each_bound() {
    let test = "full_queues_refuse_early_with_a_number_for_each_bound";
    let Some(real) = stage(test) else { return };
    let settings = "backends_max = 1\ngroups = 1\nwaiting_max = 2\nwaiting_bytes_max = 1048576";
    let pool = pool(real, settings, "");
    let mut clients: Vec<Client> = (0..4).map(|_| client(&pool, test)).collect();
    clients[0].must(HOLD);
    let filler = "x".repeat(700_000);
    let long = format!("INSERT INTO log (who) VALUES ('long') /* {filler} */");
    send(&mut clients[1], &long);
    pool.wait_for_census("waiting: 1,").unwrap();
    let (code, words) = failure_of(&clients[2].query(&long).unwrap());
    assert_eq!(code, 9504, "{words}");
    send(&mut clients[2], "INSERT INTO log (who) VALUES ('short')");
    pool.wait_for_census("waiting: 2,").unwrap();
    let (code, words) = failure_of(&clients[3].query("SELECT 1").unwrap());
    assert_eq!(code, 9502, "{words}");
    says(&words, "number 3");
    says(&words, "low queue");
    clients[0].must("COMMIT");
    for client in &mut clients[1..3] {
        assert!(matches!(client.receive().unwrap()[..], [Outcome::Done(_)]));
    }
    pool.wait_for_census("queue-full: 1").unwrap();
}

#[test]
fn statements_and_transactions_end_at_their_users_limits() {
    let test = "statements_and_transactions_end_at_their_users_limits";
    let Some(real) = stage(test) else { return };
    let settings = "backends_max = 4\ngroups = 1";
    let user = "statement_ms_max = 3000\ntransaction_ms_max = 2000";
    let pool = pool(real, settings, user);
    let mut slow = client(&pool, test);
    let (code, words) = failure_of(&slow.query("SELECT SLEEP(60)").unwrap());
    assert_eq!(code, 3024, "{words}");
    // The server would run it to its end.
    let running = "SELECT COUNT(*) FROM information_schema.processlist \
         WHERE info LIKE 'SELECT SLEEP(60)'";
    wait_while(|| real.admin().value(running) != "0");
    let mut forgetful = client(&pool, test);
    forgetful.must(HOLD);
    forgetful.must("UPDATE pair SET n = 7 WHERE id = 1");
    // Waits for the row until the transaction is rolled back, which its time limit does.
    let mut next = real.admin();
    next.must(&format!("UPDATE {test}.pair SET n = n + 1 WHERE id = 1"));
    let asked = format!("SELECT n FROM {test}.pair WHERE id = 1");
    assert_eq!(next.value(&asked), "1");
    match forgetful.wait() {
        Ok(Happened::Refused(failure)) => assert_eq!(failure.code, 9506),
        other => panic!("{other:?}"),
    }
    for reason in ["statement-time", "transaction-time"] {
        let line = pool.wait_for(&format!("reason={reason} ")).unwrap();
        says(&line, "event=time-limit");
        says(&line, "account=\"app\"");
    }
}

#[test]
fn nobody_is_let_in_while_memory_is_short() {
    let test = "nobody_is_let_in_while_memory_is_short";
    let Some(real) = stage(test) else { return };
    let pool = pool(real, "memory_bytes_max = 1048576", "");
    let refused = Client::connect(&pool.address, &Account::new("app", "app"));
    let error = refused.expect_err("a mebibyte is too little").to_string();
    says(&error, "1041");
    says(&error, "1048576");
}

#[test]
fn idle_backends_are_closed_down_to_the_minimum() {
    let real = or_return!(pooled(own_server));
    let settings = "backends_max = 4\ngroups = 1\nbackends_min = 1\nbackend_idle_ms_max = 1\n\
                    backends_reserved = 0";
    let pool = pool(&real, settings, "");
    let mut clients: Vec<Client> = (0..4)
        .map(|_| login(&pool.address, &Account::new("app", "app")))
        .collect();
    clients
        .iter_mut()
        .for_each(|client| drop(client.must(HOLD)));
    pool.wait_for_census("backends_checked_out: 4,").unwrap();
    clients
        .iter_mut()
        .for_each(|client| drop(client.must("COMMIT")));
    pool.wait_for_census("backends_idle: 1, backends_checked_out: 0")
        .unwrap();
    clients
        .iter_mut()
        .for_each(|client| drop(client.must("SELECT 1")));
}

/// The limit moves while statements wait for it, and everybody is served.
#[test]
fn the_pool_looks_for_the_number_of_statements_at_once() {
    let test = "the_pool_looks_for_the_number_of_statements_at_once";
    let Some(real) = stage(test) else { return };
    // Statements that are pipelined on others do not wait.
    let settings = "backends_max = 16\ngroups = 1\npipeline_max = 1\noversubscribe = \"auto\"\n\
        http = \"127.0.0.1:0\"";
    let pool = pool(real, settings, "");
    let place = place_of(&pool);
    let begun = figures(&place)["onramp_pool_running_max"];
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _end = Stop(&done);
        for _ in 0..24 {
            scope.spawn(|| {
                let mut client = client(&pool, test);
                while !done.load(Relaxed) {
                    assert_eq!(client.value("SELECT SLEEP(0.001)"), "0");
                }
            });
        }
        let moved = || match figures(&place)["onramp_pool_running_max"] {
            now if now == begun => Err(format!("it stays {now}")),
            now => Ok(now),
        };
        assert!((1.0..=16.0).contains(&until(moved)));
    });
}
