//! A proxy between a pool and its server that goes wrong at a chosen byte: the hosts stay, and one
//! connection falls silent, ends, or is cut in the middle of a packet.
//!
//! [`Proxy::go_wrong`] names what must pass, and in which direction; from then on the connection on
//! which it comes is lost to both sides. [`Proxy::mend`] lets later connections alone again.

use reactor::Address;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Where bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the pool to the server.
    ToServer,
    /// From the server to the pool.
    ToPool,
}

/// What becomes of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// Nothing comes through any more, and nothing is closed.
    Silent,
    /// Half of what has come passes first.
    SilentAmid,
    /// The pool finds its end.
    Closed,
}

/// When it goes wrong.
type Rule = Arc<Mutex<Option<(Way, Vec<u8>, Wrong)>>>;

/// A running proxy; its threads end with their connections.
#[derive(Debug)]
pub struct Proxy {
    /// Where it listens.
    pub address: Address,
    rule: Rule,
}

impl Proxy {
    /// Listens on a free port for connections to `server`.
    ///
    /// # Panics
    /// When there is no port.
    #[must_use]
    pub fn start(server: SocketAddr) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::Tcp(listener.local_addr().unwrap());
        let rule = Rule::default();
        let shared = rule.clone();
        std::thread::spawn(move || {
            for pool in listener.incoming().map_while(Result::ok) {
                if let Ok(server) = TcpStream::connect(server) {
                    join(&pool, &server, &shared);
                }
            }
        });
        Proxy { address, rule }
    }

    /// The connection on which these bytes come goes wrong, and so does each that brings them
    /// later.
    ///
    /// # Panics
    /// When a thread of the proxy has.
    pub fn go_wrong(&self, way: Way, bytes: &[u8], wrong: Wrong) {
        *self.rule.lock().unwrap() = Some((way, bytes.to_vec(), wrong));
    }

    /// Nothing goes wrong any more, but for connections that have.
    ///
    /// # Panics
    /// As [`Proxy::go_wrong`].
    pub fn mend(&self) {
        *self.rule.lock().unwrap() = None;
    }
}

fn join(pool: &TcpStream, server: &TcpStream, rule: &Rule) {
    let lost = Arc::new(Mutex::new(false));
    for (way, from, to) in [(Way::ToServer, pool, server), (Way::ToPool, server, pool)] {
        let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
        let (rule, lost) = (rule.clone(), lost.clone());
        std::thread::spawn(move || copy(way, from, &to, &rule, &lost));
    }
}

fn copy(way: Way, mut from: TcpStream, mut to: &TcpStream, rule: &Rule, lost: &Mutex<bool>) {
    let mut bytes = vec![0; 64 * 1024];
    while let Ok(n @ 1..) = from.read(&mut bytes) {
        let some = &bytes[..n];
        let wrong = rule.lock().unwrap().clone().filter(|(at, what, _)| {
            *at == way && some.windows(what.len()).any(|part| part == what)
        });
        let mut lost = lost.lock().unwrap();
        if *lost {
            continue;
        }
        *lost = wrong.is_some();
        let passed = match wrong {
            None => to.write_all(some),
            Some((_, _, Wrong::Silent)) => Ok(()),
            Some((_, _, Wrong::SilentAmid)) => to.write_all(&some[..n / 2]),
            Some((_, _, Wrong::Closed)) => {
                let pool = if way == Way::ToPool { to } else { &from };
                pool.shutdown(Shutdown::Write)
            }
        };
        if passed.is_err() {
            break;
        }
    }
    if !*lost.lock().unwrap() {
        let _ = to.shutdown(Shutdown::Write);
    }
}
