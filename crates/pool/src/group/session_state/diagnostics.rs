//! Questions about what a statement has left, answered from what was kept.
//!
//! How such a question is answered elsewhere says [`crate::pair::previous`]; rows that were kept go
//! out from here. Invariant: who has been shown its conditions has read its counts.

use crate::group::Group;
use crate::pair::previous::Before;
use reactor::{Key, Net};
use session::last_statement::COUNTS;

impl<N: Net> Group<N> {
    /// What is kept of a client's statement before.
    pub(crate) fn before(&self, key: Key) -> Option<Before<'_, N::Sock>> {
        Some(Before {
            view: self.client_view(key)?,
            gtid: self.gtids.get(&key),
            server: &self.shared.server,
        })
    }

    /// Answers a question for conditions by rows that were kept.
    pub(crate) fn show(&mut self, key: Key, rows: &[u8]) {
        if let Some(client) = self.clients.get_mut(key) {
            client.last.disown(COUNTS);
        }
        self.replay(key, rows);
    }
}
