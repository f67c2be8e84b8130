//! The pool's report of its clients: pinned or not, why, and by which statement.

use crate::world::*;

/// The line about a client that is idle.
fn line_about(pool: &Pool, client: &Client, with: &str) -> String {
    let id = client.talk().greeting.as_ref().unwrap().connection_id;
    let line = pool.report_of(id).unwrap();
    let words = format!("client {id} account 'app' idle {with}");
    let from = client.local_address().unwrap();
    let part = format!("level=info event=client client={from} account=\"app\" message={words}");
    assert!(line.contains(&part), "expected {part}, got {line}");
    line
}

#[test]
fn every_client_is_reported_with_its_pin() {
    let (_, pool) = or_return!(shared_pool("groups = 1\nbackends_max = 4"));
    let clients: Vec<Client> = (0..3).map(|_| login(&pool.address, &app())).collect();
    let [plain, mut locks, mut opens] = clients.try_into().unwrap();
    locks.must("SELECT GET_LOCK('reported', 0)");
    opens.must(HOLD);
    line_about(&pool, &plain, "on no thread, not pinned");
    let said = line_about(&pool, &locks, "on thread");
    assert!(said.contains("pinned (user_lock) for"), "{said}");
    assert!(said.contains("by: 'SELECT GET_LOCK(...'"), "{said}");
    line_about(&pool, &opens, "in a transaction on thread");
    pool.wait_for("3 clients, pinned now: {user_lock: 1}")
        .unwrap();
}

#[test]
fn a_statement_that_was_never_sent_pins_nobody() {
    let Some(real) = pooled(server) else { return };
    // The one who holds the backend may have to wait for it to be dialled.
    let extra = "groups = 1\nbackends_max = 1\nwait_ms_max = 2000";
    let pool = fresh_pool(real, extra);
    let mut holds = login(&pool.address, &app());
    let mut waits = login(&pool.address, &app());
    holds.must(HOLD);
    assert_eq!(waits.failure("SELECT GET_LOCK('never', 0)").code, 9501);
    line_about(&pool, &waits, "on no thread, not pinned");
    holds.must("COMMIT");
    assert_eq!(waits.value("SELECT IS_FREE_LOCK('never')"), "1");
    line_about(&pool, &waits, "on no thread, not pinned");
}

/// A password typed in SQL reaches neither the log nor the report nor the census: not from what
/// pins, fails, is restored elsewhere, is refused, is defined or is lost with its backend.
#[test]
fn a_password_in_a_statement_is_never_logged() {
    for real in pooled_servers() {
        fresh_schema(real, "unlogged");
        let extra = "groups = 1\nbackends_max = 2\nbackends_min = 0\nbackends_reserved = 0\n\
            wait_ms_max = 2000";
        let pool = fresh_pool(real, extra);
        let new = || login(&pool.address, &app().schema("unlogged"));
        let mut says = new();
        // Its session is brought to another backend.
        says.must("SET @geheim_key = 'geheim', lock_wait_timeout = 77");
        let (mut one, mut two) = (new(), new());
        one.must(HOLD);
        assert_eq!(says.value("SELECT @geheim_key"), "geheim");
        two.must(HOLD);
        one.must("COMMIT");
        assert_eq!(says.value("SELECT @geheim_key"), "geheim");
        // It is refused, by the server and by the pool.
        for denied in [
            "CREATE USER app@'%' IDENTIFIED BY 'geheim'",
            "SELECT 'geheim' FROM nowhere",
            "SELECT 'geheim",
            "SET sql_mode = 'geheim'",
            "SET time_zone = 'geheim'",
        ] {
            says.failure(denied);
        }
        one.must(HOLD);
        assert_eq!(says.failure("SELECT 'geheim'").code, 9501);
        one.must("COMMIT");
        two.must("COMMIT");
        // It is in code.
        says.must("CREATE TABLE t (v TEXT)");
        says.must("CREATE TRIGGER b BEFORE INSERT ON t FOR EACH ROW SET @typed = 'geheim'");
        says.must("CREATE PROCEDURE p() SELECT SLEEP(0), 'geheim', GET_LOCK('geheim', 0)");
        says.script("INSERT INTO t VALUES ('geheim'); PREPARE s FROM 'SELECT ''geheim'' '");
        says.script("EXECUTE s; CALL p()");
        // It pins.
        for pins in [
            "SELECT GET_LOCK('geheim too', 0)",
            "CREATE TEMPORARY TABLE hidden (v TEXT, w CHAR(9) DEFAULT 'geheim')",
        ] {
            let mut pinned = new();
            pinned.must(pins);
            let words = &pins[..pins.find(['\'', '9']).unwrap()];
            let line = line_about(&pool, &pinned, "on thread");
            assert!(line.contains(&format!("by: '{words}...'")), "{line}");
            // It is lost with its backend.
            let thread = line.split("on thread ").nth(1).unwrap();
            let thread = thread.split([',', ' ']).next().unwrap();
            real.execute(&[&format!("KILL {thread}")]);
            pool.wait_for(&format!("thread {thread} of the server"))
                .unwrap();
        }
        pool.ask_for_report();
        pool.wait_for_census("statements").unwrap();
        drop(says);
        let said = pool.said();
        // Names are no secret; the variable's is none of the log all the same.
        assert!(!said.contains("geheim"), "{said}");
    }
}
