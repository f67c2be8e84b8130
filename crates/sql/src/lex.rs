//! SQL text into tokens, as a MySQL or MariaDB server would cut it.
//!
//! The pool must know whether a statement leaves something behind in its session. A search for
//! substrings cannot tell `GET_LOCK(` in a string, in a comment or in a quoted name from a call,
//! and an approximate lexer can be led past a quote. So this one follows the servers' own rules,
//! oddities included: `1abc` is a name but `1e5abc` is a number and a name, a word that touches a
//! dot is never a keyword, `--` opens a comment only before white space or a control character.
//!
//! Invariants:
//! - Any bytes are accepted; every call of [`Lexer::next`] moves forward, so the end is reached.
//! - Nothing is allocated; a token is a kind and a range of the text.
//! - Where servers, versions or character sets disagree about the cut, the lexer takes one reading
//!   and raises [`Lexer::doubtful`]; the caller must then assume the worst of the whole text.
//! - The content of executable comments (`/*! ... */`) comes out as tokens where the server runs it
//!   ([`Comment`]). Where nobody knows the server, [`Executable`] chooses, and a careful caller
//!   reads twice.
//! - What no server reads (a quote or comment without its end, a zero byte inside) ends the text:
//!   the statement in which it stands fails as a whole, and nothing behind it is looked at.

mod comment;
mod mode;
#[cfg(test)]
mod tests;

use comment::Comment;
pub use mode::{Charset, LexMode, Pairs, Server};

/// Reading of executable comments that only some server versions run, where the server is
/// [`Server::Unknown`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Executable {
    /// Read their content as tokens.
    Run,
    /// Skip them like other comments.
    Skip,
}

/// Kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An unquoted word that may be a keyword.
    Word,
    /// A name that cannot be a keyword: quoted, or touching a dot.
    Name,
    /// A string in single quotes, or in double quotes without `ANSI_QUOTES`.
    String,
    /// A number.
    Number,
    /// `@name`, `@'name'`; also the host part of an account.
    UserVariable,
    /// `@@name`, `@@scope.name`.
    SystemVariable,
    /// `:=`
    Assign,
    /// `;`
    Semicolon,
    /// Any other byte.
    Punct(u8),
}

/// The name in a token that stands before a parenthesis, without its quotes. Servers look functions
/// that are no keywords up by name, so that a quoted name calls these as well (seen on MariaDB
/// 10.11 and MySQL 9.7). `text` is the token's.
pub(crate) fn function_name(kind: Kind, text: &[u8]) -> Option<&[u8]> {
    match (kind, text) {
        (Kind::Word, word) => Some(word),
        (Kind::Name, [b'`', name @ .., b'`'] | [b'"', name @ .., b'"']) => Some(name),
        _ => None,
    }
}

/// Bytes that are looked at together where a long literal is skipped.
const BLOCK: usize = 64;

/// Skips whole blocks without any of these bytes, from `at` on. A literal may be nearly all of a
/// text of a hundred MiB, and its bytes are looked at by every reader of the text: without a
/// branch for each of them, the compiler makes a few vector instructions of a block.
fn skip_blocks(sql: &[u8], mut at: usize, stops: [u8; 3]) -> usize {
    let stop = |byte: u8| (byte == stops[0]) | (byte == stops[1]) | (byte == stops[2]);
    while let Some(block) = sql.get(at..at + BLOCK) {
        if block.iter().fold(false, |found, &byte| found | stop(byte)) {
            break;
        }
        at += BLOCK;
    }
    at
}

/// One token: its kind and its range in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// Kind of the token.
    pub kind: Kind,
    /// Offset of its first byte.
    pub start: usize,
    /// Offset after its last byte.
    pub end: usize,
}

/// Cuts one text into tokens; comments and white space are left out.
#[derive(Clone, Debug)]
pub struct Lexer<'a> {
    sql: &'a [u8],
    at: usize,
    mode: LexMode,
    executable: Executable,
    /// Inside an executable comment: `*/` closes it.
    inside: bool,
    /// True if the last word is directly followed by a dot and a name, so that dot starts no
    /// number.
    dotted: bool,
    /// True if the last token was a dot that touches a name: digits there start a name.
    name_next: bool,
    doubt: bool,
    /// True if a quoted token or a comment has no end, or a zero byte stands outside of both.
    unread: bool,
    /// True if a character of several bytes ends on one that means something by itself.
    hides: bool,
    /// True if a semicolon stands inside an executable comment.
    split: bool,
    comments_run: bool,
    /// The first version-dependent comment: `M` or not, and its version.
    versioned: Option<(bool, u32)>,
}

impl<'a> Lexer<'a> {
    /// A lexer at the start of `sql` that runs version-dependent comments.
    #[must_use]
    pub fn new(sql: &'a [u8], mode: LexMode) -> Self {
        Self::with_executable(sql, mode, Executable::Run)
    }

    /// A lexer at the start of `sql`, with a choice about version-dependent comments.
    #[must_use]
    pub fn with_executable(sql: &'a [u8], mode: LexMode, executable: Executable) -> Self {
        Self {
            sql,
            at: 0,
            mode,
            executable,
            inside: false,
            dotted: false,
            name_next: false,
            doubt: mode.charset == Charset::Opaque,
            unread: false,
            hides: !mode.charset.is_plain(sql),
            split: false,
            comments_run: false,
            versioned: None,
        }
    }

    /// True if the tokens so far may not be those that the server sees, or their texts not what
    /// they seem: something is unterminated, or servers or character sets disagree about it. Final
    /// once the iterator is at its end.
    #[must_use]
    pub fn doubtful(&self) -> bool {
        self.miscut() || self.unread || self.hides || self.split
    }

    /// True if the cut itself is doubtful: nothing can be said of the text. nothing can be said of
    /// the text. What is not read by any server is no doubt about what it does, nor is a semicolon
    /// inside an executable comment, as long as the caller asks [`Lexer::in_comment`] where a
    /// statement ends.
    #[must_use]
    pub fn miscut(&self) -> bool {
        self.doubt
    }

    /// True if the tokens and their texts are what the server sees.
    #[must_use]
    pub fn certain(&self) -> bool {
        self.legible() && !self.unread
    }

    /// True if the text is legible as far as the server reads: the last statement may be one that
    /// it cannot.
    #[must_use]
    pub fn legible(&self) -> bool {
        !self.doubt && !self.hides && !self.split && self.versioned.is_none()
    }

    /// True if no server reads the last statement, nor does anything stand behind it.
    #[must_use]
    pub fn unread(&self) -> bool {
        self.unread
    }

    /// True if the last token stands inside an executable comment. Servers of today refuse a
    /// statement that ends there (MySQL 8.0 goes on behind its semicolon, outside of the comment).
    #[must_use]
    pub fn in_comment(&self) -> bool {
        self.inside
    }

    /// True if executable comments were met whose content is among the tokens, or may be: what is
    /// cut out of the text between two tokens may be half of one.
    #[must_use]
    pub fn has_executable(&self) -> bool {
        self.comments_run || self.versioned.is_some()
    }

    /// True if an executable comment was met of which it is not known whether the server runs it.
    #[must_use]
    pub fn is_versioned(&self) -> bool {
        self.versioned.is_some()
    }

    fn byte(&self, at: usize) -> u8 {
        self.sql.get(at).copied().unwrap_or(0)
    }

    fn class(&self, at: usize) -> Class {
        self.sql
            .get(at)
            .map_or(Class::Zero, |&byte| CLASS[usize::from(byte)])
    }

    fn in_name(&self, at: usize) -> bool {
        self.class(at).is_in_names()
    }

    fn is_digit(&self, at: usize) -> bool {
        self.byte(at).is_ascii_digit()
    }

    /// The end of the run of name characters from `at`.
    fn name_end(&mut self, mut at: usize) -> usize {
        loop {
            let rest = self.sql.get(at..).unwrap_or_default();
            let other = |byte: &u8| !IN_NAMES[usize::from(*byte)];
            at += rest.iter().position(other).unwrap_or(rest.len());
            if !self.in_name(at) {
                return at;
            }
            // A letter beyond ASCII.
            at += self.high(self.byte(at), at);
        }
    }

    /// The length of the character outside of quotes that begins with this byte above ASCII.
    #[inline(never)]
    fn high(&mut self, byte: u8, at: usize) -> usize {
        match self.mode.charset {
            Charset::Utf8 | Charset::Opaque => 1,
            // White space in some of the sets: the server sees two words. What is no letter in
            // them stands in no statement that a server reads.
            Charset::OneByte => {
                self.doubt |= matches!(byte, 0xa0 | 0xff);
                1
            }
            Charset::MultiByte(pairs) => {
                let next = self.byte(at + 1);
                let joins = pairs.joins(byte, next);
                self.doubt |= pairs.breaks(byte, next) || matches!(byte, 0xa0 | 0xff);
                1 + usize::from(joins)
            }
        }
    }

    fn word(&mut self, start: usize) -> Kind {
        let touches_dot = std::mem::take(&mut self.name_next);
        self.at = self.name_end(start);
        if self.byte(start) == b'$' {
            // `$tag$ ... $tag$` is a string since MySQL 9.
            let rest = self.sql.get(start + 1..self.at).unwrap_or_default();
            let has_none = matches!(
                self.mode.server,
                Server::MariaDb(_) | Server::MySql(..90_000)
            );
            self.doubt |= !has_none && rest.contains(&b'$');
        }
        self.dotted = self.byte(self.at) == b'.' && self.in_name(self.at + 1);
        if touches_dot || self.dotted {
            Kind::Name
        } else {
            Kind::Word
        }
    }

    /// A token that starts with a digit: a number, or a name such as `1abc`.
    fn number(&mut self, start: usize) -> Kind {
        if let Some(end) = self.prefixed_number(start) {
            self.at = end;
            return Kind::Number;
        }
        let mut end = start;
        while self.is_digit(end) {
            end += 1;
        }
        if self.byte(end) == b'.' {
            return self.fraction(end);
        }
        if matches!(self.byte(end), b'e' | b'E') {
            let sign = usize::from(matches!(self.byte(end + 1), b'+' | b'-'));
            if self.is_digit(end + 1 + sign) {
                self.at = self.digits_end(end + 1 + sign);
                return Kind::Number;
            }
        }
        if self.in_name(end) {
            return self.word(start);
        }
        self.at = end;
        Kind::Number
    }

    /// The end of `0x1F` or `0b01` at `start`, if it is one and no longer name.
    fn prefixed_number(&self, start: usize) -> Option<usize> {
        let digit: fn(&u8) -> bool = match (self.byte(start), self.byte(start + 1)) {
            (b'0', b'x') => u8::is_ascii_hexdigit,
            (b'0', b'b') => |byte| matches!(byte, b'0' | b'1'),
            _ => return None,
        };
        let mut end = start + 2;
        while self.sql.get(end).is_some_and(digit) {
            end += 1;
        }
        (end > start + 2 && !self.in_name(end)).then_some(end)
    }

    /// The rest of a number from its dot.
    fn fraction(&mut self, dot: usize) -> Kind {
        let mut end = self.digits_end(dot + 1);
        if matches!(self.byte(end), b'e' | b'E') {
            end += 1 + usize::from(matches!(self.byte(end + 1), b'+' | b'-'));
            // `f 1.e(x)` is a call of `f` on some servers: the broken number vanishes.
            self.doubt |= !self.is_digit(end);
            end = self.digits_end(end);
        }
        self.at = end.min(self.sql.len());
        Kind::Number
    }

    fn digits_end(&self, mut at: usize) -> usize {
        while self.is_digit(at) {
            at += 1;
        }
        at
    }

    fn dot(&mut self, start: usize) -> Kind {
        if !std::mem::take(&mut self.dotted) && self.is_digit(start + 1) {
            return self.fraction(start);
        }
        self.at = start + 1;
        self.name_next = self.in_name(self.at);
        Kind::Punct(b'.')
    }

    /// A quoted token whose opening quote is at `start`.
    fn quoted(&mut self, start: usize) -> Kind {
        let quote = self.byte(start);
        let name = quote == b'`' || (quote == b'"' && self.mode.ansi_quotes);
        let escapes = !name && !self.mode.no_backslash_escapes;
        let pairs = match self.mode.charset {
            Charset::MultiByte(pairs) => Some(pairs),
            _ => None,
        };
        let stops = [
            quote,
            if escapes { b'\\' } else { quote },
            if name { 0 } else { quote },
        ];
        let mut at = start + 1;
        loop {
            if pairs.is_none() {
                at = skip_blocks(self.sql, at, stops);
            }
            let Some(&byte) = self.sql.get(at) else {
                self.unread = true;
                break;
            };
            if byte >= 0x80
                && let Some(pairs) = pairs
            {
                let next = self.byte(at + 1);
                let joins = pairs.joins(byte, next);
                // Servers differ in what they make of half a character in a name.
                self.doubt |= name && pairs.breaks(byte, next);
                at += 1 + usize::from(joins);
            } else if byte == b'\\' && escapes {
                at += 2;
            } else if byte == 0 && name {
                self.unread = true;
                break;
            } else if byte != quote {
                at += 1;
            } else if self.byte(at + 1) == quote {
                at += 2;
            } else {
                at += 1;
                break;
            }
        }
        self.at = match self.unread {
            true => self.sql.len(),
            false => at,
        };
        if name { Kind::Name } else { Kind::String }
    }

    fn variable(&mut self, start: usize) -> Kind {
        if self.byte(start + 1) == b'@' {
            return self.system_variable(start);
        }
        if matches!(self.byte(start + 1), b'\'' | b'"' | b'`') {
            self.quoted(start + 1);
        } else {
            self.at = self.name_end(start + 1);
            while self.byte(self.at) == b'.' {
                self.at = self.name_end(self.at + 1);
            }
        }
        Kind::UserVariable
    }

    fn system_variable(&mut self, start: usize) -> Kind {
        self.at = start + 1;
        loop {
            let part = self.at + 1;
            if self.byte(part) == b'`' {
                self.quoted(part);
            } else {
                self.at = self.name_end(part);
                self.doubt |= self.at == part;
            }
            let follows = self.in_name(self.at + 1) || self.byte(self.at + 1) == b'`';
            if self.byte(self.at) != b'.' || !follows {
                return Kind::SystemVariable;
            }
        }
    }

    /// Skips to the end of the line, also where that hides the end of an executable comment.
    fn line_comment(&mut self) {
        while let Some(&byte) = self.sql.get(self.at) {
            if byte == 0 {
                break;
            }
            self.at += 1;
            if byte == b'\n' {
                break;
            }
        }
    }

    /// Skips a comment that opens at `start` with `/*`, or enters it.
    fn block_comment(&mut self, start: usize) {
        let text = self.sql.get(start + 2..).unwrap_or_default();
        let read = Comment::read(text, self.mode.server);
        self.doubt |= read.doubt;
        self.at = start + 2 + read.content;
        match read.comment {
            Comment::Plain => self.skip_comment(0),
            Comment::Skipped => self.skip_comment(1),
            Comment::Runs => (self.comments_run, self.inside) = (true, true),
            Comment::Versioned { mariadb, version } => self.versioned(mariadb, version),
        }
    }

    /// Enters or skips a comment that some servers run.
    fn versioned(&mut self, mariadb: bool, version: u32) {
        // Different versions in one text have more outcomes than run-all and skip-all.
        self.doubt |= self
            .versioned
            .is_some_and(|first| first != (mariadb, version));
        self.versioned.get_or_insert((mariadb, version));
        if self.executable == Executable::Run {
            self.inside = true;
            return;
        }
        let content = self.at;
        self.skip_comment(1);
        // To MySQL MariaDB's own are plain comments, in which nothing nests.
        let skipped = self.sql.get(content..self.at).unwrap_or_default();
        self.doubt |= mariadb && skipped.windows(2).any(|pair| pair == b"/*");
    }

    /// Moves behind the `*/` that ends a comment in which so many levels of others may stand.
    fn skip_comment(&mut self, levels: usize) {
        let mut open = 0;
        while self.at < self.sql.len() {
            match (self.byte(self.at), self.byte(self.at + 1)) {
                (b'/', b'*') if open < levels => (open, self.at) = (open + 1, self.at + 2),
                (b'*', b'/') if open == 0 => {
                    self.at += 2;
                    return;
                }
                (b'*', b'/') => (open, self.at) = (open - 1, self.at + 2),
                _ => self.at += 1,
            }
        }
        self.unread = true;
    }

    /// Ends the text at a zero byte outside of quotes. As the last of a text it is none of it:
    /// servers cut off white space and semicolons first.
    fn end_at(&mut self, zero: usize) {
        let rest = self.sql.get(zero + 1..).unwrap_or_default();
        let cut_off = |byte: &u8| matches!(byte, b';' | b' ' | 9..=13);
        self.unread |= self.inside || !rest.iter().all(cut_off);
        self.at = self.sql.len();
    }

    /// Skips a comment at `start` if one opens there, or the end of an executable one.
    fn comment(&mut self, start: usize) -> bool {
        let next = self.byte(start + 1);
        match self.byte(start) {
            b'#' => self.line_comment(),
            b'-' if next == b'-' && opens_comment(self.byte(start + 2)) => self.line_comment(),
            b'/' if next == b'*' => self.block_comment(start),
            b'*' if next == b'/' && self.inside => {
                self.inside = false;
                self.at = start + 2;
            }
            _ => return false,
        }
        true
    }
}

impl Iterator for Lexer<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        loop {
            let start = self.at;
            let Some(&byte) = self.sql.get(start) else {
                self.unread |= self.inside;
                return None;
            };
            let kind = match CLASS[usize::from(byte)] {
                Class::Space => {
                    self.at += 1;
                    continue;
                }
                Class::Letter => self.word(start),
                Class::Digit if self.name_next => self.word(start),
                Class::Digit => self.number(start),
                Class::Quote => self.quoted(start),
                Class::At => self.variable(start),
                Class::Dot => self.dot(start),
                Class::Comment if self.comment(start) => continue,
                Class::Colon if self.byte(start + 1) == b'=' => {
                    self.at += 2;
                    Kind::Assign
                }
                Class::Semicolon => {
                    self.split |= self.inside;
                    self.at += 1;
                    Kind::Semicolon
                }
                Class::Zero => {
                    self.end_at(start);
                    return None;
                }
                _ => {
                    self.at += 1;
                    Kind::Punct(byte)
                }
            };
            return Some(Token {
                kind,
                start,
                end: self.at,
            });
        }
    }
}

/// True if `--` followed by this byte opens a comment; the end of the text counts as zero.
fn opens_comment(byte: u8) -> bool {
    byte <= b' ' || byte == 0x7f
}

/// Class of a byte by what it can start.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Space,
    Letter,
    Digit,
    Quote,
    At,
    Dot,
    /// May open or close a comment.
    Comment,
    Colon,
    Semicolon,
    Punct,
    /// The zero byte, which no server reads.
    Zero,
}

impl Class {
    /// True if a byte of it may stand in a name without quotes.
    const fn is_in_names(self) -> bool {
        matches!(self, Class::Letter | Class::Digit)
    }
}

static CLASS: [Class; 256] = classes();

/// The ASCII among the bytes that may stand in a name without quotes.
static IN_NAMES: [bool; 256] = in_names();

const fn in_names() -> [bool; 256] {
    let (classes, mut table) = (classes(), [false; 256]);
    let mut at = 0;
    while at < 128 {
        table[at] = classes[at].is_in_names();
        at += 1;
    }
    table
}

const fn classes() -> [Class; 256] {
    let mut table = [Class::Punct; 256];
    let mut at = 0;
    while at < 256 {
        #[allow(clippy::cast_possible_truncation, reason = "below 256")]
        let byte = at as u8;
        table[at] = match byte {
            0 => Class::Zero,
            9..=13 | b' ' => Class::Space,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' | 0x80..=0xff => Class::Letter,
            b'0'..=b'9' => Class::Digit,
            b'\'' | b'"' | b'`' => Class::Quote,
            b'@' => Class::At,
            b'.' => Class::Dot,
            b'#' | b'-' | b'/' | b'*' => Class::Comment,
            b':' => Class::Colon,
            b';' => Class::Semicolon,
            _ => Class::Punct,
        };
        at += 1;
    }
    table
}
