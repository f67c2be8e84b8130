//! The compressed protocol: a client that agreed on it gets what one of the server itself gets.

use crate::compare::{Story, same, same_on};
use crate::world::*;
use testkit::talk::Happened;
use wire::auth::Plugin;

const FORMS: [u32; 3] = [
    cap::COMPRESS,
    cap::COMPRESS | cap::MULTI_STATEMENTS,
    cap::COMPRESS | cap::LOCAL_FILES,
];

/// A session's commands and replies, in small pieces and large ones; under TLS too (`tls.rs`).
pub(crate) fn tell_of_everything(story: &mut Story, account: &Account) {
    let who = story.join_as(account);
    if story.pooled && account.capabilities & cap::SSL != 0 {
        assert!(story.client(who).is_tls());
    }
    let other = story.join();
    story.all(
        who,
        &[
            "DROP TABLE IF EXISTS t",
            "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v LONGTEXT)",
            "INSERT INTO t (v) VALUES ('a'), (REPEAT('long ', 100)), (NULL)",
            "SELECT * FROM t",
            "SELECT * FROM missing",
            "SELECT REPEAT('x', 3000000), 'behind'",
            "SELECT 1; SELECT 2",
            "SET time_zone = '+05:00'",
        ],
    );
    story.sql(other, "SELECT @@time_zone");
    story.sql(
        who,
        &format!("SELECT LENGTH('{}'), @@time_zone", "y".repeat(2_000_000)),
    );
    let prepared = story.prepare(who, "SELECT id, v, ? FROM t WHERE id > ?");
    let long = vec![b'z'; 100_000];
    story.execute(who, prepared.id, &[Some(&long), Some(b"0")]);
    story.command(who, Command::Ping, b"");
    story.client(who).local_file = Some(b"71\tseventy-one\n72\tmore\n".to_vec());
    story.sql(who, "LOAD DATA LOCAL INFILE 'anything' INTO TABLE t");
    story.sql(who, "SELECT COUNT(*), SUM(id) FROM t");
    // MySQL itself wants an answer to a nonce that the tests' client no longer has.
    if account.capabilities & cap::ZSTD == 0 {
        story.command(who, Command::ResetConnection, b"");
        story.change_user(who, account);
    }
    story.sql(who, "SELECT COUNT(*), REPEAT('changed ', 50) FROM t");
}

#[test]
fn zlib_replies_are_those_of_the_server_itself() {
    same("compressed", 2, |story| {
        for more in FORMS {
            for less in [0, cap::DEPRECATE_EOF] {
                let account = app().schema(&story.schema).with(more).without(less);
                tell_of_everything(story, &account);
            }
        }
    });
}

#[test]
fn zstd_replies_are_those_of_the_server_itself() {
    let Some(real) = pooled(mysql) else { return };
    let app = || app().plugin(Plugin::CachingSha2);
    same_on(real, "zstd", 2, |story| {
        for level in [1, 3, 22] {
            let mut account = app()
                .schema(&story.schema)
                .with(cap::ZSTD | cap::CONNECT_ATTRS);
            account.zstd_level = level;
            tell_of_everything(story, &account);
        }
        let both = app().schema(&story.schema).with(cap::ZSTD | cap::COMPRESS);
        tell_of_everything(story, &both);
    });
}

#[test]
fn what_is_long_travels_packed_in_both_directions() {
    let (_, way) = or_return!(shared(1));
    let mut client = login(&way, &app().with(cap::COMPRESS));
    assert_eq!(client.value("SELECT 1"), "1");
    assert_eq!(
        client.frames_received().0,
        0,
        "a short reply is sent as it is"
    );
    for len in [10 << 20, (16 << 20) - 12, 16 << 20, 40 << 20] {
        let text = "0123456789abcdef".repeat(len / 16);
        let sql = format!("SELECT '{text}' AS v");
        let rows = client.rows(&sql);
        assert!(rows.only() == text, "{len} bytes came back changed");
    }
    assert!(client.frames_received().0 > 100);
    assert_eq!(client.value("SELECT 'next'"), "next");
}

/// A frame with this number, of this length unpacked, and this body.
fn raw_frame(seq: u8, unpacked: u32, body: &[u8]) -> Vec<u8> {
    let mut frame = u32::try_from(body.len()).unwrap().to_le_bytes()[..3].to_vec();
    frame.push(seq);
    frame.extend_from_slice(&unpacked.to_le_bytes()[..3]);
    frame.extend_from_slice(body);
    frame
}

#[test]
fn a_frame_that_is_none_ends_its_client_with_a_reason() {
    let (_, way) = or_return!(shared(1));
    let noise = [0x78, 0x9C, 1, 2, 3, 4, 5, 6];
    let ping = [1, 0, 0, 0, 0x0E];
    for (frame, code, words) in [
        (
            raw_frame(0, 60, &noise),
            1835,
            "the client sent a compressed frame that does not unpack to the length",
        ),
        (raw_frame(7, 0, &ping), 1156, "expected packet number 0"),
    ] {
        let mut client = login(&way, &app().with(cap::COMPRESS));
        client.must("SET @a = 1");
        client.send_unframed(&frame).unwrap();
        match client.wait().unwrap() {
            Happened::Refused(failure) => {
                assert_eq!(failure.code, code, "{failure}");
                assert!(failure.message.contains(words), "{failure}");
            }
            other => panic!("{other:?}"),
        }
        assert!(client.wait().is_err(), "the connection is over");
    }
    assert_eq!(login(&way, &app()).value("SELECT 1"), "1");
}

#[test]
fn frames_may_come_byte_by_byte_and_several_commands_in_one() {
    let (_, way) = or_return!(shared(1));
    let mut client = login(&way, &app().with(cap::COMPRESS));
    for byte in raw_frame(0, 0, &[1, 0, 0, 0, 0x0E]) {
        client.send_unframed(&[byte]).unwrap();
    }
    // The conversation did not see the command; an OK that nobody asked for is its right answer.
    let reply = format!("{:?}", client.wait());
    assert!(reply.contains("nobody asked for: [00, 00, 00"), "{reply}");
    let mut client = login(&way, &app().with(cap::COMPRESS));
    let long = format!("SELECT '{}'", "x".repeat(500));
    for _ in 0..3 {
        client
            .send(&[
                (Command::Query, long.as_bytes()),
                (Command::Ping, b""),
                (Command::Query, b"SELECT 'last'"),
            ])
            .unwrap();
        assert_eq!(client.receive().unwrap()[0].rows().only().len(), 500);
        assert!(client.receive().is_ok());
        assert_eq!(client.receive().unwrap()[0].rows().only(), "last");
    }
}

#[test]
fn compression_that_is_switched_off_is_not_offered() {
    let Some(real) = pooled(server) else { return };
    let offers = |client: &Client| client.talk().greeting.as_ref().unwrap().capabilities;
    let wants = app().with(cap::COMPRESS | cap::ZSTD);
    let pool = fresh_pool(real, "compression = false");
    let mut client = login(&pool.address, &wants);
    assert_eq!(offers(&client) & (cap::COMPRESS | cap::ZSTD), 0);
    assert_eq!(client.value("SELECT 1"), "1");
    let way = through(real, 1);
    // MariaDB has no zstd, so its clients are not offered it.
    assert_eq!(
        offers(&login(&way, &wants)) & (cap::COMPRESS | cap::ZSTD),
        cap::COMPRESS
    );
}
