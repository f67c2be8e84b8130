//! Processes: memory and CPU as the kernel counts them.
//!
//! Memory is resident memory from `/proc/PID/statm`; kernel memory (sockets, page tables) is not in
//! it. CPU time of this process comes from its CPU clock, to the nanosecond; that of another one
//! from `/proc/PID/stat`, in ticks of the kernel (mostly 10 ms). Both count all threads, also those
//! that have ended.
//!
//! Invariant: nothing here guesses; what cannot be read is an error that names the file.

use std::fs;
use std::io;
use std::time::Duration;

/// Resources that a process has used up to a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Resident memory now, in bytes.
    pub rss_bytes: u64,
    /// CPU time since the process began, user and system.
    pub cpu: Duration,
}

/// A sample of this process.
///
/// # Errors
/// As [`of`].
pub fn own() -> io::Result<Sample> {
    Ok(Sample {
        rss_bytes: rss_bytes("self")?,
        cpu: of_clock(rustix::time::ClockId::ProcessCPUTime),
    })
}

/// CPU time of the calling thread, user and system.
#[must_use]
pub fn thread_cpu() -> Duration {
    of_clock(rustix::time::ClockId::ThreadCPUTime)
}

fn of_clock(clock: rustix::time::ClockId) -> Duration {
    let cpu = rustix::time::clock_gettime(clock);
    let seconds = u64::try_from(cpu.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(cpu.tv_nsec).unwrap_or(0);
    Duration::from_nanos(seconds * 1_000_000_000 + nanos)
}

/// A sample of another process.
///
/// # Errors
/// The system's error with the file's name, as when the process has ended.
pub fn of(pid: u32) -> io::Result<Sample> {
    let path = format!("/proc/{pid}/stat");
    let stat = read(&path)?;
    let ticks = cpu_ticks(&stat).ok_or_else(|| unexpected(&path, "two CPU times", &stat))?;
    let ticks_per_second = rustix::param::clock_ticks_per_second().max(1);
    Ok(Sample {
        rss_bytes: rss_bytes(&pid.to_string())?,
        cpu: Duration::from_nanos(ticks * (1_000_000_000 / ticks_per_second)),
    })
}

fn rss_bytes(process: &str) -> io::Result<u64> {
    let path = format!("/proc/{process}/statm");
    let statm = read(&path)?;
    let pages = statm.split_ascii_whitespace().nth(1);
    let pages: u64 = pages
        .and_then(|pages| pages.parse().ok())
        .ok_or_else(|| unexpected(&path, "a number of resident pages", &statm))?;
    Ok(pages * rustix::param::page_size() as u64)
}

/// User and system time, the 14th and 15th field. The second is the program's name in parentheses
/// and may hold anything, so counting starts behind its last one.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

fn read(path: &str) -> io::Result<String> {
    fs::read_to_string(path).map_err(|e| io::Error::new(e.kind(), format!("{path}: {e}")))
}

fn unexpected(path: &str, what: &str, found: &str) -> io::Error {
    io::Error::other(format!(
        "{path}: expected {what}, found '{}'",
        found.trim_end()
    ))
}

/// Connections whose memory can be told from what a program takes at its start.
const TELLING_CONNECTIONS: u64 = 1_000;

/// Memory that each of so many connections added; `None` where they are too few to tell.
#[must_use]
pub fn bytes_each(before: u64, after: u64, connections: u64) -> Option<u64> {
    let grown = after.saturating_sub(before);
    (connections >= TELLING_CONNECTIONS).then(|| grown / connections)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_memory_and_time() {
        let before = own().unwrap();
        let block = vec![1u8; 32 << 20];
        let mut sum = 0u64;
        for _ in 0..20 {
            sum = block
                .iter()
                .fold(sum, |sum, &b| sum.wrapping_mul(31) + u64::from(b));
        }
        let after = own().unwrap();
        assert!(sum > 0);
        assert!(after.rss_bytes > before.rss_bytes + (30 << 20));
        assert!(after.cpu > before.cpu);
        assert!(thread_cpu() > Duration::ZERO);
    }

    #[test]
    fn another_process_is_read_by_its_number() {
        let this = std::process::id();
        let (inside, outside) = (own().unwrap(), of(this).unwrap());
        assert!(outside.rss_bytes > 0);
        assert!(outside.cpu <= inside.cpu + Duration::from_secs(1));
        let error = of(u32::MAX).unwrap_err();
        assert!(error.to_string().contains("/proc/4294967295/stat"));
    }

    #[test]
    fn a_programs_name_may_hold_anything() {
        let stat = "7 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0 1 0 99";
        assert_eq!(cpu_ticks(stat), Some(300));
        assert_eq!(cpu_ticks("7 (a"), None);
    }

    #[test]
    fn the_memory_of_a_connection_is_told_of_many() {
        let most = TELLING_CONNECTIONS;
        assert_eq!(bytes_each(1_000, 201_000, most), Some(200));
        assert_eq!(bytes_each(1_000, 201_000, most - 1), None);
        assert_eq!(bytes_each(201_000, 1_000, most), Some(0));
    }
}
