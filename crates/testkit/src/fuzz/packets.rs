//! Packets: the cutter, commands, and the values in payloads.
//!
//! A cutter that is off by a byte takes the middle of one client's value for the next command, so
//! the cut must be the same however the bytes arrive, and writing must give the bytes back.

use super::pieces;
use wire::command::{Command, ReplyShape, put_command};
use wire::packet::{
    Frame, HEADER_LEN, Header, PAYLOAD_MAX, Reader, frame, join_payload, put_lenenc,
    put_lenenc_bytes, put_packet,
};

/// The messages at the front of `bytes`, each with the number of its last packet, and what stands
/// behind them.
fn cut(mut bytes: &[u8]) -> (Vec<(&[u8], u8)>, Frame) {
    let mut messages = Vec::new();
    loop {
        match frame(bytes) {
            Frame::Whole { total, last_seq } => {
                let (message, rest) = bytes.split_at(total);
                messages.push((message, last_seq));
                bytes = rest;
            }
            end => return (messages, end),
        }
    }
}

/// Reads a stream of packets, as either side sends it.
pub(super) fn packets(data: &[u8]) {
    let (whole, end) = cut(data);
    let mut input: Vec<u8> = Vec::new();
    let mut found: Vec<(Vec<u8>, u8)> = Vec::new();
    for piece in pieces(data) {
        input.extend_from_slice(piece);
        let (messages, state) = cut(&input);
        let used: usize = messages.iter().map(|(message, _)| message.len()).sum();
        found.extend(
            messages
                .iter()
                .map(|(message, seq)| (message.to_vec(), *seq)),
        );
        if let Frame::Partial { total } = state {
            assert!(total > input.len() - used, "what is there is not partial");
        }
        input.drain(..used);
    }
    let whole: Vec<(Vec<u8>, u8)> = whole.iter().map(|(m, seq)| (m.to_vec(), *seq)).collect();
    assert_eq!(found, whole, "the cut depends on how the bytes arrive");
    if !input.is_empty() {
        assert_eq!(frame(&input), end);
    }
    for (message, last_seq) in &whole {
        one_message(message, *last_seq);
    }
}

fn one_message(message: &[u8], last_seq: u8) {
    let header = Header::read(message).expect("a message has a header");
    assert_eq!(header.bytes(), message[..HEADER_LEN]);
    for cut in 0..message.len().min(64) {
        match frame(&message[..cut]) {
            Frame::Partial { total } => assert!(cut < total && total <= message.len()),
            other => panic!("{other:?} of {cut} bytes of a message of {}", message.len()),
        }
    }
    let (mut payload, mut again) = (Vec::new(), Vec::new());
    join_payload(message, &mut payload);
    let next = put_packet(&mut again, header.seq, &payload);
    assert_eq!(again, message, "written otherwise than read");
    assert_eq!(next, last_seq.wrapping_add(1));
    if let Some((&byte, arguments)) = payload.split_first() {
        one_command(byte, arguments);
    }
}

fn one_command(byte: u8, arguments: &[u8]) {
    let Some(command) = Command::from_byte(byte) else {
        return;
    };
    assert_eq!(command.byte(), byte);
    let silent = matches!(
        command,
        Command::Quit | Command::StmtClose | Command::StmtSendLongData
    );
    assert_eq!(command.reply() == ReplyShape::None, silent, "{command:?}");
    let (mut out, mut payload) = (Vec::new(), Vec::new());
    put_command(&mut out, command, arguments);
    assert!(matches!(frame(&out), Frame::Whole { total, .. } if total == out.len()));
    join_payload(&out, &mut payload);
    assert_eq!((payload[0], &payload[1..]), (byte, arguments));
}

/// Takes a payload apart by a list of readings: the bytes of the first half say which.
pub(super) fn values(data: &[u8]) {
    let (orders, payload) = data.split_at(data.len() / 2);
    let mut reader = Reader::new(payload);
    let mut left = payload;
    for order in orders {
        let before = reader;
        let read = match order % 7 {
            0 => reader.u8("a byte").map(|value| vec![value]),
            1 => reader.u16("two").map(|value| value.to_le_bytes().to_vec()),
            2 => reader.u32("four").map(|value| value.to_le_bytes().to_vec()),
            3 => reader
                .bytes(usize::from(order / 7), "some")
                .map(<[u8]>::to_vec),
            4 => reader
                .nul_bytes("a text")
                .map(|text| [text, b"\0"].concat()),
            5 => reader.lenenc("a number").map(|value| number(left, value)),
            _ => reader.lenenc_bytes("a text").map(|text| string(left, text)),
        };
        match read {
            Ok(bytes) => {
                let rest = left.strip_prefix(&bytes[..]);
                left = rest.expect("what is read is what stands there");
            }
            Err(malformed) => {
                assert!(malformed.at <= malformed.len && malformed.len == payload.len());
                // What failed may have read a length; it is not asked again.
                reader = before;
            }
        }
        assert_eq!(reader.is_empty(), left.is_empty());
        let mut rest = reader;
        assert_eq!(rest.rest(), left);
    }
}

/// The bytes that `value` stood as; the shortest form is never longer, and is read as the same.
fn number(bytes: &[u8], value: u64) -> Vec<u8> {
    let mut shortest = Vec::new();
    put_lenenc(&mut shortest, value);
    assert_eq!(Reader::new(&shortest).lenenc("a number"), Ok(value));
    let len = match bytes[0] {
        0xFC => 3,
        0xFD => 4,
        0xFE => 9,
        _ => 1,
    };
    assert!(shortest.len() <= len);
    bytes[..len].to_vec()
}

fn string(bytes: &[u8], text: &[u8]) -> Vec<u8> {
    let mut shortest = Vec::new();
    put_lenenc_bytes(&mut shortest, text);
    assert_eq!(Reader::new(&shortest).lenenc_bytes("a text"), Ok(text));
    assert!(text.len() < PAYLOAD_MAX);
    let mut len = number(bytes, text.len() as u64);
    len.extend_from_slice(text);
    len
}
