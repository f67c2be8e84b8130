//! Which texts are one statement for certain.

use super::*;

#[test]
fn a_semicolon_anywhere_but_at_the_end_may_begin_another_statement() {
    let mode = LexMode::default();
    for one in [
        "SELECT 1",
        "SELECT 1;",
        "SELECT 1 ; \n",
        "",
        "SELECT ';'",
        "SELECT 'a'';b', \"x;'\", `;`;",
        "INSERT INTO t VALUES ('it\\'s; -- so # and /* so')",
        "SELECT '\u{e9};', 3-1, 4/2",
    ] {
        assert!(is_one_statement(one.as_bytes(), mode), "{one}");
    }
    for several in [
        "SELECT 1; SELECT 2",
        "SELECT 1;;",
        "; x",
        "SELECT 'a' -- '\n; SELECT ';'",
        "SELECT 'a' # '\n; SELECT ';'",
        "SELECT 'a' /* ' */; SELECT ';'",
        "SELECT 'a\\'; SELECT ';'",
        "SELECT \\'; SELECT ';'",
        "SELECT 'open; SELECT 2",
        "SELECT $$ ' $$; SELECT ';'",
        "SELECT '\0;'",
        "BEGIN NOT ATOMIC SELECT 1; END",
    ] {
        assert!(!is_one_statement(several.as_bytes(), mode), "{several}");
    }
}

#[test]
fn quotes_are_those_of_the_session() {
    let text = br"SELECT 'a\'; SELECT ';'";
    let no_escapes = LexMode {
        no_backslash_escapes: true,
        ..LexMode::default()
    };
    assert!(!is_one_statement(text, no_escapes));
    assert!(is_one_statement(br"SELECT 'a;\', 1", no_escapes));
    assert!(!is_one_statement(br"SELECT 'a;\', 1", LexMode::default()));
    let ansi = LexMode {
        ansi_quotes: true,
        ..LexMode::default()
    };
    // A name has no escapes, so it ends at the second quote.
    assert!(!is_one_statement(br#"SELECT "a\"; SELECT ";""#, ansi));
    assert!(!is_one_statement(
        br#"SELECT "a\"; SELECT ";""#,
        LexMode::default()
    ));
    for charset in [Charset::of_name(b"gbk"), Charset::Opaque] {
        let mode = LexMode {
            charset,
            ..LexMode::default()
        };
        assert!(!is_one_statement(b"SELECT ';'", mode));
        assert!(is_one_statement(b"SELECT 1", mode));
    }
}
