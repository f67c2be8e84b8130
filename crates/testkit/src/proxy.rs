//! A proxy between a pool and its server that goes wrong at a chosen point of a conversation: the
//! hosts stay, and one connection falls silent or ends, in the middle of a packet too.
//!
//! [`Proxy::go_wrong`] names the point; from then on each connection that comes to it is lost to
//! both sides. [`Proxy::mend`] lets later connections alone again. When the pool closes its end of
//! a connection that is lost, the server finds its own end closed, so that no session and no lock
//! of it stays behind.

use reactor::Address;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};

/// Direction of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    ToServer,
    ToPool,
}

/// Moment at which a connection goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// While these bytes are on their way to the server.
    Said(&'static [u8]),
    /// While these bytes are on their way to the pool.
    Heard(&'static [u8]),
    /// While the server answers these bytes.
    Answered(&'static [u8]),
}

/// Part of the bytes on their way that still passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passes {
    /// Nothing.
    Nothing,
    /// Two bytes: less than the header of a packet.
    TwoBytes,
    /// Half of it.
    Half,
}

/// Fate of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// Nothing comes through any more, and nothing is closed.
    Silent,
    /// The pool finds its end.
    Closed,
}

type Rule = Option<(At, Passes, Wrong)>;

/// Orders to the proxy, and its counts.
#[derive(Debug, Default)]
struct Orders {
    rule: Rule,
    /// Connections that went wrong.
    count: usize,
}

/// A running proxy; its threads end with their connections.
#[derive(Debug)]
pub struct Proxy {
    /// Address at which it listens.
    pub address: Address,
    orders: Arc<Mutex<Orders>>,
}

/// One connection.
#[derive(Debug, Default)]
struct Line {
    /// The next answer goes wrong.
    armed: bool,
    lost: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap()
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
        let orders = Arc::<Mutex<Orders>>::default();
        let shared = orders.clone();
        std::thread::spawn(move || {
            for pool in listener.incoming().map_while(Result::ok) {
                if let Ok(server) = TcpStream::connect(server) {
                    join(&pool, &server, &shared);
                }
            }
        });
        Proxy { address, orders }
    }

    /// Makes each connection that comes to this point go wrong, from now on.
    ///
    /// # Panics
    /// When a thread of the proxy has.
    pub fn go_wrong(&self, at: At, passes: Passes, wrong: Wrong) {
        lock(&self.orders).rule = Some((at, passes, wrong));
    }

    /// Connections that have gone wrong since [`Proxy::mend`].
    ///
    /// # Panics
    /// As [`Proxy::go_wrong`].
    #[must_use]
    pub fn wrong_count(&self) -> usize {
        lock(&self.orders).count
    }

    /// Lets nothing go wrong any more, but for connections that have. Returns how many have since
    /// the last time.
    ///
    /// # Panics
    /// As [`Proxy::go_wrong`].
    pub fn mend(&self) -> usize {
        std::mem::take(&mut *lock(&self.orders)).count
    }
}

fn join(pool: &TcpStream, server: &TcpStream, orders: &Arc<Mutex<Orders>>) {
    let line = Arc::<Mutex<Line>>::default();
    for (way, from, to) in [(Way::ToServer, pool, server), (Way::ToPool, server, pool)] {
        let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
        let (orders, line) = (orders.clone(), line.clone());
        std::thread::spawn(move || copy(way, from, &to, &orders, &line));
    }
}

/// True if the connection goes wrong now.
fn meets(at: At, way: Way, bytes: &[u8], line: &mut Line) -> bool {
    let has = |what: &[u8]| bytes.windows(what.len()).any(|part| part == what);
    match (at, way) {
        (At::Said(what), Way::ToServer) | (At::Heard(what), Way::ToPool) => has(what),
        (At::Answered(what), Way::ToServer) => {
            line.armed |= has(what);
            false
        }
        (At::Answered(_), Way::ToPool) => line.armed,
        _ => false,
    }
}

fn copy(
    way: Way,
    mut from: TcpStream,
    mut to: &TcpStream,
    orders: &Mutex<Orders>,
    line: &Mutex<Line>,
) {
    let mut bytes = vec![0; 64 * 1024];
    while let Ok(n @ 1..) = from.read(&mut bytes) {
        let mut some = &bytes[..n];
        let mut orders = lock(orders);
        let mut line = lock(line);
        if line.lost {
            continue;
        }
        let rule = orders.rule;
        let rule = rule.filter(|(at, ..)| meets(*at, way, some, &mut line));
        if let Some((_, passes, _)) = rule {
            line.lost = true;
            orders.count += 1;
            some = match passes {
                Passes::Nothing => &[],
                Passes::TwoBytes => &some[..n.min(2)],
                Passes::Half => &some[..n / 2],
            };
        }
        drop((orders, line));
        let mut passed = to.write_all(some);
        if let Some((.., Wrong::Closed)) = rule {
            let pool = if way == Way::ToPool { to } else { &from };
            passed = passed.and(pool.shutdown(Shutdown::Write));
        }
        if passed.is_err() {
            break;
        }
    }
    if way == Way::ToServer || !lock(line).lost {
        let _ = to.shutdown(Shutdown::Write);
    }
}
