//! [`Net`] on the real kernel: one epoll, sockets by descriptor.
//!
//! Every socket is registered once, edge-triggered, for reading and writing; no call of
//! `epoll_ctl` follows until it is closed, which the kernel notices by itself. Unix listeners are
//! shared by all groups and woken one at a time (EPOLLEXCLUSIVE).

use crate::socket::{self, Keepalive};
use crate::{Address, Event, Net, Read, Time, Token, Write};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use std::io;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Most events that are taken from the kernel at once; the rest come with the next turn.
const EVENTS_PER_TURN: usize = 512;
/// Random bytes fetched from the kernel at once, for logins.
const RANDOM_BATCH: usize = 1024;

#[derive(Debug)]
enum Listener {
    Own(OwnedFd),
    Shared(Arc<OwnedFd>),
}

impl Listener {
    fn flags(&self) -> epoll::EventFlags {
        use epoll::EventFlags as F;
        match self {
            Listener::Own(_) => F::IN | F::ET,
            Listener::Shared(_) => F::IN | F::ET | F::EXCLUSIVE,
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Listener::Own(listener) => listener.as_fd(),
            Listener::Shared(listener) => listener.as_fd(),
        }
    }
}

/// The world of one group, on the kernel. Not `Send`: its descriptors belong to one thread.
pub struct RealNet {
    epoll: OwnedFd,
    listeners: Vec<(Listener, Token)>,
    /// True while nobody is accepted; the listeners stay open.
    paused: bool,
    ready: Vec<epoll::Event>,
    now: Time,
    random: Vec<u8>,
    /// Keepalive of what is accepted, and of what is dialled.
    keepalive: (Option<Keepalive>, Option<Keepalive>),
    not_send: PhantomData<*const ()>,
}

impl RealNet {
    /// An empty world.
    ///
    /// # Errors
    /// The system's error (EMFILE, ENOMEM).
    pub fn new() -> io::Result<RealNet> {
        Ok(RealNet {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            listeners: Vec::new(),
            paused: false,
            ready: Vec::with_capacity(EVENTS_PER_TURN),
            now: Time::now(),
            random: Vec::new(),
            keepalive: (None, None),
            not_send: PhantomData,
        })
    }

    /// Sets the keepalive by which the kernel finds peers whose host is gone: of those accepted
    /// when they are probed ([`Net::start_probing`]), and of those dialled.
    pub fn keep_alive(&mut self, accepted: Option<Keepalive>, dialled: Option<Keepalive>) {
        self.keepalive = (accepted, dialled);
    }

    /// Opens a listener of this group's own on `address`; its events carry `token`, and tell once
    /// that there is somebody to accept.
    ///
    /// # Errors
    /// The system's error.
    pub fn listen(&mut self, address: &SocketAddr, backlog: i32, token: Token) -> io::Result<()> {
        let listener = socket::listen_tcp(address, backlog)?;
        self.take_listener(listener, token)
    }

    /// Takes a listener that is open already. Connections that wait there are told of.
    ///
    /// # Errors
    /// The system's error.
    pub fn take_listener(&mut self, listener: OwnedFd, token: Token) -> io::Result<()> {
        self.push(Listener::Own(listener), token)
    }

    fn push(&mut self, listener: Listener, token: Token) -> io::Result<()> {
        self.add(&listener, token, listener.flags())?;
        self.listeners.push((listener, token));
        Ok(())
    }

    /// Takes part in a listener that all groups share; one of them is told.
    ///
    /// # Errors
    /// The system's error.
    pub fn share(&mut self, listener: Arc<OwnedFd>, token: Token) -> io::Result<()> {
        self.push(Listener::Shared(listener), token)
    }

    /// Accepts nobody until [`RealNet::resume_listening`]: who comes waits at the listeners, which
    /// stay open.
    pub fn pause_listening(&mut self) {
        for (listener, _) in &self.listeners {
            let _ = epoll::delete(&self.epoll, listener);
        }
        self.paused = true;
    }

    /// Accepts again, beginning with those who wait.
    ///
    /// # Errors
    /// The system's error.
    pub fn resume_listening(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.paused) {
            for (listener, token) in &self.listeners {
                self.add(listener, *token, listener.flags())?;
            }
        }
        Ok(())
    }

    /// Listeners of this group, to be handed to another process.
    pub fn own_listeners(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let all = self.listeners.iter();
        all.filter_map(|(listener, _)| match listener {
            Listener::Own(listener) => Some(listener.as_fd()),
            Listener::Shared(_) => None,
        })
    }

    /// Asks for events on a mailbox, as long as it is not empty.
    ///
    /// # Errors
    /// The system's error.
    pub fn watch_mailbox(&mut self, mailbox: &impl AsFd, token: Token) -> io::Result<()> {
        self.add(mailbox, token, epoll::EventFlags::IN)
    }

    /// Stops listening in this group; connections that were not accepted yet are reset.
    pub fn stop_listening(&mut self) {
        for (listener, _) in self.listeners.drain(..) {
            // The descriptor may live on in other tables or in another process, so the kernel would
            // go on reporting it.
            let _ = epoll::delete(&self.epoll, &listener);
        }
    }

    /// Waits for events until `deadline` and puts them into `events`; then the time is new.
    ///
    /// # Errors
    /// The system's error; an interrupted wait is none.
    pub fn wait(&mut self, deadline: Time, events: &mut Vec<Event>) -> io::Result<()> {
        events.clear();
        self.ready.clear();
        let timeout = (deadline != Time::NEVER).then(|| {
            let wait = deadline.since(Time::now());
            Timespec {
                tv_sec: wait.as_secs().cast_signed(),
                tv_nsec: wait.subsec_nanos().into(),
            }
        });
        match epoll::wait(
            &self.epoll,
            spare_capacity(&mut self.ready),
            timeout.as_ref(),
        ) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        self.now = Time::now();
        events.extend(self.ready.iter().map(|event| {
            use epoll::EventFlags as F;
            let flags = event.flags;
            Event {
                token: Token::from_bits(event.data.u64()),
                readable: flags.intersects(F::IN | F::RDHUP | F::HUP | F::ERR),
                writable: flags.intersects(F::OUT | F::HUP | F::ERR),
                closed: flags.intersects(F::RDHUP | F::HUP | F::ERR),
            }
        }));
        Ok(())
    }

    fn add(&self, fd: &impl AsFd, token: Token, flags: epoll::EventFlags) -> io::Result<()> {
        let data = epoll::EventData::new_u64(token.bits());
        Ok(epoll::add(&self.epoll, fd, data, flags)?)
    }

    /// Calls [`Net::connect`] from a source address of the caller's choice.
    ///
    /// # Errors
    /// As [`socket::dial`].
    pub fn connect_from(
        &mut self,
        to: &Address,
        source: Option<std::net::IpAddr>,
    ) -> io::Result<OwnedFd> {
        socket::dial(to, source)
    }
}

impl Net for RealNet {
    type Sock = OwnedFd;

    fn now(&self) -> Time {
        self.now
    }

    fn clock(&self) -> Time {
        Time::now()
    }

    fn accept(&mut self, listener: usize) -> io::Result<Option<OwnedFd>> {
        match self.listeners.get(listener) {
            Some((listener, _)) if !self.paused => socket::accept(listener),
            _ => Ok(None),
        }
    }

    fn connect(&mut self, to: &Address) -> io::Result<OwnedFd> {
        let sock = socket::dial(to, None)?;
        if let (Address::Tcp(_), Some(keepalive)) = (to, &self.keepalive.1) {
            keepalive.set(&sock)?;
        }
        Ok(sock)
    }

    fn connected(&mut self, sock: &OwnedFd) -> io::Result<()> {
        socket::dialled(sock)
    }

    fn watch(&mut self, sock: &OwnedFd, token: Token) -> io::Result<()> {
        use epoll::EventFlags as F;
        self.add(sock, token, F::IN | F::OUT | F::RDHUP | F::ET)
    }

    fn unwatch(&mut self, sock: &OwnedFd) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, sock)?)
    }

    fn read(&mut self, sock: &OwnedFd, buffer: &mut [u8]) -> Read {
        loop {
            // Not `read`: what the kernel does for files on its way to a socket is left out.
            return match rustix::net::recv(sock, &mut *buffer, rustix::net::RecvFlags::empty()) {
                Ok((0, _)) => Read::End,
                Ok((n, _)) => Read::Bytes(n),
                Err(Errno::AGAIN) => Read::Blocked,
                Err(Errno::INTR) => continue,
                Err(error) => Read::Failed(error.into()),
            };
        }
    }

    fn write(&mut self, sock: &OwnedFd, bytes: &[u8]) -> Write {
        loop {
            // A peer that is gone is an error value, not a signal.
            return match rustix::net::send(sock, bytes, rustix::net::SendFlags::NOSIGNAL) {
                Ok(n) => Write::Bytes(n),
                Err(Errno::AGAIN) => Write::Blocked,
                Err(Errno::INTR) => continue,
                Err(error) => Write::Failed(error.into()),
            };
        }
    }

    fn unanswered(&self, sock: &OwnedFd) -> Option<std::time::Duration> {
        socket::unanswered(sock)
    }

    fn start_probing(&mut self, sock: &OwnedFd) {
        if let Some(keepalive) = &self.keepalive.0 {
            socket::start_probing(sock, keepalive);
        }
    }

    fn stop_probing(&mut self, sock: &OwnedFd) {
        socket::stop_probing(sock);
    }

    fn bytes(&self, sock: &OwnedFd) -> Option<(u64, u64)> {
        socket::bytes(sock)
    }

    fn reset_on_close(&mut self, sock: &OwnedFd) {
        let _ = rustix::net::sockopt::set_socket_linger(sock, Some(std::time::Duration::ZERO));
    }

    fn peer(&self, sock: &OwnedFd) -> Option<SocketAddr> {
        socket::peer(sock)
    }

    fn random(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            if self.random.is_empty() {
                self.random.resize(RANDOM_BATCH, 0);
                fill_random(&mut self.random);
            }
            *byte = self.random.pop().unwrap_or_default();
        }
    }
}

/// Random bytes from the kernel's generator.
#[must_use]
pub fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    fill_random(&mut bytes);
    bytes
}

/// Fills `bytes` from the kernel's generator. It cannot fail for requests this small once the
/// kernel has booted; an interrupted call is taken up again.
fn fill_random(bytes: &mut [u8]) {
    use rustix::rand::{GetRandomFlags, getrandom};
    let mut done = 0;
    while done < bytes.len() {
        match getrandom(&mut bytes[done..], GetRandomFlags::empty()) {
            Ok(n) => done += n,
            Err(Errno::INTR) => {}
            Err(error) => panic!("getrandom: {error}: without nonces no login is safe"),
        }
    }
}

#[cfg(test)]
mod tests;
