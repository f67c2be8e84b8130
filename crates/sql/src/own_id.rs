//! CONNECTION_ID() and counts of the statement before, for a client whose server connection is not
//! its own.
//!
//! The problem: behind a pooler a client knows itself by the id in the pooler's greeting, but the
//! server would answer CONNECTION_ID() with the id of whichever connection runs the statement. The
//! mechanism: [`with_own_id`] puts the client's id into the text, as an expression of the same
//! type, length and flags (compared on MariaDB 10.11 and MySQL 9.7, for ids of ten digits), and
//! gives a column of a list of SELECT or RETURNING that has no alias the name that the server would
//! have made of the text. [`with_values`] does the same for ROW_COUNT(), FOUND_ROWS(),
//! `@@warning_count` and `@@error_count`, all of them or none.
//!
//! What is left alone, because the server's own id is what is meant or what must be kept: texts
//! that name the server's lists of connections or IS_USED_LOCK(), definitions (CREATE and the
//! like), stored code, strings given to PREPARE, PS_CURRENT_THREAD_ID().
//!
//! Invariant: what is put in place of a call never changes how the rest of the text is cut.

use crate::classify::Reads;
use crate::lex::{Charset, Kind, LexMode, Lexer, Server, Token, function_name};
use crate::tracking::Tracked;

/// Names with which a text speaks of the server's own connections.
const SERVERS_OWN: [&str; 6] = [
    "INFORMATION_SCHEMA",
    "PERFORMANCE_SCHEMA",
    "SYS",
    "PROCESSLIST",
    "IS_USED_LOCK",
    "THREADS",
];
/// First words of statements that compute a value now, rather than define something.
const COMPUTES: [&str; 10] = [
    "SELECT", "INSERT", "REPLACE", "UPDATE", "DELETE", "SET", "DO", "CALL", "WITH", "VALUES",
];
/// Words between SELECT and its first column.
const MODIFIERS: [&str; 11] = [
    "ALL",
    "DISTINCT",
    "DISTINCTROW",
    "HIGH_PRIORITY",
    "STRAIGHT_JOIN",
    "SQL_SMALL_RESULT",
    "SQL_BIG_RESULT",
    "SQL_BUFFER_RESULT",
    "SQL_CACHE",
    "SQL_NO_CACHE",
    "SQL_CALC_FOUND_ROWS",
];
/// Words that end a list of columns.
const ENDS_LIST: [&str; 17] = [
    "FROM",
    "INTO",
    // ON DUPLICATE KEY UPDATE behind a SELECT without a table.
    "ON",
    "WHERE",
    "GROUP",
    "HAVING",
    "ORDER",
    "LIMIT",
    "UNION",
    "EXCEPT",
    "INTERSECT",
    "PROCEDURE",
    "FOR",
    "LOCK",
    "WINDOW",
    "OFFSET",
    "FETCH",
];
/// Words that end an expression and are no alias.
const ENDS_VALUE: [&str; 5] = ["END", "NULL", "TRUE", "FALSE", "UNKNOWN"];
/// Words that a value follows, so that what stands behind one is no alias.
const BEFORE_VALUE: [&str; 12] = [
    "AND", "BETWEEN", "BINARY", "COLLATE", "DIV", "ESCAPE", "LIKE", "MOD", "OR", "REGEXP", "RLIKE",
    "XOR",
];
/// Words that make one literal with a text behind them.
const BEFORE_TEXT: [&str; 3] = ["DATE", "TIME", "TIMESTAMP"];
/// Words in a text without calls that may leave a condition: operators, and what reads a text as
/// something else.
const MAY_WARN: [&str; 17] = [
    "AND",
    "BETWEEN",
    "BINARY",
    "CASE",
    "COLLATE",
    "DATE",
    "DIV",
    "IN",
    "INTERVAL",
    "IS",
    "LIKE",
    "MOD",
    "NOT",
    "OR",
    "TIME",
    "TIMESTAMP",
    "XOR",
];
/// The letters of `x'ff'`, `b'1'` and `n'a'`.
const PREFIXES: [&str; 3] = ["X", "B", "N"];
/// Characters of the longest name that servers make of a column's text: the first of it, comments
/// and white space between its words included (seen on MariaDB 10.11 and MySQL 9.7).
const NAME_LEN_MAX: usize = 255;
/// Longest column inside of parentheses, whose names a table may take.
const INNER_LEN_MAX: usize = 64;

/// Values of a session that are asked of a connection that does not know them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Values<'a> {
    /// CONNECTION_ID()
    pub id: Option<u32>,
    /// ROW_COUNT()
    pub row_count: Option<i64>,
    /// FOUND_ROWS()
    pub found_rows: Option<u64>,
    /// `@@warning_count`
    pub warnings: Option<u32>,
    /// `@@error_count`
    pub errors: Option<u32>,
    /// The statement clears the conditions of the one before by itself, before it counts.
    pub clears: bool,
    /// `@@last_gtid`: digits and dashes.
    pub last_gtid: Option<&'a str>,
    /// `@@session_track_system_variables` and its like.
    pub tracked: Option<&'a Tracked>,
    /// Questions that are to be answered so; the server knows the others.
    pub asked: Reads,
}

/// The text with `id` in place of the server's; `None` when it holds nothing to put it in.
#[must_use]
pub fn with_own_id(sql: &[u8], mode: LexMode, id: u32) -> Option<Vec<u8>> {
    let values = Values {
        id: Some(id),
        ..Values::default()
    };
    put_values(sql, mode, values)
}

/// The text with what is known of the statement before in place of each question about it; `None`
/// when one of them has no answer here, when there is none, or when a column would have another
/// name than the server gives it.
#[must_use]
pub fn with_values(sql: &[u8], mode: LexMode, values: Values<'_>) -> Option<Vec<u8>> {
    put_values(sql, mode, values)
}

/// The name that servers make of a column's text, in back quotes; `None` where that is not certain.
fn name_of(text: &[u8], charset: Charset, inner: bool) -> Option<String> {
    let known = charset == Charset::Utf8 || text.is_ascii();
    let text = std::str::from_utf8(text).ok().filter(|_| known)?;
    // A derived table's column gets another name then.
    if inner && text.chars().count() > INNER_LEN_MAX {
        return None;
    }
    // No name holds these.
    if text.chars().any(|c| c == '\0' || c.len_utf8() > 3) {
        return None;
    }
    let name: String = text.chars().take(NAME_LEN_MAX).collect();
    Some(format!("`{}`", name.replace('`', "``")))
}

fn put_values(sql: &[u8], mode: LexMode, values: Values<'_>) -> Option<Vec<u8>> {
    let mut lexer = Lexer::new(sql, mode);
    let mut tokens: Vec<Token> = lexer.by_ref().collect();
    if !lexer.legible() {
        return None;
    }
    let mut read = sql.len();
    if lexer.unread() {
        // Servers run what stands in front of a statement that does not end.
        let last = tokens
            .iter()
            .rposition(|token| token.kind == Kind::Semicolon)?;
        tokens.truncate(last + 1);
        read = tokens[last].end;
    }
    let bare = lexer
        .has_executable()
        .then(|| [&without_comments(&sql[..read], &tokens)[..], &sql[read..]].concat());
    let sql = bare.as_deref().unwrap_or(sql);
    let mut edits = Edits::new(sql, values, mode);
    if values.asked.intersects(Reads::DIAGNOSTICS) {
        edits.quiet = edits.is_quiet(&tokens);
    }
    let tokens = edits.join_calls(&tokens)?;
    if edits.made.is_empty() {
        return None;
    }
    edits.name_columns(&tokens);
    let exact = edits.named || values.asked.is_empty();
    exact.then(|| edits.apply())
}

/// The text with blanks for everything between its tokens: what an executable comment holds is a
/// part of the statement, and a name put behind it must not stand inside.
fn without_comments(sql: &[u8], tokens: &[Token]) -> Vec<u8> {
    let mut out = vec![b' '; sql.len()];
    for token in tokens {
        out[token.start..token.end].copy_from_slice(&sql[token.start..token.end]);
    }
    out
}

/// A number of the type, length and flags of the call, also inside expressions; and where a server
/// warns of the function, it still does.
fn signed(number: i64, call: &str) -> Instead {
    Instead::Text(format!("IF(TRUE,{number},{call})"))
}

/// As the variables: unsigned, 21 characters.
fn unsigned(number: u32) -> String {
    let [a, b, c, d] = number.to_be_bytes();
    format!("INET_ATON('{a}.{b}.{c}.{d}')")
}

/// A list of columns, or any other parenthesis.
#[derive(Clone, Copy, Debug, Default)]
struct Level {
    /// It is in a list of columns.
    list: bool,
    /// The column's first token.
    from: Option<usize>,
    /// An id was put into the column, or deeper in it.
    touched: bool,
    /// True after any column before.
    any: bool,
}

/// Replacement of a token.
enum Instead {
    Nothing,
    Text(String),
    /// It is a question, and the answer is not known.
    Unknown,
}

struct Edits<'a> {
    sql: &'a [u8],
    values: Values<'a>,
    charset: Charset,
    server: Server,
    /// Every column that was touched has the name that it would have had.
    named: bool,
    /// Nothing in the text leaves a condition in front of a question about those of before.
    quiet: bool,
    /// Replacements, each with its range.
    made: Vec<(usize, usize, String)>,
}

impl<'a> Edits<'a> {
    fn new(sql: &'a [u8], values: Values<'a>, mode: LexMode) -> Self {
        Self {
            sql,
            values,
            charset: mode.charset,
            server: mode.server,
            named: true,
            quiet: true,
            made: Vec::new(),
        }
    }

    /// True if nothing in a text without tables leaves a condition before it is evaluated: values
    /// are set and shown as they are.
    fn is_quiet(&self, tokens: &[Token]) -> bool {
        let sets = tokens
            .first()
            .is_some_and(|&token| self.is(token, &["SET"]));
        // Whole numbers leave none, whatever is done with them, if nothing is divided.
        let whole = tokens.iter().all(|&token| match token.kind {
            Kind::String | Kind::Name | Kind::UserVariable => false,
            Kind::SystemVariable => self.text(token).to_ascii_lowercase().ends_with(b"_count"),
            Kind::Number => self.text(token).iter().all(u8::is_ascii_digit),
            Kind::Punct(byte) => !matches!(byte, b'/' | b'%'),
            _ => true,
        });
        let kind = |at: usize| tokens.get(at).map(|token| token.kind);
        (0..tokens.len()).all(|at| {
            let token = tokens[at];
            let text = self.text(token);
            match token.kind {
                Kind::Punct(b'=') | Kind::Assign => {
                    whole || sets && at.checked_sub(1).and_then(kind) == Some(Kind::UserVariable)
                }
                Kind::Punct(b',' | b'.' | b'(' | b')') => true,
                Kind::Punct(_) => whole,
                Kind::Word => {
                    let calls = kind(at + 1) == Some(Kind::Punct(b'('))
                        && kind(at + 2) != Some(Kind::Punct(b')'))
                        && !self.is(token, &["SELECT"]);
                    !calls && !text.starts_with(b"_") && !self.is(token, &MAY_WARN)
                }
                Kind::String => text.is_ascii(),
                _ => true,
            }
        })
    }

    fn text(&self, token: Token) -> &'a [u8] {
        &self.sql[token.start..token.end]
    }

    fn is_any(&self, token: Token, words: &[&str]) -> bool {
        let text = self.text(token);
        matches!(token.kind, Kind::Word | Kind::Name)
            && words
                .iter()
                .any(|w| text.eq_ignore_ascii_case(w.as_bytes()))
    }

    fn is(&self, token: Token, words: &[&str]) -> bool {
        token.kind == Kind::Word && self.is_any(token, words)
    }

    /// Makes one token of each call and notes what takes its place; `None` if the text speaks of
    /// the server's own connections, or a statement with a call defines something.
    fn join_calls(&mut self, tokens: &[Token]) -> Option<Vec<Token>> {
        let mut joined: Vec<Token> = Vec::with_capacity(tokens.len());
        let (mut at, mut computes, mut first) = (0, false, true);
        while let Some(&token) = tokens.get(at) {
            if self.is_any(token, &SERVERS_OWN) {
                return None;
            }
            if first && token.kind != Kind::Punct(b'(') {
                computes = self.is(token, &COMPUTES);
                // MariaDB names a column of VALUES after its text, and takes no alias there.
                self.named &= self.server.is_mysql() || !self.is(token, &["VALUES"]);
                first = false;
            }
            first |= token.kind == Kind::Semicolon;
            let dotted = joined.last().is_some_and(|t| t.kind == Kind::Punct(b'.'));
            let kinds = tokens.get(at + 1..at + 3).map(|t| (t[0].kind, t[1].kind));
            let call = kinds == Some((Kind::Punct(b'('), Kind::Punct(b')')));
            let mut token = token;
            let instead = match token.kind {
                Kind::Word | Kind::Name if call && !dotted => self.of_call(token),
                Kind::SystemVariable => self.of_variable(token),
                _ => Instead::Nothing,
            };
            match instead {
                Instead::Nothing => {}
                Instead::Unknown => return None,
                Instead::Text(text) => {
                    if token.kind != Kind::SystemVariable {
                        token.end = tokens[at + 2].end;
                        at += 2;
                    }
                    token.kind = Kind::Number;
                    self.made.push((token.start, token.end, text));
                }
            }
            if token.kind == Kind::Number && self.is_made(token) && !computes {
                return None;
            }
            joined.push(token);
            at += 1;
        }
        Some(joined)
    }

    fn of_call(&self, name: Token) -> Instead {
        let Values {
            id,
            row_count,
            found_rows,
            ..
        } = self.values;
        let Some(function) = function_name(name.kind, self.text(name)) else {
            return Instead::Nothing;
        };
        let is = |name: &str| function.eq_ignore_ascii_case(name.as_bytes());
        if is("CONNECTION_ID") {
            return id.map_or(Instead::Nothing, |id| {
                Instead::Text(format!("CAST({id} AS UNSIGNED)"))
            });
        }
        // In quotes it is a stored function there.
        let is_keyword = self.server.is_mysql();
        let asks = |what| self.values.asked.intersects(what);
        let (number, call) = if asks(Reads::ROW_COUNT)
            && is("ROW_COUNT")
            && (name.kind == Kind::Word || !is_keyword)
        {
            (row_count, "ROW_COUNT()")
        } else if asks(Reads::FOUND_ROWS) && is("FOUND_ROWS") {
            let rows = found_rows.and_then(|rows| i64::try_from(rows).ok());
            (rows, "FOUND_ROWS()")
        } else {
            return Instead::Nothing;
        };
        number.map_or(Instead::Unknown, |number| signed(number, call))
    }

    fn of_variable(&self, token: Token) -> Instead {
        let parts: Vec<&[u8]> = self.text(token).split(|&byte| byte == b'.').collect();
        let is = |text: &[u8], name: &str| text.eq_ignore_ascii_case(name.as_bytes());
        let name = match parts[..] {
            [name] => name.strip_prefix(b"@@").unwrap_or(name),
            [scope, name] if is(scope, "@@session") || is(scope, "@@local") => name,
            _ => return Instead::Nothing,
        };
        let name = match name {
            [b'`', inner @ .., b'`'] => inner,
            _ => name,
        };
        // Of the type, length and flags of the variable, which CAST() is not.
        if is(name, "pseudo_thread_id") {
            let id = self.values.id;
            return id.map_or(Instead::Nothing, |id| Instead::Text(unsigned(id)));
        }
        if let Some(tracked) = self.values.tracked
            && self.values.asked.intersects(Reads::TRACKERS)
            && let Some(shown) = std::str::from_utf8(name)
                .ok()
                .and_then(|n| tracked.shown(n, self.server))
        {
            return Instead::Text(shown);
        }
        if is(name, "last_gtid") && self.values.asked.intersects(Reads::LAST_GTID) {
            let text = |gtid| Instead::Text(format!("IF(TRUE,'{gtid}',@@last_gtid)"));
            return self.values.last_gtid.map_or(Instead::Unknown, text);
        }
        let number = match self.values.asked.intersects(Reads::DIAGNOSTICS) {
            true if is(name, "warning_count") => self.values.warnings,
            true if is(name, "error_count") => self.values.errors,
            _ => return Instead::Nothing,
        };
        // MariaDB counts the statement's own conditions from the first one on. MySQL tells the
        // count of before to the end.
        if matches!(self.server, Server::MariaDb(_)) {
            if self.values.clears {
                let own = std::str::from_utf8(self.text(token));
                return own.map_or(Instead::Unknown, |own| Instead::Text(own.into()));
            }
            if !self.quiet {
                return Instead::Unknown;
            }
        }
        number.map_or(Instead::Unknown, |number| Instead::Text(unsigned(number)))
    }

    fn is_made(&self, token: Token) -> bool {
        let start = token.start;
        self.made
            .iter()
            .any(|(from, to, _)| *from == start && from < to)
    }

    /// True if a list of columns begins behind a token. MySQL knows no RETURNING but that of
    /// JSON_VALUE().
    fn begins_list(&self, token: Token) -> bool {
        self.is(token, &["SELECT"]) || !self.server.is_mysql() && self.is(token, &["RETURNING"])
    }

    /// Gives columns that were touched the names that they would have had.
    fn name_columns(&mut self, tokens: &[Token]) {
        let mut levels = vec![Level::default()];
        for (at, &token) in tokens.iter().enumerate() {
            let deep = levels.len();
            let Some(level) = levels.last_mut() else {
                return;
            };
            let ends_list = self.is(token, &ENDS_LIST);
            match token.kind {
                Kind::Punct(b'(') => {
                    level.from.get_or_insert(at);
                    levels.push(Level::default());
                }
                Kind::Punct(b')') => {
                    let level = *level;
                    self.name_column(tokens, level, at, deep > 1);
                    if deep > 1 {
                        levels.pop();
                    }
                    if let Some(outer) = levels.last_mut() {
                        outer.touched |= level.touched || level.any;
                    }
                }
                Kind::Semicolon => {
                    self.name_column(tokens, *level, at, deep > 1);
                    levels = vec![Level::default()];
                }
                Kind::Punct(b',') => {
                    self.name_column(tokens, *level, at, deep > 1);
                    level.any |= level.touched;
                    (level.from, level.touched) = (None, false);
                }
                Kind::Word if self.begins_list(token) => {
                    self.name_column(tokens, *level, at, deep > 1);
                    level.any |= level.touched;
                    (level.list, level.from, level.touched) = (true, None, false);
                }
                Kind::Word if level.list && ends_list => {
                    self.name_column(tokens, *level, at, deep > 1);
                    level.any |= level.touched;
                    (level.list, level.from, level.touched) = (false, None, false);
                }
                Kind::Word if level.from.is_none() && self.is(token, &MODIFIERS) => {}
                _ => {
                    level.from.get_or_insert(at);
                    level.touched |= self.is_made(token);
                }
            }
        }
        if let Some(level) = levels.first() {
            self.name_column(tokens, *level, tokens.len(), false);
        }
    }

    /// A column ends before token `end`.
    fn name_column(&mut self, tokens: &[Token], level: Level, end: usize, inner: bool) {
        let Some(column) = level.from.and_then(|from| tokens.get(from..end)) else {
            return;
        };
        if !level.list || !level.touched {
            return;
        }
        match self.has_alias(column) {
            Some(true) => return,
            Some(false) => {}
            None => {
                self.named = false;
                return;
            }
        }
        let (Some(first), Some(last)) = (column.first(), column.last()) else {
            return;
        };
        // No expression ends so, and what is put behind `--` would make a comment of the rest.
        if matches!(last.kind, Kind::Punct(mark) if mark != b')' && mark != b'?') {
            self.named = false;
            return;
        }
        match name_of(&self.sql[first.start..last.end], self.charset, inner) {
            Some(name) => self.made.push((last.end, last.end, format!(" AS {name}"))),
            None => self.named = false,
        }
    }

    /// True if the column has a name of its own already; `None` if that is not certain.
    fn has_alias(&self, column: &[Token]) -> Option<bool> {
        let (last, rest) = column.split_last()?;
        let Some(before) = rest.last() else {
            return Some(false);
        };
        if !matches!(last.kind, Kind::Word | Kind::Name | Kind::String) {
            return Some(false);
        }
        if self.is(*before, &["AS"]) {
            return Some(true);
        }
        if self.is(*last, &ENDS_VALUE) {
            return Some(false);
        }
        let string = last.kind == Kind::String;
        match before.kind {
            // INTERVAL '1' DAY
            _ if !string && rest.iter().any(|token| self.is(*token, &["INTERVAL"])) => None,
            Kind::Word if self.is(*before, &ENDS_VALUE) => Some(true),
            Kind::Word if self.is(*before, &BEFORE_VALUE) => Some(false),
            Kind::Word if string && self.is_prefix(*before, *last) => Some(false),
            Kind::Word => None,
            // Two literals are one.
            Kind::String if string => Some(false),
            Kind::Punct(b')' | b'?') => Some(true),
            Kind::Punct(_) | Kind::Assign => Some(false),
            _ => Some(true),
        }
    }

    /// True if a word is a part of the literal behind it: `x'ff'`, `DATE '2020-01-01'`, or the name
    /// of a character set.
    fn is_prefix(&self, word: Token, literal: Token) -> bool {
        let adjacent = word.end == literal.start && self.is(word, &PREFIXES);
        let charset = self.text(word).strip_prefix(b"_");
        adjacent
            || self.is(word, &BEFORE_TEXT)
            || charset.is_some_and(|name| Charset::of_name(name) != Charset::Opaque)
    }

    fn apply(mut self) -> Vec<u8> {
        self.made.sort_by_key(|(from, to, _)| (*from, *to));
        let mut out = Vec::with_capacity(self.sql.len() + 64);
        let mut at = 0;
        for (from, to, text) in &self.made {
            out.extend_from_slice(&self.sql[at..*from]);
            out.extend_from_slice(text.as_bytes());
            at = *to;
        }
        out.extend_from_slice(&self.sql[at..]);
        out
    }
}

#[cfg(test)]
mod tests;
