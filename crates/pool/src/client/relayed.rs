//! Replies to a client: the form in which one is expected, what is put right in it on its way, and
//! the number of a packet that answers nothing.
//!
//! Replies are relayed by [`crate::pair::passing`].

use crate::backend::Backend;
use crate::backend::relay::Adjustments;
use crate::client::{Client, ClientSession, ClientState};
use crate::pair::prepared;
use wire::capabilities::LOCAL_FILES;
use wire::checked::CheckedReply;
use wire::command::Command;
use wire::packet::{HEADER_LEN, PAYLOAD_MAX};

/// Commands that are shorter are one packet, with what the pool may put in front of their text.
const ONE_PACKET_MAX: usize = PAYLOAD_MAX / 2;

impl<S> Client<S> {
    /// Follows the reply to its statement, which goes out to this backend as this message.
    pub(crate) fn reply_to(&self, message: &[u8], backend: &Backend<S>) -> CheckedReply {
        let mut reply = CheckedReply::new(self.session.statement.shape);
        let command = message.get(HEADER_LEN).copied();
        if let Some(command) = command.and_then(Command::from_byte) {
            reply = reply.to_command(command);
            if command == Command::StmtFetch
                && let Some((id, columns)) = backend.session.cursor()
                && (self.session.prepared.under_way()).is_some_and(|fetch| fetch.id == *id)
            {
                reply = reply.of_cursor(columns);
            }
        }
        if message.len() < ONE_PACKET_MAX {
            reply = reply.numbered();
        }
        if self.capabilities & LOCAL_FILES == 0 {
            reply = reply.without_files();
        }
        reply
    }

    /// Resets the sequence number before an unsolicited packet: a client that has asked nothing
    /// gets packet 0, as from MySQL; drivers take another number for a broken stream.
    pub(crate) fn begin_unasked(&mut self) {
        if self.state() == ClientState::Idle {
            self.identity.seq = 0;
        }
    }
}

impl ClientSession {
    /// Parts of the reply to its command that it is told otherwise than the server says them.
    pub(crate) fn adjustments(&self) -> Adjustments {
        let mut adjustments = Adjustments::default();
        if self.forgets_changes() {
            adjustments.changed = true;
        } else if self.statement.counts_before {
            adjustments.warnings = Some(self.last.conditions);
        } else if let Some(prepared) = self.prepared.as_ref() {
            return prepared::adjustments(prepared);
        }
        adjustments
    }
}
