//! Values that the statement before left, asked for after another client has used the backend.
//!
//! One backend for two clients, so that every question meets a backend that has just run something
//! else, with warnings and counts of its own; and nobody may be pinned, or the other would wait in
//! vain. Told to MariaDB and to MySQL, which differ in what clears what.

use crate::compare::{Story, same_on, same_on_both};
use crate::world::{app, both_servers, direct, fresh_schema, login, server, start_pool, through};
use testkit::reply::Outcome;
use wire::capabilities as cap;
use wire::command::Command;

/// Two clients and tables; client 1 leaves three warnings, three found rows and a row count.
fn begin(story: &mut Story) {
    story.columns = true;
    // MySQL reports transactions to clients that have not asked for it, the pool does not.
    let account = app().schema(&story.schema).without(cap::SESSION_TRACK);
    let (a, _) = (story.join_as(&account), story.join_as(&account));
    story.all(
        a,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, v INT)",
            "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3), (4, 4)",
            "CREATE TABLE notes (a INT, b INT)",
        ],
    );
}

fn other(story: &mut Story) {
    story.sql(1, "SELECT CAST('other' AS SIGNED) FROM t WHERE id < 4");
}

/// Statements before a question: most leave something, some leave what was there before them.
const BEFORE: [&[&str]; 22] = [
    &["SELECT 1"],
    &["SELECT v FROM t WHERE id < 3"],
    &["SELECT 1 / 0"],
    &["SELECT CAST('x' AS SIGNED), CAST('y' AS SIGNED) FROM t"],
    &["SELECT * FROM missing"],
    &["SELEC"],
    &["UPDATE t SET v = v + 1 WHERE id < 3"],
    &["INSERT IGNORE INTO t VALUES (1, 1), (2, 2)"],
    &["INSERT INTO t VALUES (1, 1)"],
    &["DROP TABLE IF EXISTS missing"],
    &["SET @x = 1"],
    &["SELECT 1 / 0", "SELECT 2"],
    &["SELECT 1 / 0", "SELECT v FROM t"],
    &["SELECT 1 / 0", "SET @x = 2"],
    &["SELECT 1 / 0", "USE mysql", "DO 1"],
    &["SELECT 1 / 0", "BEGIN", "COMMIT"],
    &["BEGIN", "SELECT 1 / 0", "COMMIT"],
    &["BEGIN", "SELECT * FROM missing", "ROLLBACK"],
    &["SELECT 1 / 0", "UPDATE t SET v = 5 WHERE id = 1"],
    &["SELECT 1 / 0", "INSERT INTO missing VALUES (1)"],
    &["SIGNAL SQLSTATE '45001' SET MESSAGE_TEXT = 'on purpose', MYSQL_ERRNO = 3333"],
    &[
        "SET max_error_count = 2",
        "SELECT CAST('x' AS SIGNED) FROM t",
    ],
];

/// Questions, each with what follows it on the same connection.
const QUESTIONS: [&[&str]; 12] = [
    &["SELECT ROW_COUNT()"],
    &["SELECT ROW_COUNT() AS n, ROW_COUNT()"],
    &["SELECT @@warning_count"],
    &["SELECT @@session.warning_count AS w"],
    &["SHOW WARNINGS"],
    &["SHOW ERRORS"],
    &["SHOW WARNINGS LIMIT 1"],
    &["SHOW WARNINGS LIMIT 1, 5"],
    &["SHOW COUNT(*) WARNINGS"],
    &[
        "GET DIAGNOSTICS @n = NUMBER, @r = ROW_COUNT",
        "SELECT @n, @r",
    ],
    &["INSERT INTO notes VALUES (ROW_COUNT(), @@warning_count)"],
    &["SET @r = ROW_COUNT()", "SELECT @r"],
];

#[test]
fn every_question_is_answered_as_on_a_connection_of_ones_own() {
    same_on_both("asked_elsewhere", 1, |story| {
        begin(story);
        for before in BEFORE {
            for question in QUESTIONS {
                story.all(0, &["DELETE FROM notes", "USE asked_elsewhere"]);
                story.all(0, before);
                other(story);
                for sql in question {
                    story.sql(0, sql);
                    other(story);
                }
                // What the question itself has left.
                for sql in ["SHOW WARNINGS", "SELECT ROW_COUNT()"] {
                    story.sql(0, sql);
                    other(story);
                }
                story.sql(0, "SELECT a, b FROM asked_elsewhere.notes");
                story.sql(0, "SET max_error_count = DEFAULT");
            }
        }
    });
}

#[test]
fn errors_are_counted() {
    same_on_both("counts_errors", 1, |story| {
        begin(story);
        for before in [
            "SELECT 1 / 0",
            "SELECT * FROM missing",
            "SELECT 1",
            "INSERT INTO t VALUES (1, 1)",
        ] {
            for question in [
                "SELECT @@error_count",
                "SHOW COUNT(*) ERRORS",
                "SHOW ERRORS LIMIT 0",
            ] {
                story.sql(0, before);
                other(story);
                story.sql(0, question);
                other(story);
                story.sql(0, question);
            }
        }
    });
}

#[test]
fn conditions_have_their_states_and_words() {
    same_on_both("reads_conditions", 1, |story| {
        begin(story);
        for before in [
            "SELECT 1 / 0",
            "SELECT CAST('x' AS SIGNED)",
            "SELECT * FROM missing",
            "INSERT INTO t VALUES (1, 1)",
            "DROP TABLE IF EXISTS missing",
            "CREATE TABLE IF NOT EXISTS t (x INT)",
            "SELECT * FROM `m\u{e4}rz`",
            "INSERT IGNORE INTO t VALUES (1, 'word')",
            "UPDATE t SET v = 'word' WHERE id = 1",
        ] {
            story.sql(0, before);
            other(story);
            story.sql(
                0,
                "GET DIAGNOSTICS CONDITION 1 @s = RETURNED_SQLSTATE, @m = MESSAGE_TEXT, \
                 @e = MYSQL_ERRNO",
            );
            other(story);
            story.sql(0, "SELECT @s, @m, @e, COLLATION(@s), COLLATION(@m)");
            story.sql(0, "SELECT ROW_COUNT()");
        }
    });
}

#[test]
fn rows_that_were_found_are_known_or_asked_for() {
    same_on_both("found_elsewhere", 1, |story| {
        begin(story);
        for before in [
            &["SELECT v FROM t"][..],
            &["SELECT v FROM t ORDER BY v LIMIT 2"],
            &["SELECT v FROM t", "SET @x = 1"],
            &["SELECT v FROM t", "BEGIN", "ROLLBACK"],
            &["SELECT v FROM t", "SHOW WARNINGS"],
            &["SHOW COUNT(*) WARNINGS"],
        ] {
            story.all(0, before);
            other(story);
            story.sql(0, "SELECT FOUND_ROWS(), 'x' AS y");
            other(story);
            story.sql(0, "SELECT FOUND_ROWS()");
        }
        story.command(0, Command::Ping, b"");
        story.sql(0, "SELECT ROW_COUNT(), FOUND_ROWS()");
        story.command(0, Command::SetOption, &[0, 0]);
        story.sql(0, "SELECT ROW_COUNT()");
        story.sql(0, "SELECT v FROM t");
        story.command(0, Command::ResetConnection, b"");
        other(story);
        story.sql(0, "SELECT FOUND_ROWS()");
    });
}

#[test]
fn prepared_questions_are_answered_too() {
    same_on_both("prepared_asks", 1, |story| {
        begin(story);
        let counts = story.prepare(0, "SELECT ROW_COUNT() AS n, ?").id;
        for before in ["UPDATE t SET v = v + 1", "SELECT 1 / 0", "SELECT 1"] {
            story.sql(0, before);
            other(story);
            story.execute(0, counts, &[Some(b"x")]);
        }
    });
    // MySQL prepares no statement that reads the number of warnings.
    let Some(real) = server("prepared_questions_are_answered_too") else {
        return;
    };
    same_on(real, "prepared_asks", 1, |story| {
        begin(story);
        let warned = story.prepare(0, "SELECT @@warning_count").id;
        for before in ["UPDATE t SET v = v + 1", "SELECT 1 / 0", "SELECT 1"] {
            story.sql(0, before);
            other(story);
            story.execute(0, warned, &[]);
        }
    });
}

#[test]
fn commands_that_are_no_statements_count_and_leave_what_was_before() {
    same_on_both("commands_count", 1, |story| {
        begin(story);
        let question = "SELECT ROW_COUNT(), @@warning_count";
        for command in [Command::Debug, Command::Ping, Command::SetOption] {
            let arguments: &[u8] = match command {
                Command::SetOption => &[1, 0],
                _ => b"",
            };
            for before in ["SELECT 1 / 0, 2 / 0", "SELECT * FROM missing", "SET @x = 1"] {
                for between in [false, true] {
                    story.sql(0, before);
                    if between {
                        other(story);
                    }
                    story.command(0, command, arguments);
                    other(story);
                    story.sql(0, question);
                    story.sql(0, before);
                    story.command(0, command, arguments);
                    other(story);
                    story.sql(0, "SHOW WARNINGS");
                }
            }
        }
    });
}

/// A text behind another of the pool's own is followed by COM_SET_OPTION, which leaves a count of
/// its own.
#[test]
fn get_diagnostics_has_the_rows_of_a_joined_text() {
    let test = "rows_of_a_joined_text";
    same_on_both(test, 1, |story| {
        begin(story);
        story.sql(1, "USE mysql");
        story.sql(0, "UPDATE t SET v = v + 1 WHERE id < 3");
        story.sql(0, "GET DIAGNOSTICS @n = NUMBER, @r = ROW_COUNT");
        story.sql(0, "SELECT @n, @r");
    });
}

/// A question that only the statement's own backend can answer is refused, and nobody is pinned for
/// it.
#[test]
fn what_cannot_be_answered_elsewhere_is_refused_and_never_wrong() {
    let Some(real) = server("what_cannot_be_answered_elsewhere") else {
        return;
    };
    let way = through(real, 1);
    let account = app().schema("shop");
    let (mut one, mut other) = (login(&way, &account), login(&way, &account));
    for _ in 0..2 {
        one.must("SELECT 1 / 0");
        other.must("SELECT 2");
        let question = "SELECT CONCAT('\u{1F600}', @@warning_count)";
        match &one.query(question).unwrap()[..] {
            [Outcome::Failed(failure)] => assert_eq!(failure.code, 1235, "{question}: {failure}"),
            outcomes => panic!("{question}: {outcomes:?}"),
        }
    }
    // The same backend serves both.
    other.must("SELECT 3");
}

/// A client that leaves while its backend is asked what it has left there does not take it along.
#[test]
fn who_leaves_while_asked_leaves_the_backend_to_others() {
    let test = "who_leaves_while_asked_leaves_the_backend_to_others";
    for real in both_servers(test) {
        let way = through(real, 1);
        let mut stays = login(&way, &app());
        for _ in 0..40 {
            let mut leaves = login(&way, &app());
            let warns = b"DROP PROCEDURE IF EXISTS shop.no_such_procedure";
            let counts = b"SELECT 1 UNION SELECT 2";
            let commands = [
                (Command::Query, &warns[..]),
                (Command::Query, &counts[..]),
                (Command::Quit, &[][..]),
            ];
            leaves.send(&commands).unwrap();
            drop(leaves);
            assert_eq!(stays.value("SELECT 7"), "7");
        }
    }
}

/// Questions in one text with a call of code that nobody knows, in such code, and behind commands
/// that leave what was there.
#[test]
fn nobody_reads_the_conditions_of_another_client() {
    let questions = [
        "SHOW WARNINGS; CALL plain('q')",
        "SHOW ERRORS; CALL plain('q')",
        "SHOW COUNT(*) WARNINGS; CALL plain('q')",
        "SHOW COUNT(*) ERRORS; CALL plain('q')",
        "GET DIAGNOSTICS @n = NUMBER; SELECT @n; CALL plain('q')",
        "SELECT @@warning_count, @@error_count; CALL plain('q')",
        "CALL plain('q'); SHOW WARNINGS",
        "CALL resignals()",
        "CALL asks()",
    ];
    let leaves = [
        "SELECT CAST('bsecret' AS SIGNED)",
        "SELECT bsecret FROM no_such_table",
        "SELECT CAST('bsecret' AS SIGNED) FROM t; SELECT 1",
    ];
    same_on_both("nobodys_conditions", 1, |story| {
        story.columns = false;
        let account = app().schema(&story.schema).with(cap::MULTI_STATEMENTS);
        let a = story.join_as(&account);
        story.all(
            a,
            &[
                "CREATE TABLE t (id INT PRIMARY KEY)",
                "INSERT INTO t VALUES (1)",
                "CREATE PROCEDURE plain(w TEXT) BEGIN DO 0; SET @x = w; DO GET_LOCK('own', 0); END",
                "CREATE PROCEDURE resignals() BEGIN DO GET_LOCK('own', 0); BEGIN \
                 DECLARE EXIT HANDLER FOR SQLEXCEPTION RESIGNAL; \
                 SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'own'; END; END",
                "CREATE PROCEDURE asks() BEGIN SHOW WARNINGS; DO GET_LOCK('own', 0); END",
            ],
        );
        for before in ["DO 1", "USE no_such_schema"] {
            for leave in leaves {
                for question in questions {
                    let (b, c) = (story.join_as(&account), story.join_as(&account));
                    story.sql(c, before);
                    story.sql(b, leave);
                    // Its answer may be that it is not known any more, but never another's.
                    let reply = story.client(c).query(question);
                    let text = format!("{reply:?}");
                    assert!(
                        !text.contains("bsecret"),
                        "{question} behind {leave}: {text}"
                    );
                    let shown = story.client(c).query("SHOW WARNINGS");
                    assert!(!format!("{shown:?}").contains("bsecret"), "{shown:?}");
                    let quit = [(Command::Quit, &b""[..])];
                    story.client(b).send(&quit).unwrap();
                    story.client(c).send(&quit).unwrap();
                }
            }
        }
    });
}

/// Statements of one client, between which another one uses a backend; told on both servers.
fn told_on_both(test: &str, backends: usize, statements: &[&str]) {
    let tell = |story: &mut Story| {
        let (a, b) = (story.join(), story.join());
        story.sql(
            a,
            "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)",
        );
        for sql in statements {
            match sql.strip_prefix("binary ") {
                Some(sql) => {
                    let prepared = story.prepare(a, sql);
                    story.sql(b, "SELECT 1 FROM t WHERE v = 99");
                    story.execute(a, prepared.id, &[]);
                }
                None => drop(story.sql(a, sql)),
            }
            story.sql(b, "SELECT 1 FROM t WHERE v = 99");
        }
    };
    same_on_both(test, backends, tell);
}

#[test]
fn who_ends_its_own_statement_is_asked_about_it() {
    told_on_both(
        "kill_query_self",
        1,
        &[
            "SELECT CAST('a' AS SIGNED)",
            "KILL QUERY CONNECTION_ID()",
            "SHOW WARNINGS",
            "KILL QUERY CONNECTION_ID()",
            "SELECT @@error_count, ROW_COUNT()",
            "binary KILL QUERY CONNECTION_ID()",
            "SHOW ERRORS",
            "SELECT 5",
        ],
    );
}

#[test]
fn a_signal_that_warns_leaves_its_count() {
    told_on_both(
        "signal_counts",
        1,
        &[
            "INSERT INTO t (v) VALUES (1), (2)",
            "SIGNAL SQLSTATE '01000'",
            "SELECT ROW_COUNT()",
            "SIGNAL SQLSTATE '01000' SET MESSAGE_TEXT = 'w'",
            "SHOW WARNINGS",
            "INSERT INTO t (v) VALUES (1), (2)",
            "SIGNAL SQLSTATE '45000'",
            "SELECT ROW_COUNT()",
        ],
    );
}

#[test]
fn counts_are_told_in_binary_too() {
    told_on_both(
        "binary_counts",
        1,
        &[
            // Before its first query a session of MariaDB has found what its thread's last one has.
            "SELECT 1",
            "INSERT INTO t (v) VALUES (1), (2)",
            "binary SELECT ROW_COUNT(), FOUND_ROWS()",
            "SELECT v FROM t",
            "binary SELECT ROW_COUNT(), FOUND_ROWS()",
            "INSERT INTO t (v) VALUES (1), (2)",
            "SELECT ROW_COUNT(), FOUND_ROWS()",
        ],
    );
}

#[test]
fn user_variables_are_flushed() {
    told_on_both(
        "flush_user_variables",
        2,
        &[
            "SET @a = 1",
            "SELECT @a",
            "FLUSH USER_VARIABLES",
            "SELECT LEFT(@a, 9)",
            "SET @b = 2",
            "SELECT @b, LEFT(@a, 9)",
            "DO 1",
        ],
    );
}

/// A statement put in front of a text for FOUND_ROWS() must not take away the conditions that the
/// text asks for.
#[test]
fn a_text_that_asks_first_has_its_conditions_or_is_refused() {
    for real in both_servers("asks_first") {
        let way = through(real, 2);
        let account = app().with(cap::MULTI_STATEMENTS);
        let mut a = login(&way, &account);
        a.must("SET autocommit = 0");
        for _ in 0..20 {
            a.run(Command::InitDb, b"no_such_schema").unwrap();
            let reply = a
                .query("SHOW WARNINGS; DO GET_LOCK('asks_first', 0)")
                .unwrap();
            let text = format!("{reply:?}");
            assert!(text.contains("1049") || text.contains("1235"), "{text}");
            a.run(Command::ResetConnection, b"").unwrap();
            a.must("SET autocommit = 0");
        }
    }
}

/// COM_INIT_DB is sent in whatever schema a backend is. Where it fails, the session's own schema is
/// set in front of what follows, which clears what the error has left.
#[test]
fn a_schema_that_is_not_there_comes_behind_the_conditions_of_before() {
    same_on_both("behind_conditions", 1, |story| {
        let (a, b) = (story.join(), story.join());
        for before in [
            "SELECT * FROM nothing",
            "SELECT CAST('x' AS SIGNED)",
            "DO 1",
        ] {
            story.sql(a, before);
            story.sql(b, "SELECT CAST('another' AS SIGNED)");
            story.command(a, Command::InitDb, b"no_such_schema");
            for asks in ["SHOW WARNINGS LIMIT 1, 2", "SHOW COUNT(*) ERRORS"] {
                story.may_be_gone(a, asks);
                story.sql(b, "SHOW WARNINGS");
            }
        }
    });
}

#[test]
fn a_show_that_fails_leaves_no_count_that_is_wrong() {
    same_on_both("failing_shows", 1, |story| {
        let a = story.join();
        story.sql(a, "CREATE TABLE t (id INT PRIMARY KEY)");
        story.all(
            a,
            &[
                "CREATE TABLE gone (id INT)",
                "CREATE VIEW invalid AS SELECT id FROM gone",
                "DROP TABLE gone",
            ],
        );
        let b = story.join();
        for fails in [
            "DESCRIBE nothing",
            "DESC `nothing` id",
            "DESCRIBE invalid",
            "EXPLAIN nothing",
            "SHOW COLUMNS FROM nothing",
            "SHOW FULL COLUMNS FROM nothing FROM no_such_schema",
            "SHOW INDEX FROM nothing",
            "SHOW FIELDS FROM invalid",
            "SHOW TABLES FROM no_such_schema",
            "SHOW TRIGGERS FROM no_such_schema",
            "SHOW TABLES WHERE nothing = 1",
            "SHOW CREATE TABLE nothing",
            "SHOW CREATE VIEW nothing",
            "SHOW GRANTS FOR nobody",
        ] {
            // What stays is this client's own, wherever it was counted.
            for before in ["SELECT 1", "INSERT IGNORE INTO t VALUES (1), (2)", "DO 1"] {
                story.all(a, &[before, fails, "SELECT ROW_COUNT()"]);
                story.sql(a, before);
                story.all(
                    b,
                    &[
                        "UPDATE t SET id = id + 100",
                        "SELECT id FROM t WHERE id = 1",
                    ],
                );
                story.all(a, &[fails, "SELECT ROW_COUNT()"]);
                story.sql(a, before);
                story.sql(b, "DELETE FROM t");
                story.sql(a, fails);
                story.sql(b, "INSERT INTO t VALUES (1), (2), (3)");
                story.sql(a, "SELECT ROW_COUNT()");
            }
        }
        for fails in [
            "EXPLAIN SELECT * FROM nothing",
            "SHOW EXPLAIN FOR 4294967295",
            "SHOW TABLES WHERE (SELECT 1 FROM nothing)",
        ] {
            story.all(a, &["SELECT 1", fails, "SELECT ROW_COUNT()"]);
            // After a statement that counts, MariaDB's number is the one that stays or -1.
            story.all(a, &["INSERT IGNORE INTO t VALUES (1), (2)", fails]);
            story.may_be_gone(a, "SELECT ROW_COUNT()");
        }
    });
}

#[test]
fn conditions_are_shown_in_the_collation_of_now() {
    same_on_both("shown_in_collation", 1, |story| {
        story.columns = true;
        let a = story.join();
        story.all(a, &["SET NAMES latin1", "SELECT * FROM nothing"]);
        story.sql(a, "SET NAMES latin1 COLLATE latin1_bin");
        story.may_be_gone(a, "SHOW WARNINGS");
        story.all(a, &["SELECT * FROM nothing", "SHOW WARNINGS"]);
    });
}

#[test]
fn what_a_schema_that_is_not_there_leaves_is_known_on_a_new_backend() {
    same_on_both("init_db_anew", 1, |story| {
        let account = app().schema(&story.schema).without(cap::SESSION_TRACK);
        let b = story.join_as(&account.clone().with(cap::FOUND_ROWS));
        let a = story.join_as(&account);
        story.sql(a, "CREATE TABLE t (v INT)");
        for asks in [
            "SELECT ROW_COUNT()",
            "SHOW WARNINGS",
            "SELECT @@warning_count, @@error_count",
            "SHOW COUNT(*) ERRORS",
        ] {
            for late in [false, true] {
                story.sql(a, "SELECT v FROM t");
                // The only backend is replaced by one of the other kind.
                story.sql(b, "SELECT * FROM nowhere");
                story.command(a, Command::InitDb, b"no_such_schema");
                if late {
                    story.let_pool_finish();
                }
                story.may_be_gone(a, asks);
            }
        }
    });
}

/// Values that an error may have left unsaid are asked behind it, when the client takes its time:
/// that takes nothing from a text which asks for the conditions and cannot be answered by the pool.
#[test]
fn a_text_that_pins_finds_the_conditions_of_an_error_before_it() {
    if direct() {
        return;
    }
    for real in both_servers("late_text") {
        fresh_schema(real, "late_text");
        real.execute(&["CREATE PROCEDURE late_text.locks() DO RELEASE_LOCK('late_text')"]);
        let pool = start_pool(real, "late_text.toml", "groups = 1\nbackends_max = 2");
        let mut a = login(&pool.address, &app().with(cap::MULTI_STATEMENTS));
        let id = a.talk().greeting.as_ref().unwrap().connection_id;
        a.query("SELECT * FROM late_text.nowhere").unwrap();
        // Says nothing before all that follows the error has been answered.
        pool.report_of(id).unwrap();
        let reply = a.query("SHOW WARNINGS; CALL late_text.locks()").unwrap();
        assert!(format!("{reply:?}").contains("1146"), "{reply:?}");
    }
}

/// A lock that another holds is waited for in vain: on MariaDB that clears the conditions of the
/// statement before, and nothing in the reply tells of it.
#[test]
fn a_lock_that_is_not_got_may_clear_conditions() {
    same_on_both("lock_not_got", 2, |story| {
        let (a, b) = (story.join(), story.join());
        story.sql(b, "SELECT GET_LOCK('lock_not_got', 0)");
        for lock in ["lock_not_got", "lock_got"] {
            for takes in [
                format!("SELECT GET_LOCK('{lock}', 0)"),
                format!("DO GET_LOCK('{lock}', 0)"),
                format!("SET @got = GET_LOCK('{lock}', 0)"),
                format!("SELECT RELEASE_LOCK('{lock}')"),
            ] {
                for asks in ["SHOW WARNINGS", "SELECT @@warning_count, @@error_count"] {
                    for before in ["SELECT no_such_column", "SELECT CAST('x' AS SIGNED)"] {
                        story.all(a, &[before, &takes]);
                        story.may_be_gone(a, asks);
                    }
                }
            }
        }
    });
}

/// COM_STMT_RESET leaves the conditions of the statement before, and counts no rows.
#[test]
fn a_reset_of_a_statement_leaves_conditions() {
    same_on_both("reset_leaves", 2, |story| {
        let (a, b) = (story.join(), story.join());
        let id = story.prepare(a, "SELECT CAST('y' AS SIGNED)").id;
        for before in [
            "SELECT CAST('x' AS SIGNED)",
            "SELECT no_such_column",
            "DO 0",
        ] {
            for asks in ["SELECT @@warning_count, @@error_count", "SHOW WARNINGS"] {
                story.sql(a, before);
                story.command(a, Command::StmtReset, &id.to_le_bytes());
                story.sql(b, "SELECT CAST('other' AS SIGNED)");
                story.sql(a, asks);
                story.execute(a, id, &[]);
                story.command(a, Command::StmtReset, &id.to_le_bytes());
                story.sql(a, asks);
                story.command(a, Command::StmtReset, &id.to_le_bytes());
                story.sql(a, "SELECT ROW_COUNT()");
            }
        }
    });
}

/// ROW_COUNT() behind a text that ends with GET DIAGNOSTICS is that of the statement before it.
#[test]
fn a_text_that_ends_with_get_diagnostics_counts_as_before_it() {
    same_on_both("ends_with_get", 1, |story| {
        let account = app().schema(&story.schema).with(cap::MULTI_STATEMENTS);
        let (a, b) = (story.join_as(&account), story.join_as(&account));
        story.sql(a, "CREATE TABLE t (v INT)");
        let texts = [
            "SELECT 1; GET DIAGNOSTICS @r = ROW_COUNT",
            "INSERT INTO t VALUES (1), (2); GET DIAGNOSTICS @r = ROW_COUNT",
            "INSERT INTO t VALUES (1), (2); GET DIAGNOSTICS @r = ROW_COUNT; DO 0",
            "INSERT INTO t VALUES (1), (2); GET DIAGNOSTICS @r = ROW_COUNT; SELECT 1",
        ];
        let asks = [
            "SELECT ROW_COUNT()",
            "SELECT ROW_COUNT(); SELECT 2",
            "GET DIAGNOSTICS @s = ROW_COUNT",
        ];
        for text in texts {
            for asks in asks {
                for others in [&[][..], &["INSERT INTO t VALUES (1), (2), (3)"]] {
                    // Behind a refusal its conditions are gone, and these texts read them.
                    story.sql(a, "SELECT v FROM t LIMIT 1");
                    story.sql(a, text);
                    story.all(b, others);
                    story.may_be_gone(a, asks);
                }
            }
        }
    });
}

/// MySQL says some errors twice, and counts both in its answer to COM_SET_OPTION.
#[test]
fn a_pinned_clients_conditions_are_counted() {
    same_on_both("counted_pinned", 1, |story| {
        let a = story.join_as(&app());
        for held in ["DO 0", "DO GET_LOCK('counted_pinned', 0)"] {
            story.sql(a, held);
            story.sql(a, "SELECT no_such_function(6)");
            story.command(a, Command::SetOption, &[1, 0]);
            story.sql(a, "SELECT no_such_function(6)");
            story.command(a, Command::Ping, b"");
            story.all(a, &["SHOW WARNINGS", "SELECT ROW_COUNT()"]);
        }
    });
}

/// Changes of a session that are still to be told stand in the pool's own answer too: MySQL tells
/// behind a deadlock that the transaction has ended.
#[test]
fn what_a_rolled_back_transaction_is_told_stands_behind_its_error() {
    same_on_both("told_deadlock", 3, |story| {
        let (a, b, c) = (story.join(), story.join(), story.join());
        story.all(
            a,
            &[
                "CREATE TABLE t (id INT PRIMARY KEY, v INT) ENGINE=InnoDB",
                "INSERT INTO t VALUES (1, 0), (2, 0), (3, 0)",
                "BEGIN",
                "UPDATE t SET v = v + 1 WHERE id IN (1, 3)",
            ],
        );
        story.all(b, &["BEGIN", "UPDATE t SET v = 1 WHERE id = 2"]);
        story.begin(b, "UPDATE t SET v = 1 WHERE id = 1");
        story.sql(a, "UPDATE t SET v = 2 WHERE id = 2");
        story.end(b);
        story.sql(c, "SELECT v FROM t WHERE id = 0");
        story.all(b, &["SHOW WARNINGS", "SELECT 1"]);
        story.sql(a, "ROLLBACK");
    });
}

/// Commands that restore a session may warn themselves (on MySQL a SET of a character set that is
/// deprecated): a text that asks and pins does not read that.
#[test]
fn what_restores_a_session_leaves_nothing_to_a_text_that_asks() {
    for real in both_servers("restore_warns") {
        fresh_schema(real, "restored_to");
        for schema in [None, Some("restored_to")] {
            same_on(real, "restore_warns", 1, |story| {
                let account = app().schema(&story.schema).with(cap::MULTI_STATEMENTS);
                for asks in [
                    "SHOW WARNINGS; EXECUTE no_such_name",
                    "SHOW COUNT(*) WARNINGS; EXECUTE no_such_name",
                    "SELECT @@warning_count; EXECUTE no_such_name",
                    "GET DIAGNOSTICS @n = NUMBER; SELECT @n; EXECUTE no_such_name",
                ] {
                    let (a, b) = (story.join_as(&account), story.join_as(&account));
                    story.all(a, &["SET NAMES utf8mb3", "DO 1"]);
                    story.all(b, &["SET NAMES utf8mb4", "DO 1"]);
                    if let Some(schema) = schema {
                        story.sql(b, &format!("USE {schema}"));
                    }
                    story.may_be_gone(a, asks);
                    story.command(a, Command::ResetConnection, b"");
                }
            });
        }
    }
}

/// Conditions of the statement before an error of the pool's own are not shown behind that.
#[test]
fn nothing_old_is_shown_behind_an_error_of_the_pool() {
    if direct() {
        return;
    }
    for real in both_servers("own_error") {
        let way = through(real, 1);
        let account = app().schema("shop").with(cap::MULTI_STATEMENTS);
        let (mut a, mut b) = (login(&way, &account), login(&way, &account));
        for others in [false, true] {
            for before in ["SELECT * FROM nothing", "SELECT 1 / 0", "DO 1"] {
                a.query(before).unwrap();
                let refused = a.failure("SELECT 1; KILL 1");
                assert_eq!(refused.code, 1235, "{refused}");
                if others {
                    b.query("SELECT CAST('other' AS SIGNED)").unwrap();
                }
                for asks in ["SHOW WARNINGS", "SELECT @@warning_count"] {
                    let gone = a.failure(asks);
                    assert_eq!(gone.code, 1235, "{before}, {asks}: {gone}");
                    a.query(before).unwrap();
                    a.failure("SELECT 1; KILL 1");
                }
                assert_eq!(a.value("SELECT ROW_COUNT()"), "-1");
                // What clears conditions clears that one too.
                a.must("SELECT COUNT(*) FROM information_schema.SCHEMATA");
                assert!(a.rows("SHOW WARNINGS").rows.is_empty());
            }
        }
    }
}

/// Forms that hardly anybody sends are answered by the backend of the statement before, or refused.
#[test]
fn rare_questions_go_to_the_last_backend_or_are_refused() {
    const TEXTS: &str = "@a = CLASS_ORIGIN, @b = TABLE_NAME, @c = MESSAGE_TEXT, @d = MYSQL_ERRNO";
    let signal = "SIGNAL SQLSTATE '45001' SET MESSAGE_TEXT = 'on purpose', TABLE_NAME = 'mine'";
    same_on_both("rare_questions", 1, |story| {
        let account = app().schema(&story.schema).with(cap::MULTI_STATEMENTS);
        let (a, b) = (story.join_as(&account), story.join_as(&account));
        story.sql(a, "CREATE TABLE one (x INT)");
        for asks in [
            &format!("GET DIAGNOSTICS CONDITION 1 {TEXTS}")[..],
            "GET DIAGNOSTICS CONDITION 5 @d = MYSQL_ERRNO",
            "GET DIAGNOSTICS CONDITION @one @d = MYSQL_ERRNO",
            "RESIGNAL",
            "GET STACKED DIAGNOSTICS @d = NUMBER",
            "SHOW WARNINGS LIMIT",
            "SHOW COUNT(1) WARNINGS",
            "SELECT 1 + @@warning_count + 1",
            "SHOW WARNINGS; SELECT 1",
            "SELECT FOUND_ROWS(); SELECT 1",
        ] {
            for before in ["SELECT 1 / 0", "SELECT * FROM missing", signal] {
                story.all(a, &["SET @a = 1, @b = 1, @c = 1, @d = 1, @one = 1", before]);
                story.may_be_gone(a, asks);
                story.may_be_gone(a, "SHOW WARNINGS");
                story.sql(a, before);
                story.sql(b, "SELECT CAST('other' AS SIGNED)");
                story.may_be_gone(a, asks);
                story.sql(a, "SELECT COUNT(*) FROM one");
                story.sql(a, "SHOW WARNINGS");
            }
        }
    });
}

/// Errors of commands that no server has seen are told, and nothing older is shown behind them.
#[test]
fn errors_that_the_pool_finds_itself_are_the_clients_last() {
    same_on_both("found_by_pool", 2, |story| {
        let (a, b) = (story.join(), story.join());
        for begin in ["DO 1", "BEGIN"] {
            for before in ["SELECT 1 / 0", "SELECT 1", "SELECT * FROM no_such_table"] {
                story.all(a, &[begin, before]);
                story.execute(a, 77, &[]);
                story.sql(b, "SELECT 1 / 0, 2 / 0");
                story.may_be_gone(a, "SHOW WARNINGS");
                story.command(a, Command::StmtFetch, &[255, 255, 0, 0, 1, 0, 0, 0]);
                story.sql(a, "SELECT ROW_COUNT()");
                story.all(a, &["SELECT 1 / 0", "SHOW WARNINGS", "ROLLBACK"]);
            }
        }
    });
}
