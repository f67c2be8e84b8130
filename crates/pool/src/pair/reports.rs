//! Reports for which an EOF packet has no room.
//!
//! The problem: a backend without CLIENT_DEPRECATE_EOF ends a result set with an EOF packet, and an
//! ERR packet is no longer either, so what the trackers have to report comes with a later OK, which
//! may be the answer to another client. The mechanism: [`Reports`] says whether the server may owe
//! a report. Before the backend is checked in, the pool sends a command whose OK has it, and takes
//! it as that of the client's last statement.
//!
//! What servers do (MariaDB 10.11, MySQL 9.7): MySQL adds the report to its next OK, whichever that
//! is, so COM_PING fetches it, at any time. MariaDB says by SERVER_SESSION_STATE_CHANGED in the EOF
//! packet that there is one, and adds it to the next OK that reports something of its own: START
//! TRANSACTION and COMMIT do, and change nothing outside of a transaction.
//!
//! Invariant: a backend that owes a report serves no other client.

use crate::backend::{ForSession, InFlight};
use crate::pair::trackers::{tracks_for_pool, wanted_by};
use crate::pair::{Broken, Pair, UNREADABLE};
use session::last_statement::LEFT_BY_STATEMENT;
use session::reply_summary::ReplySummary;
use wire::attributes::put_query;
use wire::capabilities::SESSION_TRACK;
use wire::command::{Command, ReplyShape, put_command};
use wire::track::{Transactions, Wanted, keep};

/// MariaDB: what makes the server report, outside of a transaction. `completion_type` may say that
/// a plain COMMIT chains or disconnects.
const REPORTING: [&str; 2] = ["START TRANSACTION", "COMMIT AND NO CHAIN NO RELEASE"];

impl Pair<'_> {
    /// The commands by which the server reports what it owes.
    pub(crate) fn ask_for_report(&mut self) -> Vec<u8> {
        self.client.last.invalidate(LEFT_BY_STATEMENT);
        self.flight.close_pipeline();
        let mut out = Vec::new();
        let owner = self.owner;
        let own = |last| InFlight::own(Some(owner), ForSession::Reports(last), ReplyShape::Status);
        if self.context.server.flavour.is_mysql() {
            put_command(&mut out, Command::Ping, b"");
            self.flight.expect(own(true));
        } else {
            for (number, sql) in REPORTING.iter().enumerate() {
                put_query(&mut out, self.ends.on.form, sql.as_bytes());
                self.flight.expect(own(number + 1 == REPORTING.len()));
            }
        }
        out
    }

    /// Takes the changes that the answer to a question of the pool's own reports: they are those of
    /// the client's last statement. Its next one may have come meanwhile, and explains nothing of
    /// this.
    pub(crate) fn take_changes(&mut self, summary: &ReplySummary) -> Result<(), Broken> {
        self.note_changes(summary, summary.due.unwrap_or_default())?;
        self.tell_report(summary)
    }

    /// A report that the pool has fetched is the client's: it is told with its next OK.
    fn tell_report(&mut self, summary: &ReplySummary) -> Result<(), Broken> {
        let (client, server) = (&mut *self.client, self.context.server);
        if self.ends.capabilities & SESSION_TRACK == 0 || summary.changes.is_empty() {
            return Ok(());
        }
        let mut wanted: Wanted = (*wanted_by(client, server)).clone();
        wanted.schema &= !self.backend.is_in_another_schema();
        if !server.flavour.is_mysql() {
            // Transactions that are reported here are the pool's own.
            wanted.transactions = Transactions::Nothing;
        }
        let mut changes = Vec::new();
        let hides = tracks_for_pool(client);
        let bound = self.backend.bound_mut();
        let kept = keep(&summary.changes, &wanted, hides, bound, &mut changes);
        if kept.is_err() || client.pending_changes.add(&changes).is_err() {
            return Err(UNREADABLE);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Backend, Reports};
    use reactor::Time;
    use session::statement::Explanation;
    use std::rc::Rc;
    use wire::status::{IN_TRANS, SESSION_STATE_CHANGED};

    fn backend(reports: Reports) -> Backend<()> {
        let mut backend = Backend::of_tests(Time(1), Rc::default());
        backend.session.reports = reports;
        backend
    }

    fn eof(status: u16) -> ReplySummary {
        ReplySummary {
            status: Some(status),
            eof: Some(status),
            ..ReplySummary::default()
        }
    }

    #[test]
    fn mysql_owes_a_report_behind_code_and_errors_until_its_next_ok() {
        let there = &mut backend(Reports::Complete).session;
        assert_eq!(
            there.reports_after(&eof(2), true, (false, Explanation::None)),
            Reports::Complete
        );
        assert_eq!(
            there.reports_after(&eof(2), true, (true, Explanation::None)),
            Reports::OfCode(Explanation::None)
        );
        there
            .transaction
            .note_characteristics(b"SET TRANSACTION READ ONLY;");
        assert_eq!(
            there.reports_after(&eof(2), true, (false, Explanation::None)),
            Reports::Due(Explanation::None)
        );
        assert_eq!(
            there.reports_after(&eof(3), true, (false, Explanation::None)),
            Reports::Complete
        );
        let failed = ReplySummary {
            error: Some((1062, String::new())),
            ..ReplySummary::default()
        };
        assert_eq!(
            there.reports_after(&failed, true, (false, Explanation::None)),
            Reports::Due(Explanation::None)
        );
        there.reports = Reports::Due(Explanation::None);
        assert_eq!(
            there.reports_after(&ReplySummary::default(), true, (false, Explanation::None)),
            Reports::Due(Explanation::None)
        );
        let ok = ReplySummary {
            status: Some(2),
            ..ReplySummary::default()
        };
        assert_eq!(
            there.reports_after(&ok, true, (false, Explanation::None)),
            Reports::Complete
        );
    }

    #[test]
    fn mariadb_says_that_it_owes_a_report() {
        let there = &mut backend(Reports::Complete).session;
        let flagged = SESSION_STATE_CHANGED | 2;
        assert_eq!(
            there.reports_after(&eof(2), false, (true, Explanation::None)),
            Reports::Complete
        );
        assert_eq!(
            there.reports_after(&eof(flagged), false, (false, Explanation::None)),
            Reports::Due(Explanation::None)
        );
        // Within a transaction each query changes its state.
        let within = flagged | IN_TRANS;
        assert_eq!(
            there.reports_after(&eof(within), false, (false, Explanation::None)),
            Reports::Complete
        );
        assert_eq!(
            there.reports_after(&eof(within), false, (true, Explanation::None)),
            Reports::OfCode(Explanation::None)
        );
        there
            .transaction
            .note_characteristics(b"SET TRANSACTION READ ONLY;");
        assert_eq!(
            there.reports_after(&eof(2), false, (false, Explanation::None)),
            Reports::Complete
        );
        assert!(there.transaction.is_announced(), "a query of no table");
        there.reports_after(&eof(flagged), false, (false, Explanation::None));
        assert!(!there.transaction.is_announced());
        there.reports = Reports::Due(Explanation::None);
        let mut ok = ReplySummary {
            status: Some(2),
            ..ReplySummary::default()
        };
        assert_eq!(
            there.reports_after(&ok, false, (false, Explanation::None)),
            Reports::Due(Explanation::None)
        );
        ok.changes = b"\x02\x011".to_vec();
        assert_eq!(
            there.reports_after(&ok, false, (false, Explanation::None)),
            Reports::Complete
        );
    }
}
