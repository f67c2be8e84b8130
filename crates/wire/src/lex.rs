//! SQL text into tokens, as a MySQL or MariaDB server would cut it.
//!
//! The pooler must know whether a statement leaves something behind in its session. A search for
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
//! - The content of executable comments (`/*! ... */`) comes out as tokens. Where it depends on the
//!   server's version whether it runs, [`Executable`] chooses, and a careful caller reads twice.

mod mode;
#[cfg(test)]
mod tests;

pub use mode::{Charset, LexMode, Pairs, Server};

/// What to do with executable comments that only some server versions run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Executable {
    /// Read their content as tokens.
    Run,
    /// Skip them like other comments.
    Skip,
}

/// What a token is.
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

/// One token: its kind and its range in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// What it is.
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
    /// The last word is directly followed by a dot and a name, so that dot starts no number.
    dotted: bool,
    /// The last token was a dot that touches a name: digits there start a name.
    name_next: bool,
    doubt: bool,
    /// A quoted token or a comment has no end.
    unclosed: bool,
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
            doubt: !mode.charset.is_readable(sql),
            unclosed: false,
            comments_run: false,
            versioned: None,
        }
    }

    /// The tokens so far may not be those that the server sees: something is unterminated, or
    /// servers or character sets disagree about it. Final once the iterator is at its end.
    #[must_use]
    pub fn doubtful(&self) -> bool {
        self.doubt || self.unclosed
    }

    /// Nothing but the missing end of a quoted token or comment makes it doubtful: no server reads
    /// the statement in which it stands.
    #[must_use]
    pub fn only_unclosed(&self) -> bool {
        self.unclosed && !self.doubt
    }

    /// An executable comment of any kind was met.
    #[must_use]
    pub fn has_executable(&self) -> bool {
        self.comments_run || self.versioned.is_some()
    }

    /// An executable comment was met that only some servers run.
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
            .map_or(Class::Odd, |&byte| CLASS[usize::from(byte)])
    }

    fn in_name(&self, at: usize) -> bool {
        matches!(self.class(at), Class::Letter | Class::Digit)
    }

    fn is_digit(&self, at: usize) -> bool {
        self.byte(at).is_ascii_digit()
    }

    /// The end of the run of name characters from `at`.
    fn name_end(&mut self, mut at: usize) -> usize {
        let mut high = 0;
        while self.in_name(at) {
            high |= self.byte(at);
            at += 1;
        }
        // In a one-byte set such a byte may be white space, and the server sees two words.
        self.doubt |= high >= 0x80 && self.mode.charset != Charset::Utf8;
        at
    }

    fn word(&mut self, start: usize) -> Kind {
        // `$tag$ ... $tag$` is a string since MySQL 9.
        self.doubt |= self.byte(start) == b'$';
        let touches_dot = std::mem::take(&mut self.name_next);
        self.at = self.name_end(start);
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
        let mut at = start + 1;
        loop {
            let Some(&byte) = self.sql.get(at) else {
                self.unclosed = true;
                break;
            };
            if byte == b'\\' && escapes {
                at += 2;
            } else if byte != quote {
                // A zero byte ends a quoted name on some servers.
                self.doubt |= byte == 0 && name;
                at += 1;
            } else if self.byte(at + 1) == quote {
                at += 2;
            } else {
                at += 1;
                break;
            }
        }
        self.at = at.min(self.sql.len());
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

    fn line_comment(&mut self) {
        // In an executable comment it may hide the `*/`; a zero byte ends it on some servers.
        self.doubt |= self.inside;
        while let Some(&byte) = self.sql.get(self.at) {
            self.at += 1;
            self.doubt |= byte == 0;
            if byte == b'\n' {
                break;
            }
        }
    }

    /// A comment that opens at `start` with `/*`.
    fn block_comment(&mut self, start: usize) {
        // Servers differ in what closes a comment within an executable one.
        self.doubt |= self.inside;
        let text = start + 2;
        match (self.byte(text), self.byte(text + 1)) {
            (b'!', _) => self.executable_comment(text + 1, false),
            (b'M', b'!') => self.executable_comment(text + 2, true),
            (b'+', _) => {
                self.at = text;
                self.hint();
            }
            _ => {
                self.at = text;
                self.skip_comment();
            }
        }
    }

    /// Moves behind the next `*/`.
    fn skip_comment(&mut self) {
        while self.at < self.sql.len() {
            if self.byte(self.at) == b'*' && self.byte(self.at + 1) == b'/' {
                self.at += 2;
                return;
            }
            self.at += 1;
        }
        self.unclosed = true;
    }

    /// Skips an optimizer hint; a `*/` within its quotes closes it on some servers only.
    fn hint(&mut self) {
        let text = self.at;
        self.skip_comment();
        let mut quote = 0;
        for &byte in self.sql.get(text..self.at).unwrap_or_default() {
            if quote == 0 && matches!(byte, b'\'' | b'"' | b'`') {
                quote = byte;
            } else if quote == byte {
                quote = 0;
            }
        }
        self.doubt |= quote != 0;
    }

    /// An executable comment; `text` is where its version or its content starts.
    fn executable_comment(&mut self, text: usize, mariadb: bool) {
        let content = self.digits_end(text).min(text + 7);
        let version = self.sql.get(text..content).unwrap_or_default();
        let version = version
            .iter()
            .fold(0, |all, digit| all * 10 + u32::from(digit - b'0'));
        let digits = content - text;
        // One to four digits are content, a seventh is: no client means that.
        self.doubt |= matches!(digits, 1..=4 | 7);
        self.at = content;
        // MariaDB skips 5.7.0 to 9.99.99 and runs what is older, as does every MySQL.
        if !mariadb && (digits == 0 || (digits == 5 && version < 50_700)) {
            self.comments_run = true;
            self.inside = true;
            return;
        }
        // Different versions in one text have more outcomes than run-all and skip-all.
        self.doubt |= self
            .versioned
            .is_some_and(|first| first != (mariadb, version));
        self.versioned.get_or_insert((mariadb, version));
        if self.executable == Executable::Run {
            self.inside = true;
            return;
        }
        self.skip_comment();
        let skipped = self.sql.get(content..self.at).unwrap_or_default();
        self.doubt |= skipped.windows(2).any(|pair| pair == b"/*");
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
                self.doubt |= self.inside;
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
                    self.at += 1;
                    Kind::Semicolon
                }
                class => {
                    self.doubt |= class == Class::Odd;
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

/// Whether `--` followed by this byte opens a comment; the end of the text counts as zero.
fn opens_comment(byte: u8) -> bool {
    byte <= b' ' || byte == 0x7f
}

/// What a byte can start.
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
    /// The zero byte, on which servers disagree.
    Odd,
}

static CLASS: [Class; 256] = classes();

const fn classes() -> [Class; 256] {
    let mut table = [Class::Punct; 256];
    let mut at = 0;
    while at < 256 {
        #[allow(clippy::cast_possible_truncation, reason = "below 256")]
        let byte = at as u8;
        table[at] = match byte {
            0 => Class::Odd,
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
