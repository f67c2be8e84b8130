//! One group of a target: a thread, its listener, its connections, and when each is due.
//!
//! All connections have the same period, so the line of those that are due is in order by itself:
//! who has been served goes to its end. Invariants: a connection is in the line once, until its
//! turn finds it gone; a group never meets the descriptor limit, because it refuses a connection
//! more than it has room for.

use super::peer::{Fate, Peer, Texts};
use load_core::event_loop::{self, CONNECTION, LISTENER, Turns, Waking};
use reactor::{Event, Key, Mailbox, Net, RealNet, Slots, Time, Token};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

/// Connections accepted in one turn; more wait for the next one, behind messages that are due.
const ACCEPTS_PER_TURN: usize = 256;
/// Messages sent in one turn before events are looked at again.
const SENDS_PER_TURN: usize = 1_024;
/// Bytes that are read at once.
const BUFFER_BYTES: usize = 64 * 1024;

/// Plan that all groups know.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) address: SocketAddr,
    pub(super) backlog: i32,
    pub(super) texts: Texts,
    /// Messages come by themselves, so often.
    pub(super) every: Option<Duration>,
    /// Connections that one group has room for.
    pub(super) room: usize,
}

/// Orders of the main thread.
#[derive(Clone, Copy, Debug)]
pub(super) enum Order {
    Report,
    Stop,
}

/// Messages of a group to the main thread.
#[derive(Debug)]
pub(super) enum Message {
    /// Listens.
    Ready,
    Counted(Counts),
    /// The last numbers.
    Ended(Counts),
    /// Could not begin or go on.
    Failed(String),
}

/// Counts of a group since it was last asked, and its connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) standing: u64,
    pub(super) accepted: u64,
    pub(super) refused: u64,
    /// Messages or answers that have left whole.
    pub(super) sent: u64,
    /// Messages that were due before the one in front of them had left.
    pub(super) behind: u64,
    /// Connections that broke; all others that are gone ended in order.
    pub(super) broken: u64,
}

impl Counts {
    /// Adds what another one counted.
    pub(super) fn add(&mut self, other: Counts) {
        self.standing += other.standing;
        self.accepted += other.accepted;
        self.refused += other.refused;
        self.sent += other.sent;
        self.behind += other.behind;
        self.broken += other.broken;
    }
}

struct Group {
    net: RealNet,
    plan: Arc<Plan>,
    peers: Slots<Peer<OwnedFd>>,
    /// Connections by the time at which they are due.
    line: VecDeque<(Time, Key)>,
    counts: Counts,
    buffer: Vec<u8>,
    mailbox: Mailbox<Order>,
    letters: SyncSender<Message>,
    /// True if the main thread has told it to end.
    is_stopped: bool,
}

/// Runs a group's thread.
pub(super) fn run(plan: Arc<Plan>, mailbox: Mailbox<Order>, letters: SyncSender<Message>) {
    let failure = letters.clone();
    if let Err(reason) = Group::new(plan, mailbox, letters).and_then(event_loop::run) {
        // When the main thread is gone nobody is left to be told.
        let _ = failure.send(Message::Failed(reason));
    }
}

impl Turns for Group {
    fn net(&mut self) -> &mut RealNet {
        &mut self.net
    }

    fn deadline(&self) -> Time {
        self.line.front().map_or(Time::NEVER, |(due, _)| *due)
    }

    fn obey(&mut self) {
        for order in self.mailbox.take() {
            match order {
                Order::Report => {
                    let counts = self.counts();
                    self.tell(Message::Counted(counts));
                }
                Order::Stop => self.is_stopped = true,
            }
        }
    }

    fn on_event(&mut self, event: &Event) {
        match event.token.kind() {
            LISTENER => self.accept_some(),
            _ => self.on_socket(event),
        }
    }

    fn turn(&mut self) {
        self.send_due();
    }

    fn is_over(&self) -> bool {
        self.is_stopped
    }

    fn finish(mut self) {
        let counts = self.counts();
        self.tell(Message::Ended(counts));
    }
}

impl Group {
    fn new(
        plan: Arc<Plan>,
        mailbox: Mailbox<Order>,
        letters: SyncSender<Message>,
    ) -> Result<Group, String> {
        let mut net = event_loop::open(Waking::Gently)?;
        event_loop::watch_mailbox(&mut net, &mailbox)?;
        let token = Token::new(LISTENER, Key::from_parts(0, 0));
        net.listen(&plan.address, plan.backlog, token)
            .map_err(|error| event_loop::wrong("listen", &error))?;
        // When the main thread is gone nobody is left to be told.
        let _ = letters.send(Message::Ready);
        Ok(Group {
            net,
            plan,
            peers: Slots::default(),
            line: VecDeque::new(),
            counts: Counts::default(),
            buffer: vec![0; BUFFER_BYTES],
            mailbox,
            letters,
            is_stopped: false,
        })
    }

    fn counts(&mut self) -> Counts {
        Counts {
            standing: self.peers.len() as u64,
            ..std::mem::take(&mut self.counts)
        }
    }

    fn tell(&self, message: Message) {
        // The main thread outlives its groups; if it does not, the process is ending.
        let _ = self.letters.send(message);
    }

    fn accept_some(&mut self) {
        for _ in 0..ACCEPTS_PER_TURN {
            match self.net.accept(0) {
                Ok(Some(sock)) if self.peers.len() < self.plan.room => self.admit(sock),
                // One more than the descriptors allow: it is closed at once.
                Ok(Some(_)) | Err(_) => self.counts.refused += 1,
                Ok(None) => return,
            }
        }
    }

    fn admit(&mut self, sock: OwnedFd) {
        let key = self.peers.insert(Peer::new(sock));
        let Some(peer) = self.peers.get(key) else {
            return;
        };
        if self
            .net
            .watch(&peer.sock, Token::new(CONNECTION, key))
            .is_err()
        {
            self.peers.remove(key);
            self.counts.refused += 1;
            return;
        }
        self.counts.accepted += 1;
        if let Some(every) = self.plan.every {
            self.line.push_back((Time::now() + every, key));
        }
    }

    fn on_socket(&mut self, event: &Event) {
        let key = event.token.key();
        if let Some(peer) = self.peers.get_mut(key) {
            let (net, texts) = (&mut self.net, &self.plan.texts);
            let outcome = peer.on_event(net, texts, event.readable, &mut self.buffer);
            self.settle(key, outcome);
        }
    }

    fn settle(&mut self, key: Key, (fate, sent): (Fate, u64)) {
        self.counts.sent += sent;
        if fate != Fate::Stays {
            self.peers.remove(key);
            self.counts.broken += u64::from(fate == Fate::Broke);
        }
    }

    /// Sends to those whose time has come.
    fn send_due(&mut self) {
        let Some(every) = self.plan.every else {
            return;
        };
        let now = Time::now();
        for _ in 0..SENDS_PER_TURN {
            let Some(&(due, key)) = self.line.front().filter(|(due, _)| *due <= now) else {
                return;
            };
            self.line.pop_front();
            let Some(peer) = self.peers.get_mut(key) else {
                continue;
            };
            // Counted from the accept, not from the last message: lateness does not add up.
            self.line.push_back((due + every, key));
            self.counts.behind += u64::from(peer.owe());
            let outcome = peer.write(&mut self.net, &self.plan.texts);
            self.settle(key, outcome);
        }
    }
}
