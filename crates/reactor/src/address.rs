//! Addresses: TCP or Unix socket, as users write them.
//!
//! One text form for both, so that a setting needs no second key: `HOST:PORT`, or a path. Errors
//! say what was expected.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

/// Where to listen or connect.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// An IP address and a port.
    Tcp(SocketAddr),
    /// A socket in the file system.
    Unix(PathBuf),
}

impl Address {
    /// Reads `HOST:PORT` (a name is looked up, which may block) or a path that begins with `/` or
    /// `unix:`.
    ///
    /// # Errors
    /// A sentence that says what was expected and what came.
    pub fn parse(text: &str) -> Result<Address, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            return Ok(Address::Unix(PathBuf::from(path)));
        }
        if text.starts_with('/') {
            return Ok(Address::Unix(PathBuf::from(text)));
        }
        if let Ok(address) = text.parse() {
            return Ok(Address::Tcp(address));
        }
        let expected = "expected HOST:PORT or the path of a Unix socket";
        if !text.contains(':') {
            return Err(format!("'{text}': {expected}"));
        }
        match text.to_socket_addrs() {
            Ok(mut found) => found
                .next()
                .map(Address::Tcp)
                .ok_or_else(|| format!("'{text}': the name has no address")),
            Err(error) => Err(format!("'{text}': {expected} ({error})")),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => address.fmt(f),
            Address::Unix(path) => path.display().fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_written() {
        let tcp = Address::parse("127.0.0.1:6033").unwrap();
        assert_eq!(tcp.to_string(), "127.0.0.1:6033");
        assert_eq!(Address::parse("[::1]:1").unwrap().to_string(), "[::1]:1");
        assert_eq!(
            Address::parse("/run/a.sock"),
            Ok(Address::Unix("/run/a.sock".into()))
        );
        assert_eq!(
            Address::parse("unix:a.sock"),
            Ok(Address::Unix("a.sock".into()))
        );
        assert!(
            Address::parse("6033")
                .unwrap_err()
                .contains("expected HOST:PORT")
        );
        assert!(Address::parse("127.0.0.1:99999").is_err());
    }
}
