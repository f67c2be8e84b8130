//! SQL texts, read without a server: what a statement touches, reads, takes and gives back.
//!
//! The problem: a pool must know from a statement's text what it may leave in its session, what
//! it reads of earlier statements, and where it names the session itself, as the servers read that
//! text. The mechanism: one lexer that cuts as the servers do, and plain functions from tokens to
//! values, or to a text that says the same without what belongs to another session. A text is
//! untrusted: nothing in it causes a panic, and what is not understood is said to be so.
//!
//! Invariants:
//! - no I/O, no clock, no randomness, no `unsafe`;
//! - no allocation on the statement path ([`lex`], [`classify`]);
//! - of the protocol only types that name what a session is told ([`wire::track`]).
//!
//! Sources of facts: the manuals of MySQL and MariaDB, and the behaviour of live servers.
#![forbid(unsafe_code)]

pub mod acquired;
pub mod asked;
pub mod classify;
pub mod digest;
pub mod elsewhere;
pub mod kill;
pub mod lex;
pub mod name_set;
pub mod nested_kill;
pub mod own_id;
pub mod plain_set;
pub mod sqlstate;
pub mod text;
pub mod traceparent;
pub mod tracking;
pub mod unscoped;
