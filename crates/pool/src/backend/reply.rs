//! The oldest reply of a backend, while it arrives, and the load that the backend is meanwhile.
//!
//! A reply is summed up as it passes; one to a command of the pool's own is collected besides. A
//! backend whose client does not take the reply is held up, and one that answers nothing for long
//! no longer counts among those that run statements ([`crate::scheduler::running`]).
//!
//! Invariant: behind a complete reply nothing of it is left here.

use super::{Backend, Load, Pipeline};
use crate::backend::relay::Middle;
use crate::scheduler::account_slots::OnServer;
use reactor::Time;
use session::reply_summary::ReplySummary;
use wire::rows::Columns;
use wire::track::Bound;

/// Parts of a backend that change while a reply passes.
pub(crate) struct ReplyParts<'a> {
    pub(crate) middle: &'a mut Middle,
    pub(crate) bound: &'a mut Bound,
    pub(crate) summary: &'a mut ReplySummary,
}

impl<S> Backend<S> {
    /// Parts that change while a reply passes.
    pub(crate) fn reply_parts(&mut self) -> ReplyParts<'_> {
        ReplyParts {
            middle: &mut self.middle,
            bound: &mut self.bound,
            summary: &mut self.summary,
        }
    }

    /// Summary of the oldest reply so far.
    pub(crate) fn reply_so_far(&self) -> &ReplySummary {
        &self.summary
    }

    /// True if the next byte of the oldest reply begins a packet.
    pub(crate) fn is_at_packet_start(&self) -> bool {
        self.middle.at_packet_start()
    }

    /// Transaction state that its client has been told last.
    pub(crate) fn bound_mut(&mut self) -> &mut Bound {
        &mut self.bound
    }

    /// Keeps a part of a reply to a command of the pool's own.
    pub(crate) fn collect(&mut self, part: &[u8]) {
        self.collected.extend_from_slice(part);
    }

    /// Takes a complete reply: its summary, and what was collected of it.
    pub(crate) fn take_reply(&mut self, now: Time) -> (ReplySummary, Vec<u8>) {
        self.busy_since = now;
        self.held_up_since = None;
        let summary = std::mem::take(&mut self.summary);
        (summary, std::mem::take(&mut self.collected))
    }

    /// Gives the memory of a summary back for the next.
    pub(crate) fn give_room_back(&mut self, summary: ReplySummary) {
        self.summary.take_room(summary.changes);
    }

    /// The client's statement whose cursor was opened last, and the columns of its rows.
    pub(crate) fn cursor(&self) -> Option<&(u32, Columns)> {
        self.cursor.as_ref()
    }

    /// Stores the cursor that a client's statement has opened.
    pub(crate) fn note_cursor(&mut self, id: u32, columns: Columns) {
        self.cursor = Some((id, columns));
    }

    /// True if nothing is in flight or unsent.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.output.is_empty() && self.flight.is_empty()
    }

    /// Notes that it is not read, because its client has not taken the last bytes of the reply in
    /// front.
    pub(crate) fn hold_up(&mut self, now: Time) {
        self.held_up_since.get_or_insert(now);
    }

    /// Moment since which it is not read for that.
    pub(crate) fn held_up_since(&self) -> Option<Time> {
        self.held_up_since
    }

    /// Moment since which something has been in flight, or at which the last reply was complete.
    pub(crate) fn busy_since(&self) -> Time {
        self.busy_since
    }

    /// Counts it among those that run statements, if something is in flight; `false` if it has
    /// been counted.
    pub(crate) fn begin_load(&mut self, now: Time) -> bool {
        let begins = self.load == Load::None && !self.flight.is_empty();
        if begins {
            (self.load, self.busy_since) = (Load::Counted, now);
            if self.running.is_none() {
                self.running = self.on_server.as_ref().and_then(OnServer::run);
            }
        }
        begins
    }

    /// Ends its load, with nothing running any more; `true` if it was counted. Groups are added
    /// that want its place at its server.
    pub(crate) fn end_load(&mut self, wanting: &mut Vec<usize>) -> bool {
        wanting.extend(
            self.running
                .take()
                .into_iter()
                .flat_map(OnServer::give_back),
        );
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

    /// Closes the pipeline: nobody joins behind what is in flight.
    pub(crate) fn close_pipeline(&mut self) {
        self.pipeline = Pipeline::Closed;
    }

    /// Opens the pipeline behind a statement with nothing in front, if it is `trusted`.
    pub(crate) fn begin_pipeline(&mut self, trusted: bool) {
        self.pipeline = match trusted {
            true => Pipeline::Open,
            false => Pipeline::Closed,
        };
    }

    /// Keeps a command that is pipelined; returns how many bytes that takes.
    pub(crate) fn keep_for_followers(&mut self, message: &[u8]) -> usize {
        self.followers.keep(message)
    }
}

#[cfg(test)]
impl<S> Backend<S> {
    pub(crate) fn set_reply_len(&mut self, len: usize) {
        self.summary.len = len;
    }

    pub(crate) fn give_back_input(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
    }

    pub(crate) fn bound(&self) -> &Bound {
        &self.bound
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{ForBackend, InFlight};
    use std::rc::Rc;
    use wire::command::ReplyShape;

    #[test]
    fn behind_a_reply_nothing_of_it_is_left() {
        let mut backend = Backend::of_tests(Time(1), Rc::default());
        backend.collect(b"abc");
        backend.set_reply_len(3);
        backend.hold_up(Time(2));
        backend.hold_up(Time(3));
        assert_eq!(backend.held_up_since(), Some(Time(2)));
        let (summary, collected) = backend.take_reply(Time(9));
        assert_eq!((summary.len, &collected[..]), (3, &b"abc"[..]));
        assert_eq!(
            (backend.held_up_since(), backend.busy_since()),
            (None, Time(9))
        );
        assert_eq!(backend.take_reply(Time(9)).1, b"");
    }

    #[test]
    fn a_backend_is_counted_once_and_taken_off_once() {
        let mut backend = Backend::of_tests(Time(1), Rc::default());
        assert!(!backend.begin_load(Time(2)), "nothing is in flight");
        backend.expect(InFlight::own(
            None,
            ForBackend::Clearing,
            ReplyShape::Status,
        ));
        assert!(backend.begin_load(Time(3)) && !backend.begin_load(Time(4)));
        assert_eq!(backend.busy_since(), Time(3));
        let wanting = &mut Vec::new();
        assert!(backend.stall(wanting) && !backend.stall(wanting) && !backend.end_load(wanting));
    }
}
