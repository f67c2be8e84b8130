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
