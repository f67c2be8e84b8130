//! Reading the host: small files below `/proc` and `/sys`.
//!
//! Each file is read once and its numbers go into [`Host`] under the kernel's own names. What
//! cannot be read is left out. The root of the tree is an argument, so that tests bring their own.

use super::{Host, NO_LIMIT, network, process};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Settings that some check looks at.
const SYSCTLS: &[&str] = &[
    "fs.epoll.max_user_watches",
    "fs.file-max",
    "fs.nr_open",
    "kernel.pid_max",
    "kernel.threads-max",
    "net.core.netdev_max_backlog",
    "net.core.somaxconn",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_max_orphans",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_max_tw_buckets",
    "net.ipv4.tcp_mem",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_tw_reuse",
    "net.ipv4.tcp_wmem",
    "net.netfilter.nf_conntrack_max",
    "vm.max_map_count",
    "vm.overcommit_memory",
];

/// A tree of files as the kernel shows it.
#[derive(Clone, Debug)]
pub struct Files {
    root: PathBuf,
}

impl Files {
    /// The kernel's own.
    #[must_use]
    pub fn of_kernel() -> Files {
        Files::below("/")
    }

    /// A tree that looks like it, below `root`.
    pub fn below(root: impl Into<PathBuf>) -> Files {
        Files { root: root.into() }
    }

    /// Where a file of the tree is.
    #[must_use]
    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// A file's text; None if it cannot be read.
    #[must_use]
    pub fn text(&self, path: &str) -> Option<String> {
        // Names of processes need not be UTF-8.
        let bytes = std::fs::read(self.path(path)).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The only number of a file; "max" is [`NO_LIMIT`].
    #[must_use]
    pub fn number(&self, path: &str) -> Option<u64> {
        number(self.text(path)?.trim())
    }

    /// How many entries a directory has.
    #[must_use]
    pub fn entries(&self, path: &str) -> Option<u64> {
        Some(std::fs::read_dir(self.path(path)).ok()?.count() as u64)
    }
}

/// Where a setting's file is.
#[must_use]
pub(crate) fn sysctl_path(name: &str) -> String {
    format!("/proc/sys/{}", name.replace('.', "/"))
}

/// A number as the kernel writes limits.
pub(super) fn number(text: &str) -> Option<u64> {
    match text {
        "max" | "unlimited" => Some(NO_LIMIT),
        _ => text.parse().ok(),
    }
}

/// Reads the host.
pub(super) fn host(files: &Files) -> Host {
    let mut host = Host {
        kernel: trimmed(files, "/proc/sys/kernel/osrelease"),
        cpus: std::thread::available_parallelism()
            .ok()
            .map(|n| n.get() as u64),
        steal_permille: files.text("/proc/stat").as_deref().and_then(steal_permille),
        clock_source: trimmed(
            files,
            "/sys/devices/system/clocksource/clocksource0/current_clocksource",
        ),
        sysctls: BTreeMap::new(),
        counts: BTreeMap::new(),
    };
    for name in SYSCTLS {
        let numbers = files
            .text(&sysctl_path(name))
            .map(|text| text.split_whitespace().filter_map(number).collect());
        if let Some(numbers) = numbers.filter(|numbers: &Vec<u64>| !numbers.is_empty()) {
            host.sysctls.insert((*name).to_owned(), numbers);
        }
    }
    let counts = files_and_threads(files)
        .into_iter()
        .chain(memory(files))
        .chain(network::counts(files, &host));
    host.counts = counts
        .filter_map(|(name, count)| Some((name.to_owned(), count?)))
        .collect();
    host
}

fn trimmed(files: &Files, path: &str) -> String {
    files.text(path).unwrap_or_default().trim().to_owned()
}

type Count = (&'static str, Option<u64>);

fn files_and_threads(files: &Files) -> Vec<Count> {
    let nth = |path: &str, at: usize| -> Option<String> {
        let text = files.text(path)?;
        text.split_whitespace().nth(at).map(str::to_owned)
    };
    // "0.48 0.18 0.10 2/96 13094": all threads of the host stand behind the slash.
    let threads = nth("/proc/loadavg", 3)
        .and_then(|field| field.split_once('/').and_then(|(_, all)| number(all)));
    vec![
        (
            "files_open",
            nth("/proc/sys/fs/file-nr", 0).and_then(|text| number(&text)),
        ),
        ("threads", threads),
        ("pids", process::threads_visible(files)),
    ]
}

/// `MemAvailable:   1234 kB` and the like, in bytes.
fn memory(files: &Files) -> Vec<Count> {
    let text = files.text("/proc/meminfo").unwrap_or_default();
    let bytes = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        number(line.split_whitespace().next()?)?.checked_mul(1024)
    };
    vec![
        ("memory_bytes", bytes("MemTotal:")),
        ("memory_available_bytes", bytes("MemAvailable:")),
        ("commit_limit_bytes", bytes("CommitLimit:")),
        ("committed_bytes", bytes("Committed_AS:")),
    ]
}

/// The eighth number of the line `cpu` is steal, of all before the guests' (which are in user).
fn steal_permille(stat: &str) -> Option<u64> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line.split_whitespace().take(8).filter_map(number).collect();
    let total: u64 = ticks.iter().sum();
    (ticks.get(7)? * 1000).checked_div(total)
}

/// Whether a directory is there.
pub(super) fn is_there(path: &Path) -> bool {
    path.is_dir()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_a_share_of_all_time() {
        let stat = "cpu  50 0 20 900 0 0 0 30 7 7\ncpu0 1 2 3\n";
        assert_eq!(steal_permille(stat), Some(30));
        assert_eq!(steal_permille("cpu  0 0 0 0 0 0 0 0"), None);
        assert_eq!(steal_permille(""), None);
    }

    #[test]
    fn limits_are_numbers() {
        assert_eq!(number("max"), Some(NO_LIMIT));
        assert_eq!(number("65530"), Some(65_530));
        assert_eq!(number("x"), None);
        assert_eq!(sysctl_path("fs.file-max"), "/proc/sys/fs/file-max");
    }
}
