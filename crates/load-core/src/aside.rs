//! Lines of a run on standard error, beside its report.
//!
//! Whoever reads it may have gone (`2>&1 | head`). The run and its other reports go on then, so
//! the standard library's `eprintln!`, which ends the thread by a panic, is not for this crate.

use std::fmt::Arguments;
use std::io::Write;

/// Writes to standard error; nothing is done about a failure.
pub fn write(text: Arguments<'_>) {
    let _ = std::io::stderr().lock().write_fmt(text);
}

/// A line on standard error.
#[macro_export]
macro_rules! aside {
    ($($text:tt)*) => {
        $crate::aside::write(format_args!("{}\n", format_args!($($text)*)))
    };
}
