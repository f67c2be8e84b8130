//! Facts of this machine that a reader of the figures asks for. The bounds of a climb are the
//! doctor's to read.
//!
//! All of it is read from `/proc` once, into a plain struct. A bound that cannot be read counts as
//! none (`u64::MAX`).
//!
//! Descriptor and process limits are inherited by children. The soft limits of this process are
//! therefore raised to the hard ones before the first child starts.

use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The facts of one machine.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    pub(crate) cpus: u64,
    pub(crate) cpu_model: String,
    pub(crate) memory_bytes: u64,
    pub(crate) kernel: String,
    /// Descriptors that one process may have: RLIMIT_NOFILE, hard.
    pub(crate) nofile_hard: u64,
}

impl Machine {
    /// Reads the facts.
    pub(crate) fn read() -> Self {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let hard = |resource| getrlimit(resource).maximum.unwrap_or(u64::MAX);
        let uname = rustix::system::uname();
        Self {
            cpus: std::thread::available_parallelism().map_or(1, |n| n.get() as u64),
            cpu_model: cpu_model(&text("/proc/cpuinfo")),
            memory_bytes: memory_bytes(&text("/proc/meminfo")),
            kernel: format!(
                "{} {}",
                uname.sysname().to_string_lossy(),
                uname.release().to_string_lossy()
            ),
            nofile_hard: hard(Resource::Nofile),
        }
    }
}

/// The machine of the figures in docs/performance.md: its processors, their model, GiB of memory,
/// and its kernel.
const PUBLISHED: (u64, &str, u64, &str) = (2, "AMD EPYC", 24, "Linux 6.18");

impl Machine {
    /// A sentence where this is not the machine of the published figures.
    pub(crate) fn unlike_published(&self) -> Option<String> {
        let (cpus, model, memory, kernel) = PUBLISHED;
        // The kernel keeps a part of the memory for itself.
        let own_memory = self.memory_bytes.div_ceil(1 << 30);
        let is_like = self.cpus == cpus
            && self.cpu_model == model
            && own_memory.abs_diff(memory) <= 1
            && self
                .kernel
                .strip_prefix(kernel)
                .is_some_and(|rest| rest.starts_with('.'));
        (!is_like).then(|| {
            format!(
                "Not the machine of the published figures: they are of {cpus} x {model}, {memory} \
                 GiB, {kernel}; this one has {} x {}, {own_memory} GiB, {}.",
                self.cpus, self.cpu_model, self.kernel
            )
        })
    }
}

/// True if this process runs as root.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Raises the soft limits to the hard ones, and the hard limit of descriptors to `wanted`, or to
/// what the kernel allows at all, where this process may. What fails is left as it is: the
/// arithmetic reads the limits afterwards.
pub(crate) fn raise_limits(descriptors_wanted: u64) {
    for resource in [Resource::Nofile, Resource::Nproc] {
        let Rlimit { current, maximum } = getrlimit(resource);
        if current != maximum {
            let _ = setrlimit(
                resource,
                Rlimit {
                    current: maximum,
                    maximum,
                },
            );
        }
    }
    if getrlimit(Resource::Nofile)
        .maximum
        .is_some_and(|most| most < descriptors_wanted)
    {
        let most = fs::read_to_string("/proc/sys/fs/nr_open").ok();
        let most = most.and_then(|text| text.trim().parse().ok());
        let more = Some(descriptors_wanted.min(most.unwrap_or(u64::MAX)));
        let _ = setrlimit(
            Resource::Nofile,
            Rlimit {
                current: more,
                maximum: more,
            },
        );
    }
}

/// The time in UTC, as ISO 8601 to the second.
pub(crate) fn now_utc() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    measure::utc::text_of_second(since.unwrap_or(Duration::ZERO))
}

fn cpu_model(cpuinfo: &str) -> String {
    let value = |name| {
        let of_line = |line: &str| Some(line.split_once(':')?.1.trim().to_owned());
        cpuinfo
            .lines()
            .find(|line| line.starts_with(name))
            .and_then(of_line)
    };
    value("model name")
        .or_else(|| value("CPU part"))
        .unwrap_or_else(|| "unknown".to_owned())
}

/// Memory of the kernel's own objects that it cannot give back (sockets, descriptors), of the whole
/// machine, now; None if it is not told.
pub(crate) fn kernel_memory_bytes() -> Option<u64> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    Some(kib_of(&meminfo, "SUnreclaim:")? * 1024)
}

fn memory_bytes(meminfo: &str) -> u64 {
    kib_of(meminfo, "MemTotal:").unwrap_or_default() * 1024
}

/// The number of a line as `VmRSS:    1234 kB`.
pub(crate) fn kib_of(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_texts_are_read() {
        assert_eq!(
            cpu_model("processor\t: 0\nmodel name\t: A CPU: x\n"),
            "A CPU: x"
        );
        assert_eq!(cpu_model(""), "unknown");
        assert_eq!(
            memory_bytes("MemTotal:       24117248 kB\n"),
            24_117_248 * 1024
        );
    }

    #[test]
    fn another_machine_than_the_published_one_is_said() {
        let mut machine = Machine {
            cpus: 2,
            cpu_model: "AMD EPYC".to_owned(),
            memory_bytes: 24_117_248 << 10,
            kernel: "Linux 6.18.5".to_owned(),
            nofile_hard: 20_000,
        };
        assert_eq!(machine.unlike_published(), None);
        machine.cpus = 4;
        let text = machine.unlike_published().unwrap();
        assert!(
            text.ends_with("this one has 4 x AMD EPYC, 23 GiB, Linux 6.18.5."),
            "{text}"
        );
        machine.cpus = 2;
        machine.kernel = "Linux 6.1.5".to_owned();
        assert!(machine.unlike_published().is_some());
    }

    #[test]
    fn this_machine_has_facts() {
        let machine = Machine::read();
        assert!(machine.cpus >= 1 && machine.memory_bytes > 0 && machine.nofile_hard > 0);
    }
}
