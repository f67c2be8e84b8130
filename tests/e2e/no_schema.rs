//! Clients with CLIENT_NO_SCHEMA: servers pass over the schema in front of a table's name, also in
//! what the pool says for itself on such a connection.

use crate::compare::{same_on, same_on_both};
use crate::world::{app, server};
use wire::capabilities as cap;

#[test]
fn what_clears_conditions_needs_no_schema() {
    let test = "what_clears";
    let Some(real) = server(test) else { return };
    same_on(real, test, 1, |story| {
        let account = app().with(cap::NO_SCHEMA);
        let inside = account.clone().schema(&story.schema);
        let (a, b) = (story.join_as(&inside), story.join_as(&account));
        let c = story.join_as(&inside);
        story.sql(a, "SELECT CAST('x' AS SIGNED)");
        story.sql(b, "SHOW WARNINGS");
        story.sql(b, "SELECT 1 FROM t");
        story.sql(c, "SHOW ERRORS");
        story.sql(c, "SELECT 1 UNION SELECT 2");
        story.sql(a, "SELECT CAST('x' AS SIGNED)");
        story.sql(c, "SELECT FOUND_ROWS()");
    });
}

/// The counts behind each kind of statement where the conditions of another client were cleared in
/// front of it, also as the first of a session.
#[test]
fn counts_stay_where_conditions_were_cleared() {
    same_on_both("cleared", 1, |story| {
        let account = app().with(cap::NO_SCHEMA).schema(&story.schema);
        let a = story.join_as(&account);
        story.sql(a, "CREATE TABLE t (v INT)");
        for sql in [
            "SHOW COLUMNS FROM t",
            "DESCRIBE no_such_table",
            "SHOW TABLES",
            "SHOW CREATE TABLE no_such_table",
            "SELECT no_such_column",
            "SELECT 1 UNION SELECT 2",
            "INSERT INTO t VALUES (1), (2)",
            "UPDATE t SET v = 1",
            "SELECT v, ROW_COUNT() FROM t LIMIT 1",
            "DO 1",
            "SELECT FROM",
        ] {
            let b = story.join_as(&account);
            for _ in 0..2 {
                story.sql(a, "SELECT CAST('x' AS SIGNED)");
                story.sql(b, sql);
                story.sql(b, "SELECT ROW_COUNT()");
                story.sql(a, "SELECT CAST('x' AS SIGNED)");
                story.sql(b, sql);
                story.sql(b, "SELECT FOUND_ROWS()");
            }
            story.sql(a, "SELECT v FROM t");
        }
        story.sql(a, "DROP TABLE t");
    });
}
