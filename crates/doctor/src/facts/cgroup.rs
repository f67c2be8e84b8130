//! Control groups of a process: the limits on threads and on memory with the least room.
//!
//! Each group on the way up bounds all that is below it, so the one with the least room counts.
//! `measure::cgroup` knows the places of the groups and their files.

use super::Group;
use super::files::Files;
use measure::cgroup::{Controller, Limit, MEMORY, PIDS, limits};

/// Reads the groups of a process from the text of its `/proc/PID/cgroup`.
pub(super) fn read(files: &Files, cgroup: &str) -> Group {
    let mut group = Group::default();
    if let Some(found) = tightest(files, cgroup, &PIDS) {
        (group.pids_max, group.pids_now) = (Some(found.max), Some(found.used));
        (group.pids_path, group.pids_file) = (found.path, found.file);
    }
    if let Some(found) = tightest(files, cgroup, &MEMORY) {
        (group.memory_max, group.memory_now) = (Some(found.max), Some(found.used));
        group.memory_path = found.path;
    }
    group
}

fn tightest(files: &Files, cgroup: &str, controller: &Controller) -> Option<Limit> {
    let limits = limits(|path| files.text(path), cgroup, controller);
    limits.into_iter().min_by_key(Limit::room)
}
