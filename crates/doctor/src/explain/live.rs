//! The live value behind a command: what it would show on this host, and what that means.
//!
//! The problem: at night nobody wants to copy six commands to learn which of six limits it was. The
//! mechanism: an entry names the fact that a command shows; here each name has a function from the
//! doctor's facts to a sentence. Those about threads also say how many more there is room for, so
//! that the nearest limit can be marked.
//!
//! Invariant: a fact that is not known gives no sentence; nothing is read here.

use crate::facts::{Fact, Facts, Host, NO_LIMIT, Process};
use crate::need::{MAPS_OF_SERVER, MAPS_PER_THREAD, PIDS_RESERVED};
use crate::number::thousands;
use serde::Deserialize;

/// Bytes of a page, in which tcp_mem counts.
const PAGE_BYTES: u64 = 4096;

/// Fact that a command shows.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum Live {
    /// A global variable of the server.
    Variable(String),
    /// A global status of the server.
    Status(String),
    /// Another fact: a name in [`FACTS`].
    Fact(String),
}

impl Live {
    /// True for the server's variable or status of this name.
    pub(crate) fn is_of_name(&self, name: &str) -> bool {
        matches!(self, Live::Variable(own) | Live::Status(own) if own == name)
    }

    /// True for a fact of the server's process.
    pub(crate) fn is_of_server(&self) -> bool {
        matches!(self, Live::Fact(name) if name.ends_with("-server"))
    }
}

/// A value in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shown {
    /// The value and what it means.
    pub(crate) text: String,
    /// Number of further threads that it allows.
    pub(crate) room: Fact,
}

type Reader = fn(&Facts) -> Option<Shown>;

/// Names of facts, and how they are told.
const FACTS: &[(&str, Reader)] = &[
    ("cgroup-memory", cgroup_memory),
    ("conntrack", conntrack),
    ("fds-server", |facts| plain(server(facts)?.files?)),
    ("file-nr", file_nr),
    ("listen-drops", listen_drops),
    ("maps-server", |facts| plain(server(facts)?.maps?)),
    ("max-map-count", |facts| maps(&facts.host, server(facts))),
    ("max-map-self", |facts| maps(&facts.host, None)),
    ("memory", memory),
    ("netdev-backlog", netdev_backlog),
    ("nofile-self", |facts| nofile(&facts.this)),
    ("nofile-server", |facts| nofile(server(facts)?)),
    ("nproc-self", |facts| nproc(&facts.this)),
    ("nproc-server", |facts| nproc(server(facts)?)),
    ("nr-open", |facts| plain(facts.host.sysctl("fs.nr_open")?)),
    ("orphans", orphans),
    ("overcommit", overcommit),
    ("pid-max", pid_max),
    ("pids-max", |facts| {
        pids(server(facts).unwrap_or(&facts.this))
    }),
    ("pids-self", |facts| pids(&facts.this)),
    ("port-range", port_range),
    ("redo-age", redo_age),
    ("reserved-ports", |facts| {
        let ports = facts.host.count("ports_reserved")?;
        shown(format!("{} of the range", thousands(ports)))
    }),
    ("server-version", |facts| {
        shown(facts.server.as_ref()?.version.clone())
    }),
    ("sockets", |facts| {
        let sockets = facts.host.count("tcp_sockets")?;
        shown(format!("{} TCP sockets in use", thousands(sockets)))
    }),
    ("somaxconn", |facts| {
        plain(facts.host.sysctl("net.core.somaxconn")?)
    }),
    ("syn-backlog", |facts| {
        plain(facts.host.sysctl("net.ipv4.tcp_max_syn_backlog")?)
    }),
    ("tcp-mem", tcp_mem),
    ("tcp-memory", tcp_memory),
    ("threads-max", |facts| {
        let max = facts.host.sysctl("kernel.threads-max")?;
        Some(limited(max, facts.host.count("threads")?))
    }),
    ("threads-now", |facts| {
        let threads = facts.host.count("threads")?;
        shown(format!("{} threads on this host", thousands(threads)))
    }),
    ("time-wait", time_wait),
];

impl Live {
    /// The value here and now; None if it is not known.
    pub(crate) fn shown(&self, facts: &Facts) -> Option<Shown> {
        match self {
            Live::Variable(name) => {
                let value = facts.server.as_ref()?.variables.get(name)?;
                shown(value.clone())
            }
            Live::Status(name) => shown(facts.server.as_ref()?.status.get(name)?.clone()),
            Live::Fact(name) => {
                let (_, read) = FACTS.iter().find(|(known, _)| known == name)?;
                read(facts)
            }
        }
    }
}

impl TryFrom<String> for Live {
    type Error = String;
    fn try_from(text: String) -> Result<Live, String> {
        if let Some(name) = text.strip_prefix("var:") {
            return Ok(Live::Variable(name.to_owned()));
        }
        if let Some(name) = text.strip_prefix("status:") {
            return Ok(Live::Status(name.to_owned()));
        }
        if FACTS.iter().any(|(name, _)| *name == text) {
            Ok(Live::Fact(text))
        } else {
            Err(format!("live: no fact has the name {text}"))
        }
    }
}

fn server(facts: &Facts) -> Option<&Process> {
    facts.server_process.as_ref()
}

fn shown(text: String) -> Option<Shown> {
    Some(Shown { text, room: None })
}

/// A size as people say it: `1536` is `1.5 KiB`, `512` is `512 B`.
pub(super) fn bytes(count: u64) -> String {
    let units: [(u128, &str); 4] = [
        (1 << 40, "TiB"),
        (1 << 30, "GiB"),
        (1 << 20, "MiB"),
        (1 << 10, "KiB"),
    ];
    let Some((unit, name)) = units
        .into_iter()
        .find(|(unit, _)| u128::from(count) >= *unit)
    else {
        return format!("{count} B");
    };
    let tenths = u128::from(count) * 10 / unit;
    match tenths % 10 {
        0 => format!("{} {name}", tenths / 10),
        tenth => format!("{}.{tenth} {name}", tenths / 10),
    }
}

/// A number, or "unlimited".
fn number(value: u64) -> String {
    match value {
        NO_LIMIT => "unlimited".to_owned(),
        value => thousands(value),
    }
}

fn plain(value: u64) -> Option<Shown> {
    shown(number(value))
}

/// A limit on threads of which some are in use.
fn limited(max: u64, used: u64) -> Shown {
    let room = max.saturating_sub(used);
    let text = match max {
        NO_LIMIT => "unlimited".to_owned(),
        max => format!(
            "{}, {} in use: room for {} more threads",
            thousands(max),
            thousands(used),
            thousands(room)
        ),
    };
    Shown {
        text,
        room: (max != NO_LIMIT).then_some(room),
    }
}

/// Mappings of a process that is known, or of a new one.
fn maps(host: &Host, process: Option<&Process>) -> Option<Shown> {
    let max = host.sysctl("vm.max_map_count")?;
    let own = process.and_then(|process| process.maps);
    let room = max.saturating_sub(own.unwrap_or(MAPS_OF_SERVER)) / MAPS_PER_THREAD;
    let text = match (own, process) {
        (Some(own), Some(process)) => format!(
            "{}, {} in use by {}: room for {} more threads of {MAPS_PER_THREAD} mappings",
            thousands(max),
            thousands(own),
            whose(process),
            thousands(room)
        ),
        _ => format!(
            "{}: about {} threads for one process, at {MAPS_PER_THREAD} mappings each",
            thousands(max),
            thousands(room)
        ),
    };
    Some(Shown {
        text,
        room: Some(room),
    })
}

fn pid_max(facts: &Facts) -> Option<Shown> {
    let max = facts.host.sysctl("kernel.pid_max")?;
    let used = facts.host.count("pids").or(facts.host.count("threads"))?;
    let room = max.saturating_sub(used.max(PIDS_RESERVED));
    Some(Shown {
        room: Some(room),
        ..limited(max, used)
    })
}

fn pids(process: &Process) -> Option<Shown> {
    let group = &process.group;
    let shown = limited(group.pids_max?, group.pids_now?);
    Some(Shown {
        text: format!(
            "{} ({}, of {})",
            shown.text,
            group.pids_path,
            whose(process)
        ),
        ..shown
    })
}

fn nproc(process: &Process) -> Option<Shown> {
    let (max, used) = (process.nproc_soft?, process.user_threads?);
    if process.nproc_is_free {
        return shown(format!(
            "{}; does not bind {} (root, or CAP_SYS_RESOURCE)",
            number(max),
            whose(process)
        ));
    }
    let shown = limited(max, used);
    Some(Shown {
        text: format!("{} (the user of {})", shown.text, whose(process)),
        ..shown
    })
}

fn nofile(process: &Process) -> Option<Shown> {
    let used = match process.files {
        Some(files) => format!(", {} in use", thousands(files)),
        None => String::new(),
    };
    shown(format!(
        "soft {}, hard {}{used} ({})",
        number(process.nofile_soft?),
        number(process.nofile_hard?),
        whose(process)
    ))
}

fn whose(process: &Process) -> String {
    if process.pid == u64::from(std::process::id()) {
        "this shell".to_owned()
    } else {
        format!("{}, pid {}", process.name, process.pid)
    }
}

fn port_range(facts: &Facts) -> Option<Shown> {
    let range = facts.host.sysctls.get("net.ipv4.ip_local_port_range")?;
    let (first, last) = (*range.first()?, *range.last()?);
    shown(format!(
        "{first} to {last}: {} ports towards one address and port of a server",
        thousands((last + 1).saturating_sub(first))
    ))
}

fn time_wait(facts: &Facts) -> Option<Shown> {
    let waiting = thousands(facts.host.count("tcp_time_wait")?);
    shown(match facts.host.sysctl("net.ipv4.tcp_max_tw_buckets") {
        Some(max) => format!("{waiting} in TIME_WAIT, at most {}", thousands(max)),
        None => format!("{waiting} in TIME_WAIT"),
    })
}

fn orphans(facts: &Facts) -> Option<Shown> {
    shown(format!(
        "{} orphans, at most {}",
        thousands(facts.host.count("tcp_orphans")?),
        thousands(facts.host.sysctl("net.ipv4.tcp_max_orphans")?)
    ))
}

fn listen_drops(facts: &Facts) -> Option<Shown> {
    let count = |name| facts.host.count(name).map(thousands);
    shown(format!(
        "since boot {} overflows of listeners, {} drops; cookies sent {} times",
        count("listen_overflows")?,
        count("listen_drops")?,
        count("syn_queue_full_cookies").unwrap_or_else(|| "?".to_owned())
    ))
}

fn netdev_backlog(facts: &Facts) -> Option<Shown> {
    shown(format!(
        "{} packets dropped since boot; netdev_max_backlog is {}",
        thousands(facts.host.count("backlog_drops")?),
        thousands(facts.host.sysctl("net.core.netdev_max_backlog")?)
    ))
}

fn conntrack(facts: &Facts) -> Option<Shown> {
    let Some(entries) = facts.host.count("conntrack_entries") else {
        return shown("not loaded on this host: nothing is tracked".to_owned());
    };
    let max = facts.host.sysctl("net.netfilter.nf_conntrack_max")?;
    shown(format!(
        "{} of {} entries",
        thousands(entries),
        thousands(max)
    ))
}

fn tcp_mem(facts: &Facts) -> Option<Shown> {
    let max = facts.host.sysctl_last("net.ipv4.tcp_mem")?;
    let text = format!(
        "at most {} pages, {}",
        thousands(max),
        bytes(max.saturating_mul(PAGE_BYTES))
    );
    shown(text)
}

fn tcp_memory(facts: &Facts) -> Option<Shown> {
    let pages = facts.host.count("tcp_memory_pages")?;
    shown(format!(
        "{} pages, {}",
        thousands(pages),
        bytes(pages.saturating_mul(PAGE_BYTES))
    ))
}

fn memory(facts: &Facts) -> Option<Shown> {
    let (all, free) = (
        facts.host.count("memory_bytes")?,
        facts.host.count("memory_available_bytes")?,
    );
    shown(format!("{} of {} available", bytes(free), bytes(all)))
}

fn cgroup_memory(facts: &Facts) -> Option<Shown> {
    let process = server(facts).unwrap_or(&facts.this);
    let group = &process.group;
    let max = match group.memory_max? {
        NO_LIMIT => "no limit".to_owned(),
        max => format!("at most {}", bytes(max)),
    };
    let now = bytes(group.memory_now.unwrap_or_default());
    shown(format!(
        "{max}, {now} in use ({}, of {})",
        group.memory_path,
        whose(process)
    ))
}

fn file_nr(facts: &Facts) -> Option<Shown> {
    let open = thousands(facts.host.count("files_open")?);
    let max = facts.host.sysctl("fs.file-max")?;
    // The kernel's default is the largest number that it can write.
    shown(if max >= i64::MAX.unsigned_abs() {
        format!("{open} open, no limit")
    } else {
        format!("{open} open, at most {}", thousands(max))
    })
}

fn overcommit(facts: &Facts) -> Option<Shown> {
    let how = facts.host.sysctl("vm.overcommit_memory")?;
    shown(match how {
        2 => format!(
            "2: {} of {} are promised, no more",
            bytes(facts.host.count("committed_bytes")?),
            bytes(facts.host.count("commit_limit_bytes")?)
        ),
        how => format!("{how}: address space is not limited by memory"),
    })
}

fn redo_age(facts: &Facts) -> Option<Shown> {
    let age = facts.server.as_ref()?.checkpoint_age?;
    shown(format!("{} ({}) behind", thousands(age), bytes(age)))
}
