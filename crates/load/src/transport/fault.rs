//! What went wrong with TLS, in words that say whose fault it is and what to do.
//!
//! rustls tells the reasons apart; here each that a user can do something about gets that said
//! with it, by the option's name. The number is the one that MySQL's client library has for them.

use crate::errors::Fault;
use rustls::{AlertDescription, CertificateError, Error};

/// The client library's number for a connection that TLS could not be agreed on.
const SSL_CONNECTION_ERROR: u32 = 2026;

fn fault(message: String) -> Fault {
    Fault {
        code: SSL_CONNECTION_ERROR,
        sqlstate: "HY000".to_owned(),
        message: format!("TLS: {message}"),
    }
}

/// The peer was gone before the handshake was over.
pub(super) fn ended_in_handshake() -> Fault {
    fault(
        "the server closed the connection during the handshake; look whether it expects TLS on \
         this port"
            .to_owned(),
    )
}

/// What rustls could not do.
pub(super) fn tls(error: &Error) -> Fault {
    fault(match error {
        Error::InvalidCertificate(reason) => certificate(reason),
        Error::InvalidMessage(_) => format!(
            "the server's answer is no TLS ({error}); look whether it expects TLS on this port"
        ),
        Error::AlertReceived(AlertDescription::NoApplicationProtocol) => {
            "the server speaks none of the protocols that were offered; look at --http-version"
                .to_owned()
        }
        Error::AlertReceived(AlertDescription::CertificateRequired) => {
            "the server wants a certificate of this client; name one with --tls-cert and --tls-key"
                .to_owned()
        }
        Error::AlertReceived(
            alert @ (AlertDescription::BadCertificate
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA),
        ) => {
            format!("the server does not accept this client's certificate ({alert:?}); --tls-cert")
        }
        Error::AlertReceived(alert) => format!("the server refused the connection: {alert:?}"),
        Error::PeerIncompatible(_) => {
            format!("the server and this client have no way in common: {error}")
        }
        error => error.to_string(),
    })
}

fn certificate(error: &CertificateError) -> String {
    let of = "the server's certificate";
    match error {
        CertificateError::NotValidForName => {
            format!("{of} is not valid for the name that was asked for; see --tls-name")
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
                "{of} is not valid for '{}' but for {presented}; --tls-name expects another name",
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
             certificate with --ca, or check nothing with --insecure"
        ),
        CertificateError::BadSignature => format!(
            "{of} has a signature that its authority did not make; look whether --ca names the \
             right one"
        ),
        error => format!("{of} is not accepted: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::pki_types::ServerName;

    #[test]
    fn each_reason_has_its_words() {
        let of = |error| tls(&Error::InvalidCertificate(error)).message;
        let name = of(CertificateError::NotValidForNameContext {
            expected: ServerName::try_from("db.example").unwrap(),
            presented: vec!["DnsName(\"other.example\")".to_owned()],
        });
        assert!(name.contains("'db.example'"), "{name}");
        assert!(name.contains("other.example"), "{name}");
        assert!(of(CertificateError::Expired).contains("has expired"));
        assert!(of(CertificateError::NotValidYet).contains("not valid yet"));
        assert!(of(CertificateError::UnknownIssuer).contains("--ca"));
        let alert = |alert| tls(&Error::AlertReceived(alert));
        let wants = alert(AlertDescription::CertificateRequired).message;
        assert!(wants.contains("wants a certificate"), "{wants}");
        let distrusts = alert(AlertDescription::UnknownCA).message;
        assert!(distrusts.contains("does not accept"), "{distrusts}");
        let alert = alert(AlertDescription::HandshakeFailure);
        assert_eq!(
            (alert.code, alert.message.as_str()),
            (
                2026,
                "TLS: the server refused the connection: HandshakeFailure"
            )
        );
    }
}
