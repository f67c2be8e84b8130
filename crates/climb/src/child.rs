//! Child processes that cannot be lost.
//!
//! `climb` starts a server, a pool and a load, and must leave nothing behind: not after an
//! error, a panic or Ctrl-C. So a child lives in a guard that stops it when dropped: SIGTERM, a
//! bounded wait, then SIGKILL, and always reaped. Each child leads a process group of its own: the
//! terminal's Ctrl-C reaches `climb` alone, which then stops them in order, and a shell script
//! among them (mariadb-install-db) takes its own children along.
//!
//! Two threads per child read its output to the end, so that it never blocks on a full pipe; the
//! last lines are kept, because they tell why a child failed. Waiting is on events (a line, the
//! end, a pidfd), in slices short enough that Ctrl-C is seen at once.

use std::collections::VecDeque;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use crate::machine::kib_of;
use crate::processors;

const LINES_KEPT_MAX: usize = 500;
/// Longest line that is taken, whatever a child writes.
const LINE_BYTES_MAX: u64 = 4096;
/// Time that a dropped guard waits between SIGTERM and SIGKILL.
const DROP_GRACE: Duration = Duration::from_secs(3);
/// Time for which the last words of a child that has ended are awaited.
const END_PATIENCE: Duration = Duration::from_secs(2);
/// Time after which Ctrl-C is seen while a child is awaited; also the interval of samples of its
/// memory.
pub(crate) const SLICE: Duration = Duration::from_millis(200);

/// Set by SIGINT and SIGTERM.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt(pub(crate) Arc<AtomicBool>);

/// Wish of the user to stop: not a failure, and no cell goes on after it.
#[derive(Debug)]
pub(crate) struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

impl Interrupt {
    pub(crate) fn check(&self) -> Result<()> {
        if self.0.load(Ordering::Relaxed) {
            Err(Interrupted.into())
        } else {
            Ok(())
        }
    }
}

/// Stream of a child that a line came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

/// Result of awaiting a child's output.
#[derive(Debug)]
pub(crate) enum Event {
    Line(Stream, String),
    /// Nothing for as long as was asked.
    Quiet,
    /// End of both streams: the child ended, or is about to.
    Closed,
}

/// A process that is stopped when this is dropped.
#[derive(Debug)]
pub(crate) struct Child {
    name: &'static str,
    process: std::process::Child,
    pid: Pid,
    output: Arc<Output>,
    /// Number of lines taken by `next_event`.
    taken: u64,
    status: Option<ExitStatus>,
}

#[derive(Debug, Default)]
struct Output {
    lines: Mutex<Lines>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Lines {
    kept: VecDeque<(Stream, String)>,
    /// Number of lines that came and were dropped again.
    dropped: u64,
    ended: u8,
}

impl Child {
    /// Starts a program with its output read from here and its input empty.
    pub(crate) fn start(name: &'static str, command: Command) -> Result<Self> {
        Self::start_on(&[], name, command)
    }

    /// Starts it on these processors; none leave it as it is.
    pub(crate) fn start_on(
        numbers: &[usize],
        name: &'static str,
        mut command: Command,
    ) -> Result<Self> {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let program = command.get_program().to_string_lossy().into_owned();
        command.process_group(0);
        let mut process = processors::on(numbers, || command.spawn())
            .with_context(|| format!("cannot start {name} as {program}"))?;
        let output = Arc::new(Output::default());
        if let Some(stream) = process.stdout.take() {
            read_in_thread(Stream::Stdout, stream, Arc::clone(&output));
        }
        if let Some(stream) = process.stderr.take() {
            read_in_thread(Stream::Stderr, stream, Arc::clone(&output));
        }
        let pid = Pid::from_child(&process);
        Ok(Self {
            name,
            process,
            pid,
            output,
            taken: 0,
            status: None,
        })
    }

    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// The next line, or what came instead within `patience`.
    pub(crate) fn next_event(&mut self, patience: Duration) -> Event {
        let deadline = Instant::now() + patience;
        let mut lines = self.output.lock();
        loop {
            // Lines that nobody took in time are gone; go on with the oldest that is kept.
            self.taken = self.taken.max(lines.dropped);
            let at = usize::try_from(self.taken - lines.dropped).unwrap_or(usize::MAX);
            if let Some((stream, text)) = lines.kept.get(at) {
                self.taken += 1;
                return Event::Line(*stream, text.clone());
            }
            if lines.ended == 2 {
                return Event::Closed;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Event::Quiet;
            }
            let waited = self.output.changed.wait_timeout(lines, left);
            lines = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits for a line that contains `words`: the child's word that it is ready.
    pub(crate) fn await_line(
        &mut self,
        words: &str,
        patience: Duration,
        interrupt: &Interrupt,
    ) -> Result<()> {
        let deadline = Instant::now() + patience;
        while Instant::now() < deadline {
            interrupt.check()?;
            match self.next_event(SLICE) {
                Event::Line(_, text) if text.contains(words) => return Ok(()),
                Event::Line(..) | Event::Quiet => {}
                Event::Closed => {
                    anyhow::bail!(
                        "{} ended before it was ready: {}",
                        self.name,
                        self.last_words()
                    )
                }
            }
        }
        let seconds = patience.as_secs();
        anyhow::bail!(
            "{} was not ready after {seconds} s: {}",
            self.name,
            self.last_words()
        )
    }

    /// Waits for the end, and stops the child when it does not come in time.
    pub(crate) fn finish(
        &mut self,
        patience: Duration,
        interrupt: &Interrupt,
    ) -> Result<ExitStatus> {
        let deadline = Instant::now() + patience;
        while !self.has_ended(SLICE) {
            interrupt.check()?;
            if Instant::now() >= deadline {
                self.stop(DROP_GRACE);
                let seconds = patience.as_secs();
                anyhow::bail!(
                    "{} did not end within {seconds} s: {}",
                    self.name,
                    self.last_words()
                );
            }
        }
        self.stop(Duration::ZERO)
            .context("the status of a child was taken by somebody else")
    }

    /// Stops the child if it still runs, and reaps it: SIGTERM, up to `grace`, SIGKILL.
    pub(crate) fn stop(&mut self, grace: Duration) -> Option<ExitStatus> {
        if self.status.is_none() {
            if !self.has_ended(Duration::ZERO) {
                let _ = kill_process_group(self.pid, Signal::TERM);
                self.has_ended(grace);
            }
            // Before the leader is reaped its number cannot be anybody else's group.
            let _ = kill_process_group(self.pid, Signal::KILL);
            self.status = self.process.wait().ok();
            self.output.await_end(END_PATIENCE);
        }
        self.status
    }

    /// True if the child ends within `patience`. It is not reaped by this.
    pub(crate) fn has_ended(&self, patience: Duration) -> bool {
        if self.status.is_some() {
            return true;
        }
        let Ok(pidfd) = pidfd_open(self.pid, PidfdFlags::empty()) else {
            return false;
        };
        is_readable(&pidfd, patience)
    }

    /// The last lines of both streams, newest last.
    pub(crate) fn tail(&self, count: usize) -> Vec<String> {
        let lines = self.output.lock();
        let skipped = lines.kept.len().saturating_sub(count);
        lines
            .kept
            .iter()
            .skip(skipped)
            .map(|(_, text)| text.clone())
            .collect()
    }

    /// The last line that says anything, for the end of an error.
    pub(crate) fn last_words(&self) -> String {
        let said = self
            .tail(20)
            .into_iter()
            .rfind(|line| !line.trim().is_empty());
        said.map_or_else(
            || "it said nothing".to_owned(),
            |line| line.trim().to_owned(),
        )
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.stop(DROP_GRACE);
    }
}

impl Output {
    /// Waits until the readers have all that the child said. It has ended; but a descendant in
    /// another process group may hold its pipes open, so the wait is bounded.
    fn await_end(&self, patience: Duration) {
        let running = |lines: &mut Lines| lines.ended < 2;
        drop(
            self.changed
                .wait_timeout_while(self.lock(), patience, running),
        );
    }

    fn lock(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// True if the process has ended, which makes its pidfd readable, within `patience`.
fn is_readable(pidfd: &OwnedFd, patience: Duration) -> bool {
    let timeout = Timespec::try_from(patience).ok();
    let mut fds = [PollFd::new(pidfd, PollFlags::IN)];
    poll(&mut fds, timeout.as_ref()).is_ok_and(|ready| ready > 0)
}

fn read_in_thread(stream: Stream, source: impl Read + Send + 'static, output: Arc<Output>) {
    std::thread::spawn(move || {
        let mut source = BufReader::new(source);
        let mut bytes = Vec::new();
        while matches!(
            (&mut source)
                .take(LINE_BYTES_MAX)
                .read_until(b'\n', &mut bytes),
            Ok(1..)
        ) {
            let text = String::from_utf8_lossy(&bytes).trim_end().to_owned();
            let mut lines = output.lock();
            if lines.kept.len() == LINES_KEPT_MAX {
                lines.kept.pop_front();
                lines.dropped += 1;
            }
            lines.kept.push_back((stream, text));
            output.changed.notify_all();
            bytes.clear();
        }
        output.lock().ended += 1;
        output.changed.notify_all();
    });
}

/// Resources of a process, as `/proc` tells.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Usage {
    pub(crate) rss_bytes: u64,
    pub(crate) cpu_s: f64,
}

impl Usage {
    /// Reads it. None if the process is gone.
    pub(crate) fn of(pid: Pid) -> Option<Self> {
        let pid = pid.as_raw_pid();
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let ticks_per_s = rustix::param::clock_ticks_per_second();
        let cpu_s = cpu_ticks(&stat)? as f64 / ticks_per_s as f64;
        Some(Self {
            rss_bytes: kib_of(&status, "VmRSS:")? * 1024,
            cpu_s,
        })
    }
}

/// User and system time: fields 14 and 15, counted behind the name, which may contain spaces.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let fields = stat.rsplit_once(')')?.1;
    let mut fields = fields.split_whitespace().skip(11);
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Child {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        Child::start("a shell", command).unwrap()
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn lines_come_in_order_and_then_the_end() {
        let mut child = shell("echo one; echo two");
        let mut texts = Vec::new();
        while let Event::Line(stream, text) = child.next_event(LONG) {
            assert_eq!(stream, Stream::Stdout);
            texts.push(text);
        }
        assert_eq!(texts, ["one", "two"]);
        assert!(child.finish(LONG, &Interrupt::default()).unwrap().success());
    }

    #[test]
    fn a_child_that_ends_early_says_why() {
        let mut child = shell("echo no disk >&2; exit 3");
        let error = child
            .await_line("ready", LONG, &Interrupt::default())
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "a shell ended before it was ready: no disk"
        );
    }

    #[test]
    fn a_dropped_child_is_gone_with_its_own_children() {
        let mut child = shell("sleep 1000 & echo $!; wait");
        let Event::Line(_, text) = child.next_event(LONG) else {
            panic!("no line")
        };
        let grandchild = Pid::from_raw(text.parse().unwrap()).unwrap();
        let grandchild = pidfd_open(grandchild, PidfdFlags::empty()).unwrap();
        let pid = child.pid();
        drop(child);
        assert!(rustix::process::test_kill_process(pid).is_err());
        assert!(is_readable(&grandchild, LONG), "the grandchild still runs");
    }

    #[test]
    fn a_deaf_child_is_killed() {
        let mut child = shell("trap '' TERM; echo deaf; while :; do sleep 1000; done");
        child
            .await_line("deaf", LONG, &Interrupt::default())
            .unwrap();
        let status = child.stop(Duration::ZERO).unwrap();
        assert!(!status.success());
    }

    #[test]
    fn ctrl_c_ends_a_wait() {
        let interrupt = Interrupt::default();
        interrupt.0.store(true, Ordering::Relaxed);
        let mut child = shell("sleep 1000");
        assert!(
            child
                .await_line("never", LONG, &interrupt)
                .unwrap_err()
                .is::<Interrupted>()
        );
        assert!(
            child
                .finish(LONG, &interrupt)
                .unwrap_err()
                .is::<Interrupted>()
        );
    }

    #[test]
    fn the_usage_of_a_process_is_read() {
        let usage = Usage::of(rustix::process::getpid()).unwrap();
        assert!(usage.rss_bytes > 0);
        assert_eq!(
            cpu_ticks("1 (a b) c) S 1 1 1 0 -1 0 0 0 0 0 40 2 0 0"),
            Some(42)
        );
    }
}
