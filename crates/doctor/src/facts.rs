//! Facts: one plain struct with everything that the checks look at.
//!
//! The problem: a check that reads `/proc` itself can be tried on one machine only. So all facts
//! are read once, into [`Facts`], and the checks are pure functions of it. The struct can be
//! written as JSON and read again, so that the checks run over recorded hosts, small and large.
//!
//! Invariants: nothing here decides anything; a fact that could not be had is `None` (or is not in
//! its map), and the check that wants it is skipped and says so; "no limit" is [`NO_LIMIT`].

mod cgroup;
mod files;
mod host;
mod network;
mod process;

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

pub use files::Files;
pub(crate) use files::sysctl_path;
pub use network::connection_table_places;
pub use process::servers;

/// Value of "unlimited" and "max".
pub const NO_LIMIT: u64 = u64::MAX;

/// A fact that may be unknown.
pub type Fact = Option<u64>;

/// Everything that the checks look at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// Facts of this host, as its kernel tells.
    pub host: Host,
    /// Facts of this process; what it may have, a pool or load generator started from the same
    /// shell may.
    pub this: Process,
    /// The server's process, where it runs on this host and was found.
    pub server_process: Option<Process>,
    /// All servers that run on this host, where the server is on this host or none was named.
    pub servers: Vec<Running>,
    /// Facts of the server, told by itself.
    pub server: Option<Server>,
    /// Reasons for missing facts of the server, in sentences.
    pub missing: Vec<String>,
}

/// A server's process, and where it listens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Running {
    /// Its number.
    pub pid: u64,
    /// Its name, as the kernel has it.
    pub name: String,
    /// TCP ports.
    pub ports: Vec<u64>,
    /// Paths of Unix sockets.
    pub sockets: Vec<String>,
}

/// Words by which a person tells it from others.
impl fmt::Display for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, process {}", self.name, self.pid)?;
        let ports = self.ports.iter().map(|port| format!("port {port}"));
        let sockets = self.sockets.iter().map(|path| format!("socket {path}"));
        let places: Vec<String> = ports.chain(sockets).collect();
        match places.as_slice() {
            [] => Ok(()),
            places => write!(f, " ({})", places.join(", ")),
        }
    }
}

/// The kernel's settings and counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Host {
    /// Release of the kernel.
    pub kernel: String,
    /// Processors that this process may use.
    pub cpus: Fact,
    /// Thousandths of the processors' time since boot that the hypervisor gave to others.
    pub steal_permille: Fact,
    /// The kernel's clock source, e.g. `tsc`.
    pub clock_source: String,
    /// Settings by their name in sysctl, e.g. `net.ipv4.tcp_mem`, with their numbers.
    pub sysctls: BTreeMap<String, Vec<u64>>,
    /// Resources in use, or counted since boot; the names are in `facts/`.
    pub counts: BTreeMap<String, u64>,
}

impl Host {
    /// The first number of a setting.
    #[must_use]
    pub fn sysctl(&self, name: &str) -> Fact {
        self.sysctls.get(name)?.first().copied()
    }

    /// The last number of a setting, which is the upper bound of those with three.
    #[must_use]
    pub fn sysctl_last(&self, name: &str) -> Fact {
        self.sysctls.get(name)?.last().copied()
    }

    /// A count, e.g. `files_open`.
    #[must_use]
    pub fn count(&self, name: &str) -> Fact {
        self.counts.get(name).copied()
    }
}

/// The limits of one process and what it uses of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Process {
    /// Its number.
    pub pid: u64,
    /// Its name, as the kernel has it.
    pub name: String,
    /// The real user.
    pub uid: Fact,
    /// True for root, CAP_SYS_RESOURCE or CAP_SYS_ADMIN, which RLIMIT_NPROC does not bind.
    pub nproc_is_free: bool,
    /// True with CAP_SYS_ADMIN, which fs.file-max does not bind.
    pub file_max_is_free: bool,
    /// RLIMIT_NOFILE in force.
    pub nofile_soft: Fact,
    /// RLIMIT_NOFILE, as far as it may raise it itself.
    pub nofile_hard: Fact,
    /// RLIMIT_NPROC in force.
    pub nproc_soft: Fact,
    /// RLIMIT_NPROC, as far as it may raise it itself.
    pub nproc_hard: Fact,
    /// Its threads.
    pub threads: Fact,
    /// Its open descriptors; known of one's own processes and to root.
    pub files: Fact,
    /// Its memory maps; known of one's own processes and to root.
    pub maps: Fact,
    /// Threads of its user, over all processes that this one can see.
    pub user_threads: Fact,
    /// Its control group.
    pub group: Group,
}

/// The tightest limits on the way from a control group to the root.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Group {
    /// Place of the tightest pids.max, as a path below the hierarchy's root.
    pub pids_path: String,
    /// Its file.
    pub pids_file: String,
    /// The tightest pids.max.
    pub pids_max: Fact,
    /// Processes in use of it.
    pub pids_now: Fact,
    /// Place of the tightest memory limit.
    pub memory_path: String,
    /// The tightest memory limit, in bytes.
    pub memory_max: Fact,
    /// Memory in use of it, in bytes, without the pages of files that give way.
    pub memory_now: Fact,
}

/// Protection of a connection to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Link {
    /// No TLS.
    Clear,
    /// TLS with a certificate that nobody has checked.
    Unchecked,
    /// TLS with a certificate that was checked.
    Checked,
}

/// Facts that a server tells of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Server {
    /// Address at which it was asked: `HOST:PORT` or a socket's path.
    pub place: String,
    /// True if the target is on this host: a Unix socket or a loopback address.
    pub is_local: bool,
    /// Protection of the connection to it; `None` where nobody has looked.
    pub link: Option<Link>,
    /// Its version text.
    pub version: String,
    /// Global variables, as it wrote them.
    pub variables: BTreeMap<String, String>,
    /// Global status, as it wrote it.
    pub status: BTreeMap<String, String>,
    /// Bytes between the newest log record and the last checkpoint.
    pub checkpoint_age: Fact,
}

impl Server {
    /// A variable that is a number.
    #[must_use]
    pub fn number(&self, name: &str) -> Fact {
        self.variables.get(name)?.parse().ok()
    }

    /// A variable as text; empty if the server has none of that name.
    #[must_use]
    pub fn text(&self, name: &str) -> &str {
        self.variables.get(name).map_or("", String::as_str)
    }

    /// A status that is a number.
    #[must_use]
    pub fn counted(&self, name: &str) -> Fact {
        self.status.get(name)?.parse().ok()
    }

    /// True if it is MariaDB, by its version.
    #[must_use]
    pub fn is_mariadb(&self) -> bool {
        self.version.to_ascii_lowercase().contains("mariadb")
    }
}

impl Facts {
    /// Reads this host and this process. `server_pid` is the server's process on this host.
    #[must_use]
    pub fn read(files: &Files, server_pid: Option<u64>) -> Facts {
        Facts {
            host: host::read(files),
            this: process::read(files, u64::from(std::process::id())),
            server_process: server_pid.map(|pid| process::read(files, pid)),
            servers: Vec::new(),
            server: None,
            missing: Vec::new(),
        }
    }

    /// Servers whose limits are not looked at, and the way to choose another; None where there is
    /// nothing to choose.
    #[must_use]
    pub fn choice(&self) -> Option<String> {
        let chosen = self.server_process.as_ref().map(|process| process.pid);
        let others = self.servers.iter().filter(|one| Some(one.pid) != chosen);
        let others: Vec<String> = others.map(Running::to_string).collect();
        match (others.is_empty(), chosen) {
            (true, _) => None,
            (false, Some(_)) => Some(format!(
                "also on this host, and not looked at: {}; --server-pid PID chooses",
                others.join("; ")
            )),
            (false, None) => Some(format!(
                "several servers run on this host, and none of their limits are looked at: {}; \
                 choose with --server-pid PID, or name one with --target",
                others.join("; ")
            )),
        }
    }
}

#[cfg(test)]
mod tests;
