//! Priority, and the server for reads: what users and sessions may ask for, and the statements by
//! which they ask.
//!
//! `SET onramp_priority = 'high'` and `SET onramp_read_from = 'readers'` are the pool's own: no
//! server sees them. They are read here, by tokens, so that comments, case and the forms of a SET
//! (`SET SESSION x`, `SET @@x`, `:=`) do not matter. Names and meanings of the modes are those of
//! Percona's thread pool.

use serde::{Deserialize, Serialize};
use sql::lex::{Kind, LexMode, Lexer, Token};

/// Priority of a session's statements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Priority {
    /// High queue, while there are tickets.
    High,
    /// Low queue.
    Low,
    /// Queue that `high_prio_mode` names.
    #[default]
    Auto,
}

impl Priority {
    /// The priority of this name, in any case.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Priority> {
        let all = [
            ("high", Priority::High),
            ("low", Priority::Low),
            ("auto", Priority::Auto),
        ];
        let found = all.iter().find(|(n, _)| n.eq_ignore_ascii_case(name))?;
        Some(found.1)
    }
}

/// Statements that have high priority by themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Those of a client that holds a backend: an open transaction, locks, a pin.
    #[default]
    Transactions,
    /// All.
    Statements,
    /// None, not even those within a transaction.
    None,
}

impl Mode {
    /// The mode of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Mode> {
        match name {
            "transactions" => Some(Mode::Transactions),
            "statements" => Some(Mode::Statements),
            "none" => Some(Mode::None),
            _ => None,
        }
    }
}

/// Server for a session's reads, of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadFrom {
    /// The one that is written to.
    #[default]
    Writer,
    /// Another, where that answers alike.
    Readers,
    /// Another for statements whose comment says so.
    Comments,
}

impl ReadFrom {
    /// Name of the session's setting, also in comments.
    pub(crate) const NAME: &str = "onramp_read_from";
    /// Names in settings and SETs.
    pub(crate) const NAMES: [(&str, ReadFrom); 3] = [
        ("writer", ReadFrom::Writer),
        ("readers", ReadFrom::Readers),
        ("comments", ReadFrom::Comments),
    ];

    /// The setting of this name, in any case.
    #[must_use]
    pub fn from_name(name: &str) -> Option<ReadFrom> {
        let mut all = ReadFrom::NAMES.iter();
        let found = all.find(|(n, _)| n.eq_ignore_ascii_case(name))?;
        Some(found.1)
    }
}

/// Writes that a read elsewhere sees for certain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Consistency {
    /// Writes of its client.
    #[default]
    Session,
    /// Writes of all clients of its user.
    Account,
    /// None.
    None,
}

impl Consistency {
    /// The setting of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Consistency> {
        match name {
            "session" => Some(Consistency::Session),
            "account" => Some(Consistency::Account),
            "none" => Some(Consistency::None),
            _ => None,
        }
    }
}

/// Request of a text to the pool itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Nothing; it is the server's.
    Nothing,
    /// Priority; `None` gives back the user's.
    Priority(Option<Priority>),
    /// Server for reads; `None` gives back the user's.
    ReadFrom(Option<ReadFrom>),
    /// A value that the setting of this name cannot have.
    Wrong(&'static str, String),
}

/// Beginning of both names.
const PREFIX: &[u8] = b"onramp_";
const PRIORITY: &str = "onramp_priority";

/// Reads a text that may set `onramp_priority` or `onramp_read_from`.
pub(crate) fn asked(sql: &[u8], mode: LexMode) -> Asked {
    // Long texts begin with another word, and need not be searched.
    let mut tokens = Lexer::new(sql, mode).filter(|token| token.kind != Kind::Semicolon);
    let sets = |token: Token| sql[token.start..token.end].eq_ignore_ascii_case(b"set");
    if !tokens.next().is_some_and(sets) {
        return Asked::Nothing;
    }
    let mentions = (sql.windows(PREFIX.len())).any(|word| word.eq_ignore_ascii_case(PREFIX));
    if !mentions {
        return Asked::Nothing;
    }
    let tokens: Vec<_> = Lexer::new(sql, mode)
        .filter(|token| token.kind != Kind::Semicolon)
        .map(|token| (token.kind, &sql[token.start..token.end]))
        .collect();
    let is = |word: &[u8], text: &str| word.eq_ignore_ascii_case(text.as_bytes());
    let mut rest = match tokens.split_first() {
        Some(((_, first), rest)) if is(first, "set") => rest,
        _ => return Asked::Nothing,
    };
    if let Some(((_, word), behind)) = rest.split_first()
        && (is(word, "session") || is(word, "local"))
    {
        rest = behind;
    }
    let Some(((kind, name), value)) = rest.split_first() else {
        return Asked::Nothing;
    };
    let name = name.rsplit(|&b| matches!(b, b'.' | b'@')).next();
    let name = (name.filter(|_| *kind != Kind::UserVariable)).unwrap_or_default();
    let mut names = [PRIORITY, ReadFrom::NAME].into_iter();
    let Some(name) = names.find(|known| is(name, known)) else {
        return Asked::Nothing;
    };
    let value: Vec<&[u8]> = value.iter().map(|(_, word)| *word).collect();
    read_value(name, &value)
}

fn read_value(name: &'static str, words: &[&[u8]]) -> Asked {
    let value: Vec<u8> = words.concat();
    let text = String::from_utf8_lossy(&value);
    let text = text.strip_prefix(":=").or(text.strip_prefix('='));
    let Some(text) = text else {
        return Asked::Wrong(name, String::new());
    };
    let bare = text.trim_matches(['\'', '"']);
    let is_default = bare.eq_ignore_ascii_case("default");
    let asked = match name {
        PRIORITY if is_default => Some(Asked::Priority(None)),
        PRIORITY => Priority::from_name(bare).map(|priority| Asked::Priority(Some(priority))),
        _ if is_default => Some(Asked::ReadFrom(None)),
        _ => ReadFrom::from_name(bare).map(|from| Asked::ReadFrom(Some(from))),
    };
    asked.unwrap_or_else(|| Asked::Wrong(name, bare.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(sql: &str) -> Asked {
        asked(sql.as_bytes(), LexMode::default())
    }

    #[test]
    fn a_priority_is_read_in_every_form_of_set() {
        let high = Asked::Priority(Some(Priority::High));
        for sql in [
            "SET onramp_priority = 'high'",
            "set session ONRAMP_PRIORITY=high;",
            "SET /* now */ @@session.onramp_priority := \"HIGH\"",
            "SET @@onramp_priority='high'",
            "SET LOCAL onramp_priority='high'",
        ] {
            assert_eq!(of(sql), high, "{sql}");
        }
        assert_eq!(of("SET onramp_priority=DEFAULT"), Asked::Priority(None));
        let auto = Asked::Priority(Some(Priority::Auto));
        assert_eq!(of("SET onramp_priority='auto'"), auto);
    }

    #[test]
    fn what_is_no_priority_is_named() {
        assert_eq!(
            of("SET onramp_priority=7"),
            Asked::Wrong(PRIORITY, "7".into())
        );
        let two = of("SET onramp_priority='high', autocommit=0");
        assert!(matches!(two, Asked::Wrong(PRIORITY, _)), "{two:?}");
        let reads = Asked::ReadFrom(Some(ReadFrom::Readers));
        assert_eq!(of("set @@Onramp_read_from = 'readers'"), reads);
        assert_eq!(of("SET onramp_read_from=DEFAULT"), Asked::ReadFrom(None));
        let wrong = Asked::Wrong(ReadFrom::NAME, "high".into());
        assert_eq!(of("SET onramp_read_from='high'"), wrong);
    }

    #[test]
    fn other_texts_are_the_servers() {
        for sql in [
            "SET autocommit=0",
            "SELECT 'onramp_priority'",
            "SET @onramp_priority='high'",
            "SET x='onramp_priority'",
        ] {
            assert_eq!(of(sql), Asked::Nothing, "{sql}");
        }
    }
}
