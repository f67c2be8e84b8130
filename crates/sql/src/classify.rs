//! Effects of a statement's text on its session beyond those that the server reports.
//!
//! The pool lets many clients share a backend. Schema, character sets, system variables and
//! transactions are reported by the server's session trackers and restored by difference. User
//! variables, user-level locks, temporary tables, text PREPARE and whatever stored code does are
//! not; a client that may have left such state must keep its backend. [`classify`] finds that out
//! from the tokens of the text, in one pass, without allocation.
//!
//! The rule is one-sided: a needless pin costs a backend, a missing one corrupts a session. So
//! every word that starts a statement and every name that stands before a parenthesis must be
//! known to be harmless, and a text that could be read in two ways is [`PinCause::Unknown`].
//!
//! What it deliberately does not see: triggers, views and column defaults that run stored code.
//! No text shows those; [`stored`] judges the code itself, where the pool can read it.

mod causes;
mod names;
mod routine;
mod scan;
mod set;
pub mod stored;
#[cfg(test)]
mod tests;
mod verbs;

use crate::lex::{Executable, LexMode, Token};
pub use causes::PinCauses;
use scan::Scan;
use serde::{Deserialize, Serialize};
pub use set::rests_at;
pub(crate) use set::session_name;

/// The class of the first statement of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// No statement: white space and comments only.
    Empty,
    /// SELECT, VALUES, TABLE, or WITH before a SELECT; also in parentheses.
    Select,
    /// INSERT
    Insert,
    /// UPDATE, also after WITH.
    Update,
    /// DELETE, also after WITH.
    Delete,
    /// REPLACE
    Replace,
    /// LOAD DATA, LOAD XML, LOAD INDEX
    Load,
    /// SET in all its forms; SET STATEMENT has the verb of the statement that it runs.
    Set,
    /// BEGIN, START TRANSACTION
    Begin,
    /// COMMIT
    Commit,
    /// ROLLBACK, but not ROLLBACK TO.
    Rollback,
    /// SAVEPOINT, RELEASE SAVEPOINT, ROLLBACK TO
    Savepoint,
    /// SHOW
    Show,
    /// USE
    Use,
    /// CREATE, ALTER, DROP, TRUNCATE, RENAME
    Ddl,
    /// CALL
    Call,
    /// DO
    Do,
    /// KILL
    Kill,
    /// EXPLAIN, DESCRIBE, and ANALYZE of a statement.
    Explain,
    /// LOCK, UNLOCK
    Lock,
    /// HANDLER
    Handler,
    /// XA
    Xa,
    /// PREPARE, EXECUTE, DEALLOCATE
    Prepare,
    /// GET DIAGNOSTICS, SIGNAL, RESIGNAL
    Diagnostics,
    /// Accounts, tables' maintenance, replication, plugins: what an administrator does.
    Admin,
    /// Not known.
    Other,
}

impl Verb {
    /// Effect of such a statement on LAST_INSERT_ID(), unless `LAST_INSERT_ID(expr)` or stored code
    /// sets one.
    fn insert_id(self) -> InsertId {
        use Verb::{
            Begin, Commit, Delete, Do, Empty, Explain, Insert, Kill, Lock, Replace, Rollback,
            Savepoint, Select, Set, Show, Update, Use,
        };
        match self {
            Begin | Commit | Delete | Do | Empty | Explain | Kill | Lock | Rollback | Savepoint
            | Select | Set | Show | Update | Use => InsertId::Keeps,
            Insert | Replace => InsertId::InOk,
            _ => InsertId::MaySet,
        }
    }
}

/// Reason why a client must keep its backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PinCause {
    /// `@x` is set, to a value or under a name that cannot be given back exactly (the pool's own
    /// finding, no text's).
    UserVariable,
    /// LOCK TABLES
    LockTables,
    /// FLUSH TABLES ... WITH READ LOCK or FOR EXPORT
    GlobalReadLock,
    /// BACKUP STAGE, BACKUP LOCK, LOCK INSTANCE FOR BACKUP
    BackupLock,
    /// GET_LOCK() and its kin.
    UserLock,
    /// CREATE, ALTER or DROP TEMPORARY
    TemporaryTable,
    /// PREPARE as text.
    TextPrepare,
    /// EXECUTE as text: it runs a text that is not shown.
    TextExecute,
    /// HANDLER
    Handler,
    /// XA
    Xa,
    /// CALL, an anonymous block, or a function that is not known to be built in.
    StoredCode,
    /// SET SESSION AUTHORIZATION; a role under a name that cannot be given back exactly (the
    /// pool's own finding, no text's).
    Role,
    /// NEXTVAL and its long form.
    Sequence,
    /// SET profiling or the optimizer's trace, to anything but off.
    Profiling,
    /// FLUSH STATUS: the session's counters begin at 0.
    SessionStatus,
    /// SET of a session_track_* variable.
    SessionTracking,
    /// SET of such switches on the backend, of which everything is known ([`crate::tracking`]).
    SessionSwitches,
    /// SET of a variable that a later statement uses up, or that cannot be followed while it is on.
    VariableInUse,
    /// SET of a variable whose value nobody can read back.
    SpecialVariable,
    /// SET RESOURCE GROUP
    ResourceGroup,
    /// COMMIT RELEASE, ROLLBACK RELEASE: the server ends the connection.
    Release,
    /// Text that is not understood well enough to exclude any of the others.
    Unknown,
}

impl PinCause {
    /// Every cause, in the order of declaration.
    pub const ALL: [Self; 22] = [
        Self::UserVariable,
        Self::LockTables,
        Self::GlobalReadLock,
        Self::BackupLock,
        Self::UserLock,
        Self::TemporaryTable,
        Self::TextPrepare,
        Self::TextExecute,
        Self::Handler,
        Self::Xa,
        Self::StoredCode,
        Self::Role,
        Self::Sequence,
        Self::Profiling,
        Self::SessionStatus,
        Self::SessionTracking,
        Self::SessionSwitches,
        Self::VariableInUse,
        Self::SpecialVariable,
        Self::ResourceGroup,
        Self::Release,
        Self::Unknown,
    ];

    /// A short stable name for logs and counters.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::UserVariable => "user_variable",
            Self::LockTables => "lock_tables",
            Self::GlobalReadLock => "global_read_lock",
            Self::BackupLock => "backup_lock",
            Self::UserLock => "user_lock",
            Self::TemporaryTable => "temporary_table",
            Self::TextPrepare => "text_prepare",
            Self::TextExecute => "text_execute",
            Self::Handler => "handler",
            Self::Xa => "xa",
            Self::StoredCode => "stored_code",
            Self::Role => "role",
            Self::Sequence => "sequence",
            Self::Profiling => "profiling",
            Self::SessionStatus => "session_status",
            Self::SessionTracking => "session_tracking",
            Self::SessionSwitches => "session_switches",
            Self::VariableInUse => "variable_in_use",
            Self::SpecialVariable => "special_variable",
            Self::ResourceGroup => "resource_group",
            Self::Release => "release",
            Self::Unknown => "unknown",
        }
    }

    /// One sentence for a person who asks why a client is pinned.
    #[must_use]
    pub fn explanation(self) -> &'static str {
        match self {
            Self::UserVariable => {
                "a user variable (@x) has a value or a name that cannot be given back exactly"
            }
            Self::LockTables => "LOCK TABLES holds its locks until the session gives them up",
            Self::GlobalReadLock => {
                "FLUSH TABLES WITH READ LOCK or FOR EXPORT holds a lock of the session"
            }
            Self::BackupLock => "a backup lock or stage belongs to the session that took it",
            Self::UserLock => "GET_LOCK() and its kin take locks that belong to the session",
            Self::TemporaryTable => "a temporary table exists in one session only",
            Self::TextPrepare => "PREPARE as text names a statement within one session",
            Self::TextExecute => "EXECUTE as text runs what its own text does not show",
            Self::Handler => "HANDLER keeps a cursor on a table open in the session",
            Self::Xa => "an XA transaction is bound to its session",
            Self::StoredCode => {
                "the statement runs stored code, which may leave anything in the session"
            }
            Self::Role => {
                "the session has another user, or a role whose name cannot be given back exactly"
            }
            Self::Sequence => "the last value of a sequence is kept by the session",
            Self::Profiling => "profiles and traces are kept by the session",
            Self::SessionStatus => "FLUSH STATUS lets the session count from 0 what it does",
            Self::SessionTracking | Self::SessionSwitches => {
                "the client changed what the server reports about the session"
            }
            Self::VariableInUse => {
                "the variable counts until a later statement has used it, or until it is off again"
            }
            Self::SpecialVariable => "nobody can read back what the variable stands at",
            Self::ResourceGroup => "the session was moved to a resource group",
            Self::Release => "the statement makes the server close the connection",
            Self::Unknown => "the statement is not known to leave nothing behind in the session",
        }
    }
}

/// Common parts of sets of bits: a type of one unsigned integer, which is its only field.
#[macro_export]
macro_rules! set_of_bits {
    ($set:ident) => {
        impl $set {
            /// Nothing.
            pub const NONE: Self = Self(0);

            /// True if every bit of `other` is in the set.
            #[must_use]
            pub fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            /// True if any bit of `other` is in the set.
            #[must_use]
            pub fn intersects(self, other: Self) -> bool {
                self.0 & other.0 != 0
            }

            /// The bits of both.
            #[must_use]
            pub const fn union(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }

            /// The bits that are not in `other`.
            #[must_use]
            pub const fn without(self, other: Self) -> Self {
                Self(self.0 & !other.0)
            }

            /// Itself where `wanted`, else none.
            #[must_use]
            pub const fn when(self, wanted: bool) -> Self {
                if wanted { self } else { Self::NONE }
            }

            /// True if no bit is in the set.
            #[must_use]
            pub const fn is_empty(self) -> bool {
                self.0 == 0
            }
        }
    };
    // One that is written down as a number of this type.
    ($set:ident as $number:ty) => {
        $crate::set_of_bits!($set);

        impl $set {
            /// The set as a number.
            #[must_use]
            pub const fn bits(self) -> $number {
                self.0
            }

            /// The set that is this number.
            #[must_use]
            pub const fn from_bits(bits: $number) -> Self {
                Self(bits)
            }
        }
    };
}

set_of_bits!(Reads as u8);
set_of_bits!(Marks);

/// Results of earlier statements of its session that a text reads; a set of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reads(u8);

impl Reads {
    /// The last insert id.
    pub const LAST_INSERT_ID: Self = Self(1);
    /// The rows that the previous statement changed.
    pub const ROW_COUNT: Self = Self(2);
    /// The rows that the previous query found.
    pub const FOUND_ROWS: Self = Self(4);
    /// Warnings and errors of the previous statement, or their number.
    pub const DIAGNOSTICS: Self = Self(8);
    /// The id of the server connection.
    pub const CONNECTION_ID: Self = Self(16);
    /// The transaction id of the session's last write (`@@last_gtid` and Galera's functions).
    pub const LAST_GTID: Self = Self(32);
    /// Trackers of the session (`@@session_track_schema` and its like).
    pub const TRACKERS: Self = Self(64);
    /// All of them.
    pub const ALL: Self = Self(127);

    /// The bits that are in both.
    #[must_use]
    pub const fn of(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

/// Effect of a text on LAST_INSERT_ID(), from the least to the most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum InsertId {
    /// Keeps it as it is, for certain.
    #[default]
    Keeps,
    /// INSERT and REPLACE: it stays if they succeed and their OK names no id. (Their OK names the
    /// first id that was generated, or else an explicit value, of which this function knows
    /// nothing: tests/pages/trackers.md.)
    InOk,
    /// Sets it, perhaps, to anything.
    MaySet,
}

/// Words of a text that decide what it leaves for later questions; a set of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks(u32);

impl Marks {
    /// FROM outside of parentheses.
    pub const FROM: Self = Self(1);
    /// FROM inside parentheses, which may be a function's, or DUAL.
    pub const FROM_INSIDE: Self = Self(2);
    /// INTO
    pub const INTO: Self = Self(4);
    /// LIMIT
    pub const LIMIT: Self = Self(8);
    /// The rows that a query sends may not be those that it counts: UNION and its kin, OFFSET,
    /// FETCH, a comma behind LIMIT, SQL_CALC_FOUND_ROWS.
    pub const CUTS: Self = Self(16);
    /// SELECT that is not the first word.
    pub const SELECT_INSIDE: Self = Self(32);
    /// SELECT as the first word, or SHOW of what the server looks up as a query does (tables,
    /// variables, COUNT(\*)): the rows count as FOUND_ROWS(). DESCRIBE of a table looks up as well.
    pub const COUNTED: Self = Self(64);
    /// SHOW of what is no query: FOUND_ROWS() stays.
    pub const NO_QUERY: Self = Self(128);
    /// SET that is not the first word, as in UPDATE.
    pub const SET_INSIDE: Self = Self(256);
    /// UPDATE or DELETE that names several tables, or in the form for several.
    pub const TABLES: Self = Self(512);
    /// GET DIAGNOSTICS, SIGNAL or RESIGNAL behind another statement.
    pub const DIAGNOSTICS_BEHIND: Self = Self(1024);
    /// A point between names: one of them may be a schema's.
    pub const QUALIFIED: Self = Self(2048);
    /// SET with the word DEFAULT or PASSWORD: MariaDB looks at these when it has set the others
    /// already, so that it may refuse a SET that is carried out in part (seen on 10.11).
    pub const CHECKED_LATE: Self = Self(4096);
    /// SET with a comma: it may set several variables.
    pub const SETS_SEVERAL: Self = Self(8192);
    /// LOAD DATA LOCAL or LOAD XML LOCAL: its answer asks the client for a file.
    pub const LOCAL_FILE: Self = Self(16384);
    /// SQL_CALC_FOUND_ROWS, with [`Marks::CUTS`].
    pub const CALCULATED: Self = Self(32768);
    /// RETURNING behind a change of rows, outside of parentheses: the reply has rows.
    pub const RETURNING: Self = Self(65536);
}

/// Result of [`classify`] for a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The class of the first statement.
    pub verb: Verb,
    /// Set: after this text the client must keep its backend; the first cause of it.
    pub pin: Option<PinCause>,
    /// Every cause of that; empty without one.
    pub causes: PinCauses,
    /// Results of earlier statements that it reads; of earlier ones in other texts, where it has
    /// several.
    pub reads: Reads,
    /// Results that it reads without stored code; behind a statement that calls some, all is that
    /// statement's, but for the conditions on MariaDB, which functions may leave as they were.
    pub own_reads: Reads,
    /// Values this statement always overwrites on success.
    pub replaces: Reads,
    /// True if it leaves the warnings before it as they are, if it has none of its own; for
    /// certain.
    pub keeps_warnings: bool,
    /// True if it sets character sets or collations of the session; the trackers tell only a part.
    pub sets_charset: bool,
    /// True if it sets the session's role, which no tracker tells.
    pub sets_role: bool,
    /// True if it sets a savepoint.
    pub sets_savepoint: bool,
    /// True if it sets a session variable in a form that the server does not report.
    pub untracked: bool,
    /// True if it sets `timestamp`, perhaps back to the clock.
    pub sets_clock: bool,
    /// SET STATEMENT, or MariaDB's NOWAIT and `WAIT n`: what is reported of variables holds for
    /// this statement alone.
    pub passing: bool,
    /// True if it changes what the pool watches on the server: a global variable, or accounts.
    pub changes_watched: bool,
    /// Another statement follows the first.
    pub multi: bool,
    /// Effect on LAST_INSERT_ID().
    pub insert_id: InsertId,
    /// A function in it changes data, whatever its verb is.
    pub writes: bool,
    /// True if one of its statements is a KILL.
    pub kills: bool,
    /// True if it names a user variable (`@x`), to read or to set it.
    pub user_variables: bool,
    /// Words that decide what it leaves for questions about it.
    pub marks: Marks,
}

impl Statement {
    /// Nothing seen yet.
    const EMPTY: Self = Self {
        verb: Verb::Empty,
        pin: None,
        causes: PinCauses::NONE,
        reads: Reads::NONE,
        own_reads: Reads::NONE,
        replaces: Reads::NONE,
        keeps_warnings: true,
        sets_charset: false,
        sets_role: false,
        sets_savepoint: false,
        untracked: false,
        sets_clock: false,
        passing: false,
        changes_watched: false,
        multi: false,
        insert_id: InsertId::Keeps,
        writes: false,
        kills: false,
        user_variables: false,
        marks: Marks::NONE,
    };

    /// The most conservative answer: the text may do anything.
    pub const UNKNOWN: Self = Self {
        verb: Verb::Other,
        pin: Some(PinCause::Unknown),
        causes: PinCauses::of(PinCause::Unknown),
        reads: Reads::ALL,
        own_reads: Reads::ALL,
        replaces: Reads::NONE,
        keeps_warnings: false,
        sets_charset: true,
        sets_role: true,
        sets_savepoint: true,
        untracked: false,
        sets_clock: false,
        passing: false,
        changes_watched: false,
        multi: true,
        insert_id: InsertId::MaySet,
        writes: true,
        kills: false,
        user_variables: true,
        marks: Marks::NONE,
    };

    /// Result where all stored code of the text is known to leave nothing that pins, and to read
    /// nothing of the statement before (see [`stored::Verdict`]).
    #[must_use]
    pub fn with_known_code(mut self) -> Self {
        self.causes.remove(PinCause::StoredCode);
        // The code may look at tables.
        self.keeps_warnings = false;
        self.pin = self.causes.iter().next();
        self.reads = self.own_reads;
        self
    }

    /// True if nothing in it asks about earlier statements of its session, for certain: it names
    /// nothing that they have left, is one statement, and hides nothing that it runs.
    #[must_use]
    pub fn asks_nothing(&self) -> bool {
        self.reads.is_empty() && self.causes.is_empty() && !self.multi
    }

    /// True if it prepares or executes a text that is a value in it.
    #[must_use]
    pub fn runs_strings(&self) -> bool {
        let causes = self.causes;
        causes.contains(PinCause::TextPrepare) || causes.contains(PinCause::TextExecute)
    }

    /// Effects if either of two readings of one text is the right one.
    fn either(self, other: Self) -> Self {
        let verb = match (self.verb, other.verb) {
            (Verb::Empty, verb) | (verb, Verb::Empty) => verb,
            (one, two) if one == two => one,
            _ => Verb::Other,
        };
        Self {
            verb,
            pin: self.pin.or(other.pin),
            causes: self.causes.union(other.causes),
            reads: self.reads.union(other.reads),
            own_reads: self.own_reads.union(other.own_reads),
            replaces: self.replaces.of(other.replaces),
            keeps_warnings: self.keeps_warnings & other.keeps_warnings,
            sets_charset: self.sets_charset | other.sets_charset,
            sets_role: self.sets_role | other.sets_role,
            sets_savepoint: self.sets_savepoint | other.sets_savepoint,
            untracked: self.untracked | other.untracked,
            sets_clock: self.sets_clock | other.sets_clock,
            passing: self.passing & other.passing,
            changes_watched: self.changes_watched | other.changes_watched,
            multi: self.multi | other.multi,
            insert_id: self.insert_id.max(other.insert_id),
            writes: self.writes | other.writes,
            kills: self.kills | other.kills,
            user_variables: self.user_variables | other.user_variables,
            marks: self.marks.union(other.marks),
        }
    }
}

/// True if a word is the name of a table that lists user variables.
#[must_use]
pub fn lists_user_variables(word: &[u8]) -> bool {
    let name = match word {
        [b'`' | b'"', inner @ .., _] => inner,
        _ => word,
    };
    let tables: [&[u8]; 2] = [b"USER_VARIABLES", b"USER_VARIABLES_BY_THREAD"];
    tables.iter().any(|table| name.eq_ignore_ascii_case(table))
}

/// Words that begin a statement whose class is known, in upper case.
pub fn first_words() -> impl Iterator<Item = &'static str> {
    verbs::first_words()
}

/// Judges the text of one COM_QUERY or COM_STMT_PREPARE.
#[must_use]
pub fn classify(sql: &[u8], mode: LexMode) -> Statement {
    classify_with(sql, mode, |_| {})
}

/// Classifies a text. Each token is shown to `each`, so that whoever else reads the text need not
/// cut it again.
pub(crate) fn classify_with(sql: &[u8], mode: LexMode, each: impl FnMut(Token)) -> Statement {
    let (run, versioned) = Scan::new(sql, mode, Executable::Run).run(each);
    if !versioned {
        return run;
    }
    // Of a server that nobody knows, whether it runs `/*!80000 ... */`: both must be harmless.
    run.either(Scan::new(sql, mode, Executable::Skip).run(|_| {}).0)
}
