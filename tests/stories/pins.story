# Pins that end: a client keeps its backend as long as it has something there, and no longer.
#
# Every story runs on one backend fewer than it would need if a pin lasted for good: with one
# backend, another client's statement comes through only when the first one's pin has ended, and
# what it then sees shows that nothing was left there.

story a_session_is_the_same_after_a_pin
a: CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)
a: CREATE DATABASE IF NOT EXISTS $schema_b
a: LOCK TABLES t WRITE
a: INSERT INTO t (v) VALUES (5), (6)
a: SET sql_mode = 'ANSI_QUOTES', time_zone = '+05:00'
a: SET @x = 7
a: SET NAMES latin1
a: USE $schema_b
a: UNLOCK TABLES
b: SELECT @x, @@sql_mode, DATABASE()
b: SET @x = 1
a: SELECT @x, @@sql_mode, @@time_zone, DATABASE(), LAST_INSERT_ID()
a: SELECT @@character_set_client, @@collation_connection
a: DROP DATABASE $schema_b

story a_temporary_table_shadows_for_its_client_alone
backends 2
a: CREATE TABLE t (v INT)
a: INSERT INTO t VALUES (1)
a, b prepare p0: SELECT * FROM t
b execute p0 ()
a: CREATE TEMPORARY TABLE t (w VARCHAR(5), x INT)
a execute p0 ()
a: INSERT INTO t VALUES ('temp', 2)
a, b execute p0 ()
a: DROP TEMPORARY TABLE t
b, a execute p0 ()
b, a execute p0 ()
# The one that is renamed is kept, and is still there.
a: CREATE TEMPORARY TABLE t (y INT)
a: ALTER TABLE t RENAME TO u
a: DROP TABLE t
a, b: SELECT * FROM u
b: SELECT * FROM t

# What a session knows of a sequence, it knows by its own NEXTVAL() alone.
story sequences_pin_by_their_next_values_only
only mariadb
a: CREATE SEQUENCE s
a: SELECT SETVAL(s, 50)
a: SELECT LASTVAL(s)
b: SELECT PREVIOUS VALUE FOR s
b: DO SETVAL(s, 60)
a: SELECT LASTVAL(s), SETVAL(s, 40)
a: SELECT SETVAL(s, 50)
a: SELECT LASTVAL(s)
b: SELECT PREVIOUS VALUE FOR s
b: DO SETVAL(s, 60)
a: SELECT LASTVAL(s), SETVAL(s, 40)
b: SELECT NEXTVAL(s)
b: SELECT LASTVAL(s)
b reset
a, b: SELECT LASTVAL(s)

# A name that is none, one that is too long, and a lock that somebody else has.
story locks_that_were_not_taken_pin_nobody
backends 2
a: SELECT GET_LOCK('$schema', 0) => 1
let long = xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
for lock:
- GET_LOCK(NULL, 0)
- GET_LOCK('', 0)
- GET_LOCK('$schema', 0)
- GET_LOCK('$long$long$long', 0)
  b: SELECT $lock
  c: SELECT 'a place'
  b: DO $lock
  c: SELECT 'a place'
end
# MariaDB takes one of 65 letters, which MySQL does not.
b: SELECT GET_LOCK('$long', 0) ;; SELECT IS_USED_LOCK('$long') IS NOT NULL ;; DO RELEASE_LOCK('$long')
c: SELECT 'a place'

story a_text_that_has_no_end_pins_nobody
for sql:
- SELECT 'it's Tuesday
- SELECT "x
- SELECT `x
- SELECT 1 /* x
- SHOW PROFILES
  a: $sql
  b: SELECT 'a place'
end
a: SELECT 'it's Tuesday => error 1064

# A space makes a built-in function a stored one, on both servers; where there is none of that name
# nothing has run.
story a_routine_that_does_not_exist_pins_nobody
for sql, code:
- SELECT MAX (1) | 1630
- SELECT no_such_function(1) | 1305
- CALL shop.no_such_procedure(ABS(1)) | 1305
- SELECT COUNT (*) | 1064
  a: $sql => error $code
  b: SELECT 'a place'
end
a: SET sql_mode = 'IGNORE_SPACE' ;; SELECT MAX (1)
b: SELECT 'a place'

# SET STATEMENT gives a variable back behind its answer. The server reports that with a later one,
# to whoever runs the next statement there, and to a client whose next statement is there already
# when the pool asks for it.
story what_set_statement_gives_back_pins_nobody
only mariadb
for less:
- LONG_PASSWORD
- DEPRECATE_EOF
  a, b joins without $less
  for next:
  - SELECT 1 / 3
  - SET @x = 1 / 3
  - SET lock_wait_timeout = 77
    together
    a: SET STATEMENT div_precision_increment = 9 FOR SELECT 1 / 3
    a: $next
    end
    b, a: START TRANSACTION ;; COMMIT ;; SELECT 1 / 3 => 0.3333
  end
end

# Texts that are long to read and do nothing: the one backend is free for the other client behind
# each.
story what_is_read_as_the_server_reads_it_pins_nobody
a joins with MULTI_STATEMENTS
for text:
- bytes: SELECT /*! 1 /* x */ , 2 */
- bytes: /*! /* x */ SELECT 1, 2 */
- bytes: SELECT 1 /*!99999 , 2 /* x */ , 3 */ , 4
- bytes: SELECT /*!80000 1, */ /*!90000 2, */ 3
- bytes: SELECT 1 /*M!100300 , 2 */
- bytes: SELECT /*! 1 # x */ , 2 \n */, 3
- bytes: SELECT 'kill'; SELECT 'a kill b'
- bytes: SELECT 1; SELECT 'kill; SELECT 2
- bytes: SELECT 1; SELECT /* x; SELECT f(2)
- bytes: DO 1; SELECT 1 /*! , 2
- bytes: SELECT 1; SELECT @a := 1, `x
- bytes: SELECT 'x', 1\x00, 2
- bytes: SELECT 1; PREPARE s FROM 'SELECT
- bytes: KILL 'x
  a $text
  b: SELECT 'a place'
end
a: PREPARE s FROM 'SELECT "kill"' ;; EXECUTE s => kill
a: /*! SELECT CONNECTION_ID() */
# A KILL is still found wherever it is one.
a: SELECT 1; KILL 4294967295 => pool: error 1235
a: DO 1; /*! KILL QUERY */ 4294967295 => pool: error 1235
