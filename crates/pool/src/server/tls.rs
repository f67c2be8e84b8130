//! TLS towards the server: what is asked of it, and what its certificate has to prove.
//!
//! The problem: a server, or somebody between, that does not offer TLS must not bring the pool to
//! send a password or a statement in clear; and dialling must stay cheap. The mechanism: one
//! configuration of rustls for all groups, with one store of tickets, so that a handshake goes on
//! from an earlier one's where the server gives tickets. [`crate::backend::dial`] asks for TLS
//! behind the greeting, for backends, probe and watch alike.
//!
//! Invariants:
//! - where TLS is required, nothing but the greeting is said in clear: no user's name either;
//! - a handshake whose certificate does not pass the mode's check sends nothing under it.

use crate::config::from_files::FromFiles;
use crate::server::upstream::Place;
use reactor::tls_client::{self, Checked, Unfit};
use reactor::tls_errors::{Hints, words};
use reactor::tls_files::{authorities, certificates, private_key};
use reactor::{Address, Tls};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, Error, RootCertStore};
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use wire::auth::caching_sha2;
use wire::client_login;
use wire::dsn::password::seen_by_others;

/// Names of servers whose tickets are kept; there is one.
const RESUMED_SERVERS_MAX: usize = 1;

const HINTS: Hints = Hints {
    ca: "backend.tls_ca",
    name: "backend.tls_name",
    unchecked: "backend.tls = \"required\"",
    own: "backend.tls_cert and backend.tls_key",
    protocols: "",
};

/// Hints about a server with settings of its own.
const OWN_HINTS: Hints = Hints {
    ca: "tls_ca of this [[server]]",
    name: "tls_name of this [[server]]",
    unchecked: "tls = \"required\" of this [[server]]",
    own: "tls_cert and tls_key of this [[server]]",
    protocols: "",
};

/// Demands of the pool on TLS with the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BackendTlsMode {
    Off,
    /// TLS if the server offers it; its certificate is not checked.
    Preferred,
    /// Always; its certificate is not checked.
    Required,
    /// An authority that is trusted has signed the certificate.
    VerifyCa,
    /// The certificate names the server besides.
    VerifyIdentity,
}

impl BackendTlsMode {
    pub(crate) fn from_name(name: &str) -> Option<BackendTlsMode> {
        match name {
            "off" => Some(BackendTlsMode::Off),
            "preferred" => Some(BackendTlsMode::Preferred),
            "required" => Some(BackendTlsMode::Required),
            "verify_ca" => Some(BackendTlsMode::VerifyCa),
            "verify_identity" => Some(BackendTlsMode::VerifyIdentity),
            _ => None,
        }
    }

    /// True if the server's certificate is checked.
    fn verifies(self) -> bool {
        matches!(
            self,
            BackendTlsMode::VerifyCa | BackendTlsMode::VerifyIdentity
        )
    }
}

/// The settings as typed.
#[derive(Debug)]
pub(crate) struct BackendTlsKeys {
    /// Prefix of the key that an error is about.
    pub(crate) prefix: String,
    /// True if the server has some of them for itself.
    pub(crate) is_own: bool,
    /// `None`: what suits the address.
    pub(crate) mode: Option<BackendTlsMode>,
    pub(crate) ca: Option<PathBuf>,
    pub(crate) cert: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
    pub(crate) name: Option<String>,
    pub(crate) server_public_key: Option<PathBuf>,
    pub(crate) get_server_public_key: bool,
}

/// TLS towards the server, and what else keeps passwords from others.
#[derive(Debug)]
pub struct BackendTls {
    mode: Option<BackendTlsMode>,
    pub(crate) config: FromFiles<ClientConfig>,
    name: ServerName<'static>,
    key: ServerKey,
    hints: &'static Hints,
}

impl BackendTlsKeys {
    /// TLS of a server, for which these keys were written (`own`), without what it takes over
    /// from `[backend]` and has no use for.
    pub(crate) fn without_unused(mut self, own: impl Fn(&str) -> bool) -> BackendTlsKeys {
        let is_off = matches!(self.mode, None | Some(BackendTlsMode::Off));
        let verifies = self.mode.is_some_and(BackendTlsMode::verifies);
        let keeps = |key, is_used| own(key) || is_used;
        self.is_own = ["tls", "tls_ca", "tls_cert", "tls_key", "tls_name"]
            .into_iter()
            .any(&own);
        self.ca = self.ca.filter(|_| keeps("tls_ca", verifies));
        self.cert = self.cert.filter(|_| keeps("tls_cert", !is_off));
        self.key = self.key.filter(|_| keeps("tls_key", !is_off));
        self.name = self.name.filter(|_| keeps("tls_name", !is_off));
        let (pinned, sent) = ("server_public_key", "get_server_public_key");
        if self.get_server_public_key && own(sent) {
            self.server_public_key = self.server_public_key.filter(|_| own(pinned));
        }
        self.get_server_public_key &= own(sent) || !own(pinned);
        self
    }
}

impl BackendTls {
    /// TLS by the settings below `[backend]`, or `[[server]]`.
    ///
    /// # Errors
    /// A sentence that names the setting or the file.
    pub(crate) fn of(
        keys: BackendTlsKeys,
        server: &Place,
        warnings: &mut Vec<String>,
    ) -> Result<Arc<BackendTls>, String> {
        let (mode, at) = (keys.mode, &keys.prefix);
        let key = ServerKey::of(&keys)?;
        warnings.extend(unprotected(&keys, server));
        if matches!(mode, None | Some(BackendTlsMode::Off)) {
            let others = [
                ("tls_ca", keys.ca.is_some()),
                ("tls_cert", keys.cert.is_some()),
                ("tls_key", keys.key.is_some()),
                ("tls_name", keys.name.is_some()),
            ];
            if let Some((other, _)) = others.iter().find(|(_, is_given)| *is_given) {
                return Err(format!(
                    "{at}{other}: it needs tls; set that to \"required\", \"verify_ca\" or \
                     \"verify_identity\""
                ));
            }
        }
        let verifies = mode.is_some_and(BackendTlsMode::verifies);
        if let (false, Some(ca)) = (verifies, &keys.ca) {
            return Err(format!(
                "{at}tls_ca {}: the server's certificate is not checked in this mode; set tls to \
                 \"verify_ca\" or \"verify_identity\"",
                ca.display()
            ));
        }
        let name = server_name(&keys, server)?;
        if let Some(key) = &keys.key {
            warnings.extend(seen_by_others(key, "a private key"));
        }
        let files = [&keys.ca, &keys.cert, &keys.key];
        let files = files.into_iter().flatten().cloned().collect();
        let hints = if keys.is_own { &OWN_HINTS } else { &HINTS };
        let config = FromFiles::new(files, move || client_config(&keys))?;
        Ok(Arc::new(BackendTls {
            mode,
            config,
            name,
            key,
            hints,
        }))
    }

    /// Way of asking for TLS on a connection to this address. A Unix socket is safe by itself:
    /// there it is used only where it is demanded.
    fn asking(&self, at: &Address) -> Asking {
        use BackendTlsMode::{Off, Preferred};
        match self.mode {
            Some(Off) => Asking::Off,
            Some(Preferred) if matches!(at, Address::Unix(_)) => Asking::Off,
            None if at.is_here() => Asking::Off,
            None | Some(Preferred) => Asking::Preferred,
            Some(_) => Asking::Required,
        }
    }

    /// The pool's side of a connection, in front of its handshake.
    pub(crate) fn begin(&self) -> io::Result<Tls> {
        Tls::client(&self.config.get(), self.name.clone())
    }

    /// TLS state for a connection that waits.
    pub(crate) fn connection(&self) -> Result<ClientConnection, Error> {
        ClientConnection::new(self.config.get(), self.name.clone())
    }
}

/// Protection of one connection to the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Security {
    pub(crate) asking: Asking,
    /// Key that may encrypt a password where there is no TLS.
    pub(crate) key: ServerKey,
}

impl Security {
    /// Security of a connection to this address.
    pub(crate) fn of(tls: Option<&BackendTls>, at: &Address) -> Security {
        let asking = tls.map_or(Asking::Off, |tls| tls.asking(at));
        let key = match tls.map_or(ServerKey::None, |tls| tls.key.clone()) {
            ServerKey::None if at.is_here() => ServerKey::Sent,
            key => key,
        };
        Security { asking, key }
    }
}

/// RSA key for passwords: see [`client_login::ServerKey`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ServerKey {
    None,
    Sent,
    Pinned(Arc<[u8]>),
}

impl ServerKey {
    fn of(keys: &BackendTlsKeys) -> Result<ServerKey, String> {
        let Some(file) = &keys.server_public_key else {
            return Ok(match keys.get_server_public_key {
                true => ServerKey::Sent,
                false => ServerKey::None,
            });
        };
        let at = &keys.prefix;
        if keys.get_server_public_key {
            return Err(format!(
                "{at}get_server_public_key: server_public_key names the key, so none is taken \
                 from the server; leave one of them out"
            ));
        }
        let pem = caching_sha2::key_of_file(file)
            .map_err(|why| format!("{at}server_public_key {}: {why}", file.display()))?;
        Ok(ServerKey::Pinned(pem.into()))
    }

    pub(crate) fn as_wire(&self) -> client_login::ServerKey<'_> {
        match self {
            ServerKey::None => client_login::ServerKey::None,
            ServerKey::Sent => client_login::ServerKey::Sent,
            ServerKey::Pinned(pem) => client_login::ServerKey::Pinned(pem),
        }
    }
}

/// Warning about a server on another host that does not prove who it is.
fn unprotected(keys: &BackendTlsKeys, server: &Place) -> Option<String> {
    let (mode, at) = (keys.mode, &keys.prefix);
    let host = server.host().filter(|host| host != "localhost")?;
    let is_here = |ip: IpAddr| ip.to_canonical().is_loopback();
    if host.parse().is_ok_and(is_here) || mode.is_some_and(BackendTlsMode::verifies) {
        return None;
    }
    let how = match mode {
        Some(BackendTlsMode::Off) => {
            "without TLS, so passwords' proofs, statements and data cross \
                                      the network in clear"
        }
        Some(BackendTlsMode::Required) => "with TLS, and nobody checks the server's certificate",
        _ => "with TLS only if the server offers it, and nobody checks its certificate",
    };
    Some(format!(
        "{at}tls: the pool speaks to {server} {how}: whoever answers in the server's place is \
         taken for it; set tls = \"verify_identity\" and tls_ca"
    ))
}

/// Way of asking for TLS on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asking {
    /// Not at all.
    Off,
    /// TLS if the server offers it.
    Preferred,
    /// TLS, without which there is no login.
    Required,
}

/// Reason of a failed handshake with the server; `None` where the connection broke instead.
pub(crate) fn words_of(error: &io::Error, tls: Option<&BackendTls>) -> Option<String> {
    let error = error.get_ref()?.downcast_ref::<Error>()?;
    let hints = tls.map_or(&HINTS, |tls| tls.hints);
    Some(format!("TLS with the server: {}", words(error, hints)))
}

/// Name that the certificate has to have. Without a check it says nothing, but tickets are kept by
/// it.
fn server_name(keys: &BackendTlsKeys, server: &Place) -> Result<ServerName<'static>, String> {
    let at = &keys.prefix;
    let host = match (&keys.name, server.host()) {
        (Some(name), _) => name.clone(),
        (None, Some(host)) => host,
        (None, None) if keys.mode == Some(BackendTlsMode::VerifyIdentity) => {
            return Err(format!(
                "{at}tls: \"verify_identity\" needs the name that the server's certificate has; a \
                 Unix socket has none, and servers that are found have one together: set \
                 tls_name, or use \"verify_ca\""
            ));
        }
        (None, None) => "localhost".into(),
    };
    ServerName::try_from(host.clone()).map_err(|_| {
        format!("{at}tls_name: '{host}' is no name or address that a certificate can have")
    })
}

fn client_config(keys: &BackendTlsKeys) -> Result<ClientConfig, String> {
    let at = &keys.prefix;
    let checked = match keys.mode {
        None | Some(BackendTlsMode::Off | BackendTlsMode::Preferred | BackendTlsMode::Required) => {
            Checked::Nothing
        }
        Some(BackendTlsMode::VerifyCa) => Checked::Authority(roots(keys)?),
        Some(BackendTlsMode::VerifyIdentity) => Checked::Identity(roots(keys)?),
    };
    let (own, shown) = match (&keys.cert, &keys.key) {
        (None, None) => (None, String::new()),
        (Some(cert), Some(key)) => {
            let own = (
                certificates(&format!("{at}tls_cert"), cert)?,
                private_key(&format!("{at}tls_key"), key)?,
            );
            let (cert, key) = (cert.display(), key.display());
            let shown = format!("{at}tls_cert {cert} with tls_key {key}");
            (Some(own), shown)
        }
        _ => {
            return Err(format!(
                "{at}tls_cert: expected tls_cert and tls_key together: a certificate is of no use \
                 without its key"
            ));
        }
    };
    tls_client::client_config(checked, own, RESUMED_SERVERS_MAX).map_err(|unfit| match unfit {
        Unfit::Library(error) => format!("{at}tls: {error}"),
        Unfit::Own(error) => format!("{shown}: {error}"),
    })
}

/// The authorities that are trusted.
fn roots(keys: &BackendTlsKeys) -> Result<RootCertStore, String> {
    let at = &keys.prefix;
    match &keys.ca {
        Some(file) => authorities(&format!("{at}tls_ca"), file),
        None => Err(format!(
            "{at}tls_ca: expected the file with the certificate of the authority that has signed \
             the server's, as tls is to check it"
        )),
    }
}

#[cfg(test)]
mod tests;
