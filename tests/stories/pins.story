# Pins that end: a client keeps its backend as long as it has something there, and no longer.
#
# Every story runs on one backend fewer than it would need if a pin lasted for good: with one
# backend, another client's statement comes through only when the first one's pin has ended, and
# what it then sees shows that nothing was left there.

story a_session_is_the_same_after_a_pin
a: CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)
a: CREATE DATABASE IF NOT EXISTS $schema_b
a: LOCK TABLES t WRITE
a: INSERT INTO t (v) VALUES (5), (6)
a: SET sql_mode = 'ANSI_QUOTES', time_zone = '+05:00'
a: SET @x = 7
a: SET NAMES latin1
a: USE $schema_b
a: UNLOCK TABLES
b: SELECT @x, @@sql_mode, DATABASE()
b: SET @x = 1
a: SELECT @x, @@sql_mode, @@time_zone, DATABASE(), LAST_INSERT_ID()
a: SELECT @@character_set_client, @@collation_connection
a: DROP DATABASE $schema_b

story a_temporary_table_shadows_for_its_client_alone
backends 2
a: CREATE TABLE t (v INT)
a: INSERT INTO t VALUES (1)
a, b prepare p0: SELECT * FROM t
b execute p0 ()
a: CREATE TEMPORARY TABLE t (w VARCHAR(5), x INT)
a execute p0 ()
a: INSERT INTO t VALUES ('temp', 2)
a, b execute p0 ()
a: DROP TEMPORARY TABLE t
b, a execute p0 ()
b, a execute p0 ()
# The one that is renamed is kept, and is still there.
a: CREATE TEMPORARY TABLE t (y INT)
a: ALTER TABLE t RENAME TO u
a: DROP TABLE t
a, b: SELECT * FROM u
b: SELECT * FROM t

# What a session knows of a sequence, it knows by its own NEXTVAL() alone.
story sequences_pin_by_their_next_values_only
only mariadb
a: CREATE SEQUENCE s
a: SELECT SETVAL(s, 50)
a: SELECT LASTVAL(s)
b: SELECT PREVIOUS VALUE FOR s
b: DO SETVAL(s, 60)
a: SELECT LASTVAL(s), SETVAL(s, 40)
a: SELECT SETVAL(s, 50)
a: SELECT LASTVAL(s)
b: SELECT PREVIOUS VALUE FOR s
b: DO SETVAL(s, 60)
a: SELECT LASTVAL(s), SETVAL(s, 40)
b: SELECT NEXTVAL(s)
b: SELECT LASTVAL(s)
b reset
a, b: SELECT LASTVAL(s)

# A name that is none, one that is too long, and a lock that somebody else has.
story locks_that_were_not_taken_pin_nobody
backends 2
a: SELECT GET_LOCK('$schema', 0) => 1
let long = xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
for lock:
- GET_LOCK(NULL, 0)
- GET_LOCK('', 0)
- GET_LOCK('$schema', 0)
- GET_LOCK('$long$long$long', 0)
  b: SELECT $lock
  c: SELECT 'a place'
  b: DO $lock
  c: SELECT 'a place'
end
# MariaDB takes one of 65 letters, which MySQL does not.
b: SELECT GET_LOCK('$long', 0) ;; SELECT IS_USED_LOCK('$long') IS NOT NULL ;; DO RELEASE_LOCK('$long')
c: SELECT 'a place'

story a_text_that_has_no_end_pins_nobody
for sql:
- SELECT 'it's Tuesday
- SELECT "x
- SELECT `x
- SELECT 1 /* x
- SHOW PROFILES
  a: $sql
  b: SELECT 'a place'
end
a: SELECT 'it's Tuesday => error 1064

# A space makes a built-in function a stored one, on both servers; where there is none of that name
# nothing has run.
story a_routine_that_does_not_exist_pins_nobody
for sql, code:
- SELECT MAX (1) | 1630
- SELECT no_such_function(1) | 1305
- CALL shop.no_such_procedure(ABS(1)) | 1305
- SELECT COUNT (*) | 1064
  a: $sql => error $code
  b: SELECT 'a place'
end
a: SET sql_mode = 'IGNORE_SPACE' ;; SELECT MAX (1)
b: SELECT 'a place'

# SET STATEMENT gives a variable back behind its answer. The server reports that with a later one,
# to whoever runs the next statement there, and to a client whose next statement is there already
# when the pool asks for it.
story what_set_statement_gives_back_pins_nobody
only mariadb
for less:
- LONG_PASSWORD
- DEPRECATE_EOF
  a, b joins without $less
  for next:
  - SELECT 1 / 3
  - SET @x = 1 / 3
  - SET lock_wait_timeout = 77
    together
    a: SET STATEMENT div_precision_increment = 9 FOR SELECT 1 / 3
    a: $next
    end
    b, a: START TRANSACTION ;; COMMIT ;; SELECT 1 / 3 => 0.3333
  end
end

# Texts that are long to read and do nothing: the one backend is free for the other client behind
# each.
story what_is_read_as_the_server_reads_it_pins_nobody
a joins with MULTI_STATEMENTS
for text:
- bytes: SELECT /*! 1 /* x */ , 2 */
- bytes: /*! /* x */ SELECT 1, 2 */
- bytes: SELECT 1 /*!99999 , 2 /* x */ , 3 */ , 4
- bytes: SELECT /*!80000 1, */ /*!90000 2, */ 3
- bytes: SELECT 1 /*M!100300 , 2 */
- bytes: SELECT /*! 1 # x */ , 2 \n */, 3
- bytes: SELECT 'kill'; SELECT 'a kill b'
- bytes: SELECT 1; SELECT 'kill; SELECT 2
- bytes: SELECT 1; SELECT /* x; SELECT f(2)
- bytes: DO 1; SELECT 1 /*! , 2
- bytes: SELECT 1; SELECT @a := 1, `x
- bytes: SELECT 'x', 1\x00, 2
- bytes: SELECT 1; PREPARE s FROM 'SELECT
- bytes: KILL 'x
  a $text
  b: SELECT 'a place'
end
a: PREPARE s FROM 'SELECT "kill"' ;; EXECUTE s => kill
a: /*! SELECT CONNECTION_ID() */
# A KILL is still found wherever it is one.
a: SELECT 1; KILL 4294967295 => pool: error 1235
a: DO 1; /*! KILL QUERY */ 4294967295 => pool: error 1235

# A client that takes something keeps the only backend until it has given all of it back.
story what_is_taken_keeps_its_client_until_it_is_given_back
pool wait_ms_max = 1000
let nobody = SELECT 1 => pool: error 9501
# A login may want a backend too.
a, b joins
a: CREATE TABLE t (v INT)
for takes, gives:
- LOCK TABLES t WRITE | UNLOCK TABLES
- LOCK TABLES t READ | START TRANSACTION ;; COMMIT
- FLUSH TABLES t WITH READ LOCK | UNLOCK TABLES
- FLUSH TABLES WITH READ LOCK | UNLOCK TABLES
- SELECT GET_LOCK('$schema', 0) | SELECT RELEASE_LOCK('$schema')
- SELECT GET_LOCK(CONCAT('$schema', '_e'), 0) | SELECT RELEASE_ALL_LOCKS()
- DO GET_LOCK('$schema', 0), GET_LOCK('${schema}_b', 0) | DO RELEASE_ALL_LOCKS()
- CREATE TEMPORARY TABLE a (v INT) | DROP TEMPORARY TABLE a
- CREATE TEMPORARY TABLE t (v INT) | INSERT INTO t VALUES (1) ;; DROP TABLE IF EXISTS t
- HANDLER t OPEN AS h ;; HANDLER h READ FIRST | HANDLER h CLOSE
- XA START '$schema' ;; INSERT INTO t VALUES (1) ;; XA END '$schema' | XA COMMIT '$schema' ONE PHASE
- XA START '$schema' ;; XA END '$schema' ;; XA PREPARE '$schema' | XA ROLLBACK '$schema'
  # It may wait for others' statements, and say that it was slow.
  a: $takes => well
  b: $nobody
  a: $gives
  b: SELECT 1 => 1
  a is not pinned
end
if mysql
  for takes, gives:
  - FLUSH TABLES t FOR EXPORT | UNLOCK TABLES
  - LOCK INSTANCE FOR BACKUP | UNLOCK INSTANCE
    a: $takes => well
    b: $nobody
    a: $gives
    b: SELECT 1 => 1
    a is not pinned
  end
  watch b: $nobody
  a: LOCK INSTANCE FOR BACKUP
  a: FLUSH TABLES WITH READ LOCK => well
  a: UNLOCK TABLES
  watch nothing
  a: UNLOCK INSTANCE
  b: SELECT 1 => 1
end
if mariadb
  for takes, gives:
  - BACKUP STAGE START ;; BACKUP STAGE FLUSH | BACKUP STAGE END
  - BACKUP LOCK t | BACKUP UNLOCK
  - XA START x'0a',X'0b',3 ;; XA END x'0a',X'0b',3 | XA ROLLBACK x'0a',X'0b',3
  - XA START 0x0c,0x0d,0x1 ;; XA END 0x0c,0x0d,0x1 | XA COMMIT 0x0c,0x0d,0x1 ONE PHASE
    a: $takes => well
    b: $nobody
    a: $gives
    b: SELECT 1 => 1
    a is not pinned
  end
end
# Several, of which each is enough.
watch b: $nobody
a: LOCK TABLES t READ
a: SELECT GET_LOCK('$schema', 0)
a: UNLOCK TABLES
watch nothing
a: SELECT RELEASE_LOCK('$schema')
b: SELECT 1 => 1
watch b: $nobody
a: SELECT GET_LOCK('$schema', 0)
a: SELECT GET_LOCK('$schema', 0)
a: DO RELEASE_LOCK('$schema')
watch nothing
a: DO RELEASE_LOCK('$schema')
b: SELECT 1 => 1
watch b: $nobody
a: DO GET_LOCK('$schema', 0), GET_LOCK('${schema}_b', 0)
a: DO RELEASE_LOCK('${schema}_b')
watch nothing
a: DO RELEASE_LOCK('$schema')
b: SELECT 1 => 1
a is not pinned

story temporary_tables_keep_their_client_under_whatever_name
pool wait_ms_max = 1000
let nobody = SELECT 1 => pool: error 9501
# A login may want a backend too.
a, b joins
a: CREATE TABLE t (v INT)
watch b: $nobody
a: CREATE TEMPORARY TABLE altered (x INT)
a: ALTER TABLE altered ADD COLUMN y INT
a: CREATE INDEX by_x ON altered (x)
watch nothing
a: DROP TABLE altered
b: SELECT 1 => 1
watch b: $nobody
a: CREATE TEMPORARY TABLE a AS SELECT 1 AS v
a: CREATE TEMPORARY TABLE IF NOT EXISTS `b` LIKE a
watch nothing
a: DROP TABLE a, $schema.b
b: SELECT 1 => 1
if mariadb
  watch b: $nobody
  a: CREATE TEMPORARY TABLE a (v INT)
  a: ALTER TABLE a RENAME TO b, ADD w INT
  a: ALTER TABLE missing RENAME x
  a: RENAME TABLE b TO c
  a: DROP TABLE IF EXISTS a, b
  watch nothing
  a: DROP TABLE c
  b: SELECT 1 => 1
  watch b: $nobody
  a: CREATE TEMPORARY TABLE a (v INT)
  a: CREATE TEMPORARY TABLE b (v INT)
  a: RENAME TABLE a TO c, b TO a, c TO b
  a: DROP TABLE a
  watch nothing
  a: DROP TABLE b
  b: SELECT 1 => 1
end
# RENAME TABLE means the others' table of that name.
if mysql
  watch b: $nobody
  a: CREATE TEMPORARY TABLE a (v INT)
  a: RENAME TABLE t TO t2, t2 TO t
  a: ALTER TABLE a RENAME t2
  a: DROP TABLE IF EXISTS a
  watch nothing
  a: DROP TABLE t2
  b: SELECT 1 => 1
end
a is not pinned

# Somebody else's lock is not got, and nothing is held then.
story what_gives_back_nothing_pins_nobody
backends 2
for sql:
- SELECT RELEASE_LOCK('never_taken')
- SELECT RELEASE_ALL_LOCKS()
- DROP TEMPORARY TABLE IF EXISTS never_made
- UNLOCK TABLES
- XA RECOVER
  a: $sql
  b: SELECT 1
  a is not pinned
end
if mariadb
  a: BACKUP UNLOCK
  a is not pinned
end
c: SELECT GET_LOCK('$schema', 0)
a: SELECT GET_LOCK('$schema', 0) => 0
b: SELECT IS_FREE_LOCK('$schema') => 0
a is not pinned

# A client whose connection ends in the middle of something leaves nothing of it to others. DDL waits
# for whoever locks tables or the instance.
story a_client_that_dies_frees_everything
server: CREATE PROCEDURE $schema.takes() DO GET_LOCK('${schema}_b', 0)
server: CREATE TABLE $schema.t (id INT PRIMARY KEY, v INT) ENGINE=InnoDB
server: CREATE TABLE $schema.other (v INT)
server: INSERT INTO $schema.t VALUES (1, 0)
server: SET lock_wait_timeout = 20
for does, then:
- BEGIN ;; UPDATE t SET v = 9 | SELECT v FROM t FOR UPDATE => 0
- SET autocommit = 0 ;; UPDATE t SET v = 8 | SELECT v FROM t FOR UPDATE => 0
- BEGIN ;; SAVEPOINT s ;; DELETE FROM t | SELECT COUNT(*) FROM t FOR UPDATE => 1
- LOCK TABLES t WRITE | SELECT COUNT(*) FROM t => 1
- FLUSH TABLES WITH READ LOCK | SELECT v + 0 FROM t FOR UPDATE => 0
- SELECT GET_LOCK('$schema', 0) | SELECT GET_LOCK('$schema', 5) ;; SELECT RELEASE_ALL_LOCKS() => 1
- CREATE TEMPORARY TABLE other (x INT) ;; INSERT INTO other VALUES (1) | SELECT COUNT(*) FROM other => 0
- HANDLER t OPEN ;; HANDLER t READ FIRST | SELECT COUNT(*) FROM t => 1
- XA START '$schema' ;; UPDATE t SET v = 7 | SELECT v FROM t FOR UPDATE => 0
- CALL takes() | SELECT GET_LOCK('${schema}_b', 5) ;; SELECT RELEASE_ALL_LOCKS() => 1
- SET @@SESSION.timestamp = 5 | SELECT @@timestamp > 1000 => 1
- $own | SELECT COUNT(*) FROM t => 1
  if mariadb
    let own = BACKUP STAGE START
  end
  if mysql
    let own = LOCK INSTANCE FOR BACKUP
  end
  a joins
  a: $does
  a vanishes
  b: $then
  server: ALTER TABLE $schema.t COMMENT 'free'
end

# A client that waits for a lock and dies has its place no longer; the lock is not its either.
story a_wait_for_a_lock_ends_with_its_client
backends 2
a: DO GET_LOCK('$schema', 0)
b waits: SELECT GET_LOCK('$schema', 1000)
  b vanishes
b goes on
c: SELECT 'a place'
a: DO RELEASE_LOCK('$schema')
c: SELECT GET_LOCK('$schema', 10) => 1
