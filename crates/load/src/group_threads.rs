//! The groups as the main thread sees them: with what share they start, and what they report.
//!
//! Invariant: [`GroupThreads::report`] returns what was counted since it was last called, so
//! nothing is counted twice or lost.

use crate::group;
use crate::options::LoadArgs;
use crate::proof;
use load_core::allowance::Allowance;
use load_core::control::{Counted, Gauges, Message, Order, Part, Share};
use load_core::layout::Layout;
use load_core::plan::Plan;
use load_core::stats::{Stats, Tally};
use load_core::threads::{Heard, PANICKED, Threads};
use reactor::Time;
use std::sync::Arc;
use std::time::Duration;

/// Longest time for groups to answer a request for their numbers.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// All groups.
pub(crate) struct GroupThreads {
    threads: Threads<Order, Message>,
    /// Counted since the last report, of all groups.
    stats: Stats,
    /// Gauges of each group when it last answered.
    gauges: Vec<Gauges>,
    answers: usize,
    pub(crate) settled: usize,
    pub(crate) finished: usize,
    pub(crate) ended: usize,
    /// Sums over connections that have not been taken yet: of a checkpoint, or of the end.
    pub(crate) tally: Tally,
    pub(crate) unfinished: u64,
    /// Reason for a group that could not begin or go on.
    pub(crate) failure: Option<String>,
    /// The error that ends the run, where one is to.
    pub(crate) fatal: Option<String>,
}

impl GroupThreads {
    /// Starts all groups; they begin to connect at once.
    pub(crate) fn start(
        args: &LoadArgs,
        plan: &Arc<Plan>,
        layout: &Layout,
    ) -> Result<GroupThreads, String> {
        let events = Arc::new(Allowance::new(args.events));
        let threads = Threads::start(layout.groups, |number| {
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
            let (plan, lua, proof) = (plan.clone(), args.lua.clone(), args.proof.clone());
            move |mailbox, letters| match (lua, proof) {
                (Some(program), _) => load_lua::run_group(plan, &program, share, mailbox, letters),
                (None, Some(proof)) => proof::run_group(plan, proof, share, mailbox, letters),
                (None, None) => group::run(plan, share, mailbox, letters),
            }
        })?;
        Ok(GroupThreads {
            threads,
            stats: Stats::default(),
            gauges: vec![Gauges::default(); layout.groups as usize],
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

    /// Reason to end the run.
    pub(crate) fn reason_to_stop(&self) -> Option<&String> {
        self.failure.as_ref().or(self.fatal.as_ref())
    }

    /// Groups.
    pub(crate) fn len(&self) -> usize {
        self.threads.count()
    }

    /// Connections that stood when the groups last answered.
    pub(crate) fn connected(&self) -> u64 {
        self.gauges().connected
    }

    /// Sum of the gauges when groups last answered.
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
        self.threads.order(order);
    }

    /// Reads messages until `until`, for a short while at most. False when no group is left.
    pub(crate) fn listen(&mut self, until: Time) -> bool {
        match self.threads.hear(until, self.ended) {
            Heard::Message(message) => self.take(message),
            Heard::Nothing => {}
            Heard::Lost(gone) => {
                self.ended = gone;
                self.failure = Some(PANICKED.to_owned());
            }
            Heard::Nobody => {
                self.ended = self.len();
                return false;
            }
        }
        true
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Settled => self.settled += 1,
            Message::Finished => {
                // The others may be asleep, and have nothing left to do either.
                if self.finished == 0 {
                    self.order(Order::Look);
                }
                self.finished += 1;
            }
            Message::Counted(counted) => {
                self.answers += 1;
                self.count(*counted);
            }
            Message::Ended(counted) => {
                self.ended += 1;
                self.unfinished += counted.unfinished;
                self.count(*counted);
            }
            Message::Fatal(reason) => {
                self.fatal.get_or_insert(reason);
            }
            Message::Failed(reason) => {
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
        if self.ended == self.len() && self.threads.join().is_err() {
            self.failure = Some(PANICKED.to_owned());
        }
        std::mem::take(&mut self.stats)
    }
}
