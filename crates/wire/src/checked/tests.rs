//! Each breach of a server, with packets written out.
use super::*;
use crate::packet::{HEADER_LEN, put_packet};

const COLUMN: &[u8] = b"\x03def\0\0\0\x011\0\x0c\x3f\0\x01\0\0\0\x03\x81\0\0\0\0";
/// Definition that MariaDB sends with extended metadata: a format "json" in front of the block.
const EXTENDED: &[u8] = b"\x03def\0\0\0\x011\0\x06\x01\x04json\x0c\x2d\0\x01\0\0\0\xfc\x81\0\0\0\0";
const END: &[u8] = b"\xfe\0\0\x02\0\0\0";
const OK: &[u8] = b"\0\0\0\x02\0\0\0";
const FILE: &[u8] = b"\xfb/etc/passwd";

/// Payloads as packets, numbered from 1.
fn packets(payloads: &[&[u8]]) -> Vec<u8> {
    let (mut out, mut seq) = (Vec::new(), 1);
    for payload in payloads {
        seq = put_packet(&mut out, seq, payload);
    }
    out
}

/// Follows packets that come in pieces of `piece` bytes, as a relay does; the bytes of those that
/// were taken, or the breach and the bytes that were taken before it.
fn follow(mut reply: CheckedReply, said: &[u8], piece: usize) -> Result<usize, (Breach, usize)> {
    let (mut at, mut remaining) = (0, 0);
    for end in (piece..said.len() + piece).step_by(piece) {
        let there = &said[..end.min(said.len())];
        loop {
            let now = remaining.min(there.len() - at);
            let ends = remaining == now;
            (reply.pass(&there[at..at + now], ends)).map_err(|error| (error.into(), at))?;
            (at, remaining) = (at + now, remaining - now);
            if remaining > 0 || reply.reply().is_done() {
                break;
            }
            let Some(header) = Header::read(&there[at..]) else {
                break;
            };
            let payload = &there[at + HEADER_LEN..];
            let step = reply
                .advance(header, payload)
                .map_err(|breach| (breach, at))?;
            match step {
                Some(step) if step.passes_by() => {
                    (at, remaining) = (at + HEADER_LEN, header.len);
                }
                Some(step) if payload.len() >= header.len => {
                    assert!(step != Step::Cut, "it is there whole");
                    at += HEADER_LEN + header.len;
                }
                _ => break,
            }
        }
    }
    Ok(at)
}

fn text() -> CheckedReply {
    CheckedReply::new(ReplyShape::Results).numbered()
}

fn binary() -> CheckedReply {
    text().to_command(Command::StmtExecute)
}

/// The words of the breach in these payloads, which must be the same in pieces of any length.
fn breach(reply: CheckedReply, payloads: &[&[u8]]) -> String {
    let said = packets(payloads);
    let (found, _) = follow(reply, &said, said.len()).expect_err("it breaks the protocol");
    for piece in [1, 2, 3, 7, 64] {
        let pieces = follow(reply, &said, piece).expect_err("it breaks the protocol in pieces");
        assert_eq!(pieces.0, found, "in pieces of {piece}");
    }
    found.to_string()
}

/// Checks that all of it is a reply, in pieces of any length.
fn whole(reply: CheckedReply, payloads: &[&[u8]]) {
    let said = packets(payloads);
    for piece in [1, 2, 3, 7, 64, said.len()] {
        assert_eq!(
            follow(reply, &said, piece),
            Ok(said.len()),
            "in pieces of {piece}"
        );
    }
}

#[test]
fn a_request_for_a_file_is_taken_where_it_was_asked_for_alone() {
    for shape in [ReplyShape::Results, ReplyShape::Cursor] {
        let words = breach(CheckedReply::new(shape), &[FILE]);
        assert!(
            words.contains("asked for a file of the client's"),
            "{words}"
        );
    }
    let load = CheckedReply::new(ReplyShape::LocalFile).numbered();
    breach(load.without_files(), &[FILE]);
    breach(load, &[b"\x01", COLUMN, b"\x01a", FILE]);
    // The file's packets have the numbers 2 to 9.
    let mut said = packets(&[FILE]);
    put_packet(&mut said, 10, OK);
    assert_eq!(follow(load, &said, said.len()), Ok(said.len()));
}

#[test]
fn packets_are_numbered_from_the_command_on() {
    let good = packets(&[b"\x01", COLUMN, b"\x01a", END]);
    assert_eq!(follow(text(), &good, good.len()), Ok(good.len()));
    let starts = [0, 5, 5 + 4 + COLUMN.len(), 5 + 4 + COLUMN.len() + 6];
    for (number, start) in starts.into_iter().enumerate() {
        let mut said = good.clone();
        said[start + 3] = 9;
        let expected = u8::try_from(number + 1).unwrap();
        let breach = Breach::OutOfOrder { expected, got: 9 };
        assert_eq!(follow(text(), &said, said.len()), Err((breach, start)));
    }
    // Of a command of several packets the first number is not known, and those behind it are.
    let unknown = CheckedReply::new(ReplyShape::Results);
    let mut said = Vec::new();
    put_packet(&mut said, 3, b"\x01");
    put_packet(&mut said, 4, COLUMN);
    put_packet(&mut said, 6, END);
    let breach = Breach::OutOfOrder {
        expected: 5,
        got: 6,
    };
    let at = said.len() - HEADER_LEN - END.len();
    assert_eq!(follow(unknown, &said, said.len()), Err((breach, at)));
    assert_eq!(
        follow(unknown.unchecked(), &said, said.len()),
        Ok(said.len())
    );
}

#[test]
fn numbers_begin_again_behind_255() {
    let mut said = packets(&[b"\x01", COLUMN]);
    let mut seq = 3;
    for _ in 0..600 {
        seq = put_packet(&mut said, seq, b"\x01a");
    }
    put_packet(&mut said, seq, END);
    assert_eq!(follow(text(), &said, said.len()), Ok(said.len()));
}

#[test]
fn columns_that_end_early_are_no_columns() {
    for instead in [&b"\x01a\x01b"[..], END, OK, b"", b"\xfb", b"\x03def\0\0"] {
        breach(text(), &[b"\x02", COLUMN, instead]);
    }
    let prepared = CheckedReply::new(ReplyShape::Prepared).numbered();
    let header = b"\0\x07\0\0\0\x01\0\x01\0\0\0\0";
    whole(prepared, &[header, COLUMN, EXTENDED]);
    breach(prepared, &[header, COLUMN, END]);
    breach(prepared, &[b"\x02\x07\0\0\0\x01\0\x01\0\0\0\0"]);
    whole(text(), &[b"\x02", COLUMN, EXTENDED, b"\x01a\xfb", END]);
    // An error may stand anywhere.
    whole(text(), &[b"\x02", COLUMN, b"\xff\x25\x05#70100killed"]);
    for longer in [[COLUMN, b"\0"].concat(), [EXTENDED, b"\0"].concat()] {
        breach(text(), &[b"\x01", &longer]);
    }
}

#[test]
fn a_column_count_has_its_bounds_and_its_packet_alone() {
    for count in [&b"\xfc\0\0"[..], b"\xfd\0\0\x01", b"\x01\0"] {
        breach(text(), &[count]);
    }
    let most = packets(&[b"\xfc\xff\xff", COLUMN]);
    assert_eq!(follow(text(), &most, most.len()), Ok(most.len()));
}

#[test]
fn a_status_is_asked_for_and_nothing_else_comes() {
    let status = CheckedReply::new(ReplyShape::Status).numbered();
    whole(status, &[OK]);
    for instead in [&b"\x01"[..], FILE, b""] {
        breach(status, &[instead]);
    }
}

#[test]
fn a_row_has_a_value_for_each_column() {
    let long = [&b"\xfc\x2c\x01"[..], &[b'x'; 300]].concat();
    let longer = [&b"\xfd\xd0\x07\0"[..], &[b'y'; 2000]].concat();
    let columns = [&b"\x03"[..], COLUMN, COLUMN, COLUMN];
    let with = |row: &[u8]| {
        let mut payloads = columns.to_vec();
        payloads.extend([row, END]);
        packets(&payloads)
    };
    for values in [
        [&b"\x01a"[..], b"\xfb", b"\0"],
        [&long, &longer, b"\xfb"],
        [b"\0", &longer, &long],
        [b"\xfb", b"\xfb", b"\xfb"],
    ] {
        let row = values.concat();
        for piece in [1, 5, 1000, usize::from(u16::MAX)] {
            let said = with(&row);
            assert_eq!(follow(text(), &said, piece), Ok(said.len()));
            for wrong in [
                row[..row.len() - values[2].len()].to_vec(),
                row[..row.len() - 1].to_vec(),
                [&row[..], b"\0"].concat(),
                [&row[..], b"\xfb"].concat(),
            ] {
                let said = with(&wrong);
                assert!(follow(text(), &said, piece).is_err(), "{wrong:x?}");
            }
        }
    }
}

#[test]
fn lengths_do_not_reach_beyond_the_packet() {
    for row in [
        &b"\x02a"[..],
        b"\xfc\xff",
        b"\xfc\xff\xffabc",
        b"\xfd\xff\xff\xff",
        b"\xfe\xff\xff\xff\xff\xff\xff\xff",
        b"",
    ] {
        breach(text(), &[b"\x01", COLUMN, row, END]);
    }
    // 0xFF is no length, and 0xFE in front of a short packet is no row.
    breach(text(), &[b"\x02", COLUMN, COLUMN, b"\x01a\xff", END]);
    breach(text(), &[b"\x01", COLUMN, b"\xfe\xff\xff"]);
    breach(text(), &[b"\0\x01"]);
    breach(text(), &[b"\0\0\0\x02\x40\0\0\0\x09"]);
}

#[test]
fn a_short_row_is_checked_before_any_of_it_is_passed_on() {
    for (len, before) in [(ROW_WHOLE_MAX, true), (ROW_WHOLE_MAX + 1, false)] {
        let value = len - 3;
        let row = [
            &[0xFC][..],
            &u16::try_from(value).unwrap().to_le_bytes(),
            &vec![b'x'; value],
        ];
        let said = packets(&[b"\x02", COLUMN, COLUMN, &row.concat()]);
        let start = said.len() - HEADER_LEN - len;
        let (_, taken) = follow(text(), &said, 100).expect_err("it lacks a value");
        assert_eq!(taken == start, before, "{len}");
        let (_, taken) = follow(text(), &said, said.len()).expect_err("it lacks a value");
        assert_eq!(taken, start, "it is there whole");
    }
}

#[test]
fn a_row_of_several_packets_is_one_row() {
    let value = PAYLOAD_MAX + 10;
    let mut row = [&[0xFE][..], &(value as u64).to_le_bytes()].concat();
    row.resize(row.len() + value, b'x');
    for (behind, good) in [(&b"\xfb"[..], true), (b"", false), (b"\xfb\xfb", false)] {
        let row = [&row[..], behind].concat();
        let said = packets(&[b"\x02", COLUMN, COLUMN, &row, END]);
        let followed = follow(text(), &said, 1 << 16);
        assert_eq!(followed.is_ok(), good, "{behind:x?}");
    }
}

/// The definition of a column of this type.
fn column(column_type: u8) -> Vec<u8> {
    let mut column = COLUMN.to_vec();
    let at = column.len() - 6;
    column[at] = column_type;
    column
}

/// A result with columns of these types, this row, and its end.
fn result(types: &[u8], row: &[u8]) -> Vec<Vec<u8>> {
    let columns = types.iter().map(|column_type| column(*column_type));
    let count = [u8::try_from(types.len()).unwrap()];
    let ends = [row.to_vec(), END.to_vec()];
    [count.to_vec()]
        .into_iter()
        .chain(columns)
        .chain(ends)
        .collect()
}

fn slices(payloads: &[Vec<u8>]) -> Vec<&[u8]> {
    payloads.iter().map(Vec::as_slice).collect()
}

#[test]
fn a_binary_row_has_the_values_of_its_columns_types() {
    // TINY, SHORT, YEAR, LONG, INT24, FLOAT, LONGLONG, DOUBLE: numbers without a length.
    let numbers = [
        (1, 1),
        (2, 2),
        (13, 2),
        (3, 4),
        (9, 4),
        (4, 4),
        (8, 8),
        (5, 8),
    ];
    for (column_type, width) in numbers {
        for len in 0..10 {
            let row = [&b"\0\0"[..], &vec![0xFF; len]].concat();
            let payloads = result(&[column_type], &row);
            match len == width {
                true => whole(binary(), &slices(&payloads)),
                false => drop(breach(binary(), &slices(&payloads))),
            }
        }
    }
    // TIMESTAMP, DATE, TIME, DATETIME; and one of the many with any length, VARCHAR.
    for column_type in [7, 10, 11, 12, 15] {
        for row in [
            &b"\0\0\0"[..],
            b"\0\0\x04abcd",
            b"\0\0\x0cabcdefghijkl",
            b"\0\x04",
        ] {
            whole(binary(), &slices(&result(&[column_type], row)));
        }
        for row in [&b"\0\0"[..], b"\0\0\x04abc", b"\0\0\x04abcde", b"\0\x04\0"] {
            breach(binary(), &slices(&result(&[column_type], row)));
        }
        let long = result(&[column_type], b"\0\0\x0dabcdefghijklm");
        match column_type {
            15 => whole(binary(), &slices(&long)),
            _ => assert!(breach(binary(), &slices(&long)).contains("a date or time")),
        }
    }
}

#[test]
fn a_binary_row_has_one_value_for_each_column() {
    // LONG, NULL, VARCHAR, TINY
    let types = [3, 6, 15, 1];
    for row in [
        &b"\0\x08\x05\0\0\0\x01a\x07"[..],
        b"\0\x0c\x01a\x07",
        b"\0\x1c\x07",
        b"\0\x3c",
        b"\0\x08\x05\0\0\0\xfc\x02\0ab\x07",
    ] {
        whole(binary(), &slices(&result(&types, row)));
    }
    for (row, words) in [
        (&b"\0\x08\x05\0\0\0\x01a"[..], "a value for each column"),
        (b"\0\x08\x05\0\0\0", "a value for each column"),
        (b"\0\x08\x05\0\0\0\x01a\x07\x08", "no value behind the last"),
        (b"\0\x08\x05\0", "a value that ends within its row"),
        (
            b"\0\x08\x05\0\0\0\x09a\x07",
            "a value that ends within its row",
        ),
        (
            b"\0\x08\x05\0\0\0\xfc\xff\xffab",
            "a value that ends within",
        ),
        (
            b"\0\x08\x05\0\0\0\xfc\x02",
            "a value that ends within its row",
        ),
        (b"\0\x08\x05\0\0\0\xfb\x07", "the length of a value"),
        (b"\0\x08\x05\0\0\0\xff\x07", "the length of a value"),
        (
            b"\x01\x08\x05\0\0\0\x01a\x07",
            "a row in the binary protocol",
        ),
        (b"\0", "a value for each column"),
        (b"", "a row in the binary protocol"),
    ] {
        let said = breach(binary(), &slices(&result(&types, row)));
        assert!(said.contains(words), "{row:x?}: {said}");
    }
}

#[test]
fn a_long_binary_row_is_checked_in_pieces() {
    // LONG, VARCHAR, DATE, VARCHAR
    let types = [3, 15, 10, 15];
    let mut row = b"\0\0\x05\0\0\0\xfc\x84\x03".to_vec();
    row.resize(row.len() + 0x384, b'x');
    row.extend_from_slice(b"\x04abcd\xfd\xc8\0\0");
    row.resize(row.len() + 200, b'y');
    assert!(row.len() > ROW_WHOLE_MAX);
    whole(binary(), &slices(&result(&types, &row)));
    let date = row.len() - 200 - 4 - 5;
    let mut long_date = row.clone();
    long_date[date] = 13;
    for (wrong, words) in [
        ([&row[..], b"z"].concat(), "no value behind the last"),
        (row[..row.len() - 1].to_vec(), "a value that ends within"),
        (row[..date + 5].to_vec(), "a value for each column"),
        (row[..date + 7].to_vec(), "a value that ends within"),
        (long_date, "a date or time of at most 12 bytes"),
    ] {
        let said = packets(&slices(&result(&types, &wrong)));
        for piece in [1, 2, 3, 7, 64, 1000, said.len()] {
            let (found, _) = follow(binary(), &said, piece).expect_err(words);
            assert!(found.to_string().contains(words), "in {piece}s: {found}");
        }
    }
}

#[test]
fn the_values_behind_the_typed_columns_need_a_byte_each() {
    let count = crate::rows::TYPED_MAX;
    // TINY, with two more of unknown length behind the last that is kept.
    let types = vec![1; count + 2];
    let head = vec![0; crate::rows::binary_head_len(u16::try_from(types.len()).unwrap())];
    let row = |values: usize| [&head[..], &vec![7; values]].concat();
    for good in [count + 2, count + 20, count + 2000] {
        whole(binary(), &slices(&result(&types, &row(good))));
    }
    for wrong in [count + 1, count, count - 1, 0] {
        breach(binary(), &slices(&result(&types, &row(wrong))));
    }
    let types = &types[..count];
    whole(
        binary(),
        &slices(&result(types, &[&vec![0; 6][..], &vec![7; count]].concat())),
    );
    breach(
        binary(),
        &slices(&result(
            types,
            &[&vec![0; 6][..], &vec![7; count + 1]].concat(),
        )),
    );
}

#[test]
fn fetched_rows_are_those_of_the_columns_of_the_cursor() {
    let mut opens = CheckedReply::new(ReplyShape::Cursor).numbered();
    let said = packets(&slices(&result(&[3, 15], b"\0\x0c")));
    let mut at = 0;
    while let Some(header) = Header::read(&said[at..]) {
        opens.advance(header, &said[at + HEADER_LEN..]).unwrap();
        at += HEADER_LEN + header.len;
    }
    let fetch = CheckedReply::new(Command::StmtFetch.reply()).to_command(Command::StmtFetch);
    let fetch = fetch.numbered().of_cursor(opens.columns());
    whole(fetch, &[b"\0\0\x05\0\0\0\x01a", b"\0\x04\x01b", END]);
    breach(fetch, &[b"\0\0\x05\0\0\0\x01a", b"\0\0\x05\0\0\0", END]);
    breach(fetch, &[b"\0\0\x05\0\0\0\x02a", END]);
}

#[test]
fn rows_without_a_count_in_front_are_passed_on() {
    for command in [Command::StmtFetch, Command::FieldList] {
        let reply = CheckedReply::new(command.reply()).to_command(command);
        whole(reply.numbered(), &[b"\0\0\x05", END]);
    }
}

#[test]
fn a_second_statement_of_a_command_is_numbered_on() {
    let mut first = CheckedReply::new(ReplyShape::Status).numbered();
    let more = packets(&[b"\0\0\0\x0a\0\0\0"]);
    let header = Header::read(&more).unwrap();
    first.advance(header, &more[HEADER_LEN..]).unwrap();
    let mut second = text().behind();
    second.note_before(&first);
    for (seq, good) in [(2, true), (1, false)] {
        let header = Header { len: OK.len(), seq };
        let mut second = second;
        assert_eq!(second.advance(header, OK).is_ok(), good);
    }
    // One with a command of its own has its own numbers.
    let mut own = text();
    own.note_before(&first);
    assert_eq!(own, text());
}
