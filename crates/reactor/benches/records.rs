//! Memory and CPU of a TLS connection: rustls's buffered and unbuffered ones beside
//! [`reactor::records`].
//!
//! Prints the bytes of a connection that says nothing, and the time to open a record and to seal
//! one, in turns. The figures are those of docs/decisions/0024-tls-records.md:
//! `cargo bench -p reactor --bench records`.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark that cannot go on says where by panicking, and prints its figures"
)]

use reactor::records::{Records, Secrets, len_of_record};
use rustls::client::ClientConnection;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, UnbufferedStatus};
use rustls::version::{TLS12, TLS13};
use rustls::{
    ClientConfig, KeyLog, RootCertStore, ServerConfig, ServerConnection, SupportedProtocolVersion,
};
use std::any::Any;
use std::fmt::Write as _;
use std::hint::black_box;
use std::io::{Read as _, Write as _};
use std::sync::{Arc, Mutex};
use std::time::Instant;

const CERT: &[u8] = include_bytes!("../../testkit/tls/cert.pem");
const KEY: &[u8] = include_bytes!("../../testkit/tls/key.pem");
/// Connections that are held for the memory of one.
const HELD: usize = 10_000;
/// Records of each turn, and turns.
const RECORDS: usize = 20_000;
const TURNS: usize = 7;
/// Bytes of plaintext: those of a point select and of a full record.
const LENGTHS: [usize; 2] = [64, 1 << 14];

type Version = &'static SupportedProtocolVersion;

/// Traffic secrets of the last handshake, client's and server's.
#[derive(Debug, Default)]
struct Captured(Mutex<[Vec<u8>; 2]>);

impl KeyLog for Captured {
    fn log(&self, label: &str, _random: &[u8], secret: &[u8]) {
        let at = match label {
            "CLIENT_TRAFFIC_SECRET_0" => 0,
            "SERVER_TRAFFIC_SECRET_0" => 1,
            _ => return,
        };
        self.0.lock().unwrap()[at] = secret.to_vec();
    }
}

struct Configs {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
    captured: Arc<Captured>,
}

fn configs(version: Version) -> Configs {
    let cert = CertificateDer::from_pem_slice(CERT).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(cert.clone()).unwrap();
    let provider = Arc::new(aws_lc_rs::default_provider());
    let client = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut server = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert], PrivateKeyDer::from_pem_slice(KEY).unwrap())
        .unwrap();
    let captured = Arc::new(Captured::default());
    server.key_log = Arc::clone(&captured) as _;
    server.enable_secret_extraction = true;
    server.send_tls13_tickets = 0;
    Configs {
        client: Arc::new(client),
        server: Arc::new(server),
        captured,
    }
}

impl Configs {
    fn client(&self) -> ClientConnection {
        let name = ServerName::try_from("localhost").unwrap();
        ClientConnection::new(Arc::clone(&self.client), name).unwrap()
    }

    fn buffered(&self) -> (ClientConnection, ServerConnection) {
        let mut client = self.client();
        let mut server = ServerConnection::new(Arc::clone(&self.server)).unwrap();
        while client.is_handshaking() || server.is_handshaking() || server.wants_write() {
            let mut bytes = Vec::new();
            while client.wants_write() {
                client.write_tls(&mut bytes).unwrap();
            }
            let mut there = &bytes[..];
            while !there.is_empty() {
                server.read_tls(&mut there).unwrap();
                server.process_new_packets().unwrap();
            }
            bytes.clear();
            while server.wants_write() {
                server.write_tls(&mut bytes).unwrap();
            }
            let mut back = &bytes[..];
            while !back.is_empty() {
                client.read_tls(&mut back).unwrap();
                client.process_new_packets().unwrap();
            }
        }
        (client, server)
    }

    fn unbuffered(&self) -> (ClientConnection, UnbufferedServerConnection) {
        let mut client = self.client();
        let mut server = UnbufferedServerConnection::new(Arc::clone(&self.server)).unwrap();
        let mut incoming = Vec::new();
        loop {
            while client.wants_write() {
                client.write_tls(&mut incoming).unwrap();
            }
            let mut back = Vec::new();
            let is_done = loop {
                let UnbufferedStatus { discard, state, .. } =
                    server.process_tls_records(&mut incoming);
                let end = match state.unwrap() {
                    ConnectionState::EncodeTlsData(mut data) => {
                        let mut out = vec![0; 1 << 14];
                        let len = data.encode(&mut out).unwrap();
                        back.extend_from_slice(&out[..len]);
                        None
                    }
                    ConnectionState::TransmitTlsData(data) => {
                        data.done();
                        None
                    }
                    ConnectionState::BlockedHandshake => Some(false),
                    ConnectionState::WriteTraffic(_) => Some(true),
                    other => panic!("{other:?}"),
                };
                incoming.drain(..discard);
                if let Some(end) = end {
                    break end;
                }
            };
            let mut back = &back[..];
            while !back.is_empty() {
                client.read_tls(&mut back).unwrap();
                client.process_new_packets().unwrap();
            }
            if is_done {
                return (client, server);
            }
        }
    }

    fn records(&self) -> (ClientConnection, Records) {
        let (client, server) = self.buffered();
        let version = server.protocol_version();
        let keys = server.dangerous_extract_secrets().unwrap();
        let secrets = self.captured.0.lock().unwrap();
        let secrets = Secrets {
            client: &secrets[0],
            server: &secrets[1],
        };
        (client, Records::new(version, keys, &secrets).unwrap())
    }
}

/// Bytes of the process that are in memory.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

/// Bytes of one connection of [`HELD`], which go to `all_held`: what is given back would make the
/// next kind look smaller.
fn held<T: 'static>(all_held: &mut Vec<Box<dyn Any>>, mut make: impl FnMut() -> T) -> usize {
    let first: Vec<T> = (0..100).map(|_| make()).collect();
    let before = resident();
    let all: Vec<T> = (0..HELD).map(|_| make()).collect();
    let bytes = resident().saturating_sub(before) / HELD;
    all_held.push(Box::new((first, all)));
    bytes
}

/// Nanoseconds for one record to be opened and one to be sealed.
fn timed(mut one: impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..RECORDS {
        one();
    }
    start.elapsed().as_secs_f64() * 1e9 / RECORDS as f64
}

/// Seals the client's next record.
fn sealed(client: &mut ClientConnection, plain: &[u8], out: &mut Vec<u8>) {
    out.clear();
    client.writer().write_all(plain).unwrap();
    while client.wants_write() {
        client.write_tls(out).unwrap();
    }
}

fn turn(configs: &Configs, len: usize) -> [f64; 3] {
    let plain = vec![7; len];
    let mut record = Vec::new();
    let mut out = Vec::with_capacity(1 << 15);
    let (mut client, mut server) = configs.buffered();
    let mut read = vec![0; len];
    // What the client's own sealing takes is the same in all three.
    let buffered = timed(|| {
        sealed(&mut client, &plain, &mut record);
        let mut incoming = &record[..];
        while !incoming.is_empty() {
            server.read_tls(&mut incoming).unwrap();
            server.process_new_packets().unwrap();
        }
        server.reader().read_exact(&mut read).unwrap();
        server.writer().write_all(&plain).unwrap();
        out.clear();
        server.write_tls(&mut out).unwrap();
    });
    let (mut client, mut server) = configs.unbuffered();
    let mut space = vec![0; 1 << 15];
    let unbuffered = timed(|| {
        sealed(&mut client, &plain, &mut record);
        let UnbufferedStatus { state, .. } = server.process_tls_records(&mut record);
        let Ok(ConnectionState::ReadTraffic(mut traffic)) = state else {
            panic!("no data");
        };
        black_box(traffic.next_record().unwrap().unwrap());
        let UnbufferedStatus { state, .. } = server.process_tls_records(&mut []);
        let Ok(ConnectionState::WriteTraffic(mut traffic)) = state else {
            panic!("no room for data");
        };
        black_box(traffic.encrypt(&plain, &mut space).unwrap());
    });
    let (mut client, mut server) = configs.records();
    let records = timed(|| {
        sealed(&mut client, &plain, &mut record);
        let len = len_of_record(&record).unwrap().unwrap();
        black_box(server.open(&mut record[..len]).unwrap());
        out.clear();
        server.seal_data(&plain, &mut out).unwrap();
    });
    let (mut client, _) = configs.records();
    let own = timed(|| sealed(&mut client, &plain, &mut record));
    [buffered - own, unbuffered - own, records - own]
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn main() {
    let mut all_held = Vec::new();
    let mut report = String::from("what: buffered, unbuffered, records\n");
    for (name, version) in [("TLS 1.3", &TLS13), ("TLS 1.2", &TLS12)] {
        let configs = configs(version);
        let bytes = [
            held(&mut all_held, || configs.records().1),
            held(&mut all_held, || configs.unbuffered().1),
            held(&mut all_held, || configs.buffered().1),
        ];
        let [records, unbuffered, buffered] = bytes;
        let _ = writeln!(
            report,
            "{name}, bytes of a connection that says nothing: {buffered}, {unbuffered}, {records}"
        );
        for len in LENGTHS {
            let turns: Vec<[f64; 3]> = (0..TURNS).map(|_| turn(&configs, len)).collect();
            let [a, b, c] = [0, 1, 2].map(|at| median(turns.iter().map(|t| t[at]).collect()));
            let _ = writeln!(
                report,
                "{name}, ns to open and seal {len} bytes: {a:.0}, {b:.0}, {c:.0}"
            );
        }
    }
    print!("{report}");
}
