//! FOUND_ROWS() of queries that count otherwise than they send, asked after another client has used
//! the backend.
//!
//! One backend for two clients: nobody may be pinned, or the other would wait in vain. Where stored
//! code pins, there are two.

use crate::compare::{Story, same, same_on, same_on_both};
use crate::world::{app, both_servers, fresh_schema, login, mysql, start_pool};
use testkit::reply::Outcome;
use wire::capabilities as cap;
use wire::command::Command;

/// A client that is told that the answer is gone is pinned, and everything after that waits in
/// vain.
fn answered(reply: &[Outcome], text: &str, before: &str) {
    let gone = |outcome: &Outcome| matches!(outcome, Outcome::Failed(why) if why.code == 1235);
    assert!(!reply.iter().any(gone), "{text}, after {before}: {reply:?}");
}

/// Two clients with FOUND_ROWS() of 4 each, and a table.
fn begin(story: &mut Story) {
    story.columns = true;
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
            "SELECT v FROM t",
        ],
    );
    story.sql(b, "SELECT v FROM t");
}

#[test]
fn queries_that_count_more_than_they_send_pin_nobody() {
    same_on_both("found_more", 1, |story| {
        begin(story);
        for before in [
            "SELECT v FROM t LIMIT 1 OFFSET 1",
            "SELECT v FROM t LIMIT 9, 1",
            "SELECT SQL_CALC_FOUND_ROWS v FROM t LIMIT 1",
            "SELECT SQL_CALC_FOUND_ROWS v FROM t ORDER BY v LIMIT 0",
            "SELECT v FROM t UNION SELECT 9 LIMIT 2",
            "SELECT v FROM t UNION ALL SELECT v FROM t",
            "SELECT 7 INTO @a",
            "SELECT v FROM t WHERE id = 77 INTO @a",
            "WITH x AS (SELECT 1 AS n) SELECT n FROM x",
            "DO 1",
            "SHOW TABLES",
            "SHOW FULL COLUMNS FROM t",
            "SHOW CREATE TABLE t",
            "SHOW GRANTS",
            "SHOW VARIABLES LIKE 'no such'",
            "CREATE TABLE IF NOT EXISTS w (a INT)",
            "INSERT INTO w VALUES (1), (2)",
        ] {
            story.sql(0, before);
            // At once, and behind another client.
            story.sql(0, "SELECT FOUND_ROWS()");
            story.sql(0, before);
            story.sql(1, "SELECT v FROM t WHERE id < 3");
            story.sql(0, "SELECT FOUND_ROWS() AS n");
            story.sql(1, "SELECT FOUND_ROWS() AS n");
        }
    });
}

/// Another client's number is not told behind a query that begins with VALUES.
#[test]
fn queries_in_parentheses_may_begin_with_values() {
    same_on_both("found_values", 1, |story| {
        begin(story);
        // A text that MySQL cannot read is quoted in its error, with the answer in it.
        let row = if story.mysql() { "ROW" } else { "" };
        for (found, before) in [
            "INSERT INTO w SET a = (VALUES (3))",
            "REPLACE INTO w VALUES ((VALUES (3)))",
            "SELECT (VALUES ROW(1)), FOUND_ROWS()",
            "SET @f = FOUND_ROWS() + (VALUES ROW(0))",
            "SELECT v FROM t WHERE id = (VALUES (1), (2))",
            "SET @x = (VALUES (1))",
            "DO (VALUES (1))",
            "INSERT INTO w VALUES (1) RETURNING (VALUES (1))",
            "INSERT INTO w SET a = (TABLE w LIMIT 1)",
            "SET @x = (TABLE w LIMIT 1)",
        ]
        .into_iter()
        .flat_map(|before| [2, 0].map(|found| (found, before)))
        {
            story.sql(0, &format!("SELECT v FROM t WHERE id <= {found}"));
            story.sql(1, "SELECT 2 UNION SELECT 3 UNION SELECT 4");
            let before = &before.replace("ROW(", &format!("{row}("));
            story.may_be_gone(0, before);
            story.sql(1, "SELECT 2 UNION SELECT 3 UNION SELECT 4");
            // One that asks may have been refused, and has not run then.
            if !before.contains("FOUND_ROWS") {
                story.may_be_gone(0, "SELECT FOUND_ROWS()");
            }
            story.command(0, Command::ResetConnection, b"");
        }
    });
}

/// Texts that tell what they make of the number. Others may keep it or not: where the backend did
/// not have their client's, a question is refused.
const TOLD: [&str; 4] = [
    "UPDATE t SET v = v + 1",
    "UPDATE t SET v = v WHERE id = 2",
    "DELETE FROM w WHERE a = 7",
    "DROP TABLE IF EXISTS made",
];

/// Effect of a text on the number that was there before, whatever that was.
#[test]
fn what_counts_or_keeps_the_number_is_followed() {
    same_on_both("found_or_kept", 1, |story| {
        begin(story);
        for before in [
            "UPDATE t SET v = v + 1",
            "UPDATE t SET v = v WHERE id = 2",
            "UPDATE t SET v = v WHERE id = 77",
            "UPDATE t SET v = v WHERE 1 = 0",
            "UPDATE t SET v = v WHERE id IN (SELECT a FROM w)",
            "UPDATE t SET v = (SELECT COUNT(*) FROM w) WHERE id < 3",
            "UPDATE t, w SET t.v = 1 WHERE t.id = w.a",
            "DELETE FROM w WHERE a = 7",
            "DELETE FROM w WHERE a IN (SELECT id FROM t)",
            "DELETE w FROM w JOIN t ON w.a = t.id",
            "INSERT INTO w SELECT id FROM t LIMIT 3",
            "INSERT INTO w SELECT 1",
            "INSERT INTO w (a) VALUES ((SELECT COUNT(*) FROM t))",
            "EXPLAIN SELECT v FROM t",
            "EXPLAIN SELECT 1 UNION SELECT 2",
            "DESCRIBE t",
            "CHECK TABLE t",
            "FLUSH TABLES",
            "SET @a = (SELECT COUNT(*) FROM t)",
            "CREATE TABLE made SELECT v FROM t",
            "DROP TABLE IF EXISTS made",
            "KILL 0",
            "SELECT v, IF(id = 3, POW(9999, 9999), 1) FROM t",
            "SELECT v FROM t ORDER BY IF(id = 3, POW(9999, 9999), 1)",
            "INSERT INTO t VALUES (1, 1)",
            "UPDATE t SET id = 1",
            "SHOW ENGINES",
            "SHOW ENGINE INNODB STATUS",
        ] {
            for number in ["id < 1", "id < 3", "id < 5"] {
                story.sql(0, &format!("SELECT v FROM t WHERE {number}"));
                for others in ["id < 2", "id < 1"] {
                    story.sql(1, &format!("SELECT v FROM t WHERE {others}"));
                    let _ = story.client(0).query(before);
                    story.sql(1, &format!("SELECT v FROM t WHERE {others}"));
                    let gone = story.may_be_gone(0, "SELECT FOUND_ROWS() AS n");
                    assert!(!gone || !TOLD.contains(&before), "{before}");
                    story.sql(0, &format!("SELECT v FROM t WHERE {number}"));
                }
            }
        }
    });
}

/// A number outlives its session, and a home that is closed is asked before.
#[test]
fn a_number_outlives_reset_and_close() {
    same_on_both("found_reset", 1, |story| {
        begin(story);
        for others in [false, true] {
            story.sql(0, "SELECT v FROM t UNION ALL SELECT v FROM t");
            if others {
                story.sql(1, "SELECT v FROM t WHERE id = 1");
            }
            story.command(0, Command::ResetConnection, b"");
            story.sql(1, "SELECT v FROM t WHERE id = 1");
            story.sql(0, "SELECT FOUND_ROWS()");
        }
    });
}

#[test]
fn a_text_asks_what_it_has_counted_itself() {
    same_on_both("found_in_text", 1, |story| {
        begin(story);
        for text in [
            "SELECT SQL_CALC_FOUND_ROWS v FROM t LIMIT 1; SELECT FOUND_ROWS()",
            "SELECT v FROM t LIMIT 1; SELECT FOUND_ROWS(), ROW_COUNT()",
            "UPDATE t SET v = v + 1; SELECT ROW_COUNT()",
            "SELECT FOUND_ROWS(); SELECT 1",
            "SELECT ROW_COUNT(), FOUND_ROWS(); SELECT CONNECTION_ID() IS NULL AS n",
            "SELECT 1 / 0 FROM t; GET DIAGNOSTICS @n = NUMBER; SELECT @n",
            "GET DIAGNOSTICS @n = NUMBER, @r = ROW_COUNT; SELECT @n, @r",
            "SELECT @@warning_count; SELECT 2",
        ] {
            for before in [
                "SELECT v FROM t",
                "SELECT 1 / 0, 2 FROM t",
                "INSERT INTO w VALUES (1)",
            ] {
                story.sql(0, before);
                story.sql(1, "SELECT 1 / 0 FROM t WHERE id = 1");
                answered(&story.sql(0, text), text, before);
                story.sql(1, "SELECT v FROM t WHERE id < 3");
                answered(&story.sql(0, "SELECT FOUND_ROWS()"), text, before);
            }
        }
    });
}

#[test]
fn stored_code_counts_or_leaves_the_number_as_it_was() {
    same_on_both("found_in_code", 3, |story| {
        begin(story);
        for routine in [
            "CREATE PROCEDURE counts() SELECT SQL_CALC_FOUND_ROWS v FROM t LIMIT 1",
            "CREATE PROCEDURE leaves() SET @x = 1",
            "CREATE FUNCTION f() RETURNS INT RETURN (SELECT COUNT(*) FROM t)",
        ] {
            story.sql(0, routine);
        }
        for call in [
            "CALL counts()",
            "CALL leaves()",
            "SELECT f(), 2",
            "SELECT f() FROM t",
        ] {
            let account = app().schema(&story.schema).without(cap::SESSION_TRACK);
            let one = story.join_as(&account);
            story.sql(one, "SELECT v FROM t WHERE id < 4");
            story.sql(1, "SELECT v FROM t WHERE id < 3");
            story.sql(one, call);
            story.sql(1, "SELECT 1");
            story.may_be_gone(one, "SELECT FOUND_ROWS()");
            story.command(one, Command::ResetConnection, b"");
        }
    });
}

/// On MySQL an UPDATE that fails has counted the rows that it has matched. Nobody is told those of
/// a SELECT before it.
#[test]
fn an_update_that_fails_leaves_no_older_count() {
    let Some(real) = mysql("found_failed_update") else {
        return;
    };
    same_on(real, "found_failed_update", 1, |story| {
        begin(story);
        story.sql(0, "CREATE TABLE two (id INT PRIMARY KEY, a INT UNIQUE)");
        story.sql(0, "INSERT INTO two VALUES (1, 1), (2, 3)");
        for behind in ["SELECT 1", "INSERT INTO two VALUES (9, 9)"] {
            story.sql(0, "SELECT v FROM t WHERE id < 3");
            story.sql(1, "SELECT v FROM t WHERE id < 4");
            story.sql(0, "UPDATE two SET a = 3 WHERE id = 1");
            story.sql(1, "SELECT v FROM t WHERE id < 4");
            story.sql(0, behind);
            story.sql(1, "SELECT v FROM t WHERE id < 4");
            story.may_be_gone(0, "SELECT FOUND_ROWS()");
        }
    });
}

/// A client that waits for a backend gets one where another client's error has just been asked
/// about: what clears that counts on MySQL, and so does what the pool asks there.
#[test]
fn what_goes_out_ahead_of_a_question_is_not_counted() {
    same_on_both("found_ahead", 1, |story| {
        begin(story);
        for error in ["SELECT * FROM nowhere", "SELECT 1 / 0 FROM t LIMIT 2"] {
            for _ in 0..5 {
                story.sql(0, "SELECT v FROM t WHERE id < 4");
                story.sql(1, "SELECT v FROM t WHERE id < 4");
                story
                    .client(1)
                    .send(&[(Command::Query, error.as_bytes())])
                    .unwrap();
                story.sql(0, "SELECT FOUND_ROWS(), ROW_COUNT()");
                story.end(1);
                story.sql(0, "SELECT FOUND_ROWS(), ROW_COUNT()");
            }
        }
    });
}

/// Commands that bring a backend into its client's session may warn, and are none of the client's:
/// nothing that counts on MySQL comes between that and who asks.
#[test]
fn what_warns_in_front_of_a_question_takes_no_count_away() {
    let test = "found_behind_warnings";
    let Some(real) = mysql(test) else {
        return;
    };
    same_on(real, test, 1, |story| {
        begin(story);
        let account = app().schema(&story.schema).without(cap::SESSION_TRACK);
        let (a, b) = (story.join_as(&account), 1);
        story.sql(b, "USE information_schema");
        let warns = "SET default_collation_for_utf8mb4 = utf8mb4_general_ci";
        story.sql(a, warns);
        let there = format!("SELECT v FROM {test}.t WHERE id < 3");
        let slow = format!("{there} AND SLEEP(0.1) = 0");
        // What has `infile` in it is not sent behind its session in one text.
        for ask in ["SELECT FOUND_ROWS()", "SELECT FOUND_ROWS() AS `infile`"] {
            for waits in [false, true] {
                story.sql(a, "SELECT v FROM t WHERE id < 3");
                story.sql(b, &there);
                if waits {
                    let sleeps = [(Command::Query, slow.as_bytes())];
                    story.client(b).send(&sleeps).unwrap();
                }
                story.sql(a, ask);
                if waits {
                    story.end(b);
                }
            }
        }
    });
}

/// An UPDATE that matches nothing leaves it to the server which number counts; one that warns
/// besides has conditions, which that question must not take away.
#[test]
fn an_update_that_matches_nothing_keeps_its_warnings() {
    same_on_both("found_warned", 1, |story| {
        begin(story);
        let (a, b) = (0, 1);
        story.sql(a, "SET sql_mode = ''");
        for asks in [
            "SHOW WARNINGS",
            "SELECT @@warning_count",
            "SELECT FOUND_ROWS()",
        ] {
            for before in [
                "UPDATE t SET v = 1 WHERE v = '77abc'",
                "UPDATE t SET v = 1 WHERE v = CAST('77abc' AS SIGNED)",
            ] {
                story.sql(a, "SELECT v FROM t");
                story.sql(a, before);
                story.sql(a, asks);
                story.sql(a, "SELECT v FROM t");
                story.sql(a, before);
                story.sql(b, "SELECT 1");
                story.sql(a, asks);
            }
        }
    });
}

/// MariaDB counts the rows so far of the same text: nobody is told those of a statement before.
#[test]
fn a_text_that_counts_itself_is_answered_or_refused() {
    same_on_both("found_itself", 1, |story| {
        begin(story);
        let (a, b) = (0, 1);
        for asks in [
            "SELECT ROW_COUNT() UNION ALL SELECT FOUND_ROWS()",
            "SELECT 7 UNION ALL SELECT FOUND_ROWS() UNION ALL SELECT FOUND_ROWS()",
            "SELECT FOUND_ROWS() FROM (SELECT 1) x",
            "SELECT FOUND_ROWS(), id FROM t WHERE id IN (SELECT 1 UNION SELECT 2) ORDER BY id",
            "SELECT * FROM (SELECT FOUND_ROWS()) x",
            "(SELECT FOUND_ROWS())",
            "SELECT (SELECT FOUND_ROWS())",
            "SET @f = (SELECT FOUND_ROWS())",
        ] {
            for between in [false, true] {
                story.sql(a, "SELECT v FROM t LIMIT 3");
                if between {
                    story.sql(b, "SELECT 1");
                }
                match story.may_be_gone(a, asks) {
                    true => story.say("client 0: SELECT @f: gone"),
                    false => drop(story.sql(a, "SELECT @f")),
                }
            }
        }
    });
}

/// Neither text nor reply tells whether such a statement counts. Its backend does, where its number
/// is another behind it than before.
#[test]
fn what_may_count_or_not_is_asked_where_it_ran() {
    same_on_both("found_unsure", 1, |story| {
        begin(story);
        story.sql(0, "CREATE PROCEDURE three() SELECT v FROM t LIMIT 3");
        let mut answered = 0;
        for unsure in [
            "INSERT INTO w SELECT id FROM t",
            "EXPLAIN SELECT 7",
            "UPDATE t, w SET t.v = 7 WHERE t.id = w.a",
            "DELETE FROM w WHERE a IN (SELECT id FROM t)",
            "SET @a = 1; COMMIT",
            "CALL three()",
            "SHOW ENGINES",
        ] {
            for (own, other) in [(4, 2), (2, 4), (0, 3)] {
                for late in [false, true] {
                    story.sql(0, &format!("SELECT v FROM t LIMIT {own}"));
                    story.sql(1, &format!("SELECT v FROM t LIMIT {other}"));
                    story.sql(0, unsure);
                    if late {
                        story.let_pool_finish();
                    }
                    // Whoever comes in between, or a statement of its own that counts nothing.
                    match own {
                        4 => story.sql(1, "SELECT 7"),
                        2 => story.sql(0, "INSERT INTO w VALUES (9)"),
                        _ => story.sql(1, "INSERT INTO w VALUES (9)"),
                    };
                    let gone = story.may_be_gone(0, "SELECT FOUND_ROWS(), ROW_COUNT()");
                    answered += usize::from(!gone);
                    if late {
                        story.command(0, Command::ResetConnection, b"");
                    }
                }
            }
        }
        assert!(!story.pooled || answered > 0);
    });
}

/// An SQLSTATE in such a character set is none, so that no SIGNAL raises what the pool refuses.
#[test]
fn what_is_refused_in_a_wide_character_set_is_an_error_all_the_same() {
    for real in both_servers("found_wide") {
        fresh_schema(real, "found_wide");
        let pool = start_pool(real, "found_wide.toml", "backends_max = 1\ngroups = 1");
        let account = app().schema("found_wide");
        let [mut a, mut b] = [(); 2].map(|()| login(&pool.address, &account));
        a.must("CREATE TABLE w (a INT)");
        a.must("INSERT INTO w VALUES (1), (2), (3), (4)");
        for set in ["ucs2", "utf16", "utf32"] {
            let mut refused = 0;
            // Behind some of these nobody can tell whether the INSERT has counted.
            for found in 0..3 {
                a.must("SELECT a FROM w LIMIT 4");
                b.must(&format!("SELECT a FROM w LIMIT {found}"));
                a.must("INSERT INTO w SELECT 1");
                a.must(&format!("SET character_set_connection = {set}"));
                let outcomes = a.query("SELECT FOUND_ROWS()").unwrap();
                if let Outcome::Failed(failure) = &outcomes[0] {
                    assert_eq!(failure.code, 1235, "{set}");
                    refused += 1;
                }
                assert_eq!(a.value("SELECT 5"), "5", "{set}");
                a.run(Command::ResetConnection, b"").unwrap();
            }
            assert!(refused > 0, "{set}");
            a.must(&format!("SET character_set_connection = {set}"));
            let unknown = [0x77, 0, 0, 0x70, 0, 1, 0, 0, 0];
            let outcomes = a.run(Command::StmtExecute, &unknown).unwrap();
            assert_eq!(outcomes[0].failure().code, 1243, "{set}");
            assert_eq!(a.value("SELECT 6"), "6", "{set}");
            a.run(Command::ResetConnection, b"").unwrap();
        }
    }
}

/// Names of tables, columns, keys and views are no calls, whatever they are.
#[test]
fn names_like_those_of_the_questions_are_no_questions() {
    same_on_both("found_named", 2, |story| {
        let account = app().schema(&story.schema).with(cap::MULTI_STATEMENTS);
        let (a, b) = (story.join_as(&account), story.join_as(&account));
        story.sql(a, "CREATE TABLE t (v INT)");
        for mode in ["", "IGNORE_SPACE"] {
            story.sql(a, &format!("SET sql_mode = '{mode}'"));
            for name in ["found_rows", "row_count", "last_insert_id", "connection_id"] {
                for text in [
                    "CREATE TABLE % (a INT, b INT, KEY % (a))",
                    "INSERT INTO % (a, b) VALUES (1, 2)",
                    "INSERT INTO %(a) VALUES (3)",
                    "INSERT INTO % () VALUES ()",
                    "REPLACE INTO %(b) SELECT v FROM t",
                    "CREATE INDEX %_b ON %(b)",
                    "ALTER TABLE % ADD INDEX row_count(b, a), ADD KEY (a)",
                    "CREATE TABLE r (a INT, FOREIGN KEY %(a) REFERENCES %(a))",
                    "DROP TABLE r",
                    "WITH %(a) AS (SELECT 5) SELECT * FROM %",
                    "SELECT %.a FROM % WHERE %.a IN (1, 2)",
                    "CREATE VIEW w(%) AS SELECT 1",
                    "SELECT %, (SELECT 2) FROM w",
                    "SELECT 1 FROM w AS %(a)",
                    "SELECT %() IS NULL AS n",
                    "SELECT % (7)",
                    "DROP VIEW w",
                    "DROP TABLE %",
                ] {
                    // What is asked of the statement before is not at hand any more.
                    story.all(a, &["UPDATE t SET v = 1", "SELECT * FROM t UNION SELECT 1"]);
                    story.all(b, &["INSERT INTO t VALUES (1)", "DELETE FROM t"]);
                    let text = text.replace('%', name);
                    story.all(b, &["BEGIN", "DO 1", "SELECT v FROM t"]);
                    story.sql(a, &text);
                    story.sql(b, "COMMIT");
                }
            }
        }
    });
}

/// The value that the pool puts in place of a question has the name of the question, in RETURNING
/// too.
#[test]
fn a_column_of_returning_is_named_as_on_the_server() {
    same("returning_named", 1, |story| {
        story.columns = true;
        let (a, other) = (story.join(), story.join());
        story.sql(
            a,
            "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)",
        );
        // What a thread found for its last session is no answer of this one.
        story.sql(a, "SELECT 1 UNION SELECT 2");
        let asks = "INSERT INTO t (v) VALUES (1), (2) RETURNING id, ROW_COUNT(), FOUND_ROWS()";
        let prepared = story.prepare(a, asks).id;
        for _ in 0..2 {
            story.sql(other, "SELECT 1");
            story.may_be_gone(a, asks);
            story.sql(other, "SELECT 1");
            story.execution_may_be_gone(a, prepared);
            story.sql(other, "SELECT 1");
            story.sql(
                a,
                "DELETE FROM t WHERE v = 1 RETURNING id, ROW_COUNT() AS n",
            );
        }
    });
}
