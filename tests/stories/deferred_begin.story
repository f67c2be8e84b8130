# Transactions that have begun for their clients, and on no backend yet: what clients see is what
# a server says, and who only begins holds nothing.

story what_is_answered_in_place_of_the_server_tells_of_the_transaction
a joins no_schema with FOUND_ROWS
# Its warnings are kept by the pool, and its last statement ran on the one backend.
b: TRUNCATE no_such_table
a: SELECT 1
b: COMMIT
b: BEGIN
b: SHOW WARNINGS
b: SHOW ERRORS
b ping
b: DO 1
b: ROLLBACK
c joins without SESSION_TRACK
c: TRUNCATE no_such_table
a: SELECT 1
c: COMMIT
c: BEGIN
c: SHOW WARNINGS
c: SHOW ERRORS
c ping
c: DO 1
c: ROLLBACK
d joins without DEPRECATE_EOF
d: TRUNCATE no_such_table
a: SELECT 1
d: COMMIT
d: BEGIN
d: SHOW WARNINGS
d: SHOW ERRORS
d ping
d: DO 1
d: ROLLBACK
e joins with MULTI_STATEMENTS
e: TRUNCATE no_such_table
a: SELECT 1
e: COMMIT
e: BEGIN
e: SHOW WARNINGS
e: SHOW ERRORS
e ping
e: DO 1
e: ROLLBACK

story what_follows_runs_in_its_transaction_whatever_it_is
a, b joins with MULTI_STATEMENTS
a: CREATE TABLE t (id INT PRIMARY KEY, v INT)
a: CREATE DATABASE IF NOT EXISTS $schema_other
a: CREATE TABLE IF NOT EXISTS $schema_other.t (id INT PRIMARY KEY, v INT)
a prepare p0: INSERT INTO t VALUES (?, 2)
# Prepared, several in one text, and behind another's session and schema.
for sql:
- SELECT 1
- SET time_zone = '+01:00'
- USE $schema_other
  # A session that starts over has no transaction.
  a: BEGIN
  b: $sql
  a execute p0 ('7')
  a: ROLLBACK
  a: SELECT COUNT(*) FROM t
  a: BEGIN
  b: SELECT 2
  a: INSERT INTO t VALUES (8, 8); SELECT 3
  a: ROLLBACK
  a: SELECT COUNT(*) FROM t
  a: BEGIN
  a init_db: $schema_other
  a: INSERT INTO t VALUES (1, 1)
  a: ROLLBACK
  a: SELECT COUNT(*) FROM t
  a init_db: $schema
end
a: BEGIN
a reset
a: INSERT INTO t VALUES (9, 9)
a: ROLLBACK
a: SELECT COUNT(*) FROM t
a: BEGIN
a becomes with MULTI_STATEMENTS
a: DELETE FROM t
a: ROLLBACK
a: SELECT COUNT(*) FROM t
a: DROP DATABASE $schema_other

story who_is_told_of_nothing_leaves_the_reports_of_others_alone
a joins without SESSION_TRACK
a: BEGIN
a: DO 1
a: COMMIT
b: START TRANSACTION READ WRITE
b: COMMIT
a: BEGIN
a: DO 1
a: ROLLBACK
b: START TRANSACTION READ WRITE
b: ROLLBACK

story a_count_that_only_its_backend_knows_is_not_lost
a: CREATE TABLE t (id INT)
a: SELECT SQL_CALC_FOUND_ROWS id FROM t LIMIT 1
a: BEGIN
a: SELECT ROW_COUNT(), FOUND_ROWS()
a: ROLLBACK
a: SELECT SQL_CALC_FOUND_ROWS id FROM t LIMIT 1
a: COMMIT
a: SELECT ROW_COUNT(), FOUND_ROWS()
a: ROLLBACK

# One backend for all: a client that only begins must not keep it.
story a_transaction_is_told_as_the_server_tells_it
a joins
b joins without SESSION_TRACK
c joins without DEPRECATE_EOF
d joins with MULTI_STATEMENTS
a: CREATE TABLE t (id INT PRIMARY KEY, v INT)
a, b, c, d: SELECT CAST('x' AS SIGNED) ;; BEGIN
for who:
- a
- b
- c
- d
  $who ping
  $who: SHOW WARNINGS ;; ROLLBACK
end
a, b, c, d: SHOW COLUMNS FROM t ;; START TRANSACTION ;; begin ;; SELECT ROW_COUNT(), FOUND_ROWS() \
    ;; COMMIT ;; BEGIN ;; COMMIT ;; COMMIT ;; SELECT ROW_COUNT() \
    ;; BEGIN ;; SET @a = 1 ;; ROLLBACK ;; SELECT @a
for who, number:
- a | 0
- b | 1
- c | 2
- d | 3
  $who: BEGIN ;; INSERT INTO t VALUES ($number, 1) ;; SELECT v FROM t ;; ROLLBACK
  $who: SELECT v FROM t ;; BEGIN ;; INSERT INTO t VALUES ($number, 1) ;; COMMIT
  $who: BEGIN ;; SELECT * FROM no_such_table ;; SHOW WARNINGS ;; COMMIT
  $who: BEGIN ;; SAVEPOINT a ;; ROLLBACK TO a ;; COMMIT
  $who: SET autocommit = 0 ;; BEGIN ;; ROLLBACK ;; BEGIN ;; SET autocommit = 1 ;; SELECT 1
  $who: SET completion_type = 1 ;; BEGIN ;; COMMIT ;; COMMIT ;; SET completion_type = 0 ;; ROLLBACK
  $who: SET SESSION TRANSACTION READ ONLY ;; BEGIN ;; COMMIT
  $who: SET SESSION TRANSACTION READ WRITE ;; BEGIN ;; ROLLBACK
  $who: SELECT id, v FROM t ORDER BY id
end

# The server can tell of the end of a transaction with an OK only, and an error may end one. Servers
# set the flag here, and say of what in no block.
story a_transaction_that_an_error_has_ended_is_told_as_the_server_tells_it
loose
let fails = CREATE TABLE t (id INT)
a joins
b joins without SESSION_TRACK
c joins without DEPRECATE_EOF
d joins with MULTI_STATEMENTS
a: CREATE TABLE t (id INT PRIMARY KEY, v INT)
for next:
- BEGIN ;; COMMIT
- BEGIN ;; SELECT 1 ;; COMMIT
- BEGIN -- waits for nothing ;; ROLLBACK
- START TRANSACTION ;; DO 1 ;; COMMIT
- COMMIT AND CHAIN ;; COMMIT
- SELECT 1 ;; BEGIN ;; COMMIT
- DO 1 ;; BEGIN ;; COMMIT
- COMMIT ;; BEGIN ;; COMMIT
- $fails ;; BEGIN ;; $fails ;; BEGIN ;; COMMIT
- USE mysql ;; BEGIN ;; COMMIT
  a, b, c, d: BEGIN ;; $fails ;; $next ;; USE $schema
end
# A statement with rows ends one too, and has no OK for clients without DEPRECATE_EOF.
a, b, c, d: BEGIN ;; ANALYZE TABLE t ;; BEGIN ;; COMMIT ;; BEGIN ;; ANALYZE TABLE t ;; SELECT 1 \
    ;; BEGIN ;; COMMIT ;; BEGIN ;; ANALYZE TABLE t ;; COMMIT
# Others' statements come between.
a, b, c, d: BEGIN ;; $fails
a, b, c, d: BEGIN ;; SELECT COUNT(*) FROM t ;; COMMIT

story the_end_of_no_transaction_is_told_as_the_server_tells_it
a joins
b joins without SESSION_TRACK
c joins without DEPRECATE_EOF
d joins with MULTI_STATEMENTS
a, b, c, d: COMMIT ;; rollback ;;  Commit Work
a: CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY)
for who:
- a
- b
- c
- d
  # Its backend is still there, or has served another.
  for between, left:
  - other: SELECT 1 | SELECT CAST('x' AS SIGNED)
  - other: SELECT 1 | INSERT INTO t VALUES (1), (2), (3)
  - watch nothing | INSERT INTO no_such_table VALUES (1)
  - other: SELECT 1 | INSERT INTO t VALUES (4), (NULL), (4)
  - watch nothing | SELECT SQL_CALC_FOUND_ROWS id FROM t LIMIT 1
  - other: SELECT 1 | DO 1
  - watch nothing | SET @a = 5
  - other: SELECT 1 | SET time_zone = '+02:00'
  - watch nothing | SHOW WARNINGS
    for end, asks:
    - COMMIT | SELECT ROW_COUNT(), LAST_INSERT_ID(), @a
    - rollback | SHOW WARNINGS
    -  Commit Work | SELECT @@warning_count, @@error_count
    - COMMIT | GET DIAGNOSTICS @n = NUMBER
      $who: DELETE FROM t ;; $left
      $between
      $who: $end ;; $asks
      $who ping
      $who: $left ;; $end ;; $end
      $who multi on
    end
  end
end

story an_end_goes_to_the_server_where_it_may_do_more
let count = SELECT COUNT(*) FROM t
let add = INSERT INTO t SELECT MAX(id) + 1 FROM t
a joins
b joins without SESSION_TRACK
c joins without DEPRECATE_EOF
d joins with MULTI_STATEMENTS
a: CREATE TABLE t (id INT PRIMARY KEY) ENGINE = InnoDB ;; INSERT INTO t VALUES (1)
a: CREATE TABLE kept (id INT) ENGINE = MyISAM
for who:
- a
- b
- c
- d
  for end:
  - COMMIT
  - rollback
  -  Commit Work
    $who: SET autocommit = 0 ;; $end ;; SELECT 1 ;; $end
    $who: $count ;; $end ;; $add ;; $end ;; $count ;; SAVEPOINT a ;; $end
    $who: ROLLBACK TO a ;; $add ;; SET autocommit = 1 ;; $end
    $who: SET completion_type = 'CHAIN' ;; $end ;; $count ;; $add ;; $end
    $who: SET completion_type = 'NO_CHAIN' ;; ROLLBACK
    $who: SET TRANSACTION READ ONLY ;; $end ;; $add ;; $end ;; $count
    $who: SET SESSION TRANSACTION READ ONLY ;; $end ;; SET SESSION TRANSACTION READ WRITE ;; $end
    $who: BEGIN ;; INSERT INTO kept VALUES (1) ;; $end ;; SHOW WARNINGS ;; $end ;; SHOW WARNINGS
    $who: CREATE TEMPORARY TABLE own (id INT) ;; $end ;; INSERT INTO own VALUES (1) ;; $end
    $who: SELECT * FROM own ;; DROP TEMPORARY TABLE own ;; $end
    $who: LOCK TABLES t WRITE ;; $end ;; $add ;; $end ;; UNLOCK TABLES
    $who: BEGIN ;; $add ;; CREATE TABLE ends (id INT) ;; $end ;; DROP TABLE ends ;; $end
    $who: SELECT ROW_COUNT() ;; XA START '$schema' ;; $end ;; XA END '$schema'
    $who: XA ROLLBACK '$schema' ;; $end ;; $count
  end
end

story what_a_transaction_leaves_is_told_as_the_server_tells_it
a joins
b joins without SESSION_TRACK
c joins without DEPRECATE_EOF
d joins with MULTI_STATEMENTS
let add = INSERT INTO t VALUES (NULL)
a: CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY) ENGINE = InnoDB
for who:
- a
- b
- c
- d
  for work:
  - $add
  - INSERT INTO t VALUES (NULL), (NULL) ;; SELECT id FROM t LIMIT 1
  - INSERT INTO t VALUES (4242)
  - $add ;; SELECT SQL_CALC_FOUND_ROWS id FROM t LIMIT 1
  - $add ;; SELECT CAST('x' AS SIGNED)
  - $add ;; INSERT INTO no_such_table VALUES (1)
  - SELECT LAST_INSERT_ID(7) ;; SELECT 1 UNION SELECT 2
    for end, between:
    - COMMIT | other: SELECT 1
    - rollback | watch nothing
    -  Commit Work | other: SELECT 1
      for asks:
      - SELECT LAST_INSERT_ID(), ROW_COUNT(), FOUND_ROWS()
      - SELECT FOUND_ROWS()
      - SHOW WARNINGS
      - SELECT @@warning_count, @@error_count
      - SELECT @@last_insert_id, @@identity
        $who: DELETE FROM t ;; SELECT 1 ;; BEGIN ;; $work ;; $end
        $between
        $who: $asks ;; $add
        $who ping
      end
    end
  end
end
