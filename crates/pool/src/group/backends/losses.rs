//! Losses: a backend that cannot be had, kept or used, and what that means for its clients.
//!
//! A lost backend never makes a statement run twice. A client whose statement was under way gets
//! an error that says so; one whose statement had not been sent waits on; one whose session was on
//! that backend alone (a transaction, a pin) is cut off, as it would be without a pool. Dialling
//! that fails backs off, and those who wait for it wait on, within their limit, unless the server
//! refuses the account itself and no backend of before gets free by the end of a statement.

use crate::auth::failed_logins::Denial;
use crate::backend::overdue::{Overdue, TimeLimits};
use crate::backend::pools::DialEnd;
use crate::backend::{Backend, BackendState, ForSession, InFlight, Purpose, Reports};
use crate::client::ClientState;
use crate::client::unrestored::RestoreError;
use crate::errors::reasons::{PinReason, Refusal};
use crate::group::Group;
use crate::group::tasks::Task;
use crate::group::tokens::{BackendId, ClientId};
use crate::limits::timeouts::Limits;
use crate::observe::audit::end;
use crate::observe::log::{Event, note};
use reactor::Net;
use session::own_commands::OWN_COMMANDS_MAX;
use session::own_writes::OwnWrites;
use session::read_back::Properties;
use session::send_mode::Behind;
use session::transaction::Doubt;
use sql::classify::PinCause;
use sql::sqlstate::state_of;
use std::time::Duration;
use wire::errors::ErrorCode;

/// Reason why a client is pinned whose text ends its connection (COMMIT RELEASE).
const RELEASED: PinReason = PinReason::Text(PinCause::Release);

/// Loss of a backend whose server is behind, or takes no writes: it is left.
pub(crate) const REFUSED: Loss<'_> = Loss {
    why: "the server that is read does not serve this read",
    in_transaction: false,
    doubt: Doubt::None,
    served: false,
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

impl<N: Net> Group<N> {
    /// Drops a connection that could not be opened; those who wait for it wait on, unless it is of
    /// no use.
    pub(crate) fn dial_failed(&mut self, backend_id: BackendId, why: &str, end: DialEnd) {
        let Some(backend) = self.backends.get(backend_id) else {
            return;
        };
        let (pool, now) = (backend.pool, self.net.now());
        if end == DialEnd::Unreached && !backend.is_reader() {
            self.shared.upstream.failed(backend.at(), now, why);
        }
        self.counts.dial_failures += 1;
        self.epoch += 1;
        let entry = &mut self.backend_pools.pools[pool];
        let first = entry.last_failure.is_none();
        match end {
            // The account has a back-off of its own, over all groups.
            DialEnd::AccountFull => {
                entry.slots.refused(why, now);
                entry.last_failure = Some(why.into());
                entry.is_refused = false;
            }
            _ => entry.dial_failed(now, why.into(), end),
        }
        self.closer().retire(backend_id);
        self.send_home(pool);
        let entry = &self.backend_pools.pools[pool];
        let user = &entry.key.user;
        if end != DialEnd::Unreached && first {
            note(
                Event::BackendRefused,
                format_args!("no backend for '{user}': {why}"),
            );
        }
        if let Some(why) = self.backend_pools.pools[pool].dead_end(&self.shared.accounts) {
            return self.end_waiting(pool, &why);
        }
        if end == DialEnd::Account && !self.matching().gets_one_free(pool) {
            self.refuse_waiting(pool, &Refusal::BackendLogin(why.into()));
        }
    }

    /// Ends backends whose time is over.
    pub(crate) fn sweep_backends(&mut self) {
        let kept = self.shared.backends_kept(&self.settings, self.index);
        for key in self.backends.keys() {
            let Some(backend) = self.backends.get(key) else {
                continue;
            };
            let limits = TimeLimits {
                settings: &self.settings,
                timeouts: &self.shared.server.timeouts,
                capabilities: self.backend_pools.pools[backend.pool].key.capabilities,
                has_spare: self.backend_pools.count > kept,
                now: self.net.now(),
            };
            let unanswered = || self.net.unanswered(backend.transport.sock());
            match backend.overdue(key, unanswered, &limits) {
                None => {}
                Some(Overdue::Dial(why)) => self.dial_failed(key, &why, DialEnd::Unreached),
                Some(Overdue::Lost(why)) => self.lose(key, &why),
                Some(Overdue::Unread) => self.abandon(key, None),
                Some(Overdue::Idle) => {
                    self.counts.trimmed += 1;
                    self.closer().retire(key);
                }
            }
        }
    }

    /// Tells a client that the server would not take its state, in the server's words.
    pub(crate) fn restore_failed(
        &mut self,
        owner: ClientId,
        backend_id: BackendId,
        behind: Behind,
        (code, text): (u16, &str),
    ) {
        let backend = self.backends.get(backend_id);
        let (keeps, served) =
            backend.map_or((false, false), |b| (b.in_transaction(), b.has_served()));
        if backend.is_some_and(|backend| backend.is_reader()) && !keeps {
            // The writer may have what it lacks still: a schema, a privilege.
            return self.leave_behind(owner, backend_id);
        }
        self.abort_followers(backend_id, Some(owner));
        self.closer().retire(backend_id);
        self.clients.unbind(owner, &mut self.backends);
        let now = self.net.now();
        let Some(client) = self.clients.get_mut(owner) else {
            return;
        };
        if client.is_logging_in() {
            if let Some(schema) = &client.session.schema {
                self.schemas.forget(client.pool as usize, schema);
            }
            let state = match &state_of(code, self.shared.server.flavour) {
                b"HY000" => "HY000",
                b"3D000" => "3D000",
                _ => "42000",
            };
            let denial = Denial {
                error: ErrorCode { code, state },
                text: text.into(),
                delay: Duration::ZERO,
                reason: "schema",
            };
            self.not_let_in(owner, &denial);
            return self.tasks.add(Task::Read(owner));
        }
        let error = RestoreError {
            code,
            text,
            behind,
            keeps,
            served,
        };
        let end = client.unrestored(&error, now, &mut self.sessions, &mut self.schemas);
        self.epoch += u64::from(end.may_have_run);
        self.answers().refuse_counted(owner, &end.refusal);
        if end.may_have_run
            && let Some(client) = self.clients.get_mut(owner)
        {
            client.last.lose_conditions();
        }
        match end.leaves {
            true => {
                self.clients.note_end(owner, end.refusal.name());
                self.leave(owner);
            }
            false => self.tasks.add(Task::Read(owner)),
        }
    }

    /// Closes a backend that is gone, or of no use any more.
    pub(crate) fn lose(&mut self, backend: BackendId, why: &str) {
        self.lose_as(backend, why, LossCause::Ended);
    }

    /// Closes a backend for this cause, and ends or repeats what was in flight on it.
    pub(crate) fn lose_as(&mut self, backend_id: BackendId, why: &str, cause: LossCause) {
        let Some(backend) = self.backends.get(backend_id) else {
            return;
        };
        if matches!(
            backend.state(),
            BackendState::Dialling | BackendState::Preparing
        ) {
            let why = format!("{why} before our login was complete");
            return self.dial_failed(backend_id, &why, DialEnd::Unreached);
        }
        self.counts.backends_lost += 1;
        self.epoch += 1;
        let (thread, now, is_reader) = (backend.thread, self.net.now(), backend.is_reader());
        let in_transaction = backend.in_transaction();
        let doubt = backend.transaction.doubt();
        let pool = backend.pool;
        let is_statement =
            |command: &InFlight| command.purpose == Purpose::Statement && command.owner.is_some();
        let is_running = backend.flight().iter().any(is_statement);
        if !is_reader || is_running {
            self.shared.doubt_writer();
        }
        let loss = Loss {
            why,
            in_transaction,
            doubt,
            served: backend.has_served(),
            amid_packet: !backend.is_at_packet_start(),
            cause,
        };
        let tried = |command: &&InFlight| {
            matches!(command.purpose, Purpose::Session(ForSession::Joined(_)))
        };
        let may_run = backend.flight().iter().find(tried).and_then(|c| c.owner);
        let asked = |command: &&InFlight| command.purpose == ForSession::Warnings.into();
        let unread = backend.flight().iter().find(asked).and_then(|c| c.owner);
        let mut owners: Vec<ClientId> = backend.flight().iter().filter_map(|c| c.owner).collect();
        owners.dedup();
        // It is checked out only until something of an earlier client is read back.
        let lent = owners.is_empty() && backend.reports == Reports::Complete;
        owners.extend(
            backend
                .client()
                .filter(|backend_id| !owners.contains(backend_id)),
        );
        let mut identity = (owners.first()).and_then(|owner| self.survey().identity(*owner));
        if let Some(identity) = &mut identity {
            identity.in_transaction = in_transaction;
        }
        self.log.backend_lost(now, identity.as_ref(), thread, why);
        if is_reader {
            // Started again it may have less.
            self.backend_pools.pools[pool].has = OwnWrites::default();
            if is_running {
                (self.shared).count_read(&self.backend_pools.pools[pool].key, true);
            }
        }
        if is_reader && !in_transaction {
            return self.leave_reader(backend_id, loss);
        }
        if let Some(mut pair) = may_run.and_then(|owner| self.pair(owner, backend_id)) {
            pair.note_runs();
        }
        self.closer().retire(backend_id);
        let lent_to = owners.first().filter(|_| lent);
        if let Some(owner) = lent_to.copied()
            && let Some(client) = self.clients.get(owner)
        {
            let left = client.loses_with_backend(loss.in_transaction);
            if client.state() == ClientState::Idle && !left {
                self.clients.unbind(owner, &mut self.backends);
                return;
            }
        }
        if let Some(client) = unread.and_then(|owner| self.clients.get_mut(owner)) {
            client.last.lose_conditions();
        }
        for (i, owner) in owners.into_iter().enumerate() {
            // Only the first in flight can have got a part of its reply.
            let amid_packet = loss.amid_packet && i == 0;
            let loss = Loss {
                amid_packet,
                ..loss
            };
            self.backend_lost(owner, loss);
        }
    }

    /// Unbinds a client from a lost backend: a client without state there waits again or gets an
    /// error and stays; any other is closed.
    pub(crate) fn backend_lost(&mut self, owner: ClientId, loss: Loss<'_>) {
        let Loss {
            in_transaction,
            doubt,
            served,
            amid_packet,
            cause,
            ..
        } = loss;
        let now = self.net.now();
        self.clients.unbind(owner, &mut self.backends);
        let pool = self.clients.get(owner).map(|client| client.pool as usize);
        let on_reader = pool.is_some_and(|pool| self.backend_pools.is_reader(pool));
        if !on_reader {
            self.readers().doubt_running(owner);
        }
        let Some(client) = self.clients.get_mut(owner) else {
            return;
        };
        if on_reader {
            // Nothing that sets it runs there.
            let pending = &mut client.last.pending;
            pending.changed = pending.changed.without(Properties::INSERT_ID);
        }
        let held = client.is_held();
        let keeps = in_transaction || held && served || client.is_left_there();
        // Of several servers another one goes on, and nothing but the transaction is lost.
        let survives = self.shared.cluster.is_some() && client.survives_backend();
        // Behind an error it may have ended already, and its statement run outside of it.
        let lost_all = survives && in_transaction && doubt == Doubt::None;
        let may_have_ended = client.statement.may_commit();
        let limits = Limits {
            settings: &self.settings,
            server: &self.shared.server,
        };
        match client.state() {
            ClientState::Idle if survives => client.lose_backend(in_transaction, doubt),
            // It waits behind what is read back, or for its turn.
            ClientState::Restoring | ClientState::Waiting
                if survives && (keeps || client.state() == ClientState::Waiting) =>
            {
                client.lose_backend(in_transaction, doubt);
                client.pins.forget_plan();
                self.waiters().forget(owner);
                self.return_to_idle(owner);
            }
            ClientState::Restoring if !keeps => {
                // What it waited for before an earlier statement does not count.
                if served {
                    client.place.give_up();
                }
                self.waiters().wait_again(owner);
            }
            // Its text has made the server end the connection, as a server does: without a word.
            ClientState::Running if client.is_pinned_for(RELEASED) => {
                self.clients.close_for(owner, end::LOST)
            }
            ClientState::Running if !amid_packet => {
                // What was to be read back is lost as well.
                let keeps = !survives && (in_transaction || held || client.is_left_there());
                client.last.lose_backend();
                let refusal = match lost_all && !may_have_ended {
                    true => Refusal::TransactionLost,
                    false => loss.refusal(),
                };
                self.answers().refuse(owner, &refusal);
                let Some(client) = self.clients.get_mut(owner) else {
                    return;
                };
                // The session went with the connection, as it would have without a pool.
                if keeps || !client.change_state(ClientState::Idle, now) {
                    self.clients.note_end(owner, end::LOST);
                    return self.leave(owner);
                }
                self.tasks.add(Task::Read(owner));
            }
            ClientState::Feeding => {
                self.answers().refuse(owner, &loss.refusal());
                self.clients.note_end(owner, end::LOST);
                self.leave(owner);
            }
            // The server has found before the sweep that the client's time is over.
            _ if client.has_idled(now, limits) => self.end_idle(owner),
            // Half a packet has been sent, or the session was on the backend alone.
            _ => {
                self.clients.note_end(owner, end::LOST);
                match cause {
                    LossCause::Reset => self.clients.reset_later(owner, &mut self.net),
                    _ => self.clients.close_later(owner),
                }
            }
        }
    }

    /// Counts an answered command of the pool's own. `false` when it was one too many, and backend
    /// and client are closed.
    #[must_use]
    pub(crate) fn may_go_on(&mut self, backend_id: BackendId, command: &InFlight) -> bool {
        let bound_to = self.backends.get(backend_id).and_then(Backend::client);
        let Some(owner) = command.owner.or(bound_to) else {
            return true;
        };
        let Some(client) = self.clients.get_mut(owner) else {
            return true;
        };
        if client.note_own_command() {
            return true;
        }
        note(
            Event::Bug,
            format_args!(
                "client {} ('{}') and its backend are closed: {OWN_COMMANDS_MAX} commands of the \
             pool's own did not suffice for one statement, the last was '{}'; this is a bug in \
             onramp, please report it with this line",
                client.id(),
                self.settings.users[client.user()].name,
                reactor::tls_errors::plain(&command.purpose),
            ),
        );
        let waits = matches!(
            client.state(),
            ClientState::Restoring | ClientState::Waiting
        );
        self.clients.unbind(owner, &mut self.backends);
        self.closer().retire(backend_id);
        match waits {
            true => self.refuse_and_leave(owner, &Refusal::OwnCommands),
            // Its statement was answered, or a part of the answer has been sent.
            false => self.clients.close_later(owner),
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::InFlight;
    use crate::client::Handled;
    use crate::cluster::Cluster;
    use crate::group::scripted::{Scripted, shared};
    use crate::group::tests::{NOW, bound, group};
    use session::reply_summary::ReplySummary;
    use session::statement::{Statement, Untracked};
    use sql::classify::classify;
    use sql::lex::LexMode;
    use std::sync::Arc;
    use wire::command::ReplyShape;
    use wire::status::{AUTOCOMMIT, IN_TRANS};

    type Within = (Group<Scripted>, ClientId, BackendId);

    fn runs((group, key, backend_id): &mut Within, sql: &str) {
        let client = group.clients.get_mut(*key).unwrap();
        client.statement = Statement {
            untracked: Untracked::by(&classify(sql.as_bytes(), LexMode::default())),
            ..Statement::plain(ReplyShape::Results)
        };
        assert!(client.change_state(ClientState::Running, NOW));
        let command = InFlight::own(Some(*key), Purpose::Statement, ReplyShape::Results);
        group.backends.get_mut(*backend_id).unwrap().expect(command);
    }

    fn answer((group, _, backend_id): &mut Within, error: Option<u16>, status: Option<u16>) {
        let reply = ReplySummary {
            error: error.map(|code| (code, String::new())),
            status,
            ..ReplySummary::default()
        };
        group.backends.get_mut(*backend_id).unwrap().hear(reply);
        group.finish(*backend_id);
        group.settle(*backend_id);
    }

    /// A client of a cluster whose statement has failed within a transaction; its conditions are
    /// being read back.
    fn behind_error(sql: &str, code: u16) -> Within {
        let mut group = group();
        let mut shared = shared("");
        shared.cluster = Some(Cluster::of_tests(""));
        group.shared = Arc::new(shared);
        let (key, backend_id) = bound(&mut group);
        let mut within = (group, key, backend_id);
        runs(&mut within, "INSERT INTO t VALUES (1)");
        answer(&mut within, None, Some(AUTOCOMMIT | IN_TRANS));
        runs(&mut within, sql);
        answer(&mut within, Some(code), None);
        let backend = within.0.backends.get(backend_id).unwrap();
        assert_eq!(backend.flight()[0].purpose, ForSession::Warnings.into());
        within
    }

    /// Refusal that the next statement gets once the backend is lost.
    fn told((mut group, key, backend_id): Within) -> Option<Refusal> {
        group.lose(backend_id, "it is gone");
        group.clients.get_mut(key).unwrap().take_lost_transaction()
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
            ("CALL p()", 1213, true),
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
            group.net.written.clear();
            group.lose(backend_id, "it is gone");
            let heard = String::from_utf8_lossy(&group.net.written).into_owned();
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
            assert_eq!(group.on_command(key, command), Handled::Kept, "{command:?}");
        }
    }
}
