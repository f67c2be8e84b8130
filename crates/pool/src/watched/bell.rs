//! The bell of the watch: rung when something that is watched may have changed.
//!
//! The watch waits for it as long as it would until its next question, so that what a statement
//! through the pool has changed is seen at once.
//!
//! Invariant: a bell that is rung before somebody waits is heard.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Rung when something that is watched may have changed.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    rung: Mutex<bool>,
    heard: Condvar,
}

impl Bell {
    fn lock(&self) -> MutexGuard<'_, bool> {
        self.rung.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn ring(&self) {
        *self.lock() = true;
        self.heard.notify_one();
    }

    /// Waits until it rings, at most this long.
    pub(crate) fn wait(&self, longest: Duration) {
        let waited = self
            .heard
            .wait_timeout_while(self.lock(), longest, |rung| !*rung);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
    }

    /// Waits, whether it rings or not.
    pub(crate) fn pause(&self, time: Duration) {
        let waited = self.heard.wait_timeout_while(self.lock(), time, |_| true);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bell_that_rang_before_is_heard() {
        let bell = Bell::default();
        bell.ring();
        // It would wait for ever otherwise.
        bell.wait(Duration::MAX);
        assert!(!*bell.lock());
    }
}
