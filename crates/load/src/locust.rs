//! `--locust-master`: one process as one or many workers of a Locust master.
//!
//! The problem: Locust spreads a test over machines and shows it in a browser, and its own clients
//! are Python. The mechanism: the groups of a run do the work; here the main thread speaks to the
//! master, unmodified Locust 2.x, as a worker does ([`zmtp`] the socket, [`message`] the messages,
//! [`entries`] what is reported). A user of Locust is a connection of the workload: how many there
//! are to be is an order that groups follow at once.
//!
//! A master gives each worker the same share, however many cores it has; `--workers N` registers
//! this process under N names, so that it gets N shares.
//!
//! Invariants: nothing is said of a worker before the master has acknowledged it, but that it is
//! ready (a master ends its loop at a message from nobody); users that no master controls are
//! stopped; a request is reported once.

mod entries;
mod message;
mod zmtp;

use crate::Outcome;
use crate::control::Order as GroupOrder;
use crate::crowd;
use crate::group_threads::GroupThreads;
use crate::layout::Layout;
use crate::options::LoadArgs;
use crate::stats::Stats;
use entries::Entries;
use measure::process;
use message::{Order, classes, map};
use reactor::{Time, wall_clock};
use rmpv::Value;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use zmtp::Dealer;

/// Where a master listens unless it is told otherwise.
const PORT: u16 = 5557;
/// How often a worker says that it is alive, and groups are asked for their counts.
const BEAT: Duration = Duration::from_secs(1);
/// How often requests are reported, and how often a worker that is not acknowledged says again
/// that it is ready.
const REPORT_EVERY: Duration = Duration::from_secs(3);
const READY_EVERY: Duration = Duration::from_secs(5);
/// A master that is silent for so long is gone.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// How long to wait before the master is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// How long groups may take to end.
const END_MAX: Duration = Duration::from_secs(5);
/// A master takes any version of a worker that says it is of no version.
const NO_VERSION: i64 = -1;

/// What the master thinks of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// There is no connection.
    Away,
    /// It has said that it is ready.
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
    /// When something is to be said or tried again.
    due: Time,
    heard: Time,
    /// Time of the last order to spawn, by the master's clock.
    spawned: f64,
    classes: Vec<(String, u32)>,
}

/// Runs until the master says quit, or `stop` is set.
///
/// # Errors
/// A sentence that says why it could not go on.
pub(crate) fn run(args: &LoadArgs, stop: &Arc<AtomicBool>) -> Result<Outcome, String> {
    let master = args.locust.master.as_deref().unwrap_or_default();
    let place = match master.rsplit_once(':') {
        Some((_, port)) if port.parse::<u16>().is_ok() => master.to_owned(),
        _ => format!("{master}:{PORT}"),
    };
    let layout = Layout::choose(args);
    let plan = Arc::new(crowd::make_plan(args)?);
    let group_threads = GroupThreads::start(args, &plan, &layout)?;
    let titles = match plan.script.is_mixed() {
        true => plan.script.titles().map(str::to_owned).collect(),
        false => Vec::new(),
    };
    eprintln!(
        "load: {} workers of the Locust master at {place}, for at most {} users in {}",
        args.locust.workers,
        args.connections,
        layout.reason()
    );
    group_threads.order(GroupOrder::Start);
    let mut fleet = Fleet {
        place,
        workers: workers(args.locust.workers),
        group_threads,
        entries: Entries::default(),
        workload: args.workload_name().to_owned(),
        titles,
        users_max: args.connections,
        users: 0,
        started: wall_clock(),
        beat_due: Time::now(),
        report_due: Time::now() + REPORT_EVERY,
        cpu: (Time::now(), Duration::ZERO),
        cores: layout.usable_cores(),
        reason: None,
    };
    let ended = fleet.live(stop);
    fleet.end();
    ended.map(|()| Outcome::Ran)
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
            spawned: 0.0,
            classes: Vec::new(),
        })
        .collect()
}

/// All workers, and the groups that work for them.
struct Fleet {
    place: String,
    workers: Vec<Worker>,
    group_threads: GroupThreads,
    entries: Entries,
    workload: String,
    /// The workload's statements, where it has several.
    titles: Vec<String>,
    users_max: u32,
    /// What groups were last told.
    users: u32,
    started: f64,
    beat_due: Time,
    report_due: Time,
    /// When CPU time was last looked at, and what it was.
    cpu: (Time, Duration),
    cores: f64,
    /// Why it ends, if something failed.
    reason: Option<String>,
}

impl Fleet {
    fn live(&mut self, stop: &AtomicBool) -> Result<(), String> {
        loop {
            self.group_threads.listen(self.beat_due);
            if let Some(reason) = self.group_threads.reason_to_stop() {
                return Err(reason.clone());
            }
            for number in 0..self.workers.len() {
                self.attend(number);
            }
            self.follow();
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
                return self.reason.take().map_or(Ok(()), Err);
            }
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
            match order {
                Order::Quit => {
                    eprintln!("load: the Locust master said quit");
                    self.report();
                    self.workers.clear();
                    return;
                }
                Order::Spawn { .. } if self.users == 0 => self.forget(),
                _ => {}
            }
            if let Some(worker) = self.workers.get_mut(number) {
                worker.obey(order, now);
            }
        }
    }

    /// A new test begins: what was counted belongs to none.
    fn forget(&mut self) {
        self.group_threads.report(GroupOrder::Report);
        self.entries = Entries::default();
        self.started = wall_clock();
    }

    /// Tells groups how many users the workers have together.
    fn follow(&mut self) {
        let wanted: u32 = self.workers.iter().map(Worker::users).sum();
        if wanted > self.users_max && self.users <= self.users_max {
            eprintln!(
                "load: the Locust master wants {wanted} users here, and --connections allows {}; \
                 the others do nothing",
                self.users_max
            );
        }
        if wanted != self.users {
            self.users = wanted;
            let told = wanted.min(self.users_max);
            self.group_threads.order(GroupOrder::Users(told));
        }
    }

    /// Collects counts, and says that all workers are alive.
    fn beat(&mut self) {
        let counts: Stats = self.group_threads.report(GroupOrder::Report);
        self.entries
            .add(&counts, &self.workload, &self.titles, wall_clock());
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
        let end = Time::now() + END_MAX;
        self.group_threads.order(GroupOrder::Stop(end));
        self.group_threads.end(end + END_MAX);
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
                    eprintln!("load: no Locust master at {place} yet: {error}; trying again");
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

    /// What the master has said. Where it is gone, users stop.
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
                .map_err(|reason| eprintln!("load: from the Locust master: {reason}"))
                .ok()
        })
        .collect()
    }

    fn lose(&mut self, reason: &str, now: Time) {
        eprintln!(
            "load: the Locust master is gone ({reason}); its users stop, and it is tried again"
        );
        self.dealer = None;
        self.stage = Stage::Away;
        self.classes.clear();
        // Another master has another clock.
        self.spawned = 0.0;
        self.due = now + RETRY_AFTER;
    }

    fn obey(&mut self, order: Order, now: Time) {
        match order {
            Order::Ack if self.stage == Stage::Greeting => self.stage = Stage::Ready,
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
            Order::Other(kind) if kind != "spawning_complete" => {
                eprintln!("load: the Locust master sent '{kind}', which nothing here reads");
            }
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

/// Prints [`locustfile`].
///
/// # Errors
/// That nobody reads it.
pub(crate) fn print_locustfile(args: &LoadArgs) -> Result<Outcome, String> {
    let written = std::io::stdout().write_all(locustfile(args).as_bytes());
    written
        .map(|()| Outcome::Ran)
        .map_err(|error| format!("cannot write the locustfile: {error}"))
}

/// The locustfile that a master is started with: a class of users for the workload, which does
/// nothing in Python.
fn locustfile(args: &LoadArgs) -> String {
    let words = args
        .workload_name()
        .split(|c: char| !c.is_ascii_alphanumeric());
    let class: String = words
        .filter(|word| !word.is_empty())
        .map(|word| {
            let (first, rest) = word.split_at(1);
            format!("{}{rest}", first.to_ascii_uppercase())
        })
        .collect();
    format!(
        "# For the master: locust -f THIS_FILE --master\n\
         # The users run in `onramp load {name} run --locust-master HOST`; nothing runs here.\n\
         from locust import User, constant, task\n\n\n\
         class {class}(User):\n    \
             host = \"{target}\"\n    \
             wait_time = constant(1)\n\n    \
             @task\n    \
             def runs_elsewhere(self):\n        \
                 pass\n",
        name = args.workload_name(),
        target = args.target.place(),
    )
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
        worker.obey(Order::Ack, Time(1));
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
