//! Addresses: TCP or Unix socket, as users write them.
//!
//! One text form for both, so that a setting needs no second key: `HOST:PORT`, or a path. Errors
//! say what was expected.

use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

/// An address to listen at or to connect to.
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

    /// True where nobody outside of this host can answer or listen.
    #[must_use]
    pub fn is_here(&self) -> bool {
        match self {
            Address::Unix(_) => true,
            Address::Tcp(address) => address.ip().to_canonical().is_loopback(),
        }
    }
}

/// Message for an address that nobody can listen at, with what to look at.
#[must_use]
pub fn listen_failure(address: &impl fmt::Display, error: &io::Error) -> String {
    let hint = match error.kind() {
        io::ErrorKind::AddrInUse => {
            "; another process listens there (`ss -ltnpx` shows which): end it, or choose another \
             address"
        }
        io::ErrorKind::AddrNotAvailable => {
            "; no interface of this host has that address (`ip address` shows them)"
        }
        io::ErrorKind::NotFound => "; the folder of the socket is not there: make it",
        io::ErrorKind::PermissionDenied => {
            "; a port below 1024 takes root or CAP_NET_BIND_SERVICE, a socket the right to write \
             in its folder"
        }
        _ => "",
    };
    format!("cannot listen on {address}: {error}{hint}")
}

/// All addresses of `HOST:PORT`, at least one, each once, in the resolver's order. It may take as
/// long as the resolver does.
///
/// # Errors
/// The resolver's words.
pub fn look_up(text: &str) -> Result<Vec<Address>, String> {
    let found = text.to_socket_addrs().map_err(|error| error.to_string())?;
    let mut all: Vec<Address> = Vec::new();
    for address in found.map(Address::Tcp) {
        if !all.contains(&address) {
            all.push(address);
        }
    }
    (!all.is_empty())
        .then_some(all)
        .ok_or_else(|| "the name has no address".into())
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
        let found = look_up("localhost:3306").unwrap();
        assert!(!found.is_empty(), "{found:?}");
        assert!(look_up("no.such.host.invalid:3306").is_err());
    }

    #[test]
    fn a_listener_that_cannot_be_had_says_what_to_look_at() {
        let held = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let there = held.local_addr().unwrap();
        let taken = std::net::TcpListener::bind(there).unwrap_err();
        let folder = std::os::unix::net::UnixListener::bind("/nowhere/a.sock").unwrap_err();
        let foreign = std::net::TcpListener::bind("192.0.2.1:0").unwrap_err();
        for (error, expected) in [
            (taken, "another process listens there"),
            (folder, "folder of the socket is not there"),
            (foreign, "no interface of this host"),
        ] {
            let said = listen_failure(&there, &error);
            assert!(
                said.starts_with(&format!("cannot listen on {there}: ")),
                "{said}"
            );
            assert!(said.contains(expected), "{said}");
        }
    }
}
