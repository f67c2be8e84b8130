//! Exit statuses of the load generators.
//!
//! A run that went on to its end has succeeded, whatever the statements said; a threshold that was
//! crossed has a status of its own, for scripts that gate on it.

/// Status of a run, whatever came of it.
pub const RAN: u8 = 0;
/// Status if it could not run: no connection, or tables that could not be made.
pub const FAILED: u8 = 1;
/// The options contradict each other.
pub const BAD_OPTIONS: u8 = 2;
/// Status of a run in which a threshold was crossed, or that proved data wrong.
pub const CROSSED: u8 = 3;
/// A line of sysbench asked for an end by force, and it came to that.
pub const FORCED: u8 = 2;
