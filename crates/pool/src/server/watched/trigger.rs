//! The trigger of the watch: fires when something that is watched may have changed.
//!
//! The watch waits for it as long as it would until its next question, so that what a statement
//! through the pool has changed is seen at once.
//!
//! Invariant: one that fires before somebody waits is heard.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// State of the trigger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Fired {
    #[default]
    No,
    Yes,
    /// Ends a pause, too.
    Urgent,
}

/// Rung when something that is watched may have changed.
#[derive(Debug, Default)]
pub(crate) struct WatchTrigger {
    fired: Mutex<Fired>,
    heard: Condvar,
}

impl WatchTrigger {
    fn lock(&self) -> MutexGuard<'_, Fired> {
        self.fired.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn fire(&self) {
        self.set(Fired::Yes);
    }

    /// Fires, and ends a pause.
    pub(crate) fn fire_urgently(&self) {
        self.set(Fired::Urgent);
    }

    fn set(&self, to: Fired) {
        let mut fired = self.lock();
        *fired = (*fired).max(to);
        self.heard.notify_one();
    }

    /// Waits until it fires, at most this long.
    pub(crate) fn wait(&self, longest: Duration) {
        let waited = self
            .heard
            .wait_timeout_while(self.lock(), longest, |fired| *fired == Fired::No);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = Fired::No;
    }

    /// Waits, unless it fires urgently.
    pub(crate) fn pause(&self, time: Duration) {
        let is_calm = |fired: &mut Fired| *fired != Fired::Urgent;
        let waited = self.heard.wait_timeout_while(self.lock(), time, is_calm);
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
        assert_eq!(*trigger.lock(), Fired::No);
        trigger.fire_urgently();
        trigger.fire();
        trigger.pause(Duration::MAX);
        trigger.wait(Duration::MAX);
    }
}
