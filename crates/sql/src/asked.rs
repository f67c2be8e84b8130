//! Questions about the statement before that are statements of their own.
//!
//! SHOW WARNINGS, SHOW ERRORS, SHOW COUNT(*) and GET DIAGNOSTICS ask a session what its last
//! statement left. [`question`] takes such a text apart, so that who kept the answer can give it
//! where the session no longer knows. [`Get::assignments`] writes the SET that puts into the user
//! variables of GET DIAGNOSTICS what that would have put there: values of the same types, flags
//! and collations (compared on MariaDB 10.11 and MySQL 9.7).
//!
//! Invariant: a text that is not understood to its end is no question.

use crate::lex::{Kind, LexMode, Lexer, Token};
use std::fmt::Write;

/// Question of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// SHOW WARNINGS, or SHOW ERRORS, from which row on, and how many at most.
    Show {
        /// Errors only.
        errors: bool,
        /// Rows left out at the front.
        offset: u64,
        /// Most rows.
        rows: u64,
    },
    /// SHOW COUNT(*) WARNINGS, or ERRORS.
    Count {
        /// Errors only.
        errors: bool,
    },
    /// GET DIAGNOSTICS
    Get(Get),
}

/// GET DIAGNOSTICS, into user variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Get {
    /// Number of the condition that it is about, from 1 on; `None`: the statement as a whole.
    pub condition: Option<u32>,
    /// Variables, with their `@`, as they were typed, and what they get.
    items: Vec<(Vec<u8>, Item)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Item {
    Number,
    RowCount,
    State,
    Message,
    Errno,
}

/// One condition of the statement before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition<'a> {
    /// Its number.
    pub errno: u32,
    /// Its SQL state.
    pub state: &'a [u8],
    /// Its words, in UTF-8.
    pub message: &'a [u8],
}

/// The tokens of a text that is read for certain, but for a semicolon at its end.
fn tokens_of(sql: &[u8], mode: LexMode) -> Option<Vec<Token>> {
    let mut lexer = Lexer::new(sql, mode);
    let mut tokens: Vec<Token> = lexer.by_ref().collect();
    tokens.pop_if(|last| last.kind == Kind::Semicolon);
    lexer.certain().then_some(tokens)
}

/// True if no server can parse a text that asks: it ends where more has to come.
#[must_use]
pub fn is_cut_short(sql: &[u8], mode: LexMode) -> bool {
    let tokens = tokens_of(sql, mode).unwrap_or_default();
    let assigns = |token: &Token| matches!(token.kind, Kind::Punct(b'=') | Kind::Assign);
    let mut reader = Tokens { sql, rest: &tokens };
    if reader.word("GET") {
        return !tokens.iter().any(assigns);
    }
    reader.rest = tokens.last_chunk::<1>().map_or(&[], |last| last);
    reader.word("LIMIT") || reader.word("OFFSET")
}

/// The question that a text is, if it is one.
#[must_use]
pub fn question(sql: &[u8], mode: LexMode) -> Option<Question> {
    let tokens = tokens_of(sql, mode)?;
    let mut reader = Tokens { sql, rest: &tokens };
    match reader.word("GET") {
        true => reader.get(),
        false => reader.word("SHOW").then(|| reader.show())?,
    }
}

struct Tokens<'a> {
    sql: &'a [u8],
    rest: &'a [Token],
}

impl<'a> Tokens<'a> {
    fn next(&mut self) -> Option<(Kind, &'a [u8])> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some((first.kind, &self.sql[first.start..first.end]))
    }

    /// Takes this word, if it comes next.
    fn word(&mut self, word: &str) -> bool {
        let next = self.rest.first().filter(|token| {
            let text = &self.sql[token.start..token.end];
            token.kind == Kind::Word && text.eq_ignore_ascii_case(word.as_bytes())
        });
        if next.is_some() {
            self.rest = &self.rest[1..];
        }
        next.is_some()
    }

    fn punct(&mut self, byte: u8) -> bool {
        let next = self.rest.first().map(|token| token.kind);
        if next == Some(Kind::Punct(byte)) {
            self.rest = &self.rest[1..];
            return true;
        }
        false
    }

    fn number(&mut self) -> Option<u64> {
        let token = self.rest.first()?;
        let text = &self.sql[token.start..token.end];
        let digits = token.kind == Kind::Number && text.iter().all(u8::is_ascii_digit);
        let text = std::str::from_utf8(text).ok().filter(|_| digits)?;
        let number = text.parse().ok()?;
        self.rest = &self.rest[1..];
        Some(number)
    }

    /// The name of the user variable that comes next, with its `@`.
    fn user_variable(&mut self) -> Option<&'a [u8]> {
        let token = self.rest.first();
        token.filter(|token| token.kind == Kind::UserVariable)?;
        self.next().map(|(_, name)| name)
    }

    /// WARNINGS, then `false`; ERRORS, then `true`.
    fn level(&mut self) -> Option<bool> {
        let errors = self.word("ERRORS");
        (errors || self.word("WARNINGS")).then_some(errors)
    }

    fn show(&mut self) -> Option<Question> {
        if self.word("COUNT") {
            let all = self.punct(b'(') && self.punct(b'*') && self.punct(b')');
            let errors = self.level().filter(|_| all);
            let errors = errors.filter(|_| self.rest.is_empty());
            return errors.map(|errors| Question::Count { errors });
        }
        let errors = self.level()?;
        let (mut offset, mut rows) = (0, u64::MAX);
        if self.word("LIMIT") {
            rows = self.number()?;
            if self.punct(b',') {
                (offset, rows) = (rows, self.number()?);
            } else if self.word("OFFSET") {
                offset = self.number()?;
            }
        }
        let show = Question::Show {
            errors,
            offset,
            rows,
        };
        self.rest.is_empty().then_some(show)
    }

    fn get(&mut self) -> Option<Question> {
        self.word("CURRENT");
        if !self.word("DIAGNOSTICS") {
            return None;
        }
        let condition = match self.word("CONDITION") {
            true => Some(u32::try_from(self.number()?).unwrap_or(u32::MAX)),
            false => None,
        };
        let mut items = Vec::new();
        loop {
            let name = self.user_variable()?;
            if !self.punct(b'=') {
                return None;
            }
            let item = self.item(condition.is_some())?;
            items.push((name.to_vec(), item));
            if self.rest.is_empty() {
                return Some(Question::Get(Get { condition, items }));
            }
            if !self.punct(b',') {
                return None;
            }
        }
    }

    fn item(&mut self, of_condition: bool) -> Option<Item> {
        const OF_STATEMENT: [(&str, Item); 2] =
            [("NUMBER", Item::Number), ("ROW_COUNT", Item::RowCount)];
        const OF_CONDITION: [(&str, Item); 3] = [
            ("RETURNED_SQLSTATE", Item::State),
            ("MESSAGE_TEXT", Item::Message),
            ("MYSQL_ERRNO", Item::Errno),
        ];
        let items = if of_condition {
            &OF_CONDITION[..]
        } else {
            &OF_STATEMENT[..]
        };
        let found = items.iter().find(|(name, _)| self.word(name));
        found.map(|(_, item)| *item)
    }
}

impl Get {
    /// The SET for a statement that left `number` conditions and counted `row_count` rows; of
    /// `condition`, when that is what is asked for. `None` when a value cannot be written so.
    #[must_use]
    pub fn assignments(
        &self,
        number: u32,
        row_count: Option<i64>,
        condition: Option<Condition<'_>>,
    ) -> Option<Vec<u8>> {
        let mut sql = b"SET ".to_vec();
        for (at, (name, item)) in self.items.iter().enumerate() {
            if at > 0 {
                sql.push(b',');
            }
            sql.extend_from_slice(name);
            sql.push(b'=');
            let value = match item {
                Item::Number => format!("CAST({number} AS UNSIGNED)"),
                Item::RowCount => row_count?.to_string(),
                Item::Errno => format!("CAST({} AS UNSIGNED)", condition?.errno),
                Item::State => text(condition?.state)?,
                Item::Message => text(condition?.message)?,
            };
            sql.extend_from_slice(value.as_bytes());
        }
        Some(sql)
    }
}

/// A text in the servers' own character set, three bytes of UTF-8 at most, which an introducer
/// would name only at the cost of a warning.
fn text(value: &[u8]) -> Option<String> {
    let value = std::str::from_utf8(value).ok()?;
    if value.chars().any(|c| c.len_utf8() > 3) {
        return None;
    }
    let mut hex = String::with_capacity(2 * value.len());
    for byte in value.bytes() {
        let _ = write!(hex, "{byte:02X}");
    }
    Some(format!("CONCAT(LEFT(VERSION(),0),_utf8mb4 x'{hex}')"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(sql: &str) -> Option<Question> {
        question(sql.as_bytes(), LexMode::default())
    }

    fn show(errors: bool, offset: u64, rows: u64) -> Option<Question> {
        Some(Question::Show {
            errors,
            offset,
            rows,
        })
    }

    #[test]
    fn what_ends_where_more_has_to_come_is_cut_short() {
        let is = |sql: &str| is_cut_short(sql.as_bytes(), LexMode::default());
        for sql in [
            "GET",
            "get current;",
            "GET DIAGNOSTICS CONDITION 1",
            "SHOW WARNINGS LIMIT",
        ] {
            assert!(is(sql), "{sql}");
        }
        for sql in [
            "GET DIAGNOSTICS @a = NUMBER",
            "GET x := 1",
            "SHOW WARNINGS LIMIT 1",
            "",
            "GET '",
        ] {
            assert!(!is(sql), "{sql}");
        }
    }

    #[test]
    fn every_form_of_show_is_understood() {
        assert_eq!(asked("show warnings;"), show(false, 0, u64::MAX));
        assert_eq!(asked("SHOW ERRORS LIMIT 2"), show(true, 0, 2));
        assert_eq!(asked("SHOW WARNINGS LIMIT 1, 2"), show(false, 1, 2));
        assert_eq!(asked("SHOW WARNINGS LIMIT 2 OFFSET 1"), show(false, 1, 2));
        assert_eq!(
            asked("/*! SHOW WARNINGS /* x */ */"),
            show(false, 0, u64::MAX)
        );
        let count = |errors| Some(Question::Count { errors });
        assert_eq!(asked("SHOW COUNT(*) WARNINGS"), count(false));
        assert_eq!(asked("SHOW COUNT( * ) ERRORS"), count(true));
        for sql in [
            "SHOW TABLES",
            "SHOW WARNINGS LIMIT ?",
            "SHOW WARNINGS; SELECT 1",
            "SHOW WARNINGS /*!80000 LIMIT 1 */",
            "SHOW WARNINGS /* LIMIT 1",
            "SHOW WARNINGS /*! ; */",
        ] {
            assert_eq!(asked(sql), None, "{sql}");
        }
    }

    fn set(sql: &str, condition: Option<Condition<'_>>) -> Option<String> {
        let Some(Question::Get(get)) = asked(sql) else {
            panic!("{sql}");
        };
        let sql = get.assignments(2, Some(-1), condition)?;
        Some(String::from_utf8(sql).unwrap())
    }

    #[test]
    fn get_diagnostics_becomes_a_set_of_equal_values() {
        assert_eq!(
            set(
                "GET CURRENT DIAGNOSTICS @n = NUMBER, @`r c` = row_count",
                None
            )
            .as_deref(),
            Some("SET @n=CAST(2 AS UNSIGNED),@`r c`=-1")
        );
        let condition = Condition {
            errno: 1365,
            state: b"22012",
            message: "\u{e4}".as_bytes(),
        };
        let sql = "GET DIAGNOSTICS CONDITION 1 @s=RETURNED_SQLSTATE,@m=MESSAGE_TEXT,@e=MYSQL_ERRNO";
        assert_eq!(
            set(sql, Some(condition)).as_deref(),
            Some(
                "SET @s=CONCAT(LEFT(VERSION(),0),_utf8mb4 x'3232303132'),\
                 @m=CONCAT(LEFT(VERSION(),0),_utf8mb4 x'C3A4'),@e=CAST(1365 AS UNSIGNED)"
            )
        );
        assert_eq!(set(sql, None), None);
        let sql = "GET DIAGNOSTICS CONDITION 1 @m=MESSAGE_TEXT";
        let long = "\u{1F600}".as_bytes();
        let message = Condition {
            message: long,
            ..condition
        };
        assert_eq!(
            set(sql, Some(message)),
            None,
            "the servers keep three bytes"
        );
    }

    #[test]
    fn what_nobody_else_can_answer_is_no_question() {
        for sql in [
            "GET DIAGNOSTICS CONDITION 'x' @n = MYSQL_ERRNO",
            "GET DIAGNOSTICS CONDITION @i @n = MYSQL_ERRNO",
            "GET DIAGNOSTICS CONDITION 1 @n = TABLE_NAME",
            "GET DIAGNOSTICS CONDITION 1",
            "GET STACKED DIAGNOSTICS @n = NUMBER",
            "RESIGNAL",
            "SHOW WARNINGS LIMIT",
            "SHOW COUNT(1) WARNINGS",
            "GET DIAGNOSTICS CONDITION 1 @n = NUMBER",
            "GET DIAGNOSTICS @n = MYSQL_ERRNO",
            "GET DIAGNOSTICS n = NUMBER",
            "GET DIAGNOSTICS @n = NUMBER; SELECT 1",
        ] {
            assert_eq!(asked(sql), None, "{sql}");
        }
    }
}
