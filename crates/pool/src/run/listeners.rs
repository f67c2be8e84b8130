//! Where clients come in: the listeners as the main thread holds them.
//!
//! Groups listen at a port by themselves; all of them share the listener of a Unix socket. What the
//! process before hands over in an upgrade is not opened here.

use crate::config::Settings;
use crate::operations::upgrade::successor::Before;
use reactor::{Address, socket};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Where clients come in.
pub(crate) enum Listener {
    /// Groups listen by themselves; the socket holds the port until they do.
    Tcp(
        SocketAddr,
        #[expect(dead_code, reason = "held, not used")] Option<OwnedFd>,
    ),
    /// All groups share the listener.
    Unix(std::path::PathBuf, Arc<OwnedFd>),
}

impl std::fmt::Display for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Listener::Tcp(address, _) => address.fmt(f),
            Listener::Unix(path, _) => path.display().fmt(f),
        }
    }
}

impl Listener {
    /// The port, where it is one.
    pub(crate) fn tcp(&self) -> Option<SocketAddr> {
        match self {
            Listener::Tcp(address, _) => Some(*address),
            Listener::Unix(..) => None,
        }
    }

    /// The path and its listener, where it is a Unix socket.
    pub(crate) fn unix(&self) -> Option<(std::path::PathBuf, Arc<OwnedFd>)> {
        match self {
            Listener::Tcp(..) => None,
            Listener::Unix(path, listener) => Some((path.clone(), listener.clone())),
        }
    }

    pub(crate) fn remove_file(&self) {
        if let Listener::Unix(path, _) = self {
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
        all.iter()
            .find(|(there, _)| there == path)
            .map(|(_, listener)| listener.clone())
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
    settings
        .listen
        .iter()
        .map(|address| {
            open(address).map_err(|error| format!("cannot listen on {address}: {error}"))
        })
        .collect()
}
