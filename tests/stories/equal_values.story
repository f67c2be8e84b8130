# SET of variables to the values that they have: the pool answers, and clients see what a server
# says. Of each kind of client one: they hear of variables in their own ways.
a joins
b joins without SESSION_TRACK
c joins without SESSION_TRACK+DEPRECATE_EOF
d joins with MULTI_STATEMENTS

story a_set_of_the_value_that_is_there_is_told_as_the_server_tells_it
for who:
- a
- b
- c
- d
  # MySQL warns of NO_ZERO_DATE. Its backend is still there, or has served another.
  for shown, set, between:
  - autocommit | autocommit = 0 | e: SELECT 1
  - autocommit | autocommit = ON | e: SELECT 1
  - foreign_key_checks | SESSION foreign_key_checks = OFF | watch nothing
  - foreign_key_checks | SESSION foreign_key_checks = 1 | watch nothing
  - unique_checks | @@unique_checks = 0 | e: SELECT 1
  - unique_checks | @@unique_checks = TRUE | e: SELECT 1
  - sql_mode | @@session.sql_mode = '' | watch nothing
  - sql_mode | @@session.sql_mode = 'ANSI_QUOTES' | watch nothing
  - sql_mode | sql_mode = 'IGNORE_SPACE' | e: SELECT 1
  - sql_mode | sql_mode = 'NO_ENGINE_SUBSTITUTION' | e: SELECT 1
  - sql_mode | sql_mode = 'ONLY_FULL_GROUP_BY' | watch nothing
  - sql_mode | sql_mode = 'NO_ZERO_DATE' | watch nothing
  - time_zone | time_zone = '+01:00' | e: SELECT 1
  - time_zone | time_zone = 'SYSTEM' | e: SELECT 1
  - wait_timeout | LOCAL wait_timeout = 100 | watch nothing
  - wait_timeout | LOCAL wait_timeout = 28800 | watch nothing
  - net_read_timeout | net_read_timeout = 31 | e: SELECT 1
  - net_read_timeout | net_read_timeout = 30 | e: SELECT 1
  - net_write_timeout | net_write_timeout = 61 | watch nothing
  - net_write_timeout | net_write_timeout = 60 | watch nothing
  - lock_wait_timeout | lock_wait_timeout = 51 | e: SELECT 1
  - lock_wait_timeout | lock_wait_timeout = 50 | e: SELECT 1
  - innodb_lock_wait_timeout | innodb_lock_wait_timeout = 49 | watch nothing
  - innodb_lock_wait_timeout | innodb_lock_wait_timeout = 50 | watch nothing
  - group_concat_max_len | group_concat_max_len = 1025 | e: SELECT 1
  - group_concat_max_len | group_concat_max_len = 1024 | e: SELECT 1
  - sql_auto_is_null | sql_auto_is_null = 1 | watch nothing
  - sql_auto_is_null | sql_auto_is_null = 0 | watch nothing
    $who: SET $set ;; SET $set ;; SELECT @@$shown ;; SELECT CAST('x' AS SIGNED)
    $between
    $who: SET $set ;; SELECT ROW_COUNT(), FOUND_ROWS()
    $who: INSERT INTO no_such_table VALUES (1) ;; SET $set
    $who ping
    $who: SHOW WARNINGS ;; SET $set ;; SELECT @@$shown
    $who: SHOW CHARACTER SET LIKE 'utf8mb%' ;; SET $set ;; SELECT FOUND_ROWS(), LAST_INSERT_ID()
  end
end

# No server has both names of the isolation level.
story isolation_levels_that_are_there_are_told_as_the_server_tells_them
for name:
- transaction_isolation
- tx_isolation
  for scope:
  - SESSION
  - @@session.
  - @@local.
    a: SET $scope $name = 'REPEATABLE-READ' ;; SHOW WARNINGS
  end
end
if mysql
  let isolation = transaction_isolation
  let other = tx_isolation
end
if mariadb
  let isolation = tx_isolation
  let other = transaction_isolation
end
for who:
- a
- b
- c
- d
  for level, value:
  - READ COMMITTED | READ-COMMITTED
  - REPEATABLE READ | REPEATABLE-READ
    let set = SET SESSION TRANSACTION ISOLATION LEVEL $level
    let named = SET @@session.$isolation = '$value'
    let shown = SELECT @@$isolation
    $who: $set ;; $set ;; $named ;; $shown
    $who: SET @@session.$other = '$value' ;; SHOW WARNINGS ;; $shown
    # That of the next transaction alone is no matter of the session's value.
    $who: SET TRANSACTION ISOLATION LEVEL SERIALIZABLE ;; $set ;; $shown ;; SELECT 1
    $who: SET TRANSACTION ISOLATION LEVEL $level ;; $named ;; SELECT 1
    $who: BEGIN ;; $set ;; $named ;; SELECT 1 ;; COMMIT ;; $shown
  end
end

story names_that_are_there_are_told_as_the_server_tells_them
let shown = SELECT @@character_set_client, @@character_set_results, @@collation_connection, 'x' AS d
for who:
- a
- b
- c
- d
  for charset, collation:
  - utf8mb4 | utf8mb4_bin
  - utf8mb4 | utf8mb4_general_ci
  - latin1 | latin1_swedish_ci
    let set = SET NAMES $charset COLLATE $collation
    $who: $set ;; $set ;; $shown ;; $set ;; SELECT 'x'
    # One of the four differs, or what describes results.
    $who: SET character_set_results = NULL ;; $set ;; $shown
    $who: SET character_set_results = $charset ;; $set ;; $shown
    $who: SET NAMES $charset ;; $set ;; $shown ;; SET NAMES $charset ;; $shown
    $who: SET NAMES utf8mb4 COLLATE latin1_bin ;; $shown
  end
end

story a_set_goes_to_the_server_where_it_may_do_more
let set = SET autocommit = 1
let count = SELECT COUNT(*) FROM t
let add = INSERT INTO t VALUES ()
a: CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT)
for who:
- a
- b
- c
- d
  # It ends a transaction, or is one of its statements.
  $who: SET autocommit = 0 ;; $add ;; $set ;; ROLLBACK ;; $count
  $who: BEGIN ;; $set ;; ROLLBACK ;; $count
  $who: BEGIN ;; $add ;; $set ;; ROLLBACK ;; $count
  $who: SET TRANSACTION READ ONLY ;; $set ;; $add ;; COMMIT ;; $count
  $who: LOCK TABLES t WRITE ;; $set ;; UNLOCK TABLES
  $who: CREATE TEMPORARY TABLE own (id INT) ;; $set ;; SELECT * FROM own
  $who: DROP TEMPORARY TABLE own ;; $set
  # Its client is told of it.
  for names:
  - autocommit,time_zone
  - time_zone
  -
    $who: SET session_track_system_variables = '$names' ;; $set ;; SET time_zone = 'SYSTEM' ;; $set
  end
  # It is not one that is understood.
  $who: SET autocommit = 1, no_such_variable = 1 ;; SHOW WARNINGS
  $who: SET autocommit = 2 ;; SET autocommit = 'ON'
  $who: SET GLOBAL autocommit = 1 ;; SHOW WARNINGS
end
