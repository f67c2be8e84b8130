//! A server that breaks the protocol, or somebody in its place: nothing of a breach reaches a
//! client but an error that names it, its backend is closed, and others go on.

use crate::world::*;
use testkit::hostile::Hostile;
use wire::packet::put_packet;

/// The server broke the protocol.
const BREACH: u16 = 9509;
const COLUMN: &[u8] = b"\x03def\0\0\0\x011\0\x0c\x3f\0\x01\0\0\0\x03\x81\0\0\0\0";
/// The definition of a VARCHAR.
const TEXT: &[u8] = b"\x03def\0\0\0\x011\0\x0c\x3f\0\x01\0\0\0\x0f\x81\0\0\0\0";
const EOF: &[u8] = b"\xfe\0\0\x02\0";
const END: &[u8] = b"\xfe\0\0\x02\0\0\0";
const OK: &[u8] = b"\0\0\0\x02\0\0\0";
const FILE: &[u8] = b"\xfb/etc/hostname";

/// Payloads as packets, numbered from 1.
fn packets(payloads: &[&[u8]]) -> Vec<u8> {
    let (mut out, mut seq) = (Vec::new(), 1);
    for payload in payloads {
        seq = put_packet(&mut out, seq, payload);
    }
    out
}

/// Payloads as packets, with another number at this place.
fn misnumbered(payloads: &[&[u8]], place: usize) -> Vec<u8> {
    let mut out = packets(payloads);
    let start = packets(&payloads[..place]).len();
    out[start + 3] = 200;
    out
}

struct Scene {
    hostile: Hostile,
    pool: Pool,
}

impl Scene {
    fn new(test: &str) -> Option<Scene> {
        let real = server(test)?;
        let hostile = Hostile::before(&real.address());
        let text = config(&hostile.address, "backends_max = 2\ngroups = 1\n");
        let pool = pool_from(real, &text);
        Some(Scene { hostile, pool })
    }

    fn client(&self, capabilities: u32) -> Client {
        let account = app().schema("shop").with(capabilities);
        let mut client = login(&self.pool.address, &account);
        client.local_file = Some(b"what nobody is to see".to_vec());
        client
    }

    /// The error for a statement that is answered so. Its backend is closed without a word behind
    /// the statement, and both its client and others go on.
    fn breach(&self, client: &mut Client, sql: &str, answer: &[u8]) -> String {
        let mut other = self.client(0);
        self.hostile.answer(sql, answer);
        let message = self.is_ended(&client.query(sql).unwrap());
        assert_eq!(other.value("SELECT 'others go on'"), "others go on");
        assert_eq!(client.value("SELECT 'it goes on'"), "it goes on");
        message
    }

    /// The error at the end of a reply that broke the protocol.
    fn is_ended(&self, outcomes: &[Outcome]) -> String {
        let Some(Outcome::Failed(failure)) = outcomes.last() else {
            panic!("{outcomes:?}");
        };
        self.is_over(&failure.code, &failure.message);
        failure.message.clone()
    }

    fn is_over(&self, code: &u16, message: &str) {
        assert_eq!(*code, BREACH, "{message}");
        says(message, "the server broke the protocol: ");
        let heard = self.hostile.heard_until_closed();
        assert!(heard.is_empty(), "it was sent {heard:x?}");
    }
}

#[test]
fn a_file_is_asked_for_by_load_data_local_alone() {
    let scene = or_return!(pooled(Scene::new));
    let asks = packets(&[FILE]);
    let mut sends = scene.client(cap::LOCAL_FILES | cap::MULTI_STATEMENTS);
    for sql in [
        "SELECT 1 AS a",
        "SELECT 'LOAD DATA LOCAL INFILE' AS b",
        "LOAD DATA INFILE '/x' INTO TABLE t",
        "SELECT 2; SELECT 'LOCAL INFILE'",
    ] {
        let words = scene.breach(&mut sends, sql, &asks);
        assert!(words.contains("asked for a file"), "{words}");
    }
    let mut refuses = scene.client(0);
    let load = "LOAD DATA LOCAL INFILE '/x' INTO TABLE t";
    let words = scene.breach(&mut refuses, load, &asks);
    assert!(words.contains("asked for a file"), "{words}");
    // A command of the pool's own, which restores another session on the backend that is free.
    let mut holds = scene.client(0);
    holds.must(HOLD);
    holds.value("SELECT 1");
    for (client, zone) in [(&mut sends, "+03:00"), (&mut refuses, "+04:00")] {
        client.must(&format!("SET time_zone = '{zone}'"));
        assert_eq!(client.value("SELECT @@time_zone"), zone);
    }
    scene.hostile.answer("+03:00", &asks);
    let outcomes = sends.query("SELECT 2").unwrap();
    let answered = match &outcomes[..] {
        [Outcome::Failed(failure)] => failure.code == BREACH,
        [answer] => answer.rows().only() == "2",
        _ => false,
    };
    assert!(answered, "{outcomes:?}");
    assert!(scene.hostile.heard_until_closed().is_empty());
    let said = scene.pool.said();
    assert!(said.contains("asked for a file of the client's"), "{said}");
    assert!(!said.contains("panicked"), "{said}");
}

#[test]
fn a_result_that_is_none_is_not_passed_on() {
    let scene = or_return!(pooled(Scene::new));
    let two = [&b"\x02"[..], COLUMN, COLUMN];
    let with = |behind: &[&[u8]]| packets(&[&two[..], behind].concat());
    let breaches = [
        misnumbered(&[b"\xff\x84\x04#08S01Out of order"], 0),
        misnumbered(&[OK], 0),
        misnumbered(&[b"\x01", COLUMN, b"\x01a", END], 2),
        misnumbered(&[b"\x01", COLUMN, b"\x01a", END], 3),
        [&packets(&[OK])[..3], b"\0", OK].concat(),
        packets(&[b"\x02", COLUMN, b"\x01a\x01b", END]),
        packets(&[b"\x02", COLUMN, END]),
        with(&[b"\x01a", END]),
        with(&[b"\x01a\x01b\x01c", END]),
        with(&[b"\x01a\x05b", END]),
        with(&[b"\x01a\xfe\xff\xff\xff\xff\xff\xff\xff\0", END]),
        packets(&[b"\xfc\0\0"]),
        packets(&[b"\0\0\0\x02\x40\0\0\0\x09"]),
    ];
    // What is wrong with each, and the words of it.
    let wrong = table(
        "number of an error => got 200 (the server closed the connection: error 1156: Out of order)
        number of an OK => expected number 1, got 200
        number of a row => expected number 3
        number of the end => expected number 4
        number of a command => expected number 1, got 0
        a row among columns => column definition
        the end among columns => column definition
        a value that is missing => a value for each column
        a value too many => no value behind the last column
        a value that is cut => a value that ends within its row
        a length of 2^56 => a value that ends
        no columns => a count of 1 to 65,535 columns
        session changes beyond the packet => session changes",
    );
    assert_eq!(wrong.len(), breaches.len());
    let mut client = scene.client(0);
    for (number, ([what, words], answer)) in wrong.iter().zip(&breaches).enumerate() {
        let said = scene.breach(&mut client, &format!("SELECT {number} AS breach"), answer);
        assert!(said.contains(words), "{what}: {said}");
    }
    let lost = scene.pool.said().matches("event=backend-lost").count();
    assert!(lost > 0, "{}", scene.pool.said());
}

#[test]
fn rows_before_a_breach_are_passed_on_and_the_error_ends_them() {
    let scene = or_return!(pooled(Scene::new));
    let mut client = scene.client(0);
    let answer = packets(&[b"\x01", COLUMN, b"\x01a", b"\x01b", b"", END]);
    let words = scene.breach(&mut client, "SELECT 1 AS rows", &answer);
    assert!(words.contains("a value for each column"), "{words}");
    // In a transaction the session is gone with its backend.
    client.must(HOLD);
    scene.hostile.answer("SELECT 2 AS held", &answer);
    let failure = client.failure("SELECT 2 AS held");
    scene.is_over(&failure.code, &failure.message);
    assert!(client.query("SELECT 3").is_err());
    assert_eq!(scene.client(0).value("SELECT 4"), "4");
}

#[test]
fn executions_and_old_clients_are_kept_from_breaches_too() {
    let scene = or_return!(pooled(Scene::new));
    let prepare = b"\0\x07\0\0\0\x02\0\0\0\0\0\0";
    let mut client = scene.client(0);
    // Columns of a prepared statement that end early.
    let (early, answer) = ("SELECT 5 AS early", packets(&[prepare, COLUMN, END]));
    scene.hostile.answer(early, &answer);
    scene.is_ended(&client.run(Command::StmtPrepare, early.as_bytes()).unwrap());
    // Rows of a LONG and a VARCHAR that have other values.
    let prepared = client.prepare("SELECT ? AS a, 7 AS b");
    let marker: &[u8] = b"the marker";
    for (row, words) in [
        (&b"\0\0\x05\0\0\0"[..], "a value for each column"),
        (b"\0\0\x05\0", "a value that ends within its row"),
        (b"\0\0\x05\0\0\0\x09a", "a value that ends within its row"),
        (b"\0\0\x05\0\0\0\x01ab", "no value behind the last column"),
        (b"\0\0\x05\0\0\0\xfbab", "the length of a value"),
        (b"\x01\0\x05\0\0\0\x01a", "a row in the binary protocol"),
    ] {
        let answer = packets(&[b"\x02", COLUMN, TEXT, row, END]);
        scene.hostile.answer("the marker", &answer);
        let outcomes = client.execute(prepared.id, &[Some(marker)], false).unwrap();
        let message = scene.is_ended(&outcomes);
        assert!(message.contains(words), "{row:x?}: {message}");
    }
    let account = app().schema("shop").without(cap::DEPRECATE_EOF);
    let mut old = login(&scene.pool.address, &account);
    let behind: [&[&[u8]]; 3] = [&[b"\x01a"], &[END], &[EOF, b""]];
    for behind in behind {
        let answer = packets(&[&[&b"\x01"[..], COLUMN], behind].concat());
        scene.hostile.answer("SELECT 8 AS old", &answer);
        let failure = old.failure("SELECT 8 AS old");
        scene.is_over(&failure.code, &failure.message);
    }
    assert_eq!(old.value("SELECT 9"), "9");
    assert_eq!(client.value("SELECT 9"), "9");
}

#[test]
fn fetched_rows_are_kept_from_breaches_too() {
    let scene = or_return!(pooled(Scene::new));
    let rows = [
        (&b"\0\0\x05"[..], "a value that ends within its row"),
        (b"\0\0\x05\0\0\0", "a value for each column"),
        (b"\0\0\x05\0\0\0\x09a", "a value that ends within its row"),
    ];
    for (row, words) in rows {
        let mut client = scene.client(0);
        let prepared = client.prepare("SELECT 5 AS a, 'a' AS b UNION SELECT 6, 'b'");
        let id = prepared.id;
        let opened = client.execute(id, &[], true).unwrap();
        let columns = opened[0].rows().columns.clone();
        let answers = client.fetch(id, 1, &columns).unwrap();
        assert_eq!(answers[0].rows().rows.len(), 1, "{answers:?}");
        // As many rows as the word "four" is a number.
        scene.hostile.answer("four", &packets(&[row, END]));
        let four = u32::from_le_bytes(*b"four");
        let outcomes = client.fetch(id, four, &columns).unwrap();
        let message = scene.is_ended(&outcomes);
        assert!(message.contains(words), "{row:x?}: {message}");
    }
}

#[test]
fn a_breach_in_a_row_that_has_begun_ends_the_connection() {
    let scene = or_return!(pooled(Scene::new));
    // Longer than all buffers; the last value goes beyond the row.
    let value = vec![b'x'; 1 << 20];
    let len = u32::try_from(value.len()).unwrap().to_le_bytes();
    let row = [&b"\0\0\x05\0\0\0\xfd"[..], &len[..3], &value[1..]].concat();
    let mut client = scene.client(0);
    let prepared = client.prepare("SELECT ? AS a, 7 AS b");
    let answer = packets(&[b"\x02", COLUMN, TEXT, &row, END]);
    scene.hostile.answer("the marker", &answer);
    let marker: &[u8] = b"the marker";
    assert!(client.execute(prepared.id, &[Some(marker)], false).is_err());
    assert!(scene.hostile.heard_until_closed().is_empty());
    logs(
        &scene.pool,
        "event=backend-lost ",
        "a value that ends within its row",
    );
    let asked = "SELECT 'others go on'";
    assert_eq!(scene.client(0).value(asked), "others go on");
}
