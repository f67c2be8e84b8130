//! Questions about the statement before: warnings, errors, counts.
//!
//! A question may stand behind any statement of a script, so each row leaves something itself
//! before it asks, but for those of `asked_at_random`: `claims` says when they may not be asked.
//! The rules stand in [`super`].

use super::{Habit, On, habit};

pub(super) const HABITS: &[Habit] = &[
    habit(
        "warnings",
        6,
        On::Both,
        &[
            "SELECT CAST('{w}' AS SIGNED) ;; SHOW WARNINGS",
            "SELECT {n} / 0",
            "SELECT '{n}{w}' + 1",
            "DROP TABLE IF EXISTS no_such_table",
            "CREATE TABLE IF NOT EXISTS kinds (x INT)",
            "SET sql_mode = '' ;; INSERT INTO {t} (name) VALUES ('a name longer than its column')",
            "INSERT IGNORE INTO {t} (id, v) VALUES ({k}, 'word') ;; SHOW WARNINGS",
            "SELECT CAST('x' AS SIGNED), CAST('y' AS SIGNED), CAST('z' AS SIGNED)",
        ],
    ),
    habit(
        "older_warnings",
        3,
        On::Both,
        &[
            "SELECT CAST('{w}' AS SIGNED) ;; SELECT {n} ;; SHOW WARNINGS",
            "SELECT CAST('{w}' AS SIGNED) ;; SELECT COUNT(*) FROM {t} ;; SHOW WARNINGS",
            "SELECT {n} / 0 ;; SET time_zone = '+0{n}:00' ;; SHOW WARNINGS",
            "SELECT * FROM no_such_table ;; DO {n} ;; SELECT @@warning_count, @@error_count",
            "SELECT CAST('{w}' AS SIGNED) ;; GET STACKED DIAGNOSTICS @n = NUMBER ;; <ping> ;; \
             <init>oracle_b ;; <ping>",
            "SELECT * FROM no_such_table ;; <init>oracle_b ;; <ping> ;; <init>oracle_a",
            "SELECT CAST('{w}' AS SIGNED) ;; <init>no_such_schema ;; SHOW WARNINGS",
            "SELECT * FROM no_such_table ;; <init>no_such_schema ;; SHOW WARNINGS LIMIT 1, 2",
            "SELECT CAST('{w}' AS SIGNED) ;; SET NAMES latin1 COLLATE latin1_bin ;; SHOW WARNINGS",
            "SELECT CAST('{w}' AS SIGNED) ;; SET NAMES utf8mb3 ;; SHOW WARNINGS ;; \
             SET NAMES utf8mb4",
            "SELECT * FROM no_such_table ;; SHOW CREATE PROCEDURE locking_procedure ;; \
             SHOW WARNINGS",
            "SELECT * FROM no_such_table ;; GET CURRENT ;; SHOW WARNINGS LIMIT ;; SHOW WARNINGS",
            "SHOW COLUMNS FROM no_such_table ;; SELECT ROW_COUNT()",
            "UPDATE {t} SET name = '{w}' ;; DESCRIBE no_such_table ;; SHOW WARNINGS ;; \
             SELECT ROW_COUNT()",
            "UPDATE {t} SET v = {k} ;; SHOW CREATE TABLE no_such_table ;; SELECT ROW_COUNT()",
        ],
    ),
    habit(
        "previous",
        12,
        On::Both,
        &[
            "SELECT LAST_INSERT_ID()",
            "SELECT @@last_insert_id, @@identity",
            "SELECT LAST_INSERT_ID() + 1 AS next, '{w}'",
            "SELECT LAST_INSERT_ID({k})",
            "SELECT * FROM {t} WHERE id = LAST_INSERT_ID()",
            "INSERT INTO {t} (name) VALUES ('{w}'), ('{w}') ;; SELECT LAST_INSERT_ID()",
        ],
    ),
    habit(
        "diagnostics",
        6,
        On::Both,
        &[
            "SELECT * FROM no_such_table ;; SHOW ERRORS",
            "SELECT CAST('{w}' AS SIGNED) ;; SHOW COUNT(*) WARNINGS",
            "SELECT * FROM no_such_table ;; SHOW COUNT(*) ERRORS",
            "SELECT {n} / 0 ;; SHOW WARNINGS LIMIT 1",
            "INSERT IGNORE INTO {t} (id, v) VALUES ({k}, 'word') ;; SELECT @@warning_count",
            "SELECT CAST('{w}' AS SIGNED) ;; <pins>GET DIAGNOSTICS CONDITION 1 \
             @state = RETURNED_SQLSTATE, @words = MESSAGE_TEXT ;; SELECT @state, @words",
            "UPDATE {t} SET name = '{w}' ;; \
             <pins>GET DIAGNOSTICS @count = NUMBER, @rows = ROW_COUNT ;; SELECT @count, @rows",
        ],
    ),
    // The first statement of its backend may ask for what another client's left.
    habit(
        "diagnostics_where_it_pins",
        5,
        On::Both,
        &[
            "UPDATE {t} SET name = '{w}' ;; \
             <pins>SHOW WARNINGS; CALL locking_procedure('{l}') ;; <reset>",
            "UPDATE {t} SET name = '{w}' ;; \
             <pins>SHOW ERRORS; CALL locking_procedure('{l}') ;; <reset>",
            "UPDATE {t} SET name = '{w}' ;; \
             <pins>SHOW COUNT(*) WARNINGS; SHOW COUNT(*) ERRORS; DO GET_LOCK('{l}', 0) ;; <reset>",
            "UPDATE {t} SET name = '{w}' ;; <pins>GET DIAGNOSTICS @number = NUMBER; \
             DO GET_LOCK('{l}', 0) ;; SELECT @number ;; <reset>",
            "UPDATE {t} SET name = '{w}' ;; \
             <pins>CALL locking_procedure('{l}'); SHOW WARNINGS ;; <reset>",
            "<pins>DO GET_LOCK('{l}', 0) ;; SHOW WARNINGS ;; SHOW ERRORS ;; <reset>",
            "UPDATE {t} SET name = '{w}' ;; <pins>CALL resignalling_procedure() ;; \
             SHOW WARNINGS ;; <reset>",
            // A condition that is not there leaves a variable as it was. One that was never set is
            // not compared where it is first named while its client is pinned.
            "SET @words = NULL ;; UPDATE {t} SET name = '{w}' ;; \
             <pins>CALL diagnosing_procedure() ;; SELECT @number, @words ;; <reset>",
            "UPDATE {t} SET name = '{w}' ;; <pins>SHOW WARNINGS; CALL resignalling_procedure(); \
             SHOW ERRORS ;; SHOW WARNINGS ;; <reset>",
        ],
    ),
    // Forms of questions that are put to the pool's own account of what was left.
    habit(
        "questions_of_many_forms",
        8,
        On::Both,
        &[
            "SELECT CAST('{w}' AS SIGNED) ;; SHOW WARNINGS; SELECT {n}",
            "SELECT CAST('{w}' AS SIGNED) ;; SELECT {n}; SHOW WARNINGS",
            "UPDATE {t} SET name = '{w}' ;; SELECT ROW_COUNT(); SELECT {n}",
            "UPDATE {t} SET name = '{w}' ;; SELECT {n}, ROW_COUNT(); DO {n}; SELECT ROW_COUNT()",
            "SELECT CAST('{w}' AS SIGNED) ;; <prepare=4>SHOW WARNINGS ;; <execute=4>",
            "UPDATE {t} SET name = '{w}' ;; <prepare=4>SELECT ROW_COUNT(), ? ;; <execute=4>{n}",
            "SELECT id FROM oracle_a.kinds ;; <prepare=4>SELECT FOUND_ROWS(), ? ;; \
             DELETE FROM {t} WHERE id = {k} ;; <execute=4>{n}",
            "SELECT id FROM kinds UNION SELECT {n} ;; SELECT FOUND_ROWS()",
            // Names that are no questions.
            "UPDATE {t} SET name = '{w}' ;; \
             WITH found_rows(a) AS (SELECT {n}), row_count (b) AS (SELECT {k}) \
             SELECT found_rows.a, row_count.b FROM found_rows, row_count",
            "UPDATE {t} SET name = '{w}' ;; CREATE TABLE {d} (a INT, KEY found_rows (a), \
             KEY row_count(a)) ;; DROP TABLE {d}",
            "SELECT id FROM kinds LIMIT 1 OFFSET 1 ;; SELECT FOUND_ROWS()",
            "SELECT id FROM oracle_a.kinds ;; SELECT ROW_COUNT() UNION ALL SELECT FOUND_ROWS()",
            "SELECT id FROM oracle_a.kinds ;; SELECT FOUND_ROWS() FROM (SELECT {n}) x",
            // Quoted, it is called all the same.
            "SELECT id FROM oracle_a.kinds ;; SELECT `found_rows`(), `connection_id`() > 0 AS c",
            "INSERT INTO {t} (name) VALUES ('{w}') ;; SELECT {n} + `Last_Insert_Id` ()",
            "SELECT id FROM oracle_a.kinds ;; INSERT IGNORE INTO {t} (v) SELECT id FROM kinds ;; \
             SELECT FOUND_ROWS(), ROW_COUNT()",
            // MySQL's costs depend on what is in its memory.
            "SELECT id FROM oracle_a.kinds ;; EXPLAIN FORMAT=TRADITIONAL SELECT id FROM kinds ;; \
             SELECT FOUND_ROWS()",
            "SELECT id FROM oracle_a.kinds ;; UPDATE {t}, kinds SET {t}.name = '{w}' \
             WHERE {t}.id = kinds.id ;; SELECT FOUND_ROWS()",
            "SELECT id FROM oracle_a.kinds ;; CALL rows_procedure({n}, @y) ;; \
             SELECT FOUND_ROWS()",
            "SELECT CAST('{w}' AS SIGNED) ;; <pins>CALL diagnosing_procedure() ;; <reset>",
            "SELECT no_such_column ;; GET DIAGNOSTICS CONDITION 1 @words = MESSAGE_TEXT; \
             SELECT @words",
            "<multi=on> ;; SELECT CAST('{w}' AS SIGNED) ;; \
             <pins>SET sql_mode = ''; SHOW WARNINGS ;; <reset>",
            "<multi=on> ;; SELECT CAST('{w}' AS SIGNED) ;; \
             <pins>SET sql_mode = 'ANSI_QUOTES'; SELECT @@warning_count, ROW_COUNT() ;; <reset>",
            "<multi=on> ;; UPDATE {t} SET name = '{w}' ;; \
             <pins>INSERT INTO counting_table (x) VALUES ({n}); SELECT @counted",
            "<multi=on> ;; SELECT id FROM oracle_a.kinds ;; <user=app> ;; \
             <pins>INSERT INTO counting_table (x) VALUES ({n}); SELECT @counted",
            "SELECT CAST('{w}' AS SIGNED) ;; <pins>EXECUTE IMMEDIATE 'SELECT 1' ;; <reset>",
            "SELECT CAST('{w}' AS SIGNED) ;; <pins>SELECT {n}; SHOW WARNINGS; \
             EXECUTE IMMEDIATE 'SELECT 1' ;; <reset>",
            "SELECT CAST('{w}' AS SIGNED) ;; <pins>EXECUTE IMMEDIATE 'SHOW WARNINGS' ;; <reset>",
            "UPDATE {t} SET name = '{w}' ;; <pins>EXECUTE IMMEDIATE 'SELECT ROW_COUNT()' ;; \
             <reset>",
            "SET @counted = {n} ;; UPDATE {t} SET name = '{w}' ;; \
             <pins>CALL firing_procedure({n}) ;; SELECT @counted",
            "SELECT id FROM oracle_a.kinds ;; <pins>SELECT f + 0 FROM oracle_a.counting_view",
            "UPDATE {t} SET name = '{w}' ;; <pins>SELECT c + 0 FROM oracle_a.counting_view",
            "SET @asked = {n} ;; <pins>PREPARE asks FROM 'SELECT ROW_COUNT(), ?' ;; \
             UPDATE {t} SET name = '{w}' ;; EXECUTE asks USING @asked ;; <reset>",
        ],
    ),
    habit(
        "counts",
        6,
        On::Both,
        &[
            "SELECT ROW_COUNT()",
            "UPDATE {t} SET name = '{w}' ;; SELECT ROW_COUNT()",
            "SELECT ROW_COUNT() AS n, 1",
            "INSERT INTO {t} (v) VALUES (ROW_COUNT())",
        ],
    ),
    habit(
        "asked_at_random",
        3,
        On::Both,
        &[
            "SELECT FOUND_ROWS()",
            "SELECT id FROM oracle_a.kinds ;; SELECT FOUND_ROWS(), ROW_COUNT()",
            "SHOW WARNINGS",
            "SELECT @@error_count",
        ],
    ),
    habit(
        "asked_at_random",
        2,
        On::Both,
        &[
            "<pins>SELECT SQL_CALC_FOUND_ROWS id FROM kinds ORDER BY id LIMIT 1 ;; \
         <pins>SELECT FOUND_ROWS()",
        ],
    ),
];
