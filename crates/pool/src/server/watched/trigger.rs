//! The trigger of the watch: fires when something that is watched may have changed.
//!
//! The watch waits for it as long as it would until its next question, so that what a statement
//! through the pool has changed is seen at once.
//!
//! Invariant: one that fires before somebody waits is heard.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Rung when something that is watched may have changed.
#[derive(Debug, Default)]
pub(crate) struct WatchTrigger {
    fired: Mutex<bool>,
    heard: Condvar,
}

impl WatchTrigger {
    fn lock(&self) -> MutexGuard<'_, bool> {
        self.fired.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn fire(&self) {
        *self.lock() = true;
        self.heard.notify_one();
    }

    /// Waits until it fires, at most this long.
    pub(crate) fn wait(&self, longest: Duration) {
        let waited = self
            .heard
            .wait_timeout_while(self.lock(), longest, |fired| !*fired);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
    }

    /// Waits, whether it fires or not.
    pub(crate) fn pause(&self, time: Duration) {
        let waited = self.heard.wait_timeout_while(self.lock(), time, |_| true);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trigger_that_fired_before_is_heard() {
        let trigger = WatchTrigger::default();
        trigger.fire();
        // It would wait for ever otherwise.
        trigger.wait(Duration::MAX);
        assert!(!*trigger.lock());
    }
}
