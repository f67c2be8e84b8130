//! One process: its limits, and what it uses of them.
//!
//! Limits of a running server are those it was started with, whatever the shell says today; so they
//! are read from `/proc/PID/limits`. Descriptors and maps of others are shown to root only.

use super::files::{Files, number};
use super::{Fact, Process, Running, cgroup};
use std::collections::HashSet;

/// Lifts fs.file-max.
const CAP_SYS_ADMIN: u64 = 1 << 21;
const CAP_SYS_RESOURCE: u64 = 1 << 24;

/// Names that servers run under.
const SERVER_NAMES: [&str; 2] = ["mysqld", "mariadbd"];

/// Reads one process. What cannot be read is None.
pub(super) fn read(files: &Files, pid: u64) -> Process {
    let text = |name: &str| {
        files
            .text(&format!("/proc/{pid}/{name}"))
            .unwrap_or_default()
    };
    let status = Status(text("status"));
    let limits = text("limits");
    let (nofile_soft, nofile_hard) = limit(&limits, "Max open files");
    let (nproc_soft, nproc_hard) = limit(&limits, "Max processes");
    let uid = status.number("Uid:");
    let capabilities = u64::from_str_radix(status.word("CapEff:"), 16).unwrap_or_default();
    Process {
        pid,
        name: status.word("Name:").to_owned(),
        uid,
        nproc_is_free: uid == Some(0) || capabilities & (CAP_SYS_ADMIN | CAP_SYS_RESOURCE) != 0,
        file_max_is_free: capabilities & CAP_SYS_ADMIN != 0,
        nofile_soft,
        nofile_hard,
        nproc_soft,
        nproc_hard,
        threads: status.number("Threads:"),
        files: files.entries(&format!("/proc/{pid}/fd")),
        maps: Some(text("maps"))
            .filter(|maps| !maps.is_empty())
            .map(|maps| maps.lines().count() as u64),
        user_threads: uid.map(|uid| user_threads(files, uid)),
        group: cgroup::read(files, &text("cgroup")),
    }
}

/// The servers that run on this host, and where they listen, by their number.
#[must_use]
pub fn servers(files: &Files) -> Vec<Running> {
    let mut pids = pids(files);
    pids.sort_unstable();
    let servers = pids.into_iter().filter_map(|pid| {
        let name = files.text(&format!("/proc/{pid}/comm"))?;
        let name = name.trim().to_owned();
        let (ports, sockets) = SERVER_NAMES
            .contains(&name.as_str())
            .then(|| listens(files, pid))?;
        Some(Running {
            pid,
            name,
            ports,
            sockets,
        })
    });
    servers.collect()
}

/// The TCP ports and the Unix sockets that a process listens on. Root, and the process's own user,
/// see its descriptors; others have what its command line says.
fn listens(files: &Files, pid: u64) -> (Vec<u64>, Vec<String>) {
    let table = |name: &str| {
        let text = files.text(&format!("/proc/{pid}/net/{name}"));
        text.unwrap_or_default()
    };
    let inodes = socket_inodes(files, pid);
    let mut ports: Vec<u64> = [table("tcp"), table("tcp6")]
        .iter()
        .flat_map(|text| text.lines().skip(1))
        .filter_map(|line| tcp_listener(line).filter(|(inode, _)| inodes.contains(inode)))
        .map(|(_, port)| port)
        .collect();
    let unix = table("unix");
    let mut sockets: Vec<String> = unix
        .lines()
        .skip(1)
        .filter_map(|line| unix_listener(line).filter(|(inode, _)| inodes.contains(inode)))
        .map(|(_, path)| path.to_owned())
        .collect();
    if inodes.is_empty() {
        let line = files.text(&format!("/proc/{pid}/cmdline"));
        let line = line.unwrap_or_default();
        let said = |option: &str| {
            line.split('\0')
                .rev()
                .find_map(|word| word.strip_prefix(option))
        };
        ports.extend(said("--port=").and_then(number));
        sockets.extend(said("--socket=").map(str::to_owned));
    }
    ports.sort_unstable();
    ports.dedup();
    sockets.sort_unstable();
    (ports, sockets)
}

/// Numbers of the sockets that a process has open; empty where its descriptors are not shown.
fn socket_inodes(files: &Files, pid: u64) -> HashSet<u64> {
    let Ok(entries) = std::fs::read_dir(files.path(&format!("/proc/{pid}/fd"))) else {
        return HashSet::new();
    };
    let links = entries
        .flatten()
        .filter_map(|entry| std::fs::read_link(entry.path()).ok());
    let inode = |link: std::path::PathBuf| {
        let text = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
        number(text)
    };
    links.filter_map(inode).collect()
}

/// Inode and port of a line of `/proc/net/tcp`, if it is a listener's (state 0A).
fn tcp_listener(line: &str) -> Option<(u64, u64)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (_, port) = words.get(1)?.rsplit_once(':')?;
    let port = u64::from_str_radix(port, 16).ok()?;
    (*words.get(3)? == "0A").then_some(())?;
    Some((number(words.get(9)?)?, port))
}

/// Inode and path of a line of `/proc/net/unix`, if it is a listener's (flag 0x10000).
fn unix_listener(line: &str) -> Option<(u64, &str)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let flags = u64::from_str_radix(words.get(3)?, 16).ok()?;
    (flags & 0x10000 != 0).then_some(())?;
    Some((number(words.get(6)?)?, words.get(7)?))
}

/// Threads of all processes that can be seen: those that have a number in this namespace.
pub(super) fn threads_visible(files: &Files) -> Fact {
    let threads = pids(files)
        .into_iter()
        .filter_map(|pid| status_of(files, pid).number("Threads:"));
    Some(threads.sum()).filter(|sum| *sum > 0)
}

fn user_threads(files: &Files, uid: u64) -> u64 {
    let of_user = pids(files)
        .into_iter()
        .map(|pid| status_of(files, pid))
        .filter(|status| status.number("Uid:") == Some(uid));
    of_user.filter_map(|status| status.number("Threads:")).sum()
}

fn pids(files: &Files) -> Vec<u64> {
    let Ok(entries) = std::fs::read_dir(files.path("/proc")) else {
        return Vec::new();
    };
    let names = entries.flatten().map(|entry| entry.file_name());
    names
        .filter_map(|name| name.to_str()?.parse().ok())
        .collect()
}

fn status_of(files: &Files, pid: u64) -> Status {
    Status(
        files
            .text(&format!("/proc/{pid}/status"))
            .unwrap_or_default(),
    )
}

/// The text of `/proc/PID/status`.
struct Status(String);

impl Status {
    /// The first word behind `name`; empty if it is not there.
    fn word(&self, name: &str) -> &str {
        let line = self.0.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.split_whitespace().next())
            .unwrap_or_default()
    }

    fn number(&self, name: &str) -> Fact {
        number(self.word(name))
    }
}

/// Soft and hard limit in a line as `Max open files   1024   4096   files`.
fn limit(limits: &str, name: &str) -> (Fact, Fact) {
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .unwrap_or_default();
    let mut words = line.split_whitespace().map(number);
    let mut next = || words.next().flatten();
    (next(), next())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::NO_LIMIT;

    #[test]
    fn limits_are_soft_and_hard() {
        let text = "Limit  Soft Limit  Hard Limit  Units\n\
            Max processes             96365                unlimited            processes \n\
            Max open files            1024                 20000                files     \n";
        assert_eq!(limit(text, "Max processes"), (Some(96_365), Some(NO_LIMIT)));
        assert_eq!(limit(text, "Max open files"), (Some(1_024), Some(20_000)));
        assert_eq!(limit(text, "Max nothing"), (None, None));
    }

    #[test]
    fn this_process_is_read() {
        let files = Files::of_kernel();
        let this = read(&files, u64::from(std::process::id()));
        assert!(this.nofile_soft <= this.nofile_hard && this.nofile_soft > Some(0));
        assert!(this.threads >= Some(1) && this.files >= Some(3) && this.maps > Some(10));
        assert!(this.user_threads >= this.threads);
        assert!(threads_visible(&files) >= this.threads);
    }
}
