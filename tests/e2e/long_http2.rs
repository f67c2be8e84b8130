//! HTTP/2 at the bounds of what `onramp load` takes, and past them.
//!
//! Real servers do not go there, so the servers are of this file's own, over plain sockets. They
//! know as much of HTTP/2 as that takes.

use crate::world::*;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

const PREFACE: usize = 24;

const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// Bytes of header fields that are taken of one answer.
const BLOCK_BYTES_MAX: usize = 64 * 1024;
/// Bytes that may wait for a server that does not read.
const OUT_BYTES_MAX: usize = 1024 * (16_384 + 9) + 64 * 1024;
/// Bytes that one read adds to them at most.
const READ_BYTES: usize = 64 * 1024;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend_from_slice(&[kind, flags]);
    frame.extend_from_slice(&stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// The stream of the next request; `None` at the end of the connection.
fn next_request(client: &mut TcpStream) -> Option<u32> {
    loop {
        let mut head = [0; 9];
        client.read_exact(&mut head).ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        client.read_exact(&mut vec![0; length]).ok()?;
        if head[3] == HEADERS {
            return Some(u32::from_be_bytes([head[5], head[6], head[7], head[8]]));
        }
    }
}

/// A server on a port of its own that greets each client and leaves the rest to `talk`.
fn serve(talk: impl Fn(TcpStream) + Copy + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // It ends with the process of the tests.
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client.unwrap();
            std::thread::spawn(move || {
                if client.read_exact(&mut [0; PREFACE]).is_ok()
                    && client.write_all(&frame(SETTINGS, 0, 0, &[])).is_ok()
                {
                    talk(client);
                }
            });
        }
    });
    port
}

fn ask(port: u16) -> Ran {
    let url = format!("http://127.0.0.1:{port}/");
    let line = ["load", &url, "--http-version", "2", "--think-time", "50ms"];
    let rest = [
        "--time",
        "1s",
        "--late-after",
        "20s",
        "--report-interval",
        "0",
    ];
    run(binary(), &[&line[..], &rest].concat(), LIMIT)
}

/// Answers each request with a block of fields of this length, in as many frames as that takes.
fn answers(mut client: TcpStream, length: usize) {
    // Status 200, and a field `x` whose value makes it as long as wanted: 7 bytes stand in front of
    // the value, with a length in four bytes.
    let mut block = b"\x88\x00\x01x\x7f".to_vec();
    let mut rest = length - 8 - 0x7f;
    for _ in 0..2 {
        block.push(u8::try_from(rest & 0x7f).unwrap() | 0x80);
        rest >>= 7;
    }
    block.push(u8::try_from(rest).unwrap());
    block.resize(length, b'v');
    while let Some(stream) = next_request(&mut client) {
        let mut pieces = block.chunks(16_384).peekable();
        let (mut kind, mut flags) = (HEADERS, END_STREAM);
        while let Some(piece) = pieces.next() {
            if pieces.peek().is_none() {
                flags |= END_HEADERS;
            }
            if client
                .write_all(&frame(kind, flags, stream, piece))
                .is_err()
            {
                return;
            }
            (kind, flags) = (CONTINUATION, 0);
        }
    }
}

#[test]
fn a_block_of_header_fields_is_taken_up_to_its_bound() {
    let ran = ask(serve(|client| answers(client, BLOCK_BYTES_MAX))).ends(0);
    assert!(ran.stdout.contains("100.0000 % success"), "{ran:?}");
    let ran = ask(serve(|client| answers(client, BLOCK_BYTES_MAX + 1)));
    assert!(ran.stdout.contains("answers:      0 right"), "{ran:?}");
    let words = format!("more than {BLOCK_BYTES_MAX} bytes of header fields");
    assert!(ran.stdout.contains(&words), "{ran:?}");
}

/// Asks for an answer without end and reads none.
fn asks_and_does_not_read(mut client: TcpStream) {
    let pings = frame(PING, 0, 0, b"12345678").repeat(1000);
    while client.write_all(&pings).is_ok() {}
}

#[test]
fn a_server_that_asks_and_does_not_read_is_left_at_the_bound() {
    let ran = ask(serve(asks_and_does_not_read));
    let words: Vec<&str> = ran.stdout.split_whitespace().collect();
    let end = words
        .windows(3)
        .position(|three| three == ["bytes", "wait", "for"]);
    let waiting: Option<usize> = end.and_then(|end| words[end - 1].parse().ok());
    let waiting = waiting.unwrap_or_else(|| panic!("{ran:?}"));
    assert!(waiting > OUT_BYTES_MAX, "{ran:?}");
    assert!(waiting <= OUT_BYTES_MAX + READ_BYTES, "{ran:?}");
}
