# Statements prepared by name, as text: their client keeps its backend, and gets a server's answers.

story names_are_the_clients_own
backends 3
a: PREPARE p FROM 'SELECT 1 + ?'
b: PREPARE P FROM 'SELECT 100, ''it''''s'''
a: SET @x = 4 ;; EXECUTE p USING @x ;; EXECUTE p
b: EXECUTE p ;; EXECUTE `p` ;; EXECUTE q
a: DEALLOCATE PREPARE p ;; EXECUTE p USING @x
b: EXECUTE p ;; DROP PREPARE p ;; DEALLOCATE PREPARE p ;; SHOW WARNINGS
a: DEALLOCATE PREPARE never ;; EXECUTE never

story a_text_means_what_it_meant_when_it_was_prepared
backends 3
a: CREATE TABLE t (v INT) ;; INSERT INTO t VALUES (1) ;; CREATE DATABASE ${schema}_b
a: CREATE TABLE ${schema}_b.t (w VARCHAR(9)) ;; SET sql_mode = 'ANSI_QUOTES'
a: PREPARE p FROM 'SELECT "v", DATABASE(), @@sql_mode FROM t'
a: SET sql_mode = DEFAULT ;; USE ${schema}_b
b: SET sql_mode = '' ;; SELECT 1
a: EXECUTE p ;; SELECT DATABASE(), @@sql_mode
b: SELECT DATABASE(), @@sql_mode
a: SET sql_mode = 'NO_BACKSLASH_ESCAPES' ;; PREPARE p FROM 'SELECT ''a\b'''
b: SELECT 1
a: SET sql_mode = DEFAULT ;; EXECUTE p ;; DROP DATABASE ${schema}_b

story what_an_execution_does_is_what_its_text_does
backends 3
a: CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT) ENGINE=InnoDB
a: PREPARE i FROM 'INSERT INTO t (v) VALUES (?), (?)'
a: PREPARE s FROM 'SET @y = 5, sql_mode = ''ANSI'''
a: PREPARE l FROM 'SELECT GET_LOCK(''$schema'', 0)'
a: PREPARE u FROM 'SELECT RELEASE_LOCK(''$schema'')'
a: PREPARE m FROM 'CREATE TEMPORARY TABLE own (x INT)'
a: SET @v = 3 ;; EXECUTE i USING @v, @v
b: SELECT COUNT(*), LAST_INSERT_ID() FROM t
a: SELECT LAST_INSERT_ID() ;; EXECUTE s
b: SELECT @y IS NULL, @@sql_mode
a: SELECT @y, @@sql_mode ;; EXECUTE l
b: SELECT GET_LOCK('$schema', 0) ;; SELECT 1
a: EXECUTE u
b: SELECT GET_LOCK('$schema', 0) ;; DO RELEASE_LOCK('$schema')
if mariadb
  a: PREPARE b FROM 'BEGIN' ;; EXECUTE b
end
if mysql
  a: BEGIN
end
a: EXECUTE i USING @v, @v
b: SELECT COUNT(*) FROM t
a: ROLLBACK ;; SELECT COUNT(*) FROM t ;; EXECUTE m
b: SELECT * FROM own
a: SELECT * FROM own ;; DROP TABLE own
b: SELECT 1
if mariadb
  a: EXECUTE IMMEDIATE 'SET @z = ?' USING 7 ;; EXECUTE IMMEDIATE 'SELEC'
  a: EXECUTE IMMEDIATE 'SELECT @z, ?' USING @v
  b: SELECT @z IS NULL
end

story a_failed_prepare_takes_the_old_one_away
backends 3
a: CREATE TABLE t (v INT) ;; PREPARE p FROM 'SELECT 1' ;; PREPARE p FROM 'SELECT 2' ;; EXECUTE p
b: PREPARE p FROM 'SELECT 3'
a: PREPARE p FROM 'SELEC' ;; EXECUTE p
b: EXECUTE p
a: PREPARE p FROM 'SELECT * FROM t'
b: DROP TABLE t
a: EXECUTE p ;; SHOW WARNINGS ;; EXECUTE p
b: CREATE TABLE t (w CHAR(3), x INT)
a: EXECUTE p

story a_text_may_come_from_a_variable
only mariadb
backends 3
a: SET @s = CONCAT('SELECT ', 1 + 1, ', ''x''') ;; PREPARE p FROM @s ;; SET @s = 'SELECT 3'
b: EXECUTE p ;; SELECT @s IS NULL
a: EXECUTE p ;; BEGIN ;; SET @s = 'SELECT 4' ;; PREPARE p FROM @s ;; EXECUTE p ;; COMMIT
b: SELECT 1
a: EXECUTE p ;; PREPARE p FROM @unset ;; EXECUTE p
a: SET @s = NULL ;; PREPARE p FROM @s ;; EXECUTE p ;; SET @n = 5 ;; PREPARE p FROM @n ;; EXECUTE p

story a_reset_and_a_change_of_user_drop_all_names
backends 3
a: PREPARE p FROM 'SELECT 1' ;; EXECUTE p
a reset
a: EXECUTE p ;; PREPARE p FROM 'SELECT 2'
a becomes
b: SELECT 1
a: EXECUTE p

# Texts of several statements, and MariaDB's SET STATEMENT, find the names of their clients.
story texts_of_several_find_the_names_of_their_clients
backends 3
a joins with MULTI_STATEMENTS
b: PREPARE p FROM 'SELECT 100' ;; PREPARE q FROM 'SELECT 200'
for text:
- EXECUTE p; SELECT 1
- PREPARE p FROM 'SELECT 1 + ?'; SET @x = 4; EXECUTE p USING @x
- DO 1; EXECUTE p USING @x; execute `P` USING @x
- DEALLOCATE PREPARE p; EXECUTE p
- EXECUTE never; SELECT 9
- SET STATEMENT max_statement_time = 5 FOR EXECUTE q
  a: $text
  b: EXECUTE p ;; EXECUTE q
  a: EXECUTE p USING @x ;; EXECUTE q
end
a reset
a: EXECUTE p ;; SELECT 2

# A procedure that prepares, or takes away, a name which its caller has on another backend. A client
# that comes next finds another one.
story a_procedure_gives_its_callers_name_to_something_else
backends 4
other: CREATE TABLE t (v INT) ;; CREATE PROCEDURE gives() PREPARE p FROM 'SELECT 2'
other: CREATE PROCEDURE takes() DEALLOCATE PREPARE p ;; CREATE PROCEDURE runs() EXECUTE p
other: CREATE PROCEDURE fails() PREPARE p FROM 'SELEC' ;; CREATE PROCEDURE deep() CALL gives()
other: CREATE PROCEDURE some() BEGIN PREPARE p FROM 'SELECT 4'; EXECUTE p; DEALLOCATE PREPARE p; END
other: CREATE PROCEDURE reads(s TEXT) BEGIN SET @s = s; PREPARE p FROM @s; END
for code:
- gives()
- takes()
- runs()
- fails()
- some()
- deep()
- reads('SELECT 5')
  a: PREPARE p FROM 'SELECT 1' ;; EXECUTE p
  b: BEGIN ;; INSERT INTO t VALUES (1)
  other: PREPARE p FROM 'SELECT 100'
  a: CALL $schema.$code ;; EXECUTE p ;; SELECT 1 ;; EXECUTE p
  b: COMMIT
  other: EXECUTE p
  a: EXECUTE p ;; DEALLOCATE PREPARE p ;; EXECUTE p
  a reset
end

# On MariaDB the conditions of the statement before a DEALLOCATE stay.
story conditions_outlive_a_deallocation_where_the_server_lets_them
backends 2
for before:
- EXECUTE p
- SELECT no_such
- SELECT CAST('x' AS SIGNED)
  for between:
  - watch nothing
  - b: SELECT 'b'
    for asks:
    - SELECT @@warning_count, @@error_count
    - SHOW WARNINGS
      a: PREPARE p FROM 'SELECT ? + 0' ;; $before ;; DEALLOCATE PREPARE p
      $between
      a: $asks ;; SELECT ROW_COUNT()
    end
  end
end

# From PREPARE or EXECUTE on, until it resets; one that deallocates, or whose PREPARE could not be
# read, keeps none.
story a_client_that_prepares_or_executes_by_name_keeps_its_backend
backends 2
a: DEALLOCATE PREPARE p => error 1243
a: PREPARE p FROM 'SELEC' => error 1064
a is not pinned
a: PREPARE p FROM 'SELECT 7'
a is pinned text_prepare
a: EXECUTE p => 7
a: DEALLOCATE PREPARE p
a is pinned text_prepare
a is pinned text_execute
a reset
a is not pinned
a: EXECUTE p => error 1243
a is pinned text_execute
