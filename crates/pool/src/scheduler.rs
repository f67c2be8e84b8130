//! The scheduler: which waiting command gets which backend, and when.
//!
//! [`queue`] is one line of waiting commands, [`line`] and [`waiters`] are those who stand in it;
//! [`matching`] brings clients and backends together; [`fronts`] makes all groups' queues one line.
//! [`checkout`] binds the two and parts them, by way of [`queueing`] and [`serving`].
//! [`budget`] and [`account_slots`] count connections to the server over all groups,
//! [`running`], [`running_limit`] and [`hill_climb`] statements that run at once; [`bulk`] and
//! [`client_turn`] bound what one client takes of a turn; [`admission`] paces new connections.

pub(crate) mod account_slots;
pub(crate) mod admission;
pub(crate) mod budget;
pub(crate) mod bulk;
pub(crate) mod checkout;
pub(crate) mod client_turn;
pub(crate) mod fronts;
pub(crate) mod hill_climb;
pub(crate) mod matching;
pub(crate) mod priority;
pub(crate) mod queue;
pub(crate) mod queueing;
pub(crate) mod running;
pub(crate) mod running_limit;
pub(crate) mod serving;
pub(crate) mod sharing;
pub(crate) mod waiters;
pub(crate) mod waiting_count;

use crate::config::Settings;
use crate::limits::rules::Rules;
use crate::scheduler::fronts::Fronts;
use crate::scheduler::running_limit::RunningLimit;
use reactor::Time;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// State that decides in all groups which statements begin.
#[derive(Debug)]
pub(crate) struct Scheduling {
    /// Moments since which the front of each group's queues waits.
    pub(crate) fronts: Fronts,
    /// Number of statements that run at once, where the pool looks for it.
    pub(crate) running_limit: RunningLimit,
    /// Rules about digests.
    pub(crate) rules: Rules,
    /// No statement begins for a client without a backend.
    paused: AtomicBool,
}

impl Scheduling {
    /// State of so many groups at their start.
    pub(crate) fn new(groups: usize, cores: usize) -> Scheduling {
        Scheduling {
            fronts: Fronts::new(groups),
            running_limit: RunningLimit::new(groups, cores.min(groups)),
            rules: Rules::default(),
            paused: AtomicBool::new(false),
        }
    }

    /// True while no statement begins for a client without a backend.
    pub(crate) fn is_paused(&self) -> bool {
        self.paused.load(Relaxed)
    }

    /// Time between two logins in a group: none while no statement has to wait anywhere.
    pub(crate) fn login_gap(&self, settings: &Settings, now: Time) -> Duration {
        if !self.fronts.anybody_waits(now) {
            return Duration::ZERO;
        }
        let groups = u32::try_from(self.fronts.0.len()).unwrap_or(u32::MAX);
        Duration::from_secs(1) / settings.logins_per_s_max * groups
    }

    /// Begins or ends a pause; `true` if there was one before.
    pub(crate) fn set_paused(&self, on: bool) -> bool {
        self.paused.swap(on, Relaxed)
    }
}
