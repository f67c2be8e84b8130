//! Reading a statement word by word, for statements that are recognized whole.
//!
//! Names and literals come out only where every server reads the same in them: plain ASCII without
//! escapes, and no longer than the servers' names.

use super::{NAME_MAX, Name};
use crate::lex::{Kind, LexMode, Server, Token};

/// Longest name of a lock on MariaDB, in bytes.
const LOCK_MAX: usize = 192;

/// The tokens of a text, read from the front.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words<'a> {
    sql: &'a [u8],
    rest: &'a [Token],
    /// True if a schema in front of a table's name is passed over.
    no_schema: bool,
}

impl<'a> Words<'a> {
    pub(crate) fn new(sql: &'a [u8], tokens: &'a [Token], mode: LexMode) -> Self {
        Self {
            sql,
            rest: tokens,
            no_schema: mode.no_schema,
        }
    }

    pub(crate) fn text(&self, token: Token) -> &'a [u8] {
        self.sql.get(token.start..token.end).unwrap_or_default()
    }

    /// True if a token is this keyword, given in upper case.
    pub(crate) fn is(&self, token: Token, keyword: &[u8]) -> bool {
        token.kind == Kind::Word && self.text(token).eq_ignore_ascii_case(keyword)
    }

    /// The next token, and goes on.
    pub(crate) fn next(&mut self) -> Option<Token> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// The next token.
    pub(crate) fn peek(&self) -> Option<Token> {
        self.rest.first().copied()
    }

    /// The next token if it is a word, and goes on.
    pub(crate) fn next_word(&mut self) -> Option<&'a [u8]> {
        let token = self.peek().filter(|token| token.kind == Kind::Word)?;
        self.next();
        Some(self.text(token))
    }

    /// Goes on behind a keyword, if that comes next.
    pub(crate) fn eat(&mut self, keyword: &[u8]) -> bool {
        let found = self.peek().is_some_and(|token| self.is(token, keyword));
        if found {
            self.next();
        }
        found
    }

    /// Goes on behind a byte, if that comes next.
    pub(crate) fn eat_punct(&mut self, byte: u8) -> bool {
        let found = self
            .peek()
            .is_some_and(|token| token.kind == Kind::Punct(byte));
        if found {
            self.next();
        }
        found
    }

    /// True if nothing but semicolons follows.
    pub(crate) fn at_end(&self) -> bool {
        self.rest.iter().all(|token| token.kind == Kind::Semicolon)
    }

    /// A name without its quotes; `None` where it is not plain enough to be compared.
    pub(crate) fn plain_name(&mut self) -> Option<Name> {
        let token = self.next()?;
        let text = self.text(token);
        let name = match (token.kind, text) {
            (Kind::Word | Kind::Name, [open @ (b'`' | b'"'), inner @ .., close])
                if open == close =>
            {
                inner
            }
            (Kind::Word | Kind::Name, _) => text,
            _ => return None,
        };
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_$-".contains(byte);
        let good = !name.is_empty() && name.len() <= NAME_MAX && name.iter().all(plain);
        good.then(|| name.into())
    }

    /// A table's name with its schema, a NUL between the two.
    pub(super) fn table(&mut self, schema: Option<&[u8]>) -> Option<Name> {
        let first = self.plain_name()?;
        let (named, table) = if self.eat_punct(b'.') {
            (Some(&first), self.plain_name()?)
        } else {
            (None, first.clone())
        };
        let schema = match named.filter(|_| !self.no_schema) {
            Some(named) => named,
            None => schema?,
        };
        Some([schema, b"\0", &table].concat().into())
    }

    /// True if a lock of this name is none: MariaDB gives NULL for NULL and for an empty one, MySQL
    /// an error; both an error for one that is too long.
    pub(super) fn locks_nothing(&self, token: Token, server: Server) -> bool {
        let text = self.text(token);
        let nothing = match token.kind {
            Kind::Word => text.eq_ignore_ascii_case(b"NULL"),
            Kind::String => text.len() == 2,
            _ => false,
        };
        // A plain literal has one character for each byte.
        let most = match server {
            Server::MySql(_) => NAME_MAX,
            _ => LOCK_MAX,
        };
        nothing || self.plain(token).is_some_and(|name| name.len() > most)
    }

    /// The content of a plain literal: no escapes, no letters that a character set could change.
    pub(super) fn literal(&self, token: Token) -> Option<Name> {
        let inner = self.plain(token)?;
        (!inner.is_empty() && inner.len() <= LOCK_MAX).then(|| inner.into())
    }

    fn plain(&self, token: Token) -> Option<&'a [u8]> {
        let text = self.text(token);
        let inner = match (token.kind, text) {
            (Kind::String, [open @ (b'\'' | b'"'), inner @ .., close]) if open == close => inner,
            _ => return None,
        };
        let plain = |&byte: &u8| {
            (byte.is_ascii_graphic() || byte == b' ') && !matches!(byte, b'\\' | b'\'' | b'"')
        };
        inner.iter().all(plain).then_some(inner)
    }

    /// The name of an XA transaction: literals and a number with commas between, as they stand.
    pub(super) fn xid(&mut self) -> Option<Name> {
        let mut xid = Vec::new();
        loop {
            let mut part = self.next()?;
            // x'0a', in two tokens that touch.
            if part.kind == Kind::Word && self.text(part).eq_ignore_ascii_case(b"x") {
                let digits = self.next().filter(|token| token.start == part.end)?;
                xid.extend_from_slice(b"x");
                part = digits;
            }
            if !matches!(part.kind, Kind::String | Kind::Number) {
                return None;
            }
            xid.extend_from_slice(self.text(part));
            if !self.eat_punct(b',') {
                break;
            }
            xid.push(b',');
        }
        (xid.len() <= 4 * NAME_MAX).then(|| xid.into())
    }
}
