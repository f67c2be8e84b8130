//! Words of stored code that pin: the texts of triggers, routines, views and columns' expressions,
//! as `information_schema` shows them.
//!
//! No statement's text shows that a trigger or a view runs such code, so the pool reads the code
//! itself and looks for what may leave something in the session, or may read what the statement
//! before left. The mechanism: one look at every token (locks, sequences, `@x :=`, INTO, calls),
//! and one at the first word of every statement of a body, which must be known. Which routine a
//! call means is the caller's to find out ([`Call`]), as is what the tables and views do that the
//! code names ([`Scanned::names`]).
//!
//! The rule is one-sided, as in [`crate::classify`]: what is not understood pins. Nothing is
//! interpreted: code that sets a variable of the session on one way in a hundred counts as code
//! that does.

mod asks;
mod definition;
mod run;
mod statements;
#[cfg(test)]
mod tests;

use super::Reads;
use super::names::{self, Effect as Builtin};
use crate::lex::{Kind, LexMode, Lexer, Token};
pub use definition::{Defined, Definition, Definitions, Schema, SchemaChange, definitions};
pub use run::{asked_in, calls_in};
use std::collections::BTreeSet;

/// A name in the form in which names are compared: without quotes, in lower case. All names beyond
/// ASCII are [`BEYOND_ASCII`]: their bytes depend on character sets.
pub type Folded = Box<[u8]>;

/// Name that stands for every name that is not ASCII.
pub const BEYOND_ASCII: &[u8] = b"\xff";

/// Verdict on code; the later the worse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Code that leaves nothing in the session that the server does not report.
    #[default]
    Clean,
    /// Code that changes rows, and leaves nothing else: a SELECT that runs it is no plain one.
    Writes,
    /// Code that may leave something in the session, or ask about the statement before its own.
    Pins,
}

/// Verdict on code, with its questions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Finding {
    /// Verdict.
    pub verdict: Verdict,
    /// Results of the statement before its own that it may ask for.
    pub asks: Reads,
}

impl Finding {
    /// Code that may leave something.
    pub const PINS: Self = Self {
        verdict: Verdict::Pins,
        asks: Reads::NONE,
    };

    /// The worse of the two verdicts, and the questions of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            verdict: self.verdict.max(other.verdict),
            asks: self.asks.union(other.asks),
        }
    }

    /// True if whoever runs the code keeps its backend.
    #[must_use]
    pub fn pins(self) -> bool {
        self.verdict == Verdict::Pins
    }
}

/// A name with its schema, where it was written with one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path {
    /// The schema.
    pub schema: Option<Folded>,
    /// The name itself.
    pub name: Folded,
}

/// A routine that the code calls.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Call {
    /// A procedure; otherwise a function.
    pub procedure: bool,
    /// Name of the routine.
    pub path: Path,
    /// True if it is a call only if there is such a routine: the server has something of this name
    /// too.
    pub perhaps: bool,
}

/// Result of a scan over a text of stored code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scanned {
    /// Verdict on its own words, without what it calls and names.
    pub verdict: Verdict,
    /// Results of the statement before its own that it may ask for.
    pub asks: Reads,
    /// The words that show it.
    pub why: String,
    /// Routines that it calls.
    pub calls: BTreeSet<Call>,
    /// Every name in it.
    pub names: BTreeSet<Folded>,
    /// True if it sets LAST_INSERT_ID(). Functions and triggers give that back at their end, the
    /// expression of a view or a column does not.
    pub sets_insert_id: bool,
    /// True if it may count no rows itself, so that on MySQL the OK of its CALL tells those of
    /// before.
    pub uncounted: bool,
}

impl Scanned {
    /// Code that nobody may read.
    #[must_use]
    pub fn unreadable() -> Scanned {
        let mut scanned = Scanned::default();
        scanned.pin("its text is not shown".into());
        scanned
    }

    /// Notes that it may leave something, and why.
    pub fn pin(&mut self, why: String) {
        self.note(Verdict::Pins, why);
    }

    /// Adds the reads that it asks for, if they are any.
    fn ask(&mut self, asks: Reads) {
        self.asks = self.asks.union(asks);
        if !asks.is_empty() {
            self.pin("asks about the statement before".into());
        }
    }

    fn note(&mut self, verdict: Verdict, why: String) {
        if self.verdict < verdict {
            self.verdict = verdict;
            self.why = why;
        }
    }
}

/// Scans the body of a trigger or of a routine; `locals` are its parameters.
#[must_use]
pub fn body(text: &[u8], mode: LexMode, locals: &BTreeSet<Folded>) -> Scanned {
    let code = Code::new(text, mode);
    let mut out = code.scan();
    code.statements(locals, &mut out);
    out
}

/// Scans a view's query, or the expression of a column.
#[must_use]
pub fn expression(text: &[u8], mode: LexMode) -> Scanned {
    let code = Code::new(text, mode);
    let mut out = code.scan();
    if out.sets_insert_id {
        out.pin("LAST_INSERT_ID(...)".into());
    }
    out.ask(code.questions(0, code.tokens.len()));
    out
}

/// True if a token may be a name.
pub(crate) fn is_name(token: Token) -> bool {
    matches!(token.kind, Kind::Word | Kind::Name)
}

/// The names in a text, each as it is compared.
pub fn names_in(sql: &[u8], mode: LexMode) -> impl Iterator<Item = Folded> {
    let tokens = Lexer::new(sql, mode).filter(|token| is_name(*token));
    tokens.map(|token| fold(sql.get(token.start..token.end).unwrap_or_default()))
}

/// A name as it is compared, from one without quotes around it, as servers tell names.
#[must_use]
pub fn fold_bare(name: &[u8]) -> Folded {
    match name.is_ascii() {
        true => name.to_ascii_lowercase().into(),
        false => BEYOND_ASCII.into(),
    }
}

/// A name as it is compared, from one that stands in a text.
#[must_use]
pub fn fold(name: &[u8]) -> Folded {
    let mut bytes = Vec::with_capacity(name.len());
    bytes.extend(folded(name));
    bytes.into()
}

/// The bytes of [`fold`].
pub(crate) fn folded(name: &[u8]) -> impl Iterator<Item = u8> {
    let (quote, inner) = match name {
        [open @ (b'`' | b'"'), inner @ .., close] if open == close => (Some(*open), inner),
        _ => (None, name),
    };
    let inner = match inner.is_ascii() {
        true => inner,
        false => BEYOND_ASCII,
    };
    let mut bytes = inner.iter();
    std::iter::from_fn(move || {
        let byte = *bytes.next()?;
        if Some(byte) == quote {
            // Doubled inside of quotes.
            bytes.next();
        }
        Some(byte.to_ascii_lowercase())
    })
}

/// A text, cut.
struct Code<'a> {
    sql: &'a [u8],
    mode: LexMode,
    tokens: Vec<Token>,
    /// True if the cut is not certain.
    doubtful: bool,
}

impl<'a> Code<'a> {
    fn new(sql: &'a [u8], mode: LexMode) -> Self {
        let mut lexer = Lexer::new(sql, mode);
        let tokens = lexer.by_ref().collect();
        let doubtful = lexer.doubtful() || lexer.is_versioned();
        Self {
            sql,
            mode,
            tokens,
            doubtful,
        }
    }

    fn kind(&self, at: usize) -> Option<Kind> {
        self.tokens.get(at).map(|token| token.kind)
    }

    fn text(&self, at: usize) -> &'a [u8] {
        let token = self.tokens.get(at);
        token
            .and_then(|token| self.sql.get(token.start..token.end))
            .unwrap_or_default()
    }

    fn shown(&self, at: usize) -> String {
        String::from_utf8_lossy(self.text(at)).into_owned()
    }

    /// True if this token is one of these keywords, given in upper case.
    fn is(&self, at: usize, keywords: &[&[u8]]) -> bool {
        self.kind(at) == Some(Kind::Word)
            && keywords
                .iter()
                .any(|keyword| self.text(at).eq_ignore_ascii_case(keyword))
    }

    fn is_punct(&self, at: usize, byte: u8) -> bool {
        self.kind(at) == Some(Kind::Punct(byte))
    }

    fn is_name(&self, at: usize) -> bool {
        self.tokens.get(at).is_some_and(|token| is_name(*token))
    }

    /// The name that begins here, and where it ends.
    fn path(&self, at: usize) -> Option<(Path, usize)> {
        if !self.is_name(at) {
            return None;
        }
        let first = fold(self.text(at));
        if !self.is_punct(at + 1, b'.') || !self.is_name(at + 2) {
            let path = Path {
                schema: None,
                name: first,
            };
            return Some((path, at + 1));
        }
        // Of three parts the last is the routine of a package, which nobody knows.
        let more = self.is_punct(at + 3, b'.');
        let name = match more {
            true => BEYOND_ASCII.into(),
            false => fold(self.text(at + 2)),
        };
        let schema = Some(first);
        Some((Path { schema, name }, at + if more { 5 } else { 3 }))
    }

    /// Facts that every token tells, wherever it stands.
    fn scan(&self) -> Scanned {
        let mut out = Scanned::default();
        if self.doubtful {
            out.pin("servers read it in different ways".into());
        }
        for at in 0..self.tokens.len() {
            match self.tokens[at].kind {
                Kind::Word | Kind::Name => self.name(at, &mut out),
                Kind::UserVariable if self.kind(at + 1) == Some(Kind::Assign) => {
                    out.pin(format!("{} :=", self.shown(at)));
                }
                _ => {}
            }
        }
        out
    }

    fn name(&self, at: usize, out: &mut Scanned) {
        out.names.insert(fold(self.text(at)));
        let before = at.checked_sub(1);
        let behind = |byte| before.is_some_and(|before| self.is_punct(before, byte));
        if self.is(at, &[b"NEXT", b"PREVIOUS"])
            && self.is(at + 1, &[b"VALUE"])
            && self.is(at + 2, &[b"FOR"])
        {
            out.pin(format!("{} VALUE FOR", self.shown(at)));
        } else if behind(b'.') && matches!(&*fold(self.text(at)), b"nextval" | b"currval") {
            out.pin(self.shown(at));
        } else if self.is(at, &[b"INTO"]) {
            self.receivers(at + 1, out);
        } else if self.is(at, &[b"CALL"]) {
            if let Some((path, _)) = self.path(at + 1) {
                out.calls.insert(Call {
                    procedure: true,
                    path,
                    perhaps: false,
                });
            }
            self.variables_of(at, out);
        } else if self.is(at, &[b"DIAGNOSTICS"]) {
            self.variables_of(at, out);
        }
        if self.is_punct(at + 1, b'(') {
            self.call(at, out);
        }
    }

    /// Receivers of a query's row.
    fn receivers(&self, mut at: usize, out: &mut Scanned) {
        loop {
            if self.kind(at) == Some(Kind::UserVariable) {
                out.pin(format!("INTO {}", self.shown(at)));
            }
            let end = self.path(at).map_or(at + 1, |(_, end)| end);
            if !self.is_punct(end, b',') {
                return;
            }
            at = end + 1;
        }
    }

    /// Scans a statement that may set any user variable that it names.
    fn variables_of(&self, verb: usize, out: &mut Scanned) {
        let rest = (verb..).take_while(|&at| self.kind(at).is_some_and(|k| k != Kind::Semicolon));
        for at in rest.filter(|&at| self.kind(at) == Some(Kind::UserVariable)) {
            out.pin(format!("{} {}", self.shown(verb), self.shown(at)));
        }
    }

    /// Scans a name before a parenthesis; the rules of place are those of `classify`.
    fn call(&self, at: usize, out: &mut Scanned) {
        let before = |back: usize| at.checked_sub(back);
        let qualified = self.is_qualified(at);
        let mut perhaps = false;
        match self.called(at) {
            Some(Builtin::Tight) if !self.touches(at) => {}
            Some(builtin) => {
                perhaps = self.built_in(at, builtin, out);
                if !perhaps {
                    return;
                }
            }
            None => {}
        }
        let first = if qualified && before(2).is_some_and(|at| self.is_name(at)) {
            at - 2
        } else {
            at
        };
        let behind = first.checked_sub(1);
        let word_behind = |words: &[&[u8]]| behind.is_some_and(|at| self.is(at, words));
        let operand = behind.and_then(|at| self.kind(at));
        let listed = matches!(operand, Some(Kind::Punct(b')') | Kind::String));
        if listed || word_behind(&NO_CALL_BEHIND) || self.is_list_of_with(at) {
            return;
        }
        // In the declaration of a variable, up to its value, types stand before parentheses.
        if self.is_declared(at) {
            return;
        }
        let name = fold(self.text(at));
        let schema = (first < at).then(|| fold(self.text(first)));
        // Three parts name the routine of a package.
        let package = first >= 2 && first < at && self.is_punct(first - 1, b'.');
        let name = if package { BEYOND_ASCII.into() } else { name };
        out.calls.insert(Call {
            procedure: false,
            path: Path { schema, name },
            perhaps,
        });
    }

    /// The function of the server's that is called by the token here, which stands before a
    /// parenthesis.
    fn called(&self, at: usize) -> Option<Builtin> {
        let kind = self.kind(at).filter(|_| !self.is_qualified(at))?;
        names::called(kind, self.text(at), self.mode.server)
    }

    /// True if a schema, or more, stands in front of the name here.
    fn is_qualified(&self, at: usize) -> bool {
        let before = at.checked_sub(1);
        before.is_some_and(|at| self.is_punct(at, b'.'))
    }

    /// A function of the server's; gives whether it may be a stored one as well.
    fn built_in(&self, at: usize, builtin: Builtin, out: &mut Scanned) -> bool {
        let empty = self.is_punct(at + 2, b')');
        match builtin {
            Builtin::UserLock | Builtin::Sequence => {
                out.pin(format!("{}()", self.shown(at)));
            }
            Builtin::LastInsertId => out.sets_insert_id |= !empty,
            Builtin::Geometry | Builtin::Point | Builtin::JsonTable => return true,
            _ => {}
        }
        false
    }

    /// True if the parenthesis behind the name belongs to it, for names that need that.
    fn touches(&self, at: usize) -> bool {
        let end = |at: usize| self.tokens.get(at).map(|token| token.end);
        let start = |at: usize| self.tokens.get(at).map(|token| token.start);
        self.mode.ignore_space || end(at) == start(at + 1)
    }

    /// `name (columns) AS (`: a table of WITH.
    fn is_list_of_with(&self, at: usize) -> bool {
        let mut end = at + 2;
        while self.is_name(end) || self.is_punct(end, b',') {
            end += 1;
        }
        self.is_punct(end, b')') && self.is(end + 1, &[b"AS"]) && self.is_punct(end + 2, b'(')
    }

    fn is_declared(&self, at: usize) -> bool {
        // Farther back than anybody declares, what looks like a call is taken for one.
        for back in (at.saturating_sub(128)..at).rev() {
            if self.kind(back) == Some(Kind::Semicolon) || self.is(back, &[b"DEFAULT", b"FOR"]) {
                return false;
            }
            if self.is(back, &[b"DECLARE"]) {
                return true;
            }
        }
        false
    }
}

/// Behind these a name before a parenthesis has a list of columns, or of a cursor's parameters.
const NO_CALL_BEHIND: [&[u8]; 11] = [
    b"AS",
    b"INTO",
    b"INSERT",
    b"REPLACE",
    b"IGNORE",
    b"LOW_PRIORITY",
    b"HIGH_PRIORITY",
    b"DELAYED",
    b"CALL",
    b"OPEN",
    b"CURSOR",
];
