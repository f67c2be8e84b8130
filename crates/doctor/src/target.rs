//! The server that is asked: where it is, who logs in, and TLS with it.
//!
//! A target says with `ssl-mode` how its connection is secured, in the words of MySQL's clients.
//! Each mode does what it does for the pool's own connections (`backend.tls`).
//!
//! Invariants: where TLS is required, nothing but the greeting is said in clear; a handshake whose
//! certificate does not pass the mode's check sends nothing under it.

use reactor::tls_client::{Checked, Unfit, client_config};
use reactor::tls_errors::{Hints, words};
use reactor::tls_files::authorities;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, Error};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wire::dsn::{Dsn, SslMode};

const HINTS: Hints = Hints {
    ca: "--ca",
    name: "the target's host",
    unchecked: "ssl-mode=REQUIRED",
    own: "no option: onramp doctor and explain have none",
    protocols: "",
};

/// The options that name a server.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct TargetArgs {
    /// Ask this server too: mysql://USER@HOST[:PORT] or mysql://USER@localhost?socket=/PATH, with
    /// the password in a file (password_file=FILE behind the ?), or in the environment
    /// (password_env=NAME), and with ssl-mode=MODE under TLS
    #[arg(long, value_name = "DSN", value_parser = Dsn::read)]
    pub target: Option<Dsn>,

    /// With ssl-mode=VERIFY_CA or VERIFY_IDENTITY: the PEM file of the certificate authorities that
    /// may have signed the server's certificate
    #[arg(long, value_name = "FILE", requires = "target")]
    pub ca: Option<PathBuf>,
}

impl TargetArgs {
    /// The server, if one is named.
    ///
    /// # Errors
    /// A sentence: a file that cannot be used, a mode that has no use for it or cannot do without.
    pub fn target(&self) -> Result<Option<Target>, String> {
        let target = self.target.clone();
        let target = target.map(|dsn| Target::new(dsn, self.ca.as_deref()));
        target.transpose()
    }
}

/// A server.
#[derive(Debug)]
pub struct Target {
    /// Its address, and the login.
    pub dsn: Dsn,
    tls: Option<TargetTls>,
}

impl Target {
    /// # Errors
    /// As [`TargetArgs::target`].
    pub fn new(dsn: Dsn, ca: Option<&Path>) -> Result<Target, String> {
        let tls = TargetTls::of(&dsn, ca)?;
        Ok(Target { dsn, tls })
    }

    /// TLS with it; `None`: without.
    #[must_use]
    pub(crate) fn tls(&self) -> Option<&TargetTls> {
        self.tls.as_ref()
    }
}

/// TLS with a server.
#[derive(Debug)]
pub(crate) struct TargetTls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    /// Without TLS there is no login.
    pub(crate) is_required: bool,
    /// True if the server's certificate is checked.
    pub(crate) checks: bool,
}

impl TargetTls {
    fn of(dsn: &Dsn, ca: Option<&Path>) -> Result<Option<TargetTls>, String> {
        let mode = dsn.ssl_mode.unwrap_or(SslMode::Disabled);
        let checked = match (mode, ca) {
            (SslMode::Disabled | SslMode::Preferred | SslMode::Required, Some(ca)) => {
                return Err(format!(
                    "--ca {}: the target's ssl-mode is {}, which checks no certificate; \
                     ssl-mode=VERIFY_CA and VERIFY_IDENTITY do",
                    ca.display(),
                    mode.name()
                ));
            }
            (SslMode::VerifyCa | SslMode::VerifyIdentity, None) => {
                return Err(format!(
                    "the target's ssl-mode is {}: expected --ca FILE, with the certificate of the \
                     authority that has signed the server's",
                    mode.name()
                ));
            }
            (SslMode::Disabled, None) => return Ok(None),
            // A Unix socket is safe by itself.
            (SslMode::Preferred, None) if dsn.socket.is_some() => return Ok(None),
            (SslMode::Preferred | SslMode::Required, None) => Checked::Nothing,
            (SslMode::VerifyCa, Some(ca)) => Checked::Authority(authorities("--ca", ca)?),
            (SslMode::VerifyIdentity, Some(_)) if dsn.socket.is_some() => {
                return Err(
                    "the target's ssl-mode is VERIFY_IDENTITY: expected a host, whose name the \
                     server's certificate has; a Unix socket has none: use ssl-mode=VERIFY_CA"
                        .to_owned(),
                );
            }
            (SslMode::VerifyIdentity, Some(ca)) => Checked::Identity(authorities("--ca", ca)?),
        };
        let host = match &dsn.socket {
            // Nobody looks at it.
            Some(_) => "localhost",
            None => &dsn.host,
        };
        let name = ServerName::try_from(host.to_owned()).map_err(|_| {
            format!("the target's host is '{host}', which is no name that a certificate can have")
        })?;
        let config = client_config(checked, None, 0).map_err(|unfit| match unfit {
            Unfit::Library(error) | Unfit::Own(error) => format!("TLS: {error}"),
        })?;
        Ok(Some(TargetTls {
            config: Arc::new(config),
            name,
            is_required: mode != SslMode::Preferred,
            checks: matches!(mode, SslMode::VerifyCa | SslMode::VerifyIdentity),
        }))
    }

    /// A connection in front of its handshake.
    pub(crate) fn connection(&self) -> io::Result<ClientConnection> {
        ClientConnection::new(self.config.clone(), self.name.clone()).map_err(io::Error::other)
    }
}

/// Message for a failed TLS handshake; `None` where the connection broke instead.
pub(crate) fn words_of(error: &io::Error) -> Option<String> {
    let error = error.get_ref()?.downcast_ref::<Error>()?;
    Some(format!("TLS with the server: {}", words(error, &HINTS)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tls(text: &str, ca: Option<&str>) -> Result<Option<bool>, String> {
        let dsn = Dsn::parse(text).unwrap();
        let tls = TargetTls::of(&dsn, ca.map(Path::new))?;
        Ok(tls.map(|tls| tls.is_required))
    }

    #[test]
    fn each_mode_means_what_it_means_for_the_pool() {
        for (text, expected) in [
            ("mysql://a@h", None),
            ("mysql://a@h?ssl-mode=DISABLED", None),
            ("mysql://a@h?ssl-mode=PREFERRED", Some(false)),
            ("mysql://a@h?ssl-mode=required", Some(true)),
            ("mysql://a@[::1]?ssl-mode=REQUIRED", Some(true)),
            ("mysql://a@/?socket=/s&ssl-mode=PREFERRED", None),
            ("mysql://a@/?socket=/s&ssl-mode=REQUIRED", Some(true)),
        ] {
            assert_eq!(tls(text, None), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_a_mode_cannot_do_without_or_has_no_use_for_is_said() {
        for (text, ca, expected) in [
            ("mysql://a@h?ssl-mode=VERIFY_CA", None, "expected --ca FILE"),
            (
                "mysql://a@h?ssl-mode=VERIFY_IDENTITY",
                None,
                "expected --ca FILE",
            ),
            (
                "mysql://a@h?ssl-mode=REQUIRED",
                Some("/nowhere/ca.pem"),
                "--ca /nowhere/ca.pem: the target's ssl-mode is REQUIRED, which checks no",
            ),
            (
                "mysql://a@h",
                Some("/nowhere/ca.pem"),
                "ssl-mode is DISABLED, which checks no",
            ),
            (
                "mysql://a@h?ssl-mode=VERIFY_CA",
                Some("/nowhere/ca.pem"),
                "--ca /nowhere/ca.pem: No such file",
            ),
            (
                "mysql://a@/?socket=/s&ssl-mode=VERIFY_IDENTITY",
                Some("/nowhere/ca.pem"),
                "a Unix socket has none: use ssl-mode=VERIFY_CA",
            ),
            (
                "mysql://a@a b?ssl-mode=REQUIRED",
                None,
                "'a b', which is no name that a certificate can have",
            ),
        ] {
            let error = tls(text, ca).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
