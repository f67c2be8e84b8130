//! Stored code that a client's own text runs: the routines that it calls, and its blocks.
//!
//! A text of a single statement says what it calls; all else that it does is the business of
//! [`crate::classify`]. A text of several statements, or an anonymous block, is judged as a body
//! is, statement by statement.

use super::{Code, Folded, Judged, body};
use crate::classify::{PinCause, Statement, Verb, classify};
use crate::lex::{Kind, LexMode, Lexer, Token};
use std::collections::BTreeSet;

/// Stored code that a text runs which was classified as `found`; `None` when that cannot be told.
///
/// Of a single statement the calls are given, and nothing else that it leaves; of several, or of a
/// block, all that they leave.
#[must_use]
pub fn run_by(sql: &[u8], mode: LexMode, found: &Statement) -> Option<Judged> {
    // What is reported of variables behind it may be its own, or that of what it runs.
    if found.passing {
        return None;
    }
    run_whatever_is_reported(sql, mode, found)
}

/// Stored code whose questions count, which SET STATEMENT does not change.
#[must_use]
pub fn asked_by(sql: &[u8], mode: LexMode, found: &Statement) -> Option<Judged> {
    let mut inner = sql;
    while let Some(next) = behind_set_statement(inner, mode) {
        inner = next;
    }
    match inner.len() == sql.len() {
        true => run_whatever_is_reported(sql, mode, found),
        false => run_whatever_is_reported(inner, mode, &classify(inner, mode)),
    }
}

/// The statement that `SET STATEMENT ... FOR` runs.
fn behind_set_statement(sql: &[u8], mode: LexMode) -> Option<&[u8]> {
    let mut tokens = Lexer::new(sql, mode);
    let is = |token: &Token, word: &[u8]| {
        token.kind == Kind::Word && sql[token.start..token.end].eq_ignore_ascii_case(word)
    };
    tokens.next().filter(|token| is(token, b"SET"))?;
    tokens.next().filter(|token| is(token, b"STATEMENT"))?;
    let mut depth = 0_usize;
    let at = tokens.find(|token| {
        match token.kind {
            Kind::Punct(b'(') => depth += 1,
            Kind::Punct(b')') => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && is(token, b"FOR")
    })?;
    Some(&sql[at.end..])
}

fn run_whatever_is_reported(sql: &[u8], mode: LexMode, found: &Statement) -> Option<Judged> {
    let code = Code::new(sql, mode);
    if code.doubtful || code.calls_in_packages() {
        return None;
    }
    let block = matches!(found.verb, Verb::Other | Verb::Begin);
    if !found.multi && !block {
        // What is not understood in it has nothing to do with calls.
        if found.causes.contains(PinCause::Unknown) {
            return None;
        }
        let all = code.tokens_of(0);
        return Some(Judged {
            calls: all.calls,
            names: all.names,
            ..Judged::default()
        });
    }
    // What changes how the rest of the text is read.
    if found.sets_charset || code.mentions(b"SQL_MODE") {
        return None;
    }
    let none: BTreeSet<Folded> = BTreeSet::new();
    Some(body(sql, mode, &none))
}

impl Code<'_> {
    /// True if a name ends with this word, given in upper case: a variable's, however written.
    fn mentions(&self, word: &[u8]) -> bool {
        let ends = |at: usize| {
            let text = self.text(at);
            let text = text.strip_suffix(b"`").unwrap_or(text);
            let start = text.len().saturating_sub(word.len());
            text[start..].eq_ignore_ascii_case(word)
        };
        let named = |at: usize| {
            let kind = self.kind(at);
            matches!(kind, Some(Kind::Word | Kind::Name | Kind::SystemVariable))
        };
        (0..self.tokens.len()).any(|at| named(at) && ends(at))
    }

    /// Names of three parts that are called: routines of packages.
    fn calls_in_packages(&self) -> bool {
        (0..self.tokens.len()).any(|at| {
            let three = |end: usize| {
                let first = end.checked_sub(4);
                first.is_some_and(|first| {
                    self.is_name(first)
                        && self.is_punct(first + 1, b'.')
                        && self.is_name(first + 2)
                        && self.is_punct(first + 3, b'.')
                        && self.is_name(end)
                })
            };
            let called = self.is_punct(at + 1, b'(') && three(at);
            called || self.is(at, &[b"CALL"]) && three(at + 5)
        })
    }
}
