//! COM_RESET_CONNECTION and COM_CHANGE_USER.

use crate::restored_sessions::both;
use crate::world::*;

/// Checks that a server has given everything back when it says the next word, be that an OK or an
/// error. A pool that only closed its backend would speak before the server has noticed.
fn what_it_held_is_free(real: &Real, test: &str, reset: impl Fn(&mut Client)) {
    fresh_schema(real, test);
    let extra = "groups = 1\nbackends_max = 2";
    let pool = fresh_pool(real, extra);
    let account = app().schema(test);
    let mut holds = login(&pool.address, &account);
    holds.script("CREATE TABLE t (id INT PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 0)");
    let mut admin = real.admin();
    let tables = format!("ALTER TABLE {test}.u COMMENT 'free'");
    admin.must(&format!("CREATE TABLE {test}.u (v INT)"));
    admin.must("SET lock_wait_timeout = 0");
    if real.flavour() == Flavour::MySql {
        // MySQL knows no waiting for less than a second.
        admin.must("SET lock_wait_timeout = 1");
    }
    for _ in 0..20 {
        assert_eq!(holds.value(&format!("SELECT GET_LOCK('{test}', 0)")), "1");
        holds.must("LOCK TABLES u READ");
        reset(&mut holds);
        admin.must(&tables);
        let free = format!("SELECT IS_FREE_LOCK('{test}')");
        assert_eq!(admin.value(&free), "1");
        holds.must(HOLD);
        holds.must("UPDATE t SET v = v + 1 WHERE id = 1");
        reset(&mut holds);
        let sql = format!("SELECT v FROM {test}.t WHERE id = 1 FOR UPDATE NOWAIT");
        admin.must(&sql);
        assert_eq!(holds.value("SELECT @@autocommit"), "1");
    }
    assert_eq!(holds.value("SELECT v FROM t"), "0");
}

fn resets(client: &mut Client) {
    let reply = client.run(Command::ResetConnection, b"").unwrap();
    assert!(format!("{reply:?}").starts_with("[Done"), "{reply:?}");
}

fn changes(client: &mut Client, schema: &str) {
    let reply = client.change_user(&app().schema(schema)).unwrap();
    assert!(format!("{reply:?}").starts_with("[Done"), "{reply:?}");
}

#[test]
fn what_a_reset_gives_back_is_free_when_it_is_answered() {
    both("reset_gives_back", |real, test| {
        what_it_held_is_free(real, test, resets);
    });
}

#[test]
fn what_a_change_of_user_gives_back_is_free_when_it_is_answered() {
    both("change_gives_back", |real, test| {
        what_it_held_is_free(real, test, |client| changes(client, test));
    });
}

/// MariaDB lets a client wait for a second before it says that a change of user has failed, which
/// makes it slow to guess passwords. So does the pool.
#[test]
fn guessing_at_a_change_of_user_is_slow() {
    let (_, way) = or_return!(shared(1));
    let mut guesses = login(&way, &app());
    let begun = Instant::now();
    let refused = guesses.change_user(&Account::new("app", "wrong"));
    assert!(format!("{refused:?}").contains("1045"), "{refused:?}");
    let is_slow = begun.elapsed() >= Duration::from_millis(900);
    assert!(is_slow, "a brake of a second");
    assert_eq!(guesses.value("SELECT 1"), "1");
}
