//! Habits of two clients: they wait for a row, a table or a name that the other holds, deadlock,
//! end each other, or leave while the other waits.
//!
//! The order is the text's: what waits has its reply before the story goes on. `{t}` is the table
//! of the first client, for both. The rules stand in [`super`].

use super::{Habit, On, habit};

pub(super) const HABITS: &[Habit] = &[
    habit(
        "rows_waited_for",
        3,
        On::Both,
        &[
            "INSERT IGNORE INTO {t} (id) VALUES (1), (2) ;; <opens>BEGIN ;; \
             UPDATE {t} SET name = '{w}' WHERE id = 1 ;; \
             <b blocked>UPDATE {t} SET name = 'b' WHERE id = 1 ;; <closes answers>COMMIT ;; \
             SELECT * FROM {t} ORDER BY id",
            "INSERT IGNORE INTO {t} (id) VALUES (1), (2) ;; <opens>BEGIN ;; \
             DELETE FROM {t} WHERE id = 1 ;; <b opens>BEGIN ;; \
             <b blocked>SELECT * FROM {t} WHERE id = 1 FOR UPDATE ;; <closes answers>ROLLBACK ;; \
             <b closes>COMMIT",
            "INSERT IGNORE INTO {t} (id) VALUES (1) ;; <opens>BEGIN ;; \
             UPDATE {t} SET name = '{w}' WHERE id = 1 ;; \
             <b blocked>UPDATE {t} SET name = 'b' WHERE id = 1 ;; <vanish answers> ;; \
             <b>SELECT name FROM {t} WHERE id = 1",
            "INSERT IGNORE INTO {t} (id) VALUES (1) ;; <opens>BEGIN ;; \
             UPDATE {t} SET name = '{w}' WHERE id = 1 ;; \
             <b blocked>UPDATE {t} SET name = 'b' WHERE id = 1 ;; <reset answers> ;; \
             SELECT name FROM {t} WHERE id = 1",
        ],
    ),
    habit(
        "rows_not_waited_for",
        2,
        On::Both,
        &[
            "INSERT IGNORE INTO {t} (id) VALUES (1), (2) ;; <opens>BEGIN ;; \
             UPDATE {t} SET name = '{w}' WHERE id = 1 ;; \
             <b>SELECT id FROM {t} WHERE id = 1 FOR UPDATE NOWAIT ;; <b>SHOW WARNINGS ;; \
             <b>SELECT id FROM {t} ORDER BY id FOR UPDATE SKIP LOCKED ;; <closes>COMMIT",
            "INSERT IGNORE INTO {t} (id) VALUES (1) ;; <opens>BEGIN ;; \
             UPDATE {t} SET name = '{w}' WHERE id = 1 ;; <b opens>BEGIN ;; \
             <b>SELECT id FROM {t} WHERE id = 1 FOR UPDATE NOWAIT ;; \
             <b>SELECT COUNT(*) FROM kinds ;; <b closes>ROLLBACK ;; <closes>ROLLBACK",
        ],
    ),
    // Reported as variables, which do not last.
    habit(
        "locks_not_waited_for",
        2,
        On::MariaDb,
        &[
            "SELECT id FROM {t} WHERE id = {n} FOR UPDATE NOWAIT ;; \
             <b>SELECT @@lock_wait_timeout, @@innodb_lock_wait_timeout ;; \
             SELECT @@lock_wait_timeout, @@innodb_lock_wait_timeout",
            "CREATE TABLE {d} (x INT) ;; DROP TABLE {d} WAIT 1{n} ;; SELECT @@lock_wait_timeout ;; \
             <b>SELECT @@lock_wait_timeout",
            "<opens>BEGIN ;; SELECT id INTO @p FROM {t} WHERE id = {n} FOR UPDATE NOWAIT ;; \
             <closes>COMMIT ;; SELECT @p, @@lock_wait_timeout ;; <b>SELECT @@lock_wait_timeout",
            "<pins>SET @p = (SELECT MIN(id) FROM {t} LOCK IN SHARE MODE WAIT {n}) ;; \
             <b>SELECT @@lock_wait_timeout ;; SELECT @@lock_wait_timeout ;; <reset>",
        ],
    ),
    // Forms of what others ask, set or find in plainer words.
    habit(
        "odd_forms",
        3,
        On::MariaDb,
        &[
            "<pins>SET STATEMENT character_set_server = latin1 FOR SELECT {n} ;; \
             <b>SELECT @@collation_server ;; SELECT @@collation_server ;; <reset>",
            "<pins>SET STATEMENT character_set_results = latin1 FOR SELECT {n} ;; \
             <b>SELECT name FROM {t} ;; SELECT name FROM {t} ;; <reset>",
            "SELECT CAST('1x' AS SIGNED) ;; <b>SELECT {k} ;; \
             <pins>BEGIN NOT ATOMIC SHOW WARNINGS; END ;; <reset>",
            "SELECT no_such_column ;; <b>SELECT {k} ;; \
             <pins>SET STATEMENT max_statement_time = 9 FOR IF 1 THEN SHOW ERRORS; END IF ;; \
             <reset>",
            "SELECT id FROM oracle_a.kinds ;; <b>SELECT {k} ;; SET @p = (VALUES ({n})) ;; \
             <b>SELECT {k} ;; SELECT FOUND_ROWS()",
            "SELECT id FROM oracle_a.kinds ;; <b>SELECT {k} ;; \
             INSERT INTO {t} SET v = (VALUES ({k})) ;; <b>SELECT {k} ;; SELECT FOUND_ROWS()",
        ],
    ),
    habit(
        "rows_waited_for_in_vain",
        1,
        On::Both,
        &["INSERT IGNORE INTO {t} (id) VALUES (1) ;; <opens>BEGIN ;; \
             UPDATE {t} SET name = '{w}' WHERE id = 1 ;; <b>SET innodb_lock_wait_timeout = 1 ;; \
             <b opens>BEGIN ;; <b>UPDATE {t} SET name = 'b' WHERE id = 1 ;; <b>SHOW WARNINGS ;; \
             <b>SELECT 1 ;; <b closes>COMMIT ;; <closes>COMMIT ;; \
             <b>SET innodb_lock_wait_timeout = DEFAULT"],
    ),
    habit(
        "deadlocks",
        2,
        On::Both,
        &[
            // The one that has changed less has to give way. Row by row: a list of ids may lock
            // the whole table.
            "INSERT IGNORE INTO {t} (id) VALUES (1), (2), (3) ;; <opens>BEGIN ;; \
             INSERT INTO {t} (name) VALUES ('{w}'), ('{w}'), ('{w}') ;; \
             UPDATE {t} SET name = 'a' WHERE id = 1 ;; <b opens>BEGIN ;; \
             <b>UPDATE {t} SET name = 'b' WHERE id = 2 ;; \
             <b closes blocked>UPDATE {t} SET name = 'b' WHERE id = 1 ;; \
             <answers>UPDATE {t} SET name = 'a' WHERE id = 2 ;; <b>SHOW WARNINGS ;; \
             <b>COMMIT ;; <closes>COMMIT ;; SELECT * FROM {t} ORDER BY id",
            "INSERT IGNORE INTO {t} (id) VALUES (1), (2), (3) ;; <opens>BEGIN ;; \
             UPDATE {t} SET name = 'a' WHERE id = 1 ;; <b opens>BEGIN ;; \
             <b>INSERT INTO {t} (name) VALUES ('{w}'), ('{w}'), ('{w}') ;; \
             <b>UPDATE {t} SET name = 'b' WHERE id = 2 ;; \
             <b blocked>UPDATE {t} SET name = 'b' WHERE id = 1 ;; \
             <closes answers>UPDATE {t} SET name = 'a' WHERE id = 2 ;; SELECT @@in_transaction ;; \
             <b closes>COMMIT ;; SELECT * FROM {t} ORDER BY id",
        ],
    ),
    habit(
        "names_waited_for",
        3,
        On::Both,
        &[
            "<takes>SELECT GET_LOCK('{l}', 5) ;; <b takes blocked>SELECT GET_LOCK('{l}', 10) ;; \
             <gives answers>SELECT RELEASE_LOCK('{l}') ;; SELECT IS_FREE_LOCK('{l}') ;; \
             <b gives>SELECT RELEASE_LOCK('{l}')",
            "<takes>SELECT GET_LOCK('{l}', 5) ;; <b takes blocked>SELECT GET_LOCK('{l}', 10) ;; \
             <vanish answers> ;; <b gives>SELECT RELEASE_ALL_LOCKS()",
            "<takes>SELECT GET_LOCK('{l}', 5) ;; <b takes blocked>SELECT GET_LOCK('{l}', 10) ;; \
             <reset answers> ;; SELECT IS_FREE_LOCK('{l}') ;; <b gives>DO RELEASE_LOCK('{l}')",
            "<takes>SELECT GET_LOCK('{l}', 5) ;; <b takes blocked>SELECT GET_LOCK('{l}', 10) ;; \
             <b vanish> ;; <gives answers>SELECT RELEASE_LOCK('{l}') ;; \
             <takes>SELECT GET_LOCK('{l}', 10) ;; <gives>DO RELEASE_LOCK('{l}')",
            "<takes>DO GET_LOCK('{l}', 5) ;; <b>SELECT GET_LOCK('{l}', 0), IS_FREE_LOCK('{l}') ;; \
             <gives>DO RELEASE_LOCK('{l}') ;; <b>SELECT IS_FREE_LOCK('{l}')",
        ],
    ),
    habit(
        "tables_waited_for",
        2,
        On::Both,
        &[
            "CREATE TABLE {d} (x INT) ;; <takes>LOCK TABLES {d} WRITE ;; \
             <b blocked>INSERT INTO {d} VALUES ({n}) ;; <gives answers>UNLOCK TABLES ;; \
             SELECT * FROM {d} ;; DROP TABLE {d}",
            "CREATE TABLE {d} (x INT) ;; <takes>LOCK TABLES {d} WRITE ;; \
             <b blocked>SELECT COUNT(*) FROM {d} ;; <vanish answers> ;; <b>DROP TABLE {d}",
            "CREATE TABLE {d} (x INT) ;; <opens>BEGIN ;; SELECT * FROM {d} ;; \
             <b blocked>ALTER TABLE {d} ADD COLUMN y INT ;; <closes answers>COMMIT ;; \
             SELECT * FROM {d} ;; DROP TABLE {d}",
        ],
    ),
    habit(
        "kills",
        3,
        On::Both,
        &[
            "<b blocked>SELECT SLEEP(9), '{w}' ;; <kill=query answers> ;; <b>SELECT {n}",
            "<takes>SELECT GET_LOCK('{l}', 5) ;; <b takes blocked>SELECT GET_LOCK('{l}', 10) ;; \
             <kill=query answers> ;; <gives>DO RELEASE_LOCK('{l}') ;; \
             <b gives>SELECT RELEASE_LOCK('{l}')",
            "<opens>BEGIN ;; INSERT INTO {t} (v) VALUES ({k}) ;; \
             <b blocked>SELECT SLEEP(9) ;; <kill=query answers> ;; <closes>COMMIT",
            "<b opens>BEGIN ;; <b blocked>SELECT COUNT(*), SLEEP(9) FROM kinds WHERE id = 1 ;; \
             <kill=query answers> ;; <b>SELECT {n} ;; <b closes>COMMIT",
            "<kill=query> ;; <b>SELECT {n}",
            "<b takes>SELECT GET_LOCK('{l}', 5) ;; <kill=connection> ;; \
             <takes>SELECT GET_LOCK('{l}', 10) ;; <gives>DO RELEASE_LOCK('{l}')",
            "INSERT IGNORE INTO {t} (id) VALUES (1) ;; <b opens>BEGIN ;; \
             <b>UPDATE {t} SET name = 'b' WHERE id = 1 ;; <kill=command> ;; \
             UPDATE {t} SET name = 'a' WHERE id = 1",
        ],
    ),
];
