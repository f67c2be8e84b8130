//! Output of a child process, line by line, for whoever waits for a certain line.
//!
//! A thread reads until the pipe ends; [`Output::wait_for`] sleeps until the line is there, so
//! nothing is polled.

use std::io::{BufRead, BufReader, Read};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

#[derive(Debug, Default)]
struct Lines {
    lines: Vec<String>,
    ended: bool,
}

/// The lines that a process has written so far.
#[derive(Clone, Debug, Default)]
pub struct Output(Arc<(Mutex<Lines>, Condvar)>);

impl Output {
    /// Collects what comes out of `pipe`.
    #[must_use]
    pub fn of(pipe: impl Read + Send + 'static) -> Output {
        let output = Output::default();
        let shared = output.0.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).into_owned();
                shared.0.lock().unwrap().lines.push(line);
                shared.1.notify_all();
            }
            shared.0.lock().unwrap().ended = true;
            shared.1.notify_all();
        });
        output
    }

    /// Everything so far.
    #[must_use]
    pub fn text(&self) -> String {
        self.0.0.lock().unwrap().lines.join("\n")
    }

    /// The last lines so far, `most` of them at most, and how many stand before them.
    #[must_use]
    pub fn last(&self, most: usize) -> (String, usize) {
        let lines = &self.0.0.lock().unwrap().lines;
        let left_out = lines.len().saturating_sub(most);
        (lines[left_out..].join("\n"), left_out)
    }

    /// Lines so far.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.0.lock().unwrap().lines.len()
    }

    /// The first line with `part` in it, from line number `from` on (counted from 0).
    ///
    /// # Errors
    /// Everything that came, when the pipe ended or `limit` passed without it.
    pub fn wait_for(&self, part: &str, from: usize, limit: Duration) -> Result<String, String> {
        let (lock, condition) = &*self.0;
        let found = |lines: &Lines| {
            let mut new = lines.lines.iter().skip(from);
            new.find(|line| line.contains(part)).cloned()
        };
        let (lines, timeout) = condition
            .wait_timeout_while(lock.lock().unwrap(), limit, |lines| {
                !lines.ended && found(lines).is_none()
            })
            .unwrap();
        found(&lines).ok_or_else(|| {
            let why = if timeout.timed_out() {
                "in time"
            } else {
                "before its output ended"
            };
            format!(
                "no line with '{part}' came {why}; it said:\n{}",
                lines.lines.join("\n")
            )
        })
    }

    /// Waits until the pipe has ended, then everything.
    #[must_use]
    pub fn whole(&self) -> String {
        let (lock, condition) = &*self.0;
        let lines = condition
            .wait_while(lock.lock().unwrap(), |lines| !lines.ended)
            .unwrap();
        lines.lines.join("\n")
    }
}
