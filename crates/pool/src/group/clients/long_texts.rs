//! Commands with long texts.
//!
//! Their texts are given to readers (`text_reading.rs`), and the commands handled with what those
//! found. Their bytes are not copied for the backend that they are sent to (`outgoing.rs`). Where
//! too many texts wait for a reader, the group reads the text itself.
//!
//! Not bounded: what is looked up in a long text again, because it names user variables, its client
//! is pinned, or the server has triggers or views with code.

use crate::client::buffers::received::Received;
use crate::group::Group;
use crate::group::tokens::ClientId;
use crate::scheduler::client_turn::ClientTurn;
use reactor::Net;

/// Memory of a client's input that is kept when its commands are used up.
const KEPT_MAX: usize = crate::client::input::SCRATCH_LEN;

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
