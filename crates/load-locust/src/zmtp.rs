//! A ZeroMQ socket as a Locust worker needs it: ZMTP 3.0, security NULL, a DEALER with an identity.
//!
//! The crates for ZeroMQ bring tokio, or a library in C++ with threads of its own, for what is a
//! greeting, one command and frames with a length here: the master is a ROUTER, a worker has one
//! connection to it, and each message is one frame. Format: RFC 23 of the ZeroMQ project.
//!
//! Invariants: no call waits, but for opening the connection ([`CONNECT_MAX`]); nothing that comes
//! makes this panic; what is kept of a peer is bounded by [`FRAME_MAX`] and [`UNSENT_MAX`], and
//! what is handed over at once by [`MESSAGES_MAX`].

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// The longest frame that is taken.
const FRAME_MAX: usize = 16 * 1024 * 1024;
/// Bytes that wait for a master that does not read.
const UNSENT_MAX: usize = 64 * 1024 * 1024;
/// Frames that are taken from what has come at once.
const MESSAGES_MAX: usize = 1024;
/// Bytes of a master's words about an error, and of a PING, that are repeated.
const WORDS_MAX: usize = 512;
/// Longest time to open the connection.
const CONNECT_MAX: Duration = Duration::from_secs(3);
const GREETING_LEN: usize = 64;
/// Flags of a frame.
const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;

/// A connection to a ROUTER.
#[derive(Debug)]
pub(super) struct Dealer {
    stream: TcpStream,
    came: Vec<u8>,
    unsent: Vec<u8>,
    /// Messages for after the peer's READY: libzmq closes the connection where one has come before
    /// it has sent its own.
    early: Vec<u8>,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Greeting,
    Handshake,
    Open,
}

impl Dealer {
    /// Connects; `place` is `HOST:PORT`. What is sent before the peer is ready waits.
    pub(super) fn connect(place: &str, identity: &str) -> io::Result<Dealer> {
        let mut last = io::Error::new(ErrorKind::NotFound, "the name has no address");
        for address in place.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, CONNECT_MAX) {
                Ok(stream) => return Dealer::over(stream, identity),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn over(stream: TcpStream, identity: &str) -> io::Result<Dealer> {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let mut dealer = Dealer {
            stream,
            came: Vec::new(),
            unsent: Vec::new(),
            early: Vec::new(),
            stage: Stage::Greeting,
        };
        dealer.unsent.extend_from_slice(&greeting());
        put_frame(&mut dealer.unsent, COMMAND, &ready(identity));
        dealer.flush()?;
        Ok(dealer)
    }

    /// Sends a message of one frame.
    pub(super) fn send(&mut self, message: &[u8]) -> io::Result<()> {
        let queue = match self.stage {
            Stage::Open => &mut self.unsent,
            Stage::Greeting | Stage::Handshake => &mut self.early,
        };
        put_frame(queue, 0, message);
        self.flush()
    }

    /// Messages that have come; more may be there.
    pub(super) fn receive(&mut self) -> io::Result<Vec<Vec<u8>>> {
        self.flush()?;
        let mut buffer = [0; 16 * 1024];
        // More than a frame is read when what is here has been taken.
        while self.came.len() <= FRAME_MAX {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(came) => self.came.extend_from_slice(&buffer[..came]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let (mut messages, mut used) = (Vec::new(), 0);
        for _ in 0..MESSAGES_MAX {
            let Some((step, message)) = self.next(used)? else {
                break;
            };
            used += step;
            messages.extend(message);
        }
        self.came.drain(..used);
        Ok(messages)
    }

    fn flush(&mut self) -> io::Result<()> {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(sent) => {
                    self.unsent.drain(..sent);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        match self.unsent.len() + self.early.len() > UNSENT_MAX {
            true => Err(io::Error::new(
                ErrorKind::TimedOut,
                "the master has not read for so long that 64 MiB wait for it",
            )),
            false => Ok(()),
        }
    }

    /// The next step of what has come, behind what is used: how long it is, with a message if it is
    /// one; `None` where it is not whole.
    fn next(&mut self, used: usize) -> io::Result<Option<(usize, Option<Vec<u8>>)>> {
        let came = &self.came[used..];
        if self.stage == Stage::Greeting {
            let Some(greeting) = came.get(..GREETING_LEN) else {
                return Ok(None);
            };
            check_greeting(greeting)?;
            self.stage = Stage::Handshake;
            return Ok(Some((GREETING_LEN, None)));
        }
        let Some((flags, from, to)) = frame(came)? else {
            return Ok(None);
        };
        let body = came[from..to].to_vec();
        if flags & COMMAND != 0 {
            self.on_command(&body)?;
            return Ok(Some((to, None)));
        }
        if self.stage != Stage::Open || flags & MORE != 0 {
            return Err(broken("a message of one frame, behind READY"));
        }
        Ok(Some((to, Some(body))))
    }

    fn on_command(&mut self, body: &[u8]) -> io::Result<()> {
        let name_len = usize::from(body.first().copied().unwrap_or(0));
        let name = body.get(1..1 + name_len).unwrap_or_default();
        let rest = body.get(1 + name_len..).unwrap_or_default();
        match name {
            b"READY" => {
                self.stage = Stage::Open;
                self.unsent.append(&mut self.early);
                self.flush()?;
            }
            b"ERROR" => {
                let words =
                    String::from_utf8_lossy(&rest[..rest.len().min(WORDS_MAX)]).into_owned();
                return Err(io::Error::new(ErrorKind::ConnectionRefused, words));
            }
            // Two bytes say how long it may take, the rest comes back.
            b"PING" => {
                let context = rest.get(2..).unwrap_or_default();
                let context = &context[..context.len().min(WORDS_MAX)];
                let pong = [b"\x04PONG", context].concat();
                put_frame(&mut self.unsent, COMMAND, &pong);
                self.flush()?;
            }
            _ => {}
        }
        Ok(())
    }
}

fn put_frame(queue: &mut Vec<u8>, flags: u8, body: &[u8]) {
    match u8::try_from(body.len()) {
        Ok(len) => queue.extend_from_slice(&[flags, len]),
        Err(_) => {
            queue.push(flags | LONG);
            let len = body.len() as u64;
            queue.extend_from_slice(&len.to_be_bytes());
        }
    }
    queue.extend_from_slice(body);
}

fn greeting() -> [u8; GREETING_LEN] {
    let mut greeting = [0; GREETING_LEN];
    greeting[0] = 0xFF;
    greeting[9] = 0x7F;
    greeting[10] = 3;
    greeting[12..16].copy_from_slice(b"NULL");
    greeting
}

fn check_greeting(greeting: &[u8]) -> io::Result<()> {
    if greeting[0] != 0xFF || greeting[9] & 1 == 0 || greeting[10] < 3 {
        return Err(broken("a greeting of ZMTP 3"));
    }
    match greeting[12..32].starts_with(b"NULL\0") {
        true => Ok(()),
        false => Err(broken("the security mechanism NULL")),
    }
}

/// The command with which a socket says what it is.
fn ready(identity: &str) -> Vec<u8> {
    let mut body = b"\x05READY".to_vec();
    for (name, value) in [("Socket-Type", "DEALER"), ("Identity", identity)] {
        body.push(u8::try_from(name.len()).unwrap_or(0));
        body.extend_from_slice(name.as_bytes());
        let len = u32::try_from(value.len()).unwrap_or(0);
        body.extend_from_slice(&len.to_be_bytes());
        body.extend_from_slice(value.as_bytes());
    }
    body
}

/// Flags of the frame at the front, and where its body is; `None` where it is not whole.
fn frame(bytes: &[u8]) -> io::Result<Option<(u8, usize, usize)>> {
    let Some((&flags, rest)) = bytes.split_first() else {
        return Ok(None);
    };
    let (from, len) = match flags & LONG {
        0 => match rest.first() {
            Some(len) => (2, u64::from(*len)),
            None => return Ok(None),
        },
        _ => match rest.first_chunk() {
            Some(len) => (9, u64::from_be_bytes(*len)),
            None => return Ok(None),
        },
    };
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    if len > FRAME_MAX {
        return Err(broken("a frame of at most 16 MiB"));
    }
    Ok((bytes.len() >= from + len).then_some((flags, from, from + len)))
}

fn broken(expected: &str) -> io::Error {
    let what = format!("the peer is no Locust master: expected {expected}");
    io::Error::new(ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// A dealer, and the other end of its connection.
    fn pair() -> (Dealer, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let place = listener.local_addr().unwrap().to_string();
        let dealer = Dealer::connect(&place, "host_1").unwrap();
        (dealer, listener.accept().unwrap().0)
    }

    fn until<T>(mut step: impl FnMut() -> Option<T>) -> T {
        loop {
            if let Some(found) = step() {
                return found;
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn it_greets_says_what_it_is_and_takes_messages() {
        let (mut dealer, mut peer) = pair();
        let mut hello = [0; GREETING_LEN + 2];
        peer.read_exact(&mut hello).unwrap();
        assert_eq!(
            (hello[0], hello[9], hello[10], &hello[12..16]),
            (0xFF, 0x7F, 3, &b"NULL"[..])
        );
        let mut command = vec![0; hello[GREETING_LEN + 1].into()];
        peer.read_exact(&mut command).unwrap();
        let expected = b"\x05READY\x0bSocket-Type\0\0\0\x06DEALER\x08Identity\0\0\0\x06host_1";
        assert_eq!(command, expected);

        peer.write_all(&greeting()).unwrap();
        peer.write_all(b"\x04\x06\x05READY\0\x03one").unwrap();
        let first = until(|| dealer.receive().unwrap().pop());
        assert_eq!(first, b"one");
    }

    /// A worker that starts with its master is connected before the master speaks.
    #[test]
    fn no_message_comes_before_the_peer_is_ready() {
        let (mut dealer, mut peer) = pair();
        dealer.send(b"early").unwrap();
        let mut hello = [0; GREETING_LEN + 2];
        peer.read_exact(&mut hello).unwrap();
        let mut command = vec![0; hello[GREETING_LEN + 1].into()];
        peer.read_exact(&mut command).unwrap();
        peer.set_nonblocking(true).unwrap();
        let nothing = |peer: &mut TcpStream| {
            let came = peer.read(&mut [0; 1]).map_err(|error| error.kind());
            assert_eq!(came, Err(ErrorKind::WouldBlock));
        };
        nothing(&mut peer);
        peer.write_all(&greeting()).unwrap();
        until(|| {
            assert_eq!(dealer.receive().unwrap(), Vec::<Vec<u8>>::new());
            (dealer.stage == Stage::Handshake).then_some(())
        });
        dealer.send(b"too").unwrap();
        nothing(&mut peer);
        peer.write_all(b"\x04\x06\x05READY").unwrap();
        until(|| {
            dealer.receive().unwrap();
            (dealer.stage == Stage::Open).then_some(())
        });
        dealer.send(b"late").unwrap();
        peer.set_nonblocking(false).unwrap();
        let mut said = [0; 18];
        peer.read_exact(&mut said).unwrap();
        assert_eq!(&said, b"\x00\x05early\x00\x03too\x00\x04late");
    }

    #[test]
    fn long_messages_go_both_ways_and_pings_are_answered() {
        let (mut dealer, mut peer) = pair();
        let mut said = [0; 256];
        peer.read_exact(&mut said[..GREETING_LEN + 2]).unwrap();
        let rest = said[GREETING_LEN + 1].into();
        peer.read_exact(&mut said[..rest]).unwrap();
        peer.write_all(&greeting()).unwrap();
        peer.write_all(b"\x04\x06\x05READY").unwrap();
        peer.write_all(b"\x04\x09\x04PING\0\x0axy").unwrap();
        peer.write_all(&[LONG]).unwrap();
        peer.write_all(&300u64.to_be_bytes()).unwrap();
        peer.write_all(&[9; 300]).unwrap();
        assert_eq!(until(|| dealer.receive().unwrap().pop()), vec![9; 300]);
        let mut pong = [0; 9];
        peer.read_exact(&mut pong).unwrap();
        assert_eq!(&pong, b"\x04\x07\x04PONGxy");
        dealer.send(&[5; 1_000]).unwrap();
        let mut header = [0; 9];
        peer.read_exact(&mut header).unwrap();
        assert_eq!(
            (
                header[0],
                u64::from_be_bytes(*header[1..].first_chunk().unwrap())
            ),
            (2, 1_000)
        );
    }

    #[test]
    fn a_master_that_never_reads_is_given_up() {
        let (mut dealer, _peer) = pair();
        let message = vec![7; 8 << 20];
        // One that never speaks either.
        let (mut mute, _other) = pair();
        let sent = (0..).find_map(|sent| mute.send(&message).err().map(|_| sent));
        assert_eq!(sent, Some(UNSENT_MAX / message.len() - 1));
        dealer.stage = Stage::Open;
        let sent = (0..).find_map(|sent| dealer.send(&message).err().map(|error| (sent, error)));
        let (sent, error) = sent.unwrap();
        assert!(error.to_string().contains("64 MiB"), "{error}");
        // The system holds some more.
        assert!((8..32).contains(&sent), "{sent}");
        assert!(dealer.unsent.len() <= UNSENT_MAX + message.len() + 9);
    }

    #[test]
    fn of_many_messages_some_are_taken_at_a_time() {
        let (mut dealer, mut peer) = pair();
        peer.write_all(&greeting()).unwrap();
        peer.write_all(b"\x04\x06\x05READY").unwrap();
        peer.write_all(&b"\x00\x01m".repeat(MESSAGES_MAX * 2))
            .unwrap();
        let mut taken = 0;
        until(|| {
            let messages = dealer.receive().unwrap().len();
            assert!(messages <= MESSAGES_MAX, "{messages}");
            taken += messages;
            (taken == MESSAGES_MAX * 2).then_some(())
        });
    }

    #[test]
    fn who_is_no_master_is_told_so() {
        for wrong in [
            &b"HTTP/1.1 400 Bad Request\r\n\r\n                                        "[..],
            &[0; 64],
        ] {
            let (mut dealer, mut peer) = pair();
            peer.write_all(wrong).unwrap();
            let error = until(|| dealer.receive().err());
            assert!(error.to_string().contains("no Locust master"), "{error}");
        }
        assert!(
            frame(&[2, 1, 0, 0, 0, 0, 0, 0, 0])
                .unwrap_err()
                .to_string()
                .contains("16 MiB")
        );
        assert_eq!(frame(&[0]).unwrap(), None);
        let longest = [&[2][..], &(FRAME_MAX as u64).to_be_bytes()].concat();
        assert_eq!(frame(&longest).unwrap(), None);
    }
}
