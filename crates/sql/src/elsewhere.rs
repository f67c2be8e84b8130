//! Words of a text that bind it to the server that is written to, and comments that say where it is
//! to run.
//!
//! The problem: a SELECT that leaves nothing may still ask what is another server's, or lock rows
//! there in vain. The mechanism: names of what belongs to a server, wherever they stand; a column
//! of such a name costs no more than a read on the writer.

use crate::lex::{Kind, LexMode, Lexer};

/// Ties of a text to one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tie {
    /// Locks on rows.
    Locks,
    /// Names of what each server has of its own, or a text that cannot be read for certain.
    Server,
}

/// Schemas of a server's own.
const SCHEMAS: [&str; 4] = ["information_schema", "performance_schema", "mysql", "sys"];
/// Functions that ask the server about itself, its files or its locks.
const FUNCTIONS: [&str; 8] = [
    "binlog_gtid_pos",
    "is_free_lock",
    "is_used_lock",
    "load_file",
    "master_gtid_wait",
    "master_pos_wait",
    "source_pos_wait",
    "lastval",
];
/// Beginnings of such functions.
const PREFIXES: [&str; 3] = ["ps_", "wait_", "wsrep_"];

/// True for a variable that counts the conditions of the session's last statement.
fn is_count(variable: &[u8]) -> bool {
    let counts: [&[u8]; 2] = [b"@@warning_count", b"@@error_count"];
    counts
        .iter()
        .any(|count| variable.eq_ignore_ascii_case(count))
}

/// True for a schema that each server has of its own.
#[must_use]
pub fn is_schema_of_server(name: &[u8]) -> bool {
    (SCHEMAS.iter()).any(|schema| name.eq_ignore_ascii_case(schema.as_bytes()))
}

/// Tie of a text to one server; `None`: others answer it alike.
#[must_use]
pub fn tie(sql: &[u8], mode: LexMode) -> Option<Tie> {
    let mut lexer = Lexer::new(sql, mode);
    let mut before: &[u8] = b"";
    for token in lexer.by_ref() {
        let text = sql.get(token.start..token.end).unwrap_or_default();
        let word = match (token.kind, text) {
            (Kind::SystemVariable, name) if !is_count(name) => return Some(Tie::Server),
            (Kind::Word | Kind::Name, [b'`' | b'"', name @ .., _]) => name,
            (Kind::Word | Kind::Name, name) => name,
            _ => b"",
        };
        let is = |word: &[u8], other: &str| word.eq_ignore_ascii_case(other.as_bytes());
        let locks = match token.kind {
            Kind::Word if is(before, "for") => is(word, "update") || is(word, "share"),
            Kind::Word if is(before, "lock") => is(word, "in"),
            _ => false,
        };
        if locks {
            return Some(Tie::Locks);
        }
        if is(before, "previous") && is(word, "value") {
            return Some(Tie::Server);
        }
        let begins = |prefix: &&str| word.get(..prefix.len()).is_some_and(|at| is(at, prefix));
        let is_function = || FUNCTIONS.iter().any(|name| is(word, name));
        if is_schema_of_server(word) || is_function() || PREFIXES.iter().any(begins) {
            return Some(Tie::Server);
        }
        before = word;
    }
    (!lexer.certain()).then_some(Tie::Server)
}

/// True for `START TRANSACTION READ ONLY`, and nothing besides.
#[must_use]
pub fn begins_read_only(sql: &[u8], mode: LexMode) -> bool {
    let mut words = ["start", "transaction", "read", "only"].iter();
    let mut lexer = Lexer::new(sql, mode);
    let all = lexer.by_ref().filter(|token| token.kind != Kind::Semicolon);
    let same = all.fold(true, |same, token| {
        let text = sql.get(token.start..token.end).unwrap_or_default();
        let word = words.next().map_or(&b""[..], |word| word.as_bytes());
        same && token.kind == Kind::Word && text.eq_ignore_ascii_case(word)
    });
    same && words.next().is_none() && lexer.certain()
}

/// Value of `name` in a comment at the front of a text: `/* name=value */`.
#[must_use]
pub fn hint<'a>(sql: &'a [u8], name: &str) -> Option<&'a str> {
    let rest = sql.trim_ascii_start().strip_prefix(b"/*")?;
    let end = rest.windows(2).position(|two| two == b"*/")?;
    let comment = std::str::from_utf8(&rest[..end]).ok()?.trim();
    let value = comment.strip_prefix(name)?.trim_start().strip_prefix('=')?;
    Some(value.trim().trim_matches(['\'', '"']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_a_servers_own_ties_a_text_to_it() {
        for (sql, expected) in [
            ("SELECT a FROM t WHERE b = 'mysql.x FOR UPDATE'", None),
            ("SELECT a FROM t /* sys */ WHERE b IN (1,2)", None),
            ("SELECT a FROM t FOR UPDATE", Some(Tie::Locks)),
            ("SELECT a FROM t for share skip locked", Some(Tie::Locks)),
            ("SELECT a FROM t LOCK IN SHARE MODE", Some(Tie::Locks)),
            ("SELECT @@Warning_count, @@error_count", None),
            ("SELECT @@hostname", Some(Tie::Server)),
            ("SELECT * FROM `mysql`.user", Some(Tie::Server)),
            ("SELECT * FROM Information_Schema.tables", Some(Tie::Server)),
            ("SELECT is_used_lock('a')", Some(Tie::Server)),
            ("SELECT WSREP_LAST_SEEN_GTID()", Some(Tie::Server)),
            ("SELECT 'without an end", Some(Tie::Server)),
        ] {
            assert_eq!(tie(sql.as_bytes(), LexMode::default()), expected, "{sql}");
        }
    }

    #[test]
    fn a_transaction_that_only_reads_is_read_narrowly() {
        for (sql, expected) in [
            ("START TRANSACTION READ ONLY", true),
            (" start  transaction /* x */ read only;", true),
            ("START TRANSACTION", false),
            ("START TRANSACTION READ WRITE", false),
            ("START TRANSACTION READ ONLY, READ WRITE", false),
            ("START TRANSACTION READ ONLY; SELECT 1", false),
        ] {
            let read = begins_read_only(sql.as_bytes(), LexMode::default());
            assert_eq!(read, expected, "{sql}");
        }
    }

    #[test]
    fn a_hint_stands_in_a_comment_at_the_front() {
        let value = |sql: &'static str| hint(sql.as_bytes(), "here");
        assert_eq!(value("/* here=there */ SELECT 1"), Some("there"));
        assert_eq!(value(" /*here = 'x'*/SELECT 1"), Some("x"));
        for none in [
            "SELECT /* here=x */ 1",
            "/*! here=x */ SELECT 1",
            "/* here",
            "",
        ] {
            assert_eq!(value(none), None, "{none}");
        }
    }
}
