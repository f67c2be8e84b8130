//! Load that a backend is while something is in flight on it.
//!
//! A backend that answers nothing for long no longer counts among those that run statements
//! ([`crate::scheduler::running`]).

use super::{Backend, Load};
use crate::scheduler::account_slots::OnServer;
use reactor::Time;

impl<S> Backend<S> {
    /// True if nothing is in flight or unsent.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.output.is_empty() && self.flight.is_empty()
    }

    /// Counts it among those that run statements, if something is in flight; `false` if it has
    /// been counted.
    pub(crate) fn begin_load(&mut self, now: Time) -> bool {
        let begins = self.load == Load::None && !self.flight.is_empty();
        if begins {
            self.load = Load::Counted;
            self.flight.begin(now);
            if self.running.is_none() {
                self.running = self.on_server.as_ref().and_then(OnServer::run);
            }
        }
        begins
    }

    /// Ends its load, with nothing running any more; `true` if it was counted. Groups are added
    /// that want its place at its server.
    pub(crate) fn end_load(&mut self, wanting: &mut Vec<usize>) -> bool {
        wanting.extend((self.running.take().into_iter()).flat_map(OnServer::give_back));
        std::mem::replace(&mut self.load, Load::None) == Load::Counted
    }

    /// Marks it as stalled, without an answer for long; `true` if it was counted until now.
    pub(crate) fn stall(&mut self, wanting: &mut Vec<usize>) -> bool {
        let was_counted = self.is_counted();
        if was_counted {
            self.end_load(wanting);
            self.load = Load::Stalled;
        }
        was_counted
    }

    /// True if it counts among those that run statements.
    pub(crate) fn is_counted(&self) -> bool {
        self.load == Load::Counted
    }
}

#[cfg(test)]
impl<S> Backend<S> {
    pub(crate) fn give_back_input(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{ForBackend, InFlight};
    use std::rc::Rc;
    use wire::command::ReplyShape;

    #[test]
    fn a_backend_is_counted_once_and_taken_off_once() {
        let mut backend = Backend::of_tests(Time(1), Rc::default());
        assert!(!backend.begin_load(Time(2)), "nothing is in flight");
        backend.flight.expect(InFlight::own(
            None,
            ForBackend::Clearing,
            ReplyShape::Status,
        ));
        assert!(backend.begin_load(Time(3)) && !backend.begin_load(Time(4)));
        assert_eq!(backend.flight.busy_since(), Time(3));
        let wanting = &mut Vec::new();
        assert!(backend.stall(wanting) && !backend.stall(wanting) && !backend.end_load(wanting));
    }
}
