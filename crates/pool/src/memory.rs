//! Memory: what the machine has, and what the pool may take of it.
//!
//! What cannot be read limits nothing.

use std::path::Path;

/// Of the machine's or the control group's memory, the pool takes at most this share (in tenths)
/// unless `memory_bytes_max` says otherwise.
const MEMORY_TENTHS: u64 = 9;
/// Of the memory that the pool may take, unfinished commands take at most this part, unless
/// `input_bytes_max` says otherwise.
const INPUT_PART: usize = 8;
/// They take no more than this, or than so many of the longest commands that the server takes.
const INPUT_BYTES: usize = 128 << 20;
const INPUT_COMMANDS: usize = 3;
/// Where control groups of version 2 and of version 1 keep their limit.
const CGROUP_LIMITS: [&str; 2] = [
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
];

/// Memory that the pool may take.
pub(crate) fn memory_of(setting: Option<usize>) -> u64 {
    match setting {
        Some(max) => max as u64,
        None => machine_memory() / 10 * MEMORY_TENTHS,
    }
}

/// Bytes that unfinished commands may take: what is set, or a part of the pool's memory, and not
/// more than a few of the longest commands need.
pub(crate) fn input_bytes(
    setting: Option<usize>,
    memory_bytes_max: Option<usize>,
    command_max: usize,
) -> usize {
    setting.unwrap_or_else(|| {
        let memory = usize::try_from(memory_of(memory_bytes_max)).unwrap_or(usize::MAX);
        let enough = command_max.saturating_mul(INPUT_COMMANDS).max(INPUT_BYTES);
        enough.min(memory / INPUT_PART)
    })
}

fn machine_memory() -> u64 {
    let total = meminfo("MemTotal").unwrap_or(u64::MAX);
    let groups = CGROUP_LIMITS.iter().filter_map(number_in);
    groups.fold(total, u64::min)
}

fn number_in(path: impl AsRef<Path>) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

pub(crate) fn meminfo(name: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unfinished_commands_have_a_part_of_the_memory_and_no_more_than_they_need() {
        let gib = 1 << 30;
        assert_eq!(input_bytes(None, Some(8 * gib), 16 << 20), 128 << 20);
        assert_eq!(input_bytes(None, Some(8 * gib), 64 << 20), 192 << 20);
        assert_eq!(input_bytes(None, Some(8 * gib), gib), gib);
        assert_eq!(input_bytes(None, Some(gib / 4), 16 << 20), 32 << 20);
        assert_eq!(input_bytes(Some(77), Some(gib), 16 << 20), 77);
    }

    #[test]
    fn the_machine_says_how_much_memory_it_has() {
        assert!(meminfo("MemTotal").unwrap() > 1 << 20);
        assert!(machine_memory() <= meminfo("MemTotal").unwrap());
        assert_eq!(meminfo("NoSuchThing"), None);
        assert_eq!(number_in("/nonexistent"), None);
    }
}
