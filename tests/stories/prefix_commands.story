# What brings a backend into its client's session goes out with the client's command, whatever
# that is; where it fails, the command has not run.

# One after the other: both have a table in the schema that all tests of a server share.
story a_statement_that_takes_something_is_answered_as_alone
a joins with MULTI_STATEMENTS
b joins schema 'shop' with MULTI_STATEMENTS
a, b: DROP TABLE IF EXISTS turns
a, b: CREATE TABLE turns (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(40))
a, b: SET @a = 'a;b', @b = DATABASE()
a, b: SELECT @a, @b
a, b: INSERT INTO turns (v) VALUES (@a), (DATABASE()), ('c;d'), ('it\'s; -- x')
a, b: SELECT LAST_INSERT_ID(), ROW_COUNT()
a, b: SELECT v, @n := id FROM turns WHERE v LIKE '%;%' ORDER BY id
a, b: SELECT @n
a, b: SELECT MAX(id) FROM turns INTO @top
a, b: SELECT @top, FOUND_ROWS()
a: SELECT GET_LOCK(DATABASE(), 1)
a: SELECT IS_USED_LOCK(DATABASE()) IS NULL
a: DO RELEASE_ALL_LOCKS()
b: SELECT GET_LOCK(DATABASE(), 1)
b: SELECT IS_USED_LOCK(DATABASE()) IS NULL
b: DO RELEASE_ALL_LOCKS()
a: CREATE TEMPORARY TABLE passing SELECT v FROM turns
a: SELECT COUNT(*) FROM passing
a: DROP TEMPORARY TABLE passing
b: CREATE TEMPORARY TABLE passing SELECT v FROM turns
b: SELECT COUNT(*) FROM passing
b: DROP TEMPORARY TABLE passing
a, b: CREATE TEMPORARY TABLE passing SELECT v FROM missing
a: LOCK TABLES turns WRITE
a: INSERT INTO turns (v) VALUES ('locked')
a: UNLOCK TABLES
b: LOCK TABLES turns WRITE
b: INSERT INTO turns (v) VALUES ('locked')
b: UNLOCK TABLES
a: START TRANSACTION
a: UPDATE turns SET v = 'x' WHERE id = 1
a: ROLLBACK
b: START TRANSACTION
b: UPDATE turns SET v = 'x' WHERE id = 1
b: ROLLBACK
a: XA START 'turns'
a: XA END 'turns'
a: XA ROLLBACK 'turns'
b: XA START 'turns'
b: XA END 'turns'
b: XA ROLLBACK 'turns'
for what:
- DEALLOCATE PREPARE s
- USE missing
- SELECT DATABASE()
- HELP 'missing'
- ;
- ;;
- ; SELECT 1
- /* only */
- /*! */
- /*!99999 SELECT 1 */
- # x
- SELECT 1;; SELECT 2
- SELECT ';' -- ; '
- DROP TABLE turns
  a, b: $what
end
for who, what:
- a | shop
- b | $schema
- a | $schema
- b | missing
- a | $schema
- b | shop
  $who init_db: $what
  $who: USE $what
  $who: SELECT DATABASE()
end

# An execution of what was prepared without a schema leaves the default one and comes back to it,
# which servers report; where it fails, some of them later.
story what_was_prepared_without_a_schema_names_it_again
a joins schema '' with MULTI_STATEMENTS
b joins schema '' without DEPRECATE_EOF
c joins schema '' without SESSION_TRACK
a: CREATE TABLE $schema.prefixed (v INT PRIMARY KEY)
a prepare p0: INSERT INTO $schema.prefixed VALUES (1)
a prepare p1: SELECT v FROM $schema.prefixed
a prepare p2: DO 1
a prepare p3: SET time_zone = '+03:00'
a: DO 1
b prepare p0: INSERT INTO $schema.prefixed VALUES (1)
b prepare p1: SELECT v FROM $schema.prefixed
b prepare p2: DO 1
b prepare p3: SET time_zone = '+03:00'
b: DO 1
c prepare p0: INSERT INTO $schema.prefixed VALUES (1)
c prepare p1: SELECT v FROM $schema.prefixed
c prepare p2: DO 1
c prepare p3: SET time_zone = '+03:00'
c: DO 1
for what:
- shop
- $schema
  a init_db: $what
  a execute p0 ()
  a: SELECT DATABASE()
  a: SET sql_mode = ''
  a execute p1 ()
  a: SELECT DATABASE()
  a: SET sql_mode = ''
  a execute p2 ()
  a: SELECT DATABASE()
  a: SET sql_mode = ''
  a execute p3 ()
  a: SELECT DATABASE()
  a: SET sql_mode = ''
  b init_db: $what
  b execute p0 ()
  b: SELECT DATABASE()
  b: SET sql_mode = ''
  b execute p1 ()
  b: SELECT DATABASE()
  b: SET sql_mode = ''
  b execute p2 ()
  b: SELECT DATABASE()
  b: SET sql_mode = ''
  b execute p3 ()
  b: SELECT DATABASE()
  b: SET sql_mode = ''
  c init_db: $what
  c execute p0 ()
  c: SELECT DATABASE()
  c: SET sql_mode = ''
  c execute p1 ()
  c: SELECT DATABASE()
  c: SET sql_mode = ''
  c execute p2 ()
  c: SELECT DATABASE()
  c: SET sql_mode = ''
  c execute p3 ()
  c: SELECT DATABASE()
  c: SET sql_mode = ''
end

# A procedure uses what its client has, and finds the client's counts.
story a_call_in_front_of_which_a_schema_is_set_is_answered_as_alone
backends 2
a joins schema 'shop'
b: DROP PROCEDURE IF EXISTS tells
b: CREATE PROCEDURE tells() SELECT DATABASE(), @mine
b: SET @mine = CONCAT('of ', DATABASE())
b: SELECT 1 UNION SELECT 2 UNION SELECT 3
a: DROP PROCEDURE IF EXISTS tells
a: CREATE PROCEDURE tells() SELECT DATABASE(), @mine
a: SET @mine = CONCAT('of ', DATABASE())
a: SELECT 1 UNION SELECT 2 UNION SELECT 3
b: CALL tells()
b: SELECT @mine, DATABASE()
b: DROP PROCEDURE tells
a: CALL tells()
a: SELECT @mine, DATABASE()
a: DROP PROCEDURE tells
