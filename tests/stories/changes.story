# State that no command can restore: the client keeps its backend, and others do not see it.

story temporary_tables_are_the_clients_own
backends 2
a: CREATE TABLE t (v INT)
a: INSERT INTO t VALUES (1)
a: CREATE TEMPORARY TABLE t (v INT)
a, b: SELECT * FROM t
a: INSERT INTO t VALUES (7)
a, b: SELECT * FROM t
a: DROP TEMPORARY TABLE t
a: SELECT * FROM t
b: CREATE TEMPORARY TABLE u SELECT 1 AS one
b, a: SELECT * FROM u

story named_locks_are_the_clients_own
backends 2
a: SELECT GET_LOCK('$schema', 0)
b: SELECT GET_LOCK('$schema', 0), IS_FREE_LOCK('$schema')
b, a: SELECT RELEASE_LOCK('$schema')
b, a: SELECT GET_LOCK('$schema', 0)

story table_locks_are_the_clients_own
backends 2
a: CREATE TABLE t (v INT)
a: CREATE TABLE u (v INT)
a: LOCK TABLES t WRITE
b: SET lock_wait_timeout = 1
a: SELECT * FROM u
b: SELECT * FROM t
a: INSERT INTO t VALUES (1)
a: UNLOCK TABLES
b: SELECT * FROM t

story routines_may_change_the_session
backends 2
a: CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)
a: CREATE PROCEDURE p() BEGIN SET @x = 5; SET sql_mode = 'ANSI'; SELECT 1; SELECT 2; END
a: CREATE FUNCTION f() RETURNS INT BEGIN SET @y = 6; RETURN 3; END
a: CALL p()
a, b: SELECT @x, @@sql_mode
b: SELECT f()
b, a: SELECT @y
a: CALL p()
a: SELECT @x

story a_reset_connection_is_as_new
backends 2
a: CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY)
a: INSERT INTO t VALUES (), ()
a: SET @x = 1, sql_mode = 'ANSI', time_zone = '+04:00', NAMES latin1
a: SELECT GET_LOCK('$schema', 0)
a: BEGIN
a: INSERT INTO t VALUES ()
a reset
a, b: SELECT DATABASE(), @@sql_mode, @@time_zone, @@collation_connection, LAST_INSERT_ID(), @x
b: SELECT COUNT(*) FROM t
b: SELECT GET_LOCK('$schema', 1)
b: SELECT RELEASE_LOCK('$schema')

story a_changed_user_is_somebody_else
backends 2
let probe = SELECT CURRENT_USER(), DATABASE(), @@sql_mode, @x
a: SET @x = 1, sql_mode = 'ANSI'
a: $probe
a becomes schema 'shop' user other
a: $probe
a becomes schema '' user other
a: $probe
a becomes
a: $probe

story a_client_that_leaves_takes_everything_with_it
a: CREATE TABLE t (v INT) ENGINE=InnoDB
a: SET @x = 1, sql_mode = 'ANSI'
a: CREATE TEMPORARY TABLE temporary (v INT)
a: BEGIN
a: INSERT INTO t VALUES (1)
a reset
b: SET innodb_lock_wait_timeout = 20
b: UPDATE t SET v = 2
b: SELECT @x, @@sql_mode
b: SELECT * FROM temporary

story user_variables_are_the_clients_own
backends 2
a: SET @x = 1, @y := 'text'
a, b: SELECT @x, @y
b: SELECT 5 INTO @x
b, a: SELECT @x
a: SELECT @x := @x + 1
a, b: SELECT @x

# A client that has set NULL itself has that NULL, on MySQL unlike one that has set nothing.
story a_variable_set_to_null_stays_as_it_was_set
only mysql
a: SET @x = NULL
a: SET @y = 1, @y = NULL
b: SET @x = 'text', @y = 'text'
a: SELECT @x, IFNULL(@x, 'a'), @y, IFNULL(@y, 5)

# Each keeps its backend; the stranger's is the third.
story text_prepared_statements_are_the_clients_own
backends 3
a: PREPARE p FROM 'SELECT 1 + ?'
a is pinned text_prepare
b: PREPARE p FROM 'SELECT 100'
a: EXECUTE p USING 4
b: EXECUTE p
a: DEALLOCATE PREPARE p
a: EXECUTE p USING 4
b: EXECUTE p

story found_rows_is_a_matter_of_the_login
a joins with FOUND_ROWS
b: CREATE TABLE t (v INT)
b: INSERT INTO t VALUES (1), (1)
b, a: UPDATE t SET v = 1
b, a: UPDATE t SET v = 1

# Two clients on one backend: every type comes back as the type that it was, on both protocols.
story user_variables_keep_their_types_on_a_shared_backend
let probe = SELECT @v, @v IS NULL, HEX(@v), COLLATION(@v), COERCIBILITY(@v), @v + 1, CONCAT(@v, 'x')
for what:
- 5
- -5
- 18446744073709551615
- CAST(5 AS UNSIGNED)
- 1.50
- -0.001
- CAST(7 AS DECIMAL(10,0))
- 1e0/3
- -1.5e300
- 'text'
- ''
- _latin1 x'E9'
- _utf8mb4 'x' COLLATE utf8mb4_bin
- x'00FF41'
  a: SET @v = 'another type', @other = 1
  b: SET @v = 1
  a: SET @V = $what
  b, a: $probe
  b: SELECT 1
  a: SELECT @v IS NULL, @other
end
a: SET @v = 'another type', @other = 1
b: SET @v = 1
# The present moment differs from telling to telling.
a: SET @V = NOW()
b: $probe
for value:
- NULL
- 9223372036854775807
  b: SELECT 1
  a: SELECT @v IS NULL, @other
  a: SET @v = 'another type', @other = 1
  b: SET @v = 1
  a: SET @V = $value
  b, a: $probe
end
b: SELECT 1
a: SELECT @v IS NULL, @other

story user_variables_are_set_in_every_way_without_a_pin
backends 2
a: CREATE TABLE t (id INT PRIMARY KEY, v INT) ENGINE=InnoDB
a: INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)
a: SET @x = 1, @y = @x + 1
b: SET @x = 'b'
a, b: SELECT @x, @y
a: SELECT v INTO @x FROM t WHERE id = 2
b: SELECT MAX(v), 7 FROM t INTO @x, @y
a, b: SELECT @x, @y
a: SELECT @x := @x + 1
b: SELECT id, @x := CONCAT(@x, id) FROM t
a, b: SELECT @x, @y
a: SELECT 1 INTO @x FROM t WHERE 0
b: SELECT v INTO @x FROM t
a, b: SELECT @x, @y
a: SET @x = (SELECT SUM(v) FROM t)
b: UPDATE t SET v = (@x := 5) WHERE id = 3
a, b: SELECT @x, @y
a: SET @x = 1, no_such_variable = 2
b: SET time_zone = '+01:00', @x = 3
a, b: SELECT @x, @y
a: BEGIN
b: SET @x = 'outside'
a, b: SELECT @x, @y
a: SET @x = 'inside'
b: SET @x = 2
a, b: SELECT @x, @y
a: ROLLBACK
b: SELECT @x
a, b: SELECT @x, @y
# Too long to be carried: it stays where it is.
a: SET @x = REPEAT('x', 2000)
b: SET @x = 1
a: SELECT @x
a reset
b: SELECT @x
a: SELECT @x IS NULL, @y IS NULL
