//! Large statements and rows, and the lengths at which packets are split.

use crate::world::*;
use wire::command::put_command;
use wire::compressed::Packer;

const MIB: usize = 1 << 20;

/// Bytes in which a lost, doubled or moved piece shows.
fn pattern(len: usize) -> Vec<u8> {
    let mut state = 7u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_le_bytes()[3] & 0x3F | 0x40
    };
    (0..len).map(|_| next()).collect()
}

#[test]
fn rows_of_twenty_megabytes_go_both_ways() {
    let Some(real) = pooled(server) else { return };
    fresh_schema(real, "big");
    real.execute(&["CREATE TABLE big.t (id INT PRIMARY KEY, v LONGBLOB) ENGINE=InnoDB"]);
    for (id, without) in [(1, 0), (2, cap::DEPRECATE_EOF)] {
        let way = through(real, 2);
        let mut client = login(&way, &app().schema("big").without(without));
        let mut value = pattern(20 * MIB);
        value
            .iter_mut()
            .filter(|b| **b == b'\\')
            .for_each(|b| *b = b'/');
        let mut sql = format!("INSERT INTO t VALUES ({id}, '").into_bytes();
        sql.extend_from_slice(&value);
        sql.extend_from_slice(b"')");
        let outcomes = client.run(Command::Query, &sql).unwrap();
        assert_eq!(outcomes[0].done().affected_rows, 1);
        let asked = format!("SELECT 'front', v, 'behind' FROM t WHERE id = {id}");
        let rows = client.rows(&asked);
        assert_eq!(rows.rows[0][0].as_deref(), Some(&b"front"[..]));
        let is_same = rows.rows[0][1].as_deref() == Some(&value[..]);
        assert!(is_same, "the value came back changed");
        assert_eq!(rows.rows[0][2].as_deref(), Some(&b"behind"[..]));
        assert_eq!(client.value("SELECT 1"), "1");
        let prepared = client.prepare("SELECT LENGTH(?), MD5(?) = MD5(v) FROM t WHERE id = 1");
        let twice: [Option<&[u8]>; 2] = [Some(&value); 2];
        let outcomes = client.execute(prepared.id, &twice, false).unwrap();
        let expected = [[(20 * MIB).to_string(), "1".into()]];
        assert_eq!(outcomes[0].rows().texts(), expected);
    }
}

#[test]
fn statements_of_sixteen_megabytes_more_or_less_arrive_whole() {
    let (_, way) = or_return!(shared(1));
    let mut client = login(&way, &app());
    let around = 16 * MIB - 2..16 * MIB + 2;
    for len in around.chain(32 * MIB - 2..32 * MIB) {
        // The payload is the command's byte and the text.
        let mut sql = b"SELECT LENGTH('".to_vec();
        let tail = b"')";
        let filling = len - 1 - sql.len() - tail.len();
        sql.resize(sql.len() + filling, b'x');
        sql.extend_from_slice(tail);
        assert_eq!(sql.len() + 1, len);
        let outcomes = client.run(Command::Query, &sql).unwrap();
        assert_eq!(outcomes[0].rows().only(), filling.to_string());
        assert_eq!(client.value("SELECT 'next'"), "next");
    }
}

#[test]
fn rows_around_sixteen_megabytes_end_where_they_end() {
    let Some(real) = pooled(server) else { return };
    for without in [0, cap::DEPRECATE_EOF] {
        let way = through(real, 1);
        let mut client = login(&way, &app().without(without));
        // A row's payload is its value and the 4 or 9 bytes of the value's length.
        for payload in (16 * MIB - 2..=16 * MIB).chain(16 * MIB + 8..16 * MIB + 10) {
            let prefix = if payload - 4 < 16 * MIB { 4 } else { 9 };
            let len = payload - prefix;
            let rows = client.rows(&format!("SELECT REPEAT('\u{f8}', {len} DIV 2)"));
            assert_eq!(rows.rows[0][0].as_ref().unwrap().len(), len / 2 * 2);
            let sql = format!("SELECT REPEAT('x', {len}) UNION ALL SELECT 'y'");
            let rows = client.rows(&sql);
            let lens = [0, 1].map(|row: usize| rows.rows[row][0].as_ref().unwrap().len());
            assert_eq!(lens, [len, 1]);
        }
    }
}

#[test]
fn a_statement_above_the_servers_limit_is_refused() {
    let (_, way) = or_return!(shared(1));
    let mut client = login(&way, &app());
    let mut sql = b"SELECT LENGTH('".to_vec();
    sql.resize(65 * MIB, b'x');
    sql.extend_from_slice(b"')");
    // Either side may end the connection before the last byte was sent; never a wrong answer.
    match client.run(Command::Query, &sql) {
        Ok(outcomes) => assert_eq!(outcomes[0].failure().code, 1153),
        Err(error) => assert!(!error.to_string().contains("protocol"), "{error}"),
    }
    assert_eq!(login(&way, &app()).value("SELECT 1"), "1");
}

/// Servers count the payload, without its headers, and take what is shorter than their limit.
#[test]
fn a_statement_is_as_long_as_the_server_takes_it() {
    for max in [MIB, 16 * MIB, 64 * MIB] {
        let arguments = [format!("--max-allowed-packet={max}")];
        let arguments = arguments.each_ref().map(String::as_str);
        for real in own_servers(&arguments) {
            let pool = fresh_pool(&real, "groups = 1");
            for way in [&real.address(), &pool.address] {
                for (len, taken) in [(max - 1, true), (max, false)] {
                    let mut client = login(way, &app());
                    let mut sql = b"SELECT LENGTH('".to_vec();
                    sql.resize(len - 1 - 2, b'x');
                    sql.extend_from_slice(b"')");
                    let answer = client.run(Command::Query, &sql);
                    // The answer is numbered behind the last packet.
                    let numbered = !matches!(answer, Err(ClientError::Protocol(_)));
                    assert!(numbered, "{len} of {max} at {way:?}: {answer:?}");
                    // The connection may end before the last byte was sent.
                    let refused = answer.as_ref().map_or(true, |outcomes| {
                        matches!(&outcomes[..], [Outcome::Failed(failure)] if failure.code == 1153)
                    });
                    assert_eq!(!refused, taken, "{len} of {max} at {way:?}: {answer:?}");
                }
            }
        }
    }
}

/// Replies in clear, in frames and under TLS. Random digits do not get much shorter, so the
/// sockets' buffers fill up.
#[test]
fn a_reply_that_is_taken_slowly_is_whole_and_holds_nobody_up() {
    let (_, way) = or_return!(shared(2));
    for with in [0, cap::COMPRESS, cap::SSL] {
        let mut slow = login(&way, &app().schema("shop").with(with));
        let sql = "SELECT seq, REPEAT(MD5(seq), 3), HEX(RANDOM_BYTES(1000)) FROM seq_1_to_20000";
        send(&mut slow, sql);
        send(&mut slow, "SELECT 'behind'");
        let mut quick = login(&way, &app().with(with & cap::SSL));
        for i in 0..50 {
            assert_eq!(quick.value(&format!("SELECT {i}")), i.to_string());
        }
        assert_eq!(slow.receive().unwrap()[0].rows().rows.len(), 20_000);
        assert_eq!(slow.receive().unwrap()[0].rows().only(), "behind");
    }
}

/// Long texts are read apart from short ones: what they leave is known all the same, and commands
/// that are sent together are answered in their order.
#[test]
fn long_texts_are_known_for_what_they_do() {
    for real in pooled_servers() {
        let way = through(real, 2);
        let [mut client, mut other] = [(); 2].map(|()| login(&way, &app()));
        for len in [MIB, 17 * MIB] {
            let long = "x".repeat(len);
            // The first takes a lock that the last gives back; the second is no statement.
            let texts = [
                format!("SELECT LENGTH('{long}'), GET_LOCK('long_texts', 0)"),
                format!("SELECT 'short' FROM DUAL WHERE '{long}' = '' OR ("),
                format!("SET @long = LENGTH('{long}')"),
                format!("SELECT @long, '{long}' = ''"),
                "SELECT RELEASE_LOCK('long_texts')".to_owned(),
            ];
            let commands = texts
                .each_ref()
                .map(|text| (Command::Query, text.as_bytes()));
            client.send(&commands[..4]).unwrap();
            let rows = |client: &mut Client| client.receive().unwrap()[0].rows().texts();
            assert_eq!(rows(&mut client), [[len.to_string(), "1".into()]]);
            let refused = client.receive().unwrap();
            assert_eq!(refused[0].failure().code, 1064, "{len} bytes");
            assert_eq!(client.receive().unwrap()[0].done().affected_rows, 0);
            assert_eq!(rows(&mut client), [[len.to_string(), "0".into()]]);
            let free = "SELECT IS_FREE_LOCK('long_texts')";
            assert_eq!(other.value(free), "0");
            client.send(&commands[4..]).unwrap();
            assert_eq!(rows(&mut client), [["1"]]);
            assert_eq!(other.value(free), "1");
        }
    }
}

/// Few of many clients that send long compressed statements are at the server at once: the short
/// ones of others do not wait for their turn behind them.
#[test]
fn short_statements_do_not_wait_behind_many_long_compressed_ones() {
    for real in pooled_servers() {
        let shown = (0..LONG_TRIES_MAX).any(|_| go_between_long_compressed_ones(real));
        assert!(
            shown,
            "all long ones were answered before the first short one"
        );
    }
}

/// Times that long statements are sent, until the short ones begin before they have ended.
const LONG_TRIES_MAX: usize = 5;

/// Sends short statements while many long ones wait; `false` where those had ended before.
fn go_between_long_compressed_ones(real: &'static Real) -> bool {
    const LONG: usize = 24;
    let pool = fresh_pool(real, "groups = 1\nbackends_max = 4\nwait_ms_max = 600000");
    let mut good = login(&pool.address, &app());
    assert_eq!(good.value("SELECT 1"), "1");
    let sql = format!("SELECT LENGTH('{}')", "y".repeat(8 << 20));
    let (mut command, mut frame) = (Vec::new(), Vec::new());
    put_command(&mut command, Command::Query, sql.as_bytes());
    Packer::default().pack(&command, &mut frame);
    let account = app().with(cap::COMPRESS);
    let mut long: Vec<Client> = (0..LONG).map(|_| login(&pool.address, &account)).collect();
    for client in &mut long {
        client.send_unframed(&frame.repeat(4)).unwrap();
    }
    assert!(long[0].await_answer().unwrap());
    let is_answered = |client: &&Client| client.has_answer().unwrap();
    let answered = || long.iter().filter(is_answered).count();
    let before = answered();
    for number in 0..100 {
        assert_eq!(good.value(&format!("SELECT {number}")), number.to_string());
    }
    let is_shown = before < LONG;
    let are_first = is_shown && answered() == LONG;
    assert!(!are_first, "{before}, then all: they went first");
    is_shown
}
