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

# GET DIAGNOSTICS of a condition that is not there leaves an error behind those of before.
story a_condition_that_is_absent_is_told_of_behind_a_begin
backends 2
let probe = GET DIAGNOSTICS CONDITION 9 @absent = MESSAGE_TEXT
for what:
- 1 / 0
- 1
- * FROM no_such_table
  a: SELECT $what
  a: BEGIN
  a: $probe
  a: SHOW WARNINGS
  a: SELECT @@warning_count
  a ping
  a: $probe
  a: SHOW ERRORS
  a: ROLLBACK
  a: SHOW WARNINGS
  a: SELECT $what
  a: BEGIN
  b: SELECT 1 / 0, 2 / 0
  a: $probe
  a: SHOW WARNINGS
  a: SELECT @@warning_count
  a ping
  a: $probe
  a: SHOW ERRORS
  a: ROLLBACK
  a: SHOW WARNINGS
end
