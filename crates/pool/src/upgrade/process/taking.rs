//! A group of a new process that takes the listeners and clients of the group of its number in the
//! process before it.
//!
//! Called between two turns, it never waits. Clients are taken in without being served, then
//! acknowledged, and served when the acknowledgement is on its way: from that moment on the other
//! process cannot fail to see it.
//!
//! Invariant: of a batch whose acknowledgement was not sent, nobody is served here.

use crate::client::closing;
use crate::group::Group;
use crate::group::tokens::{ClientId, UPGRADE, listener_token};
use crate::upgrade::process::name_of_group;
use crate::upgrade::taking_in;
use handover::{Channel, ClientRecords, Come, Frame, Peer, Record};
use reactor::{Key, Net, RealNet, Token, socket};
use session::record::PeerDefaults;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

/// Addresses at which a group is to listen, in the order of the settings.
#[derive(Clone, Debug)]
pub(crate) enum ListenAt {
    /// Port, with a socket of the group's own.
    Tcp(SocketAddr),
    /// Given listener, with a descriptor of its own.
    Given(Arc<OwnedFd>),
    /// Listener that all groups share.
    Unix(Arc<OwnedFd>),
}

impl ListenAt {
    /// Begins to listen.
    pub(crate) fn open(&self, net: &mut RealNet, backlog: i32, token: Token) -> io::Result<()> {
        match self {
            ListenAt::Tcp(address) => net.listen(address, backlog, token),
            ListenAt::Given(listener) => net.take_listener(listener.try_clone()?, token),
            ListenAt::Unix(listener) => net.share(listener.clone(), token),
        }
    }
}

/// A group's end of a hand-over.
#[derive(Debug)]
pub(crate) struct Taking {
    index: usize,
    predecessor: Peer,
    listener: OwnedFd,
    channel: Option<Channel>,
    defaults: Vec<PeerDefaults>,
    listens_at: Listening,
    /// Receiver of the word that this group listens.
    listens: Option<SyncSender<Result<(), String>>>,
}

/// Listening sockets of the group, once the other process does not listen.
#[derive(Clone, Debug)]
pub(crate) struct Listening {
    pub(crate) listeners: Vec<ListenAt>,
    pub(crate) backlog: i32,
}

impl Listening {
    /// Listens where the settings say: at a socket that was handed over where there is one.
    pub(crate) fn open(&self, net: &mut RealNet, mut sockets: Vec<OwnedFd>) -> Result<(), String> {
        for (index, at) in (0..).zip(&self.listeners) {
            let token = listener_token(index);
            let is_it = |sock: &OwnedFd| {
                matches!(at, ListenAt::Tcp(address)
                    if handover::local_address(sock) == Some(*address))
            };
            let opened = match sockets.iter().position(is_it) {
                Some(found) => net.take_listener(sockets.swap_remove(found), token),
                None => at.open(net, self.backlog, token),
            };
            opened.map_err(|error| format!("a group cannot listen: {error}"))?;
        }
        Ok(())
    }
}

impl Taking {
    /// Waits for the other process at a name of this group's.
    ///
    /// # Errors
    /// The system's reason.
    pub(crate) fn begin(
        net: &mut RealNet,
        index: usize,
        predecessor: Peer,
        listens_at: Listening,
        listens: SyncSender<Result<(), String>>,
    ) -> Result<Taking, String> {
        let words = |error| format!("a group cannot wait for its predecessor: {error}");
        let listener =
            handover::listen_at(&name_of_group(handover::own().pid, index)).map_err(words)?;
        net.watch(&listener, token()).map_err(words)?;
        Ok(Taking {
            index,
            predecessor,
            listener,
            channel: None,
            defaults: Vec::new(),
            listens_at,
            listens: Some(listens),
        })
    }

    /// Takes what has come. `false` when nothing more will.
    pub(crate) fn step(&mut self, group: &mut Group<RealNet>) -> bool {
        if self.channel.is_none() && !self.accept(group) {
            return true;
        }
        match self.take(group) {
            Ok(more) => more,
            Err(why) => {
                if let Some(listens) = self.listens.take() {
                    let _ = listens.send(Err(why.clone()));
                }
                if let Some(channel) = &mut self.channel
                    && channel.is_sent()
                {
                    let _ = channel.send(&Frame::refusal(&why), &[]);
                }
                false
            }
        }
    }

    fn accept(&mut self, group: &mut Group<RealNet>) -> bool {
        while let Ok(Some(sock)) = socket::accept(&self.listener) {
            let is_predecessor = handover::peer(&sock).is_ok_and(|peer| peer == self.predecessor);
            if is_predecessor && group.parts.net.watch(&sock, token()).is_ok() {
                self.channel = Some(Channel::new(sock));
                return true;
            }
        }
        false
    }

    fn take(&mut self, group: &mut Group<RealNet>) -> Result<bool, String> {
        loop {
            let Some(channel) = &mut self.channel else {
                return Ok(true);
            };
            channel.flush().map_err(|error| error.to_string())?;
            match channel.receive()? {
                Come::Nothing => return Ok(true),
                Come::End => {
                    self.channel = None;
                    // Without listeners it waits for [`Taking::listen_alone`].
                    return Ok(self.listens.is_some());
                }
                Come::Frame(Frame::Listeners { greeted, again }, sockets) => {
                    group.parts.clients.count_on(greeted, again);
                    self.listen(group, sockets)?;
                }
                Come::Frame(Frame::GlobalDefaults(bytes), _) => {
                    let defaults = PeerDefaults::from_bytes(&bytes);
                    self.defaults
                        .push(defaults.map_err(|error| error.to_string())?);
                }
                Come::Frame(Frame::Clients(records), sockets) => {
                    self.take_clients(group, &records, sockets)?;
                }
                Come::Frame(..) => return Err("it has sent what is not for a group".into()),
            }
        }
    }

    /// Opens the group's own listeners if the other process is gone without having given its.
    pub(crate) fn listen_alone(&mut self, group: &mut Group<RealNet>) {
        if self.listens.is_none() {
            return;
        }
        let opened = self.listens_at.open(&mut group.parts.net, Vec::new());
        if let Some(listens) = self.listens.take() {
            let _ = listens.send(opened);
        }
    }

    fn listen(&mut self, group: &mut Group<RealNet>, sockets: Vec<OwnedFd>) -> Result<(), String> {
        // Otherwise it listens alone by now.
        if let Some(listens) = self.listens.take() {
            let opened = self.listens_at.open(&mut group.parts.net, sockets);
            let _ = listens.send(opened.clone());
            opened?;
        }
        self.answer(Vec::new())
    }

    fn take_clients(
        &mut self,
        group: &mut Group<RealNet>,
        records: &[ClientRecords],
        sockets: Vec<OwnedFd>,
    ) -> Result<(), String> {
        let expected: usize = records.iter().map(ClientRecords::sockets).sum();
        if sockets.len() != expected {
            // Above its limit of descriptors the kernel closes what is too much.
            let why = format!(
                "{} of {} sockets have come to group {}: raise the limit of descriptors",
                sockets.len(),
                expected,
                self.index
            );
            return self.answer(records.iter().map(|_| Some(why.clone())).collect());
        }
        let mut sockets = sockets.into_iter();
        let mut taken: Vec<Result<ClientId, String>> = Vec::with_capacity(records.len());
        for records in records {
            // Of each record there is one.
            let Some(sock) = sockets.next() else { break };
            let backend = records.backend.as_deref();
            let backend = backend.and_then(|record| Some((sockets.next()?, record)));
            taken.push(taking_in::take_in(
                &mut group.parts,
                (sock, &records.client),
                backend,
                &self.defaults,
            ));
        }
        let verdicts = taken.iter().map(|taken| taken.as_ref().err().cloned());
        let answered = self.answer(verdicts.collect());
        for key in taken.into_iter().flatten() {
            match &answered {
                Ok(()) => taking_in::let_in(&mut group.parts, key),
                // The other process goes on with it.
                Err(_) => {
                    (group.parts.server_side.migrating).put(
                        key,
                        &mut group.parts.clients,
                        &mut group.parts.backends,
                    );
                    closing::close(&mut group.parts, key);
                }
            }
        }
        answered
    }

    /// Acknowledges a batch, as a whole or not at all.
    fn answer(&mut self, verdicts: Vec<Option<String>>) -> Result<(), String> {
        let Some(channel) = &mut self.channel else {
            return Err("nobody is there to be answered".into());
        };
        let sent = channel.send(&Frame::taken(verdicts), &[]);
        match sent {
            Ok(()) if channel.is_sent() => Ok(()),
            Ok(()) => {
                // What is not whole does not count over there.
                self.channel = None;
                Err("there was no room for an answer".into())
            }
            Err(error) => Err(format!("cannot answer: {error}")),
        }
    }
}

fn token() -> Token {
    Token::new(UPGRADE, Key::from_parts(1, 0))
}
