# Variables that nobody reports, that are used up, or that are hard to write: two clients on one
# backend, so a pin that lasts is a story that comes to no end.

story what_is_set_without_its_scope_follows_its_client
let probe = SELECT 1 / 3, @@sql_mode, @@group_concat_max_len, @@time_zone, @@autocommit, \
    @@max_error_count, @@collation_connection, @@character_set_results
a, b multi on
for who, what:
- a | div_precision_increment = 9, @@group_concat_max_len = 77
- b | time_zone = '+05:00'
- a | sql_mode = 'ANSI_QUOTES', time_zone = '+03:00', @a = 1
- b | version = 'x'
- a | div_precision_increment = 3, @@no_such_variable = 1
- b | max_connections = 5
- a | div_precision_increment = 2; SET @@time_zone = 'No/Such'; SELECT 1
- b | div_precision_increment = @@div_precision_increment + 1
- a | max_error_count = 99999999
- b | character_set_results = NULL, @@collation_connection = utf8mb4_bin
- a | autocommit = 0
- b | sql_mode = CONCAT(@@sql_mode, ',NO_BACKSLASH_ESCAPES')
- a | autocommit = 1
  $who: SET @@$what
  b, a: $probe
end
b, a: $probe
a reset
b, a: $probe

# MariaDB has some variables under two names, and reports the one that was named.
story a_variable_of_two_names_is_one
let probe = SELECT @@default_storage_engine, @@storage_engine, @@tmp_table_size, \
    @@tmp_memory_table_size, @@alter_algorithm, @@old_alter_table, @@long_query_time, \
    @@log_slow_query_time, @@slow_query_log, @@log_slow_query, @@min_examined_row_limit, \
    @@log_slow_min_examined_row_limit
a, b multi on
for who, what:
- a | default_storage_engine = MEMORY, tmp_table_size = 98304, long_query_time = 3
- b | storage_engine = MyISAM, min_examined_row_limit = 3
- a | storage_engine = Aria, old_alter_table = 'COPY', log_slow_query = 1
- b | tmp_memory_table_size = 32768, log_slow_query_time = 5, slow_query_log = 1
- a | tmp_memory_table_size = 65536, alter_algorithm = 'INPLACE', slow_query_log = 0
- b | alter_algorithm = 'NOCOPY', log_slow_min_examined_row_limit = 4
- a | @@log_slow_query_time = 4, @@storage_engine = MyISAM
- b | old_alter_table = DEFAULT, tmp_table_size = DEFAULT
- a | default_storage_engine = DEFAULT, @@long_query_time = DEFAULT
  $who: SET $what
  b, a: $probe
end
b, a: $probe
a reset
b, a: $probe

# Of these the server reports the one that was named, and sets another.
story a_variable_that_is_part_of_another_keeps_its_client
let probe = SELECT @@log_slow_filter, @@log_slow_disabled_statements, @@old_mode, \
    @@log_queries_not_using_indexes, @@log_slow_admin_statements, @@old
a: SET log_slow_filter = 'tmp_table', old_mode = ''
b: SET log_slow_slave_statements = 0, log_slow_filter = 'admin'
b: SELECT 1
b: $probe
b reset
a, b: $probe

# `max_join_size` sets `sql_big_selects` too, without a report.
story a_limit_of_joins_follows_its_client_whole
a, b multi on
a: SET sql_big_selects = 1
for what, what2:
- max_join_size = 5 | max_join_size = 5
- max_join_size = DEFAULT | sql_big_selects = 1
- sql_big_selects = 0 | max_join_size = 6, sql_big_selects = 1
- @@max_join_size = 18446744073709551615 | sql_big_selects = 1, max_join_size = 7
- sql_safe_updates = 1, sql_select_limit = 1000, max_join_size = 1000000 | @@max_join_size = 8
  b, a: SELECT @@max_join_size, @@sql_big_selects
  b: SET $what
  b, a: SELECT @@max_join_size, @@sql_big_selects
  a: SET $what2
end
b, a: SELECT @@max_join_size, @@sql_big_selects
b, a: SELECT @@max_join_size, @@sql_big_selects
a: SET max_join_size = DEFAULT
b, a: SELECT @@max_join_size, @@sql_big_selects
b, a: SELECT @@max_join_size, @@sql_big_selects
a: SET sql_big_selects = 0
b, a: SELECT @@max_join_size, @@sql_big_selects
b, a: SELECT @@max_join_size, @@sql_big_selects
a reset
b, a: SELECT @@max_join_size, @@sql_big_selects
c: CREATE TABLE t AS SELECT 1 AS v UNION ALL SELECT 2
c: SET max_join_size = 2
c, d: SELECT COUNT(*) FROM t AS x, t AS y
c: SELECT COUNT(*) FROM t AS x, t AS y

# With one backend: whoever is pinned has the other wait in vain, and finds there what that has
# left.
story a_set_of_several_that_has_not_begun_does_not_pin
a: CREATE TABLE t (id INT PRIMARY KEY)
a: INSERT INTO t VALUES (1), (2), (3)
for what:
- @@sql_mode = DEFAULT, @@no_such_variable = 3
- sql_mode = DEFAULT, no_such_variable = 3
- @@sql_mode = DEFAULT, @@version = 'x'
- sql_mode = DEFAULT, SESSION max_connections = 3
- sql_mode = DEFAULT, @@version = DEFAULT
  a: SET @@sql_mode = 'ANSI_QUOTES'
  b: SET @unset = 'x'
  a: SET $what
  a: SELECT @unset := IFNULL(@unset, 0) + 1 FROM t ORDER BY id
  b: SELECT @unset
  b, a: SELECT @@sql_mode
  a reset
end
a: SET @@sql_mode = 'ANSI_QUOTES'

story what_was_set_without_its_scope_cuts_the_next_text
a: CREATE TABLE t (v INT) ENGINE=InnoDB
a: BEGIN
a: SET @@sql_mode = 'ANSI_QUOTES'
a: INSERT INTO "t" VALUES (1)
a: SELECT "v" FROM t
a: COMMIT
a, b: SELECT "v" FROM t
b: SELECT @@sql_mode
a: SELECT 1 / 0
a: SET @@max_error_count = 99999999
a: SHOW WARNINGS
a: SELECT ROW_COUNT(), FOUND_ROWS()
b: SELECT 1
b: SHOW WARNINGS
a: BEGIN
a: SET @@no_such_variable = 1
a: SHOW WARNINGS
a: SELECT ROW_COUNT()
a: ROLLBACK
a: DO GET_LOCK('cuts', 0)
a: SET @@time_zone = '+01:00'
a: SELECT ROW_COUNT()
a: SELECT RELEASE_LOCK('cuts')
b, a: SELECT @@time_zone

# MariaDB reports its wait for locks as variables, which do not last. With one backend a pinned
# client would have the other wait in vain.
story a_wait_for_locks_lasts_for_its_statement_alone
let probe = SELECT @@lock_wait_timeout, @@innodb_lock_wait_timeout
a: CREATE TABLE t (id INT PRIMARY KEY)
a: INSERT INTO t VALUES (1), (2)
a: SET lock_wait_timeout = 77
for sql:
- SELECT id FROM t WHERE id = 1 FOR UPDATE NOWAIT
- SELECT id FROM t WHERE id = 1 LOCK IN SHARE MODE WAIT 3
- SELECT id INTO @a FROM t WHERE id = 1 FOR UPDATE NOWAIT
- INSERT INTO t SELECT id + 2 FROM t WHERE id = 1 FOR UPDATE NOWAIT
- ALTER TABLE t WAIT 3 ADD COLUMN x INT
- CREATE INDEX x ON t (x) WAIT 2
- DROP INDEX x ON t WAIT 4
- OPTIMIZE TABLE t WAIT 5
- TRUNCATE TABLE t WAIT 3
- RENAME TABLE t WAIT 2 TO u
- DROP TABLE u WAIT 6
- DROP TABLE no_such NOWAIT
  a: $sql
  b, a: $probe
  a: BEGIN
  a: $sql
  a: $probe
  a: COMMIT
  b: $probe
end

# Where it cannot be told whose a reported value is, its client stays where that is.
story a_wait_for_locks_within_other_settings_does_not_last_either
backends 2
let probe = SELECT @@lock_wait_timeout, @@max_error_count
a: CREATE TABLE t (id INT PRIMARY KEY)
b: SET @a = (SELECT id FROM t WHERE id = 1 FOR UPDATE NOWAIT)
c, b: $probe
b reset
b: $probe
b, c leaves
d: SET max_error_count = (SELECT COUNT(*) + 5 FROM t FOR UPDATE NOWAIT)
e, d: $probe
d reset
d: $probe
d, e leaves
f: SELECT id FROM t FOR UPDATE NOWAIT; SET max_error_count = 7
g, f: $probe
f reset
f: $probe
f, g leaves
h: SET max_error_count = 8; SELECT id FROM t FOR UPDATE NOWAIT
i, h: $probe
h reset
h: $probe
h, i leaves
j: DROP TABLE IF EXISTS no_such NOWAIT; DO 1
k, j: $probe
j reset
j: $probe
j, k leaves

story what_is_prepared_without_a_scope_follows_its_client
let probe = SELECT @@div_precision_increment, @@time_zone
a prepare p0: SET @@div_precision_increment = 7
a execute p0 ()
b, a: $probe
a: SET div_precision_increment = DEFAULT
a execute p0 ()
b, a: $probe

story a_stopped_clock_follows_its_client_and_goes_on_again
let probe = SELECT @@timestamp < 2000000, UNIX_TIMESTAMP() < 2000000, IF(@@timestamp < 2000000, \
    @@timestamp, 0)
a, b multi on
a: SET timestamp = 1000
b, a: $probe
b: SET timestamp = 3000
b, a: $probe
a: SET timestamp = DEFAULT
b, a: $probe
b: SET timestamp = @@timestamp + 1
for sql:
- SET timestamp = 1000.25
- SET @@timestamp = 5
- SET @@timestamp = DEFAULT
- SET timestamp = 0
- SET timestamp = 'x'
- BEGIN; SET timestamp = 7; COMMIT
  b, a: $probe
  a: $sql
  b, a: $probe
end
b, a: $probe
a reset
b, a: $probe

story last_insert_id_by_its_other_names_follows_its_client
let probe = SELECT LAST_INSERT_ID(), @@identity, @@last_insert_id
a, b multi on
for who, what:
- a | last_insert_id = 5
- b | @@SESSION.identity = 6
- a | @@identity = 7
- b | identity = 'x'
- a | last_insert_id = DEFAULT
  $who: SET $what
  b, a: $probe
end
b, a: $probe
a reset
b, a: $probe

story variables_of_replication_follow_their_client
let probe = SELECT @@server_id, @@gtid_domain_id, @@skip_replication, @@skip_parallel_replication, \
    @@wsrep_on
let probe2 = SELECT @@sql_log_bin, @@pseudo_slave_mode, @@completion_type
a, b multi on
if mariadb
  a: SET server_id = 77, gtid_domain_id = 5
  b, a: $probe
  b: SET server_id = 78
  b, a: $probe
  a: SET skip_replication = 1, skip_parallel_replication = 1
  b, a: $probe
  b: SET wsrep_on = 1
  for what:
  - wsrep_on = 0
  - server_id = DEFAULT
  - max_relay_log_size = 8192, sql_slave_skip_counter = 0
    b, a: $probe
    a: SET $what
    b, a: $probe
  end
  b, a: $probe
end
if mysql
  a: SET sql_log_bin = 0
  b, a: $probe2
  b: SET sql_log_bin = DEFAULT
  b, a: $probe2
  a: SET pseudo_slave_mode = 1
  b, a: $probe2
  b: SET completion_type = CHAIN
  for what:
  - completion_type = 1
  - sql_log_bin = 1
  - pseudo_slave_mode = 0
  - completion_type = 0
    b, a: $probe2
    a: SET $what
    b, a: $probe2
  end
  b, a: $probe2
end
a reset
if mariadb
  b, a: $probe
end
if mysql
  b, a: $probe2
end

story variables_of_replication_follow_their_client_2
only mysql
let probe = SELECT @@require_row_format, @@pseudo_replica_mode
a, b multi on
a: SET require_row_format = 1
b, a: $probe
b: SET pseudo_replica_mode = 1
b, a: $probe
a: SET require_row_format = 0
b, a: $probe
b, a: $probe
a reset
b, a: $probe

story a_number_of_its_own_follows_its_client_and_no_other
a multi on
a: SET pseudo_thread_id = 999999; SELECT CONNECTION_ID()
b: SELECT CONNECTION_ID() = 999999 AS c, @@pseudo_thread_id = 999999 AS p
a: SELECT CONNECTION_ID(), @@pseudo_thread_id
a: SET pseudo_thread_id = 5
b: SELECT CONNECTION_ID() = 5 AS c
a: SELECT CONNECTION_ID() < 1000 AS c, @@pseudo_thread_id < 1000 AS p
a reset
a: SELECT CONNECTION_ID() = 5 AS c

story what_is_used_up_keeps_its_client_until_then
a: CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)
for what, value:
- insert_id = 50 | 0
- @@insert_id = 100 | 1
- @@SESSION.insert_id = 150, time_zone = '+01:00' | 2
  a: SET $what
  a: SELECT @@insert_id
  a: INSERT INTO t (v) VALUES (1)
  b: SELECT @@insert_id, @@time_zone
  b: INSERT INTO t (v) VALUES ($value)
  a: SELECT LAST_INSERT_ID(), @@insert_id, @@time_zone
end
a: SET insert_id = 70
a: SELECT 1 / 0
a: SHOW WARNINGS
a: SELECT FOUND_ROWS()
a: INSERT INTO t (v) VALUES (3)
b: SELECT @@insert_id
a: SET insert_id = 5, no_such = 1
b: SELECT @@insert_id, id, v FROM t ORDER BY id
a: SET insert_id = 80
a: BEGIN
a: INSERT INTO t (v) VALUES (2)
a: COMMIT
b: SELECT @@insert_id, id, v FROM t ORDER BY id
a: SET insert_id = 90
a reset
b, a: SELECT @@insert_id

story what_is_used_up_keeps_its_client_until_then_2
a: SET gtid_seq_no = 1000
a: SELECT @@gtid_seq_no
a: SET gtid_seq_no = 0
b: SELECT @@gtid_seq_no
a: SET gtid_next = 'AUTOMATIC'
b: SELECT 1

# With `insert_id` set to 0 the next row gets the id 0, and the variable shows 0 all the time.
story an_insert_id_of_nothing_is_the_clients_own
backends 2
a: CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)
for who, what:
- b | insert_id = 0
- c | insert_id = 7; SET @@insert_id := 0
- d | SESSION insert_id = DEFAULT
- e | insert_id = 8 - 8, time_zone = '+01:00'
- f | insert_id = 'x'
  $who multi on
  $who: SET $what
  a: INSERT INTO t (v) VALUES (1)
  a: SELECT @@insert_id, id, v FROM t ORDER BY id
  $who: INSERT INTO t (v) VALUES (1)
  $who: SELECT @@insert_id, id, v FROM t ORDER BY id
  $who reset
  a: INSERT INTO t (v) VALUES (1)
  a: DELETE FROM t WHERE id = 0
  $who: SELECT @@insert_id, id, v FROM t ORDER BY id
  $who: INSERT INTO t (v) VALUES (1)
end

story what_mysql_uses_up_keeps_its_client_until_then
only mysql
a: SELECT @@gtid_next
a: SET gtid_next = 'AUTOMATIC'
b: SELECT @@gtid_next
b: SET gtid_seq_no = 5
a: SELECT @@gtid_next

# With a binary log a transaction uses it up: MySQL does not report that.
story the_origin_of_a_transaction_follows_its_client_until_that_uses_it_up
only mysql
let probe = SELECT @@original_commit_timestamp, @@original_server_version, \
    @@immediate_server_version
a: CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)
a: CREATE PROCEDURE fills() INSERT INTO t (v) VALUES (2), (3)
b: SET original_commit_timestamp = 99
for what:
- original_commit_timestamp = 5
- @@original_server_version = 80000, @@SESSION.immediate_server_version = 80001
- SESSION original_commit_timestamp = 7, original_server_version = 80002, time_zone = '+01:00'
  for sql, who, sql2:
  - INSERT INTO t (v) VALUES (1) | b | SELECT @@original_commit_timestamp, \
      @@original_server_version, @@immediate_server_version
  - BEGIN | a | INSERT INTO t (v) VALUES (1)
    a: SET $what
    b, a: $probe
    # What uses none up.
    a: SELECT COUNT(*) FROM t
    a: DO 0
    a: COMMIT
    a: BEGIN
    a: INSERT INTO t (v) VALUES (1)
    a: ROLLBACK
    a: INSERT INTO t VALUES (1, 1)
    b: $probe
    a: $sql
    $who: $sql2
    a: $probe
  end
  for sql:
  - COMMIT
  - CALL fills()
  - INSERT INTO t SELECT 1 + MAX(id), 4 FROM t
    a: $sql
    b, a: $probe
    a: SET $what
    b, a: $probe
    a: SELECT COUNT(*) FROM t
    a: DO 0
    a: COMMIT
    a: BEGIN
    a: INSERT INTO t (v) VALUES (1)
    a: ROLLBACK
    a: INSERT INTO t VALUES (1, 1)
    b: $probe
  end
  a: SET autocommit = 0
  a: INSERT INTO t (v) VALUES (1)
  a: COMMIT
  a: SET autocommit = 1
  b, a: $probe
  a: SET $what
  b, a: $probe
  a: SELECT COUNT(*) FROM t
  a: DO 0
  a: COMMIT
  a: BEGIN
  a: INSERT INTO t (v) VALUES (1)
  a: ROLLBACK
  a: INSERT INTO t VALUES (1, 1)
  b: $probe
  a prepare p: INSERT INTO t (v) VALUES (5)
  a execute p ()
  b, a: $probe
  b: INSERT INTO t (v) VALUES (1)
  b, a: $probe
  b: SET original_commit_timestamp = 98
  b: SET original_server_version = 1
end
a multi on
a: SET immediate_server_version = 8; INSERT INTO t (v) VALUES (1); SELECT \
    @@original_commit_timestamp, @@original_server_version, @@immediate_server_version
b, a: $probe
a: SET original_commit_timestamp = 9
a: SET original_commit_timestamp = DEFAULT
a: $probe
a: SET original_commit_timestamp = 'x'
a: $probe
a: SET original_commit_timestamp = 10
b: $probe
a reset
a: $probe
a: SET original_commit_timestamp = 11
b: $probe
a becomes
a, b: $probe

# Each client finds its own LAST_INSERT_ID(), whatever others insert between: by function and
# variable, in views, triggers and routines, behind ids that were given, and where an INSERT fails
# halfway or has no id at all.
story the_last_insert_id_is_the_clients_own_wherever_it_is_read
a: CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT UNIQUE, w INT)
a: CREATE TABLE plain (v INT)
a: CREATE TABLE noted (v BIGINT)
a: INSERT INTO plain VALUES (1), (2)
a: CREATE FUNCTION last_id() RETURNS BIGINT NO SQL RETURN LAST_INSERT_ID()
a: CREATE VIEW shows AS SELECT LAST_INSERT_ID() AS id
a: CREATE VIEW calls AS SELECT last_id() AS id
a: CREATE TRIGGER notes AFTER UPDATE ON plain FOR EACH ROW INSERT INTO noted VALUES \
    (LAST_INSERT_ID())
a: INSERT INTO t (v) VALUES (1)
b: INSERT INTO t (v) VALUES (2), (3)
a, b multi on
for sql, sql2, sql3, sql4:
- INSERT INTO t (id, v) VALUES (100, 100) | SELECT LAST_INSERT_ID() | INSERT INTO plain VALUES (5) \
    | SELECT @@last_insert_id, @@identity
- INSERT INTO t (v) VALUES (200), (1) | SELECT id FROM shows | INSERT IGNORE INTO t (v) VALUES (1) \
    | SELECT id FROM calls
- INSERT INTO t (v) VALUES (1) ON DUPLICATE KEY UPDATE w = 1 | SELECT last_id() | INSERT INTO t \
    (v) VALUES (1) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id) | UPDATE plain SET v = v + 1 \
    LIMIT 1
- REPLACE INTO t (v) VALUES (300) | SELECT v FROM noted | REPLACE INTO plain VALUES (6) | SELECT \
    LAST_INSERT_ID()
- INSERT INTO t (v) SELECT v + 1000 FROM plain | SELECT @@last_insert_id, @@identity | INSERT INTO \
    plain VALUES (LAST_INSERT_ID()) | SELECT id FROM shows
- UPDATE plain SET v = LAST_INSERT_ID(v + 7) LIMIT 1 | SELECT id FROM calls | SELECT \
    LAST_INSERT_ID(77) | SELECT last_id()
- INSERT INTO plain VALUES (8); INSERT INTO t (v) VALUES (400); INSERT INTO plain VALUES (9) | \
    UPDATE plain SET v = v + 1 LIMIT 1 | SET last_insert_id = 12 | SELECT v FROM noted
  b: SELECT v FROM plain
  b: DELETE FROM noted
  b: SELECT 1
  a: $sql
  b: SELECT v FROM plain
  b: DELETE FROM noted
  b: SELECT 1
  a: $sql2
  b: SELECT LAST_INSERT_ID()
  b: SELECT @@last_insert_id, @@identity
  b: SELECT id FROM shows
  b: SELECT id FROM calls
  b: SELECT last_id()
  b: UPDATE plain SET v = v + 1 LIMIT 1
  b: SELECT v FROM noted
  a, b: SELECT v FROM plain
  b: DELETE FROM noted
  b: SELECT 1
  a: SELECT LAST_INSERT_ID()
  a: SELECT @@last_insert_id, @@identity
  a: SELECT id FROM shows
  a: SELECT id FROM calls
  a: SELECT last_id()
  a: UPDATE plain SET v = v + 1 LIMIT 1
  a: SELECT v FROM noted
  a: SELECT v FROM plain
  a: DELETE FROM noted
  a: SELECT 1
  b: $sql3
  a: SELECT v FROM plain
  a: DELETE FROM noted
  a: SELECT 1
  b: $sql4
  a: SELECT LAST_INSERT_ID()
  a: SELECT @@last_insert_id, @@identity
  a: SELECT id FROM shows
  a: SELECT id FROM calls
  a: SELECT last_id()
  a: UPDATE plain SET v = v + 1 LIMIT 1
  a: SELECT v FROM noted
  b, a: SELECT v FROM plain
  a: DELETE FROM noted
  a: SELECT 1
  b: SELECT LAST_INSERT_ID()
  b: SELECT @@last_insert_id, @@identity
  b: SELECT id FROM shows
  b: SELECT id FROM calls
  b: SELECT last_id()
  b: UPDATE plain SET v = v + 1 LIMIT 1
  b: SELECT v FROM noted
end
a: BEGIN
a: SELECT v FROM plain
a: INSERT INTO t (v) VALUES (500)
a: SELECT v FROM plain
a: SELECT LAST_INSERT_ID()
a: COMMIT
b: SELECT v FROM plain
b: DELETE FROM noted
b: SELECT 1
b, a: SELECT LAST_INSERT_ID()

story automatic_is_null_is_the_clients_own
let probe = SELECT @@sql_$schema, id FROM t WHERE id IS NULL
a: CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)
a: SET sql_$schema = 1
a: INSERT INTO t (v) VALUES (1)
a: $probe
a: $probe
a: SET sql_$schema = 0
a, b: $probe
b: SET @@sql_$schema = ON
b: $probe
b: INSERT INTO t (v) VALUES (1)
b: $probe
b: SET sql_$schema = OFF
b, a: $probe

story values_of_every_kind_are_given_back
let probe = SELECT @@innodb_tmpdir, @@innodb_ft_user_stopword_table
a, b multi on
a: SET innodb_tmpdir = '/tmp'
b, a: $probe
b: SET innodb_tmpdir = DEFAULT
for what:
- innodb_tmpdir = NULL
- innodb_ft_user_stopword_table = NULL
- innodb_tmpdir = ''
  b, a: $probe
  a: SET $what
  b, a: $probe
end
b, a: $probe
a reset
b, a: $probe

story values_of_every_kind_are_given_back_2
let probe = SELECT HEX(@@default_master_connection), @@sql_mode, @@character_set_client
a, b multi on
for what, sql, who, sql2:
- it''s | SET NAMES latin1, sql_mode = 'NO_BACKSLASH_ESCAPES' | b | SELECT \
    HEX(@@default_master_connection), @@sql_mode, @@character_set_client
- a\\bé | SET default_master_connection = 'x"y' | b | SELECT HEX(@@default_master_connection), \
    @@sql_mode, @@character_set_client
- 12 | SELECT HEX(@@default_master_connection), @@sql_mode, @@character_set_client | a | SET \
    default_master_connection = ''
  a: SET default_master_connection = '$what'
  b, a: $probe
  b: $sql
  $who: $probe
  a: $sql2
end
b, a: $probe
b, a: $probe
a reset
b, a: $probe

story schemas_of_every_name_follow_their_clients
let probe = SELECT HEX(DATABASE()), @@character_set_client
for what:
- odd schéma`
- odd``1```
- odd.2`
- odd 中文`
  a: DROP DATABASE IF EXISTS `$what
  a: CREATE DATABASE `$what
  a: USE `$what
  a: CREATE TABLE t (v INT)
  b: SELECT HEX(DATABASE())
  a: SELECT * FROM t
  a: SELECT HEX(DATABASE())
end
c joins no_schema collation 8
c: $probe
c command 0x02: odd sch\xe9ma
a, c, b: $probe
c, a: $probe
c bytes: USE `odd sch\xe9ma`
b: SET NAMES latin1
a, b init_db: odd schéma
a, c, b: $probe
c, a: $probe
c: SET NAMES utf8mb4
c: DROP DATABASE IF EXISTS `odd Ã©`
c: CREATE DATABASE `odd Ã©`
d joins schema 'odd é' collation 8
d, b: $probe
d: $probe
d: SET NAMES utf8mb4
d: SELECT DATABASE()
b: $probe
d: SELECT DATABASE()
d: DROP DATABASE `odd Ã©`
e joins schema 'odd schéma'
e, c: SELECT HEX(DATABASE())
e: SELECT HEX(DATABASE())
e reset
b, e: SELECT HEX(DATABASE())
b: DROP DATABASE `odd schema`
a: DROP DATABASE `odd schéma`
b, a: DROP DATABASE `odd``1```
b, a: DROP DATABASE `odd.2`
b, a: DROP DATABASE `odd 中文`
a: SELECT HEX(DATABASE())

story what_is_too_long_to_carry_keeps_its_client_until_it_is_shorter
for sql:
- SET @a = NULL
- SET @a = 'short'
- SELECT 7 INTO @a
  a: SET @a = REPEAT('x', 100000), @b = 1
  a: SELECT LENGTH(@a), LEFT(@b, 9)
  a: SET @b = 2
  a: SELECT LENGTH(@a), LEFT(@b, 9)
  a: $sql
  b, a: SELECT LENGTH(@a), LEFT(@b, 9)
end
a: SET @w0 = 'x', @w1 = 'x', @w2 = 'x', @w3 = 'x', @w4 = 'x', @w5 = 'x', @w6 = 'x', @w7 = 'x', @w8 \
    = 'x', @w9 = 'x', @w10 = 'x', @w11 = 'x', @w12 = 'x', @w13 = 'x', @w14 = 'x', @w15 = 'x', @w16 \
    = 'x', @w17 = 'x', @w18 = 'x', @w19 = 'x', @w20 = 'x', @w21 = 'x', @w22 = 'x', @w23 = 'x', \
    @w24 = 'x', @w25 = 'x', @w26 = 'x', @w27 = 'x', @w28 = 'x', @w29 = 'x', @w30 = 'x', @w31 = \
    'x', @w32 = 'x', @w33 = 'x', @w34 = 'x', @w35 = 'x', @w36 = 'x', @w37 = 'x', @w38 = 'x', @w39 \
    = 'x', @w40 = 'x', @w41 = 'x', @w42 = 'x', @w43 = 'x', @w44 = 'x', @w45 = 'x', @w46 = 'x', \
    @w47 = 'x', @w48 = 'x', @w49 = 'x', @w50 = 'x', @w51 = 'x', @w52 = 'x', @w53 = 'x', @w54 = \
    'x', @w55 = 'x', @w56 = 'x', @w57 = 'x', @w58 = 'x', @w59 = 'x', @w60 = 'x', @w61 = 'x', @w62 \
    = 'x', @w63 = 'x', @w64 = 'x', @w65 = 'x', @w66 = 'x', @w67 = 'x', @w68 = 'x', @w69 = 'x', \
    @w70 = 'x', @w71 = 'x', @w72 = 'x', @w73 = 'x', @w74 = 'x', @w75 = 'x', @w76 = 'x', @w77 = \
    'x', @w78 = 'x', @w79 = 'x', @w80 = 'x', @w81 = 'x', @w82 = 'x', @w83 = 'x', @w84 = 'x', @w85 \
    = 'x', @w86 = 'x', @w87 = 'x', @w88 = 'x', @w89 = 'x', @w90 = 'x', @w91 = 'x', @w92 = 'x', \
    @w93 = 'x', @w94 = 'x', @w95 = 'x', @w96 = 'x', @w97 = 'x', @w98 = 'x', @w99 = 'x', @w100 = \
    'x', @w101 = 'x', @w102 = 'x', @w103 = 'x', @w104 = 'x', @w105 = 'x', @w106 = 'x', @w107 = \
    'x', @w108 = 'x', @w109 = 'x', @w110 = 'x', @w111 = 'x', @w112 = 'x', @w113 = 'x', @w114 = \
    'x', @w115 = 'x', @w116 = 'x', @w117 = 'x', @w118 = 'x', @w119 = 'x', @w120 = 'x', @w121 = \
    'x', @w122 = 'x', @w123 = 'x', @w124 = 'x', @w125 = 'x', @w126 = 'x', @w127 = 'x', @w128 = \
    'x', @w129 = 'x', @w130 = 'x', @w131 = 'x', @w132 = 'x', @w133 = 'x', @w134 = 'x', @w135 = \
    'x', @w136 = 'x', @w137 = 'x', @w138 = 'x', @w139 = 'x', @w140 = 'x', @w141 = 'x', @w142 = \
    'x', @w143 = 'x', @w144 = 'x', @w145 = 'x', @w146 = 'x', @w147 = 'x', @w148 = 'x', @w149 = \
    'x', @w150 = 'x', @w151 = 'x', @w152 = 'x', @w153 = 'x', @w154 = 'x', @w155 = 'x', @w156 = \
    'x', @w157 = 'x', @w158 = 'x', @w159 = 'x', @w160 = 'x', @w161 = 'x', @w162 = 'x', @w163 = \
    'x', @w164 = 'x', @w165 = 'x', @w166 = 'x', @w167 = 'x', @w168 = 'x', @w169 = 'x', @w170 = \
    'x', @w171 = 'x', @w172 = 'x', @w173 = 'x', @w174 = 'x', @w175 = 'x', @w176 = 'x', @w177 = \
    'x', @w178 = 'x', @w179 = 'x', @w180 = 'x', @w181 = 'x', @w182 = 'x', @w183 = 'x', @w184 = \
    'x', @w185 = 'x', @w186 = 'x', @w187 = 'x', @w188 = 'x', @w189 = 'x', @w190 = 'x', @w191 = \
    'x', @w192 = 'x', @w193 = 'x', @w194 = 'x', @w195 = 'x', @w196 = 'x', @w197 = 'x', @w198 = \
    'x', @w199 = 'x'
a, b: SELECT LEFT(@w1, 9)
a: SET @w200 = 'y', @w201 = 'y', @w202 = 'y', @w203 = 'y', @w204 = 'y', @w205 = 'y', @w206 = 'y', \
    @w207 = 'y', @w208 = 'y', @w209 = 'y', @w210 = 'y', @w211 = 'y', @w212 = 'y', @w213 = 'y', \
    @w214 = 'y', @w215 = 'y', @w216 = 'y', @w217 = 'y', @w218 = 'y', @w219 = 'y', @w220 = 'y', \
    @w221 = 'y', @w222 = 'y', @w223 = 'y', @w224 = 'y', @w225 = 'y', @w226 = 'y', @w227 = 'y', \
    @w228 = 'y', @w229 = 'y', @w230 = 'y', @w231 = 'y', @w232 = 'y', @w233 = 'y', @w234 = 'y', \
    @w235 = 'y', @w236 = 'y', @w237 = 'y', @w238 = 'y', @w239 = 'y', @w240 = 'y', @w241 = 'y', \
    @w242 = 'y', @w243 = 'y', @w244 = 'y', @w245 = 'y', @w246 = 'y', @w247 = 'y', @w248 = 'y', \
    @w249 = 'y', @w250 = 'y', @w251 = 'y', @w252 = 'y', @w253 = 'y', @w254 = 'y', @w255 = 'y', \
    @w256 = 'y', @w257 = 'y', @w258 = 'y', @w259 = 'y', @w260 = 'y', @w261 = 'y', @w262 = 'y', \
    @w263 = 'y', @w264 = 'y', @w265 = 'y', @w266 = 'y', @w267 = 'y', @w268 = 'y', @w269 = 'y', \
    @w270 = 'y', @w271 = 'y', @w272 = 'y', @w273 = 'y', @w274 = 'y', @w275 = 'y', @w276 = 'y', \
    @w277 = 'y', @w278 = 'y', @w279 = 'y', @w280 = 'y', @w281 = 'y', @w282 = 'y', @w283 = 'y', \
    @w284 = 'y', @w285 = 'y', @w286 = 'y', @w287 = 'y', @w288 = 'y', @w289 = 'y', @w290 = 'y', \
    @w291 = 'y', @w292 = 'y', @w293 = 'y', @w294 = 'y', @w295 = 'y', @w296 = 'y', @w297 = 'y', \
    @w298 = 'y', @w299 = 'y', @w300 = 'y', @w301 = 'y', @w302 = 'y', @w303 = 'y', @w304 = 'y', \
    @w305 = 'y', @w306 = 'y', @w307 = 'y', @w308 = 'y', @w309 = 'y', @w310 = 'y', @w311 = 'y', \
    @w312 = 'y', @w313 = 'y', @w314 = 'y', @w315 = 'y', @w316 = 'y', @w317 = 'y', @w318 = 'y', \
    @w319 = 'y', @w320 = 'y', @w321 = 'y', @w322 = 'y', @w323 = 'y', @w324 = 'y', @w325 = 'y', \
    @w326 = 'y', @w327 = 'y', @w328 = 'y', @w329 = 'y', @w330 = 'y', @w331 = 'y', @w332 = 'y', \
    @w333 = 'y', @w334 = 'y', @w335 = 'y', @w336 = 'y', @w337 = 'y', @w338 = 'y', @w339 = 'y', \
    @w340 = 'y', @w341 = 'y', @w342 = 'y', @w343 = 'y', @w344 = 'y', @w345 = 'y', @w346 = 'y', \
    @w347 = 'y', @w348 = 'y', @w349 = 'y', @w350 = 'y', @w351 = 'y', @w352 = 'y', @w353 = 'y', \
    @w354 = 'y', @w355 = 'y', @w356 = 'y', @w357 = 'y', @w358 = 'y', @w359 = 'y', @w360 = 'y', \
    @w361 = 'y', @w362 = 'y', @w363 = 'y', @w364 = 'y', @w365 = 'y', @w366 = 'y', @w367 = 'y', \
    @w368 = 'y', @w369 = 'y', @w370 = 'y', @w371 = 'y', @w372 = 'y', @w373 = 'y', @w374 = 'y', \
    @w375 = 'y', @w376 = 'y', @w377 = 'y', @w378 = 'y', @w379 = 'y', @w380 = 'y', @w381 = 'y', \
    @w382 = 'y', @w383 = 'y', @w384 = 'y', @w385 = 'y', @w386 = 'y', @w387 = 'y', @w388 = 'y', \
    @w389 = 'y', @w390 = 'y', @w391 = 'y', @w392 = 'y', @w393 = 'y', @w394 = 'y', @w395 = 'y', \
    @w396 = 'y', @w397 = 'y', @w398 = 'y', @w399 = 'y'
a: SELECT LEFT(@w1, 9), LEFT(@w399, 9)
a reset
b, a: SELECT LEFT(@w1, 9), LEFT(@w399, 9)

# A server takes any bytes in a client's own literal, but not behind an introducer.
story bytes_that_are_no_text_of_their_character_set_keep_their_client
backends 2
for what, what2:
- gbk | xe9
- sjis | x81
- big5 | xa4
- ujis | x8f
- euckr | xb0
- gb2312 | xb0
  a: SET NAMES $what
  a bytes: SET @v = \'\$what2\'
  b: SET @v = NULL
  c: SET @v = 3
  b: SET @v = 5
  a: SELECT HEX(@v), COLLATION(@v)
  a: SET @v = 'short'
  a: SELECT HEX(@v), COLLATION(@v)
end

# MariaDB reports nothing of it, so its client keeps its backend until it leaves or resets.
story what_set_statement_sets_for_good_keeps_its_client
backends 2
let probe = SELECT @@sql_select_limit, @@time_zone, @@autocommit, @@sql_mode, \
    @@character_set_client, @@tx_isolation, @v <=> 5
for set:
- sql_select_limit = 1
- SESSION time_zone = '+03:00', @v = 5
- @@autocommit = 0
- sql_mode = 'ANSI_QUOTES'
- NAMES latin1
- SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE
- STATEMENT div_precision_increment = 9 FOR SET sql_select_limit = 2
  a: SET STATEMENT max_statement_time = 10 FOR SET $set
  b, a: $probe
  a reset
  b, a: $probe
  a prepare p: SET STATEMENT max_statement_time = 10 FOR SET $set
  a execute p ()
  b, a: $probe
  a reset
  b, a: $probe
end
# To set these for one statement leaves something, or hides what that does.
a: SET STATEMENT max_join_size = 10 FOR SELECT 1
b, a: SELECT DATABASE(), @@sql_big_selects
a reset
a: SET STATEMENT session_track_schema = OFF FOR USE shop
b, a: SELECT DATABASE(), @@sql_big_selects
a reset
a: SET STATEMENT max_statement_time = 10 FOR SET @v = 7
b, a: SELECT @v

# MariaDB looks at a DEFAULT and a PASSWORD of a SET when it has set the other variables.
story what_a_set_that_fails_has_set_is_its_clients_alone
backends 2
let probe = SELECT @@sql_mode, @@time_zone, @@autocommit, @@sql_select_limit
a joins without SESSION_TRACK
# Who is told of changes may hear of one later that the server does not tell at all.
a: CREATE TABLE t (id INT)
a multi on
a: SET last_insert_id = DEFAULT, sql_mode = ''
a, b: $probe
b: INSERT INTO t VALUES (1), (2)
b leaves
a: SELECT COUNT(*) FROM t
a: $probe
a reset
a: $probe
a prepare p0: SET last_insert_id = DEFAULT, sql_mode = ''
a execute p0 ()
c, a: $probe

story what_a_set_that_fails_has_set_is_its_clients_alone_2
backends 2
let probe = SELECT @@sql_mode, @@time_zone, @@autocommit, @@sql_select_limit
a joins without SESSION_TRACK
# Who is told of changes may hear of one later that the server does not tell at all.
a: CREATE TABLE t (id INT)
a multi on
a: SET SESSION time_zone = '+09:00', SESSION identity = DEFAULT
a, b: $probe
b: INSERT INTO t VALUES (1), (2)
b leaves
a: SELECT COUNT(*) FROM t
a: $probe
a reset
a: $probe
a prepare p0: SET SESSION time_zone = '+09:00', SESSION identity = DEFAULT
a execute p0 ()
c, a: $probe

story what_a_set_that_fails_has_set_is_its_clients_alone_3
backends 2
let probe = SELECT @@sql_mode, @@time_zone, @@autocommit, @@sql_select_limit
a joins without SESSION_TRACK
# Who is told of changes may hear of one later that the server does not tell at all.
a: CREATE TABLE t (id INT)
a multi on
a: SET last_insert_id = DEFAULT, autocommit = 0
a, b: $probe
b: INSERT INTO t VALUES (1), (2)
b leaves
a: SELECT COUNT(*) FROM t
a: $probe
a reset
a: $probe
a prepare p0: SET last_insert_id = DEFAULT, autocommit = 0
a execute p0 ()
c, a: $probe

story what_a_set_that_fails_has_set_is_its_clients_alone_4
backends 2
let probe = SELECT @@sql_mode, @@time_zone, @@autocommit, @@sql_select_limit
a joins without SESSION_TRACK
# Who is told of changes may hear of one later that the server does not tell at all.
a: CREATE TABLE t (id INT)
a multi on
a: SET sql_select_limit = 1, max_allowed_packet = DEFAULT
a, b: $probe
b: INSERT INTO t VALUES (1), (2)
b leaves
a: SELECT COUNT(*) FROM t
a: $probe
a reset
a: $probe
a prepare p0: SET sql_select_limit = 1, max_allowed_packet = DEFAULT
a execute p0 ()
c, a: $probe

story what_a_set_that_fails_has_set_is_its_clients_alone_5
backends 2
let probe = SELECT @@sql_mode, @@time_zone, @@autocommit, @@sql_select_limit
a joins without SESSION_TRACK
# Who is told of changes may hear of one later that the server does not tell at all.
a: CREATE TABLE t (id INT)
a multi on
a: SET sql_select_limit = 1, PASSWORD FOR nobody = PASSWORD('x')
a, b: $probe
b: INSERT INTO t VALUES (1), (2)
b leaves
a: SELECT COUNT(*) FROM t
a: $probe
a reset
a: $probe
a prepare p0: SET sql_select_limit = 1, PASSWORD FOR nobody = PASSWORD('x')
a execute p0 ()
c, a: $probe

story what_a_set_that_fails_has_set_is_its_clients_alone_6
backends 2
let probe = SELECT @@sql_mode, @@time_zone, @@autocommit, @@sql_select_limit
a joins without SESSION_TRACK
# Who is told of changes may hear of one later that the server does not tell at all.
a: CREATE TABLE t (id INT)
a multi on
a: SELECT 1; SET autocommit = 0, identity = DEFAULT
a, b: $probe
b: INSERT INTO t VALUES (1), (2)
b leaves
a: SELECT COUNT(*) FROM t
a: $probe
a reset
a, c: $probe
a: $probe

story what_a_set_that_fails_has_set_is_its_clients_alone_7
backends 2
let probe = SELECT @@sql_mode, @@time_zone, @@autocommit, @@sql_select_limit
a joins without SESSION_TRACK
# Who is told of changes may hear of one later that the server does not tell at all.
a: CREATE TABLE t (id INT)
a multi on
a: EXECUTE IMMEDIATE 'SET autocommit = 0, last_insert_id = DEFAULT'
a, b: $probe
b: INSERT INTO t VALUES (1), (2)
b leaves
a: SELECT COUNT(*) FROM t
a: $probe
a reset
a, c: $probe
a: $probe

# A time with fractions is the same on every backend, to the microsecond.
story a_clock_that_stands_has_its_microseconds_on_any_backend
for value:
- 8640837.657897896
- 8640837.657897
- 1700000000.000001
- 1700000000.999999
- 1700000000.5
- 2147483646.123457
- 1
  a: SET timestamp = $value
  b: DO 1
  a: SELECT NOW(6), @@timestamp, @@timestamp * 1e6
  b: DO 1
  a: SELECT NOW(6), @@timestamp, @@timestamp * 1e6
end

# Numbers of every size and sign are written back as they were, as far as servers report them.
story numbers_of_every_size_follow_their_client
for name, what:
- auto_increment_offset | auto_increment_offset, HEX(@@auto_increment_offset), \
    @@auto_increment_offset
- div_precision_increment | div_precision_increment, HEX(@@div_precision_increment), \
    @@div_precision_increment
- group_concat_max_len | group_concat_max_len, HEX(@@group_concat_max_len), @@group_concat_max_len
- long_query_time | long_query_time, HEX(@@long_query_time), @@long_query_time
- max_heap_table_size | max_heap_table_size, HEX(@@max_heap_table_size), @@max_heap_table_size
- max_join_size | max_join_size, HEX(@@max_join_size), @@max_join_size
- max_sort_length | max_sort_length, HEX(@@max_sort_length), @@max_sort_length
- min_examined_row_limit | min_examined_row_limit, HEX(@@min_examined_row_limit), \
    @@min_examined_row_limit
- range_alloc_block_size | range_alloc_block_size, HEX(@@range_alloc_block_size), \
    @@range_alloc_block_size
- tmp_table_size | tmp_table_size, HEX(@@tmp_table_size), @@tmp_table_size
  for what2:
  - 0
  - -1
  - 0.5
  - 33.333333
  - 1e20
  - 4294967296
  - 9223372036854775808
  - 18446744073709551615
    a: SET SESSION $name = $what2
    b: DO 1
    a: SELECT @@$what + 0
  end
  a: SET SESSION $name = DEFAULT
end

# A literal may hold bytes that are no text of its character set; no introducer takes them.
story a_user_variable_may_hold_what_is_no_text
backends 2
let probe = SELECT HEX(@a), CHARSET(@a), HEX(@b), CHARSET(@b)
a: SET NAMES utf8mb3
for sql:
- SET @a = '😀'
- SELECT '😀' INTO @b
- SET @a = 'x', @b = 'é'
  a: $sql
  b: SET @a = 1
  a: $probe
  a: $sql
  b: SET @b = 'own'
  a: $probe
end
a: SET NAMES utf8mb4
a bytes: SET @a = \'\xff\xfe\'
b: SET @a = 2
a: $probe

# Which GTIDs are told is a variable as any other; what else a client is told stays.
story who_asks_for_gtids_is_told_nothing_else_besides
only mysql
for what:
- session_track_gtids = OWN_GTID
- @@session.session_track_gtids = 'OFF', div_precision_increment = 6
- SESSION session_track_gtids = DEFAULT
- session_track_gtids = OWN_GTID, session_track_schema = ON
  a: SET $what
  b: SET transaction_alloc_block_size = 2048
  b: SELECT @@session_track_gtids
  a: SELECT @@session_track_gtids, @@session_track_system_variables
  a: SET time_zone = '+01:00', div_precision_increment = 5
end

story user_variables_of_every_name_follow_their_clients
let probe = SELECT LEFT(@`a b`, 9), LEFT(@`a b `, 9), LEFT(@x, 9), LEFT(@`q``r`, 9), LEFT(@e, 9)
a, b multi on
a: SET @`a b` = 1, @'x' = 2, @`q``r` = 3
for sql, what:
- SET @"x" = 20 | é = 4
- SET @e = 21 | `É` = 5, @e = 6
- SELECT 22, 23 INTO @`é`, @`q``r` | `a b ` = 7
- SET NAMES latin1 | `a b` = NULL, @`é` = NULL
  b, a: $probe
  b: $sql
  b, a: $probe
  a: SET @$what
end
b, a: $probe
b, a: $probe
a: SET @`a b` = 8, @`no\such` = 9
b, a: $probe
b, a: $probe
a reset
b, a: $probe
c: SET @é = 1
c, d: SELECT LEFT(@é, 9), LEFT(@`É`, 9), LEFT(@e, 9)
d: SET @`É` = 2
c, d: SELECT LEFT(@é, 9), LEFT(@`É`, 9), LEFT(@e, 9)

story long_and_many_user_variables_follow_their_clients
let probe = SELECT LENGTH(@a), LEFT(MD5(@a), 8), LEFT(@b, 9), LEFT(@v199, 9)
a, b multi on
a: SET @a = REPEAT('x', 1000)
b, a: $probe
b: SET @a = REPEAT('z', 513)
b, a: $probe
a: SET @a = REPEAT('é', 30000), @b = 1
b, a: $probe
b: SET @b = 2
b, a: $probe
a: SET @v0 = 0, @v1 = 1, @v2 = 2, @v3 = 3, @v4 = 4, @v5 = 5, @v6 = 6, @v7 = 7, @v8 = 8, @v9 = 9, \
    @v10 = 10, @v11 = 11, @v12 = 12, @v13 = 13, @v14 = 14, @v15 = 15, @v16 = 16, @v17 = 17, @v18 = \
    18, @v19 = 19, @v20 = 20, @v21 = 21, @v22 = 22, @v23 = 23, @v24 = 24, @v25 = 25, @v26 = 26, \
    @v27 = 27, @v28 = 28, @v29 = 29, @v30 = 30, @v31 = 31, @v32 = 32, @v33 = 33, @v34 = 34, @v35 = \
    35, @v36 = 36, @v37 = 37, @v38 = 38, @v39 = 39, @v40 = 40, @v41 = 41, @v42 = 42, @v43 = 43, \
    @v44 = 44, @v45 = 45, @v46 = 46, @v47 = 47, @v48 = 48, @v49 = 49, @v50 = 50, @v51 = 51, @v52 = \
    52, @v53 = 53, @v54 = 54, @v55 = 55, @v56 = 56, @v57 = 57, @v58 = 58, @v59 = 59, @v60 = 60, \
    @v61 = 61, @v62 = 62, @v63 = 63, @v64 = 64, @v65 = 65, @v66 = 66, @v67 = 67, @v68 = 68, @v69 = \
    69, @v70 = 70, @v71 = 71, @v72 = 72, @v73 = 73, @v74 = 74, @v75 = 75, @v76 = 76, @v77 = 77, \
    @v78 = 78, @v79 = 79, @v80 = 80, @v81 = 81, @v82 = 82, @v83 = 83, @v84 = 84, @v85 = 85, @v86 = \
    86, @v87 = 87, @v88 = 88, @v89 = 89, @v90 = 90, @v91 = 91, @v92 = 92, @v93 = 93, @v94 = 94, \
    @v95 = 95, @v96 = 96, @v97 = 97, @v98 = 98, @v99 = 99, @v100 = 100, @v101 = 101, @v102 = 102, \
    @v103 = 103, @v104 = 104, @v105 = 105, @v106 = 106, @v107 = 107, @v108 = 108, @v109 = 109, \
    @v110 = 110, @v111 = 111, @v112 = 112, @v113 = 113, @v114 = 114, @v115 = 115, @v116 = 116, \
    @v117 = 117, @v118 = 118, @v119 = 119, @v120 = 120, @v121 = 121, @v122 = 122, @v123 = 123, \
    @v124 = 124, @v125 = 125, @v126 = 126, @v127 = 127, @v128 = 128, @v129 = 129, @v130 = 130, \
    @v131 = 131, @v132 = 132, @v133 = 133, @v134 = 134, @v135 = 135, @v136 = 136, @v137 = 137, \
    @v138 = 138, @v139 = 139, @v140 = 140, @v141 = 141, @v142 = 142, @v143 = 143, @v144 = 144, \
    @v145 = 145, @v146 = 146, @v147 = 147, @v148 = 148, @v149 = 149, @v150 = 150, @v151 = 151, \
    @v152 = 152, @v153 = 153, @v154 = 154, @v155 = 155, @v156 = 156, @v157 = 157, @v158 = 158, \
    @v159 = 159, @v160 = 160, @v161 = 161, @v162 = 162, @v163 = 163, @v164 = 164, @v165 = 165, \
    @v166 = 166, @v167 = 167, @v168 = 168, @v169 = 169, @v170 = 170, @v171 = 171, @v172 = 172, \
    @v173 = 173, @v174 = 174, @v175 = 175, @v176 = 176, @v177 = 177, @v178 = 178, @v179 = 179, \
    @v180 = 180, @v181 = 181, @v182 = 182, @v183 = 183, @v184 = 184, @v185 = 185, @v186 = 186, \
    @v187 = 187, @v188 = 188, @v189 = 189, @v190 = 190, @v191 = 191, @v192 = 192, @v193 = 193, \
    @v194 = 194, @v195 = 195, @v196 = 196, @v197 = 197, @v198 = 198, @v199 = 199
b, a: $probe
b, a: $probe
a: SET @a = REPEAT('y', 65536)
b, a: $probe
b, a: $probe
a: SET @a = NULL
b, a: $probe
b, a: $probe
a reset
b, a: $probe

# One backend: who sets a seed keeps it until a reset.
story random_numbers_go_on_from_where_their_client_has_put_them
a: CREATE TABLE t (id INT PRIMARY KEY) ENGINE=InnoDB
a: INSERT INTO t VALUES (1), (2)
a prepare p0: SET rand_seed2 = 7
for who, who2:
- p0 | p1
- p1 | p2
  a: SET rand_seed1 = 5, rand_seed2 = 9
  a execute $who ()
  a: SELECT @@time_zone
  a: SELECT RAND(), RAND()
  a: SELECT RAND() FROM t
  a: SELECT 1
  a: SET rand_seed1 = 77
  a: SELECT RAND()
  a reset
  a prepare $who2: SET rand_seed2 = 7
  a: SELECT ROUND(RAND(), 6) IN (0, 0.000001), 5
  b: SET SESSION rand_seed1 = 1, SESSION rand_seed2 := 2
  b: SELECT RAND()
  b: BEGIN
  b: SELECT RAND()
  b: SET rand_seed1 = 3, rand_seed2 = 4
  b: COMMIT
  b reset
  b: SELECT ROUND(RAND(), 6) IN (0, 0.000001), 7
end

story transactions_end_as_their_session_says
a: CREATE TABLE t (v INT) ENGINE=InnoDB
a: SET completion_type = CHAIN ;; BEGIN ;; INSERT INTO t VALUES (1) ;; COMMIT
a: INSERT INTO t VALUES (2) ;; ROLLBACK ;; SELECT v FROM t ;; COMMIT AND NO CHAIN
b: SELECT v, @@completion_type FROM t ;; BEGIN ;; COMMIT
a: SET completion_type = 2 ;; SELECT v FROM t
b: SELECT @@completion_type ;; COMMIT ;; SELECT 1
a: BEGIN ;; INSERT INTO t VALUES (3) ;; COMMIT
a ends
b: SELECT v, @@completion_type FROM t ORDER BY v
