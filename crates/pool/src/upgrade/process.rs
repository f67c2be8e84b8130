//! Live upgrade: another process of the pool takes the place of this one.
//!
//! The problem: a new binary, or settings that are read at start only, must not cost anybody a
//! connection. The mechanism: the new process reads its settings and reaches the server before it
//! asks the old one for anything (`successor.rs`). The old one tells it where it listens, and when
//! the groups of the new one stand, each old group stops to accept and connects to the group of its
//! number over there. It hands over its listening sockets (nobody who waits there is lost), then
//! its clients, in batches that are acknowledged (`giving.rs`, `taking.rs`). A client goes when it
//! is between two commands, with the backend that it holds; until then it is served here. The old
//! process ends with its last client; what cannot go by then is drained after `drain_ms_max`.
//!
//! The two main threads keep a connection all the time (`predecessor.rs` has the old one's end of
//! it): a process that is gone is noticed at once.
//!
//! Invariants: until a batch is acknowledged the old process has every client of it, and afterwards
//! the new one has; what ends a hand-over in the middle makes the old process serve those that it
//! has, whatever the reason; an old process that ends in the middle leaves a new one that serves
//! what it has taken, at the same addresses; no step waits longer than [`STEP_MAX`].
//!
//! One process accepts, however many take over from each other at once and whichever of them dies:
//! the one that has the right to ([`reactor::Right`]). The old one gives it back when the new one
//! is ready to take it, before the first listener goes. A process whose hand-over fails accepts
//! again only with that right, so never while a later one accepts.

pub(crate) mod giving;
pub(crate) mod part;
pub(crate) mod predecessor;
pub(crate) mod rules;
pub(crate) mod successor;
pub(crate) mod taking;

use crate::upgrade::record::Stays;
use reactor::{Right, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The longest that a process waits for the next word of the other one.
pub(crate) const STEP_MAX: Duration = Duration::from_secs(10);
/// Interval at which the other process is listened to meanwhile.
pub(crate) const LISTEN_EVERY: Duration = Duration::from_millis(20);

/// Longest time for which a process that has ended may be seen to have the right to accept.
pub(crate) const RELEASE_MAX: Duration = Duration::from_secs(1);

/// Takes the right to accept of a process that has ended, or is ending.
pub(crate) fn take_released(right: &Right) -> bool {
    let late = Time::now() + RELEASE_MAX;
    while !right.try_take() {
        if Time::now() >= late {
            return false;
        }
        reactor::pause(LISTEN_EVERY);
    }
    true
}

/// Name of the socket at which a process waits for its successor.
fn name_of_process(pid: u32) -> String {
    format!("onramp-pool-{pid}")
}

/// Name of the socket at which a group of the new process waits for the one of its number in the
/// old process.
fn name_of_group(pid: u32, group: usize) -> String {
    format!("onramp-pool-{pid}-group-{group}")
}

/// Progress of the hand-over to a successor: written by the groups, read by the thread that talks
/// with the successor.
#[derive(Debug, Default)]
pub(crate) struct Progress(Mutex<Steps>);

/// Steps of the hand-over, unlocked.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    /// True if a hand-over is going on, or has left clients here while another process accepts.
    pub(crate) is_on: bool,
    /// Counts them: what a group says of an earlier one is of no interest.
    pub(crate) number: u64,
    /// Clients that have gone.
    pub(crate) moved: u64,
    /// The longest that one was not served on its way.
    pub(crate) longest: Duration,
    /// Clients that are still here, by group, once its listeners have gone.
    pub(crate) clients: BTreeMap<usize, usize>,
    /// Reasons why they are, as far as all of a group were looked at.
    pub(crate) left: BTreeMap<usize, BTreeMap<Stays, usize>>,
    /// Reason why the other process did not take one, the last time.
    pub(crate) refusal: Option<String>,
    /// Groups that hand over no more, after which they change none of this.
    pub(crate) stopped: BTreeSet<usize>,
    /// Groups that have closed their listeners, since another process accepts.
    pub(crate) closed: BTreeSet<usize>,
    /// Reason for which a group could not go on.
    pub(crate) failed: Option<String>,
    /// True if it failed because the other process has not answered.
    pub(crate) is_silent: bool,
}

impl Progress {
    /// Steps known at this moment.
    pub(crate) fn steps(&self) -> MutexGuard<'_, Steps> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Steps {
    /// Clients that are still here.
    fn left_count(&self) -> usize {
        self.clients.values().sum()
    }

    /// Clients that are left, in words: how many for each reason. The others are on their way, or
    /// will be.
    fn left_words(&self) -> String {
        let mut all: BTreeMap<Stays, usize> = BTreeMap::new();
        for (why, count) in self.left.values().flatten() {
            *all.entry(*why).or_default() += count;
        }
        let known: usize = all.values().sum();
        let rest = self.left_count().saturating_sub(known);
        let words = (all.iter()).map(|(why, count)| format!("{} {count}", why.name()));
        let words = words.chain((rest > 0).then(|| format!("next {rest}")));
        words.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_told_by_reason() {
        let mut steps = Steps::default();
        steps
            .left
            .insert(0, [(Stays::Tls, 2), (Stays::Pinned, 1)].into());
        steps.left.insert(1, [(Stays::Tls, 3)].into());
        steps.clients = [(0, 3), (1, 3)].into();
        assert_eq!(steps.left_count(), 6);
        assert_eq!(steps.left_words(), "tls 5, pinned 1");
        steps.clients = [(0, 3), (1, 10)].into();
        assert_eq!(steps.left_words(), "tls 5, pinned 1, next 7");
    }
}
