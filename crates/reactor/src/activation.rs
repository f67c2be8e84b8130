//! Listening sockets that a service manager has opened for this process.
//!
//! The problem: while a service starts, or is started again, nobody may be refused. The mechanism:
//! the service manager keeps the sockets open and gives them to each process that it starts, from
//! descriptor 3 on; `LISTEN_FDS` says how many, `LISTEN_PID` to whom (sd_listen_fds(3)). Who
//! connects meanwhile waits in the kernel.
//!
//! Invariants: each descriptor is taken once; what is no listening stream socket is refused with
//! its number; what is taken does not block and is closed in programs that this process starts.

use crate::address::Address;
use rustix::net::{SocketAddrAny, SocketAddrUnix, SocketType, getsockname, sockopt};
use std::net::SocketAddr;
use std::os::fd::{FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::sync::atomic::{AtomicBool, Ordering};

/// Sockets that may be given: as many as a program of few addresses can have a use for.
pub const GIVEN_MAX: usize = 64;

/// True once the sockets were taken.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The variable that says how many there are. A child inherits it, and no sockets.
const COUNT: &str = "LISTEN_FDS";

/// Takes the listening sockets that were given to this process; none the second time.
///
/// # Errors
/// A sentence: the variables make no sense, there are more than [`GIVEN_MAX`], or a descriptor is
/// no listening stream socket with an address.
pub fn given_listeners() -> Result<Vec<(Address, OwnedFd)>, String> {
    let wrong = |error: std::io::Error| format!("LISTEN_PID, LISTEN_FDS: {error}");
    let given = sd_notify::listen_fds().map_err(wrong)?;
    if given.len() > GIVEN_MAX {
        let count = given.len();
        return Err(format!(
            "LISTEN_FDS: expected at most {GIVEN_MAX} sockets, got {count}"
        ));
    }
    if TAKEN.swap(true, Ordering::Relaxed) {
        return Ok(Vec::new());
    }
    given.map(take).collect()
}

/// True if sockets were given to this process, or to the one that has started it. The files of Unix
/// sockets are not this process's to remove then.
#[must_use]
pub fn are_listeners_given() -> bool {
    std::env::var_os(COUNT).is_some()
}

fn take(number: RawFd) -> Result<(Address, OwnedFd), String> {
    // SAFETY: the protocol says that the descriptor was opened for this process; nobody else here
    // knows its number, and this runs once. `listen_fds` has found it open.
    #[expect(unsafe_code)]
    let socket = unsafe { OwnedFd::from_raw_fd(number) };
    match address_of(&socket) {
        Ok(address) => Ok((address, socket)),
        Err(why) => Err(format!(
            "LISTEN_FDS: descriptor {number}: expected a listening stream socket, but {why}"
        )),
    }
}

fn address_of(socket: &OwnedFd) -> Result<Address, &'static str> {
    if sockopt::socket_type(socket).ok() != Some(SocketType::STREAM) {
        return Err("it is no stream socket");
    }
    if !sockopt::socket_acceptconn(socket).is_ok_and(|listens| listens) {
        return Err("it does not listen");
    }
    rustix::io::ioctl_fionbio(socket, true).map_err(|_| "it cannot be made not to block")?;
    let address = getsockname(socket).map_err(|_| "it has no address")?;
    in_words(address).ok_or("its address is neither a port nor a path")
}

fn in_words(address: SocketAddrAny) -> Option<Address> {
    if let Ok(address) = SocketAddr::try_from(address.clone()) {
        return Some(Address::Tcp(address));
    }
    let address = SocketAddrUnix::try_from(address).ok()?;
    let path = address.path()?;
    let path = std::ffi::OsStr::from_bytes(path.to_bytes());
    Some(Address::Unix(path.into()))
}
