//! KILL: whom a text or a command means, and how much of it is to end.
//!
//! A pool gives its clients ids of its own, so it must read who is meant before anything reaches
//! a server. Only what leaves no doubt is read: an optional kind, then one whole number (in digits,
//! hexadecimal or in quotes) or `CONNECTION_ID()`, perhaps in parentheses. A computed number, a
//! user's name or MariaDB's id of a query is `None`.

use crate::lex::{Kind, LexMode, Lexer, Server, Token};

/// Victim of a KILL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victim {
    /// The connection with this number.
    Id(u64),
    /// The connection that says it.
    Own,
}

/// One KILL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kill {
    /// True if only the statement that runs is to end, not the connection.
    pub query: bool,
    /// Victim.
    pub victim: Victim,
}

impl Kill {
    /// Reads a text whose first word is KILL.
    #[must_use]
    pub fn read(sql: &[u8], mode: LexMode) -> Option<Kill> {
        Kill::read_with(sql, mode, None)
    }

    /// KILL in a prepared text, with the value of its parameter, if it has one.
    #[must_use]
    pub fn read_with(sql: &[u8], mode: LexMode, parameter: Option<u64>) -> Option<Kill> {
        let mut lexer = Lexer::new(sql, mode);
        let tokens: Vec<Token> = lexer.by_ref().collect();
        if !lexer.certain() {
            return None;
        }
        let text = |token: &Token| &sql[token.start..token.end];
        let is = |token: &Token, word: &str| {
            token.kind == Kind::Word && text(token).eq_ignore_ascii_case(word.as_bytes())
        };
        let mut rest = match tokens.split_first()? {
            (first, rest) if is(first, "KILL") => rest,
            _ => return None,
        };
        if let Some((last, before)) = rest.split_last()
            && last.kind == Kind::Semicolon
        {
            rest = before;
        }
        let (mut first, mut behind) = rest.split_first()?;
        // How hard it is to be is MariaDB's own; behind a pool both end the same.
        if matches!(mode.server, Server::MariaDb(_)) && (is(first, "HARD") || is(first, "SOFT")) {
            (first, behind) = behind.split_first()?;
        }
        let query = is(first, "QUERY");
        if query || is(first, "CONNECTION") {
            (first, behind) = behind.split_first()?;
        }
        while first.kind == Kind::Punct(b'(') {
            let (last, inner) = behind.split_last()?;
            if last.kind != Kind::Punct(b')') {
                return None;
            }
            (first, behind) = inner.split_first()?;
        }
        let kinds: Vec<Kind> = behind.iter().map(|token| token.kind).collect();
        let victim = match kinds.as_slice() {
            [] if matches!(first.kind, Kind::Number | Kind::String) => {
                Victim::Id(number(text(first))?)
            }
            [] if first.kind == Kind::Punct(b'?') => Victim::Id(parameter?),
            [Kind::Punct(b'('), Kind::Punct(b')')] if is(first, "CONNECTION_ID") => Victim::Own,
            _ => return None,
        };
        Some(Kill { query, victim })
    }
}

/// A whole number as it is written: digits, hexadecimal digits behind `0x`, digits in quotes.
fn number(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (text.trim_matches(['\'', '"']), 10),
    };
    // No sign, which the parser would take.
    let plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u64::from_str_radix(digits, radix).ok().filter(|_| plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(sql: &str, server: Server) -> Option<(bool, Victim)> {
        let mode = LexMode {
            server,
            ..LexMode::default()
        };
        Kill::read(sql.as_bytes(), mode).map(|kill| (kill.query, kill.victim))
    }

    #[test]
    fn plain_forms_are_read_and_nothing_else() {
        const MARIADB: Server = Server::MariaDb(101_119);
        let cases = [
            ("KILL 5", Some((false, Victim::Id(5)))),
            ("kill connection 6 ;", Some((false, Victim::Id(6)))),
            ("KILL /* that one */ QUERY 7", Some((true, Victim::Id(7)))),
            ("KILL HARD QUERY 8", Some((true, Victim::Id(8)))),
            ("KILL SOFT 9", Some((false, Victim::Id(9)))),
            ("KILL QUERY CONNECTION_ID()", Some((true, Victim::Own))),
            ("KILL 0x1f", Some((false, Victim::Id(31)))),
            ("KILL QUERY '32'", Some((true, Victim::Id(32)))),
            ("KILL ((33))", Some((false, Victim::Id(33)))),
            ("KILL (CONNECTION_ID())", Some((false, Victim::Own))),
            ("KILL '+34'", None),
            ("KILL '3''4'", None),
            ("KILL 0x11112222333344445", None),
            ("KILL (35", None),
            ("KILL (36) + (1)", None),
            ("KILL", None),
            ("KILL QUERY", None),
            ("KILL QUERY ID 5", None),
            ("KILL USER app", None),
            ("KILL 1+1", None),
            ("KILL -1", None),
            ("KILL 1.5", None),
            ("KILL @a", None),
            ("KILL 5; SELECT 1", None),
            ("KILL /*! QUERY */ 5", Some((true, Victim::Id(5)))),
            ("KILL /*!80000 QUERY */ 5", Some((false, Victim::Id(5)))),
            ("KILL 5 /*! ; */", None),
            ("KILL 5 /*", None),
            ("SELECT 5", None),
        ];
        for (sql, expected) in cases {
            assert_eq!(read(sql, MARIADB), expected, "{sql}");
        }
        assert_eq!(read("KILL HARD 5", Server::MySql(80_406)), None);
    }

    #[test]
    fn a_parameter_is_a_number_where_there_is_one() {
        let mode = LexMode::default();
        let victim = |sql: &str, parameter| {
            Kill::read_with(sql.as_bytes(), mode, parameter).map(|kill| (kill.query, kill.victim))
        };
        assert_eq!(victim("KILL ?", Some(7)), Some((false, Victim::Id(7))));
        assert_eq!(victim("KILL QUERY ?", Some(8)), Some((true, Victim::Id(8))));
        assert_eq!(victim("KILL QUERY 9", Some(8)), Some((true, Victim::Id(9))));
        assert_eq!(victim("KILL ?", None), None);
        assert_eq!(victim("KILL ? + 1", Some(7)), None);
        assert_eq!(victim("KILL ?, ?", Some(7)), None);
    }
}
