//! How connections are secured: the options, and what they come down to for rustls.
//!
//! What is checked of a server's certificate is a [`Check`]. By default sessions are not resumed:
//! each connection makes a whole handshake, as a client does that comes for the first time. With
//! `--tls-resume` all connections of a run take and leave tickets in one place, as the connections
//! of one client do.

use crate::errors::Fault;
use clap::Args;
use reactor::{AnyCertificate, AnyName};
use rustls::client::{ClientConnection, Resumption, WebPkiServerVerifier};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Servers whose tickets are kept; a run has one name for all of its servers.
const RESUMED_SERVERS_MAX: usize = 8;

/// How a server is checked under TLS, and what it is shown.
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

    /// Under TLS, show the server the certificate in this PEM file, with those that lead to its
    /// authority behind it
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,

    /// Under TLS, the key of --tls-cert, in a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// Under TLS, resume the sessions of earlier connections where the server gives tickets
    #[arg(long)]
    pub tls_resume: bool,
}

impl TlsArgs {
    /// What is checked where nothing else says so.
    pub(crate) fn check(&self) -> Check {
        match self.insecure {
            true => Check::Nothing,
            false => Check::Identity,
        }
    }
}

/// What is checked of a server's certificate. That the server has its key is checked always.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    /// An authority that is trusted signed it, it is valid now, and it names the server.
    Identity,
    /// The same without the name.
    Authority,
    Nothing,
}

/// How TLS of a MySQL connection begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asking {
    /// What is asked of the server besides.
    pub(super) wanted: u32,
    /// Where the server does not offer TLS, the connection goes on without it.
    pub(super) is_optional: bool,
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
    check: Check,
    /// TLS begins behind the greeting of a MySQL server.
    asking: Option<Asking>,
}

impl Security {
    /// TLS to `host`; `protocols` are offered to the server (ALPN), the preferred one first.
    ///
    /// # Errors
    /// A sentence: files that cannot be read, a host that no certificate can name.
    pub(crate) fn tls(
        args: &TlsArgs,
        check: Check,
        host: &str,
        protocols: &[&[u8]],
    ) -> Result<Security, String> {
        let host = args.tls_name.as_deref().unwrap_or(host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| format!("'{host}' is no name that a certificate can have; --tls-name"))?;
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("TLS: {error}"))?;
        let builder = match check {
            Check::Nothing => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(AnyCertificate::new(provider))),
            Check::Authority => {
                let roots = Arc::new(roots(args.ca.as_deref())?);
                let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider).build();
                let verifier = verifier.map_err(|error| format!("TLS: {error}"))?;
                builder
                    .dangerous()
                    .with_custom_certificate_verifier(Arc::new(AnyName::new(verifier)))
            }
            Check::Identity => builder.with_root_certificates(roots(args.ca.as_deref())?),
        };
        let mut config = match (&args.tls_cert, &args.tls_key) {
            (Some(certificate), Some(key)) => {
                let (chain, secret) = (own_chain(certificate)?, own_key(key)?);
                let built = builder.with_client_auth_cert(chain, secret);
                built.map_err(|error| {
                    let (certificate, key) = (certificate.display(), key.display());
                    format!("--tls-cert {certificate}, --tls-key {key}: {error}")
                })?
            }
            _ => builder.with_no_client_auth(),
        };
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        config.resumption = match args.tls_resume {
            true => Resumption::in_memory_sessions(RESUMED_SERVERS_MAX),
            false => Resumption::disabled(),
        };
        Ok(Security::Tls(TlsSettings {
            config: Arc::new(config),
            name,
            check,
            asking: None,
        }))
    }

    /// The same for MySQL servers, which say in clear whether they offer TLS; `is_optional` goes on
    /// without it where they do not.
    #[must_use]
    pub(crate) fn of_mysql(self, is_optional: bool) -> Security {
        match self {
            Security::Plain => Security::Plain,
            Security::Tls(settings) => Security::Tls(TlsSettings {
                asking: Some(Asking {
                    wanted: 0,
                    is_optional,
                }),
                ..settings
            }),
        }
    }

    /// The same; a MySQL server is asked for these capabilities with TLS.
    #[must_use]
    pub(crate) fn asking(self, wanted: u32) -> Security {
        match self {
            Security::Plain => Security::Plain,
            Security::Tls(settings) => Security::Tls(TlsSettings {
                asking: settings.asking.map(|asking| Asking { wanted, ..asking }),
                ..settings
            }),
        }
    }

    /// How TLS of a MySQL connection begins, if it is one.
    pub(super) fn of_greeting(&self) -> Option<Asking> {
        match self {
            Security::Plain => None,
            Security::Tls(settings) => settings.asking,
        }
    }

    /// True where a server without TLS is not spoken to.
    pub(crate) fn is_required(&self) -> bool {
        match self {
            Security::Plain => false,
            Security::Tls(settings) => !settings.asking.is_some_and(|asking| asking.is_optional),
        }
    }

    /// For reports.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Security::Plain => "none",
            Security::Tls(settings) => match settings.check {
                Check::Identity => "verified",
                Check::Authority => "authority",
                Check::Nothing => "insecure",
            },
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
    for certificate in certificates("--ca", file)? {
        store
            .add(certificate)
            .map_err(|error| format!("--ca {}: {error}", file.display()))?;
    }
    Ok(store)
}

/// The certificates in the file that an option names, at least one.
fn certificates(option: &str, file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let shown = file.display();
    let certificates = CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| format!("{option} {shown}: {error}"))?;
    match certificates.is_empty() {
        false => Ok(certificates),
        true => Err(format!(
            "{option} {shown}: no certificate in it; expected PEM, with BEGIN CERTIFICATE"
        )),
    }
}

/// What a server is shown.
fn own_chain(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    certificates("--tls-cert", file)
}

fn own_key(file: &Path) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_file(file).map_err(|error| {
        format!(
            "--tls-key {}: {error}; expected PEM, with BEGIN PRIVATE KEY, without a passphrase",
            file.display()
        )
    })
}
