//! How connections are secured: the options, and what they come down to for rustls.
//!
//! Certificates are checked unless `--insecure` says not to: that the authority signed it, that it
//! is valid now, and that it names the server that was asked for. Sessions are not resumed: each
//! connection makes a whole handshake, as a client does that comes for the first time.

use crate::errors::Fault;
use clap::Args;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ClientConnection, Resumption};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How a server is checked under TLS.
#[derive(Args, Clone, Debug, Default)]
pub struct TlsArgs {
    /// Under TLS, trust the certificate authorities in this PEM file, and no others [default: those
    /// that the system trusts]
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,

    /// Under TLS, do not check the server's certificate: anybody may be the server
    #[arg(long, conflicts_with = "ca")]
    pub insecure: bool,

    /// Under TLS, the name that the server's certificate has to be valid for, and that the server
    /// is told [default: the host of the target]
    #[arg(long, value_name = "NAME")]
    pub tls_name: Option<String>,
}

/// What is done to a connection before it is used.
#[derive(Clone, Debug)]
pub(crate) enum Security {
    Plain,
    Tls(TlsSettings),
}

/// One configuration for all connections of a run.
#[derive(Clone, Debug)]
pub(crate) struct TlsSettings {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    is_checked: bool,
    /// TLS begins behind the greeting of a MySQL server, and is asked for with these capabilities.
    greeted: Option<u32>,
}

impl Security {
    /// TLS to `host`; `protocols` are offered to the server (ALPN), the preferred one first.
    ///
    /// # Errors
    /// A sentence: files that cannot be read, a host that no certificate can name.
    pub(crate) fn tls(args: &TlsArgs, host: &str, protocols: &[&[u8]]) -> Result<Security, String> {
        let host = args.tls_name.as_deref().unwrap_or(host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| format!("'{host}' is no name that a certificate can have; --tls-name"))?;
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("TLS: {error}"))?;
        let builder = match args.insecure {
            true => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(Anybody { provider })),
            false => builder.with_root_certificates(roots(args.ca.as_deref())?),
        };
        let mut config = builder.with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        config.resumption = Resumption::disabled();
        Ok(Security::Tls(TlsSettings {
            config: Arc::new(config),
            name,
            is_checked: !args.insecure,
            greeted: None,
        }))
    }

    /// The same for a MySQL server, which says in clear that it offers TLS, and is asked for it
    /// with these capabilities.
    #[must_use]
    pub(crate) fn behind_greeting(self, wanted: u32) -> Security {
        match self {
            Security::Plain => Security::Plain,
            Security::Tls(settings) => Security::Tls(TlsSettings {
                greeted: Some(wanted),
                ..settings
            }),
        }
    }

    /// The capabilities to ask a MySQL server with, if it is one.
    pub(super) fn greeted(&self) -> Option<u32> {
        match self {
            Security::Plain => None,
            Security::Tls(settings) => settings.greeted,
        }
    }

    /// For reports.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Security::Plain => "none",
            Security::Tls(settings) if settings.is_checked => "verified",
            Security::Tls(_) => "insecure",
        }
    }

    /// A connection that has not begun; `None` without TLS.
    pub(super) fn connection(&self) -> Result<Option<ClientConnection>, Fault> {
        match self {
            Security::Plain => Ok(None),
            Security::Tls(TlsSettings { config, name, .. }) => {
                let made = ClientConnection::new(config.clone(), name.clone());
                made.map(Some).map_err(|error| super::fault::tls(&error))
            }
        }
    }
}

/// The authorities that are trusted.
fn roots(ca: Option<&Path>) -> Result<RootCertStore, String> {
    let mut store = RootCertStore::empty();
    let Some(file) = ca else {
        let found = rustls_native_certs::load_native_certs();
        let (added, _) = store.add_parsable_certificates(found.certs);
        if added == 0 {
            return Err(
                "this system has no certificate authorities that it trusts; name yours with --ca"
                    .to_owned(),
            );
        }
        return Ok(store);
    };
    let shown = file.display();
    let certificates = CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| format!("--ca {shown}: {error}"))?;
    if certificates.is_empty() {
        return Err(format!(
            "--ca {shown}: no certificate in it; expected PEM, with BEGIN CERTIFICATE"
        ));
    }
    for certificate in certificates {
        store
            .add(certificate)
            .map_err(|error| format!("--ca {shown}: {error}"))?;
    }
    Ok(store)
}

/// Takes any certificate. That the peer has its key is checked nevertheless.
#[derive(Debug)]
struct Anybody {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let known = &self.provider.signature_verification_algorithms;
        known.supported_schemes()
    }
}
