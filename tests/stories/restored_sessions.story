# Clients in different states share a backend, and nobody waits for its being restored.

story a_statement_behind_its_state_is_answered_as_alone
a joins schema 'shop'
b: SET default_storage_engine = InnoDB
a: SET default_storage_engine = MEMORY
for sql:
- DROP TABLE IF EXISTS turned
- CREATE TABLE turned (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(9))
- SHOW CREATE TABLE turned
- INSERT INTO turned (v) VALUES ('a;b'), ('c')
- SELECT LAST_INSERT_ID(), DATABASE()
- SELECT * FROM turned WHERE v = 'c';
  b, a: $sql
end
b, a bytes: SELECT * FROM turned WHERE v = \'a;b\' ;\x20
b, a: UPDATE turned SET v = 'd' WHERE id = 2
b, a: SELECT ROW_COUNT()
b, a: SELECT * FROM missing
b, a: SELEC 1
b, a bytes: SELECT 1\nFROM FROM
b, a: SHOW WARNINGS
b, a: SELECT 1/0, CAST('x' AS SIGNED)
b, a: SHOW WARNINGS
b, a: SELECT 1; SELECT 2
b, a: SELECT "x", DATABASE() -- behind
b, a: SET NAMES latin1
b, a: SELECT 'é', @@character_set_client, DATABASE()
b, a: SET NAMES utf8mb4
b, a: SET sql_mode = 'ANSI_QUOTES'
b, a: SELECT "v" FROM turned ORDER BY id
b, a: SET @x = DATABASE()
b, a: SELECT @x
b, a: EXPLAIN SELECT * FROM turned
b, a: SHOW TABLES LIKE 'turned'
b, a: DO 1
b: BEGIN
b: INSERT INTO turned (v) VALUES ('e')
b: ROLLBACK
a: BEGIN
a: INSERT INTO turned (v) VALUES ('e')
a: ROLLBACK
b, a: SELECT COUNT(*) FROM turned
b, a:
b, a bytes: \x20
b, a: -- nothing
b, a: DROP TABLE turned

story several_statements_behind_their_state_are_answered_as_alone
a joins with MULTI_STATEMENTS
b joins schema 'shop' with MULTI_STATEMENTS
a: SET default_storage_engine = InnoDB
b: SET default_storage_engine = MEMORY
for sql:
- DROP TABLE IF EXISTS turned
- CREATE TABLE turned (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(9))
- SHOW CREATE TABLE turned
- INSERT INTO turned (v) VALUES ('a;b'), ('c')
- SELECT LAST_INSERT_ID(), DATABASE()
- SELECT * FROM turned WHERE v = 'c';
  a, b: $sql
end
a, b bytes: SELECT * FROM turned WHERE v = \'a;b\' ;\x20
a, b: UPDATE turned SET v = 'd' WHERE id = 2
a, b: SELECT ROW_COUNT()
a, b: SELECT * FROM missing
a, b: SELEC 1
a, b bytes: SELECT 1\nFROM FROM
a, b: SHOW WARNINGS
a, b: SELECT 1/0, CAST('x' AS SIGNED)
a, b: SHOW WARNINGS
a, b: SELECT 1; SELECT 2
a, b: SELECT "x", DATABASE() -- behind
a, b: SET NAMES latin1
a, b: SELECT 'é', @@character_set_client, DATABASE()
a, b: SET NAMES utf8mb4
a, b: SET sql_mode = 'ANSI_QUOTES'
a, b: SELECT "v" FROM turned ORDER BY id
a, b: SET @x = DATABASE()
a, b: SELECT @x
a, b: EXPLAIN SELECT * FROM turned
a, b: SHOW TABLES LIKE 'turned'
a, b: DO 1
a: BEGIN
a: INSERT INTO turned (v) VALUES ('e')
a: ROLLBACK
b: BEGIN
b: INSERT INTO turned (v) VALUES ('e')
b: ROLLBACK
a, b: SELECT COUNT(*) FROM turned
a, b:
a, b bytes: \x20
a, b: -- nothing
a, b: DROP TABLE turned

# Columns are described in the collation that a client's login or its SET NAMES has named, which
# no variable shows.
story results_are_described_in_the_clients_own_collation
let probe = SET NAMES utf8mb4 COLLATE utf8mb4_bin, collation_connection = utf8mb4_general_ci
a joins collation 46
b joins collation 47
c joins collation 8
d joins collation 224
e joins collation 63
watch f, a, b, c, d, e: SELECT 'x', _latin1 'y', 1, DATABASE()
f: DO 1
a: DO 1
b: DO 1
f: SET NAMES utf8mb4 COLLATE utf8mb4_unicode_ci
a: SET NAMES utf8mb4 COLLATE utf8mb4_unicode_ci
b: SET NAMES utf8mb4 COLLATE utf8mb4_unicode_ci
f: SET NAMES latin1 COLLATE latin1_bin
a: SET NAMES latin1 COLLATE latin1_bin
b: SET NAMES latin1 COLLATE latin1_bin
f: SET character_set_results = utf8mb4
a: SET character_set_results = utf8mb4
b: SET character_set_results = utf8mb4
f: SET character_set_client = latin1
a: SET character_set_client = latin1
b: SET character_set_client = latin1
f: SET character_set_results = NULL
a: SET character_set_results = NULL
b: SET character_set_results = NULL
f: $probe
a: $probe
b: $probe
f: SET CHARACTER SET latin1
a: SET CHARACTER SET latin1
b: SET CHARACTER SET latin1
watch nothing
