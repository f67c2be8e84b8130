//! Several servers: a writer and its replica, under a bank whose ledger is checked.

use crate::world::{HOLD, binary, config_file, console_of, found, login, pooled, says};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Instant;
use testkit::client::Client;
use testkit::onramp::Pool;
use testkit::real::{Flavour, Real};
use testkit::reply::{Failure, Outcome};
use testkit::talk::Account;

const CLIENTS: usize = 16;
const ACCOUNTS: usize = 50;

/// A writer with a replica that has everything that was acknowledged.
struct Pair {
    one: Real,
    two: Real,
}

impl Pair {
    fn start(test: &str, is_mysql: bool) -> Option<Pair> {
        let common = ["--log-bin=log", "--log-slave-updates=ON"];
        let (mariadb, mysql): ([&[&str]; 2], [&[&str]; 2]) = (
            [
                &[
                    "--server-id=1",
                    "--rpl-semi-sync-master-enabled=1",
                    "--rpl-semi-sync-master-timeout=60000",
                    "--rpl-semi-sync-master-wait-point=AFTER_SYNC",
                ],
                &[
                    "--server-id=2",
                    "--read-only=1",
                    "--rpl-semi-sync-slave-enabled=1",
                ],
            ],
            [
                &[
                    "--server-id=1",
                    "--gtid-mode=ON",
                    "--enforce-gtid-consistency=ON",
                    "--plugin-load-add=semisync_source.so",
                    "--rpl-semi-sync-source-enabled=1",
                    "--rpl-semi-sync-source-timeout=60000",
                ],
                &[
                    "--server-id=2",
                    "--gtid-mode=ON",
                    "--enforce-gtid-consistency=ON",
                    "--super-read-only=1",
                    "--plugin-load-add=semisync_replica.so",
                    "--rpl-semi-sync-replica-enabled=1",
                ],
            ],
        );
        let start = |own: &[&str]| {
            let all = [&common[..], own].concat();
            match is_mysql {
                true => found(
                    Real::start_mysql(&[&["--log-replica-updates=ON"], &all[..1], own].concat()),
                    test,
                ),
                false => found(Real::start(&all), test),
            }
        };
        let [first, second] = if is_mysql { mysql } else { mariadb };
        let pair = Pair {
            one: start(first)?,
            two: start(second)?,
        };
        pair.follow();
        pair.one.create_user("app", "app");
        pair.one.execute(&[
            "CREATE DATABASE bank",
            "CREATE TABLE bank.ledger (tag VARCHAR(40)) ENGINE=InnoDB",
            "CREATE TABLE bank.account (id INT PRIMARY KEY, v INT) ENGINE=InnoDB",
            "CREATE USER bank@'%' IDENTIFIED BY 'bank'",
            "GRANT ALL ON bank.* TO bank@'%'",
        ]);
        let rows: Vec<String> = (0..ACCOUNTS).map(|id| format!("({id},100)")).collect();
        let fill = format!("INSERT INTO bank.account VALUES {}", rows.join(","));
        pair.one.execute(&[&fill]);
        Some(pair)
    }

    /// Has the second replicate from the first, as root: nothing else is there yet.
    fn follow(&self) {
        self.one.execute(&[
            "CREATE USER repl@'%' IDENTIFIED BY 'repl'",
            "GRANT REPLICATION SLAVE ON *.* TO repl@'%'",
        ]);
        let port = self.one.port();
        match self.two.flavour() {
            Flavour::MariaDb => self.two.execute(&[
                &format!(
                    "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={port}, \
                     MASTER_USER='repl', MASTER_PASSWORD='repl', MASTER_USE_GTID=slave_pos, \
                     MASTER_CONNECT_RETRY=1"
                ),
                "START SLAVE",
            ]),
            Flavour::MySql => self.two.execute(&[
                &format!(
                    "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={port}, \
                     SOURCE_USER='repl', SOURCE_PASSWORD='repl', SOURCE_AUTO_POSITION=1, \
                     GET_SOURCE_PUBLIC_KEY=1, SOURCE_CONNECT_RETRY=1"
                ),
                "START REPLICA",
            ]),
        }
    }

    /// Lets the second take writes, once it has applied everything that it has received.
    fn promote(&self) -> Instant {
        let word = match self.two.flavour() {
            Flavour::MariaDb => "SLAVE",
            Flavour::MySql => "REPLICA",
        };
        let mut admin = self.two.admin();
        admin.must(&format!("STOP {word} IO_THREAD"));
        let applied = |admin: &mut Client| {
            let rows = admin.rows(&format!("SHOW {word} STATUS")).texts();
            (rows[0].iter()).any(|value| value.contains("has read all relay log"))
        };
        while !applied(&mut admin) {
            std::thread::yield_now();
        }
        admin.must(&format!("STOP {word}"));
        admin.must(&format!("RESET {word} ALL"));
        if word == "REPLICA" {
            admin.must("SET GLOBAL super_read_only=0");
        }
        admin.must("SET GLOBAL read_only=0");
        Instant::now()
    }

    fn pool(&self, cluster: &str) -> Pool {
        let (one, two) = (self.one.address(), self.two.address());
        let text = format!(
            "backends_max = 8\ngroups = 2\n\
             [backend]\nmonitor_user = \"app\"\nmonitor_password = \"app\"\n\
             [[server]]\nname = \"one\"\naddress = \"{one}\"\n\
             [[server]]\nname = \"two\"\naddress = \"{two}\"\n\
             [cluster]\n{cluster}\n\
             [console]\nlisten = \"127.0.0.1:0\"\nadmin_user = \"admin\"\n\
             admin_password = \"admin\"\n\
             [[user]]\nname = \"bank\"\npassword = \"bank\"\n"
        );
        let file = config_file(&self.one, "cluster.toml", &text);
        let arguments = ["--config", file.to_str().unwrap()];
        Pool::start(binary(), &arguments).unwrap_or_else(|why| panic!("{why}"))
    }
}

/// The pairs of both products, one after the other.
fn pairs() -> impl Iterator<Item = Pair> {
    [false, true]
        .into_iter()
        .filter_map(|is_mysql| pooled(|test| Pair::start(test, is_mysql)))
}

fn console(pool: &Pool) -> Client {
    login(&console_of(pool), &Account::new("admin", "admin"))
}

fn bank() -> Account {
    Account::new("bank", "bank").schema("bank")
}

/// Answers to one client about its transfers, by tag.
#[derive(Default)]
struct Ledger {
    done: Vec<String>,
    not_done: Vec<String>,
    unknown: Vec<String>,
    errors: Vec<Failure>,
    /// Connections that were closed.
    cut: usize,
}

/// Course of a test, as its clients see it.
#[derive(Default)]
struct Course {
    done: Mutex<usize>,
    changed: Condvar,
    /// Clients end behind a few more.
    is_over: AtomicBool,
    first_after: Mutex<Option<Instant>>,
}

impl Course {
    fn count(&self) {
        *self.done.lock().unwrap() += 1;
        self.changed.notify_all();
    }

    /// Waits until so much more is done.
    fn wait_for(&self, more: usize) {
        let done = self.done.lock().unwrap();
        let until = *done + more;
        drop(self.changed.wait_while(done, |done| *done < until).unwrap());
    }
}

/// One transfer; the error, and whether that answered its COMMIT.
fn transfer(client: &mut Client, number: usize, tag: &str) -> Result<(), Option<(Failure, bool)>> {
    let (from, to) = (number % ACCOUNTS, (number * 7 + 3) % ACCOUNTS);
    let statements = [
        "BEGIN".to_owned(),
        format!("UPDATE account SET v = v - 1 WHERE id = {from}"),
        format!("UPDATE account SET v = v + 1 WHERE id = {to}"),
        format!("INSERT INTO ledger VALUES ('{tag}')"),
        "COMMIT".to_owned(),
    ];
    for sql in &statements {
        if let Some(Outcome::Failed(failure)) = client.query(sql).map_err(|_| None)?.pop() {
            return Err(Some((failure, sql == "COMMIT")));
        }
    }
    Ok(())
}

fn transfer_on(address: &reactor::Address, who: usize, course: &Course) -> Ledger {
    let mut ledger = Ledger::default();
    let mut client = login(address, &bank());
    let mut after = 0;
    for number in 0.. {
        if after > 10 {
            return ledger;
        }
        let tag = format!("{who}.{number}");
        match transfer(&mut client, who * 31 + number, &tag) {
            Ok(()) => {
                ledger.done.push(tag);
                course.count();
                if course.is_over.load(Ordering::SeqCst) {
                    after += 1;
                    course
                        .first_after
                        .lock()
                        .unwrap()
                        .get_or_insert_with(Instant::now);
                }
            }
            Err(Some((failure, is_commit))) => {
                assert!(matches!(failure.code, 1158 | 1213), "{failure:?}");
                match is_commit && failure.code == 1158 {
                    true => ledger.unknown.push(tag),
                    false => ledger.not_done.push(tag),
                }
                ledger.errors.push(failure);
                client.must("ROLLBACK");
            }
            Err(None) => {
                ledger.unknown.push(tag);
                ledger.cut += 1;
                client = login(address, &bank());
            }
        }
    }
    ledger
}

/// Runs transfers while `act` does what is to be survived, and gives the moment from which the
/// second server takes writes. Checks the ledger there.
fn under_load(pool: &Pool, pair: &mut Pair, act: impl FnOnce(&mut Pair) -> Instant) -> Vec<Ledger> {
    let course = Course::default();
    let ledgers: Vec<Ledger> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|who| {
                let course = &course;
                scope.spawn(move || transfer_on(&pool.address, who, course))
            })
            .collect();
        course.wait_for(300);
        let since = act(pair);
        course.is_over.store(true, Ordering::SeqCst);
        let ledgers = clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .collect();
        let took = course
            .first_after
            .lock()
            .unwrap()
            .unwrap()
            .duration_since(since);
        eprintln!(
            "from read_only = 0 to the first transfer: {} ms",
            took.as_millis()
        );
        ledgers
    });
    let mut admin = pair.two.admin();
    let mut present: HashMap<String, usize> = HashMap::new();
    for row in admin.rows("SELECT tag FROM bank.ledger").texts() {
        *present.entry(row[0].clone()).or_default() += 1;
    }
    assert!(
        present.values().all(|count| *count == 1),
        "a transfer was doubled"
    );
    for ledger in &ledgers {
        for tag in &ledger.done {
            assert!(
                present.contains_key(tag),
                "{tag} was reported as done, and is lost"
            );
        }
        for tag in &ledger.not_done {
            assert!(
                !present.contains_key(tag),
                "{tag} was reported as not done, and is"
            );
        }
    }
    let sum = admin.value("SELECT SUM(v) FROM bank.account");
    assert_eq!(sum, (ACCOUNTS * 100).to_string());
    ledgers
}

#[test]
fn a_killed_writer_is_left_for_the_promoted_replica_and_no_client_is_disconnected() {
    for mut pair in pairs() {
        let pool = pair.pool("writer_lost = \"replace\"");
        let mut idle = login(&pool.address, &bank());
        idle.must("SET @mine = 7");
        let prepared = idle.prepare("SELECT @mine + 1");
        let mut inside = login(&pool.address, &bank());
        inside.must(HOLD);
        inside.must("INSERT INTO ledger VALUES ('inside')");
        let mut leaves = login(&pool.address, &bank());
        leaves.must(HOLD);
        leaves.must("INSERT INTO ledger VALUES ('leaves')");
        let ledgers = under_load(&pool, &mut pair, |pair| {
            pair.one.kill9();
            pair.promote()
        });
        for ledger in &ledgers {
            assert_eq!(ledger.cut, 0, "a client was disconnected");
        }
        // Sessions go on as they were; what was open is lost, and its client hears so.
        let [Outcome::Rows(rows)] = &idle.execute(prepared.id, &[], false).unwrap()[..] else {
            panic!("no rows");
        };
        assert_eq!(rows.texts(), [["8"]]);
        assert_eq!(inside.failure("COMMIT").code, 1213);
        assert_eq!(
            inside.value("SELECT COUNT(*) FROM ledger WHERE tag = 'inside'"),
            "0"
        );
        leaves.must("ROLLBACK");
        pool.wait_for("event=writer-moved message=the writer is two, was ")
            .unwrap();
    }
}

#[test]
fn a_switchover_is_without_an_error() {
    for mut pair in pairs() {
        let pool = pair.pool("");
        let mut idle = login(&pool.address, &bank());
        idle.must("SET @mine = 7");
        let prepared = idle.prepare("INSERT INTO ledger VALUES (CONCAT('prepared', @mine))");
        let mut deferred = login(&pool.address, &bank());
        deferred.must("BEGIN");
        let mut console = console(&pool);
        let ledgers = under_load(&pool, &mut pair, |_| {
            let since = Instant::now();
            console.must("SWITCH TO two");
            eprintln!("the switchover took {} ms", since.elapsed().as_millis());
            since
        });
        for ledger in &ledgers {
            assert_eq!(ledger.cut, 0, "a client was disconnected");
            // Transfers may lock the same accounts in different order.
            let own = ledger
                .errors
                .iter()
                .find(|failure| !failure.message.starts_with("Deadlock"));
            assert!(own.is_none(), "{own:?}");
        }
        idle.execute(prepared.id, &[], false).unwrap();
        deferred.must("INSERT INTO ledger VALUES ('deferred')");
        deferred.must("COMMIT");
        let found = "SELECT COUNT(*) FROM bank.ledger WHERE tag IN ('prepared7', 'deferred')";
        assert_eq!(pair.two.admin().value(found), "2");
        assert_eq!(pair.one.admin().value("SELECT @@global.read_only"), "1");
        let rows = console.rows("SHOW FULL SERVERS").texts();
        assert_eq!((&*rows[1][0], &*rows[1][3]), ("two", "writer"), "{rows:?}");
        says(
            &console.failure("SWITCH TO two").message,
            "'two' is written to already",
        );
    }
}

#[test]
fn a_switchover_that_fails_changes_nothing() {
    let Some(pair) = pooled(|test| Pair::start(test, false)) else {
        return;
    };
    let pool = pair.pool("switch_ms_max = 1000");
    let mut console = console(&pool);
    says(
        &console.failure("SWITCH TO three").message,
        "there is no server 'three'",
    );
    let mut holds = login(&pool.address, &bank());
    holds.must(HOLD);
    holds.must("INSERT INTO ledger VALUES ('held')");
    says(
        &console.failure("SWITCH TO two").message,
        "everything goes on where it was: 1 ",
    );
    holds.must("COMMIT");
    // It receives nothing any more.
    pair.two.execute(&["STOP SLAVE"]);
    holds.must("SELECT 1");
    let semi_sync = "SET GLOBAL rpl_semi_sync_master_enabled = 0";
    pair.one.execute(&[semi_sync]);
    holds.must("INSERT INTO ledger VALUES ('behind')");
    let failure = console.failure("SWITCH TO two");
    says(&failure.message, "everything goes on where it was: ");
    holds.must("INSERT INTO ledger VALUES ('after')");
    assert_eq!(
        pair.one.admin().value("SELECT COUNT(*) FROM bank.ledger"),
        "3"
    );
    assert_eq!(pair.two.admin().value("SELECT @@global.read_only"), "1");
}
