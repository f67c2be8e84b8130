//! A session as a value: what follows a client from backend to backend, and what its statements do
//! to that.
//!
//! The problem: a statement has to run under its client's session on any backend, and what it
//! changed has to be known afterwards. The mechanism: the state of a session is a value, equal
//! values are one object, and the difference of two is the commands that lead from one to the
//! other. What texts, replies and read-backs mean for that value are functions of bytes and values.
//!
//! Invariants:
//! - no socket, no group, no I/O and no clock: a moment is an argument;
//! - what is not known for certain is said to be unknown, never guessed;
//! - no `unsafe`, and nothing that a peer sends causes a panic.
#![forbid(unsafe_code)]

pub mod diagnostics;
pub mod elsewhere;
pub mod found;
pub mod global_defaults;
pub mod known_digests;
pub mod known_good;
pub mod last_gtid;
pub mod last_statement;
pub mod meter;
pub mod own_commands;
pub mod own_writes;
pub mod pins;
pub mod plan;
pub mod prepared;
pub mod read_back;
pub mod record;
pub mod reply_summary;
pub mod roles;
pub mod send_mode;
pub mod state;
pub mod statement;
pub mod stored_code;
pub mod text;
pub mod transaction;
pub mod uncompared;
pub mod user_variables;
pub mod well_formed;
