//! Scripts of sysbench, as they are: `onramp sysbench SCRIPT.lua ...`.
//!
//! The problem: what people measure is often a Lua script of their own, written for sysbench, where
//! each connection has a thread and a Lua state. The mechanism: one state ([`interpreter`]) for all
//! connections of a group, with a coroutine and an environment for each; what looks like a blocking
//! call yields to the group's event loop ([`group`]), which has plain connections ([`client`]).
//! `prelude.lua` has the functions that scripts call; random numbers are sysbench's own for a seed
//! ([`rand`]).
//!
//! Invariant: a script is run, never read: nothing is guessed from its name or its text.
#![forbid(unsafe_code)]
#![warn(clippy::print_stderr)]

#[macro_use]
extern crate load_core;

mod client;
mod group;
mod interpreter;
mod options;
mod rand;

pub use group::{Stage, run as run_group};
pub use interpreter::Body;
pub use options::{help, settle};

/// The version whose interface scripts find.
const VERSION: &str = "1.0.20";
