//! TLS of the tests' own client: it begins behind the greeting, and verifies nothing.
//!
//! What the certificate says is the business of the tests with drivers and `openssl`; here only the
//! bytes inside matter.

use reactor::SkipVerification;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned, SupportedProtocolVersion};
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use wire::client_login::put_tls_request;
use wire::packet::{HEADER_LEN, Header};
use wire::reply::ERR;

/// A self-signed certificate for localhost and 127.0.0.1, and its key, which protects nothing.
pub const CERT_PEM: &str = include_str!("../tls/cert.pem");
/// Its key.
pub const KEY_PEM: &str = include_str!("../tls/key.pem");

/// The files of both, which everybody can read: for servers, which do not mind.
pub const CERT_FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tls/cert.pem");
/// The key's.
pub const KEY_FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tls/key.pem");

/// Writes both into a folder; their paths.
///
/// # Panics
/// When they cannot be written.
#[must_use]
pub fn files(folder: &Path) -> (PathBuf, PathBuf) {
    static WRITES: AtomicU64 = AtomicU64::new(0);
    let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    for (path, text) in [(&cert, CERT_PEM), (&key, KEY_PEM)] {
        // Tests share the folder: nobody is to read half of a file.
        let number = WRITES.fetch_add(1, Ordering::Relaxed);
        let whole = folder.join(format!("pem-{number}"));
        let mut options = std::fs::OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600);
        let mut file = file.open(&whole).expect("a file to be written");
        file.write_all(text.as_bytes()).expect("room for a file");
        std::fs::rename(&whole, path).expect("a file to be renamed");
    }
    (cert, key)
}

/// A connection under TLS.
pub type TlsStream = StreamOwned<ClientConnection, TcpStream>;

/// A client's side that trusts anybody, with these versions of TLS.
///
/// # Panics
/// When rustls does not know them.
#[must_use]
pub fn client(versions: &[&'static SupportedProtocolVersion]) -> ClientConnection {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(versions)
        .expect("versions of TLS")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(SkipVerification::new(provider)))
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").expect("a name");
    ClientConnection::new(Arc::new(config), name).expect("a client's side")
}

/// Bytes that have been read in front of TLS, and the connection behind them.
pub(crate) enum GlobalDefaults {
    /// The server does not offer TLS, or has refused the connection.
    Plain(TcpStream),
    Tls(Box<TlsStream>),
}

/// Reads the greeting, and begins TLS where it offers that. The greeting is the first of the two.
/// `asked`: the capabilities, the extended ones and the collation of the login, which MySQL refuses
/// where the request for TLS has another one.
///
/// # Errors
/// The system's, or why there is no TLS.
pub(crate) fn begin(
    mut stream: TcpStream,
    asked: (u32, u32, u8),
    tls12: bool,
) -> io::Result<(Vec<u8>, GlobalDefaults)> {
    let mut greeting = vec![0; HEADER_LEN];
    stream.read_exact(&mut greeting)?;
    let len = Header::read(&greeting).map_or(0, |header| header.len);
    greeting.resize(HEADER_LEN + len, 0);
    stream.read_exact(&mut greeting[HEADER_LEN..])?;
    let mut request = Vec::new();
    let payload = &greeting[HEADER_LEN..];
    let refused = payload.first() == Some(&ERR);
    let malformed = |error| io::Error::other(format!("{error}"));
    if refused || !put_tls_request(asked, 0, payload, &mut request).map_err(malformed)? {
        return Ok((greeting, GlobalDefaults::Plain(stream)));
    }
    stream.write_all(&request)?;
    let versions = match tls12 {
        true => &[&rustls::version::TLS12][..],
        false => rustls::DEFAULT_VERSIONS,
    };
    let mut stream = StreamOwned::new(client(versions), stream);
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock)?;
    }
    // The login's number follows that of the request.
    greeting[3] += 1;
    Ok((greeting, GlobalDefaults::Tls(Box::new(stream))))
}
