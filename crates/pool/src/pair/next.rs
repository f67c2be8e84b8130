//! Fate of a client's backend when nothing is in flight any more.
//!
//! The problem: what a statement has left is not all reported. Up to six questions stand between
//! its reply and the next client of its backend, and which of them are asked, and in which order,
//! hangs on what the answers before have told. The mechanism: [`Pair::checkin`] finds the next step
//! from what is known at this moment, and says it as a value ([`Checkin`]). The group takes it, and
//! asks again behind each answer.
//!
//! What is owed of properties is asked in one question ([`session::read_back`]). What each of them
//! is, and when it is owed, stands with its owner: the files of this folder. Adding a property: a
//! row in [`session::read_back`]. One that is more than a value of the session also has who owes it
//! in [`Client::changed_properties`], and who takes it in [`Pair::note_answer`].
//!
//! Invariants: a backend is free only with nothing in flight, nothing owed, no transaction open or
//! announced, and a client that is not pinned; what a step asks for is owed no more, so the steps
//! come to an end.

use crate::backend::{BackendState, ForSession};
use crate::client::ClientState;
use crate::errors::reasons::PinReason;
use crate::pair::Pair;
use crate::pair::user_variables::value_max;
use session::last_statement::PendingReadBack;
use session::read_back::{Properties, Question, question};
use sql::classify::{PinCause, Reads};

/// Checkin action.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Checkin {
    /// Nothing: something is in flight, or the client has not come to rest.
    Wait,
    /// The client keeps its backend: what has waited for an answer goes on.
    Keep,
    /// The backend answers this first.
    Ask(Vec<u8>),
    /// Nothing to ask: what has waited for an answer goes on, and the rest follows.
    GoOn,
    /// The client holds nothing there: the backend serves the next.
    Free,
}

impl Pair<'_> {
    /// Decides what becomes of the backend.
    pub(crate) fn checkin(&mut self) -> Checkin {
        self.checkin_of(false)
    }

    /// Checkin action for a client that is to go to another process together with its backend: also
    /// where it keeps that, pending read-backs come first.
    pub(crate) fn checkin_before_leaving(&mut self) -> Checkin {
        self.checkin_of(true)
    }

    fn checkin_of(&mut self, leaves: bool) -> Checkin {
        use ClientState::{Asking, Idle, Waiting};
        let (client, backend) = (&*self.client, &*self.backend);
        // While others are pipelined, the one whose reply comes next is not looked at yet.
        if self.ends.backend != BackendState::CheckedOut
            || !self.flight.is_empty()
            || self.reuse.is_frozen()
            || !matches!(self.ends.client, Idle | Waiting | Asking)
        {
            return Checkin::Wait;
        }
        let server = self.context.server.flavour;
        let reports = backend.owes_report(server.is_mysql());
        let in_transaction = backend.in_transaction();
        if !reports && !in_transaction && client.leaves_nothing() {
            return Checkin::Free;
        }
        let untracked = (client.modified.as_ref()).is_some_and(|t| t.is_untracked());
        let asks = client.may_have_ended();
        let pending = client.last.pending;
        let fetches = leaves && reports;
        // Its backend has the last of its conditions alone where the others were read back before.
        let partly = pending.warnings && !client.last.is_valid_on_backend(Reads::DIAGNOSTICS);
        if client.is_held() && !asks && !untracked && !fetches && !partly {
            return Checkin::Keep;
        }
        // After an error the status is unknown; the reply to SHOW WARNINGS tells it. In a
        // transaction the backend answers for itself.
        if pending.warnings && (!in_transaction || pending.failed || untracked || partly) {
            return Checkin::Ask(self.ask_for_conditions());
        }
        if untracked {
            return Checkin::Ask(self.retell());
        }
        if in_transaction && !reports {
            return Checkin::Keep;
        }
        let changed = client.changed_properties();
        if reports && changed.intersects(Properties::FOUND_ROWS) {
            return self.read_back(Properties::FOUND_ROWS);
        }
        if reports {
            return Checkin::Ask(self.ask_for_report());
        }
        if !changed.is_empty() {
            return self.read_back(changed);
        }
        self.client.modified = None;
        self.client.last.pending = PendingReadBack::default();
        Checkin::Free
    }

    /// Asks the backend for these properties of its client's session, and for FOUND_ROWS(), which
    /// the question takes away, where only the backend knows that.
    pub(crate) fn read_back(&mut self, properties: Properties) -> Checkin {
        let counts = self.client.last.counts_unread();
        let mut properties = properties.union(Properties::FOUND_ROWS.when(counts));
        let packet_max = self.context.server.max_allowed_packet;
        let variables = properties.intersects(Properties::USER_VARIABLES);
        if variables && !self.client.names_to_read(packet_max) {
            properties = properties.without(Properties::USER_VARIABLES);
            self.pin(PinReason::Text(PinCause::UserVariable));
        }
        let client = &mut *self.client;
        let acquired = match properties.intersects(Properties::HOLDINGS) {
            true => client.pins.columns_to_ask(),
            false => Vec::new(),
        };
        if let Some(modified) = &mut client.modified {
            modified.awaited += usize::from(properties.intersects(Properties::CLOCK));
        }
        if properties.is_empty() {
            return Checkin::GoOn;
        }
        let modified = client.modified.as_ref();
        let names = modified.map_or(&[][..], |modified| &modified.names);
        let asked = Question {
            properties,
            acquired: &acquired,
            user_variables: names,
            value_max: value_max(names.len(), packet_max),
        };
        let (sql, asked) = (question(&asked), asked.asked());
        self.context.counts.questions += 1;
        self.context.counts.properties_asked += u64::from(properties.count());
        let mut out = Vec::with_capacity(sql.len() + 8);
        self.put_question(&mut out, ForSession::ReadBack(asked), &sql);
        if properties.intersects(Properties::FOUND_ROWS) {
            let server = self.context.server.flavour;
            self.backend.note_deprecation(self.owner, server);
        }
        Checkin::Ask(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{InFlight, Reports};
    use crate::client::modified::Modified;
    use crate::pair::tests::{NOW, Parts, owner};
    use session::statement::Explanation;
    use wire::command::ReplyShape;

    /// Checkin question, as text.
    fn asked(parts: &mut Parts) -> String {
        match parts.pair().checkin() {
            Checkin::Ask(out) => String::from_utf8_lossy(&out).into_owned(),
            other => panic!("nothing is asked: {other:?}"),
        }
    }

    /// Answers all that the backend was asked.
    fn answer(parts: &mut Parts) {
        while parts.backend.flight.take_answered().is_some() {}
    }

    #[test]
    fn a_backend_is_free_where_nothing_is_left() {
        let mut parts = Parts::bound();
        parts.client.session.modified = Some(Box::default());
        parts.client.session.last.pending.failed = true;
        assert_eq!(parts.pair().checkin(), Checkin::Free);
        assert!(
            parts.client.session.modified.is_none() && !parts.client.session.last.pending.failed
        );
        assert_eq!(parts.purposes(), []);
    }

    #[test]
    fn nothing_is_decided_while_something_is_under_way() {
        let mut parts = Parts::bound();
        let own = InFlight::own(Some(owner()), ForSession::Warnings, ReplyShape::Results);
        parts.backend.flight.expect(own);
        assert_eq!(parts.pair().checkin(), Checkin::Wait);
        answer(&mut parts);
        assert_eq!(parts.pair().checkin(), Checkin::Free);
        let mut parts = Parts::bound();
        parts.backend.reuse.freeze();
        assert_eq!(
            parts.pair().checkin(),
            Checkin::Wait,
            "a KILL may still hit it"
        );
        let mut parts = Parts::bound();
        assert!(parts.client.change_state(ClientState::Running, NOW));
        assert_eq!(parts.pair().checkin(), Checkin::Wait);
        // A backend without a client is nobody's to give away.
        assert_eq!(Parts::new().pair().checkin(), Checkin::Wait);
    }

    #[test]
    fn who_waits_or_asks_for_a_kill_rests_too() {
        for state in [ClientState::Waiting, ClientState::Asking] {
            let mut parts = Parts::bound();
            assert!(parts.client.change_state(state, NOW));
            assert_eq!(parts.pair().checkin(), Checkin::Free);
        }
    }

    #[test]
    fn a_transaction_or_a_pin_keeps_the_backend() {
        let mut parts = Parts::bound();
        parts.backend.session.transaction.note_begin_sent();
        assert_eq!(parts.pair().checkin(), Checkin::Keep);
        let mut parts = Parts::bound();
        (parts.client.session.pins).add(PinReason::PreparedSchema, None, NOW.0);
        parts.client.session.last.pending.changed = Properties::ROLE;
        assert_eq!(
            parts.pair().checkin(),
            Checkin::Keep,
            "it stays where that is"
        );
    }

    #[test]
    fn a_transaction_is_asked_for_conditions_only_where_its_state_is_unknown() {
        let mut parts = Parts::bound();
        parts.backend.session.transaction.note_begin_sent();
        parts.client.session.last.own(Reads::DIAGNOSTICS);
        parts.client.session.last.pending.warnings = true;
        assert_eq!(
            parts.pair().checkin(),
            Checkin::Keep,
            "its backend has them"
        );
        parts.client.session.last.pending.failed = true;
        assert!(asked(&mut parts).ends_with("SHOW WARNINGS"));
        answer(&mut parts);
        // The backend has but the last of several conditions.
        parts.client.session.last.invalidate(Reads::DIAGNOSTICS);
        parts.client.session.last.pending.warnings = true;
        assert!(asked(&mut parts).ends_with("SHOW WARNINGS"));
    }

    #[test]
    fn who_keeps_a_backend_with_some_of_its_conditions_has_them_read_back() {
        let mut parts = Parts::bound();
        (parts.client.session.pins).add(PinReason::PreparedSchema, None, NOW.0);
        parts.client.session.last.own(Reads::DIAGNOSTICS);
        parts.client.session.last.pending.warnings = true;
        assert_eq!(
            parts.pair().checkin(),
            Checkin::Keep,
            "its backend has them all"
        );
        // A question about what it holds has come behind the others.
        parts.client.session.last.invalidate(Reads::DIAGNOSTICS);
        assert!(asked(&mut parts).ends_with("SHOW WARNINGS"));
        answer(&mut parts);
        assert_eq!(parts.pair().checkin(), Checkin::Keep);
    }

    #[test]
    fn conditions_come_first_and_all_properties_in_one_question() {
        let mut parts = Parts::bound();
        let pending = &mut parts.client.session.last.pending;
        pending.warnings = true;
        pending.changed = Properties::INSERT_ID.union(Properties::ROLE);
        assert!(asked(&mut parts).ends_with("SHOW WARNINGS"));
        assert_eq!(parts.pair().checkin(), Checkin::Wait);
        answer(&mut parts);
        let question = asked(&mut parts);
        assert!(question.contains("LAST_INSERT_ID()"), "{question}");
        assert!(question.contains("CURRENT_ROLE()"), "{question}");
        assert_eq!(parts.backend.flight.len(), 1);
        assert_eq!(parts.counts.questions, 1);
        assert_eq!(parts.counts.properties_asked, 2);
        answer(&mut parts);
        parts.client.session.last.pending.changed = Properties::NONE;
        assert_eq!(parts.pair().checkin(), Checkin::Free);
    }

    #[test]
    fn a_count_that_its_client_is_about_to_ask_for_is_read_back_with_the_rest() {
        let calculated = |parts: &mut Parts| {
            parts.client.session.last.found_rows.set(None);
            parts.client.session.last.own(Reads::FOUND_ROWS);
            parts.client.session.last.pending.changed = Properties::FOUND_ROWS;
        };
        let mut parts = Parts::bound();
        parts.backend.session.transaction.note_begin_sent();
        calculated(&mut parts);
        assert_eq!(
            parts.pair().checkin(),
            Checkin::Keep,
            "its backend tells it"
        );
        let mut parts = Parts::bound();
        calculated(&mut parts);
        parts.client.session.last.pending.warnings = true;
        assert!(asked(&mut parts).ends_with("SHOW WARNINGS"));
        answer(&mut parts);
        let question = asked(&mut parts);
        assert!(question.contains("FOUND_ROWS()"), "{question}");
        answer(&mut parts);
        let mut parts = Parts::bound();
        calculated(&mut parts);
        parts.client.session.last.invalidate(Reads::FOUND_ROWS);
        assert_eq!(
            parts.pair().checkin(),
            Checkin::Free,
            "the backend knows another"
        );
    }

    #[test]
    fn sets_that_are_not_reported_are_told_again_even_in_a_transaction() {
        let mut parts = Parts::bound();
        parts.backend.session.transaction.note_begin_sent();
        let modified = Modified {
            sets: vec![b"SET time_zone=@@time_zone".to_vec()],
            ..Modified::default()
        };
        parts.client.session.modified = Some(Box::new(modified));
        assert!(asked(&mut parts).ends_with("SET time_zone=@@time_zone"));
        assert_eq!(parts.purposes(), [ForSession::SetAgain.into()]);
    }

    #[test]
    fn a_report_that_is_owed_is_fetched_outside_of_transactions() {
        let mut parts = Parts::bound();
        parts.backend.session.reports = Reports::Due(Explanation::None);
        let commands = asked(&mut parts);
        assert!(commands.contains("START TRANSACTION"), "{commands}");
        assert_eq!(
            parts.purposes(),
            [
                ForSession::Reports(false).into(),
                ForSession::Reports(true).into()
            ]
        );
        let mut parts = Parts::bound();
        parts.backend.session.reports = Reports::Due(Explanation::None);
        parts.backend.session.transaction.note_begin_sent();
        assert_eq!(parts.pair().checkin(), Checkin::Keep);
    }

    #[test]
    fn names_that_cannot_be_asked_pin_and_leave_nothing_to_ask() {
        let mut parts = Parts::bound();
        let mut session = (*parts.client.session.state).clone();
        session.put(b"character_set_client", b"latin1");
        session.put(b"character_set_connection", b"latin1");
        parts.client.session.state = std::rc::Rc::new(session);
        let modified = Modified {
            names: vec!["\u{fc}".as_bytes().into()],
            fresh: true,
            ..Modified::default()
        };
        parts.client.session.modified = Some(Box::new(modified));
        assert_eq!(parts.pair().checkin(), Checkin::GoOn);
        let pinned = PinReason::Text(PinCause::UserVariable);
        assert!(parts.client.session.pins.is_pinned_for(pinned));
        assert_eq!(parts.pair().checkin(), Checkin::Keep, "it comes to an end");
    }
}
