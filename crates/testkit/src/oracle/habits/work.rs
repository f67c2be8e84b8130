//! Work of clients: they read and write, in transactions and out of them, by text and prepared, run
//! stored code, come and go.
//!
//! The first row is drawn from for statements that are sent together. The rules stand in [`super`].

use super::{Habit, On, habit};

pub(super) const HABITS: &[Habit] = &[
    habit(
        "reads",
        10,
        On::Both,
        &[
            "SELECT id, v, name FROM {t} ORDER BY id",
            "SELECT COUNT(*), SUM(v) FROM {o}",
            "SELECT v FROM {t} WHERE id = {k}",
            "SELECT * FROM kinds ORDER BY id",
            "SELECT price / 3, ratio * 2, word, body, raw FROM kinds WHERE id = {n}",
            "SELECT a.id, b.name FROM {t} a JOIN {t} b ON a.id = b.id ORDER BY a.id LIMIT {n}",
            "SELECT {n} + 1 AS sum, '{w}' AS word, NULL",
            "(SELECT {n} AS x) UNION (SELECT 100) ORDER BY x",
            "SELECT DISTINCT name FROM {t} ORDER BY name",
            "DO {n}",
            "EXPLAIN SELECT {n}",
            "SHOW COLUMNS FROM {t}",
            "SHOW TABLES LIKE 'kin%'",
            "SHOW CREATE TABLE {t}",
        ],
    ),
    habit(
        "writes",
        12,
        On::Both,
        &[
            "INSERT INTO {t} (v) VALUES ({k})",
            "INSERT INTO {t} (v, name) VALUES ({k}, '{w}'), (NULL, '{w}')",
            "INSERT IGNORE INTO {t} (v) VALUES ({k}), ({k})",
            // With the next number as id, a duplicate in `v` may use it up on MySQL, or not.
            "INSERT INTO {t} (id, v) VALUES (1, {n}) ON DUPLICATE KEY UPDATE v = NULL",
            "INSERT INTO {t} (name) SELECT word FROM kinds WHERE word IS NOT NULL ORDER BY id",
            "REPLACE INTO {t} (v, name) VALUES ({k}, '{w}')",
            "UPDATE {t} SET name = '{w}' WHERE id < {k}",
            "UPDATE {t} SET v = NULL WHERE v = {k}",
            "UPDATE {t} SET id = LAST_INSERT_ID(id) WHERE id = {k}",
            "DELETE FROM {t} WHERE id = {k}",
            "DELETE FROM {t} ORDER BY id LIMIT 1",
            "INSERT INTO {t} (v, name) VALUES (LAST_INSERT_ID(), '{w}')",
        ],
    ),
    habit(
        "returning",
        2,
        On::MariaDb,
        &[
            "INSERT INTO {t} (v) VALUES ({k}) RETURNING id, v",
            "DELETE FROM {t} WHERE id = {k} RETURNING *",
            "REPLACE INTO {t} (v) VALUES ({k}) RETURNING id",
            "UPDATE {t} SET v = v + 1 ;; SELECT {n} ;; \
             INSERT INTO {t} (v) VALUES ({k}) RETURNING id, ROW_COUNT(), FOUND_ROWS()",
            "INSERT INTO {t} (v) VALUES ({k}) RETURNING id, `Row_Count`()",
            "<prepare=7>REPLACE INTO {t} (v) VALUES (?) RETURNING v, ROW_COUNT() ;; SELECT {n} ;; \
             <execute=7>{k}",
        ],
    ),
    habit(
        "errors",
        7,
        On::Both,
        &[
            "SELECT * FROM no_such_table",
            "SELECT no_such_column FROM {t}",
            "<pins>SELECT no_such_function({n})",
            "SELEC {n}",
            "SELECT {n} FROM",
            "INSERT INTO {t} (id) VALUES (1), (1)",
            "INSERT INTO {t} (name) VALUES (NULL)",
            "INSERT INTO {t} (name) VALUES ('a name that is longer than its column')",
            "SELECT (SELECT id FROM kinds)",
            "CREATE TABLE kinds (x INT)",
            "USE no_such_schema",
            "<init>no_such_schema",
            "SET no_such_variable = 1",
            "SET sql_mode = 'NO_SUCH_MODE'",
            "SET time_zone = 'No/Such'",
            "SET SESSION sql_select_limit = 'word'",
            "COMMIT AND",
            "SELECT 9223372036854775807 + 1",
            "",
            "/* nothing */",
        ],
    ),
    habit(
        "transactions",
        9,
        On::Both,
        &[
            "<opens>BEGIN",
            "<opens>BEGIN ;; INSERT INTO {t} (v) VALUES ({k}) ;; <closes>COMMIT",
            "<opens>BEGIN ;; UPDATE {t} SET name = '{w}' ;; <closes>ROLLBACK",
            "<opens>START TRANSACTION READ ONLY ;; INSERT INTO {t} (v) VALUES (1) ;; \
             <closes>COMMIT",
            "<opens>START TRANSACTION WITH CONSISTENT SNAPSHOT ;; SELECT COUNT(*) FROM {o} ;; \
         SELECT COUNT(*) FROM {o} ;; <closes>COMMIT",
            "<closes>COMMIT",
            "<closes>ROLLBACK",
            "<opens>COMMIT AND CHAIN",
            "<opens>BEGIN ;; SAVEPOINT s ;; INSERT INTO {t} (v) VALUES ({k}) ;; ROLLBACK TO s ;; \
         SELECT COUNT(*) FROM {t} ;; <closes>COMMIT",
            "SAVEPOINT s",
            "ROLLBACK TO SAVEPOINT s",
            "RELEASE SAVEPOINT s",
            "<opens>BEGIN ;; INSERT INTO {t} (id) VALUES ({k}), ({k}) ;; SHOW WARNINGS ;; \
         <closes>COMMIT",
            "<opens>BEGIN ;; INSERT INTO {t} (name) VALUES ('{w}') ;; \
             <closes>CREATE TABLE {d} (x INT) \
         ;; SELECT * FROM {d} ;; DROP TABLE {d}",
            "<opens>BEGIN ;; SELECT * FROM {t} WHERE id = {k} FOR UPDATE ;; SELEC ;; \
             <closes>ROLLBACK",
            "<opens>BEGIN ;; INSERT INTO {t} (v) VALUES ({k}) ;; SELECT LAST_INSERT_ID() \
         ;; <closes>COMMIT ;; SELECT LAST_INSERT_ID()",
        ],
    ),
    habit(
        "manual_commit",
        3,
        On::Both,
        &[
            "<manual>SET autocommit = 0 ;; INSERT INTO {t} (v) VALUES ({k}) ;; ROLLBACK ;; \
         SELECT COUNT(*) FROM {t} ;; <automatic>SET autocommit = 1",
            "<prepare=7>INSERT INTO {t} (v) VALUES (?) ;; <manual>SET autocommit = 0 ;; \
         INSERT INTO {t} (v) VALUES ({k}) ;; <execute=7>{k} ;; ROLLBACK ;; \
         SELECT COUNT(*) FROM {t} ;; <automatic>SET autocommit = 1",
            "<prepare=7>SELECT ?, 1 / 3 ;; <manual>SET autocommit = 0, \
         div_precision_increment = {n} ;; UPDATE {t} SET v = {k} ;; <execute=7>{k} ;; ROLLBACK ;; \
         SELECT MAX(v) FROM {t} ;; <automatic>SET autocommit = 1",
            "<manual>SET autocommit = OFF",
            "<automatic>SET autocommit = ON",
            "SELECT @@autocommit",
        ],
    ),
    habit(
        "scratch_tables",
        2,
        On::Both,
        &[
            "CREATE TABLE {d} (x INT) ;; INSERT INTO {d} VALUES ({n}) ;; SELECT * FROM {d} ;; \
         DROP TABLE {d}",
            "CREATE TABLE {d} SELECT id, word FROM kinds ;; ALTER TABLE {d} ADD COLUMN y INT ;; \
         SELECT * FROM {d} ORDER BY id ;; DROP TABLE {d}",
            "DROP TABLE {d}",
        ],
    ),
    habit(
        "text_prepare",
        3,
        On::Both,
        &[
            "<pins>PREPARE p FROM 'SELECT ? + {n}' ;; <pins>SET @p = {n} ;; \
             <pins>EXECUTE p USING @p \
         ;; <pins>DEALLOCATE PREPARE p",
            "<pins>EXECUTE p USING @p",
            "<pins>PREPARE q FROM 'INSERT INTO {t} (v) VALUES ({k})' ;; <pins>EXECUTE q",
        ],
    ),
    habit(
        "immediate",
        2,
        On::MariaDb,
        &[
            "<pins>EXECUTE IMMEDIATE 'SELECT ? AS x' USING {n}",
            "<pins>EXECUTE IMMEDIATE 'SET @i = {n}' ;; <pins>SELECT @i",
            "<pins>BEGIN NOT ATOMIC SET @z = {n}; SELECT @z; END",
        ],
    ),
    habit(
        "routines",
        4,
        On::Both,
        &[
            "<pins>SELECT plain_function({n})",
            "<pins>SELECT marking_function({n}) ;; <pins>SELECT @marked",
            "<pins>CALL rows_procedure({n}, @y) ;; <pins>SELECT @y",
            "<pins>CALL setting_procedure() ;; <pins>SELECT @@div_precision_increment, @set_inside",
            "<pins>CALL failing_procedure() ;; <pins>SHOW WARNINGS ;; <pins>SELECT @before_error",
            "<pins>CALL no_such_procedure()",
        ],
    ),
    habit(
        "sequences",
        1,
        On::MariaDb,
        &[
            "CREATE SEQUENCE {d} ;; <pins>SELECT NEXTVAL({d}), LASTVAL({d}) ;; \
         <pins>SELECT LASTVAL({d}) ;; <pins>DROP SEQUENCE {d}",
        ],
    ),
    habit(
        "prepared",
        9,
        On::Both,
        &[
            "<pins prepare=0>SELECT ? AS x, ? AS y ;; <pins execute=0>{n},{w} ;; \
         <pins again=0>{n},~ ;; <pins close=0>",
            "<pins prepare=1>INSERT INTO {t} (v, name) VALUES (?, ?) ;; <pins execute=1>{k},{w} ;; \
         <pins execute=1>~,{w} ;; SELECT LAST_INSERT_ID()",
            "<pins prepare=2>SELECT * FROM kinds WHERE id > ? ORDER BY id ;; <pins cursor=2>0 ;; \
         <pins fetch=2>1 ;; <pins fetch=2>5 ;; <pins clear=2>",
            "<pins prepare=2>SELECT id, tiny, big FROM kinds WHERE id <= ? ORDER BY id ;; \
         <pins execute=2>{n}",
            "<pins execute=0>{n},{n}",
            "<pins execute=1>{k},{w}",
            "<pins again=1>{k},{w}",
            "<pins close=1>",
            "<pins prepare=3>SELECT no_such_column FROM {t}",
            "<pins prepare=3>SELECT LENGTH(?) ;; <pins long=3>a long text ;; \
         <pins long=3>and more of it ;; <pins execute=3>~",
            "<pins prepare=3>SET div_precision_increment = ? ;; <pins execute=3>{n} ;; \
             SELECT 1 / 3",
            "<pins prepare=3>SELECT {n} ;; USE oracle_b ;; <pins execute=3>",
            "<pins prepare=3>SELECT * FROM {t} ORDER BY id ;; SET time_zone = '+0{n}:00' ;; \
         <pins execute=3>",
            "CREATE TABLE {d} (x INT) ;; <pins prepare=3>SELECT * FROM {d} ;; <pins execute=3> ;; \
         ALTER TABLE {d} ADD COLUMN y INT ;; <pins execute=3> ;; DROP TABLE {d} ;; \
         <pins execute=3>",
            "<pins prepare=3>CALL rows_procedure(?, @out) ;; <pins execute=3>{n}",
        ],
    ),
    // What a server tells as it was when the text was prepared, or executed for the first time.
    habit(
        "kept_answers",
        3,
        On::Both,
        &[
            "<prepare=4>SHOW CREATE VIEW {v} ;; <execute=4> ;; \
             ALTER VIEW {v} AS SELECT {n} AS n ;; <prepare=4>SHOW CREATE VIEW {v} ;; \
             SELECT {n} ;; <execute=4> ;; <close=4>",
            "<prepare=4>DESCRIBE {v} ;; <execute=4> ;; ALTER VIEW {v} AS SELECT '{w}' AS w ;; \
             <prepare=4>DESCRIBE {v} ;; SELECT {n} ;; <execute=4> ;; <close=4>",
            "<prepare=4>EXPLAIN SELECT word FROM kinds WHERE id = 1 AND day < DATE'2021-01-01' ;; \
             SELECT {n} ;; <execute=4> ;; SHOW WARNINGS ;; <close=4>",
        ],
    ),
    habit(
        "kept_explanations",
        1,
        On::MariaDb,
        &[
            "<prepare=4>EXPLAIN EXTENDED SELECT word FROM kinds WHERE id = 1 \
             AND moment < TIMESTAMP'2021-01-01 00:00:00' ;; SELECT {n} ;; <execute=4> ;; \
             SHOW WARNINGS ;; <close=4>",
        ],
    ),
    habit(
        "multi_statements",
        3,
        On::Both,
        &[
            "<multi=on> ;; SELECT {n}; SELECT '{w}'; ;; <multi=off>",
            "<multi=on> ;; INSERT INTO {t} (v) VALUES ({k}); SELECT LAST_INSERT_ID()",
            "<multi=on> ;; <pins>SELECT {n}; SELEC; SELECT {n} ;; SHOW WARNINGS",
            "<multi=on> ;; SET div_precision_increment = {n}; SELECT 1 / 3; USE oracle_b ;; \
         SELECT DATABASE()",
            "<multi=off> ;; SELECT 1; SELECT 2",
        ],
    ),
    habit(
        "sessions",
        4,
        On::Both,
        &[
            "<reset>",
            "<ping>",
            "<user=other> ;; SELECT USER(), CURRENT_USER(), DATABASE()",
            "<user=app>",
            "<leave>",
            "<vanish>",
            "SELECT CURRENT_USER()",
        ],
    ),
    habit("together", 5, On::Both, &["<together>"]),
];
