//! Differences between sessions, and the commands that they are.

use super::written::{Literal, literal_of};
use super::*;
use crate::meter::Meter;

fn text(s: &str) -> Text {
    s.as_bytes().into()
}

fn utf8(schema: &str) -> Session {
    let charsets = ["utf8mb4", "utf8mb4", "utf8mb4", "utf8mb4_general_ci"].map(text);
    Session::at_login(
        schema.as_bytes(),
        false,
        &charsets,
        &GlobalDefaults::default(),
    )
}

/// The texts of the restoring commands, each with its command byte as a number.
fn commands(from: &Session, to: &Session, insert_id: Option<u64>) -> Vec<String> {
    commands_on(Server::MariaDb(101_119), from, to, insert_id)
}

fn commands_on(
    server: Server,
    from: &Session,
    to: &Session,
    insert_id: Option<u64>,
) -> Vec<String> {
    let on = On {
        form: Form::Plain,
        server,
        thread: 77,
    };
    let mut out = Vec::new();
    let count = restore(&mut out, on, (from, to), insert_id);
    let mut found = Vec::new();
    let mut rest = &out[..];
    while let wire::packet::Frame::Whole { total, .. } = wire::packet::frame(rest) {
        let text = String::from_utf8_lossy(&rest[5..total]);
        found.push(format!("{:02x} {text}", rest[4]));
        rest = &rest[total..];
        if rest.is_empty() {
            break;
        }
    }
    assert_eq!(found.len(), count);
    found
}

fn set_user(session: &mut Session, name: &str, literal: &str) {
    let change = (text(name), literal.as_bytes().to_vec());
    let changed = session.user_variables().with(&[change], &Meter::default());
    session.set_user_variables(changed);
}

#[test]
fn equal_sessions_need_nothing() {
    assert!(commands(&utf8("a"), &utf8("a"), None).is_empty());
}

#[test]
fn one_set_carries_every_variable_and_defaults_come_back() {
    let mut from = utf8("a");
    from.set(b"sql_safe_updates", b"ON").unwrap();
    let mut to = utf8("b");
    to.set(b"time_zone", b"+02:00").unwrap();
    to.set(b"net_read_timeout", b"100").unwrap();
    assert_eq!(
        commands(&from, &to, Some(7)),
        [
            "03 SET net_read_timeout=100,time_zone='+02:00',sql_safe_updates=DEFAULT,\
             last_insert_id=7",
            "02 b"
        ]
    );
}

#[test]
fn what_default_does_not_bring_back_is_taken_from_the_global_value() {
    let mut from = utf8("a");
    from.set(b"foreign_key_checks", b"OFF").unwrap();
    from.set(b"sql_notes", b"OFF").unwrap();
    from.set(b"unique_checks", b"OFF").unwrap();
    assert_eq!(
        commands(&from, &utf8("a"), None),
        [
            "03 SET foreign_key_checks=@@GLOBAL.foreign_key_checks,sql_notes=DEFAULT,\
             unique_checks=@@GLOBAL.unique_checks"
        ]
    );
}

#[test]
fn user_variables_are_set_and_those_of_others_are_none() {
    let mut from = utf8("a");
    set_user(&mut from, "x", "1");
    set_user(&mut from, "same", "2");
    let mut to = utf8("a");
    set_user(&mut to, "same", "2");
    set_user(&mut to, "b", "1.50");
    set_user(&mut to, "c", "");
    assert!(!from.variables_differ(&to));
    assert_eq!(
        commands(&from, &to, None),
        ["03 SET @`x`=_binary x'',@`x`=NULL,@`b`=1.50"]
    );
    assert_eq!(
        commands_on(Server::MySql(90_704), &from, &to, None),
        ["03 SET @`x`=0,@`x`=NULL,@`b`=1.50"]
    );
    assert_eq!(
        commands_on(Server::MySql(50_744), &from, &to, None),
        ["03 SET @`x`=_binary x'',@`x`=NULL,@`b`=1.50"]
    );
}

#[test]
fn user_variables_are_set_and_taken_away_in_no_more_sql_than_is_said() {
    let none = utf8("a");
    for (name, literal) in [("x", "1"), ("``````````", "'text'"), ("n", "0,@`n`=NULL")] {
        let mut some = utf8("a");
        set_user(&mut some, name, literal);
        let max = some.user_variables().sql_len_max();
        for (from, to) in [(&none, &some), (&some, &none)] {
            let [command] = &commands(from, to, None)[..] else {
                panic!("one command");
            };
            assert!(command.len() - "03 ".len() <= max, "{command}: {max}");
        }
    }
}

#[test]
fn the_collation_follows_its_character_set() {
    let from = utf8("a");
    let mut to = utf8("a");
    to.set(b"character_set_connection", b"latin1").unwrap();
    to.set(b"character_set_results", b"").unwrap();
    assert_eq!(
        commands(&from, &to, None),
        [
            "03 SET character_set_client='utf8mb4',character_set_connection='latin1',\
          character_set_results=NULL,collation_connection='utf8mb4_general_ci'"
        ]
    );
}

#[test]
fn results_are_described_in_the_same_collation() {
    let in_collation = |collation: Option<&str>| {
        let mut session = utf8("a");
        session.results_collation = collation.map(text);
        session
    };
    let (from, to) = (in_collation(Some("45")), in_collation(Some("255")));
    assert!(from.variables_differ(&to));
    let restores = |results: &str| {
        format!(
            "03 SET character_set_client='utf8mb4',character_set_connection='utf8mb4',\
             character_set_results={results},collation_connection='utf8mb4_general_ci'"
        )
    };
    assert_eq!(commands(&from, &to, None), [restores("255")]);
    assert_eq!(
        commands(&from, &in_collation(None), None),
        [restores("'utf8mb4'")]
    );
    let mut none = in_collation(Some("255"));
    none.set(b"character_set_results", b"").unwrap();
    assert_eq!(commands(&from, &none, None), [restores("NULL")]);
    assert!(commands(&from, &in_collation(Some("45")), None).is_empty());
    // Where the variable takes no number, SET NAMES takes the name.
    let to = in_collation(Some("utf8mb4_bin"));
    assert_eq!(
        commands(&in_collation(None), &to, None),
        ["03 SET NAMES 'utf8mb4' COLLATE 'utf8mb4_bin',\
             character_set_connection='utf8mb4',collation_connection='utf8mb4_general_ci'"]
    );
}

#[test]
fn multi_statements_are_an_option_of_the_session() {
    let mut to = utf8("a");
    to.multi_statements = true;
    assert_eq!(commands(&utf8("a"), &to, None), ["1b \0\0"]);
    assert_eq!(commands(&to, &utf8("a"), None), ["1b \u{1}\0"]);
}

#[test]
fn a_default_schema_cannot_be_taken_away() {
    assert!(can_restore(&utf8(""), &utf8("a")));
    assert!(can_restore(&utf8("a"), &utf8("b")));
    assert!(!can_restore(&utf8("a"), &utf8("")));
}

#[test]
fn every_value_can_be_written_back() {
    let mut session = utf8("");
    assert_eq!(session.set(b"bad name", b"1"), Err(NotRestorable));
    for (value, literal) in [
        ("it's", "_utf8mb4 x'69742773'"),
        ("b\\s", "_utf8mb4 x'625c73'"),
        ("\u{e9}\t", "_utf8mb4 x'c3a909'"),
        ("plain", "'plain'"),
        ("12", "12"),
        ("", "''"),
    ] {
        session.set(b"init_text", value.as_bytes()).unwrap();
        let set = format!("03 SET init_text={literal}");
        assert_eq!(commands(&utf8(""), &session, None), [set]);
    }
    let mut others = utf8("");
    others.set(b"default_master_connection", b"12").unwrap();
    others.set(b"innodb_tmpdir", b"").unwrap();
    others.set(b"insert_id", b"5").unwrap();
    assert_eq!(
        commands(&utf8(""), &others, None),
        ["03 SET default_master_connection='12',innodb_tmpdir=NULL"]
    );
    assert_eq!(literal_of(b"x", b"-1.5"), Literal::Number);
    assert_eq!(literal_of(b"x", b"1.2.3"), Literal::Quoted);
}

#[test]
fn a_backend_gets_its_own_number_back() {
    let mut from = utf8("");
    from.set(b"pseudo_thread_id", b"5").unwrap();
    assert_eq!(
        commands(&from, &utf8(""), None),
        ["03 SET pseudo_thread_id=77"]
    );
}

#[test]
fn names_beyond_ascii_are_written_where_the_server_reads_utf8() {
    let mut to = utf8("\u{e9}");
    to.set(b"time_zone", b"+01:00").unwrap();
    let plain = ["02 \u{e9}", "03 SET time_zone='+01:00'"];
    assert_eq!(commands(&utf8("a"), &to, None), plain);
    let mut latin1 = utf8("a");
    latin1.set(b"character_set_client", b"latin1").unwrap();
    assert_eq!(
        commands(&latin1, &utf8("\u{e9}"), None),
        ["03 SET character_set_client=utf8mb4", "02 \u{e9}"]
    );
    // One that begins anew keeps its schema, and not the character set of it.
    let mut renewed = utf8("\u{e9}");
    renewed.set(b"character_set_database", b"latin1").unwrap();
    let mut to = utf8("\u{e9}");
    to.set(b"character_set_client", b"latin1").unwrap();
    assert_eq!(commands(&renewed, &to, None)[0], "02 \u{e9}");
    // The character set that the session is to have comes last.
    let mut to = latin1.clone();
    set_user(&mut to, "\u{e9}`", "1");
    let found = commands(&latin1, &to, None);
    assert_eq!(found[0], "03 SET character_set_client=utf8mb4");
    assert!(found[1].starts_with("03 SET character_set_client='latin1'"));
    assert!(found[1].ends_with(",@`\u{e9}```=1"), "{found:?}");
    // What one server takes for two variables is one on another: all are written.
    let mut from = utf8("");
    set_user(&mut from, "\u{e9}", "1");
    set_user(&mut from, "\u{c9}", "1");
    let mut to = utf8("");
    set_user(&mut to, "\u{e9}", "1");
    let null = "_binary x'',@`\u{c9}`=NULL";
    assert_eq!(
        commands(&from, &to, None),
        [format!("03 SET @`\u{c9}`={null},@`\u{e9}`=1")]
    );
}

#[test]
fn what_commit_does_is_known_of_the_session() {
    let mut session = utf8("");
    session.set(b"completion_type", b"RELEASE").unwrap();
    assert!(session.releases);
    session.set(b"completion_type", b"CHAIN").unwrap();
    assert!(!session.releases);
}

#[test]
fn equal_sessions_are_one_object_and_unused_ones_go() {
    let mut interner = Interner::default();
    let a = interner.intern(utf8("a"));
    assert!(Rc::ptr_eq(&a, &interner.intern(utf8("a"))));
    for i in 0..1000 {
        interner.intern(utf8(&i.to_string()));
    }
    assert!(interner.sessions.len() <= 128);
    assert!(Rc::ptr_eq(&a, &interner.intern(utf8("a"))));
}

#[test]
fn ignore_space_stands_where_servers_list_it() {
    let after = |default: &str| {
        let mut session = utf8("");
        session.ignore_space(default);
        let value = session.variable(b"sql_mode");
        value.map(|value| String::from_utf8_lossy(value).into_owned())
    };
    assert_eq!(after("").as_deref(), Some("IGNORE_SPACE"));
    let ansi = "REAL_AS_FLOAT,ANSI_QUOTES,IGNORE_SPACE,STRICT_ALL_TABLES";
    assert_eq!(
        after("REAL_AS_FLOAT,ANSI_QUOTES,STRICT_ALL_TABLES").as_deref(),
        Some(ansi)
    );
    assert_eq!(after(ansi), None);
}

#[test]
fn sql_modes_are_found_by_word() {
    let mut session = utf8("");
    session
        .set(b"sql_mode", b"STRICT_ALL_TABLES,ANSI_QUOTES")
        .unwrap();
    assert!(session.sql_mode_has("ansi_quotes"));
    assert!(!session.sql_mode_has("ANSI"));
}

#[test]
fn how_texts_are_cut_follows_the_session_and_not_its_copy() {
    let server = Server::MariaDb(101_119);
    let mut session = utf8("a");
    let cut = |session: &Session| session.lex_mode("IGNORE_SPACE", server);
    assert!(cut(&session).ignore_space && !cut(&session).ansi_quotes);
    session
        .set(b"sql_mode", b"ANSI_QUOTES,NO_BACKSLASH_ESCAPES")
        .unwrap();
    let mode = cut(&session);
    assert!(mode.ansi_quotes && mode.no_backslash_escapes && !mode.ignore_space);
    assert_eq!(mode.charset, Charset::Utf8);
    let mut copy = session.clone();
    copy.set(b"sql_mode", b"").unwrap();
    copy.set(b"character_set_client", b"gbk").unwrap();
    assert!(!cut(&copy).ansi_quotes && !cut(&copy).ignore_space);
    assert_eq!(cut(&copy).charset, Charset::of_name(b"gbk"));
    assert_eq!(cut(&session), mode);
    assert_eq!(session, session.clone(), "what is noted is no part of it");
}

mod facts;
mod restoring;
