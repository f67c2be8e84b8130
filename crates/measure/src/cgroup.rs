//! Control groups: limits of a process, from its own group up to the root of the mount.
//!
//! Each group on the way up bounds all that is below it. With version 2 there is one hierarchy
//! (`0::/path`); with version 1 each controller has its own (`8:pids:/path`). Where a hierarchy is
//! mounted, and which of its groups is the root of the mount, stands in `mountinfo`. In a container
//! the path may be that of the host, which the mount does not show; then only the root of the mount
//! is looked at. systemd's TasksMax and MemoryMax are limits of the unit's group.
//!
//! The memory that a group uses counts without the pages of files that the kernel would drop
//! first (`inactive_file`): they give way, and a group that has read much is full of them.

use std::path::Path;

/// "max" in a file of version 2, and its like in version 1.
pub const NO_LIMIT: u64 = u64::MAX;
/// Version 1 writes "no memory limit" as a number just below 2^63.
const NO_MEMORY_LIMIT: u64 = 1 << 62;

/// The files of one controller, those of version 1 in front of those of version 2.
#[derive(Debug)]
pub struct Controller {
    name: &'static str,
    max: [&'static str; 2],
    used: [&'static str; 2],
    /// Names of the lines of memory.stat with the part of `used` that gives way.
    gives_way: Option<[&'static str; 2]>,
}

/// Processes and threads.
pub const PIDS: Controller = Controller {
    name: "pids",
    max: ["pids.max", "pids.max"],
    used: ["pids.current", "pids.current"],
    gives_way: None,
};
/// Bytes of memory.
pub const MEMORY: Controller = Controller {
    name: "memory",
    max: ["memory.limit_in_bytes", "memory.max"],
    used: ["memory.usage_in_bytes", "memory.current"],
    gives_way: Some(["total_inactive_file ", "inactive_file "]),
};

/// The limit of one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The group, as a path below the root of its mount.
    pub path: String,
    /// The file of the limit; empty for a mount whose groups have none.
    pub file: String,
    /// The limit.
    pub max: u64,
    /// Usage of the group and those below it.
    pub used: u64,
}

impl Limit {
    /// Room that is left.
    #[must_use]
    pub fn room(&self) -> u64 {
        self.max.saturating_sub(self.used)
    }
}

/// Limits of this process. Empty where the controller cannot be had.
#[must_use]
pub fn own(controller: &Controller) -> Vec<Limit> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let cgroup = read("/proc/self/cgroup").unwrap_or_default();
    limits(read, &cgroup, controller)
}

/// Limits of a process with this text of `/proc/PID/cgroup`, the process's own group first. `read`
/// reads the files of the kernel, as `/proc/self/mountinfo`.
#[must_use]
pub fn limits(
    read: impl Fn(&str) -> Option<String>,
    cgroup: &str,
    controller: &Controller,
) -> Vec<Limit> {
    let mountinfo = read("/proc/self/mountinfo").unwrap_or_default();
    let Some((mount, version, path)) = hierarchy(&mountinfo, cgroup, controller.name) else {
        return Vec::new();
    };
    let groups = Path::new(&path).ancestors().filter_map(|group| {
        let group = group.to_str()?;
        let file = |name: &str| format!("{mount}{}/{name}", group.trim_end_matches('/'));
        let max = number(&read(&file(controller.max[version]))?)?;
        let used = read(&file(controller.used[version])).and_then(|text| number(&text));
        let gives_way = (controller.gives_way)
            .and_then(|names| line_of(&read(&file("memory.stat"))?, names[version]));
        Some(Limit {
            path: group.to_owned(),
            file: file(controller.max[version]),
            max: if max < NO_MEMORY_LIMIT { max } else { NO_LIMIT },
            used: used.unwrap_or(0).saturating_sub(gives_way.unwrap_or(0)),
        })
    });
    let mut limits: Vec<Limit> = groups.collect();
    // The root of a hierarchy has no such file: nothing bounds a process in it.
    if limits.is_empty() {
        limits.push(Limit {
            path,
            file: String::new(),
            max: NO_LIMIT,
            used: 0,
        });
    }
    limits
}

fn number(text: &str) -> Option<u64> {
    match text.trim() {
        "max" => Some(NO_LIMIT),
        text => text.parse().ok(),
    }
}

/// The number of the line that begins with `name`.
fn line_of(text: &str, name: &str) -> Option<u64> {
    number(text.lines().find_map(|line| line.strip_prefix(name))?)
}

/// Mount point, index of the version, and the group's path below the root of the mount.
fn hierarchy(mountinfo: &str, cgroup: &str, name: &str) -> Option<(String, usize, String)> {
    let groups = || {
        let lines = cgroup.lines().map(|line| line.splitn(3, ':').skip(1));
        lines.filter_map(|mut parts| Some((parts.next()?, parts.next()?)))
    };
    let first = groups().find(|(names, _)| names.split(',').any(|one| one == name));
    let (version, (_, path)) = match first {
        Some(first) => (0, first),
        None => (1, groups().find(|(names, _)| names.is_empty())?),
    };
    let mounts = || {
        mountinfo
            .lines()
            .filter_map(|line| mount(line, version, name))
    };
    let shown = mounts().find_map(|(root, point)| {
        let below = path.strip_prefix(root.trim_end_matches('/'))?;
        (below.is_empty() || below.starts_with('/'))
            .then(|| (point, format!("/{}", below.trim_start_matches('/'))))
    });
    let (point, path) = shown.or_else(|| Some((mounts().next()?.1, "/".to_owned())))?;
    Some((point.replace("\\040", " "), version, path))
}

/// Root and mount point of a line of `mountinfo`, if it is of that hierarchy.
fn mount<'a>(line: &'a str, version: usize, name: &str) -> Option<(&'a str, &'a str)> {
    let (place, of) = line.split_once(" - ")?;
    let (mut place, mut of) = (place.split(' ').skip(3), of.split(' '));
    let (kind, options) = (of.next()?, of.nth(1)?);
    let is_it = match version {
        0 => kind == "cgroup" && options.split(',').any(|one| one == name),
        _ => kind == "cgroup2",
    };
    is_it.then_some((place.next()?, place.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = "\
        31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n\
        32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n\
        35 31 0:32 /docker/abc /sys/fs/cgroup/memory rw shared:9 master:1 - cgroup cgroup \
        rw,memory\n\
        39 31 0:36 / /cg\\040s/pids rw - cgroup cgroup rw,pids\n\
        41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
    const V2: &str = "30 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

    /// Limits and their files where the kernel shows these files.
    fn found(
        mountinfo: &str,
        cgroup: &str,
        of: &Controller,
        files: &[(&str, &str)],
    ) -> Vec<(String, u64, u64)> {
        let read = |path: &str| {
            let mounts = [("/proc/self/mountinfo", mountinfo)];
            let files = files.iter().chain(&mounts);
            let mut texts = files.filter(|(name, _)| *name == path);
            texts.next().map(|(_, text)| (*text).to_owned())
        };
        let limits = limits(read, cgroup, of).into_iter();
        limits.map(|one| (one.file, one.max, one.used)).collect()
    }

    #[test]
    fn every_level_of_version_2_counts() {
        let files = [
            ("/sys/fs/cgroup/a.slice/b.service/memory.max", "max\n"),
            ("/sys/fs/cgroup/a.slice/b.service/memory.current", "70\n"),
            (
                "/sys/fs/cgroup/a.slice/b.service/memory.stat",
                "anon 9\ninactive_file 30\n",
            ),
            ("/sys/fs/cgroup/a.slice/memory.max", "500\n"),
            ("/sys/fs/cgroup/a.slice/memory.current", "90\n"),
        ];
        let limits = found(V2, "0::/a.slice/b.service\n", &MEMORY, &files);
        let file = |group: &str| format!("/sys/fs/cgroup/a.slice{group}/memory.max");
        assert_eq!(
            limits,
            [(file("/b.service"), NO_LIMIT, 40), (file(""), 500, 90)]
        );
        assert_eq!(
            found(V2, "0::/\n", &MEMORY, &files),
            [(String::new(), NO_LIMIT, 0)]
        );
    }

    #[test]
    fn version_1_has_a_mount_for_each_controller_whose_root_may_be_any_group() {
        let cgroup = "8:pids:/box/in\n4:memory:/docker/abc/x\n2:cpu,cpuacct:/\n0::/box\n";
        let files = [
            (
                "/sys/fs/cgroup/memory/x/memory.limit_in_bytes",
                "9223372036854771712\n",
            ),
            ("/sys/fs/cgroup/memory/x/memory.usage_in_bytes", "77\n"),
            (
                "/sys/fs/cgroup/memory/x/memory.stat",
                "inactive_file 1\ntotal_inactive_file 70\n",
            ),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "4096\n"),
            ("/cg s/pids/box/pids.max", "500\n"),
            ("/cg s/pids/box/pids.current", "5\n"),
        ];
        let memory = found(V1, cgroup, &MEMORY, &files);
        assert_eq!(
            memory,
            [
                (
                    "/sys/fs/cgroup/memory/x/memory.limit_in_bytes".into(),
                    NO_LIMIT,
                    7
                ),
                (
                    "/sys/fs/cgroup/memory/memory.limit_in_bytes".into(),
                    4096,
                    0
                )
            ]
        );
        let pids = found(V1, cgroup, &PIDS, &files);
        assert_eq!(pids, [("/cg s/pids/box/pids.max".into(), 500, 5)]);
    }

    #[test]
    fn a_group_that_the_mount_does_not_show_leaves_the_root_of_the_mount() {
        let files = [("/sys/fs/cgroup/memory/memory.limit_in_bytes", "4096\n")];
        for path in ["/docker/abcd", "/../other", "/docker"] {
            let limits = found(V1, &format!("4:memory:{path}\n"), &MEMORY, &files);
            assert_eq!(limits.len(), 1, "{path}");
            assert_eq!(limits[0].1, 4096, "{path}");
        }
        assert_eq!(found("", "4:memory:/a\n", &MEMORY, &files), []);
        assert_eq!(found(V2, "", &MEMORY, &files), []);
        assert_eq!(found("x - \n - cgroup2\n", "0::/\n", &PIDS, &files), []);
    }
}
