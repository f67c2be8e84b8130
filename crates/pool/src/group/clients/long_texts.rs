//! Commands with long texts.
//!
//! Their texts are given to readers (`text_reading.rs`), and the commands handled with what those
//! found. Their bytes are not copied for the backend that they are sent to (`outgoing.rs`). Where
//! too many texts wait for a reader, the group reads the text itself.
//!
//! Not bounded: what is looked up in a long text again, because it names user variables, its client
//! is pinned, or the server has triggers or views with code.

use crate::buffers::received::Received;
use crate::buffers::text_reading::{TextJob, TextRead};
use crate::client::{Client, ClientState};
use crate::group::Group;
use crate::group::shared::Shared;
use crate::group::tokens::ClientId;
use crate::scheduler::client_turn::ClientTurn;
use reactor::{Net, Time};
use wire::attributes::Form;
use wire::command::Command;
use wire::packet::{Frame, HEADER_LEN, frame, payload_len};

/// Memory of a client's input that is kept when its commands are used up.
const KEPT_MAX: usize = crate::client::input::SCRATCH_LEN;

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
        let max = shared.text_here_max;
        // Who has a place in a lane, and perhaps a backend by now, would lose it meanwhile.
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
        let mode = (shared.server).lex_mode(&self.session, self.capabilities);
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
        let taken = shared.texts.submit(job, shared.texts_max);
        if !taken {
            input.take_back();
        }
        taken
    }

    /// A reader has read the text of its command; `false` where that is not waited for any more.
    pub(crate) fn takes_from_reader(&mut self, read: Box<TextRead>, now: Time) -> bool {
        let taken = (self.input.as_mut()).is_some_and(|input| input.take(read));
        if taken {
            // Its silence was not its own.
            self.heard_from(now);
        }
        taken
    }
}

impl<N: Net> Group<N> {
    /// Handles the whole messages at the front of a client's input, and drops those that are used.
    pub(crate) fn consume_input(
        &mut self,
        key: ClientId,
        input: &mut Received,
        turn: &mut ClientTurn,
    ) {
        if input.len() <= self.shared.text_here_max {
            let used = self.consume(key, input, turn);
            return input.drop_front(used, KEPT_MAX);
        }
        let current_input = input.take_current();
        let bytes = current_input.bytes.clone();
        // What is done for this client may lead to serving another.
        let outer = self.current_input.0.replace(current_input);
        let used = self.consume(key, &bytes, turn);
        drop(bytes);
        if let Some(current_input) = std::mem::replace(&mut self.current_input.0, outer) {
            input.put_back(current_input, used, KEPT_MAX);
        }
    }
}
