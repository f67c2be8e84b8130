//! Control groups: the tightest limit on threads and on memory from a process's group to the root.
//!
//! Each group on the way up bounds all that is below it, so the one with the least room counts.
//! With version 2 there is one hierarchy (`0::/path`); with version 1 each controller has its own
//! (`8:pids:/path`), mounted under its name. In a container the path may be that of the host, which
//! is not there; then only the root of the mount is looked at. systemd's TasksMax is the pids.max
//! of the unit's group.
//!
//! What a group uses of its memory counts without the pages of files that the kernel would drop
//! first (`inactive_file`): they give way to connections, and a group that has read much is full of
//! them all the time.

use super::files::{Files, is_there, number};
use super::{Group, NO_LIMIT};
use std::path::Path;

/// Version 1 writes "no memory limit" as a number just below 2^63.
const NO_MEMORY_LIMIT: u64 = 1 << 62;

/// Names of the files of one controller.
struct Controller {
    name: &'static str,
    max: [&'static str; 2],
    now: [&'static str; 2],
    /// What of `now` gives way: the lines' names in memory.stat.
    gives_way: Option<[&'static str; 2]>,
}

/// Files by version: first 1, then 2.
const PIDS: Controller = Controller {
    name: "pids",
    max: ["pids.max", "pids.max"],
    now: ["pids.current", "pids.current"],
    gives_way: None,
};
const MEMORY: Controller = Controller {
    name: "memory",
    max: ["memory.limit_in_bytes", "memory.max"],
    now: ["memory.usage_in_bytes", "memory.current"],
    gives_way: Some(["total_inactive_file ", "inactive_file "]),
};

/// The tightest limit.
struct Tightest {
    /// Of its group, below the hierarchy's root.
    path: String,
    file: String,
    max: u64,
    now: u64,
}

/// Reads the groups of a process from the text of its `/proc/PID/cgroup`.
pub(super) fn read(files: &Files, cgroup: &str) -> Group {
    let mut group = Group::default();
    if let Some(found) = tightest(files, cgroup, &PIDS) {
        (group.pids_path, group.pids_file) = (found.path, found.file);
        (group.pids_max, group.pids_now) = (Some(found.max), Some(found.now));
    }
    if let Some(found) = tightest(files, cgroup, &MEMORY) {
        group.memory_path = found.path;
        (group.memory_max, group.memory_now) = (Some(found.max), Some(found.now));
    }
    group
}

fn tightest(files: &Files, cgroup: &str, controller: &Controller) -> Option<Tightest> {
    let (mount, version, path) = hierarchy(files, cgroup, controller)?;
    let mut paths: Vec<&Path> = Path::new(&path).ancestors().collect();
    if !is_there(&files.path(&format!("{mount}{path}"))) {
        paths = vec![Path::new("/")];
    }
    let limits = paths.into_iter().filter_map(|path| {
        let path = path.display().to_string();
        let file = |name: &str| format!("{mount}{}/{name}", path.trim_end_matches('/'));
        let max = files.number(&file(controller.max[version]))?;
        let now = files.number(&file(controller.now[version]));
        let gives_way = controller
            .gives_way
            .and_then(|names| line_of(&files.text(&file("memory.stat"))?, names[version]));
        Some(Tightest {
            file: file(controller.max[version]),
            max: if max < NO_MEMORY_LIMIT { max } else { NO_LIMIT },
            now: now
                .unwrap_or_default()
                .saturating_sub(gives_way.unwrap_or_default()),
            path,
        })
    });
    let tightest = limits.min_by_key(|limit| limit.max.saturating_sub(limit.now));
    // The root of a hierarchy has no such file: nothing bounds what stands in it.
    let unbounded = || Tightest {
        path: path.clone(),
        file: String::new(),
        max: NO_LIMIT,
        now: 0,
    };
    tightest.or_else(|| is_there(&files.path(&mount)).then(unbounded))
}

/// The number of the line that begins with `name`.
fn line_of(text: &str, name: &str) -> Option<u64> {
    number(text.lines().find_map(|line| line.strip_prefix(name))?)
}

/// Mount point, index of the version, and path of the group that holds this controller.
fn hierarchy(files: &Files, cgroup: &str, of: &Controller) -> Option<(String, usize, String)> {
    let lines = cgroup.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        Some((parts.next()?, parts.next()?))
    });
    for (controllers, path) in lines.clone() {
        if controllers.split(',').any(|name| name == of.name) {
            return Some((format!("/sys/fs/cgroup/{}", of.name), 0, path.to_owned()));
        }
    }
    let (_, path) = lines
        .clone()
        .find(|(controllers, _)| controllers.is_empty())?;
    let unified = "/sys/fs/cgroup/unified";
    let mount = if is_there(&files.path(unified)) {
        unified
    } else {
        "/sys/fs/cgroup"
    };
    Some((mount.to_owned(), 1, path.to_owned()))
}
