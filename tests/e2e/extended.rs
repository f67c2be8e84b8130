//! MariaDB's extended capabilities: more of types in metadata, and bulk execution.

use crate::compare::{Story, same};
use crate::world::{app, login, mysql, server, through};
use testkit::client::bulk_execution;
use wire::capabilities::{self as cap, EXTENDED_BULK, EXTENDED_METADATA, EXTENDED_OFFERED};
use wire::command::Command;

fn loads_in_bulk(story: &mut Story, who: usize) {
    let insert = story.prepare(who, "INSERT INTO t (id, v) VALUES (?, ?)");
    let rows: [&[Option<&[u8]>]; 3] = [
        &[Some(b"1"), Some(b"one")],
        &[Some(b"2"), None],
        &[Some(b"3"), Some(b"three")],
    ];
    story.command(
        who,
        Command::StmtBulkExecute,
        &bulk_execution(insert.id, true, &rows),
    );
    story.sql(who, "SELECT * FROM t ORDER BY id");
    // The same keys again: the server says which row failed, and what the ones before left.
    story.command(
        who,
        Command::StmtBulkExecute,
        &bulk_execution(insert.id, true, &rows),
    );
    story.sql(who, "SHOW WARNINGS");
    let more: [&[Option<&[u8]>]; 2] = [&[Some(b"4"), Some(b"four")], &[Some(b"5"), Some(b"")]];
    story.command(
        who,
        Command::StmtBulkExecute,
        &bulk_execution(insert.id, true, &more),
    );
    story.execute(who, insert.id, &[Some(b"6"), Some(b"alone")]);
    story.sql(who, "SELECT COUNT(*), SUM(id), MAX(v) FROM t");
    story.sql(who, "DELETE FROM t");
}

#[test]
fn bulk_executions_are_those_of_the_server_itself() {
    same("bulk", 2, |story| {
        let schema = story.schema.clone();
        let plain = story.join();
        story.sql(
            plain,
            "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20)) ENGINE=InnoDB",
        );
        let bulk = story.join_as(&app().schema(&schema).extended(EXTENDED_BULK));
        let old = app().schema(&schema).extended(EXTENDED_BULK);
        let old = story.join_as(&old.without(cap::DEPRECATE_EOF));
        for who in [bulk, old, bulk] {
            loads_in_bulk(story, who);
            story.sql(plain, "SELECT COUNT(*) FROM t");
        }
        story.sql(bulk, "BEGIN");
        loads_in_bulk(story, bulk);
        story.sql(bulk, "ROLLBACK");
    });
}

/// MariaDB's ROW_COUNT() is that of the last execution of a loop, and the OK has the total; a
/// statement that takes all rows at once counts them all.
#[test]
fn rows_of_bulk_executions_are_counted_as_on_the_server() {
    same("bulk_counts", 1, |story| {
        let account = app().schema(&story.schema).extended(EXTENDED_BULK);
        let (a, other) = (story.join_as(&account), story.join());
        story.all(
            a,
            &[
                "CREATE TABLE t (id INT PRIMARY KEY, v INT)",
                "CREATE TABLE u (id INT PRIMARY KEY)",
            ],
        );
        for (sql, known) in [
            ("INSERT INTO t (id) VALUES (?)", true),
            ("REPLACE INTO t (id) VALUES (?)", true),
            ("INSERT IGNORE INTO t (id) VALUES (?)", true),
            (
                "INSERT INTO t (id) VALUES (?) ON DUPLICATE KEY UPDATE v = 1",
                true,
            ),
            ("INSERT INTO u SELECT id FROM t WHERE id = ?", false),
            ("UPDATE t SET v = 5 WHERE id = ?", false),
            ("DELETE FROM t WHERE id = ?", false),
        ] {
            let statement = story.prepare(a, sql);
            for ids in [["1", "2", "3"], ["3", "4", "5"]] {
                let rows = ids.map(|id| [Some(id.as_bytes())]);
                let rows = rows.each_ref().map(|row| &row[..]);
                let bulk = bulk_execution(statement.id, true, &rows);
                story.command(a, Command::StmtBulkExecute, &bulk);
                story.sql(other, "SELECT 1");
                if known {
                    story.sql(a, "SELECT ROW_COUNT()");
                } else {
                    story.may_be_gone(a, "SELECT ROW_COUNT()");
                }
                story.command(a, Command::StmtBulkExecute, &bulk);
                story.sql(a, "SELECT ROW_COUNT()");
            }
        }
    });
}

/// A bulk execution of what asks about the statement before, which another backend ran, is refused:
/// the answer differs from one row to the next.
#[test]
fn a_bulk_execution_that_asks_is_executed_as_it_is_or_not_at_all() {
    same("bulk_asks", 1, |story| {
        let account = app().schema(&story.schema).extended(EXTENDED_BULK);
        let (a, other) = (story.join_as(&account), story.join());
        story.sql(a, "CREATE TABLE t (id INT, v INT, n INT)");
        let rows: [&[Option<&[u8]>]; 2] = [&[Some(b"1"), Some(b"2")], &[Some(b"3"), Some(b"4")]];
        for asks in [
            "INSERT INTO t VALUES (?, ?, ROW_COUNT())",
            "UPDATE t SET n = ROW_COUNT() + ? WHERE id = ?",
        ] {
            let statement = story.prepare(a, asks);
            for elsewhere in [false, true] {
                story.sql(a, "INSERT INTO t VALUES (7, 7, 7), (8, 8, 8)");
                if elsewhere {
                    story.sql(other, "SELECT 1");
                }
                let bulk = bulk_execution(statement.id, true, &rows);
                if !elsewhere {
                    story.command(a, Command::StmtBulkExecute, &bulk);
                    story.sql(a, "SELECT * FROM t");
                } else if story.command_may_be_gone(a, Command::StmtBulkExecute, &bulk) {
                    let left = story.client(a).value("SELECT GROUP_CONCAT(n) FROM t");
                    assert_eq!(left, "7,8", "nothing of it has been executed");
                }
                story.sql(a, "TRUNCATE t");
            }
        }
    });
}

/// A bulk execution that leaves out its types, behind an ALTER TABLE, on a backend that has never
/// seen them.
#[test]
fn a_bulk_execution_goes_on_with_its_types_of_before() {
    same("bulk_types", 1, |story| {
        let account = app().schema(&story.schema).extended(EXTENDED_BULK);
        let clients = [
            story.join_as(&account),
            story.join_as(&account.clone().without(cap::DEPRECATE_EOF)),
        ];
        let other = story.join();
        for who in clients {
            story.sql(other, "CREATE TABLE t (a INT)");
            let insert = story.prepare(who, "INSERT INTO t (a) VALUES (?)");
            let rows: [&[Option<&[u8]>]; 2] = [&[Some(b"1")], &[Some(b"2")]];
            for (typed, alters) in [
                (true, "ALTER TABLE t ADD b INT"),
                (false, "ALTER TABLE t ADD c INT"),
                (false, "DROP TABLE t"),
                (false, "CREATE TABLE t (a INT)"),
                (false, "SELECT SUM(a) FROM t"),
            ] {
                story.command(
                    who,
                    Command::StmtBulkExecute,
                    &bulk_execution(insert.id, typed, &rows),
                );
                story.sql(other, alters);
            }
            story.sql(who, "SELECT * FROM t");
            story.sql(other, "DROP TABLE t");
        }
    });
}

#[test]
fn extended_metadata_tell_of_types_what_the_server_tells() {
    same("extended", 2, |story| {
        let schema = story.schema.clone();
        let plain = story.join();
        story.sql(
            plain,
            "CREATE TABLE t (j JSON, u UUID, i INET6, p POINT, n INT)",
        );
        story.sql(
            plain,
            "INSERT INTO t VALUES ('{}', NULL, '::1', POINT(1, 2), 5)",
        );
        let knows = app().schema(&schema).extended(EXTENDED_METADATA);
        let (knows, old) = (
            story.join_as(&knows),
            story.join_as(&knows.clone().without(cap::DEPRECATE_EOF)),
        );
        for who in [plain, knows, old, plain, knows] {
            story.all(
                who,
                &[
                    "SELECT * FROM t",
                    "SET @a = 7, @b = 'text'",
                    "SELECT n INTO @c FROM t",
                    "SELECT @a, @b, @c",
                    "SELECT 1/0",
                    "SHOW WARNINGS",
                ],
            );
            let prepared = story.prepare(who, "SELECT j, u, ? FROM t");
            story.execute(who, prepared.id, &[Some(b"x")]);
            story.command(who, Command::FieldList, b"t\0");
        }
    });
}

#[test]
fn extended_capabilities_are_offered_as_far_as_the_pool_and_the_server_know_them() {
    let test = "extended_capabilities_are_offered_as_far_as_the_pool_and_the_server_know_them";
    let Some(real) = server(test) else { return };
    let all = app().extended(u32::MAX);
    let pool = through(real, 1);
    let client = login(&pool, &all);
    assert_eq!(client.talk().extended & EXTENDED_OFFERED, EXTENDED_OFFERED);
    if !crate::world::direct() {
        // Progress reports among them, which come out of turn.
        assert_eq!(client.talk().extended & !EXTENDED_OFFERED, 0);
    }
    let Some(real) = mysql(test) else { return };
    let pool = through(real, 1);
    assert_eq!(login(&pool, &all).talk().extended, 0);
}
