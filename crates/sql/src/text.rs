//! A client's text, read once.
//!
//! The problem: what a text may leave in its session, which statement it is (its digest) and
//! whether it names a table or view with code are asked for each text, and cutting it into tokens
//! costs each of them as much as what it does with them. The mechanism: one pass over the tokens,
//! which all of them look at ([`Seen::read`]). What fewer texts are asked (locks that they name,
//! variables that they set, what they call) is read from the text again, by who asks.
//!
//! Invariants: nothing is allocated, however long the text is; what is said of it is what
//! [`classify`], [`digest`] and [`hides_kill`] say.

use crate::classify::stored::is_name;
use crate::classify::{Statement, classify_with};
use crate::digest::{Digesting, digest};
use crate::lex::LexMode;
use crate::name_set::NameSet;
use crate::nested_kill::hides_kill;

/// Facts that were seen in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Effects on its session.
    pub class: Statement,
    /// True if something in it is a KILL, or may be one, besides its first word.
    pub hides_kill: bool,
    /// True if a name in it may be one of those that were asked for; `false` is certain.
    pub may_name: bool,
    /// Its digest, where that was asked for.
    digest: Option<u64>,
}

impl Seen {
    /// Reads a text; `digested`: its digest is going to be asked for; `names`: whether one of these
    /// is in it, where that is going to be.
    #[must_use]
    pub fn read(sql: &[u8], mode: LexMode, digested: bool, names: Option<&NameSet>) -> Seen {
        let mut digesting = digested.then(|| Digesting::new(sql));
        let mut may_name = names.is_none();
        let looked_up = names.filter(|names| !names.is_empty());
        let class = classify_with(sql, mode, |token| {
            if let Some(digesting) = &mut digesting {
                digesting.token(token);
            }
            if let Some(names) = looked_up
                && is_name(token)
            {
                may_name = may_name || names.may_have(&sql[token.start..token.end]);
            }
        });
        Seen {
            class,
            hides_kill: hides_kill(sql, mode, &class),
            may_name,
            digest: digesting.map(Digesting::finish),
        }
    }

    /// Findings of a text that nobody has read.
    pub const NOTHING: Seen = Seen {
        class: Statement::UNKNOWN,
        hides_kill: true,
        may_name: true,
        digest: None,
    };
}

/// A text, and what was seen in it.
#[derive(Clone, Copy, Debug)]
pub struct Text<'a> {
    /// Its bytes.
    pub sql: &'a [u8],
    /// Mode in which it is cut.
    pub mode: LexMode,
    /// Facts that were seen in it.
    pub seen: Seen,
}

impl Text<'_> {
    /// Its digest ([`crate::digest`]).
    #[must_use]
    pub fn digest(&self) -> u64 {
        let seen = self.seen.digest;
        seen.unwrap_or_else(|| digest(self.sql, self.mode))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::classify;
    use crate::classify::stored::names_in;
    use crate::lex::Server;

    #[test]
    fn what_is_said_at_once_is_what_each_says_alone() {
        let long = format!("INSERT INTO t VALUES ('{}', 1), (2, 3)", "x".repeat(5000));
        let words = format!("SELECT {} FROM t", "some_column, ".repeat(500));
        for sql in [
            "",
            ";",
            "SELECT c FROM t WHERE id = 5 AND d = _utf8mb4'x' -- 1",
            "SELECT NULL, x'00', b'1', -1, (1, 2), (3, 4)",
            "INSERT INTO t VALUES (1, 'a'), (2, 'b'); KILL 5",
            "SET @a = 1; SET sql_mode = 'ANSI'",
            "SELECT /*!80000 GET_LOCK('a', 1), */ 1",
            "PREPARE s FROM 'KILL 5'",
            "SELECT 'without an end",
            "SELECT `a",
            "CREATE PROCEDURE p() BEGIN SELECT 1; END",
            &long,
            &words,
        ] {
            for server in [
                Server::Unknown,
                Server::MariaDb(101_119),
                Server::MySql(90_704),
            ] {
                let mode = LexMode {
                    server,
                    ..LexMode::default()
                };
                let sql = sql.as_bytes();
                let named: Vec<_> = names_in(sql, mode).collect();
                let names: NameSet = named.iter().map(|name| &**name).collect();
                let others: NameSet = [&b"no_such"[..]].into_iter().collect();
                let seen = Seen::read(sql, mode, true, Some(&names));
                let class = classify(sql, mode);
                assert_eq!(seen.class, class);
                assert_eq!(seen.digest, Some(digest(sql, mode)));
                assert_eq!(seen.hides_kill, hides_kill(sql, mode, &class));
                assert_eq!(seen.may_name, !named.is_empty());
                for name in named {
                    let one = [&*name].into_iter().collect();
                    assert!(Seen::read(sql, mode, true, Some(&one)).may_name);
                }
                for names in [&others, &NameSet::default()] {
                    assert!(!Seen::read(sql, mode, true, Some(names)).may_name);
                }
                let bare = Seen::read(sql, mode, false, None);
                assert!(bare.may_name);
                assert_eq!((bare.class, bare.digest), (class, None));
                let digest = |seen| Text { sql, mode, seen }.digest();
                assert_eq!(digest(bare), digest(seen));
            }
        }
    }
}
