//! Facts that all groups of a run need: made once from the options, never changed.
//!
//! All groups share one [`Plan`] by reference. Invariant: nothing in it changes while they run, so
//! it costs no lock.

use crate::login::Credentials;
use crate::model::Model;
use crate::ports::Sources;
use crate::tolerance::ToleranceArgs;
use crate::workload::{Event, Script};
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
    /// Connections that only read, at a server of their own.
    pub read: Option<Side>,
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

/// Connections that do another part of the work, at another server.
#[derive(Debug)]
pub struct Side {
    /// Statements of an event.
    pub script: Script,
    /// Account that they log in with.
    pub credentials: Credentials,
    /// Address to connect to.
    pub address: Address,
    /// Connections of this side, and of all.
    pub share: (u32, u32),
}

impl Side {
    /// True for a connection of this side; they are spread evenly over all numbers.
    fn has(&self, index: u32) -> bool {
        let (part, whole) = self.share;
        let up_to = |index: u64| index * u64::from(part) / u64::from(whole.max(1));
        up_to(u64::from(index) + 1) > up_to(index.into())
    }
}

impl Plan {
    fn side_of(&self, index: u32) -> Option<&Side> {
        self.read.as_ref().filter(|side| side.has(index))
    }

    /// True if connection `index` reads at a server of its own.
    pub fn reads_elsewhere(&self, index: u32) -> bool {
        self.side_of(index).is_some()
    }

    /// Statements of an event of connection `index`.
    pub fn script_of(&self, index: u32) -> &Script {
        self.side_of(index)
            .map_or(&self.script, |side| &side.script)
    }

    /// Account of connection `index`.
    pub fn credentials_of(&self, index: u32) -> &Credentials {
        let side = self.side_of(index);
        side.map_or(&self.credentials, |side| &side.credentials)
    }

    /// True if there are several statements, whose latencies are told one by one.
    pub fn is_mixed(&self) -> bool {
        self.read.is_some() || self.script.is_mixed()
    }

    /// All statements as they are written down, by their numbers.
    pub fn titles(&self) -> impl Iterator<Item = &str> {
        let read = self.read.as_ref();
        let read = read.into_iter().flat_map(|side| side.script.titles());
        self.script.titles().chain(read)
    }

    /// The number of an event's present statement on connection `index`, among all.
    pub fn number_of(&self, index: u32, event: &Event) -> u16 {
        let Some(side) = self.side_of(index) else {
            return self.script.number_of(event);
        };
        let before = u16::try_from(self.script.titles().count()).unwrap_or(u16::MAX);
        side.script.number_of(event).saturating_add(before)
    }

    /// Source address of connection `index`, if it is not left to the kernel, and its target. All
    /// targets are used from one source before it is the next one's turn, so that each source is
    /// used with each target, whatever their numbers.
    pub fn way_of(&self, index: u32) -> (Option<IpAddr>, &Address) {
        if let Some(side) = self.side_of(index) {
            return (self.sources.of(index.into()), &side.address);
        }
        let places = 1 + self.more_addresses.len();
        let (round, place) = (index as usize / places, index as usize % places);
        let address = match place {
            0 => &self.address,
            place => &self.more_addresses[place - 1],
        };
        (self.sources.of(round as u64), address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Rows;
    use crate::workload::{ScriptArgs, Workload, catalogue};
    use clap::Parser;
    use wire::dsn::Dsn;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        script: ScriptArgs,
    }

    #[test]
    fn connections_of_a_side_are_spread_evenly() {
        let args = Line::parse_from(["load"]).script;
        let dsn = Dsn::parse("mysql://a@h/t").unwrap();
        let side = |part, whole| Side {
            script: catalogue::script(Workload::ReadOnly, &args, 1, Rows::uniform(1_000), 1),
            credentials: Credentials::of(&dsn, [].iter()),
            address: Address::Unix("/s".into()),
            share: (part, whole),
        };
        for (part, whole) in [(1, 2), (5, 10), (3, 10), (9, 10), (1, 1_000_003)] {
            let side = side(part, whole);
            let first = (0..whole / 2).filter(|index| side.has(*index)).count();
            let all = (0..whole).filter(|index| side.has(*index)).count();
            assert_eq!(all, part as usize);
            assert!((part as usize / 2..=part.div_ceil(2) as usize).contains(&first));
        }
    }
}
