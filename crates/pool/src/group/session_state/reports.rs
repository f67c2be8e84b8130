//! A group's part in reports for which an EOF packet has no room ([`crate::pair::reports`]).
//!
//! It has the server report when nothing else is in flight, and a lease would end; what was told is
//! the pair's.

use crate::backend::Reports;
use crate::group::Group;
use reactor::{Key, Net};
use session::reply_summary::ReplySummary;

impl<N: Net> Group<N> {
    /// The server was asked for a report that it owes, and has answered.
    pub(crate) fn reported(
        &mut self,
        key: Key,
        owner: Option<Key>,
        last: bool,
        summary: &ReplySummary,
    ) {
        if summary.error.is_some() {
            return self.lose(
                key,
                "the server did not report what a statement had changed",
            );
        }
        let Some(owner) = owner.filter(|owner| self.clients.get(*owner).is_some()) else {
            return self.retire(key);
        };
        self.take_changes(key, owner, summary);
        if last {
            if let Some(backend) = self.backends.get_mut(key) {
                backend.reports = Reports::Complete;
            }
            self.settle(key);
        }
    }

    /// What the answer to a question of the pool's own reports belongs to the client's last
    /// statement.
    pub(crate) fn take_changes(&mut self, key: Key, owner: Key, summary: &ReplySummary) {
        let pair = self.pair(owner, key);
        if let Some(Err(why)) = pair.map(|mut pair| pair.take_changes(summary)) {
            self.lose(key, why);
        }
    }
}
