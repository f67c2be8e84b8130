//! Digests: what statements that differ in their values only have in common.
//!
//! The problem: who watches a server asks which statements take its time, and an application sends
//! the same statement a million times with other values in it; and the values are nobody else's
//! business. The mechanism: a text's tokens without its values ([`Reader`]), as a number
//! ([`digest`]) and as a text to be read ([`normalized`]). As in the digests of MySQL's Performance
//! Schema, a literal is `?`, a list of literals is `?, ...`, and of rows of literals the first
//! stands for all, so that an INSERT of many rows has one digest. Comments and white space are no
//! part of it. Letters are compared as they are.
//!
//! Invariants:
//! - no byte of a string or a number comes out;
//! - one pass, nothing allocated for the number; both look at tokens that begin in the first
//!   [`LEN_MAX`] bytes only.

use crate::lex::{Kind, LexMode, Lexer, Token};
use foldhash::quality::{FixedState, FoldHasher};
use std::hash::{BuildHasher, Hash, Hasher};

/// Bytes of a text in which the tokens begin that are looked at. Texts that begin with the same are
/// one statement.
pub const LEN_MAX: usize = 4096;

/// Bytes of a digest, in big-endian order, that are its text's shape: neither the first, which
/// people type, nor the last, by which tables are indexed.
const SHAPE_AT: usize = 3;
/// Number of shapes that are told apart.
pub const SHAPES: usize = 1024;

/// A part of a normalized text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part<'a> {
    /// A token as it is.
    Token(&'a [u8]),
    /// A literal.
    Value,
    /// More of what stands in front of it: literals, or rows of them.
    More,
}

/// A row of a list, behind a row of literals: it is no part of the text if it is one as well.
#[derive(Clone, Copy, Default)]
struct Row {
    /// Its literals: none, one, or more.
    values: u8,
    /// True if a comma stands behind the last one.
    comma: bool,
}

/// Last output, as far as it decides on what follows.
#[derive(Clone, Copy)]
enum Seen {
    /// Nothing, or an operator, a comma or a parenthesis that opens.
    Operator,
    /// A word, a name, or what ends an operand.
    Operand,
    /// A parenthesis, with nothing in it yet.
    Opened,
    /// Literals, one or more, with commas between them; behind such a parenthesis or not.
    Values { more: bool, row: bool },
    /// A row of literals, or rows.
    Rows { more: bool },
}

/// Takes the parts of a text.
trait Take<'a> {
    fn take(&mut self, part: Part<'a>);
}

impl<'a, F: FnMut(Part<'a>)> Take<'a> for F {
    fn take(&mut self, part: Part<'a>) {
        self(part);
    }
}

/// The parts as a number: bytes, and lengths that say what they are. A statement has a score of
/// parts, so the hash is one that takes short ones fast. Who knows it can write texts of one
/// number; so can who changes a value.
struct Number {
    hasher: FoldHasher<'static>,
    /// The first bytes of the parts.
    shape: u32,
}

impl Number {
    fn new() -> Self {
        Self {
            hasher: FixedState::default().build_hasher(),
            shape: 0,
        }
    }

    /// The number: never 0.
    fn finish(&self) -> u64 {
        let mut bytes = self.hasher.finish().to_be_bytes();
        [bytes[SHAPE_AT], bytes[SHAPE_AT + 1], ..] = self.shape.to_be_bytes();
        u64::from_be_bytes(bytes).max(1)
    }
}

impl<'a> Take<'a> for Number {
    fn take(&mut self, part: Part<'a>) {
        let first = match part {
            Part::Token(bytes) => {
                bytes.hash(&mut self.hasher);
                bytes.first().copied().unwrap_or_default()
            }
            // Lengths that no token has.
            Part::Value => {
                self.hasher.write_usize(usize::MAX);
                b'?'
            }
            Part::More => {
                self.hasher.write_usize(usize::MAX - 1);
                b'+'
            }
        };
        // 2^32 divided by the golden ratio: an odd number whose bits are even.
        self.shape = (self.shape.rotate_left(5) ^ u32::from(first)).wrapping_mul(0x9e37_79b9);
    }
}

/// Reads a text token by token, and gives its parts.
struct Reader<'a, T> {
    sql: &'a [u8],
    to: T,
    /// The last token: what it is may depend on the next.
    last: Option<Token>,
    seen: Seen,
    /// A comma behind literals or rows that is not out yet.
    comma: bool,
    /// A row that is not out yet.
    row: Option<Row>,
    /// A sign that is not out yet.
    sign: Option<u8>,
}

impl<'a, T: Take<'a>> Reader<'a, T> {
    fn new(sql: &'a [u8], to: T) -> Self {
        Self {
            sql,
            to,
            last: None,
            seen: Seen::Operator,
            comma: false,
            row: None,
            sign: None,
        }
    }

    /// Takes the next token of the text.
    fn token(&mut self, next: Token) {
        if next.start < LEN_MAX
            && let Some(token) = self.last.replace(next)
        {
            self.put(token, Some(next));
        }
    }

    /// Writes the last token, and returns the result.
    fn finish(mut self) -> T {
        if let Some(token) = self.last.take() {
            self.put(token, None);
        }
        self.flush();
        self.to
    }

    fn put(&mut self, token: Token, next: Option<Token>) {
        let bytes = &self.sql[token.start..token.end];
        match token.kind {
            Kind::String | Kind::Number | Kind::Punct(b'?') => self.value(),
            Kind::Word if introduces(bytes, token, next) => {}
            Kind::Word if bytes.eq_ignore_ascii_case(b"NULL") && self.begins_operand() => {
                self.value();
            }
            Kind::Punct(byte) => self.punct(byte, bytes),
            Kind::Semicolon => self.punct(b';', bytes),
            Kind::Assign => self.punct(b'=', bytes),
            _ => self.other(bytes),
        }
    }

    /// Gives what was held back, because no more of the same follows.
    fn flush(&mut self) {
        if self.comma || self.row.is_some() || self.sign.is_some() {
            self.flush_held();
        }
    }

    #[cold]
    fn flush_held(&mut self) {
        if std::mem::take(&mut self.comma) {
            self.to.take(Part::Token(b","));
            self.seen = Seen::Operator;
        }
        if let Some(row) = self.row.take() {
            self.to.take(Part::Token(b"("));
            self.seen = Seen::Opened;
            if row.values > 0 {
                self.to.take(Part::Value);
                let more = row.values > 1;
                if more {
                    self.to.take(Part::More);
                }
                self.seen = Seen::Values { more, row: true };
            }
            if row.comma {
                self.to.take(Part::Token(b","));
                self.seen = Seen::Operator;
            }
        }
        if let Some(sign) = self.sign.take() {
            self.to.take(Part::Token(match sign {
                b'-' => b"-",
                _ => b"+",
            }));
            self.seen = Seen::Operator;
        }
    }

    fn value(&mut self) {
        self.sign = None;
        if let Some(row) = &mut self.row {
            if row.values == 0 || row.comma {
                row.values = (row.values + 1).min(2);
                row.comma = false;
                return;
            }
            self.flush();
        }
        match self.seen {
            Seen::Values { more, row } if self.comma => {
                self.comma = false;
                if !more {
                    self.to.take(Part::More);
                }
                self.seen = Seen::Values { more: true, row };
            }
            _ => {
                self.flush();
                self.to.take(Part::Value);
                let row = matches!(self.seen, Seen::Opened);
                self.seen = Seen::Values { more: false, row };
            }
        }
    }

    fn punct(&mut self, byte: u8, bytes: &'a [u8]) {
        match (byte, &mut self.row) {
            (b',', Some(row)) if row.values > 0 && !row.comma => return row.comma = true,
            (b')', Some(row)) if row.values > 0 && !row.comma => {
                self.row = None;
                self.comma = false;
                if matches!(self.seen, Seen::Rows { more: false }) {
                    self.to.take(Part::More);
                }
                return self.seen = Seen::Rows { more: true };
            }
            _ => {}
        }
        let in_list = self.row.is_none() && self.sign.is_none();
        match (byte, self.seen) {
            (b',', Seen::Values { .. } | Seen::Rows { .. }) if in_list && !self.comma => {
                return self.comma = true;
            }
            (b'(', Seen::Rows { .. }) if in_list && self.comma => {
                return self.row = Some(Row::default());
            }
            (b')', Seen::Values { row: true, .. }) if in_list && !self.comma => {
                self.to.take(Part::Token(bytes));
                return self.seen = Seen::Rows { more: false };
            }
            (b'-' | b'+', _) if self.sign.is_none() && self.begins_operand() => {
                return self.sign = Some(byte);
            }
            _ => {}
        }
        self.flush();
        self.to.take(Part::Token(bytes));
        self.seen = match byte {
            b'(' => Seen::Opened,
            b')' | b'*' => Seen::Operand,
            _ => Seen::Operator,
        };
    }

    /// True if an operand begins here: a sign belongs to the literal behind it, and NULL is a value
    /// and not a part of IS NULL and the like.
    fn begins_operand(&self) -> bool {
        let held = self.comma || self.row.is_some_and(|row| row.values == 0 || row.comma);
        held || matches!(self.seen, Seen::Operator | Seen::Opened)
    }

    fn other(&mut self, bytes: &'a [u8]) {
        self.flush();
        self.to.take(Part::Token(bytes));
        self.seen = Seen::Operand;
    }
}

/// The digest of a text whose tokens come from somebody who reads it anyway.
pub(crate) struct Digesting<'a>(Reader<'a, Number>);

impl<'a> Digesting<'a> {
    pub(crate) fn new(sql: &'a [u8]) -> Self {
        Self(Reader::new(sql, Number::new()))
    }

    /// Takes the next token of the text.
    pub(crate) fn token(&mut self, token: Token) {
        self.0.token(token);
    }

    /// The number, once all tokens have come.
    pub(crate) fn finish(self) -> u64 {
        self.0.finish().finish()
    }
}

/// Shape of the text of a digest, below [`SHAPES`]: the same for texts whose tokens begin with the
/// same bytes, as where their names differ in a number only.
#[must_use]
pub fn shape(digest: u64) -> usize {
    let bytes = digest.to_be_bytes();
    usize::from(u16::from_be_bytes([bytes[SHAPE_AT], bytes[SHAPE_AT + 1]])) % SHAPES
}

/// Takes a key that is a hash already, as it is.
#[derive(Clone, Debug, Default)]
pub struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u64(&mut self, shape: u64) {
        self.0 = shape;
    }
}

/// True if a word is a part of the literal behind it: `_utf8mb4'x'`, `x'00'`, `b'1'`, `n'x'`.
fn introduces(word: &[u8], token: Token, next: Option<Token>) -> bool {
    let Some(next) = next.filter(|next| next.kind == Kind::String) else {
        return false;
    };
    match word {
        [b'_', ..] => true,
        [b'x' | b'X' | b'b' | b'B' | b'n' | b'N'] => token.end == next.start,
        _ => false,
    }
}

/// A number that is the same for texts that differ in their values only. Never 0. It is the same
/// in each process of the same build.
#[must_use]
pub fn digest(sql: &[u8], mode: LexMode) -> u64 {
    let mut digesting = Digesting::new(sql);
    let tokens = Lexer::new(sql, mode).take_while(|token| token.start < LEN_MAX);
    tokens.for_each(|token| digesting.token(token));
    digesting.finish()
}

/// The text without its values, of at most so many bytes; ` ...` behind that stands for what is
/// left out. A text that servers read in different ways is left out as a whole: what is a string to
/// one of them is none to another.
#[must_use]
pub fn normalized(sql: &[u8], mode: LexMode, len_max: usize) -> String {
    let mut text = Vec::new();
    let (mut is_full, mut end) = (false, std::ptr::null());
    let put = |part: Part<'_>| {
        let bytes = match part {
            Part::Token(bytes) => bytes,
            Part::Value => b"?",
            Part::More => b", ...",
        };
        is_full |= text.len() + bytes.len() >= len_max;
        if is_full {
            return;
        }
        let touches = bytes.as_ptr() == end && matches!(bytes, [b'(' | b'@', ..]);
        let closes = matches!(bytes, [b',' | b')' | b'.' | b';', ..]);
        let opened = matches!(text.last(), None | Some(b'(' | b'.'));
        if !(touches || closes || opened) {
            text.push(b' ');
        }
        text.extend_from_slice(bytes);
        let own = sql.as_ptr_range();
        end = match own.contains(&bytes.as_ptr()) {
            true => bytes.as_ptr_range().end,
            false => std::ptr::null(),
        };
    };
    let mut reader = Reader::new(sql, put);
    let mut lexer = Lexer::new(sql, mode);
    let tokens = lexer.by_ref().take_while(|token| token.start < LEN_MAX);
    tokens.for_each(|token| reader.token(token));
    let _ = reader.finish();
    let is_clear = !lexer.miscut() && (lexer.unread() || !lexer.doubtful());
    if !is_clear {
        return "...".to_owned();
    }
    let mut text = String::from_utf8_lossy(&text).into_owned();
    if is_full || sql.len() > LEN_MAX {
        text.push_str(" ...");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(sql: &str) -> String {
        normalized(sql.as_bytes(), LexMode::default(), 1024)
    }

    fn number(sql: &str) -> u64 {
        digest(sql.as_bytes(), LexMode::default())
    }

    #[test]
    fn values_are_left_out() {
        for (sql, expected) in [
            ("SELECT 1", "SELECT ?"),
            ("SELECT c FROM t WHERE id=5", "SELECT c FROM t WHERE id = ?"),
            ("SELECT c FROM t WHERE id=?", "SELECT c FROM t WHERE id = ?"),
            ("SELECT 'it''s', \"x\", 1.5e3, 0xff", "SELECT ?, ..."),
            ("SELECT a=-1, a-1, (+2)", "SELECT a = ?, a - ?, (?)"),
            ("SELECT x'00', _utf8mb4 'x', N'a'", "SELECT ?, ..."),
            ("SELECT a WHERE b IN (1)", "SELECT a WHERE b IN (?)"),
            (
                "SELECT a WHERE b IN (1, 'x', NULL)",
                "SELECT a WHERE b IN (?, ...)",
            ),
            (
                "INSERT INTO t VALUES (1, 2)",
                "INSERT INTO t VALUES (?, ...)",
            ),
            (
                "INSERT INTO t VALUES (1, 2), (3, NULL), (-5, 6)",
                "INSERT INTO t VALUES (?, ...), ...",
            ),
            (
                "INSERT INTO t VALUES(1),(2),(3)",
                "INSERT INTO t VALUES(?), ...",
            ),
            (
                "INSERT INTO t VALUES (1, 2), (3, NOW()), (5, 6)",
                "INSERT INTO t VALUES (?, ...), (?, NOW()), (?, ...)",
            ),
            ("SELECT a WHERE b IS NULL", "SELECT a WHERE b IS NULL"),
            ("UPDATE t SET a=NULL, b='x'", "UPDATE t SET a = ?, b = ?"),
            ("SET PASSWORD = 'secret'", "SET PASSWORD = ?"),
            (
                "CREATE USER u@'%' IDENTIFIED BY 'secret'",
                "CREATE USER u@'%' IDENTIFIED BY ?",
            ),
            ("SELECT /* id 7 */ 1 -- 'x'", "SELECT ?"),
            ("SELECT t.a, `b c`.`d`", "SELECT t.a, `b c`.`d`"),
            ("SELECT 1, (SELECT 2)", "SELECT ?, (SELECT ?)"),
            ("SELECT 1,", "SELECT ?,"),
            ("VALUES (1), (", "VALUES (?), ("),
            ("VALUES (1), (2,", "VALUES (?), (?,"),
            ("VALUES (1), (-a)", "VALUES (?), (- a)"),
            ("SELECT 'without an end", "SELECT ?"),
            ("", ""),
        ] {
            assert_eq!(shown(sql), expected, "{sql}");
        }
    }

    #[test]
    fn texts_that_differ_in_values_have_one_number() {
        let same = [
            ("SELECT 1", "SELECT  'x' -- y", true),
            ("SELECT a FROM t", "SELECT b FROM t", false),
            ("SELECT ab", "SELECT a b", false),
            ("SELECT 1, 2", "SELECT 'a', NULL, -3", true),
            ("SELECT 1, 2", "SELECT 1", false),
            ("VALUES (1, 2), (3, 4)", "VALUES (1,2),(3,4),(5,6)", true),
            ("VALUES (1, 2), (3, 4)", "VALUES (1, 2)", false),
            (
                "SELECT a FROM t WHERE id=?",
                "SELECT a FROM t WHERE id=5",
                true,
            ),
        ];
        for (one, other, expected) in same {
            assert_eq!(number(one) == number(other), expected, "{one} / {other}");
        }
    }

    #[test]
    fn texts_that_differ_in_what_follows_a_first_byte_have_one_shape() {
        let same = [
            ("SELECT 1 AS n_1 FROM t1", "SELECT 2 AS n_27 FROM t12", true),
            ("SELECT 1 AS n_1", "SELECT 1, 2 AS n_1", false),
            ("SELECT a FROM t", "SELECT a FROM u", false),
            ("SELECT a, b FROM t", "SELECT a FROM t", false),
        ];
        for (one, other, expected) in same {
            assert_ne!(number(one), number(other), "{one} / {other}");
            let shapes = [one, other].map(|sql| shape(number(sql)));
            assert_eq!(shapes[0] == shapes[1], expected, "{one} / {other}");
            assert!(shapes.iter().all(|shape| *shape < SHAPES));
        }
    }

    #[test]
    fn long_texts_are_cut() {
        let long = format!("SELECT {}", "abcdefg, ".repeat(1000));
        let text = normalized(long.as_bytes(), LexMode::default(), 100);
        assert!(text.len() <= 104 && text.ends_with(" ..."), "{text}");
        assert!(text.starts_with("SELECT abcdefg, abcdefg,"));
        // What stands behind the bytes that are looked at makes no difference.
        let other = format!("{}x", &long[..LEN_MAX + 8]);
        assert_eq!(number(&long[..LEN_MAX + 8]), number(&other));
        // Nor does a string that goes on there come out.
        let secret = format!("SELECT '{}', 'secret'", "x".repeat(LEN_MAX));
        assert_eq!(shown(&secret), "SELECT ? ...");
    }
}
