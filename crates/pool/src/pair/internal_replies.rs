//! Answers to commands of the pool's own: what they make of a client and its backend.
//!
//! The problem: around a client's statement the pool has commands of its own answered, which
//! restore, begin, prepare and read back; each answer changes what both know, and each may show
//! that the two cannot go on. The mechanism: [`Pair::answered`] takes the answer, changes both, and
//! says what is to be done with them ([`After`]); the group does that, which has their sockets.
//!
//! Invariant: an answer that makes no sense, or a refusal of what cannot be refused, costs the
//! backend; nothing is guessed of its session.

use crate::backend::{ForSession, Reports};
use crate::client::ClientState;
use crate::errors::reasons::PinReason;
use crate::pair::left::NOT_BEGUN;
use crate::pair::trackers::wanted_by;
use crate::pair::{Broken, Pair, UNREADABLE};
use session::read_back::{Answer, Asked, Properties};
use session::reply_summary::ReplySummary;
use session::send_mode::{Behind, SendMode};
use session::statement::Explanation;
use sql::classify::Reads;
use wire::capabilities::SESSION_TRACK;
use wire::status;
use wire::track::{changes, keep};

/// An answer.
#[derive(Debug)]
pub(crate) struct OwnAnswer<'a> {
    pub(crate) summary: &'a ReplySummary,
    /// All of it, where it is read ([`crate::backend::Purpose::is_collected`]).
    pub(crate) collected: Vec<u8>,
    /// MariaDB's extended capabilities of the backend.
    pub(crate) extended: u32,
}

/// Next action with the two when an answer has been taken.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// Nothing: more is in flight.
    Nothing,
    /// Decide anew on the client's backend.
    Settle,
    /// Decide anew; a command that has waited for this answer goes on first.
    GoOn,
    /// Backend in the session of its client, which goes on or is let in.
    Stands,
    /// Client's command to be looked at again: what it needs is there.
    Ready,
    /// Answer to the client's command, which is its error.
    Replay(Vec<u8>),
    /// Refusal of the client's state by the server.
    Unrestored(Behind),
    /// Backend to be closed.
    Lose(Broken),
}

impl After {
    /// `then`; the backend's close where its answer makes no sense.
    fn if_read(read: Result<(), Broken>, then: After) -> After {
        read.map_or_else(After::Lose, |()| then)
    }
}

impl Pair<'_> {
    /// Handles the server's answer to a command that was sent for this.
    pub(crate) fn answered(&mut self, command: ForSession, answer: OwnAnswer<'_>) -> After {
        let summary = answer.summary;
        match command {
            ForSession::Restore(last) => self.restored(last, summary),
            ForSession::Joined(last) => self.joined(last, summary),
            ForSession::Begin => self.begun(summary),
            ForSession::Ahead => self.prepared_ahead(answer),
            ForSession::Warnings => self.warnings_read(answer),
            ForSession::SetAgain => self.set_again(summary),
            ForSession::Reports(last) => self.reported(last, summary),
            ForSession::ReadBack(asked) => self.note_properties(asked, &answer),
        }
    }

    /// A command that restores a session.
    fn restored(&mut self, last: bool, summary: &ReplySummary) -> After {
        if summary.error.is_some() {
            return After::Unrestored(Behind::Unknown);
        }
        if !last {
            return After::Nothing;
        }
        let read = self.note_schema_sent(summary);
        if read.is_ok() {
            self.backend.note_accepted(Some(self.client));
        }
        After::if_read(read, After::Stands)
    }

    /// Takes an answer without whose success its client's statement has no effect.
    fn joined(&mut self, last: bool, summary: &ReplySummary) -> After {
        if summary.error.is_some() {
            return After::Unrestored(Behind::NotRun);
        }
        if !last {
            return After::Nothing;
        }
        self.backend.note_accepted(Some(self.client));
        self.note_runs();
        let runs = self.ends.client == ClientState::Running;
        let joined = runs && self.client.statement.send_mode != SendMode::Anywhere;
        let more = summary.status.unwrap_or_default() & status::MORE_RESULTS != 0;
        match joined && !more {
            // Nobody would ever answer.
            true => After::Lose("the server found no statement in the client's text"),
            false => After::Nothing,
        }
    }

    /// A BEGIN that its client has had an answer to.
    fn begun(&mut self, summary: &ReplySummary) -> After {
        if summary.error.is_some() {
            return After::Unrestored(Behind::Unknown);
        }
        // Its client has been told of the beginning, if it is told of transactions at all.
        let wanted = wanted_by(&*self.client, self.context.server);
        let bound = self.backend.bound_mut();
        let told = match self.ends.capabilities & SESSION_TRACK != 0 {
            true => keep(&summary.changes, &wanted, false, bound, &mut Vec::new()),
            false => Ok(false),
        };
        let transaction = &mut self.backend.transaction;
        let read = changes(&summary.changes, |change| {
            transaction.take(&change);
        });
        match told.is_err() || read.is_err() {
            true => After::Lose(UNREADABLE),
            false => After::Nothing,
        }
    }

    /// A text that was prepared ahead of its client's execution.
    fn prepared_ahead(&mut self, answer: OwnAnswer<'_>) -> After {
        let summary = answer.summary;
        let preparing = self.backend.prepared.preparing.take();
        if let (Some(definition), Some(header)) = (preparing, summary.prepared) {
            self.backend.prepared.add(definition, header.id);
        }
        self.client.last.prepared_ahead();
        match summary.error {
            None => After::Ready,
            Some(_) => After::Replay(answer.collected),
        }
    }

    /// SHOW WARNINGS, which follows each statement that failed or warned.
    ///
    /// An ERR packet carries no trackers. MySQL keeps what the statement changed before it failed
    /// for the next OK, which is this one. MariaDB forgets it; code that may have changed something
    /// before it failed has pinned its client.
    fn warnings_read(&mut self, answer: OwnAnswer<'_>) -> After {
        let (summary, pending) = (answer.summary, self.client.last.pending);
        let explanation = pending.explanation.with_due(summary.due);
        let noted = self.note_changes(summary, explanation);
        let told = noted.and_then(|()| {
            let told = self.tell_later(summary);
            self.note_rolled_back();
            told
        });
        let collected = answer.collected;
        let (client, context) = (&mut *self.client, &self.context);
        client.keep_warnings(
            summary,
            collected,
            context.server,
            &context.retained.warnings,
        );
        After::if_read(told, After::Settle)
    }

    /// A SET that makes the server report what a statement set.
    fn set_again(&mut self, summary: &ReplySummary) -> After {
        let client = &mut *self.client;
        if summary.warned || summary.error.is_some() {
            client.last.invalidate(Reads::DIAGNOSTICS);
        }
        let mut failed = false;
        if let Some(modified) = &mut client.modified {
            modified.awaited = modified.awaited.saturating_sub(1);
            failed = modified.failed;
            modified.failed &= modified.awaited > 0;
        }
        let noted = match &summary.error {
            None => self.note_changes(summary, Explanation::Lasting),
            Some((code, _)) if failed || NOT_BEGUN.contains(code) => Ok(()),
            Some(_) => {
                self.pin(PinReason::UnexplainedChange);
                Ok(())
            }
        };
        After::if_read(noted, After::Settle)
    }

    /// A command by which the server reports what it owes.
    fn reported(&mut self, last: bool, summary: &ReplySummary) -> After {
        if summary.error.is_some() {
            return After::Lose("the server did not report what a statement had changed");
        }
        let taken = self.take_changes(summary);
        if !last {
            return After::if_read(taken, After::Nothing);
        }
        self.backend.reports = Reports::Complete;
        After::if_read(taken, After::Settle)
    }

    /// A question about properties of the session.
    fn note_properties(&mut self, asked: Asked, answer: &OwnAnswer<'_>) -> After {
        let refused = answer.summary.error.is_some();
        if refused && asked.properties == Properties::ROLE && !self.flight.is_empty() {
            // Refused where a reset is about to follow, as in the middle of an XA transaction.
            return After::Nothing;
        }
        let read = Answer::read(asked, &answer.collected, answer.extended);
        match read.filter(|_| !refused) {
            Some(answer) => {
                After::if_read(self.note_answer(asked.properties, &answer), After::GoOn)
            }
            // What it holds, it keeps.
            None if asked.properties == Properties::HOLDINGS => After::GoOn,
            None => After::Lose("the server did not give a session's state back"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::ForBackend;
    use crate::client::modified::Modified;
    use crate::pair::tests::{NOW, Parts, owner, reported};
    use session::read_back::Question;
    use session::statement::Statement;
    use wire::command::ReplyShape;

    fn answered(parts: &mut Parts, purpose: ForSession, summary: &ReplySummary) -> After {
        collected(parts, purpose, summary, b"")
    }

    fn collected(
        parts: &mut Parts,
        purpose: ForSession,
        summary: &ReplySummary,
        bytes: &[u8],
    ) -> After {
        let answer = OwnAnswer {
            summary,
            collected: bytes.to_vec(),
            extended: 0,
        };
        parts.pair().answered(purpose, answer)
    }

    fn error(code: u16) -> ReplySummary {
        ReplySummary {
            error: Some((code, "no".into())),
            ..ReplySummary::default()
        }
    }

    fn ok() -> ReplySummary {
        ReplySummary::default()
    }

    fn runs(parts: &mut Parts, send_mode: SendMode) {
        assert!(parts.client.change_state(ClientState::Running, NOW));
        parts.client.session.statement = Statement::plain(ReplyShape::Results);
        parts.client.session.statement.send_mode = send_mode;
    }

    #[test]
    fn a_state_that_is_refused_is_told_with_what_it_means_for_the_statement() {
        let refused = error(1231);
        for (purpose, behind) in [
            (ForSession::Restore(false), Behind::Unknown),
            (ForSession::Begin, Behind::Unknown),
            (ForSession::Joined(true), Behind::NotRun),
        ] {
            let mut parts = Parts::bound();
            let after = answered(&mut parts, purpose, &refused);
            assert_eq!(after, After::Unrestored(behind));
        }
    }

    #[test]
    fn a_backend_stands_restored_behind_the_last_command_and_counts_as_accepted() {
        let mut parts = Parts::bound();
        parts.backend.begin_dial(Vec::new(), 5);
        let after = answered(&mut parts, ForSession::Restore(false), &ok());
        assert_eq!(after, After::Nothing);
        assert!(!parts.backend.session.state.accepted.is_of(5));
        let after = answered(&mut parts, ForSession::Restore(true), &ok());
        assert_eq!(after, After::Stands);
        assert!(parts.backend.session.state.accepted.is_of(5));
    }

    #[test]
    fn a_text_of_a_client_in_which_there_is_no_statement_costs_the_backend() {
        let mut more = ok();
        more.status = Some(status::MORE_RESULTS);
        for (send_mode, summary, lost) in [
            (SendMode::Joined, ok(), true),
            (SendMode::Joined, more, false),
            (SendMode::Anywhere, ok(), false),
        ] {
            let mut parts = Parts::bound();
            runs(&mut parts, send_mode);
            let after = answered(&mut parts, ForSession::Joined(true), &summary);
            assert_eq!(matches!(after, After::Lose(_)), lost, "{after:?}");
        }
    }

    #[test]
    fn a_set_that_is_told_again_is_taken_and_one_that_failed_pins() {
        let mut parts = Parts::bound();
        let modified = Modified {
            awaited: 2,
            ..Modified::default()
        };
        parts.client.session.modified = Some(Box::new(modified));
        let told = reported("time_zone", "+01:00");
        assert_eq!(
            answered(&mut parts, ForSession::SetAgain, &told),
            After::Settle
        );
        let zone = parts.client.session.state.variable(b"time_zone");
        assert_eq!(zone, Some(&b"+01:00"[..]));
        // No such variable: the client's SET has set nothing either.
        let unknown = error(NOT_BEGUN[0]);
        assert_eq!(
            answered(&mut parts, ForSession::SetAgain, &unknown),
            After::Settle
        );
        assert!(!parts.client.session.pins.is_pinned());
        assert_eq!(parts.client.session.modified.as_ref().unwrap().awaited, 0);
        assert_eq!(
            answered(&mut parts, ForSession::SetAgain, &error(1205)),
            After::Settle
        );
        assert!((parts.client.session.pins).is_pinned_for(PinReason::UnexplainedChange));
    }

    #[test]
    fn a_report_completes_what_was_owed() {
        let mut parts = Parts::bound();
        parts.backend.session.reports = Reports::Due(Explanation::Lasting);
        let mut told = reported("time_zone", "+01:00");
        told.due = Some(Explanation::Lasting);
        let after = answered(&mut parts, ForSession::Reports(false), &told);
        assert_eq!(after, After::Nothing);
        assert_ne!(parts.backend.session.reports, Reports::Complete);
        let after = answered(&mut parts, ForSession::Reports(true), &ok());
        assert_eq!(after, After::Settle);
        assert_eq!(parts.backend.session.reports, Reports::Complete);
        assert!(parts.client.session.state.variable(b"time_zone").is_some());
        assert!(!parts.client.session.pins.is_pinned());
        let after = answered(&mut parts, ForSession::Reports(true), &error(1205));
        assert!(matches!(after, After::Lose(_)), "{after:?}");
    }

    #[test]
    fn a_report_that_makes_no_sense_costs_the_backend() {
        let broken = ReplySummary {
            changes: b"\x00\x7f".to_vec(),
            ..ReplySummary::default()
        };
        let purposes = [
            ForSession::Begin,
            ForSession::Warnings,
            ForSession::SetAgain,
        ];
        for purpose in purposes.into_iter().chain([ForSession::Reports(true)]) {
            let mut parts = Parts::bound();
            parts.client.capabilities = SESSION_TRACK;
            let after = answered(&mut parts, purpose, &broken);
            assert!(matches!(after, After::Lose(_)), "{purpose:?}: {after:?}");
        }
    }

    #[test]
    fn a_session_that_is_not_given_back_costs_the_backend_and_holdings_do_not() {
        let asked = |properties| {
            let question = Question {
                properties,
                ..Question::default()
            };
            ForSession::ReadBack(question.asked())
        };
        let mut parts = Parts::bound();
        let acquired = asked(Properties::HOLDINGS);
        assert_eq!(answered(&mut parts, acquired, &error(1205)), After::GoOn);
        let role = asked(Properties::ROLE);
        let after = answered(&mut parts, role, &error(1399));
        assert!(matches!(after, After::Lose(_)), "{after:?}");
        // A reset is about to follow.
        let own =
            crate::backend::InFlight::own(Some(owner()), ForBackend::GiveBack, ReplyShape::Status);
        parts.backend.flight.expect(own);
        assert_eq!(answered(&mut parts, role, &error(1399)), After::Nothing);
    }

    #[test]
    fn what_cannot_be_prepared_ahead_is_the_error_of_its_execution() {
        let mut parts = Parts::bound();
        let after = collected(&mut parts, ForSession::Ahead, &error(1146), b"its error");
        assert_eq!(after, After::Replay(b"its error".to_vec()));
        assert_eq!(answered(&mut parts, ForSession::Ahead, &ok()), After::Ready);
    }
}
