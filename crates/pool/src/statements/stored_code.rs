//! Stored code that a client's text runs, as a group knows it.
//!
//! Code on the server stands in a catalogue that all groups share ([`CodeCatalogue`]). A
//! group keeps the names that it has seen last ([`Seen`]) and looks for later ones before it judges
//! a text, which costs the load of one number. Here a text is judged: whether it reaches triggers,
//! views or columns with code, what the routines that it calls come down to, what of the statement
//! before is asked for inside of them, and what code it defines. What follows for the client and
//! its backend is decided by who asks.
//!
//! The problem: a CALL, or a function that is not the server's own, may leave anything in its
//! session, so its client would keep its backend for good; an application that lives by stored
//! procedures would share none. The mechanism: the text names the routines, and the catalogue has a
//! verdict on each of them with all that it calls, fires and reads. Where every routine that a text
//! may mean is clean, the statement is as any other: what the trackers report becomes the
//! session's, LAST_INSERT_ID() and FOUND_ROWS() are read back as after any statement that may
//! change them.
//!
//! Not known, and so pinned: a routine that the catalogue does not have, or whose text it was not
//! shown; names that are not ASCII; what stands in Oracle's mode, where `a.b` may be a routine of a
//! package; a name that is a loaded function's too; an anonymous block; a text that asks beside its
//! call what the statement before left. Code that may read that itself pins, and the text is
//! refused where that statement has run elsewhere.
//!
//! Invariant: a text is judged by names that are no older than the judgement; who keeps one asks
//! whether it still holds ([`Seen::short`]).

use crate::group::shared::Shared;
use crate::server::watched::code_catalogue::{CodeCatalogue, Seen, object_of};
use session::plan::{asked_by_literals, hides_reads};
use session::state::Session;
use session::text::mentions;
use sql::classify::stored::{Definitions, Finding, asked_in, calls_in};
use sql::classify::{self, PinCause, Reads, Verb};
use sql::lex::LexMode;

/// A text, and what it is known to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SchemaText<'t> {
    pub(crate) sql: &'t [u8],
    pub(crate) mode: LexMode,
    pub(crate) found: &'t classify::Statement,
    /// Its default schema, empty where there is none, if that is certain.
    pub(crate) schema: Option<&'t [u8]>,
    /// Version of the catalogue that was searched for the names in it, if it has none of them.
    pub(crate) names_none_of: Option<u64>,
}

/// Stored code as a group has seen it last.
#[derive(Clone, Copy)]
pub(crate) struct CodeSeen<'a> {
    pub(crate) catalogue: &'a CodeCatalogue,
    /// The server's, where a session has set no other.
    pub(crate) sql_mode: &'a str,
    pub(crate) seen: &'a Seen,
}

impl<'a> CodeSeen<'a> {
    /// Knowledge of a group that has `seen` so much of it.
    pub(crate) fn of(shared: &'a Shared, seen: &'a Seen) -> CodeSeen<'a> {
        CodeSeen {
            catalogue: &shared.watched.code_catalogue,
            sql_mode: &shared.server.sql_mode,
            seen,
        }
    }
}

impl CodeSeen<'_> {
    /// True if any trigger or view is known to ask about the statement before.
    pub(crate) fn any_asks(&self) -> bool {
        self.seen.names.any_asks()
    }

    /// Finding about the code in the triggers and views that a text names.
    pub(crate) fn named(&self, text: SchemaText<'_>) -> Finding {
        let names = &self.seen.names;
        if names.is_empty() || text.names_none_of == Some(self.seen.version) {
            return Finding::default();
        }
        names.named_in((text.sql, text.mode), text.schema, reads(text.found))
    }

    /// Notes what a text defines, if that is code; from here on it counts. Gives its number,
    /// for [`CodeCatalogue::is_defined`].
    pub(crate) fn defines(&self, text: SchemaText<'_>, defined: Definitions) -> Option<u64> {
        if !self.catalogue.on {
            return None;
        }
        let tables = defined.tables && !self.seen.names.is_empty();
        if !defined.code && !tables && defined.list.is_empty() {
            return None;
        }
        let objects = defined.list.into_iter();
        let objects = objects.map(|one| object_of(one, text.schema)).collect();
        Some(self.catalogue.defines(objects))
    }

    /// Finding about the routines that a text calls, and whether all are known.
    fn called(&self, text: SchemaText<'_>) -> (Finding, bool) {
        match calls_in(text.sql, text.mode).filter(|_| self.catalogue.on) {
            Some(calls) => (self.seen.names).called_by(&calls, text.schema, text.mode.server),
            None => (Finding::default(), false),
        }
    }

    /// True if a text calls stored code, and all that it calls is known to be clean.
    pub(crate) fn knows(&self, text: SchemaText<'_>, session: &Session) -> bool {
        text.found.causes.contains(PinCause::StoredCode) && self.knows_all_of(text, session)
    }

    fn knows_all_of(&self, text: SchemaText<'_>, session: &Session) -> bool {
        let found = text.found;
        // What is reported of variables behind SET STATEMENT may be its own, or the code's.
        let unsure = found.passing || is_block(found);
        // What changes how the rest of the text is read.
        let rereads = found.multi && (found.sets_charset || mentions(text.sql, b"sql_mode"));
        let sql_mode = session.value(b"sql_mode");
        let sql_mode = sql_mode.unwrap_or(self.sql_mode.as_bytes());
        let oracle = (sql_mode.split(|&byte| byte == b',')).any(|mode| mode == b"ORACLE");
        // A function may count before its own statement has asked, or behind.
        let counts = Reads::ROW_COUNT
            .union(Reads::FOUND_ROWS)
            .union(Reads::DIAGNOSTICS)
            .union(Reads::LAST_GTID);
        if unsure || rereads || oracle || found.own_reads.intersects(counts) {
            return false;
        }
        let (found, known) = self.called(text);
        known && !found.pins()
    }

    /// Results of the statement before that a text, or code that it runs, may ask of its backend.
    pub(crate) fn asked(&self, text: SchemaText<'_>) -> Reads {
        let SchemaText {
            sql, mode, found, ..
        } = text;
        let calls = found.causes.contains(PinCause::StoredCode);
        let runs_none = matches!(found.verb, Verb::Ddl | Verb::Show | Verb::Explain);
        let mut asked = Reads::NONE;
        if found.multi || !runs_none {
            asked = self.named(text).asks;
        }
        if calls {
            asked = asked.union(self.called(text).0.asks);
        }
        if found.causes.contains(PinCause::TextExecute) {
            asked = asked.union(asked_by_literals(sql, mode));
        }
        let unread = found.causes.contains(PinCause::Unknown);
        asked.union(match hides_reads(found) {
            false => Reads::NONE,
            // It is the server's to refuse.
            true if unread && !found.multi => Reads::NONE,
            true if found.passing || is_block(found) => asked_in(sql, mode),
            true => found.own_reads,
        })
    }
}

/// True if a text has blocks in it, or what is not understood.
fn is_block(found: &classify::Statement) -> bool {
    let unread = found.causes.contains(PinCause::Unknown);
    unread || matches!(found.verb, Verb::Other | Verb::Begin)
}

/// Statements that write to no table: no trigger fires.
fn reads(found: &classify::Statement) -> bool {
    use Verb::{
        Begin, Commit, Ddl, Diagnostics, Do, Empty, Kill, Lock, Rollback, Savepoint, Select, Set,
        Show, Use,
    };
    let verb = matches!(
        found.verb,
        Begin
            | Commit
            | Ddl
            | Diagnostics
            | Do
            | Empty
            | Kill
            | Lock
            | Rollback
            | Savepoint
            | Select
            | Set
            | Show
            | Use
    );
    verb && !found.multi
}

#[cfg(test)]
mod tests;
