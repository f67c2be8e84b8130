# Statements in the binary protocol: cursors, ids that mean nothing, executions that are too short.
# Each is executed where another client has used it before, or where nobody has prepared it yet.

# A server looks at an execution before it closes what the one before has opened.
story what_cannot_be_read_leaves_a_cursor_open
backends 2
a, b prepare p: SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT ?
for bytes:
- \x00\x01\x00\x00\x00\x00\x01\x08\x00ab
- \x00\x01\x00\x00\x00\x00\x01\xaa\x00x
  a open p ('3')
  a sends p 0x17: $bytes
  a fetch p 1
  b execute p ('4')
  a: SET @other = 1
  a fetch p 1
  a fetch p 1
  a fetch p 1
end

story cursors_stay_open_beside_other_statements
backends 3
a joins
b joins without DEPRECATE_EOF
c joins without DEPRECATE_EOF+SESSION_TRACK
other: CREATE TABLE t (v INT PRIMARY KEY) ;; INSERT INTO t VALUES (1), (2), (3), (4), (5)
for who:
- a
- b
- c
  $who prepare one: SELECT v FROM t
  $who prepare two: SELECT v FROM t
  $who prepare none: DO 1
  $who prepare empty: SELECT v FROM t WHERE v > 9
  $who open one ()
  $who fetch one 2
  $who open two ()
  other: SELECT 1
  $who execute none ()
  $who open none ()
  $who fetch two 3
  $who fetch one 2
  $who fetch none 2
  $who reset two
  $who fetch two 2
  $who fetch one 2
  $who fetch one 2
  $who open empty ()
  $who fetch empty 2
  # Executed again without one, and with one again.
  $who open one ()
  # MySQL 9.7 does not answer that.
  if mariadb
    $who execute one ()
  end
  $who fetch one 2
  $who open one ()
  $who open one ()
  $who fetch one 1
  $who close one
  $who fetch one 1
end

# A question that is answered elsewhere is executed as another text, with the count in it.
story a_cursor_is_open_on_a_question_that_was_answered_elsewhere
only mariadb
a: CREATE TABLE t (v INT)
for text:
- SELECT FOUND_ROWS()
- SELECT ROW_COUNT(), 'x'
  a prepare p: $text
  for rows:
  - 3
  - 4
    a: SELECT seq FROM seq_1_to_$rows
    b: SELECT seq FROM seq_1_to_9
    a open p ()
    a fetch p 1
    a fetch p 1
    # Executed again while the other is open.
    a: SELECT seq FROM seq_1_to_5
    a open p ()
    a: INSERT INTO t VALUES (1), (2) ;; SELECT v FROM t
    a open p ()
    a fetch p 2
    a reset p
    a fetch p 2
    b: SELECT 1
  end
  a: SELECT seq FROM seq_1_to_2
  b: SELECT 1
  a open p ()
  a close p
  b: SELECT 1
end

# With one backend the others could not go on before the last cursor is closed.
story a_backend_is_free_again_when_the_last_cursor_is_closed
a joins
b joins without DEPRECATE_EOF
c joins without DEPRECATE_EOF+SESSION_TRACK
a: CREATE TABLE t (v INT PRIMARY KEY) ;; INSERT INTO t VALUES (1), (2), (3), (4), (5)
a, b, c prepare p: SELECT v FROM t
for who, ends:
- a | fetch p 9
- b | reset p
- c | close p
  $who open p ()
  $who fetch p 2
  $who $ends
  a, b, c: SELECT 'still here'
end

# MySQL 9.7 does not answer an execution without a cursor of a statement that was first executed
# with one; a client that shares the statement must not meet that.
story cursors_of_others_do_not_spoil_a_statement
only mysql
a: CREATE TABLE t (v INT) ;; INSERT INTO t VALUES (1), (2)
for round:
- 1
- 2
  a prepare p: SELECT v FROM t ORDER BY v
  a open p ()
  a fetch p 9
  b prepare p: SELECT v FROM t ORDER BY v
  b execute p ()
  b execute p ()
end

story a_statement_without_a_schema_follows_its_client_into_one
backends 2
a joins no_schema
a prepare all: SELECT schema_name FROM information_schema.schemata WHERE schema_name = 'shop'
a prepare own: SELECT DATABASE()
for round:
- 1
- 2
  a execute own ()
  b: SELECT DATABASE()
  a: USE shop
  a execute all ()
  a execute own ()
end

story altered_tables_are_seen_as_on_a_connection_of_ones_own
backends 2
a joins
b joins without DEPRECATE_EOF
c joins without DEPRECATE_EOF+SESSION_TRACK
admin: CREATE TABLE t (a INT, b TEXT) ;; INSERT INTO t VALUES (1, 'one')
a, b, c prepare p0: SELECT * FROM t
for change, name:
- ALTER TABLE t ADD COLUMN c INT DEFAULT 3 | p1
- ALTER TABLE t DROP COLUMN b | p2
- ALTER TABLE t MODIFY a VARCHAR(20) | p3
- RENAME TABLE t TO u | p4
- CREATE TABLE t (z INT, y INT, x INT, w INT) | p5
- DROP TABLE t | p6
- CREATE VIEW t AS SELECT a FROM u | p7
  admin: $change
  for who:
  - a
  - b
  - c
    $who prepare $name: SELECT * FROM t
    $who: SHOW WARNINGS
    for old:
    - p0
    - p1
    - p2
    - p3
    - p5
    - p7
      $who execute $old ()
    end
    $who: SHOW WARNINGS
  end
end

story ids_that_mean_nothing_are_refused_in_the_servers_words
a prepare known: SELECT 1
b prepare other: SELECT 2
for id:
- \x77\x00\x00\x70
- \x00\x00\x00\x00
- \xfe\xff\xff\xff
  b command 0x19: $id
  b command 0x17: $id\x00\x01\x00\x00\x00
  b command 0x1a: $id
  b command 0x1c: $id\x01\x00\x00\x00
  b: SHOW WARNINGS => or error 1235
end
for round:
- 1
- 2
  a close known
  a execute known ()
end
a prepare next: SELECT 3
# An id is not given twice: this would close the next one.
a close known
a execute next ()
a fetch next 1
a reset
a execute next ()

# What a statement leaves is its client's: warnings, counts, variables.
story what_a_statement_leaves_is_its_clients
only mariadb
backends 3
a: CREATE TABLE t (v TINYINT)
a prepare warns: INSERT INTO t VALUES (CAST(? AS INT))
a prepare fails: SELECT 1 FROM t HAVING (SELECT 1 UNION SELECT 2)
a prepare counts: SELECT ROW_COUNT()
a prepare found: SELECT FOUND_ROWS()
a prepare variable: SELECT @x := 5
b: SELECT 1/0
a execute warns ('7 apples')
b: SELECT 1
a: SHOW WARNINGS
a execute warns ('9')
b: INSERT INTO t VALUES (1), (2), (3)
a execute counts ()
a execute fails ()
b: DO 0
a: SHOW WARNINGS ;; SELECT * FROM t LIMIT 2
b: SELECT 1
a execute found ()
a reset counts
a execute counts ()
a execute variable ()
b command 0x17: \xff\xff\xff\xff\x00\x01\x00\x00\x00
a, b: SELECT @x

# Commands without an answer: where they are too short, MySQL has one, which comes first.
story what_is_too_short_to_be_long_data_or_a_close_is_answered_as_by_the_server
for command:
- 0x18
- 0x19
  for bytes:
  -
  - \x01
  - \x01\x00
  - \x01\x00\x00
    a joins
    a prepare p: SELECT ?
    a command $command: $bytes
    a: SELECT 5 ;; SELECT 6
  end
  for bytes:
  -
  - \x00
  - \x00\x00
  - \x00\x00x
    a joins
    a prepare p: SELECT ?
    a sends p $command: $bytes
    a: SELECT 5 ;; SELECT 6
  end
end

# Executions that are too short for their statement, by its id, by that which stands for the last
# one, and by one far from those that a server has given: MariaDB goes on counting on a thread that
# a client which has left has used.
story malformed_executions_are_refused_as_by_the_server
a joins
b joins without DEPRECATE_EOF
for sql:
- SELECT ?
- SELECT 1
  a, b prepare p: $sql
  for sends:
  - sends p 0x17: $bytes
  - command 0x17: \xff\xff\xff\xff$bytes
  - command 0x17: \x77\x00\x00\x70$bytes
    for bytes:
    -
    - \x00
    - \x00\x01\x00\x00\x00
    - \x00\x01\x00\x00\x00\x01
    - \x00\x01\x00\x00\x00\x00
    - \x00\x01\x00\x00\x00\x00\x00
    - \x00\x01\x00\x00\x00\x01\x00
    - \x00\x01\x00\x00\x00\x00\x01
    - \x00\x01\x00\x00\x00\x00\x01\xfd
    - \x00\x01\x00\x00\x00\x00\x01\xfd\x00
    - \x00\x01\x00\x00\x00\x01\x01\xfd\x00
    - \x00\x01\x00\x00\x00\x00\x01\xfd\x00\x02ab
      a $sends
      a: SELECT 5
      b $sends
      b: SELECT 5
    end
  end
end

story long_data_go_with_their_execution
a, b prepare p: SELECT CONCAT(?, '!')
a long p 0: from a
b long p 0: from b
a long p 0: , more
a: SELECT 1
a, b sends p 0x17: \x00\x01\x00\x00\x00\x00\x01\xfd\x00
a, b execute p ('in the message')
a long p 0: dropped
a reset p
a execute p ('kept')
# No such parameter: the execution says so, the next one is well again.
a long p 9: x
a execute p ('with a mistake')
a execute p ('without')

# Errors about statements that are not there are asked about like any others.
story an_unknown_statement_is_an_error_of_the_session
a prepare p: SELECT 1
for command:
- command 0x1c: \x77\x00\x00\x70\x01\x00\x00\x00
- command 0x17: \x77\x00\x00\x70\x00\x01\x00\x00\x00
- command 0x1a: \x77\x00\x00\x70
- sends p 0x1c: \x01\x00\x00\x00
  for before:
  - SELECT CAST('x' AS SIGNED)
  - DO 1
    for question:
    - SHOW WARNINGS
    - SELECT @@error_count, ROW_COUNT()
      a: $before
      b: SELECT CAST('other' AS SIGNED), 1 / 0
      a $command
      b: SELECT 2
      a multi on
      a: $question => or error 1235
    end
  end
end

story prepared_statements_of_all_kinds_of_clients
backends 4
a joins
b joins without DEPRECATE_EOF
c joins without SESSION_TRACK
d joins without DEPRECATE_EOF+SESSION_TRACK+PLUGIN_AUTH_LENENC_DATA
for who:
- a
- b
- c
- d
  $who: DROP TABLE IF EXISTS t ;; CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v TEXT)
  $who prepare insert: INSERT INTO t (v) VALUES (?), (?)
  $who prepare select: SELECT id, v, 1.5e0, NULL FROM t WHERE id > ?
  $who execute insert ('one', NULL)
  $who execute insert ('three', 'four')
  $who execute select ('1')
  $who: SELECT COUNT(*), LAST_INSERT_ID() FROM t
  $who reset select
  $who close insert
  $who execute select ('3')
  $who prepare missing: SELECT * FROM missing
  $who prepare none: DO 1
  $who execute none ()
end
