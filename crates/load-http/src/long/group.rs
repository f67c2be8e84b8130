//! One group of long connections: a thread, its poll, and its share of the connections.
//!
//! What a connection says and hears is a [`Talk`]; this file opens connections at their pace, gives
//! each the bytes that come for it, wakes it when it asked for that, opens it again where that is
//! right, and closes what takes too long.
//!
//! Invariants:
//! - a connection is its struct: bytes are read into the group's buffer, and what does not fit
//!   (half a head, a full socket) is the talk's to keep;
//! - a wake or an event for a connection that is gone finds nothing;
//! - time limits are looked at once a second, for all connections in one pass, so that a limit
//!   costs no memory.

use super::counts::{Census, Counts, Marks, Verdict};
use super::live::Gauges;
use load_core::control::Part;
use load_core::errors::{Fault, Step};
use load_core::event_loop::{self, CONNECTION, Milestone, Turns, Waking};
use load_core::pace::Pace;
use load_core::ports::Sources;
use load_core::random::Random;
use load_core::transport::{Came, Ending, Handshake, Security, Transport};
use reactor::{Address, Event, Key, Mailbox, Net, RealNet, Slots, Time, Token, Write};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

/// Bytes that are read at once.
const BUFFER_BYTES: usize = 64 * 1024;
/// Interval at which limits of time are checked.
const SWEEP_EVERY: Duration = Duration::from_secs(1);
/// Failures in a row after which no more connections are opened.
const FAILURES_MAX: u32 = 64;
/// Pause before a connection that was lost or failed is opened again.
const REOPEN_PAUSE: Duration = Duration::from_secs(1);

/// Plan that all groups know; `own` is the talk's part.
#[derive(Debug)]
pub(super) struct Plan<P> {
    pub(super) address: Address,
    pub(super) security: Security,
    pub(super) sources: Sources,
    pub(super) connect_timeout: Duration,
    pub(super) connects_in_flight: u32,
    pub(super) seed: u64,
    /// First number of users, where it is ordered while the run goes on ([`Order::Users`]).
    pub(super) ordered_users: Option<u32>,
    pub(super) own: P,
}

/// A group's part of the whole.
#[derive(Debug)]
pub(super) struct Share {
    pub(super) group: usize,
    /// Index of its first connection.
    pub(super) first: u32,
    pub(super) connections: u32,
    /// 0 is as fast as possible.
    pub(super) connects_per_second: f64,
    pub(super) part: Part,
}

/// Orders of the main thread.
#[derive(Clone, Copy, Debug)]
pub(super) enum Order {
    /// Talk from now on.
    Start,
    /// Hand over what was counted.
    Report,
    /// Number of connections of all groups that are to be open.
    Users(u32),
    /// Begin nothing more, and end by then at the latest.
    Stop(Time),
}

/// Messages of a group to the main thread.
#[derive(Debug)]
pub(super) enum Message {
    /// End of the ramp: every connection has been tried.
    Settled,
    Counted(Box<Counted>),
    /// The last numbers.
    Ended(Box<Counted>, Census),
    Failed(String),
}

/// Numbers of a group since they were last taken.
#[derive(Debug)]
pub(super) struct Counted {
    pub(super) group: usize,
    pub(super) counts: Counts,
    pub(super) gauges: Gauges,
}

/// Decision on a connection behind an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Stays,
    /// Ended in order.
    Ends,
}

/// Resources that a group lends a connection.
pub(super) struct Context<'a, P> {
    pub(super) plan: &'a P,
    pub(super) counts: &'a mut Counts,
    pub(super) marks: &'a mut Marks,
    pub(super) random: &'a mut Random,
    net: &'a mut RealNet,
    transport: &'a mut Transport,
    pub(super) now: Time,
    /// True while a new exchange may begin.
    pub(super) running: bool,
    /// Set by the talk: when it wants to be woken; `None` leaves it asleep.
    pub(super) wake_at: Option<Time>,
}

impl<P> Context<'_, P> {
    /// Writes from `bytes`, which is not empty.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Write {
        self.transport.write(self.net, bytes)
    }

    /// Counts `count` messages of one verdict, if there are any.
    pub(super) fn judge(&mut self, verdict: Verdict, count: u64) {
        if count > 0 {
            self.counts.judge(verdict, count);
            self.marks.note(verdict);
        }
    }
}

/// Protocol of a connection, from the moment at which it is open.
pub(super) trait Talk: Sized {
    /// Part of the plan that all its connections share.
    type Plan: Send + Sync + 'static;
    /// A connection that is gone is opened again.
    const REOPENS: bool;
    /// Protocols that are offered to a server under TLS (ALPN).
    const PROTOCOLS: &'static [&'static [u8]] = &[];

    /// Connection that stands, and was asked for at an earlier moment.
    fn new(asked_at: Time, now: Time) -> Self;
    /// Sends what comes before anybody begins to talk.
    fn greet(&mut self, _context: &mut Context<'_, Self::Plan>) -> Result<Next, Fault> {
        Ok(Next::Stays)
    }
    /// Reason against a connection with the protocol that both sides agreed on.
    fn unfit(_plan: &Self::Plan, _protocol: Option<&[u8]>) -> Option<Fault> {
        None
    }
    /// Begins to talk, with everybody else (`is_first`) or after it was opened later.
    fn begin(
        &mut self,
        context: &mut Context<'_, Self::Plan>,
        is_first: bool,
    ) -> Result<Next, Fault>;
    /// Acts at the moment that it asked to be woken at.
    fn wake(&mut self, context: &mut Context<'_, Self::Plan>) -> Result<Next, Fault>;
    /// Writes on, now that there is room.
    fn resume(&mut self, context: &mut Context<'_, Self::Plan>) -> Result<Next, Fault>;
    /// Takes bytes that have come.
    fn hear(&mut self, context: &mut Context<'_, Self::Plan>, bytes: &[u8]) -> Result<Next, Fault>;
    /// Takes the end of the connection by the server.
    fn ended(&mut self, context: &mut Context<'_, Self::Plan>, how: Ending) -> Result<Next, Fault>;
    /// Fault of an exchange that has taken too long.
    fn overdue(&self, plan: &Self::Plan, now: Time) -> Option<Fault>;
    /// True while the end of the run should wait for it.
    fn is_busy(&self) -> bool;
    /// Notes the loss of the connection before its time.
    fn lost(&mut self, context: &mut Context<'_, Self::Plan>);
    /// Counts what is open when the run is over, or was when the connection was gone already.
    fn finish(&mut self, plan: &Self::Plan, counts: &mut Counts, marks: &mut Marks, end: Time);
}

/// Stage of a connection.
enum Stage<T> {
    /// Connection that the system is opening.
    Connecting,
    /// TLS is being agreed on.
    Securing,
    Talking(T),
}

impl<T> Stage<T> {
    fn talk(&self) -> Option<&T> {
        match self {
            Stage::Talking(talk) => Some(talk),
            Stage::Connecting | Stage::Securing => None,
        }
    }

    fn talk_mut(&mut self) -> Option<&mut T> {
        match self {
            Stage::Talking(talk) => Some(talk),
            Stage::Connecting | Stage::Securing => None,
        }
    }
}

/// A connection.
struct Line<T> {
    transport: Transport,
    /// Slot of the connection in its group.
    slot: u32,
    stage: Stage<T>,
    /// Moment at which opening began.
    since: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Wake {
    Talk(Key),
    /// Slot to be opened again.
    Open(u32),
}

/// A group at work.
struct Group<T: Talk> {
    net: RealNet,
    plan: Arc<Plan<T::Plan>>,
    share: Share,
    lines: Slots<Line<T>>,
    /// Talks whose connection is gone for good, with their slots.
    gone: Vec<(u32, T)>,
    /// A byte for each slot.
    marks: Vec<Marks>,
    counts: Counts,
    random: Random,
    wakes: BinaryHeap<Reverse<(Time, Wake)>>,
    sweep_at: Time,
    /// Seats never tried, the number of those being opened, and how many failed in a row.
    fresh: u32,
    in_flight: u32,
    failures: u32,
    /// Number of connections that may be open, being opened or waiting for that.
    allowed: u32,
    /// Number of these that wait for being opened again.
    reopening: u32,
    /// Seats that were open and are not wanted for now.
    parked: Vec<u32>,
    pace: Pace,
    standing: u32,
    buffer: Vec<u8>,
    mailbox: Mailbox<Order>,
    letters: SyncSender<Message>,
    running: bool,
    reached: Milestone,
    /// Latest moment to end, once told to stop; and when that was.
    end: Option<(Time, Time)>,
}

/// Runs a group's thread.
pub(super) fn run<T: Talk>(
    plan: Arc<Plan<T::Plan>>,
    share: Share,
    mailbox: Mailbox<Order>,
    letters: SyncSender<Message>,
) {
    let failure = letters.clone();
    let result = Group::<T>::new(plan, share, mailbox, letters).and_then(event_loop::run);
    if let Err(reason) = result {
        // When the main thread is gone nobody is left to be told.
        let _ = failure.send(Message::Failed(reason));
    }
}

impl<T: Talk> Turns for Group<T> {
    fn net(&mut self) -> &mut RealNet {
        &mut self.net
    }

    fn deadline(&self) -> Time {
        let now = self.net.now();
        let open = if self.may_open() {
            self.pace.due(now)
        } else {
            Time::NEVER
        };
        let wake = self
            .wakes
            .peek()
            .map_or(Time::NEVER, |Reverse((due, _))| *due);
        open.min(wake).min(self.sweep_at)
    }

    fn obey(&mut self) {
        self.follow_orders();
    }

    fn on_event(&mut self, event: &Event) {
        self.on_socket(event);
    }

    fn turn(&mut self) {
        self.wake_some();
        self.open_some();
        self.sweep();
        if self.reached == Milestone::Opening && self.fresh == 0 && self.in_flight == 0 {
            self.reached = Milestone::Settled;
            self.tell(Message::Settled);
        }
    }

    fn is_over(&self) -> bool {
        let is_busy = |(_, line): (Key, &Line<T>)| line.stage.talk().is_some_and(Talk::is_busy);
        self.end
            .is_some_and(|(end, _)| self.net.now() >= end || !self.lines.iter().any(is_busy))
    }

    fn finish(self) {
        self.hand_over();
    }
}

impl<T: Talk> Group<T> {
    fn new(
        plan: Arc<Plan<T::Plan>>,
        share: Share,
        mailbox: Mailbox<Order>,
        letters: SyncSender<Message>,
    ) -> Result<Group<T>, String> {
        let mut net = event_loop::open(Waking::Gently)?;
        event_loop::watch_mailbox(&mut net, &mailbox)?;
        let now = net.now();
        Ok(Group {
            lines: Slots::with_capacity(share.connections as usize),
            gone: Vec::new(),
            marks: vec![Marks::default(); share.connections as usize],
            counts: Counts::default(),
            random: Random::new(plan.seed, share.first.into()),
            wakes: BinaryHeap::new(),
            sweep_at: now + SWEEP_EVERY,
            fresh: share.connections,
            in_flight: 0,
            failures: 0,
            allowed: plan
                .ordered_users
                .map_or(u32::MAX, |users| share.part.of(users)),
            reopening: 0,
            parked: Vec::new(),
            pace: Pace::new(share.connects_per_second, now),
            standing: 0,
            buffer: vec![0; BUFFER_BYTES],
            mailbox,
            letters,
            running: false,
            reached: Milestone::Opening,
            end: None,
            net,
            plan,
            share,
        })
    }

    fn follow_orders(&mut self) {
        for order in self.mailbox.take() {
            match order {
                Order::Start => {
                    self.running = true;
                    for key in self.lines.keys() {
                        self.talk(key, |talk, context| talk.begin(context, true));
                    }
                }
                Order::Report => {
                    let counted = self.counted();
                    self.tell(Message::Counted(counted));
                }
                Order::Users(users) => self.allow(self.share.part.of(users)),
                Order::Stop(end) => {
                    self.running = false;
                    self.fresh = 0;
                    self.parked.clear();
                    self.end = Some((end, Time::now()));
                }
            }
        }
    }

    /// True if there are orders on the number of connections.
    fn is_ordered(&self) -> bool {
        self.plan.ordered_users.is_some()
    }

    /// A connection that is gone is opened again.
    fn reopens(&self) -> bool {
        T::REOPENS || self.is_ordered()
    }

    /// Lets so many connections be open from now on. Those that are too many end at once, or with
    /// the answer that they wait for.
    fn allow(&mut self, allowed: u32) {
        self.allowed = allowed;
        for key in self.lines.keys() {
            if !self.has_surplus() {
                return;
            }
            self.talk(key, |_, _| Ok(Next::Stays));
        }
    }

    /// Connections that are open, being opened, or to be opened again.
    fn out(&self) -> u32 {
        self.standing + self.in_flight + self.reopening
    }

    /// True if some of them have to end.
    fn has_surplus(&self) -> bool {
        self.out() > self.allowed
    }

    fn may_open(&self) -> bool {
        let is_any = self.fresh > 0 || !self.parked.is_empty();
        is_any && self.in_flight < self.plan.connects_in_flight && self.out() < self.allowed
    }

    /// Ends one connection too many: nothing more is expected of it.
    fn retire(&mut self, key: Key) {
        let Some(Line { slot, stage, .. }) = self.lines.remove(key) else {
            return;
        };
        self.standing -= 1;
        if let (Stage::Talking(mut talk), Some(marks)) = (stage, self.marks.get_mut(slot as usize))
        {
            talk.finish(&self.plan.own, &mut self.counts, marks, Time::now());
        }
        self.parked.push(slot);
    }

    fn tell(&self, message: Message) {
        // The main thread outlives its groups; if it does not, the process is ending.
        let _ = self.letters.send(message);
    }

    fn counted(&mut self) -> Box<Counted> {
        let counts = std::mem::take(&mut self.counts);
        let is_busy = |(_, line): &(Key, &Line<T>)| line.stage.talk().is_some_and(Talk::is_busy);
        let waiting = self.lines.iter().filter(is_busy).count() as u64;
        Box::new(Counted {
            group: self.share.group,
            counts,
            gauges: Gauges {
                connected: self.standing.into(),
                opening: self.in_flight.into(),
                waiting,
            },
        })
    }

    fn on_socket(&mut self, event: &Event) {
        let key = event.token.key();
        let Some(line) = self.lines.get(key) else {
            return;
        };
        if line.stage.talk().is_none() {
            return self.go_on_opening(key, event);
        }
        if event.writable {
            self.talk(key, |talk, context| {
                context.transport.flush(context.net)?;
                talk.resume(context)
            });
        }
        if event.readable {
            self.read_all(key, event.closed);
        }
    }

    /// Carries on with the opening of a connection, or ends one that has failed.
    fn go_on_opening(&mut self, key: Key, event: &Event) {
        match self.open_further(key) {
            Ok(Handshake::Done) => self.stand(key, event),
            Ok(Handshake::Waits) => {}
            Err(fault) => self.open_failed(key, &fault),
        }
    }

    fn open_further(&mut self, key: Key) -> Result<Handshake, Fault> {
        let Some(line) = self.lines.get_mut(key) else {
            return Ok(Handshake::Waits);
        };
        if let Stage::Connecting = line.stage {
            let connected = self.net.connected(line.transport.sock());
            connected.map_err(|error| Fault::system(&error))?;
            line.stage = Stage::Securing;
        }
        let how_far = line.transport.handshake(&mut self.net)?;
        let unfit = match how_far {
            Handshake::Done => T::unfit(&self.plan.own, line.transport.protocol()),
            Handshake::Waits => None,
        };
        unfit.map_or(Ok(how_far), Err)
    }

    /// Begins the talk on a connection that has come to stand.
    fn stand(&mut self, key: Key, event: &Event) {
        let Some(line) = self.lines.get_mut(key) else {
            return;
        };
        let now = Time::now();
        line.stage = Stage::Talking(T::new(line.since, now));
        self.counts.connected(now.since(line.since));
        self.counts.resumed += u64::from(line.transport.is_resumed());
        (self.in_flight, self.failures) = (self.in_flight - 1, 0);
        self.standing += 1;
        self.talk(key, Talk::greet);
        if self.running {
            self.talk(key, |talk, context| talk.begin(context, false));
        }
        let line = self.lines.get(key);
        // What came with the end of a handshake has been read already: no event will tell of it.
        let may_have_read = line.is_some_and(|l| !l.transport.is_emptied_by_short_read());
        if event.readable || may_have_read {
            self.read_all(key, event.closed);
        }
    }

    fn read_all(&mut self, key: Key, closed: bool) {
        let mut buffer = std::mem::take(&mut self.buffer);
        while let Some(line) = self.lines.get_mut(key) {
            let is_plain = line.transport.is_emptied_by_short_read();
            match line.transport.read(&mut self.net, &mut buffer) {
                Came::Bytes(count) => {
                    self.counts.bytes += count as u64;
                    self.talk(key, |talk, context| talk.hear(context, &buffer[..count]));
                    // Less than was asked for means that the socket is empty, unless the peer's
                    // end is still to be heard.
                    if count < buffer.len() && is_plain && !closed {
                        break;
                    }
                }
                Came::Blocked => break,
                Came::End(how) => {
                    self.talk(key, |talk, context| {
                        talk.ended(context, how).map(|_| Next::Ends)
                    });
                }
                Came::Failed(fault) => self.talk(key, |_, _| Err(fault)),
            }
        }
        self.buffer = buffer;
    }

    /// Lets a connection that stands do something, and sees to what comes of it.
    fn talk(
        &mut self,
        key: Key,
        act: impl FnOnce(&mut T, &mut Context<'_, T::Plan>) -> Result<Next, Fault>,
    ) {
        let has_surplus = self.has_surplus();
        let Some(line) = self.lines.get_mut(key) else {
            return;
        };
        let Some(talk) = line.stage.talk_mut() else {
            return;
        };
        let mut context = Context {
            plan: &self.plan.own,
            counts: &mut self.counts,
            marks: &mut self.marks[line.slot as usize],
            random: &mut self.random,
            net: &mut self.net,
            transport: &mut line.transport,
            now: Time::now(),
            running: self.running && !has_surplus,
            wake_at: None,
        };
        let result = act(talk, &mut context);
        if result.is_err() {
            talk.lost(&mut context);
        }
        let is_busy = talk.is_busy();
        let (now, wake_at) = (context.now, context.wake_at);
        match result {
            Ok(Next::Stays) if has_surplus && !is_busy => self.retire(key),
            Ok(Next::Stays) => {
                if let Some(at) = wake_at {
                    self.wakes.push(Reverse((at, Wake::Talk(key))));
                }
            }
            Ok(Next::Ends) => self.close(key, wake_at.unwrap_or(now)),
            Err(fault) => {
                self.counts.lost_connections += 1;
                self.counts
                    .errors
                    .count(load_core::errors::Phase::Statement, fault);
                self.close(key, now + REOPEN_PAUSE);
            }
        }
    }

    /// Closes a connection that stood; where it is opened again that is at `again`.
    fn close(&mut self, key: Key, again: Time) {
        let Some(line) = self.lines.remove(key) else {
            return;
        };
        self.standing -= 1;
        match line.stage {
            Stage::Talking(talk) if !self.reopens() => self.gone.push((line.slot, talk)),
            Stage::Talking(mut talk) if !T::REOPENS => {
                let marks = &mut self.marks[line.slot as usize];
                talk.finish(&self.plan.own, &mut self.counts, marks, Time::now());
                self.reopen_at(again, line.slot);
            }
            _ => self.reopen_at(again, line.slot),
        }
    }

    fn reopen_at(&mut self, again: Time, slot: u32) {
        self.reopening += 1;
        self.wakes.push(Reverse((again, Wake::Open(slot))));
    }

    /// Handles a connection that could not be opened.
    fn open_failed(&mut self, key: Key, fault: &Fault) {
        if let Some(line) = self.lines.remove(key) {
            self.slot_failed(line.slot, fault);
        }
    }

    fn slot_failed(&mut self, slot: u32, fault: &Fault) {
        self.in_flight -= 1;
        self.failures += 1;
        self.counts.connect_failed(fault.clone());
        // Whoever orders users may order fewer where there cannot be more.
        let is_hopeless = fault.is_own_limit() || self.failures >= FAILURES_MAX;
        if is_hopeless && !self.is_ordered() {
            self.fresh = 0;
        }
        if self.reopens() && self.running {
            self.reopen_at(self.net.now() + REOPEN_PAUSE, slot);
        }
    }

    fn wake_some(&mut self) {
        let now = Time::now();
        while let Some(&Reverse((due, wake))) = self.wakes.peek() {
            if due > now {
                return;
            }
            self.wakes.pop();
            match wake {
                Wake::Talk(key) => self.talk(key, Talk::wake),
                Wake::Open(_) if self.end.is_some() => self.reopening -= 1,
                Wake::Open(slot) if self.has_surplus() => {
                    self.reopening -= 1;
                    self.parked.push(slot);
                }
                Wake::Open(slot) => {
                    self.reopening -= 1;
                    self.counts.reopened += 1;
                    self.open(slot);
                }
            }
        }
    }

    fn open_some(&mut self) {
        let now = self.net.now();
        while self.may_open() && self.pace.take(now) {
            let slot = self.parked.pop().unwrap_or_else(|| {
                self.fresh -= 1;
                self.share.connections - self.fresh - 1
            });
            self.open(slot);
        }
    }

    fn open(&mut self, slot: u32) {
        self.in_flight += 1;
        let source = self
            .plan
            .sources
            .of(u64::from(self.share.first) + u64::from(slot));
        let sock = match self.net.connect_from(&self.plan.address, source) {
            Ok(sock) => sock,
            Err(error) => return self.slot_failed(slot, &Fault::system(&error)),
        };
        let transport = match Transport::new(sock, &self.plan.security) {
            Ok(transport) => transport,
            Err(fault) => return self.slot_failed(slot, &fault),
        };
        let since = Time::now();
        let key = self.lines.insert(Line {
            transport,
            slot,
            stage: Stage::Connecting,
            since,
        });
        if let Some(line) = self.lines.get(key)
            && let Err(error) = self
                .net
                .watch(line.transport.sock(), Token::new(CONNECTION, key))
        {
            self.open_failed(key, &Fault::system(&error));
        }
    }

    /// Closes what takes too long.
    fn sweep(&mut self) {
        let now = self.net.now();
        if now < self.sweep_at {
            return;
        }
        self.sweep_at = now + SWEEP_EVERY;
        let (mut late, mut unopened) = (Vec::new(), Vec::new());
        for (key, line) in self.lines.iter() {
            let step = match &line.stage {
                Stage::Talking(talk) => {
                    let fault = talk.overdue(&self.plan.own, now);
                    late.extend(fault.map(|fault| (key, fault)));
                    continue;
                }
                Stage::Connecting => Step::Connect,
                Stage::Securing => Step::Tls,
            };
            if now.since(line.since) > self.plan.connect_timeout {
                unopened.push((key, step));
            }
        }
        for (key, fault) in late {
            self.talk(key, |_, _| Err(fault));
        }
        let seconds = self.plan.connect_timeout.as_secs();
        for (key, step) in unopened {
            self.open_failed(key, &Fault::timeout(step, seconds));
        }
    }

    /// Judges what has not come, and hands over the last numbers.
    fn hand_over(mut self) {
        let end = self.end.map_or_else(Time::now, |(_, end)| end);
        let own = &self.plan.own;
        for key in self.lines.keys() {
            if let Some(Line {
                slot,
                stage: Stage::Talking(talk),
                ..
            }) = self.lines.get_mut(key)
            {
                talk.finish(own, &mut self.counts, &mut self.marks[*slot as usize], end);
            }
        }
        for (slot, talk) in &mut self.gone {
            talk.finish(own, &mut self.counts, &mut self.marks[*slot as usize], end);
        }
        let census = Census::of(&self.marks);
        let counted = self.counted();
        self.tell(Message::Ended(counted, census));
    }
}
