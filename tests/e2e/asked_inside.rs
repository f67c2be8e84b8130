//! Stored code that asks first what the statement before its call left.
//!
//! One backend for two clients. After another client has used it the call is refused; in the
//! transaction of that statement the server answers. Such code pins its client, which then resets
//! its session so that the other gets a backend again.

use crate::compare::{Story, same_on_both};
use crate::world::{HOLD, app, both_servers, fresh_schema, login, start_pool};
use wire::capabilities as cap;
use wire::command::Command;

/// Two clients, a table and code that asks.
fn begin(story: &mut Story) {
    let account = app().schema(&story.schema);
    let account = account
        .with(cap::MULTI_STATEMENTS)
        .without(cap::SESSION_TRACK);
    let (a, b) = (story.join_as(&account), story.join_as(&account));
    story.all(
        a,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, v INT)",
            "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3), (4, 4)",
            "CREATE TABLE w (a INT)",
            "CREATE PROCEDURE counted() SELECT ROW_COUNT(), FOUND_ROWS()",
            "CREATE PROCEDURE got() BEGIN GET DIAGNOSTICS @r = ROW_COUNT, @n = NUMBER; \
             SELECT @r, @n; END",
            "CREATE PROCEDURE warned() SHOW WARNINGS",
            "CREATE FUNCTION rows_before() RETURNS INT DETERMINISTIC RETURN ROW_COUNT()",
            "SELECT v FROM t",
        ],
    );
    story.sql(b, "SELECT v FROM t");
}

/// The first statement of a text runs, and asks, though the next is none.
#[test]
fn a_text_that_asks_first_and_goes_on_with_nonsense_is_refused_elsewhere() {
    same_on_both("asks_then_nonsense", 1, |story| {
        begin(story);
        let (a, b) = (0, 1);
        let asks = [
            "SELECT ROW_COUNT()",
            "SELECT FOUND_ROWS()",
            "SELECT ROW_COUNT(), FOUND_ROWS()",
            "SELECT @@warning_count",
            "GET DIAGNOSTICS @r = ROW_COUNT",
            "SHOW WARNINGS",
        ];
        let nonsense = ["'x'", "SELEC 1", "'x'; SELECT @@warning_count"];
        for asks in asks {
            for behind in nonsense {
                let text = format!("{asks}; {behind}");
                for before in [
                    "INSERT INTO w VALUES (1), (2)",
                    "SELECT 1 / 0, CAST('x' AS SIGNED)",
                ] {
                    story.sql(a, before);
                    story.command(a, Command::Ping, b"");
                    story.may_be_gone(a, &text);
                    story.command(a, Command::ResetConnection, b"");
                    story.sql(a, before);
                    story.sql(b, "SELECT v, CAST('y' AS SIGNED) FROM t");
                    story.may_be_gone(a, &text);
                    story.command(a, Command::ResetConnection, b"");
                }
            }
        }
    });
}

/// Statements that count, for FOUND_ROWS() of 0, 1 and more, in sessions that stand as the backend
/// or not.
const COUNTED: [&[&str]; 12] = [
    &["SELECT v FROM t WHERE id < 3"],
    &["SELECT v FROM t WHERE id < 3", "DO 0"],
    &["SELECT v FROM t", "SET @a = 1"],
    &["SELECT v FROM t LIMIT 0", "INSERT INTO w VALUES (1)"],
    &["SELECT v FROM t LIMIT 1", "INSERT INTO w VALUES (1)"],
    &["SELECT v FROM t", "INSERT INTO w VALUES (1)"],
    &["SELECT v FROM t", "INSERT INTO w VALUES (1), (2), (3)"],
    &["SELECT v FROM t", "DELETE FROM w WHERE a > 0"],
    &[
        "SELECT v FROM t",
        "UPDATE t SET v = v + 1",
        "SET NAMES latin1",
    ],
    &[
        "SET NAMES latin1",
        "SELECT v FROM t",
        "UPDATE t SET v = v + 1",
    ],
    &[
        "SET @@sql_select_limit = 5",
        "SELECT v FROM t",
        "INSERT INTO w VALUES (1)",
    ],
    &["CREATE TABLE x (a INT)", "DROP TABLE x"],
];

const ASKS: [&str; 5] = [
    "CALL got()",
    "SELECT rows_before()",
    "CALL warned()",
    "EXECUTE IMMEDIATE 'CALL counted()'",
    "SET @x = 1; CALL counted()",
];

#[test]
fn what_another_client_has_made_of_the_backend_is_not_told() {
    same_on_both("asks_inside", 1, |story| {
        begin(story);
        let others = [COUNTED[2], COUNTED[5], COUNTED[8]];
        let others = ASKS
            .iter()
            .flat_map(|asks| others.map(|before| (before, *asks)));
        let counted = COUNTED.iter().map(|before| (*before, "CALL counted()"));
        for (before, asks) in counted.chain(others) {
            story.all(0, before);
            story.sql(1, "SELECT CAST('other' AS SIGNED) FROM t WHERE id < 4");
            let gone = story.may_be_gone(0, asks);
            // MySQL has no EXECUTE IMMEDIATE, and says so.
            let answered = asks == ASKS[2] || story.mysql() && asks == ASKS[3];
            assert_eq!(gone, story.pooled && !answered, "{asks}, after {before:?}");
            story.command(0, Command::ResetConnection, b"");
            story.sql(1, "INSERT IGNORE INTO t VALUES (1, 1), (2, 2)");
        }
    });
}

/// SHOW WARNINGS as what code begins with, in a routine or a block of the text's own.
#[test]
fn code_that_shows_the_warnings_of_before_is_answered_or_refused() {
    same_on_both("shows_inside", 1, |story| {
        begin(story);
        let (a, b) = (0, 1);
        story.all(
            a,
            &[
                "CREATE PROCEDURE shown() BEGIN IF 1 THEN SHOW ERRORS; END IF; END",
                "CREATE PROCEDURE numbered() SHOW COUNT(*) WARNINGS",
            ],
        );
        for asks in [
            "CALL warned()",
            "CALL shown()",
            "CALL numbered()",
            "SET @x = 1; CALL warned()",
            "BEGIN NOT ATOMIC SHOW WARNINGS; END",
            "BEGIN NOT ATOMIC SHOW COUNT(*) WARNINGS; END",
            "BEGIN NOT ATOMIC CALL warned(); END",
            "IF 1 THEN SHOW ERRORS; END IF",
            "CASE 1 WHEN 1 THEN SHOW WARNINGS; END CASE",
            "FOR i IN 1..1 DO SHOW WARNINGS; END FOR",
            "REPEAT SHOW WARNINGS; UNTIL 1 END REPEAT",
            "l: LOOP SHOW WARNINGS; LEAVE l; END LOOP",
            "SET STATEMENT lock_wait_timeout = 3 FOR IF 1 THEN SHOW WARNINGS; END IF",
            "SET STATEMENT lock_wait_timeout = 3 FOR CALL warned()",
            "EXECUTE IMMEDIATE 'BEGIN NOT ATOMIC SHOW WARNINGS; END'",
        ] {
            for warned in [
                "SELECT CAST('1x' AS SIGNED) FROM t LIMIT 1",
                "SELECT no_such_column",
            ] {
                for another_between in [false, true] {
                    story.sql(a, warned);
                    if another_between {
                        story.sql(b, "SELECT 2 UNION SELECT 3");
                    }
                    story.may_be_gone(a, asks);
                    story.command(a, Command::ResetConnection, b"");
                }
            }
        }
    });
}

/// Remedies of the error: in one transaction.
#[test]
fn in_one_transaction_the_server_answers() {
    same_on_both("asks_held", 1, |story| {
        begin(story);
        for (before, asks) in [
            (COUNTED[0], "CALL counted()"),
            (COUNTED[3], "CALL counted()"),
            (COUNTED[5], "CALL got()"),
            (COUNTED[6], "SELECT rows_before()"),
        ] {
            story.sql(0, HOLD);
            story.all(0, before);
            story.sql(0, asks);
            story.sql(0, "COMMIT");
            story.command(0, Command::ResetConnection, b"");
            story.sql(1, "SELECT CAST('other' AS SIGNED) FROM t WHERE id < 4");
            story.sql(1, "SELECT v FROM t");
        }
    });
}

/// Another cause to pin makes it no text that asks.
#[test]
fn a_text_that_also_pins_for_another_cause_runs_unknown_code() {
    same_on_both("asks_not_but_pins", 1, |story| {
        begin(story);
        let code = "CREATE FUNCTION locking() RETURNS INT DETERMINISTIC RETURN GET_LOCK('mine', 0)";
        story.sql(0, code);
        for text in [
            "CREATE TEMPORARY TABLE mine AS SELECT locking() AS x",
            "SELECT GET_LOCK('another', 0), locking()",
        ] {
            story.sql(0, "INSERT INTO w VALUES (1), (2)");
            story.sql(1, "SELECT CAST('other' AS SIGNED) FROM t WHERE id < 4");
            story.sql(0, text);
            story.command(0, Command::ResetConnection, b"");
            story.sql(1, "SELECT v FROM t");
            let id = story.prepare(0, text).id;
            story.sql(0, "INSERT INTO w VALUES (1), (2)");
            story.sql(1, "SELECT CAST('other' AS SIGNED) FROM t WHERE id < 4");
            story.execute(0, id, &[]);
            story.command(0, Command::ResetConnection, b"");
        }
    });
}

/// Functions that are no keywords are called by a quoted name as well.
#[test]
fn what_quotes_the_name_of_a_question_asks_too() {
    same_on_both("asks_quoted", 1, |story| {
        begin(story);
        for (code, asks) in [
            (
                "CREATE VIEW found_before AS SELECT `FOUND_ROWS`() AS f",
                "SELECT f FROM found_before",
            ),
            (
                "CREATE FUNCTION quoted() RETURNS INT DETERMINISTIC RETURN `found_rows`()",
                "SELECT quoted()",
            ),
            (
                "CREATE PROCEDURE quotes() SELECT `Found_Rows` ()",
                "CALL quotes()",
            ),
            (
                "CREATE TRIGGER quotes BEFORE INSERT ON w FOR EACH ROW SET NEW.a = `found_rows`()",
                "INSERT INTO w VALUES (0)",
            ),
        ] {
            story.sql(0, code);
            // Who defines such a view has named it.
            story.command(0, Command::ResetConnection, b"");
            story.sql(0, "SELECT v FROM t");
            story.sql(1, "SELECT v FROM t WHERE id < 3");
            assert_eq!(story.may_be_gone(0, asks), story.pooled, "{asks}");
            story.command(0, Command::ResetConnection, b"");
        }
        for (before, asks) in [
            (
                "SELECT v FROM t",
                "SELECT `found_rows`(), `connection_id`() > 0 AS c",
            ),
            ("UPDATE t SET v = v + 1", "SELECT `row_count`() + 1 AS c"),
        ] {
            story.sql(0, before);
            story.sql(1, "SELECT v FROM t WHERE id < 3");
            story.sql(0, asks);
            story.command(0, Command::ResetConnection, b"");
        }
    });
}

#[test]
fn a_prepared_call_asks_too() {
    same_on_both("asks_prepared", 1, |story| {
        begin(story);
        for before in &COUNTED[4..8] {
            let id = story.prepare(0, "CALL counted()").id;
            story.all(0, before);
            story.sql(1, "SELECT CAST('other' AS SIGNED) FROM t WHERE id < 4");
            assert_eq!(story.execution_may_be_gone(0, id), story.pooled);
            story.command(0, Command::ResetConnection, b"");
        }
    });
}

/// As long as another backend is free, nobody takes the one about which its last client may ask.
#[test]
fn a_client_that_has_just_had_a_count_stays_on_its_backend() {
    same_on_both("asks_stays", 2, |story| {
        begin(story);
        // Two backends are open from here on.
        for sql in [HOLD, "COMMIT"] {
            story.sql(0, sql);
            story.sql(1, sql);
        }
        for may_count in [
            "UPDATE t, w SET t.v = 7 WHERE t.id = w.a",
            "INSERT INTO w SELECT id FROM t",
            "DELETE FROM w WHERE a IN (SELECT id FROM t WHERE v = 1)",
            "EXPLAIN SELECT v FROM t",
        ] {
            story.sql(0, "SELECT v FROM t");
            story.sql(1, "SELECT v FROM t WHERE id < 3");
            story.sql(0, may_count);
            story.sql(1, "SELECT v FROM t WHERE id < 2");
            story.sql(0, "SELECT FOUND_ROWS()");
        }
    });
}

/// A function that looks at no table leaves MariaDB's conditions to what follows it in the text.
#[test]
fn a_text_that_asks_behind_a_function_is_answered_or_refused() {
    same_on_both("asks_behind_function", 1, |story| {
        begin(story);
        let (a, b) = (0, 1);
        story.sql(
            a,
            "CREATE FUNCTION twice(x INT) RETURNS INT DETERMINISTIC RETURN x * 2",
        );
        for before in ["SELECT * FROM nowhere", "SELECT 1 / 0, v FROM t", "DO 3"] {
            for asks in [
                "SHOW WARNINGS",
                "SELECT @@warning_count",
                "SHOW COUNT(*) ERRORS",
            ] {
                story.sql(a, before);
                story.sql(b, "SELECT v FROM t");
                story.may_be_gone(a, &format!("DO 1; SELECT twice(1); {asks}"));
                story.command(a, Command::ResetConnection, b"");
            }
        }
    });
}

/// Values of the statement before that a trigger would store are those of its own client, or
/// nothing.
#[test]
fn triggers_ask_too() {
    same_on_both("asks_triggers", 1, |story| {
        begin(story);
        story.all(
            0,
            &[
                "CREATE TABLE counted_rows (a INT, c INT, f INT)",
                "CREATE TRIGGER counts BEFORE INSERT ON counted_rows FOR EACH ROW \
                 SET NEW.c = ROW_COUNT(), NEW.f = FOUND_ROWS()",
                "CREATE TABLE own_rows (a INT, c INT)",
                "CREATE TRIGGER counts_own BEFORE INSERT ON own_rows FOR EACH ROW BEGIN \
                 UPDATE t SET v = 0 WHERE id < 3; SET NEW.c = ROW_COUNT(); END",
            ],
        );
        let insert = "INSERT INTO counted_rows (a) VALUES (1), (2)";
        for before in COUNTED {
            story.all(0, before);
            story.sql(1, "SELECT CAST('other' AS SIGNED) FROM t WHERE id < 4");
            let gone = story.may_be_gone(0, insert);
            assert_eq!(gone, story.pooled, "after {before:?}");
            story.sql(0, "TRUNCATE TABLE counted_rows");
            // Nobody in between, or a transaction: the server answers.
            for held in ["DO 0", HOLD] {
                story.sql(0, held);
                story.sql(0, "SELECT v FROM t WHERE id < 3");
                story.sql(0, "UPDATE t SET v = v + 1");
                story.sql(0, insert);
                story.all(0, &["COMMIT", "SELECT * FROM counted_rows"]);
                story.command(0, Command::ResetConnection, b"");
            }
            story.sql(1, "TRUNCATE TABLE counted_rows");
            // This one asks about a statement of its own.
            story.sql(0, "INSERT INTO own_rows (a) VALUES (1), (2)");
            story.sql(0, "SELECT * FROM own_rows");
            let id = story.prepare(0, insert).id;
            story.sql(1, "SELECT v FROM t WHERE id < 2");
            assert_eq!(story.execution_may_be_gone(0, id), story.pooled);
            story.sql(0, "TRUNCATE TABLE counted_rows");
        }
    });
}

/// The call of a routine asks what the triggers that it fires and the views that it reads ask.
#[test]
fn routines_ask_through_triggers_and_views() {
    same_on_both("asks_through", 1, |story| {
        begin(story);
        story.all(
            0,
            &[
                "CREATE TABLE counted_rows (a INT, c INT)",
                "CREATE TRIGGER counts BEFORE INSERT ON counted_rows FOR EACH ROW \
                 SET NEW.c = ROW_COUNT()",
                "CREATE VIEW counting AS SELECT ROW_COUNT() AS c",
                "CREATE PROCEDURE fires() INSERT INTO counted_rows (a) VALUES (1)",
                "CREATE PROCEDURE looks() SELECT c + 0 FROM counting",
                "CREATE PROCEDURE calls() CALL fires()",
                "CREATE VIEW rows_view AS SELECT a FROM counted_rows",
                "CREATE VIEW over_rows AS SELECT a FROM rows_view WHERE a < 9",
                "CREATE PROCEDURE through() INSERT INTO over_rows (a) VALUES (1)",
            ],
        );
        story.command(0, Command::ResetConnection, b"");
        for call in [
            "CALL fires()",
            "CALL looks()",
            "CALL calls()",
            "CALL through()",
            "INSERT INTO rows_view (a) VALUES (1)",
            "REPLACE over_rows (a) VALUES (1)",
        ] {
            story.sql(0, "INSERT INTO w VALUES (1), (2), (3)");
            story.sql(1, "SELECT v FROM t WHERE id < 3");
            assert_eq!(story.may_be_gone(0, call), story.pooled, "{call}");
            story.command(0, Command::ResetConnection, b"");
            story.sql(0, "TRUNCATE TABLE counted_rows");
            story.sql(0, HOLD);
            story.sql(0, "INSERT INTO w VALUES (1), (2), (3)");
            story.sql(0, call);
            story.sql(0, "SELECT * FROM counted_rows");
            story.sql(0, "COMMIT");
            story.command(0, Command::ResetConnection, b"");
            story.sql(1, "TRUNCATE TABLE counted_rows");
        }
    });
}

/// On MariaDB a query of no table leaves the conditions before it to what stands behind.
#[test]
fn a_text_that_asks_in_its_second_statement_is_answered_or_refused() {
    same_on_both("asks_second", 1, |story| {
        begin(story);
        for before in ["SELECT * FROM nowhere", "SELECT 1 / 0, v FROM t", "DO 3"] {
            for text in [
                "SELECT 1; SHOW WARNINGS; PREPARE s FROM 'SELECT 5'",
                "SELECT 1; SELECT @@warning_count; PREPARE s FROM 'SELECT 5'",
                "SHOW WARNINGS; SELECT ROW_COUNT(); PREPARE s FROM 'SELECT 5'",
                "SELECT v FROM t WHERE id = 9; SHOW WARNINGS; PREPARE s FROM 'SELECT 5'",
            ] {
                story.sql(0, before);
                story.sql(1, "SELECT v FROM t");
                story.may_be_gone(0, text);
                story.command(0, Command::ResetConnection, b"");
            }
        }
    });
}

/// A text that changes how its rest is read is read as far as its first statement.
#[test]
fn code_asks_in_front_of_what_changes_how_a_text_is_read() {
    same_on_both("asks_in_front", 1, |story| {
        begin(story);
        for text in [
            "CALL counted(); SET sql_mode = ''",
            "SELECT rows_before(); SET NAMES latin1",
            "CALL counted(); SET character_set_client = latin1; SELECT 1",
        ] {
            story.sql(0, "UPDATE t SET v = v + 1");
            story.sql(1, "SELECT v FROM t");
            story.may_be_gone(0, text);
            story.command(0, Command::ResetConnection, b"");
            story.sql(0, "UPDATE t SET v = v + 1");
            story.may_be_gone(0, text);
            story.command(0, Command::ResetConnection, b"");
        }
    });
}

/// A question behind what changes how it is read is answered from its own client's statement, or
/// refused.
#[test]
fn a_text_asks_behind_what_changes_how_it_is_read() {
    same_on_both("asks_behind_mode", 1, |story| {
        begin(story);
        for text in [
            "SET sql_mode = ''; SHOW WARNINGS",
            "SET sql_mode = DEFAULT; SET character_set_filesystem = 'binary'; SHOW WARNINGS",
            "SET sql_mode = ''; SELECT @@warning_count, @@error_count",
            "SET sql_mode = ''; SHOW COUNT(*) WARNINGS",
            "SET NAMES latin1; SHOW WARNINGS",
            "SET sql_mode = 'ANSI_QUOTES'; SELECT ROW_COUNT(), FOUND_ROWS()",
        ] {
            for before in ["DROP TABLE nosuch", "SELECT CAST('own' AS SIGNED)", "DO 1"] {
                story.sql(0, before);
                story.sql(1, "SELECT CAST('other' AS SIGNED), v FROM t");
                story.may_be_gone(0, text);
                story.command(0, Command::ResetConnection, b"");
            }
        }
    });
}

/// Values of the statement before that a view shows are those of its own client, or nothing.
#[test]
fn views_ask_too() {
    same_on_both("asks_views", 1, |story| {
        begin(story);
        story.all(
            0,
            &[
                "CREATE VIEW counted_view AS SELECT ROW_COUNT() AS c, FOUND_ROWS() AS f",
                "CREATE VIEW over_view AS SELECT f + 1 FROM counted_view",
                "CREATE VIEW calling_view AS SELECT rows_before()",
                "CREATE VIEW plain_view AS SELECT v FROM t",
            ],
        );
        story.command(0, Command::ResetConnection, b"");
        let asks = [
            "SELECT * FROM counted_view",
            "SELECT * FROM over_view",
            "SELECT * FROM calling_view",
            "INSERT INTO w SELECT f FROM counted_view",
        ];
        for asks in asks {
            story.sql(0, "SELECT v FROM t WHERE id < 3");
            story.sql(1, "SELECT CAST('other' AS SIGNED) FROM t WHERE id < 4");
            let gone = story.may_be_gone(0, asks);
            assert_eq!(gone, story.pooled, "{asks}");
            story.sql(1, "SELECT v FROM t WHERE id < 2");
            story.sql(0, "SELECT v FROM plain_view");
            story.sql(0, "SHOW CREATE VIEW counted_view");
            // A transaction: the server answers.
            story.all(
                0,
                &["BEGIN", "SELECT v FROM t WHERE id < 3", asks, "COMMIT"],
            );
            story.command(0, Command::ResetConnection, b"");
        }
    });
}

/// The pool reads back what a statement has warned of, or why it failed. That changes nothing that
/// code could ask for.
#[test]
fn behind_a_warning_code_asks_where_nobody_else_has_been() {
    same_on_both("asks_warned", 1, |story| {
        begin(story);
        for before in [
            "SELECT CAST('own' AS SIGNED)",
            "SELECT CAST('own' AS SIGNED) FROM t WHERE id < 4",
        ] {
            for asks in ["CALL counted()", "CALL got()", "SELECT rows_before()"] {
                story.all(0, &["SELECT v FROM t", before, asks]);
                story.command(0, Command::ResetConnection, b"");
                story.sql(1, "SELECT 1");
            }
        }
    });
}

/// A backend is closed for a client that it cannot serve, which has no default schema, while the
/// question of the one that it served last waits behind that client (WordPress on few backends).
#[test]
fn a_backend_that_makes_room_is_asked_first_for_a_client_that_waits() {
    for real in both_servers("asks_room") {
        fresh_schema(real, "asks_room");
        let pool = start_pool(real, "asks_room.toml", "backends_max = 1\ngroups = 1");
        let account = app().schema("asks_room");
        let [mut holds, mut asks] = [(); 2].map(|()| login(&pool.address, &account));
        let mut schemaless = login(&pool.address, &app());
        holds.must("CREATE TABLE t (id INT PRIMARY KEY)");
        holds.must("INSERT INTO t VALUES (1), (2), (3)");
        holds.must(HOLD);
        let texts: [(Command, &[u8]); 2] = [
            (
                Command::Query,
                b"SELECT SQL_CALC_FOUND_ROWS id FROM t LIMIT 1",
            ),
            (Command::Query, b"SELECT FOUND_ROWS()"),
        ];
        asks.send(&texts).unwrap();
        pool.wait_for_census("waiting: 1,").unwrap();
        schemaless.send(&[(Command::Query, b"SELECT 7")]).unwrap();
        pool.wait_for_census("waiting: 2,").unwrap();
        holds.must("COMMIT");
        asks.receive().unwrap();
        let found = format!("{:?}", asks.receive().unwrap());
        assert!(found.contains("[\"3\"]"), "{found}");
        schemaless.receive().unwrap();
    }
}

/// As long as there may be one more backend, nobody takes that of a client that has been warned.
#[test]
fn a_client_that_has_been_warned_keeps_its_backend() {
    for real in both_servers("asks_spare") {
        fresh_schema(real, "asks_spare");
        let pool = start_pool(real, "asks_spare.toml", "backends_max = 3\ngroups = 1");
        let account = app().schema("asks_spare");
        let mut clients: Vec<_> = (0..3).map(|_| login(&pool.address, &account)).collect();
        clients[0].must("CREATE PROCEDURE counted() SELECT ROW_COUNT(), FOUND_ROWS()");
        clients[0].must("CREATE TABLE t (id INT)");
        // Nobody waits, and still there are two.
        clients[0].must("SELECT CAST('own' AS SIGNED)");
        let opened = pool.wait_for_census("backends_idle: 2");
        opened.expect("one more is opened");
        clients[0].must("SELECT CAST('own' AS SIGNED)");
        for other in [1, 2, 1] {
            clients[other].must("SELECT id FROM t");
        }
        clients[0].must("CALL counted()");
    }
}

/// A session that starts over has counted nothing; its backend has, whatever the pool has said
/// there since.
#[test]
fn who_has_started_over_asks_about_nothing_that_was_before() {
    same_on_both("asks_anew", 1, |story| {
        begin(story);
        story.all(
            0,
            &[
                "CREATE TABLE counted_rows (a INT, c INT, f INT)",
                "CREATE TRIGGER counts BEFORE INSERT ON counted_rows FOR EACH ROW \
                 SET NEW.c = ROW_COUNT(), NEW.f = FOUND_ROWS()",
            ],
        );
        let account = app().schema(&story.schema).with(cap::MULTI_STATEMENTS);
        for asks in [
            "INSERT INTO counted_rows (a) VALUES (1)",
            // What the first of several leaves comes too late for its own trigger.
            "INSERT INTO counted_rows (a) VALUES (1); SELECT c, f FROM counted_rows",
            "SELECT v FROM t; INSERT INTO counted_rows (a) VALUES (1)",
            "CALL counted()",
        ] {
            for before in ["SELECT v FROM t", "UPDATE t SET v = v + 1", "DO 0"] {
                for reset in [true, false] {
                    let who = story.join_as(&account);
                    story.sql(who, before);
                    match reset {
                        true => story.command(who, Command::ResetConnection, b""),
                        false => story.change_user(who, &account),
                    }
                    story.may_be_gone(who, asks);
                    story.command(who, Command::ResetConnection, b"");
                    story.sql(0, "TRUNCATE TABLE counted_rows");
                }
            }
        }
    });
}
