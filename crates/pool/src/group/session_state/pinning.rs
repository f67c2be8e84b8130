//! When a client is pinned: by its text, or by what its statement turns out to have done.
//!
//! What a text is pinned for is planned by [`crate::pinning`]. Invariant: a client that may leave
//! unseen state behind is pinned before its server sees the statement.

use crate::code_seen::CodeSeen;
use crate::group::Group;
use crate::pinning::Planning;
use reactor::{Key, Net};

impl<N: Net> Group<N> {
    /// A client's text that is about to be sent, to be judged.
    pub(crate) fn planning(&mut self, key: Key) -> Option<Planning<'_, N::Sock>> {
        Some(Planning {
            client: self.clients.get_mut(key)?,
            code: CodeSeen {
                catalogue: &self.shared.code_catalogue,
                sql_mode: &self.shared.server.sql_mode,
                seen: &mut self.code_seen,
            },
            shared: &self.shared,
            policy: self.settings.stored_code,
        })
    }
}
