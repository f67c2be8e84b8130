//! Settings of sessions, and statements that show them.
//!
//! Setting and showing are rows of their own, so that others' steps come in between. The rules
//! stand in [`super`].

use super::{Habit, On, habit};

/// A hundred user variables, each with this behind its name.
macro_rules! hundred {
    ($behind:literal) => {
        concat!(
            ten!("@m0", $behind),
            ",",
            ten!("@m1", $behind),
            ",",
            ten!("@m2", $behind),
            ",",
            ten!("@m3", $behind),
            ",",
            ten!("@m4", $behind),
            ",",
            ten!("@m5", $behind),
            ",",
            ten!("@m6", $behind),
            ",",
            ten!("@m7", $behind),
            ",",
            ten!("@m8", $behind),
            ",",
            ten!("@m9", $behind)
        )
    };
}

macro_rules! ten {
    ($name:literal, $behind:literal) => {
        concat!(
            $name, "0 ", $behind, ",", $name, "1 ", $behind, ",", $name, "2 ", $behind, ",", $name,
            "3 ", $behind, ",", $name, "4 ", $behind, ",", $name, "5 ", $behind, ",", $name, "6 ",
            $behind, ",", $name, "7 ", $behind, ",", $name, "8 ", $behind, ",", $name, "9 ",
            $behind
        )
    };
}

pub(super) const HABITS: &[Habit] = &[
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
    // To what they are already; of the second SET of a row that is certain.
    habit(
        "values_that_are_there",
        4,
        On::Both,
        &[
            "<automatic>SET autocommit = 1",
            "<automatic>SET @@session.autocommit = ON ;; SELECT ROW_COUNT(), FOUND_ROWS()",
            "SET foreign_key_checks = 1, unique_checks = 1 ;; \
             SET foreign_key_checks = 1, unique_checks = 1",
            "SET time_zone = '+03:00' ;; SELECT 1 UNION SELECT 2 ;; SET time_zone = '+03:00' ;; \
             SELECT FOUND_ROWS(), ROW_COUNT(), LAST_INSERT_ID()",
            "SET sql_mode = '' ;; SELECT CAST('{w}' AS SIGNED) ;; SET sql_mode = '' ;; \
             SHOW WARNINGS",
            "SET wait_timeout = 10000 ;; SELECT no_such_column ;; SET wait_timeout = 10000 ;; \
             SHOW WARNINGS ;; SELECT @@wait_timeout",
            "SET NAMES utf8mb4 COLLATE utf8mb4_general_ci ;; SELECT '{w}' ;; \
             SET NAMES utf8mb4 COLLATE utf8mb4_general_ci ;; SELECT '{w}'",
            "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
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
            "SET character_set_database = latin1",
            "SET character_set_database = DEFAULT",
            "SET collation_database = latin1_german1_ci",
            "SET collation_server = greek_bin",
            "SET character_set_server = greek",
            "SET character_set_server = DEFAULT, collation_database = latin1_bin",
        ],
    ),
    // A change of user has both bytes of the collation's number.
    habit(
        "collation_of_user",
        2,
        On::MariaDb,
        &[
            "<user=app>608 ;; SELECT @@character_set_client, @@collation_connection ;; \
             INSERT INTO {t} (name) VALUES ('\u{e4}\u{20ac}') ;; \
             SELECT HEX(name) FROM {t} ORDER BY id",
            "<user=app>2304 ;; SELECT @@character_set_client, @@collation_connection, '\u{e4}'",
            "<user=app>576 ;; SELECT @@character_set_client, @@collation_connection, '\u{e4}' ;; \
             <reset> ;; SELECT @@character_set_client, @@collation_connection",
            "<user=app>9999 ;; SELECT @@character_set_client, @@collation_connection",
            "<user=app>35 ;; <reset> ;; SELECT @@character_set_client, @@collation_connection",
        ],
    ),
    habit(
        "collation_of_user",
        2,
        On::MySql,
        &[
            "<user=app>309 ;; SELECT @@character_set_client, @@collation_connection ;; \
             INSERT INTO {t} (name) VALUES ('\u{e4}\u{20ac}') ;; \
             SELECT HEX(name) FROM {t} ORDER BY id",
            "<user=app>278 ;; SELECT @@character_set_client, @@collation_connection, '\u{e4}'",
            "<user=app>264 ;; SELECT @@character_set_client, @@collation_connection, '\u{e4}' ;; \
             <reset> ;; SELECT @@character_set_client, @@collation_connection",
            "<user=app>9999 ;; SELECT @@character_set_client, @@collation_connection",
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
            // Of the schema, whose backend may have started over.
            "SELECT DATABASE(), @@character_set_database, @@collation_database",
            "SELECT @@character_set_server, @@collation_server",
            "SET CHARACTER SET latin1 ;; SELECT @@collation_connection, CHARSET('x')",
        ],
    ),
    // Results and literals in which no byte of ASCII stands alone.
    habit(
        "wide_character_sets",
        3,
        On::Both,
        &[
            "<pins>SET character_set_results = utf16 ;; SELECT '{w}', {n}, @@time_zone ;; \
             SELECT CAST('{w}' AS SIGNED) ;; SHOW WARNINGS",
            "<pins>SET character_set_results = ucs2 ;; INSERT INTO {t} (name) VALUES ('{w}') ;; \
             SELECT LAST_INSERT_ID() ;; SELECT no_such_column ;; SHOW ERRORS ;; SET NAMES utf8mb4",
            "<pins>SET character_set_results = utf32 ;; <prepare=5>SELECT ?, '{w}' ;; \
             <execute=5>{n} ;; SET character_set_results = DEFAULT ;; <execute=5>{n}",
            "<pins>SET character_set_connection = ucs2 ;; SELECT HEX('{w}'), 'a' = 'A' ;; \
             SET @a = '{w}' ;; SET time_zone = '+0{n}:00' ;; \
             SELECT @a, HEX(@a), @@time_zone ;; <reset>",
            "<pins>SET collation_connection = utf16_bin ;; <prepare=5>SELECT HEX(?), '{w}' ;; \
             <execute=5>{w} ;; SELECT CHARSET('x') ;; SET NAMES latin1 ;; <execute=5>{w}",
            "<pins>SET NAMES utf8mb4, character_set_connection = utf32 ;; \
             UPDATE {t} SET name = '{w}' ;; SELECT name FROM {t} ORDER BY id ;; <user=app>",
            "<pins>INSERT INTO {t} (name) VALUES ('{w}'); SET character_set_results = utf16le; \
             SELECT '{w}' ;; SELECT LAST_INSERT_ID(), ROW_COUNT() ;; <reset> ;; SELECT '{w}'",
            "SET NAMES ucs2 ;; SELECT @@character_set_client",
            "SET character_set_client = utf16 ;; SELECT @@character_set_client",
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
            // It sets the other too.
            "SET sql_big_selects = 1 ;; SET max_join_size = 100000{n}",
            "SET max_join_size = DEFAULT ;; SET sql_big_selects = 0",
            "SET sql_buffer_result = 1",
            "SET low_priority_updates = 1",
            "SET updatable_views_with_limit = NO",
            "SET max_length_for_sort_data = 10{n}",
            "SET optimizer_switch = 'index_merge=off'",
            "SET optimizer_switch = DEFAULT",
            "SET GLOBAL div_precision_increment = 4",
            "SET sql_warnings = ON",
            "SET min_examined_row_limit = {n}",
            // Not known to succeed again (`known_good.rs`).
            "SET optimizer_prune_level = 0, optimizer_search_depth = {n}",
            "SET optimizer_prune_level = DEFAULT",
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
        "two_names",
        2,
        On::MariaDb,
        &[
            "SET tmp_table_size = 6553{n}0",
            "SET tmp_memory_table_size = 9830{n}0",
            "SET tmp_table_size = DEFAULT",
            "SET long_query_time = {n} ;; SET log_slow_query_time = DEFAULT",
            "SET log_slow_query_time = 1{n}",
            "SET alter_algorithm = 'COPY'",
            "SET old_alter_table = 'INPLACE'",
            "<pins>SET log_slow_admin_statements = OFF ;; SELECT @@log_slow_disabled_statements ;; \
             <reset>",
        ],
    ),
    habit(
        "two_names_show",
        2,
        On::MariaDb,
        &[
            "SELECT @@tmp_table_size, @@tmp_memory_table_size",
            "SELECT @@long_query_time, @@log_slow_query_time",
            "SELECT @@alter_algorithm, @@old_alter_table",
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
        "switches_of_its_own",
        2,
        On::Both,
        &[
            "<pins>SET session_track_state_change = ON ;; SET time_zone = '+0{n}:00' ;; \
             SELECT @@session_track_state_change, @@session_track_schema",
            "<pins>SET session_track_transaction_info = CHARACTERISTICS ;; <opens>BEGIN ;; \
             INSERT INTO {t} (v) VALUES ({k}) ;; <closes>COMMIT ;; \
             SELECT @@session_track_transaction_info, @@session_track_system_variables",
        ],
    ),
    // A name that each character set writes otherwise, of a schema with a character set of its own.
    habit(
        "foreign_schemas",
        3,
        On::Both,
        &[
            "SET NAMES utf8mb4 ;; USE oracle_\u{442}\u{435}\u{441}\u{442} ;; SELECT DATABASE() ;; \
             SHOW TABLES ;; USE oracle_a",
            "SET NAMES utf8mb4 ;; USE oracle_\u{442}\u{435}\u{441}\u{442} ;; \
             SET CHARACTER SET koi8r ;; SHOW TABLES ;; \
             SELECT HEX(DATABASE()), @@character_set_database, @@collation_connection ;; \
             USE oracle_a",
            "SET NAMES utf8mb4 ;; USE oracle_\u{442}\u{435}\u{441}\u{442} ;; SET NAMES cp1251 ;; \
             <prepare=4>SELECT HEX(DATABASE()), @@character_set_client ;; SELECT {n} ;; \
             <execute=4> ;; <reset> ;; SELECT HEX(DATABASE()) ;; USE oracle_a",
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
            // A server may have only one of the two names.
            "SET SESSION tx_isolation = 'REPEATABLE-READ' ;; SHOW WARNINGS",
            "SET @@session.transaction_isolation = 'READ-COMMITTED' ;; SHOW WARNINGS ;; \
             SET @@session.transaction_isolation = 'READ-COMMITTED' ;; SHOW WARNINGS",
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
            // No text of its character set.
            "SET NAMES utf8mb3 ;; <pins>SET @a = '\u{1f600}' ;; <pins>SELECT HEX(@a) ;; <reset>",
            "SET NAMES gbk ;; <pins bytes>SET @a = '%E9' ;; <pins>SELECT HEX(@a) ;; <reset>",
            "SET NAMES sjis ;; <pins bytes>SET @a = 'x%81' ;; <pins>SELECT HEX(@a) ;; \
             SET NAMES utf8mb4 ;; <pins>SET @a = {n}",
            "SET NAMES ujis ;; <pins bytes>SET @a = '%8F%A1' ;; <pins>SELECT COLLATION(@a) ;; \
             <reset>",
            "SET NAMES big5 ;; <bytes>SET @a = '%A4%A4%A5%5C' ;; SET NAMES utf8mb4 ;; \
             SELECT HEX(@a), CHARSET(@a)",
            "SET NAMES euckr ;; <bytes>SET @a = '%B0%A1%C8%FE' ;; SET NAMES utf8mb4 ;; \
             SELECT HEX(@a), CHARSET(@a)",
            // More digits than a type can have.
            "<pins>SET @a = {n}000000000000000000000000000000000\
             000000000000000000000000000000000 ;; <pins>SELECT @a ;; <reset>",
            "<pins>SELECT @a := {n}",
            // Set before: MariaDB takes one that nobody has set on its connection for a constant.
            "SET @row = 0 ;; <pins>SELECT id, @row := IFNULL(@row, 0) + 1 FROM kinds ORDER BY id",
            "<pins>UPDATE {t} SET v = @a WHERE id = {k}",
            "<pins>SET @c = (SELECT COUNT(*) FROM {t}) ;; <pins>SELECT @c",
            // Not NULL: the length of a column of a variable that is NULL differs by one where the
            // backend has had such a variable before.
            "<pins>SET @d = 'd', @e = 1.50, @f = 1e2, @g = x'00ff' ;; <pins>SELECT @d, @e, @f, @g",
        ],
    ),
    // MariaDB finds what is wrong with a DEFAULT when it has set the other variables.
    habit(
        "sets_that_are_done_in_part",
        3,
        On::MariaDb,
        &[
            "<pins>SET div_precision_increment = {n}, last_insert_id = DEFAULT ;; \
             <b>SELECT 1 / 3, @@div_precision_increment ;; SELECT @@div_precision_increment",
            "<pins>SET identity = DEFAULT, time_zone = '+0{k}:00' ;; <b>SELECT @@time_zone ;; \
             SELECT @@time_zone ;; <reset> ;; SELECT @@time_zone",
            "<pins>SET sql_select_limit = 1, max_allowed_packet = DEFAULT ;; \
             <b>SELECT id FROM kinds ORDER BY id ;; SELECT id FROM kinds ORDER BY id",
        ],
    ),
    // Each SET of these warns, the one that restores the session too.
    habit(
        "sets_that_warn",
        3,
        On::MySql,
        &[
            "SET default_collation_for_utf8mb4 = utf8mb4_general_ci ;; SELECT id FROM kinds ;; \
             <b>SELECT id FROM oracle_a.kinds ;; <pins>SELECT c, f FROM counting_view",
            "SET default_collation_for_utf8mb4 = DEFAULT ;; SELECT id FROM kinds LIMIT 2 ;; \
             <b>SELECT id FROM oracle_a.kinds LIMIT 2 ;; SELECT FOUND_ROWS() AS `infile`",
            "SET NAMES utf8mb3 ;; SELECT id FROM kinds ;; <b>SELECT id FROM oracle_a.kinds ;; \
             <pins>SELECT f AS `infile` FROM counting_view",
            "SET NAMES utf8mb3 ;; SELECT 1 / 0 ;; <b>SELECT {n} ;; SELECT FOUND_ROWS() ;; \
             SHOW WARNINGS",
        ],
    ),
    // A SET that fails makes none of its variables, or some, with or without a value.
    habit(
        "sets_that_fail",
        6,
        On::Both,
        &[
            "<b>SET @unset_a = '{w}' ;; SET @unset_a = {n}, no_such_variable = 1 ;; SELECT {k} ;; \
             SELECT @unset_a := IFNULL(@unset_a, 0) + 1 AS n FROM kinds ORDER BY id ;; <reset>",
            "<b>SET @unset_b = 1.50 ;; SET time_zone = 'No/Such', @unset_b = {n} ;; SELECT {k} ;; \
             SELECT @unset_b, IFNULL(@unset_b, 1.5)",
            "<b>SET @unset_c = {n}, @unset_d = '{w}' ;; \
             SET @unset_c = {n}, @unset_d = (SELECT id FROM kinds) ;; SELECT {k} ;; \
             SELECT @unset_d := IFNULL(@unset_d, 0) + 1 AS n FROM kinds ORDER BY id ;; <reset>",
            "<b>SET @unset_e = {n}, @unset_f = '{w}' ;; \
             SET @unset_e = (SELECT no_such FROM kinds), @unset_f = {n} ;; SELECT {k} ;; \
             SELECT @unset_e, @unset_f, IFNULL(@unset_e, 1.5)",
            "<b>SET @unset_g = '{w}' ;; SET @unset_g = = {n} ;; SELECT {k} ;; \
             SELECT @unset_g, IFNULL(@unset_g, x'ff')",
            "<b>SET @unset_h = {n} ;; <pins>PREPARE v FROM 'SET @unset_h = {n}' ;; SELECT {k} ;; \
             SELECT @unset_h := IFNULL(@unset_h, 0) + 1 AS n FROM kinds ORDER BY id ;; <reset>",
            "<b>SET @unset_i = {n} ;; <prepare=7>SET @unset_i = {n} ;; SELECT {k} ;; \
             SELECT @unset_i, IFNULL(@unset_i, 1.5)",
        ],
    ),
    habit(
        "special_variables",
        2,
        On::Both,
        &[
            "<pins>SET insert_id = 10{k} ;; <pins>INSERT INTO {t} (name) VALUES ('{w}')",
            "<pins>SET insert_id = 0 ;; <pins>INSERT INTO {t} (name) VALUES ('{w}')",
            "<pins>SET rand_seed1 = {n}, rand_seed2 = 5 ;; <pins>SELECT RAND()",
        ],
    ),
    habit(
        "used_up_by_transactions",
        2,
        On::MySql,
        &[
            "SET original_commit_timestamp = 10{n}",
            "SET original_server_version = 8000{n}, immediate_server_version = 8010{n}",
            "SELECT @@original_commit_timestamp, @@original_server_version, \
             @@immediate_server_version",
            "SET original_commit_timestamp = DEFAULT, original_server_version = DEFAULT",
            "SET original_commit_timestamp = 20{n} ;; INSERT INTO {t} (name) VALUES ('{w}') ;; \
             SELECT @@original_commit_timestamp",
            "SET SESSION original_commit_timestamp = 30{n} ;; SELECT COUNT(*) FROM {t} ;; \
             <opens>BEGIN ;; UPDATE {t} SET v = {n} WHERE id = {k} ;; <closes>COMMIT ;; \
             SELECT @@original_commit_timestamp",
        ],
    ),
    habit(
        "odd_variables",
        3,
        On::Both,
        &[
            "SET timestamp = 864083{n}.65789{n}896 ;; SELECT NOW(6), @@timestamp ;; \
             SET timestamp = DEFAULT",
            "SET @a = '{w}', @b = {k} ;; SET timestamp = DEFAULT ;; SELECT @a, @b",
            "SET @a = {k} ;; SET timestamp = 100000{n} ;; SET timestamp = DEFAULT ;; SELECT @a",
            "SET timestamp = 100000{n} ;; SELECT NOW() ;; SET timestamp = DEFAULT ;; \
             SELECT @@timestamp < 2000000",
            "SET last_insert_id = {k} ;; SELECT LAST_INSERT_ID()",
            "SET @@identity = {k} ;; SELECT @@identity, LAST_INSERT_ID()",
            "SET @@div_precision_increment = {n} ;; SELECT 1 / 3",
            "SET @@sql_mode = 'ANSI_QUOTES', @@max_error_count = {n} ;; SELECT @@sql_mode, \"id\" \
             FROM {t} ORDER BY 1 LIMIT 1",
            "SET @@sql_mode = DEFAULT, @@no_such_variable = {n} ;; SELECT @@sql_mode",
            "SET sql_log_bin = 0 ;; SELECT @@sql_log_bin ;; SET sql_log_bin = 1",
            "SET innodb_tmpdir = NULL ;; SELECT @@innodb_tmpdir",
        ],
    ),
    habit(
        "odd_user_variables",
        2,
        On::Both,
        &[
            "<pins>SET @`a b` = {n} ;; <pins>SELECT @`a b` + 1",
            "<pins>SET @`q``r` = '{w}' ;; <pins>SELECT CONCAT(@`q``r`, 'x')",
            "<pins>SET @long = REPEAT('{w}', 3000) ;; <pins>SELECT LENGTH(@long), MD5(@long)",
            "<pins>SET @long = REPEAT('{w}', 40000) ;; <pins>SELECT LENGTH(@long) ;; \
             <pins>SET @long = '{w}' ;; <pins>SELECT LENGTH(@long)",
            // Names that servers may take for others, beside some that nobody has set.
            "<pins>SET @\u{e4} = {n} ;; <pins>SELECT @\u{e4}, @unset",
            "<pins>SET @`t ` = '{w}', @\u{f6} = {n} ;; <pins>SELECT @never ;; \
             <pins>SELECT @`t `, @\u{f6}",
            "<pins>SELECT @unset, @a, @o, @t",
            "SELECT VARIABLE_NAME FROM information_schema.USER_VARIABLES ORDER BY 1",
        ],
    ),
    habit(
        "long_user_variables",
        2,
        On::Both,
        &[
            // Together longer than any answer that the pool reads; then shorter, one by one.
            "<pins>SET @q = REPEAT('q', 13000000), @r = REPEAT('{w}', 4000000) ;; \
             <pins>SELECT LENGTH(@q), MD5(@r) ;; <pins>SET @q = '{w}' ;; \
             <pins>SELECT @q, LENGTH(@r) ;; <pins>SET @r = {n} ;; <pins>SELECT @q, @r",
            "<pins>SET @q = '{w}', @r = 'r' ;; <pins>SET @q = REPEAT('q', 70000) ;; \
             <pins>SELECT LENGTH(@q), @r ;; <pins>SET @q = REPEAT('q', 17000000), @s = 1.50 ;; \
             <pins>SELECT LENGTH(@q), @r, @s ;; <pins>SELECT '{w}' INTO @q ;; \
             <pins>SELECT @q, @r, @s",
            "<pins>SET @q = 'q', @r = 'r' ;; <opens>BEGIN ;; \
             <pins>SET @q = REPEAT('q', 9000000) ;; SELECT COUNT(*) FROM {t} ;; \
             <pins>SET @r = REPEAT('{w}', 9000000) ;; <closes>COMMIT ;; \
             <pins>SELECT LENGTH(@q), LENGTH(@r) ;; <pins>SET @q = {n}, @r = '{w}' ;; \
             <pins>SELECT @q, @r",
            // Each short enough to be carried, and all of them too long for an answer.
            concat!(
                "<pins>SET ",
                hundred!("= REPEAT('{w}', 13000)"),
                " ;; <pins>SELECT LENGTH(@m00), LENGTH(@m99) ;; <pins>SET ",
                hundred!("= REPEAT('m', 65536)"),
                " ;; <pins>SELECT LENGTH(@m00), LENGTH(@m99) ;; <pins>SET ",
                hundred!("= {n}"),
                " ;; <pins>SELECT @m00, @m99",
            ),
        ],
    ),
];
