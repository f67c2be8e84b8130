//! The statements of a body: where each begins, and what its first word means.
//!
//! Where a statement can start, [`Routine`] tells, which follows the blocks of a body; what a
//! handler runs is found here. A first word that is not in [`FIRST`] pins. So does a SET of
//! anything but a local variable or a column of the new row.

use super::super::Reads;
use super::super::routine::Routine;
use super::{Code, Folded, Scanned, Verdict, fold};
use crate::lex::Kind;
use std::collections::BTreeSet;

/// Words with which a statement of a body may begin. All but SET and those that change rows leave
/// nothing, if their expressions do not; so does what CALL runs.
const FIRST: [&[u8]; 38] = [
    b"SET",
    b"SELECT",
    b"WITH",
    b"VALUES",
    b"TABLE",
    b"INSERT",
    b"UPDATE",
    b"DELETE",
    b"REPLACE",
    b"IF",
    b"ELSE",
    b"ELSEIF",
    b"ELSIF",
    b"CASE",
    b"WHEN",
    b"WHILE",
    b"LOOP",
    b"REPEAT",
    b"UNTIL",
    b"FOR",
    b"DECLARE",
    b"BEGIN",
    b"END",
    b"RETURN",
    b"LEAVE",
    b"ITERATE",
    b"OPEN",
    b"FETCH",
    b"CLOSE",
    b"CALL",
    b"DO",
    b"GET",
    b"START",
    b"COMMIT",
    b"ROLLBACK",
    b"SAVEPOINT",
    b"RELEASE",
    b"TRUNCATE",
];
const SIGNALS: [&[u8]; 2] = [b"SIGNAL", b"RESIGNAL"];
const ROWS: [&[u8]; 4] = [b"INSERT", b"UPDATE", b"DELETE", b"REPLACE"];

impl Code<'_> {
    /// Facts that its statements tell.
    pub(super) fn statements(&self, params: &BTreeSet<Folded>, out: &mut Scanned) {
        let Some(starts) = self.starts(out) else {
            return out.ask(Reads::ALL);
        };
        let mut locals = params.clone();
        for &at in starts.iter().filter(|&&at| self.is(at, &[b"DECLARE"])) {
            self.declared(at + 1, &mut locals);
        }
        for &at in &starts {
            self.statement(at, &locals, out);
        }
        self.ask(&starts, out);
        // A SET that is no statement belongs to one that changes rows or signals.
        for at in 0..self.tokens.len() {
            let names_set = at > 0 && self.is(at - 1, &[b"CHARACTER", b"CHAR"]);
            let is_type = self.is_punct(at + 1, b'(');
            if self.is(at, &[b"SET"]) && !starts.contains(&at) && !names_set && !is_type {
                let start = starts.range(..at).next_back().copied().unwrap_or(0);
                if !(start..at).any(|at| self.is(at, &ROWS) || self.is(at, &SIGNALS)) {
                    out.pin("a SET in an unknown place".into());
                }
            }
        }
    }

    /// Offsets at which statements begin; `None` where blocks are nested too deep.
    fn starts(&self, out: &mut Scanned) -> Option<BTreeSet<usize>> {
        let mut routine = Routine::new(false);
        // The body may be a single statement; within a block all are found.
        routine.word(b"BEGIN", b"");
        let mut starts = BTreeSet::new();
        for at in 0..self.tokens.len() {
            if routine.is_at_start() && self.kind(at) != Some(Kind::Semicolon) {
                starts.insert(at);
            }
            match self.tokens[at].kind {
                Kind::Semicolon => {
                    routine.semicolon();
                }
                Kind::Word => {
                    let before = at.checked_sub(1).map_or(&b""[..], |at| self.text(at));
                    routine.word(self.text(at), before);
                }
                Kind::Punct(byte) => routine.other(byte),
                _ => routine.other(0),
            }
        }
        if routine.is_lost() {
            return None;
        }
        let declares: Vec<usize> = starts.iter().copied().collect();
        for at in declares {
            if self.is(at, &[b"DECLARE"])
                && let Some(action) = self.handler(at + 1)
            {
                match action {
                    Ok(action) => drop(starts.insert(action)),
                    Err(()) => out.pin("a handler that is not understood".into()),
                }
            }
        }
        Some(starts)
    }

    /// `DECLARE ... HANDLER FOR conditions statement`: where the statement begins.
    pub(super) fn handler(&self, mut at: usize) -> Option<Result<usize, ()>> {
        let kind: [&[u8]; 3] = [b"CONTINUE", b"EXIT", b"UNDO"];
        if !self.is(at, &kind) || !self.is(at + 1, &[b"HANDLER"]) {
            return None;
        }
        if !self.is(at + 2, &[b"FOR"]) {
            return Some(Err(()));
        }
        at += 3;
        loop {
            if self.is(at, &[b"SQLSTATE"]) {
                at += 1 + usize::from(self.is(at + 1, &[b"VALUE"]));
            } else if self.is(at, &[b"NOT"]) {
                at += 1;
            }
            if !self.is_name(at) && !matches!(self.kind(at), Some(Kind::String | Kind::Number)) {
                return Some(Err(()));
            }
            at += 1;
            if !self.is_punct(at, b',') {
                return Some(Ok(at));
            }
            at += 1;
        }
    }

    /// Adds the names behind DECLARE, up to their type.
    fn declared(&self, mut at: usize, locals: &mut BTreeSet<Folded>) {
        while self.is_name(at) {
            locals.insert(fold(self.text(at)));
            if !self.is_punct(at + 1, b',') {
                return;
            }
            at += 2;
        }
    }

    fn statement(&self, at: usize, locals: &BTreeSet<Folded>, out: &mut Scanned) {
        let next = self.kind(at + 1);
        let label = next == Some(Kind::Punct(b':'));
        let assigned = next == Some(Kind::Assign);
        match self.kind(at) {
            Some(Kind::Word | Kind::Name) if label => {}
            Some(Kind::Word | Kind::Name) if assigned => {
                if !locals.contains(&fold(self.text(at))) {
                    out.pin(format!("{} :=", self.shown(at)));
                }
            }
            Some(Kind::Punct(b'(')) => {}
            Some(Kind::Word) if self.is(at, &[b"SET"]) => self.set(at + 1, locals, out),
            Some(Kind::Word) if self.is(at, &FIRST) || self.is(at, &SIGNALS) => {
                self.ends_session(at, out);
                let changes = self.is(at, &ROWS) || self.changes_behind_with(at);
                if changes {
                    out.note(Verdict::Writes, self.shown(at));
                }
            }
            _ => out.pin(self.shown(at)),
        }
    }

    /// Pins for the end of the session: COMMIT RELEASE ends the connection; START and RELEASE have
    /// other meanings than a transaction's.
    fn ends_session(&self, at: usize, out: &mut Scanned) {
        let other = self.is(at, &[b"START"]) && !self.is(at + 1, &[b"TRANSACTION"])
            || self.is(at, &[b"RELEASE"]) && !self.is(at + 1, &[b"SAVEPOINT"]);
        let completes = self.is(at, &[b"COMMIT", b"ROLLBACK"]);
        let end = (at..self.tokens.len()).find(|&at| self.kind(at) == Some(Kind::Semicolon));
        let mut rest = at + 1..end.unwrap_or(self.tokens.len());
        let releases = |at| self.is(at, &[b"RELEASE"]) && !self.is(at - 1, &[b"NO"]);
        // ROLLBACK TO takes a name, which may be any word.
        if other || completes && rest.any(releases) && !self.is(at + 1, &[b"TO"]) {
            out.pin(self.shown(at));
        }
    }

    /// WITH before a statement that changes rows.
    fn changes_behind_with(&self, at: usize) -> bool {
        let end = (at..self.tokens.len()).find(|&at| self.kind(at) == Some(Kind::Semicolon));
        let end = end.unwrap_or(self.tokens.len());
        self.is(at, &[b"WITH"]) && (at..end).any(|at| self.is(at, &ROWS))
    }

    /// Scans the assignments of a SET.
    fn set(&self, mut at: usize, locals: &BTreeSet<Folded>, out: &mut Scanned) {
        loop {
            self.assignment(at, locals, out);
            let mut depth = 0_i32;
            loop {
                match self.kind(at) {
                    None | Some(Kind::Semicolon) => return,
                    Some(Kind::Punct(b'(')) => depth += 1,
                    Some(Kind::Punct(b')')) => depth -= 1,
                    Some(Kind::Punct(b',')) if depth == 0 => break,
                    _ => {}
                }
                at += 1;
            }
            at += 1;
        }
    }

    /// Pins for an assignment: only local variables and columns of the new row are set without
    /// leaving anything.
    fn assignment(&self, at: usize, locals: &BTreeSet<Folded>, out: &mut Scanned) {
        let name = fold(self.text(at));
        let row = matches!(&*name, b"new" | b"old") && self.is_punct(at + 1, b'.');
        let assigned = matches!(self.kind(at + 1), Some(Kind::Punct(b'=') | Kind::Assign));
        let local = self.is_name(at) && assigned && locals.contains(&name);
        if !(row && self.is_name(at) || local) {
            out.pin(format!("SET {}", self.shown(at)));
        }
    }
}
