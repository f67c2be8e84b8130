//! Names of columns without an alias whose text the pool changes: it puts its client's number in
//! place of CONNECTION_ID().

use crate::compare::same_on_both;

/// Columns; each question mark is a value.
const COLUMNS: [&str; 42] = [
    "CONNECTION_ID() = ?",
    "CONNECTION_ID()=?",
    "? = CONNECTION_ID()",
    "CONNECTION_ID() = ? a",
    "CONNECTION_ID() = ? `a b`",
    "CONNECTION_ID() = ? 'a b'",
    "CONNECTION_ID() = ? AS a",
    "CONNECTION_ID() = ?, ?",
    "CONNECTION_ID() IS NULL AND ?",
    "CONNECTION_ID() BETWEEN ? AND ?",
    "CONNECTION_ID() IN (?, ?)",
    "CONNECTION_ID() /* me */ = ?",
    "CONNECTION_ID()  =\n ? /* me */",
    "CASE CONNECTION_ID() WHEN ? THEN 1 END",
    "CASE CONNECTION_ID() WHEN ? THEN 1 END a",
    "(CONNECTION_ID() = ?)",
    "(SELECT CONNECTION_ID() = ?)",
    "EXISTS (SELECT CONNECTION_ID() = ?)",
    "CONNECTION_ID() = ANY (SELECT ?)",
    "CONNECTION_ID() = 'a'",
    "CONNECTION_ID() = 'a' b",
    "CONNECTION_ID() LIKE 'a%'",
    "CONNECTION_ID() LIKE ? ESCAPE '!'",
    "CONNECTION_ID() REGEXP 'a'",
    "CONNECTION_ID() = 0x41",
    "CONNECTION_ID() = x'41'",
    "CONNECTION_ID() = b'1'",
    "CONNECTION_ID() = N'a'",
    "CONNECTION_ID() = _latin1'a'",
    "CONNECTION_ID() = 1 a",
    "CONNECTION_ID() = 1 'a b'",
    "CONNECTION_ID() IS NULL 'a b'",
    "CONNECTION_ID() = id",
    "CONNECTION_ID() = t.id",
    "CONNECTION_ID() IS NULL AND id",
    "id COLLATE utf8mb4_bin = CONNECTION_ID()",
    "CONNECTION_ID() IS NOT NULL",
    "NOT CONNECTION_ID()",
    "@@pseudo_thread_id = ?",
    "`connection_id`() = ?",
    "`CONNECTION_ID` ( ) IS NULL",
    "CONNECTION_ID() IS NULL AND TIME '00:00:01'",
];

/// Where a column stands.
const TEXTS: [&str; 9] = [
    "SELECT COLUMN FROM t",
    "SELECT COLUMN FROM t ;",
    "SELECT DISTINCT COLUMN FROM t LIMIT 1",
    "SELECT COLUMN FROM t UNION SELECT COLUMN FROM t",
    "(SELECT COLUMN FROM t) UNION ALL (SELECT COLUMN FROM t) ORDER BY 1",
    "SELECT * FROM (SELECT COLUMN FROM t) d",
    "WITH d AS (SELECT COLUMN FROM t) SELECT * FROM d",
    "SELECT COLUMN FROM t WHERE CONNECTION_ID() = ? OR 1 ORDER BY id",
    "SELECT 1, COLUMN, 2 FROM t",
];

#[test]
fn a_column_is_named_after_its_clients_text() {
    same_on_both("column_names", 1, |story| {
        let (a, b) = (story.join(), story.join());
        story.all(
            a,
            &[
                "CREATE TABLE t (id VARCHAR(9))",
                "INSERT INTO t VALUES ('x')",
            ],
        );
        for text in TEXTS {
            for column in COLUMNS {
                let sql = text.replace("COLUMN", column);
                // Whoever comes behind another has a connection that is not its own.
                story.sql(b, "DO 1");
                story.sql(a, &sql.replace('?', "5"));
                let reply = story
                    .client(a)
                    .run(wire::command::Command::StmtPrepare, sql.as_bytes());
                let prepared = match reply.as_deref() {
                    Ok([testkit::reply::Outcome::Prepared(prepared)]) => prepared.clone(),
                    other => {
                        story.say(&format!("{sql}: {other:?}"));
                        continue;
                    }
                };
                story.say(&format!("{sql}: {:?}", prepared.columns));
                story.sql(b, "DO 2");
                let values = vec![Some(&b"5"[..]); prepared.params.len()];
                story.execute(a, prepared.id, &values);
                let id = prepared.id.to_le_bytes();
                story.command(a, wire::command::Command::StmtClose, &id);
            }
        }
    });
}

/// What the statement before has left is put into the text too.
#[test]
fn a_column_that_asks_for_a_count_is_named_after_its_clients_text() {
    same_on_both("counting_columns", 1, |story| {
        let (a, b) = (story.join(), story.join());
        for column in COLUMNS.map(|column| column.replace("CONNECTION_ID()", "ROW_COUNT()")) {
            let sql = format!("SELECT {} FROM t", column.replace('?', "5"));
            story.all(a, &["CREATE TABLE IF NOT EXISTS t (id VARCHAR(9))", "DO 1"]);
            story.sql(b, "SELECT 1");
            story.may_be_gone(a, &sql);
        }
    });
}
