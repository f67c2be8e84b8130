//! Sockets between two processes of the same user, over which descriptors go.
//!
//! The problem: a process hands its connections to its successor. A descriptor lands in the table
//! of the *thread* that receives it, so each thread needs a socket of its own to a thread of the
//! other process. The mechanism: one side listens at an abstract name, the other dials it; the
//! kernel tells both whose process the other is ([`peer`]), before anything is believed.
//!
//! Invariants:
//! - a message has at most [`DESCRIPTORS_MAX`] descriptors, as many as the kernel takes;
//! - above the receiver's limit the kernel closes what is too much and says nothing but a flag:
//!   the receiver counts what has come against what the message says.

use rustix::cmsg_space;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown, SocketAddrUnix, SocketFlags, SocketType, bind,
    connect, getsockname, listen, recvmsg, sendmsg, shutdown, socket_with, sockopt,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Descriptors that one message carries at most: the kernel's SCM_MAX_FD.
pub const DESCRIPTORS_MAX: usize = 253;
/// Peers that may wait to be accepted.
const BACKLOG: i32 = 64;
const FLAGS: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

/// Process at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its process.
    pub pid: u32,
    /// Its user.
    pub uid: u32,
}

/// Identity of this process, as the other end sees it.
#[must_use]
pub fn own() -> Peer {
    Peer {
        pid: std::process::id(),
        uid: rustix::process::geteuid().as_raw(),
    }
}

/// A listener at an abstract name, which is gone with the socket.
///
/// # Errors
/// EADDRINUSE when somebody has the name; the system's error otherwise.
pub fn listen_at(name: &str) -> io::Result<OwnedFd> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, FLAGS, None)?;
    bind(
        &socket,
        &SocketAddrUnix::new_abstract_name(name.as_bytes())?,
    )?;
    listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// Connects to such a listener.
///
/// # Errors
/// ECONNREFUSED when nobody listens there, EAGAIN when too many wait; the system's error otherwise.
pub fn dial(name: &str) -> io::Result<OwnedFd> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, FLAGS, None)?;
    connect(
        &socket,
        &SocketAddrUnix::new_abstract_name(name.as_bytes())?,
    )?;
    Ok(socket)
}

/// Process at the other end of a connection: the one that listened, or dialled.
///
/// # Errors
/// The system's error.
pub fn peer(socket: impl AsFd) -> io::Result<Peer> {
    let peer = sockopt::socket_peercred(socket)?;
    Ok(Peer {
        pid: u32::try_from(peer.pid.as_raw_nonzero().get()).unwrap_or(0),
        uid: peer.uid.as_raw(),
    })
}

/// The address that a socket of TCP is bound to.
#[must_use]
pub fn local_address(socket: impl AsFd) -> Option<SocketAddr> {
    getsockname(socket).ok()?.try_into().ok()
}

/// Sends bytes, at least one, with descriptors at the first of them; how many bytes were taken.
/// With the first byte all descriptors have gone.
///
/// # Errors
/// EAGAIN (`WouldBlock`) when there is no room now; ETOOMANYREFS when the user has too many
/// descriptors under way; the system's error otherwise.
pub fn send(socket: impl AsFd, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(Errno::INVAL.into());
    }
    loop {
        let sent = sendmsg(
            &socket,
            &[IoSlice::new(bytes)],
            &mut control,
            SendFlags::NOSIGNAL,
        );
        match sent {
            Err(Errno::INTR) => {}
            sent => return Ok(sent?),
        }
    }
}

/// Receives bytes, and the descriptors that come with them; 0 bytes: the other end is closed.
///
/// # Errors
/// EAGAIN (`WouldBlock`) when there is nothing now; the system's error otherwise.
pub fn receive(
    socket: impl AsFd,
    buffer: &mut [u8],
    descriptors: &mut Vec<OwnedFd>,
) -> io::Result<usize> {
    loop {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received = recvmsg(
            &socket,
            &mut [IoSliceMut::new(buffer)],
            &mut control,
            RecvFlags::CMSG_CLOEXEC,
        );
        let received = match received {
            Err(Errno::INTR) => continue,
            received => received?,
        };
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                descriptors.extend(rights);
            }
        }
        return Ok(received.bytes);
    }
}

/// Stops receiving on this end: what is there can still be read, and whoever sends from now on gets
/// an error. So it is certain afterwards what the other end could say.
///
/// # Errors
/// The system's error.
pub(crate) fn stop_receiving(socket: impl AsFd) -> io::Result<()> {
    Ok(shutdown(socket, Shutdown::Read)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    fn name(what: &str) -> String {
        format!("onramp-test-{what}-{}", std::process::id())
    }

    fn pair(what: &str) -> (OwnedFd, OwnedFd) {
        let listener = listen_at(&name(what)).unwrap();
        let one = dial(&name(what)).unwrap();
        let other = loop {
            if let Some(other) = reactor::socket::accept(&listener).unwrap() {
                break other;
            }
        };
        (one, other)
    }

    #[test]
    fn as_many_descriptors_go_as_a_message_takes() {
        let (one, other) = pair("many");
        assert_eq!(peer(&one).unwrap(), own());
        assert_eq!(peer(&other).unwrap(), own());
        let (sent, far) = UnixStream::pair().unwrap();
        let all = [sent.as_fd(); DESCRIPTORS_MAX];
        assert_eq!(send(&one, b"hello", &all).unwrap(), 5);
        let (mut buffer, mut come) = ([0; 16], Vec::new());
        assert_eq!(receive(&other, &mut buffer, &mut come).unwrap(), 5);
        assert_eq!(come.len(), DESCRIPTORS_MAX);
        drop(sent);
        rustix::net::send(&come[252], b"x", SendFlags::empty()).unwrap();
        let mut far = far;
        std::io::Read::read_exact(&mut far, &mut buffer[..1]).unwrap();
        let more = [far.as_fd(); DESCRIPTORS_MAX + 1];
        assert!(send(&one, b"more", &more).is_err());
    }

    #[test]
    fn after_the_end_of_receiving_it_is_certain_what_was_said() {
        let (one, other) = pair("end");
        send(&other, b"taken", &[]).unwrap();
        stop_receiving(&one).unwrap();
        assert!(send(&other, b"late", &[]).is_err());
        let (mut buffer, mut none) = ([0; 16], Vec::new());
        assert_eq!(receive(&one, &mut buffer, &mut none).unwrap(), 5);
        assert_eq!(receive(&one, &mut buffer, &mut none).unwrap(), 0);
    }

    #[test]
    fn a_name_is_taken_while_its_listener_lives() {
        let listener = listen_at(&name("twice")).unwrap();
        assert!(listen_at(&name("twice")).is_err());
        drop(listener);
        // A thread of another test that has just left the table of descriptors has a copy of the
        // listener as long as it lives.
        let begun = std::time::Instant::now();
        while dial(&name("twice")).is_ok() {
            assert!(begun.elapsed().as_secs() < 60, "somebody listens still");
            std::thread::yield_now();
        }
        listen_at(&name("twice")).unwrap();
    }
}
