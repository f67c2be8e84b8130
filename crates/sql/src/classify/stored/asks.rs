//! Questions of a body about the statement before its own.
//!
//! ROW_COUNT() inside of a procedure is the caller's until a statement of the body has counted; so
//! are FOUND_ROWS() and, on MariaDB, conditions. On MySQL the OK of a CALL tells the count of
//! before, too, when nothing in the body has counted (both servers were asked). The caller's own
//! numbers may be on another backend.
//!
//! So the body's statements are gone through once, in their order: what has been made on every way
//! to a place is the body's own. Of branches what all of them make counts, of a loop that may not
//! be entered nothing. The conditions that a handler asks for are those which it handles. Any other
//! question counts as one about the statement before.

use super::super::Reads;
use super::super::names::Effect;
use super::super::set::{self, Scope};
use super::{Code, Scanned};
use crate::lex::Kind;
use std::collections::BTreeSet;

/// Statements behind which ROW_COUNT() is their own.
const COUNTS: [&[u8]; 13] = [
    b"SELECT",
    b"WITH",
    b"VALUES",
    b"TABLE",
    b"INSERT",
    b"UPDATE",
    b"DELETE",
    b"REPLACE",
    b"DO",
    b"COMMIT",
    b"ROLLBACK",
    b"START",
    b"TRUNCATE",
];
/// Statements behind which conditions are their own.
const CLEARS: [&[u8]; 4] = [b"INSERT", b"UPDATE", b"DELETE", b"REPLACE"];
/// Words that begin a further branch.
const FURTHER: [&[u8]; 4] = [b"ELSE", b"ELSEIF", b"ELSIF", b"WHEN"];
/// Words that open what END or UNTIL closes.
const OPENS: [&[u8]; 7] = [
    b"BEGIN", b"IF", b"CASE", b"WHILE", b"FOR", b"LOOP", b"REPEAT",
];
/// Blocks of which nothing may run; that of an IF with an ELSE always runs in part.
const MAY_BE_LEFT_OUT: [&[u8]; 3] = [b"IF", b"WHILE", b"FOR"];

/// A block that is open.
struct Block {
    /// The code's own at its beginning.
    open: Reads,
    /// The code's own at every end of it that was seen.
    done: Reads,
    /// True if one of its branches is certain to run.
    runs: bool,
    /// A handler runs it.
    handler: bool,
}

impl Code<'_> {
    /// Notes what the statements that begin here ask of those before their code.
    pub(super) fn ask(&self, starts: &BTreeSet<usize>, out: &mut Scanned) {
        let mut blocks: Vec<Block> = Vec::new();
        let mut own = Reads::NONE;
        let mut handles = false;
        let ends = starts.iter().copied().skip(1).chain([self.tokens.len()]);
        for (&at, end) in starts.iter().zip(ends) {
            let handler = std::mem::take(&mut handles);
            if self.is(at, &FURTHER)
                && let Some(block) = blocks.last_mut()
            {
                block.done = block.done.of(own);
                block.runs |= self.is(at, &[b"ELSE"]);
                own = block.open;
            }
            let inside = handler || blocks.iter().any(|block| block.handler);
            let known = own.union(Reads::DIAGNOSTICS.when(inside));
            out.ask(self.questions(at, end).without(known));
            if self.is(at, &OPENS) {
                blocks.push(Block {
                    open: own,
                    done: Reads::ALL,
                    runs: !self.is(at, &MAY_BE_LEFT_OUT),
                    handler,
                });
            } else if self.is(at, &[b"END", b"UNTIL"])
                && let Some(block) = blocks.pop()
            {
                own = match block.runs && !block.handler {
                    true => block.done.of(own),
                    false => block.open,
                };
            } else if self.is(at, &[b"LEAVE", b"ITERATE", b"RETURN"]) {
                out.uncounted |= !own.contains(Reads::ROW_COUNT);
                for block in &mut blocks {
                    block.done = block.done.of(own);
                }
            } else if self.is(at, &[b"DECLARE"]) {
                handles = self.handler(at + 1).is_some();
            } else if !handler {
                own = own.union(self.made_by(at));
            }
        }
        out.uncounted |= !own.contains(Reads::ROW_COUNT);
    }

    /// Results that a simple statement makes its code's own.
    fn made_by(&self, at: usize) -> Reads {
        Reads::ROW_COUNT
            .when(self.is(at, &COUNTS))
            .union(Reads::FOUND_ROWS.when(self.is(at, &[b"SELECT"])))
            .union(Reads::DIAGNOSTICS.when(self.is(at, &CLEARS)))
    }

    /// Results of the statement before that code asks for with the tokens from here up to there.
    pub(super) fn questions(&self, from: usize, to: usize) -> Reads {
        let mut asked = Reads::ROW_COUNT
            .union(Reads::FOUND_ROWS)
            .union(Reads::LAST_GTID);
        // MySQL clears them in front of every CALL.
        if !self.mode.server.is_mysql() {
            asked = asked.union(Reads::DIAGNOSTICS);
        }
        self.reads_between(from, to).of(asked)
    }

    /// Results of earlier statements that the tokens from here up to there read.
    pub(super) fn reads_between(&self, from: usize, to: usize) -> Reads {
        let mut reads = Reads::NONE;
        for at in from..to.min(self.tokens.len()) {
            let kind = |at: usize| self.tokens.get(at).map(|token| token.kind);
            // With anything in the parentheses, or without any, it is a name.
            let parentheses = (Some(Kind::Punct(b'(')), Some(Kind::Punct(b')')));
            let is_call = (kind(at + 1), kind(at + 2)) == parentheses;
            let is_item = at > 0 && kind(at - 1) == Some(Kind::Punct(b'='));
            let read = match self.tokens[at].kind {
                Kind::Word if self.is(at, &[b"DIAGNOSTICS"]) || self.shows_conditions(at) => {
                    Reads::DIAGNOSTICS
                }
                Kind::Word if self.is(at, &[b"ROW_COUNT"]) && (is_call || is_item) => {
                    Reads::ROW_COUNT
                }
                Kind::Word | Kind::Name if is_call => match self.called(at) {
                    Some(Effect::RowCount) => Reads::ROW_COUNT,
                    Some(Effect::FoundRows) => Reads::FOUND_ROWS,
                    Some(Effect::LastGtid) => Reads::LAST_GTID,
                    _ => Reads::NONE,
                },
                Kind::SystemVariable => match set::split(self.text(at)) {
                    Some((Scope::Session, name)) => set::reads(name).unwrap_or(Reads::ALL),
                    Some((Scope::Global, _)) => Reads::NONE,
                    None => Reads::ALL,
                },
                _ => Reads::NONE,
            };
            reads = reads.union(read);
        }
        reads
    }

    /// True if this is the last word of `SHOW WARNINGS`, `SHOW COUNT(*) ERRORS` and their like.
    fn shows_conditions(&self, at: usize) -> bool {
        let behind_show = || {
            let before = at.checked_sub(1);
            before.is_some_and(|at| self.is(at, &[b"SHOW"]) || self.is_punct(at, b')'))
        };
        self.is(at, &[b"WARNINGS", b"ERRORS"]) && behind_show()
    }
}
