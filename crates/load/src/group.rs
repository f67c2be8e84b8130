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
//! - whoever is to do something has it coming: an answer, a timer, an arrival, a turn
//!   (`idle_check`);
//! - the buffers of [`Context`] are lent to one connection at a time and are back when it returns;
//! - a group that has been told to stop ends within the time it was given, whatever servers do, and
//!   counts what was still executing then.

mod idle_check;
mod tally;
mod work;

use crate::connection::Connection;
use crate::context::Context;
use crate::preparing::Refusals;
use crate::work::Work;
use load_core::connection_slot::ConnectionSlot;
use load_core::control::{Counted, Gauges, Message, Order, Share};
use load_core::errors::{Fault, Phase, Step};
use load_core::event_loop::{self, CONNECTION, Milestone, Turns, Waking};
use load_core::opener::Opener;
use load_core::pace::Pace;
use load_core::plan::Plan;
use load_core::stats::{Stats, Tally};
use load_core::transport::Transport;
use reactor::{Event, Key, Mailbox, Net, RealNet, Slots, Time, Token};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;
use tally::Marks;

/// Bytes that are read at once.
const BUFFER_BYTES: usize = 64 * 1024;
/// Connections that begin their first event in one turn.
const STARTS_PER_TURN: usize = 256;

/// A group at work.
struct Group {
    number: usize,
    context: Context,
    connections: Slots<Connection>,
    opener: Opener,
    /// Connections being opened, the oldest first. Keys of those that are done find nothing new.
    opening: VecDeque<(Time, Key)>,
    connected: u32,
    /// Connections that are still to begin their first event.
    starting: Vec<Key>,
    mailbox: Mailbox<Order>,
    letters: SyncSender<Message>,
    reached: Milestone,
    /// Moment to end at, once told to stop.
    end: Option<Time>,
    /// Sums over the connections that have been closed at the end.
    tally: Tally,
    /// Counts of each slot at the last checkpoint.
    marks: Marks,
}

/// Runs a group's thread.
pub(crate) fn run(
    plan: Arc<Plan>,
    share: Share,
    mailbox: Mailbox<Order>,
    letters: SyncSender<Message>,
) {
    let failure = letters.clone();
    let result = Group::new(plan, share, mailbox, letters).and_then(event_loop::run);
    if let Err(error) = result {
        // When the main thread is gone nobody is left to be told.
        let _ = failure.send(Message::Failed(error));
    }
}

impl Turns for Group {
    fn net(&mut self) -> &mut RealNet {
        &mut self.context.net
    }

    fn deadline(&self) -> Time {
        self.due()
    }

    fn obey(&mut self) {
        self.follow_orders();
    }

    fn on_event(&mut self, event: &Event) {
        self.on_socket(event);
    }

    fn announce(&self, socket: Key) {
        self.connections.prefetch(socket);
    }

    fn turn(&mut self) {
        self.start_some();
        self.work_due();
        self.open_some();
        self.expire_some();
        if cfg!(debug_assertions) {
            self.look_after_all();
        }
    }

    fn is_over(&self) -> bool {
        let is_late = |end| self.context.net.now() >= end;
        self.end
            .is_some_and(|end| self.context.executing == 0 || is_late(end))
    }

    fn say_news(&mut self) {
        if let Some(reason) = self.context.fatal.take() {
            self.tell(Message::Fatal(reason));
        }
        if self.reached == Milestone::Opening && self.opener.is_settled() {
            self.reached = Milestone::Settled;
            self.tell(Message::Settled);
        }
        if self.reached == Milestone::Settled && self.is_finished() {
            self.reached = Milestone::Finished;
            self.tell(Message::Finished);
        }
    }

    fn finish(self) {
        self.close_all();
    }
}

impl Group {
    fn new(
        plan: Arc<Plan>,
        share: Share,
        mailbox: Mailbox<Order>,
        letters: SyncSender<Message>,
    ) -> Result<Group, String> {
        let waking = Waking::keeping_time(plan.model.keeps_time());
        let mut net = event_loop::open(waking)?;
        event_loop::watch_mailbox(&mut net, &mailbox)?;
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
            context: Context {
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
            reached: Milestone::Opening,
            end: None,
            tally: Tally::default(),
            marks: Marks::new(share.first, share.connections),
        };
        group.allow_first_stage();
        Ok(group)
    }

    /// Moment by which the next turn has to come.
    fn due(&self) -> Time {
        let now = self.context.net.now();
        if !self.starting.is_empty() {
            return now;
        }
        let expiry = self.opening.front().map_or(Time::NEVER, |(began, _)| {
            *began + self.context.plan.connect_timeout
        });
        self.opener
            .due(now)
            .min(expiry)
            .min(self.context.work.due(&self.context.plan.model, now))
            .min(self.end.unwrap_or(Time::NEVER))
    }

    fn follow_orders(&mut self) {
        for order in self.mailbox.take() {
            match order {
                Order::Start => self.begin_work(),
                Order::Report => {
                    let counted = self.counted();
                    self.tell(Message::Counted(counted));
                }
                Order::Checkpoint => self.checkpoint(),
                Order::Reset => self.reset(),
                Order::Users(users) => self.context.work.users = Some(users),
                // What there is to see is looked at in every turn.
                Order::Look => {}
                Order::Stop(end) => {
                    let counted = self.counted();
                    self.tell(Message::Counted(counted));
                    self.context.running = false;
                    self.context.work.stop();
                    self.starting = Vec::new();
                    self.end = Some(end);
                }
            }
        }
    }

    fn tell(&self, message: Message) {
        // The main thread outlives its groups; if it does not, the process is ending.
        let _ = self.letters.send(message);
    }

    fn counted(&mut self) -> Box<Counted> {
        Box::new(Counted {
            group: self.number,
            stats: std::mem::take(&mut self.context.stats),
            gauges: Gauges {
                connected: self.connected.into(),
                executing: self.context.executing.into(),
                waiting: self.context.work.waiting(),
                cpu: measure::process::thread_cpu(),
            },
            ..Counted::default()
        })
    }

    fn on_socket(&mut self, event: &Event) {
        let key = event.token.key();
        let Some(connection) = self.connections.get_mut(key) else {
            return;
        };
        let (was_opening, was_busy) = (connection.is_opening(), !connection.is_idle());
        let context = &mut self.context;
        let script = context.plan.script_of(connection.slot.index);
        let has_transaction = script.has_transaction();
        let mut result = Ok(());
        if event.writable {
            result = connection.on_writable(context);
        }
        if event.readable && result.is_ok() {
            result = connection.on_readable(context, event.closed);
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
            Ok(()) if has_transaction => self.retire_idle(key),
            Ok(()) => {}
        }
    }

    /// Ends a connection for a reason and decides whether it is opened again.
    fn close(&mut self, key: Key, fault: Fault) {
        let Some(connection) = self.connections.remove(key) else {
            return;
        };
        let now = self.context.net.now();
        if connection.is_opening() {
            let age = now.since(connection.sent_at());
            let (phase, slot) = (connection.phase(), connection.slot);
            return self.count_failed_connect(slot, phase, fault, now, age);
        }
        self.connected -= 1;
        self.context.stats.lost += 1;
        if connection.is_executing() {
            self.context.executing -= 1;
            self.context.failed(fault, now.since(connection.sent_at()));
        } else {
            self.context.stats.error(Phase::Statement, fault, None);
        }
        // At the end it stays closed, but its part is counted with the others that wait.
        self.opener.lost(connection.slot, now);
    }

    fn count_failed_connect(
        &mut self,
        slot: ConnectionSlot,
        phase: Phase,
        fault: Fault,
        now: Time,
        age: Duration,
    ) {
        if self.opener.failed(slot, &fault, now) {
            self.context.heed(&fault);
            self.context.stats.failed_connects += 1;
            self.context.stats.error(phase, fault, Some(age));
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
            match connection.begin_event(&mut self.context, now) {
                Ok(()) => self.after_event(key, true),
                Err(fault) => self.close(key, fault),
            }
        }
    }

    fn open_some(&mut self) {
        let now = self.context.net.now();
        if self.end.is_some() {
            return;
        }
        while let Some(slot) = self.opener.next(now) {
            if let Err((slot, fault)) = self.open(slot, now) {
                self.count_failed_connect(slot, Phase::Connect, fault, now, Duration::ZERO);
            }
        }
    }

    fn open(&mut self, slot: ConnectionSlot, now: Time) -> Result<(), (ConnectionSlot, Fault)> {
        let (source, address) = self.context.plan.way_of(slot.index);
        let dialled = self.context.net.connect_from(address, source);
        let sock = dialled.map_err(|error| (slot, Fault::system(&error)))?;
        let security = &self.context.plan.credentials_of(slot.index).security;
        let transport = Transport::new(sock, security).map_err(|fault| (slot, fault))?;
        let connection = Connection::new(transport, slot, now);
        let key = self.connections.insert(connection);
        if let Some(connection) = self.connections.get(key) {
            let watched = self
                .context
                .net
                .watch(connection.sock(), Token::new(CONNECTION, key));
            if let Err(error) = watched {
                self.connections.remove(key);
                return Err((slot, Fault::system(&error)));
            }
        }
        self.opening.push_back((now, key));
        if slot.repeats > 0 {
            self.watch(key);
        }
        Ok(())
    }

    /// Gives up connections that have been opening for too long.
    fn expire_some(&mut self) {
        let now = self.context.net.now();
        let timeout = self.context.plan.connect_timeout;
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
                self.close(key, Fault::timeout(Step::Login, timeout.as_secs()));
            }
        }
    }
}
