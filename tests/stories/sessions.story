# Two clients with different session states share one backend, and neither can tell.

story each_client_keeps_its_schema
a: CREATE TABLE here (x INT)
a: INSERT INTO here VALUES (1)
b, c: SELECT DATABASE()
b: USE shop
c: USE mysql
b, c: SELECT DATABASE()
b: USE $schema
c: USE nowhere
b, c: SELECT DATABASE()
c, b: SELECT DATABASE()
d joins no_schema
d, a: SELECT DATABASE()
d: SELECT DATABASE()
d, a: SELECT * FROM here

story a_dropped_schema_is_no_longer_the_clients
a: CREATE OR REPLACE DATABASE $schema_too
a: USE $schema_too
b: SELECT DATABASE()
a: DROP DATABASE $schema_too
a, b: SELECT DATABASE()
a: SELECT 1 FROM t
a: USE $schema
a: SELECT DATABASE()

story each_client_keeps_its_character_sets
let probe = SELECT @@character_set_client, @@character_set_connection, @@character_set_results, \
    @@collation_connection, HEX('é')
a, b: $probe
a: SET NAMES latin1
b: SET NAMES utf8mb4 COLLATE utf8mb4_bin
a, b: $probe
a: SET NAMES utf8mb4 COLLATE utf8mb4_unicode_ci
b: SET collation_connection = utf8mb4_general_ci
for who, who2, sql:
- a | b | SELECT @@character_set_client, @@character_set_connection, @@character_set_results, \
    @@collation_connection, HEX('é')
- a | a | SET character_set_results = NULL
- b | b | SET CHARACTER SET latin1
- a | a | SET NAMES DEFAULT
  $who: $probe
  $who2: $sql
  $who2: $probe
end

story each_client_keeps_the_collation_it_logged_in_with
for who, what:
- a | no_schema
- b | no_schema collation 8
- c | no_schema collation 33
- d | no_schema collation 46
- e | no_schema collation 63
- f | no_schema collation 224
- g | no_schema
  $who joins $what
  $who, a: SELECT @@collation_connection, @@character_set_results
end
g, f, e, d, c, b, a: SELECT @@collation_connection, @@character_set_results

story each_client_keeps_its_variables
a, b: SELECT @@sql_mode
a: SET sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'
b: SET SESSION sql_mode = ''
a, b: SELECT @@sql_mode
b, a: SELECT @@sql_mode
c, d: SELECT @@time_zone
c: SET time_zone = '+05:00'
d: SET SESSION time_zone = '-03:00'
c, d: SELECT @@time_zone
d, c: SELECT @@time_zone
e, f: SELECT @@group_concat_max_len
e: SET group_concat_max_len = 5
f: SET SESSION group_concat_max_len = 4096
e, f: SELECT @@group_concat_max_len
f, e: SELECT @@group_concat_max_len
g, h: SELECT @@max_join_size
g: SET max_join_size = 1000
h: SET SESSION max_join_size = DEFAULT
g, h: SELECT @@max_join_size
h, g: SELECT @@max_join_size
i, j: SELECT @@sql_select_limit
i: SET sql_select_limit = 1
j: SET SESSION sql_select_limit = DEFAULT
i, j: SELECT @@sql_select_limit
j, i: SELECT @@sql_select_limit
k, l: SELECT @@foreign_key_checks
k: SET foreign_key_checks = 0
l: SET SESSION foreign_key_checks = 1
k, l: SELECT @@foreign_key_checks
l, k: SELECT @@foreign_key_checks
m, n: SELECT @@lc_time_names
m: SET lc_time_names = 'de_DE'
n: SET SESSION lc_time_names = 'fr_FR'
m, n: SELECT @@lc_time_names
n, m: SELECT @@lc_time_names
o, p: SELECT @@innodb_lock_wait_timeout
o: SET innodb_lock_wait_timeout = 3
p: SET SESSION innodb_lock_wait_timeout = 7
o, p: SELECT @@innodb_lock_wait_timeout
p, o: SELECT @@innodb_lock_wait_timeout
q, r: SELECT @@div_precision_increment
q: SET div_precision_increment = 9
r: SET SESSION div_precision_increment = 0
q, r: SELECT @@div_precision_increment
r, q: SELECT @@div_precision_increment
s, t: SELECT @@optimizer_switch
s: SET optimizer_switch = 'index_merge=off'
t: SET SESSION optimizer_switch = DEFAULT
s, t: SELECT @@optimizer_switch
t, s: SELECT @@optimizer_switch
u, v: SELECT @@sql_safe_updates
u: SET sql_safe_updates = 1
v: SET SESSION sql_safe_updates = 0
u, v: SELECT @@sql_safe_updates
v, u: SELECT @@sql_safe_updates
w, x: SELECT @@max_statement_time
w: SET max_statement_time = 2.5
x: SET SESSION max_statement_time = 0
w, x: SELECT @@max_statement_time
x, w: SELECT @@max_statement_time
y, z: SELECT @@wait_timeout
y: SET wait_timeout = 1000
z: SET SESSION wait_timeout = 2000
y, z: SELECT @@wait_timeout
z, y: SELECT @@wait_timeout
c26, c27: SELECT @@default_storage_engine
c26: SET default_storage_engine = 'Aria'
c27: SET SESSION default_storage_engine = DEFAULT
c26, c27: SELECT @@default_storage_engine
c27, c26: SELECT @@default_storage_engine
c28, c29: SELECT @@auto_increment_increment
c28: SET auto_increment_increment = 7
c29: SET SESSION auto_increment_increment = 3
c28, c29: SELECT @@auto_increment_increment
c29, c28: SELECT @@auto_increment_increment

story variables_do_what_they_say_on_a_shared_backend
a: CREATE TABLE words (w VARCHAR(20))
a: INSERT INTO words VALUES ('one'), ('two'), ('three')
a: SET group_concat_max_len = 5, time_zone = '+01:00', sql_mode = 'ANSI_QUOTES'
a, b: SELECT GROUP_CONCAT(w ORDER BY w) FROM words
a, b: SELECT FROM_UNIXTIME(0)
a, b: SELECT "w" FROM words ORDER BY w
a, b: SELECT 'a\n', 'it''s'
b: SET sql_select_limit = 1
a, b: SELECT w FROM words
b: SET sql_mode = 'NO_BACKSLASH_ESCAPES'
a: SELECT 'a\n'
b: SELECT 'a\n', '\'
a: SELECT 'a\n'

story wrong_settings_fail_and_change_nothing
a, b: SELECT @@sql_mode, @@time_zone
a: SET sql_mode = 'NO_SUCH_MODE'
b: SET time_zone = '+02:00'
a, b: SELECT @@sql_mode, @@time_zone
a: SET no_such_variable = 1
b: SET version = 'x'
a, b: SELECT @@sql_mode, @@time_zone
a: SET time_zone = 'x'
b: SET GLOBAL no_such = 1
a, b: SELECT @@sql_mode, @@time_zone
b, a: SELECT @@sql_mode, @@time_zone

story each_client_keeps_its_isolation_level_and_autocommit
let probe = SELECT @@tx_isolation, @@autocommit, @@tx_read_only
a, b: $probe
a: SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE
b: SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED
a, b: $probe
a: SET tx_isolation = 'READ-COMMITTED'
b: SET autocommit = 1
a, b: $probe
a: SET SESSION TRANSACTION READ ONLY
b: SET SESSION TRANSACTION READ WRITE
a, b: $probe
b, a: $probe

story an_isolation_level_for_one_transaction_lasts_for_one
backends 2
a: CREATE TABLE t (id INT PRIMARY KEY) ENGINE=InnoDB
a: INSERT INTO t VALUES (1)
a: SET TRANSACTION READ ONLY
b: INSERT INTO t VALUES (2)
a: BEGIN
a: INSERT INTO t VALUES (3)
a: COMMIT
a: BEGIN
a: INSERT INTO t VALUES (4)
a: COMMIT
b: SELECT * FROM t ORDER BY id

story each_client_keeps_its_last_insert_id
let probe = SELECT LAST_INSERT_ID(), @@last_insert_id, @@identity
a: CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)
a: CREATE TABLE u (id INT AUTO_INCREMENT PRIMARY KEY, v INT) AUTO_INCREMENT = 1000
a: SELECT LAST_INSERT_ID()
a: INSERT INTO t (v) VALUES (1), (2), (3)
b: SELECT LAST_INSERT_ID()
b: INSERT INTO u (v) VALUES (1)
a, b: $probe
a, b: $probe
b, a: $probe
a: INSERT INTO u (id, v) VALUES (7, LAST_INSERT_ID())
b: SELECT LAST_INSERT_ID(), id FROM u ORDER BY id
a: SELECT LAST_INSERT_ID(41)
b: UPDATE t SET v = LAST_INSERT_ID(v + 100) WHERE id = 2
a, b: SELECT LAST_INSERT_ID()
a: INSERT INTO t (v) SELECT v FROM u
b: DO 1
a: SELECT LAST_INSERT_ID()
b: INSERT INTO missing VALUES (1)
a: DO 1
b: SELECT LAST_INSERT_ID()

# What the pool answers itself has the flags of the session, not those of the statement before.
story flags_of_one_statement_end_with_it
backends 2
a: CREATE TABLE t (id INT)
a: INSERT INTO t VALUES (1)
a: SET @x = 1, sql_mode = 'ANSI_QUOTES'
a: SELECT id FROM t
a multi on
a ping
b: SET sql_mode = 'ANSI,NO_BACKSLASH_ESCAPES'
a: SELECT 1
b ping
b multi on

story what_set_statement_sets_ends_with_the_statement
backends 2
a: SET STATEMENT sql_mode = 'ANSI_QUOTES' FOR SELECT @@sql_mode
b: SET @keeps = 1
a, b: SELECT "text", @@sql_mode

# Of `autocommit` MariaDB was found not to report it.
story a_variable_set_without_its_scope_is_the_clients_own
backends 2
a: CREATE TABLE t (x INT)
a: SET @@autocommit = OFF
b: INSERT INTO t VALUES (1)
a, b: SELECT @@autocommit
a: SET @@div_precision_increment = 7
b: SELECT 1 / 3
b: SELECT * FROM t

# What the pool asks for itself has an answer in every session.
story a_session_that_selects_no_rows_is_restored
backends 2
a: CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY)
a: SET sql_select_limit = 0
a: INSERT INTO t VALUES ()
b: SELECT 1
b: SELECT @@sql_select_limit
a: SET NAMES latin1
a: SET sql_select_limit = DEFAULT
a: SELECT LAST_INSERT_ID()
a: SELECT @@character_set_client

story each_client_keeps_its_warnings
a: SELECT 1/0
b: SELECT CAST('x' AS SIGNED)
a, b: SHOW WARNINGS
a: SHOW WARNINGS
b: SELECT COUNT(*) FROM mysql.proc WHERE 0
a: SELECT * FROM missing
b: SELECT 2
a, b: SHOW WARNINGS
a: DROP TABLE IF EXISTS no_such, no_such_either
b: SELECT 3
a: SHOW WARNINGS

story each_client_keeps_its_row_counts
a: CREATE TABLE t (v INT)
a: INSERT INTO t VALUES (1), (2), (3)
b: SELECT * FROM t WHERE v > 1
a: SELECT ROW_COUNT()
b: SELECT FOUND_ROWS()
a: UPDATE t SET v = v + 1
b: DELETE FROM t WHERE v = 4
a, b: SELECT ROW_COUNT()
a: SELECT ROW_COUNT()
b: SELECT FOUND_ROWS()

story rows_are_counted_beyond_a_limit
backends 2
a: CREATE TABLE t (v INT)
a: INSERT INTO t VALUES (1), (2), (3)
a: SELECT SQL_CALC_FOUND_ROWS v FROM t LIMIT 1
b: SELECT 1
a, b: SELECT FOUND_ROWS()

story user_variables_that_are_set_while_others_are_read_back_are_kept
backends 2
for who:
- a
- b
- a
  $who writes
  : SET @a = 1, @b = 'x'
  : SELECT 2 INTO @c
  : SET @a = 3
  : SELECT 4 INTO @b
  : SELECT @a, @b, @c
  end
  b: SELECT @a, @b, @c
end

# A statement that sets no user variable, but something else that is read back, goes out behind the
# question for those that the statement before has set.
story user_variables_are_kept_when_something_else_is_set_behind_them
for clock:
- 1000000000
- DEFAULT
  a writes
  : SET @a = 'of a', @b = 1
  : SET timestamp = $clock
  end
  b: SET @a = 'of b'
  a, b: SELECT @a, @b
end
