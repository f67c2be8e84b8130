# Prepared statements in the binary protocol: many clients, few backends, the same answers.
#
# Each story runs with fewer backends than clients, so a statement is executed where another
# client has used it before, or where nobody has prepared it yet.

story clients_that_share_a_statement_do_not_meet
backends 2
let probe = SELECT id, v FROM t WHERE who = ? ORDER BY id
a joins without DEPRECATE_EOF
b joins without SESSION_TRACK+DEPRECATE_EOF
c: CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, who INT, v TEXT)
c prepare p0: INSERT INTO t (who, v) VALUES (?, ?)
c prepare p1: $probe
c prepare p2: SELECT LAST_INSERT_ID(), @@identity
a prepare p0: INSERT INTO t (who, v) VALUES (?, ?)
a prepare p1: $probe
a prepare p2: SELECT LAST_INSERT_ID(), @@identity
b prepare p0: INSERT INTO t (who, v) VALUES (?, ?)
b prepare p1: $probe
b prepare p2: SELECT LAST_INSERT_ID(), @@identity
for sql, value, sql2:
- BEGIN | 0 | ROLLBACK
- SET autocommit = 0 | 1 | COMMIT
- DO 1 | 2 | DO 2
  c: $sql
  c execute p0 ('0', '0 $value')
  c: SELECT LAST_INSERT_ID(), @@insert_id
  c: $sql2
  c execute p1 ('0')
  c: SELECT FOUND_ROWS()
  c: SET autocommit = 1
  a: $sql
  a execute p0 ('1', '1 $value')
  a: SELECT LAST_INSERT_ID(), @@insert_id
  a: $sql2
  a execute p1 ('1')
  a: SELECT FOUND_ROWS()
  a: SET autocommit = 1
  b: $sql
  b execute p0 ('2', '2 $value')
  b: SELECT LAST_INSERT_ID(), @@insert_id
  b: $sql2
  b execute p1 ('2')
  b: SELECT FOUND_ROWS()
  b: SET autocommit = 1
end
c: UPDATE t SET v = 'x' WHERE who = 1
c execute p2 ()
a: UPDATE t SET v = 'x' WHERE who = 1
a execute p2 ()
b: UPDATE t SET v = 'x' WHERE who = 1
b execute p2 ()

story types_are_each_clients_own
let bytes = \x00\x01\x00\x00\x00\x02\x00\x05\x00\x00\x00\x00\x00\x00\x00
a joins without DEPRECATE_EOF
b joins without SESSION_TRACK+DEPRECATE_EOF
c, a, b prepare p0: SELECT ?, ? IS NULL
c sends p0 0x17: \x00\x01\x00\x00\x00\x02\x01\x08\x00\xfd\x00\x05\x00\x00\x00\x00\x00\x00\x00
a sends p0 0x17: \x00\x01\x00\x00\x00\x02\x01\xfd\x00\x08\x00\x04text
c sends p0 0x17: $bytes
a sends p0 0x17: \x00\x01\x00\x00\x00\x02\x00\x05again
c sends p0 0x17: $bytes
a sends p0 0x17: \x00\x01\x00\x00\x00\x02\x00\x05again
b sends p0 0x17: \x00\x01\x00\x00\x00\x02\x01\x08\x80\x08\x00\xff\xff\xff\xff\xff\xff\xff\xff
c, b sends p0 0x17: \x00\x01\x00\x00\x00\x02\x00\xff\xff\xff\xff\xff\xff\xff\xff
# MySQL goes on with the type of the first execution, as long as it has not prepared anew.
if mariadb
  c sends p0 0x17: \x00\x01\x00\x00\x00\x02\x01\xfd\x00\xfd\x00\x08now text
  c sends p0 0x17: \x00\x01\x00\x00\x00\x02\x00\nstill text
end
b sends p0 0x17: $bytes

story an_execution_that_never_sent_types_gets_nobody_elses
a, b prepare p0: SELECT ?
b sends p0 0x17: \x00\x01\x00\x00\x00\x00\x01\x08\x00\x07\x00\x00\x00\x00\x00\x00\x00
a sends p0 0x17: \x00\x01\x00\x00\x00\x00\x00\x05seven
b sends p0 0x17: \x00\x01\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00

story what_cannot_be_read_is_refused_by_the_server
a, b prepare p0: SELECT ?, ?
a execute p0 ()
b execute p0 ('x', 'y')
a sends p0 0x17: \x00\x01\x00\x00\x00\x00
b execute p0 ('x', 'y')
a sends p0 0x17: \x00\x01\x00\x00\x00\x00\x01\x08
b execute p0 ('x', 'y')
a sends p0 0x17: \x00\x01\x00\x00\x00\x00\x01\x08\x00\x08\x00\x01
b execute p0 ('x', 'y')
a command 0x17: \x01\x00

# Behind an execution that ends before its values, MySQL goes by the types of the one before.
# Where there is none, one without types is refused.
story what_cannot_be_read_leaves_the_types_before_it
let bytes = \x00\x01\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00
a, b prepare p0: SELECT ?
b sends p0 0x17: \x00\x01\x00\x00\x00\x00\x01\x08\x00ab
b sends p0 0x17: $bytes
a sends p0 0x17: \x00\x01\x00\x00\x00\x00\x01\x08\x00ab
a sends p0 0x17: $bytes
a execute p0 ('read')
a sends p0 0x17: \x00\x01\x00\x00\x00\x00\x01\x08\x00ab
a sends p0 0x17: \x00\x01\x00\x00\x00\x00\x01\x08\x00ab
b sends p0 0x17: \x00\x01\x00\x00\x00\x00\x01\x08\x00\x07\x00\x00\x00\x00\x00\x00\x00
a sends p0 0x17: \x00\x01\x00\x00\x00\x00\x00\x13as long as a number
b sends p0 0x17: $bytes

# A number of rows is wanted by MySQL, whatever the id is.
story a_fetch_that_is_cut_short_is_refused_by_the_server
a prepare p0: SELECT 1
a command 0x1c: \t\t\t\x00
a command 0x1c: \t\t\t\x00\x01\x00\x00
a: SELECT 2

story a_fetch_that_is_cut_short_is_refused_by_the_server_2
only mysql
a prepare p0: SELECT 1
a command 0x1c: \t\t\t\x00
a command 0x1c: \t\t\t\x00\x01\x00\x00
a sends p0 0x1c:
a sends p0 0x1c: \x01\x00\x00
a: SELECT 2

story a_statement_keeps_the_session_in_which_it_was_prepared
backends 2
let probe = SELECT 'a' || 'b', COLLATION('x'), "v" FROM here
a joins without DEPRECATE_EOF
b: CREATE TABLE here (v INT)
b: INSERT INTO here VALUES (1)
b: SET sql_mode = 'PIPES_AS_CONCAT,ANSI_QUOTES'
b: SET NAMES latin1
b prepare p0: SELECT v, DATABASE() FROM here
b prepare p1: $probe
b: USE shop
b: SET sql_mode = ''
b: SET NAMES utf8mb4
a: SET sql_mode = 'PIPES_AS_CONCAT,ANSI_QUOTES'
a: SET NAMES latin1
a prepare p0: SELECT v, DATABASE() FROM here
a prepare p1: $probe
a: USE shop
a: SET sql_mode = ''
a: SET NAMES utf8mb4
c: SET sql_mode = 'PIPES_AS_CONCAT,ANSI_QUOTES'
c: SET NAMES latin1
c prepare p0: SELECT v, DATABASE() FROM here
c prepare p1: $probe
c: USE shop
c: SET sql_mode = ''
c: SET NAMES utf8mb4
for round:
- 1
- 2
  b execute p0 ()
  b execute p1 ()
  b: SELECT DATABASE(), 'a' || 'b', @@sql_mode
  b: USE $schema
  b: USE shop
  a execute p0 ()
  a execute p1 ()
  a: SELECT DATABASE(), 'a' || 'b', @@sql_mode
  a: USE $schema
  a: USE shop
  c execute p0 ()
  c execute p1 ()
  c: SELECT DATABASE(), 'a' || 'b', @@sql_mode
  c: USE $schema
  c: USE shop
end

# A statement is prepared, on a backend that lacks it, in the session that its client had. What of
# that ends a transaction stays as it is.
story a_statement_prepared_with_autocommit_does_not_end_a_transaction
backends 2
a: CREATE TABLE t (v INT)
a prepare p0: SELECT ?
a prepare p1: INSERT INTO t VALUES (?)
# The backend that has them is taken.
b: BEGIN
b: SELECT * FROM t
a: SET autocommit = 0
a: INSERT INTO t VALUES (1)
a execute p0 ('x')
a execute p1 ('2')
a: ROLLBACK
a: SELECT * FROM t
a: SET autocommit = 1, sql_mode = DEFAULT
b: COMMIT
a prepare p2: SELECT ?
a prepare p3: INSERT INTO t VALUES (?)
b: BEGIN
b: SELECT * FROM t
a: SET autocommit = 0, sql_mode = ''
a: INSERT INTO t VALUES (1)
a execute p2 ('x')
a execute p3 ('2')
a: ROLLBACK
a: SELECT * FROM t
a: SET autocommit = 1, sql_mode = DEFAULT
b: COMMIT

# What becomes of long data with which an execution could not be read: what the servers keep until
# a reset, and what they drop, is kept and dropped.
story long_data_that_cannot_be_executed_with_is_kept_or_dropped_as_by_the_server
let bytes = \x00\x01\x00\x00\x00\x00\x01\x08\x00\x01\x00\x00\x00\x00\x00\x00\x00
let bytes2 = \x00\x01\x00\x00\x00\x00\x01\xfd\x00\x05reset
a prepare p0: SELECT ?
# A number cannot come in pieces.
a long p0 0: piece
a sends p0 0x17: $bytes
b: SELECT 1
a sends p0 0x17: $bytes
a sends p0 0x17: \x00\x01\x00\x00\x00\x00\x01\xfd\x00\x05whole
a reset p0
a sends p0 0x17: $bytes2
# Data for no parameter, in front of some that are for one.
a long p0 9: nowhere
a long p0 0: somewhere
a sends p0 0x17: \x00\x01\x00\x00\x00\x00\x01\xfd\x00
b: SELECT 2
a sends p0 0x17: \x00\x01\x00\x00\x00\x00\x01\xfd\x00\x05after
a reset p0
a sends p0 0x17: $bytes2
a prepare p1: SELECT CONCAT(?, '!')
a long p1 0: piece
a sends p1 0x17: $bytes
b: SELECT 1
a sends p1 0x17: $bytes
a sends p1 0x17: \x00\x01\x00\x00\x00\x00\x01\xfd\x00\x05whole
a reset p1
a sends p1 0x17: $bytes2
a long p1 9: nowhere
a long p1 0: somewhere
a sends p1 0x17: \x00\x01\x00\x00\x00\x00\x01\xfd\x00
b: SELECT 2
a sends p1 0x17: \x00\x01\x00\x00\x00\x00\x01\xfd\x00\x05after
a reset p1
a sends p1 0x17: $bytes2

# MySQL reads such an execution to its end where the parameter has no value, and drops the data.
story long_data_of_a_type_that_cannot_have_them_are_dropped
let bytes = \x00\x01\x00\x00\x00\x00\x01\xfd\x00\x05whole
a: CREATE TABLE t (b TEXT)
a prepare p0: INSERT INTO t VALUES (?)
a long p0 0: piece
a sends p0 0x17: \x00\x01\x00\x00\x00\x01\x01\x08\x00
for what:
- xfd
- x08
  a sends p0 0x17: $bytes
  a sends p0 0x17: $bytes
  b: SELECT b FROM t
  a long p0 0: piece
  a sends p0 0x17: \x00\x01\x00\x00\x00\x01\x01\$what\x00
  b: SELECT 1
end
a sends p0 0x17: $bytes
a sends p0 0x17: $bytes
b: SELECT b FROM t
a prepare p1: SELECT CONCAT(?, '!')
a long p1 0: piece
a sends p1 0x17: \x00\x01\x00\x00\x00\x01\x01\x08\x00
for what:
- xfd
- x08
  a sends p1 0x17: $bytes
  a sends p1 0x17: $bytes
  b: SELECT b FROM t
  a long p1 0: piece
  a sends p1 0x17: \x00\x01\x00\x00\x00\x01\x01\$what\x00
  b: SELECT 1
end
a sends p1 0x17: $bytes
a sends p1 0x17: $bytes
b: SELECT b FROM t
a: DROP TABLE t

# Results in a character set that no client may have keep their client on its backend. What that
# lacks is prepared in the session of before, from which there must be a way back.
story statements_are_prepared_where_results_are_wide
backends 2
for who, what, who2:
- p0 | utf16 | p1
- p2 | ucs2 | p3
- p4 | latin1 | p5
  a prepare $who: SELECT ?, 'before'
  b: BEGIN
  b: SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE 1 = 0
  a: SET character_set_results = $what
  a prepare $who2: SELECT ?, 'behind'
  a execute $who ('x')
  a execute $who2 ('x')
  a: SET NAMES utf8mb4
  a execute $who ('x')
  b: COMMIT
end

# A fetch from a statement without a cursor is an error in the server's words, in any character set.
story a_fetch_without_a_cursor_is_refused_where_literals_are_wide
backends 2
a: SET character_set_connection = utf32
a prepare p0: SELECT 1
a fetch p0 1
a: SELECT 5
a: SET character_set_connection = utf16
a prepare p1: SELECT 1
a fetch p1 1
a: SELECT 5
a: SET character_set_connection = ucs2
a prepare p2: SELECT 1
a fetch p2 1
a: SELECT 5

story a_fetch_without_a_cursor_is_refused_in_the_servers_words
a prepare p0: SELECT 1
a prepare p1: SELECT 2
a execute p0 ()
a fetch p0 1
a: SHOW WARNINGS => or error 1235
a execute p0 ()
a fetch p1 1
a: SHOW WARNINGS => or error 1235
a execute p1 ()
b: SELECT 1
a fetch p0 1
a: SHOW WARNINGS => or error 1235
a execute p0 ()
b: SELECT 1
a fetch p1 1
a: SHOW WARNINGS => or error 1235
a execute p1 ()

# What a server tells from a preparation alone, and the change that it does not notice. Each
# client hears what was there when it prepared the text itself, not when somebody else did.
story what_a_preparation_keeps_is_its_clients_own
backends 2
a: CREATE TABLE t (v INT)
a: INSERT INTO t VALUES (1), (2)
a: CREATE VIEW w AS SELECT v FROM t
a: CREATE PROCEDURE p() SELECT 1
# Two backends: one has the text from before, and the other is held.
b: BEGIN
b: SELECT 1
a prepare p0: SHOW CREATE VIEW w
a execute p0 ()
a: SHOW WARNINGS
a: BEGIN
a: SELECT 1
b: COMMIT
c: ALTER VIEW w AS SELECT v, 1 AS n FROM t
c prepare p0: SHOW CREATE VIEW w
b: BEGIN
b: SELECT 1
a: COMMIT
c execute p0 ()
c: SHOW WARNINGS
b: COMMIT
c, a close p0
b: BEGIN
b: SELECT 1
if mariadb
  a prepare p1: EXPLAIN EXTENDED SELECT * FROM w WHERE v = TIMESTAMP'2001-01-01 00:00:00'
end
if mysql
  a prepare p1: EXPLAIN SELECT * FROM w WHERE v = 1
end
a execute p1 ()
a: SHOW WARNINGS
a: BEGIN
a: SELECT 1
b: COMMIT
c: DO 0
if mariadb
  c prepare p1: EXPLAIN EXTENDED SELECT * FROM w WHERE v = TIMESTAMP'2001-01-01 00:00:00'
end
if mysql
  c prepare p1: EXPLAIN SELECT * FROM w WHERE v = 1
end
b: BEGIN
b: SELECT 1
a: COMMIT
c execute p1 ()
c: SHOW WARNINGS
b: COMMIT
c, a close p1
for what, who, sql:
- p2: SHOW CREATE TABLE t | p2 | ALTER TABLE t ADD COLUMN x INT
- p3: SHOW COLUMNS FROM t | p3 | ALTER TABLE t ADD COLUMN y INT
- p4: DESCRIBE w | p4 | ALTER VIEW w AS SELECT v, 1 AS m FROM t
- p5: SHOW CREATE VIEW w | p5 | ALTER VIEW w AS SELECT v, 2 AS n FROM t
- p6: SHOW CREATE PROCEDURE p | p6 | ALTER PROCEDURE p COMMENT 'new'
- p7: SHOW TABLES | p7 | CREATE TABLE u (v INT)
- p8: SHOW CREATE TABLE w | p8 | ALTER VIEW w AS SELECT v, 3 AS n FROM t
  b: BEGIN
  b: SELECT 1
  a prepare $what
  a execute $who ()
  a: SHOW WARNINGS
  a: BEGIN
  a: SELECT 1
  b: COMMIT
  c: $sql
  c prepare $what
  b: BEGIN
  b: SELECT 1
  a: COMMIT
  c execute $who ()
  c: SHOW WARNINGS
  b: COMMIT
  c, a close $who
end

# One client alone that executes again what it prepared before a change hears what a server keeps.
story a_preparation_keeps_what_it_keeps_for_its_client
a: CREATE TABLE t (v INT)
a: CREATE VIEW w AS SELECT v FROM t
a prepare p0: SHOW CREATE VIEW w
a prepare p1: EXPLAIN SELECT * FROM w
a prepare p2: DESCRIBE w
for sql:
- DO 0
- ALTER VIEW w AS SELECT v, 1 AS n FROM t
- DO 0
  b: $sql
  a execute p0 ()
  a: SHOW WARNINGS
  a execute p1 ()
  a: SHOW WARNINGS
  a execute p2 ()
  a: SHOW WARNINGS
end

# The pool puts what they ask of the statement before into the text, each time that it looks at
# their execution.
story explanations_that_ask_of_the_statement_before_are_prepared_once
a: CREATE TABLE t (v INT)
a prepare p0: EXPLAIN SELECT ROW_COUNT()
for round:
- 1
- 2
  a: INSERT INTO t VALUES (1), (2)
  b: SELECT v FROM t
  a execute p0 () => or error 1235
end

# A pinned client's collation is not read back: its text is prepared again all the same, and what
# it meant before is not executed.
story a_text_that_is_prepared_in_another_collation_means_what_it_means_now
backends 2
a: SET collation_connection = ucs2_czech_ci
a: SET NAMES utf8mb3 COLLATE utf8mb3_unicode_ci
a: SET @query = 'SELECT 1'
a: PREPARE stmt FROM @query
a: SET NAMES utf8mb3 COLLATE utf8mb3_german2_ci
a prepare p0: SELECT COLLATION('x')
a execute p0 ()
a: SET NAMES utf8mb3 COLLATE utf8mb3_bin
a prepare p1: SELECT COLLATION('x')
a execute p1 ()

# What is prepared under one `div_precision_increment` is executed under another.
story statements_outlive_their_div_precision_increment
only mysql
a: CREATE PROCEDURE one() SELECT 1
a: SET div_precision_increment = 5
a prepare p0: SELECT 1 / 3
a prepare p1: CALL one()
for value:
- 7
- 9
- DEFAULT
- 5
- 7
  a: SET div_precision_increment = $value
  a execute p0 ()
  b: SELECT 1 / 3
  a execute p0 ()
  a execute p1 ()
  b: SELECT 1 / 3
  a execute p1 ()
  a, b: SELECT 1 / 3
  a init_db: shop
  a execute p0 ()
  a init_db: $schema
end

# The SET in front of what is prepared ahead has counts of its own.
story counts_outlive_what_is_prepared_in_another_session
backends 2
a: CREATE TABLE t (v INT)
a: INSERT INTO t VALUES (1), (2)
a prepare p0: SELECT ROW_COUNT(), FOUND_ROWS()
# The backend that has it is taken.
b: BEGIN
b: SELECT * FROM t
a: SET sql_mode = ''
a: SELECT * FROM t
a: UPDATE t SET v = v + 1
a execute p0 ()
a execute p0 ()
a: SELECT * FROM t
a execute p0 ()
