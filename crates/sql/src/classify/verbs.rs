//! The first words of statements, and the stages of reading that they lead to.
//!
//! A statement whose first word is not here is unknown, and what is unknown pins. So a word may
//! stand here only if the whole statement class is understood: either it leaves nothing in the
//! session that the server's trackers do not report, or its row names the pin, or the scanner has
//! a stage that reads on.
//!
//! Invariants (tested): sorted, upper case, every word at most as long as [`Folded`] holds.

use super::names::Folded;
use super::{PinCause, Verb};

/// Position of the scanner in a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Place before the first word.
    First,
    /// Only the general checks.
    Body,
    /// Behind BEGIN.
    Begin,
    /// Behind COMMIT or ROLLBACK.
    Completion,
    /// Behind START.
    Start,
    /// Behind LOCK.
    Lock,
    /// Behind FLUSH.
    Flush,
    /// Behind SHOW.
    Show,
    /// Behind EXPLAIN, up to the statement that it explains.
    Explain,
    /// Behind WITH, up to the statement's own verb.
    With,
    /// Behind LOAD, up to INTO.
    Load,
    /// Behind INSERT and the like, before the table's name.
    Target,
    /// Table's name.
    TargetName,
    /// Accounts and privileges: nothing is called, and `a@b` is an account.
    Accounts,
    /// Behind CREATE, ALTER or DROP, up to the kind of object.
    Ddl,
    /// Definition of a view, which is not run.
    View,
    /// Definition of a stored routine, which is not run.
    Routine,
    /// Place before an assignment of SET.
    Assignment,
    /// Variable's name.
    Variable,
    /// First token of a value.
    Value,
    /// Behind a value that turns `sql_auto_is_null` off.
    Off,
    /// Rest of an assignment.
    Rest,
    /// Behind SET STATEMENT, up to FOR.
    SetStatement,
}

/// Facts of a statement's first word.
#[derive(Clone, Copy, Debug)]
pub(super) struct First {
    pub(super) verb: Verb,
    pub(super) stage: Stage,
    pub(super) pin: Option<PinCause>,
}

/// The meaning of `word` at the start of a statement, if it can start one.
pub(super) fn first(word: &[u8]) -> Option<First> {
    let word = Folded::new(word)?;
    let found = FIRST
        .binary_search_by(|row| row.0.as_bytes().cmp(word.as_bytes()))
        .ok()?;
    let &(_, verb, stage, pin) = FIRST.get(found)?;
    Some(First { verb, stage, pin })
}

/// All first words of the table.
pub(super) fn first_words() -> impl Iterator<Item = &'static str> {
    FIRST.iter().map(|row| row.0)
}

type Row = (&'static str, Verb, Stage, Option<PinCause>);

/// A statement that the general checks of names and variables judge completely.
const fn plain(word: &'static str, verb: Verb) -> Row {
    (word, verb, Stage::Body, None)
}

/// A statement of which a later word decides.
const fn read_on(word: &'static str, verb: Verb, stage: Stage) -> Row {
    (word, verb, stage, None)
}

/// A statement that pins whatever follows.
const fn pins(word: &'static str, verb: Verb, cause: PinCause) -> Row {
    (word, verb, Stage::Body, Some(cause))
}

static FIRST: [Row; 67] = [
    read_on("ALTER", Verb::Ddl, Stage::Ddl),
    read_on("ANALYZE", Verb::Explain, Stage::Explain),
    pins("BACKUP", Verb::Admin, PinCause::BackupLock),
    read_on("BEGIN", Verb::Begin, Stage::Begin),
    plain("CACHE", Verb::Admin),
    pins("CALL", Verb::Call, PinCause::StoredCode),
    pins("CASE", Verb::Other, PinCause::StoredCode),
    plain("CHANGE", Verb::Admin),
    plain("CHECK", Verb::Admin),
    plain("CHECKSUM", Verb::Admin),
    plain("CLONE", Verb::Admin),
    read_on("COMMIT", Verb::Commit, Stage::Completion),
    read_on("CREATE", Verb::Ddl, Stage::Ddl),
    plain("DEALLOCATE", Verb::Prepare),
    pins("DECLARE", Verb::Other, PinCause::StoredCode),
    plain("DELETE", Verb::Delete),
    read_on("DESC", Verb::Explain, Stage::Explain),
    read_on("DESCRIBE", Verb::Explain, Stage::Explain),
    plain("DO", Verb::Do),
    read_on("DROP", Verb::Ddl, Stage::Ddl),
    pins("EXECUTE", Verb::Prepare, PinCause::TextExecute),
    read_on("EXPLAIN", Verb::Explain, Stage::Explain),
    read_on("FLUSH", Verb::Admin, Stage::Flush),
    pins("FOR", Verb::Other, PinCause::StoredCode),
    plain("GET", Verb::Diagnostics),
    read_on("GRANT", Verb::Admin, Stage::Accounts),
    pins("HANDLER", Verb::Handler, PinCause::Handler),
    plain("HELP", Verb::Admin),
    pins("IF", Verb::Other, PinCause::StoredCode),
    plain("IMPORT", Verb::Admin),
    read_on("INSERT", Verb::Insert, Stage::Target),
    plain("INSTALL", Verb::Admin),
    plain("KILL", Verb::Kill),
    read_on("LOAD", Verb::Load, Stage::Load),
    read_on("LOCK", Verb::Lock, Stage::Lock),
    pins("LOOP", Verb::Other, PinCause::StoredCode),
    plain("OPTIMIZE", Verb::Admin),
    pins("PREPARE", Verb::Prepare, PinCause::TextPrepare),
    plain("PURGE", Verb::Admin),
    plain("RELEASE", Verb::Savepoint),
    read_on("RENAME", Verb::Ddl, Stage::Accounts),
    plain("REPAIR", Verb::Admin),
    pins("REPEAT", Verb::Other, PinCause::StoredCode),
    read_on("REPLACE", Verb::Replace, Stage::Target),
    plain("RESET", Verb::Admin),
    plain("RESIGNAL", Verb::Diagnostics),
    plain("RESTART", Verb::Admin),
    read_on("REVOKE", Verb::Admin, Stage::Accounts),
    read_on("ROLLBACK", Verb::Rollback, Stage::Completion),
    plain("SAVEPOINT", Verb::Savepoint),
    plain("SELECT", Verb::Select),
    read_on("SET", Verb::Set, Stage::Assignment),
    read_on("SHOW", Verb::Show, Stage::Show),
    plain("SHUTDOWN", Verb::Admin),
    plain("SIGNAL", Verb::Diagnostics),
    read_on("START", Verb::Admin, Stage::Start),
    plain("STOP", Verb::Admin),
    plain("TABLE", Verb::Select),
    plain("TRUNCATE", Verb::Ddl),
    plain("UNINSTALL", Verb::Admin),
    plain("UNLOCK", Verb::Lock),
    plain("UPDATE", Verb::Update),
    plain("USE", Verb::Use),
    plain("VALUES", Verb::Select),
    pins("WHILE", Verb::Other, PinCause::StoredCode),
    read_on("WITH", Verb::Select, Stage::With),
    pins("XA", Verb::Xa, PinCause::Xa),
];

/// Fails a test if the table cannot be searched.
#[cfg(test)]
pub(super) fn check_sorted() {
    for pair in FIRST.windows(2) {
        assert!(pair[0].0 < pair[1].0, "{} {}", pair[0].0, pair[1].0);
    }
    for (word, ..) in FIRST {
        assert!(first(word.as_bytes()).is_some(), "{word}");
    }
}
