# Clients without CLIENT_DEPRECATE_EOF: what stands in front of the rows, and what comes later
# because an EOF packet has no room for it. Stories compare the EOF packet behind the columns too
# (`testkit::reply::Rows::begin`).

# What a function changes behind an EOF packet is the client's own, and no other's.
story a_change_behind_an_eof_packet_stays_with_its_client
# Three of the clients keep theirs from their first call on.
backends 4
let probe = SELECT @@time_zone, @@sql_select_limit, @@autocommit
a joins with LOCAL_FILES+MULTI_STATEMENTS
b joins with LOCAL_FILES+MULTI_STATEMENTS without DEPRECATE_EOF
c joins with LOCAL_FILES+MULTI_STATEMENTS without SESSION_TRACK+DEPRECATE_EOF
d joins without DEPRECATE_EOF
b: CREATE TABLE t (a INT PRIMARY KEY)
b: INSERT INTO t VALUES (1)
b: CREATE FUNCTION alters() RETURNS INT NO SQL BEGIN SET time_zone = '+02:00'; SET \
    sql_select_limit = 7; RETURN 1; END
b: SELECT alters()
c: $probe
c: SET time_zone = '+05:00'
c, d: $probe
d: SET sql_mode = ''
d, b: $probe
c: SET TRANSACTION READ ONLY
c: SELECT a FROM t
d: INSERT INTO t VALUES (2)
d: BEGIN
d: SELECT alters()
d: SET NAMES utf8mb4
d: ROLLBACK
d: $probe
c: INSERT INTO t VALUES (3)
c, d: $probe
d: SELECT 1
c prepare p0: SELECT alters(), ?
c execute p0 ('1')
d, c: $probe

# Clients of both forms on few backends: neither waits for ever for the other's.
story both_forms_share_few_backends
a joins with LOCAL_FILES+MULTI_STATEMENTS
b joins with LOCAL_FILES+MULTI_STATEMENTS without DEPRECATE_EOF
c joins with LOCAL_FILES+MULTI_STATEMENTS without SESSION_TRACK+DEPRECATE_EOF
for value:
- 0
- 1
- 2
  a: SELECT $value
  a: SET @a = 1
  a: SELECT @a
  b: SELECT $value
  b: SET @a = 1
  b: SELECT @a
  c: SELECT $value
  c: SET @a = 1
  c: SELECT @a
end

# The status of what follows a procedure's own cursor says that one is open, and rows follow.
story a_cursor_of_a_procedure_is_none_of_its_clients
backends 2
a joins with LOCAL_FILES+MULTI_STATEMENTS
b joins with LOCAL_FILES+MULTI_STATEMENTS without DEPRECATE_EOF
c joins with LOCAL_FILES+MULTI_STATEMENTS without SESSION_TRACK+DEPRECATE_EOF
a: CREATE PROCEDURE opens() BEGIN DECLARE own CURSOR FOR SELECT 'stuff'; OPEN own; CLOSE own; \
    SELECT 1 AS a, 2 AS b; SELECT 3 AS a, 4 AS b; END
a: CREATE PROCEDURE leaves_open() BEGIN DECLARE own CURSOR FOR SELECT 'stuff'; OPEN own; SELECT 1; \
    END
a prepare p0: CALL opens()
a: CALL opens()
a execute p0 ()
a execute p0 ()
a: SELECT 8
a prepare p1: CALL leaves_open()
a: CALL leaves_open()
a execute p1 ()
a execute p1 ()
a: SELECT 8
a prepare p2: SELECT 7
a: SELECT 7
a execute p2 ()
a execute p2 ()
a: SELECT 8
b prepare p0: CALL opens()
b: CALL opens()
b execute p0 ()
b execute p0 ()
b: SELECT 8
b prepare p1: CALL leaves_open()
b: CALL leaves_open()
b execute p1 ()
b execute p1 ()
b: SELECT 8
b prepare p2: SELECT 7
b: SELECT 7
b execute p2 ()
b execute p2 ()
b: SELECT 8
c prepare p0: CALL opens()
c: CALL opens()
c execute p0 ()
c execute p0 ()
c: SELECT 8
c prepare p1: CALL leaves_open()
c: CALL leaves_open()
c execute p1 ()
c execute p1 ()
c: SELECT 8
c prepare p2: SELECT 7
c: SELECT 7
c execute p2 ()
c execute p2 ()
c: SELECT 8

story flags_and_warnings_stand_in_front_of_the_rows
backends 2
let probe = SELECT b FROM t WHERE b = 1; SELECT b FROM t WHERE a = 1
let probe2 = BEGIN; SELECT b FROM t WHERE a = 1; COMMIT; SELECT 1
a joins with LOCAL_FILES+MULTI_STATEMENTS
b joins with LOCAL_FILES+MULTI_STATEMENTS without DEPRECATE_EOF
c joins with LOCAL_FILES+MULTI_STATEMENTS without SESSION_TRACK+DEPRECATE_EOF
a: CREATE TABLE t (a INT PRIMARY KEY, b INT)
a: INSERT INTO t VALUES (1, 1), (2, 2)
a: CREATE PROCEDURE twice(OUT x INT) BEGIN SELECT 1; SELECT 2; SET x = 5; END
a: SELECT 1; SELECT 2; SELECT 3
a: $probe
a: SELECT CAST('x' AS SIGNED); SHOW WARNINGS
a: SELECT b FROM t WHERE b = 'x'
a: SHOW WARNINGS
a: CALL twice(@x)
a: CALL twice(@x); SELECT @x
a: SET autocommit = 0
a: SELECT b FROM t WHERE b = 1
a: SELECT b FROM t WHERE a = 1
a: COMMIT
a: SET autocommit = 1
a: $probe2
a: SELECT 1; SELECT * FROM missing; SELECT 2
b: SELECT 1; SELECT 2; SELECT 3
b: $probe
b: SELECT CAST('x' AS SIGNED); SHOW WARNINGS
b: SELECT b FROM t WHERE b = 'x'
b: SHOW WARNINGS
b: CALL twice(@x)
b: CALL twice(@x); SELECT @x
b: SET autocommit = 0
b: SELECT b FROM t WHERE b = 1
b: SELECT b FROM t WHERE a = 1
b: COMMIT
b: SET autocommit = 1
b: $probe2
b: SELECT 1; SELECT * FROM missing; SELECT 2
c: SELECT 1; SELECT 2; SELECT 3
c: $probe
c: SELECT CAST('x' AS SIGNED); SHOW WARNINGS
c: SELECT b FROM t WHERE b = 'x'
c: SHOW WARNINGS
c: CALL twice(@x)
c: CALL twice(@x); SELECT @x
c: SET autocommit = 0
c: SELECT b FROM t WHERE b = 1
c: SELECT b FROM t WHERE a = 1
c: COMMIT
c: SET autocommit = 1
c: $probe2
c: SELECT 1; SELECT * FROM missing; SELECT 2

story out_parameters_of_a_prepared_call_are_marked
backends 2
let probe = SELECT b FROM (SELECT 1 b UNION SELECT 2) t WHERE b = ?
a joins with LOCAL_FILES+MULTI_STATEMENTS
b joins with LOCAL_FILES+MULTI_STATEMENTS without DEPRECATE_EOF
c joins with LOCAL_FILES+MULTI_STATEMENTS without SESSION_TRACK+DEPRECATE_EOF
a: CREATE PROCEDURE gives(OUT x INT, IN y INT) BEGIN SELECT y; SET x = y + 1; END
a prepare p0: CALL gives(?, ?)
a execute p0 (NULL, '5')
a execute p0 (NULL, '6')
a prepare p1: $probe
a execute p1 ('1')
b prepare p0: CALL gives(?, ?)
b execute p0 (NULL, '5')
b execute p0 (NULL, '6')
b prepare p1: $probe
b execute p1 ('1')
c prepare p0: CALL gives(?, ?)
c execute p0 (NULL, '5')
c execute p0 (NULL, '6')
c prepare p1: $probe
c execute p1 ('1')

# libmariadb reads the results of a CALL one by one, and asks for the next as the flags say. It
# waits for ever, or takes the next answer for this one's, where they say otherwise.
story results_of_calls_are_read_one_by_one
# A client keeps its backend where the pool has not read the procedure yet.
backends 4
let probe = CREATE PROCEDURE p(OUT text VARCHAR(19), IN v INT, INOUT w INT) BEGIN SET v = 300, \
    text = 'an OUT parameter', w = 200; SELECT w, v, SUBSTRING(text, 4); END
let probe2 = CREATE PROCEDURE p() BEGIN SELECT 1, 2, 3; SELECT 'foo'; INSERT INTO t VALUES (2); END
a joins with LOCAL_FILES+MULTI_STATEMENTS
b joins with LOCAL_FILES+MULTI_STATEMENTS without DEPRECATE_EOF
c joins with LOCAL_FILES+MULTI_STATEMENTS without SESSION_TRACK+DEPRECATE_EOF
a: CREATE TABLE t (a INT)
a: DROP PROCEDURE IF EXISTS p
a: $probe
a prepare p0: CALL p(?, ?, ?)
a execute p0 (NULL, '20', '30')
a reset p0
a execute p0 (NULL, '20', '30')
a reset p0
a: DROP PROCEDURE p
a: $probe2
a prepare p1: CALL p()
a execute p1 ()
a reset p1
a: CALL p()
a prepare p2: SELECT a FROM t
a execute p2 ()
a: SELECT 3; INSERT INTO t VALUES (4)
a execute p2 ()
a execute p1 ()
a: DROP PROCEDURE IF EXISTS p
a: $probe
b prepare p0: CALL p(?, ?, ?)
b execute p0 (NULL, '20', '30')
b reset p0
b execute p0 (NULL, '20', '30')
b reset p0
a: DROP PROCEDURE p
a: $probe2
b prepare p1: CALL p()
b execute p1 ()
b reset p1
b: CALL p()
b prepare p2: SELECT a FROM t
b execute p2 ()
b: SELECT 3; INSERT INTO t VALUES (4)
b execute p2 ()
b execute p1 ()
a: DROP PROCEDURE IF EXISTS p
a: $probe
c prepare p0: CALL p(?, ?, ?)
c execute p0 (NULL, '20', '30')
c reset p0
c execute p0 (NULL, '20', '30')
c reset p0
a: DROP PROCEDURE p
a: $probe2
c prepare p1: CALL p()
c execute p1 ()
c reset p1
c: CALL p()
c prepare p2: SELECT a FROM t
c execute p2 ()
c: SELECT 3; INSERT INTO t VALUES (4)
c execute p2 ()
c execute p1 ()

# The file is sent for each statement that asks for one.
story a_local_file_is_taken_inside_of_several_statements
a joins with MULTI_STATEMENTS+LOCAL_FILES
b joins with MULTI_STATEMENTS+LOCAL_FILES without DEPRECATE_EOF
c joins with MULTI_STATEMENTS+LOCAL_FILES without DEPRECATE_EOF+SESSION_TRACK
let load = LOAD DATA LOCAL INFILE '/x' INTO TABLE t
a: CREATE TABLE t (id INT, v VARCHAR(5))
a, b, c: SELECT 1; $load; SET @n = 5; SELECT @n ;; SELECT COUNT(*) FROM t ;; SET @m = 1 \
    ;; $load; SELECT @m

# A server reports the default schema, which has not changed, once more behind a view of another
# one. Within a transaction the pool cannot fetch that, and its trackers are not the client's.
story a_report_behind_a_view_comes_when_its_client_is_told_of_something
backends 2
a joins with MULTI_STATEMENTS+LOCAL_FILES
b joins with MULTI_STATEMENTS+LOCAL_FILES without DEPRECATE_EOF
c joins with MULTI_STATEMENTS+LOCAL_FILES without DEPRECATE_EOF+SESSION_TRACK
a: DROP DATABASE IF EXISTS ${schema}_b ;; CREATE DATABASE ${schema}_b
a: CREATE TABLE ${schema}_b.u (a INT) ;; CREATE TABLE t (a INT) ;; INSERT INTO t VALUES (1)
a: CREATE VIEW plain_view AS SELECT a FROM t ;; CREATE VIEW counted_view AS SELECT ROW_COUNT() AS a
for view:
- plain_view
- counted_view
  for begin:
  - SET autocommit = 0
  - BEGIN
  - DO 0
    for next:
    - SET div_precision_increment = 7
    - SET @a = 1
    - DO 0
    - SET NAMES latin2
    - SET autocommit = 1
    - COMMIT
    - INSERT INTO u VALUES (2)
    - UPDATE u SET a = a + 1
    - INSERT INTO u SELECT a FROM $schema.$view
      for who:
      - a
      - b
      - c
        $who: USE ${schema}_b ;; $begin ;; SELECT a FROM $schema.t
        $who: SELECT a + 0 FROM $schema.$view ;; $next
        $who: DO 0 ;; SET NAMES latin1 ;; COMMIT ;; SET autocommit = 1
        $who: SET NAMES utf8mb4 ;; USE $schema
        $who reset
      end
    end
  end
end
a: DROP DATABASE ${schema}_b

# An execution enters the schema of its preparation and comes back; of that no later statement in its
# transaction tells which enters none itself.
story a_schema_entered_behind_an_eof_packet
backends 3
setup: DROP DATABASE IF EXISTS ${schema}_b
setup: CREATE DATABASE ${schema}_b CHARACTER SET cp1250
a joins without DEPRECATE_EOF
a: CREATE TABLE t (x INT)
a: CREATE FUNCTION f() RETURNS INT NO SQL RETURN 1
a prepare p: SELECT 4
a: USE ${schema}_b
a: CREATE TABLE t (x INT)
a: CREATE VIEW $schema.v AS SELECT * FROM $schema.t
for statement:
- CREATE TABLE d (x INT)
- ALTER TABLE d ADD y INT
- RENAME TABLE d TO e
- CREATE VIEW w AS SELECT * FROM t
- DROP VIEW w
- TRUNCATE e
- DROP TABLE e
- CREATE TABLE d AS SELECT * FROM $schema.v
- DROP TABLE d
- CREATE DATABASE ${schema}_c
- DROP DATABASE ${schema}_c
- DO 1
- DO (SELECT COUNT(*) FROM $schema.v)
- INSERT INTO t VALUES (1)
- SELECT x INTO @x FROM t LIMIT 1
- LOCK TABLES t WRITE
- UNLOCK TABLES
- FLUSH TABLES t
- GET DIAGNOSTICS @n = NUMBER
- KILL QUERY 1
- DROP DATABASE ${schema}_b
  a: BEGIN
  a execute p ()
  a: $statement
  a: SET @a = 1
  a: COMMIT
end
