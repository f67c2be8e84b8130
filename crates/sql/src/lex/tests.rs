//! Tables of texts and their tokens, and random bytes that must not stop the lexer.
//!
//! A token is written as one letter for its kind (w word, n name, s string, 0 number, v user
//! variable, V system variable, = assign, ; semicolon, p other) and its text in brackets.

use super::*;

const ANSI: LexMode = LexMode {
    ansi_quotes: true,
    ..PLAIN
};
const NO_ESCAPES: LexMode = LexMode {
    no_backslash_escapes: true,
    ..PLAIN
};
const LATIN1: LexMode = LexMode {
    charset: Charset::OneByte,
    ..PLAIN
};
const PLAIN: LexMode = LexMode {
    ansi_quotes: false,
    no_backslash_escapes: false,
    ignore_space: false,
    no_schema: false,
    charset: Charset::Utf8,
    server: Server::Unknown,
};

fn shown(sql: &[u8], mode: LexMode, executable: Executable) -> String {
    let mut lexer = Lexer::with_executable(sql, mode, executable);
    let mut out = String::new();
    for token in lexer.by_ref() {
        let letter = match token.kind {
            Kind::Word => 'w',
            Kind::Name => 'n',
            Kind::String => 's',
            Kind::Number => '0',
            Kind::UserVariable => 'v',
            Kind::SystemVariable => 'V',
            Kind::Assign => '=',
            Kind::Semicolon => ';',
            Kind::Punct(_) => 'p',
        };
        let text = String::from_utf8_lossy(&sql[token.start..token.end]);
        out.push_str(&format!("{letter}[{text}]"));
    }
    if lexer.doubtful() {
        out.push('?');
    }
    out
}

fn check(mode: LexMode, rows: &[(&str, &str)]) {
    for (sql, expected) in rows {
        assert_eq!(
            &shown(sql.as_bytes(), mode, Executable::Run),
            expected,
            "{sql}"
        );
    }
}

#[test]
fn words_names_and_numbers() {
    check(
        PLAIN,
        &[
            ("", ""),
            (" \t\r\n\x0b\x0c", ""),
            ("select a_1$,b", "w[select]w[a_1$]p[,]w[b]"),
            ("SELECT été", "w[SELECT]w[été]"),
            ("`a``b`.`c`", "n[`a``b`]p[.]n[`c`]"),
            ("a.b", "n[a]p[.]n[b]"),
            ("a . b", "w[a]p[.]w[b]"),
            ("a .b", "w[a]p[.]n[b]"),
            ("a.`b`", "w[a]p[.]n[`b`]"),
            ("select.from", "n[select]p[.]n[from]"),
            ("t.5abs(x)", "n[t]p[.]n[5abs]p[(]w[x]p[)]"),
            ("t .5abs", "w[t]0[.5]w[abs]"),
            ("a.b.c", "n[a]p[.]n[b]p[.]n[c]"),
            (
                "1abc 1 12 0x1F 0x1G 0X1F 0b01 0b02",
                "w[1abc]0[1]0[12]0[0x1F]w[0x1G]w[0X1F]0[0b01]w[0b02]",
            ),
            (
                "1.5 .5 1. 1.5e3 1e5 1E+5 1e-5",
                "0[1.5]0[.5]0[1.]0[1.5e3]0[1e5]0[1E+5]0[1e-5]",
            ),
            ("1e5abs(1)", "0[1e5]w[abs]p[(]0[1]p[)]"),
            ("1e", "w[1e]"),
            ("1.5from", "0[1.5]w[from]"),
            ("f 1.e(1)", "w[f]0[1.e]p[(]0[1]p[)]?"),
            ("1.e+", "0[1.e+]?"),
            ("$$ x $$", "w[$$]w[x]w[$$]?"),
            ("$a a$b$ $", "w[$a]w[a$b$]w[$]"),
            ("a:=1 : ;", "w[a]=[:=]0[1]p[:];[;]"),
            ("a->>'$.x'", "w[a]p[-]p[>]p[>]s['$.x']"),
            ("\\N", "p[\\]w[N]"),
        ],
    );
}

#[test]
fn strings_and_quoted_names() {
    check(
        PLAIN,
        &[
            ("'a''b' 'c'", "s['a''b']s['c']"),
            (r"'a\'b' c", r"s['a\'b']w[c]"),
            (r"'a\\' b", r"s['a\\']w[b]"),
            (r#""a\"b" c"#, r#"s["a\"b"]w[c]"#),
            (r#""a""b""#, r#"s["a""b"]"#),
            ("'a\"`b'", "s['a\"`b']"),
            (r"`a\` b", r"n[`a\`]w[b]"),
            ("N'x' _utf8'y' x'41'", "w[N]s['x']w[_utf8]s['y']w[x]s['41']"),
            ("'open", "s['open]?"),
            (r"'open\", r"s['open\]?"),
            (r"'open\'", r"s['open\']?"),
            ("`open", "n[`open]?"),
            ("`a\0b` c", "n[`a\0b` c]?"),
            ("'a\0b'", "s['a\0b']"),
            ("a\0b", "w[a]?"),
            ("a\0; \n", "w[a]"),
            ("a -- b\0", "w[a]"),
            ("/*! a\0", "w[a]?"),
        ],
    );
    check(
        NO_ESCAPES,
        &[(r"'a\' b", r"s['a\']w[b]"), (r#""a\" b"#, r#"s["a\"]w[b]"#)],
    );
    check(
        ANSI,
        &[
            (r#""a\" b"#, r#"n["a\"]w[b]"#),
            (r"'a\' b'", r"s['a\' b']"),
            (r#""a""b""#, r#"n["a""b"]"#),
        ],
    );
}

#[test]
fn variables() {
    check(
        PLAIN,
        &[
            ("@a @a.b$c @_1", "v[@a]v[@a.b$c]v[@_1]"),
            (r#"@'a b' @"a" @`a`"#, r#"v[@'a b']v[@"a"]v[@`a`]"#),
            ("@ a", "v[@]w[a]"),
            ("@", "v[@]"),
            ("@a:=1", "v[@a]=[:=]0[1]"),
            ("@@a @@session.b @@`c`", "V[@@a]V[@@session.b]V[@@`c`]"),
            ("@@global.`a`=1", "V[@@global.`a`]p[=]0[1]"),
            ("@@x.y.z", "V[@@x.y.z]"),
            ("@@session . x", "V[@@session]p[.]w[x]"),
            ("@@ x", "V[@@]w[x]?"),
            ("@@", "V[@@]?"),
            ("@@`open", "V[@@`open]?"),
            ("@'open", "v[@'open]?"),
            ("'u'@'h'", "s['u']v[@'h']"),
        ],
    );
}

#[test]
fn comments() {
    check(
        PLAIN,
        &[
            ("a -- b\nc", "w[a]w[c]"),
            ("a --\nc", "w[a]w[c]"),
            ("a --\tb", "w[a]"),
            ("a --", "w[a]"),
            ("a --b", "w[a]p[-]p[-]w[b]"),
            ("1--1", "0[1]p[-]p[-]0[1]"),
            ("a # b 'c\nd", "w[a]w[d]"),
            ("a#b\0c\nd", "w[a]?"),
            ("a/* b ' */c", "w[a]w[c]"),
            ("a/**/b", "w[a]w[b]"),
            ("a/*/b*/c", "w[a]w[c]"),
            ("a/*b", "w[a]?"),
            ("a/*b*", "w[a]?"),
            ("a*/b", "w[a]p[*]p[/]w[b]"),
            ("a/b", "w[a]p[/]w[b]"),
            ("/*+ MAX_EXECUTION_TIME(1) */ a", "w[a]"),
            ("/*+ BKA(`t`) */ a", "w[a]"),
            ("/*+ QB_NAME(`a*/ b", "w[b]"),
            ("/* a /* b */ c", "w[c]"),
            ("/* a\0 */ c", "w[c]"),
        ],
    );
}

#[test]
fn executable_comments() {
    check(
        PLAIN,
        &[
            ("/*! a */ b", "w[a]w[b]"),
            ("/*!40101 a*/b", "w[a]w[b]"),
            ("/*!80000 a */ b", "w[a]w[b]"),
            ("/*!8010000a*/", "w[0a]?"),
            ("/*!080000a*/", "w[a]"),
            ("/*M! a */ b", "w[a]w[b]"),
            ("/*M!100616 a */ b", "w[a]w[b]"),
            ("/*!50000sel*/ect", "w[sel]w[ect]"),
            ("/*! '*/' */ b", "s['*/']w[b]"),
            ("/*! a", "w[a]?"),
            ("/*! a /* b */ c */", "w[a]w[c]"),
            ("/*! a /*! b */ c */", "w[a]w[b]w[c]p[*]p[/]"),
            ("/*! a /*+ b */ c */ d", "w[a]w[c]w[d]"),
            ("/*! a; */ b", "w[a];[;]w[b]?"),
            ("/*! a -- b */", "w[a]?"),
            ("/*! a # b */ \n c */ d", "w[a]w[c]w[d]"),
            ("/*!12 a */", "0[12]w[a]"),
            ("/*!80000 a */ /*!80000 b */", "w[a]w[b]"),
            ("/*!80000 a */ /*!80001 b */", "w[a]w[b]?"),
            ("/*!80000 a */ /*M! b */", "w[a]w[b]?"),
        ],
    );
    for (sql, expected) in [
        ("/*! a */ b", "w[a]w[b]"),
        ("/*!40101 a */ b", "w[a]w[b]"),
        ("/*!50699 a */ b", "w[a]w[b]"),
        ("/*!50700 a */ b", "w[b]"),
        ("/*M! a */ b", "w[b]"),
        ("/*!80000 ' */ b", "w[b]"),
        ("/*!80000 a /* b */ c */ d", "w[d]"),
        ("/*!80000 a /* b /* c */ d */ e", "w[e]"),
        ("/*M! a /* b */ c */ d", "w[d]?"),
        ("/*!80000 a", "?"),
    ] {
        assert_eq!(
            shown(sql.as_bytes(), PLAIN, Executable::Skip),
            expected,
            "{sql}"
        );
    }
    let mut lexer = Lexer::new(b"/*!80000 a */", PLAIN);
    assert!(!lexer.has_executable());
    assert_eq!(lexer.by_ref().count(), 1);
    assert!(lexer.has_executable() && lexer.is_versioned());
}

#[test]
fn bytes_of_one_byte_sets_are_doubtful_outside_quotes() {
    assert!(!shown(b"'\xe9' `\xe9` a", LATIN1, Executable::Run).ends_with('?'));
    assert!(!shown(b"a -- \xa0", LATIN1, Executable::Run).ends_with('?'));
    assert!(!shown(b"\xe9t\xe9, @\xe9, a.\xe9", LATIN1, Executable::Run).ends_with('?'));
    for sql in [&b"a\xa0b"[..], b"\xff", b"@\xa0", b"@@\xa0", b"a.\xa0"] {
        assert!(
            shown(sql, LATIN1, Executable::Run).ends_with('?'),
            "{sql:?}"
        );
        assert!(
            !shown(sql, PLAIN, Executable::Run).ends_with('?'),
            "{sql:?}"
        );
    }
}

#[test]
fn charset_names() {
    for (name, expected) in [
        ("utf8mb4", Charset::Utf8),
        ("UTF8MB3", Charset::Utf8),
        ("latin1", Charset::OneByte),
        ("binary", Charset::OneByte),
        ("gbk", Charset::MultiByte(Pairs::Gbk)),
        ("sjis", Charset::MultiByte(Pairs::Sjis)),
        ("EUCKR", Charset::MultiByte(Pairs::High)),
        ("swe7", Charset::Opaque),
        ("ucs2", Charset::Opaque),
        ("", Charset::Opaque),
    ] {
        assert_eq!(Charset::of_name(name.as_bytes()), expected, "{name}");
    }
}

/// Tokens lie in order, within the text, and none is empty, whatever the bytes.
#[test]
fn any_bytes_end() {
    const PIECES: &[u8] = b"'\"`\\/*!+-# \n\0;:=@.,()0159eExbM$_aSELECT\x80\xa0\xff";
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    for round in 0..60_000 {
        let length = random() % 40;
        let text: Vec<u8> = (0..length)
            .map(|_| {
                let value = random();
                if round % 3 == 0 {
                    value.to_le_bytes()[1]
                } else {
                    PIECES[usize::from(value.to_le_bytes()[1]) % PIECES.len()]
                }
            })
            .collect();
        let bits = random();
        let mode = LexMode {
            ansi_quotes: bits & 1 != 0,
            no_backslash_escapes: bits & 2 != 0,
            ignore_space: bits & 4 != 0,
            no_schema: false,
            ..PLAIN
        };
        let executable = if bits & 8 == 0 {
            Executable::Run
        } else {
            Executable::Skip
        };
        let mut end = 0;
        for token in Lexer::with_executable(&text, mode, executable) {
            assert!(end <= token.start && token.start < token.end, "{text:?}");
            end = token.end;
        }
        assert!(end <= text.len(), "{text:?}");
    }
}

#[test]
fn a_character_of_two_bytes_may_hide_a_quote() {
    use Pairs::{Big5, Gbk, High, Sjis};
    for (text, pairs, readable) in [
        (&b"'plain\\''"[..], Gbk, true),
        // What ends on a backslash or a backtick by itself, and what does not.
        (b"'\xbf\\'", Gbk, false),
        (b"'\xbf\x5b'", Gbk, true),
        (b"`\xb1\xed`", Gbk, true),
        (b"`\xb1\xed\xb1`", Gbk, false),
        (b"`\xb1A\xed`", Gbk, false),
        // A letter of one byte in sjis, the front of a character in big5.
        (b"`\xb1`", Sjis, true),
        (b"`\xb1\x83`", Sjis, false),
        (b"`\xb1`", Big5, false),
        (b"`\x83`", Big5, true),
        (b"`\xb1\xed`", Big5, true),
        (b"`\xb1`", High, true),
        // A backslash takes the front of a character, and what follows is another's.
        (b"'\\\xb1\xed\xb1\xed'", Gbk, false),
        (b"'\\\xb1\xed\xb1\xed'", High, true),
        // Four bytes of gb18030.
        (b"`\x81\x30\x89\x38`", Gbk, true),
    ] {
        let charset = Charset::MultiByte(pairs);
        let shown = text.escape_ascii();
        assert_eq!(charset.is_plain(text), readable, "{pairs:?} {shown}");
        let mode = LexMode {
            charset,
            ..LexMode::default()
        };
        let mut lexer = Lexer::new(text, mode);
        let whole = Token {
            kind: if text[0] == b'`' {
                Kind::Name
            } else {
                Kind::String
            },
            start: 0,
            end: text.len(),
        };
        let cut: Vec<Token> = lexer.by_ref().collect();
        // Where a character hides a backslash or a backtick, the cut is right all the same.
        let complete = text.ends_with(b"'") || !lexer.unread();
        assert_eq!(lexer.doubtful(), !readable, "{pairs:?} {shown}");
        assert!(
            !readable || (complete && cut == [whole]),
            "{pairs:?} {shown}"
        );
    }
}

/// A character's last byte means nothing by itself.
#[test]
fn characters_of_two_bytes_are_passed_over() {
    use Pairs::{Big5, Gbk, Sjis};
    for (text, pairs, expected) in [
        (&b"'\xbf\\', a"[..], Gbk, &b"',a"[..]),
        (b"`\xb1\x60`, a", Gbk, b"`,a"),
        (b"a\x81\x7cb, c", Gbk, b"a,c"),
        (b"'\x83\\', a", Sjis, b"',a"),
        (b"'\xa5\\' ; '", Big5, b"';'"),
        // The backslash takes the first byte, the second stands by itself.
        (b"'\\\xb1\\' ; '", Big5, b"'"),
    ] {
        let mode = LexMode {
            charset: Charset::MultiByte(pairs),
            ..PLAIN
        };
        let mut lexer = Lexer::new(text, mode);
        let firsts: Vec<u8> = lexer.by_ref().map(|token| text[token.start]).collect();
        assert!(!lexer.miscut(), "{}", text.escape_ascii());
        let shown = text.escape_ascii();
        assert_eq!(
            firsts.escape_ascii().to_string(),
            expected.escape_ascii().to_string(),
            "{shown}"
        );
    }
}

/// The server that reads it decides which part of a comment runs.
#[test]
fn a_known_server_decides_what_runs() {
    const MARIADB: Server = Server::MariaDb(101_119);
    const OLD: Server = Server::MySql(80_015);
    const NEW: Server = Server::MySql(90_704);
    for (sql, servers, expected) in [
        ("/*! a */ b", &[MARIADB, OLD, NEW][..], "w[a]w[b]"),
        ("/*!80000 a */ b", &[OLD, NEW], "w[a]w[b]"),
        ("/*!80000 a */ b", &[MARIADB], "w[b]"),
        ("/*!50700 a */ b", &[MARIADB], "w[b]"),
        ("/*!50699 a */ b", &[MARIADB, OLD, NEW], "w[a]w[b]"),
        ("/*!100000 a */ b", &[MARIADB], "w[a]w[b]"),
        ("/*!100000 a */ b", &[NEW], "w[b]"),
        ("/*!100000 a */ b", &[OLD], "0[0]w[a]w[b]"),
        ("/*!99999 a /* c */ d */ b", &[MARIADB, OLD, NEW], "w[b]"),
        ("/*M! a /* c */ d */ b", &[MARIADB], "w[a]w[d]w[b]"),
        ("/*M! a /* c */ d */ b", &[OLD, NEW], "w[d]p[*]p[/]w[b]"),
        ("/*M!80000 a */ b", &[MARIADB], "w[a]w[b]"),
        ("/*M!110000 a /* c */ d */ b", &[MARIADB], "w[b]"),
        // The sixth digit, with and without white space behind it.
        ("/*!080000 a */ b", &[NEW], "w[a]w[b]"),
        ("/*!080000a */ b", &[NEW, OLD], "w[0a]w[b]"),
        ("/*!080000a */ b", &[MARIADB], "w[b]"),
        ("/*!05000010 */", &[MARIADB], "0[10]"),
        ("/*!05000010 */", &[NEW, OLD], "0[010]"),
        (
            "/*!080000 a */ b",
            &[Server::MySql(80_034)],
            "0[0]w[a]w[b]?",
        ),
        ("/*!80000 a */ /*!90000 b */", &[OLD], "w[a]"),
        ("/*!80000 a */ /*!90000 b */", &[NEW], "w[a]w[b]"),
        ("$$ a $$", &[MARIADB, OLD], "w[$$]w[a]w[$$]"),
        ("$$ a $$", &[NEW], "w[$$]w[a]w[$$]?"),
    ] {
        for &server in servers {
            let mode = LexMode { server, ..PLAIN };
            for executable in [Executable::Run, Executable::Skip] {
                let seen = shown(sql.as_bytes(), mode, executable);
                assert_eq!(seen, expected, "{sql} {server:?}");
            }
        }
    }
}

#[test]
fn a_long_literal_ends_where_a_short_one_does() {
    let mode = LexMode::default();
    // Around the lengths of one and of two blocks, with what ends or escapes at every place.
    for len in (0..140).chain([1000, 1023, 1024, 1025]) {
        for inner in ["", "''", "\\'", "\\\\", "`", "\"", "\0"] {
            let text = format!("'{}{inner}{}' x", "a".repeat(len), "b".repeat(len % 70));
            let mut lexer = Lexer::new(text.as_bytes(), mode);
            let first = lexer.next().unwrap();
            assert_eq!(
                (first.kind, first.end),
                (Kind::String, text.len() - 2),
                "{text}"
            );
            assert_eq!(lexer.next().map(|token| token.kind), Some(Kind::Word));
            let name = format!("`{}``{}` x", "a".repeat(len), "b".repeat(len % 70));
            let first = Lexer::new(name.as_bytes(), mode).next().unwrap();
            assert_eq!((first.kind, first.end), (Kind::Name, name.len() - 2));
        }
        let open = format!("'{}", "a".repeat(len));
        let mut lexer = Lexer::new(open.as_bytes(), mode);
        assert_eq!(lexer.by_ref().count(), 1);
        assert!(lexer.unread());
        let zero = format!("`{}\0{}` x", "a".repeat(len), "b".repeat(len % 70));
        let mut lexer = Lexer::new(zero.as_bytes(), mode);
        assert_eq!(lexer.by_ref().count(), 1);
        assert!(
            lexer.unread(),
            "a name with a zero byte is read by no server"
        );
    }
}
