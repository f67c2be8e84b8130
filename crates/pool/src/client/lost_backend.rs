//! A client whose backend is gone: what it is told, and whether it goes on.
//!
//! A lost backend never makes a statement run twice. A client whose statement was under way gets
//! an error that says so; one whose statement had not been sent waits on; one whose session was on
//! that backend alone (a transaction, a pin) is cut off, as it would be without a pool.

use crate::client::ClientState;
use crate::errors::reasons::{PinReason, Refusal};
use crate::group::parts::Parts;
use crate::group::tasks::Task;
use crate::group::tokens::ClientId;
use crate::limits::timeouts::Limits;
use crate::observe::audit::end;
use reactor::Net;
use session::read_back::Properties;
use session::transaction::Doubt;
use sql::classify::PinCause;

/// Reason why a client is pinned whose text ends its connection (COMMIT RELEASE).
const RELEASED: PinReason = PinReason::Text(PinCause::Release);

/// Loss of a backend whose server is behind, or takes no writes: it is left.
pub(crate) const REFUSED: Loss<'_> = Loss {
    why: "the server that is read does not serve this read",
    in_transaction: false,
    doubt: Doubt::None,
    served: false,
    hides_changes: false,
    amid_packet: false,
    cause: LossCause::Ended,
};

/// Loss of a backend, as one of its clients sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loss<'a> {
    pub(crate) why: &'a str,
    /// True if a transaction was open on it.
    pub(crate) in_transaction: bool,
    /// Doubt about that transaction, behind an error.
    pub(crate) doubt: Doubt,
    /// True if it had run something of the client already.
    pub(crate) served: bool,
    /// True if changes of the client's session were still to be reported there.
    pub(crate) hides_changes: bool,
    /// True if the client has got a part of a packet.
    pub(crate) amid_packet: bool,
    pub(crate) cause: LossCause,
}

/// Cause of a loss, as far as it decides what the client is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LossCause {
    /// End of the connection, or its close by the pool.
    Ended,
    /// Reset by the server.
    Reset,
    /// Close by the pool, because the server broke the protocol.
    Breach,
}

impl Loss<'_> {
    /// The error for a client whose statement ran there.
    fn refusal(&self) -> Refusal {
        match self.cause {
            LossCause::Breach => Refusal::ServerProtocol(self.why.into()),
            LossCause::Ended | LossCause::Reset => Refusal::BackendLost(self.why.into()),
        }
    }
}

/// Unbinds a client from a lost backend: a client without state there waits again or gets an
/// error and stays; any other is closed.
pub(crate) fn backend_lost<N: Net>(parts: &mut Parts<N>, owner: ClientId, loss: Loss<'_>) {
    let Loss {
        in_transaction,
        doubt,
        served,
        hides_changes,
        amid_packet,
        cause,
        ..
    } = loss;
    let now = parts.net.now();
    parts.readers().doubt_running(owner);
    let Some((client, _)) = parts.clients.unbind(owner, &mut parts.backends) else {
        return;
    };
    let on_reader = parts.backend_pools.is_reader(client.pool as usize);
    if on_reader {
        // Nothing that sets it runs there.
        let pending = &mut client.session.last.pending;
        pending.changed = pending.changed.without(Properties::INSERT_ID);
    }
    let held = client.session.is_held();
    let is_left_there = client.session.is_left_there() || hides_changes;
    let keeps = in_transaction || held && served || is_left_there;
    // Of several servers another one goes on, and nothing but the transaction is lost.
    let survives =
        parts.shared.cluster.is_some() && client.session.survives_backend() && !hides_changes;
    // Behind an error it may have ended already, and its statement run outside of it.
    let lost_all = survives && in_transaction && doubt == Doubt::None;
    let may_have_ended = client.session.statement.may_commit();
    let limits = Limits {
        settings: &parts.settings,
        server: &parts.shared.server,
    };
    match client.state() {
        ClientState::Idle if survives => client.lose_backend(in_transaction, doubt),
        // It waits behind what is read back, or for its turn.
        ClientState::Restoring | ClientState::Waiting
            if survives && (keeps || client.state() == ClientState::Waiting) =>
        {
            client.lose_backend(in_transaction, doubt);
            client.session.pins.forget_plan();
            parts.waiters().forget(owner);
            parts.return_to_idle(owner);
        }
        ClientState::Restoring if !keeps => {
            // What it waited for before an earlier statement does not count.
            if served {
                client.place.give_up();
            }
            parts.waiters().wait_again(owner);
        }
        // Its text has made the server end the connection, as a server does: without a word.
        ClientState::Running if client.session.pins.is_pinned_for(RELEASED) => {
            parts.clients.close_for(owner, end::LOST)
        }
        ClientState::Running if !amid_packet => {
            // What was to be read back is lost as well.
            let keeps = !survives && (in_transaction || held || is_left_there);
            client.session.last.lose_backend();
            let refusal = match lost_all && !may_have_ended {
                true => Refusal::TransactionLost,
                false => loss.refusal(),
            };
            parts.answers().refuse(owner, &refusal);
            let Some(client) = parts.clients.get_mut(owner) else {
                return;
            };
            // The session went with the connection, as it would have without a pool.
            if keeps || !client.change_state(ClientState::Idle, now) {
                parts.clients.note_end(owner, end::LOST);
                return parts.clients.leave(owner, now);
            }
            parts.work.tasks.add(Task::Read(owner));
        }
        ClientState::Feeding => {
            parts.answers().refuse(owner, &loss.refusal());
            parts.clients.note_end(owner, end::LOST);
            parts.clients.leave(owner, now);
        }
        // The server has found before the sweep that the client's time is over.
        _ if limits.has_idled(client, now) => parts.answers().end_idle(owner),
        // Half a packet has been sent, or the session was on the backend alone.
        _ => {
            parts.clients.note_end(owner, end::LOST);
            match cause {
                LossCause::Reset => parts.clients.reset_later(owner, &mut parts.net),
                _ => parts.clients.close_later(owner),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{ForSession, InFlight, Purpose, Reports, losses, replies};
    use crate::client::Handled;
    use crate::cluster::Cluster;
    use crate::group::Group;
    use crate::group::scripted::{Scripted, shared};
    use crate::group::tests::{NOW, bound, group};
    use crate::group::tokens::BackendId;
    use crate::statements::{commands, endings};
    use session::reply_summary::ReplySummary;
    use session::statement::{Explanation, Statement, Untracked};
    use sql::classify::classify;
    use sql::lex::LexMode;
    use std::sync::Arc;
    use wire::command::ReplyShape;
    use wire::status::{AUTOCOMMIT, IN_TRANS};

    type Within = (Group<Scripted>, ClientId, BackendId);

    fn runs((group, key, backend_id): &mut Within, sql: &str) {
        let client = group.parts.clients.get_mut(*key).unwrap();
        client.session.statement = Statement {
            untracked: Untracked::by(&classify(sql.as_bytes(), LexMode::default())),
            ..Statement::plain(ReplyShape::Results)
        };
        assert!(client.change_state(ClientState::Running, NOW));
        let command = InFlight::own(Some(*key), Purpose::Statement, ReplyShape::Results);
        group
            .parts
            .backends
            .get_mut(*backend_id)
            .unwrap()
            .flight
            .expect(command);
    }

    fn answer((group, _, backend_id): &mut Within, error: Option<u16>, status: Option<u16>) {
        let reply = ReplySummary {
            error: error.map(|code| (code, String::new())),
            status,
            ..ReplySummary::default()
        };
        let parts = &mut group.parts;
        let backend = parts.backends.get_mut(*backend_id).unwrap();
        *backend.flight.summary_mut() = reply;
        replies::finish(parts, *backend_id);
        endings::settle(parts, *backend_id);
    }

    /// A client of a cluster with a backend.
    fn of_cluster() -> Within {
        let mut group = group();
        let mut shared = shared("");
        shared.cluster = Some(Cluster::of_tests(""));
        group.parts.shared = Arc::new(shared);
        let (key, backend_id) = bound(&mut group);
        (group, key, backend_id)
    }

    /// One whose statement has failed within a transaction; its conditions are being read back.
    fn behind_error(sql: &str, code: u16) -> Within {
        let mut within = of_cluster();
        runs(&mut within, "INSERT INTO t VALUES (1)");
        answer(&mut within, None, Some(AUTOCOMMIT | IN_TRANS));
        runs(&mut within, sql);
        answer(&mut within, Some(code), None);
        let backend = within.0.parts.backends.get(within.2).unwrap();
        assert_eq!(
            backend.flight.front().unwrap().purpose,
            ForSession::Warnings.into()
        );
        within
    }

    /// Refusal that the next statement gets once the backend is lost.
    fn told((mut group, key, backend_id): Within) -> Option<Refusal> {
        losses::lose(&mut group.parts, backend_id, "it is gone");
        group
            .parts
            .clients
            .get_mut(key)
            .unwrap()
            .ended
            .take_lost_transaction()
    }

    fn is_in_doubt(refusal: Option<Refusal>) -> bool {
        match refusal {
            Some(Refusal::BackendLost(_)) => true,
            Some(Refusal::TransactionLost) => false,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_transaction_that_a_failed_statement_may_have_committed_is_not_said_to_have_no_effect() {
        for (sql, code, in_doubt) in [
            ("CREATE TABLE t (a INT)", 1050, true),
            ("ALTER TABLE t ADD a INT", 1317, true),
            ("LOCK TABLES t READ", 1146, true),
            ("GRANT SELECT ON t TO a", 1410, true),
            ("COMMIT", 1180, true),
            ("SET autocommit = 1", 1180, true),
            (
                "INSERT INTO t VALUES (2); CREATE TABLE t (a INT)",
                1050,
                true,
            ),
            ("EXECUTE s", 1050, true),
            ("INSERT INTO t VALUES (1)", 1062, false),
            ("INSERT INTO t VALUES (1)", 1213, false),
            ("UPDATE t SET a = 1", 1317, false),
        ] {
            let refusal = told(behind_error(sql, code));
            assert_eq!(is_in_doubt(refusal), in_doubt, "{sql}: {code}");
        }
    }

    /// Another server would serve it in the session of before.
    #[test]
    fn a_client_whose_changes_were_not_reported_does_not_go_on() {
        let (due, of_code) = (
            Reports::Due(Explanation::None),
            Reports::OfCode(Explanation::None),
        );
        for (reports, status, is_running, goes_on) in [
            (Reports::Complete, AUTOCOMMIT, false, true),
            (due, AUTOCOMMIT, false, false),
            (due, AUTOCOMMIT, true, false),
            (due, AUTOCOMMIT | IN_TRANS, false, true),
            (of_code, AUTOCOMMIT | IN_TRANS, false, false),
            (of_code, AUTOCOMMIT | IN_TRANS, true, false),
        ] {
            let mut within = of_cluster();
            if is_running {
                runs(&mut within, "SELECT 1");
            }
            let (mut group, key, backend_id) = within;
            let backend = group.parts.backends.get_mut(backend_id).unwrap();
            backend.session.transaction.note_status(status);
            backend.session.reports = reports;
            losses::lose(&mut group.parts, backend_id, "it is gone");
            let client = group.parts.clients.get(key);
            let stays = client.is_some_and(|client| !client.ended.is_closing());
            assert_eq!(stays, goes_on, "{reports:?} {status} {is_running}");
        }
    }

    #[test]
    fn what_the_server_has_told_since_counts() {
        let mut open = behind_error("CREATE TABLE t (a INT)", 1050);
        answer(&mut open, None, Some(AUTOCOMMIT | IN_TRANS));
        assert!(!is_in_doubt(told(open)));
        let mut ended = behind_error("CREATE TABLE t (a INT)", 1050);
        answer(&mut ended, None, Some(AUTOCOMMIT));
        assert_eq!(told(ended), None);
        let mut untold = behind_error("CREATE TABLE t (a INT)", 1050);
        answer(&mut untold, Some(1317), None);
        assert!(is_in_doubt(told(untold)));
    }

    #[test]
    fn a_statement_behind_an_error_may_have_run_outside_of_the_transaction() {
        for (sql, code) in [
            ("CREATE TABLE t (a INT)", 1050),
            ("INSERT INTO t VALUES (1)", 1213),
        ] {
            let mut within = behind_error(sql, code);
            runs(&mut within, "INSERT INTO t VALUES (2)");
            let (mut group, _, backend_id) = within;
            group.parts.net.written.clear();
            losses::lose(&mut group.parts, backend_id, "it is gone");
            let heard = String::from_utf8_lossy(&group.parts.net.written).into_owned();
            assert!(heard.contains("took effect is unknown"), "{sql}: {heard}");
        }
    }

    #[test]
    fn no_status_is_answered_before_the_server_has_told_it() {
        // COM_PING, COM_STMT_RESET and COM_PROCESS_KILL.
        for command in [
            &b"\x01\0\0\0\x0e"[..],
            b"\x05\0\0\0\x1a\x01\0\0\0",
            b"\x05\0\0\0\x0c\x63\0\0\0",
        ] {
            let (mut group, key, _) = behind_error("CREATE TABLE t (a INT)", 1050);
            assert_eq!(
                commands::on_command(&mut group.parts, key, command),
                Handled::Kept,
                "{command:?}"
            );
        }
    }
}
