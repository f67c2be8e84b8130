//! Stored code that the pool knows and code that it does not, roles, savepoints and transactions
//! that are refused.
//!
//! `{p}` is a procedure that writes to the client's own table. What is called without `pins` is
//! known code (docs/pool/stored-code.md), which may keep no backend. The rules stand in [`super`].

use super::{Habit, On, habit};

pub(super) const HABITS: &[Habit] = &[
    habit(
        "known_procedures",
        5,
        On::Both,
        &[
            "CALL rows_procedure({n}, @y) ;; SELECT {n} ;; SELECT @y",
            "CALL rows_procedure({n}, @y)",
            "CALL {p}({k}, @n) ;; SELECT @n, LAST_INSERT_ID() ;; SELECT v FROM {t} ORDER BY id",
            "CALL {p}({k}, @n) ;; CALL {p}({k}, @n) ;; SELECT @n",
            "<opens>BEGIN ;; CALL {p}({k}, @n) ;; <closes>ROLLBACK ;; \
             SELECT COUNT(*), @n FROM {t}",
            "CALL {p}(NULL, @n) ;; SELECT @n",
            "CALL {p}({k}) ;; SHOW WARNINGS",
            "CALL handling_procedure({n}, @h) ;; SELECT @h",
            "CALL reading_procedure({n}) ;; SELECT {n}; CALL reading_procedure({n}); SELECT {k}",
            "<prepare=7>CALL reading_procedure(?) ;; <execute=7>{n} ;; SELECT {n} ;; \
             <execute=7>{k}",
            "<pins>CALL failing_procedure() ;; SHOW WARNINGS ;; SELECT @before_error",
            "SET @before_error = {n} ;; <pins>CALL failing_procedure() ;; SELECT @before_error",
            "<pins>CALL setting_procedure() ;; SELECT @@div_precision_increment, @set_inside",
            "<pins>CALL modal_procedure('PIPES_AS_CONCAT') ;; SELECT @@sql_mode, '{w}' || 'x'",
            "CALL oracle_b.rows_procedure({n}, @y) ;; SELECT DATABASE(), @y",
            "<prepare=7>CALL {p}(?, @n) ;; <execute=7>{k} ;; SELECT @n ;; <execute=7>{k}",
        ],
    ),
    habit(
        "out_parameters",
        1,
        // MySQL ends their row otherwise for clients that have EOF packets.
        On::MariaDb,
        &[
            "<prepare=7>CALL rows_procedure(?, ?) ;; <execute=7>{n},~ ;; SELECT {n} ;; \
             <execute=7>{n},~",
        ],
    ),
    habit(
        "unknown_procedures",
        3,
        On::Both,
        &[
            "<pins>CALL locking_procedure('{l}') ;; SELECT IS_FREE_LOCK('{l}') ;; \
             SELECT RELEASE_ALL_LOCKS()",
            "<pins>CALL locking_procedure('{l}') ;; <reset> ;; SELECT IS_FREE_LOCK('{l}')",
            "<pins>CALL locking_procedure('{l}') ;; <vanish>",
            "<pins>CALL tempting_procedure({n}) ;; SELECT * FROM left_behind ;; \
             DROP TEMPORARY TABLE left_behind ;; SELECT * FROM left_behind",
            "<pins>CALL tempting_procedure({n}) ;; <reset> ;; SELECT * FROM left_behind",
            "<pins>CALL preparing_procedure({n}) ;; EXECUTE inside",
            "<pins>CALL preparing_procedure(NULL) ;; SELECT {n}",
            // It gives a name of its caller's to something else, perhaps on another backend.
            "<pins>PREPARE inside FROM 'SELECT ''{w}''' ;; SELECT {n} ;; \
             CALL preparing_procedure({n}) ;; EXECUTE inside ;; \
             DEALLOCATE PREPARE inside ;; EXECUTE inside ;; <reset>",
            "<pins>PREPARE p FROM 'SELECT ''{w}''' ;; SELECT {n} ;; \
             CALL preparing_procedure({n}) ;; EXECUTE p ;; PREPARE p FROM 'SELECT {n}' ;; \
             EXECUTE p ;; <reset>",
        ],
    ),
    habit(
        "functions",
        3,
        On::Both,
        &[
            // On MariaDB such a SELECT shows the count of older warnings, which these clear.
            "UPDATE {t} SET name = '{w}' ;; SELECT plain_function(plain_function({n})), '{w}'",
            "UPDATE {t} SET name = '{w}' ;; <pins>SELECT marking_function({n}) ;; SELECT @marked",
            "INSERT INTO {t} (v) VALUES (plain_function({k})) ;; SELECT LAST_INSERT_ID()",
            "SET @f = plain_function({n}) ;; SELECT @f",
            "DELETE FROM {t} WHERE plain_function(id) = {k} ;; SELECT ROW_COUNT()",
            "SELECT plain_function() ;; SHOW WARNINGS",
            "<pins>SELECT plain_function({n}), no_such_function({n})",
            // They pin for another cause in front of the code that nobody knows.
            "<pins>CREATE TEMPORARY TABLE {d} SELECT no_such_function({n}) AS x",
            "<pins>SELECT IS_FREE_LOCK('{l}'), no_such_function({n})",
        ],
    ),
    habit(
        "code_that_marks",
        3,
        On::Both,
        &[
            "<pins>SELECT m FROM oracle_b.marking_view ;; SELECT @marked ;; <reset> ;; \
             SELECT @marked",
            "<pins>SELECT m FROM marking_view ;; SELECT @marked ;; <b>SELECT @marked",
            "<pins>SELECT m FROM oracle_b.marking_view ;; <vanish> ;; <b>SELECT @marked",
            // A READ ONLY transaction fires no trigger, so these set it first.
            "SET @marked = {n} ;; <pins>INSERT INTO oracle_b.marking_table VALUES ({k}) ;; \
             SELECT @marked ;; <reset> ;; SELECT @marked",
            "SET @marked = {n} ;; <pins>INSERT INTO oracle_b.marking_table VALUES ({k}) ;; \
             <b>SELECT @marked ;; SELECT @marked",
            "SET @marked = {n} ;; <opens>BEGIN ;; \
             <pins>INSERT INTO oracle_b.marking_table VALUES ({k}) ;; <closes>ROLLBACK ;; \
             SELECT @marked ;; <b>SELECT @marked",
            "<prepare=7>INSERT INTO oracle_b.marking_table VALUES (?) ;; SET @marked = {n} ;; \
             <pins execute=7>{k} ;; SELECT @marked",
            "SET @marked = {n} ;; <pins>INSERT INTO marking_table VALUES ({k}), ({n}) ;; \
             SELECT @marked",
            "SET @marked = {n} ;; <pins>CALL oracle_b.marking_procedure({k}) ;; SELECT @marked ;; \
             <b>SELECT @marked",
            "SET @marked = {n} ;; <pins>CALL marking_procedure({k}) ;; SELECT @marked ;; \
             <reset> ;; SELECT @marked",
            "SET @marked = {n} ;; UPDATE {t} SET name = '{w}' ;; \
             <pins>SELECT oracle_b.marking_function({k}) ;; SELECT @marked ;; <b>SELECT @marked",
        ],
    ),
    habit(
        "code_made",
        1,
        On::Both,
        &[
            "CREATE TABLE {d} (x INT) ;; <pins>CREATE TRIGGER {d}_t BEFORE INSERT ON {d} \
             FOR EACH ROW SET @seen = NEW.x, NEW.x = NEW.x + 1 ;; \
             INSERT INTO {d} VALUES ({n}) ;; SELECT @seen ;; SELECT * FROM {d} ;; DROP TABLE {d}",
            "CREATE TABLE {d} (x INT) ;; <pins>CREATE TRIGGER {d}_t BEFORE INSERT ON {d} \
             FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = '{w}' ;; \
             INSERT INTO {d} VALUES ({n}) ;; SHOW WARNINGS ;; DROP TABLE {d}",
        ],
    ),
    habit(
        "roles",
        4,
        On::Both,
        &[
            "SET ROLE oracle_reader ;; SELECT CURRENT_ROLE() ;; SET ROLE NONE ;; \
             SELECT CURRENT_ROLE()",
            "SET ROLE oracle_writer ;; SELECT CURRENT_ROLE(), {n}",
            "SET ROLE NONE",
            "SELECT CURRENT_ROLE()",
            "SET ROLE no_such_role ;; SHOW WARNINGS ;; SELECT CURRENT_ROLE()",
            "SET ROLE oracle_reader ;; <reset> ;; SELECT CURRENT_ROLE() ;; SET ROLE NONE",
            "<opens>BEGIN ;; SET ROLE oracle_reader ;; <closes>ROLLBACK ;; \
             SELECT CURRENT_ROLE() ;; SET ROLE NONE",
            "<prepare=4>SELECT CURRENT_ROLE() ;; SET ROLE oracle_writer ;; <execute=4> ;; \
             SET ROLE NONE ;; <execute=4>",
        ],
    ),
    habit(
        "savepoints",
        3,
        On::Both,
        &[
            "<opens>BEGIN ;; SAVEPOINT a ;; INSERT INTO {t} (id) VALUES (1) ;; SAVEPOINT b ;; \
             INSERT INTO {t} (id) VALUES (1) ;; ROLLBACK TO a ;; RELEASE SAVEPOINT b ;; \
             SHOW WARNINGS ;; SELECT COUNT(*) FROM {t} ;; <closes>COMMIT",
            "<opens>BEGIN ;; ROLLBACK TO never ;; RELEASE SAVEPOINT never ;; \
             INSERT INTO {t} (v) VALUES ({k}) ;; <closes>COMMIT",
            "<opens>BEGIN ;; SAVEPOINT a ;; <closes>CREATE TABLE {d} (x INT) ;; \
             ROLLBACK TO a ;; SHOW WARNINGS ;; DROP TABLE {d}",
            "<manual>SET autocommit = 0 ;; SAVEPOINT a ;; INSERT INTO {t} (v) VALUES ({k}) ;; \
             ROLLBACK TO a ;; COMMIT ;; SELECT COUNT(*) FROM {t} ;; <automatic>SET autocommit = 1",
            "SAVEPOINT a ;; ROLLBACK TO a",
            "<opens>BEGIN ;; SAVEPOINT a ;; SELEC ;; RELEASE SAVEPOINT a ;; ROLLBACK TO a ;; \
             <closes>ROLLBACK",
            "<opens>BEGIN ;; SAVEPOINT A ;; SAVEPOINT a ;; <closes>COMMIT AND NO CHAIN ;; \
             RELEASE SAVEPOINT a",
        ],
    ),
    habit(
        "leaves_in_a_transaction",
        3,
        On::Both,
        &[
            // Nobody waits for the rows: the server may be slow to notice.
            "<opens>BEGIN ;; INSERT INTO {t} (name) VALUES ('{w}') ;; <vanish> ;; \
             <b>SELECT COUNT(*) FROM {t} ;; <b>SELECT {n}",
            "<opens>BEGIN ;; INSERT INTO {t} (name) VALUES ('{w}') ;; <leave> ;; \
             <b>SELECT COUNT(*) FROM {t}",
            "<manual>SET autocommit = 0 ;; INSERT INTO {t} (name) VALUES ('{w}') ;; <vanish> ;; \
             <b>SELECT COUNT(*) FROM {t}",
        ],
    ),
    habit(
        "distributed_in_vain",
        2,
        On::Both,
        &[
            "XA END 'never' ;; XA PREPARE 'never' ;; XA COMMIT 'never' ;; XA ROLLBACK 'never'",
            "<takes>XA START 'w{l}' ;; <opens>BEGIN ;; COMMIT ;; CREATE TABLE {d} (x INT) ;; \
             <closes>XA END 'w{l}' ;; SELECT {n} ;; <gives>XA ROLLBACK 'w{l}'",
            "<takes>XA START 'w{l}' ;; XA START 'w{l}' ;; INSERT INTO {t} (v) VALUES ({k}) ;; \
             XA COMMIT 'w{l}' ;; XA END 'w{l}' ;; <gives>XA COMMIT 'w{l}' ONE PHASE",
            "<opens>BEGIN ;; XA START 'w{l}' ;; <closes>ROLLBACK ;; SELECT {n}",
            "<takes>XA START 'w{l}' ;; INSERT INTO {t} (v) VALUES ({k}) ;; <vanish>",
            "<takes>XA START 'w{l}' ;; INSERT INTO {t} (v) VALUES ({k}) ;; <reset> ;; \
             SELECT COUNT(*) FROM {t}",
        ],
    ),
    habit(
        "variables_of_one_statement",
        2,
        On::MariaDb,
        &[
            "SET STATEMENT sql_mode = 'ANSI_QUOTES', div_precision_increment = {n} FOR \
             SELECT \"id\", 1 / 3 FROM {t} ORDER BY 1 ;; SELECT \"id\", 1 / 3",
            "<pins>SET STATEMENT max_statement_time = 50 FOR SET sql_select_limit = {n} ;; \
             SELECT id FROM kinds ORDER BY id ;; <reset>",
            "<pins>SET STATEMENT max_statement_time = 50 FOR \
             SET time_zone = '+0{n}:00', @s = {n} ;; <b>SELECT @@time_zone ;; SELECT @s ;; \
             <reset> ;; SELECT @@time_zone",
            "SET STATEMENT max_statement_time = 50 FOR SET @s = {n} ;; SELECT {k} ;; SELECT @s",
            "SET STATEMENT max_statement_time = 50 FOR USE oracle_b ;; SELECT DATABASE() ;; \
             USE oracle_a",
            "SET STATEMENT max_statement_time = 50 FOR SET ROLE oracle_reader ;; \
             SELECT CURRENT_ROLE() ;; SET ROLE NONE",
            "SET STATEMENT no_such_variable = 1 FOR SELECT {n} ;; SHOW WARNINGS",
            "SET STATEMENT div_precision_increment = {n} FOR SELEC ;; SELECT 1 / 3",
            "SET STATEMENT sql_select_limit = 1 FOR SELECT id FROM kinds ORDER BY id ;; \
             SELECT id FROM kinds ORDER BY id",
            "SET STATEMENT max_error_count = 1 FOR \
             SELECT CAST('x' AS SIGNED), CAST('y' AS SIGNED) ;; SHOW WARNINGS",
            "<prepare=7>SET STATEMENT div_precision_increment = {n} FOR SELECT 1 / 3, ? ;; \
             <execute=7>{w} ;; SELECT 1 / 3 ;; <execute=7>{w}",
            "<opens>BEGIN ;; SET STATEMENT innodb_lock_wait_timeout = 1 FOR \
             UPDATE {t} SET name = '{w}' ;; <closes>COMMIT",
        ],
    ),
];
