//! Names of columns whose text the pool changes: it puts its client's number in place of
//! CONNECTION_ID(), and counts in place of questions about the statement before.

use crate::compare::same_on_both;
use wire::command::Command;

/// Columns, as drivers and tools write them; none shows a number of the server's.
const COLUMNS: [&str; 9] = [
    "CONNECTION_ID()",
    "connection_id ( )",
    "CONNECTION_ID() me",
    "CONNECTION_ID() AS `my id`",
    "CONNECTION_ID() 'my id'",
    "`connection_id`()",
    "@@pseudo_thread_id",
    "CONNECTION_ID() IS NULL AS known",
    "DATABASE(), CONNECTION_ID(), VERSION() /*!50038 , @@hostname*/",
];

/// Places of a column.
const TEXTS: [&str; 8] = [
    "SELECT COLUMN FROM t WHERE 0",
    "SELECT /* tool */ COLUMN FROM t WHERE 0 ;",
    "SELECT DISTINCT COLUMN FROM t LIMIT 0",
    "(SELECT COLUMN FROM t) UNION ALL (SELECT COLUMN FROM t) ORDER BY 1 LIMIT 0",
    "SELECT * FROM (SELECT COLUMN FROM t) d WHERE 0",
    "WITH d AS (SELECT COLUMN FROM t) SELECT * FROM d WHERE 0",
    "SELECT COLUMN FROM t WHERE CONNECTION_ID() = 0 ORDER BY id, CONNECTION_ID()",
    "SELECT 1, COLUMN, 2 FROM t WHERE 0",
];

#[test]
fn a_column_is_named_after_its_clients_text() {
    same_on_both("column_names", 1, |story| {
        let (a, b) = (story.join(), story.join());
        story.sql(a, "CREATE TABLE t (id INT)");
        for text in TEXTS {
            for column in COLUMNS {
                let sql = text.replace("COLUMN", column);
                // Whoever comes behind another has a connection that is not its own.
                story.sql(b, "DO 1");
                story.sql(a, &sql);
                let id = story.prepare(a, &sql).id;
                story.command(a, Command::StmtClose, &id.to_le_bytes());
            }
        }
    });
}

#[test]
fn a_column_that_asks_for_a_count_is_named_after_its_clients_text() {
    same_on_both("counting_columns", 1, |story| {
        let (a, b) = (story.join(), story.join());
        for column in [
            "ROW_COUNT()",
            "row_count ( )",
            "ROW_COUNT() n",
            "ROW_COUNT() AS `n m`",
        ] {
            story.sql(a, "CREATE TABLE IF NOT EXISTS t (id INT)");
            story.sql(b, "SELECT 1");
            story.sql(a, &format!("SELECT {column}, 1"));
        }
    });
}
