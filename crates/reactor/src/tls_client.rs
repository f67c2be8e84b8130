//! The client's side of TLS: what is checked of a server's certificate, what it is shown, and
//! whether sessions go on from earlier ones.
//!
//! The pool towards its server and load towards its target want the same of rustls; each keeps what
//! its settings are called, and where its authorities come from.

use crate::{SkipHostnameVerification, SkipVerification};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::fmt::Display;
use std::io::{self, Read, Write};
use std::sync::Arc;

/// Tickets that rustls keeps of each server; the oldest gives way to one more.
const TICKETS_MAX: usize = 8;

/// Checks of a server's certificate. That the server has its key is checked always.
#[derive(Clone, Debug)]
pub enum Checked {
    /// One of these authorities signed it, it is valid now, and it names the server.
    Identity(RootCertStore),
    /// The authority and the dates alone, not the name.
    Authority(RootCertStore),
    /// Nothing: anybody may be the server.
    Nothing,
}

/// A certificate with those of its issuers, and its key.
pub type Own = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// Reason why a configuration cannot be made.
#[derive(Debug)]
pub enum Unfit {
    /// The library cannot work like this.
    Library(String),
    /// The certificate that the server is to be shown, or its key.
    Own(String),
}

/// Configuration that connections are made with. Tickets of so many servers are kept; 0 resumes no
/// session.
///
/// # Errors
/// What cannot be used, in the words of the library.
pub fn client_config(
    checked: Checked,
    own: Option<Own>,
    resumed_servers: usize,
) -> Result<ClientConfig, Unfit> {
    let library = |error: &dyn Display| Unfit::Library(error.to_string());
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| library(&error))?;
    let builder = match checked {
        Checked::Nothing => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(SkipVerification::new(provider))),
        Checked::Authority(roots) => {
            let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
            let verifier = verifier.build().map_err(|error| library(&error))?;
            builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(SkipHostnameVerification::new(verifier)))
        }
        Checked::Identity(roots) => builder.with_root_certificates(roots),
    };
    let mut config = match own {
        None => builder.with_no_client_auth(),
        Some((chain, key)) => builder
            .with_client_auth_cert(chain, key)
            .map_err(|error| Unfit::Own(error.to_string()))?,
    };
    config.resumption = match resumed_servers {
        0 => Resumption::disabled(),
        servers => Resumption::in_memory_sessions(servers.saturating_mul(TICKETS_MAX)),
    };
    Ok(config)
}

/// TLS over a stream that waits; the handshake has succeeded, so that the certificate is checked.
///
/// # Errors
/// The stream's, or within it that of rustls ([`rustls::Error`]).
pub fn over<S: Read + Write>(
    connection: ClientConnection,
    plain: S,
) -> io::Result<StreamOwned<ClientConnection, S>> {
    let mut secured = StreamOwned::new(connection, plain);
    while secured.conn.is_handshaking() {
        secured.conn.complete_io(&mut secured.sock)?;
    }
    Ok(secured)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::tests::{server_config, talk};
    use rustls::pki_types::ServerName;
    use rustls::{HandshakeKind, ServerConfig, ServerConnection};

    /// More than are kept.
    const GIVEN: usize = 3 * TICKETS_MAX;

    /// A connection to the server of this name, which gives so many tickets; whether it goes on
    /// from an earlier one's session.
    fn resumes(
        client: &Arc<ClientConfig>,
        server: &ServerConfig,
        (name, tickets): (&'static str, usize),
    ) -> bool {
        let mut server = server.clone();
        server.send_tls13_tickets = tickets;
        let mut server = ServerConnection::new(Arc::new(server)).unwrap();
        let name = ServerName::try_from(name).unwrap();
        let mut client = ClientConnection::new(client.clone(), name).unwrap();
        talk(&mut client, &mut server);
        client.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    #[test]
    fn so_many_tickets_of_so_many_servers_are_kept() {
        let client = Arc::new(client_config(Checked::Nothing, None, 2).unwrap());
        let server = server_config();
        let full = |name| !resumes(&client, &server, (name, GIVEN));
        assert!(full("one.example") && full("two.example"));
        for name in ["one.example", "two.example"] {
            let resumed = (0..GIVEN).take_while(|_| resumes(&client, &server, (name, 0)));
            assert_eq!(resumed.count(), TICKETS_MAX, "{name}");
        }
        assert!(full("one.example") && full("two.example") && full("three.example"));
        assert!(!resumes(&client, &server, ("one.example", 0)), "the oldest");
        assert!(resumes(&client, &server, ("three.example", 0)));
        let client = Arc::new(client_config(Checked::Nothing, None, 0).unwrap());
        for _ in 0..2 {
            assert!(!resumes(&client, &server, ("one.example", GIVEN)));
        }
    }
}
