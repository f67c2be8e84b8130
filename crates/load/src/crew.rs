//! The groups as the main thread sees them: how many, with what share, and what they report.
//!
//! How many follows from the cores and from the descriptor limit: a group has a descriptor table of
//! its own, so each holds as many connections as the limit has room for. Connections are dealt
//! evenly. Orders go out by mailbox, letters come back by a bounded channel.
//!
//! Invariants: mailboxes are made before any group takes its own table; [`Crew::report`] returns
//! what was counted since it was last called, so nothing is counted twice or lost.

use crate::allowance::Allowance;
use crate::group::{self, Counted, Letter, Order, Part, Plan, Share};
use crate::options::LoadArgs;
use crate::stats::{Stats, Tally};
use reactor::{Sender, Time, descriptors, mailbox};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Descriptors of a table that are not for connections: standard streams, poll, and some to spare.
const RESERVE: u64 = 48;
/// Stack of a group's thread, in bytes; what is not used costs nothing.
const STACK_BYTES: usize = 512 * 1024;
/// How long the main thread waits at a time, so that it sees a signal soon.
const WAIT_MAX: Duration = Duration::from_millis(100);
/// How long groups may take to answer a request for their numbers.
const ANSWER_MAX: Duration = Duration::from_secs(5);

const PANICKED: &str = "a group panicked, which is a fault of this program; its words are above";

/// How connections are dealt to groups, and why so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) groups: u32,
    pub(crate) cores: u32,
    /// Descriptors of one table.
    pub(crate) descriptors: u64,
    /// Each group has its own table.
    pub(crate) own_tables: bool,
}

impl Layout {
    /// From the options and this machine.
    pub(crate) fn choose(args: &LoadArgs) -> Layout {
        Layout::choose_for(args.connections, args.groups, args.descriptors_per_group)
    }

    /// From what is wanted and this machine; 0 groups leave their number open.
    pub(crate) fn choose_for(connections: u32, groups: u32, descriptors: Option<u64>) -> Layout {
        let limit = descriptors::raise_limit().soft;
        let cores = thread::available_parallelism().map_or(1, |n| n.get());
        // Some sandboxes forbid it; a thread of its own finds out without harm.
        let own_tables = thread::spawn(|| descriptors::own_table().is_ok()).join();
        Layout::of(
            connections,
            groups,
            u32::try_from(cores).unwrap_or(1),
            descriptors.unwrap_or(limit),
            own_tables.unwrap_or(false),
        )
    }

    fn of(connections: u32, wanted: u32, cores: u32, descriptors: u64, own_tables: bool) -> Layout {
        let mut layout = Layout {
            groups: wanted.max(1),
            cores,
            descriptors,
            own_tables,
        };
        if wanted == 0 {
            layout.groups = cores.clamp(1, connections.max(1));
            // Each group needs a descriptor for each mailbox, so room shrinks as groups grow, and
            // past some number of them all together hold fewer.
            while own_tables
                && u64::from(connections) > layout.capacity()
                && layout.groups < connections
            {
                let more = Layout {
                    groups: layout.groups + 1,
                    ..layout
                };
                if more.capacity() <= layout.capacity() {
                    break;
                }
                layout = more;
            }
        }
        layout
    }

    /// Connections that one table has room for.
    pub(crate) fn room(&self) -> u64 {
        self.descriptors
            .saturating_sub(RESERVE + u64::from(self.groups))
    }

    /// Connections that all tables together have room for.
    fn capacity(&self) -> u64 {
        self.room() * u64::from(self.groups)
    }

    /// Cores that its threads can keep busy.
    pub(crate) fn usable_cores(&self) -> f64 {
        f64::from(self.groups.min(self.cores).max(1))
    }

    /// First index and number of the connections of group `group`.
    pub(crate) fn deal(&self, group: u32, connections: u32) -> (u32, u32) {
        let (each, rest) = (connections / self.groups, connections % self.groups);
        (
            group * each + group.min(rest),
            each + u32::from(group < rest),
        )
    }

    /// Why there are so many groups.
    pub(crate) fn reason(&self) -> String {
        let Layout {
            groups,
            cores,
            descriptors,
            ..
        } = self;
        let room = self.room();
        if self.own_tables {
            format!(
                "{groups} groups on {cores} cores, each with its own table of {descriptors} \
                 descriptors, room for {room} connections"
            )
        } else {
            format!(
                "{groups} groups on {cores} cores; this system does not let them have descriptor \
                 tables of their own, so all share one of {descriptors} descriptors, room for \
                 {room} connections"
            )
        }
    }
}

/// How things stand at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Gauges {
    /// Connections that are open and logged in.
    pub(crate) connected: u64,
    /// Those of them that wait for a reply.
    pub(crate) executing: u64,
    /// Events that have arrived and wait for an idle connection.
    pub(crate) waiting: u64,
    /// CPU time of the group's thread so far.
    pub(crate) cpu: Duration,
}

/// All groups.
pub(crate) struct Crew {
    orders: Vec<Sender<Order>>,
    threads: Vec<JoinHandle<()>>,
    letters: Receiver<Letter>,
    /// Counted since the last report, of all groups.
    stats: Stats,
    /// How things stood in each group when it last answered.
    gauges: Vec<Gauges>,
    answers: usize,
    pub(crate) settled: usize,
    pub(crate) finished: usize,
    pub(crate) ended: usize,
    /// Sums over connections that have not been taken yet: of a checkpoint, or of the end.
    pub(crate) tally: Tally,
    pub(crate) unfinished: u64,
    /// Why a group could not begin or go on.
    pub(crate) failure: Option<String>,
    /// The error that ends the run, where one is to.
    pub(crate) fatal: Option<String>,
}

impl Crew {
    /// Starts all groups; they begin to connect at once.
    pub(crate) fn start(
        args: &LoadArgs,
        plan: &Arc<Plan>,
        layout: &Layout,
    ) -> Result<Crew, String> {
        let count = layout.groups as usize;
        let (sender, letters) = sync_channel(4 * count);
        let mut orders = Vec::with_capacity(count);
        let mut boxes = Vec::with_capacity(count);
        for _ in 0..count {
            let (order, mailbox) =
                mailbox().map_err(|e| format!("no mailbox for a group: {e}; ulimit -n?"))?;
            orders.push(order);
            boxes.push(mailbox);
        }
        let events = Arc::new(Allowance::new(args.events));
        let mut threads = Vec::with_capacity(count);
        for (number, mailbox) in (0..layout.groups).zip(boxes) {
            let (first, connections) = layout.deal(number, args.connections);
            let share = Share {
                part: Part {
                    group: number,
                    groups: layout.groups,
                    connections: args.connections,
                },
                first,
                connections,
                connects_per_second: f64::from(args.connect_rate) * f64::from(connections)
                    / f64::from(args.connections),
                events: events.clone(),
            };
            let (plan, sender) = (plan.clone(), sender.clone());
            let thread = thread::Builder::new()
                .name(format!("group-{number}"))
                .stack_size(STACK_BYTES)
                .spawn(move || group::run(plan, share, mailbox, sender))
                .map_err(|e| format!("no thread for a group: {e}"))?;
            threads.push(thread);
        }
        Ok(Crew {
            orders,
            threads,
            letters,
            stats: Stats::default(),
            gauges: vec![Gauges::default(); count],
            answers: 0,
            settled: 0,
            finished: 0,
            ended: 0,
            tally: Tally::default(),
            unfinished: 0,
            failure: None,
            fatal: None,
        })
    }

    /// Why the run should not go on.
    pub(crate) fn reason_to_stop(&self) -> Option<&String> {
        self.failure.as_ref().or(self.fatal.as_ref())
    }

    /// Groups.
    pub(crate) fn len(&self) -> usize {
        self.orders.len()
    }

    /// Connections that stood when the groups last answered.
    pub(crate) fn connected(&self) -> u64 {
        self.gauges().connected
    }

    /// How things stood in all groups when they last answered.
    pub(crate) fn gauges(&self) -> Gauges {
        self.gauges
            .iter()
            .fold(Gauges::default(), |sum, one| Gauges {
                connected: sum.connected + one.connected,
                executing: sum.executing + one.executing,
                waiting: sum.waiting + one.waiting,
                cpu: sum.cpu + one.cpu,
            })
    }

    /// CPU time that each group's thread had used when it last answered.
    pub(crate) fn cpu(&self) -> Vec<Duration> {
        self.gauges.iter().map(|gauges| gauges.cpu).collect()
    }

    /// Gives all groups an order.
    pub(crate) fn order(&self, order: Order) {
        self.orders.iter().for_each(|group| group.send(order));
    }

    /// Reads letters until `until`, for a short while at most. False when no group is left.
    pub(crate) fn listen(&mut self, until: Time) -> bool {
        let wait = until.since(Time::now()).min(WAIT_MAX);
        match self.letters.recv_timeout(wait) {
            Ok(letter) => self.take(letter),
            Err(RecvTimeoutError::Timeout) => self.look_for_dead(),
            Err(RecvTimeoutError::Disconnected) => {
                self.ended = self.len();
                return false;
            }
        }
        true
    }

    /// A group whose thread has ended without a letter has panicked: nobody waits for it.
    fn look_for_dead(&mut self) {
        let dead = self
            .threads
            .iter()
            .filter(|thread| thread.is_finished())
            .count();
        if dead > self.ended {
            // Its last letter may have come between the two looks.
            while let Ok(letter) = self.letters.try_recv() {
                self.take(letter);
            }
        }
        if dead > self.ended {
            self.ended = dead;
            self.failure = Some(PANICKED.to_owned());
        }
    }

    fn take(&mut self, letter: Letter) {
        match letter {
            Letter::Settled => self.settled += 1,
            Letter::Finished => {
                // The others may be asleep, and have nothing left to do either.
                if self.finished == 0 {
                    self.order(Order::Look);
                }
                self.finished += 1;
            }
            Letter::Counted(counted) => {
                self.answers += 1;
                self.count(*counted);
            }
            Letter::Ended(counted) => {
                self.ended += 1;
                self.unfinished += counted.unfinished;
                self.count(*counted);
            }
            Letter::Fatal(reason) => {
                self.fatal.get_or_insert(reason);
            }
            Letter::Failed(reason) => {
                self.ended += 1;
                self.failure = Some(reason);
            }
        }
    }

    fn count(&mut self, counted: Counted) {
        self.tally.merge(&counted.tally);
        self.stats.merge(counted.stats);
        if let Some(gauges) = self.gauges.get_mut(counted.group) {
            *gauges = counted.gauges;
        }
    }

    /// Gives `order`, which all groups answer with their numbers, and returns what was counted
    /// since the last time. A group that does not answer in time is counted the next time.
    pub(crate) fn report(&mut self, order: Order) -> Stats {
        // One that answers and ends at once stands for itself alone.
        let gone = self.ended;
        self.answers = 0;
        self.order(order);
        let until = Time::now() + ANSWER_MAX;
        while self.answers + gone < self.len() && self.failure.is_none() && Time::now() < until {
            if !self.listen(until) {
                break;
            }
        }
        std::mem::take(&mut self.stats)
    }

    /// Waits for all groups to end, until `until`, and returns what they counted since the last
    /// report.
    pub(crate) fn end(&mut self, until: Time) -> Stats {
        while self.ended < self.len() && Time::now() < until {
            if !self.listen(until) {
                break;
            }
        }
        if self.ended == self.len() {
            for thread in self.threads.drain(..) {
                if thread.join().is_err() {
                    self.failure = Some(PANICKED.to_owned());
                }
            }
        }
        std::mem::take(&mut self.stats)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_follow_from_cores_and_descriptors() {
        let groups = |connections, limit| Layout::of(connections, 0, 2, limit, true).groups;
        assert_eq!(groups(1, 20_000), 1);
        assert_eq!(groups(10_000, 20_000), 2);
        assert_eq!(groups(100_000, 20_000), 6);
        assert_eq!(groups(1_000_000, 20_000), 51);
        assert_eq!(groups(2_000, 500), 5);
        assert_eq!(groups(1_000, 1_000_000), 2);
        assert_eq!(Layout::of(1_000, 7, 2, 20_000, true).groups, 7);
        let shared = Layout::of(100_000, 0, 2, 20_000, false);
        assert_eq!(
            shared.groups, 2,
            "more groups would not help with one table"
        );
        assert!(shared.reason().contains("share one"));
        assert!(
            groups(1_000_000, 10) <= 5,
            "a limit that is far too small ends the search"
        );
        // 72 descriptors are free in each table, less one for each group: 36 x 36 is the most.
        assert_eq!(groups(1_000_000, 120), 36);
    }

    #[test]
    fn every_connection_is_dealt_once() {
        for (connections, groups) in [(10, 3), (2, 2), (100_000, 7), (3, 5)] {
            let layout = Layout::of(connections, groups, 2, 20_000, true);
            let mut next = 0;
            for group in 0..groups {
                let (first, count) = layout.deal(group, connections);
                assert_eq!(first, next);
                next += count;
            }
            assert_eq!(next, connections);
        }
    }
}
