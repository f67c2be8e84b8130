//! Messages for failed TLS with a server, in words that say whose fault it is and what to do.
//!
//! rustls tells the reasons apart; here each that a user can do something about gets that said
//! with it, by the name of the option or setting ([`Hints`]), which differ from program to program.

use rustls::{AlertDescription, CertificateError, Error};
use std::fmt::Debug;
use std::time::Duration;

/// Settings that the user may change, for messages.
#[derive(Clone, Copy, Debug)]
pub struct Hints {
    /// Names the authorities that are trusted.
    pub ca: &'static str,
    /// Names whom the server's certificate has to be valid for.
    pub name: &'static str,
    /// Hint how to have nothing checked.
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
        Error::InvalidMessage(what) => format!(
            "the server's answer is no TLS ({}); look whether it expects TLS on this port",
            plain(what)
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
            "the server does not accept this client's certificate ({}); look at {}",
            alert_words(*alert),
            hints.own
        ),
        Error::AlertReceived(alert) => {
            format!("the server refused the connection: {}", alert_words(*alert))
        }
        Error::PeerIncompatible(what) => format!(
            "the server and this client have no way in common: {}",
            plain(what)
        ),
        error => error.to_string(),
    }
}

/// Words and number of an alert: "handshake failure (40)".
#[must_use]
pub fn alert_words(alert: AlertDescription) -> String {
    format!("{} ({})", plain(&alert), u8::from(alert))
}

/// Words of a variant's name in rustls: `NoCipherSuitesInCommon` is "no cipher suites in common".
#[must_use]
pub fn plain(variant: &impl Debug) -> String {
    let name = format!("{variant:?}");
    let end = name.find(|c: char| !c.is_ascii_alphanumeric());
    let letters: Vec<char> = name[..end.unwrap_or(name.len())].chars().collect();
    let mut words = String::with_capacity(2 * letters.len());
    for (place, letter) in letters.iter().enumerate() {
        let is_capital = |at: usize| letters.get(at).is_some_and(char::is_ascii_uppercase);
        let starts_word = is_capital(place) && place > 0 && !is_capital(place - 1);
        if starts_word {
            words.push(' ');
        }
        match is_capital(place) && !is_capital(place + 1) && place + 1 < letters.len() {
            true => words.push(letter.to_ascii_lowercase()),
            false => words.push(*letter),
        }
    }
    words
        .replace("tls12", "TLS 1.2")
        .replace("tls13", "TLS 1.3")
}

/// Name of a certificate, of which rustls gives the Debug text: `DnsName("db")` is "db".
fn presented_name(shown: &str) -> &str {
    let inner = shown
        .split_once('(')
        .and_then(|(_, rest)| rest.strip_suffix(')'));
    inner.unwrap_or(shown).trim_matches('"')
}

/// Length of time in its largest unit that is not below two: "3 days".
fn length(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} minutes", seconds / 60),
        7_200..172_800 => format!("{} hours", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
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
                names => {
                    let names: Vec<_> = names.iter().map(|name| presented_name(name)).collect();
                    names.join(", ")
                }
            };
            format!(
                "{of} is not valid for '{}' but for {presented}; {name} expects another name",
                expected.to_str()
            )
        }
        CertificateError::Expired => {
            format!("{of} has expired; renew it, or look at this machine's clock")
        }
        CertificateError::ExpiredContext { time, not_after } => format!(
            "{of} has expired {} ago; renew it, or look at this machine's clock",
            length(Duration::from_secs(
                time.as_secs().saturating_sub(not_after.as_secs())
            ))
        ),
        CertificateError::NotValidYet => {
            format!("{of} is not valid yet; look at the clocks of both machines")
        }
        CertificateError::NotValidYetContext { time, not_before } => format!(
            "{of} is not valid yet, but in {}; look at the clocks of both machines",
            length(Duration::from_secs(
                not_before.as_secs().saturating_sub(time.as_secs())
            ))
        ),
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
    use rustls::PeerIncompatible;
    use rustls::pki_types::{ServerName, UnixTime};

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
        assert!(name.contains("but for other.example;"), "{name}");
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
            "the server refused the connection: handshake failure (40)"
        );
        assert!(distrusts.contains("(unknown CA (48))"), "{distrusts}");
        let expired = of(CertificateError::ExpiredContext {
            time: UnixTime::since_unix_epoch(Duration::from_secs(300_000)),
            not_after: UnixTime::since_unix_epoch(Duration::from_secs(30_000)),
        });
        assert!(expired.contains("has expired 3 days ago;"), "{expired}");
    }
    #[test]
    fn names_of_rustls_are_shown_as_words() {
        let without = Error::PeerIncompatible(PeerIncompatible::NoCipherSuitesInCommon);
        let said = words(&without, &HINTS);
        assert!(said.ends_with(": no cipher suites in common"), "{said}");
        assert_eq!(
            plain(&PeerIncompatible::Tls12NotOffered),
            "TLS 1.2 not offered"
        );
        assert_eq!(presented_name("IpAddress(127.0.0.1)"), "127.0.0.1");
        assert_eq!(presented_name("DirectoryName"), "DirectoryName");
        for (seconds, shown) in [(119, "119 s"), (120, "2 minutes"), (7_200, "2 hours")] {
            assert_eq!(length(Duration::from_secs(seconds)), shown);
        }
    }
}
