//! Lines for people, on standard error.
//!
//! Off the statement path, and rare: start and end, what keeps the pool from its server. A closed
//! standard error is no reason to stop serving.

use std::fmt;
use std::io::Write as _;

/// Writes one line.
pub(crate) fn note(text: fmt::Arguments<'_>) {
    let line = format!("onramp pool: {text}\n");
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}
