//! A simulated client's TLS: the bytes between its words and its wire.
//!
//! The problem: records are cut anywhere, end with other records in one segment, and stand between
//! a handshake and a login; all of that has to be met in the simulation too. The mechanism: a
//! client of rustls, which knows nothing of the pool's own records. Invariants: the certificate's
//! signatures have one length (Ed25519), so that the lengths of all records, and with them the
//! world, are decided by the seed; what comes behind the greeting is TLS, or a panic says what came
//! instead.

use crate::tls::client;
use rustls::ClientConnection;
use std::io::{ErrorKind, Read as _, Write as _};
use wire::client_login::{COLLATION, put_tls_request};
use wire::packet::{HEADER_LEN, Header};
use wire::reply::ERR;

/// Certificate of a simulated pool, and its key.
pub(super) const CERT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tls/ed25519-cert.pem");
pub(super) const KEY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tls/ed25519-key.pem");

#[derive(Debug)]
enum Stage {
    /// The greeting has not come whole; this has.
    Greeting(Vec<u8>),
    Records(Box<ClientConnection>),
    /// The pool has refused the connection in the place of a greeting.
    Refused,
}

/// Result of reading.
#[derive(Debug)]
pub(crate) enum Heard {
    /// Words of the pool.
    Words(Vec<u8>),
    /// Its greeting, numbered as the login behind the request for TLS expects it.
    Greeting(Vec<u8>),
}

#[derive(Debug)]
pub(crate) struct SimTls {
    capabilities: u32,
    stage: Stage,
}

impl SimTls {
    /// TLS of a client that logs in with these capabilities.
    pub(crate) fn new(capabilities: u32) -> SimTls {
        SimTls {
            capabilities,
            stage: Stage::Greeting(Vec::new()),
        }
    }

    /// True if it has begun.
    pub(crate) fn has_begun(&self) -> bool {
        matches!(self.stage, Stage::Records(_))
    }

    /// Takes bytes that have come; what TLS itself answers goes to `out`.
    pub(crate) fn hear(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Heard {
        match &mut self.stage {
            Stage::Refused => Heard::Words(bytes.to_vec()),
            Stage::Records(connection) => Heard::Words(open(connection, bytes, out)),
            Stage::Greeting(come) => {
                come.extend_from_slice(bytes);
                let Some(total) = Header::read(come).map(|header| HEADER_LEN + header.len) else {
                    return Heard::Words(Vec::new());
                };
                if come.len() < total {
                    return Heard::Words(Vec::new());
                }
                let mut greeting = std::mem::take(come);
                let payload = &greeting[HEADER_LEN..];
                if payload.first() == Some(&ERR) {
                    self.stage = Stage::Refused;
                    return Heard::Words(greeting);
                }
                assert_eq!(
                    greeting.len(),
                    total,
                    "something stands behind the greeting"
                );
                let offered = put_tls_request((self.capabilities, 0, COLLATION), 0, payload, out);
                assert!(offered.expect("a greeting"), "the pool does not offer TLS");
                let mut connection = client(rustls::DEFAULT_VERSIONS);
                put_records(&mut connection, out);
                self.stage = Stage::Records(Box::new(connection));
                greeting[3] += 1;
                Heard::Greeting(greeting)
            }
        }
    }

    /// Says this as the client; what goes over the wire for it goes to `out`.
    pub(crate) fn say(&mut self, said: &[u8], out: &mut Vec<u8>) {
        match &mut self.stage {
            Stage::Records(connection) => {
                // It is kept until the handshake has ended, and the pieces are small enough.
                for piece in said.chunks(PIECE) {
                    let taken = connection.writer().write(piece).expect("a buffer takes it");
                    assert_eq!(taken, piece.len(), "more than is kept of a login");
                    put_records(connection, out);
                }
            }
            Stage::Greeting(_) | Stage::Refused => out.extend_from_slice(said),
        }
    }
}

/// Less than what rustls keeps of words that wait for their records.
const PIECE: usize = 16 * 1024;

fn open(connection: &mut ClientConnection, bytes: &[u8], out: &mut Vec<u8>) -> Vec<u8> {
    let mut rest = bytes;
    let mut words = Vec::new();
    while !rest.is_empty() {
        let read = connection.read_tls(&mut rest).expect("a slice can be read");
        if let Err(error) = connection.process_new_packets() {
            panic!("the pool sent what is no TLS: {error}");
        }
        match connection.reader().read_to_end(&mut words) {
            Err(error) if error.kind() != ErrorKind::WouldBlock => panic!("{error}"),
            // Behind a close_notify nothing is read.
            _ if read == 0 => break,
            _ => {}
        }
    }
    put_records(connection, out);
    words
}

fn put_records(connection: &mut ClientConnection, out: &mut Vec<u8>) {
    while connection.wants_write() {
        connection.write_tls(out).expect("a buffer takes it");
    }
}
