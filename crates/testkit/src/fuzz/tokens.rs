//! The lexer: its tokens and the gaps between them are the whole text.
//!
//! A token that is missed is a call that is not seen, and a session that gets into other hands. So
//! a second, simpler reader walks the gaps: nothing may stand there but white space and comments.

use wire::lex::{Charset, Executable, Kind, LexMode, Lexer, Pairs, Server, Token};

/// The bits of one byte as a mode, and whether versioned comments run.
pub(super) fn mode_of(how: u8) -> (LexMode, Executable) {
    let mode = LexMode {
        ansi_quotes: how & 1 != 0,
        no_backslash_escapes: how & 2 != 0,
        ignore_space: how & 4 != 0,
        charset: match how & 0x88 {
            0 => Charset::Utf8,
            8 => Charset::OneByte,
            0x80 => Charset::MultiByte(Pairs::Gbk),
            _ => Charset::MultiByte(Pairs::Sjis),
        },
        server: match how & 0x30 {
            0 => Server::Unknown,
            0x10 => Server::MySql(80_406),
            _ => Server::MariaDb(101_119),
        },
    };
    let executable = match how & 0x40 {
        0 => Executable::Run,
        _ => Executable::Skip,
    };
    (mode, executable)
}

/// All tokens, and whether they can be relied on.
pub(super) fn tokens_of(sql: &[u8], mode: LexMode, executable: Executable) -> (Vec<Token>, bool) {
    let mut lexer = Lexer::with_executable(sql, mode, executable);
    let tokens: Vec<Token> = lexer.by_ref().take(sql.len() + 1).collect();
    assert!(tokens.len() <= sql.len(), "more tokens than bytes");
    assert_eq!(lexer.next(), None, "a token behind the end");
    (tokens, !lexer.doubtful())
}

/// One byte for the mode, then SQL.
pub(super) fn lexer(data: &[u8]) {
    let Some((&how, sql)) = data.split_first() else {
        return;
    };
    let (mode, executable) = mode_of(how);
    let (tokens, sure) = tokens_of(sql, mode, executable);
    let mut at = 0;
    for token in &tokens {
        assert!(at <= token.start && token.start < token.end && token.end <= sql.len());
        assert!(
            !sure || is_gap(&sql[at..token.start], executable),
            "{token:?}"
        );
        at = token.end;
    }
    assert!(
        !sure || is_gap(&sql[at..], executable),
        "the end of the text"
    );
    for token in &tokens {
        stands_alone(&sql[token.start..token.end], token.kind, mode, sure);
    }
    spaced_out(sql, &tokens, mode, sure);
}

/// Only white space and comments, or the ends of executable ones.
fn is_gap(mut gap: &[u8], executable: Executable) -> bool {
    while let Some((&first, rest)) = gap.split_first() {
        let end = |of: &[u8], mark: &[u8]| of.windows(mark.len()).position(|part| part == mark);
        gap = match (first, rest.first()) {
            (b' ' | 9..=13, _) => rest,
            (b'#', _) | (b'-', Some(b'-')) => match end(rest, b"\n") {
                Some(at) => &rest[at + 1..],
                None => b"",
            },
            (b'*', Some(b'/')) => &rest[1..],
            (b'/', Some(b'*')) => {
                let text = &rest[1..];
                let opens = text.strip_prefix(b"!").or(text.strip_prefix(b"M!"));
                let skipped = || end(text, b"*/").map(|at| &text[at + 2..]);
                match (opens, executable) {
                    (Some(content), Executable::Run) => behind_digits(content),
                    // What it runs are tokens; what it skips is one comment.
                    (Some(content), Executable::Skip) => {
                        skipped().unwrap_or(behind_digits(content))
                    }
                    (None, _) => match skipped() {
                        Some(rest) => rest,
                        None => return false,
                    },
                }
            }
            _ => return false,
        };
    }
    true
}

fn behind_digits(text: &[u8]) -> &[u8] {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    &text[digits..]
}

/// A token that has its own bounds is the same token without what stands around it.
fn stands_alone(text: &[u8], kind: Kind, mode: LexMode, sure: bool) {
    let bounded = matches!(
        kind,
        Kind::String | Kind::Word | Kind::UserVariable | Kind::SystemVariable | Kind::Assign
    );
    if !bounded || !sure {
        return;
    }
    let (alone, _) = tokens_of(text, mode, Executable::Run);
    let expected = Token {
        kind,
        start: 0,
        end: text.len(),
    };
    assert_eq!(alone, [expected], "{}", text.escape_ascii());
}

/// More space between tokens that do not touch changes no token.
fn spaced_out(sql: &[u8], tokens: &[Token], mode: LexMode, sure: bool) {
    let touching = tokens.windows(2).any(|pair| pair[0].end == pair[1].start);
    let dotted = tokens.iter().any(|token| token.kind == Kind::Punct(b'.'));
    if !sure || touching || dotted {
        return;
    }
    let texts: Vec<&[u8]> = tokens.iter().map(|t| &sql[t.start..t.end]).collect();
    let spaced = texts.join(&b"\n "[..]);
    let (again, _) = tokens_of(&spaced, mode, Executable::Run);
    let kinds = |tokens: &[Token]| tokens.iter().map(|t| t.kind).collect::<Vec<_>>();
    assert_eq!(kinds(&again), kinds(tokens), "{}", spaced.escape_ascii());
}
