# FOUND_ROWS() of queries that count otherwise than they send, asked after another client has used
# the backend.
#
# One backend for two clients: nobody may be pinned, or the other would wait in vain. Where stored
# code pins, there are more.
a, b joins with MULTI_STATEMENTS without SESSION_TRACK
a: CREATE TABLE t (id INT PRIMARY KEY, v INT) ;; INSERT INTO t VALUES (1, 1), (2, 2), (3, 3), (4, 4)
a: CREATE TABLE w (a INT)
a, b: SELECT v FROM t

# At once, and behind another client.
story queries_that_count_more_than_they_send_pin_nobody
for expected, before:
-  | SELECT v FROM t LIMIT 3
-  | SELECT SQL_CALC_FOUND_ROWS v FROM t LIMIT 1
-  | SELECT SQL_CALC_FOUND_ROWS v FROM t ORDER BY v LIMIT 0
-  | SELECT SQL_CALC_FOUND_ROWS v, CAST('x' AS SIGNED) FROM t LIMIT 1
-  | SHOW TABLES
-  | SHOW FULL COLUMNS FROM t
-  | SHOW CREATE TABLE t
-  | SHOW VARIABLES LIKE 'no such'
-  | INSERT INTO w VALUES (1), (2)
- => or error 1235 | SELECT v FROM t LIMIT 1 OFFSET 1
- => or error 1235 | SELECT v FROM t LIMIT 9, 1
- => or error 1235 | SELECT v FROM t UNION SELECT 9 LIMIT 2
- => or error 1235 | SELECT 7 INTO @a
- => or error 1235 | WITH x AS (SELECT 1 AS n) SELECT n FROM x
  a: $before ;; SELECT FOUND_ROWS() ;; $before
  b: SELECT v FROM t WHERE id < 3
  a: SELECT FOUND_ROWS() AS n $expected
  b: SELECT FOUND_ROWS() AS n
end

# WordPress and others ask right behind such a query; warnings that it leaves stay.
story rows_that_a_query_was_to_calculate_are_told_to_a_crowd
let all = SELECT SQL_CALC_FOUND_ROWS v FROM t LIMIT 1
let two = SELECT SQL_CALC_FOUND_ROWS v FROM t WHERE id < 3 LIMIT 1
a: $all
b: $two
a: $all
b: $two
for asks:
- SHOW COUNT(*) ERRORS
- SELECT FOUND_ROWS()
  a: $all
  b: $two
  a, b: $asks
end
a: BEGIN ;; $all ;; COMMIT
b: SELECT v FROM t WHERE id < 3
a: SELECT FOUND_ROWS() ;; $all ;; UPDATE w SET a = 1
b: SELECT v FROM t WHERE id < 3
a: SELECT FOUND_ROWS() => or error 1235

# Another client's number is not told behind a query that begins with VALUES. A text that MySQL
# cannot read is quoted in its error, with the answer in it. One that asks may have been refused, and
# has not run then.
story queries_in_parentheses_may_begin_with_values
if mysql
  let row = ROW
end
if mariadb
  let row =
end
let between = SELECT 2 UNION SELECT 3 UNION SELECT 4
for found:
- 2
- 0
  for before:
  - INSERT INTO w SET a = (VALUES (3))
  - REPLACE INTO w VALUES ((VALUES (3)))
  - SELECT v FROM t WHERE id = (VALUES (1), (2))
  - SET @x = (VALUES (1))
  - DO (VALUES (1))
  - INSERT INTO w VALUES (1) RETURNING (VALUES (1))
  - INSERT INTO w SET a = (TABLE w LIMIT 1)
  - SET @x = (TABLE w LIMIT 1)
    a: SELECT v FROM t WHERE id <= $found
    b: $between
    a: $before => or error 1235
    b: $between
    a: SELECT FOUND_ROWS() => or error 1235
    a reset
  end
  for before:
  - SELECT (VALUES ${row}(1)), FOUND_ROWS()
  - SET @f = FOUND_ROWS() + (VALUES ${row}(0))
    a: SELECT v FROM t WHERE id <= $found
    b: $between
    a: $before => or error 1235
    b: $between
    a reset
  end
end

# What a text makes of the number that was there before, whatever that was. Where the backend did
# not have their client's, a question is refused.
story what_counts_or_keeps_the_number_is_followed
for expected, before:
-  | DELETE FROM w WHERE a = 7
- => or error 1235 | UPDATE t SET v = v + 1
- => or error 1235 | UPDATE t SET v = v WHERE id = 2
- => or error 1235 | UPDATE t SET v = v WHERE id = 77
- => or error 1235 | UPDATE t SET v = v WHERE 1 = 0
- => or error 1235 | UPDATE t SET v = v WHERE id IN (SELECT a FROM w)
- => or error 1235 | UPDATE t SET v = (SELECT COUNT(*) FROM w) WHERE id < 3
- => or error 1235 | UPDATE t, w SET t.v = 1 WHERE t.id = w.a
- => or error 1235 | DELETE FROM w WHERE a IN (SELECT id FROM t)
- => or error 1235 | DELETE w FROM w JOIN t ON w.a = t.id
- => or error 1235 | INSERT INTO w SELECT id FROM t LIMIT 3
- => or error 1235 | INSERT INTO w SELECT 1
- => or error 1235 | INSERT INTO w (a) VALUES ((SELECT COUNT(*) FROM t))
- => or error 1235 | EXPLAIN SELECT v FROM t
- => or error 1235 | EXPLAIN SELECT 1 UNION SELECT 2
- => or error 1235 | DESCRIBE t
- => or error 1235 | CHECK TABLE t
- => or error 1235 | FLUSH TABLES
- => or error 1235 | SET @a = (SELECT COUNT(*) FROM t)
- => or error 1235 | CREATE TABLE made SELECT v FROM t
- => or error 1235 | DROP TABLE IF EXISTS made
- => or error 1235 | KILL 0
- => or error 1235 | SELECT v, IF(id = 3, POW(9999, 9999), 1) FROM t
- => or error 1235 | SELECT v FROM t ORDER BY IF(id = 3, POW(9999, 9999), 1)
- => or error 1235 | INSERT INTO t VALUES (1, 1)
- => or error 1235 | UPDATE t SET id = 1
- => or error 1235 | SHOW ENGINES
  for number:
  - id < 1
  - id < 3
  - id < 5
    for others:
    - id < 2
    - id < 1
      a: SELECT v FROM t WHERE $number
      b: SELECT v FROM t WHERE $others
      a: $before
      b: SELECT v FROM t WHERE $others
      a: SELECT FOUND_ROWS() AS n $expected
    end
  end
end

# A number outlives its session.
story a_number_outlives_a_reset
for others:
- watch nothing
- b: SELECT v FROM t WHERE id = 1
  a: SELECT v FROM t
  $others
  a reset
  b: SELECT v FROM t WHERE id = 1
  a: SELECT FOUND_ROWS()
end

story a_text_asks_what_it_has_counted_itself
for text:
- SELECT SQL_CALC_FOUND_ROWS v FROM t LIMIT 1; SELECT FOUND_ROWS()
- SELECT v FROM t LIMIT 1; SELECT FOUND_ROWS(), ROW_COUNT()
- UPDATE t SET v = v + 1; SELECT ROW_COUNT()
- SELECT 1 / 0 FROM t; GET DIAGNOSTICS @n = NUMBER; SELECT @n
  for before:
  - SELECT v FROM t
  - SELECT 1 / 0, 2 FROM t
  - INSERT INTO w VALUES (1)
    a: $before
    b: SELECT 1 / 0 FROM t WHERE id = 1
    a: $text
    b: SELECT v FROM t WHERE id < 3
    a: SELECT FOUND_ROWS() => or error 1235
  end
end

story stored_code_counts_or_leaves_the_number_as_it_was
backends 3
a: CREATE PROCEDURE counts() SELECT SQL_CALC_FOUND_ROWS v FROM t LIMIT 1
a: CREATE PROCEDURE leaves() SET @x = 1
a: CREATE FUNCTION f() RETURNS INT RETURN (SELECT COUNT(*) FROM t)
for call:
- CALL counts()
- CALL leaves()
- SELECT f(), 2
- SELECT f() FROM t
  c joins without SESSION_TRACK
  c: SELECT v FROM t WHERE id < 4
  b: SELECT v FROM t WHERE id < 3
  c: $call
  b: SELECT 1
  c: SELECT FOUND_ROWS() => or error 1235
  c reset
end

# On MySQL an UPDATE that fails has counted the rows that it has matched. Nobody is told those of a
# SELECT before it.
story an_update_that_fails_leaves_no_older_count
only mysql
a: CREATE TABLE two (id INT PRIMARY KEY, a INT UNIQUE) ;; INSERT INTO two VALUES (1, 1), (2, 3)
for behind:
- SELECT 1
- INSERT INTO two VALUES (9, 9)
  a: SELECT v FROM t WHERE id < 3
  b: SELECT v FROM t WHERE id < 4
  a: UPDATE two SET a = 3 WHERE id = 1
  b: SELECT v FROM t WHERE id < 4
  a: $behind
  b: SELECT v FROM t WHERE id < 4
  a: SELECT FOUND_ROWS() => or error 1235
end

# A client that waits for a backend gets one where another client's error has just been asked about:
# what clears that counts on MySQL, and so does what the pool asks there.
story what_goes_out_ahead_of_a_question_is_not_counted
for error:
- SELECT * FROM nowhere
- SELECT 1 / 0 FROM t LIMIT 2
  for round:
  - 1
  - 2
  - 3
  - 4
  - 5
    a, b: SELECT v FROM t WHERE id < 4
    together
    b: $error
    a: SELECT FOUND_ROWS(), ROW_COUNT()
    end
    a: SELECT FOUND_ROWS(), ROW_COUNT()
  end
end

# What a backend is brought into its client's session with may warn, and is no statement of the
# client's: nothing that counts on MySQL comes between that and a question. What has `infile` in it
# is not sent behind its session in one text.
story what_warns_in_front_of_a_question_takes_no_count_away
only mysql
c joins without SESSION_TRACK
b: USE information_schema
c: SET default_collation_for_utf8mb4 = utf8mb4_general_ci
for asks:
- SELECT FOUND_ROWS()
- SELECT FOUND_ROWS() AS `infile`
  c: SELECT v FROM t WHERE id < 3
  b: SELECT v FROM $schema.t WHERE id < 3
  c: $asks => or error 1235
  c: SELECT v FROM t WHERE id < 3
  b: SELECT v FROM $schema.t WHERE id < 3
  together
  b: SELECT v FROM $schema.t WHERE id < 3 AND SLEEP(0.1) = 0
  c: $asks
  end
end

# An UPDATE that matches nothing leaves it to the server which number counts; one that warns besides
# has conditions, which that question must not take away.
story an_update_that_matches_nothing_keeps_its_warnings
a: SET sql_mode = ''
for asks:
- SHOW WARNINGS
- SELECT @@warning_count
- SELECT FOUND_ROWS()
  for before:
  - UPDATE t SET v = 1 WHERE v = '77abc'
  - UPDATE t SET v = 1 WHERE v = CAST('77abc' AS SIGNED)
    a: SELECT v FROM t ;; $before ;; $asks ;; SELECT v FROM t ;; $before
    b: SELECT 1
    a: $asks => or error 1235
  end
end

# MariaDB counts the rows so far of the same text: nobody is told those of a statement before.
story a_text_that_counts_itself_is_answered_or_refused
for asks:
- SELECT ROW_COUNT() UNION ALL SELECT FOUND_ROWS()
- SELECT 7 UNION ALL SELECT FOUND_ROWS() UNION ALL SELECT FOUND_ROWS()
- SELECT FOUND_ROWS() FROM (SELECT 1) x
- SELECT FOUND_ROWS(), id FROM t WHERE id IN (SELECT 1 UNION SELECT 2) ORDER BY id
- SELECT * FROM (SELECT FOUND_ROWS()) x
- (SELECT FOUND_ROWS())
- SELECT (SELECT FOUND_ROWS())
- SET @f = (SELECT FOUND_ROWS())
  for between:
  - watch nothing
  - b: SELECT 1
    a: SET @f = NULL ;; SELECT v FROM t LIMIT 3
    $between
    a: $asks => or error 1235
  end
end

# Names of tables, columns, keys and views are no calls, whatever they are. What is asked of the
# statement before is not at hand any more.
story names_like_those_of_the_questions_are_no_questions
backends 2
a: DROP TABLE t ;; DROP TABLE w ;; CREATE TABLE t (v INT)
for mode:
-
- IGNORE_SPACE
  a: SET sql_mode = '$mode'
  for name:
  - found_rows
  - row_count
  - last_insert_id
  - connection_id
    for text:
    - CREATE TABLE $name (a INT, b INT, KEY $name (a))
    - INSERT INTO $name (a, b) VALUES (1, 2)
    - INSERT INTO $name(a) VALUES (3)
    - INSERT INTO $name () VALUES ()
    - REPLACE INTO $name(b) SELECT v FROM t
    - CREATE INDEX ${name}_b ON $name(b)
    - ALTER TABLE $name ADD INDEX row_count(b, a), ADD KEY (a)
    - CREATE TABLE r (a INT, FOREIGN KEY $name(a) REFERENCES $name(a))
    - DROP TABLE r
    - WITH $name(a) AS (SELECT 5) SELECT * FROM $name
    - SELECT $name.a FROM $name WHERE $name.a IN (1, 2)
    - CREATE VIEW w($name) AS SELECT 1
    - SELECT $name, (SELECT 2) FROM w
    - SELECT 1 FROM w AS $name(a)
    - SELECT $name() IS NULL AS n
    - SELECT $name (7)
    - DROP VIEW w
    - DROP TABLE $name
      a: UPDATE t SET v = 1 ;; SELECT * FROM t UNION SELECT 1
      b: INSERT INTO t VALUES (1) ;; DELETE FROM t ;; BEGIN ;; DO 1 ;; SELECT v FROM t
      a: $text
      b: COMMIT
    end
  end
end

# What the pool puts in place of a question has the name of the question, in RETURNING too. What a
# thread found for its last session is no answer of this one.
story a_column_of_returning_is_named_as_on_the_server
only mariadb
a: DROP TABLE t ;; CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT) ;; SELECT 1
let asks = INSERT INTO t (v) VALUES (1), (2) RETURNING id, ROW_COUNT(), FOUND_ROWS()
a prepare p: $asks
for round:
- 1
- 2
  b: SELECT 1
  a: $asks => or error 1235
  b: SELECT 1
  a execute p () => or error 1235
  b: SELECT 1
  a: DELETE FROM t WHERE v = 1 RETURNING id, ROW_COUNT() AS n
end
