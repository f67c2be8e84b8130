//! Queues for backends, and the bounds on their number: as values.
//!
//! [`lane`] is one line of waiting commands, [`fronts`] makes all groups' lanes one line,
//! [`budget`] counts the connections to the server over all groups, [`bulk`] says what long work
//! may take of a turn, [`client_turn`] what one client may, [`collecting`] whose reply goes to the
//! spool, [`admission`] when the next connection comes in, and [`running_limit`] with
//! [`hill_climb`] how many statements run at once. `group::checkout` asks them.

pub(crate) mod account_slots;
pub(crate) mod admission;
pub(crate) mod budget;
pub(crate) mod bulk;
pub(crate) mod client_turn;
pub(crate) mod collecting;
pub(crate) mod fronts;
pub(crate) mod hill_climb;
pub(crate) mod lane;
pub(crate) mod long_texts;
pub(crate) mod priority;
pub(crate) mod running_limit;
