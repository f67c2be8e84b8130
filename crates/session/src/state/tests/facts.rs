//! Facts of a session, and notes that are no part of it.

use super::*;

fn defaults(values: &[(&str, &str)]) -> GlobalDefaults {
    let names = values.iter().map(|(name, _)| text(name)).collect();
    let values = values.iter().map(|(_, value)| Some(text(value))).collect();
    GlobalDefaults::named(names)
        .with(values, Text::default())
        .unwrap()
}

fn under(defaults: &GlobalDefaults) -> Session {
    let charsets = ["utf8mb4", "utf8mb4", "utf8mb4", "utf8mb4_general_ci"].map(text);
    Session::at_login(b"a", false, &charsets, defaults)
}

#[test]
fn a_login_without_a_schema_has_none() {
    assert_eq!(utf8("").schema, None);
    assert_eq!(utf8("a").schema.as_deref(), Some(&b"a"[..]));
}

#[test]
fn a_login_lists_its_four_charset_variables() {
    let charsets = ["latin1", "utf8mb4", "", "utf8mb4_bin"].map(text);
    let session = Session::at_login(b"", true, &charsets, &GlobalDefaults::default());
    for (name, value) in CHARSET_VARIABLES.iter().zip(&charsets) {
        assert_eq!(session.variable(name.as_bytes()), Some(&**value), "{name}");
    }
    assert!(session.multi_statements && !session.speaks_utf8());
    assert_eq!(session.variables.len(), 4);
}

#[test]
fn each_variable_that_is_no_state_is_left_out() {
    for name in NOT_STATE {
        let mut session = utf8("a");
        session.set(name.as_bytes(), b"5").unwrap();
        assert_eq!(session, utf8("a"), "{name}");
    }
}

#[test]
fn a_name_that_no_set_could_have_is_said_to_be_so() {
    for name in ["", "a b", "a'b", "a;b", "a`", "\u{e9}", "a=b"] {
        let mut session = utf8("a");
        assert_eq!(
            session.set(name.as_bytes(), b"1"),
            Err(NotRestorable),
            "{name}"
        );
        assert_eq!(session, utf8("a"), "nothing is noted");
    }
    assert_eq!(utf8("a").set(b"aria.cache_2", b"1"), Ok(()));
}

#[test]
fn variables_are_found_in_whatever_order_they_came() {
    let (mut one, mut two) = (utf8("a"), utf8("a"));
    for name in ["zz", "aa", "mm"] {
        one.put(name.as_bytes(), name.as_bytes());
    }
    for name in ["mm", "zz", "aa"] {
        two.put(name.as_bytes(), b"before");
        two.put(name.as_bytes(), name.as_bytes());
    }
    assert_eq!(one, two);
    assert_eq!(one.variable(b"mm"), Some(&b"mm"[..]));
    assert_eq!(one.variable(b"m"), None);
    one.unset(b"mm");
    assert_eq!(one.variable(b"mm"), None);
    assert_ne!(one, two);
}

#[test]
fn what_is_not_listed_has_the_value_that_it_began_with() {
    let mut session = under(&defaults(&[("sql_mode", "ANSI")]));
    assert_eq!(session.variable(b"sql_mode"), None);
    assert_eq!(session.value(b"sql_mode"), Some(&b"ANSI"[..]));
    session.put(b"sql_mode", b"");
    assert_eq!(session.value(b"sql_mode"), Some(&b""[..]));
    session.unset(b"sql_mode");
    assert_eq!(session.value(b"sql_mode"), Some(&b"ANSI"[..]));
    assert_eq!(session.value(b"time_zone"), None, "nobody knows");
}

#[test]
fn an_interactive_client_waits_for_as_long_as_those_do() {
    let waits = defaults(&[("interactive_timeout", "60"), ("wait_timeout", "5")]);
    let wait = |defaults: &GlobalDefaults, capabilities| {
        let mut session = under(defaults);
        session.begin_interactive(capabilities);
        session.variable(b"wait_timeout").map(<[u8]>::to_vec)
    };
    assert_eq!(wait(&waits, INTERACTIVE), Some(b"60".to_vec()));
    assert_eq!(wait(&waits, 0), None);
    let same = defaults(&[("interactive_timeout", "5"), ("wait_timeout", "5")]);
    assert_eq!(wait(&same, INTERACTIVE), None, "there is no difference");
    assert_eq!(wait(&GlobalDefaults::default(), INTERACTIVE), None);
}

#[test]
fn what_commit_does_may_be_a_global_value() {
    assert!(under(&defaults(&[("completion_type", "RELEASE")])).releases);
    assert!(!under(&defaults(&[("completion_type", "CHAIN")])).releases);
    let plainly = |value: &str| under(&defaults(&[("completion_type", value)])).completes_plainly();
    assert!(plainly("NO_CHAIN") && plainly("0"));
    assert!(!plainly("CHAIN") && !plainly("1") && !plainly("RELEASE"));
    assert!(!utf8("a").completes_plainly(), "not known");
}

#[test]
fn autocommit_is_on_unless_it_is_known_to_be_off() {
    for (value, commits) in [("ON", true), ("1", true), ("OFF", false), ("0", false)] {
        let mut session = utf8("a");
        session.put(b"autocommit", value.as_bytes());
        assert_eq!(session.commits(), commits, "{value}");
    }
    assert!(utf8("a").commits());
    assert!(!under(&defaults(&[("autocommit", "OFF")])).commits());
}

#[test]
fn a_use_forgets_what_was_odd_of_the_schema_before() {
    let mut session = utf8("a");
    for name in SCHEMA_VARIABLES {
        session.put(name.as_bytes(), b"x");
    }
    session.put(b"sql_notes", b"OFF");
    session.use_schema(Some(text("b")));
    for name in SCHEMA_VARIABLES {
        assert_eq!(session.variable(name.as_bytes()), None, "{name}");
    }
    assert_eq!(session.variable(b"sql_notes"), Some(&b"OFF"[..]));
    assert_eq!(session.schema, Some(text("b")));
}

#[test]
fn behind_a_reset_a_schema_has_the_servers_charset() {
    let known = defaults(&[
        ("character_set_database", "latin1"),
        ("collation_database", "latin1_bin"),
    ]);
    let mut session = under(&known);
    session.forget_schema_charset();
    assert_eq!(
        session.variable(b"character_set_database"),
        Some(&b"latin1"[..])
    );
    assert_eq!(
        session.variable(b"collation_database"),
        Some(&b"latin1_bin"[..])
    );
    let mut none = under(&known);
    none.schema = None;
    none.forget_schema_charset();
    assert_eq!(none.variable(b"character_set_database"), None);
    let mut unknown = utf8("a");
    unknown.forget_schema_charset();
    assert_eq!(unknown, utf8("a"));
}

#[test]
fn a_charset_and_its_collation_are_one_value_that_was_set_last() {
    let names = |session: &Session| {
        ["character_set_server", "collation_server"]
            .map(|n| session.variable(n.as_bytes()).is_some())
    };
    let mut session = utf8("a");
    session.set(b"collation_server", b"latin1_bin").unwrap();
    assert_eq!(names(&session), [false, true]);
    session.set(b"character_set_server", b"greek").unwrap();
    assert_eq!(names(&session), [true, false]);
    session.set(b"collation_server", b"greek_bin").unwrap();
    assert_eq!(names(&session), [false, true]);
    // Those of the connection are read back.
    session.set(b"collation_connection", b"latin1_bin").unwrap();
    assert!(session.variable(b"character_set_connection").is_some());
    for (name, is) in [
        ("collation_database", Some(true)),
        ("character_set_server", Some(false)),
        ("collation_connection", None),
    ] {
        assert_eq!(is_paired_collation(name.as_bytes()), is, "{name}");
    }
}

#[test]
fn types_of_stored_code_are_those_of_a_session_where_it_has_set_them() {
    let known = defaults(&[("div_precision_increment", "4")]);
    let with = |value: Option<&str>| {
        let mut session = under(&known);
        if let Some(value) = value {
            session.put(TYPING, value.as_bytes());
        }
        session
    };
    assert_eq!(with(Some("8")).typing(), Some(&b"8"[..]));
    assert_eq!(with(Some("4")).typing(), None, "what all begin with");
    assert_eq!(with(None).typing(), None);
}

#[test]
fn what_a_reset_leaves_of_a_schema_goes_by_a_reset_alone() {
    let known = defaults(&[
        ("character_set_database", "latin1"),
        ("collation_database", "latin1_bin"),
    ]);
    let plain = under(&known);
    let mut reset = under(&known);
    reset.forget_schema_charset();
    assert!(plain.needs_reset_for(&reset, &known));
    assert!(!reset.needs_reset_for(&plain, &known), "USE does that");
    assert!(!reset.needs_reset_for(&reset.clone(), &known));
    let mut elsewhere = reset.clone();
    elsewhere.schema = Some(text("b"));
    assert!(
        reset.needs_reset_for(&elsewhere, &known),
        "USE sets its own"
    );
    let unknown = GlobalDefaults::default();
    assert!(!plain.needs_reset_for(&reset, &unknown));
}

#[test]
fn what_may_not_be_known_whole_is_taken_from_the_other() {
    let mut one = utf8("a");
    one.put(CLOCK, b"1");
    one.put(b"sql_mode", b"ANSI");
    one.put(b"autocommit", b"ON");
    let mut two = utf8("b");
    two.put(CLOCK, b"2");
    two.put(b"autocommit", b"OFF");
    assert!(!two.is_unlogged());
    two.put(b"sql_log_bin", b"OFF");
    assert!(two.is_unlogged());
    two.role = Some(text("`app`"));
    set_user(&mut two, "v", "1");
    let both = one.with_unread_of(&two);
    assert_eq!(both.schema, Some(text("a")));
    assert_eq!(both.variable(b"sql_mode"), Some(&b"ANSI"[..]));
    assert_eq!(both.variable(CLOCK), Some(&b"2"[..]));
    assert_eq!(both.variable(b"autocommit"), Some(&b"OFF"[..]));
    assert_eq!(both.variable(b"sql_log_bin"), Some(&b"OFF"[..]));
    assert_eq!(both.role, Some(text("`app`")));
    assert_eq!(both.user_variable(b"v"), Some(&b"1"[..]));
    let none = two.with_unread_of(&utf8("c"));
    assert_eq!(none.variable(CLOCK), None);
    assert_eq!(none.variable(b"autocommit"), None);
}

#[test]
fn a_schema_in_another_charset_is_left_out_and_handed_back() {
    let mut session = utf8("\u{e9}");
    assert_eq!(session.schema_as_sent(), None, "in UTF-8 it is the pool's");
    session.put(b"character_set_client", b"latin1");
    let (stripped, sent) = session.without_schema_as_sent(&utf8("here"));
    assert_eq!(sent, Some(&text("\u{e9}")));
    assert_eq!(stripped.schema, Some(text("here")));
    let mut ascii = utf8("b");
    ascii.put(b"character_set_client", b"latin1");
    let (same, sent) = ascii.without_schema_as_sent(&utf8("here"));
    assert_eq!((same, sent), (ascii.clone(), None));
}

#[test]
fn two_sessions_may_differ_in_multi_statements_alone() {
    let mut multi = utf8("a");
    multi.multi_statements = true;
    assert!(utf8("a").equals_but_for_multi(&multi));
    assert!(utf8("a").equals_but_for_multi(&utf8("a")));
    let changes: [fn(&mut Session); 5] = [
        |s| s.schema = None,
        |s| s.role = Some(text("NONE")),
        |s| s.put(b"sql_notes", b"OFF"),
        |s| s.results_collation = Some(text("45")),
        |s| set_user(s, "v", "1"),
    ];
    for (at, change) in changes.iter().enumerate() {
        let mut other = multi.clone();
        change(&mut other);
        assert!(!utf8("a").equals_but_for_multi(&other), "{at}");
    }
}

#[test]
fn a_change_of_any_field_makes_another_session() {
    let changes: [fn(&mut Session); 8] = [
        |s| s.schema = Some(text("b")),
        |s| s.multi_statements = true,
        |s| s.results_collation = Some(text("45")),
        |s| s.put(b"x", b"1"),
        |s| s.role = Some(text("NONE")),
        |s| set_user(s, "v", "1"),
        |s| s.releases = true,
        |s| s.defaults = defaults(&[("x", "1")]),
    ];
    let mut interner = Interner::default();
    let plain = interner.intern(utf8("a"));
    for (at, change) in changes.iter().enumerate() {
        let mut other = utf8("a");
        change(&mut other);
        assert!(!Rc::ptr_eq(&plain, &interner.intern(other)), "{at}");
    }
    let noted = utf8("a");
    noted.accepted.note(7);
    assert!(
        Rc::ptr_eq(&plain, &interner.intern(noted)),
        "what is noted beside it makes no other"
    );
}

#[test]
fn an_interner_counts_the_bytes_of_those_in_use() {
    let mut interner = Interner::default();
    let long = "x".repeat(10_000);
    let kept = interner.intern(utf8("a"));
    drop(interner.intern(utf8(&long)));
    let both = interner.bytes();
    assert!(both > 10_000 + size_of::<Session>());
    interner.sweep();
    assert_eq!(interner.bytes(), kept.bytes());
    assert!(both - interner.bytes() >= 10_000);
}

#[test]
fn multi_statements_are_switched_within_the_interner() {
    let mut interner = Interner::default();
    let plain = interner.intern(utf8("a"));
    let multi = interner.with_multi(&plain, true);
    assert!(multi.multi_statements && multi.equals_but_for_multi(&plain));
    assert!(Rc::ptr_eq(&multi, &interner.with_multi(&multi, true)));
    assert!(Rc::ptr_eq(&plain, &interner.with_multi(&multi, false)));
}

#[test]
fn each_kind_of_value_has_its_literal() {
    use Literal::{Bytes, Null, Number, Quoted};
    for (name, value, literal) in [
        ("x", "0", Number),
        ("x", "-1", Number),
        ("x", "1.5", Number),
        ("x", "1.", Quoted),
        ("x", ".5", Quoted),
        ("x", "-", Quoted),
        ("x", "1e5", Quoted),
        ("x", "+01:00", Quoted),
        ("x", "a b", Quoted),
        ("x", "a\nb", Bytes),
        ("x", "a\"b", Bytes),
        ("x", "a\\b", Bytes),
        ("x", "\u{e9}", Bytes),
        ("x", "", Quoted),
        ("character_set_results", "", Null),
        ("innodb_tmpdir", "", Null),
        ("innodb_ft_user_stopword_table", "", Null),
        ("default_master_connection", "5", Quoted),
    ] {
        let found = literal_of(name.as_bytes(), value.as_bytes());
        assert_eq!(found, literal, "{name}={value}");
    }
}

#[test]
fn an_unread_mode_is_that_of_fresh_sessions() {
    let server = Server::MySql(90_704);
    let known = under(&defaults(&[("sql_mode", "ANSI_QUOTES")]));
    assert!(known.lex_mode("NO_BACKSLASH_ESCAPES", server).ansi_quotes);
    assert!(
        !known
            .lex_mode("NO_BACKSLASH_ESCAPES", server)
            .no_backslash_escapes
    );
    let unknown = utf8("a").lex_mode("NO_BACKSLASH_ESCAPES", server);
    assert!(unknown.no_backslash_escapes && !unknown.ansi_quotes);
    assert_eq!(unknown.server, server);
}

#[test]
fn a_set_of_the_value_that_is_there_changes_nothing_for_certain() {
    let defaults = defaults(&[
        ("autocommit", "ON"),
        ("sql_mode", ""),
        ("tx_isolation", "REPEATABLE-READ"),
        ("wait_timeout", "100"),
    ]);
    let mut session = under(&defaults);
    session.results_collation = Some(text("255"));
    let stands = |session: &Session, name: &'static str, value: &str| {
        session.stands_at(&Assignment::Variable(name, value.as_bytes()), |_| None)
    };
    for (name, value, same) in [
        ("autocommit", "ON", true),
        ("autocommit", "OFF", false),
        ("sql_mode", "", true),
        ("sql_mode", "ANSI_QUOTES", false),
        ("wait_timeout", "100", true),
        ("wait_timeout", "0100", false),
        ("tx_isolation", "REPEATABLE-READ", true),
        ("tx_isolation", "SERIALIZABLE", false),
        // The server has no such name.
        ("transaction_isolation", "REPEATABLE-READ", false),
        // It is not known.
        ("foreign_key_checks", "ON", false),
    ] {
        assert_eq!(stands(&session, name, value), same, "{name} {value}");
    }
    let level = |session: &Session, level| session.stands_at(&Assignment::Level(level), |_| None);
    assert!(level(&session, b"REPEATABLE-READ") && !level(&session, b"SERIALIZABLE"));
    // Of two names with two values nobody knows which counts.
    session.put(b"transaction_isolation", b"SERIALIZABLE");
    assert!(!stands(&session, "tx_isolation", "REPEATABLE-READ"));
    assert!(!level(&session, b"REPEATABLE-READ") && !level(&session, b"SERIALIZABLE"));
    session.put(b"autocommit", b"0");
    assert!(stands(&session, "autocommit", "OFF"));
    let names = |session: &Session, charset: &str, collation: &str, described: Option<&str>| {
        let names = Assignment::Names(charset.as_bytes(), collation.as_bytes());
        session.stands_at(&names, |name| {
            assert_eq!(name, collation.to_ascii_lowercase().as_bytes());
            described.map(text)
        })
    };
    let own = "UTF8MB4_general_ci";
    assert!(names(&session, "utf8mb4", own, Some("255")));
    assert!(!names(&session, "utf8mb4", own, Some("45")));
    assert!(!names(&session, "utf8mb4", own, None));
    assert!(!names(&session, "latin1", own, Some("255")));
    assert!(!names(&session, "utf8mb4", "utf8mb4_bin", Some("255")));
    session.results_collation = None;
    assert!(!names(&session, "utf8mb4", own, None));
    session.results_collation = Some(text("255"));
    session.put(b"character_set_results", b"latin1");
    assert!(!names(&session, "utf8mb4", own, Some("255")));
}

#[test]
fn results_in_another_charset_are_not_in_the_collation_of_before() {
    let mut session = utf8("a");
    session.put(b"character_set_results", b"utf8mb4");
    session.results_collation = Some(text("utf8mb4_bin"));
    session.set(b"character_set_results", b"utf8mb4").unwrap();
    assert_eq!(session.results_collation, Some(text("utf8mb4_bin")));
    session.set(b"character_set_results", b"utf16").unwrap();
    assert_eq!(session.results_collation, None);
}
