//! What clients do, as a catalogue: one row for each habit, one text for each way to have it.
//!
//! A text is one step or several, with ` ;; ` between them; other clients' steps come in between.
//! A step is SQL, or what its tags in `<...>` say (see `draw`). `{t}` is the client's own table,
//! `{o}` some client's (to be read), `{d}` a table that it may make, `{n}` a small number, `{k}` a
//! row's number, `{w}` a word, `{l}` the name of a lock of its own.
//!
//! Rules that keep two tellings comparable: rows have an order; nobody writes to another's table;
//! nothing depends on the clock, on chance, on a connection's number, or on how soon the server
//! notices that a client has gone.

/// Which servers know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum On {
    Both,
    MariaDb,
    MySql,
}

/// One row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Habit {
    pub name: &'static str,
    /// How often, beside the others.
    pub weight: u64,
    pub on: On,
    pub ways: &'static [&'static str],
}

pub(super) const fn habit(
    name: &'static str,
    weight: u64,
    on: On,
    ways: &'static [&'static str],
) -> Habit {
    Habit {
        name,
        weight,
        on,
        ways,
    }
}

/// Habits that are not drawn, because the pool is known to answer otherwise (docs/pool.md, Limits);
/// `ONRAMP_ORACLE_ALL=1` draws them too.
pub(crate) const LEFT_OUT: [(&str, &str); 3] = [
    (
        "collation_of_results",
        "names that default to another collation's number in column metadata",
    ),
    (
        "connection_id",
        "the number is the backend's, not the one of the greeting",
    ),
    (
        "asked_at_random",
        "after some statements nobody can tell whether older warnings and FOUND_ROWS() stand: \
         refused once and then pinned; and MariaDB begins with what a thread's last session found",
    ),
];

pub(crate) const HABITS: &[Habit] = &[
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
            "INSERT INTO {t} (id, v) VALUES ({k}, {n}) ON DUPLICATE KEY UPDATE v = NULL",
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
    habit(
        "counts",
        6,
        On::Both,
        &[
            "SELECT ROW_COUNT()",
            "UPDATE {t} SET name = '{w}' ;; SELECT ROW_COUNT()",
            "SELECT ROW_COUNT() + 1",
            "INSERT INTO {t} (v) VALUES (ROW_COUNT())",
        ],
    ),
    habit(
        "asked_at_random",
        3,
        On::Both,
        &[
            "SELECT FOUND_ROWS()",
            "SELECT id FROM kinds ;; SELECT FOUND_ROWS(), ROW_COUNT()",
            "SHOW WARNINGS",
            "SELECT @@error_count",
        ],
    ),
    habit(
        "sql_mode",
        5,
        On::Both,
        &[
            "SET sql_mode = 'ANSI_QUOTES'",
            "SET sql_mode = 'ANSI'",
            "SET sql_mode = 'NO_BACKSLASH_ESCAPES'",
            "SET sql_mode = 'PIPES_AS_CONCAT,STRICT_ALL_TABLES'",
            "SET sql_mode = 'IGNORE_SPACE'",
            "SET sql_mode = ''",
            "SET sql_mode = DEFAULT",
            "SET @@SESSION.sql_mode = CONCAT(@@sql_mode, ',ANSI_QUOTES')",
            "SET sql_mode = 'ONLY_FULL_GROUP_BY,NO_UNSIGNED_SUBTRACTION'",
            "SET sql_mode = 'TRADITIONAL,NO_AUTO_VALUE_ON_ZERO'",
        ],
    ),
    habit(
        "sql_mode_shows",
        5,
        On::Both,
        &[
            "SELECT @@sql_mode",
            "SELECT \"id\" FROM {t} ORDER BY 1 LIMIT 1",
            "SELECT 'a\\'b', 'c'",
            "SELECT 'a\\nb'",
            "SELECT '{w}' || '{w}'",
            "SELECT COUNT (*) FROM {t}",
            "SELECT name, COUNT(*), v FROM {t} GROUP BY name ORDER BY name LIMIT 0",
            "SELECT CAST(0 AS UNSIGNED) - 1",
            "INSERT INTO {t} (id, name) VALUES (0, '{w}')",
            "INSERT INTO {t} (name) VALUES (REPEAT('y', 30))",
        ],
    ),
    habit(
        "character_sets",
        5,
        On::Both,
        &[
            "SET NAMES latin1",
            "SET NAMES utf8mb4",
            "SET NAMES DEFAULT",
            "SET CHARACTER SET latin1",
            "SET CHARACTER SET DEFAULT",
            "SET character_set_results = NULL",
            "SET character_set_results = latin1",
            "SET character_set_client = latin1",
            "SET character_set_connection = ascii",
            "SET collation_connection = latin1_german1_ci",
            "SET collation_connection = utf8mb4_bin",
            "SET NAMES no_such_set",
        ],
    ),
    habit(
        "collation_of_results",
        1,
        On::Both,
        &["SET NAMES utf8mb4 COLLATE utf8mb4_bin ;; SELECT name FROM {t}"],
    ),
    habit(
        "character_sets_show",
        4,
        On::Both,
        &[
            "SELECT @@character_set_client, @@character_set_connection, @@character_set_results, \
         @@collation_connection",
            "SELECT CHARSET('x'), COLLATION('x'), HEX('\u{e4}'), LENGTH('\u{e4}')",
            "SELECT '\u{e4}' = 'A', 'a' = 'A', '\u{e4}'",
            "SHOW VARIABLES LIKE 'character_set_c%'",
        ],
    ),
    habit(
        "variables",
        9,
        On::Both,
        &[
            "SET time_zone = '+0{n}:00'",
            "SET time_zone = SYSTEM",
            "SET time_zone = DEFAULT",
            "SET div_precision_increment = {n}",
            "SET SESSION group_concat_max_len = 1{n}, max_sort_length = 10{n}",
            "SET @@session.sql_select_limit = {n}",
            "SET sql_select_limit = DEFAULT",
            "SET LOCAL lc_time_names = 'de_DE'",
            "SET lc_time_names = 'fr_FR', div_precision_increment = {n}, default_week_format = {n}",
            "SET lc_time_names = DEFAULT",
            "SET max_error_count = {n}",
            "SET sql_notes = OFF",
            "SET sql_notes = ON",
            "SET sql_safe_updates = 1",
            "SET sql_safe_updates = 0",
            "SET foreign_key_checks = 0, unique_checks = 0",
            "SET foreign_key_checks = DEFAULT, unique_checks = DEFAULT",
            "SET auto_increment_increment = {k}, auto_increment_offset = 2",
            "SET auto_increment_increment = DEFAULT, auto_increment_offset = DEFAULT",
            "SET sql_quote_show_create = 0",
            "SET div_precision_increment = @@div_precision_increment + 1",
            "SET div_precision_increment = {n}, time_zone = 'No/Such'",
            "SET net_write_timeout = 10{n}, net_read_timeout = 11{n}",
            "SET wait_timeout = 1000{n}",
            "SET lock_wait_timeout = 10{n}",
            "SET max_join_size = 100000{n}, sql_big_selects = 1",
            "SET sql_big_selects = DEFAULT, max_join_size = DEFAULT",
            "SET sql_buffer_result = 1",
            "SET low_priority_updates = 1",
            "SET updatable_views_with_limit = NO",
            "SET max_length_for_sort_data = 10{n}",
            "SET optimizer_switch = 'index_merge=off'",
            "SET optimizer_switch = DEFAULT",
            "SET GLOBAL div_precision_increment = 4",
            "SET sql_warnings = ON",
            "SET min_examined_row_limit = {n}",
            "SET sort_buffer_size = 10000{n}",
            "SET tmp_table_size = 100000{n}, max_heap_table_size = 100000{n}",
        ],
    ),
    habit(
        "variables_show",
        9,
        On::Both,
        &[
            "SELECT @@time_zone, FROM_UNIXTIME(0), @@div_precision_increment, 1 / 3",
            "SELECT GROUP_CONCAT(id ORDER BY id), @@group_concat_max_len FROM kinds",
            "SELECT id FROM kinds ORDER BY id",
            "SELECT DATE_FORMAT('2020-01-06', '%W %M'), WEEK('2020-01-06'), @@lc_time_names",
            "SELECT @@max_error_count, @@sql_notes, @@sql_warnings, @@sql_safe_updates",
            "SELECT @@foreign_key_checks, @@unique_checks, @@sql_big_selects, @@max_join_size",
            "SELECT @@auto_increment_increment, @@auto_increment_offset, @@sql_select_limit",
            "SELECT @@net_write_timeout, @@net_read_timeout, @@wait_timeout, @@lock_wait_timeout",
            "SELECT @@sql_buffer_result, @@low_priority_updates, @@updatable_views_with_limit",
            "SELECT @@optimizer_switch, @@max_sort_length, @@default_week_format",
            "SELECT @@tmp_table_size, @@max_heap_table_size, @@sort_buffer_size",
            "SHOW VARIABLES LIKE 'max_err%'",
            "SHOW SESSION VARIABLES WHERE Variable_name = 'time_zone'",
            "UPDATE {t} SET name = 'x'",
            "SELECT stamp FROM kinds WHERE id = 1",
        ],
    ),
    habit(
        "statement_variables",
        3,
        On::MariaDb,
        &[
            "SET STATEMENT div_precision_increment = {n} FOR SELECT 1 / 3",
            "SET STATEMENT sql_mode = 'ANSI_QUOTES' FOR SELECT @@sql_mode",
            "SET STATEMENT max_statement_time = 50 FOR INSERT INTO {t} (name) VALUES ('{w}')",
            "SET STATEMENT div_precision_increment = 2 FOR SELECT no_such_column",
            "SET max_statement_time = {n}0",
            "SELECT @@max_statement_time",
        ],
    ),
    habit(
        "hints",
        2,
        On::MySql,
        &[
            "SELECT /*+ SET_VAR(div_precision_increment = {n}) */ 1 / 3",
            "SET max_execution_time = {n}0000",
            "SELECT @@max_execution_time",
        ],
    ),
    habit(
        "schemas",
        5,
        On::Both,
        &[
            "USE oracle_b",
            "USE oracle_a",
            "<init>oracle_b",
            "<init>oracle_a",
            "SELECT DATABASE()",
            "SELECT DATABASE(), COUNT(*) FROM {t}",
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
            "<manual>SET autocommit = OFF",
            "<automatic>SET autocommit = ON",
            "SELECT @@autocommit",
        ],
    ),
    habit(
        "variables_without_scope",
        3,
        On::Both,
        &[
            "<pins>SET @@autocommit = OFF",
            "<pins>SET @@div_precision_increment = {n}",
            "<pins>SET @@sql_mode = 'ANSI_QUOTES'",
        ],
    ),
    habit(
        "isolation",
        3,
        On::Both,
        &[
            "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
            "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
            "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
            "SET SESSION TRANSACTION READ ONLY",
            "SET SESSION TRANSACTION READ WRITE",
            "<opens>SET TRANSACTION ISOLATION LEVEL READ COMMITTED ;; <opens>BEGIN ;; \
         SELECT COUNT(*) FROM {o} ;; SELECT COUNT(*) FROM {o} ;; <closes>COMMIT",
            "<opens>SET TRANSACTION READ ONLY ;; <closes>INSERT INTO {t} (v) VALUES ({k})",
            "<opens>SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE ;; \
         <opens>BEGIN ;; SELECT COUNT(*) FROM {o} ;; SELECT SUM(id) FROM {o} ;; <closes>COMMIT",
        ],
    ),
    habit(
        "isolation_shows",
        2,
        On::MariaDb,
        &["SELECT @@tx_isolation, @@tx_read_only"],
    ),
    habit(
        "isolation_shows",
        2,
        On::MySql,
        &["SELECT @@transaction_isolation, @@transaction_read_only"],
    ),
    habit(
        "user_variables",
        4,
        On::Both,
        &[
            "<pins>SET @a = {n}",
            // Never unset: see below.
            "<pins>SET @a = '{w}', @b = {n} + 1 ;; <pins>SELECT @a, @b",
            "<pins>SELECT {n} INTO @a",
            "<pins>SELECT @a := {n}",
            "<pins>SELECT id, @row := IFNULL(@row, 0) + 1 FROM kinds ORDER BY id",
            "<pins>UPDATE {t} SET v = @a WHERE id = {k}",
            "<pins>SET @c = (SELECT COUNT(*) FROM {t}) ;; <pins>SELECT @c",
            // Not NULL: the length of a column of a variable that is NULL differs by one where the
            // backend has had such a variable before.
            "<pins>SET @d = 'd', @e = 1.50, @f = 1e2, @g = x'00ff' ;; <pins>SELECT @d, @e, @f, @g",
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
        "asked_at_random",
        2,
        On::Both,
        &[
            "<pins>SELECT SQL_CALC_FOUND_ROWS id FROM kinds ORDER BY id LIMIT 1 ;; \
         <pins>SELECT FOUND_ROWS()",
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
        "special_variables",
        2,
        On::Both,
        &[
            "<pins>SET insert_id = 10{k} ;; <pins>INSERT INTO {t} (name) VALUES ('{w}')",
            "<pins>SET timestamp = 100000{n} ;; <pins>SELECT NOW()",
            "<pins>SET rand_seed1 = {n}, rand_seed2 = 5 ;; <pins>SELECT RAND()",
            "<pins>SET last_insert_id = {k} ;; <pins>SELECT LAST_INSERT_ID()",
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
    habit(
        "connection_id",
        1,
        On::Both,
        &["SELECT CONNECTION_ID()", "SELECT @@pseudo_thread_id"],
    ),
    habit("together", 5, On::Both, &["<together>"]),
];
