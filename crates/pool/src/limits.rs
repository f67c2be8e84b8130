//! Limits: what clients may take, and what happens at the bound.
//!
//! [`address_counts`] and [`addresses`] count and limit clients by address and network,
//! [`user_use`] by account; [`memory`] bounds all buffers together, [`retained`] what is kept for
//! idle clients, and [`unfinished`] commands that have not come whole; [`spool`] takes replies of
//! [`slow_readers`] off their backends; [`timeouts`] are those that sessions know;
//! [`rules`] are an administrator's.
//!
//! Each bound has a name, a reason in `errors/`, and a counter.

pub(crate) mod address_counts;
pub(crate) mod addresses;
pub(crate) mod late_clients;
pub(crate) mod long_commands;
pub(crate) mod memory;
pub(crate) mod memory_share;
pub(crate) mod retained;
pub(crate) mod rules;
pub(crate) mod slow_readers;
pub(crate) mod spool;
pub(crate) mod spool_jobs;
pub(crate) mod spool_threads;
pub(crate) mod timeouts;
pub(crate) mod unfinished;
pub(crate) mod user_use;

use crate::client::buffers::room::InputBudget;
use crate::config::Settings;
use crate::limits::memory::{ClientMemory, input_bytes};
use crate::limits::slow_readers::collecting::CollectingGroups;
use crate::limits::spool::SpoolUse;
use crate::server::facts::ServerFacts;
use wire::packet::HEADER_LEN;

/// Bytes retained for clients of all groups, against their bounds.
#[derive(Debug)]
pub(crate) struct RetainedByAll {
    /// Bytes of unfinished commands.
    pub(crate) input: InputBudget,
    /// Bytes in memory.
    pub(crate) memory: ClientMemory,
    /// Use of the spool by replies that were taken off their backends.
    pub(crate) spool: SpoolUse,
    /// Groups that take replies off their backends now.
    pub(crate) collecting: CollectingGroups,
}

impl RetainedByAll {
    /// Nothing retained by so many groups.
    pub(crate) fn new(
        settings: &Settings,
        server: &ServerFacts,
        groups: usize,
        cores: usize,
    ) -> RetainedByAll {
        let command_max = server.max_allowed_packet.saturating_add(HEADER_LEN);
        let (set, memory) = (settings.input_bytes_max, settings.memory_bytes_max);
        RetainedByAll {
            input: InputBudget::new(input_bytes(set, memory, command_max), command_max),
            memory: ClientMemory::new(memory, groups),
            spool: SpoolUse::new(settings.spool_bytes_max, groups),
            collecting: CollectingGroups::new(groups, cores),
        }
    }
}
