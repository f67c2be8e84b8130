//! CONNECTION_ID() for a client whose server connection is not its own.
//!
//! The problem: behind a pooler a client knows itself by the id in the pooler's greeting, but the
//! server would answer CONNECTION_ID() with the id of whichever connection runs the statement. The
//! mechanism: [`with_own_id`] puts the client's id into the text, as an expression of the same
//! type, length and flags (compared on MariaDB 10.11 and MySQL 9.7, for ids of ten digits), and
//! gives a column of a SELECT list that has no alias the name that the server would have made of
//! the text.
//!
//! What is left alone, because the server's own id is what is meant or what must be kept: texts
//! that name the server's lists of connections or IS_USED_LOCK(), definitions (CREATE and the
//! like), stored code, strings given to PREPARE, PS_CURRENT_THREAD_ID().
//!
//! Invariant: what is put in place of a call never changes how the rest of the text is cut.

use crate::lex::{Kind, LexMode, Lexer, Token};

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
const ENDS_LIST: [&str; 16] = [
    "FROM",
    "INTO",
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
/// Longest name that every server makes of a column's text without cutting it.
const NAME_LEN_MAX: usize = 60;

/// The text with `id` in place of the server's; `None` when it holds nothing to put it in.
#[must_use]
pub fn with_own_id(sql: &[u8], mode: LexMode, id: u32) -> Option<Vec<u8>> {
    let mut lexer = Lexer::new(sql, mode);
    let tokens: Vec<Token> = lexer.by_ref().collect();
    if lexer.doubtful() || lexer.has_executable() {
        return None;
    }
    let mut edits = Edits::new(sql, id);
    let tokens = edits.join_calls(&tokens)?;
    if edits.made.is_empty() {
        return None;
    }
    edits.name_columns(&tokens);
    Some(edits.apply())
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
    /// The same of any column before.
    any: bool,
}

struct Edits<'a> {
    sql: &'a [u8],
    id: u32,
    /// What is put in place of which range.
    made: Vec<(usize, usize, String)>,
}

impl<'a> Edits<'a> {
    fn new(sql: &'a [u8], id: u32) -> Self {
        let made = Vec::new();
        Self { sql, id, made }
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
            if call && !dotted && self.is(token, &["CONNECTION_ID"]) {
                token.end = tokens[at + 2].end;
                token.kind = Kind::Number;
                at += 2;
                let text = format!("CAST({} AS UNSIGNED)", self.id);
                self.made.push((token.start, token.end, text));
            } else if self.is_variable(token) {
                // Of the type, length and flags of the variable, which CAST() is not.
                let [a, b, c, d] = self.id.to_be_bytes();
                let text = format!("INET_ATON('{a}.{b}.{c}.{d}')");
                self.made.push((token.start, token.end, text));
                token.kind = Kind::Number;
            }
            if token.kind == Kind::Number && self.is_made(token) && !computes {
                return None;
            }
            joined.push(token);
            at += 1;
        }
        Some(joined)
    }

    fn is_variable(&self, token: Token) -> bool {
        const NAMES: [&[u8]; 3] = [
            b"@@pseudo_thread_id",
            b"@@session.pseudo_thread_id",
            b"@@local.pseudo_thread_id",
        ];
        let text = self.text(token);
        let known = NAMES.iter().any(|name| text.eq_ignore_ascii_case(name));
        token.kind == Kind::SystemVariable && known
    }

    fn is_made(&self, token: Token) -> bool {
        let start = token.start;
        self.made
            .iter()
            .any(|(from, to, _)| *from == start && from < to)
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
                    self.name_column(tokens, level, at);
                    if deep > 1 {
                        levels.pop();
                    }
                    if let Some(outer) = levels.last_mut() {
                        outer.touched |= level.touched || level.any;
                    }
                }
                Kind::Semicolon => {
                    self.name_column(tokens, *level, at);
                    levels = vec![Level::default()];
                }
                Kind::Punct(b',') => {
                    self.name_column(tokens, *level, at);
                    level.any |= level.touched;
                    (level.from, level.touched) = (None, false);
                }
                Kind::Word if self.is(token, &["SELECT"]) => {
                    level.any |= level.touched;
                    (level.list, level.from, level.touched) = (true, None, false);
                }
                Kind::Word if level.list && ends_list => {
                    self.name_column(tokens, *level, at);
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
            self.name_column(tokens, *level, tokens.len());
        }
    }

    /// A column ends before token `end`.
    fn name_column(&mut self, tokens: &[Token], level: Level, end: usize) {
        let Some(column) = level.from.and_then(|from| tokens.get(from..end)) else {
            return;
        };
        if !level.list || !level.touched || self.has_alias(column) != Some(false) {
            return;
        }
        let (Some(first), Some(last)) = (column.first(), column.last()) else {
            return;
        };
        let gaps = column
            .windows(2)
            .map(|pair| &self.sql[pair[0].end..pair[1].start]);
        let mut plain = true;
        for gap in gaps {
            plain &= gap.iter().all(|&byte| byte == b' ');
        }
        let name = &self.sql[first.start..last.end];
        plain &= name
            .iter()
            .all(|byte| byte.is_ascii_graphic() || *byte == b' ');
        plain &= !name.contains(&b'`') && name.len() <= NAME_LEN_MAX;
        if let (true, Ok(name)) = (plain, std::str::from_utf8(name)) {
            self.made
                .push((last.end, last.end, format!(" AS `{name}`")));
        }
    }

    /// Whether the column has a name of its own already; `None` if that is not certain.
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
        match before.kind {
            Kind::Word if self.is(*before, &ENDS_VALUE) => Some(true),
            Kind::Word | Kind::String => None,
            Kind::Punct(b')') => Some(true),
            Kind::Punct(_) | Kind::Assign => Some(false),
            _ => Some(true),
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
mod tests {
    use super::*;

    const ID: u32 = 1_073_741_825;
    const CAST: &str = "CAST(1073741825 AS UNSIGNED)";

    fn put(sql: &str) -> Option<String> {
        let out = with_own_id(sql.as_bytes(), LexMode::default(), ID)?;
        Some(String::from_utf8(out).unwrap().replace(CAST, "ID"))
    }

    #[test]
    fn the_id_takes_the_place_of_the_call_and_the_column_keeps_its_name() {
        let cases = [
            ("SELECT CONNECTION_ID()", "SELECT ID AS `CONNECTION_ID()`"),
            (
                "select connection_id() ;",
                "select ID AS `connection_id()` ;",
            ),
            ("SELECT CONNECTION_ID() AS me", "SELECT ID AS me"),
            ("SELECT CONNECTION_ID() me, 1", "SELECT ID me, 1"),
            (
                "SELECT DISTINCT 1, CONNECTION_ID() + 1 FROM t",
                "SELECT DISTINCT 1, ID + 1 AS `CONNECTION_ID() + 1` FROM t",
            ),
            (
                "SELECT a, (SELECT CONNECTION_ID()) FROM t",
                "SELECT a, (SELECT ID AS `CONNECTION_ID()`) AS `(SELECT CONNECTION_ID())` FROM t",
            ),
            (
                "SELECT CONCAT('a', CONNECTION_ID()), b FROM t WHERE x=CONNECTION_ID()",
                "SELECT CONCAT('a', ID) AS `CONCAT('a', CONNECTION_ID())`, b FROM t WHERE x=ID",
            ),
            (
                "INSERT INTO t VALUES (CONNECTION_ID(), 2)",
                "INSERT INTO t VALUES (ID, 2)",
            ),
            ("SET @a = CONNECTION_ID()", "SET @a = ID"),
            (
                "SELECT IF(a, CONNECTION_ID(), 1) IS NULL FROM t",
                "SELECT IF(a, ID, 1) IS NULL AS `IF(a, CONNECTION_ID(), 1) IS NULL` FROM t",
            ),
            (
                "SELECT 1; SELECT CONNECTION_ID()",
                "SELECT 1; SELECT ID AS `CONNECTION_ID()`",
            ),
            // Not certain what the name would be: the value is right all the same.
            (
                "SELECT CONNECTION_ID() /* me */ + 1",
                "SELECT ID /* me */ + 1",
            ),
        ];
        for (sql, expected) in cases {
            assert_eq!(put(sql).as_deref(), Some(expected), "{sql}");
        }
        assert_eq!(
            put("SELECT @@pseudo_thread_id").as_deref(),
            Some("SELECT INET_ATON('64.0.0.1') AS `@@pseudo_thread_id`")
        );
    }

    #[test]
    fn what_means_the_servers_own_is_left_alone() {
        for sql in [
            "SELECT 1",
            "SELECT 'CONNECTION_ID()', `connection_id()` FROM t",
            "SELECT s.connection_id()",
            "SELECT connection_id FROM t",
            "SELECT * FROM information_schema.processlist WHERE id = CONNECTION_ID()",
            "SELECT IS_USED_LOCK('a') = CONNECTION_ID()",
            "CREATE TABLE t (a BIGINT DEFAULT (CONNECTION_ID()))",
            "PREPARE s FROM 'SELECT CONNECTION_ID()'",
            "SELECT @@global.pseudo_thread_id",
            "SELECT CONNECTION_ID() /*!50000 + 1 */",
        ] {
            assert_eq!(put(sql), None, "{sql}");
        }
    }
}
