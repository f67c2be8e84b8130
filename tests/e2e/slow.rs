//! Clients that do not read: what they may keep from the others, and that they miss nothing.

use crate::audit::{TRAIL, end, id};
use crate::walls::{has, is_root, small_disk};
use crate::world::*;
use testkit::reply::Rows;
use wire::capabilities::{COMPRESS, DEPRECATE_EOF};

/// A reply of about 20 MB, more than all buffers between a server and a client, no two rows of
/// which are alike. On MariaDB and MySQL.
const LONG: &str = "WITH RECURSIVE n(i) AS \
    (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 160) \
    SELECT i, REPEAT(CONCAT(CHAR(97 + i % 26), i), 40000) FROM n";

/// Words about a closed reader that has its backend still.
const KEEPS: &str = "it keeps a backend for its transaction or a pin";

/// A number in a census.
fn number(census: &str, name: &str) -> usize {
    let behind = census.split(&format!(" {name}: ")).nth(1).unwrap();
    let digits = behind.split(|c: char| !c.is_ascii_digit()).next();
    digits.unwrap().parse().unwrap()
}

/// Clients with a long reply each, of which none reads.
fn slow_clients(way: &Address, count: usize) -> Vec<Client> {
    let with = [0, COMPRESS, 0];
    let clients = (0..count).map(|number| {
        let account = app().with(with[number % 3]);
        let account = match number % 2 {
            0 => account,
            _ => account.without(DEPRECATE_EOF),
        };
        let mut client = login(way, &account);
        send(&mut client, LONG);
        client
    });
    clients.collect()
}

fn pool_of(real: &Real, extra: &str) -> Pool {
    let first = "groups = 1\nslow_backends_percent_max = 50";
    fresh_pool(real, &format!("{first}\n{extra}"))
}

fn many(pool: &Pool, count: usize) -> Vec<Client> {
    let open = |_| login(&pool.address, &app());
    (0..count).map(open).collect()
}

/// A client whose short statements are served, so often.
fn has_a_place(pool: &Pool, times: usize) -> Client {
    let mut quick = login(&pool.address, &app());
    for _ in 0..times {
        assert_eq!(quick.value("SELECT 'a place'"), "a place");
    }
    quick
}

/// Takes a long reply, which is what the server itself answers.
fn takes_all(client: &mut Client, expected: &Rows) {
    let outcome = client.receive().unwrap().pop().unwrap();
    assert!(outcome.rows().rows == expected.rows, "something else");
}

fn await_empty_spool(pool: &Pool) {
    let empty = "spooled_clients: 0, spooled_bytes: 0,";
    pool.wait_for_census(empty).unwrap();
}

#[test]
fn who_does_not_read_leaves_half_of_the_backends_and_misses_nothing() {
    for real in pooled_servers() {
        let expected = login(&real.address(), &app()).rows(LONG);
        let pool = pool_of(real, "backends_max = 4\nwait_ms_max = 60000");
        let mut slow = slow_clients(&pool.address, 9);
        // Each is in its reply: those behind the fourth have a backend that another one left.
        assert!(slow.iter().all(|client| client.await_answer().unwrap()));
        let _quick = has_a_place(&pool, 20);
        // While somebody waited, no more than two stayed where they were.
        let census = pool.wait_for_census("clients: 10,").unwrap();
        assert!(number(&census, "spooled") > 0, "{census}");
        assert!(number(&census, "slow_readers") < 4, "{census}");
        let report = pool.report_of(slow[0].talk().greeting.as_ref().unwrap().connection_id);
        assert!(report.unwrap().contains("has taken nothing for"));
        for client in &mut slow {
            takes_all(client, &expected);
            // What it says next is answered.
            assert_eq!(client.value("SELECT 'next'"), "next");
        }
        await_empty_spool(&pool);
    }
}

/// Clients that hold all backends but the reserve, in transactions, with replies that they do not
/// read: what is not known to be long goes on, on the reserve.
#[test]
fn all_but_long_statements_have_the_reserve_beside_slow_readers() {
    for real in pooled_servers() {
        let bounds = "backends_max = 8\nwait_ms_max = 4000\nslow_reader_ms_max = 600000";
        let pool = pool_of(real, bounds);
        let mut quick = login(&pool.address, &app());
        for number in 0..3 {
            let asked = format!("SELECT {number} + 1");
            assert_eq!(quick.value(&asked), (number + 1).to_string());
        }
        let mut slow = many(&pool, 7);
        for client in &mut slow {
            client.must(HOLD);
            begin(client, LONG);
        }
        pool.wait_for_census(" slow_readers: 7,").unwrap();
        assert_eq!(quick.value("SELECT 41 + 1"), "42");
        assert_eq!(quick.value("SELECT 'new' AS text"), "new");
        quick.must("DO 1");
        let failure = quick.failure(LONG);
        assert_eq!(failure.code, 9501, "{failure:?}");
        assert!(failure.message.contains("the long queue"), "{failure:?}");
        assert_eq!(quick.value("SELECT 'still'"), "still");
    }
}

/// Forty clients that do not read, on eight backends. Few have one before their text is known to be
/// long; one a second has one later.
fn forty_long(pool: &Pool) -> Vec<Client> {
    let mut slow = many(pool, 40);
    for client in &mut slow {
        send(client, LONG);
    }
    slow
}

/// Without a spool slow readers keep their share, and writers have the other backends.
#[test]
fn without_a_spool_writers_do_not_wait_behind_slow_readers() {
    for real in pooled_servers() {
        real.execute(&[
            "DROP TABLE IF EXISTS shop.slow_writes",
            "CREATE TABLE shop.slow_writes (i INT PRIMARY KEY, n INT) ENGINE=InnoDB",
            "INSERT INTO shop.slow_writes VALUES (1, 0)",
        ]);
        let bounds = "backends_max = 8\nspool_bytes_max = 0\nwait_ms_max = 10000";
        let pool = pool_of(real, bounds);
        let mut writer = login(&pool.address, &app());
        writer.must("SELECT 1");
        let slow = forty_long(&pool);
        pool.wait_for_census(" slow_readers: 4,").unwrap();
        let mut write = |times| {
            for _ in 0..times {
                writer.script("UPDATE shop.slow_writes SET n = n + 1; BEGIN");
                writer.script("UPDATE shop.slow_writes SET n = n + 1; COMMIT");
            }
        };
        write(20);
        let asked = "SELECT n FROM shop.slow_writes";
        assert_eq!(writer.value(asked), "40", "each once");
        // Those that ran before their text was known to be long, and are too many, are closed.
        let census = until(|| {
            let census = pool.wait_for_census("slow_closed: ").unwrap();
            let is_kept = number(&census, "slow_readers") <= 4;
            is_kept.then_some(census.clone()).ok_or(census)
        });
        assert!(number(&census, "waiting") > 0, "they went first: {census}");
        drop(slow);
    }
}

/// A text that has never run does not wait behind those that are known to be long. Four readers in
/// transactions keep the share of eight backends.
#[test]
fn a_text_that_is_new_does_not_wait_behind_long_ones() {
    for real in pooled_servers() {
        let expected = login(&real.address(), &app()).rows(LONG);
        let bounds = "backends_max = 8\nwait_ms_max = 60000\nslow_reader_ms_max = 600000";
        let pool = pool_of(real, bounds);
        let mut quick = login(&pool.address, &app());
        let mut keepers = many(&pool, 4);
        for client in &mut keepers {
            client.must(HOLD);
            begin(client, LONG);
        }
        pool.wait_for_census(" slow_readers: 4,").unwrap();
        // The last of them is slow, and counts, once it has held up its backend for a moment.
        quick.must("SELECT SLEEP(0.1)");
        let mut long = many(&pool, 6);
        for client in &mut long {
            send(client, LONG);
        }
        pool.wait_for_census(" waiting: 6,").unwrap();
        for number in 0..5 {
            let text = format!("SELECT 'new' AS text_{number}");
            assert_eq!(quick.value(&text), "new");
        }
        pool.wait_for_census(" waiting: 6,").unwrap();
        drop(keepers);
        for mut client in long {
            takes_all(&mut client, &expected);
        }
    }
}

/// The first statement of a client, a text that nobody knows, goes before forty more of its kind
/// that turn out to be long: each of them keeps its backend until its reader is closed.
#[test]
fn a_clients_first_statement_does_not_wait_behind_unknown_ones_before_it() {
    for real in pooled_servers() {
        let pool = pool_of(real, "backends_max = 8\nspool_bytes_max = 0");
        let (mut slow, mut new) = (many(&pool, 40), login(&pool.address, &app()));
        for (number, client) in slow.iter_mut().enumerate() {
            (number == 25).then(|| send(&mut new, "SELECT 'new' AS text_40"));
            let text = LONG.replace("SELECT i,", &format!("SELECT i AS text_{number},"));
            send(client, &text);
        }
        assert_eq!(new.receive().unwrap()[0].rows().rows.len(), 1);
        let census = pool.wait_for_census(" waiting: ").unwrap();
        assert!(number(&census, "waiting") > 10, "they went first: {census}");
    }
}

#[test]
fn where_the_spool_is_full_the_slowest_reader_goes() {
    let Some(real) = pooled(server) else { return };
    let bounds = "backends_max = 4\nspool_bytes_max = 1048576\nslow_reader_ms_max = 100";
    let pool = pool_of(real, &format!("{bounds}\n{TRAIL}"));
    let slow = slow_clients(&pool.address, 9);
    let _quick = has_a_place(&pool, 20);
    let closed = "closed: it has taken nothing of its reply for";
    let said = pool.wait_for(closed).unwrap();
    says(&said, "the spool (spool_bytes_max) has no room");
    let culprit = slow.iter().find(|client| said.contains(&named(client)));
    assert_eq!(end(&pool, id(culprit.unwrap())), "reader-closed");
    let census = pool.wait_for_census("slow_closed: ").unwrap();
    let used = number(&census, "spooled_bytes");
    assert!(used <= (1 << 20) + (1 << 18), "{census}");
    drop(slow);
    await_empty_spool(&pool);
}

#[test]
fn where_the_disk_is_full_who_cannot_be_stored_goes_and_the_others_get_all() {
    let Some(real) = pooled(server) else { return };
    if !is_root() || !has(&["unshare", "mount"]) {
        return;
    }
    let expected = login(&real.address(), &app()).rows(LONG);
    let folder = real.folder().join("small_disk");
    std::fs::create_dir_all(&folder).unwrap();
    let folder = folder.to_str().unwrap();
    let extra = format!("groups=1\nbackends_max=4\nwait_ms_max=120000\nspool_folder=\"{folder}\"");
    let file = config_file(real, "slow_disk.toml", &config(&real.address(), &extra));
    let prefix = small_disk(folder);
    let arguments = ["--config", file.to_str().unwrap()];
    let pool = Pool::start_behind(&prefix, binary(), &arguments).unwrap();
    let slow = slow_clients(&pool.address, 9);
    let _quick = has_a_place(&pool, 20);
    let said = pool.wait_for("event=reader-closed").unwrap();
    let is_named = slow.iter().any(|slow| said.contains(&named(slow)));
    assert!(is_named, "{said}");
    says(&said, "digest=");
    let words = format!("its reply cannot be written to the spool in {folder}: No space left");
    assert!(said.contains(&words), "{said}");
    let mut complete = 0;
    for mut client in slow {
        // All of it, or the end of the connection: never something else.
        if let Ok(mut outcomes) = client.receive() {
            assert!(outcomes.pop().unwrap().rows().rows == expected.rows);
            complete += 1;
        }
    }
    assert!(complete > 0, "who kept a backend has lost nothing");
    await_empty_spool(&pool);
}

/// A drain lets those whose replies are in the spool, or on the way there, take them.
#[test]
fn who_reads_slowly_gets_all_while_the_pool_ends() {
    let Some(real) = pooled(server) else { return };
    let expected = login(&real.address(), &app()).rows(LONG);
    let pool = pool_of(real, "backends_max = 4");
    let slow = slow_clients(&pool.address, 9);
    drop(has_a_place(&pool, 1));
    pool.wait_for_census(" waiting: 0,").unwrap();
    pool.terminate();
    pool.wait_for("draining").unwrap();
    for mut client in slow {
        takes_all(&mut client, &expected);
    }
    let (status, said) = pool.wait();
    assert_eq!(status.code(), Some(0), "{said}");
    assert!(said.contains(" 0 clients cut off"), "{said}");
}

#[test]
fn a_reader_within_a_transaction_keeps_its_backend_and_goes_when_it_keeps_too_many() {
    let Some(real) = pooled(server) else { return };
    let pool = pool_of(real, "backends_max = 2\nslow_reader_ms_max = 200");
    let mut held = many(&pool, 2);
    for client in &mut held {
        client.must(HOLD);
        client.must("SELECT 1 FROM mysql.help_topic LIMIT 1");
        begin(client, LONG);
    }
    let _quick = has_a_place(&pool, 1);
    pool.wait_for(KEEPS).unwrap();
    pool.wait_for_census("spooled: 0, slow_closed: 1,").unwrap();
}

/// A reply that is off its backend leaves a transaction there with autocommit off.
#[test]
fn a_reader_whose_statement_has_begun_a_transaction_holds_a_backend_still() {
    for real in pooled_servers() {
        real.execute(&[
            "DROP TABLE IF EXISTS shop.slow_rows",
            "CREATE TABLE shop.slow_rows (i INT) ENGINE=InnoDB",
            "INSERT INTO shop.slow_rows VALUES (1),(2),(3),(4),(5),(6),(7),(8),(9),(10),(11),(12)",
        ]);
        let settings = "backends_max = 4\nslow_reader_ms_max = 200\nwait_ms_max = 20000";
        let pool = pool_of(real, settings);
        let mut slow = many(&pool, 4);
        for client in &mut slow {
            client.must("SET autocommit = 0");
            begin(client, "SELECT REPEAT('x', 1000000) FROM shop.slow_rows");
        }
        let _quick = has_a_place(&pool, 1);
        pool.wait_for(KEEPS).unwrap();
    }
}

/// The limit bounds what a user's slow readers hold, and nothing else: clients of the user that
/// take their replies have all backends.
#[test]
fn a_users_slow_readers_are_bounded_and_its_other_clients_are_not() {
    let Some(real) = pooled(server) else { return };
    let extra = "groups = 1\nbackends_max = 4\nbackends_reserved = 0\n\
        slow_backends_percent_max = 100";
    let text = config(&real.address(), extra);
    let app_name = "[[user]]\nname = \"app\"\n";
    let text = text.replace(app_name, &format!("{app_name}slow_backends_max = 1\n"));
    let pool = pool_from(real, &text);
    // Four transactions at once, of one user.
    let mut busy = many(&pool, 4);
    for client in &mut busy {
        client.must(HOLD);
        assert_eq!(client.value("SELECT 1"), "1");
    }
    drop(busy);
    pool.wait_for_census("clients: 0,").unwrap();
    let slow = slow_clients(&pool.address, 4);
    let other = testkit::talk::Account::new("other", "other's");
    let mut quick = login(&pool.address, &other);
    assert_eq!(quick.value("SELECT 'a place'"), "a place");
    drop(slow);
    await_empty_spool(&pool);
}

#[test]
fn a_folder_that_cannot_be_used_is_said_at_start() {
    let backend: Address = testkit::onramp::loopback(1);
    let folder = Folder::new("slow");
    let file = folder.put(
        "pool.toml",
        &config(&backend, "spool_folder = \"/nowhere/at/all\""),
    );
    let ran = onramp(&format!("pool --listen 127.0.0.1:0 --config {file}"));
    let expected = "spool_folder: no file can be written in /nowhere/at/all: No such file";
    assert!(!ran.status.success(), "{ran:?}");
    says(&ran.stderr, expected);
}
