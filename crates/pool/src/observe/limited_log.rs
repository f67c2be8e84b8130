//! Lines about logins and lost connections, as many of a kind in a second as a log can bear.
//!
//! Invariant: a line that is left out is counted, and the count goes with the next line of its
//! kind, or is told by itself.

use crate::errors::reasons::Refusal;
use crate::observe::identity::ClientIdentity;
use crate::observe::log::line_limit::LineLimit;
use crate::observe::log::{Event, Facts, note_of};
use crate::observe::statement_logs::StatementLogs;
use reactor::Time;
use std::time::Duration;

/// Between two lines about clients that were closed for idling.
const IDLE_EVERY: Duration = Duration::from_secs(60);

/// The lines of a group that are not about statements.
#[derive(Debug, Default)]
pub(crate) struct LimitedLog {
    logins: LineLimit,
    losses: LineLimit,
    refusals: LineLimit,
    kills: LineLimit,
    /// Moment of the last line about idle clients, and how many there were by then.
    idle_logged: (Time, u64),
}

impl LimitedLog {
    /// Logs a client that was turned away before it had logged in.
    pub(crate) fn login_refused(
        &mut self,
        now: Time,
        identity: &ClientIdentity,
        refusal: &Refusal,
    ) {
        if let Some(omitted) = self.logins.admit(now) {
            let facts = Facts {
                reason: Some(refusal.name()),
                omitted,
                ..identity.facts()
            };
            note_of(Event::LoginRefused, &facts, format_args!("{refusal}"));
        }
    }

    /// Logs a client that has not proven its name; `reason` is the word for why.
    pub(crate) fn login_failed(
        &mut self,
        now: Time,
        identity: &ClientIdentity,
        reason: &str,
        text: &str,
    ) {
        if let Some(omitted) = self.logins.admit(now) {
            let facts = Facts {
                reason: Some(reason),
                omitted,
                ..identity.facts()
            };
            note_of(Event::LoginFailed, &facts, format_args!("{text}"));
        }
    }

    /// Logs a limit that a client past its login, or its statement, has met.
    pub(crate) fn refused(&mut self, now: Time, identity: &ClientIdentity, refusal: &Refusal) {
        if let Some(omitted) = self.refusals.admit(now) {
            let facts = Facts {
                reason: Some(refusal.name()),
                digest: identity.facts_of_end().digest,
                omitted,
                ..identity.facts()
            };
            note_of(Event::Refused, &facts, format_args!("{refusal}"));
        }
    }

    /// Logs the loss of the connection with this number of the server's, and of what this client
    /// had there, if one had something.
    pub(crate) fn backend_lost(
        &mut self,
        now: Time,
        identity: Option<&ClientIdentity>,
        thread: u32,
        why: &str,
    ) {
        if let Some(omitted) = self.losses.admit(now) {
            let facts = Facts {
                omitted,
                ..identity
                    .map(ClientIdentity::facts_of_end)
                    .unwrap_or_default()
            };
            let text = format_args!("thread {thread} of the server: {why}");
            note_of(Event::BackendLost, &facts, text);
        }
    }

    /// Logs a client that loses its connection for a limit of time.
    pub(crate) fn time_limit(&mut self, now: Time, identity: &ClientIdentity, refusal: &Refusal) {
        if let Some(omitted) = self.losses.admit(now) {
            let facts = Facts {
                reason: Some(refusal.name()),
                omitted,
                ..identity.facts_of_end()
            };
            note_of(Event::TimeLimit, &facts, format_args!("{refusal}"));
        }
    }

    /// Logs a KILL of a client, or of its statement (`query`), and who asked for it (`by`).
    pub(crate) fn killed(&mut self, now: Time, identity: &ClientIdentity, query: bool, by: &str) {
        if let Some(omitted) = self.kills.admit(now) {
            let facts = Facts {
                cuts_transaction: identity.in_transaction && !query,
                omitted,
                ..identity.facts_of_end()
            };
            let what = if query { "its statement is" } else { "it is" };
            note_of(
                Event::Killed,
                &facts,
                format_args!("{what} ended by KILL, {by}"),
            );
        }
    }

    /// Tells how many clients of the group were closed for idling since that was told last.
    pub(crate) fn tell_idle(&mut self, now: Time, closed: u64) {
        let (since, told) = self.idle_logged;
        if closed > told && now.since(since) >= IDLE_EVERY {
            self.idle_logged = (now, closed);
            let text = format_args!(
                "{} clients were closed for idling longer than they may (idle_s_max, wait_timeout)",
                closed - told
            );
            note_of(Event::IdleClosed, &Facts::default(), text);
        }
    }

    /// Tells how many lines were left out, also of those about statements, where no line has told
    /// it.
    pub(crate) fn tell_omitted(&mut self, statements: &mut StatementLogs, now: Time) {
        for (event, omitted) in self.omitted(statements, now) {
            let facts = Facts {
                omitted,
                ..Facts::default()
            };
            let text = format_args!("{omitted} lines of this event were left out");
            note_of(event, &facts, text);
        }
    }

    /// Lines that were left out, by kind, where no line has told it.
    fn omitted(&mut self, statements: &mut StatementLogs, now: Time) -> Vec<(Event, u64)> {
        let limits = [
            (Event::LoginFailed, &mut self.logins),
            (Event::BackendLost, &mut self.losses),
            (Event::Refused, &mut self.refusals),
            (Event::Killed, &mut self.kills),
            (Event::SlowStatement, &mut statements.slow_lines),
            (Event::Statement, &mut statements.lines),
        ];
        let rest = limits
            .into_iter()
            .filter_map(|(event, limit)| Some((event, limit.rest(now)?)));
        rest.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::log::line_limit::LINES_PER_S_MAX;

    #[test]
    fn lines_of_one_kind_are_bounded_together_and_what_is_left_out_is_told() {
        let (mut log, mut statements) = (LimitedLog::default(), StatementLogs::default());
        let begin = Time(5_000_000_000);
        for _ in 0..LINES_PER_S_MAX {
            log.login_refused(begin, &ClientIdentity::default(), &Refusal::Draining);
        }
        log.login_failed(begin, &ClientIdentity::default(), "wrong-password", "no");
        log.login_failed(begin, &ClientIdentity::default(), "wrong-password", "no");
        // Another kind has its own share.
        log.backend_lost(begin, None, 1, "it is gone");
        assert!(
            log.omitted(&mut statements, begin).is_empty(),
            "its second lasts"
        );
        let later = begin + Duration::from_secs(1);
        assert_eq!(
            log.omitted(&mut statements, later),
            [(Event::LoginFailed, 2)]
        );
        assert!(
            log.omitted(&mut statements, later).is_empty(),
            "it is told once"
        );
    }
}
