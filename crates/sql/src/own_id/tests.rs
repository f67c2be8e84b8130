//! Texts and what becomes of them when a number stands in for a question.

use super::*;

const ID: u32 = 1_073_741_825;
const CAST: &str = "CAST(1073741825 AS UNSIGNED)";

fn put(sql: &str) -> Option<String> {
    let out = with_own_id(sql.as_bytes(), LexMode::default(), ID)?;
    Some(String::from_utf8(out).unwrap().replace(CAST, "ID"))
}

#[test]
fn the_id_takes_the_place_of_the_call_and_the_column_keeps_its_name() {
    let cases = [
        ("SELECT CONNECTION_ID()", "SELECT ID AS `CONNECTION_ID()`"),
        (
            "select connection_id() ;",
            "select ID AS `connection_id()` ;",
        ),
        (
            "SELECT `Connection_Id`()",
            "SELECT ID AS ```Connection_Id``()`",
        ),
        ("SELECT CONNECTION_ID() AS me", "SELECT ID AS me"),
        ("SELECT CONNECTION_ID() me, 1", "SELECT ID me, 1"),
        (
            "select /* app */ connection_id(), 1 'x'",
            "select /* app */ ID AS `connection_id()`, 1 'x'",
        ),
        (
            "SELECT DATABASE(), CONNECTION_ID(), VERSION(), @@hostname",
            "SELECT DATABASE(), ID AS `CONNECTION_ID()`, VERSION(), @@hostname",
        ),
        (
            "SELECT f(1, 2), CONNECTION_ID() FROM t ORDER BY a, CONNECTION_ID()",
            "SELECT f(1, 2), ID AS `CONNECTION_ID()` FROM t ORDER BY a, ID",
        ),
        (
            "SELECT * FROM (SELECT DISTINCT CONNECTION_ID()) d",
            "SELECT * FROM (SELECT DISTINCT ID AS `CONNECTION_ID()`) d",
        ),
        (
            "INSERT INTO t SELECT 1, CONNECTION_ID() ON DUPLICATE KEY UPDATE c = CONNECTION_ID()",
            "INSERT INTO t SELECT 1, ID AS `CONNECTION_ID()` ON DUPLICATE KEY UPDATE c = ID",
        ),
        (
            "INSERT INTO t VALUES (1, CONNECTION_ID())",
            "INSERT INTO t VALUES (1, ID)",
        ),
        ("SET @a = CONNECTION_ID()", "SET @a = ID"),
        (
            "SELECT 1; SELECT CONNECTION_ID()",
            "SELECT 1; SELECT ID AS `CONNECTION_ID()`",
        ),
        // The value is right, and the column's name another one.
        ("SELECT CONNECTION_ID() + 1", "SELECT ID + 1"),
        ("SELECT CONCAT(1, CONNECTION_ID())", "SELECT CONCAT(1, ID)"),
        (
            "DELETE FROM t WHERE a = CONNECTION_ID() RETURNING a, CONNECTION_ID()",
            "DELETE FROM t WHERE a = ID RETURNING a, ID AS `CONNECTION_ID()`",
        ),
        ("SELECT CONNECTION_ID() a--, b", "SELECT ID a--, b"),
    ];
    for (sql, expected) in cases {
        assert_eq!(put(sql).as_deref(), Some(expected), "{sql}");
    }
    assert_eq!(
        put("SELECT @@pseudo_thread_id").as_deref(),
        Some("SELECT INET_ATON('64.0.0.1') AS `@@pseudo_thread_id`")
    );
}

#[test]
fn counts_take_the_place_of_questions_and_all_of_them_or_none() {
    let values = Values {
        id: Some(ID),
        row_count: Some(-1),
        found_rows: None,
        warnings: Some(3),
        errors: Some(258),
        last_gtid: Some("0-1-2"),
        asked: Reads::ALL,
        ..Values::default()
    };
    let put = |sql: &str| {
        let out = with_values(sql.as_bytes(), LexMode::default(), values.clone())?;
        Some(String::from_utf8(out).unwrap())
    };
    let cases = [
        (
            "SELECT ROW_COUNT()",
            "SELECT IF(TRUE,-1,ROW_COUNT()) AS `ROW_COUNT()`",
        ),
        (
            "SELECT @@warning_count, @@session.error_count AS e",
            "SELECT INET_ATON('0.0.0.3') AS `@@warning_count`, INET_ATON('0.0.1.2') AS e",
        ),
        (
            "INSERT INTO t VALUES (ROW_COUNT (), @@LOCAL.`error_count`)",
            "INSERT INTO t VALUES (IF(TRUE,-1,ROW_COUNT()), \
             INET_ATON('0.0.1.2'))",
        ),
        (
            "SELECT 1, IF(ROW_COUNT() > 0, 'a', 'b') AS x, ROW_COUNT() + 1 AS y FROM t",
            "SELECT 1, IF(IF(TRUE,-1,ROW_COUNT()) > 0, 'a', 'b') AS x, \
             IF(TRUE,-1,ROW_COUNT()) + 1 AS y FROM t",
        ),
        (
            "SELECT @@last_gtid, ROW_COUNT() n",
            "SELECT IF(TRUE,'0-1-2',@@last_gtid) AS `@@last_gtid`, IF(TRUE,-1,ROW_COUNT()) n",
        ),
        (
            "SET @a = row_count() + CONNECTION_ID()",
            "SET @a = IF(TRUE,-1,ROW_COUNT()) + \
             CAST(1073741825 AS UNSIGNED)",
        ),
    ];
    for (sql, expected) in cases {
        assert_eq!(put(sql).as_deref(), Some(expected), "{sql}");
    }
    for sql in [
        "SELECT FOUND_ROWS()",
        "SELECT `found_rows`()",
        "SELECT s.`row_count`()",
        "SELECT ROW_COUNT(), FOUND_ROWS()",
        "SELECT 1",
        "SELECT s.row_count()",
        "SELECT @@global.warning_count",
        "SELECT ROW_COUNT() + 1",
        "SELECT (SELECT ROW_COUNT())",
        "SELECT IF(ROW_COUNT() > 0, 1 AS x, 2)",
        "SELECT ROW_COUNT() + 1, 2 AS x",
        "SELECT 1 WHERE ROW_COUNT() > 0",
        "INSERT INTO t SELECT 1 ORDER BY ROW_COUNT()",
        "VALUES (ROW_COUNT() IS NULL)",
    ] {
        assert_eq!(put(sql), None, "{sql}");
    }
    // There a quoted name calls no keyword.
    let mode = LexMode {
        server: Server::MySql(90_700),
        ..LexMode::default()
    };
    assert_eq!(
        with_values(b"SELECT `row_count`()", mode, values.clone()),
        None
    );
}

#[test]
fn mariadb_counts_what_the_text_itself_leaves() {
    let put = |sql: &str, clears: bool| {
        let values = Values {
            warnings: Some(3),
            errors: Some(2),
            clears,
            asked: Reads::ALL,
            ..Values::default()
        };
        let mode = LexMode {
            server: Server::MariaDb(101_119),
            ..LexMode::default()
        };
        let out = with_values(sql.as_bytes(), mode, values)?;
        Some(String::from_utf8(out).unwrap())
    };
    let three = "INET_ATON('0.0.0.3')";
    for (sql, expected) in [
        (
            "SELECT @@warning_count",
            format!("SELECT {three} AS `@@warning_count`"),
        ),
        (
            "SELECT 1, @@Warning_COUNT AS w",
            format!("SELECT 1, {three} AS w"),
        ),
    ] {
        assert_eq!(put(sql, false), Some(expected), "{sql}");
    }
    for sql in [
        "SELECT CAST('x' AS TIME), @@warning_count",
        "SELECT 1 / 0, @@error_count",
        "SELECT 1.5, @@error_count",
        "SELECT @@error_count FROM t",
        "SET @a = 'x', @b := @@warning_count",
        "DO @@warning_count",
    ] {
        assert_eq!(put(sql, false), None, "{sql}");
    }
    let sql = "SELECT id, @@warning_count FROM t WHERE CAST('x' AS TIME) IS NULL";
    let named = sql.replace("_count", "_count AS `@@warning_count`");
    assert_eq!(put(sql, true), Some(named));
}

#[test]
fn what_means_the_servers_own_is_left_alone() {
    for sql in [
        "SELECT 1",
        "SELECT 'CONNECTION_ID()', `connection_id()` FROM t",
        "SELECT s.connection_id()",
        "SELECT connection_id FROM t",
        "SELECT * FROM information_schema.processlist WHERE id = CONNECTION_ID()",
        "SELECT IS_USED_LOCK('a') = CONNECTION_ID()",
        "CREATE TABLE t (a BIGINT DEFAULT (CONNECTION_ID()))",
        "PREPARE s FROM 'SELECT CONNECTION_ID()'",
        "SELECT @@global.pseudo_thread_id",
        "SELECT CONNECTION_ID() /*!80000 + 1 */",
        "SELECT CONNECTION_ID() /* + 1",
    ] {
        assert_eq!(put(sql), None, "{sql}");
    }
}

#[test]
fn an_executable_comment_is_a_part_of_the_statement() {
    assert_eq!(
        put("/*! SELECT CONNECTION_ID() /* me */ */, 2").unwrap(),
        "    SELECT ID AS `CONNECTION_ID()`            , 2"
    );
}

/// Servers run what stands in front of a statement that they cannot read.
#[test]
fn the_id_is_put_in_front_of_a_statement_that_does_not_end() {
    for open in [
        "SELECT /* open CONNECTION_ID()",
        "SELECT 'open",
        "SELECT `open",
        "SELECT CONNECTION_ID() /*! + 1",
    ] {
        let put = put(&format!("SELECT CONNECTION_ID(); {open}")).unwrap();
        assert_eq!(put, format!("SELECT ID AS `CONNECTION_ID()`; {open}"));
    }
    let executable = put("SELECT /*! CONNECTION_ID() */; SELECT 'open").unwrap();
    let bare = "SELECT     ID AS `CONNECTION_ID()`   ; SELECT 'open";
    assert_eq!(executable, bare);
    for all in [
        "SELECT 1; SELECT CONNECTION_ID() /* open",
        "SELECT /*! 1; SELECT 2",
    ] {
        assert_eq!(put(all), None, "{all}");
    }
}
