//! Reading the host: small files below `/proc` and `/sys`.
//!
//! Each file is read once and its numbers go into [`Host`] under the kernel's own names. What
//! cannot be read is left out.

use super::files::{Files, number, sysctl_path};
use super::{Host, network, process};
use std::collections::BTreeMap;

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

/// Reads the host.
pub(super) fn read(files: &Files) -> Host {
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

/// Share of steal, in thousandths: the eighth number of the line `cpu`, of all before the guests'
/// (which are in user).
fn steal_permille(stat: &str) -> Option<u64> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line.split_whitespace().take(8).filter_map(number).collect();
    let total: u64 = ticks.iter().sum();
    (ticks.get(7)? * 1000).checked_div(total)
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
}
