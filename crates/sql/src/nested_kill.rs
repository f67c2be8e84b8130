//! KILL in places where it is not the text's first word: behind another statement, in a block, in a
//! string that is run.
//!
//! A text that cannot be read counts as one with a KILL if the word is anywhere in it.

use crate::classify::{self, PinCause};
use crate::lex::{Kind, LexMode, Lexer, Token};
use crate::text_prepared::{self, TextPrepared};

/// True if something in the text is a KILL, or may be one: a statement behind the first, one of a
/// block, one that is made from a string. In a text that is understood, a string is no statement.
#[must_use]
pub fn hides_kill(sql: &[u8], mode: LexMode, found: &classify::Statement) -> bool {
    let prepares = found.causes.contains(PinCause::TextPrepare);
    let unread = found.causes.contains(PinCause::Unknown)
        || (prepares && hides_kill_within(sql, mode).unwrap_or(true));
    let is_kill = |token: Token| {
        let text = sql.get(token.start..token.end).unwrap_or_default();
        token.kind == Kind::Word && text.eq_ignore_ascii_case(b"KILL")
    };
    found.kills
        || (unread && mentions_kill(sql))
        || (found.multi && Lexer::new(sql, mode).any(is_kill))
}

/// True if the text that a PREPARE or EXECUTE IMMEDIATE gives hides a KILL, if it can be read.
fn hides_kill_within(sql: &[u8], mode: LexMode) -> Option<bool> {
    match text_prepared::read(sql, mode)? {
        TextPrepared::Prepare(_, text) | TextPrepared::Immediate(text) => {
            Some(hides_kill(&text, mode, &classify::classify(&text, mode)))
        }
        _ => None,
    }
}

/// True if the word KILL occurs anywhere, strings included.
fn mentions_kill(sql: &[u8]) -> bool {
    let in_word = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    sql.windows(4).enumerate().any(|(at, word)| {
        let before = at.checked_sub(1).and_then(|before| sql.get(before));
        word.eq_ignore_ascii_case(b"kill") && !in_word(before) && !in_word(sql.get(at + 4))
    })
}
