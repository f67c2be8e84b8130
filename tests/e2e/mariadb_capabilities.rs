//! MariaDB's extended capabilities: more of types in metadata, and bulk execution.

use crate::compare::same;
use crate::world::{app, login, mysql, server, through};
use testkit::client::bulk_execution;
use wire::capabilities::{EXTENDED_BULK, EXTENDED_OFFERED};
use wire::command::Command;

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
