//! Habits beyond single texts: attributes, files, rows in bulk, cursors, several statements at
//! once; and texts whose end depends on the session.
//!
//! The rules stand in [`super`].

use super::{Habit, On, habit};

pub(super) const HABITS: &[Habit] = &[
    habit(
        "own_number",
        2,
        On::Both,
        &[
            "SELECT CONNECTION_ID()",
            "SELECT @@pseudo_thread_id",
            "SELECT 'me', CONNECTION_ID() AS me FROM {t} LIMIT 1",
            "<prepare=6>SELECT CONNECTION_ID() ;; SELECT {n} ;; <execute=6>",
            "<execute=6>",
            "<opens>BEGIN ;; SELECT CONNECTION_ID() ;; <closes>COMMIT",
            "DO CONNECTION_ID() ;; SELECT CONNECTION_ID() = CONNECTION_ID() AS same",
            "SELECT DATABASE(), CONNECTION_ID() me, VERSION()",
            "SELECT 1, connection_id() FROM {t} ORDER BY id, CONNECTION_ID() LIMIT 1",
        ],
    ),
    // Values that are no text, rows that are long or many: all of them are compared.
    habit(
        "values_of_bytes",
        2,
        On::Both,
        &[
            "SELECT x'ff', x'fe00', CONCAT(x'c3', '{w}'), NULL, 'NULL'",
            "SELECT CONCAT(REPEAT('{w}', 300), x'ff{n}{n}')",
            "SELECT a.id, x'80{n}{n}' FROM kinds a, kinds b, kinds c ORDER BY a.id, b.id, c.id",
            "SET @bytes = x'ff{n}{n}' ;; SELECT {n} ;; SELECT @bytes, HEX(@bytes)",
            "<prepare=6>SELECT x'fffe', ? ;; SELECT {n} ;; <execute=6>{w}",
            "SELECT CAST(x'ff{n}{n}' AS SIGNED) ;; SHOW WARNINGS",
        ],
    ),
    habit(
        "statistics",
        2,
        On::Both,
        &[
            "<statistics>",
            "INSERT INTO {t} (v) VALUES ({k}), ({n}) ;; <statistics> ;; SELECT ROW_COUNT()",
            "SELECT 1 UNION SELECT 2 ;; <statistics> ;; SELECT FOUND_ROWS(), ROW_COUNT()",
            "INSERT INTO {t} (v) VALUES ({k}) ;; <statistics> ;; SELECT LAST_INSERT_ID()",
            "SELECT CAST('x{n}' AS SIGNED) ;; <statistics> ;; SHOW WARNINGS",
            "SELECT * FROM no_such_table ;; <statistics> ;; SHOW ERRORS",
            "<opens>BEGIN ;; INSERT INTO {t} (v) VALUES ({k}) ;; <statistics> ;; \
             SELECT ROW_COUNT() ;; <closes>COMMIT",
            "SET @a = {n} ;; <statistics> ;; SELECT @a",
        ],
    ),
    habit(
        "interrupts_itself",
        1,
        On::Both,
        &[
            "KILL QUERY CONNECTION_ID() ;; SELECT {n}",
            "<opens>BEGIN ;; INSERT INTO {t} (v) VALUES ({k}) ;; KILL QUERY CONNECTION_ID() ;; \
             <closes>COMMIT",
        ],
    ),
    habit(
        "attributes",
        5,
        On::MySql,
        &[
            "<attribute>{w} ;; SELECT mysql_query_attribute_string('n')",
            "SELECT mysql_query_attribute_string('n')",
            "<attribute>{w} ;; SET time_zone = '+0{n}:00' ;; \
             SELECT mysql_query_attribute_string('n'), @@time_zone",
            "<attribute>{w} ;; INSERT INTO {t} (name) VALUES (mysql_query_attribute_string('n'))",
            "<attribute>{w} ;; SELECT 1; SELECT mysql_query_attribute_string('n')",
            "<prepare=7>SELECT mysql_query_attribute_string('n'), ? ;; <attribute>{w} ;; \
             <execute=7>{n} ;; <execute=7>{n}",
            "<execute=7>{n}",
            "<attribute>{w} ;; <opens>BEGIN ;; <attribute>a ;; \
             SELECT mysql_query_attribute_string('n') ;; <closes>COMMIT",
            "<attribute>{w} ;; SELEC",
        ],
    ),
    habit(
        "local_files",
        3,
        On::Both,
        &[
            "LOAD DATA LOCAL INFILE 'rows' IGNORE INTO TABLE {t} (v, name) ;; SHOW WARNINGS",
            "LOAD DATA LOCAL INFILE 'rows' REPLACE INTO TABLE {t} (v, name) ;; \
             SELECT LAST_INSERT_ID(), ROW_COUNT()",
            "LOAD DATA LOCAL INFILE 'rows' INTO TABLE no_such_table",
            "SET @x = 0 ;; LOAD DATA LOCAL INFILE 'rows' IGNORE INTO TABLE {t} (@v, name) \
             SET v = @v + 1 ;; SELECT @x",
            "<opens>BEGIN ;; LOAD DATA LOCAL INFILE 'rows' IGNORE INTO TABLE {t} (v, name) ;; \
             <closes>ROLLBACK ;; SELECT COUNT(*) FROM {t}",
            "<multi=on> ;; LOAD DATA LOCAL INFILE 'rows' IGNORE INTO TABLE {t} (v, name); \
             SELECT ROW_COUNT(); SELECT COUNT(*) FROM {t} ;; <multi=off>",
        ],
    ),
    habit(
        "bulk",
        3,
        On::MariaDb,
        &[
            "<prepare=5>INSERT INTO {t} (v, name) VALUES (?, ?) ;; \
             <bulk=5>{k},{w}|~,{w}|{k},b ;; SELECT LAST_INSERT_ID() ;; \
             SELECT * FROM {t} ORDER BY id",
            "<bulk=5>{k},{w}|~,{w}",
            "<prepare=5>DELETE FROM {t} WHERE id = ? ;; SELECT {n} ;; <bulk=5>{k}|{k}|{k} ;; \
             SELECT ROW_COUNT()",
            "<opens>BEGIN ;; <prepare=5>INSERT INTO {t} (v, name) VALUES (?, ?) ;; \
             <bulk=5>{k},{w}|{k},a name that is longer than its column ;; SHOW WARNINGS ;; \
             <closes>ROLLBACK",
        ],
    ),
    habit(
        "cursors_that_end",
        3,
        On::Both,
        &[
            "<prepare=8>SELECT id, word FROM kinds ORDER BY id ;; <takes cursor=8> ;; \
             <fetch=8>1 ;; SET time_zone = '+0{n}:00' ;; <fetch=8>1 ;; SELECT {n} ;; \
             <gives fetch=8>9 ;; <fetch=8>1",
            "<prepare=8>SELECT id FROM kinds WHERE id > ? ORDER BY id ;; <takes cursor=8>0 ;; \
             <fetch=8>1 ;; <gives clear=8> ;; <fetch=8>1",
            "<prepare=8>SELECT id FROM kinds ORDER BY id ;; <takes cursor=8> ;; <fetch=8>2 ;; \
             <gives close=8> ;; <fetch=8>1 ;; SELECT {n}",
            "<prepare=8>SELECT id FROM {t} ORDER BY id ;; <opens>BEGIN ;; <takes cursor=8> ;; \
             INSERT INTO {t} (v) VALUES ({k}) ;; <fetch=8>9 ;; <closes>COMMIT ;; \
             <gives clear=8>",
            "<prepare=8>SELECT id FROM kinds ORDER BY id ;; <takes cursor=8> ;; <reset> ;; \
             <fetch=8>1",
            "<prepare=8>SELECT id FROM kinds ORDER BY id ;; <takes cursor=8> ;; <vanish>",
            "<prepare=8>INSERT INTO {t} (v) VALUES (?) ;; <cursor=8>{k} ;; <fetch=8>1",
            "<fetch=8>1",
        ],
    ),
    habit(
        "cursors_executed_again",
        1,
        // MySQL 9.7 answers with no row and a packet that every client takes for one.
        On::MariaDb,
        &[
            "<prepare=8>SELECT id FROM kinds WHERE id > ? ORDER BY id ;; <takes cursor=8>0 ;; \
             <fetch=8>1 ;; <gives clear=8> ;; <execute=8>1",
            "<prepare=8>SELECT id FROM kinds ORDER BY id ;; <takes cursor=8> ;; <fetch=8>1 ;; \
             <gives execute=8> ;; SELECT {n}",
        ],
    ),
    habit(
        "executions_that_are_cut_short",
        2,
        On::Both,
        &[
            "<prepare=9>SELECT ? ;; <execute=9>{w}{w}{w} ;; <cut=9> ;; SELECT {n} ;; \
             <again=9>a long {w} ;; <execute=9>{w}",
            "<prepare=9>SELECT ? ;; <cut=9> ;; SELECT {n} ;; <again=9>a long {w}",
            "<prepare=8>SELECT id FROM kinds WHERE id > ? ORDER BY id ;; <takes cursor=8>0 ;; \
             <fetch=8>1 ;; <cut=8> ;; SELECT {n} ;; <fetch=8>1 ;; <gives clear=8> ;; <fetch=8>1",
        ],
    ),
    habit(
        "long_data",
        2,
        On::Both,
        &[
            "<prepare=9>SELECT LENGTH(?), ? ;; <long=9>a long text ;; SELECT {n} ;; \
             <long=9> and more ;; USE oracle_b ;; <execute=9>~,{w} ;; <execute=9>{w},{w}",
            "<prepare=9>SELECT ? ;; <long=9>lost ;; <clear=9> ;; <execute=9>{w}",
            "<prepare=9>INSERT INTO {t} (name) VALUES (?) ;; <long=9>{w} ;; <execute=9>~ ;; \
             <again=9>{w}",
            "<prepare=9>SELECT ? ;; <long=9>lost ;; <reset> ;; <execute=9>{w}",
        ],
    ),
    habit(
        "several_at_once",
        3,
        On::Both,
        &[
            "<multi=on> ;; INSERT INTO {t} (id) VALUES (1); INSERT INTO {t} (id) VALUES (1); \
             SELECT {n} ;; SHOW WARNINGS ;; SELECT COUNT(*) FROM {t}",
            "<multi=on> ;; SET @m = {n}; SELECT no_such_column; SET @m = 'never' ;; SELECT @m",
            "<multi=on> ;; <opens>BEGIN; INSERT INTO {t} (v) VALUES ({k}); SELEC ;; \
             SELECT COUNT(*) FROM {t} ;; <closes>ROLLBACK",
            "<multi=on> ;; <opens>BEGIN; UPDATE {t} SET name = '{w}'; COMMIT; \
             SELECT ROW_COUNT() ;; <closes>COMMIT",
            "<multi=on> ;; SET time_zone = '+0{n}:00'; SELECT @@time_zone; SELECT 1 FROM nowhere; \
             SET time_zone = '+09:00' ;; SELECT @@time_zone",
            "<multi=on> ;; <takes>SELECT GET_LOCK('{l}', 5); SELECT no_such_column ;; \
             <gives>SELECT RELEASE_LOCK('{l}')",
            "<multi=on> ;; DO 1; ; SELECT 2 ;; SELECT ';', \";\" /* ; */ -- ;",
        ],
    ),
    habit(
        "texts_by_mode",
        4,
        On::Both,
        &[
            "SET sql_mode = 'NO_BACKSLASH_ESCAPES' ;; SET @q = 0 ;; \
             SELECT 'a\\' AS x, @q := 5 AS y, '\\' AS z ;; SELECT @q ;; SET sql_mode = DEFAULT",
            "SET @q = 0 ;; SELECT 'a\\' AS x, @q := 5 AS y, '\\\\' AS z ;; SELECT @q",
            "SET sql_mode = 'ANSI_QUOTES' ;; SET @q = 0 ;; \
             SELECT \"id\", 'a\"b', @q := 6 FROM kinds ORDER BY \"id\" ;; SELECT @q, \"word\" ;; \
             SET sql_mode = DEFAULT",
            "SELECT \"it's\", @q := 7, 'a \"b\" c' ;; SELECT @q",
            "SET sql_mode = 'PIPES_AS_CONCAT' ;; SELECT 'a' || {n} || 'b', 1 || 0 ;; \
             SET sql_mode = DEFAULT ;; SELECT 'a' || {n}",
            "SET sql_mode = 'IGNORE_SPACE' ;; SELECT COUNT (*), NOW () IS NULL FROM {t} ;; \
             SET sql_mode = DEFAULT",
            "SET sql_mode = 'IGNORE_SPACE' ;; <takes>SELECT GET_LOCK ('{l}', 5) ;; \
             SET sql_mode = DEFAULT ;; <gives>SELECT RELEASE_LOCK('{l}')",
            "SELECT 1 -- ' @q := 3\n, 2 ;; SELECT 1 # ' @q := 4\n, 3 ;; SELECT 1 /* ' */ + 1",
            "SELECT 5--1, 5 --1, 5 -- 1\n",
            "<pins>SELECT /*! 1 + */ {n}, /*!50000 2 + */ 1, /*!99999 3 + */ 1",
            "SELECT /*!40000 @q := */ {n} ;; SELECT @q",
        ],
    ),
    habit(
        "oracle_mode",
        2,
        On::MariaDb,
        &[
            "SET sql_mode = 'ORACLE' ;; SELECT 'a' || {n}, @@sql_mode ;; SELECT 1 FROM DUAL ;; \
             SET sql_mode = DEFAULT ;; SELECT 'a' || {n}",
            "SET sql_mode = 'ORACLE' ;; <pins>BEGIN NULL; END; ;; SET sql_mode = DEFAULT",
            "<pins>SELECT /*M! @q := */ {n}, /*M!100100 2 + */ 1 ;; SELECT @q",
        ],
    ),
    habit(
        "two_byte_texts",
        3,
        On::Both,
        &[
            // The second byte of these is a backslash, or stands where a quote would. Where that
            // could be cut in two ways the pool pins (`unknown`).
            "SET NAMES gbk ;; <pins bytes>SELECT HEX('%BF%5C'), '%81%5C' AS x ;; SET NAMES utf8mb4",
            "SET NAMES sjis ;; <pins bytes>SELECT HEX('%83%5C'), HEX('%95%5C') ;; \
             SELECT HEX('a\\'b')",
            "SET NAMES big5 ;; <pins bytes>SELECT HEX('%A5%5C') AS x ;; SET NAMES utf8mb4",
            "SET NAMES gbk ;; SET @q = 0 ;; <pins bytes>SELECT HEX('%BF%5C'), @q := 5, '%BF%27' ;; \
             SELECT @q ;; SET NAMES utf8mb4",
            "SET NAMES latin1 ;; <bytes>SELECT HEX('%BF%5C'), HEX('%BF%5C%5C'), '%E4' ;; \
             SET NAMES utf8mb4",
            "<bytes>SELECT HEX('%C3%A4%5C'%E4')",
            "SET NAMES gbk ;; <pins bytes>INSERT INTO {t} (name) VALUES ('%BF%5C') ;; \
             SELECT HEX(name) FROM {t} ORDER BY id ;; SET NAMES utf8mb4",
            "SET NAMES sjis ;; <pins bytes>SET @q = '%83%5C' ;; SELECT HEX(@q), CHARSET(@q) ;; \
             SET NAMES utf8mb4 ;; SELECT HEX(@q)",
        ],
    ),
    habit(
        "prepared_distributed",
        1,
        On::Both,
        &[
            "<takes>XA START 'z{l}' ;; INSERT INTO {t} (v) VALUES ({k}) ;; XA END 'z{l}' ;; \
             XA PREPARE 'z{l}' ;; <gives>XA COMMIT 'z{l}' ;; SELECT COUNT(*) FROM {t}",
            "<takes>XA START 'z{l}' ;; UPDATE {t} SET name = '{w}' ;; XA END 'z{l}' ;; \
             XA PREPARE 'z{l}' ;; SELECT {n} ;; <gives>XA ROLLBACK 'z{l}' ;; XA RECOVER",
        ],
    ),
    habit(
        "users_change",
        2,
        On::Both,
        &[
            "SET time_zone = '+0{n}:00', @u = {n} ;; <user=other> ;; \
             SELECT CURRENT_USER(), DATABASE(), @@time_zone, @u IS NULL ;; <user=app> ;; \
             SELECT CURRENT_USER(), DATABASE(), @@time_zone, @u IS NULL",
            "<prepare=9>SELECT {n} ;; <user=app> ;; <execute=9>",
            "<opens>BEGIN ;; INSERT INTO {t} (v) VALUES ({k}) ;; <user=other> ;; <user=app> ;; \
             SELECT COUNT(*) FROM {t}",
            "<multi=on> ;; <reset> ;; SELECT 1; SELECT 2",
        ],
    ),
];
