//! CONNECTION_ID() and counts of the statement before, for a client whose server connection is not
//! its own.
//!
//! The problem: behind a pool a client knows itself by the id in the pool's greeting, but the
//! server would answer CONNECTION_ID() with the id of whichever connection runs the statement. The
//! mechanism: [`with_own_id`] puts the client's id into the text, as an expression of the same
//! type, length and flags (compared on MariaDB 10.11 and MySQL 9.7, for ids of ten digits). A call
//! that is a whole column of a SELECT gets its own text as the name, so that the texts that drivers
//! and tools send (`docs/decisions/0031-rare-forms.md`) are answered exactly; a longer expression
//! without an alias is named after what stands in the call's place. [`with_values`] does the same
//! for ROW_COUNT(), FOUND_ROWS(), `@@warning_count` and `@@error_count`, all of them or none, and
//! only where no column gets another name.
//!
//! What is left alone, because the server's own id is what is meant or what must be kept: texts
//! that name the server's lists of connections or IS_USED_LOCK(), definitions (CREATE and the
//! like), stored code, strings given to PREPARE, PS_CURRENT_THREAD_ID().
//!
//! Invariant: what is put in place of a call never changes how the rest of the text is cut.

use crate::classify::Reads;
use crate::lex::{Kind, LexMode, Lexer, Server, Token, function_name};
use crate::tracking::Tracked;
use std::borrow::Cow;

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
/// Words in front of a list of columns. MySQL has RETURNING in JSON_VALUE() alone.
const BEGINS_LIST: [&str; 2] = ["SELECT", "RETURNING"];
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
/// Longest text of a call or variable that becomes its column's name.
const NAME_LEN_MAX: usize = 64;

/// Values of a session that are asked of a connection that does not know them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
    pub tracked: Option<Cow<'a, Tracked>>,
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
    let alone = values.asked.is_empty();
    let mut edits = Edits::new(sql, values, mode);
    edits.quiet = edits.is_quiet(&tokens);
    let tokens = edits.join_calls(&tokens)?;
    if edits.made.is_empty() {
        return None;
    }
    let exact = edits.name_columns(&tokens);
    (exact || alone).then(|| edits.apply())
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

/// Expression of the variables' type: unsigned, 21 characters.
fn unsigned(number: u32) -> String {
    let [a, b, c, d] = number.to_be_bytes();
    format!("INET_ATON('{a}.{b}.{c}.{d}')")
}

/// Place of a value in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Column of a list, without an alias.
    Column,
    /// Column with an alias.
    Aliased,
    /// Anywhere else.
    Other,
}

/// Replacement of a token.
enum Instead {
    Nothing,
    Text(String),
    /// Question whose answer is not known.
    Unknown,
}

struct Edits<'a> {
    sql: &'a [u8],
    values: Values<'a>,
    server: Server,
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
            server: mode.server,
            quiet: false,
            made: Vec::new(),
        }
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
        if let Some(tracked) = &self.values.tracked
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

    /// True if a text shows variables, whole numbers and calls without arguments, and does nothing
    /// that leaves a condition.
    fn is_quiet(&self, tokens: &[Token]) -> bool {
        let kind = |at: usize| tokens.get(at).map(|token| token.kind);
        let selects = tokens
            .first()
            .is_some_and(|first| self.is(*first, &["SELECT"]));
        selects
            && tokens
                .iter()
                .enumerate()
                .all(|(at, token)| match token.kind {
                    Kind::SystemVariable | Kind::Name | Kind::Semicolon => true,
                    Kind::Word => !self.is(*token, &ENDS_LIST),
                    Kind::Number => self.text(*token).iter().all(u8::is_ascii_digit),
                    Kind::Punct(b'(') => kind(at + 1) == Some(Kind::Punct(b')')),
                    Kind::Punct(byte) => matches!(byte, b',' | b')'),
                    _ => false,
                })
    }

    /// Names each value that is a column after its own text; `false` if another column of a list
    /// may have got a name of another text.
    fn name_columns(&mut self, tokens: &[Token]) -> bool {
        let lists = |token: &Token| self.is(*token, &BEGINS_LIST);
        let first = tokens.first();
        // MariaDB names a column of VALUES after its text, and takes no alias there.
        let has_lists = tokens.iter().any(lists) || first.is_some_and(|t| self.is(*t, &["VALUES"]));
        let mut exact = true;
        // Of each open parenthesis, outermost first: a list of columns goes on.
        let mut in_list = vec![false];
        // The outermost column has a value in it, so that it needs an alias.
        let mut needs_alias = false;
        for at in 0..=tokens.len() {
            let token = tokens.get(at).copied();
            if in_list.len() == 1 && self.ends_column(token) {
                let aliased = at >= 2 && self.is(tokens[at - 2], &["AS"]) && in_list[0];
                exact &= !needs_alias || aliased || !has_lists;
                needs_alias = false;
            }
            let Some(token) = token else { break };
            let inner = in_list.len() > 1;
            let Some(level) = in_list.last_mut() else {
                break;
            };
            match token.kind {
                Kind::Semicolon => in_list = vec![false],
                Kind::Punct(b'(') => in_list.push(false),
                Kind::Punct(b')') if inner => drop(in_list.pop()),
                Kind::Word if self.is(token, &BEGINS_LIST) => *level = true,
                Kind::Word if self.is(token, &ENDS_LIST) => *level = false,
                _ if self.is_made(token) => {
                    let place = if *level {
                        self.place(tokens, at)
                    } else {
                        Place::Other
                    };
                    needs_alias |= inner || place == Place::Other;
                    if place == Place::Column {
                        needs_alias |= !self.name_column(token);
                    }
                }
                _ => {}
            }
        }
        exact
    }

    /// Gives a column that is this value its text as the name; `false` if that is not certain.
    fn name_column(&mut self, token: Token) -> bool {
        let text = self.text(token);
        let known = text.is_ascii() && text.len() <= NAME_LEN_MAX;
        if known {
            let name = String::from_utf8_lossy(text).replace('`', "``");
            let named = (token.end, token.end, format!(" AS `{name}`"));
            self.made.push(named);
        }
        known
    }

    /// True if a column ends in front of this token, or of the end.
    fn ends_column(&self, token: Option<Token>) -> bool {
        token.is_none_or(|token| match token.kind {
            Kind::Punct(byte) => matches!(byte, b',' | b')'),
            Kind::Semicolon => true,
            _ => self.is(token, &ENDS_LIST),
        })
    }

    /// Place of the value at a token in a list of columns.
    fn place(&self, tokens: &[Token], at: usize) -> Place {
        let ends = |at: usize| self.ends_column(tokens.get(at).copied());
        let is_name = |at: usize| {
            let token = tokens.get(at);
            token.is_some_and(|token| matches!(token.kind, Kind::Word | Kind::Name | Kind::String))
        };
        let before = at.checked_sub(1).map(|before| tokens[before]);
        let begins = before.is_some_and(|token| {
            token.kind == Kind::Punct(b',')
                || self.is(token, &BEGINS_LIST)
                || self.is(token, &MODIFIERS)
        });
        let is_as = tokens
            .get(at + 1)
            .is_some_and(|next| self.is(*next, &["AS"]));
        let alias = at + 1 + usize::from(is_as);
        match begins {
            true if ends(at + 1) => Place::Column,
            true if is_name(alias) && ends(alias + 1) => Place::Aliased,
            _ => Place::Other,
        }
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
