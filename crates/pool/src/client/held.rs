//! Bytes that are kept for a client: of its unfinished command, and of everything that is its own.
//!
//! They are added up here, and counted against limits in [`crate::limits::unfinished`] and
//! [`crate::limits::memory_share`].

use crate::client::{Client, ClientState};
use reactor::Time;

impl<S> Client<S> {
    /// Bytes of memory that what it has sent and is not handled takes.
    pub(crate) fn held(&self) -> usize {
        let input = self.input.bytes().map_or(0, |input| input.capacity());
        input + self.transport.compression().map_or(0, |c| c.held())
    }

    /// Bytes that are kept for this client and no other.
    pub(crate) fn kept_bytes(&self) -> usize {
        let output = self.output.as_ref().map_or(0, |output| output.counted());
        let prepared = self.session.prepared.as_ref().map_or(0, |p| p.own_bytes());
        let warnings = (self.session.last.kept()).map_or(0, |kept| kept.reply.capacity());
        self.held()
            + self.transport.tls_bytes()
            + output
            + prepared
            + warnings
            + self.session.state.user_variables().bytes()
    }

    /// Words of the report about its reply.
    pub(crate) fn reading(&self, now: Time) -> String {
        let Some(output) = &self.output else {
            return String::new();
        };
        let seconds = now.since(self.since).as_secs();
        let spooled = self.spooled().unwrap_or(0);
        let unsent = output.bytes.len() - output.sent + spooled;
        let off = match (self.spooled(), self.state()) {
            (None, _) => "",
            (Some(_), ClientState::Idle | ClientState::Leaving) => ", off its backend",
            (Some(_), _) => ", being taken off its backend",
        };
        format!(", has taken nothing for {seconds} s of {unsent} bytes{off}")
    }
}
