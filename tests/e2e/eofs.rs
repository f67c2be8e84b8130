//! Clients without CLIENT_DEPRECATE_EOF: what stands in front of the rows, and what comes later
//! because an EOF packet has no room for it. Stories compare the EOF packet behind the columns too
//! (`testkit::reply::Rows::begin`).

use crate::compare::{Story, same_on_both};
use crate::world::app;
use wire::capabilities as cap;
use wire::command::Command;

/// Clients that agreed on neither, one or both of what says where a result set ends.
fn old_and_new(story: &mut Story) -> [usize; 3] {
    let account = app()
        .schema(&story.schema.clone())
        .with(cap::MULTI_STATEMENTS | cap::LOCAL_FILES);
    [
        account.clone(),
        account.clone().without(cap::DEPRECATE_EOF),
        account.without(cap::DEPRECATE_EOF | cap::SESSION_TRACK),
    ]
    .map(|account| story.join_as(&account))
}

/// The status of what follows a procedure's own cursor says that one is open, and rows follow.
#[test]
fn a_cursor_of_a_procedure_is_none_of_its_clients() {
    same_on_both("eof_cursors", 2, |story| {
        let clients = old_and_new(story);
        story.all(
            clients[0],
            &[
                "CREATE PROCEDURE opens() BEGIN DECLARE own CURSOR FOR SELECT 'stuff'; OPEN own; \
                 CLOSE own; SELECT 1 AS a, 2 AS b; SELECT 3 AS a, 4 AS b; END",
                "CREATE PROCEDURE leaves_open() BEGIN DECLARE own CURSOR FOR SELECT 'stuff'; \
                 OPEN own; SELECT 1; END",
            ],
        );
        for who in clients {
            for sql in ["CALL opens()", "CALL leaves_open()", "SELECT 7"] {
                let id = story.prepare(who, sql).id;
                story.sql(who, sql);
                story.execute(who, id, &[]);
                story.execute(who, id, &[]);
                story.sql(who, "SELECT 8");
            }
        }
    });
}

#[test]
fn flags_and_warnings_stand_in_front_of_the_rows() {
    same_on_both("eof_flags", 2, |story| {
        let clients = old_and_new(story);
        story.all(
            clients[0],
            &[
                "CREATE TABLE t (a INT PRIMARY KEY, b INT)",
                "INSERT INTO t VALUES (1, 1), (2, 2)",
                "CREATE PROCEDURE twice(OUT x INT) BEGIN SELECT 1; SELECT 2; SET x = 5; END",
            ],
        );
        for who in clients {
            story.all(
                who,
                &[
                    "SELECT 1; SELECT 2; SELECT 3",
                    "SELECT b FROM t WHERE b = 1; SELECT b FROM t WHERE a = 1",
                    "SELECT CAST('x' AS SIGNED); SHOW WARNINGS",
                    "SELECT b FROM t WHERE b = 'x'",
                    "SHOW WARNINGS",
                    "CALL twice(@x)",
                    "CALL twice(@x); SELECT @x",
                    "SET autocommit = 0",
                    "SELECT b FROM t WHERE b = 1",
                    "SELECT b FROM t WHERE a = 1",
                    "COMMIT",
                    "SET autocommit = 1",
                    "BEGIN; SELECT b FROM t WHERE a = 1; COMMIT; SELECT 1",
                    "SELECT 1; SELECT * FROM missing; SELECT 2",
                ],
            );
        }
    });
}

#[test]
fn out_parameters_of_a_prepared_call_are_marked() {
    same_on_both("eof_out", 2, |story| {
        let clients = old_and_new(story);
        story.sql(
            clients[0],
            "CREATE PROCEDURE gives(OUT x INT, IN y INT) BEGIN SELECT y; SET x = y + 1; END",
        );
        for who in clients {
            let gives = story.prepare(who, "CALL gives(?, ?)");
            story.execute(who, gives.id, &[None, Some(b"5")]);
            story.execute(who, gives.id, &[None, Some(b"6")]);
            let none = story.prepare(
                who,
                "SELECT b FROM (SELECT 1 b UNION SELECT 2) t WHERE b = ?",
            );
            story.execute(who, none.id, &[Some(b"1")]);
        }
    });
}

/// libmariadb reads the results of a CALL one by one, and asks for the next as the flags say. It
/// waits for ever, or takes the next answer for this one's, where they say otherwise.
#[test]
fn results_of_calls_are_read_one_by_one() {
    same_on_both("eof_calls", 2, |story| {
        let clients = old_and_new(story);
        let owner = clients[0];
        story.sql(owner, "CREATE TABLE t (a INT)");
        for who in clients {
            story.all(
                owner,
                &[
                    "DROP PROCEDURE IF EXISTS p",
                    "CREATE PROCEDURE p(OUT text VARCHAR(19), IN v INT, INOUT w INT) BEGIN \
                     SET v = 300, text = 'an OUT parameter', w = 200; \
                     SELECT w, v, SUBSTRING(text, 4); END",
                ],
            );
            let call = story.prepare(who, "CALL p(?, ?, ?)");
            for _ in 0..2 {
                story.execute(who, call.id, &[None, Some(b"20"), Some(b"30")]);
                story.command(who, Command::StmtReset, &call.id.to_le_bytes());
            }
            story.all(
                owner,
                &[
                    "DROP PROCEDURE p",
                    "CREATE PROCEDURE p() BEGIN SELECT 1, 2, 3; SELECT 'foo'; \
                     INSERT INTO t VALUES (2); END",
                ],
            );
            let call = story.prepare(who, "CALL p()");
            story.execute(who, call.id, &[]);
            story.command(who, Command::StmtReset, &call.id.to_le_bytes());
            story.sql(who, "CALL p()");
            let select = story.prepare(who, "SELECT a FROM t");
            story.execute(who, select.id, &[]);
            story.sql(who, "SELECT 3; INSERT INTO t VALUES (4)");
            story.execute(who, select.id, &[]);
            story.execute(who, call.id, &[]);
        }
    });
}

#[test]
fn a_local_file_is_taken_inside_of_several_statements() {
    same_on_both("eof_file", 1, |story| {
        let clients = old_and_new(story);
        story.sql(clients[0], "CREATE TABLE t (v VARCHAR(20))");
        for who in clients {
            story.client(who).local_file = Some(b"one\ntwo\n".to_vec());
            story.all(
                who,
                &[
                    "SELECT 1; LOAD DATA LOCAL INFILE '/x' INTO TABLE t; SET @n = 5; SELECT @n",
                    "SELECT COUNT(*) FROM t",
                    "SET @m = 1",
                    "LOAD DATA LOCAL INFILE '/x' INTO TABLE t; SELECT @m",
                ],
            );
        }
    });
}

/// A server reports the default schema, which has not changed, once more behind a view of another
/// one. Within a transaction the pool cannot fetch that, and its trackers are not the client's.
#[test]
fn a_report_behind_a_view_comes_when_its_client_is_told_of_something() {
    same_on_both("eof_views", 2, |story| {
        let clients = old_and_new(story);
        let schema = story.schema.clone();
        let own = format!("USE {schema}");
        let drops = format!("DROP DATABASE IF EXISTS {schema}_b");
        let other = format!("CREATE DATABASE {schema}_b");
        let uses = format!("USE {schema}_b");
        let written = format!("CREATE TABLE {schema}_b.u (a INT)");
        story.all(
            clients[0],
            &[
                &drops,
                &other,
                &written,
                "CREATE TABLE t (a INT)",
                "INSERT INTO t VALUES (1)",
                "CREATE VIEW plain_view AS SELECT a FROM t",
                "CREATE VIEW counted_view AS SELECT ROW_COUNT() AS a",
            ],
        );
        for view in ["plain_view", "counted_view"] {
            let select = format!("SELECT a + 0 FROM {schema}.{view}");
            let table = format!("SELECT a FROM {schema}.t");
            let copies = format!("INSERT INTO u SELECT a FROM {schema}.{view}");
            for begin in ["SET autocommit = 0", "BEGIN", "DO 0"] {
                for next in [
                    "SET div_precision_increment = 7",
                    "SET @a = 1",
                    "DO 0",
                    "SET NAMES latin2",
                    "SET autocommit = 1",
                    "COMMIT",
                    "INSERT INTO u VALUES (2)",
                    "UPDATE u SET a = a + 1",
                    &copies,
                ] {
                    for who in clients {
                        story.all(who, &[&uses, begin, &table, &select, next]);
                        story.all(
                            who,
                            &["DO 0", "SET NAMES latin1", "COMMIT", "SET autocommit = 1"],
                        );
                        story.all(who, &["SET NAMES utf8mb4", &own]);
                        story.command(who, Command::ResetConnection, b"");
                    }
                }
            }
        }
        story.sql(clients[0], &drops);
    });
}
