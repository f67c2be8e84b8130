//! Memory that is kept for clients: one sum, and who pays when it is too much.
//!
//! The problem: each buffer has its bound, and a hundred thousand clients at their bounds are more
//! than any machine has. The mechanism: whatever is kept for clients is counted
//! ([`crate::limits::retained`]), and published once in a turn ([`ClientMemory`]). While the sum of
//! all groups is above its part of `memory_bytes_max`, unfinished commands are not read any
//! further, and the client that holds most is closed, if that is more than its share: all of it by
//! the number of clients. Some client is over that as long as the sum is, but for what all have in
//! common.
//!
//! A client between statements, or whose statement waits, gets error 1153. One in the middle of a
//! reply cannot be told; the log says why it was closed.
//!
//! Not counted: the first 4 KiB of each command, sockets, and what belongs to no client, as known
//! digests and stored code. The resident memory of the process bounds newcomers besides: it is
//! looked at off the statement path ([`Shared::look_at_memory`]), and while memory is short nobody
//! is let in; those inside go on.
//!
//! [`ClientMemory`]: crate::limits::memory::ClientMemory

use crate::client::ClientState;
use crate::errors::reasons::{InputLimit, Refusal};
use crate::group::Group;
use crate::group::shared::Shared;
use crate::group::tokens::ClientId;
use crate::limits::memory::{memory_of, shortage};
use crate::observe::audit::end;
use crate::observe::log::{Event, note_of};
use reactor::Net;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;

impl Shared {
    /// Looks whether there is memory for more clients. Reads some files, so it is called now and
    /// then by one group. What cannot be read limits nothing.
    pub(crate) fn look_at_memory(&self) {
        let used = measure::process::own().map_or(0, |sample| sample.rss_bytes);
        let limit = memory_of(self.settings().memory_bytes_max);
        let why = if used > limit {
            Some(format!("{used} bytes are resident, the limit is {limit}"))
        } else {
            shortage()
        };
        self.is_memory_full.store(why.is_some(), Relaxed);
        *self
            .memory_full
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = why;
    }

    /// The error for one that is not let in for want of memory.
    pub(crate) fn memory_refusal(&self) -> Refusal {
        let words = self
            .memory_full
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        Refusal::Memory {
            detail: words.clone().unwrap_or_default(),
        }
    }
}

impl<N: Net> Group<N> {
    /// All groups keep too much: closes who holds most of all, if that is more than a share.
    pub(crate) fn close_who_holds_most(&mut self) {
        // What nobody has any more goes first.
        self.definitions.sweep();
        self.sessions.sweep();
        let all = self.clients.iter();
        let Some((held, key)) = all.map(|(key, client)| (client.kept_bytes(), key)).max() else {
            return;
        };
        let share = self.shared.memory.share(self.shared.clients.load(Relaxed));
        if self.shared.memory.is_largest(self.index, held) && held > share {
            self.end_for_memory(key, held, share);
            self.shared.memory.is_largest(self.index, 0);
        }
    }

    /// Closes a client for what it holds.
    fn end_for_memory(&mut self, key: ClientId, held: usize, share: usize) {
        let Some(client) = self.clients.get(key) else {
            return;
        };
        let identity = self.survey().identity(key).unwrap_or_default();
        note_of(
            Event::MemoryShare,
            &identity.facts_of_end(),
            format_args!(
                "client {} closed: all memory for clients is in use (memory_bytes_max), and it \
                 holds {held} bytes of it, above its share of {share}",
                client.id()
            ),
        );
        let between = matches!(client.state(), ClientState::Idle | ClientState::Waiting);
        let hears = between && client.output.is_none();
        self.clients.note_end(key, end::MEMORY);
        if hears {
            let limit = InputLimit::Share { max: share };
            self.refuse_input(key, &Refusal::Input { len: held, limit });
        }
        self.counts.memory_closed += 1;
        // A checkout or a reply of its ends as when a client has left.
        self.clients.close_later(key);
    }
}
