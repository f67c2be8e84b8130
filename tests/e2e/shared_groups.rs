//! Groups help each other: one has the clients, the others have the backends.
//!
//! The kernel deals clients to groups by chance, and a client's id names its group; so each test
//! logs clients in until it has those that it needs.

use crate::world::*;

/// Groups, as many as backends: each has one by right.
const GROUPS: usize = 8;
/// Logins until chance must have filled every group.
const LOGINS_MAX: usize = 2000;

fn pool(real: &Real) -> Pool {
    let extra = format!("groups = {GROUPS}\nbackends_max = {GROUPS}");
    pool_from(real, &config(&real.address(), &extra))
}

/// Clients of each group, as many as wanted; more are sent away again.
fn clients(pool: &Pool, wanted: [usize; GROUPS]) -> [Vec<Client>; GROUPS] {
    let mut found: [Vec<Client>; GROUPS] = Default::default();
    for _ in 0..LOGINS_MAX {
        let client = login(&pool.address, &app());
        let greeting = client.talk().greeting.as_ref().unwrap();
        let group = greeting.connection_id as usize % GROUPS;
        if found[group].len() < wanted[group] {
            found[group].push(client);
        }
        if found.iter().zip(wanted).all(|(found, n)| found.len() == n) {
            return found;
        }
    }
    panic!("the kernel deals no clients to some group");
}

/// Words of the census when all of the pool's connections are in use, or none. Each group says its
/// numbers at the end of its turn, so those of a moment may be of connections that are gone.
const ALL_CHECKED_OUT: &str = "backends_dialling: 0, backends_idle: 0, backends_checked_out: 8,";

#[test]
fn one_group_borrows_all_backends_and_the_others_get_theirs_back() {
    let real = or_return!(pooled(own_server));
    let pool = pool(&real);
    let mut wanted = [1; GROUPS];
    wanted[3] = GROUPS;
    let mut found = clients(&pool, wanted);
    let mut borrowers = std::mem::take(&mut found[3]);
    let mut others: Vec<Client> = found.into_iter().flatten().collect();
    // Two of the others have used a backend, which lies idle with them.
    for other in &mut others[..2] {
        other.must("SELECT 1");
    }
    for borrower in &mut borrowers {
        borrower.must(HOLD);
        borrower.must("SELECT 1");
    }
    pool.wait_for_census(ALL_CHECKED_OUT).unwrap();
    let connected = "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS \
                     WHERE VARIABLE_NAME = 'Threads_connected'";
    // One is ours, and the pool watches the server by another.
    let connected: usize = real.admin().value(connected).parse().unwrap();
    assert!(connected <= GROUPS + 2, "{connected} connections");
    // A transaction is never taken away: the others wait.
    for other in &mut others {
        send(other, "SELECT 2");
    }
    pool.wait_for_census("waiting: 7,").unwrap();
    for borrower in &mut borrowers[1..] {
        assert_eq!(borrower.value("SELECT 3"), "3");
        borrower.must("COMMIT");
    }
    for other in &mut others {
        assert!(matches!(other.receive().unwrap()[..], [Outcome::Rows(_)]));
    }
    // Whoever had less than its share has one now, and the borrower its own.
    borrowers[0].must("COMMIT");
    pool.wait_for_census("backends_checked_out: 0,").unwrap();
}

#[test]
fn a_borrower_is_served_when_nobody_else_needs_what_it_gave_back() {
    let real = or_return!(pooled(own_server));
    let pool = pool(&real);
    let mut wanted = [0; GROUPS];
    (wanted[1], wanted[6]) = (GROUPS, GROUPS);
    let mut found = clients(&pool, wanted);
    let (mut first, mut second) = (std::mem::take(&mut found[1]), std::mem::take(&mut found[6]));
    for round in 0..3 {
        for client in &mut first {
            client.must(HOLD);
            client.must("SELECT 1");
        }
        for client in &mut second {
            send(client, HOLD);
        }
        pool.wait_for_census("waiting: 8,").unwrap();
        for client in &mut first {
            client.must("COMMIT");
        }
        // All of them at once, with what the first group does not use any more.
        for client in &mut second {
            let is_done = matches!(client.receive().unwrap()[..], [Outcome::Done(_)]);
            assert!(is_done, "{round}");
        }
        pool.wait_for_census(ALL_CHECKED_OUT).unwrap();
        for client in &mut second {
            client.must("COMMIT");
        }
    }
}
