//! What the pool says of its clients: pinned or not, why, and by which statement.

use crate::world::{app, direct, login, server, start_pool};
use testkit::client::Client;
use testkit::onramp::Pool;

/// The line about a client, and the whole report.
fn line_about(pool: &Pool, client: &Client, with: &str) -> String {
    let id = client.talk().greeting.as_ref().unwrap().connection_id;
    pool.ask_for_report();
    let words = format!("client {id} account 'app' idle {with}");
    let from = client.local_address().unwrap();
    let part = format!("level=info event=client client={from} account=\"app\" message={words}");
    pool.wait_for(&part).unwrap()
}

#[test]
fn every_client_is_reported_with_its_pin() {
    let test = "every_client_is_reported_with_its_pin";
    let Some(real) = server(test) else { return };
    if direct() {
        return;
    }
    let pool = start_pool(real, "report.toml", "groups = 1\nbackends_max = 4");
    let clients: Vec<Client> = (0..3).map(|_| login(&pool.address, &app())).collect();
    let [plain, mut locks, mut opens] = clients.try_into().unwrap();
    locks.must("SELECT GET_LOCK('reported', 0)");
    opens.must("BEGIN");
    line_about(&pool, &plain, "on no thread, not pinned");
    let said = line_about(&pool, &locks, "on thread");
    assert!(said.contains("pinned (user_lock) for"), "{said}");
    assert!(
        said.contains("by: \"SELECT GET_LOCK('reported', 0)\""),
        "{said}"
    );
    line_about(&pool, &opens, "in a transaction on thread");
    pool.wait_for("3 clients, pinned now: {\"user_lock\": 1}")
        .unwrap();
}

#[test]
fn a_statement_that_was_never_sent_pins_nobody() {
    let test = "a_statement_that_was_never_sent_pins_nobody";
    let Some(real) = server(test) else { return };
    if direct() {
        return;
    }
    let extra = "groups = 1\nbackends_max = 1\nwait_ms_max = 50";
    let pool = start_pool(real, "unsent.toml", extra);
    let mut holds = login(&pool.address, &app());
    let mut waits = login(&pool.address, &app());
    holds.must("BEGIN");
    assert_eq!(waits.failure("SELECT GET_LOCK('never', 0)").code, 9501);
    line_about(&pool, &waits, "on no thread, not pinned");
    holds.must("COMMIT");
    assert_eq!(waits.value("SELECT IS_FREE_LOCK('never')"), "1");
    line_about(&pool, &waits, "on no thread, not pinned");
}
