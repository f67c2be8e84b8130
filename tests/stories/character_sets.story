# Clients that speak in character sets of several bytes: their texts are read like any others.

# One backend for two clients: whoever is pinned makes the other wait in vain.
story letters_of_several_bytes_pin_nobody
a: SET NAMES gbk
a bytes: CREATE TABLE `t\xd6\xd0` (`\xd6\xd0` VARCHAR(20) CHARACTER SET utf8mb4)
b: SELECT @@character_set_client, @v
a bytes: INSERT INTO `t\xd6\xd0` VALUES (\'\xd6\xd0\'), (\'a\xd6\xd0b\\\'c\')
b: SELECT @@character_set_client, @v
a bytes: SELECT `\xd6\xd0`, HEX(`\xd6\xd0`), \'\xd6\xd0\' AS `x\xd6\xd0` FROM `t\xd6\xd0` \
    -- \xd6\xd0
b: SELECT @@character_set_client, @v
a bytes: SELECT /* \xd6\xd0 */ \"\xd6\xd0\", CONNECTION_ID() > 0 AS c
b: SELECT @@character_set_client, @v
a bytes: SET @v = \'\xd6\xd0\'
b: SELECT @@character_set_client, @v
a: SELECT @v, HEX(@v), CHARSET(@v)
b: SELECT @@character_set_client, @v
a bytes: DROP TABLE `t\xd6\xd0`
b: SELECT @@character_set_client, @v
a: SET NAMES sjis
a bytes: CREATE TABLE `t\x93\xfa` (`\x93\xfa` VARCHAR(20) CHARACTER SET utf8mb4)
b: SELECT @@character_set_client, @v
a bytes: INSERT INTO `t\x93\xfa` VALUES (\'\x93\xfa\'), (\'a\x93\xfab\\\'c\')
b: SELECT @@character_set_client, @v
a bytes: SELECT `\x93\xfa`, HEX(`\x93\xfa`), \'\x93\xfa\' AS `x\x93\xfa` FROM `t\x93\xfa` \
    -- \x93\xfa
b: SELECT @@character_set_client, @v
a bytes: SELECT /* \x93\xfa */ \"\x93\xfa\", CONNECTION_ID() > 0 AS c
b: SELECT @@character_set_client, @v
a bytes: SET @v = \'\x93\xfa\'
b: SELECT @@character_set_client, @v
a: SELECT @v, HEX(@v), CHARSET(@v)
b: SELECT @@character_set_client, @v
a bytes: DROP TABLE `t\x93\xfa`
b: SELECT @@character_set_client, @v
a: SET NAMES big5
a bytes: CREATE TABLE `t\xa4\xa4` (`\xa4\xa4` VARCHAR(20) CHARACTER SET utf8mb4)
b: SELECT @@character_set_client, @v
a bytes: INSERT INTO `t\xa4\xa4` VALUES (\'\xa4\xa4\'), (\'a\xa4\xa4b\\\'c\')
b: SELECT @@character_set_client, @v
a bytes: SELECT `\xa4\xa4`, HEX(`\xa4\xa4`), \'\xa4\xa4\' AS `x\xa4\xa4` FROM `t\xa4\xa4` \
    -- \xa4\xa4
b: SELECT @@character_set_client, @v
a bytes: SELECT /* \xa4\xa4 */ \"\xa4\xa4\", CONNECTION_ID() > 0 AS c
b: SELECT @@character_set_client, @v
a bytes: SET @v = \'\xa4\xa4\'
b: SELECT @@character_set_client, @v
a: SELECT @v, HEX(@v), CHARSET(@v)
b: SELECT @@character_set_client, @v
a bytes: DROP TABLE `t\xa4\xa4`
b: SELECT @@character_set_client, @v
a: SET NAMES euckr
a bytes: CREATE TABLE `t\xc7\xd1` (`\xc7\xd1` VARCHAR(20) CHARACTER SET utf8mb4)
b: SELECT @@character_set_client, @v
a bytes: INSERT INTO `t\xc7\xd1` VALUES (\'\xc7\xd1\'), (\'a\xc7\xd1b\\\'c\')
b: SELECT @@character_set_client, @v
a bytes: SELECT `\xc7\xd1`, HEX(`\xc7\xd1`), \'\xc7\xd1\' AS `x\xc7\xd1` FROM `t\xc7\xd1` \
    -- \xc7\xd1
b: SELECT @@character_set_client, @v
a bytes: SELECT /* \xc7\xd1 */ \"\xc7\xd1\", CONNECTION_ID() > 0 AS c
b: SELECT @@character_set_client, @v
a bytes: SET @v = \'\xc7\xd1\'
b: SELECT @@character_set_client, @v
a: SELECT @v, HEX(@v), CHARSET(@v)
b: SELECT @@character_set_client, @v
a bytes: DROP TABLE `t\xc7\xd1`
b: SELECT @@character_set_client, @v
a: SET NAMES ujis
a bytes: CREATE TABLE `t\xc6\xfc` (`\xc6\xfc` VARCHAR(20) CHARACTER SET utf8mb4)
b: SELECT @@character_set_client, @v
a bytes: INSERT INTO `t\xc6\xfc` VALUES (\'\xc6\xfc\'), (\'a\xc6\xfcb\\\'c\')
b: SELECT @@character_set_client, @v
a bytes: SELECT `\xc6\xfc`, HEX(`\xc6\xfc`), \'\xc6\xfc\' AS `x\xc6\xfc` FROM `t\xc6\xfc` \
    -- \xc6\xfc
b: SELECT @@character_set_client, @v
a bytes: SELECT /* \xc6\xfc */ \"\xc6\xfc\", CONNECTION_ID() > 0 AS c
b: SELECT @@character_set_client, @v
a bytes: SET @v = \'\xc6\xfc\'
b: SELECT @@character_set_client, @v
a: SELECT @v, HEX(@v), CHARSET(@v)
b: SELECT @@character_set_client, @v
a bytes: DROP TABLE `t\xc6\xfc`
b: SELECT @@character_set_client, @v

# What a server takes for the end of such a letter is no backslash.
story a_letter_that_ends_with_a_backslash_is_read_as_the_server_reads_it
backends 2
for what, what2:
- gbk | x81
- sjis | x83
- big5 | xa5
  a: SET NAMES $what
  a bytes: SELECT HEX(\'\$what2\\\'), \'behind\'
  b: SELECT @@character_set_client
  a bytes: SELECT HEX(\'\$what2\\\'), GET_LOCK(\'$schema\', 1) -- \'
  b: SELECT @@character_set_client
  a: SELECT IS_USED_LOCK('$schema') IS NULL
  b: SELECT @@character_set_client
  a: SELECT RELEASE_ALL_LOCKS()
  b: SELECT @@character_set_client
end

# The set of a client's texts has a collation that no variable shows; parameters have it too.
story parameters_have_the_collation_of_their_client
backends 2
for what, who:
- utf8mb4 COLLATE utf8mb4_bin | p0
- utf8mb4 | p1
- latin1 | p2
  a: SET NAMES $what
  b: BEGIN /* now */
  # The next backend is another one.
  a prepare $who: SELECT ?, ? = 'RED'
  a execute $who ('red', 'red')
  b: COMMIT
end

story a_backend_that_begins_anew_has_the_character_set_of_its_schema
let probe = SELECT DATABASE(), @@character_set_database, @@collation_database, \
    @@character_set_connection, @@collation_connection
a: ALTER DATABASE $schema CHARACTER SET koi8r
a: CREATE TABLE t (v VARCHAR(9) CHARACTER SET utf8mb4)
for who:
- n0
- n1
  b: SELECT 1
  b: $probe
  c: SET @$who = 1
  b: SELECT @$who
  b: $probe
  b: SET CHARACTER SET utf8mb4
  b: $probe
  b: INSERT INTO t VALUES ('я日')
  b: SELECT HEX(v) FROM t
  b: SET NAMES utf8mb4
  c: $probe
  c: USE information_schema
  c: $probe
  b: SELECT @$who
  b: $probe
end

story the_character_set_of_a_schema_is_set_for_one_client_alone
let probe = SELECT DATABASE(), @@character_set_database, @@collation_database, \
    @@character_set_connection, @@collation_connection
a: ALTER DATABASE $schema CHARACTER SET koi8r
a: CREATE TABLE t (v VARCHAR(9) CHARACTER SET utf8mb4)
b: SET character_set_database = greek
for sql, who, sql2:
- SELECT DATABASE(), @@character_set_database, @@collation_database, @@character_set_connection, \
    @@collation_connection | c | SET CHARACTER SET utf8mb4
- SET CHARACTER SET utf8mb4 | b | SET @@collation_database = hebrew_general_ci
- SELECT DATABASE(), @@character_set_database, @@collation_database, @@character_set_connection, \
    @@collation_connection | c | USE $schema
  b: $sql
  $who: $probe
  c: $sql2
  c: $probe
end
b: SET character_set_database = DEFAULT
b, c: $probe
b: USE no_such_schema
b: $probe
b: USE $schema
b: $probe

story a_session_that_begins_anew_forgets_the_character_set_of_its_schema
let probe = SELECT DATABASE(), @@character_set_database, @@collation_database, \
    @@character_set_connection, @@collation_connection
a: ALTER DATABASE $schema CHARACTER SET koi8r
a: CREATE TABLE t (v VARCHAR(9) CHARACTER SET utf8mb4)
b reset
c, b: $probe
b: SET CHARACTER SET utf8mb4
b, c: $probe
b: SELECT 1, DATABASE()
c becomes
b, c: $probe
b: USE $schema
b: $probe
b: SET character_set_database = greek
b reset
c, b: $probe

# A change of user that fails leaves the schema of before, and the server's character set.
story a_failed_change_of_user_forgets_the_character_set_of_its_schema
only mariadb
backends 2
let probe = SELECT DATABASE(), @@character_set_database, @@collation_database, \
    @@character_set_connection, @@collation_connection
a: ALTER DATABASE $schema CHARACTER SET koi8r
for change:
- collation 35
- password wrong
- schema no_such_schema
  b, c joins
  b: $probe
  b becomes $change
  b, c: $probe
  b: SET CHARACTER SET utf8mb4
  b, c: $probe
  b: USE $schema
  b, c: $probe
  b, c leaves
end

# A reset leaves the server's character set in place of the schema's. On MySQL an account that may
# not set that gets it all the same, on a backend that it shares with one that did not reset.
story a_reset_without_privileges_leaves_the_servers_character_set
let probe = SELECT DATABASE(), @@character_set_database, CONCAT('', @x), @@collation_database, \
    @@sql_mode
server: ALTER DATABASE $schema CHARACTER SET greek
server: CREATE DATABASE IF NOT EXISTS ${schema}_2 CHARACTER SET cp1250
server: GRANT ALL ON `$schema%`.* TO small@'%'
a, b, c joins user small
a, b, c: $probe
a reset
a, b, c: $probe
b: USE ${schema}_2
a: SET @x = 1, sql_mode = 'ANSI_QUOTES'
a, b, c: $probe
b reset
a, b, c: $probe
a: SET CHARACTER SET latin1
a, b, c: $probe
a: SELECT @@collation_connection
a: USE $schema
a, b, c: $probe

# MariaDB gives a character set back with its default collation, whatever the session had.
story a_character_set_of_one_statement_is_not_left_to_others
backends 2
let probe = SELECT @@collation_server, @@collation_database, @@collation_connection
a: SET collation_server = utf8mb4_bin
a: SET NAMES utf8mb4 COLLATE utf8mb4_bin
b: SET collation_server = utf8mb4_bin
b: SET NAMES utf8mb4 COLLATE utf8mb4_bin
b: SET STATEMENT character_set_server = latin1 FOR SELECT 1
a: $probe
a: CREATE DATABASE sleak
a: SHOW CREATE DATABASE sleak
a: DROP DATABASE sleak
b: $probe
b: CREATE DATABASE sleak
b: SHOW CREATE DATABASE sleak
b: DROP DATABASE sleak
a: $probe
a: CREATE DATABASE sleak
a: SHOW CREATE DATABASE sleak
a: DROP DATABASE sleak
a, b leaves
c: SET collation_server = utf8mb4_bin
c: SET NAMES utf8mb4 COLLATE utf8mb4_bin
d: SET collation_server = utf8mb4_bin
d: SET NAMES utf8mb4 COLLATE utf8mb4_bin
d: SET STATEMENT character_set_database = latin1 FOR SELECT 1
c: $probe
c: CREATE DATABASE sleak
c: SHOW CREATE DATABASE sleak
c: DROP DATABASE sleak
d: $probe
d: CREATE DATABASE sleak
d: SHOW CREATE DATABASE sleak
d: DROP DATABASE sleak
c: $probe
c: CREATE DATABASE sleak
c: SHOW CREATE DATABASE sleak
c: DROP DATABASE sleak
c, d leaves
e: SET collation_server = utf8mb4_bin
e: SET NAMES utf8mb4 COLLATE utf8mb4_bin
f: SET collation_server = utf8mb4_bin
f: SET NAMES utf8mb4 COLLATE utf8mb4_bin
f: SET STATEMENT character_set_results = latin1 FOR SELECT 1
e: $probe
e: CREATE DATABASE sleak
e: SHOW CREATE DATABASE sleak
e: DROP DATABASE sleak
f: $probe
f: CREATE DATABASE sleak
f: SHOW CREATE DATABASE sleak
f: DROP DATABASE sleak
e: $probe
e: CREATE DATABASE sleak
e: SHOW CREATE DATABASE sleak
e: DROP DATABASE sleak
e, f leaves
g: SET collation_server = utf8mb4_bin
g: SET NAMES utf8mb4 COLLATE utf8mb4_bin
h: SET collation_server = utf8mb4_bin
h: SET NAMES utf8mb4 COLLATE utf8mb4_bin
h: SET STATEMENT character_set_results = NULL FOR SELECT 1
g: $probe
g: CREATE DATABASE sleak
g: SHOW CREATE DATABASE sleak
g: DROP DATABASE sleak
h: $probe
h: CREATE DATABASE sleak
h: SHOW CREATE DATABASE sleak
h: DROP DATABASE sleak
g: $probe
g: CREATE DATABASE sleak
g: SHOW CREATE DATABASE sleak
g: DROP DATABASE sleak
g, h leaves
i: SET collation_server = utf8mb4_bin
i: SET NAMES utf8mb4 COLLATE utf8mb4_bin
j: SET collation_server = utf8mb4_bin
j: SET NAMES utf8mb4 COLLATE utf8mb4_bin
j: SET STATEMENT character_set_connection = latin1 FOR SELECT 1
i: $probe
i: CREATE DATABASE sleak
i: SHOW CREATE DATABASE sleak
i: DROP DATABASE sleak
j: $probe
j: CREATE DATABASE sleak
j: SHOW CREATE DATABASE sleak
j: DROP DATABASE sleak
i: $probe
i: CREATE DATABASE sleak
i: SHOW CREATE DATABASE sleak
i: DROP DATABASE sleak
i, j leaves
k: SET collation_server = utf8mb4_bin
k: SET NAMES utf8mb4 COLLATE utf8mb4_bin
l: SET collation_server = utf8mb4_bin
l: SET NAMES utf8mb4 COLLATE utf8mb4_bin
l: SET STATEMENT character_set_client = latin1 FOR SELECT 1
k: $probe
k: CREATE DATABASE sleak
k: SHOW CREATE DATABASE sleak
k: DROP DATABASE sleak
l: $probe
l: CREATE DATABASE sleak
l: SHOW CREATE DATABASE sleak
l: DROP DATABASE sleak
k: $probe
k: CREATE DATABASE sleak
k: SHOW CREATE DATABASE sleak
k: DROP DATABASE sleak
k, l leaves
m: SET collation_server = utf8mb4_bin
m: SET NAMES utf8mb4 COLLATE utf8mb4_bin
n: SET collation_server = utf8mb4_bin
n: SET NAMES utf8mb4 COLLATE utf8mb4_bin
n: SET STATEMENT collation_server = latin1_bin FOR SELECT 1
m: $probe
m: CREATE DATABASE sleak
m: SHOW CREATE DATABASE sleak
m: DROP DATABASE sleak
n: $probe
n: CREATE DATABASE sleak
n: SHOW CREATE DATABASE sleak
n: DROP DATABASE sleak
m: $probe
m: CREATE DATABASE sleak
m: SHOW CREATE DATABASE sleak
m: DROP DATABASE sleak
m, n leaves

# A change of user has both bytes of the collation's number, a login the low one.
story a_change_of_user_may_name_any_collation
backends 2
let probe = SELECT @@character_set_client, @@character_set_results, @@collation_connection
a: CREATE TABLE t (v VARCHAR(9) CHARACTER SET utf8mb4)
for value, who:
- 309 | c
- 278 | d
- 264 | e
- 608 | f
- 2304 | g
- 576 | h
- 9999 | i
  a becomes collation $value
  a: $probe
  a: INSERT INTO t VALUES ('ä€')
  b: SELECT HEX(v) FROM t
  a: SELECT v, 'x' FROM t
  a: $probe
  a reset
  a: $probe
  b: DELETE FROM t
  $who joins collation $value
  $who: $probe
  b becomes collation $value
  b: $probe
  b becomes
end
a becomes
a: $probe
a: INSERT INTO t VALUES ('ä€')
b: SELECT HEX(v) FROM t
a: SELECT v, 'x' FROM t
a: $probe
a reset
a: $probe
b: DELETE FROM t
j: $probe
b becomes
b: $probe
b becomes
b: DROP TABLE t

# A SET of a character set sets its collation too, and the other way round: what was set last is
# the session's, in whatever order, also behind a reset.
story a_charset_and_its_collation_follow_who_set_one_of_them
let probe = SELECT @@character_set_database, @@collation_database, @@character_set_server, \
    @@collation_server
a, b joins with MULTI_STATEMENTS
for what:
- character_set_database = latin1
- collation_database = latin1_bin
- character_set_database = greek
- character_set_database = latin1, collation_database = greek_bin
- collation_database = latin1_bin, character_set_database = greek
- character_set_database = DEFAULT
- collation_database = hebrew_bin
- collation_database = DEFAULT
- character_set_server = latin1
- collation_server = latin1_bin
- character_set_server = greek
- character_set_server = latin1, collation_server = greek_bin
- collation_server = latin1_bin, character_set_server = greek
- character_set_server = DEFAULT
- collation_server = hebrew_bin
  a: SET $what
  b, a: $probe
  b: $probe
end
for what:
- collation_server = DEFAULT
- character_set_database = latin1
- collation_database = latin1_bin
- character_set_database = greek
- character_set_database = latin1, collation_database = greek_bin
- collation_database = latin1_bin, character_set_database = greek
- character_set_database = DEFAULT
- collation_database = hebrew_bin
- collation_database = DEFAULT
- character_set_server = latin1
- collation_server = latin1_bin
- character_set_server = greek
- character_set_server = latin1, collation_server = greek_bin
- collation_server = latin1_bin, character_set_server = greek
- character_set_server = DEFAULT
- collation_server = hebrew_bin
  a: SET $what
  b, a: $probe
  b: $probe
  a reset
end
a: SET collation_server = DEFAULT
b, a: $probe
b: $probe

story a_charset_and_its_collation_follow_who_set_one_of_them_2
backends 2
a, b joins with MULTI_STATEMENTS
for what:
- collation_server = latin1_german1_ci; SET character_set_server = latin1
- character_set_server = greek; SET collation_server = greek_bin
  a: SET $what
  b, a: SELECT @@character_set_server, @@collation_server
  b, a: SELECT @@character_set_server, @@collation_server
  a reset
end

# A default schema whose name is written in the client's character set, and comes back on backends
# that stand in any other.
story a_schema_is_named_in_the_character_set_of_its_backend
backends 2
let probe = SELECT DATABASE(), @@character_set_database, @@collation_database, \
    @@character_set_connection, @@collation_connection
a: CREATE DATABASE `тест` CHARACTER SET cp1251
b: SET CHARACTER SET koi8r
b bytes: USE \xd4\xc5\xd3\xd4
for who, what, what2, sql:
- p0 | n24 | n25 | NAMES
- p1 | n17 | n18 | CHARACTER SET
  b prepare $who: SELECT HEX(DATABASE())
  b: SHOW TABLES
  b: $probe
  b execute $who ()
  # Elsewhere, on one that stands in another character set and schema.
  a: SET NAMES latin1
  a: USE mysql
  b: SHOW TABLES
  b: $probe
  b execute $who ()
  c: SET CHARACTER SET cp1251
  c: BEGIN
  c: SELECT 1
  b: SHOW TABLES
  b: $probe
  b execute $who ()
  c: COMMIT
  a: SET @$what = 1
  b: SELECT @$what
  b: SHOW TABLES
  b: $probe
  b execute $who ()
  c: SET @$what2 = 1
  b: SELECT @$what2
  for sql2:
  - NAMES
  - CHARACTER SET
    b: SHOW TABLES
    b: $probe
    b execute $who ()
    a: SET $sql2 utf8mb4
    a init_db: тест
    a: SELECT 1
    a: $probe
    a reset
    a: SELECT 1
    a: $probe
    b: SHOW TABLES
    b: $probe
    b execute $who ()
    a becomes schema 'тест'
    a: SELECT 1
    a: $probe
  end
  b: SHOW TABLES
  b: $probe
  b execute $who ()
  b reset
  b: SHOW TABLES
  b: $probe
  b execute $who ()
  b: SET $sql koi8r
  b command 0x02: \xd4\xc5\xd3\xd4
end
b prepare p2: SELECT HEX(DATABASE())
b: SHOW TABLES
b: $probe
b execute p2 ()
a: SET NAMES latin1
a: USE mysql
b: SHOW TABLES
b: $probe
b execute p2 ()
c: SET CHARACTER SET cp1251
c: BEGIN
c: SELECT 1
b: SHOW TABLES
b: $probe
b execute p2 ()
c: COMMIT
a: SET @n25 = 1
b: SELECT @n25
b: SHOW TABLES
b: $probe
b execute p2 ()
c: SET @n26 = 1
b: SELECT @n26
for sql:
- NAMES
- CHARACTER SET
  b: SHOW TABLES
  b: $probe
  b execute p2 ()
  a: SET $sql utf8mb4
  a init_db: тест
  a: SELECT 1
  a: $probe
  a reset
  a: SELECT 1
  a: $probe
  b: SHOW TABLES
  b: $probe
  b execute p2 ()
  a becomes schema 'тест'
  a: SELECT 1
  a: $probe
end
b: SHOW TABLES
b: $probe
b execute p2 ()
b reset
b: SHOW TABLES
b: $probe
b execute p2 ()
a: DROP DATABASE `тест`

# A server may give every client its own default, whatever collation the login names
# (`skip_character_set_client_handshake`, which MySQL 9 has no more). What is restored must be so,
# also where the default is what the pool's own logins name.
story a_server_that_heeds_no_collation_is_followed
let probe = SELECT @@character_set_client, @@character_set_connection, @@character_set_results, \
    @@collation_connection, HEX('é'), CHARSET('')
a, b joins collation 8
a: $probe
a: SET NAMES cp1251
a, b: $probe
b: SET CHARACTER SET koi8r
b, a: $probe
a reset
b becomes collation 8
a, b: $probe
b: SET NAMES DEFAULT
b, c: $probe
c: SET NAMES cp1251
c, d: $probe
d: SET CHARACTER SET koi8r
d, c: $probe
c reset
d becomes
c, d: $probe
d: SET NAMES DEFAULT
d: $probe
e, f joins collation 33
e: $probe
e: SET NAMES cp1251
e, f: $probe
f: SET CHARACTER SET koi8r
f, e: $probe
e reset
f becomes collation 33
e, f: $probe
f: SET NAMES DEFAULT
f: $probe
g, h joins collation 63
g: $probe
g: SET NAMES cp1251
g, h: $probe
h: SET CHARACTER SET koi8r
h, g: $probe
g reset
h becomes collation 63
g, h: $probe
h: SET NAMES DEFAULT
h: $probe

# MariaDB reports changes otherwise where the default schema is in such a character set.
story sessions_are_followed_in_schemas_of_wide_character_sets
backends 2
a: CREATE TABLE kept (id INT)
a: ALTER DATABASE `$schema` CHARACTER SET utf32
a: USE `$schema`
a: SET sql_mode = 'ANSI_QUOTES'
a: SET TRANSACTION ISOLATION LEVEL SERIALIZABLE
# The backend that has seen this is another client's.
a: BEGIN
a: SELECT "id" FROM kept
a: COMMIT
a: USE information_schema
a: USE `$schema`
b: BEGIN
b: SELECT * FROM kept FOR UPDATE
a: SELECT "id" FROM kept
a: SELECT @@sql_mode, DATABASE()
a: CREATE TABLE another (name CHAR(3))
a: SHOW CREATE TABLE another
b: COMMIT

# Every backend that stood in a schema when it was altered, or created again, has its new
# character set. Who has not said USE since keeps the old one on a server: it is not asked.
story a_schema_that_is_defined_anew_has_its_character_set_on_every_backend
backends 2
let probe = SELECT DATABASE(), @@character_set_database, @@collation_database, \
    @@character_set_connection, @@collation_connection
a, b: BEGIN /* now */
# One backend is b's, the other answers; then it is c's, and the first answers.
a, b: COMMIT
c: ALTER DATABASE $schema CHARACTER SET greek
for sql:
- BEGIN /* now */
- COMMIT
  a: $sql
  c: $probe
  c: CREATE TABLE of_charset (v TEXT)
  c: SHOW CREATE TABLE of_charset
  c: DROP TABLE of_charset
  b: $sql
end
c: ALTER DATABASE CHARACTER SET hebrew
for sql, sql2:
- DROP DATABASE $schema | CREATE SCHEMA IF NOT EXISTS `$schema` CHARACTER SET cp1251
- DROP DATABASE $schema | CREATE DATABASE IF NOT EXISTS $schema CHARACTER SET utf8
  for sql3:
  - BEGIN /* now */
  - COMMIT
    a: $sql3
    c: $probe
    c: CREATE TABLE of_charset (v TEXT)
    c: SHOW CREATE TABLE of_charset
    c: DROP TABLE of_charset
    b: $sql3
  end
  c: $sql
  c: $sql2
  c: USE $schema
end
for sql:
- BEGIN /* now */
- COMMIT
  a: $sql
  c: $probe
  c: CREATE TABLE of_charset (v TEXT)
  c: SHOW CREATE TABLE of_charset
  c: DROP TABLE of_charset
  b: $sql
end
c: ALTER SCHEMA $schema COLLATE greek_bin
for sql:
- BEGIN /* now */
- COMMIT
  a: $sql
  c: $probe
  c: CREATE TABLE of_charset (v TEXT)
  c: SHOW CREATE TABLE of_charset
  c: DROP TABLE of_charset
  b: $sql
end
