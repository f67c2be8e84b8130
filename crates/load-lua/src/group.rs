//! The event loop of scripts: many coroutines, the connections that they ask over, one thread.
//!
//! A *user* is what sysbench calls a thread: a coroutine that runs the script's functions, and has
//! as many MySQL connections as it opens, mostly one. It runs until it has to wait (for an answer,
//! for time to pass, for its next event); then the loop notes what it waits for and goes on with
//! another. [`Stage`] is users and connections, without an idea where orders come from; a group of
//! a run ([`run`]) gets them from the main thread, a command of the script
//! ([`Stage::run_out`]) has none.
//!
//! Invariants:
//! - each user that has not ended waits for one thing, which is noted in one place: an answer in
//!   its connection, a place in a queue, a timer, or [`Phase`];
//! - a statement, an event and an error are counted once, where sysbench counts them;
//! - a connection that was lost is known to its user by the next answer, never as another's.

use super::client::{Answer, Client, Value};
use super::interpreter::{Body, Interpreter, Reply, Request};
use super::rand::Generators;
use load_core::allowance::Allowance;
use load_core::arrivals::Arrivals;
use load_core::control::{Counted, Gauges, Message, Order, Share};
use load_core::durations::unit;
use load_core::errors::{Fault, Phase as Doing, Step};
use load_core::event_loop::{self, CONNECTION, Milestone, Turns, Waking};
use load_core::model::Loop;
use load_core::opener::BUSY_PAUSE;
use load_core::pace::Pace;
use load_core::plan::Plan;
use load_core::program::Program;
use load_core::random::Random;
use load_core::rate_profile::RateProfile;
use load_core::stats::{Class, Stats, Tally};
use load_core::timers::Timers;
use load_core::transport::Transport;
use mlua::String as LuaString;
use reactor::{Address, Event, Key, Mailbox, Net, RealNet, Slots, Time, Token};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::time::Duration;

/// Bytes that are read at once.
const BUFFER_BYTES: usize = 64 * 1024;
/// Users that go on in one turn before sockets are looked at again.
const STEPS_PER_TURN: usize = 256;
/// Pause before a lost connection is tried again.
const RETRY_AFTER: Duration = Duration::from_millis(10);
/// Interval at which the flag that ends a command early is checked.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Interval at which the number of users is adjusted while it changes.
const STAGE_STEP: Duration = Duration::from_millis(10);
/// Values of one execution.
const VALUES_MAX: usize = 65_535;
/// Numbers of errors that a client library has for a connection that is gone.
const GONE: [u32; 4] = [2006, 2011, 2013, 2055];

/// Phase of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Not begun.
    Unborn,
    /// Runs what comes before its first event: `thread_init`.
    Starting,
    /// Waits until all have started.
    Ready,
    /// Waits for an event to arrive, for its turn, or for the end of its pause.
    Idle,
    /// Runs an event.
    Busy,
    /// Runs what comes after its last event: `thread_done`.
    Leaving,
    Ended,
}

impl Phase {
    /// The script's function that runs.
    fn function(self) -> &'static str {
        match self {
            Phase::Unborn | Phase::Starting | Phase::Ready => "thread_init",
            Phase::Idle | Phase::Busy => "thread_run",
            Phase::Leaving | Phase::Ended => "thread_done",
        }
    }
}

#[derive(Debug)]
struct User {
    phase: Phase,
    /// Connections that it has opened so far.
    dials: u32,
    events: u64,
    busy: Duration,
    /// Numbers of both that were handed over at the last checkpoint.
    marked: (u64, Duration),
    event_at: Time,
    /// True if it ends because there are to be fewer users.
    is_surplus: bool,
}

/// A connection's place, which stays when the connection is opened again.
#[derive(Clone, Copy, Debug)]
struct Line {
    key: Option<Key>,
    user: u32,
    /// Number of this connection of all connections, by which its address is chosen.
    index: u32,
    /// True if it was open before: who asked for it is told when it is again.
    reopening: bool,
    /// Number of the first statement that is prepared on it from now on.
    next_statement: u32,
}

/// Users and their connections.
pub struct Stage {
    plan: Arc<Plan>,
    /// Interpreter that all users of the group share.
    pub lua: Interpreter,
    net: RealNet,
    buffer: Vec<u8>,
    first: u32,
    users: Vec<User>,
    clients: Slots<Client>,
    lines: Vec<Line>,
    free_lines: Vec<u32>,
    /// Lines that are to be opened, the first of all first.
    dialling: VecDeque<u32>,
    opening: VecDeque<(Time, Key)>,
    in_flight: u32,
    timers: Timers<Wake>,
    /// Users that go on in this turn or one of the next, with the reply that each gets.
    going: VecDeque<(u32, Reply)>,
    stats: Stats,
    /// Events may begin.
    running: bool,
    /// True if the end has been ordered.
    stopping: bool,
    events: Arc<Allowance>,
    arrivals: Option<Arrivals>,
    idle: VecDeque<u32>,
    /// Users that run an event at a time, where not all may.
    active: Option<u32>,
    /// Random numbers of pauses.
    pauses: Random,
    /// Users by where they stand.
    ready: u32,
    busy: u32,
    ended: u32,
    /// Number of users that have to end with the event that they are in; of those that have been
    /// told so and have not ended.
    surplus: u32,
    leaving: u32,
    /// Users that have ended and may begin again.
    vacant: Vec<u32>,
    /// Reason for which the run cannot go on.
    pub(super) fatal: Option<String>,
}

#[derive(Clone, Copy, Debug)]
enum Wake {
    User(u32),
    /// End of a user's pause.
    Event(u32),
    Dial(u32),
}

impl Stage {
    /// `count` users, numbered from `first` on.
    ///
    /// # Errors
    /// A sentence that says what of the system or of Lua failed.
    pub fn new(
        plan: Arc<Plan>,
        program: &Program,
        (first, count): (u32, u32),
        part: (u32, u32),
        events: Arc<Allowance>,
    ) -> Result<Stage, String> {
        let net = RealNet::new().map_err(|e| format!("a group could not make its poll: {e}"))?;
        Stage::on(net, plan, program, (first, count), part, events)
    }

    /// Makes a group on a poll that is there.
    fn on(
        net: RealNet,
        plan: Arc<Plan>,
        program: &Program,
        (first, count): (u32, u32),
        part: (u32, u32),
        events: Arc<Allowance>,
    ) -> Result<Stage, String> {
        let seed = plan.seed;
        let generators = Generators::new(
            program.shape,
            plan.seed,
            (first, count),
            part,
            program.unique_from,
        );
        Ok(Stage {
            lua: Interpreter::new(program, generators, count)?,
            plan,
            net,
            buffer: vec![0; BUFFER_BYTES],
            first,
            users: (0..count)
                .map(|_| User {
                    phase: Phase::Unborn,
                    dials: 0,
                    events: 0,
                    busy: Duration::ZERO,
                    marked: (0, Duration::ZERO),
                    event_at: Time(0),
                    is_surplus: false,
                })
                .collect(),
            clients: Slots::with_capacity(count as usize),
            lines: Vec::new(),
            free_lines: Vec::new(),
            dialling: VecDeque::new(),
            opening: VecDeque::new(),
            in_flight: 0,
            timers: Timers::default(),
            going: VecDeque::new(),
            stats: Stats::default(),
            running: false,
            stopping: false,
            events,
            arrivals: None,
            idle: VecDeque::new(),
            active: None,
            pauses: Random::new(seed, u64::MAX - u64::from(part.0)),
            ready: 0,
            busy: 0,
            ended: 0,
            surplus: 0,
            leaving: 0,
            vacant: Vec::new(),
            fatal: None,
        })
    }

    /// Lets a user begin with `body`; `name` is what that needs.
    pub fn begin(&mut self, user: u32, body: Body, name: &Rc<str>) {
        match self.lua.begin(user, body) {
            Ok(()) => {
                self.set_phase(user, Phase::Starting);
                let first = Reply::First(self.first + user, name.clone());
                self.going.push_back((user, first));
            }
            Err(reason) => self.die(user, &reason),
        }
    }

    /// Runs until all that has begun has ended, or `stop` is set.
    ///
    /// # Errors
    /// The script's error, or the system's.
    pub fn run_out(&mut self, stop: &AtomicBool) -> Result<(), String> {
        let mut events = Vec::new();
        while self.users.iter().any(|user| user.is_alive()) {
            if stop.load(Ordering::Relaxed) {
                return Err("it was stopped by a signal".to_owned());
            }
            let deadline = self.deadline().min(Time::now() + LOOK_EVERY);
            let waited = self.net.wait(deadline, &mut events);
            waited.map_err(|e| format!("the poll failed: {e}"))?;
            for event in &events {
                self.on_event(event);
            }
            self.turn();
            if let Some(reason) = self.fatal.take() {
                return Err(reason);
            }
        }
        Ok(())
    }

    fn deadline(&self) -> Time {
        if !self.going.is_empty() || (!self.dialling.is_empty() && self.has_room()) {
            return self.net.now();
        }
        let expiry = self
            .opening
            .front()
            .map_or(Time::NEVER, |(began, _)| *began + self.plan.connect_timeout);
        let arrival = self.arrivals.as_ref().map_or(Time::NEVER, Arrivals::due);
        self.timers.next_due().min(expiry).min(arrival)
    }

    /// Works on what is due besides events of sockets.
    fn turn(&mut self) {
        let now = Time::now();
        while let Some((due, wake)) = self.timers.take(now) {
            match wake {
                Wake::User(user) => self.going.push_back((user, Reply::Nothing)),
                Wake::Event(user) => self.end_pause(user, due, now),
                Wake::Dial(line) => self.dialling.push_back(line),
            }
        }
        self.take_arrivals(now);
        self.expire(now);
        for _ in 0..STEPS_PER_TURN {
            let Some((user, reply)) = self.going.pop_front() else {
                break;
            };
            self.go_on(user, reply);
        }
        self.give_turns(now);
        while self.has_room() {
            let Some(line) = self.dialling.pop_front() else {
                break;
            };
            self.dial(line);
        }
    }

    fn has_room(&self) -> bool {
        self.in_flight < self.plan.connects_in_flight
    }

    fn set_phase(&mut self, user: u32, phase: Phase) {
        let Some(one) = self.users.get_mut(user as usize) else {
            return;
        };
        let before = std::mem::replace(&mut one.phase, phase);
        for (old, new, count) in [
            (before == Phase::Busy, phase == Phase::Busy, &mut self.busy),
            (
                before == Phase::Ended,
                phase == Phase::Ended,
                &mut self.ended,
            ),
            (before.is_ready(), phase.is_ready(), &mut self.ready),
        ] {
            match (old, new) {
                (false, true) => *count += 1,
                (true, false) => *count -= 1,
                _ => {}
            }
        }
    }

    /// Lets a user run until it has to wait.
    fn go_on(&mut self, user: u32, reply: Reply) {
        let phase = self.phase(user);
        if phase == Phase::Ended {
            return;
        }
        let mut reply = reply;
        loop {
            let request = self.lua.resume(user, reply);
            match self.serve(user, request) {
                Some(next) => reply = next,
                None => return,
            }
        }
    }

    fn phase(&self, user: u32) -> Phase {
        self.users
            .get(user as usize)
            .map_or(Phase::Ended, |user| user.phase)
    }

    /// Serves what a user asks for; returns an answer if there is one at once.
    fn serve(&mut self, user: u32, request: Request) -> Option<Reply> {
        match request {
            Request::Next => self.next(user),
            Request::Ready => {
                self.set_phase(user, Phase::Ready);
                (self.running || self.stopping).then_some(Reply::Nothing)
            }
            Request::Leaving => {
                self.set_phase(user, Phase::Leaving);
                Some(Reply::Nothing)
            }
            Request::Connect => {
                let line = self.new_line(user);
                self.dialling.push_back(line);
                None
            }
            Request::Query(line, text) => self.query(line, &text),
            Request::Prepare(line, text) => self.prepare(line, &text),
            Request::Execute(line, number, values) => self.execute(line, number, values),
            Request::CloseStatement(line, number) => {
                if let Some((client, net)) = self.client(line)
                    && let Err(fault) = client.close_statement(net, number)
                {
                    self.lose(line, fault);
                }
                Some(Reply::Nothing)
            }
            Request::Disconnect(line) => {
                self.disconnect(line);
                Some(Reply::Nothing)
            }
            Request::Reconnect(line) => {
                self.close(line);
                if let Some(line) = self.lines.get_mut(line as usize) {
                    line.reopening = true;
                }
                self.stats.lost += 1;
                self.dialling.push_back(line);
                None
            }
            Request::Sleep(micros) => {
                let seconds = (micros / 1e6).clamp(0.0, 86_400.0);
                let due = Time::now() + Duration::from_secs_f64(seconds);
                self.timers.add(due, Wake::User(user));
                None
            }
            Request::Failed { ignored, fault } => {
                self.stats.failed(fault, ignored, None);
                Some(Reply::Nothing)
            }
            Request::Count(counter) => {
                let stats = &mut self.stats;
                match counter {
                    0 => stats.others += 1,
                    1 => stats.reads += 1,
                    2 => stats.writes += 1,
                    3 => stats.ignored += 1,
                    4 => stats.reconnects += 1,
                    _ => {}
                }
                Some(Reply::Nothing)
            }
            Request::Returned => {
                self.set_phase(user, Phase::Ended);
                let one = self.users.get_mut(user as usize);
                let is_surplus = one.is_some_and(|one| std::mem::take(&mut one.is_surplus));
                self.leaving -= u32::from(is_surplus);
                if is_surplus || self.plan.ordered_users.is_some() {
                    self.vacate(user);
                }
                None
            }
            Request::Died(reason) => {
                self.die(user, &reason);
                None
            }
        }
    }

    /// Lets a user that has ended begin again; the connections that its script has left open are
    /// closed.
    fn vacate(&mut self, user: u32) {
        let left: Vec<u32> = self
            .clients
            .iter()
            .filter(|(_, client)| client.user == user)
            .map(|(_, client)| client.handle)
            .collect();
        for line in left {
            self.disconnect(line);
        }
        self.vacant.push(user);
    }

    /// Ends this many users, those that end already among them, each with the event that it is in;
    /// those that wait for one end now.
    fn end_some(&mut self, surplus: u32) {
        self.surplus = surplus.saturating_sub(self.leaving);
        while self.surplus > 0 {
            let Some(user) = self.idle.pop_front() else {
                return;
            };
            let no = self.no_more(user);
            self.going.push_back((user, no));
        }
    }

    /// Answer to one of the users that are too many.
    fn no_more(&mut self, user: u32) -> Reply {
        self.surplus -= 1;
        if let Some(one) = self.users.get_mut(user as usize) {
            one.is_surplus = true;
            self.leaving += 1;
        }
        Reply::Yes(false)
    }

    /// Ends the run for an error that the script did not catch.
    fn die(&mut self, user: u32, reason: &str) {
        let function = self.phase(user).function();
        self.set_phase(user, Phase::Ended);
        self.fatal
            .get_or_insert_with(|| format!("`{function}' function failed: {reason}"));
    }

    /// Ends a user's event, if it ran one; begins another.
    fn next(&mut self, user: u32) -> Option<Reply> {
        let now = Time::now();
        let is_first = self.phase(user) != Phase::Busy;
        if !is_first {
            let one = self.users.get_mut(user as usize)?;
            let took = now.since(one.event_at);
            one.events += 1;
            one.busy += took;
            self.stats.events += 1;
            self.stats.event_latency.record(took);
        }
        self.set_phase(user, Phase::Idle);
        if self.surplus > 0 {
            return Some(self.no_more(user));
        }
        if !self.running || self.events.is_used_up() && self.arrivals.is_none() {
            return Some(Reply::Yes(false));
        }
        match self.plan.model.drive {
            Loop::Active(_) => {
                self.idle.push_back(user);
                return None;
            }
            Loop::Thinking(spread) => {
                let pause = spread.draw(&mut self.pauses);
                // The first pauses are cut at a random place, so that not all end at once.
                let share = if is_first {
                    unit(&mut self.pauses)
                } else {
                    1.0
                };
                let due = now + pause.mul_f64(share);
                self.timers.add(due, Wake::Event(user));
                return None;
            }
            Loop::Closed | Loop::Open { .. } => {}
        }
        let start = match &mut self.arrivals {
            None if self.events.take(1) == 1 => now,
            None => return Some(Reply::Yes(false)),
            Some(arrivals) => match arrivals.next_in_queue() {
                Some(start) => start,
                None if arrivals.due() == Time::NEVER => return Some(Reply::Yes(false)),
                None => {
                    self.idle.push_back(user);
                    return None;
                }
            },
        };
        self.begin_event(user, start);
        Some(Reply::Yes(true))
    }

    fn begin_event(&mut self, user: u32, start: Time) {
        if let Some(one) = self.users.get_mut(user as usize) {
            one.event_at = start;
        }
        self.set_phase(user, Phase::Busy);
    }

    /// Begins the event of a user whose pause is over. One that was told to end has no pause.
    fn end_pause(&mut self, user: u32, due: Time, now: Time) {
        if self.phase(user) != Phase::Idle || !self.running {
            return;
        }
        let reply = match self.surplus {
            0 if self.events.take(1) == 1 => {
                self.stats.lag.record(now.since(due));
                self.begin_event(user, due);
                Reply::Yes(true)
            }
            0 => Reply::Yes(false),
            _ => self.no_more(user),
        };
        self.going.push_back((user, reply));
    }

    /// Begins events of as many users as may run one, the one that has rested longest first.
    fn give_turns(&mut self, now: Time) {
        if self.active.is_some() && self.events.is_used_up() {
            return self.release_idle();
        }
        while self.active.is_some_and(|active| self.busy < active) && self.running {
            let Some(user) = self.idle.pop_front() else {
                return;
            };
            if self.events.take(1) == 0 {
                self.going.push_back((user, Reply::Yes(false)));
                continue;
            }
            self.begin_event(user, now);
            self.going.push_back((user, Reply::Yes(true)));
        }
    }

    fn take_arrivals(&mut self, now: Time) {
        while let Some(arrivals) = &mut self.arrivals {
            let Some(start) = arrivals.take(now) else {
                break;
            };
            if self.events.take(1) == 0 {
                arrivals.close();
                self.release_idle();
                break;
            }
            self.stats.arrived += 1;
            match self.idle.pop_front() {
                Some(user) => {
                    self.stats.lag.record(now.since(start));
                    self.begin_event(user, start);
                    self.going.push_back((user, Reply::Yes(true)));
                }
                None => self.stats.shed += u64::from(!arrivals.wait(start)),
            }
        }
    }

    fn release_idle(&mut self) {
        for user in std::mem::take(&mut self.idle) {
            self.going.push_back((user, Reply::Yes(false)));
        }
    }

    /// Starts the events of all.
    fn start(&mut self, share: &Share) {
        self.running = true;
        if let Loop::Active(active) = self.plan.model.drive {
            self.active = Some(share.part.of(active));
        }
        if let Loop::Open {
            rate,
            gaps,
            queue_max,
        } = &self.plan.model.drive
        {
            let part = f64::from(share.connections) / f64::from(share.part.connections);
            let line_max = queue_max / share.part.groups.max(1);
            let random = Random::new(self.plan.seed, u64::MAX - u64::from(share.part.group));
            let mut arrivals = Arrivals::new(rate.clone(), *gaps, part, line_max, random);
            let offset = f64::from(share.part.group + 1) / f64::from(share.part.groups);
            arrivals.start(Time::now(), offset);
            self.arrivals = Some(arrivals);
        }
        self.release(Phase::Ready, || Reply::Nothing);
    }

    /// Lets users of a phase go on.
    fn release(&mut self, phase: Phase, reply: fn() -> Reply) {
        for user in (0u32..).take(self.users.len()) {
            if self.phase(user) == phase {
                self.going.push_back((user, reply()));
            }
        }
    }

    /// Lets no more events begin.
    fn stop(&mut self) {
        self.running = false;
        self.stopping = true;
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.stop();
        }
        self.release_idle();
        if let Loop::Thinking(_) = self.plan.model.drive {
            self.release(Phase::Idle, || Reply::Yes(false));
        }
        self.release(Phase::Ready, || Reply::Nothing);
    }

    // Connections ---------------------------------------------------------------------------------

    fn new_line(&mut self, user: u32) -> u32 {
        let dials = self.users.get_mut(user as usize).map_or(0, |user| {
            user.dials += 1;
            user.dials - 1
        });
        let line = Line {
            key: None,
            user,
            index: (self.first + user).wrapping_add(dials),
            reopening: false,
            next_statement: 0,
        };
        if let Some(free) = self.free_lines.pop() {
            self.lines[free as usize] = line;
            return free;
        }
        self.lines.push(line);
        u32::try_from(self.lines.len() - 1).unwrap_or(u32::MAX)
    }

    fn client(&mut self, line: u32) -> Option<(&mut Client, &mut RealNet)> {
        let key = self.lines.get(line as usize)?.key?;
        let client = self.clients.get_mut(key)?;
        Some((client, &mut self.net))
    }

    fn dial(&mut self, number: u32) {
        let Some(line) = self.lines.get(number as usize).copied() else {
            return;
        };
        if line.reopening && self.stopping {
            // It would never hear of a server that stays away.
            return self.give_up(line.user);
        }
        let (source, address) = self.plan.way_of(line.index);
        let dialled = self.net.connect_from(address, source);
        let sock = match dialled {
            Ok(sock) => sock,
            Err(error) => return self.not_connected(number, Fault::system(&error)),
        };
        let (user, next_statement) = (line.user, line.next_statement);
        let transport = match Transport::new(sock, &self.plan.credentials.security) {
            Ok(transport) => transport,
            Err(fault) => return self.not_connected(number, fault),
        };
        let client = Client::new(transport, number, user, next_statement);
        let key = self.clients.insert(client);
        let watched = match self.clients.get(key) {
            Some(client) => self.net.watch(client.sock(), Token::new(CONNECTION, key)),
            None => Ok(()),
        };
        if let Err(error) = watched {
            self.clients.remove(key);
            return self.not_connected(number, Fault::system(&error));
        }
        self.lines[number as usize].key = Some(key);
        self.in_flight += 1;
        self.opening.push_back((self.net.now(), key));
    }

    /// Ends a user at the end of the run whose connection is away.
    fn give_up(&mut self, user: u32) {
        self.lua.forget(user);
        self.set_phase(user, Phase::Ended);
    }

    fn not_connected(&mut self, number: u32, fault: Fault) {
        let Some(line) = self.lines.get_mut(number as usize) else {
            return;
        };
        line.key = None;
        if fault.is_busy_listener() {
            self.timers
                .add(Time::now() + BUSY_PAUSE, Wake::Dial(number));
            return;
        }
        let (user, index, reopening) = (line.user, line.index, line.reopening);
        if reopening {
            let due = Time::now() + RETRY_AFTER;
            self.timers.add(due, Wake::Dial(number));
            self.stats.error(Doing::Connect, fault, None);
            return;
        }
        let place = match self.plan.way_of(index).1 {
            Address::Tcp(address) => format!("host '{}', port {}", address.ip(), address.port()),
            Address::Unix(path) => format!("socket '{}'", path.display()),
        };
        let said = format!("unable to connect to MySQL server on {place}, aborting...");
        self.stats.failed_connects += 1;
        self.stats.error(Doing::Connect, fault.clone(), None);
        self.free_lines.push(number);
        self.going
            .push_back((user, Reply::NotConnected(said, fault)));
    }

    /// Gives up connections that have been opening for too long.
    fn expire(&mut self, now: Time) {
        let timeout = self.plan.connect_timeout;
        while let Some(&(began, key)) = self.opening.front() {
            let line = self
                .clients
                .get(key)
                .filter(|client| client.is_opening())
                .map(|client| client.handle);
            if line.is_some() && began + timeout > now {
                return;
            }
            self.opening.pop_front();
            if let Some(line) = line {
                self.lose(line, Fault::timeout(Step::Login, timeout.as_secs()));
            }
        }
    }

    /// Closes a connection in good order.
    fn disconnect(&mut self, line: u32) {
        if let Some((client, net)) = self.client(line) {
            client.quit(net);
        }
        self.close(line);
        self.free_lines.push(line);
    }

    /// Closes the connection of a line, if it has one.
    fn close(&mut self, number: u32) -> Option<Client> {
        let line = self.lines.get_mut(number as usize)?;
        let client = self.clients.remove(line.key.take()?)?;
        line.next_statement = client.next_statement();
        self.in_flight -= u32::from(client.is_opening());
        Some(client)
    }

    /// Handles a connection that has ended by itself.
    fn lose(&mut self, number: u32, fault: Fault) {
        let Some(client) = self.close(number) else {
            return;
        };
        if client.is_opening() {
            return self.not_connected(number, fault);
        }
        if client.is_asking() {
            let reply = self.failed(fault);
            self.going.push_back((client.user, reply));
        } else {
            // Its next question says so.
            self.stats.errors.count(Doing::Statement, fault);
        }
    }

    /// Reply to a user whose statement failed.
    fn failed(&self, fault: Fault) -> Reply {
        // An errno is of the system, which no script knows; a client library has one number for it.
        let fault = match fault.code {
            0..1000 => Fault {
                code: 2013,
                sqlstate: "HY000".to_owned(),
                message: format!("Lost connection to server during query ({})", fault.message),
            },
            _ => fault,
        };
        Reply::Failed {
            ignored: self.plan.tolerance.ignores(&fault),
            lost: GONE.contains(&fault.code),
            fault,
        }
    }

    /// Reply to a user whose connection went away while nothing was asked.
    fn gone(&self) -> Reply {
        self.failed(Fault {
            code: 2006,
            sqlstate: "HY000".to_owned(),
            message: "Server has gone away".to_owned(),
        })
    }

    fn query(&mut self, line: u32, text: &LuaString) -> Option<Reply> {
        let Some((client, net)) = self.client(line) else {
            return Some(self.gone());
        };
        let sent = client.query(net, &text.as_bytes());
        self.sent(line, sent)
    }

    fn prepare(&mut self, line: u32, text: &LuaString) -> Option<Reply> {
        let on_server = self.plan.script.prepares();
        let Some((client, net)) = self.client(line) else {
            return Some(self.gone());
        };
        match client.prepare(net, &text.to_string_lossy(), on_server) {
            Ok(None) => None,
            Ok(Some(answer)) => self.reply_to(line, answer),
            Err(fault) => self.sent(line, Err(fault)),
        }
    }

    fn execute(&mut self, line: u32, number: u32, values: Option<mlua::Table>) -> Option<Reply> {
        let Some((client, net)) = self.client(line) else {
            return Some(self.gone());
        };
        let count = values.as_ref().map_or(0, mlua::Table::raw_len);
        if count > VALUES_MAX {
            let what = format!("a statement takes {VALUES_MAX} values at most, not {count}");
            return Some(self.failed(Fault::protocol(what)));
        }
        // Strings stay alive while their bytes are written.
        let kept: Vec<mlua::Value> = (1..=count)
            .map(|at| {
                let value = values.as_ref().and_then(|values| values.raw_get(at).ok());
                value.unwrap_or(mlua::Value::Nil)
            })
            .collect();
        let bytes: Vec<_> = kept
            .iter()
            .map(|value| value.as_string().map(|text| text.as_bytes()))
            .collect();
        let values: Vec<Value<'_>> = kept
            .iter()
            .zip(&bytes)
            .map(|(value, bytes)| match (value, bytes) {
                (_, Some(bytes)) => Value::Text(bytes),
                (mlua::Value::Integer(number), _) => Value::Integer(*number),
                (mlua::Value::Number(number), _) => from_number(*number),
                _ => Value::Null,
            })
            .collect();
        let sent = client.execute(net, number, &values);
        self.sent(line, sent)
    }

    /// Answer to a question that could not be sent; `None` if it was.
    fn sent(&mut self, line: u32, sent: Result<(), Fault>) -> Option<Reply> {
        let fault = sent.err()?;
        if fault.code < 1000 {
            self.close(line);
        }
        Some(self.failed(fault))
    }

    fn on_event(&mut self, event: &Event) {
        let key = event.token.key();
        let Some(client) = self.clients.get_mut(key) else {
            return;
        };
        let (line, user, was_opening) = (client.handle, client.user, client.is_opening());
        let (mut answer, mut stands) = (None, Ok(()));
        if event.writable {
            stands = client.on_writable(&mut self.net);
        }
        if event.readable && client.is_securing() && stands.is_ok() {
            stands = client.on_writable(&mut self.net);
        }
        let is_readable = event.readable && !client.is_securing() || client.may_have_read();
        if is_readable && stands.is_ok() {
            let who = &self.plan.credentials;
            (answer, stands) =
                client.on_readable(&mut self.net, &mut self.buffer, who, event.closed);
        }
        if was_opening && !client.is_opening() {
            self.in_flight -= 1;
        }
        let reply = answer.and_then(|answer| self.reply_to(line, answer));
        if let Err(fault) = stands {
            self.lose(line, fault);
        }
        if let Some(reply) = reply {
            self.go_on(user, reply);
        }
    }

    /// Counts an answer, and puts it so that the user understands it.
    fn reply_to(&mut self, number: u32, answer: Answer) -> Option<Reply> {
        let key = self.lines.get(number as usize)?.key?;
        let client = self.clients.get(key)?;
        let now = Time::now();
        let took = now.since(client.since);
        match answer {
            Answer::Connected => {
                let line = self.lines.get_mut(number as usize)?;
                if std::mem::take(&mut line.reopening) {
                    self.stats.reconnects += 1;
                    self.stats.reconnect_latency.record(took);
                    return Some(Reply::Nothing);
                }
                self.stats.connect_latency.record(took);
                Some(Reply::Handle(number))
            }
            Answer::Prepared(statement) => Some(Reply::Statement(statement)),
            Answer::Done(done) => {
                let class = match &done {
                    _ if self.plan.counts_by_text => self.stats.class_by_verb(client.verb),
                    done if done.rows.is_some() => Class::Read,
                    done if done.affected_rows > 0 => Class::Write,
                    _ => Class::Other,
                };
                self.stats.succeeded(class, took, self.plan.model.in_time);
                self.stats.steps.answered(now);
                Some(Reply::Done(done))
            }
            Answer::Failed(fault) => Some(self.failed(fault)),
        }
    }

    /// Adds what each user did since the last checkpoint.
    fn tally(&mut self) -> Tally {
        let mut tally = Tally::default();
        for user in self
            .users
            .iter_mut()
            .filter(|user| user.phase != Phase::Unborn)
        {
            let (events, busy) = user.marked;
            tally.add(user.events - events, user.busy.saturating_sub(busy));
            user.marked = (user.events, user.busy);
        }
        tally
    }
}

impl Phase {
    /// True from its start to its leaving.
    fn is_ready(self) -> bool {
        matches!(self, Phase::Ready | Phase::Idle | Phase::Busy)
    }
}

impl User {
    fn is_alive(&self) -> bool {
        !matches!(self.phase, Phase::Unborn | Phase::Ended)
    }
}

/// A number of Lua as the server gets it: whole ones as BIGINT, as sysbench binds them.
#[allow(
    clippy::cast_possible_truncation,
    reason = "only what is whole and within 2^53 is cast"
)]
fn from_number(number: f64) -> Value<'static> {
    const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;
    match number.fract() == 0.0 && number.abs() <= WHOLE_MAX {
        true => Value::Integer(number as i64),
        false => Value::Double(number),
    }
}

/// A group of a run.
struct Group {
    stage: Stage,
    share: Share,
    number: usize,
    /// Users that have begun.
    born: u32,
    /// Number of users that there may be at once.
    allowed: u32,
    pace: Pace,
    name: Rc<str>,
    mailbox: Mailbox<Order>,
    letters: SyncSender<Message>,
    reached: Milestone,
    /// Start of the events, and the seconds since then for which the stages have been followed.
    began: Option<Time>,
    staged_s: f64,
    /// Moment to end at, once told to stop.
    end: Option<Time>,
}

/// Runs a group's thread.
pub fn run(
    plan: Arc<Plan>,
    program: &Program,
    share: Share,
    mailbox: Mailbox<Order>,
    letters: SyncSender<Message>,
) {
    let failure = letters.clone();
    let result = Group::new(plan, program, share, mailbox, letters).and_then(event_loop::run);
    if let Err(error) = result {
        // When the main thread is gone nobody is left to be told.
        let _ = failure.send(Message::Failed(error));
    }
}

impl Turns for Group {
    fn net(&mut self) -> &mut RealNet {
        &mut self.stage.net
    }

    fn deadline(&self) -> Time {
        let now = self.stage.net.now();
        let birth = match self.may_begin() && self.end.is_none() {
            true if self.stage.has_room() => self.pace.due(now),
            _ => Time::NEVER,
        };
        let stage = match self.has_stages_left() {
            true => now + STAGE_STEP,
            false => Time::NEVER,
        };
        let end = self.end.unwrap_or(Time::NEVER);
        self.stage.deadline().min(birth).min(stage).min(end)
    }

    fn obey(&mut self) {
        self.follow_orders();
    }

    fn on_event(&mut self, event: &Event) {
        self.stage.on_event(event);
    }

    fn turn(&mut self) {
        self.follow_stages();
        self.begin_some();
        self.stage.turn();
    }

    /// All that began have ended, or it is too late for the others.
    fn is_over(&self) -> bool {
        self.end
            .is_some_and(|end| self.alive() == 0 || self.stage.net.now() >= end || self.is_broken())
    }

    fn say_news(&mut self) {
        if let Some(reason) = &self.stage.fatal
            && self.reached != Milestone::Finished
        {
            let reason = reason.clone();
            self.reached = Milestone::Finished;
            self.tell(Message::Fatal(reason));
        }
        let are_settled = !self.may_begin() && self.stage.ready + self.stage.ended == self.born;
        if self.reached == Milestone::Opening && are_settled {
            self.reached = Milestone::Settled;
            self.tell(Message::Settled);
        }
        let are_over = self.stage.running && self.alive() == 0 && !self.has_more();
        if self.reached == Milestone::Settled && are_over {
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
        program: &Program,
        share: Share,
        mailbox: Mailbox<Order>,
        letters: SyncSender<Message>,
    ) -> Result<Group, String> {
        let waking = Waking::keeping_time(plan.model.keeps_time());
        let net = event_loop::open(waking)?;
        let users = (share.first, share.connections);
        let part = (share.part.group, share.part.groups);
        let events = share.events.clone();
        let mut stage = Stage::on(net, plan, program, users, part, events)?;
        event_loop::watch_mailbox(&mut stage.net, &mailbox)?;
        Ok(Group {
            number: share.part.group as usize,
            pace: Pace::new(share.connects_per_second, stage.net.now()),
            allowed: match (stage.plan.ordered_users, &stage.plan.model) {
                (Some(users), _) => share.part.of(users),
                (None, model) if model.stages.is_some() => {
                    share.part.of(model.wanted(0.0, share.part.connections))
                }
                _ => share.connections,
            },
            stage,
            share,
            born: 0,
            name: "".into(),
            mailbox,
            letters,
            reached: Milestone::Opening,
            began: None,
            staged_s: 0.0,
            end: None,
        })
    }

    /// Users begin at the pace at which connections are opened, for that is what they do first.
    fn begin_some(&mut self) {
        let now = self.stage.net.now();
        while self.may_begin()
            && self.end.is_none()
            && self.stage.fatal.is_none()
            && self.stage.has_room()
            && self.stage.going.len() < STEPS_PER_TURN
            && self.pace.take(now)
        {
            let user = self.stage.vacant.pop().unwrap_or_else(|| {
                self.born += 1;
                self.born - 1
            });
            self.stage.begin(user, Body::Thread, &self.name);
        }
    }

    /// Users that have begun and have not ended.
    fn alive(&self) -> u32 {
        self.born - self.stage.ended
    }

    /// True if there may be more users now, and one is left to begin.
    fn may_begin(&self) -> bool {
        self.has_more() && self.alive() < self.allowed
    }

    /// True if a user is left to begin, now or later, and an event for it.
    fn has_more(&self) -> bool {
        let is_any = self.born < self.share.connections || !self.stage.vacant.is_empty();
        is_any && !self.stage.events.is_used_up()
    }

    /// True until the last stage has been followed, however late that is.
    fn has_stages_left(&self) -> bool {
        let plan = &self.stage.plan;
        let stages = plan.model.stages.as_ref();
        let stages = stages.filter(|_| plan.ordered_users.is_none());
        let end = stages.map(RateProfile::end);
        self.began.is_some() && end.is_some_and(|end| self.staged_s <= end)
    }

    /// Lets as many users be there as the stages want now.
    fn follow_stages(&mut self) {
        let Some(began) = self.began.filter(|_| self.has_stages_left()) else {
            return;
        };
        self.staged_s = Time::now().since(began).as_secs_f64();
        let all = self.share.part.connections;
        let wanted = self.stage.plan.model.wanted(self.staged_s, all);
        self.allow(wanted);
    }

    /// Lets so many users of all groups be there.
    fn allow(&mut self, users: u32) {
        self.allowed = self.share.part.of(users);
        let surplus = self.alive().saturating_sub(self.allowed);
        self.stage.end_some(surplus);
    }

    fn follow_orders(&mut self) {
        for order in self.mailbox.take() {
            match order {
                Order::Start => {
                    self.began = Some(Time::now());
                    self.stage.start(&self.share);
                }
                Order::Report => {
                    let counted = self.counted();
                    self.tell(Message::Counted(counted));
                }
                Order::Checkpoint => {
                    let mut counted = self.counted();
                    counted.tally = self.stage.tally();
                    self.tell(Message::Counted(counted));
                }
                Order::Reset => {
                    self.stage.stats = Stats::default();
                    self.stage.tally();
                }
                Order::Users(users) => self.allow(users),
                // What there is to see is looked at in every turn.
                Order::Look => {}
                Order::Stop(end) => {
                    let counted = self.counted();
                    self.tell(Message::Counted(counted));
                    self.stage.stop();
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
        let waiting = self.stage.arrivals.as_ref().map_or(0, Arrivals::waiting);
        Box::new(Counted {
            group: self.number,
            stats: std::mem::take(&mut self.stage.stats),
            gauges: Gauges {
                connected: self.stage.ready.into(),
                executing: self.stage.busy.into(),
                waiting,
                cpu: measure::process::thread_cpu(),
            },
            ..Counted::default()
        })
    }

    /// True after an error of the script: nobody goes on to the end.
    fn is_broken(&self) -> bool {
        self.stage.fatal.is_some()
    }

    /// Closes everything and hands over the last numbers.
    fn close_all(mut self) {
        let mut counted = self.counted();
        counted.unfinished = self.stage.busy.into();
        counted.tally = self.stage.tally();
        for key in self.stage.clients.keys() {
            if let Some(client) = self.stage.clients.get_mut(key) {
                client.quit(&mut self.stage.net);
            }
        }
        self.tell(Message::Ended(counted));
    }
}
