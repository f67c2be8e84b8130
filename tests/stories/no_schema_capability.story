# Clients with CLIENT_NO_SCHEMA: servers pass over the schema in front of a table's name, also in
# what the pool says for itself on such a connection.

story a_table_of_another_schema_is_not_the_temporary_one
backends 2
a, b joins with NO_SCHEMA
a: CREATE DATABASE IF NOT EXISTS $schema_b
a: CREATE TEMPORARY TABLE mine (x INT)
a: USE $schema_b
a: CREATE TABLE IF NOT EXISTS mine (y INT)
a: DROP TABLE $schema.mine
a: USE $schema
b: DO 1
b: SELECT * FROM mine
a: INSERT INTO $schema_b.mine VALUES (1)
a: SELECT x FROM mine
a: DROP TABLE other.mine
a: SELECT x FROM mine
a: DROP DATABASE $schema_b

# MySQL warns of the capability with each statement.
story what_the_pool_would_answer_itself_is_warned_of_too
a joins with NO_SCHEMA
a: BEGIN
a: COMMIT
a: ROLLBACK
a: SET autocommit = 1
b: BEGIN
b: COMMIT
b: ROLLBACK
b: SET autocommit = 1
a: START TRANSACTION
a: COMMIT
a: ROLLBACK
a: SET autocommit = 1
b: START TRANSACTION
b: COMMIT
b: ROLLBACK
b: SET autocommit = 1

story what_clears_conditions_needs_no_schema
a joins with NO_SCHEMA
b joins no_schema with NO_SCHEMA
c joins with NO_SCHEMA
# MySQL warns of the capability itself at the login.
a, b, c: DO 1
a: SELECT CAST('x' AS SIGNED)
b: SHOW WARNINGS
b: SELECT 1 FROM t
c: SHOW ERRORS
c: SELECT SQL_CALC_FOUND_ROWS 1
a: SELECT CAST('x' AS SIGNED)
c: SELECT FOUND_ROWS()

# The counts behind each kind of statement where the conditions of another client were cleared in
# front of it, also as the first of a session.
story counts_stay_where_conditions_were_cleared
a joins with NO_SCHEMA
a: CREATE TABLE t (v INT)
for who, sql:
- b | SHOW COLUMNS FROM t
- c | DESCRIBE no_such_table
- d | SHOW TABLES
- e | SHOW CREATE TABLE no_such_table
- f | SELECT no_such_column
- g | SELECT 1 UNION SELECT 2
- h | INSERT INTO t VALUES (1), (2)
- i | UPDATE t SET v = 1
- j | SELECT v, ROW_COUNT() FROM t LIMIT 1
- k | DO 1
- l | SELECT FROM
  $who joins with NO_SCHEMA
  for round:
  - 1
  - 2
    a: SELECT CAST('x' AS SIGNED)
    $who: $sql
    $who: SELECT ROW_COUNT()
  end
  a: SELECT v FROM t
end
for who, sql:
- o | INSERT INTO t VALUES (1), (2)
- p | SELECT v, ROW_COUNT() FROM t LIMIT 1
  $who joins with NO_SCHEMA
  # Before it, MariaDB has the count of the thread's last session.
  $who: SELECT 1
  for round:
  - 1
  - 2
    a: SELECT CAST('x' AS SIGNED)
    $who: $sql
    $who: SELECT FOUND_ROWS()
  end
end
a: DROP TABLE t
