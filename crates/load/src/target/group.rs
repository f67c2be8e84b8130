//! One group of a target: a thread, its listener, its connections, and when each is due.
//!
//! All connections have the same period, so the line of those that are due is in order by itself:
//! who has been served goes to its end. Invariants: a connection is in the line once, until its
//! turn finds it gone; a group never meets the descriptor limit, because it refuses a connection
//! more than it has room for.

use super::peer::{Fate, Peer, Texts};
use reactor::{Event, Key, Mailbox, Net, RealNet, Slots, Time, Token, descriptors, scheduling};
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

/// Kinds of tokens.
const PEER: u8 = 0;
const MAILBOX: u8 = 1;
const LISTENER: u8 = 2;
/// Connections accepted in one turn; more wait for the next one, behind messages that are due.
const ACCEPTS_PER_TURN: usize = 256;
/// Messages sent in one turn before events are looked at again.
const SENDS_PER_TURN: usize = 1_024;
/// Bytes that are read at once.
const BUFFER_BYTES: usize = 64 * 1024;

/// What all groups know.
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

/// What the main thread wants.
#[derive(Clone, Copy, Debug)]
pub(super) enum Order {
    Report,
    Stop,
}

/// What a group tells the main thread.
#[derive(Debug)]
pub(super) enum Letter {
    /// It listens.
    Ready,
    Counted(Counts),
    /// The last numbers.
    Ended(Counts),
    /// It could not begin or go on.
    Failed(String),
}

/// What a group has done since it was last asked; and how many stand.
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
    /// Who is due next, in order.
    line: VecDeque<(Time, Key)>,
    counts: Counts,
    buffer: Vec<u8>,
    mailbox: Mailbox<Order>,
    letters: SyncSender<Letter>,
}

/// The life of a group's thread.
pub(super) fn run(plan: Arc<Plan>, mailbox: Mailbox<Order>, letters: SyncSender<Letter>) {
    let failure = letters.clone();
    if let Err(reason) = Group::new(plan, mailbox, letters).and_then(Group::live) {
        // When the main thread is gone nobody is left to be told.
        let _ = failure.send(Letter::Failed(reason));
    }
}

impl Group {
    fn new(
        plan: Arc<Plan>,
        mailbox: Mailbox<Order>,
        letters: SyncSender<Letter>,
    ) -> Result<Group, String> {
        let wrong = |what: &str, error: io::Error| format!("a group could not {what}: {error}");
        // Where this is not allowed the main thread knows it and has said so.
        let _ = descriptors::own_table();
        let _ = scheduling::wake_gently();
        let token = |kind| Token::new(kind, Key::from_parts(0, 0));
        let mut net = RealNet::new().map_err(|e| wrong("make its poll", e))?;
        net.watch_mailbox(&mailbox, token(MAILBOX))
            .map_err(|e| wrong("watch its mailbox", e))?;
        net.listen(&plan.address, plan.backlog, token(LISTENER))
            .map_err(|e| wrong("listen", e))?;
        Ok(Group {
            net,
            plan,
            peers: Slots::default(),
            line: VecDeque::new(),
            counts: Counts::default(),
            buffer: vec![0; BUFFER_BYTES],
            mailbox,
            letters,
        })
    }

    fn live(mut self) -> Result<(), String> {
        self.tell(Letter::Ready);
        let mut events = Vec::new();
        loop {
            let deadline = self.line.front().map_or(Time::NEVER, |(due, _)| *due);
            let waited = self.net.wait(deadline, &mut events);
            waited.map_err(|e| format!("a group's poll failed: {e}"))?;
            for event in &events {
                match event.token.kind() {
                    LISTENER => self.accept_some(),
                    MAILBOX => {
                        if self.obey() {
                            return Ok(());
                        }
                    }
                    _ => self.on_event(event),
                }
            }
            self.send_due();
        }
    }

    /// True when it is to end.
    fn obey(&mut self) -> bool {
        for order in self.mailbox.take() {
            let mut counts = std::mem::take(&mut self.counts);
            counts.standing = self.peers.len() as u64;
            match order {
                Order::Report => self.tell(Letter::Counted(counts)),
                Order::Stop => {
                    self.tell(Letter::Ended(counts));
                    return true;
                }
            }
        }
        false
    }

    fn tell(&self, letter: Letter) {
        // The main thread outlives its groups; if it does not, the process is ending.
        let _ = self.letters.send(letter);
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
        if self.net.watch(&peer.sock, Token::new(PEER, key)).is_err() {
            self.peers.remove(key);
            self.counts.refused += 1;
            return;
        }
        self.counts.accepted += 1;
        if let Some(every) = self.plan.every {
            self.line.push_back((Time::now() + every, key));
        }
    }

    fn on_event(&mut self, event: &Event) {
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
