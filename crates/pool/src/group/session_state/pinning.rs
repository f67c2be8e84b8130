//! When a client is pinned: by its text, or by what its statement turns out to have done.
//!
//! What a text is pinned for is planned by [`crate::pinning`]. Invariant: a client that may leave
//! unseen state behind is pinned before its server sees the statement.

use crate::code_seen::{CodeSeen, SchemaText};
use crate::group::Group;
use crate::pinning::Planning;
use reactor::{Key, Net};

impl<N: Net> Group<N> {
    /// Plans what a client's statement takes and gives back.
    pub(crate) fn plan_pins(
        &mut self,
        key: Key,
        text: SchemaText<'_>,
        statement: &mut session::statement::Statement,
    ) {
        if let Some(client) = self.clients.get_mut(key) {
            let mut planning = Planning {
                client,
                code: CodeSeen {
                    catalogue: &self.shared.code_catalogue,
                    sql_mode: &self.shared.server.sql_mode,
                    seen: &mut self.code_seen,
                },
                shared: &self.shared,
                policy: self.settings.stored_code,
            };
            planning.plan(text, statement);
        }
    }
}
