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
