//! KILL: a client ends another client, or its statement.
//!
//! [`meaning`] says who is meant and which group has the victim, [`fate`] what becomes of it there,
//! [`connection`] carries a KILL to the server where the victim runs, and [`jobs`] are KILLs
//! between groups with their ends. A connection number is the pool's: the server's own never reach
//! clients.

pub(crate) mod carrying;
pub(crate) mod connection;
pub(crate) mod fate;
pub(crate) mod jobs;
pub(crate) mod meaning;
