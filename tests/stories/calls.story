# Calls of stored code: what is known to leave nothing that nobody follows pins nobody.
#
# Two clients on one backend run such calls and ask what each left: a pin would leave the other
# without a backend, and what it met of the other's would show. Before its first query a session of
# MariaDB has what its thread's last one found.
let asks = SELECT ROW_COUNT() ;; \
  SELECT LAST_INSERT_ID(), IFNULL(@seen, 'none'), @@div_precision_increment ;; \
  SELECT COUNT(*), MAX(v) FROM log ;; SELECT COUNT(*), MAX(v) FROM t
a, b joins with MULTI_STATEMENTS without SESSION_TRACK
a: CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v INT UNIQUE) ;; INSERT INTO t (v) VALUES (1), (2), (3)
a: CREATE TABLE log (v INT)
a: CREATE TRIGGER tr AFTER INSERT ON t FOR EACH ROW INSERT INTO log VALUES (NEW.v)
a: CREATE PROCEDURE selects(a INT) SELECT COUNT(*) FROM t WHERE v >= a
a: CREATE PROCEDURE inserts(a INT) INSERT INTO t (v) VALUES (a)
a: CREATE PROCEDURE gives(a INT, OUT b INT) BEGIN SELECT a + 1 INTO b; END
a: CREATE PROCEDURE fails() BEGIN DO 1; SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no'; END
a: CREATE FUNCTION half(a INT) RETURNS INT DETERMINISTIC RETURN a / 2
b: SELECT v FROM t

story calls_whose_code_is_known_pin_nobody
a: CREATE PROCEDURE updates() UPDATE t SET v = -v
a: CREATE PROCEDURE changes(INOUT a VARCHAR(9)) BEGIN SET a = CONCAT(a, '!'); DO 1; END
a: CREATE PROCEDURE finds() SELECT SQL_CALC_FOUND_ROWS v FROM t LIMIT 1
a: CREATE PROCEDURE numbers() UPDATE t SET v = LAST_INSERT_ID(77) WHERE v = 9999
a: CREATE PROCEDURE warns() SELECT CAST('x' AS SIGNED)
a: CREATE PROCEDURE handles() BEGIN DECLARE n INT; DECLARE EXIT HANDLER FOR SQLEXCEPTION \
    BEGIN GET DIAGNOSTICS CONDITION 1 n = MYSQL_ERRNO; SELECT n; END; \
    INSERT INTO t (v) SELECT MAX(v) FROM t; END
a: CREATE PROCEDURE commits(a INT) BEGIN START TRANSACTION; INSERT INTO t (v) VALUES (a); COMMIT; END
a: CREATE PROCEDURE rolls_back(a INT) BEGIN START TRANSACTION; INSERT INTO t (v) VALUES (a); \
    ROLLBACK; SELECT 1; END
a: CREATE FUNCTION notes(a INT) RETURNS INT BEGIN INSERT INTO log VALUES (a); \
    RETURN a + IFNULL(@seen, 0); END
a: CREATE PROCEDURE nests(a INT) BEGIN CALL inserts(half(a)); CALL selects(a); DO 1; END
a: CREATE PROCEDURE recurs(a INT) BEGIN IF a > 0 THEN CALL recurs(a - 1); END IF; SELECT a; END
a: CREATE PROCEDURE counts() BEGIN UPDATE t SET v = v + 100; SELECT ROW_COUNT(); END
a: CREATE PROCEDURE loops() BEGIN DECLARE done INT DEFAULT 0; DECLARE a INT; \
    DECLARE c CURSOR FOR SELECT v FROM t; DECLARE CONTINUE HANDLER FOR NOT FOUND SET done = 1; \
    DO 1; OPEN c; all_of: LOOP FETCH c INTO a; IF done THEN LEAVE all_of; END IF; END LOOP; \
    CLOSE c; SELECT a > 0; END
for call:
- CALL selects(2)
- CALL `SELECTS` (1)
- CALL inserts(10)
- CALL inserts(10)
- CALL updates
- CALL gives(5, @seen)
- SET @seen = 'a'; CALL changes(@seen)
- CALL changes(@seen); CALL selects(1); SELECT @seen
- CALL finds()
- CALL numbers()
- CALL warns()
- CALL fails()
- CALL handles()
- CALL commits(20)
- CALL rolls_back(30)
- CALL nests(8)
- CALL counts()
- CALL loops()
- SELECT half(8), half(half(20))
- SELECT notes(3)
- INSERT INTO t (v) VALUES (half(90))
- SELECT v FROM t WHERE v > half(2) LIMIT 2
- DO notes(4)
  a: $call
  b, a: $asks
end
a: SET max_sp_recursion_depth = 9 ;; CALL recurs(3)
b: $asks
for call:
- CALL fails()
- CALL warns()
  a: $call
  b: SELECT 1
  a: SHOW WARNINGS
end

# By the binary protocol, and under another default schema.
story prepared_calls_and_other_schemata_are_known
a prepare gives: CALL gives(?, @seen)
a prepare counts: CALL selects(?)
a prepare halves: SELECT half(?)
for n:
- 1
- 22
  for call:
  - gives
  - counts
  - halves
    a execute $call ('$n')
    b, a: $asks
  end
end
a: USE shop ;; CALL `$schema`.`selects`(1)
b: $asks

# A transaction that is left open keeps the backend as long as any other.
story a_transaction_that_a_procedure_opens_is_its_clients
a: CREATE PROCEDURE opens() BEGIN START TRANSACTION; INSERT INTO log VALUES (1); END
a: CALL opens() ;; SELECT COUNT(*) FROM log ;; COMMIT
b: $asks

# A routine gives the mode and the character sets back at its end. MySQL reports what the routine had
# with the rows that it sends before, and reports nothing at its end.
story what_a_procedure_has_for_itself_ends_with_it
backends 2
let probe = SELECT @@sql_mode, @@character_set_client, @@collation_connection, \
  @@character_set_results, @@time_zone, "w"
a: CREATE PROCEDURE sets_mode(m VARCHAR(80)) BEGIN SET sql_mode = m; SELECT @@sql_mode; END
a: CREATE PROCEDURE sets_names() BEGIN SET NAMES latin1; \
    SELECT @@character_set_client; SET time_zone = '+03:00'; SELECT 2; END
for call:
- CALL sets_mode('')
- SET sql_mode = ''
- CALL sets_mode('ANSI_QUOTES')
- SELECT 1; CALL sets_mode('ANSI_QUOTES'); SELECT 2
- SET sql_mode = 'NO_BACKSLASH_ESCAPES'; CALL sets_mode('ANSI_QUOTES')
- CALL sets_names()
  a: $call
  for held:
  - BEGIN /* now */
  - COMMIT
    b: $held
    a: $probe
  end
end

story anonymous_blocks_keep_their_backend
only mariadb
backends 2
for block:
- BEGIN NOT ATOMIC DECLARE n INT; SELECT COUNT(*) INTO n FROM t; SELECT n; END
- BEGIN NOT ATOMIC SET @seen = 5; CALL inserts(50); END
- IF 1 > 0 THEN UPDATE t SET v = v + 1000; ELSE DELETE FROM t; END IF
- CASE 2 WHEN 2 THEN SELECT 7 INTO @seen; END CASE
- FOR i IN 1..3 DO INSERT INTO log VALUES (i); END FOR
- BEGIN NOT ATOMIC DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN END; CALL fails(); END
- BEGIN NOT ATOMIC SET @seen = 'half'; SIGNAL SQLSTATE '45000'; END
  a: $block
  b: $asks
  a: SELECT LAST_INSERT_ID(), IFNULL(@seen, 'none') ;; SELECT COUNT(*), MAX(v) FROM log
  a: SELECT COUNT(*), MAX(v) FROM t
end

# Warnings of a function are counted in the reply, and nothing of before.
story statements_with_functions_count_their_own_warnings
a: CREATE FUNCTION looks() RETURNS INT RETURN (SELECT COUNT(*) FROM t)
a: CREATE FUNCTION warns() RETURNS INT DETERMINISTIC RETURN CAST('x' AS SIGNED)
for before:
- SELECT 1 / 0, 2 / 0
- SELECT * FROM missing
- SET time_zone = 'nowhere'
- INSERT IGNORE INTO t VALUES (1, 1)
  for function:
  - half(4)
  - looks()
  - warns()
  - half(looks())
    for sql:
    - SELECT $function
    - SELECT $function FROM t
    - DO $function
    - SET @q = $function
      a: $before
      b: SELECT CAST('other' AS SIGNED) FROM t
      a: $sql
    end
  end
end

# MySQL keeps types of stored code for as long as a session lasts; a client that leaves
# `div_precision_increment` alone has its own, whoever has run the code before.
story types_of_stored_code_are_not_those_of_another_session
a: CREATE FUNCTION seventh(x INT) RETURNS DECIMAL(20, 10) DETERMINISTIC \
    BEGIN DECLARE y DECIMAL(20, 10); SET y = x / 7; RETURN y; END
b: SET div_precision_increment = 9 ;; SELECT seventh(1), 1 / 7
a: SELECT seventh(1), 1 / 7 ;; SELECT seventh(2)
b: SELECT 1 / 7
a: SELECT seventh(3), 1 / 7

# What SET STATEMENT and NOWAIT report holds for the statement alone; what a trigger or a function of
# it sets lasts.
story what_code_sets_lasts_behind_settings_of_one_statement
backends 3
let probe = SELECT @@time_zone, @@lock_wait_timeout
a, b, c joins
a: CREATE TABLE tt (x INT)
a: CREATE TRIGGER tz BEFORE INSERT ON tt FOR EACH ROW SET time_zone = '+03:00'
a: CREATE FUNCTION f() RETURNS INT DETERMINISTIC BEGIN SET time_zone = '+04:00'; RETURN 1; END
a: CREATE VIEW v AS SELECT f() AS x FROM t WHERE id = 1
for sql:
- INSERT INTO tt SELECT id FROM t WHERE id = 1 FOR UPDATE NOWAIT
- SELECT f() FROM t WHERE id = 1 FOR UPDATE NOWAIT
- SELECT x FROM v FOR UPDATE NOWAIT
- SET STATEMENT max_statement_time = 9 FOR INSERT INTO tt VALUES (1)
- SET STATEMENT max_statement_time = 9 FOR SELECT f()
- SET STATEMENT max_statement_time = 9 FOR SELECT x FROM v
  a, b, c: $probe
  a: $sql
  b, c, a, b, c, a: $probe
  a reset
end

# MySQL reports the default schema again behind code of another schema, with the same word that
# something has changed which it has for a user variable.
story code_of_another_schema_leaves_nothing_to_others
backends 2
let seen = SELECT IFNULL(@seen, 'none')
root: CREATE DATABASE ${schema}_b ;; CREATE TABLE ${schema}_b.t (n INT)
root: CREATE TRIGGER ${schema}_b.t BEFORE INSERT ON ${schema}_b.t FOR EACH ROW SET @seen = 1
root: CREATE FUNCTION ${schema}_b.f() RETURNS INT NO SQL BEGIN SET @seen = 2; RETURN 7; END
root: CREATE VIEW v AS SELECT ${schema}_b.f() AS n ;; CREATE VIEW w AS SELECT * FROM ${schema}_b.t
root leaves
for into:
- schema '$schema'
- schema '${schema}_b'
- no_schema
  a, b joins $into
  for runs:
  - INSERT INTO ${schema}_b.t VALUES (1)
  - SELECT ${schema}_b.f()
  - SELECT * FROM $schema.v
  - INSERT INTO $schema.w VALUES (1)
    a: $runs ;; $seen
    b: $seen
    a reset
    a, b: $seen
  end
end
a, b leaves
# A view whose function is gone would be said in the logs of other tests' pools.
end_of_it: DROP VIEW v, w ;; DROP DATABASE ${schema}_b
