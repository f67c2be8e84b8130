//! One process: its limits, and what it uses of them.
//!
//! Limits of a running server are those it was started with, whatever the shell says today; so they
//! are read from `/proc/PID/limits`. Descriptors and maps of others are shown to root only.

use super::read::{Files, number};
use super::{Fact, Process, cgroup};

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

/// The process of the only server that runs on this host; None if there is none or several.
#[must_use]
pub fn find_server(files: &Files) -> Option<u64> {
    let mut found = pids(files).into_iter().filter(|pid| {
        let name = files.text(&format!("/proc/{pid}/comm")).unwrap_or_default();
        SERVER_NAMES.contains(&name.trim())
    });
    let first = found.next()?;
    found.next().is_none().then_some(first)
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
