//! Triggers, views and columns: stored code that a statement runs without naming it.
//!
//! The problem: what such code does to its session may be reported by no tracker (a named lock, a
//! user variable set by INTO, on MariaDB whatever it did before it failed;
//! tests/pages/trackers.md), and would stay on a backend that others share. The mechanism: a
//! catalogue of all that has code, read from the server at start, every `stored_code_refresh_s` and
//! after each statement through the pool that defines code ([`look`]), scanned by `sql`
//! ([`sql::classify::stored`]) and brought down to the names of tables and views
//! ([`session::stored_code`]). A statement whose text names one of them counts as one that calls
//! stored code: the policy `stored_code` decides.
//!
//! A definition counts from the moment that its statement is sent, by its own text, and until a
//! look that began after its reply has told what has become of it. A statement that was judged
//! before such a change and is sent after it is judged again.
//!
//! Where no such code exists, which is the rule, a statement costs the load of one number. Not
//! covered: code that is defined past the pool, or inside of other code, until the next look, which
//! follows within about a second ([`crate::server::watch`]). What judges
//! a text is in [`crate::statements::stored_code`].

mod look;

use crate::group::Group;
use crate::group::tokens::ClientId;
use crate::statements::stored_code::SchemaText;
pub(crate) use look::look_once;
use reactor::Net;
use session::stored_code::{Besides, Object};

impl<N: Net> Group<N> {
    /// True if a text, or code that it runs, may ask what the statement before left, and that is
    /// lost. If the backend of that statement is free, the client goes there.
    pub(crate) fn asks_for_lost(&mut self, key: ClientId, text: SchemaText<'_>) -> bool {
        let asked = self.code().asked(text);
        if asked.is_empty() {
            return false;
        }
        if let Some(backend) = self.matching().last_backend_to_ask(key) {
            self.bind(key, backend);
        }
        let client = self.clients.get(key);
        client.is_some_and(|client| client.lost_to_code().intersects(asked))
    }
}
