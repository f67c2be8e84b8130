//! `--locust-master`: one process as one or many workers of a Locust master.
//!
//! The problem: Locust spreads a test over machines and shows it in a browser, and its own clients
//! are Python. The mechanism: the groups of a run do the work; here the main thread speaks to the
//! master, unmodified Locust 2.x, as a worker does ([`zmtp`] the socket, [`message`] the messages,
//! [`entries`] what is reported, [`custom`] a locustfile's own messages). A user of Locust is a
//! connection of a workload: how many there are to be is an order that groups follow at once. Each
//! class of users has a workload, as a [`Runner`]; this module does not know which ones there are.
//!
//! A master gives each worker the same share, however many cores it has; `--workers N` registers
//! this process under N names, so that it gets N shares.
//!
//! Invariants: nothing is said of a worker before the master has acknowledged it, but that it is
//! ready (a master ends its loop at a message from nobody); users that no master controls are
//! stopped; a request is reported once.
#![forbid(unsafe_code)]
#![warn(clippy::print_stderr)]

#[macro_use]
extern crate load_core;

mod custom;
mod entries;
mod message;
mod options;
mod zmtp;

pub use entries::Entries;
pub use options::LocustArgs;

use custom::Listeners;
use measure::process;
use message::{Order, classes, map};
use reactor::{Time, wall_clock};
use rmpv::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use zmtp::Dealer;

/// Runner of the users of one class.
pub trait Runner {
    /// Sets the number of users, or as many as it can have.
    fn order(&mut self, users: u32);
    /// Hears its groups until then, for a short while at most.
    fn listen(&mut self, until: Time);
    /// Reason for which it cannot go on.
    fn failure(&self) -> Option<String>;
    /// Adds what was counted since the last time; `now` is in seconds of the clock.
    fn collect(&mut self, entries: &mut Entries, now: f64);
    /// Ends all users, and waits for that.
    fn end(&mut self);
}

/// A class of users.
pub struct UserClass {
    /// Its name in the locustfile.
    pub name: String,
    /// Most users that it can have.
    pub users_max: u32,
    /// Runner of its users.
    pub runner: Box<dyn Runner>,
}

/// Default port of a master.
const PORT: u16 = 5557;
/// Interval of heartbeats, and of requests for the counts of groups.
const BEAT: Duration = Duration::from_secs(1);
/// Interval of reports of requests, and of further announcements of a worker that is not
/// acknowledged.
const REPORT_EVERY: Duration = Duration::from_secs(3);
const READY_EVERY: Duration = Duration::from_secs(5);
/// A master that is silent for so long is gone.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// Pause before the master is tried again.
const RETRY_AFTER: Duration = Duration::from_millis(250);
/// Longest time that the main thread waits for groups before it hears the master again.
const LISTEN_MAX: Duration = Duration::from_millis(100);
/// Version of a worker that says it is of none, which a master takes.
const NO_VERSION: i64 = -1;

/// Stage of a worker in its master's eyes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Not connected.
    Away,
    /// Connected, with its readiness sent.
    Greeting,
    /// The master knows it, and it has no users.
    Ready,
    Running,
}

impl Stage {
    fn name(self) -> &'static str {
        match self {
            Stage::Running => "running",
            _ => "ready",
        }
    }
}

/// One of this process's workers.
struct Worker {
    node: String,
    dealer: Option<Dealer>,
    stage: Stage,
    /// Moment at which something is to be sent or tried again.
    due: Time,
    heard: Time,
    /// Number of the worker that the master has given it.
    index: Option<u64>,
    /// Time of the last order to spawn, by the master's clock.
    spawned: f64,
    classes: Vec<(String, u32)>,
}

/// Runs until the master says quit, or `stop` is set. Users of a class that is not among `classes`
/// run what the first one runs.
///
/// # Errors
/// A sentence that says why it could not go on.
pub fn run(args: &LocustArgs, classes: Vec<UserClass>, stop: &AtomicBool) -> Result<(), String> {
    let master = args.master.as_deref().unwrap_or_default();
    let place = match master.rsplit_once(':') {
        Some((_, port)) if port.parse::<u16>().is_ok() => master.to_owned(),
        _ => format!("{master}:{PORT}"),
    };
    aside!(
        "load: {} workers of the Locust master at {place}",
        args.workers
    );
    let mut fleet = Fleet {
        place,
        workers: workers(args.workers),
        users: vec![0; classes.len()],
        classes,
        listeners: Listeners::start(&args.listeners)?,
        entries: Entries::default(),
        started: wall_clock(),
        beat_due: Time::now(),
        report_due: Time::now() + REPORT_EVERY,
        cpu: (Time::now(), Duration::ZERO),
        cores: thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64),
    };
    let ended = fleet.live(stop);
    fleet.end();
    ended
}

/// Names as Locust's own workers have them: host, `_`, something unique.
fn workers(count: u32) -> Vec<Worker> {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim().replace('_', "-");
    let unique = format!("{:x}{:x}", std::process::id(), Time::now().0);
    (0..count)
        .map(|number| Worker {
            node: format!("{host}_{unique}{number:04x}"),
            dealer: None,
            stage: Stage::Away,
            due: Time(0),
            heard: Time(0),
            index: None,
            spawned: 0.0,
            classes: Vec::new(),
        })
        .collect()
}

/// All workers, and what works for them.
struct Fleet {
    place: String,
    workers: Vec<Worker>,
    classes: Vec<UserClass>,
    listeners: Listeners,
    entries: Entries,
    /// Users of each class that were last ordered.
    users: Vec<u32>,
    started: f64,
    beat_due: Time,
    report_due: Time,
    /// Moment and value of the last look at CPU time.
    cpu: (Time, Duration),
    cores: f64,
}

impl Fleet {
    fn live(&mut self, stop: &AtomicBool) -> Result<(), String> {
        loop {
            self.listen();
            if let Some(reason) = self.classes.iter().find_map(|class| class.runner.failure()) {
                return Err(reason);
            }
            for number in 0..self.workers.len() {
                self.attend(number);
            }
            self.follow();
            self.pass_on_replies();
            let now = Time::now();
            if now >= self.beat_due {
                self.beat_due = now + BEAT;
                self.beat();
            }
            if now >= self.report_due {
                self.report_due = now + REPORT_EVERY;
                self.report();
            }
            if stop.load(Ordering::Relaxed) || self.workers.is_empty() {
                return Ok(());
            }
        }
    }

    /// Hears all groups for a short while.
    fn listen(&mut self) {
        let each = LISTEN_MAX / u32::try_from(self.classes.len().max(1)).unwrap_or(1);
        for class in &mut self.classes {
            class.runner.listen(self.beat_due.min(Time::now() + each));
        }
    }

    /// Hears one worker's master, and says again what was not heard.
    fn attend(&mut self, number: usize) {
        let now = Time::now();
        let Some(worker) = self.workers.get_mut(number) else {
            return;
        };
        if worker.dealer.is_none() && now >= worker.due {
            worker.dial(&self.place, now);
        }
        let orders = worker.hear(now);
        for order in orders {
            match &order {
                Order::Quit => {
                    aside!("load: the Locust master said quit");
                    self.collect();
                    self.report();
                    self.workers.clear();
                    return;
                }
                Order::Spawn { .. } if self.users.iter().all(|users| *users == 0) => self.forget(),
                Order::Stop => self.stop(number),
                Order::Other { kind, data } if kind != "spawning_complete" => {
                    if let Some(worker) = self.workers.get(number) {
                        self.listeners.hear(kind, data, &worker.node, worker.index);
                    }
                }
                _ => {}
            }
            if let Some(worker) = self.workers.get_mut(number) {
                worker.obey(order, now);
            }
        }
    }

    /// Ends a worker's users; what was counted until then is reported while the master still takes
    /// it.
    fn stop(&mut self, number: usize) {
        let Some(worker) = self.workers.get_mut(number) else {
            return;
        };
        if worker.stage != Stage::Running {
            return;
        }
        worker.classes.clear();
        self.follow();
        self.collect();
        if let Some(worker) = self.workers.get_mut(number) {
            let data = self.entries.take(self.started, classes(&[]), 0);
            worker.say("stats", data);
        }
    }

    /// Clears the counts for a new test: what was counted belongs to none.
    fn forget(&mut self) {
        self.collect();
        self.entries = Entries::default();
        self.started = wall_clock();
    }

    /// Class that runs users of this name.
    fn class_of(&self, name: &str) -> usize {
        let mut classes = self.classes.iter();
        classes.position(|class| class.name == name).unwrap_or(0)
    }

    /// Tells groups how many users of each class the workers have together.
    fn follow(&mut self) {
        let mut wanted = vec![0; self.classes.len()];
        for (name, count) in self.workers.iter().flat_map(|worker| &worker.classes) {
            if let Some(sum) = wanted.get_mut(self.class_of(name)) {
                *sum += count;
            }
        }
        for ((class, before), wanted) in self.classes.iter_mut().zip(&mut self.users).zip(wanted) {
            let users_max = class.users_max;
            if wanted > users_max && *before <= users_max {
                aside!(
                    "load: the Locust master wants {wanted} users of {} here, and --connections \
                     allows {users_max}; the others do nothing",
                    class.name
                );
            }
            if wanted != *before {
                *before = wanted;
                class.runner.order(wanted.min(users_max));
            }
        }
    }

    /// Sends what programs of the user's answered to messages.
    fn pass_on_replies(&mut self) {
        for reply in self.listeners.replies() {
            let mut workers = self.workers.iter_mut();
            let known = workers.find(|worker| worker.node == reply.node);
            match known.filter(|worker| matches!(worker.stage, Stage::Ready | Stage::Running)) {
                Some(worker) => worker.say(&reply.kind, reply.data),
                None => aside!(
                    "load: '{}' is not sent: its worker has left the Locust master",
                    reply.kind
                ),
            }
        }
    }

    /// Takes what groups counted.
    fn collect(&mut self) {
        for class in &mut self.classes {
            class.runner.collect(&mut self.entries, wall_clock());
        }
    }

    /// Collects counts, and says that all workers are alive.
    fn beat(&mut self) {
        self.collect();
        let sample = process::own().unwrap_or_default();
        let (before, used) = std::mem::replace(&mut self.cpu, (Time::now(), sample.cpu));
        let seconds = Time::now().since(before).as_secs_f64() * self.cores;
        let busy = sample.cpu.saturating_sub(used).as_secs_f64();
        let share = if seconds > 0.0 {
            busy / seconds * 100.0
        } else {
            0.0
        };
        for worker in &mut self.workers {
            let data = map([
                ("state", worker.stage.name().into()),
                ("current_cpu_usage", share.min(100.0).into()),
                ("current_memory_usage", sample.rss_bytes.into()),
            ]);
            if matches!(worker.stage, Stage::Ready | Stage::Running) {
                worker.say("heartbeat", data);
            }
        }
    }

    /// Reports requests under the first name that the master knows; each name reports its users.
    fn report(&mut self) {
        let mut first = true;
        for worker in &mut self.workers {
            if worker.stage != Stage::Running {
                continue;
            }
            let (count, users) = (classes(&worker.classes), worker.users());
            let data = match std::mem::take(&mut first) {
                true => self.entries.take(self.started, count, users),
                false => Entries::default().take(self.started, count, users),
            };
            worker.say("stats", data);
        }
    }

    fn end(&mut self) {
        for worker in &mut self.workers {
            worker.say("quit", Value::Nil);
        }
        for class in &mut self.classes {
            class.runner.end();
        }
    }
}

impl Worker {
    fn users(&self) -> u32 {
        self.classes.iter().map(|(_, count)| count).sum()
    }

    fn dial(&mut self, place: &str, now: Time) {
        match Dealer::connect(place, &self.node) {
            Ok(dealer) => {
                self.dealer = Some(dealer);
                self.heard = now;
                self.greet(now);
            }
            Err(error) => {
                if self.due == Time(0) {
                    aside!("load: no Locust master at {place} yet: {error}; trying again");
                }
                self.due = now + RETRY_AFTER;
            }
        }
    }

    fn greet(&mut self, now: Time) {
        self.stage = Stage::Greeting;
        self.due = now + READY_EVERY;
        self.say("client_ready", NO_VERSION.into());
    }

    /// Handles the master's messages. Where it is gone, users stop.
    fn hear(&mut self, now: Time) -> Vec<Order> {
        let Some(dealer) = &mut self.dealer else {
            return Vec::new();
        };
        let messages = match dealer.receive() {
            Ok(messages) => messages,
            Err(error) => {
                self.lose(&error.to_string(), now);
                return Vec::new();
            }
        };
        if !messages.is_empty() {
            self.heard = now;
        } else if now.since(self.heard) > SILENCE_MAX {
            self.lose("it has been silent for 60 s", now);
        } else if self.stage == Stage::Greeting && now >= self.due {
            self.greet(now);
        }
        let read = messages.iter().map(|bytes| message::read(bytes));
        read.filter_map(|order| {
            order
                .map_err(|reason| aside!("load: from the Locust master: {reason}"))
                .ok()
        })
        .collect()
    }

    fn lose(&mut self, reason: &str, now: Time) {
        aside!("load: the Locust master is gone ({reason}); its users stop, and it is tried again");
        self.dealer = None;
        self.stage = Stage::Away;
        self.classes.clear();
        // Another master has another clock.
        self.spawned = 0.0;
        self.due = now + RETRY_AFTER;
    }

    fn obey(&mut self, order: Order, now: Time) {
        match order {
            Order::Ack { index } if self.stage == Stage::Greeting => {
                self.index = index;
                self.stage = Stage::Ready;
            }
            Order::Spawn {
                at,
                classes: wanted,
            } => {
                self.say("spawning", Value::Nil);
                // Of an order that was overtaken.
                if at <= self.spawned {
                    return;
                }
                self.spawned = at;
                self.classes = wanted;
                self.stage = Stage::Running;
                let data = map([
                    ("user_classes_count", classes(&self.classes)),
                    ("user_count", self.users().into()),
                ]);
                self.say("spawning_complete", data);
            }
            Order::Stop => {
                self.classes.clear();
                self.say("client_stopped", Value::Nil);
                self.greet(now);
            }
            Order::Reconnect => self.lose("it asked for a new connection", now),
            _ => {}
        }
    }

    fn say(&mut self, kind: &str, data: Value) {
        let Some(dealer) = &mut self.dealer else {
            return;
        };
        let sent = message::write(kind, data, &self.node).and_then(|bytes| dealer.send(&bytes));
        if let Err(error) = sent {
            self.lose(&error.to_string(), Time::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_change_users_and_old_ones_do_not() {
        let mut worker = workers(1).remove(0);
        let spawn = |at, count| Order::Spawn {
            at,
            classes: vec![("A".to_owned(), count), ("B".to_owned(), 1)],
        };
        worker.stage = Stage::Greeting;
        worker.obey(Order::Ack { index: Some(4) }, Time(1));
        assert_eq!(worker.index, Some(4));
        assert_eq!(worker.stage, Stage::Ready);
        worker.obey(spawn(2.0, 9), Time(1));
        assert_eq!((worker.users(), worker.stage), (10, Stage::Running));
        worker.obey(spawn(1.5, 50), Time(1));
        assert_eq!(worker.users(), 10);
        worker.obey(Order::Stop, Time(1));
        assert_eq!((worker.users(), worker.stage), (0, Stage::Greeting));
        worker.obey(spawn(3.0, 4), Time(1));
        worker.lose("test", Time(1));
        assert_eq!((worker.users(), worker.stage), (0, Stage::Away));
    }

    #[test]
    fn names_have_one_underscore_behind_the_host() {
        let nodes = workers(3);
        assert!(nodes.iter().all(|w| w.node.matches('_').count() == 1));
        assert_ne!(nodes[0].node, nodes[1].node);
    }
}
