//! Security of connections: the options, and their form for rustls.
//!
//! What is checked of a server's certificate is a [`Check`]. By default sessions are not resumed:
//! each connection makes a whole handshake, as a client does that comes for the first time. With
//! `--tls-resume` all connections of a run take and leave tickets in one place, as the connections
//! of one client do.

use crate::errors::Fault;
use clap::Args;
use reactor::tls_client::{Checked, Unfit, client_config};
use reactor::tls_files::{authorities, certificates, private_key};
use rustls::client::ClientConnection;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Servers whose tickets are kept; a run has one name for all of its servers.
const RESUMED_SERVERS_MAX: usize = 8;

/// Checks of a server under TLS, and the certificate that it is shown.
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
    /// Check where nothing else says so.
    pub fn check(&self) -> Check {
        match self.insecure {
            true => Check::Nothing,
            false => Check::Identity,
        }
    }
}

/// Checks of a server's certificate. That the server has its key is checked always.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// An authority that is trusted signed it, it is valid now, and it names the server.
    Identity,
    /// The authority and the dates, not the name.
    Authority,
    /// No check of the certificate.
    Nothing,
}

/// Beginning of TLS on a MySQL connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asking {
    /// Further capabilities that are asked of the server.
    pub(super) wanted: u32,
    /// True if the connection goes on without TLS where the server does not offer it.
    pub(super) is_optional: bool,
}

/// Security of a connection before it is used.
#[derive(Clone, Debug)]
pub enum Security {
    /// No TLS.
    Plain,
    /// TLS from the start, or when the protocol asks for it.
    Tls(TlsSettings),
}

/// One configuration for all connections of a run.
#[derive(Clone, Debug)]
pub struct TlsSettings {
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
    pub fn tls(
        args: &TlsArgs,
        check: Check,
        host: &str,
        protocols: &[&[u8]],
    ) -> Result<Security, String> {
        let host = args.tls_name.as_deref().unwrap_or(host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| format!("'{host}' is no name that a certificate can have; --tls-name"))?;
        let ca = args.ca.as_deref();
        let checked = match check {
            Check::Nothing => Checked::Nothing,
            Check::Authority => Checked::Authority(roots(ca)?),
            Check::Identity => Checked::Identity(roots(ca)?),
        };
        let (own, shown) = match (&args.tls_cert, &args.tls_key) {
            (Some(cert), Some(key)) => {
                let own = (
                    certificates("--tls-cert", cert)?,
                    private_key("--tls-key", key)?,
                );
                let (cert, key) = (cert.display(), key.display());
                (Some(own), format!("--tls-cert {cert}, --tls-key {key}"))
            }
            _ => (None, String::new()),
        };
        let resumed = match args.tls_resume {
            true => RESUMED_SERVERS_MAX,
            false => 0,
        };
        let made = client_config(checked, own, resumed);
        let mut config = made.map_err(|unfit| match unfit {
            Unfit::Library(error) => format!("TLS: {error}"),
            Unfit::Own(error) => format!("{shown}: {error}"),
        })?;
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        Ok(Security::Tls(TlsSettings {
            config: Arc::new(config),
            name,
            check,
            asking: None,
        }))
    }

    /// Security for MySQL servers, which say in clear that they offer TLS; `is_optional` goes on
    /// without it where they do not.
    #[must_use]
    pub fn of_mysql(self, is_optional: bool) -> Security {
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

    /// Security for a MySQL server that is asked for these capabilities with TLS.
    #[must_use]
    pub fn asking(self, wanted: u32) -> Security {
        match self {
            Security::Plain => Security::Plain,
            Security::Tls(settings) => Security::Tls(TlsSettings {
                asking: settings.asking.map(|asking| Asking { wanted, ..asking }),
                ..settings
            }),
        }
    }

    /// Beginning of TLS, if this is a MySQL connection.
    pub(super) fn of_greeting(&self) -> Option<Asking> {
        match self {
            Security::Plain => None,
            Security::Tls(settings) => settings.asking,
        }
    }

    /// True where a server without TLS is not spoken to.
    pub fn is_required(&self) -> bool {
        match self {
            Security::Plain => false,
            Security::Tls(settings) => !settings.asking.is_some_and(|asking| asking.is_optional),
        }
    }

    /// Name for reports.
    pub fn name(&self) -> &'static str {
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
    if let Some(file) = ca {
        return authorities("--ca", file);
    }
    let mut store = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    let (added, _) = store.add_parsable_certificates(found.certs);
    if added == 0 {
        return Err(
            "this system has no certificate authorities that it trusts; name yours with --ca"
                .to_owned(),
        );
    }
    Ok(store)
}
