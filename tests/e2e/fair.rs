//! Accounts beside each other: what clients of one keep, and what the others get all the same.

use crate::world::*;
use testkit::talk::Happened;

fn other() -> Account {
    Account::new("other", "other's")
}

/// The servers, with the account of [`other`].
fn servers() -> impl Iterator<Item = &'static Real> {
    let make = ["CREATE USER IF NOT EXISTS 'other'@'%' IDENTIFIED BY 'other''s'"];
    pooled_servers().inspect(move |real| real.execute(&make))
}

/// Clients of one account that keep backends in different ways, more than there are; the last ones
/// wait for one.
fn keepers(pool: &Pool, name: &str, count: usize) -> Vec<Client> {
    let keeps = [HOLD, "SELECT GET_LOCK('NAME', 0)", "SELECT SLEEP(600)"];
    let load = "LOAD DATA LOCAL INFILE 'any' INTO TABLE shop.fair_load";
    let open = |number: usize| {
        let mut client = login(&pool.address, &app().with(cap::LOCAL_FILES));
        if number == 1 {
            let two = client.prepare("SELECT 1 AS a UNION ALL SELECT 2");
            client.execute(two.id, &[], true).unwrap();
            return client;
        }
        if number == 3 {
            send(&mut client, load);
            // The server wants the file, and gets none of it.
            client.wait().unwrap();
            return client;
        }
        let text = keeps[number % keeps.len()].replace("NAME", &format!("{name}_{number}"));
        send(&mut client, &text);
        client
    };
    (0..count).map(open).collect()
}

#[test]
fn clients_that_keep_backends_leave_the_reserve_to_other_accounts() {
    for real in servers() {
        let settings = "groups = 1\nbackends_max = 8\nwait_ms_max = 60000\nstall_ms_max = 10";
        let pool = fresh_pool(real, settings);
        real.execute(&["CREATE TABLE IF NOT EXISTS shop.fair_load (v INT)"]);
        let keepers = keepers(&pool, "fair", 9);
        pool.wait_for_census(" waiting: 2,").unwrap();
        let mut quick = login(&pool.address, &other());
        for number in 0..20 {
            let asked = format!("SELECT {number} + 1 AS n_{number}");
            assert_eq!(quick.value(&asked), (number + 1).to_string());
            quick.script("BEGIN; DO 1; COMMIT");
        }
        drop(keepers);
    }
}

/// More keepers than there are backends, dealt out to two groups by chance: in each of them clients
/// of another account get on.
#[test]
fn clients_that_keep_backends_leave_a_reserve_in_every_group() {
    for real in servers() {
        let settings = "groups = 2\nbackends_max = 16\nwait_ms_max = 60000\nstall_ms_max = 10";
        let pool = fresh_pool(real, settings);
        real.execute(&["CREATE TABLE IF NOT EXISTS shop.fair_load (v INT)"]);
        let keepers = keepers(&pool, "fair_groups", 40);
        // Some of them are in one group, and some in the other; what both have is in use.
        pool.wait_for_census(" waiting: 2").unwrap();
        let mut others: Vec<Client> = (0..6).map(|_| login(&pool.address, &other())).collect();
        for round in 0..5 {
            for (number, client) in others.iter_mut().enumerate() {
                let text = format!("SELECT {round} + 1 AS n_{number}_{round}");
                send(client, &text);
            }
            for client in &mut others {
                let rows = client.receive().unwrap().pop().unwrap().rows().rows.len();
                assert_eq!(rows, 1);
            }
            for client in &mut others {
                client.script("BEGIN; DO 1; COMMIT");
            }
        }
        drop(keepers);
    }
}

/// One account runs long statements, more than there are backends; another gets those that become
/// free until it has half of them.
#[test]
fn backends_that_become_free_go_to_the_account_that_has_fewer() {
    for real in servers() {
        // Those that are pipelined wait for no backend.
        let settings = "groups = 1\nbackends_max = 4\noversubscribe = 1000\npipeline_max = 1";
        let pool = fresh_pool(real, settings);
        let mut many: Vec<Client> = (0..12).map(|_| login(&pool.address, &app())).collect();
        for client in &mut many {
            let text = b"SELECT SLEEP(3), 'many'";
            client.send(&[(Command::Query, text)]).unwrap();
        }
        pool.wait_for_census(" waiting: 8,").unwrap();
        let mut few: Vec<Client> = (0..2).map(|_| login(&pool.address, &other())).collect();
        for client in &mut few {
            begin(client, "SELECT SLEEP(0.1), 'few'");
        }
        let waits = many.iter().any(|client| !client.has_answer().unwrap());
        assert!(waits, "they were last");
        for client in few.iter_mut().chain(&mut many) {
            assert_eq!(
                client.receive().unwrap().pop().unwrap().rows().rows.len(),
                1
            );
        }
    }
}

/// The limit is exact, also below the number of groups: what one group has, another gets.
#[test]
fn an_account_has_no_more_backends_than_its_limit() {
    for real in servers() {
        let settings = "groups = 2\nbackends_max = 8\nwait_ms_max = 5000";
        let text = config(&real.address(), settings);
        let app = "name = \"app\"\npassword = \"app\"\n";
        let limit = format!("{app}account_backends_max = 1\n");
        let pool = pool_from(real, &text.replacen(app, &limit, 1));
        let mut clients: Vec<Client> = (0..8).map(|_| login(&pool.address, &self::app())).collect();
        for client in &mut clients {
            assert_eq!(client.value("SELECT 1"), "1");
        }
        let (first, others) = clients.split_first_mut().unwrap();
        first.must(HOLD);
        for client in &mut *others {
            send(client, "SELECT 1");
        }
        for client in others {
            let Some(Outcome::Failed(failure)) = client.receive().unwrap().pop() else {
                panic!("it has a backend more than its account may have");
            };
            assert_eq!(failure.code, 9501, "{failure:?}");
            let words = "its account may have no more (account_backends_max)";
            assert!(failure.message.contains(words), "{failure:?}");
        }
        assert_eq!(login(&pool.address, &other()).value("SELECT 1"), "1");
    }
}

/// Runs a text as soon as another client's backend is free again: behind the end of what it is kept
/// for the pool may still ask there.
fn runs_at_last(client: &mut Client, text: &str) {
    wait_while(|| matches!(client.query(text).unwrap()[..], [Outcome::Failed(_)]));
}

/// Statements that would keep one backend more than the account may keep are refused, whatever they
/// keep it for, and run once another is free; what keeps none runs on.
#[test]
fn an_account_keeps_no_more_backends_than_its_limit() {
    for real in servers() {
        let settings = "groups = 2\nbackends_max = 8\naccount_kept_backends_max = 1";
        let pool = fresh_pool(real, settings);
        let account = app().schema("shop").with(cap::MULTI_STATEMENTS);
        let log_in = || login(&pool.address, &account);
        let mut keeper = log_in();
        // What keeps a backend, and what lets it go.
        let kinds = [
            (&["BEGIN", "SELECT 1"][..], "COMMIT"),
            (&["START TRANSACTION WITH CONSISTENT SNAPSHOT"], "ROLLBACK"),
            (
                &["SET autocommit = 0", "SELECT 1 FROM DUAL"],
                "SET autocommit = 1",
            ),
            (
                &["SELECT GET_LOCK('fair_kept', 0)"],
                "DO RELEASE_ALL_LOCKS()",
            ),
            (
                &["CREATE TEMPORARY TABLE fair_t (i INT)"],
                "DROP TEMPORARY TABLE fair_t",
            ),
            (&["DO 1; BEGIN; DO 2"], "COMMIT"),
        ];
        for (texts, end) in kinds {
            runs_at_last(&mut keeper, "SELECT GET_LOCK('fair_keeper', 0)");
            let mut other = log_in();
            let (last, first) = texts.split_last().unwrap();
            first.iter().for_each(|text| drop(other.must(text)));
            let failure = match other.query(last).unwrap().pop().unwrap() {
                Outcome::Failed(failure) => failure,
                // That it keeps one is known only now.
                _ => match other.wait() {
                    Ok(Happened::Refused(failure)) => failure,
                    happened => panic!("{last}: {happened:?}"),
                },
            };
            assert_eq!(failure.code, 9511, "{last}: {failure:?}");
            assert_eq!(login(&pool.address, &self::other()).value("SELECT 1"), "1");
            keeper.must("DO RELEASE_LOCK('fair_keeper')");
            if failure.message.contains("nothing was executed") {
                runs_at_last(&mut other, last);
                other.must(end);
            }
        }
    }
}

/// A client that keeps a backend idle for too long is told and closed; one that keeps none, or
/// works, is not.
#[test]
fn a_backend_that_is_kept_idle_for_too_long_is_taken_back() {
    for real in servers() {
        let settings = "groups = 1\nbackends_max = 4\nkept_idle_s_max = 2\nwait_ms_max = 30000";
        let pool = fresh_pool(real, settings);
        let open = |_| login(&pool.address, &app());
        let mut keepers: Vec<Client> = (0..3).map(open).collect();
        keepers[0].must(HOLD);
        keepers[1].must("SELECT GET_LOCK('fair_idle', 0)");
        keepers[2].must("CREATE TEMPORARY TABLE shop.fair_idle (i INT)");
        let mut idle = open(0);
        idle.must("SELECT 1");
        let mut works = open(0);
        works.must(HOLD);
        assert_eq!(works.value("SELECT SLEEP(5)"), "0");
        for client in &mut keepers {
            match client.wait() {
                Ok(Happened::Refused(failure)) => assert_eq!(failure.code, 9508),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(idle.value("SELECT 2"), "2");
    }
}

/// The server runs the first of empty texts one behind the other, however many are sent at once.
#[test]
fn the_server_sees_one_of_many_empty_texts() {
    for real in servers() {
        let pool = fresh_pool(real, "groups = 1\nbackends_max = 1");
        let mut client = login(&pool.address, &app());
        client.send(&vec![(Command::Query, &b""[..]); 100]).unwrap();
        for _ in 0..100 {
            assert_eq!(client.receive().unwrap()[0].failure().code, 1065);
        }
        pool.wait_for_census(" statements: 1,").unwrap();
        assert_eq!(client.value("SELECT ROW_COUNT()"), "-1");
    }
}
