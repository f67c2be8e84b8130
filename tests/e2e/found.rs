//! FOUND_ROWS() of queries that count otherwise than they send, asked after another client has used
//! the backend.
//!
//! One backend for two clients: nobody may be pinned, or the other would wait in vain. Where stored
//! code pins, there are two.

use crate::compare::{Story, same, same_on, same_on_both};
use crate::world::{app, mysql};
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
        for (before, known) in [
            ("SELECT v FROM t LIMIT 3", true),
            ("SELECT SQL_CALC_FOUND_ROWS v FROM t LIMIT 1", true),
            (
                "SELECT SQL_CALC_FOUND_ROWS v FROM t ORDER BY v LIMIT 0",
                true,
            ),
            (
                "SELECT SQL_CALC_FOUND_ROWS v, CAST('x' AS SIGNED) FROM t LIMIT 1",
                true,
            ),
            ("SHOW TABLES", true),
            ("SHOW FULL COLUMNS FROM t", true),
            ("SHOW CREATE TABLE t", true),
            ("SHOW VARIABLES LIKE 'no such'", true),
            ("INSERT INTO w VALUES (1), (2)", true),
            ("SELECT v FROM t LIMIT 1 OFFSET 1", false),
            ("SELECT v FROM t LIMIT 9, 1", false),
            ("SELECT v FROM t UNION SELECT 9 LIMIT 2", false),
            ("SELECT 7 INTO @a", false),
            ("WITH x AS (SELECT 1 AS n) SELECT n FROM x", false),
        ] {
            story.sql(0, before);
            // At once, and behind another client.
            story.sql(0, "SELECT FOUND_ROWS()");
            story.sql(0, before);
            story.sql(1, "SELECT v FROM t WHERE id < 3");
            let gone = story.may_be_gone(0, "SELECT FOUND_ROWS() AS n");
            assert!(!gone || !known, "{before}");
            story.sql(1, "SELECT FOUND_ROWS() AS n");
        }
    });
}

/// WordPress and others ask right behind such a query; warnings that it leaves stay.
#[test]
fn rows_that_a_query_was_to_calculate_are_told_to_a_crowd() {
    same_on_both("found_crowd", 1, |story| {
        begin(story);
        let texts = [
            "SELECT SQL_CALC_FOUND_ROWS v FROM t LIMIT 1",
            "SELECT SQL_CALC_FOUND_ROWS v FROM t WHERE id < 3 LIMIT 1",
        ];
        for who in [0, 1, 0, 1] {
            story.sql(who, texts[who]);
        }
        for asks in ["SHOW COUNT(*) ERRORS", "SELECT FOUND_ROWS()"] {
            for who in [0, 1] {
                story.sql(who, texts[who]);
            }
            for who in [0, 1] {
                story.sql(who, asks);
            }
        }
        story.all(0, &["BEGIN", texts[0], "COMMIT"]);
        story.sql(1, "SELECT v FROM t WHERE id < 3");
        story.sql(0, "SELECT FOUND_ROWS()");
        story.all(0, &[texts[0], "UPDATE w SET a = 1"]);
        story.sql(1, "SELECT v FROM t WHERE id < 3");
        story.may_be_gone(0, "SELECT FOUND_ROWS()");
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

/// A text that tells that it keeps the number. Others may keep it or not: where the backend did not
/// have their client's, a question is refused.
const TOLD: [&str; 1] = ["DELETE FROM w WHERE a = 7"];

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

/// A number outlives its session.
#[test]
fn a_number_outlives_reset_and_close() {
    same_on_both("found_reset", 1, |story| {
        begin(story);
        for others in [false, true] {
            story.sql(0, "SELECT v FROM t");
            if others {
                story.sql(1, "SELECT v FROM t WHERE id = 1");
            }
            story.command(0, Command::ResetConnection, b"");
            story.sql(1, "SELECT v FROM t WHERE id = 1");
            let gone = story.may_be_gone(0, "SELECT FOUND_ROWS()");
            assert!(!gone, "it is known");
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
            "SELECT 1 / 0 FROM t; GET DIAGNOSTICS @n = NUMBER; SELECT @n",
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
                story.may_be_gone(0, "SELECT FOUND_ROWS()");
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
                story.may_be_gone(a, ask);
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
                story.may_be_gone(a, asks);
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
        story.sql(a, "SELECT 1");
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
