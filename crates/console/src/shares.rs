//! Resources that connections of the console share: places to run statements, and memory for
//! answers.
//!
//! The console must not take what the pool's clients need. A statement may fill tables of 200,000
//! rows, so few run at once, and others wait for a place; readers leave one to administrators.
//! Answers are counted from their first row until they are sent.

use crate::{ANSWERS_BYTES_MAX, Access, READERS_MAX, STATEMENT_MAX, STATEMENTS_MAX};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Statements that run.
#[derive(Debug, Default)]
pub(crate) struct Statements {
    running: Mutex<usize>,
    ended: Condvar,
}

/// A place, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place<'s>(&'s Statements);

impl Statements {
    /// A place for a statement of such an account; `None` where none has become free in time.
    pub(crate) fn place(&self, access: Access) -> Option<Place<'_>> {
        let max = match access {
            Access::Admin => STATEMENTS_MAX,
            Access::Read => READERS_MAX,
        };
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let full = |running: &mut usize| *running >= max;
        let waited = self.ended.wait_timeout_while(running, STATEMENT_MAX, full);
        let (mut running, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            return None;
        }
        *running += 1;
        Some(Place(self))
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut running = self
            .0
            .running
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *running -= 1;
        drop(running);
        self.0.ended.notify_all();
    }
}

/// Bytes of all answers.
#[derive(Debug, Default)]
pub(crate) struct Answers(AtomicUsize);

/// Memory of one answer, until it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    answers: Arc<Answers>,
    bytes: usize,
}

impl Held {
    pub(crate) fn none(answers: Arc<Answers>) -> Held {
        Held { answers, bytes: 0 }
    }

    /// Counts more; `false` where all answers together would be too long.
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        let before = self.answers.0.fetch_add(bytes, Relaxed);
        self.bytes += bytes;
        before + bytes <= ANSWERS_BYTES_MAX
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.answers.0.fetch_sub(self.bytes, Relaxed);
    }
}
