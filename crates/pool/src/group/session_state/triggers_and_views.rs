//! Triggers, views and columns: stored code that a statement runs without naming it.
//!
//! The problem: what such code does to its session may be reported by no tracker (a named lock, a
//! user variable set by INTO, on MariaDB whatever it did before it failed;
//! tests/pages/trackers.md), and would stay on a backend that others share. The mechanism: a
//! catalogue of all that has code, read from the server at start, every `stored_code_refresh_s` and
//! after each statement through the pool that defines code ([`look`]), judged by `sql`
//! ([`sql::classify::stored`]) and brought down to the names of tables and views
//! ([`session::stored_code`]). A statement whose text names one of them counts as one that calls
//! //! stored code: the policy `stored_code` decides.
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

use crate::client::Client;
use crate::group::Group;
use crate::group::tokens::ClientId;
use crate::statements::stored_code::{Inside, SchemaText};
pub(crate) use look::look_once;
use reactor::Net;
use session::stored_code::{Besides, Object};
use sql::classify::Reads;

impl<N: Net> Group<N> {
    /// Decides about a text that asks first and goes on with what nobody can tell, or calls stored
    /// code and asks beside the call, or is known to ask in that code, in a view or in a trigger,
    /// what the statement before left. If the backend of that is free, the client goes there.
    pub(crate) fn asks_inside(&mut self, key: ClientId, text: SchemaText<'_>) -> Inside {
        let Some(asking) = self.code().asking(text) else {
            return Inside::Known;
        };
        if let Some(backend) = self.matching().last_backend_to_ask(key) {
            self.bind(key, backend);
        }
        let lost = (self.clients.get(key)).map_or(Reads::NONE, Client::lost_to_code);
        if lost.is_empty() {
            return Inside::Known;
        }
        match self.code().asked(asking).of(lost) {
            Reads::NONE => Inside::Known,
            asked => self.tell_inside(key, asked),
        }
    }

    /// True if a backend can be had on which this is as the statement before has left it, though
    /// that has run elsewhere: one with the same FOUND_ROWS(), and for ROW_COUNT() a command goes
    /// in front that leaves 0 or -1 (`pair/restoring.rs`), if it is one of these.
    fn tell_inside(&mut self, key: ClientId, asked: Reads) -> Inside {
        let counts = Reads::ROW_COUNT.union(Reads::FOUND_ROWS);
        let rows = asked.intersects(Reads::ROW_COUNT);
        let known = self.clients.get(key).and_then(|c| c.last.row_count.get());
        if !asked.without(counts).is_empty() || rows && !matches!(known, Some(0 | -1)) {
            return Inside::Gone;
        }
        if asked.intersects(Reads::FOUND_ROWS) {
            let alike = self.matching().found_alike(key);
            let bound = alike.is_some_and(|alike| self.bind(key, alike));
            let client = self.clients.get(key).filter(|_| bound);
            if !client.is_some_and(|client| client.last.is_native(Reads::FOUND_ROWS)) {
                return Inside::Gone;
            }
        }
        match rows {
            true => Inside::Told,
            false => Inside::Known,
        }
    }
}
