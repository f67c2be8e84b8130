//! Texts that are one statement for certain.

use super::*;
use crate::text::may_ask_for_schema;

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

#[test]
fn a_text_of_several_that_begins_with_use_is_joined_as_any_other() {
    let send_mode = |sql: &str| {
        let found = classify::classify(sql.as_bytes(), LexMode::default());
        send_mode_of(&found)
    };
    assert_eq!(send_mode("USE a"), SendMode::NewSchema);
    assert_eq!(send_mode("USE a; SELECT 1"), SendMode::Joined);
    assert_eq!(send_mode("SELECT 1"), SendMode::Joined);
    assert_eq!(send_mode(""), SendMode::Apart);
}

#[test]
fn an_execution_stands_in_its_own_schema_if_it_is_one_that_asks_for_none() {
    let send_mode = |sql: &str| {
        let found = classify::classify(sql.as_bytes(), LexMode::default());
        send_mode_of_execution(may_ask_for_schema(sql.as_bytes()), &found)
    };
    assert_eq!(send_mode("SELECT 1"), SendMode::OwnSchema);
    for apart in ["SELECT 1; SELECT 2", "SELECT DATABASE()", "USE a"] {
        assert_eq!(send_mode(apart), SendMode::Apart, "{apart}");
    }
}

#[test]
fn a_comment_beside_a_semicolon_in_quotes_is_not_looked_into() {
    for sql in ["SELECT ';' /* x */", "SELECT /* ; */ 1", "SELECT ';' -- x"] {
        assert!(
            !is_one_statement(sql.as_bytes(), LexMode::default()),
            "{sql}"
        );
    }
}
