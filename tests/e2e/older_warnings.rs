//! Fate of older warnings when a statement goes well without any, form by form.
//!
//! MariaDB clears them in front of what looks at a table and leaves them otherwise, MySQL clears
//! them nearly always. Two clients on one backend: one leaves warnings, says the statement and asks
//! behind the other; nobody is told that the answer is gone.

use crate::compare::{Story, same_on};
use crate::world::{app, both_servers};
use testkit::real::Flavour;
use testkit::reply::Outcome;
use wire::capabilities as cap;

/// Statements that go well on both servers.
const BOTH: [&str; 79] = [
    "SHOW CHARACTER SET LIKE 'latin1'",
    "SHOW CHARSET LIKE 'latin1'",
    "SHOW COLLATION LIKE 'latin1_bin'",
    "SHOW COLUMNS FROM t",
    "SHOW FULL COLUMNS FROM t",
    "SHOW FIELDS FROM t",
    "SHOW CREATE DATABASE cleared",
    "SHOW CREATE EVENT ev",
    "SHOW CREATE TABLE t",
    "SHOW CREATE VIEW vw",
    "SHOW DATABASES LIKE 'mysql'",
    "SHOW SCHEMAS LIKE 'mysql'",
    "SHOW ENGINES",
    "SHOW STORAGE ENGINES",
    "SHOW EVENTS LIKE 'x'",
    "SHOW FUNCTION STATUS LIKE 'x'",
    "SHOW PROCEDURE STATUS LIKE 'x'",
    "SHOW GRANTS",
    "SHOW INDEX FROM t",
    "SHOW INDEXES IN t",
    "SHOW KEYS FROM t",
    "SHOW OPEN TABLES LIKE 'x'",
    "SHOW PLUGINS",
    "SHOW PRIVILEGES",
    "SHOW STATUS LIKE 'x'",
    "SHOW GLOBAL STATUS LIKE 'x'",
    "SHOW SESSION STATUS LIKE 'x'",
    "SHOW TABLE STATUS LIKE 'x'",
    "SHOW TABLES",
    "SHOW FULL TABLES FROM cleared",
    "SHOW TRIGGERS",
    "SHOW VARIABLES LIKE 'x'",
    "SHOW GLOBAL VARIABLES LIKE 'x'",
    "SHOW SESSION VARIABLES LIKE 'autocommit'",
    "SELECT 1 FROM DUAL",
    "SELECT (SELECT 1 FROM DUAL)",
    "SELECT EXTRACT(YEAR FROM '2020-01-01')",
    "SELECT TRIM(LEADING 'x' FROM 'xa'), SUBSTRING('abc' FROM 2 FOR 1)",
    "SELECT (SELECT MAX(v) FROM t)",
    "SELECT EXISTS (SELECT 1 FROM t)",
    "SELECT TRIM(LEADING 'x' FROM (SELECT MAX(v) FROM t))",
    "SELECT * FROM (SELECT 1) AS x",
    "SELECT * FROM (SELECT 1 FROM DUAL) AS x",
    "SELECT 1 FROM `t` LIMIT 1",
    "(SELECT 1 FROM DUAL)",
    "(SELECT v FROM t)",
    "SELECT 1 UNION SELECT 2",
    "SELECT 1 UNION SELECT v FROM t",
    "SELECT 1 FROM DUAL UNION SELECT 2",
    "WITH x AS (SELECT 1) SELECT * FROM x",
    "WITH x AS (SELECT 1) SELECT 1",
    "WITH x AS (SELECT v FROM t) SELECT 1",
    "SELECT 1 FROM vw",
    "SELECT 1 FROM information_schema.SCHEMATA LIMIT 1",
    "SELECT 1 INTO @a",
    "SELECT 1 FOR UPDATE",
    "SELECT five() FROM t",
    "SET @a = (SELECT MAX(v) FROM t)",
    "SET @a = (SELECT 1 FROM DUAL)",
    "SET @a = TRIM(LEADING 'x' FROM 'xa')",
    "DO EXTRACT(YEAR FROM '2020-01-01')",
    "DO (SELECT MAX(v) FROM t)",
    "EXPLAIN t",
    "DESC `t`",
    "DESCRIBE t v",
    "CHECK TABLE t",
    "CHECKSUM TABLE t",
    "ANALYZE TABLE t",
    "TRUNCATE w",
    "CREATE TABLE z (a INT)",
    "ALTER TABLE z COMMENT 'x'",
    "CREATE INDEX i ON z (a)",
    "DROP INDEX i ON z",
    "RENAME TABLE z TO y",
    "DROP TABLE y",
    "CREATE DATABASE cleared_b",
    "DROP DATABASE cleared_b",
    "CREATE VIEW vx AS SELECT 1 AS a",
    "DROP VIEW vx",
];

/// Statements that only MariaDB has, or takes without a note of its own.
const MARIADB: [&str; 46] = [
    "SHOW ALL SLAVES STATUS",
    "SHOW AUTHORS",
    "SHOW CONTRIBUTORS",
    "SHOW BINLOG STATUS",
    "SHOW MASTER STATUS",
    "SHOW SLAVE STATUS",
    "SHOW REPLICA STATUS",
    "SHOW SLAVE HOSTS",
    "SHOW PROFILES",
    "SHOW CREATE SEQUENCE sq",
    "SHOW CREATE USER",
    "SHOW CLIENT_STATISTICS",
    "SHOW INDEX_STATISTICS",
    "SHOW TABLE_STATISTICS",
    "SHOW USER_STATISTICS",
    "EXPLAIN SELECT 1",
    "EXPLAIN SELECT v FROM t",
    "EXPLAIN SELECT 1 FROM DUAL",
    "EXPLAIN UPDATE t SET v = 1",
    "EXPLAIN FORMAT = JSON SELECT 1",
    "ANALYZE SELECT 1",
    "ANALYZE SELECT v FROM t",
    "OPTIMIZE TABLE t",
    "REPAIR TABLE t",
    "CREATE PROCEDURE z() SELECT 1",
    "ALTER PROCEDURE z COMMENT 'x'",
    "DROP PROCEDURE z",
    "CREATE FUNCTION z() RETURNS INT RETURN 1",
    "DROP FUNCTION z",
    "CREATE TRIGGER z BEFORE INSERT ON w FOR EACH ROW SET @a = 1",
    "CREATE SEQUENCE z",
    "ALTER SEQUENCE z INCREMENT 2",
    "DROP SEQUENCE z",
    "CREATE USER cleared_user",
    "RENAME USER cleared_user TO cleared_other",
    "DROP USER cleared_other",
    "CREATE ROLE cleared_role",
    "DROP ROLE cleared_role",
    "SELECT LASTVAL(sq)",
    "SELECT PREVIOUS VALUE FOR sq",
    "VALUES (1)",
    "UNLOCK TABLES",
    "SET STATEMENT max_statement_time = 5 FOR SELECT 1",
    "SET STATEMENT max_statement_time = 5 FOR SHOW TABLES",
    "CREATE PROCEDURE zt() SELECT v FROM t",
    "CREATE PROCEDURE zh() BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION RESIGNAL; END",
];

/// Statements for which the body of stored code decides, the text or the server's copy of it. MySQL
/// tells by the text; of MariaDB the pool may say that it does not know.
const BODIES: [(&str, &str); 17] = [
    ("PROCEDURE bi", "() INSERT INTO t VALUES (1, 1)"),
    (
        "PROCEDURE bb",
        "() BEGIN IF 1 THEN REPLACE INTO t VALUES (1, 1); END IF; END",
    ),
    (
        "PROCEDURE bh",
        "() BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION RESIGNAL; END",
    ),
    (
        "PROCEDURE bc",
        "() BEGIN DECLARE c CONDITION FOR SQLSTATE '45000'; SIGNAL c; END",
    ),
    (
        "PROCEDURE bv",
        "() BEGIN DECLARE handler INT; SET handler = 1; END",
    ),
    (
        "FUNCTION bf",
        "() RETURNS INT DETERMINISTIC \
     BEGIN DECLARE EXIT HANDLER FOR NOT FOUND RETURN 1; RETURN 2; END",
    ),
    (
        "TRIGGER bt",
        " BEFORE INSERT ON w FOR EACH ROW INSERT INTO t VALUES (7, 7)",
    ),
    (
        "TRIGGER bn",
        " BEFORE INSERT ON w FOR EACH ROW \
     BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION RESIGNAL; END",
    ),
    (
        "",
        "ALTER EVENT ev DO BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION RESIGNAL; END",
    ),
    ("", "ALTER EVENT ev DO INSERT INTO t VALUES (1, 1)"),
    ("", "SHOW CREATE FUNCTION five"),
    ("", "SHOW CREATE PROCEDURE p"),
    ("", "SHOW CREATE PROCEDURE bi"),
    ("", "SHOW CREATE TRIGGER bt"),
    ("", "SHOW CREATE EVENT ev"),
    ("", "DROP TRIGGER IF EXISTS bt"),
    ("", "DROP PROCEDURE IF EXISTS bi"),
];

fn begin(story: &mut Story) {
    let account = app().schema(&story.schema).without(cap::SESSION_TRACK);
    let (a, _) = (story.join_as(&account), story.join_as(&account));
    story.all(
        a,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, v INT)",
            "INSERT INTO t VALUES (1, 1), (2, 2)",
            "CREATE TABLE w (a INT)",
            "CREATE VIEW vw AS SELECT v FROM t",
            "CREATE PROCEDURE p() SELECT 1",
            "CREATE EVENT ev ON SCHEDULE AT '2037-01-01 00:00:00' DO SELECT 1",
            "CREATE FUNCTION five() RETURNS INT DETERMINISTIC RETURN 1",
        ],
    );
}

fn tell(story: &mut Story, statements: &[&str]) {
    for sql in statements {
        story.sql(0, "INSERT IGNORE INTO t VALUES (1, 1), (2, 2)");
        story.sql(1, "SELECT 1");
        let said = story.client(0).query(sql).unwrap();
        let failed = matches!(said[..], [Outcome::Failed(_)]);
        assert!(!failed, "{sql}: {said:?}");
        story.sql(1, "SELECT CAST('other' AS SIGNED)");
        let reply = story.sql(0, "SHOW WARNINGS");
        let gone = |outcome: &Outcome| matches!(outcome, Outcome::Failed(why) if why.code == 1235);
        assert!(!reply.iter().any(gone), "{sql}: {reply:?}");
        story.sql(1, "SELECT 1");
        story.sql(0, "SELECT @@warning_count");
    }
}

#[test]
fn older_warnings_stay_or_go_as_on_the_server() {
    for real in both_servers("cleared") {
        same_on(real, "cleared", 1, |story| {
            begin(story);
            tell(story, &BOTH);
            tell_bodies(story, real.flavour());
            if real.flavour() == Flavour::MariaDb {
                story.sql(0, "CREATE SEQUENCE sq");
                tell(story, &MARIADB);
            }
        });
    }
}

fn tell_bodies(story: &mut Story, flavour: Flavour) {
    for (made, rest) in BODIES {
        let sql = match made {
            "" => rest.into(),
            made => format!("CREATE {made}{rest}"),
        };
        for between in [None, Some("SELECT CAST('other' AS SIGNED)")] {
            if !made.is_empty() {
                story.sql(0, &format!("DROP {made}"));
            }
            story.sql(0, "INSERT IGNORE INTO t VALUES (1, 1), (2, 2)");
            story.sql(1, between.unwrap_or("DO 1"));
            // Its rows may tell the time.
            story.client(0).query(&sql).unwrap();
            if let Some(other) = between {
                story.sql(1, other);
            }
            let gone = story.may_be_gone(0, "SHOW WARNINGS");
            // An event's definition may be prepared, which changes it.
            let told = flavour == Flavour::MySql && !sql.contains(" EVENT ");
            assert!(!(gone && told), "{sql}");
        }
    }
}
