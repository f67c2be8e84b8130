//! Names under which a server may be asked.
//!
//! The problem is DNS rebinding: once a foreign page is loaded, its site's name is made to resolve
//! to this server. To the browser both are one origin, and the page's script reads the answers.
//! Such a request has the foreign name in its `Host`. The mechanism: an address there, `localhost`
//! and the names that the operator has listed are answered, any other name is refused.
//!
//! A request without `Host` is answered: browsers always send one.

use httparse::Header;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Bytes of a refused name that are repeated.
const REPEATED_MAX: usize = 256;

/// The listed names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    listed: Vec<String>,
    /// Name of the setting that lists them, for messages.
    setting: &'static str,
}

impl Names {
    /// Names without a port, listed by this setting or option.
    ///
    /// # Errors
    /// A sentence with what is not the name of a host.
    pub fn new(listed: Vec<String>, setting: &'static str) -> Result<Names, String> {
        let is_name = |name: &&String| {
            let mut letters = name.bytes();
            !name.is_empty()
                && letters.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'))
        };
        match listed.iter().find(|name| !is_name(name)) {
            None => Ok(Names { listed, setting }),
            Some(wrong) => Err(format!(
                "expected names of hosts without a port, such as pool.internal, got '{}'",
                wrong.escape_debug()
            )),
        }
    }

    /// Refuses a request whose headers name another host.
    ///
    /// # Errors
    /// A sentence that says which name came, what was expected and how to list it.
    pub(crate) fn check(&self, headers: &[Header<'_>]) -> Result<(), String> {
        let mut hosts = headers
            .iter()
            .filter(|header| header.name.eq_ignore_ascii_case("host"));
        match hosts.find(|header| !self.admit(header.value)) {
            None => Ok(()),
            Some(header) => Err(format!(
                "the Host '{}' is neither an address nor a name that is listed; ask by the \
                 address, or list the name in {}",
                header.value[..header.value.len().min(REPEATED_MAX)].escape_ascii(),
                self.setting
            )),
        }
    }

    fn admit(&self, host: &[u8]) -> bool {
        let Some(name) = std::str::from_utf8(host).ok().and_then(without_port) else {
            return false;
        };
        let v6 = name.strip_prefix('[').and_then(|v6| v6.strip_suffix(']'));
        let is_address = match v6 {
            // A link-local address may name its interface behind a `%`.
            Some(v6) => (v6.split('%').next()).is_some_and(|v6| v6.parse::<Ipv6Addr>().is_ok()),
            None => name.parse::<Ipv4Addr>().is_ok(),
        };
        is_address
            || name.eq_ignore_ascii_case("localhost")
            || (self.listed.iter()).any(|listed| listed.eq_ignore_ascii_case(name))
    }
}

/// The host of `HOST` or `HOST:PORT`; `None` where the port is no number.
fn without_port(host: &str) -> Option<&str> {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => port.parse::<u16>().ok().map(|_| name),
        _ => Some(host),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(hosts: &[&str]) -> Result<(), String> {
        let headers: Vec<Header<'_>> = (hosts.iter())
            .map(|host| Header {
                name: "HOST",
                value: host.as_bytes(),
            })
            .collect();
        let names = Names::new(vec!["Pool.Internal".to_owned()], "http_names");
        names.unwrap().check(&headers)
    }

    #[test]
    fn only_names_of_hosts_can_be_listed() {
        let new = |name: &str| Names::new(vec!["a".to_owned(), name.to_owned()], "http_names");
        assert!(new("pool-1.my_shop.internal").is_ok());
        for wrong in ["", "*", "pool:9104", "http://pool", "p\u{f6}ol", "a b"] {
            assert_eq!(
                new(wrong).unwrap_err(),
                format!(
                    "expected names of hosts without a port, such as pool.internal, got '{wrong}'"
                )
            );
        }
    }

    #[test]
    fn addresses_localhost_and_listed_names_are_admitted() {
        for host in [
            "127.0.0.1",
            "10.0.0.5:9104",
            "[::1]",
            "[fe80::1]:9104",
            "[fe80::1%2]:9104",
            "localhost",
            "LocalHost:80",
            "pool.internal",
            "POOL.internal:9104",
        ] {
            assert_eq!(check(&[host]), Ok(()), "{host}");
        }
        assert_eq!(check(&[]), Ok(()), "a client that is no browser");
    }

    #[test]
    fn any_other_name_is_refused_and_told_how_to_be_listed() {
        for host in [
            "",
            "evil.example",
            "evil.example:9104",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "xpool.internal",
            "pool.internal.evil.example",
            "user@127.0.0.1",
            "127.0.0.1:evil",
            "127.0.0.1:99999",
            "::1",
            "[::1",
            "[evil.example]",
            "[127.0.0.1]",
            "\u{e9}",
        ] {
            let said = check(&[host]).unwrap_err();
            assert!(said.ends_with("list the name in http_names"), "{said}");
        }
        assert!(check(&["127.0.0.1", "evil.example"]).is_err(), "both count");
        let long = "x".repeat(2 * REPEATED_MAX);
        let said = check(&[&long]).unwrap_err();
        assert!(said.contains(&long[..REPEATED_MAX]) && !said.contains(&long[..=REPEATED_MAX]));
    }
}
