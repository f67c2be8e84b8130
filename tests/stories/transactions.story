# Transactions: their own backend, their isolation, their end.

story what_is_committed_stays_and_what_is_rolled_back_does_not
backends 2
a: CREATE TABLE t (v INT) ENGINE=InnoDB
for sql:
- COMMIT
- ROLLBACK
- COMMIT AND CHAIN
- ROLLBACK RELEASE
  a: START TRANSACTION
  a: INSERT INTO t VALUES (1)
  b, a: SELECT COUNT(*) FROM t
  a: $sql
  b: SELECT COUNT(*) FROM t
end

story two_transactions_do_not_see_each_other
backends 2
a: CREATE TABLE t (v INT) ENGINE=InnoDB
a: INSERT INTO t VALUES (1)
b: BEGIN
b: SELECT * FROM t
a: BEGIN
a: INSERT INTO t VALUES (2)
a: SELECT * FROM t
a: COMMIT
b: SELECT * FROM t
b: INSERT INTO t VALUES (3)
b, a: SELECT * FROM t
b: COMMIT
a, b: SELECT * FROM t

story without_autocommit_every_statement_opens_a_transaction
backends 2
a: CREATE TABLE t (v INT) ENGINE=InnoDB
a: SET autocommit = 0
a: INSERT INTO t VALUES (1)
b, a: SELECT @@autocommit, COUNT(*) FROM t
a: ROLLBACK
a: INSERT INTO t VALUES (2)
a: COMMIT
b: SELECT @@autocommit, COUNT(*) FROM t
a: INSERT INTO t VALUES (3)
a: SET autocommit = 1
b: SELECT @@autocommit, COUNT(*) FROM t

story savepoints_are_kept_inside_a_transaction
backends 2
a: CREATE TABLE t (v INT) ENGINE=InnoDB
a: BEGIN
a: INSERT INTO t VALUES (1)
a: SAVEPOINT s
a: INSERT INTO t VALUES (2)
b: ROLLBACK TO s
b: SELECT COUNT(*) FROM t
a: ROLLBACK TO SAVEPOINT s
a: COMMIT
a: ROLLBACK TO s
b: SELECT * FROM t
a: SET autocommit = 0
a: SAVEPOINT outside
a: ROLLBACK TO outside

story an_error_inside_a_transaction_does_not_end_it
backends 2
a: CREATE TABLE t (v INT PRIMARY KEY) ENGINE=InnoDB
a: BEGIN
a: INSERT INTO t VALUES (1)
a: INSERT INTO t VALUES (1)
a: SELECT * FROM missing
a: THIS IS NO SQL
b: SELECT COUNT(*) FROM t
a: INSERT INTO t VALUES (2)
a: SELECT COUNT(*) FROM t
a: COMMIT
b: SELECT COUNT(*) FROM t

story ddl_commits_and_read_only_refuses
backends 2
a: CREATE TABLE t (v INT) ENGINE=InnoDB
a: BEGIN
a: INSERT INTO t VALUES (1)
a: CREATE TABLE u (v INT)
b: SELECT COUNT(*) FROM t
a: ROLLBACK
a: START TRANSACTION READ ONLY
a: INSERT INTO t VALUES (2)
b: INSERT INTO t VALUES (3)
a: COMMIT
a: SELECT * FROM t ORDER BY v

# MySQL refuses whatever else is asked until CREATE TABLE ... START TRANSACTION ends, also by the
# pool (error 3977).
story a_table_may_begin_a_transaction
backends 2
a joins without SESSION_TRACK
for who, sql:
- b | COMMIT
- c | ROLLBACK
- d | BEGIN
- e | SELECT 1
- f | SET @a = 1
  $who joins without SESSION_TRACK
  $who: CREATE TABLE made (x INT) START TRANSACTION
  a: SELECT 7
  $who: $sql
  $who: SHOW WARNINGS
  $who: COMMIT
  $who: SELECT 1
  $who, a: SELECT COUNT(*) FROM made
  a: DROP TABLE IF EXISTS made
  $who leaves
end
g joins without SESSION_TRACK
g: CREATE TABLE made START TRANSACTION SELECT 1 AS x
g: COMMIT
g: SELECT * FROM made

story a_transaction_without_a_change_shares_nothing_either
backends 3
a, b, c joins no_schema
a: CREATE TABLE $schema.t (v INT) ENGINE=InnoDB
b, c: START TRANSACTION WITH CONSISTENT SNAPSHOT
a: INSERT INTO $schema.t VALUES (1)
a, b, c: SELECT COUNT(*) FROM $schema.t

story deadlocks_waits_and_kills_end_as_on_a_server
backends 3
a: CREATE TABLE t (id INT PRIMARY KEY, v CHAR(1)) ENGINE=InnoDB
a: INSERT INTO t VALUES (1, '-'), (2, '-'), (3, '-')
# Who has changed less gives way.
a: BEGIN
a: INSERT INTO t VALUES (4, 'a'), (5, 'a')
a: UPDATE t SET v = 'a' WHERE id = 1
# One that is interrupted, and one whose lock is another's from that moment on.
b: BEGIN
b: UPDATE t SET v = 'b' WHERE id = 2
b waits: UPDATE t SET v = 'b' WHERE id = 1
a: UPDATE t SET v = 'a' WHERE id = 2
b goes on
c, b: SELECT * FROM t ORDER BY id
# A wait in vain ends the statement and not the transaction.
b: SET innodb_lock_wait_timeout = 1
b: BEGIN
b: INSERT INTO t VALUES (6, 'b')
b: UPDATE t SET v = 'b' WHERE id = 1
a: COMMIT
b: SHOW WARNINGS
b: COMMIT
b: BEGIN
b: UPDATE t SET v = 'b'
b waits: SELECT SLEEP(30) AS interrupted
a kills b query
b goes on
c waits: UPDATE t SET v = 'c' WHERE id = 1
a kills b connection
c goes on
a: SELECT * FROM t ORDER BY id

# A text that ends its connection: what stands behind it does not run, and nothing more is said.
story who_releases_its_connection_amid_a_text_is_closed
backends 3
a: CREATE TABLE t (id INT)
for who, sql:
- b | COMMIT RELEASE
- c | ROLLBACK RELEASE; INSERT INTO t VALUES (1)
- d | SELECT 1; COMMIT RELEASE; INSERT INTO t VALUES (2)
- e | INSERT INTO t VALUES (3); COMMIT AND NO CHAIN RELEASE; SELECT 2
- f | BEGIN; INSERT INTO t VALUES (5); ROLLBACK RELEASE; SELECT 3
- g | SET completion_type = 2; COMMIT
- h | SET completion_type = 2; COMMIT; INSERT INTO t VALUES (6)
- i | SET @@completion_type = 'RELEASE'; BEGIN; INSERT INTO t VALUES (7); COMMIT; SELECT 4
- j | SET `completion_type` = 2; SELECT 5; ROLLBACK
- k | SET completion_type = 1; COMMIT; INSERT INTO t VALUES (8); SET completion_type = 0; COMMIT
  $who joins with MULTI_STATEMENTS
  $who: $sql
  $who statistics
  a: SELECT id FROM t ORDER BY id
end

story a_savepoint_before_the_first_table_stays_its_clients
backends 2
a, b, c joins with MULTI_STATEMENTS
c: CREATE TABLE t (id INT)
c: CREATE PROCEDURE stands() SAVEPOINT s
a, b: SET autocommit = 0
for sql, sql2:
- SAVEPOINT s | COMMIT
- SAVEPOINT s | ROLLBACK
- SAVEPOINT s | SET autocommit = 1; SET autocommit = 0
- SAVEPOINT s | CREATE TABLE IF NOT EXISTS u (id INT)
- SAVEPOINT s | INSERT INTO t VALUES (1); ROLLBACK
- DO 1; SAVEPOINT s | COMMIT
- DO 1; SAVEPOINT s | ROLLBACK
- DO 1; SAVEPOINT s | SET autocommit = 1; SET autocommit = 0
- DO 1; SAVEPOINT s | CREATE TABLE IF NOT EXISTS u (id INT)
- DO 1; SAVEPOINT s | INSERT INTO t VALUES (1); ROLLBACK
- CALL stands() | COMMIT
- CALL stands() | ROLLBACK
- CALL stands() | SET autocommit = 1; SET autocommit = 0
- CALL stands() | CREATE TABLE IF NOT EXISTS u (id INT)
- CALL stands() | INSERT INTO t VALUES (1); ROLLBACK
  a: $sql
  b, c: SELECT 1
  b, c, a: SELECT 1
  c: SELECT 1
  b, a, c: ROLLBACK TO s
  a: ROLLBACK TO s
  a: RELEASE SAVEPOINT no_such
  a: $sql2
  b, c, a: ROLLBACK TO s
  a: COMMIT
  a, b, c: SELECT 2
end

story a_deadlock_is_reported_and_its_victim_rolled_back
backends 2
a: CREATE TABLE t (id INT PRIMARY KEY, v INT) ENGINE=InnoDB
a: INSERT INTO t VALUES (1, 0), (2, 0)
a: SET innodb_lock_wait_timeout = 1
b: SET innodb_lock_wait_timeout = 1, innodb_rollback_on_timeout = 0
b: SET innodb_lock_wait_timeout = 1
a: BEGIN
a: UPDATE t SET v = 1 WHERE id = 1
b: BEGIN
b: UPDATE t SET v = 2 WHERE id = 2
b: UPDATE t SET v = 2 WHERE id = 1
b: SELECT v FROM t WHERE id = 2
b: COMMIT
a: UPDATE t SET v = 1 WHERE id = 2
a: COMMIT
b: SELECT * FROM t

# ANALYZE TABLE ends a transaction with rows; the next one is told as by the server.
story a_transaction_behind_one_that_rows_have_ended_is_told
only mariadb
backends 2
a: CREATE TABLE t (id INT PRIMARY KEY, v INT)
for sql, sql2:
- BEGIN | DO 1
- BEGIN | SELECT v FROM t
- BEGIN | UPDATE t SET v = 1 WHERE id = 9
- START TRANSACTION | DO 1
- START TRANSACTION | SELECT v FROM t
- START TRANSACTION | UPDATE t SET v = 1 WHERE id = 9
- START TRANSACTION READ WRITE | DO 1
- START TRANSACTION READ WRITE | SELECT v FROM t
- START TRANSACTION READ WRITE | UPDATE t SET v = 1 WHERE id = 9
  b: $sql
  b: $sql2
  b: ANALYZE TABLE t
  b: $sql
  a: SELECT 1
  b: $sql2
  b: ROLLBACK
  b: SHOW WARNINGS
end

story a_transaction_behind_one_that_rows_have_ended_is_told_2
only mysql
backends 2
loose
a: CREATE TABLE t (id INT PRIMARY KEY, v INT)
for sql, sql2:
- BEGIN | DO 1
- BEGIN | SELECT v FROM t
- BEGIN | UPDATE t SET v = 1 WHERE id = 9
- START TRANSACTION | DO 1
- START TRANSACTION | SELECT v FROM t
- START TRANSACTION | UPDATE t SET v = 1 WHERE id = 9
- START TRANSACTION READ WRITE | DO 1
- START TRANSACTION READ WRITE | SELECT v FROM t
- START TRANSACTION READ WRITE | UPDATE t SET v = 1 WHERE id = 9
  b: $sql
  b: $sql2
  b: ANALYZE TABLE t
  b: $sql
  a: SELECT 1
  b: $sql2
  b: ROLLBACK
  b: SHOW WARNINGS
end

# A client that has the state of transactions told amid one is told of the next one, as by a server.
# A server sets the flag where it has found out that nothing is to be told.
# Characteristics that it began with are told by the pool, and not by a server.
story trackers_tell_from_where_they_are_switched_on
backends 2
loose
let off = SET session_track_transaction_info = OFF
let row = SELECT v FROM t WHERE id = 1
a joins
b joins without DEPRECATE_EOF
other: CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)
for who:
- a
- b
  for told, begins:
  - STATE | START TRANSACTION READ ONLY
  - STATE | START TRANSACTION READ WRITE
  - STATE | START TRANSACTION WITH CONSISTENT SNAPSHOT
  - STATE | BEGIN
  - CHARACTERISTICS | BEGIN
  - CHARACTERISTICS | START TRANSACTION
  - 1 | START TRANSACTION READ ONLY
  - 1 | START TRANSACTION
  - 2 | BEGIN
  - 2 | START TRANSACTION
  - DEFAULT | BEGIN
  - DEFAULT | START TRANSACTION READ ONLY
  - DEFAULT | START TRANSACTION READ WRITE
  - DEFAULT | START TRANSACTION WITH CONSISTENT SNAPSHOT
    let tell = SET session_track_transaction_info = $told
    $who: $tell ;; $tell ;; $off ;; $off ;; $tell ;; DO 1 ;; BEGIN
    $who: INSERT INTO t (v) VALUES (1) ;; COMMIT ;; $off
    for end:
    - COMMIT
    - ROLLBACK
    - COMMIT AND CHAIN
    - BEGIN
      $who: $begins ;; $tell
      other: SELECT 1
      $who: $row ;; DO 1 ;; $end ;; DO 1 ;; COMMIT ;; BEGIN
      $who: SELECT v FROM t ;; INSERT INTO t (v) VALUES (2)
      $who: ROLLBACK ;; $off ;; BEGIN ;; DO 1 ;; COMMIT
    end
    $who: SET autocommit = 0 ;; $row ;; $tell ;; $row ;; COMMIT ;; $row ;; COMMIT
    $who reset
  end
end

# What the server has rolled back keeps its backend no longer, though an error does not say so.
# The one that has changed less is the victim. MySQL announces another transaction like it, in its
# first OK behind the error.
story the_victim_of_a_deadlock_keeps_no_backend
backends 2
loose
a: CREATE TABLE t (id INT PRIMARY KEY, v INT) ENGINE=InnoDB
a: INSERT INTO t VALUES (1, 0), (2, 0), (3, 0), (4, 0)
for begin, less:
- BEGIN | LONG_PASSWORD
- START TRANSACTION READ WRITE | LONG_PASSWORD
- BEGIN | DEPRECATE_EOF
  a, b joins without $less
  a: $begin ;; UPDATE t SET v = 1 WHERE id = 1 ;; UPDATE t SET v = 1 WHERE id = 3
  a: UPDATE t SET v = 1 WHERE id = 4
  b: $begin ;; UPDATE t SET v = 2 WHERE id = 2
  a waits: UPDATE t SET v = 1 WHERE id = 2
    b: UPDATE t SET v = 2 WHERE id = 1
  a goes on
  c: SELECT 7
  a: COMMIT
  b: UPDATE t SET v = 0
end
