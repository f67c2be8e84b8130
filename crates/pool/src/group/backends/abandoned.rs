//! Replies that nobody waits for: their client has left, or was answered already.
//!
//! A statement whose client has left runs on, as it does on a connection of the client's own: a
//! server notices the end of a connection when it writes to it. What it answers is counted and
//! thrown away. A direct server would fail at the next write of such a reply, so the pool does not
//! read all of a long one either: past [`UNREAD_BYTES_MAX`] or [`UNREAD_MAX`], whichever comes
//! first, the backend is closed and a KILL ends the statement on the server.
//!
//! A statement that has not begun to send rows is left alone: an UPDATE is carried out whether or
//! not its client is there to hear of it.
//!
//! Replies to the pool's own questions are kept, up to [`crate::group::backends::COLLECTED_MAX`].
//!
//! Invariant: no length that a server alone decides is kept in memory.

use crate::backend::Backend;
use crate::backend::kill_jobs::Job;
use crate::group::Group;
use reactor::{Key, Net, Time};
use std::time::Duration;

/// Bytes of a reply that are read and thrown away after its client has left.
const UNREAD_BYTES_MAX: usize = 32 * 1024;
/// Longest time for which the rest of such a reply is read.
const UNREAD_MAX: Duration = Duration::from_secs(5);
impl<S> Backend<S> {
    /// Whether enough of a reply that nobody waits for has been read.
    fn is_read_in_vain(&self, now: Time) -> bool {
        let left = self.flight().front().and_then(|command| command.left);
        let sends_rows = self.summary.columns.is_some();
        left.is_some_and(|left| {
            sends_rows
                && (self.summary.len.saturating_sub(left.len) > UNREAD_BYTES_MAX
                    || now.since(left.at) > UNREAD_MAX)
        })
    }
}

impl<N: Net> Group<N> {
    /// Ends a reply that nobody waits for once enough of it has been thrown away.
    pub(crate) fn end_if_abandoned(&mut self, key: Key) {
        let now = self.net.now();
        let Some(backend) = self.backends.get(key) else {
            return;
        };
        if !backend.is_read_in_vain(now) {
            return;
        }
        self.counts.abandoned += 1;
        self.abandon(key, None);
    }

    /// Closes a backend whose statement is of no more use, and has a KILL end that on the server.
    /// The statements of others than `owner` that ride behind it run again.
    pub(crate) fn abandon(&mut self, key: Key, owner: Option<Key>) {
        let Some(backend) = self.backends.get(key) else {
            return;
        };
        let (pool, thread, at) = (backend.pool, backend.thread, backend.at.clone());
        self.part_riders(key, owner);
        self.retire(key);
        let job = Job {
            asker: None,
            at,
            pool,
            thread,
            aim: None,
        };
        self.kill_connection.push_own(job);
    }

    /// The same for all backends: a reply may come so slowly that its time is over first.
    pub(crate) fn end_abandoned(&mut self) {
        for key in self.backends.keys() {
            self.end_if_abandoned(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::backend::{Endpoint, InFlight, Left, Purpose};
    use std::rc::Rc;
    use wire::command::ReplyShape;

    /// A backend that has sent so many bytes of rows when its client left, and so many since.
    fn backend(before: usize, since: usize) -> Backend<()> {
        let at = std::sync::Arc::new(reactor::Address::Unix("/s".into()));
        let mut backend = Backend::dialling(Endpoint::new((), at, 0), Time(0), Rc::default(), None);
        let command = InFlight::own(None, Purpose::Statement, ReplyShape::Results);
        backend.expect(command);
        backend.summary.columns = Some(1);
        backend.summary.len = before;
        backend.note_left(Time(7));
        backend.summary.len += since;
        backend
    }

    #[test]
    fn the_rest_of_a_short_reply_is_read() {
        let at = Time(7) + UNREAD_MAX;
        assert!(!backend(1 << 30, UNREAD_BYTES_MAX).is_read_in_vain(at));
        assert!(backend(1 << 30, UNREAD_BYTES_MAX + 1).is_read_in_vain(Time(7)));
        let later = at + Duration::from_nanos(1);
        assert!(backend(0, 0).is_read_in_vain(later));
    }

    #[test]
    fn what_has_sent_no_rows_is_carried_out() {
        let mut backend = backend(0, UNREAD_BYTES_MAX + 1);
        backend.summary.columns = None;
        let later = Time(8) + UNREAD_MAX;
        assert!(!backend.is_read_in_vain(later));
    }

    #[test]
    fn a_reply_counts_from_when_its_own_client_left() {
        let mut backend = backend(100, 50);
        let behind = InFlight::own(None, Purpose::Statement, ReplyShape::Results);
        backend.expect(behind);
        backend.note_left(Time(9));
        let left = |place: usize| backend.flight()[place].left;
        assert_eq!(
            left(0),
            Some(Left {
                at: Time(7),
                len: 100
            })
        );
        assert_eq!(
            left(1),
            Some(Left {
                at: Time(9),
                len: 0
            })
        );
    }
}
