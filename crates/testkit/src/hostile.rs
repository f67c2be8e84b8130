//! Servers that do harm, between a pool and a real one.
//!
//! [`Hostile`] passes a conversation on until the pool sends a chosen text. That it keeps from the
//! server, and answers it itself with bytes that are written out. What the pool sends behind it is
//! kept to be looked at, and nothing of it reaches the server.
//! [`FalseServer`] answers in a server's place and asks for the password itself.

use reactor::Address;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::onramp::loopback;
use wire::auth::Nonce;
use wire::auth::caching_sha2::{self, KeyPair};
use wire::capabilities::{BACKEND_ALWAYS, DEPRECATE_EOF};
use wire::errors::ACCESS_DENIED;
use wire::handshake::{Greeting, put_auth_switch};
use wire::packet::{HEADER_LEN, Header, put_packet};
use wire::reply::put_err;

/// Far above every limit of the pools that are tested.
const PATIENCE: Duration = Duration::from_secs(120);

/// Most commands that were heard and nobody has asked for yet.
const HEARD_MAX: usize = 64;

/// A text of the pool's, and what answers it.
type Play = Option<(Vec<u8>, Vec<u8>)>;

/// A running server that does harm; its threads end with their connections.
#[derive(Debug)]
pub struct Hostile {
    /// Address that it listens at.
    pub address: Address,
    play: Arc<Mutex<Play>>,
    heard: Receiver<Vec<u8>>,
}

impl Hostile {
    /// One in front of this server, which has a TCP address.
    ///
    /// # Panics
    /// When it cannot listen, or the server listens at no TCP address.
    #[must_use]
    pub fn before(server: &Address) -> Hostile {
        let Address::Tcp(server) = *server else {
            panic!("{server} is no TCP address");
        };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = loopback(listener.local_addr().unwrap().port());
        let play = Arc::new(Mutex::new(None));
        let (tell, heard) = mpsc::sync_channel(HEARD_MAX);
        let orders = play.clone();
        std::thread::spawn(move || {
            for pool in listener.incoming().map_while(Result::ok) {
                let (orders, tell) = (orders.clone(), tell.clone());
                std::thread::spawn(move || serve(pool, server, &orders, &tell));
            }
        });
        Hostile {
            address,
            play,
            heard,
        }
    }

    /// Answers the next command with this text in it by these bytes.
    pub fn answer(&self, text: &str, by: &[u8]) {
        *self.play.lock().unwrap() = Some((text.into(), by.to_vec()));
    }

    /// Bytes of the pool behind that command, once it has closed the connection.
    ///
    /// # Panics
    /// When the pool has not sent the command, or does not close the connection.
    #[must_use]
    pub fn heard_until_closed(&self) -> Vec<u8> {
        let heard = self.heard.recv_timeout(PATIENCE);
        heard.expect("the pool sends the command, and closes the connection behind the answer")
    }
}

fn serve(mut pool: TcpStream, server: SocketAddr, play: &Mutex<Play>, tell: &SyncSender<Vec<u8>>) {
    let Ok(mut server) = TcpStream::connect(server) else {
        return;
    };
    let (mut answers, mut to_pool) = (server.try_clone().unwrap(), pool.try_clone().unwrap());
    std::thread::spawn(move || std::io::copy(&mut answers, &mut to_pool));
    let mut buffer = vec![0; 1 << 16];
    while let Ok(len @ 1..) = pool.read(&mut buffer) {
        let said = &buffer[..len];
        let is_met = |(text, _): &mut (Vec<u8>, _)| said.windows(text.len()).any(|at| at == text);
        let met = play.lock().unwrap().take_if(is_met);
        if let Some((_, answer)) = met {
            let _ = pool.write_all(&answer);
            let mut heard = Vec::new();
            let _ = pool.read_to_end(&mut heard);
            let _ = tell.send(heard);
            break;
        }
        if server.write_all(said).is_err() {
            break;
        }
    }
    for stream in [&pool, &server] {
        let _ = stream.shutdown(Shutdown::Both);
    }
}

const NONCE: Nonce = *b"abcdefghijklmnopqrst";

/// An attacker in a server's place, without TLS: whatever plugin the account has, it switches to
/// caching_sha2_password, asks for the password itself, and sends a key of its own. Each login is
/// refused at its end.
#[derive(Debug)]
pub struct FalseServer {
    /// Its port.
    pub port: u16,
    got: Receiver<Option<Vec<u8>>>,
}

impl FalseServer {
    /// Server that listens at this host.
    ///
    /// # Panics
    /// When it cannot listen.
    #[must_use]
    pub fn at(host: &str) -> FalseServer {
        let listener = TcpListener::bind((host, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (tell, got) = mpsc::sync_channel(HEARD_MAX);
        std::thread::spawn(move || {
            let pair = KeyPair::generate().unwrap();
            for pool in listener.incoming().map_while(Result::ok) {
                let _ = tell.send(ask_for_password(pool, &pair));
            }
        });
        FalseServer { port, got }
    }

    /// The next login's answer to the request for its password: decrypted if it was encrypted by
    /// this server's key, else as it came; `None` if the connection ended.
    ///
    /// # Panics
    /// When nobody logs in.
    #[must_use]
    pub fn got(&self) -> Option<Vec<u8>> {
        self.got.recv_timeout(PATIENCE).unwrap()
    }
}

fn ask_for_password(mut pool: TcpStream, pair: &KeyPair) -> Option<Vec<u8>> {
    let greeting = Greeting {
        version: b"8.0.36".to_vec(),
        connection_id: 1,
        nonce: NONCE,
        capabilities: BACKEND_ALWAYS | DEPRECATE_EOF,
        extended: 0,
        collation: 45,
        status: 2,
        plugin: b"mysql_native_password".to_vec(),
    };
    let mut out = Vec::new();
    greeting.put(&mut out);
    pool.write_all(&out).ok()?;
    read_packet(&mut pool)?;
    out.clear();
    put_auth_switch(&mut out, 2, "caching_sha2_password", &NONCE);
    pool.write_all(&out).ok()?;
    read_packet(&mut pool)?;
    out.clear();
    put_packet(&mut out, 4, &[1, caching_sha2::FULL_AUTH]);
    pool.write_all(&out).ok()?;
    let mut got = read_packet(&mut pool)?;
    if got == [caching_sha2::REQUEST_PUBLIC_KEY] {
        out.clear();
        put_packet(&mut out, 6, &[&[1], pair.public_pem()].concat());
        pool.write_all(&out).ok()?;
        got = read_packet(&mut pool)?;
    }
    let read = (pair.decrypt(&got)).and_then(|plain| caching_sha2::unmask(&plain, &NONCE));
    out.clear();
    put_err(&mut out, 8, ACCESS_DENIED, "thank you");
    let _ = pool.write_all(&out);
    Some(read.map_or(got, |password| password.to_vec()))
}

fn read_packet(pool: &mut TcpStream) -> Option<Vec<u8>> {
    let mut header = [0; HEADER_LEN];
    pool.read_exact(&mut header).ok()?;
    let mut payload = vec![0; Header::read(&header)?.len];
    pool.read_exact(&mut payload).ok()?;
    Some(payload)
}
