# What becomes of older warnings when a statement goes well without any, form by form.
#
# MariaDB clears them in front of what looks at a table and leaves them otherwise, MySQL clears
# them nearly always. Two clients on one backend: one leaves warnings, says the statement and asks
# behind the other; nobody is told that the answer is gone.

# MySQL warns that FOUND_ROWS() is deprecated. Where the pool asks for it, that is no client's
# warning.
story the_pools_own_question_leaves_no_warning
a, b joins with MULTI_STATEMENTS
a: CREATE TABLE t (id INT PRIMARY KEY, v INT)
a: CREATE PROCEDURE takes() SELECT GET_LOCK('$schema', 0)
a, b: SELECT 1
a: UPDATE t SET v = 1
a: SHOW WARNINGS; CALL takes()
a reset
a, b: SELECT 1
a: SELECT 1 UNION SELECT 2
b: SHOW WARNINGS; CALL takes()
b reset


# What becomes of older warnings when a statement goes well without any, form by form. MariaDB
# clears them in front of what looks at a table and leaves them otherwise, MySQL clears them nearly
# always. One client leaves warnings, says the statement and asks behind the other; nobody is told
# that the answer is gone.
story older_warnings_stay_or_go_as_on_the_server
a, b joins without SESSION_TRACK
a: CREATE TABLE t (id INT PRIMARY KEY, v INT) ;; INSERT INTO t VALUES (1, 1), (2, 2)
a: CREATE TABLE w (a INT) ;; CREATE VIEW vw AS SELECT v FROM t ;; CREATE PROCEDURE p() SELECT 1
a: CREATE EVENT ev ON SCHEDULE AT '2037-01-01 00:00:00' DO SELECT 1
a: CREATE FUNCTION five() RETURNS INT DETERMINISTIC RETURN 1
for sql:
- SHOW CHARACTER SET LIKE 'latin1'
- SHOW CHARSET LIKE 'latin1'
- SHOW COLLATION LIKE 'latin1_bin'
- SHOW COLUMNS FROM t
- SHOW FULL COLUMNS FROM t
- SHOW FIELDS FROM t
- SHOW CREATE DATABASE $schema
- SHOW CREATE EVENT ev
- SHOW CREATE TABLE t
- SHOW CREATE VIEW vw
- SHOW DATABASES LIKE 'mysql'
- SHOW SCHEMAS LIKE 'mysql'
- SHOW ENGINES
- SHOW STORAGE ENGINES
- SHOW EVENTS LIKE 'x'
- SHOW FUNCTION STATUS LIKE 'x'
- SHOW PROCEDURE STATUS LIKE 'x'
- SHOW GRANTS
- SHOW INDEX FROM t
- SHOW INDEXES IN t
- SHOW KEYS FROM t
- SHOW OPEN TABLES LIKE 'x'
- SHOW PLUGINS
- SHOW PRIVILEGES
- SHOW STATUS LIKE 'x'
- SHOW GLOBAL STATUS LIKE 'x'
- SHOW SESSION STATUS LIKE 'x'
- SHOW TABLE STATUS LIKE 'x'
- SHOW TABLES
- SHOW FULL TABLES FROM $schema
- SHOW TRIGGERS
- SHOW VARIABLES LIKE 'x'
- SHOW GLOBAL VARIABLES LIKE 'x'
- SHOW SESSION VARIABLES LIKE 'autocommit'
- SELECT 1 FROM DUAL
- SELECT (SELECT 1 FROM DUAL)
- SELECT EXTRACT(YEAR FROM '2020-01-01')
- SELECT TRIM(LEADING 'x' FROM 'xa'), SUBSTRING('abc' FROM 2 FOR 1)
- SELECT (SELECT MAX(v) FROM t)
- SELECT EXISTS (SELECT 1 FROM t)
- SELECT TRIM(LEADING 'x' FROM (SELECT MAX(v) FROM t))
- SELECT * FROM (SELECT 1) AS x
- SELECT * FROM (SELECT 1 FROM DUAL) AS x
- SELECT 1 FROM `t` LIMIT 1
- (SELECT 1 FROM DUAL)
- (SELECT v FROM t)
- SELECT 1 UNION SELECT 2
- SELECT 1 UNION SELECT v FROM t
- SELECT 1 FROM DUAL UNION SELECT 2
- WITH x AS (SELECT 1) SELECT * FROM x
- WITH x AS (SELECT 1) SELECT 1
- WITH x AS (SELECT v FROM t) SELECT 1
- SELECT 1 FROM vw
- SELECT 1 FROM information_schema.SCHEMATA LIMIT 1
- SELECT 1 INTO @a
- SELECT 1 FOR UPDATE
- SELECT five() FROM t
- SET @a = (SELECT MAX(v) FROM t)
- SET @a = (SELECT 1 FROM DUAL)
- SET @a = TRIM(LEADING 'x' FROM 'xa')
- DO EXTRACT(YEAR FROM '2020-01-01')
- DO (SELECT MAX(v) FROM t)
- EXPLAIN t
- DESC `t`
- DESCRIBE t v
- CHECK TABLE t
- CHECKSUM TABLE t
- ANALYZE TABLE t
- TRUNCATE w
- CREATE TABLE z (a INT)
- ALTER TABLE z COMMENT 'x'
- CREATE INDEX i ON z (a)
- DROP INDEX i ON z
- RENAME TABLE z TO y
- DROP TABLE y
- CREATE DATABASE ${schema}_b
- DROP DATABASE ${schema}_b
- CREATE VIEW vx AS SELECT 1 AS a
- DROP VIEW vx
  a: INSERT IGNORE INTO t VALUES (1, 1), (2, 2)
  b: SELECT 1
  a: $sql => well
  b: SELECT CAST('other' AS SIGNED)
  a: SHOW WARNINGS
  b: SELECT 1
  a: SELECT @@warning_count
end
if mariadb
  a: CREATE SEQUENCE sq
  for sql:
  - SHOW ALL SLAVES STATUS
  - SHOW AUTHORS
  - SHOW CONTRIBUTORS
  - SHOW BINLOG STATUS
  - SHOW MASTER STATUS
  - SHOW SLAVE STATUS
  - SHOW REPLICA STATUS
  - SHOW SLAVE HOSTS
  - SHOW PROFILES
  - SHOW CREATE SEQUENCE sq
  - SHOW CREATE USER
  - SHOW CLIENT_STATISTICS
  - SHOW INDEX_STATISTICS
  - SHOW TABLE_STATISTICS
  - SHOW USER_STATISTICS
  - EXPLAIN SELECT 1
  - EXPLAIN SELECT v FROM t
  - EXPLAIN SELECT 1 FROM DUAL
  - EXPLAIN UPDATE t SET v = 1
  - EXPLAIN FORMAT = JSON SELECT 1
  - ANALYZE SELECT 1
  - ANALYZE SELECT v FROM t
  - OPTIMIZE TABLE t
  - REPAIR TABLE t
  - CREATE PROCEDURE z() SELECT 1
  - ALTER PROCEDURE z COMMENT 'x'
  - DROP PROCEDURE z
  - CREATE FUNCTION z() RETURNS INT RETURN 1
  - DROP FUNCTION z
  - CREATE TRIGGER z BEFORE INSERT ON w FOR EACH ROW SET @a = 1
  - CREATE SEQUENCE z
  - ALTER SEQUENCE z INCREMENT 2
  - DROP SEQUENCE z
  - CREATE USER older_user
  - RENAME USER older_user TO older_other
  - DROP USER older_other
  - CREATE ROLE older_role
  - DROP ROLE older_role
  - SELECT LASTVAL(sq)
  - SELECT PREVIOUS VALUE FOR sq
  - VALUES (1)
  - UNLOCK TABLES
  - SET STATEMENT max_statement_time = 5 FOR SELECT 1
  - SET STATEMENT max_statement_time = 5 FOR SHOW TABLES
  - CREATE PROCEDURE zt() SELECT v FROM t
  - CREATE PROCEDURE zh() BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION RESIGNAL; END
    a: INSERT IGNORE INTO t VALUES (1, 1), (2, 2)
    b: SELECT 1
    a: $sql => well
    b: SELECT CAST('other' AS SIGNED)
    a: SHOW WARNINGS
    b: SELECT 1
    a: SELECT @@warning_count
  end
end

# Where the body of stored code decides, the text or the server's copy of it. MySQL tells by the
# text; of MariaDB, and of an event, the pool may say that it does not know. Its rows may tell the
# time.
story older_warnings_behind_stored_code_are_shown_or_not_known
a, b joins without SESSION_TRACK
a: CREATE TABLE t (id INT PRIMARY KEY, v INT) ;; INSERT INTO t VALUES (1, 1), (2, 2)
a: CREATE TABLE w (a INT) ;; CREATE PROCEDURE p() SELECT 1
a: CREATE EVENT ev ON SCHEDULE AT '2037-01-01 00:00:00' DO SELECT 1
a: CREATE FUNCTION five() RETURNS INT DETERMINISTIC RETURN 1
if mariadb
  let may = => or error 1235
end
if mysql
  let may =
end
for drop, sql, told:
- DROP PROCEDURE IF EXISTS bi | CREATE PROCEDURE bi() INSERT INTO t VALUES (1, 1) | $may
- DROP PROCEDURE IF EXISTS bb | CREATE PROCEDURE bb() BEGIN IF 1 THEN REPLACE INTO t VALUES (1, 1); END IF; END | $may
- DROP PROCEDURE IF EXISTS bh | CREATE PROCEDURE bh() BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION RESIGNAL; END | $may
- DROP PROCEDURE IF EXISTS bc | CREATE PROCEDURE bc() BEGIN DECLARE c CONDITION FOR SQLSTATE '45000'; SIGNAL c; END | $may
- DROP PROCEDURE IF EXISTS bv | CREATE PROCEDURE bv() BEGIN DECLARE handler INT; SET handler = 1; END | $may
- DROP FUNCTION IF EXISTS bf | CREATE FUNCTION bf() RETURNS INT DETERMINISTIC BEGIN DECLARE EXIT HANDLER FOR NOT FOUND RETURN 1; RETURN 2; END | $may
- DROP TRIGGER IF EXISTS bt | CREATE TRIGGER bt BEFORE INSERT ON w FOR EACH ROW INSERT INTO t VALUES (7, 7) | $may
- DROP TRIGGER IF EXISTS bn | CREATE TRIGGER bn BEFORE INSERT ON w FOR EACH ROW BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION RESIGNAL; END | $may
- DO 0 | ALTER EVENT ev DO BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION RESIGNAL; END | => or error 1235
- DO 0 | ALTER EVENT ev DO INSERT INTO t VALUES (1, 1) | => or error 1235
- DO 0 | SHOW CREATE FUNCTION five | $may
- DO 0 | SHOW CREATE PROCEDURE p | $may
- DO 0 | SHOW CREATE PROCEDURE bi | $may
- DO 0 | SHOW CREATE TRIGGER bt | $may
- DO 0 | SHOW CREATE EVENT ev | => or error 1235
- DO 0 | DROP TRIGGER IF EXISTS bt | $may
- DO 0 | DROP PROCEDURE IF EXISTS bi | $may
  for before, behind:
  - b: DO 1 | watch nothing
  - b: SELECT CAST('other' AS SIGNED) | b: SELECT CAST('other' AS SIGNED)
    a: $drop ;; INSERT IGNORE INTO t VALUES (1, 1), (2, 2)
    $before
    a: $sql => well
    $behind
    a: SHOW WARNINGS $told
  end
end
