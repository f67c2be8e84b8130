//! Errors, by number.
//!
//! [`reasons`] has every pin and refusal of the pool's own, with its words and what to do;
//! [`error_counts`] counts the server's.

pub(crate) mod reasons;
pub(crate) mod totals;
