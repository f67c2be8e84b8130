//! What is known of a statement before it runs, from its text or its command alone.
//!
//! The classification of a text (`sql`) says what it does; here follows what that means for the
//! session that it runs in.

use crate::diagnostics::{Area, area_of};
use crate::found::{Found, found_of, hides_reads};
use crate::known_code::Known;
use crate::shapes::Ride;
use crate::standing::Standing;
use crate::statement::{
    Code, Conditions, Explanation, Extent, LooksBack, NOT_JUDGED, Statement, Untracked,
};
use sql::classify::{self, Marks, Reads, Verb};
use sql::lex::Server;
use wire::command::{Command, ReplyShape};

/// A text's class where all the stored code that it runs is known.
#[must_use]
pub fn class_with(found: &classify::Statement, known: Option<&Known>) -> classify::Statement {
    match known {
        Some(_) => found.with_known_code(),
        None => *found,
    }
}

/// What is known of a text.
#[must_use]
pub fn statement_of(found: &classify::Statement, server: Server) -> Statement {
    let hides = hides_reads(found);
    let conditions = match found.verb {
        _ if found.multi && found.marks.contains(Marks::DIAGNOSTICS_BEHIND) => {
            Conditions::RaisesOrAsks
        }
        _ if found.multi || hides => Conditions::Raises,
        Verb::Diagnostics if found.reads.intersects(Reads::DIAGNOSTICS) => Conditions::Asks,
        Verb::Diagnostics => Conditions::Raises,
        Verb::Show if found.marks.contains(Marks::NO_QUERY) => Conditions::Leaves,
        Verb::Show | Verb::Explain if server.is_mysql() => Conditions::Leaves,
        // A query inside of it may be what fails.
        Verb::Show | Verb::Explain
            if found.marks.contains(Marks::COUNTED)
                && !found
                    .marks
                    .intersects(Marks::FROM_INSIDE.union(Marks::SELECT_INSIDE)) =>
        {
            Conditions::LooksUp
        }
        Verb::Show | Verb::Explain => Conditions::MayCount,
        _ => Conditions::Leaves,
    };
    Statement {
        shape: ReplyShape::Results,
        found: found_of(found, server),
        area: area_of(found, server),
        extent: extent_of(found, hides),
        untracked: Untracked::by(found),
        insert_id: found.insert_id,
        counts_before: false,
        looks_back: match found.verb {
            Verb::Show | Verb::Diagnostics | Verb::Select
                if found.reads.intersects(Reads::DIAGNOSTICS) =>
            {
                LooksBack::AtConditions
            }
            _ => LooksBack::No,
        },
        explanation: match found.verb {
            _ if found.passing => Explanation::Passing,
            Verb::Set | Verb::Use | Verb::Diagnostics => Explanation::Lasting,
            _ if found.multi => Explanation::Lasting,
            _ => Explanation::None,
        },
        code: if hides { Code::Unread } else { Code::None },
        spoils: false,
        judged: NOT_JUDGED,
        standing: Standing::Apart,
        conditions,
        ride: Ride::Never,
        digest: 0,
    }
}

/// How much a text may do; `hides`: it may run what nobody has read.
fn extent_of(found: &classify::Statement, hides: bool) -> Extent {
    use Verb::{Begin, Commit, Delete, Insert, Replace, Rollback, Savepoint, Set, Update};
    let stays = match found.verb {
        Set | Begin | Commit | Rollback | Savepoint => true,
        Insert | Update | Delete | Replace => !found.marks.contains(Marks::QUALIFIED),
        _ => false,
    };
    let inside = hides || found.passing || found.marks.contains(Marks::SELECT_INSIDE);
    match () {
        () if found.multi => Extent::Several,
        () if stays && !inside => Extent::OneInSchema,
        () => Extent::One,
    }
}

/// What is known of a command that has no text.
#[must_use]
pub fn statement_without_text(command: Command, server: Server) -> Statement {
    let mut statement = Statement::plain(command.reply());
    if command == Command::InitDb {
        statement.explain();
    }
    statement.standing = match command {
        Command::InitDb => Standing::NewSchema,
        Command::FieldList | Command::Statistics => Standing::Anywhere,
        _ => Standing::Apart,
    };
    statement.found = Found::Keeps;
    let statistics = command == Command::Statistics;
    if statistics || matches!(command, Command::InitDb | Command::Debug) {
        statement.area = Area::Keeps;
        statement.counts_before = server.is_mysql();
    }
    match command {
        Command::Statistics => statement.conditions = Conditions::Counts,
        Command::Debug => statement.conditions = Conditions::Uncounted,
        _ => {}
    }
    statement
}
