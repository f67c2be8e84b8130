//! A proxy behind which a real server plays another: statements are changed on their way to it.
//!
//! The problem: the tables of a provider's servers are on none that a test can start, and a real
//! server answers in time. The mechanism: each statement's text goes through a function of the
//! test's, which names tables of its own in place of theirs, and may hold the statement up. All
//! else passes. Connections are without TLS and compression.

use reactor::Address;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

const HEADER_LEN: usize = 4;
const COM_QUERY: u8 = 3;

/// Text to send in place of a statement's, and the time for which it is held up.
pub type Act = dyn Fn(&str) -> (String, Duration) + Send + Sync;

/// Starts one; its threads end with their connections. Gives the address at which it listens.
///
/// # Panics
/// When there is no port.
pub fn start(server: SocketAddr, act: Arc<Act>) -> Address {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Tcp(listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for pool in listener.incoming().map_while(Result::ok) {
            let Ok(server) = TcpStream::connect(server) else {
                continue;
            };
            let (back, to_pool) = (server.try_clone().unwrap(), pool.try_clone().unwrap());
            let act = act.clone();
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut &back, &mut &to_pool);
                let _ = to_pool.shutdown(Shutdown::Both);
            });
            std::thread::spawn(move || {
                let _ = tell(&pool, &server, &*act);
                let _ = server.shutdown(Shutdown::Both);
            });
        }
    });
    address
}

fn tell(mut pool: &TcpStream, mut server: &TcpStream, act: &Act) -> std::io::Result<()> {
    loop {
        let mut header = [0; HEADER_LEN];
        pool.read_exact(&mut header)?;
        let len = u32::from_le_bytes([header[0], header[1], header[2], 0]);
        let mut payload = vec![0; usize::try_from(len).unwrap()];
        pool.read_exact(&mut payload)?;
        if header[3] == 0
            && payload.first() == Some(&COM_QUERY)
            && let Ok(text) = std::str::from_utf8(&payload)
        {
            let (text, late) = act(text);
            std::thread::sleep(late);
            payload = text.into_bytes();
            let len = u32::try_from(payload.len()).unwrap().to_le_bytes();
            header[..3].copy_from_slice(&len[..3]);
        }
        server.write_all(&[&header[..], &payload].concat())?;
    }
}
