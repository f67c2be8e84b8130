//! Targets: `tcp://HOST:PORT` and `http://HOST[:PORT][/PATH]`, with TLS `tls://` and `https://`.
//!
//! What is read comes back as it was meant when it is shown; names are looked up once, when the run
//! begins.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};

/// A scheme, a host with its port, and a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    scheme: &'static str,
    pub(super) host: String,
    port: u16,
    /// Path with its `/`; empty for `tcp`.
    pub(super) path: String,
}

impl Place {
    /// Reads `tcp://HOST:PORT` or `tls://HOST:PORT`.
    pub(super) fn tcp(text: &str) -> Result<Place, String> {
        let expected = || format!("'{text}': expected tcp://HOST:PORT or tls://HOST:PORT");
        let (scheme, rest) = split_scheme(text, ["tcp", "tls"]).ok_or_else(expected)?;
        let (host, port) = split_port(rest.trim_end_matches('/')).ok_or_else(expected)?;
        let port = port.ok_or_else(expected)?;
        Ok(Place {
            scheme,
            host,
            port,
            path: String::new(),
        })
    }

    /// Reads `http://HOST[:PORT][/PATH]` or the same with `https`.
    pub(super) fn http(text: &str) -> Result<Place, String> {
        let expected = || format!("'{text}': expected http://HOST[:PORT][/PATH] or https://...");
        let (scheme, rest) = split_scheme(text, ["http", "https"]).ok_or_else(expected)?;
        let at = rest.find('/').unwrap_or(rest.len());
        let (host, port) = split_port(&rest[..at]).ok_or_else(expected)?;
        let path = rest[at..].split('#').next().unwrap_or_default();
        if path.bytes().any(|byte| !byte.is_ascii_graphic()) {
            return Err(format!(
                "{}; write other bytes of the path as %XX",
                expected()
            ));
        }
        let path = if path.is_empty() { "/" } else { path }.to_owned();
        Ok(Place {
            scheme,
            host,
            port: port.unwrap_or(if scheme == "https" { 443 } else { 80 }),
            path,
        })
    }

    /// Connections to it are under TLS.
    pub(super) fn is_secure(&self) -> bool {
        ["tls", "https"].contains(&self.scheme)
    }

    /// Looks the host up; of several addresses an IPv4 one is preferred.
    pub(super) fn resolve(&self) -> Result<SocketAddr, String> {
        let host = self.host.trim_start_matches('[').trim_end_matches(']');
        let found = (host, self.port).to_socket_addrs();
        let found: Vec<_> = found
            .map_err(|e| format!("the host '{}' was not found: {e}", self.host))?
            .collect();
        let preferred = found.iter().find(|address| address.is_ipv4());
        preferred
            .or(found.first())
            .copied()
            .ok_or_else(|| format!("the host '{}' has no address", self.host))
    }

    /// Host and port as a Host header has them.
    pub(super) fn authority(&self) -> String {
        match (self.scheme, self.port) {
            ("http", 80) | ("https", 443) => self.host.clone(),
            (_, port) => format!("{}:{port}", self.host),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}://{}{}", self.scheme, self.authority(), self.path)
    }
}

/// One of `schemes`, and what stands behind its `://`.
fn split_scheme<'a>(text: &'a str, schemes: [&'static str; 2]) -> Option<(&'static str, &'a str)> {
    let (scheme, rest) = text.split_once("://")?;
    let known = schemes.into_iter().find(|known| *known == scheme)?;
    Some((known, rest))
}

/// A host, in brackets where it is an IPv6 address, and its port if there is one.
fn split_port(text: &str) -> Option<(String, Option<u16>)> {
    let host_ends = text.rfind(']').map_or(0, |at| at + 1);
    let (host, port) = match text[host_ends..].find(':') {
        Some(at) => (
            &text[..host_ends + at],
            Some(text[host_ends + at + 1..].parse().ok()?),
        ),
        None => (text, None),
    };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_[]:".contains(&byte);
    let is_host = !host.is_empty() && host.bytes().all(is_plain);
    is_host.then(|| (host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_written() {
        let place = Place::tcp("tcp://127.0.0.1:9000").unwrap();
        assert_eq!(place.to_string(), "tcp://127.0.0.1:9000");
        assert_eq!(place.resolve().unwrap().to_string(), "127.0.0.1:9000");
        let place = Place::http("http://127.0.0.1:8080").unwrap();
        assert_eq!(
            (place.path.as_str(), place.to_string().as_str()),
            ("/", "http://127.0.0.1:8080/")
        );
        let place = Place::http("http://example.org/a?b=1#c").unwrap();
        assert_eq!(
            (place.path.as_str(), place.authority().as_str()),
            ("/a?b=1", "example.org")
        );
        let place = Place::http("http://[::1]:81/x").unwrap();
        assert_eq!(place.resolve().unwrap().to_string(), "[::1]:81");
        let place = Place::http("https://example.org/").unwrap();
        assert_eq!((place.port, place.is_secure()), (443, true));
        assert_eq!(place.to_string(), "https://example.org/");
        assert!(Place::tcp("tls://h:1").unwrap().is_secure());
        assert!(!Place::tcp("tcp://h:1").unwrap().is_secure());
    }

    #[test]
    fn what_is_no_place_is_said_to_be_none() {
        for bad in ["tcp://h", "tcp://:1", "h:1", "tcp://h:99999", "tcp://a b:1"] {
            assert!(
                Place::tcp(bad).is_err_and(|e| e.contains("expected tcp://HOST:PORT")),
                "{bad}"
            );
        }
        for bad in [
            "ftp://h",
            "http://",
            "http:///x",
            "http://h:x/",
            "http://a@h/",
        ] {
            assert!(
                Place::http(bad).is_err_and(|e| e.contains("expected http://")),
                "{bad}"
            );
        }
        assert!(Place::http("http://h/ä").is_err_and(|e| e.contains("%XX")));
    }
}
