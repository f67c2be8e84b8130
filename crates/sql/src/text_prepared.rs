//! PREPARE, EXECUTE and DEALLOCATE as text: what each names, and the text that it prepares.
//!
//! A statement that is prepared by name lives in one server session. To follow its client it must
//! be known whole: its name, as the servers compare it, and the text, as they read the literal.
//! Only forms that leave no doubt are read; any other is [`None`], and its client keeps its
//! backend. [`put_prepare`] writes the same statement again.

use crate::holdings::words::Words;
use crate::lex::{Charset, Kind, LexMode, Lexer, Token};

/// A name in lower case: the servers compare names of statements without regard to case.
pub type Name = Box<[u8]>;

/// One statement about a prepared one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextPrepared {
    /// `PREPARE name FROM 'text'`; the text as the server reads it.
    Prepare(Name, Vec<u8>),
    /// `PREPARE name FROM @variable`; the variable as it is written.
    PrepareFrom(Name, Box<[u8]>),
    /// PREPARE of a text in another form.
    PrepareUnread(Name),
    /// `EXECUTE name`, with nothing but variables and literals behind USING.
    Execute(Name),
    /// `EXECUTE name` with something else behind it.
    ExecuteUnread(Name),
    /// `EXECUTE IMMEDIATE 'text'`, likewise.
    Immediate(Vec<u8>),
    /// `DEALLOCATE PREPARE name`, `DROP PREPARE name`.
    Deallocate(Name),
}

/// Reads a text that is a single statement about a prepared one; what it is said to be is certain
/// for single statements only.
#[must_use]
pub fn read(sql: &[u8], mode: LexMode) -> Option<TextPrepared> {
    let mut lexer = Lexer::new(sql, mode);
    let tokens: Vec<Token> = lexer.by_ref().collect();
    if !lexer.certain() {
        return None;
    }
    let mut words = Words::new(sql, &tokens, mode);
    let first = words.next_word()?.to_ascii_uppercase();
    let found = match &*first {
        b"PREPARE" => {
            let name = name(&mut words)?;
            if !words.eat(b"FROM") {
                return None;
            }
            let source = words.next()?;
            match source.kind {
                Kind::UserVariable => TextPrepared::PrepareFrom(name, words.text(source).into()),
                _ => match unquoted(&words, source, mode) {
                    Some(text) if words.at_end() => TextPrepared::Prepare(name, text),
                    _ => return Some(TextPrepared::PrepareUnread(name)),
                },
            }
        }
        b"EXECUTE" if words.eat(b"IMMEDIATE") => {
            let source = words.next()?;
            let text = unquoted(&words, source, mode)?;
            skip_using(&mut words)?;
            TextPrepared::Immediate(text)
        }
        b"EXECUTE" => {
            let name = name(&mut words)?;
            if skip_using(&mut words).is_none() || !words.at_end() {
                return Some(TextPrepared::ExecuteUnread(name));
            }
            TextPrepared::Execute(name)
        }
        b"DEALLOCATE" | b"DROP" if words.eat(b"PREPARE") => {
            TextPrepared::Deallocate(name(&mut words)?)
        }
        _ => return None,
    };
    words.at_end().then_some(found)
}

fn name(words: &mut Words<'_>) -> Option<Name> {
    let name = words.plain_name()?;
    Some(name.to_ascii_lowercase().into())
}

/// USING with variables, literals and numbers only: nothing that could be a call.
fn skip_using(words: &mut Words<'_>) -> Option<()> {
    if !words.eat(b"USING") {
        return Some(());
    }
    loop {
        words.eat_punct(b'-');
        let value = words.next()?;
        let plain = matches!(value.kind, Kind::UserVariable | Kind::String | Kind::Number);
        if !plain && !words.is(value, b"NULL") {
            return None;
        }
        if !words.eat_punct(b',') {
            return Some(());
        }
    }
}

/// The bytes that a literal stands for ("String Literals" in MySQL's manual).
fn unquoted(words: &Words<'_>, token: Token, mode: LexMode) -> Option<Vec<u8>> {
    let text = words.text(token);
    let [quote @ (b'\'' | b'"'), inner @ .., _] = text else {
        return None;
    };
    let readable = match mode.charset {
        Charset::Utf8 => true,
        Charset::OneByte => true,
        Charset::MultiByte(_) | Charset::Opaque => inner.is_ascii(),
    };
    if token.kind != Kind::String || !readable || inner.contains(&0) {
        return None;
    }
    let mut out = Vec::with_capacity(inner.len());
    let mut bytes = inner.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte == *quote {
            // The lexer lets it stand inside only where it is doubled.
            bytes.next();
            out.push(byte);
        } else if byte == b'\\' && !mode.no_backslash_escapes {
            match bytes.next()? {
                b'0' => return None,
                b'n' => out.push(b'\n'),
                b't' => out.push(b'\t'),
                b'r' => out.push(b'\r'),
                b'b' => out.push(8),
                b'Z' => out.push(26),
                // These two keep their backslash.
                escaped @ (b'%' | b'_') => out.extend_from_slice(&[b'\\', escaped]),
                other => out.push(other),
            }
        } else {
            out.push(byte);
        }
    }
    Some(out)
}

/// Names of statements in a text that says more than one such statement does: one of several
/// statements, or MariaDB's SET STATEMENT in front of EXECUTE; or of a client whose names the
/// server alone knows.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct NamesIn {
    /// Names that it executes or takes away.
    pub used: Vec<Name>,
    /// Names that it gives to something (`PREPARE name FROM`).
    pub given: Vec<Name>,
}

/// The names in a text.
#[must_use]
pub fn names_in(sql: &[u8], mode: LexMode) -> NamesIn {
    let tokens: Vec<Token> = Lexer::new(sql, mode).collect();
    let mut words = Words::new(sql, &tokens, mode);
    let mut found = NamesIn::default();
    while let Some(token) = words.next() {
        let executes = words.is(token, b"EXECUTE");
        if !executes && !words.is(token, b"PREPARE") {
            continue;
        }
        let mut behind = words;
        let Some(name) = name(&mut behind) else {
            continue;
        };
        let names = match executes || !behind.eat(b"FROM") {
            true => &mut found.used,
            false => &mut found.given,
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    found
}

/// Writes the statement that prepares `text` under `name`, for a session of this mode.
pub fn put_prepare(out: &mut Vec<u8>, name: &[u8], text: &[u8], mode: LexMode) {
    out.extend_from_slice(b"PREPARE `");
    out.extend_from_slice(name);
    out.extend_from_slice(b"` FROM '");
    for &byte in text {
        let doubled = byte == b'\'' || (byte == b'\\' && !mode.no_backslash_escapes);
        out.extend_from_slice(&[byte, byte][..1 + usize::from(doubled)]);
    }
    out.push(b'\'');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        text.as_bytes().into()
    }

    #[test]
    fn forms_without_doubt_are_read() {
        use TextPrepared::{Deallocate, Execute, Immediate, Prepare, PrepareFrom};
        let cases: [(&str, TextPrepared); 9] = [
            (
                "PREPARE S FROM 'SELECT 1'",
                Prepare(name("s"), b"SELECT 1".to_vec()),
            ),
            ("prepare `s` from \"a\";", Prepare(name("s"), b"a".to_vec())),
            (
                r"PREPARE s FROM 'a''b\'c\n\%\x'",
                Prepare(name("s"), b"a'b'c\n\\%x".to_vec()),
            ),
            ("PREPARE s FROM @sql", PrepareFrom(name("s"), name("@sql"))),
            ("EXECUTE s", Execute(name("s"))),
            ("EXECUTE s USING @a, -1, 'x', NULL", Execute(name("s"))),
            (
                "EXECUTE IMMEDIATE 'DO 1' USING @a",
                Immediate(b"DO 1".to_vec()),
            ),
            ("DEALLOCATE PREPARE s", Deallocate(name("s"))),
            ("DROP PREPARE s", Deallocate(name("s"))),
        ];
        for (sql, expected) in cases {
            assert_eq!(
                read(sql.as_bytes(), LexMode::default()),
                Some(expected),
                "{sql}"
            );
        }
    }

    #[test]
    fn doubtful_forms_are_not() {
        use TextPrepared::{ExecuteUnread, PrepareUnread};
        for (sql, expected) in [
            ("PREPARE s FROM 'a' 'b'", PrepareUnread(name("s"))),
            ("PREPARE s FROM _utf8'a'", PrepareUnread(name("s"))),
            ("PREPARE s FROM CONCAT('a')", PrepareUnread(name("s"))),
            ("EXECUTE s USING f(1)", ExecuteUnread(name("s"))),
            ("EXECUTE s USING 1 + 1", ExecuteUnread(name("s"))),
        ] {
            assert_eq!(
                read(sql.as_bytes(), LexMode::default()),
                Some(expected),
                "{sql}"
            );
        }
        for sql in [
            "PREPARE `a b` FROM 'a'",
            "EXECUTE IMMEDIATE @a",
            "EXECUTE IMMEDIATE 'a\\0'",
            "DEALLOCATE PREPARE",
            "DROP TABLE t",
            "/*!80000 PREPARE s FROM 'a' */",
            "PREPARE s FROM 'a' /* open",
        ] {
            assert_eq!(read(sql.as_bytes(), LexMode::default()), None, "{sql}");
        }
    }

    #[test]
    fn names_are_used_behind_execute_and_deallocate() {
        let names = |names: &[&str]| -> Vec<Name> { names.iter().map(|text| name(text)).collect() };
        for (sql, used, given) in [
            (
                "DO 1; EXECUTE P USING @a; execute `q`",
                &["p", "q"][..],
                &[][..],
            ),
            (
                "EXECUTE p; EXECUTE p; DEALLOCATE PREPARE p; DROP PREPARE r",
                &["p", "r"],
                &[],
            ),
            (
                "PREPARE p FROM 'EXECUTE q'; SELECT 'EXECUTE q'",
                &[],
                &["p"],
            ),
            ("PREPARE P FROM 'a'; EXECUTE p", &["p"], &["p"]),
            ("PREPARE p FROM @a; PREPARE `p` FROM 'b'", &[], &["p"]),
            (
                "SET STATEMENT max_statement_time = 1 FOR EXECUTE p",
                &["p"],
                &[],
            ),
            ("EXECUTE", &[], &[]),
        ] {
            let expected = NamesIn {
                used: names(used),
                given: names(given),
            };
            let found = names_in(sql.as_bytes(), LexMode::default());
            assert_eq!(found, expected, "{sql}");
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let plain = LexMode::default();
        let literal = LexMode {
            no_backslash_escapes: true,
            ..plain
        };
        let text = b"SELECT 'it''s', \"\\\\\", `x`".to_vec();
        for mode in [plain, literal] {
            let mut sql = Vec::new();
            put_prepare(&mut sql, b"s", &text, mode);
            let expected = TextPrepared::Prepare(name("s"), text.clone());
            assert_eq!(read(&sql, mode), Some(expected), "{mode:?}");
        }
    }
}
