//! The scheduler: which waiting command gets which backend, and when.
//!
//! [`queue`] is one line of waiting commands, [`line`] and [`waiters`] are those who stand in it;
//! [`matching`] brings clients and backends together; [`fronts`] makes all groups' queues one line.
//! [`checkout`] and [`checkin`] bind the two and part them, by way of [`queueing`] and [`serving`].
//! [`budget`] and [`account_slots`] count connections to the server over all groups,
//! [`running`], [`running_limit`] and [`hill_climb`] statements that run at once; [`bulk`] and
//! [`client_turn`] bound what one client takes of a turn; [`admission`] paces new connections.

pub(crate) mod account_slots;
pub(crate) mod admission;
pub(crate) mod budget;
pub(crate) mod bulk;
pub(crate) mod checkin;
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
