//! Matching: the client whose turn it is, the backend that it gets, and backends that are opened.
//!
//! The problem: the queues, the backends, the budget of all groups and what runs at the moment all
//! have a say in each of these, and a group asks in many places: when a command comes, when a
//! backend becomes free, when a turn ends, when it goes to sleep. All must come to the same, or a
//! client waits for what lies idle beside it. The mechanism: [`Matching`] borrows all of them for
//! the moment and answers. It binds, opens and closes nothing: the group does what follows.
//!
//! | file | answers |
//! |---|---|
//! | `turns.rs` | whose turn is next in the queues, and who has to wait though it has a backend |
//! | `choice.rs` | which idle backend suits a client best |
//! | `pipelining.rs` | behind whose statements one may go out |
//! | `fairness.rs` | whether other groups' queues come first |
//! | `shares.rs` | whether another account comes first |
//! | `dialling.rs` | whether a backend is to be opened, lent, or closed for another |
//!
//! Invariants: nothing is changed but entries of queues that stand no more, and what a group tells
//! others of itself and has seen of theirs; what is answered holds until the next change of what
//! is borrowed.

pub(crate) mod choice;
mod dialling;
mod fairness;
mod pipelining;
pub(crate) mod shares;
pub(crate) mod turns;

use crate::backend::Backend;
use crate::backend::pools::BackendPools;
use crate::client::Client;
use crate::config::Settings;
use crate::group::shared::Shared;
use crate::group::tokens::{BackendId, ClientId};
use crate::limits::rules::RuleSet;
use crate::limits::slow_readers::SlowReaders;
use crate::scheduler::running::Running;
use crate::scheduler::waiting_count::WaitingCount;
use reactor::{Slots, Time};
use session::global_defaults::GlobalDefaults;
use session::known_digests::KnownDigests;

/// State of a group at this moment.
pub(crate) struct Matching<'a, S> {
    pub(crate) clients: &'a Slots<Client<S>, ClientId>,
    pub(crate) backends: &'a Slots<Backend<S>, BackendId>,
    pub(crate) pools: &'a mut BackendPools,
    pub(crate) waiting_count: &'a WaitingCount,
    pub(crate) running: &'a Running,
    pub(crate) slow_readers: &'a SlowReaders,
    pub(crate) known_digests: &'a KnownDigests,
    /// Global defaults that sessions begin with now.
    pub(crate) defaults: &'a GlobalDefaults,
    pub(crate) settings: &'a Settings,
    pub(crate) shared: &'a Shared,
    pub(crate) rules: &'a RuleSet,
    /// The group's number.
    pub(crate) index: usize,
    /// True while it drains: nobody new is served.
    pub(crate) drains: bool,
    /// Moment at which a dial is tried at the latest while the server's name is being looked up.
    pub(crate) address_at: Time,
    pub(crate) now: Time,
    /// Accounts that have or want backends, once they are counted.
    pub(crate) accounts: Option<usize>,
}

#[cfg(test)]
mod tests;
