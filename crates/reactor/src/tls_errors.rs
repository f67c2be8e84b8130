//! Why TLS with a server cannot be had, in words that say whose fault it is and what to do.
//!
//! rustls tells the reasons apart; here each that a user can do something about gets that said
//! with it, by the name of the option or setting ([`Hints`]), which differ from program to program.

use rustls::{AlertDescription, CertificateError, Error};

/// Settings that the user may change, for messages.
#[derive(Clone, Copy, Debug)]
pub struct Hints {
    /// Names the authorities that are trusted.
    pub ca: &'static str,
    /// Names whom the server's certificate has to be valid for.
    pub name: &'static str,
    /// Has nothing checked.
    pub unchecked: &'static str,
    /// Names the client's own certificate and key.
    pub own: &'static str,
    /// Names the protocols that are offered under TLS; empty without any.
    pub protocols: &'static str,
}

/// Message for an error of rustls as a client.
#[must_use]
pub fn words(error: &Error, hints: &Hints) -> String {
    match error {
        Error::InvalidCertificate(reason) => certificate(reason, hints),
        Error::InvalidMessage(_) => format!(
            "the server's answer is no TLS ({error}); look whether it expects TLS on this port"
        ),
        Error::AlertReceived(AlertDescription::NoApplicationProtocol) => format!(
            "the server speaks none of the protocols that were offered; look at {}",
            hints.protocols
        ),
        Error::AlertReceived(AlertDescription::CertificateRequired) => format!(
            "the server wants a certificate of this client; name one with {}",
            hints.own
        ),
        Error::AlertReceived(
            alert @ (AlertDescription::BadCertificate
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA),
        ) => format!(
            "the server does not accept this client's certificate ({alert:?}); look at {}",
            hints.own
        ),
        Error::AlertReceived(alert) => format!("the server refused the connection: {alert:?}"),
        Error::PeerIncompatible(_) => {
            format!("the server and this client have no way in common: {error}")
        }
        error => error.to_string(),
    }
}

fn certificate(error: &CertificateError, hints: &Hints) -> String {
    let of = "the server's certificate";
    let Hints {
        ca,
        name,
        unchecked,
        ..
    } = hints;
    match error {
        CertificateError::NotValidForName => {
            format!("{of} is not valid for the name that was asked for; see {name}")
        }
        CertificateError::NotValidForNameContext {
            expected,
            presented,
        } => {
            let presented = match presented.as_slice() {
                [] => "no name at all".to_owned(),
                names => names.join(", "),
            };
            format!(
                "{of} is not valid for '{}' but for {presented}; {name} expects another name",
                expected.to_str()
            )
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            format!("{of} has expired ({error}); renew it, or look at this machine's clock")
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            format!("{of} is not valid yet ({error}); look at the clocks of both machines")
        }
        CertificateError::UnknownIssuer => format!(
            "{of} was not signed by an authority that is trusted here; name the authority's \
             certificate with {ca}, or check nothing with {unchecked}"
        ),
        CertificateError::BadSignature => format!(
            "{of} has a signature that its authority did not make; look whether {ca} names the \
             right one"
        ),
        // rustls has no variants of its own for these.
        error if error.to_string().contains("CaUsedAsEndEntity") => format!(
            "{of} is that of an authority (CA:TRUE), which a server must not use; give the server \
             a certificate that the authority has signed"
        ),
        error if error.to_string().contains("UnsupportedCertVersion") => format!(
            "{of} is of X.509 version 1, which is not supported; make one of version 3, with \
             subjectAltName"
        ),
        error => format!("{of} is not accepted: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::pki_types::ServerName;

    const HINTS: Hints = Hints {
        ca: "--ca",
        name: "--tls-name",
        unchecked: "--insecure",
        own: "--tls-cert and --tls-key",
        protocols: "--http-version",
    };

    #[test]
    fn each_reason_has_its_words() {
        let of = |error| words(&Error::InvalidCertificate(error), &HINTS);
        let name = of(CertificateError::NotValidForNameContext {
            expected: ServerName::try_from("db.example").unwrap(),
            presented: vec!["DnsName(\"other.example\")".to_owned()],
        });
        assert!(name.contains("'db.example'"), "{name}");
        assert!(name.contains("other.example"), "{name}");
        assert!(name.contains("--tls-name"), "{name}");
        assert!(of(CertificateError::Expired).contains("has expired"));
        assert!(of(CertificateError::NotValidYet).contains("not valid yet"));
        assert!(of(CertificateError::UnknownIssuer).contains("with --ca"));
        let alert = |alert| words(&Error::AlertReceived(alert), &HINTS);
        let wants = alert(AlertDescription::CertificateRequired);
        assert!(wants.contains("wants a certificate"), "{wants}");
        let distrusts = alert(AlertDescription::UnknownCA);
        assert!(distrusts.contains("does not accept"), "{distrusts}");
        assert_eq!(
            alert(AlertDescription::HandshakeFailure),
            "the server refused the connection: HandshakeFailure"
        );
    }
}
