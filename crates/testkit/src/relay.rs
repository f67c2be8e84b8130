//! A relay in front of a server, through which a test sees, changes or holds up what passes.
//!
//! Both directions of each connection have a thread, which gives each piece that it has read to
//! the test before it sends it on. Messages are left to the test: a piece is what one read gave.

use reactor::Address;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

/// Direction of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Bytes of a client for the server.
    ToServer,
    /// Bytes of the server for a client.
    ToClient,
}

/// Starts one; its threads end with their connections. `first` goes to the server in front of what
/// a client says, piece by piece. `on_piece` is given each piece of a connection before it passes,
/// with its number in its direction, and an empty one at the end. Gives the address at which the
/// relay listens.
///
/// # Panics
/// When there is no port.
pub fn start(
    server: SocketAddr,
    first: Vec<Vec<u8>>,
    on_piece: impl Fn(Way, usize, &mut Vec<u8>) + Send + Sync + 'static,
) -> Address {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Tcp(listener.local_addr().unwrap());
    let on_piece = Arc::new(on_piece);
    std::thread::spawn(move || {
        for near in listener.incoming().map_while(Result::ok) {
            let Ok(mut far) = TcpStream::connect(server) else {
                continue;
            };
            let _ = (near.set_nodelay(true), far.set_nodelay(true));
            if !first.iter().all(|piece| far.write_all(piece).is_ok()) {
                continue;
            }
            for (way, from, to) in [(Way::ToServer, &near, &far), (Way::ToClient, &far, &near)] {
                let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                let on_piece = on_piece.clone();
                std::thread::spawn(move || pass(&from, &to, |at, piece| on_piece(way, at, piece)));
            }
        }
    });
    address
}

fn pass(mut from: &TcpStream, mut to: &TcpStream, on_piece: impl Fn(usize, &mut Vec<u8>)) {
    let mut buffer = vec![0; 64 * 1024];
    for at in 0.. {
        let len = from.read(&mut buffer).unwrap_or(0);
        let mut piece = buffer[..len].to_vec();
        on_piece(at, &mut piece);
        if len == 0 || to.write_all(&piece).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}
