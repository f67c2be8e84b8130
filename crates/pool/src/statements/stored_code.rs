//! Stored code that a client's text runs, as a group knows it.
//!
//! What is known of code on the server is a catalogue that all groups share ([`CodeCatalogue`]). A
//! group keeps the names that it has seen last ([`Seen`]) and looks for later ones where it judges
//! a text, which costs the load of one number. Here a text is judged: whether it reaches triggers,
//! views or columns with code, what the routines that it calls come down to, what of the statement
//! before is asked for inside of them, and what code it defines. What follows for the client and
//! its backend is decided by who asks.
//!
//! The problem: a CALL, or a function that is not the server's own, may leave anything in its
//! session, so its client would keep its backend for good; an application that lives by stored
//! procedures would share none. The mechanism: the text names the routines, and the catalogue has
//! judged each of them with all that it calls, fires and reads. Where every routine that a text may
//! mean leaves nothing but what is followed anyway, the statement is as any other: what the
//! trackers report becomes the session's, the user variables that the code may set are read back
//! as those that a text sets, LAST_INSERT_ID() and FOUND_ROWS() as after any statement that may
//! change them.
//!
//! Not known, and so as ever: a routine that the catalogue does not have, or whose text it was not
//! shown; names that are not ASCII; what stands in Oracle's mode, where `a.b` may be a routine of a
//! package; a name that is a loaded function's too; code that reads what the statement before its
//! call left, since that may be on another backend; on MySQL a procedure that may count no rows,
//! whose OK then tells the count of before.
//!
//! Invariant: a text is judged by names that are no older than the judgement; who keeps one asks
//! whether it still holds ([`Seen::short`]).

use crate::server::watched::code_catalogue::{CodeCatalogue, Seen, object_of};
use session::beforehand::hides_reads;
use session::known_code::Known;
use session::state::Session;
use session::statement::Statement;
use sql::classify::stored::{Definitions, asked_by, run_by};
use sql::classify::{self, PinCause, Reads, Verb};
use sql::lex::{Kind, LexMode, Lexer};
use std::sync::atomic::Ordering;

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

/// Question of stored code about the statement before, which can be answered where the code is to
/// run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inside {
    /// Nothing that its client's backend does not know.
    Known,
    /// ROW_COUNT(), which a command in front tells.
    Told,
    /// Something that only another backend knew.
    Gone,
}

impl Inside {
    /// Notes with the statement what is to be told in front of it.
    pub(crate) fn mark(self, statement: &mut Statement) {
        if self == Inside::Told {
            statement.looks_back = statement.looks_back.union(Reads::ROW_COUNT);
        }
    }
}

/// Questions of a text about the statement before, as far as its words alone tell.
#[derive(Debug)]
pub(crate) struct Asking<'t> {
    text: SchemaText<'t>,
    /// It calls stored code.
    calls: bool,
    /// Questions of triggers and views.
    named: Reads,
    /// Questions of its own though not all of it is read.
    shown: Reads,
    /// Its first statement, if it is several.
    first: Option<(&'t [u8], classify::Statement)>,
}

/// A group's knowledge of stored code, and the sources of more.
pub(crate) struct CodeSeen<'a> {
    pub(crate) catalogue: &'a CodeCatalogue,
    /// The server's, where a session has set no other.
    pub(crate) sql_mode: &'a str,
    pub(crate) seen: &'a mut Seen,
}

impl CodeSeen<'_> {
    /// Sees the latest names, and gives their version in short.
    pub(crate) fn see(&mut self) -> u16 {
        if self.catalogue.version.load(Ordering::Acquire) != self.seen.version {
            *self.seen = self.catalogue.seen();
        }
        self.seen.short()
    }

    /// True if any trigger or view is known to ask about the statement before.
    pub(crate) fn any_asks(&mut self) -> bool {
        self.see();
        self.seen.names.any_asks(false)
    }

    /// True if a text may run code in triggers and views.
    pub(crate) fn runs_triggers_or_views(&mut self, text: SchemaText<'_>) -> bool {
        self.see();
        let names = &self.seen.names;
        !names.is_empty()
            && !self.names_none(text)
            && names.reached_by((text.sql, text.mode), text.schema, reads(text.found))
    }

    /// Notes what a text defines, if that is code; from here on it counts. Gives its number,
    /// for [`CodeCatalogue::is_defined`].
    pub(crate) fn defines(&mut self, text: SchemaText<'_>, defined: Definitions) -> Option<u64> {
        if !self.catalogue.on {
            return None;
        }
        self.see();
        let tables = defined.tables && !self.seen.names.is_empty();
        if !defined.code && !tables && defined.list.is_empty() {
            return None;
        }
        let objects = defined.list.into_iter();
        let objects = objects.map(|one| object_of(one, text.schema)).collect();
        Some(self.catalogue.defines(objects))
    }

    /// Knowledge of the stored code that a text calls, if it calls any and all is known.
    pub(crate) fn known(&mut self, text: SchemaText<'_>, session: &Session) -> Option<Known> {
        let SchemaText {
            sql,
            mode,
            found,
            schema,
            ..
        } = text;
        if !found.causes.contains(PinCause::StoredCode) || !self.catalogue.on {
            return None;
        }
        self.see();
        let sql_mode = session.value(b"sql_mode");
        let sql_mode = sql_mode.unwrap_or(self.sql_mode.as_bytes());
        if sql_mode
            .split(|&byte| byte == b',')
            .any(|mode| mode == b"ORACLE")
        {
            return None;
        }
        // A function may count before its own statement has asked, or behind.
        let counts = Reads::ROW_COUNT
            .union(Reads::FOUND_ROWS)
            .union(Reads::DIAGNOSTICS)
            .union(Reads::LAST_GTID);
        if found.own_reads.intersects(counts) {
            return None;
        }
        let run = run_by(sql, mode, found)?;
        let (leaves, sets) = self.seen.names.known(&run, schema, mode.server)?;
        Some(Known {
            leaves,
            sets: sets.into_iter().collect(),
        })
    }

    /// Questions of a text inside of code, or where it is not read to its end. `None`: none.
    pub(crate) fn asking<'t>(&mut self, text: SchemaText<'t>) -> Option<Asking<'t>> {
        let found = text.found;
        let calls = found.causes.contains(PinCause::StoredCode);
        let named = self.asked_by_named(text);
        let hides = hides_reads(found);
        if !calls && !hides && named.is_empty() {
            return None;
        }
        let first = first_of_several((text.sql, text.mode), found);
        // What stands behind the first of several may be no statement at all; the first runs.
        let shown = match &first {
            Some((_, first)) if hides && !hides_reads(first) => first.own_reads,
            _ => Reads::NONE,
        };
        // What cannot be cut into statements may ask for anything, and is the server's to refuse.
        // What stands behind a SET that changes how it is read asks in the same words in each mode.
        let read = found.multi && hides && found.own_reads != Reads::ALL;
        let shown = match read {
            true => shown.union(found.own_reads),
            false => shown,
        };
        if !calls && shown.is_empty() && named.is_empty() {
            return None;
        }
        Some(Asking {
            text,
            calls,
            named,
            shown,
            first,
        })
    }

    /// All that it asks for, with what is known of the code that it runs.
    pub(crate) fn asked(&mut self, asking: Asking<'_>) -> Reads {
        let Asking {
            text,
            calls,
            named,
            shown,
            first,
        } = asking;
        let found = text.found;
        let mut asked = match found.causes.contains(PinCause::Unknown) {
            _ if !calls => Reads::NONE,
            true => Reads::NONE,
            false => found.own_reads,
        };
        asked = asked.union(shown);
        let left = first
            .as_ref()
            .map_or(Reads::NONE, |first| left_by(&first.1));
        // What the first of several statements leaves comes too late for what it reaches itself.
        let at_once = first.as_ref().map_or(Reads::NONE, |(sql, found)| {
            self.asked_by_named(SchemaText { sql, found, ..text })
        });
        asked = asked.union(at_once).union(named.without(left));
        // A text that changes how its rest is read is read as far as its first statement.
        let runs = || {
            asked_by(text.sql, text.mode, found).or_else(|| {
                let (sql, first) = first.as_ref()?;
                asked_by(sql, text.mode, first)
            })
        };
        if calls
            && self.catalogue.on
            && let Some(run) = runs()
        {
            self.see();
            let inside = self.seen.names.asked_by(&run, text.schema);
            // What the first of several statements leaves is its text's own.
            asked = asked.union(inside.without(left));
        }
        asked
    }

    /// True if it is known that a text has none of the latest names in it.
    fn names_none(&self, text: SchemaText<'_>) -> bool {
        text.names_none_of == Some(self.seen.version)
    }

    /// Results of the statement before that the triggers which a text may fire, and the views that
    /// it may read, read.
    fn asked_by_named(&mut self, text: SchemaText<'_>) -> Reads {
        let found = text.found;
        let runs_none = matches!(found.verb, Verb::Ddl | Verb::Show | Verb::Explain);
        if runs_none && !found.multi {
            return Reads::NONE;
        }
        self.see();
        let (names, reads) = (&self.seen.names, reads(found));
        match names.any_asks(reads) && !self.names_none(text) {
            true => names.asked_by_named((text.sql, text.mode), text.schema, reads),
            false => Reads::NONE,
        }
    }
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

/// The first statement of a text of several.
fn first_of_several<'a>(
    (sql, mode): (&'a [u8], LexMode),
    found: &classify::Statement,
) -> Option<(&'a [u8], classify::Statement)> {
    if !found.multi {
        return None;
    }
    let semicolon = Lexer::new(sql, mode).find(|token| token.kind == Kind::Semicolon);
    let first = &sql[..semicolon?.start];
    Some((first, classify::classify(first, mode)))
}

/// Results that the first statement of a text of several replaces.
fn left_by(first: &classify::Statement) -> Reads {
    match first.verb {
        Verb::Other | Verb::Begin => Reads::NONE,
        _ if first.causes.contains(PinCause::StoredCode) => Reads::NONE,
        _ => first.replaces,
    }
}

#[cfg(test)]
mod tests;
