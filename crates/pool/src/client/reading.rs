//! Long commands of a client: a reader reads their texts, and few are at the server at once.
//!
//! A group's part in them stands in [`crate::client::pump`] and
//! [`crate::limits::long_commands`].

use crate::backend::Backend;
use crate::client::buffers::outgoing::FED_MAX;
use crate::client::buffers::received::Received;
use crate::client::buffers::text_reading::{TextJob, TextRead};
use crate::client::{Client, ClientState};
use crate::group::shared::Shared;
use crate::group::tokens::ClientId;
use crate::limits::long_commands::is_long;
use reactor::Time;
use wire::attributes::Form;
use wire::command::Command;
use wire::packet::{Frame, HEADER_LEN, frame, payload_len};

impl<S> Client<S> {
    /// True if a reader has the text at the front of what a client has sent, or gets it now. The
    /// client is known by this group's number and its key; `input` is what it has sent.
    pub(crate) fn leaves_to_reader(
        &self,
        input: &mut Received,
        (group, key): (usize, ClientId),
        shared: &Shared,
    ) -> bool {
        if input.is_being_read() {
            return true;
        }
        let max = shared.lengths.text_here;
        // Who has a place in a queue, and perhaps a backend by now, would lose it meanwhile.
        if input.len() <= max || self.place.is_held() || self.state() != ClientState::Idle {
            return false;
        }
        let Frame::Whole { total, .. } = frame(input) else {
            return false;
        };
        let byte = input.get(HEADER_LEN).copied();
        let form = match byte.and_then(Command::from_byte) {
            Some(Command::Query) => Some(Form::of(self.capabilities)),
            Some(Command::StmtPrepare) => None,
            _ => return false,
        };
        let mode = (shared.server).lex_mode(&self.session.state, self.capabilities);
        let read = input.text().is_some_and(|read| read.mode() == mode);
        let overlong = payload_len(total) >= shared.server.max_allowed_packet;
        if total <= max || overlong || read {
            return false;
        }
        let job = TextJob {
            group,
            client: key,
            bytes: input.give(),
            message_len: total,
            form,
            mode,
        };
        let taken = shared.jobs.texts.submit(job, shared.lengths.texts);
        if !taken {
            input.take_back();
        }
        taken
    }

    /// Takes the text of its command from a reader; `false` where that is not waited for any more.
    pub(crate) fn takes_from_reader(&mut self, read: Box<TextRead>, now: Time) -> bool {
        let taken = self.input.take_read(read);
        if taken {
            // Its silence was not its own.
            self.heard_from(now);
        }
        taken
    }

    /// Restarts its limits after it has sent something.
    pub(crate) fn heard_from(&mut self, now: Time) {
        if matches!(self.state(), ClientState::Idle | ClientState::Feeding) {
            self.count_from(now);
        }
    }

    /// True if it has begun a command and not ended it.
    pub(crate) fn is_amid_command(&self) -> bool {
        self.input.bytes().is_some()
            || (self.transport.compression()).is_some_and(|c| c.is_amid_frame())
    }

    /// True if the server is to take what it has sent of its local file before more is read.
    pub(crate) fn has_fed_enough(&self, backend: Option<&Backend<S>>) -> bool {
        self.state() == ClientState::Feeding
            && backend.is_some_and(|backend| backend.unsent() > FED_MAX)
    }

    /// True if its next command would have to get a backend.
    pub(crate) fn needs_backend(&self) -> bool {
        let is_idle = self.state() == ClientState::Idle && self.backend().is_none();
        is_idle && !self.place.is_held()
    }

    /// True if it waits for a backend with a long command, or for its backend's session.
    pub(crate) fn queues_long(&self) -> bool {
        let waits = matches!(self.state(), ClientState::Waiting | ClientState::Restoring);
        waits && self.input.bytes().is_some_and(is_long)
    }
}
