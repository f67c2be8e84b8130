//! A server that refuses a client's state: what that means for the client.
//!
//! The problem: a command that was to bring a backend into its client's session, or to prepare
//! there what the client executes, is refused, and the backend is closed. What was sent behind it
//! may have run in another state; what was not sent has not run at all; and what the backend alone
//! knew of the session is lost. The mechanism: [`Client::unrestored`] finds from these what the
//! client hears, and whether it may go on ([`Unrestored`]).
//!
//! Invariants: a client goes on only with a session that is known whole; what it is told to have
//! not run has not run.

use crate::client::{Client, ClientSession, ClientState};
use crate::errors::reasons::Refusal;
use crate::server::schemas::Schemas;
use reactor::Time;
use session::last_statement::PendingReadBack;
use session::read_back::Properties;
use session::roles::{NONE, is_refused};
use session::send_mode::Behind;
use session::state::Interner;

/// The server's error number for what KILL QUERY has ended.
const INTERRUPTED: u16 = 1317;
/// Those for a schema that is not open to the account, and for one that there is not.
const NO_SCHEMA: [u16; 2] = [1044, 1049];
/// MariaDB's for a session that is to have the query cache on while it is off for all.
const NO_QUERY_CACHE: u16 = 1925;

/// A server's refusal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RestoreError<'a> {
    pub(crate) code: u16,
    pub(crate) text: &'a str,
    /// Fate of the statement that stood behind the command.
    pub(crate) behind: Behind,
    /// True if a transaction was open on the backend.
    pub(crate) keeps: bool,
    /// True if the backend had run something of the client's.
    pub(crate) served: bool,
}

/// Consequences for the client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unrestored {
    /// Error that it gets.
    pub(crate) refusal: Refusal,
    /// True if it is closed behind that: an error alone would tell it that it may go on.
    pub(crate) leaves: bool,
    /// True if its statement may have run in another state, with conditions that nobody knows.
    pub(crate) may_have_run: bool,
}

impl<S> Client<S> {
    /// Decides what becomes of a client, past its login, whose backend has refused its state and is
    /// gone.
    pub(crate) fn unrestored(
        &mut self,
        error: &RestoreError<'_>,
        now: Time,
        sessions: &mut Interner,
        schemas: &mut Schemas,
    ) -> Unrestored {
        let words = format!("error {}: {}", error.code, error.text);
        let sent = self.state() == ClientState::Running;
        if sent && error.behind == Behind::Unknown {
            self.session.state.accepted.withdraw();
            let gone = error.keeps || self.session.is_held() || self.session.is_left_there();
            self.session.last.pending = PendingReadBack::default();
            return Unrestored {
                refusal: Refusal::Unrestored(words),
                leaves: gone || !self.change_state(ClientState::Idle, now),
                may_have_run: true,
            };
        }
        let held = error.served && self.session.is_held();
        let gone = error.keeps || held || self.session.is_left_there();
        if (self.session.prepared.under_way()).is_some_and(|under_way| under_way.ahead) {
            self.drop_command();
            let moved = self.change_state(ClientState::Idle, now);
            return Unrestored {
                refusal: Refusal::Restore(words),
                leaves: gone || !moved,
                may_have_run: false,
            };
        }
        self.give_up_refused(error.code, sessions, schemas);
        self.ended.take_interruption();
        self.session.pins.forget_plan();
        let moved = self.change_state(ClientState::Idle, now);
        if !sent {
            let len = self.input.command_len();
            self.drop_input(len);
        }
        Unrestored {
            refusal: match error.code {
                INTERRUPTED => Refusal::Interrupted,
                _ => Refusal::Restore(words),
            },
            leaves: gone || !moved,
            may_have_run: false,
        }
    }

    /// Removes from its session what the server does not let it have.
    fn give_up_refused(&mut self, code: u16, sessions: &mut Interner, schemas: &mut Schemas) {
        if let Some(schema) = &self.session.state.schema {
            schemas.forget(self.pool as usize, schema);
        }
        if NO_SCHEMA.contains(&code) {
            let mut session = (*self.session.state).clone();
            session.schema = None;
            self.session.state = sessions.intern(session);
        }
        if code == NO_QUERY_CACHE {
            let mut session = (*self.session.state).clone();
            if session.set(b"query_cache_type", b"OFF").is_ok() {
                self.session.state = sessions.intern(session);
            }
        }
        if is_refused(code) && self.session.state.role.is_some() {
            let mut session = (*self.session.state).clone();
            session.role = Some(NONE.into());
            self.session.state = sessions.intern(session);
        }
    }
}

impl ClientSession {
    /// True if a part of its session is on its backend alone, because it was not read back yet.
    pub(crate) fn is_left_there(&self) -> bool {
        let there = self.last.pending.changed.without(Properties::FOUND_ROWS);
        !there.is_empty() || self.modified.is_some()
    }

    /// True if its session can go on without its backend, but for a transaction and for answers
    /// about its last statement.
    pub(crate) fn survives_backend(&self) -> bool {
        let values = Properties::FOUND_ROWS.union(Properties::INSERT_ID);
        let there = self.last.pending.changed.without(values);
        there.is_empty() && self.modified.is_none() && !self.is_held()
    }

    /// True if anything of it goes with its backend, between two statements: what holds it there,
    /// what is still to be read back, or a transaction, if it is `in_transaction`.
    pub(crate) fn loses_with_backend(&self, in_transaction: bool) -> bool {
        let pending = self.last.pending.failed || self.last.pending.warnings;
        in_transaction || self.is_held() || pending || self.is_left_there()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errors::reasons::PinReason;
    use session::state::Session;
    use std::rc::Rc;

    const NOW: Time = Time(1_000_000_000);

    /// A client in this state, in a schema.
    fn client(state: ClientState, sessions: &mut Interner) -> Client<()> {
        let mut client = Client::of_tests(NOW, Rc::default());
        client.login = None;
        let mut session = Session::default();
        session.use_schema(Some(b"shop"[..].into()));
        client.session.state = sessions.intern(session);
        assert!(client.change_state(ClientState::Idle, NOW));
        assert!(client.change_state(state, NOW));
        client
    }

    fn error(code: u16, behind: Behind) -> RestoreError<'static> {
        RestoreError {
            code,
            text: "why",
            behind,
            keeps: false,
            served: false,
        }
    }

    fn refused(client: &mut Client<()>, error: &RestoreError<'_>) -> Unrestored {
        client.unrestored(
            error,
            NOW,
            &mut Interner::default(),
            &mut Schemas::default(),
        )
    }

    #[test]
    fn a_command_that_was_not_sent_is_refused_and_the_client_goes_on() {
        let mut sessions = Interner::default();
        let mut client = client(ClientState::Restoring, &mut sessions);
        client.keep_input(b"\x01\0\0\0\x0e");
        let end = refused(&mut client, &error(1231, Behind::Unknown));
        let words = Refusal::Restore("error 1231: why".into());
        assert_eq!((end.refusal, end.leaves), (words, false));
        assert!(!end.may_have_run && client.input.bytes().is_none());
        assert_eq!(client.state(), ClientState::Idle);
        assert!(client.session.state.schema.is_some());
    }

    #[test]
    fn a_schema_that_is_refused_is_the_clients_no_more() {
        for code in NO_SCHEMA {
            let mut sessions = Interner::default();
            let mut client = client(ClientState::Restoring, &mut sessions);
            let mut schemas = Schemas::default();
            schemas.learn(0, b"shop");
            let refusal = error(code, Behind::Unknown);
            client.unrestored(&refusal, NOW, &mut sessions, &mut schemas);
            assert_eq!(client.session.state.schema, None);
            assert!(!schemas.knows(0, b"shop"));
        }
    }

    #[test]
    fn a_query_cache_that_is_off_for_all_is_off_for_the_client() {
        let mut sessions = Interner::default();
        let mut client = client(ClientState::Restoring, &mut sessions);
        let end = refused(&mut client, &error(NO_QUERY_CACHE, Behind::Unknown));
        assert!(!end.leaves);
        let value = client.session.state.variable(b"query_cache_type");
        assert_eq!(value, Some(&b"OFF"[..]));
    }

    #[test]
    fn what_was_sent_may_have_run_in_another_state() {
        let mut sessions = Interner::default();
        let mut running = client(ClientState::Running, &mut sessions);
        let end = refused(&mut running, &error(1231, Behind::Unknown));
        assert_eq!(end.refusal, Refusal::Unrestored("error 1231: why".into()));
        assert!(end.may_have_run && !end.leaves);
        // Where it stands in one text with what was refused, it has not.
        let mut running = client(ClientState::Running, &mut sessions);
        let end = refused(&mut running, &error(1231, Behind::NotRun));
        assert_eq!(end.refusal, Refusal::Restore("error 1231: why".into()));
        assert!(!end.may_have_run);
    }

    #[test]
    fn a_client_whose_session_was_there_alone_leaves() {
        let mut sessions = Interner::default();
        let mut keeps = error(1231, Behind::Unknown);
        keeps.keeps = true;
        let mut restoring = client(ClientState::Restoring, &mut sessions);
        assert!(refused(&mut restoring, &keeps).leaves, "a transaction");
        let mut owing = client(ClientState::Restoring, &mut sessions);
        owing.session.last.pending.changed = Properties::INSERT_ID;
        assert!(refused(&mut owing, &error(1231, Behind::Unknown)).leaves);
        // What pins it counts once the backend has run something of its.
        for served in [false, true] {
            let mut pinned = client(ClientState::Restoring, &mut sessions);
            pinned
                .session
                .pins
                .add(PinReason::PreparedSchema, None, NOW.0);
            let mut refusal = error(1231, Behind::Unknown);
            refusal.served = served;
            assert_eq!(refused(&mut pinned, &refusal).leaves, served);
        }
    }

    #[test]
    fn a_kill_is_told_as_one() {
        let mut sessions = Interner::default();
        let mut client = client(ClientState::Restoring, &mut sessions);
        client.ended.interrupt();
        let end = refused(&mut client, &error(INTERRUPTED, Behind::Unknown));
        assert_eq!(end.refusal, Refusal::Interrupted);
        assert!(!client.ended.is_interrupted());
    }
}
