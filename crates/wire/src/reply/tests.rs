//! Replies packet by packet, with payloads written out.
use super::*;

/// Feeds whole payloads; panics in the test where one does not fit.
fn feed<'a>(reply: &mut Reply, payload: &'a [u8]) -> Step<'a> {
    reply.advance(payload.len(), payload).unwrap()
}

const COLUMN: &[u8] = b"\x03def\0\0\0\x011\0\x0c\x3f\0\x01\0\0\0\x03\x81\0\0\0\0";
const DEFINITION: Step<'_> = Step::Definition { ends: false };
const LAST_DEFINITION: Step<'_> = Step::Definition { ends: true };
const END_PLAIN: &[u8] = b"\xfe\0\0\x02\0\0\0";
const END_MORE: &[u8] = b"\xfe\0\0\x0a\0\0\0";

#[test]
fn an_ok_packet_says_five_things_and_changes() {
    let payload = b"\0\x03\xfc\x00\x01\x03\x40\x02\0\x04info\x03\x02\x011";
    let ok = OkPacket::read(payload, true).unwrap();
    assert_eq!((ok.affected_rows, ok.insert_id, ok.warnings), (3, 256, 2));
    assert_eq!(ok.status, status::IN_TRANS | status::AUTOCOMMIT | 0x4000);
    assert_eq!((ok.info, ok.changes), (&b"info"[..], &b"\x02\x011"[..]));
    let mut out = Vec::new();
    ok.put(&mut out, OK, true);
    assert_eq!(out, payload);
    let stripped = OkPacket {
        status: ok.status & !0x4000,
        changes: b"",
        ..ok
    };
    out.clear();
    stripped.put(&mut out, OK, false);
    assert_eq!(out, b"\0\x03\xfc\x00\x01\x03\0\x02\0\x04info");
    assert_eq!(OkPacket::read(&out, false).unwrap().info, b"info");
}

#[test]
fn an_info_text_has_its_length_in_front_with_and_without_tracking() {
    // What MariaDB 10.11 answers to an UPDATE without CLIENT_SESSION_TRACK.
    let payload = b"\0\x01\0\x02\0\0\0\x28Rows matched: 1  Changed: 1  Warnings: 0";
    for session_track in [false, true] {
        let ok = OkPacket::read(payload, session_track).unwrap();
        assert_eq!(ok.info, b"Rows matched: 1  Changed: 1  Warnings: 0");
        let mut out = Vec::new();
        ok.put(&mut out, OK, session_track);
        assert_eq!(out, payload);
    }
    let bare = OkPacket::read(b"\0\0\0\x02\0\0\0Rows", false).unwrap();
    assert_eq!(bare.info, b"Rows", "as the manual has it");
}

#[test]
fn changes_are_found_behind_the_zeros_of_a_wide_default_schema() {
    // What MariaDB 10.11 answers to USE of a schema in ucs2, and in utf32.
    let changes = b"\x01\x03\x02d1\x02\x011";
    for zeros in 0..=PADDING_MAX {
        let payload = [
            &b"\0\0\0\x02\x40\0\0\0"[..],
            &vec![0; zeros],
            b"\x08",
            changes,
        ]
        .concat();
        let ok = OkPacket::read(&payload, true).unwrap();
        assert_eq!((ok.info, ok.changes), (&b""[..], &changes[..]), "{zeros}");
    }
    let more = b"\0\0\0\x02\x40\0\0\0\0\0\0\0\x08";
    assert_eq!(OkPacket::read(more, true).unwrap().changes, b"");
    let none = b"\0\0\0\x02\x40\0\0\0\0";
    assert_eq!(OkPacket::read(none, true).unwrap().changes, b"");
}

#[test]
fn an_eof_packet_is_five_bytes() {
    let ok = OkPacket::read(b"\xfe\x01\0\x22\0", true).unwrap();
    assert_eq!((ok.warnings, ok.status), (1, 0x22));
    let mut out = Vec::new();
    ok.put_eof(&mut out);
    assert_eq!(out, b"\xfe\x01\0\x22\0");
}

#[test]
fn an_err_packet_has_a_number_a_state_and_words() {
    let mut out = Vec::new();
    put_err(&mut out, 1, crate::errors::ACCESS_DENIED, "Access denied");
    assert_eq!(out, b"\x16\0\0\x01\xff\x15\x04#28000Access denied");
    let err = ErrPacket::read(&out[4..]).unwrap();
    assert_eq!(
        (err.code, err.state, err.message),
        (1045, &b"28000"[..], &b"Access denied"[..])
    );
    let early = ErrPacket::read(b"\xff\x10\x04Too many connections").unwrap();
    assert_eq!((early.code, early.state), (1040, &b"HY000"[..]));
}

#[test]
fn a_result_set_ends_at_its_end_packet() {
    let mut reply = Reply::new(ReplyShape::Results);
    assert_eq!(feed(&mut reply, b"\x02"), Step::Columns(2));
    assert_eq!(feed(&mut reply, COLUMN), DEFINITION);
    assert_eq!(feed(&mut reply, COLUMN), LAST_DEFINITION);
    assert_eq!(feed(&mut reply, b"\x01a\x01b"), Step::Row);
    assert_eq!(
        feed(&mut reply, b"\xfb\xfb"),
        Step::Row,
        "a row of NULLs is no file request"
    );
    assert_eq!(
        feed(&mut reply, b"\0\x01x"),
        Step::Row,
        "an empty string first is no OK"
    );
    assert!(!reply.is_done());
    assert!(matches!(feed(&mut reply, END_PLAIN), Step::End(_)));
    assert!(reply.is_done());
    assert_eq!(reply.rows(), 3);
    assert!(reply.advance(0, b"").is_err());
}

#[test]
fn more_results_start_again() {
    let mut reply = Reply::new(ReplyShape::Results);
    feed(&mut reply, b"\x01");
    feed(&mut reply, COLUMN);
    assert!(matches!(feed(&mut reply, END_MORE), Step::End(_)));
    assert!(!reply.is_done() && reply.is_at_start());
    assert!(matches!(feed(&mut reply, b"\0\0\0\x02\0\0\0"), Step::Ok(_)));
    assert!(reply.is_done());
}

#[test]
fn a_row_that_begins_with_fe_is_a_row_when_it_is_long() {
    let mut reply = Reply::new(ReplyShape::Results);
    feed(&mut reply, b"\x01");
    feed(&mut reply, COLUMN);
    assert_eq!(reply.advance(PAYLOAD_MAX, b"\xfe"), Ok(Step::Row));
    assert_eq!(reply.advance(10, b"\xff"), Ok(Step::Continuation));
    assert!(matches!(
        feed(&mut reply, b"\xff\x25\x05#70100killed"),
        Step::Err(_)
    ));
    assert_eq!(reply.rows(), 1);
}

#[test]
fn what_decides_must_be_there_whole_and_all_else_may_pass_by() {
    let mut reply = Reply::new(ReplyShape::Results);
    assert_eq!(reply.advance(3, b""), Ok(Step::Cut));
    assert_eq!(reply.advance(3, b"\xfc\x01"), Ok(Step::Cut));
    assert!(reply.is_at_start(), "nothing has happened");
    assert_eq!(
        reply.advance(3, b"\xfc\x01\0and more"),
        Ok(Step::Columns(1))
    );
    assert_eq!(reply.advance(COLUMN.len(), b"\x03d"), Ok(Step::Cut));
    assert_eq!(reply.advance(COLUMN.len(), COLUMN), Ok(LAST_DEFINITION));
    assert_eq!(reply.advance(2, b"\x01"), Ok(Step::Row));
    assert_eq!(reply.advance(7, b""), Ok(Step::Cut));
    assert_eq!(reply.advance(7, b"\xfe"), Ok(Step::Cut));
    assert_eq!(reply.rows(), 1);
    assert!(matches!(feed(&mut reply, END_PLAIN), Step::End(_)));
}

#[test]
fn an_error_among_rows_ends_the_reply() {
    let mut reply = Reply::new(ReplyShape::Results);
    feed(&mut reply, b"\x01");
    feed(&mut reply, COLUMN);
    feed(&mut reply, b"\x01a");
    assert!(matches!(
        feed(&mut reply, b"\xff\x25\x05#70100killed"),
        Step::Err(_)
    ));
    assert!(reply.is_done());
}

#[test]
fn a_prepared_statement_brings_its_definitions() {
    let mut reply = Reply::new(ReplyShape::Prepared);
    let header = b"\0\x07\0\0\0\x01\0\x02\0\0\x03\0";
    let prepared = Prepared {
        id: 7,
        columns: 1,
        params: 2,
        warnings: 3,
    };
    assert_eq!(feed(&mut reply, header), Step::Prepared(prepared));
    assert_eq!(feed(&mut reply, COLUMN), DEFINITION);
    assert_eq!(feed(&mut reply, COLUMN), LAST_DEFINITION);
    assert!(!reply.is_done());
    assert_eq!(feed(&mut reply, COLUMN), LAST_DEFINITION);
    assert!(reply.is_done());
    let mut empty = Reply::new(ReplyShape::Prepared);
    feed(&mut empty, b"\0\x07\0\0\0\0\0\0\0\0\0\0");
    assert!(empty.is_done());
}

#[test]
fn the_shapes_without_a_count_end_where_they_must() {
    assert!(Reply::new(ReplyShape::None).is_done());
    let mut fetch = Reply::new(ReplyShape::Rows);
    feed(&mut fetch, b"\0\0\x05");
    assert!(matches!(feed(&mut fetch, END_PLAIN), Step::End(_)));
    assert!(fetch.is_done());
    let mut text = Reply::new(ReplyShape::Text);
    feed(&mut text, b"Uptime: 1");
    assert!(text.is_done());
    let mut option = Reply::new(ReplyShape::Status);
    assert!(matches!(feed(&mut option, b"\xfe\0\0\x02\0"), Step::Ok(_)));
    assert!(option.is_done());
}

#[test]
fn a_file_request_is_followed_by_its_status() {
    let mut reply = Reply::new(ReplyShape::Results);
    assert_eq!(feed(&mut reply, b"\xfb/tmp/x"), Step::File);
    assert!(!reply.is_done());
    assert!(matches!(
        feed(&mut reply, b"\0\x02\0\x02\0\0\0"),
        Step::Ok(_)
    ));
    assert!(reply.is_done());
}

#[test]
fn without_deprecate_eof_an_eof_packet_stands_behind_each_list_of_definitions() {
    let eof = |status: u8| [END, 2, 0, status, 0];
    let mut reply = Reply::new(ReplyShape::Cursor).with_eofs(true);
    feed(&mut reply, b"\x01");
    assert_eq!(feed(&mut reply, COLUMN), DEFINITION);
    let said = eof(0x2A);
    let Step::DefinitionsEnd(ok) = feed(&mut reply, &said) else {
        panic!("an EOF packet behind the definitions");
    };
    assert_eq!((ok.status, ok.warnings), (0x2A, 2));
    assert_eq!(feed(&mut reply, b"\x01a"), Step::Row);
    let said = eof(0x0A);
    assert!(matches!(feed(&mut reply, &said), Step::End(_)));
    assert!(reply.is_at_start(), "another result follows");
    feed(&mut reply, b"\x01");
    feed(&mut reply, COLUMN);
    let open = eof(0x42);
    feed(&mut reply, &open);
    assert!(reply.is_done(), "a cursor's rows are fetched");
    for (header, lists) in [
        (&b"\0\x01\0\0\0\x02\0\x01\0\0\0\0"[..], &[1, 2][..]),
        (&b"\0\x01\0\0\0\0\0\x01\0\0\0\0"[..], &[1]),
        (&b"\0\x01\0\0\0\x02\0\0\0\0\0\0"[..], &[2]),
    ] {
        let mut reply = Reply::new(ReplyShape::Prepared).with_eofs(true);
        feed(&mut reply, header);
        for definitions in lists {
            (0..*definitions).for_each(|_| assert_eq!(feed(&mut reply, COLUMN), DEFINITION));
            assert!(!reply.is_done());
            let said = eof(2);
            assert!(matches!(feed(&mut reply, &said), Step::DefinitionsEnd(_)));
        }
        assert!(reply.is_done());
    }
}

#[test]
fn rows_in_place_of_the_eof_packet_behind_definitions_are_malformed() {
    for payload in [&b"\x01a"[..], b"\xfe\0\0\x02", b"\xfe\0\0\x02\0\0\0", b""] {
        let mut reply = Reply::new(ReplyShape::Results).with_eofs(true);
        feed(&mut reply, b"\x01");
        feed(&mut reply, COLUMN);
        assert!(reply.advance(payload.len(), payload).is_err());
    }
}

/// The status of a procedure's own cursor opens no cursor of the client's.
#[test]
fn rows_follow_where_no_cursor_was_asked_for() {
    for (shape, over) in [(ReplyShape::Results, false), (ReplyShape::Cursor, true)] {
        let mut reply = Reply::new(shape).with_eofs(true);
        feed(&mut reply, b"\x01");
        feed(&mut reply, COLUMN);
        feed(&mut reply, b"\xfe\0\0\x4a\0");
        assert_eq!(reply.is_done(), over);
        if !over {
            feed(&mut reply, b"\0\0\x06\0\0\0");
            feed(&mut reply, b"\xfe\0\0\x4a\0");
            feed(&mut reply, b"\0\0\0\x42\0\0\0");
            assert!(reply.is_done());
        }
    }
}

/// MySQL 9.7 answers the execution of a CALL so; MariaDB sets the flag in the last EOF packet too.
#[test]
fn behind_out_parameters_the_ok_of_the_call_follows() {
    let mut reply = Reply::new(ReplyShape::Results).with_eofs(true);
    feed(&mut reply, b"\x01");
    feed(&mut reply, COLUMN);
    feed(&mut reply, b"\xfe\0\0\x0a\x10");
    feed(&mut reply, b"\0\0\x06\0\0\0");
    feed(&mut reply, b"\xfe\0\0\x02\0");
    assert!(!reply.is_done());
    feed(&mut reply, b"\0\0\0\x02\0\0\0");
    assert!(reply.is_done());
}

/// MySQL answers a CALL of a procedure that runs XA RECOVER so: no flag says that the OK follows.
#[test]
fn behind_the_rows_of_a_call_its_ok_follows_whatever_the_flags_say() {
    for eofs in [true, false] {
        let mut reply = Reply::new(ReplyShape::Call).with_eofs(eofs);
        feed(&mut reply, b"\x01");
        feed(&mut reply, COLUMN);
        if eofs {
            feed(&mut reply, b"\xfe\0\0\x02\0");
        }
        let end: &[u8] = if eofs {
            b"\xfe\0\0\x02\0"
        } else {
            b"\xfe\0\0\x02\0\0\0"
        };
        let Ok(Step::End(end)) = reply.advance(end.len(), end) else {
            panic!("rows end");
        };
        assert_eq!(
            end.status,
            0x02 | status::MORE_RESULTS,
            "the client is told"
        );
        assert!(!reply.is_done());
        feed(&mut reply, b"\0\0\0\x02\0\0\0");
        assert!(reply.is_done());
    }
    let mut failed = Reply::new(ReplyShape::Call);
    feed(&mut failed, b"\xff\x19\x05#42000no such procedure");
    assert!(failed.is_done());
}
