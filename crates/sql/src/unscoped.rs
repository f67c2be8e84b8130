//! `SET @@name = value`: a form of which MariaDB reports nothing.
//!
//! The problem: a pool follows a session by what its trackers report, and MariaDB (seen on 10.11)
//! reports a variable that is set as `name` or `@@SESSION.name`, but not as `@@name`. The
//! mechanism: a SET of the same variables to what they stand at changes nothing, and is reported
//! like any other: [`retold`] writes it, to be sent behind the client's statement. There is one for
//! each SET in the text, because one with a name that does not exist fails as a whole, as the
//! client's own did.
//!
//! Left out is what such a SET would change ([`OTHERWISE`]): a clock that would stop, a level of
//! isolation that was set for one transaction, values that nobody can read.
//!
//! Invariant: a SET written here leaves warnings, FOUND_ROWS() and the session as they are (tried
//! on MariaDB 10.11).

use crate::classify::{rests_at, session_name};
use crate::lex::{Kind, LexMode, Lexer, Token};

/// Variables that are no state of the session, or that are followed in other ways.
const OTHERWISE: [&[u8]; 11] = [
    b"identity",
    b"last_insert_id",
    b"max_relay_log_size",
    b"rand_seed1",
    b"rand_seed2",
    b"sql_slave_skip_counter",
    b"timestamp",
    b"transaction_isolation",
    b"transaction_read_only",
    b"tx_isolation",
    b"tx_read_only",
];

/// The SETs after which a server has reported what this text set as `@@name`.
#[must_use]
pub fn retold(sql: &[u8], mode: LexMode) -> Vec<Vec<u8>> {
    let mut sets = Vec::new();
    let mut set = Vec::new();
    let (mut last, mut in_set, mut depth) = (None, false, 0_u32);
    let tokens: Vec<Token> = Lexer::new(sql, mode).collect();
    let text = |token: &Token| sql.get(token.start..token.end).unwrap_or_default();
    let is = |token: &Token, word: &[u8]| {
        token.kind == Kind::Word && text(token).eq_ignore_ascii_case(word)
    };
    for (at, token) in tokens.iter().enumerate() {
        match token.kind {
            Kind::Semicolon => {
                sets.extend((!set.is_empty()).then(|| std::mem::take(&mut set)));
                (last, in_set, depth) = (None, false, 0);
                continue;
            }
            Kind::Punct(b'(') => depth += 1,
            Kind::Punct(b')') => depth = depth.saturating_sub(1),
            Kind::Word if is(token, b"SET") && (last.is_none() || in_set) => in_set = true,
            Kind::SystemVariable if in_set && depth == 0 => {
                let begins = last
                    .is_some_and(|last: &Token| is(last, b"SET") || last.kind == Kind::Punct(b','));
                let next = tokens.get(at + 1).map(|token| token.kind);
                let assigns = matches!(next, Some(Kind::Assign | Kind::Punct(b'=')));
                if begins && assigns {
                    put(&mut set, text(token));
                }
            }
            _ => {}
        }
        last = Some(token);
    }
    sets.extend((!set.is_empty()).then_some(set));
    sets
}

/// True if a text sets this variable, in whatever form.
#[must_use]
pub fn sets(sql: &[u8], mode: LexMode, name: &[u8]) -> bool {
    let text = |token: &Token| sql.get(token.start..token.end).unwrap_or_default();
    let mut named = false;
    Lexer::new(sql, mode).any(|token| {
        let assigned = named && matches!(token.kind, Kind::Assign | Kind::Punct(b'='));
        let kinds = [Kind::Word, Kind::Name, Kind::SystemVariable];
        let is = |other: &[u8]| other.eq_ignore_ascii_case(name);
        named = kinds.contains(&token.kind) && session_name(text(&token)).is_some_and(is);
        assigned
    })
}

/// Appends `name = @@SESSION.name` for a variable that was set as `@@name`.
fn put(set: &mut Vec<u8>, token: &[u8]) {
    let Some(name) = session_name(token).filter(|_| !token.contains(&b'.')) else {
        return;
    };
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let otherwise = OTHERWISE
        .iter()
        .any(|other| name.eq_ignore_ascii_case(other));
    let tracks = name
        .get(..14)
        .is_some_and(|start| start.eq_ignore_ascii_case(b"session_track_"));
    if otherwise || tracks || rests_at(name).is_some() || !name.iter().all(plain) {
        return;
    }
    let head: &[u8] = if set.is_empty() { b"SET " } else { b"," };
    set.extend_from_slice(&[head, name, b"=@@SESSION.", name].concat());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn retold_in(sql: &str) -> Vec<String> {
        let sets = retold(sql.as_bytes(), LexMode::default());
        let text = |set| String::from_utf8(set).unwrap();
        sets.into_iter().map(text).collect()
    }

    #[test]
    fn what_was_set_without_its_scope_is_set_again_as_it_stands() {
        let cases: [(&str, &[&str]); 9] = [
            ("SET @@a = 5", &["SET a=@@SESSION.a"]),
            (
                "set @@A := 5, b = 1, @@`c`=@@d",
                &["SET A=@@SESSION.A,c=@@SESSION.c"],
            ),
            ("SET @@SESSION.a = 5, @@GLOBAL.b = 6, SESSION c = 1", &[]),
            ("SET a = (@@b = 5), c = @@d = 1", &[]),
            (
                "SET @@timestamp = 5, @@insert_id = 1, @@tx_isolation = 'X'",
                &[],
            ),
            (
                "SET @@a = 5; SELECT @@b = 6; SET @@no_such = 1",
                &["SET a=@@SESSION.a", "SET no_such=@@SESSION.no_such"],
            ),
            ("SELECT 1, @@a = 5", &[]),
            (
                "SET STATEMENT a = 1, b = 2 FOR SET @@c = 3",
                &["SET c=@@SESSION.c"],
            ),
            ("SET @a = 1, @@b = f(1, @@c = 2)", &["SET b=@@SESSION.b"]),
        ];
        for (sql, sets) in cases {
            assert_eq!(retold_in(sql), sets, "{sql}");
        }
    }

    #[test]
    fn a_text_that_sets_a_variable_is_known_by_its_name() {
        let sets_id = |sql: &str| sets(sql.as_bytes(), LexMode::default(), b"pseudo_thread_id");
        for sql in [
            "SET pseudo_thread_id = 5; SELECT CONNECTION_ID()",
            "SET @@SESSION.`PSEUDO_THREAD_ID` := 5",
        ] {
            assert!(sets_id(sql), "{sql}");
        }
        for sql in [
            "SELECT @@pseudo_thread_id",
            "SET @pseudo_thread_id = 5",
            "SET x = 5",
        ] {
            assert!(!sets_id(sql), "{sql}");
        }
    }
}
