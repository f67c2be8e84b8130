//! Arithmetic on the numbers in a line.
//!
//! The problem: `thread #32352 failed` or `(current value: 16382)` tells which limit it was, if one
//! knows what to divide. The mechanism: each kind takes its numbers from the line and says the
//! calculation in full, so that it can be checked.

use super::clues::Clues;
use super::live::bytes;
use crate::facts::Facts;
use crate::need::{MAPS_PER_THREAD, SYSBENCH_STATEMENTS};
use crate::number::thousands;
use serde::Deserialize;

/// vm.max_map_count where nobody has changed it (the kernel's DEFAULT_MAX_MAP_COUNT).
const MAX_MAP_COUNT_DEFAULT: u64 = 65_530;
const ENOMEM: i32 = 12;
const EAGAIN: i32 = 11;

/// Kind of arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Arithmetic {
    /// Threads that stood when the next one failed.
    Threads,
    /// Local ports and what they are multiplied by.
    Ports,
    /// Prepared statements for each connection.
    Statements,
    /// Age of the checkpoint against the size of the log.
    Redo,
}

/// The calculation in words; None if the line has no number to reckon with.
pub(crate) fn reckon(kind: Arithmetic, clues: &Clues, facts: &Facts) -> Option<String> {
    let text = &clues.text;
    match kind {
        Arithmetic::Threads => threads(behind(text, "thread #")?, clues.errno?),
        Arithmetic::Ports => ports(facts),
        Arithmetic::Statements => Some(statements(behind(text, "current value: ")?)),
        Arithmetic::Redo => redo(text),
    }
}

fn threads(failed: u64, errno: i32) -> Option<String> {
    let stood = failed.checked_sub(1)?;
    let maps = stood * MAPS_PER_THREAD;
    let (stood, failed) = (thousands(stood), thousands(failed));
    match errno {
        ENOMEM if maps <= MAX_MAP_COUNT_DEFAULT => Some(format!(
            "thread {failed} failed: {stood} threads x {MAPS_PER_THREAD} mappings = {}. With \
             vm.max_map_count at its default of {}, the other {} are the program's own: libraries, \
             and two for each malloc arena (glibc makes up to 8 for each CPU)",
            thousands(maps),
            thousands(MAX_MAP_COUNT_DEFAULT),
            thousands(MAX_MAP_COUNT_DEFAULT - maps)
        )),
        ENOMEM => Some(format!(
            "thread {failed} failed: {stood} threads x {MAPS_PER_THREAD} mappings = {}, so \
             vm.max_map_count is not at its default there",
            thousands(maps)
        )),
        EAGAIN => Some(format!(
            "thread {failed} failed: {stood} stood. The limit is that number and what else its \
             user (ulimit -u), its group (pids.max) or the host (pid_max, threads-max) runs"
        )),
        _ => None,
    }
}

fn ports(facts: &Facts) -> Option<String> {
    let range = facts.host.sysctls.get("net.ipv4.ip_local_port_range")?;
    let (first, last) = (*range.first()?, *range.last()?);
    let ports = (last + 1).saturating_sub(first).max(1);
    let pairs = |wanted: u64| wanted.div_ceil(ports);
    Some(format!(
        "on this host {last} - {first} + 1 = {} ports x source addresses x server \
         addresses x server ports; 100,000 connections need a product of {} of the last three, \
         1,000,000 need {}",
        thousands(ports),
        pairs(100_000),
        pairs(1_000_000)
    ))
}

fn statements(limit: u64) -> String {
    let each = SYSBENCH_STATEMENTS;
    format!(
        "sysbench's oltp_read_write on 10 tables prepares 9 x 10 + 1 = {each} for each connection: \
         {} / {each} = {} connections; 1,000 connections need {}",
        thousands(limit),
        thousands(limit / each),
        thousands(1_000 * each)
    )
}

/// "The age of the last checkpoint is 78511054, which exceeds the log group capacity 77..."
fn redo(text: &str) -> Option<String> {
    let age = behind(text, "checkpoint is ")?;
    let capacity = behind(text, "capacity ")?;
    Some(format!(
        "{} ({}) are not on disk yet, and the log takes {} ({}) before writers must wait",
        thousands(age),
        bytes(age),
        thousands(capacity),
        bytes(capacity)
    ))
}

/// The number that follows `words`.
fn behind(text: &str, words: &str) -> Option<u64> {
    let rest = &text[text.find(words)? + words.len()..];
    let end = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    rest[..end].parse().ok()
}
