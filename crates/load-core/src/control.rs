//! Messages between the main thread and its groups.
//!
//! The main thread gives each group its [`Share`] once, then an [`Order`] now and then; a group
//! answers with a [`Message`]. Groups tell each other nothing.

use crate::allowance::Allowance;
use crate::stats::{Stats, Tally};
use reactor::Time;
use std::sync::Arc;
use std::time::Duration;

/// Gauges at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Connections that are open and logged in.
    pub connected: u64,
    /// Connections that wait for a reply.
    pub executing: u64,
    /// Events that have arrived and wait for an idle connection.
    pub waiting: u64,
    /// CPU time of the group's thread so far.
    pub cpu: Duration,
}

/// A part of a whole that is dealt to groups evenly.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Number of the group, from 0.
    pub group: u32,
    /// Number of all groups.
    pub groups: u32,
    /// Connections of all groups.
    pub connections: u32,
}

impl Part {
    /// Part of `whole` that is this group's.
    pub fn of(self, whole: u32) -> u32 {
        whole / self.groups + u32::from(self.group < whole % self.groups)
    }
}

/// A group's part of the whole.
#[derive(Debug)]
pub struct Share {
    /// Place of the group among all.
    pub part: Part,
    /// Index of its first connection.
    pub first: u32,
    /// Connections of the group.
    pub connections: u32,
    /// Connections to open each second; 0 is as fast as possible.
    pub connects_per_second: f64,
    /// Events to run, of all groups.
    pub events: Arc<Allowance>,
}

/// Orders of the main thread.
#[derive(Clone, Copy, Debug)]
pub enum Order {
    /// Execute from now on.
    Start,
    /// Hand over what was counted.
    Report,
    /// Report counts, with sums over connections since the last checkpoint.
    Checkpoint,
    /// Forget what was counted.
    Reset,
    /// Number of connections of all groups that are to be open.
    Users(u32),
    /// Checks whether this group has anything left to do: the last event has run.
    Look,
    /// Hand over what was counted, send no more statements, end by then.
    Stop(Time),
}

/// Messages of a group to the main thread.
#[derive(Debug)]
pub enum Message {
    /// End of the ramp: every connection has been tried.
    Settled,
    /// Counts since the last ones.
    Counted(Box<Counted>),
    /// End of all events, or of what this group could do about those that have not run.
    Finished,
    /// End of the group; counts since the last ones, and sums over its connections.
    Ended(Box<Counted>),
    /// An error that is to end the run.
    Fatal(String),
    /// The group could not begin.
    Failed(String),
}

/// A group's numbers.
#[derive(Debug, Default)]
pub struct Counted {
    /// Number of the group, from 0.
    pub group: usize,
    /// Counts since the report before.
    pub stats: Stats,
    /// State at the moment of the report.
    pub gauges: Gauges,
    /// Sums over connections since the checkpoint before, at a checkpoint and at the end only.
    pub tally: Tally,
    /// Statements whose reply had not come, at the end only.
    pub unfinished: u64,
}
