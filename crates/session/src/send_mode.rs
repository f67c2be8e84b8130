//! Send modes of a statement behind commands that restore its session and may fail.
//!
//! What stands behind a command on the wire runs even when that command fails. So the text decides
//! whether a statement waits for it, is joined with it in one text, or may run in any state.
//!
//! Invariant: a text of which it is not certain that it is one statement is not joined for a client
//! that may send one statement only.

use sql::classify::{self, Verb};
use sql::lex::{Charset, LexMode};

/// Send mode of a statement behind commands that restore its session and may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendMode {
    /// Only once they have succeeded.
    Apart,
    /// Sent in one text with them.
    Joined,
    /// Sent at once: it leaves nothing, whatever state it runs in. Its reply is dropped if they
    /// fail.
    Anywhere,
    /// Sent at once behind the one that sets the default schema: it runs in a schema of its own.
    OwnSchema,
    /// Sent without the client's default schema, which it sets itself.
    NewSchema,
}

/// Statements of the pool's own that go in one text with a client's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined {
    /// The statements, each with its semicolon.
    pub text: Vec<u8>,
    /// Number of statements.
    pub statements: usize,
}

/// Form in which prefix commands go in front of the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prefix {
    /// Nothing, or its failure is no matter: the command may follow, and runs.
    CannotFail,
    /// Can fail, and is waited for.
    Waited,
    /// Can fail; the command may follow, and has no effect then.
    Tried,
    /// Can fail, and is this text in front of the statement's own.
    Joined(Joined),
}

/// Fate of a statement behind a restoring command that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behind {
    /// Not run.
    NotRun,
    /// Not sent, or run in another state.
    Unknown,
}

/// Send mode of a text behind others.
pub fn send_mode_of(found: &classify::Statement) -> SendMode {
    match found.verb {
        // To a server it is no statement: it would not be answered behind another.
        Verb::Empty => SendMode::Apart,
        Verb::Use if !found.multi => SendMode::NewSchema,
        _ => SendMode::Joined,
    }
}

/// Send mode of executions of a text, which run in the schema in which it was prepared; it may ask
/// for that ([`crate::text::may_ask_for_schema`]).
pub fn send_mode_of_execution(asks_schema: bool, found: &classify::Statement) -> SendMode {
    match found.verb {
        Verb::Use | Verb::Other | Verb::Empty => SendMode::Apart,
        _ if asks_schema || found.multi => SendMode::Apart,
        _ => SendMode::OwnSchema,
    }
}

/// True if a text is one statement for certain: each semicolon, but one at its end, stands between
/// quotes. That is judged by a rule so narrow that no server can read the text otherwise: outside
/// of quotes there is nothing that begins a comment, an escape or a quote of another kind, and
/// letters of several bytes have no byte that looks like one of those.
#[must_use]
pub fn is_one_statement(sql: &[u8], mode: LexMode) -> bool {
    let text = sql.trim_ascii_end();
    let text = text.strip_suffix(b";").unwrap_or(text);
    if !text.contains(&b';') {
        return true;
    }
    if !matches!(mode.charset, Charset::Utf8 | Charset::OneByte) {
        return false;
    }
    let mut rest = text;
    while let [byte, after @ ..] = rest {
        rest = after;
        match byte {
            b'\'' | b'"' | b'`' => {
                let is_name = *byte == b'`' || (*byte == b'"' && mode.ansi_quotes);
                let escapes = !is_name && !mode.no_backslash_escapes;
                match end_of_quoted(rest, *byte, escapes) {
                    Some(end) => rest = &rest[end..],
                    None => return false,
                }
            }
            b';' | b'#' | b'\\' | b'$' | 0 => return false,
            b'-' if after.first() == Some(&b'-') => return false,
            b'/' if after.first() == Some(&b'*') => return false,
            _ => {}
        }
    }
    true
}

/// Offset behind the closing quote. A doubled quote ends it too, and the rest starts over with the
/// second one.
fn end_of_quoted(text: &[u8], quote: u8, escapes: bool) -> Option<usize> {
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        at += match byte {
            b'\\' if escapes => 2,
            0 => return None,
            _ if byte == quote => return Some(at + 1),
            _ => 1,
        };
    }
    None
}

#[cfg(test)]
mod tests;
