# Stored code that asks first what the statement before its call left.
#
# One backend for two clients. After another client has used it the call is refused; in the
# transaction of that statement the server answers. Such code pins its client, which then resets its
# session so that the other gets a backend again.
let other = SELECT CAST('other' AS SIGNED) FROM t WHERE id < 4
let hold = BEGIN /* now */
a, b joins with MULTI_STATEMENTS without SESSION_TRACK
a: CREATE TABLE t (id INT PRIMARY KEY, v INT) ;; INSERT INTO t VALUES (1, 1), (2, 2), (3, 3), (4, 4)
a: CREATE TABLE w (a INT) ;; CREATE PROCEDURE counted() SELECT ROW_COUNT(), FOUND_ROWS()
a: CREATE PROCEDURE got() BEGIN GET DIAGNOSTICS @r = ROW_COUNT, @n = NUMBER; SELECT @r, @n; END
a: CREATE PROCEDURE warned() SHOW WARNINGS
a: CREATE FUNCTION rows_before() RETURNS INT DETERMINISTIC RETURN ROW_COUNT()
a, b: SELECT v FROM t

# The first statement of a text runs, and asks, though the next is none.
story a_text_that_asks_first_and_goes_on_with_nonsense_is_refused_elsewhere
for asks:
- SELECT ROW_COUNT()
- SELECT FOUND_ROWS()
- SELECT ROW_COUNT(), FOUND_ROWS()
- SELECT @@warning_count
- GET DIAGNOSTICS @r = ROW_COUNT
- SHOW WARNINGS
  for behind:
  - 'x'
  - SELEC 1
  - 'x'; SELECT @@warning_count
    for before:
    - INSERT INTO w VALUES (1), (2)
    - SELECT 1 / 0, CAST('x' AS SIGNED)
      a: $before
      a ping
      a: $asks; $behind => or error 1235
      a reset
      a: $before
      b: SELECT v, CAST('y' AS SIGNED) FROM t
      a: $asks; $behind => or error 1235
      a reset
    end
  end
end

# What counts, for FOUND_ROWS() of 0, 1 and more, in sessions that stand as the backend or not.
story what_another_client_has_made_of_the_backend_is_not_told
for before:
- SELECT v FROM t WHERE id < 3
- SELECT v FROM t WHERE id < 3 ;; DO 0
- SELECT v FROM t ;; SET @a = 1
- SELECT v FROM t LIMIT 0 ;; INSERT INTO w VALUES (1)
- SELECT v FROM t LIMIT 1 ;; INSERT INTO w VALUES (1)
- SELECT v FROM t ;; INSERT INTO w VALUES (1)
- SELECT v FROM t ;; INSERT INTO w VALUES (1), (2), (3)
- SELECT v FROM t ;; DELETE FROM w WHERE a > 0
- SELECT v FROM t ;; UPDATE t SET v = v + 1 ;; SET NAMES latin1
- SET NAMES latin1 ;; SELECT v FROM t ;; UPDATE t SET v = v + 1
- SET @@sql_select_limit = 5 ;; SELECT v FROM t ;; INSERT INTO w VALUES (1)
- CREATE TABLE x (a INT) ;; DROP TABLE x
  a: $before
  b: $other
  a: CALL counted() => pool: error 1235
  a reset
  b: INSERT IGNORE INTO t VALUES (1, 1), (2, 2)
end
for before:
- SELECT v FROM t ;; SET @a = 1
- SELECT v FROM t ;; INSERT INTO w VALUES (1)
- SELECT v FROM t ;; UPDATE t SET v = v + 1 ;; SET NAMES latin1
  for asks:
  - CALL got() => pool: error 1235
  - SELECT rows_before() => pool: error 1235
  - CALL warned()
  - SET @x = 1; CALL counted() => pool: error 1235
    a: $before
    b: $other
    a: $asks
    a reset
    b: INSERT IGNORE INTO t VALUES (1, 1), (2, 2)
  end
  if mariadb
    a: $before
    b: $other
    a: EXECUTE IMMEDIATE 'CALL counted()' => pool: error 1235
    a reset
    b: INSERT IGNORE INTO t VALUES (1, 1), (2, 2)
  end
end

# SHOW WARNINGS as what code begins with, in a routine or a block of the text's own.
story code_that_shows_the_warnings_of_before_is_answered_or_refused
a: CREATE PROCEDURE shown() BEGIN IF 1 THEN SHOW ERRORS; END IF; END
a: CREATE PROCEDURE numbered() SHOW COUNT(*) WARNINGS
for asks:
- CALL warned()
- CALL shown()
- CALL numbered()
- SET @x = 1; CALL warned()
- BEGIN NOT ATOMIC SHOW WARNINGS; END
- BEGIN NOT ATOMIC SHOW COUNT(*) WARNINGS; END
- BEGIN NOT ATOMIC CALL warned(); END
- IF 1 THEN SHOW ERRORS; END IF
- CASE 1 WHEN 1 THEN SHOW WARNINGS; END CASE
- FOR i IN 1..1 DO SHOW WARNINGS; END FOR
- REPEAT SHOW WARNINGS; UNTIL 1 END REPEAT
- l: LOOP SHOW WARNINGS; LEAVE l; END LOOP
- SET STATEMENT lock_wait_timeout = 3 FOR IF 1 THEN SHOW WARNINGS; END IF
- SET STATEMENT lock_wait_timeout = 3 FOR CALL warned()
- EXECUTE IMMEDIATE 'BEGIN NOT ATOMIC SHOW WARNINGS; END'
  for warned:
  - SELECT CAST('1x' AS SIGNED) FROM t LIMIT 1
  - SELECT no_such_column
    for between:
    - watch nothing
    - b: SELECT 2 UNION SELECT 3
      a: $warned
      $between
      a: $asks => or error 1235
      a reset
    end
  end
end

# What the error says: in one transaction.
story in_one_transaction_the_server_answers
for before, asks:
- SELECT v FROM t WHERE id < 3 | CALL counted()
- SELECT v FROM t LIMIT 0 ;; INSERT INTO w VALUES (1) | CALL counted()
- SELECT v FROM t ;; INSERT INTO w VALUES (1) | CALL got()
- SELECT v FROM t ;; INSERT INTO w VALUES (1), (2), (3) | SELECT rows_before()
  a: $hold ;; $before ;; $asks ;; COMMIT
  a reset
  b: $other ;; SELECT v FROM t
end

# What else such a text pins for makes it no text that asks.
story a_text_that_also_pins_for_another_cause_runs_unknown_code
a: CREATE FUNCTION locking() RETURNS INT DETERMINISTIC RETURN GET_LOCK('$schema', 0)
for text:
- CREATE TEMPORARY TABLE mine AS SELECT locking() AS x
- SELECT GET_LOCK('${schema}_b', 0), locking()
  a: INSERT INTO w VALUES (1), (2)
  b: $other
  a: $text
  a reset
  b: SELECT v FROM t
  a prepare p: $text
  a: INSERT INTO w VALUES (1), (2)
  b: $other
  a execute p ()
  a reset
end

# Functions that are no keywords are called by a quoted name as well. Who defines such a view has
# named it. The trigger is not on a table of other stories: the pool may know it for a moment longer.
story what_quotes_the_name_of_a_question_asks_too
a: CREATE TABLE quoted_rows (a INT)
for code, asks:
- VIEW found_before AS SELECT `FOUND_ROWS`() AS f | SELECT f FROM found_before
- FUNCTION quoted() RETURNS INT DETERMINISTIC RETURN `found_rows`() | SELECT quoted()
- PROCEDURE quotes() SELECT `Found_Rows` () | CALL quotes()
- TRIGGER x BEFORE INSERT ON quoted_rows FOR EACH ROW SET NEW.a = `found_rows`() | INSERT INTO quoted_rows VALUES (0)
  a: CREATE $code
  a reset
  a: SELECT v FROM t
  b: SELECT v FROM t WHERE id < 3
  a: $asks => pool: error 1235
  a reset
end
for before, asks:
- SELECT v FROM t | SELECT `found_rows`(), `connection_id`() > 0 AS c
- UPDATE t SET v = v + 1 | SELECT `row_count`() + 1 AS c
  a: $before
  b: SELECT v FROM t WHERE id < 3
  a: $asks
  a reset
end

story a_prepared_call_asks_too
for before:
- SELECT v FROM t LIMIT 1 ;; INSERT INTO w VALUES (1)
- SELECT v FROM t ;; INSERT INTO w VALUES (1)
- SELECT v FROM t ;; INSERT INTO w VALUES (1), (2), (3)
- SELECT v FROM t ;; DELETE FROM w WHERE a > 0
  a prepare p: CALL counted()
  a: $before
  b: $other
  a execute p () => pool: error 1235
  a reset
end

# As long as another backend is free, nobody takes the one about which its last client may ask. Two
# backends are open from here on.
story a_client_that_has_just_had_a_count_stays_on_its_backend
backends 2
a, b: $hold
a, b: COMMIT
for may_count:
- UPDATE t, w SET t.v = 7 WHERE t.id = w.a
- INSERT INTO w SELECT id FROM t
- DELETE FROM w WHERE a IN (SELECT id FROM t WHERE v = 1)
- EXPLAIN SELECT v FROM t
  a: SELECT v FROM t
  b: SELECT v FROM t WHERE id < 3
  a: $may_count
  b: SELECT v FROM t WHERE id < 2
  a: SELECT FOUND_ROWS()
end

# A function that looks at no table leaves MariaDB's conditions to what follows it in the text.
story a_text_that_asks_behind_a_function_is_answered_or_refused
a: CREATE FUNCTION twice(x INT) RETURNS INT DETERMINISTIC RETURN x * 2
for before:
- SELECT * FROM nowhere
- SELECT 1 / 0, v FROM t
- DO 3
  for asks:
  - SHOW WARNINGS
  - SELECT @@warning_count
  - SHOW COUNT(*) ERRORS
    a: $before
    b: SELECT v FROM t
    a: DO 1; SELECT twice(1); $asks => or error 1235
    a reset
  end
end

# What a trigger would store of the statement before is that of its own client, or nothing.
story triggers_ask_too
let insert = INSERT INTO counted_rows (a) VALUES (1), (2)
a: CREATE TABLE counted_rows (a INT, c INT, f INT)
a: CREATE TRIGGER counts BEFORE INSERT ON counted_rows FOR EACH ROW \
    SET NEW.c = ROW_COUNT(), NEW.f = FOUND_ROWS()
a: CREATE TABLE own_rows (a INT, c INT)
a: CREATE TRIGGER counts_own BEFORE INSERT ON own_rows FOR EACH ROW BEGIN \
    UPDATE t SET v = 0 WHERE id < 3; SET NEW.c = ROW_COUNT(); END
for before:
- SELECT v FROM t WHERE id < 3
- SELECT v FROM t WHERE id < 3 ;; DO 0
- SELECT v FROM t LIMIT 0 ;; INSERT INTO w VALUES (1)
- SELECT v FROM t ;; DELETE FROM w WHERE a > 0
- SELECT v FROM t ;; UPDATE t SET v = v + 1 ;; SET NAMES latin1
- SET @@sql_select_limit = 5 ;; SELECT v FROM t ;; INSERT INTO w VALUES (1)
- CREATE TABLE x (a INT) ;; DROP TABLE x
  a: $before
  b: $other
  a: $insert => pool: error 1235
  a: TRUNCATE TABLE counted_rows
  # Nobody in between, or a transaction: the server answers.
  for held:
  - DO 0
  - $hold
    a: $held ;; SELECT v FROM t WHERE id < 3 ;; UPDATE t SET v = v + 1 ;; $insert ;; COMMIT
    a: SELECT * FROM counted_rows
    a reset
  end
  b: TRUNCATE TABLE counted_rows
  # This one asks about a statement of its own.
  a: INSERT INTO own_rows (a) VALUES (1), (2) ;; SELECT * FROM own_rows
  a prepare p: $insert
  b: SELECT v FROM t WHERE id < 2
  a execute p () => pool: error 1235
  a: TRUNCATE TABLE counted_rows
end

# The call of a routine asks what the triggers that it fires and the views that it reads ask.
story routines_ask_through_triggers_and_views
a: CREATE TABLE counted_rows (a INT, c INT)
a: CREATE TRIGGER counts BEFORE INSERT ON counted_rows FOR EACH ROW SET NEW.c = ROW_COUNT()
a: CREATE VIEW counting AS SELECT ROW_COUNT() AS c
a: CREATE PROCEDURE fires() INSERT INTO counted_rows (a) VALUES (1)
a: CREATE PROCEDURE looks() SELECT c + 0 FROM counting ;; CREATE PROCEDURE calls() CALL fires()
a: CREATE VIEW rows_view AS SELECT a FROM counted_rows
a: CREATE VIEW over_rows AS SELECT a FROM rows_view WHERE a < 9
a: CREATE PROCEDURE through() INSERT INTO over_rows (a) VALUES (1)
a reset
for call:
- CALL fires()
- CALL looks()
- CALL calls()
- CALL through()
- INSERT INTO rows_view (a) VALUES (1)
- REPLACE over_rows (a) VALUES (1)
  a: INSERT INTO w VALUES (1), (2), (3)
  b: SELECT v FROM t WHERE id < 3
  a: $call => pool: error 1235
  a reset
  a: TRUNCATE TABLE counted_rows ;; $hold ;; INSERT INTO w VALUES (1), (2), (3) ;; $call
  a: SELECT * FROM counted_rows ;; COMMIT
  a reset
  b: TRUNCATE TABLE counted_rows
end

# On MariaDB a query of no table leaves the conditions before it to what stands behind.
story a_text_that_asks_in_its_second_statement_is_answered_or_refused
for before:
- SELECT * FROM nowhere
- SELECT 1 / 0, v FROM t
- DO 3
  for text:
  - SELECT 1; SHOW WARNINGS
  - SELECT 1; SELECT @@warning_count
  - SHOW WARNINGS; SELECT ROW_COUNT()
  - SELECT v FROM t WHERE id = 9; SHOW WARNINGS
    a: $before
    b: SELECT v FROM t
    a: $text; PREPARE s FROM 'SELECT 5' => or error 1235
    a reset
  end
end

# A text that changes how its rest is read is read as far as its first statement.
story code_asks_in_front_of_what_changes_how_a_text_is_read
for text:
- CALL counted(); SET sql_mode = ''
- SELECT rows_before(); SET NAMES latin1
- CALL counted(); SET character_set_client = latin1; SELECT 1
  a: UPDATE t SET v = v + 1
  b: SELECT v FROM t
  a: $text => or error 1235
  a reset
  a: UPDATE t SET v = v + 1 ;; $text => or error 1235
  a reset
end

# A question behind what changes how it is read is answered from its own client's statement, or
# refused.
story a_text_asks_behind_what_changes_how_it_is_read
for text:
- SET sql_mode = ''; SHOW WARNINGS
- SET sql_mode = DEFAULT; SET character_set_filesystem = 'binary'; SHOW WARNINGS
- SET sql_mode = ''; SELECT @@warning_count, @@error_count
- SET sql_mode = ''; SHOW COUNT(*) WARNINGS
- SET NAMES latin1; SHOW WARNINGS
- SET sql_mode = 'ANSI_QUOTES'; SELECT ROW_COUNT(), FOUND_ROWS()
  for before:
  - DROP TABLE nosuch
  - SELECT CAST('own' AS SIGNED)
  - DO 1
    a: $before
    b: SELECT CAST('other' AS SIGNED), v FROM t
    a: $text => or error 1235
    a reset
  end
end

# What a view shows of the statement before is that of its own client, or nothing.
story views_ask_too
a: CREATE VIEW counted_view AS SELECT ROW_COUNT() AS c, FOUND_ROWS() AS f
a: CREATE VIEW over_view AS SELECT f + 1 FROM counted_view
a: CREATE VIEW calling_view AS SELECT rows_before() ;; CREATE VIEW plain_view AS SELECT v FROM t
a reset
for asks:
- SELECT * FROM counted_view
- SELECT * FROM over_view
- SELECT * FROM calling_view
- INSERT INTO w SELECT f FROM counted_view
  a: SELECT v FROM t WHERE id < 3
  b: $other
  a: $asks => pool: error 1235
  b: SELECT v FROM t WHERE id < 2
  a: SELECT v FROM plain_view ;; SHOW CREATE VIEW counted_view
  # A transaction: the server answers.
  a: BEGIN ;; SELECT v FROM t WHERE id < 3 ;; $asks ;; COMMIT
  a reset
end

# The pool reads back what a statement has warned of, or why it failed. That changes nothing that
# code could ask for.
story behind_a_warning_code_asks_where_nobody_else_has_been
for before:
- SELECT CAST('own' AS SIGNED)
- SELECT CAST('own' AS SIGNED) FROM t WHERE id < 4
  for asks:
  - CALL counted()
  - CALL got()
  - SELECT rows_before()
    a: SELECT v FROM t ;; $before ;; $asks
    a reset
    b: SELECT 1
  end
end

# A session that starts over has counted nothing; its backend has, whatever the pool has said there
# since. What the first of several leaves comes too late for its own trigger.
story a_session_that_has_started_over_asks_about_nothing_that_was_before
a: CREATE TABLE counted_rows (a INT, c INT, f INT)
a: CREATE TRIGGER counts BEFORE INSERT ON counted_rows FOR EACH ROW \
    SET NEW.c = ROW_COUNT(), NEW.f = FOUND_ROWS()
for asks:
- INSERT INTO counted_rows (a) VALUES (1)
- INSERT INTO counted_rows (a) VALUES (1); SELECT c, f FROM counted_rows
- SELECT v FROM t; INSERT INTO counted_rows (a) VALUES (1)
- CALL counted()
  for before:
  - SELECT v FROM t
  - UPDATE t SET v = v + 1
  - DO 0
    for starts:
    - reset
    - becomes with MULTI_STATEMENTS
      c joins with MULTI_STATEMENTS
      c: $before
      c $starts
      c: $asks => or error 1235
      c reset
      a: TRUNCATE TABLE counted_rows
    end
  end
end
