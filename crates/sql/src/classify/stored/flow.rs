//! Dependencies of a body on the statement before its own, and the rows that it counts itself.
//!
//! ROW_COUNT() inside of a procedure is the caller's until a statement of the body has counted; so
//! are FOUND_ROWS() and, on MariaDB, conditions. On MySQL the OK of a CALL tells the count of
//! before, too, when nothing in the body has counted (both servers were asked). The caller's own
//! numbers may be on another backend, so it must be known whether a body uses them. The mechanism:
//! the statements are followed in their order; of branches only what all of them do counts, of a
//! loop that may not be entered nothing.
//!
//! The rule is one-sided: what is not certain to have counted has not. A handler's own conditions
//! are those of its code.

use super::super::Reads;
use super::super::names::Effect;
use super::super::set::{self, Scope};
use super::{Code, Judged};
use crate::lex::Kind;
use std::collections::BTreeSet;

/// Blocks within blocks that are followed.
const DEPTH_MAX: u32 = 64;

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
/// Words at which a part of a block ends.
const PARTS: [&[u8]; 6] = [b"END", b"ELSE", b"ELSEIF", b"ELSIF", b"WHEN", b"UNTIL"];

/// Results that are the code's own on every way to a place, whatever was before.
#[derive(Clone, Copy)]
struct Own(Reads);

impl Own {
    fn and(self, other: Own) -> Own {
        Own(self.0.of(other.0))
    }
}

struct Flow<'c, 'a> {
    code: &'c Code<'a>,
    starts: Vec<usize>,
    /// The next of them.
    next: usize,
    depth: u32,
    asks: Reads,
    uncounted: bool,
}

impl Code<'_> {
    /// Notes what the statements that begin here read of those before their code.
    pub(super) fn follow(&self, starts: &BTreeSet<usize>, out: &mut Judged) {
        let mut flow = Flow {
            code: self,
            starts: starts.iter().copied().collect(),
            next: 0,
            depth: 0,
            asks: Reads::NONE,
            uncounted: false,
        };
        let mut own = Own(Reads::NONE);
        while flow.next < flow.starts.len() {
            own = flow.sequence(own);
            // An END of nothing.
            flow.next += 1;
        }
        out.asks = out.asks.union(flow.asks);
        out.uncounted |= flow.uncounted || !own.0.contains(Reads::ROW_COUNT);
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
        let mut asked = Reads::ROW_COUNT
            .union(Reads::FOUND_ROWS)
            .union(Reads::LAST_GTID);
        // MySQL clears them in front of every CALL.
        if !self.mode.server.is_mysql() {
            asked = asked.union(Reads::DIAGNOSTICS);
        }
        reads.of(asked)
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

impl Flow<'_, '_> {
    fn is(&self, words: &[&[u8]]) -> bool {
        let at = self.starts.get(self.next);
        at.is_some_and(|&at| self.code.is(at, words))
    }

    /// Goes on behind the present start, and notes what stands between it and the next.
    fn pass(&mut self, own: Own) {
        let from = self.starts.get(self.next).copied().unwrap_or(usize::MAX);
        self.next += 1;
        let to = self.starts.get(self.next).copied().unwrap_or(usize::MAX);
        let reads = self.code.reads_between(from, to);
        self.asks = self.asks.union(reads.without(own.0));
    }

    /// Statements up to the end of their part.
    fn sequence(&mut self, mut own: Own) -> Own {
        while self.next < self.starts.len() && !self.is(&PARTS) {
            own = self.statement(own);
        }
        own
    }

    fn statement(&mut self, own: Own) -> Own {
        self.depth += 1;
        let own = if self.depth > DEPTH_MAX {
            self.asks = Reads::ALL;
            self.uncounted = true;
            self.next = self.starts.len();
            own
        } else {
            self.one(own)
        };
        self.depth -= 1;
        own
    }

    fn one(&mut self, own: Own) -> Own {
        let Some(&at) = self.starts.get(self.next) else {
            return own;
        };
        let code = self.code;
        if code.is(at, &[b"IF", b"CASE"]) {
            return self.branches(own);
        }
        let loops = code.is(at, &[b"LOOP", b"REPEAT"]);
        let may_loop = code.is(at, &[b"WHILE", b"FOR"]);
        if loops || may_loop || code.is(at, &[b"BEGIN"]) {
            self.pass(own);
            let mut inner = self.sequence(own);
            if self.is(&[b"UNTIL"]) {
                self.pass(inner);
                inner = self.sequence(inner);
            }
            self.pass(inner);
            return if may_loop { own } else { inner };
        }
        if code.is(at, &[b"DECLARE"]) && code.handler(at + 1).is_some() {
            self.pass(own);
            let inside = Own(own.0.union(Reads::DIAGNOSTICS));
            self.statement(inside);
            return own;
        }
        if code.is(at, &[b"LEAVE", b"ITERATE", b"RETURN"]) {
            self.uncounted |= !own.0.contains(Reads::ROW_COUNT);
        }
        self.pass(own);
        self.made_by(at, own)
    }

    /// IF and CASE; the part before the first branch belongs to the condition.
    fn branches(&mut self, own: Own) -> Own {
        // A CASE in which nothing fits fails.
        let mut all = self.is(&[b"CASE"]);
        self.pass(own);
        let mut done = self.sequence(own);
        while self.is(&PARTS) && !self.is(&[b"END"]) {
            all |= self.is(&[b"ELSE"]);
            self.pass(own);
            done = done.and(self.sequence(own));
        }
        self.pass(own);
        if all { done } else { own }
    }

    /// Results that are the code's own behind a simple statement.
    fn made_by(&self, at: usize, own: Own) -> Own {
        let code = self.code;
        let mut made = own.0;
        if code.is(at, &COUNTS) {
            made = made.union(Reads::ROW_COUNT);
        }
        if code.is(at, &[b"SELECT"]) {
            made = made.union(Reads::FOUND_ROWS);
        }
        if code.is(at, &[b"INSERT", b"UPDATE", b"DELETE", b"REPLACE"]) {
            made = made.union(Reads::DIAGNOSTICS);
        }
        Own(made)
    }
}
