//! Measurement: latencies in histograms, processes in samples.
//!
//! The problem: latencies of a million connections must neither be averaged away nor cost memory
//! per connection, and a measuring tool must show what it costs itself. The mechanism: a histogram
//! of constant size per group ([`Histogram`]), merged off the hot path; memory and CPU of a process
//! as the kernel counts them ([`process`]), what it counts of the whole host ([`host`]), and the
//! limits of control groups ([`cgroup`]).
//!
//! Invariants: recording allocates nothing; nothing in here is shared between threads.
#![forbid(unsafe_code)]

pub mod cgroup;
mod histogram;
pub mod host;
pub mod number;
pub mod process;
pub mod report_file;
pub mod utc;

pub use histogram::Histogram;
