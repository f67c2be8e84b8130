//! Sockets: listening, connecting, and the options that matter at this scale.
//!
//! - Listeners of groups share an address by SO_REUSEPORT; the kernel deals connections by hash.
//! - TCP_NODELAY everywhere: commands and replies are small and wait for each other.
//! - A source address without a port (IP_BIND_ADDRESS_NO_PORT) lets the kernel choose the port at
//!   connect time, when it knows the destination, so that each source address has the whole port
//!   range for each destination.

use crate::Address;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen,
    socket_with, sockopt,
};
use std::fs::Permissions;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

const FLAGS: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

fn stream(family: AddressFamily) -> io::Result<OwnedFd> {
    Ok(socket_with(family, SocketType::STREAM, FLAGS, None)?)
}

fn family_of(address: &SocketAddr) -> AddressFamily {
    if address.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    }
}

/// Binds `address` without listening, to learn whether it is free and which port 0 became. While
/// the socket lives, nobody else takes the port; listeners with SO_REUSEPORT may join it.
///
/// # Errors
/// EADDRINUSE when somebody (also another process of ours) listens there, and the like.
pub fn reserve(address: &SocketAddr) -> io::Result<(OwnedFd, SocketAddr)> {
    // First without SO_REUSEPORT: with it, a second process of the same user would join silently.
    let probe = stream(family_of(address))?;
    sockopt::set_socket_reuseaddr(&probe, true)?;
    bind(&probe, address)?;
    let bound: SocketAddr = rustix::net::getsockname(&probe)?.try_into()?;
    drop(probe);
    let held = stream(family_of(address))?;
    sockopt::set_socket_reuseaddr(&held, true)?;
    sockopt::set_socket_reuseport(&held, true)?;
    bind(&held, &bound)?;
    Ok((held, bound))
}

/// A group's own listener on `address`, sharing it by SO_REUSEPORT.
///
/// # Errors
/// The system's error from bind or listen.
pub fn listen_tcp(address: &SocketAddr, backlog: i32) -> io::Result<OwnedFd> {
    let socket = stream(family_of(address))?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    sockopt::set_socket_reuseport(&socket, true)?;
    bind(&socket, address)?;
    listen(&socket, backlog)?;
    Ok(socket)
}

/// Who may connect to a Unix socket: the kernel asks for the right to write to its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileAccess {
    /// Permission bits, 0 to 0o777; the process's umask does not count.
    pub mode: u32,
    /// The user that the file belongs to; `None`: who made it.
    pub owner: Option<u32>,
    /// The group that the file belongs to; `None`: that of who made it.
    pub group: Option<u32>,
}

/// A listener on a Unix socket, for all groups together. A dead socket file of an earlier run is
/// replaced; a living one is an error. Nobody can connect before the file is as `access` says.
///
/// # Errors
/// EADDRINUSE when somebody listens there; EPERM when the file cannot be given to that owner; the
/// system's error otherwise.
pub fn listen_unix(path: &Path, access: FileAccess, backlog: i32) -> io::Result<OwnedFd> {
    let address = SocketAddrUnix::new(path)?;
    let socket = stream(AddressFamily::UNIX)?;
    match bind(&socket, &address) {
        Err(Errno::ADDRINUSE) => {
            let probe = stream(AddressFamily::UNIX)?;
            if connect(&probe, &address).err() != Some(Errno::CONNREFUSED) {
                return Err(Errno::ADDRINUSE.into());
            }
            std::fs::remove_file(path)?;
            bind(&socket, &address)?;
        }
        result => result?,
    }
    // A bound socket that does not listen yet refuses whoever connects.
    let ready = set_access(path, access).and_then(|()| Ok(listen(&socket, backlog)?));
    if let Err(error) = ready {
        let _ = std::fs::remove_file(path);
        return Err(error);
    }
    Ok(socket)
}

fn set_access(path: &Path, access: FileAccess) -> io::Result<()> {
    if access.owner.is_some() || access.group.is_some() {
        std::os::unix::fs::lchown(path, access.owner, access.group)?;
    }
    // Last: it counts for the owner and the group that the file has now.
    std::fs::set_permissions(path, Permissions::from_mode(access.mode))
}

/// The next waiting connection, ready for use; `None` when there is none.
///
/// # Errors
/// The system's error, EMFILE when the descriptor table is full.
pub fn accept(listener: impl AsFd) -> io::Result<Option<OwnedFd>> {
    loop {
        match accept_with(&listener, FLAGS) {
            Ok(socket) => {
                // Not for Unix sockets, which have no such option.
                let _ = sockopt::set_tcp_nodelay(&socket, true);
                return Ok(Some(socket));
            }
            Err(Errno::AGAIN) => return Ok(None),
            // The peer was gone before we came to it: not ours to report.
            Err(Errno::CONNABORTED | Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Begins a connection to `to`, from `source` when given.
///
/// # Errors
/// The system's error: EADDRNOTAVAIL when no port is left, EMFILE, ECONNREFUSED from a Unix
/// socket, EAGAIN when a Unix listener's queue is full.
pub fn dial(to: &Address, source: Option<IpAddr>) -> io::Result<OwnedFd> {
    match to {
        Address::Tcp(address) => {
            let socket = stream(family_of(address))?;
            sockopt::set_tcp_nodelay(&socket, true)?;
            if let Some(source) = source {
                bind_without_port(&socket, source)?;
            }
            match connect(&socket, address) {
                Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
                Err(error) => Err(error.into()),
            }
        }
        Address::Unix(path) => {
            let socket = stream(AddressFamily::UNIX)?;
            connect(&socket, &SocketAddrUnix::new(path)?)?;
            Ok(socket)
        }
    }
}

fn bind_without_port(socket: &OwnedFd, source: IpAddr) -> io::Result<()> {
    let on: libc::c_int = 1;
    let len = libc::socklen_t::try_from(size_of::<libc::c_int>()).map_err(io::Error::other)?;
    // SAFETY: the pointer and the length are those of a live c_int for the length of the call.
    // JUSTIFICATION: rustix has no call for this option.
    #[expect(unsafe_code)]
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_BIND_ADDRESS_NO_PORT,
            (&raw const on).cast(),
            len,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(bind(socket, &SocketAddr::new(source, 0))?)
}

/// How a begun connection went.
///
/// # Errors
/// Why it failed, ECONNREFUSED and the like.
pub fn dialled(socket: &OwnedFd) -> io::Result<()> {
    sockopt::socket_error(socket)?.map_err(io::Error::from)
}
