//! Parts that every load generator of `onramp load` is made of.
//!
//! A generator holds many connections on a few threads: this crate has the event loop and the
//! sockets ([`event_loop`], [`transport`]), the division of connections among groups and threads
//! ([`layout`], [`threads`], [`control`]), pacing and arrivals ([`pace`], [`arrivals`], [`model`]),
//! the workloads' scripts ([`workload`]), and the counts ([`stats`], [`errors`], [`latency`]).
//! The generators are crates of their own: `load` for statements, `load-lua` for scripts of
//! sysbench, `load-http` for HTTP and held sockets; `load-locust` makes workers of them.
#![forbid(unsafe_code)]
// A reader of standard error who has gone must not end a run: `aside!` does not panic.
#![warn(clippy::print_stderr)]

#[macro_use]
pub mod aside;
pub mod allowance;
pub mod arrivals;
pub mod connection_slot;
pub mod control;
pub mod durations;
pub mod errors;
pub mod event_loop;
pub mod exit_status;
pub mod exposition;
pub mod latency;
pub mod layout;
pub mod live_server;
pub mod login;
pub mod model;
pub mod opener;
pub mod pace;
pub mod plan;
pub mod ports;
pub mod program;
pub mod random;
pub mod rate_profile;
pub mod series;
pub mod stats;
pub mod steps;
pub mod threads;
pub mod timers;
pub mod tolerance;
pub mod transport;
pub mod workload;
