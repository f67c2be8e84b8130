//! Replies as a client gets them, byte by byte, in pieces of any length.

use super::*;
use wire::command::ReplyShape;
use wire::packet::put_packet;

const MODERN: Shape<'_> = Shape {
    deprecate_eof: true,
    track: None,
    mysql: false,
    schema: None,
    hides_gtids: false,
};
const OLD: Shape<'_> = Shape {
    deprecate_eof: false,
    track: None,
    mysql: false,
    schema: None,
    hides_gtids: false,
};
const COLUMN: &[u8] = b"\x03def\0\0\0\x011\0\x0c\x3f\0\x01\0\0\0\x03\x81\0\0\0\0";

fn packets(payloads: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut seq = 1;
    payloads
        .iter()
        .for_each(|payload| seq = put_packet(&mut out, seq, payload));
    out
}

/// Relays `input` in pieces of `piece` bytes; what is not used up is offered again.
fn relay(input: &[u8], piece: usize, shape: Shape<'_>) -> (Vec<u8>, Vec<String>, Stop) {
    relay_told(
        input,
        piece,
        shape,
        (ReplyShape::Results, Adjustments::default()),
    )
}

fn relay_told(
    input: &[u8],
    piece: usize,
    shape: Shape<'_>,
    told: (ReplyShape, Adjustments),
) -> (Vec<u8>, Vec<String>, Stop) {
    relay_form(input, piece, shape, told, false)
}

fn relay_form(
    input: &[u8],
    piece: usize,
    shape: Shape<'_>,
    (reply, told): (ReplyShape, Adjustments),
    eofs: bool,
) -> (Vec<u8>, Vec<String>, Stop) {
    let mut reply = CheckedReply::new(reply).with_eofs(eofs);
    let (mut middle, mut seq) = (Middle::default(), 1);
    let (mut out, mut said, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    let mut stop = Stop::Hungry;
    let (mut pending_changes, mut bound) = (PendingChanges::default(), Bound::default());
    for chunk in input.chunks(piece) {
        kept.extend_from_slice(chunk);
        let mut relay = Relay {
            reply: &mut reply,
            middle: &mut middle,
            seq: &mut seq,
            shape,
            status: 2,
            adjustments: told,
            pending_changes: &mut pending_changes,
            bound: &mut bound,
        };
        let (used, why) = relay
            .feed(&kept, &mut out, |step, eof| {
                said.extend(match step {
                    Step::Ok(ok) | Step::End(ok) | Step::CursorOpen(ok) if eof => {
                        Some(format!("eof {:x}", ok.status))
                    }
                    Step::Ok(ok) => Some(format!("ok {:x} false", ok.status)),
                    Step::End(ok) => Some(format!("ok {:x} true", ok.status)),
                    Step::Err(err) => Some(format!("err {}", err.code)),
                    Step::Prepared(prepared) => Some(format!("prepared {}", prepared.id)),
                    _ => None,
                });
            })
            .unwrap();
        kept.drain(..used);
        stop = why;
    }
    assert!(kept.is_empty());
    (out, said, stop)
}

#[test]
fn a_packet_that_must_be_whole_is_bounded() {
    for (len, fits) in [(WHOLE_MAX, true), (WHOLE_MAX + 1, false)] {
        let header = &u32::try_from(len).unwrap().to_le_bytes()[..3];
        let input = [header, &[1, 0xff]].concat();
        let mut reply = CheckedReply::new(ReplyShape::Results);
        let (mut middle, mut seq) = (Middle::default(), 1);
        let (mut pending_changes, mut bound) = (PendingChanges::default(), Bound::default());
        let mut relay = Relay {
            reply: &mut reply,
            middle: &mut middle,
            seq: &mut seq,
            shape: MODERN,
            status: 2,
            adjustments: Adjustments::default(),
            pending_changes: &mut pending_changes,
            bound: &mut bound,
        };
        let fed = relay.feed(&input, &mut Vec::new(), |_, _| {});
        assert_eq!(fed.is_ok(), fits, "{len} bytes");
    }
}

#[test]
fn a_modern_client_gets_the_same_bytes_in_any_pieces() {
    let input = packets(&[
        b"\x01",
        COLUMN,
        b"\x03abc",
        b"\0",
        b"\xfb",
        b"\xfe\0\0\x02\0\0\0",
    ]);
    for piece in 1..=input.len() {
        let (out, said, stop) = relay(&input, piece, MODERN);
        assert_eq!(out, input, "pieces of {piece}");
        assert_eq!((said, stop), (vec!["ok 2 true".to_string()], Stop::Done));
    }
}

#[test]
fn an_old_client_gets_eof_packets_and_shifted_numbers() {
    let input = packets(&[b"\x01", COLUMN, b"\x03abc", b"\xfe\0\0\x22\0\x01\0"]);
    let mut expected = packets(&[b"\x01", COLUMN, b"\xfe\0\0\x02\0", b"\x03abc"]);
    put_packet(&mut expected, 5, b"\xfe\x01\0\x22\0");
    for piece in 1..=input.len() {
        assert_eq!(relay(&input, piece, OLD).0, expected, "pieces of {piece}");
    }
}

#[test]
fn trackers_that_nobody_asked_for_are_stripped() {
    let changed = b"\0\0\0\x02\x40\0\0\0\x05\x01\x03\x02db";
    let plain = b"\0\0\0\x02\0\0\0";
    assert_eq!(relay(&packets(&[changed]), 99, MODERN).0, packets(&[plain]));
    let wanted = Wanted::from_setting("", true);
    let shape = Shape {
        deprecate_eof: true,
        track: Some(&wanted),
        mysql: false,
        schema: None,
        hides_gtids: false,
    };
    assert_eq!(
        relay(&packets(&[changed]), 99, shape).0,
        packets(&[changed])
    );
    let other = Wanted::from_setting("autocommit", false);
    let shape = Shape {
        deprecate_eof: true,
        track: Some(&other),
        mysql: false,
        schema: None,
        hides_gtids: false,
    };
    assert_eq!(relay(&packets(&[changed]), 99, shape).0, packets(&[plain]));
}

#[test]
fn what_an_eof_packet_has_no_room_for_comes_later() {
    let rows: [&[u8]; 4] = [
        b"\x01",
        COLUMN,
        b"\x03abc",
        b"\xfe\0\0\x0a\x40\0\0\0\x05\x01\x03\x02db",
    ];
    let plain = b"\0\0\0\x0a\0\0\0";
    let news = b"\0\0\0\x02\x40\0\0\0\x05\x01\x03\x02ab";
    let zone = b"\0\0\0\x02\x40\0\0\0\x0a\0\x08\x04zone\x02+2";
    let both = b"\0\0\0\x02\x40\0\0\0\x0f\0\x08\x04zone\x02+2\x01\x03\x02db";
    let older = b"\0\0\0\x0a\x40\0\0\0\x05\x01\x03\x02db";
    let wanted = Wanted::from_setting("zone", true);
    // Answers behind rows: what the client is told, by MariaDB and by MySQL.
    let news_as_they_are = [&plain[..], news];
    type Packets<'a> = &'a [&'a [u8]];
    let cases: [(Packets<'_>, [Packets<'_>; 2]); 3] = [
        (&[zone], [&[both], &[both]]),
        (&[plain, zone], [&[plain, both], &[older, zone]]),
        (&[plain, news], [&news_as_they_are, &[older, news]]),
    ];
    for (answers, told) in cases {
        for (mysql, told) in [false, true].into_iter().zip(told) {
            let shape = Shape {
                deprecate_eof: false,
                track: Some(&wanted),
                mysql,
                schema: None,
                hides_gtids: false,
            };
            let (out, ..) = relay(&packets(&[&rows[..], answers].concat()), 99, shape);
            let flags = if mysql { 0 } else { 0x40 };
            let eof: [&[u8]; 5] = [
                rows[0],
                COLUMN,
                b"\xfe\0\0\x02\0",
                rows[2],
                &[0xFE, 0, 0, 0x0A, flags],
            ];
            assert_eq!(out, packets(&[&eof[..], told].concat()), "{mysql}");
        }
    }
}

#[test]
fn an_error_and_a_second_result_are_noticed() {
    let input = packets(&[b"\0\0\0\x0a\0\0\0", b"\xff\x28\x04#42000bad"]);
    let (out, said, stop) = relay(&input, 3, MODERN);
    assert_eq!(out, input);
    assert_eq!(said, ["ok a false", "err 1064"]);
    assert_eq!(stop, Stop::Done);
}

#[test]
fn a_request_for_a_file_stops_the_relay() {
    let loads = (ReplyShape::LocalFile, Adjustments::default());
    let (out, _, stop) = relay_told(&packets(&[b"\xfb/tmp/x"]), 99, MODERN, loads);
    assert_eq!((out, stop), (packets(&[b"\xfb/tmp/x"]), Stop::File));
}

#[test]
fn a_prepared_statement_gets_its_clients_id() {
    let header = |id: u8| [0, id, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    let input = packets(&[&header(99), COLUMN]);
    let told = Adjustments {
        id: Some(7),
        ..Adjustments::default()
    };
    for piece in 1..=input.len() {
        let prepared = (ReplyShape::Prepared, told);
        let (out, said, stop) = relay_told(&input, piece, MODERN, prepared);
        assert_eq!(out, packets(&[&header(7), COLUMN]));
        assert_eq!(
            (&said[..], stop),
            (&["prepared 99".to_string()][..], Stop::Done)
        );
        let (out, ..) = relay_told(&input, piece, OLD, prepared);
        assert_eq!(out, packets(&[&header(7), COLUMN, b"\xfe\0\0\x02\0"]));
    }
}

/// Relays a reply from a backend that sends EOF packets.
fn relay_eofs(input: &[u8], piece: usize, shape: Shape<'_>) -> (Vec<u8>, Vec<String>) {
    let reply = ReplyShape::Results;
    let (out, said, _) = relay_form(input, piece, shape, (reply, Adjustments::default()), true);
    (out, said)
}

#[test]
fn eof_packets_of_the_backend_reach_its_client_as_they_are() {
    let input = packets(&[
        b"\x01",
        COLUMN,
        b"\xfe\x02\0\x2a\0",
        b"\x03abc",
        b"\xfe\x03\0\x0a\0",
        b"\x01",
        COLUMN,
        b"\xfe\0\0\x02\x10",
        b"\xfe\0\0\x02\x10",
    ]);
    let own = [
        &b"\x01"[..],
        COLUMN,
        b"\x03abc",
        b"\xfe\0\0\x0a\0\x03\0",
        b"\x01",
        COLUMN,
        b"\xfe\0\0\x02\x10\0\0",
    ];
    for piece in 1..=input.len() {
        let (out, said) = relay_eofs(&input, piece, OLD);
        assert_eq!(out, input, "pieces of {piece}");
        assert_eq!(said, ["eof a", "eof 1002"]);
        // What the pool asks for itself is kept without them.
        assert_eq!(relay_eofs(&input, piece, Shape::own()).0, packets(&own));
    }
}

#[test]
fn an_eof_packet_does_not_say_that_the_session_changed() {
    let input = packets(&[b"\x01", COLUMN, b"\xfe\0\0\x03\x40", b"\xfe\0\0\x03\x40"]);
    let plain = packets(&[b"\x01", COLUMN, b"\xfe\0\0\x03\0", b"\xfe\0\0\x03\0"]);
    let (out, said) = relay_eofs(&input, 99, OLD);
    assert_eq!((out, said), (plain, vec!["eof 4003".to_string()]));
}

#[test]
fn an_eof_packet_that_opens_a_cursor_ends_the_reply() {
    let open = packets(&[b"\x01", COLUMN, b"\xfe\0\0\x42\0"]);
    for piece in 1..=open.len() {
        let reply = (ReplyShape::Cursor, Adjustments::default());
        let (out, said, _) = relay_form(&open, piece, OLD, reply, true);
        assert_eq!((out, said), (open.clone(), vec!["eof 42".to_string()]));
    }
}

#[test]
fn warnings_of_the_statement_before_are_the_clients_own() {
    let ok = |warnings: u8| packets(&[&[0, 0, 0, 2, 0, warnings, 0]]);
    let told = |warnings| {
        let told = Adjustments {
            warnings,
            ..Adjustments::default()
        };
        relay_told(&ok(3), 99, MODERN, (ReplyShape::Status, told)).0
    };
    assert_eq!(told(None), ok(3));
    assert_eq!(told(Some(1)), ok(1));
}

#[test]
fn changed_columns_are_told_by_what_the_client_knows() {
    // Flags: the server's word on what its own statement was, 0x400, and autocommit.
    let says = |high: u8| {
        let end = [0xFE, 0, 0, 2, high, 0, 0];
        packets(&[b"\x01", COLUMN, &end])
    };
    let results = |columns| {
        let told = Adjustments {
            columns,
            ..Adjustments::default()
        };
        (ReplyShape::Results, told)
    };
    for (said, knows, told) in [(0, 1, 0), (4, 1, 0), (0, 2, 4), (4, 2, 4)] {
        let (out, ..) = relay_told(&says(said), 3, MODERN, results(Some(knows)));
        assert_eq!(out, says(told), "{said} {knows}");
    }
    assert_eq!(relay_told(&says(4), 3, MODERN, results(None)).0, says(4));
}

#[test]
fn a_row_of_two_packets_passes_by() {
    let mut row = vec![0xFD, 0xFF, 0xFF, 0xFF];
    row.resize(4 + 0xFF_FFFF, b'x');
    let input = packets(&[b"\x01", COLUMN, &row, b"\xfe\0\0\x02\0\0\0"]);
    let (out, _, stop) = relay(&input, 60_000, MODERN);
    assert!(out == input);
    assert_eq!(stop, Stop::Done);
}

#[test]
fn the_last_ok_names_a_schema_that_the_backend_had_no_reason_to_name() {
    let wanted = Wanted::from_setting("zone", true);
    let shape = Shape {
        deprecate_eof: true,
        track: Some(&wanted),
        mysql: false,
        schema: Some(b"mine"),
        hides_gtids: false,
    };
    let plain: &[u8] = b"\0\0\0\x02\0\0\0";
    let named: &[u8] = b"\0\0\0\x02\x40\0\0\0\x07\x01\x05\x04mine";
    assert_eq!(relay(&packets(&[plain]), 99, shape).0, packets(&[named]));
    // It stands behind what changed besides, and once.
    let zone: &[u8] = b"\0\0\0\x02\x40\0\0\0\x0a\0\x08\x04zone\x02+2";
    let both: &[u8] = b"\0\0\0\x02\x40\0\0\0\x11\0\x08\x04zone\x02+2\x01\x05\x04mine";
    assert_eq!(relay(&packets(&[zone]), 99, shape).0, packets(&[both]));
    assert_eq!(relay(&packets(&[named]), 99, shape).0, packets(&[named]));
    // Another result follows: what the backend says there is not changed.
    let more: &[u8] = b"\0\0\0\x0a\0\0\0";
    let (out, ..) = relay(&packets(&[more, plain]), 99, shape);
    assert_eq!(out, packets(&[more, named]));
    let deaf = Wanted::from_setting("zone", false);
    let shape = Shape {
        track: Some(&deaf),
        ..shape
    };
    assert_eq!(relay(&packets(&[plain]), 99, shape).0, packets(&[plain]));
}
