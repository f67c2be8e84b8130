//! What a text may set without a report of it, and what is asked about it behind the statement.
//!
//! The problem: the trackers tell most of a session, but MariaDB nothing of `SET @@name = value`,
//! and no server says whether `SET timestamp` has stopped the clock or let it go on. The mechanism:
//! behind a statement with such a SET the server gets another that changes nothing and is reported
//! ([`sql::unscoped`]), in a transaction too, because texts that follow may be cut by another
//! `sql_mode`. Before the lease ends, the clock is read: if that is not what was reported a moment
//! ago, it goes on.
//!
//! User variables are noted here too; [`crate::pair::user_variables`] reads them back.
//!
//! Invariants: a client's next command waits until what its session stands at is known; a backend
//! about which something is still to be asked serves nobody else.

use crate::client::Client;
use crate::errors::reasons::PinReason;
use crate::group::Group;
use reactor::{Key, Net};
use session::reply_summary::ReplySummary;
use session::statement::Explanation;
use sql::classify::Reads;

/// Errors of a SET that has not begun: no such variable, none of a session, none that can be set.
const NOT_BEGUN: [u16; 3] = [1193, 1229, 1238];

impl<S> Client<S> {
    /// Whether a report that `timestamp` has changed comes of its own text.
    pub(crate) fn sets_clock(&self) -> bool {
        let touched = self.touched.as_ref();
        touched.is_some_and(|touched| touched.asks_clock())
    }
}

impl<N: Net> Group<N> {
    /// The answer to a SET that makes the server report what a statement set.
    pub(crate) fn retold(&mut self, key: Key, owner: Option<Key>, summary: &ReplySummary) {
        let Some((owner, client)) =
            owner.and_then(|owner| Some((owner, self.clients.get_mut(owner)?)))
        else {
            return self.retire(key);
        };
        if summary.warned || summary.error.is_some() {
            client.last.disown(Reads::DIAGNOSTICS);
        }
        let mut failed = false;
        if let Some(touched) = &mut client.touched {
            touched.awaited = touched.awaited.saturating_sub(1);
            failed = touched.failed;
            touched.failed &= touched.awaited > 0;
        }
        match &summary.error {
            None => self.note_changes(key, owner, summary, Explanation::Lasting),
            Some((code, _)) if failed || NOT_BEGUN.contains(code) => {}
            Some(_) => self.pin(owner, PinReason::UnexplainedChange),
        }
        self.settle(key);
    }
}
