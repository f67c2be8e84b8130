//! Sockets: listening, connecting, and the options that matter at this scale.
//!
//! - Listeners of groups share an address by SO_REUSEPORT; the kernel deals connections by hash.
//! - TCP_NODELAY everywhere: commands and replies are small and wait for each other.
//! - Keepalive ([`Keepalive`]) finds a peer whose host is gone while nothing is on its way to it;
//!   [`unanswered`] tells of one that is gone while something is. Many connections are not left to
//!   the kernel's timers, which run together the later they are set: 16 s of them at once where 200
//!   s were asked for (250 ticks a second). Of a million probes in one moment nearly all are
//!   dropped (`net.core.netdev_max_backlog`), each time again, until living peers are given up.
//!   They are probed in turns ([`Keepalive::in_turns`], [`start_probing`], [`stop_probing`]).
//!   TCP_USER_TIMEOUT would do both, but it also ends the connection of a living peer that does not
//!   read (its window is closed), although that peer's kernel answers each probe.
//! - A source address without a port (IP_BIND_ADDRESS_NO_PORT) lets the kernel choose the port at
//!   connect time, when it knows the destination, so that each source address has the whole port
//!   range for each destination.

use crate::Address;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, Shutdown, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect,
    getpeername, listen, shutdown, socket_with, sockopt,
};
use std::fs::Permissions;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

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

/// Right to connect to a Unix socket: the kernel asks for the right to write to its file.
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

/// Times that the kernel has sent again what a peer leaves unacknowledged, before that says
/// anything: what has just been sent is unacknowledged as well.
const RETRANSMITS_MIN: u8 = 2;
/// A peer that was heard of in this time has answered the probe before.
const HEARD_MAX: Duration = Duration::from_secs(3);

/// Probes that go unanswered before a connection is given up.
const PROBES_MAX: u32 = 5;

/// Times at which an idle connection is probed, and given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keepalive {
    /// Silence after which the first probe is sent.
    idle: Duration,
    /// Between two probes.
    interval: Duration,
    /// Probes without an answer that break the connection, one interval behind the last.
    probes: u32,
}

impl Keepalive {
    /// Gives a peer up from which nothing was received for `silence`, 3 s at least. The probes
    /// begin after `idle` of it; shorter is safer where packets get lost, longer costs fewer.
    #[must_use]
    pub fn within(silence: Duration, idle: Duration) -> Keepalive {
        let silence = silence.as_secs().max(3);
        let idle = idle.as_secs().clamp(1, silence - 2);
        let interval = (silence - idle).div_ceil(PROBES_MAX.into()).max(1);
        let probes = ((silence - idle) / interval).max(1);
        Keepalive {
            // What the division leaves over.
            idle: Duration::from_secs(silence - interval * probes),
            interval: Duration::from_secs(interval),
            probes: u32::try_from(probes).unwrap_or(PROBES_MAX),
        }
    }

    /// Times of a probe that is asked for now: it is sent in a second and repeated for `patience`,
    /// 1 s at least; then the connection is given up.
    #[must_use]
    pub fn in_turns(patience: Duration) -> Keepalive {
        let idle = Duration::from_secs(1);
        Keepalive::within(patience.max(idle * 2) + idle, idle)
    }

    /// Sets it; an accepted socket has what its listener has.
    ///
    /// # Errors
    /// The system's error; a Unix socket has no such option.
    pub fn set(&self, socket: impl AsFd) -> io::Result<()> {
        sockopt::set_tcp_keepidle(&socket, self.idle)?;
        sockopt::set_tcp_keepintvl(&socket, self.interval)?;
        sockopt::set_tcp_keepcnt(&socket, self.probes)?;
        Ok(sockopt::set_socket_keepalive(&socket, true)?)
    }
}

/// The kernel's figures about a connection; `None` of a Unix socket.
fn tcp_info(socket: impl AsFd) -> Option<libc::tcp_info> {
    // SAFETY: a tcp_info is integers only, for which zeros are values.
    // JUSTIFICATION: rustix has no call for this option.
    #[expect(unsafe_code)]
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut len = libc::socklen_t::try_from(size_of::<libc::tcp_info>()).ok()?;
    // SAFETY: the pointers are those of a live tcp_info, of this length, and of the length.
    // JUSTIFICATION: as above.
    #[expect(unsafe_code)]
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut len,
        )
    };
    (result == 0).then_some(info)
}

/// Time since anything has come from the peer.
fn silence(info: &libc::tcp_info) -> Duration {
    let millis = info.tcpi_last_ack_recv.min(info.tcpi_last_data_recv);
    Duration::from_millis(millis.into())
}

/// Time since anything has come from the peer, where it has not acknowledged what was sent again
/// and again; `None` where it has, or where that cannot be told (a Unix socket).
#[must_use]
pub fn unanswered(socket: impl AsFd) -> Option<Duration> {
    let info = tcp_info(socket)?;
    let repeated = info.tcpi_unacked > 0 && info.tcpi_retransmits >= RETRANSMITS_MIN;
    repeated.then(|| silence(&info))
}

/// Bytes that the peer has sent, and those that it has acknowledged; `None` for a Unix socket.
#[must_use]
pub fn bytes(socket: impl AsFd) -> Option<(u64, u64)> {
    let info = tcp_info(socket)?;
    Some((info.tcpi_bytes_received, info.tcpi_bytes_acked))
}

/// Address of the peer; `None` for a Unix socket. A connection that was reset still has one, though
/// getpeername tells it no more.
#[must_use]
pub fn peer(socket: impl AsFd) -> Option<SocketAddr> {
    match getpeername(&socket) {
        Ok(address) => address?.try_into().ok(),
        Err(_) => reset_peer(socket.as_fd()),
    }
}

/// Address of the peer of a connection that has ended.
fn reset_peer(socket: BorrowedFd<'_>) -> Option<SocketAddr> {
    // A sockaddr_in6: family, port, flow (or address of IPv4), address, scope.
    let mut name = [0_u8; 28];
    // The length has to be the address's own.
    let found = [28, 16].into_iter().find(|len| {
        let mut len: libc::socklen_t = *len;
        // SAFETY: the pointers are those of a live array of at least this length, and of it.
        // JUSTIFICATION: rustix has no call for this option.
        #[expect(unsafe_code)]
        let result = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERNAME,
                (&raw mut name).cast(),
                &raw mut len,
            )
        };
        result == 0
    });
    let port = u16::from_be_bytes([name[2], name[3]]);
    let v4 = || <[u8; 4]>::try_from(&name[4..8]).ok();
    let v6 = || <[u8; 16]>::try_from(&name[8..24]).ok();
    match found? {
        16 => Some((v4()?, port).into()),
        _ => Some((v6()?, port).into()),
    }
}

/// Makes the kernel probe the peer of an idle connection as `keepalive` says.
pub fn start_probing(socket: impl AsFd, keepalive: &Keepalive) {
    // A Unix socket has no such options, and no host to lose.
    let _ = keepalive.set(socket);
}

/// Ends the probing of a peer that has answered; one that has not is left to the kernel.
pub fn stop_probing(socket: impl AsFd) {
    if tcp_info(&socket).is_some_and(|info| silence(&info) < HEARD_MAX) {
        let _ = sockopt::set_socket_keepalive(&socket, false);
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

/// Ends a connection both ways: a thread that waits for it goes on.
///
/// # Errors
/// ENOTCONN where it has ended already.
pub fn shut_down(socket: &OwnedFd) -> io::Result<()> {
    Ok(shutdown(socket, Shutdown::Both)?)
}

/// Result of a begun connection.
///
/// # Errors
/// Why it failed, ECONNREFUSED and the like.
pub fn dialled(socket: &OwnedFd) -> io::Result<()> {
    sockopt::socket_error(socket)?.map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keepalive_ends_when_it_is_said_to() {
        for (silence, idle) in [
            (15, 5),
            (300, 200),
            (3, 1),
            (4, 4),
            (32_767, 1),
            (1, 9),
            (16, 5),
        ] {
            let of = Duration::from_secs;
            let all = Keepalive::within(of(silence), of(idle));
            let sum = all.idle + all.interval * all.probes;
            assert_eq!(sum, of(silence.max(3)), "{all:?}");
            assert!(all.idle >= of(1) && all.probes >= 1, "{all:?}");
        }
        let usual = Keepalive::within(Duration::from_secs(15), Duration::from_secs(5));
        assert_eq!((usual.interval, usual.probes), (Duration::from_secs(2), 5));
    }

    #[test]
    fn what_was_received_is_not_unanswered() {
        let (held, address) = reserve(&"127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = listen_tcp(&address, 8).unwrap();
        drop(held);
        let client = dial(&Address::Tcp(address), None).unwrap();
        let server = loop {
            if let Some(server) = accept(&listener).unwrap() {
                break server;
            }
        };
        let keepalive = Keepalive::in_turns(Duration::from_secs(100));
        start_probing(&server, &keepalive);
        assert!(sockopt::socket_keepalive(&server).unwrap());
        assert_eq!(
            sockopt::tcp_keepidle(&server).unwrap(),
            Duration::from_secs(1)
        );
        let repeats = (
            sockopt::tcp_keepintvl(&server),
            sockopt::tcp_keepcnt(&server),
        );
        assert_eq!(repeats, (Ok(Duration::from_secs(20)), Ok(PROBES_MAX)));
        stop_probing(&server);
        assert!(
            !sockopt::socket_keepalive(&server).unwrap(),
            "it was just heard of"
        );
        rustix::net::send(&client, b"hello", rustix::net::SendFlags::NOSIGNAL).unwrap();
        // Loopback acknowledges at once.
        assert_eq!(unanswered(&client), None);
        let (one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert_eq!(unanswered(&one), None);
        assert!(keepalive.set(&one).is_err());
        start_probing(&one, &keepalive);
        stop_probing(&one);
    }
}
