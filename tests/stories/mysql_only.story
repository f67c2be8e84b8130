# What MySQL tells its clients and MariaDB does not, told through the pool as by the server.

story results_are_described_in_the_sessions_collation
only mysql
for what:
- NAMES utf8mb4
- NAMES utf8mb4 COLLATE utf8mb4_bin
- character_set_results = utf8mb4
- CHARACTER SET latin1
- character_set_results = NULL
- NAMES DEFAULT
  a: SELECT 'a'
  b: SET $what
  a: SELECT 'a'
  b: SELECT 'b', @@collation_connection
end
b reset
b: SELECT 'b'
b: SET time_zone = '+01:00'
a: SELECT 'a'
b: SELECT 'b'

story transactions_are_reported_where_they_begin_and_end
only mysql
a: CREATE TABLE t (v INT)
a: BEGIN
a: INSERT INTO t VALUES (1)
a: COMMIT
a: START TRANSACTION READ ONLY
a: ROLLBACK
b: SET autocommit = 0
b: INSERT INTO t VALUES (2)
b: COMMIT
b: SET autocommit = 1
b: START TRANSACTION WITH CONSISTENT SNAPSHOT
b: TRUNCATE t
b: XA START 'reported'
b: XA END 'reported'
b: XA ROLLBACK 'reported'
b: LOCK TABLES t WRITE
b: UNLOCK TABLES

story a_change_of_schema_counts_the_clients_own_warnings
only mysql
a: SELECT 1 / 0
b: SELECT 1
a init_db: shop
b: SELECT 1 / 0, 2 / 0
a init_db: shop
a ping
a: SHOW WARNINGS

# COM_INIT_DB's OK counts what an error has brought with it, also of a client that is pinned.
story a_change_of_schema_counts_all_conditions_before_it
only mysql
backends 3
for sql:
- CREATE FUNCTION warns() RETURNS INT DETERMINISTIC BEGIN DECLARE n INT; SELECT 1 / 0 INTO n; \
    SIGNAL SQLSTATE '01000' SET MESSAGE_TEXT = 'own'; RETURN n; END
- DO GET_LOCK('$schema', 1)
  a: $sql
  a bytes: SELECT \x24x
  a init_db: $schema
  a: SHOW WARNINGS
  b: SELECT 1 / 0, 2 / 0, 3 / 0
  a bytes: SELECT \x24x
  for sql2:
  - SELECT /*+ SET_VAR(no_such_variable = 1) */ no_such_column
  - SELECT warns(), no_such_column
  - SET @n = warns()
  - SELECT * FROM no_such_table
  - KILL QUERY CONNECTION_ID()
  - SELECT 1 / 0, 2 / 0
    a init_db: shop
    a init_db: $schema
    a: $sql2
    a init_db: $schema
    a: SHOW WARNINGS
    b: SELECT 1 / 0, 2 / 0, 3 / 0
    a: $sql2
  end
  a init_db: shop
  a init_db: $schema
  a: SELECT warns()
  a: KILL QUERY CONNECTION_ID()
  a init_db: shop
  a init_db: $schema
end

# What leaves conditions, or looks at them: MySQL counts those of the last statement in the OK of
# the commands that are no statements. A second backend for what the transaction keeps.
story commands_count_the_conditions_of_the_clients_last_statement
only mysql
backends 2
a: CREATE TABLE t (id INT PRIMARY KEY, v INT) ;; INSERT INTO t VALUES (1, 1)
a prepare p: SELECT ? / 0
for before:
- SELECT 1
- SELECT 1 / 0
- SELECT 1 / 0, 2 / 0 ;; SELECT 1
- SELECT * FROM missing
- SELEC
- SELECT 1 / 0 ;; SHOW WARNINGS
- SELECT 1 / 0 ;; SHOW WARNINGS LIMIT 1 ;; SHOW ERRORS
- SELECT 1 / 0 ;; SHOW COUNT(*) WARNINGS
- SELECT 1 / 0 ;; SELECT @@warning_count
- SELECT 1 / 0 ;; GET DIAGNOSTICS @n = NUMBER
- INSERT IGNORE INTO t VALUES (1, 'word'), (1, 2)
- BEGIN ;; SELECT 1 / 0
- SET max_error_count = 0 ;; SELECT 1 / 0
- SELECT 1 ;; GET STACKED DIAGNOSTICS @n = NUMBER
- SELECT 1 / 0, 2 / 0 ;; GET STACKED DIAGNOSTICS @n = NUMBER
- SELECT * FROM missing ;; GET STACKED DIAGNOSTICS @n = NUMBER
- SET sql_mode = 'NO_ZERO_DATE', tmp_table_size = 0
- SELECT 1 ;; SELECT FOUND_ROWS()
- SELECT 1 ;; SELECT ROW_COUNT() UNION SELECT FOUND_ROWS()
  for others:
  - SELECT 1
  - SELECT 1 / 0, 2 / 0, 3 / 0
    for command:
    - ping
    - multi on
    - multi off
    - init_db: $schema
    - reset p
      for more:
      - watch nothing
      - a statistics
        a: $before
        b: $others
        $more
        a $command
        b: $others
        a ping
        a: ROLLBACK ;; SET max_error_count = DEFAULT
      end
    end
  end
end
a execute p ('1')
a ping
a reset p
a reset
a ping

story executions_that_are_cut_short_are_refused_in_its_words
only mysql
a command 0x17:
a command 0x17: \x01\x00
a command 0x1a:

story transactions_are_reported_once_each
only mysql
backends 2
a: CREATE TABLE t (v INT)
a: CREATE PROCEDURE fails() BEGIN SET time_zone = '+03:00'; COMMIT; \
    SET SESSION sql_mode = 'ANSI'; SIGNAL SQLSTATE '45000'; END
for less:
- LONG_PASSWORD
- DEPRECATE_EOF
- SESSION_TRACK
  for statements:
  - BEGIN ;; BEGIN ;; SELECT 1 ;; BEGIN ;; COMMIT
  - BEGIN ;; INSERT INTO t VALUES (1) ;; BEGIN ;; SELECT * FROM t ;; BEGIN ;; COMMIT
  - COMMIT AND CHAIN ;; SELECT @y ;; BEGIN ;; ROLLBACK AND CHAIN ;; SELECT 1 ;; ROLLBACK
  - SET TRANSACTION READ ONLY ;; BEGIN ;; SELECT * FROM t ;; BEGIN ;; COMMIT
  - SET TRANSACTION ISOLATION LEVEL READ COMMITTED ;; SELECT * FROM t ;; BEGIN ;; COMMIT
  - SET autocommit = 0 ;; INSERT INTO t VALUES (2) ;; BEGIN ;; COMMIT ;; SELECT * FROM t
  - START TRANSACTION WITH CONSISTENT SNAPSHOT ;; BEGIN ;; SELECT * FROM t ;; BEGIN ;; DO 1
  - START TRANSACTION WITH CONSISTENT SNAPSHOT ;; INSERT INTO t VALUES (3) ;; ROLLBACK
  - BEGIN ;; SELECT * FROM t ;; LOCK TABLES t READ ;; UNLOCK TABLES
  - XA START 'sees' ;; INSERT INTO t VALUES (7) ;; XA END 'sees' ;; XA ROLLBACK 'sees'
  - BEGIN ;; INSERT INTO t VALUES (8) ;; SELECT * FROM missing ;; BEGIN ;; COMMIT
  - BEGIN; SELECT 1; BEGIN; COMMIT ;; START TRANSACTION READ ONLY; DO 1 ;; BEGIN
  - BEGIN ;; CREATE TABLE t (v INT) ;; DO 1
  - BEGIN ;; CALL fails() ;; DO 1
    b joins with MULTI_STATEMENTS without $less
    b: $statements
    a: BEGIN ;; SELECT 1 ;; BEGIN ;; COMMIT
    b: ROLLBACK ;; DO 1
    b leaves
  end
  # Behind an error the pool asks more, which takes the report where there is time.
  b joins with MULTI_STATEMENTS without $less
  b: BEGIN ;; CALL fails()
  finish
  b: DO 1
  a: BEGIN ;; SELECT 1 ;; BEGIN ;; COMMIT
  b: ROLLBACK ;; DO 1
  b leaves
end
