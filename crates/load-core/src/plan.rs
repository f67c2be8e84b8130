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
pub struct Plan {
    /// Statements of an event.
    pub script: Script,
    /// Errors that do not end the run.
    pub tolerance: ToleranceArgs,
    /// An event that has begun runs to its end when the time is over.
    pub finishes_events: bool,
    /// Statements are counted by their first word.
    pub counts_by_text: bool,
    /// Model of load.
    pub model: Model,
    /// Account that connections log in with.
    pub credentials: Credentials,
    /// Statements that each connection runs after its login.
    pub init_sql: Vec<String>,
    /// Address to connect to.
    pub address: Address,
    /// Further addresses to connect to, in turn.
    pub more_addresses: Vec<Address>,
    /// Local addresses to connect from.
    pub sources: Sources,
    /// Longest time for opening a connection.
    pub connect_timeout: Duration,
    /// Connections of a group that may be opening at once.
    pub connects_in_flight: u32,
    /// Connections with which a run begins whose number is an order; `None` where options say it.
    pub ordered_users: Option<u32>,
    /// Seed of all random numbers.
    pub seed: u64,
}

impl Plan {
    /// Source address of connection `index`, if it is not left to the kernel, and its target. All
    /// targets are used from one source before it is the next one's turn, so that each source is
    /// used with each target, whatever their numbers.
    pub fn way_of(&self, index: u32) -> (Option<IpAddr>, &Address) {
        let places = 1 + self.more_addresses.len();
        let (round, place) = (index as usize / places, index as usize % places);
        let address = match place {
            0 => &self.address,
            place => &self.more_addresses[place - 1],
        };
        (self.sources.of(round as u64), address)
    }
}
