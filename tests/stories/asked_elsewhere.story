# What the statement before left, asked for after another client has used the backend.
#
# One backend for two clients, so that every question meets a backend that has just run something
# else, with warnings and counts of its own; and nobody may be pinned, or the other would wait in
# vain. Servers differ in what clears what. MySQL reports transactions to clients that have not asked
# for it, the pool does not.
let other = SELECT CAST('other' AS SIGNED) FROM t WHERE id < 4
a, b joins with MULTI_STATEMENTS without SESSION_TRACK
a: CREATE TABLE t (id INT PRIMARY KEY, v INT) ;; INSERT INTO t VALUES (1, 1), (2, 2), (3, 3), (4, 4)
a: CREATE TABLE notes (a INT, b INT)

# What is done before a question: most leave something, some leave what was there before them.
story every_question_is_answered_as_on_a_connection_of_ones_own
for before:
- SELECT 1
- SELECT v FROM t WHERE id < 3
- SELECT 1 / 0
- SELECT CAST('x' AS SIGNED), CAST('y' AS SIGNED) FROM t
- SELECT * FROM missing
- SELEC
- UPDATE t SET v = v + 1 WHERE id < 3
- INSERT IGNORE INTO t VALUES (1, 1), (2, 2)
- INSERT INTO t VALUES (1, 1)
- DROP TABLE IF EXISTS missing
- SET @x = 1
- SELECT 1 / 0 ;; SELECT 2
- SELECT 1 / 0 ;; SELECT v FROM t
- SELECT 1 / 0 ;; SET @x = 2
- SELECT 1 / 0 ;; USE mysql ;; DO 1
- SELECT 1 / 0 ;; BEGIN ;; COMMIT
- BEGIN ;; SELECT 1 / 0 ;; COMMIT
- BEGIN ;; SELECT * FROM missing ;; ROLLBACK
- SELECT 1 / 0 ;; UPDATE t SET v = 5 WHERE id = 1
- SELECT 1 / 0 ;; INSERT INTO missing VALUES (1)
- SIGNAL SQLSTATE '45001' SET MESSAGE_TEXT = 'on purpose', MYSQL_ERRNO = 3333
- SET max_error_count = 2 ;; SELECT CAST('x' AS SIGNED) FROM t
  for asks, follows:
  - SELECT ROW_COUNT() | watch nothing
  - SELECT ROW_COUNT() AS n, ROW_COUNT() | watch nothing
  - SELECT @@warning_count | watch nothing
  - SELECT @@session.warning_count AS w | watch nothing
  - SHOW WARNINGS | watch nothing
  - SHOW ERRORS | watch nothing
  - SHOW WARNINGS LIMIT 1 | watch nothing
  - SHOW WARNINGS LIMIT 1, 5 | watch nothing
  - SHOW COUNT(*) WARNINGS | watch nothing
  - GET DIAGNOSTICS @n = NUMBER, @r = ROW_COUNT | a: SELECT @n, @r
  - INSERT INTO notes VALUES (ROW_COUNT(), @@warning_count) | watch nothing
  - SET @r = ROW_COUNT() | a: SELECT @r
    a: DELETE FROM notes ;; USE $schema ;; $before
    b: $other
    a: $asks
    b: $other
    $follows
    b: $other
    # What the question itself has left.
    a: SHOW WARNINGS
    b: $other
    a: SELECT ROW_COUNT()
    b: $other
    a: SELECT a, b FROM $schema.notes ;; SET max_error_count = DEFAULT
  end
end

story errors_are_counted
for before:
- SELECT 1 / 0
- SELECT * FROM missing
- SELECT 1
- INSERT INTO t VALUES (1, 1)
  for asks:
  - SELECT @@error_count
  - SHOW COUNT(*) ERRORS
  - SHOW ERRORS LIMIT 0
    a: $before
    b: $other
    a: $asks
    b: $other
    a: $asks
  end
end

story conditions_have_their_states_and_words
for before:
- SELECT 1 / 0
- SELECT CAST('x' AS SIGNED)
- SELECT * FROM missing
- INSERT INTO t VALUES (1, 1)
- DROP TABLE IF EXISTS missing
- CREATE TABLE IF NOT EXISTS t (x INT)
- SELECT * FROM `märz`
- INSERT IGNORE INTO t VALUES (1, 'word')
- UPDATE t SET v = 'word' WHERE id = 1
  a: $before
  b: $other
  a: GET DIAGNOSTICS CONDITION 1 @s = RETURNED_SQLSTATE, @m = MESSAGE_TEXT, @e = MYSQL_ERRNO
  b: $other
  a: SELECT @s, @m, @e, COLLATION(@s), COLLATION(@m) ;; SELECT ROW_COUNT()
end

story rows_that_were_found_are_known_or_asked_for
for before:
- SELECT v FROM t
- SELECT v FROM t ORDER BY v LIMIT 2
- SELECT v FROM t ;; SET @x = 1
- SELECT v FROM t ;; BEGIN ;; ROLLBACK
- SELECT v FROM t ;; SHOW WARNINGS
- SHOW COUNT(*) WARNINGS
  a: $before
  b: $other
  a: SELECT FOUND_ROWS(), 'x' AS y
  b: $other
  a: SELECT FOUND_ROWS()
end
a ping
a: SELECT ROW_COUNT(), FOUND_ROWS()
a multi on
a: SELECT ROW_COUNT() ;; SELECT v FROM t
a reset
b: $other
a: SELECT FOUND_ROWS()

# MySQL prepares no statement that reads the number of warnings.
story prepared_questions_are_answered_too
a prepare counts: SELECT ROW_COUNT() AS n, ?
if mariadb
  a prepare warned: SELECT @@warning_count
end
for before:
- UPDATE t SET v = v + 1
- SELECT 1 / 0
- SELECT 1
  a: $before
  b: $other
  a execute counts ('x')
  if mariadb
    a: $before
    b: $other
    a execute warned ()
  end
end

story commands_that_are_no_statements_count_and_leave_what_was_before
for command:
- command 0x0d:
- ping
- multi off
  for before:
  - SELECT 1 / 0, 2 / 0
  - SELECT * FROM missing
  - SET @x = 1
    for between:
    - watch nothing
    - b: $other
      a: $before
      $between
      a $command
      b: $other
      a: SELECT ROW_COUNT(), @@warning_count ;; $before
      a $command
      b: $other
      a: SHOW WARNINGS
    end
  end
end

# A text behind another of the pool's own is followed by COM_SET_OPTION, which leaves a count of its
# own.
story get_diagnostics_has_the_rows_of_a_joined_text
b: USE mysql
a: UPDATE t SET v = v + 1 WHERE id < 3 ;; GET DIAGNOSTICS @n = NUMBER, @r = ROW_COUNT ;; SELECT @n, @r

# What nobody but the statement's own backend can tell is refused, and nobody is pinned for it.
story what_cannot_be_answered_elsewhere_is_refused_and_never_wrong
for round:
- 1
- 2
  a: SELECT 1 / 0
  b: SELECT 2
  a: SELECT CONCAT('😀', @@warning_count) => pool: error 1235
end
b: SELECT 3

story an_interrupted_question_about_ones_own_statement_is_asked_about
for sql:
- SELECT CAST('a' AS SIGNED)
- KILL QUERY CONNECTION_ID()
- SHOW WARNINGS
- KILL QUERY CONNECTION_ID()
- SELECT @@error_count, ROW_COUNT()
  a: $sql
  b: SELECT 1 FROM t WHERE v = 99
end
a prepare p: KILL QUERY CONNECTION_ID()
b: SELECT 1 FROM t WHERE v = 99
a execute p ()
b: SELECT 1 FROM t WHERE v = 99
a: SHOW ERRORS
b: SELECT 1 FROM t WHERE v = 99
a: SELECT 5

story a_signal_that_warns_leaves_its_count
for sql:
- INSERT INTO notes (a) VALUES (1), (2)
- SIGNAL SQLSTATE '01000'
- SELECT ROW_COUNT()
- SIGNAL SQLSTATE '01000' SET MESSAGE_TEXT = 'w'
- SHOW WARNINGS
- INSERT INTO notes (a) VALUES (1), (2)
- SIGNAL SQLSTATE '45000'
- SELECT ROW_COUNT()
  a: $sql
  b: SELECT 1 FROM t WHERE v = 99
end

# Before its first query a session of MariaDB has found what its thread's last one has.
story counts_are_told_in_binary_too
a: SELECT 1
a prepare p: SELECT ROW_COUNT(), FOUND_ROWS()
for before:
- INSERT INTO notes (a) VALUES (1), (2)
- SELECT v FROM t
  a: $before
  b: SELECT 1 FROM t WHERE v = 99
  a execute p ()
  b: SELECT 1 FROM t WHERE v = 99
  a: $before
  b: SELECT 1 FROM t WHERE v = 99
  a: SELECT ROW_COUNT(), FOUND_ROWS()
end

story user_variables_are_flushed
backends 2
for sql:
- SET @a = 1
- SELECT @a
- FLUSH USER_VARIABLES
- SELECT LEFT(@a, 9)
- SET @b = 2
- SELECT @b, LEFT(@a, 9)
- DO 1
  a: $sql
  b: SELECT 1 FROM t WHERE v = 99
end

# What is put in front of a text for FOUND_ROWS() must not take away the conditions that the text
# asks for.
story a_text_that_asks_first_has_its_conditions_or_is_refused
backends 2
a: SET autocommit = 0
for round:
- 1
- 2
- 3
- 4
- 5
  a init_db: no_such_schema
  a: SHOW WARNINGS; DO GET_LOCK('$schema', 0) => or error 1235
  a reset
  a: SET autocommit = 0
end

# COM_INIT_DB is sent in whatever schema a backend is. Where it fails, the session's own schema is
# set in front of what follows, which clears what the error has left.
story a_schema_that_is_not_there_comes_behind_the_conditions_of_before
for before:
- SELECT * FROM nothing
- SELECT CAST('x' AS SIGNED)
- DO 1
  a: $before
  b: SELECT CAST('another' AS SIGNED)
  a init_db: no_such_schema
  for asks:
  - SHOW WARNINGS LIMIT 1, 2
  - SHOW COUNT(*) ERRORS
    a: $asks => or error 1235
    b: SHOW WARNINGS
  end
end

# What stays is this client's own, wherever it was counted. After a statement that counts, MariaDB's
# number is the one that stays or -1.
story a_show_that_fails_leaves_no_count_that_is_wrong
a: CREATE TABLE gone (id INT) ;; CREATE VIEW invalid AS SELECT id FROM gone ;; DROP TABLE gone
for fails:
- DESCRIBE nothing
- DESC `nothing` id
- DESCRIBE invalid
- EXPLAIN nothing
- SHOW COLUMNS FROM nothing
- SHOW FULL COLUMNS FROM nothing FROM no_such_schema
- SHOW INDEX FROM nothing
- SHOW FIELDS FROM invalid
- SHOW TABLES FROM no_such_schema
- SHOW TRIGGERS FROM no_such_schema
- SHOW TABLES WHERE nothing = 1
- SHOW CREATE TABLE nothing
- SHOW CREATE VIEW nothing
- SHOW GRANTS FOR nobody
  for before:
  - SELECT 1
  - INSERT IGNORE INTO t (id) VALUES (1), (2)
  - DO 1
    a: $before ;; $fails ;; SELECT ROW_COUNT() ;; $before
    b: UPDATE t SET id = id + 100 ;; SELECT id FROM t WHERE id = 1
    a: $fails ;; SELECT ROW_COUNT() ;; $before
    b: DELETE FROM t
    a: $fails
    b: INSERT INTO t (id) VALUES (1), (2), (3)
    a: SELECT ROW_COUNT()
  end
end
for fails:
- EXPLAIN SELECT * FROM nothing
- SHOW EXPLAIN FOR 4294967295
- SHOW TABLES WHERE (SELECT 1 FROM nothing)
  a: SELECT 1 ;; $fails ;; SELECT ROW_COUNT() ;; INSERT IGNORE INTO t (id) VALUES (1), (2) ;; $fails
  a: SELECT ROW_COUNT() => or error 1235
end

story conditions_are_shown_in_the_collation_of_now
a: SET NAMES latin1 ;; SELECT * FROM nothing ;; SET NAMES latin1 COLLATE latin1_bin
a: SHOW WARNINGS => or error 1235
a: SELECT * FROM nothing ;; SHOW WARNINGS

# The only backend is replaced by one of the other kind.
story what_a_schema_that_is_not_there_leaves_is_known_on_a_new_backend
c joins with FOUND_ROWS without SESSION_TRACK
for asks:
- SELECT ROW_COUNT()
- SHOW WARNINGS
- SELECT @@warning_count, @@error_count
- SHOW COUNT(*) ERRORS
  a: SELECT v FROM t
  c: SELECT * FROM nowhere
  a init_db: no_such_schema
  a: $asks => or error 1235
  a: SELECT v FROM t
  c: SELECT * FROM nowhere
  a init_db: no_such_schema
  finish
  a: $asks => or error 1235
end

# A lock that another holds is waited for in vain: on MariaDB that clears the conditions of the
# statement before, and nothing in the reply tells of it.
story a_lock_that_is_not_got_may_clear_conditions
backends 2
b: SELECT GET_LOCK('$schema', 0)
for lock:
- $schema
- ${schema}_b
  for takes:
  - SELECT GET_LOCK('$lock', 0)
  - DO GET_LOCK('$lock', 0)
  - SET @got = GET_LOCK('$lock', 0)
  - SELECT RELEASE_LOCK('$lock')
    for asks:
    - SHOW WARNINGS
    - SELECT @@warning_count, @@error_count
      for before:
      - SELECT no_such_column
      - SELECT CAST('x' AS SIGNED)
        a: $before ;; $takes ;; $asks => or error 1235
      end
    end
  end
end

# COM_STMT_RESET leaves the conditions of the statement before, and counts no rows.
story a_reset_of_a_statement_leaves_conditions
backends 2
a prepare p: SELECT CAST('y' AS SIGNED)
for before:
- SELECT CAST('x' AS SIGNED)
- SELECT no_such_column
- DO 0
  for asks:
  - SELECT @@warning_count, @@error_count
  - SHOW WARNINGS
    a: $before
    a reset p
    b: SELECT CAST('other' AS SIGNED)
    a: $asks
    a execute p ()
    a reset p
    a: $asks
    a reset p
    a: SELECT ROW_COUNT()
  end
end

# ROW_COUNT() behind a text that ends with GET DIAGNOSTICS is that of the statement before it. Behind
# a refusal its conditions are gone, and these texts read them.
story a_text_that_ends_with_get_diagnostics_counts_as_before_it
let two = INSERT INTO notes (a) VALUES (1), (2)
for text:
- SELECT 1; GET DIAGNOSTICS @r = ROW_COUNT
- $two; GET DIAGNOSTICS @r = ROW_COUNT
- $two; GET DIAGNOSTICS @r = ROW_COUNT; DO 0
- $two; GET DIAGNOSTICS @r = ROW_COUNT; SELECT 1
  for asks:
  - SELECT ROW_COUNT()
  - SELECT ROW_COUNT(); SELECT 2
  - GET DIAGNOSTICS @s = ROW_COUNT
    for others:
    - watch nothing
    - b: INSERT INTO notes (a) VALUES (1), (2), (3)
      a: SELECT a FROM notes LIMIT 1 ;; $text
      $others
      a: $asks => or error 1235
    end
  end
end

# MySQL says some errors twice, and counts both in its answer to COM_SET_OPTION.
story a_pinned_clients_conditions_are_counted
backends 2
c joins
for held:
- DO 0
- DO GET_LOCK('$schema', 0)
  c: $held ;; SELECT no_such_function(6)
  c multi off
  c: SELECT no_such_function(6)
  c ping
  c: SHOW WARNINGS ;; SELECT ROW_COUNT()
end

# What is still to be told of a session stands in the pool's own answer too: MySQL tells behind a
# deadlock that the transaction has ended.
story what_a_rolled_back_transaction_is_told_stands_behind_its_error
backends 3
c, d, e joins
c: CREATE TABLE u (id INT PRIMARY KEY, v INT) ENGINE=InnoDB
c: INSERT INTO u VALUES (1, 0), (2, 0), (3, 0) ;; BEGIN ;; UPDATE u SET v = v + 1 WHERE id IN (1, 3)
d: BEGIN ;; UPDATE u SET v = 1 WHERE id = 2
d waits: UPDATE u SET v = 1 WHERE id = 1
  c: UPDATE u SET v = 2 WHERE id = 2
d goes on
e: SELECT v FROM u WHERE id = 0
d: SHOW WARNINGS ;; SELECT 1
c: ROLLBACK

# What restores a session may warn itself (on MySQL a SET of a character set that is deprecated): a
# text that asks and pins does not read that.
story what_restores_a_session_leaves_nothing_to_a_text_that_asks
for asks:
- SHOW WARNINGS
- SHOW COUNT(*) WARNINGS
- SELECT @@warning_count
- GET DIAGNOSTICS @n = NUMBER; SELECT @n
  for into:
  - $schema
  - shop
    c, d joins with MULTI_STATEMENTS
    c: SET NAMES utf8mb3 ;; DO 1
    d: SET NAMES utf8mb4 ;; DO 1 ;; USE $into
    c: $asks; EXECUTE no_such_name => or error 1235
    c reset
  end
end

# Forms that hardly anybody sends are answered by the backend of the statement before, or refused.
story rare_questions_go_to_the_last_backend_or_are_refused
let texts = @a = CLASS_ORIGIN, @b = TABLE_NAME, @c = MESSAGE_TEXT, @d = MYSQL_ERRNO
for asks:
- GET DIAGNOSTICS CONDITION 1 $texts
- GET DIAGNOSTICS CONDITION 5 @d = MYSQL_ERRNO
- GET DIAGNOSTICS CONDITION @one @d = MYSQL_ERRNO
- RESIGNAL
- GET STACKED DIAGNOSTICS @d = NUMBER
- SHOW WARNINGS LIMIT
- SHOW COUNT(1) WARNINGS
- SELECT 1 + @@warning_count + 1
- SHOW WARNINGS; SELECT 1
- SELECT FOUND_ROWS(); SELECT 1
  for before:
  - SELECT 1 / 0
  - SELECT * FROM missing
  - SIGNAL SQLSTATE '45001' SET MESSAGE_TEXT = 'on purpose', TABLE_NAME = 'mine'
    a: SET @a = 1, @b = 1, @c = 1, @d = 1, @one = 1 ;; $before
    a: $asks => or error 1235
    a: SHOW WARNINGS => or error 1235
    a: $before
    b: SELECT CAST('other' AS SIGNED)
    a: $asks => or error 1235
    a: SELECT 3 FROM information_schema.SCHEMATA LIMIT 1 ;; SHOW WARNINGS
  end
end

# What no server has seen is told as an error, and nothing older is shown behind it.
story errors_that_the_pool_finds_itself_are_the_clients_last
backends 2
for begin:
- DO 1
- BEGIN
  for before:
  - SELECT 1 / 0
  - SELECT 1
  - SELECT * FROM no_such_table
    a: $begin ;; $before
    a command 0x17: \x4d\x00\x00\x70\x00\x01\x00\x00\x00
    b: SELECT 1 / 0, 2 / 0
    a: SHOW WARNINGS => or error 1235
    a command 0x1c: \xff\xff\x00\x00\x01\x00\x00\x00
    a: SELECT ROW_COUNT() ;; SELECT 1 / 0 ;; SHOW WARNINGS ;; ROLLBACK
  end
end

# What the statement before an error of the pool's own has left is not shown behind that.
story nothing_old_is_shown_behind_an_error_of_the_pool
for others:
- watch nothing
- b: SELECT CAST('other' AS SIGNED)
  for before:
  - SELECT * FROM nothing
  - SELECT 1 / 0
  - DO 1
    for asks:
    - SHOW WARNINGS
    - SELECT @@warning_count
      a: $before
      a: SELECT 1; KILL 4294967295 => pool: error 1235
      $others
      a: $asks => pool: error 1235
    end
    a: $before
    a: SELECT 1; KILL 4294967295 => pool: error 1235
    a: SELECT ROW_COUNT() => pool: -1
    # What clears conditions clears that one too.
    a: SELECT COUNT(*) FROM t
    a: SHOW WARNINGS
  end
end

# A text that no server can parse gets the server's error, wherever the client's last statement ran.
story what_cannot_be_parsed_asks_about_nothing
for asks:
- GET
- GET CURRENT
- GET DIAGNOSTICS
- GET DIAGNOSTICS CONDITION 1
- SHOW WARNINGS LIMIT
  for before:
  - SELECT * FROM missing
  - SELECT 1
    a: $before
    b: $other
    a: $asks => error 1064
    b: $other
    a: SHOW WARNINGS => or error 1235
  end
end

# What was kept of conditions is shown in the character set of its statement alone. Behind SET NAMES
# there is an error instead that says what to do.
story warnings_behind_set_names_are_shown_in_the_character_set_of_their_statement_or_refused
for sets, answer:
- SET @x = 1 | well
- SET NAMES latin1 | or error 1235 run both statements again, in one transaction
  a: SELECT CAST('x' AS SIGNED)
  b: DO 1
  a: $sets
  b: DO 1
  a: SHOW WARNINGS => $answer
  a reset
end

# A warning that stored code raises by itself names no row of a statement before.
story a_warning_of_stored_code_names_the_same_row_anywhere
only mariadb
a: CREATE TABLE rows_of (a INT)
a: CREATE PROCEDURE p() BEGIN DECLARE x TINYINT; SET x = 999; END
a: CREATE FUNCTION f() RETURNS INT NO SQL BEGIN DECLARE x TINYINT; SET x = 999; RETURN 1; END
a: INSERT INTO rows_of VALUES (1), (2), (3)
for mode:
- ''
- 'STRICT_ALL_TABLES'
  a: SET sql_mode = $mode
  for before:
  - INSERT INTO rows_of VALUES (1), ('x')
  - INSERT INTO rows_of SELECT a FROM rows_of LIMIT 2
  - UPDATE rows_of SET a = a + 1
  - ALTER TABLE rows_of MODIFY a BIGINT
    for call:
    - CALL p()
    - SELECT f()
      a: $before
      b: SELECT 1
      a: $call ;; SHOW WARNINGS
    end
  end
end
