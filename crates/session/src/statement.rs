//! Notes of a client's statement from its text until its end.
//!
//! The problem: what a statement means for its session is known from its text, and needed when its
//! reply has passed. The mechanism: a small value ([`Statement`]) that its client keeps meanwhile.
//! What is to be read back afterwards stands with what the statement has left
//! ([`crate::last_statement`]). Invariant: the values for a statement of which nothing is known are
//! the most careful ones.

use crate::diagnostics::Area;
use crate::elsewhere::Why;
use crate::found::Found;
use crate::known_digests::Pipelinable;
use crate::send_mode::SendMode;
use sql::classify::{self, InsertId, Marks, Reads, Verb};
use wire::command::ReplyShape;

/// A statement that runs no text, so that no names reach it.
pub const NOT_JUDGED: u16 = 0;

/// Relation of a statement to conditions, besides that it may warn or fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conditions {
    /// Nothing.
    Leaves,
    /// Nothing: its text is empty, and fails for that.
    Empty,
    /// Nothing; and if it succeeds, ROW_COUNT() stays.
    Counts,
    /// Nothing; and ROW_COUNT() stays where it names what is not there: MariaDB finds that before
    /// it runs SHOW COLUMNS or DESCRIBE, and while it runs SHOW CREATE TABLE.
    LooksUp,
    /// Nothing; and where it fails, ROW_COUNT() may stay.
    MayCount,
    /// Nothing; and where its OK counts rows, they are those of several executions, and ROW_COUNT()
    /// is that of the last one.
    CountsLast,
    /// Nothing; and it counts no rows, so that ROW_COUNT() is -1 (a command without an OK).
    Uncounted,
    /// Asks for those of the statement before, or raises one behind them: GET DIAGNOSTICS,
    /// RESIGNAL. If it succeeds, ROW_COUNT() stays as well, unless it warns.
    Asks,
    /// Asks, and the server is sent a SET with the answers in its place.
    AsksInWords,
    /// Raises, perhaps, some by SIGNAL, with items of its own.
    Raises,
    /// Raises, and may end with GET DIAGNOSTICS, so that an OK that counts no rows may have left
    /// ROW_COUNT() as it was.
    RaisesOrAsks,
}

impl Conditions {
    /// True if ROW_COUNT() stays, if the statement succeeds.
    pub fn keep_counts(self) -> bool {
        self == Conditions::Counts || self.asks()
    }

    /// True if it asks for those of the statement before, wherever the answer comes from.
    #[must_use]
    pub fn asks(self) -> bool {
        matches!(self, Conditions::Asks | Conditions::AsksInWords)
    }

    /// Conditions where the server is sent other words, with the answers in them.
    #[must_use]
    pub fn in_words(self) -> Conditions {
        match self {
            Conditions::Asks => Conditions::AsksInWords,
            other => other,
        }
    }
}

/// Extent of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// One statement.
    One,
    /// One statement that changes the session or a transaction, or rows without RETURNING: its
    /// reply is an OK.
    Short,
    /// One statement that enters no schema, and names no view or table of another one: a report of
    /// the default schema in its OK is of a statement before it.
    OneInSchema,
    /// Both of these.
    ShortInSchema,
    /// Several statements.
    Several,
}

/// Facts of the statement that a client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Form of its reply.
    pub shape: ReplyShape,
    /// Effect on FOUND_ROWS().
    pub found: Found,
    /// Fate of the warnings of the statement before, if it has none of its own.
    pub area: Area,
    /// Extent of its text.
    pub extent: Extent,
    /// Changes that it may make without a report.
    pub untracked: Untracked,
    /// Explanation of reported changes by its text.
    pub explanation: Explanation,
    /// The conditions before it stay, on MySQL, also where it fails: its OK counts them
    /// (COM_INIT_DB), or it is read as a question about them before it is refused.
    pub counts_before: bool,
    /// Dependencies on the statement before, so that nothing may come between them that leaves the
    /// same: what its text asks for.
    pub looks_back: Reads,
    /// Effect on LAST_INSERT_ID().
    pub insert_id: InsertId,
    /// True if it may share a backend in flight, should its digest be trusted.
    pub pipelinable: Pipelinable,
    /// Its text's digest ([`sql::digest`]); 0 of a command without a text.
    pub digest: u64,
    /// Relation to conditions.
    pub conditions: Conditions,
    /// Knowledge of the stored code that it runs.
    pub code: Code,
    /// The catalogue of code in triggers and views that it was judged by (code in triggers and
    /// views: see `pool`).
    pub judged: u16,
    /// Send mode behind commands that restore its session.
    pub send_mode: SendMode,
    /// Server that it goes to, of several, and why; [`Why::NoSelect`] where nobody has looked.
    pub place: Why,
}

impl Statement {
    /// True if its text is of several statements.
    #[must_use]
    pub fn is_several(&self) -> bool {
        self.extent == Extent::Several
    }

    /// True if it may commit the transaction that is open, also where it fails.
    #[must_use]
    pub fn may_commit(&self) -> bool {
        self.untracked.contains(Untracked::TRANSACTION_END)
    }

    /// True if its text tells that its reply is short: it writes, or is a step of a transaction.
    #[must_use]
    pub fn has_short_reply(&self) -> bool {
        matches!(self.extent, Extent::Short | Extent::ShortInSchema)
    }

    /// Notes that its text, or code that is known, explains what is reported of it.
    pub fn explain(&mut self) {
        if self.explanation == Explanation::None {
            self.explanation = Explanation::Lasting;
        }
    }

    /// Notes that all the stored code that it runs is known to be clean.
    pub fn runs_known_code(&mut self) {
        self.pipelinable = Pipelinable::Never;
        self.runs_code();
        self.explain();
        self.code = Code::Known;
    }

    /// Notes that it runs code of which its text shows nothing: it is the writer's.
    pub fn runs_code(&mut self) {
        if self.place == Why::Read {
            self.place = Why::Code;
        }
    }

    /// A command with this reply that changes nothing unseen.
    #[must_use]
    pub fn plain(shape: ReplyShape) -> Statement {
        Statement {
            shape,
            found: Found::Unsure,
            area: Area::Unsure,
            extent: Extent::One,
            untracked: Untracked::NONE,
            explanation: Explanation::None,
            counts_before: false,
            looks_back: Reads::NONE,
            insert_id: InsertId::Keeps,
            pipelinable: Pipelinable::Never,
            digest: 0,
            conditions: Conditions::Leaves,
            code: Code::None,
            judged: NOT_JUDGED,
            send_mode: SendMode::Apart,
            place: Why::NoSelect,
        }
    }
}

/// Explanation by a client's texts of a change that the server reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Explanation {
    /// Nothing: a trigger or a view has made it, and may have made more.
    #[default]
    None,
    /// Change that they make and that lasts.
    Lasting,
    /// SET STATEMENT and its like: a value of a variable that held for the statement alone.
    Passing,
}

impl Explanation {
    /// Explanation of several statements whose changes are reported at once behind them: the values
    /// are those of that moment.
    #[must_use]
    pub fn and(self, other: Explanation) -> Explanation {
        match (self, other) {
            (Explanation::None, _) | (_, Explanation::None) => Explanation::None,
            (Explanation::Passing, Explanation::Passing) => Explanation::Passing,
            _ => Explanation::Lasting,
        }
    }

    /// Explanation of a statement whose reply also reports what was `due` from statements before
    /// it.
    #[must_use]
    pub fn with_due(self, due: Option<Explanation>) -> Explanation {
        match (self, due) {
            (own, None) => own,
            (Explanation::None, Some(due)) => due,
            (Explanation::Lasting, Some(_)) => Explanation::Lasting,
            (Explanation::Passing, Some(Explanation::Passing)) => Explanation::Passing,
            // Which of the values lasts nobody can say.
            (Explanation::Passing, Some(_)) => Explanation::None,
        }
    }
}

/// Changes that a statement may make without a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Untracked(u8);

impl Untracked {
    const NONE: Untracked = Untracked(0);
    /// The collation.
    pub const CHARSET: Untracked = Untracked(1);
    /// The role.
    pub const ROLE: Untracked = Untracked(2);
    /// Savepoint that is set, which MariaDB does not tell while no transaction is open.
    pub const SAVEPOINT: Untracked = Untracked(4);
    /// End of all savepoints with its success, and of the transaction that was open.
    pub const NO_SAVEPOINT: Untracked = Untracked(8);
    /// Some of the variables that it names, where it fails on MariaDB.
    pub const WHERE_IT_FAILS: Untracked = Untracked(16);
    /// End of the transaction that is open ([`Statement::may_commit`]).
    const TRANSACTION_END: Untracked = Untracked(32);

    /// Changes that a text may make so.
    #[must_use]
    pub fn by(found: &classify::Statement) -> Untracked {
        let savepoint = found.sets_savepoint || found.verb == Verb::Call;
        let ends = matches!(found.verb, Verb::Begin | Verb::Commit | Verb::Rollback);
        let ends = ends && !found.multi;
        let late = [Marks::CHECKED_LATE, Marks::SETS_SEVERAL];
        let in_part = late.iter().all(|mark| found.marks.contains(*mark));
        // A function or a trigger in these may not commit.
        let stays = matches!(
            found.verb,
            Verb::Select | Verb::Insert | Verb::Update | Verb::Delete | Verb::Replace
        );
        Untracked(
            u8::from(found.sets_charset)
                | u8::from(found.sets_role) << 1
                | u8::from(savepoint) << 2
                | u8::from(ends) << 3
                | u8::from(in_part) << 4
                | u8::from(!stays || found.multi) << 5,
        )
    }

    /// True if any of these is among them.
    #[must_use]
    pub fn contains(self, other: Untracked) -> bool {
        self.0 & other.0 != 0
    }
}

/// Knowledge of the stored code that a statement runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// No code that its text shows.
    None,
    /// Code that leaves nothing that is not followed.
    Known,
    /// Code that nobody has read.
    Unread,
}

#[cfg(test)]
mod tests {
    use super::Explanation::{Lasting, None, Passing};

    #[test]
    fn changes_of_several_statements_are_explained_only_if_each_is() {
        assert_eq!(Passing.and(Passing), Passing);
        assert_eq!(Passing.and(Lasting), Lasting);
        assert_eq!(Lasting.and(Lasting), Lasting);
        for one in [None, Lasting, Passing] {
            assert_eq!(one.and(None), None);
            assert_eq!(None.and(one), None);
        }
    }

    #[test]
    fn a_lost_reply_may_hide_the_end_of_a_transaction() {
        for (sql, may_end) in [
            ("UPDATE t SET a = 1", false),
            ("SELECT 1 FOR UPDATE", false),
            ("COMMIT", true),
            ("CREATE TABLE t (a INT)", true),
            ("CALL p()", true),
            ("EXECUTE s", true),
            ("INSERT INTO t VALUES (1); COMMIT", true),
        ] {
            let found = sql::classify::classify(sql.as_bytes(), sql::lex::LexMode::default());
            let untracked = super::Untracked::by(&found);
            let ends = untracked.contains(super::Untracked::TRANSACTION_END);
            assert_eq!(ends, may_end, "{sql}");
        }
    }

    #[test]
    fn a_reply_tells_of_statements_before_it_too() {
        for own in [None, Lasting, Passing] {
            assert_eq!(own.with_due(Option::None), own);
            assert_eq!(None.with_due(Some(own)), own);
            assert_eq!(Lasting.with_due(Some(own)), Lasting);
        }
        assert_eq!(Passing.with_due(Some(Passing)), Passing);
        // A value that lasts is not to be taken for one that has passed.
        assert_eq!(Passing.with_due(Some(Lasting)), None);
        assert_eq!(Passing.with_due(Some(None)), None);
    }
}
