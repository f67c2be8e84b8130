//! Live upgrade: another process takes the listeners and the clients, and nobody notices.
//!
//! The clients stay connected over all of it; what each has (session, prepared statements, open
//! transactions) is asked for behind each upgrade. A successor that stops at a step is one of the
//! test's own, which speaks the messages of an upgrade by hand.

use crate::console::{CONSOLE, admin, rows};
use crate::on_call::first_row;
use crate::rules::digest_of;
use crate::world::*;
use handover::Record;
use reactor::Right;
use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Command as Program, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use testkit::oracle::{Backends, Pair, Step, Verdict, draw, ground};
use testkit::output::Output;
use testkit::proxy::{At, Passes, Proxy, Wrong};

/// The longest that a message may take under gdb, which reads all symbols of the program first.
const GDB_LIMIT: Duration = Duration::from_secs(90);
/// The version of the messages that are said by hand here.
const VERSION: u8 = 12;

/// A pool with these settings, and how another one like it is started.
struct Line {
    pool: Pool,
    arguments: Vec<String>,
}

impl Line {
    fn start(real: &Real, name: &str, extra: &str) -> Line {
        Line::start_with(real, name, extra, &[])
    }

    fn start_with(real: &Real, name: &str, extra: &str, more: &[&str]) -> Line {
        Line::start_at(&real.address(), (real, name), extra, more)
    }

    /// A pool that reaches the server at another address.
    fn start_at(at: &Address, (real, name): (&Real, &str), extra: &str, more: &[&str]) -> Line {
        let text = config(at, extra);
        let file = config_file(real, name, &text);
        let mut arguments = vec!["--config".to_owned(), file.to_str().unwrap().to_owned()];
        arguments.extend(more.iter().map(|&word| word.to_owned()));
        let pool = Pool::start(binary(), &words(&arguments));
        Line {
            pool: pool.unwrap_or_else(|why| panic!("{why}")),
            arguments,
        }
    }

    fn address(&self) -> &Address {
        &self.pool.address
    }

    /// Lets another process take over; returns what the old one has said, once it has ended.
    fn upgrade(&mut self) -> String {
        ended(self.begin_upgrade())
    }

    /// Begins an upgrade, while the old process may have clients left.
    fn begin_upgrade(&mut self) -> Pool {
        let new = self.pool.succeed(binary(), &words(&self.arguments));
        let new = new.unwrap_or_else(|why| panic!("{why}\nold: {}", self.pool.said()));
        std::mem::replace(&mut self.pool, new)
    }
}

fn own_shop() -> Option<Real> {
    let real = pooled(own_server)?;
    real.execute(&["CREATE DATABASE shop"]);
    Some(real)
}

/// Such a pool in front of a server of the test's own, which it may stop.
fn own_line(name: &str) -> Option<(Real, Line)> {
    let real = own_shop()?;
    let line = Line::start(&real, name, "backends_max = 4\ngroups = 1");
    Some((real, line))
}

fn words(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}

/// A client with something of everything, and what it expects.
struct Rich {
    client: Client,
    number: usize,
    id: String,
    prepared: u32,
}

impl Rich {
    fn new(address: &Address, number: usize) -> Rich {
        Rich::of(login(address, &app()), number)
    }

    fn of(mut client: Client, number: usize) -> Rich {
        client.must(&format!("USE {}", schema(number)));
        client.must(&format!("SET @mine = 'value {number}', @n = {number}"));
        let wait = 1000 + number;
        let sql = format!("SET SESSION sql_mode = 'ANSI', wait_timeout = {wait}");
        client.must(&sql);
        client.must("SET NAMES latin1");
        let id = client.value("SELECT CONNECTION_ID()");
        let prepared = client.prepare("SELECT CONCAT(?, '-', @mine)").id;
        execute(&mut client, prepared, number);
        client.must(&format!("SELECT LAST_INSERT_ID({})", 7000 + number));
        Rich {
            client,
            number,
            id,
            prepared,
        }
    }

    fn check(&mut self) {
        let number = self.number;
        let client = &mut self.client;
        assert_eq!(client.value("SELECT CONNECTION_ID()"), self.id);
        let last = client.value("SELECT LAST_INSERT_ID()");
        assert_eq!(last, (7000 + number).to_string());
        assert_eq!(client.value("SELECT DATABASE()"), schema(number));
        assert_eq!(client.value("SELECT @mine"), format!("value {number}"));
        let wait = client.value("SELECT @@wait_timeout");
        assert_eq!(wait, (1000 + number).to_string());
        assert!(client.value("SELECT @@sql_mode").contains("ANSI_QUOTES"));
        assert_eq!(client.value("SELECT @@character_set_client"), "latin1");
        // Without types: those that it has sent before the upgrade.
        let outcomes = client.execute_again(self.prepared, &[Some(b"q")]);
        let text = outcomes.unwrap().last().unwrap().rows().texts();
        assert_eq!(text, [[format!("q-value {number}")]]);
        client.must(&format!("SELECT LAST_INSERT_ID({})", 7000 + number));
    }
}

fn schema(number: usize) -> &'static str {
    ["shop", "closed", "test"][number % 3]
}

fn execute(client: &mut Client, id: u32, number: usize) {
    let outcomes = client.execute(id, &[Some(b"p")], false).unwrap();
    let text = outcomes.last().unwrap().rows().texts();
    assert_eq!(text, [[format!("p-value {number}")]]);
}

#[test]
fn sessions_go_to_the_next_process_and_to_the_one_after() {
    for real in pooled_servers() {
        real.execute(&["CREATE DATABASE IF NOT EXISTS test"]);
        let name = format!("upgrade-{:?}.toml", real.flavour());
        let mut line = Line::start(real, &name, "backends_max = 8\ngroups = 2");
        let mut all: Vec<Rich> = (0..40).map(|n| Rich::new(line.address(), n)).collect();
        for round in 0..3 {
            let said = line.upgrade();
            assert!(said.contains("handed over: 4"), "{round}: {said}");
            all.iter_mut().for_each(Rich::check);
            // Whoever comes now has a number of its own.
            let mut new = login(line.address(), &app());
            let id = new.value("SELECT CONNECTION_ID()");
            assert!(all.iter().all(|rich| rich.id != id), "{id}");
            all.push(Rich::new(line.address(), all.len()));
        }
    }
}

#[test]
fn rules_go_to_the_next_process_also_while_clients_do() {
    for real in pooled_servers() {
        let name = format!("upgrade-rules-{:?}.toml", real.flavour());
        let extra = format!("backends_max = 8\ngroups = 2\n{CONSOLE}");
        let mut line = Line::start(real, &name, &extra);
        let mut old_console = admin(&console_of(&line.pool));
        let (mut client, mut busy) = (login(line.address(), &app()), login(line.address(), &app()));
        client.script("SELECT 'first'; DO 'second'");
        let first = digest_of(&mut old_console, "SELECT ?");
        let second = digest_of(&mut old_console, "DO ?");
        old_console.must(&format!("REJECT DIGEST '{first}' WITH 'no' FOR 600"));
        old_console.must("SET USER 'app' LIMIT clients_max = 2");
        let id = busy.value("SELECT CONNECTION_ID() FROM DUAL");
        begin(&mut busy, HOLD);
        busy.receive().unwrap();
        send(&mut busy, "SELECT SLEEP(60) FROM DUAL");
        let running = format!("SELECT id FROM running WHERE id = {id}");
        first_row(&mut old_console, &running);
        let old = line.begin_upgrade();
        // The client may be at either process.
        assert_eq!(client.failure("SELECT 'first'").code, 9512);
        line.pool.wait_for("event=listening").unwrap();
        old_console.must(&format!("REJECT DIGEST '{second}'"));
        // Until the new process has heard of it.
        wait_while(|| {
            let outcomes = client.query("DO 'second'").unwrap();
            !matches!(&outcomes[..], [Outcome::Failed(failure)] if failure.code == 9512)
        });
        // With its last client the old process ends, and its console may end before it answers.
        let _ = old_console.query(&format!("KILL {id}"));
        ended(old);
        let mut console = admin(&console_of(&line.pool));
        let question = "SELECT rule, target, value, message, seconds_left BETWEEN 1 AND 600 \
                        FROM rules ORDER BY target = ";
        let shown = rows(
            &mut console,
            &format!("{question}'app', target = '{second}'"),
        );
        assert_eq!(shown[0], ["reject", &first, "NULL", "no", "1"]);
        assert_eq!(shown[1], ["reject", &second, "NULL", "", "NULL"]);
        assert_eq!(
            shown[2..],
            [["user", "app", "clients_max = 2", "NULL", "NULL"]]
        );
        let _another = login(line.address(), &app());
        assert!(Client::connect(line.address(), &app()).is_err());
    }
}

#[test]
fn what_a_statement_has_left_can_be_asked_for_at_the_next_process() {
    let Some(real) = pooled(server) else { return };
    let sql = "CREATE OR REPLACE TABLE shop.left_by (a INT PRIMARY KEY, b INT); \
               INSERT INTO shop.left_by VALUES (1, 1), (2, 1), (3, 1)";
    real.script(sql);
    let file = real.folder().join("upgrade.sock");
    let path = file.to_str().unwrap().to_owned();
    let extra = "backends_max = 8\ngroups = 2";
    let mut line = Line::start_with(real, "upgrade-left.toml", extra, &["--listen", &path]);
    let (address, socket) = (line.address().clone(), Address::Unix(file));
    let mut warned = login(&address, &app());
    warned.must("SELECT CAST('x' AS SIGNED)");
    let mut counted = login(&address, &app());
    counted.must("UPDATE shop.left_by SET b = 2");
    let mut found = login(&address, &app());
    found.must("(SELECT SQL_CALC_FOUND_ROWS a FROM shop.left_by UNION SELECT 9) LIMIT 1");
    let all = found.value("SELECT FOUND_ROWS()");
    found.must("(SELECT SQL_CALC_FOUND_ROWS a FROM shop.left_by UNION SELECT 9) LIMIT 1");
    let mut failed = login(&address, &app());
    failed.failure("SELECT nothing FROM shop.left_by");
    let mut packed = login(&address, &app().with(cap::COMPRESS));
    packed.must("SET @long = REPEAT('x', 10000)");
    let mut local = login(&socket, &app());
    local.must("SET @a = 'local'");
    let mut half = login(&address, &app());
    half.must("SET @a = 7");
    let command = b"\x0a\0\0\0\x03SELECT @a";
    half.send_raw(&command[..7]).unwrap();
    line.upgrade();
    let warning = format!("{:?}", warned.rows("SHOW WARNINGS").texts());
    assert!(warning.contains("1292"), "{warning}");
    assert_eq!(counted.value("SELECT ROW_COUNT()"), "3");
    assert_eq!(found.value("SELECT FOUND_ROWS()"), all);
    let error = format!("{:?}", failed.rows("SHOW WARNINGS").texts());
    assert!(error.contains("1054"), "{error}");
    assert_eq!(packed.value("SELECT LENGTH(@long)"), "10000");
    assert_eq!(packed.value("SELECT @long"), "x".repeat(10_000));
    assert_eq!(local.value("SELECT @a"), "local");
    let mut late = login(&socket, &app());
    assert_eq!(late.value("SELECT 1"), "1");
    let answered = half.exchange(&command[7..], Command::Query).unwrap();
    assert_eq!(answered[0].rows().only(), "7");
}

#[test]
fn sessions_that_began_under_other_values_go_together() {
    let (mut real, mut line) = or_return!(own_line("upgrade-begun.toml"));
    let mut all = vec![login(line.address(), &app())];
    for (name, value) in [("lock_wait_timeout", 109), ("default_week_format", 3)] {
        login(line.address(), &app()).must(&format!("SET GLOBAL {name} = {value}"));
        let told = format!("the server's global values have changed ({name})");
        line.pool.wait_for(&told).unwrap();
        all.push(login(line.address(), &app()));
    }
    let ask = "SELECT CONCAT(@@lock_wait_timeout, ' ', @@default_week_format)";
    let mut told = || all.iter_mut().map(|c| c.value(ask)).collect::<Vec<_>>();
    let before = told();
    let said = line.upgrade();
    assert!(said.contains("handed over: 3"), "{said}");
    assert_eq!(told(), before);
    assert_eq!(before[2], "109 3");
    assert_ne!(before[0], before[1]);
    real.stop();
}

#[test]
fn a_successor_takes_nobody_before_it_knows_the_servers_global_values() {
    let Some(real) = pooled(server) else { return };
    real.execute(&["CREATE DATABASE IF NOT EXISTS test"]);
    let proxy = Proxy::start(([127, 0, 0, 1], real.port()).into());
    let extra = "backends_max = 4\ngroups = 2\ndrain_ms_max = 3000";
    let mut line = Line::start_at(&proxy.address, (real, "upgrade-blind.toml"), extra, &[]);
    let mut all: Vec<Rich> = (0..4)
        .map(|number| Rich::new(line.address(), number))
        .collect();
    // Asked by a process that has not known any.
    let names = b"information_schema.SYSTEM_VARIABLES";
    proxy.go_wrong(At::Said(names), Passes::Nothing, Wrong::Closed);
    // One that is never told gives up, and all is as before.
    let ended = line.pool.succeed(binary(), &words(&line.arguments)).err();
    says(&ended.unwrap(), "the server has not told its global values");
    assert!(proxy.mend() > 1, "it asks again");
    all.iter_mut().for_each(Rich::check);
    proxy.go_wrong(At::Said(names), Passes::Nothing, Wrong::Closed);
    let said = std::thread::scope(|scope| {
        scope.spawn(|| {
            wait_while(|| proxy.wrong_count() == 0);
            proxy.mend();
        });
        line.upgrade()
    });
    says(&said, "handed over: 4");
    all.iter_mut().for_each(Rich::check);
}

#[test]
fn open_transactions_and_pins_go_with_their_backends() {
    pooled_servers().for_each(transactions_and_pins_go);
}

fn transactions_and_pins_go(real: &Real) {
    fresh_schema(real, "upgraded");
    let sql = "CREATE TABLE upgraded.t (a INT PRIMARY KEY); \
               CREATE TABLE upgraded.counted_on (id INT AUTO_INCREMENT PRIMARY KEY, a INT)";
    real.script(sql);
    let extra = "backends_max = 6\ngroups = 1\ndrain_ms_max = 20000";
    let name = format!("upgrade-transaction-{:?}.toml", real.flavour());
    let mut line = Line::start(real, &name, extra);
    let address = line.address().clone();
    let account = app().schema("upgraded");
    let mut other = login(&address, &account);
    other.must("SET @a = 5");
    let mut open = login(&address, &account);
    open.must("SET @mine = 'open', SESSION sql_mode = 'ANSI'");
    let insert = open.prepare("INSERT INTO t VALUES (?)").id;
    open.must("PREPARE named FROM 'SELECT @mine'");
    open.must(HOLD);
    open.execute(insert, &[Some(b"1")], false).unwrap();
    assert_eq!(open.value("EXECUTE named"), "open");
    // What it has left is read back when the transaction has ended.
    open.script("INSERT INTO counted_on (a) VALUES (1); SELECT CAST('x' AS SIGNED)");
    // A user variable that is not read back before its transaction has ended.
    let mut late = login(&address, &account);
    late.must("SET @late = 'late'");
    late.must(HOLD);
    late.must("INSERT INTO counted_on (a) VALUES (2)");
    // A transaction that no backend knows of yet.
    let mut begun = login(&address, &account);
    begun.must("BEGIN");
    let mut announced = login(&address, &account);
    announced.must("SET TRANSACTION READ ONLY");
    let mut locked = login(&address, &account);
    locked.must("SELECT GET_LOCK('upgrade', 0)");
    // An EOF has no room for what MySQL reports, so that it owes that behind each SELECT.
    let old = account.with(cap::COMPRESS).without(cap::DEPRECATE_EOF);
    let mut temporary = login(&address, &old);
    temporary.script("CREATE TEMPORARY TABLE kept (a INT); INSERT INTO kept VALUES (7)");
    for round in 0..3 {
        let said = line.upgrade();
        assert!(said.contains("handed over: 7"), "{round}: {said}");
        assert_eq!(other.value("SELECT COUNT(*) FROM t"), "0");
        let own = open.value("SELECT COUNT(*) FROM t");
        assert_eq!(own, (round + 1).to_string());
        let a = (round + 2).to_string();
        open.execute_again(insert, &[Some(a.as_bytes())]).unwrap();
        assert_eq!(open.value("EXECUTE named"), "open");
        assert_eq!(other.value("SELECT IS_FREE_LOCK('upgrade')"), "0");
        assert_eq!(temporary.value("SELECT a FROM kept"), "7");
    }
    let refused = announced.failure("INSERT INTO t VALUES (100)");
    assert_eq!(refused.code, 1792, "{refused:?}");
    open.must("COMMIT");
    assert_eq!(other.value("SELECT COUNT(*) FROM t"), "4");
    assert_eq!(open.value("SELECT LAST_INSERT_ID()"), "1");
    assert_eq!(open.value("SELECT @mine"), "open");
    assert!(open.value("SELECT @@sql_mode").contains("ANSI_QUOTES"));
    locked.must("SELECT RELEASE_LOCK('upgrade')");
    assert_eq!(other.value("SELECT IS_FREE_LOCK('upgrade')"), "1");
    temporary.must("DROP TEMPORARY TABLE kept");
    assert_eq!(other.value("SELECT @a"), "5");
    late.must("COMMIT");
    assert_eq!(late.value("SELECT @late"), "late");
    drop((announced, late));
    begun.script("INSERT INTO t VALUES (101); ROLLBACK");
    assert_eq!(begun.value("SELECT COUNT(*) FROM t"), "4");
    // What has come serves nobody else, and is closed when it is checked in.
    line.upgrade();
    assert_eq!(open.value("EXECUTE named"), "open");
}

/// The keys of TLS go along, with what is half sent, whatever lies over and under it.
#[test]
fn clients_under_tls_go_with_their_keys() {
    let Some(real) = pooled(server) else { return };
    let sql = "CREATE DATABASE IF NOT EXISTS test; \
               CREATE OR REPLACE TABLE shop.sealed (a INT, b INT)";
    real.script(sql);
    let under_tls = tls(real, "required");
    let extra = format!("backends_max = 8\ngroups = 1\ndrain_ms_max = 20000\n{under_tls}");
    let mut line = Line::start(real, "upgrade-tls.toml", &extra);
    let secured = app().with(cap::SSL);
    let packed = secured.clone().with(cap::COMPRESS);
    let accounts = [
        secured.clone(),
        secured.tls12(),
        packed.clone(),
        packed.tls12(),
    ];
    let connect = |line: &Line, account| {
        let client = login(line.address(), account);
        assert!(client.is_tls());
        client
    };
    let mut idle: Vec<Rich> = (0..)
        .zip(&accounts)
        .map(|(number, account)| Rich::of(connect(&line, account), number))
        .collect();
    let mut open: Vec<Client> = accounts.iter().map(|a| connect(&line, a)).collect();
    for (number, client) in open.iter_mut().enumerate() {
        client.must(HOLD);
        client.must(&format!("INSERT INTO shop.sealed VALUES ({number}, 0)"));
    }
    for round in 1..=3 {
        let text = format!("SELECT {round} + 40");
        let command = [(Command::Query, text.as_bytes())];
        let all = idle
            .iter_mut()
            .map(|rich| &mut rich.client)
            .chain(&mut open);
        let cut = |(number, client): (usize, &mut Client)| {
            // In the header of the record, in its middle, and behind all but its last byte.
            let len = [3, 20, 35][(number + round) % 3];
            client.send_in_part(&command, len).unwrap()
        };
        let rests: Vec<Vec<u8>> = all.enumerate().map(cut).collect();
        let said = line.upgrade();
        assert!(said.contains("handed over: 8"), "{round}: {said}");
        let all = idle
            .iter_mut()
            .map(|rich| &mut rich.client)
            .chain(&mut open);
        for (client, rest) in all.zip(rests) {
            assert!(!rest.is_empty());
            client.send_rest(&rest).unwrap();
            let outcomes = client.receive().unwrap();
            let expected = [[(round + 40).to_string()]];
            assert_eq!(outcomes[0].rows().texts(), expected);
        }
        idle.iter_mut().for_each(Rich::check);
        for (number, client) in open.iter_mut().enumerate() {
            let sql = format!("INSERT INTO shop.sealed VALUES ({number}, {round})");
            client.must(&sql);
            let own = format!("SELECT COUNT(*) FROM shop.sealed WHERE a = {number}");
            assert_eq!(client.value(&own), (round + 1).to_string());
            // More than a record, both ways.
            let filler = "x".repeat(70_000);
            let long = format!("SELECT LENGTH('{filler}'), REPEAT('y', 70000)");
            assert_eq!(client.rows(&long).texts()[0][1].len(), 70_000);
        }
        // Who comes now has its own handshake.
        assert_eq!(connect(&line, &accounts[round]).value("SELECT 1"), "1");
    }
    for client in &mut open {
        client.must("COMMIT");
    }
    let count = idle[0].client.value("SELECT COUNT(*) FROM shop.sealed");
    assert_eq!(count, "16");
}

#[test]
fn what_cannot_go_is_drained_last() {
    let Some(real) = pooled(server) else { return };
    let extra = "backends_max = 4\ngroups = 1\ndrain_ms_max = 300";
    let mut line = Line::start(real, "upgrade-drain.toml", extra);
    let mut reading = login(line.address(), &app());
    let two = reading.prepare("SELECT 1 UNION SELECT 2").id;
    reading.execute(two, &[], true).unwrap();
    let mut idle = login(line.address(), &app());
    let old = line.begin_upgrade();
    let (_, said) = old.wait();
    says(&said, "1 clients are still here: holding 1");
    assert!(reading.query("SELECT 1").is_err(), "its process has ended");
    assert_eq!(idle.value("SELECT 1"), "1");
}

#[test]
fn under_load_no_statement_fails_and_none_is_done_twice() {
    const CLIENTS: usize = 24;
    const UPGRADES: usize = 5;
    let Some(real) = pooled(server) else { return };
    real.script("CREATE OR REPLACE TABLE shop.counted (client INT PRIMARY KEY, n BIGINT NOT NULL)");
    let mut line = Line::start(real, "upgrade-load.toml", "backends_max = 8\ngroups = 2");
    let address = line.address().clone();
    let (stop, opened) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let _end = Stop(&stop);
        let worker = |number: usize| {
            let (stop, address) = (&stop, &address);
            move || {
                let mut client = login(address, &app());
                client.must(&format!("INSERT INTO shop.counted VALUES ({number}, 0)"));
                client.must(&format!("SET @number = {number}"));
                let mut done = 0u64;
                while !stop.load(Ordering::Relaxed) {
                    let transaction = done.is_multiple_of(2);
                    if transaction {
                        client.must(HOLD);
                    }
                    client.must("UPDATE shop.counted SET n = n + 1 WHERE client = @number");
                    if transaction {
                        client.must("COMMIT");
                    }
                    done += 1;
                }
                let n = client.value("SELECT n FROM shop.counted WHERE client = @number");
                assert_eq!(n, done.to_string());
                done
            }
        };
        let workers: Vec<_> = (0..CLIENTS).map(|n| scope.spawn(worker(n))).collect();
        // Connections come and go all the time, too.
        let comers = scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let mut client = login(&address, &app());
                assert_eq!(client.value("SELECT 1"), "1");
                opened.fetch_add(1, Ordering::Relaxed);
            }
        });
        for _ in 0..UPGRADES {
            line.upgrade();
        }
        stop.store(true, Ordering::Relaxed);
        comers.join().unwrap();
        let done: u64 = workers
            .into_iter()
            .map(|worker| worker.join().unwrap())
            .sum();
        assert!(done > 0 && opened.load(Ordering::Relaxed) > 0);
    });
}

/// One statement always stands behind the one that runs, so they are idle at no moment at which
/// nothing has happened.
#[test]
fn clients_that_are_never_idle_go_between_two_statements() {
    const CLIENTS: usize = 20;
    const UPGRADES: usize = 3;
    let Some(real) = pooled(server) else { return };
    real.execute(&[
        "CREATE OR REPLACE TABLE shop.never_idle (id BIGINT AUTO_INCREMENT PRIMARY KEY, \
         client INT NOT NULL, n BIGINT NOT NULL, UNIQUE (client, n))",
    ]);
    let mut line = Line::start(real, "upgrade-busy.toml", "backends_max = 8\ngroups = 2");
    let address = line.address().clone();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _end = Stop(&stop);
        let worker = |number: usize| {
            let (stop, address) = (&stop, &address);
            move || {
                let compressed = if number % 4 == 3 { cap::COMPRESS } else { 0 };
                let mut client = login(address, &app().with(compressed));
                client.must(&format!("SET @number = {number}"));
                let insert = |n: u64| {
                    let sql = match number % 4 {
                        // Each leaves something that only its backend knows, or is read back.
                        0 => format!("SELECT {n}, CAST('x' AS SIGNED)"),
                        1 => format!("SELECT SQL_CALC_FOUND_ROWS {n} FROM shop.never_idle LIMIT 1"),
                        _ => format!("INSERT INTO shop.never_idle VALUES (NULL, @number, {n})"),
                    };
                    sql.into_bytes()
                };
                let mut sent = 1;
                client.send(&[(Command::Query, &insert(0))]).unwrap();
                while !stop.load(Ordering::Relaxed) {
                    client.send(&[(Command::Query, &insert(sent))]).unwrap();
                    sent += 1;
                    answered(&mut client);
                }
                answered(&mut client);
                let sql = format!("SELECT COUNT(*) FROM shop.never_idle WHERE client = {number}");
                let expected = if number % 4 < 2 { 0 } else { sent };
                assert_eq!(client.value(&sql), expected.to_string());
                assert_eq!(client.value("SELECT @number"), number.to_string());
            }
        };
        let workers: Vec<_> = (0..CLIENTS).map(|n| scope.spawn(worker(n))).collect();
        for _ in 0..UPGRADES {
            let said = line.upgrade();
            assert!(said.contains(&format!("handed over: {CLIENTS}")), "{said}");
        }
        stop.store(true, Ordering::Relaxed);
        workers
            .into_iter()
            .for_each(|worker| worker.join().unwrap());
    });
}

/// The answer to one statement, which is no error.
fn answered(client: &mut Client) {
    for outcome in client.receive().unwrap() {
        if let Outcome::Failed(failure) = outcome {
            panic!("{failure:?}");
        }
    }
}

/// Processes take over all the time, in the middle of scripts too.
#[test]
fn the_oracle_finds_no_difference_while_processes_take_over() {
    const SEEDS: u64 = 150;
    let options = ["--innodb-lock-wait-timeout=2", "--lock-wait-timeout=4"];
    let real = or_return!(own(Real::start(&options)));
    real.create_user("other", "other's");
    let mut admin = real.admin();
    admin.must("SET SESSION innodb_lock_wait_timeout = 50, SESSION lock_wait_timeout = 50");
    for sql in ground::statements() {
        admin.must(&sql);
    }
    let extra = "backends_max = 5\ngroups = 1\nwait_ms_max = 20000\ndrain_ms_max = 60000";
    let Line { pool, arguments } = Line::start(&real, "upgrade-oracle.toml", extra);
    let (pid, address) = (pool.pid(), pool.address.clone());
    let mut pair = Pair {
        admin,
        direct: real.address(),
        pool,
        backends: 5,
    };
    let is_over = AtomicBool::new(false);
    let (upgrades, differs) = std::thread::scope(|scope| {
        let _end = Stop(&is_over);
        let upgrading = scope.spawn(|| {
            let arguments = words(&arguments);
            let (mut pid, mut upgrades) = (pid, 0);
            let mut pools = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                let next = Pool::in_place_of((pid, &address), binary(), &arguments);
                let next = next.unwrap_or_else(|why| panic!("{why}"));
                pid = next.pid();
                // Until the one before has ended, which it does with its last client.
                next.wait_for("event=upgraded").unwrap();
                upgrades += 1;
                pools.push(next);
            }
            upgrades
        });
        let mut differs = None;
        for seed in 1..=SEEDS {
            let room = Backends {
                count: 3,
                of: real.flavour(),
            };
            let mut script = draw(seed, room);
            // A client of one process is unknown to the other.
            let kills = |step: &Step| {
                let act = format!("{:?}", step.act);
                act.to_ascii_uppercase().contains("KILL")
            };
            if script.iter().any(kills) {
                continue;
            }
            script.iter_mut().for_each(|step| step.late = false);
            if let Verdict::Differs(difference) = pair.compare(&script) {
                differs = Some(format!("seed {seed}: {difference}"));
                break;
            }
        }
        is_over.store(true, Ordering::Relaxed);
        (upgrading.join().unwrap(), differs)
    });
    assert!(differs.is_none(), "{}", differs.unwrap());
    assert!(upgrades > 2, "{upgrades} upgrades");
    eprintln!("{SEEDS} seeds, {upgrades} upgrades");
}

/// A successor that the test makes by hand.
struct Fake(OwnedFd);

impl Fake {
    fn connect(pool: &Pool) -> Fake {
        Fake(handover::dial(&format!("onramp-pool-{}", pool.pid())).unwrap())
    }

    /// Asks the pool, as a process of version `version` would.
    fn hello(pool: &Pool, version: u8) -> Fake {
        let fake = Fake::connect(pool);
        fake.say(&[1, 0, 0, 0, 1, version]);
        fake
    }

    fn say(&self, bytes: &[u8]) {
        assert_eq!(handover::send(&self.0, bytes, &[]).unwrap(), bytes.len());
    }
}

/// A pool with clients that have something to lose, and a check that it goes on.
struct Attended {
    line: Line,
    rich: Rich,
    /// Client in a transaction that has written.
    open: Client,
}

impl Attended {
    fn start(real: &Real, name: &str) -> Attended {
        real.execute(&["CREATE TABLE IF NOT EXISTS shop.attended (name VARCHAR(99), a INT)"]);
        let line = Line::start(real, name, "backends_max = 4\ngroups = 1");
        let rich = Rich::new(line.address(), 0);
        let mut open = login(line.address(), &app());
        open.must(&format!("SET @name = '{name}'"));
        open.must("DELETE FROM shop.attended WHERE name = @name");
        open.must(HOLD);
        open.must("INSERT INTO shop.attended VALUES (@name, 1)");
        Attended { line, rich, open }
    }

    fn goes_on(mut self) {
        self.line.pool.wait_for("event=upgrade-failed").unwrap();
        self.rich.check();
        self.open
            .must("INSERT INTO shop.attended VALUES (@name, 2)");
        let mut new = login(self.line.address(), &app());
        assert_eq!(new.value("SELECT 1"), "1");
        drop(new);
        // The next one may still take over.
        self.line.upgrade();
        self.rich.check();
        let counted = "SELECT COUNT(*) FROM shop.attended WHERE name = @name";
        assert_eq!(self.open.value(counted), "2");
        self.open.must("ROLLBACK");
        assert_eq!(self.open.value(counted), "0");
    }
}

/// An enum of steps, each of which may be the last of its process, and all of them.
macro_rules! steps {
    ($(#[$doc:meta])* $name:ident $($step:ident)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        enum $name { $($step),* }

        impl $name {
            const ALL: &[$name] = &[$($name::$step),*];
        }
    };
}

steps! {
    /// The last that a successor does before it dies.
    Last
    Connects SaysHello SaysThatItCannot IsReadyWithoutGroups IsOfferedTheRight IsReachedByGroup
    HasListeners AcknowledgesListeners HasClients AcknowledgesClientsInPart AcknowledgesTooFew
}

impl Last {
    /// Plays a successor up to here; then all of its sockets are closed.
    fn play(self, pool: &Pool) {
        if self == Last::Connects {
            drop(Fake::connect(pool));
            return;
        }
        let alone = [
            Last::SaysHello,
            Last::SaysThatItCannot,
            Last::IsReadyWithoutGroups,
        ];
        let needs_groups = !alone.contains(&self);
        let listener = needs_groups.then(listen_as_group);
        let fake = Fake::hello(pool, VERSION);
        if self == Last::SaysThatItCannot {
            fake.say(b"\x03\0\0\0\x05\x02no");
        } else if self != Last::SaysHello {
            fake.say(&[0, 0, 0, 0, 3]);
        }
        let Some(listener) = listener else {
            // Until it has been heard.
            pool.wait_for("event=upgrade").unwrap();
            return;
        };
        hear(&fake.0, RIGHT, &mut Vec::new());
        if self == Last::IsOfferedTheRight {
            return;
        }
        say(&fake.0, RIGHT, &[], &[]);
        let socket = accept(&listener);
        if self == Last::IsReachedByGroup {
            return;
        }
        let mut descriptors = Vec::new();
        hear(&socket, LISTENERS, &mut descriptors);
        if self == Last::HasListeners {
            return;
        }
        // Taken, with no verdict.
        let taken = [1, 0, 0, 0, 9, 0];
        handover::send(&socket, &taken, &[]).unwrap();
        if self == Last::AcknowledgesListeners {
            return;
        }
        hear(&socket, CLIENTS, &mut descriptors);
        // Clients, and a backend.
        assert!(descriptors.len() > 2, "{descriptors:?}");
        match self {
            Last::AcknowledgesClientsInPart => {
                let both = [3, 0, 0, 0, 9, 2, 0, 0];
                handover::send(&socket, &both[..7], &[]).unwrap();
            }
            Last::AcknowledgesTooFew => {
                handover::send(&socket, &taken, &[]).unwrap();
                pool.wait_for("event=upgrade-failed").unwrap();
            }
            _ => {}
        }
    }
}

#[test]
fn a_successor_that_dies_or_lies_at_any_step_changes_nothing() {
    let Some(real) = pooled(server) else { return };
    real.execute(&["CREATE DATABASE IF NOT EXISTS test"]);
    for &last in Last::ALL {
        eprintln!("{last:?}");
        let attended = Attended::start(real, &format!("upgrade-{last:?}.toml"));
        last.play(&attended.line.pool);
        attended.goes_on();
    }
    // It speaks another version, of before or to come.
    for version in [1, VERSION + 1] {
        let attended = Attended::start(real, &format!("upgrade-version-{version}.toml"));
        let fake = Fake::hello(&attended.line.pool, version);
        let refused = format!("version {version} of the hand-over");
        attended.line.pool.wait_for(&refused).unwrap();
        drop(fake);
        attended.goes_on();
    }
}

/// Clients each of which has its number in `@n`. The first `open` of them are in a transaction in
/// which they have written it: `insert` is the statement up to the number.
fn numbered(at: &Address, count: usize, (open, insert): (usize, &str)) -> Vec<Client> {
    let client = |n| {
        let mut client = login(at, &app());
        client.must(&format!("SET @n = {n}"));
        if n < open {
            client.must(HOLD);
            client.must(&format!("{insert} {n})"));
        }
        client
    };
    (0..count).map(client).collect()
}

/// Number of those clients that are gone, and of the others that have committed what they had
/// written. Whoever is there has its own number.
fn lost_and_written(clients: &mut [Client], open: usize, step: &str) -> (usize, usize) {
    let (mut lost, mut written) = (0, 0);
    for (n, client) in clients.iter_mut().enumerate() {
        let Ok(outcomes) = client.query("SELECT @n") else {
            lost += 1;
            continue;
        };
        assert_eq!(outcomes[0].rows().only(), n.to_string(), "{step}");
        client.must("COMMIT");
        written += usize::from(n < open);
    }
    (lost, written)
}

/// Number of clients that a process says it has given to one that has not taken over.
fn moved_of(said: &str) -> usize {
    let moved = said.split("more, with ").nth(1);
    let moved = moved.and_then(|rest| rest.split(' ').next());
    moved.map_or(0, |number| number.parse().unwrap())
}

/// A successor under gdb, which kills it as it comes to the `number`-th message that it sends or
/// has received; a successor with fewer messages goes on.
struct Stopped {
    /// The debugger; the program that it runs is killed with it.
    gdb: Ended,
    said: Output,
}

impl Stopped {
    fn start(line: &Line, function: &str, number: usize) -> Stopped {
        let mut gdb = Program::new("gdb");
        gdb.args(["-q", "-nx", "-batch", "-iex", "set debuginfod enabled off"]);
        let stop = format!("break handover::frames::Frame::{function}");
        let ignore = format!("ignore 1 {}", number - 1);
        let pass = "handle all nostop noprint pass";
        for command in [pass, &stop, &ignore, "run", "kill"] {
            gdb.args(["-ex", command]);
        }
        let pid = line.pool.pid().to_string();
        gdb.arg("--args").arg(binary());
        gdb.args(["pool", "--listen", &line.address().to_string()]);
        gdb.args(&line.arguments).args(["--upgrade", &pid]);
        gdb.stdin(Stdio::null()).stdout(Stdio::null());
        gdb.stderr(Stdio::piped());
        let mut gdb = gdb.spawn().unwrap();
        let said = Output::of(gdb.stderr.take().unwrap());
        let gdb = Ended(gdb);
        Stopped { gdb, said }
    }

    /// True if it has been killed, and not taken the place of the other process.
    fn is_killed(&mut self, line: &Line) -> bool {
        match self.said.wait_for("event=upgraded", 0, GDB_LIMIT) {
            Ok(_) => false,
            Err(why) => {
                let is_late = why.contains("came in time");
                assert!(!is_late, "{why}\nold: {}", line.pool.said());
                self.gdb.0.wait().unwrap();
                true
            }
        }
    }
}

/// The steps of a hand-over are its messages. A real successor is killed before it sends the first,
/// the second, and so on to the last; and, once more from the first to the last, when it has
/// received one and has done nothing with it yet. Nobody but those whom it has taken may notice.
#[test]
fn a_successor_that_is_killed_at_any_message_leaves_those_whom_it_has_not_taken() {
    const CLIENTS: usize = 150;
    const OPEN: usize = 5;
    let Some(real) = pooled(server) else { return };
    let has_gdb = Program::new("gdb").arg("--version").output();
    if !has_gdb.is_ok_and(|output| output.status.success()) {
        return skip("gdb is not installed");
    }
    real.execute(&["CREATE OR REPLACE TABLE shop.killed_open (step VARCHAR(12), n INT)"]);
    for function in ["to_bytes", "read"] {
        let mut number = 1;
        loop {
            let step = format!("{function} {number}");
            let line = Line::start(real, &format!("upgrade-{step}.toml"), "groups = 1");
            let insert = format!("INSERT INTO shop.killed_open VALUES ('{step}',");
            let mut clients = numbered(line.address(), CLIENTS, (OPEN, &insert));
            let mut stopped = Stopped::start(&line, function, number);
            let is_killed = stopped.is_killed(&line);
            // Before its first message nobody knows of it.
            let is_known = is_killed && step != "to_bytes 1";
            let said = is_known.then(|| line.pool.wait_for("event=upgrade-failed"));
            let moved = match said {
                None if is_killed => 0,
                Some(Ok(said)) => moved_of(&said),
                // It had all of them by then.
                _ => {
                    let said = line.pool.wait_for("handed over: ");
                    said.unwrap_or_else(|why| panic!("{step}: {why}"));
                    CLIENTS
                }
            };
            let (lost, written) = lost_and_written(&mut clients, OPEN, &step);
            let counted = "SELECT COUNT(*) FROM shop.killed_open WHERE step =";
            let counted = real.admin().value(&format!("{counted} '{step}'"));
            assert_eq!(counted, written.to_string(), "{step}");
            eprintln!("{step}: {moved} of {CLIENTS} clients were taken, {lost} lost");
            let expected = if is_killed { moved } else { 0 };
            assert_eq!(lost, expected, "{step}: {}", line.pool.said());
            if !is_killed {
                break;
            }
            if moved < CLIENTS {
                let mut come = login(line.address(), &app());
                assert_eq!(come.value("SELECT 1"), "1", "{step}");
            }
            number += 1;
        }
        assert!(number > 4, "{function}: only {number} messages");
    }
}

steps! {
    /// The last that a process does that is to be succeeded, before it dies.
    LastOfOld
    Accepts SpeaksAnotherVersion Welcomes HearsThatItIsReady LeavesAnotherThatAccepts
    SaysThatItGoesOn OffersTheRight ReachesGroup GivesListeners GivesClientsInPart GivesNonsense
}

impl LastOfOld {
    /// Refusal by a new process that does not take over; `None`: it serves.
    fn refusal(self) -> Option<&'static str> {
        match self {
            LastOfOld::Accepts => Some("it has closed the connection"),
            LastOfOld::SpeaksAnotherVersion => Some("speaks version 11 of the hand-over"),
            LastOfOld::LeavesAnotherThatAccepts => Some("has ended, and another one accepts"),
            LastOfOld::SaysThatItGoesOn => Some("goes on as before: a group has failed"),
            _ => None,
        }
    }

    /// Acts as a process does up to here that listens at `address`; then all its sockets are
    /// closed. It does not take the right to accept: the kernel has released it when a process has
    /// ended.
    fn play(self, main: &OwnedFd, address: &Address, right: &Right) {
        let socket = accept(main);
        let successor = handover::peer(&socket).unwrap().pid;
        let mut none = Vec::new();
        hear(&socket, HELLO, &mut none);
        let refused = |why: &str| {
            let why = [&[u8::try_from(why.len()).unwrap()], why.as_bytes()].concat();
            say(&socket, REFUSED, &why, &[]);
        };
        match self {
            LastOfOld::Accepts => return,
            LastOfOld::SpeaksAnotherVersion => {
                return refused("it speaks version 11 of the hand-over, not 1");
            }
            _ => {}
        }
        let text = address.to_string();
        let tcp: Vec<std::net::SocketAddr> = vec![text.parse().unwrap()];
        // One group, one address of TCP, none of Unix.
        let welcome = (1_u8, tcp, 0_u8).to_bytes().unwrap();
        say(&socket, WELCOME, &welcome, &[right.as_fd()]);
        if self == LastOfOld::Welcomes {
            return;
        }
        hear(&socket, READY, &mut none);
        match self {
            LastOfOld::HearsThatItIsReady => return,
            LastOfOld::LeavesAnotherThatAccepts => return assert!(right.try_take()),
            LastOfOld::SaysThatItGoesOn => return refused("a group has failed"),
            _ => {}
        }
        say(&socket, RIGHT, &[], &[]);
        if self == LastOfOld::OffersTheRight {
            return;
        }
        hear(&socket, RIGHT, &mut none);
        let group = handover::dial(&format!("onramp-pool-{successor}-group-0")).unwrap();
        if self == LastOfOld::ReachesGroup {
            return;
        }
        let listener = std::net::TcpListener::bind(&text).unwrap();
        listener.set_nonblocking(true).unwrap();
        say(&group, LISTENERS, &[0, 0], &[listener.as_fd()]);
        hear(&group, TAKEN, &mut none);
        match self {
            // A record of nine bytes, of which two have come.
            LastOfOld::GivesClientsInPart => {
                let sent = [12, 0, 0, 0, CLIENTS, 1, 9];
                handover::send(&group, &sent, &[listener.as_fd()]).unwrap();
            }
            LastOfOld::GivesNonsense => {
                say(&group, CLIENTS, &[1, 1, 255, 0], &[listener.as_fd()]);
                // It is refused as one that cannot be read, or as a message.
                hear_one_of(&group, &[TAKEN, REFUSED], &mut none);
            }
            _ => {}
        }
    }
}

/// Before it is ready, the new process ends and says why; from then on it serves whoever comes.
#[test]
fn a_process_that_dies_while_it_hands_over_leaves_one_that_serves() {
    let Some(real) = pooled(server) else { return };
    let text = config(&real.address(), "backends_max = 4\ngroups = 1");
    let file = config_file(real, "upgrade-predecessor.toml", &text);
    let arguments = ["--config", file.to_str().unwrap()];
    let own = std::process::id();
    for &last in LastOfOld::ALL {
        eprintln!("{last:?}");
        let address = testkit::onramp::loopback(testkit::onramp::free_port());
        let main = handover::listen_at(&format!("onramp-pool-{own}")).unwrap();
        let right = Right::new().unwrap();
        let new = std::thread::scope(|scope| {
            let new = scope.spawn(|| Pool::in_place_of((own, &address), binary(), &arguments));
            last.play(&main, &address, &right);
            drop(main);
            new.join().unwrap()
        });
        match (last.refusal(), new) {
            (Some(why), Err(said)) => assert!(said.contains(why), "{last:?}: {said}"),
            (None, Ok(pool)) => {
                pool.wait_for("event=upgrade-failed").unwrap();
                let mut client = login(&pool.address, &app());
                assert_eq!(client.value("SELECT 1"), "1");
                drop(client);
                // It can be succeeded in its turn.
                let next = pool.succeed(binary(), &arguments).unwrap();
                let mut client = login(&next.address, &app());
                assert_eq!(client.value("SELECT 1"), "1");
            }
            (expected, Err(said)) => panic!("{last:?}: expected {expected:?}: {said}"),
            (expected, Ok(pool)) => panic!("{last:?}: expected {expected:?}: {}", pool.said()),
        }
    }
}

/// Processes of which each takes the place of the one before while that still serves a client,
/// whose statement waits at a gate. Each logs the user `who` in to the server under another name,
/// by which a client finds who accepted it.
struct Chain<'a> {
    real: &'a Real,
    file: PathBuf,
    address: Address,
    /// Without those that were killed.
    pools: Vec<Option<Pool>>,
    /// Each at the process of its number.
    waiting: Vec<Client>,
    gate: Client,
}

impl<'a> Chain<'a> {
    /// The first process of a chain, with its client.
    fn start(real: &'a Real, name: &str) -> Chain<'a> {
        real.execute(&["CREATE TABLE IF NOT EXISTS shop.gate (a INT)"]);
        let mut gate = real.admin();
        gate.must("LOCK TABLES shop.gate WRITE");
        let file = config_file(real, name, &Chain::settings(real, 0));
        let pool = Pool::start(binary(), &["--config", file.to_str().unwrap()]).unwrap();
        let mut chain = Chain {
            real,
            file,
            address: pool.address.clone(),
            pools: vec![Some(pool)],
            waiting: Vec::new(),
            gate,
        };
        chain.wait_at_gate();
        chain
    }

    /// The settings of the process of this number.
    fn settings(real: &Real, number: usize) -> String {
        real.create_user(&format!("of_{number}"), "of");
        let user = format!(
            "[[user]]\nname = \"who\"\npassword = \"who\"\nbackend_user = \"of_{number}\"\n\
             backend_password = \"of\"\n"
        );
        let top = "backends_max = 4\ngroups = 2\ndrain_ms_max = 60000";
        config(&real.address(), top) + &user
    }

    /// Begins another process, with other settings, in the place of this one.
    fn begin_next(&mut self, before: usize) {
        let number = self.pools.len();
        let text = Chain::settings(self.real, number);
        std::fs::write(&self.file, text).unwrap();
        let place = (self.at(before).pid(), &self.address);
        let arguments = ["--config", self.file.to_str().unwrap()];
        let pool = Pool::begin_in_place_of(place, binary(), &arguments).unwrap();
        self.pools.push(Some(pool));
    }

    /// Begins the next upgrade, and waits until it listens and has a client at work.
    fn next(&mut self) {
        self.begin_next(self.pools.len() - 1);
        let last = self.at(self.pools.len() - 1);
        last.wait_for("event=listening").unwrap();
        self.wait_at_gate();
    }

    /// Adds a client whose statement waits at the gate.
    fn wait_at_gate(&mut self) {
        let mut client = login(&self.address, &app());
        let sql = b"SELECT COUNT(*) FROM shop.gate";
        client.send(&[(Command::Query, sql)]).unwrap();
        self.waiting.push(client);
        let all = "SELECT COUNT(*) FROM information_schema.processlist WHERE \
                   info = 'SELECT COUNT(*) FROM shop.gate' AND state LIKE 'Waiting for table%'";
        let mut admin = self.real.admin();
        self.until("statements at the gate", |chain| {
            admin.value(all) == chain.waiting.len().to_string()
        });
    }

    fn until(&self, what: &str, mut is_so: impl FnMut(&Self) -> bool) {
        within(what, || is_so(self).then_some(()));
    }

    /// The process of this number.
    fn at(&self, number: usize) -> &Pool {
        self.pools[number].as_ref().unwrap()
    }

    /// The processes that accept, of so many logins, by their numbers.
    fn accepting(&self) -> BTreeSet<usize> {
        let accepted = |_| {
            let mut client = login(&self.address, &Account::new("who", "who"));
            let name = client.value("SELECT CURRENT_USER()");
            let number = name.trim_start_matches("of_").trim_end_matches("@%");
            number.parse().unwrap()
        };
        (0..LOGINS).map(accepted).collect()
    }

    /// Ends what waits, but for the clients of this process; everybody is served on.
    fn open_gate(&mut self, without: Option<usize>) {
        self.gate.must("UNLOCK TABLES");
        for (number, client) in self.waiting.iter_mut().enumerate() {
            if Some(number) != without {
                let outcomes = client
                    .receive()
                    .unwrap_or_else(|why| panic!("{number}: {why}"));
                assert_eq!(outcomes[0].rows().only(), "0");
                assert_eq!(client.value("SELECT 7"), "7", "{number}");
            }
        }
    }

    /// Ends every process but this one, with its clients.
    fn ends_but(self, last: usize) -> Option<Pool> {
        let Chain { pools, waiting, .. } = self;
        drop(waiting);
        let mut left = None;
        for (number, pool) in pools.into_iter().enumerate() {
            match pool {
                Some(pool) if number == last => left = Some(pool),
                Some(pool) => drop(ended(pool)),
                None => {}
            }
        }
        left
    }
}

/// Logins by which is seen who accepts: enough for each of two groups of each of two processes.
const LOGINS: usize = 16;

/// The process in the middle has handed over all of its own by then.
#[test]
fn an_upgrade_that_takes_long_does_not_bring_back_settings_of_before() {
    let real = or_return!(own_shop());
    let mut chain = Chain::start(&real, "upgrade-late.toml");
    chain.begin_next(0);
    chain.at(1).wait_for("event=listening").unwrap();
    chain.next();
    assert_eq!(chain.accepting(), [2].into());
    chain.open_gate(None);
    // The clients of both have come to the third by way of the second.
    for (number, pool) in chain.pools.iter_mut().enumerate().take(2) {
        let said = ended(pool.take().unwrap());
        says(&said, "handed over: ");
        assert!(!said.contains("event=upgrade-failed"), "{number}: {said}");
    }
    assert_eq!(chain.accepting(), [2].into());
    let last = chain.ends_but(2).unwrap();
    let said = last.said();
    assert!(!said.contains("event=upgrade-failed"), "{said}");
}

/// Five processes hand over at once, each with a client at work, and one of them is killed at a
/// step of the last one. One of the others accepts then, and nobody else's client notices.
#[test]
fn of_five_upgrades_at_once_any_is_killed_and_one_process_accepts() {
    let real = or_return!(own_shop());
    // Steps of the last process, and whether it is the one before that says so.
    let steps = [
        ("has checked its settings", true),
        ("takes over: it gets", true),
        ("event=listening", false),
    ];
    for victim in 0..5 {
        for (step, by_old) in steps {
            let what = format!("process {victim} is killed at '{step}'");
            eprintln!("{what}");
            let mut chain = Chain::start(&real, "upgrade-chain.toml");
            (1..4).for_each(|_| chain.next());
            assert_eq!(chain.accepting(), [3].into());
            chain.begin_next(3);
            let says = chain.at(if by_old { 3 } else { 4 });
            says.wait_for(step).unwrap();
            // Dropped is killed.
            chain.pools[victim] = None;
            if victim != 4 {
                let mut last = chain.pools[4].take().unwrap();
                chain.until(&what, |_| {
                    last.said().contains("event=listening") || !last.is_running()
                });
                chain.pools[4] = last.is_running().then_some(last);
            }
            if (1..4).contains(&victim) {
                let before = chain.at(victim - 1);
                before.wait_for("event=upgrade-failed").unwrap();
            }
            let accepts = match (victim, &chain.pools[4]) {
                (4, _) => 3,
                (3, None) => 2,
                (_, last) => {
                    assert!(last.is_some(), "{what}");
                    4
                }
            };
            chain.until(&what, |chain| chain.accepting() == [accepts].into());
            chain.open_gate(Some(victim));
            assert_eq!(chain.accepting(), [accepts].into(), "{what}");
            chain.ends_but(accepts);
        }
    }
}

/// A process that stands still has what it needs to accept, and accepts nobody.
#[test]
fn a_successor_that_stands_still_is_given_up_and_ends_when_it_goes_on() {
    let real = or_return!(own_shop());
    let mut chain = Chain::start(&real, "upgrade-still.toml");
    chain.begin_next(0);
    chain.at(1).wait_for("event=listening").unwrap();
    let second = chain.at(1).pid();
    let signal = |name: &str| {
        let done = Program::new("kill")
            .args([name, &second.to_string()])
            .status();
        assert!(done.unwrap().success());
    };
    signal("-STOP");
    // A signal that was sent may not have reached all threads.
    wait_while(|| !stands_still(second));
    chain.gate.must("UNLOCK TABLES");
    let said = chain.at(0).wait_for("event=upgrade-failed").unwrap();
    assert!(said.contains("has not answered within 10 s"), "{said}");
    assert!(said.contains("and accepts again"), "{said}");
    assert_eq!(chain.accepting(), [0].into());
    signal("-CONT");
    logs(
        chain.at(1),
        "event=upgrade-failed",
        "this one ends with its last client",
    );
    ended(chain.pools[1].take().unwrap());
    chain.open_gate(None);
    assert_eq!(chain.accepting(), [0].into());
    // The next one takes over.
    chain.begin_next(0);
    chain.at(2).wait_for("event=upgraded").unwrap();
    assert_eq!(chain.accepting(), [2].into());
    chain.ends_but(2);
}

/// True if all threads of a process are stopped.
fn stands_still(pid: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    threads.map(|thread| thread.unwrap().path()).all(|thread| {
        let stat = std::fs::read_to_string(thread.join("stat")).unwrap_or_default();
        let state = stat.rsplit_once(") ").map(|(_, rest)| rest.chars().next());
        state == Some(Some('T'))
    })
}

/// Looks until there is something, which must come in time.
fn within<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    until(|| look().ok_or_else(|| format!("{what} has not come")))
}

/// Listener at the name of the first group of this process. Tests run at once, and have one name.
fn listen_as_group() -> OwnedFd {
    let name = format!("onramp-pool-{}-group-0", std::process::id());
    within("the name of a group", || handover::listen_at(&name).ok())
}

fn accept(listener: &OwnedFd) -> OwnedFd {
    within("a peer", || reactor::socket::accept(listener).unwrap())
}

/// Kinds of messages.
const HELLO: u8 = 1;
const WELCOME: u8 = 2;
const READY: u8 = 3;
const REFUSED: u8 = 5;
const LISTENERS: u8 = 6;
const CLIENTS: u8 = 8;
const TAKEN: u8 = 9;
const RIGHT: u8 = 10;

/// Says a message of this kind.
fn say(socket: &OwnedFd, kind: u8, body: &[u8], descriptors: &[BorrowedFd<'_>]) {
    let len = u32::try_from(body.len()).unwrap();
    let message = [&len.to_le_bytes(), &[kind][..], body].concat();
    let sent = handover::send(socket, &message, descriptors).unwrap();
    assert_eq!(sent, message.len());
}

/// Hears the other end out until a whole message of this kind has come.
fn hear(socket: &OwnedFd, kind: u8, descriptors: &mut Vec<OwnedFd>) {
    hear_one_of(socket, &[kind], descriptors);
}

/// Hears a message of one of these kinds.
fn hear_one_of(socket: &OwnedFd, kinds: &[u8], descriptors: &mut Vec<OwnedFd>) {
    let mut buffer = vec![0; 1 << 20];
    let mut heard = Vec::new();
    within("a message", || {
        while let Some(header) = heard.first_chunk::<5>() {
            let len = u32::from_le_bytes(header[..4].try_into().unwrap()) as usize;
            if heard.len() < 5 + len {
                break;
            }
            if kinds.contains(&header[4]) {
                return Some(());
            }
            heard.drain(..5 + len);
        }
        if let Ok(count) = handover::receive(socket, &mut buffer, descriptors) {
            assert!(count > 0, "the pool has gone");
            heard.extend_from_slice(&buffer[..count]);
        }
        None
    });
}

#[test]
fn a_successor_that_cannot_begin_leaves_the_old_process_alone() {
    let (mut real, line) = or_return!(own_line("upgrade-config.toml"));
    let mut client = login(line.address(), &app());
    client.must("SET @a = 1");
    let file = &line.arguments[1];
    std::fs::write(file, "backends_max = nothing").unwrap();
    let why = line.pool.succeed(binary(), &words(&line.arguments));
    assert!(why.unwrap_err().contains("backends_max"));
    assert_eq!(client.value("SELECT @a"), "1");
    let is_asked = line.pool.said().contains("event=upgrade");
    assert!(!is_asked, "it was not asked");
    real.stop();
}

/// Groups without clients have ended by then, and have no listeners to hand over.
#[test]
fn a_process_that_drains_is_succeeded_too() {
    let Some(real) = pooled(server) else { return };
    let mut line = Line::start(real, "upgrade-drain.toml", "backends_max = 4\ngroups = 4");
    let mut open = login(line.address(), &app());
    open.must(HOLD);
    line.pool.terminate();
    line.pool.wait_for("event=draining").unwrap();
    line.upgrade();
    assert_eq!(open.value("SELECT 7"), "7");
    open.must("COMMIT");
    for _ in 0..16 {
        assert_eq!(login(line.address(), &app()).value("SELECT 1"), "1");
    }
}

/// The process that a pool has started, once that has taken its place.
fn successor_of(pool: &Pool) -> i32 {
    let said = pool.wait_for("is started from").unwrap();
    let pid = said.split("process ").nth(1).unwrap();
    pool.wait_for("event=upgraded").unwrap();
    pid.split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn a_signal_starts_the_program_that_is_there_now() {
    let Some(real) = pooled(server) else { return };
    let line = Line::start(real, "upgrade-signal.toml", "backends_max = 4\ngroups = 1");
    let mut client = login(line.address(), &app());
    client.must("SET @a = 1");
    line.pool.upgrade();
    let pid = successor_of(&line.pool);
    assert_eq!(client.value("SELECT @a"), "1");
    let address = line.address().clone();
    assert_eq!(login(&address, &app()).value("SELECT 1"), "1");
    testkit::onramp::terminate_process(pid);
    ended(line.pool);
}

#[test]
fn a_reload_that_needs_an_upgrade_begins_one_if_that_is_asked_for() {
    let Some(real) = pooled(server) else { return };
    let name = "upgrade-reload.toml";
    let top = "backends_max = 4\ngroups = 1\nupgrade_on_reload = true";
    let line = Line::start(real, name, top);
    let mut client = login(line.address(), &app());
    client.must("SET @a = 1");
    // What holds at once needs no other process, and the number of groups does not follow one.
    let write = |more: &str| config_file(real, name, &config(&real.address(), more));
    write("backends_max = 3\ngroups = 2\nupgrade_on_reload = true");
    line.pool.hang_up().unwrap();
    let said = line.pool.wait_for("backends_max: 4 -> 3").unwrap();
    says(&said, "only after a restart: groups: 1 -> 2");
    assert!(!said.contains("an upgrade begins"), "{said}");
    let console = "[console]\nlisten = \"127.0.0.1:0\"\nadmin_user = \"admin\"\n\
                   admin_password = \"secret\"\n";
    write(&format!("{top}\ncompression = false\n{console}"));
    line.pool.hang_up().unwrap();
    logs(
        &line.pool,
        "an upgrade begins",
        "compression: true -> false",
    );
    let pid = successor_of(&line.pool);
    assert_eq!(client.value("SELECT @a"), "1");
    let mut console = login(&console_of(&line.pool), &Account::new("admin", "secret"));
    let shown = console.value("SELECT value FROM config WHERE name = 'compression'");
    assert_eq!(shown, "false");
    testkit::onramp::terminate_process(pid);
    ended(line.pool);
}
