//! A peer against a socket that takes as much as the test allows.

use super::*;
use reactor::{Address, Time, Token};
use std::collections::VecDeque;
use std::io;

/// Bytes in, bytes out, and how many may go out.
#[derive(Default)]
struct Pipe {
    incoming: VecDeque<Vec<u8>>,
    ended: bool,
    outgoing: Vec<u8>,
    room: usize,
}

impl Net for Pipe {
    type Sock = ();

    fn now(&self) -> Time {
        Time(0)
    }
    fn accept(&mut self, _: usize) -> io::Result<Option<()>> {
        Ok(None)
    }
    fn connect(&mut self, _: &Address) -> io::Result<()> {
        Ok(())
    }
    fn connected(&mut self, (): &()) -> io::Result<()> {
        Ok(())
    }
    fn watch(&mut self, (): &(), _: Token) -> io::Result<()> {
        Ok(())
    }
    fn unwatch(&mut self, (): &()) -> io::Result<()> {
        Ok(())
    }
    fn read(&mut self, (): &(), buffer: &mut [u8]) -> Read {
        match self.incoming.pop_front() {
            Some(bytes) => {
                buffer[..bytes.len()].copy_from_slice(&bytes);
                Read::Bytes(bytes.len())
            }
            None if self.ended => Read::End,
            None => Read::Blocked,
        }
    }
    fn write(&mut self, (): &(), bytes: &[u8]) -> Write {
        let count = bytes.len().min(self.room);
        if count == 0 {
            return Write::Blocked;
        }
        self.room -= count;
        self.outgoing.extend_from_slice(&bytes[..count]);
        Write::Bytes(count)
    }
    fn random(&mut self, _: &mut [u8]) {}
}

fn pipe(room: usize, incoming: &[&str]) -> Pipe {
    let incoming = incoming
        .iter()
        .map(|text| text.as_bytes().to_vec())
        .collect();
    Pipe {
        incoming,
        room,
        ..Pipe::default()
    }
}

fn event(peer: &mut Peer<()>, pipe: &mut Pipe, texts: &Texts) -> (Fate, u64) {
    peer.on_event(pipe, texts, true, &mut [0; 4096])
}

#[test]
fn a_message_that_finds_no_room_goes_on_where_it_stopped() {
    let texts = Texts::plain(b"hello");
    let (mut peer, mut net) = (Peer::new(()), pipe(3, &[]));
    assert!(!peer.owe());
    assert_eq!(peer.write(&mut net, &texts), (Fate::Stays, 0));
    assert!(peer.owe(), "the one before has not left");
    net.room = 7;
    assert_eq!(event(&mut peer, &mut net, &texts), (Fate::Stays, 2));
    assert_eq!(net.outgoing, b"hellohello");
    net.ended = true;
    assert_eq!(event(&mut peer, &mut net, &texts).0, Fate::Ended);
}

#[test]
fn requests_are_answered_however_they_are_cut() {
    let texts = Texts::http(b"ok");
    let request = "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
    let stream = request.repeat(3);
    let answer = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok";
    for size in [1, 2, 7, 50, stream.len()] {
        let pieces: Vec<_> = stream
            .as_bytes()
            .chunks(size)
            .map(|piece| str::from_utf8(piece).unwrap())
            .collect();
        let (mut peer, mut net) = (Peer::new(()), pipe(10_000, &pieces));
        assert_eq!(
            event(&mut peer, &mut net, &texts),
            (Fate::Stays, 3),
            "{size}"
        );
        assert_eq!(net.outgoing, answer.repeat(3).as_bytes(), "{size}");
    }
}

#[test]
fn a_client_that_takes_nothing_is_not_read() {
    let texts = Texts::http(b"ok");
    let request = "GET / HTTP/1.1\r\n\r\n";
    let (mut peer, mut net) = (Peer::new(()), pipe(10, &[request, request]));
    assert_eq!(event(&mut peer, &mut net, &texts), (Fate::Stays, 0));
    assert_eq!(net.incoming.len(), 1);
    net.room = 1_000;
    assert_eq!(event(&mut peer, &mut net, &texts), (Fate::Stays, 2));
}

#[test]
fn the_last_answer_ends_the_connection() {
    let texts = Texts::http(b"ok");
    for (text, status, sent) in [
        (
            "GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\nConnection: close\r\n\r\n",
            "200 OK",
            2,
        ),
        (
            "GET / HTTP/1.1\r\n\r\nnonsense\r\n\r\n",
            "400 Bad Request",
            2,
        ),
    ] {
        let (mut peer, mut net) = (Peer::new(()), pipe(10_000, &[text]));
        assert_eq!(event(&mut peer, &mut net, &texts), (Fate::Ended, sent));
        let said = String::from_utf8(net.outgoing).unwrap();
        let last = &said[said.rfind("HTTP/1.1 ").unwrap()..];
        assert!(
            last.contains(status) && last.contains("Connection: close"),
            "{said}"
        );
    }
}
