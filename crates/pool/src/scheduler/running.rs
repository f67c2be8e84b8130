//! Statements that run in a group at this moment, and their bound.
//!
//! The problem: a server that runs many statements at once runs each of them slowly, and one that
//! runs few stands still when those few wait for a lock or a disk. The mechanism is that of the
//! servers' thread pools: backends are checked out while fewer than [`Running::max`] backends run
//! something; a backend that has answered nothing for `stall_ms_max` no longer counts, so another
//! statement may start. Statements of clients that have a backend are counted and not held back.
//! Groups that start any share what may run ([`crate::scheduler::fronts`]).
//!
//! Invariant: a backend is counted from the moment something is in flight on it until its queue is
//! empty, it stalls, or it is closed.

use crate::backend::Backend;
use crate::config::Settings;
use crate::group::shared::Shared;
use crate::group::tokens::BackendId;
use crate::scheduler::fronts::Look;
use reactor::{Slots, Time};
use std::cell::Cell;

/// Statements that run in a group.
#[derive(Debug, Default)]
pub(crate) struct Running {
    /// Backends that run statements, those that have stalled not counted.
    count: usize,
    /// Last look at the other groups.
    pub(crate) look: Cell<Look>,
}

impl Running {
    /// Backends of this group that may run statements at once, as far as clients without a backend
    /// go: none while the pool is paused.
    pub(crate) fn max(&self, shared: &Shared, settings: &Settings) -> usize {
        match shared.scheduling.is_paused() {
            true => 0,
            false => self.max_of_held(shared, settings),
        }
    }

    /// Most statements at once of clients that have a backend: a pause lets them come to their end.
    fn max_of_held(&self, shared: &Shared, settings: &Settings) -> usize {
        shared.busy_max(settings, self.look.get().running)
    }

    /// True if `more` backends, and another, may run a statement for clients without one.
    pub(crate) fn has_room(&self, more: usize, shared: &Shared, settings: &Settings) -> bool {
        self.count + more < self.max(shared, settings)
    }

    /// True if as many run as may, so that a client which has a backend waits with it.
    pub(crate) fn is_full_of_held(&self, shared: &Shared, settings: &Settings) -> bool {
        self.count >= self.max_of_held(shared, settings)
    }

    /// Counts a backend that has something in flight, as one that runs statements: at its server,
    /// and here if that is the one that is written to.
    pub(crate) fn begins<S>(&mut self, backend: &mut Backend<S>, now: Time) {
        let begins = backend.begin_load(now);
        self.count += usize::from(begins && !backend.is_reader());
    }

    /// Takes a backend that has nothing in flight any more, or is closed, out of the count. Returns
    /// the groups that want its place at its server.
    pub(crate) fn ends<S>(&mut self, backend: &mut Backend<S>) -> Vec<usize> {
        let mut wanting = Vec::new();
        let ends = backend.end_load(&mut wanting);
        self.count -= usize::from(ends && !backend.is_reader());
        wanting
    }

    /// Backends that have answered nothing for `stall_max` no longer count: others may run. Returns
    /// how many those are; groups are added that want their places.
    pub(crate) fn discount_stalled<S>(
        &mut self,
        backends: &mut Slots<Backend<S>, BackendId>,
        settings: &Settings,
        now: Time,
        wanting: &mut Vec<usize>,
    ) -> u64 {
        let mut stalled = 0;
        for backend in backends.values_mut() {
            let is_late = now.since(backend.flight.busy_since()) >= settings.stall_max;
            if is_late && backend.stall(wanting) {
                self.count -= usize::from(!backend.is_reader());
                stalled += 1;
            }
        }
        stalled
    }

    /// Moment at which the next backend stalls; for when that lets somebody run.
    pub(crate) fn next_stall<S>(
        &self,
        backends: &Slots<Backend<S>, BackendId>,
        settings: &Settings,
    ) -> Time {
        let counted = backends.iter().filter(|(_, b)| b.is_counted());
        let oldest = (counted.map(|(_, backend)| backend.flight.busy_since())).min();
        oldest.map_or(Time::NEVER, |oldest| oldest + settings.stall_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{ForBackend, InFlight};
    use std::rc::Rc;
    use wire::command::ReplyShape;

    fn backend() -> Backend<()> {
        Backend::of_tests(Time(1), Rc::default())
    }

    #[test]
    fn a_backend_counts_once_and_while_something_is_in_flight() {
        let (mut running, mut backend) = (Running::default(), backend());
        running.begins(&mut backend, Time(5));
        assert_eq!(running.count, 0, "nothing is in flight");
        let command = InFlight::own(None, ForBackend::Clearing, ReplyShape::Status);
        backend.flight.expect(command);
        running.begins(&mut backend, Time(5));
        running.begins(&mut backend, Time(9));
        assert_eq!((running.count, backend.flight.busy_since()), (1, Time(5)));
        running.ends(&mut backend);
        running.ends(&mut backend);
        assert_eq!((running.count, backend.is_counted()), (0, false));
    }

    #[test]
    fn one_that_has_stalled_is_not_taken_off_twice() {
        let mut running = Running::default();
        let mut stalled = backend();
        let command = InFlight::own(None, ForBackend::Clearing, ReplyShape::Status);
        stalled.flight.expect(command);
        running.begins(&mut stalled, Time(5));
        assert!(stalled.stall(&mut Vec::new()));
        running.count -= 1;
        running.begins(&mut stalled, Time(7));
        running.ends(&mut stalled);
        assert_eq!((running.count, stalled.is_counted()), (0, false));
    }
}
