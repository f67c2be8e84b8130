//! The network of a simulated group: connections that deliver when, and as much as, chance says.
//!
//! The problem: what breaks an event loop are short reads, full send buffers, resets in the middle
//! of a reply and events that come together; a real kernel shows them once in a million. The
//! mechanism: each connection is two queues on each way, what has been sent and what has arrived,
//! and the scheduler moves bytes between them, down to one at a time. [`SimNet`] is the group's
//! side of it ([`Net`]); the other side ([`Wires`]) belongs to the scheduler.
//!
//! What holds, as with epoll and IN | OUT | RDHUP | ET:
//! - an event comes when bytes, an end or a reset arrive, when room appears after a blocked write,
//!   and once when a connection stands; what has happened since the last one comes as one event,
//!   which carries everything that is so now;
//! - a read that does not fill its buffer has emptied the socket;
//! - connections to the server, dialling ones included, never exceed `server_max`.

use super::fake_mysql::tag_of;
use super::random::Random;
use super::settings::{PROXY, PROXY_HEADER};
use reactor::{Address, Event, Net, Read, Scratch, Time, Token, Write};
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::io::{Error, ErrorKind};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use wire::command::Command;
use wire::packet::{Frame, HEADER_LEN, frame};

/// Received and not yet read by the group, per connection.
const ARRIVED_MAX: usize = 48 * 1024;

/// Peer at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    Client(usize),
    Server,
}

/// Stage of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Being opened until this moment; then it stands, or not.
    Dialling(Time, bool),
    Stands,
    Refused,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) peer: Peer,
    /// The group at this end.
    group: usize,
    pub(crate) stage: Stage,
    token: Option<Token>,
    /// True if something has happened since the last event.
    pending: bool,
    /// Sent by the peer, not arrived.
    sent: VecDeque<u8>,
    arrived: VecDeque<u8>,
    /// Sent by the group, not taken by the peer; at most `room_max`.
    written: VecDeque<u8>,
    room_max: usize,
    blocked: bool,
    peer_closed: bool,
    end_arrived: bool,
    reset: bool,
    /// The group has dropped its socket.
    pub(crate) dropped: bool,
    tap: Vec<u8>,
}

impl Wire {
    /// True if something is on its way to the group.
    pub(crate) fn can_arrive(&self) -> bool {
        let due = !self.sent.is_empty() || (self.peer_closed && !self.end_arrived);
        due && !self.dropped && !self.reset && self.arrived.len() < ARRIVED_MAX
    }

    /// True if something is on its way to the peer.
    pub(crate) fn can_be_taken(&self) -> bool {
        !self.written.is_empty() && !self.reset && self.stage == Stage::Stands
    }

    /// True if the peer will find the connection ended: all bytes taken, and no more to come.
    pub(crate) fn is_over_for_peer(&self) -> bool {
        self.reset || self.stage == Stage::Refused || (self.dropped && self.written.is_empty())
    }

    /// True if the connection may still be closed or reset by the peer.
    pub(crate) fn is_open(&self) -> bool {
        !self.peer_closed && !self.reset && !self.dropped && self.stage == Stage::Stands
    }

    /// Bytes that the group has written and the peer has not taken.
    pub(crate) fn untaken(&self) -> usize {
        self.written.len()
    }

    fn event(&self, token: Token) -> Event {
        let gone = self.reset || self.stage == Stage::Refused;
        Event {
            token,
            readable: !self.arrived.is_empty() || self.end_arrived || gone,
            writable: self.written.len() < self.room_max || gone,
            closed: self.end_arrived || gone,
        }
    }
}

/// Fate of dials at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dials {
    Stand,
    Refused,
    /// Not even begun: the call fails.
    Impossible,
    /// The server never answers.
    Lost,
}

/// All connections, and the clock.
#[derive(Debug)]
pub(crate) struct Wires {
    pub(crate) now: Time,
    pub(crate) random: Random,
    pub(crate) wires: Vec<Wire>,
    pub(crate) dials: Dials,
    pub(crate) server_max: usize,
    pub(crate) trace: bool,
    /// Connections to be accepted, by group.
    backlog: Vec<VecDeque<usize>>,
    /// True for groups whose listener has an accept pending since it was told.
    pending_accepts: Vec<bool>,
    server_open: usize,
    sequence: u64,
    /// Number of looks at the clock within a turn.
    looks: u32,
    /// Times by tag: the group read a client's statement, and wrote it to a server.
    pub(crate) read_at: HashMap<u64, u64>,
    pub(crate) dispatched: Vec<u64>,
}

/// Clients that come by way of a proxy, and are announced by it.
fn is_proxied(client: usize) -> bool {
    client % 5 == 4
}

impl Wires {
    pub(crate) fn note(&self, what: impl FnOnce() -> String) {
        if self.trace {
            eprintln!("{:>12} {}", self.now.0 / 1000, what());
        }
    }

    fn add(&mut self, group: usize, peer: Peer, stage: Stage) -> usize {
        let room_max = *self.random.pick(&[70, 900, 9000, 60_000, 100_000, 100_000]);
        self.wires.push(Wire {
            peer,
            group,
            stage,
            token: None,
            pending: false,
            sent: VecDeque::new(),
            arrived: VecDeque::new(),
            written: VecDeque::new(),
            room_max,
            blocked: false,
            peer_closed: false,
            end_arrived: false,
            reset: false,
            dropped: false,
            tap: Vec::new(),
        });
        self.wires.len() - 1
    }

    /// A client connects, to a group that chance chooses; the first is chosen more often.
    pub(crate) fn connect_client(&mut self, client: usize) -> usize {
        let (a, b) = (self.backlog.len(), self.backlog.len());
        let group = self.random.index(a).min(self.random.index(b));
        let id = self.add(group, Peer::Client(client), Stage::Stands);
        self.backlog[group].push_back(id);
        self.pending_accepts[group] = true;
        if is_proxied(client) {
            self.send(id, PROXY_HEADER);
        }
        id
    }

    /// Sends bytes as the peer.
    pub(crate) fn send(&mut self, id: usize, bytes: &[u8]) {
        let wire = &mut self.wires[id];
        if !wire.peer_closed && !wire.reset {
            wire.sent.extend(bytes);
        }
    }

    /// Closes as the peer: what it has sent arrives, then the end.
    pub(crate) fn close(&mut self, id: usize) {
        self.wires[id].peer_closed = true;
    }

    /// Closes as the peer after a part of what it has sent.
    pub(crate) fn cut(&mut self, id: usize) {
        let len = self.wires[id].sent.len();
        let kept = self.random.index(len + 1);
        let wire = &mut self.wires[id];
        wire.sent.truncate(kept);
        wire.peer_closed = true;
    }

    /// Breaks the connection; what has arrived may be lost with it.
    pub(crate) fn reset(&mut self, id: usize) {
        let forget = self.random.chance(500);
        let wire = &mut self.wires[id];
        wire.reset = true;
        wire.pending = true;
        if forget {
            wire.arrived.clear();
        }
    }

    /// Lets some of what is under way arrive.
    pub(crate) fn arrive(&mut self, id: usize) {
        let wire = &mut self.wires[id];
        let most = wire.sent.len().min(ARRIVED_MAX - wire.arrived.len());
        if most > 0 {
            let n = self.random.piece(most);
            let wire = &mut self.wires[id];
            wire.arrived.extend(wire.sent.drain(..n));
            wire.pending = true;
        }
        // The end often comes in the same segment as the last bytes.
        let together = self.random.chance(500);
        let wire = &mut self.wires[id];
        if wire.sent.is_empty() && wire.peer_closed && (most == 0 || together) {
            wire.end_arrived = true;
            wire.pending = true;
        }
    }

    /// Takes some of what the group has written, as the peer; a closed peer answers with a reset.
    pub(crate) fn take(&mut self, id: usize) -> Vec<u8> {
        let wire = &mut self.wires[id];
        if wire.peer_closed {
            wire.written.clear();
            self.reset(id);
            return Vec::new();
        }
        let n = self.random.piece(wire.written.len());
        let wire = &mut self.wires[id];
        if std::mem::take(&mut wire.blocked) {
            wire.pending = true;
        }
        wire.written.drain(..n).collect()
    }

    /// Lets dials end whose time has come.
    pub(crate) fn end_dials(&mut self) {
        let now = self.now;
        for wire in &mut self.wires {
            if let Stage::Dialling(at, stands) = wire.stage
                && at <= now
            {
                wire.stage = if stands {
                    Stage::Stands
                } else {
                    Stage::Refused
                };
                wire.pending = true;
            }
        }
    }

    /// Moment at which the next dial ends.
    pub(crate) fn next_dial(&self) -> Time {
        let ends = self.wires.iter().filter_map(|wire| match wire.stage {
            Stage::Dialling(at, _) if !wire.dropped => Some(at),
            _ => None,
        });
        ends.min().unwrap_or(Time::NEVER)
    }

    /// True if a group has events to handle.
    pub(crate) fn has_events(&self, group: usize) -> bool {
        let any = |wire: &Wire| {
            wire.group == group && wire.pending && !wire.dropped && wire.token.is_some()
        };
        self.pending_accepts[group] || self.wires.iter().any(any)
    }

    /// Draws the events for one turn of a group, in any order; sometimes a part of them.
    pub(crate) fn take_events(&mut self, group: usize, events: &mut Vec<Event>) {
        events.clear();
        let all = self.random.chance(800);
        if std::mem::take(&mut self.pending_accepts[group]) {
            let token = pool::listener_token(0);
            events.push(Event {
                token,
                readable: true,
                writable: false,
                closed: false,
            });
        }
        for id in 0..self.wires.len() {
            let wire = &self.wires[id];
            let due = wire.group == group && wire.pending && !wire.dropped;
            let Some(token) = wire.token.filter(|_| due) else {
                continue;
            };
            if all || self.random.chance(500) {
                self.wires[id].pending = false;
                events.push(self.wires[id].event(token));
            }
        }
        for i in (1..events.len()).rev() {
            events.swap(i, self.random.index(i + 1));
        }
    }

    /// Looks at what passes by, for the order of statements.
    fn tap(&mut self, id: usize, bytes: &[u8]) {
        let wire = &mut self.wires[id];
        wire.tap.extend_from_slice(bytes);
        let peer = wire.peer;
        // No packet begins so: it would be longer than any that is sent here.
        if wire.tap.starts_with(&PROXY_HEADER[..HEADER_LEN]) {
            if wire.tap.len() < PROXY_HEADER.len() {
                return;
            }
            wire.tap.drain(..PROXY_HEADER.len());
        }
        while let Frame::Whole { total, .. } = frame(&self.wires[id].tap) {
            let message: Vec<u8> = self.wires[id].tap.drain(..total).collect();
            if message.get(HEADER_LEN) != Some(&Command::Query.byte()) || message[3] != 0 {
                continue;
            }
            let Some(tag) = tag_of(&message[HEADER_LEN + 1..]) else {
                continue;
            };
            self.sequence += 1;
            match peer {
                Peer::Client(_) => drop(self.read_at.insert(tag, self.sequence)),
                Peer::Server => self.dispatched.push(tag),
            }
        }
    }

    fn drop_sock(&mut self, id: usize) {
        let wire = &mut self.wires[id];
        wire.dropped = true;
        if wire.peer == Peer::Server {
            self.server_open -= 1;
        }
    }
}

/// The group's end of a connection.
#[derive(Debug)]
pub(crate) struct Sock {
    wires: Rc<RefCell<Wires>>,
    id: usize,
}

impl Drop for Sock {
    fn drop(&mut self) {
        self.wires.borrow_mut().drop_sock(self.id);
    }
}

/// State of the disk of scratch files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disk {
    Well,
    /// Takes [`DISK_ROOM`] bytes of each group.
    Full,
    /// Written bytes cannot be read.
    Unreadable,
    /// Nothing that is begun ends.
    Hung,
}

/// Bytes that fit on a disk that is full.
const DISK_ROOM: usize = 8 * 1024;

/// A scratch file of a group, in memory.
#[derive(Debug)]
pub(crate) struct SimFile(RefCell<Vec<u8>>, Disk);

impl SimFile {
    /// One on this disk.
    pub(crate) fn new(disk: Disk) -> SimFile {
        SimFile(RefCell::default(), disk)
    }
}

impl Scratch for SimFile {
    fn write_at(&self, bytes: &[u8], at: u64) -> std::io::Result<()> {
        let at = usize::try_from(at).map_err(Error::other)?;
        let mut file = self.0.borrow_mut();
        let len = file.len().max(at + bytes.len());
        if self.1 == Disk::Full && len > DISK_ROOM {
            return Err(ErrorKind::StorageFull.into());
        }
        file.resize(len, 0);
        file[at..at + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn read_at(&self, bytes: &mut [u8], at: u64) -> std::io::Result<()> {
        if self.1 == Disk::Unreadable {
            return Err(Error::other("input/output error"));
        }
        let at = usize::try_from(at).map_err(Error::other)?;
        let file = self.0.borrow();
        let found = file.get(at..at + bytes.len());
        bytes.copy_from_slice(found.ok_or(ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> std::io::Result<()> {
        let len = usize::try_from(len).map_err(Error::other)?;
        self.0.borrow_mut().truncate(len);
        Ok(())
    }
}

/// The world as one group has it: its number is the second part.
#[derive(Clone, Debug)]
pub(crate) struct SimNet(pub(crate) Rc<RefCell<Wires>>, usize);

impl SimNet {
    /// The world of group 0 of `groups`.
    pub(crate) fn new(random: Random, groups: usize, server_max: usize, trace: bool) -> SimNet {
        let wires = Rc::new(RefCell::new(Wires {
            now: Time(1_000_000_000),
            random,
            wires: Vec::new(),
            dials: Dials::Stand,
            server_max,
            trace,
            backlog: vec![VecDeque::new(); groups],
            pending_accepts: vec![false; groups],
            server_open: 0,
            sequence: 0,
            looks: 0,
            read_at: HashMap::new(),
            dispatched: Vec::new(),
        }));
        SimNet(wires, 0)
    }

    /// World as another group has it.
    pub(crate) fn of(&self, group: usize) -> SimNet {
        SimNet(self.0.clone(), group)
    }

    fn sock(&self, id: usize) -> Sock {
        Sock {
            wires: self.0.clone(),
            id,
        }
    }
}

impl Net for SimNet {
    type Sock = Sock;

    fn now(&self) -> Time {
        self.0.borrow().now
    }

    fn clock(&self) -> Time {
        let mut wires = self.0.borrow_mut();
        wires.looks += 1;
        // Work takes time, of which the turn knows nothing.
        wires.now + Duration::from_micros(70) * wires.looks
    }

    fn accept(&mut self, _listener: usize) -> std::io::Result<Option<Sock>> {
        let next = self.0.borrow_mut().backlog[self.1].pop_front();
        Ok(next.map(|id| self.sock(id)))
    }

    fn peer(&self, sock: &Sock) -> Option<SocketAddr> {
        match self.0.borrow().wires[sock.id].peer {
            Peer::Client(client) if is_proxied(client) => Some((PROXY, 6033).into()),
            _ => None,
        }
    }

    fn connect(&mut self, _to: &Address) -> std::io::Result<Sock> {
        let mut wires = self.0.borrow_mut();
        let wait = Duration::from_micros(wires.random.below(3000));
        let (at, at_once) = (wires.now + wait, wires.random.chance(200));
        let stage = match wires.dials {
            Dials::Impossible => return Err(Error::from(ErrorKind::AddrNotAvailable)),
            Dials::Stand if at_once => Stage::Stands,
            Dials::Stand => Stage::Dialling(at, true),
            Dials::Refused => Stage::Dialling(at, false),
            Dials::Lost => Stage::Dialling(Time::NEVER, false),
        };
        let id = wires.add(self.1, Peer::Server, stage);
        wires.server_open += 1;
        wires.note(|| format!("dial {id} {stage:?}"));
        assert!(
            wires.server_open <= wires.server_max,
            "{} connections to the server, at most {} may be",
            wires.server_open,
            wires.server_max
        );
        drop(wires);
        Ok(self.sock(id))
    }

    fn connected(&mut self, sock: &Sock) -> std::io::Result<()> {
        match self.0.borrow().wires[sock.id].stage {
            Stage::Refused => Err(Error::from(ErrorKind::ConnectionRefused)),
            _ => Ok(()),
        }
    }

    fn watch(&mut self, sock: &Sock, token: Token) -> std::io::Result<()> {
        let wire = &mut self.0.borrow_mut().wires[sock.id];
        wire.token = Some(token);
        wire.pending = !matches!(wire.stage, Stage::Dialling(..));
        Ok(())
    }

    fn unwatch(&mut self, sock: &Sock) -> std::io::Result<()> {
        self.0.borrow_mut().wires[sock.id].token = None;
        Ok(())
    }

    fn read(&mut self, sock: &Sock, buffer: &mut [u8]) -> Read {
        assert!(!buffer.is_empty(), "a read into an empty buffer");
        let mut wires = self.0.borrow_mut();
        let wire = &mut wires.wires[sock.id];
        let n = wire.arrived.len().min(buffer.len());
        if n > 0 {
            let bytes: Vec<u8> = wire.arrived.drain(..n).collect();
            buffer[..n].copy_from_slice(&bytes);
            if matches!(wire.peer, Peer::Client(_)) {
                wires.tap(sock.id, &bytes);
            }
            return Read::Bytes(n);
        }
        if wire.reset {
            Read::Failed(Error::from(ErrorKind::ConnectionReset))
        } else if wire.end_arrived {
            Read::End
        } else {
            Read::Blocked
        }
    }

    fn write(&mut self, sock: &Sock, bytes: &[u8]) -> Write {
        assert!(!bytes.is_empty(), "a write of nothing");
        let mut wires = self.0.borrow_mut();
        let wire = &mut wires.wires[sock.id];
        match wire.stage {
            Stage::Dialling(..) => return Write::Failed(Error::from(ErrorKind::NotConnected)),
            _ if wire.reset => return Write::Failed(Error::from(ErrorKind::BrokenPipe)),
            _ => {}
        }
        let n = bytes.len().min(wire.room_max - wire.written.len());
        if n == 0 {
            wire.blocked = true;
            return Write::Blocked;
        }
        wire.written.extend(&bytes[..n]);
        if wire.peer == Peer::Server {
            wires.tap(sock.id, &bytes[..n]);
        }
        Write::Bytes(n)
    }

    fn random(&mut self, bytes: &mut [u8]) {
        let mut wires = self.0.borrow_mut();
        bytes.fill_with(|| wires.random.next().to_le_bytes()[0]);
    }
}
