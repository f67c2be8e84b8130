//! Listeners for clients, as the main thread holds them.
//!
//! Groups listen at a port by themselves; all of them share the listener of a Unix socket, and one
//! that a service manager has opened ([`reactor::activation`]). What the process before hands over
//! in an upgrade is not opened here. Invariant: a process listens where its settings say, and
//! nowhere else, so a given socket has to be named there: the next process knows nothing else.

use crate::config::Settings;
use crate::upgrade::process::successor::Before;
use reactor::address::listen_failure;
use reactor::{Address, activation, socket};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Socket at which clients come in.
pub(crate) enum Listener {
    /// Groups listen by themselves; the socket holds the port until they do.
    Tcp(
        SocketAddr,
        #[expect(dead_code, reason = "held, not used")] Option<OwnedFd>,
    ),
    /// Listener given to this process; each group has a descriptor of it.
    Given(SocketAddr, Arc<OwnedFd>),
    /// All groups share the listener.
    Unix(std::path::PathBuf, Arc<OwnedFd>),
}

impl std::fmt::Display for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Listener::Tcp(address, _) | Listener::Given(address, _) => address.fmt(f),
            Listener::Unix(path, _) => path.display().fmt(f),
        }
    }
}

impl Listener {
    fn of_given((address, listener): (Address, OwnedFd)) -> Listener {
        let listener = Arc::new(listener);
        match address {
            Address::Tcp(address) => Listener::Given(address, listener),
            Address::Unix(path) => Listener::Unix(path, listener),
        }
    }

    /// The port, where it is one.
    pub(crate) fn tcp(&self) -> Option<SocketAddr> {
        match self {
            Listener::Tcp(address, _) | Listener::Given(address, _) => Some(*address),
            Listener::Unix(..) => None,
        }
    }

    /// The path and its listener, where it is a Unix socket.
    pub(crate) fn unix(&self) -> Option<(std::path::PathBuf, Arc<OwnedFd>)> {
        match self {
            Listener::Tcp(..) | Listener::Given(..) => None,
            Listener::Unix(path, listener) => Some((path.clone(), listener.clone())),
        }
    }

    /// Removes the file of a Unix socket that this process has made, or the one before it.
    pub(crate) fn remove_file(&self) {
        if let Listener::Unix(path, _) = self
            && !activation::are_listeners_given()
        {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Opens them, but for those that the process before hands over.
///
/// # Errors
/// Which address cannot be had, and why.
pub(crate) fn open_listeners(
    settings: &Settings,
    before: Option<&Before>,
) -> Result<Vec<Listener>, String> {
    let tcp = |address: &SocketAddr| {
        let is_it = |there: &&SocketAddr| {
            let port = address.port() == 0 || address.port() == there.port();
            port && address.ip() == there.ip()
        };
        before?.tcp.iter().find(is_it).copied()
    };
    let unix = |path: &std::path::Path| {
        let all = &before?.unix;
        (all.iter().find(|(there, _)| there == path)).map(|(_, listener)| listener.clone())
    };
    let open = |address: &Address| match address {
        Address::Tcp(address) => match tcp(address) {
            Some(bound) => Ok(Listener::Tcp(bound, None)),
            None => socket::reserve(address).map(|(held, bound)| Listener::Tcp(bound, Some(held))),
        },
        Address::Unix(path) => match unix(path) {
            Some(listener) => Ok(Listener::Unix(path.clone(), listener)),
            None => socket::listen_unix(path, settings.socket_access(), settings.backlog)
                .map(|listener| Listener::Unix(path.clone(), Arc::new(listener))),
        },
    };
    let mut given = match before {
        Some(_) => Vec::new(),
        None => activation::given_listeners()?,
    };
    let mut listeners = Vec::new();
    for address in &settings.listen {
        let place = given.iter().position(|(there, _)| there == address);
        listeners.push(match place {
            Some(place) => Listener::of_given(given.swap_remove(place)),
            None => open(address).map_err(|error| listen_failure(address, &error))?,
        });
    }
    match given.first() {
        Some((address, _)) => Err(format!(
            "LISTEN_FDS: the service manager listens on {address}, which is not in listen; add it"
        )),
        None => Ok(listeners),
    }
}
