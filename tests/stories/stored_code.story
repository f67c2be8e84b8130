# Stored code that leaves something that nobody follows: its client keeps its backend, and another
# client, who has one of its own, meets none of what it left.
backends 2
let held = SELECT IS_USED_LOCK('$schema') <=> CONNECTION_ID()
let takes = GET_LOCK('$schema', 10)
let seen = SELECT IFNULL(@seen, 'none')
a: CREATE TABLE leaves_t (id INT AUTO_INCREMENT PRIMARY KEY, v INT) ;; CREATE TABLE leaves_u (v INT)
a: INSERT INTO leaves_t (v) VALUES (10), (20)
a: CREATE FUNCTION leaves_f() RETURNS INT RETURN $takes
a: CREATE VIEW leaves_w AS SELECT leaves_f() AS a
b: SELECT 1

story calls_that_leave_something_unseen_pin
let p = CREATE PROCEDURE leaves_p()
a: CREATE TRIGGER leaves_tr AFTER INSERT ON leaves_t FOR EACH ROW DO $takes
for make, run, asks, own, others:
- $p DO $takes | CALL leaves_p() | $held | 1 | 0
- $p BEGIN IF leaves_f() THEN SELECT 1; END IF; END | CALL leaves_p() | $held | 1 | 0
- DO 1 | SELECT leaves_f() | $held | 1 | 0
- $p INSERT INTO leaves_t (v) VALUES (1) | CALL leaves_p() | $held | 1 | 0
- $p SELECT a FROM leaves_w | CALL leaves_p() | $held | 1 | 0
- $p BEGIN SET @s = "DO $takes"; PREPARE s FROM @s; EXECUTE s; DEALLOCATE PREPARE s; END \
    | CALL leaves_p() | SELECT @s IS NULL | 0 | 1
- $p CREATE TEMPORARY TABLE mine AS SELECT 5 AS v | CALL leaves_p() | SELECT v FROM mine | 5 | error 1146
- $p BEGIN IF 1 THEN SET @seen = 5; END IF; END | CALL leaves_p() | $seen | 5 | none
- $p SET SESSION div_precision_increment = 9 | CALL leaves_p() | SELECT @@div_precision_increment | 9 | 4
  a: DROP PROCEDURE IF EXISTS leaves_p
  a: $make
  a: $run
  b: $asks => $others
  a: $asks => $own
  a is pinned stored_code
  a reset
  a: USE $schema
end
if mariadb
  a: CREATE SEQUENCE leaves_s
  for make, run, asks, own, others:
  - $p SET @@div_precision_increment = 9 | CALL leaves_p() | SELECT @@div_precision_increment | 9 | 4
  - $p SELECT NEXTVAL(leaves_s) | CALL leaves_p() | SELECT IFNULL(LASTVAL(leaves_s) > 0, 'none') | 1 | none
  - DO 1 | BEGIN NOT ATOMIC DO $takes; END | $held | 1 | 0
  - SET sql_mode = ORACLE ;; CREATE PACKAGE leaves_k AS PROCEDURE p; END ;; \
    CREATE PACKAGE BODY leaves_k AS PROCEDURE p AS BEGIN DO $takes; END; END \
    | CALL leaves_k.p() | $held | 1 | 0
    a: DROP PROCEDURE IF EXISTS leaves_p
    a: $make
    a: $run
    b: $asks => $others
    a: $asks => $own
    a is pinned stored_code
    a reset
    a: USE $schema
  end
end

# Nothing of it is in the text of the statement.
story triggers_views_and_columns_that_leave_something_pin
let tr = CREATE TRIGGER leaves_tr AFTER INSERT ON
let before = CREATE TRIGGER leaves_tr BEFORE INSERT ON leaves_t FOR EACH ROW SET
let insert = INSERT INTO leaves_t (v) VALUES (1)
a: CREATE TABLE ```leaves``` (v INT) ;; CREATE VIEW leaves_vw AS SELECT a FROM leaves_w
a: CREATE VIEW leaves_tw AS SELECT v FROM leaves_t
a: CREATE PROCEDURE leaves_deep(a INT) BEGIN SET a = a + 1; SELECT a INTO @seen; END
a: CREATE FUNCTION leaves_middle(a INT) RETURNS INT BEGIN CALL leaves_deep(a); RETURN a; END
a: CREATE TRIGGER leaves_last AFTER INSERT ON leaves_u FOR EACH ROW DO $takes
for make, run, asks, own, others:
- $tr leaves_t FOR EACH ROW DO $takes | $insert | $held | 1 | 0
- $tr leaves_t FOR EACH ROW BEGIN SELECT NEW.v INTO @seen; END | $insert | $seen | 1 | none
- $tr ```leaves``` FOR EACH ROW BEGIN SELECT NEW.v INTO @seen; END | INSERT INTO ```leaves``` VALUES (1) | $seen | 1 | none
- $before NEW.v = (@seen := 7) | $insert | $seen | 7 | none
- $before NEW.v = leaves_middle(NEW.v) | $insert | $seen | 2 | none
- $tr leaves_t FOR EACH ROW INSERT INTO leaves_u VALUES (NEW.v) | $insert | $held | 1 | 0
- $tr leaves_t FOR EACH ROW DO $takes | INSERT INTO leaves_tw VALUES (5) | $held | 1 | 0
- DO 1 | SELECT * FROM leaves_vw | $held | 1 | 0
  a: DROP TRIGGER IF EXISTS leaves_tr
  a: $make
  for again:
  - 1
  - 2
    a: $run
    b: $asks => $others
  end
  a: $asks => $own
  a is pinned triggers_and_views
  a reset
  a: USE $schema
end
if mariadb
  a: CREATE SEQUENCE leaves_s ;; CREATE TABLE leaves_d (v INT, w INT DEFAULT (NEXT VALUE FOR leaves_s))
  let last = SELECT IFNULL(LASTVAL(leaves_s) > 0, 'none')
  a reset
  a: USE $schema
  for make, run, asks, own, others:
  - $tr leaves_t FOR EACH ROW BEGIN SET @@max_error_count = 0; SET @@div_precision_increment = 9; \
    SIGNAL SQLSTATE '45000'; END | $insert | SELECT @@div_precision_increment | 9 | 4
  - $before NEW.v = NEXTVAL(leaves_s) | $insert | $last | 1 | none
  - DO 1 | INSERT INTO leaves_d (v) VALUES (1) | $last | 1 | none
    a: DROP TRIGGER IF EXISTS leaves_tr
    a: $make
    a: $run
    b: $asks => $others
    a: $asks => $own
    a is pinned triggers_and_views
    a reset
    a: USE $schema
  end
end
