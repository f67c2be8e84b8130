//! The lexer: its tokens and the gaps between them are the whole text.
//!
//! A token that is missed is a call that is not seen, and a session that gets into other hands. So
//! a second, simpler reader walks the gaps: nothing may stand there but white space and comments.

use sql::lex::{Charset, Executable, Kind, LexMode, Lexer, Pairs, Server, Token};

/// The bits of one byte as a mode, and whether versioned comments run.
pub(super) fn mode_of(how: u8) -> (LexMode, Executable) {
    let mode = LexMode {
        ansi_quotes: how & 1 != 0,
        no_backslash_escapes: how & 2 != 0,
        ignore_space: how & 4 != 0,
        no_schema: false,
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

/// Reads SQL behind one byte for the mode.
pub(super) fn lexer(data: &[u8]) {
    let Some((&how, sql)) = data.split_first() else {
        return;
    };
    let (mode, executable) = mode_of(how);
    let (tokens, sure) = tokens_of(sql, mode, executable);
    let mut at = 0;
    for token in &tokens {
        assert!(at <= token.start && token.start < token.end && token.end <= sql.len());
        assert!(!sure || is_gap(&sql[at..token.start]), "{token:?}");
        at = token.end;
    }
    assert!(!sure || is_gap(&sql[at..]), "the end of the text");
    for token in &tokens {
        stands_alone(&sql[token.start..token.end], token.kind, mode, sure);
    }
    spaced_out(sql, &tokens, mode, sure);
}

/// Only white space and comments, or the marks of executable ones, in any way of taking it apart.
fn is_gap(gap: &[u8]) -> bool {
    let mut reached = vec![false; gap.len() + 1];
    reached[0] = true;
    for at in 0..gap.len() {
        if reached[at] {
            for len in steps(&gap[at..]) {
                reached[at + len] = true;
            }
        }
    }
    reached[gap.len()]
}

/// Lengths that a piece of a gap may have.
fn steps(gap: &[u8]) -> Vec<usize> {
    let end = |mark: u8| gap.iter().position(|byte| *byte == mark);
    match gap {
        [b' ' | 9..=13, ..] => vec![1],
        // The end of a text, but for what servers cut off.
        [0, rest @ ..] if rest.iter().all(|byte| b"; \t\n\x0b\x0c\r".contains(byte)) => {
            vec![gap.len()]
        }
        [b'#', ..] | [b'-', b'-', ..] => {
            let line = end(b'\n').map_or(gap.len(), |at| at + 1);
            vec![end(0).map_or(line, |zero| zero.min(line))]
        }
        [b'*', b'/', ..] => vec![2],
        [b'/', b'*', text @ ..] => {
            let mark = [&b"!"[..], b"M!"].into_iter().find(|m| text.starts_with(m));
            let marks = mark.into_iter().flat_map(|mark| {
                let digits = text[mark.len()..].iter().take(6);
                let digits = digits.take_while(|byte| byte.is_ascii_digit()).count();
                (0..=digits).map(move |digits| 2 + mark.len() + digits)
            });
            let skipped = [0, 1].into_iter().filter_map(|levels| skipped(gap, levels));
            marks.chain(skipped).collect()
        }
        _ => Vec::new(),
    }
}

/// The length of the comment in front, with so many levels of others inside.
fn skipped(gap: &[u8], levels: usize) -> Option<usize> {
    let (mut at, mut open) = (2, 0);
    while let Some(pair) = gap.get(at..at + 2) {
        match pair {
            b"/*" if open < levels => (at, open) = (at + 2, open + 1),
            b"*/" if open == 0 => return Some(at + 2),
            b"*/" => (at, open) = (at + 2, open - 1),
            _ => at += 1,
        }
    }
    None
}

/// Checks that a token that has its own bounds is the same token without what stands around it.
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

/// Checks that more space between tokens that do not touch changes no token.
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
