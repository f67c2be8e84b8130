# MariaDB's extended capabilities: more of types in metadata, and bulk execution.

story bulk_executions_are_those_of_the_server_itself
backends 2
let bytes = \x80\x00\xfd\x00\xfd\x00\x00\x011\x00\x03one\x00\x012\x01\x00\x013\x00\x05three
let bytes2 = \x80\x00\xfd\x00\xfd\x00\x00\x014\x00\x04four\x00\x015\x00\x00
a: CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20)) ENGINE=InnoDB
b joins extended 0x4
c joins without DEPRECATE_EOF extended 0x4
b prepare p0: INSERT INTO t (id, v) VALUES (?, ?)
b sends p0 0xfa: $bytes
b: SELECT * FROM t ORDER BY id
b sends p0 0xfa: $bytes
b: SHOW WARNINGS
b sends p0 0xfa: $bytes2
b execute p0 ('6', 'alone')
b: SELECT COUNT(*), SUM(id), MAX(v) FROM t
b: DELETE FROM t
a: SELECT COUNT(*) FROM t
c prepare p0: INSERT INTO t (id, v) VALUES (?, ?)
c sends p0 0xfa: $bytes
c: SELECT * FROM t ORDER BY id
c sends p0 0xfa: $bytes
c: SHOW WARNINGS
c sends p0 0xfa: $bytes2
c execute p0 ('6', 'alone')
c: SELECT COUNT(*), SUM(id), MAX(v) FROM t
c: DELETE FROM t
a: SELECT COUNT(*) FROM t
b prepare p1: INSERT INTO t (id, v) VALUES (?, ?)
b sends p1 0xfa: $bytes
b: SELECT * FROM t ORDER BY id
b sends p1 0xfa: $bytes
b: SHOW WARNINGS
b sends p1 0xfa: $bytes2
b execute p1 ('6', 'alone')
b: SELECT COUNT(*), SUM(id), MAX(v) FROM t
b: DELETE FROM t
a: SELECT COUNT(*) FROM t
b: BEGIN
b prepare p2: INSERT INTO t (id, v) VALUES (?, ?)
b sends p2 0xfa: $bytes
b: SELECT * FROM t ORDER BY id
b sends p2 0xfa: $bytes
b: SHOW WARNINGS
b sends p2 0xfa: $bytes2
b execute p2 ('6', 'alone')
b: SELECT COUNT(*), SUM(id), MAX(v) FROM t
b: DELETE FROM t
b: ROLLBACK

# A bulk execution that leaves out its types, behind an ALTER TABLE, on a backend that has never
# seen them.
story a_bulk_execution_goes_on_with_its_types_of_before
only mariadb
a joins extended 0x4
b joins without DEPRECATE_EOF extended 0x4
for who:
- a
- b
  c: CREATE TABLE t (a INT)
  $who prepare p0: INSERT INTO t (a) VALUES (?)
  $who sends p0 0xfa: \x80\x00\xfd\x00\x00\x011\x00\x012
  c: ALTER TABLE t ADD b INT
  $who sends p0 0xfa: \x00\x00\x00\x011\x00\x012
  c: ALTER TABLE t ADD c INT
  $who sends p0 0xfa: \x00\x00\x00\x011\x00\x012
  c: DROP TABLE t
  $who sends p0 0xfa: \x00\x00\x00\x011\x00\x012
  c: CREATE TABLE t (a INT)
  $who sends p0 0xfa: \x00\x00\x00\x011\x00\x012
  c: SELECT SUM(a) FROM t
  $who: SELECT * FROM t
  c: DROP TABLE t
end

story extended_metadata_tell_of_types_what_the_server_tells
backends 2
a: CREATE TABLE t (j JSON, u UUID, i INET6, p POINT, n INT)
a: INSERT INTO t VALUES ('{}', NULL, '::1', POINT(1, 2), 5)
b joins extended 0x8
c joins without DEPRECATE_EOF extended 0x8
a: SELECT * FROM t
a: SET @a = 7, @b = 'text'
a: SELECT n INTO @c FROM t
a: SELECT @a, @b, @c
a: SELECT 1/0
a: SHOW WARNINGS
a prepare p0: SELECT j, u, ? FROM t
a execute p0 ('x')
a command 0x04: t\x00
b: SELECT * FROM t
b: SET @a = 7, @b = 'text'
b: SELECT n INTO @c FROM t
b: SELECT @a, @b, @c
b: SELECT 1/0
b: SHOW WARNINGS
b prepare p0: SELECT j, u, ? FROM t
b execute p0 ('x')
b command 0x04: t\x00
c: SELECT * FROM t
c: SET @a = 7, @b = 'text'
c: SELECT n INTO @c FROM t
c: SELECT @a, @b, @c
c: SELECT 1/0
c: SHOW WARNINGS
c prepare p0: SELECT j, u, ? FROM t
c execute p0 ('x')
c command 0x04: t\x00
a: SELECT * FROM t
a: SET @a = 7, @b = 'text'
a: SELECT n INTO @c FROM t
a: SELECT @a, @b, @c
a: SELECT 1/0
a: SHOW WARNINGS
a prepare p1: SELECT j, u, ? FROM t
a execute p1 ('x')
a command 0x04: t\x00
b: SELECT * FROM t
b: SET @a = 7, @b = 'text'
b: SELECT n INTO @c FROM t
b: SELECT @a, @b, @c
b: SELECT 1/0
b: SHOW WARNINGS
b prepare p1: SELECT j, u, ? FROM t
b execute p1 ('x')
b command 0x04: t\x00

# MariaDB's ROW_COUNT() is that of the last execution of a loop, and the OK has the total; a
# statement that takes all rows at once counts them all.
story rows_of_bulk_executions_are_counted_as_on_the_server
a joins extended 0x4
a: CREATE TABLE t (id INT PRIMARY KEY, v INT)
a: CREATE TABLE u (id INT PRIMARY KEY)
for what, who, what2:
- p0: INSERT INTO t (id) VALUES (?) | p0 | )
- p1: REPLACE INTO t (id) VALUES (?) | p1 | )
- p2: INSERT IGNORE INTO t (id) VALUES (?) | p2 | )
- p3: INSERT INTO t (id) VALUES (?) ON DUPLICATE KEY UPDATE v = 1 | p3 | )
- p4: INSERT INTO u SELECT id FROM t WHERE id = ? | p4 | ) => or error 1235
- p5: UPDATE t SET v = 5 WHERE id = ? | p5 | ) => or error 1235
- p6: DELETE FROM t WHERE id = ? | p6 | ) => or error 1235
  a prepare $what
  a sends $who 0xfa: \x80\x00\xfd\x00\x00\x011\x00\x012\x00\x013
  b: SELECT 1
  a: SELECT ROW_COUNT($what2
  a sends $who 0xfa: \x80\x00\xfd\x00\x00\x011\x00\x012\x00\x013
  a: SELECT ROW_COUNT()
  a sends $who 0xfa: \x80\x00\xfd\x00\x00\x013\x00\x014\x00\x015
  b: SELECT 1
  a: SELECT ROW_COUNT($what2
  a sends $who 0xfa: \x80\x00\xfd\x00\x00\x013\x00\x014\x00\x015
  a: SELECT ROW_COUNT()
end

# A bulk execution of what asks about the statement before, which another backend ran, is refused:
# the answer differs from one row to the next. Nothing of it has been executed then.
story a_bulk_execution_that_asks_is_executed_as_it_is_or_not_at_all
only mariadb
a joins extended 0x4
a: CREATE TABLE t (id INT, v INT, n INT)
for asks:
- INSERT INTO t VALUES (?, ?, ROW_COUNT())
- UPDATE t SET n = ROW_COUNT() + ? WHERE id = ?
  a prepare p: $asks
  a: INSERT INTO t VALUES (7, 7, 7), (8, 8, 8)
  a bulk p ('1', '2') ('3', '4')
  a: SELECT * FROM t ;; TRUNCATE t ;; INSERT INTO t VALUES (7, 7, 7), (8, 8, 8)
  b: SELECT 1
  a bulk p ('1', '2') ('3', '4') => pool: error 1235
  a: SELECT GROUP_CONCAT(n) FROM t => pool: 7,8
  a: TRUNCATE t
end
