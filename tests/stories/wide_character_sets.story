# Clients that speak in character sets of several bytes: their texts are read like any others.

# Results, literals and the pool's own questions are in character sets of two and four bytes.
story wide_character_sets_are_their_clients_own
backends 2
b: CREATE TABLE t (a INT AUTO_INCREMENT PRIMARY KEY, b VARCHAR(9)) ;; SET time_zone = '+01:00'
for charset:
- ucs2
- utf16
- utf16le
- utf32
  for set:
  - character_set_results = $charset
  - character_set_connection = $charset
  - collation_connection = ${charset}_general_ci
    a joins
    a: SET $set ;; SELECT 1 ;; SET time_zone = '+02:00'
    b: SELECT @@time_zone, @@collation_connection ;; SELECT 'b'
    a: SET @x = 'abc' ;; SELECT HEX(@x), HEX('a'), @@time_zone, 'a'
    a: INSERT INTO t (b) VALUES ('a') ;; SELECT LAST_INSERT_ID() > 0
    a: SELECT CAST('x' AS SIGNED) ;; SHOW WARNINGS ;; SELECT no_such_column ;; SHOW WARNINGS
    a: SELECT b FROM t WHERE a = 1
    a prepare p: SELECT ?, 'p'
    a execute p ('1')
    a reset
    a: SELECT @@collation_connection, 'a'
    b: SELECT 5 FROM t WHERE b = 'b'
    a leaves
  end
end

# Ways into such a character set that are no SET of their own.
story wide_character_sets_come_in_many_ways
backends 2
let all = SELECT @v, @w IS NULL, @x <=> 'abc', @x <=> 'é', @y <=> 'def', @y <=> 'q', HEX('a'), @@time_zone
b: CREATE TABLE t (a INT AUTO_INCREMENT PRIMARY KEY, b VARCHAR(9))
b: CREATE PROCEDURE p() SET character_set_results = utf16
b: CREATE PROCEDURE q() BEGIN SET @y = 'q'; SET collation_connection = utf32_bin; END
for way:
- SET NAMES ucs2
- SET NAMES utf16 COLLATE utf16_bin
- SET character_set_client = utf32
- SET NAMES utf8mb4, character_set_results = ucs2
- SET @x = 'abc', character_set_connection = utf32, @y = 'def'
- SET @@session.character_set_results = 'utf16', time_zone = '+03:00'
- SET character_set_results = 35
- SET collation_connection = 'ucs2_general_ci'
- INSERT INTO t (b) VALUES ('x'); SET character_set_results = utf16; SELECT 'z'
- SET character_set_connection = ucs2; INSERT INTO t (b) VALUES (CAST('y' AS CHAR)); \
    SELECT CAST('a' AS SIGNED)
- SET collation_connection = utf16_bin; SET NAMES latin1; SELECT 'a'
- CALL p()
- CALL q()
  a joins
  a: SET @v = 'v', time_zone = '+02:00' ;; $way
  b: SELECT @v IS NULL, @@time_zone, @@collation_connection ;; SET @w = 'w'
  a: $all ;; SHOW WARNINGS ;; SELECT LAST_INSERT_ID() > 0, ROW_COUNT()
  a: SET @x = 'é'
  a: SELECT CAST('x' AS SIGNED) ;; SHOW COUNT(*) WARNINGS ;; SET NAMES utf8mb4 ;; $all
  b: SELECT @w, 'b', @@collation_connection
  a prepare p: SELECT ?, 'p', @v
  a execute p ('1')
  a: $way
  a execute p ('1')
  a becomes
  a: SELECT @@collation_connection, 'a', @v
  a leaves
  b: SELECT @w, 'b', @@collation_connection
end

# ucs2, utf16, utf16le, utf32; one that is nobody's.
story a_login_in_a_character_set_that_no_client_may_speak_is_refused
backends 2
for collation:
- 35
- 101
- 60
- 0
  a joins no_schema collation $collation
  a joins no_schema collation $collation password wrong
  b joins no_schema
  b becomes no_schema collation $collation
  b: SELECT @@collation_connection, DATABASE()
end

# Of a schema that there is not, or whose name the character set cannot say: utf8mb3, binary and
# utf8mb4.
story a_login_with_a_schema_that_cannot_be_is_refused
backends 2
for collation:
- 33
- 63
- 45
  for into:
  - 'a😁 '
  - 'a😁'
  - 'те'
  - 'no_such'
  - 'a '
    a joins collation $collation schema $into
  end
end
