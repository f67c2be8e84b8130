//! Reports of a backend: changes of its session that the server still owes
//! ([`crate::pair::reports`]).
//!
//! Invariant: a backend that owes a report is not free.

use crate::backend::{Backend, BackendSession, InFlight, Purpose, Reports};
use crate::client::{Client, ClientSession};
use crate::group::tokens::ClientId;
use reactor::Slots;
use session::reply_summary::ReplySummary;
use session::statement::Explanation;
use wire::status::{IN_TRANS, SESSION_STATE_CHANGED};

impl<S> Backend<S> {
    /// The client that has it, of its group's.
    pub(crate) fn client_in<'a>(
        &self,
        clients: &'a Slots<Client<S>, ClientId>,
    ) -> Option<&'a Client<S>> {
        clients.get(self.client()?)
    }
}

impl BackendSession {
    /// State of its reports behind a reply. `code`: the client's statement may have changed
    /// something that no status flag tells.
    pub(crate) fn reports_after(
        &mut self,
        summary: &ReplySummary,
        mysql: bool,
        (code, explanation): (bool, Explanation),
    ) -> Reports {
        let now = self.reports;
        let explanation = now
            .due()
            .map_or(explanation, |before| before.and(explanation));
        let due = match code || matches!(now, Reports::OfCode(_)) {
            true => Reports::OfCode(explanation),
            false => Reports::Due(explanation),
        };
        match (&summary.error, summary.eof) {
            (Some(_), _) if mysql => due,
            (Some(_), _) => now,
            (None, Some(status)) => {
                let ended = status & IN_TRANS == 0;
                let owes = match mysql {
                    // What else of a query is reported shows in the status flags too, but that a
                    // transaction which was announced, or had locks, has ended.
                    true => {
                        code || ended
                            && (self.transaction.is_announced() || self.transaction.is_tracked())
                    }
                    false => status & SESSION_STATE_CHANGED != 0 && (code || ended),
                };
                // Within a transaction that was announced this query was its only one.
                if !(mysql || !owes || code) {
                    self.transaction.announcement_used();
                }
                if owes { due } else { now }
            }
            (None, None) => match summary.status {
                Some(_) if mysql || !summary.changes.is_empty() => Reports::Complete,
                _ => now,
            },
        }
    }

    /// Notes whether the server owes a report after an answered command of this client's: the EOF
    /// packets behind rows carry none.
    pub(crate) fn note_reports(
        &mut self,
        command: &InFlight,
        summary: &ReplySummary,
        client: Option<&ClientSession>,
        mysql: bool,
    ) {
        let code = command.purpose == Purpose::Statement
            && client.is_none_or(|client| client.runs_unseen());
        let explanation = client.map_or(Explanation::None, |client| client.statement.explanation);
        self.reports = self.reports_after(summary, mysql, (code, explanation));
    }

    /// True if the server owes a report that can be had now.
    pub(crate) fn owes_report(&self, mysql: bool) -> bool {
        self.reports != Reports::Complete && (mysql || !self.in_transaction())
    }
}
