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
