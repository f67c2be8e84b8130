//! TLS of clients: how a connection that is plain becomes one under TLS.
//!
//! The problem: a client asks for TLS in the middle of its login (SSLRequest), on the same socket.
//! The mechanism: the greeting offers it where a certificate is named; the request is answered by a
//! handshake, and the login follows under it. rustls does the handshake; what TLS is then lies
//! between the client's socket and its packets ([`crate::buffers::transport`]).
//!
//! Invariants:
//! - whatever was received behind the request is ciphertext: it is never read as a packet, so
//!   nothing that somebody injected into the clear text becomes part of a login (CVE-2021-23214);
//! - where TLS is required, a login in clear is refused before its password is asked for;
//! - a group goes on with at most [`HANDSHAKES_PER_TURN`] handshakes in one turn: each may take as
//!   long as hundreds of statements.
//!
//! [`HANDSHAKES_PER_TURN`]: crate::buffers::transport::HANDSHAKES_PER_TURN

use crate::client::Client;
use crate::client::ClientState;
use crate::errors::reasons::Refusal;
use crate::group::Group;
use reactor::{Key, Net, Tls};
use rustls::Error;
use std::io::{self, ErrorKind};
use wire::stranger::Stranger;

impl<S> Client<S> {
    /// Whether the packet in the place of its login asks for TLS, where that may be had.
    pub(crate) fn asks_for_tls(&self, payload: &[u8]) -> bool {
        Stranger::of_login(payload) == Some(Stranger::SslRequest)
            && self.state() == ClientState::Greeted
            && !self.transport.is_tls()
    }
}

impl<N: Net> Group<N> {
    /// Begins the handshake. `received` has come behind the request, and is its first part.
    pub(crate) fn begin_tls(&mut self, key: Key, received: &[u8]) {
        let Some(settings) = &self.settings.tls else {
            return;
        };
        let shown = settings.config.get();
        let (Some(client), Ok(tls)) = (self.clients.get_mut(key), Tls::server(&shown.config))
        else {
            return self.clients.close_later(key);
        };
        if let Some(login) = &mut client.login {
            login.is_tls = true;
            login.fingerprint = Some(shown.fingerprint);
        }
        self.handshakes_left = self.handshakes_left.saturating_sub(1);
        let begun = client.transport.begin_tls(&mut self.net, tls, received);
        self.kept.tls_bytes += client.transport.tls_bytes();
        let now = self.net.now();
        let gap = self.shared.login_gap(&self.settings, now);
        self.arrivals.handshake_began(now, gap);
        if let Err(error) = begun {
            self.tls_failed(key, &error);
        }
    }

    /// The connection cannot go on for what came under TLS. The alert has told the client.
    pub(crate) fn tls_failed(&mut self, key: Key, error: &io::Error) {
        let is_known = self.clients.get(key).is_none_or(|client| client.is_known());
        if error.kind() == ErrorKind::InvalidData && !is_known {
            let refusal = Refusal::Tls(words_of(error));
            self.failed_logins().count_refused(key, &refusal);
        }
        self.clients.close_later(key);
    }
}

/// Why a handshake has failed, and whose fault it is.
fn words_of(error: &io::Error) -> String {
    let inner = error.get_ref();
    match inner.and_then(|inner| inner.downcast_ref::<Error>()) {
        Some(Error::AlertReceived(alert)) => format!(
            "the client refused it with the alert {alert:?}; look at what the client verifies \
             (CA, host name), and whether tls.cert has the whole chain"
        ),
        Some(Error::InvalidCertificate(why)) => format!(
            "the client's certificate is not accepted ({why}); look at its authority in \
             tls.client_ca, its validity, and whether it may be used by clients"
        ),
        Some(Error::NoCertificatesPresented) => "the client has shown no certificate, which \
             tls.client_cert requires; give it one (--ssl-cert, --ssl-key)"
            .into(),
        Some(Error::PeerIncompatible(what)) => format!(
            "the client and the pool have no way in common ({what:?}); the pool speaks TLS 1.2 \
             with ECDHE and AEAD, and TLS 1.3"
        ),
        Some(Error::InvalidMessage(what)) => {
            format!("what the client sent is no TLS ({what:?})")
        }
        Some(error) => error.to_string(),
        None => error.to_string(),
    }
}
