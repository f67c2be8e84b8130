//! Requirements of an account on its clients' connections, in the words of the servers' `REQUIRE`.
//!
//! The problem: a password alone must not suffice for every account, and the servers' own rules
//! (SSL, X509, SUBJECT, ISSUER) look at connections that end at the pool. The mechanism: the same
//! rules for the client's connection with the pool, looked at once the password is proven, as the
//! servers do. A subject is compared as a text, in the form in which OpenSSL writes it on one line.
//!
//! Invariant: a certificate counts only if an authority of `tls.client_ca` has signed it, because
//! no other passes the handshake.

use std::fmt::Write as _;

/// Further proof besides the password.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requirement {
    /// True if the connection is under TLS.
    pub(crate) tls: bool,
    /// True if it has shown a certificate.
    pub(crate) certificate: bool,
    /// True if the cipher has to be one that is named: the pool cannot tell, so nobody passes.
    pub(crate) cipher: bool,
    /// The certificate names this one.
    pub(crate) subject: Option<String>,
    /// Issuer that must have signed it.
    pub(crate) issuer: Option<String>,
}

impl Requirement {
    /// Requirement that a connection lacks, for the log; `None`: nothing. `certificate` is the one
    /// that it has shown.
    pub(crate) fn unmet(&self, is_tls: bool, certificate: Option<&[u8]>) -> Option<&'static str> {
        if !self.tls {
            return None;
        }
        if !is_tls {
            return Some("tls-required");
        }
        if self.cipher {
            return Some("cipher-required");
        }
        if !self.certificate {
            return None;
        }
        let Some(certificate) = certificate else {
            return Some("certificate-required");
        };
        let Some((issuer, subject)) = names(certificate) else {
            return Some("certificate-required");
        };
        let differs = |wanted: &Option<String>, is: &str| wanted.as_ref().is_some_and(|w| w != is);
        match () {
            () if differs(&self.subject, &subject) => Some("certificate-subject"),
            () if differs(&self.issuer, &issuer) => Some("certificate-issuer"),
            () => None,
        }
    }
}

/// Issuer, validity and subject of a certificate in DER; `None` where it is none.
fn fields(certificate: &[u8]) -> Option<[&[u8]; 3]> {
    let (_, outer, _) = element(certificate)?;
    let (_, body, _) = element(outer)?;
    let (tag, _, rest) = element(body)?;
    // The version is left out where it is the first.
    let body = if tag == VERSION { rest } else { body };
    let (_, _serial, rest) = element(body)?;
    let (_, _algorithm, rest) = element(rest)?;
    let (_, issuer, rest) = element(rest)?;
    let (_, validity, rest) = element(rest)?;
    let (_, subject, _) = element(rest)?;
    Some([issuer, validity, subject])
}

/// Issuer and subject of a certificate in DER, each on one line as OpenSSL writes it
/// (`/C=SE/CN=x`); `None` where it is none.
pub(crate) fn names(certificate: &[u8]) -> Option<(String, String)> {
    let [issuer, _, subject] = fields(certificate)?;
    Some((one_line(issuer)?, one_line(subject)?))
}

/// End of a certificate's validity in seconds since 1970; `None` where it is none.
pub(crate) fn expires(certificate: &[u8]) -> Option<u64> {
    let [_, validity, _] = fields(certificate)?;
    let (_, _from, rest) = element(validity)?;
    let (tag, until, _) = element(rest)?;
    let text = std::str::from_utf8(until).ok()?;
    // Two digits of a year are those of 1950 to 2049.
    let (year, rest) = text.split_at_checked(if tag == UTC_TIME { 2 } else { 4 })?;
    let year = match (tag, year.parse::<u64>().ok()?) {
        (UTC_TIME, year @ 0..50) => 2000 + year,
        (UTC_TIME, year) => 1900 + year,
        (_, year) => year,
    };
    let part = |at: usize| rest.get(at..at + 2)?.parse::<u64>().ok();
    measure::utc::seconds([year, part(0)?, part(2)?, part(4)?, part(6)?, part(8)?])
}

/// A time with two digits for its year.
const UTC_TIME: u8 = 0x17;
/// `[0]`, explicit.
const VERSION: u8 = 0xA0;
/// A text of two bytes for each character.
const BMP: u8 = 30;
/// A text of four.
const UNIVERSAL: u8 = 28;

/// The first element of DER: its tag, its content, and what follows it.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (len, rest) = match first {
        0..=0x7F => (usize::from(first), rest),
        0x81..=0x84 => {
            let count = usize::from(first & 0x7F);
            let bytes = rest.get(..count)?;
            let len = (bytes.iter()).fold(0, |len, byte| len << 8 | usize::from(*byte));
            (len, &rest[count..])
        }
        _ => return None,
    };
    Some((tag, rest.get(..len)?, &rest[len..]))
}

fn one_line(mut name: &[u8]) -> Option<String> {
    let mut line = String::new();
    while !name.is_empty() {
        let (_, mut set, rest) = element(name)?;
        name = rest;
        while !set.is_empty() {
            let (_, pair, rest) = element(set)?;
            set = rest;
            let (_, kind, value) = element(pair)?;
            let (tag, value, _) = element(value)?;
            line.push('/');
            put_kind(&mut line, kind);
            line.push('=');
            put_value(&mut line, tag, value);
        }
    }
    Some(line)
}

fn put_kind(line: &mut String, kind: &[u8]) {
    let name = match kind {
        [0x55, 0x04, last] => match last {
            3 => "CN",
            4 => "SN",
            5 => "serialNumber",
            6 => "C",
            7 => "L",
            8 => "ST",
            9 => "street",
            10 => "O",
            11 => "OU",
            12 => "title",
            13 => "description",
            17 => "postalCode",
            41 => "name",
            42 => "GN",
            43 => "initials",
            44 => "generationQualifier",
            46 => "dnQualifier",
            65 => "pseudonym",
            _ => "",
        },
        [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x09, 0x01] => "emailAddress",
        [0x09, 0x92, 0x26, 0x89, 0x93, 0xF2, 0x2C, 0x64, 0x01, 0x19] => "DC",
        [0x09, 0x92, 0x26, 0x89, 0x93, 0xF2, 0x2C, 0x64, 0x01, 0x01] => "UID",
        _ => "",
    };
    if !name.is_empty() {
        return line.push_str(name);
    }
    let (mut number, mut is_first) = (0u64, true);
    for byte in kind {
        number = number << 7 | u64::from(byte & 0x7F);
        if byte & 0x80 != 0 {
            continue;
        }
        // Writing to a String cannot fail.
        let _ = match std::mem::take(&mut is_first) {
            true => {
                let first = (number / 40).min(2);
                write!(line, "{first}.{}", number - 40 * first)
            }
            false => write!(line, ".{number}"),
        };
        number = 0;
    }
}

/// Appends the value, with `\xHH` for what is no printable ASCII. Of wide characters OpenSSL leaves
/// out the bytes that are 0 in all of them.
fn put_value(line: &mut String, tag: u8, value: &[u8]) {
    let width = match tag {
        BMP => 2,
        UNIVERSAL => 4,
        _ => 1,
    };
    let is_used = |place: usize| (value.iter().skip(place).step_by(width)).any(|byte| *byte != 0);
    for (index, byte) in value.iter().enumerate() {
        if width > 1 && !is_used(index % width) {
            continue;
        }
        if (b' '..=b'~').contains(byte) {
            line.push(char::from(*byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(line, "\\x{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_openssl() {
        // openssl x509 -subject -nameopt compat
        let der = include_bytes!("requirement/named.der");
        let (issuer, subject) = names(der).unwrap();
        let expected = "/C=SE/ST=V\\xC3\\xA4st/O=Onramp, Inc./OU=a/OU=b/CN=x y/\
                        emailAddress=a@b.example/DC=example/UID=u";
        assert_eq!(subject, expected);
        assert_eq!(issuer, subject);
        // openssl x509 -enddate: Dec 22 22:32:19 2026 GMT
        assert_eq!(expires(der), Some(1_797_978_739));
        for len in 0..der.len() {
            // Nothing that is cut ends the program.
            let _ = (names(&der[..len]), expires(&der[..len]));
        }
        assert_eq!(names(b""), None);
        let mut kind = String::new();
        put_kind(&mut kind, &[0x2A, 0x03, 0xA3, 0x57]);
        assert_eq!(kind, "1.2.3.4567");
        let mut wide = String::new();
        put_value(&mut wide, BMP, &[0, b'a', 0, 0xE9]);
        assert_eq!(wide, "a\\xE9");
    }

    #[test]
    fn each_rule_is_looked_at_in_the_servers_order() {
        let der = include_bytes!("requirement/named.der");
        let subject = names(der).unwrap().1;
        let none = Requirement::default();
        let tls = Requirement {
            tls: true,
            ..none.clone()
        };
        let x509 = Requirement {
            certificate: true,
            ..tls.clone()
        };
        let named = |subject: &str, issuer: &str| Requirement {
            subject: Some(subject.into()),
            issuer: Some(issuer.into()),
            ..x509.clone()
        };
        let shown = Some(&der[..]);
        assert_eq!(none.unmet(false, None), None);
        assert_eq!(tls.unmet(false, None), Some("tls-required"));
        assert_eq!(tls.unmet(true, None), None);
        assert_eq!(x509.unmet(false, None), Some("tls-required"));
        assert_eq!(x509.unmet(true, None), Some("certificate-required"));
        assert_eq!(x509.unmet(true, shown), None);
        assert_eq!(x509.unmet(true, Some(b"x")), Some("certificate-required"));
        assert_eq!(named(&subject, &subject).unmet(true, shown), None);
        let other = named("/CN=x", &subject).unmet(true, shown);
        assert_eq!(other, Some("certificate-subject"));
        let other = named(&subject, "/CN=x").unmet(true, shown);
        assert_eq!(other, Some("certificate-issuer"));
    }
}
