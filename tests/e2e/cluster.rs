//! Several servers: a writer and its replica, under a bank whose ledger is checked.

use crate::bank::{self, Ledger, MAYBE_RAN, bank, found_bank};
use crate::metrics::place_of;
use crate::rules::post;
use crate::world::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};
use testkit::proxy::{At, Passes, Proxy, Wrong};

/// The newest connection of a replica that has been sent everything.
const NEWEST_REPLICA: &str = "SELECT COALESCE(MAX(id), 0) FROM information_schema.processlist \
     WHERE state LIKE '%has sent all binlog%'";

/// Statements wait for the end of a switchover, however long it takes.
const PATIENT: &str = "wait_ms_max = 60000";

/// The word for a replica in statements.
pub(crate) fn replica_word(real: &Real) -> &'static str {
    match real.flavour() {
        Flavour::MariaDb => "SLAVE",
        Flavour::MySql => "REPLICA",
    }
}

/// Lines of a cluster whose servers have 10 s for an answer, unless they say otherwise: a machine
/// that is busy lets no server fail.
pub(crate) fn patient(cluster: &str) -> String {
    match cluster.contains("answer_ms_max") {
        true => cluster.to_owned(),
        false => format!("answer_ms_max = 10000\n{cluster}"),
    }
}

/// A writer with a replica that has everything that was acknowledged.
pub(crate) struct Pair {
    pub(crate) one: Real,
    pub(crate) two: Real,
}

impl Pair {
    pub(crate) fn start(test: &str, is_mysql: bool) -> Option<Pair> {
        Pair::start_with(test, is_mysql, &[])
    }

    /// A pair of which the second has these options besides.
    pub(crate) fn start_with(test: &str, is_mysql: bool, second: &[&str]) -> Option<Pair> {
        let common = ["--log-bin=log", "--log-slave-updates=ON"];
        let mariadb = [
            "--server-id=1 --rpl-semi-sync-master-enabled=1 \
             --rpl-semi-sync-master-timeout=60000 --rpl-semi-sync-master-wait-point=AFTER_SYNC",
            "--server-id=2 --read-only=1 --rpl-semi-sync-slave-enabled=1",
        ];
        let mysql = [
            "--server-id=1 --gtid-mode=ON --enforce-gtid-consistency=ON \
             --plugin-load-add=semisync_source.so --rpl-semi-sync-source-enabled=1 \
             --rpl-semi-sync-source-timeout=60000",
            "--server-id=2 --gtid-mode=ON --enforce-gtid-consistency=ON --super-read-only=1 \
             --plugin-load-add=semisync_replica.so --rpl-semi-sync-replica-enabled=1",
        ];
        let start = |own: &[&str]| {
            let all = [&common[..], own].concat();
            let mysql = [&["--log-replica-updates=ON"], &all[..1], own].concat();
            let started = match is_mysql {
                true => Real::start_mysql(&mysql),
                false => Real::start(&all),
            };
            found(started, test)
        };
        let [first, own] = if is_mysql { mysql } else { mariadb }.map(words);
        let pair = Pair {
            one: start(&first)?,
            two: start(&[&own[..], second].concat())?,
        };
        pair.follow();
        pair.one.create_user("app", "app");
        found_bank(&mut pair.one.admin());
        Some(pair)
    }

    /// Makes the second replicate from the first, as root: nothing else is there yet.
    fn follow(&self) {
        self.one.execute(&[
            // Nobody acknowledges it yet.
            "SET sql_log_bin = 0",
            "CREATE USER repl@'%' IDENTIFIED BY 'repl'",
            "GRANT REPLICATION SLAVE ON *.* TO repl@'%'",
        ]);
        self.follow_again();
    }

    fn follow_again(&self) {
        follow(&self.one, &self.two);
    }

    /// Lets the second take writes, once it has applied everything that it has received.
    pub(crate) fn promote(&self) -> Instant {
        let word = replica_word(&self.two);
        let mut admin = self.two.admin();
        admin.must(&format!("STOP {word} IO_THREAD"));
        let applied = |admin: &mut Client| {
            let rows = admin.rows(&format!("SHOW {word} STATUS")).texts();
            (rows[0].iter()).any(|value| value.contains("has read all relay log"))
        };
        wait_while(|| !applied(&mut admin));
        admin.must(&format!("STOP {word}"));
        admin.must(&format!("RESET {word} ALL"));
        admin.must("SET GLOBAL read_only=0");
        Instant::now()
    }

    fn pool(&self, cluster: &str) -> Pool {
        self.pool_with("", cluster)
    }

    pub(crate) fn pool_with(&self, extra: &str, cluster: &str) -> Pool {
        let addresses = [&self.one, &self.two].map(|real| real.address().to_string());
        self.pool_at(&addresses, (extra, ""), cluster)
    }

    /// A pool that sees the two at these addresses, with lines at the top and for its user.
    pub(crate) fn pool_at(
        &self,
        [one, two]: &[String; 2],
        (extra, user): (&str, &str),
        cluster: &str,
    ) -> Pool {
        let text = format!(
            "backends_max = 8\ngroups = 2\n{extra}\n\
             [backend]\nmonitor_user = \"app\"\nmonitor_password = \"app\"\n\
             [[server]]\nname = \"one\"\naddress = \"{one}\"\n\
             [[server]]\nname = \"two\"\naddress = \"{two}\"\n\
             [cluster]\n{}\n\
             [console]\nlisten = \"127.0.0.1:0\"\nadmin_user = \"admin\"\n\
             admin_password = \"admin\"\n\
             [[user]]\nname = \"bank\"\npassword = \"bank\"\n{user}\n",
            patient(cluster)
        );
        pool_from(&self.one, &text)
    }
}

/// Makes a server replicate from another, which has an account for that, and waits until it has
/// been sent everything: before that, a CREATE USER that waits for its acknowledgement locks the
/// accounts of MySQL, and the replica is not served.
pub(crate) fn follow(source: &Real, replica: &Real) {
    let port = source.port();
    let change = match replica.flavour() {
        Flavour::MariaDb => format!(
            "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={port}, MASTER_USER='repl', \
             MASTER_PASSWORD='repl', MASTER_USE_GTID=slave_pos, MASTER_CONNECT_RETRY=1"
        ),
        Flavour::MySql => format!(
            "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={port}, \
             SOURCE_USER='repl', SOURCE_PASSWORD='repl', SOURCE_AUTO_POSITION=1, \
             GET_SOURCE_PUBLIC_KEY=1, SOURCE_CONNECT_RETRY=1"
        ),
    };
    let word = replica_word(replica);
    let mut admin = source.admin();
    let before = admin.value(NEWEST_REPLICA);
    replica.execute(&[&change, &format!("START {word}")]);
    wait_while(|| admin.value(NEWEST_REPLICA) == before);
}

/// The pairs of both products, one after the other.
fn pairs() -> impl Iterator<Item = Pair> {
    on_both(Pair::start)
}

pub(crate) fn console(pool: &Pool) -> Client {
    login(&console_of(pool), &Account::new("admin", "admin"))
}

/// Runs transfers while `act` does what is to be survived, and gives the moment from which the
/// second server takes writes. Checks the ledger there.
fn under_load(pool: &Pool, pair: &mut Pair, act: impl FnOnce(&mut Pair) -> Instant) -> Vec<Ledger> {
    let (took, ledgers) = bank::under_load(&pool.address, |course| {
        let since = act(pair);
        course.mark();
        course.first_after().duration_since(since)
    });
    eprintln!("from read_only = 0 to the first transfer: {took:?}");
    bank::check(&mut pair.two.admin(), &ledgers);
    for ledger in &ledgers {
        let other = (ledger.errors.iter()).find(|it| !matches!(it.code, MAYBE_RAN | 1213));
        assert!(other.is_none(), "{other:?}");
    }
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
        inside.must("INSERT INTO ledger (tag) VALUES ('inside')");
        let mut leaves = login(&pool.address, &bank());
        leaves.must(HOLD);
        leaves.must("INSERT INTO ledger (tag) VALUES ('leaves')");
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
        assert_eq!(inside.failure("SELECT LAST_INSERT_ID()").code, 1235);
        let asked = "SELECT COUNT(*) FROM ledger WHERE tag = 'inside'";
        assert_eq!(inside.value(asked), "0");
        leaves.must("ROLLBACK");
        pool.wait_for("event=writer-moved message=the writer is two, was ")
            .unwrap();
    }
}

#[test]
fn a_transaction_that_a_failed_statement_has_committed_is_not_said_to_have_no_effect() {
    for pair in pairs() {
        let proxy = Proxy::start(([127, 0, 0, 1], pair.one.port()).into());
        let addresses = [&proxy.address, &pair.two.address()].map(ToString::to_string);
        let pool = pair.pool_at(&addresses, ("", ""), "");
        proxy.go_wrong(At::Said(b"SHOW WARNINGS"), Passes::Nothing, Wrong::Closed);
        for failing in [
            "CREATE TABLE ledger (a INT)",
            "ALTER TABLE nowhere ADD a INT",
            "RENAME TABLE nowhere TO elsewhere",
            "TRUNCATE nowhere",
            "DROP TABLE nowhere",
            "LOCK TABLES nowhere READ",
        ] {
            let mut client = login(&pool.address, &bank());
            client.script("BEGIN; INSERT INTO ledger (tag) VALUES ('committed')");
            let failure = client.failure(failing);
            assert!(matches!(failure.code, 1050 | 1051 | 1146), "{failure}");
            let next = client.failure("INSERT INTO ledger (tag) VALUES ('again')");
            assert_eq!(next.code, MAYBE_RAN, "{failing}: {next}");
            client.must("DO 1");
        }
        assert_eq!(proxy.mend(), 6);
        let committed = "SELECT COUNT(*) FROM bank.ledger WHERE tag = 'committed'";
        assert_eq!(pair.one.admin().value(committed), "6");
    }
}

#[test]
fn a_pinned_client_is_closed_when_its_server_is_left() {
    for mut pair in pairs() {
        let pool = pair.pool("writer_lost = \"replace\"");
        let client = || login(&pool.address, &bank());
        let mut pinned = [client(), client(), client()];
        pinned[0].must("SELECT GET_LOCK('mine', 1)");
        pinned[1].must("CREATE TEMPORARY TABLE own (a INT)");
        let cursor = pinned[2].prepare("SELECT id FROM account").id;
        pinned[2].execute(cursor, &[], true).unwrap();
        let mut free = client();
        free.must("SET @mine = 7");
        let mut runs = client();
        runs.must("SELECT GET_LOCK('runs', 1)");
        let heard = std::thread::scope(|scope| {
            let heard = scope.spawn(|| runs.failure("SELECT SLEEP(600)").code);
            let running = "SELECT COUNT(*) FROM information_schema.processlist \
                           WHERE info LIKE 'SELECT SLEEP(600)%'";
            let mut admin = pair.one.admin();
            wait_while(|| admin.value(running) == "0");
            pair.one.kill9();
            heard.join().unwrap()
        });
        // What it had sent may have run; then it is closed as those are that have sent nothing.
        assert_eq!(heard, MAYBE_RAN);
        pair.promote();
        assert_eq!(free.value("SELECT @mine"), "7");
        for mut client in pinned.into_iter().chain([runs]) {
            assert!(client.query("SELECT 1").is_err(), "{}", client.who());
        }
    }
}

#[test]
fn a_switchover_is_without_an_error() {
    for mut pair in pairs() {
        let pool = pair.pool_with(PATIENT, "switch_ms_max = 60000");
        let mut idle = login(&pool.address, &bank());
        idle.must("SET @mine = 7");
        let prepared = idle.prepare("INSERT INTO ledger (tag) VALUES (CONCAT('prepared', @mine))");
        let mut deferred = login(&pool.address, &bank());
        deferred.must("BEGIN");
        let mut pinned = login(&pool.address, &bank());
        pinned.must("SELECT GET_LOCK('mine', 1)");
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
            let mut errors = ledger.errors.iter();
            let own = errors.find(|failure| !failure.message.starts_with("Deadlock"));
            assert!(own.is_none(), "{own:?}");
        }
        idle.execute(prepared.id, &[], false).unwrap();
        assert!(pinned.query("SELECT 1").is_err(), "its lock is gone");
        deferred.script("INSERT INTO ledger (tag) VALUES ('deferred'); COMMIT");
        let found = "SELECT COUNT(*) FROM bank.ledger WHERE tag IN ('prepared7', 'deferred')";
        assert_eq!(pair.two.admin().value(found), "2");
        assert_eq!(pair.one.admin().value("SELECT @@global.read_only"), "1");
        let rows = console.rows("SHOW FULL SERVERS").texts();
        assert_eq!((&*rows[1][0], &*rows[1][3]), ("two", "writer"), "{rows:?}");
        let words = "'two' is written to already";
        says(&console.failure("SWITCH TO two").message, words);
    }
}

#[test]
fn a_switchover_holds_nothing_until_the_new_writer_has_what_is_there() {
    for pair in pairs() {
        let pool = pair.pool("switch_ms_max = 60000");
        let word = replica_word(&pair.two);
        pair.two.execute(&[&format!("STOP {word} SQL_THREAD")]);
        let mut client = login(&pool.address, &bank());
        client.must("INSERT INTO ledger (tag) VALUES ('before')");
        let mut console = console(&pool);
        std::thread::scope(|scope| {
            let switches = scope.spawn(move || console.must("SWITCH TO two"));
            let waiting = "SELECT COUNT(*) FROM information_schema.processlist \
                           WHERE info LIKE 'SELECT %GTID_%'";
            let mut admin = pair.two.admin();
            wait_while(|| admin.value(&format!("{waiting} AND id <> CONNECTION_ID()")) == "0");
            client.must("INSERT INTO ledger (tag) VALUES ('meanwhile')");
            admin.must(&format!("START {word} SQL_THREAD"));
            switches.join().unwrap();
        });
        client.must("INSERT INTO ledger (tag) VALUES ('after')");
        let tags = "SELECT COUNT(*) FROM bank.ledger";
        assert_eq!(pair.two.admin().value(tags), "3");
    }
}

#[test]
fn a_writer_without_room_is_full_and_stays() {
    for pair in pairs() {
        let pool = pair.pool("");
        let mut client = login(&pool.address, &bank());
        let full = "SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1021, MESSAGE_TEXT = 'Disk full'";
        assert_eq!(client.failure(full).code, 1021);
        let line = "event=server-state message='one' is full, was writer: statements fail for want \
                    of room: error 1021";
        pool.wait_for(line).unwrap();
        client.must("INSERT INTO ledger (tag) VALUES ('room')");
    }
}

#[test]
fn a_switchover_that_fails_changes_nothing() {
    let pair = or_return!(pooled(|test| Pair::start(test, false)));
    let pool = pair.pool("switch_ms_max = 3000");
    let mut console = console(&pool);
    let words = "there is no server 'three'";
    says(&console.failure("SWITCH TO three").message, words);
    let mut holds = login(&pool.address, &bank());
    holds.must(HOLD);
    holds.must("INSERT INTO ledger (tag) VALUES ('held')");
    let expected = "everything goes on where it was: 1 ";
    says(&console.failure("SWITCH TO two").message, expected);
    holds.must("COMMIT");
    // It receives nothing any more.
    pair.two.execute(&["STOP SLAVE"]);
    holds.must("SELECT 1");
    let semi_sync = "SET GLOBAL rpl_semi_sync_master_enabled = 0";
    pair.one.execute(&[semi_sync]);
    holds.must("INSERT INTO ledger (tag) VALUES ('behind')");
    let failure = console.failure("SWITCH TO two");
    says(&failure.message, "everything goes on where it was: ");
    // MariaDB waits for numbers within a domain, whichever server they are of.
    (pair.two).script("SET GLOBAL gtid_slave_pos = '0-99-1000000'");
    let words = "the new server has other transactions than the old one";
    says(&console.failure("SWITCH TO two").message, words);
    holds.must("INSERT INTO ledger (tag) VALUES ('after')");
    let asked = "SELECT COUNT(*) FROM bank.ledger";
    assert_eq!(pair.one.admin().value(asked), "3");
    assert_eq!(pair.two.admin().value("SELECT @@global.read_only"), "1");
}

#[test]
fn a_fence_is_shown_and_taken_back() {
    let pair = or_return!(pooled(|test| Pair::start(test, false)));
    let pool = pair.pool_with("wait_ms_max = 2000", "");
    let (mut client, mut console) = (login(&pool.address, &bank()), console(&pool));
    client.must("SELECT 1");
    console.must("FENCED one");
    let message = client.failure("SELECT 1").message;
    let words = "no server is known to take writes: one: it is fenced";
    says(&message, words);
    let rows = console.rows("SHOW FULL SERVERS").texts();
    let is_said = rows[0]
        .iter()
        .any(|value| value.starts_with("it is fenced"));
    assert!(is_said, "{rows:?}");
    console.must("UNFENCED one");
    client.must("SELECT 1");
}

#[test]
fn a_pool_that_is_ended_ends_its_switchover_first() {
    for pair in pairs() {
        // It does not end: the switchover waits for it, and fails.
        let command = "promote_command = [\"sleep\", \"600\"]\nswitch_ms_max = 10000";
        let pool = pair.pool(command);
        let mut client = login(&pool.address, &bank());
        client.must("INSERT INTO ledger (tag) VALUES ('held')");
        let mut console = console(&pool);
        let asks = std::thread::spawn(move || console.query("SWITCH TO two").map(|_| ()));
        let mut admin = pair.one.admin();
        let read_only = "SELECT @@global.read_only";
        wait_while(|| admin.value(read_only) == "0" && !asks.is_finished());
        let held = admin.value(read_only);
        assert_eq!(held, "1", "the switchover has held nothing");
        pool.terminate();
        ended(pool);
        assert_eq!(admin.value(read_only), "0");
        let _ = asks.join().unwrap();
    }
}

/// Clients of the great switchover.
const MANY: usize = 1000;

/// A place where all of them and the test meet; it fails where one does not come.
#[derive(Default)]
struct Meeting(Mutex<usize>, Condvar);

impl Meeting {
    fn wait(&self) {
        let mut come = self.0.lock().unwrap();
        *come += 1;
        let all = come.next_multiple_of(MANY + 1);
        if *come == all {
            self.1.notify_all();
        }
        let waited = self.1.wait_timeout_while(come, LIMIT, |come| *come < all);
        let (come, timeout) = waited.unwrap();
        assert!(!timeout.timed_out(), "{come} of {all} have come");
    }
}

/// A client of it: prepared executions by themselves and in transactions, with its number in a user
/// variable. Gives how many, and its waits: that of the first, which all send at once before the
/// switchover begins, and the longest since then.
fn insert_until(
    is_over: &AtomicBool,
    client: &mut Client,
    started: &Meeting,
) -> (u32, [Duration; 2]) {
    let prepared = "INSERT INTO ledger (tag) VALUES (CONCAT(@mine, '.', ?))";
    let insert = client.prepare(prepared).id;
    started.wait();
    let begun = Instant::now();
    client.execute(insert, &[Some(b"first")], false).unwrap();
    let (before, mut sent, mut longest) = (begun.elapsed(), 1_u32, Duration::ZERO);
    started.wait();
    while !is_over.load(Ordering::SeqCst) {
        for step in 0..4 {
            let (tag, begun) = (sent.to_string(), Instant::now());
            let outcomes = match step {
                1 => client.query("BEGIN"),
                3 => client.query("COMMIT"),
                _ => client.execute(insert, &[Some(tag.as_bytes())], false),
            };
            let outcomes = outcomes.unwrap();
            let has_failed = matches!(outcomes[..], [Outcome::Failed(_)]);
            assert!(!has_failed, "{outcomes:?}");
            longest = longest.max(begun.elapsed());
            sent += u32::from(step % 2 == 0);
        }
    }
    (sent, [before, longest])
}

#[test]
fn a_switchover_over_http_is_without_an_error_for_a_thousand_clients() {
    for pair in pairs() {
        let token = pair.one.folder().join("http.token");
        std::fs::write(&token, "0123456789abcdef\n").unwrap();
        let token = token.display();
        let http = format!("http = \"127.0.0.1:0\"\nhttp_token_file = \"{token}\"\n{PATIENT}");
        let pool = pair.pool_with(&http, "switch_ms_max = 60000");
        let headers = "X-Onramp: 1\r\nAuthorization: Bearer 0123456789abcdef\r\n";
        let (is_over, started) = (AtomicBool::new(false), Meeting::default());
        let (sent, [before, longest]) = std::thread::scope(|scope| {
            let _end = Stop(&is_over);
            let clients: Vec<_> = (0..MANY)
                .map(|number| {
                    let (pool, is_over, started) = (&pool, &is_over, &started);
                    scope.spawn(move || {
                        let mut client = login(&pool.address, &bank());
                        client.must(&format!("SET @mine = {number}"));
                        insert_until(is_over, &mut client, started)
                    })
                })
                .collect();
            started.wait();
            started.wait();
            let (status, body) = post(&place_of(&pool), headers, "SWITCH TO two");
            is_over.store(true, Ordering::SeqCst);
            eprintln!("{body}");
            assert_eq!(status, 200, "{body}");
            let done = clients.into_iter().map(|client| client.join().unwrap());
            done.fold((0, [Duration::ZERO; 2]), |all, one| {
                let longest = [0, 1].map(|part| all.1[part].max(one.1[part]));
                (all.0 + one.0, longest)
            })
        });
        eprintln!("{sent} inserts, the longest wait {longest:?}, all at once {before:?} without");
        let question = "SELECT COUNT(*), COUNT(DISTINCT tag) FROM bank.ledger";
        let found = pair.two.admin().rows(question).texts();
        assert_eq!(found, [[sent.to_string(), sent.to_string()]]);
    }
}

#[test]
fn a_promote_command_that_fails_changes_nothing_and_one_that_succeeds_promotes() {
    for pair in pairs() {
        let folder = pair.one.folder();
        let (script, which) = (folder.join("promote.sh"), folder.join("which"));
        let word = replica_word(&pair.one);
        // It ends MySQL's super_read_only too.
        let release = format!("STOP {word}; RESET {word} ALL; SET GLOBAL read_only=0");
        let [which_file, pid_file] = ["which", "pid"].map(|it| folder.join(it));
        let text = format!(
            "#!/bin/sh\n\
             [ \"$ONRAMP_NEW\" = {new} ] || exit 7\n\
             promote() {{ mariadb --no-defaults -uroot -S {socket} -e '{release}'; }}\n\
             case $(cat {which}) in\n\
             exits) exit 1 ;;\n\
             hangs) sleep 600 & echo $! >{pid}; wait ;;\n\
             killed) kill -9 $$ ;;\n\
             half) promote; exit 1 ;;\n\
             *) promote ;;\n\
             esac\n",
            new = pair.two.address(),
            socket = pair.two.socket().to_string().trim_start_matches("unix:"),
            which = which_file.display(),
            pid = pid_file.display(),
        );
        std::fs::write(&script, text).unwrap();
        let shown = script.display();
        let command = format!("promote_command = [\"/bin/sh\", \"{shown}\"]\nswitch_ms_max =");
        // A pool of its own for the one that hangs: the others have all the time that they take.
        let start = |ms: u32| {
            let pool = pair.pool(&format!("{command} {ms}"));
            let reader = "event=server-state message='two' is reader";
            pool.wait_for(reader).unwrap();
            (login(&pool.address, &bank()), console(&pool), pool)
        };
        for (count, how, why, ms) in [
            ("1", "exits", "exit status: 1", 60_000),
            ("2", "killed", "signal: 9", 60_000),
            ("3", "hangs", "did not end within 8000 ms", 8_000),
            ("4", "half", "exit status: 1", 60_000),
        ] {
            let (mut client, mut console, _pool) = start(ms);
            std::fs::write(&which, how).unwrap();
            let message = console.failure("SWITCH TO two").message;
            says(&message, "everything goes on where it was: promote_command");
            says(&message, why);
            if how == "half" {
                // It has left the new server without its source, and nobody acknowledges a write.
                pair.follow_again();
            }
            client.must(&format!("INSERT INTO ledger (tag) VALUES ('{how}')"));
            let mut admin = pair.one.admin();
            assert_eq!(admin.value("SELECT COUNT(*) FROM bank.ledger"), count);
            assert_eq!(admin.value("SELECT @@global.read_only"), "0");
            assert_eq!(pair.two.admin().value("SELECT @@global.read_only"), "1");
            if how == "hangs" {
                let left = std::fs::read_to_string(&pid_file).unwrap();
                let words = format!("/proc/{}/cmdline", left.trim());
                wait_while(|| !std::fs::read(&words).unwrap_or_default().is_empty());
            }
        }
        std::fs::write(&which, "promotes").unwrap();
        let (mut client, mut console, _pool) = start(60_000);
        console.must("SWITCH TO two");
        client.must("INSERT INTO ledger (tag) VALUES ('promoted')");
        let count = pair.two.admin().value("SELECT COUNT(*) FROM bank.ledger");
        assert_eq!(count, "5");
    }
}
