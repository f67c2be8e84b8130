//! Accounts that the server limits to a few connections: whoever waits for longest gets the next
//! one, in whichever group and behind whichever capabilities another client has had it.

use crate::world::*;
use wire::capabilities::DEPRECATE_EOF;

/// A pool in front of `real`, whose account `user` may have so many connections there. Each test
/// has an account of its own: they run side by side.
fn pool_of(real: &Real, user: &str, limit: usize, lines: &str) -> Pool {
    real.execute(&[
        &format!("CREATE USER IF NOT EXISTS {user}@'%' IDENTIFIED BY 'few'"),
        &format!("ALTER USER {user}@'%' WITH MAX_USER_CONNECTIONS {limit}"),
    ]);
    let users = format!("[[user]]\nname = \"{user}\"\npassword = \"few\"\n");
    let text = config(&real.address(), &format!("backends_max = 12\n{lines}")) + &users;
    pool_from(real, &text)
}

#[test]
fn clients_of_all_groups_share_the_connections_of_their_account() {
    for real in pooled_servers() {
        for limit in [1, 3] {
            let pool = pool_of(real, "few", limit, "groups = 2\nwait_ms_max = 60000");
            let work = |_| {
                let mut client = login(&pool.address, &Account::new("few", "few"));
                for _ in 0..4 {
                    client.must("SELECT SLEEP(0.05)");
                }
            };
            std::thread::scope(|scope| {
                let clients: Vec<_> = (0..10).map(|n| scope.spawn(move || work(n))).collect();
                for client in clients {
                    client.join().unwrap();
                }
            });
        }
    }
}

#[test]
fn clients_with_other_capabilities_share_the_only_connection_of_their_account() {
    for real in pooled_servers() {
        let pool = pool_of(real, "fewer", 1, "groups = 1\nwait_ms_max = 60000");
        let account = Account::new("fewer", "few");
        let other = account.clone().without(DEPRECATE_EOF);
        let mut clients = [account, other].map(|account| login(&pool.address, &account));
        for _ in 0..3 {
            for client in &mut clients {
                assert_eq!(client.value("SELECT 7"), "7");
            }
        }
    }
}

#[test]
fn a_refusal_that_lasts_is_told_in_the_servers_words() {
    for real in pooled_servers() {
        let pool = pool_of(real, "fewest", 1, "groups = 1\nwait_ms_max = 2000");
        let account = Account::new("fewest", "few");
        let mut holder = login(&pool.address, &account);
        holder.must(HOLD);
        let mut waiter: Client = login(&pool.address, &account);
        let failure = waiter.failure("SELECT 1");
        assert_eq!(failure.code, 9501, "{failure}");
        let said = "error 1226: User 'fewest' has exceeded the 'max_user_connections' resource";
        assert!(failure.message.contains(said), "{failure}");
        assert_eq!(login(&pool.address, &app()).value("SELECT 7"), "7");
        holder.must("COMMIT");
        assert_eq!(waiter.value("SELECT 7"), "7");
    }
}
