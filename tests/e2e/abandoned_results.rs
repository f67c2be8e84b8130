//! Clients that leave in the middle of a result: nothing is kept for them, the statement ends on
//! the server, and its backend is free. And servers that answer without end.

use crate::world::*;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use testkit::onramp::loopback;
use wire::capabilities::LOCAL_FILES;

/// A reply that has no end within any test, as a table that was joined without a condition.
const ENDLESS: &str = "SELECT REPEAT('x', 1000) FROM information_schema.collations c1, \
    information_schema.collations c2, information_schema.collations c3 /* endless */";
/// Resident memory that a pool may grow by, however long a reply is.
const GROWTH_MAX: u64 = 32 << 20;

/// Waits until the server runs nothing with this in its text.
fn await_gone(real: &Real, part: &str) {
    let mut admin = real.admin();
    let question = format!(
        "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE '%{part}%' \
         AND info NOT LIKE '%processlist%'"
    );
    wait_while(|| admin.value(&question) != "0");
}

#[test]
fn a_client_that_leaves_amid_its_reply_costs_nothing() {
    for real in pooled_servers() {
        let pool = fresh_pool(real, "groups = 1\nbackends_max = 1");
        login(&pool.address, &app()).must("SELECT 1");
        let before = memory_of(&pool, "VmHWM");
        for _ in 0..3 {
            let mut leaver = login(&pool.address, &app());
            begin(&mut leaver, ENDLESS);
            drop(leaver);
            // The only backend is free again.
            let mut other = login(&pool.address, &app());
            assert_eq!(other.value("SELECT 'a place'"), "a place");
        }
        await_gone(real, "endless");
        pool.wait_for_census("abandoned: 3,").unwrap();
        let grown = memory_of(&pool, "VmHWM") - before;
        assert!(grown < GROWTH_MAX, "{grown} bytes of replies were kept");
    }
}

/// A server that waits for a lock takes no more of a local file; the pool does not keep the rest.
#[test]
fn a_file_that_the_server_does_not_take_stays_with_its_client() {
    let (real, pool) = or_return!(shared_pool("groups = 1\nbackends_max = 2"));
    let account = app().schema("shop").with(LOCAL_FILES);
    let mut client = login(&pool.address, &account);
    let mut other = login(&real.address(), &app().schema("shop"));
    other.must("CREATE OR REPLACE TABLE fed (v INT PRIMARY KEY, pad MEDIUMTEXT) ENGINE=InnoDB");
    other.must(HOLD);
    other.must("INSERT INTO fed VALUES (1, NULL)");
    let lines = (1..=160).map(|v| format!("{v}\t{}\n", "x".repeat(1 << 20)));
    client.local_file = Some(lines.collect::<String>().into_bytes());
    let before = memory_of(&pool, "VmHWM");
    let loaded = std::thread::scope(|scope| {
        let load = "LOAD DATA LOCAL INFILE 'any' IGNORE INTO TABLE fed";
        let load = scope.spawn(|| client.query(load));
        other.script("DO SLEEP(4); ROLLBACK");
        load.join().unwrap().unwrap()
    });
    assert!(matches!(loaded[..], [Outcome::Done(_)]), "{loaded:?}");
    assert_eq!(client.value("SELECT COUNT(*) FROM fed"), "160");
    let grown = memory_of(&pool, "VmHWM") - before;
    // A packet of 16 MiB is kept until it is whole.
    assert!(grown < 3 * GROWTH_MAX, "{grown} bytes of a file were kept");
    other.must("DROP TABLE fed");
}

/// A server that gets a packet of another number does not wait for the end of the file. What the
/// client still sends of it must not be taken for commands.
#[test]
fn who_is_answered_amid_a_file_is_closed() {
    let (_, pool) = or_return!(shared_pool("groups = 1\nbackends_max = 1"));
    let account = app().schema("shop").with(LOCAL_FILES);
    let mut other = login(&pool.address, &account);
    other.must("CREATE OR REPLACE TABLE amid (v INT)");
    let mut skips = login(&pool.address, &account);
    let load = b"LOAD DATA LOCAL INFILE 'any' INTO TABLE amid";
    skips.send(&[(Command::Query, load)]).unwrap();
    skips.wait().unwrap();
    skips.send_raw(b"\x02\0\0\x091\n").unwrap();
    while skips.wait().is_ok() {}
    assert_eq!(other.value("SELECT COUNT(*) FROM amid"), "0");
    other.must("DROP TABLE amid");
}

/// A server waits for the rest of a file, with the transaction of what it has of it. A client that
/// has gone sends no rest.
#[test]
fn who_leaves_amid_a_file_leaves_no_transaction() {
    for real in pooled_servers() {
        let address = through(real, 1);
        let account = app().schema("shop").with(LOCAL_FILES);
        let mut other = login(&real.address(), &account);
        other.must("DROP TABLE IF EXISTS cut");
        other.must("CREATE TABLE cut (v INT PRIMARY KEY) ENGINE=InnoDB");
        // At a packet's end; within a packet; and within its header.
        for rest in [&b""[..], b"\x09\0\0\x034\n", b"\x09\0"] {
            let mut leaver = login(&address, &account);
            let load = b"LOAD DATA LOCAL INFILE 'any' INTO TABLE cut";
            leaver.send(&[(Command::Query, load)]).unwrap();
            leaver.wait().unwrap();
            leaver.send_raw(b"\x06\0\0\x021\n2\n3\n").unwrap();
            leaver.send_raw(rest).unwrap();
            let locked = "SELECT v FROM cut WHERE v = 1 FOR UPDATE NOWAIT";
            wait_while(|| matches!(other.query(locked).unwrap()[..], [Outcome::Rows(_)]));
            drop(leaver);
            // Waits for the lock of the row, which ends with the transaction.
            other.must("INSERT INTO cut VALUES (1)");
            assert_eq!(other.value("SELECT COUNT(*) FROM cut"), "1");
            other.must("DELETE FROM cut");
            // The only backend serves others.
            assert_eq!(login(&address, &app()).value("SELECT 'a place'"), "a place");
        }
        other.must("DROP TABLE cut");
    }
}

fn packet(payload: &[u8]) -> Vec<u8> {
    let len = u32::try_from(payload.len()).unwrap().to_le_bytes();
    [&len[..3], &[1], payload].concat()
}

/// A row of SHOW WARNINGS with a message of 60,000 bytes.
fn long_row() -> Vec<u8> {
    let message = [b"\xfc\x60\xea", &[b'w'; 60_000][..]].concat();
    packet(&[b"\x07Warning\x041292", &message[..]].concat())
}

/// An OK that another result follows, with as much to report as a packet may have.
fn long_ok() -> Vec<u8> {
    let value = [b'v'; 60_000];
    let variable = [b"\x09time_zone\xfc\x60\xea", &value[..]].concat();
    let block = [b"\x00\xfc\x6d\xea", &variable[..]].concat();
    let len = u16::try_from(block.len()).unwrap().to_le_bytes();
    packet(&[&b"\x00\x00\x00\x08\x40\x00\x00\x00\xfc"[..], &len, &block].concat())
}

/// Packets that are sent without end in answer to a command with this in its text.
fn flood_for(said: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let has = |part: &[u8]| said.windows(part.len()).any(|window| window == part);
    let column = packet(b"\x03def\0\0\0\x01c\0\x0c\x2d\0\0\x01\0\0\xfd\0\0\0\0\0");
    let columns = [packet(b"\x03"), column.repeat(3)].concat();
    if has(b"SHOW WARNINGS") {
        Some((columns, long_row()))
    } else if has(b"DO 'changes'") {
        Some((Vec::new(), long_ok()))
    } else {
        None
    }
}

/// Passes on what a pool and a server say, but for the answers that have no end.
fn pass_on(mut pool: TcpStream, mut server: TcpStream) {
    let (mut down, mut up) = (server.try_clone().unwrap(), pool.try_clone().unwrap());
    std::thread::spawn(move || std::io::copy(&mut down, &mut up));
    let mut buffer = vec![0; 1 << 16];
    while let Ok(len @ 1..) = pool.read(&mut buffer) {
        if let Some((front, endless)) = flood_for(&buffer[..len]) {
            let _ = pool.write_all(&front);
            while pool.write_all(&endless).is_ok() {}
            break;
        }
        if server.write_all(&buffer[..len]).is_err() {
            break;
        }
    }
    let _ = server.shutdown(std::net::Shutdown::Both);
}

/// A server in front of a real one, for any number of connections.
fn endless_server(server: &Address) -> Address {
    let Address::Tcp(server) = server.clone() else {
        panic!("{server} is no TCP address");
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = loopback(listener.local_addr().unwrap().port());
    std::thread::spawn(move || {
        for pool in listener.incoming().map_while(Result::ok) {
            let Ok(server) = TcpStream::connect(server) else {
                return;
            };
            std::thread::spawn(move || pass_on(pool, server));
        }
    });
    address
}

#[test]
fn what_a_server_says_without_end_is_not_kept() {
    let Some(real) = pooled(server) else { return };
    let text = config(
        &endless_server(&real.address()),
        "backends_max = 1\ngroups = 1",
    );
    let pool = pool_from(real, &text);
    login(&pool.address, &app()).must("SELECT 1");
    let before = memory_of(&pool, "VmHWM");
    // Its warning is asked for by the pool; the other's reply is the client's own.
    for sql in ["SELECT 1/0", "DO 'changes'"] {
        let mut client = login(&pool.address, &app());
        let _ = client.query(sql);
        let mut other = login(&pool.address, &app());
        assert_eq!(other.value("SELECT 'a place'"), "a place", "{sql}");
    }
    pool.wait_for_census("backends_lost: 2,").unwrap();
    let grown = memory_of(&pool, "VmHWM") - before;
    assert!(grown < 2 * GROWTH_MAX, "{grown} bytes were kept");
}
