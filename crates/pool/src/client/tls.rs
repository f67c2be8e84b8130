//! TLS of clients: how a connection that is plain becomes one under TLS.
//!
//! The problem: a client asks for TLS in the middle of its login (SSLRequest), on the same socket.
//! The mechanism: the greeting offers it where a certificate is named; the request is answered by a
//! handshake, and the login follows under it. rustls does the handshake; what TLS is then lies
//! between the client's socket and its packets ([`crate::client::buffers::transport`]).
//!
//! Invariants:
//! - whatever was received behind the request is ciphertext: it is never read as a packet, so
//!   nothing that somebody injected into the clear text becomes part of a login (CVE-2021-23214);
//! - where TLS is required, a login in clear is refused before its password is asked for;
//! - a group goes on with at most [`HANDSHAKES_PER_TURN`] handshakes in one turn: each may take as
//!   long as hundreds of statements.
//!
//! [`HANDSHAKES_PER_TURN`]: crate::client::buffers::transport::HANDSHAKES_PER_TURN

use crate::group::parts::Parts;
use crate::group::tokens::ClientId;
use reactor::{Net, Tls};

/// Begins the handshake. `received` has come behind the request, and is its first part.
pub(crate) fn begin_tls<N: Net>(parts: &mut Parts<N>, key: ClientId, received: &[u8]) {
    let Some(settings) = &parts.settings.tls else {
        return;
    };
    let shown = settings.config.get();
    let (Some(client), Ok(tls)) = (parts.clients.get_mut(key), Tls::server(&shown.config)) else {
        return parts.clients.close_later(key);
    };
    if let Some(login) = &mut client.login {
        login.is_tls = true;
        login.fingerprint = Some(shown.fingerprint);
    }
    parts.work.handshakes_left = parts.work.handshakes_left.saturating_sub(1);
    let begun = client.transport.begin_tls(&mut parts.net, tls, received);
    (client.transport).count_tls(&parts.client_side.retained.tls_bytes);
    let now = parts.net.now();
    let gap = parts.shared.scheduling.login_gap(&parts.settings, now);
    parts.client_side.arrivals.handshake_began(now, gap);
    if let Err(error) = begun {
        parts.failed_logins().tls_failed(key, &error);
    }
}
