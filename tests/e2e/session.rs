//! Two clients with different session states share one backend, and neither can tell.

use crate::compare::{Story, same, same_on_both};
use crate::metrics::{figures, place_of, until};
use crate::world::{app, both_servers, direct, fresh_schema, login, server, start_pool, through};
use testkit::reply::Outcome;
use wire::capabilities as cap;
use wire::command::Command;

/// Two clients take turns: each runs its own statements, then both look at `probe`, twice.
fn interleaved(story: &mut Story, first: &[&str], second: &[&str], probe: &str) {
    let (a, b) = (story.join(), story.join());
    story.sql(a, probe);
    story.sql(b, probe);
    for (one, other) in first.iter().zip(second) {
        story.sql(a, one);
        story.sql(b, other);
        story.sql(a, probe);
        story.sql(b, probe);
    }
    story.sql(b, probe);
    story.sql(a, probe);
}

#[test]
fn each_client_keeps_its_schema() {
    same("keeps_schema", 1, |story| {
        story.client_setup();
        interleaved(
            story,
            &["USE shop", "USE keeps_schema"],
            &["USE mysql", "USE nowhere"],
            "SELECT DATABASE()",
        );
        let none = story.join_as(&app());
        story.sql(none, "SELECT DATABASE()");
        story.sql(0, "SELECT DATABASE()");
        story.sql(none, "SELECT DATABASE()");
        story.sql(none, "SELECT * FROM here");
        story.sql(0, "SELECT * FROM here");
    });
}

#[test]
fn a_dropped_schema_is_no_longer_the_clients() {
    same("drops_schema", 1, |story| {
        let (a, b) = (story.join(), story.join());
        story.sql(a, "CREATE OR REPLACE DATABASE drops_schema_too");
        story.sql(a, "USE drops_schema_too");
        story.sql(b, "SELECT DATABASE()");
        story.sql(a, "DROP DATABASE drops_schema_too");
        story.sql(a, "SELECT DATABASE()");
        story.sql(b, "SELECT DATABASE()");
        story.sql(a, "SELECT 1 FROM t");
        story.sql(a, "USE drops_schema");
        story.sql(a, "SELECT DATABASE()");
    });
}

#[test]
fn each_client_keeps_its_character_sets() {
    let probe = "SELECT @@character_set_client, @@character_set_connection, \
                 @@character_set_results, @@collation_connection, HEX('\u{e9}')";
    same("keeps_charsets", 1, |story| {
        interleaved(
            story,
            &[
                "SET NAMES latin1",
                "SET NAMES utf8mb4 COLLATE utf8mb4_unicode_ci",
            ],
            &[
                "SET NAMES utf8mb4 COLLATE utf8mb4_bin",
                "SET collation_connection = utf8mb4_general_ci",
            ],
            probe,
        );
        story.all(0, &["SET character_set_results = NULL", probe]);
        story.all(1, &[probe, "SET CHARACTER SET latin1", probe]);
        story.all(0, &[probe, "SET NAMES DEFAULT", probe]);
    });
}

#[test]
fn each_client_keeps_the_collation_it_logged_in_with() {
    same("login_collation", 1, |story| {
        let probe = "SELECT @@collation_connection, @@character_set_results";
        for collation in [45, 8, 33, 46, 63, 224, 45] {
            let mut account = app();
            account.collation = collation;
            let who = story.join_as(&account);
            story.sql(who, probe);
            story.sql(0, probe);
        }
        for who in (0..7).rev() {
            story.sql(who, probe);
        }
    });
}

#[test]
fn each_client_keeps_its_variables() {
    let cases = [
        ("sql_mode", "'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'", "''"),
        ("time_zone", "'+05:00'", "'-03:00'"),
        ("group_concat_max_len", "5", "4096"),
        ("max_join_size", "1000", "DEFAULT"),
        ("sql_select_limit", "1", "DEFAULT"),
        ("foreign_key_checks", "0", "1"),
        ("lc_time_names", "'de_DE'", "'fr_FR'"),
        ("innodb_lock_wait_timeout", "3", "7"),
        ("div_precision_increment", "9", "0"),
        ("optimizer_switch", "'index_merge=off'", "DEFAULT"),
        ("sql_safe_updates", "1", "0"),
        ("max_statement_time", "2.5", "0"),
        ("wait_timeout", "1000", "2000"),
        ("default_storage_engine", "'Aria'", "DEFAULT"),
        ("auto_increment_increment", "7", "3"),
    ];
    same("keeps_variables", 1, |story| {
        for (name, one, other) in cases {
            interleaved(
                story,
                &[&format!("SET {name} = {one}")],
                &[&format!("SET SESSION {name} = {other}")],
                &format!("SELECT @@{name}"),
            );
        }
    });
}

#[test]
fn variables_do_what_they_say_on_a_shared_backend() {
    same("variables_work", 1, |story| {
        let (a, b) = (story.join(), story.join());
        story.all(
            a,
            &[
                "CREATE TABLE words (w VARCHAR(20))",
                "INSERT INTO words VALUES ('one'), ('two'), ('three')",
                "SET group_concat_max_len = 5, time_zone = '+01:00', sql_mode = 'ANSI_QUOTES'",
            ],
        );
        let probes = [
            "SELECT GROUP_CONCAT(w ORDER BY w) FROM words",
            "SELECT FROM_UNIXTIME(0)",
            "SELECT \"w\" FROM words ORDER BY w",
            "SELECT 'a\\n', 'it''s'",
        ];
        for probe in probes {
            story.sql(a, probe);
            story.sql(b, probe);
        }
        story.sql(b, "SET sql_select_limit = 1");
        story.sql(a, "SELECT w FROM words");
        story.sql(b, "SELECT w FROM words");
        story.sql(b, "SET sql_mode = 'NO_BACKSLASH_ESCAPES'");
        story.sql(a, "SELECT 'a\\n'");
        story.sql(b, "SELECT 'a\\n', '\\'");
        story.sql(a, "SELECT 'a\\n'");
    });
}

#[test]
fn wrong_settings_fail_and_change_nothing() {
    same("wrong_settings", 1, |story| {
        interleaved(
            story,
            &[
                "SET sql_mode = 'NO_SUCH_MODE'",
                "SET no_such_variable = 1",
                "SET time_zone = 'x'",
            ],
            &[
                "SET time_zone = '+02:00'",
                "SET version = 'x'",
                "SET GLOBAL no_such = 1",
            ],
            "SELECT @@sql_mode, @@time_zone",
        );
    });
}

#[test]
fn each_client_keeps_its_isolation_level_and_autocommit() {
    same("keeps_isolation", 1, |story| {
        interleaved(
            story,
            &[
                "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
                "SET tx_isolation = 'READ-COMMITTED'",
                "SET SESSION TRANSACTION READ ONLY",
            ],
            &[
                "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
                "SET autocommit = 1",
                "SET SESSION TRANSACTION READ WRITE",
            ],
            "SELECT @@tx_isolation, @@autocommit, @@tx_read_only",
        );
    });
}

#[test]
fn an_isolation_level_for_one_transaction_lasts_for_one() {
    same("next_isolation", 2, |story| {
        let (a, b) = (story.join(), story.join());
        story.sql(a, "CREATE TABLE t (id INT PRIMARY KEY) ENGINE=InnoDB");
        story.sql(a, "INSERT INTO t VALUES (1)");
        story.sql(a, "SET TRANSACTION READ ONLY");
        story.sql(b, "INSERT INTO t VALUES (2)");
        story.all(a, &["BEGIN", "INSERT INTO t VALUES (3)", "COMMIT"]);
        story.all(a, &["BEGIN", "INSERT INTO t VALUES (4)", "COMMIT"]);
        story.sql(b, "SELECT * FROM t ORDER BY id");
    });
}

#[test]
fn each_client_keeps_its_last_insert_id() {
    same("keeps_insert_id", 1, |story| {
        let (a, b) = (story.join(), story.join());
        story.all(
            a,
            &[
                "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)",
                "CREATE TABLE u (id INT AUTO_INCREMENT PRIMARY KEY, v INT) AUTO_INCREMENT = 1000",
                "SELECT LAST_INSERT_ID()",
                "INSERT INTO t (v) VALUES (1), (2), (3)",
            ],
        );
        story.sql(b, "SELECT LAST_INSERT_ID()");
        story.sql(b, "INSERT INTO u (v) VALUES (1)");
        for who in [a, b, a, b, b, a] {
            story.sql(who, "SELECT LAST_INSERT_ID(), @@last_insert_id, @@identity");
        }
        story.sql(a, "INSERT INTO u (id, v) VALUES (7, LAST_INSERT_ID())");
        story.sql(b, "SELECT LAST_INSERT_ID(), id FROM u ORDER BY id");
        story.sql(a, "SELECT LAST_INSERT_ID(41)");
        story.sql(b, "UPDATE t SET v = LAST_INSERT_ID(v + 100) WHERE id = 2");
        story.sql(a, "SELECT LAST_INSERT_ID()");
        story.sql(b, "SELECT LAST_INSERT_ID()");
        story.sql(a, "INSERT INTO t (v) SELECT v FROM u");
        story.sql(b, "DO 1");
        story.sql(a, "SELECT LAST_INSERT_ID()");
        story.sql(b, "INSERT INTO missing VALUES (1)");
        story.sql(a, "DO 1");
        story.sql(b, "SELECT LAST_INSERT_ID()");
    });
}

#[test]
fn each_client_keeps_its_warnings() {
    same("keeps_warnings", 1, |story| {
        let (a, b) = (story.join(), story.join());
        story.sql(a, "SELECT 1/0");
        story.sql(b, "SELECT CAST('x' AS SIGNED)");
        story.sql(a, "SHOW WARNINGS");
        story.sql(b, "SHOW WARNINGS");
        story.sql(a, "SHOW WARNINGS");
        story.sql(b, "SELECT COUNT(*) FROM mysql.proc WHERE 0");
        story.sql(a, "SELECT * FROM missing");
        story.sql(b, "SELECT 2");
        story.sql(a, "SHOW WARNINGS");
        story.sql(b, "SHOW WARNINGS");
        story.sql(a, "DROP TABLE IF EXISTS no_such, no_such_either");
        story.sql(b, "SELECT 3");
        story.sql(a, "SHOW WARNINGS");
    });
}

#[test]
fn each_client_keeps_its_row_counts() {
    same("keeps_counts", 1, |story| {
        let (a, b) = (story.join(), story.join());
        story.all(
            a,
            &[
                "CREATE TABLE t (v INT)",
                "INSERT INTO t VALUES (1), (2), (3)",
            ],
        );
        story.sql(b, "SELECT * FROM t WHERE v > 1");
        story.sql(a, "SELECT ROW_COUNT()");
        story.sql(b, "SELECT FOUND_ROWS()");
        story.sql(a, "UPDATE t SET v = v + 1");
        story.sql(b, "DELETE FROM t WHERE v = 4");
        story.sql(a, "SELECT ROW_COUNT()");
        story.sql(b, "SELECT ROW_COUNT()");
        story.sql(a, "SELECT ROW_COUNT()");
        story.sql(b, "SELECT FOUND_ROWS()");
    });
}

#[test]
fn rows_are_counted_beyond_a_limit() {
    same("calc_found_rows", 2, |story| {
        let (a, b) = (story.join(), story.join());
        story.all(
            a,
            &[
                "CREATE TABLE t (v INT)",
                "INSERT INTO t VALUES (1), (2), (3)",
            ],
        );
        story.sql(a, "SELECT SQL_CALC_FOUND_ROWS v FROM t LIMIT 1");
        story.sql(b, "SELECT 1");
        story.sql(a, "SELECT FOUND_ROWS()");
        story.sql(b, "SELECT FOUND_ROWS()");
    });
}

/// What only the backend of the statement before could tell is refused once, in words; from then
/// on the client keeps a backend and gets its answers.
#[test]
fn a_question_about_the_statement_before_is_answered_or_refused_but_never_wrong() {
    let Some(real) = server("a_question_about_the_statement_before") else {
        return;
    };
    let way = through(real, 2);
    let account = app().schema("shop");
    for (before, question, answer) in [
        ("SELECT 1/0", "SHOW COUNT(*) WARNINGS", "1"),
        ("SELECT 1/0", "SELECT @@warning_count", "1"),
        ("SELECT seq FROM seq_1_to_3", "SELECT FOUND_ROWS() + 1", "4"),
    ] {
        let (mut one, mut other) = (login(&way, &account), login(&way, &account));
        one.must(before);
        other.must("SELECT 2");
        match &one.query(question).unwrap()[..] {
            [Outcome::Rows(rows)] => assert_eq!(rows.only(), answer, "{question}"),
            [Outcome::Failed(failure)] => {
                assert_eq!(failure.code, 1235, "{question}: {failure}");
                assert!(
                    failure.message.contains("run both statements again"),
                    "{failure}"
                );
            }
            outcomes => panic!("{question}: {outcomes:?}"),
        }
        one.must(before);
        other.must("SELECT 2");
        assert_eq!(one.value(question), answer, "{question}");
    }
}

/// What the pool answers itself has the flags of the session, not those of the statement before.
#[test]
fn flags_of_one_statement_end_with_it() {
    same("statement_flags", 2, |story| {
        let (a, b) = (story.join(), story.join());
        story.all(a, &["CREATE TABLE t (id INT)", "INSERT INTO t VALUES (1)"]);
        story.all(
            a,
            &["SET @x = 1, sql_mode = 'ANSI_QUOTES'", "SELECT id FROM t"],
        );
        story.command(a, Command::SetOption, &[0, 0]);
        story.command(a, Command::Ping, b"");
        story.sql(b, "SET sql_mode = 'ANSI,NO_BACKSLASH_ESCAPES'");
        story.sql(a, "SELECT 1");
        story.command(b, Command::Ping, b"");
        story.command(b, Command::SetOption, &[0, 0]);
    });
}

#[test]
fn what_set_statement_sets_ends_with_the_statement() {
    same("set_statement", 2, |story| {
        let (a, b) = (story.join(), story.join());
        story.sql(
            a,
            "SET STATEMENT sql_mode = 'ANSI_QUOTES' FOR SELECT @@sql_mode",
        );
        story.sql(b, "SET @keeps = 1");
        story.all(a, &["SELECT \"text\", @@sql_mode"]);
        story.sql(b, "SELECT \"text\", @@sql_mode");
    });
}

/// Of `autocommit` MariaDB was found not to report it.
#[test]
fn a_variable_set_without_its_scope_is_the_clients_own() {
    same("without_scope", 2, |story| {
        let (a, b) = (story.join(), story.join());
        story.all(a, &["CREATE TABLE t (x INT)", "SET @@autocommit = OFF"]);
        story.sql(b, "INSERT INTO t VALUES (1)");
        story.sql(a, "SELECT @@autocommit");
        story.sql(b, "SELECT @@autocommit");
        story.sql(a, "SET @@div_precision_increment = 7");
        story.all(b, &["SELECT 1 / 3", "SELECT * FROM t"]);
    });
}

/// What the pool asks for itself has an answer in every session.
#[test]
fn a_session_that_selects_no_rows_is_restored() {
    same("selects_no_rows", 2, |story| {
        let (a, b) = (story.join(), story.join());
        story.all(a, &["CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY)"]);
        story.all(a, &["SET sql_select_limit = 0", "INSERT INTO t VALUES ()"]);
        story.all(b, &["SELECT 1", "SELECT @@sql_select_limit"]);
        story.all(a, &["SET NAMES latin1", "SET sql_select_limit = DEFAULT"]);
        story.all(
            a,
            &["SELECT LAST_INSERT_ID()", "SELECT @@character_set_client"],
        );
    });
}

impl Story {
    /// A table to be found in the story's own schema only.
    fn client_setup(&mut self) {
        let who = self.join();
        self.sql(who, "CREATE TABLE here (x INT)");
        self.sql(who, "INSERT INTO here VALUES (1)");
    }
}

#[test]
fn user_variables_that_are_set_while_others_are_read_back_are_kept() {
    same("pipelined_variables", 2, |story| {
        let (a, b) = (story.join(), story.join());
        let commands: [(Command, &[u8]); 5] = [
            (Command::Query, b"SET @a = 1, @b = 'x'"),
            (Command::Query, b"SELECT 2 INTO @c"),
            (Command::Query, b"SET @a = 3"),
            (Command::Query, b"SELECT 4 INTO @b"),
            (Command::Query, b"SELECT @a, @b, @c"),
        ];
        for who in [a, b, a] {
            story.client(who).send(&commands).unwrap();
            for step in 0..commands.len() {
                let reply = story.client(who).receive();
                story.note(&format!("pipelined {step}"), reply);
            }
            story.sql(b, "SELECT @a, @b, @c");
        }
    });
}

/// A statement that sets no user variable, but something else that is read back, goes out behind
/// the question for those that the statement before has set.
#[test]
fn user_variables_are_kept_when_something_else_is_set_behind_them() {
    same_on_both("variables_and_clock", 1, |story| {
        let (a, b) = (story.join(), story.join());
        let clock: [&[u8]; 2] = [b"SET timestamp = 1000000000", b"SET timestamp = DEFAULT"];
        for set in clock {
            let commands: [(Command, &[u8]); 2] = [
                (Command::Query, b"SET @a = 'of a', @b = 1"),
                (Command::Query, set),
            ];
            story.client(a).send(&commands).unwrap();
            for step in 0..commands.len() {
                let reply = story.client(a).receive();
                story.note(&format!("pipelined {step}"), reply);
            }
            story.sql(b, "SET @a = 'of b'");
            story.sql(a, "SELECT @a, @b");
            story.sql(b, "SELECT @a, @b");
        }
    });
}

/// What the server has taken before goes out in front of the statement, and so does a schema.
#[test]
fn differences_that_cannot_fail_are_not_waited_for() {
    let Some(real) = server("differences_that_cannot_fail") else {
        return;
    };
    if direct() {
        return;
    }
    let pool = start_pool(real, "in_front.toml", "backends_max = 1\ngroups = 1");
    let account = app().schema("shop");
    let clients = [
        login(&pool.address, &account),
        login(&pool.address, &account),
    ];
    let zones = ["+01:00", "-02:00"];
    let mut both: Vec<_> = clients.into_iter().zip(zones).collect();
    for (client, zone) in &mut both {
        client.must(&format!(
            "SET NAMES latin1, time_zone = '{zone}', sql_mode = 'ANSI_QUOTES', autocommit = 1"
        ));
    }
    for _ in 0..10 {
        for (client, zone) in &mut both {
            assert_eq!(&client.value("SELECT @@time_zone"), zone);
        }
    }
    let counted = |said: &str, name: &str| -> u64 {
        let rest = said.split(&format!("{name}: ")).nth(1).expect(name);
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap()
    };
    let said = pool.wait_for_census("statements: 22,").unwrap();
    let (all, front) = (
        counted(&said, "restored"),
        counted(&said, "restored_in_front"),
    );
    assert!(all >= 20 && all - front <= 4, "{front} of {all} in front");
    for (client, schema) in both
        .iter_mut()
        .map(|pair| &mut pair.0)
        .zip(["shop", "mysql"])
    {
        client.must(&format!("USE {schema}"));
    }
    for _ in 0..10 {
        for (client, _) in &mut both {
            client.must("DO 1");
        }
    }
    let said = pool.wait_for_census("statements: 44,").unwrap();
    let (all_then, front_then) = (
        counted(&said, "restored"),
        counted(&said, "restored_in_front"),
    );
    assert!(all_then >= all + 15, "{said}");
    assert_eq!(all_then - all, front_then - front, "{said}");
}

/// A server that is asked for IGNORE_SPACE at login has it in the session's sql_mode from then on.
#[test]
fn ignore_space_of_the_login_is_part_of_the_sql_mode() {
    let test = "ignore_space_of_the_login_is_part_of_the_sql_mode";
    let Some(real) = server(test) else { return };
    let way = through(real, 1);
    let account = app().with(cap::IGNORE_SPACE);
    let mut plain = login(&way, &app());
    let mut spaced = login(&way, &account);
    let usual = plain.value("SELECT @@sql_mode");
    let with = spaced.value("SELECT @@sql_mode");
    assert_eq!(with.replace("IGNORE_SPACE,", ""), usual);
    assert!(with.contains("IGNORE_SPACE"), "{with}");
    // Whatever the backend had before, it has what the login asked for.
    spaced.must("SET sql_mode = ''");
    let mut next = login(&way, &account);
    assert_eq!(next.value("SELECT @@sql_mode"), with);
    assert_eq!(next.value("SELECT COUNT (*) FROM (SELECT 1) one"), "1");
    next.must("SET sql_mode = CONCAT(@@sql_mode, ',ANSI_QUOTES')");
    assert!(next.value("SELECT @@sql_mode").contains("IGNORE_SPACE"));
    assert_eq!(plain.value("SELECT @@sql_mode"), usual);
    // It is the login's alone: a reset or another user brings back what every session has.
    next.run(Command::ResetConnection, b"").unwrap();
    assert_eq!(next.value("SELECT @@sql_mode"), usual);
    let mut changed = login(&way, &account);
    changed.change_user(&account).unwrap();
    assert_eq!(changed.value("SELECT @@sql_mode"), usual);
}

/// Applications in PHP log in, set their session, and choose a schema then.
#[test]
fn clients_that_choose_their_schema_late_take_connections_that_are_there() {
    for real in both_servers("late_schema") {
        fresh_schema(real, "late_schema");
        let settings = "backends_max = 2\ngroups = 1\nhttp = \"127.0.0.1:0\"\n";
        let pool = start_pool(real, "late_schema.toml", settings);
        let place = place_of(&pool);
        let mut other = login(&pool.address, &app().schema("late_schema"));
        other.must("CREATE TABLE t (id INT)");
        for number in 0..12 {
            let mut client = login(&pool.address, &app());
            client.must("SET NAMES utf8mb4");
            client.must("SELECT @@SESSION.sql_mode");
            client.run(Command::InitDb, b"late_schema").unwrap();
            client.must(&format!("INSERT INTO t VALUES ({number})"));
            assert_eq!(client.value("SELECT DATABASE()"), "late_schema");
            let mut stranger = login(&pool.address, &app());
            let nothing = stranger.run(Command::InitDb, b"no_such_schema").unwrap();
            assert!(format!("{nothing:?}").contains("1049"), "{nothing:?}");
            let failed = stranger.query("SELECT COUNT(*) FROM t").unwrap();
            assert!(format!("{failed:?}").contains("1046"), "{failed:?}");
            stranger.must("BEGIN");
            stranger.run(Command::InitDb, b"no_such_schema").unwrap();
            let failed = stranger.query("SELECT COUNT(*) FROM t").unwrap();
            assert!(format!("{failed:?}").contains("1046"), "{failed:?}");
            stranger.must("COMMIT");
            assert_eq!(other.value("SELECT DATABASE()"), "late_schema");
        }
        assert_eq!(other.value("SELECT COUNT(*) FROM t"), "12");
        // The figures are as old as those of the statements that they count.
        until(|| match figures(&place) {
            figures if figures["onramp_pool_statements_total"] < 80.0 => Err("old".to_owned()),
            figures => {
                // Not one for each of the clients. A few are opened where the pool learns late that
                // a client has left, which holds one of the two.
                let dials = figures["onramp_pool_dials_total"];
                assert!(dials <= 8.0, "{dials}");
                Ok(())
            }
        });
    }
}
