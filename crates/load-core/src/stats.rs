//! Counts of a group, and their sums in the main thread.
//!
//! Each group owns one [`Stats`] and is its only writer; at the end of an interval it gives it away
//! and starts an empty one, so nothing on a statement's way is shared. [`Tally`] sums what single
//! connections did, for sysbench's lines on fairness.

use crate::errors::{ErrorTable, Fault, Phase};
use crate::steps::Steps;
use crate::workload::Verb;
use measure::Histogram;
use reactor::Time;
use std::time::Duration;

/// Class of a statement, by its reply, as sysbench 1.0 has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Returned rows.
    Read,
    /// Changed rows.
    Write,
    /// Neither, as BEGIN.
    Other,
}

const CLASSES: usize = 3;

/// Counts and latencies since the last time they were taken.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Reads that succeeded.
    pub reads: u64,
    /// Writes that succeeded.
    pub writes: u64,
    /// Other statements that succeeded.
    pub others: u64,
    /// COMMITs among them, where statements are counted by their first word.
    pub commits: u64,
    /// Events that ran to their end.
    pub events: u64,
    /// Events among them of connections that read at a server of their own.
    pub read_events: u64,
    /// Statements that failed for good.
    pub failed: u64,
    /// Statements that failed with an error after which the event is tried again.
    pub ignored: u64,
    /// Connections that were lost.
    pub lost: u64,
    /// Connections that were opened again.
    pub reconnects: u64,
    /// Connections that could not be opened.
    pub failed_connects: u64,
    /// Statements that succeeded in time, where a time is set.
    pub in_time: u64,
    /// Statements whose client gave them up before they were answered.
    pub gave_up: u64,
    /// Events that arrived in the open loop.
    pub arrived: u64,
    /// Arrivals that found the line full.
    pub shed: u64,
    /// Arrivals whose patience ended in the line.
    pub expired: u64,
    /// Connections that were closed at the end of their lifetime.
    pub retired: u64,
    /// Times from when a statement was to be sent to its reply's last byte; successes only, by
    /// class.
    latency: [Histogram; CLASSES],
    /// Latencies by the script's statements; empty where the script has only one.
    by_statement: Vec<Histogram>,
    /// Latencies of whole events.
    pub event_latency: Histogram,
    /// Times from the first step of connecting to the end of the login, for first connections.
    pub connect_latency: Histogram,
    /// Latencies of opening a connection again.
    pub reconnect_latency: Histogram,
    /// Lateness of this program itself in doing things at a certain time: begin, give up.
    pub lag: Histogram,
    /// Errors by phase and number.
    pub errors: ErrorTable,
    /// Answers and errors by the tenth of a second.
    pub steps: Steps,
}

impl Stats {
    /// Counts a statement that succeeded; `in_time` is how long it was worth waiting for.
    pub fn succeeded(&mut self, class: Class, latency: Duration, in_time: Option<Duration>) {
        self.in_time += u64::from(in_time.is_none_or(|in_time| latency <= in_time));
        match class {
            Class::Read => self.reads += 1,
            Class::Write => self.writes += 1,
            Class::Other => self.others += 1,
        }
        self.latency[class as usize].record(latency);
    }

    /// Counts the same success for the script's statement of this number.
    pub fn succeeded_with(&mut self, statement: u16, latency: Duration) {
        let at = usize::from(statement);
        if self.by_statement.len() <= at {
            self.by_statement.resize_with(at + 1, Histogram::new);
        }
        self.by_statement[at].record(latency);
    }

    /// Class of a statement by its first word, which is how 0.5 counts: a transaction is a COMMIT.
    pub fn class_by_verb(&mut self, verb: Verb) -> Class {
        self.commits += u64::from(verb == Verb::Commit);
        match verb {
            Verb::Select => Class::Read,
            Verb::Change => Class::Write,
            Verb::Commit | Verb::Other => Class::Other,
        }
    }

    /// Counts a statement that failed so long after it was sent, where that is known.
    pub fn failed(&mut self, fault: Fault, is_ignored: bool, age: Option<Duration>) {
        if is_ignored {
            self.ignored += 1;
        } else {
            self.failed += 1;
            self.steps.error(Time::now());
        }
        self.errors.count_after(Phase::Statement, fault, age);
    }

    /// Counts an error beside statements: a connection was lost, or not opened.
    pub fn error(&mut self, phase: Phase, fault: Fault, age: Option<Duration>) {
        self.steps.error(Time::now());
        self.errors.count_after(phase, fault, age);
    }

    /// The counts of statements alone, without latencies and connections.
    pub fn statements(&self) -> Stats {
        Stats {
            reads: self.reads,
            writes: self.writes,
            others: self.others,
            commits: self.commits,
            failed: self.failed,
            ignored: self.ignored,
            ..Stats::default()
        }
    }

    /// Latencies of the statements of one class.
    pub fn latency_of(&self, class: Class) -> &Histogram {
        &self.latency[class as usize]
    }

    /// Latencies of the script's statement of this number.
    pub fn latency_with(&self, statement: usize) -> Histogram {
        self.by_statement
            .get(statement)
            .cloned()
            .unwrap_or_default()
    }

    /// Latencies of all statements.
    pub fn statement_latency(&self) -> Histogram {
        let mut all = Histogram::new();
        self.latency.iter().for_each(|one| all.merge(one));
        all
    }

    /// Statements that came to an end, whichever.
    pub fn ended(&self) -> u64 {
        self.successes() + self.failed + self.ignored + self.gave_up
    }

    /// Statements that succeeded.
    pub fn successes(&self) -> u64 {
        self.reads + self.writes + self.others
    }

    /// Adds what another one counted.
    pub fn merge(&mut self, other: Stats) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.others += other.others;
        self.commits += other.commits;
        self.events += other.events;
        self.read_events += other.read_events;
        self.failed += other.failed;
        self.ignored += other.ignored;
        self.lost += other.lost;
        self.reconnects += other.reconnects;
        self.failed_connects += other.failed_connects;
        self.in_time += other.in_time;
        self.gave_up += other.gave_up;
        self.arrived += other.arrived;
        self.shed += other.shed;
        self.expired += other.expired;
        self.retired += other.retired;
        for (own, others) in self.latency.iter_mut().zip(&other.latency) {
            own.merge(others);
        }
        let statements = self.by_statement.len().max(other.by_statement.len());
        self.by_statement.resize_with(statements, Histogram::new);
        for (own, others) in self.by_statement.iter_mut().zip(&other.by_statement) {
            own.merge(others);
        }
        self.event_latency.merge(&other.event_latency);
        self.connect_latency.merge(&other.connect_latency);
        self.reconnect_latency.merge(&other.reconnect_latency);
        self.lag.merge(&other.lag);
        self.errors.merge(other.errors);
        self.steps.merge(&other.steps);
    }
}

/// Sums over connections: how many, and of their events and executing seconds the sum and the sum
/// of squares.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    connections: u64,
    events: [f64; 2],
    seconds: [f64; 2],
}

impl Tally {
    /// Adds one connection.
    pub fn add(&mut self, events: u64, busy: Duration) {
        self.connections += 1;
        for (sums, value) in [
            (&mut self.events, events as f64),
            (&mut self.seconds, busy.as_secs_f64()),
        ] {
            sums[0] += value;
            sums[1] += value * value;
        }
    }

    /// Adds what another one summed.
    pub fn merge(&mut self, other: &Tally) {
        self.connections += other.connections;
        for i in 0..2 {
            self.events[i] += other.events[i];
            self.seconds[i] += other.seconds[i];
        }
    }

    /// Connections that were added.
    pub fn connections(&self) -> u64 {
        self.connections
    }

    /// Mean and standard deviation of the connections' events.
    pub fn events(&self) -> (f64, f64) {
        self.spread(self.events)
    }

    /// Mean and standard deviation of the connections' seconds.
    pub fn seconds(&self) -> (f64, f64) {
        self.spread(self.seconds)
    }

    fn spread(&self, [sum, squares]: [f64; 2]) -> (f64, f64) {
        let count = self.connections.max(1) as f64;
        let mean = sum / count;
        (mean, (squares / count - mean * mean).max(0.0).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_adds_everything() {
        let (mut a, mut b) = (Stats::default(), Stats::default());
        let in_time = Some(Duration::from_millis(2));
        a.succeeded(Class::Read, Duration::from_millis(1), in_time);
        b.succeeded(Class::Write, Duration::from_millis(3), in_time);
        b.succeeded(Class::Other, Duration::from_millis(2), in_time);
        b.failed(Fault::ended("x"), false, None);
        b.failed(Fault::ended("x"), true, None);
        b.succeeded_with(1, Duration::from_millis(3));
        b.events = 1;
        a.merge(b);
        assert_eq!((a.reads, a.writes, a.others, a.successes()), (1, 1, 1, 3));
        assert_eq!((a.failed, a.ignored, a.events), (1, 1, 1));
        assert_eq!(a.statement_latency().mean_ms(), 2.0);
        assert_eq!(a.latency_of(Class::Write).mean_ms(), 3.0);
        assert_eq!((a.in_time, a.ended()), (2, 5));
        assert_eq!(a.latency_with(1).mean_ms(), 3.0);
        assert_eq!(
            (a.latency_with(0).count(), a.latency_with(2).count()),
            (0, 0)
        );
        assert_eq!(a.errors.sorted()[0].count, 2);
    }

    #[test]
    fn fairness_is_mean_and_standard_deviation() {
        let (mut a, mut b) = (Tally::default(), Tally::default());
        a.add(2, Duration::from_secs(1));
        b.add(4, Duration::from_secs(1));
        a.merge(&b);
        assert_eq!(a.events(), (3.0, 1.0));
        assert_eq!(a.seconds(), (1.0, 0.0));
        assert_eq!(Tally::default().events(), (0.0, 0.0));
    }
}
