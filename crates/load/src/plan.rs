//! Facts that all groups of a run need: made once from the options, never changed.
//!
//! All groups share one [`Plan`] by reference. Invariant: nothing in it changes while they run, so
//! it costs no lock.

use crate::login::Credentials;
use crate::model::Model;
use crate::ports::Sources;
use crate::tolerance::ToleranceArgs;
use crate::workload::Script;
use reactor::Address;
use std::net::IpAddr;
use std::time::Duration;

/// Facts that all groups need; never changes.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) script: Script,
    pub(crate) tolerance: ToleranceArgs,
    /// An event that has begun runs to its end when the time is over.
    pub(crate) finishes_events: bool,
    /// Statements are counted by their first word.
    pub(crate) counts_by_text: bool,
    pub(crate) model: Model,
    pub(crate) credentials: Credentials,
    /// Statements that each connection runs after its login.
    pub(crate) init_sql: Vec<String>,
    pub(crate) address: Address,
    /// Further addresses to connect to, in turn.
    pub(crate) more_addresses: Vec<Address>,
    pub(crate) sources: Sources,
    pub(crate) connect_timeout: Duration,
    pub(crate) connects_in_flight: u32,
    /// Connections with which a run begins whose number is an order; `None` where options say it.
    pub(crate) ordered_users: Option<u32>,
    pub(crate) seed: u64,
}

impl Plan {
    /// Source address of connection `index`, if it is not left to the kernel, and its target. All
    /// targets are used from one source before it is the next one's turn, so that each source is
    /// used with each target, whatever their numbers.
    pub(crate) fn way_of(&self, index: u32) -> (Option<IpAddr>, &Address) {
        let places = 1 + self.more_addresses.len();
        let (round, place) = (index as usize / places, index as usize % places);
        let address = match place {
            0 => &self.address,
            place => &self.more_addresses[place - 1],
        };
        (self.sources.of(round as u64), address)
    }
}
