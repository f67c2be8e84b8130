//! PROXY headers in front of the greeting: where a client behind a proxy comes from.
//!
//! The problem: behind a proxy every client has the proxy's address, in the log, for the host
//! patterns of accounts, for the delay of failed logins. The mechanism: a connection from one of
//! `proxy_protocol_networks` has to begin with a header ([`wire::proxy_header`]); it is greeted
//! once that has come, and the address in the header is the client's from there on
//! ([`crate::client::buffers::transport::Transport::peer`]).
//!
//! Invariants:
//! - a header is taken from those networks only, from each connection once: anybody could write
//!   one, and what it says decides which accounts may log in;
//! - from there it is required, not awaited for a while: a proxy that does not send one is not
//!   taken for its clients;
//! - who is still to send it waits for `login_ms_max` at most, however few bytes come at a time.

use crate::client::{ClientState, leaving};
use crate::errors::reasons::Refusal;
use crate::group::parts::Parts;
use crate::group::tokens::ClientId;
use reactor::Net;
use wire::proxy_header::{ProxyHeader, Source};

/// Takes the header at the front of what has come; returns how many bytes it has. Nothing is
/// taken of one that has not come whole, or of what is none.
pub(crate) fn take_proxy_header<N: Net>(
    parts: &mut Parts<N>,
    key: ClientId,
    bytes: &[u8],
) -> usize {
    let (len, source) = match ProxyHeader::read(bytes) {
        ProxyHeader::Partial => return 0,
        ProxyHeader::Malformed(why) => {
            leaving::refuse_and_leave(parts, key, &Refusal::ProxyHeader(why.to_string()));
            return 0;
        }
        ProxyHeader::Whole { len, source } => (len, source),
    };
    let now = parts.net.now();
    let Some(client) = parts.clients.get_mut(key) else {
        return len;
    };
    match source {
        Source::Address(address) => {
            client.transport.set_client_address(address);
            match parts.address_counts().admit(|_| Some(address.ip())) {
                Ok(counted) => parts.address_counts().note(key, counted),
                Err(refusal) => {
                    leaving::refuse_and_leave(parts, key, &refusal);
                    return 0;
                }
            }
        }
        // The proxy speaks for itself, or does not say for whom. A Unix socket there is not
        // `localhost` here.
        Source::Unknown | Source::Unix => {}
    }
    if parts.clients.enter(key, ClientState::Greeted, now) {
        let nonce_key = parts.client_side.nonce_key;
        parts.answers().greeting(key, &nonce_key);
    }
    len
}
