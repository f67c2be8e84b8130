//! Habits that acquire something and give it back, and statements prepared by name.
//!
//! A text follows the rules of `habits`; between `takes` and `gives` its client keeps a backend,
//! and none before and after: where the pool kept it for longer, another client's step would wait
//! in vain.

use super::{Habit, On, habit};

pub(super) const HABITS: &[Habit] = &[
    habit(
        "locks_that_end",
        4,
        On::Both,
        &[
            "<takes>SELECT GET_LOCK('{l}', 5) ;; SELECT {n} ;; <gives>SELECT RELEASE_LOCK('{l}')",
            "<takes>DO GET_LOCK('{l}', 5), GET_LOCK('{l}b', 5) ;; SELECT IS_FREE_LOCK('{l}b') ;; \
             DO RELEASE_LOCK('{l}') ;; <gives>SELECT RELEASE_LOCK('{l}b')",
            "<takes>SELECT GET_LOCK('{l}', 5) ;; SELECT GET_LOCK('{l}', 5) ;; \
             SELECT RELEASE_LOCK('{l}') ;; SELECT IS_FREE_LOCK('{l}') ;; \
             <gives>SELECT RELEASE_LOCK('{l}')",
            "<takes>SELECT GET_LOCK('{l}', 5) ;; <gives>SELECT RELEASE_ALL_LOCKS()",
            "<takes>SELECT GET_LOCK(CONCAT('{l}', 'c'), 5) ;; SELECT {n} ;; \
             <gives>SELECT RELEASE_ALL_LOCKS()",
            "<takes>SELECT GET_LOCK('{l}', 5) ;; <opens>BEGIN ;; \
             INSERT INTO {t} (v) VALUES ({k}) ;; SELECT RELEASE_LOCK('{l}') ;; <closes>COMMIT ;; \
             <gives>SELECT {n}",
        ],
    ),
    habit(
        "temporary_tables_that_end",
        4,
        On::Both,
        &[
            "<takes>CREATE TEMPORARY TABLE {d} (x INT) ;; INSERT INTO {d} VALUES ({n}) ;; \
             SELECT * FROM {d} ;; <gives>DROP TEMPORARY TABLE {d} ;; SELECT * FROM {d}",
            "<takes>CREATE TEMPORARY TABLE {t} (id INT, x CHAR(3)) ;; \
             INSERT INTO {t} VALUES ({n}, 'tmp') ;; SELECT * FROM {t} ;; \
             <gives>DROP TEMPORARY TABLE {t} ;; SELECT id, v FROM {t} ORDER BY id",
            "<prepare=4>SELECT * FROM {t} ORDER BY 1 ;; \
             <takes>CREATE TEMPORARY TABLE {t} (z INT) ;; <execute=4> ;; \
             <gives>DROP TEMPORARY TABLE {t} ;; <execute=4>",
            "<takes>CREATE TEMPORARY TABLE IF NOT EXISTS {d} SELECT {n} AS x ;; \
             SET @p = {n}, div_precision_increment = {n} ;; \
             <gives>DROP TEMPORARY TABLE IF EXISTS {d} ;; SELECT @p, 1 / 3",
            "<takes>CREATE TEMPORARY TABLE {d} (x NO_SUCH_TYPE) ;; <gives>SELECT {n}",
            "<pins>CREATE TEMPORARY TABLE {d} (x INT) ;; ALTER TABLE {d} RENAME TO {d}b ;; \
             SELECT * FROM {d}b ;; DROP TEMPORARY TABLE {d}b",
        ],
    ),
    habit(
        "table_locks_that_end",
        3,
        On::Both,
        &[
            "CREATE TABLE {d} (x INT) ;; <takes>LOCK TABLES {d} WRITE ;; \
             INSERT INTO {d} VALUES ({n}) ;; SELECT * FROM kinds ;; <gives>UNLOCK TABLES ;; \
             SELECT * FROM {d} ;; DROP TABLE {d}",
            "CREATE TABLE {d} (x INT) ;; <takes>LOCK TABLES {d} READ ;; \
             INSERT INTO {d} VALUES ({n}) ;; SET time_zone = '+0{n}:00' ;; \
             <gives>UNLOCK TABLES ;; SELECT @@time_zone ;; DROP TABLE {d}",
            "CREATE TABLE {d} (x INT) ;; <takes>LOCK TABLES {d} WRITE ;; <opens>BEGIN ;; \
             INSERT INTO {d} VALUES ({n}) ;; <closes>COMMIT ;; <gives>DROP TABLE {d}",
            "<takes>LOCK TABLES no_such_table READ ;; <gives>SELECT {n}",
            "UNLOCK TABLES",
        ],
    ),
    habit(
        "backup_locks_that_end",
        1,
        On::MariaDb,
        &["<takes>BACKUP LOCK {t} ;; SELECT COUNT(*) FROM {t} ;; <gives>BACKUP UNLOCK"],
    ),
    habit(
        "handlers_that_end",
        2,
        On::Both,
        &[
            "<takes>HANDLER kinds OPEN AS h ;; HANDLER h READ FIRST ;; HANDLER h READ NEXT ;; \
             <gives>HANDLER h CLOSE ;; HANDLER h READ NEXT",
            "<takes>HANDLER no_such_table OPEN ;; <gives>SELECT {n}",
        ],
    ),
    habit(
        "xa_that_ends",
        2,
        On::Both,
        &[
            "<takes>XA START 'y{l}' ;; INSERT INTO {t} (v) VALUES ({k}) ;; XA END 'y{l}' ;; \
             <gives>XA COMMIT 'y{l}' ONE PHASE ;; SELECT COUNT(*) FROM {t}",
            "<takes>XA START 'y{l}', 'b' ;; UPDATE {t} SET name = '{w}' ;; XA END 'y{l}', 'b' ;; \
             <gives>XA ROLLBACK 'y{l}', 'b' ;; SELECT COUNT(*) FROM {t}",
        ],
    ),
    // Whoever prepares or executes by name keeps the backend.
    habit(
        "named",
        7,
        On::Both,
        &[
            "<pins>PREPARE p FROM 'SELECT ? + {n} AS x' ;; SET @p = {n} ;; EXECUTE p USING @p ;; \
             EXECUTE p ;; DEALLOCATE PREPARE p ;; EXECUTE p ;; <reset> ;; DEALLOCATE PREPARE p",
            "<pins>PREPARE p FROM 'SELECT ? AS x, ''{w}'' AS w' ;; SET @p = {n} ;; \
             EXECUTE p USING @p",
            "<pins>EXECUTE p USING @p ;; <reset>",
            "<pins>PREPARE p FROM 'SELECT {n}' ;; PREPARE p FROM 'SELEC' ;; EXECUTE p ;; <reset>",
            "<pins>PREPARE p FROM 'SELEC' ;; SHOW WARNINGS ;; <reset>",
            "<pins>PREPARE q FROM 'INSERT INTO {t} (v) VALUES ({k})' ;; EXECUTE q ;; \
             SELECT LAST_INSERT_ID() ;; EXECUTE q ;; <reset>",
            "DEALLOCATE PREPARE q ;; SHOW WARNINGS",
            "DROP PREPARE never",
            "<pins>PREPARE R FROM 'SELECT * FROM {t} ORDER BY id' ;; EXECUTE r ;; <b>SELECT {k} ;; \
             EXECUTE r",
            "<pins>PREPARE s FROM 'SET div_precision_increment = {n}' ;; EXECUTE s ;; \
             SELECT 1 / 3 ;; <reset> ;; SELECT 1 / 3",
            "SET @p = CONCAT('SELECT ', {n}, ' AS n') ;; <pins>PREPARE u FROM @p ;; EXECUTE u ;; \
             <reset>",
            "<opens>BEGIN ;; SET @p = 'SELECT {n} AS n' ;; <pins>PREPARE u FROM @p ;; \
             EXECUTE u ;; <closes>COMMIT ;; EXECUTE u ;; <reset>",
            "<pins>PREPARE w FROM 'SELECT DATABASE(), COUNT(*) FROM {t}' ;; USE oracle_b ;; \
             EXECUTE w ;; USE oracle_a ;; <reset>",
            "<pins>PREPARE g FROM 'SELECT GET_LOCK(''{l}'', 5)' ;; EXECUTE g ;; SELECT {n} ;; \
             DO RELEASE_LOCK('{l}') ;; <reset>",
            "<pins>PREPARE c FROM 'COMMIT' ;; <closes>EXECUTE c ;; <reset>",
            "<pins>PREPARE e FROM 'INSERT INTO {t} (id) VALUES (1), (1)' ;; EXECUTE e ;; \
             SHOW WARNINGS ;; <reset>",
        ],
    ),
    // A server makes a variable when it prepares what would set it.
    habit(
        "prepared_to_set",
        4,
        On::Both,
        &[
            "<pins>PREPARE v FROM 'SELECT @unset_u := {n}' ;; SELECT {k} ;; <reset>",
            "<pins>PREPARE v FROM 'SET @unset_u = {n}' ;; EXECUTE v ;; <reset> ;; SELECT @unset_u",
            "<prepare=7>SELECT @unset_u := {n} ;; SELECT {k}",
            "<prepare=7>SELECT @unset_u := {n} ;; SELECT {k} ;; <execute=7> ;; SELECT @unset_u",
            "<prepare=7>INSERT INTO {t} (v) SELECT @unset_u := {n} ;; SELECT {k} ;; <close=7>",
            "<prepare=7>SELECT @unset_m := {n} ;; SELECT {k} ;; \
             <b>SELECT @unset_m := IFNULL(@unset_m, 0) + 1 AS u FROM kinds ORDER BY id ;; \
             <execute=7>",
            "SELECT @unset_u := IFNULL(@unset_u, 0) + 1 AS u FROM kinds ORDER BY id",
            "SELECT @unset_u, CHARSET(@unset_u), COLLATION(@unset_u)",
        ],
    ),
    // Texts in which a name is used among other statements.
    habit(
        "named_among_others",
        2,
        On::Both,
        &[
            "<multi=on> ;; <pins>PREPARE p FROM 'SELECT {n} AS x' ;; SELECT {k} ;; \
             DO 1; EXECUTE p; SELECT {n} ;; EXECUTE p ;; <reset>",
            "<multi=on> ;; <pins>PREPARE p FROM 'SELECT {n}'; EXECUTE p; DEALLOCATE PREPARE p ;; \
             EXECUTE p ;; <reset>",
            "<multi=on> ;; <pins>EXECUTE p; SELECT 1 ;; <reset>",
        ],
    ),
    habit(
        "named_behind_set",
        1,
        On::MariaDb,
        &[
            "<pins>PREPARE p FROM 'SELECT {n}, @@max_statement_time' ;; SELECT {k} ;; \
             SET STATEMENT max_statement_time = 9 FOR EXECUTE p ;; EXECUTE p ;; <reset>",
            "<pins>SET STATEMENT max_statement_time = 9 FOR EXECUTE never ;; <reset>",
        ],
    ),
    habit(
        "immediate_texts",
        2,
        On::MariaDb,
        &[
            "<pins>EXECUTE IMMEDIATE 'SELECT ? AS x, {n} AS y' USING '{w}' ;; <reset>",
            "<pins>EXECUTE IMMEDIATE 'INSERT INTO {t} (v) VALUES ({k})' ;; \
             SELECT LAST_INSERT_ID() ;; <reset>",
            "<pins>EXECUTE IMMEDIATE 'SELEC' ;; <reset>",
            "<pins>EXECUTE IMMEDIATE 'SET div_precision_increment = {n}' ;; SELECT 1 / 3",
            "<pins>EXECUTE IMMEDIATE 'CREATE TEMPORARY TABLE {d} (x INT)' ;; \
             SELECT * FROM {d} ;; DROP TEMPORARY TABLE {d} ;; <reset>",
        ],
    ),
    habit(
        "temporary_tables",
        3,
        On::Both,
        &[
            "<pins>CREATE TEMPORARY TABLE {d} (x INT) ;; <pins>INSERT INTO {d} VALUES ({n}) ;; \
         <pins>SELECT * FROM {d} ;; <pins>DROP TEMPORARY TABLE {d}",
            "<pins>CREATE TEMPORARY TABLE {t} (id INT, v INT, name INT)",
            "<pins>DROP TEMPORARY TABLE IF EXISTS {t}",
            "<pins>CREATE TEMPORARY TABLE {d} SELECT 1 AS x ;; <pins>DROP TABLE {d}",
            "<pins>CREATE TEMPORARY TABLE {d} (x INT) ;; <init>oracle_b ;; \
             CREATE TABLE {d} (y INT) ;; DROP TABLE oracle_a.{d} ;; <init>oracle_a ;; \
             <pins>SELECT * FROM {d}",
        ],
    ),
    habit(
        "locks",
        3,
        On::Both,
        &[
            "<pins>SELECT GET_LOCK('{l}', 5)",
            "<pins>SELECT GET_LOCK('{l}', 5), GET_LOCK('{l}', 5) ;; \
             <pins>SELECT RELEASE_LOCK('{l}')",
            "<pins>SELECT RELEASE_ALL_LOCKS()",
            "<pins>DO RELEASE_LOCK('{l}')",
        ],
    ),
    habit(
        "table_locks",
        2,
        On::Both,
        &[
            "CREATE TABLE {d} (x INT) ;; <pins>LOCK TABLES {d} WRITE ;; \
             <pins>SELECT * FROM kinds ;; \
         <pins>INSERT INTO {d} VALUES ({n}) ;; <pins>UNLOCK TABLES ;; <pins>DROP TABLE {d}",
            "<excludes>FLUSH TABLES WITH READ LOCK ;; <pins>INSERT INTO {t} (v) VALUES ({k}) ;; \
         <includes>UNLOCK TABLES",
        ],
    ),
    habit(
        "handlers",
        1,
        On::Both,
        &[
            "<pins>HANDLER kinds OPEN ;; <pins>HANDLER kinds READ FIRST ;; \
         <pins>HANDLER kinds READ NEXT ;; <pins>HANDLER kinds CLOSE",
        ],
    ),
    habit(
        "xa",
        1,
        On::Both,
        &[
            "<pins>XA START 'x{l}' ;; <pins>INSERT INTO {t} (v) VALUES ({k}) ;; \
             <pins>XA END 'x{l}' ;; \
         <pins>XA COMMIT 'x{l}' ONE PHASE",
            "<pins>XA START 'x{l}' ;; <pins>BEGIN ;; <pins>XA END 'x{l}' ;; \
             <pins>XA ROLLBACK 'x{l}'",
        ],
    ),
];
