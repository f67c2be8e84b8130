//! The certificate that clients are shown, read from its files.
//!
//! The problem: a certificate that cannot be used has to be found at start, and not by the first
//! client. The mechanism: certificate and key are read and tried together; an error names the
//! setting, the file and what to do.

use crate::auth::requirement::expires;
use crate::config::from_files::FromFiles;
use reactor::tls_files::{authorities, certificates, private_key};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{Error, InconsistentKeys, ServerConfig};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wire::auth::native::{Fingerprint, fingerprint};
use wire::dsn::password::seen_by_others;

/// Use of TLS by clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TlsMode {
    /// TLS with the certificate of the settings, or with one of the pool's own.
    Auto,
    Off,
    Optional,
    Required,
}

impl TlsMode {
    pub(crate) fn from_name(name: &str) -> Option<TlsMode> {
        match name {
            "auto" => Some(TlsMode::Auto),
            "off" => Some(TlsMode::Off),
            "optional" => Some(TlsMode::Optional),
            "required" => Some(TlsMode::Required),
            _ => None,
        }
    }
}

/// Demand of certificates from clients, where they can be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientCert {
    Optional,
    Required,
}

impl ClientCert {
    pub(crate) fn from_name(name: &str) -> Option<ClientCert> {
        match name {
            "optional" => Some(ClientCert::Optional),
            "required" => Some(ClientCert::Required),
            _ => None,
        }
    }
}

/// The authorities of clients' certificates, and whether one has to be shown.
type Clients = Option<(PathBuf, ClientCert)>;

/// The settings as typed.
#[derive(Debug)]
pub(crate) struct ClientTlsKeys {
    pub(crate) mode: Option<TlsMode>,
    pub(crate) cert: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
    pub(crate) client_ca: Option<PathBuf>,
    pub(crate) client_cert: Option<ClientCert>,
}

/// TLS towards clients, as the settings have it.
#[derive(Debug)]
pub struct ClientTls {
    /// True if a login in clear is refused.
    pub(crate) required: bool,
    /// Clients can show certificates.
    pub(crate) checks_clients: bool,
    /// Configuration of handshakes.
    pub(crate) config: FromFiles<Shown>,
}

/// Configuration of handshakes, and the certificate that they show.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) config: ServerConfig,
    /// Fingerprint of the first certificate.
    pub(crate) fingerprint: Fingerprint,
    /// End of its validity, in seconds since 1970.
    expires: Option<u64>,
}

impl ClientTls {
    /// TLS by the settings below `[tls]`; `None` without a certificate.
    ///
    /// # Errors
    /// A sentence that names the setting or the file.
    pub(crate) fn of(
        keys: ClientTlsKeys,
        warnings: &mut Vec<String>,
    ) -> Result<Option<ClientTls>, String> {
        let (cert, key, mode) = match (keys.cert, keys.key, keys.mode) {
            (None, None, None | Some(TlsMode::Auto)) | (_, _, Some(TlsMode::Off)) => {
                return Ok(None);
            }
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
        let required = mode == TlsMode::Required;
        let clients = match (keys.client_ca, keys.client_cert) {
            (Some(_), Some(ClientCert::Required)) if !required => {
                return Err(
                    "tls.client_cert: expected tls.mode = \"required\" beside \"required\": a \
                     login in clear shows no certificate"
                        .into(),
                );
            }
            (Some(ca), wanted) => Some((ca, wanted.unwrap_or(ClientCert::Optional))),
            (None, None) => None,
            (None, Some(_)) => {
                return Err(
                    "tls.client_ca: expected the file with the certificates of the authorities \
                     that sign clients' certificates, as client_cert stands below [tls]"
                        .into(),
                );
            }
        };
        warnings.extend(seen_by_others(&key, "a private key"));
        let mut files = vec![cert.clone(), key.clone()];
        files.extend(clients.iter().map(|(ca, _)| ca.clone()));
        let checks_clients = clients.is_some();
        let make = move || server_config(&cert, &key, &clients);
        let config = FromFiles::new(files, make)?;
        let now = reactor::utc_now().as_secs();
        warnings.extend(config.get().expires.and_then(|until| expiring(until, now)));
        Ok(Some(ClientTls {
            required,
            checks_clients,
            config,
        }))
    }
}

/// Days before the end of a certificate in which a start or a reload warns of it.
const WARNED_DAYS: u64 = 14;

/// Warning of a certificate that ends soon, or has ended.
fn expiring(until: u64, now: u64) -> Option<String> {
    let left = match until.checked_sub(now).map(|seconds| seconds / 86_400) {
        None => "has expired".to_owned(),
        Some(WARNED_DAYS..) => return None,
        Some(days) => format!("expires in {days} days"),
    };
    Some(format!(
        "tls.cert: the certificate {left}; put a new one at its place, which is then read by itself"
    ))
}

/// Configuration of handshakes: TLS 1.2 and 1.3, no resumption (no driver asks for it), no data in
/// front of the end of the handshake.
fn server_config(cert: &Path, key: &Path, clients: &Clients) -> Result<Shown, String> {
    let chain = certificates("tls.cert", cert)?;
    let secret = private_key("tls.key", key)?;
    let (cert, key) = (cert.display(), key.display());
    let verifier = match clients {
        None => WebPkiClientVerifier::no_client_auth(),
        Some((ca, wanted)) => {
            let shown = ca.display();
            let roots = authorities("tls.client_ca", ca)?;
            let provider = Arc::new(aws_lc_rs::default_provider());
            let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            let builder = match wanted {
                ClientCert::Optional => builder.allow_unauthenticated(),
                ClientCert::Required => builder,
            };
            let built = builder.build();
            built.map_err(|error| format!("tls.client_ca {shown}: {error}"))?
        }
    };
    shown((chain, secret), verifier).map_err(|error| match error {
        Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            format!("tls.key {key}: it is not the key of the first certificate in tls.cert {cert}")
        }
        error => format!("tls.cert {cert} with tls.key {key}: {error}"),
    })
}

/// A certificate with its key and those of its issuers, as clients are shown it.
///
/// # Errors
/// They cannot be used.
pub(crate) fn shown(
    (chain, secret): (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>),
    verifier: Arc<dyn ClientCertVerifier>,
) -> Result<Shown, Error> {
    let first: &[u8] = chain.first().map_or(&[], |first| first);
    let (fingerprint, expires) = (fingerprint(first), expires(first));
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, secret)?;
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    Ok(Shown {
        config,
        fingerprint,
        expires,
    })
}

#[cfg(test)]
mod tests;
