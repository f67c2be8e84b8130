//! The certificate that clients are shown, read from its files.
//!
//! The problem: a certificate that cannot be used has to be found at start, and not by the first
//! client. The mechanism: certificate and key are read and tried together; an error names the
//! setting, the file and what to do.

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem};
use rustls::server::NoServerSessionStorage;
use rustls::{Error, InconsistentKeys, ServerConfig};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wire::dsn::password::seen_by_others;

/// Bytes of a file with certificates or a key.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Whether clients may use TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TlsMode {
    Off,
    Optional,
    Required,
}

impl TlsMode {
    pub(crate) fn from_name(name: &str) -> Option<TlsMode> {
        match name {
            "off" => Some(TlsMode::Off),
            "optional" => Some(TlsMode::Optional),
            "required" => Some(TlsMode::Required),
            _ => None,
        }
    }
}

/// TLS towards clients, as the settings have it.
#[derive(Clone, Debug)]
pub struct ClientTls {
    /// A login in clear is refused.
    pub(crate) required: bool,
    /// What handshakes are made with.
    pub(crate) config: Arc<ServerConfig>,
}

impl ClientTls {
    /// What the settings below `[tls]` come down to; `None` without TLS.
    ///
    /// # Errors
    /// A sentence that names the setting or the file.
    pub(crate) fn of(
        mode: Option<TlsMode>,
        (cert, key): (Option<PathBuf>, Option<PathBuf>),
        warnings: &mut Vec<String>,
    ) -> Result<Option<ClientTls>, String> {
        let (cert, key, mode) = match (cert, key, mode) {
            (None, None, None) | (_, _, Some(TlsMode::Off)) => return Ok(None),
            (Some(cert), Some(key), mode) => (cert, key, mode.unwrap_or(TlsMode::Optional)),
            (None, ..) => {
                return Err(
                    "tls.cert: expected the file with the certificate, as key and mode stand \
                     below [tls]"
                        .into(),
                );
            }
            (_, None, _) => {
                return Err("tls.key: expected the file with the certificate's private key".into());
            }
        };
        let config = server_config(&cert, &key)?;
        warnings.extend(seen_by_others(&key, "a private key"));
        Ok(Some(ClientTls {
            required: mode == TlsMode::Required,
            config: Arc::new(config),
        }))
    }
}

/// What a file holds, if it is not longer than such files are.
fn contents(setting: &str, path: &Path) -> Result<Vec<u8>, String> {
    let shown = path.display();
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes))
        .map_err(|error| format!("{setting} {shown}: {error}"))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(format!(
            "{setting} {shown}: expected a PEM file of at most {FILE_BYTES_MAX} bytes; it has more"
        ));
    }
    Ok(bytes)
}

/// The certificates of a PEM file, in its order; at least one.
pub(crate) fn certificates(
    setting: &str,
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, String> {
    let shown = path.display();
    let bytes = contents(setting, path)?;
    let found: Result<Vec<_>, pem::Error> = CertificateDer::pem_slice_iter(&bytes).collect();
    let found = found.map_err(|error| format!("{setting} {shown}: {error}"))?;
    if found.is_empty() {
        return Err(format!(
            "{setting} {shown}: no certificate in it; expected PEM, with BEGIN CERTIFICATE, the \
             server's own first and those of its issuers behind it"
        ));
    }
    Ok(found)
}

/// The private key of a PEM file.
pub(crate) fn private_key(setting: &str, path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let shown = path.display();
    let bytes = contents(setting, path)?;
    let encrypted = b"BEGIN ENCRYPTED PRIVATE KEY";
    match PrivateKeyDer::from_pem_slice(&bytes) {
        Ok(key) => Ok(key),
        Err(_) if bytes.windows(encrypted.len()).any(|part| part == encrypted) => Err(format!(
            "{setting} {shown}: the key is encrypted, which is not supported; write it decrypted \
             with openssl pkey -in {shown} -out FILE and protect FILE by its permissions"
        )),
        Err(pem::Error::NoItemsFound) => Err(format!(
            "{setting} {shown}: no private key in it; expected PEM, with BEGIN PRIVATE KEY"
        )),
        Err(error) => Err(format!("{setting} {shown}: {error}")),
    }
}

/// What handshakes are made with: TLS 1.2 and 1.3, no resumption (no driver asks for it), no data
/// in front of the end of the handshake.
fn server_config(cert: &Path, key: &Path) -> Result<ServerConfig, String> {
    let chain = certificates("tls.cert", cert)?;
    let secret = private_key("tls.key", key)?;
    let (cert, key) = (cert.display(), key.display());
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("tls: {error}"))?
        .with_no_client_auth()
        .with_single_cert(chain, secret)
        .map_err(|error| match error {
            Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => format!(
                "tls.key {key}: it is not the key of the first certificate in tls.cert {cert}"
            ),
            error => format!("tls.cert {cert} with tls.key {key}: {error}"),
        })?;
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    Ok(config)
}

#[cfg(test)]
mod tests;
