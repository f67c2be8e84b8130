//! One group: a thread, its descriptor table, its poll, its share of the connections.
//!
//! A turn waits for events, lets each connection deal with its own, begins those of the workload
//! that the model of load has due ([`work`]), opens connections that are due, and follows the
//! orders of the main thread: start, report, checkpoint, reset, stop. What a group counts it keeps
//! to itself until it is asked.
//!
//! Invariants:
//! - nothing on a statement's way is shared with another thread, but the number of events that are
//!   left where it has an end;
//! - whoever is to do something has it coming: an answer, a timer, an arrival, a turn (`watchman`);
//! - the buffers of [`Bench`] are lent to one connection at a time and are back when it returns;
//! - a group that has been told to stop ends within the time it was given, whatever servers do, and
//!   counts what was still executing then.

mod tally;
mod watchman;
mod work;

use crate::allowance::Allowance;
use crate::connection::Connection;
use crate::crew::Gauges;
use crate::errors::{Fault, Phase};
use crate::login::Credentials;
use crate::model::Model;
use crate::opener::Opener;
use crate::pace::Pace;
use crate::ports::Sources;
use crate::preparing::Refusals;
use crate::seat::Seat;
use crate::stats::{Stats, Tally};
use crate::tolerance::ToleranceArgs;
use crate::workload::Script;
use reactor::{
    Address, Event, Key, Mailbox, Net, RealNet, Slots, Time, Token, descriptors, scheduling,
};
use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;
use tally::Marks;
use wire::compressed::Packer;
pub(crate) use work::{Part, Work};

/// Bytes that are read at once.
const BUFFER_BYTES: usize = 64 * 1024;
/// Connections that begin their first event in one turn.
const STARTS_PER_TURN: usize = 256;
/// The connection of the event that comes so many events later is fetched from memory meanwhile.
const EVENTS_AHEAD: usize = 2;
/// Kinds of tokens.
const CONNECTION: u8 = 0;
const MAILBOX: u8 = 1;

/// What all groups need to know; never changes.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) script: Script,
    pub(crate) tolerance: ToleranceArgs,
    /// An event that has begun runs to its end when the time is over.
    pub(crate) finishes_events: bool,
    /// Statements are counted by their first word.
    pub(crate) counts_by_text: bool,
    pub(crate) model: Model,
    pub(crate) credentials: Credentials,
    /// What each connection runs after its login.
    pub(crate) init_sql: Vec<String>,
    pub(crate) address: Address,
    /// Where connections go besides, in turn.
    pub(crate) more_addresses: Vec<Address>,
    pub(crate) sources: Sources,
    pub(crate) connect_timeout: Duration,
    pub(crate) connects_in_flight: u32,
    /// Connections with which a run begins whose number is an order; `None` where options say it.
    pub(crate) ordered_users: Option<u32>,
    pub(crate) seed: u64,
}

impl Plan {
    /// Where connection `index` comes from, if not from where the kernel likes, and where it goes.
    /// All places are gone to from one source before it is the next one's turn, so that each source
    /// is used with each place, whatever their numbers.
    pub(crate) fn way_of(&self, index: u32) -> (Option<IpAddr>, &Address) {
        let places = 1 + self.more_addresses.len();
        let (round, place) = (index as usize / places, index as usize % places);
        let address = match place {
            0 => &self.address,
            place => &self.more_addresses[place - 1],
        };
        (self.sources.of(round as u64), address)
    }
}

/// A group's part of the whole.
#[derive(Debug)]
pub(crate) struct Share {
    /// Which group of how many.
    pub(crate) part: Part,
    /// Index of its first connection.
    pub(crate) first: u32,
    pub(crate) connections: u32,
    /// Connections to open each second; 0 is as fast as possible.
    pub(crate) connects_per_second: f64,
    /// Events to run, of all groups.
    pub(crate) events: Arc<Allowance>,
}

/// What the main thread wants.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Order {
    /// Execute from now on.
    Start,
    /// Hand over what was counted.
    Report,
    /// The same, with sums over connections since the last checkpoint.
    Checkpoint,
    /// Forget what was counted.
    Reset,
    /// So many connections of all groups are to be open.
    Users(u32),
    /// Somebody has run the last event; see whether this group has anything left to do.
    Look,
    /// Hand over what was counted, send no more statements, end by then.
    Stop(Time),
}

/// What a group tells the main thread.
#[derive(Debug)]
pub(crate) enum Letter {
    /// Every connection has been tried.
    Settled,
    /// Counts since the last ones.
    Counted(Box<Counted>),
    /// All events have run, or nothing is left that this group could do about those that have not.
    Finished,
    /// The group has ended; counts since the last ones, and sums over its connections.
    Ended(Box<Counted>),
    /// An error that is to end the run.
    Fatal(String),
    /// The group could not begin.
    Failed(String),
}

/// A group's numbers.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    /// Which group, from 0.
    pub(crate) group: usize,
    pub(crate) stats: Stats,
    pub(crate) gauges: Gauges,
    /// At a checkpoint and at the end only: sums over connections, since the checkpoint before.
    pub(crate) tally: Tally,
    /// At the end only: statements whose reply had not come.
    pub(crate) unfinished: u64,
}

/// What a connection works with besides itself.
pub(crate) struct Bench {
    pub(crate) net: RealNet,
    pub(crate) plan: Arc<Plan>,
    pub(crate) stats: Stats,
    /// What is read goes here.
    pub(crate) buffer: Vec<u8>,
    /// What is written is made here.
    pub(crate) out: Vec<u8>,
    /// For compression: what is unpacked, what is packed, and who does it.
    pub(crate) plain: Vec<u8>,
    pub(crate) frames: Vec<u8>,
    pub(crate) packer: Box<Packer>,
    /// Connections that wait for a reply.
    pub(crate) executing: u32,
    /// New statements may be sent.
    pub(crate) running: bool,
    /// The error that is to end the run, until it is told.
    fatal: Option<String>,
    /// What the server does not prepare.
    pub(crate) refusals: Refusals,
    pub(crate) work: Work,
    events: Arc<Allowance>,
}

impl Bench {
    /// Counts a statement that failed; true when its event is to be run again.
    pub(crate) fn failed(&mut self, fault: Fault) -> bool {
        let again = self.plan.tolerance.ignores(&fault);
        self.heed(&fault);
        self.stats.failed(fault, again);
        again
    }

    /// Ends the run where this error is one that does.
    fn heed(&mut self, fault: &Fault) {
        if self.plan.tolerance.ends_at(fault) {
            self.fatal.get_or_insert_with(|| fault.words());
        }
    }

    /// Takes leave to begin up to `wanted` more events at once; returns how many.
    pub(crate) fn take_events(&mut self, wanted: u32) -> u32 {
        self.events.take(wanted)
    }

    /// The intended start of the event that a connection is to begin now that its last one is
    /// over; `None` lets it rest.
    pub(crate) fn next_start(&mut self, now: Time) -> Option<Time> {
        let start = match self.running {
            true => self.work.next_start(now)?,
            false => return None,
        };
        // An arrival took its leave when it arrived.
        (!self.work.is_closed() || self.take_event()).then_some(start)
    }

    /// Takes leave to begin one more event.
    fn take_event(&mut self) -> bool {
        self.running && self.events.take(1) == 1
    }
}

/// A group at work.
struct Group {
    number: usize,
    bench: Bench,
    connections: Slots<Connection>,
    opener: Opener,
    /// Connections being opened, the oldest first. Keys of those that are done find nothing new.
    opening: VecDeque<(Time, Key)>,
    connected: u32,
    /// Connections that are still to begin their first event.
    starting: Vec<Key>,
    mailbox: Mailbox<Order>,
    letters: SyncSender<Letter>,
    said_settled: bool,
    said_finished: bool,
    /// When to end, once told to stop.
    end: Option<Time>,
    /// Sums over the connections that have been closed at the end.
    tally: Tally,
    /// Where each seat stood at the last checkpoint.
    marks: Marks,
}

/// The life of a group's thread.
pub(crate) fn run(
    plan: Arc<Plan>,
    share: Share,
    mailbox: Mailbox<Order>,
    letters: SyncSender<Letter>,
) {
    let failure = letters.clone();
    let result = Group::new(plan, share, mailbox, letters).and_then(Group::live);
    if let Err(error) = result {
        // When the main thread is gone nobody is left to be told.
        let _ = failure.send(Letter::Failed(error));
    }
}

impl Group {
    fn new(
        plan: Arc<Plan>,
        share: Share,
        mailbox: Mailbox<Order>,
        letters: SyncSender<Letter>,
    ) -> Result<Group, String> {
        let wrong = |what: &str, error: io::Error| format!("a group could not {what}: {error}");
        // Where this is not allowed the main thread knows it and has said so.
        let _ = descriptors::own_table();
        // Where times have to be kept, waking late would be the generator's own doing.
        if !plan.model.keeps_time() {
            let _ = scheduling::wake_gently();
        }
        let mut net = RealNet::new().map_err(|e| wrong("make its poll", e))?;
        let token = Token::new(MAILBOX, Key::from_parts(0, 0));
        net.watch_mailbox(&mailbox, token)
            .map_err(|e| wrong("watch its mailbox", e))?;
        let pace = Pace::new(share.connects_per_second, net.now());
        let in_flight_max = plan.connects_in_flight;
        let opener = Opener::new(
            share.first,
            share.connections,
            plan.seed,
            in_flight_max,
            pace,
        );
        let work = Work::new(&plan.model, share.part, share.connections, plan.seed);
        let mut group = Group {
            number: share.part.group as usize,
            bench: Bench {
                net,
                plan,
                stats: Stats::default(),
                buffer: vec![0; BUFFER_BYTES],
                out: Vec::new(),
                plain: Vec::new(),
                frames: Vec::new(),
                packer: Box::default(),
                executing: 0,
                running: false,
                fatal: None,
                refusals: Refusals::default(),
                work,
                events: share.events,
            },
            connections: Slots::with_capacity(share.connections as usize),
            opener,
            opening: VecDeque::new(),
            connected: 0,
            starting: Vec::new(),
            mailbox,
            letters,
            said_settled: false,
            said_finished: false,
            end: None,
            tally: Tally::default(),
            marks: Marks::new(share.first, share.connections),
        };
        group.allow_first_stage();
        Ok(group)
    }

    /// Turn after turn, until told to end.
    fn live(mut self) -> Result<(), String> {
        let mut events = Vec::new();
        loop {
            let deadline = self.deadline();
            let waited = self.bench.net.wait(deadline, &mut events);
            waited.map_err(|e| format!("a group's poll failed: {e}"))?;
            for (at, event) in events.iter().enumerate() {
                if let Some(coming) = events.get(at + EVENTS_AHEAD) {
                    self.connections.prefetch(coming.token.key());
                }
                if event.token.kind() == MAILBOX {
                    self.obey();
                } else {
                    self.on_event(event);
                }
            }
            self.start_some();
            self.work_due();
            self.open_some();
            self.expire_some();
            if cfg!(debug_assertions) {
                self.look_after_all();
            }
            if self.is_over() {
                self.finish();
                return Ok(());
            }
            self.say_news();
        }
    }

    /// When the next turn has to come at the latest.
    fn deadline(&self) -> Time {
        let now = self.bench.net.now();
        if !self.starting.is_empty() {
            return now;
        }
        let expiry = self.opening.front().map_or(Time::NEVER, |(began, _)| {
            *began + self.bench.plan.connect_timeout
        });
        self.opener
            .due(now)
            .min(expiry)
            .min(self.bench.work.due(&self.bench.plan.model, now))
            .min(self.end.unwrap_or(Time::NEVER))
    }

    fn obey(&mut self) {
        for order in self.mailbox.take() {
            match order {
                Order::Start => self.begin_work(),
                Order::Report => {
                    let counted = self.counted();
                    self.tell(Letter::Counted(counted));
                }
                Order::Checkpoint => self.checkpoint(),
                Order::Reset => self.reset(),
                Order::Users(users) => self.bench.work.users = Some(users),
                // What there is to see is looked at in every turn.
                Order::Look => {}
                Order::Stop(end) => {
                    let counted = self.counted();
                    self.tell(Letter::Counted(counted));
                    self.bench.running = false;
                    self.bench.work.stop();
                    self.starting = Vec::new();
                    self.end = Some(end);
                }
            }
        }
    }

    fn tell(&self, letter: Letter) {
        // The main thread outlives its groups; if it does not, the process is ending.
        let _ = self.letters.send(letter);
    }

    fn counted(&mut self) -> Box<Counted> {
        Box::new(Counted {
            group: self.number,
            stats: std::mem::take(&mut self.bench.stats),
            gauges: Gauges {
                connected: self.connected.into(),
                executing: self.bench.executing.into(),
                waiting: self.bench.work.waiting(),
                cpu: measure::process::thread_cpu(),
            },
            ..Counted::default()
        })
    }

    fn on_event(&mut self, event: &Event) {
        let key = event.token.key();
        let Some(connection) = self.connections.get_mut(key) else {
            return;
        };
        let (was_opening, was_busy) = (connection.is_opening(), !connection.is_idle());
        let bench = &mut self.bench;
        let mut result = Ok(());
        if event.writable {
            result = connection.on_writable(bench);
        }
        if event.readable && result.is_ok() {
            result = connection.on_readable(bench, event.closed);
        }
        if result.is_ok() && was_opening && !connection.is_opening() {
            self.connected += 1;
            self.opener.opened();
            result = self.on_login(key);
        }
        match result {
            Err(fault) => self.close(key, fault),
            Ok(()) if self.end.is_none() => self.after_event(key, was_busy),
            // It may hold locks that others wait for: it goes at once. All others go later, for
            // closing slows down those that are still measured.
            Ok(()) if self.bench.plan.script.has_transaction() => self.retire_idle(key),
            Ok(()) => {}
        }
    }

    /// Ends a connection for a reason and decides whether it is opened again.
    fn close(&mut self, key: Key, fault: Fault) {
        let Some(connection) = self.connections.remove(key) else {
            return;
        };
        let now = self.bench.net.now();
        if connection.is_opening() {
            return self.count_failed_connect(connection.seat, connection.phase(), fault, now);
        }
        self.connected -= 1;
        self.bench.stats.lost += 1;
        if connection.is_executing() {
            self.bench.executing -= 1;
            self.bench.failed(fault);
        } else {
            self.bench.stats.errors.count(Phase::Statement, fault);
        }
        // At the end it stays closed, but its part is counted with the others that wait.
        self.opener.lost(connection.seat, now);
    }

    fn count_failed_connect(&mut self, seat: Seat, phase: Phase, fault: Fault, now: Time) {
        if self.opener.failed(seat, &fault, now) {
            self.bench.heed(&fault);
            self.bench.stats.failed_connects += 1;
            self.bench.stats.errors.count(phase, fault);
        }
    }

    fn start_some(&mut self) {
        let from = self.starting.len().saturating_sub(STARTS_PER_TURN);
        for key in self.starting.split_off(from) {
            let now = Time::now();
            let Some(connection) = self.connections.get_mut(key) else {
                continue;
            };
            if !connection.is_idle() {
                continue;
            }
            match connection.begin_event(&mut self.bench, now) {
                Ok(()) => self.after_event(key, true),
                Err(fault) => self.close(key, fault),
            }
        }
    }

    fn open_some(&mut self) {
        let now = self.bench.net.now();
        if self.end.is_some() {
            return;
        }
        while let Some(seat) = self.opener.next(now) {
            if let Err((seat, error)) = self.open(seat, now) {
                self.count_failed_connect(seat, Phase::Connect, Fault::system(&error), now);
            }
        }
    }

    fn open(&mut self, seat: Seat, now: Time) -> Result<(), (Seat, io::Error)> {
        let (source, address) = self.bench.plan.way_of(seat.index);
        let dialled = self.bench.net.connect_from(address, source);
        let sock = dialled.map_err(|error| (seat, error))?;
        let key = self.connections.insert(Connection::new(sock, seat, now));
        if let Some(connection) = self.connections.get(key) {
            let watched = self
                .bench
                .net
                .watch(connection.sock(), Token::new(CONNECTION, key));
            if let Err(error) = watched {
                self.connections.remove(key);
                return Err((seat, error));
            }
        }
        self.opening.push_back((now, key));
        if seat.repeats > 0 {
            self.watch(key);
        }
        Ok(())
    }

    /// Gives up connections that have been opening for too long.
    fn expire_some(&mut self) {
        let now = self.bench.net.now();
        let timeout = self.bench.plan.connect_timeout;
        while let Some(&(began, key)) = self.opening.front() {
            let is_opening = self
                .connections
                .get(key)
                .is_some_and(Connection::is_opening);
            if is_opening && began + timeout > now {
                return;
            }
            self.opening.pop_front();
            if is_opening {
                self.close(key, Fault::timeout(timeout.as_secs()));
            }
        }
    }

    fn is_over(&self) -> bool {
        let is_late = |end| self.bench.net.now() >= end;
        self.end
            .is_some_and(|end| self.bench.executing == 0 || is_late(end))
    }

    fn say_news(&mut self) {
        if let Some(reason) = self.bench.fatal.take() {
            self.tell(Letter::Fatal(reason));
        }
        if !self.said_settled && self.opener.is_settled() {
            self.said_settled = true;
            self.tell(Letter::Settled);
        }
        if !self.said_finished && self.is_finished() {
            self.said_finished = true;
            self.tell(Letter::Finished);
        }
    }
}
