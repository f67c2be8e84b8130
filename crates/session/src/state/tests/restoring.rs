//! Commands that bring a backend from one session to another, facet by facet, as the bytes that go
//! out.
//!
//! Each row says what is done to a fresh session to make the one that the backend stands in, and
//! the one that it is to get, and writes out the commands.

use super::*;

const MARIADB: Server = Server::MariaDb(101_119);
const MYSQL: Server = Server::MySql(90_704);

fn put(name: &'static str, value: &'static str) -> impl Fn(&mut Session) {
    move |session| session.set(name.as_bytes(), value.as_bytes()).unwrap()
}

fn user(name: &'static str, literal: &'static str) -> impl Fn(&mut Session) {
    move |session| set_user(session, name, literal)
}

fn schema(name: &'static str) -> impl Fn(&mut Session) {
    move |session| session.use_schema((!name.is_empty()).then(|| text(name)))
}

fn same(_: &mut Session) {}

/// Sessions that begin under these global values.
fn defaults(values: &[(&str, Option<&str>)]) -> GlobalDefaults {
    let names = values.iter().map(|(name, _)| text(name)).collect();
    let values = values.iter().map(|(_, value)| value.map(text)).collect();
    GlobalDefaults::named(names)
        .with(values, Text::default())
        .unwrap()
}

macro_rules! restores {
    ($($name:ident on $server:expr,
        from [$($from:expr),*], to [$($to:expr),*]: $commands:expr;)*) => {$(
        #[test]
        fn $name() {
            #[allow(unused_mut)]
            let (mut from, mut to) = (utf8("a"), utf8("a"));
            $($from(&mut from);)*
            $($to(&mut to);)*
            let expected: &[&str] = &$commands;
            assert_eq!(commands_on($server, &from, &to, None), expected);
        }
    )*};
}

restores! {
    a_number_is_written_bare on MARIADB, from [same], to [put("net_read_timeout", "100")]:
        ["03 SET net_read_timeout=100"];
    a_limit_of_joins_sets_big_selects_too on MARIADB,
        from [same], to [put("max_join_size", "100")]:
        ["03 SET max_join_size=100,sql_big_selects='OFF'"];
    big_selects_stand_behind_the_limit_of_joins on MARIADB,
        from [put("sql_big_selects", "ON")],
        to [put("max_join_size", "100"), put("sql_big_selects", "ON")]:
        ["03 SET max_join_size=100,sql_big_selects='ON'"];
    a_limit_of_joins_that_goes_sets_big_selects_too on MARIADB,
        from [put("max_join_size", "100")], to [put("sql_big_selects", "OFF")]:
        ["03 SET max_join_size=DEFAULT,sql_big_selects='OFF'"];
    no_limit_of_joins_sets_big_selects_too on MARIADB,
        from [put("sql_big_selects", "OFF")],
        to [put("max_join_size", "18446744073709551615")]:
        ["03 SET max_join_size=18446744073709551615,sql_big_selects='ON'"];
    both_go_to_what_they_began_with on MARIADB, from [put("max_join_size", "100")], to [same]:
        ["03 SET max_join_size=DEFAULT,sql_big_selects=DEFAULT"];
    a_variable_of_two_names_is_set_by_the_last on MARIADB,
        from [put("storage_engine", "Aria")],
        to [put("default_storage_engine", "MEMORY"), put("storage_engine", "MyISAM")]:
        ["03 SET storage_engine='MyISAM'"];
    a_variable_is_not_put_back_by_its_other_name on MARIADB,
        from [put("tmp_table_size", "98304")], to [put("tmp_memory_table_size", "65536")]:
        ["03 SET tmp_memory_table_size=65536"];
    a_variable_of_two_names_is_put_back_by_one on MARIADB,
        from [put("alter_algorithm", "COPY"), put("old_alter_table", "INPLACE")], to [same]:
        ["03 SET old_alter_table=DEFAULT"];
    a_negative_number_is_written_bare on MARIADB, from [same], to [put("x", "-7")]:
        ["03 SET x=-7"];
    a_fraction_is_written_bare on MARIADB, from [same], to [put("long_query_time", "0.250000")]:
        ["03 SET long_query_time=0.250000"];
    a_word_is_quoted on MARIADB, from [same], to [put("autocommit", "OFF")]:
        ["03 SET autocommit='OFF'"];
    a_quote_goes_by_its_bytes on MARIADB, from [same], to [put("init_text", "a'b")]:
        ["03 SET init_text=_utf8mb4 x'612762'"];
    an_empty_text_is_two_quotes on MARIADB,
        from [put("sql_mode", "ANSI")], to [put("sql_mode", "")]:
        ["03 SET sql_mode=''"];
    a_digit_text_stays_a_text on MARIADB, from [same], to [put("innodb_tmpdir", "12")]:
        ["03 SET innodb_tmpdir='12'"];
    no_results_charset_is_null on MARIADB,
        from [put("character_set_results", "latin1")], to [put("character_set_results", "")]:
        ["03 SET character_set_client='utf8mb4',character_set_connection='utf8mb4',\
          character_set_results=NULL,collation_connection='utf8mb4_general_ci'"];
    an_engine_that_is_none_is_null on MARIADB,
        from [put("default_tmp_storage_engine", "MEMORY")],
        to [put("default_tmp_storage_engine", "")]:
        ["03 SET default_tmp_storage_engine=NULL"];
    no_time_of_history_is_the_default on MARIADB,
        from [put("system_versioning_asof", "2030-01-01 00:00:00.000000")],
        to [put("system_versioning_asof", "DEFAULT")]:
        ["03 SET system_versioning_asof=DEFAULT"];
    another_text_may_be_that_word on MARIADB,
        from [same], to [put("default_master_connection", "DEFAULT")]:
        ["03 SET default_master_connection='DEFAULT'"];
    a_variable_that_both_have_is_not_written on MARIADB,
        from [put("time_zone", "UTC"), put("sql_notes", "OFF")],
        to [put("time_zone", "UTC")]:
        ["03 SET sql_notes=DEFAULT"];
    a_variable_with_another_value_is_written_once on MARIADB,
        from [put("time_zone", "UTC")], to [put("time_zone", "+01:00")]:
        ["03 SET time_zone='+01:00'"];
    one_more_charset_variable_brings_all_four on MARIADB,
        from [same], to [put("collation_connection", "utf8mb4_bin")]:
        ["03 SET character_set_client='utf8mb4',character_set_connection='utf8mb4',\
          character_set_results='utf8mb4',collation_connection='utf8mb4_bin'"];
    a_charset_that_was_set_last_is_set_alone on MYSQL,
        from [put("collation_server", "latin1_bin")], to [put("character_set_server", "greek")]:
        ["03 SET character_set_server='greek'"];
    a_collation_that_was_set_last_is_set_alone on MYSQL,
        from [put("character_set_server", "greek")], to [put("collation_server", "latin1_bin")]:
        ["03 SET collation_server='latin1_bin'"];
    a_charset_is_set_where_its_collation_is_another_one on MYSQL,
        from [put("character_set_server", "greek"), put("collation_server", "greek_bin")],
        to [put("character_set_server", "greek")]:
        ["03 SET character_set_server='greek'"];
    a_charset_comes_back_with_its_collation on MYSQL,
        from [put("character_set_server", "greek")], to [same]:
        ["03 SET collation_server=DEFAULT"];
    foreign_key_checks_come_back_from_the_global on MYSQL,
        from [put("foreign_key_checks", "OFF")], to [same]:
        ["03 SET foreign_key_checks=@@GLOBAL.foreign_key_checks"];
    a_thread_number_comes_back_to_its_backend on MYSQL,
        from [put("pseudo_thread_id", "9"), put("sql_notes", "OFF")], to [same]:
        ["03 SET pseudo_thread_id=77,sql_notes=DEFAULT"];
    the_schema_goes_out_by_its_command on MARIADB, from [same], to [schema("b")]:
        ["02 b"];
    a_schema_where_there_was_none_goes_out on MARIADB, from [schema("")], to [schema("b")]:
        ["02 b"];
    the_set_stands_in_front_of_the_schema on MARIADB,
        from [same], to [schema("b"), put("sql_notes", "OFF")]:
        ["03 SET sql_notes='OFF'", "02 b"];
    a_schema_with_another_charset_stands_in_front_of_the_set on MYSQL,
        from [same], to [schema("b"), put("character_set_database", "latin1")]:
        ["02 b", "03 SET character_set_database='latin1'"];
    a_schema_brings_its_own_charset_back on MYSQL,
        from [put("character_set_database", "latin1")], to [same]:
        ["02 a"];
    a_schema_with_the_same_odd_charset_stands on MYSQL,
        from [put("collation_database", "latin1_bin")],
        to [put("collation_database", "latin1_bin")]:
        [];
    several_statements_are_allowed_by_an_option on MARIADB,
        from [same], to [|s: &mut Session| s.multi_statements = true]:
        ["1b \0\0"];
    the_option_stands_between_set_and_schema on MARIADB,
        from [|s: &mut Session| s.multi_statements = true],
        to [schema("b"), put("sql_notes", "OFF")]:
        ["03 SET sql_notes='OFF'", "1b \u{1}\0", "02 b"];
    a_user_variable_is_set on MARIADB, from [same], to [user("v", "_utf8mb4 x'61'")]:
        ["03 SET @`v`=_utf8mb4 x'61'"];
    a_user_variable_with_another_value_is_set_alone on MARIADB,
        from [user("v", "1"), user("w", "2")], to [user("v", "3"), user("w", "2")]:
        ["03 SET @`v`=3"];
    a_back_quote_in_a_name_is_doubled on MARIADB, from [same], to [user("v`w", "1")]:
        ["03 SET @`v``w`=1"];
    an_unset_user_variable_is_a_binary_null on MARIADB, from [user("v", "1")], to [same]:
        ["03 SET @`v`=_binary x'',@`v`=NULL"];
    an_unset_user_variable_is_a_number_where_places_give_types on Server::MySql(80_022),
        from [user("v", "1")], to [same]:
        ["03 SET @`v`=0,@`v`=NULL"];
    an_unset_user_variable_is_binary_before_that on Server::MySql(80_021),
        from [user("v", "1")], to [same]:
        ["03 SET @`v`=_binary x'',@`v`=NULL"];
    a_name_with_a_blank_at_its_end_writes_all on MARIADB,
        from [user("v", "1"), user("w", "2")], to [user("v", "1"), user("w", "2"), user("v ", "3")]:
        ["03 SET @`v`=1,@`v `=3,@`w`=2"];
    variables_of_both_kinds_go_in_one_set on MARIADB,
        from [user("v", "1")], to [put("sql_notes", "OFF"), user("w", "2")]:
        ["03 SET sql_notes='OFF',@`v`=_binary x'',@`v`=NULL,@`w`=2"];
    a_role_is_no_matter_of_this_set on MARIADB,
        from [same], to [|s: &mut Session| s.role = Some(text("`app`"))]:
        [];
    what_a_client_is_told_is_no_matter_of_its_backend on MARIADB,
        from [same], to [|s: &mut Session| s.releases = true]:
        [];
    results_in_a_numbered_collation_bring_all_four on MARIADB,
        from [same], to [|s: &mut Session| s.results_collation = Some(text("45"))]:
        ["03 SET character_set_client='utf8mb4',character_set_connection='utf8mb4',\
          character_set_results=45,collation_connection='utf8mb4_general_ci'"];
    set_names_sets_the_client_of_the_same_charset_too on MARIADB,
        from [same], to [|s: &mut Session| s.results_collation = Some(text("utf8mb4_bin"))]:
        ["03 SET NAMES 'utf8mb4' COLLATE 'utf8mb4_bin',character_set_connection='utf8mb4',\
          collation_connection='utf8mb4_general_ci'"];
    set_names_leaves_a_client_of_another_charset_to_be_set on MARIADB,
        from [same],
        to [put("character_set_client", "latin1"),
            |s: &mut Session| s.results_collation = Some(text("utf8mb4_bin"))]:
        ["03 SET NAMES 'utf8mb4' COLLATE 'utf8mb4_bin',character_set_client='latin1',\
          character_set_connection='utf8mb4',collation_connection='utf8mb4_general_ci'"];
    a_schema_beyond_ascii_goes_first_where_utf8_is_read on MARIADB,
        from [same], to [schema("\u{e9}"), put("sql_notes", "OFF")]:
        ["02 \u{e9}", "03 SET sql_notes='OFF'"];
    a_schema_beyond_ascii_waits_for_utf8 on MARIADB,
        from [put("character_set_client", "latin1")],
        to [put("character_set_client", "latin1"), schema("\u{e9}")]:
        ["03 SET character_set_client=utf8mb4", "02 \u{e9}",
         "03 SET character_set_client='latin1',character_set_connection='utf8mb4',\
          character_set_results='utf8mb4',collation_connection='utf8mb4_general_ci'"];
}

#[test]
fn the_insert_id_is_the_last_of_the_set() {
    let mut to = utf8("a");
    set_user(&mut to, "v", "1");
    to.put(b"sql_notes", b"OFF");
    let found = commands(&utf8("a"), &to, Some(u64::MAX));
    let id = "last_insert_id=18446744073709551615";
    assert_eq!(found, [format!("03 SET sql_notes='OFF',@`v`=1,{id}")]);
    assert_eq!(
        commands(&utf8("a"), &utf8("a"), Some(0)),
        ["03 SET last_insert_id=0"]
    );
}

/// A session that began under some values, with changes.
fn under(defaults: &GlobalDefaults, changes: &[(&str, &str)]) -> Session {
    let charsets = ["utf8mb4", "utf8mb4", "utf8mb4", "utf8mb4_general_ci"].map(text);
    let mut session = Session::at_login(b"a", false, &charsets, defaults);
    for (name, value) in changes {
        session.put(name.as_bytes(), value.as_bytes());
    }
    session
}

#[test]
fn what_began_under_a_known_value_gets_that_back() {
    let known = defaults(&[("sql_notes", Some("ON")), ("time_zone", Some("SYSTEM"))]);
    let changed = under(&known, &[("sql_notes", "OFF"), ("time_zone", "UTC")]);
    assert_eq!(
        commands(&changed, &under(&known, &[]), None),
        ["03 SET sql_notes='ON',time_zone='SYSTEM'"]
    );
}

#[test]
fn a_known_value_that_is_empty_null_or_odd_comes_back_by_default() {
    let known = defaults(&[
        ("a", Some("")),
        ("b", None),
        ("c", Some("it's")),
        ("foreign_key_checks", Some("")),
    ]);
    let names = ["a", "b", "c", "foreign_key_checks"];
    let changed = under(&known, &names.map(|name| (name, "1")));
    assert_eq!(
        commands(&changed, &under(&known, &[]), None),
        ["03 SET a=DEFAULT,b=DEFAULT,c=DEFAULT,\
          foreign_key_checks=@@GLOBAL.foreign_key_checks"]
    );
}

#[test]
fn sessions_that_began_under_different_values_are_made_alike() {
    let old = defaults(&[("sql_notes", Some("ON")), ("wait_timeout", Some("5"))]);
    let values = ["OFF", "5"].map(|value| Some(text(value)));
    let new = old.with(values.into(), Text::default()).unwrap();
    let (from, to) = (under(&old, &[]), under(&new, &[]));
    assert!(from.variables_differ(&to) && from != to);
    assert_eq!(commands(&from, &to, None), ["03 SET sql_notes='OFF'"]);
    assert_eq!(commands(&to, &from, None), ["03 SET sql_notes='ON'"]);
    let own = under(&new, &[("sql_notes", "ON")]);
    assert_eq!(
        commands(&from, &own, None),
        ["03 SET sql_notes='ON'"],
        "its own value counts, not what it began under"
    );
}

#[test]
fn a_variable_of_two_names_is_written_under_the_one_that_it_has() {
    let old = defaults(&[
        ("long_query_time", Some("1")),
        ("tx_isolation", Some("READ-COMMITTED")),
    ]);
    let values = ["2", "SERIALIZABLE"].map(|value| Some(text(value)));
    let new = old.with(values.into(), Text::default()).unwrap();
    let to = under(&new, &[("log_slow_query_time", "7")]);
    assert_eq!(
        commands(&under(&old, &[]), &to, None),
        ["03 SET log_slow_query_time=7,tx_isolation='SERIALIZABLE'"]
    );
}

#[test]
fn as_text_the_set_and_the_schema_stand_in_front_of_the_statement() {
    let on = On {
        form: Form::Plain,
        server: MARIADB,
        thread: 77,
    };
    let mut to = utf8("b-1$x_");
    to.put(b"sql_notes", b"OFF");
    let said = |from: &Session, to: &Session, id| {
        let (sql, count) = restore_as_text((from, to), id, on)?;
        Some((String::from_utf8(sql).unwrap(), count))
    };
    let said_to = |to: &Session| said(&utf8("a"), to, None);
    let whole = "SET sql_notes='OFF';USE `b-1$x_`;";
    assert_eq!(said_to(&to), Some((whole.into(), 2)));
    assert_eq!(said_to(&utf8("a")), Some((String::new(), 0)));
    assert_eq!(said_to(&utf8("b")), Some(("USE `b`;".into(), 1)));
    let id = "SET last_insert_id=3;".to_string();
    assert_eq!(said(&utf8("a"), &utf8("a"), Some(3)), Some((id, 1)));
    // Not these: what a quote could end, letters that a character set changes, another order.
    for name in ["b`c", "b c", "b;c", "\u{e9}"] {
        assert_eq!(said_to(&utf8(name)), None, "{name}");
    }
    let mut odd = utf8("b");
    odd.put(b"character_set_database", b"latin1");
    assert_eq!(said_to(&odd), None);
}

#[test]
fn a_schema_cannot_be_taken_away_and_no_command_tries() {
    assert!(!can_restore(&utf8("a"), &utf8("")));
    assert!(can_restore(&utf8(""), &utf8("")));
    assert_eq!(utf8("a").schema_to_set(&utf8("")), None);
    let found = commands(&utf8("a"), &utf8(""), None);
    assert!(found.is_empty(), "{found:?}");
}

/// The SET's names, there and back again, are those that differ.
#[test]
fn the_set_names_each_differing_variable_and_no_other() {
    let known = defaults(&[("sql_notes", Some("ON")), ("sql_warnings", Some("ON"))]);
    let values = ["OFF", "ON"].map(|value| Some(text(value)));
    let newer = known.with(values.into(), Text::default()).unwrap();
    let from = under(&known, &[("time_zone", "UTC"), ("net_read_timeout", "1")]);
    let to = under(&newer, &[("time_zone", "UTC"), ("lc_time_names", "de_DE")]);
    for (from, to) in [(&from, &to), (&to, &from)] {
        let mut differing: Vec<String> = from
            .differing_variables(to)
            .map(|name| String::from_utf8(name.to_vec()).unwrap())
            .collect();
        let found = commands(from, to, None).concat();
        let set = found.strip_prefix("03 SET ").unwrap();
        let mut set: Vec<&str> = set
            .split(',')
            .map(|one| one.split('=').next().unwrap())
            .collect();
        differing.sort();
        set.sort_unstable();
        assert_eq!(set, differing);
        assert_eq!(set, ["lc_time_names", "net_read_timeout", "sql_notes"]);
    }
}

/// `SET timestamp = 8640837.657897` is a microsecond less to MariaDB 10.11, and exact to MySQL 9.7,
/// which would round half of one up.
#[test]
fn the_microseconds_of_a_clock_come_back_on_each_server() {
    let from = Session::default();
    let mut to = from.clone();
    to.put(CLOCK, b"8640837.657897");
    for (server, set) in [
        (Server::MariaDb(101_119), "SET timestamp=8640837.6578975"),
        (Server::MySql(90_700), "SET timestamp=8640837.657897"),
    ] {
        let on = On {
            form: Form::Plain,
            server,
            thread: 0,
        };
        let mut out = Vec::new();
        restore(&mut out, on, (&from, &to), None);
        assert!(out.ends_with(set.as_bytes()), "{out:?}");
    }
    to.put(CLOCK, b"8640837");
    let found = commands(&from, &to, None).concat();
    assert!(found.ends_with("timestamp=8640837"), "{found}");
}
