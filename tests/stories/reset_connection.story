# COM_RESET_CONNECTION and COM_CHANGE_USER.

# A change that goes well, after one that did not.
story a_change_of_user_goes_well_after_one_that_failed
backends 2
let probe = SELECT CURRENT_USER(), DATABASE(), @@sql_mode, @@collation_connection, \
    @@character_set_results, @x, LAST_INSERT_ID()
a: CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY)
a: SET NAMES latin1
a: SET sql_mode = 'ANSI', @x = 1
a: SELECT GET_LOCK('has $schema', 0)
a: CREATE TEMPORARY TABLE temporary (v INT)
a: BEGIN
a: INSERT INTO t VALUES (), ()
a: SELECT id FROM t
a becomes no_schema
a becomes schema 'shop' user other
a: SELECT FOUND_ROWS()
a: $probe
a becomes schema 'nowhere'
a: $probe
a becomes
a: $probe

# The mode that a login's capability puts into the session: MySQL puts it in again.
story a_change_of_user_begins_with_the_modes_that_the_server_begins_with
a joins with IGNORE_SPACE
for round:
- 1
- 2
  a becomes with IGNORE_SPACE
  b, a: SELECT @@sql_mode
  a: SELECT COUNT (*)
  a reset
  a: SELECT @@sql_mode
end

# A reset leaves another character set than the schema's, and the schema may be gone when a client
# that names another one gets the backend.
story another_schema_is_set_without_the_one_that_a_reset_was_in
for enters:
- bytes: USE
- init_db:
  server: CREATE DATABASE ${schema}_gone CHARACTER SET utf8mb3
  a joins no_schema
  a: USE ${schema}_gone
  a reset
  a: SELECT @@character_set_database
  server: DROP DATABASE ${schema}_gone
  b joins no_schema
  b $enters $schema
  b: SELECT DATABASE(), @@character_set_database
  # The reset one goes on as it was.
  a: USE $schema
  a reset
  a: SELECT DATABASE(), @@character_set_database
  b, a: USE no_such_schema
  b, a: SELECT DATABASE(), @@character_set_database
end

# MariaDB goes back to the user before, in a session as new, three times. MySQL closes the
# connection, and what it held is free when its client hears why.
story a_change_of_user_that_fails_leaves_a_session_as_new_or_none
backends 2
let lock = SELECT GET_LOCK('has $schema', 0)
let probe = SELECT CURRENT_USER(), DATABASE(), @@sql_mode, @@collation_connection, \
    @@character_set_results, @x, LAST_INSERT_ID()
let much = DROP TABLE IF EXISTS t ;; CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY) \
    ;; SET NAMES latin1 ;; SET sql_mode = 'ANSI', @x = 1 ;; $lock \
    ;; CREATE TEMPORARY TABLE temporary (v INT) ;; BEGIN ;; INSERT INTO t VALUES (), () \
    ;; SELECT id FROM t
if mariadb
  a: $much
  for account:
  - user other password wrong schema shop
  - user other schema nowhere
  - no_schema user nobody password wrong
  - user other schema shop
    a becomes $account
    b: $lock, RELEASE_LOCK('has $schema')
    a: SELECT ROW_COUNT() ;; $probe ;; SELECT * FROM temporary ;; SELECT * FROM t
    a: SET @x = 2, sql_mode = 'ANSI' ;; $lock
  end
  a reset
  a: $probe
end
if mysql
  for account:
  - no_schema password wrong
  - schema nowhere
    a joins
    a: $much
    a becomes $account
    b: $lock, RELEASE_LOCK('has $schema')
    a: SELECT 1
  end
  a joins
  a: $much
  a becomes schema shop
  a: $probe
  b: $lock, RELEASE_LOCK('has $schema')
end
