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
