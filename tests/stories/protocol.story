# Commands and forms of replies: each as the server itself has it.

story replies_come_in_the_form_that_the_client_knows
a joins without DEPRECATE_EOF
b joins without SESSION_TRACK
c joins without PLUGIN_AUTH_LENENC_DATA+SESSION_TRACK+DEPRECATE_EOF
d: CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v TEXT)
d: SELECT 1, NULL, 'text'
d: SELECT * FROM t WHERE id < 0
d: INSERT INTO t (v) VALUES ('a'), (NULL), ('')
d: SELECT v FROM t
d: UPDATE t SET v = 'b' WHERE v IS NULL
d: SELECT 1/0
d: SELECT * FROM missing
d: USE shop
d: SET NAMES latin1
d: SET autocommit = 0
d: SET autocommit = 1
d: USE $schema
d: DELETE FROM t
d:
d: /* nothing */
a: SELECT 1, NULL, 'text'
a: SELECT * FROM t WHERE id < 0
a: INSERT INTO t (v) VALUES ('a'), (NULL), ('')
a: SELECT v FROM t
a: UPDATE t SET v = 'b' WHERE v IS NULL
a: SELECT 1/0
a: SELECT * FROM missing
a: USE shop
a: SET NAMES latin1
a: SET autocommit = 0
a: SET autocommit = 1
a: USE $schema
a: DELETE FROM t
a:
a: /* nothing */
b: SELECT 1, NULL, 'text'
b: SELECT * FROM t WHERE id < 0
b: INSERT INTO t (v) VALUES ('a'), (NULL), ('')
b: SELECT v FROM t
b: UPDATE t SET v = 'b' WHERE v IS NULL
b: SELECT 1/0
b: SELECT * FROM missing
b: USE shop
b: SET NAMES latin1
b: SET autocommit = 0
b: SET autocommit = 1
b: USE $schema
b: DELETE FROM t
b:
b: /* nothing */
c: SELECT 1, NULL, 'text'
c: SELECT * FROM t WHERE id < 0
c: INSERT INTO t (v) VALUES ('a'), (NULL), ('')
c: SELECT v FROM t
c: UPDATE t SET v = 'b' WHERE v IS NULL
c: SELECT 1/0
c: SELECT * FROM missing
c: USE shop
c: SET NAMES latin1
c: SET autocommit = 0
c: SET autocommit = 1
c: USE $schema
c: DELETE FROM t
c:
c: /* nothing */

story every_small_command_is_answered_as_by_the_server
backends 2
let probe = CREATE OR REPLACE TABLE t (id INT DEFAULT 5, v TEXT)
a joins without DEPRECATE_EOF
b joins without SESSION_TRACK
c joins without PLUGIN_AUTH_LENENC_DATA+SESSION_TRACK+DEPRECATE_EOF
d ping
d init_db: shop
d: SELECT DATABASE()
d init_db: nowhere
d init_db: $schema
d command 0x0d:
d: $probe
d command 0x04: t\x00
d command 0x04: missing\x00
d reset
d, a ping
a init_db: shop
a: SELECT DATABASE()
a init_db: nowhere
a init_db: $schema
a command 0x0d:
a: $probe
a command 0x04: t\x00
a command 0x04: missing\x00
a reset
a, b ping
b init_db: shop
b: SELECT DATABASE()
b init_db: nowhere
b init_db: $schema
b command 0x0d:
b: $probe
b command 0x04: t\x00
b command 0x04: missing\x00
b reset
b, c ping
c init_db: shop
c: SELECT DATABASE()
c init_db: nowhere
c init_db: $schema
c command 0x0d:
c: $probe
c command 0x04: t\x00
c command 0x04: missing\x00
c reset
c ping

story multi_statements_are_an_option_that_can_be_switched
let probe = SELECT 1; SET time_zone = '+02:00'; SELECT 2 UNION SELECT 3; DO 1
a joins with MULTI_STATEMENTS
b joins with MULTI_STATEMENTS without DEPRECATE_EOF
c: $probe
c: SELECT @@time_zone
a: $probe
a: SELECT @@time_zone
b: $probe
b: SELECT @@time_zone
c: $probe
c: SELECT @@time_zone
a: $probe
a: SELECT @@time_zone
c multi on
a multi off
c, a, b: $probe
c, a: $probe
b: SELECT 1; SELECT * FROM missing; SELECT 3
b: SELECT 4

# MySQL refuses what is too short; MariaDB takes what is missing for zero.
story an_option_of_any_length_is_answered_as_by_the_server
for what:
- x00
- x01
- x00\x00\x07
- x02
- x01\x00\x00
- x02\x00
- x00\x01
  a command 0x1b: \$what
  a: SELECT 1; SELECT 2
  a ping
end

story prepared_statements_of_two_clients_do_not_meet
backends 2
a prepare p0: SELECT 'one', ?
b prepare p0: SELECT 'two', ?
a execute p0 ('x')
b execute p0 ('y')
a execute p0 ('x')
b execute p0 ('y')

# One backend for two clients: whoever is pinned makes the other wait in vain.
story what_a_client_tracks_is_its_own_affair
let probe = SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE
let probe2 = SELECT @@session_track_system_variables IS NULL AS s
let probe3 = SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ
a: $probe
a: SET sql_mode = 'ANSI', time_zone = '+01:00'
a: USE shop
a: SELECT @@sql_mode, @@time_zone, DATABASE()
a: $probe2
a: $probe3
a: USE $schema
if mariadb
  a: set autocommit=1,session_track_system_variables = \
      CONCAT(@@global.session_track_system_variables,',tx_isolation'),sql_mode=CONCAT(@@sql_mode,',STRICT_TRANS_TABLES'),NAMES utf8mb4
end
if mysql
  a: set autocommit=1,session_track_system_variables = \
      CONCAT(@@global.session_track_system_variables,',transaction_isolation'),sql_mode=CONCAT(@@sql_mode,',STRICT_TRANS_TABLES'),NAMES utf8mb4
end
for what:
- session_track_system_variables = 'sql_mode', session_track_schema = OFF
- time_zone = '+02:00', session_track_system_variables = 'time_zone', sql_mode = ''
- session_track_system_variables = 'time_zone', time_zone = '+03:00'
- session_track_system_variables = 'no_such_variable', sql_mode = 'ANSI'
- @@session.session_track_system_variables = ''
- session_track_schema = 1, time_zone = 'No/Such'
- session_track_schema = DEFAULT
  a: SELECT @@session_track_system_variables AS v, @@session_track_schema AS s
  b: $probe
  b: SET sql_mode = 'ANSI', time_zone = '+01:00'
  b: USE shop
  b: SELECT @@sql_mode, @@time_zone, DATABASE()
  b: $probe2
  b: $probe3
  b: USE $schema
  a: $probe
  a: SET sql_mode = 'ANSI', time_zone = '+01:00'
  a: USE shop
  a: SELECT @@sql_mode, @@time_zone, DATABASE()
  a: $probe2
  a: $probe3
  a: USE $schema
  a: SET $what
end
a: SELECT @@session_track_system_variables AS v, @@session_track_schema AS s
b: $probe
b: SET sql_mode = 'ANSI', time_zone = '+01:00'
b: USE shop
b: SELECT @@sql_mode, @@time_zone, DATABASE()
b: $probe2
b: $probe3
b: USE $schema
a: $probe
a: SET sql_mode = 'ANSI', time_zone = '+01:00'
a: USE shop
a: SELECT @@sql_mode, @@time_zone, DATABASE()
a: $probe2
a: $probe3
a: USE $schema
a reset
a: $probe
a: SET sql_mode = 'ANSI', time_zone = '+01:00'
a: USE shop
a: SELECT @@sql_mode, @@time_zone, DATABASE()
a: $probe2
a: $probe3
a: USE $schema

# The pool answers what its own connections have set otherwise: in the server's columns.
story what_a_client_tracks_is_shown_in_the_servers_columns
backends 2
a joins with MULTI_STATEMENTS
b joins with MULTI_STATEMENTS
a: CREATE FUNCTION unknown_to_it() RETURNS INT DETERMINISTIC RETURN GET_LOCK('t', 0)
a: CREATE FUNCTION five() RETURNS INT DETERMINISTIC RETURN 5
for what:
- utf8mb4
- gbk
- latin1
  a: SET NAMES $what
  for what2:
  - session_track_schema = OFF
  - session_track_schema = ON
  - session_track_system_variables = 'autocommit,time_zone'
  - session_track_system_variables = ''
    a: SET $what2
    a: SELECT @@session_track_schema, @@session.session_track_state_change AS s, \
        @@session_track_schema + 1 AS t, @@session_track_system_variables, \
        CONCAT(@@local.session_track_system_variables, 'x') AS v, @@session_track_transaction_info
    # In each statement of a text, also beside code that nobody knows.
    a: DO 1; SELECT @@session_track_transaction_info
    a: SELECT unknown_to_it(); SELECT @@session_track_schema
    b: SELECT five(); SELECT @@session_track_transaction_info => 5 | OFF
  end
end

# COM_STATISTICS leaves what the statement before it has counted, whoever has used its backend.
story statistics_leaves_a_count_to_its_client
a joins with MULTI_STATEMENTS
a: CREATE TABLE t (id INT)
for sql, sql2:
- INSERT INTO t VALUES (1), (2) | INSERT INTO t VALUES (1), (2), (3)
- INSERT INTO t VALUES (1), (2) | DO 1
- INSERT INTO t VALUES (1), (2) | SELECT 1
- SELECT 1 | INSERT INTO t VALUES (1), (2), (3)
- SELECT 1 | DO 1
- SELECT 1 | SELECT 1
- DO 1 | INSERT INTO t VALUES (1), (2), (3)
- DO 1 | DO 1
- DO 1 | SELECT 1
  a: $sql
  b: $sql2
  a statistics
  a: SELECT ROW_COUNT()
  a: $sql
  a statistics
  b: $sql2
  a: SELECT ROW_COUNT()
  a: $sql
  b: $sql2
  a statistics
  a: SELECT ROW_COUNT() AS n
  a: $sql
  a statistics
  b: $sql2
  a: SELECT ROW_COUNT() AS n
end

story a_procedure_returns_all_its_result_sets
backends 4
let probe = CREATE OR REPLACE PROCEDURE p(n INT) BEGIN SELECT n; SELECT n + 1, 'two'; END
let probe2 = CREATE OR REPLACE PROCEDURE bad() BEGIN SELECT 1; SELECT * FROM missing; END
a joins without DEPRECATE_EOF
b joins without SESSION_TRACK
c joins without PLUGIN_AUTH_LENENC_DATA+SESSION_TRACK+DEPRECATE_EOF
d: $probe
d: $probe2
d: CALL p(5)
d: CALL bad()
d: CALL missing()
d: SELECT 1
a: $probe
a: $probe2
a: CALL p(5)
a: CALL bad()
a: CALL missing()
a: SELECT 1
b: $probe
b: $probe2
b: CALL p(5)
b: CALL bad()
b: CALL missing()
b: SELECT 1
c: $probe
c: $probe2
c: CALL p(5)
c: CALL bad()
c: CALL missing()
c: SELECT 1

# What the two ask for is reported to each, and to nobody else.
story a_client_that_tracks_less_or_more_harms_nobody
only mariadb
backends 2
a: SET session_track_system_variables = '', session_track_schema = OFF
for who, other:
- a | b
- b | a
  $who: SET sql_mode = 'ANSI', time_zone = '+01:00' => pool: ok
  $who: USE shop => pool: ok
  $who, $other: SELECT @@sql_mode, @@time_zone, DATABASE()
end

# A command that no server has leaves its error among the conditions: alone on MariaDB, behind
# those of the statement before on MySQL. So does COM_SET_OPTION with an unknown option.
story an_unknown_command_is_an_error_that_can_be_asked_for
a: CREATE TABLE t (id INT) ;; SELECT 1
for before:
- DO 1
- SELECT CAST('x' AS SIGNED), CAST('y' AS SIGNED)
- SELECT * FROM missing
- INSERT INTO t VALUES (1), (2)
  for asks:
  - SHOW WARNINGS
  - SELECT @@warning_count, @@error_count
  - SELECT ROW_COUNT()
    for command:
    - 0x50:
    - 0x1b: \x02\x00
      let other = SELECT CAST('other' AS SIGNED) FROM t
      for first, then:
      - watch nothing | watch nothing
      - b: $other | watch nothing
      - b: $other | b: $other
        a: $before
        $first
        a command $command
        $then
        a ping
        a: $asks => or error 1235
      end
    end
  end
end
for before:
- DO 1
- SELECT CAST('x' AS SIGNED)
  # Too short for MySQL.
  a: $before
  a command 0x1b: \x00
  a ping
  a: SHOW WARNINGS => or error 1235
end

# A CALL in the binary protocol: its result sets, then one of its OUT parameters. Without
# DEPRECATE_EOF, MySQL itself leaves out at the end of the rows that more follows.
story out_parameters_come_back_in_the_binary_protocol
backends 4
a joins without SESSION_TRACK
if mariadb
  b joins without SESSION_TRACK+DEPRECATE_EOF
end
if mysql
  b joins without SESSION_TRACK
end
a: CREATE TABLE t (v VARCHAR(20))
a: CREATE PROCEDURE p(IN a INT, OUT b VARCHAR(20), INOUT c INT) BEGIN SELECT a, 'in'; \
    SET b = CONCAT('b', a); SET c = c + a; INSERT INTO t VALUES (b); END
a: CREATE PROCEDURE bad(OUT b INT) BEGIN SET b = 1; SELECT b; \
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no'; END
for who:
- a
- b
- a
  $who prepare call: CALL p(?, ?, ?)
  $who execute call ('1', NULL, '10')
  $who execute call ('2', NULL, '20')
  $who prepare bad: CALL bad(?)
  $who execute bad (NULL)
  $who execute call ('3', NULL, NULL)
  $who: SELECT COUNT(*) FROM t
  $who execute call ('4', NULL, '5') => 4, in | b4, 9 | ok
end

story a_long_parameter_comes_in_pieces
a prepare p: SELECT LENGTH(?), ?
a long p 0: abc
a long p 0: end
# The first parameter's value has been sent; its place in the execution stays empty.
a sends p 0x17: \x00\x01\x00\x00\x00\x00\x01\xfd\x00\xfd\x00\x01z
a: SELECT 'still here'
a statistics
a: SELECT 1

story several_commands_in_one_write_are_answered_in_order
for who:
- a
- b
- a
- b
  $who writes
    : SELECT 1, DATABASE()
    : SET time_zone = '+03:00'
    : SELECT * FROM missing
    ping
    init_db: shop
    : SELECT @@time_zone, DATABASE()
    : BEGIN
    : SELECT 2 UNION SELECT 3
    : COMMIT
  end
end

# The pool answers an empty text behind another one by itself. It leaves what the server's error
# leaves, whatever else the pool has answered in between, in any language and character set.
story empty_texts
backends 2
a: CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY)
for ask:
- SELECT ROW_COUNT()
- SELECT FOUND_ROWS()
- SELECT LAST_INSERT_ID()
- SELECT @@warning_count, @@error_count
- SHOW WARNINGS
- SHOW COUNT(*) ERRORS
- GET DIAGNOSTICS CONDITION 1 @c = MYSQL_ERRNO, @s = RETURNED_SQLSTATE, @m = MESSAGE_TEXT
  a: INSERT INTO t VALUES (NULL)
  a: SELECT 1 UNION SELECT 2
  a:
  finish
  a:
  a:
  a: $ask
  a:
  finish
  a ping
  a:
  a: $ask
end
a: SELECT @c, @s, @m
a:
finish
a: BEGIN
a:
a: INSERT INTO t VALUES (NULL)
a:
finish
a:
a: COMMIT
a:
finish
a: SET autocommit = 1
a:
a: SHOW WARNINGS
a:
finish
a reset
a: SHOW WARNINGS
a:
finish
a: SET lc_messages = 'de_DE'
a:
finish
a:
a: SHOW WARNINGS
a: SET lc_messages = 'en_US', character_set_results = 'ucs2'
a:
finish
a:
a: SHOW WARNINGS
a: SET NAMES utf8mb4
a: SET max_error_count = 0
a:
finish
a:
a: SHOW WARNINGS
a: SELECT @@error_count
