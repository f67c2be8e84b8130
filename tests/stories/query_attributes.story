# Query attributes: what a client sends beside one statement reaches that statement and no other.
#
# MySQL's component `query_attributes` gives them back in words, so every story asks for them: on
# a backend that others use in between, in front of which the pool has said something of its own.
let asked = SELECT mysql_query_attribute_string('n')

# The bytes of executions as drivers may write them.
story executions_are_relayed_byte_by_byte
only mysql
let bytes = \x00\x01\x00\x00\x00\x01\x00\x01\x03\x00\x00\x07\x00\x00\x00
a, b joins with QUERY_ATTRIBUTES
a prepare p0: SELECT mysql_query_attribute_string('n')
a prepare p1: SELECT ?, mysql_query_attribute_string('n')
b prepare p0: SELECT ?, mysql_query_attribute_string('n')
a execute p0 ()
for what:
- p0 0x17: \x08\x01\x00\x00\x00\x00
- p0 0x17: \x08\x01\x00\x00\x00
- p0 0x17: \x08\x01\x00\x00\x00\x01\x00\x01\xfe\x00\x01n\x01v
- p0 0x17: \x08\x01\x00\x00\x00\x01\x00\x00\x01v
- p1 0x17: \x00\x01\x00\x00\x00\x01\x00\x01\xfe\x00\x00\x01x
- p1 0x17: \x00\x01\x00\x00\x00\x01\x00\x00\x01y
- p1 0x17: \x08\x01\x00\x00\x00\x02\x00\x01\xfe\x00\x00\xfe\x00\x01n\x01y\x01v
- p1 0x17: \x08\x01\x00\x00\x00\x01\x00\x00\x01z
- p1 0x17: \x08\x01\x00\x00\x00\x02\x00\x00\x01z\x01w
- p1 0x17: \x08\x01\x00\x00\x00\x00
- p1 0x17: \x08\x01\x00\x00\x00\x01\x00\x01\xfe\x00\x01n\x01y
- p1 0x17: \x08\x01\x00\x00\x00\x01\x00\x00\x01z
- p1 0x17: \x08\x01\x00\x00\x00\x02\x01\x01\xfe\x00\x00\xfe\x00\x01n\x01v
- p1 0x17: \x00\x01\x00\x00\x00\x01\x01\x00
- p1 0x17: \x00\x01\x00\x00\x00\x01\x00\x01\x03\x00\x00\x07\x00\x00\x00
- p1 0x17: \x00\x01\x00\x00\x00\x01\x00\x00\x08\x00\x00\x00
  b sends p0 0x17: $bytes
  a sends $what
end
b sends p0 0x17: $bytes
a execute p1 ()
b sends p0 0x17: $bytes
a close p1
a: SELECT mysql_query_attribute_string('n')

# In front of what follows the SETs goes what the pool says of the session.
story a_statement_has_its_own_attributes_and_no_others
only mysql
a, b joins with QUERY_ATTRIBUTES
plain joins
a attribute: of a
a, a, b, plain: $asked
b attribute: of b
b: $asked
a attribute: 
a: $asked ;; SET time_zone = '+05:00' ;; SET @mine = 'a'
b: SET time_zone = '-05:00'
for value:
- one
- two
  a attribute: $value
  a: $asked
  b: $asked
  b attribute: $value
  b: SELECT @@time_zone, IFNULL(@mine, 'none')
  a attribute: $value
  a: SELECT @mine, CONNECTION_ID() > 0 AS c, @@time_zone
end
a attribute: kept
a: SET @kept = mysql_query_attribute_string('n')
b: SET @kept = 'of b'
a attribute: later
a: SELECT @kept, mysql_query_attribute_string('n') => kept, later

story what_is_said_in_other_words_keeps_its_attributes
only mysql
a, b joins with QUERY_ATTRIBUTES
a: CREATE TABLE t (v INT)
a attribute: own id
a: SELECT mysql_query_attribute_string('n'), CONNECTION_ID() > 0 AS c ;; SELECT 1 / 0
b: SELECT 1
a attribute: counts
a: SELECT @@warning_count, mysql_query_attribute_string('n') => or error 1235
a: INSERT INTO t VALUES (1), (2), (3)
b: $asked
a attribute: rows
a: SELECT ROW_COUNT(), mysql_query_attribute_string('n') => or error 1235
a: SELECT 1 / 0
b: $asked
a attribute: warnings
a: SHOW WARNINGS

story attributes_reach_a_text_behind_what_sets_its_schema
only mysql
a joins with QUERY_ATTRIBUTES
b joins schema 'shop' with QUERY_ATTRIBUTES
for value:
- one
- two;
-
  for who:
  - a
  - b
    $who attribute: $value
    $who: SELECT mysql_query_attribute_string('n'), DATABASE(), ';'
    $who: SELECT mysql_query_attribute_string('n'), DATABASE(), ';'
    $who attribute: $value
    $who: SET @a = mysql_query_attribute_string('n')
    $who: SELECT @a
  end
end

story executions_have_attributes_of_their_own
only mysql
backends 3
a, b joins with QUERY_ATTRIBUTES
plain joins
a, b, plain prepare bare: $asked
a, b, plain prepare more: SELECT ?, mysql_query_attribute_string('n'), @@time_zone
b: SET time_zone = '+02:00'
for who:
- a
- b
- plain
- b
- a
- plain
  $who attribute: of $who
  $who execute bare ()
  $who execute bare ()
  $who attribute: of more
  $who execute more ('x')
  $who execute more (NULL)
  $who again more ('again')
  $who: BEGIN ;; ROLLBACK ;; SET @a = 1 ;; SELECT @a ;; COMMIT
end
a attribute: before BEGIN
a execute bare ()
a attribute: of BEGIN
a: BEGIN
a execute bare ()
a: COMMIT
b attribute: with a cursor
b open bare ()

story attributes_travel_with_everything_else_that_a_session_does
only mysql
backends 2
let insert = INSERT INTO t (v) VALUES (mysql_query_attribute_string('n'))
for more:
- LONG_PASSWORD
- COMPRESS
- MULTI_STATEMENTS
- LOCAL_FILES
- FOUND_ROWS
  a, b joins with QUERY_ATTRIBUTES+$more
  a: DROP TABLE IF EXISTS t ;; CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(40))
  a attribute: first
  a: $insert
  b: $insert
  a: SELECT LAST_INSERT_ID()
  a attribute: both
  a: $asked; $asked
  a attribute: file
  a: LOAD DATA LOCAL INFILE 'anything' INTO TABLE t
  a attribute: begin
  a: BEGIN
  a attribute: in it
  a: $insert
  b attribute: beside it
  b: $asked
  a attribute: fails
  a: SELECT * FROM missing
  a attribute: end
  a: COMMIT
  b: SELECT * FROM t
  a reset
  a: $asked
  b becomes with QUERY_ATTRIBUTES+$more
  b attribute: changed
  b: $asked
end
