//! Errors of TLS as errors of a run.
//!
//! The number is the one that MySQL's client library has for all of it; the words are those that
//! all programs here have in common ([`reactor::tls_errors`]), with the options of this one.

use crate::errors::Fault;
use reactor::tls_errors::{Hints, words};
use rustls::Error;

/// The client library's number for a connection that TLS could not be agreed on.
const SSL_CONNECTION_ERROR: u32 = 2026;

const HINTS: Hints = Hints {
    ca: "--ca",
    name: "--tls-name",
    unchecked: "--insecure",
    own: "--tls-cert and --tls-key",
    protocols: "--http-version",
};

fn fault(message: String) -> Fault {
    Fault {
        code: SSL_CONNECTION_ERROR,
        sqlstate: "HY000".to_owned(),
        message: format!("TLS: {message}"),
    }
}

/// Fault of a peer that was gone before the handshake was over.
pub(super) fn ended_in_handshake() -> Fault {
    fault(
        "the server closed the connection during the handshake; look whether it expects TLS on \
         this port"
            .to_owned(),
    )
}

/// An error of rustls.
pub(super) fn tls(error: &Error) -> Fault {
    fault(words(error, &HINTS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::AlertDescription;

    #[test]
    fn a_refusal_has_the_client_librarys_number() {
        let alert = tls(&Error::AlertReceived(AlertDescription::HandshakeFailure));
        assert_eq!(
            (alert.code, alert.message.as_str()),
            (
                2026,
                "TLS: the server refused the connection: handshake failure (40)"
            )
        );
    }
}
