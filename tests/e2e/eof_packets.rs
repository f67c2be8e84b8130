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
