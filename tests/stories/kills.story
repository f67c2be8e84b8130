# KILL and CONNECTION_ID(): a client's own number, and what a KILL leaves.

story a_client_finds_its_own_number_on_any_backend
for sql:
- SELECT CONNECTION_ID()
- select CONNECTION_ID() as me
- SELECT @@pseudo_thread_id
- SELECT CONCAT('', CONNECTION_ID()) AS c
- SELECT MAX(id) FROM (SELECT CONNECTION_ID() AS id) d
- SELECT * FROM (SELECT CONNECTION_ID()) d UNION ALL SELECT CONNECTION_ID()
- WITH d AS (SELECT CONNECTION_ID() id) SELECT id FROM d WHERE id = CONNECTION_ID()
  a, b, c: $sql
end
a: CREATE TABLE ids (id BIGINT)
a, b: INSERT INTO ids VALUES (CONNECTION_ID())
a, b, c: SELECT COUNT(*) FROM ids WHERE id = CONNECTION_ID()

# Servers run what stands in front of a statement that does not end.
story a_client_finds_its_own_number_before_a_statement_that_does_not_end
a joins with MULTI_STATEMENTS
a: SET @id = CONNECTION_ID()
for open:
- /* open
- 'open
- `open
- 1 /*! + 1
  a: SELECT CONNECTION_ID(); SELECT $open
  a: SELECT CONNECTION_ID() = @id AS own; SELECT $open
  b: SELECT 'other'
end

# MariaDB keeps conditions behind a KILL that goes well, and MySQL clears them.
story a_kill_leaves_the_conditions_that_the_server_leaves
backends 2
b joins
for before:
- SELECT CAST('x' AS SIGNED)
- SELECT * FROM nothing
- DO 1
  for asks:
  - SHOW WARNINGS
  - SELECT @@warning_count, @@error_count
    a: $before
    a kills b query
    a: $asks ;; SELECT ROW_COUNT()
    a: $before
    finish
    c: SELECT CAST('another' AS SIGNED)
    a kills b query
    a: $asks ;; SELECT ROW_COUNT()
    # MySQL 9.7 knows no command for it.
    if mariadb
      victim joins
      a: $before
      a kills victim command
      a: $asks ;; SELECT ROW_COUNT()
      victim joins
      a: $before
      finish
      c: SELECT CAST('another' AS SIGNED)
      a kills victim command
      a: $asks ;; SELECT ROW_COUNT()
    end
  end
end

story a_statement_that_runs_is_interrupted_and_nothing_else
backends 2
a: CREATE TABLE t (v INT) ENGINE=InnoDB
for round:
- 1
- 2
  a waits: SELECT SLEEP(30), 'interrupted $round'
    c: SELECT 'left alone'
    b kills a query
  a goes on
  a: SELECT 'goes on'
end
# With nothing to interrupt, nothing happens.
b kills a query
a: SELECT SLEEP(0)
# In a transaction the statement ends, the transaction stays.
a: BEGIN /* now */ ;; INSERT INTO t VALUES (1)
a waits: SELECT SLEEP(30), 'in a transaction'
  b kills a query
a goes on
a: SELECT COUNT(*) FROM t ;; COMMIT
b: SELECT COUNT(*) FROM t

# The pool puts its client's number in place of CONNECTION_ID(), and counts in place of questions
# about the statement before: columns as drivers and tools write them, of which none shows a number
# of the server's. A client behind another one has a connection that is not its own.
story a_column_is_named_after_its_clients_text
a: CREATE TABLE t (id INT)
for text:
- SELECT $column FROM t WHERE 0
- SELECT /* tool */ $column FROM t WHERE 0 ;
- SELECT DISTINCT $column FROM t LIMIT 0
- (SELECT $column FROM t) UNION ALL (SELECT $column FROM t) ORDER BY 1 LIMIT 0
- SELECT * FROM (SELECT $column FROM t) d WHERE 0
- WITH d AS (SELECT $column FROM t) SELECT * FROM d WHERE 0
- SELECT $column FROM t WHERE CONNECTION_ID() = 0 ORDER BY id, CONNECTION_ID()
- SELECT 1, $column, 2 FROM t WHERE 0
  for column:
  - CONNECTION_ID()
  - connection_id ( )
  - CONNECTION_ID() me
  - CONNECTION_ID() AS `my id`
  - CONNECTION_ID() 'my id'
  - `connection_id`()
  - @@pseudo_thread_id
  - CONNECTION_ID() IS NULL AS known
  - DATABASE(), CONNECTION_ID(), VERSION() /*!50038 , @@hostname*/
    b: DO 1
    a: $text
    a prepare p: $text
    a close p
  end
end
for column:
- ROW_COUNT()
- row_count ( )
- ROW_COUNT() n
- ROW_COUNT() AS `n m`
  a: CREATE TABLE IF NOT EXISTS t (id INT)
  b: SELECT 1
  a: SELECT $column, 1
end
