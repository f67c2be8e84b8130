//! A whole log: which errors it holds, how often, and which of them are only the echo of others.
//!
//! The mechanism: every line is held against the catalogue; equal entries are counted together
//! under the first line that said it. Causes come before symptoms, otherwise in the order of their
//! first line.
//!
//! Invariant: the answer is as long as the log has kinds of errors, however many lines it has.

use super::matching::{Explained, in_log};
use std::collections::HashMap;

/// Bytes of a line that are looked at; what is longer is data.
const LINE_BYTES_MAX: usize = 4096;

/// Content of a log.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// Lines read.
    pub(crate) lines: u64,
    /// Lines that were recognised.
    pub(crate) recognised: u64,
    /// Each kind of error once, causes first.
    pub(crate) explained: Vec<Explained>,
}

/// Reads a log.
pub(crate) fn read(text: &str) -> Log {
    let mut log = Log::default();
    let mut places: HashMap<&'static str, usize> = HashMap::new();
    for line in text.lines() {
        log.lines += 1;
        let Some(found) = in_log(cut(line)) else {
            continue;
        };
        log.recognised += 1;
        let name = found.entry.map_or("", |entry| entry.name.as_str());
        match places.get(name) {
            Some(at) => log.explained[*at].count += 1,
            None => {
                places.insert(name, log.explained.len());
                log.explained.push(found);
            }
        }
    }
    log.explained
        .sort_by_key(|found| found.entry.is_some_and(|entry| entry.symptom));
    log
}

/// The line's beginning, cut between two characters.
fn cut(line: &str) -> &str {
    let mut end = line.len().min(LINE_BYTES_MAX);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    line[..end].trim()
}
