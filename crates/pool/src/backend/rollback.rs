//! Rollback of what a client that has left did not commit; its backend goes to others.
//!
//! The problem: a server rolls back what is open when a connection ends, so that closing the
//! backend would do. But drivers that switch `autocommit` off leave a transaction behind each
//! script that reads and closes (Python's DB-API demands it), and the server would have a login for
//! each. The mechanism: where a transaction is all that keeps a backend from others, it is sent
//! [`ROLLBACK`], and is free once that has gone well. In every other case (a pin, a statement that
//! runs, changes of the session that are not known) the backend is closed, and the server rolls
//! back.
//!
//! Invariants: nobody gets the backend before the server has said that no transaction is open; an
//! answer is waited for as for whatever the pool itself asks ([`crate::backend::overdue`]), and
//! then the connection ends.

use crate::backend::{Backend, BackendSession, ForBackend, InFlight, Reports};
use crate::group::tokens::ClientId;
use reactor::Time;
use session::reply_summary::ReplySummary;
use wire::attributes::put_query;
use wire::command::ReplyShape;
use wire::track::{Bound, Change, changes};

/// Whatever `completion_type` is, the connection stays and no other transaction begins.
pub(crate) const ROLLBACK: &[u8] = b"ROLLBACK AND NO CHAIN NO RELEASE";

impl<S> Backend<S> {
    /// Command that it is sent behind its client, which has left without a pin; `None` where more
    /// than its transaction keeps it from others.
    pub(crate) fn roll_back(&mut self, client: ClientId, now: Time) -> Option<Vec<u8>> {
        let is_all = self.session.in_transaction()
            && self.flight.is_empty()
            && self.session.reports == Reports::Complete
            && self.reuse.is_for_others();
        if !is_all {
            return None;
        }
        self.binding.forget(client);
        self.flight.expect(InFlight {
            sent: now,
            ..InFlight::own(None, ForBackend::RollBack, ReplyShape::Status)
        });
        let mut out = Vec::new();
        put_query(&mut out, self.form, ROLLBACK);
        Some(out)
    }
}

impl BackendSession {
    /// Takes the reply to ROLLBACK; returns whether others may have the backend. What the end of
    /// the transaction reports besides is its client's, and nobody has followed it.
    pub(crate) fn is_rolled_back(&mut self, summary: &ReplySummary) -> bool {
        let mut is_known = summary.error.is_none() && !summary.warned;
        let transaction = &mut self.transaction;
        let read = changes(&summary.changes, |change| {
            // MySQL numbers each statement.
            let is_no_state = matches!(
                change,
                Change::Gtids(_)
                    | Change::Variable {
                        name: b"statement_id",
                        ..
                    }
            );
            is_known &= transaction.take(&change) || is_no_state;
        });
        let is_free =
            is_known && read.is_ok() && self.reports == Reports::Complete && !self.in_transaction();
        if is_free {
            // Its next client's own is set, and that has been told of no transaction.
            self.insert_id = None;
            self.bound = Bound::Outside;
        }
        is_free
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::BackendState;
    use crate::backend::Purpose;
    use crate::backend::replies;
    use crate::client::closing;
    use crate::errors::reasons::PinReason;
    use crate::group::Group;
    use crate::group::scripted::Scripted;
    use crate::group::tests::{NOW, bound, group};
    use crate::group::tokens::BackendId;
    use wire::status::{AUTOCOMMIT, IN_TRANS};

    /// A client's backend within a transaction, behind the OK of a statement.
    fn within() -> (Group<Scripted>, ClientId, BackendId) {
        let mut group = group();
        let (key, backend_id) = bound(&mut group);
        let backend = group.parts.backends.get_mut(backend_id).unwrap();
        (backend.session.transaction).note_status(AUTOCOMMIT | IN_TRANS);
        (group, key, backend_id)
    }

    /// Answers with an OK of these flags and these reports.
    fn ok(group: &mut Group<Scripted>, backend_id: BackendId, flags: u16, reports: &[u8]) {
        let backend = group.parts.backends.get_mut(backend_id).unwrap();
        *backend.flight.summary_mut() = ReplySummary {
            status: Some(flags),
            changes: reports.to_vec(),
            ..ReplySummary::default()
        };
        replies::finish(&mut group.parts, backend_id);
    }

    fn asked(group: &Group<Scripted>, backend: BackendId) -> Option<Purpose> {
        let command = *group.parts.backends.get(backend)?.flight.front()?;
        Some(command.purpose)
    }

    #[test]
    fn a_backend_is_free_once_its_clients_transaction_is_rolled_back() {
        let (mut group, key, backend_id) = within();
        closing::close(&mut group.parts, key);
        assert_eq!(asked(&group, backend_id), Some(ForBackend::RollBack.into()));
        let backend = group.parts.backends.get(backend_id).unwrap();
        assert_eq!(
            backend.state(),
            BackendState::CheckedOut,
            "not before the answer"
        );
        ok(&mut group, backend_id, AUTOCOMMIT, &[]);
        let backend = group.parts.backends.get(backend_id).unwrap();
        assert_eq!(backend.state(), BackendState::Idle);
        assert_eq!(group.parts.observed.counts.rolled_back, 1);
    }

    #[test]
    fn a_report_of_its_end_is_no_change() {
        let (mut group, key, backend_id) = within();
        let backend = group.parts.backends.get_mut(backend_id).unwrap();
        backend.session.transaction.note_state(b"TW______");
        backend.session.bound = Bound::Inside;
        closing::close(&mut group.parts, key);
        let reports = b"\x05\x09\x08________\x00\x10\x0cstatement_id\x0277";
        ok(&mut group, backend_id, AUTOCOMMIT, reports);
        let backend = group.parts.backends.get(backend_id).unwrap();
        assert_eq!(
            (backend.state(), backend.session.bound),
            (BackendState::Idle, Bound::Outside)
        );
    }

    #[test]
    fn what_is_not_rolled_back_for_certain_is_closed() {
        // It is still open; a variable has changed by what nobody has followed.
        for (flags, reports) in [
            (AUTOCOMMIT | IN_TRANS, &b""[..]),
            (AUTOCOMMIT, b"\x00\x04\x01a\x01b"),
            (AUTOCOMMIT, b"\x00\x09"),
        ] {
            let (mut group, key, backend_id) = within();
            closing::close(&mut group.parts, key);
            ok(&mut group, backend_id, flags, reports);
            assert!(
                group.parts.backends.get(backend_id).is_none(),
                "{flags} {reports:?}"
            );
        }
        let (mut group, key, backend_id) = within();
        closing::close(&mut group.parts, key);
        let backend = group.parts.backends.get_mut(backend_id).unwrap();
        backend.flight.summary_mut().error = Some((1399, "XAER_RMFAIL".into()));
        replies::finish(&mut group.parts, backend_id);
        assert!(group.parts.backends.get(backend_id).is_none(), "an error");
    }

    #[test]
    fn where_more_than_a_transaction_is_left_the_backend_is_closed() {
        let keeps: [fn(&mut Group<Scripted>, ClientId, BackendId); 4] = [
            |group, key, _| {
                let client = group.parts.clients.get_mut(key).unwrap();
                (client.session.pins).add(PinReason::PreparedSchema, None, NOW.0);
            },
            |group, key, backend_id| {
                let backend = group.parts.backends.get_mut(backend_id).unwrap();
                let shape = ReplyShape::Results;
                (backend.flight).expect(InFlight::own(Some(key), Purpose::Statement, shape));
            },
            |group, _, backend_id| {
                let backend = group.parts.backends.get_mut(backend_id).unwrap();
                backend.reuse.freeze();
            },
            |group, _, backend_id| {
                let backend = group.parts.backends.get_mut(backend_id).unwrap();
                backend.reuse.end_with_client();
            },
        ];
        for keeps in keeps {
            let (mut group, key, backend_id) = within();
            keeps(&mut group, key, backend_id);
            closing::close(&mut group.parts, key);
            assert!(group.parts.backends.get(backend_id).is_none());
        }
    }
}
