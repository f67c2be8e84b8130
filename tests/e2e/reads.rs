//! Reads elsewhere: a writer and two servers that replicate from it and are read.

use crate::bank::bank;
use crate::cluster::{Pair, console, follow, patient, replica_word};
use crate::world::*;
use std::sync::atomic::{AtomicUsize, Ordering};

const READERS: [&str; 2] = ["two", "three"];

/// Waits until a server has all that its source has.
fn catch_up(source: &Real, admin: &mut Client) {
    let (position, wait) = match source.flavour() {
        Flavour::MariaDb => ("SELECT @@gtid_binlog_pos", "MASTER_GTID_WAIT"),
        Flavour::MySql => (
            "SELECT @@global.gtid_executed",
            "WAIT_FOR_EXECUTED_GTID_SET",
        ),
    };
    let position = source.admin().value(position).replace('\n', "");
    let asked = format!("SELECT {wait}('{position}', 60)");
    assert_eq!(admin.value(&asked), "0");
}

/// Makes a replica say its own name in `bank.here`.
pub(crate) fn say_name(source: &Real, replica: &Real, name: &str) {
    let mut admin = replica.admin();
    catch_up(source, &mut admin);
    let is_mysql = replica.flavour() == Flavour::MySql;
    if is_mysql {
        admin.must("SET GLOBAL super_read_only=0");
    }
    admin.must("SET sql_log_bin=0");
    admin.must(&format!("UPDATE bank.here SET name = '{name}'"));
    if is_mysql {
        admin.must("SET GLOBAL super_read_only=1");
    }
}

/// A pair, and one more that replicates from the first. Each says its name in `bank.here`.
struct Trio {
    pair: Pair,
    three: Real,
}

impl Trio {
    fn start(test: &str, is_mysql: bool) -> Option<Trio> {
        let pair = Pair::start(test, is_mysql)?;
        let mysql = "--log-bin=log --server-id=3 --gtid-mode=ON --enforce-gtid-consistency=ON \
                     --super-read-only=1";
        let three = match is_mysql {
            true => Real::start_mysql(&words(mysql)),
            false => Real::start(&words("--log-bin=log --server-id=3 --read-only=1")),
        };
        let three = found(three, test)?;
        follow(&pair.one, &three);
        pair.one.execute(&[
            "CREATE TABLE bank.here (name VARCHAR(9)) ENGINE=InnoDB",
            "INSERT INTO bank.here VALUES ('one')",
            "CREATE TABLE bank.t (id INT PRIMARY KEY, v INT) ENGINE=InnoDB",
            "INSERT INTO bank.t VALUES (1, 0)",
        ]);
        let trio = Trio { pair, three };
        say_name(&trio.pair.one, &trio.pair.two, "two");
        say_name(&trio.pair.one, &trio.three, "three");
        Some(trio)
    }

    /// Waits until a server has all that the first has.
    fn catch_up(&self, admin: &mut Client) {
        catch_up(&self.pair.one, admin);
    }

    fn servers(&self) -> [&Real; 3] {
        [&self.pair.one, &self.pair.two, &self.three]
    }

    fn pool(&self, cluster: &str, user: &str) -> Pool {
        let mut text = "backends_max = 12\ngroups = 2\n\
                        [backend]\nmonitor_user = \"app\"\nmonitor_password = \"app\"\n"
            .to_owned();
        for (real, name) in self.servers().into_iter().zip(["one", "two", "three"]) {
            let address = real.address();
            let sql = format!("[[server]]\nname = \"{name}\"\naddress = \"{address}\"\n");
            text.push_str(&sql);
        }
        text.push_str(&format!(
            "[cluster]\n{}\n\
             [console]\nlisten = \"127.0.0.1:0\"\nadmin_user = \"admin\"\n\
             admin_password = \"admin\"\n\
             [[user]]\nname = \"bank\"\npassword = \"bank\"\n{user}\n",
            patient(cluster)
        ));
        let pool = pool_from(&self.pair.one, &text);
        for name in READERS {
            pool.wait_for(&format!("event=server-state message='{name}' is reader"))
                .unwrap();
        }
        pool
    }
}

fn trios() -> impl Iterator<Item = Trio> {
    on_both(Trio::start)
}

const WHERE: &str = "SELECT name FROM here";

fn is_reader(name: &str) -> bool {
    READERS.contains(&name)
}

#[test]
fn plain_reads_go_to_readers_and_all_else_to_the_writer() {
    for trio in trios() {
        let pool = trio.pool("", "");
        let mut client = login(&pool.address, &bank());
        assert_eq!(client.value(WHERE), "one", "nobody has asked for it");
        client.must("SET onramp_read_from = 'readers'");
        let mut seen: Vec<String> = (0..8).map(|_| client.value(WHERE)).collect();
        assert!(seen.iter().all(|name| is_reader(name)), "{seen:?}");
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 2, "both are read");
        for sql in [
            "SELECT name FROM here FOR UPDATE",
            "SELECT name FROM here LOCK IN SHARE MODE",
            "SELECT name FROM here WHERE @@server_id > 0",
            "SELECT name FROM here WHERE LAST_INSERT_ID() >= 0",
            "SELECT name FROM here WHERE @x IS NULL",
            "SELECT SQL_CALC_FOUND_ROWS name FROM here",
            "/* onramp_read_from=writer */ SELECT name FROM here",
        ] {
            assert_eq!(client.value(sql), "one", "{sql}");
        }
        for sql in [
            "SELECT name FROM here UNION SELECT name FROM here",
            "SELECT name FROM here LIMIT 0, 1",
            "WITH x AS (SELECT name FROM here) SELECT * FROM x",
        ] {
            let name = client.value(sql);
            assert!(is_reader(&name), "{sql}: {name}");
        }
        // A session comes along.
        client.must("SET sql_mode = 'ANSI_QUOTES'");
        let name = client.value("SELECT \"name\" FROM here");
        assert!(is_reader(&name), "{name}");
        client.must("SET sql_mode = DEFAULT");
        let prepared = client.prepare("SELECT name FROM here WHERE 1 = 1");
        for _ in 0..4 {
            let Outcome::Rows(rows) = client.execute(prepared.id, &[], false).unwrap().remove(0)
            else {
                panic!("no rows");
            };
            assert!(is_reader(&rows.texts()[0][0]));
        }
        // Transactions, as a whole.
        for begin in ["BEGIN", "SET autocommit = 0"] {
            client.must(begin);
            assert_eq!(client.value(WHERE), "one", "{begin}");
            client.must("COMMIT");
        }
        client.script("SET autocommit = 1; START TRANSACTION READ ONLY");
        let name = client.value(WHERE);
        assert!(is_reader(&name), "{name}");
        for _ in 0..4 {
            assert_eq!(client.value("SELECT name FROM here WHERE 2 = 2"), name);
        }
        assert_eq!(client.failure("INSERT INTO t VALUES (7, 7)").code, 1792);
        let refused = client.failure("SELECT name FROM here FOR UPDATE");
        assert_eq!(refused.code, 1792);
        says(&refused.message, "SET onramp_read_from = 'writer'");
        assert_eq!(client.failure("CREATE TABLE x (a INT)").code, 1792);
        assert_eq!(client.failure("BEGIN").code, 1792);
        client.script("COMMIT; INSERT INTO t VALUES (7, 7)");
        // One that keeps a backend stays there.
        client.must("CREATE TEMPORARY TABLE own (name VARCHAR(9))");
        assert_eq!(client.value(WHERE), "one");
        client.script("DROP TEMPORARY TABLE own; SET onramp_read_from = DEFAULT");
        assert_eq!(client.value(WHERE), "one");
        assert_eq!(client.failure("SET onramp_read_from = 'x'").code, 1231);

        let comments = trio.pool("", "read_from = \"comments\"");
        let mut client = login(&comments.address, &bank());
        assert_eq!(client.value(WHERE), "one");
        let asked = "/* onramp_read_from=readers */ SELECT name FROM here";
        let name = client.value(asked);
        assert!(is_reader(&name), "{name}");
        let dry = trio.pool("read_dry_run = true", "read_from = \"readers\"");
        let mut client = login(&dry.address, &bank());
        assert_eq!(client.value(WHERE), "one");
    }
}

/// A client writes a number and reads it, each time on another connection of its account if there
/// are several.
fn writes_and_reads(pool: &Pool, connections: usize, (who, rounds): (usize, usize)) {
    let mut clients: Vec<_> = (0..connections)
        .map(|_| login(&pool.address, &bank()))
        .collect();
    let id = 100 + who;
    clients[0].must(&format!("REPLACE INTO t VALUES ({id}, 0)"));
    for round in 1..=rounds {
        let writer = &mut clients[round % connections];
        writer.must(&format!("UPDATE t SET v = {round} WHERE id = {id}"));
        let reader = &mut clients[(round + 1) % connections];
        let value = reader.value(&format!("SELECT v FROM t WHERE id = {id}"));
        assert_eq!(value, round.to_string(), "client {who}");
    }
}

#[test]
fn a_client_reads_its_own_writes_and_an_account_those_of_all_its_clients() {
    for trio in trios() {
        for (user, connections) in [
            ("read_from = \"readers\"", 1),
            ("read_from = \"readers\"\nread_consistency = \"account\"", 3),
        ] {
            let pool = trio.pool("read_wait_ms_max = 30000", user);
            std::thread::scope(|scope| {
                for who in 0..4 {
                    let pool = &pool;
                    scope.spawn(move || writes_and_reads(pool, connections, (who, 100)));
                }
            });
            let mut console = console(&pool);
            let rows = console.rows("SELECT name, reads FROM servers").texts();
            let reads = rows[1..].iter().map(|row| row[1].parse::<usize>().unwrap());
            let reads: usize = reads.sum();
            assert!(reads >= 390, "they were read elsewhere: {rows:?}");
            for [sql, server, why] in table(
                "SELECT v FROM bank.t WHERE id = 1 => a reader => it is a read that leaves nothing
                 INSERT INTO bank.t VALUES (2, 2) => the writer => it is no single SELECT",
            ) {
                let rows = console.rows(&format!("EXPLAIN ROUTE {sql}"));
                assert_eq!(rows.texts(), [[server, why]]);
            }
        }
        // One that does not follow is not waited for longer than that, and not read.
        let pool = trio.pool("read_wait_ms_max = 50", "read_from = \"readers\"");
        let mut client = login(&pool.address, &bank());
        let word = replica_word(&trio.three);
        for real in [&trio.pair.two, &trio.three] {
            real.execute(&[&format!("STOP {word} SQL_THREAD")]);
        }
        client.must("REPLACE INTO t VALUES (50, 1)");
        assert_eq!(client.value("SELECT v FROM t WHERE id = 50"), "1");
        for real in [&trio.pair.two, &trio.three] {
            real.execute(&[&format!("START {word} SQL_THREAD")]);
        }
    }
}

#[test]
fn a_replica_of_the_writer_before_is_not_waited_for() {
    for trio in trios() {
        // Far more than the test may take.
        let pool = trio.pool("switch_ms_max = 600000", "");
        let mut console = console(&pool);
        console.must("SWITCH TO two");
        let mut client = login(&pool.address, &bank());
        client.must("UPDATE t SET v = 1");
        let refused = console.failure("SWITCH TO three");
        says(
            &refused.message,
            "it does not replicate from the writer: have it do so first",
        );
        client.must("UPDATE t SET v = 2");
        // Nor is it read by a pool to which its writer is not known.
        let two = [&trio.pair.two, &trio.three].map(|real| real.address().to_string());
        let narrow = (trio.pair).pool_at(&two, ("", "read_from = \"readers\""), "");
        narrow.wait_for("it does not replicate from one").unwrap();
        assert_eq!(login(&narrow.address, &bank()).value(WHERE), "two");
        let word = replica_word(&trio.three);
        trio.pair.two.execute(&[
            "CREATE USER repl@'%' IDENTIFIED BY 'repl'",
            "GRANT REPLICATION SLAVE ON *.* TO repl@'%'",
        ]);
        trio.three.execute(&[&format!("STOP {word}")]);
        follow(&trio.pair.two, &trio.three);
        // The pool learns of that with its next question.
        let switch = "SWITCH TO three";
        wait_while(|| !matches!(console.query(switch).unwrap()[0], Outcome::Done(_)));
        assert_eq!(client.value("SELECT v FROM t FOR UPDATE"), "2");
        assert_eq!(client.value(WHERE), "three");
    }
}

#[test]
fn a_client_that_may_have_written_without_a_number_reads_from_the_writer() {
    for trio in trios() {
        trio.pair.one.execute(&[
            "GRANT ALL ON *.* TO bank@'%'",
            "CREATE TABLE bank.plain (id INT PRIMARY KEY) ENGINE=MyISAM",
            "CREATE PROCEDURE bank.p() \
             BEGIN INSERT INTO t VALUES (90, 1); COMMIT; SELECT * FROM missing; END",
        ]);
        let pool = trio.pool("read_wait_ms_max = 30000", "read_from = \"readers\"");
        for (sql, logs) in [
            ("CALL p()", 1),
            ("INSERT INTO plain VALUES (1), (1)", 1),
            ("INSERT INTO t VALUES (91, 1)", 0),
        ] {
            let mut client = login(&pool.address, &bank());
            client.must(&format!("SET sql_log_bin = {logs}"));
            let name = client.value(WHERE);
            assert!(is_reader(&name), "{sql}: {name}");
            let answer = client.query(sql).unwrap();
            assert_eq!(client.value(WHERE), "one", "{sql}: {answer:?}");
            client.script("SET sql_log_bin = 1; UPDATE t SET v = v + 1");
            let name = client.value(WHERE);
            // What is numbered stands for what came before, but not for what is not logged.
            assert_eq!(is_reader(&name), logs == 1, "{sql}: {name}");
        }
    }
}

/// The pool has not looked at what was made past it: the reader refuses.
#[test]
fn a_view_that_writes_runs_on_the_writer() {
    for trio in trios() {
        let pool = trio.pool("read_wait_ms_max = 30000", "read_from = \"readers\"");
        let mut client = login(&pool.address, &bank());
        trio.pair.one.execute(&[
            "CREATE FUNCTION bank.w() RETURNS INT DETERMINISTIC \
             BEGIN INSERT INTO bank.t VALUES (60, 0) ON DUPLICATE KEY UPDATE v = v + 1; \
             RETURN (SELECT v FROM bank.t WHERE id = 60); END",
            "CREATE VIEW bank.writes AS SELECT bank.w() AS v FROM bank.here",
        ]);
        for real in [&trio.pair.two, &trio.three] {
            trio.catch_up(&mut real.admin());
        }
        for round in ["0", "1", "2"] {
            assert_eq!(client.value("SELECT v FROM writes"), round);
            assert_eq!(client.value("SELECT v FROM t WHERE id = 60"), round);
        }
    }
}

#[test]
fn a_read_whose_reader_dies_is_answered_by_the_writer() {
    for mut trio in trios() {
        let pool = trio.pool("", "read_from = \"readers\"");
        let clients: Vec<Client> = (0..6).map(|_| login(&pool.address, &bank())).collect();
        let mut inside: Vec<Client> = (0..2).map(|_| login(&pool.address, &bank())).collect();
        let mut within = Vec::new();
        for client in &mut inside {
            client.must("START TRANSACTION READ ONLY");
            within.push(client.value(WHERE));
        }
        let mut lost = 0;
        let answers: Vec<String> = std::thread::scope(|scope| {
            let running: Vec<_> = clients
                .into_iter()
                .map(|mut client| {
                    scope.spawn(move || client.value("SELECT name FROM here WHERE SLEEP(8) = 0"))
                })
                .collect();
            let sleeping = "SELECT COUNT(*) FROM information_schema.processlist \
                            WHERE info LIKE 'SELECT name%SLEEP(8)%'";
            let mut admins = [trio.pair.two.admin(), trio.three.admin()];
            let asks = |admin: &mut Client| admin.value(sleeping).parse().unwrap();
            let mut count = || admins.each_mut().map(asks);
            let on_three: usize = until(|| {
                let [two, three]: [usize; 2] = count();
                let all_run = two + three == 6;
                all_run
                    .then_some(three)
                    .ok_or_else(|| format!("{two} and {three} of 6 run"))
            });
            trio.three.kill9();
            lost = on_three;
            running.into_iter().map(|one| one.join().unwrap()).collect()
        });
        let count = |name: &str| answers.iter().filter(|answer| *answer == name).count();
        assert!(lost > 0);
        let counts = (count("one"), count("two"), count("three"));
        assert_eq!(counts, (lost, 6 - lost, 0), "{answers:?}");
        for (client, before) in inside.iter_mut().zip(&within) {
            match &**before {
                // Lost as a whole, and begun again by its client.
                "three" => assert_eq!(client.failure(WHERE).code, 1213),
                _ => assert_eq!(client.value(WHERE), "two"),
            }
            client.must("COMMIT");
            let name = client.value(WHERE);
            assert!(name == "two" || name == "one", "{name}");
        }
    }
}

/// Clients that have no reader wait for the writer's one backend, and each gets it once.
#[test]
fn reads_that_wait_for_the_writer_are_answered() {
    let pair = or_return!(pooled(|test| Pair::start(test, false)));
    let text = format!(
        "backends_max = 1\ngroups = 1\n\
         [backend]\nmonitor_user = \"app\"\nmonitor_password = \"app\"\n\
         [[server]]\nname = \"one\"\naddress = \"{}\"\n\
         [[server]]\nname = \"two\"\naddress = \"{}\"\nrole = \"off\"\n\
         [cluster]\n\
         [[user]]\nname = \"bank\"\npassword = \"bank\"\nread_from = \"readers\"\n",
        pair.one.address(),
        pair.two.address(),
    );
    let pool = pool_from(&pair.one, &text);
    let clients: Vec<Client> = (0..4).map(|_| login(&pool.address, &bank())).collect();
    std::thread::scope(|scope| {
        for mut client in clients {
            scope.spawn(move || {
                for _ in 0..3 {
                    assert_eq!(client.value("SELECT SLEEP(0.05)"), "0");
                }
            });
        }
    });
}

/// Runs a text; `None` where its server has left its cluster, so that nobody knows what it did.
fn ran(client: &mut Client, sql: &str) -> Option<Outcome> {
    match client.query(sql).unwrap().pop() {
        Some(Outcome::Failed(failure)) if matches!(failure.code, 1047 | 1158 | 1180 | 1213) => None,
        Some(Outcome::Failed(failure)) => panic!("{sql}: {failure:?}"),
        outcome => outcome,
    }
}

/// A random script of one client, which knows what it has to find.
fn script(pool: &Pool, seed: u64) -> Option<()> {
    let mut random = Random(seed * 7919 + 1);
    let mut client = login(&pool.address, &bank());
    let base = 1000 + usize::try_from(seed).unwrap() * 10;
    let mut values: [Option<u64>; 4] = [None; 4];
    for step in 0..30 {
        let place = usize::try_from(random.below(4)).unwrap();
        let id = base + place;
        let value = random.below(1_000_000);
        let replace = format!("REPLACE INTO t VALUES ({id}, {value})");
        match random.below(10) {
            0..=2 => {
                ran(&mut client, &replace)?;
                values[place] = Some(value);
            }
            3 => {
                ran(&mut client, &format!("DELETE FROM t WHERE id = {id}"))?;
                values[place] = None;
            }
            4 => {
                ran(&mut client, "BEGIN")?;
                ran(&mut client, &replace)?;
                let end = ["ROLLBACK", "COMMIT"][usize::try_from(random.below(2)).unwrap()];
                values[place] = if end == "COMMIT" {
                    Some(value)
                } else {
                    values[place]
                };
                ran(&mut client, end)?;
            }
            5 => {
                ran(&mut client, &format!("SET @x = {value}"))?;
                ran(&mut client, &format!("REPLACE INTO t VALUES ({id}, @x)"))?;
                values[place] = Some(value);
            }
            6 => {
                ran(&mut client, "START TRANSACTION READ ONLY")?;
                check(&mut client, id, values[place], (seed, step))?;
                ran(&mut client, "COMMIT")?;
            }
            _ => check(&mut client, id, values[place], (seed, step))?,
        }
    }
    let own = format!("DELETE FROM t WHERE id BETWEEN {base} AND {}", base + 3);
    ran(&mut client, &own)?;
    Some(())
}

fn check(client: &mut Client, id: usize, expected: Option<u64>, at: (u64, usize)) -> Option<()> {
    let asked = format!("SELECT v FROM t WHERE id = {id}");
    let Some(Outcome::Rows(rows)) = ran(client, &asked) else {
        return None;
    };
    let rows = rows.texts();
    let found = rows.first().map(|row| row[0].clone());
    let expected = expected.map(|v| v.to_string());
    assert_eq!(found, expected, "seed and step {at:?}");
    Some(())
}

/// Runs so many scripts, four at a time. Gives how many their server has broken off.
pub(crate) fn scripts(pool: &Pool, seeds: usize) -> usize {
    let (next, broken) = (&AtomicUsize::new(0), &AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(move || {
                loop {
                    let seed = next.fetch_add(1, Ordering::SeqCst);
                    if seed >= seeds {
                        return;
                    }
                    let is_broken = script(pool, seed as u64).is_none();
                    broken.fetch_add(usize::from(is_broken), Ordering::SeqCst);
                }
            });
        }
    });
    broken.load(Ordering::SeqCst)
}

/// `ONRAMP_ORACLE_SEEDS` says how many.
#[test]
fn a_client_always_sees_its_own_writes_whatever_it_does() {
    let seeds = std::env::var("ONRAMP_ORACLE_SEEDS").map_or(40, |text| text.parse().unwrap());
    for trio in trios() {
        let pool = trio.pool("read_wait_ms_max = 5000", "read_from = \"readers\"");
        assert_eq!(scripts(&pool, seeds), 0);
        let mut console = console(&pool);
        let rows = console.rows("SELECT name, reads FROM servers").texts();
        eprintln!("{seeds} seeds; reads: {rows:?}");
    }
}
