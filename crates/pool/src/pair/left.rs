//! What a client's statement has left when its reply is complete: counts, conditions, FOUND_ROWS().
//!
//! The problem: the next statement may ask for any of it, and both ends have a part: the client
//! what the reply told, its backend the rest, as long as nothing changes it there. The mechanism:
//! [`session::last_statement::LastStatement`] says what a statement leaves; here the backend's part
//! is brought to the same, and what it will not be able to tell is taken from the client.
//!
//! Invariant: a FOUND_ROWS() that is noted of a backend is what its server would tell there.

use crate::backend::InFlight;
use crate::client::Company;
use crate::pair::Pair;
use session::last_gtid::doubt;
use session::last_statement::{COUNTS, Finished};
use session::read_back::Properties;
use session::reply_summary::ReplySummary;
use session::standing::Standing;
use sql::classify::Reads;

impl<S> Pair<'_, S> {
    /// Notes what the client's statement has left; `alone`: nothing of others stands behind it on
    /// the backend.
    pub(crate) fn note_left(&mut self, command: &InFlight, summary: &ReplySummary, alone: bool) {
        let client = &mut *self.client;
        client.company = Company::Any;
        client.note_result(summary);
        self.leave_names_to_server();
        if let Some((code, _)) = &summary.error {
            doubt(self.context.gtids, self.owner, *code);
        }
        self.note_counts(command, summary, alone);
        let (client, backend) = (&mut *self.client, &*self.backend);
        let mysql = self.context.server.flavour.is_mysql();
        if !mysql && (summary.error.is_some() || summary.warnings > 0) {
            client.last.owed.trace = client.trace_of(summary);
        }
        let (session, there) = (&client.session, &backend.session);
        // What is to follow would begin with COM_SET_OPTION, which sets the counts itself.
        if there.multi_statements != session.multi_statements {
            client.last.disown(COUNTS);
        }
        // COM_INIT_DB is sent in whatever schema the backend is; where it fails, the session's own
        // is to be set in front of what follows.
        let moves = client.statement.standing == Standing::NewSchema;
        if summary.error.is_some() && moves && there.schema != session.schema {
            client.last.disown(COUNTS.union(Reads::DIAGNOSTICS));
        }
    }

    /// Notes what the statement has left of conditions and counts.
    fn note_counts(&mut self, command: &InFlight, summary: &ReplySummary, alone: bool) {
        let (client, backend) = (&mut *self.client, &mut *self.backend);
        let found_before = client.last.found_rows.get();
        let kept = client.last.ended(&Finished {
            statement: &client.statement,
            summary,
            rows: command.reply.rows(),
            alone,
            mysql: self.context.server.flavour.is_mysql(),
        });
        if !kept {
            let unsure = client.last.is_found_unsure(alone);
            backend.unsettled = backend.found.zip(found_before).filter(|_| unsure);
            let asked = client.last.owed.changed.intersects(Properties::FOUND_ROWS);
            if backend.unsettled.is_some() && !asked {
                client.last.found_rows.unsettle();
            }
        }
        backend.found = match client.last.is_native(Reads::FOUND_ROWS) {
            true => client.last.found_rows.get(),
            false => backend.found.filter(|_| kept),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Purpose;
    use crate::pair::tests::{Parts, owner};
    use session::found::Found;
    use session::state::Session;
    use std::rc::Rc;
    use wire::command::ReplyShape;

    fn ends(parts: &mut Parts, summary: &ReplySummary, alone: bool) {
        let command = InFlight::own(Some(owner()), Purpose::Statement, ReplyShape::Results);
        parts.pair().note_left(&command, summary, alone);
    }

    /// The backend stands in a session that differs so from its client's.
    fn differs(parts: &mut Parts, change: impl FnOnce(&mut Session)) {
        let mut session = (*parts.client.session).clone();
        change(&mut session);
        parts.backend.session = Rc::new(session);
    }

    #[test]
    fn counts_are_not_left_to_a_backend_that_is_told_of_several_statements_first() {
        let mut parts = Parts::leased();
        ends(&mut parts, &ReplySummary::default(), true);
        assert!(parts.client.last.is_native(COUNTS));
        differs(&mut parts, |session| {
            session.multi_statements = !session.multi_statements;
        });
        ends(&mut parts, &ReplySummary::default(), true);
        assert!(!parts.client.last.is_native(COUNTS));
    }

    #[test]
    fn the_error_of_a_change_of_schema_is_not_left_where_another_schema_is_set_first() {
        let failed = ReplySummary {
            error: Some((1049, "Unknown database".into())),
            ..ReplySummary::default()
        };
        let asked = COUNTS.union(Reads::DIAGNOSTICS);
        for (schema, native) in [(None, true), (Some(&b"other"[..]), false)] {
            let mut parts = Parts::leased();
            parts.client.statement.standing = Standing::NewSchema;
            differs(&mut parts, |session| {
                session.schema = schema.map(Into::into)
            });
            ends(&mut parts, &failed, true);
            assert_eq!(parts.client.last.is_native(asked), native);
        }
    }

    #[test]
    fn a_count_is_the_backends_only_where_nothing_of_others_stands_behind() {
        let mut parts = Parts::leased();
        parts.client.statement.found = Found::Rows;
        ends(&mut parts, &ReplySummary::default(), true);
        assert_eq!(parts.backend.found, Some(0));
        ends(&mut parts, &ReplySummary::default(), false);
        assert_eq!(parts.backend.found, None);
        assert_eq!(
            parts.client.last.found_rows.get(),
            Some(0),
            "it is the client's"
        );
    }
}
