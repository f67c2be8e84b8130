//! KILL in places where it is not the text's first word: behind another statement, in a block, in a
//! string that is run.
//!
//! A text that cannot be read counts as one with a KILL if the word is anywhere in it.

use crate::classify::{self, PinCause, Verb, classify};
use crate::lex::{Kind, LexMode, Lexer, Token};

/// True if something in the text is a KILL, or may be one: a statement behind the first, one of a
/// block, one that is made from a string. In a text that is understood, a string is no statement.
#[must_use]
pub fn hides_kill(sql: &[u8], mode: LexMode, found: &classify::Statement) -> bool {
    let text = |token: Token| sql.get(token.start..token.end).unwrap_or_default();
    let is_kill =
        |token: Token| token.kind == Kind::Word && text(token).eq_ignore_ascii_case(b"KILL");
    let holds_kill = |token: Token| token.kind == Kind::String && holds_kill(text(token), mode);
    found.kills
        || (found.causes.contains(PinCause::Unknown) && mentions_kill(sql))
        || (found.runs_strings() && Lexer::new(sql, mode).any(holds_kill))
        || (found.multi && Lexer::new(sql, mode).any(is_kill))
}

/// True if a literal is a KILL, or may hold one. Its escapes are not read: nobody writes the word
/// with one.
fn holds_kill(literal: &[u8], mode: LexMode) -> bool {
    let [_, text @ .., _] = literal else {
        return false;
    };
    let found = classify(text, mode);
    let unread = found.causes.contains(PinCause::Unknown) || found.runs_strings();
    found.verb == Verb::Kill || found.kills || (unread && mentions_kill(text))
}

/// True if the word KILL occurs anywhere, strings included.
fn mentions_kill(sql: &[u8]) -> bool {
    let in_word = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    sql.windows(4).enumerate().any(|(at, word)| {
        let before = at.checked_sub(1).and_then(|before| sql.get(before));
        word.eq_ignore_ascii_case(b"kill") && !in_word(before) && !in_word(sql.get(at + 4))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kill_is_found_in_a_text_that_is_prepared_or_executed() {
        for (sql, hidden) in [
            ("PREPARE s FROM 'KILL 5'", true),
            ("PREPARE s FROM \"kill query 5\"", true),
            ("EXECUTE IMMEDIATE 'KILL 5'", true),
            ("EXECUTE IMMEDIATE CONCAT('KILL ', 5)", true),
            ("EXECUTE IMMEDIATE 'EXECUTE IMMEDIATE ''KILL 5'''", true),
            ("SELECT 1; PREPARE s FROM 'KILL 5'", true),
            ("SELECT 1; KILL 5", true),
            ("PREPARE s FROM 'SELECT ''KILL 5'''", false),
            ("PREPARE s FROM 'SELECT kill_list FROM t'", false),
            ("EXECUTE s USING 'skill'", false),
            ("SELECT 'KILL 5'", false),
        ] {
            let (sql, mode) = (sql.as_bytes(), LexMode::default());
            let found = hides_kill(sql, mode, &classify(sql, mode));
            assert_eq!(found, hidden, "{}", sql.escape_ascii());
        }
    }
}
